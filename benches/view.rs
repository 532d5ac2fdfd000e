//! `schedviz view` on a recording tiled to any size: seconds to the first picture and to the index, against
//! `running-waiting` in the same run; times and sizes of tiles; memory; the index file; frames per second in a browser.
//!
//! ```text
//! cargo bench -p schedviz --bench view -- [--size MB] [--trace FILE] [--form v6|v7|zstd] [--simulated CPUS] [--runs N]
//!     [--kept FILE] [--program FILE]... [--browser]
//! ```
//!
//! Several programs, such as those of two commits, take turns in each run. On a busy machine the CPU times are more
//! reliable than the elapsed ones.
#![allow(clippy::print_stderr, clippy::print_stdout)]

#[path = "../tests/support/scratch.rs"]
mod scratch;
mod tiling;
#[allow(dead_code)]
#[path = "../tests/webdriver.rs"]
mod webdriver;

use serde_json::Value;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use testkit::{Rng, timed};
use tiling::Setup;

/// The part of the tests' support that the browser needs.
mod support {
    pub(crate) use crate::scratch::{Scratch, scratch};
}

/// The number of tiles of each kind that are timed.
const TILES: usize = 400;

/// A running `schedviz view`, ended when it is dropped, with a connection to it.
struct View {
    child: Child,
    url: String,
    stream: BufReader<TcpStream>,
    begun: Instant,
}

impl View {
    fn start(program: &Path, trace: &Path, index: Option<&Path>) -> View {
        let begun = Instant::now();
        let mut child = Command::new(program)
            .args(["view", "--no-open", "-q"])
            .args(index.map(|index| [OsStr::new("--index"), index.as_os_str()]).into_iter().flatten())
            .arg(trace)
            .stdout(Stdio::piped())
            .spawn()
            .expect("schedviz");
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().expect("a pipe")).read_line(&mut line).expect("an address");
        let url = line.trim().strip_suffix("index.html").expect("an address").to_owned();
        let host = url.strip_prefix("http://").and_then(|rest| rest.split('/').next()).expect("a host");
        let stream = TcpStream::connect(host).expect("a connection");
        stream.set_nodelay(true).expect("an option");
        View { child, stream: BufReader::new(stream), begun, url }
    }

    /// The status and the body of an answer, and its time.
    fn get(&mut self, path: &str) -> (u16, Vec<u8>, Duration) {
        let begin = Instant::now();
        let (host, token) = self.url.strip_prefix("http://").and_then(|u| u.split_once('/')).expect("an address");
        let request = format!("GET /{token}{path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        self.stream.get_mut().write_all(request.as_bytes()).expect("a request");
        let (mut status, mut length) = (0, 0);
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line).expect("an answer");
            match line.trim().split_once(' ') {
                None => break,
                Some(("HTTP/1.1", rest)) => status = rest[..3].parse().expect("a status"),
                Some(("Content-Length:", number)) => length = number.parse().expect("a number"),
                Some(_) => {}
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).expect("a body");
        (status, body, begin.elapsed())
    }

    fn head(&mut self) -> Option<Value> {
        let (status, body, _) = self.get("t/0/head.json");
        (status == 200).then(|| serde_json::from_slice(&body).expect("JSON"))
    }

    /// The seconds from the start to the first picture, and to the index; and the head.
    fn follow(&mut self) -> (f64, f64, Value) {
        let mut first = None;
        loop {
            let head = self.head();
            let level = head.as_ref().map_or(0, |head| head["levels"][1].as_u64().expect("a level"));
            if first.is_none() && self.get(&format!("t/0/lanes/{level}/0/0.bin")).0 == 200 {
                first = Some(self.begun.elapsed().as_secs_f64());
            }
            if let (Some(head), Some(first)) = (head.filter(|head| head["full"] == true), first) {
                return (first, self.begun.elapsed().as_secs_f64(), head);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The peak memory and that in use, in MB.
    fn memory(&self) -> (u64, u64) {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let of = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name))?;
            line.split_whitespace().nth(1)?.parse::<u64>().ok()
        };
        (of("VmHWM:").unwrap_or(0) / 1000, of("VmRSS:").unwrap_or(0) / 1000)
    }
}

impl Drop for View {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Times tiles of these levels at random places, and prints a line about them.
fn tiles(view: &mut View, head: &Value, name: &str, levels: std::ops::Range<u64>, rng: &mut Rng) {
    let number = |value: &Value| value.as_u64().expect("a number");
    let (columns, lanes) = (number(&head["tile"]["columns"]), number(&head["tile"]["lanes"]) as usize);
    let groups = head["cpus"].as_array().expect("CPUs").len().div_ceil(lanes);
    let (mut times, mut sizes) = (Vec::new(), Vec::new());
    for _ in 0..TILES {
        let level = levels.start + rng.below((levels.end - levels.start) as usize) as u64;
        let index = rng.below(((number(&head["span"]) >> level) / columns + 1) as usize);
        let (status, body, time) = view.get(&format!("t/0/lanes/{level}/{}/{index}.bin", rng.below(groups)));
        assert_eq!(status, 200);
        times.push(time.as_secs_f64() * 1e3);
        sizes.push(body.len());
    }
    times.sort_by(f64::total_cmp);
    sizes.sort_unstable();
    let at = |part: usize| (TILES * part / 100).min(TILES - 1);
    println!(
        "  tiles, {name}: {:.2} ms, 99 % {:.1}, at most {:.1}; {:.1} kB, at most {:.1}",
        times[at(50)],
        times[at(99)],
        times[TILES - 1],
        sizes[at(50)] as f64 / 1e3,
        sizes[TILES - 1] as f64 / 1e3
    );
}

/// Pans through the trace in a browser at three zooms, and prints the times between frames.
fn pan(view: &View, head: &Value) {
    let Some(browser) = webdriver::Browser::start("view") else { return };
    browser.open(&format!("{}index.html", view.url));
    browser.wait_for("document.documentElement.dataset.complete === 'true' && schedviz.state.traces[0].head.full");
    let span = head["span"].as_f64().expect("a number");
    for part in [0.2, 0.01, 1e-5] {
        let length = span * part;
        browser.run(&format!(
            "const times = []; let from = {}; globalThis.panned = null; let begun = 0;
             const frame = now => {{
               begun ||= now; times.push(now); schedviz.show(from += {}, {length});
               if (now - begun < 4000) requestAnimationFrame(frame); else globalThis.panned = times;
             }};
             requestAnimationFrame(frame);",
            span * 0.3,
            length / 120.0
        ));
        browser.wait_for("globalThis.panned !== null");
        let times = browser.run("return globalThis.panned");
        let times: Vec<f64> = times.as_array().expect("times").iter().filter_map(Value::as_f64).collect();
        let mut steps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        steps.sort_by(f64::total_cmp);
        println!(
            "  panning, {:.6} of the trace in view: {:.1} frames a second; a frame {:.1} ms, 99 % {:.1}",
            part,
            steps.len() as f64 * 1e3 / (times[times.len() - 1] - times[0]),
            steps[steps.len() / 2],
            steps[steps.len() * 99 / 100]
        );
    }
}

/// The CPU time in seconds of a process, or of all that this one has waited for.
fn cpu_time(process: Option<u32>) -> f64 {
    let path = process.map_or("/proc/self/stat".to_owned(), |id| format!("/proc/{id}/stat"));
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    // The time of the children stands behind that of the process; `/proc` counts hundredths of a second.
    let first = if process.is_some() { 11 } else { 13 };
    let ticks = fields.iter().skip(first).take(2).filter_map(|field| field.parse::<f64>().ok());
    ticks.sum::<f64>() / 100.0
}

/// The times of one program in one run, in seconds.
struct Run {
    /// The elapsed time and the CPU time of `running-waiting`.
    figure: (f64, f64),
    first_picture: f64,
    /// The elapsed time and the CPU time up to the index.
    index: (f64, f64),
}

/// Measures a program once.
fn measure(program: &Path, trace: &Path, folder: &Path, run: u64, browser: bool) -> Run {
    let before = cpu_time(None);
    let figure = folder.join("figure.pdf");
    let (time, _) = timed(Command::new(program).args(["running-waiting", "-q", "-o"]).arg(figure).arg(trace));
    let figure = (time.as_secs_f64(), cpu_time(None) - before);
    let mut view = View::start(program, trace, None);
    let (first_picture, full, head) = view.follow();
    let index = (full, cpu_time(Some(view.child.id())));
    println!(
        "{}: running-waiting {:.2} s (CPU {:.2}); first picture {first_picture:.2} s, index {:.2} s (CPU {:.2}), {:.2} \
         times that (CPU {:.2})",
        program.display(),
        figure.0,
        figure.1,
        index.0,
        index.1,
        index.0 / figure.0,
        index.1 / figure.1
    );
    let base = head["index"]["level"].as_u64().expect("a level");
    let top = head["levels"][1].as_u64().expect("a level");
    let (peak, now) = view.memory();
    let bytes = head["index"]["bytes"].as_f64().expect("a number");
    let size = trace.metadata().expect("the trace").len() as f64;
    println!(
        "  index {:.1} MB, {:.2} % of the trace, columns of {:.6} s and longer; memory {now} MB, at most {peak}",
        bytes / 1e6,
        bytes / size * 100.0,
        (1u64 << base) as f64 / 1e9
    );
    let mut rng = Rng::new(run + 1);
    tiles(&mut view, &head, "of the index", base..top + 1, &mut rng);
    tiles(&mut view, &head, "just below it", base - 1..base, &mut rng);
    tiles(&mut view, &head, "finer ones", base.saturating_sub(14)..base, &mut rng);
    println!("  memory after that: {} MB, at most {}", view.memory().1, view.memory().0);
    if browser {
        pan(&view, &head);
    }
    Run { figure, first_picture, index }
}

/// Writes an index file and opens the trace with it.
fn keep_index(program: &Path, trace: &Path, folder: &Path) {
    let file = folder.join("kept.index");
    let _ = std::fs::remove_file(&file);
    let mut view = View::start(program, trace, Some(&file));
    let (_, full, _) = view.follow();
    drop(view);
    let bytes = file.metadata().expect("an index file").len() as f64;
    let mut view = View::start(program, trace, Some(&file));
    let (first, again, _) = view.follow();
    println!(
        "{}: index file {:.1} MB, {:.2} % of the trace, after {full:.2} s; opened again: picture {first:.2} s, finer columns \
         {again:.2} s; memory at most {} MB",
        program.display(),
        bytes / 1e6,
        bytes / trace.metadata().expect("the trace").len() as f64 * 100.0,
        view.memory().0
    );
}

/// Prints the medians and the ranges of all runs of a program.
fn summary(program: &Path, runs: &[Run]) {
    let line = |name: &str, of: &dyn Fn(&Run) -> f64| {
        let mut all: Vec<f64> = runs.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        println!("  {name}: {:.2} ({:.2} to {:.2})", all[all.len() / 2], all[0], all[all.len() - 1]);
    };
    println!("{}, medians of {} runs", program.display(), runs.len());
    line("running-waiting, s", &|run| run.figure.0);
    line("first picture, s", &|run| run.first_picture);
    line("index, s", &|run| run.index.0);
    line("index / running-waiting", &|run| run.index.0 / run.figure.0);
    line("the same in CPU time", &|run| run.index.1 / run.figure.1);
}

fn main() {
    // `cargo test --benches` only checks that the program starts.
    if std::env::args().any(|a| a == "--test") {
        return;
    }
    let (mut programs, mut browser, mut kept) = (Vec::<PathBuf>::new(), false, None);
    let mut setup = Setup::read(|flag, value| match flag {
        "--program" => programs.push(value().into()),
        "--browser" => browser = true,
        "--kept" => kept = Some(PathBuf::from(value())),
        _ => {}
    });
    if programs.is_empty() {
        programs.push(env!("CARGO_BIN_EXE_schedviz").into());
    }
    let folder = support::scratch("traces");
    let large = kept.unwrap_or_else(|| folder.join("large.dat"));
    // A trace that an earlier run has kept is used again.
    if !large.exists() {
        setup.simulate(&folder);
        let (events, _) = tiling::write(&setup.trace, &setup.form, setup.size * 1_000_000, &large);
        println!("{} as {}, {:.1} M events", setup.trace.display(), setup.form, events as f64 / 1e6);
    }
    println!("{}: {:.2} GB", large.display(), large.metadata().expect("the trace").len() as f64 / 1e9);
    let mut runs: Vec<Vec<Run>> = programs.iter().map(|_| Vec::new()).collect();
    for run in 0..setup.runs {
        for (program, runs) in programs.iter().zip(&mut runs) {
            runs.push(measure(program, &large, &folder, run as u64, browser));
        }
    }
    programs.iter().zip(&runs).for_each(|(program, runs)| summary(program, runs));
    programs.iter().for_each(|program| keep_index(program, &large, &folder));
    std::fs::remove_dir_all(&folder).expect("removed");
}

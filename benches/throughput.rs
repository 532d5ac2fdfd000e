//! The throughput of the commands, against `trace-cmd report` in the same run, on a recording tiled to any size.
//!
//! ```text
//! cargo bench -p schedviz --bench throughput -- [--size MB] [--trace FILE] [--form v6|v7|zstd] [--simulated CPUS] [--runs N]
//!     [--most-threads N]
//! ```
//!
//! With `--most-threads` a second table has the elapsed time and the CPU time of each command with 1, 2, 4 threads and so on, up
//! to that number. On a busy machine, and on one with fewer cores than threads, the CPU times are the reliable ones.
//!
//! With zstd it also measures the decompression alone, by the same library on as many threads.
//!
//! The events of the recording are packed into full pages, which are repeated with later times until
//! the file has its size. trace-cmd is slow, so it reports a tenth of that, and its time is scaled up;
//! its columns are empty if it is not installed.
#![allow(clippy::print_stdout)]

mod tiling;

use parse::{Options, Trace};
use std::num::NonZero;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use testkit::timed;
use tiling::{Chunks, Setup, write};

/// Returns the time that the library takes to decompress all chunks, on as many threads as there are cores.
fn decompress_alone(file: &[u8], chunks: &Chunks) -> Duration {
    let begin = Instant::now();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, NonZero::get) {
            scope.spawn(|| {
                let mut decompressor = zstd::bulk::Decompressor::new().expect("a decompressor");
                let mut plain = Vec::new();
                while let Some((at, size)) = chunks.get(next.fetch_add(1, Ordering::Relaxed)) {
                    plain.clear();
                    plain.reserve(*size);
                    decompressor.decompress_to_buffer(&file[at.clone()], &mut plain).expect("the compressed bytes");
                }
            });
        }
    });
    begin.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// Measures the time that the stepper takes to go to any step, and one step back.
fn jumps(path: &Path) {
    let trace = Trace::open(path, Options::default()).expect("the tiled trace");
    let begin = Instant::now();
    let mut replay = sched::Replay::new(trace.events().expect("events")).expect("a pass");
    let opened = begin.elapsed();
    let mut rng = testkit::Rng::new(1);
    let time = |replay: &mut sched::Replay<_>, step| {
        let begin = Instant::now();
        sched::Replay::go(replay, step).expect("a step");
        begin.elapsed()
    };
    let (mut far, mut near) = (Vec::new(), Vec::new());
    for _ in 0..40 {
        let step = rng.below(replay.total() as usize) as u64;
        far.push(time(&mut replay, step));
        near.push(time(&mut replay, step.saturating_sub(1)));
    }
    let most = far.iter().max().copied().unwrap_or_default();
    println!(
        "stepper: ready after {:.2} s with {} checkpoints; a jump {:.0} ms (at most {:.0}), a step back {:.0} ms",
        opened.as_secs_f64(),
        replay.checkpoints(),
        median(far).as_secs_f64() * 1e3,
        most.as_secs_f64() * 1e3,
        median(near).as_secs_f64() * 1e3
    );
}

/// The measured commands, each with its name in the table and its arguments.
const COMMANDS: [(&str, &[&str]); 7] = [
    ("info", &["info"]),
    ("dat2graph", &["dat2graph"]),
    ("dat2graph, one thread", &["dat2graph", "--threads", "1"]),
    ("running-waiting", &["running-waiting"]),
    ("workcons", &["workcons"]),
    ("why", &["why"]),
    ("path", &["path"]),
];

/// The times of each command, run by run.
#[derive(Default)]
struct Times {
    /// The elapsed time and the peak memory in bytes of each command.
    ours: [Vec<(Duration, u64)>; COMMANDS.len()],
    /// The times of `trace-cmd report` on the small file; empty if it is not installed.
    theirs: Vec<Duration>,
    /// The times of decompression alone; empty if the file is not compressed.
    alone: Vec<Duration>,
}

/// Runs all commands in each round, so that a disturbance of the machine slows down all of them.
fn measure(folder: &Path, runs: usize, chunks: &Chunks) -> Times {
    let (large, small, figure) = (folder.join("large.dat"), folder.join("small.dat"), folder.join("figure.pdf"));
    let compressed = if chunks.is_empty() { Vec::new() } else { std::fs::read(&large).expect("the tiled trace") };
    let has_trace_cmd = Command::new("trace-cmd").arg("--version").stdout(Stdio::null()).status().is_ok();
    let mut times = Times::default();
    for _ in 0..runs {
        if !chunks.is_empty() {
            times.alone.push(decompress_alone(&compressed, chunks));
        }
        for (times, (_, arguments)) in times.ours.iter_mut().zip(&COMMANDS) {
            let mut command = Command::new(env!("CARGO_BIN_EXE_schedviz"));
            command.args(*arguments).arg(&large);
            if !matches!(arguments[0], "info" | "workcons" | "why" | "path") {
                command.arg("-o").arg(&figure);
            }
            times.push(timed(&command));
        }
        if has_trace_cmd {
            times.theirs.push(timed(Command::new("trace-cmd").arg("report").arg("-i").arg(&small)).0);
        }
    }
    times
}

/// Prints the table for `data` GB of data and `events` events, of which trace-cmd read the share `part`.
fn table(times: Times, data: f64, events: u64, part: f64) {
    println!("{:<28} {:>8} {:>8} {:>10} {:>8} {:>12}", "command", "s", "GB/s", "M events/s", "MiB", "x trace-cmd");
    let millions = events as f64 / 1e6;
    let theirs = (!times.theirs.is_empty()).then(|| median(times.theirs).as_secs_f64() / part);
    for (times, (name, _)) in times.ours.into_iter().zip(&COMMANDS) {
        let peak = times.iter().map(|t| t.1 >> 20).max().unwrap_or(0);
        let s = median(times.into_iter().map(|t| t.0).collect()).as_secs_f64();
        let ratio = theirs.map_or("-".to_owned(), |t| format!("{:.1}", t / s));
        println!("{name:<28} {s:>8.3} {:>8.2} {:>10.1} {peak:>8} {ratio:>12}", data / s, millions / s);
    }
    if !times.alone.is_empty() {
        let s = median(times.alone).as_secs_f64();
        println!("{:<28} {s:>8.3} {:>8.2}", "decompressing alone", data / s);
    }
    if let Some(s) = theirs {
        println!("{:<28} {s:>8.1} {:>8.3} {:>10.2}", "trace-cmd report (scaled)", data / s, millions / s);
    }
}

/// The place of an output in the arguments of a command of the table by threads.
const OUTPUT: &str = "OUTPUT";

/// The commands of the table by threads, each with its arguments before the trace. Those that draw by default give their
/// numbers, so that the pass is measured.
const BY_THREADS: [&[&str]; 15] = [
    &["info"],
    &["dat2graph", "-o", OUTPUT],
    &["running-waiting", "-o", OUTPUT],
    &["workcons", "--json"],
    &["why", "--json"],
    &["path", "--json"],
    &["migrations", "--json"],
    &["latency", "--json"],
    &["fairness", "--json"],
    &["utilization", "--json"],
    &["events", "--events", "sched:*", "--json"],
    &["report", "-o", OUTPUT],
    &["export", "--parquet", OUTPUT],
    &["export", "--csv", OUTPUT],
    &["export", "--perfetto", OUTPUT],
];

/// The CPU time of this process and of the programs that it ran, in seconds.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("a process");
    let fields = stat.rsplit_once(')').expect("a name").1.split_ascii_whitespace();
    // User and system time, and those of the programs, in hundredths of a second.
    fields.skip(11).take(4).map(|ticks| ticks.parse::<f64>().expect("a number")).sum::<f64>() / 100.0
}

/// Makes the index of `schedviz view`.
fn index(path: &Path, threads: usize) {
    let trace = Trace::open(path, Options { threads, ..Options::default() }).expect("the tiled trace");
    let (start, end) = trace.extent().expect("events");
    let scope = view::Scope::of_trace(start, end, &trace.observed(), trace.data_size());
    view::Store::build(trace.events().expect("events"), &scope, None, &|_| {}).expect("an index");
}

/// Prints the median times of each command in seconds, elapsed and on CPUs, with 1, 2, 4 threads and so on, up to `most`.
fn by_threads(folder: &Path, runs: usize, most: usize) {
    let large = folder.join("large.dat");
    let threads: Vec<usize> = std::iter::successors(Some(1), |n| Some(2 * n)).take_while(|n| *n <= most).collect();
    println!("{:<20} {}", "elapsed; CPU time", threads.iter().map(|n| format!("{n:>16}")).collect::<String>());
    let row = |name: &str, work: &dyn Fn(usize)| {
        let cells = threads.iter().map(|n| {
            let times = (0..runs).map(|_| {
                let (begin, cpu) = (Instant::now(), cpu_seconds());
                work(*n);
                (begin.elapsed(), Duration::from_secs_f64(cpu_seconds() - cpu))
            });
            let (elapsed, cpu): (Vec<Duration>, Vec<Duration>) = times.unzip();
            format!("{:>9.3};{:>6.2}", median(elapsed).as_secs_f64(), median(cpu).as_secs_f64())
        });
        println!("{name:<20} {}", cells.collect::<String>());
    };
    for (nth, arguments) in BY_THREADS.iter().enumerate() {
        // Each has an output of its own, of a kind that its name shows.
        let kind = if arguments.contains(&"-o") && arguments[0] != "report" { "pdf" } else { "out" };
        let output = folder.join(format!("output-{nth}.{kind}"));
        let name = arguments.iter().filter(|argument| !matches!(**argument, OUTPUT | "-o" | "--json"));
        let name = name.take(2).copied().collect::<Vec<_>>().join(" ");
        row(&name, &|threads| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_schedviz"));
            for argument in *arguments {
                command.arg(if *argument == OUTPUT { output.as_os_str() } else { argument.as_ref() });
            }
            command.arg(&large).args(["-q", "--threads", &threads.to_string()]);
            let _ = timed(&command);
        });
    }
    row("index of view", &|threads| index(&large, threads));
}

fn main() {
    // `cargo test --benches` only checks that the program starts.
    if std::env::args().any(|a| a == "--test") {
        return;
    }
    let mut most_threads = 0;
    let mut setup = Setup::read(|flag, value| {
        if flag == "--most-threads" {
            most_threads = value().parse().expect("a number of threads");
        }
    });
    let folder = std::env::temp_dir().join(format!("schedviz-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    setup.simulate(&folder);
    let large = folder.join("large.dat");
    let (events, chunks) = write(&setup.trace, &setup.form, setup.size * 1_000_000, &large);
    let (small_events, _) = write(&setup.trace, &setup.form, setup.size * 100_000, &folder.join("small.dat"));
    let data = {
        let trace = Trace::open(&large, Options::default()).expect("the tiled trace");
        let total: u64 = trace.event_counts().iter().map(|e| e.count).sum();
        assert_eq!(total, events, "the tiled trace is whole");
        let plain: usize = chunks.iter().map(|(_, size)| size).sum();
        trace.data_size().max(plain as u64) as f64 / 1e9
    };
    let millions = events as f64 / 1e6;
    println!("{} as {}: {data:.2} GB of data, {millions:.1} M events", setup.trace.display(), setup.form);
    let times = measure(&folder, setup.runs, &chunks);
    table(times, data, events, small_events as f64 / events as f64);
    jumps(&large);
    if most_threads > 0 {
        by_threads(&folder, setup.runs, most_threads);
    }
    if std::env::var_os("SCHEDVIZ_BENCH_KEEP").is_none() {
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}

//! The two tables of `docs/performance.md`, on a recording tiled to any size: the throughput of the commands beside other programs on
//! the same events, and the times with 1, 2, 4 threads and so on.
//!
//! ```text
//! cargo bench -p schedviz --bench throughput -- [--size MB] [--trace FILE] [--form v6|v7|zstd] [--simulated CPUS] [--runs N]
//!     [--most-threads N]
//! ```
//!
//! Without `--most-threads` the second table ends at the number of cores. On a busy machine the CPU times are the reliable ones.
//! With zstd the first table has the decompression alone, by the same library on as many threads.
//!
//! The events of the recording are packed into full pages, which are repeated with later times until the file has its size. Other
//! programs are slow, so they read a tenth of it. Those that are not installed have no row: trace-cmd, LISA's `trace-dump`, and
//! Perfetto's trace processor, which `SCHEDVIZ_PERFETTO` names as for the tests.
#![allow(clippy::print_stdout)]

mod others;
mod tiling;

use parse::{Options, Trace};
use std::num::NonZero;
use std::path::Path;
use std::process::Command;
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

/// The place of an output in the arguments of a command.
const OUTPUT: &str = "OUTPUT";

/// The commands, each with its arguments before the trace. Those that draw by default give their numbers, so that the pass is measured.
const COMMANDS: [&[&str]; 17] = [
    &["info"],
    &["dat2graph", "-o", OUTPUT],
    &["running-waiting", "-o", OUTPUT],
    &["workcons", "--json"],
    &["why", "--json"],
    &["latency", "--json"],
    &["fairness", "--json"],
    &["migrations", "--json"],
    &["path", "--json"],
    &["findings"],
    &["utilization", "--json"],
    &["events", "--events", "sched:*", "--json"],
    &["report", "-o", OUTPUT],
    &["view", "--export", OUTPUT],
    &["export", "--parquet", OUTPUT],
    &["export", "--csv", OUTPUT],
    &["export", "--perfetto", OUTPUT],
];

/// The number of commands that the first table has.
const OF_THROUGHPUT: usize = 10;

/// A command as the tables name it.
fn name(nth: usize) -> String {
    let is_word = |argument: &&str| !matches!(*argument, OUTPUT | "-o" | "--json" | "--events" | "sched:*");
    format!("`{}`", COMMANDS[nth].iter().copied().filter(is_word).collect::<Vec<_>>().join(" "))
}

/// A command on the large trace.
fn command(nth: usize, folder: &Path, threads: Option<usize>) -> Command {
    let arguments = COMMANDS[nth];
    // Each has an output of its own, of a kind that its name shows.
    let kind = match arguments {
        ["report" | "export", ..] => "out",
        ["view", ..] => "html",
        _ => "pdf",
    };
    let output = folder.join(format!("output-{nth}.{kind}"));
    // An exported page, which is a folder, replaces none.
    let _ = std::fs::remove_dir_all(&output);
    let mut command = Command::new(env!("CARGO_BIN_EXE_schedviz"));
    for argument in arguments {
        command.arg(if *argument == OUTPUT { output.as_os_str() } else { argument.as_ref() });
    }
    command.arg(folder.join("large.dat")).arg("-q");
    if let Some(threads) = threads {
        command.args(["--threads", &threads.to_string()]);
    }
    command
}

/// What a run of a program took.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Measured {
    pub(crate) elapsed: Duration,
    pub(crate) cpu: Duration,
    /// The peak of the memory, in bytes.
    pub(crate) peak: u64,
}

/// Runs a program, and discards its output.
pub(crate) fn measured(command: &Command) -> Measured {
    let cpu = cpu_seconds();
    let (elapsed, peak) = timed(command);
    Measured { elapsed, cpu: Duration::from_secs_f64(cpu_seconds() - cpu), peak }
}

/// The median times of some runs, and their highest peak.
fn typical(runs: &[Measured]) -> Measured {
    let of = |time: fn(&Measured) -> Duration| median(runs.iter().map(time).collect());
    let peak = runs.iter().map(|run| run.peak).max().unwrap_or(0);
    Measured { elapsed: of(|run| run.elapsed), cpu: of(|run| run.cpu), peak }
}

/// The events that are measured on.
struct Data {
    /// The number of all events, and of those that other programs read.
    events: (u64, u64),
    /// The size of the pages of all events, in GB.
    size: f64,
}

/// Prints the table of throughput. All programs run in each round, so that a disturbance of the machine slows down all of them.
fn throughput(folder: &Path, runs: usize, data: &Data, chunks: &Chunks) {
    let compressed =
        if chunks.is_empty() { Vec::new() } else { std::fs::read(folder.join("large.dat")).expect("a file") };
    let others = others::installed(folder);
    let (mut ours, mut theirs) = (vec![Vec::new(); OF_THROUGHPUT], vec![Vec::new(); others.len()]);
    let mut alone = Vec::new();
    for _ in 0..runs {
        if !chunks.is_empty() {
            alone.push(decompress_alone(&compressed, chunks));
        }
        ours.iter_mut().enumerate().for_each(|(nth, runs)| runs.push(measured(&command(nth, folder, None))));
        theirs.iter_mut().zip(&others).for_each(|(runs, other)| runs.push(other.run()));
    }
    let rate = |events: u64, run: &Measured| events as f64 / 1e6 / run.elapsed.as_secs_f64();
    let theirs: Vec<Measured> = theirs.iter().map(|runs| typical(runs)).collect();
    let least =
        others.iter().position(|other| other.name == "`trace-cmd report`").map(|nth| rate(data.events.1, &theirs[nth]));
    println!("\n| program | elapsed, s | CPU time, s | million events/s | times `trace-cmd report` | memory, MiB |");
    println!("|---|---|---|---|---|---|");
    let row = |name: &str, events: u64, run: &Measured| {
        let rate = rate(events, run);
        let times = least.map_or("-".to_owned(), |least| format!("{:.1}", rate / least));
        let (elapsed, cpu, peak) = (run.elapsed.as_secs_f64(), run.cpu.as_secs_f64(), run.peak >> 20);
        println!("| {name} | {elapsed:.2} | {cpu:.2} | {rate:.2} | {times} | {peak} |");
    };
    ours.iter().enumerate().for_each(|(nth, runs)| row(&name(nth), data.events.0, &typical(runs)));
    others.iter().zip(&theirs).for_each(|(other, run)| row(&format!("{}, of a tenth", other.name), data.events.1, run));
    if !alone.is_empty() {
        println!("\nDecompression alone: {:.2} GB/s.", data.size / median(alone).as_secs_f64());
    }
}

/// The CPU time of this process and of the programs that it ran, in seconds.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("a process");
    let fields = stat.rsplit_once(')').expect("a name").1.split_ascii_whitespace();
    // User and system time, and those of the programs, in hundredths of a second.
    fields.skip(11).take(4).map(|ticks| ticks.parse::<f64>().expect("a number")).sum::<f64>() / 100.0
}

/// Prints the median times of each command in seconds, elapsed and (on CPUs), with 1, 2, 4 threads and so on, up to `most`.
fn by_threads(folder: &Path, runs: usize, most: usize) {
    let threads: Vec<usize> = std::iter::successors(Some(1), |n| Some(2 * n)).take_while(|n| *n <= most).collect();
    let columns =
        |cell: &dyn Fn(usize) -> String| threads.iter().map(|n| format!(" {} |", cell(*n))).collect::<String>();
    println!(
        "\n| elapsed (CPU time), s |{} memory, MiB |",
        columns(&|n| format!("{n} threads").replace("1 threads", "1 thread"))
    );
    println!("|---|{}---|", threads.iter().map(|_| "---|").collect::<String>());
    for nth in 0..COMMANDS.len() {
        let of =
            |threads| typical(&(0..runs).map(|_| measured(&command(nth, folder, Some(threads)))).collect::<Vec<_>>());
        let times: Vec<Measured> = threads.iter().map(|n| of(*n)).collect();
        let cell = |run: &Measured| format!(" {:.2} ({:.2}) |", run.elapsed.as_secs_f64(), run.cpu.as_secs_f64());
        let peak = times.iter().map(|run| run.peak >> 20).max().unwrap_or(0);
        println!("| {} |{} {peak} |", name(nth), times.iter().map(cell).collect::<String>());
    }
}

/// The machine and the day.
fn conditions() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let info = read("/proc/cpuinfo");
    let model = info
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map_or("CPUs", |name| name.trim_start_matches([' ', '\t', ':']));
    let day = Command::new("date").arg("+%F").output().map_or_else(|_| Vec::new(), |ran| ran.stdout);
    let (release, day) = (read("/proc/sys/kernel/osrelease"), String::from_utf8_lossy(&day).into_owned());
    format!("{cores} × {model}, Linux {}, {}", release.trim(), day.trim())
}

fn main() {
    // `cargo test --benches` only checks that the program starts.
    if std::env::args().any(|a| a == "--test") {
        return;
    }
    let mut most_threads = std::thread::available_parallelism().map_or(1, NonZero::get);
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
    let (part, _) = write(&setup.trace, &setup.form, setup.size * 100_000, &folder.join("small.dat"));
    let size = {
        let trace = Trace::open(&large, Options::default()).expect("the tiled trace");
        let total: u64 = trace.event_counts().iter().map(|e| e.count).sum();
        assert_eq!(total, events, "the tiled trace is whole");
        let plain: usize = chunks.iter().map(|(_, size)| size).sum();
        trace.data_size().max(plain as u64) as f64 / 1e9
    };
    let data = Data { events: (events, part), size };
    let (name, millions) = (setup.trace.file_name().unwrap_or_default().to_string_lossy(), events as f64 / 1e6);
    println!(
        "{}. {name} as {}, tiled to {size:.2} GB of pages and {millions:.1} million events; medians of {} runs.",
        conditions(),
        setup.form,
        setup.runs
    );
    throughput(&folder, setup.runs, &data, &chunks);
    by_threads(&folder, setup.runs, most_threads);
    println!();
    jumps(&large);
    if std::env::var_os("SCHEDVIZ_BENCH_KEEP").is_none() {
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}

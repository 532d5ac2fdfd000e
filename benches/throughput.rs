//! The throughput of the commands, against `trace-cmd report` in the same run, on a recording tiled to any size.
//!
//! ```text
//! cargo bench -p schedviz --bench throughput -- [--size MB] [--trace FILE] [--form v6|v7|zstd] [--simulated CPUS] [--runs N]
//! ```
//!
//! With zstd it also measures the decompression alone, by the same library on as many threads.
//!
//! The events of the recording are packed into full pages, which are repeated with later times until
//! the file has its size. trace-cmd is slow, so it reports a tenth of that, and its time is scaled up;
//! its columns are empty if it is not installed.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::num::NonZero;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use testkit::{Order, Ring, Simulation, TraceBuilder, timed};
use tracedat::{Options, Trace};

/// The pages of each CPU.
type Pages = BTreeMap<u32, Vec<Vec<u8>>>;
/// The places of the chunks of compressed pages in the file, each with its decompressed size in bytes.
type Chunks = Vec<(Range<usize>, usize)>;

/// Returns the pages of one tile, the time that it covers in nanoseconds, and the number of its events. A recording
/// is repeated within a tile until most of its pages are full.
fn pack(path: &Path) -> (Pages, u64, u64) {
    let trace = Trace::open(path, Options::default()).expect("a recording");
    let (start, end) = trace.extent().expect("events");
    let span = end.since(start).0 + 1_000_000;
    let mut records: BTreeMap<u32, Vec<(u64, Vec<u8>)>> = BTreeMap::new();
    let mut events = 0;
    trace.records(&mut |r| {
        events += 1;
        records.entry(r.cpu.0).or_default().push((r.ts.0 as u64, r.payload().to_vec()));
        ControlFlow::Continue(())
    });
    let repeat = (200_000 / events).max(1);
    let pack_one = |(cpu, records): (&u32, &Vec<(u64, Vec<u8>)>)| {
        let mut ring = Ring::new(Order::Little, 8, 4096);
        for n in 0..repeat {
            records.iter().for_each(|(ts, payload)| ring.event(ts + n * span, payload));
        }
        (*cpu, ring.finish())
    };
    (records.iter().map(pack_one).collect(), span * repeat, events * repeat)
}

/// Returns the pages of a tile, moved in time by `by` nanoseconds.
fn moved(pages: &[Vec<u8>], by: u64) -> impl Iterator<Item = Vec<u8>> {
    pages.iter().map(move |page| {
        let ts = u64::from_le_bytes(page[..8].try_into().expect("a page")) + by;
        [&ts.to_le_bytes(), &page[8..]].concat()
    })
}

fn place(bytes: &[u8], what: &[u8]) -> usize {
    bytes.windows(what.len()).rposition(|w| w == what).expect("a part of the header")
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// Writes the given number of tiles behind the header of a version 6 recording.
fn write_v6(original: &[u8], pages: &Pages, span: u64, tiles: u64, out: &mut (impl Write + Seek)) {
    let table = place(original, b"flyrecord\0") + 10;
    let trace = Trace::from_bytes(original.to_vec(), Options::default()).expect("a recording");
    let rows = trace.info().cpus as usize;
    let trailer = table + 16 * rows;
    let header_end = trailer + 8 + u64_at(original, trailer) as usize;
    let mut header = original[..header_end].to_vec();
    let mut at = header_end.next_multiple_of(4096) as u64;
    for cpu in 0..rows {
        let size = pages.get(&(cpu as u32)).map_or(0, |p| p.len() as u64 * 4096 * tiles);
        let row = table + 16 * cpu;
        header[row..row + 8].copy_from_slice(&at.to_le_bytes());
        header[row + 8..row + 16].copy_from_slice(&size.to_le_bytes());
        at += size;
    }
    header.resize(header_end.next_multiple_of(4096), 0);
    out.write_all(&header).expect("written");
    for pages in pages.values() {
        for k in 0..tiles {
            moved(pages, k * span).for_each(|page| out.write_all(&page).expect("written"));
        }
    }
}

/// The same behind the header of a version 7 recording, with or without compression.
fn write_v7(
    original: &[u8],
    pages: &Pages,
    span: u64,
    tiles: u64,
    zstd: bool,
    out: &mut (impl Write + Seek),
) -> Chunks {
    let name_end = 12 + original[12..].iter().position(|b| *b == 0).unwrap_or(0);
    let name_end = name_end.max(18 + original[18..].iter().position(|b| *b == 0).expect("a name"));
    let first = name_end + 2 + original[name_end + 1..].iter().position(|b| *b == 0).expect("a version");
    let options = u64_at(original, first) as usize;
    let end = options + 16 + u64_at(original, options + 8) as usize;
    out.write_all(&original[..end]).expect("written");
    let mut buffer_header = vec![3, 0, u8::from(zstd), 0, 0xff, 0xff, 0xff, 0xff];
    buffer_header.extend([0; 8]);
    out.write_all(&buffer_header).expect("written");
    let (mut rows, mut written) = (Vec::new(), Chunks::new());
    for (cpu, pages) in pages {
        let at = out.stream_position().expect("a position").next_multiple_of(4096);
        out.seek(SeekFrom::Start(at)).expect("a place");
        if zstd {
            let chunks = pages.chunks(10).len() as u64 * tiles;
            out.write_all(&(chunks as u32).to_le_bytes()).expect("written");
        }
        for k in 0..tiles {
            let pages: Vec<Vec<u8>> = moved(pages, k * span).collect();
            for chunk in pages.chunks(10) {
                let plain = chunk.concat();
                if zstd {
                    written.push(write_chunk(&plain, out));
                } else {
                    out.write_all(&plain).expect("written");
                }
            }
        }
        rows.push((*cpu, at, out.stream_position().expect("a position") - at));
    }
    write_options(&rows, end as u64, out);
    written
}

/// Writes a compressed chunk and returns its place, and its size before compression.
fn write_chunk(plain: &[u8], out: &mut (impl Write + Seek)) -> (Range<usize>, usize) {
    let mut compressor = zstd::bulk::Compressor::new(3).expect("a compressor");
    compressor.include_contentsize(false).expect("a setting");
    let block = compressor.compress(plain).expect("compressed");
    out.write_all(&(block.len() as u32).to_le_bytes()).expect("written");
    out.write_all(&(plain.len() as u32).to_le_bytes()).expect("written");
    let at = out.stream_position().expect("a position") as usize;
    out.write_all(&block).expect("written");
    (at..at + block.len(), plain.len())
}

/// Writes the options behind the data: one buffer, whose header is at `buffer`, with the places of its CPUs' data.
fn write_options(rows: &[(u32, u64, u64)], buffer: u64, out: &mut (impl Write + Seek)) {
    let section = out.stream_position().expect("a position");
    let mut payload = buffer.to_le_bytes().to_vec();
    payload.extend(b"\0local\0");
    payload.extend(4096u32.to_le_bytes());
    payload.extend((rows.len() as u32).to_le_bytes());
    for (cpu, at, size) in rows {
        payload.extend(cpu.to_le_bytes());
        payload.extend(at.to_le_bytes());
        payload.extend(size.to_le_bytes());
    }
    let mut body = vec![3, 0];
    body.extend((payload.len() as u32).to_le_bytes());
    body.extend(payload);
    body.extend([0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    out.write_all(&[0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]).expect("written");
    out.write_all(&(body.len() as u64).to_le_bytes()).expect("written");
    out.write_all(&body).expect("written");
    // The first section of options refers to this one, and the header of the buffer has its size.
    out.seek(SeekFrom::Start(buffer - 8)).expect("a place");
    out.write_all(&section.to_le_bytes()).expect("written");
    out.seek(SeekFrom::Start(buffer + 8)).expect("a place");
    out.write_all(&(section - buffer - 16).to_le_bytes()).expect("written");
}

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

struct Setup {
    size: u64,
    trace: PathBuf,
    form: String,
    runs: usize,
    /// The number of CPUs of a simulated run, if one replaces the recording.
    simulated: Option<u32>,
}

fn setup() -> Setup {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut setup = Setup { size: 256, trace: PathBuf::new(), form: "v6".into(), runs: 3, simulated: None };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().expect("a value");
        match argument.as_str() {
            "--size" => setup.size = value().parse().expect("megabytes"),
            "--trace" => setup.trace = value().into(),
            "--form" => setup.form = value(),
            "--simulated" => setup.simulated = Some(value().parse().expect("a number of CPUs")),
            "--runs" => setup.runs = value().parse().expect("a number"),
            _ => {}
        }
    }
    if setup.trace.as_os_str().is_empty() {
        let fixture = if setup.form == "v6" { "hackbench-v6.dat" } else { "hackbench.dat" };
        setup.trace = root.join("tests/fixtures").join(fixture);
    }
    setup
}

/// Writes the trace of a simulated run.
fn simulate(cpus: u32, form: &str, path: &Path) {
    let run = Simulation::run(1, cpus, 200 * cpus as usize);
    let version = if form == "v6" { 6 } else { 7 };
    let trace = TraceBuilder { version, ..TraceBuilder::default() }.events(&run.events).build();
    std::fs::write(path, trace).expect("written");
}

/// Writes a tiled trace and returns the number of its events, and its chunks if it is compressed.
fn write(setup: &Setup, size: u64, path: &Path) -> (u64, Chunks) {
    let original = std::fs::read(&setup.trace).expect("a recording");
    let (pages, span, events) = pack(&setup.trace);
    let tile: u64 = pages.values().map(|p| p.len() as u64 * 4096).sum();
    let tiles = (size / tile).max(1);
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path).expect("a file"));
    let chunks = match setup.form.as_str() {
        "v6" => {
            write_v6(&original, &pages, span, tiles, &mut out);
            Chunks::new()
        }
        form => write_v7(&original, &pages, span, tiles, form == "zstd", &mut out),
    };
    out.flush().expect("written");
    (events * tiles, chunks)
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
const COMMANDS: [(&str, &[&str]); 5] = [
    ("info", &["info"]),
    ("dat2graph", &["dat2graph"]),
    ("dat2graph, one thread", &["dat2graph", "--threads", "1"]),
    ("running-waiting", &["running-waiting"]),
    ("workcons", &["workcons"]),
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
            if !matches!(arguments[0], "info" | "workcons") {
                command.arg("-o").arg(&figure);
            }
            times.push(timed(&mut command));
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

fn main() {
    // `cargo test --benches` only checks that the program starts.
    if std::env::args().any(|a| a == "--test") {
        return;
    }
    let mut setup = setup();
    let folder = std::env::temp_dir().join(format!("schedviz-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    if let Some(cpus) = setup.simulated {
        setup.trace = folder.join("simulated.dat");
        simulate(cpus, &setup.form, &setup.trace);
    }
    let large = folder.join("large.dat");
    let (events, chunks) = write(&setup, setup.size * 1_000_000, &large);
    let (small_events, _) = write(&setup, setup.size * 100_000, &folder.join("small.dat"));
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
    if std::env::var_os("SCHEDVIZ_BENCH_KEEP").is_none() {
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}

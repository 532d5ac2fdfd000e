//! A recording that is repeated with later times until the file has any size.

use parse::{Options, Trace};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use testkit::{ByteOrder, Ring, Simulation, TraceBuilder};

/// The pages of each CPU.
type Pages = BTreeMap<u32, Vec<Vec<u8>>>;
/// The places of the chunks of compressed pages in the file, each with its decompressed size in bytes.
pub(crate) type Chunks = Vec<(Range<usize>, usize)>;

/// The trace to measure on, and how often.
pub(crate) struct Setup {
    /// The size of the tiled trace in megabytes.
    pub(crate) size: u64,
    /// The recording that is tiled.
    pub(crate) trace: PathBuf,
    pub(crate) form: String,
    /// The number of CPUs of a simulated run, if one replaces the recording.
    pub(crate) simulated: Option<u32>,
    pub(crate) runs: usize,
}

impl Setup {
    /// Reads the command line; `other` takes the flags that a benchmark has of its own, with a reader of their values.
    pub(crate) fn read(mut other: impl FnMut(&str, &mut dyn FnMut() -> String)) -> Setup {
        let mut setup = Setup { size: 256, trace: PathBuf::new(), form: "v6".into(), simulated: None, runs: 3 };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().expect("a value");
            match argument.as_str() {
                "--size" => setup.size = value().parse().expect("megabytes"),
                "--trace" => setup.trace = value().into(),
                "--form" => setup.form = value(),
                "--simulated" => setup.simulated = Some(value().parse().expect("a number of CPUs")),
                "--runs" => setup.runs = value().parse().expect("a number"),
                flag => other(flag, &mut value),
            }
        }
        if setup.trace.as_os_str().is_empty() {
            let fixture = if setup.form == "v6" { "hackbench-v6.dat" } else { "hackbench.dat" };
            setup.trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures").join(fixture);
        }
        setup
    }

    /// Replaces the recording by a simulated run in a folder, if one is asked for.
    pub(crate) fn simulate(&mut self, folder: &Path) {
        if let Some(cpus) = self.simulated {
            self.trace = folder.join("simulated.dat");
            simulate(cpus, &self.form, &self.trace);
        }
    }
}

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
        let mut ring = Ring::new(ByteOrder::Little, 8, 4096);
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

/// Writes the trace of a simulated run.
fn simulate(cpus: u32, form: &str, path: &Path) {
    let run = Simulation::run(1, cpus, 200 * cpus as usize);
    let version = if form == "v6" { 6 } else { 7 };
    let trace = TraceBuilder { version, ..TraceBuilder::default() }.events(&run.events).build();
    std::fs::write(path, trace).expect("written");
}

/// Writes a trace tiled to this number of bytes, and returns the number of its events, and its chunks if it is compressed.
pub(crate) fn write(trace: &Path, form: &str, size: u64, path: &Path) -> (u64, Chunks) {
    let original = std::fs::read(trace).expect("a recording");
    let (pages, span, events) = pack(trace);
    let tile: u64 = pages.values().map(|p| p.len() as u64 * 4096).sum();
    let tiles = (size / tile).max(1);
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path).expect("a file"));
    let chunks = match form {
        "v6" => {
            write_v6(&original, &pages, span, tiles, &mut out);
            Chunks::new()
        }
        form => write_v7(&original, &pages, span, tiles, form == "zstd", &mut out),
    };
    out.flush().expect("written");
    (events * tiles, chunks)
}

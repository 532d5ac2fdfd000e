//! Hostile files end soon, in little memory, and with a message (`docs/limits.md`).
#![cfg(target_os = "linux")]

use crate::support::{program, root, schedviz_in, scratch};
use parse::{FileIssue, Trace};
use sched::{Comm, Cpu, EventKind, Pid, PrevState, SchedEvent, TaskRef, Ts};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::Command;
use testkit::{Buffer, Compression, MeasuredRun, TraceBuilder, measured};

/// Every command that reads a trace.
const COMMANDS: [&[&str]; 17] = [
    &["info", "x.dat"],
    &["dat2graph", "x.dat", "-o", "x.svg"],
    &["running-waiting", "x.dat", "-o", "x.svg"],
    &["workcons", "x.dat", "-o", "x.svg"],
    &["stepper", "x.dat", "--at", "0", "--text"],
    &["events", "x.dat"],
    &["events", "x.dat", "-o", "x.svg"],
    &["events", "x.dat", "--list", "-o", "x.txt"],
    &["migrations", "x.dat", "-o", "x.svg"],
    &["latency", "x.dat"],
    &["why", "x.dat"],
    &["path", "x.dat"],
    &["utilization", "x.dat"],
    &["fairness", "x.dat"],
    &["compare", "--base", "x.dat", "--new", "y.dat"],
    &["schedstat", "before", "after", "--time", "1", "--trace", "x.dat"],
    &["report", "x.dat", "-o", "report"],
];

/// The most bytes that a command may write about a small file.
const WRITTEN: u64 = 100_000_000;

/// The sizes of the files below a folder, in bytes.
fn size_of(folder: &Path) -> u64 {
    let size = |entry: std::fs::DirEntry| match entry.metadata().expect("a file") {
        found if found.is_dir() => size_of(&entry.path()),
        found => found.len(),
    };
    std::fs::read_dir(folder).expect("a folder").flatten().map(size).sum()
}

/// Runs every command on a file: within 300 MB, without a panic, with an exit status of its own, and with an end. The 5 s of
/// `docs/limits.md` are for an idle machine and an optimised program: `docs/performance.md` has measured times, and here the
/// bytes that are written stand for the work. The outcome of each printed to standard error.
fn all_commands(folder: &Path, file: &[u8]) -> Vec<String> {
    std::fs::write(folder.join("x.dat"), file).expect("written");
    std::fs::write(folder.join("y.dat"), file).expect("written");
    std::fs::write(folder.join("before"), "version 15\ntimestamp 1\n").expect("written");
    std::fs::write(folder.join("after"), "version 15\ntimestamp 2\n").expect("written");
    let run = |arguments: &&[&str]| {
        let mut command = Command::new(program());
        let before = size_of(folder);
        let MeasuredRun { status, stderr, peak } = measured(command.args(*arguments).current_dir(folder));
        let written = size_of(folder).saturating_sub(before);
        assert!(written < WRITTEN, "{arguments:?}: {} MB", written / 1_000_000);
        assert!(peak < 300_000_000, "{arguments:?}: {} MB", peak / 1_000_000);
        assert!(matches!(status.code(), Some(0..=3)), "{arguments:?}: {status}: {stderr}");
        assert!(!stderr.contains("panicked"), "{arguments:?}: {stderr}");
        assert!(status.code() != Some(1) || stderr.starts_with("schedviz: "), "{arguments:?}: {stderr}");
        stderr
    };
    COMMANDS.iter().map(run).collect()
}

fn hostile(name: &str) -> Vec<u8> {
    std::fs::read(root().join("tests/hostile").join(name)).expect("a hostile file")
}

/// Takes seconds: each command keeps tables of its own, which a limit of the reader does not bound.
#[test]
fn hostile_files_end_soon_on_every_command() {
    let folder = scratch("hostile");
    let mut files: Vec<PathBuf> = Vec::new();
    let mut folders = vec![root().join("tests/hostile")];
    folders.extend(std::env::var_os("SCHEDVIZ_TRACES").map(|traces| Path::new(&traces).join("../cases/hostile")));
    for found in folders.iter().filter_map(|folder| std::fs::read_dir(folder).ok()) {
        files.extend(
            found.flatten().map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == "dat")),
        );
    }
    files.sort_by_key(|path| path.file_name().map(std::ffi::OsStr::to_owned));
    files.dedup_by_key(|path| path.file_name().map(std::ffi::OsStr::to_owned));
    assert!(files.len() >= 7, "{files:?}");
    for path in files {
        all_commands(&folder, &std::fs::read(&path).expect("a hostile file"));
    }
}

/// Without events the reason is given where it is a limit.
#[test]
fn a_limit_is_named() {
    let folder = scratch("limit-named");
    std::fs::write(folder.join("x.dat"), hostile("chunks-of-32-mib-on-64-cpus.dat")).expect("written");
    let ran = schedviz_in(&folder, &["latency", "x.dat"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("64 parts of the file beyond a limit"), "{}", ran.stderr);
    assert!(ran.stderr.contains("CPU 0, its compressed chunks"), "{}", ran.stderr);
    std::fs::write(folder.join("x.dat"), hostile("cmdlines-bomb.dat")).expect("written");
    let ran = schedviz_in(&folder, &["events", "x.dat", "--list", "-o", "x.txt"]).success();
    assert!(ran.stderr.contains("1 part of the file beyond a limit") && ran.stderr.contains("[command lines]"));
    let listed = std::fs::read_to_string(folder.join("x.txt")).expect("a list");
    assert!(listed.lines().count() > 2, "the events themselves are listed");
}

#[test]
fn the_text_of_an_event_has_a_limit() {
    let folder = scratch("event-text");
    std::fs::write(folder.join("x.dat"), hostile("wide-conversions.dat")).expect("written");
    schedviz_in(&folder, &["events", "x.dat", "--list", "-o", "x.txt"]).success();
    let listed = std::fs::read_to_string(folder.join("x.txt")).expect("a list");
    let cut: Vec<&str> = listed.lines().filter(|line| line.ends_with("\u{2026} [cut at 64 KiB]")).collect();
    assert!(!cut.is_empty());
    assert!(listed.lines().all(|line| line.len() < 66_000));
    // The text begins behind the task, the CPU, the time and the name.
    assert!(cut.iter().all(|line| (65_536..65_700).contains(&line.len())), "{}", cut[0].len());
}

/// A builder of files with this number of CPUs, each with the same pages.
fn on_cpus(cpus: u32, pages: &[Vec<u8>], builder: TraceBuilder) -> TraceBuilder {
    let cpus = (0..cpus).map(|cpu| (cpu, pages.to_vec())).collect();
    let buffer = Buffer { clock: "local".into(), cpus, ..Buffer::default() };
    TraceBuilder { buffers: vec![buffer], ..builder }
}

/// Chunks of the largest size, of small records, which take several times as much memory when they are decoded; the
/// times of all CPUs step back again and again, so that all but the first events have one time.
#[test]
#[ignore = "takes long; .ci/run runs it"]
fn the_chunks_of_a_small_file_are_bounded() {
    let builder = TraceBuilder { compression: Compression::Zstd, chunk_pages: 2560, ..TraceBuilder::default() };
    let mut ring = builder.ring();
    let task = |pid| TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(b"task") };
    let switch = EventKind::Switch { prev: task(7), state: PrevState::RUNNABLE, next: task(7) };
    let switch = SchedEvent { ts: Ts(0), cpu: Cpu(0), pid: Pid(7), flags: 0, kind: switch };
    let (switch, other) =
        (builder.layout().payload(&switch).expect("a switch"), [builder.layout().bare(999, 7), vec![0; 24]].concat());
    for page in 0..16 {
        ring.event(1000 + 100 * page, &switch);
        (1..100).for_each(|at| ring.event(1000 + 100 * page + at, &other));
        ring.end_page();
    }
    let sixteen = ring.finish();
    let pages: Vec<Vec<u8>> = sixteen.iter().cycle().take(2560).cloned().collect();
    let file = on_cpus(24, &pages, builder).build();
    assert!(file.len() < 200_000, "{} bytes", file.len());
    let trace = Trace::from_bytes(file.clone(), parse::Options::default()).expect("a trace");
    // All 24 chunks have 240 MiB; these bytes expand to 32 MiB and 64 for each of them.
    let affordable = (32 + file.len() as u64 / 16_384) / 10;
    assert!((3..20).contains(&affordable), "{affordable}");
    assert_eq!(trace.diagnostics().count(FileIssue::BeyondLimit), 24 - affordable);
    let mut read = 0u64;
    trace.records(&mut |_| {
        read += 1;
        ControlFlow::Continue(())
    });
    let each = sixteen.len() as u64;
    assert_eq!(read, 100 * 16 * affordable * 2560 / each, "every piece of a chunk is read, once");
    assert_eq!(trace.counts().buffers[0].total(), read);
    let folder = scratch("chunks");
    all_commands(&folder, &file);
}

/// A file that is read in full, however large its chunks: the pieces have the events of the whole.
#[test]
fn pieces_of_large_chunks_have_the_same_events() {
    let run = testkit::Simulation::run(3, 4, 60_000);
    let listed = |chunk_pages| {
        let builder = TraceBuilder { compression: Compression::Zstd, chunk_pages, ..TraceBuilder::default() };
        let file = builder.events(&run.events).build();
        let trace = Trace::from_bytes(file, parse::Options::default()).expect("a trace");
        assert_eq!(trace.diagnostics().count(FileIssue::BeyondLimit), 0);
        crate::support::events(&trace)
    };
    let (small, large) = (listed(10), listed(2560));
    assert!(small.len() > 60_000);
    assert_eq!(small, large);
}

/// Instances cannot be made to share one table of CPUs: all tables together have at most as many rows as the file has
/// room for.
#[test]
fn rows_of_instances_are_bounded_by_the_file() {
    let trace = Trace::from_bytes(hostile("instances-share-table.dat"), parse::Options::default()).expect("a header");
    assert!(trace.diagnostics().count(FileIssue::BeyondLimit) > 0);
    assert!(trace.info().buffers.len() < 20, "{}", trace.info().buffers.len());
}

#[test]
fn a_part_has_no_rows_of_cpus_that_are_only_claimed() {
    let folder = scratch("claimed-cpus");
    let builder =
        TraceBuilder { version: 6, options: vec![(8, u32::MAX.to_le_bytes().to_vec())], ..TraceBuilder::default() };
    std::fs::write(folder.join("x.dat"), builder.events(&testkit::a_wait_beside_an_idle_cpu()).build())
        .expect("written");
    // The whole is a part, too. Without the limit it has 64 GiB.
    let limited = "ulimit -f 32768; exec \"$0\" cut x.dat -o part.dat";
    let mut command = Command::new("sh");
    command.args(["-c", limited, env!("CARGO_BIN_EXE_schedviz")]).current_dir(&folder);
    let MeasuredRun { status, stderr, .. } = measured(&command);
    assert!(status.success(), "{status}: {stderr}");
    schedviz_in(&folder, &["workcons", "part.dat"]).success();
}

#[test]
fn counts_in_the_header_are_bounded() {
    let stat = |cpu: u32| (2, format!("CPU: {cpu}\nentries: 1\nread events: 0\n").into_bytes());
    let formats = |count: u32| (0..count).map(|id| ("many".to_owned(), format!("name: e{id}\nID: {}\n", id % 60_000)));
    let open = |builder: TraceBuilder| Trace::from_bytes(builder.build(), parse::Options::default()).expect("a trace");
    let beyond = |trace: &Trace| trace.diagnostics().count(FileIssue::BeyondLimit);
    let with = |options: Vec<(u16, Vec<u8>)>| TraceBuilder { options, ..on_cpus(1, &[], TraceBuilder::default()) };
    let trace = open(with((0..65_536 + 5).map(stat).collect()));
    assert_eq!((trace.info().stats.len(), beyond(&trace)), (65_536, 5));
    let instance = |n: u32| (3, [&[0; 8], n.to_string().as_bytes(), &[0; 2], &[0; 8]].concat());
    let trace = open(with((0..4096 + 7).map(instance).collect()));
    assert!(trace.info().buffers.len() <= 4096, "{}", trace.info().buffers.len());
    assert!(beyond(&trace) >= 7);
    let builder = with(Vec::new());
    let trace = open(TraceBuilder { formats: formats(65_536).collect(), ..builder.clone() });
    assert_eq!(trace.formats().len(), 65_536);
    assert!(beyond(&trace) > 0, "those of the test kit are beyond");
    let long = "x".repeat(1 << 20);
    let large = (0..20).map(|id| ("large".to_owned(), format!("name: e{id}\nID: {id}\nprint fmt: \"{long}\"\n")));
    let trace = open(TraceBuilder { formats: large.collect(), ..builder.clone() });
    assert!((1..20).contains(&beyond(&trace)), "{}", beyond(&trace));
    let fields: String = (0..1100).map(|n| format!("\tfield:int f{n};\toffset:8;\tsize:4;\tsigned:1;\n")).collect();
    let wide = format!("name: wide\nID: 5\nformat:\n{fields}\nprint fmt: \"{}\"\n", "x".repeat(300_000));
    let trace = open(TraceBuilder { formats: vec![("odd".into(), wide)], ..builder });
    let format = trace.format_named("odd", "wide").expect("the format");
    assert_eq!((format.fields.len(), format.odd_lines, format.print_fmt.len()), (1024, 77, 0));
}

#[test]
fn the_note_of_a_part_has_a_limit() {
    let folder = scratch("note");
    let with_note = |size: usize| {
        let block = zstd::bulk::compress(&vec![b' '; size], 3).expect("compressed");
        let note: Vec<u8> =
            [block.len() as u32, size as u32].into_iter().flat_map(u32::to_le_bytes).chain(block).collect();
        let file = |at: usize| {
            let numbers = [at as u64, note.len() as u64].into_iter().flat_map(u64::to_le_bytes);
            let options = vec![(0x5343, numbers.chain(1u32.to_le_bytes()).collect())];
            let builder = TraceBuilder { compression: Compression::Zstd, options, ..TraceBuilder::default() };
            builder.events(&testkit::a_wait_beside_an_idle_cpu()).build()
        };
        [file(file(0).len()), note.clone()].concat()
    };
    for size in [31 << 20, 33 << 20, 1 << 30] {
        let file = with_note(size);
        assert!(file.len() < 200_000, "{} bytes", file.len());
        let trace = Trace::from_bytes(file.clone(), parse::Options::default()).expect("a trace");
        assert_eq!(trace.diagnostics().count(FileIssue::LostPast), 1, "{size}");
        if size == 33 << 20 {
            all_commands(&folder, &file);
        }
    }
}

/// The table of limits names its tests: they exist.
#[test]
fn the_tests_of_limits_exist() {
    let text = std::fs::read_to_string(root().join("docs/limits.md")).expect("the table");
    let sources = [
        "tests/limits.rs",
        "tests/bounded.rs",
        "tests/structure.rs",
        "crates/parse/src",
        "crates/sched/src",
        "crates/path/src",
        "crates/perfdata/src",
        "crates/perfetto/src",
        "crates/transcript/src",
        "crates/recordings/src",
        "crates/tracetext/src",
        "tests/from_perfetto.rs",
        "tests/from_raw.rs",
        "crates/benchmarks/src",
        "crates/machine/src",
        "crates/record/src",
        "crates/view/src",
        "crates/plot/src",
        "crates/preemptions/src",
        "crates/reproduce/src",
        "crates/picks/src",
        "crates/jobs/src",
        "crates/session/src",
        "crates/offcpu/src",
        "crates/wakers/src",
        "crates/events/src",
        "crates/neighbours/src",
        "crates/fairness/src",
        "crates/residency/src",
        "crates/schedstat/src",
        "crates/workcons/src",
        "crates/whatif/src",
        "crates/whatif/tests",
        "tests/path_returns.rs",
        "tests/view_plot.rs",
        "tests/view_events.rs",
        "tests/view_questions.rs",
        "tests/mcp.rs",
        "crates/schedviz/src/registry/mcp",
    ]
    .map(|path| root().join(path));
    let listed = Command::new("grep").args(["-rhoE", "fn [a-z_]+\\("]).args(&sources).output().expect("grep");
    let functions = String::from_utf8_lossy(&listed.stdout).into_owned();
    let names = text.split('`').skip(1).step_by(2).filter(|w| w.contains('_') && !w.contains(['/', ' ', '.']));
    let mut seen = 0;
    for name in names.filter(|name| *name != "trace_printk") {
        assert!(functions.lines().any(|line| line == format!("fn {name}(")), "there is no test {name}");
        seen += 1;
    }
    assert!(seen > 12, "{seen} names");
}

//! `schedviz cut`: a part of a trace gives what the same window of the whole gives, and other programs read it.

use crate::support::{fixture, fixtures_and_part, recordings_in_part, repeat, schedviz_in, scratch, seed};
use parse::{FileIssue, Options, Trace};
use rayon::prelude::*;
use sched::{Comm, EventKind, Pass, Pid, SchedEvent, Ts, kthread::is_kernel_thread};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use testkit::{ByteOrder, Compression, Rng, Simulation, TraceBuilder};

/// The commands whose figures are compared.
pub(crate) const COMMANDS: [&[&str]; 24] = [
    &["workcons"],
    &["latency", "--by", "stack"],
    &["why", "--by", "stack"],
    &["path", "--by", "stack"],
    &["migrations"],
    &["running-waiting"],
    &["utilization"],
    &["fairness"],
    &["events"],
    &["dat2graph", "--color-by", "parent"],
    &["dat2graph", "--frequency"],
    &["latency", "--by", "task"],
    &["why", "--by", "task"],
    &["workcons", "--waiters", "application"],
    &["neighbours", "--by", "command"],
    &["neighbours", "--by", "application"],
    &["residency", "--by", "command"],
    &["findings"],
    &["whatif"],
    &["picks", "--by", "task"],
    &["preemptions", "--by", "task"],
    &["wakers", "--by", "task"],
    &["offcpu", "--by", "both"],
    &["jobs", "--deadline", "1ms"],
];

/// Removes from a document what a part has otherwise than the whole.
fn comparable(mut document: Value) -> Value {
    fn clean(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                // The name of the file.
                fields.remove("trace");
                // Events that were lost at an unknown place: a window of the whole reports them only if it reaches the end.
                fields.remove("unwritten_percent");
                let by_these = |why: &Value| why.as_str().is_some_and(|why| why.contains("missing without a mark"));
                if fields.get("untrusted").is_some_and(by_these) {
                    fields.remove("untrusted");
                }
                fields.values_mut().for_each(clean);
            }
            Value::Array(items) => {
                items.retain(|item| item.get("kind").is_none_or(|kind| kind != "events-dropped-unmarked"));
                items.iter_mut().for_each(clean);
            }
            _ => {}
        }
    }
    clean(&mut document);
    document
}

/// Runs a command on a trace: its document, or its message without the name of the trace.
pub(crate) fn outcome(folder: &Path, trace: &Path, command: &[&str], window: &[String]) -> Result<Value, String> {
    let file = trace.to_str().expect("a name");
    let window = window.iter().map(String::as_str);
    // The specification of `plot` comes first.
    let (first, rest) = command.split_at(if command[0] == "plot" { 2 } else { 1 });
    let arguments: Vec<&str> =
        first.iter().copied().chain([file]).chain(rest.iter().copied()).chain(window).chain(["--json", "-q"]).collect();
    let ran = schedviz_in(folder, &arguments);
    let name = trace.file_name().expect("a name").to_str().expect("text");
    // A name with a space is in quotes where it can be pasted.
    let message = ran.stderr.replace(file, "TRACE").replace(name, "TRACE").replace("'TRACE'", "TRACE");
    serde_json::from_slice(&ran.stdout).map(comparable).map_err(|_| message)
}

/// The first place at which two documents differ.
pub(crate) fn difference(path: &str, a: &Value, b: &Value) -> Option<String> {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            keys.into_iter().find_map(|key| {
                let get = |fields: &serde_json::Map<String, Value>| fields.get(key).cloned().unwrap_or(Value::Null);
                difference(&format!("{path}.{key}"), &get(a), &get(b))
            })
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            let pairs = a.iter().zip(b).enumerate();
            pairs.into_iter().find_map(|(nth, (a, b))| difference(&format!("{path}[{nth}]"), a, b))
        }
        _ => (a != b).then(|| format!("{path}: {a} in the whole, {b} in the part")),
    }
}

/// A window of a trace: its options, its start and its end.
fn window(trace: &Trace, rng: &mut Rng) -> Option<(Vec<String>, Ts, Ts)> {
    trace.has_time().ok()?;
    let (start, end) = trace.extent()?;
    let span = end.since(start).0 as usize;
    let from = rng.below(span.max(1));
    let length = span / [1000, 100, 10, 2][rng.below(4)];
    let to = (from + length.max(1000)).min(span);
    let mut options = vec!["--min".to_owned(), format!("{from}ns"), "--max".to_owned(), format!("{to}ns")];
    let (mut from, mut to) = (Ts(start.0 + from as i64), Ts(start.0 + to as i64));
    match rng.below(8) {
        0 => {
            options.drain(..2);
            from = start;
        }
        1 => {
            options.drain(2..);
            to = end;
        }
        _ => {}
    }
    Some((options, from, to))
}

/// Cuts a window out of a trace.
pub(crate) fn cut(folder: &Path, trace: &Path, part: &str, more: &[String]) -> PathBuf {
    let more = more.iter().map(String::as_str);
    let arguments: Vec<&str> =
        ["cut", trace.to_str().expect("a name"), "-o", part, "-q"].into_iter().chain(more).collect();
    schedviz_in(folder, &arguments).success();
    folder.join(part)
}

/// Takes seconds: a part's note has the state of every kind of event, so that each command has its turn on a part of each kind of recording.
#[test]
fn a_part_gives_what_its_window_of_the_whole_gives() {
    let folder = scratch("cut");
    const TEST: &str = "cut::a_part_gives_what_its_window_of_the_whole_gives";
    let failed: Vec<String> = fixtures_and_part(2)
        .into_par_iter()
        .enumerate()
        .flat_map(|(nth, path)| {
            let seed = seed(TEST, &path);
            // A pool of its own would have this thread begin other recordings while it waits, one above the other.
            let options = Options { threads: 1, ..Options::default() };
            let trace = Trace::open(&path, options).expect("a readable recording");
            let Some((options, ..)) = window(&trace, &mut Rng::new(seed)) else { return Vec::new() };
            let part = cut(&folder, &path, &format!("part-{nth}.dat"), &options);
            // Each command has its turn on a quarter of the recordings.
            let turns = COMMANDS.iter().zip(seed % 4..).filter(|(_, turn)| turn.is_multiple_of(4));
            let failed = turns.filter_map(|(command, _)| {
                let whole = outcome(&folder, &path, command, &options);
                let found = match (whole, outcome(&folder, &part, command, &[])) {
                    (Ok(whole), Ok(part)) => difference("", &whole, &part),
                    (whole, part) => (whole != part).then(|| format!("{whole:?} and {part:?}")),
                }?;
                let repeat = repeat(TEST, &path);
                Some(format!("{command:?} on {} {options:?}: {found}; repeat: {repeat}", path.display()))
            });
            let failed = failed.collect();
            std::fs::remove_file(&part).expect("removed");
            failed
        })
        .collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

/// The lines of `trace-cmd report`, each with its time, as far as they have one. Plugins are left out, since they name tasks
/// by events before the window.
fn reported(trace: &Path) -> Option<(Vec<(i64, String)>, String)> {
    let output = Command::new("trace-cmd").args(["report", "-N", "-t"]).arg(trace).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let time = |line: &str| {
        let stamp = line.split_whitespace().find_map(|word| word.strip_suffix(':').filter(|w| w.contains('.')))?;
        let (seconds, ns) = stamp.split_once('.')?;
        Some(seconds.parse::<i64>().ok()? * 1_000_000_000 + ns.parse::<i64>().ok()?)
    };
    let lines = text.lines().filter_map(|line| Some((time(line)?, line.to_owned()))).collect();
    Some((lines, String::from_utf8_lossy(&output.stderr).into_owned()))
}

#[test]
fn trace_cmd_reads_a_part() {
    if reported(&fixture("hackbench.dat")).is_none() {
        eprintln!("skipped: there is no trace-cmd");
        return;
    }
    let folder = scratch("cut-report");
    const TEST: &str = "cut::trace_cmd_reads_a_part";
    let compared: usize = recordings_in_part(4)
        .into_par_iter()
        .enumerate()
        .map(|(nth, path)| {
            // A pool of its own would have this thread begin other recordings while it waits, one above the other.
            let options = Options { threads: 1, ..Options::default() };
            let trace = Trace::open(&path, options).expect("a readable recording");
            let Some((options, from, to)) = window(&trace, &mut Rng::new(seed(TEST, &path))) else { return 0 };
            let (whole, _) = reported(&path).expect("trace-cmd");
            if whole.is_empty() {
                return 0;
            }
            let part = cut(&folder, &path, &format!("part-{nth}.dat"), &options);
            let (found, errors) = reported(&part).expect("trace-cmd");
            let expected: Vec<_> = whole.into_iter().filter(|(ts, _)| (from.0..=to.0).contains(ts)).collect();
            let differs = expected.iter().zip(&found).find(|(a, b)| a != b);
            let case = format!("{} {options:?}; repeat: {}", path.display(), repeat(TEST, &path));
            assert_eq!(differs, None, "{case}");
            assert_eq!(expected.len(), found.len(), "{case}: {errors}");
            std::fs::remove_file(&part).expect("removed");
            found.len()
        })
        .sum();
    assert!(compared > 1000, "{compared} lines");
}

/// Every event of a trace from `from` to `to`, and the state's findings on the way.
fn figures(path: &Path, window: sched::Window) -> (String, Vec<SchedEvent>) {
    let trace = Trace::open(path, Options { threads: 1, ..Options::default() }).expect("a trace");
    struct All(Vec<SchedEvent>, String);
    impl sched::Analysis for All {
        type Output = All;
        fn begin(&mut self, _: Ts, state: &sched::SchedState) {
            self.1 = format!("{:?}", state.noted());
        }
        fn before(&mut self, event: &SchedEvent, _: &sched::SchedState) {
            self.0.push(*event);
        }
        fn span(&mut self, span: &sched::Span, _: &sched::SchedState) {
            self.1 += &format!("{span:?}\n");
        }
        fn cpu_span(&mut self, span: &sched::CpuSpan, _: &sched::SchedState) {
            self.1 += &format!("{span:?}\n");
        }
        fn finish(mut self, _: Ts, state: &sched::SchedState) -> All {
            self.1 += &format!("{:?}", state.diagnostics());
            self
        }
    }
    let events = trace.events().expect("a clock");
    let All(events, figures) =
        Pass::over(events).window(window).run(|| All(Vec::new(), String::new())).expect("a pass").output;
    (figures, events)
}

/// The fixtures are of few layouts: byte orders, word sizes, page sizes and compressions are written by different code.
#[test]
fn every_kind_of_file_can_be_cut() {
    let folder = scratch("cut-kinds");
    let plain = TraceBuilder { page_size: 1024, chunk_pages: 2, ..TraceBuilder::default() };
    let kinds = [
        TraceBuilder { version: 6, ..plain.clone() },
        TraceBuilder { version: 6, order: ByteOrder::Big, kernel_long: 4, ..plain.clone() },
        TraceBuilder { compression: Compression::Zstd, compress_sections: true, ..plain.clone() },
        TraceBuilder { compression: Compression::Zlib, order: ByteOrder::Big, ..plain.clone() },
        TraceBuilder { age: testkit::Age::Dynamic, kernel_long: 4, ..plain },
    ];
    let mut kept = 0;
    for (seed, builder) in (0..40).zip(kinds.iter().cycle()) {
        let run = Simulation::any(seed, 1 + (seed % 6) as u32, 1500);
        let lossy = run.events.iter().enumerate().flat_map(|(nth, event)| {
            let count = Some(sched::LostCount::of(5)).filter(|_| nth % 2 == 0);
            let lost = SchedEvent { kind: EventKind::Lost { count }, pid: Pid::IDLE, ..*event };
            [Some(lost).filter(|_| seed % 3 == 0 && nth % 400 == 399), Some(*event)].into_iter().flatten()
        });
        let path = folder.join("whole.dat");
        std::fs::write(&path, builder.clone().events(&lossy.collect::<Vec<_>>()).build()).expect("written");
        let trace = Trace::open(&path, Options::default()).expect("a trace");
        let Some((options, from, to)) = window(&trace, &mut Rng::new(seed)) else { panic!("{seed}") };
        let part = cut(&folder, &path, "part.dat", &options);
        let (start, end) = trace.extent().expect("events");
        // The state at the start has no place in a file, so it is asked for its spans.
        let asked = sched::Window { from: Some(from).filter(|f| *f > start), to: Some(to).filter(|to| *to < end) };
        let (whole, part) = (figures(&path, asked), figures(&part, sched::Window::default()));
        assert_eq!(whole.1, part.1, "seed {seed}: the events");
        assert!(whole.0 == part.0, "seed {seed}, {options:?}:\n{}\n{}", whole.0, part.0);
        kept += part.1.len();
    }
    assert!(kept > 2000, "{kept} events");
}

/// Returns the findings of `info` on a file: its losses, and how it is trusted.
fn losses(folder: &Path, file: &Path) -> (u64, u64) {
    let ran = schedviz_in(folder, &["info", file.to_str().expect("a name"), "--json", "-q"]).success();
    let info: Value = serde_json::from_slice(&ran.stdout).expect("JSON");
    let number = |name: &str| info["lost"][name].as_u64().expect("a number");
    (number("gaps"), number("unmarked"))
}

#[test]
fn a_part_is_as_lossy_as_its_window() {
    let folder = scratch("cut-losses");
    let run = Simulation::run(1, 2, 3000);
    let statistics = |cpu: u32, events: u64, overrun: u64, dropped: u64| {
        let text = format!(
            "CPU: {cpu}\nentries: {events}\noverrun: {overrun}\ncommit overrun: 0\ndropped events: {dropped}\nread events: 0\n\0"
        );
        (2, text.into_bytes())
    };
    let number = |cpu: u32| run.events.iter().filter(|event| event.cpu.0 == cpu).count() as u64;
    let (first, last) = (run.events[0].ts, run.events[run.events.len() - 1].ts);
    let half = last.since(first).0 / 2;
    let middle = run.events.iter().position(|event| event.ts > Ts(first.0 + half as i64)).expect("an event");
    let mut lossy = run.events.clone();
    lossy.insert(
        middle,
        SchedEvent {
            kind: EventKind::Lost { count: Some(sched::LostCount::of(7)) },
            pid: Pid::IDLE,
            ..run.events[middle]
        },
    );
    let cpu = run.events[middle].cpu.0;
    let builder = |options| TraceBuilder { page_size: 1024, options, ..TraceBuilder::default() };
    let cases = [
        // Nothing was lost, in the whole or anywhere.
        (vec![statistics(0, number(0), 0, 0), statistics(1, number(1), 0, 0)], &run.events, [(0, 0), (0, 0)]),
        // A marked loss is in the window that has it alone.
        (vec![statistics(cpu, number(cpu), 7, 0)], &lossy, [(0, 0), (1, 0)]),
        // Losses at no known place may be anywhere.
        (vec![statistics(0, number(0) + 3, 0, 2)], &run.events, [(0, 5), (0, 5)]),
    ];
    for (version, (options, events, expected)) in [7, 6, 7].into_iter().zip(cases) {
        let path = folder.join("whole.dat");
        let file = TraceBuilder { version, ..builder(options) }.events(events).build();
        std::fs::write(&path, file).expect("written");
        let early = ["--max".to_owned(), format!("{}ns", half - 1_000_000)];
        let late = ["--min".to_owned(), format!("{}ns", half - 1_000_000)];
        for (window, expected) in [early, late].iter().zip(expected) {
            let part = cut(&folder, &path, "part.dat", window);
            assert_eq!(losses(&folder, &part), expected, "version {version}, {window:?}");
        }
    }
}

/// The bytes of a file in which a name could be: with compressed chunks decompressed.
pub(crate) fn readable(file: &[u8]) -> Vec<u8> {
    const FRAME: [u8; 4] = 0xfd2f_b528u32.to_le_bytes();
    let mut all = file.to_vec();
    for at in (0..file.len().saturating_sub(4)).filter(|at| file[*at..].starts_with(&FRAME)) {
        let mut decoder = zstd::Decoder::new(&file[at..]).expect("a frame").single_frame();
        let mut frame = Vec::new();
        if std::io::Read::read_to_end(&mut decoder, &mut frame).is_ok() {
            all.extend(frame);
        }
    }
    all
}

fn has(bytes: &[u8], name: &[u8]) -> bool {
    bytes.windows(name.len()).any(|window| window == name)
}

/// The bytes of the parts are searched for each name that the recordings have, wherever a writer may have left one.
#[test]
fn an_anonymous_part_has_no_names() {
    let folder = scratch("cut-anonymous");
    let mut looked_for = 0;
    for name in
        ["hackbench.dat", "hackbench-v6.dat", "hackbench-7.2.dat", "marker.dat", "instance.dat", "s390x-6.1.dat"]
    {
        let path = fixture(name);
        let trace = Trace::open(&path, Options::default()).expect("a recording");
        let mut names: BTreeSet<Comm> = trace.saved_names().values().copied().collect();
        for event in crate::support::events(&trace) {
            match event.kind {
                EventKind::Switch { prev, next, .. } => names.extend([prev.comm, next.comm]),
                EventKind::Exec { program, .. } => drop(names.insert(program)),
                EventKind::Fork { child_comm, .. } => drop(names.insert(child_comm)),
                _ => {}
            }
        }
        let kept = [&b"trace-cmd"[..], b"schedviz", b"<...>", b"<idle>"];
        // Shorter ones are in every text.
        names.retain(|comm| {
            comm.as_bytes().len() > 4 && !is_kernel_thread(*comm) && !comm.as_bytes().starts_with(b"swapper/")
        });
        names.retain(|comm| !kept.contains(&comm.as_bytes()));
        let part = cut(&folder, &path, "part.dat", &["--anonymize".to_owned()]);
        let (whole, bytes) =
            (readable(&std::fs::read(&path).expect("read")), readable(&std::fs::read(&part).expect("read")));
        for comm in &names {
            assert!(has(&whole, comm.as_bytes()), "{comm:?} is not in {name}");
            assert!(!has(&bytes, comm.as_bytes()), "{comm:?} is left in the part of {name}");
        }
        looked_for += names.len();
        for command in [&["workcons"][..], &["utilization"], &["running-waiting"], &["migrations"]] {
            let whole = outcome(&folder, &path, command, &[]);
            let part = outcome(&folder, &part, command, &[]);
            assert_eq!(whole.map(without_names), part.map(without_names), "{command:?} on {name}");
        }
    }
    assert!(looked_for > 10, "{looked_for} names");
}

/// A document without its texts.
fn without_names(mut document: Value) -> Value {
    fn clear(value: &mut Value) {
        match value {
            Value::String(text) => text.clear(),
            Value::Array(items) => items.iter_mut().for_each(clear),
            Value::Object(fields) => fields.values_mut().for_each(clear),
            _ => {}
        }
    }
    clear(&mut document);
    document
}

/// A note is made of a note here, for each command.
#[test]
fn a_part_can_be_cut_again() {
    let folder = scratch("cut-again");
    let window = |from: u32, to: u32| ["--min", &format!("{from}ms"), "--max", &format!("{to}ms")].map(str::to_owned);
    let path = fixture("hackbench.dat");
    let part = cut(&folder, &path, "part.dat", &window(200, 700));
    let again = cut(&folder, &part, "again.dat", &window(300, 400));
    for command in COMMANDS {
        let whole = outcome(&folder, &path, command, &window(300, 400));
        assert_eq!(whole, outcome(&folder, &again, command, &[]), "{command:?}");
        assert_eq!(whole, outcome(&folder, &part, command, &window(300, 400)), "{command:?}");
    }
    let outside = schedviz_in(&folder, &["workcons", "part.dat", "--max", "100ms"]);
    assert!(outside.stderr.contains("outside of this part of a trace, which is from 0.2"), "{}", outside.stderr);
}

#[test]
fn some_cpus_are_a_recording_of_these_alone() {
    let folder = scratch("cut-cpus");
    let run = Simulation::run(3, 4, 3000);
    let some: Vec<SchedEvent> = run.events.iter().copied().filter(|event| [0, 2].contains(&event.cpu.0)).collect();
    for (name, events) in [("whole.dat", &run.events), ("some.dat", &some)] {
        std::fs::write(folder.join(name), TraceBuilder::default().events(events).build()).expect("written");
    }
    let part = cut(&folder, &folder.join("whole.dat"), "part.dat", &["--cpus".to_owned(), "0,2".to_owned()]);
    for command in COMMANDS {
        let expected = outcome(&folder, &folder.join("some.dat"), command, &[]);
        assert_eq!(expected, outcome(&folder, &part, command, &[]), "{command:?}");
    }
}

#[test]
fn a_damaged_note_costs_the_past_alone() {
    let folder = scratch("cut-note");
    let path = fixture("hackbench.dat");
    let part = cut(
        &folder,
        &path,
        "part.dat",
        &["--min".to_owned(), "500ms".to_owned(), "--max".to_owned(), "510ms".to_owned()],
    );
    let whole = std::fs::read(&part).expect("read");
    let trace = Trace::from_bytes(whole.clone(), Options::default()).expect("a trace");
    assert_eq!(trace.diagnostics().count(FileIssue::LostPast), 0);
    let other = Options { clock: Some("mono".to_owned()), ..Options::default() };
    let trace = Trace::from_bytes(whole.clone(), other).expect("a trace");
    assert_eq!(trace.diagnostics().count(FileIssue::LostPast), 1, "the note is of another clock");
    let mut rng = Rng::new(1);
    let mut lost = 0;
    for _ in 0..200 {
        let mut damaged = whole.clone();
        for _ in 0..1 + rng.below(20) {
            let place = rng.below(damaged.len());
            damaged[place] = rng.below(256) as u8;
        }
        if let Ok(trace) = Trace::from_bytes(damaged, Options { threads: 1, ..Options::default() }) {
            lost += trace.diagnostics().count(FileIssue::LostPast);
            if let Ok(events) = trace.events() {
                let _ = Pass::over(events).run(sched::analysis::RunTime::default);
            }
        }
    }
    assert!(lost > 0, "no note was hit");
}

#[test]
fn what_cannot_be_cut_is_refused() {
    let folder = scratch("cut-refused");
    std::fs::copy(fixture("hackbench.dat"), folder.join("whole.dat")).expect("copied");
    let refused = |arguments: &[&str], why: &str| {
        let ran = schedviz_in(&folder, &[&["cut"], arguments].concat());
        assert!(ran.code == Some(1) && ran.stderr.contains(why), "{arguments:?}: {}", ran.stderr);
    };
    refused(&["whole.dat", "-o", "whole.dat"], "is an input of this command");
    refused(&["whole.dat", "-o", "/dev/full"], "written in parts");
    refused(&["whole.dat", "--min", "100", "-o", "part.dat"], "outside of the trace");
    let part = cut(&folder, &folder.join("whole.dat"), "named.dat", &["--max".to_owned(), "10ms".to_owned()]);
    refused(&[part.to_str().expect("a name"), "--anonymize", "-o", "part.dat"], "has the names of tasks");
    refused(&["whole.dat", "-o", "part.data"], "no recording is written as .data");
    refused(&["whole.dat", "-o", "part.txt", "--anonymize"], "--anonymize is of a trace.dat");
    assert!(!folder.join("part.dat").exists());
}

#[test]
fn the_symbols_of_the_kernel_can_be_left_out() {
    let folder = scratch("cut-symbols");
    let symbols: String = (1..20_000).map(|n| format!("ffffffff81{n:06x} t function_{n}\n")).collect();
    for version in [6, 7] {
        let builder = testkit::TraceBuilder { version, kallsyms: symbols.clone(), ..testkit::TraceBuilder::default() };
        let bytes = builder.events(&testkit::Simulation::run(3, 4, 2000).events).build();
        std::fs::write(folder.join("whole.dat"), bytes).expect("written");
        let with = cut(&folder, Path::new("whole.dat"), "with.dat", &[]);
        let without = cut(&folder, Path::new("whole.dat"), "without.dat", &["--no-symbols".to_owned()]);
        let [with, without] = [with, without].map(|path| {
            let size = std::fs::metadata(&path).expect("a part").len();
            let trace = Trace::open(&path, Options::default()).expect("a trace");
            assert!(trace.diagnostics().is_empty(), "{:?}", trace.diagnostics());
            (crate::support::events(&trace), trace.texts(), size)
        });
        assert_eq!((with.0, &with.1.printk, &with.1.formats), (without.0, &without.1.printk, &without.1.formats));
        assert_eq!((with.1.kallsyms.as_slice(), without.1.kallsyms.len()), (symbols.as_bytes(), 0));
        // Pages begin at multiples of 4,096 bytes.
        assert!(with.2 - without.2 + 4096 >= symbols.len() as u64, "version {version}");
    }
}

#[test]
fn the_machine_file_goes_with_the_part() {
    let folder = scratch("cut-machine");
    std::fs::copy(fixture("hackbench.dat"), folder.join("whole.dat")).expect("copied");
    let machine = r#"{"schema":"schedviz/machine/1","kernel":{"command_line":"secret=1"},"cpus":{},"scheduler":{}}"#;
    std::fs::write(folder.join("whole.machine.json"), machine).expect("written");
    cut(&folder, Path::new("whole.dat"), "part.dat", &[]);
    assert_eq!(std::fs::read_to_string(folder.join("part.machine.json")).expect("copied"), machine);
    cut(&folder, Path::new("whole.dat"), "anonymous.dat", &["--anonymize".to_owned()]);
    let copied = std::fs::read_to_string(folder.join("anonymous.machine.json")).expect("copied");
    assert!(copied.contains("schedviz/machine/1") && !copied.contains("secret"), "{copied}");
}

/// Kinds of events that occur before a part alone are not missing: their effect is in its note.
#[test]
fn what_precedes_a_part_is_not_missing() {
    let (folder, whole) = (scratch("cut-info"), fixture("hackbench.dat"));
    let part = cut(&folder, &whole, "part.dat", &["--min".to_owned(), "0.6".to_owned()]);
    let info = |trace: &Path| -> Value {
        let ran = schedviz_in(&folder, &["info", "--json", "-q", trace.to_str().expect("a path")]).success();
        serde_json::from_slice(&ran.stdout).expect("JSON")
    };
    let (of_whole, of_part) = (info(&whole), info(&part));
    let kinds = |info: &Value| info["events"].as_array().expect("events").len();
    assert!(kinds(&of_part) < kinds(&of_whole), "the part has fewer kinds of events");
    assert_eq!(of_part["missing"], of_whole["missing"]);
}

/// Members with equal shares are in the order of their PIDs, which a part without names keeps.
#[test]
fn an_anonymous_part_has_the_same_members_in_the_same_order() {
    let (folder, mut ties) = (scratch("cut-starved"), 0);
    for name in ["hackbench.dat", "spmd-plus1.dat", "hackbench-7.2.dat"] {
        let whole = fixture(name);
        let part = cut(&folder, &whole, "part.dat", &["--anonymize".to_owned()]);
        let command = ["fairness", "--interval", "2ms", "--worst", "20"];
        let shares = |trace: &Path| outcome(&folder, trace, &command, &[]).expect("a document");
        // A name is followed by the PID.
        let pid = |name: &Value| name.as_str().map(|name| name.rsplit(' ').next().expect("a word").to_owned());
        let pids = |document: &Value| {
            let of = |list: &str, field: &str| {
                document[list].as_array().expect(list).iter().map(|row| pid(&row[field])).collect::<Vec<_>>()
            };
            (of("members", "name"), of("intervals", "starved"))
        };
        let (of_whole, of_part) = (shares(&whole), shares(&part));
        assert_eq!(pids(&of_whole), pids(&of_part), "{name}");
        assert_eq!(without_names(of_whole.clone()), without_names(of_part), "{name}");
        let nothing = |row: &&Value| row["starved_got_percent"] == 0.0 && row["members"].as_u64() > Some(1);
        ties += of_whole["intervals"].as_array().expect("intervals").iter().filter(nothing).count();
    }
    assert!(ties > 5, "{ties} intervals in which a task got nothing");
}

#[test]
fn a_part_has_the_idle_states_that_its_window_has() {
    let (folder, whole) = (scratch("cut-idle-states"), fixture("every-7.2.dat"));
    let window = ["--min", "100ms"].map(str::to_owned);
    let part = cut(&folder, &whole, "part.dat", &window);
    let [of_whole, of_part] = [(&whole, &window[..]), (&part, &[][..])]
        .map(|(trace, window)| outcome(&folder, trace, &["utilization"], window).expect("a document"));
    assert_eq!(difference("", &of_whole, &of_part), None);
    let states = of_part["underload"]["wakeups"]["idle_states"].as_array().expect("idle states");
    assert!(states.iter().all(|row| row["state"] != "unknown"), "{states:?}");
}

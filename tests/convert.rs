//! `schedviz convert`: recordings of one format written in another give the same answers, and other programs read them.

use crate::cut::{COMMANDS, cut, difference, outcome};
use crate::support::{events, fixture, schedviz, schedviz_in, scratch, seed};
use crate::trace_cmd::report;
use parse::{Options, Trace};
use rayon::prelude::*;
use serde_json::Value;
use std::path::{Path, PathBuf};
use testkit::{PerfettoBuilder, PerfettoForm, Simulation};

/// A recording as it is written in another format.
fn convert(folder: &Path, from: &Path, to: &str, more: &[&str]) -> PathBuf {
    let arguments = [&["convert", from.to_str().expect("a name"), "-o", to, "-q"], more].concat();
    schedviz_in(folder, &arguments).success();
    folder.join(to)
}

/// Recordings of formats other than trace.dat, in a folder.
fn foreign(folder: &Path) -> Vec<PathBuf> {
    let put = |name: &str, bytes: Vec<u8>| {
        std::fs::write(folder.join(name), bytes).expect("a file");
        folder.join(name)
    };
    let simulation = Simulation::run(7, 3, 3000);
    let processes = vec![(41, vec![(41, "main"), (42, "worker")]), (50, vec![])];
    let compact =
        PerfettoBuilder { lost: vec![(1, 3)], dropped: 4, processes, compressed: 3, ..PerfettoBuilder::default() };
    let generic = PerfettoBuilder { form: PerfettoForm::Described, ..PerfettoBuilder::default() };
    let exported = folder.join("exported.pftrace");
    let dat = fixture("hackbench-7.2.dat");
    convert(folder, &dat, "exported.pftrace", &[]);
    let text = convert(folder, &fixture("spmd-plus1.dat"), "text.txt", &[]);
    let rounded = "  <idle>-0 [001] 12.000350: sched_waking: comm=cat pid=7 prio=120 target_cpu=001\n\
                   \x20 <idle>-0 [001] 12.000350: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 \
                   prev_state=R ==> next_comm=cat next_pid=7 next_prio=120\n nonsense\n\
                   \x20 cat-7 [001] 12.000400: sched_switch: prev_comm=cat prev_pid=7 prev_prio=120 prev_state=S ==> \
                   next_comm=swapper/1 next_pid=0 next_prio=120\n";
    vec![
        put("compact.pftrace", compact.build(&simulation.events)),
        put("generic.pftrace", generic.build(&simulation.events)),
        convert(folder, &put("again.pftrace", compact.build(&simulation.events)), "compact.txt", &[]),
        exported,
        text,
        put("rounded.txt", rounded.into()),
        fixture("perf-z.data"),
        fixture("perf-stacks.data"),
    ]
}

/// Each command has its turn on some of the recordings: all of it, a part, and a part of a part.
#[test]
fn a_trace_dat_of_any_recording_gives_what_the_recording_gives() {
    let folder = scratch("convert");
    const TEST: &str = "convert::a_trace_dat_of_any_recording_gives_what_the_recording_gives";
    let window = ["--min", "200us", "--max", "300ms"].map(str::to_owned);
    let failed: Vec<String> = foreign(&folder)
        .into_par_iter()
        .enumerate()
        .flat_map(|(nth, path)| {
            let seed = seed(TEST, &path);
            let whole = convert(&folder, &path, &format!("whole-{nth}.dat"), &[]);
            let mut pairs = vec![(whole.clone(), Vec::new())];
            if !path.ends_with("rounded.txt") {
                let from = if seed.is_multiple_of(2) { &path } else { &whole };
                pairs.push((cut(&folder, from, &format!("part-{nth}.dat"), &window), window.to_vec()));
            }
            let turns = COMMANDS.iter().zip(seed % 4..).filter(|(_, turn)| turn.is_multiple_of(4));
            // Call chains of samples are left out.
            let is_perf = path.extension().is_some_and(|ending| ending == "data");
            let is_kept = |command: &[&str]| !is_perf || !command.iter().any(|word| ["stack", "both"].contains(word));
            let failed = turns.filter(|(command, _)| is_kept(command)).flat_map(|(command, _)| {
                let differs = pairs.iter().map(|(other, window)| {
                    let (a, b) = (outcome(&folder, &path, command, window), outcome(&folder, other, command, window));
                    let told = match (a, b) {
                        (Ok(a), Ok(b)) => difference("", &a, &b),
                        (Err(a), Err(b)) if a == b => None,
                        (a, b) => Some(format!("{a:?}\n{b:?}")),
                    };
                    told.map(|told| format!("{} {command:?} {window:?} {}: {told}", path.display(), other.display()))
                });
                differs.flatten().collect::<Vec<_>>()
            });
            failed.collect::<Vec<_>>()
        })
        .collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// The records are the same, one by one, with the losses between them and what was found in the file.
#[test]
fn records_losses_and_findings_are_kept() {
    let folder = scratch("convert-records");
    for (nth, path) in foreign(&folder).into_iter().enumerate() {
        let of = |path: &Path| {
            let trace = recordings::open(path, Options::default()).expect("a recording");
            let mut records = Vec::new();
            trace.records(&mut |record| {
                let name = record.format().map(|format| format.name.clone());
                records.push((record.ts, record.cpu, record.lost, record.pid(), name, record.printed()));
                std::ops::ControlFlow::Continue(())
            });
            let found = trace.diagnostics().iter().map(|(what, count, place)| (what, count, place.map(str::to_owned)));
            (records, found.collect::<Vec<_>>(), trace.info().clock, trace.recorded())
        };
        for version in ["6", "7"] {
            let dat = convert(&folder, &path, &format!("{nth}-{version}.dat"), &["--dat-version", version]);
            let (expected, found) = (of(&path), of(&dat));
            let differs = expected.0.iter().zip(&found.0).position(|(a, b)| a != b);
            if let Some(at) = differs {
                panic!("{}: {:?}\n{:?}", path.display(), expected.0[at], found.0[at]);
            }
            assert_eq!(expected.0.len(), found.0.len(), "{}", path.display());
            assert_eq!((&expected.1, &expected.2, expected.3), (&found.1, &found.2, found.3), "{}", path.display());
            assert_eq!(
                Trace::open(&dat, Options::default()).expect("a trace").info().version.number.to_string(),
                version
            );
        }
    }
}

/// A task that is not known stays unknown, as text and as a trace for Perfetto, and so does the context.
#[test]
fn what_is_unknown_stays_unknown() {
    let folder = scratch("convert-unknown");
    let simulation = Simulation::run(7, 3, 2000);
    let plain = PerfettoBuilder::default().build(&simulation.events);
    std::fs::write(folder.join("compact.pftrace"), plain).expect("a file");
    let unknown = |path: &Path| {
        let trace = recordings::open(path, Options::default()).expect("a recording");
        let mut unknown = 0u64;
        trace.records(&mut |record| {
            unknown += u64::from(record.pid() == sched::Pid::UNKNOWN);
            std::ops::ControlFlow::Continue(())
        });
        (unknown, trace.diagnostics().count(parse::FileIssue::NoContext))
    };
    let expected = unknown(&folder.join("compact.pftrace"));
    assert!(expected.0 > 0, "{expected:?}");
    let line = "  cat-7 [001] 12.000350123: sched_waking: comm=cat pid=7 prio=120 target_cpu=001\n";
    std::fs::write(folder.join("without.txt"), line).expect("a file");
    assert_eq!(unknown(&folder.join("without.txt")), (0, 1));
    for name in ["a.txt", "a.pftrace", "a.dat"] {
        for from in ["compact.pftrace", "without.txt"] {
            let other = convert(&folder, &folder.join(from), name, &[]);
            assert_eq!(unknown(&other), unknown(&folder.join(from)), "{from} {name}");
        }
    }
}

/// Both versions of a trace.dat have all that trace-cmd prints, whatever the machine: big-endian, with 32 bits, instances.
#[test]
fn another_version_of_a_trace_dat_prints_the_same() {
    let folder = scratch("convert-version");
    for (nth, name) in
        ["hackbench-7.2.dat", "hackbench-v6.dat", "s390x-6.1.dat", "armhf-6.1.dat", "instance.dat", "clock-mono.dat"]
            .into_iter()
            .enumerate()
    {
        let whole = fixture(name);
        let Some(expected) = report(&whole, &["-t"]) else { return };
        for (to, back) in [("6", "7"), ("7", "6")] {
            let other = convert(&folder, &whole, &format!("{nth}-{to}.dat"), &["--dat-version", to]);
            let again = convert(&folder, &other, &format!("{nth}-{to}-{back}.dat"), &["--dat-version", back]);
            for path in [&other, &again] {
                let found = report(path, &["-t"]).expect("trace-cmd");
                let differs = expected.lines().zip(found.lines()).find(|(a, b)| a != b);
                assert_eq!((differs, expected.lines().count()), (None, found.lines().count()), "{name} {to}");
                let events = |path: &Path| events(&Trace::open(path, Options::default()).expect("a trace"));
                assert!(events(path) == events(&whole), "{name} {to}");
            }
        }
    }
}

/// What trace-cmd prints of a recording that has become a text, and of that a trace.dat once more, is what it prints of the recording itself,
/// for the events whose fields are known.
#[test]
fn trace_cmd_prints_a_text_that_became_a_trace_dat_as_the_recording() {
    let folder = scratch("convert-text");
    for name in ["hackbench-7.2.dat", "spmd-plus1.dat"] {
        let text = convert(&folder, &fixture(name), "text.txt", &[]);
        let dat = convert(&folder, &text, "text.dat", &[]);
        let lines = |path: &Path| -> Option<Vec<String>> {
            let text = report(path, &["-t", "-N"])?;
            let known =
                ["sched_switch:", "sched_wak", "sched_migrate_task:", "sched_process_fork:", "sched_process_exit:"];
            // The name in front is the one that was saved: a recorder saves few.
            let line = |line: &str| line.split_once(" [").map(|(task, rest)| (task.to_owned(), rest.to_owned()));
            let lines = text.lines().filter(|line| known.iter().any(|known| line.contains(&format!(" {known}"))));
            let without_task = |(task, rest): (String, String)| {
                let pid = task.trim_end().rsplit('-').next().unwrap_or_default().to_owned();
                // Known events of a text have the fields that the analyses use.
                let rest = rest.split(" group_dead=").next().unwrap_or_default().to_owned();
                format!("{pid} {rest}")
            };
            Some(lines.filter_map(line).map(without_task).collect())
        };
        let Some(expected) = lines(&fixture(name)) else { return };
        let found = lines(&dat).expect("trace-cmd");
        assert!(expected.len() > 1000, "{}", expected.len());
        let differs = expected.iter().zip(&found).find(|(a, b)| a != b);
        assert_eq!((differs, expected.len()), (None, found.len()), "{name}");
    }
}

/// Statistics of the scheduler have units behind their numbers, and those of older kernels a field more: lines of Linux 6.1.
#[test]
fn statistics_in_a_text_keep_their_units() {
    let folder = scratch("convert-statistics");
    let text = "\
       trace-cmd-485   [001]    47.051896059: sched_stat_runtime:   comm=trace-cmd pid=485 runtime=14306954 [ns] vruntime=9124945144 [ns]
       trace-cmd-485   [001]    47.052108158: sched_stat_runtime:   comm=trace-cmd pid=485 runtime=177817 [ns]
       trace-cmd-485   [001]    47.052439436: sched_stat_blocked:   comm=rcu_preempt pid=16 delay=3869864 [ns]
";
    std::fs::write(folder.join("a.txt"), text).expect("a file");
    let dat = convert(&folder, Path::new("a.txt"), "a.dat", &[]);
    let again = std::fs::read_to_string(convert(&folder, &dat, "b.txt", &[])).expect("a text");
    // The name in front of a line is that of a switch, of which the text has none.
    let without_task = |text: &str| -> Vec<String> {
        text.lines().filter_map(|line| Some(line.split_once("-485 ")?.1.to_owned())).collect()
    };
    assert_eq!(without_task(&again), without_task(text));
    assert_eq!(without_task(text).len(), 3);
}

/// A Perfetto trace as trace.dat: trace-cmd shows each event with the name of its task, in the kernel's words, and where events were lost.
#[test]
fn trace_cmd_reads_a_perfetto_trace_as_trace_dat() {
    let folder = scratch("convert-perfetto");
    let simulation = Simulation::run(7, 3, 2000);
    let builder = PerfettoBuilder { lost: vec![(1, 3)], ..PerfettoBuilder::default() };
    std::fs::write(folder.join("a.pftrace"), builder.build(&simulation.events)).expect("a file");
    let dat = convert(&folder, Path::new("a.pftrace"), "a.dat", &[]);
    let Some(text) = report(&dat, &["-N"]) else { return };
    let trace = recordings::open(&folder.join("a.pftrace"), Options::default()).expect("a trace");
    let mut lines = text.lines().filter(|line| !line.starts_with("cpus="));
    let mut missing = 0;
    trace.records(&mut |record| {
        let words = record.printed();
        if record.lost.is_some() {
            let line = lines.next().unwrap_or_default();
            assert!(line.starts_with(&format!("CPU:{} [", record.cpu)) && line.contains("EVENTS DROPPED"), "{line}");
            missing += 1;
        }
        let line = lines.next().unwrap_or_default();
        let name = record.format().map(|format| format.name.clone()).unwrap_or_default();
        // trace-cmd and schedviz list print switches and wakeups in words of their own.
        let is_known = !name.starts_with("sched_switch") && !name.starts_with("sched_wakeup");
        assert!(line.contains(&format!(" {name}: ")), "{line}\n{name}: {words}");
        assert!(!is_known || line.ends_with(&words), "{line}\n{words}");
        assert!(line.contains(&format!("-{}", record.pid().0)), "{line}");
        std::ops::ControlFlow::Continue(())
    });
    assert_eq!(missing, 1);
    assert_eq!(lines.next(), None);
    // Compact wakings before a CPU's first switch do not say who wakes.
    let nameless = text.lines().filter(|line| line.trim_start().starts_with("<...>-"));
    assert!(nameless.clone().all(|line| line.contains("<...>--")), "{:?}", nameless.collect::<Vec<_>>());
    assert!(text.contains(" comm=") && text.contains("target_cpu=00"), "the kernel's words");
}

/// An event may be longer than a page of the kernel: the pages are larger then.
#[test]
fn long_events_have_larger_pages() {
    let folder = scratch("convert-long");
    let line = |at: u32, text: &str| format!("  cat-7 [001] d..2. 12.000{at}: tracing_mark_write: {text}\n");
    let text = [line(350, "short"), line(360, &"ab".repeat(2500)), line(370, "end")].concat();
    std::fs::write(folder.join("long.txt"), text).expect("a file");
    let dat = convert(&folder, Path::new("long.txt"), "long.dat", &[]);
    let info = Trace::open(&dat, Options::default()).expect("a trace").info();
    assert_eq!(info.buffers[0].page_size, 8192);
    let printed = schedviz(&["list", dat.to_str().expect("a path"), "-q"]).success().text();
    // A text in a record has at most 4,096 bytes.
    let expected = "ab".repeat(2048);
    assert!(printed.contains(&format!("text={expected}\n")) && printed.contains("text=end"), "{printed}");
    let Some(report) = report(&dat, &[]) else { return };
    assert!(report.contains(&expected) && report.contains("text=end"), "{report}");
}

/// `info` says how to convert what is no trace.dat, and what the converted file was.
#[test]
fn info_names_the_command() {
    let folder = scratch("convert-info");
    std::fs::copy(fixture("perf-z.data"), folder.join("a.data")).expect("copied");
    let text = schedviz_in(&folder, &["info", "a.data", "-q"]).success().text();
    assert!(text.contains("schedviz convert a.data -o trace.dat"), "{text}");
    let dat = convert(&folder, Path::new("a.data"), "a.dat", &[]);
    let text = schedviz(&["info", dat.to_str().expect("a path"), "-q"]).success().text();
    assert!(!text.contains("schedviz convert") && text.contains("recorder   perf "), "{text}");
    let help = schedviz(&["convert", "--help"]).success().text();
    assert!(help.contains("schedviz convert trace.pftrace -o trace.dat"), "{help}");
    assert!(schedviz(&["--help"]).success().text().contains("cut, convert"));
}

/// `info` of each format: what the file does not have is unknown, and not zero or a default of trace-cmd.
#[test]
fn info_says_what_is_unknown() {
    let folder = scratch("convert-unknown-info");
    let info = |name: &str, bytes: &[u8]| {
        std::fs::write(folder.join(name), bytes).expect("a file");
        let text = schedviz_in(&folder, &["info", name, "-q"]).success().text();
        let json = schedviz_in(&folder, &["info", name, "-q", "--json"]).success().stdout;
        (text, serde_json::from_slice::<Value>(&json).expect("JSON"))
    };
    let line = "  cat-7 [001] 12.000350: sched_waking: comm=cat pid=7 prio=120 target_cpu=001\n";
    let (text, json) = info("a.txt", line.as_bytes());
    assert!(text.contains("\nCPUs       1 with events; the file does not say how many the machine has\n"), "{text}");
    assert!(text.contains("\nclock      unknown, microseconds\n"), "{text}");
    assert!(json["cpus"]["recorded"].is_null() && json["cpus"]["observed"] == 1, "{json}");
    let (text, _) = info("b.txt", line.replace("000350", "000350123").as_bytes());
    assert!(text.contains("\nclock      unknown, nanoseconds\n") && text.contains("\nlost       nothing\n"), "{text}");
    // perf script prints losses only where it is asked to.
    let by_perf = line.replace("cat-7 ", "cat 7 ").replace(": sched", ": sched:sched");
    let (text, _) = info("c.txt", by_perf.as_bytes());
    assert!(text.contains("\nlost       unknown (below)\n") && text.contains("--show-lost-events"), "{text}");
    // Perfetto counts on each CPU of the machine.
    let simulation = Simulation::run(7, 3, 2000);
    let (text, json) = info("a.pftrace", &PerfettoBuilder::default().build(&simulation.events));
    assert!(text.contains("\nCPUs       3 recorded, 3 with events\n") && json["cpus"]["recorded"] == 3, "{text}");
    let page = format!("<!DOCTYPE html>\n<script class=\"trace-data\" type=\"application/text\">\n{line}</script>\n");
    let (text, _) = info("a.html", page.as_bytes());
    assert!(text.contains("\nrecorder   unknown, page of systrace\n"), "{text}");
}

/// The numbers and texts of a record by the names of their fields.
type Fields = std::collections::BTreeMap<String, String>;

/// The records of a recording: time, CPU, PID, event, flags, fields that are one number or a text.
fn records(path: &Path) -> Vec<(sched::Ts, u32, i32, String, i64, Fields)> {
    let trace = recordings::open(path, Options::default()).expect("a recording");
    let mut records = Vec::new();
    trace.records(&mut |record| {
        let Some(format) = record.format() else { return std::ops::ControlFlow::Continue(()) };
        let value = |field: &parse::Field| match field.shape {
            _ if field.is_text() => {
                let bytes = record.bytes(&field.name).unwrap_or_default();
                Some(sched::event::escape(bytes).into_owned())
            }
            parse::FieldShape::Scalar | parse::FieldShape::Pointer => record.number(&field.name).map(|n| n.to_string()),
            _ => None,
        };
        let mut fields: Fields =
            format.own_fields().filter_map(|field| Some((field.name.to_string(), value(field)?))).collect();
        if let Some(text) = record.text() {
            fields.insert("buf".to_owned(), sched::event::escape(text.as_bytes()).into_owned());
        }
        let name = format!("{}:{}", format.system, format.name).replace("ftrace:bprint", "ftrace:print");
        let flags = record.number("common_flags").unwrap_or(0);
        let name = name.replace("ftrace:bputs", "ftrace:print");
        records.push((record.ts, record.cpu.0, record.pid().0, name, flags, fields));
        std::ops::ControlFlow::Continue(())
    });
    records
}

/// Every event of a recording is in the trace for Perfetto: with its time, CPU, task and context, and its fields, as far as Perfetto has them.
#[test]
fn a_trace_for_perfetto_has_all_events_of_the_recording() {
    let folder = scratch("convert-for-perfetto");
    for name in ["every-7.2.dat", "hackbench-7.2.dat", "marker.dat", "s390x-6.1.dat", "hackbench-v6.dat"] {
        let written = convert(&folder, &fixture(name), &format!("{name}.pftrace"), &[]);
        let (expected, found) = (records(&fixture(name)), records(&written));
        // What runs when the window begins is shown by switches from the idle task that are not in the recording.
        let start = expected[0].0;
        let busy = found.len() - expected.len();
        let is_added = |record: &(sched::Ts, u32, i32, String, i64, Fields)| {
            record.0 == start && record.3 == "sched:sched_switch" && record.2 == 0 && record.4 == 0
        };
        let mut left: Vec<_> = found.iter().collect();
        let added: Vec<usize> = (0..left.len()).filter(|at| is_added(left[*at])).take(busy).collect();
        assert_eq!(added.len(), busy, "{name}");
        for at in added.into_iter().rev() {
            left.remove(at);
        }
        let (mut fields, mut kept) = (0usize, 0usize);
        // At one time the events of one CPU have their order.
        let key = |record: &&(sched::Ts, u32, i32, String, i64, Fields)| (record.0, record.1);
        let mut expected: Vec<_> = expected.iter().collect();
        expected.sort_by_key(key);
        left.sort_by_key(key);
        for (a, b) in expected.iter().zip(&left) {
            let system = if b.3.starts_with("generic:") { b.3.split(':').nth(1) } else { None };
            let event = system.map_or_else(|| a.3 == b.3, |event| a.3.ends_with(event));
            assert!(event && (a.0, a.1, a.2, a.4) == (b.0, b.1, b.2, b.4), "{name}: {a:?}\n{b:?}");
            for (field, value) in &a.5 {
                fields += 1;
                let Some(other) = b.5.get(field) else { continue };
                kept += 1;
                // A number without a sign of four bytes is read with one, and the other way round, where Perfetto has it so.
                let number = |text: &str| text.parse::<i64>().ok().map(|number| number as u32);
                let same = value == other || number(value).is_some() && number(value) == number(other);
                assert!(same || value.len() > 4000, "{name} {} {field}: {value} {other}", a.3);
            }
        }
        assert!(kept * 10 >= fields * 8, "{name}: {kept} of {fields} fields");
    }
}

/// A recording that became a trace for Perfetto, and that a trace.dat again, gives the same numbers. Runs that began before the recording have
/// a beginning then, since a switch is added for each: what depends on their lengths is not compared.
#[test]
fn there_and_back_the_numbers_are_the_same() {
    fn forget(json: &mut Value, keys: &[&str]) {
        match json {
            Value::Object(object) => {
                object.retain(|key, _| !keys.contains(&key.as_str()));
                object.values_mut().for_each(|value| forget(value, keys));
            }
            Value::Array(all) => all.iter_mut().for_each(|value| forget(value, keys)),
            _ => {}
        }
    }
    let folder = scratch("convert-back");
    let whole = fixture("hackbench-7.2.dat");
    let perfetto = convert(&folder, &whole, "there.pftrace", &[]);
    let back = convert(&folder, &perfetto, "back.dat", &[]);
    for command in ["workcons", "why", "latency", "path", "utilization", "migrations", "wakers", "neighbours"] {
        let of = |path: &Path| {
            let mut document = outcome(&folder, path, &[command], &[]).expect("a document");
            if command == "latency" {
                let measures = document["measures"].as_array().expect("measures").iter();
                let of_waits = measures
                    .filter(|measure| !["run", "preempted"].contains(&measure["measure"].as_str().unwrap_or("")));
                document = of_waits.cloned().collect();
            }
            // The clock is that of Perfetto's recorder, and notes on the reading are of the file.
            forget(&mut document, &["clock", "trust", "machine"]);
            document
        };
        assert_eq!(difference("", &of(&whole), &of(&back)), None, "{command}");
    }
}

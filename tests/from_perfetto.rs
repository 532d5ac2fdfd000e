//! Perfetto traces as recordings: those of other tools by hand of the format, our own export read back, and Perfetto's trace processor
//! asked about the same file.

use crate::perfetto::query;
use crate::support::{events, fixture, schedviz, scratch};
use parse::{Options, Source, Trace};
use sched::{Comm, Cpu, EventKind, Pid, SchedEvent, Ts};
use std::collections::BTreeMap;
use testkit::{PerfettoBuilder, PerfettoForm, Simulation};

fn read(bytes: Vec<u8>) -> Trace {
    recordings::of_source(Source::Memory(bytes), Options::default()).expect("a Perfetto trace")
}

/// What an event of these files keeps of itself.
fn kept(event: &SchedEvent) -> bool {
    use EventKind::{Exec, Exit, Fork, Frequency, Migrate, Switch, Wakeup, WakeupNew, Waking};
    matches!(
        event.kind,
        Switch { .. }
            | Waking { .. }
            | Wakeup { .. }
            | WakeupNew { .. }
            | Migrate { .. }
            | Fork { .. }
            | Exec { .. }
            | Exit { .. }
            | Frequency { .. }
    )
}

/// The events of each CPU in their order.
fn by_cpu(events: impl IntoIterator<Item = SchedEvent>) -> BTreeMap<Cpu, Vec<SchedEvent>> {
    let mut cpus: BTreeMap<Cpu, Vec<SchedEvent>> = BTreeMap::new();
    for event in events {
        cpus.entry(event.cpu).or_default().push(event);
    }
    cpus
}

/// Every form of a bundle, in bundles of any length and compressed or not, has the events of the trace.dat.
#[test]
fn every_form_has_the_events_of_the_trace() {
    let trace = Trace::open(&fixture("hackbench.dat"), Options::default()).expect("a fixture");
    let all: Vec<SchedEvent> = events(&trace).into_iter().filter(kept).take(4000).collect();
    let expected = by_cpu(all.iter().copied());
    let forms = [PerfettoForm::Plain, PerfettoForm::Generic, PerfettoForm::Described];
    for (form, bundle, compressed, zstd) in
        forms.into_iter().flat_map(|form| [(form, 64, 0, false), (form, 0, 3, false), (form, 7, 5, true)])
    {
        let builder = PerfettoBuilder { form, bundle, compressed, zstd, ..PerfettoBuilder::default() };
        let trace = read(builder.build(&all));
        let found = by_cpu(events(&trace));
        for (cpu, expected) in &expected {
            assert_eq!(found.get(cpu), Some(expected), "{form:?}, bundles of {bundle}, CPU {cpu}");
        }
        assert_eq!(found.len(), expected.len());
    }
}

/// A compact switch names the next task alone: the previous one is that of the switch before, and the first switch of a CPU only shows
/// who runs from then on.
#[test]
fn compact_switches_name_both_tasks() {
    let trace = Trace::open(&fixture("hackbench.dat"), Options::default()).expect("a fixture");
    let all: Vec<SchedEvent> = events(&trace).into_iter().filter(kept).take(4000).collect();
    let mut seen = std::collections::BTreeSet::new();
    for (bundle, compressed) in [(64, 0), (0, 2)] {
        let builder = PerfettoBuilder { bundle, compressed, ..PerfettoBuilder::default() };
        let found = by_cpu(events(&read(builder.build(&all))));
        for (cpu, expected) in by_cpu(all.iter().copied()) {
            let first = expected.iter().position(|event| matches!(event.kind, EventKind::Switch { .. }));
            let Some(first) = first else { continue };
            let found = &found[&cpu];
            // Another event names the current task as well, if it comes first.
            let is_compact =
                |event: &SchedEvent| matches!(event.kind, EventKind::Switch { .. } | EventKind::Waking { .. });
            let known = expected.iter().position(|event| !is_compact(event)).unwrap_or(usize::MAX).min(first);
            let pid_of = |event: &SchedEvent| match event.kind {
                EventKind::Other { .. } => Some(event.pid),
                _ => None,
            };
            let EventKind::Switch { next, .. } = expected[first].kind else { continue };
            let marks: &[Pid] = if known < first { &[] } else { &[Pid::UNKNOWN, next.pid] };
            assert_eq!(found.iter().filter_map(pid_of).collect::<Vec<_>>(), marks, "CPU {cpu}");
            seen.insert(known < first);
            let mut waiting = found.iter().filter(|event| kept(event));
            for (place, event) in expected.iter().enumerate().filter(|(place, _)| known < first || *place != first) {
                let mut event = *event;
                let found = *waiting.next().unwrap_or_else(|| panic!("CPU {cpu}: {event:?}"));
                // The priority of a task that leaves is that with which it came, and a waking does not say who wakes; before the first
                // switch nothing does.
                if let (EventKind::Switch { prev, .. }, EventKind::Switch { prev: shown, .. }) =
                    (&mut event.kind, &found.kind)
                {
                    assert_eq!(prev.pid, shown.pid);
                    (prev.prio, prev.comm) = (shown.prio, shown.comm);
                    event.flags = 0;
                }
                if place < known && matches!(event.kind, EventKind::Waking { .. }) {
                    event.pid = Pid::UNKNOWN;
                }
                assert_eq!(found, event, "CPU {cpu}");
            }
        }
    }
    assert!(seen.contains(&false), "a CPU that begins with a compact switch");
}

#[test]
fn what_precedes_a_compact_switch_is_unknown_and_no_loss() {
    let simulation = Simulation::run(7, 3, 2000);
    let builder = PerfettoBuilder { lost: vec![(1, 3)], dropped: 4, ..PerfettoBuilder::default() };
    let folder = scratch("perfetto-unknown");
    let ask = |name: &str, bytes: Vec<u8>| -> serde_json::Value {
        let path = folder.join(name);
        std::fs::write(&path, bytes).expect("a file");
        let arguments = ["info", path.to_str().expect("a path"), "--json", "-q"];
        serde_json::from_slice(&schedviz(&arguments).success().stdout).expect("JSON")
    };
    let count = |report: &serde_json::Value, name: &str| {
        let all = report["diagnostics"].as_array().expect("findings");
        all.iter().find(|found| found["kind"] == name).map_or(0, |found| found["count"].as_u64().expect("a count"))
    };
    let whole = PerfettoBuilder { lost: Vec::new(), dropped: 0, ..builder.clone() };
    let report = ask("whole.pftrace", whole.build(&simulation.events));
    assert_eq!(report["format"], "Perfetto");
    assert_eq!(report["kernel"], "6.1.0");
    assert_eq!(report["clock"], "boot");
    assert_eq!(report["recorder"], "Perfetto v99 testkit");
    assert_eq!((count(&report, "events-lost"), count(&report, "events-dropped-unmarked")), (0, 0), "{report}");
    let report = ask("lossy.pftrace", builder.build(&simulation.events));
    assert_eq!((count(&report, "events-lost"), count(&report, "events-dropped-unmarked")), (1, 4), "{report}");
    assert_eq!(count(&report, "switch-prev-mismatch"), 0, "{report}");
    assert_eq!(report["lost"]["per_cpu"][0]["cpu"], 1, "{report}");
}

#[test]
fn processes_and_names_come_from_the_tree() {
    let simulation = Simulation::run(3, 2, 500);
    let builder = PerfettoBuilder {
        processes: vec![(41, vec![(41, "main"), (42, "worker of a long name")]), (50, vec![])],
        ..PerfettoBuilder::default()
    };
    let trace = read(builder.build(&simulation.events));
    assert_eq!(trace.saved_name(Pid(42)), Comm::new(b"worker of a lon"));
    assert_eq!(trace.saved_name(Pid(41)), Comm::new(b"main"));
    assert!(trace.saved_name(Pid(50)).is_empty(), "the first word of a command line is no name");
    let processes = &trace.memberships().expect("processes").processes;
    let expected = [(41, 41), (42, 41), (50, 50)].map(|(task, process)| (Ts::MIN, Pid(task), Pid(process)));
    assert_eq!(processes.iter().copied().collect::<std::collections::BTreeSet<_>>(), expected.into());
}

/// Removes these keys, wherever they are.
fn forget(json: &mut serde_json::Value, keys: &[&str]) {
    match json {
        serde_json::Value::Object(object) => {
            object.retain(|key, _| !keys.contains(&key.as_str()));
            object.values_mut().for_each(|value| forget(value, keys));
        }
        serde_json::Value::Array(all) => all.iter_mut().for_each(|value| forget(value, keys)),
        _ => {}
    }
}

/// What `export --perfetto` wrote has the switches, wakeups and migrations of the recording: work conservation is the same in all its
/// numbers. The causes of migrations follow from interrupts as well, which the export leaves out, and it begins with a switch on each
/// busy CPU.
#[test]
fn the_export_is_read_back() {
    let folder = scratch("perfetto-back");
    let back = folder.join("back.pftrace");
    let (dat, back) = (fixture("hackbench-7.2.dat"), back.to_str().expect("a path"));
    let dat = dat.to_str().expect("a path");
    schedviz(&["export", dat, "--perfetto", back, "-q"]).success();
    let of = |command: &str, trace: &str| -> serde_json::Value {
        let arguments = [command, trace, "--json", "-q"];
        let mut json = serde_json::from_slice(&schedviz(&arguments).success().stdout).expect("JSON");
        forget(&mut json, &["trace", "machine", "clock", "trust"]);
        json
    };
    assert_eq!(of("workcons", back), of("workcons", dat));
    assert_eq!(of("migrations", back)["total"], of("migrations", dat)["total"]);
    let wakeups = |trace: &str| {
        let report = of("latency", trace);
        let measures = report["measures"].as_array().expect("measures");
        measures.iter().find(|measure| measure["measure"] == "wakeup").cloned().expect("the measure")
    };
    assert_eq!(wakeups(back), wakeups(dat));
    assert_eq!(of("info", back)["kernel"], of("info", dat)["kernel"]);
}

/// A file that is compressed as a whole is read like the file in it, whatever its name is.
#[test]
fn compressed_files_are_opened() {
    let simulation = Simulation::run(5, 2, 300);
    let bytes = PerfettoBuilder { form: PerfettoForm::Plain, ..PerfettoBuilder::default() }.build(&simulation.events);
    let plain = events(&read(bytes.clone()));
    assert_eq!(events(&read(zstd::bulk::compress(&bytes, 1).expect("memory"))), plain);
    let dat = std::fs::read(fixture("hackbench.dat")).expect("a fixture");
    let expected = events(&Trace::from_bytes(dat.clone(), Options::default()).expect("a trace"));
    assert_eq!(events(&read(zstd::bulk::compress(&dat, 1).expect("memory"))), expected);
}

/// The scheduling slices of compact bundles are those that Perfetto's own trace processor makes of them.
#[test]
fn slices_are_those_of_the_trace_processor() {
    let trace = Trace::open(&fixture("hackbench-7.2.dat"), Options::default()).expect("a fixture");
    let all: Vec<SchedEvent> = events(&trace).into_iter().filter(kept).collect();
    let folder = scratch("perfetto-slices");
    for (name, form) in [("compact", PerfettoForm::Compact), ("plain", PerfettoForm::Plain)] {
        let path = folder.join(format!("{name}.pftrace"));
        std::fs::write(&path, PerfettoBuilder { form, ..PerfettoBuilder::default() }.build(&all)).expect("a file");
        let path = path.to_str().expect("a path");
        let queries = [
            "SELECT COUNT(*), SUM(dur) FROM sched JOIN thread USING (utid) WHERE tid != 0 AND dur >= 0",
            "SELECT ts, dur, cpu, tid FROM sched JOIN thread USING (utid) WHERE tid != 0 AND dur >= 0 ORDER BY ts, cpu LIMIT 3000",
            "SELECT COUNT(*) FROM ftrace_event WHERE name = 'sched_waking'",
            "SELECT COUNT(*) FROM ftrace_event WHERE name = 'sched_migrate_task'",
        ];
        let Some(found) = query(path, &queries) else { return };
        let table = schedviz(&["export", path, "--csv", "-", "--tables", "on_cpu", "-q"]).success().text();
        let rows: Vec<Vec<&str>> = table.lines().skip(1).map(|line| line.split(',').collect()).collect();
        // Their slices begin and end with a switch.
        let number = |text: &str| text.parse::<i64>().expect("a number");
        let mut ours: Vec<[i64; 4]> = rows
            .iter()
            .filter(|row| row[8] == "true" && row[9] == "true")
            .map(|row| [number(row[2]), number(row[3]), number(row[4]), number(row[5])])
            .collect();
        ours.sort_by_key(|row| (row[0], row[2]));
        if form == PerfettoForm::Compact {
            // The trace processor begins with the second switch of a CPU, also where another event names the task before the first.
            let mut first: BTreeMap<i64, i64> = BTreeMap::new();
            for event in all.iter().filter(|event| matches!(event.kind, EventKind::Switch { .. })) {
                first.entry(event.cpu.0.into()).or_insert(event.ts.0);
            }
            ours.retain(|row| first.get(&row[2]) != Some(&row[0]));
        }
        let at = |row: &serde_json::Value, column: usize| row[column].as_f64().expect("a number") as i64;
        let sums = (ours.len() as i64, ours.iter().map(|row| row[1]).sum::<i64>());
        assert_eq!((at(&found[0][0], 0), at(&found[0][0], 1)), sums, "{name}");
        let theirs: Vec<[i64; 4]> =
            found[1].as_array().expect("rows").iter().map(|row| [0, 1, 2, 3].map(|column| at(row, column))).collect();
        assert!(theirs.len() > 500, "{}", theirs.len());
        assert_eq!(theirs, ours[..theirs.len()], "{name}");
        let opened = recordings::open(path.as_ref(), Options::default()).expect("a trace");
        for (place, event) in [(2, "sched_waking"), (3, "sched_migrate_task")] {
            let id = opened.format_named("sched", event).map(|format| format.id).expect("an event");
            let counted = opened.counts().buffers.iter().map(|counts| counts.of(id)).sum::<u64>();
            // The trace processor leaves out compact wakings of unknown wakers.
            let is_unknown = |event: &&SchedEvent| event.pid == Pid::UNKNOWN && kept(event);
            let unknown = events(&opened).iter().filter(is_unknown).count() as u64;
            let left_out = if event == "sched_waking" { unknown } else { 0 };
            assert_eq!(at(&found[place][0], 0) as u64, counted - left_out, "{name}: {event}");
        }
    }
}

#[test]
fn traces_without_events_and_damaged_ones_are_told() {
    let refused = |bytes: &[u8]| recordings::of_source(Source::Memory(bytes.to_vec()), Options::default());
    // A packet of a program's track events.
    let text = refused(b"\x0a\x06\x40\x07\x5a\x02\x48\x03").map(drop).expect_err("no events").to_string();
    assert!(text.contains("linux.ftrace"), "{text}");
    let simulation = Simulation::run(9, 2, 400);
    let whole = PerfettoBuilder::default().build(&simulation.events);
    let cut = read(whole[..whole.len() * 2 / 3].to_vec());
    assert_eq!(cut.diagnostics().count(parse::FileIssue::TruncatedData), 1);
    let found = events(&cut).into_iter().filter(kept).count();
    assert!(found > 60 && found < 400, "{found}");
}

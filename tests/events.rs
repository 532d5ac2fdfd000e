//! `schedviz events`: exact counts, lists, values, and migrations by cause.

use crate::support::{fixture, fixtures_and_part, golden, recordings, schedviz, scratch};
use events::Balance;
use parse::Trace;
use sched::{Cause, ChosenCpus, Pass, Topology};
use std::collections::BTreeMap;

fn path(name: &str) -> String {
    fixture(name).to_str().expect("a path").to_owned()
}

#[test]
fn counts_are_those_of_the_trace() {
    for file in fixtures_and_part(3) {
        let trace = Trace::open(&file, parse::Options::default()).expect("a readable recording");
        // Any frequency will do to count the events of a counter without a known one.
        let clock = if trace.has_time().is_err() { vec!["--clock-hz", "1000000000"] } else { vec![] };
        let theirs: BTreeMap<String, u64> =
            trace.event_counts().into_iter().map(|e| (format!("{}:{}", e.system, e.name), e.count)).collect();
        let events = ["events", file.to_str().expect("a path"), "--events", "*", "--json", "-q"];
        let ran = schedviz(&[&events[..], &clock].concat()).success();
        let report: serde_json::Value = serde_json::from_slice(&ran.stdout).expect("JSON");
        let mut ours: BTreeMap<String, u64> = BTreeMap::new();
        let mut texts = 0;
        for kind in report["kinds"].as_array().expect("kinds") {
            let (name, count) = (kind["name"].as_str().expect("a name"), kind["count"].as_u64().expect("a count"));
            // Printed texts are counted by what they say.
            if theirs.contains_key(name) {
                ours.insert(name.to_owned(), count);
            } else {
                texts += count;
            }
        }
        let printed: u64 = ["print", "bprint", "bputs"].iter().filter_map(|n| theirs.get(&format!("ftrace:{n}"))).sum();
        assert_eq!(texts, printed, "{}", file.display());
        for (name, count) in theirs.iter().filter(|(name, _)| !name.ends_with("print") && !name.ends_with("bputs")) {
            assert_eq!(ours.get(name).copied().unwrap_or(0), *count, "{}: {name}", file.display());
        }
    }
}

#[test]
fn migrations_by_cause_add_up() {
    let (none, all) = (Topology::default(), ChosenCpus::default());
    let mut newidle: BTreeMap<bool, u64> = BTreeMap::new();
    for file in recordings() {
        let trace = Trace::open(&file, parse::Options::default()).expect("a readable recording");
        let (Ok(events), Some((from, to))) = (trace.events(), trace.extent()) else { continue };
        let report = Pass::over(events).run(|| Balance::new(&none, &all, from, to)).expect("a pass").output;
        let count: u64 = trace.event_counts().iter().filter(|e| e.name == "sched_migrate_task").map(|e| e.count).sum();
        if trace.selected_buffers().len() == 1 {
            assert_eq!(report.total, count, "{}", file.display());
        }
        assert_eq!(report.causes.iter().map(|c| c.count).sum::<u64>(), report.total);
        let name = file.file_name().map_or(String::new(), |n| n.to_string_lossy().into_owned());
        if let Some(rest) = name.strip_prefix("newidle-") {
            let steals: u64 = report.causes.iter().filter(|c| c.cause == Cause::NewIdle).map(|c| c.count).sum();
            *newidle.entry(rest.starts_with("on")).or_default() += steals;
        }
    }
    // Where new-idle balancing is practically off nothing is stolen; the recordings have both.
    if let (Some(off), Some(on)) = (newidle.get(&false), newidle.get(&true)) {
        assert!(*off == 0 && *on > 400, "{off} steals without, {on} with");
    }
}

#[test]
fn a_window_and_cpus_restrict_what_is_counted() {
    let trace = path("balance.dat");
    let count = |more: &[&str]| -> u64 {
        let arguments = [&["events", &trace, "--events", "sched:*", "--json", "-q"], more].concat();
        let report: serde_json::Value = serde_json::from_slice(&schedviz(&arguments).success().stdout).expect("JSON");
        report["total"].as_u64().expect("a total")
    };
    let all = count(&[]);
    assert_eq!(count(&["--cpus", "0"]) + count(&["--cpus", "1-255"]), all);
    let list = schedviz(&["events", &trace, "--events", "sched:*", "--list", "-q"]).success().text();
    assert_eq!(list.lines().count() as u64, all);
    let (first, second) = (count(&["--max", "0.1"]), count(&["--min", "0.1000000001"]));
    assert_eq!(first + second, all);
}

#[test]
fn values_and_kinds() {
    let marker = path("marker.dat");
    let trace = path("balance.dat");
    let text = |arguments: &[&str]| {
        schedviz(&[arguments, &["-q", "-o", "/dev/null", "--format", "svg"]].concat()).success().text()
    };
    golden("events-marker.txt", &text(&["events", &marker]));
    golden("events-by.txt", &text(&["events", &trace, "--events", "lb:load_balance", "--by", "moved"]));
    let matched = text(&["events", &trace, "--events", "sched_wakeup", "--match", "CPU:(?<target>[0-9]+)"]);
    assert!(matched.contains("sched:sched_wakeup target=00"), "{matched}");
    golden("events-value.txt", &text(&["events", &marker, "--events", "ftrace:print", "--value", "cpu"]));
    // A slip in a name is no table without values.
    for (asked, why) in [
        (&["--value", "moves"][..], "--value: none of these events has moves"),
        (&["--events", "sched_switch", "--value", "prio"], "--value: none of these events has prio"),
    ] {
        let refused = schedviz(&[&["events", &trace], asked].concat());
        assert!(refused.code == Some(1) && refused.stderr.contains(why), "{}", refused.stderr);
    }
    golden(
        "migrations.txt",
        &text(&["migrations", &path("hackbench.dat"), "--topology", "tests/fixtures/hackbench.cpus.txt"]),
    );
    let list = schedviz(&["events", &marker, "--list", "--events", "ftrace:print", "-q"]).success();
    golden("events-list.txt", &list.text());
    for (arguments, expected) in [
        (vec!["--events", "no_such"], "no event of this trace"),
        (vec!["--match", "x"], "names no group"),
        (vec!["--by", "no_such"], "has a field"),
        (vec!["--forked"], "does not know --forked"),
    ] {
        let ran = schedviz(&[vec!["events", &trace], arguments].concat());
        assert!(ran.code == Some(1) && ran.stderr.contains(expected), "{}", ran.stderr);
    }
}

#[test]
fn records_from_an_instant_on_are_the_last_of_all() {
    use std::hash::{DefaultHasher, Hash, Hasher};
    use std::ops::ControlFlow;
    for file in fixtures_and_part(3) {
        let trace = Trace::open(&file, parse::Options::default()).expect("a readable recording");
        let Some((start, end)) = trace.extent() else { continue };
        let taken = |record: &parse::Record<'_>| {
            let mut payload = DefaultHasher::new();
            record.payload().hash(&mut payload);
            (record.ts, record.cpu, record.buffer, record.lost, payload.finish())
        };
        let mut all = Vec::new();
        trace.records(&mut |record| {
            all.push(taken(record));
            ControlFlow::Continue(())
        });
        for tenth in 0..=10 {
            let from = sched::Ts(start.0 + (end.0 - start.0) / 10 * tenth);
            let mut expected = all[all.partition_point(|record| record.0 < from)..].iter();
            let mut last: Option<parse::Kept> = None;
            trace.records_from(from, &mut |record| {
                assert_eq!(Some(&taken(record)), expected.next(), "{} from {from:?}", file.display());
                last = Some(record.keep());
                ControlFlow::Continue(())
            });
            assert_eq!(expected.next(), None, "{} from {from:?}", file.display());
            assert_eq!(last.as_ref().map(|kept| taken(&kept.record(&trace))), all.last().copied());
        }
    }
}

#[test]
fn a_list_has_events_without_a_format_too() {
    let at = |ts, kind| sched::SchedEvent { ts: sched::Ts(ts), cpu: sched::Cpu(0), pid: sched::Pid(7), flags: 0, kind };
    let folder = scratch("events-unknown");
    let file = folder.join("unknown.dat");
    let events =
        [at(1_000, sched::EventKind::Other { id: 4000 }), at(2_000, sched::EventKind::Exit { pid: sched::Pid(7) })];
    std::fs::write(&file, testkit::TraceBuilder::default().events(&events).build()).expect("written");
    let file = file.to_str().expect("a path");
    let list = |more: &[&str]| schedviz(&[&["events", file, "--list", "-q"], more].concat()).success().text();
    assert!(list(&[]).contains("event 4000:") && list(&[]).lines().count() == 2, "{}", list(&[]));
    assert_eq!(list(&["--events", "*"]).lines().count(), 1, "those whose names match");
}

#[test]
fn figures_are_as_they_were() {
    let svg =
        |arguments: &[&str]| schedviz(&[arguments, &["-q", "-o", "-", "--format", "svg"]].concat()).success().text();
    let machine = "tests/fixtures/hackbench.cpus.txt";
    let hackbench = path("hackbench.dat");
    golden("events-markers.svg", &svg(&["events", &path("balance.dat"), "--min", "0.1", "--max", "0.2"]));
    let marker = path("marker.dat");
    golden("events-value.svg", &svg(&["events", &marker, "--events", "ftrace:print", "--value", "cpu"]));
    golden("events-rate.svg", &svg(&["events", &hackbench, "--events", "sched:*", "--rate"]));
    golden("events-density.svg", &svg(&["events", &hackbench, "--topology", machine, "--events", "sched:*"]));
    golden("migrations.svg", &svg(&["migrations", &hackbench, "--topology", machine, "--min", "0.5", "--max", "0.6"]));
}

#[test]
fn tables_quote_what_they_must() {
    let folder = scratch("events-csv");
    let csv = folder.join("e.csv");
    let csv = csv.to_str().expect("a path");
    schedviz(&["events", &path("balance.dat"), "--events", "sched:*", "-q", "-o", csv]).success();
    let text = std::fs::read_to_string(csv).expect("written");
    let rows = text.lines().count() as u64 - 1;
    let trace = Trace::open(&fixture("balance.dat"), parse::Options::default()).expect("a recording");
    let sched: u64 = trace.event_counts().iter().filter(|e| e.system == "sched").map(|e| e.count).sum();
    assert_eq!(rows, sched);
    assert!(text.starts_with("ts_ns,cpu,pid,command,event,text\n"));
}

#[test]
fn what_is_near_an_event_is_on_its_core_and_within_the_time() {
    let trace = path("balance.dat");
    let near =
        |time: &str| schedviz(&["events", &trace, "--events", "lb:detach_task", "--near", time, "-q"]).success().text();
    let text = near("0.5ms");
    assert_eq!(near("500us"), text);
    assert_eq!(
        text.lines().filter(|l| l.starts_with('>')).count(),
        near("0ms").lines().filter(|l| !l.is_empty()).count()
    );
    let mut shown = 0;
    for block in text.split("\n\n").filter(|b| !b.is_empty()) {
        let place = |line: &str| -> (u64, String) {
            let (_, rest) = line.split_once(" [").expect("a CPU");
            let (cpu, rest) = rest.split_once(']').expect("a CPU");
            let time = rest.split(": ").next().expect("a time").trim().replace('.', "");
            (time.parse().expect("a time"), cpu.to_owned())
        };
        let lines: Vec<&str> = block.lines().collect();
        let centres: Vec<(u64, String)> = lines.iter().filter(|l| l.starts_with('>')).map(|l| place(l)).collect();
        assert!(!centres.is_empty());
        for line in &lines {
            let (time, cpu) = place(line);
            assert!(centres.iter().any(|c| c.1 == cpu && c.0.abs_diff(time) <= 500_000), "{line}");
            shown += 1;
        }
    }
    assert!(shown > 20, "{shown} lines");
}

#[test]
fn migrations_of_chosen_tasks() {
    let trace = path("hackbench.dat");
    let total = |more: &[&str]| -> u64 {
        let arguments = [&["migrations", &trace, "--json", "-q"], more].concat();
        let report: serde_json::Value = serde_json::from_slice(&schedviz(&arguments).success().stdout).expect("JSON");
        report["total"].as_u64().expect("a total")
    };
    let (all, some, others) =
        (total(&[]), total(&["--tasks", "^hackbench$"]), total(&["--exclude-tasks", "^hackbench$"]));
    assert!(some > 0 && others > 0 && some + others == all, "{some} and {others} of {all}");
}

/// The recorder saves the last name of a task, and of a few tasks only; switches show the name of each task at each time.
#[test]
fn tasks_are_chosen_by_the_names_that_they_had() {
    let trace = path("affine.dat");
    let listed = |trace: &str, choice: &[&str]| -> Vec<String> {
        let text = schedviz(&[&["events", "--list", "-q", trace], choice].concat()).success().text();
        text.lines().map(str::to_owned).collect()
    };
    // By `trace-cmd report`: two tasks named taskset let their CPU go, and come back as soak.
    let taskset = listed(&trace, &["--tasks", "^taskset$"]);
    assert_eq!(taskset.len(), 2, "{taskset:?}");
    assert!(taskset.iter().all(|line| line.contains("soak-91") && line.contains("sched_switch: ")), "{taskset:?}");
    assert!(taskset.iter().all(|line| line.contains(" taskset:91")), "{taskset:?}");
    let [all, others] = [&[][..], &["--exclude-tasks", "^taskset$"]].map(|choice| listed(&trace, choice).len());
    assert_eq!(others + 2, all);
    let folder = scratch("events-names");
    let csv = folder.join("e.csv");
    schedviz(&["events", &trace, "--tasks", "^taskset$", "--events", "*", "-q", "-o", csv.to_str().expect("a path")])
        .success();
    let rows = std::fs::read_to_string(&csv).expect("written");
    assert_eq!(rows.lines().filter(|row| row.contains(",taskset,sched_switch,")).count(), 2, "{rows}");

    // No name was saved.
    let events = testkit::Simulation::run(3, 4, 400).events;
    let nameless = folder.join("nameless.dat");
    std::fs::write(&nameless, testkit::TraceBuilder::default().events(&events).build()).expect("written");
    let nameless = nameless.to_str().expect("a path");
    let called: Vec<(i32, String)> = (events.iter())
        .filter_map(|event| match event.kind {
            sched::EventKind::Switch { next, .. } if !next.pid.is_idle() => Some((next.pid.0, next.comm.to_string())),
            _ => None,
        })
        .collect();
    let (_, name) = called.first().expect("a switch");
    let mut pids: Vec<String> = called.iter().filter(|(_, n)| n == name).map(|(pid, _)| pid.to_string()).collect();
    pids.sort();
    pids.dedup();
    let by_number = listed(nameless, &["--pid", &pids.join(",")]);
    let of_it = |line: &String| pids.iter().any(|pid| line.trim_start().starts_with(&format!("{name}-{pid} ")));
    assert!(by_number.len() > 3 && by_number.iter().all(of_it), "{by_number:?}");
    assert_eq!(listed(nameless, &["--tasks", &format!("^{name}$")]), by_number);
}

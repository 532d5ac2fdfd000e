//! Where woken tasks are placed: by wakings alone, from an unknown CPU, and in windows.

use crate::support::{Ran, events, fixture, recordings, schedviz, scratch, unwrapped};
use parse::Trace;
use sched::diag::Severity;
use sched::{Cpu, EventKind, Pass, Pid, StateClass};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A copy of a fixture of version 6 in which `sched_wakeup` is an unknown event.
fn without_wakeups(folder: &Path) -> PathBuf {
    let mut bytes = std::fs::read(fixture("hackbench-v6.dat")).expect("a fixture");
    let (name, other) = (b"name: sched_wakeup\n", b"name: sched_wakeuX\n");
    let at = bytes.windows(name.len()).position(|part| part == name).expect("the format of sched_wakeup");
    bytes[at..at + name.len()].copy_from_slice(other);
    let path = folder.join("waking-without-wakeup.dat");
    std::fs::write(&path, bytes).expect("written");
    path
}

fn run(command: &str, trace: &Path, more: &[&str]) -> Ran {
    let trace = trace.to_str().expect("a path in UTF-8");
    schedviz(&[&[command, trace, "-q", "-o", "-"], more].concat())
}

fn json(command: &str, trace: &Path, more: &[&str]) -> Value {
    let ran = run(command, trace, &[&["--format", "json"], more].concat()).success();
    serde_json::from_slice(&ran.stdout).expect("JSON")
}

fn measure<'j>(report: &'j Value, name: &str) -> &'j Value {
    let measures = report["measures"].as_array().expect("measures");
    measures.iter().find(|m| m["measure"] == name).expect("a measure")
}

#[test]
fn wakings_alone_show_the_wakeup_latency() {
    let folder = scratch("placement");
    let cut = without_wakeups(&folder);
    let (whole, report) = (json("latency", &fixture("hackbench-v6.dat"), &[]), json("latency", &cut, &[]));
    assert_eq!(measure(&whole, "wakeup")["count"], 477);
    assert_eq!(measure(&report, "wakeup"), measure(&whole, "wakeup"), "from the waking to the switch, as always");
    for part in ["until-queued", "until-run"] {
        let unmeasured = report["unmeasured"].as_array().expect("measures");
        assert!(unmeasured.contains(&part.into()), "{part}: it is not known when a task was queued");
        assert!(report["measures"].as_array().expect("measures").iter().all(|m| m["measure"] != part));
    }
    assert_eq!((&report["queued_at_waking"], whole.get("queued_at_waking")), (&Value::Bool(true), None));
    // A woken task is placed where it was: by its waking, or the migration behind it.
    assert_eq!(report["by_placement"], whole["by_placement"]);
    let worst = |report: &Value| {
        let cases = report["worst"].as_array().expect("cases").iter();
        cases.map(|c| (c["pid"].clone(), c["queued_on"].clone(), c["ran_on"].clone())).collect::<Vec<_>>()
    };
    assert_eq!(worst(&report), worst(&whole));
    // The same with one thread, and of adjacent windows as of the whole.
    assert_eq!(json("latency", &cut, &["--threads", "1"]), report);
    let counts = [&["--max", "0.3"][..], &["--min", "0.3"]].map(|window| {
        let part = json("latency", &cut, window);
        measure(&part, "wakeup")["count"].as_u64().expect("a count")
    });
    assert!(counts.iter().all(|n| *n > 0) && counts.iter().sum::<u64>() == 477, "{counts:?}");
    // Its causes are those of the whole recording.
    let balance = |trace: &Path| {
        let report = json("migrations", trace, &[]);
        let causes = report["causes"].as_array().expect("causes").iter();
        causes.map(|c| (c["cause"].clone(), c["count"].clone(), c["queued"].clone())).collect::<Vec<_>>()
    };
    assert_eq!(balance(&cut), balance(&fixture("hackbench-v6.dat")));
}

#[test]
fn what_a_missing_wakeup_costs_is_reported() {
    let folder = scratch("placement-cost");
    let cut = without_wakeups(&folder);
    let text = unwrapped(&schedviz(&["info", cut.to_str().expect("a path")]).success().text());
    let expected = "run queues: approximate: tasks count as queued from sched_waking on, before they are";
    assert!(text.contains(expected), "{text}");
    let report = run("latency", &cut, &["--format", "txt"]).success().text();
    assert!(report.contains("(sched_wakeup was not recorded: how long a wakeup took"), "{report}");
    // Tasks wait for as much longer as their wakeups took until they were queued, but for some that were about to sleep
    // when they were woken.
    let sums = |trace: &Path| {
        let report = json("running-waiting", trace, &[]);
        ["running_ns", "waiting_ns"].map(|sum| report["panels"][0][sum].as_u64().expect("a sum"))
    };
    let whole = fixture("hackbench-v6.dat");
    let until_queued = measure(&json("latency", &whole, &[]), "until-queued")["total_ns"].as_u64().expect("a sum");
    let [running, waiting] = sums(&whole);
    let [approximate, missing] = [sums(&cut)[0], (waiting + until_queued).abs_diff(sums(&cut)[1])];
    assert_eq!(approximate, running);
    assert!(missing < 100_000, "{missing} ns of {until_queued}");
    // There is no verdict.
    let verdict = schedviz(&[
        "workcons",
        cut.to_str().expect("a path"),
        "-q",
        "--max-violation",
        "99",
        "-o",
        "-",
        "--format",
        "txt",
    ]);
    assert_eq!(verdict.code, Some(3), "{}", verdict.stderr);
}

#[test]
fn wakings_alone_in_a_recording() {
    let Some(traces) = std::env::var_os("SCHEDVIZ_TRACES") else { return };
    let path = Path::new(&traces).join("../cases/waking-without-wakeup.dat");
    let report = json("latency", &path, &[]);
    let wakeup = measure(&report, "wakeup");
    assert_eq!(wakeup["count"], 1_197);
    let max = wakeup["max_ns"].as_f64().expect("a maximum") / 1e6;
    let median = wakeup["p50_ns"].as_f64().expect("a median") / 1e3;
    assert_eq!((format!("{max:.2} ms"), format!("{median:.1} µs")), ("189.48 ms".into(), "96.3 µs".into()));
}

/// `target_cpu` of a waking is the CPU on which the task was last, which gives the previous CPU of a task whose sleep
/// began before the recording.
#[test]
fn a_waking_names_the_previous_cpu() {
    let (mut known, mut agree) = (0u32, 0u32);
    for path in recordings() {
        let trace = Trace::open(&path, parse::Options::default()).expect("a readable recording");
        // Where events are missing the task may have run elsewhere.
        let Ok(stream) = trace.events() else { continue };
        let found = Pass::over(stream).run(sched::analysis::RunTime::default).expect("a pass").diagnostics;
        if found.iter().any(|(what, ..)| what.severity() > Severity::Note) {
            continue;
        }
        let mut last: BTreeMap<Pid, Cpu> = BTreeMap::new();
        let mut losses = 0;
        for event in events(&trace) {
            match event.kind {
                EventKind::Switch { prev, state, next } => {
                    last.remove(&next.pid);
                    if state.class == StateClass::Asleep && losses == 0 {
                        last.insert(prev.pid, event.cpu);
                    }
                }
                // A balancer can move a sleeper.
                EventKind::Migrate { task, dest, .. } if last.contains_key(&task.pid) => {
                    last.insert(task.pid, dest);
                }
                EventKind::Waking { task, target } => {
                    if let Some(slept_on) = last.remove(&task.pid) {
                        known += 1;
                        agree += u32::from(slept_on == target);
                    }
                }
                EventKind::Lost { .. } => losses += 1,
                _ => {}
            }
        }
    }
    assert!(known > 3_000 && agree == known, "{agree} of {known}");
    let report = json("latency", &fixture("hackbench.dat"), &[]);
    let places = report["by_placement"].as_array().expect("placements");
    let count = |kind| places.iter().find(|p| p["kind"] == kind).map(|p| p["count"].clone());
    assert_eq!(count("unknown"), Some(0.into()));
}

/// Tasks of a busy machine that execute a program elsewhere, some of them a second after they were moved.
#[test]
fn an_exec_is_the_reason_however_late_it_comes() {
    let Some(traces) = std::env::var_os("SCHEDVIZ_TRACES") else { return };
    let report = json("migrations", &Path::new(&traces).join("linux-6.1-cpus16-nodes2/sleepers.dat"), &[]);
    let causes = report["causes"].as_array().expect("causes");
    let count = |cause| causes.iter().find(|c| c["cause"] == cause).map(|c| c["count"].clone());
    let moves = ["exec", "affinity", "active", "stopper"].map(count);
    assert_eq!(moves, [Some(17.into()), None, None, None]);
}

/// Reports print one command for the kernel's threads of each CPU; that name chooses them.
#[test]
fn names_that_reports_print_choose_tasks() {
    let trace = fixture("hackbench.dat");
    let count = |tasks: &str| {
        let report = json("latency", &trace, &["--tasks", tasks]);
        measure(&report, "wakeup")["count"].as_u64().expect("a count")
    };
    let [all, threads] = ["^kworker/N:N$", r"^kworker/\d+:\d+$"].map(count);
    assert!(all > 0 && all == threads, "{all} {threads}");
    run("dat2graph", &trace, &["--target", "kworker/N:N", "--format", "svg"]).success();
    assert_eq!(run("dat2graph", &trace, &["--target", "kworker/N:M", "--format", "svg"]).code, Some(1));
}

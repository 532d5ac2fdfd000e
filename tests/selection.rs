//! The tasks that are measured: the application, selections that are empty or unknowable, and the runs of a group that have a
//! figure.

use crate::support::{fixture, schedviz, schedviz_in, scratch, unwrapped};
use fairness::{Fairness, FairnessReport, Options, QueueTime};
use sched::{Comm, Cpu, Dur, EventKind, Pass, Pid, PrevState, SchedEvent, TaskRef, Ts};
use serde_json::Value;
use std::path::{Path, PathBuf};
use testkit::TraceBuilder;

const MS: i64 = 1_000_000;
const ASLEEP: PrevState = PrevState::asleep(1);

fn task(pid: i32, name: &str) -> TaskRef {
    TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(name.as_bytes()) }
}

/// An event at a millisecond, on a CPU, while a task of this number runs there.
fn at(ms: i64, cpu: u32, pid: i32, kind: EventKind) -> SchedEvent {
    SchedEvent { ts: Ts(ms * MS), cpu: Cpu(cpu), pid: Pid(pid), flags: 0, kind }
}

fn exec(ms: i64, pid: i32, program: &str) -> SchedEvent {
    let program = Comm::new(program.as_bytes());
    at(ms, 0, pid, EventKind::Exec { pid: Pid(pid), old_pid: Pid(pid), program })
}

fn switch(ms: i64, cpu: u32, prev: TaskRef, state: PrevState, next: TaskRef) -> SchedEvent {
    at(ms, cpu, prev.pid.0, EventKind::Switch { prev, state, next })
}

fn write(folder: &Path, name: &str, events: &[SchedEvent]) -> PathBuf {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    std::fs::write(&path, TraceBuilder::default().events(events).build()).expect("written");
    path
}

fn text_of(path: &Path) -> &str {
    path.to_str().expect("a path")
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&schedviz(&[arguments, &["--json", "-q"]].concat()).success().text()).expect("JSON")
}

/// The traced command runs on CPU 0 and executes `make` at 40 ms. A task that another one forked waits on CPU 1 from 6
/// to 50 ms and runs there from then on. At 60 ms the command forks 6, which waits behind it on CPU 0 until 90 ms and
/// then runs there in its place, while the command waits. CPU 2 idles. The trace ends at 100 ms.
fn strangers() -> Vec<SchedEvent> {
    let (init, stranger, make, child) = (task(1, "init"), task(9, "cron"), task(5, "make"), task(6, "make"));
    let fork =
        |parent: i32, child: TaskRef| EventKind::Fork { parent: Pid(parent), child: child.pid, child_comm: child.comm };
    vec![
        at(0, 0, 5, EventKind::Waking { task: task(70, "late"), target: Cpu(2) }),
        at(0, 1, 1, EventKind::Waking { task: task(71, "late"), target: Cpu(2) }),
        at(0, 2, 0, EventKind::Waking { task: task(72, "late"), target: Cpu(2) }),
        at(5, 1, 1, fork(1, stranger)),
        at(6, 1, 1, EventKind::WakeupNew { task: stranger, target: Cpu(1) }),
        exec(40, 5, "make"),
        switch(50, 1, init, ASLEEP, stranger),
        at(60, 0, 5, fork(5, child)),
        at(60, 0, 5, EventKind::WakeupNew { task: child, target: Cpu(0) }),
        switch(90, 0, make, PrevState::PREEMPTED, child),
        at(100, 2, 0, EventKind::Wakeup { task: task(72, "late"), target: Cpu(2) }),
    ]
}

#[test]
fn the_application_is_the_same_for_all_commands() {
    let folder = scratch("strangers");
    let path = write(&folder, "strangers.dat", &strangers());
    let of = |command: &str, more: &[&str]| json(&[&[command, text_of(&path)], more].concat());
    // It runs from the start to 100 ms on CPU 0, since the command before its exec is the command; 6 waits from 60 to 90 ms and 5 from
    // 90 ms on, while CPU 2 idles.
    let (ran, waited, violated) = (100 * MS, 40 * MS, 40 * MS);
    for waiters in [["--waiters", "application"].as_slice(), &["--forked"]] {
        let conserve = of("workcons", waiters);
        assert_eq!(conserve["runs"][0]["violation"]["ns"], violated, "{waiters:?}");
    }
    let panel = &of("running-waiting", &["--forked"])["panels"][0];
    assert_eq!([&panel["running_ns"], &panel["waiting_ns"], &panel["violated_ns"]], [ran, waited, violated]);
    assert_eq!(of("utilization", &[])["all"]["app_ns"], ran);
    let shares = of("fairness", &["--forked"]);
    let members: Vec<(&str, i64, i64)> = shares["members"]
        .as_array()
        .expect("members")
        .iter()
        .map(|m| {
            (m["name"].as_str().expect("a name"), m["run_ns"].as_i64().expect("ns"), m["wait_ns"].as_i64().expect("ns"))
        })
        .collect();
    assert_eq!(members, [("make 5", 90 * MS, 10 * MS), ("make 6", 10 * MS, 30 * MS)]);
    // The waits that ended: 6 alone.
    let waits = of("latency", &["--forked"]);
    let new = waits["measures"].as_array().expect("measures").iter().find(|m| m["measure"] == "new").expect("new");
    assert_eq!((&new["count"], &new["max_ns"]), (&1.into(), &(30 * MS).into()));
}

#[test]
fn the_application_is_unknown_where_no_exec_shows_it() {
    let unknown = fixture("forked-unknown.dat");
    let path = text_of(&unknown);
    let of = |command: &str, more: &[&str]| json(&[&[command, path], more].concat());
    for select in [["--forked"].as_slice(), &["--waiters", "application"]] {
        // All waiting tasks exceed any such limit.
        let verdict =
            |select: &[&str], limit: &str| schedviz(&[&["workcons", path, "--max-violation", limit], select].concat());
        assert_eq!(verdict(&[], "5").code, Some(2));
        for limit in ["5", "100"] {
            let ran = verdict(select, limit);
            assert_eq!(ran.code, Some(3), "{select:?}: {}", ran.stderr);
            assert!(
                ran.stderr.contains("the application is unknown: the exec of the traced command is not in"),
                "{}",
                ran.stderr
            );
            let text = ran.text();
            assert!(text.contains("work conservation is unknown") && !text.contains("0.00 %"), "{text}");
        }
        let run = of("workcons", select)["runs"][0].clone();
        assert!(run["violation"].is_null() && run["by_min_episode"].is_null() && run["application"].is_null(), "{run}");
        assert!(run["movable"]["percent"].as_f64().is_some_and(|percent| (percent - 57.168).abs() < 0.001));
    }
    // Other waiters are measured all the same.
    let movable = of("workcons", &[])["runs"][0].clone();
    assert!(movable["application"].is_null() && movable["selection_unknown"].is_null(), "{movable}");
    assert_eq!(movable["violation"]["percent"], movable["movable"]["percent"]);
    let queues = of("running-waiting", &["--forked"]);
    let panel = &queues["panels"][0];
    assert!(queues["selection_unknown"].is_string() && queues["violated_ns"].is_null(), "{queues}");
    assert!(["running_ns", "waiting_ns", "violated_ns"].iter().all(|name| panel[name].is_null()), "{panel}");
    assert_eq!(panel["columns"].as_array().map(Vec::len), Some(0));
    let waits = of("latency", &["--forked"]);
    assert!(waits["selection_unknown"].is_string() && waits["still_waiting"].is_null(), "{waits}");
    assert_eq!(waits["measures"].as_array().map(Vec::len), Some(0));
    let shares = of("fairness", &["--forked"]);
    assert!(shares["gini"].is_null() && shares["jain"].is_null() && shares["weighted_jain"].is_null(), "{shares}");
    let used = of("utilization", &[]);
    assert!(used["application_unknown"].is_string() && used["all"]["app_ns"].is_null());
    assert!(used["intervals"].as_array().expect("intervals").iter().all(|row| row["app_ns"].is_null()));
    // 8 CPUs for 194.892363 ms, none of which is lost.
    let times = used["all"].as_object().expect("times");
    assert_eq!(times.values().filter_map(Value::as_u64).sum::<u64>(), 8 * 194_892_363);
    for (command, expected) in [
        ("latency", "how long tasks waited is unknown: the application is unknown"),
        ("fairness", "how CPU time was shared is unknown: the application is unknown"),
    ] {
        let text = unwrapped(&schedviz(&[command, path, "--forked"]).success().text());
        assert!(text.contains(expected) && !text.contains("0 ns") && !text.contains("0.000"), "{text}");
    }
    let text = schedviz(&["utilization", path]).success().text();
    assert!(text.contains("for the application unknown") && !text.contains("%app"), "{text}");
    let drawn = |command: &str| schedviz(&[command, path, "--forked", "-o", "-", "--format", "svg"]).success();
    for command in ["running-waiting", "latency"] {
        let ran = drawn(command);
        assert!(
            ran.stderr.contains("no figures of the selected tasks: the application is unknown"),
            "{command}: {}",
            ran.stderr
        );
        assert!(ran.text().contains("No figures: the application is unknown"), "{command}");
    }
    assert!(drawn("dat2graph").text().contains("the application only, which is unknown"));
}

#[test]
fn an_empty_selection_is_no_measured_zero() {
    let hackbench = fixture("hackbench.dat");
    let path = text_of(&hackbench);
    // Both are in the trace, but no task is both.
    let neither = ["--forked", "--tasks", "^ksoftirqd"];
    let ran = schedviz(&[&["workcons", path, "--max-violation", "100"], neither.as_slice()].concat());
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    assert!(ran.stderr.contains("no task of the trace is selected"), "{}", ran.stderr);
    assert!(json(&[&["workcons", path], neither.as_slice()].concat())["runs"][0]["violation"].is_null());
    for (command, value) in
        [("running-waiting", "/panels/0/waiting_ns"), ("latency", "/still_waiting"), ("fairness", "/gini")]
    {
        let found = json(&[&[command, path], neither.as_slice()].concat());
        assert!(found["selection_unknown"].is_string(), "{command}");
        assert_eq!(found.pointer(value), Some(&Value::Null), "{command}");
    }
    // One that never waits is there: it is measured.
    let there = json(&["workcons", path, "--forked", "--tasks", "^hackbench"]);
    assert!(there["runs"][0]["violation"]["percent"].is_f64());
    // A task that is in the trace, but not in the window, did not wait there.
    let folder = scratch("before-the-fork");
    let strangers = write(&folder, "strangers.dat", &strangers());
    let of = |window: &[&str]| {
        json(&[&["workcons", text_of(&strangers), "--tasks", "^cron"], window].concat())["runs"][0].clone()
    };
    assert_eq!(of(&[])["violation"]["ns"], 44 * MS);
    let before = of(&["--max", "0.004"]);
    assert!(before["violation"]["ns"] == 0 && before["selection_unknown"].is_null(), "{before}");
}

#[test]
fn percentiles_of_nothing_are_absent() {
    // In the first 100 µs no task is woken and runs.
    let path = fixture("hackbench.dat");
    let path = text_of(&path);
    let window = ["--max", "0.00001"];
    let found = json(&[&["latency", path], window.as_slice()].concat());
    let wakeup = &found["measures"][0];
    assert_eq!((&wakeup["measure"], &wakeup["count"]), (&"wakeup".into(), &0.into()));
    for name in ["mean_ns", "min_ns", "p50_ns", "p90_ns", "p99_ns", "p999_ns", "max_ns"] {
        assert!(wakeup[name].is_null(), "{name}: {wakeup}");
    }
    let text = schedviz(&[&["latency", path], window.as_slice()].concat()).success().text();
    assert!(text.contains("no woken task ran") && text.contains("none") && !text.contains(" 0 ns"), "{text}");
    let text = schedviz(&[&["fairness", path, "--verbose"], window.as_slice()].concat()).success().text();
    assert!(text.contains("none") && !text.contains(" 0 ns"), "{text}");
}

#[test]
fn panels_have_their_own_numbers_and_the_headline_is_the_machines() {
    let (trace, cpus) = (fixture("hackbench.dat"), fixture("hackbench.cpus.txt"));
    let (path, cpus) = (text_of(&trace), text_of(&cpus));
    let of = |more: &[&str]| json(&[&["workcons", path, "--topology", cpus], more].concat());
    let violated = |more: &[&str]| of(more)["runs"][0]["violation"]["ns"].clone();
    let panels = json(&["running-waiting", path, "--per", "node", "--topology", cpus]);
    assert_eq!(panels["violated_ns"], violated(&[]));
    let nodes = panels["panels"].as_array().expect("panels");
    assert_eq!(nodes.len(), 2);
    for node in nodes {
        let cpus: Vec<String> = node["cpus"].as_array().expect("CPUs").iter().map(Value::to_string).collect();
        assert_eq!(node["violated_ns"], violated(&["--cpus", &cpus.join(",")]), "{}", node["name"]);
    }
    // 27.30 % of 1.156 s, as `workcons` has it; a mean of the panels would be 14.69 %.
    let drawn = |more: &[&str]| {
        let arguments = [&["running-waiting", path, "--topology", cpus, "-o", "-", "--format", "svg"], more].concat();
        schedviz(&arguments).success().text()
    };
    let headline = "A CPU idled while on another a task waited 27.30 % of the time (movable waiters).";
    let both = drawn(&["--per", "node"]);
    assert!(both.contains(headline) && drawn(&[]).contains(headline));
    assert!(both.contains("node 0: violated within it 13.43 %") && both.contains("node 1: violated within it 15.95 %"));
}

/// A run of `make`, which begins at 1 ms and takes this number more; cut at its end if the exit is not to be seen.
fn run_of(ms: i64, is_cut: bool) -> Vec<SchedEvent> {
    let make = task(5, "make");
    let mut events = vec![
        at(0, 0, 5, EventKind::Waking { task: task(70, "late"), target: Cpu(0) }),
        exec(1, 5, "make"),
        at(1 + ms, 0, 5, EventKind::Exit { pid: Pid(5) }),
        switch(2 + ms, 0, make, PrevState::DEAD, task(0, "swapper/0")),
    ];
    if is_cut {
        events.truncate(2);
        events.push(switch(ms, 0, make, ASLEEP, task(0, "swapper/0")));
    }
    events
}

/// Five runs before a change, of which one was cut after 30 ms, and four behind it.
fn groups(folder: &Path) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let base = [(30, true), (100, false), (101, false), (102, false), (103, false)];
    let base = (1..).zip(base).map(|(i, (ms, cut))| write(folder, &format!("base.{i}.dat"), &run_of(ms, cut)));
    let new = (1..).zip([60, 61, 62, 63]).map(|(i, ms)| write(folder, &format!("new.{i}.dat"), &run_of(ms, false)));
    (base.collect(), new.collect())
}

#[test]
fn a_cut_run_has_no_elapsed_time_among_others() {
    let folder = scratch("cut-run");
    groups(&folder);
    let compare = ["compare", "--base", "base.*.dat", "--new", "new.*.dat", "-q"];
    let run = |more: &[&str]| schedviz_in(&folder, &[compare.as_slice(), more].concat());
    let found: Value = serde_json::from_str(&run(&["--json"]).success().text()).expect("JSON");
    let comparison = &found["comparisons"][0];
    let elapsed =
        comparison["rows"].as_array().expect("rows").iter().find(|row| row["key"] == "elapsed").expect("a row");
    // The median of 100 to 103 ms is 101.5, that of 60 to 63 ms 61.5: none of the 70 divisions lies farther apart, one as far.
    assert_eq!((&elapsed["base"]["runs"], &elapsed["new"]["runs"]), (&4.into(), &4.into()));
    let is = |value: &Value, expected: f64| value.as_f64().is_some_and(|value| (value - expected).abs() < 1e-9);
    assert!(is(&elapsed["base"]["median"], 0.1015) && is(&elapsed["new"]["median"], 0.0615), "{elapsed}");
    assert!(is(&elapsed["p"], 2.0 / 70.0) && is(&comparison["speedup_percent"], 100.0 * (101.5 / 61.5 - 1.0)));
    let note = "base: base.1.dat has no elapsed time: the trace does not show when the traced command began and ended";
    assert!(found["notes"].as_array().expect("notes").iter().any(|found| found == note), "{}", found["notes"]);
    assert!(run(&[]).success().text().replace("\n  ", " ").contains(&format!("note: {note}")));
    let code = |limit: &str| run(&["--fail-if", limit]).code;
    assert_eq!(code("elapsed>5%"), Some(0));
    // Both pages of the figure name the run; it has a point for what it has, and none among the elapsed times.
    run(&["-o", "runs.svg"]).success();
    for page in ["runs-1.svg", "runs-2.svg"] {
        let svg = std::fs::read_to_string(folder.join(page)).expect("drawn");
        assert!(svg.contains("base.1.dat has no elapsed time"), "{page}");
    }
    let page = std::fs::read_to_string(folder.join("runs-2.svg")).expect("drawn");
    assert!(page.contains("base (4 runs)") && page.contains("new (4 runs)"));
    // The medians of workcons do as well.
    let grouped = ["workcons", "--group", "base=base.*.dat", "--group", "new=new.*.dat", "-q"];
    let found = schedviz_in(&folder, &[grouped.as_slice(), &["--json"]].concat()).success().text();
    let found: Value = serde_json::from_str(&found).expect("JSON");
    let base = &found["groups"][0];
    assert_eq!(base["runs"], 5);
    assert!(is(&base["elapsed_s"]["median"], 0.1015) && is(&base["elapsed_s"]["min"], 0.1), "{base}");
    assert!(found["notes"][0].as_str().expect("a note").starts_with("base.1.dat has no elapsed time"));
    let text = schedviz_in(&folder, &grouped).success().text();
    assert!(text.contains("note: base.1.dat has no elapsed time"), "{text}");
    // Where no run shows its command, the elapsed time is the window's.
    let cut: Vec<Vec<SchedEvent>> = [30, 40].into_iter().map(|ms| run_of(ms, true)).collect();
    let files = ["a.dat", "b.dat"].map(|name| folder.join(name));
    files.iter().zip(&cut).for_each(|(path, events)| drop(write(&folder, text_of(path), events)));
    let found = schedviz_in(&folder, &["workcons", "--group", "cut=a.dat,b.dat", "-q", "--json"]).success().text();
    let found: Value = serde_json::from_str(&found).expect("JSON");
    assert!(is(&found["groups"][0]["elapsed_s"]["median"], 0.035) && found["notes"].is_null(), "{}", found["groups"]);
}

#[test]
fn runs_too_few_for_any_finding_are_told_so() {
    let folder = scratch("too-few");
    groups(&folder);
    let base = ["compare", "-q", "--base", "base.2.dat", "base.3.dat", "base.4.dat", "--new"];
    let run = |new: &[&str]| schedviz_in(&folder, &[base.as_slice(), new].concat());
    let three = ["new.1.dat", "new.2.dat", "new.3.dat"];
    let text = run(&three).success().text();
    assert!(text.contains("Too few runs to distinguish a change from noise: 3 against 3"), "{text}");
    let four = [three.as_slice(), &["new.4.dat"]].concat();
    let text = run(&four).success().text();
    assert!(!text.contains("Too few"), "1 of 35: {text}");
    // A verdict is the same.
    let ran = run(&[&three[..], &["--fail-if", "wake>5%"]].concat());
    assert_eq!(ran.code, Some(0), "wakings did not grow: {}", ran.stderr);
    let back = ["compare", "-q", "--new", "base.2.dat", "base.3.dat", "base.4.dat", "--base"];
    let ran = schedviz_in(&folder, &[back.as_slice(), &three, &["--fail-if", "elapsed>5%"]].concat());
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    assert!(ran.stderr.contains("3 and 3 runs cannot show a change: their least p is 0.100"), "{}", ran.stderr);
}

#[test]
fn files_of_the_same_name_are_told_apart() {
    let folder = scratch("same-name");
    for (place, ms) in [("old/run.dat", 50), ("new/run.dat", 40)] {
        // A migration of the task that runs is repaired, and worth a warning.
        let moved = EventKind::Migrate { task: task(5, "make"), orig: Cpu(0), dest: Cpu(1) };
        let mut events = run_of(ms, false);
        events.insert(2, at(2, 0, 5, moved));
        write(&folder, place, &events);
    }
    let ran = schedviz_in(&folder, &["workcons", "old/run.dat", "new/run.dat"]).success();
    for name in ["old/run.dat", "new/run.dat"] {
        assert!(ran.stderr.contains(&format!("schedviz: {name}: repaired: ")), "{}", ran.stderr);
    }
    let text = ran.text();
    assert!(text.contains("\nold/run.dat ") && text.contains("\nnew/run.dat "), "{text}");
    let ran = schedviz_in(&folder, &["compare", "--base", "old/run.dat", "--new", "new/run.dat", "--json"]).success();
    assert!(ran.stderr.contains("schedviz: old/run.dat: repaired: "), "{}", ran.stderr);
    let found: Value = serde_json::from_str(&ran.text()).expect("JSON");
    assert_eq!(found["groups"][0]["runs"][0]["trace"], "old/run.dat");
    // One file has the name that it always had.
    let ran = schedviz_in(&folder, &["workcons", "old/run.dat"]).success();
    assert!(ran.stderr.contains("schedviz: repaired: ") && ran.text().starts_with("old/run.dat: "));
}

#[test]
fn medians_of_a_group_are_of_the_runs_that_have_the_figure() {
    let Some(traces) = std::env::var_os("SCHEDVIZ_TRACES") else { return };
    let folder = Path::new(&traces).join("linux-6.1-cpus16-nodes2");
    let runs = |name: &str| format!("{}/newidle-{name}.*.dat", folder.display());
    let found = json(&["compare", "--base", &runs("off"), "--new", &runs("on")]);
    let comparison = &found["comparisons"][0];
    let elapsed = &comparison["rows"].as_array().expect("rows")[0];
    // By `trace-cmd report` from the exec to the exit of hackbench: 2.234829, 3.886791, 3.204122 and 2.238213 s before,
    // and 1.128766, 1.745023, 1.807873, 2.173517 and 2.323767 s after the change. The first run was cut.
    let is = |value: &Value, expected: f64| value.as_f64().is_some_and(|value| (value - expected).abs() < 1e-6);
    assert!(is(&elapsed["base"]["median"], (2.238_213 + 3.204_122) / 2.0), "{elapsed}");
    assert!(is(&elapsed["new"]["median"], 1.807_873) && is(&elapsed["p"], 4.0 / 126.0), "{elapsed}");
    assert!((elapsed["change_percent"].as_f64().expect("a change") + 33.56).abs() < 0.01, "{elapsed}");
    let (off, on) = (format!("off={}", runs("off")), format!("on={}", runs("on")));
    let found = json(&["workcons", "--group", &off, "--group", &on]);
    let of = |group: usize, run: usize| found["runs"][group * 5 + run]["violation"]["percent"].as_f64().expect("%");
    let mut known: Vec<f64> = (1..5).map(|run| of(0, run)).collect();
    known.sort_by(f64::total_cmp);
    let group = &found["groups"][0];
    assert!(is(&group["percent"]["median"], (known[1] + known[2]) / 2.0) && is(&group["percent"]["max"], known[3]));
    assert_eq!(found["notes"].as_array().map(Vec::len), Some(2), "{}", found["notes"]);
}

fn fairness_of(events: &[SchedEvent]) -> FairnessReport {
    let options = Options::new(events[0].ts, events[events.len() - 1].ts);
    Pass::over(events).run(|| Fairness::new(&options)).unwrap_or_else(|never| match never {}).output
}

/// CPU 1 runs `hog`, CPU 2 `other` until 100 ms, and CPU 0 idles. A task of this name waits for CPU 1 from 10 to 90 ms
/// and then for CPU 2, on which it runs at 100 ms. `hog` goes on to 120 ms.
fn moved_waiter(name: &str) -> Vec<SchedEvent> {
    let (hog, other, waiter, idle) = (task(1, "hog"), task(2, "other"), task(7, name), task(0, "swapper"));
    vec![
        at(0, 0, 0, EventKind::Waking { task: task(70, "late"), target: Cpu(0) }),
        at(0, 1, 1, EventKind::Waking { task: waiter, target: Cpu(1) }),
        at(0, 2, 2, EventKind::Waking { task: task(72, "late"), target: Cpu(2) }),
        at(10, 1, 1, EventKind::Wakeup { task: waiter, target: Cpu(1) }),
        at(90, 2, 2, EventKind::Migrate { task: waiter, orig: Cpu(1), dest: Cpu(2) }),
        switch(100, 2, other, ASLEEP, waiter),
        switch(110, 2, waiter, ASLEEP, idle),
        switch(120, 1, hog, ASLEEP, idle),
    ]
}

#[test]
fn a_wait_is_behind_what_ran_where_it_was_queued() {
    let found = fairness_of(&moved_waiter("waiter")).starved;
    let wait = found.iter().find(|wait| wait.pid == Pid(7)).expect("a wait");
    let ms = |ms: i64| Dur((ms * MS) as u64);
    assert_eq!((wait.duration_ns, wait.cpu), (ms(90), Cpu(2)));
    let queue = |cpu, wait_ns| QueueTime { cpu: Cpu(cpu), wait_ns };
    assert_eq!(wait.queues, [queue(1, ms(80)), queue(2, ms(10))]);
    let (hog, other) = (Comm::new(b"hog"), Comm::new(b"other"));
    assert_eq!(wait.antagonists, [(hog, ms(80)), (other, ms(10))]);
    assert_eq!((wait.could_have_run_ns, wait.idle_cpu_count), (Some(ms(90)), 1));
    // One that runs as soon as it is moved did not wait there.
    let mut events = moved_waiter("waiter");
    events[4].ts = Ts(100 * MS);
    let found = fairness_of(&events).starved;
    assert_eq!(
        (found[0].queues.as_slice(), found[0].antagonists.as_slice()),
        ([queue(1, ms(90))].as_slice(), [(hog, ms(90))].as_slice())
    );
    // One that still waits at the end.
    events.truncate(5);
    events.push(switch(110, 1, task(1, "hog"), ASLEEP, task(0, "swapper")));
    let found = fairness_of(&events).starved;
    assert!(found[0].still_waits);
    assert_eq!(found[0].queues, [queue(1, ms(90)), queue(2, ms(10))]);
    // The task on CPU 2 has no name here.
    assert_eq!(found[0].antagonists, [(hog, ms(90)), (Comm::EMPTY, ms(10))]);
    let folder = scratch("moved-waiter");
    let path = write(&folder, "moved.dat", &moved_waiter("waiter"));
    let text = unwrapped(&schedviz(&["fairness", text_of(&path), "--verbose"]).success().text());
    let expected =
        "waiter 7; meanwhile CPU 1 (waited for 80.00 ms), CPU 2 (waited for 10.00 ms) ran hog for 80.00 ms, other";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn no_other_cpu_could_have_run_a_bound_thread() {
    // Here the waiter stays on CPU 1.
    let events: Vec<SchedEvent> =
        moved_waiter("kworker/1:0").into_iter().filter(|event| event.ts < Ts(90 * MS)).collect();
    let close = [switch(100, 1, task(1, "hog"), ASLEEP, task(7, "kworker/1:0"))];
    let found = fairness_of(&[&events[..], &close].concat()).starved;
    assert_eq!((found[0].pid, found[0].duration_ns), (Pid(7), Dur(90 * MS as u64)));
    assert_eq!((found[0].could_have_run_ns, found[0].idle_cpu_count, found[0].idle_cpus.len()), (None, 0, 0));
    assert_eq!(found[0].antagonists, [(Comm::new(b"hog"), Dur(90 * MS as u64))]);
}

#[test]
fn a_wait_that_never_ends_is_the_longest_and_its_idle_cpu_is_to_blame() {
    let (hog, waiter, idle, kworker) = (task(1, "hog"), task(7, "waiter"), task(0, "swapper"), task(9, "kworker/1:0"));
    let other = EventKind::Other { id: 1 };
    // The task waits for 1 ms behind `hog`, and then from 6 to 206 ms, while its CPU idles but for 2 ms of a kernel thread.
    let events = [
        at(0, 1, 1, EventKind::Waking { task: waiter, target: Cpu(1) }),
        at(1, 1, 1, EventKind::Wakeup { task: waiter, target: Cpu(1) }),
        switch(2, 1, hog, ASLEEP, waiter),
        switch(5, 1, waiter, ASLEEP, idle),
        at(6, 0, 3, EventKind::Waking { task: waiter, target: Cpu(1) }),
        at(6, 0, 3, EventKind::Wakeup { task: waiter, target: Cpu(1) }),
        at(100, 0, 3, EventKind::Waking { task: kworker, target: Cpu(1) }),
        at(100, 0, 3, EventKind::Wakeup { task: kworker, target: Cpu(1) }),
        switch(100, 1, idle, PrevState::RUNNABLE, kworker),
        switch(102, 1, kworker, ASLEEP, idle),
        at(206, 0, 3, other),
    ];
    let found = fairness_of(&events);
    let (wait, ms) = (&found.starved[0], |ms: u64| Dur(ms * MS as u64));
    assert_eq!((wait.pid, wait.duration_ns, wait.still_waits), (Pid(7), ms(200), true));
    assert_eq!((wait.held_back_ns, wait.others_ran_ns), (ms(198), ms(2)));
    assert_eq!(wait.meanwhile(), ", while CPU 1 idled (99.0 %)");
    let member = found.members.iter().find(|member| member.pid == Some(Pid(7))).expect("a member");
    assert_eq!((member.waits.max_ns, member.open_wait_ns), (Some(ms(1)), Some(ms(200))));
    let folder = scratch("open-wait");
    let path = write(&folder, "open.dat", &events);
    let text = schedviz(&["fairness", text_of(&path), "-q"]).success().text();
    let row = text.lines().find(|line| line.starts_with("waiter 7")).expect("a row");
    assert!(row.ends_with(" 200ms") && unwrapped(&text).contains("waiter 7 on CPU 1; it idled 99%"), "{text}");
    let text = unwrapped(&schedviz(&["latency", text_of(&path), "-q"]).success().text());
    assert!(text.contains("2 wakeups; waiter 7 still waited after 200.00 ms"), "{text}");
    assert!(text.contains("Next, on the longest wait:") && text.contains(" --at 0.106000"), "{text}");
    // The finding says the same once.
    let text = unwrapped(&schedviz(&["findings", text_of(&path), "-q"]).success().text());
    assert!(
        text.contains("waiter 7 waited 200.00 ms for CPU 1 from 0.006000 s on, which idled for 99.0 % of that"),
        "{text}"
    );
    assert!(!text.contains("kworker"), "{text}");
}

#[test]
fn a_task_that_neither_ran_nor_waited_is_no_member() {
    let (init, passing, idle) = (task(1, "init"), task(7, "passing"), task(0, "swapper"));
    let events = [
        at(0, 0, 1, EventKind::Waking { task: passing, target: Cpu(0) }),
        at(20, 0, 1, EventKind::Wakeup { task: passing, target: Cpu(0) }),
        switch(20, 0, init, ASLEEP, passing),
        switch(20, 0, passing, ASLEEP, idle),
        at(40, 0, 0, EventKind::Waking { task: init, target: Cpu(0) }),
    ];
    let found = fairness_of(&events);
    assert_eq!(found.members.iter().map(|m| m.name.as_str()).collect::<Vec<_>>(), ["init 1"]);
    assert_eq!((found.gini, found.members[0].expected_percent), (Some(0.0), 100.0));
}

#[test]
fn cpus_without_events_have_empty_lanes_and_count() {
    let (mask, hackbench) = (fixture("mask.dat"), fixture("hackbench.dat"));
    let drawn = |trace: &Path, command: &str, more: &[&str]| {
        let arguments = [&[command, text_of(trace), "-q", "-o", "-", "--format", "svg"], more].concat();
        schedviz(&arguments).success().text()
    };
    let lane = |svg: &str, cpu: u32| svg.contains(&format!(">{cpu}</text>"));
    for (command, more) in [("dat2graph", [].as_slice()), ("running-waiting", &["--per-cpu"]), ("utilization", &[])] {
        let svg = drawn(&mask, command, more);
        assert!(svg.contains("8 CPUs (6 without any event)") && svg.contains("CPU without any event<"), "{command}");
        assert!(svg.contains("neither idle nor busy: 2-7") && svg.contains("#f4eedf"), "{command}");
        let some = drawn(&mask, command, &[more, &["--cpus", "0-3"]].concat());
        assert!(some.contains("4 of 8 CPUs (2 without any event)") && some.contains("#f4eedf"), "{command}");
        let all = drawn(&hackbench, command, more);
        assert!(all.contains(", 8 CPUs, clock") && !all.contains("without any event") && !all.contains("#f4eedf"));
    }
    let svg = drawn(&mask, "dat2graph", &[]);
    assert!((0..8).all(|cpu| lane(&svg, cpu)) && !lane(&svg, 8));
}

//! Work conservation: by hand, and against the simulator's truth.

use crate::support::{fixture, schedviz, schedviz_in, scratch};
use parse::Trace;
use sched::{Comm, Cpu, Dur, EventKind, Pass, Pid, PrevState, SchedEvent, TaskRef, Ts, Window};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use testkit::{ByteOrder, Compression, ExtQueues, Simulation, TraceBuilder};
use workcons::{Options, Report, WorkConservation};

fn measure(events: &[SchedEvent], options: &Options, window: Window) -> Report {
    let pass = Pass::over(events).window(window).run(|| WorkConservation::new(options));
    pass.unwrap_or_else(|never| match never {}).output
}

/// The report on events of a machine with a sched_ext scheduler.
fn measure_ext(events: &[SchedEvent], window: Window) -> Report {
    let options = Options::default();
    let pass = Pass::over(ExtQueues(events)).window(window).run(|| WorkConservation::new(&options));
    pass.unwrap_or_else(|never| match never {}).output
}

/// Time, capacity and threads, in nanoseconds, with every waiting task counted.
fn figures(report: &Report) -> (u64, u64, u64) {
    let cpu_time = report.window_ns.0 as f64 * report.cpus.observed as f64;
    let capacity = (report.all.cpu_time_lost_percent * cpu_time / 100.0).round() as u64;
    (report.all.ns, capacity, report.all.thread_ns)
}

/// A machine at work: events written as what happens to it.
struct Story(Vec<SchedEvent>);

fn task(pid: i32, name: &str) -> TaskRef {
    TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(name.as_bytes()) }
}

impl Story {
    fn at(&mut self, ts: i64, cpu: u32, pid: i32, kind: EventKind) {
        self.0.push(SchedEvent { ts: Ts(ts), cpu: Cpu(cpu), pid: Pid(pid), flags: 0, kind });
    }

    /// `n` CPUs show themselves at 0 and at `end`; those in `busy` run the task of that number.
    fn new(n: u32, busy: &[(u32, i32)]) -> Story {
        let mut story = Story(Vec::new());
        for cpu in 0..n {
            let pid = busy.iter().find(|b| b.0 == cpu).map_or(0, |b| b.1);
            story.at(0, cpu, pid, EventKind::Other { id: 9 });
        }
        story
    }

    /// The tasks wait on `cpu` from the start: they are first seen when they run there, at `end`.
    fn waited(&mut self, cpu: u32, prev: i32, names: &[&str], end: i64) {
        let mut prev = task(prev, "runner");
        for (i, name) in (0..).zip(names) {
            let next = task(900 + cpu as i32 * 10 + i, name);
            self.at(end, cpu, prev.pid.0, EventKind::Switch { prev, state: PrevState::asleep(1), next });
            prev = next;
        }
    }

    fn finish(mut self, n: u32, end: i64) -> Vec<SchedEvent> {
        // A wakeup at the very end shows that wakeups were recorded.
        self.at(end, n - 1, 0, EventKind::Wakeup { task: task(5000, "late"), target: Cpu(n - 1) });
        self.0.sort_by_key(|e| (e.ts, e.cpu));
        self.0
    }
}

const SECOND: i64 = 1_000_000_000;

#[test]
fn two_overloaded_cpus_and_four_idle_ones() {
    for (idle, expected) in [(4, (1, 2, 3)), (2, (1, 2, 2))] {
        let n = 2 + idle;
        let mut story = Story::new(n, &[(0, 1), (1, 2)]);
        story.waited(0, 1, &["a"], SECOND);
        story.waited(1, 2, &["b", "c"], SECOND);
        let report = measure(&story.finish(n, SECOND), &Options::default(), Window::default());
        let seconds = |ns: u64| ns / SECOND as u64;
        let (time, capacity, threads) = figures(&report);
        assert_eq!((seconds(time), seconds(capacity), seconds(threads)), expected, "{idle} idle");
        let violation = report.violation.expect("a headline");
        assert!((violation.percent - 100.0).abs() < 1e-9);
        assert_eq!(violation.percent, violation.possible_percent, "nothing was lost");
    }
}

#[test]
fn a_cpu_that_is_waking_up_is_no_violation() {
    let mut story = Story::new(2, &[(0, 1)]);
    story.waited(0, 1, &["a"], 100_000);
    story.at(0, 1, 0, EventKind::Wakeup { task: task(50, "woken"), target: Cpu(1) });
    let run = EventKind::Switch { prev: task(0, "swapper/1"), state: PrevState::RUNNABLE, next: task(50, "woken") };
    story.at(50_000, 1, 0, run);
    let report = measure(&story.finish(2, 100_000), &Options::default(), Window::default());
    assert_eq!(report.all.ns, 0);
}

#[test]
fn who_waits_is_named_where_a_cpu_idles_for_long() {
    let mut story = Story::new(2, &[(0, 1)]);
    let throttled = TaskRef { prio: -1, ..task(7, "throttled") };
    let idle = task(0, "swapper/0");
    let switch = |prev, state, next| EventKind::Switch { prev, state, next };
    story.at(1_000_000, 0, 1, switch(task(1, "runner"), PrevState::asleep(1), throttled));
    story.at(2_000_000, 0, 7, switch(throttled, PrevState::RUNNABLE, idle));
    story.at(3_000_000, 1, 0, EventKind::Wakeup { task: task(8, "behind it"), target: Cpu(0) });
    story.at(3_500_000, 1, 0, EventKind::Wakeup { task: task(9, "gone"), target: Cpu(0) });
    story.at(4_000_000, 1, 0, EventKind::Migrate { task: task(9, "gone"), orig: Cpu(0), dest: Cpu(1) });
    story.at(5_000_000, 0, 0, switch(idle, PrevState::RUNNABLE, task(8, "behind it")));
    story.at(5_100_000, 0, 8, switch(task(8, "behind it"), PrevState::asleep(1), idle));
    // Too short to be listed; and one that the trace's end cuts.
    story.at(5_900_000, 0, 0, switch(idle, PrevState::RUNNABLE, throttled));
    story.at(6_000_000, 0, 7, switch(throttled, PrevState::RUNNABLE, idle));
    let report = measure(&story.finish(2, 9_000_000), &Options::default(), Window::default());
    let named = |r: &workcons::PendingSwitch| -> Vec<(i32, Option<i32>)> {
        r.waiting.iter().map(|held| (held.pid.0, held.prio)).collect()
    };
    let found: Vec<_> =
        report.pending_switches.iter().map(|r| (r.cpu.0, r.start_ns.0, r.duration_ns.0, named(r))).collect();
    let (deadline, fair) = ((7, Some(-1)), (8, Some(120)));
    // The last one woken is the story's own.
    let on_1 = (1, 4_000_000, 5_000_000, vec![(9, Some(120)), (5000, Some(120))]);
    let by_length = [on_1, (0, 2_000_000, 3_000_000, vec![deadline, fair]), (0, 6_000_000, 3_000_000, vec![deadline])];
    assert_eq!(found, by_length);
    assert_eq!((report.long_pending_switches, report.long_pending_switches_ns), (3, Dur(11_000_000)));
}

#[test]
fn one_task_more_than_shares_allow() {
    // N tasks on N CPUs, one of them sharing: N-1 run, N in all, for as long as it lasts.
    let mut story = Story::new(4, &[(0, 1), (1, 2), (2, 3)]);
    story.waited(0, 1, &["fourth"], SECOND);
    let report = measure(&story.finish(4, SECOND), &Options::default(), Window::default());
    assert_eq!(figures(&report), (SECOND as u64, SECOND as u64, SECOND as u64));
    assert!((report.mean_running - 3.0).abs() < 1e-9 && (report.mean_waiting - 1.0).abs() < 1e-9);
}

#[test]
fn a_bound_kernel_thread_does_not_count_as_movable() {
    let mut story = Story::new(2, &[(1, 1)]);
    story.waited(1, 1, &["kworker/1:0"], SECOND);
    let report = measure(&story.finish(2, SECOND), &Options::default(), Window::default());
    assert_eq!((report.all.ns, report.movable.ns), (SECOND as u64, 0));
}

#[test]
fn bound_tasks_count_unless_they_are_left_out() {
    let mut story = Story::new(2, &[(1, 1)]);
    story.waited(1, 1, &["soak"], SECOND);
    let events = story.finish(2, SECOND);
    assert_eq!(measure(&events, &Options::default(), Window::default()).movable.ns, SECOND as u64);
    let soaks = |task: &sched::Task, _: &sched::SchedState| task.comm.as_bytes() == b"soak";
    let without = Options { excluded: Some(&soaks), ..Options::default() };
    assert_eq!(measure(&events, &without, Window::default()).movable.ns, 0);
    // The traced command is not in the trace.
    let application = |options: &Options<'_>| measure(&events, options, Window::default()).application.map(|v| v.ns);
    assert_eq!(application(&Options::default()), None);
    assert_eq!(application(&Options { application: Some(&soaks), ..Options::default() }), Some(SECOND as u64));
}

#[test]
fn who_is_chosen_is_what_counts() {
    let trace = fixture("hackbench.dat");
    let trace = trace.to_str().expect("a path");
    let measured = |more: &[&str]| -> serde_json::Value {
        let ran = schedviz(&[&["workcons", trace, "--json", "-q"], more].concat()).success();
        let mut document: serde_json::Value = serde_json::from_slice(&ran.stdout).expect("JSON");
        document["runs"][0].take()
    };
    let headline = |more: &[&str]| {
        let run = measured(more);
        (run["waiters"].as_str().expect("which").to_owned(), run["violation"]["ns"].as_u64().expect("a time"))
    };
    let (all, application) = (headline(&[]), headline(&["--waiters", "application"]));
    assert_eq!((all.0.as_str(), application.0.as_str()), ("movable", "application"));
    assert_eq!(headline(&["--forked"]), application);
    let (hackbench, others) = (headline(&["--tasks", "^hackbench$"]), headline(&["--exclude-tasks", "^hackbench$"]));
    assert_eq!((hackbench.0.as_str(), others.0.as_str()), ("application", "movable"));
    assert!(hackbench.1 > others.1 && hackbench.1 <= all.1 && others.1 < all.1, "{all:?} {hackbench:?} {others:?}");
    assert_eq!(headline(&["--tasks", "^hackbench$", "--waiters", "movable"]), all, "as it was asked for");
    // One of them alone waits less.
    let one = headline(&["--pid", "352"]);
    assert!(one.1 > 0 && one.1 < hackbench.1, "{one:?}");
    assert_eq!(headline(&["--pid", "352", "--tasks", "^hackbench$", "--forked"]), one);
}

/// A task that waits on an idle CPU waits in the queues of a sched_ext scheduler, if one was loaded, and the CPU could run it.
#[test]
fn under_sched_ext_a_cpu_that_idles_beside_its_own_waiter_is_a_violation() {
    let (a, b) = (task(7, "a"), task(8, "b"));
    let idle = task(0, "swapper");
    let at = |ns, cpu, pid, kind| SchedEvent { ts: Ts(ns), cpu: Cpu(cpu), pid: Pid(pid), flags: 0, kind };
    let switch = |prev, state, next| EventKind::Switch { prev, state, next };
    let asleep = PrevState::asleep(1);
    // From 100 on b waits on CPU 1, which idles until 150.
    let events = [
        at(0, 0, 0, switch(idle, PrevState::RUNNABLE, a)),
        at(10, 1, 8, switch(b, asleep, idle)),
        at(100, 0, 7, EventKind::Waking { task: b, target: Cpu(1) }),
        at(100, 0, 7, EventKind::Wakeup { task: b, target: Cpu(1) }),
        at(150, 1, 0, switch(idle, PrevState::RUNNABLE, b)),
        at(300, 1, 8, switch(b, asleep, idle)),
        at(400, 0, 7, switch(a, asleep, idle)),
    ];
    let plain = measure(&events, &Options::default(), Window::default());
    assert_eq!(figures(&plain), (0, 0, 0));
    let ext = measure_ext(&events, Window::default());
    assert_eq!(figures(&ext), (50, 50, 50));
    assert_eq!((ext.movable.ns, ext.long_pending_switches), (50, 0));
    // In `why` the wait and the idle stretch of CPU 1 have this time.
    let options = Options::default();
    let why = Pass::over(ExtQueues(&events)).run(|| why::Why::new(&options));
    let why = why.unwrap_or_else(|never| match never {}).output;
    assert_eq!(why.violation_ns.map(|ns| ns.0), Some(50));
    assert_eq!(why.waiting.expect("waits").total_ns.0, 50);
    assert_eq!(why.idling.expect("idle stretches").total_ns.0, 50);
}

/// From the simulator's own run queues, for the tasks and CPUs that have events. Under a sched_ext scheduler an idle CPU is idle
/// whatever waits on it, and what waits there waits beside it.
fn truth(sim: &Simulation, is_ext: bool) -> (u64, u64, u64) {
    let (tasks, cpus) = sim.witnessed();
    let mut sums = (0, 0, 0);
    for (truth, pair) in sim.truth.iter().zip(sim.events.windows(2)) {
        let ns = pair[1].ts.since(pair[0].ts).0;
        let queue = |cpu: u32| truth.queues[cpu as usize].iter().filter(|p| tasks.contains(p)).count() as u64;
        let runs = |cpu: &&u32| truth.current[**cpu as usize] != 0;
        let idle = cpus.iter().filter(|c| !runs(c) && (is_ext || queue(**c) == 0)).count() as u64;
        let over: Vec<u64> = cpus.iter().filter(|c| is_ext || runs(c)).map(|c| queue(*c)).filter(|w| *w > 0).collect();
        if idle > 0 && !over.is_empty() {
            sums.0 += ns;
            sums.1 += ns * idle.min(over.len() as u64);
            sums.2 += ns * idle.min(over.iter().sum());
        }
    }
    sums
}

#[test]
fn figures_are_the_simulators_own() {
    let mut violated = 0;
    for seed in crate::support::seeds(100) {
        let sim = Simulation::any(seed, 2 + (seed % 8) as u32, 400);
        let report = measure(&sim.events, &Options::default(), Window::default());
        assert_eq!(figures(&report), truth(&sim, false), "seed {seed}");
        assert_eq!(report.all.percent, report.all.possible_percent, "nothing was lost");
        let ext = measure_ext(&sim.events, Window::default());
        assert_eq!(figures(&ext), truth(&sim, true), "seed {seed}");
        assert_eq!(ext.all.percent, ext.all.possible_percent, "nothing was lost");
        let options = Options::default();
        let why = Pass::over(ExtQueues(&sim.events)).run(|| why::Why::new(&options));
        let why = why.unwrap_or_else(|never| match never {}).output;
        assert_eq!(why.violation_ns.map(|ns| ns.0), Some(ext.movable.ns), "seed {seed}");
        assert!(why.idling.expect("idle stretches").total_ns.0 >= ext.movable.thread_ns, "seed {seed}");
        assert!(why.waiting.expect("waits").total_ns.0 >= ext.movable.thread_ns, "seed {seed}");
        assert_eq!(
            (ext.pending_switches, ext.mean_waiting),
            (report.pending_switches, report.mean_waiting),
            "seed {seed}"
        );
        violated += u64::from(report.all.ns > 0);
    }
    assert!(violated > 50);
}

#[test]
fn adjacent_windows_add_up() {
    for seed in crate::support::seeds(20) {
        let sim = Simulation::any(seed, 4, 400);
        let whole = measure(&sim.events, &Options::default(), Window::default());
        let (first, last) = (sim.events[0].ts, sim.events[sim.events.len() - 1].ts);
        let cut = |i: i64| Some(Ts(first.0 + (last.0 - first.0) * i / 5));
        let parts = (0..5).map(|i| measure(&sim.events, &Options::default(), Window { from: cut(i), to: cut(i + 1) }));
        let sums =
            parts.map(|p| (p.all.ns, p.all.thread_ns, p.window_ns.0)).reduce(|a, b| (a.0 + b.0, a.1 + b.1, a.2 + b.2));
        assert_eq!(sums, Some((whole.all.ns, whole.all.thread_ns, whole.window_ns.0)), "seed {seed}");
    }
}

#[test]
fn verdicts_and_exit_codes() {
    let path = |name: &str| fixture(name).to_str().expect("a path").to_owned();
    let hackbench = path("hackbench.dat");
    let code = |arguments: &[&str]| {
        let ran = schedviz(&[&["workcons"], arguments].concat());
        (ran.code, ran.stderr)
    };
    assert_eq!(code(&[&hackbench, "--max-violation", "90"]).0, Some(0));
    let (failed, why) = code(&[&hackbench, "--max-violation", "5"]);
    assert!(failed == Some(2) && why.contains("FAIL") && why.contains("more than 5 %"), "{why}");
    assert_eq!(code(&[&hackbench, "--max-violation", "5", "--min-episode", "100ms"]).0, Some(0));
    assert_eq!(code(&[&path("hackbench-7.2.dat"), &hackbench, "--max-violation", "90"]).0, Some(0));
    // A run with losses: certain beyond the limit fails, otherwise it is not to be trusted.
    let folder = scratch("verdict");
    let lossy = folder.join("lossy.dat");
    let (events, _) = Simulation::run(3, 6, 2000).lossy(3);
    std::fs::write(&lossy, TraceBuilder::default().events(&events).build()).expect("written");
    let lossy = lossy.to_str().expect("a path").to_owned();
    assert_eq!(code(&[&lossy, "--waiters", "all", "--max-violation", "0.001"]).0, Some(2));
    let (untrusted, why) = code(&[&lossy, "--waiters", "all", "--max-violation", "99.9"]);
    assert!(untrusted == Some(3) && why.contains("nothing is known of"), "{why}");
    // Switches alone do not show which tasks wait, be it much or little.
    let (switches, others): (Vec<SchedEvent>, Vec<SchedEvent>) =
        Simulation::run(3, 6, 2000).events.into_iter().partition(|e| matches!(e.kind, EventKind::Switch { .. }));
    let alone = folder.join("switches.dat");
    std::fs::write(&alone, TraceBuilder::default().events(&switches).build()).expect("written");
    let alone = alone.to_str().expect("a path").to_owned();
    for limit in ["0.001", "99.9"] {
        let (untrusted, why) = code(&[&alone, "--max-violation", limit]);
        assert!(untrusted == Some(3) && why.contains("sched_wakeup was not recorded"), "{why}");
    }
    // Nor where CPUs are missing that had tasks to run.
    for limit in ["0.001", "99.9"] {
        let (untrusted, why) = code(&[&path("mask.dat"), "--max-violation", limit]);
        assert!(untrusted == Some(3) && why.contains("queued on CPUs that were not recorded"), "{why}");
    }
    // Nor where a filter let none from or to the idle tasks pass.
    let is_idle = |kind: EventKind| matches!(kind, EventKind::Switch { prev, next, .. } if prev.pid.is_idle() || next.pid.is_idle());
    let kept: Vec<SchedEvent> =
        Simulation::run(3, 6, 2000).events.into_iter().filter(|event| !is_idle(event.kind)).collect();
    let filtered = folder.join("filtered.dat");
    std::fs::write(&filtered, TraceBuilder::default().events(&kept).build()).expect("written");
    let filtered = filtered.to_str().expect("a path").to_owned();
    let (untrusted, why) = code(&[&filtered, "--max-violation", "99.9"]);
    assert!(untrusted == Some(3) && why.contains("switches were not recorded"), "{why}");
    let drawn = schedviz(&["dat2graph", &filtered, "-q", "-o", "-", "--format", "svg"]).success().text();
    assert!(drawn.contains("Switches were not recorded"));
    let json = schedviz(&["workcons", &alone, "--json", "-q"]).success().text();
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let missing = json["runs"][0]["coverage"]["missing_events"].as_array().expect("names");
    assert_eq!(missing[0], "sched_wakeup");
    // Without any the running tasks are unknown; the events can be shown.
    std::fs::write(&alone, TraceBuilder::default().events(&others).build()).expect("written");
    for command in [&["dat2graph"][..], &["utilization"], &["stepper", "--text"], &["migrations"]] {
        let refused = schedviz(&[command, &[&alone]].concat());
        assert!(refused.code == Some(1) && refused.stderr.contains("no sched:sched_switch"), "{}", refused.stderr);
    }
    let drawn = schedviz(&["events", &alone, "-q", "-o", "-", "--format", "svg"]).success().text();
    assert!(drawn.contains("sched_wakeup") && drawn.contains("The tasks that ran are unknown"));
    let moved = schedviz(&["latency", &path("instance.dat")]).success().stderr;
    assert!(moved.contains("were not recorded") && moved.contains("[sched_wakeup_new, sched_migrate_task]"), "{moved}");
}

#[test]
fn only_cpus_that_were_asked_for_count() {
    let path = fixture("unseen-wakeups-6.1.dat");
    let path = path.to_str().expect("a path");
    // CPUs 14 and 15 have no events.
    let run = |cpus: &str, assumed: &[&str]| {
        let ran = schedviz(&[&["workcons", path, "--json", "--cpus", cpus], assumed].concat()).success();
        let json: serde_json::Value = serde_json::from_slice(&ran.stdout).expect("JSON");
        let report = &json["runs"][0];
        (report["violation"].clone(), report["cpus"].clone(), report["coverage"]["unobserved"].clone(), ran.stderr)
    };
    let assume = ["--assume-idle"];
    let (some, some_assumed) = (run("0-7", &[]), run("0-7", &assume));
    assert_eq!(some, some_assumed, "none of these is assumed to idle");
    assert_eq!((&some.1["observed"], some.1["unobserved"].as_u64()), (&8.into(), Some(0)));
    let (one_more, one_assumed) = (run("0-7,14", &[]), run("0-7,14", &assume));
    assert_eq!((&one_more.0, one_more.1["unobserved"].as_u64(), &one_more.2[0]), (&some.0, Some(1), &14.into()));
    assert!(one_assumed.1["observed"] == 9 && one_assumed.0 != some.0 && !some.3.contains("--cpus"));
    // The topology of another machine, by mistake.
    let beyond = run("12-31", &[]).3;
    assert!(beyond.contains("--cpus: there is no CPU 16-31 in the trace, which was recorded on 16"), "{beyond}");
}

#[test]
fn json_follows_its_schema() {
    let path = |name: &str| fixture(name).to_str().expect("a path").to_owned();
    let schema =
        std::fs::read_to_string(crate::support::root().join("docs/schemas/workcons-2.json")).expect("the schema");
    let schema: serde_json::Value = serde_json::from_str(&schema).expect("JSON");
    let group = format!("both={},{}", path("hackbench-7.2.dat"), path("spmd-plus1.dat"));
    let (unknown, unknowns) = (path("forked-unknown.dat"), format!("one={}", path("forked-unknown.dat")));
    for arguments in [
        vec!["workcons", "--json", "--group", &group, "--max-violation", "100"],
        vec![
            "workcons",
            "--json",
            &path("hackbench.dat"),
            "--topology",
            &path("hackbench.cpus.txt"),
            "--waiters",
            "application",
        ],
        // The application is unknown, in all runs of a group.
        vec!["workcons", "--json", &unknown, "--forked"],
        vec!["workcons", "--json", "--group", &unknowns, "--forked"],
    ] {
        let output = schedviz(&arguments).success().text();
        let document: serde_json::Value = serde_json::from_str(&output).expect("JSON");
        crate::conforms::conforms(&document, &schema, "$");
    }
}

#[test]
fn episodes_are_counted_by_length() {
    let mut story = Story::new(2, &[(0, 1)]);
    story.waited(0, 1, &["a"], 50_000);
    let report = measure(
        &story.finish(2, 60_000),
        &Options { min_episode: Dur(20_000), ..Options::default() },
        Window::default(),
    );
    let rows: Vec<(u64, u64)> =
        report.by_min_episode.iter().flatten().map(|r| (r.totals.min_ns.0, r.totals.episodes)).collect();
    assert_eq!(rows[..4], [(0, 1), (10_000, 1), (20_000, 1), (100_000, 0)]);
    assert_eq!((report.longest().len(), report.longest()[0].duration_ns), (1, Dur(50_000)));
    assert_eq!(report.longest()[0].scene.waiting[0].command, Comm::new(b"a"));
}

/// The overview integrates the same state: its sums are the other tool's figures.
#[test]
fn running_and_waiting_agree_with_work_conservation() {
    use running_waiting::{Panel, RunningWaiting};
    let (mut compared, mut differ) = (0, 0);
    for seed in crate::support::seeds(60) {
        let sim = Simulation::any(seed, 1 + (seed % 8) as u32, 500);
        for events in [sim.events.clone(), sim.lossy(seed).0] {
            let report = measure(&events, &Options::default(), Window::default());
            let cpus: BTreeSet<Cpu> = events.iter().map(|e| e.cpu).collect();
            let (from, to) = (events[0].ts, events[events.len() - 1].ts);
            let options = running_waiting::Options {
                from,
                to,
                zero: from,
                panels: vec![Panel { name: String::new(), cpus: cpus.iter().copied().collect() }],
                cpus: cpus.iter().map(|c| (*c, None)).collect(),
                all_cpus: Vec::new(),
                group_name: String::new(),
                per_cpu: true,
                tasks: None,
                which: "all tasks",
                affinity: None,
                queued: None,
            };
            let pass = Pass::over(events.as_slice()).run(|| RunningWaiting::new(&options));
            let series = pass.unwrap_or_else(|never| match never {}).output;
            let panel = &series.panels[0];
            let mean = |ns: u64| ns as f64 / report.window_ns.0 as f64;
            assert!((mean(panel.running_ns.expect("a sum")) - report.mean_running).abs() < 1e-9, "seed {seed}");
            assert!((mean(panel.waiting_ns.expect("a sum")) - report.mean_waiting).abs() < 1e-9, "seed {seed}");
            assert_eq!(panel.violated_ns, Some(report.movable.ns), "seed {seed}");
            differ += u32::from(report.movable.ns != report.all.ns);
            for c in &panel.columns {
                assert!(f64::from(c.total.min) <= c.total.mean + 1e-9 && c.total.mean <= f64::from(c.total.max) + 1e-9);
                assert!(c.running.max <= cpus.len() as u32 && c.running.mean <= c.total.mean + 1e-9);
            }
            assert_eq!(series.rows.len(), cpus.len());
            compared += 1;
        }
    }
    assert!(compared == 120 && differ > 0, "{compared} {differ}");
}

/// Whatever was lost, the truth lies between the bounds; without the need for luck.
/// Takes seconds: a bound that is wrong is so for few losses; each run is measured with what was lost, and without.
#[test]
fn the_truth_lies_within_the_bounds() {
    let (mut runs, mut lossy, mut bounded) = (0, 0, 0);
    for seed in crate::support::some_seeds(2_000, 10_000) {
        let sim = Simulation::any(seed, 2 + (seed % 8) as u32, 300);
        let (events, _) = sim.lossy(seed);
        runs += 1;
        let window = sim.events[sim.events.len() - 1].ts.since(sim.events[0].ts).0;
        let options = Options { waiters: workcons::Waiters::All, ..Options::default() };
        let pass = Pass::over(events.as_slice()).run(|| workcons::Bounds::new(&options));
        let outcome = pass.unwrap_or_else(|never| match never {});
        // Where the very first event is gone the window is another one.
        if outcome.to.since(outcome.from).0 != window || events.len() == sim.events.len() {
            continue;
        }
        let bounds = outcome.output;
        let holds = |bounds: workcons::RigorousBounds, is_ext: bool| {
            let true_percent = 100.0 * truth(&sim, is_ext).0 as f64 / window as f64;
            assert!(
                bounds.least_percent <= true_percent + 1e-9 && true_percent <= bounds.most_percent + 1e-9,
                "seed {seed}: {true_percent} is not within {bounds:?}"
            );
        };
        holds(bounds, false);
        if runs <= 1_000 {
            let pass = Pass::over(ExtQueues(&events)).run(|| workcons::Bounds::new(&options));
            holds(pass.unwrap_or_else(|never| match never {}).output, true);
        }
        lossy += 1;
        bounded += u64::from(bounds.least_percent > 0.0 || bounds.most_percent < 100.0);
    }
    assert!(lossy > runs / 10 * 9 && bounded > runs / 10, "{lossy} lossy runs, {bounded} bounds narrower than all");
}

/// Where a file was cut the state of the last CPU is unknown from there on, and the truth lies between the bounds.
/// Takes seconds: the same for the end of a file, cut at random.
#[test]
fn the_truth_lies_within_the_bounds_of_a_cut_file() {
    let (mut runs, mut compared, mut differ) = (0, 0, 0);
    for seed in crate::support::some_seeds(80, 240) {
        runs += 1;
        let sim = Simulation::any(seed, 2 + (seed % 5) as u32, 3000);
        let (version, compression, size) = [
            (6, Compression::None, 2048),
            (7, Compression::None, 2048),
            (7, Compression::Zstd, 512),
            (7, Compression::Zlib, 512),
        ][seed as usize % 4];
        let order = if seed % 3 == 0 { ByteOrder::Big } else { ByteOrder::Little };
        let page_size = 4096 << (seed % 2 * 2);
        let builder =
            TraceBuilder { version, compression, order, page_size, chunk_pages: 1, ..TraceBuilder::default() };
        let whole = builder.events(&sim.events).build();
        let cut = whole.len() - size * (1 + seed as usize % 9);
        let parsed = |bytes: &[u8]| {
            let options = parse::Options { threads: 1 + seed as usize % 2, ..parse::Options::default() };
            Trace::from_bytes(bytes.to_vec(), options).expect("readable")
        };
        let (trace, complete) = (parsed(&whole[..cut]), parsed(&whole));
        // Where the last CPU had the first event, or the last, the window is another one.
        if trace.extent() != complete.extent() || trace.observed() != complete.observed() {
            continue;
        }
        let measured = Options { waiters: workcons::Waiters::All, ..Options::default() };
        let analysis = || (workcons::Bounds::new(&measured), WorkConservation::new(&measured));
        let (bounds, report) = Pass::over(trace.events().expect("times")).run(analysis).expect("readable").output;
        let true_percent = 100.0 * truth(&sim, false).0 as f64 / report.window_ns.0 as f64;
        assert!(
            bounds.least_percent <= true_percent + 1e-9 && true_percent <= bounds.most_percent + 1e-9,
            "seed {seed}: {true_percent} is not within {bounds:?}"
        );
        // From its last event on, and on no other CPU.
        let last = trace.observed().pop().expect("a CPU");
        let reader = trace.cpu_reader(parse::Want::Switches).expect("times");
        let (mut at, mut kind) = (Ts(0), None);
        reader.events(0, last, None, &mut |event| {
            (at, kind) = (event.ts, Some(event.kind));
            ControlFlow::Continue(())
        });
        assert_eq!(kind, Some(EventKind::Lost { count: None }), "seed {seed}");
        let end = trace.extent().expect("events").1;
        let gaps: Vec<(u32, u64)> = report.unknown.gaps.iter().map(|gap| (gap.cpu.0, gap.ns)).collect();
        assert_eq!(gaps, [(last.0, end.since(at).0)], "seed {seed}");
        compared += 1;
        differ += u64::from(report.all.percent != true_percent);
    }
    assert!(
        8 * compared > 5 * runs && 4 * differ > runs,
        "{compared} cut files, {differ} with other figures than the whole ones"
    );
}

#[test]
fn the_strips_show_all_of_the_violation() {
    for (name, nodes) in [("hackbench.dat", 2), ("hackbench-7.2.dat", 1)] {
        let trace = Trace::open(&fixture(name), parse::Options::default()).expect("a recording");
        let window = trace.extent().expect("events");
        let machine = std::fs::read_to_string(fixture("hackbench.cpus.txt")).expect("a topology");
        let topology =
            if nodes == 1 { sched::Topology::default() } else { sched::Topology::parse(&machine).expect("one") };
        let options = Options { strips: Some(window), topology, ..Options::default() };
        let report =
            Pass::over(trace.events().expect("events")).run(|| WorkConservation::new(&options)).expect("a pass");
        let report = report.output;
        assert_eq!(report.strips.len(), nodes, "{name}");
        let drawn = |piece: &timeline::Piece| match piece {
            timeline::Piece::Exact { class, start, end } if *class > 1 => end.since(*start).0,
            timeline::Piece::Exact { .. } => 0,
            timeline::Piece::Shares { shares, .. } => shares.iter().filter(|s| s.0 > 1).map(|s| s.1).sum(),
        };
        let totals: Vec<u64> = report.strips.iter().map(|s| s.pieces.iter().map(drawn).sum()).collect();
        // One strip has all of it; of several each has a part, and together they miss none.
        let violation = report.violation.as_ref().expect("a headline");
        assert!(violation.ns > 0 && totals.iter().all(|ns| *ns <= violation.ns), "{name}");
        assert!(totals.iter().sum::<u64>() >= violation.ns, "{name}");
        assert!(nodes > 1 || totals == [violation.ns], "{name}");
    }
}

/// Where a sched_ext scheduler was loaded the head of each report has it, and a part has the violation of its window by the note alone.
#[test]
fn a_sched_ext_scheduler_is_in_each_head() {
    let folder = scratch("sched-ext");
    let events = Simulation::run(3, 4, 300).events;
    std::fs::write(folder.join("a.dat"), TraceBuilder::default().events(&events).build()).expect("written");
    let machine = r#"{"schema":"schedviz/machine/1","kernel":{},"cpus":{},"scheduler":{"ext":"minimal"}}"#;
    std::fs::write(folder.join("a.machine.json"), machine).expect("written");
    let ran = |arguments: &[&str]| schedviz_in(&folder, arguments).success().text();
    for arguments in
        [&["workcons", "a.dat"][..], &["why", "a.dat", "--markdown"], &["latency", "a.dat"], &["whatif", "a.dat"]]
    {
        let output = schedviz_in(&folder, arguments);
        // A forecast is refused.
        assert_eq!(output.code, Some(if arguments[0] == "whatif" { 3 } else { 0 }), "{arguments:?}: {}", output.stderr);
        let text = output.text();
        assert!(text.starts_with("A sched_ext scheduler (minimal) was loaded: "), "{arguments:?}: {text}");
    }
    ran(&["workcons", "a.dat", "--summary", "summary.md"]);
    let summary = std::fs::read_to_string(folder.join("summary.md")).expect("a summary");
    assert!(summary.contains("A sched_ext scheduler (minimal) was loaded"), "{summary}");
    let json = |arguments: &[&str]| -> serde_json::Value { serde_json::from_str(&ran(arguments)).expect("JSON") };
    assert_eq!(json(&["latency", "a.dat", "--json"])["sched_ext"]["scheduler"], "minimal");
    let middle = events[events.len() / 2].ts.since(events[0].ts).0 as f64 / 1e9;
    let (min, part) = (format!("{middle:.9}"), "part.dat");
    let window = json(&["workcons", "a.dat", "--min", &min, "--json"]);
    assert_eq!(window["runs"][0]["sched_ext"]["scheduler"], "minimal");
    ran(&["cut", "a.dat", "--min", &min, "-o", part]);
    std::fs::remove_file(folder.join("part.machine.json")).expect("a machine file");
    let part = json(&["workcons", part, "--json"]);
    assert_eq!(part["runs"][0]["sched_ext"], serde_json::json!({ "scheduler": null }));
    for way in ["all", "movable"] {
        assert!(window["runs"][0][way]["ns"].as_u64() > Some(0));
        assert_eq!(part["runs"][0][way]["ns"], window["runs"][0][way]["ns"], "{way}");
    }
}

//! `schedviz latency`: on simulated runs what the simulator's run queues say, on recordings what
//! `trace-cmd report` prints.

use crate::support::{fixture, recordings, schedviz};
use latency::{Latency, LatencyReport, Measure, Options};
use parse::Trace;
use sched::{Comm, Cpu, Dur, EventKind, Lengths, Pass, Pid, PrevState, SchedEvent, TaskRef, Ts};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use testkit::{Simulation, Truth};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum What {
    Run,
    Sleep,
    New,
    Preempted,
    Woken { waking: Option<i64> },
}

/// The state of a task and its beginning, if that was seen.
type Now = BTreeMap<i32, (What, i64)>;

fn runs(truth: &Truth, pid: i32) -> bool {
    truth.current.contains(&pid)
}

fn waits(truth: &Truth, pid: i32) -> bool {
    truth.queues.iter().any(|q| q.contains(&pid))
}

/// The intervals of a simulated run, from its run queues alone; and those of waiting that it leaves unfinished.
fn intervals(sim: &Simulation) -> ([Vec<i64>; 7], Vec<i64>) {
    let mut found: [Vec<i64>; 7] = Default::default();
    let mut now: Now = BTreeMap::new();
    let mut waking: BTreeMap<i32, i64> = BTreeMap::new();
    let mut before = &sim.initial;
    for (event, after) in sim.events.iter().zip(&sim.truth) {
        let ts = event.ts.0;
        if let EventKind::Exec { pid, old_pid, .. } = event.kind
            && pid != old_pid
        {
            // The same task under another number, whose previous owner is dead.
            let moved = now.remove(&old_pid.0);
            now.remove(&pid.0);
            now.extend(moved.map(|moved| (pid.0, moved)));
            before = after;
            continue;
        }
        if event.kind == EventKind::Offline {
            // The end of the stopper's run and the start of its sleep were not seen.
            let stopper = before.current[event.cpu.index()];
            now.remove(&stopper);
            before = after;
            continue;
        }
        match event.kind {
            EventKind::Waking { task, .. } => drop(waking.insert(task.pid.0, ts)),
            // A running task is not asleep.
            EventKind::Wakeup { task, .. } if runs(before, task.pid.0) => drop(waking.remove(&task.pid.0)),
            EventKind::Switch { next, .. } => drop(waking.remove(&next.pid.0)),
            _ => {}
        }
        let mut pids: Vec<i32> =
            [before, after].iter().flat_map(|t| t.current.iter().chain(t.queues.iter().flatten())).copied().collect();
        pids.sort_unstable();
        pids.dedup();
        for pid in pids.into_iter().filter(|pid| *pid != 0) {
            let was = (runs(before, pid), waits(before, pid));
            let is = (runs(after, pid), waits(after, pid));
            if was == is {
                continue;
            }
            let old = now.remove(&pid);
            let mut take = |measure: Measure, from: i64| found[measure as usize].push(ts - from);
            match (old, is) {
                (Some((What::Run, since)), _) => take(Measure::Run, since),
                (Some((What::Sleep, since)), (_, true)) => take(Measure::Sleep, since),
                (Some((What::New, since)), (true, _)) => take(Measure::New, since),
                (Some((What::Preempted, since)), (true, _)) => take(Measure::Preempted, since),
                (Some((What::Woken { waking }, since)), (true, _)) => {
                    take(Measure::UntilRun, since);
                    waking.into_iter().for_each(|waking| take(Measure::Wakeup, waking));
                    waking.into_iter().for_each(|waking| found[Measure::UntilQueued as usize].push(since - waking));
                }
                _ => {}
            }
            let what = match (was, is, event.kind) {
                (_, (true, _), _) => Some(What::Run),
                ((true, _), (_, true), _) => Some(What::Preempted),
                (_, (_, true), EventKind::WakeupNew { .. }) => Some(What::New),
                (_, (_, true), EventKind::Wakeup { .. }) => {
                    let slept = match old {
                        Some((What::Sleep, since)) => since,
                        _ => i64::MIN,
                    };
                    Some(What::Woken { waking: waking.get(&pid).map(|w| *w.max(&slept)) })
                }
                ((true, _), (false, false), EventKind::Switch { state, .. })
                    if state.class == sched::StateClass::Asleep =>
                {
                    Some(What::Sleep)
                }
                _ => None,
            };
            now.extend(what.map(|what| (pid, (what, ts))));
        }
        before = after;
    }
    let waits = now.into_values().filter(|(what, _)| !matches!(what, What::Run | What::Sleep));
    let end = sim.events.last().map_or(0, |event| event.ts.0);
    let mut unfinished: Vec<i64> = waits.map(|(_, since)| end - since).collect();
    unfinished.sort_unstable();
    (found, unfinished)
}

/// All waits of a window, as `schedviz fairness` has them.
fn starved(events: &[SchedEvent], from: Ts, to: Ts) -> Vec<fairness::Starved> {
    let options = fairness::Options { worst: usize::MAX, ..fairness::Options::new(from, to) };
    let window = sched::Window { from: Some(from), to: Some(to) };
    let pass = Pass::over(events).window(window).run(|| fairness::Fairness::new(&options));
    pass.unwrap_or_else(|never| match never {}).output.starved
}

/// How long those had waited who still did at the end.
fn starving(events: &[SchedEvent]) -> Vec<i64> {
    let starved = starved(events, events[0].ts, events[events.len() - 1].ts).into_iter();
    starved.filter(|wait| wait.still_waits).map(|wait| wait.duration_ns.0 as i64).rev().collect()
}

#[test]
fn the_longest_waits_of_a_window_are_those_of_the_run_cut_by_it() {
    let (mut cut, mut whole) = (0, 0);
    for seed in crate::support::seeds(60) {
        let sim = Simulation::any(seed, 1 + (seed % 5) as u32, 300);
        let n = sim.events.len();
        let (start, end) = (sim.events[0].ts, sim.events[n - 1].ts);
        let (from, to) = (sim.events[n / 3].ts, sim.events[2 * n / 3].ts);
        let zero = |ts: Ts| ts.since(start).0;
        // A task that waited from the very start has a beginning only if it was moved since, and counts in a window then.
        let first: BTreeSet<i32> = sim.initial.queues.iter().flatten().copied().collect();
        let clip = |wait: fairness::Starved| {
            let (a, b) = (wait.start_in_trace_ns, wait.start_in_trace_ns + wait.duration_ns.0);
            let (begin, stop) = (a.max(zero(from)), b.min(zero(to)));
            // An event at a window's end is outside.
            let (before, behind) = (a < zero(from), b >= zero(to) || wait.still_waits);
            (begin < stop).then(|| (wait.pid.0, begin, stop - begin, before, behind))
        };
        let expected: BTreeSet<_> = starved(&sim.events, start, end).into_iter().filter_map(clip).collect();
        let waits = starved(&sim.events, from, to).into_iter().filter(|wait| wait.duration_ns > Dur(0));
        let found: BTreeSet<_> = waits
            .map(|w| {
                let begin = w.start_in_trace_ns + zero(from);
                (w.pid.0, begin, w.duration_ns.0, w.waited_before, w.still_waits)
            })
            .collect();
        assert_eq!(expected.difference(&found).next(), None, "seed {seed}");
        let more = found.difference(&expected).find(|wait| !first.contains(&wait.0));
        assert_eq!(more, None, "seed {seed}");
        cut += expected.iter().filter(|wait| wait.3 || wait.4).count();
        whole += expected.iter().filter(|wait| !wait.3 && !wait.4).count();
    }
    assert!(cut > 50 && whole > 200, "{cut}, {whole}");
}

fn lengths(all: &[i64]) -> Lengths {
    let mut lengths = Lengths::default();
    all.iter().for_each(|ns| lengths.add(Dur(ns.unsigned_abs())));
    lengths
}

fn measure(events: &[SchedEvent]) -> LatencyReport {
    let options = Options { worst: 3, ..Options::default() };
    let outcome = Pass::over(events).run(|| Latency::new(&options)).unwrap_or_else(|never| match never {});
    outcome.output
}

#[test]
fn intervals_are_those_of_the_simulators_run_queues() {
    let (mut seen, mut waiting) = ([0; 7], 0);
    for seed in crate::support::seeds(120) {
        let sim = Simulation::any(seed, 1 + (seed % 7) as u32, 400);
        let report = measure(&sim.events);
        let (theirs, unfinished) = intervals(&sim);
        assert_eq!(report.still_waiting, Some(unfinished.len() as u64), "seed {seed}");
        assert_eq!(
            report.longest_still_waiting.map(|wait| wait.duration_ns.0 as i64),
            unfinished.last().copied(),
            "seed {seed}"
        );
        assert_eq!(starving(&sim.events), unfinished, "seed {seed}");
        waiting += unfinished.len();
        for (measure, theirs) in Measure::ALL.into_iter().zip(theirs) {
            assert_eq!(report.lengths[measure as usize], lengths(&theirs), "seed {seed}, {measure:?}");
            seen[measure as usize] += theirs.len();
        }
        let sum = |splits: Vec<u64>| splits.into_iter().sum::<u64>();
        let wakeups = report.of(Measure::Wakeup).count;
        assert_eq!(sum(report.by_placement.iter().map(|s| s.summary.count).collect()), wakeups);
        assert_eq!(sum(report.by_idleness.iter().map(|s| s.summary.count).collect()), wakeups);
        for measure in Measure::ALL {
            let of = |row: &latency::LatencyRow| {
                row.measures.iter().find(|m| m.measure == measure).map_or(0, |m| m.summary.count)
            };
            assert_eq!(report.rows.iter().map(of).sum::<u64>(), report.of(measure).count, "the rows are all");
            let worst = report.worst.iter().find(|case| case.measure == measure);
            if let Some(worst) = worst {
                assert_eq!(Some(worst.duration_ns), report.of(measure).max_ns);
            }
        }
    }
    assert!(seen.iter().all(|n| *n > 100) && waiting > 100, "{seen:?}, {waiting}");
}

fn task(pid: i32) -> TaskRef {
    TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(b"task") }
}

fn at(ts: i64, cpu: u32, pid: i32, kind: EventKind) -> SchedEvent {
    SchedEvent { ts: Ts(ts), cpu: Cpu(cpu), pid: Pid(pid), flags: 0, kind }
}

fn switch(ts: i64, cpu: u32, prev: i32, state: PrevState, next: i32) -> SchedEvent {
    at(ts, cpu, prev, EventKind::Switch { prev: task(prev), state, next: task(next) })
}

#[test]
fn a_waking_is_of_one_wakeup() {
    let asleep = PrevState::asleep(1);
    let announced = |ts| at(ts, 1, 9, EventKind::Waking { task: task(7), target: Cpu(0) });
    let woken = |ts| at(ts, 1, 9, EventKind::Wakeup { task: task(7), target: Cpu(0) });
    let start = [at(0, 1, 9, EventKind::Other { id: 1 }), switch(10, 0, 0, PrevState::RUNNABLE, 7)];
    let measured = |events: &[SchedEvent]| {
        let report = measure(&[&start, events, &[switch(1000, 0, 0, PrevState::RUNNABLE, 7)]].concat());
        let max = |measure| report.of(measure).max_ns.map_or(0, |max| max.0);
        (max(Measure::Wakeup), max(Measure::UntilQueued), report.without_waking.expect("a number"))
    };
    // Announced while it sleeps; while it is about to sleep; and, in vain, while it ran.
    assert_eq!(measured(&[switch(100, 0, 7, asleep, 0), announced(300), woken(400)]), (700, 100, 0));
    assert_eq!(measured(&[announced(90), switch(100, 0, 7, asleep, 0), woken(400)]), (900, 300, 0));
    // This one began unseen.
    assert_eq!(measured(&[announced(80), woken(90), switch(100, 0, 7, asleep, 0), woken(400)]), (0, 0, 1));
    // It may have been of another wakeup, in the loss.
    let lost = at(200, 0, 0, EventKind::Lost { count: None });
    let idle = at(300, 0, 0, EventKind::Other { id: 1 });
    assert_eq!(measured(&[announced(90), lost, idle, woken(400)]), (0, 0, 1));
    assert_eq!(measured(&[lost, idle, announced(350), woken(400)]), (650, 50, 0));
    // Where none was recorded it begins when it is queued.
    assert_eq!(measured(&[switch(100, 0, 7, asleep, 0), woken(400)]), (600, 0, 1));
}

#[test]
fn a_wakeup_counts_where_it_ends_with_all_of_its_parts() {
    let announced = at(300, 1, 9, EventKind::Waking { task: task(7), target: Cpu(0) });
    let events = [
        at(0, 1, 9, EventKind::Other { id: 1 }),
        switch(100, 0, 7, PrevState::asleep(1), 0),
        announced,
        at(400, 1, 9, EventKind::Wakeup { task: task(7), target: Cpu(0) }),
        switch(1000, 0, 0, PrevState::RUNNABLE, 7),
    ];
    let within = |from, to| {
        let options = Options { worst: 5, ..Options::default() };
        let window = sched::Window { from, to };
        let pass = Pass::over(&events[..]).window(window).run(|| Latency::new(&options));
        let report = pass.unwrap_or_else(|never| match never {}).output;
        let of = |measure| (report.of(measure).count, report.of(measure).max_ns.map_or(0, |max| max.0));
        let placed: u64 = report.by_placement.iter().map(|split| split.summary.count).sum();
        (of(Measure::Wakeup), of(Measure::UntilQueued), of(Measure::UntilRun), placed, report.worst.len())
    };
    let whole = ((1, 700), (1, 100), (1, 600), 1, 1);
    // The window begins before the waking, between it and the wakeup, and after both.
    for from in [300, 301, 401, 1000] {
        assert_eq!(within(Some(Ts(from)), None), whole, "from {from}");
    }
    assert_eq!(within(None, Some(Ts(1000))), whole, "the trace ends there");
    assert_eq!(within(None, Some(Ts(999))), ((0, 0), (0, 0), (0, 0), 0, 0), "it ends later");
}

#[test]
fn what_a_loss_cut_has_no_length() {
    let (runnable, asleep) = (PrevState::RUNNABLE, PrevState::asleep(1));
    let events = [
        at(0, 0, 0, EventKind::Other { id: 1 }),
        switch(100, 1, 0, runnable, 7),
        switch(300, 1, 7, runnable, 8),
        // Where CPU 0 shows itself again it runs the task that was thought to wait on the other one.
        at(400, 0, 0, EventKind::Lost { count: None }),
        at(900, 0, 7, EventKind::Other { id: 1 }),
        switch(950, 0, 7, runnable, 9),
        switch(1000, 0, 9, asleep, 7),
        switch(1500, 0, 7, asleep, 0),
    ];
    let report = measure(&events);
    let of = |measure| (report.of(measure).count, report.of(measure).max_ns);
    assert_eq!(of(Measure::Preempted), (1, Some(Dur(50))));
    assert_eq!(of(Measure::Run), (3, Some(Dur(500))));
    let (shares, slice_ms) = shares(&events, fairness::GroupBy::Command, 1500);
    assert_eq!(shares.starved.iter().map(|wait| wait.duration_ns).collect::<Vec<_>>(), [Dur(50)]);
    assert_eq!(shares.members[0].runs.count, 3);
    assert_eq!(slice_ms, Some((200.0 + 50.0 + 500.0) / 3.0 / 1e6));
}

/// The numbers of `schedviz fairness` and the slices of `schedstat` for these events, from 0 to `to`.
fn shares(events: &[SchedEvent], by: fairness::GroupBy, to: i64) -> (fairness::FairnessReport, Option<f64>) {
    let options = fairness::Options { by, ..fairness::Options::new(Ts(0), Ts(to)) };
    let pass = Pass::over(events).run(|| (fairness::Fairness::new(&options), schedstat::FromTrace::default()));
    let (shares, columns) = pass.unwrap_or_else(|never| match never {}).output;
    (shares, columns.columns.slice_ms)
}

#[test]
fn a_wait_that_was_not_recorded_to_its_end_has_no_length() {
    let woken = |ts, pid, target| at(ts, 0, 0, EventKind::Wakeup { task: task(pid), target: Cpu(target) });
    let moved = |ts, orig, dest| at(ts, 0, 0, EventKind::Migrate { task: task(7), orig: Cpu(orig), dest: Cpu(dest) });
    // There is no event of CPU 1.
    let events = [
        at(0, 0, 0, EventKind::Other { id: 1 }),
        woken(100, 7, 1),
        moved(300, 1, 0),
        switch(400, 0, 0, PrevState::RUNNABLE, 7),
        woken(590, 8, 0),
        switch(600, 0, 7, PrevState::RUNNABLE, 8),
        moved(700, 0, 1),
        switch(900, 0, 8, PrevState::asleep(1), 7),
        woken(950, 9, 1),
        at(1000, 0, 7, EventKind::Other { id: 1 }),
    ];
    let report = measure(&events);
    let of = |measure| (report.of(measure).count, report.of(measure).max_ns);
    assert_eq!(of(Measure::Wakeup), (1, Some(Dur(10))), "of 8 alone");
    assert_eq!((of(Measure::Preempted), of(Measure::Run)), ((0, None), (2, Some(Dur(300)))));
    assert_eq!((report.still_waiting, report.longest_still_waiting), (Some(0), None));
    let (shares, _) = shares(&events, fairness::GroupBy::Task, 1000);
    let waited: Vec<_> = shares.members.iter().map(|m| (&m.name[..], m.run_ns.0, m.wait_ns.0, m.waits.count)).collect();
    assert_eq!(waited, [("task 7", 300, 200, 0), ("task 8", 300, 10, 1)]);
    assert_eq!(shares.starved.iter().map(|wait| wait.duration_ns).collect::<Vec<_>>(), [Dur(10)]);
}

/// Wakeup latencies by the lines of `trace-cmd report`: from the last waking of a task to its next
/// switch-in, or from its sleep's beginning, where it was announced before. Only of tasks whose sleep was seen to begin.
fn reported(path: &Path) -> Option<Vec<i64>> {
    let output = Command::new("trace-cmd").args(["report", "-t", "-R", "-i"]).arg(path).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut waking: BTreeMap<i64, i64> = BTreeMap::new();
    let mut queued: BTreeSet<i64> = BTreeSet::new();
    let mut slept: BTreeMap<i64, i64> = BTreeMap::new();
    let mut running: BTreeSet<i64> = BTreeSet::new();
    let mut found = Vec::new();
    for line in text.lines() {
        let Some((head, body)) = line.split_once(": sched_").map(|(h, b)| (h, b.to_owned())) else { continue };
        let stamp = head.split_whitespace().last()?;
        let (s, ns) = stamp.split_once('.')?;
        let ts = s.parse::<i64>().ok()? * 1_000_000_000 + ns.parse::<i64>().ok()?;
        let field = |name: &str| -> Option<i64> {
            let at = body.find(&format!(" {name}="))? + name.len() + 2;
            body[at..].split_whitespace().next()?.parse().ok()
        };
        let kind = body.split(':').next().unwrap_or("");
        match kind {
            "waking" => drop(waking.insert(field("pid")?, ts)),
            // A running task is awake: the wakeup has no effect.
            "wakeup" if running.contains(&field("pid")?) => drop(waking.remove(&field("pid")?)),
            "wakeup" => drop(queued.insert(field("pid")?)),
            "switch" => {
                let (prev, next) = (field("prev_pid")?, field("next_pid")?);
                let waking = waking.remove(&next);
                if queued.remove(&next) {
                    let since = slept.get(&next).copied().unwrap_or(i64::MIN);
                    // One without was under way when the trace began.
                    found.extend(waking.map(|waking| ts - waking.max(since)));
                }
                running.remove(&prev);
                running.insert(next);
                slept.insert(prev, ts);
            }
            _ => {}
        }
    }
    Some(found)
}

#[test]
fn wakeup_latencies_are_those_of_trace_cmd_report() {
    let paths: Vec<_> =
        recordings().into_iter().filter(|p| p.ends_with("sleepers.dat") || p.ends_with("spmd.dat")).collect();
    let paths = if paths.is_empty() {
        vec![fixture("affine.dat"), fixture("hackbench.dat"), fixture("marker.dat")]
    } else {
        paths
    };
    for path in paths {
        let Some(mut theirs) = reported(&path) else {
            assert!(std::env::var_os("SCHEDVIZ_REQUIRE_TRACE_CMD").is_none(), "trace-cmd is needed");
            return;
        };
        let trace = Trace::open(&path, parse::Options::default()).expect("a recording");
        let options = Options::default();
        let report = Pass::over(trace.events().expect("events")).run(|| Latency::new(&options)).expect("a pass").output;
        let ours = report.of(Measure::Wakeup);
        theirs.sort_unstable();
        let exact = lengths(&theirs);
        assert!(theirs.len() > 50, "{}", path.display());
        assert_eq!(ours, exact.summary(), "{}", path.display());
    }
}

#[test]
fn the_program_says_what_waited() {
    let trace = fixture("hackbench.dat");
    let trace = trace.to_str().expect("a path");
    let ran = schedviz(&["latency", trace, "--by", "task", "--worst", "2"]).success().text();
    for part in ["woken tasks ran after", "wait if preempted", "on another CPU", "schedviz dat2graph", "hackbench 3"] {
        assert!(ran.contains(part), "{part}: {ran}");
    }
    let json = schedviz(&["latency", trace, "--json"]).success().text();
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["schema"], "schedviz/latency/1");
    // Waits that still last at the end are chosen as those that have ended.
    let waiting = |more: &[&str]| {
        let ran = schedviz(&[&["latency", trace, "--max", "0.5", "--json"], more].concat()).success().text();
        let json: serde_json::Value = serde_json::from_str(&ran).expect("JSON");
        json["still_waiting"].as_u64().expect("a number")
    };
    let all = waiting(&[]);
    assert!(all > 10, "{all}");
    assert_eq!(waiting(&["--tasks", "^hackbench$"]) + waiting(&["--exclude-tasks", "^hackbench$"]), all);
    assert_eq!(waiting(&["--cpus", "0-3"]) + waiting(&["--cpus", "4-7"]), all);
    // A task that is not in the window has no numbers.
    let none = schedviz(&["latency", trace, "--tasks", "^hackbench$", "--max", "1us", "--json"]).success().text();
    let none: serde_json::Value = serde_json::from_str(&none).expect("JSON");
    assert_eq!(none["measures"][0]["count"], 0);
}

/// How long the occupant of the CPU stayed after a task was queued there, by the table of all runs.
#[test]
fn a_wait_is_behind_a_task_for_as_long_as_that_stays() {
    let (mut same, mut all) = (0, 0);
    for trace in ["hackbench.dat", "hackbench-7.2.dat", "rt-5.10.dat"] {
        let trace = fixture(trace);
        let trace = trace.to_str().expect("UTF-8");
        let text = schedviz(&["latency", trace, "--json", "-q", "--worst", "40"]).success().text();
        let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let table = schedviz(&["export", "--csv", "-", "--tables", "on_cpu", trace, "-q"]).success().text();
        let number = |text: &str| text.parse::<u64>().expect("a number");
        let rows = crate::support::csv(&table);
        let runs: Vec<[u64; 4]> = rows
            .iter()
            .map(|row| [number(&row["cpu"]), number(&row["pid"]), number(&row["ts_ns"]), number(&row["dur_ns"])])
            .collect();
        for case in report["worst"].as_array().expect("waits") {
            let of = |name: &str| case[name].as_u64().expect("a number");
            let (cpu, behind, start) = (of("queued_on"), of("behind"), of("start_ns"));
            let end = start + of("duration_ns");
            let is_there = |run: &&[u64; 4]| run[0] == cpu && run[2] + run[3] > start;
            let there = || runs.iter().filter(is_there);
            let mut stays: Vec<u64> = match behind {
                0 => there().map(|run| run[2]).filter(|begin| *begin > start).collect(),
                pid => there().filter(|run| run[1] == pid).map(|run| run[2] + run[3]).collect(),
            };
            stays.sort_unstable();
            // A woken task is queued some time after its waking, when the occupant may run for the second time.
            let runs = if case["measure"] == "wakeup" { stays.len() } else { 1 };
            let ends: Vec<u64> = stays.iter().take(runs).map(|stays| (*stays).min(end) - start).collect();
            let Some(longest) = ends.last() else { continue };
            // A task that leaves the queue is behind it no longer.
            assert!(of("behind_ns") <= *longest, "{trace}: {case} {ends:?}");
            all += 1;
            same += u64::from(ends.contains(&of("behind_ns")));
        }
    }
    assert!(all >= 60 && same * 10 >= all * 8, "{same} of {all}");
}

//! Windows: the facts before a window and behind it count, and adjacent windows add up to the whole, on every recording.

use crate::support::{events, fixture, fixtures_and_part, repeat, schedviz, scratch, seed};
use fairness::Fairness;
use latency::Latency;
use parse::Trace;
use rayon::prelude::*;
use sched::{
    Analysis, Cause, ChosenCpus, Comm, Cpu, Dur, EventKind, Pass, Pid, PrevState, SchedEvent, TaskRef, Topology, Ts,
    Window,
};
use schedstat::FromTrace;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Mutex;
use testkit::{Laws, Rng, Simulation, TraceBuilder};
use utilization::Utilization;
use workcons::WorkConservation;

/// Returns adjacent windows of events: cut at random instants, at the instant of an event and at one just behind it.
fn windows(events: &[SchedEvent], rng: &mut Rng) -> Vec<Window> {
    let (first, last) = (events[0].ts, events[events.len() - 1].ts);
    let span = usize::try_from(last.since(first).0).expect("a time").max(1);
    let mut cuts: Vec<Ts> = (0..3).map(|_| Ts(first.0 + rng.below(span) as i64)).collect();
    let at = events[rng.below(events.len())].ts;
    cuts.extend([at, Ts(at.0 + 1)]);
    // A window that ends with the trace holds its last instant.
    cuts.retain(|cut| (first..last).contains(cut));
    cuts.sort_unstable();
    let from = std::iter::once(None).chain(cuts.iter().copied().map(Some));
    let to = cuts.iter().copied().map(Some).chain([None]);
    from.zip(to).map(|(from, to)| Window { from, to }).collect()
}

/// Makes a pass over a window.
fn pass<A: Analysis>(events: &[SchedEvent], window: Window, analysis: impl Fn() -> A) -> A::Output {
    Pass::over(events).window(window).run(analysis).unwrap_or_else(|never| match never {}).output
}

/// Calls `check` with the events of every recording and of simulated runs, and with adjacent windows of them.
fn on_everything(check: impl Fn(&str, &[SchedEvent], &[Window]) + Sync) {
    let simulated = crate::support::seeds(30).into_par_iter().map(|seed| {
        let cpus = 2 + (seed % 7) as u32;
        let sim = if seed % 3 == 0 { Simulation::any(seed, cpus, 400) } else { Simulation::balanced(seed, cpus, 400) };
        let events = if seed % 5 == 0 { sim.lossy(seed).0 } else { sim.events };
        (format!("seed {seed}"), seed, events)
    });
    let recorded = fixtures_and_part(2).into_par_iter().filter_map(|path| {
        // A pool of its own would have this thread begin other recordings while it waits, one above the other.
        let options = parse::Options { threads: 1, ..parse::Options::default() };
        let trace = Trace::open(&path, options).expect("a readable recording");
        trace.has_time().ok()?;
        let name = format!("{}; repeat: {}", path.display(), repeat("windows::", &path));
        Some((name, seed("windows", &path), events(&trace)))
    });
    simulated.chain(recorded).for_each(|(name, seed, events)| {
        if events.len() > 10 {
            check(&name, &events, &windows(&events, &mut Rng::new(seed)));
        }
    });
}

/// The first entries in which two lists differ.
fn difference<T: PartialEq + Debug>(whole: &[T], parts: &[T]) -> Option<String> {
    let nth = (0..whole.len().max(parts.len())).find(|nth| whole.get(*nth) != parts.get(*nth))?;
    let (whole, parts) = (whole.get(nth), parts.get(nth));
    Some(format!("{whole:?} in the whole, {parts:?} in its windows"))
}

#[test]
fn migrations_of_adjacent_windows_are_those_of_the_whole() {
    let (topology, cpus) = (Topology::default(), ChosenCpus::default());
    let compared = Mutex::new(0);
    on_everything(|name, events, windows| {
        let found = |window| {
            let balance = || events::Balance::new(&topology, &cpus, Ts(0), Ts(1)).listing(true);
            pass(events, window, balance).migrations.expect("a list")
        };
        let mut whole = found(Window::default());
        let mut parts = Vec::new();
        for window in windows {
            let edge = window.to.unwrap_or(Ts::MAX);
            for m in found(*window) {
                assert!(m.ts_ns < edge && window.from.is_none_or(|from| m.ts_ns >= from), "{name}: {m:?}");
                parts.push(m);
            }
            // A migration that nothing settles within ten seconds behind the window stays as it is there.
            for m in &mut whole {
                let is_inside = m.ts_ns < edge && window.from.is_none_or(|from| m.ts_ns >= from);
                let ran = m.until_run_ns.map(|until| m.ts_ns.after(until));
                if is_inside && ran.is_some_and(|ran| ran.since(edge) > sched::analysis::BEHIND) {
                    m.until_run_ns = None;
                }
            }
        }
        let key = |m: &events::ListedMigration| (m.ts_ns, m.cpu, m.pid, m.to_cpu);
        whole.sort_by_key(key);
        parts.sort_by_key(key);
        assert_eq!(difference(&whole, &parts), None, "{name} {windows:?}");
        *compared.lock().expect("a number") += whole.len();
    });
    assert!(compared.into_inner().expect("a number") > 2_000);
}

/// Joins the entries that an edge divides: `at` gives the start and the end of one, `join` makes one of two.
fn joined<T: Clone, K: Ord>(
    parts: Vec<Vec<T>>,
    windows: &[Window],
    key: impl Fn(&T) -> K,
    at: impl Fn(&T) -> (Ts, Ts, bool, bool),
    join: impl Fn(&T, &T) -> T,
) -> Vec<T> {
    let mut done = Vec::new();
    let mut open: BTreeMap<K, T> = BTreeMap::new();
    for (part, window) in parts.into_iter().zip(windows) {
        let mut next = BTreeMap::new();
        for entry in part {
            let (start, end, goes_on, is_open) = at(&entry);
            let before = if goes_on && Some(start) == window.from { open.remove(&key(&entry)) } else { None };
            let entry = before.map_or_else(|| entry.clone(), |before| join(&before, &entry));
            if is_open && window.to == Some(end) {
                next.insert(key(&entry), entry);
            } else {
                done.push(entry);
            }
        }
        done.extend(std::mem::replace(&mut open, next).into_values());
    }
    done.extend(open.into_values());
    done
}

#[test]
fn waits_and_idle_stretches_of_adjacent_windows_are_those_of_the_whole() {
    use why::{IdleEnd, IdleOrigin, ListedCase, WaitEnd, WaitOrigin, Why};
    let compared = Mutex::new((0, 0));
    on_everything(|name, events, windows| {
        let options = workcons::Options { waiters: workcons::Waiters::All, ..workcons::Options::default() };
        let found = |window| {
            let (waits, stretches) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
            let wait = |case: &ListedCase<WaitOrigin, WaitEnd>| waits.lock().expect("a list").push(*case);
            let stretch = |case: &ListedCase<IdleOrigin, IdleEnd>| stretches.lock().expect("a list").push(*case);
            let cases = why::Cases { wait: &wait, stretch: &stretch };
            let probed = why::Probed { attempts: true, gate: true, verdicts: true };
            // A pass that begins again lists all again.
            let why = || {
                waits.lock().expect("a list").clear();
                stretches.lock().expect("a list").clear();
                Why::new(&options).with_probes(probed).listing(&cases)
            };
            let _ = pass(events, window, why);
            (waits.into_inner().expect("a list"), stretches.into_inner().expect("a list"))
        };
        let (mut whole, mut idle) = found(Window::default());
        let (parts, idle_parts) = windows.iter().map(|window| found(*window)).unzip();
        let mut parts: Vec<ListedCase<WaitOrigin, WaitEnd>> = joined(
            parts,
            windows,
            |c| (c.pid, c.cpu),
            |c| (c.start, c.end, c.origin == WaitOrigin::AtStart, c.ending == WaitEnd::WindowEnd),
            |a, b| ListedCase { start: a.start, origin: a.origin, violated_ns: a.violated_ns + b.violated_ns, ..*b },
        );
        whole.sort_by_key(|c| (c.start, c.end, c.cpu, c.pid));
        parts.sort_by_key(|c| (c.start, c.end, c.cpu, c.pid));
        // An event that changes an origin in a later window is not in the first.
        for (case, part) in whole.iter().zip(&mut parts) {
            let is_divided = |edge: Ts| case.start < edge && edge <= case.end;
            let is_placed = matches!(part.origin, WaitOrigin::Woken(..) | WaitOrigin::Forked);
            let mut edges = windows.iter().filter_map(|window| window.from);
            if case.origin == WaitOrigin::Overtaken && is_placed && edges.any(is_divided) {
                part.origin = WaitOrigin::Overtaken;
            }
        }
        assert_eq!(difference(&whole, &parts), None, "{name} {windows:?}");
        let mut idle_parts: Vec<ListedCase<IdleOrigin, IdleEnd>> = joined(
            idle_parts,
            windows,
            |c| c.cpu,
            |c| (c.start, c.end, c.origin == IdleOrigin::AtStart, c.ending == IdleEnd::WindowEnd),
            |a, b| ListedCase {
                start: a.start,
                origin: a.origin,
                missed: a.missed,
                violated_ns: a.violated_ns + b.violated_ns,
                ..*b
            },
        );
        idle.sort_by_key(|c| (c.start, c.end, c.cpu));
        idle_parts.sort_by_key(|c| (c.start, c.end, c.cpu));
        // A migration can have been of a wakeup that was not recorded, which an event of an earlier window shows (6.1).
        for (case, part) in idle.iter().zip(&mut idle_parts) {
            if (case.ending, part.ending) == (IdleEnd::Moved(Cause::Wakeup), IdleEnd::Unknown) {
                part.ending = case.ending;
            }
        }
        assert_eq!(difference(&idle, &idle_parts), None, "{name} {windows:?}");
        let mut compared = compared.lock().expect("numbers");
        *compared = (compared.0 + whole.len(), compared.1 + idle.len());
    });
    let (waits, stretches) = compared.into_inner().expect("numbers");
    assert!(waits > 5_000 && stretches > 5_000, "{waits} {stretches}");
}

/// The idling in violation by origin, in nanoseconds, and the ends of waits.
fn why_of(window: &[&str]) -> (BTreeMap<String, u64>, BTreeMap<String, u64>) {
    let file = fixture("cgroup-cpuset.dat");
    let command = ["why", file.to_str().expect("a path"), "--waiters", "all", "--json", "-q"];
    let json: Value = serde_json::from_slice(&schedviz(&[&command, window].concat()).success().stdout).expect("JSON");
    let sums = |table: &str, word: &str| {
        let mut sums = BTreeMap::new();
        for row in json["runs"][0][table]["rows"].as_array().expect("rows") {
            let cause = row[format!("{word}_cause")].as_str().map_or(String::new(), |cause| format!("/{cause}"));
            let name = format!("{}{cause}", row[word].as_str().expect("a word"));
            *sums.entry(name).or_default() += row["total_ns"].as_u64().expect("a time");
        }
        sums
    };
    (sums("idling", "began"), sums("waiting", "ended"))
}

#[test]
fn a_stoppers_move_before_the_window_is_why_the_cpu_idles() {
    // The stopper moves a task just before the window and is switched out in it.
    let window = ["--min", "@217.561878184", "--max", "@218.0"];
    let (idling, _) = why_of(&window);
    // 128.4 ms of it were taken for a sleep of the stopper.
    assert_eq!((idling["moved/affinity"], idling["slept"]), (554_099_918, 1_005_198_489), "{idling:?}");
    let (whole, _) = why_of(&["--min", "@217.5", "--max", "@218.0"]);
    assert_eq!((whole["moved/affinity"], whole["slept"]), (557_352_485, 1_029_241_177), "{whole:?}");
}

fn task(pid: i32) -> TaskRef {
    let name = if pid == 20 { "migration/0" } else { "task" };
    TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(name.as_bytes()) }
}

fn at(ms: i64, cpu: u32, pid: i32, kind: EventKind) -> SchedEvent {
    SchedEvent { ts: Ts(ms * 1_000_000), cpu: Cpu(cpu), pid: Pid(pid), flags: 0, kind }
}

fn switch(ms: i64, cpu: u32, prev: i32, state: PrevState, next: i32) -> SchedEvent {
    at(ms, cpu, prev, EventKind::Switch { prev: task(prev), state, next: task(next) })
}

/// Task 7 wakes the stopper of CPU 0, which moves it to CPU 1, where it runs; 50 ms later it executes a program.
fn moved_for_an_exec(exec: bool) -> Vec<SchedEvent> {
    let (runs, sleeps) = (PrevState::RUNNABLE, PrevState::asleep(1));
    let mut events = vec![
        at(0, 0, 7, EventKind::Other { id: 1 }),
        at(0, 1, 0, EventKind::Other { id: 1 }),
        at(10, 0, 7, EventKind::Waking { task: task(20), target: Cpu(0) }),
        at(11, 0, 7, EventKind::Wakeup { task: task(20), target: Cpu(0) }),
        switch(12, 0, 7, runs, 20),
        at(13, 0, 20, EventKind::Migrate { task: task(7), orig: Cpu(0), dest: Cpu(1) }),
        switch(14, 0, 20, sleeps, 0),
        switch(15, 1, 0, runs, 7),
    ];
    if exec {
        events.push(at(65, 1, 7, EventKind::Exec { pid: Pid(7), old_pid: Pid(7), program: Comm::new(b"make") }));
    }
    events.push(switch(20_000, 1, 7, sleeps, 0));
    events
}

/// The causes of the migrations in a window, and the times until their tasks ran.
fn causes(events: &[SchedEvent], from: i64, to: i64) -> Vec<(Cause, Option<Dur>)> {
    let (topology, cpus) = (Topology::default(), ChosenCpus::default());
    let window = Window { from: Some(Ts(from * 1_000_000)), to: Some(Ts(to * 1_000_000)) };
    let balance = || events::Balance::new(&topology, &cpus, Ts(0), Ts(1)).listing(true);
    let found = pass(events, window, balance).migrations.expect("a list");
    found.into_iter().map(|m| (m.cause, m.until_run_ns)).collect()
}

#[test]
fn the_waking_of_a_stopper_before_the_window_decides() {
    let ran = Some(Dur(2_000_000));
    let events = moved_for_an_exec(false);
    // The whole, and windows that begin before the waking, behind it, and at the move.
    for from in [0, 10, 11, 12, 13] {
        assert_eq!(causes(&events, from, 5_000), [(Cause::Affinity, ran)], "from {from} ms");
    }
    assert_eq!(causes(&events, 14, 5_000), [], "the move is before the window");
}

#[test]
fn an_exec_behind_the_window_decides() {
    let ran = Some(Dur(2_000_000));
    let (with, without) = (moved_for_an_exec(true), moved_for_an_exec(false));
    // The window ends between the move and the run, between the run and the exec, and behind both.
    for to in [14, 15, 20, 65, 66, 5_000] {
        assert_eq!(causes(&with, 0, to), [(Cause::Exec, ran)], "to {to} ms");
        assert_eq!(causes(&without, 0, to), [(Cause::Affinity, ran)], "to {to} ms");
    }
    // Ten seconds behind the window, and no further.
    let late = |ms| {
        let mut events = without.clone();
        events.insert(8, at(ms, 1, 7, EventKind::Exec { pid: Pid(7), old_pid: Pid(7), program: Comm::new(b"make") }));
        causes(&events, 0, 20)
    };
    assert_eq!((late(10_020), late(10_021)), (vec![(Cause::Exec, ran)], vec![(Cause::Affinity, ran)]));
}

/// The tasks that leave the CPUs first behind a window, with their priorities then.
fn run_ends(events: &[SchedEvent], window: Window) -> Vec<utilization::RunEnd> {
    let Some(to) = window.to else { return Vec::new() };
    let mut ends: BTreeMap<Cpu, Option<utilization::RunEnd>> = BTreeMap::new();
    for event in events.iter().filter(|event| event.ts >= to && event.ts <= to.after(sched::analysis::BEHIND)) {
        let end = match event.kind {
            EventKind::Switch { prev, .. } => {
                Some(utilization::RunEnd { cpu: event.cpu, pid: prev.pid, prio: prev.prio })
            }
            EventKind::Lost { .. } | EventKind::Offline => None,
            _ => continue,
        };
        ends.entry(event.cpu).or_insert(end);
    }
    ends.into_values().flatten().collect()
}

/// The sums over a window, by name.
fn sums(events: &[SchedEvent], window: Window) -> BTreeMap<String, u128> {
    let (from, to) = window.within(events[0].ts, events[events.len() - 1].ts);
    let conserve = workcons::Options::default();
    let waits = latency::Options::default();
    let shares = fairness::Options { by: fairness::GroupBy::Command, ..fairness::Options::new(from, to) };
    let cpus: BTreeSet<_> = events.iter().map(|event| (event.cpu, None)).collect();
    let interval = Dur(to.since(from).0.max(1));
    let used = utilization::Options {
        from,
        to,
        zero: from,
        cpus: cpus.into_iter().collect(),
        all_cpus: Vec::new(),
        group_name: String::new(),
        interval,
        tasks: None,
        topology: Topology::default(),
        balance_interval: interval,
        ends: run_ends(events, window),
    };
    let analyses = || {
        let laws = (Laws::default(), FromTrace::default());
        let times = (WorkConservation::new(&conserve), Fairness::new(&shares), Utilization::new(&used));
        (laws, times, Latency::new(&waits))
    };
    let ((laws, columns), (violation, shares, used), waits) = pass(events, window, analyses);
    let mut sums = BTreeMap::new();
    let mut add = |name: String, number: u64| *sums.entry(name).or_default() += u128::from(number);
    let times = [("busy", laws.busy), ("idle", laws.idle), ("unknown", laws.unknown), ("offline", laws.offline)];
    let more = [("waiting", laws.waiting), ("throttled", laws.throttled), ("window", laws.window)];
    times.into_iter().chain(more).for_each(|(name, time)| add(name.to_owned(), time.0));
    add("events".to_owned(), laws.events);
    for (name, of) in [("all", &violation.all), ("movable", &violation.movable)] {
        add(format!("violation {name}"), of.ns);
        add(format!("waiting in violation {name}"), of.thread_ns);
    }
    add("switches to tasks".to_owned(), columns.arrivals);
    columns.migrations.iter().zip(Cause::ALL).for_each(|(n, cause)| add(format!("migrations: {cause:?}"), *n));
    for member in &shares.members {
        add(format!("{} runs", member.name), member.run_ns.0);
        add(format!("{} waits", member.name), member.wait_ns.0);
    }
    for (name, of) in [("runs", &shares.runs), ("waits", &shares.waits)] {
        add(format!("number of {name}"), of.count());
        add(format!("length of {name}"), of.total().0);
    }
    add("utilization: idle".to_owned(), used.all.idle_ns);
    let tasks = used.all.other_ns + used.all.app_ns.unwrap_or(0);
    let real_time = [used.all.rt_ns, used.all.rt_possible_ns];
    let classes = [tasks, used.all.kernel_ns, used.all.stopper_ns, used.all.irq_ns, real_time[0], real_time[1]];
    classes.into_iter().enumerate().for_each(|(class, ns)| add(format!("utilization: class {class}"), ns));
    for row in &waits.rows {
        for measured in &row.measures {
            let name = format!("{} of {}", measured.measure.name(), row.command.unwrap_or_default());
            add(format!("number of {name}"), measured.summary.count);
            add(name, measured.summary.total_ns.0);
        }
    }
    add("throttled waits".to_owned(), waits.throttled.map_or(0, |throttled| throttled.total_ns.0));
    add("wakeups without a waking".to_owned(), waits.without_waking.unwrap_or(0));
    sums.retain(|_, number| *number > 0);
    sums
}

#[test]
fn sums_of_adjacent_windows_are_those_of_the_whole() {
    let kinds = Mutex::new(BTreeSet::new());
    on_everything(|name, events, windows| {
        let whole: Vec<(String, u128)> = sums(events, Window::default()).into_iter().collect();
        let mut all: BTreeMap<String, u128> = BTreeMap::new();
        for window in windows {
            for (name, number) in sums(events, *window) {
                *all.entry(name).or_default() += number;
            }
        }
        let all: Vec<(String, u128)> = all.into_iter().collect();
        let differ = whole.iter().filter(|sum| !all.contains(sum)).chain(all.iter().filter(|sum| !whole.contains(sum)));
        let differ: Vec<_> = differ.collect();
        assert!(differ.is_empty(), "{name} {windows:?}: {differ:?}");
        kinds.lock().expect("names").extend(whole.into_iter().map(|(name, _)| name));
    });
    assert!(kinds.into_inner().expect("names").len() > 500);
}

#[test]
fn every_interval_of_latency_counts_where_it_ends() {
    use latency::Measure::{New, Preempted, Run, Sleep, Wakeup};
    let (runs, sleeps) = (PrevState::RUNNABLE, PrevState::asleep(1));
    let events = [
        at(0, 0, 0, EventKind::Other { id: 1 }),
        at(10, 1, 9, EventKind::Waking { task: task(7), target: Cpu(0) }),
        at(10, 1, 9, EventKind::Wakeup { task: task(7), target: Cpu(0) }),
        switch(20, 0, 0, runs, 7),
        at(25, 1, 9, EventKind::WakeupNew { task: task(8), target: Cpu(0) }),
        switch(40, 0, 7, runs, 8),
        switch(80, 0, 8, sleeps, 7),
        switch(100, 0, 7, sleeps, 0),
        at(190, 1, 9, EventKind::Waking { task: task(7), target: Cpu(0) }),
        at(190, 1, 9, EventKind::Wakeup { task: task(7), target: Cpu(0) }),
        switch(200, 0, 0, runs, 7),
        at(300, 0, 7, EventKind::Other { id: 1 }),
    ];
    let found = |from: i64, to: i64| {
        let options = latency::Options::default();
        let window = Window { from: Some(Ts(from * 1_000_000)), to: Some(Ts(to * 1_000_000)) };
        let report = pass(&events, window, || Latency::new(&options));
        [Wakeup, New, Preempted, Run, Sleep].map(|measure| {
            let of = report.measures[measure as usize];
            assert_eq!(of.measure, measure);
            (of.summary.count, of.summary.total_ns.0 / 1_000_000, of.began_before)
        })
    };
    // Wakeups of 10 ms each, 15 ms until the new task ran, 40 ms of preemption, runs of 20, 40 and 20 ms, a sleep of 90.
    assert_eq!(found(0, 301), [(2, 20, 0), (1, 15, 0), (1, 40, 0), (3, 80, 0), (1, 90, 0)]);
    // Each in one of two windows, with its full length there.
    assert_eq!(found(0, 35), [(1, 10, 0), (0, 0, 0), (0, 0, 0), (0, 0, 0), (0, 0, 0)]);
    assert_eq!(found(35, 301), [(1, 10, 0), (1, 15, 1), (1, 40, 0), (3, 80, 1), (1, 90, 0)]);
    assert_eq!(found(195, 301), [(1, 10, 1), (0, 0, 0), (0, 0, 0), (0, 0, 0), (0, 0, 0)]);
    assert_eq!(found(150, 301), [(1, 10, 0), (0, 0, 0), (0, 0, 0), (0, 0, 0), (1, 90, 1)]);
}

#[test]
fn a_part_knows_what_precedes_and_follows_it() {
    let folder = scratch("windows-cut");
    let path = folder.join("whole.dat");
    std::fs::write(&path, TraceBuilder::default().events(&moved_for_an_exec(true)).build()).expect("written");
    for (from, to) in [("0", "14ms"), ("0", "20ms"), ("11ms", "14ms"), ("13ms", "100ms"), ("12ms", "66ms")] {
        let window = ["--min", from, "--max", to].map(str::to_owned);
        let part = crate::cut::cut(&folder, &path, "part.dat", &window);
        let causes = |trace: &std::path::Path, window: &[String]| {
            let report = crate::cut::outcome(&folder, trace, &["migrations"], window).expect("a document");
            let listed = report["runs"][0]["migrations"].as_array().or(report["migrations"].as_array());
            let listed = listed.expect("a list").iter();
            listed.map(|m| (m["cause"].clone(), m["until_run_ns"].clone())).collect::<Vec<_>>()
        };
        let expected = vec![(Value::from("exec"), Value::from(2_000_000))];
        assert_eq!(causes(&path, &window), expected, "{window:?} of the whole");
        assert_eq!(causes(&part, &[]), expected, "{window:?} as a part");
    }
}

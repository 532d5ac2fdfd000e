//! `schedviz utilization`: agreement with the simulator on simulated runs, and the sums that must hold on recordings.

use crate::support::{events, fixture, recordings, schedviz, scratch, utilization_of_all};
use parse::Trace;
use sched::pass::{EventSource, Window};
use sched::{ChosenCpus, Comm, Cpu, Current, Dur, EventKind, Pass, Pid, PrevState, SchedEvent, TaskRef, Ts};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use testkit::{Laws, Simulation, TraceBuilder};
use utilization::{Options, Underload, Utilization, UtilizationReport};

fn options(events: &[SchedEvent], parts: u64) -> Options {
    let (from, to) = (events.first().expect("events").ts, events.last().expect("events").ts);
    Options { interval: Dur((to.since(from).0 / parts).max(1)), ..utilization_of_all(events, from, to) }
}

fn measure(events: &[SchedEvent], options: &Options) -> UtilizationReport {
    Pass::over(events).run(|| Utilization::new(options)).unwrap_or_else(|never| match never {}).output
}

#[test]
fn time_is_divided_without_rest() {
    for seed in crate::support::seeds(80) {
        let sim = Simulation::any(seed, 1 + (seed % 6) as u32, 400);
        let (lossy, _) = sim.lossy(seed);
        for events in [&sim.events, &lossy] {
            let options = options(events, 1 + seed % 11);
            let report = measure(events, &options);
            let laws = Pass::over(events.as_slice()).run(Laws::default).unwrap_or_else(|never| match never {}).output;
            let window = options.to.since(options.from).0;
            assert_eq!(report.all.total(), window * options.cpus.len() as u64, "seed {seed}");
            assert_eq!(
                [report.all.busy(), report.all.idle_ns, report.all.unknown_ns, report.all.offline_ns],
                [laws.busy, laws.idle, laws.unknown, laws.offline].map(|time| time.0),
                "seed {seed}"
            );
            for class in 0..utilization::CLASSES {
                let whole = report.all.all()[class];
                assert_eq!(report.intervals.iter().map(|i| i.shares.all()[class]).sum::<u64>(), whole);
                assert_eq!(report.cpus.iter().map(|c| c.shares.all()[class]).sum::<u64>(), whole);
                assert_eq!(report.columns.iter().map(|(_, _, s)| s.all()[class]).sum::<u64>(), whole);
            }
            for interval in &report.intervals {
                assert_eq!(interval.shares.total(), interval.length_ns.0 * options.cpus.len() as u64);
            }
        }
    }
}

#[test]
fn recordings_are_divided_without_rest() {
    for path in recordings() {
        let trace = Trace::open(&path, parse::Options::default()).expect("a recording");
        let Ok(mut events) = trace.events() else { continue };
        let Ok(extent) = events.extent() else { continue };
        let options = Options {
            from: extent.start,
            to: extent.end,
            zero: extent.start,
            cpus: trace.observed().into_iter().map(|cpu| (cpu, None)).collect(),
            ..options(&[event(0, 0, EventKind::Other { id: 0 })], 1)
        };
        let options = Options { interval: Dur(50_000_000), ..options };
        let window = Window { from: Some(extent.start), to: Some(extent.end) };
        let report = Pass::over(events).window(window).run(|| Utilization::new(&options)).expect("a pass").output;
        let whole = extent.end.since(extent.start).0 * options.cpus.len() as u64;
        assert_eq!(report.all.total(), whole, "{}", path.display());
    }
}

#[test]
fn of_some_cpus_only_those_stand_beside_one_another() {
    let mut idled = 0;
    for seed in crate::support::seeds(60) {
        let sim = Simulation::any(seed, 3 + (seed % 6) as u32, 400);
        for events in [&sim.events, &sim.lossy(seed).0] {
            let mut options = options(events, 3);
            options.balance_interval = Dur(1);
            let all = options.cpus.clone();
            for shown in [all.len(), all.len() / 2, 1] {
                options.cpus = all[..shown].to_vec();
                let conserve = workcons::Options {
                    cpus: ChosenCpus::only(options.cpus.iter().map(|(cpu, _)| *cpu)),
                    ..workcons::Options::default()
                };
                let pass = Pass::over(events.as_slice()).run(|| workcons::WorkConservation::new(&conserve));
                let violated = pass.unwrap_or_else(|never| match never {}).output.all.ns;
                assert_eq!(measure(events, &options).idling_ns, Some(violated), "seed {seed}, {shown} CPUs");
                idled += u64::from(violated > 0 && shown < all.len());
            }
        }
    }
    assert!(idled > 20, "{idled}");
}

fn event(ts: i64, pid: i32, kind: EventKind) -> SchedEvent {
    SchedEvent { ts: Ts(ts), cpu: Cpu(0), pid: Pid(pid), flags: 0, kind }
}

#[test]
fn interrupts_count_for_themselves() {
    let entry = |ts, entry| event(ts, 0, EventKind::Interrupt { id: 2, entry });
    // Idle from 0 to 100 but for a handler from 10 to 40, in which another is nested; the entry of the
    // last one was lost.
    let events = [
        event(0, 0, EventKind::Other { id: 1 }),
        entry(10, true),
        entry(20, true),
        entry(30, false),
        entry(40, false),
        entry(50, false),
        event(100, 0, EventKind::Other { id: 1 }),
    ];
    let report = measure(&events, &options(&events, 4));
    assert_eq!((report.all.irq_ns, report.all.idle_ns, report.interrupts_recorded), (30, 70, true));
    assert_eq!(report.cpus[0].irq_in_tasks_ns, 0);
    let irq: Vec<u64> = report.intervals.iter().map(|i| i.shares.irq_ns).collect();
    assert_eq!(irq, [15, 15, 0, 0]);
    // A handler from 10 on, whose end is lost at 40, on a CPU whose task is unknown since the loss before.
    let lost = |ts| event(ts, 0, EventKind::Lost { count: None });
    let events = [event(0, 0, EventKind::Other { id: 1 }), lost(5), entry(10, true), lost(40), lost(100)];
    let report = measure(&events, &options(&events, 4));
    assert_eq!((report.all.irq_ns, report.all.total()), (30, 100));
    // A handler from 10 to 40, during which the idle task gives way to task 7 at 15: 25 of it are within the slice of 7.
    let task = |pid| sched::TaskRef { pid: Pid(pid), prio: 120, comm: sched::Comm::new(b"t") };
    let state = sched::PrevState::RUNNABLE;
    let events = [
        event(0, 0, EventKind::Other { id: 1 }),
        entry(10, true),
        event(15, 0, EventKind::Switch { prev: task(0), state, next: task(7) }),
        entry(40, false),
        event(100, 7, EventKind::Other { id: 1 }),
    ];
    let cpu = measure(&events, &options(&events, 1)).cpus[0];
    assert_eq!((cpu.shares.irq_ns, cpu.irq_in_tasks_ns, cpu.shares.idle_ns), (30, 25, 10));
    // The slice of 7 has 85.
    assert_eq!(cpu.shares.other_ns + cpu.irq_in_tasks_ns, 85);
}

#[test]
fn a_herd_is_followed_until_it_has_run() {
    use sched::{Comm, PrevState, TaskRef};
    let task = |pid| TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(b"t") };
    let on = |ts, cpu, pid, kind| SchedEvent { ts: Ts(ts), cpu: Cpu(cpu), pid: Pid(pid), flags: 0, kind };
    // Each pair of CPUs has ten tasks of its own, the last two of which run at first.
    let herd = |pair: u32| {
        let (from, to) = (Cpu(2 * pair), Cpu(2 * pair + 1));
        let pid = |n: i32| 10 * pair as i32 + n;
        let mut events =
            vec![on(0, from.0, pid(10), EventKind::Other { id: 1 }), on(0, to.0, pid(9), EventKind::Other { id: 1 })];
        let wake = |n| on(1, from.0, pid(10), EventKind::Wakeup { task: task(pid(n)), target: from });
        events.extend((1..=4).map(wake));
        let moved = |n| EventKind::Migrate { task: task(pid(n)), orig: from, dest: to };
        events.extend((1..=4).map(|n| on(10 + i64::from(n), to.0, pid(9), moved(n))));
        let run = |n: i32| {
            let (prev, next) = (task(pid(if n == 1 { 9 } else { n - 1 })), task(pid(n)));
            on(100 * i64::from(n), to.0, prev.pid.0, EventKind::Switch { prev, state: PrevState::asleep(1), next })
        };
        events.extend((1..=4).map(run));
        events
    };
    // As many at a time as there may be.
    for pairs in [1, 40] {
        let mut events: Vec<SchedEvent> = (0..pairs).flat_map(herd).collect();
        events.sort_by_key(|event| event.ts);
        let report = measure(&events, &options(&events, 1));
        assert_eq!(report.herds.len(), pairs as usize);
        for herd in &report.herds {
            // The fourth came at 14; at 300 the third ran, and one was left.
            assert_eq!((herd.herd.tasks, herd.queue, herd.drained_after_ns), (4, 4, Some(Dur(286))));
        }
    }
    // Another one comes when they have nearly all run: it waits for them, and is of the herd.
    let mut events = herd(0);
    let late = EventKind::Wakeup { task: task(5), target: Cpu(0) };
    let moved = EventKind::Migrate { task: task(5), orig: Cpu(0), dest: Cpu(1) };
    let waker = EventKind::Wakeup { task: task(6), target: Cpu(1) };
    events.extend([on(310, 0, 10, late), on(320, 1, 3, waker), on(330, 1, 3, moved)]);
    events.sort_by_key(|event| event.ts);
    let report = measure(&events, &options(&events, 1));
    let [herd] = report.herds.as_slice() else { panic!("one herd: {:?}", report.herds) };
    assert_eq!((herd.herd.tasks, herd.herd.end, herd.queue, herd.drained_after_ns), (5, Ts(330), 4, None));
}

#[test]
fn columns_count_what_the_simulator_did() {
    use schedstat::FromTrace;
    for seed in crate::support::seeds(60) {
        let sim = Simulation::any(seed, 1 + (seed % 6) as u32, 400);
        let events = sim.events.as_slice();
        let run = Pass::over(events).run(|| (FromTrace::default(), Laws::default()));
        let (found, laws) = run.unwrap_or_else(|never| match never {}).output;
        let count = |of: &dyn Fn(&EventKind) -> bool| events.iter().filter(|e| of(&e.kind)).count() as f64;
        let per_cpu = found.cpus as f64;
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-6, "seed {seed}: {a}, {b}");
        near(found.columns.sched * per_cpu, count(&|k| matches!(k, EventKind::Switch { .. })));
        near(
            found.columns.idle * per_cpu,
            count(&|k| matches!(k, EventKind::Switch { next, .. } if next.pid.is_idle())),
        );
        near(found.columns.wake * per_cpu, count(&|k| matches!(k, EventKind::Waking { .. })));
        assert_eq!(found.busy_ns, laws.busy.0);
        assert_eq!(found.migrations.iter().sum::<u64>() as f64, count(&|k| matches!(k, EventKind::Migrate { .. })));
        near(found.arrivals as f64, (found.columns.sched - found.columns.idle) * per_cpu);
        let observed: BTreeSet<Cpu> = events.iter().map(|e| e.cpu).collect();
        let (mut busy_ns, mut steals) = (0, 0.0);
        for cpu in observed {
            let run = Pass::over(events).run(|| FromTrace::only(ChosenCpus::only([cpu])));
            let alone = run.unwrap_or_else(|never| match never {}).output;
            let on =
                |of: &dyn Fn(&EventKind) -> bool| events.iter().filter(|e| e.cpu == cpu && of(&e.kind)).count() as f64;
            assert_eq!(alone.cpus, 1);
            near(alone.columns.sched, on(&|k| matches!(k, EventKind::Switch { .. })));
            near(alone.columns.wake, on(&|k| matches!(k, EventKind::Waking { .. })));
            let moves = count(&|k| matches!(k, EventKind::Migrate { orig, dest, .. } if *orig == cpu || *dest == cpu));
            assert_eq!(alone.migrations.iter().sum::<u64>() as f64, moves, "seed {seed}, CPU {cpu}");
            busy_ns += alone.busy_ns;
            steals += alone.columns.steal.unwrap_or_default();
        }
        assert_eq!(busy_ns, found.busy_ns);
        near(steals, found.columns.steal.unwrap_or_default() * per_cpu);
    }
}

/// The state behind each event: its instant, the CPUs that run a task, those that are unknown, and the number of runnable tasks.
#[derive(Default)]
struct Course(Vec<(Ts, Vec<Cpu>, usize, u32)>);

impl Course {
    fn note(&mut self, ts: Ts, state: &sched::SchedState) {
        let of = |wanted: fn(Current) -> bool| state.observed().filter(move |cpu| wanted(state.current(*cpu)));
        let running: Vec<Cpu> = of(|current| matches!(current, Current::Task(_))).collect();
        let unknown = of(|current| current == Current::Unknown).count();
        let waiting: u32 = state.observed().map(|cpu| state.queue_length(cpu)).sum();
        self.0.push((ts, running.clone(), unknown, running.len() as u32 + waiting));
    }
}

impl sched::Analysis for Course {
    type Output = Course;

    fn begin(&mut self, start: Ts, state: &sched::SchedState) {
        self.note(start, state);
    }

    fn after(&mut self, event: &SchedEvent, state: &sched::SchedState) {
        self.note(event.ts, state);
    }

    fn finish(mut self, end: Ts, state: &sched::SchedState) -> Course {
        self.note(end, state);
        self
    }
}

#[test]
fn underload_is_that_of_each_interval_by_itself() {
    let mut sums = 0;
    for seed in crate::support::seeds(30) {
        let cpus = 2 + (seed % 7) as u32;
        let sim = if seed % 3 == 0 { Simulation::any(seed, cpus, 400) } else { Simulation::balanced(seed, cpus, 400) };
        let options = options(&sim.events, 1);
        let span = options.to.since(options.from).0;
        for tick in [span / 90, span / 17, span / 3].map(|tick| Dur(tick.max(1))) {
            let analyses = || (Course::default(), Underload::new(&options, tick, false));
            let pass = Pass::over(sim.events.as_slice()).run(analyses);
            let (Course(course), ours) = pass.unwrap_or_else(|never| match never {}).output;
            let (mut intervals, mut doubtful, mut underload, mut max) = (0, 0, 0, 0);
            for nth in 0..span.div_ceil(tick.0) {
                let from = options.from.after(Dur(nth * tick.0));
                let to = from.after(tick).min(options.to);
                let (mut used, mut most, mut is_doubtful) = (BTreeSet::new(), 0, false);
                for pair in course.windows(2) {
                    let ((start, running, unknown, runnable), (end, ..)) = (&pair[0], &pair[1]);
                    if (*start).max(from) < (*end).min(to) {
                        used.extend(running.iter().copied());
                        most = most.max(*runnable);
                        is_doubtful |= *unknown > 0;
                    }
                }
                let over = (used.len() as u64).saturating_sub(u64::from(most));
                if is_doubtful {
                    doubtful += 1;
                } else {
                    (intervals, underload, max) = (intervals + 1, underload + over, max.max(over));
                }
            }
            let theirs = (ours.intervals, ours.unknown_intervals, ours.underload, ours.max_underload.map(u64::from));
            assert_eq!(theirs, (intervals, doubtful, Some(underload), Some(max)), "seed {seed}, {tick:?}");
            sums += underload;
        }
    }
    assert!(sums > 10, "{sums}");
}

/// The time of runs by the priorities at their starts and ends, by the switches alone; without idle tasks and stoppers, and each length.
fn runs_by_priorities(events: &[SchedEvent]) -> BTreeMap<(i32, i32), u64> {
    let (start, end) = (events[0].ts, events[events.len() - 1].ts);
    let mut open: BTreeMap<Cpu, (TaskRef, Ts)> = BTreeMap::new();
    let mut sums = BTreeMap::new();
    let mut add = |first: TaskRef, last: TaskRef, length: u64| {
        if !first.pid.is_idle() && !sched::kthread::is_any_stopper(first.comm) {
            *sums.entry((first.prio, last.prio)).or_default() += length;
        }
    };
    for event in events {
        if let EventKind::Switch { prev, next, .. } = event.kind {
            // The first priority that is seen counts for the time before.
            let (first, since) = open.insert(event.cpu, (next, event.ts)).unwrap_or((prev, start));
            assert_eq!(first.pid, prev.pid, "a switch is missing");
            add(first, prev, event.ts.since(since).0);
        }
    }
    open.into_values().for_each(|(first, since)| add(first, first, end.since(since).0));
    sums
}

/// The name of a row of tasks of which only the priority is known.
fn params_of(prio: i32) -> String {
    match prio {
        ..0 => "SCHED_DEADLINE".to_owned(),
        0..100 => format!("real-time {}", (99 - prio).max(1)),
        _ => format!("fair nice {}", prio - 120),
    }
}

/// Compares the real-time classes of a trace, and the rows of `fairness --by params`, with the switches.
fn compare_priorities(path: &Path) {
    let trace = Trace::open(path, parse::Options::default()).expect("a trace");
    let runs = runs_by_priorities(&events(&trace));
    let path = path.to_str().expect("a path");
    let report = |line: &[&str]| {
        let ran = schedviz(&[line, &[path, "--json", "-q"]].concat()).success();
        serde_json::from_slice::<Value>(&ran.stdout).expect("JSON")
    };
    let used = report(&["utilization"]);
    let sum =
        |is: fn(i32, i32) -> bool| -> u64 { runs.iter().filter(|((a, b), _)| is(*a, *b)).map(|(_, ns)| ns).sum() };
    let both = sum(|a, b| a < 100 && b < 100);
    let either = sum(|a, b| (a < 100) != (b < 100));
    let all = &used["all"];
    assert_eq!((&all["rt_ns"], &all["rt_possible_ns"]), (&both.into(), &either.into()), "{path}: {runs:?}");
    let mut expected: BTreeMap<String, u64> = BTreeMap::new();
    for ((first, last), ns) in runs.iter().filter(|((first, last), _)| first != last) {
        let name = format!("{} or {}", params_of(*first), params_of(*last));
        *expected.entry(name).or_default() += ns;
    }
    let shares = report(&["fairness", "--by", "params"]);
    let rows = shares["members"].as_array().expect("rows").iter();
    let rows =
        rows.map(|row| (row["name"].as_str().expect("a name").to_owned(), row["run_ns"].as_u64().expect("a time")));
    let found: BTreeMap<String, u64> = rows.filter(|(name, ns)| name.contains(" or ") && *ns > 0).collect();
    assert_eq!(found, expected, "{path}");
}

/// Task 7 executes a program 100 ms after it was switched in, and leaves its CPU as a real-time task after 950 ms, as in rt.dat of 6.12.
#[test]
fn a_run_within_which_a_task_becomes_real_time_is_named_with_both() {
    const MS: i64 = 1_000_000;
    let task = |pid: i32, prio, name: &str| TaskRef { pid: Pid(pid), prio, comm: Comm::new(name.as_bytes()) };
    let at = |ms: i64, pid: i32, kind| SchedEvent { ts: Ts(ms * MS), cpu: Cpu(0), pid: Pid(pid), flags: 0, kind };
    let (idle, runs) = (task(0, 120, "swapper/0"), PrevState::RUNNABLE);
    let switch = |ms, prev: TaskRef, next| at(ms, prev.pid.0, EventKind::Switch { prev, state: runs, next });
    let exec = EventKind::Exec { pid: Pid(7), old_pid: Pid(7), program: Comm::new(b"hog") };
    let list = [
        switch(0, task(9, 120, "sh"), idle),
        switch(50, idle, task(7, 120, "chrt")),
        at(150, 7, exec),
        switch(1000, task(7, 89, "hog"), task(9, 120, "sh")),
        switch(1200, task(9, 120, "sh"), task(7, 89, "hog")),
        switch(1500, task(7, 89, "hog"), idle),
        at(1600, 0, EventKind::Other { id: 1 }),
    ];
    let folder = scratch("utilization-priorities");
    let path = folder.join("changes.dat");
    std::fs::write(&path, TraceBuilder::default().events(&list).build()).expect("written");
    compare_priorities(&path);
    let times = |window: &[&str]| {
        let line = [&["utilization", path.to_str().expect("a path"), "--json", "-q"], window].concat();
        let report: Value = serde_json::from_slice(&schedviz(&line).success().stdout).expect("JSON");
        ["rt_ns", "rt_possible_ns", "idle_ns"].map(|name| report["all"][name].as_u64().expect("a time") / MS as u64)
    };
    assert_eq!(times(&[]), [300, 950, 150]);
    // Both parts of the run are what its end shows, wherever a window cuts it.
    for edge in ["100ms", "150ms", "600ms"] {
        let [early, late] = [times(&["--max", edge]), times(&["--min", edge])];
        assert_eq!([0, 1, 2].map(|nth| early[nth] + late[nth]), [300, 950, 150], "{edge}: {early:?} {late:?}");
    }
    let text = schedviz(&["utilization", path.to_str().expect("a path"), "-q"]).success().text();
    assert!(text.contains("%rt?") && text.contains("rt?: runs of 950.00 ms in all"), "{text}");
}

#[test]
fn recorded_runs_are_real_time_by_the_priorities_at_both_ends() {
    compare_priorities(&fixture("rt-balance-6.1.dat"));
    let Some(traces) = std::env::var_os("SCHEDVIZ_TRACES") else { return };
    for folder in ["linux-6.12-cpus8-nodes2", "linux-7.2-cpus4", "linux-6.1-cpus16-nodes2"] {
        compare_priorities(&Path::new(&traces).join(folder).join("rt.dat"));
    }
}

//! The four kinds of queued time against a second implementation, which looks at every instant anew.

mod instants;

use instants::{Machine, Unshown, prios};
use sched::pass::{Extent, Pieces, Sink};
use sched::probe::Probe;
use sched::{
    Affinity, Analysis, ChosenCpus, Comm, Cpu, CpuCapacities, CpuSet, EventKind, EventSource, Pass, PerTask, Pid,
    QueuedAsk, QueuedKinds, QueuedReading, QueuedSums, QueuedTimes, SchedEvent, SchedIdleTasks, SchedState, TaskState,
    Ts,
};
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;
use testkit::Simulation;
use workcons::{Options, WorkConservation};

/// The kinds of the queued time of each task.
struct KindsByTask {
    kinds: QueuedKinds,
    begun: PerTask<QueuedReading>,
    sums: BTreeMap<i32, QueuedTimes>,
}

impl KindsByTask {
    fn new(affinity: Option<Arc<Affinity>>) -> KindsByTask {
        let kinds = QueuedKinds::new(ChosenCpus::default(), affinity);
        KindsByTask { kinds, begun: PerTask::default(), sums: BTreeMap::new() }
    }

    fn end(&mut self, task: &sched::Task, cpu: Cpu, now: Ts) {
        let begun = self.begun.take(task.id()).unwrap_or_else(|| self.kinds.first_reading(task, cpu));
        let times = self.kinds.between(&begun, &self.kinds.end_wait(&begun, now)).expect("the same CPU");
        self.sums.entry(task.pid.0).or_default().add(&times);
    }
}

impl Analysis for KindsByTask {
    type Output = BTreeMap<i32, QueuedTimes>;

    fn begin(&mut self, start: Ts, state: &SchedState) {
        self.kinds.begin(start, state);
    }

    fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        self.kinds.follow(event.ts, state);
        for (task, span) in state.turns() {
            if let TaskState::Waiting(cpu) = span.state
                && state.is_observed(cpu)
            {
                self.end(task, cpu, event.ts);
            }
            if let TaskState::Waiting(cpu) = span.next {
                let reading = self.kinds.begin_wait(task, cpu, event.ts, state);
                self.begun.insert(task.id(), reading);
            }
        }
    }

    fn finish(mut self, end: Ts, state: &SchedState) -> Self::Output {
        for task in state.living() {
            if let TaskState::Waiting(cpu) = task.state
                && state.is_observed(cpu)
            {
                self.end(task, cpu, end);
            }
        }
        self.sums.retain(|_, times| times.total() > 0);
        self.sums
    }
}

/// Events whose times are multiplied, so that some waits on idle CPUs are longer than a millisecond.
fn slowed(events: &[SchedEvent], by: i64) -> Vec<SchedEvent> {
    events.iter().map(|event| SchedEvent { ts: Ts(event.ts.0 * by), ..*event }).collect()
}

/// Lists of usable CPUs: two CPUs, two others, one, or all, by the PID.
fn lists(events: &[SchedEvent]) -> BTreeMap<i32, BTreeSet<u32>> {
    let cpus: BTreeSet<u32> = events.iter().map(|event| event.cpu.0).collect();
    let mut pids: BTreeSet<i32> = events.iter().map(|event| event.pid.0).collect();
    for event in events {
        match event.kind {
            EventKind::Switch { prev, next, .. } => pids.extend([prev.pid.0, next.pid.0]),
            EventKind::Wakeup { task, .. } | EventKind::WakeupNew { task, .. } => drop(pids.insert(task.pid.0)),
            EventKind::Migrate { task, .. } => drop(pids.insert(task.pid.0)),
            EventKind::Fork { child, .. } => drop(pids.insert(child.0)),
            _ => {}
        }
    }
    let set = |pid: i32| match pid % 5 {
        1 => cpus.iter().copied().take(2).collect(),
        2 => cpus.iter().rev().copied().take(2).collect(),
        3 => cpus.iter().copied().filter(|cpu| *cpu == pid as u32 % cpus.len() as u32).collect(),
        _ => cpus.clone(),
    };
    pids.into_iter().map(|pid| (pid, set(pid))).collect()
}

fn affinity(events: &[SchedEvent], lists: &BTreeMap<i32, BTreeSet<u32>>) -> Affinity {
    let mut affinity = Affinity::new(events.iter().map(|event| event.cpu));
    for (pid, cpus) in lists {
        let set: CpuSet = cpus.iter().map(|cpu| Cpu(*cpu)).collect();
        affinity.add(sched::Pid(*pid), &set);
    }
    affinity
}

/// Events, with what no event shows.
struct Recording<'e>(&'e [SchedEvent], Unshown);

impl EventSource for Recording<'_> {
    type Error = Infallible;

    fn extent(&mut self) -> Result<Extent, Infallible> {
        let at_start = self.1.sched_idle.iter().map(|pid| Pid(*pid)).collect();
        let of_programs = self.1.of_programs.iter().map(|(pid, is_idle)| (Pid(*pid), *is_idle)).collect();
        let sched_idle = SchedIdleTasks { at_start, of_programs };
        let capacities = self.1.capacities.iter().map(|(cpu, capacity)| (Cpu(*cpu), *capacity as u32));
        let capacities = CpuCapacities::of(capacities);
        self.0.extent().map(|extent| Extent { sched_idle, capacities, ..extent })
    }

    fn events(&mut self, sink: &mut Sink<'_>) -> Result<(), Infallible> {
        self.0.events(sink)
    }
}

/// The kinds of the queued time of each task, and the report.
fn measured(events: &[SchedEvent], unshown: &Unshown) -> (BTreeMap<i32, QueuedTimes>, workcons::Report) {
    let affinity = (!unshown.lists.is_empty()).then(|| Arc::new(affinity(events, &unshown.lists)));
    let options = Options { unbalanced: true, affinity: affinity.as_deref(), ..Options::default() };
    let analyses = || (KindsByTask::new(affinity.clone()), WorkConservation::new(&options));
    let recording = Recording(events, unshown.clone());
    Pass::over(recording).run(analyses).unwrap_or_else(|never| match never {}).output
}

/// Compares both implementations; returns the sums over all tasks.
fn compare(name: &str, events: &[SchedEvent], restricted: bool) -> QueuedTimes {
    let lists = if restricted { lists(events) } else { BTreeMap::new() };
    compare_with(name, events, &Unshown { lists, ..Unshown::default() })
}

fn compare_with(name: &str, events: &[SchedEvent], unshown: &Unshown) -> QueuedTimes {
    let machine = Machine::of(events, unshown);
    let (kinds, report) = measured(events, unshown);
    let expected = machine.kinds();
    for pid in kinds.keys().chain(expected.keys()) {
        assert_eq!(kinds.get(pid), expected.get(pid), "{name}: {pid}");
    }
    let held = report.held_back.expect("wakeups");
    assert_eq!((held.ns, held.cpu_ns), machine.held(), "{name}: held back");
    let found = report.unbalanced.expect("the unbalanced time");
    assert_eq!((found.ns, found.cpu_ns, found.episodes), machine.unbalanced(), "{name}: unbalanced");
    let mut all = QueuedTimes::default();
    kinds.values().for_each(|times| all.add(times));
    all
}

/// The same events, with another priority for each task.
fn with_prios(events: &[SchedEvent], prio: impl Fn(i32, &SchedEvent) -> i32) -> Vec<SchedEvent> {
    let change = |event: &SchedEvent| {
        let mut event = *event;
        let at = event;
        let set = |task: &mut sched::TaskRef| task.prio = if task.pid.0 == 0 { 120 } else { prio(task.pid.0, &at) };
        match &mut event.kind {
            EventKind::Switch { prev, next, .. } => [prev, next].into_iter().for_each(set),
            EventKind::Wakeup { task, .. }
            | EventKind::WakeupNew { task, .. }
            | EventKind::Waking { task, .. }
            | EventKind::Migrate { task, .. } => set(task),
            _ => {}
        }
        event
    };
    events.iter().map(change).collect()
}

/// Nice values from −20 to 19, real-time and deadline priorities, and some that change every now and then, by the PID.
fn mixed(events: &[SchedEvent]) -> Vec<SchedEvent> {
    with_prios(events, |pid, event| match pid % 11 {
        0 => 139,
        1 => 100,
        2 => 125,
        3 => 50,
        4 => 119,
        5 => [120, 130, 110, 139, 98][(event.ts.0 / 2_000_000) as usize % 5],
        6 => -1,
        7 => 139 - (pid / 11) % 40,
        _ => 120,
    })
}

#[test]
fn a_second_implementation_agrees_on_the_four_kinds() {
    for restricted in [false, true] {
        let mut all = QueuedTimes::default();
        for seed in 0..12 {
            let simulation = Simulation::any(seed, 2 + (seed % 5) as u32, 150);
            let events = slowed(&simulation.events, 3_000);
            all.add(&compare(&format!("seed {seed}"), &events, restricted));
            if simulation.events.iter().all(|event| event.kind != EventKind::Offline) {
                let lossy = slowed(&simulation.lossy(seed).0, 3_000);
                all.add(&compare(&format!("seed {seed}, lossy"), &lossy, restricted));
            }
        }
        // Each kind occurs.
        let QueuedTimes { held_back_ns, beside_idle_ns, beside_shorter_ns, alike_ns, beside_forbidden_ns } = all;
        let least = held_back_ns.min(beside_idle_ns).min(beside_shorter_ns).min(alike_ns);
        assert!(least > all.total() / 1000, "{all:?}");
        // Kernel threads that are bound to their CPU may not use others either.
        assert!(beside_forbidden_ns > 0, "{all:?}");
    }
}

/// Nice values other than 0 in the first, the fourth, the seventh of nine parts of the time, and none behind them for hundreds of events.
fn now_and_then(events: &[SchedEvent]) -> Vec<SchedEvent> {
    let [begin, end] = [events.first(), events.last()].map(|event| event.map_or(0, |event| event.ts.0));
    let part = |event: &SchedEvent| 9 * (event.ts.0 - begin) / (end - begin).max(1);
    with_prios(events, |pid, event| if part(event) % 3 == 0 && pid % 3 == 0 { 125 } else { 120 })
}

#[test]
fn a_second_implementation_agrees_where_tasks_differ_in_weight_now_and_then() {
    let mut all = QueuedTimes::default();
    for seed in 0..6 {
        let simulation = Simulation::any(seed, 2 + (seed % 5) as u32, 700);
        let events = now_and_then(&slowed(&simulation.events, 3_000));
        all.add(&compare(&format!("seed {seed}"), &events, seed % 2 == 0));
    }
    assert!(all.beside_shorter_ns > all.total() / 100 && all.alike_ns > all.total() / 100, "{all:?}");
}

#[test]
fn a_second_implementation_agrees_where_tasks_differ_in_weight() {
    for restricted in [false, true] {
        let (mut all, mut by_length) = (QueuedTimes::default(), QueuedTimes::default());
        for seed in 0..6 {
            let simulation = Simulation::any(seed, 2 + (seed % 5) as u32, 120);
            let events = mixed(&slowed(&simulation.events, 3_000));
            all.add(&compare(&format!("seed {seed}"), &events, restricted));
            by_length.add(&compare(&format!("seed {seed}"), &with_prios(&events, |_, _| 120), restricted));
            if simulation.events.iter().all(|event| event.kind != EventKind::Offline) {
                let lossy = mixed(&slowed(&simulation.lossy(seed).0, 3_000));
                all.add(&compare(&format!("seed {seed}, lossy"), &lossy, restricted));
            }
        }
        assert!(all.beside_shorter_ns > all.total() / 100 && all.alike_ns > all.total() / 100, "{all:?}");
        assert_ne!(all.beside_shorter_ns, by_length.beside_shorter_ns);
    }
}

/// The same events, with records of calls that set the policies of tasks: every seventh event follows one.
fn with_policies(events: &[SchedEvent]) -> Vec<SchedEvent> {
    let mut all = Vec::new();
    for (nth, event) in events.iter().enumerate() {
        let of = prios(event).first().map(|(pid, _)| *pid).filter(|pid| nth % 7 == 0 && *pid > 0);
        all.extend(of.map(|pid| {
            let probe = Probe::SetsPolicy { pid: Pid(pid), is_sched_idle: (nth / 7) % 3 != 0, is_entered: false };
            SchedEvent { kind: EventKind::Probe { id: 1, probe }, ..*event }
        }));
        all.push(*event);
    }
    all
}

#[test]
fn a_second_implementation_agrees_where_tasks_are_of_sched_idle() {
    let (mut all, mut by_nice, mut forked) = (QueuedTimes::default(), QueuedTimes::default(), 0);
    for seed in 0..8 {
        let simulation = Simulation::any(seed, 2 + (seed % 5) as u32, 120);
        let events = mixed(&slowed(&simulation.events, 3_000));
        let lists = if seed % 2 == 0 { lists(&events) } else { BTreeMap::new() };
        let pids = events.iter().flat_map(prios).map(|(pid, _)| pid);
        let sched_idle = pids.filter(|pid| *pid > 0 && pid % 3 == 0).collect();
        let unshown = Unshown { lists, sched_idle, ..Unshown::default() };
        by_nice.add(&compare_with(
            &format!("seed {seed}, by nice"),
            &events,
            &Unshown { sched_idle: BTreeSet::new(), ..unshown.clone() },
        ));
        all.add(&compare_with(&format!("seed {seed}, at the start"), &events, &unshown));
        // Of every fork the list of the recorded command has two in three, of which one is of another policy than its parent.
        let forks = events.iter().filter_map(|event| match event.kind {
            EventKind::Fork { child, .. } => Some(child.0),
            _ => None,
        });
        let of_programs: BTreeMap<i32, bool> =
            forks.filter(|pid| pid % 3 != 0).map(|pid| (pid, pid % 3 == 1)).collect();
        forked += of_programs.len();
        let unshown = Unshown { of_programs, ..unshown };
        all.add(&compare_with(&format!("seed {seed}, from forks on"), &events, &unshown));
        all.add(&compare_with(&format!("seed {seed}, calls"), &with_policies(&events), &unshown));
    }
    assert!(all.beside_shorter_ns > all.total() / 100 && all.alike_ns > all.total() / 100, "{all:?}");
    assert_ne!(all.beside_shorter_ns, 3 * by_nice.beside_shorter_ns);
    assert!(forked > 0);
}

/// By hand: a task of `SCHED_IDLE` weighs 3, whatever its nice value is.
#[test]
fn a_task_of_sched_idle_is_no_queue_for_others() {
    let shorter = |cpus: &[&[(i32, i32)]], sched_idle: &[i32]| -> Vec<i32> {
        let unshown = Unshown { sched_idle: sched_idle.iter().copied().collect(), ..Unshown::default() };
        let kinds = measured(&hogs(cpus), &unshown).0;
        kinds.iter().filter(|(_, times)| times.beside_shorter_ns > 0).map(|(pid, _)| *pid).collect()
    };
    // Behind a task of nice 0 another one has 1024 of 2048, and beside one of SCHED_IDLE it would have 1024 of 1027. The lengths are 2 and 1.
    let cpus: [&[(i32, i32)]; 2] = [&[(1, 120), (2, 120)], &[(3, 120)]];
    assert_eq!((shorter(&cpus, &[]), shorter(&cpus, &[3])), (vec![], vec![2]));
    // 2 and 3 of SCHED_IDLE have 3 of 1030, and would have 3 of 1027 beside 4; beside 4 and 5 they would have 3 of 2051.
    let cpus: [&[(i32, i32)]; 2] = [&[(1, 120), (2, 120), (3, 120)], &[(4, 120)]];
    assert_eq!((shorter(&cpus, &[]), shorter(&cpus, &[2, 3])), (vec![2, 3], vec![2, 3]));
    assert_eq!(shorter(&[&[(1, 120), (2, 120), (3, 120)], &[(4, 120), (5, 120)]], &[2, 3]), Vec::<i32>::new());
}

#[test]
fn a_second_implementation_agrees_where_cpus_differ_in_capacity() {
    let (mut all, mut alike) = (QueuedTimes::default(), QueuedTimes::default());
    for seed in 0..8 {
        let simulation = Simulation::any(seed, 2 + (seed % 5) as u32, 120);
        let events = slowed(&simulation.events, 3_000);
        let lists = if seed % 2 == 0 { lists(&events) } else { BTreeMap::new() };
        let capacities = (0..8).map(|cpu| (cpu, [1024, 446, 800][(cpu as usize + seed as usize) % 3])).collect();
        let unshown = Unshown { lists: lists.clone(), capacities, ..Unshown::default() };
        all.add(&compare_with(&format!("seed {seed}"), &events, &unshown));
        alike.add(&compare_with(&format!("seed {seed}, alike"), &events, &Unshown { lists, ..Unshown::default() }));
        all.add(&compare_with(&format!("seed {seed}, weights"), &with_policies(&mixed(&events)), &unshown));
    }
    assert!(all.beside_shorter_ns > all.total() / 100 && all.alike_ns > all.total() / 100, "{all:?}");
    assert_ne!(all.beside_shorter_ns, 2 * alike.beside_shorter_ns);
}

/// Pieces of a pass have the times of the whole, also where priorities, policies and capacities make weights decide.
#[test]
fn pieces_of_a_pass_have_the_same_kinds() {
    let mut all = QueuedTimes::default();
    for seed in 0..6 {
        let simulation = Simulation::any(seed, 2 + (seed % 5) as u32, 100);
        let events = with_policies(&mixed(&slowed(&simulation.events, 3_000)));
        let capacities = (0..8).map(|cpu| (cpu, 512 << (cpu % 2))).filter(|_| seed % 2 == 0).collect();
        let unshown = Unshown { capacities, sched_idle: BTreeSet::from([3, 6, 9]), ..Unshown::default() };
        let lists = lists(&events);
        let ask = QueuedAsk {
            tasks: None,
            cpus: ChosenCpus::default(),
            affinity: (seed % 3 == 0).then(|| Arc::new(affinity(&events, &lists))),
        };
        let sums = || QueuedSums::new(ask.clone());
        let whole = Pass::over(Recording(&events, unshown.clone())).run(sums).unwrap_or_else(|never| match never {});
        for length in [1, 7, events.len() / 2] {
            let pass = Pass::over(Recording(&events, unshown.clone())).pieces(Some(Pieces {
                events: length,
                workers: 2,
                scans: true,
            }));
            let joined = pass.run_in_pieces(sums).unwrap_or_else(|never| match never {});
            assert_eq!(joined.output, whole.output, "seed {seed}, {length}");
        }
        all.add(&whole.output.unwrap_or_default());
    }
    assert!(all.beside_shorter_ns > all.total() / 100, "{all:?}");
}

/// By hand: half of a CPU of half the capacity is a quarter of a large one.
#[test]
fn on_a_small_cpu_a_task_gets_less_of_the_same_share() {
    let shorter = |cpus: &[&[(i32, i32)]], capacities: &[u128]| -> Vec<i32> {
        let capacities = (0..).zip(capacities.iter().copied()).collect();
        let (kinds, report) = measured(&hogs(cpus), &Unshown { capacities, ..Unshown::default() });
        let found: Vec<i32> =
            kinds.iter().filter(|(_, times)| times.beside_shorter_ns > 0).map(|(pid, _)| *pid).collect();
        let unbalanced = report.unbalanced.expect("wakeups").ns;
        assert_eq!(unbalanced, if found.is_empty() { 0 } else { 1_000 }, "{cpus:?}");
        found
    };
    // 2 has half of CPU 0, and would have a third of CPU 1: less where they are alike, more where CPU 0 has half the capacity.
    let two: [&[(i32, i32)]; 2] = [&[(1, 120), (2, 120)], &[(3, 120), (4, 120)]];
    assert_eq!([shorter(&two, &[]), shorter(&two, &[1024, 1024])], [Vec::<i32>::new(), vec![]]);
    assert_eq!((shorter(&two, &[512, 1024]), shorter(&two, &[1024, 512])), (vec![2], vec![4]));
    // A third of a large CPU is more than half of a small one, which the numbers take for shorter.
    let three: [&[(i32, i32)]; 2] = [&[(1, 120), (2, 120), (3, 120)], &[(4, 120)]];
    assert_eq!((shorter(&three, &[]), shorter(&three, &[1024, 512])), (vec![2, 3], vec![]));
    // A CPU without a capacity counts as the largest. A real-time task compares numbers.
    assert_eq!(shorter(&two, &[512, 0, 1024]), [2]);
    assert_eq!(shorter(&[&[(1, 120), (2, 50)], &[(3, 120), (4, 120)]], &[512, 1024]), Vec::<i32>::new());
}

/// Weights that are all the same say what lengths say: tasks of nice 5 beside others of nice 5 wait as those of nice 0 do.
#[test]
fn where_all_weights_are_equal_the_lengths_decide() {
    let mut compared = 0;
    for seed in 0..12 {
        let simulation = Simulation::run(seed, 2 + (seed % 5) as u32, 200);
        let shown: BTreeSet<i32> = simulation.events.iter().flat_map(prios).map(|(pid, _)| pid).collect();
        // A task that runs all the time, whose priority no record has, counts as one of nice 0.
        if simulation.events.iter().any(|event| !shown.contains(&event.pid.0)) {
            continue;
        }
        let events = slowed(&simulation.events, 3_000);
        let of = |prio: i32| {
            let (kinds, report) = measured(&with_prios(&events, |_, _| prio), &Unshown::default());
            (kinds, report.unbalanced)
        };
        let expected = of(120);
        for prio in [100, 125, 139] {
            assert_eq!(of(prio), expected, "seed {seed}, {prio}");
        }
        compared += usize::from(expected.0.values().any(|times| times.beside_shorter_ns > 0));
    }
    assert!(compared >= 6, "{compared}");
}

/// Events of hogs, which run or wait from the start on: the first one of each CPU runs, the others wait behind it.
fn hogs(cpus: &[&[(i32, i32)]]) -> Vec<SchedEvent> {
    let task = |(pid, prio): (i32, i32)| sched::TaskRef { pid: sched::Pid(pid), prio, comm: Comm::new(b"hog") };
    let idle = task((0, 120));
    let mut events = Vec::new();
    for (cpu, tasks) in (0..).map(Cpu).zip(cpus) {
        let event = |kind| SchedEvent { ts: Ts(0), cpu, pid: sched::Pid(0), flags: 0, kind };
        let wakeup = |of: &(i32, i32)| event(EventKind::Wakeup { task: task(*of), target: cpu });
        events.extend(tasks.iter().map(wakeup));
        let state = sched::PrevState::RUNNABLE;
        events.push(event(EventKind::Switch { prev: idle, state, next: task(tasks[0]) }));
    }
    for (cpu, tasks) in (0..).map(Cpu).zip(cpus) {
        let pid = sched::Pid(tasks[0].0);
        events.push(SchedEvent { ts: Ts(1_000), cpu, pid, flags: 0, kind: EventKind::Other { id: 1 } });
    }
    events
}

/// By hand: a task of nice 19 weighs 15, of nice 0 1024, of nice −10 9548.
#[test]
fn the_share_that_a_task_would_have_elsewhere_decides() {
    let shorter = |cpus: &[&[(i32, i32)]]| -> Vec<i32> {
        let (kinds, report) = measured(&hogs(cpus), &Unshown::default());
        let found: Vec<i32> =
            kinds.iter().filter(|(_, times)| times.beside_shorter_ns > 0).map(|(pid, _)| *pid).collect();
        let unbalanced = report.unbalanced.expect("wakeups").ns;
        assert_eq!(unbalanced, if found.is_empty() { 0 } else { 1_000 }, "{cpus:?}");
        found
    };
    // Three hogs of nice 19 and one of nice 0, beside two of nice 0. By numbers 2, 3 and 11 would be beside a shorter queue, but 11 has 1024 of 1069
    // here, and would have 1024 of 3072 there; 13 has 1024 of 2048, and would have 1024 of 2093.
    let hogs: &[(i32, i32)] = &[(1, 139), (2, 139), (3, 139), (11, 120)];
    assert_eq!(shorter(&[hogs, &[(12, 120), (13, 120)]]), Vec::<i32>::new());
    // Beside three of nice 0 these would gain, though the numbers are 4 and 3: 1024 of 2093 are more than 1024 of 3072.
    assert_eq!(shorter(&[hogs, &[(12, 120), (13, 120), (14, 120)]]), [13, 14]);
    // Behind a hog of nice −10 a task has 1024 of 10572, and would have 1024 of 2048.
    assert_eq!(shorter(&[&[(1, 110), (2, 120)], &[(3, 120)]]), [2]);
    // A task of a real-time class has no weight: it counts as one of nice 0, and compares numbers itself.
    assert_eq!(shorter(&[&[(1, 110), (2, 50)], &[(3, 120)]]), Vec::<i32>::new());
    assert_eq!(shorter(&[&[(1, 119), (2, 50), (3, 120)], &[(4, 139), (5, 100)]]), Vec::<i32>::new());
    assert_eq!(shorter(&[&[(1, 139), (2, 50), (3, 120)], &[(4, 119)]]), [2]);
}

/// By hand: 2 waits behind 1, of nice 0, for 1,000 ns, beside 3 on another CPU. Its own weight cancels out: it is beside a shorter queue where 1 weighs
/// more than 3, whatever its own nice value becomes at 400. As a real-time task it compares numbers from then on.
#[test]
fn a_waiter_compares_by_the_weight_that_it_has_now() {
    let shorter = |prios: [i32; 2], other: i32| {
        let mut events = hogs(&[&[(1, 120), (2, prios[0])], &[(3, other)]]);
        let task = sched::TaskRef { pid: Pid(2), prio: prios[1], comm: Comm::new(b"hog") };
        let kind = EventKind::Waking { task, target: Cpu(0) };
        let at = events.iter().position(|event| event.ts > Ts(0)).expect("the end");
        events.insert(at, SchedEvent { ts: Ts(400), cpu: Cpu(0), pid: Pid(1), flags: 0, kind });
        let (kinds, report) = measured(&events, &Unshown::default());
        assert_eq!(kinds[&2].total(), 1_000);
        let unbalanced = report.unbalanced.expect("wakeups").ns;
        assert_eq!(unbalanced, kinds[&2].beside_shorter_ns, "{prios:?} {other}");
        unbalanced
    };
    // 820 of nice 1 are less than 1024, and 1277 of nice −1 are more.
    assert_eq!([shorter([120, 139], 121), shorter([139, 110], 121), shorter([139, 139], 121)], [1_000; 3]);
    assert_eq!([shorter([120, 139], 119), shorter([139, 110], 119)], [0; 2]);
    assert_eq!([shorter([120, 50], 121), shorter([50, 120], 121), shorter([120, 50], 119)], [400, 600, 0]);
}

/// Many waiters of little weight behind one task, while a task of little weight comes and goes on another CPU: as many steps for each event as there are
/// waiters would be 900 million.
#[test]
fn a_long_queue_of_light_tasks_costs_no_step_for_each() {
    const MANY: i32 = 30_000;
    let task = |pid, prio| sched::TaskRef { pid: sched::Pid(pid), prio, comm: Comm::new(b"hog") };
    let event =
        |ts: i32, cpu, kind| SchedEvent { ts: Ts(ts.into()), cpu: Cpu(cpu), pid: sched::Pid(0), flags: 0, kind };
    let state = sched::PrevState::RUNNABLE;
    let mut events = hogs(&[&[(1, 120)], &[(2, 120)]]);
    events.retain(|event| !matches!(event.kind, EventKind::Other { .. }));
    for n in 0..MANY {
        let pair = if n % 2 == 0 { [task(2, 120), task(3, 139)] } else { [task(3, 139), task(2, 120)] };
        events.push(event(10 + 10 * n, 1, EventKind::Switch { prev: pair[0], state, next: pair[1] }));
        events.push(event(12 + 10 * n, 0, EventKind::Wakeup { task: task(100 + n, 139), target: Cpu(0) }));
    }
    events.push(event(10 + 10 * MANY, 0, EventKind::Other { id: 1 }));
    let (_, report) = measured(&events, &Unshown::default());
    let unbalanced = report.unbalanced.expect("wakeups");
    // From 10 on a task of weight 1024 and one of 15 are runnable on CPU 1. Behind 1024 and n tasks of 15, one would gain there if n is above 2; by
    // then the third has joined at 32. Lengths above 4,096 are not told apart, weights are.
    assert_eq!((unbalanced.ns, unbalanced.episodes, unbalanced.longest[0].difference), (299_978, 1, 4_094));
}

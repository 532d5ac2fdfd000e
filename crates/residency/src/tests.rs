use crate::{GroupedBy, Options, PlacedBeside, Residency, ResidencyNotes, ResidencyReport};
use sched::topology::CpuLocation;
use sched::{
    Analysis, Comm, Cpu, Current, EventKind, Pass, Pid, PrevState, SchedEvent, SchedState, TaskRef, Topology, Ts,
    Window,
};
use std::collections::BTreeMap;
use testkit::Simulation;

const MS: i64 = 1_000_000;

fn task(pid: i32, name: &str) -> TaskRef {
    TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(name.as_bytes()) }
}

fn idle() -> TaskRef {
    task(0, "swapper")
}

fn at(ms: i64, cpu: u32, pid: i32, kind: EventKind) -> SchedEvent {
    SchedEvent { ts: Ts(ms * MS), cpu: Cpu(cpu), pid: Pid(pid), flags: 0, kind }
}

fn begins(ms: i64, cpu: u32, next: TaskRef) -> SchedEvent {
    at(ms, cpu, 0, EventKind::Switch { prev: idle(), state: PrevState::RUNNABLE, next })
}

fn sleeps(ms: i64, cpu: u32, prev: TaskRef) -> SchedEvent {
    at(ms, cpu, prev.pid.0, EventKind::Switch { prev, state: PrevState::asleep(1), next: idle() })
}

/// A waking, the move of the task from one CPU to another, and its wakeup there.
fn wakes(ms: i64, task: TaskRef, orig: u32, dest: u32) -> Vec<SchedEvent> {
    let (target, orig, dest) = (Cpu(dest), Cpu(orig), Cpu(dest));
    let mut events = vec![at(ms, 0, 0, EventKind::Waking { task, target: orig })];
    if orig != dest {
        events.push(at(ms, 0, 0, EventKind::Migrate { task, orig, dest }));
    }
    events.push(at(ms, 0, 0, EventKind::Wakeup { task, target }));
    events
}

/// Eight CPUs: two to a core, four to a cache.
fn topology() -> Topology {
    let mut topology = Topology::default();
    for cpu in 0..8 {
        let (core, llc) = (Some(cpu / 2 * 2), Some(cpu / 4 * 4));
        topology.set(Cpu(cpu), CpuLocation { core, llc, node: llc, ..CpuLocation::default() });
    }
    topology
}

fn report(events: &[SchedEvent]) -> ResidencyReport {
    let (from, to) = (events[0].ts, events[events.len() - 1].ts);
    let options = Options { topology: topology(), ..Options::new(GroupedBy::Command, from, to) };
    Pass::over(events).run(|| Residency::new(&options)).unwrap_or_else(|never| match never {}).output
}

/// A task runs on CPU 0 for 10 ms, moves to CPU 4 at 10 ms and back at 15 ms, and to CPU 4 again at 80 ms, 65 ms later, where it stays.
#[test]
fn a_task_returns_to_the_cache_that_it_left() {
    let a = task(7, "a");
    let mut events = vec![begins(0, 0, a), sleeps(10, 0, a)];
    events.extend(wakes(10, a, 0, 4));
    events.extend([begins(10, 4, a), sleeps(15, 4, a)]);
    events.extend(wakes(15, a, 4, 0));
    events.extend([begins(15, 0, a), sleeps(80, 0, a)]);
    events.extend(wakes(80, a, 0, 4));
    events.extend([begins(80, 4, a), sleeps(100, 4, a)]);
    let found = report(&events);
    let group = &found.groups[0];
    assert_eq!((group.name.as_str(), group.run_ns.0, group.home_llc), ("a", 100_000_000, Some(0)));
    assert_eq!((group.residency_percent, group.node_residency_percent), (Some(75.0), Some(75.0)));
    assert_eq!((group.moves, group.returns_10ms, group.returns_100ms), (3, 1, 2));
    assert_eq!(found.moves.iter().map(|of| of.moves).sum::<u64>(), 3);
    assert_eq!((found.away_count, found.away[0].llc, found.away[0].since_in_trace_ns), (1, 4, 80_000_000));
    let [first, second] = &found.llcs[..] else { panic!("{:?}", found.llcs) };
    assert_eq!((first.run_ns.0, second.run_ns.0), (75_000_000, 25_000_000));
    // One CPU under each cache has events.
    assert_eq!((first.cpu_count, first.occupancy, second.occupancy), (1, 0.75, 0.25));
    let [a] = &second.groups[..] else { panic!("{:?}", second.groups) };
    assert_eq!((a.name.as_str(), a.run_ns.0, a.wait_ns.0, a.occupancy), ("a", 25_000_000, 0, 0.25));
}

/// A task moves to and fro between two CPUs, and then over a hundred others: the note has the latest move between two CPUs, at most 64 of them, and
/// none from more than 100 ms before.
#[test]
fn a_part_has_the_moves_before_it() {
    let a = task(7, "a");
    let noted = |moves: &[(i64, u32, u32)], from: i64| {
        let mut events = vec![begins(0, 0, a), sleeps(1, 0, a)];
        moves.iter().for_each(|(ms, orig, dest)| events.extend(wakes(*ms, a, *orig, *dest)));
        events.push(begins(from + 1, 0, a));
        let window = Window { from: Some(Ts(from * MS)), to: None };
        let pass = Pass::over(events.as_slice()).window(window).run(ResidencyNotes::default);
        let (name, text) = pass.unwrap_or_else(|never| match never {}).output.expect("a note");
        assert_eq!(name, "residency");
        let found: Vec<(i32, serde_json::Value)> = serde_json::from_str(&text).expect("a list");
        assert!(found.iter().all(|(pid, _)| *pid == 7), "{text}");
        let moved = |(_, moved): &(i32, serde_json::Value)| {
            let of = |field: &str| moved[field].as_i64().expect("a number");
            (of("ts") / MS, of("from") as u32, of("to") as u32)
        };
        found.iter().map(moved).collect::<Vec<_>>()
    };
    let moves = [(10, 0, 4), (20, 4, 0), (30, 0, 4), (40, 4, 5)];
    assert_eq!(noted(&moves, 50), [(20, 4, 0), (30, 0, 4), (40, 4, 5)]);
    assert_eq!(noted(&moves, 125), [(30, 0, 4), (40, 4, 5)]);
    assert_eq!(noted(&moves, 200), []);
    let many: Vec<(i64, u32, u32)> = (0..100).map(|nth| (i64::from(nth) / 2, nth, nth + 1)).collect();
    assert_eq!(noted(&many, 60), many[36..]);
}

/// Task b is placed on CPU 1, beside task a on CPU 0 of its core, while both CPUs of the core with CPU 2 idle; and task c on CPU 2, whose
/// core idles.
#[test]
fn a_placement_beside_a_busy_sibling_misses_an_idle_core() {
    let (a, b, c) = (task(7, "a"), task(8, "b"), task(9, "c"));
    let noise = |cpu: u32| [begins(0, cpu, task(20 + cpu as i32, "x")), sleeps(1, cpu, task(20 + cpu as i32, "x"))];
    let mut events = vec![begins(0, 0, a)];
    events.extend([1, 2, 3].into_iter().map(|cpu| noise(cpu)[0]));
    events.extend([1, 2, 3].into_iter().map(|cpu| noise(cpu)[1]));
    events.extend(wakes(10, b, 1, 1));
    events.push(begins(10, 1, b));
    events.extend(wakes(20, c, 2, 2));
    events.push(begins(20, 2, c));
    events.push(sleeps(30, 1, b));
    events.push(sleeps(40, 0, a));
    events.push(sleeps(50, 2, c));
    let found = report(&events);
    assert!(found.has_siblings);
    let of = |name: &str| found.groups.iter().find(|group| group.name == name).expect("a group");
    assert_eq!((of("b").placements, of("b").placed_beside), (1, PlacedBeside { llc: 1, node: 0, beyond: 0 }));
    assert_eq!((of("c").placements, of("c").placed_beside), (1, PlacedBeside::default()));
    // From 0 to 1 and from 10 to 30 ms the sibling of CPU 0 is busy.
    assert_eq!(of("a").beside_busy_percent, Some(100.0 * 21.0 / 40.0));
    assert_eq!((of("b").beside_busy_percent, of("c").beside_busy_percent), (Some(100.0), Some(0.0)));
}

#[test]
fn without_a_topology_there_is_no_home() {
    let events = testkit::a_wait_beside_an_idle_cpu();
    let options = Options::new(GroupedBy::Task, Ts(100), Ts(600));
    let found =
        Pass::over(events.as_slice()).run(|| Residency::new(&options)).unwrap_or_else(|never| match never {}).output;
    assert_eq!((found.run_ns.0, found.residency_percent, found.llcs.len()), (550, None, 0));
    assert_eq!(found.groups.iter().filter(|group| group.home_llc.is_some()).count(), 0);
}

/// The time of each task beside a busy sibling, and beside one whose state is known, by a look at every CPU behind every event.
#[derive(Default)]
struct Beside {
    since: Ts,
    now: Vec<(Pid, bool)>,
    sums: BTreeMap<Pid, [u64; 2]>,
}

impl Beside {
    fn pass(&mut self, ts: Ts) {
        let ns = ts.since(self.since).0;
        self.since = ts;
        for (pid, is_busy) in &self.now {
            let [busy, known] = self.sums.entry(*pid).or_default();
            *known += ns;
            *busy += if *is_busy { ns } else { 0 };
        }
    }

    fn look(&mut self, state: &SchedState) {
        let beside = |cpu: Cpu| {
            let (task, sibling) = (state.running(cpu)?, Cpu(cpu.0 ^ 1));
            match state.current(sibling) {
                _ if !state.is_observed(sibling) => None,
                Current::Task(_) => Some((task.pid, true)),
                Current::Idle | Current::Offline => Some((task.pid, false)),
                Current::Unknown => None,
            }
        };
        self.now = state.observed().filter_map(beside).collect();
    }
}

impl Analysis for Beside {
    type Output = BTreeMap<Pid, [u64; 2]>;

    fn begin(&mut self, start: Ts, state: &SchedState) {
        self.since = start;
        self.look(state);
    }

    fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        self.pass(event.ts);
        self.look(state);
    }

    fn finish(mut self, end: Ts, _: &SchedState) -> Self::Output {
        self.pass(end);
        self.sums
    }
}

/// The moves of each task between caches, and the returns among them, by the events alone.
fn moves(events: &[SchedEvent]) -> BTreeMap<Pid, [u64; 3]> {
    let (mut last, mut sums) = (BTreeMap::new(), BTreeMap::new());
    for event in events {
        let EventKind::Migrate { task, orig, dest } = event.kind else { continue };
        let (from, to) = (orig.0 / 4, dest.0 / 4);
        if from == to {
            continue;
        }
        let sums: &mut [u64; 3] = sums.entry(task.pid).or_default();
        sums[0] += 1;
        if let Some((at, left, came)) = last.insert(task.pid, (event.ts, from, to))
            && (left, came) == (to, from)
        {
            let since = event.ts.since(at).0;
            sums[1] += u64::from(since <= 10_000_000);
            sums[2] += u64::from(since <= 100_000_000);
        }
    }
    sums
}

#[test]
fn siblings_and_returns_are_those_of_a_look_at_every_event() {
    let mut seen = [0; 2];
    for seed in 0..20 {
        let simulation = Simulation::balanced(seed, 2 + (seed % 7) as u32, 400);
        let events = if seed % 4 == 0 { simulation.lossy(seed).0 } else { simulation.events };
        let (from, to) = (events[0].ts, events[events.len() - 1].ts);
        let options = Options { topology: topology(), ..Options::new(GroupedBy::Task, from, to) };
        let pass = Pass::over(events.as_slice()).run(|| (Residency::new(&options), Beside::default()));
        let (report, beside) = pass.unwrap_or_else(|never| match never {}).output;
        let moved = moves(&events);
        for group in &report.groups {
            let pid = group.name.rsplit(' ').next().and_then(|pid| pid.parse().ok()).map(Pid).expect("a task");
            let [busy, known] = beside.get(&pid).copied().unwrap_or_default();
            let percent = (known > 0).then(|| 100.0 * busy as f64 / known as f64);
            assert_eq!(group.beside_busy_percent, percent, "seed {seed}: {}", group.name);
            seen[0] += usize::from(busy > 0 && busy < known);
            if seed % 4 != 0 {
                let found = [group.moves, group.returns_10ms, group.returns_100ms];
                assert_eq!(found, moved.get(&pid).copied().unwrap_or_default(), "seed {seed}: {}", group.name);
                seen[1] += usize::from(group.returns_100ms > 0);
            }
        }
    }
    assert!(seen.iter().all(|seen| *seen > 10), "{seen:?}");
}

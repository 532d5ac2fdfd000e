use crate::{GroupedBy, Options, PlacedBeside, Residency, ResidencyReport};
use sched::topology::CpuLocation;
use sched::{Comm, Cpu, EventKind, Pass, Pid, PrevState, SchedEvent, TaskRef, Topology, Ts};

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

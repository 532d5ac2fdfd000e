//! A case by hand: a producer and a consumer, a wakeup from an interrupt, one without a waking, and one that is open at the end.

use crate::{Options, PartiesBy, WakeEdge, WakeParty, Wakers, WakersReport};
use membership::{Cgroups, TaskGroups};
use sched::topology::CpuLocation;
use sched::{ChosenCpus, Comm, Cpu, Dur, EventKind, Pass, Pid, PrevState, SchedEvent, TaskRef, Topology, Ts};

fn task(pid: i32) -> TaskRef {
    let name = match pid {
        0 => "swapper/0",
        7 => "make",
        8 => "cc",
        _ => "sort",
    };
    TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(name.as_bytes()) }
}

fn at(ts: i64, cpu: u32, pid: i32, kind: EventKind) -> SchedEvent {
    SchedEvent { ts: Ts(ts), cpu: Cpu(cpu), pid: Pid(pid), flags: 0, kind }
}

fn sleeps(ts: i64, cpu: u32, prev: i32, next: i32) -> SchedEvent {
    let state = if prev == 0 { PrevState::RUNNABLE } else { PrevState::asleep(1) };
    at(ts, cpu, prev, EventKind::Switch { prev: task(prev), state, next: task(next) })
}

fn waking(ts: i64, cpu: u32, by: i32, woken: i32) -> SchedEvent {
    at(ts, cpu, by, EventKind::Waking { task: task(woken), target: Cpu(0) })
}

fn wakeup(ts: i64, cpu: u32, by: i32, woken: i32, target: u32) -> SchedEvent {
    at(ts, cpu, by, EventKind::Wakeup { task: task(woken), target: Cpu(target) })
}

fn interrupt(event: SchedEvent) -> SchedEvent {
    SchedEvent { flags: 0x08, ..event }
}

/// `make` on CPU 0 wakes `cc` on CPU 1, which wakes it in turn; `sort` is woken by an interrupt of `cc`.
fn events() -> Vec<SchedEvent> {
    vec![
        sleeps(0, 0, 0, 7),
        sleeps(10, 1, 0, 8),
        sleeps(100, 1, 8, 0),
        waking(150, 0, 7, 8),
        wakeup(160, 0, 7, 8, 1),
        sleeps(200, 1, 0, 8),
        sleeps(210, 0, 7, 9),
        sleeps(300, 0, 9, 0),
        waking(400, 1, 8, 7),
        wakeup(410, 1, 8, 7, 0),
        sleeps(420, 0, 0, 7),
        interrupt(waking(500, 1, 8, 9)),
        interrupt(wakeup(500, 1, 8, 9, 0)),
        sleeps(600, 0, 7, 9),
        sleeps(700, 1, 8, 0),
        // Its waking is not recorded, although others are.
        wakeup(800, 0, 9, 8, 1),
        sleeps(810, 1, 0, 8),
        waking(900, 0, 9, 7),
        wakeup(900, 0, 9, 7, 0),
    ]
}

fn report(options: &Options<'_>) -> WakersReport {
    let events = events();
    Pass::over(events.as_slice()).run(|| Wakers::new(options)).unwrap_or_else(|never| match never {}).output
}

fn numbers(edge: &WakeEdge) -> (String, String, u64, Option<Dur>, Option<Dur>) {
    let (slept, waited) = (edge.slept.max_ns, edge.waited.max_ns);
    (edge.waker.name(), edge.woken.name(), edge.wakeups, slept, waited)
}

#[test]
fn each_edge_has_its_wakeups_and_the_times_around_them() {
    let report = report(&Options::default());
    let edges: Vec<_> = report.edges.iter().map(numbers).collect();
    let length = |ns| Some(Dur(ns));
    assert_eq!(
        edges,
        [
            ("cc".into(), "make".into(), 1, length(200), length(20)),
            ("make".into(), "cc".into(), 1, length(60), length(50)),
        ]
    );
    let interrupts: Vec<_> = report.interrupts.iter().map(numbers).collect();
    assert_eq!(interrupts, [("cc".into(), "sort".into(), 1, length(200), length(100))]);
    let numbers = [report.wakeups, report.by_tasks, report.by_interrupts, report.by_unknown, report.open];
    assert_eq!(numbers, [4, 2, 1, 1, 1].map(Some));
}

#[test]
fn a_pair_that_wakes_each_other_has_the_parts_of_all_wakeups() {
    let report = report(&Options { by: PartiesBy::Task, ..Options::default() });
    let [pair] = &report.pairs[..] else { panic!("one pair: {:?}", report.pairs) };
    assert_eq!((pair.first.pid, pair.second.pid, pair.forth, pair.back), (Some(Pid(7)), Some(Pid(8)), 1, 1));
    // One of the two wakeups of cc has no waker.
    assert_eq!((pair.part_of_second, pair.part_of_first, pair.is_strong), (0.5, 1.0, true));
}

#[test]
fn the_names_of_groups_are_those_of_wakers_and_woken_tasks() {
    let groups = TaskGroups::of_cgroups(Cgroups::listed(&[(Pid(7), "/b"), (Pid(8), "/a")]));
    let report = report(&Options { by: PartiesBy::Cgroup, groups: Some(groups.into()), ..Options::default() });
    let names = |edges: &[WakeEdge]| -> Vec<_> {
        edges.iter().map(|edge| (edge.waker.name(), edge.woken.name(), edge.wakeups)).collect()
    };
    let edge = |waker: &str, woken: &str| (waker.to_owned(), woken.to_owned(), 1);
    assert_eq!(names(&report.edges), [edge("/a", "/b"), edge("/b", "/a")]);
    assert_eq!(names(&report.interrupts), [edge("/a", "unknown cgroup")]);
    let [pair] = report.pairs.as_slice() else { panic!("{:?}", report.pairs) };
    assert_eq!((pair.first.name(), pair.second.name(), pair.part_of_second), ("/a".into(), "/b".into(), 1.0));
}

#[test]
fn long_names_keep_the_pid_and_the_end_of_a_path() {
    use crate::text::shown_party;
    let label = |name: &str, process| membership::GroupLabel {
        name: Some(name.to_owned()),
        process,
        params: None,
        stack: None,
        by: membership::TasksBy::Cgroup,
    };
    let group = |name: &str, process| WakeParty { pid: None, command: None, group: Some(label(name, process)) };
    let task = WakeParty { pid: Some(Pid(12_345)), command: Some(Comm::new(b"a-long-command")), group: None };
    assert_eq!(shown_party(&task, 16), "a-long-co… 12345");
    assert_eq!(shown_party(&group("a-long-command", Some(Pid(9))), 16), "a-long-comm… (9)");
    assert_eq!(shown_party(&group("/system.slice/cron.service", None), 16), "…ce/cron.service");
    assert_eq!(shown_party(&group("/a", None), 16), "/a");
}

#[test]
fn caches_are_compared_from_the_waker_to_the_queue() {
    let places = |report: WakersReport| {
        let of = |edge: &WakeEdge| [Some(edge.same_cpu), edge.same_llc, edge.other_llc, Some(edge.unknown_llc)];
        report.edges.iter().chain(&report.interrupts).map(of).collect::<Vec<_>>()
    };
    assert_eq!(places(report(&Options::default())), [[Some(0), None, None, Some(1)]; 3]);
    let mut apart = Topology::default();
    for cpu in 0..2 {
        let location = CpuLocation { llc: Some(cpu), node: Some(cpu), ..CpuLocation::default() };
        apart.set(Cpu(cpu), location);
    }
    assert_eq!(places(report(&Options { topology: apart, ..Options::default() })), [[0, 0, 1, 0].map(Some); 3]);
}

#[test]
fn the_selection_is_that_of_the_woken_tasks() {
    let only = |task: &sched::state::Task, _: &sched::SchedState| task.pid == Pid(9);
    let report = report(&Options { tasks: Some(&only), ..Options::default() });
    assert_eq!((report.edges.len(), report.interrupts.len(), report.wakeups), (0, 1, Some(1)));
    // The task that waits at the end, on CPU 0, is another one.
    assert_eq!(report.open, Some(0));
}

#[test]
fn the_selection_of_cpus_is_that_of_the_queues_that_tasks_leave_or_wait_on() {
    let of = |cpu| {
        let report = report(&Options { cpus: ChosenCpus::only([Cpu(cpu)]), ..Options::default() });
        (report.wakeups, report.open)
    };
    assert_eq!([of(0), of(1)], [(Some(2), Some(1)), (Some(2), Some(0))]);
}

#[test]
fn three_that_wake_each_other_in_a_ring_are_a_component() {
    let events = [
        sleeps(0, 0, 0, 7),
        sleeps(0, 1, 0, 8),
        sleeps(0, 2, 0, 9),
        sleeps(10, 1, 8, 0),
        sleeps(10, 2, 9, 0),
        waking(20, 0, 7, 8),
        wakeup(20, 0, 7, 8, 1),
        sleeps(30, 1, 0, 8),
        sleeps(40, 0, 7, 0),
        waking(50, 1, 8, 9),
        wakeup(50, 1, 8, 9, 2),
        sleeps(60, 2, 0, 9),
        sleeps(70, 1, 8, 0),
        waking(80, 2, 9, 7),
        wakeup(80, 2, 9, 7, 0),
        sleeps(90, 0, 0, 7),
        // An interrupt makes one of the two wakeups of cc.
        interrupt(waking(95, 2, 9, 8)),
        interrupt(wakeup(95, 2, 9, 8, 1)),
        sleeps(96, 1, 0, 8),
    ];
    let options = Options::default();
    let report =
        Pass::over(events.as_slice()).run(|| Wakers::new(&options)).unwrap_or_else(|never| match never {}).output;
    assert!(report.pairs.is_empty());
    let [ring] = report.components.as_slice() else { panic!("{:?}", report.components) };
    let names: Vec<String> = ring.members.iter().map(WakeParty::name).collect();
    assert_eq!((names.join(" "), ring.wakeups, ring.part), ("cc make sort".to_owned(), 3, 0.75));
}

use crate::parties::MOST;
use crate::{By, Matrix, MeasuredPressure, NeighboursReport, Options, PartyKind, PressureMeter, Stalled};
use membership::Cgroups;
use sched::{Comm, Cpu, Dur, EventKind, Pass, Pid, PrevState, SchedEvent, TaskRef, Ts};

fn task(pid: i32, name: &str) -> TaskRef {
    TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(name.as_bytes()) }
}

fn at(ns: i64, pid: i32, kind: EventKind) -> SchedEvent {
    SchedEvent { ts: Ts(ns), cpu: Cpu(0), pid: Pid(pid), flags: 0, kind }
}

fn switch(ns: i64, prev: TaskRef, state: PrevState, next: TaskRef) -> SchedEvent {
    at(ns, prev.pid.0, EventKind::Switch { prev, state, next })
}

fn wake(ns: i64, by: i32, task: TaskRef) -> [SchedEvent; 2] {
    let target = Cpu(0);
    [at(ns, by, EventKind::Waking { task, target }), at(ns, by, EventKind::Wakeup { task, target })]
}

fn report(events: &[SchedEvent], by: By) -> NeighboursReport {
    let options = Options::new(by);
    Pass::over(events).run(|| Matrix::new(&options)).unwrap_or_else(|never| match never {}).output
}

fn waited(report: &NeighboursReport, victim: &str, culprit: &str) -> (u64, u64) {
    let pair = report.pairs.iter().find(|pair| pair.victim == victim && pair.culprit == culprit);
    pair.map_or((0, 0), |pair| (pair.wait_ns.0, pair.preemptions))
}

/// On one CPU `a` runs from 0 to 100; `b` is woken at 40, preempts at 100, and runs to 160; `ksoftirqd/0` is woken at 120 and runs from
/// 160 to 170; then the CPU idles for 5 before it switches to `a`.
#[test]
fn each_instant_of_waiting_has_one_culprit() {
    let (idle, a, b, soft) = (task(0, "swapper/0"), task(1, "a"), task(2, "b"), task(3, "ksoftirqd/0"));
    let sleeps = PrevState::asleep(1);
    let mut events = vec![switch(0, idle, PrevState::RUNNABLE, a)];
    events.extend(wake(40, 1, b));
    events.push(switch(100, a, PrevState::PREEMPTED, b));
    events.extend(wake(120, 2, soft));
    events.push(switch(160, b, sleeps, soft));
    events.push(switch(170, soft, sleeps, idle));
    events.push(switch(175, idle, PrevState::RUNNABLE, a));
    events.push(switch(200, a, sleeps, idle));
    let found = report(&events, By::Command);
    assert_eq!(waited(&found, "b", "a"), (60, 0));
    assert_eq!(waited(&found, "a", "b"), (60, 1));
    assert_eq!(waited(&found, "ksoftirqd/N", "b"), (40, 0));
    assert_eq!(waited(&found, "a", "ksoftirqd/N"), (10, 0));
    assert_eq!(waited(&found, "a", "idle (switching)"), (5, 0));
    assert_eq!((found.wait_ns, found.preemptions, found.pairs.len()), (Some(Dur(175)), Some(1), 5));
    let a = found.groups.iter().find(|group| group.name == "a").expect("a group");
    assert_eq!((a.wait_ns.0, a.behind_others_ns.0, a.behind_kernel_ns.0, a.behind_idle_ns.0), (75, 60, 10, 5));
    assert_eq!((a.caused_ns.0, a.preempted, a.preempts), (60, 1, 0));
}

#[test]
fn interrupts_are_culprits_while_they_are_handled() {
    let (idle, a, b) = (task(0, "swapper/0"), task(1, "a"), task(2, "b"));
    let sleeps = PrevState::asleep(1);
    let mut events = vec![switch(0, idle, PrevState::RUNNABLE, a)];
    events.extend(wake(10, 1, b));
    events.push(at(20, 1, EventKind::Interrupt { id: 9, entry: true }));
    events.push(at(27, 1, EventKind::Interrupt { id: 8, entry: false }));
    events.push(switch(30, a, sleeps, b));
    events.push(switch(40, b, sleeps, idle));
    let found = report(&events, By::Command);
    assert_eq!((waited(&found, "b", "a").0, waited(&found, "b", "interrupts").0), (13, 7));
}

/// Compiler threads with random names are one command, also the one whose random part has no digit.
#[test]
fn random_names_are_one_command() {
    let (idle, make) = (task(0, "swapper/0"), task(1, "make"));
    let names = ["opt 61vtzgccpd9", "opt 0cxe9qdlj1g", "opt vtzgccpdabc", "opt vtzgccpdab9"];
    let mut events = vec![switch(0, idle, PrevState::RUNNABLE, make)];
    for (pid, name) in (2..).zip(names) {
        events.extend(wake(10, 1, task(pid, name)));
    }
    events.push(switch(30, make, PrevState::asleep(1), task(2, names[0])));
    events.push(switch(40, task(2, names[0]), PrevState::asleep(1), idle));
    let found = report(&events, By::Command);
    assert_eq!((waited(&found, "opt …", "make").0, waited(&found, "opt …", "opt …").0), (80, 30));
    let [opt] = found.groups.iter().filter(|group| group.name.starts_with("opt")).collect::<Vec<_>>()[..] else {
        panic!("{:?}", found.groups)
    };
    assert_eq!((opt.tasks, opt.behind_own_ns.0), (4, 30));
}

#[test]
fn groups_have_a_limit() {
    let (idle, make) = (task(0, "swapper/0"), task(1, "make"));
    let mut events = vec![switch(0, idle, PrevState::RUNNABLE, make)];
    for pid in 2..1302 {
        events.extend(wake(10, 1, task(pid, &format!("x{pid}y"))));
    }
    events.push(switch(20, make, PrevState::asleep(1), idle));
    let found = report(&events, By::Command);
    assert_eq!(found.wait_ns, Some(Dur(13_000)));
    assert!(found.groups.len() <= MOST + 1);
    let rest = found.groups.iter().find(|group| group.kind == PartyKind::Rest).expect("a row for the rest");
    assert!(rest.wait_ns.0 > 2_900, "{rest:?}");
}

fn pressure(events: &[SchedEvent], cgroups: &Cgroups) -> Vec<MeasuredPressure> {
    Pass::over(events).run(|| PressureMeter::new(cgroups)).unwrap_or_else(|never| match never {}).output
}

/// CPU 0: `a` runs from 0 to 100, `b` is woken at 40, runs from 100 to 160 while `a` waits, and `a` runs on until 200. CPU 1: `c` runs from 0
/// to 50. `a` and `c` are in `/g/x`, `b` is in `/h`.
#[test]
fn pressure_is_averaged_by_the_busy_time_of_the_cpus() {
    let (idle, a, b, c) = (task(0, "swapper/0"), task(1, "a"), task(2, "b"), task(3, "c"));
    let sleeps = PrevState::asleep(1);
    let on_the_other = |event: SchedEvent| SchedEvent { cpu: Cpu(1), ..event };
    let mut events =
        vec![switch(0, idle, PrevState::RUNNABLE, a), on_the_other(switch(0, idle, PrevState::RUNNABLE, c))];
    events.extend(wake(40, 1, b));
    events.push(on_the_other(switch(50, c, sleeps, idle)));
    events.push(switch(100, a, PrevState::PREEMPTED, b));
    events.push(switch(160, b, sleeps, a));
    events.push(switch(200, a, sleeps, idle));
    let cgroups = Cgroups::listed(&[(Pid(1), "/g/x"), (Pid(2), "/h"), (Pid(3), "/g/x")]);
    let found = pressure(&events, &cgroups);
    let of = |cgroup: Option<&str>| {
        let of = found.iter().find(|of| of.cgroup.as_deref() == cgroup).expect("a group");
        assert_eq!((of.least, of.most), (of.stalled, of.stalled), "no phase ends within 200 ns");
        (of.stalled, of.run)
    };
    // 120 of 200 ns on CPU 0, nothing of 50 ns on CPU 1.
    assert_eq!(of(None), (Stalled { some: 120 * 200 / 250, full: 0 }, 250));
    // `a` waits for 60 ns of its 200, and `c` does not wait in its 50.
    let inner = (Stalled { some: 60 * 200 / 250, full: 60 * 200 / 250 }, 190);
    assert_eq!((of(Some("/g/x")), of(Some("/g"))), (inner, inner));
    assert_eq!(of(Some("/h")), (Stalled { some: 60, full: 60 }, 60));
    assert_eq!(found.len(), 4);
}

/// A wait of five seconds is five seconds of pressure, wherever the kernel sums, and so is one of a million hours.
#[test]
fn pressure_does_not_depend_on_the_length_of_a_wait() {
    let (idle, a, b) = (task(0, "swapper/0"), task(1, "a"), task(2, "b"));
    for end in [5_000_000_000, 3_600_000_000_000_000_000] {
        let mut events = vec![switch(0, idle, PrevState::RUNNABLE, a)];
        events.extend(wake(0, 1, b));
        events.push(switch(end, a, PrevState::asleep(1), b));
        let found = pressure(&events, &Cgroups::default());
        assert_eq!((found[0].least.some, found[0].most.some, found.len()), (end as u64, end as u64, 1));
    }
}

/// CPU 0 idles beside `a` for 2 ms, in which `b` waits there as well for 300 µs and is moved away, then beside `a` again for 0.5 ms.
#[test]
fn an_idle_cpu_holds_its_tasks_back_from_a_millisecond_on() {
    let (idle, a, b) = (task(0, "swapper/0"), task(1, "a"), task(2, "b"));
    let sleeps = PrevState::asleep(1);
    let mut events = vec![switch(0, idle, PrevState::RUNNABLE, b), switch(10, b, sleeps, idle)];
    events.extend(wake(1_000, 0, a));
    events.extend(wake(101_000, 0, b));
    events.push(at(401_000, 0, EventKind::Migrate { task: b, orig: Cpu(0), dest: Cpu(1) }));
    events.push(switch(2_001_000, idle, PrevState::RUNNABLE, a));
    events.push(switch(2_100_000, a, sleeps, idle));
    events.extend(wake(2_200_000, 0, a));
    events.push(switch(2_700_000, idle, PrevState::RUNNABLE, a));
    events.push(switch(2_800_000, a, sleeps, idle));
    let found = report(&events, By::Command);
    assert_eq!(waited(&found, "a", "idle (held back)"), (2_000_000, 0));
    assert_eq!(waited(&found, "a", "idle (switching)"), (500_000, 0));
    // The interval counts for a task up to the instant at which that leaves.
    assert_eq!(waited(&found, "b", "idle (switching)"), (300_000, 0));
    assert_eq!(waited(&found, "b", "idle (held back)"), (0, 0));
    let a = found.groups.iter().find(|group| group.name == "a").expect("a group");
    assert_eq!((a.wait_ns.0, a.held_back_ns.0, a.behind_idle_ns.0), (2_500_000, 2_000_000, 500_000));
    assert_eq!(found.wait_ns.expect("time").0, found.pairs.iter().map(|pair| pair.wait_ns.0).sum::<u64>());
}

/// The switch that ends the interval is away from a task, which ran for an unknown part of it.
#[test]
fn an_unseen_switch_shows_no_task_that_is_held_back() {
    let (idle, a, b) = (task(0, "swapper/0"), task(1, "a"), task(2, "b"));
    let sleeps = PrevState::asleep(1);
    let mut events = vec![switch(0, idle, PrevState::RUNNABLE, b), switch(10, b, sleeps, idle)];
    events.extend(wake(1_000, 0, a));
    events.push(switch(2_001_000, b, sleeps, a));
    events.push(switch(2_100_000, a, sleeps, idle));
    let found = report(&events, By::Command);
    assert_eq!(waited(&found, "a", "idle (switching)"), (2_000_000, 0));
}

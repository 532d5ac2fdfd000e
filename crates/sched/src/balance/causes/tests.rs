//! The stopper's moves by what woke it and by what follows, and sleepers that the balancer moves.

use super::*;
use crate::event::{PrevState, StateClass};
use crate::{Analysis, Pass};

#[derive(Default)]
struct Collect(Causes, Vec<Migration>);

impl Analysis for Collect {
    type Output = Vec<Migration>;

    fn before(&mut self, event: &SchedEvent, state: &SchedState) {
        self.0.event(event, state, |migration| self.1.push(migration));
    }

    fn finish(mut self, _: Ts, _: &SchedState) -> Vec<Migration> {
        self.0.finish(|migration| self.1.push(migration));
        self.1.sort_by_key(|migration| (migration.ts, migration.on));
        self.1
    }
}

/// The same without the state, from the scenes of stretches of some length.
#[derive(Default)]
struct InScenes {
    found: Collect,
    length: usize,
    stretch: Vec<SchedEvent>,
    /// The state before the stretch.
    before: Option<SchedState>,
}

impl InScenes {
    fn follow(&mut self) {
        let Some(before) = self.before.take() else { return };
        let mut scenes = MoveScene::all(self.stretch.iter(), before).into_iter();
        for event in self.stretch.drain(..) {
            let found = &mut self.found;
            let scene = || scenes.next().expect("a scene for each event that needs one");
            found.0.event_in(&event, scene, |migration| found.1.push(migration));
        }
        assert_eq!(scenes.len(), 0);
    }
}

impl Analysis for InScenes {
    type Output = Vec<Migration>;

    fn before(&mut self, event: &SchedEvent, state: &SchedState) {
        self.before.get_or_insert_with(|| state.clone());
        self.stretch.push(*event);
        if self.stretch.len() == self.length {
            self.follow();
        }
    }

    fn finish(mut self, end: Ts, state: &SchedState) -> Vec<Migration> {
        self.follow();
        self.found.finish(end, state)
    }
}

const SOFTIRQ: u8 = 0x10;
const R: PrevState = PrevState::RUNNABLE;
const S: PrevState = PrevState { class: StateClass::Asleep, raw: 1 };
const D: PrevState = PrevState { class: StateClass::Asleep, raw: 2 };
/// A distance at which no event is near any more, in milliseconds.
const LATE: i64 = 1_000;

/// The task with this number; the stopper of CPU 0 is 20, and the thread of CPU 2's softirqs 30.
fn task(pid: i32) -> TaskRef {
    let name = match pid {
        0 => "swapper".to_owned(),
        20 => "migration/0".to_owned(),
        30 => "ksoftirqd/2".to_owned(),
        _ => format!("task{pid}"),
    };
    TaskRef { pid: Pid(pid), prio: if pid == 20 { 0 } else { 120 }, comm: Comm::new(name.as_bytes()) }
}

/// An event at `ms`.
fn at(ms: i64, cpu: u32, pid: i32, flags: u8, kind: EventKind) -> SchedEvent {
    SchedEvent { ts: Ts(ms * 1_000_000), cpu: Cpu(cpu), pid: Pid(pid), flags, kind }
}

fn switch(ms: i64, cpu: u32, prev: i32, state: PrevState, next: i32) -> SchedEvent {
    at(ms, cpu, prev, 0, EventKind::Switch { prev: task(prev), state, next: task(next) })
}

fn exec(ms: i64, cpu: u32, pid: i32) -> SchedEvent {
    at(ms, cpu, pid, 0, EventKind::Exec { pid: Pid(pid), old_pid: Pid(pid), program: Comm::new(b"program") })
}

fn migrate(ms: i64, cpu: u32, pid: i32, moved: i32, orig: u32, dest: u32) -> SchedEvent {
    at(ms, cpu, pid, 0, EventKind::Migrate { task: task(moved), orig: Cpu(orig), dest: Cpu(dest) })
}

fn found(events: &[&[SchedEvent]]) -> Vec<Migration> {
    let events = events.concat();
    let analyses = || (Collect::default(), [1, 2, 100].map(|length| InScenes { length, ..InScenes::default() }).into());
    let (found, in_scenes): (_, Vec<_>) =
        Pass::over(&events[..]).run::<(Collect, Vec<InScenes>)>(analyses).unwrap_or_else(|never| match never {}).output;
    assert_eq!(in_scenes, vec![found.clone(); 3]);
    found
}

/// The causes of all migrations where task 7 runs on CPU 0, 9 on CPU 1 and 30 on CPU 2, the stopper of CPU 0 moves 7 to
/// CPU 1 at 4 ms, where it runs at 6 ms, and then `after` follows; `waking` is what woke the stopper.
fn stopped(waking: Option<(u32, i32, u8)>, after: &[SchedEvent]) -> Vec<Cause> {
    let start = [
        at(0, 0, 7, 0, EventKind::Other { id: 1 }),
        at(0, 1, 9, 0, EventKind::Other { id: 1 }),
        switch(0, 2, 0, R, 30),
    ];
    let wakes = EventKind::Waking { task: task(20), target: Cpu(0) };
    let waking: Vec<SchedEvent> = waking.map(|(cpu, pid, flags)| at(1, cpu, pid, flags, wakes)).into_iter().collect();
    let moved = [
        at(2, 0, 7, 0, EventKind::Wakeup { task: task(20), target: Cpu(0) }),
        switch(3, 0, 7, R, 20),
        migrate(4, 0, 20, 7, 0, 1),
        switch(5, 0, 20, S, 0),
        switch(6, 1, 9, S, 7),
    ];
    found(&[&start, &waking, &moved, after]).iter().map(|migration| migration.cause).collect()
}

#[test]
fn a_move_by_the_stopper_has_the_cause_of_its_waking() {
    let itself = Some((0, 7, 0));
    assert_eq!(stopped(itself, &[exec(LATE, 1, 7)]), [Cause::Exec], "however long it takes");
    assert_eq!(stopped(itself, &[]), [Cause::Affinity]);
    assert_eq!(stopped(Some((1, 9, SOFTIRQ)), &[exec(LATE, 1, 7)]), [Cause::Active]);
    assert_eq!(stopped(Some((0, 7, SOFTIRQ)), &[]), [Cause::Active], "a softirq on the task's own CPU");
    assert_eq!(stopped(Some((1, 9, 0)), &[]), [Cause::Active], "new-idle balancing for CPU 1");
    assert_eq!(stopped(Some((2, 30, 0)), &[]), [Cause::Active], "the thread of the softirqs, on behalf of CPU 1");
    assert_eq!(stopped(None, &[]), [Cause::Stopper]);
    assert_eq!(stopped(None, &[exec(7, 1, 7)]), [Cause::Exec]);
    assert_eq!(stopped(None, &[exec(LATE, 1, 7)]), [Cause::Exec], "it did not sleep");
    // Not for CPU 1: a change of affinity by another task.
    let on_cpu_3 = [
        at(0, 3, 11, 0, EventKind::Other { id: 1 }),
        at(1, 3, 11, 0, EventKind::Waking { task: task(20), target: Cpu(0) }),
    ];
    let rest = [switch(3, 0, 7, R, 20), migrate(4, 0, 20, 7, 0, 1)];
    let first = [at(0, 0, 7, 0, EventKind::Other { id: 1 })];
    assert_eq!(found(&[&first, &on_cpu_3, &rest])[0].cause, Cause::Affinity);
}

#[test]
fn a_sleep_separates_a_move_from_an_exec() {
    let itself = Some((0, 7, 0));
    let wakes = |ms| {
        let woken = task(7);
        [
            at(ms, 1, 0, 0, EventKind::Waking { task: woken, target: Cpu(1) }),
            at(ms, 1, 0, 0, EventKind::Wakeup { task: woken, target: Cpu(1) }),
        ]
    };
    let slept = |state, ms: i64| {
        [&[switch(10, 1, 7, state, 0)][..], &wakes(ms), &[switch(ms + 1, 1, 0, R, 7), exec(ms + 2, 1, 7)]].concat()
    };
    assert_eq!(stopped(itself, &slept(S, 20)), [Cause::Affinity]);
    assert_eq!(stopped(itself, &slept(D, LATE)), [Cause::Exec], "it waited for the disk, or a lock");
    // Where it is not known what woke the stopper, an exec soon after is taken for the reason.
    assert_eq!(stopped(None, &slept(S, 20)), [Cause::Exec]);
    assert_eq!(stopped(None, &slept(S, LATE)), [Cause::Stopper]);
}

#[test]
fn an_exec_is_the_reason_of_the_move_before_others() {
    // The balancer of CPU 2 moves the task again, before it gets to its exec.
    let again = [switch(7, 1, 7, R, 9), migrate(8, 2, 30, 7, 1, 2), switch(9, 2, 30, S, 7)];
    let with = |last: &[SchedEvent]| stopped(Some((0, 7, 0)), &[&again[..], last].concat());
    assert_eq!(with(&[exec(LATE, 2, 7)]), [Cause::Exec, Cause::NewIdle]);
    assert_eq!(with(&[]), [Cause::Affinity, Cause::NewIdle]);
    assert_eq!(with(&[switch(10, 2, 7, S, 0)]), [Cause::Affinity, Cause::NewIdle]);
    assert_eq!(with(&[at(10, 2, 7, 0, EventKind::Exit { pid: Pid(7) })]), [Cause::Affinity, Cause::NewIdle]);
}

#[test]
fn sleepers_that_the_balancer_moves() {
    // Task 7 sleeps on CPU 0, and CPU 1 runs task 9 or idles.
    let asleep = [at(0, 1, 9, 0, EventKind::Other { id: 1 }), switch(1, 0, 7, S, 0)];
    let pulled = |flags, cpu: u32, pid, dest, next: &[SchedEvent]| {
        let migrate = EventKind::Migrate { task: task(7), orig: Cpu(0), dest: Cpu(dest) };
        let found = found(&[&asleep, &[at(3, cpu, pid, flags, migrate)], next]);
        found.iter().map(|migration| (migration.cause, migration.first_run)).collect::<Vec<_>>()
    };
    let wakes = [
        at(7, 0, 0, 0, EventKind::Waking { task: task(7), target: Cpu(1) }),
        at(8, 0, 0, 0, EventKind::Wakeup { task: task(7), target: Cpu(1) }),
        switch(9, 1, 0, R, 7),
    ];
    let idles = [switch(4, 1, 9, S, 0)];
    let after = [&idles[..], &wakes].concat();
    // How long it sleeps on is not the time that it waits.
    assert_eq!(pulled(0, 1, 9, 1, &after), [(Cause::NewIdleSleeper, None)]);
    assert_eq!(pulled(SOFTIRQ, 1, 9, 1, &after), [(Cause::PeriodicSleeper, None)]);
    assert_eq!(pulled(SOFTIRQ, 2, 0, 1, &after), [(Cause::NohzIdleSleeper, None)]);
    // Nothing about it follows, or its exit: it sleeps on.
    assert_eq!(pulled(0, 1, 9, 1, &idles), [(Cause::NewIdleSleeper, None)]);
    let exit = [&idles[..], &[at(7, 0, 7, 0, EventKind::Exit { pid: Pid(7) })]].concat();
    assert_eq!(pulled(0, 1, 9, 1, &exit), [(Cause::NewIdleSleeper, None)]);
    // A move by a third CPU in task context has no known cause; it has no first run either.
    assert_eq!(pulled(0, 2, 8, 1, &wakes), [(Cause::Unknown, None)]);
    // It is switched in, and nothing woke it: it had waited.
    let runs = [&idles[..], &[switch(9, 1, 0, R, 7)]].concat();
    let first_run = Some(Dur(6_000_000));
    assert_eq!(pulled(0, 1, 9, 1, &runs), [(Cause::Unknown, first_run)]);
    assert_eq!(pulled(SOFTIRQ, 1, 9, 1, &runs), [(Cause::Periodic, first_run)]);
    // An idle CPU.
    let idle = [at(0, 1, 0, 0, EventKind::Other { id: 1 }), switch(1, 0, 7, S, 0)];
    let migrate = at(3, 1, 0, SOFTIRQ, EventKind::Migrate { task: task(7), orig: Cpu(0), dest: Cpu(1) });
    assert_eq!(found(&[&idle, &[migrate], &wakes])[0].cause, Cause::IdleSleeper);
}

/// The softirq of CPU 0, or of CPU 2, moves task 7 from CPU 0 to CPU 1.
#[test]
fn a_softirq_that_moves_a_task_from_its_own_cpu() {
    let moved = |before: &[SchedEvent], prio| {
        let start = [at(0, 0, 8, 0, EventKind::Other { id: 1 }), at(0, 1, 0, 0, EventKind::Other { id: 1 })];
        let task = TaskRef { prio, ..task(7) };
        let migrate = |cpu| at(3, cpu, 8, SOFTIRQ, EventKind::Migrate { task, orig: Cpu(0), dest: Cpu(1) });
        [0, 2].map(|cpu| found(&[&start, before, &[migrate(cpu)]])[0].cause)
    };
    let waits = [at(1, 0, 8, 0, EventKind::Wakeup { task: task(7), target: Cpu(0) })];
    assert_eq!(moved(&waits, 120), [Cause::NohzIdle; 2]);
    // A wakeup from a timer whose waking is not in the trace looks alike.
    assert_eq!(moved(&[switch(1, 0, 7, S, 8)], 120), [Cause::Unknown, Cause::NohzIdleSleeper]);
    // The softirq woke another task, and the class pushed this one.
    assert_eq!(moved(&waits, 50), [Cause::RealTime; 2]);
}

#[test]
fn a_throttled_task_is_not_queued_and_not_pulled() {
    use crate::event::probe::{CgroupId, Throttle};
    // Task 7 is queued on CPU 0 behind 8 and is throttled there with its cgroup, or is not. CPU 1 moves it as a new-idle
    // balance would.
    let moved = |throttled: bool, wakes: bool| {
        let group = CgroupId::new(28);
        let probe = |probe| at(2, 0, 8, 0, EventKind::Probe { id: 1, probe });
        let throttle = Throttle { cpu: Some(Cpu(0)), cgroup: Some(group), takes_queue: true };
        let throttles =
            [probe(Probe::Joins { pid: Pid(7), cgroup: group, forked: false }), probe(Probe::Throttles(throttle))];
        let start = [
            at(0, 0, 8, 0, EventKind::Other { id: 1 }),
            at(0, 1, 9, 0, EventKind::Other { id: 1 }),
            at(1, 0, 8, 0, EventKind::Wakeup { task: task(7), target: Cpu(0) }),
        ];
        let throttles = if throttled { &throttles[..] } else { &[] };
        // Or a wakeup follows, whose waking is not in the trace.
        let wakeup = [at(4, 1, 9, 0, EventKind::Wakeup { task: task(7), target: Cpu(1) })];
        let end = [switch(5, 1, 9, S, 7)];
        let wakeup = if wakes { &wakeup[..] } else { &[] };
        let found = found(&[&start, throttles, &[migrate(3, 1, 9, 7, 0, 1)], wakeup, &end]);
        (found[0].cause, found[0].queued)
    };
    assert_eq!(moved(false, false), (Cause::NewIdle, true));
    assert_eq!(moved(true, false), (Cause::Unknown, false));
    assert_eq!(moved(true, true), (Cause::Unknown, false), "it did not sleep");
}

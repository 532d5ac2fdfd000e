use super::*;
use sched::{Comm, Pass, PrevState, TaskRef};

const IDLE: i32 = 0;

fn task(pid: i32) -> TaskRef {
    TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(if pid == IDLE { b"swapper" } else { b"task" }) }
}

fn at(ts: i64, cpu: u32, pid: i32, kind: EventKind) -> SchedEvent {
    SchedEvent { ts: Ts(ts), cpu: Cpu(cpu), pid: Pid(pid), flags: 0, kind }
}

fn length(ts: i64, on: (u32, i32), cpu: u32, nr: u32, change: i32) -> SchedEvent {
    at(ts, on.0, on.1, EventKind::Probe { id: 1, probe: Probe::Length { cpu: Cpu(cpu), nr, change } })
}

fn switch(ts: i64, cpu: u32, prev: i32, next: i32) -> SchedEvent {
    let state = if prev == IDLE { PrevState::RUNNABLE } else { PrevState::asleep(1) };
    at(ts, cpu, prev, EventKind::Switch { prev: task(prev), state, next: task(next) })
}

fn found(events: &[SchedEvent]) -> KernelLengths {
    Pass::over(events).run(LengthCheck::default).unwrap_or_else(|never| match never {}).output
}

/// Task 7 is woken on CPU 0 by CPU 1, runs, and sleeps.
fn start() -> Vec<SchedEvent> {
    vec![
        at(0, 0, IDLE, EventKind::Other { id: 9 }),
        at(0, 1, 5, EventKind::Waking { task: task(7), target: Cpu(0) }),
        length(1, (1, 5), 0, 1, 1),
        at(2, 1, 5, EventKind::Wakeup { task: task(7), target: Cpu(0) }),
        switch(3, 0, IDLE, 7),
    ]
}

#[test]
fn lengths_are_equal_where_tasks_come_and_go() {
    let events = [start(), vec![length(4, (0, 7), 0, 0, -1), switch(5, 0, 7, IDLE)]].concat();
    assert_eq!(found(&events), KernelLengths { compared: 2, equal: 2, ..KernelLengths::default() });
}

#[test]
fn a_sleeping_task_can_stay_queued() {
    // It is woken again, and no record shows that it is queued: it was.
    let events = [
        start(),
        vec![
            switch(5, 0, 7, IDLE),
            at(6, 1, 5, EventKind::Waking { task: task(7), target: Cpu(0) }),
            at(7, 1, 5, EventKind::Wakeup { task: task(7), target: Cpu(0) }),
            switch(8, 0, IDLE, 7),
        ],
    ]
    .concat();
    assert_eq!(found(&events), KernelLengths { compared: 3, equal: 2, delayed_dequeue: 1, ..KernelLengths::default() });
}

#[test]
fn what_no_rule_explains_is_listed() {
    // Three tasks by the kernel, one by the events; then none by the kernel.
    let events = [
        at(0, 0, IDLE, EventKind::Other { id: 9 }),
        at(0, 1, 5, EventKind::Waking { task: task(7), target: Cpu(0) }),
        length(1, (1, 5), 0, 3, 1),
        at(2, 1, 5, EventKind::Wakeup { task: task(7), target: Cpu(0) }),
        switch(3, 0, IDLE, 7),
        length(4, (0, 7), 0, 0, -3),
        at(5, 1, 5, EventKind::Waking { task: task(8), target: Cpu(0) }),
        at(6, 1, 5, EventKind::Wakeup { task: task(8), target: Cpu(0) }),
        switch(7, 0, 7, 8),
    ];
    let listed = |ts, kernel, events| Disagreement { ts_ns: Ts(ts), cpu: Cpu(0), kernel, events };
    let first = vec![listed(3, 3, 1), listed(7, 0, 1)];
    let expected = KernelLengths { compared: 2, longer: 1, shorter: 1, first, ..KernelLengths::default() };
    assert_eq!(found(&events), expected);
    // Nothing is compared behind a loss, until the next record.
    let lost = at(2, 1, IDLE, EventKind::Lost { count: None });
    let events = [start(), vec![lost]].concat();
    let mut sorted = events.clone();
    sorted.sort_by_key(|event| event.ts);
    assert_eq!(found(&sorted).compared, 0);
}

#[test]
fn a_task_on_its_way_is_no_disagreement() {
    // CPU 2 moves task 7 from CPU 0, where 6 runs, to CPU 1, which switches before the task is queued there.
    let events = [
        at(0, 0, 6, EventKind::Other { id: 9 }),
        at(0, 1, IDLE, EventKind::Other { id: 9 }),
        at(0, 2, 5, EventKind::Waking { task: task(8), target: Cpu(1) }),
        length(1, (2, 5), 1, 1, 1),
        at(2, 2, 5, EventKind::Wakeup { task: task(8), target: Cpu(1) }),
        at(3, 2, 5, EventKind::Waking { task: task(7), target: Cpu(0) }),
        at(4, 2, 5, EventKind::Wakeup { task: task(7), target: Cpu(0) }),
        at(5, 2, 5, EventKind::Migrate { task: task(7), orig: Cpu(0), dest: Cpu(1) }),
        switch(6, 1, IDLE, 8),
        length(7, (2, 5), 1, 2, 1),
        length(8, (1, 8), 1, 1, -1),
        switch(9, 1, 8, 7),
    ];
    assert_eq!(found(&events), KernelLengths { compared: 2, equal: 1, in_flight: 1, ..KernelLengths::default() });
}

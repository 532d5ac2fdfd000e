//! Throttling on made events: CPUs 0 and 1, tasks 7 and 8 in cgroup 28 or below it.

use super::*;
use crate::event::span::Current;
use crate::event::span::Span;
use crate::event::{Comm, EventKind, PrevState, TaskRef};
use crate::state::Start;
use TaskState::{Running, Throttled, Unknown, Waiting};
use std::sync::Arc;

const R: PrevState = PrevState::RUNNABLE;
const S: PrevState = PrevState::asleep(1);
/// A cgroup with a limit, and one below it.
const OUTER: u64 = 28;
const INNER: u64 = 51 | 7 << 40;

fn task(pid: i32) -> TaskRef {
    TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(format!("t{pid}").as_bytes()) }
}

fn at(ts: i64, cpu: u32, pid: i32, kind: EventKind) -> SchedEvent {
    SchedEvent { ts: Ts(ts), cpu: Cpu(cpu), pid: Pid(pid), flags: 0, kind }
}

fn switch(ts: i64, cpu: u32, prev: i32, state: PrevState, next: i32) -> SchedEvent {
    at(ts, cpu, prev, EventKind::Switch { prev: task(prev), state, next: task(next) })
}

fn wakeup(ts: i64, pid: i32, target: u32) -> SchedEvent {
    at(ts, target, 0, EventKind::Wakeup { task: task(pid), target: Cpu(target) })
}

fn probe(ts: i64, cpu: u32, pid: i32, probe: Probe) -> SchedEvent {
    at(ts, cpu, pid, EventKind::Probe { id: 1, probe })
}

fn limit(group: u64, cpu: u32) -> Throttle {
    Throttle { cpu: Some(Cpu(cpu)), cgroup: Some(CgroupId::new(group)), takes_queue: true }
}

/// A record on CPU 0 that concerns another CPU or the same.
fn throttle(ts: i64, group: u64, cpu: u32) -> SchedEvent {
    probe(ts, 0, 0, Probe::Throttles(limit(group, cpu)))
}

fn unthrottle(ts: i64, group: u64, cpu: u32) -> SchedEvent {
    probe(ts, 0, 0, Probe::Unthrottles(limit(group, cpu)))
}

/// The same of a kernel that throttles task by task.
fn throttle_later(ts: i64, group: u64, cpu: u32) -> SchedEvent {
    probe(ts, 0, 0, Probe::Throttles(Throttle { takes_queue: false, ..limit(group, cpu) }))
}

fn joins(ts: i64, pid: i32, group: u64, forked: bool) -> SchedEvent {
    probe(ts, 0, 9, Probe::Joins { pid: Pid(pid), cgroup: CgroupId::new(group), forked })
}

/// A state with these cgroups of tasks at the start, whose CPUs idle.
fn machine(groups: &[(i32, u64)]) -> SchedState {
    let groups: Arc<[_]> = groups.iter().map(|(pid, group)| (Pid(*pid), CgroupId::new(*group))).collect();
    let cpus = (0..2).map(|cpu| (Cpu(cpu), Current::Idle)).collect();
    SchedState::new(&Start { cpus, groups, ..Start::default() })
}

fn after(mut state: SchedState, events: &[SchedEvent]) -> SchedState {
    state.count();
    events.iter().for_each(|event| state.apply(event));
    state
}

fn states<const N: usize>(state: &SchedState, pids: [i32; N]) -> [Option<TaskState>; N] {
    pids.map(|pid| state.task_of(Pid(pid)).map(|task| task.state))
}

/// 7 runs on CPU 0 and 8 waits there, both in `OUTER`; then 7 is throttled.
fn throttled() -> Vec<SchedEvent> {
    vec![wakeup(1, 7, 0), switch(2, 0, 0, R, 7), wakeup(3, 8, 0), throttle(10, OUTER, 0), switch(11, 0, 7, R, 0)]
}

#[test]
fn queued_and_preempted_tasks_of_a_throttled_cgroup_do_not_wait() {
    let groups = [(7, OUTER), (8, OUTER)];
    let state = after(machine(&groups), &throttled()[..4]);
    assert_eq!(states(&state, [7, 8]), [Some(Running(Cpu(0))), Some(Throttled(Cpu(0)))]);
    let state = after(machine(&groups), &throttled());
    assert_eq!(states(&state, [7, 8]), [Some(Throttled(Cpu(0))); 2]);
    assert_eq!((state.queue_length(Cpu(0)), state.counts().waiting, state.counts().idle), (0, 0, 2));
    assert_eq!(state.throttled(Cpu(0)).map(|task| task.pid.0).collect::<Vec<_>>(), [8, 7]);
    // A wakeup joins the same run queue; on another CPU the cgroup may run.
    let woken = [throttled(), vec![wakeup(12, 9, 0), wakeup(13, 5, 1)]].concat();
    let state = after(machine(&[groups.as_slice(), &[(9, OUTER), (5, OUTER)]].concat()), &woken);
    assert_eq!(states(&state, [9, 5]), [Some(Throttled(Cpu(0))), Some(Waiting(Cpu(1)))]);
    // The end, by a timer on CPU 1.
    let end = probe(20, 1, 0, Probe::Unthrottles(limit(OUTER, 0)));
    let state = after(machine(&groups), &[throttled(), vec![end]].concat());
    assert_eq!(states(&state, [7, 8]), [Some(Waiting(Cpu(0))); 2]);
    assert_eq!(state.waiting(Cpu(0)).map(|task| (task.pid.0, task.since.0)).collect::<Vec<_>>(), [(8, 20), (7, 20)]);
    let spans: Vec<_> = state.spans().iter().map(|s| (s.pid.0, s.state, s.start.0, s.end.0, s.ended)).collect();
    assert_eq!(spans, [(8, Throttled(Cpu(0)), 10, 20, true), (7, Throttled(Cpu(0)), 11, 20, true)]);
}

#[test]
fn other_tasks_wait_as_before() {
    // 8 is in no cgroup with a limit, 5 is a real-time task in one.
    let rt = TaskRef { prio: 50, ..task(5) };
    let others = [
        throttled(),
        vec![
            at(12, 0, 0, EventKind::Wakeup { task: rt, target: Cpu(0) }),
            at(12, 0, 0, EventKind::Wakeup { task: task(6), target: Cpu(0) }),
        ],
    ]
    .concat();
    let state = after(machine(&[(7, OUTER), (5, OUTER)]), &others);
    let expected = [Throttled(Cpu(0)), Waiting(Cpu(0)), Waiting(Cpu(0)), Waiting(Cpu(0))];
    assert_eq!(states(&state, [7, 8, 5, 6]), expected.map(Some));
    // Records without a cgroup change no task; they show that the CPU is throttled.
    let of_cpu = probe(10, 0, 7, Probe::Throttles(Throttle { cgroup: None, ..limit(OUTER, 0) }));
    let mut events = throttled();
    events[3] = of_cpu;
    let state = after(machine(&[]), &events);
    assert_eq!(states(&state, [7, 8]), [Some(Waiting(Cpu(0))); 2]);
    assert_eq!(state.throttling_limits().collect::<Vec<_>>(), [(Cpu(0), None, 1)]);
}

#[test]
fn nested_limits_end_one_by_one() {
    // The limit of the outer cgroup throttles both, and then the inner one has its own.
    let nested = [
        throttle(20, OUTER, 0),
        throttle(20, INNER, 0),
        throttle(21, INNER, 0),
        unthrottle(30, INNER, 0),
        unthrottle(30, OUTER, 0),
    ];
    let before = &throttled()[..3];
    let groups = [(7, OUTER), (8, INNER)];
    let state = |count: usize| after(machine(&groups), &[before, &nested[..count]].concat());
    assert_eq!(states(&state(2), [8]), [Some(Throttled(Cpu(0)))]);
    assert_eq!(states(&state(5), [7, 8]), [Some(Running(Cpu(0))), Some(Throttled(Cpu(0)))]);
    let mut ended = state(5);
    ended.apply(&unthrottle(40, INNER, 0));
    assert_eq!(states(&ended, [8]), [Some(Waiting(Cpu(0)))]);
    assert_eq!(ended.repaired(EventIssue::UnseenUnthrottle), 0);
}

#[test]
fn children_begin_in_the_cgroup_of_their_parent() {
    let born = |ts, pid| at(ts, 1, 7, EventKind::WakeupNew { task: task(pid), target: Cpu(0) });
    let fork = |ts, child| at(ts, 1, 7, EventKind::Fork { parent: Pid(7), child: Pid(child), child_comm: Comm::EMPTY });
    // By the fork alone.
    let by_fork = vec![throttle(10, OUTER, 0), fork(11, 30), born(12, 30)];
    let state = after(machine(&[(7, OUTER)]), &by_fork);
    assert_eq!(states(&state, [30]), [Some(Throttled(Cpu(0)))]);
    // Records of forks show another one (`CLONE_INTO_CGROUP`), and count for all forks.
    let by_record = vec![
        throttle(10, OUTER, 0),
        joins(11, 30, 1, true),
        fork(11, 30),
        born(12, 30),
        joins(13, 31, OUTER, true),
        fork(13, 31),
        born(14, 31),
        fork(15, 32),
        born(16, 32),
    ];
    let state = after(machine(&[(7, OUTER)]), &by_record);
    let expected = [Waiting(Cpu(0)), Throttled(Cpu(0)), Waiting(Cpu(0))];
    assert_eq!(states(&state, [30, 31, 32]), expected.map(Some));
    // A dead task takes its cgroup with it.
    let reused = vec![
        wakeup(1, 7, 0),
        switch(2, 0, 0, R, 7),
        switch(3, 0, 7, PrevState::DEAD, 0),
        throttle(4, OUTER, 0),
        born(5, 7),
    ];
    let state = after(machine(&[(7, OUTER)]), &reused);
    assert_eq!(states(&state, [7]), [Some(Waiting(Cpu(0)))]);
}

#[test]
fn moved_tasks_are_throttled_where_their_cgroup_is() {
    let moved =
        |ts, orig, dest| at(ts, dest, 0, EventKind::Migrate { task: task(8), orig: Cpu(orig), dest: Cpu(dest) });
    let groups = [(7, OUTER), (8, OUTER)];
    let state = after(machine(&groups), &[throttled(), vec![moved(12, 0, 1)]].concat());
    assert_eq!(states(&state, [8]), [Some(Waiting(Cpu(1)))]);
    let back = [throttled(), vec![moved(12, 0, 1), moved(13, 1, 0)]].concat();
    assert_eq!(states(&after(machine(&groups), &back), [8]), [Some(Throttled(Cpu(0)))]);
    // To another cgroup and back.
    let out = [throttled(), vec![joins(12, 8, 1, false)]].concat();
    assert_eq!(states(&after(machine(&groups), &out), [8]), [Some(Waiting(Cpu(0)))]);
    let back = [out, vec![joins(13, 8, OUTER, false)]].concat();
    assert_eq!(states(&after(machine(&groups), &back), [8]), [Some(Throttled(Cpu(0)))]);
}

#[test]
fn a_throttled_task_that_runs_shows_that_an_end_was_not_seen() {
    let events = [throttled(), vec![switch(20, 0, 0, R, 7)]].concat();
    let mut state = after(machine(&[(7, OUTER), (8, OUTER)]), &events);
    assert_eq!(states(&state, [7, 8]), [Some(Running(Cpu(0))), Some(Waiting(Cpu(0)))]);
    assert_eq!(state.repaired(EventIssue::UnseenUnthrottle), 1);
    let is_known = |span: &Span| span.ended;
    assert!(!state.spans().iter().any(|span| span.state == Throttled(Cpu(0)) && is_known(span)));
    // An end that follows is not one of throttling since the start, of which a pass would learn again and again.
    let start = Start {
        groups: Arc::new([(Pid(7), CgroupId::new(OUTER))]),
        throttled: vec![(CgroupId::new(OUTER), Cpu(0))],
        ..Start::default()
    };
    let events = [wakeup(1, 7, 0), switch(2, 0, 0, R, 7), unthrottle(3, OUTER, 0)];
    let again = after(SchedState::new(&start), &events);
    assert_eq!(again.repaired(EventIssue::UnseenUnthrottle), 1);
    assert!(again.discovered_throttling().is_empty());
    // The next beginning counts, and so does its end.
    state.apply(&throttle(30, OUTER, 0));
    assert_eq!(states(&state, [8]), [Some(Throttled(Cpu(0)))]);
    state.apply(&unthrottle(40, OUTER, 0));
    assert_eq!(states(&state, [8]), [Some(Waiting(Cpu(0)))]);
}

#[test]
fn a_loss_makes_throttling_unknown_until_it_begins_again() {
    let lost = at(15, 1, 0, EventKind::Lost { count: None });
    let mut state = after(machine(&[(7, OUTER), (8, OUTER), (5, OUTER)]), &[throttled(), vec![lost]].concat());
    assert_eq!(states(&state, [7, 8]), [Some(Unknown); 2]);
    // An end does not show throttling since the start, and a wakeup is believed.
    state.apply(&unthrottle(20, OUTER, 0));
    assert!(state.discovered_throttling().is_empty());
    state.apply(&wakeup(21, 5, 0));
    assert_eq!(states(&state, [5]), [Some(Waiting(Cpu(0)))]);
    state.apply(&throttle(22, OUTER, 0));
    assert_eq!(states(&state, [5]), [Some(Throttled(Cpu(0)))]);
}

#[test]
fn later_kernels_throttle_a_task_when_it_leaves_the_kernel() {
    let groups = [(8, OUTER)];
    let works = |ts, pid| probe(ts, 0, pid, Probe::ThrottlesTask(Pid(pid), CgroupId::new(OUTER)));
    let begin = vec![wakeup(1, 7, 0), switch(2, 0, 0, R, 7), wakeup(3, 8, 0), throttle_later(10, OUTER, 0)];
    // 8 still waits. The record shows the cgroup of 7.
    let events = [begin.clone(), vec![works(11, 7), switch(12, 0, 7, PrevState::PREEMPTED, 8)]].concat();
    let mut state = after(machine(&groups), &events);
    assert_eq!(states(&state, [7, 8]), [Some(Throttled(Cpu(0))), Some(Running(Cpu(0)))]);
    // 8 is preempted in the kernel, and then runs on to where it is throttled.
    for event in [switch(13, 0, 8, PrevState::PREEMPTED, 6), switch(14, 0, 6, S, 8)] {
        state.apply(&event);
    }
    assert_eq!(states(&state, [8]), [Some(Running(Cpu(0)))]);
    for event in [works(15, 8), switch(16, 0, 8, R, 0)] {
        state.apply(&event);
    }
    assert_eq!(states(&state, [7, 8]), [Some(Throttled(Cpu(0))); 2]);
    state.apply(&unthrottle(20, OUTER, 0));
    assert_eq!(states(&state, [7, 8]), [Some(Waiting(Cpu(0))); 2]);
    assert_eq!(state.repaired(EventIssue::UnseenUnthrottle), 0);
    // The end comes before the task is taken from the queue.
    let raced = [begin, vec![works(11, 7), unthrottle(12, OUTER, 0), switch(13, 0, 7, R, 8)]].concat();
    assert_eq!(states(&after(machine(&groups), &raced), [7]), [Some(Waiting(Cpu(0)))]);
}

#[test]
fn a_part_goes_on_with_what_was_noted() {
    let events = [throttled(), vec![wakeup(12, 5, 0), unthrottle(20, OUTER, 0), throttle(25, OUTER, 1)]].concat();
    let groups = [(7, OUTER), (8, OUTER), (5, OUTER)];
    for cut in 0..events.len() {
        let mut whole = after(machine(&groups), &events[..cut]);
        let from = events[cut].ts;
        let past = serde_json::to_string(&crate::Past { from, ..whole.noted() }).expect("JSON");
        let mut part = SchedState::after(&serde_json::from_str(&past).expect("a past"), None);
        for event in &events[cut..] {
            whole.apply(event);
            part.apply(event);
            assert_eq!(states(&part, [7, 8, 5]), states(&whole, [7, 8, 5]), "{cut}: {event:?}");
        }
        assert_eq!(part.noted(), whole.noted(), "{cut}");
    }
}

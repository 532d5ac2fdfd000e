//! `why`: how single waits and idle stretches begin and end.

use crate::support::{events, fixture, schedviz};
use parse::Trace;
use sched::{Comm, Cpu, EventKind, Pass, Pid, PrevState, SchedEvent, StateClass, TaskRef, Ts};
use std::sync::Mutex;
use why::{Cases, IdleEnd, IdleOrigin, ListedCase, Preempter, WaitEnd, WaitOrigin, Why};
use workcons::{Options, Waiters};

/// `idle_inject/N` has a real-time priority; it is a kernel thread first.
#[test]
fn a_kernel_thread_preempts_as_one_whatever_its_priority() {
    let file = fixture("idleinject.dat");
    let trace = Trace::open(&file, parse::Options::default()).expect("a recording");
    let preempts = |event: &SchedEvent| match event.kind {
        EventKind::Switch { prev, state, next }
            if prev.pid.0 != 0 && matches!(state.class, StateClass::Preempted | StateClass::Runnable) =>
        {
            next.comm.as_bytes().starts_with(b"idle_inject/") && next.prio < 100
        }
        _ => false,
    };
    let events = events(&trace);
    let number = events.iter().filter(|event| preempts(event)).count();
    assert_eq!(number, 10);
    let found = Mutex::new(Vec::new());
    let list = |case: &ListedCase<WaitOrigin, WaitEnd>| found.lock().expect("a list").push(case.origin);
    let cases = Cases { wait: &list, stretch: &|_| {} };
    let options = Options { waiters: Waiters::All, ..Options::default() };
    let pass = Pass::over(&events[..]).run(|| Why::new(&options).listing(&cases));
    let _ = pass.unwrap_or_else(|never| match never {});
    let found = found.into_inner().expect("a list");
    let of = |by: Preempter| found.iter().filter(|origin| **origin == WaitOrigin::Preempted(by)).count();
    assert_eq!((of(Preempter::Kernel), of(Preempter::RealTime)), (number, 0), "{found:?}");
}

/// The events of CPU 0, which runs 10, idles with 11 queued if that is `held`, and then runs it; 20 and 21 are on CPU 1.
fn an_idle_cpu_that_runs_11(held: bool) -> Vec<SchedEvent> {
    let task = |pid: i32| TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(b"task") };
    let at = |ts, cpu, pid, kind| SchedEvent { ts: Ts(ts), cpu: Cpu(cpu), pid: Pid(pid), flags: 0, kind };
    let switch = |prev, next| EventKind::Switch { prev: task(prev), state: PrevState::asleep(1), next: task(next) };
    let wakeup = |pid, target| EventKind::Wakeup { task: task(pid), target: Cpu(target) };
    let mut events = vec![
        at(0, 0, 10, EventKind::Other { id: 1 }),
        at(0, 1, 20, EventKind::Other { id: 1 }),
        at(0, 2, 0, EventKind::Other { id: 1 }),
        at(0, 1, 20, wakeup(21, 1)),
        at(if held { 5 } else { 15 }, 1, 20, wakeup(11, 0)),
        at(10, 0, 10, switch(10, 0)),
        at(40, 0, 0, switch(0, 11)),
        at(100, 1, 20, switch(20, 21)),
    ];
    events.sort_by_key(|event| event.ts);
    events
}

#[test]
fn an_idle_stretch_ends_with_a_task_that_came_or_that_had_been_there() {
    let options = Options { waiters: Waiters::All, ..Options::default() };
    let woken = (IdleOrigin::Slept, IdleEnd::Woken);
    for (held, expected) in [(false, woken), (true, (IdleOrigin::HeldBack, IdleEnd::Released))] {
        let found = Mutex::new(Vec::new());
        let list = |case: &ListedCase<IdleOrigin, IdleEnd>| {
            found.lock().expect("a list").push((case.origin, case.ending, case.start.0, case.end.0));
        };
        let cases = Cases { wait: &|_| {}, stretch: &list };
        let events = an_idle_cpu_that_runs_11(held);
        let pass = Pass::over(&events[..]).run(|| Why::new(&options).listing(&cases));
        let _ = pass.unwrap_or_else(|never| match never {});
        let found = found.into_inner().expect("a list");
        assert!(found.contains(&(expected.0, expected.1, 10, 40)), "{found:?}");
    }
}

/// With tasks selected in its place "the application" is those, and the text names them so.
#[test]
fn preempted_by_a_selected_task() {
    let file = fixture("hackbench.dat");
    let file = file.to_str().expect("a path");
    let of = |selection: &[&str]| {
        let arguments = [&["why", file, "--waiters", "all", "-q"][..], selection].concat();
        let text = schedviz(&arguments).success().text();
        let json = schedviz(&[&arguments[..], &["--json"]].concat()).success().text();
        (text, json)
    };
    for (selection, words, not) in [
        (&[][..], "preempted by the application", "by a selected task"),
        (&["--tasks", "hackbench"][..], "preempted by a selected task", "by the application"),
    ] {
        let (text, json) = of(selection);
        assert!(text.contains(words) && !text.contains(not), "{selection:?}: {text}");
        assert!(json.contains("\"preempted-by-application\""), "{selection:?}");
    }
}

/// A deadline task, a real-time one and one of another program preempt on CPU 0 while CPU 1 idles: each is an origin of its own.
#[test]
fn the_class_of_the_task_that_preempts_is_named() {
    let task = |pid: i32| {
        let prio = [(40, -1), (50, 49)].iter().find(|(of, _)| *of == pid).map_or(120, |(_, prio)| *prio);
        TaskRef { pid: Pid(pid), prio, comm: Comm::new(b"task") }
    };
    let mut events =
        vec![SchedEvent { ts: Ts(0), cpu: Cpu(1), pid: Pid(0), flags: 0, kind: EventKind::Other { id: 1 } }];
    for (ts, next) in [(100, 40), (200, 50), (300, 60)] {
        let switch = |ts, prev, state, next| {
            let kind = EventKind::Switch { prev: task(prev), state, next: task(next) };
            SchedEvent { ts: Ts(ts), cpu: Cpu(0), pid: Pid(prev), flags: 0, kind }
        };
        events.push(switch(ts, 10, PrevState::RUNNABLE, next));
        events.push(switch(ts + 50, next, PrevState::asleep(1), 10));
    }
    let options = Options { waiters: Waiters::All, ..Options::default() };
    let pass = Pass::over(&events[..]).run(|| Why::new(&options));
    let waiting = pass.unwrap_or_else(|never| match never {}).output.waiting.expect("waits");
    let mut began: Vec<(&str, u64)> = waiting.rows.iter().map(|row| (row.began, row.total_ns.0)).collect();
    began.sort_unstable();
    let other =
        if began[0].0 == "preempted-by-application" { "preempted-by-application" } else { "preempted-by-other" };
    let mut expected = vec![("preempted-by-deadline", 50), ("preempted-by-real-time", 50), (other, 50)];
    expected.sort_unstable();
    assert_eq!((began, waiting.total_ns.0), (expected, 150));
}

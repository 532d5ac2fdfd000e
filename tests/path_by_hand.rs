//! The critical path of a few events by hand, and of a task that the window does not show.

use crate::path::{at, idle, path_of, pieces, task, tiles};
use crate::support::{fixture, schedviz};
use parse::Trace;
use path::SegmentKind;
use sched::{Comm, Cpu, EventKind as Event, Pid, PrevState, SchedEvent, TaskRef, Ts};
use std::collections::BTreeSet;

#[test]
fn a_path_by_hand() {
    let (idle, sleep) = (idle(), PrevState::asleep(1));
    let switch = |prev, state, next| Event::Switch { prev, state, next };
    let events = [
        at(0, 0, 5, Event::Other { id: 1 }),
        at(0, 1, 0, Event::Other { id: 1 }),
        // 5 sleeps at 10; 6 runs on its CPU.
        at(0, 0, 5, Event::Waking { task: task(6), target: Cpu(0) }),
        at(2, 0, 5, Event::Wakeup { task: task(6), target: Cpu(0) }),
        at(10, 0, 5, switch(task(5), sleep, task(6))),
        // 6 wakes 5 at 40, which is queued on the same CPU from 42 on and runs at 50.
        at(40, 0, 6, Event::Waking { task: task(5), target: Cpu(0) }),
        at(42, 0, 6, Event::Wakeup { task: task(5), target: Cpu(0) }),
        at(50, 0, 6, switch(task(6), sleep, task(5))),
        // 5 sleeps at 60, and an interrupt on CPU 1, which idles, wakes it at 80.
        at(60, 0, 5, switch(task(5), sleep, idle)),
        at(80, 1, 0, Event::Waking { task: task(5), target: Cpu(0) }),
        at(83, 1, 0, Event::Wakeup { task: task(5), target: Cpu(0) }),
        at(90, 0, 0, switch(idle, PrevState::RUNNABLE, task(5))),
        at(100, 0, 5, Event::Exit { pid: Pid(5) }),
    ];
    let path = path_of(&events, Some(5));
    tiles("by hand", &path);
    // 6 ran while 5 slept, until it woke 5; that 6 waited before does not matter.
    let expected = [
        (SegmentKind::Running, 5, Some(0), 0, 10),
        (SegmentKind::Running, 6, Some(0), 10, 40),
        (SegmentKind::Waking, 5, None, 40, 42),
        (SegmentKind::Queued, 5, Some(0), 42, 50),
        (SegmentKind::Running, 5, Some(0), 50, 60),
        (SegmentKind::Sleeping, 5, None, 60, 80),
        (SegmentKind::Waking, 5, None, 80, 83),
        (SegmentKind::Queued, 5, Some(0), 83, 90),
        (SegmentKind::Running, 5, Some(0), 90, 100),
    ];
    assert_eq!(pieces(&path), expected);
    // CPU 1 idles with an empty run queue all the while.
    assert_eq!((path.times.queued_ns, path.times.queued_beside_idle_ns), (8 + 7, 8 + 7));
    assert_eq!((path.handovers, path.longest_queued[0].duration_ns.0), (Some(1), 8));
    assert_eq!(path.longest_queued[0].behind.map(|task| task.pid), Some(Pid(6)));
}

/// A task is queued behind another one for as long as that stays, and behind others for the rest of its wait.
#[test]
fn the_task_behind_which_the_path_is_queued_has_its_share() {
    let sleep = PrevState::asleep(1);
    let switch = |prev, state, next| Event::Switch { prev, state, next };
    let events = [
        at(0, 0, 6, Event::Other { id: 1 }),
        at(0, 1, 5, Event::Other { id: 1 }),
        at(1, 1, 5, Event::Wakeup { task: task(7), target: Cpu(0) }),
        // 5 moves to the queue of CPU 0 at 10, behind 6, which sleeps at 12; 7 runs until 110.
        at(5, 1, 5, switch(task(5), PrevState::RUNNABLE, idle())),
        at(10, 1, 0, Event::Migrate { task: task(5), orig: Cpu(1), dest: Cpu(0) }),
        at(12, 0, 6, switch(task(6), sleep, task(7))),
        at(110, 0, 7, switch(task(7), PrevState::RUNNABLE, task(5))),
        // 7 waits, and runs again while 5 is queued: it stays to the end of that wait.
        at(120, 0, 5, switch(task(5), PrevState::RUNNABLE, task(7))),
        at(150, 0, 7, switch(task(7), PrevState::RUNNABLE, task(5))),
        at(160, 0, 5, Event::Exit { pid: Pid(5) }),
    ];
    let path = path_of(&events, Some(5));
    tiles("behind", &path);
    let queued = path.path.iter().filter(|segment| segment.kind == SegmentKind::Queued);
    let found: Vec<_> = queued.map(|s| (s.start_ns.0, s.length(), s.behind.map(|pid| pid.0), s.behind_ns)).collect();
    assert_eq!(found, [(5, 5, None, 0), (10, 100, Some(6), 2), (120, 30, Some(7), 30)]);
    let rows: Vec<_> =
        path.behind.iter().map(|row| (row.task.pid.0, row.segments, row.queued_ns, row.behind_ns)).collect();
    assert_eq!(rows, [(7, 1, 30, 30), (6, 1, 100, 2)]);
    let text = path::segments_text(&path, Ts(0), 20);
    assert!(text.contains(" at first behind ") && text.contains(" on CPU 0 behind "), "{text}");
}

/// A task that the window does not show is there all the same: its path through the window is unknown.
#[test]
fn a_task_whose_first_event_lies_behind_the_window_is_unknown_in_it() {
    let task = |pid: i32| TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(b"task") };
    let at = |ts, pid, kind| SchedEvent { ts: Ts(ts), cpu: Cpu(0), pid: Pid(pid), flags: 0, kind };
    let events = [at(0, 5, Event::Other { id: 1 }), at(100, 5, Event::Other { id: 1 })];
    let path = path_of(&events, Some(6));
    tiles("not seen", &path);
    assert_eq!(pieces(&path), [(SegmentKind::Unknown, 6, None, 0, 100)]);
    let shown = path.task.map(|task| (task.pid, task.command.to_string()));
    assert_eq!(shown, Some((Pid(6), "named".to_owned())));
    // The path of one that is seen to die in the window, without the record of an exit, ends there.
    let die =
        Event::Switch { prev: task(5), state: PrevState { class: sched::StateClass::Dead, raw: 64 }, next: task(6) };
    let dead = [at(0, 5, Event::Other { id: 1 }), at(50, 5, die), at(100, 6, Event::Other { id: 1 })];
    let dead = path_of(&dead, Some(5));
    assert_eq!((pieces(&dead), dead.ends_with_exit), (vec![(SegmentKind::Running, 5, Some(0), 0, 50)], true));

    // The same by the command, of a task that no event shows in the first millisecond.
    let file = fixture("hackbench.dat");
    let file = file.to_str().expect("a path");
    let trace = Trace::open(&fixture("hackbench.dat"), parse::Options::default()).expect("a recording");
    let recorded = crate::support::events(&trace);
    let window = recorded[0].ts.0 + 1_000_000;
    // It is woken in its first event, and runs later.
    let mut seen = BTreeSet::new();
    let mut late = None;
    for event in &recorded {
        let (woken, others) = match event.kind {
            Event::Waking { task, .. } => (Some(task.pid), vec![task.pid]),
            Event::Switch { prev, next, .. } => (None, vec![prev.pid, next.pid]),
            Event::Fork { child, .. } => (None, vec![child]),
            Event::Migrate { task, .. } => (None, vec![task.pid]),
            _ => (None, Vec::new()),
        };
        late = late.or(woken.filter(|pid| event.ts.0 > window && !seen.contains(pid)));
        seen.extend(others.into_iter().chain([event.pid]));
    }
    let runs = recorded.iter().map(|event| event.pid).collect::<BTreeSet<_>>();
    let late = late.filter(|pid| runs.contains(pid));
    let pid = late.expect("a task that sleeps until later").to_string();
    let ran = schedviz(&["path", file, "--pid", &pid, "--max", "0.001", "--json", "-q"]).success();
    let found: serde_json::Value = serde_json::from_slice(&ran.stdout).expect("JSON");
    assert_eq!((&found["times"]["unknown_ns"], &found["segments"]), (&1_000_000.into(), &1.into()), "{pid}: {found}");
    assert!(found["task"]["command"].as_str().is_some_and(|name| !name.is_empty()), "{found}");
}

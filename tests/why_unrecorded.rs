//! `why`: idle stretches that end at a switch which was not recorded.

use crate::support::events;
use crate::why::why;
use ::why::Why;
use parse::Trace;
use sched::{Cpu, EventKind, Pass, Pid, SchedEvent, Topology, Ts, Window};
use std::collections::BTreeMap;
use workcons::{Options, Waiters};

#[test]
fn an_idle_stretch_that_ends_at_an_unrecorded_switch_has_no_length() {
    let task = |pid: i32| sched::TaskRef { pid: Pid(pid), prio: 120, comm: sched::Comm::new(b"task") };
    let idle = sched::TaskRef { pid: Pid::IDLE, prio: 120, comm: sched::Comm::new(b"swapper") };
    let at = |ts, cpu, pid, kind| SchedEvent { ts: Ts(ts), cpu: Cpu(cpu), pid: Pid(pid), flags: 0, kind };
    let run = sched::PrevState::RUNNABLE;
    let sleep = sched::PrevState::asleep(1);
    let events = [
        at(0, 0, 5, EventKind::Other { id: 1 }),
        at(0, 1, 0, EventKind::Other { id: 1 }),
        // 8 waits on CPU 0 from 1 µs on, and CPU 1 idles.
        at(1_000, 0, 5, EventKind::Wakeup { task: task(8), target: Cpu(0) }),
        at(1_000_000, 0, 5, EventKind::Waking { task: task(6), target: Cpu(1) }),
        at(1_001_000, 0, 5, EventKind::Wakeup { task: task(6), target: Cpu(1) }),
        at(1_010_000, 1, 0, EventKind::Switch { prev: idle, state: run, next: task(6) }),
        at(4_000_000, 1, 6, EventKind::Switch { prev: task(6), state: sleep, next: idle }),
        at(4_500_000, 0, 5, EventKind::Switch { prev: task(5), state: sleep, next: task(8) }),
        at(5_000_000, 0, 8, EventKind::Other { id: 1 }),
    ];
    let partial: Vec<SchedEvent> = events.into_iter().filter(|event| event.ts != Ts(1_010_000)).collect();
    let (report, workcons) = why(&events, &Topology::default(), Window::default());
    let idling = report.idling.expect("a table");
    let row = idling.rows.iter().find(|row| row.began == "at-start").expect("the first stretch");
    assert_eq!((row.ended, row.number, row.total_ns.0), ("woken", 1, 1_000_000));
    assert_eq!(
        (row.p50_ns.map(|ns| ns.0), row.longest.map(|case| case.violated_ns.0)),
        (Some(1_000_000), Some(1_000_000))
    );
    assert_eq!(
        (workcons.long_pending_switches, workcons.unrecorded_pending_switches),
        (0, 0),
        "its switch was pending for 9 µs"
    );

    let (report, workcons) = why(&partial, &Topology::default(), Window::default());
    let idling = report.idling.expect("a table");
    let row = idling.rows.iter().find(|row| row.began == "at-start").expect("the first stretch");
    assert_eq!((row.ended, row.number, row.total_ns.0), ("unknown", 1, 1_000_000));
    assert_eq!((row.p50_ns, row.p99_ns, row.longest), (None, None, None));
    assert_eq!(idling.total_ns.0, 1_500_000, "the sum stays exact: CPU 1 alone idles in violation");
    assert_eq!(report.violation_ns.map(|ns| ns.0), Some(1_500_000));
    // From the wakeup to the switch away from 6.
    assert_eq!((workcons.long_pending_switches, workcons.pending_switches.len()), (0, 0));
    assert_eq!((workcons.unrecorded_pending_switches, workcons.unrecorded_pending_switches_ns.0), (1, 2_999_000));
}

#[test]
fn every_idle_stretch_before_an_unrecorded_switch_ends_unknown() {
    let Some(traces) = std::env::var_os("SCHEDVIZ_TRACES") else { return };
    let file = std::path::Path::new(&traces).join("../cases/turn3/build-path.dat");
    let Ok(trace) = Trace::open(&file, parse::Options::default()) else { return };
    let events = events(&trace);
    // Where the switch before went to the idle task, and this one comes from another.
    let (mut last, mut unrecorded) = (BTreeMap::new(), 0);
    for event in &events {
        if let EventKind::Switch { prev, next, .. } = event.kind {
            unrecorded += usize::from(last.insert(event.cpu, next.pid) == Some(Pid::IDLE) && prev.pid != Pid::IDLE);
        }
    }
    let (unknown, others) = (std::sync::Mutex::new(0), std::sync::Mutex::new(0));
    let count = |counter: &std::sync::Mutex<usize>| *counter.lock().expect("a counter") += 1;
    let cases = ::why::Cases {
        wait: &|_| {},
        stretch: &|case| count(if case.ending == ::why::IdleEnd::Unknown { &unknown } else { &others }),
    };
    let options = Options { waiters: Waiters::All, ..Options::default() };
    let pass = Pass::over(&events[..]).run(|| Why::new(&options).listing(&cases));
    drop(pass.unwrap_or_else(|never| match never {}));
    let (unknown, others) = (unknown.into_inner().expect("a count"), others.into_inner().expect("a count"));
    assert!(unrecorded > 100 && unknown == unrecorded && others > 100, "{unknown} of {unrecorded}, {others}");
}

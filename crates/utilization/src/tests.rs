//! The class of runs whose task becomes real-time while it runs, by hand.

use crate::{Options, RunEnd, Utilization};
use sched::{Comm, Cpu, Dur, EventKind, Pass, Pid, PrevState, SchedEvent, TaskRef, Topology, Ts, Window};

fn task(pid: i32, prio: i32) -> TaskRef {
    let comm = if pid == 0 { Comm::new(b"swapper/0") } else { Comm::new(b"task") };
    TaskRef { pid: Pid(pid), prio, comm }
}

fn at(ts: i64, pid: i32, kind: EventKind) -> SchedEvent {
    SchedEvent { ts: Ts(ts), cpu: Cpu(0), pid: Pid(pid), flags: 0, kind }
}

fn switch(ts: i64, prev: (i32, i32), next: (i32, i32)) -> SchedEvent {
    let (prev, next) = (task(prev.0, prev.1), task(next.0, next.1));
    at(ts, prev.pid.0, EventKind::Switch { prev, state: PrevState::RUNNABLE, next })
}

/// Task 7 runs from 100 to 600 and is switched out as a real-time task, runs again as one from 700 to 800, and from 900 to 1,000, at whose
/// end it is none any more. An interrupt takes 300 to 340.
fn events() -> Vec<SchedEvent> {
    let handler = |ts, entry| at(ts, 7, EventKind::Interrupt { id: 1, entry });
    vec![
        switch(0, (8, 120), (0, 120)),
        switch(100, (0, 120), (7, 120)),
        at(200, 7, EventKind::Exec { pid: Pid(7), old_pid: Pid(7), program: Comm::new(b"hog") }),
        handler(300, true),
        handler(340, false),
        switch(600, (7, 49), (8, 120)),
        switch(700, (8, 120), (7, 49)),
        switch(800, (7, 49), (8, 120)),
        switch(900, (8, 120), (7, 49)),
        switch(1000, (7, 120), (0, 120)),
        at(1100, 0, EventKind::Other { id: 1 }),
    ]
}

/// The time as real-time, possibly as that, of other tasks, of interrupts, and idle; and the first of these by interval of 100 ns.
fn times(window: Window, ends: Vec<RunEnd>) -> ([u64; 5], Vec<u64>) {
    let events = events();
    let (from, to) = window.within(Ts(0), Ts(1100));
    let options = Options {
        from,
        to,
        zero: Ts(0),
        cpus: vec![(Cpu(0), None)],
        all_cpus: Vec::new(),
        group_name: String::new(),
        interval: Dur(100),
        tasks: None,
        topology: Topology::default(),
        balance_interval: Dur(4_000_000),
        ends,
    };
    let pass = Pass::over(events.as_slice()).window(window).run(|| Utilization::new(&options));
    let report = pass.unwrap_or_else(|never| match never {}).output;
    let of = report.all;
    let others = of.other_ns + of.app_ns.unwrap_or(0);
    let possible = report.intervals.iter().map(|interval| interval.shares.rt_possible_ns).collect();
    ([of.rt_ns, of.rt_possible_ns, others, of.irq_ns, of.idle_ns], possible)
}

#[test]
fn a_run_that_is_real_time_at_one_end_is_possibly_that() {
    let (sums, possible) = times(Window::default(), Vec::new());
    // 500 ns less the handler, and 100 ns; task 8 runs for 200.
    assert_eq!(sums, [100, 560, 200, 40, 200]);
    assert_eq!(possible, [0, 100, 100, 60, 100, 100, 0, 0, 0, 100, 0]);
}

#[test]
fn the_first_switch_behind_a_window_decides_the_run_that_goes_on_at_its_end() {
    for edge in [150, 200, 320, 450, 599, 600, 650, 950, 1000] {
        let edge = Ts(edge);
        let ends = |prio| vec![RunEnd { cpu: Cpu(0), pid: Pid(7), prio }];
        // The switch at the edge is behind it.
        let behind = if edge.0 <= 600 { ends(49) } else { ends(120) };
        let (early, _) = times(Window { from: None, to: Some(edge) }, behind);
        let (late, _) = times(Window { from: Some(edge), to: None }, Vec::new());
        let sums = [0, 1, 2, 3, 4].map(|nth| early[nth] + late[nth]);
        assert_eq!(sums, [100, 560, 200, 40, 200], "{edge:?}");
    }
}

//! The class of runs whose task becomes real-time while it runs, and the serial tail, by hand.

use crate::{Options, RunEnd, SerialTail, TailSearch, Utilization};
use membership::{Cgroups, ChosenGroups, ChosenTasks, TaskGroups};
use sched::{Comm, Cpu, Dur, EventKind, Pass, Pid, PrevState, SchedEvent, TaskFilter, TaskRef, Topology, Ts, Window};
use std::sync::Arc;

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
        handler(500, true),
        handler(540, false),
        switch(600, (7, 49), (8, 120)),
        switch(700, (8, 120), (7, 49)),
        switch(800, (7, 49), (8, 120)),
        switch(900, (8, 120), (7, 49)),
        switch(1000, (7, 120), (0, 120)),
        at(1100, 0, EventKind::Other { id: 1 }),
    ]
}

fn options(from: Ts, to: Ts) -> Options {
    Options {
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
        ends: Vec::new(),
    }
}

/// The time as real-time, possibly as that, of other tasks, of interrupts, and idle; and the first of these by interval of 100 ns.
fn times(window: Window, ends: Vec<RunEnd>) -> ([u64; 5], Vec<u64>) {
    let events = events();
    let (from, to) = window.within(Ts(0), Ts(1100));
    let options = Options { ends, ..options(from, to) };
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
    // 500 ns less the handlers, and 100 ns; task 8 runs for 200.
    assert_eq!(sums, [100, 520, 200, 80, 200]);
    assert_eq!(possible, [0, 100, 100, 60, 100, 60, 0, 0, 0, 100, 0]);
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
        assert_eq!(sums, [100, 520, 200, 80, 200], "{edge:?}");
    }
}

/// On CPU 0 task 7 runs up to 100 ms and from 110 to 150; on CPU 1 task 8 runs up to 40 ms and from 50 to `until`. Others idle, or are the
/// swapper, which is no task.
fn two_tasks(until: i64) -> Vec<SchedEvent> {
    let switch = |ms: i64, cpu: u32, prev: i32, next: i32| {
        let state = if prev == 0 { PrevState::RUNNABLE } else { PrevState::asleep(1) };
        let kind = EventKind::Switch { prev: task(prev, 120), state, next: task(next, 120) };
        SchedEvent { ts: Ts(ms * 1_000_000), cpu: Cpu(cpu), pid: Pid(prev), flags: 0, kind }
    };
    let mut events = vec![
        switch(0, 0, 0, 7),
        switch(0, 1, 0, 8),
        switch(40, 1, 8, 0),
        switch(50, 1, 0, 8),
        switch(until, 1, 8, 0),
        switch(100, 0, 7, 0),
        switch(110, 0, 0, 7),
        switch(150, 0, 7, 0),
        at(160_000_000, 0, EventKind::Other { id: 1 }),
    ];
    events.sort_by_key(|event| event.ts);
    events
}

fn tail_of(until: i64, (from, to): (i64, i64)) -> Option<SerialTail> {
    let (from, to) = (Ts(from * 1_000_000), Ts(to * 1_000_000));
    let options = Options { tasks: Some(ChosenTasks::default()), ..options(from, to) };
    let events = two_tasks(until);
    let pass = Pass::over(events.as_slice()).window(Window { from: Some(from), to: Some(to) });
    pass.run(|| TailSearch::new(&options)).unwrap_or_else(|never| match never {}).output
}

#[test]
fn the_serial_tail_begins_behind_the_last_long_time_with_several_tasks() {
    let of = |tail: Option<SerialTail>| {
        tail.map(|tail| {
            [tail.start_in_trace_ns, tail.length_ns.0, tail.one_ns, tail.several_ns].map(|ns| ns / 1_000_000)
        })
    };
    // The 5 ms from 50 on are no long time; from 100 to 110 no task is runnable.
    assert_eq!(of(tail_of(55, (0, 160))), Some([40, 110, 95, 5]));
    // 10 ms are long, and 9 are not.
    assert_eq!(of(tail_of(59, (0, 160))), Some([40, 110, 91, 9]));
    assert_eq!(of(tail_of(60, (0, 160))), Some([60, 90, 80, 0]));
    // A window cuts both: several tasks up to its end leave no tail, those at its beginning are long by what is in it.
    assert_eq!(of(tail_of(55, (0, 30))), None);
    assert_eq!(of(tail_of(55, (35, 120))), Some([35, 85, 65, 10]));
    assert_eq!(tail_of(55, (152, 158)), None, "nothing ran");
    let is_serial = |until| tail_of(until, (0, 160)).is_some_and(|tail| tail.is_serial());
    assert_eq!((is_serial(55), is_serial(59)), (true, false), "5 of 110 ms are a twentieth, 9 are more");
}

/// Task 7 runs from 100 to 600 and from 700 to 900, and task 8 in between. Task 7 is in `/a` from 250 to 500 and from 750 on;
/// interrupts take 300 to 340 and, from the instant of a move, 500 to 540. The task's run from 900 to 1,000 is real-time.
fn moves_between_cgroups() -> (Vec<SchedEvent>, ChosenTasks) {
    let handler = |ts, entry| at(ts, 7, EventKind::Interrupt { id: 1, entry });
    let events = vec![
        switch(0, (8, 120), (0, 120)),
        switch(100, (0, 120), (7, 120)),
        handler(300, true),
        handler(340, false),
        handler(500, true),
        handler(540, false),
        switch(600, (7, 120), (8, 120)),
        switch(700, (8, 120), (7, 120)),
        switch(900, (7, 120), (7, 49)),
        switch(1000, (7, 49), (0, 120)),
        at(1100, 0, EventKind::Other { id: 1 }),
    ];
    let moves = [(Ts::MIN, "/b"), (Ts(250), "/a"), (Ts(500), "/b"), (Ts(750), "/a")];
    let moves = moves.map(|(ts, path)| (ts, Pid(7), Some(path)));
    let cgroups = Arc::new(TaskGroups::of_cgroups(Cgroups::of_moves(&moves)));
    let groups = ChosenGroups::default().with_cgroups(cgroups, |path| path == "/a");
    (events, ChosenTasks::new(TaskFilter::default(), Some(groups)))
}

#[test]
fn a_run_is_divided_where_the_task_comes_to_a_chosen_cgroup() {
    let (events, chosen) = moves_between_cgroups();
    let measure = |window: Window| {
        let (from, to) = window.within(Ts(0), Ts(1100));
        let options = Options { tasks: Some(chosen.clone()), ..options(from, to) };
        let pass = Pass::over(events.as_slice()).window(window).run(|| Utilization::new(&options));
        let report = pass.unwrap_or_else(|never| match never {}).output;
        let of = report.all;
        let by_interval: Vec<u64> =
            report.intervals.iter().map(|interval| interval.shares.app_ns.unwrap_or(0)).collect();
        ([of.app_ns.unwrap_or(0), of.other_ns, of.irq_ns, of.rt_ns, of.idle_ns], by_interval)
    };
    // In the chosen cgroup 250 to 500 less the first handler, and 750 to 900; outside 100 to 250, 540 to 750.
    let whole = [360, 360, 80, 100, 200];
    let by_interval = vec![0, 0, 50, 60, 100, 0, 0, 50, 100, 0, 0];
    let (sums, intervals) = measure(Window::default());
    assert_eq!((sums, intervals), (whole, by_interval));
    for edge in (50..1_100).step_by(50).map(Ts) {
        let (early, _) = measure(Window { from: None, to: Some(edge) });
        let (late, _) = measure(Window { from: Some(edge), to: None });
        assert_eq!([0, 1, 2, 3, 4].map(|nth| early[nth] + late[nth]), whole, "{edge:?}");
    }
}

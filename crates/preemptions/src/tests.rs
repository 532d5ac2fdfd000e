//! Cases by hand: each kind of request, each end, each origin.

use crate::{Asker, Ending, Kind, Options, Preemptions, PreemptionsReport};
use sched::probe::{Entity, Left, LeftTimes, Probe, VirtualTime};
use sched::{Comm, Cpu, Dur, EventKind, Pass, Pid, PrevState, SchedEvent, TaskRef, Ts, Window};

const LAZY: u8 = 0x02;
const NOW: u8 = 0x04;
const SOFT: u8 = 0x10;
const HARD: u8 = 0x08;

fn task(pid: i32) -> TaskRef {
    let name = match pid {
        0 => "swapper".to_owned(),
        pid => format!("task{pid}"),
    };
    TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(name.as_bytes()) }
}

fn at(ts: i64, cpu: u32, pid: i32, flags: u8, kind: EventKind) -> SchedEvent {
    SchedEvent { ts: Ts(ts), cpu: Cpu(cpu), pid: Pid(pid), flags, kind }
}

fn switch(ts: i64, cpu: u32, prev: i32, state: PrevState, next: i32) -> SchedEvent {
    at(ts, cpu, prev, 0, EventKind::Switch { prev: task(prev), state, next: task(next) })
}

fn wakeup(ts: i64, cpu: u32, pid: i32, flags: u8, woken: i32, target: u32) -> SchedEvent {
    at(ts, cpu, pid, flags, EventKind::Wakeup { task: task(woken), target: Cpu(target) })
}

/// An event of no meaning, which shows the flags alone.
fn flags(ts: i64, cpu: u32, pid: i32, flags: u8) -> SchedEvent {
    at(ts, cpu, pid, flags, EventKind::Other { id: 1 })
}

/// A record of the probe: 4 is the number of immediate requests, 5 that of lazy ones.
fn request(ts: i64, on: (u32, i32, u8), pid: i32, cpu: u32, flag: u8) -> SchedEvent {
    let probe = Probe::Reschedules { pid: Pid(pid), cpu: Cpu(cpu), flag };
    at(ts, on.0, on.1, on.2, EventKind::Probe { id: 2, probe })
}

fn report(events: &[SchedEvent], by_probe: bool) -> PreemptionsReport {
    let options = Options { by_probe, worst: 9, tick: Dur(400), ..Options::default() };
    Pass::over(events).run(|| Preemptions::new(&options)).unwrap_or_else(|never| match never {}).output
}

/// The kinds and ends of the requests, in the order of the tables, with their least and greatest times.
fn ways(report: &PreemptionsReport) -> Vec<(Kind, bool, Ending, u64, u64)> {
    let ns = |length: Option<Dur>| length.map_or(0, |length| length.0);
    let way = |way: &crate::Way| {
        assert_eq!(way.at_least.count, 1);
        (way.kind, way.made_immediate, way.ending, ns(way.at_least.max_ns), ns(way.at_most.max_ns))
    };
    report.ways.iter().map(way).collect()
}

/// Task 7 runs on CPU 0 from 0 on, task 8 on CPU 1.
fn start() -> Vec<SchedEvent> {
    vec![switch(0, 0, 0, PrevState::RUNNABLE, 7), switch(0, 1, 0, PrevState::RUNNABLE, 8)]
}

fn with(more: &[SchedEvent]) -> Vec<SchedEvent> {
    [start().as_slice(), more].concat()
}

#[test]
fn flags_give_bounds_of_an_immediate_request() {
    let events = with(&[
        flags(100, 0, 7, 0),
        wakeup(150, 1, 8, 0, 9, 0),
        flags(200, 0, 7, NOW),
        switch(250, 0, 7, PrevState::PREEMPTED, 9),
    ]);
    let report = report(&events, false);
    assert_eq!(ways(&report), [(Kind::Immediate, false, Ending::InKernel, 50, 150)]);
    let case = report.longest[0];
    assert_eq!((case.earliest_ns, case.latest_ns, case.asker), (Ts(100), Ts(200), Asker::Wakeup));
    assert_eq!((case.asker_pid, case.next.and_then(|next| next.waited_ns)), (Some(Pid(9)), Some(Dur(100))));
    assert_eq!(report.profiteers[0].command, Some(Comm::new(b"task9")));
}

#[test]
fn a_wakeup_without_the_flag_behind_it_did_not_ask() {
    let events = with(&[
        wakeup(50, 0, 7, 0, 9, 0),
        flags(100, 0, 7, 0),
        flags(200, 0, 7, LAZY),
        flags(240, 0, 7, LAZY | NOW),
        switch(250, 0, 7, PrevState::RUNNABLE, 9),
    ]);
    let report = report(&events, false);
    assert_eq!(ways(&report), [(Kind::Lazy, true, Ending::ReturnToUser, 50, 150)]);
    let case = report.longest[0];
    assert_eq!(
        (case.asker, case.lazy_at_least_ns, case.lazy_at_most_ns),
        (Asker::Unseen, Some(Dur(0)), Some(Dur(140)))
    );
}

#[test]
fn a_request_that_no_event_shows_is_known_from_a_switch_in_the_kernel_alone() {
    let in_kernel = with(&[flags(100, 0, 7, 0), switch(250, 0, 7, PrevState::PREEMPTED, 0)]);
    let report_of = |events: &[SchedEvent]| report(events, false);
    assert_eq!(ways(&report_of(&in_kernel)), [(Kind::Unknown, false, Ending::InKernel, 0, 150)]);
    let yielded = report_of(&with(&[flags(100, 0, 7, 0), switch(250, 0, 7, PrevState::RUNNABLE, 0)]));
    assert_eq!((ways(&yielded), yielded.without_request), (Vec::new(), Some(1)));
    // Without lazy requests the kind is known.
    let options = Options { has_lazy: false, ..Options::default() };
    let old = Pass::over(in_kernel.as_slice()).run(|| Preemptions::new(&options));
    assert_eq!(old.unwrap_or_else(|never| match never {}).output.ways[0].kind, Kind::Immediate);
}

#[test]
fn old_kernels_have_another_meaning_of_the_flag() {
    let events = with(&[flags(100, 0, 7, LAZY), flags(200, 0, 7, LAZY), switch(250, 0, 7, PrevState::asleep(1), 0)]);
    let options = Options { has_lazy: false, ..Options::default() };
    let old = Pass::over(events.as_slice()).run(|| Preemptions::new(&options));
    assert_eq!(old.unwrap_or_else(|never| match never {}).output.requests, Some(0));
}

#[test]
fn a_lazy_request_that_ends_in_a_sleep_saves_a_switch() {
    let events = with(&[
        request(100, (1, 8, 0), 7, 0, 5),
        wakeup(110, 1, 8, 0, 9, 0),
        switch(250, 0, 7, PrevState::asleep(1), 9),
    ]);
    let report = report(&events, true);
    assert_eq!(ways(&report), [(Kind::Lazy, false, Ending::Slept, 150, 150)]);
    assert_eq!((report.switches_saved, report.askers[0].asker), (Some(1), Asker::Wakeup));
    // A sleep gives way to no task.
    assert_eq!(report.profited.count, 0);
}

#[test]
fn each_origin_is_recognised_by_what_stands_beside_the_record() {
    let origin = |events: &[SchedEvent]| {
        let report = report(&with(&[events, &[switch(900, 0, 7, PrevState::PREEMPTED, 9)]].concat()), true);
        (report.askers[0].asker, report.longest[0].asker_pid)
    };
    let moved = EventKind::Migrate { task: task(9), orig: Cpu(1), dest: Cpu(0) };
    let forked = EventKind::WakeupNew { task: task(9), target: Cpu(0) };
    let remote = request(100, (1, 8, 0), 7, 0, 4);
    assert_eq!(origin(&[remote, wakeup(110, 1, 8, 0, 9, 0)]), (Asker::Wakeup, Some(Pid(9))));
    assert_eq!(origin(&[at(90, 1, 8, 0, forked), remote]), (Asker::Fork, Some(Pid(9))));
    assert_eq!(origin(&[at(90, 1, 8, 0, moved), remote]), (Asker::Balance, Some(Pid(9))));
    // A placement by a wakeup is a migration first.
    assert_eq!(origin(&[at(90, 1, 8, 0, moved), remote, wakeup(110, 1, 8, 0, 9, 0)]), (Asker::Wakeup, Some(Pid(9))));
    assert_eq!(origin(&[request(100, (0, 7, HARD), 7, 0, 4)]), (Asker::Tick, None));
    // A migration in another context is not what a tick asks for.
    assert_eq!(origin(&[at(90, 0, 7, SOFT, moved), request(100, (0, 7, HARD), 7, 0, 4)]), (Asker::Tick, None));
    assert_eq!(origin(&[request(100, (0, 7, 0), 7, 0, 4)]), (Asker::Other, None));
}

#[test]
fn a_lazy_request_is_made_immediate_by_the_tick() {
    let events = with(&[
        request(100, (0, 7, HARD), 7, 0, 5),
        request(700, (0, 7, LAZY | HARD), 7, 0, 4),
        switch(750, 0, 7, PrevState::PREEMPTED, 9),
    ]);
    let report = report(&events, true);
    assert_eq!(ways(&report), [(Kind::Lazy, true, Ending::InKernel, 650, 650)]);
    // The tick is 400 ns here: it was lazy for longer than a tick and a quarter.
    assert_eq!((report.lazy_for_longer, report.long_lazy[0].lazy_at_least_ns), (Some(1), Some(Dur(600))));
}

#[test]
fn a_second_request_to_the_same_task_shows_that_it_was_picked_again() {
    let events = with(&[
        request(100, (0, 7, HARD), 7, 0, 4),
        request(300, (0, 7, HARD), 7, 0, 4),
        flags(400, 0, 7, NOW),
        flags(500, 0, 7, 0),
        switch(750, 0, 7, PrevState::asleep(1), 0),
    ]);
    let report = report(&events, true);
    assert_eq!(report.ways.len(), 1);
    assert_eq!((report.ways[0].ending, report.ways[0].at_most.count), (Ending::Kept, 2));
    assert_eq!((report.ways[0].at_least.max_ns, report.ways[0].at_most.max_ns), (Some(Dur(100)), Some(Dur(200))));
    assert_eq!((report.rows[0].kept, report.rows[0].requests), (2, 2));
}

#[test]
fn ends_of_kernel_threads_and_of_tasks_that_exit() {
    let thread = TaskRef { comm: Comm::new(b"kworker/0:1"), ..task(7) };
    let own = EventKind::Switch { prev: thread, state: PrevState::RUNNABLE, next: task(0) };
    let first = EventKind::Switch { prev: task(0), state: PrevState::RUNNABLE, next: thread };
    let events = [at(0, 0, 0, 0, first), request(100, (0, 7, HARD), 7, 0, 4), at(200, 0, 7, 0, own)];
    assert_eq!(report(&events, true).ways[0].ending, Ending::OwnPoint);
    let events = with(&[request(100, (0, 7, HARD), 7, 0, 4), switch(200, 0, 7, PrevState::DEAD, 0)]);
    assert_eq!(report(&events, true).ways[0].ending, Ending::Exited);
}

#[test]
fn requests_to_idle_tasks_and_lost_and_open_ones_are_apart() {
    let events = [
        request(5, (0, 0, HARD), 0, 0, 4),
        switch(10, 0, 0, PrevState::RUNNABLE, 7),
        switch(10, 1, 0, PrevState::RUNNABLE, 8),
        request(100, (0, 7, HARD), 7, 0, 4),
        request(110, (1, 8, HARD), 8, 1, 4),
        at(120, 0, 7, 0, EventKind::Lost { count: Some(sched::LostCount::of(3)) }),
        switch(200, 0, 7, PrevState::PREEMPTED, 9),
    ];
    let report = report(&events, true);
    assert_eq!((report.requests, report.to_idle, report.lost, report.open), (Some(0), Some(1), Some(1), Some(1)));
}

/// A task of this weight, picked with a virtual time and a deadline, is preempted at the virtual time `end`.
fn preempted(weight: u32, (vruntime, deadline): (i64, i64), end: i64) -> PreemptionsReport {
    let probe = |ts, pid, probe| at(ts, 0, pid, 0, EventKind::Probe { id: 3, probe });
    let picks = |pid, (vruntime, deadline), left| {
        let entity = Entity {
            vruntime: VirtualTime::of(vruntime),
            deadline: VirtualTime::of(deadline),
            slice: std::num::NonZeroU32::new(3000),
            weight: std::num::NonZeroU32::new(weight),
        };
        let (left_kind, left) = LeftTimes::of(left);
        Probe::Picks { pid: Pid(pid), entity, left_kind, left, queue: None, choice: Default::default() }
    };
    let events = with(&[
        probe(1, 0, picks(7, (vruntime, deadline), None)),
        request(100, (0, 7, HARD), 7, 0, 4),
        switch(200, 0, 7, PrevState::PREEMPTED, 9),
        probe(201, 7, picks(9, (0, 10), Some(Left::At(VirtualTime::of(end))))),
    ]);
    report(&events, true)
}

/// The weight of nice 0, as the kernel scales it.
const NICE_0: u32 = 1 << 20;

#[test]
fn the_rest_of_a_request_is_its_deadline_less_the_virtual_time_by_the_weight() {
    let report = preempted(2 * NICE_0, (1000, 2500), 1100);
    // Twice the weight of nice 0: 1,400 ns of virtual time are 2,800 ns.
    assert_eq!(report.request_left.max_ns, Some(Dur(2800)));
    assert_eq!(report.longest[0].request_left_ns, Some(Dur(2800)));
    assert_eq!(report.rows[0].request_left.count, 1);
}

/// A task that comes to another cgroup while it runs has a virtual time of another queue at the end: below that of its pick there is no rest.
#[test]
fn a_request_has_no_rest_in_another_queue() {
    let report = preempted(NICE_0, (1_000_000, 1_003_000), 500);
    assert_eq!((report.request_left.count, report.longest[0].request_left_ns), (0, None));
}

/// Past the deadline of its pick a task has a new request, which no record shows: the rest is unknown, and not zero.
#[test]
fn past_the_deadline_the_rest_of_a_request_is_unknown() {
    let report = preempted(NICE_0, (1_000_000, 1_003_000), 1_003_500);
    assert_eq!((report.request_left.count, report.longest[0].request_left_ns), (0, None));
    assert_eq!(report.request_left_unknown, Some(1));
}

/// A task is switched out inside the kernel by an immediate request alone: only the instant at which the lazy one became that is unknown.
#[test]
fn a_lazy_request_that_ends_inside_the_kernel_was_made_immediate() {
    let events = with(&[
        flags(100, 0, 7, 0),
        flags(200, 0, 7, LAZY),
        flags(600, 0, 7, LAZY),
        switch(1250, 0, 7, PrevState::PREEMPTED, 9),
    ]);
    let report = report(&events, false);
    assert_eq!(ways(&report), [(Kind::Lazy, true, Ending::InKernel, 1050, 1150)]);
    let case = report.longest[0];
    // It was lazy from 200 at the latest until 600 at least, and 500 are longer than a tick and a quarter.
    assert_eq!((case.lazy_at_least_ns, case.lazy_at_most_ns), (Some(Dur(400)), Some(Dur(1150))));
    assert_eq!((report.lazy_for_longer, report.switches_saved), (Some(0), Some(0)));
}

/// As in preempt-7.2-full.dat, CPU 4: the interrupt that makes the request comes between an event's look at the flags and its place in
/// the buffer. The event has the instant of the request, and no flag.
#[test]
fn an_event_at_the_instant_of_a_request_does_not_show_that_the_task_was_picked_again() {
    for behind in [100, 103] {
        let events = with(&[
            request(100, (0, 7, HARD), 7, 0, 4),
            flags(behind, 0, 7, 0),
            switch(437, 0, 7, PrevState::PREEMPTED, 9),
        ]);
        assert_eq!(ways(&report(&events, true)), [(Kind::Immediate, false, Ending::InKernel, 337, 337)], "{behind}");
    }
    // On its return to user mode the task can have been picked again before; at the same instant it was not.
    let returns = |behind| {
        let switch = switch(437, 0, 7, PrevState::RUNNABLE, 9);
        let report = report(&with(&[request(100, (0, 7, HARD), 7, 0, 4), flags(behind, 0, 7, 0), switch]), true);
        (ways(&report), report.without_request)
    };
    assert_eq!(returns(100), (vec![(Kind::Immediate, false, Ending::ReturnToUser, 337, 337)], Some(0)));
    assert_eq!(returns(103), (vec![(Kind::Immediate, false, Ending::Kept, 0, 3)], Some(1)));
    // By flags as well.
    let events = with(&[
        flags(90, 0, 7, 0),
        flags(100, 0, 7, NOW),
        flags(100, 0, 7, 0),
        switch(437, 0, 7, PrevState::PREEMPTED, 9),
    ]);
    assert_eq!(ways(&report(&events, false)), [(Kind::Immediate, false, Ending::InKernel, 337, 347)]);
}

#[test]
fn the_head_has_the_times_of_preemptions() {
    use timeline::Drawable;
    use timeline::text::Detail;
    let text = |events: &[SchedEvent], by_probe| {
        let report = report(events, by_probe);
        let text = crate::text(&report, &Drawable::new("a.dat", Vec::new(), Dur(1000)), 5, Detail::Brief);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let exact = with(&[request(100, (0, 7, HARD), 7, 0, 4), switch(437, 0, 7, PrevState::PREEMPTED, 9)]);
    let found = text(&exact, true);
    let head = "running tasks kept their CPUs for 337 ns (median), 337 ns (99 %), 337 ns (max) after the kernel asked them to give way; \
                1 request, 0 lazy, 1 ended in a preemption";
    assert!(found.contains(head), "{found}");
    let bounds = with(&[flags(100, 0, 7, 0), flags(200, 0, 7, NOW), switch(250, 0, 7, PrevState::PREEMPTED, 9)]);
    let found = text(&bounds, false);
    assert!(
        found.contains("kept their CPUs for 50 ns to 150 ns (median)")
            && found.contains("; at least 1 request, 0 lazy"),
        "{found}"
    );
}

#[test]
fn a_task_that_was_preempted_while_another_waited_for_a_lock_can_hold_it() {
    let lock = |ts, cpu, pid, begins| {
        at(ts, cpu, pid, 0, EventKind::Probe { id: 4, probe: Probe::Contends { lock: [1, 2], begins } })
    };
    let events = with(&[
        flags(40, 0, 7, NOW),
        lock(50, 1, 8, true),
        switch(100, 0, 7, PrevState::PREEMPTED, 9),
        switch(200, 0, 9, PrevState::asleep(1), 7),
        lock(300, 1, 8, false),
        // A return to user mode holds no lock of the kernel.
        lock(400, 1, 8, true),
        flags(410, 0, 7, NOW),
        switch(420, 0, 7, PrevState::RUNNABLE, 9),
        lock(500, 1, 8, false),
    ]);
    let report = report(&events, false);
    assert_eq!((report.lock_waits, report.lock_waits_with_holders), (Some(2), Some(1)));
    let held = report.lock_holders[0];
    assert_eq!((held.waiter, held.holder, held.waited_ns, held.candidates), (Pid(8), Pid(7), Dur(250), 1));
}

#[test]
fn waits_for_locks_have_a_limit() {
    let lock = |ts, pid, begins| {
        at(ts, 1, pid, 0, EventKind::Probe { id: 4, probe: Probe::Contends { lock: [1, 2], begins } })
    };
    let begun: Vec<SchedEvent> = (0..5000).map(|nth| lock(10 + i64::from(nth), 100 + nth, true)).collect();
    let ended: Vec<SchedEvent> = (0..5000).map(|nth| lock(9000 + i64::from(nth), 100 + nth, false)).collect();
    let report = report(&with(&[begun, ended].concat()), false);
    assert_eq!(report.lock_waits, Some(4096));
}

#[test]
fn a_request_counts_in_the_window_in_which_it_ends() {
    let round = |nth: i64| {
        let ts = 1000 * nth;
        let (from, to) = if nth % 2 == 0 { (7, 9) } else { (9, 7) };
        [
            wakeup(ts + 150, 1, 8, 0, to, 0),
            flags(ts + 200, 0, from, NOW),
            switch(ts + 250, 0, from, PrevState::PREEMPTED, to),
            flags(ts + 300, 0, to, 0),
        ]
    };
    let events = with(&(0..8).flat_map(round).collect::<Vec<_>>());
    let report = |from, to| {
        let options = Options::default();
        let pass = Pass::over(events.as_slice()).window(Window { from, to }).run(|| Preemptions::new(&options));
        let report = pass.unwrap_or_else(|never| match never {}).output;
        [report.requests, report.without_request, report.lost].map(|number| number.unwrap_or(0))
    };
    let whole = report(None, None);
    assert_eq!(whole, [8, 0, 0]);
    for edge in (100..8000).step_by(70).map(|ts| Some(Ts(ts))) {
        let (early, late) = (report(None, edge), report(edge, None));
        assert_eq!([0, 1, 2].map(|nth| early[nth] + late[nth]), whole, "{edge:?}");
    }
}

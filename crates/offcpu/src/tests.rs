//! A nested case by hand: two places in one call, waits behind them, and a switch without a stack.

use crate::{OffCpu, OffCpuBy, OffCpuReport, OffCpuTime, Options, StackKind, StackTimes, WakerContext, folded};
use parse::{EventStacks, StackFrame, StackedEvent};
use sched::{Comm, Cpu, Dur, EventKind, Pass, Pid, PrevState, SchedEvent, TaskRef, Ts, Window};

fn task(pid: i32) -> TaskRef {
    let name = match pid {
        0 => "swapper/0",
        7 => "make",
        _ => "sort",
    };
    TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(name.as_bytes()) }
}

fn at(ts: i64, pid: i32, kind: EventKind) -> SchedEvent {
    SchedEvent { ts: Ts(ts), cpu: Cpu(0), pid: Pid(pid), flags: 0, kind }
}

fn switch(ts: i64, prev: i32, state: PrevState, next: i32) -> SchedEvent {
    at(ts, prev, EventKind::Switch { prev: task(prev), state, next: task(next) })
}

fn wakeup(ts: i64, by: i32, woken: i32) -> SchedEvent {
    at(ts, by, EventKind::Wakeup { task: task(woken), target: Cpu(0) })
}

const ASLEEP: PrevState = PrevState::asleep(1);

fn events() -> Vec<SchedEvent> {
    vec![
        switch(0, 0, PrevState::RUNNABLE, 7),
        switch(100, 7, ASLEEP, 0),
        wakeup(300, 0, 7),
        switch(350, 0, PrevState::RUNNABLE, 7),
        switch(400, 7, ASLEEP, 0),
        wakeup(600, 0, 7),
        switch(650, 0, PrevState::RUNNABLE, 7),
        wakeup(690, 7, 9),
        switch(700, 7, PrevState::RUNNABLE, 9),
        switch(800, 9, ASLEEP, 7),
        switch(900, 7, ASLEEP, 0),
        wakeup(1000, 0, 9),
    ]
}

fn kernel(address: u64) -> StackFrame {
    StackFrame::kernel(address)
}

/// Addresses within one function differ by the last digit.
fn name(frame: StackFrame) -> Option<String> {
    let names = ["", "schedule", "do_nanosleep", "pipe_read", "do_syscall_64"];
    names.get(frame.address as usize / 16).filter(|_| !frame.is_user).map(|name| (*name).to_owned())
}

/// The report with the stacks of the first, the second and the last sleep of `make`.
fn report(time: OffCpuTime, has_user: bool) -> OffCpuReport {
    let user = StackFrame::user(0x7000);
    let nap = [kernel(0x11), kernel(0x21), kernel(0x41), user];
    let pipe = [kernel(0x11), kernel(0x31), kernel(0x41), user];
    // Another call in the same functions.
    let nap_again = [kernel(0x11), kernel(0x22), kernel(0x41), user];
    let key = |ts| (StackedEvent::Switch, Ts(ts), Cpu(0), Pid(7));
    let stacks = EventStacks::of_events([(key(100), &nap[..]), (key(400), &pipe[..]), (key(900), &nap_again[..])]);
    let options = Options { stacks, names: Some(Box::new(name)), has_user, time, ..Options::default() };
    let events = events();
    Pass::over(events.as_slice()).run(|| OffCpu::new(&options)).unwrap_or_else(|never| match never {}).output
}

#[test]
fn time_is_at_the_stack_of_the_switch_until_the_task_runs() {
    let report = report(OffCpuTime::Asleep, false);
    let make = report.stacks.iter().filter(|row| row.command == Comm::new(b"make"));
    let numbers = |row: &StackTimes| {
        (row.kind, row.asleep_ns.unwrap_or_default().0, row.runnable_ns.unwrap_or_default().0, row.switches)
    };
    assert_eq!(
        make.map(numbers).collect::<Vec<_>>(),
        [(StackKind::Timer, 300, 50, 2), (StackKind::Pipe, 200, 50, 1), (StackKind::NoStack, 0, 100, 1),]
    );
    let nap = report.stacks.iter().find(|row| row.kind == StackKind::Timer).expect("a nap");
    assert_eq!(nap.shown_by.as_deref(), Some("do_nanosleep"));
    assert_eq!(nap.frames, ["schedule", "do_nanosleep", "do_syscall_64"]);
    // sort slept from 800 to 1000, without a stack; before 690 it has no event.
    let all = |of: fn(&StackTimes) -> u64| report.stacks.iter().map(of).sum::<u64>();
    assert_eq!((report.asleep_ns, report.with_stack, report.switches), (Some(Dur(700)), Some(3), Some(5)));
    assert_eq!((all(|row| row.asleep_ns.unwrap_or_default().0), report.kinds.len()), (700, 3));
}

/// A thousand stacks of 256 functions whose names are as long as they can be would take 270 MB: the time of those beyond the room is in one row.
#[test]
fn the_names_in_all_rows_have_a_limit() {
    let frames = |nth: i64| (0..256).map(|frame| kernel(0x1000 + (nth * 256 + frame) as u64)).collect::<Vec<_>>();
    let stacks: Vec<Vec<StackFrame>> = (0..1_000).map(frames).collect();
    let left = |nth: i64| 10 * nth + 5 + nth % 3;
    let key = |nth: i64| (StackedEvent::Switch, Ts(left(nth)), Cpu(0), Pid(7));
    let stacks = EventStacks::of_events((0..).map(key).zip(stacks.iter().map(Vec::as_slice)));
    let long = |frame: StackFrame| Some(format!("{:x<255}", frame.address));
    let options = Options { stacks, names: Some(Box::new(long)), ..Options::default() };
    let round = |nth: i64| {
        let wakes = wakeup(10 * nth + 8, 0, 7);
        [switch(10 * nth, 0, PrevState::RUNNABLE, 7), switch(left(nth), 7, ASLEEP, 0), wakes]
    };
    let events: Vec<SchedEvent> = (0..1_000).flat_map(round).collect();
    let report = Pass::over(&events[..]).run(|| OffCpu::new(&options)).unwrap_or_else(|never| match never {}).output;
    let size: usize = report.stacks.iter().flat_map(|row| &row.frames).map(String::len).sum();
    assert!((28 << 20..=32 << 20).contains(&size), "{size} bytes");
    let rest = report.stacks.iter().find(|row| row.command == Comm::new(b"(others)")).expect("the others");
    let slept = |row: &StackTimes| row.asleep_ns.expect("wakeups were recorded").0;
    assert_eq!(Some(Dur(report.stacks.iter().map(slept).sum())), report.asleep_ns);
    // A third of the sleeps take 3 ns and a third 2; those of 1 ns have no row of their own.
    assert!(report.stacks.iter().all(|row| row.command == rest.command || slept(row) >= 2), "the longest are kept");
}

/// Two switches of one place, one of them through a trampoline: the functions that recorded them make no stack of their own.
#[test]
fn the_functions_that_record_a_switch_are_in_no_stack() {
    let name = |frame: StackFrame| match frame.address {
        0x1 => Some("trace_event_raw_event_sched_switch".to_owned()),
        0x2 => Some("__traceiter_sched_switch".to_owned()),
        0x3 => Some("perf_trace_sched_switch".to_owned()),
        0x11 => Some("schedule".to_owned()),
        0x21 => Some("pipe_read".to_owned()),
        _ => None,
    };
    let key = |ts| (StackedEvent::Switch, Ts(ts), Cpu(0), Pid(7));
    let [one, other] = [[0x1, 0x2, 0x11, 0x21], [0x99, 0x3, 0x11, 0x21]].map(|frames| frames.map(kernel));
    let stacks = EventStacks::of_events([(key(10), &one[..]), (key(30), &other[..])]);
    let options = Options { stacks, names: Some(Box::new(name)), ..Options::default() };
    let events = [
        switch(0, 0, PrevState::RUNNABLE, 7),
        switch(10, 7, ASLEEP, 0),
        wakeup(18, 0, 7),
        switch(20, 0, PrevState::RUNNABLE, 7),
        switch(30, 7, ASLEEP, 0),
        wakeup(35, 0, 7),
        switch(40, 0, PrevState::RUNNABLE, 7),
    ];
    let report = Pass::over(&events[..]).run(|| OffCpu::new(&options)).unwrap_or_else(|never| match never {}).output;
    assert_eq!(folded(&report), "make;pipe_read;schedule 13\n");
}

#[test]
fn folded_stacks_sum_to_the_total() {
    let asleep = folded(&report(OffCpuTime::Asleep, false));
    assert_eq!(
        asleep,
        "make;do_syscall_64;do_nanosleep;schedule 300\nmake;do_syscall_64;pipe_read;schedule 200\nsort;[no stack] 200\n"
    );
    let with_programs = folded(&report(OffCpuTime::Asleep, true));
    assert!(with_programs.contains("make;0x7000;do_syscall_64;pipe_read;schedule 200\n"), "{with_programs}");
    let both = report(OffCpuTime::Both, false);
    let sum: u64 = folded(&both).lines().filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum();
    assert_eq!(sum, both.asleep_ns.unwrap_or_default().0 + both.runnable_ns.unwrap_or_default().0);
}

#[test]
fn boxes_of_a_level_lie_side_by_side() {
    let (boxes, all) = crate::flame::boxes(&report(OffCpuTime::Asleep, false), 0);
    assert_eq!(all, 700);
    let level: Vec<_> = boxes.iter().filter(|found| found.level == 2).map(|found| (found.start, found.time)).collect();
    assert_eq!(level, [(0, 300), (300, 200)]);
    // Two kinds go through the system call.
    assert_eq!(boxes.iter().find(|found| found.name == "do_syscall_64").and_then(|found| found.kind), None);
}

/// The same run, in which stacks are those of the wakers too: `make` is woken by the timer twice, and wakes `sort` by a pipe.
fn by_waker(by: OffCpuBy) -> OffCpuReport {
    let waking = |ts, by, woken, flags| SchedEvent {
        flags,
        ..at(ts, by, EventKind::Waking { task: task(woken), target: Cpu(0) })
    };
    let mut events = events();
    events.extend([waking(300, 0, 7, 0x08), waking(600, 0, 7, 0x08), waking(690, 7, 9, 0), waking(1000, 7, 9, 0)]);
    // The waking precedes its wakeup.
    events.sort_by_key(|event| (event.ts, !matches!(event.kind, EventKind::Waking { .. })));
    let of_switch = (StackedEvent::Switch, Ts(100), Cpu(0), Pid(7));
    let of_waking = |ts, pid| (StackedEvent::Waking, Ts(ts), Cpu(0), Pid(pid));
    let stacks = EventStacks::of_events([
        (of_switch, &[kernel(0x11), kernel(0x21)][..]),
        (of_waking(300, 7), &[kernel(0x42)]),
        (of_waking(600, 7), &[kernel(0x43)]),
        (of_waking(1000, 9), &[kernel(0x31), kernel(0x42)]),
    ]);
    let options = Options { stacks, names: Some(Box::new(name)), by, ..Options::default() };
    Pass::over(events.as_slice()).run(|| OffCpu::new(&options)).unwrap_or_else(|never| match never {}).output
}

#[test]
fn time_is_at_the_stack_of_the_waker_that_ends_it() {
    let report = by_waker(OffCpuBy::Waker);
    let row = |row: &StackTimes| {
        let waker = row.waker.clone().expect("a waker");
        let frames = waker.frames.join(",");
        (
            row.command.to_string(),
            waker.context,
            frames,
            row.asleep_ns.unwrap_or_default().0,
            row.runnable_ns.unwrap_or_default().0,
            row.switches,
        )
    };
    let mut rows: Vec<_> = report.stacks.iter().map(row).collect();
    rows.sort();
    let expected = [
        ("make", WakerContext::Interrupt, "do_syscall_64", 400, 100, 2),
        // It sleeps from 900 on, and no wakeup is in the window.
        ("make", WakerContext::NotWoken, "", 100, 0, 0),
        ("make", WakerContext::NoWakeup, "", 0, 100, 1),
        // Its first sleep began before the trace.
        ("sort", WakerContext::Task, "", 0, 10, 0),
        ("sort", WakerContext::Task, "pipe_read,do_syscall_64", 200, 0, 1),
    ];
    let expected = expected.map(|(name, context, frames, asleep, runnable, times)| {
        (name.to_owned(), context, frames.to_owned(), asleep, runnable, times)
    });
    assert_eq!(rows, expected);
    assert!(folded(&report).contains("sort;[woken by make];do_syscall_64;pipe_read 200\n"), "{}", folded(&report));
}

#[test]
fn both_stacks_meet_at_their_inner_ends() {
    let lines = folded(&by_waker(OffCpuBy::Both));
    let line = "make;do_nanosleep;schedule;--;do_syscall_64;[woken by an interrupt] 200\n";
    assert!(lines.contains(line), "{lines}");
}

/// Nothing shows when a sleep ends: the time off-CPU is known, and its parts are not.
#[test]
fn without_wakeups_time_asleep_and_runnable_are_unknown() {
    let events: Vec<SchedEvent> =
        events().into_iter().filter(|event| !matches!(event.kind, EventKind::Wakeup { .. })).collect();
    let options = Options { without_wakeups: true, ..Options::default() };
    let report =
        Pass::over(events.as_slice()).run(|| OffCpu::new(&options)).unwrap_or_else(|never| match never {}).output;
    assert_eq!((report.asleep_ns, report.runnable_ns), (None, None));
    // make is off its CPU from 100 to 350, 400 to 650, 700 to 800 and 900 to 1000; sort from 800 on.
    let off = report.stacks.iter().map(|row| (row.command.to_string(), row.off_cpu_ns.0)).collect::<Vec<_>>();
    assert_eq!(off.iter().find(|row| row.0 == "make").map(|row| row.1), Some(600), "{off:?}");
    assert!(report.stacks.iter().all(|row| row.asleep_ns.is_none() && row.runnable_ns.is_none()));
    assert!(report.kinds.iter().all(|row| row.asleep_ns.is_none() && row.runnable_ns.is_none()));
}

/// A CPU that goes offline is concluded to switch, and no event is.
#[test]
fn a_cpu_that_goes_offline_makes_no_switch() {
    let mut events = events();
    events.push(switch(1100, 0, PrevState::RUNNABLE, 9));
    events.push(at(1200, 9, EventKind::Offline));
    let options = Options::default();
    let report =
        Pass::over(events.as_slice()).run(|| OffCpu::new(&options)).unwrap_or_else(|never| match never {}).output;
    let is_out = |event: &&SchedEvent| matches!(event.kind, EventKind::Switch { prev, .. } if !prev.pid.is_idle());
    let switches = events.iter().filter(is_out).count() as u64;
    assert_eq!((switches, report.switches), (5, Some(5)));
}

/// A thread of the kernel that waits for work comes behind the tasks, however long it waits.
#[test]
fn idle_threads_of_the_kernel_are_last() {
    let thread = |ts, state, from: &[u8], to: &[u8]| {
        let of =
            |name: &[u8]| TaskRef { pid: Pid(if name[0] == b'k' { 5 } else { 7 }), prio: 120, comm: Comm::new(name) };
        at(ts, 0, EventKind::Switch { prev: of(from), state, next: of(to) })
    };
    let events = [
        thread(0, ASLEEP, b"kcompactd0", b"make"),
        thread(1000, ASLEEP, b"make", b"kcompactd0"),
        thread(1100, ASLEEP, b"kcompactd0", b"make"),
        thread(9000, ASLEEP, b"make", b"kcompactd0"),
    ];
    let options = Options::default();
    let report = Pass::over(&events[..]).run(|| OffCpu::new(&options)).unwrap_or_else(|never| match never {}).output;
    let rows: Vec<_> = report.stacks.iter().map(|row| (row.command.to_string(), row.off_cpu_ns.0)).collect();
    assert_eq!(rows.last().map(|row| row.0.as_str()), Some("kcompactdN"), "{rows:?}");
    assert!(rows[0].1 < rows[rows.len() - 1].1, "{rows:?}");
}

#[test]
fn stacks_are_the_same_in_pieces() {
    let even = |task: &sched::Task, _: &sched::SchedState| task.pid.0 % 2 == 0;
    let frames: Vec<[StackFrame; 2]> = (0..7).map(|nth| [kernel(0x11), kernel(0x20 + nth)]).collect();
    let (mut sum, mut rows) = (testkit::PieceTally::default(), 0);
    for seed in 0..12 {
        let simulation = testkit::Simulation::any(seed, 1 + (seed % 6) as u32, 600);
        let events = if seed % 2 == 0 { simulation.lossy(seed).0 } else { simulation.events };
        let events = if seed % 3 == 0 { testkit::with_throttling(&events, seed) } else { events };
        let from = events.get(events.len() / 3).map(|event| event.ts);
        let stacks = || {
            let of = |event: &SchedEvent| match event.kind {
                EventKind::Switch { prev, .. } => Some((StackedEvent::Switch, event.ts, event.cpu, prev.pid)),
                EventKind::Waking { task, .. } => Some((StackedEvent::Waking, event.ts, event.cpu, task.pid)),
                _ => None,
            };
            let stacked = events.iter().filter_map(of).zip(frames.iter().cycle());
            EventStacks::of_events(stacked.map(|(key, frames)| (key, &frames[..])))
        };
        for (by, chosen) in [(OffCpuBy::Switch, None), (OffCpuBy::Both, None), (OffCpuBy::Waker, Some(&even))] {
            let tasks = chosen.map(|even| even as &sched::Chosen<'_>);
            let options = Options { stacks: stacks(), names: Some(Box::new(name)), by, tasks, ..Options::default() };
            for window in [Window::default(), Window { from, to: None }] {
                let show = |report: &OffCpuReport| format!("{report:?}");
                let lengths = [1 + seed as usize % 3, 40, 333];
                sum += testkit::in_pieces(&mut &events[..], window, &lengths, || OffCpu::new(&options), show);
                let pass = Pass::over(events.as_slice()).window(window);
                let report = pass.run(|| OffCpu::new(&options)).unwrap_or_else(|never| match never {}).output;
                rows += report.stacks.iter().filter(|row| row.asleep_ns.is_some_and(|ns| ns.0 > 0)).count();
            }
        }
    }
    assert!(sum.joined == sum.pieces && sum.pieces > 1_000 && rows > 1_000, "{sum:?}, {rows} rows");
}

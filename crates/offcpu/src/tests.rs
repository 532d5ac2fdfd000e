//! A nested case by hand: two places in one call, waits behind them, and a switch without a stack.

use crate::{OffCpu, OffCpuReport, OffCpuTime, Options, StackKind, StackTimes, folded};
use sched::{Comm, Cpu, Dur, EventKind, Pass, Pid, PrevState, SchedEvent, TaskRef, Ts};
use tracedat::{StackFrame, SwitchStacks};

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
    StackFrame { address, is_user: false }
}

/// Addresses within one function differ by the last digit.
fn name(frame: StackFrame) -> Option<String> {
    let names = ["", "schedule", "do_nanosleep", "pipe_read", "do_syscall_64"];
    names.get(frame.address as usize / 16).filter(|_| !frame.is_user).map(|name| (*name).to_owned())
}

/// The report with the stacks of the first, the second and the last sleep of `make`.
fn report(time: OffCpuTime, has_user: bool) -> OffCpuReport {
    let user = StackFrame { address: 0x7000, is_user: true };
    let nap = [kernel(0x11), kernel(0x21), kernel(0x41), user];
    let pipe = [kernel(0x11), kernel(0x31), kernel(0x41), user];
    // Another call in the same functions.
    let nap_again = [kernel(0x11), kernel(0x22), kernel(0x41), user];
    let key = |ts| (Ts(ts), Cpu(0), Pid(7));
    let stacks = SwitchStacks::of_switches([(key(100), &nap[..]), (key(400), &pipe[..]), (key(900), &nap_again[..])]);
    let options = Options { stacks, names: Some(Box::new(name)), has_user, time, ..Options::default() };
    let events = events();
    Pass::over(events.as_slice()).run(|| OffCpu::new(&options)).unwrap_or_else(|never| match never {}).output
}

#[test]
fn time_is_at_the_stack_of_the_switch_until_the_task_runs() {
    let report = report(OffCpuTime::Asleep, false);
    let make = report.stacks.iter().filter(|row| row.command == Comm::new(b"make"));
    let numbers = |row: &StackTimes| (row.kind, row.asleep_ns.0, row.runnable_ns.0, row.switches);
    assert_eq!(
        make.map(numbers).collect::<Vec<_>>(),
        [(StackKind::Timer, 300, 50, 2), (StackKind::Pipe, 200, 50, 1), (StackKind::NoStack, 0, 100, 1),]
    );
    let nap = report.stacks.iter().find(|row| row.kind == StackKind::Timer).expect("a nap");
    assert_eq!(nap.shown_by.as_deref(), Some("do_nanosleep"));
    assert_eq!(nap.frames, ["schedule", "do_nanosleep", "do_syscall_64"]);
    // sort slept until 690, and from 800 to 1000, without a stack.
    let all = |of: fn(&StackTimes) -> u64| report.stacks.iter().map(of).sum::<u64>();
    assert_eq!((report.asleep_ns, report.with_stack, report.switches), (Some(Dur(1390)), Some(3), Some(5)));
    assert_eq!((all(|row| row.asleep_ns.0), report.kinds.len()), (1390, 3));
}

#[test]
fn folded_stacks_sum_to_the_total() {
    let asleep = folded(&report(OffCpuTime::Asleep, false));
    assert_eq!(
        asleep,
        "make;do_syscall_64;do_nanosleep;schedule 300\nmake;do_syscall_64;pipe_read;schedule 200\nsort;[no stack] 890\n"
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
    assert_eq!(all, 1390);
    let level: Vec<_> = boxes.iter().filter(|found| found.level == 2).map(|found| (found.start, found.time)).collect();
    assert_eq!(level, [(0, 300), (300, 200)]);
    // Two kinds go through the system call.
    assert_eq!(boxes.iter().find(|found| found.name == "do_syscall_64").and_then(|found| found.kind), None);
}

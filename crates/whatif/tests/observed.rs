//! The order of the trace, where a task is pulled between two of its runs.

use sched::{Comm, Cpu, EventKind, Pass, Pid, PrevState, SchedEvent, TaskRef, Topology, Ts};
use std::ops::ControlFlow;
use whatif::{BuildOptions, Costs, EngineOptions, Interrupts, ModelBuilder, Observed, Order, Wakeups, simulate};

const ASLEEP: PrevState = PrevState::asleep(1);
const RUNS: PrevState = PrevState::RUNNABLE;

fn task(pid: i32) -> TaskRef {
    TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(if pid == 0 { b"swapper" } else { b"task" }) }
}

/// Task 7 is woken to CPU 0, where 5 runs. CPU 1 pulls it at 121 µs, as 6 is about to leave, but 5 leaves before 6 does. The next run on CPU 0 is
/// one of 7 as well: a later one. The recording was `server` of tests/vm/pairs, whose model never came to its end.
#[test]
fn a_task_that_another_cpu_pulls_is_not_run_where_it_waits() {
    let at = |us: i64, cpu, pid, kind| SchedEvent {
        ts: Ts(us * 1_000),
        cpu: Cpu(cpu),
        pid: Pid(pid),
        flags: if pid == 0 { 8 } else { 0 },
        kind,
    };
    let switch =
        |us, cpu, prev, state, next| at(us, cpu, prev, EventKind::Switch { prev: task(prev), state, next: task(next) });
    let waking = |us, cpu, pid| at(us, cpu, pid, EventKind::Waking { task: task(7), target: Cpu(0) });
    let wakeup = |us, cpu, pid| at(us, cpu, pid, EventKind::Wakeup { task: task(7), target: Cpu(0) });
    let events = [
        at(0, 0, 5, EventKind::Other { id: 1 }),
        at(0, 1, 6, EventKind::Other { id: 1 }),
        waking(38, 0, 5),
        wakeup(40, 0, 5),
        at(121, 1, 6, EventKind::Migrate { task: task(7), orig: Cpu(0), dest: Cpu(1) }),
        switch(244, 0, 5, ASLEEP, 0),
        switch(281, 1, 6, ASLEEP, 7),
        switch(288, 1, 7, ASLEEP, 0),
        waking(390, 1, 0),
        at(391, 1, 0, EventKind::Migrate { task: task(7), orig: Cpu(1), dest: Cpu(0) }),
        wakeup(400, 1, 0),
        switch(410, 0, 0, RUNS, 7),
        switch(500, 0, 7, ASLEEP, 0),
    ];
    let build = BuildOptions::default();
    let pass = Pass::over(&events[..]);
    let model = pass.run(|| ModelBuilder::new(&build)).unwrap_or_else(|never| match never {}).output;
    let (topology, order, costs) = (Topology::default(), Order::Fair, Costs::default());
    let (interrupts, wakeups) = (Interrupts::KeepLength, Wakeups::ByKind);
    let options = EngineOptions { topology: &topology, order, costs, interrupts, wakeups };
    let mut runs = Vec::new();
    simulate(&model, &mut Observed, &options, &mut |event| {
        if let EventKind::Switch { next, .. } = event.kind
            && next.pid == Pid(7)
        {
            runs.push((event.ts.0 / 1_000, event.cpu));
        }
        ControlFlow::Continue(())
    });
    assert_eq!(runs, [(281, Cpu(1)), (410, Cpu(0))]);
}

//! Moves of a trace's balancer: their kinds, and what stands in their place under a policy.

use sched::{Comm, Cpu, EventKind, Pass, Pid, PrevState, SchedEvent, TaskRef, Topology, Ts};
use std::ops::ControlFlow;
use whatif::{
    BuildOptions, Costs, EngineOptions, Interrupts, Model, ModelBuilder, MoveKind, Order, PolicyName, Wakeups, simulate,
};

/// The flag of an event in a softirq.
const SOFTIRQ: u8 = 0x10;

fn task(pid: i32) -> TaskRef {
    match pid {
        0 => TaskRef { pid: Pid(0), prio: 120, comm: Comm::new(b"swapper") },
        9 => TaskRef { pid: Pid(9), prio: 0, comm: Comm::new(b"migration/0") },
        _ => TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(b"task") },
    }
}

fn event(ts: i64, cpu: u32, pid: i32, flags: u8, kind: EventKind) -> SchedEvent {
    SchedEvent { ts: Ts(ts), cpu: Cpu(cpu), pid: Pid(pid), flags, kind }
}

fn switch(ts: i64, cpu: u32, prev: i32, state: PrevState, next: i32) -> SchedEvent {
    event(ts, cpu, prev, 0, EventKind::Switch { prev: task(prev), state, next: task(next) })
}

fn migrate(pid: i32) -> EventKind {
    EventKind::Migrate { task: task(pid), orig: Cpu(0), dest: Cpu(1) }
}

/// Task 1 runs on CPU 0, and task 2 waits behind it, while CPU 1 runs `other`, which can be none.
fn begun(other: i32) -> Vec<SchedEvent> {
    let woken = EventKind::WakeupNew { task: task(2), target: Cpu(0) };
    vec![
        switch(1_000, 0, 0, PrevState::RUNNABLE, 1),
        switch(1_000, 1, if other == 0 { 4 } else { 0 }, PrevState::asleep(1), other),
        event(2_000, 0, 1, 0, woken),
    ]
}

/// The kinds of moves in the model of a trace, and the numbers of migrations of its run under each of the policies.
fn moves(events: &[SchedEvent], policies: &[&str]) -> (Vec<MoveKind>, Vec<usize>) {
    let build = BuildOptions::default();
    let model: Model =
        Pass::over(events).run(|| ModelBuilder::new(&build)).unwrap_or_else(|never| match never {}).output;
    let (topology, costs) = (Topology::default(), Costs::default());
    let (order, interrupts, wakeups) = (Order::Fifo, Interrupts::KeepLength, Wakeups::ByKind);
    let options = EngineOptions { topology: &topology, order, costs, interrupts, wakeups };
    let migrations = policies.iter().map(|policy| {
        let policy: PolicyName = policy.parse().expect("a policy");
        let mut migrations = 0;
        let run = simulate(&model, &mut *policy.policy(), &options, &mut |event| {
            // Before, tasks come to the CPUs that they run on first.
            migrations += usize::from(matches!(event.kind, EventKind::Migrate { .. }) && event.ts > Ts(50_000));
            ControlFlow::Continue(())
        });
        assert!(run.finished, "{policy}");
        migrations
    });
    let migrations = migrations.collect();
    (model.moves.iter().map(|to| to.kind).collect(), migrations)
}

const POLICIES: [&str; 5] = ["observed", "steal=none", "nohz", "periodic", "nohz+periodic"];

/// All is over before the first tick, so that a mechanism of the kernel has nothing to do but to stand in the place of the trace's.
#[test]
fn periodic_balancing_stands_in_the_place_of_pulls_by_busy_cpus() {
    let mut events = begun(3);
    events.push(event(100_000, 1, 3, SOFTIRQ, migrate(2)));
    events.push(switch(200_000, 1, 3, PrevState::asleep(1), 2));
    events.push(switch(250_000, 1, 2, PrevState::asleep(1), 0));
    events.push(switch(900_000, 0, 1, PrevState::asleep(1), 0));
    let (kinds, migrations) = moves(&events, &POLICIES);
    // The model's queues are as long as in the trace: by `steal=none` the destination must have fewer tasks.
    assert_eq!((kinds, migrations), (vec![MoveKind::Busy], vec![1, 1, 1, 0, 0]));
}

#[test]
fn nohz_idle_balancing_stands_in_the_place_of_active_balancing() {
    let of = |flags: u8| {
        let mut events = begun(0);
        events.push(event(100_000, 1, 0, flags, EventKind::Waking { task: task(9), target: Cpu(0) }));
        events.push(event(101_000, 1, 0, flags, EventKind::Wakeup { task: task(9), target: Cpu(0) }));
        events.push(switch(110_000, 0, 1, PrevState::PREEMPTED, 9));
        events.push(event(120_000, 0, 9, 0, migrate(1)));
        events.push(switch(130_000, 0, 9, PrevState::asleep(1), 2));
        events.push(switch(130_000, 1, 0, PrevState::RUNNABLE, 1));
        events.push(switch(300_000, 0, 2, PrevState::asleep(1), 0));
        events.push(switch(900_000, 1, 1, PrevState::asleep(1), 0));
        moves(&events, &POLICIES)
    };
    assert_eq!(of(SOFTIRQ), (vec![MoveKind::Active], vec![1, 1, 0, 1, 0]));
    // A stopper that a task woke makes an exec, or keeps a task to other CPUs.
    assert_eq!(of(0), (vec![MoveKind::Stopper], vec![1, 1, 1, 1, 1]));
}

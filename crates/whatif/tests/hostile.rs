//! Models of hostile traces: neither memory nor the time of a simulation grows beyond a multiple of the trace.

use sched::{Comm, Cpu, Dur, EventKind, Pass, Pid, PrevState, SchedEvent, TaskRef, Topology, Ts};
use std::ops::ControlFlow;
use testkit::Operation::{Run as Runs, Wait, Wake};
use testkit::{Worker, Workload};
use whatif::{
    BuildOptions, Costs, EngineOptions, Interrupts, Model, ModelBuilder, NewIdleCost, Order, PolicyName, ProgramStep,
    Run, TakesEvent, Wakeups, simulate,
};

fn model(events: &[SchedEvent]) -> Model {
    let build = BuildOptions::default();
    Pass::over(events).run(|| ModelBuilder::new(&build)).unwrap_or_else(|never| match never {}).output
}

fn run(model: &Model, policy: &str) -> Run {
    run_into(model, policy.parse().expect("a policy"), &mut |_| ControlFlow::Continue(()))
}

fn run_into(model: &Model, policy: PolicyName, sink: &mut TakesEvent<'_>) -> Run {
    let topology = Topology::default();
    let costs =
        Costs { steal: 2_000, new_idle: Some(NewIdleCost { lowest: 3_000, all: u64::MAX }), ..Costs::default() };
    let (order, interrupts, wakeups) = (Order::Fair, Interrupts::KeepLength, Wakeups::ByKind);
    let options = EngineOptions { topology: &topology, order, costs, interrupts, wakeups };
    simulate(model, &mut *policy.policy(), &options, sink)
}

fn task(pid: i32) -> TaskRef {
    let (prio, comm) = if pid == 0 { (120, Comm::new(b"swapper")) } else { (120, Comm::new(b"task")) };
    TaskRef { pid: Pid(pid), prio, comm }
}

fn event(ts: i64, cpu: u32, pid: i32, kind: EventKind) -> SchedEvent {
    SchedEvent { ts: Ts(ts), cpu: Cpu(cpu), pid: Pid(pid), flags: 0, kind }
}

fn switch(ts: i64, cpu: u32, prev: i32, state: PrevState, next: i32) -> SchedEvent {
    event(ts, cpu, prev, EventKind::Switch { prev: task(prev), state, next: task(next) })
}

#[test]
fn a_chain_of_wakeups_over_thousands_of_cpus_needs_no_stack() {
    // Each task wakes the one on the next CPU at once.
    let cpus = 1_000;
    let worker = |cpu: usize| {
        let wakes = if cpu + 1 < cpus { vec![Wake(cpu + 1)] } else { Vec::new() };
        let begins = if cpu == 0 { vec![Runs(1_000)] } else { vec![Wait] };
        Worker::on(cpu, [begins, wakes, vec![Runs(500)]].concat())
    };
    let events = Workload { cpus, workers: (0..cpus).map(worker).collect(), steal: None }.run();
    let model = model(&events);
    for policy in ["observed", "steal=none"] {
        let run = run(&model, policy);
        assert!(run.finished && run.end.since(model.start).0 < 10_000, "{policy}: {run:?}");
    }
}

#[test]
fn moves_of_tasks_that_wait_together_take_room_once() {
    // Two tasks wait, and a balancer moves now the one, now the other.
    let moves = 20_000;
    let mut events = vec![switch(0, 0, 0, PrevState::RUNNABLE, 1), switch(0, 1, 0, PrevState::RUNNABLE, 2)];
    events.extend([3, 4].map(|pid| event(10, 0, 1, EventKind::WakeupNew { task: task(pid), target: Cpu(0) })));
    events.extend((0..moves).map(|nth| {
        let (pid, from) = (3 + (nth % 2) as i32, (nth / 2 % 2) as u32);
        let kind = EventKind::Migrate { task: task(pid), orig: Cpu(from), dest: Cpu(1 - from) };
        event(20 + nth, 2, 0, kind)
    }));
    events.push(switch(30_000, 0, 1, PrevState::asleep(1), 3));
    events.push(switch(40_000, 0, 3, PrevState::asleep(1), 4));
    events.push(switch(50_000, 0, 4, PrevState::asleep(1), 0));
    let model = model(&events);
    assert_eq!(model.moves.len(), moves as usize);
    for join in &model.joins {
        let of_join = &model.moves[join.moves.0 as usize..join.moves.1 as usize];
        assert!(of_join.is_sorted_by_key(|to| to.after), "{join:?}");
    }
    assert!(run(&model, "steal=none").finished);
}

#[test]
fn slices_without_any_length_end() {
    // Two tasks preempt one another in no time, and then compete for months.
    let mut events = vec![switch(0, 0, 0, PrevState::RUNNABLE, 1)];
    events.push(event(0, 0, 1, EventKind::WakeupNew { task: task(2), target: Cpu(0) }));
    events.extend((0..60).map(|nth| switch(1_000, 0, 1 + nth % 2, PrevState::PREEMPTED, 2 - nth % 2)));
    let month = 30 * 86_400 * 1_000_000_000_i64;
    events.push(switch(month, 0, 1, PrevState::PREEMPTED, 2));
    events.push(switch(3 * month, 0, 2, PrevState::PREEMPTED, 1));
    events.push(switch(4 * month, 0, 1, PrevState::asleep(1), 2));
    events.push(switch(5 * month, 0, 2, PrevState::asleep(1), 0));
    let model = model(&events);
    // The slice grows until the months have 65,536 of them.
    assert!(!model.taken.slice_is_measured, "{:?}", model.taken);
    let all = run(&model, "steal=none");
    assert!(all.finished && all.events < 400_000, "{all:?}");
    assert!(run(&model, "observed").finished);
    // Nor do the ticks of months take longer than the work.
    assert!(run(&model, "nohz+periodic").finished);
}

/// Two tasks run side by side for a year on a machine with thousands of CPUs: as few ticks as a simulation may take.
#[test]
fn a_year_has_few_ticks() {
    let year = 365 * 86_400 * 1_000_000_000_i64;
    let mut events = vec![switch(0, 0, 0, PrevState::RUNNABLE, 1), switch(0, 1, 0, PrevState::RUNNABLE, 2)];
    events.extend((2..5_000).map(|cpu| switch(1, cpu, 10 + cpu as i32, PrevState::asleep(1), 0)));
    events.push(event(10, 0, 1, EventKind::WakeupNew { task: task(3), target: Cpu(0) }));
    events.push(switch(year, 0, 1, PrevState::asleep(1), 3));
    events.push(switch(year + 20, 1, 2, PrevState::asleep(1), 0));
    events.push(switch(2 * year, 0, 3, PrevState::asleep(1), 0));
    let model = model(&events);
    let [kept, balanced] = ["steal=none", "nohz+periodic"].map(|policy| run(&model, policy));
    assert!(kept.finished && balanced.finished, "{kept:?} {balanced:?}");
    // The third task runs for a year from the first tick on.
    assert!(balanced.pulls.nohz == 1 && kept.end.0 >= 2 * year, "{kept:?} {balanced:?}");
    assert!((year..year + year / 100).contains(&balanced.end.0), "{balanced:?}");
}

/// The work of a run is that of the trace, whatever moves at its ticks, and neither depends on when it is simulated.
#[test]
fn balancing_at_ticks_adds_no_work_and_takes_none() {
    let mut moved = 0;
    for seed in 0..40 {
        let events = Workload { steal: None, ..Workload::random(seed, true) }.run();
        let model = model(&events);
        let length = |step: &ProgramStep| if let ProgramStep::Run(ns) = step { *ns } else { 0 };
        let work: u64 = model.tasks.iter().flat_map(|task| &task.steps).map(length).sum();
        let runs = || {
            let tick = Dur(250_000);
            let policy = "newidle+nohz+periodic".parse::<PolicyName>().expect("a policy").with_tick(tick);
            let (mut ran, mut since) = (0, vec![model.start; model.cpus.len()]);
            let run = run_into(&model, policy, &mut |event| {
                if let EventKind::Switch { prev, .. } = event.kind {
                    ran += if prev.pid.is_idle() { 0 } else { event.ts.since(since[event.cpu.index()]).0 };
                    since[event.cpu.index()] = event.ts;
                }
                ControlFlow::Continue(())
            });
            (ran, run)
        };
        let (ran, run) = runs();
        assert!(run.finished && ran == work, "seed {seed}: {ran} of {work}, {run:?}");
        assert_eq!(runs(), (ran, run), "seed {seed}");
        moved += run.pulls.nohz + run.pulls.periodic;
    }
    assert!(moved > 30, "{moved} pulls");
}

#[test]
fn a_task_that_is_born_twice_waits_once() {
    // Task 2 is born, runs, sleeps and is woken at one instant: its wakeup looks like another birth. A queue that has it twice gives it to its
    // CPU again and again.
    let mut events = vec![switch(0, 0, 0, PrevState::RUNNABLE, 1)];
    events.push(event(10, 0, 1, EventKind::Fork { parent: Pid(1), child: Pid(2), child_comm: Comm::new(b"task") }));
    events.push(event(10, 0, 1, EventKind::WakeupNew { task: task(2), target: Cpu(0) }));
    events.push(switch(10, 0, 1, PrevState::PREEMPTED, 2));
    events.push(switch(10, 0, 2, PrevState::asleep(1), 1));
    events.push(event(10, 0, 1, EventKind::Wakeup { task: task(2), target: Cpu(0) }));
    events.push(switch(20, 0, 1, PrevState::asleep(1), 2));
    events.push(switch(30, 0, 2, PrevState::asleep(1), 0));
    let model = model(&events);
    for policy in ["observed", "steal=none", "ideal"] {
        assert!(run(&model, policy).events < 100, "{policy}");
    }
}

#[test]
fn a_cpu_goes_idle_at_the_end_of_time() {
    // Task 2 waits on CPU 0 and has not run before; CPU 1 idles, runs task 3 and goes idle again.
    let end = i64::MAX - 10_000_000;
    let mut events = vec![switch(end, 0, 0, PrevState::RUNNABLE, 1), switch(end, 1, 0, PrevState::RUNNABLE, 3)];
    events.push(event(end + 10, 0, 1, EventKind::WakeupNew { task: task(2), target: Cpu(0) }));
    events.push(switch(end + 1_000_000, 1, 3, PrevState::asleep(1), 0));
    events.push(event(end + 1_500_000, 0, 1, EventKind::Wakeup { task: task(3), target: Cpu(1) }));
    events.push(switch(end + 1_500_010, 1, 0, PrevState::RUNNABLE, 3));
    events.push(switch(end + 1_600_000, 1, 3, PrevState::asleep(1), 0));
    events.push(switch(end + 3_000_000, 0, 1, PrevState::asleep(1), 2));
    events.push(switch(end + 4_000_000, 0, 2, PrevState::asleep(1), 0));
    let model = model(&events);
    for policy in ["newidle", "newidle=random", "newidle+nohz+periodic"] {
        let run = run(&model, policy);
        assert!(run.finished && run.end.0 > end, "{policy}: {run:?}");
    }
    assert_eq!(run(&model, "newidle").steals, 1);
}

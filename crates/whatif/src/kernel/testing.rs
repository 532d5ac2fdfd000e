//! Runs of a few tasks under a policy, whose moves are calculated by hand.

use crate::engine::{Costs, EngineOptions, Interrupts, NewIdleCost, Order, Policy, Wakeups, simulate};
use crate::model::{Begin, Model, ModelCpu, ModelTask, PlacedOn, ProgramStep, QueueJoin};
use sched::topology::CpuLocation;
use sched::{Comm, Cpu, EventKind, Pid, Topology, Ts};
use std::ops::ControlFlow;

const MS: u64 = 1_000_000;

fn join(cpu: Cpu) -> QueueJoin {
    let (placed, seeks_idle, dispatch, allowed) = (PlacedOn::Other, false, None, None);
    QueueJoin { task: 0, start: Ts(0), waited: 0, cpu, placed, seeks_idle, dispatch, moves: (0, 0), allowed }
}

/// Tasks on CPUs, each with a CPU and its CPU time in microseconds.
#[derive(Clone, Copy)]
pub(super) struct Scene<'s> {
    pub(super) order: Order,
    pub(super) topology: &'s Topology,
    /// The tasks that run from the start, and those that wait.
    pub(super) tasks: [&'s [(u32, u64)]; 2],
    /// Whether the tasks that run, and those that wait, may only use their CPU.
    pub(super) bound: [bool; 2],
    pub(super) cost: NewIdleCost,
}

/// Runs tasks that run on a CPU from the start, and others that wait there, each a CPU and its CPU time in microseconds. Returns the tasks that were
/// moved, as the CPU that each came from and went to, with the instant in microseconds.
pub(super) fn moves(
    policy: &mut dyn Policy,
    topology: &Topology,
    tasks: [&[(u32, u64)]; 2],
    cost: NewIdleCost,
) -> Vec<(u32, u32, i64)> {
    moves_of(policy, Scene { order: Order::Fifo, topology, tasks, bound: [false; 2], cost })
}

/// The tasks that are moved, as the CPU that each comes from and goes to, with the instant in microseconds.
pub(super) fn moves_of(policy: &mut dyn Policy, scene: Scene<'_>) -> Vec<(u32, u32, i64)> {
    let Scene { order, topology, tasks, bound, cost } = scene;
    let mut model = Model { end: Ts(1_000 * MS as i64), ..Model::default() };
    let cpus = topology.cpus().count();
    model.cpus = vec![ModelCpu { usable: true, runs: Vec::new() }; cpus];
    model.sets = (0..cpus as u32).map(|cpu| [Cpu(cpu)].into_iter().collect()).collect();
    for (at, (tasks, is_bound)) in tasks.into_iter().zip(bound).enumerate() {
        for (cpu, us) in tasks {
            let (cpu, allowed) = (Cpu(*cpu), is_bound.then_some(*cpu));
            let begin = if at == 1 { Begin::Waits(model.joins.len() as u32) } else { Begin::Runs(cpu) };
            model.joins.push(QueueJoin { allowed, ..join(cpu) });
            let pid = Pid(100 + model.tasks.len() as i32);
            let steps = vec![ProgramStep::Run(us * 1_000), ProgramStep::Die];
            let (comm, id, parent, prio) = (Comm::from_array([b'a'; 16]), None, None, 120);
            model.tasks.push(ModelTask { id, pid, parent, comm, prio, cpu, allowed, begin, steps });
        }
    }
    model.taken.slice_ns = sched::Dur(3 * MS);
    let costs = Costs { new_idle: Some(cost), ..Costs::default() };
    let (interrupts, wakeups) = (Interrupts::KeepLength, Wakeups::ByKind);
    let options = EngineOptions { topology, order, costs, interrupts, wakeups };
    let mut found = Vec::new();
    simulate(&model, policy, &options, &mut |event| {
        if let EventKind::Migrate { orig, dest, .. } = event.kind {
            found.push((orig.0, dest.0, event.ts.0 / 1_000));
        }
        ControlFlow::Continue(())
    });
    found
}

/// CPUs of which so many share a cache and a node.
pub(super) fn caches(cpus: u32, of: u32) -> Topology {
    let mut topology = Topology::default();
    for cpu in 0..cpus {
        let (core, llc, node) = (Some(cpu), Some(cpu / of), Some(cpu / of));
        topology.set(Cpu(cpu), CpuLocation { core, llc, node, ..CpuLocation::default() });
    }
    topology
}

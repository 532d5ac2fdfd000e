//! The decisions that a policy takes.

use super::Costs;
use super::machine::{Machine, Placement};
use crate::model::{MoveKind, TaskIndex};
use sched::{Cpu, Dur};

/// The kinds of balancing at ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Balancer {
    /// A CPU that runs a task balances.
    Periodic,
    /// An idle CPU balances for the idle ones.
    NohzIdle,
}

/// Tasks that a balancer moves to a CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pull {
    /// The tasks, in the order in which they come; each waits on another CPU, or runs there and is pushed away.
    pub tasks: Vec<TaskIndex>,
    /// The CPU that the tasks come to; each of them may use it.
    pub to: Cpu,
    /// The balancer that moves them.
    pub by: Balancer,
}

/// A scheduling policy: four decisions of a scheduler. The engine does the rest: the order of each queue, preemption, the time that
/// decisions cost, and affinity.
///
/// The hooks are called while events are simulated. They see the machine as it is at that instant and must not keep state that depends on
/// anything else than their own calls, so that the same model gives the same run. A policy need not implement any hook: the default
/// places tasks as the trace did, and steals nothing.
pub trait Policy {
    /// The name of the policy in tables, such as `steal=llc`.
    fn name(&self) -> String;

    /// Returns the CPU whose run queue a woken or a new task joins. Called once for each wakeup and fork, before the task is queued;
    /// the task may use the CPU that the hook returns, or the engine puts it on one that the task may use.
    fn place(&mut self, placement: &Placement, machine: &Machine<'_>) -> Cpu {
        machine.usual(placement)
    }

    /// Returns the waiting task that `cpu` is to run next, from any run queue, or nothing to leave the choice to the order of its own
    /// queue. Called each time that a CPU needs a task; the task that is returned must wait and may use `cpu`.
    fn choose(&mut self, cpu: Cpu, machine: &Machine<'_>) -> Option<TaskIndex> {
        let _ = (cpu, machine);
        None
    }

    /// Returns a waiting task of another CPU that `cpu` takes instead of going idle. Called when the CPU's last task has left and its
    /// queue is empty; the task that is returned must wait and may use `cpu`. The steal costs time.
    fn steal(&mut self, cpu: Cpu, machine: &Machine<'_>) -> Option<TaskIndex> {
        let _ = (cpu, machine);
        None
    }

    /// Returns the time from the decision of the latest [`Policy::steal`] until its task runs, in nanoseconds.
    fn steal_takes(&self, costs: &Costs) -> u64 {
        costs.steal
    }

    /// Returns the time between the ticks of a CPU that runs a task, if the policy balances at ticks. All CPUs have them at the same instants, multiples
    /// of that time on the trace's clock; [`Machine::tick`] is longer where these would be too many to simulate. The answer must be the same at
    /// each call.
    fn tick_length(&self) -> Option<Dur> {
        None
    }

    /// Returns tasks that are moved at a tick of `cpu`, which runs a task, if [`Policy::tick_length`] has ticks. Called again at the same tick, once the
    /// tasks have come, until it returns nothing.
    fn tick(&mut self, cpu: Cpu, machine: &Machine<'_>) -> Option<Pull> {
        let _ = (cpu, machine);
        None
    }

    /// Whether the policy stands in the place of the trace's moves of this kind, which do not go on beside it. The answer must be the same at each
    /// call.
    fn replaces(&self, kind: MoveKind) -> bool {
        let _ = kind;
        false
    }

    /// Whether CPUs run tasks in the order of the trace, and tasks move between queues as in the trace. Then
    /// [`Policy::name`] is the only other hook that is called. The answer must be the same at each call.
    fn follows_trace(&self) -> bool {
        false
    }

    /// Whether the balancer of the trace goes on beside the policy: CPUs that go idle, and CPUs that idle, pull as large a share of the
    /// tasks that they could pull as in the trace, and the other moves of waiting tasks are made where a task still waits then. The answer
    /// must be the same at each call.
    fn keeps_balancing(&self) -> bool {
        true
    }
}

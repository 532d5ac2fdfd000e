//! The steps that a later piece of a pass leaves to the analyses of the pieces before.

use crate::undone::Move;
use sched::{Comm, Cpu, Migration, Span, TaskId};

/// A step of a migration. Both steps are in one list: two moves of a task can share instant and target, and which of them a cause is for
/// then goes by the order of the steps.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BalanceStep {
    /// The task is moved.
    Happened(Move),
    /// The cause is settled.
    Settled(Migration),
}

/// A step in the bursts of a task.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BurstStep {
    /// The task ran on a CPU, by this name.
    Ran(Span, Cpu, Option<Comm>),
    /// The state of the task was unknown.
    Unknown(TaskId),
}

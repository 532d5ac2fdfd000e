//! The steps that a later piece of a pass leaves to the analyses of the pieces before.

use crate::undone::Move;
use sched::{Comm, Cpu, Migration, Span, TaskId};

/// The migrations of a later piece of a pass.
#[derive(Debug, Default)]
pub(crate) struct BalanceLog {
    /// The migrations in the order in which they are settled.
    pub(crate) migrations: Vec<Migration>,
    /// The same migrations as they happen, and those that are never settled.
    pub(crate) moves: Vec<Move>,
}

/// A step in the bursts of a task.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BurstStep {
    /// The task ran on a CPU, by this name.
    Ran(Span, Cpu, Option<Comm>),
    /// The state of the task was unknown.
    Unknown(TaskId),
}

//! The order of a run queue.

use sched::Comm;
use sched::kthread::is_any_stopper;

/// The order in which a run queue is served
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// First in, first out; real-time tasks before others
    Fifo,
    /// The least time run, weighted by the priorities; real-time tasks before others
    Fair,
}

/// The rank of all fair tasks.
pub(crate) const FAIR: i32 = 100;

/// The rank of a task: a lower one runs first. Stoppers come before deadline tasks, these before real-time ones.
pub(crate) fn rank(prio: i32, comm: Comm) -> i32 {
    if is_any_stopper(comm) { -2 } else { prio.clamp(-1, FAIR) }
}

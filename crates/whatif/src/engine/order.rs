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

/// The weight of a fair task of nice value 0.
pub(crate) const WEIGHT: u64 = 1024;

/// The weights of nice values from −20 to 19, of the kernel's `sched_prio_to_weight`.
const WEIGHTS: [u64; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904, 3906, 3121, 2501,
    1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87, 70, 56, 45, 36, 29, 23, 18, 15,
];

/// The weight of a task by its kernel priority.
pub(crate) fn weight(prio: i32) -> u64 {
    usize::try_from(prio - 100).ok().and_then(|nice| WEIGHTS.get(nice)).copied().unwrap_or(WEIGHT)
}

/// The rank of all fair tasks.
pub(crate) const FAIR: i32 = 100;

/// The rank of a task: a lower one runs first. Stoppers come before deadline tasks, these before real-time ones.
pub(crate) fn rank(prio: i32, comm: Comm) -> i32 {
    if is_any_stopper(comm) { -2 } else { prio.clamp(-1, FAIR) }
}

//! The report: what each cgroup was entitled to, and what it got.

use sched::{Dur, Pid};
use serde::Serialize;

/// The shares of the cgroups, by weight and in fact.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SharesReport {
    /// The cgroups with runnable tasks in the window, the root among them, by path.
    pub groups: Vec<GroupShare>,
    /// The reason why there are no shares; absent if there are.
    pub unknown: Option<String>,
}

/// The share of a cgroup with all below it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GroupShare {
    /// The path of the cgroup.
    pub cgroup: String,
    /// `cpu.weight`; null for the root, and for a cgroup that the machine file lacks, which counts as 100.
    pub weight: Option<u64>,
    /// Whether `cpu.idle` is set, so that the weight is that of idle tasks.
    pub is_idle: bool,
    /// The time for which the cgroup had runnable tasks of the fair class, in nanoseconds.
    pub runnable_ns: Dur,
    /// The CPU time to which its weight entitled it meanwhile, in nanoseconds.
    pub entitled_ns: Dur,
    /// The CPU time of its tasks of the fair class, in nanoseconds.
    pub got_ns: Dur,
    /// The CPU time that it got, in percent of that to which it was entitled; null if it was entitled to none.
    pub got_percent: Option<f64>,
    /// The longest time for which it got less than half of that to which it was entitled, in nanoseconds: a sequence of intervals of
    /// 100 ms.
    pub longest_below_half_ns: Dur,
    /// The start of that time after the start of the window, in nanoseconds; null if there is none.
    pub below_half_from_ns: Option<Dur>,
    /// The seconds of the window in which it had runnable tasks, at most 3,600.
    pub seconds: Vec<SecondShare>,
    /// The spread between equal tasks of the cgroup itself; null unless it had two of them.
    pub equal_tasks: Option<EqualTasks>,
}

/// The share of a cgroup in a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SecondShare {
    /// The second from the start of the window on, from 0.
    pub second: u64,
    /// The CPU time to which the cgroup was entitled in it, in nanoseconds.
    pub entitled_ns: Dur,
    /// The CPU time that the cgroup got in it, in nanoseconds.
    pub got_ns: Dur,
}

/// The spread between the tasks of a cgroup that have the same nice value.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EqualTasks {
    /// The number of tasks that were entitled to 10 ms or more: of the nice value with most of them.
    pub tasks: usize,
    /// The weight of their nice value; 1024 for nice 0.
    pub weight: u64,
    /// The least CPU time of a task, in percent of that to which it was entitled.
    pub least_percent: f64,
    /// The PID of the task with the least.
    pub least_pid: Pid,
    /// The greatest CPU time of a task, in percent of that to which it was entitled.
    pub most_percent: f64,
    /// The PID of the task with the greatest.
    pub most_pid: Pid,
}

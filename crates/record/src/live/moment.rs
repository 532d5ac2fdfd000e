//! An interval of the running scheduler in numbers: a document of `top`.

use sched::lengths::Summary;
use sched::{Comm, Cpu, Current, Pid, Ts};
use serde::Serialize;

/// The name and version of the document's schema.
pub const SCHEMA: &str = "schedviz/top/2";

/// An interval, measured.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Moment {
    /// The name and version of the schema, `schedviz/top/2`.
    pub schema: &'static str,
    /// The start of the interval, on the trace's clock.
    pub from_ns: Ts,
    /// The end of the interval.
    pub to_ns: Ts,
    /// The number of events in the interval that are not about this program's own tasks.
    pub events: u64,
    /// The number of events in the interval about this program's own tasks, which are left out of the figures.
    pub own_events: u64,
    /// The time that this program's own tasks ran, in percent of one CPU's time.
    pub own_percent: f64,
    /// The number of places where events were lost.
    pub losses: u64,
    /// The CPU time of which nothing is known, in percent.
    pub unknown_percent: f64,
    /// The time in violation of work conservation, in percent of the interval.
    pub violation_percent: f64,
    /// The CPU time lost to the violation, in percent of the interval times the CPUs.
    pub cpu_time_lost_percent: f64,
    /// The number of CPUs that are online or had events.
    pub cpus: usize,
    /// The mean number of running tasks.
    pub running: f64,
    /// The mean number of waiting tasks.
    pub waiting: f64,
    /// The wakeup latency.
    pub wakeup: Summary,
    /// The waits of preempted tasks.
    pub preempted: Summary,
    /// The number of migrations by cause; causes that did not occur are absent.
    pub migrations: Vec<Migrations>,
    /// The CPUs at the end of the interval.
    pub queues: Vec<LiveQueue>,
    /// The tasks that waited longest in the interval, the longest first.
    pub tasks: Vec<Waited>,
}

/// The migrations of a cause.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Migrations {
    /// The cause, in the words of `migrations`.
    pub cause: String,
    /// The number of migrations.
    pub count: u64,
}

/// A CPU at the end of an interval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LiveQueue {
    /// Number of the CPU.
    pub cpu: Cpu,
    /// Occupant of the CPU: a task, or idle, offline or unknown.
    pub current: Current,
    /// The name of the running task; empty where none runs.
    pub command: Comm,
    /// The names of the waiting tasks.
    pub waiting: Vec<Comm>,
}

/// A task that waited in an interval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Waited {
    /// The number of the task.
    pub pid: Pid,
    /// The name of the task.
    pub command: Comm,
    /// The time that it waited, in nanoseconds.
    pub waiting_ns: u64,
    /// The time that it ran, in nanoseconds.
    pub running_ns: u64,
}

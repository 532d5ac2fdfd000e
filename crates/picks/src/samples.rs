//! The lags and the runs of tasks, for a figure.

use sched::{Comm, Cpu, Pid, Ts};

/// The lag of a task at an instant.
#[derive(Clone, Copy, Debug)]
pub struct LagSample {
    /// The instant of the switch.
    pub(crate) ts: Ts,
    /// The CPU of the switch.
    pub(crate) cpu: Cpu,
    /// The PID of the task.
    pub(crate) pid: Pid,
    /// The command name of the task.
    pub(crate) comm: Comm,
    /// The lag, in nanoseconds of the task's own run time.
    pub(crate) lag_ns: i64,
    /// Whether the task was picked then; otherwise it left its CPU.
    pub(crate) is_picked: bool,
}

/// A run of a task.
#[derive(Clone, Copy, Debug)]
pub struct RunSample {
    pub(crate) from: Ts,
    pub(crate) to: Ts,
    pub(crate) cpu: Cpu,
    pub(crate) pid: Pid,
}

//! The longest case of a row.

use crate::ledger::Case;
use sched::{Comm, Cpu, Dur, Pid, Ts};
use serde::Serialize;

/// The case of a row with the longest time in violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Longest {
    /// The start of the case on the trace's clock, in nanoseconds.
    pub start_ns: Ts,
    /// The start of the case after the start of the trace, in nanoseconds.
    pub start_in_trace_ns: u64,
    /// The length of the case in nanoseconds, violated or not.
    pub duration_ns: Dur,
    /// The time in violation of the case, in nanoseconds.
    pub violated_ns: Dur,
    /// The CPU of the run queue, or the idle CPU.
    pub cpu: Cpu,
    /// The waiting task; absent for an idle stretch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<Pid>,
    /// The name of that task.
    #[serde(skip_serializing_if = "Comm::is_empty")]
    pub command: Comm,
}

/// Describes a case; `zero` is the start of the trace.
pub(crate) fn longest(case: &Case, zero: Ts) -> Longest {
    Longest {
        start_ns: case.start,
        start_in_trace_ns: case.start.since(zero).0,
        duration_ns: case.end.since(case.start),
        violated_ns: Dur(case.violated),
        cpu: case.cpu,
        pid: (!case.pid.is_idle()).then_some(case.pid),
        command: case.command,
    }
}

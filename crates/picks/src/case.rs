//! The picks that are listed: those that no rule explains, and those of tasks whose deadline had passed for longest.

use crate::exact::Explained;
use crate::reason::{Numbers, Reason};
use sched::{Comm, Cpu, Dur, Pid, Ts};
use serde::Serialize;

/// A task that could be picked, with its numbers relative to those of the picked one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ComparedTask {
    /// The PID of the task.
    pub pid: Pid,
    /// The command name of the task.
    pub command: Comm,
    /// The virtual run time of the task less that of the picked one, in nanoseconds. Absent if it was not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vruntime_ns: Option<i64>,
    /// The virtual deadline of the task less the virtual run time of the picked one, in nanoseconds. Absent if it was not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_ns: Option<i64>,
    /// The weight of the task, 1024 for nice 0. Absent if its numbers were not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<u64>,
}

/// A pick that is listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PickCase {
    /// The instant of the switch, in nanoseconds of the trace's clock.
    pub at_ns: Ts,
    /// The instant of the switch, in nanoseconds from the start of the trace.
    pub start_in_trace_ns: u64,
    /// The CPU of the switch.
    pub cpu: Cpu,
    /// The reason of the pick.
    pub reason: Reason,
    /// The lag of the picked task, in nanoseconds of its own run time; negative if it had more than its share. Absent if it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lag_ns: Option<i64>,
    /// The time by which the task's deadline had passed, in nanoseconds of its own run time. Absent if it had not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late_ns: Option<Dur>,
    /// The picked task.
    pub picked: ComparedTask,
    /// The other tasks of the fair class that could run on the CPU, the one that left among them.
    pub others: Vec<ComparedTask>,
}

/// The listed picks.
#[derive(Clone, Debug)]
pub(crate) struct PickCases {
    most: usize,
    pub(crate) unexplained: Vec<PickCase>,
    /// The picks of tasks whose deadline had passed, the latest first.
    pub(crate) late: Vec<PickCase>,
}

fn compared(pid: Pid, command: Comm, numbers: Option<Numbers>, zero: i64) -> ComparedTask {
    ComparedTask {
        pid,
        command,
        vruntime_ns: numbers.map(|numbers| numbers.vruntime.wrapping_sub(zero)),
        deadline_ns: numbers.map(|numbers| numbers.deadline.wrapping_sub(zero)),
        weight: numbers.map(|numbers| numbers.weight),
    }
}

impl PickCases {
    pub(crate) fn new(most: usize) -> PickCases {
        PickCases { most, unexplained: Vec::new(), late: Vec::new() }
    }

    pub(crate) fn add(&mut self, explained: &Explained, late: Option<Dur>, zero: Ts) {
        let is_unexplained = explained.verdict.reason == Reason::Unexplained && self.unexplained.len() < self.most;
        let place = self.late.partition_point(|case| case.late_ns >= late);
        let is_late = late.is_some() && place < self.most;
        if !is_unexplained && !is_late {
            return;
        }
        let (pick, own) = (&explained.pick, explained.numbers.vruntime);
        let others = explained.rivals.iter().map(|rival| compared(rival.pid, rival.comm, rival.numbers, own));
        let case = PickCase {
            at_ns: pick.at,
            start_in_trace_ns: pick.at.since(zero).0,
            cpu: pick.cpu,
            reason: explained.verdict.reason,
            lag_ns: explained.verdict.lag_ns,
            late_ns: late,
            picked: compared(pick.task.pid, pick.task.comm, Some(explained.numbers), own),
            others: others.collect(),
        };
        if is_late {
            self.late.insert(place, case.clone());
            self.late.truncate(self.most);
        }
        if is_unexplained {
            self.unexplained.push(case);
        }
    }
}

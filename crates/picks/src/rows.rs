//! The sums of the tables.

use crate::Options;
use crate::reason::Reason;
use crate::signed::Signed;
use membership::{RowKey, TaskGroup};
use sched::limits::BoundedRows;
use sched::state::Task;
use sched::{Comm, Cpu, Dur, Lengths, Pid, SchedState, TaskRef, Ts};

impl Options<'_> {
    /// The row of a task on a CPU, in the present state.
    pub(crate) fn key(&self, task: &Task, cpu: Cpu, state: &SchedState) -> RowKey {
        self.by.key((task.pid, task.comm), cpu, || {
            self.row_groups.as_deref().map_or(TaskGroup::Unknown, |groups| groups.group(task, state.now()))
        })
    }
}

/// A pick as it is counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted {
    pub(crate) at: Ts,
    pub(crate) cpu: Cpu,
    pub(crate) pid: Pid,
    pub(crate) comm: Comm,
    /// The row in which the pick counts.
    pub(crate) row: RowKey,
    pub(crate) reason: Reason,
    pub(crate) lag_ns: Option<i64>,
    /// The time by which the deadline had passed.
    pub(crate) late: Option<Dur>,
    pub(crate) slice: Option<Dur>,
    /// Whether the task that left was within its protected slice.
    pub(crate) in_spite: bool,
    /// Whether the picked task has a shorter request than the one that left.
    pub(crate) is_shorter: bool,
}

impl Counted {
    /// Makes a pick of which nothing but the switch is known.
    pub(crate) fn of(at: Ts, cpu: Cpu, task: TaskRef, row: RowKey) -> Counted {
        Counted {
            at,
            cpu,
            pid: task.pid,
            comm: task.comm,
            row,
            reason: Reason::NotRecorded,
            lag_ns: None,
            late: None,
            slice: None,
            in_spite: false,
            is_shorter: false,
        }
    }

    /// Whether another task of the fair class could have been picked.
    pub(crate) fn is_contested(&self) -> bool {
        self.reason != Reason::Only
    }
}

/// The sums of some picks.
#[derive(Clone, Debug, Default)]
pub(crate) struct PickSums {
    pub(crate) reasons: [u64; Reason::ALL.len()],
    /// The picks in spite of a protected slice, by reason.
    pub(crate) in_spite: [u64; Reason::ALL.len()],
    /// The picks among those of a task with a shorter request, by reason.
    pub(crate) shorter: [u64; Reason::ALL.len()],
    pub(crate) lag: Signed,
    pub(crate) late: Lengths,
    pub(crate) slices: Lengths,
    pub(crate) runs: Lengths,
}

impl PickSums {
    pub(crate) fn add(&mut self, pick: &Counted) {
        let reason = pick.reason as usize;
        self.reasons[reason] += 1;
        self.in_spite[reason] += u64::from(pick.in_spite);
        self.shorter[reason] += u64::from(pick.in_spite && pick.is_shorter);
        // Without a rival a lag is zero, and shows nothing.
        if let Some(lag) = pick.lag_ns.filter(|_| pick.is_contested()) {
            self.lag.add(lag);
        }
        if let Some(late) = pick.late {
            self.late.add(late);
        }
        if let Some(slice) = pick.slice {
            self.slices.add(slice);
        }
    }

    /// The number of picks.
    pub(crate) fn picks(&self) -> u64 {
        self.reasons.iter().sum()
    }
}

/// The rows of the table.
pub(crate) type PickTable = BoundedRows<RowKey, PickSums>;

//! The sums of the tables.

use crate::Options;
use crate::reason::Reason;
use crate::signed::Signed;
use membership::{TaskGroup, TasksBy};
use sched::kthread::command;
use sched::limits::BoundedRows;
use sched::state::Task;
use sched::{Comm, Cpu, Dur, Lengths, Pid, SchedState, TaskRef, Ts};
use serde::Serialize;

/// The subject of each row of the table
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PicksBy {
    /// A row for each command name; the kernel's threads for each CPU have one, as ksoftirqd/N
    #[default]
    Command,
    /// A row for each task
    Task,
    /// A row for each process, by the command of its first thread
    Process,
    /// A row for each cgroup
    Cgroup,
    /// A row for each set of scheduling parameters: the policy with the nice value or the priority
    Params,
    /// A row for each CPU
    Cpu,
}

/// The key of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum PickKey {
    Command(Comm),
    Task(Pid, Comm),
    Cpu(Cpu),
    Group(TaskGroup),
    /// The tasks beyond the number of rows.
    Rest,
}

impl PicksBy {
    /// The rule of the groups that must be learned before the pass; nothing where the rows need none.
    pub(crate) fn rule(self) -> Option<TasksBy> {
        match self {
            PicksBy::Process => Some(TasksBy::Process),
            PicksBy::Cgroup => Some(TasksBy::Cgroup),
            PicksBy::Params => Some(TasksBy::Params),
            PicksBy::Command | PicksBy::Task | PicksBy::Cpu => None,
        }
    }
}

impl Options<'_> {
    /// The row of a task on a CPU, in the present state.
    pub(crate) fn key(&self, task: &Task, cpu: Cpu, state: &SchedState) -> PickKey {
        match self.by {
            PicksBy::Command => PickKey::Command(command(task.comm)),
            PicksBy::Task => PickKey::Task(task.pid, task.comm),
            PicksBy::Cpu => PickKey::Cpu(cpu),
            PicksBy::Process | PicksBy::Cgroup | PicksBy::Params => {
                let group = |groups: &membership::TaskGroups| groups.group(task, state.now());
                PickKey::Group(self.row_groups.as_deref().map_or(TaskGroup::Unknown, group))
            }
        }
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
    pub(crate) row: PickKey,
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
    pub(crate) fn of(at: Ts, cpu: Cpu, task: TaskRef, row: PickKey) -> Counted {
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
pub(crate) type PickTable = BoundedRows<PickKey, PickSums>;

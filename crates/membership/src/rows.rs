//! The rows of tables about tasks or CPUs.

use crate::{GroupLabel, TaskGroup, TaskGroups, TasksBy};
use sched::kthread::command;
use sched::{Comm, Cpu, Pid};
use serde::Serialize;

/// The subject of each row of the tables
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RowsBy {
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
pub enum RowKey {
    /// The tasks of this name.
    Command(Comm),
    /// The task with this PID, under this name.
    Task(Pid, Comm),
    /// The tasks on this CPU.
    Cpu(Cpu),
    /// The tasks of this group.
    Group(TaskGroup),
    /// The tasks beyond the number of rows.
    Rest,
}

impl RowsBy {
    /// Returns the rule of the groups that must be learned before the pass; nothing where the rows need none.
    pub fn groups(self) -> Option<TasksBy> {
        match self {
            RowsBy::Process => Some(TasksBy::Process),
            RowsBy::Cgroup => Some(TasksBy::Cgroup),
            RowsBy::Params => Some(TasksBy::Params),
            RowsBy::Command | RowsBy::Task | RowsBy::Cpu => None,
        }
    }

    /// Returns the row of a task on a CPU. `group` is called where rows are groups.
    pub fn key(self, (pid, comm): (Pid, Comm), cpu: Cpu, group: impl FnOnce() -> TaskGroup) -> RowKey {
        match self {
            RowsBy::Command => RowKey::Command(command(comm)),
            RowsBy::Task => RowKey::Task(pid, comm),
            RowsBy::Cpu => RowKey::Cpu(cpu),
            RowsBy::Process | RowsBy::Cgroup | RowsBy::Params => RowKey::Group(group()),
        }
    }
}

impl RowKey {
    /// Returns what the row is about: the PID, the CPU, the command, and the name of the group.
    pub fn subject(self, groups: Option<&TaskGroups>) -> (Option<Pid>, Option<Cpu>, Option<Comm>, Option<GroupLabel>) {
        match self {
            RowKey::Command(command) => (None, None, Some(command), None),
            RowKey::Task(pid, command) => (Some(pid), None, Some(command), None),
            RowKey::Cpu(cpu) => (None, Some(cpu), None, None),
            RowKey::Group(group) => (None, None, None, groups.and_then(|groups| groups.label(group))),
            RowKey::Rest => (None, None, Some(Comm::new(b"(others)")), None),
        }
    }
}

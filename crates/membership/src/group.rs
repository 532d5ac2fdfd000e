//! The groups of tasks that rows of reports are about.

use crate::stacks::BETWEEN_FUNCTIONS;
use crate::{CgroupIndex, StackIndex, TaskParams};
use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use sched::kthread::command;
use sched::state::Task;
use sched::{Comm, Pid};
use serde::Serialize;

/// The rule by which tasks form the rows of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum TasksBy {
    /// A row for each command: names that differ in a number or a random part alone share one
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
    /// A row for each stack with which tasks left their CPUs: the place at which they slept or gave way
    Stack,
}

impl TasksBy {
    /// Returns a parser of the rules that also divide the time for which tasks run: a stack is that of a task off its CPU.
    pub fn of_running() -> impl TypedValueParser<Value = TasksBy> {
        let names = TasksBy::value_variants().iter().filter(|by| **by != TasksBy::Stack);
        PossibleValuesParser::new(names.filter_map(TasksBy::to_possible_value))
            .try_map(|name| TasksBy::from_str(&name, false))
    }

    /// The name of the groups, in the plural.
    pub fn plural(self) -> &'static str {
        match self {
            TasksBy::Command => "commands",
            TasksBy::Task => "tasks",
            TasksBy::Process => "processes",
            TasksBy::Cgroup => "cgroups",
            TasksBy::Params => "scheduling parameters",
            TasksBy::Stack => "stacks",
        }
    }
}

/// A group of tasks, the key of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TaskGroup {
    /// The task with this PID.
    Task(Pid),
    /// The tasks of this command: a name, a stem of names, or the command of a kernel thread.
    Command(Comm),
    /// The process with this leader.
    Process(Pid),
    /// The tasks of this cgroup.
    Cgroup(CgroupIndex),
    /// The tasks with these scheduling parameters.
    Params(TaskParams),
    /// The runs that began with the first of these scheduling parameters and ended with the second, where no event shows the change.
    ParamsWithin(TaskParams, TaskParams),
    /// The runs that began in the first of these cgroups and ended in the second, where no event shows the move.
    CgroupsWithin(CgroupIndex, CgroupIndex),
    /// The tasks that left their CPUs with this stack.
    Stack(StackIndex),
    /// The tasks on a CPU, where rows are stacks.
    OnCpu,
    /// The threads of the kernel, where rows are cgroups.
    Kernel,
    /// The tasks whose group is unknown.
    Unknown,
    /// The tasks beyond the maximum number of rows.
    Rest,
}

/// The name of a group of tasks, where the rows of a report are processes, cgroups, scheduling parameters or stacks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GroupLabel {
    /// The path of the cgroup, the command of the process, the policy with the nice value or the priority, or the kind of the stack with its
    /// functions; two of these with `or` for runs that began in the one and ended in the other, where no event shows the change;
    /// `kernel threads`, `on a CPU` and `(others)` of rows that join tasks; null for the row of the tasks whose group is unknown.
    pub name: Option<String>,
    /// The PID of the first thread of the process, where the row is a process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<Pid>,
    /// The scheduling parameters, where the row is of tasks that share them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub params: Option<TaskParams>,
    /// The functions of the stack in the kernel, the innermost first, where the row is a stack; an address where the trace has no name for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stack: Option<Vec<String>>,
    /// The rule of the rows.
    #[serde(skip)]
    pub by: TasksBy,
}

impl GroupLabel {
    /// The name in tables: of a stack the kind and the inner functions.
    pub fn shown(&self) -> String {
        match (&self.name, self.process) {
            (Some(name), _) if self.stack.is_some() => inner_part(name),
            (Some(name), Some(leader)) => format!("{name} ({})", leader.0),
            (None, Some(leader)) => leader.named(Comm::EMPTY),
            (Some(name), None) => name.clone(),
            (None, None) => match self.by {
                TasksBy::Process => "unknown process".to_owned(),
                TasksBy::Cgroup => "unknown cgroup".to_owned(),
                TasksBy::Stack => "no stack".to_owned(),
                _ => "unknown parameters".to_owned(),
            },
        }
    }
}

/// The number of functions of a stack in tables.
const SHOWN_FUNCTIONS: usize = 4;

/// The inner functions of the name of a stack.
fn inner_part(name: &str) -> String {
    match name.match_indices(BETWEEN_FUNCTIONS).nth(SHOWN_FUNCTIONS - 1) {
        Some((end, _)) => format!("{}{BETWEEN_FUNCTIONS}…", &name[..end]),
        None => name.to_owned(),
    }
}

/// The names of the tasks of a row: the latest one, and whether there were several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowNames {
    latest: Option<Comm>,
    are_several: bool,
}

impl RowNames {
    /// A task of this name comes to the row.
    pub fn call(&mut self, name: Comm) {
        self.are_several |= self.latest.is_some_and(|known| known != name);
        self.latest = Some(name);
    }

    /// Adds the names of another row, which becomes a part of this one.
    pub fn join(&mut self, later: RowNames) {
        self.are_several |= later.are_several;
        later.latest.into_iter().for_each(|name| self.call(name));
    }
}

/// The tasks that a row is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskRow {
    /// The PID of the task, where the rows are tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<Pid>,
    /// The command name, where the rows are tasks or commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Comm>,
    /// The process, the cgroup, the scheduling parameters or the stack of the tasks, where the rows are these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<GroupLabel>,
}

impl TaskRow {
    /// The row of a group of tasks with these names. A stem with one name is shown as that name.
    pub(crate) fn new(group: TaskGroup, names: RowNames, label: Option<GroupLabel>) -> TaskRow {
        let name = names.latest.unwrap_or_default();
        let command = match group {
            _ if label.is_some() => None,
            TaskGroup::Command(stem) if names.are_several => Some(stem),
            TaskGroup::Command(_) => Some(command(name)),
            _ => Some(name),
        };
        let pid = if let TaskGroup::Task(pid) = group { Some(pid) } else { None };
        TaskRow { pid, command, group: label }
    }

    /// The name in tables.
    pub fn shown(&self) -> String {
        let command = self.command.unwrap_or_default();
        match (&self.group, self.pid) {
            (Some(group), _) => group.shown(),
            (None, Some(pid)) => pid.named(command),
            (None, None) if command.is_empty() => "unnamed tasks".to_owned(),
            (None, None) => command.to_string(),
        }
    }
}

/// The properties of a task that decide its group at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupedTask {
    /// The PID of the task.
    pub pid: Pid,
    /// The command name of the task; empty if it is unknown.
    pub comm: Comm,
    /// The kernel priority of the task, if an event has shown it.
    pub prio: Option<i32>,
    /// Whether the task is a thread of the kernel.
    pub is_kernel: bool,
}

impl From<&Task> for GroupedTask {
    fn from(task: &Task) -> GroupedTask {
        let is_kernel = task.kin.is_of_kernel(task.comm);
        GroupedTask { pid: task.pid, comm: task.comm, prio: task.known_prio(), is_kernel }
    }
}

impl GroupedTask {
    /// The command of a thread of the kernel.
    pub(crate) fn kernel_command(&self) -> TaskGroup {
        TaskGroup::Command(command(self.comm))
    }
}

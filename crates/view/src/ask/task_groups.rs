//! The groups of the tasks of a trace, by which the page colours, filters and lists them.

use serde_json::{Value, json};

/// A group of tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageGroup {
    /// The name of the group: the path of a cgroup, a process with the PID of its first thread, or a command.
    pub name: String,
    /// The place of its colour in the palette, the one that `dat2graph` gives it; nothing for a rule that decides no colour.
    pub place: Option<usize>,
}

/// The groups of the tasks by one rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageGroups {
    /// The groups, in the order in which tasks come to them.
    pub groups: Vec<PageGroup>,
    /// The group of each task by its place among `groups`, in the order of the tasks of the trace; nothing where it is unknown.
    pub of: Vec<Option<usize>>,
}

/// The groups of the tasks of a trace by every rule of the page. Each task is in the group that it has at the end of the trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskGroupings {
    /// The groups by command: names that differ in a number or a random part alone share one.
    pub commands: PageGroups,
    /// The groups by process.
    pub processes: PageGroups,
    /// The groups by cgroup.
    pub cgroups: PageGroups,
}

impl PageGroups {
    fn answer(&self) -> Value {
        let group = |group: &PageGroup| json!({ "name": group.name, "place": group.place });
        json!({ "groups": self.groups.iter().map(group).collect::<Vec<_>>(), "of": self.of })
    }
}

impl TaskGroupings {
    /// The answer to the page.
    pub(crate) fn answer(&self) -> Value {
        json!({
            "command": self.commands.answer(),
            "process": self.processes.answer(),
            "cgroup": self.cgroups.answer(),
        })
    }
}

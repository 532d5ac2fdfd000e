//! The filter of the page: tasks by parts of their names, by PIDs and by groups. `passes` in `palette.js` has the same rule.

use crate::ask::task_groups::{PageGroups, TaskGroupings};
use crate::columns::lane::Id;
use crate::columns::tasks::{TaskEntry, Tasks};
use sched::Pid;

/// The maximum number of bytes of a filter.
const MOST: usize = 800;

/// A filter: a task passes if it passes one of the parts, or if there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PageFilter {
    parts: Vec<FilterPart>,
}

/// A part of a filter, in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
enum FilterPart {
    /// The tasks that a text means.
    Meant(String),
    /// The tasks of groups: a part of the name, or all of it.
    Group { rule: Rule, name: String, is_whole: bool },
}

/// A rule by which tasks form groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    Command,
    Process,
    Cgroup,
}

impl Rule {
    /// The rules with the words that begin a part.
    const ALL: [(&'static str, Rule); 3] =
        [("command", Rule::Command), ("process", Rule::Process), ("cgroup", Rule::Cgroup)];

    fn word(self) -> &'static str {
        Rule::ALL.iter().find(|(_, rule)| *rule == self).map_or("", |(word, _)| word)
    }

    fn of(self, groups: &TaskGroupings) -> &PageGroups {
        match self {
            Rule::Command => &groups.commands,
            Rule::Process => &groups.processes,
            Rule::Cgroup => &groups.cgroups,
        }
    }
}

impl PageFilter {
    /// The rule for a filter.
    pub(crate) const RULE: &str = "filter is a text of at most 800 bytes";

    /// The filter of a text; nothing if the text is too long.
    pub(crate) fn of(text: &str) -> Option<PageFilter> {
        let parts = text.split(',').map(|part| part.trim().to_lowercase()).filter(|part| !part.is_empty());
        (text.len() <= MOST).then(|| PageFilter { parts: parts.map(FilterPart::of).collect() })
    }

    /// Whether every task passes.
    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Whether a part asks for groups, which have to be learned.
    pub(crate) fn needs_groups(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, FilterPart::Group { .. }))
    }

    /// The tasks that pass, of those of a trace.
    pub(crate) fn chosen(&self, tasks: &Tasks, groups: &TaskGroupings) -> ChosenTasks {
        let passes = |(place, task): (usize, &TaskEntry)| self.parts.iter().any(|part| part.has(place, task, groups));
        let of: Vec<bool> = tasks.list().iter().enumerate().map(passes).collect();
        ChosenTasks { number: of.iter().filter(|is| **is).count(), of }
    }
}

impl FilterPart {
    fn of(text: String) -> FilterPart {
        let group =
            Rule::ALL.into_iter().find_map(|(word, rule)| Some((rule, text.strip_prefix(word)?.strip_prefix(':')?)));
        match group.map(|(rule, name)| (rule, name.trim())) {
            None => FilterPart::Meant(text),
            Some((rule, name)) => {
                let whole = name.strip_prefix('=').map(str::trim);
                FilterPart::Group { rule, name: whole.unwrap_or(name).to_owned(), is_whole: whole.is_some() }
            }
        }
    }

    /// Whether the task of a place passes.
    fn has(&self, place: usize, task: &TaskEntry, groups: &TaskGroupings) -> bool {
        match self {
            FilterPart::Meant(text) => is_meant(task, text),
            FilterPart::Group { rule, name, is_whole } => {
                let groups = rule.of(groups);
                let group = groups.of.get(place).copied().flatten().and_then(|group| groups.groups.get(group));
                let known = group.map_or_else(|| format!("unknown {}", rule.word()), |group| group.name.to_lowercase());
                if *is_whole { known == *name } else { known.contains(name) }
            }
        }
    }
}

/// Whether a task is meant by a text in lower case: a part of its name, its PID, or, with a blank, a part of its label
/// such as `hackbench 345`.
pub(crate) fn is_meant(task: &TaskEntry, sought: &str) -> bool {
    let (pid, comm) = (task.pid.to_string(), task.comm.to_string().to_lowercase());
    pid == sought || comm.contains(sought) || sought.contains(' ') && format!("{comm} {pid}").contains(sought)
}

/// The tasks that pass a filter.
#[derive(Clone, Debug)]
pub(crate) struct ChosenTasks {
    /// Whether the task of each place passes.
    of: Vec<bool>,
    /// The number of those that pass.
    pub(crate) number: usize,
}

impl ChosenTasks {
    /// Whether the task of a place passes. Tasks without a place of their own do not.
    pub(crate) fn has_place(&self, place: Id) -> bool {
        self.of.get(place as usize).is_some_and(|passes| *passes)
    }

    /// The PIDs of the tasks that pass, ascending.
    pub(crate) fn pids(&self, tasks: &Tasks) -> Vec<Pid> {
        let chosen = tasks.list().iter().zip(&self.of).filter(|(_, passes)| **passes);
        let mut pids: Vec<Pid> = chosen.map(|(task, _)| task.pid).collect();
        pids.sort_unstable();
        pids
    }

    /// Whether a task passes, by its PID.
    pub(crate) fn has(&self, tasks: &Tasks, pid: Pid) -> bool {
        self.has_place(tasks.place(pid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ask::task_groups::PageGroup;
    use sched::Comm;

    /// The PIDs that pass a filter.
    fn passing(filter: &str) -> Vec<i32> {
        let mut tasks = Tasks::default();
        for (pid, comm) in [(345, "Hackbench"), (34, "kworker/3:4"), (7, "")] {
            let comm = Comm::new(comm.as_bytes());
            tasks.add(TaskEntry { pid: Pid(pid), comm, run_ns: 0, home: None, parent: None, application: false });
        }
        let group = |name: &str| PageGroup { name: name.to_owned(), place: None };
        let groups = |names: &[&str], of: [Option<usize>; 3]| PageGroups {
            groups: names.iter().map(|name| group(name)).collect(),
            of: of.to_vec(),
        };
        let groups = TaskGroupings {
            commands: PageGroups::default(),
            processes: groups(&["Hackbench 345"], [Some(0), None, Some(0)]),
            cgroups: groups(&["/a", "/a/b"], [Some(1), Some(0), None]),
        };
        let filter = PageFilter::of(filter).expect("a filter");
        let chosen = filter.chosen(&tasks, &groups);
        let all: Vec<i32> =
            tasks.list().iter().map(|task| task.pid.0).filter(|pid| chosen.has(&tasks, Pid(*pid))).collect();
        assert_eq!(all.len(), chosen.number);
        all
    }

    #[test]
    fn a_task_passes_by_its_name_its_pid_its_label_and_its_group() {
        for (filter, expected) in [
            ("hack", &[345][..]),
            ("34", &[34]),
            ("HACKBENCH 34", &[345]),
            ("kworker, 7", &[34, 7]),
            ("cgroup:/a", &[345, 34]),
            ("cgroup:=/A", &[34]),
            ("cgroup:unknown", &[7]),
            ("process: = hackbench 345", &[345, 7]),
            ("command:x", &[]),
            ("nothing", &[]),
        ] {
            assert_eq!(passing(filter), expected, "{filter}");
        }
        assert!(PageFilter::of(" , ").is_some_and(|filter| filter.is_empty()));
        assert!(PageFilter::of(&"x".repeat(MOST + 1)).is_none());
        let needs = |filter: &str| PageFilter::of(filter).is_some_and(|filter| filter.needs_groups());
        assert!(needs("a,cgroup:b") && !needs("cgroup") && !needs("a:b"));
    }
}

//! The groups of all tasks over the time of a trace.

use crate::stacks::GroupStack;
use crate::{
    CgroupIndex, Cgroups, GroupLabel, GroupedTask, ParamsHistory, Processes, RowNames, StackHistory, TaskGroup,
    TaskParams, TaskRow, TasksBy, stemmed,
};
use machine::Machine;
use parse::Trace;
use sched::event::CleanText;
use sched::names::NameHistory;
use sched::seeded::SeededMap;
use sched::{Comm, Pid, Ts};
use std::collections::BTreeMap;

/// The group of each task at any instant, by one rule, learned from the whole trace and the machine file before a pass.
///
/// The group of a task is a function of its PID, its name, its priority and the instant. It depends neither on the window nor on
/// the events that an analysis has seen, so that pieces of a pass and adjacent windows agree.
#[derive(Clone, Debug, Default)]
pub struct TaskGroups {
    by: TasksBy,
    cgroups: Cgroups,
    /// The cgroup of each PID from an instant on, in the order of time.
    cgroup_of: SeededMap<Pid, Vec<(Ts, Option<CgroupIndex>)>>,
    processes: Processes,
    params: ParamsHistory,
    stacks: StackHistory,
    /// The names of tasks, for the leaders of processes, and the instant at which their names are looked up.
    names: (NameHistory, Ts),
}

impl TaskGroups {
    /// Learns the groups of a trace by a rule. `names` are called if they are needed: the names of tasks, of which each process has the
    /// one that its leader has at `to`. Stacks are not learned here: see [`TaskGroups::of_stacks`].
    pub fn of<E>(
        by: TasksBy,
        trace: &Trace,
        machine: Option<&Machine>,
        to: Ts,
        names: impl FnOnce() -> Result<NameHistory, E>,
    ) -> Result<TaskGroups, E> {
        let mut groups = TaskGroups { by, ..TaskGroups::default() };
        if matches!(by, TasksBy::Process | TasksBy::Cgroup) {
            groups.processes = Processes::of(trace, machine);
        }
        match by {
            TasksBy::Task | TasksBy::Command | TasksBy::Stack => {}
            TasksBy::Process => groups.names = (names()?, to),
            TasksBy::Cgroup => return Ok(TaskGroups::of_cgroups(Cgroups::of(trace, machine, &groups.processes))),
            TasksBy::Params => groups.params = ParamsHistory::of(trace, machine),
        }
        Ok(groups)
    }

    /// The groups by these cgroups.
    pub fn of_cgroups(cgroups: Cgroups) -> TaskGroups {
        let mut cgroup_of: SeededMap<Pid, Vec<(Ts, Option<CgroupIndex>)>> = SeededMap::default();
        for change in cgroups.changes() {
            cgroup_of.entry(change.pid).or_default().push((change.ts, change.cgroup));
        }
        TaskGroups { by: TasksBy::Cgroup, cgroups, cgroup_of, ..TaskGroups::default() }
    }

    /// The groups by scheduling parameters, with these policies.
    pub fn of_params(params: ParamsHistory) -> TaskGroups {
        TaskGroups { by: TasksBy::Params, params, ..TaskGroups::default() }
    }

    /// The groups by the stacks with which tasks left their CPUs.
    pub fn of_stacks(stacks: StackHistory) -> TaskGroups {
        TaskGroups { by: TasksBy::Stack, stacks, ..TaskGroups::default() }
    }

    /// The rule by which tasks form groups.
    pub fn by(&self) -> TasksBy {
        self.by
    }

    /// Whether any group is known that the events of a pass do not show: a process, a cgroup, a policy, or a stack.
    pub fn are_known(&self) -> bool {
        match self.by {
            TasksBy::Task | TasksBy::Command => true,
            TasksBy::Process => self.processes.are_known(),
            TasksBy::Cgroup => !self.cgroup_of.is_empty(),
            TasksBy::Params => self.params.are_known(),
            TasksBy::Stack => !self.stacks.is_empty(),
        }
    }

    /// Whether the number and the name of a task, and whether it is a thread of the kernel, decide its group at any instant.
    pub fn are_fixed(&self) -> bool {
        matches!(self.by, TasksBy::Task | TasksBy::Command)
    }

    /// Returns the group of a task at an instant.
    pub fn group(&self, task: impl Into<GroupedTask>, ts: Ts) -> TaskGroup {
        let task = task.into();
        match self.by {
            TasksBy::Task => TaskGroup::Task(task.pid),
            TasksBy::Command | TasksBy::Process if task.is_kernel => task.kernel_command(),
            TasksBy::Command => TaskGroup::Command(stemmed(task.comm)),
            TasksBy::Process => self.processes.leader(task.pid, ts).map_or(TaskGroup::Unknown, TaskGroup::Process),
            TasksBy::Cgroup if task.is_kernel => TaskGroup::Kernel,
            TasksBy::Cgroup => match self.cgroups.of_unsettled_run(task.pid, ts) {
                Some((before, after)) => TaskGroup::CgroupsWithin(before, after),
                None => self.cgroup(task.pid, ts).map_or(TaskGroup::Unknown, TaskGroup::Cgroup),
            },
            TasksBy::Params => match self.params.of_unsettled_run(task.pid, ts) {
                Some((before, after)) => TaskGroup::ParamsWithin(before, after),
                None => self.params.of_task(task.pid, task.prio, ts).map_or(TaskGroup::Unknown, TaskGroup::Params),
            },
            TasksBy::Stack => self.stacks.of(task.pid, ts).map_or(TaskGroup::Unknown, TaskGroup::Stack),
        }
    }

    /// The cgroup of a task at an instant; nothing where it is unknown.
    pub fn cgroup(&self, pid: Pid, ts: Ts) -> Option<CgroupIndex> {
        let changes = self.cgroup_of.get(&pid)?;
        let passed = changes.partition_point(|(at, _)| *at <= ts);
        changes.get(passed.checked_sub(1)?)?.1
    }

    /// The scheduling parameters of a task at an instant, where the groups are by these; nothing where they are unknown.
    pub fn params(&self, task: impl Into<GroupedTask>, ts: Ts) -> Option<TaskParams> {
        let task = task.into();
        self.params.of_task(task.pid, task.prio, ts)
    }

    /// The paths of all cgroups, in the order of their indices.
    pub fn cgroup_names(&self) -> &[CleanText] {
        self.cgroups.names()
    }

    /// Divides the time of a task from `start` to `end` by the groups that it belongs to meanwhile, in the order of time.
    pub fn divide(&self, task: &GroupedTask, start: Ts, end: Ts, mut take: impl FnMut(TaskGroup, Ts, Ts)) {
        let mut from = start;
        while from < end {
            let next = self.next_change(task.pid, from).filter(|next| *next < end).unwrap_or(end);
            take(self.group(*task, from), from, next);
            from = next;
        }
    }

    /// The first instant after `ts` at which the group of a task may change by a record.
    pub(crate) fn next_change(&self, pid: Pid, ts: Ts) -> Option<Ts> {
        match self.by {
            TasksBy::Task | TasksBy::Command => None,
            TasksBy::Process => self.processes.next_change(pid, ts),
            TasksBy::Cgroup => {
                let changes = self.cgroup_of.get(&pid)?;
                let next = changes.get(changes.partition_point(|(at, _)| *at <= ts)).map(|(at, _)| *at);
                [next, self.cgroups.next_unsettled(pid, ts)].into_iter().flatten().min()
            }
            TasksBy::Params => self.params.next_change(pid, ts),
            TasksBy::Stack => self.stacks.next_change(pid, ts),
        }
    }

    /// Returns the tasks that a row is about, by its group and the names of the tasks that came to it.
    pub fn row(&self, group: TaskGroup, names: RowNames) -> TaskRow {
        TaskRow::new(group, names, self.label(group))
    }

    /// Returns the same as [`TaskGroups::row`], where a process has the name that its leader has at `at`: the end of a window, if these are
    /// the groups of a whole trace.
    pub fn row_at(&self, group: TaskGroup, names: RowNames, at: Ts) -> TaskRow {
        TaskRow::new(group, names, self.label_at(group, at))
    }

    /// The name of a group in reports; nothing for a task or a command, which have a PID and a name of their own.
    pub fn label(&self, group: TaskGroup) -> Option<GroupLabel> {
        self.label_at(group, self.names.1)
    }

    /// The name of a group in reports, as [`TaskGroups::row_at`] has that of a process.
    fn label_at(&self, group: TaskGroup, at: Ts) -> Option<GroupLabel> {
        let by = self.by;
        let named = |name: String| GroupLabel { name: Some(name), process: None, params: None, stack: None, by };
        Some(match group {
            TaskGroup::Task(_) => return None,
            // A thread of the kernel among processes.
            TaskGroup::Command(comm) if self.by == TasksBy::Process => named(comm.to_string()),
            TaskGroup::Command(_) => return None,
            TaskGroup::Process(leader) => {
                let name = self.names.0.of(leader, at).map(|comm| comm.to_string());
                GroupLabel { name, process: Some(leader), params: None, stack: None, by }
            }
            TaskGroup::Cgroup(cgroup) => named(self.cgroups.name(cgroup).to_owned()),
            TaskGroup::Params(params) => GroupLabel { params: Some(params), ..named(params.to_string()) },
            TaskGroup::ParamsWithin(before, after) => named(format!("{before} or {after}")),
            TaskGroup::CgroupsWithin(before, after) => {
                named(format!("{} or {}", self.cgroups.name(before), self.cgroups.name(after)))
            }
            TaskGroup::Kernel => named("kernel threads".to_owned()),
            TaskGroup::Stack(stack) => {
                let stack = self.stacks.stack(stack);
                let functions = stack.map(|stack| stack.functions.clone()).unwrap_or_default();
                GroupLabel { stack: Some(functions), ..named(stack.map_or(String::new(), GroupStack::name)) }
            }
            TaskGroup::OnCpu => named("on a CPU".to_owned()),
            TaskGroup::Unknown => GroupLabel { name: None, process: None, params: None, stack: None, by },
            TaskGroup::Rest => named("(others)".to_owned()),
        })
    }
}

/// Joins the rows of commands whose names have a part of at least six letters in the place of the random part of others with the row
/// of these. Each row stays where its stem has the first place.
pub fn join_random<T>(rows: Vec<(TaskGroup, T)>, mut join: impl FnMut(&mut T, T)) -> Vec<(TaskGroup, T)> {
    let prefix = |group: &TaskGroup| match group {
        TaskGroup::Command(comm) => comm.to_string().strip_suffix('…').map(str::to_owned),
        _ => None,
    };
    let random: BTreeMap<String, TaskGroup> =
        rows.iter().filter_map(|(group, _)| Some((prefix(group)?, *group))).collect();
    if random.is_empty() {
        return rows;
    }
    let mut places: SeededMap<TaskGroup, usize> = SeededMap::default();
    let mut joined: Vec<(TaskGroup, T)> = Vec::with_capacity(rows.len());
    for (group, row) in rows {
        let group = match group {
            TaskGroup::Command(comm) => of_random(comm, &random).unwrap_or(group),
            group => group,
        };
        match places.get(&group) {
            Some(place) => join(&mut joined[*place].1, row),
            None => {
                places.insert(group, joined.len());
                joined.push((group, row));
            }
        }
    }
    joined
}

/// The stem with a random part to which a name of letters alone in that place belongs.
fn of_random(comm: Comm, random: &BTreeMap<String, TaskGroup>) -> Option<TaskGroup> {
    let name = comm.to_string();
    let cut = name.trim_end_matches(|c: char| c.is_ascii_lowercase() || c == 'N');
    let is_long = name.len() - cut.len() >= 6 && !cut.is_empty();
    random.get(cut).copied().filter(|_| is_long)
}

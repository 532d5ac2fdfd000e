//! The waiting in violation by groups of tasks, by CPU or by node.

use crate::ledger::Case;
use crate::longest::{Longest, longest};
use membership::{GroupLabel, GroupedTask, TaskGroup, TaskGroups, TasksBy, join_random};
use sched::limits::ROWS;
use sched::seeded::SeededMap;
use sched::topology::CpuOrder;
use sched::{Comm, Cpu, Dur, Pid, Task, Topology, Ts, kthread};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::sync::Arc;

/// The subject of a row.
#[derive(Clone, Debug)]
pub enum Grouping {
    /// A row for each task.
    Task,
    /// A command: all tasks of one name; a kernel thread that each CPU has counts as one.
    Command,
    /// The CPU of the run queue.
    Cpu,
    /// The node of the run queue.
    Node,
    /// A group of tasks: that of the task at the instant at which the wait, or the window, ends.
    Groups(Arc<TaskGroups>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum GroupKey {
    Task(Pid),
    Command(Comm),
    Cpu(Cpu),
    Node(Option<u32>),
    Group(TaskGroup),
    /// The groups that no longer fit.
    Rest,
}

/// A time on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OnCpu {
    /// The CPU that idled, or whose run queue held the task.
    pub cpu: Cpu,
    /// The time in nanoseconds.
    pub ns: u64,
}

/// The waits in violation of one task, group of tasks, CPU or node.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GroupRow {
    /// The task, where the rows are tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<Pid>,
    /// The command, where the rows are tasks or commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Comm>,
    /// The process, the cgroup, the scheduling parameters or the stack of the tasks, where the rows are these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<GroupLabel>,
    /// The CPU of the run queue, where the rows are CPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Cpu>,
    /// The node of the run queue, where the rows are nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<u32>,
    /// The number of waits with some time in violation.
    pub number: u64,
    /// The waiting in violation, in nanoseconds of tasks.
    pub total_ns: Dur,
    /// The share of that in the waiting in violation of all tasks, in percent.
    pub percent: f64,
    /// All waiting of the counted tasks of the group, in violation or not, in nanoseconds of tasks, where the rows are cgroups or
    /// scheduling parameters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waited_ns: Option<Dur>,
    /// The part of that waiting that is in violation, in percent: the rows of two weights show which waits beside idle CPUs more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of_waiting_percent: Option<f64>,
    /// The weight of the cgroup by the machine file: `cpu.weight`, or 0 where `cpu.idle` is set; null where the file has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<u64>,
    /// The wait with the longest time in violation; null where all of the row's waits were outside of one.
    pub longest: Option<Longest>,
    /// The CPUs of the run queues with the waiting in violation there, the longest first; at most eight.
    pub queued_on: Vec<OnCpu>,
    /// The CPUs that idled with an empty run queue during these waits, with their time in CPU·nanoseconds summed over
    /// the waits, the longest first; at most eight.
    pub idle_meanwhile: Vec<OnCpu>,
}

/// The maximum number of CPUs that a row lists.
const LISTED: usize = 8;
/// The maximum number of pairs of a group and a CPU.
const PAIRS: usize = 4 << 20;

#[derive(Clone, Debug)]
struct GroupSums {
    number: u64,
    total: u64,
    /// All waiting, where it is wanted.
    waited: u64,
    longest: Case,
    /// Whether its tasks had several names.
    has_several_names: bool,
    queued: SeededMap<Cpu, u64>,
    idle: SeededMap<Cpu, u64>,
}

/// Gathers the waits by group.
#[derive(Clone, Debug)]
pub(crate) struct Groups {
    grouping: Grouping,
    groups: SeededMap<GroupKey, GroupSums>,
    /// The readings of all CPUs' idle time in violation at the start of each open wait, and the task then, by the place of the task;
    /// absent of a wait that began in an earlier piece of a pass.
    readings: SeededMap<sched::TaskId, (GroupedTask, Vec<u64>)>,
    /// The idle time in violation of all CPUs in earlier pieces of a pass, which no reading has.
    before: Vec<u64>,
}

impl GroupSums {
    /// A group that this case is the first of.
    fn begin(case: Case) -> GroupSums {
        GroupSums {
            number: 0,
            total: 0,
            waited: 0,
            longest: case,
            has_several_names: false,
            queued: SeededMap::default(),
            idle: SeededMap::default(),
        }
    }

    fn keep_longest(&mut self, case: Case) {
        self.has_several_names |= self.longest.command != case.command;
        let rank = |case: &Case| (Reverse(case.violated), case.start, case.cpu, case.pid);
        if rank(&case) < rank(&self.longest) {
            self.longest = case;
        }
    }

    /// Adds the waits of the same group in a later piece of a pass, or of another group that is a part of this one.
    fn join(&mut self, later: GroupSums) {
        self.number += later.number;
        self.total = self.total.saturating_add(later.total);
        self.waited = self.waited.saturating_add(later.waited);
        self.has_several_names |= later.has_several_names;
        self.keep_longest(later.longest);
        let add = |sums: &mut SeededMap<Cpu, u64>, more: SeededMap<Cpu, u64>| {
            for (cpu, ns) in more {
                let sum = sums.entry(cpu).or_default();
                *sum = sum.saturating_add(ns);
            }
        };
        add(&mut self.queued, later.queued);
        add(&mut self.idle, later.idle);
    }
}

/// Adds the readings of CPUs to others.
fn add_readings(sums: &mut Vec<u64>, readings: &[u64]) {
    sums.resize(sums.len().max(readings.len()), 0);
    sums.iter_mut().zip(readings).for_each(|(sum, ns)| *sum = sum.saturating_add(*ns));
}

/// The maximum number of groups on a machine with this number of CPUs.
fn most_groups(cpus: usize) -> usize {
    (PAIRS / cpus.max(1)).clamp(64, ROWS)
}

impl Groups {
    pub(crate) fn new(grouping: Grouping) -> Groups {
        Groups { grouping, groups: SeededMap::default(), readings: SeededMap::default(), before: Vec::new() }
    }

    /// A counted wait begins at these readings.
    pub(crate) fn begin(&mut self, task: &Task, mut readings: Vec<u64>) {
        add_readings(&mut readings, &self.before);
        self.readings.insert(task.id(), (task.into(), readings));
    }

    /// Readings begin anew, behind these.
    pub(crate) fn turn(&mut self, readings: &[u64]) {
        add_readings(&mut self.before, readings);
    }

    /// Whether a later piece of a pass with this number of CPUs, and with `left` more waits, cannot make more groups than
    /// are kept.
    pub(crate) fn fits(&self, later: &Groups, cpus: usize, left: usize) -> bool {
        !later.groups.contains_key(&GroupKey::Rest)
            && self.groups.len() + later.groups.len() + left <= most_groups(cpus)
    }

    /// Adds the waits of a later piece of a pass whose readings began with the latest turn.
    pub(crate) fn join(&mut self, later: Groups) {
        for (key, sums) in later.groups {
            match self.groups.entry(key) {
                Entry::Occupied(group) => group.into_mut().join(sums),
                Entry::Vacant(place) => drop(place.insert(sums)),
            }
        }
        for (task, (of, mut readings)) in later.readings {
            add_readings(&mut readings, &self.before);
            self.readings.insert(task, (of, readings));
        }
    }

    /// Whether the waits without any time in violation count as well, in the whole waiting of each row.
    fn has_all_waiting(&self) -> bool {
        match &self.grouping {
            Grouping::Groups(groups) => matches!(groups.by(), TasksBy::Cgroup | TasksBy::Params),
            Grouping::Task | Grouping::Command | Grouping::Cpu | Grouping::Node => false,
        }
    }

    /// A counted wait ends at these readings.
    pub(crate) fn end(&mut self, task: sched::TaskId, case: Case, readings: &[u64], topology: &Topology) {
        let unknown = GroupedTask { pid: case.pid, comm: case.command, prio: None, is_kernel: false };
        let (queued, begun) = self.readings.remove(&task).unwrap_or((unknown, Vec::new()));
        if case.violated == 0 && !self.has_all_waiting() {
            return;
        }
        let mut key = match &self.grouping {
            Grouping::Task => GroupKey::Task(case.pid),
            Grouping::Command => GroupKey::Command(kthread::command(case.command)),
            Grouping::Cpu => GroupKey::Cpu(case.cpu),
            Grouping::Node => GroupKey::Node(topology.group(case.cpu, CpuOrder::Node)),
            Grouping::Groups(groups) => {
                let task = GroupedTask { pid: case.pid, comm: case.command, ..queued };
                GroupKey::Group(groups.group(task, case.end))
            }
        };
        if !self.groups.contains_key(&key) && self.groups.len() >= most_groups(readings.len().max(self.before.len())) {
            key = GroupKey::Rest;
        }
        let group = self.groups.entry(key).or_insert_with(|| GroupSums::begin(case));
        group.waited = group.waited.saturating_add(case.end.since(case.start).0);
        if case.violated == 0 {
            return;
        }
        group.number += 1;
        group.total = group.total.saturating_add(case.violated);
        group.keep_longest(case);
        let sum = group.queued.entry(case.cpu).or_default();
        *sum = sum.saturating_add(case.violated);
        let mut ends = readings.to_vec();
        add_readings(&mut ends, &self.before);
        for (cpu, now) in (0..).map(Cpu).zip(ends) {
            let ns = now.saturating_sub(begun.get(cpu.index()).copied().unwrap_or(0));
            if ns > 0 {
                let sum = group.idle.entry(cpu).or_default();
                *sum = sum.saturating_add(ns);
            }
        }
    }

    /// The rows, the one with the longest time first. `total`: the waiting in violation of all tasks.
    pub(crate) fn rows(self, total: u64, zero: Ts) -> Vec<GroupRow> {
        let top = |times: SeededMap<Cpu, u64>| {
            let mut times: Vec<OnCpu> = times.into_iter().map(|(cpu, ns)| OnCpu { cpu, ns }).collect();
            times.sort_by_key(|time| (Reverse(time.ns), time.cpu));
            times.truncate(LISTED);
            times
        };
        let has_all_waiting = self.has_all_waiting();
        // A task that is woken and runs at the same instant has not waited.
        let has_waited = |(_, group): &(GroupKey, GroupSums)| group.number > 0 || group.waited > 0;
        let mut groups: Vec<(GroupKey, GroupSums)> = self.groups.into_iter().filter(has_waited).collect();
        groups.sort_by_key(|(key, group)| (Reverse(group.total), *key));
        let learned = match &self.grouping {
            Grouping::Groups(groups) => Some(groups),
            _ => None,
        };
        if learned.is_some_and(|learned| learned.by() == TasksBy::Command) {
            groups = of_stems(groups);
            groups.sort_by_key(|(key, group)| (Reverse(group.total), *key));
        }
        let row = |(key, group): (GroupKey, GroupSums)| {
            let label = label(key, learned);
            let command = match key {
                GroupKey::Task(_) => Some(group.longest.command),
                GroupKey::Command(command) => Some(command),
                GroupKey::Group(TaskGroup::Command(_)) if label.is_some() => None,
                GroupKey::Group(TaskGroup::Command(stem)) if group.has_several_names => Some(stem),
                // A stem with one name is shown as that name.
                GroupKey::Group(TaskGroup::Command(_)) => Some(kthread::command(group.longest.command)),
                _ => None,
            };
            GroupRow {
                group: label,
                pid: if let GroupKey::Task(pid) = key { Some(pid) } else { None },
                command,
                cpu: if let GroupKey::Cpu(cpu) = key { Some(cpu) } else { None },
                node: if let GroupKey::Node(node) = key { node } else { None },
                number: group.number,
                total_ns: Dur(group.total),
                percent: 100.0 * group.total as f64 / (total as f64).max(1.0),
                waited_ns: has_all_waiting.then_some(Dur(group.waited)),
                of_waiting_percent: (has_all_waiting && group.waited > 0)
                    .then(|| 100.0 * group.total as f64 / group.waited as f64),
                weight: None,
                longest: (group.number > 0).then(|| longest(&group.longest, zero)),
                queued_on: top(group.queued),
                idle_meanwhile: top(group.idle),
            }
        };
        groups.into_iter().map(row).collect()
    }
}

/// The name of a group of tasks, where the rows are processes, cgroups or parameters.
fn label(key: GroupKey, groups: Option<&Arc<TaskGroups>>) -> Option<GroupLabel> {
    match key {
        GroupKey::Group(group) => groups?.label(group),
        _ => None,
    }
}

/// The commands, of which those whose names have letters alone in the place of a random part join the others.
fn of_stems(groups: Vec<(GroupKey, GroupSums)>) -> Vec<(GroupKey, GroupSums)> {
    let (of_groups, mut others): (Vec<_>, Vec<_>) =
        groups.into_iter().partition(|(key, _)| matches!(key, GroupKey::Group(_)));
    let rows = of_groups.into_iter().filter_map(|(key, sums)| match key {
        GroupKey::Group(group) => Some((group, sums)),
        _ => None,
    });
    let joined = join_random(rows.collect(), GroupSums::join);
    others.extend(joined.into_iter().map(|(group, sums)| (GroupKey::Group(group), sums)));
    others
}

//! The waiting in violation by task, command, CPU or node.

use crate::ledger::Case;
use crate::longest::{Longest, longest};
use sched::limits::ROWS;
use sched::seeded::SeededMap;
use sched::topology::CpuOrder;
use sched::{Comm, Cpu, Dur, Pid, Topology, Ts, kthread};
use serde::Serialize;
use std::cmp::Reverse;

/// The subject of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grouping {
    /// A row for each task.
    Task,
    /// A command: all tasks of one name; a kernel thread that each CPU has counts as one.
    Command,
    /// The CPU of the run queue.
    Cpu,
    /// The node of the run queue.
    Node,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum GroupKey {
    Task(Pid),
    Command(Comm),
    Cpu(Cpu),
    Node(Option<u32>),
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

/// The waits in violation of one task, command, CPU or node.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GroupRow {
    /// The task, where the rows are tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<Pid>,
    /// The command, where the rows are tasks or commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Comm>,
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
    /// The wait with the longest time in violation.
    pub longest: Longest,
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
    longest: Case,
    queued: SeededMap<Cpu, u64>,
    idle: SeededMap<Cpu, u64>,
}

/// Gathers the waits by group.
#[derive(Clone, Debug)]
pub(crate) struct Groups {
    grouping: Grouping,
    groups: SeededMap<GroupKey, GroupSums>,
    /// The readings of all CPUs' idle time in violation at the start of each open wait, by the place of the task.
    readings: SeededMap<sched::TaskId, Vec<u64>>,
}

impl Groups {
    pub(crate) fn new(grouping: Grouping) -> Groups {
        Groups { grouping, groups: SeededMap::default(), readings: SeededMap::default() }
    }

    /// A counted wait begins at these readings.
    pub(crate) fn begin(&mut self, task: sched::TaskId, readings: Vec<u64>) {
        self.readings.insert(task, readings);
    }

    /// A counted wait ends at these readings.
    pub(crate) fn end(&mut self, task: sched::TaskId, case: Case, readings: &[u64], topology: &Topology) {
        let begun = self.readings.remove(&task).unwrap_or_default();
        if case.violated == 0 {
            return;
        }
        let mut key = match self.grouping {
            Grouping::Task => GroupKey::Task(case.pid),
            Grouping::Command => GroupKey::Command(kthread::command(case.command)),
            Grouping::Cpu => GroupKey::Cpu(case.cpu),
            Grouping::Node => GroupKey::Node(topology.group(case.cpu, CpuOrder::Node)),
        };
        if !self.groups.contains_key(&key) && self.groups.len() >= (PAIRS / readings.len().max(1)).clamp(64, ROWS) {
            key = GroupKey::Rest;
        }
        let empty = || GroupSums {
            number: 0,
            total: 0,
            longest: case,
            queued: SeededMap::default(),
            idle: SeededMap::default(),
        };
        let group = self.groups.entry(key).or_insert_with(empty);
        group.number += 1;
        group.total = group.total.saturating_add(case.violated);
        let rank = |case: &Case| (Reverse(case.violated), case.start, case.cpu, case.pid);
        if rank(&case) < rank(&group.longest) {
            group.longest = case;
        }
        let sum = group.queued.entry(case.cpu).or_default();
        *sum = sum.saturating_add(case.violated);
        for (cpu, now) in (0..).map(Cpu).zip(readings) {
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
        let mut groups: Vec<(GroupKey, GroupSums)> = self.groups.into_iter().collect();
        groups.sort_by_key(|(key, group)| (Reverse(group.total), *key));
        let row = |(key, group): (GroupKey, GroupSums)| {
            let command = match key {
                GroupKey::Task(_) => Some(group.longest.command),
                GroupKey::Command(command) => Some(command),
                _ => None,
            };
            GroupRow {
                pid: if let GroupKey::Task(pid) = key { Some(pid) } else { None },
                command,
                cpu: if let GroupKey::Cpu(cpu) = key { Some(cpu) } else { None },
                node: if let GroupKey::Node(node) = key { node } else { None },
                number: group.number,
                total_ns: Dur(group.total),
                percent: 100.0 * group.total as f64 / (total as f64).max(1.0),
                longest: longest(&group.longest, zero),
                queued_on: top(group.queued),
                idle_meanwhile: top(group.idle),
            }
        };
        groups.into_iter().map(row).collect()
    }
}

//! The path by commands, processes, cgroups, scheduling parameters or stacks.

use crate::chain::SegmentKind;
use crate::report::{Path, Share, Times};
use membership::{GroupedTask, RowNames, TaskGroup, TaskGroups, TaskRow, TasksBy, join_random};
use sched::limits::keep_of_pid;
use sched::seeded::SeededMap;
use sched::{Analysis, Pid, QueuedTimes, SchedEvent, SchedState, Ts};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The path by groups of tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PathByGroup {
    /// The rule by which tasks form groups.
    pub by: TasksBy,
    /// The groups on the path, the one with the most time first. Their times sum to those of the path.
    pub rows: Vec<Share<TaskRow>>,
}

/// An analysis that collects the properties of tasks which decide their groups: the latest ones of each PID.
#[derive(Default)]
pub(crate) struct LatestTraits(SeededMap<Pid, GroupedTask>);

impl Analysis for LatestTraits {
    type Output = SeededMap<Pid, GroupedTask>;

    fn after(&mut self, _: &SchedEvent, state: &SchedState) {
        for (task, _) in state.turns() {
            keep_of_pid(&mut self.0, task.pid, task.into());
        }
    }

    fn finish(mut self, _: Ts, state: &SchedState) -> Self::Output {
        for task in state.living() {
            keep_of_pid(&mut self.0, task.pid, task.into());
        }
        self.0
    }
}

/// Returns the times on a path by groups. A segment is divided where its task comes to another group; its kinds of queued time are
/// those of the last part. A stack is that of a task off its CPU.
pub(crate) fn by_group(path: &Path, traits: &SeededMap<Pid, GroupedTask>, groups: &TaskGroups) -> PathByGroup {
    let mut found: BTreeMap<TaskGroup, GroupTimes> = BTreeMap::new();
    let none = || GroupTimes { times: path.times.none(), ..GroupTimes::default() };
    for segment in &path.path {
        let name = path.commands.get(&segment.pid).copied().unwrap_or_default();
        let unknown = GroupedTask { pid: segment.pid, comm: name, prio: None, is_kernel: false };
        let task = GroupedTask { comm: name, ..traits.get(&segment.pid).copied().unwrap_or(unknown) };
        let on_cpu =
            (groups.by() == TasksBy::Stack && segment.kind == SegmentKind::Running).then_some(TaskGroup::OnCpu);
        let mut last = on_cpu.unwrap_or_else(|| groups.group(task, segment.start_ns));
        groups.divide(&task, segment.start_ns, segment.end_ns, |group, start_ns, end_ns| {
            let group = on_cpu.unwrap_or(group);
            let part = crate::Segment { start_ns, end_ns, kinds: QueuedTimes::default(), ..*segment };
            found.entry(group).or_insert_with(none).times.add(&part);
            last = group;
        });
        let sums = found.entry(last).or_insert_with(none);
        sums.times.add_kinds(&segment.kinds);
        sums.segments += 1;
        sums.names.call(name);
    }
    let rows: Vec<(TaskGroup, GroupTimes)> = found.into_iter().collect();
    let rows = if groups.by() == TasksBy::Command {
        join_random(rows, |sums: &mut GroupTimes, more| sums.join(&more))
    } else {
        rows
    };
    let share = |(group, sums): (TaskGroup, GroupTimes)| {
        let GroupTimes { segments, times, names } = sums;
        Share { of: groups.row(group, names), segments, times }
    };
    let mut rows: Vec<Share<TaskRow>> = rows.into_iter().map(share).collect();
    rows.sort_by_key(|row| Reverse(row.times.total()));
    PathByGroup { by: groups.by(), rows }
}

/// The times of a group.
#[derive(Clone, Copy, Debug, Default)]
struct GroupTimes {
    segments: u64,
    times: Times,
    names: RowNames,
}

impl GroupTimes {
    fn join(&mut self, more: &GroupTimes) {
        self.segments += more.segments;
        self.times.join(&more.times);
        self.names.join(more.names);
    }
}

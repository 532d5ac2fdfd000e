//! The sums of the tables: by way, and by group of tasks or CPU.

use crate::Options;
use crate::cpu::{Ending, Kind};
use membership::{GroupedTask, RowKey, TaskGroup};
use sched::limits::BoundedRows;
use sched::{Cpu, Dur, Lengths, SchedState, TaskRef};

impl Options<'_> {
    /// The row of a task on a CPU, in the present state.
    pub(crate) fn key(&self, task: TaskRef, cpu: Cpu, state: &SchedState) -> RowKey {
        self.by.key((task.pid, task.comm), cpu, || self.group(task, state))
    }

    fn group(&self, task: TaskRef, state: &SchedState) -> TaskGroup {
        let Some(groups) = &self.groups else { return TaskGroup::Unknown };
        let is_kernel = state.task_of(task.pid).is_some_and(|known| known.kin.is_of_kernel(task.comm));
        let task = GroupedTask { pid: task.pid, comm: task.comm, prio: Some(task.prio), is_kernel };
        groups.group(task, state.now())
    }
}

/// The least and the greatest times that requests can have taken.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bounds {
    pub(crate) at_least: Lengths,
    pub(crate) at_most: Lengths,
}

impl Bounds {
    fn add(&mut self, [least, most]: [Dur; 2]) {
        self.at_least.add(least);
        self.at_most.add(most);
    }
}

/// The requests by kind, by whether they were made immediate, and by ending.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ways([[[Bounds; Ending::ALL.len()]; 2]; Kind::ALL.len()]);

impl Ways {
    pub(crate) fn add(&mut self, kind: Kind, promoted: bool, ending: Ending, lengths: [Dur; 2]) {
        self.0[kind as usize][usize::from(promoted)][ending as usize].add(lengths);
    }

    /// The times of all requests that ended in a preemption.
    pub(crate) fn preempted(&self) -> Bounds {
        let mut all = Bounds::default();
        for (.., bounds) in self.each().filter(|(.., ending, _)| ending.is_preemption()) {
            all.at_least.merge(&bounds.at_least);
            all.at_most.merge(&bounds.at_most);
        }
        all
    }

    /// The ways that occur, in the order of kinds and endings.
    pub(crate) fn each(&self) -> impl Iterator<Item = (Kind, bool, Ending, &Bounds)> {
        let all = Kind::ALL.into_iter().zip(&self.0).flat_map(|(kind, by_promotion)| {
            [false, true].into_iter().zip(by_promotion).flat_map(move |(promoted, by_ending)| {
                Ending::ALL.into_iter().zip(by_ending).map(move |(ending, bounds)| (kind, promoted, ending, bounds))
            })
        });
        all.filter(|(.., bounds)| bounds.at_most.count() > 0)
    }
}

/// The sums of a row.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowSums {
    pub(crate) requests: u64,
    pub(crate) lazy: u64,
    pub(crate) preempted: u64,
    pub(crate) slept: u64,
    pub(crate) kept: u64,
    pub(crate) taken: Bounds,
    pub(crate) left: Lengths,
    pub(crate) waited: Lengths,
}

/// The rows of a table.
pub(crate) type RowTable = BoundedRows<RowKey, RowSums>;

impl RowSums {
    /// Adds a request that ended.
    pub(crate) fn add(&mut self, kind: Kind, ending: Ending, lengths: [Dur; 2]) {
        self.requests += 1;
        self.lazy += u64::from(kind == Kind::Lazy);
        self.preempted += u64::from(ending.is_preemption());
        self.slept += u64::from(matches!(ending, Ending::Slept | Ending::Exited));
        self.kept += u64::from(ending == Ending::Kept);
        self.taken.add(lengths);
    }
}

//! The sums of the tables: by way, and by command, task or CPU.

use crate::cpu::{Ending, Kind};
use sched::kthread::command;
use sched::limits::BoundedRows;
use sched::{Comm, Cpu, Dur, Lengths, Pid, TaskRef};
use serde::Serialize;

/// The subject of each row of the tables
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RowsOf {
    /// A row for each command name; the kernel's threads for each CPU have one, as ksoftirqd/N
    #[default]
    Command,
    /// A row for each task
    Task,
    /// A row for each CPU
    Cpu,
}

/// The key of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Key {
    Command(Comm),
    Task(Pid, Comm),
    Cpu(Cpu),
    /// The tasks beyond the number of rows.
    Rest,
}

impl RowsOf {
    /// The row of a task on a CPU.
    pub(crate) fn key(self, task: TaskRef, cpu: Cpu) -> Key {
        match self {
            RowsOf::Command => Key::Command(command(task.comm)),
            RowsOf::Task => Key::Task(task.pid, task.comm),
            RowsOf::Cpu => Key::Cpu(cpu),
        }
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
pub(crate) type RowTable = BoundedRows<Key, RowSums>;

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

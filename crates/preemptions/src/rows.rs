//! The sums of the tables: by way, and by command, task or CPU.

use crate::cpu::{Ending, Kind};
use sched::kthread::command;
use sched::limits::ROWS;
use sched::seeded::SeededMap;
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
#[derive(Clone, Debug)]
pub(crate) struct RowSums {
    pub(crate) key: Key,
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
#[derive(Clone, Debug, Default)]
pub(crate) struct RowTable {
    pub(crate) rows: Vec<RowSums>,
    places: SeededMap<Key, usize>,
}

impl RowTable {
    /// Returns the index of a row, which is made if it is new.
    pub(crate) fn row(&mut self, mut key: Key) -> usize {
        if self.rows.len() >= ROWS && !self.places.contains_key(&key) {
            key = Key::Rest;
        }
        let rows = &mut self.rows;
        *self.places.entry(key).or_insert_with(|| {
            rows.push(RowSums {
                key,
                requests: 0,
                lazy: 0,
                preempted: 0,
                slept: 0,
                kept: 0,
                taken: Bounds::default(),
                left: Lengths::default(),
                waited: Lengths::default(),
            });
            rows.len() - 1
        })
    }

    pub(crate) fn ended(&mut self, row: usize, kind: Kind, ending: Ending, lengths: [Dur; 2]) {
        let row = &mut self.rows[row];
        row.requests += 1;
        row.lazy += u64::from(kind == Kind::Lazy);
        row.preempted += u64::from(ending.is_preemption());
        row.slept += u64::from(matches!(ending, Ending::Slept | Ending::Exited));
        row.kept += u64::from(ending == Ending::Kept);
        row.taken.add(lengths);
    }

    pub(crate) fn left(&mut self, row: usize, left: Dur) {
        self.rows[row].left.add(left);
    }

    pub(crate) fn profited(&mut self, row: usize, waited: Dur) {
        self.rows[row].waited.add(waited);
    }
}

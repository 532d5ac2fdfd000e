//! The time in violation by column of a figure and by origin.
//!
//! A wait can last for many columns. At the end of each column the time that its violated part has grown by is noted;
//! when it ends, the notes go to its origin, or wait for the cause of the migration that is the origin.

use crate::category::{Category, IdleOrigin, WaitOrigin};
use crate::ledger::MoveKey;
use sched::seeded::SeededMap;
use sched::{Cause, Cpu, TaskId, Ts};

/// The number of columns.
pub(crate) const COLUMNS: u32 = 400;

/// Times in nanoseconds, each with its column.
pub(crate) type ColumnNotes = Vec<(u32, u64)>;

/// One origin over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// The key of the origin in JSON.
    pub began: &'static str,
    /// The cause of the migration that is the origin.
    pub cause: Option<Cause>,
    /// The origin for people.
    pub words: String,
    /// The time in violation in each column, in nanoseconds of tasks or of CPUs.
    pub columns: Vec<u64>,
}

/// Both sums over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverTime {
    /// The start of the first column.
    pub from: Ts,
    /// The end of the last column.
    pub to: Ts,
    /// The waiting in violation by origin, the longest first.
    pub waiting: Vec<Layer>,
    /// The idling in violation by origin, the longest first.
    pub idling: Vec<Layer>,
}

/// The columns of each origin.
#[derive(Clone, Debug)]
struct Grid<O> {
    layers: SeededMap<O, Vec<u64>>,
    parked: SeededMap<MoveKey, Vec<(O, ColumnNotes)>>,
}

impl<O> Default for Grid<O> {
    fn default() -> Grid<O> {
        Grid { layers: SeededMap::default(), parked: SeededMap::default() }
    }
}

impl<O: Category> Grid<O> {
    fn take(&mut self, (origin, key): (O, Option<MoveKey>), notes: ColumnNotes) {
        match key {
            _ if notes.is_empty() => {}
            Some(key) => self.parked.entry(key).or_default().push((origin, notes)),
            None => self.count(origin, &notes),
        }
    }

    fn count(&mut self, origin: O, notes: &ColumnNotes) {
        let layer = self.layers.entry(origin.without_distance()).or_insert_with(|| vec![0; COLUMNS as usize]);
        for (column, ns) in notes {
            let sum = &mut layer[(*column).min(COLUMNS - 1) as usize];
            *sum = sum.saturating_add(*ns);
        }
    }

    fn settle(&mut self, key: MoveKey, cause: Cause) {
        for (origin, notes) in self.parked.remove(&key).unwrap_or_default() {
            self.count(origin.caused_by(cause), &notes);
        }
    }

    /// Adds the columns of a later piece of a pass.
    fn join(&mut self, later: Grid<O>) {
        for (origin, columns) in later.layers {
            let layer = self.layers.entry(origin).or_insert_with(|| vec![0; COLUMNS as usize]);
            layer.iter_mut().zip(columns).for_each(|(sum, ns)| *sum = sum.saturating_add(ns));
        }
        for (key, cases) in later.parked {
            self.parked.entry(key).or_default().extend(cases);
        }
    }

    fn finish(mut self) -> Vec<Layer> {
        let open: Vec<MoveKey> = self.parked.keys().copied().collect();
        for key in open {
            self.settle(key, Cause::Unknown);
        }
        let mut layers: Vec<(O, Vec<u64>)> = self.layers.into_iter().collect();
        let total = |columns: &[u64]| columns.iter().fold(0, |sum: u64, ns| sum.saturating_add(*ns));
        layers.sort_by_key(|(origin, columns)| (std::cmp::Reverse(total(columns)), *origin));
        let layer = |(origin, columns): (O, Vec<u64>)| Layer {
            began: origin.key(),
            cause: origin.cause(),
            words: origin.words_without_distance(),
            columns,
        };
        layers.into_iter().map(layer).collect()
    }
}

/// ColumnNotes the time in violation at the end of each column.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    from: Ts,
    to: Ts,
    column: u32,
    waits: SeededMap<TaskId, ColumnNotes>,
    stretches: Vec<ColumnNotes>,
    waiting: Grid<WaitOrigin>,
    idling: Grid<IdleOrigin>,
}

impl Recorder {
    pub(crate) fn new((from, to): (Ts, Ts)) -> Recorder {
        Recorder {
            from,
            to,
            column: 0,
            waits: SeededMap::default(),
            stretches: Vec::new(),
            waiting: Grid::default(),
            idling: Grid::default(),
        }
    }

    /// The end of the present column; there is none behind the last one.
    pub(crate) fn column_end(&self) -> Ts {
        if self.column + 1 >= COLUMNS {
            return Ts(i64::MAX);
        }
        let passed = u128::from(self.to.since(self.from).0) * u128::from(self.column + 1) / u128::from(COLUMNS);
        Ts(self.from.0.saturating_add_unsigned(passed as u64))
    }

    /// The next column begins.
    pub(crate) fn turn(&mut self) {
        self.column += 1;
    }

    /// The violated time of a wait has grown by that in the present column.
    pub(crate) fn note_wait(&mut self, task: TaskId, ns: u64) {
        if ns > 0 {
            self.waits.entry(task).or_default().push((self.column, ns));
        }
    }

    /// The violated time of an idle stretch has grown by that in the present column.
    pub(crate) fn note_stretch(&mut self, cpu: Cpu, ns: u64) {
        if ns > 0 {
            if cpu.index() >= self.stretches.len() {
                self.stretches.resize(cpu.index() + 1, ColumnNotes::new());
            }
            self.stretches[cpu.index()].push((self.column, ns));
        }
    }

    /// The wait of a task has ended.
    pub(crate) fn end_wait(&mut self, task: TaskId, origin: (WaitOrigin, Option<MoveKey>)) {
        if let Some(notes) = self.waits.remove(&task) {
            self.waiting.take(origin, notes);
        }
    }

    /// The idle stretch of a CPU has ended.
    pub(crate) fn end_stretch(&mut self, cpu: Cpu, origin: (IdleOrigin, Option<MoveKey>)) {
        if let Some(notes) = self.stretches.get_mut(cpu.index()) {
            self.idling.take(origin, std::mem::take(notes));
        }
    }

    /// A migration has this cause.
    pub(crate) fn settle(&mut self, key: MoveKey, cause: Cause) {
        self.waiting.settle(key, cause);
        self.idling.settle(key, cause);
    }

    /// Begins at `at`, as the recorder of a later piece of a pass.
    pub(crate) fn resume(&mut self, at: Ts) {
        while self.column_end() <= at {
            self.turn();
        }
    }

    /// Removes the notes on the open wait of a task.
    pub(crate) fn take_wait(&mut self, task: TaskId) -> ColumnNotes {
        self.waits.remove(&task).unwrap_or_default()
    }

    /// Adds notes of a later piece to those on the open wait of a task.
    pub(crate) fn add_wait(&mut self, task: TaskId, notes: ColumnNotes) {
        if !notes.is_empty() {
            self.waits.entry(task).or_default().extend(notes);
        }
    }

    /// Removes the notes on the open idle stretch of a CPU.
    pub(crate) fn take_stretch(&mut self, cpu: Cpu) -> ColumnNotes {
        self.stretches.get_mut(cpu.index()).map(std::mem::take).unwrap_or_default()
    }

    /// Adds notes of a later piece to those on the open idle stretch of a CPU.
    pub(crate) fn add_stretch(&mut self, cpu: Cpu, notes: ColumnNotes) {
        if cpu.index() >= self.stretches.len() {
            self.stretches.resize(cpu.index() + 1, ColumnNotes::new());
        }
        self.stretches[cpu.index()].extend(notes);
    }

    /// Adds the notes of a later piece of a pass, which begins in the present column.
    pub(crate) fn join(&mut self, later: Recorder) {
        self.column = later.column;
        self.waiting.join(later.waiting);
        self.idling.join(later.idling);
        later.waits.into_iter().for_each(|(task, notes)| self.add_wait(task, notes));
        (0..).map(Cpu).zip(later.stretches).for_each(|(cpu, notes)| self.add_stretch(cpu, notes));
    }

    pub(crate) fn finish(self) -> OverTime {
        OverTime { from: self.from, to: self.to, waiting: self.waiting.finish(), idling: self.idling.finish() }
    }
}

//! The index: columns of all CPUs and of the machine, made in one pass.

use crate::Shape;
use crate::columns::coding::put_number;
use crate::columns::doubts::Doubts;
use crate::columns::lane::{self, Id, LaneColumn, SumColumn};
use crate::columns::longest::{Interval, Longest};
use crate::columns::machine::{self, MachineColumn};
use crate::columns::moves::{CAUSES, MoveCounts};
use crate::columns::tasks::Tasks;
use crate::columns::tree::Tree;
use crate::index::scope::Scope;
use sched::causes::Herd;
use sched::{Cpu, Ts};
use std::ops::Range;
use std::sync::Arc;

/// The columns of a trace, or of a part of it.
#[derive(Clone, Debug)]
pub struct Index {
    pub(crate) scope: Scope,
    pub(crate) lanes: Vec<Tree<LaneColumn>>,
    pub(crate) machine: Tree<MachineColumn>,
    pub(crate) moves: MoveCounts,
    /// The tasks that the tiles name, shared with the parts that are finer.
    pub(crate) tasks: Arc<Tasks>,
    pub(crate) notes: IndexNotes,
    /// Columns by samples, where no others are yet.
    pub(crate) sampled: Option<Arc<Index>>,
}

/// The lists of a trace, and other facts about it.
#[derive(Clone, Debug, Default)]
pub(crate) struct IndexNotes {
    pub(crate) episodes: Longest,
    pub(crate) waits: Longest,
    pub(crate) herds: (Vec<Herd>, u64),
    /// The time at which the traced command began, in nanoseconds from the start of the trace.
    pub(crate) command: Option<u64>,
    pub(crate) losses: u64,
    pub(crate) places: Doubts,
}

/// The lists of intervals of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List {
    /// Episodes in which a CPU idled while a task waited on another.
    Episodes,
    /// The waits of tasks on run queues.
    Waits,
}

/// The kind of occupants that a column of several CPUs together names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SumBy {
    /// Each task for itself.
    Task,
    /// Commands, each by the first of its tasks: the tasks of a command count together.
    Command,
}

/// The start of a sample, and its occupants, each with its time.
pub(crate) type Mixture = (Ts, Vec<(Id, u64)>);

/// The characters that begin each tile of lanes, and of the machine.
const LANE_TILE: &[u8; 4] = b"SVT2";
const MACHINE_TILE: &[u8; 4] = b"SVM2";

impl Index {
    pub(crate) fn new(scope: &Scope, tasks: Arc<Tasks>) -> Index {
        let (base, top) = scope.levels;
        Index {
            scope: scope.clone(),
            lanes: scope.cpus.iter().map(|_| Tree::new(base, top)).collect(),
            machine: Tree::new(base, top),
            moves: MoveCounts::new(scope.span, scope.room / 4, scope.coarse_levels().0),
            tasks,
            notes: IndexNotes::default(),
            sampled: None,
        }
    }

    /// The coarse levels by samples of each CPU in the order of time: each begins at an instant, stands for the time up to
    /// the next one, and divides it among occupants.
    pub(crate) fn sampled<'s>(scope: &Scope, tasks: Tasks, samples: impl Fn(Cpu) -> &'s [Mixture]) -> Index {
        let levels = scope.coarse_levels();
        let mut index = Index::new(&Scope { levels, ..scope.clone() }, Arc::new(tasks));
        for (cpu, tree) in scope.cpus.iter().zip(&mut index.lanes) {
            let samples = samples(*cpu);
            for (nth, (_, mixture)) in samples.iter().enumerate() {
                let end = samples.get(nth + 1).map_or(scope.span, |(next, _)| scope.time(*next));
                tree.fill(end, |column, ns| column.pass_as(mixture, ns));
            }
            tree.finish();
        }
        index
    }

    /// Calls `each` with the runs of columns of a lane in a tile. Returns the number of columns.
    fn columns(&self, lane: usize, level: u32, index: u64, mut each: impl FnMut(u64, &[u8])) -> u64 {
        let columns = self.scope.shape.columns;
        let first = index * columns;
        let of = |index: &Index, from: u64, each: &mut dyn FnMut(u64, &[u8])| {
            index.lanes.get(lane).map_or(0, |tree| tree.columns(level, first + from, columns - from, each))
        };
        let read = of(self, 0, &mut each);
        match &self.sampled {
            Some(sampled) if read < columns => read + of(sampled, read, &mut each),
            _ => read,
        }
    }

    /// The start of the traced command, in nanoseconds from the start of the trace, if the trace shows that.
    pub fn command(&self) -> Option<u64> {
        self.notes.command
    }

    /// The number of places where events were lost.
    pub fn losses(&self) -> u64 {
        self.notes.losses
    }

    /// The longest intervals of a kind, the longest first, and the number of those that are not in the list.
    pub fn list(&self, list: List) -> (Vec<Interval>, u64) {
        match list {
            List::Episodes => self.notes.episodes.list(),
            List::Waits => self.notes.waits.list(),
        }
    }

    /// The largest herds of migrations, the largest first, and the number of those that are not in the list.
    pub fn herds(&self) -> &(Vec<Herd>, u64) {
        &self.notes.herds
    }

    /// The finest and the coarsest level of its columns.
    pub fn levels(&self) -> (u32, u32) {
        self.scope.levels
    }

    /// The bytes that its columns take.
    pub fn size(&self) -> usize {
        self.trees_size() + self.moves.size()
    }

    /// The shape of its tiles.
    pub fn shape(&self) -> Shape {
        self.scope.shape
    }

    /// The CPUs, in the order of the lanes.
    pub fn cpus(&self) -> &[Cpu] {
        &self.scope.cpus
    }

    /// The tasks that the tiles name.
    pub fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    /// Whether a tile of this level begins within the trace.
    pub fn has_tile(&self, level: u32, index: u64) -> bool {
        level <= self.scope.levels.1 && index <= self.scope.span >> level >> self.scope.shape.shift()
    }

    /// The window of a tile.
    pub fn window(&self, level: u32, index: u64) -> (Ts, Ts) {
        let tile = self.scope.of_tile(level, index);
        (tile.start, Ts(tile.start.0 + tile.span as i64))
    }

    /// The tile `index` of the lanes of a group; nothing if these columns are not in the index.
    pub fn lanes(&self, level: u32, group: usize, index: u64) -> Option<Vec<u8>> {
        let (columns, most) = (self.scope.shape.columns, self.scope.shape.lanes);
        let first = group.checked_mul(most).filter(|first| *first < self.lanes.len())?;
        let lanes = first..self.lanes.len().min(first + most);
        if level < self.scope.levels.0 || !self.has_tile(level, index) {
            return None;
        }
        let mut tile = self.lane_tile(lanes.len());
        for lane in lanes {
            let stored = self.columns(lane, level, index, |run, form| lane::put_run(&mut tile, run, form));
            lane::put_run(&mut tile, columns - stored, lane::NOTHING);
        }
        Some(tile)
    }

    /// The start of a tile with this number of lanes.
    fn lane_tile(&self, lanes: usize) -> Vec<u8> {
        let mut tile = Vec::with_capacity(4096);
        tile.extend(LANE_TILE);
        tile.extend((self.scope.shape.columns as u16).to_le_bytes());
        tile.extend((lanes as u16).to_le_bytes());
        tile
    }

    /// The tile `index` of these lanes together, as one lane; nothing if these columns are not in the index.
    pub fn sum(&self, level: u32, lanes: Range<usize>, index: u64, by: SumBy) -> Option<Vec<u8>> {
        if lanes.is_empty()
            || lanes.end > self.lanes.len()
            || level < self.scope.levels.0
            || !self.has_tile(level, index)
        {
            return None;
        }
        let first = match by {
            SumBy::Task => Vec::new(),
            SumBy::Command => self.tasks.first_of_command(),
        };
        let counted = |id: Id| first.get(id as usize).copied().unwrap_or(id);
        let mut sums = vec![SumColumn::default(); self.scope.shape.columns as usize];
        for lane in lanes {
            let mut sums = sums.iter_mut();
            self.columns(lane, level, index, |run, form| {
                sums.by_ref().take(run as usize).for_each(|sum| sum.add(form, &counted));
            });
        }
        let mut forms = sums.iter_mut().map(|sum| {
            let mut form = Vec::new();
            sum.encode(&mut form);
            form
        });
        let mut tile = self.lane_tile(1);
        put_runs(&mut tile, &mut forms);
        Some(tile)
    }

    /// The tile `index` of the machine; nothing if these columns are not in the index.
    pub fn machine(&self, level: u32, index: u64) -> Option<Vec<u8>> {
        if level < self.scope.levels.0 || !self.has_tile(level, index) {
            return None;
        }
        let moves = self.moves.columns(level, index * self.scope.shape.columns, self.scope.shape.columns as usize);
        Some(machine_tile(&self.machine, level, index, &moves))
    }

    /// The tile `index` of the machine, whose columns are those of `part`, which [`Indexer::finer`](crate::Indexer::finer) made.
    pub fn machine_of(&self, part: &Index, level: u32, index: u64) -> Vec<u8> {
        self.machine_within(part, level, (index, 0))
    }

    /// The same where the tile is not the first of the part, but has the second number there.
    pub(crate) fn machine_within(&self, part: &Index, level: u32, (index, within): (u64, u64)) -> Vec<u8> {
        // The causes of migrations depend on what happened before a part, and after it.
        let columns = self.scope.shape.columns;
        let moves = match level >= self.moves.level() {
            true => self.moves.columns(level, index * columns, columns as usize),
            false => part.moves.columns(level, within * columns, columns as usize),
        };
        machine_tile(&part.machine, level, within, &moves)
    }

    /// The index with columns by samples behind its own.
    #[cfg(test)]
    pub(crate) fn before(self, sampled: Index) -> Index {
        Index { sampled: Some(Arc::new(sampled)), ..self }
    }

    /// A copy with the coarse levels alone, of the part that was read.
    pub(crate) fn coarse(&self) -> Index {
        let (from, top) = self.scope.coarse_levels();
        Index {
            scope: Scope { levels: (from, top), ..self.scope.clone() },
            sampled: self.sampled.clone(),
            lanes: self.lanes.iter().map(|tree| tree.coarse(from)).collect(),
            machine: self.machine.coarse(from),
            moves: self.moves.coarse(),
            tasks: Arc::clone(&self.tasks),
            notes: self.notes.clone(),
        }
    }

    /// The bytes of the columns of lanes and of the machine. With the same finest level they only grow.
    fn trees_size(&self) -> usize {
        self.lanes.iter().map(Tree::size).sum::<usize>() + self.machine.size()
    }

    /// Drops the finest level, where these columns alone take more than the room. It would be dropped in the end in any
    /// case, so that the index does not depend on when this is called.
    pub(crate) fn fit_trees(&mut self) {
        self.fit(0);
    }

    /// Drops the finest level, where the columns and `beside` bytes take more than the room.
    fn fit(&mut self, beside: usize) {
        while self.trees_size() + beside > self.scope.room && self.scope.levels.0 < self.scope.levels.1 {
            self.lanes.iter_mut().for_each(Tree::coarsen);
            self.machine.coarsen();
            self.scope.levels.0 += 1;
        }
    }

    pub(crate) fn finish(&mut self) {
        self.lanes.iter_mut().for_each(Tree::finish);
        self.machine.finish();
        self.moves.sum();
        self.fit(self.moves.size());
        self.sampled = None;
    }
}

/// Appends columns to a tile, equal ones that follow one another as a run.
fn put_runs(tile: &mut Vec<u8>, forms: &mut dyn Iterator<Item = Vec<u8>>) {
    let Some(mut last) = forms.next() else { return };
    let mut run = 1;
    for form in forms {
        if form != last {
            lane::put_run(tile, run, &last);
            (last, run) = (form, 0);
        }
        run += 1;
    }
    lane::put_run(tile, run, &last);
}

/// A tile of the machine from its columns, and the migrations in each. Equal columns that follow one another are a run: the
/// number of its columns less one, the numbers of the machine, the number of causes, and each cause with its migrations.
fn machine_tile(tree: &Tree<MachineColumn>, level: u32, index: u64, moves: &[[u32; CAUSES]]) -> Vec<u8> {
    let count = moves.len() as u64;
    let mut columns = Vec::with_capacity(moves.len() * machine::SIZE);
    tree.columns(level, index * count, count, |run, form| (0..run).for_each(|_| columns.extend_from_slice(form)));
    let nothing: Vec<u8> = f32::NAN.to_le_bytes().repeat(machine::SIZE / size_of::<f32>());
    let mut columns = columns.chunks_exact(machine::SIZE);
    let mut tile = Vec::with_capacity(4096);
    tile.extend(MACHINE_TILE);
    tile.extend((count as u16).to_le_bytes());
    tile.extend((CAUSES as u16).to_le_bytes());
    let mut forms = moves.iter().map(|moves| {
        let mut form = columns.next().unwrap_or(&nothing).to_vec();
        let counts = || (0..).zip(moves).filter(|(_, count)| **count > 0);
        put_number(&mut form, counts().count() as u64);
        for (cause, count) in counts() {
            put_number(&mut form, cause);
            put_number(&mut form, (*count).into());
        }
        form
    });
    put_runs(&mut tile, &mut forms);
    tile
}

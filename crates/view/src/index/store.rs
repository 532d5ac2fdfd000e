//! The index of a trace with its events behind it: tiles at any zoom.

use crate::index::builder::Publish;
use crate::index::indexer::Indexer;
use crate::index::rows::{RowIndex, RowIndexer, RowPart};
use crate::index::scope::Scope;
use crate::index::tiles::{Index, SumBy};
use sched::{Analysis, ChosenCpus, Diagnostics, EventSource, HELD_BACK, Replay, Ts};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use workcons::{Unknown, UnknownParts};

/// An indexed trace, with replays of its events.
#[derive(Debug)]
pub struct Store<S> {
    index: Arc<Index>,
    /// The replay for questions, which can take long: one at a time.
    replay: Mutex<Replay<S>>,
    /// The replays for tiles, which never wait for a question.
    for_tiles: [Mutex<Replay<S>>; TILES_AT_ONCE],
    parts: Mutex<Parts<Index>>,
    /// The rows of the tasks, once they were asked for, or the reason for which there are none.
    rows: OnceLock<Result<RowIndex, String>>,
    row_parts: Mutex<Parts<RowPart>>,
    diagnostics: Diagnostics,
    /// The unknown parts of the whole trace, where it was read for its index.
    unknown: Option<Unknown>,
}

/// The maximum number of checkpoints, and their bytes: in 10 GB of a small machine one every 160,000 events, which some
/// milliseconds replay.
pub(crate) const CHECKPOINTS: (usize, usize) = (4096, 16 << 20);
/// The same for an exported folder: it has no tiles that are finer than those of the index, but within a window that is read once.
pub(crate) const FEW_CHECKPOINTS: (usize, usize) = (256, 8 << 20);
/// The number of parts that are computed at the same time.
const TILES_AT_ONCE: usize = 2;
/// The maximum number of bytes of the parts that are kept.
const ROOM: usize = 16 << 20;
/// The bytes that a part takes beside its columns, roughly, with each of its lanes.
const BESIDE: (usize, usize) = (2048, 256);

/// A part of a trace that was computed from its events.
trait Finer {
    /// The bytes that it takes, roughly.
    fn bytes(&self) -> usize;
}

impl Finer for Index {
    fn bytes(&self) -> usize {
        self.size() + BESIDE.1 * self.cpus().len()
    }
}

impl Finer for RowPart {
    fn bytes(&self) -> usize {
        RowPart::bytes(self)
    }
}

/// The columns of a tile that are finer than those of the index. The lock is held while they are computed.
type FinerPart<T> = Arc<Mutex<Option<Arc<T>>>>;

/// Parts that were asked for, the latest last.
#[derive(Debug)]
struct Parts<T> {
    parts: VecDeque<((u32, u64), FinerPart<T>)>,
    /// The maximum number of bytes of those that are kept.
    room: usize,
}

impl<T> Default for Parts<T> {
    fn default() -> Parts<T> {
        Parts { parts: VecDeque::new(), room: ROOM }
    }
}

impl<T: Finer> Parts<T> {
    /// The part of this level and place. A new one is empty; parts that were not asked for the longest give way to it.
    fn of(&mut self, place: (u32, u64)) -> FinerPart<T> {
        if let Some(at) = self.parts.iter().position(|(other, _)| *other == place)
            && let Some(known) = self.parts.remove(at)
        {
            let part = Arc::clone(&known.1);
            self.parts.push_back(known);
            return part;
        }
        let mut bytes = 0;
        let kept = self.parts.iter().rev().take_while(|(_, part)| {
            bytes += size(part);
            bytes <= self.room
        });
        self.parts.drain(..self.parts.len() - kept.count());
        let part = FinerPart::default();
        self.parts.push_back((place, Arc::clone(&part)));
        part
    }
}

/// The bytes of a part. One that is being computed has no size yet.
fn size<T: Finer>(part: &FinerPart<T>) -> usize {
    let made = part.try_lock().ok().and_then(|part| part.clone());
    BESIDE.0 + made.map_or(0, |part| part.bytes())
}

/// A panic of another request leaves nothing half done here.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<S: EventSource + Clone> Store<S> {
    /// Reads a trace once, and publishes the coarse levels meanwhile: those by samples, if there are any, as far as it
    /// was not read.
    pub fn build(
        source: S,
        scope: &Scope,
        sampled: Option<&Arc<Index>>,
        publish: &Publish<'_>,
    ) -> Result<Store<S>, S::Error> {
        Store::build_with(source, (scope, sampled), publish, CHECKPOINTS)
    }

    /// The same with at most this number of checkpoints, and bytes of them.
    pub(crate) fn build_with(
        source: S,
        (scope, sampled): (&Scope, Option<&Arc<Index>>),
        publish: &Publish<'_>,
        checkpoints: (usize, usize),
    ) -> Result<Store<S>, S::Error> {
        let is_alone = source.threads() < 2;
        std::thread::scope(|threads| {
            let threads = (!is_alone).then_some(threads);
            let indexer = || Indexer::publishing(scope, sampled.cloned(), Some(publish), threads);
            let analysis = || (indexer(), UnknownParts::of(ChosenCpus::default()));
            let (replay, (index, unknown)) = Replay::beside(source, checkpoints, analysis)?;
            Ok(Store { unknown: Some(unknown), ..Store::new(Arc::new(index), replay) })
        })
    }

    /// Reads a trace once whose index is known.
    pub(crate) fn with_index(source: S, index: Arc<Index>, checkpoints: (usize, usize)) -> Result<Store<S>, S::Error> {
        Ok(Store::new(index, Replay::for_parts(source, checkpoints)?))
    }

    fn new(index: Arc<Index>, replay: Replay<S>) -> Store<S> {
        let for_tiles = std::array::from_fn(|_| Mutex::new(replay.another()));
        let diagnostics = replay.diagnostics().clone();
        let (parts, row_parts, replay) = (Mutex::default(), Mutex::default(), Mutex::new(replay));
        Store { index, replay, for_tiles, parts, rows: OnceLock::new(), row_parts, diagnostics, unknown: None }
    }

    /// The index of the trace.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// The findings of the pass.
    pub fn diagnostics(&self) -> &Diagnostics {
        &self.diagnostics
    }

    /// The unknown parts of the whole trace; nothing where its index was known before.
    pub(crate) fn unknown(&self) -> Option<&Unknown> {
        self.unknown.as_ref()
    }

    /// The tile `index` of the lanes of a group; nothing if there is none.
    pub fn lanes(&self, level: u32, group: usize, index: u64) -> Result<Option<Vec<u8>>, S::Error> {
        if level >= self.index.levels().0 || !self.index.has_tile(level, index) {
            return Ok(self.index.lanes(level, group, index));
        }
        Ok(self.part(level, index)?.lanes(level, group, 0))
    }

    /// The tile `index` of these lanes together, as one lane; nothing if there is none.
    pub fn sum(&self, level: u32, lanes: Range<usize>, index: u64, by: SumBy) -> Result<Option<Vec<u8>>, S::Error> {
        if level >= self.index.levels().0 || !self.index.has_tile(level, index) {
            return Ok(self.index.sum(level, lanes, index, by));
        }
        Ok(self.part(level, index)?.sum(level, lanes, 0, by))
    }

    /// The tile `index` of the machine; nothing if there is none.
    pub fn machine(&self, level: u32, index: u64) -> Result<Option<Vec<u8>>, S::Error> {
        if level >= self.index.levels().0 || !self.index.has_tile(level, index) {
            return Ok(self.index.machine(level, index));
        }
        Ok(Some(self.index.machine_of(&*self.part(level, index)?, level, index)))
    }

    /// The columns within a tile on the levels from the finest to that of the tile, all finer than the index, in one reading.
    pub(crate) fn stretch(&self, levels: (u32, u32), tile: u64) -> Result<Index, S::Error> {
        let (from, to) = self.index.window(levels.1, tile);
        self.window(from, to, Indexer::stretch(&self.index, levels, tile))
    }

    /// Makes an analysis of a part of the trace.
    pub fn window<A: Analysis>(&self, from: Ts, to: Ts, analysis: A) -> Result<A::Output, S::Error> {
        lock(&self.replay).window(from, to, analysis)
    }

    /// Looks at the trace as the stepper does.
    pub fn with_replay<T>(&self, look: impl FnOnce(&mut Replay<S>) -> Result<T, S::Error>) -> Result<T, S::Error> {
        look(&mut lock(&self.replay))
    }

    /// The rows of the tasks over the whole trace; the first request reads it for them, and others wait for it.
    pub(crate) fn rows(&self) -> Result<&RowIndex, String>
    where
        S::Error: ToString,
    {
        let made = self.rows.get_or_init(|| {
            let mut replay = lock(&self.replay).another();
            let (from, to) = self.index.window(self.index.levels().1, 0);
            let indexer = RowIndexer::whole(&self.index.scope, &self.index.tasks, replay.checkpoint_times());
            replay.window(from, to, indexer).map_err(|error| error.to_string())
        });
        made.as_ref().map_err(String::clone)
    }

    /// The tile `index` of the rows of the tasks with these places; nothing if there is none.
    pub(crate) fn row_tile(&self, level: u32, index: u64, places: &[usize]) -> Result<Option<Vec<u8>>, String>
    where
        S::Error: ToString,
    {
        let rows = self.rows()?;
        if !self.index.has_tile(level, index) {
            return Ok(None);
        }
        if level >= rows.levels().0 {
            return Ok(Some(rows.tile(level, index, places)));
        }
        let part = lock(&self.row_parts).of((level, index));
        let mut part = lock(&part);
        if let Some(made) = &*part {
            return Ok(Some(made.tile(places)));
        }
        let (from, to) = self.index.window(level, index);
        let scope = self.index.scope.of_tile(level, index);
        let indexer = RowIndexer::part(scope, &self.index.tasks, rows.unseen(from));
        // Whether a wait at the end of the tile is held back shows within this time.
        let decided = to.after(HELD_BACK).min(self.index.scope.end());
        let made = self.tile_replay(index).window(from, decided, indexer).map_err(|error| error.to_string())?;
        let made = Arc::new(RowPart::of(&made, level));
        let tile = made.tile(places);
        *part = Some(made);
        Ok(Some(tile))
    }

    /// A replay for a tile, one that is free if there is any.
    fn tile_replay(&self, index: u64) -> MutexGuard<'_, Replay<S>> {
        let free = self.for_tiles.iter().find_map(|replay| replay.try_lock().ok());
        // Requests that find none free are spread by the tiles' places.
        free.unwrap_or_else(|| lock(&self.for_tiles[index as usize % TILES_AT_ONCE]))
    }

    /// The columns of a tile that are finer than those of the index. Requests for the same ones wait for the first.
    fn part(&self, level: u32, index: u64) -> Result<Arc<Index>, S::Error> {
        let part = lock(&self.parts).of((level, index));
        let mut part = lock(&part);
        if let Some(made) = &*part {
            return Ok(Arc::clone(made));
        }
        let (from, to) = self.index.window(level, index);
        let mut replay = self.tile_replay(index);
        let made = Arc::new(replay.window(from, to, Indexer::finer(&self.index, level, index))?);
        *part = Some(Arc::clone(&made));
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_were_not_asked_for_the_longest_give_way() {
        let most = 64;
        let mut parts: Parts<Index> = Parts { room: most * BESIDE.0, ..Parts::default() };
        let first = parts.of((3, 0));
        (1..most as u64).for_each(|index| drop(parts.of((3, index))));
        assert!(Arc::ptr_eq(&first, &parts.of((3, 0))), "it is asked for again, so that it is the latest");
        (most as u64..2 * most as u64 - 1).for_each(|index| drop(parts.of((3, index))));
        assert!(Arc::ptr_eq(&first, &parts.of((3, 0))));
        (0..2 * most as u64).for_each(|index| drop(parts.of((4, index))));
        assert!(!Arc::ptr_eq(&first, &parts.of((3, 0))));
        assert!(parts.parts.len() <= most + 1);
    }
}

//! The index of a trace with its events behind it: tiles at any zoom.

use crate::index::{Index, Indexer, Publish, Scope};
use sched::{Analysis, EventSource, Replay, Ts};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The columns of a tile that are finer than those of the index, by level and place of the tile.
type Part = ((u32, u64), Arc<Index>);

/// An indexed trace.
#[derive(Debug)]
pub struct Store<S> {
    index: Index,
    replay: Mutex<Replay<S>>,
    /// Parts that were asked for, the latest last.
    parts: Mutex<Vec<Part>>,
}

/// The maximum number of checkpoints: in 10 GB one every 180,000 events, which a few milliseconds replay.
const CHECKPOINTS: usize = 1024;
/// The maximum number of parts that are kept, and of their bytes.
const PARTS: usize = 64;
const ROOM: usize = 32 << 20;

/// A panic of another request leaves nothing half done here.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<S: EventSource> Store<S> {
    /// Reads a trace once, and publishes the coarse levels meanwhile.
    pub fn build(source: S, scope: &Scope, publish: &Publish<'_>) -> Result<Store<S>, S::Error> {
        let (replay, index) = Replay::beside(source, CHECKPOINTS, || Indexer::new(scope).publishing(publish))?;
        Ok(Store { index, replay: Mutex::new(replay), parts: Mutex::default() })
    }

    /// The index.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// The tile `index` of the lanes of a group; nothing if there is none.
    pub fn lanes(&self, level: u32, group: usize, index: u64) -> Result<Option<Vec<u8>>, S::Error> {
        if level >= self.index.levels().0 || !self.index.has_tile(level, index) {
            return Ok(self.index.lanes(level, group, index));
        }
        Ok(self.part(level, index)?.lanes(level, group, 0))
    }

    /// The tile `index` of the machine; nothing if there is none.
    pub fn machine(&self, level: u32, index: u64) -> Result<Option<Vec<u8>>, S::Error> {
        if level >= self.index.levels().0 || !self.index.has_tile(level, index) {
            return Ok(self.index.machine(level, index));
        }
        Ok(Some(self.index.machine_of(&*self.part(level, index)?, level, index)))
    }

    /// Makes an analysis of a part of the trace.
    pub fn window<A: Analysis>(&self, from: Ts, to: Ts, analysis: A) -> Result<A::Output, S::Error> {
        lock(&self.replay).window(from, to, analysis)
    }

    /// Looks at the trace as the stepper does.
    pub fn with_replay<T>(&self, look: impl FnOnce(&mut Replay<S>) -> Result<T, S::Error>) -> Result<T, S::Error> {
        look(&mut lock(&self.replay))
    }

    /// The columns of a tile that are finer than those of the index.
    fn part(&self, level: u32, index: u64) -> Result<Arc<Index>, S::Error> {
        if let Some(part) = self.kept(level, index) {
            return Ok(part);
        }
        let mut replay = lock(&self.replay);
        // Another request can have made it meanwhile.
        if let Some(part) = self.kept(level, index) {
            return Ok(part);
        }
        let (from, to) = self.index.window(level, index);
        let part = Arc::new(replay.window(from, to, self.index.finer(level, index))?);
        let mut parts = lock(&self.parts);
        parts.push(((level, index), Arc::clone(&part)));
        while parts.len() > 1
            && (parts.len() > PARTS || parts.iter().map(|(_, part)| part.size()).sum::<usize>() > ROOM)
        {
            parts.remove(0);
        }
        Ok(part)
    }

    fn kept(&self, level: u32, index: u64) -> Option<Arc<Index>> {
        let parts = lock(&self.parts);
        parts.iter().find(|(place, _)| *place == (level, index)).map(|(_, part)| Arc::clone(part))
    }
}

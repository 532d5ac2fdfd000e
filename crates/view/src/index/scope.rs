//! The part of a trace that is indexed, and the levels of its columns.

use crate::Shape;
use sched::affinity::Affinity;
use sched::{ChosenCpus, Cpu, Ts};
use std::sync::Arc;
use workcons::Watch;

/// The part of a trace that is indexed, and the room for it.
#[derive(Clone, Debug)]
pub struct Scope {
    pub(crate) start: Ts,
    pub(crate) span: u64,
    /// The finest and the coarsest level.
    pub(crate) levels: (u32, u32),
    pub(crate) shape: Shape,
    pub(crate) cpus: Vec<Cpu>,
    /// The maximum number of bytes of all columns.
    pub(crate) room: usize,
    /// The CPUs that tasks may use, where lists restrict any, or records can: violation depends on them.
    pub(crate) affinity: Option<Arc<Affinity>>,
}

/// The bytes that an index may take at least.
const LEAST_ROOM: usize = 4 << 20;
/// The coarse levels have at most this power of two as their number of columns: 1,024.
const COARSE: u32 = 10;
/// An index takes at most this part of the trace: 1.5 %.
const PART: u64 = 66;

impl Scope {
    /// The whole of a trace from `start` to `end` with events on `cpus`. `bytes`: the size of its pages, which the room
    /// of the index follows.
    pub fn of_trace(start: Ts, end: Ts, cpus: &[Cpu], bytes: u64) -> Scope {
        let span = end.since(start).0;
        let room = usize::try_from(bytes / PART).unwrap_or(usize::MAX).max(LEAST_ROOM);
        let shape = Shape::of(cpus.len());
        let top = shape.covering(span);
        // Finer columns than these would be dropped again: a column with anything in it takes some ten bytes.
        let lanes = cpus.len() as u64 + 1;
        let fits = |level: &u32| (span >> level).saturating_mul(lanes) <= room as u64 / 4;
        let base = (0..top).find(fits).unwrap_or(top);
        Scope { start, span, levels: (base, top), shape, cpus: cpus.to_vec(), room, affinity: None }
    }

    /// The scope with the CPUs that tasks may use.
    pub(crate) fn with_affinity(self, affinity: Option<Arc<Affinity>>) -> Scope {
        Scope { affinity, ..self }
    }

    /// Follows the violation of work conservation.
    pub(crate) fn watch(&self) -> Watch {
        Watch::new(ChosenCpus::default(), self.affinity.clone())
    }

    /// The shape of the tiles.
    pub(crate) fn shape(&self) -> Shape {
        self.shape
    }

    /// The coarsest level: one tile covers the trace.
    pub(crate) fn top(&self) -> u32 {
        self.levels.1
    }

    /// The scope without this number of its finest levels.
    #[cfg(test)]
    pub(crate) fn coarser(self, levels: u32) -> Scope {
        Scope { levels: ((self.levels.0 + levels).min(self.levels.1), self.levels.1), ..self }
    }

    /// The scope with another maximum number of bytes.
    #[cfg(test)]
    pub(crate) fn with_room(self, room: usize) -> Scope {
        Scope { room, ..self }
    }

    /// The levels that are shown while the trace is read.
    pub(crate) fn coarse_levels(&self) -> (u32, u32) {
        let (base, top) = self.levels;
        (top.saturating_sub(COARSE - self.shape.shift()).max(base), top)
    }

    /// The time of an instant from the start of the scope.
    pub(crate) fn time(&self, ts: Ts) -> u64 {
        ts.since(self.start).0.min(self.span)
    }

    /// The end of the scope.
    pub(crate) fn end(&self) -> Ts {
        Ts(self.start.0 + self.span as i64)
    }

    /// One tile of columns of this level, of the same trace.
    pub(crate) fn of_tile(&self, level: u32, index: u64) -> Scope {
        let from = (index * self.shape.columns) << level;
        let span = (self.shape.columns << level).min(self.span.saturating_sub(from));
        let start = Ts(self.start.0 + from as i64);
        Scope { start, span, levels: (level, level), room: usize::MAX, ..self.clone() }
    }
}

//! The events of a piece.

use crate::event::SchedEvent;
use std::ops::Range;
use std::sync::Arc;

/// The events of a piece, in order: stretches of batches that the source and other pieces hold as well, so that the thread that cuts
/// the pieces copies none.
#[derive(Debug, Default)]
pub(super) struct PieceEvents {
    stretches: Vec<(Arc<Vec<SchedEvent>>, Range<usize>)>,
    number: usize,
}

impl PieceEvents {
    /// The number of events.
    pub(super) fn len(&self) -> usize {
        self.number
    }

    /// Adds events of a batch behind those so far.
    pub(super) fn push(&mut self, batch: &Arc<Vec<SchedEvent>>, range: Range<usize>) {
        self.number += range.len();
        self.stretches.push((Arc::clone(batch), range));
    }

    /// The events of each batch.
    pub(super) fn stretches(&self) -> impl Iterator<Item = &[SchedEvent]> + Clone {
        self.stretches.iter().map(|(batch, range)| batch.get(range.clone()).unwrap_or_default())
    }

    /// The last event.
    pub(super) fn last(&self) -> Option<&SchedEvent> {
        self.stretches().last().and_then(<[SchedEvent]>::last)
    }

    /// The events one by one.
    pub(super) fn iter(&self) -> impl Iterator<Item = &SchedEvent> + Clone {
        self.stretches().flatten()
    }
}

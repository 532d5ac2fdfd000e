//! The columns of an index while they grow: behind the analysis, or on a thread of their own.
//!
//! The analysis notes each change in a [`Batch`], which costs it a few nanoseconds; the columns take some fifty, as much
//! as the state does. The result is the same with and without the thread, since batches are taken in order.

use crate::columns::lane::{LaneNow, UNKNOWN};
use crate::columns::machine::MachineNow;
use crate::columns::tasks::Tasks;
use crate::index::scope::Scope;
use crate::index::tiles::{Index, IndexNotes};
use sched::Cause;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Scope as Threads, ScopedJoinHandle};

/// A function that receives the coarse levels of the part that is indexed so far. It is called on the thread of the
/// columns every 0.3 s at most, and must return soon.
pub type Publish<'p> = dyn Fn(Index) + Sync + 'p;

/// A change of a lane: the state that it has from an instant on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaneTurn {
    /// The instant, in nanoseconds from the start of the scope.
    pub(crate) at: u64,
    /// The place of the lane.
    pub(crate) lane: u32,
    pub(crate) now: LaneNow,
}

/// Changes of lanes, of the machine and by migrations; the first two in the order of time.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) lanes: Vec<LaneTurn>,
    /// The instants from which on the machine has another state, each in nanoseconds from the start of the scope.
    pub(crate) machine: Vec<(u64, MachineNow)>,
    /// Instants at which tasks were migrated.
    pub(crate) moves: Vec<(u64, Cause)>,
    /// The instant up to which the coarse levels are to be published, with the tasks and lists until then.
    pub(crate) publish: Option<(u64, Arc<Tasks>, IndexNotes)>,
}

/// The number of changes from which on a batch is handed over.
pub(crate) const BATCH: usize = 8192;
/// The number of changes between two looks at the size of the columns.
const ROUND: usize = 8 * BATCH;
/// The number of batches that may wait for the thread of the columns.
const QUEUED: usize = 8;

impl Batch {
    /// The number of changes in the batch.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.lanes.len() + self.machine.len() + self.moves.len()
    }

    fn clear(&mut self) {
        self.lanes.clear();
        self.machine.clear();
        self.moves.clear();
        self.publish = None;
    }
}

/// Columns, and the states that have held since they end.
pub(crate) struct IndexBuilder<'p> {
    index: Index,
    lanes: Vec<LaneNow>,
    machine: MachineNow,
    publish: Option<&'p Publish<'p>>,
    /// The number of changes since the last look at the size of the columns.
    changes: usize,
}

impl<'p> IndexBuilder<'p> {
    pub(crate) fn new(
        scope: &Scope,
        sampled: Option<Arc<Index>>,
        publish: Option<&'p Publish<'p>>,
    ) -> IndexBuilder<'p> {
        let mut index = Index::new(scope, Arc::default());
        index.sampled = sampled;
        let lanes = vec![LaneNow { occupant: UNKNOWN, queue: 0 }; index.lanes.len()];
        IndexBuilder { index, lanes, machine: MachineNow::default(), publish, changes: 0 }
    }

    /// Takes over the changes of a batch, which is empty afterwards.
    fn take(&mut self, batch: &mut Batch) {
        for LaneTurn { at, lane, now } in &batch.lanes {
            let lane = *lane as usize;
            if let (Some(before), Some(tree)) = (self.lanes.get_mut(lane), self.index.lanes.get_mut(lane)) {
                tree.pass(before, *at);
                *before = *now;
            }
        }
        for (at, now) in &batch.machine {
            self.index.machine.pass(&self.machine, *at);
            self.machine = *now;
        }
        for (at, cause) in &batch.moves {
            self.index.moves.add(*at, *cause);
        }
        self.changes += batch.len();
        if self.changes >= ROUND {
            self.changes = 0;
            self.index.fit_trees();
        }
        if let (Some((at, tasks, notes)), Some(publish)) = (batch.publish.take(), self.publish) {
            self.reach(at);
            (self.index.tasks, self.index.notes) = (tasks, notes);
            publish(self.index.coarse());
        }
        batch.clear();
    }

    /// Time passes up to `at` on all lanes.
    fn reach(&mut self, at: u64) {
        for (tree, now) in self.index.lanes.iter_mut().zip(&self.lanes) {
            tree.pass(now, at);
        }
        self.index.machine.pass(&self.machine, at);
    }

    /// The index up to this instant.
    fn finish(mut self, at: u64) -> Index {
        self.reach(at);
        self.index.finish();
        self.index
    }
}

/// The place where the columns grow.
pub(crate) enum Growth<'p> {
    /// The columns grow in the thread of the analysis.
    Here(Box<IndexBuilder<'p>>),
    Beside(Beside<'p>),
}

/// A thread for the columns, which ends when this is dropped.
pub(crate) struct Beside<'p> {
    full: SyncSender<Batch>,
    /// Batches to be used again.
    empty: Receiver<Batch>,
    columns: ScopedJoinHandle<'p, IndexBuilder<'p>>,
}

impl<'p> Growth<'p> {
    /// Lets the columns grow on a thread of their own.
    pub(crate) fn beside(mut builder: IndexBuilder<'p>, threads: &'p Threads<'p, '_>) -> Growth<'p> {
        let (full, batches) = sync_channel::<Batch>(QUEUED);
        let (back, empty) = sync_channel::<Batch>(QUEUED);
        let columns = threads.spawn(move || {
            for mut batch in batches {
                builder.take(&mut batch);
                // If the analysis has enough of them, this one is dropped.
                let _ = back.try_send(batch);
            }
            builder
        });
        Growth::Beside(Beside { full, empty, columns })
    }

    /// Takes over the changes of a batch, which is empty afterwards.
    pub(crate) fn take(&mut self, batch: &mut Batch) {
        match self {
            Growth::Here(builder) => builder.take(batch),
            Growth::Beside(Beside { full, empty, .. }) => {
                let next = empty.try_recv().unwrap_or_default();
                // Fails only if the thread panicked, which `finish` passes on.
                let _ = full.send(std::mem::replace(batch, next));
            }
        }
    }

    /// The index up to this instant.
    pub(crate) fn finish(self, at: u64) -> Index {
        match self {
            Growth::Here(builder) => builder.finish(at),
            Growth::Beside(Beside { full, columns, .. }) => {
                drop(full);
                columns.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)).finish(at)
            }
        }
    }
}

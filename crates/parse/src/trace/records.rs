//! Every record of a trace, one after the other, or what all threads make of them.

use super::Trace;
use super::read_ahead::AHEAD;
use crate::merge::unit_boundary::Timed;
use crate::parallel::parallel;
use crate::ring::unit::CpuPages;
use crate::trace::record::{self, HeldRecord, Record};
use sched::pass::Batch;
use sched::{Diagnostics, Ts};
use std::ops::ControlFlow;

/// Records that are put into words side by side: with the longest texts (see [`crate::limits`]) these are 64 MiB.
const GROUP: usize = 1024;

/// Records of these that a thread takes at a time: some tenths of a millisecond's work, or less with many threads.
fn piece(threads: usize) -> usize {
    GROUP.checked_div(threads).unwrap_or(GROUP).clamp(64, 256)
}

/// A record, and those before and behind it, if there are any.
#[derive(Clone, Copy, Debug)]
pub struct Neighbours<'t> {
    /// The record in the middle.
    pub record: Record<'t>,
    /// The record before it.
    pub before: Option<Record<'t>>,
    /// The record behind it.
    pub behind: Option<Record<'t>>,
}

/// Consecutive items, and those at both ends.
#[derive(Clone, Copy)]
struct RecordRun<'i> {
    before: Option<&'i HeldRecord>,
    items: &'i [HeldRecord],
    behind: Option<&'i HeldRecord>,
}

impl<'i> RecordRun<'i> {
    fn neighbours(&self, trace: &'i Trace, nth: usize) -> Option<Neighbours<'i>> {
        let before = nth.checked_sub(1).map_or(self.before, |before| self.items.get(before));
        let behind = self.items.get(nth.saturating_add(1)).or(self.behind);
        let record = |item| Record::new(trace, item);
        Some(Neighbours {
            record: record(self.items.get(nth)?),
            before: before.map(record),
            behind: behind.map(record),
        })
    }
}

impl Trace {
    /// Streams every record of the buffers that are read, in time order, until `sink` breaks.
    pub fn records(&self, sink: &mut dyn FnMut(&Record<'_>) -> ControlFlow<()>) -> Diagnostics {
        self.records_from(Ts::MIN, sink)
    }

    /// Streams the records at `from` and later, in time order, until `sink` breaks. Reading begins there, as far as the
    /// times of a CPU's units show where that is.
    pub fn records_from(&self, from: Ts, sink: &mut dyn FnMut(&Record<'_>) -> ControlFlow<()>) -> Diagnostics {
        self.items_from(from, &mut |items| items.iter().try_for_each(|item| sink(&Record::new(self, item))))
    }

    /// The results of `make` for the same records and their neighbours, a piece of them at a time and on all threads.
    /// `take` gets it in order, until it breaks.
    pub fn records_mapped<O: Send>(
        &self,
        from: Ts,
        make: impl Fn(&mut dyn Iterator<Item = Neighbours<'_>>) -> O + Sync,
        take: &mut dyn FnMut(O) -> ControlFlow<()>,
    ) -> Diagnostics {
        let made =
            |piece: RecordRun<'_>| make(&mut (0..piece.items.len()).filter_map(|nth| piece.neighbours(self, nth)));
        let size = piece(self.pool.as_ref().map_or(1, |pool| pool.current_num_threads()));
        // The last item waits for the batch that follows, which has the one behind it.
        let (mut before, mut held): (Option<HeldRecord>, Option<HeldRecord>) = (None, None);
        let mut flow = ControlFlow::Continue(());
        let found = self.items_from(from, &mut |items| {
            let Some((last, body)) = items.split_last() else { return ControlFlow::Continue(()) };
            let waited = held.as_ref().map(|held| RecordRun {
                before: before.as_ref(),
                items: std::slice::from_ref(held),
                behind: items.first(),
            });
            let of_batch = body.chunks(size).enumerate().map(|(nth, chunk)| {
                let start = nth.saturating_mul(size);
                let before = start.checked_sub(1).map_or(held.as_ref(), |before| items.get(before));
                RecordRun { before, items: chunk, behind: items.get(start.saturating_add(chunk.len())) }
            });
            let pieces: Vec<RecordRun<'_>> = waited.into_iter().chain(of_batch).collect();
            flow = pieces
                .chunks(GROUP.checked_div(size).unwrap_or(1).max(1))
                .try_for_each(|group| parallel(&self.pool, group.to_vec(), made).into_iter().try_for_each(&mut *take));
            before = body.last().cloned().or(held.take());
            held = Some(last.clone());
            flow
        });
        if let (Some(held), true) = (&held, flow.is_continue()) {
            let _ = take(made(RecordRun { before: before.as_ref(), items: std::slice::from_ref(held), behind: None }));
        }
        found
    }

    fn items_from(&self, from: Ts, sink: &mut dyn FnMut(&[HeldRecord]) -> ControlFlow<()>) -> Diagnostics {
        let lanes: Vec<(usize, &CpuPages, usize)> = match from {
            Ts::MIN => self.whole_lanes(),
            _ => self.lanes_from(from),
        };
        let from_middle = self.will_read_lanes(&lanes);
        crate::merge::merge(
            &lanes,
            self.start().unwrap_or_default(),
            self.budget(),
            &self.pool,
            |task| {
                if from_middle {
                    self.reads(task.pages, task.unit, AHEAD);
                }
                record::collect(self, task)
            },
            &mut |batch: Batch<'_, HeldRecord>| {
                let before = batch.items.partition_point(|item| item.ts() < from);
                sink(batch.items.get(before..).unwrap_or_default())
            },
            &mut [],
        )
    }
}

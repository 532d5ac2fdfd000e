//! Every record of a trace, one after the other, or what all threads make of them.

use super::{AHEAD, Trace};
use crate::record::{self, Item, Record};
use crate::seam::Timed;
use crate::stream::{CpuPages, parallel};
use sched::{Diagnostics, Ts};
use std::ops::ControlFlow;

/// Records that are put into words side by side: with the longest texts (see [`crate::limits`]) these are 64 MiB.
const GROUP: usize = 1024;

/// Records of these that a thread takes at a time: some tenths of a millisecond's work, or less with many threads.
fn piece(threads: usize) -> usize {
    GROUP.checked_div(threads).unwrap_or(GROUP).clamp(64, 256)
}

impl Trace {
    /// Streams every record of the buffers that are read, in time order, until `sink` breaks.
    pub fn records(&self, sink: &mut dyn FnMut(&Record<'_>) -> ControlFlow<()>) -> Diagnostics {
        self.records_from(Ts::MIN, sink)
    }

    /// The same, but only the records at `from` and later: reading begins there, as far as the times of a CPU's
    /// units tell where that is.
    pub fn records_from(&self, from: Ts, sink: &mut dyn FnMut(&Record<'_>) -> ControlFlow<()>) -> Diagnostics {
        self.items_from(from, &mut |items| items.iter().try_for_each(|item| sink(&Record::new(self, item))))
    }

    /// What `make` makes of the same records, a piece of them at a time and on all threads. `take` gets it in order,
    /// until it breaks.
    pub fn records_mapped<O: Send>(
        &self,
        from: Ts,
        make: impl Fn(&mut dyn Iterator<Item = Record<'_>>) -> O + Sync,
        take: &mut dyn FnMut(O) -> ControlFlow<()>,
    ) -> Diagnostics {
        let made = |items: &[Item]| make(&mut items.iter().map(|item| Record::new(self, item)));
        let piece = piece(self.pool.as_ref().map_or(1, |pool| pool.current_num_threads()));
        self.items_from(from, &mut |items| {
            items.chunks(GROUP).try_for_each(|group| {
                parallel(&self.pool, group.chunks(piece).collect(), made).into_iter().try_for_each(&mut *take)
            })
        })
    }

    fn items_from(&self, from: Ts, sink: &mut dyn FnMut(&[Item]) -> ControlFlow<()>) -> Diagnostics {
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
            &mut |items: &[Item]| {
                let before = items.partition_point(|item| item.ts() < from);
                sink(items.get(before..).unwrap_or_default())
            },
            &mut [],
        )
    }
}

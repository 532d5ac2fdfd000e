//! Events that the recorder left in the kernel's buffer.
//!
//! A recorder that ends without reading the last page of each CPU takes statistics in which `entries` is above zero and
//! `read events` is the number of events in the file. Those in the buffer are later than all that were read.

use crate::file::header::RecorderStat;
use crate::file::source::Source;
use crate::issue::FileIssue;
use crate::parallel::{Pool, parallel};
use crate::ring::page::{Loss, Raw};
use crate::ring::unit::{CpuPages, Visitor};
use sched::Cpu;

/// Counts the records of a CPU.
#[derive(Debug, Default)]
struct RecordCount {
    number: u64,
    is_damaged: bool,
}

impl Visitor for RecordCount {
    fn record(&mut self, _: &Raw<'_>) {
        self.number = self.number.saturating_add(1);
    }

    fn gap(&mut self, _: Loss) {}

    fn damage(&mut self, _: FileIssue) {
        self.is_damaged = true;
    }
}

/// Notes for each CPU of a buffer the number of events behind its last one in the file. Only the data of CPUs whose
/// statistics have such events are read. Without any event in the file there is no last one.
pub(super) fn settle<'s>(
    source: &Source,
    pool: &Pool,
    lanes: &mut [CpuPages],
    stat_of: impl Fn(Cpu) -> Option<&'s RecorderStat>,
) {
    let mut candidates = Vec::new();
    for (place, pages) in lanes.iter().enumerate() {
        let stat = stat_of(pages.cpu).filter(|stat| stat.unread > 0 && !pages.is_cut);
        if let Some((stat, recorded)) = stat.and_then(|stat| Some((stat, stat.recorded?))) {
            candidates.push((place, pages, stat.unread, recorded.saturating_sub(stat.unread)));
        }
    }
    let found = parallel(pool, candidates, |(place, pages, unread, read)| {
        let mut records = RecordCount::default();
        for unit in 0..pages.units() {
            pages.walk(source, unit, &mut records);
        }
        let are_behind = read > 0 && records.number == read && !records.is_damaged;
        (place, if are_behind { unread } else { 0 })
    });
    for (place, unread) in found {
        if let Some(pages) = lanes.get_mut(place) {
            pages.unread = unread;
            pages.recorded = pages.recorded.map(|recorded| recorded.saturating_sub(unread));
        }
    }
}

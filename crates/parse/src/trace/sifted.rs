//! A trace with some of its events alone, as if no others had been recorded.

use super::Trace;
use crate::decode::format::EventFormat;
use crate::decode::plan::CommonAt;
use crate::error::Error;
use crate::file::source::Source;
use crate::issue::FileIssue;
use crate::ring::page::{Loss, Raw};
use crate::ring::records::{UnitRecords, Units};
use crate::ring::unit::{CpuPages, Store, Visitor};
use sched::EventIssue;
use std::sync::{Arc, OnceLock};

/// The records of lanes whose events are kept, unit by unit.
#[derive(Debug)]
struct SiftedUnits {
    source: Arc<Source>,
    lanes: Vec<CpuPages>,
    common: CommonAt,
    kept: Arc<[bool]>,
}

impl Units for SiftedUnits {
    fn read(&self, lane: usize, unit: usize, records: &mut UnitRecords<'_>) -> Result<(), FileIssue> {
        let pages = self.lanes.get(lane).ok_or(FileIssue::TruncatedData)?;
        pages.with_bytes(&self.source, unit, |bytes| match bytes {
            Ok(bytes) => pages.walk_bytes(bytes, &mut Sieve { records, common: self.common, kept: &self.kept }),
            // The defect itself was found when all events were counted.
            Err(_) => records.lost(None),
        });
        Ok(())
    }

    fn size(&self, lane: usize, unit: usize) -> u64 {
        self.lanes.get(lane).map_or(0, |pages| {
            let place = pages.place(unit);
            place.end.saturating_sub(place.start)
        })
    }
}

/// A visitor that passes on the kept records, and all losses.
struct Sieve<'s, 'b> {
    records: &'s mut UnitRecords<'b>,
    common: CommonAt,
    kept: &'s [bool],
}

impl Visitor for Sieve<'_, '_> {
    fn record(&mut self, raw: &Raw<'_>) {
        let id = self.common.id(raw.payload, raw.endian);
        if id.is_some_and(|id| self.kept.get(usize::from(id)).copied().unwrap_or(false)) {
            self.records.record(raw.ts, raw.payload);
        }
    }

    fn gap(&mut self, loss: Loss) {
        self.records.lost(loss.count);
    }

    fn damage(&mut self, _: FileIssue) {}
}

impl Trace {
    /// Leaves out all events but those of formats that `keeps` chooses, as if no others had been recorded. Times still count from the first event
    /// of all.
    ///
    /// # Errors
    ///
    /// Those of opening the file once more.
    pub fn only(mut self, keeps: impl Fn(&EventFormat) -> bool) -> Result<Trace, Error> {
        let start = self.start();
        let found = self.counts().diagnostics.clone();
        for (what, count, place) in found.iter().filter(|(what, ..)| *what != EventIssue::EventsLost) {
            self.diagnostics.add_many_at(what, count, || place.unwrap_or_default().to_owned());
        }
        let mut kept = vec![false; usize::from(u16::MAX).saturating_add(1)];
        for format in self.formats.iter().filter(|format| keeps(format)) {
            if let Some(kept) = kept.get_mut(usize::from(format.id)) {
                *kept = true;
            }
        }
        let kept: Arc<[bool]> = kept.into();
        let source = self.source.again().map_err(|source| Error::Io { path: "the trace".into(), source })?;
        let source = Arc::new(source);
        for lanes in &mut self.lanes {
            let (source, kept) = (Arc::clone(&source), Arc::clone(&kept));
            let units: Arc<dyn Units> =
                Arc::new(SiftedUnits { source, lanes: lanes.clone(), common: self.common, kept });
            for (lane, pages) in lanes.iter_mut().enumerate() {
                pages.store = Store::Units { source: Arc::clone(&units), lane, count: pages.units() };
                // The recorder counted all events; those that it counted beyond them were found above.
                (pages.recorded, pages.unread) = (None, 0);
            }
        }
        self.forget();
        self.start = OnceLock::from(start);
        self.count_as_recorded();
        Ok(self)
    }

    /// Forgets all that was found in the events.
    fn forget(&mut self) {
        self.start = OnceLock::new();
        self.firsts = OnceLock::new();
        self.lasts = OnceLock::new();
        self.states = OnceLock::new();
        self.full_plan = OnceLock::new();
        self.behind_stoppers = OnceLock::new();
        self.counts = OnceLock::new();
        self.fired = OnceLock::new();
    }

    /// Gives the recorder's statistics the numbers of the events that are here.
    fn count_as_recorded(&mut self) {
        let counts = self.counts().clone();
        let names: Vec<_> = self.header.buffers.iter().map(|buffer| buffer.name.clone()).collect();
        for stat in &mut self.header.options.stats {
            let mut of_buffers = names.iter().zip(&counts.buffers);
            let buffer = of_buffers.find(|(name, _)| name.as_str() == stat.buffer.as_str()).map(|(_, counts)| counts);
            let cpu = buffer.and_then(|counts| counts.cpus.iter().find(|counted| counted.cpu.0 == stat.cpu));
            stat.recorded = stat.recorded.map(|_| cpu.map_or(0, |counted| counted.events));
        }
    }
}

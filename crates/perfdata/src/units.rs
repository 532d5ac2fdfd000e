//! The records of each CPU in units: whole stretches, cut where no sample behind the cut is earlier than one before it.
//!
//! A CPU's ring buffer is in order but for an interrupt whose event is stored before one that it interrupted. Where a task
//! has a ring buffer (`--per-thread`), the events of a CPU are in those of several tasks, and only the rounds of the
//! recorder are in order. Either way the times of the stretches show where a unit can end, and a unit is sorted when it
//! is read.

use crate::bytes::Bytes;
use crate::events::Events;
use crate::limits;
use crate::maps::ProcessMaps;
use crate::record::{PerfSample, RecordHead, SampleLayout, kind};
use crate::records::whole_records;
use crate::scan::{CpuRecords, RecordStretch};
use parse::{CallChains, ChainSample, Endian, FileIssue, ModuleInfo, Source, UnitRecords, Units};
use sched::Cpu;
use std::ops::{Range, RangeInclusive};

/// Bytes of a unit, roughly, where this number of CPUs is merged.
fn unit_size(cpus: usize) -> u64 {
    const ALL: u64 = 4 << 20;
    (ALL / cpus.max(1) as u64).clamp(16 << 10, 64 << 10)
}

#[derive(Debug)]
struct CpuRuns {
    cpu: u32,
    runs: Vec<RecordStretch>,
    units: Vec<Range<u32>>,
}

/// The records of all CPUs.
#[derive(Debug)]
pub(crate) struct PerfUnits {
    source: Source,
    endian: Endian,
    events: Events,
    /// The files that processes have mapped.
    maps: ProcessMaps,
    /// The units of each CPU, in the order of the CPUs.
    lanes: Vec<CpuRuns>,
}

/// A sample or a loss in a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TimedEntry {
    time: u64,
    what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
    /// The place of the payload in the unit's bytes.
    Sample(Range<usize>),
    Loss(Option<u64>),
}

impl PerfUnits {
    /// `file`: the size of the recording, in bytes.
    pub(crate) fn new(
        source: Source,
        file: u64,
        endian: Endian,
        events: Events,
        maps: ProcessMaps,
        cpus: Vec<(u32, CpuRecords)>,
    ) -> PerfUnits {
        let (size, most) = (unit_size(cpus.len()), limits::unit(file, cpus.len()));
        let lane = |(cpu, records): (u32, CpuRecords)| CpuRuns {
            cpu,
            units: units(&records.runs, size, most),
            runs: records.runs,
        };
        PerfUnits { source, endian, events, maps, lanes: cpus.into_iter().map(lane).collect() }
    }

    /// Returns the number of units of a lane.
    pub(crate) fn count(&self, lane: usize) -> usize {
        self.lanes.get(lane).map_or(0, |lane| lane.units.len())
    }

    fn runs(&self, lane: usize, unit: usize) -> Option<(u32, &[RecordStretch])> {
        let lane = self.lanes.get(lane)?;
        let place = lane.units.get(unit)?;
        Some((lane.cpu, lane.runs.get(place.start as usize..place.end as usize)?))
    }

    /// The sample of a tracepoint on this CPU in the body of a record, with its layout.
    fn sample<'b>(&self, cpu: u32, body: &'b [u8]) -> Option<(SampleLayout, PerfSample<'b>)> {
        let (layout, is_repeated) = self.events.of_sample(body, self.endian)?;
        if is_repeated || !layout.is_usable() {
            return None;
        }
        let sample = layout.sample(body, self.endian)?;
        (sample.cpu == cpu && !sample.raw.is_empty()).then_some((layout, sample))
    }

    /// The runs of the unit of a CPU that covers an instant, and the times of its first and last sample.
    fn runs_at(&self, cpu: u32, time: u64) -> Option<(&[RecordStretch], RangeInclusive<u64>)> {
        let number = self.lanes.binary_search_by_key(&cpu, |lane| lane.cpu).ok()?;
        let lane = self.lanes.get(number)?;
        let is_before = |unit: &Range<u32>| {
            let runs = lane.runs.get(unit.start as usize..unit.end as usize).unwrap_or_default();
            runs.iter().all(|run| run.last < time)
        };
        let (_, runs) = self.runs(number, lane.units.partition_point(is_before))?;
        let times = runs.iter().map(|run| run.first).min()?..=runs.iter().map(|run| run.last).max()?;
        times.contains(&time).then_some((runs, times))
    }

    /// Passes the tracepoints' samples with values of counters to `take`, in the order of the file, from the unit of a
    /// CPU that covers an instant; returns the times that it covers.
    pub(crate) fn counts_at(
        &self,
        cpu: u32,
        time: u64,
        take: &mut dyn FnMut(SampleLayout, &PerfSample<'_>),
    ) -> Option<RangeInclusive<u64>> {
        let (runs, times) = self.runs_at(cpu, time)?;
        let mut buffer = Vec::new();
        for run in runs {
            let bytes = self.source.read(&(run.at..run.at.saturating_add(run.size.into())), &mut buffer)?;
            for (head, place) in whole_records(bytes, self.endian) {
                let body = bytes.get(place.start.saturating_add(RecordHead::SIZE)..place.end).unwrap_or_default();
                let sample = self.sample(cpu, body).filter(|_| head.kind == kind::SAMPLE);
                if let Some((layout, sample)) = sample.filter(|(layout, _)| layout.has_group()) {
                    take(layout, &sample);
                }
            }
        }
        Some(times)
    }

    /// The byte order of the records.
    pub(crate) fn endian(&self) -> Endian {
        self.endian
    }

    /// The samples and losses of a CPU in the bytes of a run, which begin at `start` of the unit's bytes.
    fn collect(&self, cpu: u32, bytes: &[u8], start: usize, entries: &mut Vec<TimedEntry>) {
        for (head, place) in whole_records(bytes, self.endian) {
            let body = bytes.get(place.start.saturating_add(RecordHead::SIZE)..place.end).unwrap_or_default();
            match head.kind {
                kind::SAMPLE => {
                    if let Some((_, sample)) = self.sample(cpu, body) {
                        let at = (sample.raw.as_ptr() as usize).wrapping_sub(bytes.as_ptr() as usize);
                        let at = start.saturating_add(at);
                        let what = What::Sample(at..at.saturating_add(sample.raw.len()));
                        entries.push(TimedEntry { time: sample.time, what });
                    }
                }
                kind::LOST => {
                    let layout = self.events.of_other(body, self.endian);
                    if layout.and_then(|layout| layout.trailer(body, self.endian).cpu) == Some(cpu) {
                        let mut bytes = Bytes::new(body, self.endian);
                        let (_id, count) = (bytes.u64(), bytes.u64());
                        entries.push(TimedEntry { time: u64::MAX, what: What::Loss(count) });
                    }
                }
                _ => {}
            }
        }
    }
}

impl Units for PerfUnits {
    fn read(&self, lane: usize, unit: usize, records: &mut UnitRecords<'_>) -> Result<(), FileIssue> {
        let Some((cpu, runs)) = self.runs(lane, unit) else { return Ok(()) };
        let (mut bytes, mut buffer, mut entries) = (Vec::new(), Vec::new(), Vec::new());
        for run in runs {
            if run.after_damage {
                entries.push(TimedEntry { time: u64::MAX, what: What::Loss(None) });
            }
            let place = run.at..run.at.saturating_add(run.size.into());
            let read = self.source.read(&place, &mut buffer).ok_or(FileIssue::TruncatedData)?;
            self.collect(cpu, read, bytes.len(), &mut entries);
            bytes.extend_from_slice(read);
        }
        sort(&mut entries);
        for entry in entries {
            match entry.what {
                What::Sample(place) => records.record(entry.time, bytes.get(place).unwrap_or_default()),
                What::Loss(count) => records.lost(count),
            }
        }
        Ok(())
    }

    fn size(&self, lane: usize, unit: usize) -> u64 {
        self.runs(lane, unit).map_or(0, |(_, runs)| runs.iter().map(|run| u64::from(run.size)).sum())
    }
}

impl CallChains for PerfUnits {
    fn module_of(&self, process: u32, address: u64) -> Option<(u32, u64)> {
        self.maps.find(process, address)
    }

    fn module(&self, module: u32) -> Option<&ModuleInfo> {
        self.maps.info(module)
    }

    fn each(&self, take: &mut dyn FnMut(&ChainSample<'_>)) {
        let mut buffer = Vec::new();
        for lane in &self.lanes {
            for run in &lane.runs {
                let place = run.at..run.at.saturating_add(run.size.into());
                let Some(bytes) = self.source.read(&place, &mut buffer) else { continue };
                for (head, place) in whole_records(bytes, self.endian) {
                    let body = bytes.get(place.start.saturating_add(RecordHead::SIZE)..place.end).unwrap_or_default();
                    let sample = self.sample(lane.cpu, body).filter(|_| head.kind == kind::SAMPLE);
                    if let Some((_, sample)) = sample.filter(|(_, sample)| !sample.chain.is_empty()) {
                        let PerfSample { time, process, chain, raw: record, .. } = sample;
                        take(&ChainSample { cpu: Cpu(lane.cpu), time, process, record, chain });
                    }
                }
            }
        }
    }
}

/// Sorts by time. The kernel stores a loss when it has room again, just before the next sample: it has that one's place,
/// since its own time is a little later.
fn sort(entries: &mut [TimedEntry]) {
    let mut next = u64::MAX;
    for entry in entries.iter_mut().rev() {
        match entry.what {
            What::Sample(_) => next = entry.time,
            What::Loss(_) => entry.time = next,
        }
    }
    if !entries.is_sorted_by_key(|entry| entry.time) {
        entries.sort_by_key(|entry| entry.time);
    }
}

/// Units of about `size` bytes, each of whole runs; of `most` where their times overlap.
fn units(runs: &[RecordStretch], size: u64, most: u64) -> Vec<Range<u32>> {
    // The earliest time from each run on.
    let mut earliest = vec![u64::MAX; runs.len().saturating_add(1)];
    let mut least = u64::MAX;
    for (run, slot) in runs.iter().zip(&mut earliest).rev() {
        least = least.min(run.first);
        *slot = least;
    }
    let (mut units, mut start, mut bytes, mut latest) = (Vec::new(), 0u32, 0u64, 0u64);
    for (number, run) in runs.iter().enumerate() {
        bytes = bytes.saturating_add(run.size.into());
        latest = latest.max(run.last);
        let behind = number.saturating_add(1);
        let next = earliest.get(behind).copied().unwrap_or(u64::MAX);
        if behind == runs.len() || bytes >= size && latest <= next || bytes >= most {
            let end = u32::try_from(behind).unwrap_or(u32::MAX);
            units.push(start..end);
            (start, bytes) = (end, 0);
        }
    }
    units
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIT: u64 = 16 << 20;

    fn run(size: u32, first: u64, last: u64) -> RecordStretch {
        RecordStretch { at: 0, size, after_damage: false, first, last }
    }

    #[test]
    fn a_unit_ends_where_nothing_behind_it_is_earlier() {
        let runs = [run(10, 1, 5), run(10, 4, 9), run(10, 9, 12), run(10, 30, 40), run(10, 20, 25), run(10, 41, 50)];
        assert_eq!(units(&runs, 10, UNIT), [0..2, 2..3, 3..5, 5..6]);
        assert_eq!(units(&runs, 25, UNIT), [0..3, 3..6]);
        assert_eq!(units(&[], 10, UNIT), []);
        // Losses alone have no time.
        assert_eq!(units(&[run(10, u64::MAX, 0), run(10, 5, 5)], 10, UNIT), [0..1, 1..2]);
        // A time in the far future at the start does not keep all of a file in one unit.
        let half = (UNIT / 2) as u32;
        assert_eq!(units(&[run(half, u64::MAX, u64::MAX), run(half, 1, 2), run(half, 3, 4)], 10, UNIT), [0..2, 2..3]);
        // The units of all CPUs of a small file take little memory together.
        assert_eq!([1, 4, 256, 60_000].map(|cpus| limits::unit(1 << 20, cpus)), [UNIT, 33 << 18, 33 << 12, 64 << 10]);
        assert_eq!(limits::unit(8 << 30, 256), UNIT);
    }

    #[test]
    fn a_loss_stays_before_its_sample() {
        let sample = |time| TimedEntry { time, what: What::Sample(0..0) };
        let loss = || TimedEntry { time: u64::MAX, what: What::Loss(Some(3)) };
        let mut entries = [sample(5), loss(), sample(9), sample(8), loss()];
        sort(&mut entries);
        let times: Vec<(u64, bool)> =
            entries.iter().map(|entry| (entry.time, entry.what == What::Loss(Some(3)))).collect();
        assert_eq!(times, [(5, false), (8, false), (9, true), (9, false), (u64::MAX, true)]);
    }
}

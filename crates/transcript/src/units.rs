//! Units of sorted records: parts of all streams of a CPU between two places in their common order.
//!
//! That order is by time, then by stream, then as the stream has them. A unit begins with a run, at its first record; of a stream whose
//! run lies across the border, that run is read for both units.

use crate::limits;
use crate::run::{Entries, Entry};
use crate::sorter::{Run, SortedLane};
use parse::{FileIssue, Source, UnitRecords, Units};
use std::ops::Range;
use std::sync::Mutex;
use zstd::bulk::Decompressor;

/// Bytes of a unit, roughly, where this number of CPUs is merged.
fn unit_size(cpus: usize) -> u64 {
    const ALL: u64 = 4 << 20;
    (ALL / cpus.max(1) as u64).clamp(limits::RUN as u64, 64 << 10)
}

/// A place in the common order of the records of all streams: time, stream, run.
type UnitPlace = (u64, usize, usize);

#[derive(Debug)]
struct CutLane {
    streams: Vec<Vec<Run>>,
    /// The places where units begin.
    begins: Vec<UnitPlace>,
}

/// A unit: where it begins and ends, and the numbers of the runs that have records of it, by stream.
#[derive(Debug)]
struct CutUnit<'u> {
    lane: &'u CutLane,
    begin: UnitPlace,
    end: UnitPlace,
    runs: Vec<(usize, Range<usize>)>,
}

/// The entries of one stream in a unit.
struct StreamEntries<'e> {
    stream: usize,
    /// The runs that are left, each with its number and its bytes.
    runs: std::slice::Iter<'e, (usize, u64, Vec<u8>)>,
    number: usize,
    entries: Entries<'e>,
    /// The next entry.
    next: Option<(u64, Entry<'e>)>,
}

impl<'e> StreamEntries<'e> {
    fn new(stream: usize, runs: &'e [(usize, u64, Vec<u8>)], begin: UnitPlace) -> StreamEntries<'e> {
        let mut entries =
            StreamEntries { stream, runs: runs.iter(), number: 0, entries: Entries::new(&[], 0), next: None };
        entries.pass();
        while entries.place().is_some_and(|place| place < begin) {
            entries.pass();
        }
        entries
    }

    /// The place of the next entry.
    fn place(&self) -> Option<UnitPlace> {
        self.next.map(|(time, _)| (time, self.stream, self.number))
    }

    fn pass(&mut self) {
        loop {
            self.next = self.entries.next();
            if self.next.is_some() {
                return;
            }
            let Some((number, first, bytes)) = self.runs.next() else { return };
            (self.number, self.entries) = (*number, Entries::new(bytes, *first));
        }
    }
}

impl Units for SortedUnits {
    fn read(&self, lane: usize, unit: usize, records: &mut UnitRecords<'_>) -> Result<(), FileIssue> {
        let Some(unit) = self.unit(lane, unit) else { return Ok(()) };
        let mut unpacked = Vec::new();
        for (stream, numbers) in &unit.runs {
            let runs = unit.lane.streams.get(*stream).and_then(|runs| runs.get(numbers.clone())).unwrap_or_default();
            let runs = numbers.clone().zip(runs).map(|(number, run)| Ok((number, run.first, self.unpack(run)?)));
            unpacked.push((*stream, runs.collect::<Result<Vec<_>, FileIssue>>()?));
        }
        let mut streams: Vec<_> =
            unpacked.iter().map(|(stream, runs)| StreamEntries::new(*stream, runs, unit.begin)).collect();
        while let Some((place, number)) =
            streams.iter().enumerate().filter_map(|(number, stream)| Some((stream.place()?, number))).min()
        {
            let Some(stream) = streams.get_mut(number).filter(|_| place < unit.end) else { break };
            match stream.next {
                Some((time, Entry::Record(payload))) => records.record(time, payload),
                Some((_, Entry::Loss(count))) => records.lost(count),
                None => {}
            }
            stream.pass();
        }
        Ok(())
    }

    fn size(&self, lane: usize, unit: usize) -> u64 {
        let Some(unit) = self.unit(lane, unit) else { return 0 };
        let packed = |(stream, numbers): &(usize, Range<usize>)| {
            let runs = unit.lane.streams.get(*stream).and_then(|runs| runs.get(numbers.clone())).unwrap_or_default();
            runs.iter().map(|run| u64::from(run.packed)).sum::<u64>()
        };
        unit.runs.iter().map(packed).sum()
    }
}

/// The records of all CPUs in units.
pub(crate) struct SortedUnits {
    source: Source,
    lanes: Vec<CutLane>,
    /// Contexts of decompression that no thread uses now: as many as threads have used at once.
    contexts: Mutex<Vec<Decompressor<'static>>>,
}

impl std::fmt::Debug for SortedUnits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SortedUnits").field("source", &self.source).field("lanes", &self.lanes).finish_non_exhaustive()
    }
}

impl SortedUnits {
    pub(crate) fn new(lanes: Vec<SortedLane>, source: Source) -> SortedUnits {
        let size = unit_size(lanes.len());
        let lanes =
            lanes.into_iter().map(|lane| CutLane { begins: begins(&lane.streams, size), streams: lane.streams });
        SortedUnits { source, lanes: lanes.collect(), contexts: Mutex::default() }
    }

    /// Returns the number of units of a lane.
    pub(crate) fn count(&self, lane: usize) -> usize {
        self.lanes.get(lane).map_or(0, |lane| lane.begins.len())
    }

    /// The unit of a lane.
    fn unit(&self, lane: usize, unit: usize) -> Option<CutUnit<'_>> {
        let lane = self.lanes.get(lane)?;
        let begin = *lane.begins.get(unit)?;
        let end = lane.begins.get(unit.saturating_add(1)).copied().unwrap_or((u64::MAX, usize::MAX, usize::MAX));
        let within = |(stream, runs): (usize, &'_ Vec<Run>)| {
            let from = partition(runs, |run, number| (run.last, stream, number) < begin);
            let to = partition(runs, |run, number| (run.first, stream, number) < end);
            (stream, from..to)
        };
        let runs = lane.streams.iter().enumerate().map(within).filter(|(_, runs)| !runs.is_empty()).collect();
        Some(CutUnit { lane, begin, end, runs })
    }

    /// The entries of a run.
    fn unpack(&self, run: &Run) -> Result<Vec<u8>, FileIssue> {
        let place = run.at..run.at.saturating_add(run.packed.into());
        let packed = self.source.get(&place).ok_or(FileIssue::TruncatedData)?;
        // Making a context takes as long as decompressing a run.
        let context = self.contexts.lock().ok().and_then(|mut contexts| contexts.pop());
        let made = context.map_or_else(Decompressor::new, Ok);
        let mut context = made.map_err(|_| FileIssue::CorruptChunk)?;
        let plain = context.decompress(&packed, run.size as usize).map_err(|_| FileIssue::CorruptChunk);
        if let Ok(mut contexts) = self.contexts.lock() {
            contexts.push(context);
        }
        plain
    }
}

/// The number of runs at the start for which `is_before` holds.
fn partition(runs: &[Run], is_before: impl Fn(&Run, usize) -> bool) -> usize {
    let (mut low, mut high) = (0, runs.len());
    while low < high {
        let middle = low.midpoint(high);
        if runs.get(middle).is_some_and(|run| is_before(run, middle)) {
            low = middle.saturating_add(1);
        } else {
            high = middle;
        }
    }
    low
}

/// The places where units of about `size` bytes begin: each at the start of a run.
fn begins(streams: &[Vec<Run>], size: u64) -> Vec<UnitPlace> {
    let place = |(stream, runs): (usize, &Vec<Run>)| {
        let place = move |(number, run): (usize, &Run)| ((run.first, stream, number), run.size);
        runs.iter().enumerate().map(place).collect::<Vec<_>>()
    };
    let mut all: Vec<(UnitPlace, u32)> = streams.iter().enumerate().flat_map(place).collect();
    all.sort_unstable();
    let (mut begins, mut bytes) = (Vec::new(), size);
    for (place, length) in all {
        if bytes >= size {
            begins.push(place);
            bytes = 0;
        }
        bytes = bytes.saturating_add(length.into());
    }
    begins
}

//! Records in the order of a file, sorted by CPU and time in constant memory.
//!
//! The records of a CPU go to at most eight streams, each in order of time: a record goes where the latest time is the least before its
//! own. Files are almost sorted, so that one stream is the rule; what a file has in parts that overlap, such as wakeups behind all
//! switches, takes one more. A stream is written in runs, compressed.

use crate::limits;
use crate::run::{self, Entry};
use crate::sorted::Sorted;
use parse::Source;
use std::collections::BTreeMap;
use std::io::Error;

/// A run that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) at: u64,
    /// Bytes in the file, and of the entries.
    pub(crate) packed: u32,
    pub(crate) size: u32,
    /// The times of its first and last entry.
    pub(crate) first: u64,
    pub(crate) last: u64,
}

/// Runs one behind the other, in the order of time.
#[derive(Debug, Default)]
struct Stream {
    runs: Vec<Run>,
    buffer: Vec<u8>,
    first: u64,
    last: u64,
}

/// The records of a CPU.
#[derive(Debug, Default)]
struct Lane {
    streams: Vec<Stream>,
    records: u64,
    lost: u64,
    /// A loss that goes before the next record.
    loss: Option<Option<u64>>,
    /// The number of losses on all CPUs that its entries and its loss have.
    losses: u64,
}

/// The sorted records of a CPU.
#[derive(Debug)]
pub(crate) struct SortedLane {
    pub(crate) cpu: u32,
    pub(crate) streams: Vec<Vec<Run>>,
    pub(crate) records: u64,
    pub(crate) lost: u64,
}

/// The sorter of the records of all CPUs, in constant memory.
#[derive(Default)]
pub(crate) struct Sorter {
    lanes: BTreeMap<u32, Lane>,
    out: Sorted,
    buffered: usize,
    /// The number of losses on all CPUs. Each CPU takes them when it has its next record: a file can have millions of them, on any
    /// number of CPUs.
    losses: u64,
    packer: Option<zstd::bulk::Compressor<'static>>,
    /// Records that fit in no stream, and were given the time of another.
    late: u64,
}

impl std::fmt::Debug for Sorter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sorter").field("lanes", &self.lanes.len()).field("late", &self.late).finish()
    }
}

impl Sorter {
    /// Adds a record of a CPU.
    pub(crate) fn record(&mut self, cpu: u32, time: u64, payload: &[u8]) -> Result<(), Error> {
        let lane = lane(&mut self.lanes, cpu, self.losses);
        lane.records = lane.records.saturating_add(1);
        let loss = lane.loss.take();
        let number = lane.stream(time);
        let Some(stream) = lane.streams.get_mut(number) else { return Ok(()) };
        self.late = self.late.saturating_add(u64::from(time < stream.last));
        let before = stream.buffer.len();
        if let Some(count) = loss {
            stream.put(time, Entry::Loss(count));
        }
        stream.put(time, Entry::Record(payload));
        let size = stream.buffer.len();
        self.buffered = self.buffered.saturating_add(size.saturating_sub(before));
        if size >= limits::RUN {
            self.flush(cpu, number)?;
        }
        if self.buffered >= limits::BUFFERED {
            self.flush_all()?;
        }
        Ok(())
    }

    /// Adds a loss on a CPU before its next record; several of them become one.
    pub(crate) fn lost(&mut self, cpu: u32, events: Option<u64>) {
        let lane = lane(&mut self.lanes, cpu, self.losses);
        lane.lost = lane.lost.saturating_add(events.unwrap_or(0));
        lane.lose(events);
    }

    /// Adds a loss on each CPU that has records.
    pub(crate) fn lost_everywhere(&mut self) {
        self.losses = self.losses.saturating_add(1);
    }

    /// The number of records that fit in no stream.
    pub(crate) fn late(&self) -> u64 {
        self.late
    }

    /// Returns the runs of each CPU, and the source in which they are.
    pub(crate) fn finish(mut self) -> Result<(Vec<SortedLane>, Source), Error> {
        for lane in self.lanes.values_mut() {
            lane.take_losses(self.losses);
            // A loss behind the last record has its time.
            if let (Some(loss), Some(stream)) =
                (lane.loss.take(), lane.streams.iter_mut().max_by_key(|stream| stream.last))
            {
                stream.put(stream.last, Entry::Loss(loss));
            }
        }
        self.flush_all()?;
        let lane = |(cpu, lane): (u32, Lane)| SortedLane {
            cpu,
            streams: lane.streams.into_iter().map(|stream| stream.runs).collect(),
            records: lane.records,
            lost: lane.lost,
        };
        let lanes = self.lanes.into_iter().map(lane).filter(|lane| lane.records > 0).collect();
        Ok((lanes, self.out.into_source()))
    }

    fn flush_all(&mut self) -> Result<(), Error> {
        let places: Vec<(u32, usize)> =
            self.lanes.iter().flat_map(|(cpu, lane)| (0..lane.streams.len()).map(|number| (*cpu, number))).collect();
        places.into_iter().try_for_each(|(cpu, number)| self.flush(cpu, number))
    }

    /// Writes the entries of a stream that are in memory as a run.
    fn flush(&mut self, cpu: u32, number: usize) -> Result<(), Error> {
        let keeps = self.lanes.len() <= limits::KEPT;
        let stream = self.lanes.get_mut(&cpu).and_then(|lane| lane.streams.get_mut(number));
        let Some(stream) = stream.filter(|stream| !stream.buffer.is_empty()) else { return Ok(()) };
        if self.packer.is_none() {
            self.packer = Some(zstd::bulk::Compressor::new(1)?);
        }
        let Some(packer) = &mut self.packer else { return Ok(()) };
        let packed = packer.compress(&stream.buffer)?;
        let at = self.out.append(&packed)?;
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        stream.runs.push(Run {
            at,
            packed: length(&packed),
            size: length(&stream.buffer),
            first: stream.first,
            last: stream.last,
        });
        self.buffered = self.buffered.saturating_sub(stream.buffer.len());
        stream.buffer.clear();
        if !keeps {
            stream.buffer = Vec::new();
        }
        Ok(())
    }
}

/// The records of a CPU, with the losses on all CPUs since it had its first.
fn lane(lanes: &mut BTreeMap<u32, Lane>, cpu: u32, losses: u64) -> &mut Lane {
    let lane = lanes.entry(cpu).or_insert_with(|| Lane { losses, ..Lane::default() });
    lane.take_losses(losses);
    lane
}

impl Lane {
    /// Adds a loss before the next record; several of them become one.
    fn lose(&mut self, events: Option<u64>) {
        self.loss = Some(match self.loss {
            None => events,
            Some(before) => before.zip(events).map(|(a, b)| a.saturating_add(b)),
        });
    }

    /// Adds a loss if there were some on all CPUs since the last time.
    fn take_losses(&mut self, losses: u64) {
        if std::mem::replace(&mut self.losses, losses) < losses {
            self.lose(None);
        }
    }

    /// The number of the stream for a record of this time.
    fn stream(&mut self, time: u64) -> usize {
        let fits = self.streams.iter().enumerate().filter(|(_, stream)| stream.last <= time);
        if let Some((number, _)) = fits.max_by_key(|(_, stream)| stream.last) {
            return number;
        }
        if self.streams.len() < limits::STREAMS {
            self.streams.push(Stream::default());
            return self.streams.len().saturating_sub(1);
        }
        let earliest = self.streams.iter().enumerate().min_by_key(|(_, stream)| stream.last);
        earliest.map_or(0, |(number, _)| number)
    }
}

impl Stream {
    /// Appends an entry, at the time of the latest one if that is later.
    fn put(&mut self, time: u64, entry: Entry<'_>) {
        let time = time.max(self.last);
        if self.buffer.is_empty() {
            (self.first, self.last) = (time, time);
        }
        run::put(&mut self.buffer, time.saturating_sub(self.last), entry);
        self.last = time;
    }
}

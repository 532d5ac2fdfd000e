//! One pass over all records: where those of each CPU are, and what else the file has.
//!
//! The recorder empties the ring buffer of one CPU after the other, round by round, so that the records of a CPU lie in
//! stretches. In an uncompressed file these are read later where they are: only their places and times are kept
//! ([`RecordStretch`]). Compressed records, and those of a file in which hardly two of a CPU follow one another, are written anew,
//! sorted by CPU ([`Sorted`]).

use crate::bytes::Bytes;
use crate::decompress::{CompressedPiece, Decompressor};
use crate::header::PerfHeader;
use crate::limits;
use crate::machine::feature;
use crate::maps::ProcessMaps;
use crate::memberships::Memberships;
use crate::record::{RecordHead, kind};
use crate::records::{RecordCursor, RecordsEnd, whole_records};
use crate::switches::Switches;
use parse::{Endian, FileIssue, Source};
use sched::seeded::SeededMap;
use sched::{Comm, Cpu, Diagnostics, Pid};
use std::collections::BTreeMap;
use transcript::Sorted;

/// A stretch of the records of a CPU. Records of others, and of kinds that are not events, may be among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordStretch {
    pub(crate) at: u64,
    pub(crate) size: u32,
    /// Records of the CPU before it could not be read.
    pub(crate) after_damage: bool,
    /// The time of its earliest sample; the largest number if there is none.
    pub(crate) first: u64,
    /// The time of its latest sample; zero if there is none.
    pub(crate) last: u64,
}

/// The records of a CPU.
#[derive(Clone, Debug, Default)]
pub(crate) struct CpuRecords {
    pub(crate) runs: Vec<RecordStretch>,
    /// Samples of tracepoints.
    pub(crate) events: u64,
    /// Records that the kernel counted as lost where it could say so in the buffer.
    pub(crate) lost: u64,
    /// Sorted records of the CPU that are not written yet.
    buffer: Vec<u8>,
    pending: Option<RecordStretch>,
    damages: u64,
}

/// The findings of the pass.
#[derive(Debug, Default)]
pub(crate) struct Scanned {
    pub(crate) cpus: BTreeMap<u32, CpuRecords>,
    /// Records sorted by CPU, which the runs are places in; `None` where these are places in the file.
    pub(crate) sorted: Option<Source>,
    pub(crate) compression: bool,
    /// The names of tasks as of the end of the recording.
    pub(crate) names: SeededMap<Pid, Comm>,
    /// The files that processes have mapped.
    pub(crate) maps: ProcessMaps,
    /// The cgroups and the processes of tasks.
    pub(crate) memberships: Memberships,
    /// Samples that were lost by the recorder's count at its end.
    pub(crate) lost_samples: u64,
    /// Lost records without a CPU.
    pub(crate) lost_anywhere: u64,
    /// The records end too early.
    pub(crate) is_cut: bool,
    /// The switches that are not samples, where there are no tracepoints.
    pub(crate) switches: Option<Box<Switches>>,
}

/// The reason why a pass stopped before the end of the records.
enum Stop {
    /// The records have to be sorted.
    Unsorted,
    /// The sorted records cannot be written.
    Io(std::io::Error),
}

/// Goes over all records. An error is one of the temporary file.
pub(crate) fn scan(
    source: &Source,
    header: &mut PerfHeader,
    diagnostics: &mut Diagnostics,
) -> Result<Scanned, std::io::Error> {
    // Where the file needs a second pass, what the first one found is forgotten.
    let before = diagnostics.clone();
    match Scan::new(source, header, diagnostics, None).run() {
        Ok(found) => return Ok(found),
        Err(Stop::Io(error)) => return Err(error),
        Err(Stop::Unsorted) => *diagnostics = before,
    }
    if header.is_stream {
        header.events = Default::default();
    }
    match Scan::new(source, header, diagnostics, Some(Sorted::default())).run() {
        Ok(found) => Ok(found),
        Err(Stop::Io(error)) => Err(error),
        Err(Stop::Unsorted) => Ok(Scanned::default()),
    }
}

struct Scan<'s> {
    source: &'s Source,
    header: &'s mut PerfHeader,
    diagnostics: &'s mut Diagnostics,
    endian: Endian,
    found: Scanned,
    sorted: Option<Sorted>,
    /// Runs of all CPUs.
    runs: usize,
    /// Bytes in the buffers of all CPUs.
    buffered: usize,
    decompressor: Decompressor,
    /// Places where records could not be read.
    damages: u64,
    repeated: u64,
    /// Whether switches are events, as there are no tracepoints; known from the first of them on.
    switches_are_alone: Option<bool>,
}

/// Bytes of records of others that a run may have in it.
const FOREIGN: u64 = 512;

/// Bytes that the buffers of all CPUs may hold.
const BUFFERED: usize = 32 << 20;

/// CPUs whose buffers keep their memory when they are written: with more of them, memory that is no longer used would add up.
const KEPT: usize = BUFFERED / (4 * limits::RUN);

impl<'s> Scan<'s> {
    fn new(
        source: &'s Source,
        header: &'s mut PerfHeader,
        diagnostics: &'s mut Diagnostics,
        sorted: Option<Sorted>,
    ) -> Scan<'s> {
        let endian = header.endian;
        let decompressor = Decompressor::new(limits::decompressed(source.size()));
        let found = Scanned::default();
        Scan {
            source,
            header,
            diagnostics,
            endian,
            found,
            sorted,
            runs: 0,
            buffered: 0,
            decompressor,
            damages: 0,
            repeated: 0,
            switches_are_alone: None,
        }
    }

    fn run(mut self) -> Result<Scanned, Stop> {
        let mut records = RecordCursor::new(self.source, self.header.data.clone(), self.endian);
        let round = self.end_of_round();
        loop {
            let (at, head, record) = match records.next() {
                Ok(next) => next,
                Err(RecordsEnd::Reached) => break,
                Err(RecordsEnd::Cut) => {
                    self.cut("the last record");
                    break;
                }
                Err(RecordsEnd::Damaged(at)) => {
                    self.damage(at);
                    if records.find_round(&round) {
                        continue;
                    }
                    self.cut("records without a size");
                    break;
                }
            };
            let body = record.get(RecordHead::SIZE..).unwrap_or_default();
            match head.kind {
                kind::COMPRESSED | kind::COMPRESSED2 => self.compressed(head.kind, body, at)?,
                kind::AUXTRACE => {
                    let behind = Bytes::new(body, self.endian).u64().unwrap_or(0);
                    if records.pass(behind).is_none() {
                        self.cut("hardware trace data");
                        break;
                    }
                }
                kind::TRACING_DATA => {
                    let size = Bytes::new(body, self.endian).u32().unwrap_or(0).into();
                    let padded = u64::next_multiple_of(size, 8);
                    let Some(place) = records.pass(padded) else {
                        self.cut("the event formats");
                        break;
                    };
                    self.tracing_data(place.start, size);
                }
                kind::USER.. => self.recorder_record(head, body),
                _ => self.record(Some(at), head, record)?,
            }
        }
        self.finish()
    }

    /// The record that ends a round, as bytes.
    fn end_of_round(&self) -> [u8; 8] {
        let size = RecordHead::SIZE as u16;
        match self.endian {
            Endian::Little => u64::from(kind::FINISHED_ROUND) | u64::from(size) << 48,
            Endian::Big => u64::from(kind::FINISHED_ROUND).swap_bytes() >> 32 | u64::from(size.swap_bytes()) << 48,
        }
        .to_le_bytes()
    }

    fn cut(&mut self, what: &str) {
        self.found.is_cut = true;
        self.diagnostics.add_at(FileIssue::TruncatedData, || what.to_owned());
    }

    fn damage(&mut self, at: u64) {
        self.damages = self.damages.saturating_add(1);
        self.diagnostics.add_at(FileIssue::CorruptRecord, || format!("offset {at}"));
    }

    fn tracing_data(&mut self, at: u64, size: u64) {
        if size > limits::TRACING_DATA {
            self.diagnostics.add_at(FileIssue::BeyondLimit, || "the event formats".to_owned());
        } else if let Some(bytes) = self.source.get(&(at..at.saturating_add(size))) {
            self.header.add_feature(feature::TRACING_DATA, bytes, self.diagnostics);
        }
    }

    /// A record of the recorder's own.
    fn recorder_record(&mut self, head: RecordHead, body: &[u8]) {
        let mut bytes = Bytes::new(body, self.endian);
        match head.kind {
            kind::ATTR if self.header.is_stream => {
                // The second word is the size of the attributes; the numbers of the event follow them.
                let size = Bytes::new(body.get(4..).unwrap_or_default(), self.endian).u32().unwrap_or(0) as usize;
                let Some((attr, ids)) = body.split_at_checked(size) else {
                    self.diagnostics.add_at(FileIssue::BadOption, || "the attributes of an event".to_owned());
                    return;
                };
                if let Some(place) = self.header.events.add(attr, self.endian) {
                    self.header.events.add_ids(place, ids, self.endian);
                }
            }
            kind::FEATURE if self.header.is_stream => {
                if let Some(number) = bytes.u64().filter(|number| *number != feature::TRACING_DATA) {
                    self.header.add_feature(number, bytes.rest().to_vec(), self.diagnostics);
                }
            }
            _ => {}
        }
    }

    /// Decompresses a record, and takes in those that are whole then.
    fn compressed(&mut self, kind: u32, body: &[u8], at: u64) -> Result<(), Stop> {
        self.found.compression = true;
        if self.sorted.is_none() {
            return Err(Stop::Unsorted);
        }
        let data = if kind == kind::COMPRESSED2 {
            let mut bytes = Bytes::new(body, self.endian);
            let size = bytes.u64().and_then(|size| usize::try_from(size).ok());
            size.and_then(|size| bytes.take(size)).unwrap_or_default()
        } else {
            body
        };
        let mut piece = CompressedPiece::new(data);
        while let Some(plain) = self.decompressor.next(&mut piece) {
            match plain {
                Ok(plain) => self.decompressed(plain, at)?,
                Err(what) => {
                    self.damages = self.damages.saturating_add(1);
                    self.diagnostics.add_at(what, || format!("offset {at}"));
                    self.found.is_cut = true;
                }
            }
        }
        Ok(())
    }

    /// Takes in the records that are whole in decompressed bytes, and keeps the rest for the next ones.
    fn decompressed(&mut self, mut plain: Vec<u8>, at: u64) -> Result<(), Stop> {
        let mut records = whole_records(&plain, self.endian);
        for (head, place) in records.by_ref() {
            self.record(None, head, plain.get(place).unwrap_or_default())?;
        }
        match records.end() {
            Ok(behind) => {
                plain.drain(..behind);
            }
            Err(_) => {
                self.damage(at);
                plain.clear();
            }
        }
        self.decompressor.keep(plain);
        Ok(())
    }

    /// A record of the kernel, at its place in the file if it is there as it is.
    fn record(&mut self, at: Option<u64>, head: RecordHead, record: &[u8]) -> Result<(), Stop> {
        let body = record.get(RecordHead::SIZE..).unwrap_or_default();
        let mut bytes = Bytes::new(body, self.endian);
        match head.kind {
            kind::SAMPLE => {
                let Some((layout, is_repeated)) = self.header.events.of_sample(body, self.endian) else {
                    return Ok(());
                };
                let Some(sample) = layout.sample(body, self.endian) else {
                    self.diagnostics.add_at(FileIssue::CorruptRecord, || "a sample".to_owned());
                    return Ok(());
                };
                if sample.raw.is_empty() || !layout.is_usable() {
                    return Ok(());
                }
                if is_repeated {
                    self.repeated = self.repeated.saturating_add(1);
                    return Ok(());
                }
                if sample.cpu >= Cpu::LIMIT {
                    self.diagnostics.add_at(FileIssue::BadCpu, || format!("CPU {} of a sample", sample.cpu));
                    return Ok(());
                }
                if layout.has_cgroup() {
                    self.found.memberships.add_sample(sample.time, layout.cgroup(body, self.endian));
                }
                let cpu = self.found.cpus.entry(sample.cpu).or_default();
                cpu.events = cpu.events.saturating_add(1);
                self.place(sample.cpu, Some(sample.time), at, record)
            }
            kind::LOST => {
                let (_id, count) = (bytes.u64(), bytes.u64().unwrap_or(0));
                let cpu = self.header.events.of_other(body, self.endian).and_then(|l| l.trailer(body, self.endian).cpu);
                if let (Some(switches), Some(cpu)) = (&mut self.found.switches, cpu) {
                    switches.transcript.lost(cpu, Some(count));
                    return Ok(());
                }
                let Some(cpu) = cpu.filter(|cpu| *cpu < Cpu::LIMIT) else {
                    self.found.lost_anywhere = self.found.lost_anywhere.saturating_add(count);
                    return Ok(());
                };
                let records = self.found.cpus.entry(cpu).or_default();
                records.lost = records.lost.saturating_add(count);
                self.place(cpu, None, at, record)
            }
            kind::LOST_SAMPLES => {
                /// `PERF_RECORD_MISC_LOST_SAMPLES_BPF`: a filter passed over them.
                const FILTERED: u16 = 1 << 15;
                if head.misc & FILTERED == 0 {
                    let count = bytes.u64().unwrap_or(0);
                    self.found.lost_samples = self.found.lost_samples.saturating_add(count);
                }
                Ok(())
            }
            kind::SWITCH | kind::SWITCH_CPU_WIDE => self.switch(head, body),
            kind::MMAP | kind::MMAP2 => {
                self.found.maps.map(body, self.endian, head.kind == kind::MMAP2, head.misc);
                Ok(())
            }
            kind::FORK => {
                self.found.maps.fork(body, self.endian);
                let numbers = [bytes.u32(), bytes.u32(), bytes.u32(), bytes.u32()];
                if let ([Some(process), Some(_), Some(task), Some(parent)], Some(time)) = (numbers, bytes.u64()) {
                    self.found.memberships.add_process(time, (task, process), true);
                    // A new task has the name of its parent until it takes one.
                    let names = &mut self.found.names;
                    if let (Some(name), Some(_)) =
                        (names.get(&Pid(parent.cast_signed())).copied(), &self.found.switches)
                        && names.len() < limits::NAMES
                    {
                        names.entry(Pid(task.cast_signed())).or_insert(name);
                    }
                }
                Ok(())
            }
            kind::COMM => {
                let ids = (bytes.u32(), bytes.u32());
                if let (Some(process), Some(task)) = ids {
                    let layout = self.header.events.of_other(body, self.endian);
                    let time = layout.and_then(|layout| layout.trailer(body, self.endian).time);
                    self.found.memberships.add_process(time.unwrap_or(0), (task, process), false);
                }
                if let (Some(_process), Some(task)) = ids
                    && self.found.names.len() < limits::NAMES
                {
                    let name = bytes.rest();
                    let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
                    let name = Comm::new(name.get(..end).unwrap_or_default());
                    self.found.names.insert(Pid(task.cast_signed()), name);
                }
                Ok(())
            }
            kind::CGROUP => {
                if let Some(id) = bytes.u64() {
                    let path = bytes.rest();
                    let end = path.iter().position(|byte| *byte == 0).unwrap_or(path.len());
                    self.found.memberships.add_path(id, path.get(..end).unwrap_or_default());
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// A switch that is no sample: where there are tracepoints, these have it.
    fn switch(&mut self, head: RecordHead, body: &[u8]) -> Result<(), Stop> {
        let header = &self.header;
        let are_alone = *self.switches_are_alone.get_or_insert_with(|| !header.events.tracepoints().0);
        if self.found.switches.is_none() && are_alone {
            self.found.switches = Some(Box::default());
        }
        let Some(switches) = &mut self.found.switches else { return Ok(()) };
        if head.kind == kind::SWITCH {
            switches.of_tasks = switches.of_tasks.saturating_add(1);
            return Ok(());
        }
        let Some(layout) = self.header.events.of_other(body, self.endian) else { return Ok(()) };
        let trailer = (layout.trailer(body, self.endian), self.endian);
        switches.add(head.misc, body, trailer, &self.found.names).map_err(Stop::Io)
    }

    /// Notes a record of a CPU where it is, or writes it.
    fn place(&mut self, cpu: u32, time: Option<u64>, at: Option<u64>, record: &[u8]) -> Result<(), Stop> {
        let records = self.found.cpus.entry(cpu).or_default();
        let after_damage = std::mem::replace(&mut records.damages, self.damages) < self.damages;
        if after_damage && self.sorted.is_some() {
            self.flush(cpu)?;
        }
        let records = self.found.cpus.entry(cpu).or_default();
        let size = record.len() as u64;
        let new = |at: u64| RecordStretch { at, size: 0, after_damage, first: u64::MAX, last: 0 };
        let run = if self.sorted.is_some() {
            records.buffer.extend_from_slice(record);
            self.buffered = self.buffered.saturating_add(record.len());
            records.pending.get_or_insert(new(0))
        } else {
            let at = at.unwrap_or_default();
            let is_next = |run: &&mut RecordStretch| {
                let end = run.at.saturating_add(run.size.into());
                let grown = at.saturating_add(size).saturating_sub(run.at);
                !after_damage && at.saturating_sub(end) <= FOREIGN && grown <= limits::RUN as u64
            };
            if records.runs.last_mut().filter(is_next).is_none() {
                self.runs = self.runs.saturating_add(1);
                records.runs.push(new(at));
            }
            let Some(run) = records.runs.last_mut() else { return Ok(()) };
            run.size = u32::try_from(at.saturating_sub(run.at)).unwrap_or(u32::MAX);
            run
        };
        run.size = run.size.saturating_add(size as u32);
        if let Some(time) = time {
            (run.first, run.last) = (run.first.min(time), run.last.max(time));
        }
        if self.runs > limits::RUNS && self.sorted.is_none() {
            return Err(Stop::Unsorted);
        }
        if records.buffer.len() >= limits::RUN {
            self.flush(cpu)?;
        }
        if self.buffered >= BUFFERED {
            self.flush_all()?;
        }
        Ok(())
    }

    /// Writes the sorted records of a CPU.
    fn flush(&mut self, cpu: u32) -> Result<(), Stop> {
        let keeps = self.found.cpus.len() <= KEPT;
        let (Some(sorted), Some(records)) = (&mut self.sorted, self.found.cpus.get_mut(&cpu)) else { return Ok(()) };
        if let Some(run) = records.pending.take() {
            let at = sorted.append(&records.buffer).map_err(Stop::Io)?;
            self.buffered = self.buffered.saturating_sub(records.buffer.len());
            records.buffer.clear();
            if !keeps {
                records.buffer = Vec::new();
            }
            records.runs.push(RecordStretch { at, ..run });
        }
        Ok(())
    }

    fn flush_all(&mut self) -> Result<(), Stop> {
        let cpus: Vec<u32> = self.found.cpus.keys().copied().collect();
        cpus.into_iter().try_for_each(|cpu| self.flush(cpu))
    }

    fn finish(mut self) -> Result<Scanned, Stop> {
        self.flush_all()?;
        if self.decompressor.has_rest() {
            self.cut("the last compressed record");
        }
        let beyond = self.header.events.beyond();
        self.diagnostics.add_many_at(FileIssue::BeyondLimit, beyond, || "events, or numbers of events".to_owned());
        self.diagnostics.add_many(FileIssue::DuplicateEvents, self.repeated);
        self.found.is_cut |= self.header.is_cut;
        self.found.cpus.retain(|_, records| records.events > 0 || records.lost > 0);
        for records in self.found.cpus.values_mut() {
            records.buffer = Vec::new();
        }
        self.found.sorted = self.sorted.map(Sorted::into_source);
        Ok(self.found)
    }
}

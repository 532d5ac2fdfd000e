//! The events of a file, taken in its order, and the recording that they become.

use crate::formats::{EventNumber, FieldDef, FieldValue, MadeFormats};
use crate::sorter::Sorter;
use crate::units::SortedUnits;
use parse::{CpuUnits, Endian, FileIssue, Origin, Recording, TaskRecords};
use sched::event::CleanText;
use sched::seeded::SeededMap;
use sched::{Comm, Cpu, Diagnostics, Pid};
use std::io::Error;
use std::sync::Arc;

/// The place of an event, and the facts that every event has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct At {
    /// The CPU that recorded the event.
    pub cpu: u32,
    /// The time, in nanoseconds of the recording's clock.
    pub time: u64,
    /// The PID of the current task of the CPU; [`Pid::UNKNOWN`] where the file does not show it.
    pub pid: i32,
    /// The flags of the context (`common_flags`).
    pub flags: u8,
    /// The preemption count, and the depth of disabled migration in its upper half.
    pub preempt: u8,
}

/// The facts about a recording that are known when all of its events are.
#[derive(Debug, Default)]
pub struct TranscriptFacts {
    /// The recording: format, recorder, kernel, clock.
    pub origin: Origin,
    /// Names of tasks that are not in their events.
    pub names: SeededMap<Pid, Comm>,
    /// The processes and the cgroups of tasks.
    pub memberships: Option<TaskRecords>,
    /// Whether the file ends too early.
    pub is_cut: bool,
    /// Events lost at no known place.
    pub lost_unmarked: u64,
    /// Findings of reading the file.
    pub diagnostics: Diagnostics,
}

/// The events of a file, as ftrace has them.
#[derive(Debug, Default)]
pub struct Transcript {
    formats: MadeFormats,
    sorter: Sorter,
    payload: Vec<u8>,
    bad_cpus: u64,
    records: u64,
}

impl Transcript {
    /// The number of an event with these fields, the same one each time. `None` beyond a limit: 8,192 events, 64 fields of one,
    /// 65,536 of all.
    pub fn event(&mut self, system: &str, name: &str, fields: impl Into<Vec<FieldDef>>) -> Option<EventNumber> {
        self.formats.number(system, name, fields.into())
    }

    /// Adds an event, with the values of its fields in their order; values that are missing or of another kind are zero or empty.
    ///
    /// # Errors
    ///
    /// Those of the temporary file.
    pub fn record(&mut self, at: At, event: EventNumber, values: &[FieldValue<'_>]) -> Result<(), Error> {
        let mut payload = std::mem::take(&mut self.payload);
        self.formats.encode(event, (at.pid, at.flags, at.preempt), values, &mut payload);
        let added = self.encoded(at.cpu, at.time, event, &mut payload);
        self.payload = payload;
        added
    }

    /// Adds an event whose record [`RecordLayout::encode`] made, for the fields of this number.
    ///
    /// # Errors
    ///
    /// Those of the temporary file.
    ///
    /// [`RecordLayout::encode`]: crate::RecordLayout::encode
    pub fn encoded(&mut self, cpu: u32, time: u64, event: EventNumber, record: &mut [u8]) -> Result<(), Error> {
        if cpu >= Cpu::LIMIT {
            self.bad_cpus = self.bad_cpus.saturating_add(1);
            return Ok(());
        }
        self.records = self.records.saturating_add(1);
        event.put(record);
        self.sorter.record(cpu, time, record)
    }

    /// Adds a loss on a CPU before its next event, of this number of events if they were counted.
    pub fn lost(&mut self, cpu: u32, events: Option<u64>) {
        if cpu < Cpu::LIMIT {
            self.sorter.lost(cpu, events);
        }
    }

    /// Adds a loss of an unknown number on each CPU that has events.
    pub fn lost_everywhere(&mut self) {
        self.sorter.lost_everywhere();
    }

    /// The number of events so far.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Returns the recording of all events.
    ///
    /// # Errors
    ///
    /// Those of the temporary file.
    pub fn finish(self, facts: TranscriptFacts) -> Result<Recording, Error> {
        let TranscriptFacts { mut origin, names, memberships, is_cut, lost_unmarked, mut diagnostics } = facts;
        diagnostics.add_many(FileIssue::BadCpu, self.bad_cpus);
        diagnostics.add_many(FileIssue::TimeBackwards, self.sorter.late());
        let tracing_data = self.formats.tracing_data(origin.uname.as_ref().and_then(version));
        let (lanes, source) = self.sorter.finish()?;
        let counts: Vec<_> = lanes.iter().map(|lane| (Cpu(lane.cpu), lane.records, lane.lost)).collect();
        // A number of CPUs that is too small for these is not that of the machine: the kernel's text has those that are online.
        if counts.last().is_some_and(|(cpu, ..)| cpu.0 >= origin.cpus) {
            origin.cpus = 0;
        }
        let units = Arc::new(SortedUnits::new(lanes, source));
        let lane = |(number, (cpu, records, lost)): (usize, (Cpu, u64, u64))| CpuUnits {
            cpu,
            units: units.count(number),
            records,
            lost,
            is_cut,
        };
        let lanes = counts.into_iter().enumerate().map(lane).collect();
        Ok(Recording {
            origin,
            endian: Endian::Little,
            tracing_data,
            names,
            lanes,
            units,
            counters: None,
            chains: None,
            memberships,
            lost_unmarked,
            diagnostics,
        })
    }
}

/// The version of the kernel in `Linux RELEASE MACHINE`.
fn version(uname: &CleanText) -> Option<(u32, u32)> {
    let mut numbers = uname.as_str().split(' ').nth(1)?.split('.');
    let digits = |part: &str| part.split(|c: char| !c.is_ascii_digit()).next().and_then(|digits| digits.parse().ok());
    Some((digits(numbers.next()?)?, digits(numbers.next()?)?))
}

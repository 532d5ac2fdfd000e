//! A part of a longer trace: what its file notes about the rest, since the records in it do not show it.
//!
//! A note holds the state before the part ([`Past`]), and the facts that the reader finds by looking at a whole trace: the
//! events that occur, the encoding of `prev_state`, the CPUs that are offline, the sleeps on a lock.

use super::{Options, Trace};
use crate::decode::prev_state::Encoding;
use crate::file::header::Header;
use crate::file::source::Source;
use crate::issue::FileIssue;
use crate::limits;
use sched::limits::TASKS;
use sched::serial::{bounded, exact};
use sched::{Comm, Cpu, Diagnostics, Past, PastMoves, Pid, Topology, Ts};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The options of reading on which times and events depend.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReadingOptions {
    buffer: Option<String>,
    clock: Option<String>,
    clock_hz: Option<u64>,
    host_time: bool,
}

impl ReadingOptions {
    pub(crate) fn of(options: &Options) -> ReadingOptions {
        let Options { buffer, clock, clock_hz, host_time, .. } = options.clone();
        ReadingOptions { buffer, clock, clock_hz, host_time }
    }

    /// The same with another name for the buffer.
    pub(crate) fn with_buffer(self, rename: &dyn Fn(&str) -> String) -> ReadingOptions {
        ReadingOptions { buffer: self.buffer.map(|name| rename(&name)), ..self }
    }
}

/// The note of a part of a trace on the rest of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Note {
    /// The options that it was made with; with others it is of no use.
    pub(crate) reading: ReadingOptions,
    /// The state before the part.
    #[serde(with = "shared")]
    pub(crate) past: Arc<Past>,
    /// The buffers that are read, by their place in the file.
    #[serde(deserialize_with = "bounded::deserialize")]
    pub(crate) selected: Vec<usize>,
    /// The number of events that the recorder counted in the whole.
    pub(crate) recorded: u64,
    /// The CPUs that have events in the whole trace.
    #[serde(deserialize_with = "bounded::deserialize")]
    pub(crate) observed: Vec<Cpu>,
    /// Numbers of the events that occur in each buffer of the whole trace, with the buffer's name.
    #[serde(deserialize_with = "bounded::deserialize")]
    pub(crate) occurring: Vec<(String, Vec<u16>)>,
    /// The encoding of `prev_state`.
    pub(crate) encoding: Encoding,
    /// The times at which CPUs went offline.
    #[serde(deserialize_with = "bounded::deserialize")]
    pub(crate) offline: Vec<(Cpu, Ts)>,
    /// Whether a CPU is unknown behind its stopper, where that is not seen to leave.
    #[serde(default)]
    pub(crate) is_behind_stoppers_unknown: bool,
    /// The number of switches in the whole trace that began a sleep on a lock.
    pub(crate) all_sleeps: u64,
    /// Switches in the part that began a sleep on a lock.
    #[serde(deserialize_with = "bounded::deserialize")]
    pub(crate) sleeps: Vec<(Ts, Cpu, Pid)>,
    /// The tasks that ran in samples of the whole trace, on which colours depend.
    pub(crate) sampled: Vec<Sampled>,
    /// Findings on the recording of another format that the whole was.
    #[serde(default, deserialize_with = "bounded::deserialize", skip_serializing_if = "Vec::is_empty")]
    pub(crate) carried: Vec<Carried>,
    /// The places of the CPUs, where the recording of another format that the whole was has them.
    #[serde(default, skip_serializing_if = "Topology::is_empty")]
    pub(crate) topology: Topology,
}

/// A finding on a recording of another format, which its events do not show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Carried {
    kind: String,
    count: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    place: Option<String>,
}

/// The findings that a reader of another format makes. Others are made again where the file of the part is opened.
const CARRIED: [FileIssue; 14] = [
    FileIssue::CorruptPage,
    FileIssue::CorruptRecord,
    FileIssue::CorruptChunk,
    FileIssue::TruncatedData,
    FileIssue::MissingDecoder,
    FileIssue::UnknownEvent,
    FileIssue::OtherClock,
    FileIssue::TimeBackwards,
    FileIssue::BadCpu,
    FileIssue::SomeTasks,
    FileIssue::RoundedTimes,
    FileIssue::UnreadLines,
    FileIssue::NoContext,
    FileIssue::UntoldLosses,
];

/// The findings on a recording of another format that a part of it has in its note.
pub(crate) fn carried(trace: &Trace) -> Vec<Carried> {
    if trace.origin().is_none() {
        return trace.note().map_or_else(Vec::new, |note| note.carried.clone());
    }
    let is_carried = |what: &sched::Diagnostic| CARRIED.iter().any(|issue| *what == *issue);
    let found = trace.diagnostics().iter().filter(|(what, ..)| is_carried(what));
    let carried = |(what, count, place): (sched::Diagnostic, u64, Option<&str>)| Carried {
        kind: what.name().to_owned(),
        count,
        place: place.map(str::to_owned),
    };
    found.map(carried).collect()
}

/// A state that several hold, written as it is.
mod shared {
    use sched::Past;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::sync::Arc;

    pub(super) fn serialize<S: Serializer>(past: &Arc<Past>, s: S) -> Result<S::Ok, S::Error> {
        past.as_ref().serialize(s)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Arc<Past>, D::Error> {
        Past::deserialize(d).map(Arc::new)
    }
}

/// A task in samples of a trace.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Sampled {
    pub(crate) pid: Pid,
    #[serde(with = "exact")]
    pub(crate) comm: Comm,
    pub(crate) ns: u64,
}

impl Carried {
    fn add(&self, diagnostics: &mut Diagnostics) {
        if let Some(what) = CARRIED.into_iter().find(|what| what.diagnostic().name() == self.kind) {
            let place = || sched::event::escape(self.place.as_deref().unwrap_or_default().as_bytes()).into_owned();
            match self.place {
                Some(_) => diagnostics.add_many_at(what, self.count, place),
                None => diagnostics.add_many(what, self.count),
            }
        }
    }
}

impl Note {
    /// The note of a file, if it has one that can be used.
    pub(super) fn read(
        source: &Source,
        header: &Header,
        options: &Options,
        diagnostics: &mut Diagnostics,
    ) -> Option<Note> {
        let part = header.options.part.as_ref()?;
        let endian = header.version.endian;
        let text = if part.size(source, endian) <= limits::PART_NOTE { part.text(source, endian) } else { None };
        let note = text.and_then(|text| serde_json::from_slice::<Note>(&text).ok());
        let note = note.filter(|note| PastMoves::is_readable(&note.past));
        let why = match note {
            Some(note) if !note.is_possible() => "its times contradict each other",
            Some(note) if note.past.tasks.len() + note.past.free.len() > TASKS => {
                "it has more tasks than a part can note"
            }
            Some(note) if note.reading == ReadingOptions::of(options) => {
                note.carried.iter().for_each(|carried| carried.add(diagnostics));
                return Some(note);
            }
            Some(_) => "it was cut with other options --buffer, --clock, --clock-hz or --host-time",
            None => "it is damaged",
        };
        diagnostics.add_at(FileIssue::LostPast, || why.to_owned());
        None
    }

    fn is_possible(&self) -> bool {
        let Past { start, end, from, to, .. } = *self.past;
        if self.topology.cpus().any(|cpu| cpu.0 >= Cpu::LIMIT) {
            return false;
        }
        Ts::MIN <= start && start <= from && from <= to && to <= end && end <= Ts::MAX
    }

    /// Whether an event of this number occurs in the whole trace, in a buffer of this name.
    fn occurs_in(&self, buffer: &str, id: u16) -> bool {
        self.occurring.iter().any(|(name, ids)| name == buffer && ids.binary_search(&id).is_ok())
    }
}

impl Trace {
    /// The state before this trace, and its place in the whole, if it is a part of a longer one (`schedviz cut`).
    pub fn past(&self) -> Option<&Arc<Past>> {
        self.note.as_ref().map(|note| &note.past)
    }

    /// The places of the CPUs, where the file has them: a recording of another format, or a part of one.
    pub fn topology(&self) -> Option<&Topology> {
        let noted = self.note.as_ref().map(|note| &note.topology);
        self.origin().map(|origin| &origin.topology).or(noted).filter(|topology| !topology.is_empty())
    }

    pub(crate) fn note(&self) -> Option<&Note> {
        self.note.as_ref()
    }

    /// Takes from the note of a part the buffers that are read and the facts about each CPU.
    pub(super) fn take_note(&mut self, note: Option<Note>) {
        let Some(note) = note else { return };
        let buffers = 0..self.lanes.len();
        self.selected = note.selected.iter().copied().filter(|buffer| buffers.contains(buffer)).collect();
        self.selected.sort_unstable();
        self.selected.dedup();
        let mut placed: Vec<Cpu> = Vec::new();
        for buffer in &self.selected {
            for pages in self.lanes.get_mut(*buffer).into_iter().flatten() {
                // The first buffer of each CPU has them.
                let is_first = !placed.contains(&pages.cpu);
                let times = note.offline.iter().filter(|(cpu, _)| is_first && *cpu == pages.cpu).map(|(_, ts)| *ts);
                let mut times: Vec<Ts> = times.collect();
                times.sort_unstable();
                pages.offline = Some(times);
                placed.push(pages.cpu);
            }
        }
        self.note = Some(note);
    }

    /// Whether an event of this number occurs in a buffer; of a part of a trace: in the whole.
    pub(crate) fn occurs_in(&self, buffer: usize, id: u16) -> bool {
        match (&self.note, self.header.buffers.get(buffer)) {
            (Some(note), Some(header)) => note.occurs_in(&header.name, id),
            _ => self.counts().buffers.get(buffer).is_some_and(|counts| counts.of(id) > 0),
        }
    }

    /// Whether an event of this number occurs in the trace; of a part of a trace: in the whole.
    pub fn occurs(&self, id: u16) -> bool {
        (0..self.header.buffers.len()).any(|buffer| self.occurs_in(buffer, id))
    }
}

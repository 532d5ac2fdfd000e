//! A trace of records that do not come from a trace.dat.

use super::{CallChains, Options, Trace};
use crate::bytes::Endian;
use crate::error::Error;
use crate::file::header::{BufferHeader, Header, RecorderStat};
use crate::file::source::Source;
use crate::issue::FileIssue;
use crate::parallel::pool;
use crate::ring::records::Units;
use crate::ring::unit::{CpuPages, Store};
use sched::event::CleanText;
use sched::seeded::SeededMap;
use sched::{Comm, Counters, Cpu, Diagnostics, Dur, Pid, Topology, Ts};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The records of one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuUnits {
    /// Number of the CPU.
    pub cpu: Cpu,
    /// Number of units of the CPU.
    pub units: usize,
    /// Number of records in the units.
    pub records: u64,
    /// Number of events that the losses in the units count.
    pub lost: u64,
    /// Whether data are missing, since the file ends before them or is damaged there.
    pub is_cut: bool,
}

/// Facts about a recording, from a file in another format than trace.dat.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// The name of the format.
    pub format: &'static str,
    /// The version of the format.
    pub version: u32,
    /// The name of the compression; empty where there is none.
    pub compression: CleanText,
    /// The recorder and its version.
    pub recorder: Option<CleanText>,
    /// The kernel in the form of `uname`, the host's name left out: `Linux RELEASE MACHINE`.
    pub uname: Option<CleanText>,
    /// The clock, as trace-cmd names it.
    pub clock: CleanText,
    /// CPUs of the machine; zero where the file does not have their number.
    pub cpus: u32,
    /// The places of the CPUs in the machine.
    pub topology: Topology,
    /// The words of the command that recorded.
    pub command: Vec<CleanText>,
}

/// A recording in another format: what it is, its event formats, and its records in units.
#[derive(Debug)]
pub struct Recording {
    /// The facts about it.
    pub origin: Origin,
    /// Byte order of the payloads.
    pub endian: Endian,
    /// The formats of events, with symbols and names, in the form that trace-cmd and perf share: `17 08 44 "tracing"`, a
    /// version, and the texts of a trace.dat of version 6.
    pub tracing_data: Vec<u8>,
    /// Names of tasks, at the end of the recording.
    pub names: SeededMap<Pid, Comm>,
    /// The CPUs with records, in order.
    pub lanes: Vec<CpuUnits>,
    /// Records of the CPUs; the lanes are numbered as in `lanes`.
    pub units: Arc<dyn Units>,
    /// Values of counters at the switches, where the recorder read any.
    pub counters: Option<Arc<dyn Counters>>,
    /// The call chains of samples, where the recorder took any.
    pub chains: Option<Arc<dyn CallChains>>,
    /// The cgroups and the processes of tasks, where the recorder took any.
    pub memberships: Option<TaskRecords>,
    /// Events that the recorder counted as lost, at no known place.
    pub lost_unmarked: u64,
    /// Findings of reading the file.
    pub diagnostics: Diagnostics,
}

/// The cgroups and the processes of tasks, as a recorder took them beside the events. Times are those of the trace's clock.
#[derive(Clone, Debug, Default)]
pub struct TaskRecords {
    /// The ID of the cgroup of a task from an instant on, in the order of time.
    pub cgroups: Vec<(Ts, Pid, u64)>,
    /// The path of each cgroup by its ID, as bytes.
    pub paths: BTreeMap<u64, Vec<u8>>,
    /// The process of a task from an instant on, by the PID of its first thread, in the order of time.
    pub processes: Vec<(Ts, Pid, Pid)>,
}

impl Trace {
    /// The cgroups and the processes of tasks that the recorder took beside the events, if it did.
    pub fn memberships(&self) -> Option<&TaskRecords> {
        self.memberships.as_ref()
    }

    /// Takes a recording in another format. Everything that reads a trace.dat reads it as well.
    pub fn of_recording(recording: Recording, options: Options) -> Result<Trace, Error> {
        let Recording { origin, endian, tracing_data, names, lanes, units, .. } = recording;
        let (lost_unmarked, mut diagnostics) = (recording.lost_unmarked, recording.diagnostics);
        let source = Source::Memory(tracing_data);
        let mut header = Header::of_tracing_data(&source, &mut diagnostics)?;
        if header.version.endian != endian {
            return Err(Error::Damaged { part: "the event formats", at: 0, expected: "the byte order of the records" });
        }
        header.version.number = origin.version;
        header.version.compression.clone_from(&origin.compression);
        header.cpus = origin.cpus;
        header.options.uname.clone_from(&origin.uname);
        header.options.writer.clone_from(&origin.recorder);
        let page_size = header.layout.size as u32;
        header.buffers = vec![BufferHeader { clock: origin.clock.clone(), page_size, ..BufferHeader::default() }];
        let stat = |lane: &CpuUnits| RecorderStat {
            cpu: lane.cpu.0,
            overrun: lane.lost,
            recorded: Some(lane.records),
            ..RecorderStat::default()
        };
        header.options.stats = lanes.iter().map(stat).collect();
        diagnostics.add_many(FileIssue::EventsDroppedUnmarked, lost_unmarked);
        let layout = header.layout;
        let pages = |(number, lane): (usize, &CpuUnits)| CpuPages {
            cpu: lane.cpu,
            layout,
            store: Store::Units { source: Arc::clone(&units), lane: number, count: lane.units },
            is_cut: lane.is_cut,
            recorded: Some(lane.records),
            overwritten: lane.lost,
            unread: 0,
            offline: None,
        };
        let is_wanted = |cpu: Cpu| options.cpus.is_empty() || options.cpus.contains(&cpu);
        header.options.stats.retain(|stat| is_wanted(Cpu(stat.cpu)));
        let lanes = vec![lanes.iter().enumerate().map(pages).filter(|pages| is_wanted(pages.cpu)).collect()];
        let pool = pool(options.threads);
        let mut trace = Trace::assemble(source, header, lanes, pool, options, diagnostics)?;
        let saved = trace.saved_names().clone();
        trace.cmdlines = saved.into_iter().chain(names).collect::<SeededMap<_, _>>().into();
        trace.origin = Some(origin);
        trace.counters = recording.counters;
        trace.chains = recording.chains;
        trace.memberships = recording.memberships;
        Ok(trace)
    }

    /// The most by which the time between two events can be wrong, where times are rounded to microseconds: one by their digits, one by the
    /// nanoseconds that order the events of a microsecond.
    pub fn rounding(&self) -> Option<Dur> {
        (self.diagnostics.count(FileIssue::RoundedTimes) > 0).then_some(Dur(2_000))
    }

    /// Whether the file is as long as it was when it was opened. Reading one that has become shorter misses events.
    pub fn is_whole(&self) -> bool {
        self.source().is_whole()
    }

    /// The facts about the recording, where it is no trace.dat.
    pub fn origin(&self) -> Option<&Origin> {
        self.origin.as_ref()
    }

    /// The values of counters that the recorder read at the switches, if it did.
    pub fn counters(&self) -> Option<&dyn Counters> {
        self.counters.as_deref()
    }
}

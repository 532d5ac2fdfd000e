//! The content of a file, for people.

use super::Trace;
use crate::decode::clock::ClockKind;
use crate::file::guest::Guest;
use crate::file::header::{BufferInfo, RecorderStat, Version};
use crate::file::time_shift::TimeShift;
use sched::Cpu;
use sched::event::CleanText;

/// The content of the file, without reading its events.
#[derive(Clone, Debug)]
pub struct TraceInfo {
    /// The version of the format.
    pub version: Version,
    /// The program that wrote it.
    pub writer: Option<CleanText>,
    /// `sysname node release machine`.
    pub uname: Option<CleanText>,
    /// The kernel's release.
    pub kernel: Option<CleanText>,
    /// The clock of the buffers that are read.
    pub clock: CleanText,
    /// The meaning of the clock's numbers.
    pub clock_kind: ClockKind,
    /// CPUs of the machine, as recorded.
    pub cpus: u32,
    /// The buffers of the file, the top-level one first.
    pub buffers: Vec<BufferInfo>,
    /// The recorder's own statistics.
    pub stats: Vec<RecorderStat>,
    /// Recorded in a guest together with its host (TIME_SHIFT).
    pub guest: bool,
    /// The number that the recordings of a host and of its guests call this one by.
    pub trace_id: Option<u64>,
    /// The trace id of the host's recording, in a guest's file; `None` if the option cannot be read.
    pub host_id: Option<u64>,
    /// The number of CPUs of a guest's file whose times can be given in the host's.
    pub shifted_cpus: usize,
    /// The guests of a host's file.
    pub guests: Vec<Guest>,
    /// The times of a guest's file are given in the host's time.
    pub host_time: bool,
}

impl TraceInfo {
    /// The CPUs that were recorded without being among `observed`, which are in order.
    pub fn silent(&self, observed: &[Cpu]) -> Vec<Cpu> {
        let all = (0..self.cpus.min(Cpu::LIMIT)).map(Cpu);
        all.filter(|cpu| observed.binary_search(cpu).is_err()).collect()
    }
}

impl Trace {
    /// The content of the file.
    pub fn info(&self) -> TraceInfo {
        let options = &self.header.options;
        TraceInfo {
            version: self.header.version.clone(),
            writer: options.writer.clone(),
            uname: options.uname.clone(),
            kernel: options.release().map(CleanText::from),
            clock: self.clock.clone(),
            clock_kind: ClockKind::of(&self.clock),
            cpus: self.header.cpus,
            buffers: self
                .header
                .buffers
                .iter()
                .zip(&self.lanes)
                .map(|(b, lanes)| BufferInfo {
                    name: b.name.clone(),
                    clock: b.clock.clone(),
                    page_size: b.page_size,
                    cpus: lanes.iter().map(|l| l.cpu.0).collect(),
                })
                .collect(),
            stats: options.stats.clone(),
            guest: options.guest,
            trace_id: options.trace_id,
            host_id: options.time_shift.as_ref().map(|shift| shift.peer),
            shifted_cpus: options.time_shift.as_ref().map_or(0, TimeShift::sampled),
            guests: options.guests.clone(),
            host_time: self.shift().is_some(),
        }
    }
}

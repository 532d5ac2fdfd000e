//! The options: small facts with numbers, in both versions (`docs/trace-dat.md`, section 5).

use super::numbers::{self, BUFFER, NAMES, PAGE, PART};
use super::{HeaderPart, ProgramMaps, Reader};
use crate::bytes::{Bytes, Eof, number, until_nul};
use crate::decode::clock::TscScale;
use crate::file::guest::Guest;
use crate::file::time_shift::TimeShift;
use crate::issue::FileIssue;
use crate::limits;
use sched::event::CleanText;
use serde::Serialize;
use std::sync::OnceLock;

/// The recorder's own statistics of one CPU, as of the end of the recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RecorderStat {
    /// The buffer; empty for the top one.
    pub buffer: CleanText,
    /// Number of the CPU.
    pub cpu: u32,
    /// Events overwritten before they were read. Some of them are marked in the pages as well.
    pub overrun: u64,
    /// Events dropped because a commit was interrupted too often. Never marked in the pages.
    pub commit_overrun: u64,
    /// Events dropped because the buffer was full (`nooverwrite`). Never marked in the pages.
    pub dropped: u64,
    /// Events that were not overwritten: those still in the buffer (`entries`), and those that had been read. The file
    /// should hold as many; so it does on every CPU with data of 129 of 131 recordings of kernels 6.1 to 7.2, losses
    /// or not.
    pub recorded: Option<u64>,
    /// Events among these that were still in the buffer (`entries`).
    pub unread: u64,
}

/// A buffer, for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BufferInfo {
    /// Name of the buffer; empty for the top-level one.
    pub name: CleanText,
    /// The clock that the file names. Wrong for instances: writers store the top buffer's.
    pub clock: CleanText,
    /// The size of its pages.
    pub page_size: u32,
    /// CPUs with data.
    pub cpus: Vec<u32>,
}

/// A BUFFER option: where an instance stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BufferOption {
    pub(crate) at: u64,
    pub(crate) name: CleanText,
    /// The rest of the payload: only version 7 has one.
    pub(crate) rows: Option<BufferRows>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BufferRows {
    pub(crate) clock: CleanText,
    pub(crate) page_size: u32,
    pub(crate) cpus: Vec<super::CpuData>,
}

/// The options of a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeaderOptions {
    pub(crate) date_us: Option<i64>,
    pub(crate) offset_ns: Option<i64>,
    pub(crate) clock: Option<CleanText>,
    pub(crate) uname: Option<CleanText>,
    pub(crate) writer: Option<CleanText>,
    pub(crate) cpu_count: Option<u32>,
    pub(crate) tsc: Option<TscScale>,
    pub(crate) guest: bool,
    pub(crate) time_shift: Option<TimeShift>,
    pub(crate) trace_id: Option<u64>,
    pub(crate) guests: Vec<Guest>,
    pub(crate) stats: Vec<RecorderStat>,
    pub(crate) buffers: Vec<BufferOption>,
    /// Offsets of the sections 16 to 21, by number less 16.
    pub(crate) sections: [Option<u64>; 6],
    /// The note on the trace that the file is a part of.
    pub(crate) part: Option<HeaderPart>,
    /// Numbers and payloads of the options, but for those that hold places of other parts of the file.
    pub(crate) raw: Vec<(u16, Vec<u8>)>,
    stats_buffer: CleanText,
    program_maps: OnceLock<ProgramMaps>,
}

impl HeaderOptions {
    /// DATE and OFFSET together, in nanoseconds.
    pub(crate) fn shift_ns(&self) -> i64 {
        self.date_us.unwrap_or(0).saturating_mul(1000).saturating_add(self.offset_ns.unwrap_or(0))
    }

    /// The maps of programs, which are read when they are asked for.
    pub(crate) fn program_maps(&self) -> &ProgramMaps {
        self.program_maps.get_or_init(|| ProgramMaps::of_options(&self.raw))
    }

    /// The release of the kernel: the second word from the end. The node name before it may hold
    /// blanks.
    pub(crate) fn release(&self) -> Option<&str> {
        self.uname.as_deref()?.split_whitespace().rev().nth(1)
    }

    /// `(6, 12)` of release 6.12.107.
    pub(crate) fn kernel(&self) -> Option<(u32, u32)> {
        let mut parts = self.release()?.split(|c: char| !c.is_ascii_digit());
        Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    }

    /// Takes one option in. Payloads may be longer than known, and short ones are ignored.
    pub(super) fn add(&mut self, reader: &mut Reader<'_>, id: u16, payload: Bytes<'_>) {
        if !matches!(id, BUFFER | PAGE..=NAMES | PART) {
            self.raw.push((id, payload.rest().to_vec()));
        }
        if self.read(reader, id, payload).is_err() {
            reader.diagnostics.add_at(FileIssue::BadOption, || format!("option {id} at offset {}", payload.at()));
        }
    }

    fn read(&mut self, reader: &mut Reader<'_>, id: u16, mut payload: Bytes<'_>) -> Result<(), Eof> {
        let text = until_nul(payload.rest());
        let shown = || CleanText::of_bytes(text.trim_ascii());
        match id {
            numbers::DATE => self.date_us = Some(number(text).ok_or(Eof)?),
            numbers::CPU_STATISTICS if self.stats.len() >= limits::STATISTICS => {
                reader.diagnostics.add_at(FileIssue::BeyondLimit, || "the recorder's statistics".to_owned());
            }
            numbers::CPU_STATISTICS => self.add_stat(text),
            BUFFER if self.buffers.len() >= limits::BUFFERS => {
                reader.diagnostics.add_at(FileIssue::BeyondLimit, || "buffers".to_owned());
            }
            BUFFER => {
                let buffer = self.read_buffer(reader, payload)?;
                self.buffers.push(buffer);
            }
            numbers::TRACE_CLOCK => self.clock = current_clock(text),
            numbers::UNAME => self.uname = Some(shown()),
            numbers::OFFSET => self.offset_ns = Some(number(text).ok_or(Eof)?),
            numbers::CPU_COUNT => self.cpu_count = Some(payload.u32()?),
            numbers::RECORDER => self.writer = Some(shown()),
            numbers::TIME_SHIFT => {
                self.guest = true;
                self.time_shift = Some(TimeShift::parse(payload)?);
            }
            numbers::TRACE_ID => self.trace_id = Some(payload.u64()?),
            numbers::GUEST if self.guests.len() >= limits::GUESTS => {
                reader.diagnostics.add_at(FileIssue::BeyondLimit, || "guests".to_owned());
            }
            numbers::GUEST => {
                let (guest, is_whole) = Guest::parse(payload)?;
                self.guests.push(guest);
                if !is_whole {
                    reader.diagnostics.add_at(FileIssue::BeyondLimit, || "vCPUs of a guest".to_owned());
                }
            }
            numbers::TSC2NSEC => self.tsc = Some(TscScale { mult: payload.u32()?, shift: payload.u32()? }),
            PAGE..=NAMES => {
                let at = payload.u64()?;
                if let Some(slot) = self.sections.get_mut(usize::from(id.saturating_sub(PAGE))) {
                    slot.get_or_insert(at);
                }
            }
            PART => {
                let (at, size, flags) = (payload.u64()?, payload.u64()?, payload.u32()?);
                let compressed = if flags & 1 != 0 { reader.codec } else { None };
                self.part = Some(HeaderPart { range: at..at.saturating_add(size), compressed, size_field: 0 });
            }
            6 | 10 | 15 | numbers::LATENCY..=numbers::MODULES => {}
            _ => reader
                .diagnostics
                .add_at(FileIssue::UnknownOption, || format!("option {id} at offset {}", payload.at())),
        }
        Ok(())
    }

    fn read_buffer(&self, reader: &mut Reader<'_>, mut payload: Bytes<'_>) -> Result<BufferOption, Eof> {
        let at = payload.u64()?;
        let name = match payload.cstr() {
            Ok(name) => name,
            Err(Eof) => payload.rest(),
        };
        let name = CleanText::of_bytes(name.get(..limits::NAME).unwrap_or(name));
        let mut rows = |payload: &mut Bytes<'_>| {
            let clock = current_clock(payload.cstr()?).unwrap_or_default();
            let (page_size, count) = (payload.u32()?, payload.u32()?);
            let mut rows = BufferRows { clock, page_size, cpus: Vec::new() };
            for _ in 0..count {
                // A row that is cut ends the table, not the buffer.
                let (Ok(cpu), Ok(at), Ok(size)) = (payload.u32(), payload.u64(), payload.u64()) else {
                    reader.diagnostics.add_at(FileIssue::BadOption, || format!("CPU table at offset {}", payload.at()));
                    break;
                };
                if !reader.afford_row(&name) {
                    break;
                }
                rows.cpus.push(super::CpuData { cpu, at, size, is_cut: false });
            }
            Ok::<_, Eof>(rows)
        };
        let rows = rows(&mut payload).ok();
        Ok(BufferOption { at, name, rows })
    }

    /// The text of `per_cpu/cpuN/stats`; those of an instance follow one that names it.
    fn add_stat(&mut self, text: &[u8]) {
        let text = String::from_utf8_lossy(text);
        if let Some(name) = text.trim_start().strip_prefix("Buffer:") {
            let name = name.trim().as_bytes();
            self.stats_buffer = CleanText::of_bytes(name.get(..limits::NAME).unwrap_or(name));
            return;
        }
        const KEYS: [&str; 6] = ["CPU", "entries", "overrun", "commit overrun", "dropped events", "read events"];
        let mut values: [Option<u64>; 6] = [None; 6];
        for (key, value) in text.lines().filter_map(|line| line.split_once(':')) {
            let slot = KEYS.iter().zip(&mut values).find(|(known, _)| **known == key.trim());
            if let Some((_, slot)) = slot {
                *slot = slot.or(value.trim().parse().ok());
            }
        }
        let [cpu, entries, overrun, commit_overrun, dropped, read] = values;
        if let Some(cpu) = cpu.and_then(|cpu| u32::try_from(cpu).ok()) {
            self.stats.push(RecorderStat {
                buffer: self.stats_buffer.clone(),
                cpu,
                overrun: overrun.unwrap_or(0),
                commit_overrun: commit_overrun.unwrap_or(0),
                dropped: dropped.unwrap_or(0),
                recorded: entries.zip(read).map(|(left, read)| left.saturating_add(read)),
                unread: entries.filter(|_| read.is_some()).unwrap_or(0),
            });
        }
    }
}

/// The clock in brackets of the text of `trace_clock`; older writers store that alone.
pub(super) fn current_clock(text: &[u8]) -> Option<CleanText> {
    let text = String::from_utf8_lossy(text);
    let current = text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(name, _)| name);
    let name = current.unwrap_or_else(|| text.split_whitespace().next().unwrap_or(""));
    (!name.is_empty()).then(|| limits::cut(name, limits::NAME).into())
}

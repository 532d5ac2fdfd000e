//! One pass over the packets of a file.

use crate::ahead::ReadAhead;
use crate::bundle::Bundles;
use crate::limits;
use crate::wire::{Damaged, Wire, WireContent, parts};
use flate2::read::ZlibDecoder;
use parse::{Error, FileIssue, Origin, Recording, Source};
use sched::event::CleanText;
use std::collections::BTreeSet;
use std::io::Read;
use std::ops::Range;
use transcript::TranscriptFacts;

/// The field of a trace that is a packet.
const PACKET: u32 = 1;

/// The numbers of the fields of `TracePacket`.
mod field {
    pub(super) const FTRACE_EVENTS: u32 = 1;
    pub(super) const PROCESS_TREE: u32 = 2;
    pub(super) const SEQUENCE: u32 = 10;
    pub(super) const FTRACE_STATS: u32 = 34;
    pub(super) const PREVIOUS_PACKET_DROPPED: u32 = 42;
    pub(super) const THREAD_DESCRIPTOR: u32 = 44;
    pub(super) const SYSTEM_INFO: u32 = 45;
    pub(super) const COMPRESSED_PACKETS: u32 = 50;
    pub(super) const TRACK_DESCRIPTOR: u32 = 60;
    pub(super) const CPU_INFO: u32 = 67;
    pub(super) const MACHINE: u32 = 98;
    pub(super) const ZSTD_COMPRESSED_PACKETS: u32 = 133;
}

/// The fields of a packet that are read.
#[derive(Debug, Default)]
struct Packet {
    sequence: u64,
    is_after_loss: bool,
    machine: u64,
    /// Messages, each with its number.
    messages: Vec<(u32, Range<u64>)>,
}

#[derive(Debug, Default)]
struct PacketScan {
    bundles: Bundles,
    /// The sequences that have bundles.
    sequences: BTreeSet<u64>,
    /// Bytes that compressed packets may still become.
    expansion: u64,
    is_compressed: bool,
    is_cut: bool,
    uname: Option<CleanText>,
    recorder: Option<CleanText>,
    /// The CPUs of the machine by the information about the system, and those with a buffer of the kernel.
    cpus: u32,
    buffers: u32,
    /// Events that the kernel counted as dropped, when the recording began and when it ended.
    dropped: [u64; 2],
    other_machines: u64,
}

/// Reads all packets of a file.
pub(crate) fn recording(source: &Source) -> Result<Recording, Error> {
    let mut scan = PacketScan { expansion: limits::decompressed(source.size()), ..PacketScan::default() };
    let io = |source| Error::Io { path: std::env::temp_dir(), source };
    scan.packets(&ReadAhead::new(source), false).map_err(io)?;
    let PacketScan { mut bundles, is_compressed, is_cut, uname, recorder, dropped, other_machines, .. } = scan;
    let cpus = if scan.cpus > 0 { scan.cpus } else { scan.buffers };
    if bundles.transcript.records() == 0 {
        let why = "the Perfetto trace has no events of ftrace; record with the data source linux.ftrace, and \
                   sched/sched_switch, sched/sched_waking among its ftrace_events";
        return Err(Error::NoEvents { why: why.into() });
    }
    bundles.finish();
    let place = || format!("{other_machines} packets of other machines");
    bundles.diagnostics.add_many_at(FileIssue::OtherClock, u64::from(other_machines > 0), place);
    let clock = bundles.clock().into();
    let (names, memberships) = bundles.tasks.into_records();
    let origin = Origin {
        format: "Perfetto",
        version: 0,
        compression: if is_compressed { "packets".into() } else { CleanText::default() },
        recorder,
        uname,
        clock,
        cpus,
        ..Origin::default()
    };
    let facts = TranscriptFacts {
        origin,
        names,
        memberships,
        is_cut,
        lost_unmarked: dropped[1].saturating_sub(dropped[0]),
        diagnostics: bundles.diagnostics,
    };
    bundles.transcript.finish(facts).map_err(io)
}

impl PacketScan {
    /// Reads packets. `is_expanded`: they were compressed in a packet, and none in them is again.
    fn packets(&mut self, source: &ReadAhead<'_>, is_expanded: bool) -> Result<(), std::io::Error> {
        let mut wire = Wire::new(source, 0..source.size());
        loop {
            let at = wire.at();
            match wire.field() {
                Ok(Some((PACKET, WireContent::Bytes(place)))) => self.packet(source, place, is_expanded)?,
                Ok(Some(_)) => {}
                Ok(None) => return Ok(()),
                Err(Damaged) => {
                    self.is_cut = true;
                    self.bundles
                        .diagnostics
                        .add_at(FileIssue::TruncatedData, || format!("packets from offset {at} on"));
                    return Ok(());
                }
            }
        }
    }

    fn packet(&mut self, source: &ReadAhead<'_>, place: Range<u64>, is_expanded: bool) -> Result<(), std::io::Error> {
        let (start, mut wire, mut packet) = (place.start, Wire::new(source, place), Packet::default());
        loop {
            match wire.field() {
                Ok(Some((field::SEQUENCE, WireContent::Number(number)))) => packet.sequence = number,
                Ok(Some((field::PREVIOUS_PACKET_DROPPED, WireContent::Number(number)))) => {
                    packet.is_after_loss = number != 0;
                }
                Ok(Some((field::MACHINE, WireContent::Number(number)))) => packet.machine = number,
                // A packet has one of them.
                Ok(Some((number, WireContent::Bytes(place)))) if packet.messages.len() < 16 => {
                    packet.messages.push((number, place));
                }
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(Damaged) => {
                    self.bundles.diagnostics.add_at(FileIssue::CorruptRecord, || format!("offset {start}"));
                    self.bundles.lose_everywhere();
                    break;
                }
            }
        }
        if packet.machine != 0 {
            self.other_machines = self.other_machines.saturating_add(1);
            return Ok(());
        }
        if packet.is_after_loss && self.sequences.contains(&packet.sequence) {
            self.bundles.lose_everywhere();
        }
        for (number, place) in packet.messages {
            match number {
                field::FTRACE_EVENTS => {
                    if self.sequences.len() < limits::SEQUENCES {
                        self.sequences.insert(packet.sequence);
                    }
                    self.bundles.add(source, place)?;
                }
                field::PROCESS_TREE => self.bundles.tasks.tree(source, place),
                field::COMPRESSED_PACKETS | field::ZSTD_COMPRESSED_PACKETS if !is_expanded => {
                    self.compressed(source, place, number == field::ZSTD_COMPRESSED_PACKETS)?;
                }
                _ => self.message(source, &place, number),
            }
        }
        Ok(())
    }

    /// A message about the system.
    fn message(&mut self, source: &ReadAhead<'_>, place: &Range<u64>, number: u32) {
        let read = [
            field::FTRACE_STATS,
            field::THREAD_DESCRIPTOR,
            field::SYSTEM_INFO,
            field::TRACK_DESCRIPTOR,
            field::CPU_INFO,
        ];
        if !read.contains(&number) || place.end.saturating_sub(place.start) > limits::MESSAGE {
            return;
        }
        let Some(message) = source.get(place) else { return };
        match number {
            field::SYSTEM_INFO => self.system(&message),
            field::FTRACE_STATS => self.stats(&message),
            field::CPU_INFO => {
                let cpus = parts(&message).filter(|(number, _)| *number == 1).count();
                self.cpus = self.cpus.max(u32::try_from(cpus).unwrap_or(0));
            }
            field::THREAD_DESCRIPTOR => self.bundles.tasks.thread(&message),
            // The description of a thread is the fourth field of one of a track.
            _ => {
                for (_, thread) in parts(&message).filter(|(number, _)| *number == 4) {
                    self.bundles.tasks.thread(thread.bytes());
                }
            }
        }
    }

    fn system(&mut self, message: &[u8]) {
        const UTSNAME: u32 = 1;
        const SERVICE_VERSION: u32 = 4;
        const CPUS: u32 = 8;
        for (number, part) in parts(message) {
            match number {
                UTSNAME => {
                    let text = |wanted: u32| {
                        let found = parts(part.bytes()).find(|(number, _)| *number == wanted);
                        String::from_utf8_lossy(found.map_or(&[][..], |(_, part)| part.bytes())).into_owned()
                    };
                    let (name, release, machine) = (text(1), text(3), text(4));
                    if !release.is_empty() {
                        let machine = if machine.is_empty() { "unknown" } else { machine.as_str() };
                        self.uname = Some(format!("{name} {release} {machine}").into());
                    }
                }
                SERVICE_VERSION => {
                    self.recorder = Some(String::from_utf8_lossy(part.bytes()).as_ref().into());
                }
                CPUS => self.cpus = u32::try_from(part.number()).unwrap_or(0).min(sched::Cpu::LIMIT),
                _ => {}
            }
        }
    }

    /// Takes the counts of the kernel on each CPU, of when the recording began or ended. Each CPU of the machine has counts.
    fn stats(&mut self, message: &[u8]) {
        const PHASE: u32 = 1;
        const CPU_STATS: u32 = 2;
        const CPU: u32 = 1;
        const COMMIT_OVERRUN: u32 = 4;
        const DROPPED_EVENTS: u32 = 8;
        let (mut phase, mut dropped) = (0, 0u64);
        for (number, part) in parts(message) {
            match number {
                PHASE => phase = part.number(),
                CPU_STATS => {
                    let cpu = parts(part.bytes()).find(|(number, _)| *number == CPU).map_or(0, |(_, cpu)| cpu.number());
                    let cpus = u32::try_from(cpu).unwrap_or(u32::MAX).saturating_add(1);
                    self.buffers = self.buffers.max(cpus).min(sched::Cpu::LIMIT);
                    let counts =
                        parts(part.bytes()).filter(|(number, _)| [COMMIT_OVERRUN, DROPPED_EVENTS].contains(number));
                    dropped = counts.fold(dropped, |sum, (_, count)| sum.saturating_add(count.number()));
                }
                _ => {}
            }
        }
        if let Some(slot) = usize::try_from(phase).ok().and_then(|phase| self.dropped.get_mut(phase.checked_sub(1)?)) {
            *slot = dropped;
        }
    }

    /// Reads the packets in a compressed one.
    fn compressed(&mut self, source: &ReadAhead<'_>, place: Range<u64>, is_zstd: bool) -> Result<(), std::io::Error> {
        self.is_compressed = true;
        let start = place.start;
        let most = self.expansion.min(limits::COMPRESSED);
        let bytes = if place.end.saturating_sub(place.start) > limits::COMPRESSED { None } else { source.get(&place) };
        let mut plain = Vec::new();
        let read = bytes.map(|bytes| {
            if is_zstd {
                zstd::stream::read::Decoder::new(bytes.as_slice())?.take(most).read_to_end(&mut plain)
            } else {
                ZlibDecoder::new(bytes.as_slice()).take(most).read_to_end(&mut plain)
            }
        });
        self.expansion = self.expansion.saturating_sub(plain.len() as u64);
        let is_beyond = plain.len() as u64 == most;
        if is_beyond || !matches!(read, Some(Ok(_))) {
            let what = if is_beyond || read.is_none() { FileIssue::BeyondLimit } else { FileIssue::CorruptChunk };
            self.bundles.diagnostics.add_at(what, || format!("compressed packets at offset {start}"));
            // What was decompressed before is read, as of a file that ends there.
            self.packets(&ReadAhead::new(&Source::Memory(plain)), true)?;
            self.bundles.lose_everywhere();
            return Ok(());
        }
        self.packets(&ReadAhead::new(&Source::Memory(plain)), true)
    }
}

//! The header of a perf.data file, or the records that replace it in a stream (`perf record -o -`).
//!
//! In a file the attributes of the events precede the data, and the other parts follow them; in a stream all of it is
//! among the records.

use crate::bytes::Bytes;
use crate::events::Events;
use crate::limits;
use crate::machine::{HeaderMachine, feature};
use parse::{Endian, Error, FileIssue, Source};
use sched::Diagnostics;
use std::ops::Range;

/// Whether a file that begins with these bytes is a perf.data file.
pub(crate) fn is_magic(head: &[u8]) -> bool {
    head.starts_with(b"PERFILE2") || head.starts_with(b"2ELIFREP")
}

/// The parts of a file that precede or describe the records.
#[derive(Debug, Default)]
pub(crate) struct PerfHeader {
    pub(crate) endian: Endian,
    /// The file is a stream.
    pub(crate) is_stream: bool,
    /// Place of the records in the file.
    pub(crate) data: Range<u64>,
    /// Whether records are missing at the end: the file was cut, or its recorder did not finish it.
    pub(crate) is_cut: bool,
    pub(crate) events: Events,
    pub(crate) machine: HeaderMachine,
    /// Event formats and symbols.
    pub(crate) tracing_data: Option<Vec<u8>>,
}

/// A part of the file.
struct PerfSection {
    at: u64,
    size: u64,
}

impl PerfSection {
    fn read(bytes: &mut Bytes<'_>) -> Option<PerfSection> {
        Some(PerfSection { at: bytes.u64()?, size: bytes.u64()? })
    }

    fn end(&self) -> u64 {
        self.at.saturating_add(self.size)
    }

    /// Returns the bytes of the section, if there are at most `most`.
    fn get(&self, source: &Source, most: u64) -> Option<Vec<u8>> {
        source.get(&(self.at..self.at.checked_add(self.size)?)).filter(|_| self.size <= most)
    }
}

impl PerfHeader {
    /// Reads the header of a file.
    pub(crate) fn read(source: &Source, diagnostics: &mut Diagnostics) -> Result<PerfHeader, Error> {
        const FILE_HEADER: u64 = 104;
        const STREAM_HEADER: u64 = 16;
        let damaged = |expected| Error::Damaged { part: "the header of perf.data", at: 8, expected };
        let head = source.get(&(0..source.size().min(FILE_HEADER))).unwrap_or_default();
        let endian = if head.starts_with(b"PERFILE2") { Endian::Little } else { Endian::Big };
        let mut bytes = Bytes::new(head.get(8..).unwrap_or_default(), endian);
        let size = bytes.u64().ok_or(damaged("its size"))?;
        if size == STREAM_HEADER {
            let data = STREAM_HEADER..source.size();
            return Ok(PerfHeader { endian, is_stream: true, data, ..PerfHeader::default() });
        }
        let mut header = PerfHeader { endian, ..PerfHeader::default() };
        let read = |bytes: &mut Bytes<'_>| {
            let attr_size = bytes.u64()?;
            let (attrs, data, _types) =
                (PerfSection::read(bytes)?, PerfSection::read(bytes)?, PerfSection::read(bytes)?);
            Some((attr_size, attrs, data))
        };
        let (attr_size, attrs, data) =
            read(&mut bytes).ok_or(damaged("the places of the events' attributes and of the records"))?;
        header.add_attrs(source, attr_size, &attrs, diagnostics).ok_or(damaged("the attributes of the events"))?;
        // The recorder fills the size in at its end.
        let unfinished = data.size == 0;
        let end = if unfinished { source.size() } else { data.end() };
        header.data = data.at..end.min(source.size());
        header.is_cut = unfinished || end > source.size();
        if header.is_cut {
            diagnostics.add_at(FileIssue::TruncatedData, || format!("the records, at offset {}", header.data.end));
        } else {
            header.add_features(source, end, bytes.rest(), diagnostics);
        }
        Ok(header)
    }

    /// Reads the attributes, each with the place of its events' numbers behind it.
    fn add_attrs(
        &mut self,
        source: &Source,
        attr_size: u64,
        attrs: &PerfSection,
        diagnostics: &mut Diagnostics,
    ) -> Option<()> {
        const PLACE: u64 = 16;
        if !(64 + PLACE..=limits::ATTR).contains(&attr_size) {
            return None;
        }
        let most = limits::ATTR.saturating_mul(limits::ATTRS as u64);
        let table = attrs.get(source, most)?;
        for entry in table.chunks_exact(usize::try_from(attr_size).ok()?) {
            let (attr, place) = entry.split_at_checked(entry.len().checked_sub(16)?)?;
            let place = PerfSection::read(&mut Bytes::new(place, self.endian))?;
            let Some(number) = self.events.add(attr, self.endian) else { continue };
            match place.get(source, 8 * limits::IDS as u64) {
                Some(ids) => self.events.add_ids(number, &ids, self.endian),
                None => diagnostics.add_at(FileIssue::TruncatedHeader, || format!("the numbers of event {number}")),
            }
        }
        Some(())
    }

    /// Reads the parts behind the data: a table of their places, in the order of their numbers.
    fn add_features(&mut self, source: &Source, table: u64, flags: &[u8], diagnostics: &mut Diagnostics) {
        let mut bits = Bytes::new(flags, self.endian);
        let words: Vec<u64> = std::iter::from_fn(|| bits.u64()).collect();
        let numbers = (0..256u64).filter(|number| {
            let word = words.get((number / 64) as usize).copied().unwrap_or(0);
            word >> (number % 64) & 1 == 1
        });
        for (nth, number) in numbers.enumerate() {
            let at = table.saturating_add(16u64.saturating_mul(nth as u64));
            let place = source.get(&(at..at.saturating_add(16)));
            let Some(place) = place.and_then(|place| PerfSection::read(&mut Bytes::new(&place, self.endian))) else {
                diagnostics.add_at(FileIssue::TruncatedHeader, || "the table of the header's parts".to_owned());
                return;
            };
            let most = if number == feature::TRACING_DATA { limits::TRACING_DATA } else { limits::FEATURE };
            match place.get(source, most) {
                Some(bytes) => self.add_feature(number, bytes, diagnostics),
                None if place.size > most => {
                    diagnostics.add_at(FileIssue::BeyondLimit, || format!("part {number} of the header"));
                }
                None => diagnostics.add_at(FileIssue::TruncatedHeader, || format!("part {number} of the header")),
            }
        }
    }

    /// Takes in a part of the header, wherever it was.
    pub(crate) fn add_feature(&mut self, number: u64, bytes: Vec<u8>, diagnostics: &mut Diagnostics) {
        if number == feature::TRACING_DATA {
            self.tracing_data = Some(bytes);
            return;
        }
        let added = match number {
            feature::EVENT_DESC => self.events.add_names(&bytes, self.endian),
            _ => self.machine.add(number, &bytes, self.endian),
        };
        if added.is_none() {
            diagnostics.add_at(FileIssue::BadOption, || format!("part {number} of the header"));
        }
    }
}

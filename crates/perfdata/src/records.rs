//! The records of a stretch of a file, one after the other.

use crate::record::RecordHead;
use parse::{Endian, Source};
use std::ops::Range;

/// Bytes that are read at once.
const WINDOW: u64 = 1 << 20;

/// The reason why no record follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordsEnd {
    /// All records were read.
    Reached,
    /// The last one runs past the end.
    Cut,
    /// The bytes at this offset are not the head of a record.
    Damaged(u64),
}

/// A position among the records of a file; reading moves it.
#[derive(Debug)]
pub(crate) struct RecordCursor<'s> {
    source: &'s Source,
    endian: Endian,
    at: u64,
    end: u64,
    /// Bytes of the file, from `start` on.
    window: Vec<u8>,
    start: u64,
}

impl<'s> RecordCursor<'s> {
    pub(crate) fn new(source: &'s Source, place: Range<u64>, endian: Endian) -> RecordCursor<'s> {
        RecordCursor { source, endian, at: place.start, end: place.end, window: Vec::new(), start: place.start }
    }

    /// The next record, with its place, or why there is none.
    pub(crate) fn next(&mut self) -> Result<(u64, RecordHead, &[u8]), RecordsEnd> {
        let at = self.at;
        if at >= self.end {
            return Err(RecordsEnd::Reached);
        }
        let head = self.peek(RecordHead::SIZE).ok_or(RecordsEnd::Cut)?;
        let endian = self.endian;
        let head = RecordHead::of(self.window.get(head).unwrap_or_default(), endian).ok_or(RecordsEnd::Damaged(at))?;
        let record = self.peek(head.size).ok_or(RecordsEnd::Cut)?;
        self.at = at.saturating_add(head.size as u64);
        Ok((at, head, self.window.get(record).unwrap_or_default()))
    }

    /// Passes over this number of bytes, which belong to the last record, and returns their place; if they are there.
    pub(crate) fn pass(&mut self, bytes: u64) -> Option<Range<u64>> {
        let end = self.at.checked_add(bytes).filter(|end| *end <= self.end)?;
        Some(std::mem::replace(&mut self.at, end)..end)
    }

    /// Passes over damage, to the next end of a round; whether there is one.
    pub(crate) fn find_round(&mut self, round: &[u8; 8]) -> bool {
        loop {
            // Records begin at multiples of eight bytes from the first one on.
            self.at = self.at.saturating_add(8);
            let Some(place) = self.peek(8) else { return false };
            let rest = self.window.get(place.start..).unwrap_or_default();
            match rest.chunks_exact(8).position(|word| word == round) {
                Some(words) => {
                    self.at = self.at.saturating_add(8u64.saturating_mul(words as u64));
                    return true;
                }
                None => self.at = self.at.saturating_add((rest.len() / 8).saturating_sub(1).saturating_mul(8) as u64),
            }
        }
    }

    /// The place of the next bytes in the window, if the file has them.
    fn peek(&mut self, bytes: usize) -> Option<Range<usize>> {
        let behind = self.at.checked_add(bytes as u64).filter(|behind| *behind <= self.end)?;
        if self.at < self.start || behind > self.start.saturating_add(self.window.len() as u64) {
            let place = self.at..self.at.saturating_add(WINDOW.max(bytes as u64)).min(self.end);
            self.window = self.source.get(&place)?;
            self.start = self.at;
        }
        let from = usize::try_from(self.at.checked_sub(self.start)?).ok()?;
        Some(from..from.saturating_add(bytes))
    }
}

/// The records in bytes in memory, as far as they are whole: each with its place. Then [`WholeRecords::end`] is the number of bytes that
/// they take, or the reason why they end.
#[derive(Debug)]
pub(crate) struct WholeRecords<'b> {
    bytes: &'b [u8],
    endian: Endian,
    at: usize,
    is_damaged: bool,
}

impl WholeRecords<'_> {
    /// The number of bytes of the records so far, or the damage behind them.
    pub(crate) fn end(&self) -> Result<usize, RecordsEnd> {
        if self.is_damaged { Err(RecordsEnd::Damaged(self.at as u64)) } else { Ok(self.at) }
    }
}

impl Iterator for WholeRecords<'_> {
    type Item = (RecordHead, Range<usize>);

    fn next(&mut self) -> Option<(RecordHead, Range<usize>)> {
        let rest = self.bytes.get(self.at..).filter(|rest| rest.len() >= RecordHead::SIZE)?;
        let Some(head) = RecordHead::of(rest, self.endian) else {
            self.is_damaged = true;
            return None;
        };
        let end = self.at.saturating_add(head.size);
        (head.size <= rest.len()).then(|| (head, std::mem::replace(&mut self.at, end)..end))
    }
}

/// The records in bytes in memory, as far as they are whole.
pub(crate) fn whole_records(bytes: &[u8], endian: Endian) -> WholeRecords<'_> {
    WholeRecords { bytes, endian, at: 0, is_damaged: false }
}

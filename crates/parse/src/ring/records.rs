//! Records in units that come from elsewhere than a trace.dat, and the form in which a unit holds them.
//!
//! A record is its stamp, the length of its payload, and the payload; a loss is the number of events lost and a length
//! that no record has. Both numbers are little-endian; a payload has the byte order of the trace.

use crate::bytes::Endian;
use crate::issue::FileIssue;
use crate::ring::page::{Loss, Raw};

use std::fmt;

/// The length of a loss whose events were counted, and of one whose were not.
const COUNTED: u32 = u32::MAX;
const UNCOUNTED: u32 = u32::MAX - 1;

/// The data of CPUs in units that can be read one by one, in any order and on several threads at once.
///
/// Lanes and units are numbered as in [`Recording::lanes`](crate::Recording): the reader asks for no others. A unit gives the
/// same records each time that it is read.
pub trait Units: fmt::Debug + Send + Sync {
    /// Writes the records of a unit to `records`, in the order of their times, and each loss between the records that it
    /// separates. An error stands for an unknown number of lost records, and the records written before it are ignored.
    fn read(&self, lane: usize, unit: usize, records: &mut UnitRecords<'_>) -> Result<(), FileIssue>;

    /// Returns the number of bytes that reading this unit reads from the file. Threads share their work by this number, and ask
    /// for it without reading the unit.
    fn size(&self, lane: usize, unit: usize) -> u64;
}

/// The memory into which [`Units::read`] writes the records of a unit.
#[derive(Debug)]
pub struct UnitRecords<'b> {
    bytes: &'b mut Vec<u8>,
}

impl<'b> UnitRecords<'b> {
    pub(crate) fn new(bytes: &'b mut Vec<u8>) -> UnitRecords<'b> {
        bytes.clear();
        UnitRecords { bytes }
    }

    /// Adds a record: its raw stamp, and its payload, which begins with `common_type`. A payload of more than 4 GiB is
    /// left out.
    pub fn record(&mut self, stamp: u64, payload: &[u8]) {
        if let Some(length) = u32::try_from(payload.len()).ok().filter(|length| *length < UNCOUNTED) {
            self.head(stamp, length);
            self.bytes.extend_from_slice(payload);
        }
    }

    /// Adds a loss at this place, of this number of events if they were counted.
    pub fn lost(&mut self, events: Option<u64>) {
        self.head(events.unwrap_or(0), if events.is_some() { COUNTED } else { UNCOUNTED });
    }

    fn head(&mut self, number: u64, length: u32) {
        self.bytes.extend_from_slice(&number.to_le_bytes());
        self.bytes.extend_from_slice(&length.to_le_bytes());
    }
}

/// A record or a loss in a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnitEntry<'u> {
    Record(Raw<'u>),
    Loss(Loss),
}

/// The entries of a unit.
pub(crate) fn entries(mut bytes: &[u8], endian: Endian) -> impl Iterator<Item = UnitEntry<'_>> {
    std::iter::from_fn(move || {
        let (number, rest) = bytes.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        let (number, length) = (u64::from_le_bytes(*number), u32::from_le_bytes(*length));
        let (payload, rest) = rest.split_at_checked(if length >= UNCOUNTED { 0 } else { length as usize })?;
        bytes = rest;
        Some(match length {
            COUNTED => UnitEntry::Loss(Loss { count: Some(number) }),
            UNCOUNTED => UnitEntry::Loss(Loss { count: None }),
            _ => UnitEntry::Record(Raw { ts: number, payload, endian }),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read() {
        let mut bytes = b"old".to_vec();
        let mut unit = UnitRecords::new(&mut bytes);
        unit.record(7, b"abc");
        unit.lost(Some(3));
        unit.lost(None);
        unit.record(u64::MAX, b"");
        let record = |ts, payload| UnitEntry::Record(Raw { ts, payload, endian: Endian::Big });
        let loss = |count| UnitEntry::Loss(Loss { count });
        let expected = [record(7, &b"abc"[..]), loss(Some(3)), loss(None), record(u64::MAX, b"")];
        assert_eq!(entries(&bytes, Endian::Big).collect::<Vec<_>>(), expected);
        assert_eq!(entries(&bytes[..14], Endian::Big).count(), 0);
    }
}

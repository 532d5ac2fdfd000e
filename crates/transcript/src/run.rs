//! A run: records of one CPU in the order of time, as bytes.
//!
//! An entry is the time since the entry before (of the first one: since the run begins), then the length of the payload plus two and the
//! payload, or 0 for a loss that was not counted, or 1 and the count for one that was. All numbers are as [`sched::packed`] has them.

use sched::packed::{self, number};

/// A record or a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry<'r> {
    Record(&'r [u8]),
    Loss(Option<u64>),
}

/// A position in the bytes of a run; reading moves it.
#[derive(Clone, Debug)]
pub(crate) struct Entries<'r> {
    rest: &'r [u8],
    time: u64,
}

impl<'r> Entries<'r> {
    /// The entries of a run that begins at this time.
    pub(crate) fn new(bytes: &'r [u8], first: u64) -> Entries<'r> {
        Entries { rest: bytes, time: first }
    }

    fn number(&mut self) -> Option<u64> {
        let (found, rest) = number(self.rest)?;
        self.rest = rest;
        Some(found)
    }
}

impl<'r> Iterator for Entries<'r> {
    type Item = (u64, Entry<'r>);

    fn next(&mut self) -> Option<(u64, Entry<'r>)> {
        self.time = self.time.saturating_add(self.number()?);
        let entry = match self.number()? {
            0 => Entry::Loss(None),
            1 => Entry::Loss(Some(self.number()?)),
            length => {
                let (payload, rest) = self.rest.split_at_checked(usize::try_from(length).ok()?.checked_sub(2)?)?;
                self.rest = rest;
                Entry::Record(payload)
            }
        };
        Some((self.time, entry))
    }
}

/// Appends an entry, this long after the one before.
pub(crate) fn put(out: &mut Vec<u8>, since: u64, entry: Entry<'_>) {
    packed::put(out, since);
    match entry {
        Entry::Loss(None) => packed::put(out, 0),
        Entry::Loss(Some(count)) => {
            packed::put(out, 1);
            packed::put(out, count);
        }
        Entry::Record(payload) => {
            packed::put(out, (payload.len() as u64).saturating_add(2));
            out.extend_from_slice(payload);
        }
    }
}

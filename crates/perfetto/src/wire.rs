//! The fields of messages, as protocol buffers encode them.

use crate::ahead::ReadAhead;
use std::ops::Range;

/// Bytes of a file that are read at once.
const WINDOW: u64 = 64 << 10;

/// The content of a field in a file: a number, or the place of its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WireContent {
    Number(u64),
    Bytes(Range<u64>),
}

/// A position among the fields of a message in a file; reading moves it.
#[derive(Debug)]
pub(crate) struct Wire<'s> {
    source: &'s ReadAhead<'s>,
    at: u64,
    end: u64,
    /// Bytes of the file, from `start` on.
    window: Vec<u8>,
    start: u64,
}

/// The bytes are no field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Damaged;

impl<'s> Wire<'s> {
    pub(crate) fn new(source: &'s ReadAhead<'s>, place: Range<u64>) -> Wire<'s> {
        Wire { source, at: place.start, end: place.end.min(source.size()), window: Vec::new(), start: place.start }
    }

    /// The place of the next field.
    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    /// Whether bytes are left.
    pub(crate) fn has_more(&self) -> bool {
        self.at < self.end
    }

    /// The bytes from here to the end, as many as are read at once; at least ten, if there are.
    fn peek(&mut self) -> Option<&[u8]> {
        let behind = self.start.saturating_add(self.window.len() as u64);
        let wanted = self.at.saturating_add(10).min(self.end);
        if self.at < self.start || wanted > behind {
            let place = self.at..self.at.saturating_add(WINDOW).min(self.end);
            self.source.copy(&place, &mut self.window)?;
            self.start = self.at;
        }
        self.window.get(usize::try_from(self.at.checked_sub(self.start)?).ok()?..)
    }

    /// The next number.
    #[inline]
    pub(crate) fn varint(&mut self) -> Option<u64> {
        let (number, length) = varint(self.peek()?)?;
        self.at = self.at.saturating_add(length as u64).min(self.end);
        Some(number)
    }

    /// Passes over bytes; their place.
    fn pass(&mut self, bytes: u64) -> Option<Range<u64>> {
        let end = self.at.checked_add(bytes).filter(|end| *end <= self.end)?;
        Some(std::mem::replace(&mut self.at, end)..end)
    }

    /// The next field, with its number; nothing at the end.
    pub(crate) fn field(&mut self) -> Result<Option<(u32, WireContent)>, Damaged> {
        if !self.has_more() {
            return Ok(None);
        }
        let tag = self.varint().ok_or(Damaged)?;
        let number = u32::try_from(tag >> 3).ok().filter(|number| *number > 0).ok_or(Damaged)?;
        let content = match tag & 7 {
            0 => WireContent::Number(self.varint().ok_or(Damaged)?),
            1 => WireContent::Bytes(self.pass(8).ok_or(Damaged)?),
            2 => {
                let length = self.varint().ok_or(Damaged)?;
                WireContent::Bytes(self.pass(length).ok_or(Damaged)?)
            }
            5 => WireContent::Bytes(self.pass(4).ok_or(Damaged)?),
            _ => return Err(Damaged),
        };
        Ok(Some((number, content)))
    }

    /// Copies the bytes of a field to `out`; `None` where they are more than `most`, or cannot be read.
    pub(crate) fn copy(&self, place: &Range<u64>, most: u64, out: &mut Vec<u8>) -> Option<()> {
        out.clear();
        let length = place.end.checked_sub(place.start).filter(|length| *length <= most)?;
        let offset = place.start.checked_sub(self.start).and_then(|offset| usize::try_from(offset).ok());
        let within = offset.and_then(|offset| self.window.get(offset..)?.get(..usize::try_from(length).ok()?));
        match within {
            Some(bytes) => out.extend_from_slice(bytes),
            None => self.source.copy(place, out)?,
        }
        Some(())
    }
}

/// The content of a field in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WirePart<'b> {
    Number(u64),
    Bytes(&'b [u8]),
}

impl<'b> WirePart<'b> {
    /// The number; zero for bytes.
    pub(crate) fn number(self) -> u64 {
        if let WirePart::Number(number) = self { number } else { 0 }
    }

    /// The bytes; none for a number.
    pub(crate) fn bytes(self) -> &'b [u8] {
        if let WirePart::Bytes(bytes) = self { bytes } else { &[] }
    }
}

/// The fields of a message in memory, as far as they are whole.
pub(crate) fn parts(mut bytes: &[u8]) -> impl Iterator<Item = (u32, WirePart<'_>)> {
    std::iter::from_fn(move || {
        let (tag, length) = varint(bytes)?;
        let rest = bytes.get(length..)?;
        let take = |rest: &'_ [u8], count: u64| -> Option<usize> {
            usize::try_from(count).ok().filter(|count| *count <= rest.len())
        };
        let (part, rest) = match tag & 7 {
            0 => {
                let (number, length) = varint(rest)?;
                (WirePart::Number(number), rest.get(length..)?)
            }
            1 => rest.split_at_checked(8).map(|(bytes, rest)| (WirePart::Bytes(bytes), rest))?,
            2 => {
                let (count, length) = varint(rest)?;
                let rest = rest.get(length..)?;
                let (bytes, rest) = rest.split_at_checked(take(rest, count)?)?;
                (WirePart::Bytes(bytes), rest)
            }
            5 => rest.split_at_checked(4).map(|(bytes, rest)| (WirePart::Bytes(bytes), rest))?,
            _ => return None,
        };
        bytes = rest;
        Some((u32::try_from(tag >> 3).ok()?, part))
    })
}

/// A number in groups of seven bits, and the number of its bytes.
#[inline]
fn varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut number = 0u64;
    for (place, byte) in bytes.iter().take(10).enumerate() {
        number |= u64::from(byte & 0x7f).checked_shl(7 * place as u32).unwrap_or(0);
        if byte & 0x80 == 0 {
            return Some((number, place.saturating_add(1)));
        }
    }
    None
}

/// Whether a file of `size` bytes that begins with `head` is one of packets: the first one has fields of a packet, each of its own
/// kind, as far as the head shows it.
pub(crate) fn looks_like_packets(head: &[u8], size: u64) -> bool {
    const PACKET: u64 = 1 << 3 | 2;
    // Those of a packet's fields that recorders write first: numbers, and messages.
    const NUMBERS: [u32; 9] = [3, 8, 10, 13, 41, 42, 58, 79, 87];
    const MESSAGES: [u32; 20] = [1, 2, 4, 5, 6, 7, 9, 11, 12, 33, 34, 35, 36, 45, 50, 59, 60, 67, 89, 133];
    let Some((tag, first)) = varint(head) else { return false };
    let behind = head.get(first..).unwrap_or_default();
    let Some((length, second)) = varint(behind).filter(|(length, _)| tag == PACKET && *length > 0) else {
        return false;
    };
    let begin = first.saturating_add(second);
    if size.saturating_sub(begin as u64) < length {
        return false;
    }
    let shown = head.get(begin..).unwrap_or_default();
    let packet = shown.get(..usize::try_from(length).unwrap_or(usize::MAX).min(shown.len())).unwrap_or_default();
    let (mut rest, mut fields) = (packet, 0);
    while let Some((tag, length)) = varint(rest) {
        let number = u32::try_from(tag >> 3).unwrap_or(0);
        let is_known = match tag & 7 {
            0 => NUMBERS.contains(&number) || number > 133,
            2 => MESSAGES.contains(&number) || number > 133,
            _ => false,
        };
        if !is_known {
            return false;
        }
        fields += 1;
        rest = rest.get(length..).unwrap_or_default();
        let Some((value, length)) = varint(rest) else { break };
        let bytes = if tag & 7 == 2 { usize::try_from(value).unwrap_or(usize::MAX) } else { 0 };
        rest = rest.get(length.saturating_add(bytes)..).unwrap_or_default();
    }
    fields > 0
}

//! A checked cursor over the bytes of a record or of a part of the header.

use parse::Endian;
use sched::event::CleanText;

/// A position in bytes; reading moves it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bytes<'b> {
    rest: &'b [u8],
    endian: Endian,
}

impl<'b> Bytes<'b> {
    pub(crate) fn new(bytes: &'b [u8], endian: Endian) -> Bytes<'b> {
        Bytes { rest: bytes, endian }
    }

    pub(crate) fn rest(&self) -> &'b [u8] {
        self.rest
    }

    #[inline]
    pub(crate) fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    #[inline]
    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.endian.u16(self.take(2)?, 0)
    }

    #[inline]
    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.endian.u32(self.take(4)?, 0)
    }

    #[inline]
    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.endian.u64(self.take(8)?, 0)
    }

    /// A text behind its length, which may be padded with NULs; made fit to be printed.
    pub(crate) fn text(&mut self) -> Option<CleanText> {
        let length = self.u32()? as usize;
        let bytes = self.take(length)?;
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        Some(CleanText::of_bytes(bytes.get(..end).unwrap_or(bytes)))
    }

    /// Reads a number and as many texts behind it, at most `most`.
    pub(crate) fn texts(&mut self, most: usize) -> Option<Vec<CleanText>> {
        let count = self.u32()? as usize;
        (0..count.min(most)).map(|_| self.text()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_end_at_their_nul_and_within_the_bytes() {
        let bytes = b"\x02\0\0\0\x04\0\0\0ab\0\0\x01\0\0\0c\x09\0\0\0d";
        let mut cursor = Bytes::new(bytes, Endian::Little);
        assert_eq!(cursor.texts(9), Some(vec!["ab".into(), "c".into()]));
        assert_eq!(cursor.text(), None);
        let mut cursor = Bytes::new(&[0, 0, 0, 1, b'x'], Endian::Big);
        assert_eq!(cursor.text().as_deref(), Some("x"));
    }
}

//! A checked cursor over borrowed bytes.

/// The byte order and the word size of the numbers in a record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NumberLayout {
    pub(crate) endian: Endian,
    /// The size of the kernel's `long`.
    pub(crate) long: usize,
}

/// The byte order of a file or of a recorded machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Endian {
    /// Least significant byte first.
    #[default]
    Little,
    /// Most significant byte first.
    Big,
}

impl Endian {
    /// A `u16` at `at`, if it is inside.
    #[inline]
    pub fn u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        let raw = *bytes.get(at..)?.first_chunk()?;
        Some(match self {
            Endian::Little => u16::from_le_bytes(raw),
            Endian::Big => u16::from_be_bytes(raw),
        })
    }

    /// A `u32` at `at`, if it is inside.
    #[inline]
    pub fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let raw = *bytes.get(at..)?.first_chunk()?;
        Some(match self {
            Endian::Little => u32::from_le_bytes(raw),
            Endian::Big => u32::from_be_bytes(raw),
        })
    }

    /// A `u64` at `at`, if it is inside.
    #[inline]
    pub fn u64(self, bytes: &[u8], at: usize) -> Option<u64> {
        let raw = *bytes.get(at..)?.first_chunk()?;
        Some(match self {
            Endian::Little => u64::from_le_bytes(raw),
            Endian::Big => u64::from_be_bytes(raw),
        })
    }

    /// Appends the lowest `size` bytes of a number.
    pub(crate) fn put(self, out: &mut Vec<u8>, value: u64, size: usize) {
        let size = size.min(8);
        match self {
            Endian::Little => out.extend(value.to_le_bytes().into_iter().take(size)),
            Endian::Big => out.extend(value.to_be_bytes().into_iter().skip(8usize.saturating_sub(size))),
        }
    }

    /// An unsigned number of 1, 2, 4 or 8 bytes at `at`.
    #[inline]
    pub(crate) fn uint(self, bytes: &[u8], at: usize, size: usize) -> Option<u64> {
        match size {
            1 => bytes.get(at).map(|b| u64::from(*b)),
            2 => self.u16(bytes, at).map(u64::from),
            4 => self.u32(bytes, at).map(u64::from),
            8 => self.u64(bytes, at),
            _ => None,
        }
    }
}

/// The lowest `size` bytes of a number, without a sign.
pub(crate) fn zero_extend(raw: u64, size: usize) -> u64 {
    raw & u64::MAX.wrapping_shr(64u32.saturating_sub(8 * size as u32))
}

/// The lowest `size` bytes of a number, the highest bit of them as its sign.
pub(crate) fn sign_extend(raw: u64, size: usize) -> i64 {
    let unused = 64u32.saturating_sub(8 * size as u32);
    raw.wrapping_shl(unused).cast_signed().wrapping_shr(unused)
}

/// Something should have been there, and the bytes ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Eof;

/// A position in the bytes of a file or of a part of it; reading moves the position. A read that fails may leave it anywhere.
pub(crate) trait Cursor {
    /// Returns the file offset of the next byte.
    fn at(&self) -> u64;
    /// Returns the byte order of the numbers.
    fn endian(&self) -> Endian;
    /// Reads the next `n` bytes. Fails where fewer are left, without allocating memory for them.
    fn take(&mut self, n: u64) -> Result<&[u8], Eof>;
    /// Passes over the next `n` bytes, which need not be read for that. Fails where fewer are left.
    fn pass(&mut self, n: u64) -> Result<(), Eof>;
    /// Reads the bytes up to the next NUL, which is passed over. Fails where no NUL follows.
    fn cstr(&mut self) -> Result<&[u8], Eof>;

    /// Reads a number of two bytes in the file's byte order.
    fn u16(&mut self) -> Result<u16, Eof> {
        let endian = self.endian();
        endian.u16(self.take(2)?, 0).ok_or(Eof)
    }

    /// Reads a number of four bytes in the file's byte order.
    fn u32(&mut self) -> Result<u32, Eof> {
        let endian = self.endian();
        endian.u32(self.take(4)?, 0).ok_or(Eof)
    }

    /// Reads a number of eight bytes in the file's byte order.
    fn u64(&mut self) -> Result<u64, Eof> {
        let endian = self.endian();
        endian.u64(self.take(8)?, 0).ok_or(Eof)
    }
}

/// A position in borrowed bytes; reading moves it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bytes<'t> {
    rest: &'t [u8],
    at: u64,
    endian: Endian,
}

impl<'t> Bytes<'t> {
    /// A cursor at the start of `bytes`, which stand at offset `at` of the file.
    pub(crate) fn new(bytes: &'t [u8], at: u64, endian: Endian) -> Bytes<'t> {
        Bytes { rest: bytes, at, endian }
    }

    /// The file offset of the next byte.
    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    pub(crate) fn endian(&self) -> Endian {
        self.endian
    }

    pub(crate) fn rest(&self) -> &'t [u8] {
        self.rest
    }

    pub(crate) fn set_endian(&mut self, endian: Endian) {
        self.endian = endian;
    }

    pub(crate) fn take(&mut self, n: u64) -> Result<&'t [u8], Eof> {
        let n = usize::try_from(n).map_err(|_| Eof)?;
        let (taken, rest) = self.rest.split_at_checked(n).ok_or(Eof)?;
        self.rest = rest;
        self.at = self.at.saturating_add(n as u64);
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Eof> {
        self.take(N as u64)?.first_chunk().copied().ok_or(Eof)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Eof> {
        self.array::<1>().map(|[b]| b)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Eof> {
        let raw = self.array()?;
        Ok(if self.endian == Endian::Big { u16::from_be_bytes(raw) } else { u16::from_le_bytes(raw) })
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Eof> {
        let raw = self.array()?;
        Ok(if self.endian == Endian::Big { u32::from_be_bytes(raw) } else { u32::from_le_bytes(raw) })
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Eof> {
        let raw = self.array()?;
        Ok(if self.endian == Endian::Big { u64::from_be_bytes(raw) } else { u64::from_le_bytes(raw) })
    }

    /// The bytes up to the next NUL, which is passed over.
    pub(crate) fn cstr(&mut self) -> Result<&'t [u8], Eof> {
        let end = self.rest.iter().position(|b| *b == 0).ok_or(Eof)?;
        let text = self.take(end as u64)?;
        self.take(1)?;
        Ok(text)
    }
}

/// Returns the bytes before the first NUL, or all bytes where there is none.
pub(crate) fn until_nul(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    bytes.get(..end).unwrap_or(bytes)
}

/// The first number in `text`, decimal or `0x` hexadecimal, perhaps negative.
pub(crate) fn number(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(until_nul(text)).ok()?.trim();
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let value = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hex) => i64::from_str_radix(hex, 16).ok()?,
        None => digits.parse().ok()?,
    };
    Some(if negative { value.checked_neg()? } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_in_order_and_stops_at_the_end() {
        let mut b = Bytes::new(&[1, 2, 0, 0, 0, b'a', 0, 9], 100, Endian::Little);
        assert_eq!((b.u8(), b.u32(), b.cstr()), (Ok(1), Ok(2), Ok(&b"a"[..])));
        assert_eq!((b.at(), b.u16(), b.u8(), b.u8()), (107, Err(Eof), Ok(9), Err(Eof)));
        assert_eq!(b.take(u64::MAX), Err(Eof));
        b = Bytes::new(&[0, 1, 0, 0, 0, 2], 0, Endian::Big);
        assert_eq!((b.u16(), b.u32()), (Ok(1), Ok(2)));
    }

    #[test]
    fn numbers_of_options() {
        assert_eq!(number(b"-12\0junk"), Some(-12));
        assert_eq!(number(b" 0x10\n"), Some(16));
        assert_eq!(number(b"x"), None);
        assert_eq!(number(b"99999999999999999999"), None);
    }
}

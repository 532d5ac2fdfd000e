//! Numbers and bytes as tiles and index files have them.

pub(crate) use sched::packed::{number, put as put_number};

use sched::Ts;
use std::io::{self, Read, Write};

/// The reason for which a file is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// The file is no index file, and must not be replaced by one.
    Foreign,
    /// The file is an index file that can be replaced; with the reason for which it is not used.
    Stale(&'static str),
}

pub(crate) const DAMAGED: Unusable = Unusable::Stale("it is damaged");

impl From<io::Error> for Unusable {
    fn from(_: io::Error) -> Unusable {
        DAMAGED
    }
}

/// A digest of bytes (FNV-1a), which finds damage and identifies traces. It is no protection against forgery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest(u64);

impl Default for Digest {
    fn default() -> Digest {
        Digest(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    /// Adds bytes to the digest.
    pub fn add(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    }

    /// The digest of all bytes so far.
    pub fn value(self) -> u64 {
        self.0
    }
}

/// A writer of numbers and bytes, which digests them.
pub(crate) struct Out<W> {
    pub(crate) inner: W,
    pub(crate) digest: Digest,
}

impl<W: Write> Out<W> {
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.digest.add(bytes);
        self.inner.write_all(bytes)
    }

    pub(crate) fn number(&mut self, number: u64) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(10);
        put_number(&mut bytes, number);
        self.raw(&bytes)
    }

    /// Writes a number that can be below zero.
    pub(crate) fn signed(&mut self, number: i64) -> io::Result<()> {
        self.number((number << 1 ^ number >> 63) as u64)
    }

    /// Writes a number that can be missing.
    pub(crate) fn option(&mut self, number: Option<i64>) -> io::Result<()> {
        self.number(number.is_some().into())?;
        number.map_or(Ok(()), |number| self.signed(number))
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.number(bytes.len() as u64)?;
        self.raw(bytes)
    }
}

/// A reader of numbers and bytes, which digests them and bounds the room that they take.
pub(crate) struct In<R> {
    pub(crate) inner: R,
    pub(crate) digest: Digest,
    /// The number of bytes that the content may still take.
    pub(crate) room: usize,
}

impl<R: Read> In<R> {
    pub(crate) fn raw<const N: usize>(&mut self) -> Result<[u8; N], Unusable> {
        let mut bytes = [0; N];
        self.inner.read_exact(&mut bytes)?;
        self.digest.add(&bytes);
        Ok(bytes)
    }

    pub(crate) fn number(&mut self) -> Result<u64, Unusable> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = self.raw()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(DAMAGED)
    }

    /// Reads a number; one above `most` is damage.
    pub(crate) fn below(&mut self, most: u64) -> Result<u64, Unusable> {
        self.number().and_then(|number| if number <= most { Ok(number) } else { Err(DAMAGED) })
    }

    /// Takes room for a part of the content; content without room is damage.
    pub(crate) fn take(&mut self, bytes: usize) -> Result<(), Unusable> {
        self.room = self.room.checked_sub(bytes).ok_or(DAMAGED)?;
        Ok(())
    }

    pub(crate) fn signed(&mut self) -> Result<i64, Unusable> {
        let number = self.number()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    pub(crate) fn option(&mut self) -> Result<Option<i64>, Unusable> {
        Ok(match self.below(1)? {
            0 => None,
            _ => Some(self.signed()?),
        })
    }

    /// Reads the number of a CPU or a task.
    pub(crate) fn small<T: TryFrom<i64>>(&mut self) -> Result<T, Unusable> {
        T::try_from(self.signed()?).map_err(|_| DAMAGED)
    }

    pub(crate) fn bytes(&mut self) -> Result<Vec<u8>, Unusable> {
        let length = self.number()?;
        self.take(usize::try_from(length).unwrap_or(usize::MAX))?;
        let mut bytes = Vec::new();
        // No more room is taken than there are bytes.
        self.inner.by_ref().take(length).read_to_end(&mut bytes)?;
        self.digest.add(&bytes);
        if bytes.len() as u64 == length { Ok(bytes) } else { Err(DAMAGED) }
    }

    pub(crate) fn ts(&mut self) -> Result<Ts, Unusable> {
        let ts = Ts(self.signed()?);
        if (Ts::MIN..=Ts::MAX).contains(&ts) { Ok(ts) } else { Err(DAMAGED) }
    }
}

//! One page of the kernel's ring buffer.
//!
//! A page is self-contained: its own start time, a commit word with the length and the loss
//! flags, then records with time deltas (`docs/trace-dat.md`, section 6). Nothing here allocates.

use crate::bytes::Endian;
use crate::file::page_layout::PageLayout;

/// Bit 31 of the commit word: events were lost before this page.
const MISSED: u32 = 1 << 31;
/// Bit 30: their number stands behind the data.
const MISSED_STORED: u32 = 1 << 30;
/// The rest, less three bits that kernels keep clear.
const LENGTH: u32 = (1 << 27) - 1;

/// Events lost before a page; how many, if the kernel had room to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loss {
    pub(crate) count: Option<u64>,
}

/// A page whose header made sense.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RingPage<'p> {
    /// The raw stamp that the deltas start from.
    pub(crate) ts: u64,
    pub(crate) lost: Option<Loss>,
    data: &'p [u8],
    endian: Endian,
}

/// A page that is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadPage;

/// A record that runs past the end of its page, or is shorter than its own header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadRecord;

impl<'p> RingPage<'p> {
    /// The page in `bytes`, which may be shorter than a page if the file was cut.
    #[inline]
    pub(crate) fn parse(bytes: &'p [u8], layout: &PageLayout) -> Result<RingPage<'p>, BadPage> {
        let ts = layout.endian.u64(bytes, 0).ok_or(BadPage)?;
        // The upper half of a 64-bit commit can be all ones: the flag is a sign-extended int
        // (0xffffffff_c0000fd8 on 6.18). The low half is the second one on big-endian machines.
        let low = match layout.endian {
            Endian::Little => layout.commit,
            Endian::Big => layout.commit.saturating_add(layout.long.saturating_sub(4)),
        };
        let commit = layout.endian.u32(bytes, low).ok_or(BadPage)?;
        let length = (commit & LENGTH) as usize;
        let end = layout.data.saturating_add(length);
        let data = bytes.get(layout.data..end).ok_or(BadPage)?;
        if length > layout.capacity() {
            return Err(BadPage);
        }
        let lost = (commit & MISSED != 0).then(|| Loss {
            count: if commit & MISSED_STORED != 0 { layout.endian.uint(bytes, end, layout.long) } else { None },
        });
        Ok(RingPage { ts, lost, data, endian: layout.endian })
    }

    /// The records, as bytes.
    pub(crate) fn data(&self) -> &'p [u8] {
        self.data
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// The records, in file order.
    #[inline]
    pub(crate) fn records(&self) -> PageRecords<'p> {
        PageRecords { rest: self.data, ts: self.ts, endian: self.endian }
    }
}

/// A record: its raw stamp and its payload, of which offset 0 is `common_type`; and its byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Raw<'p> {
    pub(crate) ts: u64,
    pub(crate) payload: &'p [u8],
    pub(crate) endian: Endian,
}

/// Writes a page: its stamp, its records, and the loss before it.
pub(crate) fn build(layout: &PageLayout, ts: u64, lost: Option<Loss>, data: &[u8]) -> Vec<u8> {
    let count =
        lost.and_then(|loss| loss.count).filter(|_| data.len().saturating_add(layout.long) <= layout.capacity());
    let flags = match (lost, count) {
        (None, _) => 0,
        (Some(_), None) => MISSED,
        (Some(_), Some(_)) => MISSED | MISSED_STORED,
    };
    let mut page = Vec::with_capacity(layout.size);
    layout.endian.put(&mut page, ts, 8);
    page.resize(layout.commit.max(8), 0);
    layout.endian.put(&mut page, data.len() as u64 | u64::from(flags), layout.long);
    page.resize(layout.data.max(page.len()), 0);
    page.extend_from_slice(data);
    if let Some(count) = count {
        layout.endian.put(&mut page, count, layout.long);
    }
    page.resize(layout.size, 0);
    page
}

/// The records of a page; ends at the first bad one.
#[derive(Clone, Debug)]
pub(crate) struct PageRecords<'p> {
    rest: &'p [u8],
    ts: u64,
    endian: Endian,
}

impl<'p> PageRecords<'p> {
    /// The number of bytes from the next record on.
    pub(crate) fn left(&self) -> usize {
        self.rest.len()
    }

    /// The stamp that the next record's delta is added to.
    pub(crate) fn stamp(&self) -> u64 {
        self.ts
    }

    /// The next record with a payload.
    pub(crate) fn next(&mut self) -> Result<Option<Raw<'p>>, BadRecord> {
        self.next_as(self.endian)
    }

    /// Returns the next record with a payload; `endian` is the page's byte order. A reader of many records chooses it
    /// once for all of them, so that it is a constant in everything that is done with them.
    #[inline(always)]
    pub(crate) fn next_as(&mut self, endian: Endian) -> Result<Option<Raw<'p>>, BadRecord> {
        while !self.rest.is_empty() {
            match self.step(endian) {
                Ok(Some(raw)) => return Ok(Some(raw)),
                Ok(None) => {}
                Err(BadRecord) => {
                    self.rest = &[];
                    return Err(BadRecord);
                }
            }
        }
        Ok(None)
    }

    #[inline(always)]
    fn step(&mut self, endian: Endian) -> Result<Option<Raw<'p>>, BadRecord> {
        let second = |rest: &[u8]| endian.u32(rest, 4).ok_or(BadRecord);
        let word = endian.u32(self.rest, 0).ok_or(BadRecord)?;
        // The bit fields of the header are laid out from the other end on big-endian machines.
        let (kind, delta) = match endian {
            Endian::Little => (word & 31, u64::from(word >> 5)),
            Endian::Big => (word >> 27, u64::from(word & LENGTH)),
        };
        match kind {
            1..=28 => {
                self.ts = self.ts.wrapping_add(delta);
                let payload = self.advance(4, 4 * kind as usize)?;
                Ok(Some(Raw { ts: self.ts, payload, endian }))
            }
            0 => {
                let length = second(self.rest)? as usize;
                self.ts = self.ts.wrapping_add(delta);
                // The length includes its own word. It need not be a multiple of 4; records are.
                let payload = length.checked_sub(4).ok_or(BadRecord)?;
                let payload = self.advance(8, payload.checked_next_multiple_of(4).ok_or(BadRecord)?)?;
                Ok(Some(Raw { ts: self.ts, payload, endian }))
            }
            29 if delta == 0 => {
                self.rest = &[];
                Ok(None)
            }
            29 => {
                let length = second(self.rest)? as usize;
                self.ts = self.ts.wrapping_add(delta);
                self.advance(4, length.max(4).checked_next_multiple_of(4).ok_or(BadRecord)?)?;
                Ok(None)
            }
            30 => {
                self.ts = self.ts.wrapping_add((u64::from(second(self.rest)?) << 27).wrapping_add(delta));
                self.advance(8, 0)?;
                Ok(None)
            }
            _ => {
                let stamp = (u64::from(second(self.rest)?) << 27) | delta;
                self.ts = absolute(stamp, self.ts);
                self.advance(8, 0)?;
                Ok(None)
            }
        }
    }

    /// Passes over `header` bytes and takes `length` more.
    #[inline]
    fn advance(&mut self, header: usize, length: usize) -> Result<&'p [u8], BadRecord> {
        let rest = self.rest.get(header..).ok_or(BadRecord)?;
        let (taken, rest) = rest.split_at_checked(length).ok_or(BadRecord)?;
        self.rest = rest;
        Ok(taken)
    }
}

/// An absolute stamp has 59 bits. The five above come from the page, and count on when the lower
/// ones have wrapped.
fn absolute(stamp: u64, now: u64) -> u64 {
    const MSB: u64 = 0xf8 << 56;
    let msb = now & MSB;
    let ts = stamp | msb;
    if msb != 0 && ts < now { ts.wrapping_add(1 << 59) } else { ts }
}

/// Walks bytes as a page of any layout. The fuzz target calls this function.
#[doc(hidden)]
pub fn fuzz(bytes: &[u8]) -> usize {
    let Some((how, bytes)) = bytes.split_first() else { return 0 };
    let endian = if how & 1 == 0 { Endian::Little } else { Endian::Big };
    let layout = PageLayout::new(endian, if how & 2 == 0 { 8 } else { 4 }, bytes.len());
    let Ok(page) = RingPage::parse(bytes, &layout) else { return 0 };
    let mut records = page.records();
    let mut n = 0usize;
    while let Ok(Some(raw)) = records.next() {
        assert!(raw.payload.len() <= bytes.len());
        n = n.saturating_add(1);
    }
    n
}

#[cfg(test)]
mod tests;

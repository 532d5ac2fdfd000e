//! The bytes of a file, of which messages and the messages within them are asked for one by one.

use parse::Source;
use std::cell::RefCell;
use std::ops::Range;

/// Bytes of a file that are read at once: thousands of packets.
const KEPT: u64 = 256 << 10;

/// A source whose latest bytes are kept in memory.
#[derive(Debug)]
pub(crate) struct ReadAhead<'s> {
    source: &'s Source,
    kept: RefCell<KeptBytes>,
}

/// Bytes of a file from a place on, as many as `length`.
#[derive(Debug, Default)]
struct KeptBytes {
    start: u64,
    length: usize,
    bytes: Vec<u8>,
}

impl KeptBytes {
    fn get(&self, place: &Range<u64>) -> Option<&[u8]> {
        let from = usize::try_from(place.start.checked_sub(self.start)?).ok()?;
        let to = usize::try_from(place.end.checked_sub(self.start)?).ok().filter(|to| *to <= self.length)?;
        self.bytes.get(from..to)
    }

    /// Reads bytes from a place on; none where they cannot be read.
    fn fill(&mut self, source: &Source, start: u64) {
        self.bytes.resize(KEPT as usize, 0);
        (self.start, self.length) = (start, source.read_into(start, &mut self.bytes).unwrap_or(0));
    }
}

impl<'s> ReadAhead<'s> {
    pub(crate) fn new(source: &'s Source) -> ReadAhead<'s> {
        ReadAhead { source, kept: RefCell::default() }
    }

    pub(crate) fn size(&self) -> u64 {
        self.source.size()
    }

    /// Reads bytes into memory of their own; `None` where the file does not have all of them.
    pub(crate) fn get(&self, place: &Range<u64>) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        self.copy(place, &mut out)?;
        Some(out)
    }

    /// Reads bytes in the place of those of `out`; `None` where the file does not have all of them.
    pub(crate) fn copy(&self, place: &Range<u64>, out: &mut Vec<u8>) -> Option<()> {
        out.clear();
        let is_small = place.end.checked_sub(place.start)? < KEPT / 2;
        if matches!(self.source, Source::Memory(_)) {
            out.extend_from_slice(self.source.read(place, &mut Vec::new())?);
        } else if !is_small {
            *out = self.source.get(place)?;
        } else {
            let mut kept = self.kept.borrow_mut();
            if kept.get(place).is_none() {
                kept.fill(self.source, place.start);
            }
            out.extend_from_slice(kept.get(place)?);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_those_of_the_file_in_any_order() {
        let bytes: Vec<u8> = (0..9_000_000u32).flat_map(u32::to_le_bytes).collect();
        let mut file = transcript::Sorted::default();
        file.append(&bytes).unwrap();
        let sources = [file.into_source(), Source::Memory(bytes.clone())];
        assert!(matches!(sources[0], Source::File(..)), "beyond what is kept in memory");
        let size = bytes.len() as u64;
        for source in &sources {
            let (ahead, mut rng) = (ReadAhead::new(source), testkit::Rng::new(7));
            for _ in 0..300 {
                let start = rng.below(bytes.len()) as u64;
                for length in [1, 10, KEPT / 2 - 1, KEPT / 2, 3 * KEPT] {
                    let place = start..start + length;
                    let expected = bytes.get(place.start as usize..place.end as usize);
                    assert_eq!(ahead.get(&place).as_deref(), expected, "{place:?}");
                }
            }
            assert_eq!(ahead.get(&(size..size)), Some(Vec::new()));
        }
    }
}

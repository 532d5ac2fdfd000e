//! A text that comes in pieces, cut into blocks of whole lines.

use crate::limits;
use memchr::{memchr, memrchr};

/// Bytes of a block, roughly.
const BLOCK: usize = 256 << 10;

/// Cuts a text into blocks of whole lines.
#[derive(Debug, Default)]
pub(crate) struct BlockCutter {
    block: Vec<u8>,
    /// Whether the text is within a line beyond the limit.
    is_long: bool,
    left_out: u64,
}

impl BlockCutter {
    /// Adds a piece; `true` if a block is to be taken.
    pub(crate) fn add(&mut self, mut piece: &[u8]) -> bool {
        if self.is_long {
            let Some(end) = memchr(b'\n', piece) else { return false };
            piece = piece.get(end.saturating_add(1)..).unwrap_or_default();
            self.is_long = false;
        }
        self.block.extend_from_slice(piece);
        self.block.len() >= BLOCK
    }

    /// Takes all whole lines as a block, in the place of an earlier one.
    pub(crate) fn take(&mut self, mut earlier: Vec<u8>) -> Vec<u8> {
        let whole = memrchr(b'\n', &self.block).map_or(0, |at| at.saturating_add(1));
        let rest = self.block.get(whole..).unwrap_or_default();
        earlier.clear();
        if rest.len() <= limits::LINE {
            earlier.extend_from_slice(rest);
        } else {
            self.is_long = true;
            self.left_out = self.left_out.saturating_add(1);
        }
        self.block.truncate(whole);
        std::mem::replace(&mut self.block, earlier)
    }

    /// Returns the last lines, of which the last one may have no end, and the number of lines that were left out.
    pub(crate) fn end(self) -> (Vec<u8>, u64) {
        (self.block, self.left_out)
    }
}

/// The lines of a block, without their ends.
pub(crate) fn lines(mut block: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        if block.is_empty() {
            return None;
        }
        let length = memchr(b'\n', block).unwrap_or(block.len());
        let line = block.get(..length)?;
        block = block.get(length.saturating_add(1)..).unwrap_or_default();
        Some(line)
    })
}

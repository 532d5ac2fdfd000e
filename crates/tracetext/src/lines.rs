//! The lines of a text that comes in pieces.

use crate::limits;
use memchr::memchr;

/// Cuts a text into lines.
#[derive(Debug, Default)]
pub(crate) struct LineCutter {
    /// The beginning of a line whose end was not read yet, and whether that is beyond the limit.
    rest: Vec<u8>,
    is_long: bool,
    left_out: u64,
}

impl LineCutter {
    /// Passes each line that ends in a piece to `take`, without its end; lines beyond the limit are left out. An error of `take` ends it.
    pub(crate) fn piece<E>(&mut self, mut piece: &[u8], mut take: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        while let Some(length) = memchr(b'\n', piece) {
            let line = piece.get(..length).unwrap_or_default();
            piece = piece.get(length.saturating_add(1)..).unwrap_or_default();
            let is_whole = !std::mem::take(&mut self.is_long) && self.rest.len().saturating_add(length) <= limits::LINE;
            if !is_whole {
                self.left_out = self.left_out.saturating_add(1);
            } else if self.rest.is_empty() {
                take(line)?;
            } else {
                self.rest.extend_from_slice(line);
                take(&self.rest)?;
            }
            self.rest.clear();
        }
        self.is_long |= self.rest.len().saturating_add(piece.len()) > limits::LINE;
        if self.is_long {
            self.rest.clear();
        } else {
            self.rest.extend_from_slice(piece);
        }
        Ok(())
    }

    /// Passes a last line without an end to `take`; returns the number of lines that were left out.
    pub(crate) fn end<E>(self, mut take: impl FnMut(&[u8]) -> Result<(), E>) -> Result<u64, E> {
        if self.is_long {
            return Ok(self.left_out.saturating_add(1));
        }
        if !self.rest.is_empty() {
            take(&self.rest)?;
        }
        Ok(self.left_out)
    }
}

//! Compressed records (`perf record -z`): one zstd stream over the whole file, in pieces.
//!
//! perf compresses what it empties from the ring buffers as it comes, and a record may begin in one piece and end in the
//! next. Each piece refers to those before it: they are decompressed in order, once.

use parse::FileIssue;
use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

/// Bytes that are decompressed at once.
const STEP: usize = 64 << 10;

/// A compressed record's bytes that are not decompressed yet.
#[derive(Debug)]
pub(crate) struct CompressedPiece<'r> {
    bytes: &'r [u8],
    is_done: bool,
}

impl<'r> CompressedPiece<'r> {
    pub(crate) fn new(bytes: &'r [u8]) -> CompressedPiece<'r> {
        CompressedPiece { bytes, is_done: false }
    }
}

/// The state of the stream, and the bytes that are no whole record yet.
pub(crate) struct Decompressor {
    decoder: Option<Decoder<'static>>,
    rest: Vec<u8>,
    /// Bytes that may still come out.
    left: u64,
    /// An error ended the stream.
    is_over: bool,
}

impl std::fmt::Debug for Decompressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decompressor").field("rest", &self.rest.len()).field("left", &self.left).finish()
    }
}

impl Decompressor {
    /// Returns a decompressor that gives at most `left` bytes.
    pub(crate) fn new(left: u64) -> Decompressor {
        Decompressor { decoder: None, rest: Vec::new(), left, is_over: false }
    }

    /// Decompresses the next bytes of a piece, which moves on: those that are left of the bytes before, and up to [`STEP`] more, so
    /// that a piece takes no more memory the better it was compressed. `None` at the end of the piece; after an error nothing more
    /// comes.
    pub(crate) fn next(&mut self, piece: &mut CompressedPiece<'_>) -> Option<Result<Vec<u8>, FileIssue>> {
        if piece.is_done {
            return None;
        }
        let mut plain = std::mem::take(&mut self.rest);
        let result = if self.is_over { Err(FileIssue::BeyondLimit) } else { self.step(piece, &mut plain) };
        if result.is_err() {
            self.is_over = true;
            piece.is_done = true;
        }
        Some(result.map(|()| plain))
    }

    fn step(&mut self, piece: &mut CompressedPiece<'_>, plain: &mut Vec<u8>) -> Result<(), FileIssue> {
        let corrupt = |_| FileIssue::CorruptChunk;
        if self.decoder.is_none() {
            self.decoder = Some(Decoder::new().map_err(corrupt)?);
        }
        let Some(decoder) = &mut self.decoder else { return Ok(()) };
        let before = plain.len();
        plain.resize(before.saturating_add(STEP), 0);
        let mut input = InBuffer::around(piece.bytes);
        let mut output = OutBuffer::around(plain.get_mut(before..).unwrap_or_default());
        let run = decoder.run(&mut input, &mut output);
        let (read, written) = (input.pos(), output.pos());
        plain.truncate(before.saturating_add(written));
        run.map_err(corrupt)?;
        self.left = self.left.checked_sub(written as u64).ok_or(FileIssue::BeyondLimit)?;
        piece.bytes = piece.bytes.get(read..).unwrap_or_default();
        // A full buffer may have left more inside.
        piece.is_done = piece.bytes.is_empty() && written < STEP;
        Ok(())
    }

    /// Keeps the bytes behind the last whole record.
    pub(crate) fn keep(&mut self, rest: Vec<u8>) {
        self.rest = rest;
    }

    /// Whether a record has begun and not ended.
    pub(crate) fn has_rest(&self) -> bool {
        !self.rest.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decompresses a piece as the records of it are read: the number of bytes, and the most that there were at once.
    fn expand(decompressor: &mut Decompressor, bytes: &[u8]) -> Result<(usize, usize), FileIssue> {
        let (mut piece, mut all, mut most) = (CompressedPiece::new(bytes), 0, 0);
        while let Some(plain) = decompressor.next(&mut piece) {
            let plain = plain?;
            (all, most) = (all + plain.len(), most.max(plain.len()));
            decompressor.keep(Vec::new());
        }
        Ok((all, most))
    }

    #[test]
    fn a_stream_decompresses_to_no_more_than_the_limit() {
        let plain = vec![0; 1 << 20];
        let bytes = zstd::bulk::compress(&plain, 1).unwrap();
        assert!(bytes.len() < 1000);
        assert_eq!(expand(&mut Decompressor::new(1 << 20), &bytes), Ok((1 << 20, STEP)));
        let mut bounded = Decompressor::new((1 << 20) - 1);
        assert_eq!(expand(&mut bounded, &bytes), Err(FileIssue::BeyondLimit));
        assert_eq!(expand(&mut bounded, b""), Err(FileIssue::BeyondLimit));
    }

    #[test]
    fn damage_ends_the_stream() {
        let mut decompressor = Decompressor::new(1000);
        assert_eq!(expand(&mut decompressor, b"no frame of zstd"), Err(FileIssue::CorruptChunk));
        assert!(expand(&mut decompressor, &zstd::bulk::compress(b"good", 1).unwrap()).is_err());
    }
}

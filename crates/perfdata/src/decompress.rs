//! Compressed records (`perf record -z`): one zstd stream over the whole file, in pieces.
//!
//! perf compresses what it empties from the ring buffers as it comes, and a record may begin in one piece and end in the
//! next. Each piece refers to those before it: they are decompressed in order, once.

use tracedat::FileIssue;
use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

/// Bytes that are decompressed at once.
const STEP: usize = 64 << 10;

/// The state of the stream, and the bytes that are no whole record yet.
pub(crate) struct Decompressor {
    decoder: Option<Decoder<'static>>,
    rest: Vec<u8>,
    /// Bytes that may still come out.
    left: u64,
}

impl std::fmt::Debug for Decompressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decompressor").field("rest", &self.rest.len()).field("left", &self.left).finish()
    }
}

impl Decompressor {
    /// At most `left` bytes are decompressed.
    pub(crate) fn new(left: u64) -> Decompressor {
        Decompressor { decoder: None, rest: Vec::new(), left }
    }

    /// Decompresses a piece: the bytes left of those before and its own, or why there are none. After an error
    /// nothing more comes.
    pub(crate) fn add(&mut self, piece: &[u8]) -> Result<Vec<u8>, FileIssue> {
        let mut plain = std::mem::take(&mut self.rest);
        if self.left == 0 {
            return Err(FileIssue::BeyondLimit);
        }
        let result = self.decompress(piece, &mut plain);
        if result.is_err() {
            self.left = 0;
        }
        result.map(|()| plain)
    }

    fn decompress(&mut self, piece: &[u8], plain: &mut Vec<u8>) -> Result<(), FileIssue> {
        let corrupt = |_| FileIssue::CorruptChunk;
        if self.decoder.is_none() {
            self.decoder = Some(Decoder::new().map_err(corrupt)?);
        }
        let Some(decoder) = &mut self.decoder else { return Ok(()) };
        let mut input = InBuffer::around(piece);
        let mut step = vec![0; STEP];
        loop {
            let mut output = OutBuffer::around(step.as_mut_slice());
            decoder.run(&mut input, &mut output).map_err(corrupt)?;
            let written = output.as_slice();
            self.left = self.left.checked_sub(written.len() as u64).ok_or(FileIssue::BeyondLimit)?;
            plain.extend_from_slice(written);
            // A full buffer may have left more inside.
            if input.pos() >= piece.len() && written.len() < STEP {
                return Ok(());
            }
        }
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

    #[test]
    fn a_stream_decompresses_to_no_more_than_the_limit() {
        let plain = vec![0; 1 << 20];
        let bytes = zstd::bulk::compress(&plain, 1).unwrap();
        assert!(bytes.len() < 1000);
        assert_eq!(Decompressor::new(1 << 20).add(&bytes).map(|plain| plain.len()), Ok(1 << 20));
        let mut bounded = Decompressor::new((1 << 20) - 1);
        assert_eq!(bounded.add(&bytes), Err(FileIssue::BeyondLimit));
        assert_eq!(bounded.add(b""), Err(FileIssue::BeyondLimit));
    }

    #[test]
    fn damage_ends_the_stream() {
        let mut decompressor = Decompressor::new(1000);
        assert_eq!(decompressor.add(b"no frame of zstd"), Err(FileIssue::CorruptChunk));
        assert!(decompressor.add(&zstd::bulk::compress(b"good", 1).unwrap()).is_err());
    }
}

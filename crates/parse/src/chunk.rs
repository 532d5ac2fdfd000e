//! Compressed CPU data: chunks of whole pages, each compressed on its own.

use crate::bytes::Bytes;
use crate::bytes::Endian;
use std::cell::RefCell;
use std::ops::Range;

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Codec {
    Zstd,
    Zlib,
}

impl Codec {
    /// By the name in the header. The version behind it is the writer's library, and no matter.
    pub(crate) fn of(name: &str) -> Option<Codec> {
        match name {
            "zstd" => Some(Codec::Zstd),
            "zlib" => Some(Codec::Zlib),
            _ => None,
        }
    }
}

/// More than this no writer puts into a chunk: 10 pages of 1 MiB at the most.
const LARGEST_CHUNK: usize = 32 << 20;
/// Header texts: symbols are 15 MB, formats 2 MB.
const LARGEST_TEXT: usize = 1 << 30;

/// One chunk of a CPU's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// File offset of its compressed bytes,
    pub(crate) at: u64,
    /// their number,
    pub(crate) compressed: u32,
    /// and what they expand to.
    pub(crate) size: u32,
}

impl Chunk {
    /// Where its compressed bytes are in the file.
    pub(crate) fn place(&self) -> Range<u64> {
        self.at..self.at.saturating_add(self.compressed.into())
    }
}

/// The chunks of a CPU, found by hopping over their headers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chunks {
    pub(crate) chunks: Vec<Chunk>,
    /// The file ends before the last one does, or a size is impossible.
    pub(crate) cut: bool,
}

impl Chunks {
    /// The chunks that begin at the start of `place` and do not go beyond its end. The data size in the header is
    /// not needed, which is as well: writers until 3.1.x store it 4 bytes too small. `passed` is told every
    /// so often up to where the file has been looked at: hopping through gigabytes must not keep them in memory.
    pub(crate) fn index(file: &[u8], place: Range<u64>, endian: Endian, passed: &dyn Fn(Range<u64>)) -> Chunks {
        let mut found = Chunks::default();
        let Some(rest) = crate::header::slice(file, &place) else {
            return Chunks { cut: true, ..found };
        };
        let mut bytes = Bytes::new(rest, place.start, endian);
        let Ok(count) = bytes.u32() else { return Chunks { cut: true, ..found } };
        let mut told = place.start;
        for _ in 0..count {
            let (Ok(compressed), Ok(size)) = (bytes.u32(), bytes.u32()) else {
                found.cut = true;
                break;
            };
            let at = bytes.at();
            if size as usize > LARGEST_CHUNK || bytes.take(compressed.into()).is_err() {
                found.cut = true;
                break;
            }
            found.chunks.push(Chunk { at, compressed, size });
            if bytes.at().saturating_sub(told) > 16 << 20 {
                passed(told..bytes.at());
                told = bytes.at();
            }
        }
        passed(told..bytes.at());
        found
    }
}

thread_local! {
    static ZSTD: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Decompresses one chunk into `out`, which is cleared first. zstd frames are written without
/// their content size, so the size must come from outside.
pub(crate) fn decompress(codec: Codec, compressed: &[u8], size: usize, out: &mut Vec<u8>) -> Option<()> {
    out.clear();
    if size > LARGEST_TEXT || impossible(compressed.len(), size) {
        return None;
    }
    out.reserve_exact(size);
    match codec {
        Codec::Zstd => ZSTD.with_borrow_mut(|decompressor| {
            let decompressor = match decompressor {
                Some(d) => d,
                None => decompressor.insert(zstd::bulk::Decompressor::new().ok()?),
            };
            decompressor.decompress_to_buffer(compressed, out).ok()
        })?,
        Codec::Zlib => {
            let mut inflate = flate2::Decompress::new(true);
            inflate.decompress_vec(compressed, out, flate2::FlushDecompress::Finish).ok()?;
            out.len()
        }
    };
    (out.len() == size).then_some(())
}

/// A size that so few bytes cannot expand to: zstd makes at most 128 KiB of a few bytes, zlib a
/// thousandfold. Keeps a small file from asking for gigabytes.
fn impossible(compressed: usize, size: usize) -> bool {
    size > compressed.saturating_mul(65_536).saturating_add(1 << 17)
}

/// For the fuzz target: the index of a CPU's data, and its first chunks.
#[doc(hidden)]
pub fn fuzz(bytes: &[u8]) -> usize {
    let found = Chunks::index(bytes, 0..bytes.len() as u64, Endian::Little, &|_| {});
    let mut out = Vec::new();
    for chunk in found.chunks.iter().take(4) {
        let at = usize::try_from(chunk.at).unwrap_or(usize::MAX);
        if let Some(part) = bytes.get(at..at.saturating_add(chunk.compressed as usize)) {
            let size = (chunk.size as usize).min(1 << 16);
            for codec in [Codec::Zstd, Codec::Zlib] {
                let _ = decompress(codec, part, size, &mut out);
            }
        }
    }
    found.chunks.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(chunks: &[(u32, u32, &[u8])]) -> Vec<u8> {
        let mut bytes = (chunks.len() as u32).to_le_bytes().to_vec();
        for (compressed, size, data) in chunks {
            bytes.extend(compressed.to_le_bytes());
            bytes.extend(size.to_le_bytes());
            bytes.extend(*data);
        }
        bytes
    }

    fn index(bytes: &[u8], at: u64) -> Chunks {
        Chunks::index(bytes, at..(bytes.len() as u64).max(at), Endian::Little, &|_| {})
    }

    #[test]
    fn hops_over_the_headers() {
        let bytes = data(&[(3, 100, b"abc"), (1, 50, b"d")]);
        let found = index(&bytes, 0);
        let places: Vec<_> = found.chunks.iter().map(|c| (c.at, c.compressed, c.size)).collect();
        assert_eq!((places, found.cut), (vec![(12, 3, 100), (23, 1, 50)], false));
    }

    #[test]
    fn stops_where_the_file_ends() {
        let bytes = data(&[(3, 100, b"abc"), (9, 50, b"d")]);
        let found = index(&bytes, 0);
        assert_eq!((found.chunks.len(), found.cut), (1, true));
        // A count of four thousand million allocates nothing (case 29).
        assert!(index(&[0xff; 8], 0).cut);
        assert!(index(&[], 77).cut);
        assert!(index(&data(&[(1, u32::MAX, b"a")]), 0).cut);
    }

    #[test]
    fn decompresses_both_kinds_and_refuses_wrong_sizes() {
        let plain = [7u8; 5000];
        let zstd = zstd::bulk::compress(&plain, 3).unwrap();
        let mut zlib = Vec::new();
        let mut deflate = flate2::Compress::new(flate2::Compression::fast(), true);
        zlib.reserve(1000);
        deflate.compress_vec(&plain, &mut zlib, flate2::FlushCompress::Finish).unwrap();
        let mut out = Vec::new();
        for (codec, bytes) in [(Codec::Zstd, zstd), (Codec::Zlib, zlib)] {
            assert_eq!(decompress(codec, &bytes, 5000, &mut out), Some(()));
            assert_eq!(out, plain);
            assert_eq!(decompress(codec, &bytes, 4999, &mut out), None);
            assert_eq!(decompress(codec, &bytes, 5001, &mut out), None);
            assert_eq!(decompress(codec, &bytes[..bytes.len() / 2], 5000, &mut out), None);
            assert_eq!(decompress(codec, b"junk", 1 << 29, &mut out), None);
        }
    }
}

//! Compressed CPU data: chunks of whole pages, each compressed on its own.

use crate::bytes::Endian;
use crate::file::source::Source;
use crate::limits;
use std::cell::RefCell;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// The compression of a file's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Codec {
    Zstd,
    Zlib,
}

impl Codec {
    /// Returns the codec with this name in the header. The library version after the name is ignored.
    pub(crate) fn of(name: &str) -> Option<Codec> {
        match name {
            "zstd" => Some(Codec::Zstd),
            "zlib" => Some(Codec::Zlib),
            _ => None,
        }
    }
}

/// A chunk of a CPU's data, or a piece of a large chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// File offset of its compressed bytes.
    pub(crate) at: u64,
    /// The number of its compressed bytes.
    pub(crate) compressed: u32,
    /// The number of bytes of the whole chunk, decompressed.
    pub(crate) size: u32,
    /// Offset of the piece in the decompressed chunk, in bytes.
    pub(crate) start: u32,
    /// The number of bytes of the piece.
    pub(crate) length: u32,
}

impl Chunk {
    /// The bytes of this piece of the chunk with these compressed bytes. They are in `buffer`, which no other bytes fill for long: the whole of
    /// a large chunk is decompressed in the one room that all threads of the process have for it.
    pub(crate) fn decompress_piece<'b>(
        &self,
        codec: Codec,
        compressed: &[u8],
        buffer: &'b mut Vec<u8>,
    ) -> Option<&'b [u8]> {
        if self.length == self.size {
            decompress(codec, compressed, self.size as usize, buffer)?;
            return self.piece(buffer);
        }
        let mut large = LARGE.lock().unwrap_or_else(PoisonError::into_inner);
        let whole = large.decompressed(codec, compressed, self.size as usize)?;
        buffer.clear();
        buffer.extend_from_slice(self.piece(whole)?);
        Some(buffer)
    }

    /// The piece among the bytes of the whole chunk.
    fn piece<'b>(&self, whole: &'b [u8]) -> Option<&'b [u8]> {
        whole.get(self.start as usize..self.start.checked_add(self.length)? as usize)
    }

    /// Returns the place of the compressed bytes in the file.
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
    /// Whether the index ends at a chunk that is larger than a limit.
    pub(crate) beyond: bool,
}

impl Chunks {
    /// The chunks that begin at the start of `place` and do not go beyond its end. The data size in the header is
    /// not needed, which is as well: writers until 3.1.x store it 4 bytes too small.
    pub(crate) fn index(source: &Source, place: Range<u64>, endian: Endian) -> Chunks {
        let mut found = Chunks::default();
        let end = place.end;
        let count = source.array::<4>(place.start).filter(|_| end <= source.size()).and_then(|raw| endian.u32(&raw, 0));
        let Some(count) = count else { return Chunks { cut: true, ..found } };
        let mut next = place.start.saturating_add(4);
        for _ in 0..count {
            let at = next.saturating_add(8);
            let sizes = source.array::<8>(next).filter(|_| at <= end);
            let Some((compressed, size)) = sizes.and_then(|raw| endian.u32(&raw, 0).zip(endian.u32(&raw, 4))) else {
                found.cut = true;
                break;
            };
            next = at.saturating_add(compressed.into());
            found.beyond = size > limits::CHUNK || compressed > limits::COMPRESSED_CHUNK;
            if found.beyond || next > end {
                found.cut = true;
                break;
            }
            found.chunks.push(Chunk { at, compressed, size, start: 0, length: size });
        }
        found
    }

    /// Ends the chunks where those of the file expand to more than the bytes that are left, and takes off what they do.
    pub(crate) fn bound(&mut self, left: &mut u64) {
        let affordable = self.chunks.iter().take_while(|chunk| {
            let rest = left.checked_sub(chunk.size.into());
            *left = rest.unwrap_or(0);
            rest.is_some()
        });
        let count = affordable.count();
        if count < self.chunks.len() {
            self.chunks.truncate(count);
            (self.cut, self.beyond) = (true, true);
        }
    }
}

/// How large chunks are divided, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pieces {
    /// A chunk of up to this size is read at once.
    whole: u32,
    /// The size of a piece of a larger one. Its decoded events take five times as much where each has 16 bytes, and a CPU has several pieces.
    piece: u32,
}

impl Pieces {
    /// The sizes for the merge of this number of CPUs, of each of which a chunk or a piece is in memory.
    pub(crate) fn of(cpus: usize, page: usize) -> Pieces {
        let room = (16 << 20) / cpus.max(1);
        let pages_within = |most: usize| {
            let page = page.max(1);
            room.clamp(64 << 10, most).div_ceil(page).saturating_mul(page).min(1 << 30) as u32
        };
        Pieces { whole: pages_within(1 << 20), piece: pages_within(256 << 10) }
    }

    /// Divides the chunks that are too large.
    pub(crate) fn divide(self, chunks: &mut Vec<Chunk>) {
        if chunks.iter().all(|chunk| chunk.length <= self.whole) {
            return;
        }
        let pieces = |chunk: &Chunk| {
            let chunk = *chunk;
            let piece = if chunk.length <= self.whole { self.whole } else { self.piece }.max(1);
            (0..chunk.length.div_ceil(piece)).map(move |nth| {
                let start = nth.saturating_mul(piece);
                Chunk { start, length: chunk.length.saturating_sub(start).min(piece), ..chunk }
            })
        };
        *chunks = chunks.iter().flat_map(pieces).collect();
    }
}

/// A chunk of which pieces are read. Recorders write chunks that are not divided.
struct LargeChunk {
    /// The bytes in the file, by which a chunk is known: it is decompressed once for pieces that are read one after the other.
    compressed: Vec<u8>,
    /// The decompressed bytes, up to [`limits::CHUNK`]; empty where they could not be had.
    bytes: Vec<u8>,
}

/// The large chunk of all threads: each of 16 would otherwise have one.
static LARGE: Mutex<LargeChunk> = Mutex::new(LargeChunk { compressed: Vec::new(), bytes: Vec::new() });

impl LargeChunk {
    /// The decompressed bytes of the chunk with these compressed ones.
    fn decompressed(&mut self, codec: Codec, compressed: &[u8], size: usize) -> Option<&[u8]> {
        if self.bytes.len() != size || self.compressed != compressed {
            // Where this fails, no bytes are taken for those of a chunk.
            self.compressed.clear();
            if decompress(codec, compressed, size, &mut self.bytes).is_none() {
                self.bytes.clear();
                return None;
            }
            self.compressed.extend_from_slice(compressed);
        }
        Some(&self.bytes)
    }
}

thread_local! {
    static ZSTD: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Decompresses one chunk into `out`, which is cleared first. The caller bounds the size. zstd frames are written without
/// their content size, so the size must come from outside.
pub(crate) fn decompress(codec: Codec, compressed: &[u8], size: usize, out: &mut Vec<u8>) -> Option<()> {
    out.clear();
    if impossible(compressed.len(), size) {
        return None;
    }
    out.try_reserve_exact(size).ok()?;
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

/// Compresses bytes as a recorder does: a zstd frame has no content size.
pub(crate) fn compress(codec: Codec, bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    match codec {
        Codec::Zstd => {
            let mut compressor = zstd::bulk::Compressor::new(3)?;
            compressor.include_contentsize(false)?;
            compressor.compress(bytes)
        }
        Codec::Zlib => {
            let mut deflate = flate2::Compress::new(flate2::Compression::default(), true);
            // Incompressible data become larger by some bytes in each block.
            let mut out = Vec::with_capacity(bytes.len().saturating_add(bytes.len() / 100).saturating_add(1024));
            match deflate.compress_vec(bytes, &mut out, flate2::FlushCompress::Finish) {
                Ok(flate2::Status::StreamEnd) => Ok(out),
                _ => Err(std::io::Error::other("zlib cannot compress a chunk")),
            }
        }
    }
}

/// A size that so few bytes cannot expand to: zstd makes at most 128 KiB of a few bytes, zlib a
/// thousandfold. Keeps a small file from asking for gigabytes.
fn impossible(compressed: usize, size: usize) -> bool {
    size > compressed.saturating_mul(65_536).saturating_add(1 << 17)
}

/// Indexes bytes as a CPU's data and decompresses the first chunks. The fuzz target calls this function.
#[doc(hidden)]
pub fn fuzz(bytes: &[u8]) -> usize {
    let found = Chunks::index(&Source::Memory(bytes.to_vec()), 0..bytes.len() as u64, Endian::Little);
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
        Chunks::index(&Source::Memory(bytes.to_vec()), at..(bytes.len() as u64).max(at), Endian::Little)
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
        let beyond = index(&data(&[(3, limits::CHUNK, b"abc"), (1, limits::CHUNK + 1, b"a")]), 0);
        assert_eq!((beyond.chunks.len(), beyond.cut, beyond.beyond), (1, true, true));
    }

    #[test]
    fn all_chunks_of_a_file_have_a_limit() {
        let bytes = data(&[(1, 100, b"a"), (1, 50, b"b"), (1, 50, b"c")]);
        let mut left = 160;
        let bound = |left: &mut u64| {
            let mut found = index(&bytes, 0);
            found.bound(left);
            (found.chunks.len(), found.beyond, found.cut)
        };
        assert_eq!((bound(&mut left), left), ((2, true, true), 0), "the chunks of the next CPU have nothing left");
        assert_eq!(bound(&mut left), (0, true, true));
        left = 1000;
        assert_eq!((bound(&mut left), left), ((3, false, false), 800));
    }

    #[test]
    fn large_chunks_are_read_in_pieces_of_whole_pages() {
        let of = |cpus, page| {
            let Pieces { whole, piece } = Pieces::of(cpus, page);
            (whole, piece)
        };
        assert_eq!([of(1, 4096), of(64, 4096)], [(1 << 20, 256 << 10), (256 << 10, 256 << 10)]);
        assert_eq!([of(100_000, 4096), of(100_000, 1 << 20)], [(64 << 10, 64 << 10), (1 << 20, 1 << 20)]);
        let mut chunks = index(&data(&[(1, 50, b"a"), (1, 100, b"b")]), 0).chunks;
        Pieces { whole: 50, piece: 40 }.divide(&mut chunks);
        let pieces: Vec<_> = chunks.iter().map(|chunk| (chunk.at, chunk.size, chunk.start, chunk.length)).collect();
        assert_eq!(pieces, [(12, 50, 0, 50), (21, 100, 0, 40), (21, 100, 40, 40), (21, 100, 80, 20)]);
        let whole: Vec<u8> = (0..100).collect();
        assert_eq!(chunks.last().and_then(|chunk| chunk.piece(&whole)), Some(&whole[80..]));
    }

    #[test]
    fn a_large_chunk_is_known_by_its_bytes() {
        let compressed = |byte: u8| compress(Codec::Zstd, &[byte; 300]).unwrap();
        let (a, b) = (compressed(7), compressed(8));
        let mut large = LargeChunk { compressed: Vec::new(), bytes: Vec::new() };
        let mut first =
            |compressed: &[u8], size| large.decompressed(Codec::Zstd, compressed, size).map(|bytes| bytes[0]);
        assert_eq!([first(&a, 300), first(&a, 300), first(&b, 300), first(&a, 300)], [7, 7, 8, 7].map(Some));
        assert_eq!(
            [first(&a, 299), first(b"junk", 300), first(b"junk", 300), first(&a, 300)],
            [None, None, None, Some(7)]
        );
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

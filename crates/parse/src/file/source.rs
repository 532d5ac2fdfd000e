//! The bytes of a file, read where they are asked for, or in memory.
//!
//! The file is not mapped: where it is cut short while it is read, a mapping ends the program (SIGBUS), and a read is
//! an error that costs the data behind the cut.

use crate::bytes::{Bytes, Cursor, Endian, Eof};
use crate::error::Error;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::ops::Range;
use std::path::Path;

/// Whether a recorder that was to write this file left what it had read of the ring buffers.
fn has_parts(path: &Path) -> bool {
    let mut part = path.as_os_str().to_owned();
    part.push(".cpu0");
    Path::new(&part).is_file()
}

/// The bytes of a source from a place on.
struct SourceReader<'s> {
    source: &'s Source,
    at: u64,
}

impl Read for SourceReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let length = self.source.read_into(self.at, buffer)?;
        self.at = self.at.saturating_add(length as u64);
        Ok(length)
    }
}

/// The bytes of a file.
#[derive(Debug)]
pub enum Source {
    /// A file, and the size that it had when it was opened.
    File(File, u64),
    /// Bytes in memory.
    Memory(Vec<u8>),
}

impl Source {
    /// Opens the file at `path`. Its size is taken once: later additions are not seen.
    pub fn open(path: &Path) -> Result<Source, Error> {
        let io = |source| Error::Io { path: path.to_owned(), source };
        // A FIFO would block in open(2), so look first.
        let meta = std::fs::metadata(path).map_err(|source| match source.kind() {
            ErrorKind::NotFound if has_parts(path) => Error::Unwritten { path: path.to_owned() },
            _ => io(source),
        })?;
        if !meta.is_file() {
            return Err(Error::NotAFile { path: path.to_owned(), what: kind(&meta.file_type()) });
        }
        let file = opened::file(path).map_err(io)?;
        let size = file.metadata().map_err(io)?.len();
        if size == 0 {
            return Err(Error::Foreign { what: "the file is empty (was the recording interrupted? trace.dat is written at its end; trace-cmd restore can join the trace.dat.cpu* files)".into() });
        }
        Ok(Source::File(file, size))
    }

    /// The same bytes once more, as of a file that is opened twice.
    pub(crate) fn again(&self) -> std::io::Result<Source> {
        Ok(match self {
            Source::File(file, size) => Source::File(file.try_clone()?, *size),
            Source::Memory(bytes) => Source::Memory(bytes.clone()),
        })
    }

    /// The size of the file when it was opened.
    pub fn size(&self) -> u64 {
        match self {
            Source::File(_, size) => *size,
            Source::Memory(bytes) => bytes.len() as u64,
        }
    }

    /// Whether the file is still as long as it was when it was opened.
    pub(crate) fn is_whole(&self) -> bool {
        match self {
            Source::File(file, size) => file.metadata().is_ok_and(|now| now.len() >= *size),
            Source::Memory(_) => true,
        }
    }

    /// A part will be read soon: the kernel may begin to.
    pub(crate) fn will_read(&self, at: u64, len: u64) {
        #[cfg(target_os = "linux")]
        if let (Source::File(file, _), Some(len)) = (self, std::num::NonZeroU64::new(len)) {
            let _ = rustix::fs::fadvise(file, at, Some(len), rustix::fs::Advice::WillNeed);
        }
        #[cfg(not(target_os = "linux"))]
        let _ = (at, len);
    }

    /// The bytes of a part, those of a file in `buffer`; `None` if they cannot be read, or if there is no memory for
    /// them.
    pub fn read<'b>(&'b self, place: &Range<u64>, buffer: &'b mut Vec<u8>) -> Option<&'b [u8]> {
        match self {
            Source::Memory(bytes) => bytes.get(usize::try_from(place.start).ok()?..usize::try_from(place.end).ok()?),
            Source::File(file, size) => {
                let length =
                    usize::try_from(place.end.checked_sub(place.start)?).ok().filter(|_| place.end <= *size)?;
                if buffer.len() < length {
                    buffer.clear();
                    buffer.try_reserve_exact(length).ok()?;
                    buffer.resize(length, 0);
                }
                let buffer = buffer.get_mut(..length)?;
                read_exact_at(file, buffer, place.start).ok()?;
                Some(buffer)
            }
        }
    }

    /// Reads bytes into memory of their own; `None` where the file does not have all of them.
    pub fn get(&self, place: &Range<u64>) -> Option<Vec<u8>> {
        let mut buffer = Vec::new();
        match self {
            Source::Memory(_) => return self.read(place, &mut buffer).map(<[u8]>::to_vec),
            Source::File(..) => self.read(place, &mut buffer)?,
        };
        Some(buffer)
    }

    /// A reader of the bytes from a place on.
    pub fn reader(&self, at: u64) -> impl Read + '_ {
        SourceReader { source: self, at }
    }

    /// Reads bytes from a place on into a buffer, as many as fit or the source still has; returns their number.
    ///
    /// # Errors
    ///
    /// Those of reading the file, and a file that was cut since it was opened.
    pub fn read_into(&self, at: u64, buffer: &mut [u8]) -> std::io::Result<usize> {
        let length = usize::try_from(self.size().saturating_sub(at)).unwrap_or(usize::MAX).min(buffer.len());
        let buffer = buffer.get_mut(..length).unwrap_or_default();
        match self {
            Source::Memory(bytes) => {
                let bytes = usize::try_from(at).ok().and_then(|at| bytes.get(at..)).unwrap_or_default();
                buffer.copy_from_slice(bytes.get(..length).ok_or(ErrorKind::UnexpectedEof)?);
            }
            Source::File(file, _) => read_exact_at(file, buffer, at)?,
        }
        Ok(length)
    }

    /// A few bytes.
    pub(crate) fn array<const N: usize>(&self, at: u64) -> Option<[u8; N]> {
        let mut array = [0; N];
        match self {
            Source::Memory(bytes) => array = *bytes.get(usize::try_from(at).ok()?..)?.first_chunk()?,
            Source::File(file, size) => {
                at.checked_add(N as u64).filter(|end| end <= size)?;
                read_exact_at(file, &mut array, at).ok()?;
            }
        }
        Some(array)
    }
}

#[cfg(unix)]
fn read_exact_at(file: &File, buffer: &mut [u8], at: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, at)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut buffer: &mut [u8], mut at: u64) -> std::io::Result<()> {
    while !buffer.is_empty() {
        let read = std::os::windows::fs::FileExt::seek_read(file, buffer, at)?;
        if read == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        buffer = buffer.get_mut(read..).unwrap_or_default();
        at = at.saturating_add(read as u64);
    }
    Ok(())
}

/// Bytes that are read at once where single numbers are asked for.
const WINDOW: u64 = 64 << 10;

/// A position in a file; reading moves it.
#[derive(Debug)]
pub(crate) struct FileBytes<'s> {
    source: &'s Source,
    at: u64,
    endian: Endian,
    /// Bytes of the file, from `start` on.
    window: Vec<u8>,
    start: u64,
}

impl<'s> FileBytes<'s> {
    /// A cursor at `at`.
    pub(crate) fn new(source: &'s Source, at: u64, endian: Endian) -> FileBytes<'s> {
        FileBytes { source, at, endian, window: Vec::new(), start: at }
    }

    /// The next bytes, `most` of them or as many as there are in the file.
    fn peek(&mut self, most: u64) -> Result<&[u8], Eof> {
        let most = most.min(self.source.size().checked_sub(self.at).ok_or(Eof)?);
        let end = self.start.saturating_add(self.window.len() as u64);
        if self.at < self.start || self.at.saturating_add(most) > end {
            let place = self.at..self.at.saturating_add(most.max(WINDOW)).min(self.source.size());
            self.window = self.source.get(&place).ok_or(Eof)?;
            self.start = self.at;
        }
        let from = usize::try_from(self.at.saturating_sub(self.start)).map_err(|_| Eof)?;
        let length = usize::try_from(most).map_err(|_| Eof)?;
        self.window.get(from..from.saturating_add(length)).ok_or(Eof)
    }
}

impl Cursor for FileBytes<'_> {
    fn at(&self) -> u64 {
        self.at
    }

    fn endian(&self) -> Endian {
        self.endian
    }

    fn take(&mut self, n: u64) -> Result<&[u8], Eof> {
        let at = self.at;
        self.pass(n)?;
        // The skipped bytes are in the file: they are read again from their beginning.
        let end = std::mem::replace(&mut self.at, at);
        self.peek(n)?;
        self.at = end;
        let from = usize::try_from(at.saturating_sub(self.start)).map_err(|_| Eof)?;
        let to = usize::try_from(end.saturating_sub(self.start)).map_err(|_| Eof)?;
        self.window.get(from..to).ok_or(Eof)
    }

    fn pass(&mut self, n: u64) -> Result<(), Eof> {
        self.at = self.at.checked_add(n).filter(|end| *end <= self.source.size()).ok_or(Eof)?;
        Ok(())
    }

    fn cstr(&mut self) -> Result<&[u8], Eof> {
        let end = self.peek(WINDOW)?.iter().position(|byte| *byte == 0).ok_or(Eof)? as u64;
        let text = self.take(end.saturating_add(1))?;
        Ok(text.split_last().map_or(text, |(_, text)| text))
    }
}

/// A cursor over bytes in memory has what one over a file has.
impl Cursor for Bytes<'_> {
    fn at(&self) -> u64 {
        Bytes::at(self)
    }

    fn endian(&self) -> Endian {
        Bytes::endian(self)
    }

    fn take(&mut self, n: u64) -> Result<&[u8], Eof> {
        Bytes::take(self, n)
    }

    fn pass(&mut self, n: u64) -> Result<(), Eof> {
        Bytes::take(self, n).map(drop)
    }

    fn cstr(&mut self) -> Result<&[u8], Eof> {
        Bytes::cstr(self)
    }
}

#[cfg(unix)]
fn kind(t: &std::fs::FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    match () {
        () if t.is_dir() => "a directory",
        () if t.is_fifo() => "a pipe",
        () if t.is_socket() => "a socket",
        () => "a device",
    }
}

#[cfg(not(unix))]
fn kind(t: &std::fs::FileType) -> &'static str {
    if t.is_dir() { "a directory" } else { "something else" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_file_that_was_cut_meanwhile_what_is_left_is_read() {
        let path = std::env::temp_dir().join(format!("schedviz-cut-{}", std::process::id()));
        std::fs::write(&path, [7; 5000]).unwrap();
        let (source, mut buffer) = (Source::open(&path).unwrap(), Vec::new());
        assert_eq!(source.read(&(0..5000), &mut buffer).map(<[u8]>::len), Some(5000));
        File::options().write(true).open(&path).unwrap().set_len(100).unwrap();
        assert_eq!(source.read(&(50..100), &mut buffer), Some(&[7; 50][..]));
        assert_eq!(source.read(&(50..101), &mut buffer), None);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_cursor_reads_over_the_edges_of_its_window() {
        let bytes: Vec<u8> = (0..200_000u32).map(|n| (n % 251) as u8).collect();
        let path = std::env::temp_dir().join(format!("schedviz-cursor-{}", std::process::id()));
        std::fs::write(&path, &bytes).unwrap();
        for source in [Source::open(&path).unwrap(), Source::Memory(bytes.clone())] {
            let mut cursor = FileBytes::new(&source, 65_530, Endian::Little);
            assert_eq!(cursor.u64(), Ok(u64::from_le_bytes(*bytes[65_530..].first_chunk().unwrap())));
            assert_eq!(cursor.u32(), Ok(u32::from_le_bytes(*bytes[65_538..].first_chunk().unwrap())));
            assert_eq!(cursor.take(100_000), Ok(&bytes[65_542..165_542]));
            cursor.pass(34_000).unwrap();
            let nul = bytes[199_542..].iter().position(|byte| *byte == 0).unwrap();
            assert_eq!(cursor.cstr(), Ok(&bytes[199_542..199_542 + nul]));
            assert_eq!(cursor.at(), (199_543 + nul) as u64);
            assert_eq!(cursor.take(1000), Err(Eof));
            assert_eq!(cursor.pass(1000), Err(Eof));
            assert_eq!(cursor.take(u64::MAX), Err(Eof));
            assert_eq!(source.array::<2>(199_999), None);
        }
        std::fs::remove_file(&path).unwrap();
    }
}

//! The file as bytes: mapped, or in memory.

use crate::error::Error;
use std::fs::File;
use std::io::ErrorKind;
use std::ops::Range;
use std::path::Path;

/// Whether a recorder that was to write this file left what it had read of the ring buffers.
fn has_parts(path: &Path) -> bool {
    let mut part = path.as_os_str().to_owned();
    part.push(".cpu0");
    Path::new(&part).is_file()
}

/// The bytes of a trace.
#[derive(Debug)]
pub(crate) enum Source {
    Mapped(memmap2::Mmap, File),
    Memory(Vec<u8>),
}

impl Source {
    /// Maps the file at `path`. Its size is taken once: what is appended later is not seen.
    pub(crate) fn open(path: &Path) -> Result<Source, Error> {
        let io = |source| Error::Io { path: path.to_owned(), source };
        // A FIFO would block in open(2), so look first.
        let meta = std::fs::metadata(path).map_err(|source| match source.kind() {
            ErrorKind::NotFound if has_parts(path) => Error::Unwritten { path: path.to_owned() },
            _ => io(source),
        })?;
        if !meta.is_file() {
            return Err(Error::NotAFile { path: path.to_owned(), what: kind(&meta.file_type()) });
        }
        let file = File::open(path).map_err(io)?;
        let size = file.metadata().map_err(io)?.len();
        if size == 0 {
            return Err(Error::Foreign { what: "the file is empty (was the recording interrupted? trace.dat is written at its end; trace-cmd restore can join the trace.dat.cpu* files)".into() });
        }
        let length = usize::try_from(size).unwrap_or(usize::MAX);
        let map = map(&file, length).map_err(io)?;
        // A search in the file touches a page here and there; left to itself the kernel reads megabytes
        // around each. Whoever reads on from there says so.
        #[cfg(unix)]
        let _ = map.advise(memmap2::Advice::Random);
        Ok(Source::Mapped(map, file))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Source::Mapped(map, _) => map,
            Source::Memory(bytes) => bytes,
        }
    }

    /// All of it is going to be read, from the beginning on.
    pub(crate) fn will_read_all(&self) {
        #[cfg(unix)]
        if let Source::Mapped(map, _) = self {
            let _ = map.advise(memmap2::Advice::Normal);
        }
    }

    /// A part will be read soon: the kernel may begin to.
    pub(crate) fn will_read(&self, at: u64, len: u64) {
        #[cfg(unix)]
        if let Source::Mapped(map, _) = self {
            let start = usize::try_from(at).unwrap_or(usize::MAX).min(map.len());
            let len = usize::try_from(len).unwrap_or(usize::MAX).min(map.len().saturating_sub(start));
            let _ = map.advise_range(memmap2::Advice::WillNeed, start, len);
        }
        #[cfg(not(unix))]
        let _ = (at, len);
    }

    /// Gives back the memory of a part that has been read. Pages of a mapped file count as the
    /// program's memory until then, and a trace may be larger than the machine.
    pub(crate) fn release(&self, at: u64, len: u64) {
        if let Source::Mapped(map, _) = self {
            drop_pages(map, at, len);
        }
    }

    /// The bytes of a part, copied into `buffer` from a file; nothing if they cannot be read.
    ///
    /// That costs less than to have each page mapped, and giving it back again; and what is mapped counts as the
    /// program's memory, since Linux 6.18 up to megabytes around each page that is touched: with 256 CPUs it was
    /// 261 MiB instead of 21, as long as only the first page of each was looked at in the mapping.
    pub(crate) fn read<'b>(&'b self, place: &Range<u64>, buffer: &'b mut Vec<u8>) -> Option<&'b [u8]> {
        #[cfg(unix)]
        if let Source::Mapped(_, file) = self {
            let len = usize::try_from(place.end.checked_sub(place.start)?).ok()?;
            if buffer.len() < len {
                *buffer = vec![0; len];
            }
            let buffer = buffer.get_mut(..len)?;
            std::os::unix::fs::FileExt::read_exact_at(file, buffer, place.start).ok()?;
            return Some(buffer);
        }
        #[cfg(not(unix))]
        let _ = buffer;
        crate::header::slice(self.bytes(), place)
    }
}

/// The one place with `unsafe`.
///
/// A mapping is unsafe because another process may change the file under it. The mapping is
/// read-only and private to this module; the bytes are only ever read as integers and copied
/// text, and every length found in them is checked where it is used, so that a change can make
/// the results wrong, but cannot break memory safety. If the file is cut short meanwhile, the
/// operating system ends the program (SIGBUS); no Rust code sees the missing bytes.
#[allow(unsafe_code)]
fn map(file: &File, length: usize) -> std::io::Result<memmap2::Mmap> {
    // SAFETY: see above.
    unsafe { memmap2::MmapOptions::new().len(length).map(file) }
}

/// Dropping the pages of a shared read-only file mapping loses nothing: the next access reads the
/// file again.
#[allow(unsafe_code)]
fn drop_pages(map: &memmap2::Mmap, at: u64, len: u64) {
    #[cfg(unix)]
    {
        const PAGE: usize = 1 << 16;
        let start = usize::try_from(at).unwrap_or(usize::MAX).div_ceil(PAGE).saturating_mul(PAGE);
        let end = usize::try_from(at.saturating_add(len)).unwrap_or(usize::MAX).min(map.len()) / PAGE * PAGE;
        if let Some(len) = end.checked_sub(start).filter(|len| *len > 0) {
            // SAFETY: the mapping is of a file and read-only, so no written data can be lost.
            let _ = unsafe { map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, start, len) };
        }
    }
    #[cfg(not(unix))]
    let _ = (map, at, len);
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
}

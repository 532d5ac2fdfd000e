//! Where bytes go: files, there whole or not at all, and standard output.

use crate::atomic_file::{self, AtomicFile};
use crate::pager;
use anyhow::{Result, bail};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Prints text to standard output, through the pager where there is one.
pub fn print(bytes: &[u8]) -> Result<()> {
    let paged = pager::begin();
    unless_closed(paged, print_bytes(bytes))
}

/// A pager that is closed before its end is no error, and ends no command: what it has judged, it tells by its exit status.
pub(crate) fn unless_closed(paged: bool, printed: Result<()>) -> Result<()> {
    printed.or_else(|error| if paged && is_closed_pipe(&error) { Ok(()) } else { Err(error) })
}

/// Prints bytes, which are no text, to standard output.
fn print_bytes(bytes: &[u8]) -> Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()?;
    Ok(())
}

/// Writes a file whose name the program chose: a link of that name is replaced, and never followed.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut whole = AtomicFile::derived(path)?;
    whole.write_all(bytes)?;
    Ok(whole.finish()?)
}

/// The verb of a message about a file: `wrote`, or `replaced` where a file was there before.
pub fn verb(replaced: bool) -> &'static str {
    if replaced { "replaced" } else { "wrote" }
}

/// Saves files under a name, several with numbers; returns the message of a file: `wrote trace.pdf (12 kB)`.
pub fn save(path: &Path, files: &[Vec<u8>]) -> Result<Option<String>> {
    if path.as_os_str() == "-" {
        if files.len() > 1 {
            bail!("several pages of SVG or PNG do not go to standard output; name a file, or use PDF");
        }
        files.iter().try_for_each(|bytes| print_bytes(bytes))?;
        return Ok(None);
    }
    if files.len() > 1 && atomic_file::is_device(path) {
        let (name, pages) = (path.display(), files.len());
        bail!(
            "{name}: {pages} pages of SVG or PNG go to files of their own, not to a device or a pipe; name a file, or use PDF"
        );
    }
    let size = files.iter().map(Vec::len).sum::<usize>().div_ceil(1000);
    if let [bytes] = files {
        let verb = verb(path.is_file());
        let mut whole = AtomicFile::create(path)?;
        whole.write_all(bytes)?;
        whole.finish()?;
        return Ok(Some(format!("{verb} {} ({size} kB)", path.display())));
    }
    let paths: Vec<PathBuf> = (1..=files.len()).map(|nth| numbered(path, nth, files.len())).collect();
    let verb = verb(paths.iter().any(|path| path.is_file()));
    // None takes its place before all are written.
    let mut written = Vec::with_capacity(files.len());
    for (path, bytes) in paths.iter().zip(files) {
        let mut whole = AtomicFile::derived(path)?;
        whole.write_all(bytes)?;
        written.push(whole);
    }
    written.into_iter().try_for_each(AtomicFile::finish)?;
    let [first, .., last] = paths.as_slice() else { return Ok(None) };
    Ok(Some(format!("{verb} {} to {} ({size} kB)", first.display(), last.display())))
}

/// Saves the bytes that `write` writes under a name, without holding them; returns the message of the file, as
/// [`save`] does.
pub fn stream(path: &Path, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<Option<String>> {
    let path = Some(path).filter(|path| path.as_os_str() != "-");
    let verb = verb(path.is_some_and(Path::is_file));
    let mut out = Lines::open(path)?;
    write(&mut out)?;
    out.finish()?;
    let Some(path) = path else { return Ok(None) };
    let size = std::fs::metadata(path).map_or(0, |written| written.len()).div_ceil(1000);
    Ok(Some(format!("{verb} {} ({size} kB)", path.display())))
}

/// `figure.svg` as `figure-07.svg`, with as many digits as the last one has.
fn numbered(path: &Path, nth: usize, of: usize) -> PathBuf {
    let digits = of.to_string().len();
    let stem = path.file_stem().map_or_else(String::new, |s| s.to_string_lossy().into_owned());
    let ending = path.extension().map_or_else(String::new, |e| format!(".{}", e.to_string_lossy()));
    path.with_file_name(format!("{stem}-{nth:0digits$}{ending}"))
}

/// A text that is too long to be held: lines to standard output, or to a file.
pub enum Lines {
    /// Standard output, in blocks.
    Standard(BufWriter<io::StdoutLock<'static>>),
    /// A file, which takes its place when it is whole.
    File(BufWriter<AtomicFile>),
}

impl Lines {
    /// Opens this file, or standard output where there is none.
    pub fn open(path: Option<&Path>) -> Result<Lines> {
        Ok(match path {
            None => Lines::Standard(BufWriter::new(io::stdout().lock())),
            Some(path) => Lines::File(BufWriter::new(AtomicFile::create(path)?)),
        })
    }

    /// Whether the text goes to a file, and to nobody who reads it meanwhile.
    pub fn is_file(&self) -> bool {
        match self {
            Lines::Standard(_) => is_file(&io::stdout()),
            Lines::File(_) => true,
        }
    }

    /// Writes the rest of the text, and puts a file in its place.
    pub fn finish(self) -> Result<()> {
        match self {
            Lines::Standard(mut out) => out.flush()?,
            Lines::File(out) => out.into_inner().map_err(io::IntoInnerError::into_error)?.finish()?,
        }
        Ok(())
    }
}

/// Whether a stream is that of a file: `schedviz list trace.dat > FILE`.
#[cfg(unix)]
fn is_file(stream: &impl std::os::fd::AsFd) -> bool {
    let file = stream.as_fd().try_clone_to_owned().map(std::fs::File::from);
    file.and_then(|file| file.metadata()).is_ok_and(|metadata| metadata.is_file())
}

/// Whether a stream is that of a file, which is not known here.
#[cfg(not(unix))]
fn is_file(_: &io::Stdout) -> bool {
    false
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Lines::Standard(out) => {
                pager::begin();
                out.write(bytes)
            }
            Lines::File(out) => out.write(bytes),
        }
    }

    // Not piece by piece: a serializer writes a few bytes at a time, for which the buffer has a short way.
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Lines::Standard(out) => {
                pager::begin();
                out.write_all(bytes)
            }
            Lines::File(out) => out.write_all(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Lines::Standard(out) => out.flush(),
            Lines::File(out) => out.flush(),
        }
    }
}

/// Whether this error shows that no process reads the output any more.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let io = error.chain().filter_map(|e| e.downcast_ref::<io::Error>());
    let mut kinds = io.map(io::Error::kind);
    kinds.any(|kind| kind == io::ErrorKind::BrokenPipe)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn several_pages_go_to_no_device() {
        for device in ["/dev/full", "/dev/null", "/dev/stdout", "/dev/fd/1"] {
            let refused = save(Path::new(device), &[Vec::new(), Vec::new()]).expect_err("a refusal").to_string();
            assert!(refused.starts_with(&format!("{device}: 2 pages of SVG or PNG go to files")), "{refused}");
            assert!(!Path::new(&format!("{device}-1")).exists());
        }
        // One page is written to the device as it is.
        let written = save(Path::new("/dev/null"), &[vec![b'a']]).expect("a page").expect("a message");
        assert!(written.contains("/dev/null"), "{written}");
        let folder = tempfile::tempdir().expect("a folder");
        let name = folder.path().join("a.svg");
        save(&name, &[vec![b'a'], vec![b'b']]).expect("two pages");
        let pages = ["a-1.svg", "a-2.svg"].map(|name| std::fs::read(folder.path().join(name)).expect("a page"));
        assert_eq!(pages, [b"a", b"b"]);
    }
}

//! Where bytes go: files, there whole or not at all, and standard output.

use anyhow::{Result, bail};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Prints bytes.
pub(crate) fn print(bytes: &[u8]) -> Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()?;
    Ok(())
}

/// Writes a file.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut whole = Whole::create(path)?;
    whole.write_all(bytes)?;
    Ok(whole.finish()?)
}

/// Saves files under a name, several with numbers; what was written to a file, in words.
pub(crate) fn save(path: &Path, files: &[Vec<u8>]) -> Result<Option<String>> {
    if path.as_os_str() == "-" {
        if files.len() > 1 {
            bail!("several pages of SVG or PNG do not go to standard output; name a file, or use PDF");
        }
        files.iter().try_for_each(|bytes| print(bytes))?;
        return Ok(None);
    }
    let size = files.iter().map(Vec::len).sum::<usize>().div_ceil(1000);
    if let [bytes] = files {
        replace(path, bytes)?;
        return Ok(Some(format!("{} ({size} kB)", path.display())));
    }
    let paths: Vec<PathBuf> = (1..=files.len()).map(|nth| numbered(path, nth, files.len())).collect();
    for (path, bytes) in paths.iter().zip(files) {
        replace(path, bytes)?;
    }
    let [first, .., last] = paths.as_slice() else { return Ok(None) };
    Ok(Some(format!("{} to {} ({size} kB)", first.display(), last.display())))
}

/// `figure.svg` as `figure-07.svg`, with as many digits as the last one has.
fn numbered(path: &Path, nth: usize, of: usize) -> PathBuf {
    let digits = of.to_string().len();
    let stem = path.file_stem().map_or_else(String::new, |s| s.to_string_lossy().into_owned());
    let ending = path.extension().map_or_else(String::new, |e| format!(".{}", e.to_string_lossy()));
    path.with_file_name(format!("{stem}-{nth:0digits$}{ending}"))
}

/// A file that is written beside its place and moved there when it is whole, so that nobody sees half of it.
/// What is no regular file, such as /dev/stdout, is written to as it is.
pub(crate) struct Whole {
    file: File,
    path: PathBuf,
    /// What is written, until it is moved; removed where it is not.
    part: Option<PathBuf>,
}

impl Whole {
    fn create(path: &Path) -> io::Result<Whole> {
        let special = path.metadata().is_ok_and(|m| !m.is_file());
        let part = (!special).then(|| {
            let mut part = path.as_os_str().to_owned();
            part.push(format!(".{}.part", std::process::id()));
            PathBuf::from(part)
        });
        let file = File::create(part.as_deref().unwrap_or(path)).map_err(|e| named(path, &e))?;
        Ok(Whole { file, path: path.to_owned(), part })
    }

    fn finish(mut self) -> io::Result<()> {
        if let Some(part) = &self.part {
            std::fs::rename(part, &self.path).map_err(|e| named(&self.path, &e))?;
            self.part = None;
        }
        Ok(())
    }
}

/// An error with the file's name in front.
fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

impl Write for Whole {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes).map_err(|e| named(&self.path, &e))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Whole {
    fn drop(&mut self) {
        if let Some(part) = &self.part {
            // Whatever went wrong with it, the rest is not to be left behind.
            let _ = std::fs::remove_file(part);
        }
    }
}

/// A text that is too long to be held: lines to standard output, or to a file.
pub(crate) enum Lines {
    Standard(BufWriter<io::StdoutLock<'static>>),
    File(BufWriter<Whole>),
}

impl Lines {
    /// To this file, or to standard output.
    pub(crate) fn open(path: Option<&Path>) -> Result<Lines> {
        Ok(match path {
            None => Lines::Standard(BufWriter::new(io::stdout().lock())),
            Some(path) => Lines::File(BufWriter::new(Whole::create(path)?)),
        })
    }

    /// That was all.
    pub(crate) fn finish(self) -> Result<()> {
        match self {
            Lines::Standard(mut out) => out.flush()?,
            Lines::File(out) => out.into_inner().map_err(io::IntoInnerError::into_error)?.finish()?,
        }
        Ok(())
    }
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Lines::Standard(out) => out.write(bytes),
            Lines::File(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Lines::Standard(out) => out.flush(),
            Lines::File(out) => out.flush(),
        }
    }
}

/// Whether this error says that nobody reads our output any more.
pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let io = error.chain().filter_map(|e| e.downcast_ref::<io::Error>());
    let mut kinds = io.map(io::Error::kind);
    kinds.any(|kind| kind == io::ErrorKind::BrokenPipe)
}

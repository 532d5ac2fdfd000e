//! Files that appear when they are whole: neither an error nor an interrupt leaves a part of one behind.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file that takes its place when it is whole, so that nobody sees half of it. Until then it has no name, where the
/// system has such files (`O_TMPFILE`): whatever ends the program ends the file. Elsewhere it is written beside its
/// place. A link is followed. What is no regular file is written to as it is, and so is what an open file is called
/// by, such as /dev/stdout, wherever that leads.
pub(crate) struct Whole {
    file: File,
    path: PathBuf,
    place: Place,
}

/// Where the bytes are until the file is whole.
enum Place {
    /// Nowhere that has a name.
    Unnamed,
    /// In this file; removed if it does not become whole.
    Beside(PathBuf),
    /// Where they belong.
    Final,
}

impl Whole {
    /// Begins a file.
    pub(crate) fn create(path: &Path) -> io::Result<Whole> {
        let is_open = path.is_symlink() && ["/dev", "/proc"].iter().any(|folder| path.starts_with(folder));
        let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let (file, place) = if is_open || path.metadata().is_ok_and(|m| !m.is_file()) {
            (OpenOptions::new().append(true).open(path), Place::Final)
        } else if let Some(file) = unnamed(&real) {
            (Ok(file), Place::Unnamed)
        } else {
            let part = part_of(&real);
            (File::create(&part), Place::Beside(part))
        };
        Ok(Whole { file: file.map_err(|e| named(path, &e))?, path: real, place })
    }

    /// That was all of it.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.take_place().map_err(|e| named(&self.path, &e))
    }

    fn take_place(&mut self) -> io::Result<()> {
        if let Place::Unnamed = self.place {
            let part = part_of(&self.path);
            // Left by another program that had the same number and no such files.
            let _ = std::fs::remove_file(&part);
            name(&self.file, &part)?;
            self.place = Place::Beside(part);
        }
        if let Place::Beside(part) = &self.place {
            std::fs::rename(part, &self.path)?;
            self.place = Place::Final;
        }
        Ok(())
    }
}

/// The name of a file that is not whole.
fn part_of(path: &Path) -> PathBuf {
    let mut part = path.as_os_str().to_owned();
    part.push(format!(".{}.part", std::process::id()));
    PathBuf::from(part)
}

/// A file without a name in the folder where `path` will be.
#[cfg(target_os = "linux")]
fn unnamed(path: &Path) -> Option<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    let flags = rustix::fs::OFlags::TMPFILE.bits().cast_signed();
    let file = OpenOptions::new().write(true).custom_flags(flags).open(folder.unwrap_or(Path::new("."))).ok()?;
    // It is to have one in the end.
    descriptor(&file).exists().then_some(file)
}

#[cfg(target_os = "linux")]
fn descriptor(file: &File) -> PathBuf {
    use std::os::fd::AsRawFd;
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Gives a name to a file that has none.
#[cfg(target_os = "linux")]
fn name(file: &File, path: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, linkat};
    Ok(linkat(CWD, descriptor(file), CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

#[cfg(not(target_os = "linux"))]
fn unnamed(_: &Path) -> Option<File> {
    None
}

#[cfg(not(target_os = "linux"))]
fn name(_: &File, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
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
        if let Place::Beside(part) = &self.place {
            // Whatever went wrong with it, the rest is not to be left behind.
            let _ = std::fs::remove_file(part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_there_when_it_is_whole() {
        let folder = std::env::temp_dir().join(format!("schedviz-test-whole-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let names = || {
            let entries = std::fs::read_dir(&folder).expect("a folder");
            let mut names: Vec<String> =
                entries.map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
            names.sort();
            names
        };
        let begin = |name: &str| {
            let mut whole = Whole::create(&folder.join(name)).expect("created");
            whole.write_all(b"new").expect("written");
            whole
        };
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect("read");
        let broken = begin("a");
        if let Place::Unnamed = broken.place {
            assert!(names().is_empty(), "nothing is left, whatever ends the program: {:?}", names());
        }
        drop(broken);
        assert!(names().is_empty(), "{:?}", names());
        std::fs::write(folder.join("a"), "old and long").expect("written");
        let replaced = begin("a");
        assert_eq!(read("a"), "old and long");
        replaced.finish().expect("finished");
        assert_eq!((read("a").as_str(), names()), ("new", vec!["a".to_owned()]));
        #[cfg(unix)]
        {
            std::fs::write(folder.join("a"), "old").expect("written");
            std::os::unix::fs::symlink("a", folder.join("link")).expect("linked");
            begin("link").finish().expect("finished");
            assert!(folder.join("link").is_symlink() && read("a") == "new", "a link leads to the file as before");
        }
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}

//! Opens files for reading and remembers them, so that no output ever replaces an input.
//!
//! In go the paths of all files that schedviz reads ([`file()`], [`read`], [`note`]); out comes, before an output takes its
//! place, whether an input is there ([`same_as`], [`inside`]): by device and inode, so through links and other names as well. A
//! file that the program wrote itself ([`written`]) is no input. Begin reading with [`same_as`] in this file.
//!
//! ```
//! let input = std::env::current_exe().unwrap();
//! assert!(opened::same_as(&input).is_none());
//! opened::file(&input).unwrap();
//! assert_eq!(opened::same_as(&input), Some(input));
//! ```

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The files of this process: those that it read, by the name under which it did, and those that it wrote itself.
static FILES: Mutex<Files> = Mutex::new(Files { read: BTreeMap::new(), written: BTreeMap::new() });

struct Files {
    read: BTreeMap<FileId, PathBuf>,
    written: BTreeMap<FileId, ()>,
}

/// A file, whatever its names are: device and inode.
#[cfg(unix)]
type FileId = (u64, u64);

#[cfg(unix)]
fn id(_: &Path, found: &Metadata) -> Option<FileId> {
    use std::os::unix::fs::MetadataExt;
    found.is_file().then(|| (found.dev(), found.ino()))
}

#[cfg(not(unix))]
type FileId = PathBuf;

#[cfg(not(unix))]
fn id(path: &Path, found: &Metadata) -> Option<FileId> {
    path.canonicalize().ok().filter(|_| found.is_file())
}

fn files() -> MutexGuard<'static, Files> {
    FILES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opens a file for reading, and remembers it as an input.
///
/// # Errors
///
/// Those of the system.
pub fn file(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    note(path, &file);
    Ok(file)
}

/// Reads a whole file, and remembers it as an input. Its size has no limit here.
///
/// # Errors
///
/// Those of the system.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Remembers a file as an input that was opened in another way.
pub fn note(path: &Path, file: &File) {
    if let Ok(found) = file.metadata() {
        add(path, &found);
    }
}

/// Remembers the file of this name, if there is one, as an input that will be read: an output in its place is refused before any work
/// is done.
pub fn will_read(path: &Path) {
    if let Ok(found) = path.metadata() {
        add(path, &found);
    }
}

fn add(path: &Path, found: &Metadata) {
    let Some(id) = id(path, found) else { return };
    let mut files = files();
    if !files.written.contains_key(&id) {
        files.read.entry(id).or_insert_with(|| path.to_owned());
    }
}

/// Forgets the file of this name as an input, and does not take it for one again: this program wrote it.
pub fn written(path: &Path) {
    let Some(id) = path.metadata().ok().and_then(|found| id(path, &found)) else { return };
    let mut files = files();
    files.read.remove(&id);
    files.written.insert(id, ());
}

/// Runs `look`, which reads the file of this name to find out whether an output may replace it. That alone makes it no input.
pub fn look_at<T>(path: &Path, look: impl FnOnce() -> T) -> T {
    let was_read = same_as(path).is_some();
    let seen = look();
    if let Some(id) = path.metadata().ok().and_then(|found| id(path, &found)).filter(|_| !was_read) {
        files().read.remove(&id);
    }
    seen
}

/// The name of the input that is the same file as this path, if one is.
pub fn same_as(path: &Path) -> Option<PathBuf> {
    let id = id(path, &path.metadata().ok()?)?;
    files().read.get(&id).cloned()
}

/// The name of an input that lies in this folder or below it, if one does: of several the first by name.
pub fn inside(folder: &Path) -> Option<PathBuf> {
    let folder = folder.canonicalize().ok()?;
    let read = files();
    let below = |path: &&PathBuf| path.canonicalize().is_ok_and(|path| path.starts_with(&folder));
    read.read.values().filter(below).min().cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn a_file_is_an_input_under_all_of_its_names(folder: &Path) {
        let at = |name: &str| folder.join(name);
        assert_eq!(read(&at("read")).expect("read"), b"read");
        note(&at("noted"), &File::open(at("noted")).expect("opened"));
        will_read(&at("named"));
        will_read(&at("missing"));
        std::fs::hard_link(at("read"), at("hard")).expect("linked");
        for (path, input) in [("read", "read"), ("hard", "read"), ("noted", "noted"), ("named", "named")] {
            assert_eq!(same_as(&at(path)), Some(at(input)), "{path}");
        }
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("read", at("soft")).expect("linked");
            assert_eq!(same_as(&at("soft")), Some(at("read")));
        }
        assert_eq!((same_as(&at("other")), same_as(&at("missing"))), (None, None));
        assert_eq!(inside(folder), Some(at("named")), "the first by name");
        assert_eq!(inside(&at("missing")), None);
    }

    /// One test after the other: a file that is removed leaves its number to a file of another test, and the register is that of the process.
    #[test]
    fn own_files_are_no_inputs_and_a_look_makes_none_and_hides_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        for name in ["read", "noted", "named", "other", "list", "old"] {
            std::fs::write(at(name), name).expect("written");
        }
        a_file_is_an_input_under_all_of_its_names(folder.path());
        let path = at("list");
        written(&path);
        read(&path).expect("read");
        assert_eq!(same_as(&path), None);
        let path = at("old");
        assert_eq!(look_at(&path, || read(&path).expect("read")), b"old");
        assert_eq!(same_as(&path), None);
        read(&path).expect("read");
        look_at(&path, || read(&path).expect("read"));
        assert_eq!(same_as(&path), Some(path));
    }
}

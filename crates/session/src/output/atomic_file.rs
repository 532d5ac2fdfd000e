//! Files and folders that appear when they are whole: neither an error nor an interrupt leaves a part of one in their
//! place. All outputs of the program are written here, so that none goes through a stranger's link (the module `links`).

use crate::inputs;
use crate::output::links::{self, End, folder_of, follow, follow_folder};
use anyhow::{Context, Result};
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};
use tempfile::{Builder, NamedTempFile, TempDir};

/// A file that takes its place when it is whole. Until then it has no name, where the system has such files
/// (`O_TMPFILE`): whatever ends the program ends the file. Elsewhere it is written beside its place, under a random
/// name that no other program uses. An input of the command is refused.
pub struct AtomicFile {
    /// The name in messages.
    shown: PathBuf,
    path: PathBuf,
    place: Place,
    /// Whether bytes have been written.
    is_begun: bool,
}

/// The place of the bytes until the file is whole.
enum Place {
    /// A file without a name.
    Unnamed(File),
    /// A temporary file beside the final place, which is removed if it does not become whole.
    Beside(NamedTempFile),
    /// The final place itself, such as a device or a pipe.
    Final(File),
}

impl AtomicFile {
    /// Begins a file that the user named. A link is followed, but none that another user made in a folder that all may
    /// write to. A device or a pipe is written to as it is, and so is the name of an open file, such as /dev/stdout,
    /// wherever that leads.
    pub fn create(path: &Path) -> io::Result<AtomicFile> {
        inputs::refuse(path)?;
        let begun = follow(path).and_then(|end| match end {
            End::Open => Ok((path.to_owned(), as_it_is(path, true)?)),
            End::Place(real) if real.metadata().is_ok_and(|found| !found.is_file()) => {
                links::trusted(&real)?;
                let place = as_it_is(&real, false)?;
                Ok((real, place))
            }
            End::Place(real) => {
                let place = Place::beside(&real)?;
                Ok((real, place))
            }
        });
        let (real, place) = begun.map_err(|e| named(path, &e))?;
        Ok(AtomicFile { shown: path.to_owned(), path: real, place, is_begun: false })
    }

    /// Begins a file whose name the program chose, such as a machine file beside a recording: a link of this name is
    /// replaced, and never followed.
    pub fn derived(path: &Path) -> io::Result<AtomicFile> {
        if !path.is_symlink() {
            inputs::refuse(path)?;
        }
        AtomicFile::shown_as(path, path)
    }

    /// Begins a file that has the name `shown` in messages.
    fn shown_as(shown: &Path, path: &Path) -> io::Result<AtomicFile> {
        let begun = follow_folder(path).and_then(|real| Place::beside(&real).map(|place| (real, place)));
        let (real, place) = begun.map_err(|e| named(shown, &e))?;
        Ok(AtomicFile { shown: shown.to_owned(), path: real, place, is_begun: false })
    }

    /// Removes everything after this number of bytes; writing continues there. What has been given to a device or a pipe stays there: that is an
    /// error, unless nothing has.
    pub fn cut(&mut self, to: u64) -> io::Result<()> {
        if let Place::Final(_) = self.place {
            return if self.is_begun { Err(self.no_parts()) } else { Ok(()) };
        }
        self.file().set_len(to)?;
        self.file().seek(io::SeekFrom::Start(to)).map(drop)
    }

    /// The error of a device or a pipe that is to be written in parts.
    fn no_parts(&self) -> io::Error {
        let why = "is no file that can be written in parts; choose another output";
        io::Error::new(io::ErrorKind::Unsupported, format!("{} {why}", self.shown.display()))
    }

    /// Puts the file in its place.
    pub fn finish(self) -> io::Result<()> {
        let AtomicFile { shown, path, place, .. } = self;
        take_place(&path)?;
        let is_new = !matches!(place, Place::Final(_));
        let persisted = match place {
            Place::Final(_) => Ok(()),
            Place::Beside(file) => file.persist(&path).map(drop).map_err(|e| e.error),
            Place::Unnamed(file) => {
                // A name that another program has is tried no second time.
                let prefix = prefix(&path);
                let part =
                    Builder::new().prefix(&prefix).suffix(PART).make_in(folder_of(&path), |part| name(&file, part));
                part.and_then(|part| part.persist(&path).map_err(|e| e.error))
            }
        };
        persisted.map_err(|e| named(&shown, &e))?;
        if is_new {
            opened::written(&path);
        }
        Ok(())
    }

    fn file(&mut self) -> &mut File {
        match &mut self.place {
            Place::Unnamed(file) | Place::Final(file) => file,
            Place::Beside(file) => file.as_file_mut(),
        }
    }
}

impl Place {
    /// Creates the temporary file for the place at this path.
    fn beside(path: &Path) -> io::Result<Place> {
        unnamed(folder_of(path)).map_or_else(|| part_beside(path).map(Place::Beside), |file| Ok(Place::Unnamed(file)))
    }
}

/// Creates a temporary file with a name of its own beside this one.
fn part_beside(path: &Path) -> io::Result<NamedTempFile> {
    with_mode(Builder::new().prefix(&prefix(path)).suffix(PART), 0o666).tempfile_in(folder_of(path))
}

/// Opens a device, a pipe or an open file: a link is followed where that is asked for alone.
fn as_it_is(path: &Path, follows: bool) -> io::Result<Place> {
    let mut options = OpenOptions::new();
    options.append(true);
    #[cfg(target_os = "linux")]
    if !follows {
        std::os::unix::fs::OpenOptionsExt::custom_flags(
            &mut options,
            rustix::fs::OFlags::NOFOLLOW.bits().cast_signed(),
        );
    }
    #[cfg(not(target_os = "linux"))]
    let _ = follows;
    options.open(path).map(Place::Final)
}

/// Whether a name that the user chose is that of a device, a pipe or an open file such as /dev/stdout.
pub(crate) fn is_device(path: &Path) -> bool {
    match follow(path) {
        Ok(End::Open) => true,
        Ok(End::Place(real)) => real.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir()),
        Err(_) => false,
    }
}

/// Adds bytes to the end of a file that the user named, or creates the file; its content is not read. A link is followed, but
/// none that another user made in a folder that all may write to.
pub fn append(path: &Path, bytes: &[u8]) -> io::Result<()> {
    inputs::refuse(path)?;
    let place = follow(path).and_then(|end| match end {
        End::Open => as_it_is(path, true).map(Some),
        End::Place(real) if real.exists() => {
            links::trusted(&real)?;
            as_it_is(&real, false).map(Some)
        }
        End::Place(_) => Ok(None),
    });
    match place.map_err(|e| named(path, &e))? {
        Some(Place::Final(mut file)) => file.write_all(bytes).map_err(|e| named(path, &e)),
        _ => {
            let mut new = AtomicFile::create(path)?;
            new.write_all(bytes)?;
            new.finish()
        }
    }
}

/// Puts a file that another program wrote, such as perf, in its place. A link of that name is replaced, and never followed.
pub fn rename(part: &Path, place: &Path) -> io::Result<()> {
    let put = take_place(place).and_then(|()| std::fs::rename(part, place));
    put.map_err(|e| named(place, &e))?;
    opened::written(place);
    Ok(())
}

/// Refuses to replace an input. A link of this name is replaced itself, and the input that it leads to stays.
fn take_place(path: &Path) -> io::Result<()> {
    if path.is_symlink() { Ok(()) } else { inputs::refuse(path) }
}

/// Creates a file for another program to write to. A file of this name, or a link, is an error.
pub fn new_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

/// A folder of this user alone beside a file that another program is to write, for that program; removed when it is dropped.
pub fn private_folder(beside: &Path) -> io::Result<TempDir> {
    let begun = follow(folder_of(beside)).and_then(|end| match end {
        End::Place(folder) => Builder::new().prefix(".schedviz").tempdir_in(folder),
        End::Open => Err(io::ErrorKind::NotADirectory.into()),
    });
    begun.map_err(|e| io::Error::new(e.kind(), plain(&e)))
}

/// The end of the name of a file or a folder that is not whole.
const PART: &str = ".part";

/// The start of the name of such a file or folder: a dot, which hides it, and the final name.
fn prefix(path: &Path) -> std::ffi::OsString {
    let mut prefix = std::ffi::OsString::from(".");
    prefix.push(path.file_name().unwrap_or_default());
    prefix.push(".");
    prefix
}

/// Sets the permissions of any other file, without those that the user's mask takes away: temporary files have fewer.
fn with_mode<'b, 'a, 'p>(builder: &'b mut Builder<'a, 'p>, mode: u32) -> &'b mut Builder<'a, 'p> {
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(mode));
    #[cfg(not(unix))]
    let _ = mode;
    builder
}

/// Creates a folder and those that it is in. The ones that were missing are removed again when this is dropped, as far
/// as they are empty: an error leaves no folder behind.
pub struct Folders {
    created: Vec<PathBuf>,
}

impl Folders {
    /// Creates the folder at this path and those that it is in, as far as they are missing.
    pub fn create(path: &Path) -> io::Result<Folders> {
        let real = match follow(path)? {
            End::Place(real) => real,
            End::Open => path.to_owned(),
        };
        if real.exists() && !real.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        let missing = real.ancestors().take_while(|folder| !folder.exists()).map(Path::to_owned).collect();
        // A part of them is removed if one cannot be created.
        let folders = Folders { created: missing };
        std::fs::create_dir_all(&real)?;
        Ok(folders)
    }

    /// Keeps the folders that were created.
    pub fn keep(mut self) {
        self.created.clear();
    }
}

impl Drop for Folders {
    fn drop(&mut self) {
        // The innermost comes first. One that has files of another program in it stays.
        for folder in &self.created {
            let _ = std::fs::remove_dir(folder);
        }
    }
}

/// A folder that takes its place when all of its files are written, and replaces one that is there as a whole.
pub struct WholeFolder {
    /// The name in messages.
    shown: PathBuf,
    path: PathBuf,
    part: TempDir,
    /// The folders that the folder is in.
    around: Folders,
}

impl WholeFolder {
    /// Begins the folder that is to be at this path.
    pub fn create(path: &Path) -> Result<WholeFolder> {
        let begin = || -> io::Result<WholeFolder> {
            let real = match follow(path)? {
                End::Place(real) => real,
                End::Open => return Err(io::ErrorKind::NotADirectory.into()),
            };
            let around = Folders::create(folder_of(&real))?;
            let part =
                with_mode(Builder::new().prefix(&prefix(&real)).suffix(PART), 0o777).tempdir_in(folder_of(&real))?;
            remove_on_signal(part.path())?;
            Ok(WholeFolder { shown: path.to_owned(), path: real, part, around })
        };
        Ok(begin().map_err(|e| named(path, &e))?)
    }

    /// Begins a file in it, at this path below it.
    pub fn file(&self, name: impl AsRef<Path>) -> io::Result<AtomicFile> {
        let (shown, path) = (self.shown.join(&name), self.part.path().join(&name));
        std::fs::create_dir_all(folder_of(&path)).map_err(|e| named(&shown, &e))?;
        AtomicFile::shown_as(&shown, &path)
    }

    /// Writes a file in it.
    pub fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut file = self.file(name)?;
        file.write_all(bytes)?;
        file.finish()
    }

    /// Puts the folder in its place, and returns whether it replaced files.
    pub fn finish(self) -> Result<bool> {
        let is_there = self.path.is_dir();
        inputs::refuse_folder(&self.path)?;
        let replaces = is_there && self.path.read_dir().is_ok_and(|mut entries| entries.next().is_some());
        self.take_place(is_there).with_context(|| self.shown.display().to_string())?;
        self.around.keep();
        if is_there {
            // The replaced file is under the temporary name; it is removed.
            self.part.close().with_context(|| self.shown.display().to_string())?;
        } else {
            drop(self.part.keep());
        }
        Ok(replaces)
    }

    /// Puts the folder in its place, or its files into the folder that is there by now: programs that write files of
    /// their own into one new folder at the same time lose none.
    pub fn finish_or_join(self) -> Result<()> {
        let begun = std::fs::rename(self.part.path(), &self.path);
        // A folder that has files in it is replaced by no `rename`.
        if begun.is_err() && self.path.is_dir() {
            join(self.part.path(), &self.path).with_context(|| self.shown.display().to_string())?;
            self.around.keep();
            return self.part.close().with_context(|| self.shown.display().to_string());
        }
        begun.with_context(|| self.shown.display().to_string())?;
        self.around.keep();
        drop(self.part.keep());
        Ok(())
    }

    fn take_place(&self, replaces: bool) -> io::Result<()> {
        let (part, path) = (self.part.path(), self.path.as_path());
        if !replaces {
            return std::fs::rename(part, path);
        }
        if exchange(part, path).is_ok() {
            return Ok(());
        }
        // A file system that cannot exchange two folders: there is none for a moment.
        let old = Builder::new().prefix(&prefix(path)).suffix(PART).tempdir_in(folder_of(path))?;
        std::fs::rename(path, old.path())?;
        let renamed = std::fs::rename(part, path);
        // Either the old one, to be removed, or the one before where the new one could not take its place.
        let _ = std::fs::rename(old.path(), if renamed.is_ok() { part } else { path });
        renamed
    }
}

/// Moves all files below a folder to the same names below another.
fn join(from: &Path, to: &Path) -> io::Result<()> {
    for entry in from.read_dir()? {
        let entry = entry?;
        let place = to.join(entry.file_name());
        if !entry.file_type()?.is_dir() {
            rename(&entry.path(), &place)?;
            continue;
        }
        match std::fs::create_dir(&place) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => join(&entry.path(), &place)?,
        }
    }
    Ok(())
}

/// Removes a folder that is not whole where a signal ends the program.
#[cfg(target_os = "linux")]
fn remove_on_signal(part: &Path) -> io::Result<()> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])?;
    let part = part.to_owned();
    std::thread::spawn(move || {
        for signal in &mut signals {
            // Another thread may create files in it meanwhile.
            let removed = |_: &i32| std::fs::remove_dir_all(&part).is_ok() || !part.exists();
            let _ = (0..100).find(removed);
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    });
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn remove_on_signal(_: &Path) -> io::Result<()> {
    Ok(())
}

/// A file without a name in a folder.
#[cfg(target_os = "linux")]
fn unnamed(folder: &Path) -> Option<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let flags = rustix::fs::OFlags::TMPFILE.bits().cast_signed();
    let file = OpenOptions::new().write(true).custom_flags(flags).open(folder).ok()?;
    // The file gets its name by a link to its descriptor, which /proc must show.
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

/// Exchanges two folders.
#[cfg(target_os = "linux")]
fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    Ok(renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)?)
}

#[cfg(not(target_os = "linux"))]
fn exchange(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// An error with the file's name in front.
fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {}", path.display(), plain(error)))
}

/// The reason for an error without the temporary name that `tempfile` adds to it.
pub fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    text.split_once(" at path \"").map_or(text.as_str(), |(reason, _)| reason).to_owned()
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.is_begun = true;
        self.file().write(bytes).map_err(|e| named(&self.shown, &e))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file().flush()
    }
}

/// A part of a file that is not whole can be written again; not so what has been given to a pipe.
impl Seek for AtomicFile {
    fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
        if let Place::Final(_) = self.place {
            return Err(self.no_parts());
        }
        self.file().seek(to)
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
            let mut whole = AtomicFile::create(&folder.join(name)).expect("created");
            whole.write_all(b"new").expect("written");
            whole
        };
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect("read");
        let broken = begin("a");
        if let Place::Unnamed(_) = broken.place {
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

    /// The way of systems that have no files without a name.
    #[test]
    fn a_temporary_file_has_a_name_of_its_own() {
        let folder = std::env::temp_dir().join(format!("schedviz-test-beside-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("a");
        let begin = || {
            let place = Place::Beside(part_beside(&path).expect("created"));
            AtomicFile { shown: path.clone(), path: path.clone(), place, is_begun: false }
        };
        let (mut one, mut other) = (begin(), begin());
        one.write_all(b"one").and_then(|()| other.write_all(b"other")).expect("written");
        assert_eq!(std::fs::read_dir(&folder).expect("a folder").count(), 2, "one is not the other's");
        one.finish().expect("finished");
        drop(other);
        assert_eq!(std::fs::read_to_string(&path).expect("read"), "one");
        assert_eq!(std::fs::read_dir(&folder).expect("a folder").count(), 1);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |path: &Path| path.metadata().expect("there").permissions().mode() & 0o777;
            File::create(folder.join("b")).expect("created");
            assert_eq!(mode(&path), mode(&folder.join("b")), "the permissions of any other file");
        }
        std::fs::remove_dir_all(&folder).expect("removed");
    }

    #[test]
    fn a_folder_is_there_when_it_is_whole() {
        let folder = std::env::temp_dir().join(format!("schedviz-test-whole-folder-{}", std::process::id()));
        let place = folder.join("sub/report");
        let begin = |file: &str| {
            let part = WholeFolder::create(&place).expect("created");
            part.write(file, b"new").expect("written");
            part
        };
        drop(begin("a"));
        assert!(!folder.exists(), "nothing is left of it, nor of the folders around it");
        assert!(!begin("a").finish().expect("finished"));
        assert!(place.join("a").is_file());
        drop(begin("b"));
        assert!(place.join("a").is_file(), "what does not become whole replaces nothing");
        assert!(begin("b").finish().expect("finished"));
        assert!(place.join("b").is_file() && !place.join("a").exists(), "as a whole");
        assert_eq!(std::fs::read_dir(folder.join("sub")).expect("a folder").count(), 1);
        std::fs::remove_dir_all(&folder).expect("removed");
    }

    #[test]
    fn folders_that_are_written_at_the_same_time_are_joined() {
        let folder = std::env::temp_dir().join(format!("schedviz-test-joined-folder-{}", std::process::id()));
        let place = folder.join("tables");
        let begin = |name: &str| {
            let part = WholeFolder::create(&place).expect("created");
            let mut file = part.file(Path::new("run").join(name)).expect("created");
            file.write_all(name.as_bytes()).and_then(|()| file.finish()).expect("written");
            part
        };
        let (one, other, again) = (begin("a"), begin("b"), begin("b"));
        for part in [one, other, again] {
            part.finish_or_join().expect("finished");
        }
        let read = |name: &str| std::fs::read_to_string(place.join("run").join(name)).expect("read");
        assert_eq!((read("a").as_str(), read("b").as_str()), ("a", "b"));
        assert_eq!(std::fs::read_dir(&folder).expect("a folder").count(), 1, "nothing else is left");
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}

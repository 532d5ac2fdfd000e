//! The folders whose files an assistant may read.

use anyhow::{Context, Result, bail};
use session::inputs;
use std::path::{Path, PathBuf};

/// The folders that the command was given.
pub(super) struct Folders(Vec<GivenFolder>);

/// A folder, as it was given and without links.
struct GivenFolder {
    given: PathBuf,
    resolved: PathBuf,
}

/// Maximum number of files that a word of a request can stand for.
const MOST_FILES: usize = 4096;

/// Maximum depth of folders below a recording that is a folder itself: the kernel's buffers, or runs.
const DEPTH: usize = 4;

impl Folders {
    /// Finds the folders.
    pub(super) fn open(given: &[PathBuf]) -> Result<Folders> {
        let open = |given: &PathBuf| {
            let name = given.display();
            let resolved = given.canonicalize().with_context(|| name.to_string())?;
            if !resolved.is_dir() {
                bail!("{name} is not a folder; name the folder that holds the recordings");
            }
            if given.to_str().is_none_or(|name| name.starts_with('-')) {
                bail!("{name}: the name of the folder cannot be part of a request; give it another one");
            }
            Ok(GivenFolder { given: given.clone(), resolved })
        };
        Ok(Folders(given.iter().map(open).collect::<Result<_>>()?))
    }

    /// The folders as they were given.
    pub(super) fn given(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().map(|folder| folder.given.as_path())
    }

    /// Returns the recording, or other input, of this name: see [`Folders::locate`]. One of whose files a link leads out of the folders is
    /// refused.
    pub(super) fn find(&self, name: &str) -> Result<PathBuf, String> {
        let found = self.locate(name)?;
        if found.is_dir() {
            self.check_tree(&found, DEPTH, &mut 0)?;
        } else if let Some(folder) = found.parent() {
            self.check_beside(folder, &[&found])?;
        }
        Ok(found)
    }

    /// Returns the file or folder of this name, without links, below a folder as it was given. A name is a path, or a path from one of the
    /// folders. The error is the same for a file that does not exist and for one outside.
    pub(super) fn locate(&self, name: &str) -> Result<PathBuf, String> {
        let bare = Path::new(name);
        let places = std::iter::once(bare.to_owned()).chain(self.given().map(|folder| folder.join(bare)));
        let found = places.filter(|_| !name.is_empty()).find_map(|place| self.inside(&place));
        found.ok_or_else(|| self.absent(name))
    }

    /// Returns the pattern of files of this name: with `*` in the file's name, or `{}` for the parameter of a sweep. Every file that it
    /// stands for is in the folders.
    pub(super) fn find_pattern(&self, name: &str) -> Result<PathBuf, String> {
        let path = Path::new(name);
        let pattern = path.file_name().and_then(|pattern| pattern.to_str()).unwrap_or_default();
        if !pattern.contains('*') && !pattern.contains("{}") {
            return self.find(name);
        }
        // A bare pattern is one in the first folder that was given.
        let folder = match (path.parent().and_then(Path::to_str).unwrap_or_default(), self.0.first()) {
            ("", Some(first)) => first.given.clone(),
            (folder, _) => self.locate(folder)?,
        };
        let found = folder.join(pattern);
        let any = found.to_string_lossy().replace("{}", "*");
        let files = session::groups::expand([any.as_str()].into_iter(), "").map_err(|_| self.absent(name))?;
        if files.len() > MOST_FILES {
            return Err(format!("{name:?} stands for more than {MOST_FILES} files"));
        }
        files.iter().try_for_each(|file| self.inside(file).map(drop).ok_or_else(|| self.absent(name)))?;
        self.check_beside(&folder, &files.iter().map(PathBuf::as_path).collect::<Vec<_>>())?;
        Ok(found)
    }

    /// Refuses a word that is no name of a file by its kind, but that a command might take for one: an existing file outside of the folders.
    pub(super) fn refuse_outside(&self, word: &str) -> Result<(), String> {
        let files = inputs::candidates(word.as_ref()).into_iter().filter(|path| path.is_file());
        files.take(MOST_FILES).try_for_each(|path| match self.inside(&path) {
            Some(_) => Ok(()),
            None => Err(format!("{word:?} is the name of a file outside of the folders; write it in another way")),
        })
    }

    /// The path without links below the folder as it was given; nothing if it is elsewhere or does not exist.
    fn inside(&self, path: &Path) -> Option<PathBuf> {
        let resolved = path.canonicalize().ok()?;
        let folder = self.0.iter().find(|folder| resolved.starts_with(&folder.resolved))?;
        let below = resolved.strip_prefix(&folder.resolved).ok()?;
        let found = if below.as_os_str().is_empty() { folder.given.clone() } else { folder.given.join(below) };
        found.to_str().is_some().then_some(found)
    }

    /// Refuses a folder in which a link leads out of the folders.
    fn check_tree(&self, path: &Path, depth: usize, seen: &mut usize) -> Result<(), String> {
        let Ok(entries) = path.read_dir() else { return Ok(()) };
        for entry in entries.flatten() {
            *seen += 1;
            if *seen > MOST_FILES * 16 || depth == 0 {
                return Err(format!("{} holds too many files to be one recording; name a file in it", path.display()));
            }
            let at = entry.path();
            let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
            if is_link && at.exists() && self.inside(&at).is_none() {
                return Err(format!("a link in {} leads out of the folders", path.display()));
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                self.check_tree(&at, depth - 1, seen)?;
            }
        }
        Ok(())
    }

    /// Refuses recordings beside which a link leads out of the folders: commands read files that are called after a recording.
    fn check_beside(&self, folder: &Path, recordings: &[&Path]) -> Result<(), String> {
        let Ok(entries) = folder.read_dir() else { return Ok(()) };
        for entry in entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink())) {
            let (name, at) = (entry.file_name(), entry.path());
            let is_of = |recording: &&Path| {
                let stem = recording.file_stem().unwrap_or_default().as_encoded_bytes();
                name.as_encoded_bytes().starts_with(stem)
            };
            if at.exists() && self.inside(&at).is_none() && recordings.iter().any(is_of) {
                return Err(format!("the link {} leads out of the folders", at.display()));
            }
        }
        Ok(())
    }

    fn absent(&self, name: &str) -> String {
        let folders: Vec<String> = self.given().map(|folder| folder.display().to_string()).collect();
        format!("there is no {name:?} in {}; `open` lists what is there", folders.join(", "))
    }
}

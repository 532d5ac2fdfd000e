//! Links on the way to an output. A link that another user made in a folder that all may write to is not followed: it
//! could lead the output of root over any file. The kernel's `fs.protected_symlinks` refuses such links as well, but it
//! can be switched off, and it does not see a link that a program reads by itself.

use std::io;
use std::path::{Path, PathBuf};

/// The end of all links of a path.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// A path in which no part that exists is a link.
    Place(PathBuf),
    /// An open file of a process, such as /dev/stdout, which only the path itself reaches.
    Open,
}

/// The most links of one path, as in the kernel.
#[cfg(target_os = "linux")]
const LINKS: usize = 40;

/// Follows the links of a path, also those of its folders. The path need not exist.
#[cfg(target_os = "linux")]
pub(crate) fn follow(path: &Path) -> io::Result<End> {
    use std::ffi::OsString;
    use std::path::Component;
    let reversed = |path: &Path| -> Vec<OsString> {
        let parts = path.components().rev().filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir));
        parts.map(|part| part.as_os_str().to_owned()).collect()
    };
    let absolute = std::env::current_dir()?.join(path);
    let (mut left, mut at, mut links) = (reversed(&absolute), PathBuf::from("/"), 0);
    while let Some(part) = left.pop() {
        if part == ".." {
            at.pop();
            continue;
        }
        let next = at.join(part);
        // An error, such as a folder that is missing, shows where the output is created.
        if !next.symlink_metadata().is_ok_and(|found| found.is_symlink()) {
            at = next;
            continue;
        }
        if left.is_empty() && at.starts_with("/proc") {
            return Ok(End::Open);
        }
        trusted(&next)?;
        links += 1;
        if links > LINKS {
            return Err(rustix::io::Errno::LOOP.into());
        }
        let to = next.read_link()?;
        if to.is_absolute() {
            at = PathBuf::from("/");
        }
        left.extend(reversed(&to));
    }
    Ok(End::Place(at))
}

/// Follows the links of a path.
#[cfg(not(target_os = "linux"))]
pub(crate) fn follow(path: &Path) -> io::Result<End> {
    let is_open = path.is_symlink() && ["/dev", "/proc"].iter().any(|folder| path.starts_with(folder));
    Ok(if is_open { End::Open } else { End::Place(path.canonicalize().unwrap_or_else(|_| path.to_owned())) })
}

/// The place of a file whose name the program chose, as that of a machine file beside a recording: the links of its
/// folder are followed, and the name itself is no link's.
pub(crate) fn follow_folder(path: &Path) -> io::Result<PathBuf> {
    let (folder, Some(name)) = (folder_of(path), path.file_name()) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "this is no name of a file"));
    };
    match follow(folder)? {
        End::Place(folder) => Ok(folder.join(name)),
        End::Open => Ok(path.to_owned()),
    }
}

/// The folder that a file or a folder is in.
pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."))
}

/// Refuses a link, a pipe or a device that another user put into a folder that all may write to.
#[cfg(target_os = "linux")]
pub(crate) fn trusted(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let (found, folder) = (path.symlink_metadata()?, folder_of(path).metadata()?);
    if is_trusted(rustix::process::geteuid().as_raw(), found.uid(), folder.mode()) {
        return Ok(());
    }
    let what = if found.is_symlink() { "a link" } else { "no file" };
    let (path, owner) = (path.display(), found.uid());
    let why = format!("{path} is {what} and belongs to another user ({owner}), in a folder that all may write to");
    Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("{why}; choose another name for the output")))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn trusted(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Whether a user may write through a link of this owner in a folder of this mode.
#[cfg(target_os = "linux")]
fn is_trusted(user: u32, owner: u32, folder_mode: u32) -> bool {
    const ALL_WRITE: u32 = 0o002;
    owner == user || owner == 0 || folder_mode & ALL_WRITE == 0
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_links_of_strangers_in_open_folders_are_refused() {
        for (user, owner, mode, trusted) in [
            (0, 1000, 0o41777, false),
            (0, 1000, 0o40777, false),
            (1001, 1000, 0o41777, false),
            (1000, 1000, 0o41777, true),
            (1000, 0, 0o41777, true),
            (0, 0, 0o41777, true),
            (0, 1000, 0o40755, true),
            (0, 1000, 0o40775, true),
        ] {
            assert_eq!(is_trusted(user, owner, mode), trusted, "{user} {owner} {mode:o}");
        }
    }

    #[test]
    fn links_are_followed_to_their_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("a folder");
        let at = |name: &str| root.join(name);
        std::fs::create_dir_all(at("a/b")).expect("created");
        symlink("a/b", at("relative")).expect("linked");
        symlink(at("a"), at("absolute")).expect("linked");
        symlink("../../file", at("a/b/up")).expect("linked");
        symlink("round", at("round")).expect("linked");
        symlink("new", at("dangling")).expect("linked");
        for (path, end) in [
            ("relative/x", "a/b/x"),
            ("absolute/./b/../x", "a/x"),
            ("absolute/b/up", "file"),
            ("relative/../x", "a/x"),
            ("dangling", "new"),
            ("missing/x", "missing/x"),
        ] {
            assert_eq!(follow(&at(path)).expect(path), End::Place(at(end)), "{path}");
        }
        assert!(follow(&at("round")).is_err());
        assert_eq!(follow_folder(&at("absolute/b/up")).expect("a place"), at("a/b/up"));
        assert_eq!(follow(Path::new("/dev/stdout")).expect("a place"), End::Open);
        assert_eq!(follow(Path::new("/proc/self/fd/1")).expect("a place"), End::Open);
        assert_eq!(follow(Path::new("/dev/null")).expect("a place"), End::Place("/dev/null".into()));
    }
}

//! Files beside a trace, read to a limit.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result};
use std::path::Path;

/// Reads a regular file, or a pipe such as that of `<(lscpu -e -J)` in a shell, of at most `most` bytes. A device is refused, and so
/// is a larger file; a FIFO that no program writes to is not waited for.
///
/// # Errors
///
/// Those of the system, [`ErrorKind::InvalidInput`] for a file of another kind, and [`ErrorKind::InvalidData`] for one without an end
/// or a beginning.
pub fn read_bounded(path: &Path, most: u64) -> Result<Vec<u8>> {
    let file = open(path)?;
    opened::note(path, &file);
    let kind = file.metadata()?.file_type();
    if !kind.is_file() && !is_pipe(kind) {
        return Err(Error::new(ErrorKind::InvalidInput, "not a regular file or a pipe"));
    }
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(Error::new(ErrorKind::InvalidData, format!("larger than {} MiB", most >> 20)));
    }
    if bytes.is_empty() && is_pipe(kind) {
        return Err(Error::new(ErrorKind::InvalidData, "a pipe that no program writes to"));
    }
    Ok(bytes)
}

/// Opens a file without waiting for a writer of a FIFO.
#[cfg(unix)]
fn open(path: &Path) -> Result<File> {
    use rustix::fs::{Mode, OFlags, fcntl_getfl, fcntl_setfl, open};
    let file = open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY, Mode::empty())?;
    // A read waits for a writer that there is.
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(file.into())
}

#[cfg(not(unix))]
fn open(path: &Path) -> Result<File> {
    File::open(path)
}

#[cfg(unix)]
fn is_pipe(kind: std::fs::FileType) -> bool {
    std::os::unix::fs::FileTypeExt::is_fifo(&kind)
}

#[cfg(not(unix))]
fn is_pipe(_: std::fs::FileType) -> bool {
    false
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn only_what_ends_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, fifo) = (folder.path().join("file"), folder.path().join("fifo"));
        std::fs::write(&file, b"0123456789").expect("written");
        assert_eq!(read_bounded(&file, 10).expect("the file"), b"0123456789");
        let why = |path: &Path| read_bounded(path, 9).expect_err("refused").to_string();
        assert_eq!(why(&file), "larger than 0 MiB");
        assert_eq!(why(Path::new("/dev/zero")), "not a regular file or a pipe");
        assert_eq!(why(folder.path()), "not a regular file or a pipe");
        assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo").success());
        assert_eq!(why(&fifo), "a pipe that no program writes to");
    }

    /// A pipe as a shell passes it for `<(command)` is a descriptor that this process has open.
    #[test]
    fn pipes_with_a_writer_are_read_to_their_end() {
        let read = |bytes: usize| {
            let (reader, mut writer) = std::io::pipe().expect("a pipe");
            let path = format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&reader));
            let thread = std::thread::spawn(move || std::io::Write::write_all(&mut writer, &vec![b'x'; bytes]));
            let read = read_bounded(Path::new(&path), 1 << 20).map(|bytes| bytes.len());
            drop(reader);
            let _ = thread.join().expect("a writer");
            read
        };
        assert_eq!(read(200_000).expect("all"), 200_000);
        assert!(read(2 << 20).is_err());
    }
}

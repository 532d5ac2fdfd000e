//! The events of an instance while it records: pages of its buffers, read as the kernel fills them.

use crate::Error;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

/// The buffers of an instance, one for each CPU. A page that was read has left the buffer.
#[derive(Debug)]
pub struct Pages {
    cpus: Vec<(u32, PathBuf, File)>,
    page: Vec<u8>,
}

impl Pages {
    /// Opens the buffers in the folder of an instance, whose pages have this size in bytes.
    ///
    /// # Errors
    ///
    /// The first file that cannot be opened; a folder without buffers.
    pub fn open(folder: &Path, page_size: usize) -> Result<Pages, Error> {
        let failed = |path: &Path, source| Error::Io { path: path.to_owned(), source };
        let buffers = folder.join("per_cpu");
        let mut cpus = Vec::new();
        for entry in std::fs::read_dir(&buffers).map_err(|e| failed(&buffers, e))?.flatten() {
            let name = entry.file_name();
            let Some(cpu) = name.to_str().and_then(|name| name.strip_prefix("cpu")?.parse().ok()) else { continue };
            let path = entry.path().join("trace_pipe_raw");
            let file = open_at_once(&path).map_err(|e| failed(&path, e))?;
            cpus.push((cpu, path, file));
        }
        cpus.sort_by_key(|(cpu, ..)| *cpu);
        if cpus.is_empty() {
            return Err(failed(&buffers, ErrorKind::NotFound.into()));
        }
        Ok(Pages { cpus, page: vec![0; page_size] })
    }

    /// Reads the pages that are there, also those that are filled in part, and passes each with its CPU. No more pages
    /// of a CPU are read than `most`, so that a machine that records faster than this reads does not hold it.
    ///
    /// # Errors
    ///
    /// The first file that cannot be read.
    pub fn read(&mut self, most: usize, page: &mut dyn FnMut(u32, &[u8])) -> Result<(), Error> {
        for (cpu, path, file) in &mut self.cpus {
            for _ in 0..most {
                match file.read(&mut self.page) {
                    Ok(size) if size == self.page.len() => page(*cpu, &self.page),
                    // A plain file has ended, or ends within a page.
                    Ok(_) => break,
                    Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                    Err(e) if e.kind() == ErrorKind::Interrupted => {}
                    Err(source) => return Err(Error::Io { path: path.clone(), source }),
                }
            }
        }
        Ok(())
    }
}

/// Opens a file that is not waited for.
#[cfg(target_os = "linux")]
fn open_at_once(path: &Path) -> std::io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?))
}

#[cfg(not(target_os = "linux"))]
fn open_at_once(path: &Path) -> std::io::Result<File> {
    File::open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_pages_are_read_once_cpu_by_cpu() {
        let folder = tempfile::tempdir().unwrap();
        for (cpu, bytes) in [(10, vec![3; 17]), (2, [[1; 8], [2; 8]].concat()), (3, Vec::new())] {
            let place = folder.path().join(format!("per_cpu/cpu{cpu}"));
            std::fs::create_dir_all(&place).unwrap();
            std::fs::write(place.join("trace_pipe_raw"), bytes).unwrap();
        }
        let mut pages = Pages::open(folder.path(), 8).unwrap();
        let mut found = Vec::new();
        pages.read(1, &mut |cpu, page| found.push((cpu, page.to_vec()))).unwrap();
        assert_eq!(found, [(2, vec![1; 8]), (10, vec![3; 8])]);
        pages.read(9, &mut |cpu, page| found.push((cpu, page.to_vec()))).unwrap();
        // The byte behind the second page of CPU 10 is no page.
        assert_eq!(found[2..], [(2, vec![2; 8]), (10, vec![3; 8])]);
        assert!(Pages::open(&folder.path().join("none"), 8).is_err());
    }
}

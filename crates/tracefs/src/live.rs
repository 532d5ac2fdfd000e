//! The events of an instance while it records: pages of its buffers, read as the kernel fills them.

use crate::Error;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

/// The buffers of an instance, one for each CPU. A page that was read has left the buffer.
#[derive(Debug)]
pub struct Pages {
    cpus: Vec<CpuPipe>,
    page: Vec<u8>,
}

/// The buffer of a CPU.
#[derive(Debug)]
struct CpuPipe {
    cpu: u32,
    path: PathBuf,
    file: File,
}

impl CpuPipe {
    /// Reads a page; whether there was one. A CPU that was never online has no buffer, and gets one when it comes online.
    fn read(&mut self, page: &mut [u8]) -> Result<bool, Error> {
        loop {
            match self.file.read(page) {
                // A plain file has ended, or ends within a page.
                Ok(size) => return Ok(size == page.len()),
                Err(e) if e.kind() == ErrorKind::WouldBlock || is_no_device(&e) => return Ok(false),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(reason) => return Err(Error::Io { path: self.path.clone(), reason }),
            }
        }
    }
}

impl Pages {
    /// Opens the buffers in the folder of an instance, whose pages have this size in bytes.
    ///
    /// # Errors
    ///
    /// The first file that cannot be opened; a folder without buffers.
    pub fn open(folder: &Path, page_size: usize) -> Result<Pages, Error> {
        let failed = |path: &Path, reason| Error::Io { path: path.to_owned(), reason };
        let buffers = folder.join("per_cpu");
        let mut cpus = Vec::new();
        for entry in std::fs::read_dir(&buffers).map_err(|e| failed(&buffers, e))?.flatten() {
            let name = entry.file_name();
            let Some(cpu) = name.to_str().and_then(|name| name.strip_prefix("cpu")?.parse().ok()) else { continue };
            let path = entry.path().join("trace_pipe_raw");
            let file = match open_at_once(&path) {
                Err(e) if is_no_device(&e) => continue,
                opened => opened.map_err(|e| failed(&path, e))?,
            };
            cpus.push(CpuPipe { cpu, path, file });
        }
        cpus.sort_by_key(|buffer| buffer.cpu);
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
        for buffer in &mut self.cpus {
            for _ in 0..most {
                if !buffer.read(&mut self.page)? {
                    break;
                }
                page(buffer.cpu, &self.page);
            }
        }
        Ok(())
    }

    /// Writes the pages of a CPU that are there; the number of bytes.
    ///
    /// # Errors
    ///
    /// Those of reading, with the name of the file, and of writing.
    pub fn write(&mut self, cpu: u32, out: &mut dyn Write) -> std::io::Result<u64> {
        let Some(buffer) = self.cpus.iter_mut().find(|buffer| buffer.cpu == cpu) else { return Ok(0) };
        let mut size = 0;
        while buffer.read(&mut self.page).map_err(std::io::Error::other)? {
            out.write_all(&self.page)?;
            size += self.page.len() as u64;
        }
        Ok(size)
    }

    /// Returns the CPUs with a buffer, which are those that the machine can have, in order.
    pub fn cpus(&self) -> Vec<u32> {
        self.cpus.iter().map(|buffer| buffer.cpu).collect()
    }
}

/// Whether the kernel has no buffer for a CPU.
fn is_no_device(error: &std::io::Error) -> bool {
    const ENODEV: i32 = 19;
    error.raw_os_error() == Some(ENODEV)
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
        let mut pages = Pages::open(folder.path(), 8).unwrap();
        let mut out = Vec::new();
        assert_eq!([2, 3, 4, 10].map(|cpu| pages.write(cpu, &mut out).unwrap()), [16, 0, 0, 16]);
        assert_eq!(out, [[1; 8], [2; 8], [3; 8], [3; 8]].concat());
        assert_eq!(pages.cpus(), [2, 3, 10]);
    }
}

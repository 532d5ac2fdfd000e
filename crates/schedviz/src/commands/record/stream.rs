//! `record --stream`: the buffers are read while the command runs, so that they need not hold the whole recording.

use super::extract::{Extracted, opened};
use super::traced::{Ended, Traced};
use super::{folder_of, named};
use anyhow::{Context, Result};
use machine::Machine;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Seek, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};
use tracefs::{CpuStats, Instance, Pages, Settings, TraceFile, Tracefs};

/// The time between two readings of the buffers.
const BETWEEN: Duration = Duration::from_millis(50);

/// Maximum number of pages of a CPU in one reading: another CPU's buffer must not overflow meanwhile.
const AT_ONCE: usize = 1024;

/// The pages that were read, in a nameless file for each CPU beside the recording.
pub(super) struct Stream<'o> {
    pages: Pages,
    output: &'o Path,
    cpus: BTreeMap<u32, Cpu>,
}

struct Cpu {
    file: BufWriter<File>,
    size: u64,
}

impl<'o> Stream<'o> {
    /// Opens the buffers of an instance.
    pub(super) fn open(tracefs: &Tracefs, instance: &Instance, output: &'o Path) -> Result<Stream<'o>> {
        let size = TraceFile::of(tracefs, &[], "", "")?.page_size();
        Ok(Stream { pages: Pages::open(instance.folder(), size)?, output, cpus: BTreeMap::new() })
    }

    /// Lets the command run, and reads until it has ended.
    pub(super) fn follow(&mut self, mut traced: Traced<'_>) -> Result<Ended> {
        let start = Instant::now();
        traced.resume()?;
        while !traced.has_ended() {
            if self.read()? == 0 {
                std::thread::sleep(BETWEEN);
            }
        }
        traced.wait(start)
    }

    /// Reads the pages that are there; their number.
    fn read(&mut self) -> Result<usize> {
        let folder = folder_of(self.output);
        let (cpus, mut count, mut failed) = (&mut self.cpus, 0, None);
        self.pages.read(AT_ONCE, &mut |cpu, page| {
            count += 1;
            let written = write(cpus, cpu, page, folder);
            failed = failed.take().or(written.err());
        })?;
        match failed {
            Some(error) => Err(error).with_context(|| folder.display().to_string()),
            None => Ok(count),
        }
    }

    /// Reads the rest of a stopped instance, removes it, and writes the recording. The kernel's counters are those before the
    /// removal.
    pub(super) fn save(
        mut self,
        tracefs: &Tracefs,
        instance: Instance,
        settings: &Settings,
        machine: &Machine,
        output: &Path,
    ) -> Result<(Extracted, Vec<CpuStats>)> {
        while self.read()? > 0 {}
        let stats = instance.stats();
        let clock = std::fs::read_to_string(instance.folder().join("trace_clock")).unwrap_or_default();
        let mut systems: Vec<&str> = settings.events.iter().filter_map(|event| event.split('/').next()).collect();
        systems.sort_unstable();
        systems.dedup();
        let release = machine.kernel.release.clone().unwrap_or_default();
        // The names of tasks are saved by now.
        let file = TraceFile::with_symbols(tracefs, &systems, &release, &clock)?;
        // Its open files would hold the instance.
        let Stream { pages, cpus, .. } = self;
        drop(pages);
        instance.remove()?;
        let folder = folder_of(output);
        let mut files = Vec::new();
        for (cpu, Cpu { file, size }) in cpus {
            let mut file = named(file.into_inner().map_err(std::io::IntoInnerError::into_error), folder)?;
            named(file.rewind(), folder)?;
            files.push((cpu, size, file));
        }
        let mut part = tempfile::Builder::new();
        part.prefix(".schedviz").permissions(std::fs::Permissions::from_mode(0o666));
        let mut part = named(part.tempfile_in(folder), folder)?;
        let mut out = BufWriter::new(part.as_file_mut());
        named(file.write(&mut files, &mut out).and_then(|()| out.flush()), output)?;
        drop(out);
        named(part.persist(output).map_err(|e| e.error), output)?;
        Ok((opened(output)?, stats))
    }
}

fn write(cpus: &mut BTreeMap<u32, Cpu>, cpu: u32, page: &[u8], folder: &Path) -> std::io::Result<()> {
    let cpu = match cpus.entry(cpu) {
        std::collections::btree_map::Entry::Occupied(known) => known.into_mut(),
        std::collections::btree_map::Entry::Vacant(new) => {
            let file = BufWriter::with_capacity(1 << 20, tempfile::tempfile_in(folder)?);
            new.insert(Cpu { file, size: 0 })
        }
    };
    cpu.size += page.len() as u64;
    cpu.file.write_all(page)
}

//! `record --stream`: the buffers are read while the command runs, so that they need not hold the whole recording.

use super::running::Lasting;
use super::save::{Saved, opened, write};
use super::{Recorder, folder_of};
use crate::traced::EndedCommand;
use anyhow::{Context, Result};
use machine::Machine;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, Write};
use std::path::Path;
use std::time::Duration;
use tracefs::{CpuStats, Instance, Pages, TraceFile, Tracefs};

/// The time between two readings of the buffers.
const BETWEEN: Duration = Duration::from_millis(50);

/// Maximum number of pages of a CPU in one reading: another CPU's buffer must not overflow meanwhile.
const AT_ONCE: usize = 1024;

/// The pages that were read, in a nameless file for each CPU beside the recording.
pub(super) struct Stream<'o> {
    pages: Pages,
    output: &'o Path,
    cpus: BTreeMap<u32, KeptPages>,
}

struct KeptPages {
    file: BufWriter<File>,
    size: u64,
}

impl<'o> Stream<'o> {
    /// Opens the buffers of an instance.
    pub(super) fn open(tracefs: &Tracefs, instance: &Instance, output: &'o Path) -> Result<Stream<'o>> {
        let size = TraceFile::of(tracefs, &[], "", "")?.page_size();
        Ok(Stream { pages: Pages::open(instance.folder(), size)?, output, cpus: BTreeMap::new() })
    }

    /// Lets the command run, or the time pass, and reads until the end.
    pub(super) fn follow(&mut self, lasting: Lasting<'_>) -> Result<EndedCommand> {
        lasting.run_beside(|| {
            if self.read()? == 0 {
                std::thread::sleep(BETWEEN);
            }
            Ok(())
        })
    }

    /// Reads the pages that are there; their number.
    fn read(&mut self) -> Result<usize> {
        let folder = folder_of(self.output);
        let (cpus, mut count, mut failed) = (&mut self.cpus, 0, None);
        self.pages.read(AT_ONCE, &mut |cpu, page| {
            count += 1;
            let written = keep(cpus, cpu, page, folder);
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
        recorder: &Recorder<'_>,
        instance: Instance,
        machine: &Machine,
        output: &Path,
    ) -> Result<(Saved, Vec<CpuStats>)> {
        while self.read()? > 0 {}
        let stats = instance.stats();
        let file = recorder.describe(&instance, machine, &stats)?;
        let numbers = recorder.cpus(&self.pages, &stats);
        // Its open files would hold the instance.
        let Stream { pages, mut cpus, .. } = self;
        drop(pages);
        instance.remove()?;
        let mut copy = |cpu: u32, out: &mut dyn Write| {
            let Some(KeptPages { mut file, size }) = cpus.remove(&cpu) else { return Ok(0) };
            file.rewind()?;
            match io::copy(&mut file.get_ref().take(size), out)? {
                copied if copied == size => Ok(size),
                _ => Err(io::ErrorKind::UnexpectedEof.into()),
            }
        };
        write(&file, &numbers, &mut copy, output)?;
        Ok((opened(output)?, stats))
    }
}

fn keep(cpus: &mut BTreeMap<u32, KeptPages>, cpu: u32, page: &[u8], folder: &Path) -> std::io::Result<()> {
    let cpu = match cpus.entry(cpu) {
        std::collections::btree_map::Entry::Occupied(known) => known.into_mut(),
        std::collections::btree_map::Entry::Vacant(new) => {
            let file = BufWriter::with_capacity(1 << 20, tempfile::tempfile_in(folder)?);
            new.insert(KeptPages { file, size: 0 })
        }
    };
    cpu.size += page.len() as u64;
    cpu.file.write_all(page)
}

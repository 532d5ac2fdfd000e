//! The file of a recording: the pages of the instance's buffers, with the descriptions of the events.

use super::{Recorder, folder_of, named};
use anyhow::{Context, Result, bail};
use machine::Machine;
use parse::Trace;
use session::args::ReadArgs;
use session::atomic_file::{AtomicFile, private_folder};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use tracefs::{CpuStats, Instance, Pages, TraceFile};

/// A recording in its file.
pub(crate) struct Saved {
    pub(crate) trace: Trace,
    /// The size of the file.
    pub(crate) bytes: u64,
}

/// Checks, before anything is recorded, that the file can be written.
pub(crate) fn check(output: &Path) -> Result<()> {
    if output.is_dir() {
        bail!("{} is a folder; --output names a file", output.display());
    }
    if std::fs::metadata(output).is_ok_and(|file| !file.is_file()) {
        bail!("{} is no file that can be written in parts; choose another output", output.display());
    }
    let folder = folder_of(output);
    named(private_folder(output), folder).context("the recording cannot be saved")?;
    Ok(())
}

impl Recorder<'_> {
    /// Saves the events in the buffers of a stopped instance, and removes the instance. The kernel's counters are those before.
    pub(super) fn save(&self, instance: Instance, machine: &Machine, output: &Path) -> Result<(Saved, Vec<CpuStats>)> {
        let stats = instance.stats();
        let file = self.describe(&instance, machine, &stats)?;
        let mut pages = Pages::open(instance.folder(), file.page_size())?;
        let cpus = self.cpus(&pages, &stats);
        write(&file, &cpus, &mut |cpu, out| pages.write(cpu, out), output)?;
        // Its open files would hold the instance.
        drop(pages);
        instance.remove()?;
        Ok((opened(output)?, stats))
    }

    /// The content of the file but for the pages. The names of tasks are those that the kernel has saved by now.
    pub(super) fn describe(&self, instance: &Instance, machine: &Machine, stats: &[CpuStats]) -> Result<TraceFile> {
        let mut systems: Vec<&str> = self.settings.events.iter().filter_map(|event| event.split('/').next()).collect();
        systems.sort_unstable();
        systems.dedup();
        let release = machine.kernel.release.as_deref().unwrap_or_default();
        let mut file = TraceFile::with_symbols(self.tracefs, &systems, release, &instance.clock())?;
        file.add_stats(stats);
        if file.hides_symbols() {
            self.args.note(
                "the kernel hides the addresses of its symbols: stacks and functions in the recording have no names; record as root, with \
                 kernel.kptr_restrict at most 1 (sysctl kernel.kptr_restrict)",
            );
        }
        Ok(file)
    }

    /// The CPUs that are there, and those with events. The kernel has folders for all that the machine could have. Without
    /// counters each of these can have events.
    pub(super) fn cpus(&self, pages: &Pages, stats: &[CpuStats]) -> Vec<u32> {
        let with_events = stats.iter().filter(|stats| stats.recorded() > 0).map(|stats| stats.cpu + 1).max();
        let count = self.root.present().max(with_events.unwrap_or(0));
        pages.cpus().into_iter().filter(|cpu| stats.is_empty() || *cpu < count).collect()
    }
}

/// Writes a recording. One without any event is an error: it would replace an earlier one.
pub(super) fn write(
    file: &TraceFile,
    cpus: &[u32],
    pages: &mut dyn FnMut(u32, &mut dyn Write) -> io::Result<u64>,
    output: &Path,
) -> Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, AtomicFile::create(output)?);
    // Both the pages and the file name themselves in errors.
    let size = file.write(cpus, pages, &mut out)?;
    if size == 0 {
        bail!("no event was recorded: nothing is saved");
    }
    out.into_inner().map_err(io::IntoInnerError::into_error)?.finish()?;
    Ok(())
}

/// A recording that has been written.
pub(super) fn opened(path: &Path) -> Result<Saved> {
    let bytes = named(std::fs::metadata(path), path)?.len();
    let trace = ReadArgs::default().open(path)?;
    Ok(Saved { trace, bytes })
}

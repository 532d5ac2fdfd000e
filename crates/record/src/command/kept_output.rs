//! The output of a benchmark, kept beside its recording: `compare` reads the benchmark's numbers in it.
//!
//! The command writes to a file of its own, which is printed once the recording is saved: a program that passed the output on would
//! run beside the command, and be in the trace.

use super::{RecordArgs, RecordedRun, Recorder, folder_of, named};
use anyhow::Result;
use session::atomic_file::private_folder;
use std::io::{self, Write};
use std::path::Path;

impl RecordArgs {
    /// Whether the output of the command is kept beside the recording.
    fn keeps_output(&self) -> bool {
        self.keep_output || benchmarks::is_benchmark(&self.command)
    }
}

impl Recorder<'_> {
    /// Records the command once, with its output where that is kept.
    pub(super) fn record_alone(&self, output: &Path) -> Result<RecordedRun> {
        let kept = benchmarks::path_beside(output);
        if !self.args.keeps_output() || kept == *output {
            let recorded = self.record(output, None)?;
            // The output of an earlier recording of this name would be taken for that of this one.
            if benchmarks::beside(output).is_ok_and(|numbers| !numbers.is_empty()) && kept != *output {
                named(std::fs::remove_file(&kept), &kept)?;
            }
            return Ok(recorded);
        }
        let folder = named(private_folder(output), folder_of(output))?;
        let part = folder.path().join("output");
        let recorded = self.record(output, Some(&part))?;
        named(std::fs::rename(&part, &kept), &kept)?;
        print(&kept)?;
        Ok(recorded)
    }
}

/// Prints a file; a reader that ends early is no error.
fn print(path: &Path) -> Result<()> {
    let mut file = named(std::fs::File::open(path), path)?;
    let mut out = io::stdout().lock();
    match io::copy(&mut file, &mut out).and_then(|_| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

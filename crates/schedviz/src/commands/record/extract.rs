//! The file of a recording, written by trace-cmd.

use super::{RecordArgs, find_program, folder_of, named};
use crate::args::ReadArgs;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tracedat::Trace;
use tracefs::{INSTANCE, Instance};

/// A recording in its file.
pub(crate) struct Extracted {
    pub(crate) trace: Trace,
    /// The size of the file.
    pub(crate) bytes: u64,
}

/// Checks, before anything is recorded, that the file can be written.
pub(crate) fn check(args: &RecordArgs, output: &Path) -> Result<()> {
    let is_needed = !args.stream && !args.counters;
    if is_needed && find_program(&args.trace_cmd).is_none() {
        bail!(
            "{} is not installed: it writes the recording's file (Debian: apt install trace-cmd)",
            args.trace_cmd.display()
        );
    }
    if output.is_dir() {
        bail!("{} is a folder; --output names a file", output.display());
    }
    let folder = folder_of(output);
    named(tempfile::Builder::new().prefix(".schedviz").tempfile_in(folder), folder)
        .context("the recording cannot be saved")?;
    Ok(())
}

/// Writes the events of the instance to the file, and removes the instance.
pub(crate) fn extract(args: &RecordArgs, instance: Instance, path: &Path) -> Result<Extracted> {
    let part = part_of(path);
    let mut command = Command::new(&args.trace_cmd);
    command.args(["extract", "-B", INSTANCE, "-o"]).arg(&part).stdin(Stdio::null()).stdout(Stdio::null());
    let output = command.stderr(Stdio::piped()).spawn().and_then(std::process::Child::wait_with_output);
    let output = output.with_context(|| args.trace_cmd.display().to_string())?;
    // trace-cmd removes an instance that it has extracted.
    instance.remove()?;
    if !output.status.success() || !part.is_file() {
        let _ = std::fs::remove_file(&part);
        let message = String::from_utf8_lossy(&output.stderr);
        bail!("{} extract failed ({}): {}", args.trace_cmd.display(), output.status, message.trim());
    }
    named(std::fs::rename(&part, path), path)?;
    opened(path)
}

/// The name of a recording until it is complete: a file that is not never has the name of one.
pub(super) fn part_of(path: &Path) -> PathBuf {
    let mut part = path.to_owned().into_os_string();
    part.push(".part");
    PathBuf::from(part)
}

/// A recording that has been written.
pub(super) fn opened(path: &Path) -> Result<Extracted> {
    let bytes = named(std::fs::metadata(path), path)?.len();
    let trace = ReadArgs::default().open(path)?;
    Ok(Extracted { trace, bytes })
}

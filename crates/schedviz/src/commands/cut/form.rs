//! The forms of a written recording other than trace.dat: those that other crates write.

use super::CutArgs;
use anyhow::{Result, bail};
use session::Session;
use session::args::{WindowArgs, named};
use session::writer::{Lines, verb};
use std::ffi::OsStr;
use std::path::Path;

/// The form of a written recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutputForm {
    Dat,
    Perfetto,
    Text,
}

/// Endings of formats in which no recording is written.
const OTHERS: [&str; 9] = ["data", "json", "html", "csv", "parquet", "pdf", "svg", "png", "gz"];

impl OutputForm {
    /// The form that the name of a file asks for; a trace.dat by any other name is one as well.
    pub(super) fn of(output: &Path) -> Result<OutputForm> {
        if output.as_os_str() == "-" {
            return Ok(OutputForm::Text);
        }
        match output.extension().and_then(OsStr::to_str) {
            Some("pftrace" | "perfetto-trace") => Ok(OutputForm::Perfetto),
            Some("txt") => Ok(OutputForm::Text),
            Some(ending) if OTHERS.contains(&ending) => {
                let file = output.display();
                bail!("{file}: no recording is written as .{ending}; choose .dat, .pftrace (for Perfetto) or .txt")
            }
            _ => Ok(OutputForm::Dat),
        }
    }
}

/// Writes a trace for Perfetto, or a text.
pub(super) fn write(form: OutputForm, args: &CutArgs) -> Result<()> {
    let of_dat = [
        ("--anonymize", args.anonymize),
        ("--no-symbols", args.no_symbols),
        ("--dat-version", args.dat_version.is_some()),
        ("--plot", !args.plot.is_empty()),
    ];
    if let Some((option, _)) = of_dat.iter().find(|(_, is_given)| *is_given) {
        bail!("{option} is of a trace.dat: write one (-o part.dat), then convert that");
    }
    let trace = args.open()?;
    let needs_time = form == OutputForm::Perfetto || WindowArgs::of_time(&args.time).bounds_time();
    if needs_time {
        trace.has_time().map_err(|e| named(&args.trace, e))?;
    }
    let mut session = Session::of_trace(trace, &args.trace, &args.read, &WindowArgs::of_time(&args.time))?;
    if form == OutputForm::Perfetto {
        return export::write_perfetto(session, workcons::Waiters::default(), &args.output);
    }
    let output = Some(args.output.as_path()).filter(|output| output.as_os_str() != "-");
    let verb = output.map(|output| verb(output.is_file()));
    events::write_text(&mut session, Lines::open(output)?)?;
    if let (Some(output), Some(verb)) = (output, verb) {
        let size = std::fs::metadata(output).map_or(0, |written| written.len()).div_ceil(1000);
        args.read.message(&format!("{verb} {} ({size} kB)", output.display()));
    }
    Ok(())
}

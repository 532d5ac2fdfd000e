//! What was wrong with a trace, said where it can be seen.

use crate::args::ReadArgs;
use parse::Trace;
use sched::{Diagnostic, Diagnostics, Severity};
use std::fmt::Display;
use std::io::IsTerminal;

/// Prints what is worth a warning to standard error: losses and repairs, one line each.
pub(crate) fn warn(diagnostics: &Diagnostics, read: &ReadArgs) {
    if read.quiet {
        return;
    }
    let colored = match read.color {
        clap::ColorChoice::Always => true,
        clap::ColorChoice::Never => false,
        clap::ColorChoice::Auto => std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none(),
    };
    for (what, count, first) in diagnostics.iter() {
        let (word, escape) = match what.severity() {
            Severity::Note => continue,
            Severity::Repaired => ("repaired", "\x1b[33m"),
            Severity::DataLoss => ("data loss", "\x1b[31m"),
        };
        let word = if colored { format!("{escape}{word}\x1b[0m") } else { word.to_owned() };
        eprintln!("schedviz: {word}: {}", line(what, count, first));
    }
}

/// Events that the recorder counted but that are missing without a mark, in percent of all it counted.
pub(crate) fn unwritten_percent(trace: &Trace, diagnostics: &Diagnostics) -> f64 {
    let unwritten = diagnostics.count(Diagnostic::EventsDroppedUnmarked);
    100.0 * unwritten as f64 / trace.recorded().max(unwritten).max(1) as f64
}

/// A diagnostic in a line.
pub(crate) fn line(what: Diagnostic, count: impl Display, first: Option<&str>) -> String {
    let place = match (what, first) {
        (_, None) => String::new(),
        // Those are names, or say more.
        (Diagnostic::MissingEvents | Diagnostic::FastWindow, Some(which)) => format!(" [{which}]"),
        (_, Some(place)) => format!(" [first: {place}]"),
    };
    format!("{count} {}{place}", what.message())
}

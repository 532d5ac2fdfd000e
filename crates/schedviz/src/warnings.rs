//! What was wrong with a trace, said where it can be seen.

use crate::args::ReadArgs;
use sched::{Diagnostic, Diagnostics, Severity};
use std::io::IsTerminal;
use tracedat::Trace;

/// Prints what is worth a warning to standard error: losses and repairs, one line each.
pub(crate) fn warn(diagnostics: &Diagnostics, read: &ReadArgs) {
    warn_of(None, diagnostics, read);
}

/// The same, with the file's name in front where there are several.
pub(crate) fn warn_of(trace: Option<&str>, diagnostics: &Diagnostics, read: &ReadArgs) {
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
        // What `info` says of the same, it tells itself.
        let more = if what == Diagnostic::MissingEvents { "; schedviz info tells what depends on them" } else { "" };
        let of = trace.map_or(String::new(), |name| format!("{name}: "));
        read.message(&format!("{of}{word}: {}{more}", line(what, count, first)));
    }
}

/// Events that the recorder counted but that are missing without a mark, in percent of all it counted.
pub(crate) fn unwritten_percent(trace: &Trace, diagnostics: &Diagnostics) -> f64 {
    let unwritten = diagnostics.count(Diagnostic::EventsDroppedUnmarked);
    100.0 * unwritten as f64 / trace.recorded().max(unwritten).max(1) as f64
}

/// A diagnostic in a line.
pub(crate) fn line(what: Diagnostic, count: u64, first: Option<&str>) -> String {
    let place = match (what, first) {
        (_, None) => String::new(),
        // There is no other, or those are names.
        (Diagnostic::ClocksApart, Some(cpu)) if count == 1 => format!(" [CPU {cpu}]"),
        (_, Some(place)) if count == 1 => format!(" [{place}]"),
        (Diagnostic::ClocksApart, Some(cpus)) => format!(" [CPUs {cpus}]"),
        (Diagnostic::MissingEvents | Diagnostic::FastWindow, Some(names)) => format!(" [{names}]"),
        (_, Some(place)) => format!(" [first: {place}]"),
    };
    format!("{} {}{place}", grouped(count), what.message(count))
}

/// Digits in groups of three.
pub(crate) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

//! The findings about a trace: warnings on standard error, and rows in JSON.

use crate::args::ReadArgs;
use crate::messages::are_coloured;
use parse::{FileIssue, Trace};
use sched::{Diagnostic, Diagnostics, EventIssue, Severity};
use serde::{Serialize, Serializer};
use std::borrow::Borrow;

/// Prints the warnings to standard error: losses and repairs, one line each.
pub fn warn(diagnostics: &Diagnostics, read: &ReadArgs) {
    warn_of(None, diagnostics, read);
}

/// Prints the warnings about a trace to standard error, with its name in front where there are several traces.
pub fn warn_of(trace: Option<&str>, diagnostics: &Diagnostics, read: &ReadArgs) {
    if read.quiet {
        return;
    }
    let colored = are_coloured(read.color);
    for (what, count, first) in diagnostics.iter() {
        let (word, escape) = match what.severity() {
            Severity::Note => continue,
            Severity::Repaired => ("repaired", "\x1b[33m"),
            Severity::Incomplete => (INCOMPLETE, "\x1b[31m"),
            Severity::DataLoss => ("data loss", "\x1b[31m"),
        };
        let word = if colored { format!("{escape}{word}\x1b[0m") } else { word.to_owned() };
        // `info` prints the consequences itself.
        let more = if what == EventIssue::MissingEvents { "; schedviz info lists what depends on them" } else { "" };
        let of = trace.map_or(String::new(), |name| format!("{name}: "));
        read.message(&format!("{of}{word}: {}{more}", line(what, count, first)));
    }
}

/// The word for findings on events that were not recorded.
pub const INCOMPLETE: &str = "incomplete";

/// Advice that names options, which has its place in the message.
const ADVICE: [(Diagnostic, &str); 15] = [
    (FileIssue::SomeTasks.diagnostic(), ". Record the machine (perf record -a)"),
    (EventIssue::EventsLost.diagnostic(), ". Record with larger buffers (trace-cmd record -b)"),
    (FileIssue::EventsDroppedUnmarked.diagnostic(), " (trace-cmd record -m)"),
    (FileIssue::DuplicateEvents.diagnostic(), ". Choose with --buffer"),
    (FileIssue::OtherClock.diagnostic(), ". Choose with --buffer"),
    (FileIssue::ClocksApart.diagnostic(), ". Record with -C mono"),
    (FileIssue::TimeBackwards.diagnostic(), ": record with -C mono"),
    (EventIssue::MissingEvents.diagnostic(), ". Record with trace-cmd record -e sched"),
    (EventIssue::SwitchPrevMismatch.diagnostic(), " (trace-cmd record -f, -F, -P)"),
    (EventIssue::UnseenQueue.diagnostic(), " (trace-cmd record -M)"),
    (FileIssue::RoundedTimes.diagnostic(), ". Print with trace-cmd report -t or perf script --ns"),
    (FileIssue::NoContext.diagnostic(), ". Print with trace-cmd report -l, or use the recording itself"),
    (FileIssue::UntoldLosses.diagnostic(), " (--show-lost-events)"),
    (FileIssue::FastWindow.diagnostic(), " (--fast-window)"),
    (FileIssue::LostPast.diagnostic(), ". Cut it again from the whole trace (schedviz cut)"),
];

/// The message of a finding, with advice.
fn message(what: Diagnostic, count: u64) -> String {
    let advice = ADVICE.iter().find(|(of, _)| *of == what).map_or("", |(_, advice)| advice);
    what.message_with(count, advice)
}

/// The findings of one kind, as JSON has them.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Row<'a> {
    /// The kind of the finding.
    kind: Diagnostic,
    /// The effect on the figures.
    severity: Severity,
    /// The number of occurrences.
    count: u64,
    /// The place of the first occurrence, or the names that the finding is about; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    first: Option<&'a str>,
    /// The message, without the number.
    message: String,
}

/// Serializes findings as a sequence of [`Row`].
pub fn rows<S: Serializer>(found: &impl Borrow<Diagnostics>, s: S) -> Result<S::Ok, S::Error> {
    s.collect_seq(found.borrow().iter().map(|(kind, count, first)| Row {
        kind,
        severity: kind.severity(),
        count,
        first,
        message: message(kind, count),
    }))
}

/// Events that the recorder counted but that are missing without a mark, in percent of all it counted.
pub fn unwritten_percent(trace: &Trace, diagnostics: &Diagnostics) -> f64 {
    let unwritten = diagnostics.count(FileIssue::EventsDroppedUnmarked);
    100.0 * unwritten as f64 / trace.recorded().max(unwritten).max(1) as f64
}

/// A diagnostic in a line.
pub fn line(what: Diagnostic, count: u64, first: Option<&str>) -> String {
    let are_names =
        what == EventIssue::MissingEvents || what == FileIssue::FastWindow || what == FileIssue::MissedProbes;
    let place = match first {
        None => String::new(),
        Some(cpu) if what == FileIssue::ClocksApart && count == 1 => format!(" [CPU {cpu}]"),
        Some(cpus) if what == FileIssue::ClocksApart => format!(" [CPUs {cpus}]"),
        // There is no other place, or it is a list of names.
        Some(place) if count == 1 || are_names => format!(" [{place}]"),
        Some(place) => format!(" [first: {place}]"),
    };
    let number = if what.is_counted() { format!("{} ", grouped(count)) } else { String::new() };
    format!("{number}{}{place}", message(what, count))
}

/// Returns a number with its digits in groups of three.
pub fn grouped(n: u64) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_is_in_every_message_that_has_a_place_for_it() {
        let files = FileIssue::ALL.iter().map(|issue| issue.diagnostic());
        for what in EventIssue::ALL.iter().map(|issue| issue.diagnostic()).chain(files) {
            let has_place = what.message_with(2, "PLACE").contains("PLACE");
            assert_eq!(has_place, ADVICE.iter().any(|(of, _)| *of == what), "{}", what.name());
            assert!(!message(what, 2).contains(['@', '{', '|', '}']), "{}", message(what, 2));
        }
        let backwards = message(FileIssue::TimeBackwards.into(), 1);
        assert!(backwards.ends_with("moved to its time. The clock stepped back: record with -C mono"), "{backwards}");
        let unseen = message(EventIssue::UnseenQueue.into(), 1);
        assert!(unseen.contains("one left out (trace-cmd record -M) or whose data are missing;"), "{unseen}");
    }
}

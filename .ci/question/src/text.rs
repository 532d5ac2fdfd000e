//! The report as a text for people.

use crate::SampleReport;
use sched::nouns::counted;
use std::fmt::Write;
use timeline::Drawable;
use timeline::text::paragraph;

// todo(sample): the answer first, then the numbers that it comes from.
/// Returns the report for people: `trace` is the file as the command line has it.
pub fn text(report: &SampleReport, trace: &Drawable) -> String {
    let mut out = String::new();
    if let Some(why) = &report.selection_unknown {
        paragraph(&mut out, 0, 2, &format!("{trace}: the switches are unknown: {why}"));
        return out;
    }
    let switches = counted(report.switches.unwrap_or(0), "switch");
    paragraph(&mut out, 0, 2, &format!("{trace}: {switches} to tasks"));
    for row in &report.cpus {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "  CPU {:<4} {:>10}", row.cpu.0, row.switches);
    }
    out
}

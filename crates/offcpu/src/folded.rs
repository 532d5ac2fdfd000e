//! Folded stacks: a line for each command and stack, for programs that draw flame graphs.

use crate::{OffCpuReport, StackKind, StackTimes};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Returns a line for each command and stack: the command, the functions from the outermost to the innermost one, and the time in
/// nanoseconds. The lines are in the order of their texts, and their times sum to the total of the report.
pub fn folded(report: &OffCpuReport) -> String {
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    for row in &report.stacks {
        let time = report.time.of(row.asleep_ns, row.runnable_ns).0;
        if time > 0 {
            *lines.entry(parts(row).join(";")).or_default() += time;
        }
    }
    lines.iter().fold(String::new(), |mut out, (line, time)| {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{line} {time}");
        out
    })
}

/// The command and the functions of a row, the outermost first. A `;` in a name would divide it, and is a `:`.
pub(crate) fn parts(row: &StackTimes) -> Vec<String> {
    let name = |text: &str| text.replace([';', '\n'], ":");
    let mut parts = vec![name(&row.command.to_string())];
    if row.kind == StackKind::NoStack {
        parts.push("[no stack]".to_owned());
    }
    parts.extend(row.frames.iter().rev().map(|frame| name(frame)));
    parts
}

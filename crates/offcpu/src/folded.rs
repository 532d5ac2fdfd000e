//! Folded stacks: a line for each command and stack, for programs that draw flame graphs.

use crate::{OffCpuBy, OffCpuReport, StackKind, StackTimes};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Returns a line for each command and stack: the command, the functions from the outermost to the innermost one, and the time in
/// nanoseconds. The lines are in the order of their texts, and their times sum to the total of the report.
pub fn folded(report: &OffCpuReport) -> String {
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    for row in &report.stacks {
        let time = row.time(report.time).0;
        if time > 0 {
            *lines.entry(parts(row, report.by).join(";")).or_default() += time;
        }
    }
    lines.iter().fold(String::new(), |mut out, (line, time)| {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{line} {time}");
        out
    })
}

/// The command and the functions of a row, the outermost first, with those of the waker where rows are divided by it. A `;` in a name would divide it, and is a `:`.
pub(crate) fn parts(row: &StackTimes, by: OffCpuBy) -> Vec<Cow<'_, str>> {
    let mut parts = vec![Cow::Owned(row.command.to_string().replace(DIVIDERS, ":"))];
    let Some(waker) = &row.waker else {
        if row.kind == StackKind::NoStack {
            parts.push("[no stack]".into());
        }
        parts.extend(row.frames.iter().rev().map(|frame| name(frame)));
        return parts;
    };
    let of_waker = format!("[{}]", name(&waker.context.words(waker.command))).into();
    if by == OffCpuBy::Waker {
        parts.push(of_waker);
        parts.extend(waker.frames.iter().rev().map(|frame| name(frame)));
        return parts;
    }
    if row.frames.is_empty() {
        parts.push("[no stack]".into());
    }
    // The stack of the waker stands on its head above the other one: the two inner ends meet.
    parts.extend(row.frames.iter().rev().map(|frame| name(frame)));
    parts.push("--".into());
    parts.extend(waker.frames.iter().map(|frame| name(frame)));
    parts.push(of_waker);
    parts
}

/// The signs that would divide a name.
const DIVIDERS: [char; 2] = [';', '\n'];

fn name(text: &str) -> Cow<'_, str> {
    if text.contains(DIVIDERS) { text.replace(DIVIDERS, ":").into() } else { text.into() }
}

//! The report as a text for people.

use crate::figure::NO_STACKS;
use crate::report::{KindTimes, is_idle};
use crate::{OffCpuReport, OffCpuTime};
use sched::Dur;
use sched::nouns::counted;
use session::stacks::{StackKind, is_of_scheduler};
use std::fmt::Write;
use timeline::Drawable;
use timeline::text::{paragraph, short};

/// The number of functions of a stack that are printed.
const FUNCTIONS: usize = 6;

/// Returns the report for people: `trace` is the file as the command line has it, `rows` the maximum number of stacks.
pub fn text(report: &OffCpuReport, trace: &Drawable, rows: usize) -> String {
    let mut out = String::new();
    if let Some(why) = &report.selection_unknown {
        paragraph(&mut out, 0, 2, &format!("{trace}: the time off-CPU is unknown: {why}"));
        return out;
    }
    headline(&mut out, report, trace);
    // Without stacks rows are commands, and all are of one kind.
    if report.has_stacks() {
        kinds(&mut out, report);
    }
    stacks(&mut out, report, rows);
    out
}

fn headline(out: &mut String, report: &OffCpuReport, trace: &Drawable) {
    let time = |time: Option<Dur>| time.unwrap_or_default().human();
    let times = match report.wakeups_unknown {
        Some(why) => format!("{} asleep or runnable, which of them is unknown ({why}),", time(report.off_cpu_ns)),
        None => format!("{} asleep and {} runnable", time(report.asleep_ns), time(report.runnable_ns)),
    };
    let (switches, stacked) = (report.switches.unwrap_or(0), report.with_stack.unwrap_or(0));
    let switches = counted(switches, "switch");
    let headline = match report.has_stacks() {
        true => format!("{trace}: {times} in all tasks together; {stacked} of {switches} have a stack"),
        false => format!("{trace}: {NO_STACKS}; {times} in all tasks together, over {switches}"),
    };
    paragraph(out, 0, 2, &headline);
    let idle = report.stacks.iter().filter(|row| is_idle(row)).map(|row| row.off_cpu_ns.0).fold(0, u64::saturating_add);
    if idle > 0 {
        let idle = Dur(idle).human();
        paragraph(out, 2, 3, &format!("({idle} of it is of kernel threads without work, whose rows stand last)"));
    }
    let is_unnamed = |kind: &KindTimes| kind.kind == StackKind::Unresolved && kind.off_cpu_ns.0 > 0;
    if report.kinds.iter().any(is_unnamed) {
        paragraph(
            out,
            2,
            3,
            "(stacks without names: the trace has no symbols of the kernel; --kallsyms FILE gives them)",
        );
    }
    if report.beyond_limit > 0 {
        let left = format!(
            "(the stacks of {} switches are left out, since there are more than the program keeps)",
            report.beyond_limit
        );
        paragraph(out, 2, 3, &left);
    }
}

/// A share in percent, as a text.
fn share(part: Option<Dur>, all: Option<Dur>) -> String {
    match part.zip(all) {
        Some((part, all)) if all.0 > 0 => format!("{:.1} %", 100.0 * part.0 as f64 / all.0 as f64),
        _ => "-".to_owned(),
    }
}

fn kinds(out: &mut String, report: &OffCpuReport) {
    // Writing to a string cannot fail.
    let _ =
        writeln!(out, "\n{:<16}  {:>8}  {:>7}  {:>8}  {:>7}  {:>8}", "kind", "asleep", "", "runnable", "", "switches");
    for kind in &report.kinds {
        let [asleep, runnable] = [kind.asleep_ns, kind.runnable_ns].map(short);
        let (of_asleep, of_runnable) =
            (share(kind.asleep_ns, report.asleep_ns), share(kind.runnable_ns, report.runnable_ns));
        let words = kind.kind.words();
        let _ = writeln!(
            out,
            "{words:<16}  {asleep:>8}  {of_asleep:>7}  {runnable:>8}  {of_runnable:>7}  {:>8}",
            kind.switches
        );
    }
}

fn stacks(out: &mut String, report: &OffCpuReport, rows: usize) {
    if report.stacks.is_empty() {
        return;
    }
    let by = match report.time {
        _ if report.wakeups_unknown.is_some() => "time off-CPU",
        OffCpuTime::Asleep => "time asleep",
        OffCpuTime::Runnable => "time runnable",
        OffCpuTime::Both => "time off-CPU",
    };
    let what = if report.has_stacks() { "the inner functions" } else { "the commands" };
    let _ = writeln!(out, "\n{:>9}  {:>8}  {:>8}  by {by}: {what}", "asleep", "runnable", "switches");
    for row in report.stacks.iter().take(rows) {
        let [asleep, runnable] = [row.asleep_ns, row.runnable_ns].map(short);
        let waker =
            row.waker.as_ref().map_or(String::new(), |waker| format!(", {}", waker.context.words(waker.command)));
        let kind = if report.has_stacks() { format!(": {}", row.kind.words()) } else { String::new() };
        let _ = writeln!(out, "{asleep:>9}  {runnable:>8}  {:>8}  {}{kind}{waker}", row.switches, row.command);
        if !row.frames.is_empty() {
            paragraph(out, 6, 6, &functions(&row.frames));
        }
        if let Some(waker) = row.waker.as_ref().filter(|waker| !waker.frames.is_empty()) {
            let lead = if row.frames.is_empty() { "" } else { "waker: " };
            paragraph(out, 6, 6, &format!("{lead}{}", functions(&waker.frames)));
        }
    }
    if let Some(more) = report.stacks.len().checked_sub(rows).filter(|more| *more > 0) {
        let left = report.stacks.iter().skip(rows).map(|row| row.time(report.time).0).fold(0, u64::saturating_add);
        let (more, left) = (counted(more as u64, "stack"), Dur(left).human());
        let _ = writeln!(out, "  {more} more, {left} of {by}: --rows {} prints all", report.stacks.len());
    }
}

/// The inner functions of a stack, without those of the scheduler.
fn functions(frames: &[String]) -> String {
    let inner = frames.iter().take_while(|name| is_of_scheduler(name)).count();
    let inner = if inner == frames.len() { 0 } else { inner };
    let shown: Vec<&str> = frames.iter().skip(inner).take(FUNCTIONS).map(String::as_str).collect();
    let more = if frames.len() > inner + FUNCTIONS { " ← …" } else { "" };
    shown.join(" ← ") + more
}

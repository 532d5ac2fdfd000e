//! The work of tasks outside of the application in each run, and the runs that are contaminated by it.

use crate::measures::Measured;
use contamination::{Contaminated, OutsideWork, contaminated};
use serde::Serialize;
use std::fmt::Write;
use timeline::text::{end_of, short};

/// The most runs whose work outside the text lists.
const MOST_LISTED: usize = 40;

/// The work outside of the application in a run.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct OutsideOfRun {
    /// The name of the group.
    pub(crate) group: String,
    /// The path of the trace.
    pub(crate) trace: String,
    /// The work of tasks outside of the application; null where the application is unknown.
    pub(crate) outside: Option<OutsideWork>,
    /// The measure in which the run lies beyond the others of its group; null if it does not.
    pub(crate) contaminated: Option<Contaminated>,
    /// Whether the run is left out of the comparison for that reason (`--exclude-contaminated`).
    pub(crate) is_left_out: bool,
}

/// Judges the runs of each group, and leaves out those that are contaminated, if that is asked for. Adds a note on each.
pub(crate) fn judge(
    groups: &mut [(String, Vec<Measured>)],
    leave_out: bool,
    notes: &mut Vec<String>,
) -> Vec<OutsideOfRun> {
    let mut all = Vec::new();
    for (group, runs) in groups {
        let work: Vec<Option<&OutsideWork>> = runs.iter().map(|run| run.outside.as_ref()).collect();
        let mut found = contaminated(&work);
        let first = all.len();
        for (at, run) in runs.iter().enumerate() {
            let contaminated = found.iter().position(|of| of.run == at).map(|place| found.remove(place));
            if let Some(of) = &contaminated {
                let left_out = if leave_out { "is left out (--exclude-contaminated): it " } else { "" };
                notes.push(format!("{group}: {} {left_out}{}", run.name, of.in_words()));
            }
            let is_left_out = leave_out && contaminated.is_some();
            let (trace, outside) = (run.name.clone(), run.outside.clone());
            all.push(OutsideOfRun { group: group.clone(), trace, outside, contaminated, is_left_out });
        }
        let mut of_group = all[first..].iter();
        runs.retain(|_| of_group.next().is_none_or(|of| !of.is_left_out));
    }
    all
}

/// The work outside of the application as a table; empty where no application is known.
pub(crate) fn text(runs: &[OutsideOfRun]) -> String {
    let mut out = String::new();
    if runs.iter().all(|run| run.outside.is_none()) {
        return out;
    }
    // Writing to a string cannot fail.
    let heads = ["CPU time", "waited", "preempted", "kernel"].map(|head| format!(" {head:>9}")).concat();
    let _ = writeln!(out, "{:<20}{heads}  greatest", "outside work");
    for run in runs.iter().take(MOST_LISTED) {
        let name = end_of(&run.trace, 18);
        let mark = if run.contaminated.is_some() { "!" } else { " " };
        let Some(work) = &run.outside else {
            let _ = writeln!(out, "{mark} {name:<18} {:>9}", "unknown");
            continue;
        };
        let [cpu, waited, kernel] = [work.run_ns, work.wait_ns, work.kernel_run_ns].map(|ns| short(Some(ns)));
        let greatest = work.commands.first().map_or("-", |command| command.command.as_str());
        let _ = writeln!(
            out,
            "{mark} {name:<18} {cpu:>9} {waited:>9} {:>9} {kernel:>9}  {}",
            work.preemptions,
            end_of(greatest, 13)
        );
    }
    if runs.len() > MOST_LISTED {
        let _ = writeln!(out, "({} more)", sched::nouns::counted(runs.len() - MOST_LISTED, "run"));
    }
    if runs.iter().any(|run| run.contaminated.is_some()) {
        out += "(!: contaminated, as a note above explains)\n";
    }
    out
}

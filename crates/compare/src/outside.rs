//! The work of tasks outside of the application in each run, and the runs that are contaminated by it.

use crate::measures::Measured;
use contamination::{Contaminated, FEWEST_RUNS, OutsideWork, contaminated};
use sched::Dur;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use timeline::table::{TextColumn, TextTable};
use timeline::text::{end_of, paragraph, short};

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

/// The work outside of the application: a table of all runs if one of them is contaminated, otherwise a sentence; empty where no
/// application is known.
pub(crate) fn text(runs: &[OutsideOfRun]) -> String {
    let mut out = String::new();
    let known: Vec<&OutsideWork> = runs.iter().filter_map(|run| run.outside.as_ref()).collect();
    if known.is_empty() {
        return out;
    }
    let is_contaminated = runs.iter().any(|run| run.contaminated.is_some());
    if is_contaminated {
        out += &table(runs);
    }
    let head = if is_contaminated {
        "!: contaminated, as a note above explains."
    } else if is_judged(runs) {
        "Outside work: no run is contaminated."
    } else {
        "Outside work (judged from four runs of a group on):"
    };
    paragraph(&mut out, 0, 2, &format!("{head} {}", in_words(&known)));
    out
}

/// Whether some group has as many runs with a known application as a judgement takes.
fn is_judged(runs: &[OutsideOfRun]) -> bool {
    let mut known: BTreeMap<&str, usize> = BTreeMap::new();
    runs.iter().filter(|run| run.outside.is_some()).for_each(|run| *known.entry(&run.group).or_default() += 1);
    known.values().any(|runs| *runs >= FEWEST_RUNS)
}

/// The least and the greatest CPU time of tasks outside of the application and of the recorder in a run, with their greatest shares.
fn in_words(known: &[&OutsideWork]) -> String {
    let most_of = |of: fn(&OutsideWork) -> Dur| {
        let (least, most) = (known.iter().map(|work| of(work)).min(), known.iter().map(|work| of(work)).max());
        let (least, most) = (short(least), short(most));
        let range = if least == most { most } else { format!("{least} to {most}") };
        let share = |work: &&OutsideWork| {
            let application = work.application_run_ns.0;
            (application > 0).then(|| 100.0 * of(work).0 as f64 / application as f64)
        };
        (range, format!("{:.1} %", known.iter().filter_map(share).fold(0.0, f64::max)))
    };
    let ((tasks, share), (recorder, of_it)) = (most_of(|work| work.run_ns), most_of(|work| work.recorder_run_ns));
    let none_ran = known.iter().all(|work| work.run_ns == Dur(0));
    let outside = if none_ran {
        "No task outside of the application ran".to_owned()
    } else {
        format!("Tasks outside of the application ran {tasks} in a run, at most {share} of its CPU time")
    };
    format!("{outside}; the recorder ran {recorder}, at most {of_it}.")
}

/// The work outside of the application, run by run.
fn table(runs: &[OutsideOfRun]) -> String {
    let numbers = [8, 6, 9, 6, 8].map(TextColumn::Numbers);
    let mut table = TextTable::new([TextColumn::Words(15)].into_iter().chain(numbers).chain([TextColumn::Words(8)]));
    table.row(["outside work", "CPU time", "waited", "preempted", "kernel", "recorder", "greatest"]);
    for run in runs.iter().take(MOST_LISTED) {
        let name = end_of(&run.trace, 17);
        let mark = if run.contaminated.is_some() { "!" } else { " " };
        let Some(work) = &run.outside else {
            table.row([format!("{mark} {name}"), "unknown".to_owned()]);
            continue;
        };
        let times = [work.run_ns, work.wait_ns, work.kernel_run_ns, work.recorder_run_ns];
        let [cpu, waited, kernel, recorder] = times.map(|ns| short(Some(ns)));
        let greatest = work.commands.first().map_or("-", |command| command.command.as_str());
        let preempted = work.preemptions.to_string();
        table.row([format!("{mark} {name}"), cpu, waited, preempted, kernel, recorder, end_of(greatest, 11)]);
    }
    let mut out = String::new();
    table.write(&mut out);
    if runs.len() > MOST_LISTED {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "({} more)", sched::nouns::counted(runs.len() - MOST_LISTED, "run"));
    }
    out
}

//! The report for people.

use crate::report::{GroupReport, ResidencyReport};
use sched::Dur;
use sched::nouns::counted;
use std::fmt::Write;
use timeline::Drawable;
use timeline::text::{paragraph, short};

/// The letters of a name in a table.
const NAME: usize = 17;

/// The number of groups that are listed below a cache.
const OCCUPANTS: usize = 3;

/// The number of tasks that are listed away from their home.
const AWAY: usize = 3;

/// Returns the text of a report on a trace with at most `rows` groups.
pub fn text(report: &ResidencyReport, trace: &Drawable, rows: usize) -> String {
    let mut out = String::new();
    if let Some(why) = &report.selection_unknown {
        paragraph(&mut out, 0, 2, &format!("{trace}: no figures: {why}"));
        return out;
    }
    let moves: u64 = report.groups.iter().map(|group| group.moves).sum();
    let residency = report.residency_percent.map_or_else(String::new, |percent| {
        let movable = match report.movable_residency_percent {
            Some(movable) => {
                format!(
                    " ({movable:.1} % for the {} that could have run elsewhere)",
                    counted(report.movable_groups, "group")
                )
            }
            None => " (none could have run elsewhere)".to_owned(),
        };
        format!(", {percent:.1} % of it under the last-level caches where they ran longest{movable}")
    });
    let by = report.by.plural();
    let headline = format!(
        "{trace}: {by} ran for {:.6} s{residency}; {} between these caches, {:.1} a second",
        report.run_ns.seconds(),
        counted(moves, "move"),
        moves as f64 / report.window_ns.seconds().max(1e-9)
    );
    paragraph(&mut out, 0, 2, &headline);
    if let Some(crowded) = &report.crowded {
        let text = format!(
            "(tasks shared a core while a whole core idled {:.2} % of the time, {} of core time in all)",
            crowded.percent,
            Dur(crowded.core_time_lost_ns).human()
        );
        paragraph(&mut out, 2, 3, &text);
    }
    caches(&mut out, report);
    groups(&mut out, report, rows);
    if !report.moves.is_empty() {
        let causes: Vec<String> = report.moves.iter().map(|of| format!("{} {}", of.moves, of.cause.name())).collect();
        out.push('\n');
        paragraph(&mut out, 0, 2, &format!("moves between caches by cause: {}", causes.join(", ")));
    }
    away(&mut out, report);
    if let Some(count) = report.tasks_without_process.filter(|count| *count > 0) {
        out.push('\n');
        let note = format!(
            "The process of {} is unknown, and each counts as one of its own: record task:task_newtask, or a machine file.",
            counted(count, "task")
        );
        paragraph(&mut out, 0, 2, &note);
    }
    out
}

/// The last-level caches.
fn caches(out: &mut String, report: &ResidencyReport) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "\n{:<7}  {:<18}  {:>8}  {:>8}  {:>13}", "LLC", "CPUs", "ran", "waited", "tasks per CPU");
    for of in &report.llcs {
        let (ran, waited) = (short(Some(of.run_ns)), short(Some(of.wait_ns)));
        let _ =
            writeln!(out, "{:<7}  {:<18}  {ran:>8}  {waited:>8}  {:>13.3}", of.llc, cut(&of.cpus, 18), of.occupancy);
        for group in of.groups.iter().take(OCCUPANTS) {
            let (ran, waited) = (short(Some(group.run_ns)), short(Some(group.wait_ns)));
            let _ = writeln!(out, "  {:<25}  {ran:>8}  {waited:>8}  {:>13.3}", cut(&group.name, 25), group.occupancy);
        }
        if of.groups.len() > OCCUPANTS {
            let _ = writeln!(out, "  ({} more)", counted(of.groups.len() - OCCUPANTS, "group"));
        }
    }
}

/// The groups that ran longest.
fn groups(out: &mut String, report: &ResidencyReport, rows: usize) {
    let smt = if report.has_siblings { "  beside placed" } else { "" };
    let _ = writeln!(
        out,
        "\n{:<NAME$}  {:>5}  {:>3}  {:>5}  {:>5}  {:>5}  {:>4}  {:>5}{smt}",
        "group", "ran", "home", "there", "moves", "per s", "10ms", "100ms"
    );
    for group in report.groups.iter().take(rows) {
        let _ = writeln!(out, "{}", row(group, report.has_siblings));
    }
    if report.groups.len() > rows {
        let _ = writeln!(out, "({} more)", counted(report.groups.len() - rows, "group"));
    }
    let legend = "home: the LLC where it ran longest; there: the share of its run time; 10ms, 100ms: moves back to the LLC it had left so \
                  recently";
    paragraph(out, 0, 2, legend);
    if report.has_siblings {
        let legend = "beside: the share of the run time beside a busy SMT sibling; placed: placements on an idle CPU beside a busy sibling \
                      while a whole core idled";
        paragraph(out, 0, 2, legend);
    }
}

fn row(group: &GroupReport, has_siblings: bool) -> String {
    let share = |percent: Option<f64>| percent.map_or_else(|| "-".to_owned(), |percent| format!("{percent:.1}%"));
    let home = group.home_llc.map_or_else(|| "-".to_owned(), |llc| llc.to_string());
    let mut out = format!(
        "{:<NAME$}  {:>5}  {home:>3}  {:>5}  {:>5}  {:>5.1}  {:>4}  {:>5}",
        cut(&group.name, NAME),
        short(Some(group.run_ns)),
        share(group.residency_percent),
        group.moves,
        group.moves_per_second,
        group.returns_10ms,
        group.returns_100ms
    );
    if has_siblings {
        let placed = group.placed_beside;
        let placed = placed.llc + placed.node + placed.beyond;
        let _ = write!(out, "  {:>6}  {placed:>5}", share(group.beside_busy_percent));
    }
    out
}

/// The tasks that left their home and did not return.
fn away(out: &mut String, report: &ResidencyReport) {
    if report.away.is_empty() {
        return;
    }
    let list = report.away.iter().take(AWAY).map(|away| {
        let at = Dur(away.since_in_trace_ns).seconds();
        format!("task {} of {} under LLC {} since {at:.6} s", away.pid, away.group, away.llc)
    });
    let list: Vec<String> = list.collect();
    let all = counted(report.away_count, "task");
    let whose = if report.away_count == 1 { "its" } else { "their" };
    out.push('\n');
    paragraph(out, 0, 2, &format!("{all} ran last away from the home of {whose} group: {}", list.join("; ")));
}

/// Cuts a name to `most` letters, the end of a longer one.
fn cut(name: &str, most: usize) -> String {
    let length = name.chars().count();
    match length > most {
        true => name.chars().take(most - 1).chain(['…']).collect(),
        false => name.to_owned(),
    }
}

//! The report as a text for people.

use crate::{FutexEdge, WakeComponent, WakeEdge, WakePair, WakeParty, WakersReport};
use membership::GroupLabel;
use sched::Dur;
use sched::nouns::counted;
use std::fmt::Write;
use timeline::Drawable;
use timeline::text::{end_of, paragraph, short};

/// The width of a name in the tables.
const NAME: usize = 17;

/// Returns the report for people: `trace` is the file as the command line has it, `rows` the maximum number of rows of a table.
pub fn text(report: &WakersReport, trace: &Drawable, rows: usize) -> String {
    let mut out = String::new();
    if let Some(why) = &report.selection_unknown {
        paragraph(&mut out, 0, 2, &format!("{trace}: the wakers are unknown: {why}"));
        return out;
    }
    headline(&mut out, report, trace);
    edges(&mut out, "woken by tasks", &report.edges, rows);
    pairs(&mut out, &report.pairs, rows);
    components(&mut out, &report.components, rows);
    futexes(&mut out, report.futexes.as_deref(), rows);
    edges(&mut out, "woken by interrupts", &report.interrupts, rows);
    if !report.interrupts.is_empty() {
        paragraph(
            &mut out,
            2,
            2,
            "(the first name is that of the interrupted task, which may have nothing to do with the wakeup: no event shows the waker)",
        );
    }
    out
}

fn headline(out: &mut String, report: &WakersReport, trace: &Drawable) {
    let number = |number: Option<u64>| number.unwrap_or(0);
    let all = counted(number(report.wakeups), "wakeup");
    let [unknown, rest, open] = [report.by_unknown, report.in_no_edge, report.open].map(number);
    let mut headline = match report.by_tasks.zip(report.by_interrupts) {
        Some((tasks, interrupts)) => format!("{trace}: {all}, {tasks} of them by tasks and {interrupts} by interrupts"),
        None => format!("{trace}: {all}; who made them is unknown: sched:sched_waking was not recorded"),
    };
    if unknown > 0 && report.by_tasks.is_some() {
        // Writing to a string cannot fail.
        let _ = write!(headline, "; no event shows the waker of {unknown}");
    }
    if rest > 0 {
        let _ = write!(headline, "; {rest} are of pairs beyond the limit, and in no table");
    }
    paragraph(out, 0, 2, &headline);
    if open > 0 {
        paragraph(
            out,
            2,
            3,
            &format!("(not counted: {} whose task did not run before the end)", counted(open, "wakeup")),
        );
    }
    paragraph(out, 2, 3, "(slept: the mean time before the wakeup; waited: the times after it, until the task ran)");
}

/// A table of edges: numbers, times, and the caches of the two CPUs.
fn edges(out: &mut String, title: &str, edges: &[WakeEdge], rows: usize) {
    if edges.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{title:<36}  {:>5}  {:>6}  {:>14}  {:>6}", "number", "slept", "waited", "cache");
    let _ = writeln!(out, "{:<36}  {:>5}  {:>6}  {:>6}  {:>6}  {:>6}", "", "", "mean", "mean", "99 %", "other");
    for edge in edges.iter().take(rows) {
        let (waker, woken) = (cut(&edge.waker), cut(&edge.woken));
        let (slept, waited) = (edge.slept.mean_ns, &edge.waited);
        let [slept, mean, most]: [String; 3] = [slept, waited.mean_ns, waited.p99_ns].map(short);
        let cache = other_cache(edge);
        let _ = writeln!(
            out,
            "{waker:<NAME$}→ {woken:<NAME$}  {:>5}  {slept:>6}  {mean:>6}  {most:>6}  {cache:>6}",
            edge.wakeups
        );
    }
    more(out, edges.len(), rows, "pair");
}

/// The share of the wakeups of an edge that lead to another cache, in percent; `?` where the caches are not known.
fn other_cache(edge: &WakeEdge) -> String {
    let other = edge.other_llc.unwrap_or(0);
    let share = other * 100 / edge.wakeups.max(1);
    match edge.unknown_llc {
        0 => format!("{share} %"),
        _ if other > 0 => format!("≥ {share} %"),
        _ => "?".to_owned(),
    }
}

/// The table of pairs that wake each other.
fn pairs(out: &mut String, pairs: &[WakePair], rows: usize) {
    if pairs.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "\n{:<36}  {:>5}  {:>6}  {:>6}  {:>6}  {:>6}",
        "wake each other", "→", "of all", "←", "of all", "strong"
    );
    for pair in pairs.iter().take(rows) {
        let (first, second) = (cut(&pair.first), cut(&pair.second));
        let [forth, back] = [pair.part_of_second, pair.part_of_first].map(|part| format!("{:.0} %", part * 100.0));
        let strong = if pair.is_strong { "yes" } else { "no" };
        let _ = writeln!(
            out,
            "{first:<NAME$}⇄ {second:<NAME$}  {:>5}  {forth:>6}  {:>6}  {back:>6}  {strong:>6}",
            pair.forth, pair.back
        );
    }
    more(out, pairs.len(), rows, "pair");
}

/// The maximum number of names of a component in the table.
const MEMBERS: usize = 8;

/// The table of the groups of three and more that wake each other in a ring.
fn components(out: &mut String, components: &[WakeComponent], rows: usize) {
    if components.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{:<36}  {:>5}  {:>6}  {:>6}", "wake each other in a ring", "number", "of all", "names");
    for component in components.iter().take(rows) {
        let names: Vec<String> = component.members.iter().take(MEMBERS).map(WakeParty::name).collect();
        let more = component.members.len().saturating_sub(MEMBERS);
        let more = if more > 0 { format!(", {more} more") } else { String::new() };
        let share = format!("{:.0} %", component.part * 100.0);
        let _ = writeln!(out, "{:<36}  {:>5}  {share:>6}  {:>6}", "", component.wakeups, component.members.len());
        paragraph(out, 2, 4, &format!("{}{more}", names.join(", ")));
    }
    more(out, components.len(), rows, "ring");
}

/// The table of the wakeups by futex.
fn futexes(out: &mut String, futexes: Option<&[FutexEdge]>, rows: usize) {
    let Some(futexes) = futexes else { return };
    if futexes.is_empty() {
        paragraph(out, 2, 3, "(no wakeup was made in a call on a futex)");
        return;
    }
    let _ = writeln!(out, "\n{:<15}  {:<34}  {:>5}  {:>6}  {:>6}", "futex", "", "number", "slept", "waited");
    for edge in futexes.iter().take(rows) {
        let (waker, woken) = (cut(&edge.waker), cut(&edge.woken));
        let [slept, waited] = [edge.slept.mean_ns, edge.waited.mean_ns].map(short);
        let _ = writeln!(
            out,
            "{:<15}  {waker:<NAME$}→ {woken:<15}  {:>5}  {slept:>6}  {waited:>6}",
            edge.address, edge.wakeups
        );
    }
    more(out, futexes.len(), rows, "row");
}

fn more(out: &mut String, all: usize, rows: usize, noun: &str) {
    if let Some(more) = all.checked_sub(rows).filter(|more| *more > 0) {
        let _ = writeln!(out, "  {} more: --rows {all} prints all", counted(more as u64, noun));
    }
}

/// The name of a node, which leaves a blank behind it in its column.
fn cut(party: &WakeParty) -> String {
    shown_party(party, NAME - 1)
}

/// The name of a node in at most `most` characters. A PID stays whole; of the path of a cgroup its end stays.
pub(crate) fn shown_party(party: &WakeParty, most: usize) -> String {
    let name = party.name();
    if name.chars().count() <= most {
        return name;
    }
    let tail = match (party.pid, &party.group) {
        (Some(pid), _) => format!(" {pid}"),
        (None, Some(GroupLabel { process: Some(leader), .. })) => format!(" ({leader})"),
        (None, Some(_)) if name.starts_with('/') => return end_of(&name, most),
        _ => String::new(),
    };
    let room = (most - 1).saturating_sub(tail.chars().count());
    let head: String = name.chars().take(room).collect();
    format!("{head}…{tail}")
}

/// A number of an edge, as the figure writes it.
pub(crate) fn weight_words(weight: u64, is_time: bool) -> String {
    if is_time { short(Some(Dur(weight))) } else { weight.to_string() }
}

//! The report for people.

use crate::report::{NeighboursReport, PartyReport};
use crate::{By, PartyKind, PressureReport};
use sched::Dur;
use sched::nouns::counted;
use std::fmt::Write;
use timeline::Drawable;
use timeline::table::{TextColumn, TextTable};
use timeline::text::{paragraph, queued_kinds, short};

/// The letters of a name in a table.
const NAME: usize = 22;

/// Returns the text of a report on a trace with at most `rows` pairs and groups.
pub fn text(report: &NeighboursReport, trace: &Drawable, rows: usize) -> String {
    let mut out = String::new();
    if let Some(why) = &report.selection_unknown {
        paragraph(&mut out, 0, 2, &format!("{trace}: no figures: {why}"));
        return out;
    }
    paragraph(&mut out, 0, 2, &format!("{trace}: {}", headline(report)));
    queued_kinds(&mut out, report.queued);
    if report.wait_ns > Some(Dur(0)) || report.preemptions > Some(0) {
        pairs(&mut out, report, rows);
        groups(&mut out, report, rows);
    }
    if let Some(of) = &report.pressure {
        pressure(&mut out, of, rows);
    }
    for note in notes(report) {
        out.push('\n');
        paragraph(&mut out, 0, 2, &note);
    }
    out
}

/// The time of one kind that a group waited.
type WaitOf = fn(&PartyReport) -> Dur;

/// The sums of all victims, in a sentence.
fn headline(report: &NeighboursReport) -> String {
    let sum = |of: WaitOf| report.groups.iter().map(|group| of(group).0).fold(0, u64::saturating_add);
    let wait = report.wait_ns.unwrap_or_default();
    let total = wait.0.max(1) as f64;
    let parts: [(&str, WaitOf); 7] = [
        ("behind tasks of their own group", |group| group.behind_own_ns),
        ("behind those of other groups", |group| group.behind_others_ns),
        ("behind kernel threads", |group| group.behind_kernel_ns),
        ("behind interrupts", |group| group.behind_interrupts_ns),
        ("on idle CPUs that were about to switch", |group| group.behind_idle_ns),
        ("held back on an idle CPU", |group| group.held_back_ns),
        ("behind unknown tasks", |group| group.behind_unknown_ns),
    ];
    let parts: Vec<String> = parts
        .iter()
        .map(|(name, of)| (name, sum(*of)))
        .filter(|(_, ns)| *ns > 0)
        .map(|(name, ns)| format!("{:.1} % {name}", 100.0 * ns as f64 / total))
        .collect();
    let throttled = match report.throttled_ns.unwrap_or_default() {
        _ if report.throttled_ns.is_none() => {
            "; cgroups were throttled, by their counters, and no record shows which tasks: their time is waiting here"
                .to_owned()
        }
        Dur(0) => String::new(),
        ns => format!("; throttled, which is no waiting, for {:.6} task·s", ns.seconds()),
    };
    let by = report.by.plural();
    let waited = format!("tasks waited for {:.6} task·s, by {by}", wait.seconds());
    match parts.is_empty() {
        true => format!("{waited}{throttled}"),
        false => format!("{waited}: {}{throttled}", parts.join(", ")),
    }
}

/// The greatest pairs.
fn pairs(out: &mut String, report: &NeighboursReport, rows: usize) {
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "\n{:<NAME$}  {:<NAME$}  {:>7}  {:>6}  {:>10}",
        "victim", "culprit", "waited", "share", "preempted"
    );
    for pair in report.pairs.iter().take(rows) {
        let _ = writeln!(
            out,
            "{:<NAME$}  {:<NAME$}  {:>7}  {:>5.1}%  {:>10}",
            cut(&pair.victim, NAME),
            cut(&pair.culprit, NAME),
            short(Some(pair.wait_ns)),
            pair.share_percent,
            pair.preemptions
        );
    }
    rest(out, report.pairs.len(), rows, "pair");
}

/// The groups that waited longest, and the parts of their waiting.
fn groups(out: &mut String, report: &NeighboursReport, rows: usize) {
    let heads = ["waited", "own", "others", "kernel", "irq", "idle", "caused"];
    let has_throttled = report.throttled_ns > Some(Dur(0));
    let heads: String = heads.iter().map(|head| format!("  {head:>6}")).collect();
    let _ = writeln!(out, "\n{:<16}{heads}{}", "group", if has_throttled { "  throttled" } else { "" });
    // A group that neither waited nor kept others waiting has an empty row.
    let is_shown = |group: &&PartyReport| {
        [group.wait_ns, group.caused_ns, group.throttled_ns.unwrap_or_default()].iter().any(|ns| ns.0 > 0)
    };
    let shown: Vec<&PartyReport> = report.groups.iter().filter(is_shown).collect();
    for group in shown.iter().take(rows) {
        let cells = [
            group.wait_ns,
            group.behind_own_ns,
            group.behind_others_ns,
            group.behind_kernel_ns,
            group.behind_interrupts_ns,
            Dur(group.behind_idle_ns.0.saturating_add(group.held_back_ns.0)),
            group.caused_ns,
        ];
        let cell = |ns: Dur| short((ns > Dur(0)).then_some(ns));
        let throttled = group.throttled_ns.filter(|_| has_throttled);
        let cells: String = cells.into_iter().chain(throttled).map(|ns| format!("  {:>6}", cell(ns))).collect();
        let _ = writeln!(out, "{:<16}{cells}", cut(&group.name, 16));
    }
    rest(out, shown.len(), rows, "group");
}

/// The pressure of CPUs, from the trace and by the kernel.
fn pressure(out: &mut String, report: &PressureReport, rows: usize) {
    let columns = [TextColumn::Words(16)].into_iter().chain([6, 6, 6, 6, 8, 6].map(TextColumn::Numbers));
    let mut table = TextTable::new(columns);
    table.row(["pressure of CPUs", "some", "kernel", "full", "kernel", "CPU time", "kernel"]);
    for group in report.groups.iter().take(rows.max(1)) {
        let cells = [
            Some(group.some_ns),
            group.kernel_some_ns,
            group.full_ns,
            group.kernel_full_ns,
            Some(group.run_ns),
            group.kernel_run_ns,
        ];
        let name = group.cgroup.as_deref().unwrap_or("machine");
        table.row([cut(name, 20)].into_iter().chain(cells.map(short)));
    }
    out.push('\n');
    table.write(out);
    rest(out, report.groups.len(), rows.max(1), "group");
    out.push('\n');
    paragraph(out, 0, 2, &witness(report));
}

/// A sentence on the figures of the kernel.
fn witness(report: &PressureReport) -> String {
    if let Some(why) = &report.kernel_unknown {
        return format!("The kernel's own figures are left out: {why}.");
    }
    let compared: Vec<bool> = report.groups.iter().filter_map(|group| group.agrees).collect();
    let agreed = compared.iter().filter(|agrees| **agrees).count();
    let wider = match report.kernel_wider_ns {
        Some(ns) => format!(", and within the {} by which they span more than the trace", short(Some(ns))),
        None => String::new(),
    };
    format!(
        "The kernel's figures are those of the trace within 3 % or 2 ms{wider}, for {agreed} of {}.",
        counted(compared.len(), "group")
    )
}

/// The number of rows that are not printed.
fn rest(out: &mut String, all: usize, rows: usize, noun: &str) {
    if all > rows {
        let _ = writeln!(out, "({} more)", counted(all - rows, noun));
    }
}

/// Sentences on what the numbers do not show.
fn notes(report: &NeighboursReport) -> Vec<String> {
    let mut notes = Vec::new();
    let unknown = report.groups.iter().filter(|group| group.kind == PartyKind::UnknownGroup);
    if report.by == By::Cgroup && unknown.map(|group| group.tasks).sum::<u64>() > 0 {
        notes.push(
            "The cgroup of some tasks is unknown: neither the machine file nor a record shows it. They are one row."
                .to_owned(),
        );
    }
    if let Some(count) = report.tasks_without_process.filter(|count| *count > 0) {
        notes.push(format!(
            "The process of {} is unknown, and each counts as one of its own: record task:task_newtask, or a machine file.",
            counted(count, "task")
        ));
    }
    notes
}

/// Cuts a name to `most` letters, the end of a longer one.
fn cut(name: &str, most: usize) -> String {
    let length = name.chars().count();
    match length > most {
        true => std::iter::once('…').chain(name.chars().skip(length - most + 1)).collect(),
        false => name.to_owned(),
    }
}

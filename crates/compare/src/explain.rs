//! The explanation under a table: a finding in one sentence, and the origins and causes that changed most.

use crate::measures::Measured;
use crate::table::{p, short};
use crate::{Finding, Row, Spread, p_value};
use sched::balancer::NewIdleOutcome;
use serde::Serialize;
use std::collections::BTreeMap;
use timeline::table::{TextColumn, TextTable};
use why::{Rows, WhyReport};

/// The maximum number of lines of an explanation.
const LINES: usize = 12;

/// The maximum numbers of rows on waiting, idling, migrations, new-idle balance, and the critical path.
const MOST: [usize; 5] = [2, 1, 2, 1, 1];

/// The columns of the name of a row.
const NAME: usize = 41;

/// The subject of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Subject {
    /// The waiting in violation of one origin, in seconds of tasks.
    Waiting,
    /// The idling in violation of one origin, in seconds of CPUs.
    Idling,
    /// The number of migrations of one cause.
    Migrations,
    /// The number of switches to idle beside a waiting task, with one outcome of new-idle balance where probes show the outcomes.
    NewIdle,
    /// A part of the critical path of the traced command, in seconds.
    Path,
}

/// A change of an origin of waiting or idling, or of a cause of migrations.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ExplainedChange {
    /// The subject of the numbers.
    subject: Subject,
    /// The origin or the cause in words.
    name: String,
    /// The median of the runs of the first group.
    base: f64,
    /// The median of the runs of the second group.
    new: f64,
    /// The median share of a run of the first group, in percent: in all waiting or idling in violation, in the switches to idle, or in
    /// the critical path; absent for migrations.
    #[serde(skip_serializing_if = "Option::is_none")]
    base_percent: Option<f64>,
    /// The same share in the second group, in percent; absent for migrations.
    #[serde(skip_serializing_if = "Option::is_none")]
    new_percent: Option<f64>,
    /// The p of the permutation test, between 0 and 1; null if a group has fewer than three runs.
    p: Option<f64>,
}

/// The explanation of the difference between two groups.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Explanation {
    /// The main difference in one sentence, with its certainty.
    pub(crate) finding: String,
    /// The origins of waiting and idling, the causes of migrations, the outcomes of new-idle balance and the parts of the critical path
    /// that changed most: the largest change of each subject first.
    changes: Vec<ExplainedChange>,
}

/// Explains the difference between two groups, each with its name, by their runs and the rows of their comparison.
pub(crate) fn explain(base: (&str, &[Measured]), new: (&str, &[Measured]), rows: &[Row], alpha: f64) -> Explanation {
    let waiting = origins(Subject::Waiting, base.1, new.1, |report| report.waiting.as_ref());
    let idling = origins(Subject::Idling, base.1, new.1, |report| report.idling.as_ref());
    let finding = finding((base.0, new.0), rows, waiting.first(), alpha);
    let changes =
        [waiting, idling, migrations(rows), new_idle(base.1, new.1), path(base.1, new.1)].into_iter().zip(MOST);
    let changes = changes.flat_map(|(found, most)| found.into_iter().take(most)).collect();
    Explanation { finding, changes }
}

/// The times by origin of a run in nanoseconds, and their sum.
type Origins = (BTreeMap<String, u64>, u64);

/// The changes of the time by origin, the largest first.
fn origins(
    subject: Subject,
    base: &[Measured],
    new: &[Measured],
    of: fn(&WhyReport) -> Option<&Rows>,
) -> Vec<ExplainedChange> {
    let runs = |runs: &[Measured]| -> Vec<Origins> {
        let known = runs.iter().filter(|run| run.no_violation.is_none());
        known.filter_map(|run| of(&run.reasons)).map(by_origin).collect()
    };
    let (base, new) = (runs(base), runs(new));
    if base.is_empty() || new.is_empty() {
        return Vec::new();
    }
    let mut names: Vec<&String> = base.iter().chain(&new).flat_map(|(by, _)| by.keys()).collect();
    names.sort();
    names.dedup();
    let change = |name: &String| {
        let seconds = |runs: &[Origins]| -> Vec<f64> { runs.iter().map(|run| ns_of(run, name) / 1e9).collect() };
        let percent = |runs: &[Origins]| {
            let shares: Vec<f64> = runs.iter().map(|run| 100.0 * ns_of(run, name) / (run.1 as f64).max(1.0)).collect();
            Some(Spread::of(&shares).median)
        };
        let (b, n) = (seconds(&base), seconds(&new));
        ExplainedChange {
            subject,
            name: name.clone(),
            base: Spread::of(&b).median,
            new: Spread::of(&n).median,
            base_percent: percent(&base),
            new_percent: percent(&new),
            p: (b.len() >= crate::FEWEST && n.len() >= crate::FEWEST).then(|| p_value(&b, &n)),
        }
    };
    by_size(names.into_iter().map(change).collect())
}

/// The time of a run by origin, whichever CPU idled nearest.
fn by_origin(rows: &Rows) -> Origins {
    let mut by: BTreeMap<String, u64> = BTreeMap::new();
    for row in &rows.rows {
        let sum = by.entry(row.origin.clone()).or_default();
        *sum = sum.saturating_add(row.total_ns.0);
    }
    (by, rows.total_ns.0)
}

fn ns_of((by, _): &Origins, name: &str) -> f64 {
    by.get(name).copied().unwrap_or(0) as f64
}

/// The changes of the number of migrations by cause, the largest first.
fn migrations(rows: &[Row]) -> Vec<ExplainedChange> {
    let of_cause = rows.iter().filter(|row| row.metric.key.starts_with("migrations-"));
    let change = |row: &Row| ExplainedChange {
        subject: Subject::Migrations,
        name: row.metric.row.trim().to_owned(),
        base: row.base.median,
        new: row.new.median,
        base_percent: None,
        new_percent: None,
        p: row.p,
    };
    by_size(of_cause.map(change).collect())
}

/// A number of a run, and its share in percent.
type Part = (f64, f64);

/// The changes of named parts of the runs, the largest first. Runs without parts do not count.
fn parts(
    subject: Subject,
    base: &[Option<BTreeMap<String, Part>>],
    new: &[Option<BTreeMap<String, Part>>],
) -> Vec<ExplainedChange> {
    let (base, new): (Vec<_>, Vec<_>) = (base.iter().flatten().collect(), new.iter().flatten().collect());
    if base.is_empty() || new.is_empty() {
        return Vec::new();
    }
    let mut names: Vec<&String> = base.iter().chain(&new).flat_map(|parts| parts.keys()).collect();
    names.sort();
    names.dedup();
    let change = |name: &String| {
        let of = |runs: &[&BTreeMap<String, Part>]| -> (Vec<f64>, Vec<f64>) {
            runs.iter().map(|parts| parts.get(name).copied().unwrap_or_default()).unzip()
        };
        let ((b, base_shares), (n, new_shares)) = (of(&base), of(&new));
        ExplainedChange {
            subject,
            name: name.clone(),
            base: Spread::of(&b).median,
            new: Spread::of(&n).median,
            base_percent: Some(Spread::of(&base_shares).median),
            new_percent: Some(Spread::of(&new_shares).median),
            p: (b.len() >= crate::FEWEST && n.len() >= crate::FEWEST).then(|| p_value(&b, &n)),
        }
    };
    by_size(names.into_iter().map(change).collect())
}

/// The changes of the number of switches to idle beside a waiting task: by the outcome of new-idle balance where each run has probes,
/// otherwise of all.
fn new_idle(base: &[Measured], new: &[Measured]) -> Vec<ExplainedChange> {
    let missed = |run: &Measured| run.reasons.missed.clone().filter(|_| run.no_violation.is_none());
    let has_outcomes = |run: &Measured| missed(run).is_some_and(|missed| missed.has_outcomes());
    let by_outcome = base.iter().chain(new).all(has_outcomes);
    let of = |run: &Measured| {
        let missed = missed(run)?;
        let share = |number: u64| (number as f64, 100.0 * number as f64 / (missed.idle_entries as f64).max(1.0));
        if !by_outcome {
            return Some(BTreeMap::from([("missed steals (of idle entries)".to_owned(), share(missed.number))]));
        }
        let mut parts: BTreeMap<String, u64> = BTreeMap::new();
        for row in missed.by_distance.iter().flat_map(|row| row.outcomes.iter().flatten()) {
            if row.outcome == NewIdleOutcome::Unknown {
                continue;
            }
            *parts.entry(row.outcome.words().to_owned()).or_default() += row.number;
        }
        Some(parts.into_iter().map(|(words, number)| (words, share(number))).collect())
    };
    let of = |runs: &[Measured]| -> Vec<_> { runs.iter().map(of).collect() };
    parts(Subject::NewIdle, &of(base), &of(new))
}

/// The changes of the queued time on the critical path, beside idle CPUs and otherwise.
fn path(base: &[Measured], new: &[Measured]) -> Vec<ExplainedChange> {
    let of = |run: &Measured| {
        let queued = run.queued?;
        let part = |ns: u64| (ns as f64 / 1e9, 100.0 * ns as f64 / (queued.length_ns as f64).max(1.0));
        let named = [
            ("queued beside an idle CPU", queued.kinds.beside_idle_ns),
            ("held back on an idle CPU", queued.kinds.held_back_ns),
            ("queued beside a shorter queue", queued.kinds.beside_shorter_ns),
            ("queued while all queues are alike", queued.kinds.alike_ns),
        ];
        Some(named.into_iter().map(|(name, ns)| (name.to_owned(), part(ns))).collect())
    };
    let of = |runs: &[Measured]| -> Vec<_> { runs.iter().map(of).collect() };
    parts(Subject::Path, &of(base), &of(new))
}

/// The changes that are not zero, the largest first.
fn by_size(mut changes: Vec<ExplainedChange>) -> Vec<ExplainedChange> {
    let size = |change: &ExplainedChange| (change.new - change.base).abs();
    changes.retain(|change| size(change) > 0.0);
    changes.sort_by(|a, b| size(b).total_cmp(&size(a)));
    changes
}

/// The numbers of each kind that a finding names.
const NAMED: usize = 4;

/// The main difference in one sentence: the numbers that differ by more than noise, each with its p; then elapsed time and violation, where
/// they are not among them, with their certainty.
fn finding((base, new): (&str, &str), rows: &[Row], origin: Option<&ExplainedChange>, alpha: f64) -> String {
    let row = |key: &str| rows.iter().find(|row| row.metric.key == key);
    let kinds = [
        (Finding::Worse, "WORSE", format!("is WORSE than {base}")),
        (Finding::Better, "better", format!("is better than {base}")),
        (Finding::Changed, "differs", format!("differs from {base}")),
    ];
    let mut lead = String::new();
    for (kind, word, words) in kinds {
        let of_kind: Vec<&Row> = rows.iter().filter(|row| row.finding == kind).collect();
        if of_kind.is_empty() {
            continue;
        }
        let mut named: Vec<String> = of_kind.iter().take(NAMED).map(|row| named(row)).collect();
        if of_kind.len() > NAMED {
            named.push(format!("{} more", of_kind.len() - NAMED));
        }
        let head = if lead.is_empty() { format!("{new} {words}") } else { format!("; {word}") };
        lead += &format!("{head}: {}", named.join(", "));
    }
    let has_too_few = !rows.is_empty() && rows.iter().all(|row| is_too_few(row, alpha));
    if lead.is_empty() {
        lead = match has_too_few {
            true => format!("too few runs to judge whether {new} differs from {base}"),
            false => format!("{new} does not differ from {base} by more than noise"),
        };
    }
    let certain = |row: &Row| if has_too_few { String::new() } else { format!(" ({})", certainty(row, alpha)) };
    let is_noise = |row: &&Row| matches!(row.finding, Finding::TooFew | Finding::Noise);
    let mut parts = Vec::new();
    if let Some((row, change)) = row("elapsed").filter(is_noise).and_then(|row| Some((row, row.change_percent?))) {
        parts.push(match format!("{:.1}", change.abs()).as_str() {
            "0.0" => format!("takes as long{}", certain(row)),
            percent if change > 0.0 => format!("takes {percent} % longer{}", certain(row)),
            percent => format!("takes {percent} % less time{}", certain(row)),
        });
    }
    match row("violation") {
        None => parts.push("has no violation that can be compared".to_owned()),
        Some(row) if is_noise(&row) => parts.push(format!(
            "violates work conservation in {:.2} % of the time, against {:.2} %{}",
            row.new.median,
            row.base.median,
            certain(row)
        )),
        Some(_) => {}
    }
    let mut text = lead;
    if !parts.is_empty() {
        text += &format!("; it {}", parts.join(" and "));
    }
    if let Some(change) = origin {
        let certainty = match change.p {
            None if has_too_few => String::new(),
            None => " (too few runs to judge)".to_owned(),
            Some(p) if p <= alpha => format!(" (p {})", crate::table::p_in_cell(p)),
            Some(p) => format!(" (may be noise, p {})", crate::table::p_in_cell(p)),
        };
        text += &format!(
            "; the waiting that changed most began so: {}, {} to {} task\u{b7}s{certainty}",
            change.name,
            short(change.base),
            short(change.new)
        );
    }
    text.push('.');
    text
}

/// A number that differs by more than noise: its name without the unit, the change of its median, and its p.
fn named(row: &Row) -> String {
    let name = row.metric.name.split(',').next().unwrap_or_default();
    let change = match row.change_percent {
        Some(change) if change >= 999.5 => ">+999 %".to_owned(),
        Some(change) => format!("{change:+.1} %"),
        None => format!("{} to {}", short(row.base.median), short(row.new.median)),
    };
    format!("{name} {change} (p {})", p(row))
}

/// Whether the runs are too few for the test.
fn is_too_few(row: &Row, alpha: f64) -> bool {
    row.finding == Finding::TooFew || row.is_hopeless(alpha)
}

/// The certainty of a change in a few words.
fn certainty(row: &Row, alpha: f64) -> String {
    match row.finding {
        _ if is_too_few(row, alpha) => "too few runs to judge".to_owned(),
        Finding::Noise => format!("may be noise, p {}", p(row)),
        _ => format!("more than noise, p {}", p(row)),
    }
}

impl Explanation {
    /// The finding for a mail.
    pub(crate) fn headline(&self) -> String {
        let mut out = String::new();
        timeline::text::paragraph(&mut out, 0, 2, &format!("Finding: {}", self.finding));
        out
    }

    /// The changes below the table: with the finding at most 12 lines of 75 columns; `base` and `new` are the names of the groups.
    pub(crate) fn text(&self, base: &str, new: &str) -> String {
        self.changes(base, new, LINES.saturating_sub(1 + self.headline().lines().count()))
    }

    /// The table of the changes, with at most `most` rows.
    pub(crate) fn changes(&self, base: &str, new: &str, most: usize) -> String {
        let cut = |name: &str, columns: usize| name.chars().take(columns).collect::<String>();
        let mut out = String::new();
        if self.changes.is_empty() {
            return out;
        }
        let head = "medians: waiting, idling, path, s (share)";
        let numbers = [9, 9, 4].map(TextColumn::Numbers);
        let mut table = TextTable::new([TextColumn::Words(NAME)].into_iter().chain(numbers));
        table.row([head, &*cut(base, 12), &*cut(new, 12), "p"]);
        for change in self.changes.iter().take(most) {
            let subject = match change.subject {
                Subject::Waiting => "waiting",
                Subject::Idling => "idling",
                Subject::Migrations => "migrations",
                Subject::NewIdle => "new-idle",
                Subject::Path => "path",
            };
            let cell = |value: f64, percent: Option<f64>| match percent {
                Some(percent) if change.subject == Subject::NewIdle => format!("{value:.0} ({percent:.0}%)"),
                Some(percent) => format!("{} ({percent:.0}%)", short(value)),
                None => format!("{value:.0}"),
            };
            let name = cut(&format!("{subject}: {}", change.name), NAME);
            let (base, new) = (cell(change.base, change.base_percent), cell(change.new, change.new_percent));
            let p = change.p.map_or_else(|| "-".to_owned(), crate::table::p_in_cell);
            table.row([name, base, new, p]);
        }
        table.write(&mut out);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Better, Metric, compare_values};
    use timeline::text::COLUMNS;

    fn row(key: &'static str, base: &[f64], new: &[f64]) -> Row {
        compare_values(&Metric::of(key, key, Better::Less), base, new, 0.05)
    }

    #[test]
    fn a_finding_names_its_certainty() {
        let (old, new) = ([10.0, 10.1, 9.9, 10.2, 9.8], [11.0, 11.1, 10.9, 11.2, 10.8]);
        let rows = [row("elapsed", &old, &new), row("violation", &old, &[10.0, 9.9, 10.2, 9.8, 10.1])];
        // Two of the 252 divisions of ten runs separate them.
        assert_eq!(
            finding(("base", "new"), &rows, None, 0.05),
            "new is WORSE than base: elapsed +10.0 % (p .008); it violates work conservation in 10.00 % of the time, against \
             10.00 % (may be noise, p 1)."
        );
        assert_eq!(
            finding(("base", "new"), &[row("elapsed", &new, &old), rows[1].clone()][..1], None, 0.05),
            "new is better than base: elapsed -9.1 % (p .008); it has no violation that can be compared."
        );
        assert_eq!(
            finding(("base", "new"), &[row("elapsed", &old, &old), rows[1].clone()], None, 0.05),
            "new does not differ from base by more than noise; it takes as long (may be noise, p 1) and violates work \
             conservation in 10.00 % of the time, against 10.00 % (may be noise, p 1)."
        );
        let rows = [row("elapsed", &[2.0], &[1.0]), row("violation", &[20.0], &[10.0])];
        let origin = ExplainedChange {
            subject: Subject::Waiting,
            name: "placed at fork".into(),
            base: 0.5,
            new: 0.25,
            base_percent: Some(50.0),
            new_percent: Some(40.0),
            p: None,
        };
        assert_eq!(
            finding(("a", "b"), &rows, Some(&origin), 0.05),
            "too few runs to judge whether b differs from a; it takes 50.0 % less time and violates work conservation in \
             10.00 % of the time, against 20.00 %; the waiting that changed most began so: placed at fork, 0.500 to 0.250 \
             task\u{b7}s."
        );
    }

    /// Each marked number leads the finding with its p, the judged ones before the others; WORSE is written once.
    #[test]
    fn the_marked_numbers_lead_the_finding() {
        let (old, new) = ([10.0, 10.1, 9.9, 10.2, 9.8], [11.0, 11.1, 10.9, 11.2, 10.8]);
        let of = |key: &'static str, better| compare_values(&Metric::of(key, key, better), &old, &new, 0.05);
        let mut rows =
            vec![of("migrations, number", Better::Neither), of("rate", Better::Less), of("better", Better::Less)];
        rows[2] = compare_values(&rows[2].metric, &new, &old, 0.05);
        rows.extend(["elapsed", "violation", "b", "c", "d"].map(|key| of(key, Better::Less)));
        let text = finding(("a", "b"), &rows, None, 0.05);
        assert_eq!(
            text,
            "b is WORSE than a: rate +10.0 % (p .008), elapsed +10.0 % (p .008), violation +10.0 % (p .008), b +10.0 % (p \
             .008), 2 more; better: better -9.1 % (p .008); differs: migrations +10.0 % (p .008)."
        );
    }

    #[test]
    fn an_explanation_has_twelve_lines_at_most() {
        let change = |subject, base: f64| ExplainedChange {
            subject,
            name: "preempted by the application, and more words than there is room for".into(),
            base,
            new: 1000.0,
            base_percent: Some(12.0),
            new_percent: Some(100.0),
            p: Some(0.008),
        };
        let subjects = [Subject::Waiting; 3].into_iter().chain([Subject::Idling; 2]).chain([Subject::Migrations; 2]);
        let changes: Vec<ExplainedChange> = subjects.map(|subject| change(subject, 1.5)).collect();
        let finding = "word ".repeat(60);
        let explanation = Explanation { finding, changes };
        let text = explanation.headline() + &explanation.text("base", "a name that is long");
        assert!(text.lines().count() <= LINES, "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= COLUMNS), "{text}");
        assert!(text.lines().last().is_some_and(|line| line.starts_with("migrations: ")), "{text}");
    }
}

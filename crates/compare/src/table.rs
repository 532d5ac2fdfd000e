//! The table, for a mail and as Markdown.

use crate::{Better, Finding, Row, Spread};
use std::fmt::Write;
use timeline::table::{TextColumn, TextTable};

/// Formats a number with four digits.
pub(crate) fn short(value: f64) -> String {
    match value.abs() {
        v if v >= 1000.0 => format!("{value:.0}"),
        v if v >= 100.0 => format!("{value:.1}"),
        v if v >= 10.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// Formats the median and half the range in percent of it; for a median of zero the maximum. One run has no range.
fn with_spread(s: &Spread) -> String {
    match (s.median == 0.0, s.percent()) {
        (false, _) if s.runs == 1 => short(s.median),
        (true, _) if s.max > 0.0 => format!("0 (..{})", short(s.max)),
        (true, _) => "0".into(),
        (_, percent) if percent >= 999.5 => format!("{} \u{b1}>10x", short(s.median)),
        (_, percent) => format!("{} \u{b1}{percent:.0}%", short(s.median)),
    }
}

/// Whether the metric is zero in all runs.
pub(crate) fn is_nothing(row: &Row) -> bool {
    row.base.max == 0.0 && row.new.max == 0.0
}

/// The rows of a table: those that are not zero in all runs, and those whose name the indented rows below them continue.
fn shown(rows: &[Row]) -> Vec<&Row> {
    let mut shown: Vec<&Row> = Vec::new();
    let mut continued = false;
    for row in rows.iter().rev() {
        let is_part = row.metric.row.starts_with(' ');
        if !is_nothing(row) || (continued && !is_part) {
            shown.push(row);
            continued = is_part;
        } else if !is_part {
            continued = false;
        }
    }
    shown.reverse();
    shown
}

pub(crate) fn change(row: &Row) -> String {
    match row.change_percent {
        None => "-".into(),
        Some(c) if c >= 999.5 => ">999%".into(),
        Some(c) => format!("{c:+.1}%"),
    }
}

pub(crate) fn p(row: &Row) -> String {
    row.p.map_or("-".into(), p_in_cell)
}

/// A probability in at most four columns: `.008`, or `1`.
pub(crate) fn p_in_cell(p: f64) -> String {
    if p >= 0.9995 { "1".into() } else { format!("{p:.3}")[1..].to_owned() }
}

fn interval(row: &Row) -> String {
    let end = |end: Option<f64>| match end {
        None => "\u{2026}".into(),
        Some(e) if e >= 999.5 => ">999".into(),
        Some(e) => format!("{:.0}", timeline::text::rounded(e, 0)),
    };
    match row.interval_percent {
        (None, None) => "-".into(),
        (low, high) => format!("{}..{}", end(low), end(high)),
    }
}

pub(crate) fn mark(finding: Finding) -> &'static str {
    match finding {
        Finding::TooFew | Finding::Noise => "",
        Finding::Better => "better",
        Finding::Worse => "worse",
        Finding::Changed => "diff",
    }
}

/// Returns the cells behind the name of the metric.
pub(crate) fn cells(row: &Row) -> [String; 6] {
    [with_spread(&row.base), with_spread(&row.new), change(row), interval(row), p(row), mark(row.finding).to_owned()]
}

/// An empty table for a mail with its head; `name` stands above the names of the rows.
pub(crate) fn of_groups(name: &str, base: &str, new: &str) -> TextTable {
    let cut = |name: &str| name.chars().take(11).collect::<String>();
    let numbers = [9, 9, 6, 8].map(TextColumn::Numbers);
    let names = TextColumn::Names { least: 18, most: 24 };
    let mut table = TextTable::new([names].into_iter().chain(numbers).chain([TextColumn::Words(0)]));
    table.row([name, &*cut(base), &*cut(new), "change", "range", "   p"]);
    table
}

/// Adds the row of a metric to such a table.
pub(crate) fn add_row(table: &mut TextTable, name: &str, row: &Row) {
    // Without a blank in front of the range, and brackets around that of a median of zero, the line fits a mail.
    let [mut base, mut new, change, range, p, mark] = cells(row);
    for cell in [&mut base, &mut new] {
        *cell = cell.replace(" \u{b1}", "\u{b1}").replace(" (..", "..").replace(')', "");
    }
    table.row([name.to_owned(), base, new, change, range, format!("{p:>4} {mark}")]);
}

/// Returns the table as text with at most 75 columns, so that it fits into a mail.
pub fn text(rows: &[Row], base: &str, new: &str) -> String {
    let mut table = of_groups("median", base, new);
    for row in shown(rows) {
        add_row(&mut table, &row.metric.row, row);
    }
    let mut out = String::new();
    table.write(&mut out);
    if has_latencies(rows) {
        let _ = writeln!(out, "({LATENCIES})");
    }
    out
}

/// The meaning of the columns, for noise that may pass for a change with the probability `alpha`.
pub(crate) fn legend(alpha: f64) -> String {
    format!(
        "\u{b1}: half the range of the runs, in percent of their median. range:\n\
         changes in percent that a permutation test of the medians does not\n\
         refuse; p: its p. Marked where p <= {alpha}: so often noise alone does that."
    )
}

/// The ends of the lengths in the table, in words.
pub(crate) const LATENCIES: &str = "wakeup: from waking to switch; waiting, preempted: runqueue wait";

/// Whether a row is of a wakeup latency.
fn has_latencies(rows: &[Row]) -> bool {
    rows.iter().any(|row| row.metric.key.starts_with("wakeup") && !is_nothing(row))
}

/// Formats the noise between the runs of the base.
fn aa(row: &Row) -> String {
    match row.base_noise_percent {
        None => "-".into(),
        Some(noise) if noise >= 999.5 => ">999%".into(),
        Some(noise) => format!("{noise:.1}%"),
    }
}

/// The number of metrics whose noise and whose least change are in the text.
pub(crate) const SHOWN: usize = 4;

/// Returns the noise between the runs of the base for the first four metrics that are judged and have it, such as
/// `elapsed 1.2%, violation 3.4%`; nothing if none has. The Markdown table and JSON have that of all.
pub fn noise(rows: &[Row]) -> Option<String> {
    let judged = rows.iter().filter(|row| !is_nothing(row) && row.metric.better != Better::Neither);
    let known = judged.filter(|row| row.base_noise_percent.is_some()).take(SHOWN);
    // The name without its unit.
    let name = |row: &Row| row.metric.name.split(',').next().unwrap_or_default().to_owned();
    let all: Vec<String> = known.map(|row| format!("{} {}", name(row), aa(row))).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

/// The comparison as a Markdown table, with a column for the noise between the runs of the base (A/A).
pub fn markdown(rows: &[Row], base: &str, new: &str) -> String {
    let escaped = |name: &str| name.replace('|', "\\|");
    let mut out = format!(
        "| median | {} | {} | change | range | p | A/A | |\n|---|---:|---:|---:|---:|---:|---:|---|\n",
        escaped(base),
        escaped(new)
    );
    for row in rows.iter().filter(|row| !is_nothing(row)) {
        // The full name is used here, since Markdown drops leading spaces.
        let [base, new, change, range, p, mark] = cells(row);
        let cells = [base, new, change, range, p, aa(row), mark].join(" | ");
        let _ = writeln!(out, "| {} | {cells} |", escaped(&row.metric.name));
    }
    if has_latencies(rows) {
        let _ = writeln!(out, "\n({LATENCIES})");
    }
    out
}

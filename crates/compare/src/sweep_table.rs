//! The table of a sweep: a row for each value of the parameter, metric by metric.

use crate::sweep::{PARAMETER, Sweep, SweptMetric, by_metric};
use crate::table::{LATENCIES, add_row, cells, legend, of_groups};
use crate::{Better, Finding, Row};
use std::fmt::Write;
use timeline::text::paragraph;

/// Returns the text on a sweep: for each variant that is compared a finding in one sentence and a table. `rows` has those of each
/// comparison, in the order of [`Sweep::pairs`].
pub(crate) fn text(sweep: &Sweep, rows: &[&[Row]], alpha: f64, is_markdown: bool) -> String {
    let (mut out, mut rows) = (String::new(), rows.iter());
    for (name, base, parameters) in sweep.series() {
        let points: Vec<(&str, &[Row])> = parameters.iter().copied().zip(rows.by_ref().copied()).collect();
        let metrics = by_metric(&points);
        // Writing to a string cannot fail.
        let gap = if out.is_empty() { "" } else { "\n" };
        let other = if sweep.variants.len() > 1 { base.clone() } else { format!("its runs {base}") };
        let _ = writeln!(out, "{gap}{name} against {other}, by the value of {PARAMETER}\n");
        if let Some(finding) = metrics.iter().find(|metric| is_judged(metric)).map(|metric| finding(metric, alpha)) {
            paragraph(&mut out, 0, 2, &format!("Finding: {finding}"));
            out.push('\n');
        }
        out += &if is_markdown { markdown(&metrics, &base, name) } else { mail(&metrics, &base, name) };
        out.push('\n');
        if rows_of(&metrics).any(|row| row.finding != Finding::TooFew) {
            let is_in_rounds = rows_of(&metrics).any(|row| row.rounds.is_some());
            let legend = if is_in_rounds { crate::rounds::legend(alpha) } else { legend(alpha) };
            let _ = writeln!(out, "{legend}");
        }
    }
    out
}

fn rows_of<'m>(metrics: &'m [SweptMetric<'_>]) -> impl Iterator<Item = &'m Row> {
    metrics.iter().flat_map(|metric| metric.rows.iter().map(|(_, row)| *row))
}

fn is_judged(metric: &SweptMetric<'_>) -> bool {
    metric.rows.iter().any(|(_, row)| row.metric.better != Better::Neither)
}

/// A sentence on the values at which a metric changed.
fn finding(metric: &SweptMetric<'_>, alpha: f64) -> String {
    let of = |words: &str, is_of_kind: &dyn Fn(&Row) -> bool| {
        let at: Vec<&str> = metric.rows.iter().filter(|(_, row)| is_of_kind(row)).map(|(at, _)| *at).collect();
        (!at.is_empty()).then(|| format!("{words} at {}", at.join(", ")))
    };
    let has_too_few = |row: &Row| row.finding == Finding::TooFew || row.is_hopeless(alpha);
    let parts = [
        of("is better", &|row| row.finding == Finding::Better),
        of("is worse", &|row| row.finding == Finding::Worse),
        of("does not change by more than noise", &|row| row.finding == Finding::Noise && !has_too_few(row)),
        of("has too few runs to be judged", &has_too_few),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    format!("{} {}.", metric.name.split(',').next().unwrap_or_default(), parts.join("; "))
}

/// The table in at most 75 columns, with a line for the name of each metric.
fn mail(metrics: &[SweptMetric<'_>], base: &str, new: &str) -> String {
    let mut table = of_groups("median", base, new);
    for metric in metrics {
        table.across(metric.name);
        for (parameter, row) in &metric.rows {
            add_row(&mut table, &format!("  {parameter}"), row);
        }
    }
    let mut out = String::new();
    table.write(&mut out);
    if rows_of(metrics).any(|row| row.metric.key.starts_with("wakeup")) {
        let _ = writeln!(out, "({LATENCIES})");
    }
    out
}

/// The table as Markdown, with a column for the parameter.
fn markdown(metrics: &[SweptMetric<'_>], base: &str, new: &str) -> String {
    let escaped = |name: &str| name.replace('|', "\\|");
    let mut out = format!(
        "| median | {PARAMETER} | {} | {} | change | range | p | |\n|---|---:|---:|---:|---:|---:|---:|---|\n",
        escaped(base),
        escaped(new)
    );
    for metric in metrics {
        for (parameter, row) in &metric.rows {
            let _ = writeln!(out, "| {} | {parameter} | {} |", escaped(metric.name), cells(row).join(" | "));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ComparedRun, Group, Metric};

    /// Two variants at three values: half as long at 1, the same at 2, twice as long at 4.
    #[test]
    fn each_value_has_a_row_and_the_finding_names_it() {
        let sweep = Sweep::of_names(&["off-1", "on-1", "off-2", "on-2", "off-4", "on-4"]).unwrap();
        let metrics = [Metric::of("elapsed", "elapsed, s", Better::Less), Metric::of("zero", "zero", Better::Less)];
        let group = |name: &str, base: f64| {
            let run = |n: u32| ComparedRun {
                trace: name.to_owned(),
                values: vec![Some(base + f64::from(n) / 100.0), Some(0.0)],
            };
            Group { name: name.to_owned(), runs: (0..5).map(run).collect() }
        };
        let base = [1.0, 2.0, 4.0];
        let of = |new: [f64; 3]| -> Vec<Vec<Row>> {
            let pair = |(b, n): (f64, f64)| crate::compare(&metrics, &group("off", b), &group("on", n), 0.05);
            base.into_iter().zip(new).map(pair).collect()
        };
        let rows = of([0.5, 2.0, 8.0]);
        let rows: Vec<&[Row]> = rows.iter().map(Vec::as_slice).collect();
        let table = text(&sweep, &rows, 0.05, false);
        for line in [
            "on-{} against off-{}, by the value of {}",
            "elapsed, s",
            "  1                  1.020\u{b1}2%   0.520\u{b1}4%  -49.0%  -51..-47  .008 better",
            "  2                  2.020\u{b1}1%   2.020\u{b1}1%   +0.0%     -1..1     1",
        ] {
            assert!(table.lines().any(|other| other == line), "{line}\n{table}");
        }
        let finding = "Finding: elapsed is better at 1; is worse at 4; does not change by more than noise at 2.";
        assert!(table.replace("\n  ", " ").contains(finding), "{table}");
        assert!(!table.contains("zero") && table.lines().all(|line| line.chars().count() <= 75), "{table}");
        let page = text(&sweep, &rows, 0.05, true);
        assert!(page.contains("| elapsed, s | 4 | 4.020 \u{b1}0% |"), "{page}");
    }
}

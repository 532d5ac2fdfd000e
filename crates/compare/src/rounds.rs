//! Numbers of rows that need more than the runs of one metric: false discoveries over all rows, and tests of runs in rounds.

use crate::measures::Measured;
use crate::table::SHOWN;
use crate::{FEWEST, Finding, Group, Metric, Row, finding_of};
use judging::{RoundBets, adjusted_p, fewest_rounds, kept_by_e, least_change_percent};
use std::fmt::Write;
use timeline::text::paragraph;

/// Judges the rows of runs in rounds that may have been ended at will. `runs` has those of the base and of the other group, in the order of
/// the groups.
pub(crate) fn judge_in_rounds(
    rows: &mut [Row],
    metrics: &[Metric],
    (base, new): (&Group, &Group),
    runs: (&[Measured], &[Measured]),
    alpha: f64,
) {
    for row in rows {
        let Some(at) = metrics.iter().position(|metric| metric.key == row.metric.key) else { continue };
        let (base, new) = (by_round(base, runs.0, at), by_round(new, runs.1, at));
        let with_both = |(round, value): &(usize, f64)| {
            let (_, other) = new.iter().find(|(other, _)| other == round)?;
            Some((*value, *other))
        };
        let pairs: Vec<(f64, f64)> = base.iter().filter_map(with_both).collect();
        let bets = RoundBets::over(pairs.iter().copied());
        row.p = (bets.rounds() >= FEWEST).then(|| bets.p());
        row.e = Some(bets.e());
        row.rounds = Some(bets.rounds());
        // The interval belongs to the other test.
        row.interval_percent = (None, None);
        row.least_change_percent = least_change_percent(&pairs, alpha);
        row.finding = finding_of(row, alpha);
    }
}

/// The values of the runs of a group, in the order of their rounds.
fn by_round(group: &Group, runs: &[Measured], metric: usize) -> Vec<(usize, f64)> {
    let value = |(run, measured): (&crate::ComparedRun, &Measured)| {
        Some((measured.round?, run.values.get(metric).copied().flatten()?))
    };
    let mut values: Vec<(usize, f64)> = group.runs.iter().zip(runs).filter_map(value).collect();
    values.sort_by_key(|(round, _)| *round);
    values
}

/// Marks the rows that stay discoveries where at most the share `alpha` of all discoveries among the rows may be noise.
pub(crate) fn control_discoveries(rows: &mut [Row], alpha: f64) {
    let adjusted = adjusted_p(&rows.iter().map(|row| row.p).collect::<Vec<_>>());
    // Only p of a fixed number of runs are what the adjustment asks for.
    let by_e = rows.iter().any(|row| row.rounds.is_some());
    let kept = kept_by_e(&rows.iter().map(|row| row.e).collect::<Vec<_>>(), alpha);
    for ((row, adjusted), kept) in rows.iter_mut().zip(adjusted).zip(kept) {
        row.adjusted_p = adjusted.filter(|_| !by_e);
        let is_marked = !matches!(row.finding, Finding::TooFew | Finding::Noise);
        row.is_discovery = is_marked && if by_e { kept } else { adjusted.is_some_and(|p| p <= alpha) };
    }
}

/// The least number of rounds that can show a change, if these rows are of fewer rounds.
pub(crate) fn missing_rounds(rows: &[Row], alpha: f64) -> Option<(usize, usize)> {
    let most = rows.iter().filter_map(|row| row.rounds).max()?;
    let fewest = fewest_rounds(alpha);
    (most < fewest).then_some((most, fewest))
}

/// Sentences on the marks and on the least changes that the runs can show.
pub(crate) fn sentences(rows: &[Row], alpha: f64) -> String {
    let mut out = String::new();
    let marked = rows.iter().filter(|row| !matches!(row.finding, Finding::TooFew | Finding::Noise)).count();
    let tested = rows.iter().filter(|row| row.p.is_some()).count();
    if marked > 0 {
        let kept: Vec<&str> = rows.iter().filter(|row| row.is_discovery).map(|row| row.metric.key.as_ref()).collect();
        let method = if rows.iter().any(|row| row.rounds.is_some()) { "e-values" } else { "Benjamini-Hochberg" };
        let kept = if kept.is_empty() { "none".to_owned() } else { kept.join(", ") };
        let share = 100.0 * alpha;
        let text = format!(
            "False discoveries: {} in {tested} rows. Where at most {share} % of the marks may be noise ({method}), these stay: {kept}.",
            sched::nouns::counted(marked, "mark")
        );
        paragraph(&mut out, 0, 2, &text);
    }
    let mut least = String::new();
    for row in rows.iter().filter(|row| row.metric.better != crate::Better::Neither) {
        if let Some(percent) = row.least_change_percent.filter(|percent| *percent > 0.0)
            && least.matches('%').count() < SHOWN
        {
            let name = row.metric.name.split(',').next().unwrap_or_default();
            // Writing to a string cannot fail.
            let _ = write!(least, "{}{name} {percent:.1}%", if least.is_empty() { "" } else { ", " });
        }
    }
    if !least.is_empty() {
        paragraph(&mut out, 0, 2, &format!("Least change that these runs can show: {least}."));
    }
    out
}

/// The meaning of p for a series that ends early.
pub(crate) fn legend(alpha: f64) -> String {
    format!(
        "\u{b1}: half the range of the runs, in percent of their median. p: that of\n\
         bets on the order of the runs within each round, which holds at whatever\n\
         round the series ends. Marked where p <= {alpha}."
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Better, compare, test};

    fn group(name: &str, values: &[&[f64]]) -> Group {
        let runs = values.first().map_or(0, |values| values.len());
        let run = |at: usize| crate::ComparedRun {
            trace: format!("{name}.{at}"),
            values: values.iter().map(|values| Some(values[at])).collect(),
        };
        Group { name: name.to_owned(), runs: (0..runs).map(run).collect() }
    }

    /// The least change is the one from which on the shifted runs are marked.
    #[test]
    fn the_least_change_of_a_fixed_number_is_that_of_the_test() {
        let metric = [Metric::of("elapsed", "elapsed, s", Better::Less)];
        let (base, new) = ([10.0, 10.4, 9.9, 10.1, 10.3], [10.2, 9.8, 10.6, 10.0, 10.1]);
        let rows = compare(&metric, &group("a", &[&base]), &group("b", &[&new]), 0.05);
        let least = rows[0].least_change_percent.unwrap();
        let middle = rows[0].new.median / rows[0].base.median;
        let p = |change: f64| {
            let moved: Vec<f64> = new.iter().map(|value| value / middle * (1.0 + change / 100.0)).collect();
            test::p_value(&base, &moved)
        };
        assert!(p(least * 1.001) <= 0.05 && p(-least * 1.001) <= 0.05, "{least}");
        // One of the directions is the larger one; below it that direction is not shown.
        assert!(p(least * 0.8) > 0.05 || p(-least * 0.8) > 0.05, "{least}");
    }

    #[test]
    fn marks_over_many_rows_are_controlled() {
        let keys: Vec<String> = (0..12).map(|at| format!("m{at}")).collect();
        let metrics: Vec<Metric> = keys.iter().map(|key| Metric::of(key.clone(), key, Better::Less)).collect();
        let same = [10.0, 11.0, 12.0, 13.0, 14.0];
        let other = [20.0, 21.0, 22.0, 23.0, 24.0];
        let base: Vec<&[f64]> = vec![&same; 12];
        // p of a changed metric is 2/252; one of twelve is no discovery at 5 %, three of twelve are.
        for (changed, kept) in [(1, 0), (3, 3)] {
            let mut new: Vec<&[f64]> = vec![&same; 12];
            new.iter_mut().take(changed).for_each(|values| *values = &other);
            let rows = compare(&metrics, &group("a", &base), &group("b", &new), 0.05);
            assert_eq!(rows.iter().filter(|row| row.finding == Finding::Worse).count(), changed);
            assert_eq!(rows.iter().filter(|row| row.is_discovery).count(), kept);
            let text = sentences(&rows, 0.05);
            let stay = if kept == 0 { "these stay: none." } else { "these stay: m0, m1, m2." };
            assert!(text.replace("\n  ", " ").contains(stay), "{text}");
        }
    }
}

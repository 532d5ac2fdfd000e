//! The table in the forms that kernel developers and their tools read: the dialects of the list.
//!
//! `docs/questions/compare.md` defines the numbers of each. Whether a change is marked is decided by the permutation test in every
//! one of them.

mod benchstat;
mod lkp;
mod mmtests;
mod tip;

use crate::{Better, Finding, Group, Metric, Row, Spread};
use session::formats::Format;

/// The dialects that `compare` has.
pub(crate) const DIALECTS: &[Format] =
    &[Format::Tip, Format::Mmtests, Format::Lkp, Format::Benchstat, Format::Ktap, Format::Junit];

/// The marks that the sentence on them names.
const MOST_MARKED: usize = 12;

/// A comparison, as the dialects show it.
#[derive(Clone, Debug)]
pub struct Compared<'c> {
    /// The name of the test, such as the command of the runs.
    pub test: &'c str,
    /// The metrics, in the order of the values of a run.
    pub metrics: &'c [Metric],
    /// The groups, the first of which is the base.
    pub groups: &'c [Group],
    /// The rows of the comparison of each further group with the base, in the order of the groups.
    pub comparisons: Vec<&'c [Row]>,
    /// The probability that noise may pass for a change.
    pub alpha: f64,
}

/// Returns the table in a dialect; nothing for a format that is no dialect of a table.
pub fn in_dialect(format: Format, compared: &Compared<'_>) -> Option<String> {
    match format {
        Format::Tip => Some(tip::text(compared)),
        Format::Mmtests => Some(mmtests::text(compared)),
        Format::Lkp => Some(lkp::text(compared)),
        Format::Benchstat => Some(benchstat::text(compared)),
        _ => None,
    }
}

/// The runs of a group in one metric.
#[derive(Clone, Debug)]
struct Sample<'c> {
    /// The values of the runs that have one, in ascending order; at least one.
    values: Vec<f64>,
    /// The row of the comparison with the base; none for the base itself.
    row: Option<&'c Row>,
}

impl Sample<'_> {
    fn median(&self) -> f64 {
        Spread::of(&self.values).median
    }

    fn mean(&self) -> f64 {
        self.values.iter().sum::<f64>() / self.values.len() as f64
    }

    /// The standard deviation of the sample, with one degree of freedom less than runs; one run has none.
    fn deviation(&self) -> Option<f64> {
        let mean = self.mean();
        let squares: f64 = self.values.iter().map(|value| (value - mean).powi(2)).sum();
        (self.values.len() > 1).then(|| (squares / (self.values.len() - 1) as f64).sqrt())
    }

    /// The coefficient of variation: the standard deviation in percent of the mean, zero for a mean of zero; one run has
    /// none.
    fn variation(&self) -> Option<f64> {
        let mean = self.mean();
        self.deviation().map(|deviation| if mean == 0.0 { 0.0 } else { (100.0 * deviation / mean).abs() })
    }

    /// Whether the change from the base is more than noise.
    fn is_marked(&self) -> bool {
        self.row.is_some_and(|row| !matches!(row.finding, Finding::TooFew | Finding::Noise))
    }
}

/// A metric with the runs of each group.
#[derive(Clone, Debug)]
struct MetricLine<'c> {
    metric: &'c Metric,
    /// The base, and each further group; none for a group of which no run has the metric.
    samples: Vec<Option<Sample<'c>>>,
}

impl<'c> MetricLine<'c> {
    /// The runs of the base.
    fn base(&self) -> Option<&Sample<'c>> {
        self.samples.first()?.as_ref()
    }

    /// Whether the change of a group from the base is more than noise.
    fn is_marked(&self) -> bool {
        self.samples.iter().flatten().any(Sample::is_marked)
    }
}

impl<'c> Compared<'c> {
    /// The metrics that the base and another group have, without those that are zero in all runs.
    fn lines(&self) -> Vec<MetricLine<'c>> {
        let line = |(at, metric): (usize, &'c Metric)| {
            let sample = |(nth, group): (usize, &Group)| {
                let mut values = group.values(at);
                values.sort_by(f64::total_cmp);
                let rows: Option<&'c [Row]> = nth.checked_sub(1).and_then(|nth| self.comparisons.get(nth).copied());
                let row = rows.and_then(|rows| rows.iter().find(|row| row.metric.key == metric.key));
                (!values.is_empty()).then_some(Sample { values, row })
            };
            let samples: Vec<_> = self.groups.iter().enumerate().map(sample).collect();
            let line = MetricLine { metric, samples };
            let others = line.samples.iter().skip(1).flatten().count();
            let is_nothing = line.samples.iter().flatten().all(|sample| sample.values.iter().all(|v| *v == 0.0));
            (line.base().is_some() && others > 0 && !is_nothing).then_some(line)
        };
        self.metrics.iter().enumerate().filter_map(line).collect()
    }

    /// The lines of the metrics that improve in this direction.
    fn lines_by(&self, better: Better) -> Vec<MetricLine<'c>> {
        self.lines().into_iter().filter(|line| line.metric.better == better).collect()
    }

    /// A sentence on the marks, with the probability of each.
    fn on_marks(&self) -> String {
        let is_in_rounds = self.comparisons.iter().any(|rows| rows.iter().any(|row| row.rounds.is_some()));
        let test = if is_in_rounds { "bets on the order within rounds" } else { "permutation test of the medians" };
        let alpha = self.alpha;
        let mut marked = Vec::new();
        for (group, rows) in self.groups.iter().skip(1).zip(&self.comparisons) {
            let name = if self.comparisons.len() > 1 { format!("{}: ", group.name) } else { String::new() };
            let rows = rows.iter().filter(|row| !matches!(row.finding, Finding::TooFew | Finding::Noise));
            marked.extend(rows.map(|row| format!("{name}{} (p {})", row.metric.key, crate::table::p(row))));
        }
        let more = marked.len().saturating_sub(MOST_MARKED);
        marked.truncate(MOST_MARKED);
        marked.extend((more > 0).then(|| format!("{more} more")));
        let list = if marked.is_empty() { "nothing".to_owned() } else { marked.join(", ") };
        format!("More than noise (p <= {alpha}, {test}): {list}.")
    }
}

/// The name of a metric without its unit, and the unit: `s`, `ms`, `%`, or none for a number of things.
fn name_and_unit(metric: &Metric) -> (&str, &str) {
    match (metric.name.strip_prefix('%'), metric.name.rsplit_once(", ")) {
        (Some(name), _) => (name, "%"),
        (None, Some((name, unit))) => (name, unit),
        (None, None) => (&metric.name, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deviations_by_hand() {
        // The mean of 2, 4, 4, 4, 5, 5, 7, 9 is 5, and the squares of the distances add up to 32.
        let sample = Sample { values: vec![2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0], row: None };
        assert_eq!((sample.mean(), sample.median()), (5.0, 4.5));
        let deviation = (32.0_f64 / 7.0).sqrt();
        assert_eq!(sample.deviation(), Some(deviation));
        assert_eq!(sample.variation(), Some(100.0 * deviation / 5.0));
        let one = Sample { values: vec![3.0], row: None };
        assert_eq!((one.deviation(), one.variation()), (None, None));
    }
}

//! Whether groups of runs differ by more than noise.
//!
//! In go the metrics of the runs of two groups or more, out comes a table with the change of each median, a p, and an interval.
//! Begin reading in `test.rs`, the permutation test, then in `measure.rs`, the one pass over a run that gives its metrics.
//!
//! A metric of two groups is compared by its medians. A *permutation test* decides whether they differ
//! by more than noise. If the groups were the same, any division of all runs into groups of these sizes
//! would be equally likely; p is the share of divisions whose medians are at least as far apart as the
//! observed ones. If the medians are just as far apart, the means decide, since few runs have few
//! different medians. Up to [`EXACT`] divisions are all tried; of more, that number is sampled, always
//! in the same way.
//!
//! The *interval* of the change contains every change that the same test does not reject, widened to
//! the next one that it rejects: it contains zero if the change is no more than noise.
//!
//! With three runs a side p cannot be below 0.1, with four 0.029, with five 0.008. With fewer than three
//! runs there is no finding.
//!
//! ```
//! use compare::{least_p, p_value};
//!
//! let (base, new) = ([10.0, 11.0, 12.0, 10.5], [20.0, 21.0, 19.0, 22.0]);
//! // Only two of the 70 divisions of the eight runs lie as far apart as these groups.
//! assert_eq!(p_value(&base, &new), 2.0 / 70.0);
//! assert_eq!(p_value(&base, &new), least_p(4, 4));
//! ```

mod args;
mod chosen;
mod dialects;
mod explain;
mod failing;
mod figure;
mod header;
mod limits;
mod measure;
pub mod measures;
mod noise;
mod outside;
mod question;
mod rounds;
pub mod sweep;
mod sweep_figure;
mod sweep_table;
mod table;
mod test;

pub use args::CompareArgs;
pub use dialects::{Compared, in_dialect};
pub use figure::figure;
pub use limits::{Limit, judge};
pub use measures::{Measured, Reports};
pub use noise::{FEWEST_FOR_NOISE, noise_percent};
pub use question::CompareQuestion;
pub use table::{markdown, noise, text};
pub use test::{EXACT, fewest_that_show, least_p, p_value};

pub use ::question::{Better, Metric, Spread};

use ::question::median;
use serde::Serialize;

/// A run, with its number for each metric.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ComparedRun {
    /// The path of the trace.
    pub trace: String,
    /// The number for each metric; `None` if the run has none.
    pub values: Vec<Option<f64>>,
}

/// A group of runs under the same conditions.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Group {
    /// The name of the group.
    pub name: String,
    /// The runs of the group.
    pub runs: Vec<ComparedRun>,
}

impl Group {
    /// Returns the numbers of a metric for the runs that have one.
    pub fn values(&self, metric: usize) -> Vec<f64> {
        self.runs.iter().filter_map(|run| run.values.get(metric).copied().flatten()).collect()
    }
}

/// The result of the comparison of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Finding {
    /// A group has fewer than three runs.
    TooFew,
    /// The change may be noise.
    Noise,
    /// The change is more than noise, and an improvement.
    Better,
    /// The change is more than noise, and a regression.
    Worse,
    /// The change is more than noise; the metric is not judged.
    Changed,
}

/// The comparison of a metric.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Row {
    /// The metric that is compared.
    #[serde(flatten)]
    pub metric: Metric,
    /// The spread of the first group.
    pub base: Spread,
    /// The spread of the second group.
    pub new: Spread,
    /// The excess of the second median over the first, in percent of the first; `None` if that is zero.
    pub change_percent: Option<f64>,
    /// The p of the permutation test, between 0 and 1; `None` if a group has fewer than three runs. In a series that may end early it is
    /// that of the bets within rounds, which holds at whatever round the series ends.
    pub p: Option<f64>,
    /// The p adjusted for the number of rows (Benjamini and Hochberg), between 0 and 1; `None` without p, and in a series that may end
    /// early.
    pub adjusted_p: Option<f64>,
    /// Whether the change stays a discovery where at most the share alpha of all marked rows of the comparison may be noise.
    pub is_discovery: bool,
    /// The e-value of the bets within rounds after the last round, from 0; absent for a fixed number of runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub e: Option<f64>,
    /// The number of rounds in which both groups have a value; absent for a fixed number of runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounds: Option<usize>,
    /// The least change of the median, up and down, that the test marks with the noise of these runs, in percent of the first median;
    /// `None` if the runs can show none.
    pub least_change_percent: Option<f64>,
    /// The least and the greatest change that the test does not reject, in percent; `None` for an end without a
    /// bound.
    pub interval_percent: (Option<f64>, Option<f64>),
    /// The noise between the runs of the first group (A/A): the difference between the medians of two halves of its runs,
    /// in percent of their median, that at most the share alpha of all divisions into halves exceed. `None` with fewer
    /// than four runs.
    pub base_noise_percent: Option<f64>,
    /// The result of the comparison.
    pub finding: Finding,
}

impl Row {
    /// Whether the runs are too few to distinguish any change from noise, however large, if noise may pass for a change
    /// with the probability `alpha`.
    pub fn is_hopeless(&self, alpha: f64) -> bool {
        match self.rounds {
            Some(rounds) => rounds < judging::fewest_rounds(alpha),
            None => self.p.is_some() && least_p(self.base.runs, self.new.runs) > alpha,
        }
    }
}

/// The least number of runs in a group for which there is a finding.
pub const FEWEST: usize = 3;

/// Compares two groups. `alpha` is the probability with which noise may pass for a change.
pub fn compare(metrics: &[Metric], base: &Group, new: &Group, alpha: f64) -> Vec<Row> {
    let row = |(at, metric): (usize, &Metric)| {
        let (b, n) = (base.values(at), new.values(at));
        (!b.is_empty() && !n.is_empty()).then(|| compare_values(metric, &b, &n, alpha))
    };
    let mut rows: Vec<Row> = metrics.iter().enumerate().filter_map(row).collect();
    rounds::control_discoveries(&mut rows, alpha);
    rows
}

fn compare_values(metric: &Metric, base: &[f64], new: &[f64], alpha: f64) -> Row {
    let (b, n) = (Spread::of(base), Spread::of(new));
    let change = (b.median != 0.0).then(|| 100.0 * (n.median - b.median) / b.median.abs());
    let mut row = Row {
        metric: metric.clone(),
        base: b,
        new: n,
        change_percent: change,
        p: None,
        adjusted_p: None,
        is_discovery: false,
        e: None,
        rounds: None,
        least_change_percent: None,
        interval_percent: (None, None),
        base_noise_percent: noise_percent(base, alpha),
        finding: Finding::TooFew,
    };
    if base.len() < FEWEST || new.len() < FEWEST {
        return row;
    }
    row.p = Some(p_value(base, new));
    row.interval_percent = test::interval(base, new, alpha);
    row.least_change_percent = least_change(change, row.interval_percent);
    row.finding = finding_of(&row, alpha);
    row
}

/// The result of a comparison by its p and the medians.
fn finding_of(row: &Row, alpha: f64) -> Finding {
    let (base, new) = (row.base.median, row.new.median);
    match (row.p.map(|p| p <= alpha), row.metric.better) {
        (None, _) => Finding::TooFew,
        (Some(false), _) => Finding::Noise,
        (Some(true), Better::Neither) => Finding::Changed,
        (Some(true), Better::Less) if new < base => Finding::Better,
        (Some(true), Better::More) if new > base => Finding::Better,
        (Some(true), Better::Less | Better::More) => Finding::Worse,
    }
}

/// The least change that the test marks, in percent, by the interval of the changes that it does not reject around the observed one: runs
/// that are longer by a factor have an interval that is higher by this factor, and a change is marked once the interval is beyond zero.
fn least_change(change: Option<f64>, interval: (Option<f64>, Option<f64>)) -> Option<f64> {
    let factor = |percent: f64| 1.0 + percent / 100.0;
    let (observed, low, high) = (factor(change?), factor(interval.0?), factor(interval.1?));
    (low > 0.0).then(|| 100.0 * f64::max(observed / low - 1.0, 1.0 - observed / high))
}

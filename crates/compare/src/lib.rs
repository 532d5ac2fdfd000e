//! Whether groups of runs differ by more than noise.
//!
//! A metric of two groups is compared by its medians. Whether they differ by more than noise is asked
//! of a *permutation test*: if the groups were the same, any division of all runs into groups of these
//! sizes would be as likely; p is the share of divisions whose medians lie at least as far apart as
//! they do (where just as far, their means: few runs have few medians). Up to [`EXACT`] divisions are all tried, of more so many are drawn, always the same ones.
//! The *interval* of the change holds every change that the same test would not refuse, widened to
//! the next one that it would: it contains zero where the change is no more than noise.
//!
//! With three runs a side p cannot be below 0.1, with four 0.029, with five 0.008. With fewer than three
//! nothing is said.

mod figure;
mod limits;
mod table;
mod test;

pub use figure::figure;
pub use limits::{Limit, Outcome, judge};
pub use table::{markdown, text};
pub use test::{EXACT, least_p, p_value};

use serde::Serialize;

/// What is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// Less of it.
    Less,
    /// Neither; it is told, not judged.
    Neither,
}

/// Something that each run has a number for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Metric {
    /// By what an option names it: `wakeup-p99`.
    pub key: &'static str,
    /// By what people read it, with its unit: `wakeup p99, ms`.
    pub name: String,
    /// The same below what it is a part of: `  p99, ms`.
    #[serde(skip)]
    pub row: String,
    /// What is better.
    pub better: Better,
}

/// A run: its name, and its number for each metric, where it has one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Run {
    /// The trace.
    pub trace: String,
    /// By metric.
    pub values: Vec<Option<f64>>,
}

/// Runs of the same thing.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Group {
    /// What it is called.
    pub name: String,
    /// Its runs.
    pub runs: Vec<Run>,
}

impl Group {
    /// The numbers of a metric, of the runs that have one.
    pub fn values(&self, metric: usize) -> Vec<f64> {
        self.runs.iter().filter_map(|run| run.values.get(metric).copied().flatten()).collect()
    }
}

/// The middle of some runs, and how far they spread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// How many.
    pub runs: usize,
    /// The median; of an even number the mean of the two in the middle.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
}

impl Spread {
    /// Of these values.
    pub fn of(values: &[f64]) -> Spread {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |i: usize| sorted.get(i).copied().unwrap_or(0.0);
        let runs = sorted.len();
        Spread { runs, median: median(&sorted), min: at(0), max: at(runs.saturating_sub(1)) }
    }

    /// Half the range in percent of the median; zero where that is zero.
    pub fn percent(&self) -> f64 {
        if self.median == 0.0 { 0.0 } else { (50.0 * (self.max - self.min) / self.median).abs() }
    }
}

/// The median of sorted values; zero of none.
pub(crate) fn median(sorted: &[f64]) -> f64 {
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}

/// What the comparison of a metric comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finding {
    /// Fewer than three runs on a side.
    TooFew,
    /// No more than noise.
    Noise,
    /// More than noise, and better.
    Better,
    /// More than noise, and worse.
    Worse,
    /// More than noise, of a metric that is not judged.
    Changed,
}

/// A metric compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Which.
    #[serde(flatten)]
    pub metric: Metric,
    /// The first group.
    pub base: Spread,
    /// The second.
    pub new: Spread,
    /// By how much the second median is larger, in percent of the first; nothing where that is zero.
    pub change_percent: Option<f64>,
    /// The permutation test's p.
    pub p: Option<f64>,
    /// The changes, in percent, that cannot be refused: at least and at most; nothing where there is
    /// no end.
    pub interval_percent: (Option<f64>, Option<f64>),
    /// What it comes to.
    pub finding: Finding,
}

impl Row {
    /// Whether the runs are too few to tell any change from noise, however large, where noise may pass for a change
    /// this often.
    pub fn is_hopeless(&self, alpha: f64) -> bool {
        self.p.is_some() && least_p(self.base.runs, self.new.runs) > alpha
    }
}

/// The least number of runs on a side about which something is said.
pub const FEWEST: usize = 3;

/// Compares two groups. `alpha`: how often noise may pass for a change.
pub fn compare(metrics: &[Metric], base: &Group, new: &Group, alpha: f64) -> Vec<Row> {
    let row = |(at, metric): (usize, &Metric)| {
        let (b, n) = (base.values(at), new.values(at));
        (!b.is_empty() && !n.is_empty()).then(|| compare_values(metric, &b, &n, alpha))
    };
    metrics.iter().enumerate().filter_map(row).collect()
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
        interval_percent: (None, None),
        finding: Finding::TooFew,
    };
    if base.len() < FEWEST || new.len() < FEWEST {
        return row;
    }
    let p = p_value(base, new);
    row.p = Some(p);
    row.interval_percent = test::interval(base, new, alpha);
    row.finding = match (p <= alpha, metric.better) {
        (false, _) => Finding::Noise,
        (true, Better::Neither) => Finding::Changed,
        (true, Better::Less) if n.median < b.median => Finding::Better,
        (true, Better::Less) => Finding::Worse,
    };
    row
}

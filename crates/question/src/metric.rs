//! The numbers of a run that can be compared with those of other runs.

use serde::Serialize;
use std::borrow::Cow;

/// The direction in which a metric improves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// Smaller values are better.
    Less,
    /// Larger values are better.
    More,
    /// Neither direction is better: the metric is reported, not judged.
    Neither,
}

/// A quantity for which each run has a number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Metric {
    /// The name of the metric in options: `wakeup-p99`.
    pub key: Cow<'static, str>,
    /// The name of the metric in texts and figures, with its unit: `wakeup p99, ms`.
    pub name: String,
    /// The name in a row below that of the metric's group: `  p99, ms`.
    #[serde(skip)]
    pub row: String,
    /// The direction in which the metric improves.
    pub better: Better,
}

impl Metric {
    /// A metric with a row of its own.
    pub fn of(key: impl Into<Cow<'static, str>>, name: &str, better: Better) -> Metric {
        Metric { key: key.into(), name: name.to_owned(), row: name.to_owned(), better }
    }

    /// A metric in a row below that of `group`: `p99, ms` below `wakeup`.
    pub fn part(key: impl Into<Cow<'static, str>>, group: &str, name: &str, better: Better) -> Metric {
        Metric { key: key.into(), name: format!("{group} {name}"), row: format!("  {name}"), better }
    }
}

/// A metric, and the function that finds its value in a report.
#[derive(Clone, Debug)]
pub struct MetricOf<R> {
    /// The metric, with its names.
    pub metric: Metric,
    /// Returns the value of a run; nothing where the report has none.
    pub value: fn(&R) -> Option<f64>,
}

/// The median and the range of the numbers of some runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Spread {
    /// The number of runs.
    pub runs: usize,
    /// The median; for an even number of runs the mean of the two in the middle.
    pub median: f64,
    /// The minimum of the runs.
    pub min: f64,
    /// The maximum of the runs.
    pub max: f64,
}

impl Spread {
    /// Returns the spread of these values.
    pub fn of(values: &[f64]) -> Spread {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |i: usize| sorted.get(i).copied().unwrap_or(0.0);
        let runs = sorted.len();
        Spread { runs, median: median(&sorted), min: at(0), max: at(runs.saturating_sub(1)) }
    }

    /// Returns half the range in percent of the median; zero if the median is zero.
    pub fn percent(&self) -> f64 {
        if self.median == 0.0 { 0.0 } else { (50.0 * (self.max - self.min) / self.median).abs() }
    }
}

/// Returns the median of sorted values; zero if there are none.
pub fn median(sorted: &[f64]) -> f64 {
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}

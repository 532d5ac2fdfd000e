//! Predictions from some runs, beside runs that were measured under the other policy.

use crate::measures::RunFigures;
use crate::report::{Estimate, PolicyRow, Prediction};
use question::Spread;
use serde::Serialize;

/// The number of a run that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SkillMetric {
    /// The elapsed time, in nanoseconds.
    Elapsed,
    /// The time in violation, in nanoseconds.
    Violation,
    /// The CPU time lost in violation, in nanoseconds.
    CpuTimeLost,
    /// The mean wait in run queues, in nanoseconds.
    MeanWait,
}

impl SkillMetric {
    /// Every number, in the order of the rows.
    pub const ALL: [SkillMetric; 4] =
        [SkillMetric::Elapsed, SkillMetric::Violation, SkillMetric::CpuTimeLost, SkillMetric::MeanWait];

    /// The words for the number in tables.
    pub fn words(self) -> &'static str {
        match self {
            SkillMetric::Elapsed => "elapsed",
            SkillMetric::Violation => "violation",
            SkillMetric::CpuTimeLost => "CPU time lost",
            SkillMetric::MeanWait => "mean wait",
        }
    }

    fn measured(self, figures: &RunFigures) -> f64 {
        (match self {
            SkillMetric::Elapsed => figures.elapsed_ns.0,
            SkillMetric::Violation => figures.violation_ns.0,
            SkillMetric::CpuTimeLost => figures.cpu_time_lost_ns.0,
            SkillMetric::MeanWait => figures.waits.mean_ns.map_or(0, |mean| mean.0),
        }) as f64
    }

    fn predicted(self, row: &PolicyRow) -> Estimate {
        match self {
            SkillMetric::Elapsed => row.elapsed_ns,
            SkillMetric::Violation => row.violation_ns,
            SkillMetric::CpuTimeLost => row.cpu_time_lost_ns,
            SkillMetric::MeanWait => row.mean_wait_ns,
        }
    }
}

/// The quality of the predictions of one number by one policy.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Skill {
    /// The policy that was predicted.
    pub policy: String,
    /// The number that was predicted.
    pub metric: SkillMetric,
    /// The number of runs with a prediction.
    pub predictions: usize,
    /// The number of runs that were measured.
    pub measured: usize,
    /// The median of the number in the runs that were predicted from.
    pub from_median: f64,
    /// The median of the predictions.
    pub predicted_median: f64,
    /// The median of the number in the measured runs.
    pub measured_median: f64,
    /// Whether the predicted and the measured change have the same sign.
    pub direction_is_right: bool,
    /// The error of the median prediction divided by that of "nothing changes": below 1 the prediction is better. Absent where the
    /// median did not change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skill: Option<f64>,
    /// The number of stated intervals that hold the median of the measured runs.
    pub held: usize,
    /// The number of measured runs between the lowest and the highest end of all stated intervals.
    pub within_all: usize,
}

fn median(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { Spread::of(values).median }
}

/// Compares predictions with measured runs; empty where there are none of either.
pub(crate) fn skills(predictions: &[&Prediction], measured: &[RunFigures]) -> Vec<Skill> {
    let usable: Vec<&&Prediction> = predictions.iter().filter(|one| !one.rows.is_empty()).collect();
    let (Some(first), false) = (usable.first(), measured.is_empty()) else { return Vec::new() };
    let policies = first.rows.iter().enumerate().filter(|(_, row)| row.policy != "observed");
    let of = |(at, row): (usize, &PolicyRow)| {
        SkillMetric::ALL.map(|metric| skill(&usable, measured, (at, &row.policy), metric))
    };
    policies.flat_map(of).collect()
}

fn skill(usable: &[&&Prediction], measured: &[RunFigures], (at, policy): (usize, &str), metric: SkillMetric) -> Skill {
    let estimates: Vec<Estimate> = usable.iter().map(|one| metric.predicted(&one.rows[at])).collect();
    let from: Vec<f64> = usable.iter().map(|one| metric.measured(&one.trace)).collect();
    let truths: Vec<f64> = measured.iter().map(|figures| metric.measured(figures)).collect();
    let values: Vec<f64> = estimates.iter().map(|estimate| estimate.value).collect();
    let [from_median, predicted_median, measured_median] = [&from, &values, &truths].map(|values| median(values));
    let low = estimates.iter().map(|estimate| estimate.low).fold(f64::INFINITY, f64::min);
    let high = estimates.iter().map(|estimate| estimate.high).fold(0.0, f64::max);
    let nothing = (from_median - measured_median).abs();
    Skill {
        policy: policy.to_owned(),
        metric,
        predictions: estimates.len(),
        measured: truths.len(),
        from_median,
        predicted_median,
        measured_median,
        direction_is_right: (predicted_median - from_median) * (measured_median - from_median) > 0.0,
        skill: (nothing > 0.0).then(|| (predicted_median - measured_median).abs() / nothing),
        held: estimates.iter().filter(|estimate| estimate.holds(measured_median)).count(),
        within_all: truths.iter().filter(|truth| (low..=high).contains(truth)).count(),
    }
}

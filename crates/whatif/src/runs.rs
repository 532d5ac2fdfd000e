//! The predictions from the runs of a group: medians, spread, and the coverage of the stated intervals.

use crate::report::{Estimate, PolicyRow, Prediction};
use question::Spread;
use serde::Serialize;

/// The predictions of a number from the runs of a group.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GroupEstimate {
    /// The median and the range of the predictions.
    pub predicted: Spread,
    /// The number of stated intervals that hold that median: few where the runs differ by more than the trace leaves open.
    pub held: usize,
}

/// The predictions for a policy from the runs of a group.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GroupPolicy {
    /// The name of the policy.
    pub policy: String,
    /// The elapsed time, in nanoseconds.
    pub elapsed_ns: GroupEstimate,
    /// The change of the elapsed time against the trace of each run, in percent.
    pub change_percent: Spread,
    /// The time in violation of work conservation, in nanoseconds.
    pub violation_ns: GroupEstimate,
}

/// The predictions from the runs of a group.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WhatifGroup {
    /// The name of the group; absent for the runs that are in none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The number of runs.
    pub runs: usize,
    /// The number of runs that can be predicted from.
    pub predicted_runs: usize,
    /// The elapsed time of the traces, in nanoseconds.
    pub elapsed_ns: Spread,
    /// The time in violation in the traces, in nanoseconds.
    pub violation_ns: Spread,
    /// The predictions for each policy but the trace's own, from the runs that can be predicted from.
    pub policies: Vec<GroupPolicy>,
}

/// Returns the groups of several runs, each given with the name of its group, in the order in which they come; empty for a single run.
pub(crate) fn predictions_of_groups(runs: &[(Option<&str>, &Prediction)]) -> Vec<WhatifGroup> {
    if runs.len() < 2 {
        return Vec::new();
    }
    let mut names: Vec<Option<&str>> = Vec::new();
    for (name, _) in runs {
        if !names.contains(name) {
            names.push(*name);
        }
    }
    let of = |name: Option<&str>| {
        let of_group: Vec<&Prediction> =
            runs.iter().filter(|(group, _)| *group == name).map(|(_, prediction)| *prediction).collect();
        group(name, &of_group)
    };
    names.into_iter().map(of).collect()
}

fn group(name: Option<&str>, runs: &[&Prediction]) -> WhatifGroup {
    let spread = |number: &dyn Fn(&Prediction) -> u64| {
        Spread::of(&runs.iter().map(|run| number(run) as f64).collect::<Vec<_>>())
    };
    let predicted: Vec<&Prediction> = runs.iter().copied().filter(|run| !run.rows.is_empty()).collect();
    let rows = predicted.first().map_or(&[][..], |run| &run.rows);
    let others = rows.iter().enumerate().filter(|(_, row)| row.policy != "observed");
    let policy = |(at, row): (usize, &PolicyRow)| {
        let rows: Vec<&PolicyRow> = predicted.iter().filter_map(|run| run.rows.get(at)).collect();
        let changes: Vec<f64> = rows.iter().filter_map(|row| row.elapsed_ns.change_percent).collect();
        GroupPolicy {
            policy: row.policy.clone(),
            elapsed_ns: estimate(&rows, |row| row.elapsed_ns),
            change_percent: Spread::of(&changes),
            violation_ns: estimate(&rows, |row| row.violation_ns),
        }
    };
    WhatifGroup {
        name: name.map(str::to_owned),
        runs: runs.len(),
        predicted_runs: predicted.len(),
        elapsed_ns: spread(&|run| run.trace.elapsed_ns.0),
        violation_ns: spread(&|run| run.trace.violation_ns.0),
        policies: others.map(policy).collect(),
    }
}

fn estimate(rows: &[&PolicyRow], of: impl Fn(&PolicyRow) -> Estimate) -> GroupEstimate {
    let estimates: Vec<Estimate> = rows.iter().map(|row| of(row)).collect();
    let predicted = Spread::of(&estimates.iter().map(|estimate| estimate.value).collect::<Vec<_>>());
    let held = estimates.iter().filter(|estimate| estimate.holds(predicted.median)).count();
    GroupEstimate { predicted, held }
}

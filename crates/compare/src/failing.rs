//! The findings about the failing runs, for the summary of a CI job.

use crate::measures::Measured;
use crate::{Better, Group, Metric};
use anyhow::Result;
use session::Session;
use session::args::{ReadArgs, WindowArgs};
use session::summary::fenced;
use std::fmt::Write;

/// The maximum number of runs whose findings are in a summary.
const RUNS: usize = 3;

/// Returns the findings about the worst run of each group that exceeds a limit, as Markdown; nothing where no group does. `failed`: the
/// names of these groups, each with the key of the metric that exceeds its limit.
pub(crate) fn findings(
    failed: &[(&str, &str)],
    (groups, metrics): (&[Group], &[Metric]),
    all: &[(String, Vec<Measured>)],
    (read, window): (&ReadArgs, &WindowArgs),
) -> Result<String> {
    let mut out = String::new();
    let mut shown: Vec<&Measured> = Vec::new();
    for (group, key) in failed {
        let Some((run, metric)) = worst(group, key, (groups, metrics), all) else { continue };
        if shown.len() == RUNS || shown.iter().any(|other| other.path == run.path) {
            continue;
        }
        shown.push(run);
        let session = Session::open(&run.path, &read.silent(), window)?.with_judged_command()?;
        let report = findings::measured(&session)?.output;
        // Writing to a string cannot fail.
        let _ = write!(out, "\n\nThe worst run of {group} by {}: `{}`\n\n", metric.name, run.name);
        out += &fenced(&findings::text(&report, &session.drawable));
    }
    Ok(out)
}

/// The run of a group with the worst value of a metric.
fn worst<'m>(
    group: &str,
    key: &str,
    (groups, metrics): (&[Group], &'m [Metric]),
    all: &'m [(String, Vec<Measured>)],
) -> Option<(&'m Measured, &'m Metric)> {
    let place = metrics.iter().position(|metric| metric.key == key)?;
    let metric = &metrics[place];
    let values =
        groups.iter().find(|other| other.name == group)?.runs.iter().map(|run| run.values.get(place).copied()?);
    let (_, runs) = all.iter().find(|(name, _)| name == group)?;
    let sign = if metric.better == Better::More { -1.0 } else { 1.0 };
    let known = runs.iter().zip(values).filter_map(|(run, value)| Some((run, sign * value?)));
    known.max_by(|(_, a), (_, b)| a.total_cmp(b)).map(|(run, _)| (run, metric))
}

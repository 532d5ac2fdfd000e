//! The numbers of a run that `schedviz compare` compares.

use crate::{PicksReport, Reason, Recorded};
use question::Better::{Less, Neither};
use question::{Metric, MetricOf};
use sched::Dur;

/// The report, if it has the kernel's numbers: possible reasons are not compared.
fn recorded(report: &PicksReport) -> Option<&PicksReport> {
    let is_whole = report.recorded == Recorded::Numbers && report.picks.is_some();
    is_whole.then_some(report)
}

fn ms(length: Dur) -> f64 {
    length.0 as f64 / 1e6
}

/// Returns the picks, those that no rule explains, those in spite of a protected slice, and the missed deadlines, where the kernel's numbers
/// were recorded.
pub fn metrics() -> Vec<MetricOf<PicksReport>> {
    vec![
        MetricOf { metric: Metric::of("picks", "picks", Neither), value: |r| Some(recorded(r)?.picks? as f64) },
        MetricOf {
            metric: Metric::part("picks-unexplained", "picks", "unexplained", Less),
            value: |r| {
                let row = recorded(r)?.reasons.iter().find(|row| row.reason == Reason::Unexplained);
                Some(row.map_or(0, |row| row.picks) as f64)
            },
        },
        MetricOf {
            metric: Metric::part("picks-in-spite", "picks", "in spite of protection", Neither),
            value: |r| Some(recorded(r)?.reasons.iter().map(|row| row.in_spite_of_protection).sum::<u64>() as f64),
        },
        MetricOf {
            metric: Metric::part("picks-late", "picks", "behind their deadline", Less),
            value: |r| Some(recorded(r)?.late?.count as f64),
        },
        MetricOf {
            metric: Metric::part("picks-late-p99", "picks", "late p99, ms", Less),
            value: |r| recorded(r)?.late?.p99_ns.map(ms),
        },
    ]
}

//! The numbers of a run that `schedviz compare` compares.

use crate::{Kind, PreemptionsReport, Source};
use question::Better::{Less, Neither};
use question::{Metric, MetricOf};
use sched::{Dur, Lengths};

/// The times from requests to the switches of preempted tasks, in one distribution; nothing where requests were not recorded.
fn taken(report: &PreemptionsReport) -> Option<Lengths> {
    let is_whole = report.source == Source::Probe && report.requests.is_some();
    is_whole.then(|| {
        let mut all = Lengths::default();
        report.panels.iter().filter(|(name, _)| name.contains("to switch")).for_each(|(_, lengths)| all.merge(lengths));
        all
    })
}

fn ms(length: Dur) -> f64 {
    length.0 as f64 / 1e6
}

/// Returns the times from requests to switches, the number of lazy requests, and the switches that these saved, where requests were recorded.
pub fn metrics() -> Vec<MetricOf<PreemptionsReport>> {
    vec![
        MetricOf {
            metric: Metric::of("request-p50", "request to switch p50, ms", Less),
            value: |r| taken(r)?.summary().p50_ns.map(ms),
        },
        MetricOf {
            metric: Metric::part("request-p99", "request to switch", "p99, ms", Less),
            value: |r| taken(r)?.summary().p99_ns.map(ms),
        },
        MetricOf {
            metric: Metric::part("request-lazy", "request to switch", "lazy requests", Neither),
            value: |r| {
                taken(r)?;
                let lazy = r.ways.iter().filter(|way| way.kind == Kind::Lazy);
                Some(lazy.map(|way| way.at_most.count).sum::<u64>() as f64)
            },
        },
        MetricOf {
            metric: Metric::part("request-saved", "request to switch", "switches saved", Neither),
            value: |r| {
                taken(r)?;
                r.switches_saved.map(|number| number as f64)
            },
        },
    ]
}

//! The numbers of a run that `schedviz compare` compares.

use crate::WhyReport;
use question::Better::Less;
use question::{Metric, MetricOf};
use sched::Dur;

/// Returns the waiting and the idling in violation, and the missed steals.
pub fn metrics() -> Vec<MetricOf<WhyReport>> {
    vec![
        MetricOf {
            metric: Metric::part("waiting", "violation", "waiting, s", Less),
            value: |r| Some(r.waiting.as_ref()?.total_ns.seconds()),
        },
        MetricOf {
            metric: Metric::part("idling", "violation", "idling, s", Less),
            value: |r| Some(r.idling.as_ref()?.total_ns.seconds()),
        },
        MetricOf {
            metric: Metric::of("missed-steals", "missed steals", Less),
            value: |r| Some(r.missed.as_ref()?.number as f64),
        },
        MetricOf {
            metric: Metric::part("missed-steals-llc", "missed steals", "within LLC", Less),
            value: |r| Some(r.missed.as_ref()?.within_llc? as f64),
        },
        MetricOf {
            metric: Metric::part("missed-steals-idling", "missed steals", "idling, s", Less),
            value: |r| Some(Dur(r.missed.as_ref()?.by_distance.iter().map(|row| row.violated_ns).sum()).seconds()),
        },
    ]
}

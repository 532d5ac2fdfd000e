//! The numbers of a run that `schedviz compare` compares.

use crate::{LatencyReport, Measure};
use question::Better::Less;
use question::{Metric, MetricOf};
use sched::Dur;

fn ms(length: Dur) -> f64 {
    length.0 as f64 / 1e6
}

/// Returns the percentiles and the maxima of wakeup latency and of waits after a preemption.
pub fn metrics() -> Vec<MetricOf<LatencyReport>> {
    vec![
        MetricOf {
            metric: Metric::of("wakeup-p50", "wakeup p50, ms", Less),
            value: |r| r.of(Measure::Wakeup).p50_ns.map(ms),
        },
        MetricOf {
            metric: Metric::part("wakeup-p99", "wakeup", "p99, ms", Less),
            value: |r| r.of(Measure::Wakeup).p99_ns.map(ms),
        },
        MetricOf {
            metric: Metric::part("wakeup-max", "wakeup", "max, ms", Less),
            value: |r| r.of(Measure::Wakeup).max_ns.map(ms),
        },
        MetricOf {
            metric: Metric::of("wait-p50", "preempted p50, ms", Less),
            value: |r| r.of(Measure::Preempted).p50_ns.map(ms),
        },
        MetricOf {
            metric: Metric::part("wait-p99", "preempted", "p99, ms", Less),
            value: |r| r.of(Measure::Preempted).p99_ns.map(ms),
        },
        MetricOf {
            metric: Metric::part("wait-max", "preempted", "max, ms", Less),
            value: |r| r.of(Measure::Preempted).max_ns.map(ms),
        },
    ]
}

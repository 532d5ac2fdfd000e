//! The numbers of a run that `schedviz compare` compares.

use crate::Report;
use question::Better::Less;
use question::{Metric, MetricOf};
use sched::Dur;

/// Returns the violation in percent of the time and of the CPU time, that of episodes from 1 ms on, and the shares of the time in which tasks
/// were held back and queues unbalanced.
pub fn metrics() -> Vec<MetricOf<Report>> {
    vec![
        MetricOf {
            metric: Metric::of("violation", "violation, %", Less),
            value: |r| Some(r.violation.as_ref()?.percent),
        },
        MetricOf {
            metric: Metric::part("cpu-time-lost", "violation", "CPU time lost, %", Less),
            value: |r| Some(r.violation.as_ref()?.cpu_time_lost_percent),
        },
        MetricOf {
            metric: Metric::part("violation-1ms", "violation", "from 1 ms, %", Less),
            value: |r| Some(r.from_length(Dur(1_000_000))?.percent),
        },
        MetricOf { metric: Metric::of("held-back", "held back, %", Less), value: |r| Some(r.held_back?.percent) },
        MetricOf {
            metric: Metric::of("unbalanced", "unbalanced, %", Less),
            value: |r| Some(r.unbalanced.as_ref()?.percent),
        },
    ]
}

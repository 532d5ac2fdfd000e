//! The numbers of a run that `schedviz compare` compares.

use crate::TraceColumns;
use question::Better::Neither;
use question::{Metric, MetricOf};
use sched::Cause;

fn moved(columns: &TraceColumns, causes: &[Cause]) -> Option<f64> {
    Some(causes.iter().map(|cause| columns.migrations[*cause as usize]).sum::<u64>() as f64)
}

/// Returns the columns of the task-stealing series, and migrations by cause.
pub fn metrics() -> Vec<MetricOf<TraceColumns>> {
    let mut all: Vec<MetricOf<TraceColumns>> = vec![
        MetricOf { metric: Metric::of("busy", "%busy", Neither), value: |c| c.columns.busy_percent },
        MetricOf { metric: Metric::of("slice", "slice, ms", Neither), value: |c| c.columns.slice_ms },
        MetricOf { metric: Metric::of("sched", "sched per CPU", Neither), value: |c| Some(c.columns.sched) },
        MetricOf { metric: Metric::of("idle", "idle per CPU", Neither), value: |c| Some(c.columns.idle) },
        MetricOf { metric: Metric::of("wake", "wake per CPU", Neither), value: |c| Some(c.columns.wake) },
        MetricOf { metric: Metric::of("steal", "steal per CPU", Neither), value: |c| c.columns.steal },
        MetricOf {
            metric: Metric::of("migrations", "migrations", Neither),
            value: |c| Some(c.migrations.iter().sum::<u64>() as f64),
        },
    ];
    all.extend(migrations());
    all
}

/// The migrations of each cause, or of causes that are alike.
fn migrations() -> Vec<MetricOf<TraceColumns>> {
    type Value = fn(&TraceColumns) -> Option<f64>;
    let causes: [(&'static str, &str, Value); 11] = [
        ("migrations-wakeup", "wakeup", |c| moved(c, &[Cause::Wakeup])),
        ("migrations-newidle", "new-idle pull", |c| moved(c, &[Cause::NewIdle])),
        ("migrations-idle", "idle balance", |c| moved(c, &[Cause::Idle])),
        ("migrations-periodic", "periodic", |c| moved(c, &[Cause::Periodic])),
        ("migrations-nohz-idle", "nohz idle (ILB)", |c| moved(c, &[Cause::NohzIdle])),
        ("migrations-sleepers", "of sleepers", |c| {
            moved(c, &[Cause::NewIdleSleeper, Cause::IdleSleeper, Cause::PeriodicSleeper, Cause::NohzIdleSleeper])
        }),
        ("migrations-active", "active balance", |c| moved(c, &[Cause::Active])),
        ("migrations-affinity", "affinity", |c| moved(c, &[Cause::Affinity])),
        ("migrations-exec", "exec", |c| moved(c, &[Cause::Exec])),
        ("migrations-numa", "NUMA", |c| moved(c, &[Cause::NumaMove, Cause::NumaSwap])),
        ("migrations-other", "others", |c| moved(c, &[Cause::Stopper, Cause::RealTime, Cause::Unknown])),
    ];
    let named = causes.into_iter();
    named.map(|(key, name, value)| MetricOf { metric: Metric::part(key, "migrations", name, Neither), value }).collect()
}

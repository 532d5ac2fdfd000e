//! Which commands run, by samples of the trace.

use super::Trace;
use crate::decode::plan::{Plan, Want};
use crate::ring::unit::CpuPages;
use sched::{Comm, Dur, Kind};
use std::collections::BTreeMap;

/// Number of units of all CPUs together that are looked at, or two of each.
const SAMPLES: usize = 128;

impl Trace {
    /// The commands that ran, each with its time in samples that lie at equal distances in the data of each CPU. Of a
    /// small trace that is all of it.
    pub fn sampled_commands(&self) -> BTreeMap<Comm, Dur> {
        let plan = self.plan(Want::Switches);
        let lanes = self.selected_lanes();
        let each = SAMPLES.checked_div(lanes.len()).unwrap_or(0).max(2);
        let samples = lanes.iter().flat_map(|(_, pages)| places(pages.units(), each).map(|unit| (*pages, unit)));
        let mut times: BTreeMap<Comm, Dur> = BTreeMap::new();
        for sampled in self.in_parallel(samples.collect(), |(pages, unit)| self.sample(pages, unit, &plan)) {
            for (comm, time) in sampled {
                *times.entry(comm).or_default() += time;
            }
        }
        times
    }

    /// The tasks that ran in a unit, each until the next.
    fn sample(&self, pages: &CpuPages, unit: usize, plan: &Plan) -> Vec<(Comm, Dur)> {
        let items = self.decode(pages, unit, plan, &[], Vec::new()).items;
        let mut since = items.first().map(|event| event.ts);
        let mut ran = Vec::new();
        for event in &items {
            let (Kind::Switch { prev, .. }, Some(start)) = (&event.kind, since) else { continue };
            if !prev.pid.is_idle() && !prev.comm.is_empty() {
                ran.push((prev.comm, event.ts.since(start)));
            }
            since = Some(event.ts);
        }
        ran
    }
}

/// At most this number of `units`, at equal distances.
fn places(units: usize, most: usize) -> impl Iterator<Item = usize> {
    let count = units.min(most);
    (0..count).map(move |nth| nth.saturating_mul(units).checked_div(count).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_lie_at_equal_distances() {
        assert_eq!(places(5, 8).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
        assert_eq!(places(1000, 4).collect::<Vec<_>>(), [0, 250, 500, 750]);
        assert_eq!(places(0, 4).count(), 0);
    }
}

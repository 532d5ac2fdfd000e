//! The tasks and commands that run, by samples of the trace.

use super::Trace;
use crate::decode::plan::{Plan, Want};
use crate::ring::unit::CpuPages;
use sched::{Comm, Dur, Kind, Pid};
use std::collections::BTreeMap;

/// Number of units of all CPUs together that are looked at, or two of each.
const SAMPLES: usize = 128;

impl Trace {
    /// Returns the commands that ran, each with its time in the samples of [`Trace::sampled_runs`].
    pub fn sampled_commands(&self) -> BTreeMap<Comm, Dur> {
        let mut times: BTreeMap<Comm, Dur> = BTreeMap::new();
        for ((_, comm), time) in self.sampled_runs() {
            *times.entry(comm).or_default() += time;
        }
        times.remove(&Comm::EMPTY);
        times
    }

    /// Returns the tasks that ran, each with its time in the samples of [`Trace::sampled_runs`].
    pub fn sampled_tasks(&self) -> BTreeMap<Pid, Dur> {
        let mut times: BTreeMap<Pid, Dur> = BTreeMap::new();
        for ((pid, _), time) in self.sampled_runs() {
            *times.entry(pid).or_default() += time;
        }
        times
    }

    /// Returns the tasks that ran by their names, each with its time in samples that lie at equal distances in the data
    /// of each CPU. The samples of a small trace are all of it.
    pub fn sampled_runs(&self) -> BTreeMap<(Pid, Comm), Dur> {
        let plan = self.plan(Want::Switches);
        let lanes = self.selected_lanes();
        let each = SAMPLES.checked_div(lanes.len()).unwrap_or(0).max(2);
        let samples = lanes.iter().flat_map(|(_, pages)| places(pages.units(), each).map(|unit| (*pages, unit)));
        let mut times: BTreeMap<(Pid, Comm), Dur> = BTreeMap::new();
        for sampled in self.in_parallel(samples.collect(), |(pages, unit)| self.sample(pages, unit, &plan)) {
            for (task, time) in sampled {
                *times.entry(task).or_default() += time;
            }
        }
        times
    }

    /// Returns the runs that ended in a unit.
    fn sample(&self, pages: &CpuPages, unit: usize, plan: &Plan) -> Vec<((Pid, Comm), Dur)> {
        let items = self.decode(pages, unit, plan, &[], Vec::new()).items;
        let mut since = items.first().map(|event| event.ts);
        let mut ran = Vec::new();
        for event in &items {
            let (Kind::Switch { prev, .. }, Some(start)) = (&event.kind, since) else { continue };
            if !prev.pid.is_idle() {
                ran.push(((prev.pid, prev.comm), event.ts.since(start)));
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

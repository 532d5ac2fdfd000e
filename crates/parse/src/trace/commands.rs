//! The tasks and commands that run, by samples of the trace.

use super::Trace;
use crate::decode::plan::Want;
use crate::ring::unit::CpuPages;
use sched::{Comm, Cpu, Dur, EventKind, Pid, SchedEvent, Ts};
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
        if let Some(note) = self.note() {
            return note.sampled.iter().map(|sampled| ((sampled.pid, sampled.comm), Dur(sampled.ns))).collect();
        }
        let mut times: BTreeMap<(Pid, Comm), Dur> = BTreeMap::new();
        for (task, time) in self.samples(SAMPLES, |_, events, _| runs(events)).into_iter().flatten() {
            *times.entry(task).or_default() += time;
        }
        times
    }

    /// Runs `work` on samples that lie at equal distances in the data of each CPU: at most this number of all CPUs together,
    /// or two of each. A sample has the CPU, its switches and losses in a piece of its data, and the time of the last
    /// record there. The results are in the order of the CPUs' data, those of each CPU in the order of time.
    pub fn samples<O: Send>(&self, most: usize, work: impl Fn(Cpu, &[SchedEvent], Ts) -> O + Sync) -> Vec<O> {
        let plan = self.plan(Want::Switches);
        let lanes = self.selected_lanes();
        let each = most.checked_div(lanes.len()).unwrap_or(0).max(2);
        let samples = lanes.iter().flat_map(|(_, pages)| places(pages.units(), each).map(|unit| (*pages, unit)));
        let sample = |(pages, unit): (&CpuPages, usize)| {
            let unit = self.decode(pages, unit, &plan, &[], Vec::new());
            unit.last.map(|last| work(pages.cpu, &unit.items, last))
        };
        self.in_parallel(samples.collect(), sample).into_iter().flatten().collect()
    }
}

/// Returns the runs that ended in a sample.
fn runs(events: &[SchedEvent]) -> Vec<((Pid, Comm), Dur)> {
    let mut since = events.first().map(|event| event.ts);
    let mut ran = Vec::new();
    for event in events {
        let (EventKind::Switch { prev, .. }, Some(start)) = (&event.kind, since) else { continue };
        if !prev.pid.is_idle() {
            ran.push(((prev.pid, prev.comm), event.ts.since(start)));
        }
        since = Some(event.ts);
    }
    ran
}

/// Returns the numbers of at most `most` units among `units`, at equal distances.
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

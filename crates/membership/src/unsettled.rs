//! Runs of tasks within which a property changed without an event that shows when.

use crate::by_task::{MOST_CHANGES, place_at};
use sched::limits::PIDS;
use sched::seeded::SeededMap;
use sched::{Cpu, Pid, Ts};

/// The two values of a property of a task within a run: that at its switch-in and that at its switch-out.
pub(crate) type BothValues<T> = (T, T);

/// The start of a run, with its end and both values.
type UnsettledRun<T> = (Ts, (Ts, BothValues<T>));

/// The runs within which a property of their task changed at an unknown instant.
#[derive(Clone, Debug)]
pub(crate) struct UnsettledRuns<T> {
    /// The runs of each task, in the order of time.
    of: SeededMap<Pid, Vec<UnsettledRun<T>>>,
    runs: usize,
}

impl<T> Default for UnsettledRuns<T> {
    fn default() -> UnsettledRuns<T> {
        UnsettledRuns { of: SeededMap::default(), runs: 0 }
    }
}

impl<T: Copy> UnsettledRuns<T> {
    /// Adds a run of a task, behind all of its earlier ones.
    pub(crate) fn add(&mut self, pid: Pid, start: Ts, end: Ts, values: BothValues<T>) {
        if self.runs >= MOST_CHANGES || (self.of.len() >= PIDS && !self.of.contains_key(&pid)) || start >= end {
            return;
        }
        let runs = self.of.entry(pid).or_default();
        if runs.last().is_none_or(|(_, (before, _))| *before <= start) {
            runs.push((start, (end, values)));
            self.runs += 1;
        }
    }

    /// Both values of a task at an instant within such a run; nothing elsewhere.
    pub(crate) fn at(&self, pid: Pid, ts: Ts) -> Option<BothValues<T>> {
        let runs = self.of.get(&pid)?;
        let (_, (end, values)) = runs[place_at(runs, ts)?];
        (ts < end).then_some(values)
    }

    /// The first instant after `ts` at which such a run of a task begins or ends.
    pub(crate) fn next_change(&self, pid: Pid, ts: Ts) -> Option<Ts> {
        let runs = self.of.get(&pid)?;
        let end = place_at(runs, ts).map(|place| runs[place].1.0).filter(|end| *end > ts);
        let start = runs.get(runs.partition_point(|(start, _)| *start <= ts)).map(|(start, _)| *start);
        [end, start].into_iter().flatten().min()
    }
}

/// The start of the run of each CPU's task, by the switches.
#[derive(Debug, Default)]
pub(crate) struct RunStarts {
    of: SeededMap<Cpu, Option<(Pid, Ts)>>,
}

impl RunStarts {
    /// A CPU switches from `prev` to `next`. Returns the start of the run that ends, the start of time for the first task of a CPU; nothing
    /// where no switch shows it.
    pub(crate) fn switch(&mut self, cpu: Cpu, prev: Pid, next: Pid, ts: Ts) -> Option<Ts> {
        match self.of.insert(cpu, Some((next, ts))) {
            None => Some(Ts::MIN),
            Some(run) => run.filter(|(pid, _)| *pid == prev).map(|(_, start)| start),
        }
    }

    /// Events of a CPU are missing.
    pub(crate) fn lose(&mut self, cpu: Cpu) {
        self.of.insert(cpu, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_has_both_values_from_its_start_to_its_end() {
        let mut runs = UnsettledRuns::default();
        runs.add(Pid(7), Ts(10), Ts(20), (1, 2));
        runs.add(Pid(7), Ts(30), Ts(40), (2, 1));
        // One that begins before the end of the latest is none of the order of time.
        runs.add(Pid(7), Ts(35), Ts(50), (3, 4));
        let at = |ts| runs.at(Pid(7), Ts(ts));
        assert_eq!([9, 10, 19, 20, 30, 40].map(at), [None, Some((1, 2)), Some((1, 2)), None, Some((2, 1)), None]);
        let next = |ts| runs.next_change(Pid(7), Ts(ts)).map(|ts| ts.0);
        assert_eq!([0, 10, 20, 30, 40].map(next), [Some(10), Some(20), Some(30), Some(40), None]);
    }

    #[test]
    fn a_run_begins_at_its_switch_in_or_with_the_trace() {
        let mut starts = RunStarts::default();
        assert_eq!(starts.switch(Cpu(0), Pid(1), Pid(2), Ts(5)), Some(Ts::MIN));
        assert_eq!(starts.switch(Cpu(0), Pid(2), Pid(3), Ts(9)), Some(Ts(5)));
        // A switch that was not recorded, and a loss.
        assert_eq!(starts.switch(Cpu(0), Pid(4), Pid(5), Ts(12)), None);
        starts.lose(Cpu(0));
        assert_eq!(starts.switch(Cpu(0), Pid(5), Pid(6), Ts(15)), None);
    }
}

//! The time for which some CPU is held back: the union of the long pending switches.

use sched::Ts;
use serde::Serialize;

/// Maximum number of stretches that can still grow. Beyond it the older half is settled.
const MOST: usize = 1 << 16;

/// Time for which CPUs idled beside their own waiting tasks for 1 ms or longer (`docs/questions/workcons.md#held-back-and-unbalanced`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HeldBack {
    /// The time for which some CPU was held back, in nanoseconds.
    pub ns: u64,
    /// The time for which some CPU was held back, in percent of the window.
    pub percent: f64,
    /// The time of all CPUs that were held back, in nanoseconds.
    pub cpu_ns: u64,
    /// The time of all CPUs that were held back, in percent of the window times the CPUs.
    pub cpu_percent: f64,
}

/// The length of the union of intervals that come in the order of their ends.
#[derive(Clone, Debug)]
pub(crate) struct UnionTime {
    /// The length of the stretches that no further interval can reach, in nanoseconds.
    settled: u64,
    /// The end of the last one of these that was settled early.
    floor: Ts,
    /// The others, in ascending order, without overlap.
    stretches: Vec<(Ts, Ts)>,
}

impl Default for UnionTime {
    fn default() -> UnionTime {
        UnionTime { settled: 0, floor: Ts::MIN, stretches: Vec::new() }
    }
}

impl UnionTime {
    /// Adds an interval. No earlier one ends behind it.
    pub(crate) fn add(&mut self, start: Ts, end: Ts) {
        let mut start = start.max(self.floor);
        while let Some((first, _)) = self.stretches.pop_if(|(_, last)| *last >= start) {
            start = start.min(first);
        }
        self.stretches.push((start, end.max(start)));
        if self.stretches.len() > MOST {
            self.floor = self.stretches[MOST / 2 - 1].1;
            self.settle(MOST / 2);
        }
    }

    /// Settles the stretches before an instant, at which no further interval begins, nor before it.
    pub(crate) fn pass(&mut self, before: Ts) {
        let number = self.stretches.partition_point(|(_, end)| *end < before);
        self.settle(number);
    }

    fn settle(&mut self, number: usize) {
        let length: u64 = self.stretches.drain(..number).map(|(start, end)| end.since(start).0).sum();
        self.settled = self.settled.saturating_add(length);
    }

    /// The length of the union so far, in nanoseconds.
    pub(crate) fn ns(&self) -> u64 {
        self.stretches.iter().fold(self.settled, |sum, (start, end)| sum.saturating_add(end.since(*start).0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_that_overlap_count_once() {
        let mut union = UnionTime::default();
        for (start, end) in [(0, 10), (20, 30), (25, 32), (40, 50), (5, 60), (70, 80)] {
            union.add(Ts(start), Ts(end));
        }
        assert_eq!(union.ns(), 60 + 10);
        union.pass(Ts(61));
        union.add(Ts(75), Ts(90));
        assert_eq!((union.settled, union.ns()), (60, 60 + 20));
    }

    #[test]
    fn the_number_of_stretches_is_bounded() {
        let mut union = UnionTime::default();
        for at in 0..2 * MOST as i64 {
            union.add(Ts(10 * at), Ts(10 * at + 1));
        }
        assert!(union.stretches.len() <= MOST);
        assert_eq!(union.ns(), 2 * MOST as u64);
    }
}

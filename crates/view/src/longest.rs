//! The longest intervals of a kind.

use sched::{Comm, Cpu, Pid, Ts};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// An interval of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Interval {
    /// The start.
    pub from: Ts,
    /// The end.
    pub to: Ts,
    /// The CPU that it is on, if it is on one.
    pub cpu: Option<Cpu>,
    /// The task that it is about, if it is about one.
    pub task: Option<(Pid, Comm)>,
}

/// The maximum number of intervals of a list.
pub(crate) const LISTED: usize = 500;

/// The longest intervals, the shortest of them first in the heap.
#[derive(Clone, Debug, Default)]
pub(crate) struct Longest {
    kept: BinaryHeap<Reverse<(u64, Reverse<Interval>)>>,
    /// The number of intervals that were not kept.
    dropped: u64,
}

impl Longest {
    pub(crate) fn add(&mut self, interval: Interval) {
        let length = interval.to.since(interval.from).0;
        if length == 0 {
            return;
        }
        if self.kept.len() == LISTED && self.kept.peek().is_some_and(|Reverse((least, _))| length < *least) {
            self.dropped += 1;
            return;
        }
        self.kept.push(Reverse((length, Reverse(interval))));
        if self.kept.len() > LISTED {
            self.kept.pop();
            self.dropped += 1;
        }
    }

    /// These intervals, besides a number of shorter ones.
    pub(crate) fn of(intervals: &[Interval], dropped: u64) -> Longest {
        let mut longest = Longest { dropped, ..Longest::default() };
        intervals.iter().for_each(|interval| longest.add(*interval));
        longest
    }

    /// The intervals, the longest first, and the number of those that are not among them.
    pub(crate) fn list(&self) -> (Vec<Interval>, u64) {
        let mut all: Vec<_> = self.kept.iter().map(|Reverse(entry)| *entry).collect();
        all.sort_unstable_by(|a, b| b.cmp(a));
        (all.into_iter().map(|(_, Reverse(interval))| interval).collect(), self.dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_are_kept_and_of_equal_ones_the_first() {
        let mut longest = Longest::default();
        for at in 0..2_000i64 {
            let length = at % 1_000;
            longest.add(Interval { from: Ts(at), to: Ts(at + length), cpu: None, task: None });
        }
        let (list, dropped) = longest.list();
        let lengths: Vec<u64> = list.iter().map(|i| i.to.since(i.from).0).collect();
        assert_eq!(lengths, (750..1_000).rev().flat_map(|n| [n, n]).collect::<Vec<u64>>());
        assert_eq!((list[0].from, list[1].from, dropped), (Ts(999), Ts(1_999), 1_998 - 500));
    }
}

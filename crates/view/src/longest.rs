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

/// The items with the greatest lengths, the shortest of them first in the heap. Among equal lengths the lesser item is kept.
#[derive(Clone, Debug)]
pub(crate) struct Longest<T = Interval> {
    kept: BinaryHeap<Reverse<(u64, Reverse<T>)>>,
    /// The number of items that were not kept.
    dropped: u64,
}

impl<T: Ord> Default for Longest<T> {
    fn default() -> Longest<T> {
        Longest { kept: BinaryHeap::new(), dropped: 0 }
    }
}

impl Longest {
    pub(crate) fn add(&mut self, interval: Interval) {
        self.put(interval.to.since(interval.from).0, interval);
    }

    /// These intervals, besides a number of shorter ones.
    pub(crate) fn of(intervals: &[Interval], dropped: u64) -> Longest {
        let mut longest = Longest { dropped, ..Longest::default() };
        intervals.iter().for_each(|interval| longest.add(*interval));
        longest
    }
}

impl<T: Copy + Ord> Longest<T> {
    /// Whether an item of this length, in nanoseconds, may be among the greatest; one that is not is counted.
    #[inline]
    pub(crate) fn takes(&mut self, length: u64) -> bool {
        let is_short = self.kept.len() == LISTED && self.kept.peek().is_some_and(|Reverse((least, _))| length < *least);
        self.dropped += u64::from(is_short && length > 0);
        !is_short && length > 0
    }

    /// Adds an item of this length, in nanoseconds; one without a length is left out.
    pub(crate) fn put(&mut self, length: u64, item: T) {
        if !self.takes(length) {
            return;
        }
        self.kept.push(Reverse((length, Reverse(item))));
        if self.kept.len() > LISTED {
            self.kept.pop();
            self.dropped += 1;
        }
    }

    /// The items, the longest first, and the number of those that are not among them.
    pub(crate) fn list(&self) -> (Vec<T>, u64) {
        let mut all: Vec<_> = self.kept.iter().map(|Reverse(entry)| *entry).collect();
        all.sort_unstable_by(|a, b| b.cmp(a));
        (all.into_iter().map(|(_, Reverse(item))| item).collect(), self.dropped)
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

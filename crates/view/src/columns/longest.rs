//! The longest intervals of a kind.

use sched::{Comm, Cpu, Pid, Ts};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The maximum number of CPUs that a path names.
pub(crate) const NAMED: usize = 6;

/// The CPUs of a wait that migrations continued, in order of time: the first ones and the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CpuPath {
    cpus: [Cpu; NAMED],
    /// The number of all CPUs of the path, the named ones among them.
    number: u32,
}

impl CpuPath {
    /// A path of one CPU.
    pub(crate) fn of(cpu: Cpu) -> CpuPath {
        CpuPath { cpus: [cpu; NAMED], number: 1 }
    }

    /// The CPUs that are named, and the number of all of them; nothing if these are not those of a path.
    pub(crate) fn known(cpus: &[Cpu], number: u32) -> Option<CpuPath> {
        let (first, more) = cpus.split_first()?;
        let named = more.iter().fold(CpuPath::of(*first), |path, cpu| path.and(*cpu));
        (named.number as usize == NAMED.min(number as usize) && cpus.len() == named.number as usize)
            .then_some(CpuPath { number, ..named })
    }

    /// The path with one more CPU at its end.
    pub(crate) fn and(mut self, cpu: Cpu) -> CpuPath {
        // The last place is that of the last CPU.
        let place = (self.number as usize).min(NAMED - 1);
        self.cpus[place..].fill(cpu);
        self.number = self.number.saturating_add(1);
        self
    }

    /// The CPUs that are named: all but some before the last.
    pub fn named(&self) -> &[Cpu] {
        self.cpus.get(..self.number as usize).unwrap_or(&self.cpus)
    }

    /// The number of all CPUs; one that it came back to counts again.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The CPUs of the path in words.
    pub(crate) fn text(&self) -> String {
        let named: Vec<String> = self.named().iter().map(Cpu::to_string).collect();
        match (named.as_slice(), self.number as usize > NAMED) {
            ([one], _) => format!("CPU {one}"),
            (_, false) => format!("CPUs {}", named.join(", ")),
            ([first @ .., last], true) => format!("CPUs {}, …, {last}", first.join(", ")),
            ([], true) => String::new(),
        }
    }

    /// The first CPU of the path.
    pub fn first(&self) -> Cpu {
        self.cpus[0]
    }
}

/// An interval of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Interval {
    /// The start of the interval, on the clock of the trace.
    pub from: Ts,
    /// The end of the interval, on the clock of the trace.
    pub to: Ts,
    /// The CPUs that it is on, if it is on any: several if migrations continued a wait.
    pub cpus: Option<CpuPath>,
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

    /// A list of these intervals, with the number of shorter ones that were dropped.
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

    /// Adds the items of another list of the same kind.
    pub(crate) fn join(&mut self, other: Longest<T>) {
        self.dropped += other.dropped;
        other.kept.into_iter().for_each(|Reverse((length, Reverse(item)))| self.put(length, item));
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
    fn a_path_names_the_first_cpus_and_the_last() {
        let path = (2..=9).map(Cpu).fold(CpuPath::of(Cpu(1)), CpuPath::and);
        assert_eq!((path.named(), path.number()), (&[1, 2, 3, 4, 5, 9].map(Cpu)[..], 9));
        assert_eq!(CpuPath::known(path.named(), path.number()), Some(path));
        let short = CpuPath::of(Cpu(4)).and(Cpu(0));
        assert_eq!((short.named(), short.number()), (&[Cpu(4), Cpu(0)][..], 2));
        assert_eq!(CpuPath::known(short.named(), short.number()), Some(short));
        for (cpus, number) in [(&[][..], 0), (&[Cpu(1)], 2), (&[Cpu(1), Cpu(2)], 1), (&[Cpu(1); 7], 7)] {
            assert_eq!(CpuPath::known(cpus, number), None, "{cpus:?} {number}");
        }
    }

    #[test]
    fn the_longest_are_kept_and_of_equal_ones_the_first() {
        let mut longest = Longest::default();
        for at in 0..2_000i64 {
            let length = at % 1_000;
            longest.add(Interval { from: Ts(at), to: Ts(at + length), cpus: None, task: None });
        }
        let (list, dropped) = longest.list();
        let lengths: Vec<u64> = list.iter().map(|i| i.to.since(i.from).0).collect();
        assert_eq!(lengths, (750..1_000).rev().flat_map(|n| [n, n]).collect::<Vec<u64>>());
        assert_eq!((list[0].from, list[1].from, dropped), (Ts(999), Ts(1_999), 1_998 - 500));
    }
}

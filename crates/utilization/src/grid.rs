//! Time, added up by interval and class.

use sched::{Dur, Ts};
use timeline::Division;

/// Intervals of equal length, the last one shorter, and a sum for each class in each.
#[derive(Clone, Debug)]
pub(crate) struct Grid {
    from: Ts,
    to: Ts,
    intervals: Division,
    classes: usize,
    /// The first interval that has sums.
    first: usize,
    /// The sums of the intervals from `first` on; those of the last intervals may be missing. Wide enough for the CPUs' time of windows of centuries, which a damaged stamp makes.
    sums: Vec<u128>,
}

impl Grid {
    pub(crate) fn new(from: Ts, to: Ts, width: Dur, classes: usize) -> Grid {
        let intervals = Division::of_width(from, to, width.0);
        Grid { from, to, classes, first: 0, sums: vec![0; intervals.count() * classes], intervals }
    }

    pub(crate) fn width(&self) -> Dur {
        Dur(self.intervals.width())
    }

    /// Forgets all, and has only room for sums from an instant on, as they come.
    pub(crate) fn resume(&mut self, at: Ts) {
        (self.first, self.sums) = (self.intervals.part_of(at), Vec::new());
    }

    /// Time from one instant to another, both inside, goes to a class.
    #[inline]
    pub(crate) fn add(&mut self, class: usize, from: Ts, to: Ts) {
        let Grid { sums, classes, first, .. } = self;
        self.intervals.split(from, to, |interval, start, end| {
            let place = (interval - *first) * *classes + class;
            if place >= sums.len() {
                grow(sums, (interval - *first + 1) * *classes);
            }
            sums[place] += u128::from(end.since(start).0);
        });
    }

    /// Divides the time from one instant to another, both inside, by interval.
    pub(crate) fn split(&mut self, from: Ts, to: Ts, mut take: impl FnMut(usize, u64)) {
        self.intervals.split(from, to, |interval, start, end| take(interval, end.since(start).0));
    }

    /// Moves time of an interval from one class to another; the interval has it.
    pub(crate) fn transfer(&mut self, interval: usize, from: usize, to: usize, ns: u64) {
        let place = (interval - self.first) * self.classes;
        self.sums[place + from] -= u128::from(ns);
        self.sums[place + to] += u128::from(ns);
    }

    /// Adds the sums of a grid that was resumed.
    pub(crate) fn join(&mut self, later: &Grid) {
        let from = (later.first - self.first) * self.classes;
        self.sums[from..].iter_mut().zip(&later.sums).for_each(|(sum, more)| *sum += more);
    }

    /// The start and the length of each interval, and its sums.
    pub(crate) fn intervals(&self) -> impl Iterator<Item = (Ts, Dur, &[u128])> {
        self.sums.chunks(self.classes).enumerate().map(|(i, sums)| {
            let width = self.intervals.width();
            let start = self.from.after(Dur(i as u64 * width));
            (start, Dur(self.to.since(start).0.min(width)), sums)
        })
    }
}

/// Makes room for this number of sums.
#[cold]
#[inline(never)]
fn grow(sums: &mut Vec<u128>, number: usize) {
    sums.resize(number, 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_divided_without_rest() {
        let mut grid = Grid::new(Ts(100), Ts(135), Dur(10), 2);
        grid.add(0, Ts(105), Ts(109));
        grid.add(1, Ts(109), Ts(111));
        grid.add(0, Ts(111), Ts(131));
        let rows: Vec<_> = grid.intervals().map(|(start, length, sums)| (start.0, length.0, sums.to_vec())).collect();
        assert_eq!(rows, [(100, 10, vec![4, 1]), (110, 10, vec![9, 1]), (120, 10, vec![10, 0]), (130, 5, vec![1, 0])]);
    }
}

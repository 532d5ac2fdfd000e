//! Time, added up by interval and class.

use sched::{Dur, Ts};

/// Intervals of equal length, the last one shorter, and a sum for each class in each.
#[derive(Clone, Debug)]
pub(crate) struct Grid {
    from: Ts,
    to: Ts,
    width: u64,
    classes: usize,
    /// Wide enough for the CPUs' time of windows of centuries, which a damaged stamp makes.
    sums: Vec<u128>,
}

impl Grid {
    pub(crate) fn new(from: Ts, to: Ts, width: Dur, classes: usize) -> Grid {
        let width = width.0.max(1);
        let intervals = to.since(from).0.div_ceil(width).max(1) as usize;
        Grid { from, to, width, classes, sums: vec![0; intervals * classes] }
    }

    pub(crate) fn width(&self) -> Dur {
        Dur(self.width)
    }

    /// Time from one instant to another, both inside, goes to a class.
    pub(crate) fn add(&mut self, class: usize, from: Ts, to: Ts) {
        let (mut at, end) = (from.since(self.from).0, to.since(self.from).0);
        while at < end {
            let interval = at / self.width;
            let next = ((interval + 1) * self.width).min(end);
            self.sums[interval as usize * self.classes + class] += u128::from(next - at);
            at = next;
        }
    }

    /// The start and the length of each interval, and its sums.
    pub(crate) fn intervals(&self) -> impl Iterator<Item = (Ts, Dur, &[u128])> {
        self.sums.chunks(self.classes).enumerate().map(|(i, sums)| {
            let start = self.from.after(Dur(i as u64 * self.width));
            (start, Dur(self.to.since(start).0.min(self.width)), sums)
        })
    }
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

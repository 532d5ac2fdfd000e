//! A window in equal parts, asked for as time passes.

use sched::Ts;

/// The parts of a window, by number or by length. Remembers the part that was asked for last, since
/// the next question is nearly always about the same one and a division costs more than all else.
#[derive(Clone, Debug)]
pub struct Division {
    from: Ts,
    span: u128,
    count: u128,
    /// The length of every part, where it is a whole number.
    whole: Option<u64>,
    /// The part that was asked for last, from its first nanosecond to that of the next.
    part: usize,
    begin: u64,
    end: u64,
}

impl Division {
    /// A number of parts from `from` to `to`.
    pub fn into_parts(from: Ts, to: Ts, count: usize) -> Division {
        Division::new(from, to.since(from).0.max(1).into(), count.max(1) as u128)
    }

    /// Parts of this number of nanoseconds, the last one perhaps shorter.
    pub fn of_width(from: Ts, to: Ts, width: u64) -> Division {
        let width = u128::from(width.max(1));
        let count = u128::from(to.since(from).0).div_ceil(width).max(1);
        Division::new(from, count * width, count)
    }

    fn new(from: Ts, span: u128, count: u128) -> Division {
        let whole = span.is_multiple_of(count).then_some((span / count) as u64);
        let mut division = Division { from, span, count, whole, part: 0, begin: 0, end: 0 };
        division.end = division.end_of(0);
        division
    }

    /// The number of parts.
    pub fn count(&self) -> usize {
        self.count as usize
    }

    /// The length of a part, in nanoseconds, rounded down.
    pub fn width(&self) -> u64 {
        (self.span / self.count) as u64
    }

    /// The begin of a part, in nanoseconds from the start.
    fn begin_of(&self, part: usize) -> u64 {
        match self.whole {
            Some(width) => part as u64 * width,
            None => (part as u128 * self.span).div_ceil(self.count) as u64,
        }
    }

    fn end_of(&self, part: usize) -> u64 {
        // The last part takes what rounding leaves, and what lies behind the window.
        if part + 1 == self.count() { u64::MAX } else { self.begin_of(part + 1) }
    }

    /// The part in which an instant lies.
    #[inline]
    fn find(&mut self, ns: u64) {
        if !(self.begin..self.end).contains(&ns) {
            self.seek(ns);
        }
    }

    fn seek(&mut self, ns: u64) {
        if ns == self.end {
            (self.part, self.begin) = (self.part + 1, self.end);
            self.end = self.end_of(self.part);
            // If there are more parts than nanoseconds, some are empty, and perhaps the next one.
            if ns < self.end {
                return;
            }
        }
        let part = match self.whole {
            Some(width) => (ns / width) as usize,
            None => (u128::from(ns) * self.count / self.span) as usize,
        };
        self.part = part.min(self.count() - 1);
        self.begin = self.begin_of(self.part);
        self.end = self.end_of(self.part);
    }

    /// The part in which an instant lies; instants outside of the window are in its first or last part.
    pub fn part_of(&mut self, ts: Ts) -> usize {
        self.find(ts.since(self.from).0);
        self.part
    }

    /// Calls `each` with every part between two instants: its number, and from when to when.
    pub fn split(&mut self, from: Ts, to: Ts, mut each: impl FnMut(usize, Ts, Ts)) {
        let (mut at, mut start) = (from.since(self.from).0, from.max(self.from));
        let to_ns = to.since(self.from).0;
        while at < to_ns {
            self.find(at);
            let next = self.end.min(to_ns);
            let end = if next == to_ns { to } else { self.from.after(sched::Dur(next)) };
            each(self.part, start, end);
            (at, start) = (next, end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn parts_of_a_width_are_so_wide_but_for_the_last() {
        let mut division = Division::of_width(Ts(100), Ts(135), 10);
        assert_eq!((division.count(), division.width()), (4, 10));
        let mut parts = Vec::new();
        division.split(Ts(105), Ts(135), |part, start, end| parts.push((part, start.0, end.0)));
        assert_eq!(parts, [(0, 105, 110), (1, 110, 120), (2, 120, 130), (3, 130, 135)]);
        assert_eq!([90, 109, 110, 134, 135, 500].map(|ts| division.part_of(Ts(ts))), [0, 0, 1, 3, 3, 3]);
    }

    #[test]
    fn of_more_parts_than_nanoseconds_empty_ones_are_passed_over() {
        let mut division = Division::into_parts(Ts(0), Ts(5), 11);
        let mut parts = Vec::new();
        division.split(Ts(0), Ts(5), |part, start, end| parts.push((part, start.0, end.0)));
        assert_eq!(parts, [(0, 0, 1), (2, 1, 2), (4, 2, 3), (6, 3, 4), (8, 4, 5)]);
    }

    #[test]
    fn windows_of_centuries_are_divided() {
        let mut division = Division::into_parts(Ts::MIN, Ts::MAX, 3);
        let mut parts = Vec::new();
        division.split(Ts::MIN, Ts::MAX, |part, start, end| parts.push((part, end.since(start).0)));
        let third = Ts::MAX.since(Ts::MIN).0 / 3;
        assert_eq!(parts.iter().map(|p| p.0).collect::<Vec<_>>(), [0, 1, 2]);
        assert!(parts.iter().all(|(_, ns)| ns.abs_diff(third) <= 2), "{parts:?}");
    }

    proptest! {
        #[test]
        fn what_is_split_is_whole_and_in_the_part_it_lies_in(
            from in -1000i64..1000,
            span in 1i64..5000,
            count in 1usize..80,
            pieces in prop::collection::vec((0i64..5200, 0i64..900), 1..40),
        ) {
            let mut division = Division::into_parts(Ts(from), Ts(from + span), count);
            for (at, length) in pieces {
                let (start, end) = (Ts(from + at), Ts(from + at + length));
                let mut reached = start;
                division.split(start, end, |part, a, b| {
                    assert!(a == reached && a < b);
                    reached = b;
                    for ts in [a.0, b.0 - 1] {
                        let truth = ((ts - from) as u128 * count as u128 / span as u128).min(count as u128 - 1);
                        assert_eq!(part as u128, truth);
                    }
                });
                prop_assert_eq!(reached, end);
            }
        }
    }
}

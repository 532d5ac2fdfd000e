//! The content of a lane: long intervals as they are, short ones as shares of a column.
//!
//! An interval at least as long as a column keeps its true edges. Shorter ones are gathered by
//! column, and drawn as the shares of time that each class has in it. Between two long intervals
//! the gathered ones fill the rest of their column exactly, so that nothing is moved or widened;
//! and since a share is a height, the smallest gap remains a gap. The number of pieces is bounded
//! by the columns, whatever the number of intervals.

use crate::division::Division;
use sched::{Dur, Ts};

/// The class of an interval: an index that the figure gives a meaning to.
pub type PieceClass = u16;

/// A piece of a lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// An interval of one class, with its true edges.
    Exact {
        /// The class of the interval.
        class: PieceClass,
        /// The start of the interval.
        start: Ts,
        /// The end of the interval.
        end: Ts,
    },
    /// Several classes within one column, each with its time in nanoseconds, by class.
    Shares {
        /// The start of the first interval.
        start: Ts,
        /// The end of the last interval.
        end: Ts,
        /// The classes in ascending order, each with its time in nanoseconds.
        shares: Vec<(PieceClass, u64)>,
    },
}

impl Piece {
    /// Whether some of the piece is of this class.
    pub fn has(&self, class: PieceClass) -> bool {
        match self {
            Piece::Exact { class: other, .. } => *other == class,
            Piece::Shares { shares, .. } => shares.iter().any(|(other, _)| *other == class),
        }
    }
}

/// Gathers the intervals of one lane, which tile it in time order.
#[derive(Clone, Debug)]
pub struct Columns {
    division: Division,
    /// An interval as long as this is drawn as it is.
    long: u64,
    gathered: Gathered,
}

#[derive(Clone, Debug)]
struct Gathered {
    pieces: Vec<Piece>,
    /// The column that short intervals are gathered of.
    column: Option<usize>,
    /// The part of the column that they cover.
    rest: (Ts, Ts),
    /// The times of the short intervals by class, in nanoseconds.
    shares: Vec<(PieceClass, u64)>,
}

impl Columns {
    /// No intervals yet, of a lane from `from` to `to` in `count` columns.
    pub fn new(from: Ts, to: Ts, count: u32) -> Columns {
        Columns {
            division: Division::into_parts(from, to, count as usize),
            long: to.since(from).0.max(1).div_ceil(count.max(1).into()),
            gathered: Gathered { pieces: Vec::new(), column: None, rest: (from, from), shares: Vec::new() },
        }
    }

    /// Adds the next interval, which begins where the last one ended.
    pub fn push(&mut self, class: PieceClass, start: Ts, end: Ts) {
        if start >= end {
            return;
        }
        let gathered = &mut self.gathered;
        if end.since(start).0 >= self.long {
            gathered.flush();
            gathered.exact(class, start, end);
            return;
        }
        self.division.split(start, end, |column, start, end| gathered.share(class, column, start, end));
    }

    /// Adds the next piece of a lane in finer columns that lie within these.
    pub fn push_piece(&mut self, piece: &Piece) {
        match piece {
            Piece::Exact { class, start, end } => self.push(*class, *start, *end),
            Piece::Shares { start, shares, .. } => {
                let mut start = *start;
                for (class, ns) in shares {
                    let end = start.after(Dur(*ns));
                    self.push(*class, start, end);
                    start = end;
                }
            }
        }
    }

    /// The pieces of the lane, in order of time.
    pub fn finish(mut self) -> Vec<Piece> {
        self.gathered.flush();
        self.gathered.pieces
    }
}

impl Gathered {
    /// A short interval, or its part in a column.
    fn share(&mut self, class: PieceClass, column: usize, start: Ts, end: Ts) {
        if self.column != Some(column) {
            self.flush();
            self.column = Some(column);
            self.rest = (start, start);
        }
        self.rest.1 = end;
        match self.shares.iter_mut().find(|(c, _)| *c == class) {
            Some((_, ns)) => *ns += end.since(start).0,
            None => self.shares.push((class, end.since(start).0)),
        }
    }

    fn exact(&mut self, class: PieceClass, start: Ts, end: Ts) {
        match self.pieces.last_mut() {
            Some(Piece::Exact { class: c, end: e, .. }) if *c == class && *e == start => *e = end,
            _ => self.pieces.push(Piece::Exact { class, start, end }),
        }
    }

    fn flush(&mut self) {
        self.column = None;
        let (start, end) = self.rest;
        let mut shares = std::mem::take(&mut self.shares);
        match shares.as_slice() {
            [] => {}
            [(class, _)] => self.exact(*class, start, end),
            _ => {
                shares.sort_unstable();
                self.pieces.push(Piece::Shares { start, end, shares });
            }
        }
    }
}

/// Heights for shares of time in a column `height` units high, from below to above: proportional,
/// to a `levels`th of the height, and never nothing for a share that is something: such a share has
/// one unit, which no eye sees and every zoom finds. The steps keep a file small that has nothing
/// but such columns.
pub fn heights(shares: &[u64], height: i32, levels: i32) -> Vec<i32> {
    let total: u128 = shares.iter().map(|s| u128::from(*s)).sum();
    if total == 0 {
        return vec![0; shares.len()];
    }
    let step = (height / levels.max(1)).max(1) as u128;
    // The upper edges; each share must move its own.
    let mut edges = Vec::with_capacity(shares.len());
    let (mut sum, mut below) = (0u128, 0);
    for share in shares {
        sum += u128::from(*share);
        let exact = (sum * height as u128 + total * step / 2) / (total * step);
        let edge = ((exact * step) as i32).min(height);
        below = if *share > 0 { edge.max(below + 1) } else { below };
        edges.push(below);
    }
    // The last share that is something ends at the top, and none may be pushed beyond it.
    let mut above = height;
    let mut last = true;
    for (edge, share) in edges.iter_mut().zip(shares).rev() {
        *edge = if last { height } else { (*edge).min(above) };
        if *share > 0 {
            above = *edge - 1;
            last = false;
        }
    }
    let lower = std::iter::once(0).chain(edges.iter().copied());
    edges.iter().zip(lower).map(|(edge, lower)| (edge - lower).max(0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn gather(count: u32, to: i64, intervals: &[(PieceClass, i64)]) -> Vec<Piece> {
        let mut columns = Columns::new(Ts(0), Ts(to), count);
        let mut at = 0;
        for (class, length) in intervals {
            columns.push(*class, Ts(at), Ts(at + length));
            at += length;
        }
        columns.finish()
    }

    fn exact(class: PieceClass, start: i64, end: i64) -> Piece {
        Piece::Exact { class, start: Ts(start), end: Ts(end) }
    }

    #[test]
    fn long_intervals_keep_their_edges() {
        assert_eq!(
            gather(10, 100, &[(1, 33), (0, 14), (2, 53)]),
            [exact(1, 0, 33), exact(0, 33, 47), exact(2, 47, 100)]
        );
    }

    #[test]
    fn short_ones_share_the_rest_of_their_column() {
        let pieces = gather(10, 100, &[(1, 33), (0, 2), (2, 3), (0, 1), (1, 61)]);
        let shares = vec![(0, 3), (2, 3)];
        assert_eq!(pieces, [exact(1, 0, 33), Piece::Shares { start: Ts(33), end: Ts(39), shares }, exact(1, 39, 100)]);
    }

    #[test]
    fn many_slices_of_one_class_are_one_piece() {
        assert_eq!(gather(10, 100, &[(1, 3); 33]), [exact(1, 0, 99)]);
    }

    #[test]
    fn heights_lose_nothing() {
        assert_eq!(heights(&[1, 999_999], 800, 16), [1, 799]);
        assert_eq!(heights(&[999_999, 1], 800, 16), [799, 1]);
        assert_eq!(heights(&[1, 1, 1], 99, 99), [33, 33, 33]);
        assert_eq!(heights(&[1, 0, 2], 320, 16), [100, 0, 220]);
        assert_eq!(heights(&[0, 0], 100, 16), [0, 0]);
        assert_eq!(heights(&[5, 0, 0], 100, 16), [100, 0, 0]);
    }

    proptest! {
        #[test]
        fn heights_fill_the_column(shares in prop::collection::vec(0u64..1_000_000, 1..7), height in 10i32..3000, levels in 1i32..64) {
            let heights = heights(&shares, height, levels);
            let total: u64 = shares.iter().sum();
            prop_assert_eq!(heights.iter().sum::<i32>(), if total > 0 { height } else { 0 });
            for (h, share) in heights.iter().zip(&shares) {
                prop_assert_eq!(*h > 0, *share > 0);
                let exact = *share as f64 * f64::from(height) / total.max(1) as f64;
                let step = f64::from((height / levels).max(1));
                prop_assert!((f64::from(*h) - exact).abs() <= step + 7.0, "{} for {}", h, exact);
            }
        }

        #[test]
        fn pieces_tile_the_lane_and_keep_all_time(
            count in 1u32..50,
            intervals in prop::collection::vec((0u16..4, 1i64..400), 1..300),
        ) {
            let to: i64 = intervals.iter().map(|(_, n)| n).sum();
            let pieces = gather(count, to, &intervals);
            let mut at = Ts(0);
            let mut time = [0u64; 4];
            for piece in &pieces {
                let (start, end, shares) = match piece {
                    Piece::Exact { class, start, end } => (*start, *end, vec![(*class, end.since(*start).0)]),
                    Piece::Shares { start, end, shares } => (*start, *end, shares.clone()),
                };
                prop_assert_eq!(start, at);
                prop_assert_eq!(end.since(start).0, shares.iter().map(|s| s.1).sum::<u64>());
                shares.iter().for_each(|(class, ns)| time[usize::from(*class)] += ns);
                at = end;
            }
            prop_assert_eq!(at, Ts(to));
            for class in 0..4u16 {
                let truth: i64 = intervals.iter().filter(|(c, _)| *c == class).map(|(_, n)| n).sum();
                prop_assert_eq!(time[usize::from(class)], truth as u64);
            }
            prop_assert!(pieces.len() <= 3 * count as usize + 2, "{} pieces in {} columns", pieces.len(), count);
        }
    }
}

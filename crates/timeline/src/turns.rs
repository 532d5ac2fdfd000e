//! A lane by what it turns to.

use crate::columns::{Columns, Piece, PieceClass};
use crate::strips::BLANK;
use sched::Ts;

/// A lane that shows one class until it turns to another, blank at first. Repeated turns to the same class are one
/// interval, which keeps its true edges if it is long.
#[derive(Clone, Debug)]
pub struct Turns {
    columns: Columns,
    class: PieceClass,
    since: Ts,
}

impl Turns {
    /// A blank lane from `from` to `to` in `count` columns.
    pub fn new(from: Ts, to: Ts, count: u32) -> Turns {
        Turns { columns: Columns::new(from, to, count), class: BLANK, since: from }
    }

    /// Lets the lane show this class from `ts` on, which is not before the last turn.
    pub fn turn(&mut self, class: PieceClass, ts: Ts) {
        if self.class != class {
            self.columns.push(self.class, self.since, ts);
            (self.class, self.since) = (class, ts);
        }
    }

    /// The pieces of the lane, which ends here.
    pub fn finish(mut self, end: Ts) -> Vec<Piece> {
        self.columns.push(self.class, self.since, end);
        self.columns.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_again_is_one_interval() {
        let mut lane = Turns::new(Ts(0), Ts(100), 10);
        // Each of them by itself would be a share of a column.
        (20..50).step_by(3).for_each(|ts| lane.turn(2, Ts(ts)));
        lane.turn(3, Ts(50));
        lane.turn(BLANK, Ts(50));
        let exact = |class, start, end| Piece::Exact { class, start: Ts(start), end: Ts(end) };
        assert_eq!(lane.finish(Ts(100)), [exact(BLANK, 0, 20), exact(2, 20, 50), exact(BLANK, 50, 100)]);
    }
}

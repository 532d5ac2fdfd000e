//! Distributions of lengths of either sign.

use sched::{Dur, Lengths};

/// A distribution of lags: those that are owed, and those that are debts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Signed {
    owed: Lengths,
    debts: Lengths,
}

impl Signed {
    pub(crate) fn add(&mut self, ns: i64) {
        let length = Dur(ns.unsigned_abs());
        if ns < 0 { self.debts.add(length) } else { self.owed.add(length) }
    }

    pub(crate) fn count(&self) -> u64 {
        self.owed.count() + self.debts.count()
    }

    /// The least lag; nothing if there is none.
    pub(crate) fn least(&self) -> Option<i64> {
        self.debts.max().map(negative).or_else(|| self.owed.summary().min_ns.map(positive))
    }

    /// The greatest lag; nothing if there is none.
    pub(crate) fn greatest(&self) -> Option<i64> {
        self.owed.max().map(positive).or_else(|| self.debts.summary().min_ns.map(negative))
    }

    /// The median; nothing if there is no lag.
    pub(crate) fn median(&self) -> Option<i64> {
        let (debts, owed) = (self.debts.count(), self.owed.count());
        let rank = (debts + owed).div_ceil(2);
        if rank == 0 {
            None
        } else if rank <= debts {
            self.debts.rank(debts - rank + 1, debts).map(negative)
        } else {
            self.owed.rank(rank - debts, owed).map(positive)
        }
    }
}

fn positive(length: Dur) -> i64 {
    i64::try_from(length.0).unwrap_or(i64::MAX)
}

fn negative(length: Dur) -> i64 {
    -positive(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_either_sign() {
        let of = |lags: &[i64]| {
            let mut signed = Signed::default();
            lags.iter().for_each(|lag| signed.add(*lag));
            [signed.least(), signed.median(), signed.greatest()]
        };
        assert_eq!(of(&[]), [None; 3]);
        assert_eq!(of(&[-30, -20, -10]), [Some(-30), Some(-20), Some(-10)]);
        assert_eq!(of(&[-30, 5, 7]), [Some(-30), Some(5), Some(7)]);
        assert_eq!(of(&[-30, -20, 7]), [Some(-30), Some(-20), Some(7)]);
        assert_eq!(of(&[1, 2, 3]), [Some(1), Some(2), Some(3)]);
    }
}

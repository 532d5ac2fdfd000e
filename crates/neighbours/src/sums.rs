//! The sums by victim and culprit.

use sched::seeded::SeededMap;

/// The sums of a pair.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PairSums {
    pub(crate) wait_ns: u64,
    pub(crate) preemptions: u64,
}

/// The sums of all pairs, and the throttled time.
#[derive(Clone, Debug, Default)]
pub(crate) struct MatrixSums {
    /// The sums by the places of victim and culprit.
    pub(crate) pairs: SeededMap<(usize, usize), PairSums>,
    /// The throttled time by the place of the victim, in nanoseconds.
    pub(crate) throttled: SeededMap<usize, u64>,
}

impl MatrixSums {
    /// Adds waiting of a victim behind a culprit, in nanoseconds of tasks.
    pub(crate) fn add_wait(&mut self, pair: (usize, usize), ns: u64) {
        if ns > 0 {
            let pair = self.pairs.entry(pair).or_default();
            pair.wait_ns = pair.wait_ns.saturating_add(ns);
        }
    }

    /// Adds the sums of a later piece of a pass, of whose parties each has this place here.
    pub(crate) fn join(&mut self, later: &MatrixSums, places: &[usize]) {
        for ((victim, culprit), sums) in &later.pairs {
            let pair = self.pairs.entry((places[*victim], places[*culprit])).or_default();
            pair.wait_ns = pair.wait_ns.saturating_add(sums.wait_ns);
            pair.preemptions += sums.preemptions;
        }
        for (victim, ns) in &later.throttled {
            let sum = self.throttled.entry(places[*victim]).or_default();
            *sum = sum.saturating_add(*ns);
        }
    }
}

//! Many lengths of time in little memory: their number, sum, extremes and percentiles.

use crate::event::Dur;
use serde::Serialize;
use std::borrow::Cow;

/// Number of steps in each doubling of the length: a percentile is at most a 128th (0.8 %) above the true one.
const STEPS: u64 = 128;

/// A distribution of lengths of time. Number, sum, least and greatest are exact; percentiles are read from a scale with
/// 128 steps to the octave, and never below the true one. Memory follows the steps that occur, not the number of
/// lengths: a list while they are few, then a table of all between the least and the greatest (17 KB from a microsecond
/// to 100 ms).
#[derive(Clone, Debug, Default)]
pub struct Lengths {
    count: u64,
    total: u64,
    min: u64,
    max: u64,
    counts: StepCounts,
    /// The steps of the latest lengths, not counted yet. The record of a task that did not run for long is in no near
    /// cache, and each step of a search waits for it: this way one search in 32 does.
    latest: Vec<u16>,
}

/// The number of lengths in each step of the scale.
#[derive(Clone, Debug)]
enum StepCounts {
    /// The steps that occur, ascending, each with its count.
    List(Vec<(u16, u64)>),
    /// The counts of all steps from `first` on.
    Table { first: u16, counts: Vec<u64> },
}

/// Maximum number of steps in a list, which is searched, and slow once it is long.
const FEW: usize = 48;
/// Number of lengths that are counted at a time.
const LATEST: usize = 32;

/// Compares the distributions, in whatever form their counts are stored.
impl PartialEq for Lengths {
    fn eq(&self, other: &Lengths) -> bool {
        (self.count, self.total, self.min, self.max) == (other.count, other.total, other.min, other.max)
            && self.counted().steps().eq(other.counted().steps())
    }
}

/// The figures that tables show of a distribution, in nanoseconds. Figures that need at least one length are absent if
/// there is none: the percentile of nothing is not zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Summary {
    /// The number of lengths.
    pub count: u64,
    /// The sum of the lengths, in nanoseconds; the largest number if the sum does not fit.
    pub total_ns: Dur,
    /// The mean of the lengths, in nanoseconds, rounded down.
    pub mean_ns: Option<Dur>,
    /// The least of the lengths, in nanoseconds.
    pub min_ns: Option<Dur>,
    /// The median, in nanoseconds: half of the lengths are at most this long.
    pub p50_ns: Option<Dur>,
    /// The 90th percentile, in nanoseconds.
    pub p90_ns: Option<Dur>,
    /// The 99th percentile, in nanoseconds.
    pub p99_ns: Option<Dur>,
    /// The 99.9th percentile, in nanoseconds.
    pub p999_ns: Option<Dur>,
    /// The greatest of the lengths, in nanoseconds.
    pub max_ns: Option<Dur>,
}

/// Formats a length for people, as [`Dur::human`] does; `none` if there is none.
pub fn human(length: Option<Dur>) -> String {
    length.map_or("none".into(), Dur::human)
}

/// Returns the step of a length: below 128 ns each length has its own, above it the eight leading bits decide.
#[inline]
fn step_of(ns: u64) -> u16 {
    if ns < STEPS {
        return ns as u16;
    }
    let octave = u64::from(ns.ilog2());
    ((octave - 6) * STEPS + (ns >> (octave - 7)) % STEPS) as u16
}

/// Returns the least and the greatest length of a step, in nanoseconds.
fn edges(step: u16) -> (u64, u64) {
    let step = u64::from(step);
    if step < STEPS {
        return (step, step);
    }
    let (octave, rest) = (step / STEPS + 6, step % STEPS);
    let low = (STEPS + rest) << (octave - 7);
    (low, low + ((1 << (octave - 7)) - 1))
}

impl Lengths {
    /// Adds one length to the distribution.
    #[inline]
    pub fn add(&mut self, length: Dur) {
        let ns = length.0;
        self.min = if self.count == 0 { ns } else { self.min.min(ns) };
        self.max = self.max.max(ns);
        self.count += 1;
        self.total = self.total.saturating_add(ns);
        let step = step_of(ns);
        if let StepCounts::Table { first, counts } = &mut self.counts
            && let Some(n) = counts.get_mut(usize::from(step.wrapping_sub(*first)))
        {
            *n += 1;
        } else {
            self.later(step);
        }
    }

    /// Keeps the step of a length, to be counted later with others.
    #[inline(never)]
    fn later(&mut self, step: u16) {
        self.latest.push(step);
        if self.latest.len() == LATEST {
            self.latest.drain(..).for_each(|step| self.counts.add(step, 1));
        }
    }

    /// Returns the number of lengths in each step, with the latest ones.
    fn counted(&self) -> Cow<'_, StepCounts> {
        let mut counts = Cow::Borrowed(&self.counts);
        self.latest.iter().for_each(|step| counts.to_mut().add(*step, 1));
        counts
    }

    /// Adds all lengths of `other` to the distribution.
    pub fn merge(&mut self, other: &Lengths) {
        if other.count == 0 {
            return;
        }
        self.min = if self.count == 0 { other.min } else { self.min.min(other.min) };
        self.max = self.max.max(other.max);
        self.count += other.count;
        self.total = self.total.saturating_add(other.total);
        other.counts.steps().for_each(|(step, n)| self.counts.add(step, n));
        other.latest.iter().for_each(|step| self.counts.add(*step, 1));
    }

    /// The number of lengths.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The sum of the lengths; the largest number if the sum does not fit.
    pub fn total(&self) -> Dur {
        Dur(self.total)
    }

    /// The greatest of the lengths; `None` if there is none.
    pub fn max(&self) -> Option<Dur> {
        (self.count > 0).then_some(Dur(self.max))
    }

    /// Returns the length that `many` of every `of` lengths do not exceed, by the nearest rank; `None` if there is no
    /// length.
    pub fn rank(&self, many: u64, of: u64) -> Option<Dur> {
        self.rank_in(&self.counted(), many, of)
    }

    /// Returns the length of a rank, as [`Lengths::rank`] does, from these counts.
    fn rank_in(&self, counted: &StepCounts, many: u64, of: u64) -> Option<Dur> {
        let rank = (u128::from(self.count) * u128::from(many)).div_ceil(u128::from(of.max(1))).max(1);
        let mut below = 0u128;
        for (step, n) in counted.steps() {
            below += u128::from(n);
            if below >= rank {
                return Some(Dur(edges(step).1.clamp(self.min, self.max)));
            }
        }
        self.max()
    }

    /// Returns the figures that tables show.
    pub fn summary(&self) -> Summary {
        let counted = self.counted();
        Summary {
            count: self.count,
            total_ns: Dur(self.total),
            mean_ns: self.total.checked_div(self.count).map(Dur),
            min_ns: (self.count > 0).then_some(Dur(self.min)),
            p50_ns: self.rank_in(&counted, 1, 2),
            p90_ns: self.rank_in(&counted, 9, 10),
            p99_ns: self.rank_in(&counted, 99, 100),
            p999_ns: self.rank_in(&counted, 999, 1000),
            max_ns: self.max(),
        }
    }

    /// Counts the lengths by equally wide parts of the octaves of nanoseconds: returns the number of each part that
    /// occurs, counted from one nanosecond on, and its count. `per_octave` is the number of parts of an octave, a power
    /// of two, at most 128. Part `k` begins at about 2^(k / `per_octave`) ns.
    pub fn parts(&self, per_octave: u32) -> Vec<(u32, u64)> {
        let mut parts: Vec<(u32, u64)> = Vec::new();
        for (step, n) in self.counted().steps() {
            let low = edges(step).0.max(1);
            let octave = low.ilog2();
            let within = (u128::from(low - (1 << octave)) * u128::from(per_octave)) >> octave;
            let part = octave * per_octave + within as u32;
            match parts.last_mut() {
                Some((last, m)) if *last == part => *m += n,
                _ => parts.push((part, n)),
            }
        }
        parts
    }
}

impl Default for StepCounts {
    fn default() -> StepCounts {
        StepCounts::List(Vec::new())
    }
}

impl StepCounts {
    /// Iterates over the steps that occur, ascending, each with its count.
    fn steps(&self) -> impl Iterator<Item = (u16, u64)> {
        let (list, first, table) = match self {
            StepCounts::List(list) => (list.as_slice(), 0, [].as_slice()),
            StepCounts::Table { first, counts } => ([].as_slice(), *first, counts.as_slice()),
        };
        let table = (first..).zip(table).map(|(step, n)| (step, *n));
        list.iter().copied().chain(table).filter(|(_, n)| *n > 0)
    }

    /// Adds `n` lengths to a step.
    fn add(&mut self, step: u16, n: u64) {
        match self {
            StepCounts::List(list) => match list.binary_search_by_key(&step, |(step, _)| *step) {
                Ok(at) => list[at].1 += n,
                Err(at) if list.len() < FEW => list.insert(at, (step, n)),
                Err(_) => {
                    *self = StepCounts::table(list);
                    self.add(step, n);
                }
            },
            StepCounts::Table { first, counts } => {
                if step < *first {
                    counts.splice(0..0, std::iter::repeat_n(0, usize::from(*first - step)));
                    *first = step;
                }
                let at = usize::from(step - *first);
                if at >= counts.len() {
                    counts.resize(at + 1, 0);
                }
                counts[at] += n;
            }
        }
    }

    /// Converts a list of counts to a table.
    fn table(list: &[(u16, u64)]) -> StepCounts {
        let mut table = StepCounts::Table { first: list.first().map_or(0, |(step, _)| *step), counts: Vec::new() };
        list.iter().for_each(|(step, n)| table.add(*step, *n));
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_tile_all_lengths() {
        let mut next = 0u64;
        for step in 0..=step_of(u64::MAX) {
            let (low, high) = edges(step);
            assert_eq!((low, step_of(low), step_of(high)), (next, step, step));
            assert!(high - low <= low / STEPS);
            next = high.wrapping_add(1);
        }
        assert_eq!(next, 0);
    }

    #[test]
    fn ranks_are_those_of_the_sorted_lengths_to_a_128th() {
        let mut rng = 1u64;
        let mut all = Vec::new();
        let (mut one, mut two, mut both) = (Lengths::default(), Lengths::default(), Lengths::default());
        for i in 0..5000u64 {
            rng = rng.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let ns = (rng >> 33) >> (i % 31);
            all.push(ns);
            if i % 3 == 0 { &mut one } else { &mut two }.add(Dur(ns));
            both.add(Dur(ns));
            // Few and many, in any order.
            if [10, 100, 1000].contains(&i) {
                let mut merged = two.clone();
                merged.merge(&one);
                assert!(merged == both && one != both);
            }
        }
        one.merge(&two);
        assert_eq!(one, both);
        all.sort_unstable();
        for (many, of) in [(0, 1), (1, 2), (9, 10), (99, 100), (999, 1000), (1, 1)] {
            let rank = (5000 * many as usize).div_ceil(of as usize).max(1);
            let (truth, found) = (all[rank - 1], one.rank(many, of).expect("a length").0);
            assert!(found >= truth && found - truth <= truth / STEPS, "{many}/{of}: {found}, {truth}");
        }
        let s = one.summary();
        assert_eq!((s.count, s.total_ns.0), (5000, all.iter().sum()));
        assert_eq!((s.min_ns, s.max_ns), (Some(Dur(all[0])), Some(Dur(all[4999]))));
        assert_eq!(one.parts(4).iter().map(|(_, n)| n).sum::<u64>(), 5000);
    }

    #[test]
    fn nothing_has_no_percentile() {
        let none = Lengths::default();
        assert_eq!((none.summary(), none.rank(1, 2), none.max()), (Summary::default(), None, None));
        let json = serde_json::to_value(none.summary()).expect("a document");
        assert_eq!((&json["count"], &json["total_ns"]), (&0.into(), &0.into()));
        for name in ["mean_ns", "min_ns", "p50_ns", "p90_ns", "p99_ns", "p999_ns", "max_ns"] {
            assert!(json[name].is_null(), "{name}: {}", json[name]);
        }
        assert_eq!((human(none.max()), human(Some(Dur(0)))), ("none".to_owned(), "0 ns".to_owned()));
        // A length of zero is a length.
        let mut zero = Lengths::default();
        zero.add(Dur(0));
        let s = zero.summary();
        assert_eq!([s.mean_ns, s.min_ns, s.p50_ns, s.p999_ns, s.max_ns], [Some(Dur(0)); 5]);
    }

    #[test]
    fn parts_are_those_of_their_octaves() {
        let mut l = Lengths::default();
        [1, 2, 3, 1024, 1279, 1280, 2047].into_iter().for_each(|ns| l.add(Dur(ns)));
        assert_eq!(l.parts(4), [(0, 1), (4, 1), (6, 1), (40, 2), (41, 1), (43, 1)]);
    }
}

//! Many parts of fewer sums, in little more room than the sums take.

use std::cmp::Ordering;

/// A part of one of several sums, or a sum of several parts.
pub trait Addend {
    /// Compares two parts by the order in which sums are returned. Parts of one sum must be neighbours in that order,
    /// the later ones behind; parts of different sums must not compare as equal.
    fn order(&self, other: &Self) -> Ordering;

    /// Adds a part that follows in the order, if it belongs to the same sum, and returns `true`. Otherwise changes
    /// nothing and returns `false`.
    fn join(&mut self, later: &Self) -> bool;
}

/// A collection of sums from many parts, which are added up whenever their number has doubled: a hash table of the sums
/// would keep more memory.
#[derive(Clone, Debug)]
pub struct Summed<T> {
    parts: Vec<T>,
    /// The number of parts that were left when they were last added up.
    sums: usize,
}

/// Number of parts that are not added up yet.
const FEW: usize = 64;

impl<T> Default for Summed<T> {
    fn default() -> Summed<T> {
        Summed { parts: Vec::new(), sums: 0 }
    }
}

impl<T: Addend> Summed<T> {
    /// Takes one more part.
    pub fn add(&mut self, part: T) {
        if self.parts.last_mut().is_some_and(|latest| latest.join(&part)) {
            return;
        }
        self.parts.push(part);
        if self.parts.len() > 2 * self.sums.max(FEW) {
            self.add_up();
        }
    }

    /// Adds up all parts, so that one of each sum is left.
    fn add_up(&mut self) {
        self.parts.sort_unstable_by(T::order);
        self.parts.dedup_by(|later, sum| sum.join(later));
        self.sums = self.parts.len();
    }

    /// Returns the sums in the order of [`Addend::order`].
    pub fn finish(mut self) -> Vec<T> {
        self.add_up();
        self.parts
    }
}

/// Takes all parts at once, and adds them up at the end.
impl<T: Addend> FromIterator<T> for Summed<T> {
    fn from_iter<I: IntoIterator<Item = T>>(parts: I) -> Summed<T> {
        Summed { parts: parts.into_iter().collect(), sums: 0 }
    }
}

impl<T: Addend> Extend<T> for Summed<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, parts: I) {
        parts.into_iter().for_each(|part| self.add(part));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Of(u32, u64);

    impl Addend for Of {
        fn order(&self, other: &Of) -> Ordering {
            self.0.cmp(&other.0)
        }

        fn join(&mut self, later: &Of) -> bool {
            let same = self.0 == later.0;
            self.1 += if same { later.1 } else { 0 };
            same
        }
    }

    #[test]
    fn sums_take_the_room_of_sums() {
        let mut summed = Summed::default();
        for round in 0..10 {
            summed.extend((round..1000).chain([500, 500]).map(|sum| Of(sum, 3)));
            assert!(summed.parts.len() <= 2 * 1003, "{}", summed.parts.len());
        }
        let found = summed.finish();
        assert!(found.is_sorted_by_key(|of| of.0) && found.len() == 1000);
        assert_eq!([0, 1, 500, 999].map(|sum| found[sum].1), [3, 6, 90, 30]);
        assert!(Summed::<Of>::default().finish().is_empty());
    }
}

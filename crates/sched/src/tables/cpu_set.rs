//! Sets of CPUs.

use crate::event::{Cpu, CpuMask};

/// A set of CPUs, stored as a bit for each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CpuSet {
    /// The bits of the set. The last word is not zero, so that equal sets are equal.
    words: Vec<u64>,
}

impl CpuSet {
    /// Whether the CPU is in the set.
    pub fn has(&self, cpu: Cpu) -> bool {
        self.words.get(cpu.index() / 64).is_some_and(|word| word >> (cpu.index() % 64) & 1 == 1)
    }

    /// The bits of the CPUs from 64 times `place` on.
    pub fn word(&self, place: usize) -> u64 {
        self.words.get(place).copied().unwrap_or(0)
    }

    /// Adds a CPU if `is_in`; removes it otherwise.
    pub fn set(&mut self, cpu: Cpu, is_in: bool) {
        let (at, bit) = (cpu.index() / 64, 1 << (cpu.index() % 64));
        match (self.words.get_mut(at), is_in) {
            (Some(word), true) => *word |= bit,
            (Some(word), false) => {
                *word &= !bit;
                self.trim();
            }
            (None, true) => {
                self.words.resize(at + 1, 0);
                self.words[at] = bit;
            }
            (None, false) => {}
        }
    }

    /// Removes zero words at the end.
    fn trim(&mut self) {
        let used = self.words.iter().rposition(|word| *word != 0).map_or(0, |last| last + 1);
        self.words.truncate(used);
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The number of CPUs in the set.
    pub fn len(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    /// Adds all CPUs of another set.
    pub fn add(&mut self, other: &CpuSet) {
        if self.words.len() < other.words.len() {
            self.words.resize(other.words.len(), 0);
        }
        self.words.iter_mut().zip(&other.words).for_each(|(word, more)| *word |= more);
    }

    /// Returns the CPUs that are in both sets.
    #[must_use]
    pub fn and(&self, other: &CpuSet) -> CpuSet {
        let mut both = CpuSet { words: self.words.iter().zip(&other.words).map(|(a, b)| a & b).collect() };
        both.trim();
        both
    }

    /// Whether some CPU is in both sets.
    pub fn meets(&self, other: &CpuSet) -> bool {
        self.words.iter().zip(&other.words).any(|(a, b)| a & b != 0)
    }

    /// Whether every CPU of another set is in this one.
    pub fn contains(&self, other: &CpuSet) -> bool {
        other.words.len() <= self.words.len() && other.words.iter().zip(&self.words).all(|(a, b)| a & !b == 0)
    }

    /// Iterates over the CPUs of the set in ascending order.
    pub fn cpus(&self) -> impl Iterator<Item = Cpu> {
        let bits = |(at, word): (usize, &u64)| {
            let mut rest = *word;
            std::iter::from_fn(move || {
                let bit = (rest != 0).then(|| rest.trailing_zeros())?;
                rest &= rest - 1;
                Some(Cpu(at as u32 * 64 + bit))
            })
        };
        self.words.iter().enumerate().flat_map(bits)
    }
}

impl From<CpuMask> for CpuSet {
    fn from(mask: CpuMask) -> CpuSet {
        mask.cpus().collect()
    }
}

impl FromIterator<Cpu> for CpuSet {
    fn from_iter<I: IntoIterator<Item = Cpu>>(cpus: I) -> CpuSet {
        let mut set = CpuSet::default();
        cpus.into_iter().for_each(|cpu| set.set(cpu, true));
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn sets_are_those_of_the_standard_library(
            a in prop::collection::btree_set(0_u32..200, 0..20), b in prop::collection::btree_set(0_u32..200, 0..20)
        ) {
            let of = |set: &BTreeSet<u32>| set.iter().map(|cpu| Cpu(*cpu)).collect::<CpuSet>();
            let plain = |set: &CpuSet| set.cpus().map(|cpu| cpu.0).collect::<BTreeSet<u32>>();
            let (x, y) = (of(&a), of(&b));
            prop_assert_eq!(plain(&x), a.clone());
            prop_assert_eq!(x.len() as usize, a.len());
            prop_assert_eq!(x.and(&y), of(&(&a & &b)));
            prop_assert_eq!(x.meets(&y), !a.is_disjoint(&b));
            prop_assert_eq!(x.contains(&y), a.is_superset(&b));
            let (mut sum, mut less) = (x.clone(), x);
            sum.add(&y);
            b.iter().for_each(|cpu| less.set(Cpu(*cpu), false));
            prop_assert_eq!(sum, of(&(&a | &b)));
            prop_assert_eq!(less, of(&(&a - &b)));
        }
    }
}

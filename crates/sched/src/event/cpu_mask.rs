//! A set of CPUs in the room that an event has for it.

use super::Cpu;

/// Number of 32-bit words in a window of CPUs.
const WORDS: usize = 8;

/// Maximum number of ranges of CPUs.
const RANGES: usize = 8;

/// A set of CPUs in the form in which an event carries it, from the record of a probe.
///
/// An event is copied often and has no room for a bit for each of thousands of CPUs. The set is therefore a window of
/// 256 CPUs, or up to eight ranges: the CPUs of a node, of two nodes with their SMT siblings, or all but a few. Sets
/// that are neither cannot be represented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuMask(MaskForm);

/// The form in which a set of CPUs is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MaskForm {
    /// A window of 256 CPUs: the number of its first word of 32 CPUs, and a bit for each CPU from there on.
    Window(u16, [u32; WORDS]),
    /// Ranges of CPUs, ascending: the first and the last CPU of each. Unused ranges are empty.
    Ranges([(u16, u16); RANGES]),
}

/// A range without any CPU.
const EMPTY: (u16, u16) = (1, 0);

impl CpuMask {
    /// Returns the set of these CPUs, which must be in ascending order. Returns `None` if the set fits neither form, or
    /// if a number is 65,536 or more.
    pub fn of(cpus: impl IntoIterator<Item = Cpu>) -> Option<CpuMask> {
        let (mut base, mut words, mut fits) = (None, [0_u32; WORDS], true);
        let (mut ranges, mut used) = ([EMPTY; RANGES], 0);
        for Cpu(cpu) in cpus {
            let number = u16::try_from(cpu).ok()?;
            let base = *base.get_or_insert(cpu / 32);
            match words.get_mut((cpu / 32).checked_sub(base)? as usize) {
                Some(word) => *word |= 1 << (cpu % 32),
                None => fits = false,
            }
            match ranges.get_mut(..used).and_then(|used| used.last_mut()) {
                Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
                _ => {
                    if let Some(range) = ranges.get_mut(used) {
                        *range = (number, number);
                    }
                    used += 1;
                }
            }
            if !fits && used > RANGES {
                return None;
            }
        }
        let base = u16::try_from(base.unwrap_or(0)).ok()?;
        Some(CpuMask(if fits { MaskForm::Window(base, words) } else { MaskForm::Ranges(ranges) }))
    }

    /// Iterates over the CPUs of the set in ascending order.
    pub fn cpus(&self) -> impl Iterator<Item = Cpu> + use<> {
        let (base, words, ranges) = match self.0 {
            MaskForm::Window(base, words) => (u32::from(base), words, [EMPTY; RANGES]),
            MaskForm::Ranges(ranges) => (0, [0; WORDS], ranges),
        };
        let bits = (0..).zip(words).flat_map(move |(nth, word)| {
            (0..32).filter(move |bit| word >> bit & 1 == 1).map(move |bit| Cpu((base + nth) * 32 + bit))
        });
        bits.chain(ranges.into_iter().flat_map(|(first, last)| (first..=last).map(|cpu| Cpu(cpu.into()))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn back(cpus: &[u32]) -> Option<Vec<u32>> {
        CpuMask::of(cpus.iter().map(|cpu| Cpu(*cpu))).map(|mask| mask.cpus().map(|cpu| cpu.0).collect())
    }

    proptest! {
        #[test]
        fn a_window_keeps_every_set(base in 0_u32..65_000, cpus in prop::collection::btree_set(0_u32..224, 0..60)) {
            let cpus: Vec<u32> = cpus.into_iter().map(|cpu| base + cpu).collect();
            prop_assert_eq!(back(&cpus), Some(cpus));
        }

        #[test]
        fn ranges_keep_every_set(starts in prop::collection::btree_set(0_u32..60, 1..8), length in 1_u32..1000) {
            let cpus: Vec<u32> = starts.into_iter().flat_map(|start| start * 1001..start * 1001 + length).collect();
            prop_assert_eq!(back(&cpus), Some(cpus));
        }
    }

    #[test]
    fn sets_that_do_not_fit_have_no_form() {
        // Two nodes of a large machine with their SMT siblings, and all of its CPUs but one.
        let siblings: Vec<u32> = (0..64).chain(512..576).collect();
        assert_eq!(back(&siblings), Some(siblings));
        let most: Vec<u32> = (0..1000).filter(|cpu| *cpu != 500).collect();
        assert_eq!(back(&most), Some(most));
        let scattered: Vec<u32> = (0..400).map(|cpu| 2 * cpu).collect();
        assert_eq!(back(&scattered), None);
        assert_eq!(back(&[65_536]), None);
        assert_eq!(back(&[65_535]), Some(vec![65_535]));
        assert_eq!(back(&[]), Some(vec![]));
    }
}

//! Ascending numbers in few bytes.

use super::packed::{PackedNumbers, put};

/// Number of differences behind a number that is stored whole.
const BLOCK: usize = 64;

/// A list of ascending numbers in few bytes. Each is stored as the difference to the one before, in seven bits a byte,
/// and found by the numbers that begin a block: two bytes a number instead of eight where hundreds of events lie
/// between two of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ascending {
    /// The first number of each block, and the index of the differences behind it.
    blocks: Vec<(u64, usize)>,
    differences: Vec<u8>,
    last: u64,
    /// The length of the last block, in numbers.
    open: usize,
}

impl Ascending {
    /// Appends a number, which must not be below the last one.
    pub(crate) fn push(&mut self, number: u64) {
        if self.blocks.is_empty() || self.open > BLOCK {
            self.blocks.push((number, self.differences.len()));
            self.open = 1;
        } else {
            put(&mut self.differences, number.saturating_sub(self.last));
            self.open += 1;
        }
        self.last = number;
    }

    /// Frees the memory that is reserved for further numbers.
    pub(crate) fn shrink(&mut self) {
        self.blocks.shrink_to_fit();
        self.differences.shrink_to_fit();
    }

    /// Iterates over the numbers of a block; none if there is no such block.
    fn block(&self, nth: usize) -> impl Iterator<Item = u64> {
        let end = self.blocks.get(nth + 1).map_or(self.differences.len(), |(_, next)| *next);
        let (first, bytes) = match self.blocks.get(nth) {
            Some((first, start)) => (Some(*first), self.differences.get(*start..end).unwrap_or_default()),
            None => (None, &[][..]),
        };
        let (mut number, mut differences) = (first.unwrap_or(0), PackedNumbers::of(bytes));
        let behind = std::iter::from_fn(move || {
            number += (!differences.is_empty()).then(|| differences.take())?;
            Some(number)
        });
        first.into_iter().chain(behind)
    }

    /// Iterates over all numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u64> {
        (0..self.blocks.len()).flat_map(|nth| self.block(nth))
    }

    /// The length of the list.
    pub(crate) fn len(&self) -> u64 {
        self.count_below(u64::MAX).saturating_add(u64::from(!self.blocks.is_empty() && self.last == u64::MAX))
    }

    /// The number of entries below this number.
    pub(crate) fn count_below(&self, number: u64) -> u64 {
        let next = self.blocks.partition_point(|(first, _)| *first < number);
        let Some(block) = next.checked_sub(1) else { return 0 };
        // Only the last block has fewer numbers.
        let within = self.block(block).take_while(|other| *other < number).count();
        (block * (BLOCK + 1) + within) as u64
    }

    /// Returns the first entry above this number.
    pub(crate) fn above(&self, number: u64) -> Option<u64> {
        let next = self.blocks.partition_point(|(first, _)| *first <= number);
        let within = next.checked_sub(1).and_then(|nth| self.block(nth).find(|other| *other > number));
        within.or_else(|| Some(self.blocks.get(next)?.0))
    }

    /// Returns the last entry below this number.
    pub(crate) fn below(&self, number: u64) -> Option<u64> {
        let next = self.blocks.partition_point(|(first, _)| *first < number);
        self.block(next.checked_sub(1)?).take_while(|other| *other < number).last()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_found_at_any_distance() {
        let mut numbers = vec![3u64];
        for n in 1..1_000u64 {
            numbers.push(numbers[numbers.len() - 1] + [1, 2, 127, 128, 70_000, 1 << 40][(n * n % 6) as usize]);
        }
        let mut stored = Ascending::default();
        numbers.iter().for_each(|number| stored.push(*number));
        stored.shrink();
        for number in numbers.iter().flat_map(|n| [n - 1, *n, n + 1]).chain([0, u64::MAX]) {
            assert_eq!(stored.above(number), numbers.iter().copied().find(|other| *other > number));
            assert_eq!(stored.below(number), numbers.iter().copied().rfind(|other| *other < number));
            assert_eq!(stored.count_below(number), numbers.iter().filter(|other| **other < number).count() as u64);
        }
        assert_eq!((stored.len(), Ascending::default().len()), (1_000, 0));
        assert_eq!((Ascending::default().above(0), Ascending::default().below(9)), (None, None));
    }
}

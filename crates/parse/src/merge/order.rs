//! The order in time of the items of several stretches, each of which is in order.
//!
//! The times are sorted, each with the number of its stretch, digit by digit from the least significant on. That passes
//! through memory in sequence, and takes as long for a thousand stretches as for two. A heap of the stretches shows its
//! next item only after the item before it was taken, and each step waits for memory: with 256 CPUs a pass takes a
//! fifth less time than with a heap.
//!
//! A round can cover a minute, but few of its events are within the same microsecond: the lowest bits of the times are
//! not sorted. The result is nearly in order, and the few items out of order are moved. The number of bits left out
//! follows from the number of moves in the rounds before.

use crate::merge::unit_boundary::Timed;
use sched::Ts;
use std::slice;

/// Bits of a digit: the counters of all its values stay in the first-level cache.
const DIGIT: u32 = 12;

/// Number of places that keys may be moved by, for each key, before sorting anew costs less.
const MOVES: usize = 4;

/// Maximum number of keys that are sorted by comparisons: the counters of the digits alone would take as long.
const FEW: usize = if cfg!(test) { 64 } else { 1 << 10 };

/// Finds orders, one after the other in the same memory.
#[derive(Debug)]
pub(crate) struct OrderFinder {
    /// An item each: its time, counted from the first one, above the number of its stretch.
    keys: Vec<u64>,
    /// Memory of the size of `keys`: each digit is sorted from one of the two into the other.
    other: Vec<u64>,
    /// Number of the lowest bits of a time that need not be sorted by digits.
    coarse: u32,
}

impl Default for OrderFinder {
    fn default() -> OrderFinder {
        OrderFinder { keys: Vec::new(), other: Vec::new(), coarse: 8 }
    }
}

/// The items of a round, in order.
pub(crate) struct Ordered<'o, T> {
    keys: slice::Iter<'o, u64>,
    /// Bits of a key that hold the number of its stretch.
    mask: u64,
    /// The rest of each stretch.
    rest: Vec<slice::Iter<'o, T>>,
}

impl<T: Clone> Ordered<'_, T> {
    /// Copies the next items behind those in `batch`, as many as it has memory for; whether that is filled.
    ///
    /// Not a push that may ask for more memory: an item would be kept on the stack until that is known, and half of the
    /// instructions were that.
    pub(crate) fn fill(&mut self, batch: &mut Vec<T>) -> bool {
        let Ordered { keys, mask, rest } = self;
        while batch.len() < batch.capacity() {
            let stretch = keys.next().and_then(|key| rest.get_mut((key & *mask) as usize));
            let Some(item) = stretch.and_then(Iterator::next) else { return false };
            batch.push(item.clone());
        }
        true
    }
}

impl OrderFinder {
    /// The items in order. Those of the first stretch come first among equal times.
    pub(crate) fn of<'o, T: Timed>(&'o mut self, stretches: &[&'o [T]]) -> Ordered<'o, T> {
        let mask = self.sort(stretches);
        let rest = stretches.iter().map(|items| items.iter()).collect();
        Ordered { keys: self.keys.iter(), mask, rest }
    }

    /// Sorts the keys, and returns the part of them that is the stretch.
    fn sort<T: Timed>(&mut self, stretches: &[&[T]]) -> u64 {
        let start = stretches.iter().filter_map(|items| items.first()).map(T::ts).min().unwrap_or_default();
        let last = stretches.iter().filter_map(|items| items.last()).map(T::ts).max().unwrap_or_default();
        // No item is earlier than the start: the difference is its age, whatever the sign of either.
        let age = |ts: Ts| ts.0.wrapping_sub(start.0).cast_unsigned();
        let bits = |n: u64| u64::BITS.saturating_sub(n.leading_zeros());
        let (below, above) = (bits(stretches.len() as u64), bits(age(last)));
        self.keys.clear();
        if below.saturating_add(above) > u64::BITS {
            self.sort_ages(stretches);
        } else {
            for (number, items) in (0u64..).zip(stretches) {
                self.keys.extend(items.iter().map(|item| age(item.ts()) << below | number));
            }
            // A single stretch is in order.
            if stretches.len() > 1 {
                self.sort_keys(below, above);
            }
        }
        (1 << below) - 1
    }

    /// Sorts the keys by the bits of the time, which are above those of the stretch.
    fn sort_keys(&mut self, below: u32, above: u32) {
        if self.keys.len() <= FEW {
            // A key of the same time and the same stretch as another is the same.
            return self.keys.sort_unstable();
        }
        let digits = above.saturating_sub(self.coarse).div_ceil(DIGIT);
        let sorted = digits.saturating_mul(DIGIT).min(above);
        let first = below.saturating_add(above).saturating_sub(sorted);
        (0..digits).for_each(|digit| self.pass(first.saturating_add(digit.saturating_mul(DIGIT))));
        let left = above.saturating_sub(sorted);
        if left == 0 {
            return;
        }
        // One move costs as much as some eight keys of a pass.
        let few = self.keys.len() / 8;
        let moves = self.put_right();
        if moves.is_none() {
            self.keys.sort_unstable();
        }
        self.coarse = match moves {
            Some(moves) if moves <= few => self.coarse.max(left.saturating_add(1)),
            _ => left.saturating_sub(1),
        };
    }

    /// Puts nearly ordered keys in order, and returns the number of places by which keys were moved; gives up where it turns out not
    /// to be.
    fn put_right(&mut self) -> Option<usize> {
        let most = self.keys.len().saturating_mul(MOVES);
        let (mut at, mut moves) = (0usize, 0usize);
        let is_back = |pair: &[u64]| matches!(pair, [before, key] if before > key);
        while let Some(back) = self.keys.get(at..).and_then(|rest| rest.windows(2).position(is_back)) {
            at = at.saturating_add(back).saturating_add(1);
            moves = moves.saturating_add(self.bring_back(at));
            if moves > most {
                return None;
            }
        }
        Some(moves)
    }

    /// Brings a key to its place among those before it, which are in order; returns how many it passes.
    fn bring_back(&mut self, at: usize) -> usize {
        let Some([before @ .., key]) = self.keys.get(..=at) else { return 0 };
        let later = before.iter().rev().take_while(|other| *other > key).count();
        if let Some(passed) = self.keys.get_mut(at.saturating_sub(later)..=at) {
            passed.rotate_right(1);
        }
        later
    }

    /// Sorts items whose times lie centuries apart, as damaged ones do: such times do not fit into the keys.
    #[cold]
    fn sort_ages<T: Timed>(&mut self, stretches: &[&[T]]) {
        let mut all: Vec<(Ts, u64)> = Vec::new();
        for (number, items) in (0..).zip(stretches) {
            all.extend(items.iter().map(|item| (item.ts(), number)));
        }
        all.sort_unstable();
        self.keys.extend(all.into_iter().map(|(_, number)| number));
    }

    /// Sorts by one digit, and leaves those that have the same in their order.
    fn pass(&mut self, shift: u32) {
        let digit = |key: u64| (key >> shift) as usize & ((1 << DIGIT) - 1);
        let mut places = [0u32; 1 << DIGIT];
        for key in &self.keys {
            if let Some(count) = places.get_mut(digit(*key)) {
                *count = count.wrapping_add(1);
            }
        }
        let mut next = 0u32;
        for place in &mut places {
            next = next.wrapping_add(std::mem::replace(place, next));
        }
        self.other.resize(self.keys.len(), 0);
        for key in &self.keys {
            if let Some(place) = places.get_mut(digit(*key))
                && let Some(to) = self.other.get_mut(*place as usize)
            {
                *place = place.wrapping_add(1);
                *to = *key;
            }
        }
        std::mem::swap(&mut self.keys, &mut self.other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::page::Loss;
    use proptest::prelude::*;
    use sched::Cpu;

    /// Time of the item, number of its stretch, and its place in the stretch.
    #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
    struct Item(Ts, usize, usize);

    impl Timed for Item {
        fn ts(&self) -> Ts {
            self.0
        }

        fn set_ts(&mut self, ts: Ts) {
            self.0 = ts;
        }

        fn after_gap(_: Cpu, _: Ts, _: Loss, _: Option<&mut Item>) -> Option<Item> {
            None
        }
    }

    /// Times of several stretches: dense ones with many the same, sparse ones, and some centuries apart; and each
    /// sort in bursts, which are an instant to two digits of the whole.
    fn times() -> impl Strategy<Value = Vec<Vec<i64>>> {
        let span = prop_oneof![Just(20), Just(1 << 21), Just(1 << 45), Just(Ts::MAX.0)];
        let pause = prop_oneof![Just(0), Just(1i64 << 41), Just(1 << 50)];
        (span, pause).prop_flat_map(|(span, pause)| {
            let time = (-span..span, 0..4i64).prop_map(move |(ts, burst)| ts.saturating_add(burst * pause));
            prop::collection::vec(prop::collection::vec(time, 0..60), 0..40)
        })
    }

    proptest! {
        #[test]
        fn it_is_that_of_time_then_stretch_then_place(rounds in prop::collection::vec(times(), 1..4)) {
            let mut order = OrderFinder::default();
            for times in rounds {
                let stretch = |(number, mut times): (usize, Vec<i64>)| {
                    times.sort_unstable();
                    times.into_iter().enumerate().map(|(place, ts)| Item(Ts(ts), number, place)).collect()
                };
                let stretches: Vec<Vec<Item>> = times.into_iter().enumerate().map(stretch).collect();
                let slices: Vec<&[Item]> = stretches.iter().map(Vec::as_slice).collect();
                let mut all: Vec<Item> = stretches.iter().flatten().cloned().collect();
                let mut found = Vec::with_capacity(all.len() + 1);
                prop_assert!(!order.of(&slices).fill(&mut found));
                all.sort_unstable();
                prop_assert_eq!(found, all);
            }
        }
    }
}

//! The order in time of items that stand in several stretches, each in order by itself.
//!
//! Their times are sorted, each with the number of its stretch, digit by digit from the least significant on:
//! that goes through memory in a line, and takes as long for a thousand stretches as for two. What a heap of the
//! stretches has at its top is known only when the item before has been taken, and each is a wait for memory.

use crate::seam::Timed;
use sched::Ts;

/// Bits of a digit at most: the counters of all its values stay in the first-level cache.
const DIGIT: u32 = 12;

/// Finds orders, one after the other in the same memory.
#[derive(Debug, Default)]
pub(crate) struct Order {
    /// An item each: its time, counted from the first one, above the number of its stretch.
    keys: Vec<u64>,
    /// Where they are sorted to, in turn.
    other: Vec<u64>,
}

impl Order {
    /// The items in order. Of the same time are first those of the first stretch.
    pub(crate) fn of<'o, T: Timed>(&'o mut self, stretches: &[&'o [T]]) -> impl Iterator<Item = &'o T> {
        let mask = self.sort(stretches);
        let mut rest: Vec<_> = stretches.iter().map(|items| items.iter()).collect();
        self.keys.iter().filter_map(move |key| rest.get_mut((key & mask) as usize)?.next())
    }

    /// Sorts the keys, and tells which part of them is the stretch.
    fn sort<T: Timed>(&mut self, stretches: &[&[T]]) -> u64 {
        let start = stretches.iter().filter_map(|items| items.first()).map(T::ts).min().unwrap_or_default();
        let last = stretches.iter().filter_map(|items| items.last()).map(T::ts).max().unwrap_or_default();
        let bits = |n: u64| u64::BITS.saturating_sub(n.leading_zeros());
        let (below, above) = (bits(stretches.len() as u64), bits(last.since(start).0));
        self.keys.clear();
        if below.saturating_add(above) > u64::BITS {
            self.sort_ages(stretches);
        } else {
            for (number, items) in (0u64..).zip(stretches) {
                self.keys.extend(items.iter().map(|item| item.ts().since(start).0 << below | number));
            }
            // A single stretch is in order.
            let digits = if stretches.len() > 1 { above.div_ceil(DIGIT) } else { 0 };
            (0..digits).for_each(|digit| self.pass(below.saturating_add(digit.saturating_mul(DIGIT))));
        }
        (1 << below) - 1
    }

    /// The same where the times lie centuries apart, as damaged ones do.
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
    use crate::page::Loss;
    use proptest::prelude::*;
    use sched::Cpu;

    /// Its time, its stretch, and its place there.
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

    /// Times of several stretches: dense ones with many the same, sparse ones, and some centuries apart.
    fn times() -> impl Strategy<Value = Vec<Vec<i64>>> {
        let span = prop_oneof![Just(20), Just(1 << 21), Just(1 << 45), Just(Ts::MAX.0)];
        let stretch = |span: i64| prop::collection::vec(-span..span, 0..60);
        span.prop_flat_map(move |span| prop::collection::vec(stretch(span), 0..40))
    }

    proptest! {
        #[test]
        fn it_is_that_of_time_then_stretch_then_place(rounds in prop::collection::vec(times(), 1..4)) {
            let mut order = Order::default();
            for times in rounds {
                let stretch = |(number, mut times): (usize, Vec<i64>)| {
                    times.sort_unstable();
                    times.into_iter().enumerate().map(|(place, ts)| Item(Ts(ts), number, place)).collect()
                };
                let stretches: Vec<Vec<Item>> = times.into_iter().enumerate().map(stretch).collect();
                let slices: Vec<&[Item]> = stretches.iter().map(Vec::as_slice).collect();
                let found: Vec<&Item> = order.of(&slices).collect();
                let mut all: Vec<&Item> = stretches.iter().flatten().collect();
                all.sort_unstable();
                prop_assert_eq!(found, all);
            }
        }
    }
}

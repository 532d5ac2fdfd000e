//! Several small numbers in one, which are added, subtracted and compared in one operation.
//!
//! With them an event changes ten sums over all CPUs by two additions, and one comparison finds whether anything
//! changed, which saves about 50 of some 800 instructions per event. They are no arrays of two words: a processor
//! stalls if it loads two words as one vector just after they were written one by one.

/// Numbers of `BITS` bits each. A difference may borrow from the next number; added to the sum that the subtrahend is
/// part of, it gives the right numbers again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Packed<const BITS: usize>(u128);

impl<const BITS: usize> Packed<BITS> {
    /// The value in which all numbers are 0.
    pub(super) const ZEROS: Self = Packed(0);

    /// The value in which all bits are set: a mask that keeps every number.
    pub(super) const ALL: Self = Packed(u128::MAX);

    /// The lowest bit of the number at a place: no number extends over two words of 64 bits.
    #[inline]
    const fn shift(place: usize) -> usize {
        let in_word = 64 / BITS;
        place / in_word * 64 + place % in_word * BITS
    }

    /// One number at its place, and 0 at all others.
    #[inline]
    pub(super) const fn of(place: usize, number: u32) -> Self {
        Packed((number as u128) << Self::shift(place))
    }

    /// The number at a place.
    #[inline]
    pub(super) const fn at(self, place: usize) -> u32 {
        (self.0 >> Self::shift(place)) as u32 & (u32::MAX >> (32 - BITS))
    }

    /// The sums, place by place.
    #[inline]
    pub(super) const fn add(self, other: Self) -> Self {
        Packed(self.0.wrapping_add(other.0))
    }

    /// The numbers where the mask has all bits, 0 where it has none.
    #[inline]
    pub(super) const fn and(self, mask: Self) -> Self {
        Packed(self.0 & mask.0)
    }

    /// The differences, to be added to a sum.
    #[inline]
    pub(super) const fn less(self, other: Self) -> Self {
        Packed(self.0.wrapping_sub(other.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Packs the numbers of an array, each at its place.
    fn pack<const BITS: usize, const N: usize>(numbers: &[u32; N]) -> Packed<BITS> {
        (0..N).fold(Packed::ZEROS, |sum, place| sum.add(Packed::of(place, numbers[place])))
    }

    /// Replaces the parts of a sum one after another, as [`super::super::Sets`] does, and compares every sum with the
    /// plain one, number by number.
    fn is_the_plain_sum<const BITS: usize, const N: usize>(changes: &[(usize, [u32; N])]) -> Result<(), TestCaseError> {
        let (mut parts, mut packed) = ([[0u32; N]; PARTS], Packed::<BITS>::ZEROS);
        for (part, new) in changes {
            let old = std::mem::replace(&mut parts[*part], *new);
            let (new, old) = (pack::<BITS, N>(new), pack::<BITS, N>(&old));
            let change = new.less(old);
            prop_assert_eq!(change == Packed::ZEROS, new == old);
            packed = packed.add(change);
            for place in 0..N {
                prop_assert_eq!(packed.at(place), parts.iter().map(|part| part[place]).sum::<u32>());
            }
            let kept = Packed::of(0, u32::MAX >> (32 - BITS));
            prop_assert_eq!(packed.and(kept), Packed::of(0, packed.at(0)));
        }
        Ok(())
    }

    const PARTS: usize = 8;
    /// The sum of all parts stays below 2²¹.
    const LARGEST: u32 = (1 << 18) - 1;

    proptest! {
        #[test]
        fn six_numbers_add_up_as_plain_ones(
            changes in prop::collection::vec((0..PARTS, prop::array::uniform6(0..=LARGEST)), 1..40)
        ) {
            is_the_plain_sum::<21, 6>(&changes)?;
        }

        #[test]
        fn four_numbers_add_up_as_plain_ones(
            changes in prop::collection::vec((0..PARTS, prop::array::uniform4(0..=u32::MAX / PARTS as u32)), 1..40)
        ) {
            is_the_plain_sum::<32, 4>(&changes)?;
        }
    }
}

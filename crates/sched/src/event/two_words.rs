//! Numbers of 64 bits in two words.

/// A number of 64 bits, stored as two words, the higher one first: an event is aligned to four bytes, and 8 bytes smaller by that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct TwoWords([u32; 2]);

impl TwoWords {
    pub(super) fn of(number: u64) -> TwoWords {
        TwoWords([(number >> 32) as u32, number as u32])
    }

    pub(super) fn number(self) -> u64 {
        u64::from(self.0[0]) << 32 | u64::from(self.0[1])
    }
}

/// The number of events that the kernel counted as lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostCount(TwoWords);

impl LostCount {
    /// Makes the count of this many events.
    pub fn of(number: u64) -> LostCount {
        LostCount(TwoWords::of(number))
    }

    /// Returns the number of events.
    pub fn number(self) -> u64 {
        self.0.number()
    }
}

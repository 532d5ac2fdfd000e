//! Numbers in few bytes: of any size, seven bits a byte, the lowest first (LEB128).

/// Appends a number.
#[inline]
pub fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Takes a number from the front of `bytes`; returns it with the rest. Nothing where it is cut off, or has more than ten bytes.
#[inline]
pub fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (mut number, mut rest) = (0, bytes);
    for shift in (0..64).step_by(7) {
        let (byte, behind) = rest.split_first()?;
        number |= u64::from(byte & 0x7f) << shift;
        rest = behind;
        if byte & 0x80 == 0 {
            return Some((number, rest));
        }
    }
    None
}

/// Appends the difference of two numbers, which is short where they are close to each other.
pub fn put_difference(out: &mut Vec<u8>, number: i64, from: i64) {
    let difference = number.wrapping_sub(from);
    put(out, (difference << 1 ^ difference >> 63).cast_unsigned());
}

/// The numbers of a list of bytes, in the order in which they were put.
#[derive(Clone, Debug)]
pub struct PackedNumbers<'b>(&'b [u8]);

impl<'b> PackedNumbers<'b> {
    /// The numbers of these bytes.
    pub fn of(bytes: &'b [u8]) -> PackedNumbers<'b> {
        PackedNumbers(bytes)
    }

    /// Whether all numbers were taken.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes the next number; behind the end it is 0.
    pub fn take(&mut self) -> u64 {
        let (number, rest) = number(self.0).unwrap_or_default();
        self.0 = rest;
        number
    }

    /// Takes the next number, which was put as its difference from this one.
    pub fn take_from(&mut self, from: i64) -> i64 {
        let number = self.take();
        from.wrapping_add((number >> 1).cast_signed() ^ -((number & 1).cast_signed()))
    }

    /// Takes bytes that were put as they are, as many as there are of this number.
    pub fn take_bytes(&mut self, many: usize) -> &'b [u8] {
        let (taken, rest) = self.0.split_at(many.min(self.0.len()));
        self.0 = rest;
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_numbers_come_back() {
        let edges = (0..64).flat_map(|bit| [1u64 << bit, (1 << bit) - 1, u64::MAX >> bit]);
        let numbers: Vec<u64> = edges.collect();
        let mut bytes = Vec::new();
        for number in &numbers {
            put(&mut bytes, *number);
            put_difference(&mut bytes, number.cast_signed(), -7);
            put_difference(&mut bytes, i64::MIN, number.cast_signed());
            bytes.extend(b"text");
        }
        let mut taken = PackedNumbers::of(&bytes);
        for number in &numbers {
            assert_eq!(taken.take(), *number);
            assert_eq!(taken.take_from(-7), number.cast_signed());
            assert_eq!(taken.take_from(number.cast_signed()), i64::MIN);
            assert_eq!(taken.take_bytes(4), b"text");
        }
        assert!(taken.is_empty());
        assert_eq!((taken.take(), taken.take_bytes(3)), (0, &[][..]));
        let length = |number| {
            let mut bytes = Vec::new();
            put_difference(&mut bytes, number, 1_000);
            bytes.len()
        };
        assert_eq!([1_000, 937, 1_063, 1_064, -8_000].map(length), [1, 1, 1, 2, 3]);
    }
}

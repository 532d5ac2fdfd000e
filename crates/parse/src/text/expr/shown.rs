//! Bytes as text, as the kernel's calls in `print fmt` show them.

use super::{Bits, Expr, FieldSource};
use crate::bytes::{NumberLayout, until_nul};
use sched::Cpu;
use sched::event::escape;
use sched::topology::format_cpu_list;

/// Bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8], between: &str) -> String {
    let shown: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    shown.join(between)
}

/// `__print_hex(bytes, count)`. More than there are is damage: those there are.
pub(super) fn hex_of<'f>([of, count]: &[Expr; 2], between: &str, fields: &dyn FieldSource<'f>) -> Option<String> {
    let bytes = of.bytes(fields)?;
    let count = usize::try_from(count.number(fields)?.bits).ok()?;
    Some(hex(bytes.get(..count).unwrap_or(bytes), between))
}

/// `__print_array(numbers, count, size)`: `{0x1,0x2}`; what the kernel recorded of a text of the user's (the `write` of
/// its system calls) as text.
pub(super) fn array<'f>([of, count, size]: &[Expr; 3], fields: &dyn FieldSource<'f>) -> Option<String> {
    let bytes = of.bytes(fields)?;
    let (count, size) =
        (usize::try_from(count.number(fields)?.bits).ok()?, usize::try_from(size.number(fields)?.bits).ok()?);
    if let (Expr::Field(field), 1) = (of, size)
        && fields.is_text(*field)
    {
        return Some(format!("\"{}\"", escape(until_nul(bytes))));
    }
    if !matches!(size, 1 | 2 | 4 | 8) {
        return None;
    }
    let NumberLayout { endian, .. } = fields.layout();
    let shown: Vec<String> = bytes
        .chunks_exact(size)
        .take(count)
        .filter_map(|chunk| endian.uint(chunk, 0, size))
        .map(|n| format!("{n:#x}"))
        .collect();
    Some(format!("{{{}}}", shown.join(",")))
}

/// The bits of a mask, which the kernel keeps in its longs.
pub(crate) fn bits(mask: &[u8], how: Bits, NumberLayout { endian, long }: NumberLayout) -> String {
    let longs = || mask.chunks_exact(long.max(1)).filter_map(|chunk| endian.uint(chunk, 0, long));
    match how {
        Bits::Words => {
            let mut words: Vec<String> = longs()
                .flat_map(|number| [number, number >> 32].into_iter().take(long.div_ceil(4)))
                .map(|word| format!("{:08x}", word & 0xffff_ffff))
                .collect();
            words.reverse();
            words.join(",")
        }
        Bits::List => {
            let width = 8 * long as u32;
            let set = (0..).zip(longs()).flat_map(|(nth, number): (u32, u64)| {
                (0..width).filter(move |bit| number >> bit & 1 == 1).map(move |bit| Cpu(nth * width + bit))
            });
            format_cpu_list(&set.collect::<Vec<Cpu>>())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::Endian;

    #[test]
    fn masks_as_the_kernel_shows_them() {
        let little = NumberLayout { endian: Endian::Little, long: 8 };
        let mask = [0x3a, 0, 0, 0x80, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80];
        assert_eq!(bits(&mask, Bits::List, little), "1,3-5,31-32,127");
        assert_eq!(bits(&mask, Bits::Words, little), "80000000,00000000,00000001,8000003a");
        assert_eq!(bits(&[0; 8], Bits::List, little), "");
        let big = NumberLayout { endian: Endian::Big, long: 4 };
        assert_eq!(bits(&[0, 0, 0, 2, 0, 0, 0, 1], Bits::List, big), "1,32");
        assert_eq!(bits(&[0, 0, 0, 2, 0, 0, 0, 1], Bits::Words, big), "00000001,00000002");
    }
}

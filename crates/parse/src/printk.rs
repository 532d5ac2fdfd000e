//! The texts of `trace_printk`: `bprint` holds a pointer to a format and the arguments in binary
//! form; this puts them together as the kernel's `bstr_printf` does.
//!
//! Arguments stand in 32-bit words: a `long` or a pointer is the kernel's `long`, a `long long`
//! eight bytes on a four-byte boundary, `char` and `short` themselves; strings stand inline with
//! their NUL (`vbin_printf` in the kernel's lib/vsprintf.c).

use crate::bytes::{Endian, until_nul};
use crate::symbols::Symbols;
use std::borrow::Cow;
use std::fmt::Write;

/// What a conversion needs to know of the kernel.
pub(crate) struct Kernel<'k> {
    pub(crate) endian: Endian,
    pub(crate) long: usize,
    pub(crate) symbols: &'k Symbols,
}

/// A width or precision beyond this is damage; nothing in a 4 KiB page is longer.
const WIDEST: usize = 4096;

#[derive(Clone, Debug, Default)]
struct Conversion {
    left: bool,
    plus: bool,
    space: bool,
    zero: bool,
    alternate: bool,
    width: usize,
    precision: Option<usize>,
    length: Length,
    letter: char,
}

impl Conversion {
    /// A decimal number as it is, as most are.
    fn is_plain(&self) -> bool {
        let flags = self.left | self.plus | self.space | self.zero | self.alternate;
        matches!(self.letter, 'd' | 'i' | 'u') && !flags && self.width == 0 && self.precision.is_none()
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Length {
    Char,
    Short,
    #[default]
    Int,
    Long,
    LongLong,
}

/// Where the arguments of conversions come from, one after the other.
pub(crate) trait Source<'a> {
    /// A number of so many bytes.
    fn number(&mut self, size: usize) -> Option<u64>;
    /// A text.
    fn string(&mut self) -> Option<Cow<'a, [u8]>>;
}

/// Arguments in binary form.
struct Arguments<'a> {
    bytes: &'a [u8],
    at: usize,
    endian: Endian,
}

impl<'a> Source<'a> for Arguments<'a> {
    fn number(&mut self, size: usize) -> Option<u64> {
        let align = size.clamp(1, 4);
        let at = self.at.checked_next_multiple_of(align)?;
        let value = self.endian.uint(self.bytes, at, size)?;
        self.at = at.checked_add(size)?;
        Some(value)
    }

    fn string(&mut self) -> Option<Cow<'a, [u8]>> {
        let rest = self.bytes.get(self.at..).filter(|r| !r.is_empty())?;
        let text = until_nul(rest);
        self.at = self.at.checked_add(text.len())?.checked_add(1)?;
        Some(text.into())
    }
}

/// The text of a `bprint`. Where the arguments end too early, what was there is shown.
pub(crate) fn format(fmt: &str, arguments: &[u8], kernel: &Kernel<'_>) -> String {
    format_from(fmt, &mut Arguments { bytes: arguments, at: 0, endian: kernel.endian }, kernel)
}

/// The same with arguments from anywhere.
pub(crate) fn format_from<'a>(fmt: &str, arguments: &mut dyn Source<'a>, kernel: &Kernel<'_>) -> String {
    let mut out = String::with_capacity(fmt.len());
    let mut rest = fmt;
    while let Some((literal, after)) = rest.split_once('%') {
        out.push_str(literal);
        let mut chars = after.chars();
        match convert(&mut chars, arguments, kernel, &mut out) {
            Some(()) => rest = chars.as_str(),
            None => {
                out.push('%');
                out.push_str(after);
                return out;
            }
        }
    }
    out.push_str(rest);
    out
}

fn convert<'a>(
    chars: &mut std::str::Chars<'_>,
    arguments: &mut dyn Source<'a>,
    kernel: &Kernel<'_>,
    out: &mut String,
) -> Option<()> {
    let c = conversion(chars, arguments)?;
    match c.letter {
        '%' => out.push('%'),
        's' => {
            let text = arguments.string()?;
            let text = text.get(..c.precision.unwrap_or(text.len()).min(text.len()))?;
            pad(out, &c, &String::from_utf8_lossy(text));
        }
        'c' => {
            let value = arguments.number(1)?;
            pad(out, &c, &String::from_utf8_lossy(&[value as u8]));
        }
        'p' => pointer(chars, &c, arguments, kernel, out)?,
        'd' | 'i' | 'u' | 'x' | 'X' | 'o' => {
            let size = match c.length {
                Length::Char => 1,
                Length::Short => 2,
                Length::Int => 4,
                Length::Long => kernel.long,
                Length::LongLong => 8,
            };
            let raw = arguments.number(size)?;
            integer(out, &c, raw, size);
        }
        _ => return None,
    }
    Some(())
}

/// Reads one conversion behind its `%`; `*` takes its number from the arguments.
fn conversion<'a>(chars: &mut std::str::Chars<'_>, arguments: &mut dyn Source<'a>) -> Option<Conversion> {
    let mut c = Conversion::default();
    let mut next = chars.next()?;
    loop {
        match next {
            '-' => c.left = true,
            '+' => c.plus = true,
            ' ' => c.space = true,
            '0' => c.zero = true,
            '#' => c.alternate = true,
            _ => break,
        }
        next = chars.next()?;
    }
    if next == '*' {
        let width = crate::format::sign_extend(arguments.number(4)?, 4);
        c.left |= width < 0;
        c.width = width.unsigned_abs().min(WIDEST as u64) as usize;
        next = chars.next()?;
    } else {
        (c.width, next) = digits(next, chars)?;
    }
    if next == '.' {
        next = chars.next()?;
        if next == '*' {
            let precision = crate::format::sign_extend(arguments.number(4)?, 4);
            c.precision = usize::try_from(precision).ok().map(|p| p.min(WIDEST));
            next = chars.next()?;
        } else {
            let (precision, after) = digits(next, chars)?;
            (c.precision, next) = (Some(precision), after);
        }
    }
    loop {
        c.length = match (next, c.length) {
            ('h', Length::Short) => Length::Char,
            ('h', _) => Length::Short,
            ('l', Length::Long) | ('L' | 'q', _) => Length::LongLong,
            ('l' | 'z' | 't' | 'Z', _) => Length::Long,
            _ => break,
        };
        next = chars.next()?;
    }
    c.letter = next;
    Some(c)
}

fn digits(mut next: char, chars: &mut std::str::Chars<'_>) -> Option<(usize, char)> {
    let mut value = 0usize;
    while let Some(digit) = next.to_digit(10) {
        value = value.saturating_mul(10).saturating_add(digit as usize).min(WIDEST);
        next = chars.next()?;
    }
    Some((value, next))
}

fn pad(out: &mut String, c: &Conversion, text: &str) {
    let missing = c.width.saturating_sub(text.chars().count());
    let blanks = |out: &mut String| out.extend(std::iter::repeat_n(' ', missing));
    if c.left {
        out.push_str(text);
        blanks(out);
    } else {
        blanks(out);
        out.push_str(text);
    }
}

/// As C's printf writes integers.
fn integer(out: &mut String, c: &Conversion, raw: u64, size: usize) {
    let signed = matches!(c.letter, 'd' | 'i');
    let value = crate::format::sign_extend(raw, size);
    // Writing to a string cannot fail.
    if c.is_plain() {
        let _ = if signed { write!(out, "{value}") } else { write!(out, "{raw}") };
        return;
    }
    let magnitude = if signed { value.unsigned_abs() } else { raw };
    let digits = match c.letter {
        'x' => format!("{magnitude:x}"),
        'X' => format!("{magnitude:X}"),
        'o' => format!("{magnitude:o}"),
        _ => magnitude.to_string(),
    };
    let digits = match c.precision {
        Some(0) if magnitude == 0 => String::new(),
        Some(least) => format!("{digits:0>least$}"),
        None => digits,
    };
    let prefix = match c.letter {
        'd' | 'i' if value < 0 => "-",
        'd' | 'i' if c.plus => "+",
        'd' | 'i' if c.space => " ",
        'x' if c.alternate && magnitude != 0 => "0x",
        'X' if c.alternate && magnitude != 0 => "0X",
        'o' if c.alternate && !digits.starts_with('0') => "0",
        _ => "",
    };
    let missing = c.width.saturating_sub(digits.len().saturating_add(prefix.len()));
    let _ = match () {
        () if c.left => write!(out, "{prefix}{digits}{}", " ".repeat(missing)),
        () if c.zero && c.precision.is_none() => write!(out, "{prefix}{}{digits}", "0".repeat(missing)),
        () => write!(out, "{}{prefix}{digits}", " ".repeat(missing)),
    };
}

/// `%p` is a number; with `S s F f B` a symbol; with other letters the kernel stored the text.
fn pointer<'a>(
    chars: &mut std::str::Chars<'_>,
    c: &Conversion,
    arguments: &mut dyn Source<'a>,
    kernel: &Kernel<'_>,
    out: &mut String,
) -> Option<()> {
    let extension = chars.as_str().chars().next().filter(char::is_ascii_alphanumeric);
    match extension {
        Some(how @ ('S' | 's' | 'F' | 'f' | 'B')) => {
            chars.next();
            if chars.as_str().starts_with('R') {
                chars.next();
            }
            let address = arguments.number(kernel.long)?;
            let text = match kernel.symbols.find(address) {
                Some((name, offset)) if matches!(how, 'S' | 'F' | 'B') => format!("{name}+{offset:#x}"),
                Some((name, _)) => name.to_owned(),
                None => format!("{address:#x}"),
            };
            pad(out, c, &text);
        }
        Some('x') | None => {
            if extension.is_some() {
                chars.next();
            }
            let address = arguments.number(kernel.long)?;
            pad(out, c, &format!("{address:#x}"));
        }
        Some(_) => {
            while chars.as_str().starts_with(|c: char| c.is_ascii_alphanumeric()) {
                chars.next();
            }
            let text = arguments.string()?;
            pad(out, c, &String::from_utf8_lossy(&text));
        }
    }
    Some(())
}

/// For the fuzz target: a format up to the first NUL, arguments behind it.
#[doc(hidden)]
pub fn fuzz(bytes: &[u8]) -> usize {
    let fmt = String::from_utf8_lossy(until_nul(bytes));
    let arguments = bytes.get(until_nul(bytes).len()..).unwrap_or(&[]);
    let symbols = Symbols::default();
    let kernel = Kernel { endian: Endian::Little, long: 8, symbols: &symbols };
    format(&fmt, arguments, &kernel).len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(fmt: &str, words: &[u32]) -> String {
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        let symbols = Symbols::parse(b"1000 T schedule\n2000 T end\n");
        format(fmt, &bytes, &Kernel { endian: Endian::Little, long: 8, symbols: &symbols })
    }

    #[test]
    fn integers_as_c_writes_them() {
        assert_eq!(text("%d|%u|%x|%#x|%o", &[-5i32 as u32, 5, 255, 255, 8]), "-5|5|ff|0xff|10");
        assert_eq!(text("%5d|%-5d|%05d|%+d|% d", &[42, 42, 42, 42, 42]), "   42|42   |00042|+42| 42");
        assert_eq!(text("%.3d|%8.3x|%08.3x", &[7, 7, 7]), "007|     007|     007");
        assert_eq!(text("%ld %llu", &[u32::MAX, u32::MAX, 1, 1]), "-1 4294967297");
        assert_eq!(text("%hhd %hd", &[0x0001_00ff]), "-1 1", "a char, then a short on its boundary");
        assert_eq!(text("%*d|%-*d|%.*d", &[4, 7, 4, 7, 3, 7]), "   7|7   |007");
        assert_eq!(text("100%% %c", &[u32::from(b'x')]), "100% x");
    }

    #[test]
    fn strings_stand_inline() {
        let mut bytes = b"cpu\0".to_vec();
        bytes.extend(3u32.to_le_bytes());
        bytes.extend(b"ab\0\0");
        bytes.extend(9u32.to_le_bytes());
        let symbols = Symbols::default();
        let kernel = Kernel { endian: Endian::Little, long: 8, symbols: &symbols };
        assert_eq!(format("%s=%d %.1s %d", &bytes, &kernel), "cpu=3 a 9");
        assert_eq!(format("%s %5d", b"abc", &kernel), "abc %5d", "arguments that end too early");
    }

    #[test]
    fn pointers_and_symbols() {
        assert_eq!(text("%ps %pS %p", &[0x1010, 0, 0x1010, 0, 0xabc, 0]), "schedule schedule+0x10 0xabc");
        assert_eq!(text("%pM!", &[u32::from_le_bytes(*b"a:b\0")]), "a:b!");
    }
}

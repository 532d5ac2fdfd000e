//! The texts of `trace_printk`: `bprint` holds a pointer to a format and the arguments in binary
//! form; this puts them together as the kernel's `bstr_printf` does.
//!
//! BinaryArguments stand in 32-bit words: a `long` or a pointer is the kernel's `long`, a `long long`
//! eight bytes on a four-byte boundary, `char` and `short` themselves; strings stand inline with
//! their NUL (`vbin_printf` in the kernel's lib/vsprintf.c).

mod pointed;

use crate::bytes::{Endian, NumberLayout, sign_extend, until_nul};
use crate::limits::{EVENT_TEXT, WIDTH};
use crate::text::symbols::SymbolSource;
use std::borrow::{Borrow, Cow};
use std::ops::Range;
use std::str::Chars;

pub(crate) use pointed::Pointed;

/// The facts on the kernel that a conversion needs.
pub(crate) struct KernelFacts<'k> {
    pub(crate) layout: NumberLayout,
    pub(crate) symbols: &'k dyn SymbolSource,
}

/// A conversion of a format, without its `%`.
#[derive(Clone, Debug)]
struct Conversion {
    flags: Flags,
    width: FieldWidth,
    precision: Option<FieldWidth>,
    kind: ConversionKind,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Flags {
    left: bool,
    plus: bool,
    space: bool,
    zero: bool,
    alternate: bool,
}

/// A width or a precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FieldWidth {
    Is(usize),
    /// `*`: an argument gives it.
    Argument,
}

/// The kind of a conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConversionKind {
    Percent,
    Text,
    Char,
    /// A number in the notation of this letter.
    Integer(char, Length),
    /// The number of an error, in a pointer.
    Error,
    /// An address, as a number.
    Address,
    /// An address, as the symbol that it is in, with the offset in it or without.
    Symbol {
        distance: bool,
    },
    /// The content of the memory at an address.
    Pointed(Pointed),
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

/// A part of a format: words, and the conversion behind them, if any more follows.
#[derive(Clone, Debug)]
struct FormatPiece {
    words: Range<usize>,
    conversion: Option<Conversion>,
}

/// The parts of a format. A part that is no conversion ends it, as words.
struct Pieces<'f> {
    fmt: &'f str,
    at: usize,
}

impl Iterator for Pieces<'_> {
    type Item = FormatPiece;

    fn next(&mut self) -> Option<FormatPiece> {
        let start = self.at;
        let rest = self.fmt.get(start..).filter(|rest| !rest.is_empty())?;
        let found = rest.split_once('%').and_then(|(words, after)| {
            let mut chars = after.chars();
            let conversion = conversion(&mut chars)?;
            Some((words.len(), conversion, self.fmt.len().saturating_sub(chars.as_str().len())))
        });
        Some(match found {
            Some((words, conversion, end)) => {
                self.at = end;
                FormatPiece { words: start..start.saturating_add(words), conversion: Some(conversion) }
            }
            None => {
                self.at = self.fmt.len();
                FormatPiece { words: start..self.at, conversion: None }
            }
        })
    }
}

/// A format that was taken apart.
#[derive(Clone, Debug)]
pub(crate) struct PrintkFormat {
    text: String,
    pieces: Vec<FormatPiece>,
}

impl PrintkFormat {
    pub(crate) fn of(text: String) -> PrintkFormat {
        let pieces = Pieces { fmt: &text, at: 0 }.collect();
        PrintkFormat { text, pieces }
    }

    /// Returns the text of the format.
    #[cfg(test)]
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Adds its text with these arguments.
    pub(crate) fn put<'a>(&self, arguments: &mut impl ArgumentSource<'a>, kernel: &KernelFacts<'_>, out: &mut String) {
        put(&self.text, self.pieces.iter(), arguments, kernel, out);
    }
}

/// The reason why a conversion has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MissingValue {
    /// The arguments have ended.
    End,
    /// The file does not have the value.
    Unknown,
}

/// The arguments of a format's conversions. The printer asks for each once, in the order of the format. It prints `?` for
/// [`MissingValue::Unknown`], and stops at [`MissingValue::End`], after which no more are asked for.
pub(crate) trait ArgumentSource<'a> {
    /// Returns the next argument, a number of `size` bytes.
    fn number(&mut self, size: usize) -> Result<u64, MissingValue>;
    /// Returns the next argument, a text without its NUL.
    fn string(&mut self) -> Result<Cow<'a, [u8]>, MissingValue>;
    /// Returns the next argument, the bytes at an address, as text; `width` is that of the conversion, in characters.
    fn pointed(&mut self, how: Pointed, width: usize) -> Result<Cow<'a, [u8]>, MissingValue>;
}

/// Arguments in binary form.
struct BinaryArguments<'a> {
    bytes: &'a [u8],
    at: usize,
    endian: Endian,
}

impl<'a> ArgumentSource<'a> for BinaryArguments<'a> {
    fn number(&mut self, size: usize) -> Result<u64, MissingValue> {
        let at = self.at.checked_next_multiple_of(size.clamp(1, 4)).ok_or(MissingValue::End)?;
        let value = self.endian.uint(self.bytes, at, size).ok_or(MissingValue::End)?;
        self.at = at.saturating_add(size);
        Ok(value)
    }

    fn string(&mut self) -> Result<Cow<'a, [u8]>, MissingValue> {
        let rest = self.bytes.get(self.at..).filter(|r| !r.is_empty()).ok_or(MissingValue::End)?;
        let text = until_nul(rest);
        self.at = self.at.saturating_add(text.len()).saturating_add(1);
        Ok(text.into())
    }

    /// The kernel stored the text at once: something else could stand at the address later.
    fn pointed(&mut self, _: Pointed, _: usize) -> Result<Cow<'a, [u8]>, MissingValue> {
        self.string()
    }
}

/// The text of a `bprint`. Where the arguments end too early, the part before is shown.
pub(crate) fn format(fmt: &str, arguments: &[u8], kernel: &KernelFacts<'_>) -> String {
    let mut out = String::with_capacity(fmt.len());
    let pieces = Pieces { fmt, at: 0 };
    put(fmt, pieces, &mut BinaryArguments { bytes: arguments, at: 0, endian: kernel.layout.endian }, kernel, &mut out);
    out
}

fn put<'a>(
    fmt: &str,
    pieces: impl Iterator<Item = impl Borrow<FormatPiece>>,
    arguments: &mut impl ArgumentSource<'a>,
    kernel: &KernelFacts<'_>,
    out: &mut String,
) {
    let start = out.len();
    for piece in pieces {
        // The text is cut at the limit by its user, with a note.
        if out.len().saturating_sub(start) > EVENT_TEXT {
            return;
        }
        let FormatPiece { words, conversion } = piece.borrow();
        out.push_str(fmt.get(words.clone()).unwrap_or_default());
        match conversion.as_ref().map_or(Ok(()), |c| convert(c, arguments, kernel, out)) {
            Ok(()) => {}
            Err(MissingValue::Unknown) => out.push('?'),
            Err(MissingValue::End) => {
                out.push_str(fmt.get(words.end..).unwrap_or_default());
                return;
            }
        }
    }
}

fn convert<'a>(
    c: &Conversion,
    arguments: &mut impl ArgumentSource<'a>,
    kernel: &KernelFacts<'_>,
    out: &mut String,
) -> Result<(), MissingValue> {
    // Where a width is unknown, so is the next conversion's argument.
    let fit = Fit::of(c, arguments).map_err(|_| MissingValue::End)?;
    match c.kind {
        ConversionKind::Percent => out.push('%'),
        ConversionKind::Text => {
            let text = arguments.string()?;
            fit.put(&lossy(text.get(..fit.precision.unwrap_or(text.len())).unwrap_or(&text)), out);
        }
        ConversionKind::Char => fit.put(&lossy(&[arguments.number(1)? as u8]), out),
        ConversionKind::Integer(letter, length) => {
            let size = match length {
                Length::Char => 1,
                Length::Short => 2,
                Length::Int => 4,
                Length::Long => kernel.layout.long,
                Length::LongLong => 8,
            };
            fit.put_integer(letter, arguments.number(size)?, size, out);
        }
        ConversionKind::Address => match arguments.number(kernel.layout.long)? {
            // As glibc, and so trace-cmd, has it.
            0 => fit.put("(nil)", out),
            address => fit.put(&format!("{address:#x}"), out),
        },
        ConversionKind::Error => fit.put_integer('d', arguments.number(kernel.layout.long)?, kernel.layout.long, out),
        ConversionKind::Symbol { distance } => {
            let address = arguments.number(kernel.layout.long)?;
            match kernel.symbols.symbol(address) {
                Some((name, offset)) if distance => fit.put(&format!("{name}+{offset:#x}"), out),
                Some((name, _)) => fit.put(name, out),
                None => fit.put(&format!("{address:#x}"), out),
            }
        }
        ConversionKind::Pointed(how) => {
            let text = arguments.pointed(how, fit.width)?;
            match how {
                // Their width is a number of bytes, or of bits.
                Pointed::Hex(_) | Pointed::Bits(_) => out.push_str(&lossy(&text)),
                _ => fit.put(&lossy(&text), out),
            }
        }
    }
    Ok(())
}

/// Returns the text of bytes as [`String::from_utf8_lossy`] does, but at once for valid text.
fn lossy(text: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(text).map_or_else(|_| String::from_utf8_lossy(text), Cow::Borrowed)
}

/// The fit of a conversion's text, once the arguments are known.
struct Fit {
    flags: Flags,
    width: usize,
    precision: Option<usize>,
}

impl Fit {
    fn of<'a>(c: &Conversion, arguments: &mut impl ArgumentSource<'a>) -> Result<Fit, MissingValue> {
        let mut amount_of = |amount| match amount {
            FieldWidth::Is(n) => Ok(n as i64),
            FieldWidth::Argument => Ok(sign_extend(arguments.number(4)?, 4)),
        };
        let width = amount_of(c.width)?;
        let precision = match c.precision {
            // C: a negative precision counts as if it were absent.
            Some(amount) => usize::try_from(amount_of(amount)?).ok().map(|n| n.min(WIDTH)),
            None => None,
        };
        let flags = Flags { left: c.flags.left || width < 0, ..c.flags };
        Ok(Fit { flags, width: width.unsigned_abs().min(WIDTH as u64) as usize, precision })
    }

    /// Adds a text of these characters.
    fn put(&self, text: &str, out: &mut String) {
        // Characters are counted only where there is a width to fill.
        let missing = if self.width == 0 { 0 } else { self.width.saturating_sub(text.chars().count()) };
        let (before, behind) = if self.flags.left { (0, missing) } else { (missing, 0) };
        fill(' ', before, out);
        out.push_str(text);
        fill(' ', behind, out);
    }

    /// Adds an integer as C's printf writes it.
    fn put_integer(&self, letter: char, raw: u64, size: usize, out: &mut String) {
        let &Fit { flags, width, precision } = self;
        let signed = matches!(letter, 'd' | 'i');
        let value = sign_extend(raw, size);
        if matches!(letter, 'd' | 'i' | 'u') && flags == Flags::default() && width == 0 && precision.is_none() {
            // The quick way for a plain `%d` or `%u`, as most conversions are.
            let mut digits = itoa::Buffer::new();
            out.push_str(if signed { digits.format(value) } else { digits.format(raw) });
            return;
        }
        let magnitude = if signed { value.unsigned_abs() } else { raw };
        let digits = match letter {
            'x' => format!("{magnitude:x}"),
            'X' => format!("{magnitude:X}"),
            'o' => format!("{magnitude:o}"),
            _ => magnitude.to_string(),
        };
        let digits = match precision {
            Some(0) if magnitude == 0 => String::new(),
            Some(least) => format!("{digits:0>least$}"),
            None => digits,
        };
        let prefix = match letter {
            'd' | 'i' if value < 0 => "-",
            'd' | 'i' if flags.plus => "+",
            'd' | 'i' if flags.space => " ",
            'x' if flags.alternate && magnitude != 0 => "0x",
            'X' if flags.alternate && magnitude != 0 => "0X",
            'o' if flags.alternate && !digits.starts_with('0') => "0",
            _ => "",
        };
        let missing = width.saturating_sub(digits.len().saturating_add(prefix.len()));
        let (blanks, zeros, behind) = match () {
            () if flags.left => (0, 0, missing),
            () if flags.zero && precision.is_none() => (0, missing, 0),
            () => (missing, 0, 0),
        };
        fill(' ', blanks, out);
        out.push_str(prefix);
        fill('0', zeros, out);
        out.push_str(&digits);
        fill(' ', behind, out);
    }
}

fn fill(with: char, count: usize, out: &mut String) {
    out.extend(std::iter::repeat_n(with, count));
}

/// Reads one conversion behind its `%`.
fn conversion(chars: &mut Chars<'_>) -> Option<Conversion> {
    let mut flags = Flags::default();
    let mut next = chars.next()?;
    loop {
        match next {
            '-' => flags.left = true,
            '+' => flags.plus = true,
            ' ' => flags.space = true,
            '0' => flags.zero = true,
            '#' => flags.alternate = true,
            _ => break,
        }
        next = chars.next()?;
    }
    let (width, mut next) = amount(next, chars)?;
    let mut precision = None;
    if next == '.' {
        let (amount, after) = amount(chars.next()?, chars)?;
        (precision, next) = (Some(amount), after);
    }
    let mut length = Length::default();
    loop {
        length = match (next, length) {
            ('h', Length::Short) => Length::Char,
            ('h', _) => Length::Short,
            ('l', Length::Long) | ('L' | 'q', _) => Length::LongLong,
            ('l' | 'z' | 't' | 'Z', _) => Length::Long,
            _ => break,
        };
        next = chars.next()?;
    }
    let kind = match next {
        '%' => ConversionKind::Percent,
        's' => ConversionKind::Text,
        'c' => ConversionKind::Char,
        'p' => pointer(chars),
        'd' | 'i' | 'u' | 'x' | 'X' | 'o' => ConversionKind::Integer(next, length),
        _ => return None,
    };
    Some(Conversion { flags, width, precision, kind })
}

/// A width or a precision, and the character behind it.
fn amount(mut next: char, chars: &mut Chars<'_>) -> Option<(FieldWidth, char)> {
    if next == '*' {
        return Some((FieldWidth::Argument, chars.next()?));
    }
    let mut value = 0usize;
    while let Some(digit) = next.to_digit(10) {
        value = value.saturating_mul(10).saturating_add(digit as usize).min(WIDTH);
        next = chars.next()?;
    }
    Some((FieldWidth::Is(value), next))
}

/// `%p` is a number, as `%px` and `%pK` are, and `%pe` one of an error; with `S s F f` a symbol; with other letters what
/// stands there. For a `bprint` the kernel kept addresses for just these letters (`vbin_printf`), and else the text.
fn pointer(chars: &mut Chars<'_>) -> ConversionKind {
    let extension = chars.as_str().chars().next().filter(char::is_ascii_alphanumeric);
    match extension {
        Some(how @ ('S' | 's' | 'F' | 'f')) => {
            chars.next();
            if chars.as_str().starts_with('R') {
                chars.next();
            }
            ConversionKind::Symbol { distance: matches!(how, 'S' | 'F') }
        }
        Some('e') => {
            chars.next();
            ConversionKind::Error
        }
        Some('x' | 'K') => {
            chars.next();
            ConversionKind::Address
        }
        None => ConversionKind::Address,
        Some(_) => {
            let letters = chars.as_str();
            let end = letters.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(letters.len());
            let (letters, rest) = letters.split_at_checked(end).unwrap_or((letters, ""));
            *chars = rest.chars();
            ConversionKind::Pointed(Pointed::of(letters))
        }
    }
}

/// Prints a format up to the first NUL with the bytes behind it as arguments. The fuzz target calls this function.
#[doc(hidden)]
pub fn fuzz(bytes: &[u8]) -> usize {
    let fmt = String::from_utf8_lossy(until_nul(bytes));
    let arguments = bytes.get(until_nul(bytes).len()..).unwrap_or(&[]);
    let symbols = crate::text::symbols::Symbols::default();
    let kernel = KernelFacts { layout: NumberLayout { endian: Endian::Little, long: 8 }, symbols: &symbols };
    format(&fmt, arguments, &kernel).len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::symbols::Symbols;

    fn text(fmt: &str, words: &[u32]) -> String {
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        let symbols = Symbols::parse(b"1000 T schedule\n2000 T end\n");
        format(
            fmt,
            &bytes,
            &KernelFacts { layout: NumberLayout { endian: Endian::Little, long: 8 }, symbols: &symbols },
        )
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
    fn widths_have_a_limit() {
        assert_eq!(text("%999999d", &[7]).len(), 4096);
        assert_eq!(text("%*d", &[i32::MAX as u32, 7]).len(), 4096);
        assert_eq!(text("%-*d|", &[i32::MIN as u32, 7]).len(), 4097);
        assert_eq!(text("%.*d", &[i32::MAX as u32, 7]).len(), 4096);
        // The piece that reaches the limit is the last.
        let long = text(&"%4096d".repeat(10_000), &[7; 10_000]);
        assert!((EVENT_TEXT..=EVENT_TEXT + 4096).contains(&long.len()), "{}", long.len());
    }

    #[test]
    fn strings_stand_inline() {
        let mut bytes = b"cpu\0".to_vec();
        bytes.extend(3u32.to_le_bytes());
        bytes.extend(b"ab\0\0");
        bytes.extend(9u32.to_le_bytes());
        let symbols = Symbols::default();
        let kernel = KernelFacts { layout: NumberLayout { endian: Endian::Little, long: 8 }, symbols: &symbols };
        assert_eq!(format("%s=%d %.1s %d", &bytes, &kernel), "cpu=3 a 9");
        assert_eq!(format("%s %5d", b"abc", &kernel), "abc %5d", "arguments that end too early");
    }

    #[test]
    fn pointers_and_symbols() {
        assert_eq!(text("%ps %pS %p", &[0x1010, 0, 0x1010, 0, 0xabc, 0]), "schedule schedule+0x10 0xabc");
        assert_eq!(text("%pM!", &[u32::from_le_bytes(*b"a:b\0")]), "a:b!");
        assert_eq!(text("%pB!", &[u32::from_le_bytes(*b"f+1\0")]), "f+1!");
        assert_eq!(text("%pe %pK", &[-2i32 as u32, u32::MAX, 0x10, 0]), "-2 0x10");
    }
}

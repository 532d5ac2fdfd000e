//! The expressions in `print fmt` texts: numbers, texts, `REC->field`, casts, the integer operators, `?:`, and the
//! kernel's calls that name fields, numbers and bits, or show bytes (`include/trace/stages/stage3_trace_output.h`).
//! A value that the file lacks (an enumerator, a variable, another function of the kernel) is [`Expr::Unknown`].

mod parse;
pub(crate) mod shown;
mod text;

use crate::bytes::{Endian, NumberLayout, sign_extend, zero_extend};
use std::borrow::Cow;
use std::collections::BTreeSet;

pub(crate) use self::parse::{Parsed, parse};
pub(crate) use text::{arguments, string_literal};

/// An integer of C: 64 bits, and whether they have a sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Number {
    pub(crate) bits: i64,
    pub(crate) unsigned: bool,
}

/// An expression among the arguments of a print format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expr {
    Number(Number),
    Text(String),
    /// `REC->name`, `__get_str(name)`, `__get_dynamic_array(name)`: by its place among the fields that are named.
    Field(usize),
    /// `__get_dynamic_array_len(name)`: how many bytes it has.
    Length(usize),
    /// `sizeof(long)`, which is the kernel's.
    Long,
    /// The element `REC->name[i]` of an array field: the field's place, and the index.
    Element(usize, Box<Expr>),
    Unary(&'static str, Box<Expr>),
    Binary(&'static str, Box<Expr>, Box<Expr>),
    If(Box<[Expr; 3]>),
    /// A cast to a number of bytes, signed (`true`) or unsigned.
    Cast(usize, bool, Box<Expr>),
    /// `__print_symbolic`: the name of a number.
    Symbol(Box<Expr>, Vec<(i64, String)>),
    /// `__print_flags`: the names of bits, and what stands between them.
    Flags(Box<Expr>, String, Vec<(i64, String)>),
    /// `__print_hex`: bytes, how many, and what stands between them.
    Hex(Box<[Expr; 2]>, &'static str),
    /// `__print_array`: numbers, how many, and the size of one.
    Array(Box<[Expr; 3]>),
    /// `__get_bitmask`: the bits that are set, as words or as a list.
    Bits(usize, Bits),
    /// A value that no reader of the file has, with its parts.
    Unknown(Vec<Expr>),
}

/// The notation of a bit mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bits {
    /// Hexadecimal words: `00000000,0000000a`.
    Words,
    /// A list of ranges: `1,3-5`.
    List,
}

/// The values of a record's fields while an expression is evaluated. Each field is named by its place in
/// [`Parsed::fields`]; a hook returns `None` where the record does not have the value, and the expression then has none
/// either.
pub(crate) trait FieldSource<'f> {
    /// Returns the number in a field; `None` if the field is text or an array.
    fn number(&self, field: usize) -> Option<Number>;
    /// Returns the number in the element `index` of an array field.
    fn element(&self, field: usize, index: usize) -> Option<Number>;
    /// Returns the bytes of a field that is no number, those of a dynamic field included.
    fn bytes(&self, field: usize) -> Option<&'f [u8]>;
    /// Whether the bytes of a field are characters.
    fn is_text(&self, field: usize) -> bool;
    /// Returns the text of a field without its NUL.
    fn text(&self, field: usize) -> Option<Cow<'f, [u8]>>;
    /// Returns the text that the kernel has at an address, from `printk_formats`.
    fn stored(&self, address: u64) -> Option<&'f str>;
    /// Returns the byte order and the word size of the record.
    fn layout(&self) -> NumberLayout;
}

/// The value of a constant expression; `None` if it is none.
pub(crate) fn constant(text: &str) -> Option<i64> {
    match fold(text)? {
        (value, false) => Some(value),
        _ => None,
    }
}

/// The constant part of an expression over one field: of `REC->prev_state & MASK`, the mask. The
/// flag shows whether a field was in it. The field counts as all ones.
pub(crate) fn fold(text: &str) -> Option<(i64, bool)> {
    let parsed = parse(text)?;
    let [only] = parsed.expressions.as_slice() else { return None };
    Some((only.number(&ALL_ONES)?.bits, !parsed.fields.is_empty()))
}

/// Fields that all have the same number, or none.
struct Same(Option<Number>);

const ALL_ONES: Same = Same(Some(Number { bits: -1, unsigned: false }));

impl<'f> FieldSource<'f> for Same {
    fn number(&self, _: usize) -> Option<Number> {
        self.0
    }

    fn element(&self, _: usize, _: usize) -> Option<Number> {
        None
    }

    fn bytes(&self, _: usize) -> Option<&'f [u8]> {
        None
    }

    fn is_text(&self, _: usize) -> bool {
        false
    }

    fn text(&self, _: usize) -> Option<Cow<'f, [u8]>> {
        None
    }

    fn stored(&self, _: u64) -> Option<&'f str> {
        None
    }

    fn layout(&self) -> NumberLayout {
        NumberLayout { endian: Endian::Little, long: 8 }
    }
}

impl Expr {
    /// Returns the expressions that this one is made of.
    fn parts(&self) -> Vec<&Expr> {
        match self {
            Expr::Number(_) | Expr::Text(_) | Expr::Field(_) | Expr::Length(_) | Expr::Long | Expr::Bits(..) => {
                Vec::new()
            }
            Expr::Unary(_, of) | Expr::Cast(_, _, of) | Expr::Element(_, of) => vec![of],
            Expr::Symbol(of, _) | Expr::Flags(of, ..) => vec![of],
            Expr::Binary(_, a, b) => vec![a, b],
            Expr::If(parts) | Expr::Array(parts) => parts.iter().collect(),
            Expr::Hex(parts, _) => parts.iter().collect(),
            Expr::Unknown(parts) => parts.iter().collect(),
        }
    }

    /// Whether the expression and all of its parts can be evaluated from a record.
    pub(crate) fn is_known(&self) -> bool {
        !matches!(self, Expr::Unknown(_)) && self.parts().into_iter().all(Expr::is_known)
    }

    /// Adds the fields that it names.
    pub(crate) fn add_fields(&self, to: &mut BTreeSet<usize>) {
        if let Expr::Field(field) | Expr::Length(field) | Expr::Element(field, _) | Expr::Bits(field, _) = self {
            to.insert(*field);
        }
        self.parts().into_iter().for_each(|part| part.add_fields(to));
    }

    /// Returns the value as a number; `None` where the value is a text or unknown, or where the expression divides by
    /// zero.
    pub(crate) fn number<'f>(&self, fields: &dyn FieldSource<'f>) -> Option<Number> {
        match self {
            Expr::Number(number) => Some(*number),
            Expr::Field(field) => fields.number(*field),
            Expr::Length(field) => size(fields.bytes(*field)?.len()),
            Expr::Long => size(fields.layout().long),
            Expr::Element(field, index) => fields.element(*field, usize::try_from(index.number(fields)?.bits).ok()?),
            Expr::Unary(op, of) => {
                let Number { bits, unsigned } = of.number(fields)?;
                Some(match *op {
                    "-" => Number { bits: bits.wrapping_neg(), unsigned },
                    "~" => Number { bits: !bits, unsigned },
                    "!" => Number { bits: i64::from(bits == 0), unsigned: false },
                    _ => Number { bits, unsigned },
                })
            }
            Expr::Binary(op, a, b) => apply(op, a.number(fields)?, b.number(fields)?),
            Expr::If(parts) => chosen(parts, fields)?.number(fields),
            Expr::Cast(size, signed, of) => {
                let raw = of.number(fields)?.bits.cast_unsigned();
                let bits = if *signed { sign_extend(raw, *size) } else { zero_extend(raw, *size).cast_signed() };
                Some(Number { bits, unsigned: !signed })
            }
            Expr::Text(_)
            | Expr::Symbol(..)
            | Expr::Flags(..)
            | Expr::Hex(..)
            | Expr::Array(_)
            | Expr::Bits(..)
            | Expr::Unknown(_) => None,
        }
    }

    /// The bytes that it stands for; `None` where it is a number or a text of its own.
    pub(crate) fn bytes<'f>(&self, fields: &dyn FieldSource<'f>) -> Option<&'f [u8]> {
        match self {
            Expr::Field(field) => fields.bytes(*field),
            // To another type of pointer.
            Expr::Cast(8, false, of) => of.bytes(fields),
            Expr::If(parts) => chosen(parts, fields)?.bytes(fields),
            _ => None,
        }
    }

    /// Returns the value as a text. A number is the address of a text.
    pub(crate) fn text<'f>(&'f self, fields: &dyn FieldSource<'f>) -> Option<Cow<'f, [u8]>> {
        let owned = |text: String| Some(Cow::Owned(text.into_bytes()));
        match self {
            Expr::Text(text) => Some(Cow::Borrowed(text.as_bytes())),
            Expr::Field(field) => fields.text(*field).or_else(|| self.at_address(fields)),
            Expr::If(parts) => chosen(parts, fields)?.text(fields),
            Expr::Symbol(of, names) => {
                let value = of.number(fields)?.bits;
                let name = names.iter().find(|(number, _)| *number == value);
                name.map_or_else(|| owned(format!("{value:#x}")), |(_, name)| Some(Cow::Borrowed(name.as_bytes())))
            }
            Expr::Flags(of, between, names) => owned(flags(of.number(fields)?.bits, between, names)),
            Expr::Hex(parts, between) => owned(shown::hex_of(parts, between, fields)?),
            Expr::Array(parts) => owned(shown::array(parts, fields)?),
            Expr::Bits(field, how) => owned(shown::bits(fields.bytes(*field)?, *how, fields.layout())),
            _ => self.at_address(fields),
        }
    }

    /// The name that the kernel has at this address, or the address.
    fn at_address<'f>(&self, fields: &dyn FieldSource<'f>) -> Option<Cow<'f, [u8]>> {
        let address = self.number(fields)?.bits.cast_unsigned();
        Some(
            fields
                .stored(address)
                .map_or_else(|| format!("{address:#x}").into_bytes().into(), |text| text.as_bytes().into()),
        )
    }
}

/// A number of bytes, as `sizeof` gives it.
fn size(bytes: usize) -> Option<Number> {
    Some(Number { bits: i64::try_from(bytes).ok()?, unsigned: true })
}

/// Returns the chosen one of `condition ? one : other`.
fn chosen<'e, 'f>([condition, one, other]: &'e [Expr; 3], fields: &dyn FieldSource<'f>) -> Option<&'e Expr> {
    Some(if condition.number(fields)?.bits != 0 { one } else { other })
}

/// Returns the names of the set bits as `trace-cmd report` prints them; bits without a name follow as a number.
fn flags(mut value: i64, between: &str, names: &[(i64, String)]) -> String {
    let mut shown: Vec<Cow<'_, str>> = Vec::new();
    for (mask, name) in names {
        if *mask != 0 && value & mask == *mask {
            shown.push(name.into());
            value &= !mask;
        }
    }
    if value != 0 {
        shown.push(format!("{value:#x}").into());
    }
    shown.join(between)
}

fn apply(
    op: &str,
    Number { bits: a, unsigned: ua }: Number,
    Number { bits: b, unsigned: ub }: Number,
) -> Option<Number> {
    let unsigned = ua || ub;
    let (x, y) = (a.cast_unsigned(), b.cast_unsigned());
    let less = if unsigned { x < y } else { a < b };
    let shift = || u32::try_from(b).ok().filter(|b| *b < 64);
    let truth = |is: bool| Some(Number { bits: i64::from(is), unsigned: false });
    let bits = match op {
        "||" => return truth(a != 0 || b != 0),
        "&&" => return truth(a != 0 && b != 0),
        "==" => return truth(a == b),
        "!=" => return truth(a != b),
        "<" => return truth(less),
        ">=" => return truth(!less),
        ">" => return truth(!less && a != b),
        "<=" => return truth(less || a == b),
        "|" => a | b,
        "^" => a ^ b,
        "&" => a & b,
        "<<" => a.wrapping_shl(shift()?),
        ">>" if ua => x.wrapping_shr(shift()?).cast_signed(),
        ">>" => a.wrapping_shr(shift()?),
        "+" => a.wrapping_add(b),
        "-" => a.wrapping_sub(b),
        "*" => a.wrapping_mul(b),
        "/" if unsigned => x.checked_div(y)?.cast_signed(),
        "/" => a.checked_div(b)?,
        _ if unsigned => x.checked_rem(y)?.cast_signed(),
        _ => a.checked_rem(b)?,
    };
    Some(Number { bits, unsigned: if matches!(op, "<<" | ">>") { ua } else { unsigned } })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits;

    #[test]
    fn folds_the_kernels_expressions() {
        assert_eq!(constant("((0x0000 | 0x0001 | 0x0002 | 0x0080) + 1) << 1"), Some(0x108));
        assert_eq!(constant("(1UL << 3) - 1"), Some(7));
        assert_eq!(constant("1 + 2 * 3 == 7 && !0"), Some(1));
        assert_eq!(constant("10 - 2 - 3"), Some(5), "from the left");
        assert_eq!(constant("1 ? 2 : 3 ? 4 : 5"), Some(2));
        assert_eq!(constant("(unsigned char)-1 + (short)0x18000"), Some(255 - 0x8000));
        assert_eq!(constant("0xffffffffffffffff / 2 > 1 && -1 / 2 == 0"), Some(1), "with a sign and without");
        assert_eq!(fold("REC->prev_state & (2048-1)"), Some((2047, true)));
        assert_eq!(fold("(unsigned long)(REC->prev_state) & ~0x0f"), Some((!0x0f, true)));
        for bad in [
            "",
            "1 +",
            "(1",
            "1)",
            "(1 }",
            "1 ]",
            "1/0",
            "1 << 99",
            "x",
            "0x",
            "1 ? 2",
            "\"a\"",
            "1, 2",
            &"(".repeat(500),
        ] {
            assert_eq!(fold(bad), None, "{bad}");
        }
        assert_eq!(fold(&format!("1{}", "+1".repeat(100_000))), None, "no end of it");
        let names = format!("1{}", r#"+__print_flags(1, "|", { 1 + 1, "a" })"#.repeat(2_000));
        assert!(parse(&names).is_none(), "nor by names between");
    }

    /// The cost of a hostile text: with a search for the end of a cast at each parenthesis these took minutes.
    #[test]
    fn megabytes_are_refused_while_they_are_read() {
        let passed = || parse::PASSED.get();
        for piece in ["(", "((int)", "~", "(a ", "1,", "REC->a,", "{", "'a',", "a(", "\"\"", "REC->x["] {
            let before = passed();
            assert!(parse(&piece.repeat((4 << 20) / piece.len())).is_none(), "{piece}");
            assert!(passed() - before <= 8 * limits::TOKENS, "{piece}: {} characters", passed() - before);
        }
        let deep = |depth: usize| format!("{}1{}", "(".repeat(depth), ")".repeat(depth));
        assert_eq!((constant(&deep(limits::NESTING - 2)), constant(&deep(limits::NESTING))), (Some(1), None));
        let long = |operators: usize| format!("1{}", "+1".repeat(operators));
        let most = limits::OPERATORS as usize - 1;
        assert_eq!((constant(&long(most)), constant(&long(most + 1))), (Some(1000), None));
        let many = |tokens: usize| parse(&format!("1{}", ",1".repeat((tokens - 1) / 2))).map(|p| p.expressions.len());
        assert_eq!(many(limits::TOKENS - 1), Some(limits::TOKENS / 2));
        assert_eq!(many(limits::TOKENS + 1), None);
    }

    #[test]
    fn names_numbers_and_bits() {
        let text = |expression: &str| {
            let parsed = parse(expression).expect("an expression");
            let text = parsed.expressions[0].text(&ALL_ONES).expect("a text");
            String::from_utf8_lossy(&text).into_owned()
        };
        assert_eq!(text(r#"1 ? "handled" : "unhandled""#), "handled");
        assert_eq!(text(r#"__print_symbolic(3 & 2, { 1, "one" }, { (1 << 1), "two" })"#), "two");
        assert_eq!(text(r#"__print_symbolic(7, { 1, "one" })"#), "0x7");
        assert_eq!(text(r#"__print_symbolic(1, { SOME_MODE, "some" }, { 1, "one" })"#), "one");
        assert_eq!(text(r#"__print_symbolic((REC)->mode + 1, { SOME_MODE, "some" })"#), "0x0");
        assert_eq!(text(r#"__print_flags(0x15, "|", { 1, "a" }, { 0x4, "c" }, { 0x0, "nothing" })"#), "a|c|0x10");
        assert_eq!(text(r#"__print_flags(0, "|", { 1, "a" })"#), "");
    }
}

//! The expressions in `print fmt` texts: numbers, texts, `REC->field`, casts, the integer operators, `?:`, and the
//! kernel's calls that name fields, numbers and bits. Calls that do more than that are none of ours.

mod parse;
mod text;

use crate::format::{sign_extend, zero_extend};
use std::borrow::Cow;

pub(crate) use parse::{Parsed, parse};
pub(crate) use text::{arguments, string_literal};

/// An integer of C: 64 bits, and whether they have a sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Number {
    pub(crate) bits: i64,
    pub(crate) unsigned: bool,
}

/// What an expression is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expr {
    Number(Number),
    Text(String),
    /// `REC->name`, `__get_str(name)`: by its place among the fields that are named.
    Field(usize),
    /// `REC->name[i]`.
    Element(usize, Box<Expr>),
    Unary(&'static str, Box<Expr>),
    Binary(&'static str, Box<Expr>, Box<Expr>),
    If(Box<[Expr; 3]>),
    /// To so many bytes, with a sign or without.
    Cast(usize, bool, Box<Expr>),
    /// `__print_symbolic`: the name of a number.
    Symbol(Box<Expr>, Vec<(i64, String)>),
    /// `__print_flags`: the names of bits, and what stands between them.
    Flags(Box<Expr>, String, Vec<(i64, String)>),
}

/// Where the values of fields come from, each by its place in [`Parsed::fields`].
pub(crate) trait Fields<'f> {
    /// The number in a field.
    fn number(&self, field: usize) -> Option<Number>;
    /// The number in one place of a field.
    fn element(&self, field: usize, index: usize) -> Option<Number>;
    /// The text in a field.
    fn text(&self, field: usize) -> Option<Cow<'f, [u8]>>;
}

/// The value of a constant expression; `None` if it is none.
pub(crate) fn constant(text: &str) -> Option<i64> {
    match fold(text)? {
        (value, false) => Some(value),
        _ => None,
    }
}

/// The constant part of an expression over one field: of `REC->prev_state & MASK`, the mask. The
/// flag tells whether a field was in it. The field counts as all ones.
pub(crate) fn fold(text: &str) -> Option<(i64, bool)> {
    let parsed = parse(text)?;
    let [only] = parsed.expressions.as_slice() else { return None };
    Some((only.number(&ALL_ONES)?.bits, !parsed.fields.is_empty()))
}

/// Fields that all have the same number, or none.
pub(crate) struct Same(Option<Number>);

pub(crate) const ALL_ONES: Same = Same(Some(Number { bits: -1, unsigned: false }));

impl<'f> Fields<'f> for Same {
    fn number(&self, _: usize) -> Option<Number> {
        self.0
    }

    fn element(&self, _: usize, _: usize) -> Option<Number> {
        None
    }

    fn text(&self, _: usize) -> Option<Cow<'f, [u8]>> {
        None
    }
}

impl Expr {
    /// Its value as a number; `None` where it is a text, or divides by zero.
    pub(crate) fn number<'f>(&self, fields: &dyn Fields<'f>) -> Option<Number> {
        match self {
            Expr::Number(number) => Some(*number),
            Expr::Field(field) => fields.number(*field),
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
            Expr::Text(_) | Expr::Symbol(..) | Expr::Flags(..) => None,
        }
    }

    /// Its value as a text; `None` where it is a number.
    pub(crate) fn text<'f>(&'f self, fields: &dyn Fields<'f>) -> Option<Cow<'f, [u8]>> {
        let owned = |text: String| Some(Cow::Owned(text.into_bytes()));
        match self {
            Expr::Text(text) => Some(Cow::Borrowed(text.as_bytes())),
            Expr::Field(field) => fields.text(*field),
            Expr::If(parts) => chosen(parts, fields)?.text(fields),
            Expr::Symbol(of, names) => {
                let value = of.number(fields)?.bits;
                let name = names.iter().find(|(number, _)| *number == value);
                name.map_or_else(|| owned(format!("{value:#x}")), |(_, name)| Some(Cow::Borrowed(name.as_bytes())))
            }
            Expr::Flags(of, between, names) => owned(flags(of.number(fields)?.bits, between, names)),
            _ => None,
        }
    }
}

/// Which of the two, of `condition ? one : other`.
fn chosen<'e, 'f>([condition, one, other]: &'e [Expr; 3], fields: &dyn Fields<'f>) -> Option<&'e Expr> {
    Some(if condition.number(fields)?.bits != 0 { one } else { other })
}

/// As `trace-cmd report` has them: what no name explains as a number behind the others.
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
        for bad in ["", "1 +", "(1", "1)", "1/0", "1 << 99", "x", "0x", "1 ? 2", "\"a\"", "1, 2", &"(".repeat(500)] {
            assert_eq!(fold(bad), None, "{bad}");
        }
        assert_eq!(fold(&format!("1{}", "+1".repeat(100_000))), None, "no end of it");
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

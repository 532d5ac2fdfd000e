//! Constant folding for the expressions in `print fmt` texts: numbers, `REC->field`, casts,
//! parentheses and the integer operators. The fmt is never executed on events; only the masks and
//! tables in it are read.

use std::iter::Peekable;
use std::str::Chars;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Number(i64),
    /// `REC->name`.
    Field,
    Op(&'static str),
}

/// How deep parentheses may nest before the text is taken for nonsense.
const DEPTH: u32 = 64;

const OPS: [&str; 22] = [
    "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "(", ")", "+", "-", "*", "/", "%", "&", "|", "^", "~", "!", "<",
    ">",
];

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
    let tokens = tokenize(text)?;
    let has_field = tokens.contains(&Token::Field);
    let mut parser = Parser { tokens: tokens.into_iter().peekable(), depth: 0 };
    let value = parser.binary(0)?;
    parser.tokens.peek().is_none().then_some((value, has_field))
}

fn tokenize(text: &str) -> Option<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(c) = rest.chars().next() {
        if c.is_ascii_digit() {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
            let (word, after) = rest.split_at_checked(end)?;
            tokens.push(Token::Number(literal(word)?));
            rest = after;
        } else if let Some(after) = rest.strip_prefix("REC->") {
            rest = after.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
            tokens.push(Token::Field);
        } else if c == '(' && is_cast(rest) {
            rest = rest.split_once(')')?.1;
        } else {
            let op = OPS.iter().find(|op| rest.starts_with(**op))?;
            tokens.push(Token::Op(op));
            rest = rest.strip_prefix(op)?;
        }
        rest = rest.trim_start();
    }
    Some(tokens)
}

/// `(unsigned long)`: letters only, and not `(REC->…)`.
fn is_cast(text: &str) -> bool {
    let inside = text.strip_prefix('(').and_then(|t| t.split_once(')')).map(|(inside, _)| inside.trim());
    inside.is_some_and(|t| {
        t.starts_with(|c: char| c.is_ascii_alphabetic())
            && t.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == ' ' || c == '*')
    })
}

fn literal(word: &str) -> Option<i64> {
    let word = word.trim_end_matches(['u', 'U', 'l', 'L']);
    match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16).ok().map(u64::cast_signed),
        None if word.len() > 1 && word.starts_with('0') => i64::from_str_radix(word, 8).ok(),
        None => word.parse().ok(),
    }
}

struct Parser {
    tokens: Peekable<std::vec::IntoIter<Token>>,
    depth: u32,
}

fn precedence(op: &str) -> Option<u8> {
    Some(match op {
        "||" => 1,
        "&&" => 2,
        "|" => 3,
        "^" => 4,
        "&" => 5,
        "==" | "!=" => 6,
        "<" | ">" | "<=" | ">=" => 7,
        "<<" | ">>" => 8,
        "+" | "-" => 9,
        "*" | "/" | "%" => 10,
        _ => return None,
    })
}

fn apply(op: &str, a: i64, b: i64) -> Option<i64> {
    let shift = || u32::try_from(b).ok().filter(|b| *b < 64);
    Some(match op {
        "||" => i64::from(a != 0 || b != 0),
        "&&" => i64::from(a != 0 && b != 0),
        "|" => a | b,
        "^" => a ^ b,
        "&" => a & b,
        "==" => i64::from(a == b),
        "!=" => i64::from(a != b),
        "<" => i64::from(a < b),
        ">" => i64::from(a > b),
        "<=" => i64::from(a <= b),
        ">=" => i64::from(a >= b),
        "<<" => a.wrapping_shl(shift()?),
        ">>" => a.wrapping_shr(shift()?),
        "+" => a.wrapping_add(b),
        "-" => a.wrapping_sub(b),
        "*" => a.wrapping_mul(b),
        "/" => a.checked_div(b)?,
        _ => a.checked_rem(b)?,
    })
}

impl Parser {
    fn binary(&mut self, least: u8) -> Option<i64> {
        let mut left = self.unary()?;
        while let Some(Token::Op(op)) = self.tokens.peek().cloned() {
            let Some(precedence) = precedence(op).filter(|p| *p > least) else { break };
            self.tokens.next();
            left = apply(op, left, self.binary(precedence)?)?;
        }
        Some(left)
    }

    fn unary(&mut self) -> Option<i64> {
        self.depth = self.depth.checked_add(1).filter(|d| *d < DEPTH)?;
        let value = match self.tokens.next()? {
            Token::Number(n) => n,
            Token::Field => -1,
            Token::Op("-") => self.unary()?.wrapping_neg(),
            Token::Op("+") => self.unary()?,
            Token::Op("~") => !self.unary()?,
            Token::Op("!") => i64::from(self.unary()? == 0),
            Token::Op("(") => {
                let value = self.binary(0)?;
                (self.tokens.next()? == Token::Op(")")).then_some(value)?
            }
            Token::Op(_) => return None,
        };
        self.depth = self.depth.saturating_sub(1);
        Some(value)
    }
}

/// Splits the arguments of a call, `text` standing right behind its opening parenthesis: at commas
/// outside of parentheses, braces and strings, up to the closing parenthesis.
pub(crate) fn arguments(text: &str) -> Option<Vec<&str>> {
    let mut arguments = Vec::new();
    let mut depth = 0u32;
    let mut start = 0;
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => skip_string(&mut chars)?,
            '(' | '{' => depth = depth.checked_add(1)?,
            ')' if depth == 0 => {
                arguments.push(text.get(start..at)?.trim());
                return Some(arguments);
            }
            ')' | '}' => depth = depth.checked_sub(1)?,
            ',' if depth == 0 => {
                arguments.push(text.get(start..at)?.trim());
                start = at.checked_add(1)?;
            }
            _ => {}
        }
    }
    None
}

fn skip_string(chars: &mut std::str::CharIndices<'_>) -> Option<()> {
    loop {
        match chars.next()?.1 {
            '\\' => drop(chars.next()),
            '"' => return Some(()),
            _ => {}
        }
    }
}

/// The text of a C string literal, its escapes resolved; `None` if `text` is none. Adjacent
/// literals are joined, as in C (`kernel_stack` of 6.18 has three).
pub(crate) fn string_literal(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut chars = text.trim().chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' => one_literal(&mut chars, &mut out)?,
            c if c.is_whitespace() => {}
            _ => return None,
        }
    }
    Some(out)
}

fn one_literal(chars: &mut Peekable<Chars<'_>>, out: &mut String) -> Option<()> {
    loop {
        match chars.next()? {
            '"' => return Some(()),
            '\\' => out.push(match chars.next()? {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                'a' => '\x07',
                'b' => '\x08',
                'f' => '\x0c',
                'v' => '\x0b',
                'e' => '\x1b',
                c @ '0'..='7' => octal(c, chars)?,
                other => other,
            }),
            c => out.push(c),
        }
    }
}

fn octal(first: char, chars: &mut Peekable<Chars<'_>>) -> Option<char> {
    let mut value = first.to_digit(8)?;
    for _ in 0..2 {
        let Some(digit) = chars.peek().and_then(|c| c.to_digit(8)) else { break };
        chars.next();
        value = (value << 3) | digit;
    }
    char::from_u32(value)
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
        assert_eq!(fold("REC->prev_state & (2048-1)"), Some((2047, true)));
        assert_eq!(fold("(unsigned long)(REC->prev_state) & ~0x0f"), Some((!0x0f, true)));
        for bad in ["", "1 +", "(1", "1)", "1/0", "1 << 99", "x", "0x", &"(".repeat(500)] {
            assert_eq!(fold(bad), None, "{bad}");
        }
    }

    #[test]
    fn splits_arguments_and_strings() {
        let args = arguments(r#"a, "x,)\"", { 1, "S" }, f(b, c)), rest"#).unwrap();
        assert_eq!(args, ["a", r#""x,)\"""#, r#"{ 1, "S" }"#, "f(b, c)"]);
        assert_eq!(arguments("a, b"), None);
        assert_eq!(string_literal(r#""a\n" "b\101\\" "#).unwrap(), "a\nbA\\");
        assert_eq!(string_literal("REC->x"), None);
    }
}

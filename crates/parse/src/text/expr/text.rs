//! The texts in quotes and behind parentheses in `print fmt`.

use std::iter::Peekable;
use std::str::Chars;

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

/// Returns the offset behind the string literal at the start of `text`.
pub(super) fn literal_end(text: &str) -> Option<usize> {
    let mut chars = text.char_indices();
    chars.next().filter(|(_, c)| *c == '"')?;
    skip_string(&mut chars)?;
    Some(chars.offset())
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
    fn splits_arguments_and_strings() {
        let args = arguments(r#"a, "x,)\"", { 1, "S" }, f(b, c)), rest"#).unwrap();
        assert_eq!(args, ["a", r#""x,)\"""#, r#"{ 1, "S" }"#, "f(b, c)"]);
        assert_eq!(arguments("a, b"), None);
        assert_eq!(string_literal(r#""a\n" "b\101\\" "#).unwrap(), "a\nbA\\");
        assert_eq!(string_literal("REC->x"), None);
    }
}

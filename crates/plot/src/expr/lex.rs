//! The words of a condition.

use super::{Compare, ExprError, MAX_LENGTH};

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Name(String),
    Number(i128),
    Text(String),
    Compare(Compare),
    Matches,
    NotMatches,
    Bits,
    Open,
    Close,
    OpenList,
    CloseList,
    Comma,
    And,
    Or,
    Not,
    In,
}

fn error<T>(at: usize, message: impl Into<String>) -> Result<T, ExprError> {
    Err(ExprError { at, message: message.into() })
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.'
}

/// Splits a condition into tokens, each with its offset.
pub(super) fn tokens(source: &str) -> Result<Vec<(Token, usize)>, ExprError> {
    if source.len() > MAX_LENGTH {
        return error(0, format!("the condition is longer than {MAX_LENGTH} bytes"));
    }
    let bytes = source.as_bytes();
    let (mut tokens, mut at) = (Vec::new(), 0);
    while let Some(&byte) = bytes.get(at) {
        let start = at;
        let token = match byte {
            b' ' | b'\t' | b'\n' | b'\r' => {
                at += 1;
                continue;
            }
            b'(' => Token::Open,
            b')' => Token::Close,
            b'[' => Token::OpenList,
            b']' => Token::CloseList,
            b',' => Token::Comma,
            b'\'' | b'"' => {
                let (text, end) = quoted(source, at)?;
                at = end;
                tokens.push((Token::Text(text), start));
                continue;
            }
            b'$' | b'_' | b'a'..=b'z' | b'A'..=b'Z' => {
                let length = 1 + bytes[at + 1..].iter().take_while(|byte| is_name_byte(**byte)).count();
                at += length;
                tokens.push((word(&source[start..at]), start));
                continue;
            }
            b'0'..=b'9' | b'-' => {
                let length = 1 + bytes[at + 1..].iter().take_while(|byte| is_name_byte(**byte)).count();
                at += length;
                tokens.push((Token::Number(number(&source[start..at], start)?), start));
                continue;
            }
            _ => symbol(source, &mut at)?,
        };
        at += 1;
        tokens.push((token, start));
    }
    Ok(tokens)
}

fn word(word: &str) -> Token {
    match word {
        "and" => Token::And,
        "or" => Token::Or,
        "not" => Token::Not,
        "in" => Token::In,
        name => Token::Name(name.to_owned()),
    }
}

/// An operator of one or two bytes; `at` is left on its last byte.
fn symbol(source: &str, at: &mut usize) -> Result<Token, ExprError> {
    let rest = &source[*at..];
    let two = [
        ("==", Token::Compare(Compare::Equal)),
        ("!=", Token::Compare(Compare::Unequal)),
        ("<=", Token::Compare(Compare::AtMost)),
        (">=", Token::Compare(Compare::AtLeast)),
        ("=~", Token::Matches),
        ("!~", Token::NotMatches),
    ];
    if let Some((_, token)) = two.into_iter().find(|(symbol, _)| rest.starts_with(symbol)) {
        *at += 1;
        return Ok(token);
    }
    match rest.chars().next() {
        _ if rest.starts_with("&&") => error(*at, "write `and` instead of `&&`"),
        _ if rest.starts_with("||") => error(*at, "write `or` instead of `||`"),
        Some('<') => Ok(Token::Compare(Compare::Less)),
        Some('>') => Ok(Token::Compare(Compare::More)),
        Some('&') => Ok(Token::Bits),
        Some('=') => error(*at, "write `==` to compare"),
        Some('!') => error(*at, "write `not` instead of `!`"),
        Some(other) => error(*at, format!("unexpected {other:?}")),
        None => error(*at, "the condition ends here"),
    }
}

/// A quoted text and the offset behind it. A backslash quotes only the quotation mark, so that regular expressions keep
/// theirs.
fn quoted(source: &str, start: usize) -> Result<(String, usize), ExprError> {
    let quote = source.as_bytes()[start];
    let mut text = String::new();
    let mut rest = source[start + 1..].char_indices().peekable();
    while let Some((at, c)) = rest.next() {
        if c == char::from(quote) {
            return Ok((text, start + 1 + at + 1));
        }
        if c == '\\' && rest.peek().is_some_and(|(_, next)| *next == char::from(quote)) {
            text.extend(rest.next().map(|(_, next)| next));
        } else {
            text.push(c);
        }
    }
    error(start, "the text has no closing quotation mark")
}

fn number(text: &str, at: usize) -> Result<i128, ExprError> {
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    let value = match digits.strip_prefix("0x") {
        Some(hex) => {
            i64::from_str_radix(hex, 16).map(i128::from).or_else(|_| u64::from_str_radix(hex, 16).map(i128::from))
        }
        None => digits.parse::<u64>().map(i128::from),
    };
    match value {
        Ok(n) => Ok(sign * n),
        Err(_) => error(at, format!("{text:?} is not a number; write 42, -3 or 0x1f")),
    }
}

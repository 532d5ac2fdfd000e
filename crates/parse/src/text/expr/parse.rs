//! From the text to the expression.

use super::{Bits, Expr, Number, Same};
use crate::limits::{NESTING, OPERATORS, TOKENS};
use sched::seeded::SeededMap;
use std::iter::Peekable;

/// The understood part of a text.
#[derive(Debug, Default)]
pub(crate) struct Parsed {
    /// The expressions, between commas.
    pub(crate) expressions: Vec<Expr>,
    /// The fields in them, each once.
    pub(crate) fields: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token<'t> {
    Number(Number),
    Text(String),
    /// A field of the record: `REC->name`.
    Field(String),
    /// A name such as `__print_flags`.
    Name(&'t str),
    /// The type between the parentheses.
    Cast(&'t str),
    Op(&'static str),
}

const OPS: [&str; 29] = [
    "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "(", ")", "+", "-", "*", "/", "%", "&", "|", "^", "~", "!", "<",
    ">", "?", ":", ",", "[", "]", "{", "}",
];

/// Expressions between commas; `None` if the text is anything else.
pub(crate) fn parse(text: &str) -> Option<Parsed> {
    let tokens = tokenize(text)?.into_iter().peekable();
    let mut parser = Parser { tokens, depth: 0, operators: 0, fields: Vec::new(), places: SeededMap::default() };
    let mut expressions = vec![parser.expression()?];
    while parser.tokens.peek().is_some() {
        parser.expect(",")?;
        parser.operators = 0;
        expressions.push(parser.expression()?);
    }
    Some(Parsed { expressions, fields: parser.fields })
}

#[cfg(test)]
thread_local! {
    /// Characters that the searches of this thread have passed: the work of a text, which a test bounds.
    pub(super) static PASSED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// The place of the first character that ends a search.
fn search(text: &str, ends: impl Fn(char) -> bool) -> Option<usize> {
    let end = text.find(ends);
    #[cfg(test)]
    PASSED.set(PASSED.get() + end.unwrap_or(text.len()));
    end
}

fn is_of_a_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The tokens of a text; `None` beyond a limit, which is checked while reading: a text of megabytes must not become
/// tokens first.
fn tokenize(text: &str) -> Option<Vec<Token<'_>>> {
    let (mut tokens, mut nesting) = (Vec::new(), 0usize);
    let mut rest = text.trim_start();
    while let Some(c) = rest.chars().next() {
        let word = |text: &'_ str| search(text, |c| !is_of_a_name(c)).unwrap_or(text.len());
        let token;
        if c.is_ascii_digit() {
            let (number, after) = rest.split_at_checked(word(rest))?;
            (token, rest) = (Token::Number(literal(number)?), after);
        } else if c == '"' {
            let (quoted, after) = rest.split_at_checked(super::text::literal_end(rest)?)?;
            (token, rest) = (Token::Text(super::string_literal(quoted)?), after);
        } else if let Some((number, after)) = character(rest) {
            (token, rest) = (Token::Number(number), after);
        } else if let Some(after) = rest.strip_prefix("REC->").or_else(|| rest.strip_prefix("(REC)->")) {
            // The common beginning of all records is a field of its own in the file: `ent.pid` is `common_pid`.
            let (prefix, after) = after.strip_prefix("ent.").map_or(("", after), |after| ("common_", after));
            let (name, after) = after.split_at_checked(word(after))?;
            (token, rest) = (Token::Field(format!("{prefix}{name}")), after);
        } else if is_of_a_name(c) {
            let (name, after) = rest.split_at_checked(word(rest))?;
            (token, rest) = (Token::Name(name), after);
        } else if let (Some(kind), false) = (cast(rest), matches!(tokens.last(), Some(Token::Name(_)))) {
            (token, rest) = (Token::Cast(kind), rest.split_once(')')?.1);
        } else {
            let op = OPS.iter().find(|op| rest.starts_with(**op))?;
            match *op {
                "(" | "[" | "{" => nesting = nesting.checked_add(1).filter(|nesting| *nesting < NESTING)?,
                ")" | "]" | "}" => nesting = nesting.checked_sub(1)?,
                _ => {}
            }
            (token, rest) = (Token::Op(op), rest.strip_prefix(op)?);
        }
        if tokens.len() >= TOKENS {
            return None;
        }
        tokens.push(token);
        rest = rest.trim_start();
    }
    Some(tokens)
}

/// The type of `(unsigned long)`: letters only, and not `(REC->…)`. The search ends at the first character that no type
/// has, not at the next closing parenthesis, which can be the length of the text away.
fn cast(text: &str) -> Option<&str> {
    let inside = text.strip_prefix('(')?;
    let end = search(inside, |c| !is_of_a_name(c) && !c.is_whitespace() && c != '*')?;
    let (inside, after) = inside.split_at_checked(end)?;
    let inside = inside.trim();
    after.strip_prefix(')')?;
    let is_type = inside.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && inside.chars().all(|c| is_of_a_name(c) || c == ' ' || c == '*');
    is_type.then_some(inside)
}

/// The size of a type, and whether it has a sign; a kernel whose `long` is shorter has no longer fields to put into one.
fn type_of(kind: &str) -> Option<(usize, bool)> {
    let words: Vec<&str> = kind.split_ascii_whitespace().filter(|word| *word != "const").collect();
    Some(match words.as_slice() {
        _ if kind.contains('*') => (8, false),
        ["char" | "s8" | "__s8"] | ["signed", "char"] => (1, true),
        ["u8" | "__u8" | "bool"] | ["unsigned", "char"] => (1, false),
        ["short" | "s16" | "__s16"] => (2, true),
        ["u16" | "__u16"] | ["unsigned", "short"] => (2, false),
        ["int" | "s32" | "__s32" | "pid_t"] => (4, true),
        ["u32" | "__u32" | "unsigned" | "gfp_t" | "dev_t"] | ["unsigned", "int"] => (4, false),
        ["long" | "s64" | "__s64" | "ssize_t" | "loff_t"] | ["long", "long"] => (8, true),
        ["u64" | "__u64" | "size_t"] | ["unsigned", "long"] | ["unsigned", "long", "long"] => (8, false),
        _ => return None,
    })
}

/// `'x'` at the start of a text, and what follows.
fn character(text: &str) -> Option<(Number, &str)> {
    let text = text.strip_prefix('\'')?;
    let (inside, after) = text.split_at_checked(search(text, |c| c == '\'')?)?;
    let after = after.strip_prefix('\'')?;
    let mut chars = inside.chars();
    let (only, None) = (chars.next()?, chars.next()) else { return None };
    Some((Number { bits: i64::from(u32::from(only)), unsigned: false }, after))
}

fn literal(word: &str) -> Option<Number> {
    let digits = word.trim_end_matches(['u', 'U', 'l', 'L']);
    let value = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16).ok()?,
        None if digits.len() > 1 && digits.starts_with('0') => u64::from_str_radix(digits, 8).ok()?,
        None => digits.parse().ok()?,
    };
    let unsigned = i64::try_from(value).is_err() || word.contains(['u', 'U']);
    Some(Number { bits: value.cast_signed(), unsigned })
}

struct Parser<'t> {
    tokens: Peekable<std::vec::IntoIter<Token<'t>>>,
    depth: usize,
    operators: u32,
    fields: Vec<String>,
    /// The place of each of the fields.
    places: SeededMap<String, usize>,
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

impl<'t> Parser<'t> {
    fn expect(&mut self, op: &'static str) -> Option<()> {
        self.tokens.next_if_eq(&Token::Op(op)).map(drop)
    }

    fn expression(&mut self) -> Option<Expr> {
        let condition = self.binary(0)?;
        if self.expect("?").is_none() {
            return Some(condition);
        }
        self.depth = self.depth.checked_add(1).filter(|d| *d < NESTING)?;
        let one = self.expression()?;
        self.expect(":")?;
        let other = self.expression()?;
        self.depth = self.depth.saturating_sub(1);
        Some(Expr::If(Box::new([condition, one, other])))
    }

    fn binary(&mut self, least: u8) -> Option<Expr> {
        let mut left = self.unary()?;
        while let Some(Token::Op(op)) = self.tokens.peek().cloned() {
            let Some(precedence) = precedence(op).filter(|p| *p > least) else { break };
            self.operators = self.operators.checked_add(1).filter(|n| *n < OPERATORS)?;
            self.tokens.next();
            left = Expr::Binary(op, Box::new(left), Box::new(self.binary(precedence)?));
        }
        Some(left)
    }

    fn unary(&mut self) -> Option<Expr> {
        self.depth = self.depth.checked_add(1).filter(|d| *d < NESTING)?;
        let value = match self.tokens.next()? {
            Token::Number(number) => Expr::Number(number),
            Token::Text(text) => self.text(text)?,
            Token::Field(name) => self.field(&name)?,
            Token::Name(name) => self.call(name)?,
            Token::Cast(kind) => {
                let value = self.unary()?;
                match type_of(kind) {
                    Some((size, signed)) => Expr::Cast(size, signed, Box::new(value)),
                    None => Expr::Unknown(vec![value]),
                }
            }
            Token::Op(op @ ("-" | "+" | "~" | "!")) => Expr::Unary(op, Box::new(self.unary()?)),
            // The address of a field: it stands for its bytes.
            Token::Op("&") => match self.unary()? {
                field @ Expr::Field(_) => field,
                _ => return None,
            },
            Token::Op("(") => {
                let value = self.expression()?;
                self.expect(")")?;
                value
            }
            Token::Op(_) => return None,
        };
        self.depth = self.depth.saturating_sub(1);
        Some(value)
    }

    /// Literals one after the other are one.
    fn text(&mut self, mut text: String) -> Option<Expr> {
        while let Some(Token::Text(more)) = self.tokens.next_if(|token| matches!(token, Token::Text(_))) {
            text.push_str(&more);
        }
        Some(Expr::Text(text))
    }

    fn field(&mut self, name: &str) -> Option<Expr> {
        let field = self.place_of(name);
        self.element_of(field)
    }

    /// A field, or what stands in one place of it.
    fn element_of(&mut self, field: usize) -> Option<Expr> {
        if self.expect("[").is_none() {
            return Some(Expr::Field(field));
        }
        let index = self.expression()?;
        self.expect("]")?;
        Some(Expr::Element(field, Box::new(index)))
    }

    /// The place of a field among those that are named.
    fn place_of(&mut self, name: &str) -> usize {
        if let Some(place) = self.places.get(name) {
            return *place;
        }
        let place = self.fields.len();
        self.fields.push(name.to_owned());
        self.places.insert(name.to_owned(), place);
        place
    }

    fn call(&mut self, name: &str) -> Option<Expr> {
        if self.expect("(").is_none() {
            // An enumerator, or a variable.
            return Some(Expr::Unknown(Vec::new()));
        }
        // The file marks those that are relative to their field.
        let called = match name.replace("_rel_", "_").as_str() {
            "__get_str" | "__get_dynamic_array" | "__get_sockaddr" => Expr::Field(self.named_field()?),
            "__get_dynamic_array_len" => Expr::Length(self.named_field()?),
            "__get_bitmask" => Expr::Bits(self.named_field()?, Bits::Words),
            "__get_cpumask" => Expr::Bits(self.named_field()?, Bits::List),
            "__print_symbolic" | "__print_symbolic_u64" => {
                let of = Box::new(self.expression()?);
                Expr::Symbol(of, self.names()?)
            }
            "__print_flags" | "__print_flags_u64" => {
                let of = Box::new(self.expression()?);
                self.expect(",")?;
                let Expr::Text(between) = self.expression()? else { return None };
                Expr::Flags(of, between, self.names()?)
            }
            "__print_hex" => Expr::Hex(Box::new(self.several()?), " "),
            "__print_hex_str" => Expr::Hex(Box::new(self.several()?), ""),
            "__print_array" => Expr::Array(Box::new(self.several()?)),
            "__print_dynamic_array" => self.dynamic_array()?,
            "__print_ns_to_secs" => self.with_seconds("/")?,
            "__print_ns_without_secs" => self.with_seconds("%")?,
            "__builtin_expect" => {
                let [value, _] = self.several()?;
                value
            }
            "sizeof" => self.size_of()?,
            _ => Expr::Unknown(self.all()?),
        };
        self.expect(")")?;
        match called {
            Expr::Field(field) => self.element_of(field),
            _ => Some(called),
        }
    }

    /// The name of a field as an argument.
    fn named_field(&mut self) -> Option<usize> {
        match self.tokens.next()? {
            Token::Name(field) => Some(self.place_of(field)),
            _ => None,
        }
    }

    /// A number of arguments.
    fn several<const N: usize>(&mut self) -> Option<[Expr; N]> {
        self.all()?.try_into().ok()
    }

    /// Parses the arguments up to the closing parenthesis.
    fn all(&mut self) -> Option<Vec<Expr>> {
        let mut arguments = Vec::new();
        if self.tokens.peek() != Some(&Token::Op(")")) {
            arguments.push(self.expression()?);
            while self.expect(",").is_some() {
                arguments.push(self.expression()?);
            }
        }
        Some(arguments)
    }

    /// `name, size`: all of a field.
    fn dynamic_array(&mut self) -> Option<Expr> {
        let field = self.named_field()?;
        self.expect(",")?;
        let size = self.expression()?;
        let count = Expr::Binary("/", Box::new(Expr::Length(field)), Box::new(size.clone()));
        Some(Expr::Array(Box::new([Expr::Field(field), count, size])))
    }

    /// The seconds of nanoseconds, or the rest of one.
    fn with_seconds(&mut self, op: &'static str) -> Option<Expr> {
        let second = Expr::Number(Number { bits: 1_000_000_000, unsigned: true });
        Some(Expr::Binary(op, Box::new(self.expression()?), Box::new(second)))
    }

    fn size_of(&mut self) -> Option<Expr> {
        let mut words = Vec::new();
        while let Some(Token::Name(word)) = self.tokens.next_if(|token| matches!(token, Token::Name(_))) {
            words.push(word);
        }
        Some(match (words.as_slice(), type_of(&words.join(" "))) {
            (["long"] | ["unsigned", "long"] | ["size_t" | "ssize_t"], _) => Expr::Long,
            (_, Some((size, _))) => Expr::Number(super::size(size)?),
            (_, None) => Expr::Unknown(Vec::new()),
        })
    }

    /// `, { 1, "one" }` again and again; some lists end with a null instead of a name. The numbers of enumerators
    /// that the kernel left as they are, `{ HRTIMER_MODE_ABS, "ABS" }`, are unknown: such a value is shown as a number.
    fn names(&mut self) -> Option<Vec<(i64, String)>> {
        let mut names = Vec::new();
        // The numbers are reckoned at once: they make nothing deeper.
        let outside = self.operators;
        while self.expect(",").is_some() {
            self.expect("{")?;
            self.operators = 0;
            let value = self.expression()?;
            self.expect(",")?;
            let name = self.expression()?;
            self.expect("}")?;
            if let (Some(value), Expr::Text(name)) = (value.number(&Same(None)), name) {
                names.push((value.bits, name));
            }
        }
        self.operators = outside;
        Some(names)
    }
}

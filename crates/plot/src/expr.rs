//! Conditions: small expressions over the values of an event.
//!
//! ```text
//! condition  = all { "or" all }
//! all        = one { "and" one }
//! one        = "not" one | "(" condition ")" | comparison
//! comparison = value ( "==" | "!=" | "<" | "<=" | ">" | ">=" ) value
//!            | value ( "=~" | "!~" ) text            a regular expression
//!            | value [ "not" ] "in" "[" value { "," value } "]"
//! value      = atom { "&" atom }
//! atom       = name | number | text
//! name       = a field of the event, $cpu, $pid, $command, or text: the event's printed text
//! number     = 42, -3, 0x1f
//! text       = 'single' or "double" quotes
//! ```
//!
//! Named groups of a regular expression, `(?<name>...)`, become values of the event once the condition holds.
//! Evaluation takes time linear in the length of the condition and of the event's text.

mod lex;
mod parse;
mod regexes;

pub use self::parse::{parse, parse_with};
pub use self::regexes::Regexes;

use regex::Regex;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// Maximum length of a condition in bytes.
pub const MAX_LENGTH: usize = 4096;

/// Maximum depth of nested parentheses and negations.
pub const MAX_DEPTH: usize = 64;

/// A value of an event.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EventValue {
    /// An integer; wide enough for signed and unsigned fields.
    Number(i128),
    /// A text in UTF-8.
    Text(String),
}

impl fmt::Display for EventValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EventValue::Number(n) => write!(f, "{n}"),
            EventValue::Text(text) => f.write_str(text),
        }
    }
}

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// The type of integers.
    Number,
    /// The type of texts.
    Text,
    /// A word of a text, which is a number if it looks like one.
    Either,
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Type::Number => "a number",
            Type::Text => "a text",
            Type::Either => "a number or a text",
        })
    }
}

/// An error in a condition, with the byte at which it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExprError {
    /// Offset in bytes from the beginning of the condition.
    pub at: usize,
    /// The error, and the remedy.
    pub message: String,
}

/// A comparison of two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compare {
    Equal,
    Unequal,
    Less,
    AtMost,
    More,
    AtLeast,
}

impl Compare {
    fn holds(self, order: Ordering) -> bool {
        match self {
            Compare::Equal => order.is_eq(),
            Compare::Unequal => order.is_ne(),
            Compare::Less => order.is_lt(),
            Compare::AtMost => order.is_le(),
            Compare::More => order.is_gt(),
            Compare::AtLeast => order.is_ge(),
        }
    }
}

/// A value in a condition, with its place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Operand {
    Name {
        name: String,
        at: usize,
    },
    Constant {
        value: EventValue,
        at: usize,
    },
    /// The bits that all have in common.
    And(Vec<Operand>),
}

/// A node of a condition.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    Any(Vec<Node>),
    All(Vec<Node>),
    Not(Box<Node>),
    Compare { left: Operand, how: Compare, right: Operand, at: usize },
    Match { left: Operand, regex: Arc<Regex>, negated: bool, at: usize },
    In { left: Operand, list: Vec<Operand>, negated: bool, at: usize },
}

/// A condition on an event, parsed.
#[derive(Clone, Debug)]
pub struct Expr {
    source: String,
    pub(crate) root: Node,
}

/// The values of one event, to which a condition is applied.
pub trait EventValues {
    /// Returns the value of this name: a field, or one of `$cpu`, `$pid`, `$command` and the like; nothing if the event
    /// has none. Called for each name of a condition, until the condition is decided; two calls with one name must give
    /// the same value.
    fn value(&self, name: &str) -> Option<EventValue>;
}

impl Expr {
    /// The condition as it was written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether the condition holds. A comparison with an absent value, or of a number with a text, does not hold.
    pub fn holds(&self, values: &impl EventValues) -> bool {
        self.captures(values).is_some()
    }

    /// The named groups of the regular expressions that matched, if the condition holds.
    pub fn captures(&self, values: &impl EventValues) -> Option<Vec<(String, EventValue)>> {
        let mut found = Vec::new();
        eval(&self.root, values, &mut found).then_some(found)
    }

    /// The names of all groups that the condition can capture.
    pub fn group_names(&self) -> Vec<String> {
        let mut names = Vec::new();
        collect_groups(&self.root, &mut names);
        names
    }

    /// Checks the type of every comparison. `type_of` gives the type of a name, or an error with a remedy.
    pub fn check(&self, type_of: &impl Fn(&str) -> Result<Type, String>) -> Result<(), ExprError> {
        check(&self.root, type_of)
    }
}

fn collect_groups(node: &Node, names: &mut Vec<String>) {
    match node {
        Node::Any(nodes) | Node::All(nodes) => nodes.iter().for_each(|node| collect_groups(node, names)),
        Node::Match { regex, negated: false, .. } => {
            names.extend(regex.capture_names().flatten().map(str::to_owned));
        }
        // A condition that must not hold captures nothing.
        Node::Not(_) | Node::Match { .. } | Node::Compare { .. } | Node::In { .. } => {}
    }
}

/// The number that a word stands for, in decimal or as 0x...
pub(crate) fn word_value(word: &str) -> EventValue {
    let number = match word.strip_prefix("0x") {
        Some(digits) => i128::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    };
    number.map_or_else(|| EventValue::Text(word.to_owned()), EventValue::Number)
}

/// The value behind `name=` in a text: up to a space, a comma, a semicolon or a bracket.
///
/// ```
/// use plot::expr::{EventValue, word_in};
/// assert_eq!(word_in("end:barrier iter=3, by=main", "iter"), Some(EventValue::Number(3)));
/// assert_eq!(word_in("end:barrier iter=3, by=main", "by"), Some(EventValue::Text("main".into())));
/// assert_eq!(word_in("witer=3", "iter"), None);
/// ```
pub fn word_in(text: &str, name: &str) -> Option<EventValue> {
    text.match_indices(name).find_map(|(at, _)| {
        let is_word = text[..at].chars().next_back().is_none_or(|c| !c.is_alphanumeric() && c != '_');
        let rest = text[at + name.len()..].strip_prefix('=').filter(|_| is_word)?;
        let end =
            rest.find(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | ')' | ']' | '}')).unwrap_or(rest.len());
        (end > 0).then(|| word_value(&rest[..end]))
    })
}

fn operand(operand: &Operand, values: &impl EventValues) -> Option<EventValue> {
    match operand {
        Operand::Name { name, .. } => values.value(name),
        Operand::Constant { value, .. } => Some(value.clone()),
        Operand::And(parts) => {
            let mut bits = -1_i128;
            for part in parts {
                let EventValue::Number(n) = self::operand(part, values)? else { return None };
                bits &= n;
            }
            Some(EventValue::Number(bits))
        }
    }
}

fn order(left: &EventValue, right: &EventValue) -> Option<Ordering> {
    match (left, right) {
        (EventValue::Number(a), EventValue::Number(b)) => Some(a.cmp(b)),
        (EventValue::Text(a), EventValue::Text(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

fn eval(node: &Node, values: &impl EventValues, found: &mut Vec<(String, EventValue)>) -> bool {
    match node {
        Node::Any(nodes) => nodes.iter().any(|node| eval(node, values, found)),
        Node::All(nodes) => nodes.iter().all(|node| eval(node, values, found)),
        Node::Not(node) => !eval(node, values, &mut Vec::new()),
        Node::Compare { left, how, right, .. } => {
            let (left, right) = (operand(left, values), operand(right, values));
            left.zip(right).and_then(|(l, r)| order(&l, &r)).is_some_and(|order| how.holds(order))
        }
        Node::In { left, list, negated, .. } => operand(left, values).is_some_and(|left| {
            let is_in = list.iter().filter_map(|item| operand(item, values)).any(|item| item == left);
            is_in != *negated
        }),
        Node::Match { left, regex, negated, .. } => {
            let Some(text) = operand(left, values).map(|value| value.to_string()) else { return false };
            let captures = regex.captures(&text);
            if let (Some(captures), false) = (&captures, *negated) {
                for name in regex.capture_names().flatten() {
                    if let Some(group) = captures.name(name) {
                        found.push((name.to_owned(), word_value(group.as_str())));
                    }
                }
            }
            captures.is_some() != *negated
        }
    }
}

fn type_of_operand(operand: &Operand, type_of: &impl Fn(&str) -> Result<Type, String>) -> Result<Type, ExprError> {
    match operand {
        Operand::Name { name, at } => type_of(name).map_err(|message| ExprError { at: *at, message }),
        Operand::Constant { value: EventValue::Number(_), .. } => Ok(Type::Number),
        Operand::Constant { value: EventValue::Text(_), .. } => Ok(Type::Text),
        Operand::And(parts) => {
            for part in parts {
                if type_of_operand(part, type_of)? == Type::Text {
                    let message = "& combines the bits of numbers, not of texts".to_owned();
                    return Err(ExprError { at: place(part), message });
                }
            }
            Ok(Type::Number)
        }
    }
}

fn place(operand: &Operand) -> usize {
    match operand {
        Operand::Name { at, .. } | Operand::Constant { at, .. } => *at,
        Operand::And(parts) => parts.first().map_or(0, place),
    }
}

/// The operand as it reads in a message.
fn named(operand: &Operand) -> String {
    match operand {
        Operand::Name { name, .. } => name.clone(),
        Operand::Constant { value: EventValue::Number(n), .. } => n.to_string(),
        Operand::Constant { value: EventValue::Text(text), .. } => format!("{text:?}"),
        Operand::And(parts) => parts.iter().map(named).collect::<Vec<_>>().join(" & "),
    }
}

fn check_pair(
    left: &Operand,
    right: &Operand,
    at: usize,
    type_of: &impl Fn(&str) -> Result<Type, String>,
) -> Result<(), ExprError> {
    let (l, r) = (type_of_operand(left, type_of)?, type_of_operand(right, type_of)?);
    if l != r && l != Type::Either && r != Type::Either {
        let message = format!("{} is {l}, {} is {r}: they never compare", named(left), named(right));
        return Err(ExprError { at, message });
    }
    Ok(())
}

fn check(node: &Node, type_of: &impl Fn(&str) -> Result<Type, String>) -> Result<(), ExprError> {
    match node {
        Node::Any(nodes) | Node::All(nodes) => nodes.iter().try_for_each(|node| check(node, type_of)),
        Node::Not(node) => check(node, type_of),
        Node::Compare { left, right, at, .. } => check_pair(left, right, *at, type_of),
        Node::In { left, list, at, .. } => list.iter().try_for_each(|item| check_pair(left, item, *at, type_of)),
        Node::Match { left, at, .. } => match type_of_operand(left, type_of)? {
            Type::Number => {
                let message = format!("{} is a number; a regular expression matches a text", named(left));
                Err(ExprError { at: *at, message })
            }
            Type::Text | Type::Either => Ok(()),
        },
    }
}

/// The condition in words.
impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        put(&self.root, f, false)
    }
}

fn put(node: &Node, f: &mut fmt::Formatter<'_>, inner: bool) -> fmt::Result {
    let list = |nodes: &[Node], word: &str, f: &mut fmt::Formatter<'_>| {
        if inner {
            f.write_str("(")?;
        }
        for (i, node) in nodes.iter().enumerate() {
            if i > 0 {
                write!(f, " {word} ")?;
            }
            put(node, f, true)?;
        }
        if inner { f.write_str(")") } else { Ok(()) }
    };
    match node {
        Node::Any(nodes) => list(nodes, "or", f),
        Node::All(nodes) => list(nodes, "and", f),
        Node::Not(node) => {
            f.write_str("not ")?;
            put(node, f, true)
        }
        Node::Compare { left, how, right, .. } => {
            let words = match how {
                Compare::Equal => "is",
                Compare::Unequal => "is not",
                Compare::Less => "is less than",
                Compare::AtMost => "is at most",
                Compare::More => "is more than",
                Compare::AtLeast => "is at least",
            };
            write!(f, "{} {words} {}", named(left), named(right))
        }
        Node::In { left, list, negated, .. } => {
            let items = list.iter().map(named).collect::<Vec<_>>().join(", ");
            write!(f, "{} is {}one of {items}", named(left), if *negated { "not " } else { "" })
        }
        Node::Match { left, regex, negated, .. } => {
            write!(f, "{} {} /{regex}/", named(left), if *negated { "does not match" } else { "matches" })
        }
    }
}

#[cfg(test)]
mod tests;

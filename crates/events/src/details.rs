//! Details of events: a value, or the matches of an expression.

use anyhow::{Error, Result, anyhow, bail};
use parse::{EventFormat, Record};
use regex::Regex;
use std::collections::HashSet;
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};

/// An expression whose named groups split kinds.
pub(crate) struct Pattern {
    regex: Regex,
    /// Whether the expression has matched any event.
    any: AtomicBool,
}

impl Pattern {
    /// Parses an expression that names a group.
    pub(crate) fn parse(text: &str) -> Result<Regex, Error> {
        let regex = Regex::new(text)?;
        if regex.capture_names().flatten().next().is_none() {
            bail!("the expression names no group; write (?<name>...)");
        }
        Ok(regex)
    }

    pub(crate) fn new(regex: Regex) -> Pattern {
        Pattern { regex, any: AtomicBool::new(false) }
    }

    /// The matches of the groups in the text of an event.
    pub(crate) fn found(&self, record: &Record<'_>) -> String {
        let text = record.printed();
        let mut words = String::new();
        let Some(found) = self.regex.captures(&text) else { return words };
        self.any.store(true, Ordering::Relaxed);
        for name in self.regex.capture_names().flatten() {
            if let Some(value) = found.name(name) {
                // Writing to a string cannot fail.
                let _ = write!(words, " {name}={}", sched::event::escape(value.as_str().as_bytes()));
            }
        }
        words
    }

    /// The expression, if it has matched no event.
    pub(crate) fn unmatched(&self) -> Option<String> {
        (!self.any.load(Ordering::Relaxed)).then(|| sched::event::escape(self.regex.as_str().as_bytes()).into_owned())
    }
}

/// A number in events: a field, or `NAME=NUMBER` in the text.
pub(crate) struct Value {
    name: String,
    /// The events, by their numbers, whose text can have it. Printing those that cannot takes most of the time,
    /// and what looks like it in the name of a task is no value.
    says: HashSet<u16>,
    /// The unit of the value, where the formats of the events give one.
    unit: Option<String>,
    /// Some event has it.
    any: AtomicBool,
}

impl Value {
    /// Refused if by their formats none of the events can have it.
    pub(crate) fn of(name: &str, formats: &[&EventFormat]) -> Result<Value> {
        // The texts of the kernel's own system are those of trace_printk and trace_marker.
        let says = |f: &&&EventFormat| f.system == "ftrace" || behind(&f.print_fmt, name).next().is_some();
        let says = formats.iter().filter(says).map(|format| format.id).collect();
        let value = Value { name: name.to_owned(), says, unit: unit(name, formats), any: AtomicBool::new(false) };
        let has_field = |format: &&EventFormat| format.field(name).is_some();
        if value.says.is_empty() && !formats.iter().any(has_field) { Err(value.nowhere()) } else { Ok(value) }
    }

    /// Returns the unit of the value, if it is known.
    pub(crate) fn unit(&self) -> Option<&str> {
        self.unit.as_deref()
    }

    /// The value in an event, as a field or as a number in its text.
    pub(crate) fn found(&self, record: &Record<'_>) -> Option<f64> {
        let found = match record.number(&self.name) {
            Some(n) => Some(n as f64),
            None if self.says.contains(&record.id()) => number_in(&record.printed(), &self.name),
            None => None,
        };
        if found.is_some() {
            self.any.store(true, Ordering::Relaxed);
        }
        found
    }

    /// Refuses a value that is in none of this number of events.
    pub(crate) fn was_of_use(&self, events: u64) -> Result<()> {
        if events > 0 && !self.any.load(Ordering::Relaxed) { Err(self.nowhere()) } else { Ok(()) }
    }

    /// The error that no event has the value.
    fn nowhere(&self) -> Error {
        anyhow!("--value: none of these events has {0}, as a field or as {0}=NUMBER in its text", self.name)
    }
}

/// Returns the unit of a value where the formats that print it give one, and all the same: `delay=%Lu [ns]`.
fn unit(name: &str, formats: &[&EventFormat]) -> Option<String> {
    let mut units = formats.iter().filter_map(|format| behind(&format.print_fmt, name).next().map(unit_behind));
    let first = units.next()??;
    units.all(|unit| unit == Some(first)).then(|| first.to_owned())
}

/// Returns the unit in brackets behind a conversion of printf.
fn unit_behind(text: &str) -> Option<&str> {
    let rest = text.strip_prefix('%')?.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
    let unit = rest.trim_start_matches(' ').strip_prefix('[')?.split(']').next()?;
    (!unit.is_empty() && unit.len() <= 8 && unit.chars().all(char::is_alphanumeric)).then_some(unit)
}

/// The number behind `name=` in a text.
fn number_in(text: &str, name: &str) -> Option<f64> {
    behind(text, name).find_map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_digit() && !matches!(c, '-' | '+' | '.')).unwrap_or(rest.len());
        rest[..end].parse().ok()
    })
}

/// The text behind each `name=` in a text.
fn behind<'t>(text: &'t str, name: &'t str) -> impl Iterator<Item = &'t str> {
    text.match_indices(name).filter_map(move |(at, _)| {
        let is_a_word = text[..at].chars().next_back().is_none_or(|c| !c.is_alphanumeric() && c != '_');
        text[at + name.len()..].strip_prefix('=').filter(|_| is_a_word)
    })
}

#[cfg(test)]
mod tests {
    use super::{number_in, unit_behind};

    #[test]
    fn numbers_behind_names() {
        assert_eq!(number_in("prev_prio=120 prio=97,x", "prio"), Some(97.0));
        assert_eq!(number_in("load=-1.5e", "load"), Some(-1.5));
        assert_eq!(number_in("load=", "load"), None);
        assert_eq!(number_in("prio 97", "prio"), None);
        assert_eq!((unit_behind("%Lu [ns]\", REC->x"), unit_behind("%d prio=[x]")), (Some("ns"), None));
        assert_eq!((unit_behind("%[ns]"), unit_behind("%lu []"), unit_behind("")), (Some("ns"), None, None));
    }
}

//! The specification of a figure, as its author writes it in TOML.
//!
//! Four nouns: [`IntervalSpec`] draws bars, [`PointSpec`] markers, [`SeriesSpec`] lines under the lanes, and
//! [`LanesSpec`] defines the rows of the figure. Every text that must agree with the events of a trace keeps its
//! place in the file, so that an error names line and column.

mod read;

use crate::expr::Expr;
use serde::Deserialize;
use std::fmt;
use std::ops::Range;

/// Maximum size of a specification in bytes.
pub const MAX_SIZE: usize = 256 * 1024;

/// The JSON schema of a specification (draft 2020-12).
pub const SCHEMA: &str = include_str!("../spec.schema.json");

/// Maximum number of intervals, points and series together.
pub const MAX_ITEMS: usize = 64;

/// An error in a specification, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    /// The line in the source, from 1.
    pub line: usize,
    /// The column in the source in characters, from 1.
    pub column: usize,
    /// The error, and the remedy.
    pub message: String,
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for SpecError {}

impl SpecError {
    /// An error at a byte of the source.
    pub(crate) fn at(source: &str, byte: usize, message: impl Into<String>) -> SpecError {
        let before = source.get(..byte.min(source.len())).unwrap_or(source);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |rest| rest.chars().count()) + 1;
        SpecError { line, column, message: message.into() }
    }
}

/// The order of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// The order of numbers, or of names.
    #[default]
    Name,
    /// The row with the longest bars in all, or the most points, first.
    Time,
    /// The row that appears first in the trace first.
    First,
}

/// The drawing behind the bars, where rows are CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Background {
    /// The running tasks in pale grey.
    #[default]
    Grey,
    /// The running tasks in their colours.
    Color,
    /// No drawing behind the bars.
    None,
}

/// The unit of a duration field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum TimeUnit {
    /// The unit of nanoseconds.
    #[default]
    #[serde(rename = "ns")]
    Ns,
    /// The unit of microseconds.
    #[serde(rename = "us")]
    Us,
    /// The unit of milliseconds.
    #[serde(rename = "ms")]
    Ms,
}

impl TimeUnit {
    /// The number of nanoseconds in one of the unit.
    pub fn ns(self) -> u64 {
        match self {
            TimeUnit::Ns => 1,
            TimeUnit::Us => 1_000,
            TimeUnit::Ms => 1_000_000,
        }
    }

    /// The unit's name in a sentence.
    pub(crate) fn words(self) -> &'static str {
        match self {
            TimeUnit::Ns => "nanoseconds",
            TimeUnit::Us => "microseconds",
            TimeUnit::Ms => "milliseconds",
        }
    }
}

/// A text of the specification with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The text without quotation marks.
    pub text: String,
    /// The bytes of the source that hold the text, quotation marks included.
    pub span: Range<usize>,
}

/// A condition with its place.
#[derive(Clone, Debug)]
pub struct Condition {
    /// The condition, parsed.
    pub expr: Expr,
    /// The bytes of the source that hold the condition.
    pub span: Range<usize>,
}

/// The colour of bars or markers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ColorSpec {
    /// The next colour of the palette.
    #[default]
    Next,
    /// A fixed colour, with its name.
    Fixed(draw::Color, String),
    /// A colour for each value of this field.
    By(Placed),
}

/// An interval of the specification, drawn as bars.
#[derive(Clone, Debug)]
pub struct IntervalSpec {
    /// The name in legends and tables.
    pub name: String,
    /// The events that delimit the interval.
    pub source: IntervalSource,
    /// The condition on the first event of the interval.
    pub condition: Option<Condition>,
    /// The colour of the bars.
    pub color: ColorSpec,
    /// The value that is written into wide bars.
    pub label: Option<Placed>,
    /// Whether a trace without the events is drawn without the interval; otherwise such a trace is refused.
    pub optional: bool,
    /// The place of the table in the source, in bytes.
    pub span: Range<usize>,
}

/// A value that agrees at the beginning and at the end of an interval: `pid`, or `pid = next_pid` where the events call it differently.
#[derive(Clone, Debug)]
pub struct MatchKey {
    /// The name of the value in the event at the beginning.
    pub begin: Placed,
    /// The name of the value in the event at the end.
    pub end: Placed,
}

impl MatchKey {
    /// Reads an element of `match`.
    pub(crate) fn of(text: Placed) -> MatchKey {
        let part = |name: &str| Placed { text: name.trim().to_owned(), span: text.span.clone() };
        match text.text.split_once('=') {
            Some((begin, end)) => MatchKey { begin: part(begin), end: part(end) },
            None => MatchKey { begin: text.clone(), end: text },
        }
    }

    /// Whether both values are those of the CPU of the event.
    pub(crate) fn is_cpu(&self) -> bool {
        self.begin.text == "$cpu" && self.end.text == "$cpu"
    }
}

/// The events of an interval.
#[derive(Clone, Debug)]
pub enum IntervalSource {
    /// The stretch from a beginning to the next end that agrees with it.
    Pair {
        /// The event at its beginning; one `*` stands for any text.
        begin: Placed,
        /// The event at its end; a `*` stands for the same text as in `begin`.
        end: Placed,
        /// Values that agree in both: fields, `$cpu`, `$pid`, `$command`.
        keys: Vec<MatchKey>,
        /// The condition on its end.
        end_condition: Option<Condition>,
    },
    /// One event at its end that records its length.
    Lone {
        /// The event, recorded at the end.
        event: Placed,
        /// The field with the length.
        duration: Placed,
        /// The unit of the field.
        unit: TimeUnit,
    },
}

impl IntervalSource {
    /// Whether an interval ends on the CPU on which it began.
    pub(crate) fn is_by_cpu(&self) -> bool {
        match self {
            IntervalSource::Pair { keys, .. } => keys.iter().any(MatchKey::is_cpu),
            IntervalSource::Lone { .. } => true,
        }
    }
}

/// A point of the specification, drawn as markers.
#[derive(Clone, Debug)]
pub struct PointSpec {
    /// The name in legends and tables.
    pub name: String,
    /// The event; one `*` stands for any text.
    pub event: Placed,
    /// The condition on the event.
    pub condition: Option<Condition>,
    /// The colour of the markers.
    pub color: ColorSpec,
    /// The value that is written beside a marker where there is room.
    pub label: Option<Placed>,
    /// Whether a trace without the event is drawn without the point; otherwise such a trace is refused.
    pub optional: bool,
    /// The place of the table in the source, in bytes.
    pub span: Range<usize>,
}

/// The quantity of a series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// A value of an event: a field, or the number behind `name=` in its text.
    Value {
        /// The event that has the value.
        event: Placed,
        /// The name of the value.
        value: Placed,
        /// Whether the value holds until the next event.
        hold: bool,
    },
    /// The number of events in a second.
    Rate {
        /// The event that is counted.
        event: Placed,
    },
    /// The number of open intervals of this name.
    Open {
        /// The name of the interval.
        interval: Placed,
    },
}

/// A line under the lanes.
#[derive(Clone, Debug)]
pub struct SeriesSpec {
    /// The name at its axis.
    pub name: String,
    /// The quantity of the line.
    pub quantity: Quantity,
    /// The field by whose values the series has one line each.
    pub by: Option<Placed>,
    /// The condition on the event.
    pub condition: Option<Condition>,
    /// The unit at the axis.
    pub unit: Option<String>,
    /// Whether a trace without the event is drawn without the series; otherwise such a trace is refused.
    pub optional: bool,
    /// The place of the table in the source, in bytes.
    pub span: Range<usize>,
}

impl SeriesSpec {
    /// Whether it is the number of open intervals of this name.
    pub(crate) fn follows(&self, interval: &str) -> bool {
        matches!(&self.quantity, Quantity::Open { interval: name } if name.text == interval)
    }
}

/// The rows of a figure.
#[derive(Clone, Debug, Default)]
pub struct LanesSpec {
    /// A row for each CPU, task, or value of a field.
    pub by: LaneKind,
    /// The order of rows.
    pub order: Order,
    /// The condition on the events that are drawn in the rows.
    pub only: Option<Condition>,
    /// The drawing behind the bars.
    pub background: Background,
}

/// The meaning of a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LaneKind {
    /// A row for each CPU.
    #[default]
    Cpu,
    /// A row for each task.
    Task,
    /// A row for each value of a field.
    Field(Placed),
}

/// A specification whose texts are understood, but not yet compared with a trace.
#[derive(Clone, Debug)]
pub struct Spec {
    pub(crate) source: String,
    /// The title of the figure.
    pub title: Option<String>,
    /// A sentence on its purpose.
    pub about: Option<String>,
    /// The command that records what it needs.
    pub record: Option<String>,
    /// The rows of the figure.
    pub lanes: LanesSpec,
    /// The intervals, drawn as bars.
    pub intervals: Vec<IntervalSpec>,
    /// The points, drawn as markers.
    pub points: Vec<PointSpec>,
    /// The series, drawn as lines under the lanes.
    pub series: Vec<SeriesSpec>,
}

impl Spec {
    /// Understands a specification.
    ///
    /// # Errors
    ///
    /// The first error, with its line and column and the remedy.
    ///
    /// ```
    /// let spec = plot::Spec::parse("[[point]]\nevent = 'lock:contention_begin'\n").expect("a specification");
    /// assert_eq!(spec.points[0].name, "contention_begin");
    /// let error = plot::Spec::parse("[[points]]\nevent = 'a:b'\n").expect_err("no such table");
    /// assert_eq!((error.line, error.column), (1, 3));
    /// ```
    pub fn parse(source: &str) -> Result<Spec, SpecError> {
        if source.len() > MAX_SIZE {
            return Err(SpecError::at(source, 0, format!("the specification is larger than {MAX_SIZE} bytes")));
        }
        let spec = read::read(source)?;
        spec.check_names()?;
        Ok(spec)
    }

    /// Whether it depends on the names of tasks.
    pub fn uses_commands(&self) -> bool {
        self.lanes.by == LaneKind::Task || self.source.contains("$command")
    }

    /// Two intervals of one name would be one line of the table, and `open` could mean either.
    fn check_names(&self) -> Result<(), SpecError> {
        for (i, interval) in self.intervals.iter().enumerate() {
            if self.intervals[..i].iter().any(|other| other.name == interval.name) {
                let message =
                    format!("there is an interval {:?} already; give one of them another name", interval.name);
                return Err(SpecError::at(&self.source, interval.span.start, message));
            }
        }
        for series in &self.series {
            if let Quantity::Open { interval } = &series.quantity
                && !self.intervals.iter().any(|other| other.name == interval.text)
            {
                let names: Vec<&str> = self.intervals.iter().map(|other| other.name.as_str()).collect();
                let message =
                    format!("no interval has the name {:?}{}", interval.text, nearest(&interval.text, &names));
                return Err(SpecError::at(&self.source, interval.span.start, message));
            }
        }
        Ok(())
    }
}

/// The names that are most like a wrong one, as the end of a sentence; nothing if none is.
pub(crate) fn nearest<N: AsRef<str>>(wrong: &str, names: &[N]) -> String {
    let mut near: Vec<(usize, &str)> =
        names.iter().map(|name| (strsim::damerau_levenshtein(wrong, name.as_ref()), name.as_ref())).collect();
    near.sort_unstable();
    near.dedup();
    let limit = (wrong.chars().count() / 2).max(2);
    let near: Vec<&str> = near.into_iter().filter(|(far, _)| *far <= limit).map(|(_, name)| name).take(3).collect();
    if near.is_empty() { String::new() } else { format!("; the nearest: {}", near.join(", ")) }
}

/// An error at a byte of a text of the source: behind its quotation marks, if no escapes come before it.
pub(crate) fn inside(source: &str, span: &Range<usize>, at: usize, message: String) -> SpecError {
    let quoted = source.get(span.clone()).unwrap_or_default();
    let marks = quoted.bytes().take_while(|byte| matches!(byte, b'"' | b'\'')).count();
    let marks = if marks >= 3 { 3 } else { marks.min(1) };
    SpecError::at(source, span.start + marks + at, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCKS: &str = r#"
title = "Lock contention"

[lanes]
by = "task"
order = "time"
only = "$pid > 1"

[[interval]]
name = "contention"
begin = "lock:contention_begin"
end = "lock:contention_end"
match = ["$pid", "lock_addr"]
where = "flags != 0"
color_by = "flags"
label = "lock_addr"

[[series]]
open = "contention"
"#;

    #[test]
    fn a_specification_is_understood() {
        let spec = Spec::parse(LOCKS).expect("a specification");
        assert_eq!((spec.lanes.by, spec.lanes.order), (LaneKind::Task, Order::Time));
        let interval = &spec.intervals[0];
        let IntervalSource::Pair { begin, keys, .. } = &interval.source else { panic!("{interval:?}") };
        assert_eq!(begin.text, "lock:contention_begin");
        assert_eq!(keys.iter().map(|key| key.begin.text.as_str()).collect::<Vec<_>>(), ["$pid", "lock_addr"]);
        assert_eq!(spec.series[0].name, "open contention");
    }

    #[test]
    fn errors_have_line_and_column() {
        let error = |from: &str, to: &str| {
            assert!(LOCKS.contains(from), "{from}");
            let e = Spec::parse(&LOCKS.replace(from, to)).expect_err(to);
            (e.line, e.column, e.message)
        };
        let (line, column, message) = error("flags != 0", "flags = 0");
        assert_eq!((line, column), (14, 16), "{message}");
        let (line, column, message) = error("open = \"contention\"", "open = \"contention_\"");
        assert_eq!((line, column, message.contains("the nearest: contention")), (19, 8, true), "{message}");
        let (line, _, message) = error("end = \"lock:contention_end\"\n", "");
        assert!(line == 9 && message.contains("begin and end"), "{line}: {message}");
        let (line, column, _) = error("color_by = \"flags\"", "color = \"reddish\"");
        assert_eq!((line, column), (15, 9));
        let (line, column, _) = error("order = \"time\"", "order = \"times\"");
        assert_eq!((line, column), (6, 9));
        let (line, column, message) = error("begin = \"lock:contention_begin\"", "begin = \"contention\"");
        assert!((line, column) == (11, 9) && message.contains("system:name"), "{message}");
        let (line, column, message) = error("label =", "lable =");
        assert!((line, column) == (16, 1) && message.contains("label"), "{message}");
        assert!(Spec::parse("").expect_err("empty").message.contains("nothing is drawn"));
        let twice = format!("{LOCKS}\n[[interval]]\nname = 'contention'\nevent = 'a:b'\nduration = 'ns'\n");
        assert!(Spec::parse(&twice).expect_err("twice").message.contains("already"));
    }
}

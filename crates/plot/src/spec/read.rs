//! From the tables of a file to a specification.

use super::{
    Background, ColorSpec, Condition, IntervalSource, IntervalSpec, LaneKind, LanesSpec, MAX_ITEMS, MatchKey, Order,
    Placed, PointSpec, Quantity, SeriesSpec, Spec, SpecError, TimeUnit, inside,
};
use crate::expr;
use sched::event::{escape_lines, escaped};
use serde::Deserialize;
use std::cell::RefCell;
use std::ops::Range;
use toml::Spanned;

/// The file, before its texts are understood.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    title: Option<String>,
    about: Option<String>,
    record: Option<String>,
    #[serde(default)]
    lanes: LanesTable,
    #[serde(default)]
    interval: Vec<Spanned<IntervalTable>>,
    #[serde(default)]
    point: Vec<Spanned<PointTable>>,
    #[serde(default)]
    series: Vec<Spanned<SeriesTable>>,
}

type Text = Spanned<String>;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct LanesTable {
    by: Option<Text>,
    order: Option<Order>,
    only: Option<Text>,
    background: Option<Background>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct IntervalTable {
    name: Option<String>,
    begin: Option<Text>,
    end: Option<Text>,
    event: Option<Text>,
    duration: Option<Text>,
    unit: Option<TimeUnit>,
    #[serde(default, rename = "match")]
    keys: Vec<Text>,
    #[serde(rename = "where")]
    condition: Option<Text>,
    end_where: Option<Text>,
    color: Option<Text>,
    color_by: Option<Text>,
    label: Option<Text>,
    #[serde(default)]
    optional: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PointTable {
    name: Option<String>,
    event: Text,
    #[serde(rename = "where")]
    condition: Option<Text>,
    color: Option<Text>,
    color_by: Option<Text>,
    label: Option<Text>,
    #[serde(default)]
    optional: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SeriesTable {
    name: Option<String>,
    event: Option<Text>,
    value: Option<Text>,
    #[serde(default)]
    rate: bool,
    open: Option<Text>,
    by: Option<Text>,
    #[serde(rename = "where")]
    condition: Option<Text>,
    #[serde(default)]
    hold: bool,
    unit: Option<String>,
    #[serde(default)]
    optional: bool,
}

impl From<Text> for Placed {
    fn from(text: Text) -> Placed {
        let span = text.span();
        Placed { text: text.into_inner(), span }
    }
}

/// Understands the text of a specification.
pub(super) fn read(source: &str) -> Result<Spec, SpecError> {
    let file: File = toml::from_str(source)
        .map_err(|e| SpecError::at(source, e.span().map_or(0, |span| span.start), e.message().trim_end().to_owned()))?;
    let items = file.interval.len() + file.point.len() + file.series.len();
    let reader = Reader { source, regexes: RefCell::default() };
    if items == 0 {
        return reader.error(&(0..0), "nothing is drawn: add an [[interval]], a [[point]] or a [[series]]");
    }
    if items > MAX_ITEMS {
        return reader.error(&(0..0), format!("there are more than {MAX_ITEMS} intervals, points and series"));
    }
    Ok(Spec {
        source: source.to_owned(),
        title: file.title.map(escaped),
        about: file.about.map(escaped_text),
        record: file.record.map(escaped_text),
        lanes: reader.lanes(file.lanes)?,
        intervals: file.interval.into_iter().map(|table| reader.interval(table)).collect::<Result<_, _>>()?,
        points: file.point.into_iter().map(|table| reader.point(table)).collect::<Result<_, _>>()?,
        series: file.series.into_iter().map(|table| reader.series(table)).collect::<Result<_, _>>()?,
    })
}

/// Reads the tables of a file.
struct Reader<'s> {
    source: &'s str,
    regexes: RefCell<expr::Regexes>,
}

impl Reader<'_> {
    fn error<T>(&self, span: &Range<usize>, message: impl Into<String>) -> Result<T, SpecError> {
        Err(SpecError::at(self.source, span.start, message))
    }

    fn condition(&self, text: Option<Text>) -> Result<Option<Condition>, SpecError> {
        let Some(text) = text else { return Ok(None) };
        let span = text.span();
        let expr = expr::parse_with(text.get_ref(), &mut self.regexes.borrow_mut());
        let expr = expr.map_err(|e| inside(self.source, &span, e.at, e.message))?;
        Ok(Some(Condition { expr, span }))
    }

    fn event(&self, text: Text) -> Result<Placed, SpecError> {
        let placed = Placed::from(text);
        let is_named = placed.text.split_once(':').is_some_and(|(system, name)| !system.is_empty() && !name.is_empty());
        if !is_named || placed.text.matches('*').count() > 1 {
            let message = format!("{:?} is not an event; write system:name, with at most one *", placed.text);
            return self.error(&placed.span, message);
        }
        Ok(placed)
    }

    fn color(&self, fixed: Option<Text>, by: Option<Text>) -> Result<ColorSpec, SpecError> {
        match (fixed, by) {
            (None, None) => Ok(ColorSpec::Next),
            (Some(_), Some(by)) => self.error(&by.span(), "color and color_by exclude each other"),
            (None, Some(by)) => Ok(ColorSpec::By(by.into())),
            (Some(name), None) => match crate::color::named(name.get_ref()) {
                Some(color) => Ok(ColorSpec::Fixed(color, name.into_inner())),
                None => {
                    let names = crate::color::NAMES.map(|(name, _)| name).join(", ");
                    let message = format!(
                        "{:?} is not a colour; write #rrggbb or one of {names}, or color_by for a field",
                        name.get_ref()
                    );
                    self.error(&name.span(), message)
                }
            },
        }
    }

    fn lanes(&self, table: LanesTable) -> Result<LanesSpec, SpecError> {
        let by = match table.by.map(Placed::from) {
            None => LaneKind::Cpu,
            Some(by) if by.text == "cpu" => LaneKind::Cpu,
            Some(by) if by.text == "task" => LaneKind::Task,
            Some(by) => LaneKind::Field(by),
        };
        let (order, background) = (table.order.unwrap_or_default(), table.background.unwrap_or_default());
        Ok(LanesSpec { by, order, only: self.condition(table.only)?, background })
    }

    fn interval(&self, table: Spanned<IntervalTable>) -> Result<IntervalSpec, SpecError> {
        let span = table.span();
        let table = table.into_inner();
        let end_condition = self.condition(table.end_where)?;
        let source = match (table.begin, table.end, table.event, table.duration) {
            (Some(begin), Some(end), None, None) => {
                let (begin, end) = (self.event(begin)?, self.event(end)?);
                if end.text.contains('*') && !begin.text.contains('*') {
                    return self
                        .error(&end.span, "the * of an end stands for the text of the * in begin, which has none");
                }
                let keys = table.keys.into_iter().map(|key| MatchKey::of(key.into())).collect();
                IntervalSource::Pair { begin, end, keys, end_condition }
            }
            (None, None, Some(event), Some(duration)) => {
                if let Some(key) = table.keys.first() {
                    return self.error(&key.span(), "an event with a duration has no end to match");
                }
                if let Some(condition) = end_condition {
                    return self.error(&condition.span, "an event with a duration has no end; write where");
                }
                let unit = table.unit.unwrap_or_default();
                IntervalSource::Lone { event: self.event(event)?, duration: duration.into(), unit }
            }
            _ => return self.error(&span, "an interval has begin and end, or event and duration"),
        };
        let first = match &source {
            IntervalSource::Pair { begin, .. } => begin,
            IntervalSource::Lone { event, .. } => event,
        };
        Ok(IntervalSpec {
            name: table.name.map_or_else(|| own_name(&first.text), escaped),
            condition: self.condition(table.condition)?,
            color: self.color(table.color, table.color_by)?,
            label: table.label.map(Placed::from),
            optional: table.optional,
            source,
            span,
        })
    }

    fn point(&self, table: Spanned<PointTable>) -> Result<PointSpec, SpecError> {
        let span = table.span();
        let table = table.into_inner();
        let event = self.event(table.event)?;
        Ok(PointSpec {
            name: table.name.map_or_else(|| own_name(&event.text), escaped),
            condition: self.condition(table.condition)?,
            color: self.color(table.color, table.color_by)?,
            label: table.label.map(Placed::from),
            optional: table.optional,
            event,
            span,
        })
    }

    fn series(&self, table: Spanned<SeriesTable>) -> Result<SeriesSpec, SpecError> {
        let span = table.span();
        let table = table.into_inner();
        if let Some(by) = table.by.as_ref().filter(|_| table.open.is_some()) {
            return self.error(&by.span(), "the number of open intervals is one line; it has no `by`");
        }
        let quantity = match (table.event, table.value, table.rate, table.open) {
            (Some(event), Some(value), false, None) => {
                Quantity::Value { event: self.event(event)?, value: value.into(), hold: table.hold }
            }
            (Some(event), None, true, None) => Quantity::Rate { event: self.event(event)? },
            (None, None, false, Some(interval)) => Quantity::Open { interval: interval.into() },
            _ => return self.error(&span, "a series has event and value, event and rate = true, or open"),
        };
        let name = table.name.unwrap_or_else(|| match &quantity {
            Quantity::Value { value, .. } => value.text.clone(),
            Quantity::Rate { event } => format!("{} per second", own_name(&event.text)),
            Quantity::Open { interval } => format!("open {}", interval.text),
        });
        let name = escaped(name);
        let (by, condition) = (table.by.map(Placed::from), self.condition(table.condition)?);
        Ok(SeriesSpec { name, quantity, by, condition, unit: table.unit.map(escaped), optional: table.optional, span })
    }
}

/// The name of an event without its system.
fn own_name(event: &str) -> String {
    escaped(event.split_once(':').map_or(event, |(_, name)| name).to_owned())
}

/// A text of several lines, escaped.
fn escaped_text(mut text: String) -> String {
    escape_lines(&mut text, 0);
    text
}

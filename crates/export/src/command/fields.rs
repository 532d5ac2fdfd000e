//! The fields of chosen events as columns of the table of events.

use crate::schema::{Column, Type};
use crate::value::Value;
use anyhow::Result;
use parse::{Field, FieldShape, Record, Trace};
use session::args::ReadArgs;
use session::patterns;
use std::path::Path;

/// The beginning of the names of these columns: an event can have a field called `cpu` or `pid`.
const PREFIX: &str = "field_";

/// The columns of the fields of some events: one for each name, in the order of the formats.
#[derive(Default)]
pub(super) struct FieldColumns {
    columns: Vec<FieldColumn>,
}

struct FieldColumn {
    name: String,
    is_number: bool,
}

impl FieldColumns {
    /// The columns for the events that match the patterns in any of these recordings; none without a pattern.
    pub(super) fn of(events: &[String], files: &[&Path], read: &ReadArgs) -> Result<FieldColumns> {
        let mut found = FieldColumns::default();
        for path in files.iter().filter(|_| !events.is_empty()) {
            let trace = read.silent().open(path)?;
            for format in patterns::formats(&trace, events)? {
                format.own_fields().for_each(|field| found.add(field));
            }
        }
        Ok(found)
    }

    /// Adds the column of a field. One that is a number in some events alone is a text.
    fn add(&mut self, field: &Field) {
        let is_number = field.shape == FieldShape::Scalar;
        match self.columns.iter_mut().find(|column| field.name == column.name.as_str()) {
            Some(column) => column.is_number &= is_number,
            None => self.columns.push(FieldColumn { name: field.name.to_string(), is_number }),
        }
    }

    /// The columns, which stand behind those that the table always has.
    pub(super) fn columns(&self) -> Vec<Column> {
        let column = |column: &FieldColumn| Column {
            name: format!("{PREFIX}{}", column.name).into(),
            kind: if column.is_number { Type::Int64 } else { Type::Text },
            doc: "A field of the event.".into(),
        };
        self.columns.iter().map(column).collect()
    }

    /// The values of a record in these columns: null where its event lacks the field.
    pub(super) fn values(&self, record: &Record<'_>) -> Vec<Value<'static>> {
        let value = |column: &FieldColumn| {
            if !column.is_number {
                return record.field_text(&column.name).into();
            }
            let field = record.format().and_then(|format| format.field(&column.name));
            // An unsigned number beyond the range of the column, most often an address, would be a wrong one.
            let is_beyond = |n: i64| n < 0 && field.is_some_and(|field| !field.signed);
            record.number(&column.name).filter(|n| !is_beyond(*n)).into()
        };
        self.columns.iter().map(value).collect()
    }
}

/// The numbers of the events that match the patterns in a trace; nothing without a pattern.
pub(super) fn chosen(events: &[String], trace: &Trace) -> Result<Option<Vec<u16>>> {
    if events.is_empty() {
        return Ok(None);
    }
    Ok(Some(patterns::formats(trace, events)?.iter().map(|format| format.id).collect()))
}

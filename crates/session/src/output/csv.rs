//! Tables of comma-separated values.

use anyhow::Result;
use membership::TaskRow;
use sched::Dur;
use sched::lengths::Summary;
use serde::Serialize;
use std::borrow::Cow;
use std::fmt::{Display, Write as _};
use std::io::Write;

/// Writes a table of comma-separated values, row by row, with a header. A field that contains a separator is in quotes. A text that a
/// spreadsheet would take for a formula, such as the name of a hostile task, has an apostrophe before it.
pub struct CsvWriter<W: Write> {
    writer: csv::Writer<W>,
    /// The text of a field, kept for the next one.
    field: String,
}

impl<W: Write> std::fmt::Debug for CsvWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CsvWriter").finish_non_exhaustive()
    }
}

impl<W: Write> CsvWriter<W> {
    /// Begins a table with these columns, separated by commas.
    pub fn new(out: W, columns: &str) -> Result<CsvWriter<W>> {
        let mut table = CsvWriter::without_header(out);
        table.writer.write_record(columns.split(','))?;
        Ok(table)
    }

    fn without_header(out: W) -> CsvWriter<W> {
        CsvWriter { writer: csv::Writer::from_writer(out), field: String::new() }
    }

    /// Writes a row. Each row of a table must have as many fields as the first.
    pub fn row(&mut self, fields: &[&dyn Display]) -> Result<()> {
        for field in fields {
            self.field.clear();
            write!(self.field, "{field}")?;
            self.writer.write_field(&*guarded(&self.field))?;
        }
        Ok(self.writer.write_record(None::<&[u8]>)?)
    }

    /// Writes the rows that are gathered. Without it an error at the end of a table would be lost.
    pub fn finish(mut self) -> Result<()> {
        Ok(self.writer.flush()?)
    }
}

/// Rows in memory, without a header: a part of a table that another thread writes.
impl Default for CsvWriter<Vec<u8>> {
    fn default() -> Self {
        CsvWriter::without_header(Vec::new())
    }
}

impl CsvWriter<Vec<u8>> {
    /// Returns the bytes of the rows.
    pub fn into_bytes(self) -> Result<Vec<u8>> {
        Ok(self.writer.into_inner().map_err(csv::IntoInnerError::into_error)?)
    }
}

/// Returns a text as every table has it: with an apostrophe before one that a spreadsheet would take for a formula.
pub fn guarded(text: &str) -> Cow<'_, str> {
    if is_formula(text) { format!("'{text}").into() } else { text.into() }
}

/// Whether a spreadsheet takes a text for a formula. A sign alone is none.
fn is_formula(text: &str) -> bool {
    text.len() > 1 && text.starts_with(['=', '+', '-', '@']) && text.parse::<f64>().is_err()
}

/// Returns a value, or an empty field for an unknown one.
pub fn known(value: Option<impl Display>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// Returns the fields `pid` and `command` of a row, or `process` and `group` where rows are groups; an empty field for an unknown one.
pub fn task_fields(row: &TaskRow) -> [String; 2] {
    match &row.group {
        Some(group) => [known(group.process), known(group.name.as_ref())],
        None => [known(row.pid), known(row.command)],
    }
}

/// Returns the word that JSON has for a value; an empty field for a value that is no word there.
pub fn word(value: impl Serialize) -> Result<String> {
    Ok(serde_json::to_value(value)?.as_str().unwrap_or_default().to_owned())
}

/// The columns of a distribution; the number of lengths and their sum come first.
pub const DISTRIBUTION: [&str; 9] =
    ["count", "total_ns", "mean_ns", "min_ns", "p50_ns", "p90_ns", "p99_ns", "p999_ns", "max_ns"];

/// Returns the fields of a distribution, in the order of [`DISTRIBUTION`].
pub fn distribution(summary: &Summary) -> [String; DISTRIBUTION.len()] {
    let s = summary;
    let length = |length: Option<Dur>| known(length.map(|length| length.0));
    let [mean, min, p50, p90, p99, p999, max] =
        [s.mean_ns, s.min_ns, s.p50_ns, s.p90_ns, s.p99_ns, s.p999_ns, s.max_ns].map(length);
    [s.count.to_string(), s.total_ns.0.to_string(), mean, min, p50, p90, p99, p999, max]
}

/// Returns references to texts, as [`CsvWriter::row`] takes fields.
pub fn fields(texts: &[String]) -> impl Iterator<Item = &dyn Display> {
    texts.iter().map(|text| text as &dyn Display)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_is_a_formula() {
        let mut out = Vec::new();
        let mut table = CsvWriter::new(&mut out, "a,b,c,d,e,f").expect("a header");
        table.row(&[&"=cmd|'/C'!A", &"@x", &"-5", &-0.25, &"-2+3", &"-"]).expect("a row");
        table.finish().expect("written");
        assert_eq!(String::from_utf8(out).expect("text"), "a,b,c,d,e,f\n'=cmd|'/C'!A,'@x,-5,-0.25,'-2+3,-\n");
    }

    #[test]
    fn separators_are_quoted() {
        let mut out = Vec::new();
        let mut table = CsvWriter::new(&mut out, "a,b,c,d").expect("a header");
        table.row(&[&"plain", &"a,b", &"say \"x\"", &"two\nlines"]).expect("a row");
        table.row(&[&known(Some(0)), &known(None::<u64>), &-1.5, &Dur(3).0]).expect("a row");
        table.finish().expect("written");
        let text = String::from_utf8(out).expect("text");
        assert_eq!(text, "a,b,c,d\nplain,\"a,b\",\"say \"\"x\"\"\",\"two\nlines\"\n0,,-1.5,3\n");
    }
}

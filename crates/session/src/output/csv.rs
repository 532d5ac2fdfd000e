//! The fields of tables of comma-separated values.

use anyhow::Result;
use sched::Dur;
use sched::lengths::Summary;
use serde::Serialize;
use std::fmt::Display;

/// Returns a field, in quotes if it contains a separator.
pub fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

/// Returns a value, or an empty field for an unknown one.
pub fn known(value: Option<impl Display>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// Returns the word that JSON has for a value; an empty field for a value that is no word there.
pub fn word(value: impl Serialize) -> Result<String> {
    Ok(serde_json::to_value(value)?.as_str().unwrap_or_default().to_owned())
}

/// The columns of a distribution; the number of lengths and their sum come first.
pub const DISTRIBUTION: [&str; 9] =
    ["count", "total_ns", "mean_ns", "min_ns", "p50_ns", "p90_ns", "p99_ns", "p999_ns", "max_ns"];

/// Returns the fields of a distribution, in the order of [`DISTRIBUTION`].
pub fn distribution(summary: &Summary) -> String {
    let s = summary;
    let lengths = [s.mean_ns, s.min_ns, s.p50_ns, s.p90_ns, s.p99_ns, s.p999_ns, s.max_ns];
    let lengths = lengths.map(|length: Option<Dur>| known(length.map(|length| length.0)));
    format!("{},{},{}", s.count, s.total_ns.0, lengths.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_are_quoted() {
        assert_eq!(
            ["plain", "a,b", "say \"x\"", "two\nlines"].map(quoted),
            ["plain", "\"a,b\"", "\"say \"\"x\"\"\"", "\"two\nlines\""]
        );
        assert_eq!((known(Some(0)), known(None::<u64>)), ("0".to_owned(), String::new()));
    }
}

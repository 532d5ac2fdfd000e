//! stress-ng with `--metrics`: operations per second of real time of each stressor, and its miscellaneous metrics.

use crate::{NumbersFound, cut};
use question::{Better, Metric};

/// The columns of a name in a table.
const ROW: usize = 18;

pub(crate) fn read(lines: &[&str], found: &mut NumbersFound) {
    let (mut is_table, mut is_more) = (false, false);
    for line in lines {
        let Some(text) = line.strip_prefix("stress-ng: ").and_then(|rest| Some(rest.split_once("] ")?.1.trim_end()))
        else {
            continue;
        };
        if text.starts_with("stressor ") && text.contains("bogo ops") {
            (is_table, is_more) = (true, false);
        } else if text.starts_with("miscellaneous metrics") {
            is_more = is_table;
        } else if is_more {
            more(text, found);
        } else if is_table {
            operations(text, found);
        }
    }
}

/// Whether a word is the name of a stressor.
fn is_name(word: &str) -> bool {
    (1..=32).contains(&word.len())
        && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
        && word.starts_with(|c: char| c.is_ascii_lowercase())
}

/// A row of the table: name, operations, three times, operations per second of real time, and of CPU time.
fn operations(text: &str, found: &mut NumbersFound) {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [name, numbers @ ..] = words.as_slice() else { return };
    let numbers: Vec<f64> = numbers.iter().map_while(|word| word.parse().ok()).collect();
    if let [_, _, _, _, rate, ..] = numbers[..]
        && is_name(name)
    {
        let row = cut(&format!("{name}, bogo ops/s"), ROW).to_owned();
        let metric = Metric {
            key: format!("stress-ng-{name}").into(),
            name: format!("stress-ng {name}, bogo ops/s"),
            row,
            better: Better::More,
        };
        found.add(metric, rate);
    }
}

/// A miscellaneous metric: `switch 6796.37 nanosecs per context switch (pipe method) (geometric mean of 1 instances)`. A rate per second
/// is better large, a time per thing small.
fn more(text: &str, found: &mut NumbersFound) {
    let mut words = text.splitn(2, ' ');
    let (Some(name), Some(rest)) = (words.next(), words.next()) else { return };
    let Some((value, unit)) = rest.trim_start().split_once(' ') else { return };
    let Some(value) = value.parse().ok().filter(|_| is_name(name)) else { return };
    let unit = unit.split(" (geo").next().unwrap_or_default().split(" (harm").next().unwrap_or_default().trim();
    let unit = cut(unit, 48);
    // The unit is shown as it is.
    if unit.chars().any(char::is_control) {
        return;
    }
    let better = match unit {
        unit if unit.contains("per sec") => Better::More,
        unit if unit.starts_with("nanosec") || unit.starts_with("microsec") || unit.starts_with("millisec") => {
            Better::Less
        }
        _ => Better::Neither,
    };
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let key: String = unit.chars().map(plain).collect();
    let key = key.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-");
    let metric = Metric {
        key: format!("stress-ng-{name}-{key}").into(),
        name: format!("stress-ng {name}, {unit}"),
        row: cut(&format!("  {unit}"), ROW).trim_end().to_owned(),
        better,
    };
    found.add(metric, value);
}

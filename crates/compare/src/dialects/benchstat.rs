//! The form of benchstat: medians with a confidence interval, the change where it is more than noise, p and the number of runs.

use super::{Compared, MetricLine, Sample, name_and_unit};
use crate::table::short;
use crate::{least_p, p_value};
use std::fmt::Write;

/// The level of the confidence interval of a median.
const LEVEL: f64 = 0.95;

/// The least number of runs that have such an interval.
const FEWEST: usize = 6;

/// The number of runs from which on the binomial distribution is close to the normal one.
const MANY: usize = 500;

/// A cell of the table: the value, and the difference from the base.
struct Cell {
    value: String,
    difference: String,
}

pub(super) fn text(compared: &Compared<'_>) -> String {
    let lines = compared.lines();
    let mut units: Vec<&str> = Vec::new();
    for line in &lines {
        let unit = name_and_unit(line.metric).1;
        if !units.contains(&unit) {
            units.push(unit);
        }
    }
    let of_unit = |unit: &&str| -> String {
        let lines: Vec<&MetricLine<'_>> = lines.iter().filter(|line| name_and_unit(line.metric).1 == *unit).collect();
        table(compared, if unit.is_empty() { "number" } else { unit }, &lines)
    };
    units.iter().map(of_unit).collect::<Vec<_>>().join("\n")
}

/// The table of the metrics of one unit.
fn table(compared: &Compared<'_>, unit: &str, lines: &[&MetricLine<'_>]) -> String {
    let name = lines.iter().map(|line| line.metric.key.len()).max().unwrap_or(0).max(6);
    let columns: Vec<(Vec<Cell>, usize, usize)> =
        (0..compared.groups.len()).map(|nth| column(compared, nth, unit, lines)).collect();
    let (mut head, mut below) = (format!("{:name$} \u{2502}", "median"), format!("{:name$} \u{2502}", ""));
    for (nth, (group, (_, value, difference))) in compared.groups.iter().zip(&columns).enumerate() {
        let all = if nth == 0 { value + 2 } else { value + difference + 4 };
        // Writing to a string cannot fail.
        let _ = write!(head, "{:^all$}\u{2502}", group.name);
        let (cell, rest) = (value + 2, difference + 1);
        let against = format!("vs {}", compared.groups[0].name);
        let _ = match nth {
            0 => write!(below, "{unit:^cell$}\u{2502}"),
            _ => write!(below, "{unit:^cell$} {against:rest$}\u{2502}"),
        };
    }
    let mut out = format!("{head}\n{below}\n");
    for (at, line) in lines.iter().enumerate() {
        let mut row = format!("{:name$}  ", line.metric.key);
        for (nth, (cells, value, difference)) in columns.iter().enumerate() {
            let _ = match nth {
                0 => write!(row, " {:>value$} ", cells[at].value),
                // The space in front stands below the line between two columns.
                _ => write!(row, "  {:>value$}  {:>difference$} ", cells[at].value, cells[at].difference),
            };
        }
        let _ = writeln!(out, "{}", row.trim_end());
    }
    let marked = |mark| columns.iter().flat_map(|(cells, ..)| cells).any(|cell| cell.value.ends_with(mark));
    if marked('\u{b9}') {
        let _ = writeln!(out, "\u{b9} need >= {FEWEST} samples for confidence interval at level {LEVEL}");
    }
    if columns.iter().flat_map(|(cells, ..)| cells).any(|cell| cell.difference.ends_with('\u{b2}')) {
        let (alpha, runs) = (compared.alpha, crate::fewest_that_show(compared.alpha));
        let _ = writeln!(out, "\u{b2} need >= {runs} samples to detect a difference at alpha level {alpha}");
    }
    out
}

/// The cells of a group, with the columns that its values and its differences need.
fn column(compared: &Compared<'_>, nth: usize, unit: &str, lines: &[&MetricLine<'_>]) -> (Vec<Cell>, usize, usize) {
    let cell = |line: &&MetricLine<'_>| match (&line.samples[nth], line.base()) {
        (Some(sample), Some(base)) => {
            let difference = if nth == 0 { String::new() } else { difference(base, sample, compared.alpha) };
            Cell { value: value(sample), difference }
        }
        _ => Cell { value: "-".to_owned(), difference: String::new() },
    };
    let cells: Vec<Cell> = lines.iter().map(cell).collect();
    let widest = |of: fn(&Cell) -> &String| cells.iter().map(|cell| of(cell).chars().count()).max().unwrap_or(0);
    let (value, against) = (widest(|cell| &cell.value), 3 + compared.groups[0].name.chars().count());
    let difference = widest(|cell| &cell.difference).max(against);
    let name = compared.groups[nth].name.chars().count();
    let taken = if nth == 0 { 0 } else { difference + 2 };
    (cells, value.max(unit.chars().count()).max(name.saturating_sub(taken)), difference)
}

/// The median with the distance of the further end of its interval, in percent; infinite with fewer than [`FEWEST`] runs.
fn value(sample: &Sample<'_>) -> String {
    let median = sample.median();
    match interval(&sample.values) {
        Some((low, high)) if low == high => format!("{} \u{b1} 0%", short(median)),
        Some(_) if median == 0.0 => format!("{} \u{b1} ?%", short(median)),
        Some((low, high)) => {
            let percent = 100.0 * (high - median).max(median - low) / median.abs();
            format!("{} \u{b1} {percent:.0}%", short(median))
        }
        None => format!("{} \u{b1} \u{221e} \u{b9}", short(median)),
    }
}

/// The confidence interval of the median at the level of [`LEVEL`], by order statistics of ascending values.
fn interval(values: &[f64]) -> Option<(f64, f64)> {
    let n = values.len();
    if n > MANY {
        // The normal distribution has 95 % of its probability within 1.96 standard deviations.
        let left = (n as f64 / 2.0 - 1.96 * (n as f64).sqrt() / 2.0) as usize;
        return Some((values[left], values[n - 1 - left]));
    }
    // The probability that at most `left` of the runs are below the median, which each is with probability 1/2.
    let (mut tail, mut ways, mut found) = (0.0, 0.5_f64.powi(i32::try_from(n).ok()?), None);
    for left in 0..n / 2 {
        tail += ways;
        if 1.0 - 2.0 * tail < LEVEL {
            break;
        }
        found = Some((values[left], values[n - 1 - left]));
        ways *= (n - left) as f64 / (left + 1) as f64;
    }
    found
}

/// The change of the median, or `~` where it may be noise; with p and the number of runs.
fn difference(base: &Sample<'_>, new: &Sample<'_>, alpha: f64) -> String {
    let (old, found) = (base.median(), new.median());
    let p = new.row.and_then(|row| row.p).unwrap_or_else(|| p_value(&base.values, &new.values));
    let change = match new.is_marked() {
        false => "~".to_owned(),
        true if old == 0.0 => "?".to_owned(),
        true => format!("{:+.2}%", 100.0 * (found - old) / old.abs()),
    };
    let (b, n) = (base.values.len(), new.values.len());
    let runs = if b == n { n.to_string() } else { format!("{b}+{n}") };
    let mark = if least_p(b, n) > alpha { " \u{b2}" } else { "" };
    format!("{change} (p={p:.3} n={runs}){mark}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_of_medians_by_hand() {
        let values = |n: usize| -> Vec<f64> { (1..=n).map(|v| v as f64).collect() };
        // All of six runs cover the median with 1 - 2/64; five do with 1 - 2/32 alone.
        assert_eq!(interval(&values(5)), None);
        assert_eq!(interval(&values(6)), Some((1.0, 6.0)));
        // Without the outermost runs of nine it is 1 - 2 (1 + 9)/512, and of eight 1 - 2 (1 + 8)/256.
        assert_eq!(interval(&values(8)), Some((1.0, 8.0)));
        assert_eq!(interval(&values(9)), Some((2.0, 8.0)));
        assert_eq!(interval(&values(1)), None);
    }
}

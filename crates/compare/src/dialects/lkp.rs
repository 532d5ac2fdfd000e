//! The form of the kernel test robot (LKP), with medians as in every form, the standard deviation in percent, and the change between the
//! medians.

use super::{Compared, MetricLine, Sample, name_and_unit};
use std::fmt::Write;

/// The least standard deviation that is shown, in percent.
const LEAST: f64 = 1.5;

pub(super) fn text(compared: &Compared<'_>) -> String {
    // Writing to a string cannot fail.
    let mut out = format!("{}\ntestcase:\n  {}\n\ncommit: \n", "=".repeat(89), compared.test);
    for group in compared.groups {
        let _ = writeln!(out, "  {} ({})", group.name, sched::nouns::counted(group.runs.len(), "run"));
    }
    out.push_str("\nstatistic:\n  median\n\n");
    let widths = std::iter::once(16).chain(std::iter::repeat(27)).take(compared.groups.len());
    for (group, width) in compared.groups.iter().zip(widths.clone()) {
        let name: String = group.name.chars().take(width).collect();
        let _ = write!(out, "{name:width$} ");
    }
    out.push('\n');
    for width in widths {
        let _ = write!(out, "{} ", "-".repeat(width));
    }
    out.push('\n');
    let others = compared.groups.len().saturating_sub(1);
    let _ = writeln!(out, "         %stddev{}", "     %change         %stddev".repeat(others));
    let _ = writeln!(out, "             \\  {}", "        |                \\  ".repeat(others));
    for line in compared.lines() {
        row(&mut out, &line);
    }
    out.push('\n');
    timeline::text::paragraph(&mut out, 0, 2, &compared.on_marks());
    out
}

fn row(out: &mut String, line: &MetricLine<'_>) {
    let Some(base) = line.base() else { return };
    let (key, is_percent) = key(line);
    let _ = write!(out, "{:>10}{}", number(base.median()), deviation(base));
    for sample in line.samples.iter().skip(1) {
        let Some(sample) = sample else {
            let _ = write!(out, "{:28}", "");
            continue;
        };
        let (old, new) = (base.median(), sample.median());
        // The change of a percentage is in points.
        let change = match (is_percent, old == 0.0) {
            (true, _) => format!("{:+.1} ", new - old),
            (false, true) => "- ".to_owned(),
            (false, false) => format!("{:+.1}%", 100.0 * (new - old) / old.abs()),
        };
        let _ = write!(out, "{change:>11}{:>11}{}", number(new), deviation(sample));
    }
    let _ = writeln!(out, "  {key}");
}

/// The standard deviation in six columns; nothing where it is small, or there is one run.
fn deviation(sample: &Sample<'_>) -> String {
    let shown = sample.variation().filter(|percent| *percent >= LEAST);
    shown.map_or_else(|| " ".repeat(6), |percent| format!(" \u{b1}{percent:>3.0}%"))
}

/// A number with two digits behind the point, or a large one with none.
fn number(value: f64) -> String {
    if value.abs() >= 1000.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

/// The key of a metric, lower-case with dots and its unit at the end; and whether it is a percentage.
fn key(line: &MetricLine<'_>) -> (String, bool) {
    let key = line.metric.key.replace('-', ".");
    match name_and_unit(line.metric).1 {
        "%" => (format!("schedviz.{key}%"), true),
        unit @ ("s" | "ms") => (format!("schedviz.{key}.{unit}"), false),
        _ => (format!("schedviz.{key}"), false),
    }
}

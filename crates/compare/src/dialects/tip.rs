//! The form of series for sched/core: a case a line, normalised to the base, with improvement and coefficient of variation.

use super::{Compared, MetricLine, Sample};
use crate::Better;
use std::fmt::Write;
use timeline::text::{paragraph, rounded};

/// The columns of a group, at least.
const CELL: usize = 24;

/// The columns of the name of a case, at least.
const CASE: usize = 16;

/// An interpretation, the head of the percentages, and their sign: 1 where growth is positive, -1 where it is negative.
type Way = (&'static str, &'static str, f64);

/// The ways in which a metric can improve.
const WAYS: [(Better, Way); 3] = [
    (Better::Less, ("Lower is better; [positive] is better", "pct imp", -1.0)),
    (Better::More, ("Higher is better; [positive] is better", "pct imp", 1.0)),
    (Better::Neither, ("Neither is better; [positive] is more", "pct chg", 1.0)),
];

pub(super) fn text(compared: &Compared<'_>) -> String {
    let mut out = String::new();
    for (better, way) in WAYS {
        let lines = compared.lines_by(better);
        if !lines.is_empty() {
            out.push_str(if out.is_empty() { "" } else { "\n" });
            block(&mut out, compared, &lines, way);
        }
    }
    out.push('\n');
    paragraph(&mut out, 0, 2, &compared.on_marks());
    out
}

/// A head with the lines below it.
fn block(out: &mut String, compared: &Compared<'_>, lines: &[MetricLine<'_>], way: Way) {
    let (interpretation, percent, sign) = way;
    let rule = "=".repeat(66);
    let (usable, zero): (Vec<&MetricLine<'_>>, Vec<&MetricLine<'_>>) =
        lines.iter().partition(|line| line.base().is_some_and(|base| base.median() != 0.0));
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{rule}");
    let _ = writeln!(out, "Test          : {}", compared.test);
    let _ = writeln!(out, "Units         : Normalized to {}; units in the names", compared.groups[0].name);
    let _ = writeln!(out, "Interpretation: {interpretation}");
    let _ = writeln!(out, "Statistic     : Median\n{rule}");
    let width = usable.iter().map(|line| line.metric.name.chars().count() + 1).max().unwrap_or(0).max(CASE);
    let head_of = |name: &str| format!("{name}[{percent}](CV)");
    let of_group = |sample: &Option<Sample<'_>>, base: f64| {
        sample.as_ref().map_or_else(|| "-".to_owned(), |sample| cell(sample, base, sign))
    };
    let values = usable.iter().flat_map(|line| line.samples.iter().map(|sample| (sample, line.base())));
    let values = values.filter_map(|(sample, base)| Some(of_group(sample, base?.median()).chars().count() + 2));
    let columns = compared.groups.iter().map(|group| head_of(&group.name).chars().count() + 1);
    let cells = columns.chain(values).max().unwrap_or(0).max(CELL);
    let mut head = format!("{:width$}", "Case:");
    for group in compared.groups {
        let _ = write!(head, "{:>cells$}", head_of(&group.name));
    }
    let _ = writeln!(out, "{head}");
    for line in usable {
        let Some(base) = line.base() else { continue };
        let mut row = format!("{:width$}", format!(" {}", line.metric.name));
        for sample in &line.samples {
            let cell = of_group(sample, base.median());
            let _ = write!(row, "{cell:>cells$}");
        }
        let _ = writeln!(out, "{row}");
    }
    if !zero.is_empty() {
        let names: Vec<&str> = zero.iter().map(|line| line.metric.name.as_str()).collect();
        paragraph(out, 0, 2, &format!("(without, since the base is zero: {})", names.join("; ")));
    }
}

/// A group of runs against the median of the base.
fn cell(sample: &Sample<'_>, base: f64, sign: f64) -> String {
    let value = sample.median() / base;
    let percent = rounded(sign * 100.0 * (value - 1.0), 2);
    let variation = sample.variation().map_or_else(|| "1 run".to_owned(), |percent| format!("{percent:>5.2}"));
    format!("{value:.2} [{percent:>6.2}]({variation})")
}

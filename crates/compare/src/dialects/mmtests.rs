//! The form of mmtests: a line for each statistic of each metric, with the gain over the base; stars mark more than noise.

use super::{Compared, MetricLine, Sample};
use crate::Better;
use std::fmt::Write;
use timeline::text::{paragraph, rounded};

/// The columns of a group: a value and its gain.
const CELL: usize = 23;

/// Computes a statistic of a sample; nothing where it has too few runs.
type Statistic = fn(&Sample<'_>) -> Option<f64>;

/// The statistics, each with its value for a sample.
const STATISTICS: [(&str, Statistic); 5] = [
    ("Min", |sample| sample.values.first().copied()),
    ("Amean", |sample| Some(sample.mean())),
    ("Stddev", |sample| sample.deviation()),
    ("CoeffVar", |sample| sample.variation()),
    ("Max", |sample| sample.values.last().copied()),
];

pub(super) fn text(compared: &Compared<'_>) -> String {
    let width = compared.lines().iter().map(|line| line.metric.key.len()).max().unwrap_or(0);
    let mut out = format!("{}\n", compared.test);
    for better in [Better::Less, Better::More, Better::Neither] {
        let lines = compared.lines_by(better);
        if lines.is_empty() {
            continue;
        }
        if better == Better::Neither {
            out.push_str("\nnot judged: a positive percentage is more\n");
        }
        block(&mut out, compared, &lines, width, better);
    }
    out.push('\n');
    paragraph(&mut out, 0, 2, &format!("{} These have * * around their gain.", compared.on_marks()));
    out
}

/// The lines of metrics that improve in the same direction. The mean of rates is the harmonic one.
fn block(out: &mut String, compared: &Compared<'_>, lines: &[MetricLine<'_>], width: usize, better: Better) {
    let sign = if better == Better::Less { -1.0 } else { 1.0 };
    let mut head = format!("{:9} {:width$}", "", "");
    for group in compared.groups {
        // Writing to a string cannot fail.
        let _ = write!(head, "{:>CELL$}", group.name);
    }
    let _ = writeln!(out, "{head}");
    for (statistic, value) in STATISTICS {
        let (statistic, value): (&str, Statistic) = match (statistic, better) {
            ("Amean", Better::More) => ("Hmean", |sample| sample.harmonic_mean()),
            _ => (statistic, value),
        };
        for line in lines {
            let Some(base) = line.base() else { continue };
            let digits = if base.mean().abs() < 10.0 { 4 } else { 2 };
            let mut row = format!("{statistic:9} {:width$}", line.metric.key);
            for sample in &line.samples {
                let found = sample.as_ref().and_then(value);
                // A spread is better small, whatever is measured.
                let sign = if matches!(statistic, "Stddev" | "CoeffVar") { -1.0 } else { sign };
                let gain = found.zip(value(base)).and_then(|(new, base)| gain(new, base, sign));
                let stars = matches!(statistic, "Amean" | "Hmean") && sample.as_ref().is_some_and(Sample::is_marked);
                let shown = match (found, sample) {
                    (Some(found), _) => format!("{found:.digits$}"),
                    (None, Some(_)) => "1 run".to_owned(),
                    (None, None) => "-".to_owned(),
                };
                let _ = write!(row, "{shown:>12} {}", in_brackets(gain, stars));
            }
            let _ = writeln!(out, "{row}");
        }
    }
}

/// The gain in percent of the base; nothing where the base is zero and the other is not.
fn gain(new: f64, base: f64, sign: f64) -> Option<f64> {
    match base == 0.0 {
        true => (new == 0.0).then_some(0.0),
        false => Some(rounded(sign * 100.0 * (new - base) / base.abs(), 2)),
    }
}

fn in_brackets(gain: Option<f64>, stars: bool) -> String {
    let gain = gain.map_or_else(|| format!("{:>8}", "-"), |gain| format!("{gain:>7.2}%"));
    if stars { format!("*{gain}*") } else { format!("({gain})") }
}

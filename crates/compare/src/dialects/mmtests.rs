//! The form of mmtests: a line for each statistic of each metric, with the gain over the base; stars mark more than noise.

use super::{Compared, MetricLine, Sample};
use crate::Better;
use std::fmt::Write;
use timeline::text::{paragraph, rounded};

/// The columns of a group: a value and its gain.
const CELL: usize = 23;

/// The lines of numbers, at most: with the finding, the heads and the explanation the text has at most 80.
const MOST: usize = 48;

/// Computes a statistic of a sample; nothing where it has too few runs.
type Statistic = fn(&Sample<'_>) -> Option<f64>;

/// The statistics, each with its value for a sample. As in every form the medians are compared, which the test judges.
const STATISTICS: [(&str, Statistic); 2] =
    [("Median", |sample| Some(sample.median())), ("CoeffVar", |sample| sample.variation())];

/// The statistics of a metric; of one that is not judged the median alone.
fn statistics(better: Better) -> &'static [(&'static str, Statistic)] {
    match better {
        Better::Less | Better::More => &STATISTICS,
        Better::Neither => &STATISTICS[..1],
    }
}

pub(super) fn text(compared: &Compared<'_>) -> String {
    let (lines, left_out) = chosen(compared.lines());
    let width = lines.iter().map(|line| line.metric.key.len()).max().unwrap_or(0);
    let mut out = format!("{}\n", compared.test);
    for better in [Better::Less, Better::More, Better::Neither] {
        let lines: Vec<&MetricLine<'_>> = lines.iter().filter(|line| line.metric.better == better).collect();
        if lines.is_empty() {
            continue;
        }
        if better == Better::Neither {
            out.push_str("\nnot judged: a positive percentage is more\n");
        }
        block(&mut out, compared, &lines, width, better);
    }
    out.push('\n');
    if left_out > 0 {
        let metrics = sched::nouns::counted(left_out, "metric");
        paragraph(&mut out, 0, 2, &format!("({metrics} left out, the last ones that are not marked: --json has all)"));
    }
    paragraph(&mut out, 0, 2, &format!("{} These have * * around their gain.", compared.on_marks()));
    out
}

/// The metrics that have room, in their order, the marked ones before the others; and the number of the rest.
fn chosen(lines: Vec<MetricLine<'_>>) -> (Vec<MetricLine<'_>>, usize) {
    let mut order: Vec<usize> = (0..lines.len()).collect();
    order.sort_by_key(|at| !lines[*at].is_marked());
    let mut room = MOST;
    let mut has_room = vec![false; lines.len()];
    for at in order {
        let Some(rest) = room.checked_sub(statistics(lines[at].metric.better).len()) else { break };
        (room, has_room[at]) = (rest, true);
    }
    let all = lines.len();
    let chosen: Vec<MetricLine<'_>> =
        lines.into_iter().zip(has_room).filter_map(|(line, has_room)| has_room.then_some(line)).collect();
    let left_out = all - chosen.len();
    (chosen, left_out)
}

/// The lines of metrics that improve in the same direction.
fn block(out: &mut String, compared: &Compared<'_>, lines: &[&MetricLine<'_>], width: usize, better: Better) {
    let sign = if better == Better::Less { -1.0 } else { 1.0 };
    let mut head = format!("{:9} {:width$}", "", "");
    for group in compared.groups {
        // Writing to a string cannot fail.
        let _ = write!(head, "{:>CELL$}", group.name);
    }
    let _ = writeln!(out, "{head}");
    for (statistic, value) in statistics(better) {
        for line in lines {
            let Some(base) = line.base() else { continue };
            let digits = if base.median().abs() < 10.0 { 4 } else { 2 };
            let mut row = format!("{statistic:9} {:width$}", line.metric.key);
            for sample in &line.samples {
                let found = sample.as_ref().and_then(value);
                // A spread is better small, whatever is measured.
                let is_median = *statistic == "Median";
                let sign = if is_median { sign } else { -1.0 };
                let gain = found.zip(value(base)).and_then(|(new, base)| gain(new, base, sign));
                let stars = is_median && sample.as_ref().is_some_and(Sample::is_marked);
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

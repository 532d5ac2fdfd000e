//! The document of `--json`, its text and its figures.

use crate::header;
use crate::measures::Measured;
use crate::{Group, Limit, Metric, Row};
use sched::Verdict;
use serde::Serialize;
use session::args::repeatable;
use std::fmt::Write;
use timeline::Sheet;
use timeline::page::Texts;

/// The document of `--json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct CompareDocument {
    /// The name and version of the schema, `schedviz/compare/2`.
    pub(crate) schema: &'static str,
    /// The probability that noise may pass for a change.
    pub(crate) alpha: f64,
    /// Facts about the machines that the groups were recorded on; absent without machine files beside the runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) machine: Vec<header::Fact>,
    /// The metrics, in the order of the values of a run.
    pub(crate) metrics: Vec<Metric>,
    /// The groups, the first of which is the base.
    pub(crate) groups: Vec<Group>,
    /// The comparison of each further group with the first.
    pub(crate) comparisons: Vec<Comparison>,
    /// Differences between the runs that should not exist, and values that runs lack.
    pub(crate) notes: Vec<String>,
    /// The verdict on each limit and group; absent without a limit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) verdicts: Vec<Judged>,
}

/// The verdict on a metric of a group.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Judged {
    /// The name of the judged group.
    pub(crate) group: String,
    /// The key of the metric.
    pub(crate) metric: &'static str,
    #[serde(flatten)]
    pub(crate) verdict: Verdict,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Comparison {
    /// The name of the first group.
    pub(crate) base: String,
    /// The name of the other group.
    pub(crate) new: String,
    /// The metrics that both groups have.
    pub(crate) rows: Vec<Row>,
    /// 100 * (base / new - 1) of the median elapsed times; null if one is unknown.
    pub(crate) speedup_percent: Option<f64>,
}

impl Judged {
    /// Judges a limit by the comparison of a group with the base.
    pub(crate) fn of(limit: &Limit, comparison: &Comparison, alpha: f64) -> Judged {
        let verdict = crate::judge(limit, &comparison.rows, alpha);
        Judged { group: comparison.new.clone(), metric: limit.metric, verdict }
    }
}

impl Comparison {
    /// Compares a group with the base.
    pub(crate) fn of(metrics: &[Metric], base: &Group, new: &Group, alpha: f64) -> Comparison {
        let rows = crate::compare(metrics, base, new, alpha);
        let elapsed = rows.iter().find(|row| row.metric.key == "elapsed");
        let speedup_percent = elapsed.and_then(|row| schedstat::speedup(row.base.median, row.new.median));
        Comparison { base: base.name.clone(), new: new.name.clone(), rows, speedup_percent }
    }
}

impl CompareDocument {
    /// Returns the text for people; with `markdown` the tables are those of Markdown.
    pub(crate) fn text(&self, markdown: bool) -> String {
        let mut out = String::new();
        let names: Vec<&str> = self.groups.iter().map(|group| group.name.as_str()).collect();
        if !self.machine.is_empty() {
            out +=
                &if markdown { header::markdown(&self.machine, &names) } else { header::text(&self.machine, &names) };
            out.push('\n');
        }
        // Writing to a string cannot fail.
        for note in &self.notes {
            timeline::text::paragraph(&mut out, 0, 2, &format!("note: {note}"));
        }
        for c in &self.comparisons {
            let runs = |name: &str| match self.groups.iter().find(|g| g.name == name).map_or(0, |g| g.runs.len()) {
                1 => "1 run".to_owned(),
                n => format!("{n} runs"),
            };
            let _ = writeln!(out, "{} ({}) against {} ({})\n", c.new, runs(&c.new), c.base, runs(&c.base));
            out += &if markdown {
                crate::markdown(&c.rows, &c.base, &c.new)
            } else {
                crate::text(&c.rows, &c.base, &c.new)
            };
            if let Some(speedup) = c.speedup_percent {
                let _ = writeln!(out, "\n%speedup {speedup:.1} (100 * (base / new - 1), of the median elapsed times)");
            }
            if c.rows.iter().any(|row| row.finding == crate::Finding::TooFew) {
                let _ = writeln!(out, "Fewer than three runs on a side cannot show noise;\nrecord each five times.");
            } else {
                let _ = writeln!(
                    out,
                    "\n\u{b1}: half the range of the runs, in percent of their median. range:\n\
                     changes in percent that a permutation test of the medians does not\n\
                     refuse; p: its p. Marked where p <= {}: so often noise alone does that.",
                    self.alpha
                );
            }
            // The Markdown table has a column for it.
            if let Some(noise) = crate::noise(&c.rows).filter(|_| !markdown) {
                let share = 100.0 * (1.0 - self.alpha);
                timeline::text::paragraph(
                    &mut out,
                    0,
                    2,
                    &format!(
                        "A/A: the medians of two halves of {}'s runs differ by at most this in {share} % of all divisions into \
                         halves: {noise}",
                        c.base
                    ),
                );
            }
            for (base, new) in hopeless(&c.rows, self.alpha) {
                let _ = writeln!(
                    out,
                    "{new} runs against {base} are too few: their least p is {:.3}, so no change is marked at\n\
                     p <= {}; record each five times.",
                    crate::least_p(base, new),
                    self.alpha
                );
            }
            out.push('\n');
        }
        out
    }

    /// Draws the metrics of all runs, and the violation by elapsed time.
    pub(crate) fn figures(&self, all: &[(String, Vec<Measured>)], sheet: &Sheet) -> Vec<draw::Figure> {
        let command = repeatable(std::env::args_os());
        let names: Vec<&str> = self.groups.iter().map(|group| group.name.as_str()).collect();
        let texts = Texts {
            title: "Runs compared".into(),
            notes: std::iter::once(
                "Each run is a point; a scale begins at the least and ends at the greatest value of all runs."
                    .to_owned(),
            )
            .chain(header::notes(&self.machine, &names))
            .collect(),
            warnings: self.notes.iter().take(4).cloned().collect(),
            command: command.clone(),
            sheet: sheet.clone(),
        };
        let runs: Vec<workcons::Runs> = all
            .iter()
            .map(|(name, runs)| workcons::Runs {
                name: name.clone(),
                runs: runs.iter().filter_map(Measured::point).collect(),
            })
            .collect();
        let left_out = self.notes.iter().filter(|note| note.ends_with(workcons::NO_ELAPSED)).cloned();
        let by_time = workcons::figure(
            "Elapsed time and work conservation",
            ["A bar at the right edge is a group's median.".into()].into_iter().chain(left_out).collect(),
            &runs,
            &command,
            sheet,
        );
        let comparisons: Vec<&[Row]> = self.comparisons.iter().map(|comparison| comparison.rows.as_slice()).collect();
        vec![crate::figure(&self.metrics, &self.groups, &comparisons, &texts), by_time]
    }
}

/// The numbers of runs, base and new, that are too few to separate any change from noise.
fn hopeless(rows: &[Row], alpha: f64) -> Vec<(usize, usize)> {
    let too_few = rows.iter().filter(|row| row.is_hopeless(alpha)).map(|row| (row.base.runs, row.new.runs));
    let found: std::collections::BTreeSet<(usize, usize)> = too_few.collect();
    found.into_iter().collect()
}

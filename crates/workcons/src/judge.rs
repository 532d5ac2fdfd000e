//! The verdict, for regression jobs.

use crate::Report;
use serde::Serialize;

/// What is demanded of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// The most violation, in percent of the time.
    pub violation: Option<f64>,
    /// The most CPU time of which nothing is known, in percent, and the most events missing without a mark.
    pub loss: f64,
}

/// What a run is found to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Judge {
    /// Within the limits: exit 0.
    Pass,
    /// Too little is known to tell: exit 3.
    Untrusted,
    /// Beyond them, with certainty: exit 2.
    Fail,
}

/// A verdict and its reason.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// The verdict.
    pub verdict: Judge,
    /// The trace that decided.
    pub trace: String,
    /// Why, in a line.
    pub reason: String,
}

impl Verdict {
    /// Judges a run. Where it was not recorded who waits, nothing can be said. A certain figure beyond the limit
    /// fails whatever was lost; otherwise too much loss, or a possible figure beyond the limit, means that nothing can
    /// be said either.
    pub fn of(trace: &str, report: &Report, limits: &Limits) -> Option<Verdict> {
        let limit = limits.violation?;
        let Some(violation) = &report.violation else {
            let reason = report.selection_unknown.clone().unwrap_or_else(|| "the violation is unknown".into());
            return Some(Verdict { verdict: Judge::Untrusted, trace: trace.to_owned(), reason });
        };
        // Where something was lost, the definition's own figures are no bounds: a wakeup that is
        // missing lets a task wait unseen on a CPU that lost nothing.
        let (certain, possible) = match violation.bounds {
            Some(bounds) => (bounds.least_percent.min(violation.percent), bounds.most_percent),
            None => (violation.percent, violation.possible_percent),
        };
        let lost = report.unknown.unknown_percent;
        let (verdict, reason) = if let Some(why) = report.unknown.why_untrusted(limits.loss) {
            (Judge::Untrusted, why)
        } else if certain > limit {
            (Judge::Fail, format!("violated {certain:.3} % of the time, more than {limit} %"))
        } else if lost > limits.loss {
            (Judge::Untrusted, format!("nothing is known of {lost:.3} % of the CPU time, more than {} %", limits.loss))
        } else if lost > 0.0 && possible > limit {
            (
                Judge::Untrusted,
                format!(
                    "violated at least {certain:.3} % and possibly {possible:.3} % of the time; the limit of {limit} % is between"
                ),
            )
        } else {
            (Judge::Pass, format!("violated {certain:.3} % of the time, at most {limit} %"))
        };
        Some(Verdict { verdict, trace: trace.to_owned(), reason })
    }

    /// The verdict on several runs: the worst.
    pub fn worst(verdicts: Vec<Verdict>) -> Option<Verdict> {
        verdicts.into_iter().reduce(|a, b| if b.verdict > a.verdict { b } else { a })
    }
}

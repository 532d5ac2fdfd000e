//! The verdict, for regression jobs.

use crate::Report;
use sched::{Judgement, Verdict};

/// The limits for a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// The maximum violation, in percent of the time; `None` if the run is not judged.
    pub violation: Option<f64>,
    /// The maximum CPU time that may be unknown, and the maximum number of events that may be missing without a mark,
    /// each in percent.
    pub loss: f64,
}

/// Judges a run; `None` without a limit for the violation. A certain violation beyond the limit fails, whatever was lost.
/// Otherwise a run is untrusted if its violation is unknown, if too much was lost, or if a possible violation is beyond
/// the limit.
pub fn judge(report: &Report, limits: &Limits) -> Option<Verdict> {
    let limit = limits.violation?;
    let Some(violation) = &report.violation else {
        let reason = report.selection_unknown.clone().unwrap_or_else(|| "the violation is unknown".into());
        return Some(Verdict::new(Judgement::Untrusted, reason));
    };
    // After losses the definition's own figures are no bounds: a task whose wakeup is missing waits unseen, also on a
    // CPU that lost nothing.
    let (certain, possible) = match violation.bounds {
        Some(bounds) => (bounds.least_percent.min(violation.percent), bounds.most_percent),
        None => (violation.percent, violation.possible_percent),
    };
    let lost = report.unknown.unknown_percent;
    let (verdict, reason) = if let Some(why) = report.unknown.why_untrusted(limits.loss) {
        (Judgement::Untrusted, why)
    } else if certain > limit {
        (Judgement::Fail, format!("violated {certain:.3} % of the time, more than {limit} %"))
    } else if lost > limits.loss {
        (Judgement::Untrusted, format!("nothing is known of {lost:.3} % of the CPU time, more than {} %", limits.loss))
    } else if lost > 0.0 && possible > limit {
        let range = format!("violated at least {certain:.3} % and possibly {possible:.3} % of the time");
        (Judgement::Untrusted, format!("{range}; the limit of {limit} % is between"))
    } else {
        (Judgement::Pass, format!("violated {certain:.3} % of the time, at most {limit} %"))
    };
    Some(Verdict::new(verdict, reason))
}

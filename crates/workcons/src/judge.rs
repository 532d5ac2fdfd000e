//! The verdict, for regression jobs.

use crate::{ByLength, Report};
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

/// The least and the greatest violation by which rounded times leave it open, in percent of the window; nothing where times are exact. The order
/// of events is known: each episode can be shorter or longer by the error of a length, and so reach the least length or not.
#[must_use]
pub fn bounds_of_rounding(report: &Report) -> Option<(f64, f64)> {
    let (error, wanted) = (report.unknown.rounded_ns, report.min_episode_ns.0);
    let rows = report.by_min_episode.as_ref().filter(|_| error > 0)?;
    let window = report.window_ns.0.saturating_sub(error).max(1) as f64;
    let slack = |row: &ByLength| row.totals.episodes.saturating_add(1).saturating_mul(error) as f64 * 100.0 / window;
    let is_reached =
        |row: &&ByLength| row.totals.min_ns.0 >= if wanted == 0 { 0 } else { wanted.saturating_add(error) };
    let is_within = |row: &&ByLength| row.totals.min_ns.0 == 0 || row.totals.min_ns.0.saturating_add(error) <= wanted;
    let least = rows.iter().filter(is_reached).map(|row| row.percent - slack(row)).fold(0.0, f64::max);
    let most = rows.iter().filter(is_within).map(|row| row.percent + slack(row)).fold(100.0, f64::min);
    Some((least, most))
}

/// Judges a run; `None` without a limit for the violation. A certain violation beyond the limit fails, whatever was lost.
/// Otherwise a run is untrusted if its violation is unknown, if too much was lost, or if a possible violation, by what was lost or by rounded
/// times, is beyond the limit.
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
    let rounded = bounds_of_rounding(report);
    let (least, most) = rounded.unwrap_or((violation.percent, violation.percent));
    let certain = (certain - (violation.percent - least).max(0.0)).max(0.0);
    let possible = (possible + (most - violation.percent).max(0.0)).min(100.0);
    let lost = report.unknown.unknown_percent;
    let (verdict, reason) = if let Some(why) = report.unknown.why_untrusted(limits.loss) {
        (Judgement::Untrusted, why)
    } else if certain > limit {
        (Judgement::Fail, format!("violated {certain:.3} % of the time, more than {limit} %"))
    } else if lost > limits.loss {
        (Judgement::Untrusted, format!("nothing is known of {lost:.3} % of the CPU time, more than {} %", limits.loss))
    } else if (lost > 0.0 || rounded.is_some()) && possible > limit {
        let by = if rounded.is_some() { ", by times that are rounded to microseconds" } else { "" };
        let range = format!("violated at least {certain:.3} % and possibly {possible:.3} % of the time{by}");
        (Judgement::Untrusted, format!("{range}; the limit of {limit} % is between"))
    } else {
        (Judgement::Pass, format!("violated {certain:.3} % of the time, at most {limit} %"))
    };
    Some(Verdict::new(verdict, reason))
}

//! Traces whose run queues no model can have.

use sched::{Diagnostics, EventIssue};
use session::Session;

/// The reason why a trace has no forecast, whatever its model comes to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unfit {
    /// A sched_ext scheduler was loaded.
    SchedExt,
    /// So many of the switches, in percent, leave another task than the one known to run.
    Contradictory(f64),
}

/// The greatest share of contradictory switches, in percent, with which there is a forecast.
pub const MOST_CONTRADICTORY: f64 = 10.0;

impl Unfit {
    /// Returns the reason in this trace, of which the window has so many switches.
    pub fn of(session: &Session, diagnostics: &Diagnostics, switches: u64) -> Option<Unfit> {
        let contradictory = diagnostics.count(EventIssue::SwitchPrevMismatch);
        let percent = 100.0 * contradictory as f64 / switches.max(1) as f64;
        match session.sched_ext {
            _ if percent > MOST_CONTRADICTORY => Some(Unfit::Contradictory(percent)),
            Some(_) => Some(Unfit::SchedExt),
            None => None,
        }
    }

    /// Returns the reason in words, a clause.
    pub fn reason(self) -> String {
        match self {
            Unfit::SchedExt => {
                "a sched_ext scheduler was loaded: its queues are in no event, and the policies here are those of other queues".to_owned()
            }
            Unfit::Contradictory(percent) => format!(
                "{percent:.0} % of the switches leave another task than the one known to run, more than {MOST_CONTRADICTORY} %: which task ran when \
                 is not known"
            ),
        }
    }

    /// Returns what to record instead, a clause.
    pub fn advice(self) -> String {
        match self {
            Unfit::SchedExt => "record without the sched_ext scheduler".to_owned(),
            Unfit::Contradictory(_) => {
                "record every switch of all CPUs: without a filter (trace-cmd record -f, -F, -P) and without losses"
                    .to_owned()
            }
        }
    }
}

//! The doubts about a trace that its analyses do not show.

use parse::FileIssue;
use sched::{Diagnostics, EventIssue, Severity, Tracepoint};
use session::{Session, warnings};

/// The doubts about a trace, besides those in the reports of the analyses.
#[derive(Clone, Debug)]
pub struct Doubts {
    /// The number of places where events were lost.
    pub gaps: u64,
    /// Events that the recorder counted but that are missing without a mark, in percent of all it counted.
    pub unwritten_percent: f64,
    /// The number of CPUs whose clock is not in step with that of the others.
    pub clocks_apart: u64,
    /// The number of CPUs of the machine without any event.
    pub silent_cpus: usize,
    /// Whether some event of a wakeup was recorded. Otherwise nothing is known of waiting tasks.
    pub has_wakeups: bool,
    /// Whether the tasks of one command alone were recorded.
    pub is_of_some_tasks: bool,
    /// Whether data of any kind were lost.
    pub has_losses: bool,
    /// The most by which a length can be wrong since the times are rounded, in nanoseconds; zero where they are exact.
    pub rounded_ns: u64,
    /// Whether a sched_ext scheduler was loaded, whose queues no event shows.
    pub has_sched_ext: bool,
    /// Whether tasks of a cgroup of another weight than the default ran: the weights by which queues are compared leave those of cgroups out.
    pub has_group_weights: bool,
    /// The CPUs outside of load balancing, by the machine file.
    pub isolated: Option<String>,
    /// The application in words, where it is not the traced command with what descends from it.
    pub application: Option<String>,
}

impl Default for Doubts {
    /// No doubt at all.
    fn default() -> Doubts {
        Doubts {
            gaps: 0,
            unwritten_percent: 0.0,
            clocks_apart: 0,
            silent_cpus: 0,
            has_wakeups: true,
            is_of_some_tasks: false,
            has_losses: false,
            rounded_ns: 0,
            has_sched_ext: false,
            has_group_weights: false,
            isolated: None,
            application: None,
        }
    }
}

impl Doubts {
    /// The doubts about a trace, with those that a pass found.
    pub fn of(session: &Session, found: &Diagnostics) -> Doubts {
        Doubts {
            gaps: found.count(EventIssue::EventsLost),
            unwritten_percent: warnings::unwritten_percent(&session.trace, found),
            clocks_apart: found.count(FileIssue::ClocksApart),
            silent_cpus: session.silent().len(),
            has_wakeups: [Tracepoint::Waking, Tracepoint::Wakeup].iter().any(|event| session.trace.has(*event)),
            is_of_some_tasks: found.count(FileIssue::SomeTasks) > 0,
            has_losses: found.iter().any(|(what, ..)| what.severity() == Severity::DataLoss),
            rounded_ns: session.trace.rounding().map_or(0, |error| error.0),
            has_sched_ext: session.sched_ext.is_some(),
            has_group_weights: session.has_weighted_cgroups(),
            isolated: session.machine.as_ref().and_then(|machine| Some(machine.cpus.isolated.as_deref()?.to_owned())),
            application: session.application.clone(),
        }
    }
}

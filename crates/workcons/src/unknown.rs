//! The unknown parts of a trace, as far as the analysis shows them.

use parse::{FileIssue, Trace};
use sched::{Analysis, ChosenCpus, Cpu, CpuSpan, Current, Diagnostics, EventIssue, Joined, SchedState, Tracepoint, Ts};
use serde::Serialize;
use session::{Session, warnings};

/// The percentage of events missing without a mark above which a report doubts its headline, if it has no limit of its
/// own.
const DOUBTFUL_PERCENT: f64 = 1.0;

/// The evidence of the analysis on how far the figures can be trusted.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unknown {
    /// CPU time of which nothing is known, in percent of all.
    pub unknown_percent: f64,
    /// The gaps of each CPU that has any.
    pub gaps: Vec<Gaps>,
    /// Kinds of events that were not recorded, though they must have happened.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing_events: Vec<&'static str>,
    /// The number of times that a task was queued on a CPU that was not recorded: others were woken there, or left for
    /// there, unseen.
    #[serde(skip_serializing_if = "is_none")]
    pub unseen_queues: u64,
    /// The number of switches away from another task than the one known to run. Among 131 recordings of whole machines,
    /// lossy ones included, none has any: others are filtered.
    #[serde(skip_serializing_if = "is_none")]
    pub unseen_switches: u64,
    /// Number of CPUs whose clock is not in step with that of the others.
    #[serde(skip_serializing_if = "is_none")]
    pub clocks_apart: u64,
    /// Events that the recorder counted but that are missing without a mark, in percent of all it counted.
    #[serde(skip_serializing_if = "is_nothing")]
    pub unwritten_percent: f64,
    /// The most by which a length can be wrong since the times are rounded, in nanoseconds; absent where they are exact.
    #[serde(skip_serializing_if = "is_none")]
    pub rounded_ns: u64,
}

fn is_none(count: &u64) -> bool {
    *count == 0
}

fn is_nothing(share: &f64) -> bool {
    *share == 0.0
}

impl Unknown {
    /// Returns the unknown parts at the end of a window, of whose CPU time this share is unknown.
    pub(crate) fn at_end(unknown_percent: f64, state: &SchedState) -> Unknown {
        Unknown {
            unknown_percent,
            gaps: state.gaps().into_iter().map(|(cpu, gaps, ns)| Gaps { cpu, gaps, ns }).collect(),
            missing_events: state.missing(),
            unseen_queues: state.repaired(EventIssue::UnseenQueue),
            unseen_switches: state.repaired(EventIssue::SwitchPrevMismatch),
            clocks_apart: 0,
            unwritten_percent: 0.0,
            rounded_ns: 0,
        }
    }

    /// Adds what the file shows: the events that were not written, and the clocks that are not in step.
    pub fn add_file(&mut self, session: &Session, diagnostics: &Diagnostics) {
        self.add_trace(&session.trace, diagnostics);
    }

    /// Adds what the trace shows beyond the window: the events that were not written, and the clocks that are not in step.
    pub fn add_trace(&mut self, trace: &Trace, diagnostics: &Diagnostics) {
        self.unwritten_percent = warnings::unwritten_percent(trace, diagnostics);
        self.clocks_apart = diagnostics.count(FileIssue::ClocksApart);
        self.rounded_ns = trace.rounding().map_or(0, |error| error.0);
    }

    /// The reason that a violation is not to be trusted, as the report of `workcons` has it beside its headline; nothing
    /// where it is to be.
    pub fn doubt(&self) -> Option<String> {
        self.why_untrusted(DOUBTFUL_PERCENT)
    }

    /// The reason that the violation of a run cannot be compared with that of others, and is in no median: the waiting tasks are unknown,
    /// or more than `most` percent of the CPU time is.
    pub fn why_left_out(&self, most: f64) -> Option<String> {
        let lost = self.unknown_percent;
        let too_much = || format!("nothing is known of {lost:.2} % of its CPU time (--max-loss {most})");
        self.why_untrusted(most).or_else(|| (lost > most).then(too_much))
    }

    /// The reason that the waiting tasks are unknown, though no time is unknown: a kind of event was not recorded, or a CPU, or
    /// only what a filter let pass, or clocks are not in step, or more than `most` percent of the events are missing without a mark.
    pub fn why_untrusted(&self, most: f64) -> Option<String> {
        let missing = self.missing_events.iter().find(|name| **name != Tracepoint::Waking.name());
        let what = match missing {
            Some(name) => format!("{name} was not recorded"),
            None if self.unseen_queues > 0 => "tasks were queued on CPUs that were not recorded".to_owned(),
            None if self.unseen_switches > 0 => "switches were not recorded, by a filter perhaps".to_owned(),
            None if self.clocks_apart > 0 => "the clocks of some CPUs are not in step".to_owned(),
            None if self.unwritten_percent > most => {
                format!("{:.2} % of the events are missing without a mark", self.unwritten_percent)
            }
            None => return None,
        };
        Some(format!("{what}: the waiting tasks are unknown"))
    }
}

/// The analysis that finds the unknown parts of a window, where [`WorkConservation`](crate::WorkConservation) does not follow it: an [`Analysis`]
/// whose output is an [`Unknown`].
#[derive(Debug)]
pub struct UnknownParts {
    cpus: ChosenCpus,
    start: Ts,
    /// The time of which nothing is known, in nanoseconds of CPUs.
    unknown_ns: u64,
}

impl UnknownParts {
    /// Returns the analysis of these CPUs.
    pub fn of(cpus: ChosenCpus) -> UnknownParts {
        UnknownParts { cpus, start: Ts(0), unknown_ns: 0 }
    }
}

impl Analysis for UnknownParts {
    type Output = Unknown;

    fn begin(&mut self, start: Ts, _: &SchedState) {
        self.start = start;
    }

    fn cpu_span(&mut self, span: &CpuSpan, _: &SchedState) {
        if span.current == Current::Unknown && self.cpus.has(span.cpu) {
            self.unknown_ns = self.unknown_ns.saturating_add(span.duration().0);
        }
    }

    fn finish(self, end: Ts, state: &SchedState) -> Unknown {
        let cpus = state.observed().filter(|cpu| self.cpus.has(*cpu)).count() as u64;
        let cpu_time = end.since(self.start).0.saturating_mul(cpus);
        let percent = if cpu_time == 0 { 0.0 } else { 100.0 * self.unknown_ns as f64 / cpu_time as f64 };
        Unknown::at_end(percent, state)
    }
}

impl Joined for UnknownParts {
    fn is_divisible(&self) -> bool {
        true
    }

    fn fits(&self, _: &UnknownParts) -> bool {
        true
    }

    fn join(&mut self, later: UnknownParts) {
        self.unknown_ns = self.unknown_ns.saturating_add(later.unknown_ns);
    }
}

/// The gaps of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Gaps {
    /// The CPU with the gaps.
    pub cpu: Cpu,
    /// The number of gaps.
    pub gaps: u64,
    /// The total length of the gaps, in nanoseconds.
    pub ns: u64,
}

//! The unknown parts of a trace, as far as the analysis shows them.

use sched::{Cpu, Tracepoint};
use serde::Serialize;

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
}

fn is_none(count: &u64) -> bool {
    *count == 0
}

fn is_nothing(share: &f64) -> bool {
    *share == 0.0
}

impl Unknown {
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

//! The report.

use sched::{Cpu, OfSelection, Ts};
use serde::Serialize;
use std::collections::BTreeMap;

/// The name and version of the document.
pub(crate) const SCHEMA: &str = "schedviz/sample/1";

// todo(sample): the numbers, as the page of the question has them.
/// The switches of a window.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SampleReport {
    /// The name and version of the schema, `schedviz/sample/1`.
    pub schema: &'static str,
    /// The start of the window on the trace's clock, in nanoseconds.
    pub from_ns: Ts,
    /// The end of the window on the trace's clock, in nanoseconds.
    pub to_ns: Ts,
    /// The number of switches to tasks; absent where the selected tasks are unknown.
    pub switches: Option<u64>,
    /// The CPUs with switches.
    pub cpus: Vec<SampleRow>,
    /// The reason why there are no figures of the selected tasks; absent where there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selection_unknown: Option<String>,
}

/// The switches of a CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SampleRow {
    /// The CPU that switched to tasks.
    pub cpu: Cpu,
    /// The number of switches to tasks.
    pub switches: u64,
}

impl OfSelection for SampleReport {
    fn withhold(&mut self, why: String) {
        (self.switches, self.cpus, self.selection_unknown) = (None, Vec::new(), Some(why));
    }
}

/// Makes the report on a window from one instant to another.
pub(crate) fn build(from_ns: Ts, to_ns: Ts, switches: &BTreeMap<Cpu, u64>) -> SampleReport {
    let cpus = switches.iter().map(|(cpu, switches)| SampleRow { cpu: *cpu, switches: *switches }).collect();
    let all = switches.values().sum();
    SampleReport { schema: SCHEMA, from_ns, to_ns, switches: Some(all), cpus, selection_unknown: None }
}

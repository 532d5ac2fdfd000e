//! The document of `schedviz whatif --json`.

use crate::report::Prediction;
use crate::runs::WhatifGroup;
use crate::skill::Skill;
use crate::without::CauseCurve;
use sched::event::CleanText;
use sched::{Diagnostics, Ts};
use serde::Serialize;
use session::ext::ExtScheduler;
use session::warnings;

/// The name and version of the document's schema.
pub(crate) const SCHEMA: &str = "schedviz/whatif/1";

/// The document of `--json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct WhatifDocument {
    /// The name and version of the schema, `schedviz/whatif/1`.
    pub(crate) schema: &'static str,
    /// The runs that were predicted from, in the given order.
    pub(crate) runs: Vec<WhatifRun>,
    /// The medians, spread and coverage of the predictions from the runs of each group; absent for a single run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) groups: Vec<WhatifGroup>,
    /// The predictions beside the measured runs; absent without such runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) skill: Vec<Skill>,
}

/// A run that was predicted from.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct WhatifRun {
    /// The name of the trace, with folders if needed to distinguish it.
    pub(crate) trace: String,
    /// The group of the run; absent without groups.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) group: Option<String>,
    /// The kernel's release; null if the trace does not have it.
    pub(crate) kernel: Option<CleanText>,
    /// The sched_ext scheduler that was loaded; absent if none was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sched_ext: Option<ExtScheduler>,
    /// The start of the window on the trace's clock, in nanoseconds.
    pub(crate) from_ns: Ts,
    /// The end of the window on the trace's clock, in nanoseconds.
    pub(crate) to_ns: Ts,
    #[serde(flatten)]
    pub(crate) prediction: Prediction,
    /// Whether the cost of a migration within a node, and of one between nodes, was measured in this trace.
    pub(crate) measured_costs: [bool; 2],
    /// The elapsed time without a part of the waiting of each origin; absent unless asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) without: Vec<CauseCurve>,
    /// The losses, repairs and doubts of the trace.
    #[serde(serialize_with = "warnings::rows")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<warnings::Row<'static>>"))]
    pub(crate) trust: Diagnostics,
    /// The number of NUMA nodes, as far as the topology has them.
    #[serde(skip)]
    pub(crate) nodes: usize,
    /// The first and last instant of the recording, which no other recording shares, under whatever name.
    #[serde(skip)]
    pub(crate) recording: Option<(Ts, Ts)>,
}

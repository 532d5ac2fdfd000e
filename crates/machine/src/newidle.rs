//! The costs of new-idle balancing of each CPU, by which the kernel decides whether it is worth while.

use crate::Root;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The costs of new-idle balancing of a CPU at one moment (`max_newidle_lb_cost` of its scheduling domains).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NewIdleCost {
    /// The cost of the smallest domain, in nanoseconds.
    pub lowest_ns: u64,
    /// The sum of the costs of all domains, in nanoseconds.
    pub sum_ns: u64,
}

/// The costs of new-idle balancing around a recording, by the number of the CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NewIdleCosts {
    /// The costs at the start of the recording, by the number of the CPU.
    pub start: BTreeMap<u32, NewIdleCost>,
    /// The costs at the end of the recording, by the number of the CPU; empty if they were not taken.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub end: BTreeMap<u32, NewIdleCost>,
}

impl NewIdleCosts {
    /// Reads the costs at the start of a recording; nothing where the kernel does not show them.
    pub(crate) fn read(root: &Root) -> Option<NewIdleCosts> {
        let start = costs(root);
        (!start.is_empty()).then(|| NewIdleCosts { start, end: BTreeMap::new() })
    }
}

/// Reads the costs of all CPUs, by the number of the CPU; those of a CPU without domains are missing.
pub(crate) fn costs(root: &Root) -> BTreeMap<u32, NewIdleCost> {
    let folder = "sys/kernel/debug/sched/domains";
    let cost = |cpu: u32| {
        let of = |level: u32| root.text(format!("{folder}/cpu{cpu}/domain{level}/max_newidle_lb_cost"))?.parse().ok();
        let costs: Option<Vec<u64>> =
            root.numbered(format!("{folder}/cpu{cpu}"), "domain").into_iter().map(of).collect();
        let costs = costs?;
        let sum_ns = costs.iter().fold(0_u64, |sum, cost| sum.saturating_add(*cost));
        Some((cpu, NewIdleCost { lowest_ns: *costs.first()?, sum_ns }))
    };
    root.numbered(folder, "cpu").into_iter().filter_map(cost).collect()
}

//! Where a woken task is queued: how far from where it slept, and beside which idle CPUs.

use sched::topology::Distance;
use sched::{Cpu, Topology};
use serde::Serialize;

/// The placement of a woken task, seen from the CPU where it slept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// The task was placed on the CPU where it last ran.
    Previous,
    /// The task was placed on another hardware thread of its core.
    Core,
    /// The task was placed in the same cluster: on a CPU of another core that shares a cache below the last level.
    Cluster,
    /// The task was placed on a CPU with the same last-level cache.
    Llc,
    /// Elsewhere in the node.
    Node,
    /// The task was placed in another node; where the topology is not known, on any other CPU.
    Elsewhere,
    /// The CPU where the task had slept is not known.
    Unknown,
}

impl Placement {
    /// Every placement, in the order of their indices.
    pub const ALL: [Placement; 7] = [
        Placement::Previous,
        Placement::Core,
        Placement::Cluster,
        Placement::Llc,
        Placement::Node,
        Placement::Elsewhere,
        Placement::Unknown,
    ];

    pub(crate) fn of(from: Option<Cpu>, to: Cpu, topology: &Topology) -> Placement {
        match from {
            None => Placement::Unknown,
            Some(from) if from == to => Placement::Previous,
            Some(from) => match topology.distance(from, to) {
                Some(Distance::Smt) => Placement::Core,
                Some(Distance::Cluster) => Placement::Cluster,
                Some(Distance::Llc) => Placement::Llc,
                Some(Distance::Node) => Placement::Node,
                Some(Distance::Machine) | None => Placement::Elsewhere,
            },
        }
    }
}

/// The idle CPUs when a woken task was queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Idleness {
    /// The CPU it was queued on.
    Target,
    /// The target CPU was busy, and another CPU was idle.
    Other,
    /// No CPU was idle.
    Nobody,
}

impl Idleness {
    /// Every case, in the order of their indices.
    pub const ALL: [Idleness; 3] = [Idleness::Target, Idleness::Other, Idleness::Nobody];
}

//! Where a woken task is queued: how far from where it slept, and beside which idle CPUs.

use sched::topology::Distance;
use sched::{Cpu, Topology};
use serde::Serialize;

/// Where a woken task was placed, seen from where it slept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// On the CPU where it last ran.
    Previous,
    /// On another hardware thread of its core.
    Core,
    /// On a CPU with the same last-level cache.
    Llc,
    /// Elsewhere in the node.
    Node,
    /// In another node; where the topology is not known, on any other CPU.
    Elsewhere,
    /// Where it had slept is not known.
    Unknown,
}

impl Placement {
    /// All, in the order of their indices.
    pub const ALL: [Placement; 6] = [
        Placement::Previous,
        Placement::Core,
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
    /// Not that one, but another.
    Other,
    /// None.
    Nobody,
}

impl Idleness {
    /// All, in the order of their indices.
    pub const ALL: [Idleness; 3] = [Idleness::Target, Idleness::Other, Idleness::Nobody];
}

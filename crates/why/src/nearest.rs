//! How far the nearest CPU of a set is.

use serde::Serialize;

/// The nearest CPU of a set, seen from another CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Nearest {
    /// The CPU itself.
    Itself,
    /// A hardware thread of the same core.
    Core,
    /// A CPU of the same cluster: a cache of several cores below the last level.
    Cluster,
    /// A CPU with the same last-level cache.
    Llc,
    /// A CPU of the same node.
    Node,
    /// A CPU of another node.
    Beyond,
    /// Some CPU, at a distance that the topology does not give.
    Somewhere,
    /// No CPU is in the set.
    Nowhere,
}

impl Nearest {
    /// The place of a task that waits that far, as the end of a sentence.
    pub fn place(self) -> &'static str {
        match self {
            Nearest::Itself | Nearest::Nowhere => "none",
            Nearest::Core => "on the same core",
            Nearest::Cluster => "in the same cluster",
            Nearest::Llc => "in the same LLC",
            Nearest::Node => "on the same node",
            Nearest::Beyond => "beyond",
            Nearest::Somewhere => "on another CPU",
        }
    }
}

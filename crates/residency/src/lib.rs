//! The last-level caches and the cores on which tasks run, and the moves between them.
//!
//! In go a trace and its topology, out come the run time of each group under each cache, its moves between caches, and its time
//! beside busy siblings. A *group* is a task, a process or a command. Its *home* is the last-level cache (LLC) under which it ran
//! longest, and its *residency* the share of its run time there. Begin reading in `analysis.rs`.
//!
//! ```
//! use residency::{GroupedBy, Options, Residency};
//! use sched::topology::CpuLocation;
//! use sched::{Cpu, Pass, Topology, Ts};
//!
//! // Two CPUs with a cache each; a task waits on CPU 0 for 200 ns while CPU 1 idles.
//! let mut topology = Topology::default();
//! (0..2).for_each(|cpu| topology.set(Cpu(cpu), CpuLocation { llc: Some(cpu), ..CpuLocation::default() }));
//! let events = testkit::a_wait_beside_an_idle_cpu();
//! let options = Options { topology, ..Options::new(GroupedBy::Command, Ts(100), Ts(600)) };
//! let outcome = Pass::over(events.as_slice()).run(|| Residency::new(&options)).unwrap_or_else(|never| match never {});
//! let make = &outcome.output.groups[0];
//! assert_eq!((make.name.as_str(), make.run_ns.0, make.residency_percent), ("make", 300, Some(100.0)));
//! ```

mod analysis;
mod args;
mod cores;
mod crowded;
mod figure;
mod groups;
mod noted;
mod question;
mod report;
mod sums;
mod table;
#[cfg(test)]
mod tests;
mod text;

pub use analysis::Residency;
pub use args::ResidencyArgs;
pub use crowded::{Crowded, CrowdedCores};
pub use figure::figure;
pub use groups::GroupedBy;
pub use noted::ResidencyNotes;
pub use question::ResidencyQuestion;
pub use report::{Away, GroupReport, LlcReport, MovesByCause, OccupancyRow, PlacedBeside, ResidencyReport, SCHEMA};
pub use text::text;

use membership::Processes;
use sched::{Affinity, Chosen, ChosenCpus, Topology, Ts};
use std::sync::Arc;

/// The groups, the CPUs and the window of a measurement.
pub struct Options<'o> {
    /// The rule by which tasks form groups.
    pub by: GroupedBy,
    /// The window's start.
    pub from: Ts,
    /// The window's end.
    pub to: Ts,
    /// The instant that counts as zero: the trace's start.
    pub zero: Ts,
    /// The CPUs on which tasks run and wait.
    pub cpus: ChosenCpus,
    /// The tasks that are measured; absent where all are.
    pub tasks: Option<&'o Chosen<'o>>,
    /// The places of the CPUs; empty if they are unknown.
    pub topology: Topology,
    /// The CPUs that tasks may use, where they are known.
    pub affinity: Option<Arc<Affinity>>,
    /// The process of each task, for [`GroupedBy::Process`].
    pub processes: Processes,
}

impl Options<'_> {
    /// Options for all tasks on all CPUs in a window whose start counts as zero, without topology and processes.
    pub fn new(by: GroupedBy, from: Ts, to: Ts) -> Self {
        Options {
            by,
            from,
            to,
            zero: from,
            cpus: ChosenCpus::default(),
            tasks: None,
            topology: Topology::default(),
            affinity: None,
            processes: Processes::default(),
        }
    }
}

//! The tasks that ran while others waited on the same CPU: a matrix of victims and culprits.
//!
//! In goes a trace, out comes the waiting of each group behind each other one. At each instant a task that waits on a CPU is the
//! victim of what occupies that CPU, so the sums over all pairs are the waiting of all tasks, to the nanosecond. Time for which a
//! task is throttled stands apart: no neighbour causes it. Begin reading in `matrix.rs`.
//!
//! ```
//! use neighbours::{By, Matrix, Options};
//! use sched::Pass;
//!
//! // A task waits on CPU 0 for 200 ns while another one runs there.
//! let events = testkit::a_wait_beside_an_idle_cpu();
//! let options = Options::new(By::Command);
//! let outcome = Pass::over(events.as_slice()).run(|| Matrix::new(&options)).unwrap_or_else(|never| match never {});
//! let pair = &outcome.output.pairs[0];
//! assert_eq!((pair.victim.as_str(), pair.culprit.as_str(), pair.wait_ns.0), ("cc", "make", 200));
//! ```

mod args;
mod figure;
mod joined;
mod matrix;
mod parties;
mod pressure;
mod question;
mod queue;
mod report;
mod sums;
mod table;
#[cfg(test)]
mod tests;
mod text;
mod witness;

pub use args::NeighboursArgs;
pub use figure::figure;
pub use matrix::Matrix;
pub use parties::{By, PartyKind};
pub use pressure::{MeasuredPressure, PressureMeter, Stalled};
pub use question::{NeighboursQuestion, plain};
pub use report::{NeighboursReport, PairReport, PartyReport, SCHEMA};
pub use text::text;
pub use witness::{GroupPressure, PressureReport};

use membership::{Cgroups, Processes};
use sched::{Chosen, ChosenCpus};

/// The groups, the CPUs and the victims of a measurement.
pub struct Options<'o> {
    /// The rule by which tasks form victims and culprits.
    pub by: By,
    /// The CPUs on whose queues tasks wait.
    pub cpus: ChosenCpus,
    /// The tasks that are victims; absent where all are.
    pub tasks: Option<&'o Chosen<'o>>,
    /// The cgroup of each task, for [`By::Cgroup`].
    pub cgroups: Cgroups,
    /// The process of each task, for [`By::Process`].
    pub processes: Processes,
}

impl Options<'_> {
    /// Options for all tasks on all CPUs, without knowledge of cgroups and processes.
    pub fn new(by: By) -> Self {
        let (cgroups, processes) = (Cgroups::default(), Processes::default());
        Options { by, cpus: ChosenCpus::default(), tasks: None, cgroups, processes }
    }
}

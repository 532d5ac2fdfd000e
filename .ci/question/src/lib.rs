//! The switches to tasks on each CPU.
//!
//! In goes a trace, out comes the number of switches to tasks on each CPU. Begin reading below in this file, then in `report.rs`.
//!
//! ```
//! use sample::{Options, Sample};
//! use sched::Pass;
//!
//! // Two tasks run on CPU 0, one behind the other, and one on CPU 1.
//! let events = testkit::a_wait_beside_an_idle_cpu();
//! let options = Options::default();
//! let outcome = Pass::over(events.as_slice()).run(|| Sample::new(&options)).unwrap_or_else(|never| match never {});
//! assert_eq!(outcome.output.switches, Some(3));
//! ```

mod args;
mod question;
mod report;
mod table;
#[cfg(test)]
mod tests;
mod text;

pub use args::SampleArgs;
pub use question::SampleQuestion;
pub use report::{SampleReport, SampleRow};
pub use text::text;

use sched::{Analysis, Chosen, ChosenCpus, Cpu, EventKind, Joined, SchedEvent, SchedState, Ts};
use std::collections::BTreeMap;

/// The CPUs and the tasks of a measurement.
#[derive(Default)]
pub struct Options<'o> {
    /// The CPUs whose switches are counted.
    pub cpus: ChosenCpus,
    /// The tasks to which switches are counted; absent where all are.
    pub tasks: Option<&'o Chosen<'o>>,
}

// todo(sample): the analysis.
/// The analysis: an [`Analysis`] whose output is a [`SampleReport`].
pub struct Sample<'o> {
    options: &'o Options<'o>,
    start: Ts,
    switches: BTreeMap<Cpu, u64>,
}

impl<'o> Sample<'o> {
    /// Returns the analysis with the options of a measurement.
    pub fn new(options: &'o Options<'o>) -> Sample<'o> {
        Sample { options, start: Ts::default(), switches: BTreeMap::new() }
    }
}

/// Filled in, the hooks of this trait let many threads share a pass (`crates/latency/src/joined.rs`).
impl Joined for Sample<'_> {}

impl Analysis for Sample<'_> {
    type Output = SampleReport;

    fn begin(&mut self, start: Ts, _: &SchedState) {
        self.start = start;
    }

    fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        let EventKind::Switch { next, .. } = event.kind else { return };
        let is_chosen = |task| self.options.tasks.is_none_or(|chosen| chosen(task, state));
        if !next.pid.is_idle() && self.options.cpus.has(event.cpu) && state.running(event.cpu).is_some_and(is_chosen) {
            *self.switches.entry(event.cpu).or_default() += 1;
        }
    }

    fn finish(self, end: Ts, _: &SchedState) -> SampleReport {
        report::build(self.start, end, &self.switches)
    }
}

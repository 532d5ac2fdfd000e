//! Picks: why the fair class chose each task that a CPU switched to (`docs/questions/picks.md`).
//!
//! In goes a trace, out come the reason of each pick and the *lag* of the task: the share of its run queue that it is owed. EEVDF
//! picks, among the tasks whose lag is not negative, the one with the earliest deadline. Where `record --why=picks` recorded the
//! kernel's own numbers, a pick is compared with those of all tasks that could have been picked. Otherwise lags are those of a
//! fluid model, and the reasons are possible ones and named so. Begin reading in `reason.rs`, then `exact.rs` and `fluid.rs`.
//!
//! ```
//! use picks::{Options, Picks, Reason};
//! use sched::Pass;
//!
//! // A task waits on CPU 0 for 200 ns: it is the only one when it is picked.
//! let events = testkit::a_wait_beside_an_idle_cpu();
//! let options = Options::default();
//! let outcome = Pass::over(events.as_slice()).run(|| Picks::new(&options)).unwrap_or_else(|never| match never {});
//! assert!(outcome.output.reasons.iter().all(|row| row.reason == Reason::Only));
//! ```

mod args;
mod case;
mod deadlines;
mod debts;
mod exact;
mod figure;
mod fluid;
mod follow;
mod group;
mod metrics;
mod noted;
mod question;
mod queue;
mod reason;
mod report;
mod rivals;
mod rows;
mod samples;
mod signed;
mod table;
mod text;

pub use args::PicksArgs;
pub use case::{ComparedTask, PickCase};
pub use debts::Debt;
pub use figure::figure;
pub use metrics::metrics;
pub use noted::PicksNotes;
pub use question::PicksQuestion;
pub use reason::Reason;
pub use report::{ContestedPicks, LagCheck, LagSummary, ModelCheck, PickRow, PicksReport, ReasonRow, Recorded};
pub use samples::{LagSample, RunSample};
pub use text::text;

use case::PickCases;
use debts::Debts;
use exact::Exact;
use fluid::Fluid;
use membership::{RowsBy, TaskGroups};
use queue::Parameters;
use rows::{PickSums, PickTable};
use sched::seeded::SeededMap;
use sched::{Analysis, Chosen, ChosenCpus, Dur, Joined, OfSelection, Past, Pid, SchedEvent, SchedState, Ts};
use std::sync::Arc;

/// The tasks, the rows and the limits of a measurement, and the known properties of the kernel.
pub struct Options<'o> {
    /// The CPUs whose picks are counted.
    pub cpus: ChosenCpus,
    /// The tasks whose picks are counted; absent where those of all are.
    pub tasks: Option<&'o Chosen<'o>>,
    /// The rows of the tables.
    pub by: RowsBy,
    /// The groups that the rows are about, where these are processes, cgroups or scheduling parameters.
    pub row_groups: Option<Arc<TaskGroups>>,
    /// Whether the trace has records of the kernel's numbers at each switch (`pick`).
    pub by_probe: bool,
    /// Whether the kernel picks by EEVDF (6.6 and later). Otherwise deadlines have no meaning.
    pub has_eevdf: bool,
    /// Whether tasks that sleep with negative lag stay queued (`DELAY_DEQUEUE`, 6.12 and later).
    pub delays: bool,
    /// The reason why no task is known to be of the fair class: a sched_ext scheduler was loaded. Absent if none was.
    pub without_fair_class: Option<String>,
    /// Whether the kernel prefers the task that was woken last (`NEXT_BUDDY`).
    pub prefers_buddy: bool,
    /// Whether the kernel lets a task or a group use up its slice while it is eligible (`RUN_TO_PARITY`).
    pub protects_slices: bool,
    /// The request of a task that has set none (`base_slice_ns`).
    pub base_slice: Dur,
    /// The length of a tick of the kernel.
    pub tick: Dur,
    /// The groups of tasks that are known beside those that the trace shows, by any number for each.
    pub groups: SeededMap<Pid, u64>,
    /// The start of the window.
    pub from: Ts,
    /// The end of the window.
    pub to: Ts,
    /// The instant that counts as zero: the trace's start.
    pub zero: Ts,
    /// The maximum number of cases of each list that are kept.
    pub worst: usize,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Options {
            cpus: ChosenCpus::default(),
            tasks: None,
            by: RowsBy::default(),
            row_groups: None,
            by_probe: false,
            has_eevdf: true,
            delays: true,
            without_fair_class: None,
            prefers_buddy: false,
            protects_slices: true,
            base_slice: Dur(2_800_000),
            tick: Dur(4_000_000),
            groups: SeededMap::default(),
            from: Ts::default(),
            to: Ts::default(),
            zero: Ts::default(),
            worst: 0,
        }
    }
}

/// The analysis of picks: an [`Analysis`] whose output is a [`PicksReport`].
pub struct Picks<'o> {
    options: &'o Options<'o>,
    /// The window's start, once that is reached.
    start: Option<Ts>,
    fluid: Fluid,
    /// The waiting tasks of each CPU, counted.
    rivals: rivals::Rivals,
    exact: Exact,
    sums: PickSums,
    rows: PickTable,
    cases: PickCases,
    debts: Debts,
    samples: Vec<LagSample>,
    ran: Vec<RunSample>,
    /// The switches to tasks of other classes, and to idle tasks.
    other_class: u64,
    to_idle: u64,
    /// The instant at which each task was switched in, for the length of its run.
    ran_since: sched::PerTask<Ts>,
    check: report::ModelCheck,
    /// The rivals that each task had as it last left its CPU.
    at_leave: sched::PerTask<follow::RivalsAtLeave>,
    /// The latest switch of each CPU, for the records behind it.
    switches: SeededMap<sched::Cpu, follow::LatestSwitch>,
}

impl<'o> Picks<'o> {
    /// Returns the analysis with the options of a measurement.
    pub fn new(options: &'o Options<'o>) -> Picks<'o> {
        let parameters = Parameters { slice: options.base_slice.0, tick: options.tick.0 };
        Picks {
            options,
            start: None,
            fluid: Fluid::new(parameters, options.delays && options.has_eevdf),
            rivals: rivals::Rivals::default(),
            exact: Exact::new(options.delays, options.protects_slices),
            sums: PickSums::default(),
            rows: PickTable::default(),
            cases: PickCases::new(options.worst),
            debts: Debts::default(),
            samples: Vec::new(),
            ran: Vec::new(),
            other_class: 0,
            to_idle: 0,
            ran_since: sched::PerTask::default(),
            check: report::ModelCheck::default(),
            at_leave: sched::PerTask::default(),
            switches: SeededMap::default(),
        }
    }
}

/// Lags and picks go from one piece of a pass into the next: the analysis is not divisible.
impl Joined for Picks<'_> {}

impl Analysis for Picks<'_> {
    type Output = PicksReport;
    /// The lags at the window's start follow from the events before it.
    const LOOKS_BACK: bool = true;

    fn recall(&mut self, past: &Past, state: &SchedState) {
        noted::take_up(self, past, state);
    }

    fn begin(&mut self, start: Ts, _: &SchedState) {
        self.start = Some(start);
    }

    fn follow(&mut self, event: &SchedEvent, state: &SchedState) {
        self.take(event, state);
    }

    fn finish(mut self, end: Ts, _: &SchedState) -> PicksReport {
        self.explain_all();
        let why = self.options.without_fair_class.clone();
        let mut report = report::build(self, end);
        why.into_iter().for_each(|why| report.withhold(why));
        report
    }
}

#[cfg(test)]
mod tests;

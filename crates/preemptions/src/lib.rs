//! Preemption: from the request to reschedule a running task to the switch, or to whatever else ended the request
//! (`docs/questions/preemptions.md`).
//!
//! In goes a trace, out come the times of requests by kind, end and origin. The kernel asks a running task to give up its CPU by
//! a flag: `TIF_NEED_RESCHED` at once, since 6.13 also `TIF_NEED_RESCHED_LAZY`, which the task may ignore until it returns to
//! user mode or until the next tick makes it immediate. Begin reading in `cpu.rs`, what is followed for each CPU, then
//! `follow.rs`.
//!
//! The instant of a request is exact where the probe `resched` was recorded (`record --why`). Otherwise it has bounds from the flags
//! (`common_flags`) of the events on the CPU: it follows the last event that does not carry the flag, and precedes the first one
//! that does, or the switch.
//!
//! ```
//! use preemptions::{Ending, Kind, Options, Preemptions};
//! use sched::Pass;
//!
//! // A task waits on CPU 0 for 200 ns, and the task there sleeps: there was no request.
//! let events = testkit::a_wait_beside_an_idle_cpu();
//! let options = Options::default();
//! let outcome = Pass::over(events.as_slice()).run(|| Preemptions::new(&options)).unwrap_or_else(|never| match never {});
//! assert_eq!(outcome.output.requests, Some(0));
//! assert!(outcome.output.ways.iter().all(|way| way.kind == Kind::Immediate && way.ending != Ending::InKernel));
//! ```

mod args;
mod case;
mod cpu;
mod figure;
mod follow;
mod locks;
mod metrics;
mod noted;
mod question;
mod report;
mod rows;
mod table;
mod text;

pub use args::PreemptionsArgs;
pub use case::{PreemptionCase, Waited};
pub use cpu::{Asker, Ending, Kind};
pub use figure::figure;
pub use locks::LockHolder;
pub use metrics::metrics;
pub use noted::PreemptionsNotes;
pub use question::PreemptionsQuestion;
pub use report::{AskerRow, PreemptionRow, PreemptionsReport, Source, Way};
pub use text::text;

use case::Cases;
use cpu::CpuTrack;
use locks::Locks;
use membership::{RowsBy, TaskGroups};
use rows::{RowTable, Ways};
use sched::probe::VirtualTime;
use sched::seeded::SeededMap;
use sched::{Analysis, Chosen, ChosenCpus, Dur, Joined, Lengths, Past, PerTask, Pid, SchedEvent, SchedState, Ts};
use std::sync::Arc;

/// The tasks, the rows and the limits of a measurement.
pub struct Options<'o> {
    /// The CPUs whose requests are counted.
    pub cpus: ChosenCpus,
    /// The tasks whose requests are counted; absent where those of all are.
    pub tasks: Option<&'o Chosen<'o>>,
    /// The rows of the tables.
    pub by: RowsBy,
    /// The groups that the rows are about, where these are processes, cgroups or scheduling parameters.
    pub groups: Option<Arc<TaskGroups>>,
    /// Whether the trace has records of requests by the probe `resched`.
    pub by_probe: bool,
    /// Whether the kernel has lazy requests (6.13 and later). The flag 0x02 has another meaning without them.
    pub has_lazy: bool,
    /// The length of a tick of the kernel: a lazy request is immediate after one at the latest.
    pub tick: Dur,
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
            groups: None,
            by_probe: false,
            has_lazy: true,
            tick: Dur(4_000_000),
            zero: Ts::default(),
            worst: 0,
        }
    }
}

impl Options<'_> {
    /// The longest time for which a lazy request is expected to stay lazy: a tick and a quarter of one.
    fn longest_lazy(&self) -> Dur {
        Dur(self.tick.0.saturating_add(self.tick.0 / 4))
    }
}

/// The task that a CPU switched from, and the numbers of its latest pick, where they were recorded.
#[derive(Clone, Copy, Debug)]
struct Request {
    /// Nothing where the note of a part lacks it.
    vruntime: Option<VirtualTime>,
    deadline: i64,
    weight: Option<u32>,
}

/// The numbers of requests that are in no distribution.
#[derive(Clone, Copy, Debug, Default)]
struct Apart {
    /// Requests to the idle task.
    idle: u64,
    /// Requests that a loss cut.
    lost: u64,
    /// Switches from a runnable task to another without a request that is seen, in user mode or of its own accord.
    unasked: u64,
    /// Requests that are open at the end of the window.
    open: u64,
    /// Preempted tasks whose virtual run time was past the deadline of their pick.
    renewed: u64,
}

/// The analysis of requests to reschedule: an [`Analysis`] whose output is a [`PreemptionsReport`].
pub struct Preemptions<'o> {
    options: &'o Options<'o>,
    /// The window's start, once that is reached.
    start: Option<Ts>,
    cpus: Vec<CpuTrack>,
    /// The least number of a flag in the records of the probe: that of immediate requests.
    now_flag: Option<u8>,
    /// The instant at which each waiting task joined a run queue.
    queued: PerTask<Ts>,
    /// The deadline and the weight of each task at its latest pick.
    picked: SeededMap<Pid, Request>,
    apart: Apart,
    ways: Ways,
    /// The requests of each asker, and the times that they took.
    askers: [Lengths; Asker::ALL.len()],
    rows: RowTable,
    profits: RowTable,
    /// The waits of the tasks to which preempted tasks gave way.
    profited: Lengths,
    /// The unused parts of the requests of preempted tasks.
    left: Lengths,
    cases: Cases,
    locks: Locks,
}

impl<'o> Preemptions<'o> {
    /// Returns the analysis with the options of a measurement.
    pub fn new(options: &'o Options<'o>) -> Preemptions<'o> {
        Preemptions {
            options,
            start: None,
            cpus: Vec::new(),
            now_flag: None,
            queued: PerTask::default(),
            picked: SeededMap::default(),
            apart: Apart::default(),
            ways: Ways::default(),
            askers: Default::default(),
            rows: RowTable::default(),
            profits: RowTable::default(),
            profited: Lengths::default(),
            left: Lengths::default(),
            cases: Cases::new(options.worst),
            locks: Locks::new(options.worst),
        }
    }
}

/// Requests go from one piece of a pass into the next: the analysis is not divisible.
impl Joined for Preemptions<'_> {}

impl Analysis for Preemptions<'_> {
    type Output = PreemptionsReport;
    /// A request that was made before the window can end in it.
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

    fn finish(mut self, end: Ts, state: &SchedState) -> PreemptionsReport {
        self.leave_open(state);
        report::build(self, end)
    }
}

#[cfg(test)]
mod tests;

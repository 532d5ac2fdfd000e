//! The sums of a window: time by class, the tasks that ran longest, the violation, migrations by cause.

use crate::ask::filter::ChosenTasks;
use crate::columns::lane::Id;
use crate::columns::moves::CAUSES;
use crate::columns::tasks::Tasks;
use sched::analysis::Settled;
use sched::seeded::SeededMap;
use sched::{Analysis, CpuSpan, Current, Migration, Pid, SchedEvent, SchedState, Span, TaskState, Ts};
use serde::Serialize;
use workcons::Watch;

/// Times in nanoseconds: of all CPUs together, of the chosen tasks together, or of the machine.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct WindowDetail {
    busy: u64,
    idle: u64,
    unknown: u64,
    offline: u64,
    /// The time that the chosen tasks ran.
    running: u64,
    waiting: u64,
    /// The time in violation; with a choice of tasks that of `workcons` for them.
    pub(crate) violation: u64,
    migrations: [u64; CAUSES],
    /// The tasks that ran longest, by their places, each with its time.
    tasks: Vec<(Id, u64)>,
}

/// The number of tasks that are listed.
const LISTED: usize = 20;

/// The analysis that sums a window over all CPUs, and over all tasks or those that are chosen.
pub(crate) struct WindowSums<'t> {
    tasks: &'t Tasks,
    /// The tasks that count; nothing for all.
    chosen: Option<&'t ChosenTasks>,
    sums: WindowDetail,
    times: SeededMap<Id, u64>,
    watch: Watch,
    /// The start of the violation of work conservation that lasts.
    violated: Option<Ts>,
}

impl<'t> WindowSums<'t> {
    pub(crate) fn new(tasks: &'t Tasks, watch: Watch, chosen: Option<&'t ChosenTasks>) -> WindowSums<'t> {
        let (sums, times) = Default::default();
        WindowSums { tasks, chosen, sums, times, watch, violated: None }
    }

    fn counts(&self, pid: Pid) -> bool {
        self.chosen.is_none_or(|chosen| chosen.has(self.tasks, pid))
    }

    fn look(&mut self, ts: Ts, state: &SchedState) {
        match (self.watch.is_violated(state.counts(), state), self.violated) {
            (true, None) => self.violated = Some(ts),
            (false, Some(since)) => {
                self.sums.violation += ts.since(since).0;
                self.violated = None;
            }
            _ => {}
        }
    }
}

impl Analysis for WindowSums<'_> {
    type Output = WindowDetail;
    const COUNTS: bool = true;
    const MIGRATIONS: bool = true;

    fn begin(&mut self, start: Ts, state: &SchedState) {
        self.watch.begin(state);
        self.look(start, state);
    }

    fn migrated(&mut self, migration: &Migration, settled: Settled, _: &SchedState) {
        let counts = settled.is_inside() && self.counts(migration.pid);
        self.sums.migrations[migration.cause as usize] += u64::from(counts);
    }

    fn span(&mut self, span: &Span, state: &SchedState) {
        // How long a task waits on a CPU without events is unknown.
        if let TaskState::Waiting(cpu) = span.state
            && state.is_observed(cpu)
            && self.counts(span.pid)
        {
            self.sums.waiting += span.duration().0;
        }
    }

    fn cpu_span(&mut self, span: &CpuSpan, _: &SchedState) {
        let ns = span.duration().0;
        match span.current {
            Current::Idle => self.sums.idle += ns,
            Current::Unknown => self.sums.unknown += ns,
            Current::Offline => self.sums.offline += ns,
            Current::Task(pid) => {
                self.sums.busy += ns;
                if !self.counts(pid) {
                    return;
                }
                self.sums.running += ns;
                *self.times.entry(self.tasks.place(pid)).or_default() += ns;
            }
        }
    }

    fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        self.watch.after(event, state);
        self.look(event.ts, state);
    }

    fn finish(mut self, end: Ts, _: &SchedState) -> WindowDetail {
        if let Some(since) = self.violated {
            self.sums.violation += end.since(since).0;
        }
        let mut tasks: Vec<(Id, u64)> = self.times.into_iter().collect();
        tasks.sort_unstable_by_key(|(id, ns)| (std::cmp::Reverse(*ns), *id));
        tasks.truncate(LISTED);
        WindowDetail { tasks, ..self.sums }
    }
}

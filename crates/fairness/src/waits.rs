//! The longest waits: who ran meanwhile, and whether a CPU idled.

use crate::idling::{IdleCpu, IdleTimes};
use crate::runs::Runs;
use sched::state::Task;
use sched::{Comm, Cpu, CpuSpan, Current, Dur, PerTask, Pid, SchedState, TaskState, Ts};
use serde::Serialize;

/// How many joinings of runs later it is looked again since when somebody waits.
const LOOK: u32 = 256;

/// So many of the CPUs that idled during a wait are named.
const MOST_IDLE: usize = 16;
/// So many of the commands that ran are.
const MOST_ANTAGONISTS: usize = 3;

/// One of the longest waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Starved {
    /// Who.
    pub pid: Pid,
    /// By name.
    pub command: Comm,
    /// When it began to wait, or the window began, from the start of the trace.
    pub start_in_trace_ns: u64,
    /// How long it waited in the window.
    pub duration_ns: Dur,
    /// It waited already when the window began.
    pub waited_before: bool,
    /// It still waited when the window ended.
    pub still_waits: bool,
    /// Where it ran in the end, or still waited.
    pub cpu: Cpu,
    /// Who ran there meanwhile, by command, and for how long, at least: the longest first, at most three.
    pub antagonists: Vec<(Comm, Dur)>,
    /// How long some CPU idled meanwhile, with nobody waiting for it.
    pub could_have_run_ns: Dur,
    /// Which CPUs did, each by itself: those that could have taken the task, if it may run there. The
    /// longest first, at most 16.
    pub idle_cpus: Vec<IdleCpu>,
    /// How many CPUs did in all.
    pub idle_cpu_count: usize,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    since: Ts,
    /// It waited before that, outside of the window.
    cut: bool,
    /// How long some CPU had idled by then.
    idled: u64,
}

/// Follows the waits.
#[derive(Clone, Debug)]
pub(crate) struct Waits {
    open: PerTask<Open>,
    /// By CPU: who ran,
    runs: Vec<Runs>,
    /// since all who wait began to, at the latest looking,
    oldest: Ts,
    /// which was so many joinings of runs ago.
    joined: u32,
    /// How long some CPU has idled.
    idled: u64,
    last: Ts,
    /// The instant that counts as zero.
    zero: Ts,
    /// So many of the longest are kept.
    most: usize,
    pub(crate) longest: Vec<Starved>,
}

impl Waits {
    pub(crate) fn new(zero: Ts, most: usize) -> Waits {
        Waits {
            open: PerTask::default(),
            runs: Vec::new(),
            oldest: Ts(0),
            joined: 0,
            idled: 0,
            last: Ts(0),
            zero,
            most,
            longest: Vec::new(),
        }
    }

    /// The window begins; who is known to wait has done so before.
    pub(crate) fn begin(&mut self, start: Ts, state: &SchedState) {
        self.last = start;
        for task in state.observed().flat_map(|cpu| state.waiting(cpu)).filter(|task| task.begun) {
            self.open.insert(task.id(), Open { since: start, cut: task.since < start, idled: self.idled });
        }
    }

    /// Until `ts` some CPU idled, or none.
    pub(crate) fn pass(&mut self, ts: Ts, idle: bool) {
        if idle {
            self.idled = self.idled.saturating_add(ts.since(self.last).0);
        }
        self.last = ts;
    }

    /// A CPU's run ended.
    pub(crate) fn ran(&mut self, span: &CpuSpan) {
        let Current::Task(_) = span.current else { return };
        if span.cpu.index() >= self.runs.len() {
            self.runs.resize_with(span.cpu.index() + 1, Runs::default);
        }
        let runs = &mut self.runs[span.cpu.index()];
        runs.add(span.comm, span.start, span.end);
        if runs.are_full() {
            if self.joined.is_multiple_of(LOOK) {
                self.oldest = self.open.iter().map(|(_, open)| open.since).fold(span.end, Ts::min);
            }
            self.joined = self.joined.wrapping_add(1);
            runs.join(self.oldest);
        }
    }

    pub(crate) fn begins(&mut self, task: &Task, ts: Ts) {
        self.open.insert(task.id(), Open { since: ts, cut: false, idled: self.idled });
    }

    pub(crate) fn forget(&mut self, task: &Task) {
        self.open.take(task.id());
    }

    /// A task that waited runs; how long it waited, if it began to in the window.
    pub(crate) fn ends(&mut self, task: &Task, cpu: Cpu, now: Ts, idle: &IdleTimes) -> Option<Dur> {
        let open = self.open.take(task.id())?;
        self.keep(task, cpu, open, now, idle);
        (!open.cut).then(|| now.since(open.since))
    }

    /// The window ends; of the tasks that wait, those that `is_chosen` may be among the longest.
    pub(crate) fn close(&mut self, state: &SchedState, end: Ts, idle: &IdleTimes, is_chosen: impl Fn(&Task) -> bool) {
        for (id, open) in std::mem::take(&mut self.open).iter() {
            if let Some(task) = state.task(id).filter(|task| is_chosen(task))
                && let TaskState::Waiting(cpu) = task.state
                && state.is_observed(cpu)
            {
                self.keep(task, cpu, *open, end, idle);
            }
        }
    }

    /// Keeps a wait if it is one of the longest.
    fn keep(&mut self, task: &Task, cpu: Cpu, open: Open, now: Ts, idle: &IdleTimes) {
        let duration_ns = now.since(open.since);
        let full = self.longest.len() >= self.most;
        if full && self.longest.last().is_none_or(|last| duration_ns <= last.duration_ns) {
            return;
        }
        let mut idle_cpus = idle.between(open.since, now);
        let idle_cpu_count = idle_cpus.len();
        idle_cpus.truncate(MOST_IDLE);
        let mut antagonists = self.runs.get(cpu.index()).map_or(Vec::new(), |runs| runs.between(open.since, now));
        antagonists.truncate(MOST_ANTAGONISTS);
        let starved = Starved {
            pid: task.pid,
            command: task.comm,
            start_in_trace_ns: open.since.since(self.zero).0,
            duration_ns,
            waited_before: open.cut,
            still_waits: matches!(task.state, TaskState::Waiting(_)),
            cpu,
            antagonists,
            could_have_run_ns: Dur(self.idled.saturating_sub(open.idled)),
            idle_cpus,
            idle_cpu_count,
        };
        let at = self.longest.partition_point(|l| l.duration_ns >= duration_ns);
        self.longest.insert(at, starved);
        self.longest.truncate(self.most);
    }
}

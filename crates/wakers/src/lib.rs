//! The graph of wakeups: which commands, tasks, processes or cgroups wake one another (`docs/questions/wakers.md`).
//!
//! In goes a trace, out come edges from wakers to woken tasks. A wakeup counts when the woken task runs, as in `schedviz
//! latency`, and has the time that the task slept before, the time that it waited after, and the caches of the two CPUs. Begin
//! reading in `edges.rs`, then `components.rs`.
//!
//! The waker is the task that was current where `sched_waking` was recorded, in the context of a task. A wakeup from an interrupt or a
//! softirq handler has no waker that the trace shows: the current task was interrupted, and may have nothing to do with it. These
//! wakeups are kept apart.
//!
//! ```
//! use sched::Pass;
//! use wakers::{Options, Wakers};
//!
//! // Task 7 wakes task 8, which runs after 200 ns.
//! let events = testkit::a_wait_beside_an_idle_cpu();
//! let options = Options::default();
//! let outcome = Pass::over(events.as_slice()).run(|| Wakers::new(&options)).unwrap_or_else(|never| match never {});
//! let edge = &outcome.output.edges[0];
//! assert_eq!((edge.waker.name(), edge.woken.name()), ("make".to_owned(), "cc".to_owned()));
//! assert_eq!((edge.wakeups, edge.waited.total_ns.0), (1, 200));
//! ```

mod args;
mod components;
mod edges;
mod figure;
mod futex;
mod joined;
mod layers;
mod noted;
mod question;
mod report;
mod table;
mod text;

pub use args::WakersArgs;
pub use components::WakeComponent;
pub use edges::{EdgeWeight, PartiesBy, WakeEdge, WakeParty};
pub use figure::figure;
pub use futex::FutexCalls;
pub use noted::WakersNotes;
pub use question::WakersQuestion;
pub use report::{FutexEdge, WakePair, WakersReport};
pub use text::text;

use edges::{EdgeTable, Wakeup, group_of};
use futex::FutexTable;
use joined::{MissingParts, WakeupsLeft, WokenRun};
use membership::{TaskGroup, TaskGroups};
use sched::state::Task;
use sched::{
    Analysis, Chosen, ChosenCpus, Comm, Cpu, Dur, EventKind, Past, PerTask, Pid, SchedEvent, SchedState, Span, TaskId,
    TaskState, Topology, Ts,
};
use std::sync::Arc;

/// The tasks, the rows and the topology of a measurement.
pub struct Options<'o> {
    /// The CPUs on which a counted wakeup ends: those on which the woken task runs.
    pub cpus: ChosenCpus,
    /// The woken tasks that are counted; absent where all are.
    pub tasks: Option<&'o Chosen<'o>>,
    /// The nodes of the graph.
    pub by: PartiesBy,
    /// The groups of tasks, where the nodes are processes or cgroups.
    pub groups: Option<Arc<TaskGroups>>,
    /// The number by which edges are ordered.
    pub weight: EdgeWeight,
    /// The maximum number of edges in the figure.
    pub drawn: usize,
    /// The places of the CPUs; empty if they are unknown.
    pub topology: Topology,
    /// The system calls on futexes; absent where wakeups are not joined by futex.
    pub futexes: Option<FutexCalls>,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Options {
            cpus: ChosenCpus::default(),
            tasks: None,
            by: PartiesBy::default(),
            groups: None,
            weight: EdgeWeight::default(),
            drawn: 40,
            topology: Topology::default(),
            futexes: None,
        }
    }
}

/// The origin of a `sched_waking` event.
#[derive(Clone, Copy, Debug)]
struct WakingSource {
    at: Ts,
    by: Pid,
    /// The command name of the current task.
    command: Comm,
    /// The group of the current task, where the nodes are groups.
    group: Option<TaskGroup>,
    on: Cpu,
    /// Whether an interrupt or softirq handler woke the task.
    is_interrupt: bool,
}

/// A woken task that waits to run.
#[derive(Clone, Copy, Debug)]
struct WokenWait {
    /// The start of the wait; absent if its waking is not known although others are.
    start: Option<Ts>,
    source: Option<WakingSource>,
    slept: Option<Dur>,
    queued_on: Cpu,
    /// The time that the task was throttled so far.
    throttled: Dur,
    /// The parts that an earlier piece of the pass has recorded.
    missing: MissingParts,
}

/// The analysis of wakeups by waker: an [`Analysis`] whose output is a [`WakersReport`].
pub struct Wakers<'o> {
    options: &'o Options<'o>,
    /// The window's start, once that is reached.
    start: Option<Ts>,
    sources: PerTask<WakingSource>,
    /// The instant at which each sleeping task was switched out; nothing if only an earlier piece of the pass can have it.
    asleep: PerTask<Option<Ts>>,
    waits: PerTask<WokenWait>,
    edges: EdgeTable,
    /// The wakeups by futex, where they are asked for.
    at_futexes: FutexTable,
    /// The wakeups that are left to the pieces before, in a later piece of a pass.
    left: Option<WakeupsLeft>,
}

impl<'o> Wakers<'o> {
    /// Returns the analysis with the options of a measurement.
    pub fn new(options: &'o Options<'o>) -> Wakers<'o> {
        Wakers {
            options,
            start: None,
            sources: PerTask::default(),
            asleep: PerTask::default(),
            waits: PerTask::default(),
            edges: EdgeTable::default(),
            at_futexes: FutexTable::default(),
            left: None,
        }
    }

    fn take(&mut self, event: &SchedEvent, state: &SchedState) {
        if let EventKind::Waking { task, .. } = event.kind
            && let Some(woken) = state.task_of(task.pid)
        {
            let waker = state.task_of(event.pid);
            let command = waker.map_or(Comm::EMPTY, |task| task.comm);
            let (at, by, on, is_interrupt) = (event.ts, event.pid, event.cpu, !event.in_task());
            let group = self.options.groups.as_ref().map(|groups| group_of(groups, (by, waker), at));
            self.sources.insert(woken.id(), WakingSource { at, by, command, group, on, is_interrupt });
        }
        for (task, span) in state.turns() {
            self.turn(task, span, event, state);
        }
    }

    /// A task goes from one state to another.
    fn turn(&mut self, task: &Task, span: &Span, event: &SchedEvent, state: &SchedState) {
        use TaskState::{Asleep, Running, Throttled, Waiting};
        match (span.state, span.next) {
            // A wait goes on elsewhere; where wakings alone place tasks, it has its CPU only now.
            (Waiting(_), Waiting(cpu)) if state.has_placed() => {
                if let Some(wait) = self.waits.get_mut(task.id()) {
                    wait.moves(cpu);
                }
            }
            (Waiting(_), Waiting(_) | Throttled(_)) | (Throttled(_), Throttled(_)) if span.ended => {}
            (Throttled(_), Waiting(_)) if span.ended => {
                if let Some(wait) = self.waits.get_mut(task.id()) {
                    wait.throttled += span.duration();
                }
            }
            (Asleep(_), Asleep(_)) => {}
            (Running(_), Asleep(_)) => {
                self.asleep.insert(task.id(), Some(event.ts));
            }
            (Waiting(_), Running(cpu)) => {
                let wait = self.waits.take(task.id());
                if let Some(wait) = wait.filter(|_| span.begun && span.ended) {
                    self.ran(task, &wait, cpu, event.ts, state);
                }
            }
            (from, Waiting(cpu)) => {
                let slept_since = self.asleep.take(task.id());
                self.waits.take(task.id());
                let is_woken = matches!(event.kind, EventKind::Wakeup { .. })
                    || (state.places_by_wakings()
                        && task.waking.is_some()
                        && !matches!(event.kind, EventKind::WakeupNew { .. }));
                if is_woken && !matches!(from, Running(_)) {
                    let since = slept_since.filter(|_| matches!(from, Asleep(_)) && span.begun && span.ended);
                    self.waits.insert(task.id(), self.woken(task, since, cpu, span, state));
                }
            }
            _ => {
                self.asleep.take(task.id());
                self.waits.take(task.id());
            }
        }
    }

    /// A task is queued by its wakeup; `since` is the beginning of its sleep, if there is a record of that, which an earlier piece may
    /// have.
    fn woken(&self, task: &Task, since: Option<Option<Ts>>, cpu: Cpu, span: &Span, state: &SchedState) -> WokenWait {
        // A task can be woken while it still runs, about to sleep. A waking from before a loss need not be of this wakeup.
        let waking = match span.state {
            TaskState::Asleep(_) => task.waking.map(|waking| (waking.at.max(span.start), waking)),
            _ => task.waking.filter(|waking| waking.at >= span.start).map(|waking| (waking.at, waking)),
        };
        let start = match waking {
            Some((start, _)) => Some(start),
            None if state.has_wakings() => None,
            None => Some(state.now()),
        };
        let waking = waking.map(|(_, waking)| (waking.at, waking.by, waking.on));
        let known = self.sources.get(task.id());
        let is_earlier = self.left.is_some();
        let wanted = waking.filter(|_| is_earlier && known.is_none());
        let woken = (since == Some(None)).then(|| state.now());
        WokenWait {
            start,
            source: known.filter(|source| waking.is_some_and(|waking| source.is_of(waking))).copied(),
            slept: since.flatten().map(|since| state.now().since(since)),
            queued_on: cpu,
            throttled: Dur(0),
            missing: match (wanted, woken) {
                (None, None) => MissingParts::Nothing,
                (waking, woken) => MissingParts::Some { waking, woken },
            },
        }
    }

    /// The number of wakeups whose tasks still wait, of those that would count if the tasks ran where they wait.
    fn open(&self, state: &SchedState) -> u64 {
        let is_counted = |(id, _): &(TaskId, &WokenWait)| {
            let Some(task) = state.task(*id) else { return false };
            let (TaskState::Waiting(cpu) | TaskState::Throttled(cpu)) = task.state else { return false };
            self.is_counted(task, cpu, state)
        };
        self.waits.iter().filter(is_counted).count() as u64
    }

    /// Whether the wakeup of a task that runs on this CPU counts.
    fn is_counted(&self, task: &Task, cpu: Cpu, state: &SchedState) -> bool {
        self.options.cpus.has(cpu) && self.options.tasks.is_none_or(|chosen| chosen(task, state))
    }

    /// A woken task is switched in.
    fn ran(&mut self, task: &Task, wait: &WokenWait, cpu: Cpu, now: Ts, state: &SchedState) {
        if self.start.is_none() || !self.is_counted(task, cpu, state) {
            return;
        }
        let group = self.options.groups.as_ref().map(|groups| groups.group(task, now));
        let woken = self.options.by.party(task.pid, task.comm, group);
        let run = WokenRun { task: task.id(), pid: task.pid, woken, now };
        match &mut self.left {
            Some(left) if wait.missing != MissingParts::Nothing => left.leave(run, *wait),
            _ => self.count(&run, wait),
        }
    }

    /// Counts the wakeup of a task that runs.
    fn count(&mut self, run: &WokenRun, wait: &WokenWait) {
        let WokenRun { pid, woken, now, .. } = *run;
        let waker = |source: WakingSource| self.options.by.party(source.by, source.command, source.group);
        let waited = wait.start.map(|start| Dur(now.since(start).0.saturating_sub(wait.throttled.0)));
        if let Some((calls, source)) =
            self.options.futexes.as_ref().zip(wait.source.filter(|source| !source.is_interrupt))
            && let Some(address) = calls.of_wakeup((source.by, source.at), (pid, now))
        {
            let key = (address, waker(source), woken);
            futex::add(&mut self.at_futexes, key, wait.slept, waited);
        }
        self.edges.add(
            &Wakeup {
                waker: wait.source.map(waker),
                is_interrupt: wait.source.is_some_and(|source| source.is_interrupt),
                woken,
                slept: wait.slept,
                waited,
                cpus: wait.source.map(|source| (source.on, wait.queued_on)),
            },
            &self.options.topology,
        );
    }
}

impl Analysis for Wakers<'_> {
    type Output = WakersReport;
    /// A sleep or a wait that begins before the window can end in it.
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

    fn finish(self, end: Ts, state: &SchedState) -> WakersReport {
        report::build(self, end, state)
    }
}

#[cfg(test)]
mod tests;

//! CPUs that idle although a task waits for them: the long ones are worth a look.

use crate::KEPT;
use crate::held_back::UnionTime;
use sched::{Comm, Cpu, Dur, Load, Pid, SchedState, Span, Task, TaskState, Ts};
use serde::Serialize;

/// The least length of a pending switch that is listed. A CPU that has not switched after it is throttled, forced idle (core
/// scheduling), has vCPU steal time, or is misunderstood.
pub const LONG_PENDING: Dur = sched::HELD_BACK;

/// A long interval in which a CPU idled although a task was queued on it: woken, not switched yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PendingSwitch {
    /// The CPU that idled although a task waited for it.
    pub cpu: Cpu,
    /// The start, on the trace's clock.
    pub start_ns: Ts,
    /// The start, from that of the trace.
    pub start_in_trace_ns: u64,
    /// The length of the interval, in nanoseconds.
    pub duration_ns: Dur,
    /// The tasks that waited there when it ended, the longest wait first.
    pub waiting: Vec<Held>,
}

/// A task whose CPU idles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Held {
    /// The PID of the task.
    pub pid: Pid,
    /// The command name of the task.
    pub command: Comm,
    /// The kernel's priority, where it is known: -1 of a deadline task, 0 to 99 of a real-time task. These are
    /// throttled one by one, or by their run queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prio: Option<i32>,
}

impl Held {
    fn new(task: &Task) -> Held {
        Held { pid: task.pid, command: task.comm, prio: task.known_prio() }
    }

    /// The scheduling class of the task, where it is not the ordinary one.
    pub(crate) fn class(&self) -> Option<&'static str> {
        match self.prio? {
            ..0 => Some("deadline"),
            0..100 => Some("real-time"),
            _ => None,
        }
    }
}

/// Gathers the long pending switches.
#[derive(Clone, Debug, Default)]
pub(crate) struct PendingSwitches {
    /// The trace's start.
    zero: Ts,
    /// The start of the pending switch of each CPU.
    open: Vec<Option<Ts>>,
    pub(crate) longest: Vec<PendingSwitch>,
    /// The number of long ones.
    pub(crate) long: u64,
    /// The length of all long ones together.
    pub(crate) long_ns: Dur,
    /// The time for which some switch was pending for long.
    pub(crate) union: UnionTime,
    /// The steps that are left to the analysis of the pieces before, in a later piece of a pass.
    log: Option<Box<PendingLog>>,
    /// The number and the length of those that ended at a switch away from another task than the idle one.
    pub(crate) unrecorded: (u64, Dur),
}

/// The steps of a later piece of a pass, in their order.
#[derive(Clone, Debug, Default)]
struct PendingLog {
    /// The CPUs whose switch was pending at the beginning and still is.
    earlier: Vec<Cpu>,
    steps: Vec<PendingStep>,
}

#[derive(Clone, Debug)]
enum PendingStep {
    /// A long pending switch ends that began in the piece.
    Long(PendingSwitch),
    /// One ends that began in the piece, at a switch away from another task than the idle one.
    Unrecorded(Dur),
    /// One ends that began before the piece, with the tasks that waited; without them, at such a switch.
    Earlier(Cpu, Ts, Option<Vec<Held>>),
}

impl PendingSwitches {
    pub(crate) fn new(zero: Ts) -> PendingSwitches {
        PendingSwitches { zero, ..PendingSwitches::default() }
    }

    /// Takes over the change of a CPU's load at `ts`.
    #[inline]
    pub(crate) fn follow(&mut self, cpu: Cpu, old: Load, new: Load, ts: Ts, state: &SchedState) {
        if old != new && (old.is_awaited() || new.is_awaited()) {
            self.change(cpu, new, ts, state);
        }
    }

    #[inline(never)]
    fn change(&mut self, cpu: Cpu, new: Load, ts: Ts, state: &SchedState) {
        if cpu.index() >= self.open.len() {
            self.open.resize(cpu.index() + 1, None);
        }
        let since = &mut self.open[cpu.index()];
        if new.is_awaited() {
            *since = Some(ts);
        } else if let Some(since) = since.take() {
            // The CPU has become another task's, and within the same event something else.
            let is_unrecorded = state.cpu_spans().iter().filter(|span| span.cpu == cpu).count() > 1;
            let waiting = || {
                let leave = |(task, span): (&Task, &Span)| {
                    (span.state == TaskState::Waiting(cpu)).then(|| (span.start, Held::new(task)))
                };
                sorted(state.turns().filter_map(leave).chain(stay(cpu, state)).collect())
            };
            if let Some(log) = &mut self.log
                && let Some(place) = log.earlier.iter().position(|other| *other == cpu)
            {
                log.earlier.swap_remove(place);
                log.steps.push(PendingStep::Earlier(cpu, ts, (!is_unrecorded).then(waiting)));
            } else if is_unrecorded {
                self.add_unrecorded(ts.since(since));
            } else {
                self.add(cpu, since, ts, waiting);
                self.pass();
            }
        }
    }

    /// Notes the steps, where a piece of a pass begins.
    pub(crate) fn resume(&mut self) {
        let cpus = (0..).map(Cpu).zip(&self.open);
        let earlier = cpus.filter(|(_, open)| open.is_some()).map(|(cpu, _)| cpu).collect();
        self.log = Some(Box::new(PendingLog { earlier, steps: Vec::new() }));
    }

    /// Takes the steps of a later piece, and the switches that are pending at its end.
    pub(crate) fn join(&mut self, mut later: PendingSwitches) {
        let log = later.log.take().unwrap_or_default();
        for step in log.steps {
            match step {
                PendingStep::Long(switch) => self.keep(switch),
                PendingStep::Unrecorded(duration) => self.add_unrecorded(duration),
                PendingStep::Earlier(cpu, ts, waiting) => {
                    let since = self.open.get_mut(cpu.index()).and_then(Option::take);
                    match (since, waiting) {
                        (Some(since), Some(waiting)) => self.add(cpu, since, ts, || waiting),
                        (Some(since), None) => self.add_unrecorded(ts.since(since)),
                        (None, _) => {}
                    }
                }
            }
        }
        for cpu in log.earlier {
            later.open[cpu.index()] = self.open.get(cpu.index()).copied().flatten();
        }
        self.open = later.open;
        self.pass();
    }

    /// Settles the time before each pending switch.
    fn pass(&mut self) {
        if let Some(earliest) = self.open.iter().flatten().min().filter(|_| self.log.is_none()) {
            self.union.pass(*earliest);
        }
    }

    /// The switch to the task that ran at its end was not recorded: for an unknown part of it the CPU did not idle.
    fn add_unrecorded(&mut self, duration: Dur) {
        if duration >= LONG_PENDING {
            if let Some(log) = &mut self.log {
                return log.steps.push(PendingStep::Unrecorded(duration));
            }
            let (number, length) = self.unrecorded;
            self.unrecorded = (number + 1, Dur(length.0.saturating_add(duration.0)));
        }
    }

    fn add(&mut self, cpu: Cpu, since: Ts, ts: Ts, waiting: impl FnOnce() -> Vec<Held>) {
        let duration_ns = ts.since(since);
        if duration_ns >= LONG_PENDING {
            let start_in_trace_ns = since.since(self.zero).0;
            self.keep(PendingSwitch { cpu, start_ns: since, start_in_trace_ns, duration_ns, waiting: waiting() });
        }
    }

    /// Counts a long pending switch, and keeps it if it is one of the longest.
    fn keep(&mut self, switch: PendingSwitch) {
        if let Some(log) = &mut self.log {
            return log.steps.push(PendingStep::Long(switch));
        }
        self.long += 1;
        self.long_ns = Dur(self.long_ns.0.saturating_add(switch.duration_ns.0));
        self.union.add(switch.start_ns, switch.start_ns.after(switch.duration_ns));
        let at = self.longest.partition_point(|r| r.duration_ns >= switch.duration_ns);
        self.longest.insert(at, switch);
        self.longest.truncate(KEPT);
    }

    /// Ends the open intervals at the end of the window. The spans have been closed, the queues are as they were.
    pub(crate) fn close(&mut self, end: Ts, state: &SchedState) {
        for (cpu, since) in (0..).map(Cpu).zip(std::mem::take(&mut self.open)) {
            if let Some(since) = since {
                self.add(cpu, since, end, || sorted(stay(cpu, state).collect()));
            }
        }
    }
}

/// Sorts waiting tasks by the beginnings of their waits.
fn sorted(mut waiting: Vec<(Ts, Held)>) -> Vec<Held> {
    waiting.sort_by_key(|(since, _)| *since);
    waiting.into_iter().map(|(_, held)| held).collect()
}

/// The tasks that wait on `cpu`, each with the beginning of its wait.
fn stay(cpu: Cpu, state: &SchedState) -> impl Iterator<Item = (Ts, Held)> {
    state.waiting(cpu).map(|task| (task.since, Held::new(task)))
}

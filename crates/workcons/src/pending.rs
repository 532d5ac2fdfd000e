//! CPUs that idle although a task waits for them: the long ones are worth a look.

use crate::KEPT;
use sched::{Comm, Cpu, Dur, Load, Pid, SchedState, Span, Task, TaskState, Ts};
use serde::Serialize;

/// The least length of a pending switch that is listed. A CPU that has not switched after it is throttled, forced idle (core
/// scheduling), has vCPU steal time, or is misunderstood.
pub const LONG_PENDING: Dur = Dur(1_000_000);

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
    /// The number and the length of those that ended at a switch away from another task than the idle one.
    pub(crate) unrecorded: (u64, Dur),
}

impl PendingSwitches {
    pub(crate) fn new(zero: Ts) -> PendingSwitches {
        PendingSwitches { zero, ..PendingSwitches::default() }
    }

    /// Takes over the change of a CPU's load at `ts`.
    #[inline]
    pub(crate) fn follow(&mut self, cpu: Cpu, old: Load, new: Load, ts: Ts, state: &SchedState) {
        if old != new && (old == Load::SwitchPending || new == Load::SwitchPending) {
            self.change(cpu, new, ts, state);
        }
    }

    #[inline(never)]
    fn change(&mut self, cpu: Cpu, new: Load, ts: Ts, state: &SchedState) {
        if cpu.index() >= self.open.len() {
            self.open.resize(cpu.index() + 1, None);
        }
        let since = &mut self.open[cpu.index()];
        if new == Load::SwitchPending {
            *since = Some(ts);
        } else if let Some(since) = since.take() {
            // The CPU has become another task's, and within the same event something else.
            if state.cpu_spans().iter().filter(|span| span.cpu == cpu).count() > 1 {
                return self.add_unrecorded(ts.since(since));
            }
            self.add(cpu, since, ts, || {
                let leave = |(task, span): (&Task, &Span)| {
                    (span.state == TaskState::Waiting(cpu)).then(|| (span.start, Held::new(task)))
                };
                state.turns().filter_map(leave).chain(stay(cpu, state)).collect()
            });
        }
    }

    /// The switch to the task that ran at its end was not recorded: for an unknown part of it the CPU did not idle.
    fn add_unrecorded(&mut self, duration: Dur) {
        if duration >= LONG_PENDING {
            let (number, length) = self.unrecorded;
            self.unrecorded = (number + 1, Dur(length.0.saturating_add(duration.0)));
        }
    }

    fn add(&mut self, cpu: Cpu, since: Ts, ts: Ts, waiting: impl FnOnce() -> Vec<(Ts, Held)>) {
        let duration_ns = ts.since(since);
        if duration_ns < LONG_PENDING {
            return;
        }
        self.long += 1;
        self.long_ns = Dur(self.long_ns.0.saturating_add(duration_ns.0));
        let at = self.longest.partition_point(|r| r.duration_ns >= duration_ns);
        if at == KEPT {
            return;
        }
        let start_in_trace_ns = since.since(self.zero).0;
        let mut waiting = waiting();
        waiting.sort_by_key(|(since, _)| *since);
        let waiting = waiting.into_iter().map(|(_, held)| held).collect();
        self.longest.insert(at, PendingSwitch { cpu, start_ns: since, start_in_trace_ns, duration_ns, waiting });
        self.longest.truncate(KEPT);
    }

    /// Ends the open intervals at the end of the window. The spans have been closed, the queues are as they were.
    pub(crate) fn close(&mut self, end: Ts, state: &SchedState) {
        for (cpu, since) in (0..).map(Cpu).zip(std::mem::take(&mut self.open)) {
            if let Some(since) = since {
                self.add(cpu, since, end, || stay(cpu, state).collect());
            }
        }
    }
}

/// The tasks that wait on `cpu`, each with the beginning of its wait.
fn stay(cpu: Cpu, state: &SchedState) -> impl Iterator<Item = (Ts, Held)> {
    state.waiting(cpu).map(|task| (task.since, Held::new(task)))
}

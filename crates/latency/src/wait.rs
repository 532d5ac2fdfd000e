//! A wait that has not ended.

use crate::{Idleness, Measure};
use sched::nice::SchedClass;
use sched::state::Task;
use sched::{Comm, Cpu, Dur, Pid, SchedState, Ts};

/// A wait of a task, from its start until the task runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    pub(crate) measure: Measure,
    /// The start of the wait; nothing for a wakeup whose waking is not known.
    pub(crate) start: Option<Ts>,
    pub(crate) waker: Option<Pid>,
    pub(crate) waker_command: Comm,
    /// The CPU on which a woken task slept.
    pub(crate) slept_on: Option<Cpu>,
    /// The part of the record that an earlier piece of a pass has.
    pub(crate) missing: Missing,
    pub(crate) queued_on: Cpu,
    pub(crate) idleness: Idleness,
    pub(crate) idle_cpus: u32,
    pub(crate) behind: (Pid, Comm),
    /// The instant at which that task, or the idle task, left the CPU, or the waiting one its queue; nothing before.
    pub(crate) behind_until: Option<Ts>,
    /// Whether that task was within its slice, where its pick was recorded.
    pub(crate) within_slice: Option<bool>,
    /// Whether that task is a fair one that preempted a real-time task.
    pub(crate) is_fair_first: bool,
    /// The time that the task was throttled so far.
    pub(crate) throttled: Dur,
}

/// The part of the record of a wait that is in an earlier piece of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    Nothing,
    /// The sleep before the wait.
    Sleep,
    /// All: the wait began before the piece.
    All,
}

impl Wait {
    /// The record of a wait on a CPU that began in an earlier piece of a pass.
    pub(crate) fn earlier(cpu: Cpu) -> Wait {
        Wait {
            measure: Measure::Wakeup,
            start: None,
            waker: None,
            waker_command: Comm::EMPTY,
            slept_on: None,
            missing: Missing::All,
            queued_on: cpu,
            idleness: Idleness::Target,
            idle_cpus: 0,
            behind: (Pid::IDLE, Comm::EMPTY),
            behind_until: None,
            within_slice: None,
            is_fair_first: false,
            throttled: Dur(0),
        }
    }

    /// The length of the wait from `from` to `to`, without the time throttled.
    pub(crate) fn length(&self, from: Ts, to: Ts) -> Dur {
        Dur(to.since(from).0.saturating_sub(self.throttled.0))
    }
}

/// Whether a fair task preempted this real-time task on a CPU.
pub(crate) fn is_fair_first(task: &Task, cpu: Cpu, state: &SchedState) -> bool {
    let class = |task: &Task| task.known_prio().map(SchedClass::of);
    class(task) == Some(SchedClass::RealTime) && state.running(cpu).and_then(class) == Some(SchedClass::Fair)
}

//! One wait of the list of the longest.

use crate::Measure;
use sched::nice::FairBefore;
use sched::{Comm, Cpu, Dur, Pid, Ts};
use serde::Serialize;

/// One of the longest waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Case {
    /// The measure of the wait: wakeup latency, or another one.
    pub measure: Measure,
    /// The start, on the trace's clock.
    pub start_ns: Ts,
    /// The start, from that of the trace.
    pub start_in_trace_ns: u64,
    /// The length of the wait, without the time that the task was throttled meanwhile.
    pub duration_ns: Dur,
    /// The time that the task was throttled by `cpu.max` meanwhile, in nanoseconds; absent if it was not.
    #[serde(skip_serializing_if = "is_zero")]
    pub throttled_ns: Dur,
    /// The task that waited.
    pub pid: Pid,
    /// The name of the task that waited.
    pub command: Comm,
    /// The task that woke it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waker: Option<Pid>,
    /// The name of the task that woke it.
    #[serde(skip_serializing_if = "Comm::is_empty")]
    pub waker_command: Comm,
    /// The CPU on which it was queued.
    pub queued_on: Cpu,
    /// The CPU on which it ran in the end.
    pub ran_on: Cpu,
    /// The task that ran there when it was queued; 0 is the idle task.
    pub behind: Pid,
    /// The name of the task that ran there when it was queued.
    pub behind_command: Comm,
    /// The time from the start of the wait for which that task stayed on the CPU, and the waiting one in its queue, in nanoseconds.
    pub behind_ns: Dur,
    /// Whether that task was within its slice, which protects it (`RUN_TO_PARITY`). Absent where its pick was not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behind_within_slice: Option<bool>,
    /// The reason for which that task, a fair one, ran in the place of this real-time task. Absent for every other wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behind_by: Option<FairBefore>,
    /// The task that ran last before it, where it ran; 0 is the idle task.
    pub after: Pid,
    /// The name of the task that ran last before it.
    pub after_command: Comm,
    /// The number of CPUs that idled with an empty run queue when the task was queued.
    pub idle_cpus: u32,
}

fn is_zero(length: &Dur) -> bool {
    length.0 == 0
}

impl Case {
    /// Whether the task that ran there when this one was queued stayed for half of the wait or longer.
    pub(crate) fn is_behind(&self) -> bool {
        self.behind_ns.0 >= self.duration_ns.0.div_ceil(2)
    }

    /// The task that ran there when this one was queued, in words: `behind` it, if it stayed for half of the wait or longer.
    pub(crate) fn behind_in_words(&self) -> String {
        let name =
            if self.behind == Pid::IDLE { "the idle task".to_owned() } else { self.behind.named(self.behind_command) };
        match self.is_behind() {
            true => format!("behind {name}"),
            false => format!("at first behind {name} ({})", self.behind_ns.human()),
        }
    }

    /// The time from the start of the wait to the run.
    pub fn until_run(&self) -> Dur {
        Dur(self.duration_ns.0.saturating_add(self.throttled_ns.0))
    }
}

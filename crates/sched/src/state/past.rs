//! The state before a part of a trace, as a file of that part holds it.
//!
//! `schedviz cut` writes a part of a trace as a trace of its own. The events before it are not in that file, but what they
//! left behind is: a [`Past`]. [`crate::Pass`] begins with it instead of the first event, so that every analysis finds
//! in the part what it finds in the same window of the whole.

use crate::event::span::{Came, Current, TaskState};
use crate::event::{Comm, Cpu, EventKind, Pid, PrevState, SchedEvent, TaskRef, Ts};
use crate::state::application::Application;
use crate::state::lineage::{Kin, Lineage, LineageHistory};
use crate::state::names::NameHistory;
use crate::state::slices::PickedSlice;
use crate::state::softirqs::SoftirqOrigin;
use crate::tables::serial::{bounded, exact};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The state of a trace before one of its parts, and the position of the part in the trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Past {
    /// The first instant of the whole trace, from which times are counted.
    pub start: Ts,
    /// The last instant of the whole trace.
    pub end: Ts,
    /// The instant at which the part starts.
    pub from: Ts,
    /// The instant at which the part ends. An event at that instant is outside, unless the whole trace ends there.
    pub to: Ts,
    /// The CPUs that had events, or that tasks wait on.
    pub cpus: Vec<PastCpu>,
    /// The occupants of CPUs as their own events show them (see [`crate::CpuFold`]).
    pub occupants: Vec<Occupant>,
    /// The living tasks; those that wait on a CPU are in the order of its run queue.
    pub tasks: Vec<PastTask>,
    /// The free indices of the table of tasks; the one that is taken next is the last.
    #[serde(deserialize_with = "bounded::deserialize")]
    pub free: Vec<u32>,
    /// The number of tasks so far, which distinguishes the lives of a PID.
    pub lives: u32,
    /// The origins of tasks, by PID.
    pub kin: Vec<(Pid, Kin)>,
    /// The CPUs that tasks may use, as records of probes have shown them.
    #[serde(default)]
    pub allowed: Vec<PastAllowed>,
    /// The tasks of the policy `SCHED_IDLE`, as far as they are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "bounded::deserialize")]
    pub sched_idle: Vec<Pid>,
    /// The tasks of the recorded command that have not been forked yet, and whether a list shows them to be of `SCHED_IDLE`.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "bounded::deserialize")]
    pub policies_of_programs: Vec<(Pid, bool)>,
    /// The calls that set a policy and have not returned: the calling thread, the task, and whether that one was of `SCHED_IDLE` before.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "bounded::deserialize")]
    pub policy_calls: Vec<(Pid, Pid, bool)>,
    /// The PID of the traced command's first task, if it is known.
    pub root: Option<Pid>,
    /// Whether the traced command's first task has executed the command.
    pub executed: bool,
    /// The application, where it is not that of the traced command alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application: Option<Application>,
    /// The names of tasks before their latest ones, by which the traced command is found.
    pub former: Vec<PastName>,
    /// The names that tasks had shortly before the part, for lists of events.
    pub names: Vec<PastName>,
    /// Whether wakeups were not recorded (see [`crate::Start::without_wakeups`]).
    pub without_wakeups: bool,
    /// Whether wakings were not recorded (see [`crate::Start::without_wakings`]).
    pub without_wakings: bool,
    /// Whether wakings place tasks (see [`crate::Start::by_wakings`]).
    pub by_wakings: bool,
    /// Whether some of the events that wake tasks are missing (see [`crate::Start::incomplete`]).
    pub incomplete: bool,
    /// Whether a sched_ext scheduler held the waiting tasks (see [`crate::Start::has_ext_queues`]).
    #[serde(default)]
    pub has_ext_queues: bool,
    /// Whether events do not show the context in which they were recorded (see [`crate::Start::without_contexts`]).
    #[serde(default)]
    pub without_contexts: bool,
    /// Whether events were lost before the part.
    pub any_loss: bool,
    /// The number of events of each kind that shows where tasks wait.
    #[serde(deserialize_with = "bounded::deserialize")]
    pub seen: Vec<u64>,
    /// The number of tasks that were switched in without an earlier event, and cannot have waited since the start.
    pub newcomers: u64,
    /// The number of repaired contradictions, by the name of their kind.
    pub repairs: BTreeMap<String, u64>,
    /// The gaps of each CPU: their number, and their total length in nanoseconds.
    #[serde(deserialize_with = "bounded::deserialize")]
    pub gaps: Vec<(Cpu, u64, u64)>,
    /// The frequency of each CPU: the instant of its latest change, the CPU, kHz.
    #[serde(deserialize_with = "bounded::deserialize")]
    pub frequencies: Vec<(Ts, Cpu, u32)>,
    /// The throttling of cgroups, where the trace has records of it.
    #[serde(default)]
    pub throttling: Option<PastThrottling>,
    /// The notes of analyses that look back, each under a name of its own, as JSON.
    pub notes: BTreeMap<String, String>,
}

/// The state of a CPU before the part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastCpu {
    /// The number of the CPU.
    pub cpu: Cpu,
    /// Whether the CPU had events.
    pub observed: bool,
    /// The occupant of the CPU.
    pub current: Current,
    /// The name of the occupant.
    #[serde(with = "exact")]
    pub comm: Comm,
    /// The instant from which the CPU has this occupant by this name.
    pub since: Ts,
    /// Whether the CPU has been idle or offline since the start.
    pub emptied: bool,
    /// The start of a loss that no event has ended.
    pub lost_since: Option<Ts>,
    /// The task whose waking is the CPU's latest scheduler event, if wakings place tasks.
    pub placing: Option<Pid>,
    /// The number of interrupt handlers that were entered and not left.
    #[serde(default)]
    pub handlers: u32,
    /// The request of the running task at its pick, where that was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub picked: Option<PickedSlice>,
    /// The origin of the softirqs that are to run.
    #[serde(default, skip_serializing_if = "SoftirqOrigin::is_unknown")]
    pub raised: SoftirqOrigin,
}

/// The occupant of a CPU before the part, by the events of that CPU alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Occupant {
    /// The number of the CPU.
    pub cpu: Cpu,
    /// The occupant of the CPU.
    pub current: Current,
    /// The name of the occupant, if the CPU's events have shown it.
    #[serde(with = "exact")]
    pub comm: Comm,
}

/// The state of a task before the part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastTask {
    /// The index in the table of tasks.
    pub place: u32,
    /// The number of the life, counted over all tasks.
    pub life: u32,
    /// The PID of the task.
    pub pid: Pid,
    /// The latest name of the task; empty if none was seen.
    #[serde(with = "exact")]
    pub comm: Comm,
    /// The latest kernel priority of the task; the smallest number if none was seen.
    pub prio: i32,
    /// The state of the task.
    pub state: TaskState,
    /// The instant from which the task is in that state.
    pub since: Ts,
    /// Whether an event began that state.
    pub begun: bool,
    /// The instant of the task's `sched_wakeup_new`, if it was seen.
    pub born: Option<Ts>,
    /// The latest `sched_waking` of the task: the waker, the instant, the waker's CPU, the CPU on which the task last
    /// was.
    pub waking: Option<(Pid, Ts, Cpu, Cpu)>,
    /// Whether a wakeup has followed that waking.
    #[serde(default)]
    pub waking_is_used: bool,
    /// The CPU from which the task's first event migrated it, and whether that CPU had been idle before; `None` if its
    /// first event was another one.
    pub undecided: Option<(Cpu, bool)>,
    /// The CPU on which the task last ran.
    #[serde(default)]
    pub ran_on: Option<Cpu>,
    /// The beginning of the wait, on whatever run queues, while the task waits.
    #[serde(default)]
    pub queued: Option<Ts>,
    /// The way in which the task joined the run queue, while it waits.
    #[serde(default)]
    pub came: Came,
}

/// The throttling of cgroups before the part, with each cgroup by its ID.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastThrottling {
    /// The cgroups with records of throttling on a CPU: the number of limits that throttle the cgroup there, and whether a
    /// record has shown a beginning.
    #[serde(deserialize_with = "bounded::deserialize")]
    pub limits: Vec<(u64, Cpu, u32, bool)>,
    /// The cgroup of each task.
    #[serde(deserialize_with = "bounded::deserialize")]
    pub groups: Vec<(Pid, u64)>,
    /// The running tasks that are about to be throttled, and the time of the record.
    #[serde(deserialize_with = "bounded::deserialize")]
    pub about: Vec<(Cpu, Pid, Ts)>,
    /// Whether tasks are throttled one by one, as kernels from 6.18 on do.
    pub by_task: bool,
    /// Whether the cgroup of a child has a record of its own.
    pub records_forks: bool,
    /// The CPUs that are throttled by records without a cgroup.
    #[serde(default)]
    pub without_cgroup: Vec<Cpu>,
}

/// The CPUs that a task may use, as the latest record of a probe has shown them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastAllowed {
    /// The PID of the task.
    pub pid: Pid,
    /// The list of the CPUs, such as `0-3,8`; `None` if the record did not show the whole set.
    pub cpus: Option<String>,
    /// Whether no event was lost since the record.
    pub is_current: bool,
}

/// The name of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastName {
    /// The PID of the task.
    pub pid: Pid,
    /// The name that the task had.
    #[serde(with = "exact")]
    pub name: Comm,
}

impl Past {
    /// Restores the lineage from before the part.
    pub(crate) fn lineage(&self) -> Lineage {
        let former = self.former.iter().map(|former| (former.pid, former.name));
        let mut application = self.application.clone().unwrap_or_default();
        // They are looked up by number, and a note can be damaged.
        application.members.sort_unstable();
        let application = Arc::new(application);
        Lineage::noted(self.kin.iter().copied(), self.root, self.executed, former, application)
    }

    /// Restores the lineage from before the part as a history, to be continued through the part; an application takes the
    /// place of that of the part.
    pub fn lineages(&self, application: Option<&Arc<Application>>) -> LineageHistory {
        let mut lineage = self.lineage();
        application.into_iter().for_each(|application| lineage.choose(application.clone()));
        LineageHistory::from(lineage)
    }

    /// Restores the names of tasks shortly before the part, to be continued through the part.
    pub fn called(&self) -> NameHistory {
        NameHistory::from(self.names.iter().map(|past| (past.pid, past.name)))
    }

    /// Returns an event that shows the occupant of `cpu` before the part to a reader of that CPU's events alone; `None`
    /// if the CPU had no events before.
    pub fn occupant(&self, cpu: Cpu) -> Option<SchedEvent> {
        let past = self.occupants.iter().find(|past| past.cpu == cpu)?;
        let idle = TaskRef { pid: Pid::IDLE, prio: 0, comm: Comm::EMPTY };
        let kind = match past.current {
            Current::Unknown => EventKind::Lost { count: None },
            Current::Offline => EventKind::Offline,
            Current::Idle => {
                EventKind::Switch { prev: idle, state: PrevState::RUNNABLE, next: TaskRef { comm: past.comm, ..idle } }
            }
            Current::Task(pid) => EventKind::Switch {
                prev: idle,
                state: PrevState::RUNNABLE,
                next: TaskRef { pid, comm: past.comm, ..idle },
            },
        };
        let ts = Ts(self.from.0.saturating_sub(1));
        Some(SchedEvent { ts, cpu, pid: Pid::IDLE, flags: 0, kind })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_every_byte() {
        for name in [b"hackbench".as_slice(), b"\xff\x01\"\\x", b"", b"0123456789abcdef"] {
            let name = PastName { pid: Pid(1), name: Comm::new(name) };
            let text = serde_json::to_string(&name).expect("JSON");
            assert_eq!(serde_json::from_str::<PastName>(&text).expect("a name"), name, "{text}");
        }
        assert!(serde_json::from_str::<PastName>(r#"{"pid":1,"name":"\u0100"}"#).is_err());
    }

    #[test]
    fn long_lists_are_refused() {
        let read = |length: usize| {
            let list = vec!["[0,0,0]"; length].join(",");
            let mut past = serde_json::to_value(Past::default()).expect("JSON");
            past["gaps"] = serde_json::from_str(&format!("[{list}]")).expect("a list");
            serde_json::from_value::<Past>(past).map(|past| past.gaps.len())
        };
        assert_eq!(read(bounded::MOST).expect("a list"), bounded::MOST);
        assert!(read(bounded::MOST + 1).is_err());
    }
}

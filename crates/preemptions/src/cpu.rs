//! The facts that are followed for each CPU: the request that is open there, and the events that can have made it.

use sched::serial::exact;
use sched::{Comm, Cpu, Dur, Pid, Ts};
use serde::{Deserialize, Serialize};

/// The kind of a request to reschedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A request that the task follows as soon as it can be preempted (`TIF_NEED_RESCHED`).
    Immediate,
    /// A request that the task follows when it returns to user mode, or once it is made immediate
    /// (`TIF_NEED_RESCHED_LAZY`, since 6.13).
    Lazy,
    /// A request whose kind no event shows.
    Unknown,
}

impl Kind {
    /// Every kind, in the order of the tables.
    pub const ALL: [Kind; 3] = [Kind::Immediate, Kind::Lazy, Kind::Unknown];
}

/// The end of a request to reschedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// The task was switched out inside the kernel (`R+`).
    InKernel,
    /// The task was switched out on its return to user mode, or called the scheduler itself while it was runnable (`R`).
    ReturnToUser,
    /// The kernel thread was switched out where it called the scheduler itself (`R`): it has no user mode.
    OwnPoint,
    /// The task went to sleep before it was preempted.
    Slept,
    /// The task ended before it was preempted.
    Exited,
    /// The scheduler was called and picked the same task again.
    Kept,
}

impl Ending {
    /// Every ending, in the order of the tables.
    pub const ALL: [Ending; 6] =
        [Ending::InKernel, Ending::ReturnToUser, Ending::OwnPoint, Ending::Slept, Ending::Exited, Ending::Kept];

    /// Whether the task was switched out although it could run: an involuntary switch.
    pub fn is_preemption(self) -> bool {
        matches!(self, Ending::InKernel | Ending::ReturnToUser | Ending::OwnPoint)
    }

    /// The words for the ending in a text.
    pub fn words(self) -> &'static str {
        match self {
            Ending::InKernel => "switched out in the kernel",
            Ending::ReturnToUser => "switched out on return to user mode",
            Ending::OwnPoint => "switched out at a point of its own",
            Ending::Slept => "slept first",
            Ending::Exited => "exited first",
            Ending::Kept => "picked again",
        }
    }
}

/// The origin of a request to reschedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Asker {
    /// The wakeup of a task on the CPU.
    Wakeup,
    /// A new task on the CPU.
    Fork,
    /// The timer interrupt of the CPU: the tick, or the timer that ends a time slice.
    Tick,
    /// A task that was moved to the CPU.
    Balance,
    /// Another origin: the task itself, by a change of its class, priority or group, or the kernel on its behalf.
    Other,
    /// An origin that no event shows. Without the probe this is the tick most often.
    Unseen,
}

impl Asker {
    /// Every asker, in the order of the tables.
    pub const ALL: [Asker; 6] = [Asker::Wakeup, Asker::Fork, Asker::Tick, Asker::Balance, Asker::Other, Asker::Unseen];

    /// The words for the asker in a text.
    pub fn words(self) -> &'static str {
        match self {
            Asker::Wakeup => "a wakeup",
            Asker::Fork => "a new task",
            Asker::Tick => "the tick",
            Asker::Balance => "a task moved there",
            Asker::Other => "the task itself, or others",
            Asker::Unseen => "no event shows it",
        }
    }
}

/// An instant between two others, both of which can be it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Between {
    pub(crate) earliest: Ts,
    pub(crate) latest: Ts,
}

impl Between {
    pub(crate) fn exactly(ts: Ts) -> Between {
        Between { earliest: ts, latest: ts }
    }

    /// The least and the greatest time from here until `later`.
    pub(crate) fn until(self, later: Between) -> [Dur; 2] {
        [later.earliest.since(self.latest), later.latest.since(self.earliest)]
    }
}

/// The origin of a request, with the task that it is about: the one that was woken, created or moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AskedBy {
    pub(crate) asker: Asker,
    /// The instant of the event that shows the origin.
    pub(crate) at: Ts,
    pub(crate) pid: Pid,
    #[serde(with = "exact")]
    pub(crate) comm: Comm,
}

/// A request that is open.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Pending {
    pub(crate) pid: Pid,
    pub(crate) at: Between,
    pub(crate) kind: Kind,
    /// The instant at which a lazy request was made immediate.
    pub(crate) promoted: Option<Between>,
    /// The latest event that shows the request as it is; without the probe, or where it was seen.
    pub(crate) seen: Option<Ts>,
    pub(crate) asked: Option<AskedBy>,
    /// The instant at which the task was picked again, as far as an event without the flag shows it; by the probe alone. The next request, or
    /// the next switch, shows whether it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cleared: Option<Between>,
}

/// The latest event on a CPU that queued a task: the cause of a request that is recorded behind it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct LastQueued {
    pub(crate) target: Cpu,
    /// The context in which it did: a task, a softirq or a hard interrupt.
    pub(crate) context: u8,
    pub(crate) asked: AskedBy,
}

/// A request that ended at the latest switch of a CPU, for the records that follow it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Closed {
    pub(crate) pid: Pid,
    pub(crate) prio: i32,
    pub(crate) row: Option<usize>,
    pub(crate) at: Ts,
}

/// The facts about one CPU.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct CpuTrack {
    /// The latest instant at which the running task was not marked.
    pub(crate) clear: Option<Ts>,
    pub(crate) pending: Option<Pending>,
    /// The latest event of any CPU that queued a task here since then.
    pub(crate) candidate: Option<AskedBy>,
    /// The latest event that this CPU emitted, if it queued a task.
    pub(crate) queued: Option<LastQueued>,
    /// The CPU for which this one made a request; its next event can be the wakeup that made it.
    pub(crate) asks: Option<Cpu>,
    /// The request that ended at the latest switch, if it counts: one before the window does not.
    #[serde(skip)]
    pub(crate) closed: Option<Closed>,
}

//! The causes of migrations and their names.

use serde::{Deserialize, Serialize};

/// The cause of a migration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// Wakeup placement: the task was being woken, and another CPU was chosen.
    Wakeup,
    /// New-idle balance, a steal: a CPU about to idle pulled the task.
    NewIdle,
    /// Idle balance: an idle CPU pulled the task, from its tick or woken for that.
    Idle,
    /// Periodic balance: a busy CPU pulled the task, from its tick.
    Periodic,
    /// Nohz idle balance (ILB): a CPU moved the task between two others.
    #[serde(alias = "behalf")]
    NohzIdle,
    /// New-idle balance of a sleeper: a CPU about to idle moved the task along with others while it slept.
    NewIdleSleeper,
    /// Idle balance of a sleeper: an idle CPU moved the task while it slept.
    IdleSleeper,
    /// Periodic balance of a sleeper: a busy CPU moved the task while it slept.
    PeriodicSleeper,
    /// Nohz idle balance of a sleeper: a CPU moved the task between two others while it slept.
    #[serde(alias = "behalf-sleeper")]
    NohzIdleSleeper,
    /// Active balance: the stopper moved the running task for another CPU.
    Active,
    /// Change of affinity: the stopper moved the task because its CPU was no longer allowed.
    Affinity,
    /// Active balance or change of affinity: the stopper moved the task, and no event shows its waker.
    Stopper,
    /// Exec: the task was to run a new program, and another CPU was chosen.
    Exec,
    /// NUMA move: the task went to the node of its memory.
    NumaMove,
    /// NUMA swap: the task was exchanged with another, each going to the node of its memory.
    NumaSwap,
    /// Push or pull by the real-time or deadline class.
    RealTime,
    /// Unknown: none of the other causes fits.
    Unknown,
}

impl Cause {
    /// All causes, in the order of their indices.
    pub const ALL: [Cause; 17] = [
        Cause::Wakeup,
        Cause::NewIdle,
        Cause::Idle,
        Cause::Periodic,
        Cause::NohzIdle,
        Cause::NewIdleSleeper,
        Cause::IdleSleeper,
        Cause::PeriodicSleeper,
        Cause::NohzIdleSleeper,
        Cause::Active,
        Cause::Affinity,
        Cause::Stopper,
        Cause::Exec,
        Cause::NumaMove,
        Cause::NumaSwap,
        Cause::RealTime,
        Cause::Unknown,
    ];

    /// The name of the cause, for people.
    pub fn name(self) -> &'static str {
        match self {
            Cause::Wakeup => "wakeup placement",
            Cause::NewIdle => "new-idle pull (steal)",
            Cause::Idle => "idle balance",
            Cause::Periodic => "periodic balance",
            Cause::NohzIdle => "nohz idle balance (ILB)",
            Cause::NewIdleSleeper => "new-idle pull of a sleeper",
            Cause::IdleSleeper => "idle balance of a sleeper",
            Cause::PeriodicSleeper => "periodic balance of a sleeper",
            Cause::NohzIdleSleeper => "nohz idle balance of a sleeper",
            Cause::Active => "active balance",
            Cause::Affinity => "affinity",
            Cause::Stopper => "active balance or affinity",
            Cause::Exec => "exec",
            Cause::NumaMove => "NUMA move",
            Cause::NumaSwap => "NUMA swap",
            Cause::RealTime => "real-time push or pull",
            Cause::Unknown => "unknown",
        }
    }

    /// The cause of the same kind for a task that sleeps, if the balancer moves such tasks for this cause.
    pub(super) fn of_sleeper(self) -> Option<Cause> {
        match self {
            Cause::NewIdle => Some(Cause::NewIdleSleeper),
            Cause::Idle => Some(Cause::IdleSleeper),
            Cause::Periodic => Some(Cause::PeriodicSleeper),
            Cause::NohzIdle => Some(Cause::NohzIdleSleeper),
            _ => None,
        }
    }

    /// The cause of the same kind for a task that turns out not to have slept.
    pub(super) fn of_waiter(self) -> Cause {
        match self {
            // The beginning of its wait is unknown, so this is no steal.
            Cause::NewIdleSleeper => Cause::Unknown,
            Cause::IdleSleeper => Cause::Idle,
            Cause::PeriodicSleeper => Cause::Periodic,
            Cause::NohzIdleSleeper => Cause::NohzIdle,
            other => other,
        }
    }
}

//! The causes of migrations and their names.

use serde::{Deserialize, Serialize};

/// Why a task was migrated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// It was being woken, and placed elsewhere.
    Wakeup,
    /// A CPU about to idle pulled it: a steal.
    NewIdle,
    /// An idle CPU pulled it, from its tick or woken for that.
    Idle,
    /// A busy CPU pulled it, from its tick.
    Periodic,
    /// A CPU moved it between two others.
    Behalf,
    /// A CPU about to idle moved it along with others while it slept.
    NewIdleSleeper,
    /// An idle CPU moved it while it slept.
    IdleSleeper,
    /// A busy CPU moved it while it slept.
    PeriodicSleeper,
    /// A CPU moved it between two others while it slept.
    BehalfSleeper,
    /// The stopper moved it for another CPU: active balance.
    Active,
    /// The stopper moved it because its CPU was not allowed any more: a change of affinity.
    Affinity,
    /// The stopper moved it, and what woke the stopper was not recorded: active balance, or a change of affinity.
    Stopper,
    /// It was to run a new program, and that elsewhere.
    Exec,
    /// To where its memory is.
    NumaMove,
    /// In exchange for another, to where their memories are.
    NumaSwap,
    /// By the real-time or deadline class.
    RealTime,
    /// None of these.
    Unknown,
}

impl Cause {
    /// All of them, in the order of their indices.
    pub const ALL: [Cause; 17] = [
        Cause::Wakeup,
        Cause::NewIdle,
        Cause::Idle,
        Cause::Periodic,
        Cause::Behalf,
        Cause::NewIdleSleeper,
        Cause::IdleSleeper,
        Cause::PeriodicSleeper,
        Cause::BehalfSleeper,
        Cause::Active,
        Cause::Affinity,
        Cause::Stopper,
        Cause::Exec,
        Cause::NumaMove,
        Cause::NumaSwap,
        Cause::RealTime,
        Cause::Unknown,
    ];

    /// Its name, for people.
    pub fn name(self) -> &'static str {
        match self {
            Cause::Wakeup => "wakeup placement",
            Cause::NewIdle => "new-idle pull (steal)",
            Cause::Idle => "idle balance",
            Cause::Periodic => "periodic balance",
            Cause::Behalf => "balance on behalf",
            Cause::NewIdleSleeper => "new-idle pull of a sleeper",
            Cause::IdleSleeper => "idle balance of a sleeper",
            Cause::PeriodicSleeper => "periodic balance of a sleeper",
            Cause::BehalfSleeper => "balance of a sleeper on behalf",
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

    /// The same of a task that sleeps, if the balancer moves such tasks for this cause.
    pub(super) fn of_sleeper(self) -> Option<Cause> {
        match self {
            Cause::NewIdle => Some(Cause::NewIdleSleeper),
            Cause::Idle => Some(Cause::IdleSleeper),
            Cause::Periodic => Some(Cause::PeriodicSleeper),
            Cause::Behalf => Some(Cause::BehalfSleeper),
            _ => None,
        }
    }

    /// The same of a task that turns out not to have slept.
    pub(super) fn of_waiter(self) -> Cause {
        match self {
            // When it began to wait is not known, so this is no steal.
            Cause::NewIdleSleeper => Cause::Unknown,
            Cause::IdleSleeper => Cause::Idle,
            Cause::PeriodicSleeper => Cause::Periodic,
            Cause::BehalfSleeper => Cause::Behalf,
            other => other,
        }
    }
}

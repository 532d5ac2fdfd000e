//! The scheduling policies of tasks.

use serde::{Deserialize, Serialize};

/// A scheduling policy, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, clap::ValueEnum, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SchedPolicy {
    /// The policy `SCHED_DEADLINE`.
    Deadline,
    /// The policy `SCHED_FIFO`.
    Fifo,
    /// The policy `SCHED_RR`.
    #[value(alias = "rr")]
    RoundRobin,
    /// A policy of real-time tasks, by the priority; nothing shows which one.
    RealTime,
    /// The policy `SCHED_OTHER`, also called `SCHED_NORMAL`.
    Other,
    /// The policy `SCHED_BATCH`.
    Batch,
    /// The policy `SCHED_IDLE`.
    Idle,
    /// The policy `SCHED_EXT`.
    Ext,
    /// A policy of the fair class or `SCHED_EXT`, by the priority; nothing shows which one. The task can be one of `SCHED_IDLE`.
    Fair,
}

impl SchedPolicy {
    /// All policies, in the order of their classes.
    pub const ALL: [SchedPolicy; 9] = [
        SchedPolicy::Deadline,
        SchedPolicy::Fifo,
        SchedPolicy::RoundRobin,
        SchedPolicy::RealTime,
        SchedPolicy::Other,
        SchedPolicy::Batch,
        SchedPolicy::Idle,
        SchedPolicy::Ext,
        SchedPolicy::Fair,
    ];

    /// The policy with this number in the kernel's interface.
    pub fn of_number(number: i64) -> Option<SchedPolicy> {
        Some(match number {
            0 => SchedPolicy::Other,
            1 => SchedPolicy::Fifo,
            2 => SchedPolicy::RoundRobin,
            3 => SchedPolicy::Batch,
            5 => SchedPolicy::Idle,
            6 => SchedPolicy::Deadline,
            7 => SchedPolicy::Ext,
            _ => return None,
        })
    }

    /// The policy that a kernel priority shows: below 0 deadline, below 100 a real-time policy, otherwise one of the fair class.
    pub(crate) fn of_prio(prio: i32) -> SchedPolicy {
        match prio {
            ..0 => SchedPolicy::Deadline,
            0..100 => SchedPolicy::RealTime,
            _ => SchedPolicy::Fair,
        }
    }

    /// Whether a selection of this policy takes a task of the policy `of`. That of a class takes all policies of the class, known and
    /// unknown; any other takes the tasks that are known to have it.
    pub fn takes(self, of: SchedPolicy) -> bool {
        use SchedPolicy::{Batch, Ext, Fair, Fifo, Idle, Other, RealTime, RoundRobin};
        self == of
            || match self {
                Fair => matches!(of, Other | Batch | Idle | Ext),
                RealTime => matches!(of, Fifo | RoundRobin),
                _ => false,
            }
    }

    /// Whether a task of this policy can have the priority. One that holds a lock which a task of a higher class waits for can have
    /// another one meanwhile.
    pub(crate) fn agrees_with(self, prio: i32) -> bool {
        match self {
            SchedPolicy::Deadline => prio < 0,
            SchedPolicy::Fifo | SchedPolicy::RoundRobin | SchedPolicy::RealTime => (0..100).contains(&prio),
            SchedPolicy::Other | SchedPolicy::Batch | SchedPolicy::Idle | SchedPolicy::Ext | SchedPolicy::Fair => {
                prio >= 100
            }
        }
    }

    /// The name of the policy in tables and options: `SCHED_IDLE`; `real-time` and `fair` where only the class is known.
    pub fn name(self) -> &'static str {
        match self {
            SchedPolicy::Deadline => "SCHED_DEADLINE",
            SchedPolicy::Fifo => "SCHED_FIFO",
            SchedPolicy::RoundRobin => "SCHED_RR",
            SchedPolicy::RealTime => "real-time",
            SchedPolicy::Other => "SCHED_OTHER",
            SchedPolicy::Batch => "SCHED_BATCH",
            SchedPolicy::Idle => "SCHED_IDLE",
            SchedPolicy::Ext => "SCHED_EXT",
            SchedPolicy::Fair => "fair",
        }
    }
}

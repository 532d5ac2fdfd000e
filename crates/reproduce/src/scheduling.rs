//! The policy and the priority of a task, as a program sets them.

use membership::SchedPolicy;

/// A policy that a program can set without further parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SetPolicy {
    Other,
    Fifo,
    RoundRobin,
    Batch,
    Idle,
}

impl SetPolicy {
    /// The name of the policy.
    pub(crate) fn name(self) -> &'static str {
        match self {
            SetPolicy::Other => "SCHED_OTHER",
            SetPolicy::Fifo => "SCHED_FIFO",
            SetPolicy::RoundRobin => "SCHED_RR",
            SetPolicy::Batch => "SCHED_BATCH",
            SetPolicy::Idle => "SCHED_IDLE",
        }
    }

    /// The number that the system call takes.
    pub(crate) fn number(self) -> i64 {
        match self {
            SetPolicy::Other => 0,
            SetPolicy::Fifo => 1,
            SetPolicy::RoundRobin => 2,
            SetPolicy::Batch => 3,
            SetPolicy::Idle => 5,
        }
    }
}

/// A policy with a priority: the nice value, or the real-time priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scheduling {
    pub(crate) policy: SetPolicy,
    pub(crate) priority: i32,
}

impl Scheduling {
    /// The policy and the priority of a task by its policy, if that is known, and its kernel priority. A deadline task has no parameters
    /// that a program could set: it runs with the highest real-time priority.
    pub(crate) fn of(policy: Option<SchedPolicy>, prio: i32) -> Scheduling {
        match (policy, prio) {
            (Some(SchedPolicy::RoundRobin), 0..100) => {
                Scheduling { policy: SetPolicy::RoundRobin, priority: (99 - prio).max(1) }
            }
            (_, 0..100) => Scheduling { policy: SetPolicy::Fifo, priority: (99 - prio).max(1) },
            (_, ..0) => Scheduling { policy: SetPolicy::Fifo, priority: 99 },
            (policy, _) => {
                let policy = match policy {
                    Some(SchedPolicy::Batch) => SetPolicy::Batch,
                    Some(SchedPolicy::Idle) => SetPolicy::Idle,
                    _ => SetPolicy::Other,
                };
                Scheduling { policy, priority: (prio - 120).clamp(-20, 19) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_of_the_kernel_are_those_of_programs() {
        let of = |policy, prio| {
            let Scheduling { policy, priority } = Scheduling::of(policy, prio);
            (policy.name(), priority)
        };
        assert_eq!(of(None, 120), ("SCHED_OTHER", 0));
        assert_eq!(of(None, 139), ("SCHED_OTHER", 19));
        assert_eq!(of(Some(SchedPolicy::Batch), 110), ("SCHED_BATCH", -10));
        assert_eq!(of(Some(SchedPolicy::Idle), 120), ("SCHED_IDLE", 0));
        assert_eq!(of(None, 98), ("SCHED_FIFO", 1));
        assert_eq!(of(Some(SchedPolicy::RoundRobin), 0), ("SCHED_RR", 99));
        assert_eq!(of(Some(SchedPolicy::Deadline), -1), ("SCHED_FIFO", 99));
        // A policy that the priority contradicts is not believed.
        assert_eq!(of(Some(SchedPolicy::Fifo), 120), ("SCHED_OTHER", 0));
    }
}

//! Readings at the ends of waits, and the times between them.

use super::HELD_BACK;
use super::weighing::WaiterClass;
use crate::event::task_id::TaskId;
use crate::event::{Cpu, Ts};
use serde::Serialize;

/// Queued time by kind, in nanoseconds (`docs/read-the-numbers.md#queued-time`). The kinds sum to the whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QueuedTimes {
    /// The time on an idle CPU, the task's own, for 1 ms or longer, in nanoseconds.
    pub held_back_ns: u64,
    /// The time while another CPU idled that the task may use, in nanoseconds.
    pub beside_idle_ns: u64,
    /// The time while a CPU that the task may use had a shorter queue, in which the task would have had a larger share of the time, in
    /// nanoseconds.
    pub beside_shorter_ns: u64,
    /// The time while all queues were alike, in nanoseconds: the task waited for CPU time.
    pub alike_ns: u64,
    /// The part of the last two while a CPU idled that the task may not use, in nanoseconds; absent if it is zero.
    #[serde(skip_serializing_if = "is_zero")]
    pub beside_forbidden_ns: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's form
fn is_zero(ns: &u64) -> bool {
    *ns == 0
}

impl QueuedTimes {
    /// The sum of the kinds, in nanoseconds.
    pub fn total(&self) -> u64 {
        let QueuedTimes { held_back_ns, beside_idle_ns, beside_shorter_ns, alike_ns, .. } = *self;
        [held_back_ns, beside_idle_ns, beside_shorter_ns, alike_ns].into_iter().fold(0, u64::saturating_add)
    }

    /// The times of a part of a wait that has this length, in nanoseconds, with the shares of the whole.
    #[must_use]
    pub fn in_proportion(&self, length: u64) -> QueuedTimes {
        let all = self.total();
        if length == all {
            return *self;
        }
        let part = |ns: u64| (u128::from(ns) * u128::from(length) / u128::from(all.max(1))) as u64;
        let (held_back_ns, beside_idle_ns) = (part(self.held_back_ns), part(self.beside_idle_ns));
        let beside_shorter_ns = part(self.beside_shorter_ns);
        let alike_ns = length.saturating_sub(held_back_ns + beside_idle_ns + beside_shorter_ns);
        let beside_forbidden_ns = part(self.beside_forbidden_ns).min(beside_shorter_ns + alike_ns);
        QueuedTimes { held_back_ns, beside_idle_ns, beside_shorter_ns, alike_ns, beside_forbidden_ns }
    }

    /// Adds the times of another wait, or of another part of the wait.
    pub fn add(&mut self, more: &QueuedTimes) {
        for (sum, ns) in [
            (&mut self.held_back_ns, more.held_back_ns),
            (&mut self.beside_idle_ns, more.beside_idle_ns),
            (&mut self.beside_shorter_ns, more.beside_shorter_ns),
            (&mut self.alike_ns, more.alike_ns),
            (&mut self.beside_forbidden_ns, more.beside_forbidden_ns),
        ] {
            *sum = sum.saturating_add(ns);
        }
    }
}

/// Sums over time by kind, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KindSums {
    pub(crate) held: i64,
    pub(crate) idle: i64,
    pub(crate) shorter: i64,
    /// The time beside any idle CPU.
    pub(crate) any: i64,
}

impl KindSums {
    #[must_use]
    pub(crate) fn plus(self, more: KindSums) -> KindSums {
        KindSums {
            held: self.held.wrapping_add(more.held),
            idle: self.idle.wrapping_add(more.idle),
            shorter: self.shorter.wrapping_add(more.shorter),
            any: self.any.wrapping_add(more.any),
        }
    }

    #[must_use]
    pub(crate) fn minus(self, less: KindSums) -> KindSums {
        KindSums {
            held: self.held.wrapping_sub(less.held),
            idle: self.idle.wrapping_sub(less.idle),
            shorter: self.shorter.wrapping_sub(less.shorter),
            any: self.any.wrapping_sub(less.any),
        }
    }
}

/// The interval that was pending on the CPU of a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PendingReading {
    pub(crate) ordinal: u32,
    pub(crate) since: Ts,
    /// The amounts that come to the sums if the interval is held back.
    pub(crate) moved: KindSums,
}

impl PendingReading {
    /// Whether the interval would be held back if it ended at this instant.
    pub(crate) fn is_held_at(&self, at: Ts) -> bool {
        at.since(self.since) >= HELD_BACK
    }
}

/// A reading of the kinds on a CPU, for the tasks that may use certain CPUs. The difference of two is the time between them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueuedReading {
    pub(crate) at: Ts,
    pub(crate) cpu: Cpu,
    pub(crate) class: WaiterClass,
    /// The task that waits; `None` where it may be any.
    pub(crate) task: Option<TaskId>,
    /// The number of times that its weight had changed within the wait.
    pub(crate) changes: u32,
    pub(crate) sums: KindSums,
    pub(crate) pending: Option<PendingReading>,
}

impl QueuedReading {
    /// The instant of the reading.
    pub fn at(&self) -> Ts {
        self.at
    }
}

/// The time between two readings of one class on one CPU. `was_held`: whether an interval that has ended since the first one was held back;
/// `is_held`: whether the one that is pending at the second one counts as such at this instant.
pub(crate) fn between(
    begun: &QueuedReading,
    end: &QueuedReading,
    was_held: impl Fn(u32) -> bool,
    is_held: impl Fn(&PendingReading, Ts) -> bool,
) -> QueuedTimes {
    let mut sums = end.sums.minus(begun.sums);
    let goes_on = |first: &PendingReading| end.pending.is_some_and(|last| last.ordinal == first.ordinal);
    if let Some(last) = end.pending.filter(|last| is_held(last, end.at)) {
        sums = sums.plus(last.moved);
    }
    if let Some(first) = begun.pending {
        let held = if goes_on(&first) {
            end.pending.is_some_and(|last| is_held(&last, end.at))
        } else {
            was_held(first.ordinal)
        };
        if held {
            sums = sums.minus(first.moved);
        }
    }
    let all = end.at.since(begun.at).0;
    let ns = |sum: i64| u64::try_from(sum).unwrap_or(0);
    // Whatever a file has, the kinds sum to the whole.
    let held_back_ns = ns(sums.held).min(all);
    let beside_idle_ns = ns(sums.idle).min(all - held_back_ns);
    let beside_shorter_ns = ns(sums.shorter).min(all - held_back_ns - beside_idle_ns);
    let alike_ns = all - held_back_ns - beside_idle_ns - beside_shorter_ns;
    let beside_forbidden_ns = ns(sums.any.wrapping_sub(sums.idle)).min(beside_shorter_ns + alike_ns);
    QueuedTimes { held_back_ns, beside_idle_ns, beside_shorter_ns, alike_ns, beside_forbidden_ns }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_wait_has_the_shares_of_the_whole() {
        let whole = QueuedTimes {
            held_back_ns: 10,
            beside_idle_ns: 20,
            beside_shorter_ns: 30,
            alike_ns: 40,
            beside_forbidden_ns: 5,
        };
        let part = whole.in_proportion(55);
        let expected = QueuedTimes {
            held_back_ns: 5,
            beside_idle_ns: 11,
            beside_shorter_ns: 16,
            alike_ns: 23,
            beside_forbidden_ns: 2,
        };
        assert_eq!((part, part.total()), (expected, 55));
        assert_eq!(whole.in_proportion(100), whole);
        assert_eq!(QueuedTimes::default().in_proportion(7).alike_ns, 7);
    }
}

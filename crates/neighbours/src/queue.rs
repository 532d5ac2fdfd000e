//! The queues of the CPUs as the analysis sees them, and what a later piece of a pass leaves to the pieces before.

use crate::parties::Parties;
use crate::sums::MatrixSums;
use sched::{Cpu, HELD_BACK, PerTask, TaskId, Ts};

/// A CPU as the analysis sees it.
#[derive(Clone, Debug, Default)]
pub(crate) struct QueueNow {
    /// Up to here its time has been accounted for.
    pub(crate) since: Ts,
    /// The occupant, by its place among the culprits.
    pub(crate) culprit: usize,
    /// The victims that wait, each by its place with the number of its waiting tasks.
    pub(crate) waiting: Vec<(usize, u64)>,
    /// The throttled tasks, likewise.
    pub(crate) throttled: Vec<(usize, u64)>,
    /// Whether the CPU has had an event, so that its waiting tasks count.
    pub(crate) is_observed: bool,
    /// The interval in which the CPU idles and tasks are queued on it, while it goes on.
    pub(crate) idling: Option<IdleQueue>,
    /// The number of such intervals so far, which distinguishes them.
    pub(crate) intervals: u64,
}

/// An interval in which a CPU idles and tasks are queued on it. Its length decides what the tasks waited for.
#[derive(Clone, Debug)]
pub(crate) struct IdleQueue {
    pub(crate) since: Ts,
    /// The time of the idle task so far, in nanoseconds: that of interrupts is not.
    pub(crate) ns: u64,
    /// The waiting of each victim in that time, in nanoseconds of tasks.
    pub(crate) waited: Vec<(usize, u64)>,
    /// Whether the interval began before this piece of a pass, which has no start of it then.
    pub(crate) is_earlier: bool,
}

impl IdleQueue {
    /// The culprit of the interval up to an instant. `is_unseen`: it ends at a switch away from a task, which ran for an unknown part of it.
    pub(crate) fn culprit(&self, ts: Ts, is_unseen: bool) -> usize {
        if ts.since(self.since) >= HELD_BACK && !is_unseen { Parties::HELD_BACK } else { Parties::IDLE }
    }

    /// The waiting of a victim.
    pub(crate) fn of(&mut self, victim: usize) -> &mut u64 {
        let place = self.waited.iter().position(|(other, _)| *other == victim);
        let place = place.unwrap_or_else(|| {
            self.waited.push((victim, 0));
            self.waited.len() - 1
        });
        &mut self.waited[place].1
    }
}

/// A task that is counted among those of a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueuedVictim {
    pub(crate) cpu: Cpu,
    /// The place of the task's group.
    pub(crate) victim: usize,
    pub(crate) throttled: bool,
    /// The interval of the idle CPU in which the task joined the queue, and the idle task's time in it up to then.
    pub(crate) joined: (u64, u64),
}

impl QueueNow {
    /// The victims that wait, or those that are throttled.
    pub(crate) fn of(&mut self, throttled: bool) -> &mut Vec<(usize, u64)> {
        if throttled { &mut self.throttled } else { &mut self.waiting }
    }
}

impl MatrixSums {
    /// Adds the waiting in an interval of an idle CPU that ends.
    pub(crate) fn add_idling(&mut self, idling: &IdleQueue, ts: Ts, is_unseen: bool) {
        let culprit = idling.culprit(ts, is_unseen);
        idling.waited.iter().for_each(|(victim, ns)| self.add_wait((*victim, culprit), *ns));
    }
}

/// A CPU as a later piece has found it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FoundCpu {
    pub(crate) culprit: usize,
    pub(crate) is_observed: bool,
    pub(crate) idles: bool,
}

/// The beginning of a later piece, and what is left to the pieces before.
#[derive(Debug)]
pub(crate) struct Resumed {
    pub(crate) at: Ts,
    pub(crate) cpus: Vec<FoundCpu>,
    /// The queued tasks that the piece has found.
    pub(crate) queued: PerTask<QueuedVictim>,
    /// The tasks of these that have not left their queues since.
    pub(crate) still_queued: PerTask<()>,
    /// The number of tasks that the piece has found.
    pub(crate) tasks: usize,
    pub(crate) left: Vec<IdlingLeft>,
}

/// A part of an interval of an idle CPU that began in an earlier piece.
#[derive(Clone, Debug)]
pub(crate) enum IdlingLeft {
    /// A task of the queue leaves it, of which this piece has `ns` in the interval; `task` was queued in an earlier piece, if it is known.
    Left { cpu: Cpu, task: Option<TaskId>, victim: usize, ns: u64, ts: Ts, is_unseen: bool },
    /// The interval ends.
    Ended { cpu: Cpu, idling: IdleQueue, ts: Ts, is_unseen: bool },
}

impl IdleQueue {
    /// The same interval with its part in a later piece, of whose parties each has this place here.
    pub(crate) fn with(mut self, later: &IdleQueue, places: &[usize]) -> IdleQueue {
        self.ns = self.ns.saturating_add(later.ns);
        for (victim, ns) in &later.waited {
            let waited = self.of(places[*victim]);
            *waited = waited.saturating_add(*ns);
        }
        self
    }
}

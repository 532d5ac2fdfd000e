//! Waiters whose weight changes while they wait: each part of such a wait compares queues by the weight that the task has then.

use super::readings::{self, PendingReading, QueuedReading, QueuedTimes};
use super::weighing::WaiterClass;
use super::{QueuedKinds, QueuedWaiter};
use crate::event::Ts;
use crate::event::span::TaskState;
use crate::event::task_id::TaskId;
use crate::state::{SchedState, Task};

/// Maximum number of changes of the weights of tasks within their waits that are followed at once. Behind a further one a task keeps its weight.
const MOST_CHANGES: usize = 1 << 16;

/// The change of the weight of a task within a wait: the last reading by the old weight, and the first one by the new, at the same instant.
#[derive(Clone, Copy, Debug)]
pub(super) struct WeightChange {
    before: QueuedReading,
    behind: QueuedReading,
}

/// The changes within the latest wait of a task.
#[derive(Clone, Debug)]
struct ChangedWait {
    task: TaskId,
    /// Whether the wait began before this piece of a pass.
    is_earlier: bool,
    changes: Vec<WeightChange>,
}

/// The changes of the weights of tasks within their latest waits.
#[derive(Clone, Debug, Default)]
pub(super) struct WeightChanges {
    waits: Vec<Option<ChangedWait>>,
    number: usize,
}

impl WeightChanges {
    /// Whether no weight has changed within a wait that may still go on.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.number == 0
    }

    fn of(&self, task: TaskId) -> &[WeightChange] {
        let wait = self.waits.get(task.index()).and_then(Option::as_ref).filter(|wait| wait.task == task);
        wait.map_or(&[], |wait| &wait.changes)
    }

    /// The class of a wait at its beginning, if it has changed since.
    pub(super) fn first_class(&self, task: TaskId) -> Option<WaiterClass> {
        self.of(task).first().map(|change| change.before.class)
    }

    /// Forgets the changes within the wait before.
    #[inline]
    pub(super) fn begin_wait(&mut self, task: TaskId) {
        if self.number > 0 {
            self.forget(task);
        }
    }

    #[cold]
    #[inline(never)]
    fn forget(&mut self, task: TaskId) {
        let before = self.waits.get_mut(task.index()).and_then(Option::take);
        self.number -= before.map_or(0, |wait| wait.changes.len());
    }

    fn add(&mut self, task: TaskId, is_earlier: bool, change: WeightChange) {
        if task.index() >= self.waits.len() {
            self.waits.resize(task.index() + 1, None);
        }
        let wait = &mut self.waits[task.index()];
        if wait.as_ref().is_some_and(|wait| wait.task != task) {
            let other = wait.take();
            self.number -= other.map_or(0, |wait| wait.changes.len());
        }
        wait.get_or_insert_with(|| ChangedWait { task, is_earlier, changes: Vec::new() }).changes.push(change);
        self.number += 1;
    }

    /// Whether a later piece can be joined so that none is too many.
    pub(super) fn fit(&self, later: &WeightChanges) -> bool {
        self.number + later.number <= MOST_CHANGES
    }
}

impl QueuedKinds {
    /// Weighs the waiting tasks anew whose priority or policy the last event changed.
    #[cold]
    #[inline(never)]
    pub(super) fn reweigh(&mut self, now: Ts, state: &SchedState) {
        for id in state.reweighed() {
            // The wait of a task that has a span ends here, and another one may begin.
            if state.spans().iter().any(|span| span.task == *id) {
                continue;
            }
            let (Some(task), Some(waiter)) = (state.task(*id), self.classes.get(*id).copied()) else { continue };
            self.reweigh_task(task, waiter, now);
        }
    }

    fn reweigh_task(&mut self, task: &Task, waiter: QueuedWaiter, now: Ts) {
        let TaskState::Waiting(cpu) = task.state else { return };
        if self.changes.number >= MOST_CHANGES {
            return;
        }
        let usable = waiter.class.usable;
        let class = WaiterClass { usable, weight: self.weight_of(task, usable, now) };
        if class == waiter.class {
            return;
        }
        let number = self.changes.of(task.id()).len() as u32;
        let reading = |class: WaiterClass, changes: u32| self.reading((Some(task.id()), changes), class, cpu, now);
        let change = WeightChange { before: reading(waiter.class, number), behind: reading(class, number + 1) };
        if let Some(pending) = self.cpus.get_mut(cpu.index()).and_then(|entry| entry.pending.as_mut()) {
            pending.is_noted = true;
        }
        self.changes.add(task.id(), !waiter.began_here, change);
        self.classes.insert(task.id(), QueuedWaiter { class, ..waiter });
    }

    /// The class by which a wait is read now, and the number of changes up to now.
    pub(super) fn latest_class(&self, begun: &QueuedReading) -> (WaiterClass, u32) {
        let changes = begun.task.map_or(&[][..], |task| self.changes.of(task));
        changes.last().map_or((begun.class, begun.changes), |change| (change.behind.class, changes.len() as u32))
    }

    /// The changes between two readings of a wait.
    fn changes_between(&self, begun: &QueuedReading, end: &QueuedReading) -> &[WeightChange] {
        let Some(task) = begun.task.filter(|_| self.changes.number > 0) else { return &[] };
        let all = self.changes.of(task);
        let to = match end.task {
            Some(_) => end.changes as usize,
            // A reading of any task.
            None => all.partition_point(|change| change.before.at <= end.at),
        };
        all.get(begun.changes as usize..to).unwrap_or(&[])
    }

    /// Whether two readings on the same CPU are of one wait, or of tasks that are alike.
    pub(super) fn are_alike(&self, begun: &QueuedReading, end: &QueuedReading) -> bool {
        let class = self.changes_between(begun, end).last().map_or(begun.class, |change| change.behind.class);
        let is_same_weight = class.weight == end.class.weight || !self.has_weighed;
        (class.usable, begun.cpu) == (end.class.usable, end.cpu) && is_same_weight
    }

    /// The time between two readings that are alike. `is_held`: whether the interval that is pending at the second one counts as held back.
    pub(super) fn times(&self, begun: &QueuedReading, end: &QueuedReading, is_held: bool) -> QueuedTimes {
        let was_held = |ordinal: u32| self.was_held(begun.cpu, ordinal);
        let is_held = |last: &PendingReading, _| match end.pending {
            Some(pending) if pending.ordinal == last.ordinal => is_held,
            _ => was_held(last.ordinal),
        };
        let mut times = QueuedTimes::default();
        let mut from = begun;
        for change in self.changes_between(begun, end) {
            times.add(&readings::between(from, &change.before, was_held, is_held));
            from = &change.behind;
        }
        times.add(&readings::between(from, end, was_held, is_held));
        times
    }

    /// Adds the changes of a later piece, before anything else of it is added.
    pub(super) fn join_changes(&mut self, later: &QueuedKinds) {
        if self.changes.number > 0 {
            let begun = later.classes.iter().filter(|(_, waiter)| waiter.began_here);
            begun.for_each(|(task, _)| self.changes.forget(task));
        }
        for wait in later.changes.waits.iter().flatten() {
            let ChangedWait { task, is_earlier, changes } = wait;
            let before = if *is_earlier { self.changes.of(*task).len() as u32 } else { 0 };
            let is_earlier = *is_earlier && !self.classes.get(*task).is_some_and(|waiter| waiter.began_here);
            for change in changes {
                let shifted = |reading: &QueuedReading| QueuedReading {
                    changes: reading.changes + before,
                    ..self.shifted(reading, later)
                };
                let change = WeightChange { before: shifted(&change.before), behind: shifted(&change.behind) };
                self.changes.add(*task, is_earlier, change);
            }
        }
    }
}

//! The run queues of woken tasks: those of their `sched_wakeup`.
//!
//! In a trace without any `sched_wakeup` (the usual event set of Perfetto) the wakings place the tasks. A `sched_waking`
//! precedes the choice of a CPU; its `target_cpu` is the task's previous CPU. In between interrupts are
//! disabled on the waker's CPU, so where another CPU is chosen, `sched_migrate_task` is the waker's next scheduler
//! event. The task is taken to be queued at the waking, hence too early by the time until the wakeup.
//!
//! A waking of a task that still runs is ambiguous: the task may be about to sleep, or stay awake. Only its next
//! switch-in without another waking shows that it slept and was woken.

use super::{SchedState, Slot, Waking};
use crate::event::diag::EventIssue;
use crate::event::span::TaskState;
use crate::event::{Cpu, EventKind, SchedEvent, TaskRef};

impl SchedState {
    /// Follows a `sched_waking`.
    pub(super) fn waking(&mut self, task: TaskRef, target: Cpu, event: &SchedEvent) {
        let found = match self.find(task) {
            Some(slot) => Some(slot),
            None => self.sleeper(task, target),
        };
        let Some(slot) = found else { return };
        let entry = self.tasks.entry(slot);
        entry.undecided = None;
        entry.waking = Some(Waking { by: event.pid, at: event.ts, on: event.cpu, previous: target });
        entry.waking_is_used = false;
        if self.by_wakings {
            self.place(slot, target);
        }
    }

    /// Follows a `sched_wakeup`, which queues the task.
    pub(super) fn wakeup(&mut self, task: TaskRef, target: Cpu) {
        let found = match self.find(task) {
            Some(slot) => Some(slot),
            None => self.sleeper(task, target),
        };
        let Some(slot) = found else { return };
        let entry = self.tasks.entry(slot);
        // A waking names the waker of one wakeup.
        let is_used = std::mem::replace(&mut entry.waking_is_used, true);
        match entry.state {
            TaskState::Running(_) => {
                self.repair(EventIssue::EarlyWakeup);
                self.tasks.entry(slot).waking = None;
            }
            // The waking is that of the wait that goes on.
            TaskState::Waiting(cpu) | TaskState::Throttled(cpu) if cpu == target => {}
            _ => {
                if is_used {
                    entry.waking = None;
                }
                self.queue(slot, target);
            }
        }
    }

    /// Queues the task in `slot`, which does not run, on `target` from now on.
    #[inline(always)]
    fn queue(&mut self, slot: Slot, target: Cpu) {
        match self.tasks.entry(slot).state {
            TaskState::Waiting(cpu) | TaskState::Throttled(cpu) if cpu == target => {}
            TaskState::Waiting(_) | TaskState::Throttled(_) => {
                // The task has slept meanwhile; otherwise it would wait on `target` already.
                self.repair(EventIssue::WakeupTargetCorrected);
                self.change(slot, TaskState::Waiting(target), self.now, false, true);
            }
            _ => self.enter(slot, TaskState::Waiting(target), self.now),
        }
    }

    /// Whether `sched_waking` places the tasks, since no `sched_wakeup` was recorded: waits begin too early, by the
    /// unknown time from the waking to the wakeup.
    pub fn places_by_wakings(&self) -> bool {
        self.by_wakings
    }

    /// Whether the last event migrated a task as a part of its wakeup, where wakings place tasks.
    pub fn has_placed(&self) -> bool {
        self.placed
    }

    /// Whether `event`, not yet applied, migrates a task as a part of its wakeup, where wakings place tasks.
    pub(crate) fn places(&self, event: &SchedEvent) -> bool {
        let EventKind::Migrate { task, .. } = event.kind else { return false };
        self.cpus.get(event.cpu.index()).is_some_and(|c| c.placing == Some(task.pid))
    }

    /// Whether the trace shows when tasks were woken.
    pub fn shows_wakeups(&self) -> bool {
        !self.without_wakeups || self.by_wakings
    }

    /// Keeps the task that each CPU is about to place.
    #[cold]
    #[inline(never)]
    pub(super) fn follow_placement(&mut self, event: &SchedEvent) {
        self.placed = self.places(event);
        self.cpu(event.cpu).placing = match event.kind {
            EventKind::Waking { task, .. } => Some(task.pid),
            EventKind::Other { .. } | EventKind::Probe { .. } | EventKind::Stack { .. } => return,
            EventKind::Frequency { .. } | EventKind::Interrupt { .. } => return,
            _ => None,
        };
    }

    /// Queues a task that does not run on the CPU by its waking.
    #[cold]
    #[inline(never)]
    pub(super) fn place(&mut self, slot: Slot, previous: Cpu) {
        if !matches!(self.tasks.entry(slot).state, TaskState::Running(_)) {
            self.queue(slot, previous);
        }
    }

    /// Queues a sleeping task late, as it is switched in: if it was woken while it still ran, that ended its sleep, and
    /// it has waited since then, which no event showed until now.
    #[cold]
    #[inline(never)]
    pub(super) fn place_late(&mut self, slot: Slot, cpu: Cpu) {
        match self.tasks.entry(slot).waking {
            Some(_) => self.enter(slot, TaskState::Waiting(cpu), self.now),
            None => self.repair(EventIssue::UnseenWakeup),
        }
    }

    /// Forgets a waking from before the task was switched in, since that ended an earlier sleep.
    #[cold]
    #[inline(never)]
    pub(super) fn forget_old_waking(&mut self, slot: Slot) {
        let task = self.tasks.entry(slot);
        task.waking = task.waking.filter(|Waking { at, .. }| *at >= task.since);
    }
}

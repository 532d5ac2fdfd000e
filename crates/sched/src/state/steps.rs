//! The steps of the state at a switch, a new task and a migration.

use super::SchedState;
use super::tasks::{Slot, Task};
use crate::event::diag::EventIssue;
use crate::event::span::{Current, TaskState};
use crate::event::{Cpu, Pid, PrevState, StateClass, TaskRef};

impl SchedState {
    /// Follows a `sched_switch` on `cpu` from `prev`, which goes to `state`, to `next`.
    #[inline(never)]
    pub(super) fn switch(&mut self, cpu: Cpu, prev: TaskRef, state: PrevState, next: TaskRef) {
        let now = self.now;
        if self.cpus[cpu.index()].current != Current::of(prev.pid) {
            self.go_on_from(cpu, prev.pid);
        }
        if let Some(slot) = self.cpus[cpu.index()].running {
            if self.cpus[cpu.index()].comm.is_empty() {
                self.name(cpu, slot, prev);
            }
            self.rename(slot, prev);
            if self.by_wakings {
                self.forget_old_waking(slot);
            }
            let after = match state.class {
                StateClass::Runnable | StateClass::Preempted => TaskState::Waiting(cpu),
                StateClass::Asleep => TaskState::Asleep(cpu),
                StateClass::Dead => TaskState::Dead,
            };
            self.enter(slot, after, now);
        }
        if state.class == StateClass::Dead {
            self.lineage.forget(prev.pid);
            self.forget_records(prev.pid);
        }
        if next.pid.is_idle() {
            self.become_idle(cpu, state);
            self.set_current(cpu, Current::Idle, None, next.comm, now);
        } else {
            let Some(slot) = self.switch_in(cpu, next) else { return self.run_unfollowed(cpu, next, now) };
            // The name of the event, not that of the entry, where it has just been written in parts: a load of the
            // whole would stall (store forwarding).
            let comm = if next.comm.is_empty() { self.tasks.entry(slot).comm } else { next.comm };
            self.run(cpu, slot, comm, now, true);
        }
    }

    /// Corrects the occupant of `cpu`, since another task is switched out than the one that was thought to run.
    #[cold]
    #[inline(never)]
    fn go_on_from(&mut self, cpu: Cpu, prev: Pid) {
        self.repair(EventIssue::SwitchPrevMismatch);
        if let Some(old) = self.cpus[cpu.index()].running {
            self.turn_out(old, TaskState::Unknown, self.now);
        }
        self.settle(cpu, prev, self.now);
    }

    /// Finds or adds the task that is switched in on `cpu`, and counts contradictions with its state. Returns `None` if
    /// the task is not followed.
    #[inline(always)]
    fn switch_in(&mut self, cpu: Cpu, next: TaskRef) -> Option<Slot> {
        let Some(slot) = self.tasks.find(next.pid) else {
            let since = self.first_moment(next.pid);
            let slot = self.birth(next, TaskState::Unknown, since);
            if since == self.start && slot.is_some() {
                self.discover(next, cpu, self.cpus[cpu.index()].emptied);
            }
            return slot;
        };
        self.rename(slot, next);
        let Task { state, undecided, .. } = *self.tasks.entry(slot);
        match (state, undecided) {
            (TaskState::Waiting(other) | TaskState::Throttled(other), _) if other != cpu => {
                self.repair(EventIssue::UnseenMigration);
            }
            (TaskState::Asleep(_) | TaskState::Unknown, Some((orig, emptied))) => self.discover(next, orig, emptied),
            (TaskState::Asleep(_), None) if self.by_wakings => self.place_late(slot, cpu),
            (TaskState::Asleep(_), None) if !self.without_wakeups => self.repair(EventIssue::UnseenWakeup),
            _ => {}
        }
        Some(slot)
    }

    /// Follows a `sched_wakeup_new`: a new task is queued on `target`.
    pub(super) fn wakeup_new(&mut self, task: TaskRef, target: Cpu) {
        if let Some(old) = self.tasks.find(task.pid) {
            self.repair(EventIssue::UnseenExit);
            self.end(old);
        }
        let Some(slot) = self.birth(task, TaskState::Unknown, self.now) else { return };
        self.tasks.entry(slot).born = Some(self.now);
        self.enter(slot, TaskState::Waiting(target), self.now);
    }

    /// Follows a `sched_migrate_task` from `orig` to `dest`.
    pub(super) fn migrate(&mut self, task: TaskRef, orig: Cpu, dest: Cpu) {
        let Some(slot) = self.find(task) else {
            let Some(slot) = self.sleeper(task, dest) else { return };
            // Its next event will show whether it sleeps or waits; only in the latter case it counts.
            self.tasks.entry(slot).undecided = Some((orig, self.cpu(orig).emptied));
            return;
        };
        let entry = self.tasks.entry(slot);
        let undecided = entry.undecided;
        match entry.state {
            TaskState::Waiting(cpu) | TaskState::Throttled(cpu) => {
                if cpu != orig {
                    self.repair(EventIssue::MigrateOrigMismatch);
                }
                self.enter(slot, TaskState::Waiting(dest), self.now);
            }
            TaskState::Running(_) => self.repair(EventIssue::MigrateRunning),
            TaskState::Asleep(_) if self.placed => self.enter(slot, TaskState::Waiting(dest), self.now),
            TaskState::Asleep(_) => {
                entry.state = TaskState::Asleep(dest);
                entry.undecided = undecided;
            }
            TaskState::Unknown | TaskState::Dead => {}
        }
    }
}

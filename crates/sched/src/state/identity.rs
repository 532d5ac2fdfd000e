//! The identity of a task: the beginning and the end of a life, and the name and the number that it takes while it runs.

use super::{SchedState, Slot, Task};
use crate::event::diag::EventIssue;
use crate::event::span::{Current, TaskState};
use crate::event::{Comm, Cpu, Pid, TaskRef, Ts};

impl SchedState {
    /// Adds a task that is seen for the first time; returns `None` if as many tasks are followed as the limit allows.
    pub(super) fn birth(&mut self, task: TaskRef, state: TaskState, since: Ts) -> Option<Slot> {
        let slot = self.tasks.insert(task, self.lineage.of(task.pid), state, since);
        if slot.is_none() {
            self.repair(EventIssue::TasksBeyondLimit);
        }
        slot
    }

    /// Makes `cpu` busy with a task that is not followed, of which nothing else is known.
    #[cold]
    #[inline(never)]
    pub(super) fn run_unfollowed(&mut self, cpu: Cpu, task: TaskRef, ts: Ts) {
        self.set_current(cpu, Current::Task(task.pid), None, task.comm, ts);
    }

    /// Follows a `sched_process_fork`.
    pub(super) fn fork(&mut self, parent: Pid, child: Pid) {
        self.lineage.fork(parent, child);
        self.inherit(parent, child);
        self.relate(child);
    }

    /// Updates the origin of `pid` from the lineage.
    pub(super) fn relate(&mut self, pid: Pid) {
        if let Some(slot) = self.tasks.find(pid) {
            self.tasks.entry(slot).kin = self.lineage.of(pid);
        }
    }

    /// Follows a `sched_process_exec`: the lineage, the PID and the name of the task.
    pub(super) fn exec(&mut self, pid: Pid, old_pid: Pid, program: Comm) {
        let name = self.task_of(old_pid).map_or(Comm::EMPTY, |t| t.comm);
        // Where a stretch is scanned, the task has a name that is not known.
        if pid == old_pid && name.is_empty() && !self.is_scan {
            self.name_by_program(pid, program);
        }
        self.lineage.exec(pid, old_pid, program, name);
        if pid != old_pid {
            self.hand_over(old_pid, pid);
            self.allowed.hand_over(old_pid, pid);
            self.hand_policy_over(old_pid, pid);
        }
        if let Some(slot) = self.tasks.find(pid) {
            // The kernel names the task just before (`begin_new_exec`); the next switch would show it only later.
            self.go_on(slot, program);
        }
    }

    /// Names a task without a name by the program that it executes: no event shows the name before, and the command before its exec is the
    /// command.
    fn name_by_program(&mut self, pid: Pid, program: Comm) {
        let Some(slot) = self.tasks.find(pid) else { return };
        let Task { prio, state, .. } = *self.tasks.entry(slot);
        if let TaskState::Running(cpu) = state
            && self.cpus[cpu.index()].comm.is_empty()
        {
            self.name(cpu, slot, TaskRef { pid, prio, comm: program });
        }
    }

    /// Gives another name to a task that does not run, or runs on `cpu`. If it runs on another CPU, its next switch
    /// shows the name.
    pub(super) fn take_name(&mut self, cpu: Cpu, pid: Pid, before: Comm, after: Comm) {
        let Some(slot) = self.tasks.find(pid) else { return };
        let Task { prio, state, .. } = *self.tasks.entry(slot);
        match state {
            TaskState::Running(other) if other != cpu => return,
            TaskState::Running(_) if self.cpus[cpu.index()].comm.is_empty() => {
                self.name(cpu, slot, TaskRef { pid, prio, comm: before });
            }
            _ => {}
        }
        self.go_on(slot, after);
    }

    /// Gives the task in `slot` this name, if it is known, and perhaps another PID; if the task runs, a stretch of its
    /// CPU begins.
    fn go_on(&mut self, slot: Slot, name: Comm) {
        if !name.is_empty() {
            self.take_comm(slot, name);
        }
        let task = self.tasks.entry(slot);
        let (pid, state) = (task.pid, task.state);
        if let TaskState::Running(cpu) = state {
            let c = &self.cpus[cpu.index()];
            let comm = if name.is_empty() { c.comm } else { name };
            if (c.current, c.comm) != (Current::Task(pid), comm) {
                self.set_current(cpu, Current::Task(pid), Some(slot), comm, self.now);
            }
        }
    }

    /// Gives the PID of the leader to a thread that executes a program: the leader is dead by now, or about to be.
    fn hand_over(&mut self, old_pid: Pid, pid: Pid) {
        if let Some(leader) = self.tasks.find(pid) {
            if let TaskState::Running(_) = self.tasks.entry(leader).state {
                // A switch between the exchange and this event used the new number already.
                if let Some(old) = self.tasks.find(old_pid) {
                    self.end(old);
                }
                return;
            }
            self.turn_out(leader, TaskState::Dead, self.now);
        }
        if let Some(slot) = self.tasks.find(old_pid) {
            // Each span has one number.
            let Task { state, begun, .. } = *self.tasks.entry(slot);
            self.change(slot, state, self.now, begun, begun);
            self.tasks.renumber(slot, pid);
            if let Some(throttling) = &mut self.throttling {
                throttling.hand_over(old_pid, pid);
            }
        }
    }

    /// Ends a task that turns out to be dead, whatever it did. If it ran, the occupant of its CPU is unknown.
    pub(super) fn end(&mut self, slot: Slot) {
        if let TaskState::Running(cpu) = self.tasks.entry(slot).state {
            self.set_current(cpu, Current::Unknown, None, Comm::EMPTY, self.now);
        }
        self.turn_out(slot, TaskState::Dead, self.now);
    }
}

//! The weights of the tasks on each CPU, as run queues are compared (`docs/read-the-numbers.md#weights`).

use super::SchedState;
use super::tasks::{Slot, Task};
use crate::event::nice::excess_weight;
use crate::event::span::TaskState;
use crate::event::task_id::TaskId;
use crate::event::{Comm, Cpu, TaskRef};
use crate::tables::capacities::CpuCapacities;

impl SchedState {
    /// The weight of the tasks on `cpu`, the running one included, above that of as many tasks of nice 0, as run queues are compared
    /// (`docs/read-the-numbers.md#weights`); `None` if each of them counts as one of nice 0.
    #[inline]
    pub fn odd_weight(&self, cpu: Cpu) -> Option<i64> {
        if self.tasks.has_odd { self.weight_of_odd(cpu) } else { None }
    }

    #[cold]
    #[inline(never)]
    fn weight_of_odd(&self, cpu: Cpu) -> Option<i64> {
        let c = self.cpus.get(cpu.index())?;
        let running = c.running.map_or(0, |slot| self.tasks.excess(slot));
        (c.queue.odd > 0 || running != 0).then(|| c.queue.excess + i64::from(running))
    }

    /// The capacities of the CPUs, where they differ.
    #[inline]
    pub fn capacities(&self) -> &CpuCapacities {
        &self.capacities
    }

    /// The waiting tasks whose priority or policy the last event changed. They have no span then.
    pub fn reweighed(&self) -> &[TaskId] {
        &self.reweighed
    }

    /// Takes over another priority of a task: it weighs more or less from now on where it runs or waits.
    #[cold]
    #[inline(never)]
    pub(super) fn take_prio(&mut self, slot: Slot, prio: i32) {
        self.tasks.note_prio(prio);
        let is_sched_idle = self.tasks.entry(slot).is_sched_idle;
        self.reweigh(slot, prio, is_sched_idle);
    }

    /// Takes over another name of a task: a task of a negative nice value weighs more or less by it, as a kernel thread or as another task.
    #[cold]
    #[inline(never)]
    pub(super) fn take_comm(&mut self, slot: Slot, comm: Comm) {
        let task = self.tasks.entry(slot);
        let before = task.excess_weight();
        task.comm = comm;
        if task.excess_weight() != before {
            let (prio, is_sched_idle) = (task.prio, task.is_sched_idle);
            self.reweigh(slot, prio, is_sched_idle);
        }
    }

    /// Takes over the priority and the policy of a task.
    pub(super) fn reweigh(&mut self, slot: Slot, prio: i32, is_sched_idle: bool) {
        match self.tasks.entry(slot).state {
            TaskState::Waiting(cpu) => {
                self.tasks.reweigh(&mut self.cpus[cpu.index()].queue, slot, prio, is_sched_idle);
                self.reweighed.push(self.tasks.entry(slot).id());
                self.touch(cpu);
            }
            TaskState::Throttled(cpu) => match self.throttling.as_mut() {
                Some(throttling) => self.tasks.reweigh(throttling.queue(cpu), slot, prio, is_sched_idle),
                None => self.tasks.entry(slot).take_weight(prio, is_sched_idle),
            },
            TaskState::Running(cpu) => {
                let task = self.tasks.entry(slot);
                let old = task.prio;
                task.take_weight(prio, is_sched_idle);
                if old == Task::NO_PRIO && task.since == self.start && excess_weight(prio, task.comm) != 0 {
                    // It weighed as much all the time; its name may have been another one.
                    let pid = task.pid;
                    self.named.push(TaskRef { pid, prio, comm: Comm::EMPTY });
                }
                self.touch(cpu);
            }
            _ => self.tasks.entry(slot).take_weight(prio, is_sched_idle),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{EventKind, Pid, SchedEvent, Ts};
    use crate::state::Start;

    /// What no simulated run has: a task of a negative nice value that comes to the name of a kernel thread, or loses it.
    #[test]
    fn a_name_decides_the_weight_of_a_task_that_waits_or_runs() {
        let mut state = SchedState::new(&Start::default());
        let mut apply = |by: i32, kind: EventKind| {
            state.apply(&SchedEvent { ts: Ts(0), cpu: Cpu(0), pid: Pid(by), flags: 0, kind });
            (state.odd_weight(Cpu(1)), state.odd_weight(Cpu(0)), state.reweighed().len())
        };
        let task = |pid, prio, comm| TaskRef { pid: Pid(pid), prio, comm: Comm::new(comm) };
        let wake = |pid, comm| EventKind::Wakeup { task: task(pid, 110, comm), target: Cpu(1) };
        let excess = i64::from(excess_weight(110, Comm::new(b"task")));
        assert_eq!(apply(0, wake(7, b"kworker/1:1")), (None, None, 0));
        let rename = |after| EventKind::Rename { pid: Pid(7), before: Comm::EMPTY, after: Comm::new(after) };
        assert_eq!(apply(0, rename(b"task")), (Some(excess), None, 1));
        assert_eq!(apply(0, rename(b"task2")), (Some(excess), None, 0));
        assert_eq!(apply(0, rename(b"kworker/1:1")), (None, None, 1));
        // Task 8 ran from the start on; its wakeup while it runs shows its name with its priority, and it was no other task before.
        let mut state = SchedState::new(&Start::default());
        state.apply(&SchedEvent { ts: Ts(0), cpu: Cpu(0), pid: Pid(8), flags: 0, kind: wake(8, b"kworker/0:1") });
        assert_eq!(state.odd_weight(Cpu(0)), None);
        assert_eq!(state.named(), []);
    }
}

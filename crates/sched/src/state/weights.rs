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

//! The tasks that are queued behind the occupant of their CPU (`docs/questions/latency.md#behind`).

use crate::event::Cpu;
use crate::event::task_id::TaskId;
use crate::state::SchedState;

/// The number of tasks on a CPU from which on those that are listed twice are left out, and whose room is given back.
const MANY: usize = 1 << 12;

/// The tasks that were queued on each CPU since its occupant changed last.
#[derive(Clone, Debug, Default)]
pub struct QueuedBehind {
    cpus: Vec<BehindOccupant>,
}

/// The tasks that were queued on one CPU since its occupant changed last.
#[derive(Clone, Debug, Default)]
struct BehindOccupant {
    tasks: Vec<TaskId>,
    /// The number of different tasks when that was last looked at.
    different: usize,
}

impl QueuedBehind {
    /// Adds a task that is queued on a CPU.
    pub fn add(&mut self, task: TaskId, cpu: Cpu) {
        if cpu.index() >= self.cpus.len() {
            self.cpus.resize_with(cpu.index() + 1, BehindOccupant::default);
        }
        let behind = &mut self.cpus[cpu.index()];
        // A task can be woken and migrated again and again while an occupant stays. Living tasks are bounded.
        if behind.tasks.len() >= MANY.max(2 * behind.different) {
            behind.tasks.sort_unstable();
            behind.tasks.dedup();
            behind.different = behind.tasks.len();
        }
        behind.tasks.push(task);
    }

    /// Takes out the tasks on each CPU whose occupant the last event changed, with that CPU. A task may be queued elsewhere by now.
    #[inline]
    pub fn leave(&mut self, state: &SchedState, mut take: impl FnMut(TaskId, Cpu)) {
        for span in state.cpu_spans() {
            let Some(behind) = self.cpus.get_mut(span.cpu.index()) else { continue };
            behind.tasks.drain(..).for_each(|task| take(task, span.cpu));
            if behind.tasks.capacity() > MANY {
                *behind = BehindOccupant::default();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Comm, EventKind, Pid, PrevState, SchedEvent, TaskRef, Ts};

    /// The state after CPU 1 has switched from task 7 to task 8.
    fn after_a_switch() -> SchedState {
        let task = |pid| TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(b"task") };
        let mut state = SchedState::default();
        for (ts, prev, next) in [(1, 0, 7), (2, 7, 8)] {
            let kind = EventKind::Switch { prev: task(prev), state: PrevState::RUNNABLE, next: task(next) };
            state.apply(&SchedEvent { ts: Ts(ts), cpu: Cpu(1), pid: Pid(prev), flags: 0, kind });
        }
        state
    }

    #[test]
    fn tasks_leave_with_the_occupant_of_their_cpu() {
        let (state, mut behind) = (after_a_switch(), QueuedBehind::default());
        let task = |slot| TaskId { slot, life: 0 };
        [(3, 0), (4, 1), (5, 1)].into_iter().for_each(|(slot, cpu)| behind.add(task(slot), Cpu(cpu)));
        let mut left = Vec::new();
        (0..2).for_each(|_| behind.leave(&state, |task, cpu| left.push((task.slot, cpu.0))));
        assert_eq!(left, [(4, 1), (5, 1)]);
        assert_eq!(behind.cpus[0].tasks, [task(3)]);
    }

    /// A million tasks behind an occupant that stays, and one that is queued a million times.
    #[test]
    fn the_tasks_behind_an_occupant_are_bounded() {
        let (state, mut behind) = (after_a_switch(), QueuedBehind::default());
        let task = |slot| TaskId { slot, life: 0 };
        (0..1 << 20).for_each(|slot| behind.add(task(slot), Cpu(1)));
        (0..1 << 20).for_each(|_| behind.add(task(9), Cpu(0)));
        assert_eq!((behind.cpus[1].tasks.len(), behind.cpus[0].tasks.len() <= MANY), (1 << 20, true));
        let mut number = 0;
        behind.leave(&state, |_, _| number += 1);
        assert_eq!((number, behind.cpus[1].tasks.capacity()), (1 << 20, 0));
    }
}

//! The waiting tasks that an analysis counts, CPU by CPU, followed through the facts of the state.

use crate::event::Cpu;
use crate::event::span::TaskState;
use crate::event::task_id::TaskId;
use crate::state::{SchedState, Task};

/// The ways of counting for which a task counts: a bit for each, chosen by the caller.
pub type Flags = u8;

/// The waiting tasks that a caller counts, by CPU and with flags. The caller's filter gives the flags when a task
/// begins to wait, and they hold until it no longer waits there: a change of its name meanwhile does not unbalance the
/// sums.
#[derive(Clone, Debug, Default)]
pub struct CountedQueues {
    /// The CPU on which each waiting task is counted, and its flags, by [`TaskId::index`].
    waiting: Vec<Option<(Cpu, Flags)>>,
}

impl CountedQueues {
    /// The flags of a waiting task, as they were when it began to wait; zero if it is not counted.
    pub fn flags(&self, task: TaskId) -> Flags {
        self.waiting.get(task.index()).copied().flatten().map_or(0, |(_, flags)| flags)
    }

    /// Whether the same tasks are counted, on the same CPUs and with the same flags.
    pub fn has_same(&self, other: &CountedQueues) -> bool {
        let (short, long) = match self.waiting.len() < other.waiting.len() {
            true => (&self.waiting, &other.waiting),
            false => (&other.waiting, &self.waiting),
        };
        let (same, rest) = long.split_at(short.len());
        short == same && rest.iter().all(Option::is_none)
    }

    /// Clears the uppermost flag (bit 7) of all waiting tasks. A caller that marks certain waits with it calls this
    /// when no wait is certain any more.
    pub fn clear_uppermost_flags(&mut self) {
        for (_, flags) in self.waiting.iter_mut().flatten() {
            *flags &= !(1 << 7);
        }
    }

    /// Clears `flag` of one waiting task. `change` is called with the waiter as it was (-1) and as it is (1).
    pub fn clear_flag(&mut self, task: TaskId, flag: Flags, mut change: impl FnMut(Cpu, Flags, i32)) {
        if let Some((cpu, flags)) = self.waiting.get_mut(task.index()).and_then(Option::as_mut) {
            change(*cpu, *flags, -1);
            *flags &= !flag;
            change(*cpu, *flags, 1);
        }
    }

    /// Adds the tasks that wait on `cpu` now. `count` returns the flags of each, and `change` is called with each
    /// waiter (1). Called for each CPU before the first [`CountedQueues::follow`].
    pub fn begin(
        &mut self,
        cpu: Cpu,
        state: &SchedState,
        mut count: impl FnMut(&Task, Cpu) -> Flags,
        mut change: impl FnMut(Cpu, Flags, i32),
    ) {
        for task in state.waiting(cpu) {
            self.join(task, cpu, &mut count, &mut change);
        }
    }

    /// Counts a task that waits on `cpu` from now on.
    fn join(
        &mut self,
        task: &Task,
        cpu: Cpu,
        count: &mut impl FnMut(&Task, Cpu) -> Flags,
        change: &mut impl FnMut(Cpu, Flags, i32),
    ) {
        let flags = count(task, cpu);
        let index = task.id().index();
        if index >= self.waiting.len() {
            self.waiting.resize(index + 1, None);
        }
        // A caller that begins with a CPU twice counts its waiters once.
        if let Some((cpu, flags)) = self.waiting[index].replace((cpu, flags)) {
            change(cpu, flags, -1);
        }
        change(cpu, flags, 1);
    }

    /// Follows the event that the state applied last; called after each event. `count` returns the flags of each task
    /// that begins to wait, and `change` is called with each waiter that left a CPU (-1) or joined one (1).
    pub fn follow(
        &mut self,
        state: &SchedState,
        mut count: impl FnMut(&Task, Cpu) -> Flags,
        mut change: impl FnMut(Cpu, Flags, i32),
    ) {
        for span in state.spans() {
            if let TaskState::Waiting(_) = span.state {
                let slot = self.waiting.get_mut(span.task.index());
                if let Some((cpu, flags)) = slot.and_then(Option::take) {
                    change(cpu, flags, -1);
                }
            }
            if let TaskState::Waiting(cpu) = span.next
                && let Some(task) = state.task(span.task)
            {
                self.join(task, cpu, &mut count, &mut change);
            }
        }
    }
}

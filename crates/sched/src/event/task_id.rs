//! The identity of a task.

/// The index of a task in the table of tasks.
pub(crate) type Slot = u32;

/// One life of one PID: after the task has died, a task with the same PID has another identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId {
    pub(crate) slot: Slot,
    pub(crate) life: u32,
}

impl TaskId {
    /// A small number that no other living task has, for tables by task. It is used again once the task is dead.
    pub fn index(self) -> usize {
        self.slot as usize
    }
}

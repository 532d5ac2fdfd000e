//! The identity of a task.

/// The place of a task in the table of tasks.
pub(crate) type Slot = u32;

/// One life of one PID: a PID that is used again is another task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId {
    pub(crate) slot: Slot,
    pub(crate) life: u32,
}

impl TaskId {
    /// A small number that no other living task has: an index for tables by task. It is used
    /// again once the task is dead.
    pub fn index(self) -> usize {
        self.slot as usize
    }
}

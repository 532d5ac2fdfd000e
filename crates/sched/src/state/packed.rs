//! A state in little room, for copies that are kept.

use super::SchedState;
use super::tasks::PackedTasks;

/// A copy of a state that does not count, and cannot be looked at.
#[derive(Clone, Debug, Default)]
pub(crate) struct PackedState {
    /// The state without its tasks.
    rest: SchedState,
    tasks: PackedTasks,
}

impl PackedState {
    /// The state that was copied.
    pub(crate) fn unpacked(&self) -> SchedState {
        SchedState { tasks: self.tasks.unpacked(), ..self.rest.clone() }
    }

    /// The approximate number of bytes of the copy.
    pub(crate) fn bytes(&self) -> usize {
        self.rest.bytes() + self.tasks.bytes()
    }
}

impl SchedState {
    /// A copy in little room that does not count.
    pub(crate) fn packed(&self) -> PackedState {
        let mut rest = self.uncounted();
        let tasks = std::mem::take(&mut rest.tasks).packed();
        PackedState { rest, tasks }
    }
}

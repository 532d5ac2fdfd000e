//! The record of an analysis on each living task.

use crate::event::task_id::TaskId;

/// A table by task. An entry of a task that has died is not found any more, and makes room for the
/// next task that takes its place.
#[derive(Clone, Debug)]
pub struct PerTask<T> {
    slots: Vec<Option<(TaskId, T)>>,
}

impl<T> Default for PerTask<T> {
    fn default() -> PerTask<T> {
        PerTask { slots: Vec::new() }
    }
}

impl<T> PerTask<T> {
    /// The record of a task.
    pub fn get(&self, task: TaskId) -> Option<&T> {
        let (owner, value) = self.slots.get(task.index())?.as_ref()?;
        (*owner == task).then_some(value)
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, task: TaskId) -> Option<&mut T> {
        let (owner, value) = self.slots.get_mut(task.index())?.as_mut()?;
        (*owner == task).then_some(value)
    }

    /// Keeps something of a task, instead of what there was.
    pub fn insert(&mut self, task: TaskId, value: T) {
        if task.index() >= self.slots.len() {
            self.slots.resize_with(task.index() + 1, || None);
        }
        self.slots[task.index()] = Some((task, value));
    }

    /// Takes out the record of a task.
    pub fn take(&mut self, task: TaskId) -> Option<T> {
        let (owner, value) = self.slots.get_mut(task.index())?.take()?;
        (owner == task).then_some(value)
    }

    /// All that is kept, each with the task.
    pub fn iter(&self) -> impl Iterator<Item = (TaskId, &T)> {
        self.slots.iter().flatten().map(|(task, value)| (*task, value))
    }

    /// All that is kept, to be changed.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().flatten().map(|(_, value)| value)
    }
}

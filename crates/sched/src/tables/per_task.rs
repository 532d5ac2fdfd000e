//! The record of an analysis on each living task.

use crate::event::task_id::TaskId;

/// A table by task. The entry of a task that has died is no longer found, and makes room for the next task that takes
/// its index.
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
    /// Returns the entry of a task, if it has one.
    pub fn get(&self, task: TaskId) -> Option<&T> {
        let (owner, value) = self.slots.get(task.index())?.as_ref()?;
        (*owner == task).then_some(value)
    }

    /// Returns the entry of a task, to be changed, if it has one.
    pub fn get_mut(&mut self, task: TaskId) -> Option<&mut T> {
        let (owner, value) = self.slots.get_mut(task.index())?.as_mut()?;
        (*owner == task).then_some(value)
    }

    /// Sets the entry of a task, instead of an earlier one of the task or of a dead task with its index.
    pub fn insert(&mut self, task: TaskId, value: T) {
        if task.index() >= self.slots.len() {
            self.slots.resize_with(task.index() + 1, || None);
        }
        self.slots[task.index()] = Some((task, value));
    }

    /// Removes and returns the entry of a task, if it has one.
    pub fn take(&mut self, task: TaskId) -> Option<T> {
        let (owner, value) = self.slots.get_mut(task.index())?.take()?;
        (owner == task).then_some(value)
    }

    /// Takes from an earlier table the entries that this one has not made itself: an entry for which `is_placeholder` holds
    /// is replaced by that of its task there, or removed if there is none.
    pub fn fill(&mut self, mut earlier: PerTask<T>, is_placeholder: impl Fn(&T) -> bool) {
        for slot in &mut self.slots {
            if let Some((task, value)) = slot
                && is_placeholder(value)
            {
                *slot = earlier.take(*task).map(|value| (*task, value));
            }
        }
    }

    /// Whether two tables have the same entries.
    pub fn has_same(&self, other: &PerTask<T>) -> bool
    where
        T: PartialEq,
    {
        let number = |table: &PerTask<T>| table.slots.iter().flatten().count();
        number(self) == number(other) && self.iter().all(|(task, value)| other.get(task) == Some(value))
    }

    /// Iterates over all entries, each with its task, also over those of dead tasks whose index is not taken again.
    pub fn iter(&self) -> impl Iterator<Item = (TaskId, &T)> {
        self.slots.iter().flatten().map(|(task, value)| (*task, value))
    }

    /// Iterates over all entries, each with its task, to be changed.
    pub fn entries_mut(&mut self) -> impl Iterator<Item = (TaskId, &mut T)> {
        self.slots.iter_mut().flatten().map(|(task, value)| (*task, value))
    }

    /// Iterates over all entries, to be changed.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().flatten().map(|(_, value)| value)
    }
}

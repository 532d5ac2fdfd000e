//! The rows of the table, and the row of each task.

use crate::{Earlier, Latency, Measures, RowSums};
use membership::{TaskGroup, TasksBy};
use sched::kthread::command;
use sched::limits::ROWS;
use sched::state::Task;
use sched::{Comm, Pid, Ts};

/// The properties of a task that decide its row, unless records do: its number, its name, and, where rows are groups, whether `kthreadd` is its
/// parent.
pub(crate) type RowTraits = (Pid, Comm, bool);

impl Latency<'_> {
    /// The row of a task at an instant, which takes its name.
    pub(crate) fn row(&mut self, task: &Task, now: Ts) -> &mut RowSums {
        let traits = self.traits(task);
        let home = self.homes.get(task.id()).filter(|(other, _)| self.are_rows_fixed && *other == traits);
        if let Some((_, row)) = home {
            return &mut self.rows[*row as usize];
        }
        if self.options.groups.is_some() || self.options.together {
            return self.row_of_group(task, now);
        }
        let key = match self.options.by {
            TasksBy::Task => TaskGroup::Task(task.pid),
            _ => TaskGroup::Command(command(task.comm)),
        };
        let index = self.place_of(key, task.comm);
        self.enter(task, index)
    }

    /// The properties of a task that decide its row where that is fixed.
    fn traits(&self, task: &Task) -> RowTraits {
        let is_group = self.options.groups.is_some() && !self.options.together;
        (task.pid, task.comm, is_group && task.kin.parent == Some(Pid::KTHREADD))
    }

    /// The row of the group that a task belongs to at an instant.
    #[cold]
    #[inline(never)]
    fn row_of_group(&mut self, task: &Task, now: Ts) -> &mut RowSums {
        let key = match &self.options.groups {
            Some(groups) if !self.options.together => groups.group(task, now),
            _ => TaskGroup::Rest,
        };
        let index = self.place_of(key, task.comm);
        let is_home =
            |((pid, comm, _), row): &(RowTraits, u32)| (*pid, *comm, *row) == (task.pid, task.comm, index as u32);
        if self.homes.get(task.id()).is_some_and(is_home) {
            let traits = self.traits(task);
            self.homes.insert(task.id(), (traits, index as u32));
            return &mut self.rows[index];
        }
        self.enter(task, index)
    }

    /// The place of the row with a key, which is made for a task of this name if there is none.
    pub(crate) fn place_of(&mut self, mut key: TaskGroup, name: Comm) -> usize {
        if self.rows.len() >= ROWS && !self.places.contains_key(&key) {
            key = TaskGroup::Rest;
        }
        let rows = &mut self.rows;
        *self.places.entry(key).or_insert_with(|| {
            let (measures, earlier) = (Measures::default(), Earlier::default());
            rows.push(RowSums { key, name, has_several_names: false, tasks: 0, measures, earlier, late: 0 });
            rows.len() - 1
        })
    }

    /// A task comes to a row, which takes its name.
    fn enter(&mut self, task: &Task, index: usize) -> &mut RowSums {
        // There are at most as many rows as `ROWS`, and one more.
        let traits = self.traits(task);
        self.homes.insert(task.id(), (traits, index as u32));
        let row = &mut self.rows[index];
        row.has_several_names |= row.name != task.comm;
        row.name = task.comm;
        row.tasks += 1;
        row
    }
}

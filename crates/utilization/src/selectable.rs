//! Running tasks that are of the application by their cgroups or policies, which can change within a run.

use crate::{Class, Utilization};
use sched::state::Task;
use sched::{Comm, Cpu, Pid, Ts};

/// A running task whose class depends on its cgroup or its policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Selectable {
    pid: Pid,
    comm: Comm,
    /// The class of the task while the selection does not choose it.
    otherwise: Class,
}

impl Utilization<'_> {
    /// The task that a CPU runs, of this class, if another cgroup or policy can make it one of another class.
    pub(crate) fn selectable(&self, task: &Task, cpu: Cpu, class: Class) -> Option<Selectable> {
        self.options.tasks.as_ref().filter(|tasks| tasks.are_of_groups())?;
        let is_selectable = matches!(class, Class::Application | Class::Other | Class::Kernel);
        let otherwise = self.class_if(false, task, cpu, task.known_prio());
        is_selectable.then_some(Selectable { pid: task.pid, comm: task.comm, otherwise })
    }

    /// The class of a selectable task at an instant.
    fn class_of_selectable(&self, task: Selectable, ts: Ts) -> Class {
        let is_chosen = |tasks: &membership::ChosenTasks| tasks.takes(task.pid, ts, || task.comm);
        if self.options.tasks.as_ref().is_some_and(is_chosen) { Class::Application } else { task.otherwise }
    }

    /// The next instant up to `to` at which the task that a CPU shown runs, by its place, can be of another class, with that class. One at `to`
    /// itself counts: an interrupt may begin or end then, and the next search is for later ones.
    pub(crate) fn next_class(&self, row: usize, to: Ts) -> Option<(Ts, Class)> {
        let now = &self.cpus[row];
        let task = now.selectable?;
        let at = self.options.tasks.as_ref()?.next_change(task.pid, now.since).filter(|at| *at <= to)?;
        Some((at, self.class_of_selectable(task, at)))
    }

    /// The class of what a CPU shown does at an instant, by its place.
    pub(crate) fn class_at(&self, row: usize, ts: Ts) -> Class {
        let now = &self.cpus[row];
        now.selectable.map_or(now.class, |task| self.class_of_selectable(task, ts))
    }
}

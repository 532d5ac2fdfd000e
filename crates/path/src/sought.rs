//! The task whose path is sought.

use super::CriticalPath;
use sched::{Comm, Pid, SchedEvent, SchedState, Task};

impl CriticalPath {
    /// Leaves traces in which an exec shows the traced command to another search.
    pub(crate) fn standing_aside(self) -> CriticalPath {
        CriticalPath { stands_aside: true, ..self }
    }

    /// Whether the path cannot be found, since nothing names its task, or is not to be.
    pub(crate) fn has_no_hope(&self, state: &SchedState) -> bool {
        let is_nameless = self.options.pid.or(state.root()).is_none() && self.options.command.is_none();
        is_nameless || self.stands_aside && state.root().is_some()
    }

    /// Looks up the task that is sought among those that are alive.
    pub(crate) fn look_up_sought(&mut self, state: &SchedState) {
        self.sought = self.sought_pid(state).and_then(|pid| state.task_of(pid)).map(Task::id);
    }

    /// The number of the task that is sought, if it is known before the end.
    pub(crate) fn sought_pid(&self, state: &SchedState) -> Option<Pid> {
        match (self.options.pid, self.options.command) {
            (None, Some(_)) => None,
            (pid, _) => pid.or(state.root()),
        }
    }

    /// A task exits: the path to that instant is the one that is sought, if the task is.
    pub(crate) fn note_exit(&mut self, pid: Pid, event: &SchedEvent, state: &SchedState) {
        let Some(task) = state.task_of(pid).copied().filter(|task| self.is_sought(pid, task.comm, state)) else {
            return;
        };
        let shown = if event.pid == pid { self.emitter(event, state) } else { None };
        let until = shown.unwrap_or_else(|| self.until(&task, event.ts));
        self.found = Some((pid, until));
        self.exited = true;
    }

    /// Whether this is the task that is sought.
    pub(crate) fn is_sought(&self, pid: Pid, name: Comm, state: &SchedState) -> bool {
        match (self.options.pid, self.options.command) {
            (None, Some(command)) => name == command,
            (sought, _) => sought.or(state.root()) == Some(pid),
        }
    }

    /// The task that is sought, where none has exited.
    pub(crate) fn sought_at_end(&self, state: &SchedState) -> Option<Task> {
        let pid = match (self.options.pid, self.options.command) {
            (None, Some(command)) => {
                let tasks = self.tracks.iter().filter_map(|(id, _)| state.task(id));
                tasks.filter(|task| task.comm == command).map(|task| task.pid).min()?
            }
            (sought, _) => sought.or(state.root())?,
        };
        state.task_of(pid).copied()
    }
}

//! The tasks of a trace, each with its place in the list that tiles refer to.

use crate::columns::lane::{Id, OTHERS};
use sched::seeded::SeededMap;
use sched::{Comm, Cpu, CpuSpan, Pid, SchedState};

/// A task of the trace, as the page lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskEntry {
    /// The number of the task.
    pub pid: Pid,
    /// The most recent command name; empty if none was seen.
    pub comm: Comm,
    /// The time that it ran, in nanoseconds.
    pub run_ns: u64,
    /// The CPU that it ran on first.
    pub home: Option<Cpu>,
    /// The task that forked it, if the trace shows that.
    pub parent: Option<Pid>,
    /// Whether it is the traced command or descends from it.
    pub application: bool,
}

/// The tasks in the order in which they were first seen.
#[derive(Clone, Debug, Default)]
pub struct Tasks {
    places: SeededMap<Pid, Id>,
    list: Vec<TaskEntry>,
}

impl Tasks {
    /// The maximum number of tasks that have a place: in tiles a place has at most two bytes. Tasks that are first seen
    /// later are shown as other tasks.
    pub(crate) const MOST: usize = 16_380;

    /// The tasks, by their places.
    pub fn list(&self) -> &[TaskEntry] {
        &self.list
    }

    /// The task with this number.
    pub fn of(&self, pid: Pid) -> Option<&TaskEntry> {
        self.list.get(*self.places.get(&pid)? as usize)
    }

    /// The place of a task; that of all other tasks if it has none of its own.
    pub(crate) fn place(&self, pid: Pid) -> Id {
        self.places.get(&pid).copied().unwrap_or(OTHERS)
    }

    /// The place of a task; one that is seen for the first time gets a place if there is one left, else that of all
    /// other tasks.
    pub(crate) fn place_of_new(&mut self, pid: Pid, state: &SchedState) -> Id {
        if let Some(place) = self.places.get(&pid) {
            return *place;
        }
        let kin = state.kin(pid);
        let comm = state.task_of(pid).map_or(Comm::EMPTY, |task| task.comm);
        let (parent, application) = (kin.parent, kin.descends);
        self.add(TaskEntry { pid, comm, run_ns: 0, home: None, parent, application })
    }

    /// The place of a task that a sample shows; that of all other tasks if there is none left.
    pub(crate) fn place_of_sampled(&mut self, pid: Pid, comm: Comm) -> Id {
        if let Some(place) = self.places.get(&pid) {
            return *place;
        }
        self.add(TaskEntry { pid, comm, run_ns: 0, home: None, parent: None, application: false })
    }

    /// Gives a task a place, if there is one.
    pub(crate) fn add(&mut self, task: TaskEntry) -> Id {
        if self.list.len() == Self::MOST {
            return OTHERS;
        }
        let place = self.list.len() as Id;
        self.places.insert(task.pid, place);
        self.list.push(task);
        place
    }

    /// A CPU's span has ended in which the task of this place ran.
    pub(crate) fn ran(&mut self, place: Id, pid: Pid, span: &CpuSpan, state: &SchedState) {
        let Some(entry) = self.list.get_mut(place as usize) else { return };
        entry.run_ns += span.duration().0;
        let is_first = entry.home.is_none();
        entry.home = entry.home.or(Some(span.cpu));
        if is_first || entry.comm != span.comm && !span.comm.is_empty() {
            // A program that was executed can make the task the traced command, and a sample shows no kin.
            let kin = state.kin(pid);
            entry.comm = if span.comm.is_empty() { entry.comm } else { span.comm };
            entry.parent = kin.parent.or(entry.parent);
            entry.application |= kin.descends;
        }
    }
}

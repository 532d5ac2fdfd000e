//! A value of each task over the time of a trace.

use sched::limits::{PIDS, keep_of_pid};
use sched::seeded::{SeededMap, SeededSet};
use sched::{Pid, Ts};

/// Maximum number of changes that are kept of a property of tasks; later ones are not followed, and the values that they change are
/// unknown.
pub(crate) const MOST_CHANGES: usize = 1 << 22;

/// The place of the latest change at an instant; nothing before the first one.
pub(crate) fn place_at<T>(changes: &[(Ts, T)], ts: Ts) -> Option<usize> {
    changes.partition_point(|(at, _)| *at <= ts).checked_sub(1)
}

/// The first instant after `ts` at which one of these changes is.
pub(crate) fn next_of<T>(changes: Option<&Vec<(Ts, T)>>, ts: Ts) -> Option<Ts> {
    let changes = changes?;
    changes.get(changes.partition_point(|(at, _)| *at <= ts)).map(|(at, _)| *at)
}

/// The value of each PID from an instant on, in the order of time; absent where it is unknown or the default from then on.
#[derive(Clone, Debug)]
pub(crate) struct ByTask<T> {
    of: SeededMap<Pid, Vec<(Ts, Option<T>)>>,
    /// The number of changes behind the first one of each task.
    changes: usize,
    /// The tasks whose value is unknown all the time.
    forgotten: SeededSet<Pid>,
}

impl<T> Default for ByTask<T> {
    fn default() -> ByTask<T> {
        ByTask { of: SeededMap::default(), changes: 0, forgotten: SeededSet::default() }
    }
}

impl<T: Copy + PartialEq> ByTask<T> {
    /// The value of a task at an instant.
    pub(crate) fn at(&self, pid: Pid, ts: Ts) -> Option<T> {
        let changes = self.of.get(&pid)?;
        changes.get(place_at(changes, ts)?)?.1
    }

    /// The latest value of a task.
    pub(crate) fn last(&self, pid: Pid) -> Option<T> {
        self.at(pid, Ts::MAX)
    }

    /// The first instant after `ts` at which the value of a task changes.
    pub(crate) fn next_change(&self, pid: Pid, ts: Ts) -> Option<Ts> {
        next_of(self.of.get(&pid), ts)
    }

    /// Whether no task has a value.
    pub(crate) fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// The tasks with a value at an instant, in the order of their PIDs.
    pub(crate) fn all_at(&self, ts: Ts) -> Vec<(Pid, T)> {
        let mut all: Vec<(Pid, T)> = self.of.keys().filter_map(|pid| Some((*pid, self.at(*pid, ts)?))).collect();
        all.sort_unstable_by_key(|(pid, _)| *pid);
        all
    }

    /// A task has this value from an instant on.
    pub(crate) fn set(&mut self, pid: Pid, ts: Ts, value: Option<T>) {
        if self.forgotten.contains(&pid) {
            return;
        }
        let Some(changes) = self.of.get_mut(&pid) else {
            if value.is_some() {
                keep_of_pid(&mut self.of, pid, vec![(ts, value)]);
            }
            return;
        };
        if changes.last().is_some_and(|(_, last)| *last == value) {
            return;
        }
        match self.changes < MOST_CHANGES {
            true => changes.push((ts, value)),
            // The value that is set is lost, and with it all that follows.
            false => *changes = vec![(Ts::MIN, None)],
        }
        self.changes = self.changes.saturating_add(1);
    }

    /// The value of a task is unknown all the time.
    pub(crate) fn forget(&mut self, pid: Pid) {
        self.of.remove(&pid);
        if self.forgotten.len() < PIDS {
            self.forgotten.insert(pid);
        }
    }

    /// The tasks whose value is unknown all the time, in the order of their PIDs.
    pub(crate) fn forgotten(&self) -> Vec<Pid> {
        let mut forgotten: Vec<Pid> = self.forgotten.iter().copied().collect();
        forgotten.sort_unstable();
        forgotten
    }
}

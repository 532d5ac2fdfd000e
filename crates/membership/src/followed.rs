//! The cgroups of tasks as an analysis follows them.

use crate::{CgroupChange, CgroupIndex, Cgroups};
use sched::seeded::SeededMap;
use sched::{Pid, Ts};

/// The cgroups of tasks at an instant that moves forward. There are none before the first change is taken.
pub struct FollowedCgroups<'c> {
    cgroups: &'c Cgroups,
    /// The number of changes that were taken.
    taken: usize,
    members: SeededMap<Pid, CgroupIndex>,
}

impl<'c> FollowedCgroups<'c> {
    /// Returns the cgroups before all changes.
    pub fn new(cgroups: &'c Cgroups) -> FollowedCgroups<'c> {
        FollowedCgroups { cgroups, taken: 0, members: SeededMap::default() }
    }

    /// Takes the next change, if it is no later than `ts`.
    pub fn next(&mut self, ts: Ts) -> Option<CgroupChange> {
        let change = *self.cgroups.changes().get(self.taken).filter(|change| change.ts <= ts)?;
        self.taken += 1;
        match change.cgroup {
            Some(cgroup) => drop(self.members.insert(change.pid, cgroup)),
            None => drop(self.members.remove(&change.pid)),
        }
        Some(change)
    }

    /// The cgroup of a task; nothing where it is unknown.
    pub fn of(&self, pid: Pid) -> Option<CgroupIndex> {
        self.members.get(&pid).copied()
    }
}

//! The lives of PIDs in a recording: a PID is given to another task once its former one has died.

use sched::limits::keep_of_pid;
use sched::seeded::{SeededMap, SeededSet};
use sched::{ApplicationMember, Pid};

/// One of the lives of a PID: the number of forks of it before and at its beginning.
pub(super) type Life = (Pid, u32);

/// The number of forks of each PID so far.
#[derive(Debug, Default)]
pub(super) struct Lives(SeededMap<Pid, u32>);

impl Lives {
    /// The life that a PID has now.
    pub(super) fn of(&self, pid: Pid) -> Life {
        (pid, self.0.get(&pid).copied().unwrap_or(0))
    }

    /// Takes note of the fork of a child.
    pub(super) fn fork(&mut self, child: Pid) {
        let (_, life) = self.of(child);
        keep_of_pid(&mut self.0, child, life.saturating_add(1));
    }
}

/// The members of an application that have these lives, ascending.
pub(super) fn members_of(lives: &SeededSet<Life>, helps: bool) -> Vec<ApplicationMember> {
    let mut members: Vec<ApplicationMember> =
        lives.iter().map(|(pid, life)| ApplicationMember { pid: *pid, life: *life, helps }).collect();
    members.sort_unstable();
    members
}

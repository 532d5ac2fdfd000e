//! The cgroups of tasks as an analysis follows them.

use crate::{CgroupChange, CgroupIndex, Cgroups};
use sched::seeded::SeededMap;
use sched::{Pid, Ts};

/// The cgroups of tasks at an instant that moves forward. There are none before the first change is taken.
pub struct FollowedCgroups<'c> {
    cgroups: &'c Cgroups,
    /// The number of changes that were taken.
    taken: usize,
    /// The number of them that are not in `members`, as they precede a piece of a pass.
    earlier: usize,
    members: SeededMap<Pid, Option<CgroupIndex>>,
}

impl<'c> FollowedCgroups<'c> {
    /// Returns the cgroups before all changes.
    pub fn new(cgroups: &'c Cgroups) -> FollowedCgroups<'c> {
        FollowedCgroups { cgroups, taken: 0, earlier: 0, members: SeededMap::default() }
    }

    /// Takes the next change, if it is no later than `ts`.
    pub fn next(&mut self, ts: Ts) -> Option<CgroupChange> {
        let change = *self.cgroups.changes().get(self.taken).filter(|change| change.ts <= ts)?;
        self.taken += 1;
        self.members.insert(change.pid, change.cgroup);
        Some(change)
    }

    /// Begins in the middle of a trace, behind the changes up to `ts`, for a piece of a pass.
    pub fn resume(&mut self, ts: Ts) {
        self.earlier = self.cgroups.changes().partition_point(|change| change.ts <= ts);
        self.taken = self.earlier;
        self.members.clear();
    }

    /// The cgroup of a task; nothing where it is unknown.
    pub fn of(&self, pid: Pid) -> Option<CgroupIndex> {
        match self.members.get(&pid) {
            Some(cgroup) => *cgroup,
            None if self.earlier > 0 => self.cgroups.behind(self.earlier, pid),
            None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cgroups_are_the_same_wherever_one_begins() {
        let paths = ["/a", "/b", "/c"];
        let moves: Vec<(Ts, Pid, Option<&str>)> = (0..60)
            .map(|nth: i32| (Ts(i64::from(nth / 2)), Pid(nth * 7 % 5), paths.get((nth * 3 % 4) as usize).copied()))
            .collect();
        let cgroups = Cgroups::of_moves(&moves);
        for begin in -1..31 {
            let (mut whole, mut later) = (FollowedCgroups::new(&cgroups), FollowedCgroups::new(&cgroups));
            while whole.next(Ts(begin)).is_some() {}
            later.resume(Ts(begin));
            for ts in begin..31 {
                loop {
                    let changes = [whole.next(Ts(ts)), later.next(Ts(ts))];
                    assert_eq!(changes[0], changes[1]);
                    let of = |followed: &FollowedCgroups<'_>| [0, 1, 2, 3, 4, 5].map(|pid| followed.of(Pid(pid)));
                    assert_eq!(of(&whole), of(&later), "at {ts}, from {begin}");
                    if changes[0].is_none() {
                        break;
                    }
                }
            }
        }
    }
}

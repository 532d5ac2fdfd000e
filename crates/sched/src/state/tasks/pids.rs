//! The index of each living task by its PID.

use super::{NONE, Slot};
use crate::event::Pid;
use crate::tables::seeded::SeededMap;

/// The indices of living tasks by PID. An event is about one to three tasks, each of which is looked up: in front of the hash table there are
/// places that a PID alone decides, for the latest task of each. With the hash alone lookups take twice as many instructions.
#[derive(Clone, Debug, Default)]
pub(super) struct SlotsByPid {
    all: SeededMap<Pid, Slot>,
    /// The latest task with each value of the lowest bits of a PID; no index where it has died. Empty before the first task.
    latest: Vec<(Pid, Slot)>,
}

impl SlotsByPid {
    /// Number of places: the table stays in the first-level cache.
    const PLACES: usize = 1 << 10;

    /// Makes an empty table with room for this number of tasks.
    pub(super) fn with_capacity(tasks: usize) -> SlotsByPid {
        SlotsByPid { all: SeededMap::with_capacity_and_hasher(tasks, Default::default()), latest: Vec::new() }
    }

    fn place(pid: Pid) -> usize {
        pid.0 as usize % SlotsByPid::PLACES
    }

    /// The index of the task with this PID.
    #[inline]
    pub(super) fn get(&self, pid: Pid) -> Option<Slot> {
        match self.latest.get(SlotsByPid::place(pid)) {
            Some((latest, slot)) if *latest == pid && *slot != NONE => Some(*slot),
            _ => self.all.get(&pid).copied(),
        }
    }

    /// Sets the index of the task with a PID.
    pub(super) fn insert(&mut self, pid: Pid, slot: Slot) {
        self.latest.resize(SlotsByPid::PLACES, (Pid::IDLE, NONE));
        self.latest[SlotsByPid::place(pid)] = (pid, slot);
        self.all.insert(pid, slot);
    }

    /// Removes the index of the task with a PID.
    pub(super) fn remove(&mut self, pid: Pid) {
        if let Some(latest) = self.latest.get_mut(SlotsByPid::place(pid)).filter(|(latest, _)| *latest == pid) {
            latest.1 = NONE;
        }
        self.all.remove(&pid);
    }

    /// The number of tasks.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Iterates over all tasks, in no order that means anything.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Pid, Slot)> {
        self.all.iter().map(|(pid, slot)| (*pid, *slot))
    }

    /// The approximate number of bytes of a copy.
    pub(super) fn bytes(&self) -> usize {
        (self.all.len() + self.latest.len()) * size_of::<(Pid, Slot)>()
    }
}

/// Tables with the same tasks are the same, whichever of them are the latest.
impl PartialEq for SlotsByPid {
    fn eq(&self, other: &SlotsByPid) -> bool {
        self.all == other.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn pids_that_share_a_place_are_found() {
        let places = SlotsByPid::PLACES as i32;
        let (mut slots, mut known) = (SlotsByPid::default(), BTreeMap::new());
        let mut seed = 1_u64;
        for step in 0..20_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let pid = Pid((seed >> 33) as i32 % 7 + (seed >> 40) as i32 % 3 * places - 3);
            match seed >> 62 {
                0 | 1 => {
                    slots.insert(pid, step);
                    known.insert(pid, step);
                }
                2 => {
                    slots.remove(pid);
                    known.remove(&pid);
                }
                _ => {}
            }
            assert_eq!((slots.get(pid), slots.len()), (known.get(&pid).copied(), known.len()), "step {step}");
        }
        let mut all: Vec<(Pid, Slot)> = slots.iter().collect();
        all.sort_unstable();
        assert!(known.len() > 5 && all.into_iter().eq(known));
    }
}

//! The slices of running tasks, by the records of their picks (`record --why=picks`).

use super::SchedState;
use super::tasks::Task;
use crate::event::nice::weight_of;
use crate::event::probe::Entity;
use crate::event::span::Current;
use crate::event::{Cpu, Pid, Ts};
use serde::{Deserialize, Serialize};

/// The request of a running task at its pick.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PickedSlice {
    /// The PID of the task.
    pid: Pid,
    /// The instant of the record.
    at: Ts,
    /// The run time, in nanoseconds, after which the task has reached its deadline.
    left: u64,
}

impl SchedState {
    /// Takes the record of the pick of a CPU's running task.
    pub(super) fn picks(&mut self, cpu: Cpu, pid: Pid, entity: &Entity, at: Ts) {
        let Some(prio) = self.task_of(pid).and_then(Task::known_prio).filter(|prio| *prio >= 100) else {
            return;
        };
        let weight = entity.weight.map_or_else(|| weight_of(prio) << 10, |weight| u64::from(weight.get()));
        let ahead = u64::try_from(entity.deadline.since(entity.vruntime)).unwrap_or(0);
        let left = u64::try_from((u128::from(ahead) * u128::from(weight)) >> 20).unwrap_or(u64::MAX);
        if let Some(c) = self.cpus.get_mut(cpu.index()) {
            c.picked = Some(PickedSlice { pid, at, left });
        }
    }

    /// Whether the running task of a CPU is within its slice: it has not run up to the deadline that it had at its pick, and the kernel
    /// protects it from tasks with no shorter request (`RUN_TO_PARITY`). Nothing where the pick was not recorded.
    pub fn is_within_slice(&self, cpu: Cpu) -> Option<bool> {
        let c = self.cpus.get(cpu.index())?;
        let picked = c.picked.filter(|picked| c.current == Current::Task(picked.pid) && picked.at >= c.since)?;
        Some(self.now.since(picked.at).0 < picked.left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::probe::{LeftKind, LeftTimes, Probe, VirtualTime};
    use crate::event::{Comm, EventKind, PrevState, SchedEvent, TaskRef};
    use std::num::NonZeroU32;

    #[test]
    fn a_slice_lasts_until_the_deadline_of_the_pick_by_the_weight_of_the_task() {
        let mut state = SchedState::default();
        let task = |pid, prio| TaskRef { pid: Pid(pid), prio, comm: Comm::new(b"task") };
        let mut apply = |ts, pid, kind| {
            state.apply(&SchedEvent { ts: Ts(ts), cpu: Cpu(0), pid: Pid(pid), flags: 0, kind });
            state.is_within_slice(Cpu(0))
        };
        let switch = |prev, next| EventKind::Switch {
            prev: task(prev, 120),
            state: PrevState::asleep(1),
            next: task(next, 120),
        };
        let entity = Entity {
            vruntime: VirtualTime::of(1_000),
            deadline: VirtualTime::of(1_500),
            slice: None,
            weight: NonZeroU32::new(2 << 20),
        };
        let (left_kind, left, queue) = (LeftKind::Unrecorded, LeftTimes::default(), None);
        let picks = |pid| EventKind::Probe {
            id: 1,
            probe: Probe::Picks { pid: Pid(pid), entity, left_kind, left, queue, choice: Default::default() },
        };
        let other = EventKind::Other { id: 2 };
        assert_eq!(apply(0, 0, switch(0, 7)), None);
        assert_eq!(apply(10, 0, picks(7)), Some(true));
        // Twice the weight of nice 0: 500 ns of virtual time are 1,000 ns.
        assert_eq!([apply(1_009, 7, other), apply(1_010, 7, other)], [Some(true), Some(false)]);
        assert_eq!(apply(1_020, 7, switch(7, 8)), None);
        // The record of another task is none of this one.
        assert_eq!(apply(1_030, 7, picks(7)), None);
    }
}

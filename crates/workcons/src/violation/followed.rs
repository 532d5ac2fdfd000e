//! The sets, changed by the events that a state has applied.

use super::sets::Sets;
use sched::affinity::Affinity;
use sched::counted::{CountedQueues, Flags};
use sched::{Cpu, Pid, SchedState, Task, TaskId, Topology};

/// The sets with the waiters of a state. A caller begins with the queue of each CPU, passes on each event that was applied,
/// and then settles the CPUs that the event touched.
#[derive(Clone, Debug)]
pub struct FollowedSets {
    /// The sets; the caller settles the CPUs.
    pub sets: Sets,
    queues: CountedQueues,
}

impl FollowedSets {
    /// Returns empty sets without waiters.
    pub fn new(topology: &Topology, affinity: Option<&Affinity>) -> FollowedSets {
        FollowedSets { sets: Sets::new(topology, affinity), queues: CountedQueues::default() }
    }

    /// Begins with the queue of a CPU as it is. `count` has the ways that count a waiter; the affinity is that of
    /// [`FollowedSets::new`].
    pub fn begin(
        &mut self,
        cpu: Cpu,
        state: &SchedState,
        affinity: Option<&Affinity>,
        count: impl FnMut(&Task, Cpu) -> Flags,
    ) {
        let FollowedSets { sets, queues } = self;
        queues.begin(cpu, state, count, |cpu, flags, by| sets.waiter(cpu, flags, by));
        if let (Some(reach), Some(affinity)) = (sets.reach_mut(), affinity) {
            for task in state.waiting(cpu) {
                reach.join(task, cpu, queues.flags(task.id()), affinity, state);
            }
        }
    }

    /// Brings the waiters up to date with the event that the state applied last. `count` is asked once for each task that
    /// begins to wait.
    #[inline(always)]
    pub fn follow(&mut self, state: &SchedState, affinity: Option<&Affinity>, count: impl FnMut(&Task, Cpu) -> Flags) {
        let FollowedSets { sets, queues } = self;
        queues.follow(state, count, |cpu, flags, by| sets.waiter(cpu, flags, by));
        if let (Some(reach), Some(affinity)) = (sets.reach_mut(), affinity) {
            reach.follow(state, affinity, |task, _| queues.flags(task.id()));
        }
    }

    /// Takes over the CPUs that a task may use, which a record has shown; returns whether that concerns a waiter.
    pub fn renew(&mut self, pid: Pid, affinity: Option<&Affinity>, state: &SchedState) -> bool {
        match (self.sets.reach_mut(), affinity, state.task_of(pid)) {
            (Some(reach), Some(affinity), Some(task)) => reach.renew(task, affinity, state).is_some(),
            _ => false,
        }
    }

    /// Whether another one of the same options has the same waiters; the sets follow from these and from the loads.
    pub(crate) fn has_same(&self, other: &FollowedSets) -> bool {
        self.queues.has_same(&other.queues)
            && self.sets.reach().zip(other.sets.reach()).is_none_or(|(a, b)| a.has_same(b))
    }

    /// Whether a way of counting counts a task that waits.
    pub(crate) fn counts(&self, task: TaskId, way: usize) -> bool {
        self.queues.flags(task) >> way & 1 == 1
    }
}

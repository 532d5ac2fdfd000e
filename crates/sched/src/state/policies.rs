//! The tasks of the policy `SCHED_IDLE`, which have a small weight whatever their nice value is (`docs/read-the-numbers.md#weights`).
//!
//! A list of the start names them. From then on records show what changes a policy, a child has that of its parent, and a record of a pick has the
//! weight of the task. A task that none of these shows counts as one of another policy.

use super::SchedState;
use crate::event::Pid;
use crate::event::nice::{IDLE_WEIGHT, NICE_0_WEIGHT};
use crate::event::probe::Entity;
use crate::tables::limits::{PIDS, keep_of_pid};
use crate::tables::seeded::{SeededMap, SeededSet};

/// The calls that set a policy and have not returned: the calling thread, the task, and whether that one was of `SCHED_IDLE` before.
pub(super) type PolicyCalls = SeededMap<Pid, (Pid, bool)>;

impl SchedState {
    /// Sets the tasks of `SCHED_IDLE` at the start, before any task is known.
    pub(super) fn start_sched_idle(&mut self, pids: &[Pid]) {
        self.tasks.sched_idle = pids.iter().copied().filter(|pid| !pid.is_idle()).take(PIDS).collect();
        self.tasks.has_odd |= !self.tasks.sched_idle.is_empty();
    }

    /// The PIDs of the tasks that are known to be of `SCHED_IDLE`, in ascending order.
    pub(super) fn sched_idle(&self) -> Vec<Pid> {
        let mut pids: Vec<Pid> = self.tasks.sched_idle.iter().copied().collect();
        pids.sort_unstable();
        pids
    }

    /// The calls that set a policy and have not returned, in the order of the calling threads.
    pub(super) fn open_policy_calls(&self) -> Vec<(Pid, Pid, bool)> {
        let mut calls: Vec<(Pid, Pid, bool)> =
            self.policy_calls.iter().map(|(by, (of, was))| (*by, *of, *was)).collect();
        calls.sort_unstable();
        calls
    }

    /// A task has this policy from now on, by a call of the thread `by`. `is_entered`: the call can still fail.
    #[cold]
    #[inline(never)]
    pub(super) fn take_policy(&mut self, (pid, is_sched_idle): (Pid, bool), by: Pid, is_entered: bool) {
        let of = if pid.is_idle() { by } else { pid };
        let was = self.tasks.sched_idle.contains(&of);
        if is_entered && was != is_sched_idle {
            keep_of_pid(&mut self.policy_calls, by, (of, was));
        }
        self.set_sched_idle(of, is_sched_idle);
    }

    /// The call of a thread that sets a policy returns. One that has `failed` has changed nothing.
    #[cold]
    #[inline(never)]
    pub(super) fn end_policy_call(&mut self, by: Pid, failed: bool) {
        if let Some((of, was)) = self.policy_calls.remove(&by).filter(|_| failed) {
            self.set_sched_idle(of, was);
        }
    }

    /// A pick shows the weight of a task: no nice value has that of `SCHED_IDLE`.
    #[inline]
    pub(super) fn show_weight(&mut self, pid: Pid, entity: &Entity) {
        let Some(weight) = entity.weight else { return };
        // Weights are multiplied by 1,024 on machines of 64 bits.
        let is_sched_idle = [IDLE_WEIGHT, IDLE_WEIGHT * NICE_0_WEIGHT].contains(&weight.get());
        if is_sched_idle || !self.tasks.sched_idle.is_empty() {
            self.set_sched_idle(pid, is_sched_idle);
        }
    }

    /// Gives a child, which is forked now, the policy of its parent.
    pub(super) fn inherit_policy(&mut self, parent: Pid, child: Pid) {
        if !self.tasks.sched_idle.is_empty() {
            let is_sched_idle = self.tasks.sched_idle.contains(&parent);
            self.set_sched_idle(child, is_sched_idle);
        }
    }

    /// Gives the policy of a thread to the PID of its leader, which the thread takes.
    pub(super) fn hand_policy_over(&mut self, old_pid: Pid, pid: Pid) {
        if !self.tasks.sched_idle.is_empty() {
            let is_sched_idle = self.tasks.sched_idle.remove(&old_pid);
            self.set_sched_idle(pid, is_sched_idle);
        }
    }

    /// Forgets the policy of a task, which is dead, so that its PID is free.
    pub(super) fn forget_policy(&mut self, pid: Pid) {
        if !self.tasks.sched_idle.is_empty() {
            self.tasks.sched_idle.remove(&pid);
        }
        if !self.policy_calls.is_empty() {
            self.policy_calls.remove(&pid);
        }
    }

    fn set_sched_idle(&mut self, pid: Pid, is_sched_idle: bool) {
        if pid.is_idle() {
            return;
        }
        change(&mut self.tasks.sched_idle, pid, is_sched_idle);
        let is_sched_idle = self.tasks.sched_idle.contains(&pid);
        self.tasks.has_odd |= is_sched_idle;
        if let Some(slot) = self.tasks.find(pid) {
            let task = self.tasks.entry(slot);
            if task.is_sched_idle != is_sched_idle {
                let prio = task.prio;
                self.reweigh(slot, prio, is_sched_idle);
            }
        }
    }
}

/// Adds a PID to a set of at most [`PIDS`], or takes it away.
fn change(set: &mut SeededSet<Pid>, pid: Pid, is_in: bool) {
    match is_in {
        true if set.len() < PIDS => drop(set.insert(pid)),
        true => {}
        false => drop(set.remove(&pid)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::probe::Probe;
    use crate::event::{Comm, Cpu, EventKind, SchedEvent, TaskRef, Ts};
    use crate::state::Start;

    fn apply(state: &mut SchedState, by: i32, kind: EventKind) {
        state.apply(&SchedEvent { ts: Ts(0), cpu: Cpu(0), pid: Pid(by), flags: 0, kind });
    }

    /// The weights by which these tasks of nice 0 are compared.
    fn weights(state: &SchedState, pids: [i32; 3]) -> [Option<u32>; 3] {
        pids.map(|pid| state.task_of(Pid(pid))?.compared_weight())
    }

    #[test]
    fn lists_forks_and_calls_show_the_policy_and_a_call_that_fails_does_not() {
        let mut state = SchedState::new(&Start { sched_idle: [Pid(7)].into(), ..Start::default() });
        let task = |pid: i32, prio: i32| TaskRef { pid: Pid(pid), prio, comm: Comm::new(b"task") };
        let wake = |pid, prio| EventKind::Wakeup { task: task(pid, prio), target: Cpu(1) };
        let fork = |parent, child| EventKind::Fork { parent: Pid(parent), child: Pid(child), child_comm: Comm::EMPTY };
        let sets = |pid, is_sched_idle, is_entered| {
            let probe = Probe::SetsPolicy { pid: Pid(pid), is_sched_idle, is_entered };
            EventKind::Probe { id: 1, probe }
        };
        let returns = |failed| EventKind::Probe { id: 2, probe: Probe::PolicyCallReturns { failed } };
        [wake(7, 139), wake(8, 120)].into_iter().for_each(|kind| apply(&mut state, 0, kind));
        apply(&mut state, 7, fork(7, 9));
        apply(&mut state, 0, wake(9, 120));
        assert_eq!(weights(&state, [7, 8, 9]), [Some(3), Some(1024), Some(3)]);
        assert_eq!((state.odd_weight(Cpu(1)), state.queue_length(Cpu(1))), (Some(-2042), 3));
        // 7 gives itself another policy, and 8 is given that of SCHED_IDLE by 9, whose call fails.
        apply(&mut state, 7, sets(0, false, false));
        assert_eq!((state.reweighed().len(), state.touched()), (1, &[Cpu(1)][..]));
        apply(&mut state, 9, sets(8, true, true));
        assert_eq!(weights(&state, [7, 8, 9]), [Some(15), Some(3), Some(3)]);
        apply(&mut state, 9, returns(true));
        assert_eq!(weights(&state, [7, 8, 9]), [Some(15), Some(1024), Some(3)]);
        apply(&mut state, 9, sets(8, true, true));
        apply(&mut state, 9, returns(false));
        // A priority that is inherited with a lock is one of another class.
        apply(&mut state, 0, wake(9, 50));
        assert_eq!(weights(&state, [7, 8, 9]), [Some(15), Some(3), None]);
        assert_eq!(state.odd_weight(Cpu(1)), Some(15 + 3 - 2 * 1024));
    }
}

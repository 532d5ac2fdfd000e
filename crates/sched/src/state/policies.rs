//! The tasks of the policy `SCHED_IDLE`, which have a small weight whatever their nice value is (`docs/read-the-numbers.md#weights`).
//!
//! A list of the start names them, and one of the recorded command names tasks of it that begin later. From then on records show what changes a
//! policy, a child has that of its parent, and a record of a pick has the weight of the task. A task that none of these shows counts as one of
//! another policy.

use super::SchedState;
use crate::event::Pid;
use crate::event::nice::{IDLE_WEIGHT, NICE_0_WEIGHT};
use crate::event::probe::Entity;
use crate::tables::limits::{PIDS, keep_of_pid};
use crate::tables::seeded::{SeededMap, SeededSet};
use std::sync::Arc;

/// The tasks of the policy `SCHED_IDLE` that no event shows, by lists beside the trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchedIdleTasks {
    /// The tasks that are of it at the start.
    pub at_start: Arc<[Pid]>,
    /// The tasks of the recorded command, and whether they are of it from their fork on; empty where no task at all is. At most
    /// [`SchedIdleTasks::PROGRAMS`] of them are kept.
    pub of_programs: Arc<[(Pid, bool)]>,
}

impl SchedIdleTasks {
    /// Maximum number of tasks of the recorded command whose policy is kept, which is that of `record`.
    pub const PROGRAMS: usize = 4096;
}

/// The calls that set a policy and have not returned: the calling thread, the task, and whether that one was of `SCHED_IDLE` before.
pub(super) type PolicyCalls = SeededMap<Pid, (Pid, bool)>;

/// The tasks of the recorded command before their fork, and whether a list shows them to be of `SCHED_IDLE`.
pub(super) type UnbornPolicies = SeededMap<Pid, bool>;

impl SchedState {
    /// Sets the tasks of `SCHED_IDLE` at the start, before any task is known.
    pub(super) fn start_sched_idle(&mut self, pids: &[Pid], of_programs: &[(Pid, bool)]) {
        let of_programs = of_programs.iter().copied().take(SchedIdleTasks::PROGRAMS);
        self.policies_of_programs = of_programs.clone().collect();
        // One whose fork is not in the trace as well.
        let idle_programs = of_programs.filter(|(_, is_sched_idle)| *is_sched_idle).map(|(pid, _)| pid);
        let pids = pids.iter().copied().chain(idle_programs);
        self.tasks.sched_idle = pids.filter(|pid| !pid.is_idle()).take(PIDS).collect();
        self.tasks.has_odd |= !self.tasks.sched_idle.is_empty();
    }

    /// The tasks of the recorded command that have not been forked yet, in ascending order, and whether they are to be of `SCHED_IDLE`.
    pub(super) fn unborn_policies(&self) -> Vec<(Pid, bool)> {
        let mut unborn: Vec<(Pid, bool)> =
            self.policies_of_programs.iter().map(|(pid, is_sched_idle)| (*pid, *is_sched_idle)).collect();
        unborn.sort_unstable();
        unborn
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

    /// Gives a child, which is forked now, the policy by the list of the recorded command, or else that of its parent.
    pub(super) fn inherit_policy(&mut self, parent: Pid, child: Pid) {
        if !(self.tasks.sched_idle.is_empty() && self.policies_of_programs.is_empty()) {
            let listed = self.policies_of_programs.remove(&child);
            let is_sched_idle = listed.unwrap_or_else(|| self.tasks.sched_idle.contains(&parent));
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
        if !self.policies_of_programs.is_empty() {
            self.policies_of_programs.remove(&pid);
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
        let sched_idle = SchedIdleTasks { at_start: [Pid(7)].into(), ..SchedIdleTasks::default() };
        let mut state = SchedState::new(&Start { sched_idle, ..Start::default() });
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

    #[test]
    fn a_task_of_the_recorded_command_has_the_policy_of_its_list_from_its_fork_on() {
        let of_programs = [(7, true), (8, true), (9, false), (10, true)].map(|(pid, is)| (Pid(pid), is)).into();
        let sched_idle = SchedIdleTasks { of_programs, ..SchedIdleTasks::default() };
        let mut state = SchedState::new(&Start { sched_idle, ..Start::default() });
        let wake = |pid| {
            let task = TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(b"task") };
            EventKind::Wakeup { task, target: Cpu(1) }
        };
        let fork = |parent, child| EventKind::Fork { parent: Pid(parent), child: Pid(child), child_comm: Comm::EMPTY };
        // 7 was there before; 6, which no list names, forks 8 for `chrt --idle`; 7 forks 9 for `chrt --other`.
        for (by, kind) in [(6, fork(6, 8)), (7, fork(7, 9)), (0, wake(7)), (0, wake(8)), (0, wake(9))] {
            apply(&mut state, by, kind);
        }
        assert_eq!(weights(&state, [7, 8, 9]), [Some(3), Some(3), Some(1024)]);
        // The note of a part has those that are to come, and another life of a PID is another task.
        assert_eq!(state.noted().policies_of_programs, [(Pid(7), true), (Pid(10), true)]);
        for child in [9, 10, 10] {
            apply(&mut state, 6, fork(6, child));
        }
        apply(&mut state, 0, wake(10));
        assert_eq!(weights(&state, [8, 9, 10]), [Some(3), Some(1024), Some(1024)]);
    }
}

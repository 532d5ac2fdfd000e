//! The CPUs that tasks may use, as records of probes show them.
//!
//! The probe `set_affinity` records each change of such a set, whatever made it: a system call, a cpuset, the kernel for
//! its own threads. `allowed` records the set of a task that is woken. A child has the set that its parent has at the fork.
//! Behind a loss a set can have changed unseen.

use super::SchedState;
use crate::event::probe::Probe;
use crate::event::{CpuMask, Pid, SchedEvent};
use crate::state::past::PastAllowed;
use crate::tables::cpu_set::CpuSet;
use crate::tables::limits::keep_of_pid;
use crate::tables::seeded::SeededMap;
use crate::tables::topology::{format_cpu_list, parse_cpu_list};

/// Maximum number of different sets that records show, and of those in lists. A task with a further one counts as a task whose set is unknown, or
/// as not restricted by the list.
pub(super) const MAX_SETS: usize = 4096;

/// The number of one of the sets that records have shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShownId(u32);

impl ShownId {
    /// The number as an index for tables by set, below 4,096.
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// Makes the number of the set with this index.
    pub(crate) fn from_index(index: usize) -> Option<ShownId> {
        u32::try_from(index).ok().map(ShownId)
    }
}

/// The CPUs that a task may use, by the latest record of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShownAffinity {
    /// The number of the set; `None` if the record does not show the whole set.
    pub set: Option<ShownId>,
    /// Whether no event was lost since the record, so that the set is the present one.
    pub is_current: bool,
}

/// The latest record of a task.
#[derive(Clone, Copy, Debug)]
struct Record {
    set: Option<ShownId>,
    /// The number of losses before the record.
    losses: u64,
    /// Whether no event has shown the task before the record. A cpuset can set the affinity of a child before its fork
    /// is recorded (`CLONE_INTO_CGROUP`); the child does not have its parent's set then.
    is_first: bool,
}

/// The sets of all tasks, by records of probes.
#[derive(Clone, Debug, Default)]
pub(super) struct AllowedSets {
    sets: Vec<CpuSet>,
    ids: SeededMap<CpuSet, ShownId>,
    tasks: SeededMap<Pid, Record>,
    losses: u64,
}

impl AllowedSets {
    /// Restores the sets from before a part of a trace.
    pub(super) fn after(past: &[PastAllowed]) -> AllowedSets {
        let mut allowed = AllowedSets { losses: 1, ..AllowedSets::default() };
        // Each list is read once: most tasks have the same few.
        let mut read: SeededMap<&str, Option<ShownId>> = SeededMap::default();
        for PastAllowed { pid, cpus, is_current } in past {
            let set = cpus.as_deref().and_then(|text| match read.get(text) {
                Some(set) => *set,
                None if read.len() >= MAX_SETS => None,
                None => {
                    let set = parse_cpu_list(text).and_then(|cpus| allowed.id(cpus.into_iter().collect()));
                    read.insert(text, set);
                    set
                }
            });
            let record = Record { set, losses: u64::from(*is_current), is_first: false };
            keep_of_pid(&mut allowed.tasks, *pid, record);
        }
        allowed
    }

    /// Notes the sets for a part of a trace that begins now, in the order of PIDs.
    pub(super) fn noted(&self) -> Vec<PastAllowed> {
        let mut pids: Vec<Pid> = self.tasks.keys().copied().collect();
        pids.sort_unstable();
        let noted = |pid: Pid| {
            let ShownAffinity { set, is_current } = self.of(pid)?;
            let cpus = set.and_then(|id| self.sets.get(id.index()));
            let cpus = cpus.map(|set| format_cpu_list(&set.cpus().collect::<Vec<_>>()));
            Some(PastAllowed { pid, cpus, is_current })
        };
        pids.into_iter().filter_map(noted).collect()
    }

    /// Returns the set of a task, if a record has shown one.
    fn of(&self, pid: Pid) -> Option<ShownAffinity> {
        let record = self.tasks.get(&pid)?;
        Some(ShownAffinity { set: record.set, is_current: record.losses == self.losses })
    }

    /// Returns the number of a set, and stores the set if it is new. Returns `None` for an empty set, which no task
    /// has, and for a new set beyond the maximum.
    fn id(&mut self, set: CpuSet) -> Option<ShownId> {
        if let Some(id) = self.ids.get(&set) {
            return Some(*id);
        }
        if set.is_empty() || self.sets.len() >= MAX_SETS {
            return None;
        }
        let id = ShownId(self.sets.len() as u32);
        self.sets.push(set.clone());
        self.ids.insert(set, id);
        Some(id)
    }

    /// Takes a record of the set of a task.
    fn show(&mut self, pid: Pid, mask: Option<CpuMask>, is_first: bool) {
        let set = mask.and_then(|mask| self.id(mask.into()));
        keep_of_pid(&mut self.tasks, pid, Record { set, losses: self.losses, is_first });
    }

    /// Gives a child the set of its parent.
    pub(super) fn fork(&mut self, parent: Pid, child: Pid) {
        if self.tasks.is_empty() {
            return;
        }
        if let Some(record) = self.tasks.get_mut(&child)
            && std::mem::take(&mut record.is_first)
        {
            return;
        }
        match self.tasks.get(&parent).copied() {
            Some(record) => keep_of_pid(&mut self.tasks, child, Record { is_first: false, ..record }),
            None => self.forget(child),
        }
    }

    /// Gives the set of a thread to the PID of its leader, which the thread takes.
    pub(super) fn hand_over(&mut self, old_pid: Pid, pid: Pid) {
        match self.tasks.remove(&old_pid) {
            Some(record) => drop(self.tasks.insert(pid, record)),
            None => self.forget(pid),
        }
    }

    /// Forgets a task, which is dead, so that its PID is free.
    pub(super) fn forget(&mut self, pid: Pid) {
        self.tasks.remove(&pid);
    }

    /// Counts a loss: events are missing from now on.
    pub(super) fn lose(&mut self) {
        self.losses += 1;
    }

    /// The approximate number of bytes of a copy.
    pub(super) fn bytes(&self) -> usize {
        let words = self.sets.iter().map(|set| set.len() as usize / 8).sum::<usize>();
        self.tasks.len() * size_of::<(Pid, Record)>() + 2 * (words + self.sets.len() * size_of::<CpuSet>())
    }
}

impl SchedState {
    /// Returns the CPUs that a task may use, by the latest record of a probe; `None` if no record has shown them.
    pub fn shown(&self, pid: Pid) -> Option<ShownAffinity> {
        self.allowed.of(pid)
    }

    /// The set with this number, as records have shown it.
    pub fn shown_set(&self, id: ShownId) -> Option<&CpuSet> {
        self.allowed.sets.get(id.index())
    }

    /// Whether events were lost so far.
    pub fn has_lost(&self) -> bool {
        self.any_loss
    }

    /// Gives a child, which is forked now, the cgroup, the affinity and the policy of its parent.
    pub(super) fn inherit(&mut self, parent: Pid, child: Pid) {
        if let Some(throttling) = &mut self.throttling {
            throttling.fork(parent, child);
        }
        self.allowed.fork(parent, child);
        self.inherit_policy(parent, child);
    }

    /// Forgets the cgroup, the affinity and the policy of a task, which is dead, so that its PID is free.
    pub(super) fn forget_records(&mut self, pid: Pid) {
        if let Some(throttling) = &mut self.throttling {
            throttling.forget(pid);
        }
        self.allowed.forget(pid);
        self.forget_policy(pid);
    }

    /// Follows a record of a probe, which can show throttling, the CPUs that a task may use, its policy, or the slice of the running task.
    #[cold]
    #[inline(never)]
    pub(super) fn follow_probe(&mut self, probe: &Probe, event: &SchedEvent) {
        match *probe {
            Probe::Allows(pid, _) if pid.is_idle() => {}
            Probe::Allows(pid, mask) => {
                let is_first = self.tasks.find(pid).is_none() && self.allowed.of(pid).is_none();
                self.allowed.show(pid, mask, is_first);
            }
            Probe::Picks { pid, entity, .. } => {
                self.show_weight(pid, &entity);
                self.picks(event.cpu, pid, &entity, event.ts);
            }
            Probe::SetsPolicy { pid, is_sched_idle, is_entered } => {
                self.take_policy((pid, is_sched_idle), event.pid, is_entered);
            }
            Probe::PolicyCallReturns { failed } => self.end_policy_call(event.pid, failed),
            Probe::Raises { softirq } => self.raise(softirq, event),
            _ => self.follow_throttling(probe, event),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Comm, Cpu, EventKind, PrevState, TaskRef, Ts};

    fn apply(state: &mut SchedState, kind: EventKind) {
        state.apply(&SchedEvent { ts: Ts(0), cpu: Cpu(0), pid: Pid(1), flags: 0, kind });
    }

    fn allow(state: &mut SchedState, pid: i32, cpus: &[u32]) {
        let probe = Probe::Allows(Pid(pid), CpuMask::of(cpus.iter().map(|cpu| Cpu(*cpu))));
        apply(state, EventKind::Probe { id: 1, probe });
    }

    fn fork(state: &mut SchedState, parent: i32, child: i32) {
        apply(state, EventKind::Fork { parent: Pid(parent), child: Pid(child), child_comm: Comm::EMPTY });
    }

    /// The CPUs of a task, and whether they are those of now.
    fn cpus(state: &SchedState, pid: i32) -> Option<(Option<Vec<u32>>, bool)> {
        let shown = state.shown(Pid(pid))?;
        let set = shown.set.map(|id| state.shown_set(id).unwrap().cpus().map(|cpu| cpu.0).collect());
        Some((set, shown.is_current))
    }

    #[test]
    fn a_child_has_the_set_of_its_parent_at_the_fork() {
        let mut state = SchedState::default();
        fork(&mut state, 5, 6);
        allow(&mut state, 5, &[1, 2]);
        fork(&mut state, 5, 7);
        allow(&mut state, 5, &[3]);
        assert_eq!(cpus(&state, 6), None);
        assert_eq!(cpus(&state, 7), Some((Some(vec![1, 2]), true)));
        assert_eq!(cpus(&state, 5), Some((Some(vec![3]), true)));
        // A number that is used again: the parent of the new task has no record.
        fork(&mut state, 6, 7);
        assert_eq!(cpus(&state, 7), None);
        // The set of a child by its cpuset, before its fork.
        allow(&mut state, 8, &[0]);
        fork(&mut state, 5, 8);
        assert_eq!(cpus(&state, 8), Some((Some(vec![0]), true)));
    }

    #[test]
    fn a_dead_task_has_no_set_and_a_thread_takes_its_own_along() {
        let mut state = SchedState::default();
        allow(&mut state, 5, &[1]);
        allow(&mut state, 6, &[2]);
        apply(&mut state, EventKind::Exec { pid: Pid(5), old_pid: Pid(6), program: Comm::EMPTY });
        assert_eq!((cpus(&state, 5), cpus(&state, 6)), (Some((Some(vec![2]), true)), None));
        let task = |pid| TaskRef { pid: Pid(pid), prio: 120, comm: Comm::EMPTY };
        apply(&mut state, EventKind::Switch { prev: task(5), state: PrevState::DEAD, next: task(9) });
        assert_eq!(cpus(&state, 5), None);
    }

    #[test]
    fn behind_a_loss_a_set_is_not_that_of_now() {
        let mut state = SchedState::default();
        allow(&mut state, 5, &[1]);
        apply(&mut state, EventKind::Lost { count: None });
        allow(&mut state, 6, &[1]);
        assert_eq!((cpus(&state, 5), cpus(&state, 6)), (Some((Some(vec![1]), false)), Some((Some(vec![1]), true))));
        // A part of the trace begins with both as they are.
        let part = AllowedSets::after(&state.allowed.noted());
        assert_eq!(part.noted(), state.allowed.noted());
        assert_eq!(part.noted()[0], PastAllowed { pid: Pid(5), cpus: Some("1".to_owned()), is_current: false });
    }

    #[test]
    fn the_number_of_sets_has_a_limit() {
        let mut state = SchedState::default();
        for cpu in 0..=MAX_SETS as u32 {
            allow(&mut state, 1 + cpu as i32, &[cpu]);
        }
        assert_eq!(cpus(&state, MAX_SETS as i32), Some((Some(vec![MAX_SETS as u32 - 1]), true)));
        assert_eq!(cpus(&state, MAX_SETS as i32 + 1), Some((None, true)));
        // An old set has its number.
        allow(&mut state, 7, &[0]);
        assert_eq!(cpus(&state, 7), Some((Some(vec![0]), true)));
        // A set that no task can have is unknown.
        allow(&mut state, 7, &[]);
        assert_eq!(cpus(&state, 7), Some((None, true)));
    }
}

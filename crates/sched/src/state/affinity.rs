//! The CPUs that tasks may use, as far as records of probes in the trace and lists beside it show them.
//!
//! A record of the probe `set_affinity` (`record --why`) shows the CPUs that a task may use from then on
//! ([`SchedState::shown`]), and so does one of `allowed` for a task that is woken. The latest record of a task counts alone.
//!
//! A list has the CPUs that a task was allowed at one moment, and the moments are few. A list therefore counts for a wait
//! only if it has the CPU that the task waits on; the task may use the CPUs of all such lists. A task without
//! a list has those of the task that forked it, as the kernel has it, and a task of the application without a known
//! parent those of the traced command. A task for whose wait no list counts is not restricted. Where each change is recorded, the
//! list of the start holds until the first one.

use super::allowed::MAX_SETS;
use crate::event::{Cpu, Pid, Ts};
use crate::state::application::ApplicationBasis;
use crate::state::{SchedState, ShownId, Task};
use crate::tables::cpu_set::CpuSet;
use crate::tables::seeded::SeededMap;

/// The number of one of the sets of an [`Affinity`]: the set of a list, or one that records have shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SetId(u32);

impl SetId {
    /// The number as an index for tables by set.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Maximum number of different lists of one task. If there are more, its affinity changes all the time, and the task
/// counts as not restricted.
const MAX_LISTS: usize = 3;

/// Maximum number of CPUs in the sets that are joined for tasks with several lists, all together: a list of ten bytes can have 65,535 CPUs.
/// A task with further lists counts as not restricted.
const MAX_JOINED: usize = 1 << 29;

/// Maximum number of ancestors that are looked up for a list.
const MAX_ANCESTORS: usize = 64;

/// The completeness of the records of affinity in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AffinityRecords {
    /// Some sets have records, such as those of tasks that are woken.
    Some,
    /// Each change of a set since this instant, the first of the trace, has a record.
    Changes(Ts),
}

/// The sets of CPUs that tasks may use, by lists beside the trace and by records in it.
///
/// The caller adds the lists before the pass, and asks with the state of the pass, which holds the sets that records
/// have shown.
#[derive(Clone, Debug, Default)]
pub struct Affinity {
    /// The CPUs of the machine. A set that has all of them restricts nothing.
    machine: CpuSet,
    /// The sets of the lists, and their unions.
    sets: Vec<CpuSet>,
    ids: SeededMap<CpuSet, SetId>,
    /// The numbers of the sets in the lists of each task.
    lists: SeededMap<Pid, Vec<SetId>>,
    /// The number of the set of each task at the start of the recording.
    first: SeededMap<Pid, SetId>,
    /// The tasks that have no list but that one.
    only_first: SeededMap<Pid, ()>,
    /// The number of CPUs in the sets that were joined so far.
    joined: usize,
    restricts: bool,
    records: Option<AffinityRecords>,
}

impl Affinity {
    /// Makes an affinity without lists, for a machine with these CPUs.
    pub fn new(machine: impl IntoIterator<Item = Cpu>) -> Affinity {
        Affinity { machine: machine.into_iter().collect(), ..Affinity::default() }
    }

    /// Adds the knowledge that the trace has records of the sets of tasks. Without it, records count for nothing.
    #[must_use]
    pub fn with_records(self, records: AffinityRecords) -> Affinity {
        Affinity { records: Some(records), ..self }
    }

    /// Adds the list of a task at the start of the recording.
    pub fn add_first(&mut self, pid: Pid, cpus: &CpuSet) {
        let is_first = !self.has_list(pid);
        self.add(pid, cpus);
        if let Some(id) = self.ids.get(cpus) {
            self.first.entry(pid).or_insert(*id);
        }
        if is_first {
            self.only_first.insert(pid, ());
        }
    }

    /// Adds a list of a task of the recorded command while it ran its program. The list of the start, which is that of the recorder's child, no longer
    /// counts for the task.
    pub fn add_of_program(&mut self, pid: Pid, cpus: &CpuSet) {
        if self.only_first.contains_key(&pid) {
            self.lists.remove(&pid);
        }
        self.add(pid, cpus);
    }

    /// Adds a list of a task at some moment of the recording. An empty set is ignored.
    pub fn add(&mut self, pid: Pid, cpus: &CpuSet) {
        if cpus.is_empty() {
            return;
        }
        self.only_first.remove(&pid);
        let id = self.id(cpus);
        self.restricts |= !cpus.contains(&self.machine);
        let lists = self.lists.entry(pid).or_default();
        if lists.len() > MAX_LISTS || lists.contains(&id) {
            return;
        }
        lists.push(id);
        if lists.len() > 1 && lists.len() <= MAX_LISTS && self.joined < MAX_JOINED {
            self.joined += lists.iter().map(|id| self.sets[id.index()].len() as usize).sum::<usize>();
            let known: Vec<CpuSet> = lists.iter().map(|id| self.sets[id.index()].clone()).collect();
            for pair in unions(&known) {
                self.id(&pair);
            }
        }
    }

    /// Returns the number of a set, and stores the set if it is new; the number of the whole machine where there are too many sets.
    fn id(&mut self, cpus: &CpuSet) -> SetId {
        if let Some(id) = self.ids.get(cpus) {
            return *id;
        }
        if self.sets.len() < MAX_SETS { self.store(cpus.clone()) } else { self.store(self.machine.clone()) }
    }

    fn store(&mut self, cpus: CpuSet) -> SetId {
        *self.ids.entry(cpus).or_insert_with_key(|cpus| {
            self.sets.push(cpus.clone());
            SetId(self.sets.len() as u32 - 1)
        })
    }

    /// Whether a list restricts some task, or a record can.
    pub fn restricts(&self) -> bool {
        self.restricts || self.records.is_some()
    }

    /// Whether there is a list of this task.
    pub fn has_list(&self, pid: Pid) -> bool {
        self.lists.contains_key(&pid)
    }

    /// Whether there is a list of this task that shows what its program may use. The list of the start does not for the traced command: it is that
    /// of the recorder's child, and `taskset` and its like bind themselves before they execute the program.
    pub fn has_list_of_program(&self, pid: Pid, state: &SchedState) -> bool {
        let is_command = state.application_basis() == ApplicationBasis::Command && state.root() == Some(pid);
        self.has_list(pid) && !(is_command && self.only_first.contains_key(&pid))
    }

    /// Whether there are lists of tasks, and records of those that change or are born.
    pub fn has_lists_and_records(&self) -> bool {
        !self.lists.is_empty() && self.records.is_some()
    }

    /// The set with this number. `state` must be the state of the pass that gave the number.
    pub fn set<'s>(&'s self, id: SetId, state: &'s SchedState) -> Option<&'s CpuSet> {
        let shown = || state.shown_set(ShownId::from_index(id.index().checked_sub(self.sets.len())?)?);
        self.sets.get(id.index()).or_else(shown)
    }

    /// Returns the set of CPUs that a task may use while it waits on `cpu`; `None` if the task is not known to be
    /// restricted.
    pub fn of(&self, task: &Task, cpu: Cpu, state: &SchedState) -> Option<SetId> {
        if !self.restricts() {
            return None;
        }
        let id = match self.recorded(task.pid, cpu, state) {
            Some(recorded) => recorded?,
            None => self.unchanged(task.pid, cpu, state).or_else(|| self.of_pid(self.listed(task, state)?, cpu))?,
        };
        self.set(id, state).is_some_and(|set| !set.contains(&self.machine)).then_some(id)
    }

    /// Returns the set by the latest record of a task, if that record counts; the inner `None` if the record does not
    /// show the whole set. Behind a loss the task can have been given another set, so that the record counts as a list
    /// does.
    fn recorded(&self, pid: Pid, cpu: Cpu, state: &SchedState) -> Option<Option<SetId>> {
        self.records?;
        let shown = state.shown(pid)?;
        let id = shown.set.map(|id| SetId((self.sets.len() + id.index()) as u32));
        let counts = shown.is_current || shown.set.and_then(|id| state.shown_set(id)).is_some_and(|set| set.has(cpu));
        counts.then_some(id)
    }

    /// Returns the set that a task without a record has had since the start, if each change since then has a record:
    /// the set of its own first list, or of the nearest ancestor that has one, since a child of a task with a record
    /// has one as well.
    fn unchanged(&self, pid: Pid, cpu: Cpu, state: &SchedState) -> Option<SetId> {
        let are_all_known = self.records == Some(AffinityRecords::Changes(state.start())) && !state.has_lost();
        if !are_all_known {
            return None;
        }
        let id = ancestry(pid, state).find_map(|pid| self.first.get(&pid))?;
        // A list that lacks the CPU was overtaken by a change before the trace.
        self.sets.get(id.index()).is_some_and(|set| set.has(cpu)).then_some(*id)
    }

    /// Returns the task itself or its nearest ancestor that has a list.
    fn listed(&self, task: &Task, state: &SchedState) -> Option<Pid> {
        let is_command = state.application_basis() == ApplicationBasis::Command;
        let is_of_command = is_command && task.kin.descends && !task.kin.helps;
        let root = || state.root().filter(|root| is_of_command && self.lists.contains_key(root));
        ancestry(task.pid, state).find(|pid| self.lists.contains_key(pid)).or_else(root)
    }

    /// Returns the union of all lists of `pid` that have `cpu`; `None` if that restricts nothing.
    fn of_pid(&self, pid: Pid, cpu: Cpu) -> Option<SetId> {
        let lists = self.lists.get(&pid).filter(|lists| lists.len() <= MAX_LISTS)?;
        let mut with = lists.iter().filter(|id| self.sets[id.index()].has(cpu));
        let (first, second) = (*with.next()?, with.next());
        let id = match second {
            None => first,
            Some(second) => {
                let mut union = self.sets[first.index()].clone();
                std::iter::once(second).chain(with).for_each(|id| union.add(&self.sets[id.index()]));
                *self.ids.get(&union)?
            }
        };
        (!self.sets[id.index()].contains(&self.machine)).then_some(id)
    }
}

/// Iterates over a task and its ancestors, the nearest first.
fn ancestry(pid: Pid, state: &SchedState) -> impl Iterator<Item = Pid> {
    std::iter::successors(Some(pid), |pid| state.kin(*pid).parent).take(MAX_ANCESTORS)
}

/// Returns the unions of two or more of at most [`MAX_LISTS`] sets.
fn unions(sets: &[CpuSet]) -> Vec<CpuSet> {
    let chosen = |mask: usize| sets.iter().enumerate().filter(move |(at, _)| mask >> at & 1 == 1).map(|(_, set)| set);
    let union = |mask: usize| {
        chosen(mask).fold(CpuSet::default(), |mut sum, set| {
            sum.add(set);
            sum
        })
    };
    (0..1_usize << sets.len()).filter(|mask| mask.count_ones() > 1).map(union).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::probe::Probe;
    use crate::event::{Comm, CpuMask, EventKind, SchedEvent, TaskRef};

    fn set(cpus: &[u32]) -> CpuSet {
        cpus.iter().map(|cpu| Cpu(*cpu)).collect()
    }

    #[test]
    fn the_number_of_lists_has_a_limit() {
        let mut affinity = Affinity::new((0..4).map(Cpu));
        (0..2 * MAX_SETS as u32).for_each(|nth| affinity.add(Pid(nth as i32), &set(&[nth])));
        // The set of the machine comes in addition.
        assert_eq!((affinity.sets.len(), affinity.ids.len()), (MAX_SETS + 1, MAX_SETS + 1));
        assert!(affinity.of_pid(Pid(1), Cpu(1)).is_some());
        assert_eq!(affinity.of_pid(Pid(MAX_SETS as i32), Cpu(1)), None);
    }

    #[test]
    fn the_sets_that_are_joined_have_a_limit() {
        let mut affinity = Affinity::new((0..65_535).map(Cpu));
        let all_but = |cpu: u32| (0..65_535).filter(|other| *other != cpu).map(Cpu).collect::<CpuSet>();
        let sets = [all_but(0), all_but(1), (0..10).map(Cpu).collect()];
        let most = MAX_JOINED as i32 / 65_534;
        for pid in 0..most {
            sets.iter().for_each(|set| affinity.add(Pid(pid), set));
        }
        assert!((MAX_JOINED..MAX_JOINED + 3 * 65_535).contains(&affinity.joined), "{}", affinity.joined);
        // A task of few lists is restricted whatever others have, and a further list of a task takes no room.
        affinity.add(Pid(most), &sets[2]);
        assert!(affinity.of_pid(Pid(most), Cpu(1)).is_some());
        (0..100).for_each(|cpu| affinity.add(Pid(0), &[Cpu(cpu)].into_iter().collect()));
        assert_eq!(affinity.lists[&Pid(0)].len(), MAX_LISTS + 1);
    }

    #[test]
    fn a_list_counts_where_it_has_the_cpu() {
        let mut affinity = Affinity::new((0..4).map(Cpu));
        affinity.add(Pid(7), &set(&[0, 1]));
        affinity.add(Pid(7), &set(&[1, 2]));
        affinity.add(Pid(8), &set(&[0, 1, 2, 3]));
        affinity.add(Pid(8), &set(&[3]));
        let cpus = |pid: i32, cpu: u32| {
            let id = affinity.of_pid(Pid(pid), Cpu(cpu))?;
            Some(affinity.sets[id.index()].cpus().map(|cpu| cpu.0).collect::<Vec<_>>())
        };
        assert_eq!(
            [cpus(7, 0), cpus(7, 1), cpus(7, 2), cpus(7, 3)],
            [Some(vec![0, 1]), Some(vec![0, 1, 2]), Some(vec![1, 2]), None]
        );
        // At one moment it could run anywhere: when that ended is not known.
        assert_eq!(cpus(8, 3), None);
        assert_eq!(cpus(9, 0), None);
        assert!(affinity.restricts());
    }

    #[test]
    fn a_list_of_the_program_takes_the_place_of_that_of_the_start() {
        let mut affinity = Affinity::new((0..4).map(Cpu));
        affinity.add_first(Pid(7), &set(&[0, 1, 2, 3]));
        affinity.add_of_program(Pid(7), &set(&[3]));
        affinity.add_of_program(Pid(7), &set(&[2, 3]));
        let cpus = |cpu: u32| Some(affinity.sets[affinity.of_pid(Pid(7), Cpu(cpu))?.index()].len());
        // `taskset`, which executes the program, waited on CPU 0 at most.
        assert_eq!([cpus(0), cpus(2), cpus(3)], [None, Some(2), Some(2)]);
        assert!(affinity.has_list_of_program(Pid(7), &SchedState::default()));
    }

    #[test]
    fn lists_of_all_cpus_restrict_nothing() {
        let mut affinity = Affinity::new((0..4).map(Cpu));
        affinity.add(Pid(7), &set(&[0, 1, 2, 3, 4, 5, 6, 7]));
        assert!(!affinity.restricts());
    }

    /// Applies a record of the set of a task.
    fn allow(state: &mut SchedState, pid: i32, cpus: &[u32]) {
        let probe = Probe::Allows(Pid(pid), CpuMask::of(cpus.iter().map(|cpu| Cpu(*cpu))));
        apply(state, EventKind::Probe { id: 1, probe });
    }

    fn apply(state: &mut SchedState, kind: EventKind) {
        state.apply(&SchedEvent { ts: Ts(0), cpu: Cpu(0), pid: Pid::IDLE, flags: 0, kind });
    }

    /// The CPUs that a task may use that begins to wait on a CPU.
    fn cpus_of(affinity: &Affinity, state: &mut SchedState, pid: i32, cpu: u32) -> Option<Vec<u32>> {
        let task = TaskRef { pid: Pid(pid), prio: 120, comm: Comm::EMPTY };
        apply(state, EventKind::Wakeup { task, target: Cpu(cpu) });
        let id = affinity.of(state.task_of(Pid(pid))?, Cpu(cpu), state)?;
        Some(affinity.set(id, state)?.cpus().map(|cpu| cpu.0).collect())
    }

    /// Task 7 could run anywhere at the start, and on CPU 3 at the end; task 8 on CPU 1, and anywhere.
    fn of_two_tasks() -> Affinity {
        let mut affinity = Affinity::new((0..4).map(Cpu));
        for (pid, first, last) in [(7, [0, 1, 2, 3].as_slice(), [3].as_slice()), (8, &[1], &[0, 1, 2, 3])] {
            affinity.add_first(Pid(pid), &set(first));
            affinity.add(Pid(pid), &set(last));
        }
        affinity
    }

    #[test]
    fn records_count_from_their_instant_on() {
        let affinity = of_two_tasks().with_records(AffinityRecords::Changes(Ts(0)));
        let mut state = SchedState::default();
        // Until a record, the lists of the start.
        assert_eq!(cpus_of(&affinity, &mut state, 7, 3), None);
        assert_eq!(cpus_of(&affinity, &mut state, 8, 1), Some(vec![1]));
        // A list that lacks the CPU was of an earlier time.
        assert_eq!(cpus_of(&affinity, &mut state, 8, 2), None);
        allow(&mut state, 8, &[2, 3]);
        assert_eq!(cpus_of(&affinity, &mut state, 8, 2), Some(vec![2, 3]));
        // It is about to be moved.
        assert_eq!(cpus_of(&affinity, &mut state, 8, 0), Some(vec![2, 3]));
        allow(&mut state, 8, &[0, 1, 2, 3]);
        assert_eq!(cpus_of(&affinity, &mut state, 8, 1), None);
        allow(&mut state, 7, &[3]);
        let fork = |parent, child| EventKind::Fork { parent: Pid(parent), child: Pid(child), child_comm: Comm::EMPTY };
        apply(&mut state, fork(7, 9));
        allow(&mut state, 7, &[1]);
        assert_eq!([7, 9].map(|pid| cpus_of(&affinity, &mut state, pid, 3)), [Some(vec![1]), Some(vec![3])]);
        // A record that does not show all of a set restricts nothing.
        allow(&mut state, 7, &[]);
        assert_eq!(cpus_of(&affinity, &mut state, 7, 1), None);
    }

    #[test]
    fn a_child_without_a_record_has_the_first_list_of_its_ancestors() {
        let affinity = of_two_tasks().with_records(AffinityRecords::Changes(Ts(0)));
        let mut state = SchedState::default();
        let fork = |parent, child| EventKind::Fork { parent: Pid(parent), child: Pid(child), child_comm: Comm::EMPTY };
        apply(&mut state, fork(8, 9));
        apply(&mut state, fork(9, 10));
        allow(&mut state, 8, &[2]);
        assert_eq!(
            [8, 9, 10].map(|pid| cpus_of(&affinity, &mut state, pid, 1)),
            [Some(vec![2]), Some(vec![1]), Some(vec![1])]
        );
    }

    #[test]
    fn behind_a_loss_and_without_records_of_changes_lists_count_as_ever() {
        let loss = EventKind::Lost { count: None };
        let mut state = SchedState::default();
        let (some, all) = (AffinityRecords::Some, AffinityRecords::Changes(Ts(0)));
        assert_eq!(cpus_of(&of_two_tasks().with_records(some), &mut state, 8, 1), None);
        // A window that begins before the state does: changes before are not known.
        assert_eq!(cpus_of(&of_two_tasks().with_records(AffinityRecords::Changes(Ts(-1))), &mut state, 8, 1), None);
        let affinity = of_two_tasks().with_records(all);
        allow(&mut state, 7, &[1, 2]);
        apply(&mut state, loss);
        assert_eq!(cpus_of(&affinity, &mut state, 8, 1), None);
        assert_eq!(cpus_of(&affinity, &mut state, 7, 2), Some(vec![1, 2]));
        assert_eq!(cpus_of(&affinity, &mut state, 7, 3), None);
        // Records count for nothing unless the affinity was made with them.
        assert_eq!(cpus_of(&of_two_tasks(), &mut state, 7, 2), None);
    }
}

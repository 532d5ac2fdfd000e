//! The CPUs that tasks may use, as far as lists beside the trace show it: affinity is not in the trace itself.
//!
//! A list has the CPUs that a task was allowed at one moment, and the moments are few. A list therefore counts for a wait
//! only if it has the CPU that the task waits on; the task may use the CPUs of all such lists. A task without
//! a list has those of the task that forked it, as the kernel has it, and a task of the application without a known
//! parent those of the traced command. A task for whose wait no list counts is not restricted.

use crate::event::{Cpu, Pid};
use crate::state::{SchedState, Task};
use rustc_hash::FxHashMap;

/// A set of CPUs: a bit for each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CpuSet {
    /// The last word is not zero, so that equal sets are equal.
    words: Vec<u64>,
}

impl CpuSet {
    /// Whether the CPU is in the set.
    pub fn has(&self, cpu: Cpu) -> bool {
        self.words.get(cpu.index() / 64).is_some_and(|word| word >> (cpu.index() % 64) & 1 == 1)
    }

    /// Adds or removes a CPU.
    pub fn set(&mut self, cpu: Cpu, is_in: bool) {
        let (at, bit) = (cpu.index() / 64, 1 << (cpu.index() % 64));
        match (self.words.get_mut(at), is_in) {
            (Some(word), true) => *word |= bit,
            (Some(word), false) => {
                *word &= !bit;
                self.trim();
            }
            (None, true) => {
                self.words.resize(at + 1, 0);
                self.words[at] = bit;
            }
            (None, false) => {}
        }
    }

    fn trim(&mut self) {
        let used = self.words.iter().rposition(|word| *word != 0).map_or(0, |last| last + 1);
        self.words.truncate(used);
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The number of CPUs.
    pub fn len(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    /// Adds the CPUs of another set.
    pub fn add(&mut self, other: &CpuSet) {
        if self.words.len() < other.words.len() {
            self.words.resize(other.words.len(), 0);
        }
        self.words.iter_mut().zip(&other.words).for_each(|(word, more)| *word |= more);
    }

    /// The CPUs that are in both sets.
    #[must_use]
    pub fn and(&self, other: &CpuSet) -> CpuSet {
        let mut both = CpuSet { words: self.words.iter().zip(&other.words).map(|(a, b)| a & b).collect() };
        both.trim();
        both
    }

    /// Whether a CPU is in both sets.
    pub fn meets(&self, other: &CpuSet) -> bool {
        self.words.iter().zip(&other.words).any(|(a, b)| a & b != 0)
    }

    /// Whether every CPU of another set is in this one.
    pub fn contains(&self, other: &CpuSet) -> bool {
        other.words.len() <= self.words.len() && other.words.iter().zip(&self.words).all(|(a, b)| a & !b == 0)
    }

    /// The CPUs, ascending.
    pub fn cpus(&self) -> impl Iterator<Item = Cpu> {
        let bits = |(at, word): (usize, &u64)| {
            let mut rest = *word;
            std::iter::from_fn(move || {
                let bit = (rest != 0).then(|| rest.trailing_zeros())?;
                rest &= rest - 1;
                Some(Cpu(at as u32 * 64 + bit))
            })
        };
        self.words.iter().enumerate().flat_map(bits)
    }
}

impl FromIterator<Cpu> for CpuSet {
    fn from_iter<I: IntoIterator<Item = Cpu>>(cpus: I) -> CpuSet {
        let mut set = CpuSet::default();
        cpus.into_iter().for_each(|cpu| set.set(cpu, true));
        set
    }
}

/// One of the sets that an [`Affinity`] has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SetId(u32);

impl SetId {
    /// An index for tables by set.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The maximum number of different lists of one task. More show that its affinity changes all the time, and the task is
/// not restricted.
const MAX_LISTS: usize = 3;

/// Ancestors that are asked for a list before the search is given up.
const MAX_ANCESTORS: usize = 64;

/// The sets of CPUs that tasks may use.
#[derive(Clone, Debug, Default)]
pub struct Affinity {
    /// The CPUs of the machine: a set with all of them restricts nothing.
    machine: CpuSet,
    sets: Vec<CpuSet>,
    ids: FxHashMap<CpuSet, SetId>,
    /// The lists of each task, and every union of them.
    lists: FxHashMap<Pid, Vec<SetId>>,
    restricts: bool,
}

impl Affinity {
    /// No lists, for a machine with these CPUs.
    pub fn new(machine: impl IntoIterator<Item = Cpu>) -> Affinity {
        Affinity { machine: machine.into_iter().collect(), ..Affinity::default() }
    }

    /// Adds a list of a task.
    pub fn add(&mut self, pid: Pid, cpus: &CpuSet) {
        if cpus.is_empty() {
            return;
        }
        let id = self.id(cpus);
        self.restricts |= !cpus.contains(&self.machine);
        let lists = self.lists.entry(pid).or_default();
        if lists.contains(&id) {
            return;
        }
        lists.push(id);
        if lists.len() > 1 && lists.len() <= MAX_LISTS {
            let known: Vec<CpuSet> = lists.iter().map(|id| self.sets[id.index()].clone()).collect();
            for pair in unions(&known) {
                self.id(&pair);
            }
        }
    }

    /// The number of a set, new or old.
    fn id(&mut self, cpus: &CpuSet) -> SetId {
        if let Some(id) = self.ids.get(cpus) {
            return *id;
        }
        let id = SetId(self.sets.len() as u32);
        self.sets.push(cpus.clone());
        self.ids.insert(cpus.clone(), id);
        id
    }

    /// Whether any list restricts a task.
    pub fn restricts(&self) -> bool {
        self.restricts
    }

    /// The sets, by [`SetId::index`].
    pub fn sets(&self) -> &[CpuSet] {
        &self.sets
    }

    /// The CPUs that a task may use that waits on `cpu`; nothing if it is not known to be restricted.
    pub fn of(&self, task: &Task, cpu: Cpu, state: &SchedState) -> Option<SetId> {
        if !self.restricts {
            return None;
        }
        self.of_pid(self.listed(task, state)?, cpu)
    }

    /// The task itself or the nearest ancestor that has a list.
    fn listed(&self, task: &Task, state: &SchedState) -> Option<Pid> {
        let parent = |pid: &Pid| state.kin(*pid).parent;
        let mut line = std::iter::successors(Some(task.pid), parent).take(MAX_ANCESTORS);
        let root = || state.root().filter(|root| task.kin.descends && self.lists.contains_key(root));
        line.find(|pid| self.lists.contains_key(pid)).or_else(root)
    }

    /// The CPUs of all lists of `pid` that have `cpu`; nothing if that restricts nothing.
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

/// The unions of two or more of at most [`MAX_LISTS`] sets.
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
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn set(cpus: &[u32]) -> CpuSet {
        cpus.iter().map(|cpu| Cpu(*cpu)).collect()
    }

    proptest! {
        #[test]
        fn sets_are_those_of_the_standard_library(
            a in prop::collection::btree_set(0_u32..200, 0..20), b in prop::collection::btree_set(0_u32..200, 0..20)
        ) {
            let of = |set: &BTreeSet<u32>| set.iter().map(|cpu| Cpu(*cpu)).collect::<CpuSet>();
            let plain = |set: &CpuSet| set.cpus().map(|cpu| cpu.0).collect::<BTreeSet<u32>>();
            let (x, y) = (of(&a), of(&b));
            prop_assert_eq!(plain(&x), a.clone());
            prop_assert_eq!(x.len() as usize, a.len());
            prop_assert_eq!(x.and(&y), of(&(&a & &b)));
            prop_assert_eq!(x.meets(&y), !a.is_disjoint(&b));
            prop_assert_eq!(x.contains(&y), a.is_superset(&b));
            let (mut sum, mut less) = (x.clone(), x);
            sum.add(&y);
            b.iter().for_each(|cpu| less.set(Cpu(*cpu), false));
            prop_assert_eq!(sum, of(&(&a | &b)));
            prop_assert_eq!(less, of(&(&a - &b)));
        }
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
            Some(affinity.sets()[id.index()].cpus().map(|cpu| cpu.0).collect::<Vec<_>>())
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
    fn lists_of_all_cpus_restrict_nothing() {
        let mut affinity = Affinity::new((0..4).map(Cpu));
        affinity.add(Pid(7), &set(&[0, 1, 2, 3, 4, 5, 6, 7]));
        assert!(!affinity.restricts());
    }
}

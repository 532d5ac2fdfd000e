//! The groups of CPUs at each level of the topology.

use sched::topology::Distance;
use sched::{Cpu, CpuSet, Topology};
use std::collections::BTreeMap;

/// The distance between two CPUs of one group, at each level: SMT siblings, a cluster, a last-level cache, a node.
pub(super) const LEVELS: [Distance; 4] = [Distance::Smt, Distance::Cluster, Distance::Llc, Distance::Node];

/// The index of no group.
const NONE: u32 = u32::MAX;

/// The groups of CPUs at one level of the topology. They take room by the CPUs in them: a set with a bit for each CPU of the machine would take
/// gigabytes for tens of thousands of caches.
#[derive(Clone, Debug, Default)]
pub(super) struct LevelGroups {
    /// The index of the group of each CPU, or [`NONE`].
    of: Vec<u32>,
    /// The number that the topology gives each group, in the order of the first CPUs.
    pub(super) names: Vec<u32>,
    /// The CPUs of all groups, group by group: 64 CPUs by the place of their word in a set.
    words: Vec<(u32, u64)>,
    /// The end of the words of each group.
    ends: Vec<u32>,
}

/// The CPUs of a group.
#[derive(Clone, Copy, Debug)]
pub(super) struct GroupCpus<'g>(&'g [(u32, u64)]);

impl GroupCpus<'_> {
    /// Whether a CPU of the group is in a set.
    pub(super) fn meets(self, set: &CpuSet) -> bool {
        self.0.iter().any(|(place, word)| set.word(*place as usize) & word != 0)
    }
}

impl LevelGroups {
    /// The groups at all levels; nothing without a topology.
    pub(super) fn of_levels(topology: &Topology) -> Option<[LevelGroups; LEVELS.len()]> {
        (!topology.is_empty()).then(|| [0, 1, 2, 3].map(|level| LevelGroups::new(topology, level)))
    }

    fn new(topology: &Topology, level: usize) -> LevelGroups {
        let mut groups = LevelGroups::default();
        let mut places: BTreeMap<u32, u32> = BTreeMap::new();
        let mut words: Vec<(u32, u32, u64)> = Vec::new();
        for cpu in topology.cpus().filter(|cpu| cpu.0 < Cpu::LIMIT) {
            let Some(name) = topology.place(cpu).and_then(|place| place.levels()[level]) else { continue };
            let index = *places.entry(name).or_insert_with(|| {
                groups.names.push(name);
                groups.names.len() as u32 - 1
            });
            groups.of.resize(cpu.index() + 1, NONE);
            groups.of[cpu.index()] = index;
            words.push((index, cpu.0 / 64, 1 << (cpu.0 % 64)));
        }
        words.sort_unstable();
        for group in words.chunk_by(|a, b| a.0 == b.0) {
            let of_group = group.chunk_by(|a, b| a.1 == b.1);
            groups.words.extend(of_group.map(|same| (same[0].1, same.iter().fold(0, |word, cpu| word | cpu.2))));
            groups.ends.push(groups.words.len() as u32);
        }
        groups.words.shrink_to_fit();
        groups
    }

    /// The index of the group of a CPU, if the topology has one at this level.
    pub(super) fn group(&self, cpu: Cpu) -> Option<usize> {
        self.of.get(cpu.index()).filter(|group| **group != NONE).map(|group| *group as usize)
    }

    /// The CPUs of the group of a CPU.
    pub(super) fn around(&self, cpu: Cpu) -> Option<GroupCpus<'_>> {
        self.members(self.group(cpu)?)
    }

    /// The CPUs of the group with an index.
    pub(super) fn members(&self, group: usize) -> Option<GroupCpus<'_>> {
        let start = group.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).copied())?;
        self.words.get(start as usize..*self.ends.get(group)? as usize).map(GroupCpus)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sched::topology::CpuLocation;

    #[test]
    fn tens_of_thousands_of_caches_take_room_by_their_cpus() {
        let mut topology = Topology::default();
        let cpus = 60_000;
        for cpu in 0..cpus {
            // The caches alternate, so that none has neighbouring CPUs.
            let place = CpuLocation { llc: Some(cpu % 30_000), node: Some(7), ..CpuLocation::default() };
            topology.set(Cpu(cpu), place);
        }
        let [cores, _, caches, nodes] = LevelGroups::of_levels(&topology).expect("levels");
        assert_eq!((cores.names.len(), caches.names.len(), &nodes.names[..]), (0, 30_000, &[7][..]));
        assert_eq!((caches.words.len(), nodes.words.len()), (60_000, 938));
        let set: CpuSet = [Cpu(5), Cpu(40_000)].into_iter().collect();
        let meets = |cpu: u32| caches.around(Cpu(cpu)).expect("a cache").meets(&set);
        assert_eq!([5, 30_005, 10_000, 40_000, 6].map(meets), [true, true, true, true, false]);
        assert!(nodes.members(0).is_some_and(|node| node.meets(&set)) && nodes.members(1).is_none());
        assert!(cores.around(Cpu(5)).is_none() && caches.around(Cpu(cpus)).is_none());
    }
}

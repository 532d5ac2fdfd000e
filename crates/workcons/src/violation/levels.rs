//! The groups of CPUs at each level of the topology.

use sched::topology::{CpuLocation, Distance};
use sched::{Cpu, CpuSet, Topology};

/// The distance between two CPUs of one group, at each level: SMT siblings, a cluster, a last-level cache, a node.
pub(super) const LEVELS: [Distance; 4] = [Distance::Smt, Distance::Cluster, Distance::Llc, Distance::Node];

/// The groups of CPUs at one level of the topology.
#[derive(Clone, Debug, Default)]
pub(super) struct LevelGroups {
    /// The index of the group of each CPU.
    of: Vec<Option<usize>>,
    /// The number that the topology gives each group, in the order of the first CPUs.
    pub(super) names: Vec<u32>,
    /// The CPUs of each group.
    members: Vec<CpuSet>,
}

impl LevelGroups {
    /// The groups at all levels; nothing without a topology.
    pub(super) fn of_levels(topology: &Topology) -> Option<[LevelGroups; LEVELS.len()]> {
        let levels: [fn(&CpuLocation) -> Option<u32>; LEVELS.len()] =
            [|place| place.core, |place| place.cluster, |place| place.llc, |place| place.node.or(place.socket)];
        (!topology.is_empty()).then(|| levels.map(|name| LevelGroups::new(topology, name)))
    }

    fn new(topology: &Topology, name: fn(&CpuLocation) -> Option<u32>) -> LevelGroups {
        let mut groups = LevelGroups::default();
        for cpu in topology.cpus().filter(|cpu| cpu.0 < Cpu::LIMIT) {
            let Some(name) = topology.place(cpu).and_then(name) else { continue };
            let index = groups.names.iter().position(|known| *known == name).unwrap_or_else(|| {
                groups.names.push(name);
                groups.members.push(CpuSet::default());
                groups.names.len() - 1
            });
            groups.of.resize(cpu.index() + 1, None);
            groups.of[cpu.index()] = Some(index);
            groups.members[index].set(cpu, true);
        }
        groups
    }

    /// The index of the group of a CPU, if the topology has one at this level.
    pub(super) fn group(&self, cpu: Cpu) -> Option<usize> {
        self.of.get(cpu.index()).copied().flatten()
    }

    /// The CPUs of the group of a CPU.
    pub(super) fn around(&self, cpu: Cpu) -> Option<&CpuSet> {
        self.members.get(self.group(cpu)?)
    }

    /// The CPUs of the group with an index.
    pub(super) fn members(&self, group: usize) -> Option<&CpuSet> {
        self.members.get(group)
    }
}

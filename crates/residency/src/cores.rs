//! Cores with several CPUs: the busy ones, and those of which every CPU idles.

use sched::topology::{CpuLocation, CpuOrder};
use sched::{Cpu, Load, SchedState, Topology};
use std::collections::BTreeMap;

/// The CPUs of each core that has several.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cores {
    /// The CPUs of the core of each CPU; empty for one without siblings.
    siblings: Vec<Vec<Cpu>>,
    /// The place of the core of each CPU in `all`, for one with siblings.
    numbers: Vec<Option<usize>>,
    /// The CPUs of each core with several.
    all: Vec<Vec<Cpu>>,
}

impl Cores {
    pub(crate) fn of(topology: &Topology) -> Cores {
        let mut by_core: BTreeMap<u32, Vec<Cpu>> = BTreeMap::new();
        for cpu in topology.cpus() {
            if let Some(CpuLocation { core: Some(core), .. }) = topology.place(cpu) {
                by_core.entry(*core).or_default().push(cpu);
            }
        }
        let all: Vec<Vec<Cpu>> = by_core.into_values().filter(|cpus| cpus.len() > 1).collect();
        let most = all.iter().flatten().map(|cpu| cpu.index() + 1).max().unwrap_or(0);
        let (mut siblings, mut numbers) = (vec![Vec::new(); most], vec![None; most]);
        for (number, cpus) in all.iter().enumerate() {
            for cpu in cpus {
                (siblings[cpu.index()], numbers[cpu.index()]) = (cpus.clone(), Some(number));
            }
        }
        Cores { siblings, numbers, all }
    }

    /// Whether any core has several CPUs.
    pub(crate) fn have_siblings(&self) -> bool {
        !self.all.is_empty()
    }

    /// The CPUs of each core with several.
    pub(crate) fn all(&self) -> &[Vec<Cpu>] {
        &self.all
    }

    /// The place of the core of `cpu` among those with several CPUs, if it is one.
    pub(crate) fn number(&self, cpu: Cpu) -> Option<usize> {
        self.numbers.get(cpu.index()).copied().flatten()
    }

    /// The CPUs of the core of `cpu`, itself included; none where the core has one alone.
    pub(crate) fn core(&self, cpu: Cpu) -> &[Cpu] {
        self.siblings.get(cpu.index()).map_or(&[], Vec::as_slice)
    }

    /// Whether a sibling of `cpu` runs a task; nothing where there is none, or the state of one is unknown and no other is busy.
    pub(crate) fn is_beside_busy(&self, cpu: Cpu, state: &SchedState) -> Option<bool> {
        let mut others = self.core(cpu).iter().filter(|other| **other != cpu).peekable();
        others.peek()?;
        let mut known = Some(false);
        for other in others {
            match state.load(*other) {
                Load::Busy | Load::Overloaded => return Some(true),
                Load::Unknown | Load::Unobserved => known = None,
                Load::Idle | Load::SwitchPending | Load::Unserved | Load::Offline => {}
            }
        }
        known
    }

    /// The nearest core to `cpu` of which every CPU idles with an empty queue: 0 under the same LLC, 1 in the same node, 2 beyond;
    /// nothing if there is none. The core of `cpu` is not looked at.
    pub(crate) fn nearest_idle(&self, cpu: Cpu, topology: &Topology, state: &SchedState) -> Option<usize> {
        let own = self.core(cpu);
        let is_idle =
            |core: &&Vec<Cpu>| core.as_slice() != own && core.iter().all(|cpu| state.load(*cpu) == Load::Idle);
        let same = |order: CpuOrder, other: Cpu| {
            let group = topology.group(cpu, order);
            group.is_some() && group == topology.group(other, order)
        };
        let distance = |core: &Vec<Cpu>| match core[0] {
            other if same(CpuOrder::Llc, other) => 0,
            other if same(CpuOrder::Node, other) => 1,
            _ => 2,
        };
        self.all.iter().filter(is_idle).map(distance).min()
    }
}

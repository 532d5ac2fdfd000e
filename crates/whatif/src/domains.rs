//! The scheduling domains of the CPUs: the spans over which balancing looks for tasks, the smallest first, each with its groups.

use sched::Cpu;
use sched::topology::Distance;
use std::collections::BTreeMap;

/// The levels of domains: cores, clusters, caches, nodes, and all CPUs.
const LEVELS: usize = Distance::ALL.len();

/// The level of the domain of all CPUs.
pub(crate) const NUMA: usize = LEVELS - 1;

/// A scheduling domain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Domain {
    /// The CPUs of each child domain, in ascending order; single CPUs in a domain without children.
    pub(crate) groups: Vec<Vec<Cpu>>,
    /// Whether a group has several CPUs, so that the kernel prefers to spread tasks over the groups (`SD_PREFER_SIBLING` of the children).
    pub(crate) has_children: bool,
    /// Whether the CPUs are siblings of one core, for which no task is hot in a cache.
    pub(crate) is_core: bool,
    /// Whether the CPUs share their last-level cache.
    pub(crate) shares_cache: bool,
    /// Between nodes: the number of tasks of a node up to which a small imbalance is left (`imb_numa_nr`).
    pub(crate) most_between_nodes: Option<u64>,
}

/// The domains of a machine. They take room by the number of CPUs and levels, and not by that of pairs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Domains {
    list: Vec<Domain>,
    /// The levels of each CPU, ascending, each with the place of its domain.
    of_cpu: Vec<Vec<(usize, usize)>>,
}

impl Domains {
    /// The domains of the CPUs below `count` of which `all` take part. `level`: the number of the core, the cluster, the cache or the node of a CPU.
    pub(crate) fn new(count: usize, all: &[Cpu], level: impl Fn(Cpu, usize) -> Option<u32>) -> Domains {
        let mut domains = Domains { list: Vec::new(), of_cpu: vec![Vec::new(); count] };
        // A domain with one group alone is none (`sd_parent_degenerate`).
        for at in 0..LEVELS {
            let mut spans: BTreeMap<u32, Vec<Cpu>> = BTreeMap::new();
            for cpu in all {
                if let Some(number) = if at == NUMA { Some(0) } else { level(*cpu, at) } {
                    spans.entry(number).or_default().push(*cpu);
                }
            }
            for span in spans.into_values() {
                let groups = groups(&span, at, &level);
                if groups.len() > 1 {
                    domains.add(at, &span, groups, &level);
                }
            }
        }
        domains
    }

    fn add(&mut self, at: usize, span: &[Cpu], groups: Vec<Vec<Cpu>>, level: &impl Fn(Cpu, usize) -> Option<u32>) {
        let llc = Distance::Llc as usize;
        let node = Distance::Node as usize;
        let has_nodes = at == NUMA && span.iter().any(|cpu| level(*cpu, node).is_some());
        let most_between_nodes = has_nodes.then(|| {
            let first = &groups[0];
            let caches = first.iter().map(|cpu| level(*cpu, llc)).collect::<std::collections::BTreeSet<_>>().len();
            (if caches > 1 { caches } else { first.len() / 8 }).max(1) as u64
        });
        let domain = Domain {
            has_children: groups.iter().any(|group| group.len() > 1),
            is_core: at == Distance::Smt as usize,
            shares_cache: at <= llc,
            most_between_nodes,
            groups,
        };
        for cpu in span {
            self.of_cpu[cpu.index()].push((at, self.list.len()));
        }
        self.list.push(domain);
    }

    /// The domains of a CPU, the smallest first: the level and the place of each.
    pub(crate) fn of(&self, cpu: Cpu) -> &[(usize, usize)] {
        self.of_cpu.get(cpu.index()).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn get(&self, at: usize) -> &Domain {
        &self.list[at]
    }
}

/// The groups of a span: CPUs that share the next lower level that is known of them.
fn groups(span: &[Cpu], at: usize, level: &impl Fn(Cpu, usize) -> Option<u32>) -> Vec<Vec<Cpu>> {
    let mut groups: BTreeMap<(usize, u32), Vec<Cpu>> = BTreeMap::new();
    for cpu in span {
        let lower = (0..at).rev().find_map(|lower| Some((lower + 1, level(*cpu, lower)?)));
        groups.entry(lower.unwrap_or((0, cpu.0))).or_default().push(*cpu);
    }
    groups.into_values().collect()
}

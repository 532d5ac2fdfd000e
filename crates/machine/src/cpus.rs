//! Processors, caches and nodes.

use crate::Root;
use sched::event::CleanText;
use sched::topology::{CpuLocation, format_cpu_list};
use sched::{Cpu, Topology};
use serde::{Deserialize, Serialize};

/// The CPUs of a machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MachineCpus {
    /// The model, as /proc/cpuinfo names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<CleanText>,
    /// The CPUs that run tasks, such as `0-7`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub online: Option<CleanText>,
    /// The CPUs outside of load balancing (`isolcpus=` or isolated cpuset partitions).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolated: Option<CleanText>,
    /// The CPUs without a periodic tick while one task runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nohz_full: Option<CleanText>,
    /// Simultaneous multithreading: `on`, `off`, `forceoff`, `notsupported` or `notimplemented`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smt: Option<CleanText>,
    /// The frequency governors that are in use, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub governors: Vec<CleanText>,
    /// The places of the CPUs in the machine, one entry per CPU.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<CpuPlace>,
    /// The NUMA nodes of the machine, one entry per node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<Node>,
}

/// The place of one CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CpuPlace {
    /// The CPU's number.
    pub cpu: u32,
    /// The lowest CPU of its core, which identifies the core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core: Option<u32>,
    /// The lowest CPU of its cluster, which identifies the cluster: the CPUs that share its L2 cache, or a group of cores by the firmware's
    /// tables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<u32>,
    /// The lowest CPU that shares its last-level cache, which identifies the cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub llc: Option<u32>,
    /// The NUMA node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<u32>,
    /// The socket (physical package).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<u32>,
    /// The relative capacity, 1024 for the fastest CPU of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<u32>,
    /// The greatest frequency in kHz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_khz: Option<u64>,
}

/// A NUMA node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Node {
    /// The node's number.
    pub node: u32,
    /// The CPUs, such as `0-3`; empty for a node of memory alone.
    pub cpus: CleanText,
    /// The distance to each node in the order of their numbers, 10 for the node itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub distances: Vec<u32>,
    /// The size of the memory in kB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_kb: Option<u64>,
}

const FOLDER: &str = "sys/devices/system/cpu";

impl MachineCpus {
    pub(crate) fn read(root: &Root) -> MachineCpus {
        let list = |name: &str| root.cpu_list(format!("{FOLDER}/{name}")).map(|cpus| format_cpu_list(&cpus).into());
        let nodes = nodes(root);
        let numbers = root.numbered(FOLDER, "cpu");
        let mut governors: Vec<CleanText> =
            numbers.iter().filter_map(|cpu| root.fact(format!("{FOLDER}/cpu{cpu}/cpufreq/scaling_governor"))).collect();
        governors.sort();
        governors.dedup();
        let mut cpus = MachineCpus {
            model: model(root),
            online: list("online"),
            isolated: list("isolated"),
            nohz_full: list("nohz_full"),
            smt: root.fact(format!("{FOLDER}/smt/control")),
            governors,
            places: numbers.iter().map(|cpu| CpuPlace::read(root, *cpu, &nodes)).collect(),
            nodes: nodes.into_iter().map(|(node, _)| node).collect(),
        };
        cpus.settle_clusters();
        cpus
    }

    /// The capacities of the CPUs, as far as they are known.
    pub fn capacities(&self) -> impl Iterator<Item = (Cpu, u32)> {
        self.places.iter().filter_map(|place| Some((Cpu(place.cpu), place.capacity?)))
    }

    pub(crate) fn topology(&self) -> Topology {
        let mut topology = Topology::default();
        for place in &self.places {
            let CpuPlace { core, cluster, llc, node, socket, .. } = *place;
            let of = CpuLocation { core, cluster, llc, node, socket };
            // An offline CPU has no place; the CPU exists all the same.
            topology.set(Cpu(place.cpu), of);
        }
        topology.settle_clusters();
        topology
    }

    /// Forgets the clusters that are no level between the core and the last-level cache.
    fn settle_clusters(&mut self) {
        let topology = self.topology();
        for place in &mut self.places {
            place.cluster = topology.place(Cpu(place.cpu)).and_then(|location| location.cluster);
        }
    }
}

impl CpuPlace {
    fn read(root: &Root, cpu: u32, nodes: &[(Node, Vec<Cpu>)]) -> CpuPlace {
        let folder = format!("{FOLDER}/cpu{cpu}");
        let lowest = |name: &str| Some(root.cpu_list(format!("{folder}/{name}"))?.first()?.0);
        let frequency = |name: &str| root.number(format!("{folder}/cpufreq/{name}"));
        CpuPlace {
            cpu,
            core: lowest("topology/core_cpus_list").or_else(|| lowest("topology/thread_siblings_list")),
            cluster: lowest("topology/cluster_cpus_list").or_else(|| second_level(root, &folder)),
            llc: last_level(root, &folder),
            node: nodes.iter().find(|(_, cpus)| cpus.contains(&Cpu(cpu))).map(|(node, _)| node.node),
            // Some virtual machines give -1.
            socket: root.number(format!("{folder}/topology/physical_package_id")),
            capacity: root.number(format!("{folder}/cpu_capacity")),
            max_khz: frequency("cpuinfo_max_freq"),
        }
    }
}

/// The lowest CPU that shares the cache of the highest level.
fn last_level(root: &Root, cpu: &str) -> Option<u32> {
    caches(root, cpu).max_by_key(|(level, _)| *level).map(|(_, lowest)| lowest)
}

/// The lowest CPU that shares the cache of the second level.
fn second_level(root: &Root, cpu: &str) -> Option<u32> {
    caches(root, cpu).find(|(level, _)| *level == 2).map(|(_, lowest)| lowest)
}

/// The level of each cache of a CPU, and the lowest CPU that shares it.
fn caches<'r>(root: &'r Root, cpu: &'r str) -> impl Iterator<Item = (u32, u32)> + 'r {
    root.numbered(format!("{cpu}/cache"), "index").into_iter().filter_map(move |index| {
        let level: u32 = root.number(format!("{cpu}/cache/index{index}/level"))?;
        let shared = root.cpu_list(format!("{cpu}/cache/index{index}/shared_cpu_list"))?;
        Some((level, shared.first()?.0))
    })
}

fn nodes(root: &Root) -> Vec<(Node, Vec<Cpu>)> {
    let node = |node: u32| {
        let folder = format!("sys/devices/system/node/node{node}");
        let cpus = root.cpu_list(format!("{folder}/cpulist")).unwrap_or_default();
        let distances = root.text(format!("{folder}/distance")).unwrap_or_default();
        let memory = root.text(format!("{folder}/meminfo")).unwrap_or_default();
        let total = memory.lines().find_map(|line| line.split_once("MemTotal:"));
        let node = Node {
            node,
            cpus: format_cpu_list(&cpus).into(),
            distances: distances.split_whitespace().filter_map(|word| word.parse().ok()).collect(),
            memory_kb: total.and_then(|(_, rest)| rest.split_whitespace().next()?.parse().ok()),
        };
        (node, cpus)
    };
    root.numbered("sys/devices/system/node", "node").into_iter().map(node).collect()
}

fn model(root: &Root) -> Option<CleanText> {
    let text = root.text("proc/cpuinfo")?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The clusters of four CPUs under one last-level cache, whose files have these texts.
    fn clusters(files: &[(&str, [&str; 4])]) -> [Option<u32>; 4] {
        let folder = tempfile::tempdir().unwrap();
        for (file, texts) in files {
            for (cpu, text) in texts.iter().enumerate() {
                let path = folder.path().join(FOLDER).join(format!("cpu{cpu}")).join(file);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
            }
        }
        let cpus = MachineCpus::read(&Root::at(folder.path()));
        let clusters: Vec<Option<u32>> = cpus.places.iter().map(|place| place.cluster).collect();
        let places = cpus.topology();
        assert!((0..).map(Cpu).zip(&clusters).all(|(cpu, cluster)| places.place(cpu).unwrap().cluster == *cluster));
        clusters.try_into().unwrap()
    }

    #[test]
    fn clusters_share_a_second_level() {
        let (of_one, pairs, all) = (["0", "1", "2", "3"], ["0-1", "0-1", "2-3", "2-3"], ["0-3"; 4]);
        let cores = ("topology/core_cpus_list", of_one);
        let caches = [("cache/index3/level", ["3"; 4]), ("cache/index3/shared_cpu_list", all)];
        let second = |list| [cores, ("cache/index2/level", ["2"; 4]), ("cache/index2/shared_cpu_list", list)];
        let of = |files: [(&str, [&str; 4]); 3]| clusters(&[&files[..], &caches].concat());
        assert_eq!(of(second(pairs)), [Some(0), Some(0), Some(2), Some(2)]);
        assert_eq!(of(second(of_one)), [None; 4]);
        assert_eq!(of(second(all)), [None; 4]);
        // The kernel's own list counts before the caches.
        let [cores, level, _] = second(of_one);
        assert_eq!(of([cores, level, ("topology/cluster_cpus_list", pairs)]), [Some(0), Some(0), Some(2), Some(2)]);
        // The threads of a core share its L2.
        let threads = [("topology/core_cpus_list", pairs), level, ("topology/cluster_cpus_list", pairs)];
        assert_eq!(of(threads), [None; 4]);
    }
}

//! The tree of cgroups with their weights, and the division of CPUs by weight.

use machine::{Cgroup, Machine};
use membership::{CgroupIndex, Cgroups};
use sched::event::CleanText;
use std::collections::BTreeMap;

/// The weight of a cgroup whose `cpu.weight` is the default, 100, in the unit of a task at nice 0.
const DEFAULT: f64 = 1024.0;

/// The weight of a cgroup with `cpu.idle`.
const IDLE: f64 = 3.0;

/// Maximum number of cgroups in the tree; tasks of further ones belong to the nearest one above them that is in it.
const MOST_NODES: usize = 1000;

/// A competitor for CPUs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Claim {
    /// The weight, above 0.
    pub weight: f64,
    /// The number of CPUs that the competitor can use at most.
    pub most: f64,
}

/// Divides CPUs among competitors by their weights. None gets more than it can use; what it leaves goes to the others.
pub fn divide(cpus: f64, claims: &[Claim]) -> Vec<f64> {
    let mut shares = vec![0.0; claims.len()];
    let mut open: Vec<usize> = (0..claims.len()).collect();
    let mut left = cpus.max(0.0);
    loop {
        let weights: f64 = open.iter().map(|at| claims[*at].weight).sum();
        if open.is_empty() || weights <= 0.0 {
            return shares;
        }
        let rate = left / weights;
        let (full, rest): (Vec<usize>, Vec<usize>) =
            open.iter().partition(|at| rate * claims[**at].weight >= claims[**at].most);
        if full.is_empty() {
            rest.iter().for_each(|at| shares[*at] = rate * claims[*at].weight);
            return shares;
        }
        for at in full {
            shares[at] = claims[at].most;
            left = (left - claims[at].most).max(0.0);
        }
        open = rest;
    }
}

/// A cgroup with the controller `cpu`, or the root.
#[derive(Clone, Debug)]
pub(crate) struct WeightedGroup {
    pub(crate) path: String,
    /// The place of the one above it; the root is its own.
    pub(crate) above: usize,
    /// The weight in the unit of a task at nice 0.
    pub(crate) weight: f64,
    /// `cpu.weight`; absent for the root, and for a cgroup that the machine file does not have.
    pub(crate) cpu_weight: Option<u64>,
    pub(crate) is_idle: bool,
    /// The CPUs that `cpu.max` allows in the mean: the quota by the period.
    pub(crate) allowed: f64,
}

/// The cgroups with their weights, and the one in which the tasks of each cgroup compete.
#[derive(Clone, Debug)]
pub struct WeightTree {
    /// The groups, those above before those below; the root is the first.
    pub(crate) groups: Vec<WeightedGroup>,
    /// The place of the group in which the tasks of each cgroup compete, by the index of the cgroup.
    places: Vec<usize>,
}

impl WeightTree {
    /// Learns the tree of the cgroups of a trace from a machine file.
    ///
    /// # Errors
    ///
    /// The reason why the weights are unknown.
    pub fn of(machine: Option<&Machine>, cgroups: &Cgroups) -> Result<WeightTree, &'static str> {
        let machine = machine.ok_or("there is no machine file, which has them")?;
        let listed: BTreeMap<&str, &Cgroup> =
            machine.cgroups.iter().map(|cgroup| (cgroup.path.as_str(), cgroup)).collect();
        // A controller is enabled from the root down: what has it below has it itself.
        let mut controlled: Vec<&str> = Vec::new();
        for (path, _) in listed.iter().filter(|(_, cgroup)| cgroup.controls_cpu) {
            controlled.extend(with_those_above(path));
        }
        controlled.sort_unstable();
        controlled.dedup();
        if controlled.is_empty() {
            return Err("the machine file has no cgroup with the controller cpu");
        }
        let mut tree = WeightTree { groups: vec![WeightedGroup::root()], places: Vec::new() };
        let mut places: BTreeMap<&str, usize> = BTreeMap::new();
        // In the order of paths those above come before those below.
        for path in controlled.into_iter().take(MOST_NODES - 1) {
            let above = with_those_above(path).skip(1).find_map(|above| places.get(above)).copied().unwrap_or(0);
            places.insert(path, tree.groups.len());
            tree.groups.push(WeightedGroup::of(path, above, listed.get(path).copied()));
        }
        let place = |name: &CleanText| with_those_above(name).find_map(|path| places.get(path)).copied().unwrap_or(0);
        tree.places = cgroups.names().iter().map(place).collect();
        Ok(tree)
    }

    /// The place of the group in which the tasks of a cgroup compete: those of an unknown one compete in the root.
    pub(crate) fn place(&self, cgroup: Option<CgroupIndex>) -> usize {
        cgroup.and_then(|cgroup| self.places.get(cgroup.index())).copied().unwrap_or(0)
    }
}

impl WeightedGroup {
    fn root() -> WeightedGroup {
        WeightedGroup {
            path: "/".to_owned(),
            above: 0,
            weight: DEFAULT,
            cpu_weight: None,
            is_idle: false,
            allowed: f64::INFINITY,
        }
    }

    fn of(path: &str, above: usize, cgroup: Option<&Cgroup>) -> WeightedGroup {
        let is_idle = cgroup.is_some_and(|cgroup| cgroup.cpu_idle.is_some());
        // The file leaves out the default.
        let cpu_weight = cgroup.map(|cgroup| cgroup.cpu_weight.unwrap_or(100));
        let weight = if is_idle { IDLE } else { cpu_weight.unwrap_or(100).max(1) as f64 * DEFAULT / 100.0 };
        let quota = cgroup.and_then(Cgroup::quota);
        let allowed = quota.map_or(f64::INFINITY, |(quota, period)| quota as f64 / period as f64);
        WeightedGroup { path: path.to_owned(), above, weight, cpu_weight, is_idle, allowed }
    }
}

/// The path of a cgroup, and those of the cgroups above it but for the root.
fn with_those_above(path: &str) -> impl Iterator<Item = &str> {
    let first = Some(path).filter(|path| *path != "/");
    std::iter::successors(first, |path| path.rfind('/').filter(|at| *at > 0).map(|at| &path[..at]))
}

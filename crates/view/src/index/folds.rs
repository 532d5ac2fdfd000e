//! The groups of lanes that the page can show as one lane each: nodes, last-level caches and cores.

use sched::Cpu;
use sched::Topology;
use sched::topology::CpuOrder;
use serde::Serialize;
use std::ops::Range;

/// The place of a CPU in the machine; what the topology lacks is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct CpuPlace {
    pub(crate) cpu: Cpu,
    pub(crate) node: Option<u32>,
    pub(crate) llc: Option<u32>,
    pub(crate) core: Option<u32>,
    /// Whether the CPU has no event; left out where it has one.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) silent: bool,
}

impl CpuPlace {
    /// The place of a CPU by the topology.
    pub(crate) fn of(cpu: Cpu, topology: &Topology) -> CpuPlace {
        let place = topology.place(cpu);
        CpuPlace {
            cpu,
            node: topology.group(cpu, CpuOrder::Node),
            llc: place.and_then(|place| place.llc),
            core: place.and_then(|place| place.core),
            silent: false,
        }
    }

    /// The numbers of the groups that hold it, from the outermost on.
    fn groups(&self) -> [Option<u32>; 3] {
        [self.node, self.llc, self.core]
    }
}

/// The names of the kinds of groups, from the outermost on.
const KINDS: [&str; 3] = ["node", "llc", "core"];

/// A group of neighbouring lanes that can be shown as one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Fold {
    /// The kind of group: `node`, `llc` or `core`.
    pub(crate) kind: &'static str,
    /// The number of the group in the topology.
    pub(crate) number: u32,
    /// The first lane of the group, and the one behind its last.
    pub(crate) lanes: (usize, usize),
    /// The tile that holds the sum of its lanes, and the place of the sum there.
    pub(crate) tile: usize,
    pub(crate) lane: usize,
}

impl Fold {
    pub(crate) fn range(&self) -> Range<usize> {
        self.lanes.0..self.lanes.1
    }
}

/// The groups of these lanes, nodes first and cores last, `in_tile` of them in each tile. A kind is left out that splits
/// nothing: a single node, or caches of one core each. A group of one lane needs no sum and is left out as well.
pub(crate) fn folds(places: &[CpuPlace], in_tile: usize) -> Vec<Fold> {
    let mut folds: Vec<Fold> = Vec::new();
    let mut coarser: Vec<Range<usize>> = std::iter::once(0..places.len()).collect();
    for (depth, kind) in KINDS.into_iter().enumerate() {
        let mut start = 0;
        let groups: Vec<Range<usize>> = places
            .chunk_by(|a, b| a.groups()[..=depth] == b.groups()[..=depth])
            .map(|group| {
                let end = start + group.len();
                std::mem::replace(&mut start, end)..end
            })
            .collect();
        if groups == coarser {
            continue;
        }
        for group in &groups {
            let number = places.get(group.start).and_then(|place| place.groups()[depth]);
            if let Some(number) = number.filter(|_| group.len() > 1) {
                let (tile, lane) = (folds.len() / in_tile, folds.len() % in_tile);
                folds.push(Fold { kind, number, lanes: (group.start, group.end), tile, lane });
            }
        }
        coarser = groups;
    }
    folds
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Places by node, LLC and core of CPUs in this order.
    fn places(groups: &[(u32, u32, u32)]) -> Vec<CpuPlace> {
        let place = |(cpu, (node, llc, core)): (u32, &(u32, u32, u32))| CpuPlace {
            cpu: Cpu(cpu),
            node: Some(*node),
            llc: Some(*llc),
            core: Some(*core),
            silent: false,
        };
        (0..).zip(groups).map(place).collect()
    }

    fn named(folds: &[Fold]) -> Vec<(&str, u32, usize, usize)> {
        folds.iter().map(|fold| (fold.kind, fold.number, fold.lanes.0, fold.lanes.1)).collect()
    }

    #[test]
    fn nodes_caches_and_cores_are_groups_within_one_another() {
        let two_by_two = places(&[(0, 0, 0), (0, 0, 0), (0, 2, 2), (0, 2, 2), (1, 4, 4), (1, 4, 4), (1, 6, 6)]);
        // The caches are the cores here, and the last one has a single lane.
        let expected = [("node", 0, 0, 4), ("node", 1, 4, 7), ("llc", 0, 0, 2), ("llc", 2, 2, 4), ("llc", 4, 4, 6)];
        let found = folds(&two_by_two, 2);
        assert_eq!(named(&found), expected);
        let tiles: Vec<(usize, usize)> = found.iter().map(|fold| (fold.tile, fold.lane)).collect();
        assert_eq!(tiles, [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0)]);
    }

    #[test]
    fn a_kind_that_splits_nothing_is_left_out() {
        assert_eq!(named(&folds(&places(&[(0, 0, 0), (0, 0, 1)]), 16)), []);
        let cores = places(&[(0, 0, 0), (0, 0, 0), (0, 0, 1), (0, 0, 1)]);
        assert_eq!(named(&folds(&cores, 16)), [("core", 0, 0, 2), ("core", 1, 2, 4)]);
        let unknown = CpuPlace { cpu: Cpu(0), node: None, llc: None, core: None, silent: false };
        assert_eq!(folds(&[unknown, CpuPlace { cpu: Cpu(1), ..unknown }], 16), []);
        assert_eq!(folds(&[], 16), []);
    }

    #[test]
    fn lanes_of_unknown_place_belong_to_no_group() {
        let mut places = places(&[(0, 0, 0), (0, 0, 1), (1, 2, 2), (1, 2, 3)]);
        places.push(CpuPlace { cpu: Cpu(4), node: None, llc: None, core: None, silent: false });
        places.push(CpuPlace { cpu: Cpu(5), node: None, llc: None, core: None, silent: false });
        assert_eq!(named(&folds(&places, 16)), [("node", 0, 0, 2), ("node", 1, 2, 4)]);
    }
}

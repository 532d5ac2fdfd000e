//! The rings of the graph: its strongly connected components of three names and more.

use crate::edges::{WakeEdge, WakeParty, known_sum};
use sched::seeded::SeededMap;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The number of names that a component has at least: two are a pair.
const LEAST: usize = 3;

/// The least part of the wakeups of the woken name that an edge of a component makes: one of this number.
const PART: u64 = 10;

/// Names of which each leads to each other one along wakeups: a pipeline that is closed, or a group of workers with its master.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WakeComponent {
    /// The names in the component, those that wake most often first.
    pub members: Vec<WakeParty>,
    /// The number of wakeups of its members by each other.
    pub wakeups: u64,
    /// The part of all wakeups of its members that these are, from 0 to 1.
    pub part: f64,
    /// The number of these wakeups after which the woken task was queued on a CPU with another last-level cache than the waker's; null where
    /// the topology shows it of none.
    pub other_llc: Option<u64>,
}

/// Returns the components among the wakeups by tasks, those with the most wakeups first. An edge counts for them if it makes at least a tenth of the
/// wakeups of the woken name.
pub(crate) fn components(edges: &[WakeEdge], woken_in_all: &BTreeMap<WakeParty, u64>) -> Vec<WakeComponent> {
    let all_of = |woken: &WakeParty, of: u64| woken_in_all.get(woken).copied().unwrap_or(of);
    let strong: Vec<&WakeEdge> = edges
        .iter()
        .filter(|edge| {
            edge.waker != edge.woken && edge.wakeups.saturating_mul(PART) >= all_of(&edge.woken, edge.wakeups)
        })
        .collect();
    let names: BTreeSet<&WakeParty> = strong.iter().flat_map(|edge| [&edge.waker, &edge.woken]).collect();
    let names: Vec<&WakeParty> = names.into_iter().collect();
    let number = |party: &WakeParty| names.binary_search(&party).unwrap_or_default();
    let ends: Vec<(usize, usize)> = strong.iter().map(|edge| (number(&edge.waker), number(&edge.woken))).collect();
    let of = connected(names.len(), &ends);
    let mut sizes: SeededMap<usize, usize> = SeededMap::default();
    of.iter().for_each(|component| *sizes.entry(*component).or_default() += 1);
    let mut found: SeededMap<usize, (WakeComponent, BTreeMap<&WakeParty, u64>)> = SeededMap::default();
    for (name, component) in names.iter().zip(&of) {
        if sizes.get(component).is_some_and(|size| *size >= LEAST) {
            let empty = WakeComponent { members: Vec::new(), wakeups: 0, part: 0.0, other_llc: None };
            found.entry(*component).or_insert((empty, BTreeMap::new())).0.members.push((*name).clone());
        }
    }
    // Weaker edges between the members count among their wakeups.
    let component_of = |party: &WakeParty| names.binary_search(&party).ok().and_then(|place| of.get(place));
    for edge in edges {
        let both = (component_of(&edge.waker), component_of(&edge.woken));
        let (Some(waker), Some(woken)) = both else { continue };
        if waker == woken
            && let Some((component, wakes)) = found.get_mut(waker)
        {
            component.wakeups += edge.wakeups;
            component.other_llc = known_sum(component.other_llc, edge.other_llc);
            *wakes.entry(&edge.waker).or_default() += edge.wakeups;
        }
    }
    let finish = |(mut component, wakes): (WakeComponent, BTreeMap<&WakeParty, u64>)| {
        let woke = |name: &WakeParty| wakes.get(name).copied().unwrap_or(0);
        component.members.sort_by(|a, b| woke(b).cmp(&woke(a)).then_with(|| a.cmp(b)));
        let all: u64 = component.members.iter().map(|name| all_of(name, 0)).sum();
        component.part = component.wakeups as f64 / all.max(1) as f64;
        component
    };
    let mut components: Vec<WakeComponent> = found.into_values().map(finish).collect();
    components.sort_by(|a, b| b.wakeups.cmp(&a.wakeups).then_with(|| a.members.cmp(&b.members)));
    components
}

/// Returns the component of each node: nodes of one number are strongly connected (the two searches of Kosaraju and Sharir, without
/// recursion, since a path can have thousands of nodes).
fn connected(nodes: usize, edges: &[(usize, usize)]) -> Vec<usize> {
    let (mut onward, mut backward) = (vec![Vec::new(); nodes], vec![Vec::new(); nodes]);
    for (from, to) in edges {
        onward[*from].push(*to);
        backward[*to].push(*from);
    }
    // The nodes in the order in which a search leaves them.
    let (mut left, mut is_seen) = (Vec::with_capacity(nodes), vec![false; nodes]);
    for start in 0..nodes {
        if std::mem::replace(&mut is_seen[start], true) {
            continue;
        }
        let mut path = vec![(start, 0)];
        while let Some((node, next)) = path.last_mut() {
            match onward[*node].get(*next) {
                Some(to) => {
                    *next += 1;
                    if !std::mem::replace(&mut is_seen[*to], true) {
                        path.push((*to, 0));
                    }
                }
                None => {
                    left.push(*node);
                    path.pop();
                }
            }
        }
    }
    let mut of = vec![usize::MAX; nodes];
    for start in left.into_iter().rev() {
        let mut open = vec![start];
        while let Some(node) = open.pop() {
            if of[node] == usize::MAX {
                of[node] = start;
                open.extend(backward[node].iter().filter(|from| of[**from] == usize::MAX));
            }
        }
    }
    of
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The components of a graph by their nodes, each in order.
    fn of(nodes: usize, edges: &[(usize, usize)]) -> Vec<Vec<usize>> {
        let of = connected(nodes, edges);
        let mut found: std::collections::BTreeMap<usize, Vec<usize>> = std::collections::BTreeMap::new();
        of.into_iter().enumerate().for_each(|(node, component)| found.entry(component).or_default().push(node));
        let mut all: Vec<Vec<usize>> = found.into_values().collect();
        all.sort();
        all
    }

    #[test]
    fn nodes_that_lead_to_each_other_are_one_component() {
        assert_eq!(of(5, &[(0, 1), (1, 2), (2, 0), (2, 3), (3, 4)]), [vec![0, 1, 2], vec![3], vec![4]]);
        assert_eq!(of(4, &[(0, 1), (1, 0), (2, 3), (3, 2), (1, 2)]), [vec![0, 1], vec![2, 3]]);
    }

    #[test]
    fn components_agree_with_the_nodes_that_reach_each_other() {
        // A small generator of numbers: each graph has eight nodes and up to sixteen edges.
        let mut seed = 7_u64;
        let mut next = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize
        };
        for _ in 0..300 {
            let edges: Vec<(usize, usize)> = (0..next() % 17).map(|_| (next() % 8, next() % 8)).collect();
            let mut reaches = [[false; 8]; 8];
            (0..8).for_each(|node| reaches[node][node] = true);
            edges.iter().for_each(|(from, to)| reaches[*from][*to] = true);
            for over in 0..8 {
                for from in 0..8 {
                    for to in 0..8 {
                        reaches[from][to] |= reaches[from][over] && reaches[over][to];
                    }
                }
            }
            let of = connected(8, &edges);
            for from in 0..8 {
                for to in 0..8 {
                    assert_eq!(of[from] == of[to], reaches[from][to] && reaches[to][from], "{edges:?}");
                }
            }
        }
    }

    #[test]
    fn a_long_ring_needs_no_stack() {
        let count = 60_000;
        let edges: Vec<(usize, usize)> = (0..count).map(|node| (node, (node + 1) % count)).collect();
        assert_eq!(of(count, &edges).len(), 1);
    }
}

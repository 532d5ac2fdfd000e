//! The waiting tasks of a run queue in the order of their deadlines. Each subtree has its least virtual run time, as in the kernel's own
//! tree, so that a question about all tasks of a queue takes a few steps, however long the queue is.

use sched::TaskId;
use sched::seeded::SeededSet;
use std::hash::BuildHasher;

/// The place of a node in the list of nodes.
type NodeId = usize;

/// A waiting task, ordered by deadline, with the nodes below it.
#[derive(Clone, Copy, Debug)]
struct DeadlineNode {
    key: (i64, TaskId),
    vruntime: i64,
    /// The least virtual run time of this node and all below it.
    least: i64,
    /// A number by chance: no node below has a greater one, which balances the tree (a treap).
    rank: u64,
    before: Option<NodeId>,
    behind: Option<NodeId>,
}

/// The waiting tasks of a run queue, by deadline.
#[derive(Debug)]
pub(crate) struct Deadlines {
    nodes: Vec<DeadlineNode>,
    free: Vec<NodeId>,
    root: Option<NodeId>,
    /// The latest rank. It begins by chance, so that no file can choose deadlines that make a list of the tree.
    rank: u64,
}

impl Default for Deadlines {
    fn default() -> Deadlines {
        let rank = SeededSet::<u64>::default().hasher().hash_one(1_u64);
        Deadlines { nodes: Vec::new(), free: Vec::new(), root: None, rank }
    }
}

impl Deadlines {
    /// Whether no task is in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    /// Adds a task, which is not in it.
    pub(crate) fn insert(&mut self, deadline: i64, vruntime: i64, task: TaskId) {
        // SplitMix64.
        self.rank = self.rank.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let rank = (self.rank ^ (self.rank >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let rank = (rank ^ (rank >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let key = (deadline, task);
        let node = DeadlineNode { key, vruntime, least: vruntime, rank, before: None, behind: None };
        let own = self.free.pop().unwrap_or(self.nodes.len());
        match self.nodes.get_mut(own) {
            Some(place) => *place = node,
            None => self.nodes.push(node),
        }
        let (before, behind) = self.split(self.root, key);
        let before = self.join(before, Some(own));
        self.root = self.join(before, behind);
    }

    /// Removes a task that was added with this deadline.
    pub(crate) fn remove(&mut self, deadline: i64, task: TaskId) {
        self.root = self.without(self.root, (deadline, task));
    }

    /// The least virtual run time of the tasks with an earlier deadline; nothing if there is none.
    pub(crate) fn least_before(&self, deadline: i64) -> Option<i64> {
        let (mut at, mut least) = (self.root, None::<i64>);
        while let Some(node) = at.map(|at| &self.nodes[at]) {
            if node.key.0 < deadline {
                let here = node.before.map_or(node.vruntime, |before| self.nodes[before].least.min(node.vruntime));
                least = Some(least.map_or(here, |least| least.min(here)));
                at = node.behind;
            } else {
                at = node.before;
            }
        }
        least
    }

    /// Divides a subtree: the tasks before a key, and the others.
    fn split(&mut self, at: Option<NodeId>, key: (i64, TaskId)) -> (Option<NodeId>, Option<NodeId>) {
        let Some(id) = at else { return (None, None) };
        if self.nodes[id].key < key {
            let (before, behind) = self.split(self.nodes[id].behind, key);
            self.nodes[id].behind = before;
            self.sum_up(id);
            (at, behind)
        } else {
            let (before, behind) = self.split(self.nodes[id].before, key);
            self.nodes[id].before = behind;
            self.sum_up(id);
            (before, at)
        }
    }

    /// Joins two subtrees, of which the first one has the earlier deadlines.
    fn join(&mut self, first: Option<NodeId>, last: Option<NodeId>) -> Option<NodeId> {
        let (Some(a), Some(b)) = (first, last) else { return first.or(last) };
        if self.nodes[a].rank > self.nodes[b].rank {
            self.nodes[a].behind = self.join(self.nodes[a].behind, last);
            self.sum_up(a);
            first
        } else {
            self.nodes[b].before = self.join(first, self.nodes[b].before);
            self.sum_up(b);
            last
        }
    }

    /// The subtree without a task.
    fn without(&mut self, at: Option<NodeId>, key: (i64, TaskId)) -> Option<NodeId> {
        let id = at?;
        let DeadlineNode { key: own, before, behind, .. } = self.nodes[id];
        if own == key {
            self.free.push(id);
            return self.join(before, behind);
        }
        if key < own {
            self.nodes[id].before = self.without(before, key);
        } else {
            self.nodes[id].behind = self.without(behind, key);
        }
        self.sum_up(id);
        at
    }

    /// Finds the least virtual run time of a subtree from those below it.
    fn sum_up(&mut self, id: NodeId) {
        let DeadlineNode { vruntime, before, behind, .. } = self.nodes[id];
        let below = [before, behind].into_iter().flatten().map(|below| self.nodes[below].least);
        self.nodes[id].least = below.fold(vruntime, i64::min);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sched::{Cpu, EventKind, Pass, Pid, SchedEvent, TaskRef, Ts};

    /// The identities of tasks, as a pass gives them.
    struct Ids(Vec<TaskId>);

    impl sched::Analysis for Ids {
        type Output = Vec<TaskId>;

        fn after(&mut self, _: &SchedEvent, state: &sched::SchedState) {
            self.0.extend(state.turns().map(|(task, _)| task.id()));
        }

        fn finish(self, _: Ts, _: &sched::SchedState) -> Vec<TaskId> {
            self.0
        }
    }

    fn tasks() -> Vec<TaskId> {
        let task = |pid| TaskRef { pid: Pid(pid), prio: 120, comm: sched::Comm::new(b"task") };
        let woken = |pid: i32| EventKind::WakeupNew { task: task(pid), target: Cpu(0) };
        let event = |pid| SchedEvent { ts: Ts(i64::from(pid)), cpu: Cpu(0), pid: Pid(0), flags: 0, kind: woken(pid) };
        let events: Vec<SchedEvent> = (1..200).map(event).collect();
        Pass::over(&events[..]).run(|| Ids(Vec::new())).unwrap_or_else(|never| match never {}).output
    }

    /// Thousands of changes beside a plain list, whose answers are those of a search through it.
    #[test]
    fn the_tree_answers_as_a_list_does() {
        let (tasks, mut tree, mut list) = (tasks(), Deadlines::default(), Vec::<(i64, i64, TaskId)>::new());
        assert!(tasks.len() > 150);
        let mut seed = 7_u64;
        let mut chance = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        for _ in 0..5_000 {
            let task = tasks[chance(tasks.len() as u64) as usize];
            match list.iter().position(|(.., known)| *known == task) {
                Some(place) => {
                    let (deadline, ..) = list.swap_remove(place);
                    tree.remove(deadline, task);
                }
                None => {
                    let (deadline, vruntime) = (chance(40) as i64, chance(1_000) as i64 - 500);
                    list.push((deadline, vruntime, task));
                    tree.insert(deadline, vruntime, task);
                }
            }
            let asked = chance(45) as i64;
            let least = list.iter().filter(|(deadline, ..)| *deadline < asked).map(|(_, vruntime, _)| *vruntime).min();
            assert_eq!(tree.least_before(asked), least);
            assert_eq!(tree.is_empty(), list.is_empty());
        }
        assert!(tree.nodes.len() <= tasks.len(), "places are used again");
    }
}

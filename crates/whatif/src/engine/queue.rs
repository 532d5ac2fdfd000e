//! A run queue of the simulation: its tasks in the order in which they came, and the one that runs first.

use crate::model::TaskIndex;
use std::collections::{BTreeSet, VecDeque};

/// The length from which on a queue keeps its tasks in the order in which they run. A shorter one is searched, which is faster.
const SEARCHED: usize = 32;

/// The place of a waiting task in the order of its queue: the rank, the virtual time where that counts, and the number of the join, so that of
/// several equal ones the first comes first.
pub(crate) type QueueKey = (i32, u64, u64);

/// The tasks that wait on a CPU. Adding, removing and the choice of the first one take a time that hardly grows with the length.
#[derive(Clone, Debug, Default)]
pub(crate) struct SimQueue {
    /// The keys and tasks in the order in which they came; nothing in the place of one that has left. The first place is never empty.
    came: VecDeque<(QueueKey, Option<TaskIndex>)>,
    /// All tasks in the order in which they run; empty for a queue that is searched.
    order: BTreeSet<(QueueKey, TaskIndex)>,
    length: usize,
}

impl SimQueue {
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Adds a task, whose join has a greater number than those before.
    pub(crate) fn add(&mut self, task: TaskIndex, key: QueueKey) {
        self.came.push_back((key, Some(task)));
        self.length += 1;
        if !self.order.is_empty() {
            self.order.insert((key, task));
        } else if self.length > SEARCHED {
            self.order = self.came.iter().filter_map(|(key, task)| Some((*key, (*task)?))).collect();
        }
    }

    /// Removes the task that was added with this key; returns whether it was in the queue.
    pub(crate) fn remove(&mut self, task: TaskIndex, key: QueueKey) -> bool {
        let Ok(at) = self.came.binary_search_by_key(&key.2, |((.., nth), _)| *nth) else { return false };
        if self.came[at].1.take() != Some(task) {
            return false;
        }
        self.length -= 1;
        self.order.remove(&(key, task));
        while self.came.front().is_some_and(|(_, task)| task.is_none()) {
            self.came.pop_front();
        }
        // As many places are emptied before they are given up again.
        if self.came.len() > 2 * self.length + SEARCHED {
            self.came.retain(|(_, task)| task.is_some());
        }
        true
    }

    /// The tasks in the order in which they came.
    pub(crate) fn tasks(&self) -> impl Iterator<Item = TaskIndex> {
        self.came.iter().filter_map(|(_, task)| *task)
    }

    /// The task that runs first of those that `may` allows, with its key, and the number of tasks that were looked at.
    pub(crate) fn first(&self, mut may: impl FnMut(TaskIndex) -> bool) -> (Option<(QueueKey, TaskIndex)>, u64) {
        let mut looked = 0;
        let mut counted = |task: TaskIndex| {
            looked += 1;
            may(task)
        };
        let first = if self.order.is_empty() {
            let waiting = self.came.iter().filter_map(|(key, task)| Some((*key, (*task)?)));
            waiting.filter(|(_, task)| counted(*task)).min()
        } else {
            self.order.iter().copied().find(|(_, task)| counted(*task))
        };
        (first, looked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A queue does what a list that is searched does, however long it becomes.
    #[test]
    fn queues_of_any_length_have_the_same_order() {
        let mut random = testkit::Rng::new(7);
        let mut queue = SimQueue::default();
        let mut list: Vec<(QueueKey, TaskIndex)> = Vec::new();
        for nth in 0..20_000_u64 {
            // It grows beyond a search, and becomes empty, again and again.
            let grows = nth % 1_000 < 400;
            if grows || list.is_empty() {
                let key = (100, random.below(50) as u64, nth);
                queue.add(nth as TaskIndex, key);
                list.push((key, nth as TaskIndex));
            } else {
                let (key, task) = list.remove(random.below(list.len()));
                assert!(queue.remove(task, key) && !queue.remove(task, key));
            }
            let odd = |task: TaskIndex| task % 2 == 1;
            assert_eq!(queue.first(|_| true).0, list.iter().copied().min());
            assert_eq!(queue.first(odd).0, list.iter().copied().filter(|(_, task)| odd(*task)).min());
            assert_eq!((queue.len(), queue.is_empty()), (list.len(), list.is_empty()));
            assert!(queue.came.len() <= 2 * list.len() + SEARCHED + 1);
            if nth % 50 == 0 {
                assert!(queue.tasks().eq(list.iter().map(|(_, task)| *task)));
            }
        }
    }

    /// The first task of a long queue is found without a search.
    #[test]
    fn the_first_of_a_long_queue_is_looked_at_alone() {
        let mut queue = SimQueue::default();
        (0..100_000).for_each(|task| queue.add(task, (100, u64::from(task % 7), u64::from(task))));
        assert_eq!(queue.first(|_| true), (Some(((100, 0, 0), 0)), 1));
    }
}

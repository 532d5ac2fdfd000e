//! A run queue of the simulation: its tasks in the order in which they came, as the kernel lists them, and the one that runs first.

use crate::model::TaskIndex;
use std::collections::{BTreeSet, VecDeque};

/// The length from which on a queue keeps its tasks in the order in which they run. A shorter one is searched, which is faster.
const SEARCHED: usize = 32;

/// The place of a waiting task in the order of its queue: the rank, the virtual time where that counts, and the number of the join, so that of
/// several equal ones the first comes first.
pub(crate) type QueueKey = (i32, u64, u64);

/// Tasks in the order of a number that each has alone. One that is added goes near the end.
#[derive(Clone, Debug)]
struct NumberedTasks<K> {
    /// The tasks; nothing in the place of one that has left. The first place is never empty.
    places: VecDeque<(u64, K, Option<TaskIndex>)>,
    length: usize,
}

impl<K> Default for NumberedTasks<K> {
    fn default() -> NumberedTasks<K> {
        NumberedTasks { places: VecDeque::new(), length: 0 }
    }
}

impl<K: Copy> NumberedTasks<K> {
    fn add(&mut self, nth: u64, key: K, task: TaskIndex) {
        let behind = self.places.iter().rev().take_while(|(other, ..)| *other > nth).count();
        self.places.insert(self.places.len() - behind, (nth, key, Some(task)));
        self.length += 1;
    }

    fn remove(&mut self, nth: u64, task: TaskIndex) -> bool {
        let Ok(at) = self.places.binary_search_by_key(&nth, |(nth, ..)| *nth) else { return false };
        if self.places[at].2.take_if(|found| *found == task).is_none() {
            return false;
        }
        self.length -= 1;
        while self.places.front().is_some_and(|(.., task)| task.is_none()) {
            self.places.pop_front();
        }
        // As many places are emptied before they are given up again.
        if self.places.len() > 2 * self.length + SEARCHED {
            self.places.retain(|(.., task)| task.is_some());
        }
        true
    }

    fn tasks(&self) -> impl Iterator<Item = (K, TaskIndex)> {
        self.places.iter().filter_map(|(_, key, task)| Some((*key, (*task)?)))
    }
}

/// The tasks that wait on a CPU. Adding, removing and the choice of the first one take a time that hardly grows with the length.
#[derive(Clone, Debug, Default)]
pub(crate) struct SimQueue {
    /// The tasks in the order in which they came, with their keys.
    came: NumberedTasks<QueueKey>,
    /// The tasks as the kernel lists them, by their last run or, without one since they came, by that.
    listed: NumberedTasks<()>,
    /// All tasks in the order in which they run; empty for a queue that is searched.
    order: BTreeSet<(QueueKey, TaskIndex)>,
}

impl SimQueue {
    pub(crate) fn len(&self) -> usize {
        self.came.length
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.came.length == 0
    }

    /// Adds a task, whose join has a greater number than those before, and whose place in the list has the number `listed`. A task that was preempted
    /// is listed before those that came during its run, so that places are searched in proportion to joins.
    pub(crate) fn add(&mut self, task: TaskIndex, key: QueueKey, listed: u64) {
        self.came.add(key.2, key, task);
        self.listed.add(listed, (), task);
        if !self.order.is_empty() {
            self.order.insert((key, task));
        } else if self.len() > SEARCHED {
            self.order = self.came.tasks().collect();
        }
    }

    /// Removes the task that was added with this key and number; returns whether it was in the queue.
    pub(crate) fn remove(&mut self, task: TaskIndex, key: QueueKey, listed: u64) -> bool {
        let was_here = self.came.remove(key.2, task);
        if was_here {
            self.listed.remove(listed, task);
            self.order.remove(&(key, task));
        }
        was_here
    }

    /// The tasks as the kernel lists them (`cfs_tasks`, from its end on): the first one has neither run nor come for the longest time.
    pub(crate) fn listed(&self) -> impl Iterator<Item = TaskIndex> {
        self.listed.tasks().map(|((), task)| task)
    }

    /// The tasks in the order in which they came.
    pub(crate) fn tasks(&self) -> impl Iterator<Item = TaskIndex> {
        self.came.tasks().map(|(_, task)| task)
    }

    /// The task that runs first of those that `may` allows, with its key, and the number of tasks that were looked at.
    pub(crate) fn first(&self, mut may: impl FnMut(TaskIndex) -> bool) -> (Option<(QueueKey, TaskIndex)>, u64) {
        let mut looked = 0;
        let mut counted = |task: TaskIndex| {
            looked += 1;
            may(task)
        };
        let first = if self.order.is_empty() {
            self.came.tasks().filter(|(_, task)| counted(*task)).min()
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
        let mut began_at: Vec<u64> = Vec::new();
        let listed = |began: u64, nth: u64| began * 20_000 + nth;
        for nth in 0..20_000_u64 {
            // It grows beyond a search, and becomes empty, again and again.
            let grows = nth % 1_000 < 400;
            if grows || list.is_empty() {
                let key = (100, random.below(50) as u64, nth);
                // Some began to run before others came, and were preempted then.
                let began = nth.saturating_sub(if nth % 3 == 0 { random.below(20) as u64 } else { 0 });
                queue.add(nth as TaskIndex, key, listed(began, nth));
                list.push((key, nth as TaskIndex));
                began_at.push(began);
            } else {
                let at = random.below(list.len());
                let ((key, task), began) = (list.remove(at), began_at.remove(at));
                let listed = listed(began, key.2);
                assert!(queue.remove(task, key, listed) && !queue.remove(task, key, listed));
            }
            let odd = |task: TaskIndex| task % 2 == 1;
            assert_eq!(queue.first(|_| true).0, list.iter().copied().min());
            assert_eq!(queue.first(odd).0, list.iter().copied().filter(|(_, task)| odd(*task)).min());
            assert_eq!((queue.len(), queue.is_empty()), (list.len(), list.is_empty()));
            let most = 2 * list.len() + SEARCHED + 1;
            assert!(queue.came.places.len() <= most && queue.listed.places.len() <= most);
            if nth % 50 == 0 {
                assert!(queue.tasks().eq(list.iter().map(|(_, task)| *task)));
                let mut numbers: Vec<u64> =
                    list.iter().zip(&began_at).map(|((key, _), began)| listed(*began, key.2)).collect();
                numbers.sort_unstable();
                assert!(queue.listed().eq(numbers.iter().map(|number| (number % 20_000) as TaskIndex)));
            }
        }
    }

    /// The first task of a long queue is found without a search.
    #[test]
    fn the_first_of_a_long_queue_is_looked_at_alone() {
        let mut queue = SimQueue::default();
        (0..100_000).for_each(|task| queue.add(task, (100, u64::from(task % 7), u64::from(task)), u64::from(task)));
        assert_eq!(queue.first(|_| true), (Some(((100, 0, 0), 0)), 1));
    }
}

//! Two run queues compared by a task that waits on one of them (`docs/read-the-numbers.md#weights`).

use super::CpuStanding;
use crate::event::Cpu;
use crate::state::{Load, SchedState};
use crate::tables::capacities::CpuCapacities;
use std::cmp::Ordering;

/// The difference in length from which on a queue is beside a shorter one.
pub(super) const DIFFERENCE: u32 = 2;

/// The weight of runnable tasks for each unit of capacity of their CPU: the less it is, the larger is the share of a task in the time of the CPU.
#[derive(Clone, Copy, Debug)]
pub(super) struct Crowding {
    pub(super) weight: u64,
    /// The capacity, at least 1.
    pub(super) capacity: u32,
}

impl Ord for Crowding {
    #[inline]
    fn cmp(&self, other: &Crowding) -> Ordering {
        match self.capacity == other.capacity {
            true => self.weight.cmp(&other.weight),
            false => {
                let times = |weight: u64, capacity: u32| u128::from(weight) * u128::from(capacity);
                times(self.weight, other.capacity).cmp(&times(other.weight, self.capacity))
            }
        }
    }
}

impl PartialOrd for Crowding {
    #[inline]
    fn partial_cmp(&self, other: &Crowding) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Crowding {
    #[inline]
    fn eq(&self, other: &Crowding) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Crowding {}

/// The least run queues among several: by number, and by weight for each capacity of their CPUs.
#[derive(Clone, Copy, Debug, Default)]
pub struct LeastQueues {
    /// The number of runnable tasks of the shortest queue.
    pub length: u32,
    number: u8,
    /// The capacities in any order, each with the least weight, of which the first `number` count.
    weights: [(u32, u64); CpuCapacities::MOST],
}

impl PartialEq for LeastQueues {
    fn eq(&self, other: &LeastQueues) -> bool {
        self.length == other.length && self.weights() == other.weights()
    }
}

impl LeastQueues {
    /// The least queues, of this length and of these capacities and weights. Further capacities than [`CpuCapacities::MOST`] are left out.
    pub fn new(length: u32, weights: impl IntoIterator<Item = (u32, u64)>) -> LeastQueues {
        let mut least = LeastQueues { length, ..LeastQueues::default() };
        weights.into_iter().for_each(|(capacity, weight)| least.add_weight(capacity, weight));
        least
    }

    fn weights(&self) -> &[(u32, u64)] {
        &self.weights[..usize::from(self.number)]
    }

    fn add_weight(&mut self, capacity: u32, weight: u64) {
        let number = usize::from(self.number);
        match self.weights[..number].iter_mut().find(|(of, _)| *of == capacity) {
            Some((_, least)) => *least = weight.min(*least),
            None if number < CpuCapacities::MOST => {
                self.weights[number] = (capacity, weight);
                self.number += 1;
            }
            None => {}
        }
    }

    /// The least ones among these and the queue of a further CPU.
    #[must_use]
    pub fn with(mut self, queue: &ComparedQueue) -> LeastQueues {
        self.length = self.length.min(queue.length());
        self.add_weight(queue.capacity(), queue.weight());
        self
    }
}

/// The run queue of a CPU at an instant, as the kinds of queued time compare it with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ComparedQueue {
    standing: CpuStanding,
    capacity: u32,
}

impl Default for ComparedQueue {
    fn default() -> ComparedQueue {
        ComparedQueue { standing: CpuStanding::NONE, capacity: 1 }
    }
}

impl ComparedQueue {
    /// The queue of a CPU now.
    pub fn of(cpu: Cpu, state: &SchedState) -> ComparedQueue {
        ComparedQueue::with_load(cpu, state.load(cpu), state)
    }

    /// The queue of a CPU now, which counts as loaded like this.
    #[inline]
    pub fn with_load(cpu: Cpu, load: Load, state: &SchedState) -> ComparedQueue {
        ComparedQueue { standing: CpuStanding::of(cpu, load, state), capacity: state.capacities().at(cpu) }
    }

    /// The number of runnable tasks.
    #[inline]
    pub fn length(&self) -> u32 {
        self.standing.length
    }

    /// The weight of the runnable tasks.
    #[inline]
    pub fn weight(&self) -> u64 {
        self.standing.weight()
    }

    /// The capacity of the CPU; 1 where all CPUs count alike.
    #[inline]
    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Whether the CPU idles and could be put to work.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.standing.place == Some(0)
    }

    /// Whether the queue can be the shorter one: that of a CPU of which it is known, and which does not idle.
    #[inline]
    pub fn is_compared(&self) -> bool {
        self.standing.place.is_some_and(|place| place > 0)
    }

    /// Whether a task that waits here is beside a shorter queue, where these are the least others and none of their CPUs idles. `weight`: that of the
    /// task; `None` if it compares numbers of tasks.
    #[inline]
    pub fn is_beside_shortest(&self, weight: Option<u32>, least: &LeastQueues) -> bool {
        match weight {
            // Its share would be larger there.
            Some(weight) => least.weights().iter().any(|(capacity, least)| {
                let there = Crowding { weight: least.saturating_add(weight.into()), capacity: *capacity };
                there < Crowding { weight: self.weight(), capacity: self.capacity }
            }),
            None => least.length + DIFFERENCE <= self.length(),
        }
    }

    /// Whether a task that waits here is beside a shorter queue there. `weight`: that of the task; `None` if it compares numbers of tasks.
    pub fn is_beside_shorter(&self, weight: Option<u32>, there: &ComparedQueue) -> bool {
        let least = LeastQueues::new(there.length(), [(there.capacity, there.weight())]);
        there.is_compared() && self.is_beside_shortest(weight, &least)
    }
}

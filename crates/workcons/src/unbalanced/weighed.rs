//! The CPUs that are too long while tasks differ in weight (`docs/read-the-numbers.md#weights`).
//!
//! An event changes what it concerns alone: waiters, and the CPUs that it touched. All CPUs are compared anew where the least queue is another one.

use crate::violation::{ALL, FollowedSets, Reach};
use sched::{ComparedQueue, Cpu, CpuSet, LeastQueues, Load, PerTask, SchedState, TaskId, TaskState};
use std::collections::BTreeMap;

/// Minimum number of events at which nothing is asked before the waiters are no longer followed.
const LEAST_PATIENCE: usize = 64;

/// Counted waiters that are alike: the class by the CPUs that they may use, and the weight; `None` for those that compare numbers of tasks.
type Alike = (usize, Option<u32>);

/// The class of the waiters that may use every CPU.
const FREE: usize = 0;

/// A CPU, with its counted waiters by what they compare.
#[derive(Clone, Debug, Default)]
struct WeighedCpu {
    queue: ComparedQueue,
    /// Whether a task runs there.
    runs: bool,
    waiters: BTreeMap<Alike, u32>,
    /// By how many tasks it is longer than the least queue, where a waiter that may use every CPU is beside a shorter one.
    excess: Option<u32>,
}

impl WeighedCpu {
    /// By how many tasks it is longer than the least queue that waiters of a class may use, where one of them is beside a shorter one.
    fn excess(&self, class: usize, least: Option<&LeastQueues>) -> Option<u32> {
        let least = least.filter(|_| self.runs)?;
        let mut alike = self.waiters.range((class, None)..=(class, Some(u32::MAX)));
        let is_beside = alike.any(|((_, weight), _)| self.queue.is_beside_shortest(*weight, least));
        is_beside.then(|| self.queue.length().saturating_sub(least.length))
    }
}

/// The least queues among those of some CPUs; nothing where one of them idles, or none is known.
fn least_of<'q>(queues: impl Iterator<Item = &'q ComparedQueue>) -> Option<LeastQueues> {
    let mut least: Option<LeastQueues> = None;
    for queue in queues {
        if queue.is_idle() {
            return None;
        }
        if queue.is_compared() {
            let first = || LeastQueues::new(queue.length(), []);
            least = Some(least.unwrap_or_else(first).with(queue));
        }
    }
    least
}

/// Adds to the number of a key, or takes from it. A number of zero is not kept.
fn count<K: Ord + Copy>(numbers: &mut BTreeMap<K, u32>, key: K, by: i32) {
    let number = numbers.entry(key).or_insert(0);
    *number = number.saturating_add_signed(by);
    if *number == 0 {
        numbers.remove(&key);
    }
}

/// The CPUs and their waiters, followed while some task weighs more or less than one of nice 0, and for a while behind it, or from the start on where
/// CPUs differ in capacity.
#[derive(Clone, Debug, Default)]
pub(super) struct WaitersByWeight {
    is_followed: bool,
    /// The number of events for which nothing is asked of them before they are no longer followed: as many as there were CPUs and waiters to begin
    /// with, so that beginning again and again takes no more time than the events.
    patience: usize,
    /// The number of events since the latest at which something was asked.
    unasked: usize,
    cpus: Vec<WeighedCpu>,
    /// The counted waiters, each with its CPU.
    waits: PerTask<(Cpu, Alike)>,
    /// The number of CPUs by the capacity and the weight of their queues, and by their length, where they do not idle.
    weights: BTreeMap<(u32, u64), u32>,
    lengths: BTreeMap<u32, u32>,
    /// The number of CPUs that idle.
    idle: u32,
    /// The least queues by which the CPUs were compared last.
    least: Option<LeastQueues>,
    /// The number of CPUs with each excess.
    excesses: BTreeMap<u32, u32>,
}

impl WaitersByWeight {
    /// Whether the waiters are followed: some task weighs more or less than one of nice 0, or did a while ago.
    pub(super) fn is_followed(&self) -> bool {
        self.is_followed
    }

    /// Begins with the queues as they are.
    pub(super) fn begin(
        &mut self,
        cpus: impl Iterator<Item = Cpu>,
        way: usize,
        followed: &FollowedSets,
        (load, state): (impl Fn(Cpu) -> Load, &SchedState),
    ) {
        self.is_followed = true;
        self.patience = LEAST_PATIENCE;
        for cpu in cpus {
            self.settle(cpu, load(cpu), state);
            self.patience += 1;
            for task in state.waiting(cpu) {
                self.renew(task.id(), way, followed, state);
                self.patience += 1;
            }
        }
    }

    /// Takes note of an event at which nothing is asked, and ends the following behind many of them: tasks of the kernel with a nice level of
    /// their own run now and then on most machines. Returns whether it has ended.
    pub(super) fn is_spared(&mut self) -> bool {
        self.unasked += 1;
        if self.unasked > self.patience {
            *self = WaitersByWeight::default();
        }
        !self.is_followed
    }

    /// Finds what a task compares now, if it waits and counts.
    pub(super) fn renew(&mut self, task: TaskId, way: usize, followed: &FollowedSets, state: &SchedState) {
        let found = state.task(task).and_then(|task| match task.state {
            TaskState::Waiting(cpu) if followed.counts(task.id(), way) => {
                let reach = followed.sets.reach().filter(|_| way != ALL);
                let class = reach.map_or(FREE, |reach| reach.class_of(task.id()));
                Some((cpu, (class, task.compared_weight())))
            }
            _ => None,
        });
        if self.waits.get(task) == found.as_ref() {
            return;
        }
        if let Some((cpu, alike)) = self.waits.take(task) {
            self.change(cpu, |cpu| count(&mut cpu.waiters, alike, -1));
        }
        if let Some((cpu, alike)) = found {
            self.waits.insert(task, (cpu, alike));
            self.change(cpu, |cpu| count(&mut cpu.waiters, alike, 1));
        }
    }

    /// Finds the queue of a CPU of this load.
    pub(super) fn settle(&mut self, cpu: Cpu, load: Load, state: &SchedState) {
        let queue = ComparedQueue::with_load(cpu, load, state);
        let old = self.change(cpu, |cpu| {
            cpu.runs = load.runs();
            std::mem::replace(&mut cpu.queue, queue)
        });
        for (queue, by) in [(old, -1), (queue, 1)] {
            self.idle = self.idle.saturating_add_signed(by * i32::from(queue.is_idle()));
            if queue.is_compared() {
                count(&mut self.weights, (queue.capacity(), queue.weight()), by);
                count(&mut self.lengths, queue.length(), by);
            }
        }
    }

    /// Changes a CPU, and compares it with the least queue.
    fn change<T>(&mut self, cpu: Cpu, change: impl FnOnce(&mut WeighedCpu) -> T) -> T {
        if cpu.index() >= self.cpus.len() {
            self.cpus.resize(cpu.index() + 1, WeighedCpu::default());
        }
        let entry = &mut self.cpus[cpu.index()];
        let changed = change(entry);
        let excess = entry.excess(FREE, self.least.as_ref());
        let old = std::mem::replace(&mut entry.excess, excess);
        if old != excess {
            old.into_iter().for_each(|old| count(&mut self.excesses, old, -1));
            excess.into_iter().for_each(|excess| count(&mut self.excesses, excess, 1));
        }
        changed
    }

    /// The least weight of the CPUs of each capacity.
    fn least_weights(&self) -> impl Iterator<Item = (u32, u64)> {
        let key = |(key, _): (&(u32, u64), &u32)| *key;
        let first = self.weights.first_key_value().map(key);
        std::iter::successors(first, move |(capacity, _)| {
            let larger = capacity.checked_add(1)?;
            self.weights.range((larger, 0)..).next().map(key)
        })
    }

    /// The number of CPUs with a waiter that is beside a shorter queue, and the largest difference between the numbers of tasks.
    pub(super) fn too_long(&mut self, reach: Option<(&Reach, usize)>) -> (u32, u32) {
        self.unasked = 0;
        let shortest = self.lengths.first_key_value().filter(|_| self.idle == 0);
        let least = shortest.map(|(length, _)| LeastQueues::new(*length, self.least_weights()));
        if least != self.least {
            self.least = least;
            (0..self.cpus.len() as u32).for_each(|cpu| self.change(Cpu(cpu), |_| ()));
        }
        let mut number = self.excesses.values().sum();
        let mut difference = self.excesses.last_key_value().map_or(0, |(excess, _)| *excess);
        let mut others = CpuSet::default();
        for (class, usable, on) in reach.into_iter().flat_map(|(reach, way)| reach.restricted(way)) {
            let least = least_of(usable.cpus().filter_map(|cpu| Some(&self.cpus.get(cpu.index())?.queue)));
            for cpu in on.cpus() {
                let Some(excess) = self.cpus.get(cpu.index()).and_then(|entry| entry.excess(class, least.as_ref()))
                else {
                    continue;
                };
                difference = difference.max(excess);
                if self.cpus[cpu.index()].excess.is_none() && !others.has(cpu) {
                    others.set(cpu, true);
                    number += 1;
                }
            }
        }
        (number, difference)
    }
}

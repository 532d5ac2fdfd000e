//! The idle CPUs and the shortest queues among the CPUs that some tasks may use.

use super::weighing::WeightClass;
use super::{CpuStanding, FollowedCpu, UsableClass};
use crate::event::nice::NICE_0_WEIGHT;
use crate::event::{Cpu, Ts};
use crate::tables::cpu_set::CpuSet;

/// The least length of a queue beside which another one can be shorter by two and not be idle.
const LEAST: u32 = 3;

/// The times of one queue, for its tasks that may use the CPUs of the set.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct QueueTimes {
    /// The time beside a shorter queue, in nanoseconds, up to the last change of the length.
    pub(super) shorter: i64,
    /// The reading for that length at the last change.
    pub(super) mark: i64,
    /// The time beside idle CPUs and that beside shorter queues that were held back, in nanoseconds.
    pub(super) aside: (i64, i64),
    /// The readings of both at the beginning of the pending interval.
    pub(super) pending: (i64, i64),
}

/// The shortest queue over time among the CPUs of a set.
#[derive(Clone, Debug)]
pub(super) struct UsableCpus {
    pub(super) class: UsableClass,
    /// The CPUs of the set; `None` for all.
    pub(super) set: Option<CpuSet>,
    /// The number of CPUs with each length.
    pub(super) numbers: Vec<u32>,
    /// The length of the shortest queue, 0 while a CPU idles; `None` where no CPU is known.
    pub(super) least: Option<u32>,
    /// The time for which a CPU idled, in nanoseconds, up to `last`.
    pub(super) idle: i64,
    /// The time for which the shortest queue had each length, in nanoseconds, up to `last`.
    pub(super) by_least: Vec<i64>,
    pub(super) last: Ts,
    pub(super) queues: Vec<QueueTimes>,
    /// The waiters by their weights, as far as tasks differ in weight.
    pub(super) weights: Vec<WeightClass>,
}

impl UsableCpus {
    pub(super) fn new(class: UsableClass, set: Option<CpuSet>, now: Ts) -> UsableCpus {
        UsableCpus {
            class,
            set,
            numbers: Vec::new(),
            least: None,
            idle: 0,
            by_least: Vec::new(),
            last: now,
            queues: Vec::new(),
            weights: Vec::new(),
        }
    }

    /// Accounts for the time since the last change of the shortest queue.
    pub(super) fn account(&mut self, now: Ts) {
        let ns = now.since(self.last).0 as i64;
        self.last = now;
        match self.least {
            None => {}
            Some(0) => self.idle += ns,
            Some(least) => {
                let at = least as usize;
                if at >= self.by_least.len() {
                    self.by_least.resize(at + 1, 0);
                }
                self.by_least[at] += ns;
            }
        }
    }

    /// The time for which a CPU idled, in nanoseconds.
    fn idle_until(&self, now: Ts) -> i64 {
        self.idle + if self.least == Some(0) { now.since(self.last).0 as i64 } else { 0 }
    }

    /// The time for which no CPU idled and the shortest queue was shorter than `length` by two or more, in nanoseconds.
    #[inline]
    pub(super) fn shorter_than(&self, length: u32, now: Ts) -> i64 {
        if length < LEAST {
            return 0;
        }
        let most = (length - 2) as usize;
        let before: i64 = self.by_least.iter().take(most + 1).sum();
        let is_shorter = self.least.is_some_and(|least| (1..=most).contains(&(least as usize)));
        before + if is_shorter { now.since(self.last).0 as i64 } else { 0 }
    }

    fn queue(&mut self, cpu: Cpu) -> &mut QueueTimes {
        if cpu.index() >= self.queues.len() {
            self.queues.resize(cpu.index() + 1, QueueTimes::default());
        }
        &mut self.queues[cpu.index()]
    }

    /// The times beside idle CPUs and beside shorter queues, whether held back or not.
    pub(super) fn all(&self, cpu: Cpu, length: u32, now: Ts) -> (i64, i64) {
        let queue = self.queues.get(cpu.index()).copied().unwrap_or_default();
        (self.idle_until(now), queue.shorter + self.shorter_than(length, now) - queue.mark)
    }

    /// The same without the part that was held back.
    pub(super) fn read(&self, cpu: Cpu, length: u32, now: Ts) -> (i64, i64) {
        let (idle, shorter) = self.all(cpu, length, now);
        let (idle_aside, shorter_aside) = self.queues.get(cpu.index()).map_or((0, 0), |queue| queue.aside);
        (idle - idle_aside, shorter - shorter_aside)
    }

    /// The same times since the beginning of the pending interval.
    pub(super) fn read_pending(&self, cpu: Cpu, length: u32, now: Ts) -> (i64, i64) {
        let (idle, shorter) = self.all(cpu, length, now);
        let (idle_before, shorter_before) = self.queues.get(cpu.index()).map_or((0, 0), |queue| queue.pending);
        (idle - idle_before, shorter - shorter_before)
    }

    /// A pending interval begins.
    pub(super) fn begin_pending(&mut self, cpu: Cpu, length: u32, now: Ts) {
        self.queue(cpu).pending = self.all(cpu, length, now);
        if !self.weights.is_empty() {
            self.begin_pending_surplus(cpu, now);
        }
    }

    /// The pending interval ends, and is held back.
    pub(super) fn set_aside(&mut self, cpu: Cpu, length: u32, now: Ts) {
        let (idle, shorter) = self.read_pending(cpu, length, now);
        let aside = &mut self.queue(cpu).aside;
        *aside = (aside.0 + idle, aside.1 + shorter);
        if !self.weights.is_empty() {
            self.set_surplus_aside(cpu, now);
        }
    }

    /// A CPU has another standing from now on.
    #[inline]
    pub(super) fn change(&mut self, cpu: Cpu, old: &CpuStanding, new: &CpuStanding, now: Ts) {
        if old.length != new.length && old.length.max(new.length) >= LEAST {
            let (before, behind) = (self.shorter_than(old.length, now), self.shorter_than(new.length, now));
            let queue = self.queue(cpu);
            queue.shorter += before - queue.mark;
            queue.mark = behind;
        }
        if old.place != new.place && self.set.as_ref().is_none_or(|set| set.has(cpu)) {
            self.displace(old.place, new.place, now);
        }
    }

    pub(super) fn displace(&mut self, old: Option<u32>, new: Option<u32>, now: Ts) {
        if let Some(old) = old {
            self.numbers[old as usize] -= 1;
        }
        if let Some(new) = new {
            if new as usize >= self.numbers.len() {
                self.numbers.resize(new as usize + 1, 0);
            }
            self.numbers[new as usize] += 1;
        }
        let from = match (self.least, new) {
            (Some(least), Some(new)) => least.min(new),
            (least, new) => least.or(new).unwrap_or(0),
        };
        let numbers = self.numbers.iter().skip(from as usize);
        let least = (from..).zip(numbers).find(|(_, number)| **number > 0).map(|(least, _)| least);
        if least != self.least {
            self.account(now);
            self.least = least;
        }
    }
}

impl UsableCpus {
    /// The class of the waiters of a weight, if it is followed.
    pub(super) fn weighed(&self, weight: u32) -> Option<&WeightClass> {
        self.weights.iter().find(|class| class.weight == weight)
    }

    /// Follows a change of one CPU, or of any number of them, while weights decide.
    pub(super) fn weigh(&mut self, cpus: &[FollowedCpu], changed: Option<Cpu>, now: Ts) {
        if self.weighed(NICE_0_WEIGHT).is_none() {
            self.weights.push(WeightClass::new(NICE_0_WEIGHT));
        }
        let set = self.set.as_ref();
        for class in &mut self.weights {
            let fresh = class.cpus.is_empty();
            let has = |cpu: Cpu| set.is_none_or(|set| set.has(cpu));
            class.follow(cpus, changed.filter(|_| !fresh), (self.least, has), now);
        }
    }

    /// Lets the lengths decide from now on.
    pub(super) fn rest(&mut self, now: Ts) {
        self.weights.iter_mut().for_each(|class| class.rest(now));
    }

    /// The surplus of waiters of a weight without what was held back, and that of the pending interval.
    pub(super) fn surplus(&self, weight: u32, cpu: Cpu, now: Ts) -> (i64, i64) {
        let Some(class) = self.weighed(weight) else { return (0, 0) };
        class.surplus(cpu, now)
    }

    /// A pending interval begins.
    pub(super) fn begin_pending_surplus(&mut self, cpu: Cpu, now: Ts) {
        self.weights.iter_mut().for_each(|class| class.begin_pending(cpu, now));
    }

    /// The pending interval ends, and is held back.
    pub(super) fn set_surplus_aside(&mut self, cpu: Cpu, now: Ts) {
        self.weights.iter_mut().for_each(|class| class.set_aside(cpu, now));
    }

    /// Adds the surplus of a later piece.
    pub(super) fn join_surplus(&mut self, later: Option<&UsableCpus>, goes_on: &[bool], at: Ts) {
        let weights = later.into_iter().flat_map(|later| &later.weights).map(|class| class.weight);
        for weight in weights {
            if self.weighed(weight).is_none() {
                self.weights.push(WeightClass::new(weight));
            }
        }
        for class in &mut self.weights {
            class.join(later.and_then(|later| later.weighed(class.weight)), goes_on, at);
        }
    }
}

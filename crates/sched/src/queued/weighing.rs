//! The time beside a shorter queue where tasks differ in weight (`docs/read-the-numbers.md#weights`).
//!
//! As long as all tasks weigh the same, the lengths of queues decide, and nothing here changes. While some task weighs more or less, a
//! [`WeightClass`] adds the time for which the weights say that a queue is shorter and the lengths do not, and subtracts that for which it is the
//! other way round. On machines whose CPUs differ in capacity that is so all the time.

use super::compared::{Crowding, DIFFERENCE};
use super::{FollowedCpu, QueuedKinds, UsableClass};
use crate::event::nice::NICE_0_WEIGHT;
use crate::event::{Cpu, Ts};

/// Maximum number of pairs of usable CPUs and a weight other than that of nice 0 that are followed.
const MOST_WEIGHTS: usize = 64;

/// Waiters that are alike: they may use the same CPUs, and weigh the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WaiterClass {
    pub(crate) usable: UsableClass,
    /// The weight; 0 for waiters that compare numbers of tasks.
    pub(crate) weight: u32,
}

impl Default for WaiterClass {
    fn default() -> WaiterClass {
        WaiterClass { usable: UsableClass::All, weight: NICE_0_WEIGHT }
    }
}

/// The time beside a shorter queue by weight, above that by length, on one CPU.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Surplus {
    /// The surplus up to `since`, in nanoseconds.
    sum: i64,
    /// The change of the surplus in a nanosecond: 1, 0 or −1.
    rate: i64,
    since: Ts,
    /// The part that was held back.
    aside: i64,
    /// The surplus at the beginning of the pending interval.
    pending: i64,
}

impl Surplus {
    fn until(&self, now: Ts) -> i64 {
        self.sum + self.rate * now.since(self.since).0 as i64
    }
}

/// The waiters of one weight among those that may use the CPUs of a set.
#[derive(Clone, Debug)]
pub(super) struct WeightClass {
    pub(super) weight: u32,
    /// The least queue by weight with the waiter in it, where no CPU idles, with its CPU.
    least: Option<(Crowding, usize)>,
    /// The length of the shortest queue.
    shortest: Option<u32>,
    pub(super) cpus: Vec<Surplus>,
}

impl WeightClass {
    pub(super) fn new(weight: u32) -> WeightClass {
        WeightClass { weight, least: None, shortest: None, cpus: Vec::new() }
    }

    fn of(&self, cpu: Cpu) -> Surplus {
        self.cpus.get(cpu.index()).copied().unwrap_or_default()
    }

    fn entry(&mut self, cpu: Cpu) -> &mut Surplus {
        if cpu.index() >= self.cpus.len() {
            self.cpus.resize(cpu.index() + 1, Surplus::default());
        }
        &mut self.cpus[cpu.index()]
    }

    /// The surplus of a CPU without what was held back, and that of the pending interval.
    pub(super) fn surplus(&self, cpu: Cpu, now: Ts) -> (i64, i64) {
        let surplus = self.of(cpu);
        let all = surplus.until(now);
        (all - surplus.aside, all - surplus.pending)
    }

    /// Begins a pending interval.
    pub(super) fn begin_pending(&mut self, cpu: Cpu, now: Ts) {
        let all = self.of(cpu).until(now);
        self.entry(cpu).pending = all;
    }

    /// Ends the pending interval, which is held back.
    pub(super) fn set_aside(&mut self, cpu: Cpu, now: Ts) {
        let surplus = self.entry(cpu);
        surplus.aside += surplus.until(now) - surplus.pending;
    }

    /// The least queue by weight among those of some CPUs, of the first that has it.
    fn least_of(&self, cpus: &[FollowedCpu], has: impl Fn(Cpu) -> bool) -> Option<(Crowding, usize)> {
        let crowding = |(at, entry): (usize, &FollowedCpu)| {
            Some((entry.crowding_with(self.weight).filter(|_| has(Cpu(at as u32)))?, at))
        };
        cpus.iter().enumerate().filter_map(crowding).min()
    }

    /// Follows a change of one CPU, or of any number of them.
    pub(super) fn follow(
        &mut self,
        cpus: &[FollowedCpu],
        changed: Option<Cpu>,
        usable: (Option<u32>, impl Fn(Cpu) -> bool),
        now: Ts,
    ) {
        let (shortest, has) = usable;
        let old = (self.least, std::mem::replace(&mut self.shortest, shortest));
        self.least = match (shortest, changed) {
            (None | Some(0), _) => None,
            (_, Some(cpu)) if old.1.is_some_and(|length| length > 0) => {
                let weight = cpus[cpu.index()].crowding_with(self.weight).filter(|_| has(cpu));
                match (self.least, weight) {
                    (Some((least, at)), Some(weight)) if least >= weight || at != cpu.index() => {
                        Some(if weight < least || at == cpu.index() { (weight, cpu.index()) } else { (least, at) })
                    }
                    (Some((least, at)), None) if at != cpu.index() => Some((least, at)),
                    _ => self.least_of(cpus, has),
                }
            }
            _ => self.least_of(cpus, has),
        };
        match changed.filter(|_| old == (self.least, shortest)) {
            Some(cpu) => self.settle(cpu, &cpus[cpu.index()], now),
            None => (0..).map(Cpu).zip(cpus).for_each(|(cpu, entry)| self.settle(cpu, entry, now)),
        }
    }

    /// Finds the rate of a CPU.
    fn settle(&mut self, cpu: Cpu, entry: &FollowedCpu, now: Ts) {
        let rate = match self.least.zip(self.shortest) {
            Some(((least, _), shortest)) if entry.standing.is_queued => {
                let by_weight = least < entry.crowding();
                let by_length = entry.standing.length >= shortest + DIFFERENCE;
                i64::from(by_weight) - i64::from(by_length)
            }
            _ => 0,
        };
        self.set_rate(cpu, rate, now);
    }

    fn set_rate(&mut self, cpu: Cpu, rate: i64, now: Ts) {
        if self.of(cpu).rate != rate {
            let surplus = self.entry(cpu);
            (surplus.sum, surplus.since, surplus.rate) = (surplus.until(now), now, rate);
        }
    }

    /// Lets the lengths decide from now on.
    pub(super) fn rest(&mut self, now: Ts) {
        (self.least, self.shortest) = (None, None);
        (0..self.cpus.len() as u32).for_each(|cpu| self.set_rate(Cpu(cpu), 0, now));
    }

    /// Adds the times of a later piece, if there are any. `goes_on`: whether the pending interval at the border still is, by CPU.
    pub(super) fn join(&mut self, later: Option<&WeightClass>, goes_on: &[bool], at: Ts) {
        let none = WeightClass::new(self.weight);
        let later = later.unwrap_or(&none);
        (self.least, self.shortest) = (later.least, later.shortest);
        for (cpu, goes_on) in (0..).map(Cpu).zip(goes_on) {
            let (here, more) = (self.of(cpu), later.of(cpu));
            let sum = here.until(at);
            let pending = if *goes_on { here.pending } else { sum + more.pending };
            *self.entry(cpu) = Surplus {
                sum: sum + more.sum,
                rate: more.rate,
                since: more.since.max(at),
                aside: here.aside + more.aside,
                pending,
            };
        }
    }
}

impl QueuedKinds {
    /// Whether weights decide now: some task weighs more or less than one of nice 0, or CPUs differ in capacity.
    #[inline]
    pub(super) fn weighs(&self) -> bool {
        self.odd_cpus > 0 || self.by_capacity
    }

    /// Follows a change of a CPU, which had tasks of other weights before or not.
    pub(super) fn follow_weights(&mut self, cpu: Cpu, was_odd: bool, now: Ts) {
        let weighed = self.weighs();
        let is_odd = self.cpus[cpu.index()].standing.odd.is_some();
        self.odd_cpus = self.odd_cpus + u32::from(is_odd) - u32::from(was_odd);
        let changed = Some(cpu).filter(|_| weighed);
        match self.weighs() {
            true => {
                self.has_weighed = true;
                self.usable.iter_mut().for_each(|usable| usable.weigh(&self.cpus, changed, now));
            }
            false if weighed => self.usable.iter_mut().for_each(|usable| usable.rest(now)),
            false => {}
        }
    }

    /// The weight by which a waiter of this weight is followed among those that may use the same CPUs; 0 if it is to compare numbers of tasks.
    #[cold]
    #[inline(never)]
    pub(super) fn weight(&mut self, weight: u32, usable: UsableClass, now: Ts) -> u32 {
        if usable == UsableClass::Own {
            return weight;
        }
        let others =
            self.usable.iter().flat_map(|usable| &usable.weights).filter(|class| class.weight != NICE_0_WEIGHT);
        let is_full = others.count() >= MOST_WEIGHTS;
        let weighs = self.weighs();
        let Some(usable) = self.usable.iter_mut().find(|known| known.class == usable) else { return 0 };
        if usable.weighed(weight).is_none() {
            if is_full {
                return 0;
            }
            usable.weights.push(WeightClass::new(weight));
            if weighs {
                usable.weigh(&self.cpus, None, now);
            }
        }
        weight
    }

    /// Whether the classes of this piece and of a later one are not too many together.
    pub(super) fn weights_fit(&self, later: &QueuedKinds) -> bool {
        let mut all: Vec<(UsableClass, u32)> = Vec::new();
        for usable in self.usable.iter().chain(&later.usable) {
            let others = usable.weights.iter().filter(|class| class.weight != NICE_0_WEIGHT);
            all.extend(others.map(|class| (usable.class, class.weight)));
        }
        all.sort_unstable();
        all.dedup();
        all.len() <= MOST_WEIGHTS
    }
}

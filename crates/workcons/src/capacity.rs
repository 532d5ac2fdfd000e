//! CPU time lost on machines whose CPUs differ in capacity, in units of the largest CPU.

use crate::violation::{Sets, WAYS};
use sched::{Cpu, Ts};
use serde::Serialize;

/// The capacities of a machine whose CPUs differ in them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capacities {
    /// The capacity of each CPU, 0 for one whose capacity is unknown.
    of: Vec<u32>,
    largest: u32,
}

impl Capacities {
    /// Returns the capacities of CPUs, such as `cpu_capacity` has them, where they differ; nothing where they are all the same.
    pub fn of(cpus: impl IntoIterator<Item = (Cpu, u32)>) -> Option<Capacities> {
        let mut of: Vec<u32> = Vec::new();
        for (cpu, capacity) in cpus.into_iter().filter(|(cpu, capacity)| cpu.0 < Cpu::LIMIT && *capacity > 0) {
            of.resize(of.len().max(cpu.index() + 1), 0);
            of[cpu.index()] = capacity;
        }
        let known = || of.iter().copied().filter(|capacity| *capacity > 0);
        let (least, largest) = (known().min()?, known().max()?);
        (least < largest).then_some(Capacities { of, largest })
    }

    /// The capacity of a CPU: that of the largest one where it is unknown.
    pub fn at(&self, cpu: Cpu) -> u64 {
        let known = self.of.get(cpu.index()).copied().filter(|capacity| *capacity > 0);
        known.unwrap_or(self.largest).into()
    }

    /// The sum of the capacities of CPUs.
    fn sum(&self, cpus: impl Iterator<Item = Cpu>) -> u64 {
        cpus.map(|cpu| self.at(cpu)).sum()
    }
}

/// The CPU time lost by way of counting, weighted by the capacities of the idle CPUs.
#[derive(Clone, Debug)]
pub(crate) struct CapacityLoss {
    capacities: Capacities,
    since: Ts,
    /// The capacity that is lost since then.
    now: [u64; WAYS],
    /// The integral of the lost capacity over nanoseconds.
    sums: [u128; WAYS],
}

/// The CPU time lost in units of the largest CPU.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LostCapacity {
    /// The CPU time lost in nanoseconds of the largest CPU: the idle CPUs that could have been put to work count by their capacity.
    pub ns: u64,
    /// The same in percent of the capacity of all CPUs over the window.
    pub percent: f64,
}

impl CapacityLoss {
    pub(crate) fn new(capacities: &Capacities) -> CapacityLoss {
        CapacityLoss { capacities: capacities.clone(), since: Ts(0), now: [0; WAYS], sums: [0; WAYS] }
    }

    /// Begins at an instant.
    pub(crate) fn begin(&mut self, at: Ts) {
        self.since = at;
    }

    /// Accounts for the time until `ts`.
    pub(crate) fn pass(&mut self, ts: Ts) {
        let ns = ts.since(self.since).0;
        self.since = self.since.max(ts);
        self.sums.iter_mut().zip(self.now).for_each(|(sum, now)| *sum += u128::from(ns) * u128::from(now));
    }

    /// Takes over the sets from `ts` on.
    pub(crate) fn change(&mut self, ts: Ts, sets: &Sets) {
        self.pass(ts);
        for way in 0..WAYS {
            let number = sets.violation(way).cpus;
            self.now[way] = if number > 0 { self.largest_of(sets.cpus(way).0, number) } else { 0 };
        }
    }

    /// The sum of the largest capacities of some idle CPUs.
    fn largest_of(&self, idle: Vec<Cpu>, number: u32) -> u64 {
        let mut all: Vec<u64> = idle.into_iter().map(|cpu| self.capacities.at(cpu)).collect();
        all.sort_unstable_by(|a, b| b.cmp(a));
        all.into_iter().take(number as usize).sum()
    }

    /// Adds a later piece of a pass, which begins at an instant.
    pub(crate) fn join(&mut self, at: Ts, later: &CapacityLoss) {
        self.pass(at);
        self.sums.iter_mut().zip(later.sums).for_each(|(sum, more)| *sum += more);
        (self.since, self.now) = (later.since, later.now);
    }

    /// The loss by a way of counting; `cpus` are those that take part for `window` nanoseconds.
    pub(crate) fn lost(&self, way: usize, cpus: impl Iterator<Item = Cpu>, window: u64) -> LostCapacity {
        let all = u128::from(self.capacities.sum(cpus)) * u128::from(window);
        let ns = u64::try_from(self.sums[way] / u128::from(self.capacities.largest)).unwrap_or(u64::MAX);
        let percent = if all == 0 { 0.0 } else { 100.0 * self.sums[way] as f64 / all as f64 };
        LostCapacity { ns, percent }
    }
}

#[cfg(test)]
mod tests {
    use super::Capacities;
    use crate::{Options, WorkConservation};
    use sched::{Cpu, Pass};

    #[test]
    fn a_small_cpu_that_idles_loses_its_part() {
        // A task waits on CPU 0 for 200 ns while CPU 1 idles, which has half the capacity. The window is 500 ns long.
        let events = testkit::a_wait_beside_an_idle_cpu();
        let lost = |capacities: &[u32]| {
            let cpus = (0..).map(Cpu).zip(capacities.iter().copied());
            let options = Options { capacities: Capacities::of(cpus), ..Options::default() };
            let pass = Pass::over(events.as_slice()).run(|| WorkConservation::new(&options));
            let report = pass.unwrap_or_else(|never| match never {}).output;
            report.violation.expect("a headline").capacity_lost.map(|lost| (lost.ns, lost.percent))
        };
        let percent = 100.0 * 200.0 * 512.0 / (500.0 * 1536.0);
        assert_eq!(lost(&[1024, 512]), Some((100, percent)));
        // The largest CPU of the machine is the unit, even if it has no events.
        assert_eq!(lost(&[512, 512, 1024]).map(|lost| lost.0), Some(100));
        assert_eq!(lost(&[512, 1024]).map(|lost| lost.0), Some(200));
        assert_eq!((lost(&[1024, 1024]), lost(&[])), (None, None));
    }

    /// At each instant of a simulated run, the largest of the idle CPUs that could have been put to work, by the state alone.
    #[test]
    fn the_loss_is_that_of_every_instant() {
        use crate::Waiters;
        use sched::{Analysis, Load, SchedEvent, SchedState, Ts};
        const SIZES: [u32; 6] = [1024, 512, 512, 256, 1024, 256];

        #[derive(Default)]
        struct Instants(Ts, u128);

        impl Instants {
            fn until(&mut self, ts: Ts, state: &SchedState) {
                let ns = u128::from(ts.since(self.0).0);
                self.0 = ts;
                let of = |load| state.observed().filter(move |cpu| state.load(*cpu) == load);
                let mut idle: Vec<u32> = of(Load::Idle).map(|cpu| SIZES[cpu.index()]).collect();
                idle.sort_unstable_by(|a, b| b.cmp(a));
                let overloaded = of(Load::Overloaded).count();
                self.1 += ns * idle.into_iter().take(overloaded).map(u128::from).sum::<u128>();
            }
        }

        impl Analysis for Instants {
            type Output = u128;
            fn begin(&mut self, start: Ts, _: &SchedState) {
                self.0 = start;
            }
            fn before(&mut self, event: &SchedEvent, state: &SchedState) {
                self.until(event.ts, state);
            }
            fn finish(mut self, end: Ts, state: &SchedState) -> u128 {
                self.until(end, state);
                self.1
            }
        }

        let capacities = Capacities::of((0..).map(Cpu).zip(SIZES));
        let options = Options { capacities, waiters: Waiters::All, ..Options::default() };
        for seed in 0..6 {
            let events = testkit::Simulation::balanced(seed, 6, 1_000).events;
            let pass = Pass::over(events.as_slice()).run(|| (WorkConservation::new(&options), Instants::default()));
            let (report, truth) = pass.unwrap_or_else(|never| match never {}).output;
            let lost = report.violation.and_then(|violation| violation.capacity_lost).expect("capacities that differ");
            assert_eq!((lost.ns, truth > 0), ((truth / 1024) as u64, true), "{seed}");
        }
    }
}

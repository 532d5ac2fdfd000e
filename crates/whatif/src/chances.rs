//! The chances of CPUs that idle, or go idle, to take a waiting task of another CPU, and the share of them that a trace's balancer took.

use sched::topology::CpuOrder;
use sched::{Cpu, Topology};
use serde::Serialize;
use std::collections::BTreeMap;

/// The least number of new-idle pulls that show the share of chances that become one. With new-idle balancing off, a trace has up to 3: pulls of other
/// kinds that look like them.
const MEANINGFUL_PULLS: u64 = 10;

/// The pulls of a trace's balancer beside its chances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PullRate {
    /// The number of waiting tasks that were pulled.
    pub pulls: u64,
    /// The chances to pull one: switches to idle for new-idle balancing, nanoseconds of idle CPUs for the balancing of idle CPUs.
    pub chances: u64,
}

/// The balancing that the trace shows of CPUs that go idle, and of CPUs that idle, while a movable fair task waits behind another task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Balancing {
    /// New-idle balancing, where such a task waits under the CPU's last-level cache; anywhere, if the caches are not known.
    pub new_idle_near: PullRate,
    /// New-idle balancing, where such a task waits only beyond the cache.
    pub new_idle_far: PullRate,
    /// The balancing of CPUs that idle, where such a task waits under their last-level cache.
    pub idle_near: PullRate,
    /// The balancing of CPUs that idle, where such a task waits only beyond the cache.
    pub idle_far: PullRate,
}

impl Balancing {
    /// Whether the balancer of the trace pulled any task to a CPU that idled or went idle.
    pub fn any(&self) -> bool {
        let all = [self.new_idle_near, self.new_idle_far, self.idle_near, self.idle_far];
        all.iter().any(|rate| rate.pulls > 0)
    }

    /// Whether CPUs of the trace that went idle pulled enough tasks to show how often that succeeds.
    pub fn shows_new_idle(&self) -> bool {
        self.new_idle_near.pulls.saturating_add(self.new_idle_far.pulls) >= MEANINGFUL_PULLS
    }
}

/// The pull that comes next, as far as it has come together, in pulls times chances.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Owed(u128);

impl Owed {
    /// Adds chances, and returns whether a pull is due, which is then taken off. Pulls that were due and not taken are lost.
    pub(crate) fn add(&mut self, rate: PullRate, chances: u64) -> bool {
        if rate.pulls == 0 || rate.chances == 0 {
            return false;
        }
        let one = u128::from(rate.chances);
        self.0 += u128::from(rate.pulls) * u128::from(chances);
        let is_due = self.0 >= one;
        if is_due {
            self.0 = (self.0 - one).min(one - 1);
        }
        is_due
    }

    /// The time in nanoseconds until a pull is due while `cpus` CPUs have chances.
    pub(crate) fn time_left(self, rate: PullRate, cpus: u64) -> Option<u64> {
        let each = u128::from(rate.pulls) * u128::from(cpus);
        let left = u128::from(rate.chances).saturating_sub(self.0).div_ceil(each.max(1)).max(1);
        (each > 0 && rate.chances > 0).then(|| u64::try_from(left).unwrap_or(u64::MAX))
    }
}

/// The state of a CPU as far as chances depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Load {
    /// Whether the CPU idles with an empty run queue.
    is_idle: bool,
    /// Whether it runs a task, and a movable fair one waits.
    is_overloaded: bool,
}

/// The idle and the overloaded CPUs, by last-level cache.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chances {
    loads: Vec<Load>,
    /// The place of each cache, since a topology can number caches as it likes. The CPUs without a known cache share one.
    places: BTreeMap<Option<u32>, u32>,
    /// The place of the cache of each CPU.
    groups: Vec<u32>,
    /// The idle and the overloaded CPUs under each cache.
    of_group: Vec<[u64; 2]>,
    idle: u64,
    overloaded: u64,
    /// The idle CPUs under caches without an overloaded CPU.
    quiet: u64,
}

impl Chances {
    /// Adds the CPUs below `cpus`.
    pub(crate) fn grow(&mut self, cpus: usize, topology: &Topology) {
        for cpu in self.groups.len()..cpus {
            let next = self.places.len() as u32;
            let cache = topology.group(Cpu(cpu as u32), CpuOrder::Llc);
            self.groups.push(*self.places.entry(cache).or_insert(next));
            self.loads.push(Load::default());
        }
        self.of_group.resize(self.places.len(), [0; 2]);
    }

    /// The state of a CPU is this from now on.
    pub(crate) fn set(&mut self, cpu: Cpu, is_idle: bool, is_overloaded: bool) {
        let load = Load { is_idle, is_overloaded };
        let before = std::mem::replace(&mut self.loads[cpu.index()], load);
        if before == load {
            return;
        }
        let group = &mut self.of_group[self.groups[cpu.index()] as usize];
        let quiet = |[idle, overloaded]: [u64; 2]| if overloaded == 0 { idle } else { 0 };
        self.quiet -= quiet(*group);
        for (at, sum, was, is) in [
            (0, &mut self.idle, before.is_idle, load.is_idle),
            (1, &mut self.overloaded, before.is_overloaded, load.is_overloaded),
        ] {
            group[at] = group[at] + u64::from(is) - u64::from(was);
            *sum = *sum + u64::from(is) - u64::from(was);
        }
        self.quiet += quiet(*group);
    }

    /// The idle CPUs with an overloaded one under their cache.
    pub(crate) fn near(&self) -> u64 {
        self.idle - self.quiet
    }

    /// The idle CPUs with an overloaded one, but none under their cache.
    pub(crate) fn far(&self) -> u64 {
        if self.overloaded > 0 { self.quiet } else { 0 }
    }

    /// Whether an overloaded CPU shares the cache of `cpu`, or is beyond it; nothing if there is none.
    pub(crate) fn nearest(&self, cpu: Cpu) -> Option<bool> {
        match self.of_group[self.groups[cpu.index()] as usize][1] {
            0 => (self.overloaded > 0).then_some(false),
            _ => Some(true),
        }
    }

    /// Whether two CPUs share a cache.
    pub(crate) fn is_near(&self, cpu: Cpu, other: Cpu) -> bool {
        self.groups[cpu.index()] == self.groups[other.index()]
    }

    pub(crate) fn is_overloaded(&self, cpu: Cpu) -> bool {
        self.loads[cpu.index()].is_overloaded
    }

    pub(crate) fn is_idle(&self, cpu: Cpu) -> bool {
        self.loads[cpu.index()].is_idle
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sched::topology::CpuLocation;

    #[test]
    fn the_numbers_of_caches_take_no_room() {
        let mut topology = Topology::default();
        for (cpu, llc) in [(0, u32::MAX), (1, u32::MAX), (2, u32::MAX - 1)] {
            topology.set(Cpu(cpu), CpuLocation { llc: Some(llc), ..CpuLocation::default() });
        }
        let mut chances = Chances::default();
        chances.grow(4, &topology);
        assert_eq!(chances.of_group.len(), 3);
        assert_eq!([1, 2, 3].map(|cpu| chances.is_near(Cpu(0), Cpu(cpu))), [true, false, false]);
        chances.set(Cpu(1), false, true);
        chances.set(Cpu(0), true, false);
        chances.set(Cpu(2), true, false);
        assert_eq!((chances.near(), chances.far(), chances.nearest(Cpu(3))), (1, 1, Some(false)));
    }
}

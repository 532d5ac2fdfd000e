//! The violated time of the waits where the CPUs are known that tasks may use.
//!
//! Waits on one CPU differ by the CPUs that their tasks may use, so that one of them may be in violation while another one
//! is not. Waits of the same class on the same CPU are in violation together: each such pair keeps a sum, as each CPU does
//! without affinity.

use sched::seeded::SeededMap;
use sched::{Cpu, CpuSet};
use workcons::violation::{Membership, Reach};

/// A CPU, and the class of tasks that wait on it.
type Stand = (Cpu, usize);

/// The violated time of the waits of one class on one CPU.
#[derive(Clone, Copy, Debug, Default)]
struct StandSum {
    /// The reading of the violated time when they came to be in violation; nothing if they are not.
    since: Option<u64>,
    /// The violated time before, in nanoseconds.
    ns: u64,
}

/// The violated time of the waits by class and CPU.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClassMeter {
    sums: SeededMap<Stand, StandSum>,
    /// The pairs that are in violation now, in order.
    violating: Vec<Stand>,
    /// The CPUs of I.
    idle: CpuSet,
    /// The CPUs of O.
    overloaded: CpuSet,
}

impl ClassMeter {
    /// Finds the sets anew, when the reading of the violated time is this; returns the CPUs whose set changes, each with
    /// the new one.
    pub(crate) fn update(&mut self, reach: &Reach, way: usize, violated: u64) -> Vec<(Cpu, Membership)> {
        let violating = reach.violating(way);
        for stand in self.violating.iter().filter(|stand| violating.binary_search(stand).is_err()) {
            if let Some(sum) = self.sums.get_mut(stand) {
                let since = sum.since.take().unwrap_or(violated);
                sum.ns = sum.ns.saturating_add(violated.saturating_sub(since));
            }
        }
        for stand in violating.iter().filter(|stand| self.violating.binary_search(stand).is_err()) {
            self.sums.entry(*stand).or_default().since = Some(violated);
        }
        self.violating = violating;
        let pairs = reach.pairs(way).unwrap_or_default();
        let mut all = self.idle.clone();
        [&self.overloaded, &pairs.idle, &pairs.overloaded].into_iter().for_each(|set| all.add(set));
        let differs = |cpu: &Cpu| {
            self.idle.has(*cpu) != pairs.idle.has(*cpu) || self.overloaded.has(*cpu) != pairs.overloaded.has(*cpu)
        };
        let changed = all.cpus().filter(differs).map(|cpu| (cpu, pairs.membership(cpu))).collect();
        (self.idle, self.overloaded) = (pairs.idle, pairs.overloaded);
        changed
    }

    /// Whether some wait is in violation.
    pub(crate) fn is_violated(&self) -> bool {
        !self.idle.is_empty() && !self.overloaded.is_empty()
    }

    /// The violated time of the waits of a class on a CPU, when the reading of all violated time is this.
    pub(crate) fn reading(&self, cpu: Cpu, class: usize, violated: u64) -> u64 {
        let Some(sum) = self.sums.get(&(cpu, class)) else { return 0 };
        sum.ns.saturating_add(sum.since.map_or(0, |since| violated.saturating_sub(since)))
    }
}

//! The sets where the CPUs are known that tasks may use: those of `workcons`, with the violated time of each wait.
//!
//! Waits on one CPU differ by the CPUs that their tasks may use, so that one of them may be in violation while another one
//! is not. Waits of the same class on the same CPU are in violation together: each such pair keeps a sum, as each CPU does
//! without affinity.

use crate::nearest::Nearest;
use sched::seeded::SeededMap;
use sched::topology::Distance;
use sched::{Affinity, Cpu, CpuSet, Load, SchedState, Task, TaskId, Topology};
use workcons::Reach;

/// A CPU, and the class of tasks that wait on it.
type Stand = (Cpu, usize);

/// The violated time of the waits of one class on one CPU.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    /// The reading of the violated time since when they are in violation; nothing if they are not.
    since: Option<u64>,
    /// The violated time until then.
    ns: u64,
}

/// The waiters by the CPUs that they may use, for one way of counting.
#[derive(Clone, Debug)]
pub(crate) struct Affine {
    reach: Reach,
    way: usize,
    sums: SeededMap<Stand, Sum>,
    /// The pairs that are in violation now, in order.
    violating: Vec<Stand>,
    /// The CPUs of I and of O.
    pub(crate) idle: CpuSet,
    pub(crate) overloaded: CpuSet,
    topology: Topology,
}

impl Affine {
    /// For waiters that are counted in one way.
    pub(crate) fn new(topology: &Topology, way: usize) -> Affine {
        Affine {
            reach: Reach::new(topology),
            way,
            sums: SeededMap::default(),
            violating: Vec::new(),
            idle: CpuSet::default(),
            overloaded: CpuSet::default(),
            topology: topology.clone(),
        }
    }

    /// A counted task begins to wait on a CPU; returns its class.
    pub(crate) fn join(&mut self, task: &Task, cpu: Cpu, affinity: &Affinity, state: &SchedState) -> usize {
        self.reach.join(task, cpu, 1 << self.way, affinity, state)
    }

    /// A record shows the CPUs that a task may use; returns its class, if it is a counted one that waits and the class is
    /// another one now.
    pub(crate) fn renew(&mut self, task: &Task, affinity: &Affinity, state: &SchedState) -> Option<usize> {
        self.reach.renew(task, affinity, state)
    }

    /// A counted task no longer waits where it did.
    pub(crate) fn leave(&mut self, task: TaskId) {
        self.reach.leave(task);
    }

    /// A CPU has this load from now on.
    pub(crate) fn settle(&mut self, cpu: Cpu, load: Load) {
        self.reach.settle(cpu, load);
    }

    /// Finds the sets anew, when the reading of the violated time is this; returns the CPUs whose set changes.
    pub(crate) fn update(&mut self, violated: u64) -> Vec<Cpu> {
        let violating = self.reach.violating(self.way);
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
        let pairs = self.reach.pairs(self.way).unwrap_or_default();
        let mut both = self.idle.clone();
        [&self.overloaded, &pairs.idle, &pairs.overloaded].into_iter().for_each(|set| both.add(set));
        let differs = |cpu: &Cpu| {
            self.idle.has(*cpu) != pairs.idle.has(*cpu) || self.overloaded.has(*cpu) != pairs.overloaded.has(*cpu)
        };
        let changed = both.cpus().filter(differs).collect();
        (self.idle, self.overloaded) = (pairs.idle, pairs.overloaded);
        changed
    }

    /// The violated time of the waits of a class on a CPU, when the reading of all violated time is this.
    pub(crate) fn reading(&self, cpu: Cpu, class: usize, violated: u64) -> u64 {
        let Some(sum) = self.sums.get(&(cpu, class)) else { return 0 };
        sum.ns.saturating_add(sum.since.map_or(0, |since| violated.saturating_sub(since)))
    }

    /// The nearest idle CPU that a task may use, seen from the CPU on which it is placed.
    pub(crate) fn nearest_idle(&self, task: &Task, cpu: Cpu, affinity: &Affinity, state: &SchedState) -> Nearest {
        self.nearest(cpu, &self.reach.usable(task, cpu, affinity, state))
    }

    /// The nearest overloaded CPU with a counted waiter that may use `cpu`.
    pub(crate) fn nearest_waiter(&self, cpu: Cpu) -> Nearest {
        self.nearest(cpu, &self.reach.waiting_for(cpu, self.way))
    }

    /// The nearest CPU of a set, seen from a CPU.
    fn nearest(&self, cpu: Cpu, set: &CpuSet) -> Nearest {
        if set.is_empty() {
            return Nearest::Nowhere;
        }
        if set.has(cpu) {
            return Nearest::Itself;
        }
        match self.reach.distance(cpu, set) {
            Some(Distance::Smt) => Nearest::Core,
            Some(Distance::Llc) => Nearest::Llc,
            Some(Distance::Node) => Nearest::Node,
            _ if self.topology.place(cpu).is_some() => Nearest::Beyond,
            _ => Nearest::Somewhere,
        }
    }
}

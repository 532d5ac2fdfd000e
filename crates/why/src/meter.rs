//! The time in violation that each CPU and each wait has seen, by the sets of `workcons`.
//!
//! A wait that begins or ends must not cost more than an addition. The violated time is therefore a running sum, each CPU
//! keeps the part of it that fell into its own time in a set, and a wait or an idle stretch is the difference of two
//! readings.

use crate::class_meter::ClassMeter;
use crate::nearest::Nearest;
use sched::topology::Distance;
use sched::{Affinity, Cpu, Load, SchedState, Task, TaskId, Topology, Ts};
use workcons::violation::{ALL, Membership, Sets};
use workcons::{Options, Waiters};

/// The readings of a CPU.
#[derive(Clone, Copy, Debug, Default)]
struct Gauge {
    /// The set that the CPU belongs to.
    membership: Membership,
    /// The reading of the violated time when the CPU came to that set, in nanoseconds.
    base: u64,
    /// The violated time while it was overloaded before, in nanoseconds.
    overloaded: u64,
    /// The violated time while it was idle before, in nanoseconds.
    idle: u64,
}

/// The sets of work conservation, and the time in violation that each CPU and each wait has seen.
#[derive(Clone, Debug)]
pub(crate) struct Meter {
    /// The sets; only waiters that count are passed to them.
    sets: Sets,
    /// The way of counting by which waiters are distinguished where the CPUs are known that tasks may use.
    way: usize,
    topology: Topology,
    /// The readings by CPU.
    gauges: Vec<Gauge>,
    /// Whether work conservation is violated.
    is_violated: bool,
    /// The violated time up to `since`, in nanoseconds.
    violated: u64,
    since: Ts,
    /// The readings by class of waiters, where the CPUs are known that tasks may use.
    classes: Option<Box<ClassMeter>>,
}

impl Meter {
    /// Returns a meter with empty sets and without violated time.
    pub(crate) fn new(options: &Options<'_>) -> Meter {
        // Where every waiter counts, they count wherever they may run.
        let affinity = options.affinity.filter(|_| options.waiters != Waiters::All);
        Meter {
            sets: Sets::new(&options.topology, affinity),
            way: options.waiters as usize,
            topology: options.topology.clone(),
            gauges: Vec::new(),
            is_violated: false,
            violated: 0,
            since: Ts::default(),
            classes: affinity.map(|_| Box::default()),
        }
    }

    /// The set of each CPU.
    pub(crate) fn memberships(&self) -> Vec<Membership> {
        self.gauges.iter().map(|gauge| gauge.membership).collect()
    }

    /// Whether each CPU is in the set that it has here; one that is missing is in neither.
    pub(crate) fn has_memberships(&self, all: &[Membership]) -> bool {
        let of = |cpu: usize| self.gauges.get(cpu).map_or(Membership::Neither, |gauge| gauge.membership);
        let is_same = |cpu: usize| of(cpu) == all.get(cpu).copied().unwrap_or_default();
        (0..self.gauges.len().max(all.len())).all(is_same)
    }

    /// The number of CPUs that were in some set.
    pub(crate) fn cpus(&self) -> usize {
        self.gauges.len()
    }

    /// The time of the window begins.
    pub(crate) fn begin(&mut self, start: Ts) {
        self.since = start;
    }

    /// Whether work conservation is violated.
    pub(crate) fn is_violated(&self) -> bool {
        self.is_violated
    }

    /// The violated time until `now`, in nanoseconds.
    pub(crate) fn violated(&self, now: Ts) -> u64 {
        let open = if self.is_violated { now.since(self.since).0 } else { 0 };
        self.violated.saturating_add(open)
    }

    /// Whether `cpu` is one of the idle CPUs that count.
    pub(crate) fn is_idle(&self, cpu: Cpu) -> bool {
        self.gauges.get(cpu.index()).is_some_and(|gauge| gauge.membership.includes(Membership::Idle))
    }

    /// The part of the violated time in which `cpu` belonged to a set, until `now`.
    fn reading(&self, cpu: Cpu, of: Membership, now: Ts) -> u64 {
        let Some(gauge) = self.gauges.get(cpu.index()) else { return 0 };
        let closed = match of {
            Membership::Neither | Membership::Both => 0,
            Membership::Idle => gauge.idle,
            Membership::Overloaded => gauge.overloaded,
        };
        let open = if gauge.membership.includes(of) { self.violated(now).saturating_sub(gauge.base) } else { 0 };
        closed.saturating_add(open)
    }

    /// The part of the violated time in which `cpu` idled, until `now`.
    pub(crate) fn idle_reading(&self, cpu: Cpu, now: Ts) -> u64 {
        self.reading(cpu, Membership::Idle, now)
    }

    /// The part of the violated time in which each CPU idled, until `now`.
    pub(crate) fn idle_readings(&self, now: Ts) -> Vec<u64> {
        (0..self.gauges.len() as u32).map(|cpu| self.idle_reading(Cpu(cpu), now)).collect()
    }

    /// The part of the violated time of the waits of a class on `cpu`, until `now`.
    pub(crate) fn wait_reading(&self, cpu: Cpu, class: usize, now: Ts) -> u64 {
        match &self.classes {
            Some(classes) => classes.reading(cpu, class, self.violated(now)),
            None => self.reading(cpu, Membership::Overloaded, now),
        }
    }

    /// The class of a counted task that begins to wait on `cpu`: 0 where the CPUs are not known that it may use. The
    /// task counts from [`Meter::join`] on.
    pub(crate) fn class(&mut self, task: &Task, cpu: Cpu, affinity: Option<&Affinity>, state: &SchedState) -> usize {
        match (self.sets.reach_mut(), affinity) {
            (Some(reach), Some(affinity)) => reach.join(task, cpu, 1 << self.way, affinity, state),
            _ => 0,
        }
    }

    /// A counted task waits on `cpu`.
    pub(crate) fn join(&mut self, cpu: Cpu) {
        self.sets.waiter(cpu, 1 << ALL, 1);
    }

    /// A counted task no longer waits on `cpu`.
    pub(crate) fn leave(&mut self, task: TaskId, cpu: Cpu) {
        self.sets.waiter(cpu, 1 << ALL, -1);
        if let Some(reach) = self.sets.reach_mut() {
            reach.leave(task);
        }
    }

    /// Takes over the CPUs that a task may use, which a record has shown; returns its class, if it is a counted one that
    /// waits and the class is another one now. [`Meter::update`] is to follow.
    pub(crate) fn renew(&mut self, task: &Task, affinity: &Affinity, state: &SchedState) -> Option<usize> {
        self.sets.reach_mut()?.renew(task, affinity, state)
    }

    /// Sets the load of `cpu`, whose waiters have joined and left.
    pub(crate) fn settle(&mut self, cpu: Cpu, load: Load, now: Ts) {
        if self.sets.update(cpu, load) && self.classes.is_none() {
            self.turn(cpu, self.sets.membership(cpu, ALL), now);
            self.is_violated = self.sets.violation(ALL).holds();
        }
    }

    /// Brings the sets up to date where they depend on the CPUs that tasks may use, after all CPUs of an event have been
    /// settled.
    pub(crate) fn update(&mut self, now: Ts) {
        let Some(mut classes) = self.classes.take() else { return };
        if let Some(reach) = self.sets.reach() {
            for (cpu, membership) in classes.update(reach, self.way, self.violated(now)) {
                self.turn(cpu, membership, now);
            }
        }
        self.is_violated = classes.is_violated();
        self.classes = Some(classes);
    }

    /// The set of `cpu` is this from `now` on.
    fn turn(&mut self, cpu: Cpu, membership: Membership, now: Ts) {
        if cpu.index() >= self.gauges.len() {
            self.gauges.resize(cpu.index() + 1, Gauge::default());
        }
        if self.gauges[cpu.index()].membership == membership {
            return;
        }
        (self.violated, self.since) = (self.violated(now), now);
        let gauge = &mut self.gauges[cpu.index()];
        let part = self.violated.saturating_sub(gauge.base);
        if gauge.membership.includes(Membership::Idle) {
            gauge.idle = gauge.idle.saturating_add(part);
        }
        if gauge.membership.includes(Membership::Overloaded) {
            gauge.overloaded = gauge.overloaded.saturating_add(part);
        }
        (gauge.membership, gauge.base) = (membership, self.violated);
    }

    /// The nearest idle CPU that a task may use, seen from the CPU on which it is placed.
    pub(crate) fn nearest_idle(
        &self,
        task: &Task,
        cpu: Cpu,
        affinity: Option<&Affinity>,
        state: &SchedState,
    ) -> Nearest {
        match (self.sets.reach(), affinity) {
            (Some(reach), Some(affinity)) => {
                let usable = reach.usable(task, cpu, affinity, state);
                self.nearest(cpu, usable.is_empty(), usable.has(cpu), || reach.distance(cpu, &usable))
            }
            _ => self.nearest_of(Membership::Idle, cpu),
        }
    }

    /// The nearest overloaded CPU with a counted waiter that may use `cpu`.
    pub(crate) fn nearest_waiter(&self, cpu: Cpu) -> Nearest {
        match self.sets.reach() {
            Some(reach) => {
                let waiting = reach.waiting_for(cpu, self.way);
                self.nearest(cpu, waiting.is_empty(), waiting.has(cpu), || reach.distance(cpu, &waiting))
            }
            None => self.nearest_of(Membership::Overloaded, cpu),
        }
    }

    /// The nearest CPU of a set, with each waiter on any CPU.
    fn nearest_of(&self, of: Membership, cpu: Cpu) -> Nearest {
        let (is_empty, has) = (self.sets.is_empty(of, ALL), self.sets.membership(cpu, ALL).includes(of));
        self.nearest(cpu, is_empty, has, || self.sets.distance(cpu, of, ALL))
    }

    /// The nearest CPU of a set that is empty, or has `cpu`, or has others at that distance.
    fn nearest(&self, cpu: Cpu, is_empty: bool, has: bool, distance: impl FnOnce() -> Option<Distance>) -> Nearest {
        if is_empty {
            return Nearest::Nowhere;
        }
        if has {
            return Nearest::Itself;
        }
        match distance() {
            Some(Distance::Smt) => Nearest::Core,
            Some(Distance::Cluster) => Nearest::Cluster,
            Some(Distance::Llc) => Nearest::Llc,
            Some(Distance::Node) => Nearest::Node,
            _ if self.topology.place(cpu).is_some() => Nearest::Beyond,
            _ => Nearest::Somewhere,
        }
    }
}

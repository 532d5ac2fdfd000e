//! The idle and the overloaded CPUs, and the time in violation that each of them has seen.
//!
//! A wait that begins or ends must not cost more than an addition. The violated time is therefore a running sum, each CPU
//! keeps the part of it that fell into its own time in a set, and a wait or an idle stretch is the difference of two
//! readings.

use crate::affine::Affine;
use crate::nearest::Nearest;
use sched::{Cpu, Topology, Ts};

/// The set of work conservation that a CPU belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Role {
    /// In neither set.
    #[default]
    Neither,
    /// Idle, with an empty run queue.
    Idle,
    /// Running a task, with a counted waiter.
    Overloaded,
}

/// The levels of the topology at which CPUs are grouped.
const LEVELS: [Nearest; 3] = [Nearest::Core, Nearest::Llc, Nearest::Node];

/// The role of a CPU, and its readings.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    role: Role,
    /// Waiting tasks that count.
    waiters: u32,
    /// The reading of the violated time when the role began.
    base: u64,
    /// The violated time while it was overloaded, in nanoseconds.
    overloaded: u64,
    /// The violated time while it was idle, in nanoseconds.
    idle: u64,
    /// The group of the CPU at each level.
    groups: [Option<u32>; LEVELS.len()],
    /// Whether the topology has the CPU.
    placed: bool,
}

/// The number of CPUs of a group in each set.
#[derive(Clone, Copy, Debug, Default)]
struct Members {
    idle: u32,
    overloaded: u32,
}

impl Members {
    fn count(&mut self, role: Role) -> Option<&mut u32> {
        match role {
            Role::Neither => None,
            Role::Idle => Some(&mut self.idle),
            Role::Overloaded => Some(&mut self.overloaded),
        }
    }

    fn replace(&mut self, old: Role, new: Role) {
        if let Some(n) = self.count(old) {
            *n -= 1;
        }
        if let Some(n) = self.count(new) {
            *n += 1;
        }
    }

    fn of(mut self, role: Role) -> u32 {
        self.count(role).map_or(0, |n| *n)
    }
}

/// The CPUs by their role.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sets {
    places: Vec<Place>,
    all: Members,
    /// By level and group.
    groups: [Vec<Members>; LEVELS.len()],
    /// The violated time up to `since`, in nanoseconds.
    violated: u64,
    since: Ts,
    /// The waiters by the CPUs that they may use, where that is known.
    pub(crate) affine: Option<Box<Affine>>,
}

impl Sets {
    /// The CPUs of this machine, none of them in a set.
    pub(crate) fn new(topology: &Topology) -> Sets {
        let mut sets = Sets::default();
        let mut numbers: [Vec<u32>; LEVELS.len()] = Default::default();
        for cpu in topology.cpus() {
            let Some(at) = topology.place(cpu) else { continue };
            let names = [at.core, at.llc, at.node.or(at.socket)];
            let place = sets.place(cpu);
            place.placed = true;
            for ((group, name), known) in place.groups.iter_mut().zip(names).zip(&mut numbers) {
                *group = name.map(|name| {
                    let index = known.iter().position(|n| *n == name).unwrap_or_else(|| {
                        known.push(name);
                        known.len() - 1
                    });
                    index as u32
                });
            }
        }
        for (groups, numbers) in sets.groups.iter_mut().zip(numbers) {
            groups.resize(numbers.len(), Members::default());
        }
        sets
    }

    fn place(&mut self, cpu: Cpu) -> &mut Place {
        if cpu.index() >= self.places.len() {
            self.places.resize(cpu.index() + 1, Place::default());
        }
        &mut self.places[cpu.index()]
    }

    /// The time of the window begins.
    pub(crate) fn begin(&mut self, start: Ts) {
        self.since = start;
    }

    /// Whether work conservation is violated.
    pub(crate) fn are_violated(&self) -> bool {
        self.all.idle > 0 && self.all.overloaded > 0
    }

    /// The violated time until `now`, in nanoseconds.
    pub(crate) fn violated(&self, now: Ts) -> u64 {
        let open = if self.are_violated() { now.since(self.since).0 } else { 0 };
        self.violated.saturating_add(open)
    }

    /// The part of the violated time in which `cpu` had this role, until `now`.
    pub(crate) fn reading(&self, cpu: Cpu, role: Role, now: Ts) -> u64 {
        let Some(place) = self.places.get(cpu.index()) else { return 0 };
        let closed = match role {
            Role::Neither => 0,
            Role::Idle => place.idle,
            Role::Overloaded => place.overloaded,
        };
        let open = if place.role == role { self.violated(now).saturating_sub(place.base) } else { 0 };
        closed.saturating_add(open)
    }

    /// The part of the violated time of the waits of a class on `cpu`, until `now`.
    pub(crate) fn wait_reading(&self, cpu: Cpu, class: usize, now: Ts) -> u64 {
        match &self.affine {
            Some(affine) => affine.reading(cpu, class, self.violated(now)),
            None => self.reading(cpu, Role::Overloaded, now),
        }
    }

    /// Brings the sets up to date where they depend on the CPUs that tasks may use.
    pub(crate) fn update(&mut self, now: Ts) {
        let violated = self.violated(now);
        let Some(mut affine) = self.affine.take() else { return };
        for cpu in affine.update(violated) {
            let role = match (affine.idle.has(cpu), affine.overloaded.has(cpu)) {
                (true, _) => Role::Idle,
                (false, true) => Role::Overloaded,
                (false, false) => Role::Neither,
            };
            self.turn(cpu, role, now);
        }
        self.affine = Some(affine);
    }

    /// The reading of the violated time of each CPU while idle, until `now`.
    pub(crate) fn idle_readings(&self, now: Ts) -> Vec<u64> {
        (0..self.places.len() as u32).map(|cpu| self.reading(Cpu(cpu), Role::Idle, now)).collect()
    }

    /// A counted task joins (1) or leaves (-1) the queue of `cpu`.
    pub(crate) fn waiter(&mut self, cpu: Cpu, by: i32) {
        let place = self.place(cpu);
        place.waiters = place.waiters.saturating_add_signed(by);
    }

    /// The number of counted tasks in the queue of `cpu`.
    pub(crate) fn waiters(&self, cpu: Cpu) -> u32 {
        self.places.get(cpu.index()).map_or(0, |place| place.waiters)
    }

    /// `cpu` has this role from `now` on.
    pub(crate) fn turn(&mut self, cpu: Cpu, role: Role, now: Ts) {
        let old = self.place(cpu).role;
        if old == role {
            return;
        }
        let violated = self.violated(now);
        (self.violated, self.since) = (violated, now);
        let place = &mut self.places[cpu.index()];
        let part = violated.saturating_sub(place.base);
        match old {
            Role::Neither => {}
            Role::Idle => place.idle = place.idle.saturating_add(part),
            Role::Overloaded => place.overloaded = place.overloaded.saturating_add(part),
        }
        (place.role, place.base) = (role, violated);
        self.all.replace(old, role);
        for (groups, group) in self.groups.iter_mut().zip(place.groups) {
            if let Some(members) = group.and_then(|group| groups.get_mut(group as usize)) {
                members.replace(old, role);
            }
        }
    }

    /// The nearest CPU of a set, seen from `cpu`.
    pub(crate) fn nearest(&self, role: Role, cpu: Cpu) -> Nearest {
        let place = self.places.get(cpu.index()).copied().unwrap_or_default();
        if place.role == role {
            return Nearest::Itself;
        }
        if self.all.of(role) == 0 {
            return Nearest::Nowhere;
        }
        let levels = self.groups.iter().zip(place.groups).zip(LEVELS);
        for ((groups, group), nearest) in levels {
            let members = group.and_then(|group| groups.get(group as usize)).copied().unwrap_or_default();
            if members.of(role) > 0 {
                return nearest;
            }
        }
        if place.placed { Nearest::Beyond } else { Nearest::Somewhere }
    }
}

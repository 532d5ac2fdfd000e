//! The sets I and O, and how near they come, in constant time per change.

use sched::episodes::Amount;
use sched::{Cpu, Load, Topology};
use serde::Serialize;

/// How far an idle CPU is from an overloaded one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Distance {
    /// Siblings on one core.
    Smt,
    /// Under one last-level cache.
    Llc,
    /// In one NUMA node.
    Node,
    /// Across nodes.
    Machine,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Place {
    load: Load,
    waiters: u32,
}

impl Place {
    fn is_idle(self) -> bool {
        self.load == Load::Idle
    }

    fn is_overloaded(self) -> bool {
        matches!(self.load, Load::Busy | Load::Overloaded) && self.waiters > 0
    }
}

/// Groups of CPUs of one kind: how many are idle and overloaded in each.
#[derive(Clone, Debug, Default)]
struct Level {
    /// The group of each CPU.
    group: Vec<Option<usize>>,
    idle: Vec<u32>,
    overloaded: Vec<u32>,
    /// Groups that have both.
    both: u32,
}

impl Level {
    fn new(topology: &Topology, group: impl Fn(&sched::topology::Place) -> Option<u32>) -> Level {
        let mut level = Level::default();
        let mut known: Vec<u32> = Vec::new();
        for cpu in (0..Cpu::LIMIT).map(Cpu) {
            let Some(place) = topology.place(cpu) else { continue };
            let Some(name) = group(place) else { continue };
            let index = known.iter().position(|n| *n == name).unwrap_or_else(|| {
                known.push(name);
                known.len() - 1
            });
            level.group.resize(cpu.index() + 1, None);
            level.group[cpu.index()] = Some(index);
        }
        level.idle = vec![0; known.len()];
        level.overloaded = vec![0; known.len()];
        level
    }

    fn change(&mut self, cpu: Cpu, old: Place, new: Place) {
        let Some(Some(group)) = self.group.get(cpu.index()).copied() else { return };
        let both = |l: &Level| u32::from(l.idle[group] > 0 && l.overloaded[group] > 0);
        self.both -= both(self);
        self.idle[group] = self.idle[group] + u32::from(new.is_idle()) - u32::from(old.is_idle());
        self.overloaded[group] =
            self.overloaded[group] + u32::from(new.is_overloaded()) - u32::from(old.is_overloaded());
        self.both += both(self);
    }
}

/// The CPUs of one way of counting waiters.
#[derive(Clone, Debug)]
pub(crate) struct Sets {
    places: Vec<Place>,
    idle: u32,
    overloaded: u32,
    unknown: u32,
    reacting: u32,
    running: u32,
    /// Counted waiters on any CPU that takes part.
    queued: u32,
    /// Counted waiters in O.
    waiters: u32,
    levels: Option<[Level; 3]>,
}

impl Sets {
    pub(crate) fn new(topology: &Topology) -> Sets {
        let level = |f: fn(&sched::topology::Place) -> Option<u32>| Level::new(topology, f);
        let levels = (!topology.is_empty()).then(|| {
            // The core's number is unique within the machine only in lscpu's output; elsewhere the
            // reader of the topology made it so.
            [level(|p| p.core), level(|p| p.llc), level(|p| p.node.or(p.socket))]
        });
        Sets {
            places: Vec::new(),
            idle: 0,
            overloaded: 0,
            unknown: 0,
            reacting: 0,
            running: 0,
            queued: 0,
            waiters: 0,
            levels,
        }
    }

    fn update(&mut self, cpu: Cpu, change: impl FnOnce(&mut Place)) {
        if cpu.index() >= self.places.len() {
            self.places.resize(cpu.index() + 1, Place::default());
        }
        let old = self.places[cpu.index()];
        change(&mut self.places[cpu.index()]);
        let new = self.places[cpu.index()];
        if old == new {
            return;
        }
        self.idle = self.idle + u32::from(new.is_idle()) - u32::from(old.is_idle());
        self.overloaded = self.overloaded + u32::from(new.is_overloaded()) - u32::from(old.is_overloaded());
        self.unknown = self.unknown + u32::from(new.load == Load::Unknown) - u32::from(old.load == Load::Unknown);
        let of = |load: Load| u32::from(new.load == load).wrapping_sub(u32::from(old.load == load));
        self.reacting = self.reacting.wrapping_add(of(Load::Reacting));
        self.running = self.running.wrapping_add(of(Load::Busy)).wrapping_add(of(Load::Overloaded));
        let queued = |p: Place| if p.load == Load::Unobserved { 0 } else { p.waiters };
        self.queued = self.queued + queued(new) - queued(old);
        let counted = |p: Place| if p.is_overloaded() { p.waiters } else { 0 };
        self.waiters = self.waiters + counted(new) - counted(old);
        for level in self.levels.iter_mut().flatten() {
            level.change(cpu, old, new);
        }
    }

    /// So many counted waiters more, or fewer.
    pub(crate) fn waiters(&mut self, cpu: Cpu, change: i32) {
        self.update(cpu, |p| p.waiters = p.waiters.saturating_add_signed(change));
    }

    /// What a CPU is now.
    pub(crate) fn place(&mut self, cpu: Cpu, load: Load) {
        self.update(cpu, |p| p.load = load);
    }

    /// How many CPUs run a task, idle (reacting or not), and are unknown; how many counted tasks
    /// wait.
    pub(crate) fn totals(&self) -> [u32; 4] {
        [self.running, self.idle + self.reacting, self.unknown, self.queued]
    }

    /// What could have been done, if work conservation is violated.
    pub(crate) fn violation(&self) -> Option<Amount> {
        (self.idle > 0 && self.overloaded > 0)
            .then(|| Amount { capacity: self.idle.min(self.overloaded), threads: self.idle.min(self.waiters) })
    }

    /// Whether it would be, were each unknown CPU whatever makes it so.
    pub(crate) fn is_possible(&self) -> bool {
        let sides = u32::from(self.idle > 0) + u32::from(self.overloaded > 0);
        sides + self.unknown.min(2) >= 2
    }

    /// The capacity then: unknown CPUs join the smaller set as long as that helps.
    pub(crate) fn possible_capacity(&self) -> u32 {
        let (i, o, u) = (self.idle, self.overloaded, self.unknown);
        ((i + o + u) / 2).min(i + u).min(o + u)
    }

    /// The nearest pair of an idle and an overloaded CPU.
    pub(crate) fn nearest(&self) -> Option<Distance> {
        let levels = self.levels.as_ref()?;
        let near = [Distance::Smt, Distance::Llc, Distance::Node];
        Some(levels.iter().zip(near).find(|(l, _)| l.both > 0).map_or(Distance::Machine, |(_, d)| d))
    }

    fn which(&self, is: impl Fn(Place) -> bool) -> impl Iterator<Item = Cpu> {
        (0..).map(Cpu).zip(&self.places).filter(move |(_, p)| is(**p)).map(|(cpu, _)| cpu)
    }

    pub(crate) fn idle(&self) -> impl Iterator<Item = Cpu> {
        self.which(Place::is_idle)
    }

    pub(crate) fn overloaded(&self) -> impl Iterator<Item = Cpu> {
        self.which(Place::is_overloaded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sets(loads: &[(Load, u32)], topology: &str) -> Sets {
        let mut sets = Sets::new(&Topology::parse(topology).unwrap_or_default());
        for (cpu, (load, waiters)) in (0..).zip(loads) {
            sets.waiters(Cpu(cpu), *waiters as i32);
            sets.place(Cpu(cpu), *load);
        }
        sets
    }

    #[test]
    fn amounts() {
        use Load::{Idle, Overloaded, Reacting, Unknown};
        let s = sets(&[(Overloaded, 1), (Overloaded, 2), (Idle, 0), (Idle, 0), (Idle, 0), (Idle, 0)], "");
        assert_eq!(s.violation(), Some(Amount { capacity: 2, threads: 3 }));
        let s = sets(&[(Overloaded, 1), (Overloaded, 2), (Idle, 0), (Idle, 0)], "");
        assert_eq!(s.violation(), Some(Amount { capacity: 2, threads: 2 }));
        assert_eq!(sets(&[(Overloaded, 1), (Reacting, 1)], "").violation(), None);
        let s = sets(&[(Overloaded, 1), (Unknown, 0)], "");
        assert_eq!((s.violation(), s.is_possible(), s.possible_capacity()), (None, true, 1));
        assert!(!sets(&[(Unknown, 0)], "").is_possible() && sets(&[(Unknown, 0), (Unknown, 0)], "").is_possible());
        assert!(!sets(&[(Idle, 0), (Load::Busy, 0)], "").is_possible());
    }

    #[test]
    fn the_nearest_pair_decides() {
        let machine = "cpu0 core=0 smt=0 llc=0 node=0\ncpu1 core=0 smt=0 llc=0 node=0\ncpu2 smt=2 llc=0 node=0\ncpu3 smt=3 llc=3 node=0\ncpu4 smt=4 llc=4 node=1\n";
        let far = |cpu: usize| {
            let mut loads = vec![(Load::Busy, 0); 5];
            loads[0] = (Load::Overloaded, 1);
            loads[cpu] = (Load::Idle, 0);
            sets(&loads, machine).nearest()
        };
        assert_eq!([1, 2, 3, 4].map(far), [Distance::Smt, Distance::Llc, Distance::Node, Distance::Machine].map(Some));
        assert_eq!(sets(&[(Load::Idle, 0)], "").nearest(), None);
    }
}

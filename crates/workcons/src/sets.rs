//! The sets I and O, and how near they come, in constant time per change.

use sched::counted::Flags;
use sched::episodes::Amount;
use sched::topology::Distance;
use sched::{Cpu, Load, Topology};

/// The ways of counting waiters.
pub(crate) const WAYS: usize = 3;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Place {
    load: Load,
    /// Counted waiters, by way of counting.
    waiters: [u32; WAYS],
}

impl Place {
    fn is_idle(self) -> bool {
        self.load == Load::Idle
    }

    fn is_busy(self) -> bool {
        matches!(self.load, Load::Busy | Load::Overloaded)
    }

    fn is_overloaded(self, way: usize) -> bool {
        self.is_busy() & (self.waiters[way] > 0)
    }

    /// What it adds to the sums.
    fn share(self) -> Sums {
        let is = |load: Load| u32::from(self.load == load);
        let (busy, observed) = (u32::from(self.is_busy()), 1 - is(Load::Unobserved));
        Sums {
            idle: is(Load::Idle),
            unknown: is(Load::Unknown),
            reacting: is(Load::Reacting),
            running: busy,
            overloaded: self.waiters.map(|n| busy & u32::from(n > 0)),
            waiters: self.waiters.map(|n| busy * n),
            queued: observed * self.waiters[0],
        }
    }
}

/// How many CPUs are what, and how many tasks wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    idle: u32,
    unknown: u32,
    reacting: u32,
    running: u32,
    overloaded: [u32; WAYS],
    /// Counted waiters in O.
    waiters: [u32; WAYS],
    /// Waiters of any kind, on any CPU that takes part.
    queued: u32,
}

impl Sums {
    /// A CPU's share changes.
    fn change(&mut self, new: Sums, old: Sums) {
        swap(&mut self.idle, new.idle, old.idle);
        swap(&mut self.unknown, new.unknown, old.unknown);
        swap(&mut self.reacting, new.reacting, old.reacting);
        swap(&mut self.running, new.running, old.running);
        swap(&mut self.queued, new.queued, old.queued);
        for way in 0..WAYS {
            swap(&mut self.overloaded[way], new.overloaded[way], old.overloaded[way]);
            swap(&mut self.waiters[way], new.waiters[way], old.waiters[way]);
        }
    }
}

/// Moves a sum from the old part to the new.
fn swap(sum: &mut u32, new: u32, old: u32) {
    *sum = *sum + new - old;
}

/// Groups of CPUs of one kind: how many are idle and overloaded in each.
#[derive(Clone, Debug, Default)]
struct Level {
    /// The group of each CPU.
    group: Vec<Option<usize>>,
    idle: Vec<u32>,
    overloaded: Vec<[u32; WAYS]>,
    names: Vec<u32>,
    /// Groups that have both.
    both: [u32; WAYS],
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
        level.overloaded = vec![[0; WAYS]; known.len()];
        level.names = known;
        level
    }

    fn change(&mut self, cpu: Cpu, old: Place, new: Place) {
        let Some(Some(group)) = self.group.get(cpu.index()).copied() else { return };
        let before = (self.idle[group], self.overloaded[group]);
        swap(&mut self.idle[group], new.is_idle().into(), old.is_idle().into());
        for way in 0..WAYS {
            let sum = &mut self.overloaded[group][way];
            swap(sum, new.is_overloaded(way).into(), old.is_overloaded(way).into());
            let both = |idle: u32, overloaded: u32| u32::from(idle > 0 && overloaded > 0);
            swap(&mut self.both[way], both(self.idle[group], *sum), both(before.0, before.1[way]));
        }
    }
}

/// The CPUs, and how many are what for each way of counting waiters.
///
/// An event changes a CPU several times over: a task leaves its queue, another joins, its current
/// changes. So changes are gathered, and the sums follow when they are committed, in one step that
/// finds most often that nothing has changed.
#[derive(Clone, Debug)]
pub(crate) struct Sets {
    places: Vec<Place>,
    /// CPUs that changed since the last commit, as they were then.
    touched: Vec<(Cpu, Place)>,
    sums: Sums,
    levels: Option<[Level; 3]>,
}

impl Sets {
    pub(crate) fn new(topology: &Topology) -> Sets {
        let level = |f: fn(&sched::topology::Place) -> Option<u32>| Level::new(topology, f);
        let levels =
            (!topology.is_empty()).then(|| [level(|p| p.core), level(|p| p.llc), level(|p| p.node.or(p.socket))]);
        Sets { places: Vec::new(), touched: Vec::new(), sums: Sums::default(), levels }
    }

    /// A CPU that is about to change; as it was until now is kept for the commit.
    fn touch(&mut self, cpu: Cpu) -> &mut Place {
        if cpu.index() >= self.places.len() {
            self.places.resize(cpu.index() + 1, Place::default());
        }
        let place = &mut self.places[cpu.index()];
        if !self.touched.iter().any(|(touched, _)| *touched == cpu) {
            self.touched.push((cpu, *place));
        }
        place
    }

    /// A waiter that counts for these ways joins (1) or leaves (-1).
    pub(crate) fn waiter(&mut self, cpu: Cpu, ways: Flags, by: i32) {
        for (way, waiters) in self.touch(cpu).waiters.iter_mut().enumerate() {
            *waiters = waiters.saturating_add_signed(by * i32::from(ways >> way & 1));
        }
    }

    /// What a CPU is now.
    pub(crate) fn place(&mut self, cpu: Cpu, load: Load) {
        self.touch(cpu).load = load;
    }

    /// Whether anything is other than at the last commit.
    pub(crate) fn is_changed(&self) -> bool {
        self.touched.iter().any(|(cpu, old)| self.places[cpu.index()] != *old)
    }

    /// Brings the sums up to date with what was changed.
    pub(crate) fn commit(&mut self) {
        for i in 0..self.touched.len() {
            let (cpu, old) = self.touched[i];
            let new = self.places[cpu.index()];
            if new != old {
                self.change(cpu, old, new);
            }
        }
        self.touched.clear();
    }

    fn change(&mut self, cpu: Cpu, old: Place, new: Place) {
        let (is, was) = (new.share(), old.share());
        self.sums.change(is, was);
        if (is.idle, is.overloaded) != (was.idle, was.overloaded) {
            for level in self.levels.iter_mut().flatten() {
                level.change(cpu, old, new);
            }
        }
    }

    /// How many CPUs run a task, idle (reacting or not), and are unknown; how many tasks wait.
    pub(crate) fn totals(&self) -> [u32; 4] {
        let s = &self.sums;
        [s.running, s.idle + s.reacting, s.unknown, s.queued]
    }

    /// What could have been done, if work conservation is violated.
    pub(crate) fn violation(&self, way: usize) -> Option<Amount> {
        let s = &self.sums;
        (s.idle > 0 && s.overloaded[way] > 0)
            .then(|| Amount { capacity: s.idle.min(s.overloaded[way]), threads: s.idle.min(s.waiters[way]) })
    }

    /// Whether it would be, were each unknown CPU whatever makes it so.
    pub(crate) fn is_possible(&self, way: usize) -> bool {
        let sides = u32::from(self.sums.idle > 0) + u32::from(self.sums.overloaded[way] > 0);
        sides + self.sums.unknown.min(2) >= 2
    }

    /// The capacity then: unknown CPUs join the smaller set as long as that helps.
    pub(crate) fn possible_capacity(&self, way: usize) -> u32 {
        let (i, o, u) = (self.sums.idle, self.sums.overloaded[way], self.sums.unknown);
        ((i + o + u) / 2).min(i + u).min(o + u)
    }

    /// The nearest pair of an idle and an overloaded CPU.
    pub(crate) fn nearest(&self, way: usize) -> Option<Distance> {
        let levels = self.levels.as_ref()?;
        let near = [Distance::Smt, Distance::Llc, Distance::Node];
        Some(levels.iter().zip(near).find(|(l, _)| l.both[way] > 0).map_or(Distance::Machine, |(_, d)| d))
    }

    /// The nodes by name; where no topology is known all CPUs are in one.
    pub(crate) fn node_names(&self) -> Vec<String> {
        let nodes = self.levels.as_ref().map_or(&[][..], |[_, _, nodes]| &nodes.names);
        if nodes.len() < 2 {
            return vec!["machine".into()];
        }
        nodes.iter().map(|n| format!("node {n}")).collect()
    }

    /// Whether CPUs idle in a node, and whether they are overloaded there.
    pub(crate) fn in_node(&self, node: usize, way: usize) -> (bool, bool) {
        match &self.levels {
            Some([_, _, nodes]) if nodes.names.len() > 1 => (nodes.idle[node] > 0, nodes.overloaded[node][way] > 0),
            _ => (self.sums.idle > 0, self.sums.overloaded[way] > 0),
        }
    }

    fn which(&self, is: impl Fn(Place) -> bool) -> impl Iterator<Item = Cpu> {
        (0..).map(Cpu).zip(&self.places).filter(move |(_, p)| is(**p)).map(|(cpu, _)| cpu)
    }

    pub(crate) fn idle(&self) -> impl Iterator<Item = Cpu> {
        self.which(Place::is_idle)
    }

    pub(crate) fn overloaded(&self, way: usize) -> impl Iterator<Item = Cpu> {
        self.which(move |p| p.is_overloaded(way))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sets(loads: &[(Load, u32)], topology: &str) -> Sets {
        let mut sets = Sets::new(&Topology::parse(topology).unwrap_or_default());
        for (cpu, (load, waiters)) in (0..).zip(loads) {
            (0..*waiters).for_each(|_| sets.waiter(Cpu(cpu), 7, 1));
            sets.place(Cpu(cpu), *load);
        }
        sets.commit();
        sets
    }

    #[test]
    fn amounts() {
        use Load::{Idle, Overloaded, Reacting, Unknown};
        let s = sets(&[(Overloaded, 1), (Overloaded, 2), (Idle, 0), (Idle, 0), (Idle, 0), (Idle, 0)], "");
        assert_eq!(s.violation(1), Some(Amount { capacity: 2, threads: 3 }));
        let s = sets(&[(Overloaded, 1), (Overloaded, 2), (Idle, 0), (Idle, 0)], "");
        assert_eq!(s.violation(1), Some(Amount { capacity: 2, threads: 2 }));
        assert_eq!(sets(&[(Overloaded, 1), (Reacting, 1)], "").violation(1), None);
        let s = sets(&[(Overloaded, 1), (Unknown, 0)], "");
        assert_eq!((s.violation(1), s.is_possible(1), s.possible_capacity(1)), (None, true, 1));
        assert!(!sets(&[(Unknown, 0)], "").is_possible(1) && sets(&[(Unknown, 0), (Unknown, 0)], "").is_possible(1));
        assert!(!sets(&[(Idle, 0), (Load::Busy, 0)], "").is_possible(1));
    }

    #[test]
    fn the_nearest_pair_decides() {
        let machine = "cpu0 core=0 smt=0 llc=0 node=0\ncpu1 core=0 smt=0 llc=0 node=0\ncpu2 smt=2 llc=0 node=0\ncpu3 smt=3 llc=3 node=0\ncpu4 smt=4 llc=4 node=1\n";
        let far = |cpu: usize| {
            let mut loads = vec![(Load::Busy, 0); 5];
            loads[0] = (Load::Overloaded, 1);
            loads[cpu] = (Load::Idle, 0);
            sets(&loads, machine).nearest(2)
        };
        assert_eq!([1, 2, 3, 4].map(far), [Distance::Smt, Distance::Llc, Distance::Node, Distance::Machine].map(Some));
        assert_eq!(sets(&[(Load::Idle, 0)], "").nearest(2), None);
    }
}

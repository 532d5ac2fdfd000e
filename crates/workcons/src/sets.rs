//! The sets I and O, and how near they come, in constant time per change.

use crate::packed::Packed;
use crate::reach::{Pairs, Reach};
use crate::ways::WAYS;
use sched::affinity::Affinity;
use sched::counted::Flags;
use sched::episodes::Amount;
use sched::topology::Distance;
use sched::{Cpu, Load, TaskId, Topology};

/// Four numbers of tasks: waiters by way of counting; last, those of any kind.
type Waiters = Packed<32>;

impl Waiters {
    /// One waiter, for each way that counts it.
    #[inline]
    fn one(flags: Flags) -> Waiters {
        let counted = |way: usize| u32::from(flags >> way & 1);
        // The first way counts all.
        let any = Waiters::of(WAYS, counted(0));
        (0..WAYS).fold(any, |sum, way| sum.add(Waiters::of(way, counted(way))))
    }
}

/// Six numbers of CPUs by what they are: see the constants.
type Cpus = Packed<21>;
const _: () = assert!(Cpu::LIMIT < 1 << 21);

impl Cpus {
    const IDLE: usize = 0;
    const UNKNOWN: usize = 1;
    const RUNNING: usize = 2;
    /// From here on, by way of counting: those that run a task while others wait.
    const OVERLOADED: usize = 3;

    fn idle(self) -> u32 {
        self.at(Cpus::IDLE)
    }

    fn unknown(self) -> u32 {
        self.at(Cpus::UNKNOWN)
    }

    fn overloaded(self, way: usize) -> u32 {
        self.at(Cpus::OVERLOADED + way)
    }

    /// One CPU that is overloaded where these wait.
    #[inline]
    fn where_any(waiters: Waiters) -> Cpus {
        let over = |way| Cpus::of(Cpus::OVERLOADED + way, u32::from(waiters.at(way) > 0));
        (0..WAYS).fold(Cpus::ZEROS, |sum, way| sum.add(over(way)))
    }
}

/// The violation between two changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Situation {
    /// The work that could have been done.
    pub(crate) amount: Amount,
    /// How many more CPUs could have been put to work if each unknown CPU were idle or overloaded.
    pub(crate) doubt: u32,
    /// The smallest distance of an idle and an overloaded CPU, if there is a violation and the topology is known.
    pub(crate) nearest: Option<Distance>,
}

/// How many CPUs are what, and how many tasks wait: of all, or what one adds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    cpus: Cpus,
    /// By way of counting, those on CPUs that run a task; last, those of any kind on any CPU that takes part.
    waiters: Waiters,
}

impl Sums {
    fn add(&self, other: &Sums) -> Sums {
        Sums { cpus: self.cpus.add(other.cpus), waiters: self.waiters.add(other.waiters) }
    }

    fn less(&self, other: &Sums) -> Sums {
        Sums { cpus: self.cpus.less(other.cpus), waiters: self.waiters.less(other.waiters) }
    }
}

/// A CPU.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    load: Load,
    /// Counted waiters.
    waiters: Waiters,
    /// Its contribution to the sums when they were last brought up to date.
    share: Sums,
}

/// The contribution of a CPU with a load to the sums: itself, whether it is overloaded if tasks wait, and which of these count.
#[derive(Clone, Copy, Debug)]
struct Role {
    cpus: Cpus,
    overloaded: Cpus,
    waiters: Waiters,
}

impl Role {
    /// By load.
    const ALL: [Role; 7] = {
        let none = Role { cpus: Cpus::ZEROS, overloaded: Cpus::ZEROS, waiters: Waiters::ZEROS };
        let any = Role { waiters: Waiters::of(WAYS, u32::MAX), ..none };
        let runs = Role { cpus: Cpus::of(Cpus::RUNNING, 1), overloaded: Cpus::ALL, waiters: Waiters::ALL };
        let mut all = [none; 7];
        all[Load::Unknown as usize] = Role { cpus: Cpus::of(Cpus::UNKNOWN, 1), ..any };
        all[Load::Idle as usize] = Role { cpus: Cpus::of(Cpus::IDLE, 1), ..any };
        all[Load::Reacting as usize] = any;
        all[Load::Busy as usize] = runs;
        all[Load::Overloaded as usize] = runs;
        all
    };
}

impl Place {
    /// Its contribution to the sums.
    #[inline]
    fn share(&self) -> Sums {
        let role = &Role::ALL[self.load as usize];
        let overloaded = Cpus::where_any(self.waiters).and(role.overloaded);
        Sums { cpus: role.cpus.add(overloaded), waiters: self.waiters.and(role.waiters) }
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
    fn new(topology: &Topology, group: impl Fn(&sched::topology::CpuLocation) -> Option<u32>) -> Level {
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

    fn change(&mut self, cpu: Cpu, old: Cpus, new: Cpus) {
        let Some(Some(group)) = self.group.get(cpu.index()).copied() else { return };
        let before = (self.idle[group], self.overloaded[group]);
        swap(&mut self.idle[group], new.idle(), old.idle());
        for way in 0..WAYS {
            let sum = &mut self.overloaded[group][way];
            swap(sum, new.overloaded(way), old.overloaded(way));
            let both = |idle: u32, overloaded: u32| u32::from(idle > 0 && overloaded > 0);
            swap(&mut self.both[way], both(self.idle[group], *sum), both(before.0, before.1[way]));
        }
    }
}

/// The CPUs, and how many are what for each way of counting waiters.
///
/// An event changes a CPU several times over: a task leaves its queue, another joins, its current
/// changes. [`Sets::settle`] finds what that comes to; the sums follow with [`Sets::commit`], once the time until
/// then has been accounted for.
#[derive(Clone, Debug)]
pub(crate) struct Sets {
    places: Vec<Place>,
    sums: Sums,
    levels: Option<[Level; 3]>,
    /// The waiters by the CPUs that they may use, where that is known.
    pub(crate) reach: Option<Box<Reach>>,
    /// The situation is described by its amount alone, and that by the sums.
    bare: bool,
}

/// By how much what a CPU adds to the sums changes them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change(Sums);

impl Sets {
    pub(crate) fn new(topology: &Topology, affinity: Option<&Affinity>) -> Sets {
        let level = |f: fn(&sched::topology::CpuLocation) -> Option<u32>| Level::new(topology, f);
        let levels =
            (!topology.is_empty()).then(|| [level(|p| p.core), level(|p| p.llc), level(|p| p.node.or(p.socket))]);
        let reach = affinity.map(|_| Box::new(Reach::new(topology)));
        let bare = levels.is_none() && reach.is_none();
        Sets { places: Vec::new(), sums: Sums::default(), levels, reach, bare }
    }

    #[inline(always)]
    fn place(&mut self, cpu: Cpu) -> &mut Place {
        if cpu.index() >= self.places.len() {
            self.grow(cpu);
        }
        &mut self.places[cpu.index()]
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, cpu: Cpu) {
        self.places.resize(cpu.index() + 1, Place::default());
    }

    /// A waiter that counts for these ways joins (1) or leaves (-1).
    #[inline(always)]
    pub(crate) fn waiter(&mut self, cpu: Cpu, ways: Flags, by: i32) {
        let place = self.place(cpu);
        let one = Waiters::one(ways);
        place.waiters = if by < 0 { place.waiters.less(one) } else { place.waiters.add(one) };
    }

    /// The CPU is this now, and its waiters have come and gone; returns what it was, and by how much that changes the
    /// sums, if it does. Where waiters are distinguished by the CPUs that they may use, a change that the sums do not show
    /// counts as well.
    #[inline(always)]
    pub(crate) fn settle(&mut self, cpu: Cpu, load: Load) -> (Load, Option<Change>) {
        let place = self.place(cpu);
        let was = std::mem::replace(&mut place.load, load);
        let new = place.share();
        let change = new.less(&std::mem::replace(&mut place.share, new));
        if let Some(reach) = &mut self.reach {
            reach.settle(cpu, load);
        }
        (was, (change != Sums::default() || self.reach.is_some()).then_some(Change(change)))
    }

    /// Brings the sums up to date with the changes.
    #[inline(always)]
    pub(crate) fn commit(&mut self, cpu: Cpu, change: &Change) {
        let Change(change) = change;
        self.sums = self.sums.add(change);
        if self.levels.is_some() && change.cpus != Cpus::ZEROS {
            self.change_levels(cpu, change.cpus);
        }
    }

    #[inline(never)]
    fn change_levels(&mut self, cpu: Cpu, change: Cpus) {
        let new = self.place(cpu).share.cpus;
        let old = new.less(change);
        self.levels.iter_mut().flatten().for_each(|level| level.change(cpu, old, new));
    }

    /// How many CPUs run a task, and are unknown; how many tasks wait.
    pub(crate) fn totals(&self) -> [u32; 3] {
        [self.sums.cpus.at(Cpus::RUNNING), self.sums.cpus.unknown(), self.sums.waiters.at(WAYS)]
    }

    /// The possible remedies: none where work conservation is not violated.
    pub(crate) fn violation(&self, way: usize) -> Amount {
        match &self.reach {
            // Most of the time there is nothing to look for.
            Some(reach) if self.sum_of(way).holds() => {
                reach.pairs(way).map_or_else(|| self.sum_of(way), |pairs| pairs.amount())
            }
            _ => self.sum_of(way),
        }
    }

    /// The same with each waiter on any CPU.
    #[inline(always)]
    fn sum_of(&self, way: usize) -> Amount {
        let idle = self.sums.cpus.idle();
        // Where no CPU is overloaded no waiters are counted either.
        Amount { capacity: idle.min(self.sums.cpus.overloaded(way)), threads: idle.min(self.sums.waiters.at(way)) }
    }

    /// Whether nothing is violated, nor may be, for every way of counting.
    pub(crate) fn are_quiet(&self) -> bool {
        // The first way counts all.
        self.sums.cpus.unknown() == 0 && (self.sums.cpus.idle() == 0 || self.sums.waiters.at(0) == 0)
    }

    /// Whether the current situation is described by its amount alone.
    pub(crate) fn are_bare(&self) -> bool {
        self.sums.cpus.unknown() == 0 && self.bare
    }

    /// The amount of a bare situation.
    #[inline(always)]
    pub(crate) fn bare_violation(&self, way: usize) -> Amount {
        self.sum_of(way)
    }

    /// The current situation, for a way of counting.
    #[inline(always)]
    pub(crate) fn situation(&self, way: usize) -> Situation {
        let amount = self.violation(way);
        // In a trace that lost nothing there is none.
        let doubt = if self.sums.cpus.unknown() > 0 { self.possible_capacity(way) - amount.capacity } else { 0 };
        let nearest = if self.levels.is_some() && amount.holds() { self.nearest(way) } else { None };
        Situation { amount, doubt, nearest }
    }

    /// Whether it would be, were each unknown CPU whatever makes it so.
    pub(crate) fn is_possible(&self, way: usize) -> bool {
        self.possible_capacity(way) > 0
    }

    /// The capacity then: unknown CPUs join the smaller set as long as that helps.
    fn possible_capacity(&self, way: usize) -> u32 {
        let (i, o, u) = (self.sums.cpus.idle(), self.sums.cpus.overloaded(way), self.sums.cpus.unknown());
        ((i + o + u) / 2).min(i + u).min(o + u)
    }

    /// The nearest pair of an idle and an overloaded CPU.
    fn nearest(&self, way: usize) -> Option<Distance> {
        if let Some(reach) = self.reach.as_ref().filter(|_| way > 0) {
            return reach.nearest(way);
        }
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
            Some([_, _, nodes]) if nodes.names.len() > 1 && self.reach.is_some() => {
                let reached = self.reach.as_ref().and_then(|reach| reach.in_node(nodes.names[node], way));
                reached.unwrap_or((nodes.idle[node] > 0, nodes.overloaded[node][way] > 0))
            }
            Some([_, _, nodes]) if nodes.names.len() > 1 => (nodes.idle[node] > 0, nodes.overloaded[node][way] > 0),
            _ => (self.sums.cpus.idle() > 0, self.sums.cpus.overloaded(way) > 0),
        }
    }

    fn which(&self, is: impl Fn(Cpus) -> bool) -> impl Iterator<Item = Cpu> {
        (0..).map(Cpu).zip(&self.places).filter(move |(_, p)| is(p.share.cpus)).map(|(cpu, _)| cpu)
    }

    /// The idle and the overloaded CPUs that make the violation.
    pub(crate) fn cpus(&self, way: usize) -> (Vec<Cpu>, Vec<Cpu>) {
        match self.reach.as_ref().and_then(|reach| reach.pairs(way)) {
            Some(Pairs { idle, overloaded, .. }) => (idle.cpus().collect(), overloaded.cpus().collect()),
            None => {
                let overloaded = self.which(move |cpus| cpus.overloaded(way) > 0);
                (self.which(|cpus| cpus.idle() > 0).collect(), overloaded.collect())
            }
        }
    }

    /// Whether a waiter may run on an idle CPU; any waiter may whose affinity is not known.
    pub(crate) fn may_run(&self, task: TaskId, way: usize) -> bool {
        self.reach.as_ref().is_none_or(|reach| reach.may_run(task, way))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sets(loads: &[(Load, u32)], topology: &str) -> Sets {
        let mut sets = Sets::new(&Topology::parse(topology).unwrap_or_default(), None);
        for (cpu, (load, waiters)) in (0..).zip(loads) {
            (0..*waiters).for_each(|_| sets.waiter(Cpu(cpu), 7, 1));
            let (_, change) = sets.settle(Cpu(cpu), *load);
            change.iter().for_each(|change| sets.commit(Cpu(cpu), change));
        }
        sets
    }

    #[test]
    fn amounts() {
        use Load::{Idle, Overloaded, Reacting, Unknown};
        let s = sets(&[(Overloaded, 1), (Overloaded, 2), (Idle, 0), (Idle, 0), (Idle, 0), (Idle, 0)], "");
        assert_eq!(s.violation(1), Amount { capacity: 2, threads: 3 });
        let s = sets(&[(Overloaded, 1), (Overloaded, 2), (Idle, 0), (Idle, 0)], "");
        assert_eq!(s.violation(1), Amount { capacity: 2, threads: 2 });
        assert_eq!(sets(&[(Overloaded, 1), (Reacting, 1)], "").violation(1), Amount::default());
        let s = sets(&[(Overloaded, 1), (Unknown, 0)], "");
        assert_eq!((s.violation(1).holds(), s.is_possible(1), s.possible_capacity(1)), (false, true, 1));
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

//! The sets I and O, and how near they come, in constant time per change.

use super::levels::{LEVELS, LevelGroups};
use super::membership::Membership;
use super::reach::{Pairs, Reach};
use super::sums::{CpuShare, PackedCpus, PackedWaiters, SetSums};
use super::ways::{ALL, WAYS};
use sched::affinity::Affinity;
use sched::counted::Flags;
use sched::episodes::Amount;
use sched::topology::Distance;
use sched::{Cpu, Load, TaskId, Topology};
use std::sync::Arc;

/// The violation between two changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Situation {
    /// The work that could have been done.
    pub(crate) amount: Amount,
    /// The number of further CPUs that could have been put to work if each unknown CPU were idle or overloaded.
    pub(crate) doubt: u32,
    /// The smallest distance of an idle and an overloaded CPU, if there is a violation and the topology is known.
    pub(crate) nearest: Option<Distance>,
}

/// Moves a sum from the old part to the new.
fn swap(sum: &mut u32, new: u32, old: u32) {
    *sum = *sum + new - old;
}

/// The numbers of idle and of overloaded CPUs in each group at one level of the topology.
#[derive(Clone, Debug)]
struct LevelSums {
    /// The number of idle CPUs in each group.
    idle: Vec<u32>,
    /// The number of overloaded CPUs in each group, for each way of counting.
    overloaded: Vec<[u32; WAYS]>,
    /// The number of groups that have both, for each way of counting.
    both: [u32; WAYS],
}

impl LevelSums {
    fn new(groups: &LevelGroups) -> LevelSums {
        let number = groups.names.len();
        LevelSums { idle: vec![0; number], overloaded: vec![[0; WAYS]; number], both: [0; WAYS] }
    }

    fn change(&mut self, group: usize, old: PackedCpus, new: PackedCpus) {
        let before = (self.idle[group], self.overloaded[group]);
        swap(&mut self.idle[group], new.idle(), old.idle());
        for way in 0..WAYS {
            let sum = &mut self.overloaded[group][way];
            swap(sum, new.overloaded(way), old.overloaded(way));
            let both = |idle: u32, overloaded: u32| u32::from(idle > 0 && overloaded > 0);
            swap(&mut self.both[way], both(self.idle[group], *sum), both(before.0, before.1[way]));
        }
    }

    /// Whether a group has a CPU of a set.
    fn has(&self, group: usize, of: Membership, way: usize) -> bool {
        let number = match of {
            Membership::Neither => 0,
            Membership::Idle => self.idle[group],
            Membership::Overloaded => self.overloaded[group][way],
            Membership::Both => self.idle[group].min(self.overloaded[group][way]),
        };
        number > 0
    }
}

/// The groups at all levels, and their sums.
#[derive(Clone, Debug)]
struct Levels {
    groups: Arc<[LevelGroups; LEVELS.len()]>,
    sums: [LevelSums; LEVELS.len()],
}

/// Maximum number of nodes that have a strip of their own: a topology can name thousands, each of which would be looked at for each
/// change.
const MOST_NODES: usize = 256;

/// The CPUs by the set that they belong to, for each way of counting waiters.
///
/// An event changes a CPU several times over: a task leaves its queue, another joins, its current
/// changes. [`Sets::settle`] finds what that comes to; the sums follow with [`Sets::commit`], once the time until
/// then has been accounted for.
#[derive(Clone, Debug)]
pub struct Sets {
    cpus: Vec<CpuShare>,
    sums: SetSums,
    levels: Option<Levels>,
    /// The waiters by the CPUs that they may use, where that is known.
    reach: Option<Box<Reach>>,
    /// The situation is described by its amount alone, and that by the sums.
    bare: bool,
}

/// The change of the sums by a CPU that was settled.
#[derive(Clone, Copy, Debug)]
pub struct SetChange(SetSums);

impl Sets {
    /// Returns empty sets without waiters. With an affinity each waiter is also to be passed to [`Sets::reach_mut`].
    pub fn new(topology: &Topology, affinity: Option<&Affinity>) -> Sets {
        let groups = LevelGroups::of_levels(topology).map(Arc::new);
        let reach = affinity.map(|_| Box::new(Reach::new(groups.clone())));
        let levels = groups.map(|groups| Levels { sums: groups.each_ref().map(LevelSums::new), groups });
        let bare = levels.is_none() && reach.is_none();
        Sets { cpus: Vec::new(), sums: SetSums::default(), levels, reach, bare }
    }

    /// The waiters by the CPUs that they may use, where that is known.
    pub fn reach(&self) -> Option<&Reach> {
        self.reach.as_deref()
    }

    /// The waiters by the CPUs that they may use, to be changed as tasks begin and end to wait.
    pub fn reach_mut(&mut self) -> Option<&mut Reach> {
        self.reach.as_deref_mut()
    }

    #[inline(always)]
    fn cpu(&mut self, cpu: Cpu) -> &mut CpuShare {
        if cpu.index() >= self.cpus.len() {
            self.grow(cpu);
        }
        &mut self.cpus[cpu.index()]
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, cpu: Cpu) {
        self.cpus.resize(cpu.index() + 1, CpuShare::default());
    }

    /// A waiter that counts for these ways joins (1) or leaves (-1) the queue of a CPU, which is to be settled then.
    #[inline(always)]
    pub fn waiter(&mut self, cpu: Cpu, ways: Flags, by: i32) {
        let cpu = self.cpu(cpu);
        let one = PackedWaiters::one(ways);
        cpu.waiters = if by < 0 { cpu.waiters.less(one) } else { cpu.waiters.add(one) };
    }

    /// The number of waiters on a CPU that count, whatever its load.
    #[inline]
    pub fn waiters(&self, cpu: Cpu, way: usize) -> u32 {
        self.cpus.get(cpu.index()).map_or(0, |cpu| cpu.waiters.at(way))
    }

    /// Sets the load of a CPU, whose waiters have come and gone; returns its old load, and the change of the sums, if
    /// there is one. Where waiters are distinguished by the CPUs that they may use, a change that the sums do not show
    /// counts as well.
    #[inline(always)]
    pub fn settle(&mut self, cpu: Cpu, load: Load) -> (Load, Option<SetChange>) {
        let share = self.cpu(cpu);
        let was = std::mem::replace(&mut share.load, load);
        let new = share.present();
        let change = new.less(&std::mem::replace(&mut share.share, new));
        if let Some(reach) = &mut self.reach {
            reach.settle(cpu, load);
        }
        (was, (change != SetSums::default() || self.reach.is_some()).then_some(SetChange(change)))
    }

    /// Brings the sums up to date with the change that [`Sets::settle`] returned for a CPU.
    #[inline(always)]
    pub fn commit(&mut self, cpu: Cpu, change: &SetChange) {
        let SetChange(change) = change;
        self.sums = self.sums.add(change);
        if self.levels.is_some() && change.cpus != PackedCpus::ZEROS {
            self.change_levels(cpu, change.cpus);
        }
    }

    /// Settles a CPU and brings the sums up to date; returns whether they changed.
    #[inline]
    pub fn update(&mut self, cpu: Cpu, load: Load) -> bool {
        let (_, change) = self.settle(cpu, load);
        change.inspect(|change| self.commit(cpu, change)).is_some()
    }

    #[inline(never)]
    fn change_levels(&mut self, cpu: Cpu, change: PackedCpus) {
        let new = self.cpu(cpu).share.cpus;
        let old = new.less(change);
        let Some(Levels { groups, sums }) = &mut self.levels else { return };
        for (groups, sums) in groups.iter().zip(sums) {
            if let Some(group) = groups.group(cpu) {
                sums.change(group, old, new);
            }
        }
    }

    /// The numbers of CPUs that run a task and that are unknown, and the number of waiting tasks.
    pub(crate) fn totals(&self) -> [u32; 3] {
        [self.sums.cpus.running(), self.sums.cpus.unknown(), self.sums.waiters.at(WAYS)]
    }

    /// The set that a CPU belongs to, with each waiter on any CPU; [`Reach::pairs`] has the sets where tasks may not use
    /// every CPU.
    #[inline]
    pub fn membership(&self, cpu: Cpu, way: usize) -> Membership {
        let cpus = self.cpus.get(cpu.index()).map_or(PackedCpus::ZEROS, |cpu| cpu.share.cpus);
        Membership::of(cpus.idle() > 0, cpus.overloaded(way) > 0)
    }

    /// Whether no CPU belongs to a set, with each waiter on any CPU.
    pub fn is_empty(&self, of: Membership, way: usize) -> bool {
        match of {
            Membership::Neither => true,
            Membership::Idle => self.sums.cpus.idle() == 0,
            Membership::Overloaded => self.sums.cpus.overloaded(way) == 0,
            Membership::Both => !self.cpus.iter().any(|cpu| cpu.load == Load::Unserved),
        }
    }

    /// The smallest distance between a CPU and another one of a set that is not empty, with each waiter on any CPU; nothing
    /// without a topology.
    pub fn distance(&self, cpu: Cpu, of: Membership, way: usize) -> Option<Distance> {
        let Levels { groups, sums } = self.levels.as_ref()?;
        let mut levels = groups.iter().zip(sums).zip(LEVELS);
        let has =
            |groups: &LevelGroups, sums: &LevelSums| groups.group(cpu).is_some_and(|group| sums.has(group, of, way));
        let nearest = levels.find(|((groups, sums), _)| has(groups, sums));
        Some(nearest.map_or(Distance::Machine, |(_, distance)| distance))
    }

    /// The possible remedies: none where work conservation is not violated.
    #[inline]
    pub fn violation(&self, way: usize) -> Amount {
        match &self.reach {
            // Most of the time there is nothing to look for.
            Some(reach) if self.sum_of(way).holds() => {
                reach.pairs(way).map_or_else(|| self.sum_of(way), |pairs| pairs.amount())
            }
            _ => self.sum_of(way),
        }
    }

    /// The possible remedies with each waiter on any CPU.
    #[inline(always)]
    fn sum_of(&self, way: usize) -> Amount {
        let cpus = self.sums.cpus;
        // Where no CPU is overloaded no waiters are counted either.
        Amount::of_violation(cpus.idle(), cpus.overloaded(way), self.sums.waiters.at(way))
    }
    /// Whether nothing is violated, nor may be, for every way of counting.
    pub(crate) fn are_quiet(&self) -> bool {
        // Way 0 counts all waiters, so the other ways find none either.
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
        // Only an unknown CPU leaves a doubt.
        let doubt = if self.sums.cpus.unknown() > 0 { self.possible_cpus(way) - amount.cpus } else { 0 };
        let nearest = if self.levels.is_some() && amount.holds() { self.nearest(way) } else { None };
        Situation { amount, doubt, nearest }
    }

    /// Whether a violation is possible for some state of the unknown CPUs.
    pub(crate) fn is_possible(&self, way: usize) -> bool {
        self.possible_cpus(way) > 0
    }

    /// The largest possible number of CPUs that could be put to work: unknown CPUs join the smaller set as long as that helps.
    fn possible_cpus(&self, way: usize) -> u32 {
        let (i, o, u) = (self.sums.cpus.idle(), self.sums.cpus.overloaded(way), self.sums.cpus.unknown());
        ((i + o + u) / 2).min(i + u).min(o + u)
    }

    /// The nearest pair of an idle and an overloaded CPU.
    fn nearest(&self, way: usize) -> Option<Distance> {
        if let Some(reach) = self.reach.as_ref().filter(|_| way != ALL) {
            return reach.nearest(way);
        }
        let Levels { sums, .. } = self.levels.as_ref()?;
        Some(sums.iter().zip(LEVELS).find(|(l, _)| l.both[way] > 0).map_or(Distance::Machine, |(_, d)| d))
    }

    /// The nodes that have a strip of their own; none where all CPUs are in one, or there are too many.
    fn nodes(&self) -> Option<(&LevelGroups, &LevelSums)> {
        let Levels { groups: groups_of, sums: [.., sums] } = self.levels.as_ref()?;
        let groups = groups_of.last()?;
        (2..=MOST_NODES).contains(&groups.names.len()).then_some((groups, sums))
    }

    /// The nodes by name; where no topology is known, or there are too many nodes, all CPUs are in one.
    pub(crate) fn node_names(&self) -> Vec<String> {
        match self.nodes() {
            Some((groups, _)) => groups.names.iter().map(|node| format!("node {node}")).collect(),
            None => vec!["machine".into()],
        }
    }

    /// Whether CPUs idle in each node with a strip, and whether CPUs are overloaded there.
    pub(crate) fn in_nodes(&self, way: usize) -> impl Iterator<Item = (bool, bool)> {
        let machine = (self.sums.cpus.idle() > 0, self.sums.cpus.overloaded(way) > 0);
        let nodes = self.nodes();
        let reached = nodes.and(self.reach.as_ref()).and_then(|reach| Some((reach, reach.pairs(way)?)));
        (0..nodes.map_or(1, |(groups, _)| groups.names.len())).map(move |node| {
            let Some((_, sums)) = nodes else { return machine };
            let reached = reached.as_ref().and_then(|(reach, pairs)| reach.in_node(node, pairs));
            reached.unwrap_or((sums.idle[node] > 0, sums.overloaded[node][way] > 0))
        })
    }

    fn which(&self, is: impl Fn(PackedCpus) -> bool) -> impl Iterator<Item = Cpu> {
        (0..).map(Cpu).zip(&self.cpus).filter(move |(_, cpu)| is(cpu.share.cpus)).map(|(cpu, _)| cpu)
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
            sets.update(Cpu(cpu), *load);
        }
        sets
    }

    #[test]
    fn thousands_of_nodes_have_one_strip() {
        let with = |nodes: u32| {
            let topology: String = (0..nodes).map(|cpu| format!("cpu{cpu} node={cpu}\n")).collect();
            sets(&[(Load::Idle, 0), (Load::Overloaded, 1)], &topology)
        };
        let (few, many) = (with(MOST_NODES as u32), with(MOST_NODES as u32 + 1));
        assert_eq!((few.node_names().len(), many.node_names()), (MOST_NODES, vec!["machine".to_owned()]));
        assert_eq!(few.in_nodes(ALL).take(3).collect::<Vec<_>>(), [(true, false), (false, true), (false, false)]);
        assert_eq!(many.in_nodes(ALL).collect::<Vec<_>>(), [(true, true)]);
    }

    #[test]
    fn amounts() {
        use Load::{Idle, Overloaded, SwitchPending, Unknown};
        let s = sets(&[(Overloaded, 1), (Overloaded, 2), (Idle, 0), (Idle, 0), (Idle, 0), (Idle, 0)], "");
        assert_eq!(s.violation(1), Amount { cpus: 2, threads: 3 });
        let s = sets(&[(Overloaded, 1), (Overloaded, 2), (Idle, 0), (Idle, 0)], "");
        assert_eq!(s.violation(1), Amount { cpus: 2, threads: 2 });
        assert_eq!(sets(&[(Overloaded, 1), (SwitchPending, 1)], "").violation(1), Amount::default());
        let s = sets(&[(Overloaded, 1), (Unknown, 0)], "");
        assert_eq!((s.violation(1).holds(), s.is_possible(1), s.possible_cpus(1)), (false, true, 1));
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
        let clusters =
            "cpu0 smt=0 cluster=0-1 llc=0 node=0\ncpu1 smt=1 cluster=0-1 llc=0 node=0\ncpu2 smt=2 llc=0 node=0\n";
        let near = |loads: [(Load, u32); 3]| sets(&loads, clusters).nearest(2);
        assert_eq!(near([(Load::Overloaded, 1), (Load::Idle, 0), (Load::Idle, 0)]), Some(Distance::Cluster));
        assert_eq!(near([(Load::Overloaded, 1), (Load::Busy, 0), (Load::Idle, 0)]), Some(Distance::Llc));
    }
}

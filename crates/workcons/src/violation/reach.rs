//! The sets I and O where the CPUs are known that tasks may use: a waiter that may use no idle CPU is no violation, and
//! an idle CPU that no waiter may use is none of I.
//!
//! Waiters are grouped by the CPUs that they may use. There are few such classes, so that sets of CPUs as bits answer for
//! all waiters of a class at once. Nothing of this is kept where no list of CPUs restricts a task, and no record can.

use super::levels::{LEVELS, LevelGroups};
use super::membership::Membership;
use super::ways::{ALL, WAYS};
use sched::counted::Flags;
use sched::episodes::Amount;
use sched::topology::Distance;
use sched::{Affinity, Cpu, CpuSet, Load, SchedState, Task, TaskId, TaskState};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The waiters that may use the same CPUs.
#[derive(Clone, Debug, Default)]
struct WaiterClass {
    /// The CPUs that they may use; nothing if they are not restricted.
    allowed: Option<CpuSet>,
    /// The CPUs that the waiters wait on, for each way of counting.
    on: [CpuSet; WAYS],
    /// The number of the waiters on each CPU in each way of counting.
    numbers: BTreeMap<Cpu, [u32; WAYS]>,
}

impl WaiterClass {
    fn change(&mut self, cpu: Cpu, ways: Flags, by: i32) {
        let numbers = self.numbers.entry(cpu).or_default();
        for (way, number) in numbers.iter_mut().enumerate().filter(|(way, _)| ways >> way & 1 == 1) {
            *number = number.saturating_add_signed(by);
            self.on[way].set(cpu, *number > 0);
        }
        if *numbers == [0; WAYS] {
            self.numbers.remove(&cpu);
        }
    }

    /// The idle CPUs that its waiters may use.
    fn usable(&self, idle: &CpuSet) -> CpuSet {
        self.allowed.as_ref().map_or_else(|| idle.clone(), |allowed| idle.and(allowed))
    }
}

/// The CPUs of I and O that concern one another.
#[derive(Clone, Debug, Default)]
pub struct Pairs {
    /// The idle CPUs that some waiter may use.
    pub idle: CpuSet,
    /// The CPUs on which a waiter may use one of them.
    pub overloaded: CpuSet,
    /// The number of those waiters.
    waiters: u32,
}

impl Pairs {
    /// The set that a CPU belongs to.
    pub fn membership(&self, cpu: Cpu) -> Membership {
        Membership::of(self.idle.has(cpu), self.overloaded.has(cpu))
    }

    /// The work that could have been done.
    pub fn amount(&self) -> Amount {
        Amount::of_violation(self.idle.len(), self.overloaded.len(), self.waiters)
    }
}

/// The waiters by the CPUs that they may use.
#[derive(Clone, Debug)]
pub struct Reach {
    idle: CpuSet,
    /// The CPUs whose waiting tasks could run elsewhere.
    busy: CpuSet,
    /// The class without a restriction first, then one for each set of the affinity, as far as tasks waited with it.
    classes: Vec<WaiterClass>,
    /// The classes that have waiters.
    present: BTreeSet<usize>,
    /// The CPU that each waiting task waits on, its class, and the ways that count it; indexed by task.
    waits: Vec<Option<(Cpu, usize, Flags)>>,
    /// SMT siblings, clusters, last-level caches, nodes; nothing without a topology.
    levels: Option<Arc<[LevelGroups; LEVELS.len()]>>,
}

impl Reach {
    /// Returns a state without waiters in which no load of a CPU is known.
    pub(super) fn new(levels: Option<Arc<[LevelGroups; LEVELS.len()]>>) -> Reach {
        Reach {
            idle: CpuSet::default(),
            busy: CpuSet::default(),
            classes: vec![WaiterClass::default()],
            present: BTreeSet::new(),
            waits: Vec::new(),
            levels,
        }
    }

    /// Whether another one, made by the same affinity in the same pass, has the same waiters and the same CPUs.
    pub fn has_same(&self, other: &Reach) -> bool {
        let (short, long) = match self.waits.len() < other.waits.len() {
            true => (&self.waits, &other.waits),
            false => (&other.waits, &self.waits),
        };
        self.idle == other.idle
            && self.busy == other.busy
            && short[..] == long[..short.len()]
            && long[short.len()..].iter().all(Option::is_none)
    }

    /// A CPU has this load from now on.
    pub fn settle(&mut self, cpu: Cpu, load: Load) {
        self.idle.set(cpu, load.is_idle());
        self.busy.set(cpu, load.runs() || load == Load::Unserved);
    }

    /// A task begins to wait on a CPU; returns its class.
    pub fn join(&mut self, task: &Task, cpu: Cpu, ways: Flags, affinity: &Affinity, state: &SchedState) -> usize {
        let class = self.class(task, cpu, affinity, state);
        let index = task.id().index();
        if index >= self.waits.len() {
            self.waits.resize(index + 1, None);
        }
        self.leave(task.id());
        self.waits[index] = Some((cpu, class, ways));
        self.change(class, cpu, ways, 1);
        class
    }

    /// The class of a task that waits on a CPU: 0 if it is not restricted.
    fn class(&mut self, task: &Task, cpu: Cpu, affinity: &Affinity, state: &SchedState) -> usize {
        let Some(id) = affinity.of(task, cpu, state) else { return 0 };
        let class = 1 + id.index();
        if class >= self.classes.len() {
            self.classes.resize_with(class + 1, WaiterClass::default);
        }
        let allowed = &mut self.classes[class].allowed;
        if allowed.is_none() {
            *allowed = affinity.set(id, state).cloned();
        }
        class
    }

    /// A record shows the CPUs that a task may use; returns its class, if it waits and its class is another one by now.
    pub fn renew(&mut self, task: &Task, affinity: &Affinity, state: &SchedState) -> Option<usize> {
        let (cpu, class, ways) = self.waits.get(task.id().index()).copied().flatten()?;
        let is_other = self.class(task, cpu, affinity, state) != class;
        is_other.then(|| self.join(task, cpu, ways, affinity, state))
    }

    /// A task no longer waits where it did.
    pub fn leave(&mut self, task: TaskId) {
        if let Some((cpu, class, ways)) = self.waits.get_mut(task.index()).and_then(Option::take) {
            self.change(class, cpu, ways, -1);
        }
    }

    fn change(&mut self, class: usize, cpu: Cpu, ways: Flags, by: i32) {
        self.classes[class].change(cpu, ways, by);
        if self.classes[class].numbers.is_empty() {
            self.present.remove(&class);
        } else {
            self.present.insert(class);
        }
    }

    /// Brings the waiters up to date with the event that the state applied last.
    pub fn follow(&mut self, state: &SchedState, affinity: &Affinity, flags: impl Fn(&Task, Cpu) -> Flags) {
        for span in state.spans() {
            if let TaskState::Waiting(_) = span.state {
                self.leave(span.task);
            }
            if let TaskState::Waiting(cpu) = span.next
                && let Some(task) = state.task(span.task)
            {
                self.join(task, cpu, flags(task, cpu), affinity, state);
            }
        }
    }

    /// The class of a task by the CPUs that it may use, while it waits; 0 where it is not restricted.
    pub(crate) fn class_of(&self, task: TaskId) -> usize {
        self.waits.get(task.index()).copied().flatten().map_or(0, |(_, class, _)| class)
    }

    /// Whether a task waits on a CPU that may use every CPU.
    pub(crate) fn has_free_waiter(&self, cpu: Cpu, way: usize) -> bool {
        self.classes[0].on[way].has(cpu)
    }

    /// The sets of two CPUs or more that waiting tasks may use, each with the number of its class and the CPUs that they wait on.
    pub(crate) fn restricted(&self, way: usize) -> impl Iterator<Item = (usize, &CpuSet, &CpuSet)> {
        self.present.iter().filter_map(move |number| {
            let class = &self.classes[*number];
            let usable = class.allowed.as_ref().filter(|usable| usable.len() > 1)?;
            Some((*number, usable, &class.on[way]))
        })
    }

    /// The classes with waiters on busy CPUs that may use an idle one: these CPUs, and the idle ones.
    fn reaching(&self, way: usize) -> impl Iterator<Item = (&WaiterClass, CpuSet, CpuSet)> {
        self.present.iter().filter_map(move |class| {
            let class = &self.classes[*class];
            let (on, usable) = (class.on[way].and(&self.busy), class.usable(&self.idle));
            (!on.is_empty() && !usable.is_empty()).then_some((class, on, usable))
        })
    }

    /// The CPUs of I and O that concern one another; nothing for the way that counts every waiter, wherever it may run.
    pub fn pairs(&self, way: usize) -> Option<Pairs> {
        if way == ALL {
            return None;
        }
        let mut pairs = Pairs::default();
        for (class, on, usable) in self.reaching(way) {
            pairs.waiters += on.cpus().filter_map(|cpu| class.numbers.get(&cpu)).map(|n| n[way]).sum::<u32>();
            pairs.idle.add(&usable);
            pairs.overloaded.add(&on);
        }
        Some(pairs)
    }

    /// The CPUs with waiters of a class that may use an idle CPU, each with the class, in order.
    pub fn violating(&self, way: usize) -> Vec<(Cpu, usize)> {
        let mut all: Vec<(Cpu, usize)> = Vec::new();
        for class in &self.present {
            let waiters = &self.classes[*class];
            let on = waiters.on[way].and(&self.busy);
            if !on.is_empty() && !waiters.usable(&self.idle).is_empty() {
                all.extend(on.cpus().map(|cpu| (cpu, *class)));
            }
        }
        all.sort_unstable();
        all
    }

    /// The CPUs with waiters that may use an idle CPU, each with their number, in order.
    pub fn waiters_in_violation(&self, way: usize) -> Vec<(Cpu, u32)> {
        let mut all: Vec<(Cpu, u32)> = Vec::new();
        for (cpu, class) in self.violating(way) {
            let number = self.classes[class].numbers.get(&cpu).map_or(0, |numbers| numbers[way]);
            match all.last_mut() {
                Some((last, sum)) if *last == cpu => *sum += number,
                _ => all.push((cpu, number)),
            }
        }
        all
    }

    /// The idle CPUs that a task may use that is about to wait on a CPU.
    pub fn usable(&self, task: &Task, cpu: Cpu, affinity: &Affinity, state: &SchedState) -> CpuSet {
        let allowed = affinity.of(task, cpu, state).and_then(|id| affinity.set(id, state));
        allowed.map_or_else(|| self.idle.clone(), |allowed| self.idle.and(allowed))
    }

    /// The CPUs that run a task while a waiter is there that may use `cpu`.
    pub fn waiting_for(&self, cpu: Cpu, way: usize) -> CpuSet {
        let classes = self.present.iter().map(|class| &self.classes[*class]);
        let may = |class: &&WaiterClass| class.allowed.as_ref().is_none_or(|allowed| allowed.has(cpu));
        classes.filter(may).fold(CpuSet::default(), |mut all, class| {
            all.add(&class.on[way].and(&self.busy));
            all
        })
    }

    /// The smallest distance between a CPU and one of a set; nothing without a topology.
    pub fn distance(&self, cpu: Cpu, set: &CpuSet) -> Option<Distance> {
        let mut levels = self.levels.as_ref()?.iter().zip(LEVELS);
        let within = |(level, _): &(&LevelGroups, Distance)| level.around(cpu).is_some_and(|group| group.meets(set));
        Some(levels.find(within).map_or(Distance::Machine, |(_, distance)| distance))
    }

    /// The smallest distance between a waiter and an idle CPU that it may use.
    pub fn nearest(&self, way: usize) -> Option<Distance> {
        let levels = self.levels.as_ref()?;
        let near = |on: &CpuSet, usable: &CpuSet| {
            let is_within =
                |level: &LevelGroups| on.cpus().any(|cpu| level.around(cpu).is_some_and(|g| g.meets(usable)));
            let mut known = levels.iter().zip(LEVELS);
            known.find(|(level, _)| is_within(level)).map_or(Distance::Machine, |(_, distance)| distance)
        };
        self.reaching(way).map(|(_, on, usable)| near(&on, &usable)).min()
    }

    /// Whether a waiter may use an idle CPU, where that is asked for.
    pub fn may_run(&self, task: TaskId, way: usize) -> bool {
        let wait = self.waits.get(task.index()).copied().flatten();
        way == ALL || wait.is_some_and(|(_, class, _)| !self.classes[class].usable(&self.idle).is_empty())
    }

    /// Whether a node has one of the idle CPUs of pairs, and one of the overloaded ones.
    pub(super) fn in_node(&self, node: usize, pairs: &Pairs) -> Option<(bool, bool)> {
        let members = self.levels.as_ref()?.last()?.members(node)?;
        Some((members.meets(&pairs.idle), members.meets(&pairs.overloaded)))
    }
}

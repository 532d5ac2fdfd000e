//! Whether work conservation is violated at an instant, for analyses that need no more than that.

use super::followed::FollowedSets;
use crate::Waiters;
use sched::affinity::Affinity;
use sched::counted::Flags;
use sched::kthread::is_bound;
use sched::probe::Probe;
use sched::{
    ChosenCpus, Cpu, CpuCounts, EventKind, Load, PerTask, SchedEvent, SchedState, Task, TaskId, TaskState, Topology,
};
use std::sync::Arc;

/// Follows the violation among some CPUs: whether one of them idles while a task that counts waits on another.
///
/// Waiters count as [`Waiters::Movable`] has it. The state at the start comes first ([`Watch::begin`]), then each event
/// once it was applied ([`Watch::after`]).
#[derive(Clone, Debug)]
pub struct Watch {
    cpus: ChosenCpus,
    follows: Follows,
}

/// The waiting tasks that are followed.
#[derive(Clone, Debug)]
enum Follows {
    /// The waiting tasks that do not count: bound kernel threads, which are few.
    Bound(Bound),
    /// Every waiting task, by the CPUs that it may use.
    Reach(Box<ByReach>),
}

/// The bound kernel threads that wait.
#[derive(Clone, Debug, Default)]
struct Bound {
    /// The CPU that each bound kernel thread waits on.
    waits: PerTask<Cpu>,
    /// The number of bound kernel threads that wait on each CPU.
    number: Vec<u32>,
    /// The CPUs with such a number.
    cpus: Vec<Cpu>,
}

/// Follows the violation among some CPUs where selected tasks count, and the CPUs are known that tasks may use: whether one of
/// them idles that a selected task, which waits on another, may use.
///
/// The state at the start comes first ([`SelectedWatch::begin`]), then each event once it was applied
/// ([`SelectedWatch::after`]). `counts` has to select the same tasks in each call; it is asked when a task begins to wait.
#[derive(Clone, Debug)]
pub struct SelectedWatch {
    cpus: ChosenCpus,
    reach: ByReach,
}

impl SelectedWatch {
    /// Makes a watch of these CPUs, with the CPUs that tasks may use.
    pub fn new(cpus: ChosenCpus, affinity: Arc<Affinity>) -> SelectedWatch {
        SelectedWatch { cpus, reach: ByReach::new(affinity) }
    }

    /// Takes the state at the start.
    pub fn begin(&mut self, state: &SchedState, counts: impl Fn(&Task, &SchedState) -> bool) {
        for cpu in state.observed() {
            self.reach.begin(cpu, load(&self.cpus, cpu, state), state, |task, _| selected(counts(task, state)));
        }
    }

    /// Takes the tasks that wait on CPUs without events, behind [`SelectedWatch::begin`], where the state is one within a pass.
    pub fn resume(&mut self, state: &SchedState, counts: impl Fn(&Task, &SchedState) -> bool) {
        for cpu in state.unobserved_queues() {
            self.reach.begin(cpu, load(&self.cpus, cpu, state), state, |task, _| selected(counts(task, state)));
        }
    }

    /// Whether another watch of the same CPUs, in the same pass, has the same waiters and the same CPUs.
    pub fn knows_same(&self, other: &SelectedWatch) -> bool {
        self.reach.followed.has_same(&other.reach.followed)
    }

    /// Takes an event that was applied.
    pub fn after(&mut self, event: &SchedEvent, state: &SchedState, counts: impl Fn(&Task, &SchedState) -> bool) {
        self.reach.after(&self.cpus, event, state, |task, _| selected(counts(task, state)));
    }

    /// Whether work conservation is violated now.
    pub fn is_violated(&self) -> bool {
        self.reach.is_violated()
    }
}

/// The flags of a waiter that counts if it is selected.
fn selected(is_selected: bool) -> Flags {
    u8::from(is_selected) << Waiters::Movable as u8
}

/// The sets where the CPUs are known that tasks may use.
#[derive(Clone, Debug)]
struct ByReach {
    affinity: Arc<Affinity>,
    followed: FollowedSets,
}

/// The ways that count a waiter, a bit for each.
fn flags(task: &Task, cpu: Cpu) -> Flags {
    1 << Waiters::All as u8 | u8::from(!is_bound(task.comm, cpu)) << Waiters::Movable as u8
}

impl Watch {
    /// Among these CPUs, with the CPUs that tasks may use as far as they are known.
    pub fn new(cpus: ChosenCpus, affinity: Option<Arc<Affinity>>) -> Watch {
        let follows = match affinity {
            None => Follows::Bound(Bound::default()),
            Some(affinity) => Follows::Reach(Box::new(ByReach::new(affinity))),
        };
        Watch { cpus, follows }
    }

    /// The state at the start.
    pub fn begin(&mut self, state: &SchedState) {
        state.observed().for_each(|cpu| self.begin_cpu(cpu, state));
    }

    /// Takes the tasks that wait on CPUs without events, behind [`Watch::begin`], where the state is one within a pass.
    pub fn resume(&mut self, state: &SchedState) {
        state.unobserved_queues().for_each(|cpu| self.begin_cpu(cpu, state));
    }

    fn begin_cpu(&mut self, cpu: Cpu, state: &SchedState) {
        match &mut self.follows {
            Follows::Bound(bound) => state.waiting(cpu).for_each(|task| bound.join(task, cpu)),
            Follows::Reach(reach) => reach.begin(cpu, load(&self.cpus, cpu, state), state, flags),
        }
    }

    /// An event was applied.
    #[inline]
    pub fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        match &mut self.follows {
            Follows::Bound(bound) => bound.follow(state),
            Follows::Reach(reach) => reach.after(&self.cpus, event, state, flags),
        }
    }

    /// Whether another watch of the same CPUs, in the same pass, has the same waiters.
    pub fn knows_same(&self, other: &Watch) -> bool {
        match (&self.follows, &other.follows) {
            (Follows::Bound(a), Follows::Bound(b)) => a.waits.has_same(&b.waits),
            (Follows::Reach(a), Follows::Reach(b)) => a.followed.has_same(&b.followed),
            _ => false,
        }
    }

    /// Whether work conservation is violated now. `counts` are those of the CPUs.
    #[inline]
    pub fn is_violated(&self, counts: &CpuCounts, state: &SchedState) -> bool {
        if !counts.is_violated() {
            return false;
        }
        match &self.follows {
            Follows::Bound(bound) if bound.cpus.is_empty() => true,
            Follows::Bound(bound) => {
                // On these CPUs bound kernel threads alone wait.
                let alone = |cpu: &&Cpu| {
                    load(&self.cpus, **cpu, state).is_overloaded()
                        && bound.number.get(cpu.index()) == Some(&state.queue_length(**cpu))
                };
                counts.overloaded_cpus() > bound.cpus.iter().filter(alone).count() as u32
            }
            Follows::Reach(reach) => reach.is_violated(),
        }
    }
}

/// The load of a CPU; one that was not chosen takes no part.
fn load(cpus: &ChosenCpus, cpu: Cpu, state: &SchedState) -> Load {
    if cpus.has(cpu) { state.load(cpu) } else { Load::Unobserved }
}

impl Bound {
    /// A task waits on a CPU.
    #[inline]
    fn join(&mut self, task: &Task, cpu: Cpu) {
        if is_bound(task.comm, cpu) {
            self.add(task.id(), cpu);
        }
    }

    #[cold]
    fn add(&mut self, task: TaskId, cpu: Cpu) {
        self.leave(task);
        self.waits.insert(task, cpu);
        if cpu.index() >= self.number.len() {
            self.number.resize(cpu.index() + 1, 0);
        }
        self.number[cpu.index()] += 1;
        if self.number[cpu.index()] == 1 {
            self.cpus.push(cpu);
        }
    }

    fn leave(&mut self, task: TaskId) {
        if let Some(cpu) = self.waits.take(task) {
            self.number[cpu.index()] -= 1;
            if self.number[cpu.index()] == 0 {
                self.cpus.retain(|other| *other != cpu);
            }
        }
    }

    /// Follows the latest event.
    #[inline]
    fn follow(&mut self, state: &SchedState) {
        for span in state.spans() {
            if matches!(span.state, TaskState::Waiting(_)) && !self.cpus.is_empty() {
                self.leave(span.task);
            }
            if let TaskState::Waiting(cpu) = span.next
                && let Some(task) = state.task(span.task)
            {
                self.join(task, cpu);
            }
        }
    }
}

impl ByReach {
    fn new(affinity: Arc<Affinity>) -> ByReach {
        let followed = FollowedSets::new(&Topology::default(), Some(&affinity));
        ByReach { affinity, followed }
    }

    fn is_violated(&self) -> bool {
        self.followed.sets.violation(Waiters::Movable as usize).holds()
    }

    fn begin(&mut self, cpu: Cpu, load: Load, state: &SchedState, flags: impl FnMut(&Task, Cpu) -> Flags) {
        self.followed.begin(cpu, state, Some(&self.affinity), flags);
        self.followed.sets.update(cpu, load);
    }

    fn after(
        &mut self,
        cpus: &ChosenCpus,
        event: &SchedEvent,
        state: &SchedState,
        flags: impl FnMut(&Task, Cpu) -> Flags,
    ) {
        let ByReach { affinity, followed } = self;
        followed.follow(state, Some(affinity), flags);
        if let EventKind::Probe { probe: Probe::Allows(pid, _), .. } = event.kind {
            followed.renew(pid, Some(affinity), state);
        }
        for cpu in state.touched() {
            followed.sets.update(*cpu, load(cpus, *cpu, state));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sched::{Analysis, Pass, Ts};

    /// Follows a watch, and the sets by the same way of counting.
    struct Both {
        watch: Watch,
        followed: FollowedSets,
        violated: u32,
    }

    impl Both {
        fn compare(&mut self, state: &SchedState) {
            let truth = self.followed.sets.violation(Waiters::Movable as usize).holds();
            assert_eq!(self.watch.is_violated(state.counts(), state), truth);
            self.violated += u32::from(truth);
        }
    }

    impl Analysis for Both {
        type Output = u32;
        const COUNTS: bool = true;

        fn begin(&mut self, _: Ts, state: &SchedState) {
            self.watch.begin(state);
            for cpu in state.observed() {
                self.followed.begin(cpu, state, None, flags);
                self.followed.sets.update(cpu, state.load(cpu));
            }
            self.compare(state);
        }

        fn after(&mut self, event: &SchedEvent, state: &SchedState) {
            self.watch.after(event, state);
            self.followed.follow(state, None, flags);
            for cpu in state.touched() {
                self.followed.sets.update(*cpu, state.load(*cpu));
            }
            self.compare(state);
        }

        fn finish(self, _: Ts, _: &SchedState) -> u32 {
            self.violated
        }
    }

    #[test]
    fn a_watch_agrees_with_the_sets() {
        for seed in 0..8 {
            let events = testkit::Simulation::balanced(seed, 6, 1_500).events;
            let both = || Both {
                watch: Watch::new(ChosenCpus::default(), None),
                followed: FollowedSets::new(&Topology::default(), None),
                violated: 0,
            };
            let outcome = Pass::over(events.as_slice()).run(both).unwrap_or_else(|never| match never {});
            assert!(outcome.output > 100, "{} of {} events", outcome.output, events.len());
            let ext = Pass::over(testkit::ExtQueues(&events)).run(both).unwrap_or_else(|never| match never {});
            assert!(ext.output > outcome.output, "{} of {} events", ext.output, events.len());
        }
    }

    /// Follows the sets, and makes them anew from the state behind each event.
    struct Anew(FollowedSets);

    impl Anew {
        fn compare(&self, event: Option<&SchedEvent>, state: &SchedState) {
            let mut anew = FollowedSets::new(&Topology::default(), None);
            for cpu in state.observed() {
                anew.begin(cpu, state, None, flags);
                anew.sets.update(cpu, state.load(cpu));
            }
            let way = Waiters::Movable as usize;
            assert_eq!(self.0.sets.cpus(way), anew.sets.cpus(way), "{event:?}");
        }
    }

    impl Analysis for Anew {
        type Output = ();

        fn begin(&mut self, _: Ts, state: &SchedState) {
            for cpu in state.observed() {
                self.0.begin(cpu, state, None, flags);
                self.0.sets.update(cpu, state.load(cpu));
            }
        }

        fn after(&mut self, event: &SchedEvent, state: &SchedState) {
            if !state.spans().is_empty() || !state.cpu_spans().is_empty() {
                self.0.follow(state, None, flags);
                for cpu in state.touched() {
                    self.0.sets.update(*cpu, state.load(*cpu));
                }
            }
            self.compare(Some(event), state);
        }

        fn finish(self, _: Ts, _: &SchedState) {}
    }

    #[test]
    fn followed_sets_are_those_of_the_state() {
        for seed in 0..40 {
            let sim = testkit::Simulation::any(seed, 1 + (seed % 9) as u32, 300);
            for events in [sim.events.clone(), sim.lossy(seed).0] {
                let events = testkit::with_throttling(&events, seed);
                let anew = || Anew(FollowedSets::new(&Topology::default(), None));
                let _ = Pass::over(events.as_slice()).run(anew).unwrap_or_else(|never| match never {});
            }
        }
    }
}

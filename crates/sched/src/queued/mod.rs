//! Queued time in four kinds (`docs/read-the-numbers.md#queued-time`): held back, beside an idle CPU, beside a
//! shorter queue, all queues alike.
//!
//! [`QueuedKinds`] follows the lengths of all run queues, in constant time per event whatever number of tasks waits. A caller takes a
//! [`QueuedReading`] where a wait on a run queue begins and another one where it ends; [`QueuedKinds::between`] has the [`QueuedTimes`].
//!
//! An interval in which a CPU idles beside its own waiting task is *pending* until its length shows whether it is held back. A reading in it has
//! the amounts that move from the other kinds to that one if it is.

mod compared;
mod joined;
mod readings;
mod reweighed;
mod usable;
mod weighing;

pub use compared::{ComparedQueue, LeastQueues};
pub use readings::{QueuedReading, QueuedTimes};

use crate::event::kthread::is_bound;
use crate::event::nice::NICE_0_WEIGHT;
use crate::event::task_id::TaskId;
use crate::event::{Cpu, Dur, Ts};
use crate::state::affinity::Affinity;
use crate::state::{Load, SchedState, Task};
use crate::tables::chosen_cpus::ChosenCpus;
use crate::tables::per_task::PerTask;
use compared::Crowding;
use joined::{FirstInterval, FirstOutcome};
use readings::{KindSums, PendingReading};
use reweighed::WeightChanges;
use std::sync::Arc;
use usable::UsableCpus;
use weighing::WaiterClass;

/// The length from which on an interval in which a CPU idles beside its own waiting tasks is held back: 1 ms. A shorter one is a switch that is
/// under way.
pub const HELD_BACK: Dur = Dur(1_000_000);

/// Maximum length of a run queue that is distinguished from longer ones.
const LONGEST: u32 = 4096;

/// Maximum number of sets of usable CPUs that are followed.
const MOST_SETS: usize = 65;

/// The tasks by the CPUs that they may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum UsableClass {
    /// Tasks that may use every CPU.
    #[default]
    All,
    /// Tasks that may use the CPU alone on which they wait.
    Own,
    /// Tasks that may use the CPUs of the set of an affinity with this number.
    Set(usize),
}

/// The standing of a CPU among the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CpuStanding {
    /// The number of runnable tasks, 0 on an idle CPU that could be put to work; `None` where it is neither idle nor shorter than others.
    place: Option<u32>,
    /// The number of runnable tasks, as it is compared with that of others.
    length: u32,
    /// The CPU idles beside a task that waits on it.
    is_pending: bool,
    /// Whether a task waits there.
    is_queued: bool,
    /// The weight of the runnable tasks above that of `length` tasks of nice 0; `None` if each of them weighs as much as one of nice 0.
    odd: Option<i64>,
}

impl CpuStanding {
    /// The standing of a CPU that takes no part.
    const NONE: CpuStanding = CpuStanding { place: None, length: 0, is_pending: false, is_queued: false, odd: None };

    #[inline]
    fn of(cpu: Cpu, load: Load, state: &SchedState) -> CpuStanding {
        let has_ext_queues = state.has_ext_queues();
        let all = state.queue_length(cpu);
        let waiting = all.min(LONGEST - 1);
        let odd =
            state.odd_weight(cpu).filter(|_| !matches!(load, Load::Unobserved | Load::Offline) && !has_ext_queues);
        // Tasks beyond the longest length weigh as well.
        let odd = odd.map(|odd| odd + i64::from(all - waiting) * i64::from(NICE_0_WEIGHT));
        let (place, length) = match load {
            Load::Unobserved | Load::Offline => (None, 0),
            Load::Unknown => (None, waiting),
            Load::Idle => (Some(0), 0),
            // No queue of a sched_ext scheduler has a known length.
            Load::Unserved => (Some(0), 1),
            Load::Busy | Load::Overloaded if has_ext_queues => (Some(1), 1),
            Load::SwitchPending => (Some(waiting), waiting),
            Load::Busy | Load::Overloaded => (Some(1 + waiting), 1 + waiting),
        };
        CpuStanding { place, length, is_pending: load == Load::SwitchPending, is_queued: waiting > 0, odd }
    }

    /// The weight of the runnable tasks.
    fn weight(&self) -> u64 {
        (u64::from(self.length) * u64::from(NICE_0_WEIGHT)).saturating_add_signed(self.odd.unwrap_or(0))
    }
}

/// An interval in which a CPU idles beside a task that waits on it.
#[derive(Clone, Copy, Debug)]
struct PendingInterval {
    ordinal: u32,
    /// The beginning, before the window as well.
    since: Ts,
    /// The instant from which the interval is followed.
    from: Ts,
    /// Whether a wait began within it.
    is_noted: bool,
}

/// A CPU and its run queue.
#[derive(Clone, Debug)]
struct FollowedCpu {
    standing: CpuStanding,
    /// The capacity; 1 where all CPUs count alike.
    capacity: u32,
    /// The time that was held back, in nanoseconds, without the pending interval.
    held: i64,
    pending: Option<PendingInterval>,
    /// The number of pending intervals so far, the present one included.
    ordinal: u32,
    /// The intervals that were held back and in which waits began that can still go on, in ascending order.
    held_intervals: Vec<u32>,
    /// Whether the queue was empty at some instant since the beginning, so that no earlier wait goes on.
    was_empty: bool,
    /// The interval that was pending at the beginning.
    first: Option<FirstInterval>,
}

impl FollowedCpu {
    const NEW: FollowedCpu = FollowedCpu {
        standing: CpuStanding::NONE,
        capacity: 1,
        held: 0,
        pending: None,
        ordinal: 0,
        held_intervals: Vec::new(),
        was_empty: false,
        first: None,
    };

    /// The runnable tasks by their weight.
    fn crowding(&self) -> Crowding {
        Crowding { weight: self.standing.weight(), capacity: self.capacity }
    }

    /// The same with a further waiter of this weight; `None` for a CPU that idles, or is shorter than none.
    fn crowding_with(&self, weight: u32) -> Option<Crowding> {
        let is_compared = self.standing.place.is_some_and(|place| place > 0);
        let Crowding { weight: all, capacity } = self.crowding();
        is_compared.then(|| Crowding { weight: all.saturating_add(weight.into()), capacity })
    }
}

/// The kinds of queued time, up to the latest event that was followed.
#[derive(Clone, Debug)]
pub struct QueuedKinds {
    affinity: Option<Arc<Affinity>>,
    chosen: ChosenCpus,
    start: Ts,
    cpus: Vec<FollowedCpu>,
    /// The idle and the shortest queues among the CPUs of a set: that of all CPUs first.
    usable: Vec<UsableCpus>,
    /// The waiting tasks.
    classes: PerTask<QueuedWaiter>,
    /// The classes of the tasks that waited at the beginning.
    first_classes: Vec<(TaskId, WaiterClass)>,
    /// The number of CPUs with a task that weighs more or less than one of nice 0.
    odd_cpus: u32,
    /// Whether CPUs differ in capacity, so that lengths never decide alone.
    by_capacity: bool,
    /// Whether weights decided at some instant.
    has_weighed: bool,
    /// The changes of the weights of tasks while they waited.
    changes: WeightChanges,
}

/// A waiting task.
#[derive(Clone, Copy, Debug, Default)]
struct QueuedWaiter {
    /// The class of the task, by its present weight.
    class: WaiterClass,
    /// Whether its wait began in this piece of a pass.
    began_here: bool,
}

impl QueuedKinds {
    /// Follows the chosen CPUs. `affinity`: the CPUs that tasks may use, where they are known.
    pub fn new(chosen: ChosenCpus, affinity: Option<Arc<Affinity>>) -> QueuedKinds {
        let usable = vec![UsableCpus::new(UsableClass::All, None, Ts(0))];
        QueuedKinds {
            affinity,
            chosen,
            start: Ts(0),
            cpus: Vec::new(),
            usable,
            classes: PerTask::default(),
            first_classes: Vec::new(),
            odd_cpus: 0,
            by_capacity: false,
            has_weighed: false,
            changes: WeightChanges::default(),
        }
    }

    /// Begins at the start of a window, or of a later piece of a pass.
    pub fn begin(&mut self, start: Ts, state: &SchedState) {
        self.start = start;
        self.usable[0] = UsableCpus::new(UsableClass::All, None, start);
        self.by_capacity = !state.capacities().is_empty();
        let cpus: Vec<Cpu> = state.observed().collect();
        for cpu in &cpus {
            self.settle(*cpu, start, state);
            let longest_wait = state.waiting(*cpu).map(|task| task.since).min();
            let entry = &mut self.cpus[cpu.index()];
            if let (Some(pending), Some(joined)) = (&mut entry.pending, longest_wait) {
                pending.since = state.current_since(*cpu).max(joined).min(start);
                // Tasks wait there already.
                entry.was_empty = false;
                // Its ordinal distinguishes it from those that begin in this piece.
                (pending.ordinal, entry.ordinal) = (0, 0);
                entry.first = Some(FirstInterval { since: pending.since, outcome: FirstOutcome::Pending });
            }
        }
        let queues = cpus.into_iter().chain(state.unobserved_queues());
        let waiting: Vec<(Cpu, &Task)> =
            queues.flat_map(|cpu| state.waiting(cpu).map(move |task| (cpu, task))).collect();
        for (cpu, task) in waiting {
            let class = self.class(task, cpu, start, state);
            self.classes.insert(task.id(), QueuedWaiter { class, began_here: false });
            self.first_classes.push((task.id(), class));
        }
    }

    /// Follows the event that the state applied last.
    #[inline]
    pub fn follow(&mut self, now: Ts, state: &SchedState) {
        for cpu in state.touched() {
            self.settle(*cpu, now, state);
        }
        if !state.reweighed().is_empty() {
            self.reweigh(now, state);
        }
    }

    /// Takes a reading where a task begins to wait on a CPU, behind the event that the state applied last.
    pub fn begin_wait(&mut self, task: &Task, cpu: Cpu, now: Ts, state: &SchedState) -> QueuedReading {
        let class = self.class(task, cpu, now, state);
        self.classes.insert(task.id(), QueuedWaiter { class, began_here: true });
        self.changes.begin_wait(task.id());
        if let Some(pending) = self.cpus.get_mut(cpu.index()).and_then(|entry| entry.pending.as_mut()) {
            pending.is_noted = true;
        }
        self.reading((Some(task.id()), 0), class, cpu, now)
    }

    /// The instant of the beginning.
    pub fn start(&self) -> Ts {
        self.start
    }

    /// The reading of a task that has waited on a CPU since the beginning.
    pub fn first_reading(&self, task: &Task, cpu: Cpu) -> QueuedReading {
        self.first_reading_of(task.id(), cpu)
    }

    /// The reading of the task with this number, if it has waited on a CPU since the beginning.
    pub fn first_reading_of(&self, task: TaskId, cpu: Cpu) -> QueuedReading {
        let now = || self.classes.get(task).copied().unwrap_or_default().class;
        let class = self.changes.first_class(task).unwrap_or_else(now);
        let first = self.cpus.get(cpu.index()).is_some_and(|entry| entry.first.is_some());
        // An interval that was pending at the beginning has moved nothing yet.
        let pending = first.then_some(PendingReading { ordinal: 0, since: Ts(0), moved: KindSums::default() });
        let (task, sums) = (Some(task), KindSums::default());
        QueuedReading { at: self.start, cpu, class, task, changes: 0, sums, pending }
    }

    /// Takes a reading for the end of a wait that began with another one, at this instant.
    pub fn end_wait(&self, begun: &QueuedReading, now: Ts) -> QueuedReading {
        if self.changes.is_empty() {
            return self.reading((begun.task, begun.changes), begun.class, begun.cpu, now);
        }
        let (class, changes) = self.latest_class(begun);
        self.reading((begun.task, changes), class, begun.cpu, now)
    }

    /// Takes a reading within a wait that began with another one, at this instant: the end of a part of the wait, and the beginning of the next.
    /// No event may lie between this instant and the one that was followed last.
    pub fn divide_wait(&mut self, begun: &QueuedReading, now: Ts) -> QueuedReading {
        if let Some(pending) = self.cpus.get_mut(begun.cpu.index()).and_then(|entry| entry.pending.as_mut()) {
            pending.is_noted = true;
        }
        self.end_wait(begun, now)
    }

    /// Takes a reading for the end of any wait on a CPU of a task of nice 0 that may use every CPU.
    pub fn reading_of_all(&self, cpu: Cpu, now: Ts) -> QueuedReading {
        self.reading((None, 0), WaiterClass::default(), cpu, now)
    }

    /// The time between two readings on the same CPU, by kind; `None` where the second one is on another CPU, or for tasks that may use others or
    /// weigh more or less.
    pub fn between(&self, begun: &QueuedReading, end: &QueuedReading) -> Option<QueuedTimes> {
        if !self.changes.is_empty() {
            let is_held = end.pending.is_some_and(|pending| pending.is_held_at(end.at));
            return self.are_alike(begun, end).then(|| self.times(begun, end, is_held));
        }
        let was_held = |ordinal: u32| self.was_held(begun.cpu, ordinal);
        let is_same_weight = begun.class.weight == end.class.weight || !self.has_weighed;
        let is_same = (begun.class.usable, begun.cpu) == (end.class.usable, end.cpu) && is_same_weight;
        is_same.then(|| readings::between(begun, end, was_held, PendingReading::is_held_at))
    }

    /// Whether an interval that has ended was held back.
    fn was_held(&self, cpu: Cpu, ordinal: u32) -> bool {
        let Some(entry) = self.cpus.get(cpu.index()) else { return false };
        match entry.first {
            Some(first) if ordinal == 0 => first.outcome == FirstOutcome::HeldBack,
            _ => entry.held_intervals.binary_search(&ordinal).is_ok(),
        }
    }

    /// A reading of waiters of a class: of this one, whose weight has changed so many times within the wait, or of any.
    fn reading(&self, (task, changes): (Option<TaskId>, u32), class: WaiterClass, cpu: Cpu, now: Ts) -> QueuedReading {
        let entry = self.cpus.get(cpu.index()).unwrap_or(const { &FollowedCpu::NEW });
        let usable = self.usable.iter().find(|usable| usable.class == class.usable);
        let length = entry.standing.length;
        let (idle, by_length) = usable.map_or((0, 0), |usable| usable.read(cpu, length, now));
        let (surplus, pending_surplus) = match usable {
            Some(usable) if self.has_weighed => usable.surplus(class.weight, cpu, now),
            _ => (0, 0),
        };
        let shorter = by_length + surplus;
        let any = if class.usable == UsableClass::All { idle } else { self.usable[0].read(cpu, length, now).0 };
        let sums = KindSums { held: entry.held, idle, shorter, any };
        let pending = entry.pending.map(|pending| PendingReading {
            ordinal: pending.ordinal,
            since: pending.since,
            moved: self.moved(&pending, usable, pending_surplus, cpu, now),
        });
        QueuedReading { at: now, cpu, class, task, changes, sums, pending }
    }

    /// The time of a pending interval up to this instant, taken from the other kinds.
    fn moved(
        &self,
        pending: &PendingInterval,
        usable: Option<&UsableCpus>,
        surplus: i64,
        cpu: Cpu,
        now: Ts,
    ) -> KindSums {
        let length = self.cpus[cpu.index()].standing.length;
        let (idle, by_length) = usable.map_or((0, 0), |usable| usable.read_pending(cpu, length, now));
        let shorter = by_length + surplus;
        let (any, _) = self.usable[0].read_pending(cpu, length, now);
        KindSums { held: now.since(pending.from).0 as i64, idle: -idle, shorter: -shorter, any: -any }
    }

    /// The class of a task that waits on a CPU, whose set and weight are followed from now on.
    fn class(&mut self, task: &Task, cpu: Cpu, now: Ts, state: &SchedState) -> WaiterClass {
        let usable = self.usable_class(task, cpu, now, state);
        WaiterClass { usable, weight: self.weight_of(task, usable, now) }
    }

    /// The weight by which a task is followed that waits now, among those that may use the same CPUs; 0 if it compares numbers of tasks.
    fn weight_of(&mut self, task: &Task, usable: UsableClass, now: Ts) -> u32 {
        match task.compared_weight() {
            None => 0,
            Some(NICE_0_WEIGHT) => NICE_0_WEIGHT,
            Some(weight) => self.weight(weight, usable, now),
        }
    }

    /// The class of a task by the CPUs that it may use.
    fn usable_class(&mut self, task: &Task, cpu: Cpu, now: Ts, state: &SchedState) -> UsableClass {
        if is_bound(task.comm, cpu) {
            return UsableClass::Own;
        }
        let restricted = self.affinity.as_ref().and_then(|affinity| {
            let id = affinity.of(task, cpu, state)?;
            Some((id, affinity.set(id, state)?))
        });
        let Some((id, set)) = restricted else { return UsableClass::All };
        let class = UsableClass::Set(id.index());
        if self.usable.iter().any(|usable| usable.class == class) {
            return class;
        }
        if self.usable.len() >= MOST_SETS || set.len() < 2 && set.has(cpu) {
            return UsableClass::Own;
        }
        let mut usable = UsableCpus::new(class, Some(set.clone()), now);
        for (cpu, entry) in (0..).map(Cpu).zip(&self.cpus) {
            usable.change(cpu, &CpuStanding::NONE, &entry.standing, now);
            usable.begin_pending(cpu, entry.standing.length, now);
        }
        if self.weighs() {
            usable.weigh(&self.cpus, None, now);
        }
        self.usable.push(usable);
        class
    }

    /// Finds the standing that a CPU has now.
    #[inline]
    fn settle(&mut self, cpu: Cpu, now: Ts, state: &SchedState) {
        let load = if self.chosen.has(cpu) { state.load(cpu) } else { Load::Unobserved };
        let standing = CpuStanding::of(cpu, load, state);
        if cpu.index() >= self.cpus.len() {
            self.cpus.resize(cpu.index() + 1, FollowedCpu::NEW);
        }
        if self.by_capacity {
            self.cpus[cpu.index()].capacity = state.capacities().at(cpu);
        }
        if self.cpus[cpu.index()].standing != standing {
            self.change(cpu, standing, now, state);
        }
    }

    fn change(&mut self, cpu: Cpu, standing: CpuStanding, now: Ts, state: &SchedState) {
        let entry = &mut self.cpus[cpu.index()];
        let old = std::mem::replace(&mut entry.standing, standing);
        if let Some(pending) = entry.pending.take_if(|_| !standing.is_pending) {
            // The CPU has become another task's, and within the same event something else.
            let is_unrecorded = state.cpu_spans().iter().filter(|span| span.cpu == cpu).count() > 1;
            let is_held = !is_unrecorded && now.since(pending.since) >= HELD_BACK;
            if is_held {
                entry.held += now.since(pending.from).0 as i64;
                self.usable.iter_mut().for_each(|usable| usable.set_aside(cpu, old.length, now));
            }
            entry.end_pending(&pending, is_held);
        }
        for usable in &mut self.usable {
            usable.change(cpu, &old, &standing, now);
        }
        if self.weighs() || standing.odd.is_some() {
            self.follow_weights(cpu, old.odd.is_some(), now);
        }
        let entry = &mut self.cpus[cpu.index()];
        if standing.is_pending && entry.pending.is_none() {
            if !old.is_queued {
                entry.held_intervals.clear();
                entry.was_empty = true;
            }
            entry.ordinal += 1;
            entry.pending = Some(PendingInterval { ordinal: entry.ordinal, since: now, from: now, is_noted: false });
            self.usable.iter_mut().for_each(|usable| usable.begin_pending(cpu, standing.length, now));
        }
    }
}

impl FollowedCpu {
    /// Takes note of the outcome of an interval.
    fn end_pending(&mut self, pending: &PendingInterval, is_held: bool) {
        match &mut self.first {
            Some(first) if pending.ordinal == 0 => {
                first.outcome = if is_held { FirstOutcome::HeldBack } else { FirstOutcome::Other };
            }
            _ if is_held && pending.is_noted => self.held_intervals.push(pending.ordinal),
            _ => {}
        }
    }
}

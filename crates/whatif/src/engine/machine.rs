//! The simulated machine at an instant: what policies see.

use super::near_cpus::NearCpus;
use super::order::{FAIR, Order, rank};
use super::queue::{QueueKey, SimQueue};
use super::{Costs, EngineOptions, Wakeups};
use crate::chances::Chances;
use crate::domains::Domains;
use crate::model::{Model, PlacedOn, QueueJoin, TaskIndex};
use sched::nice::weight_of;
use sched::topology::Distance;
use sched::{Comm, Cpu, Ts};
use std::cell::Cell;

/// The state of a task in the simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Not born, asleep, or at the end of the program.
    Away,
    Queued(Cpu),
    Running(Cpu),
}

/// A task in the simulation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SimTask {
    pub(crate) place: Place,
    /// The next step of the program.
    pub(crate) next: u32,
    /// The time that the present run step still takes.
    pub(crate) left: u64,
    /// The CPU of the latest run or queue.
    pub(crate) cpu: Cpu,
    /// The time run, weighted by the priority.
    pub(crate) virtual_ns: u64,
    pub(crate) prio: i32,
    pub(crate) rank: i32,
    pub(crate) weight: u64,
    pub(crate) comm: Comm,
    pub(crate) allowed: Option<u32>,
    pub(crate) join: u32,
    pub(crate) joined: i64,
    /// The number of joins so far, so that a move of an earlier wait is not taken for one of this.
    pub(crate) joins: u32,
    /// The moves of this wait that were made.
    pub(crate) moved: u32,
    /// The meeting at which the task spins.
    pub(crate) meeting: Option<u32>,
    /// The instant until which the task ran last.
    pub(crate) ran_until: i64,
    /// The sleep that the task is in.
    pub(crate) sleep: Option<u32>,
    /// The place in the queue in which the task waits.
    key: QueueKey,
    /// The number of its place in the kernel's list of the tasks of a CPU.
    listed: u64,
}

/// A CPU in the simulation.
#[derive(Clone, Debug, Default)]
pub(crate) struct SimCpu {
    pub(crate) usable: bool,
    pub(crate) current: Option<TaskIndex>,
    pub(crate) queue: SimQueue,
    /// The number of switches, so that an end of an earlier run is not taken for that of this.
    pub(crate) turn: u32,
    /// The instant up to which the running task's time is accounted for.
    pub(crate) since: i64,
    pub(crate) run_from: i64,
    /// The runs of the trace that have begun.
    pub(crate) followed: usize,
    /// Whether a switch to a queued task is under way.
    pub(crate) reacting: bool,
    /// The least virtual time of the tasks that it has run.
    pub(crate) virtual_ns: u64,
    pub(crate) has_slice: bool,
    /// The waiting tasks that another CPU's balancer could take, where balancing is followed.
    pub(crate) movable: u32,
    /// The number of ends of runs that were foreseen: only the latest one counts.
    pub(crate) ends: u32,
}

/// A task that joins a run queue after a wakeup or a fork.
#[derive(Clone, Copy, Debug)]
pub struct Placement {
    /// The task that joins.
    pub task: TaskIndex,
    /// The CPU on which the task last ran in this run; for a new task the one that the trace chose.
    pub previous: Cpu,
    /// The CPU on which the wakeup happens.
    pub waker: Cpu,
    /// The choice that the trace shows.
    pub recorded: QueueJoin,
    /// Whether the task is new.
    pub is_new: bool,
}

/// The machine at an instant of the simulation, as policies see it.
pub struct Machine<'m> {
    pub(crate) model: &'m Model,
    pub(crate) cpus: Vec<SimCpu>,
    pub(crate) tasks: Vec<SimTask>,
    pub(crate) order: Order,
    /// The present instant.
    pub(crate) now: Ts,
    costs: Costs,
    /// The time between ticks in nanoseconds; zero without any.
    pub(crate) tick: u64,
    /// The number of tasks in run queues.
    pub(crate) waiting: u64,
    wakeups: Wakeups,
    /// The chances of idle CPUs to pull a task, where balancing is followed.
    pub(crate) chances: Option<Chances>,
    /// Whether each set of CPUs has several.
    several: Vec<bool>,
    near: NearCpus,
    /// The number of joins of queues and of runs.
    queued: u64,
    /// The number of tasks and CPUs that searches have looked at since it was last taken.
    looked: Cell<u64>,
}

impl<'m> Machine<'m> {
    pub(crate) fn new(model: &'m Model, options: &EngineOptions<'_>) -> Machine<'m> {
        let cpus = model.cpus.iter().map(|cpu| SimCpu { usable: cpu.usable, ..SimCpu::default() }).collect();
        let task = |task: &crate::model::ModelTask| SimTask {
            place: Place::Away,
            next: 0,
            left: 0,
            cpu: task.cpu,
            virtual_ns: 0,
            prio: task.prio,
            rank: rank(task.prio, task.comm),
            weight: weight_of(task.prio),
            comm: task.comm,
            allowed: task.allowed,
            join: 0,
            joined: model.start.0,
            joins: 0,
            moved: 0,
            meeting: None,
            ran_until: i64::MIN / 2,
            sleep: None,
            key: QueueKey::default(),
            listed: 0,
        };
        let near = NearCpus::new(model.cpus.len(), model.usable(), options.topology);
        let several = model.sets.iter().map(|set| set.len() > 1).collect();
        let tasks = model.tasks.iter().map(task).collect();
        let (order, wakeups, chances) = (options.order, options.wakeups, None);
        let (waiting, queued, looked, tick) = (0, 0, Cell::new(0), 0);
        let (now, costs) = (model.start, options.costs);
        Machine {
            model,
            cpus,
            tasks,
            order,
            now,
            costs,
            tick,
            waiting,
            wakeups,
            chances,
            several,
            near,
            queued,
            looked,
        }
    }

    /// Takes the number of tasks and CPUs that searches have looked at.
    pub(crate) fn take_looked(&self) -> u64 {
        self.looked.take()
    }

    /// Counts tasks and CPUs that a search looks at.
    pub(crate) fn look(&self, at: u64) {
        self.looked.set(self.looked.get() + at);
    }

    /// Puts a task that joins a queue, or begins to run, at the head of the kernel's list of the CPU's tasks.
    pub(crate) fn list_anew(&mut self, task: TaskIndex) {
        self.queued += 1;
        self.tasks[task as usize].listed = self.queued;
    }

    /// Puts a task behind those that wait on `cpu`.
    pub(crate) fn queue_up(&mut self, task: TaskIndex, cpu: Cpu) {
        self.queued += 1;
        let sim = &mut self.tasks[task as usize];
        sim.key = (sim.rank, if self.order == Order::Fair { sim.virtual_ns } else { 0 }, self.queued);
        self.cpus[cpu.index()].queue.add(task, sim.key, sim.listed);
        self.waiting += 1;
        if self.chances.is_some() {
            self.cpus[cpu.index()].movable += u32::from(self.is_movable(task));
            self.refresh(cpu);
        }
    }

    /// Takes a task out of the queue of `cpu`, if it waits there.
    pub(crate) fn unqueue(&mut self, task: TaskIndex, cpu: Cpu) {
        let sim = &self.tasks[task as usize];
        if self.cpus[cpu.index()].queue.remove(task, sim.key, sim.listed) {
            self.waiting -= 1;
            if self.chances.is_some() {
                self.cpus[cpu.index()].movable -= u32::from(self.is_movable(task));
                self.refresh(cpu);
            }
        }
    }

    /// Follows the chances of balancing from here on.
    pub(crate) fn follow_chances(&mut self, options: &EngineOptions<'_>) {
        let mut chances = Chances::default();
        chances.grow(self.cpus.len(), options.topology);
        self.chances = Some(chances);
    }

    /// The state of `cpu` has changed.
    pub(crate) fn refresh(&mut self, cpu: Cpu) {
        if let Some(chances) = &mut self.chances {
            let here = &self.cpus[cpu.index()];
            let idles = here.usable && here.current.is_none() && here.queue.is_empty();
            chances.set(cpu, idles, here.current.is_some() && here.movable > 0);
        }
    }

    /// The present instant on the trace's clock.
    pub fn now(&self) -> Ts {
        self.now
    }

    /// The time between ticks in nanoseconds: that of [`Policy::tick_length`](super::Policy::tick_length), or more. Zero without any.
    pub fn tick(&self) -> u64 {
        self.tick
    }

    /// The time that decisions cost.
    pub fn costs(&self) -> Costs {
        self.costs
    }

    /// The instant until which a waiting task ran last; before all others for a task that has not run yet.
    pub fn last_ran(&self, task: TaskIndex) -> Ts {
        Ts(self.tasks[task as usize].ran_until)
    }

    /// The scheduling domains of the CPUs.
    pub(crate) fn domains(&self) -> Domains {
        self.near.domains()
    }

    /// Whether a balancer of the fair class could take the task, were it waiting: it may use several CPUs.
    pub fn is_movable(&self, task: TaskIndex) -> bool {
        let sim = &self.tasks[task as usize];
        sim.rank == FAIR && sim.allowed.is_none_or(|set| self.several[set as usize])
    }

    /// The model that is executed.
    pub fn model(&self) -> &Model {
        self.model
    }

    /// The task that runs on `cpu`; nothing while it idles.
    pub fn running(&self, cpu: Cpu) -> Option<TaskIndex> {
        self.cpus.get(cpu.index())?.current
    }

    /// The tasks that wait on `cpu`, in the order in which they came.
    pub fn queue(&self, cpu: Cpu) -> impl Iterator<Item = TaskIndex> {
        self.cpus.get(cpu.index()).into_iter().flat_map(|cpu| cpu.queue.tasks()).inspect(|_| self.look(1))
    }

    /// The tasks that wait on `cpu`, as the kernel's balancers look at them (`cfs_tasks`): the one that has neither run nor joined for the longest time
    /// comes first.
    pub fn listed(&self, cpu: Cpu) -> impl Iterator<Item = TaskIndex> {
        self.cpus.get(cpu.index()).into_iter().flat_map(|cpu| cpu.queue.listed()).inspect(|_| self.look(1))
    }

    /// Whether `cpu` is overloaded: two tasks of the fair class run or wait there.
    pub fn is_overloaded(&self, cpu: Cpu) -> bool {
        let is_fair = |task: &TaskIndex| self.tasks[*task as usize].rank == FAIR;
        let runs = usize::from(self.running(cpu).is_some_and(|task| is_fair(&task)));
        self.queue(cpu).filter(is_fair).take(2 - runs).count() + runs == 2
    }

    /// The CPU on which a task waits; nothing where it does not.
    pub(crate) fn queued_on(&self, task: TaskIndex) -> Option<Cpu> {
        match self.tasks.get(task as usize)?.place {
            Place::Queued(cpu) => Some(cpu),
            Place::Away | Place::Running(_) => None,
        }
    }

    /// The number of tasks that wait on `cpu`.
    pub fn queue_length(&self, cpu: Cpu) -> usize {
        self.cpus.get(cpu.index()).map_or(0, |cpu| cpu.queue.len())
    }

    /// The task that runs next on `cpu` by the order of its queue.
    pub(crate) fn first(&self, cpu: Cpu) -> Option<TaskIndex> {
        let (first, looked) = self.cpus.get(cpu.index())?.queue.first(|_| true);
        self.look(looked);
        first.map(|(_, task)| task)
    }

    /// The number of tasks in all run queues.
    pub fn waiting(&self) -> u64 {
        self.waiting
    }

    /// Whether `cpu` takes part, idles, and has an empty run queue.
    pub fn is_free(&self, cpu: Cpu) -> bool {
        self.cpus.get(cpu.index()).is_some_and(|cpu| cpu.usable && cpu.current.is_none() && cpu.queue.is_empty())
    }

    /// The other CPUs that take part, the nearest first. Without a topology all are at the distance [`Distance::Machine`].
    pub fn nearest(&self, cpu: Cpu) -> impl Iterator<Item = (Distance, Cpu)> {
        self.near.nearest(cpu).inspect(|_| self.look(1))
    }

    /// The distance between two CPUs; [`Distance::Machine`] where it is not known.
    pub fn distance(&self, a: Cpu, b: Cpu) -> Distance {
        self.near.distance(a, b)
    }

    /// Whether a task may use `cpu`, as far as the trace and the machine file show the CPUs that it may use.
    pub fn may_use(&self, task: TaskIndex, cpu: Cpu) -> bool {
        let allowed = self.tasks[task as usize].allowed;
        self.cpus.get(cpu.index()).is_some_and(|cpu| cpu.usable)
            && allowed.is_none_or(|set| self.model.sets[set as usize].has(cpu))
    }

    /// Returns the waiting task that comes first by the order of queues, of all that may use `cpu`.
    pub fn first_of_all(&self, cpu: Cpu) -> Option<TaskIndex> {
        if self.waiting == 0 {
            return None;
        }
        let mut first: Option<(i32, i64, i64, TaskIndex)> = None;
        self.look(self.cpus.len() as u64);
        for other in self.cpus.iter().filter(|other| !other.queue.is_empty()) {
            let (found, looked) = other.queue.first(|task| self.may_use(task, cpu));
            self.look(looked);
            let Some((_, task)) = found else { continue };
            let sim = &self.tasks[task as usize];
            // Virtual times of different queues have different origins.
            let fair = sim.virtual_ns as i64 - other.virtual_ns as i64;
            let key = (sim.rank, if self.order == Order::Fair { fair } else { 0 }, sim.joined, task);
            if first.is_none_or(|first| key < first) {
                first = Some(key);
            }
        }
        first.map(|(.., task)| task)
    }

    /// Returns the CPU on which the scheduler of the trace would queue a task. A wakeup that the trace placed on a busy CPU beside an idle
    /// one goes to the CPU of the same kind: the previous one, the waker's, or the one of the trace. One that it placed on an idle CPU, or
    /// that found none, goes to the previous CPU or to that of the trace, if either idles now, else to the nearest idle one under the same
    /// last-level cache, if the wakeups of the trace seek idle CPUs.
    pub fn usual(&self, placement: &Placement) -> Cpu {
        let recorded = placement.recorded;
        let may = |cpu: Cpu| self.may_use(placement.task, cpu);
        let base = match recorded.placed {
            _ if placement.is_new => recorded.cpu,
            PlacedOn::Waker => placement.waker,
            PlacedOn::Previous => placement.previous,
            PlacedOn::Other => recorded.cpu,
        };
        let base = if may(base) || !may(recorded.cpu) { base } else { recorded.cpu };
        if self.wakeups == Wakeups::AsRecorded {
            return recorded.cpu;
        }
        if !(recorded.seeks_idle && self.model.taken.wakeups_seek_idle) {
            return base;
        }
        let has_caches = self.nearest(base).next().is_some_and(|(distance, _)| distance <= Distance::Llc);
        let within = if has_caches { Distance::Llc } else { Distance::Machine };
        let near = self.nearest(base).take_while(|(distance, _)| *distance <= within).map(|(_, cpu)| cpu);
        let first = if placement.is_new { base } else { placement.previous };
        let mut sought = [first, base, recorded.cpu].into_iter().chain(near);
        sought.find(|cpu| self.is_free(*cpu) && may(*cpu)).unwrap_or(base)
    }
}

//! A small scheduler: CPUs, tasks that run, sleep, wake one another, fork and exit, a balancer,
//! bound tasks. It emits the events that a kernel would record, and keeps its true run queues.

mod balancer;
mod hotplug;
mod probes;
mod throttling;

pub use balancer::is_stopper;
pub use throttling::with_throttling;

use sched::balancer::NewIdleOutcome;
use sched::{Cause, Comm, Cpu, EventKind, Pid, PrevState, SchedEvent, TaskRef, Ts};
use std::collections::{BTreeMap, BTreeSet};

/// A small generator of random numbers (xorshift64*). The same seed gives the same numbers on every machine.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// Returns a generator with this seed.
    pub fn new(seed: u64) -> Rng {
        Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Returns a number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % n.max(1)
    }

    /// Returns one of `items`.
    pub fn pick<'i, T>(&mut self, items: &'i [T]) -> Option<&'i T> {
        items.get(self.below(items.len()))
    }
}

/// The true state of the machine after an event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Truth {
    /// The PID of the running task of each CPU; 0 for the idle task, [`Truth::OFFLINE`] for an offline CPU.
    pub current: Vec<i32>,
    /// The PIDs of the waiting tasks of each CPU, in the order of their arrival.
    pub queues: Vec<Vec<i32>>,
}

impl Truth {
    /// Stands for the running task of a CPU that is offline.
    pub const OFFLINE: i32 = -2;
}

/// A simulated run.
#[derive(Clone, Debug)]
pub struct Simulation {
    /// The events, in the order of time and CPU.
    pub events: Vec<SchedEvent>,
    /// The true state before the first event.
    pub initial: Truth,
    /// The true state after each event.
    pub truth: Vec<Truth>,
    /// The number of CPUs of the machine.
    pub cpus: u32,
    /// The cause of each event that is a migration; only [`Simulation::balanced`] sets it.
    pub causes: Vec<Option<Cause>>,
    /// The outcome of new-idle balancing before each event that is a switch to idle; only [`Simulation::probed`] sets it.
    pub newidles: Vec<Option<NewIdleOutcome>>,
}

struct World {
    rng: Rng,
    now: i64,
    state: Truth,
    asleep: BTreeMap<i32, u32>,
    bound: BTreeSet<i32>,
    /// The tasks whose state the events have shown; a migration alone does not. A redundant wakeup of any other
    /// waiting task would suggest that it slept at the start.
    seen: BTreeSet<i32>,
    next_pid: i32,
    events: Vec<SchedEvent>,
    truth: Vec<Truth>,
    /// Whether tasks are balanced as a kernel does it, each migration with its cause.
    like_a_kernel: bool,
    /// The `common_flags` of the next event.
    flags: u8,
    /// The cause of the next migration.
    cause: Option<Cause>,
    /// Whether the next events follow without long pauses.
    hurry: bool,
    causes: Vec<Option<Cause>>,
    /// Whether CPUs go offline and come back.
    hotplug: bool,
    /// Whether probes on the balancer are recorded, and whether its function for new-idle balancing is inlined.
    probed: bool,
    inlined: bool,
    /// The outcome before the next switch.
    newidle: Option<NewIdleOutcome>,
    newidles: Vec<Option<NewIdleOutcome>>,
}

fn task(pid: i32) -> TaskRef {
    let prio = if is_stopper(pid) { 0 } else { 120 };
    TaskRef { pid: Pid(pid), prio, comm: Comm::new(balancer::name_of(pid).as_bytes()) }
}

impl Simulation {
    /// Simulates `cpus` CPUs and some tasks for about `steps` decisions.
    pub fn run(seed: u64, cpus: u32, steps: usize) -> Simulation {
        Simulation::of(World::new(Rng::new(seed), cpus), cpus, steps)
    }

    /// Simulates with the balancers of a kernel, in their contexts; [`Simulation::causes`] has the cause of each
    /// migration.
    pub fn balanced(seed: u64, cpus: u32, steps: usize) -> Simulation {
        let world = World { like_a_kernel: true, ..World::new(Rng::new(seed), cpus) };
        Simulation::of(world, cpus, steps)
    }

    /// Simulates with the balancers of a kernel and with the records of probes before switches to idle;
    /// [`Simulation::newidles`] has the outcome of each of these balances.
    pub fn probed(seed: u64, cpus: u32, steps: usize) -> Simulation {
        let inlined = seed.is_multiple_of(3);
        let world = World { like_a_kernel: true, probed: true, inlined, ..World::new(Rng::new(seed), cpus) };
        Simulation::of(world, cpus, steps)
    }

    fn of(mut world: World, cpus: u32, steps: usize) -> Simulation {
        let initial = world.state.clone();
        for _ in 0..steps {
            world.step();
        }
        let World { events, truth, causes, newidles, .. } = world;
        Simulation { events, initial, truth, cpus, causes, newidles }
    }

    /// Returns the tasks and CPUs that occur in the events. No reader can infer anything about others.
    pub fn witnessed(&self) -> (BTreeSet<i32>, BTreeSet<u32>) {
        let mut tasks = BTreeSet::new();
        for event in &self.events {
            tasks.insert(event.pid.0);
            match event.kind {
                EventKind::Switch { prev, next, .. } => tasks.extend([prev.pid.0, next.pid.0]),
                EventKind::Waking { task, .. }
                | EventKind::Wakeup { task, .. }
                | EventKind::WakeupNew { task, .. }
                | EventKind::Migrate { task, .. } => drop(tasks.insert(task.pid.0)),
                _ => {}
            }
        }
        (tasks, self.events.iter().map(|e| e.cpu.0).collect())
    }

    /// Returns the same run with losses: on each CPU some stretches of events are replaced by a mark at the time of
    /// the last event before them. With each event comes the index of the true state after it.
    pub fn lossy(&self, seed: u64) -> (Vec<SchedEvent>, Vec<Option<usize>>) {
        let mut rng = Rng::new(seed);
        let mut gone: BTreeMap<u32, u64> = BTreeMap::new();
        let mut last: BTreeMap<u32, Ts> = BTreeMap::new();
        let mut kept: Vec<(SchedEvent, Option<usize>)> = Vec::new();
        let mut losing: BTreeMap<u32, usize> = BTreeMap::new();
        // A gap without a later event leaves no mark, so the last event of each CPU stays.
        let final_event: BTreeMap<u32, usize> = self.events.iter().enumerate().map(|(i, e)| (e.cpu.0, i)).collect();
        for (truth, event) in self.events.iter().enumerate() {
            let left = losing.entry(event.cpu.0).or_default();
            if *left == 0 && rng.below(60) == 0 {
                *left = 1 + rng.below(12);
            }
            if *left > 0 && final_event[&event.cpu.0] != truth {
                *left -= 1;
                *gone.entry(event.cpu.0).or_default() += 1;
                continue;
            }
            if let Some(count) = gone.remove(&event.cpu.0) {
                let ts = last.get(&event.cpu.0).copied().unwrap_or(Ts(i64::MIN));
                let count = (rng.below(3) > 0).then_some(count);
                let lost = EventKind::Lost { count: count.map(sched::LostCount::of) };
                kept.push((SchedEvent { ts, cpu: event.cpu, pid: Pid::IDLE, flags: 0, kind: lost }, None));
            }
            last.insert(event.cpu.0, event.ts);
            kept.push((*event, Some(truth)));
        }
        let start = kept.iter().filter(|(_, t)| t.is_some()).map(|(e, _)| e.ts).min().unwrap_or_default();
        for (event, _) in &mut kept {
            event.ts = event.ts.max(start);
        }
        // The sort is stable: a mark stays behind the event that it follows.
        kept.sort_by_key(|(e, _)| (e.ts, e.cpu));
        kept.into_iter().unzip()
    }
}

impl World {
    fn new(mut rng: Rng, cpus: u32) -> World {
        let n = cpus as usize;
        let mut state = Truth { current: vec![0; n], queues: vec![Vec::new(); n] };
        let mut asleep = BTreeMap::new();
        let mut bound = BTreeSet::new();
        let tasks = 2 + rng.below(4 * n);
        for pid in (100..).take(tasks) {
            let cpu = rng.below(n);
            match rng.below(3) {
                0 if state.current[cpu] == 0 => state.current[cpu] = pid,
                1 => state.queues[cpu].push(pid),
                _ => drop(asleep.insert(pid, cpu as u32)),
            }
            if rng.below(6) == 0 {
                bound.insert(pid);
            }
        }
        World {
            rng,
            now: 1_000_000,
            state,
            asleep,
            bound,
            seen: BTreeSet::new(),
            next_pid: 100 + tasks as i32,
            events: Vec::new(),
            truth: Vec::new(),
            like_a_kernel: false,
            flags: 0,
            cause: None,
            hurry: false,
            causes: Vec::new(),
            hotplug: false,
            probed: false,
            inlined: false,
            newidle: None,
            newidles: Vec::new(),
        }
    }

    /// Emits an event on `cpu`. The current state is recorded as the state after it.
    fn emit(&mut self, cpu: usize, pid: i32, kind: EventKind) {
        let same_cpu = self.events.last().is_some_and(|e| e.cpu.index() == cpu);
        // Within a CPU some time stamps are equal; otherwise time passes, sometimes much of it.
        self.now += match self.rng.below(40) {
            0 if same_cpu => 0,
            1 if !self.hurry => 200_000_000,
            n => 1 + 50 * n as i64,
        };
        self.seen.insert(pid);
        self.events.push(SchedEvent { ts: Ts(self.now), cpu: Cpu(cpu as u32), pid: Pid(pid), flags: self.flags, kind });
        let cause = self.cause.take();
        self.causes.push(cause.filter(|_| matches!(kind, EventKind::Migrate { .. })));
        let newidle = if let EventKind::Switch { .. } = kind { self.newidle.take() } else { None };
        self.newidles.push(newidle);
        self.truth.push(self.state.clone());
    }

    /// Returns a CPU that is online.
    fn cpu(&mut self) -> usize {
        let online = self.online();
        online[self.rng.below(online.len())]
    }

    fn online(&self) -> Vec<usize> {
        (0..self.state.current.len()).filter(|cpu| self.state.current[*cpu] != Truth::OFFLINE).collect()
    }

    fn step(&mut self) {
        if self.hotplug && self.rng.below(15) == 0 {
            return self.plug();
        }
        match self.rng.below(20) {
            0..=5 => self.wake(),
            6..=10 => self.block(),
            11 | 12 => self.preempt(),
            13..=15 => self.dispatch(),
            16 | 17 => self.balance(),
            18 => self.fork(),
            _ => self.oddity(),
        }
    }

    /// An idle CPU runs the first task of its queue.
    fn dispatch(&mut self) {
        let cpu = self.cpu();
        if self.state.current[cpu] == 0 && !self.state.queues[cpu].is_empty() {
            self.switch(cpu, PrevState::RUNNABLE, false);
        }
    }

    /// Switches `cpu` to the first task of its queue. With `requeue` the previous task is put at the end of the queue.
    fn switch(&mut self, cpu: usize, how: PrevState, requeue: bool) {
        let prev = self.state.current[cpu];
        if self.probed && prev != 0 && !requeue && self.state.queues[cpu].is_empty() {
            self.newidle = Some(self.fails_to_pull(cpu));
        }
        let next = if self.state.queues[cpu].is_empty() { 0 } else { self.state.queues[cpu].remove(0) };
        if requeue {
            self.state.queues[cpu].push(prev);
        }
        self.state.current[cpu] = next;
        self.seen.insert(next);
        let on = |pid: i32| match pid {
            0 => TaskRef { comm: Comm::new(format!("swapper/{cpu}").as_bytes()), ..task(pid) },
            _ => task(pid),
        };
        self.emit(cpu, prev, EventKind::Switch { prev: on(prev), state: how, next: on(next) });
    }

    fn block(&mut self) {
        let cpu = self.cpu();
        let prev = self.state.current[cpu];
        if prev == 0 {
            return;
        }
        if self.rng.below(12) == 0 {
            self.emit(cpu, prev, EventKind::Exit { pid: Pid(prev) });
            self.switch(cpu, PrevState::DEAD, false);
        } else {
            self.asleep.insert(prev, cpu as u32);
            self.switch(cpu, PrevState::asleep(1), false);
        }
    }

    fn preempt(&mut self) {
        let cpu = self.cpu();
        if self.state.current[cpu] != 0 && !self.state.queues[cpu].is_empty() {
            let how = if self.rng.below(2) == 0 { PrevState::RUNNABLE } else { PrevState::PREEMPTED };
            self.switch(cpu, how, true);
        }
    }

    /// Wakes a sleeping task: the waking CPU announces it, may migrate it, and enqueues it on the target CPU.
    fn wake(&mut self) {
        let sleepers: Vec<(i32, u32)> = self.asleep.iter().map(|(p, c)| (*p, *c)).collect();
        let Some(&(pid, last)) = self.rng.pick(&sleepers) else { return };
        let waker = self.cpu();
        self.announce(waker, pid, last);
        self.place(waker, pid, last);
    }

    /// The CPU `waker` is about to wake a task that last ran on `last`.
    fn announce(&mut self, waker: usize, pid: i32, last: u32) {
        self.seen.insert(pid);
        self.emit(waker, self.state.current[waker], EventKind::Waking { task: task(pid), target: Cpu(last) });
    }

    /// Completes the wakeup that [`World::announce`] began.
    fn place(&mut self, waker: usize, pid: i32, last: u32) {
        let is_bound = self.bound.contains(&pid) && self.state.current[last as usize] != Truth::OFFLINE;
        let target = if is_bound { last as usize } else { self.cpu() };
        let by = self.state.current[waker];
        if target != last as usize {
            self.asleep.insert(pid, target as u32);
            let migrate = EventKind::Migrate { task: task(pid), orig: Cpu(last), dest: Cpu(target as u32) };
            self.cause = Some(Cause::Wakeup);
            self.emit(waker, by, migrate);
        }
        let on = if self.rng.below(2) == 0 { waker } else { target };
        self.asleep.remove(&pid);
        self.state.queues[target].push(pid);
        self.emit(on, self.state.current[on], EventKind::Wakeup { task: task(pid), target: Cpu(target as u32) });
    }

    /// A CPU, idle or not, pulls a waiting task from another one; or a third CPU does it on its behalf.
    fn balance(&mut self) {
        if self.like_a_kernel {
            return self.balance_like_a_kernel();
        }
        let (from, to, on) = (self.cpu(), self.cpu(), self.cpu());
        let free: Vec<i32> = self.state.queues[from].iter().copied().filter(|p| !self.bound.contains(p)).collect();
        let Some(&pid) = self.rng.pick(&free).filter(|_| from != to) else { return };
        self.state.queues[from].retain(|p| *p != pid);
        self.state.queues[to].push(pid);
        let kind = EventKind::Migrate { task: task(pid), orig: Cpu(from as u32), dest: Cpu(to as u32) };
        self.emit(on, self.state.current[on], kind);
    }

    fn fork(&mut self) {
        let cpu = self.cpu();
        let parent = self.state.current[cpu];
        if parent == 0 {
            return;
        }
        let child = self.next_pid;
        self.next_pid += 1;
        self.emit(
            cpu,
            parent,
            EventKind::Fork { parent: Pid(parent), child: Pid(child), child_comm: task(child).comm },
        );
        let target = self.cpu();
        self.state.queues[target].push(child);
        self.emit(cpu, parent, EventKind::WakeupNew { task: task(child), target: Cpu(target as u32) });
    }

    /// Emits one of the sequences that are rare but valid.
    fn oddity(&mut self) {
        let cpu = self.cpu();
        let current = self.state.current[cpu];
        match self.rng.below(5) {
            // A running task is woken.
            0 if current != 0 => {
                let on = self.cpu();
                let by = self.state.current[on];
                self.emit(on, by, EventKind::Waking { task: task(current), target: Cpu(cpu as u32) });
                self.emit(cpu, current, EventKind::Wakeup { task: task(current), target: Cpu(cpu as u32) });
            }
            // A waiting task is woken.
            1 => {
                let seen = self.state.queues[cpu].iter().copied().find(|p| self.seen.contains(p));
                if let Some(pid) = seen {
                    self.emit(cpu, current, EventKind::Wakeup { task: task(pid), target: Cpu(cpu as u32) });
                }
            }
            // A wakeup is announced while the task is still running, about to sleep.
            4 if current != 0 => {
                let waker = self.cpu();
                self.announce(waker, current, cpu as u32);
                self.asleep.insert(current, cpu as u32);
                self.switch(cpu, PrevState::asleep(1), false);
                self.place(waker, current, cpu as u32);
            }
            // A sleeping task is migrated (6.12 and later), in some cases for no known reason.
            2 if self.like_a_kernel && self.rng.below(2) == 0 => self.softirq_moves_sleeper(cpu),
            2 => {
                let on = if self.like_a_kernel { self.cpu() } else { cpu };
                if self.like_a_kernel && on == cpu {
                    return;
                }
                let sleepers: Vec<i32> = self.asleep.keys().copied().filter(|p| !self.bound.contains(p)).collect();
                if let Some(&pid) = self.rng.pick(&sleepers) {
                    let from = self.asleep.insert(pid, cpu as u32).unwrap_or(0);
                    let kind = EventKind::Migrate { task: task(pid), orig: Cpu(from), dest: Cpu(cpu as u32) };
                    self.cause = Some(Cause::Unknown);
                    self.emit(on, self.state.current[on], kind);
                }
            }
            // An event of another kind is recorded.
            _ => self.emit(cpu, current, EventKind::Other { id: 999 }),
        }
    }
}

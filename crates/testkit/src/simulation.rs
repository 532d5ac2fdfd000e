//! A small scheduler: CPUs, tasks that run, sleep, wake one another, fork and exit, a balancer,
//! bound tasks. It writes the events that a kernel would, and knows its run queues.

mod balancer;
mod hotplug;

pub use balancer::is_stopper;

use sched::{Cause, Comm, Cpu, Kind, Pid, PrevState, SchedEvent, TaskRef, Ts};
use std::collections::{BTreeMap, BTreeSet};

/// A small generator of random numbers (xorshift64*): the same seed, the same numbers, anywhere.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// From a seed.
    pub fn new(seed: u64) -> Rng {
        Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % n.max(1)
    }

    /// One of `items`.
    pub fn pick<'i, T>(&mut self, items: &'i [T]) -> Option<&'i T> {
        items.get(self.below(items.len()))
    }
}

/// The true state of the machine after an event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Truth {
    /// For each CPU the task that runs; 0 for the idle task, [`Truth::OFFLINE`] for nothing.
    pub current: Vec<i32>,
    /// For each CPU those that wait, in the order they came.
    pub queues: Vec<Vec<i32>>,
}

impl Truth {
    /// A CPU that is offline runs nothing.
    pub const OFFLINE: i32 = -2;
}

/// A simulated run.
#[derive(Clone, Debug)]
pub struct Simulation {
    /// The events, in (time, CPU) order.
    pub events: Vec<SchedEvent>,
    /// The truth before the first event.
    pub initial: Truth,
    /// The truth after each event.
    pub truth: Vec<Truth>,
    /// CPUs of the machine.
    pub cpus: u32,
    /// For each event that is a migration why it happened; only of [`Simulation::balanced`].
    pub causes: Vec<Option<Cause>>,
}

struct World {
    rng: Rng,
    now: i64,
    state: Truth,
    asleep: BTreeMap<i32, u32>,
    bound: BTreeSet<i32>,
    /// Tasks whose state the events have shown. A migration alone does not: only for one of these
    /// a wakeup while it waits tells nothing wrong about the start.
    seen: BTreeSet<i32>,
    next_pid: i32,
    events: Vec<SchedEvent>,
    truth: Vec<Truth>,
    /// The balancers are those of a kernel, and tell why.
    like_a_kernel: bool,
    /// The flags of the next event, the cause of the next migration,
    flags: u8,
    cause: Option<Cause>,
    /// and no long time before the next events.
    hurry: bool,
    causes: Vec<Option<Cause>>,
    /// CPUs go offline and come back.
    hotplug: bool,
}

fn task(pid: i32) -> TaskRef {
    let prio = if is_stopper(pid) { 0 } else { 120 };
    TaskRef { pid: Pid(pid), prio, comm: Comm::new(balancer::name_of(pid).as_bytes()) }
}

impl Simulation {
    /// Runs `cpus` CPUs and some tasks for about `steps` decisions.
    pub fn run(seed: u64, cpus: u32, steps: usize) -> Simulation {
        Simulation::of(World::new(Rng::new(seed), cpus), cpus, steps)
    }

    /// The same with the balancers of a kernel, in their contexts; [`Simulation::causes`] tells why
    /// each task was migrated.
    pub fn balanced(seed: u64, cpus: u32, steps: usize) -> Simulation {
        let world = World { like_a_kernel: true, ..World::new(Rng::new(seed), cpus) };
        Simulation::of(world, cpus, steps)
    }

    fn of(mut world: World, cpus: u32, steps: usize) -> Simulation {
        let initial = world.state.clone();
        for _ in 0..steps {
            world.step();
        }
        Simulation { events: world.events, initial, truth: world.truth, cpus, causes: world.causes }
    }

    /// The tasks and CPUs that the events tell of: of others nobody can know.
    pub fn witnessed(&self) -> (BTreeSet<i32>, BTreeSet<u32>) {
        let mut tasks = BTreeSet::new();
        for event in &self.events {
            tasks.insert(event.pid.0);
            match event.kind {
                Kind::Switch { prev, next, .. } => tasks.extend([prev.pid.0, next.pid.0]),
                Kind::Waking { task, .. }
                | Kind::Wakeup { task, .. }
                | Kind::WakeupNew { task, .. }
                | Kind::Migrate { task, .. } => drop(tasks.insert(task.pid.0)),
                _ => {}
            }
        }
        (tasks, self.events.iter().map(|e| e.cpu.0).collect())
    }

    /// The same run with losses: on each CPU some stretches of events are gone, a mark in their
    /// place at the time of the last event before each. With each event the place of the truth
    /// after it.
    pub fn lossy(&self, seed: u64) -> (Vec<SchedEvent>, Vec<Option<usize>>) {
        let mut rng = Rng::new(seed);
        let mut gone: BTreeMap<u32, u64> = BTreeMap::new();
        let mut last: BTreeMap<u32, Ts> = BTreeMap::new();
        let mut kept: Vec<(SchedEvent, Option<usize>)> = Vec::new();
        let mut losing: BTreeMap<u32, usize> = BTreeMap::new();
        // A gap that no event follows leaves no mark: the last event of each CPU stays.
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
                let lost = Kind::Lost { count };
                kept.push((SchedEvent { ts, cpu: event.cpu, pid: Pid::IDLE, flags: 0, kind: lost }, None));
            }
            last.insert(event.cpu.0, event.ts);
            kept.push((*event, Some(truth)));
        }
        let start = kept.iter().filter(|(_, t)| t.is_some()).map(|(e, _)| e.ts).min().unwrap_or_default();
        for (event, _) in &mut kept {
            event.ts = event.ts.max(start);
        }
        // Marks stand behind the event they follow.
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
        }
    }

    /// An event on `cpu`, after which the state is as it is now.
    fn emit(&mut self, cpu: usize, pid: i32, kind: Kind) {
        let same_cpu = self.events.last().is_some_and(|e| e.cpu.index() == cpu);
        // Stamps tie within a CPU now and then; elsewhere time passes, sometimes much of it.
        self.now += match self.rng.below(40) {
            0 if same_cpu => 0,
            1 if !self.hurry => 200_000_000,
            n => 1 + 50 * n as i64,
        };
        self.seen.insert(pid);
        self.events.push(SchedEvent { ts: Ts(self.now), cpu: Cpu(cpu as u32), pid: Pid(pid), flags: self.flags, kind });
        let cause = self.cause.take();
        self.causes.push(cause.filter(|_| matches!(kind, Kind::Migrate { .. })));
        self.truth.push(self.state.clone());
    }

    /// One that is online.
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

    /// An idle CPU takes the first of its queue.
    fn dispatch(&mut self) {
        let cpu = self.cpu();
        if self.state.current[cpu] == 0 && !self.state.queues[cpu].is_empty() {
            self.switch(cpu, PrevState::RUNNABLE, false);
        }
    }

    /// Switches `cpu` to the first of its queue. `requeue`: the old task goes to its end.
    fn switch(&mut self, cpu: usize, how: PrevState, requeue: bool) {
        let prev = self.state.current[cpu];
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
        self.emit(cpu, prev, Kind::Switch { prev: on(prev), state: how, next: on(next) });
    }

    fn block(&mut self) {
        let cpu = self.cpu();
        let prev = self.state.current[cpu];
        if prev == 0 {
            return;
        }
        if self.rng.below(12) == 0 {
            self.emit(cpu, prev, Kind::Exit { pid: Pid(prev) });
            self.switch(cpu, PrevState::DEAD, false);
        } else {
            self.asleep.insert(prev, cpu as u32);
            self.switch(cpu, PrevState::blocked(1), false);
        }
    }

    fn preempt(&mut self) {
        let cpu = self.cpu();
        if self.state.current[cpu] != 0 && !self.state.queues[cpu].is_empty() {
            let how = if self.rng.below(2) == 0 { PrevState::RUNNABLE } else { PrevState::PREEMPTED };
            self.switch(cpu, how, true);
        }
    }

    /// Wakes a sleeper: announced on one CPU, perhaps moved, placed on another, perhaps from there.
    fn wake(&mut self) {
        let sleepers: Vec<(i32, u32)> = self.asleep.iter().map(|(p, c)| (*p, *c)).collect();
        let Some(&(pid, last)) = self.rng.pick(&sleepers) else { return };
        let waker = self.cpu();
        self.announce(waker, pid, last);
        self.place(waker, pid, last);
    }

    /// A waker is about to wake a task that last ran on `last`.
    fn announce(&mut self, waker: usize, pid: i32, last: u32) {
        self.seen.insert(pid);
        self.emit(waker, self.state.current[waker], Kind::Waking { task: task(pid), target: Cpu(last) });
    }

    /// It does so.
    fn place(&mut self, waker: usize, pid: i32, last: u32) {
        let is_bound = self.bound.contains(&pid) && self.state.current[last as usize] != Truth::OFFLINE;
        let target = if is_bound { last as usize } else { self.cpu() };
        let by = self.state.current[waker];
        if target != last as usize {
            self.asleep.insert(pid, target as u32);
            let migrate = Kind::Migrate { task: task(pid), orig: Cpu(last), dest: Cpu(target as u32) };
            self.cause = Some(Cause::Wakeup);
            self.emit(waker, by, migrate);
        }
        let on = if self.rng.below(2) == 0 { waker } else { target };
        self.asleep.remove(&pid);
        self.state.queues[target].push(pid);
        self.emit(on, self.state.current[on], Kind::Wakeup { task: task(pid), target: Cpu(target as u32) });
    }

    /// A CPU, idle or not, pulls a waiter from another; or a third one does it on its behalf.
    fn balance(&mut self) {
        if self.like_a_kernel {
            return self.balance_like_a_kernel();
        }
        let (from, to, on) = (self.cpu(), self.cpu(), self.cpu());
        let free: Vec<i32> = self.state.queues[from].iter().copied().filter(|p| !self.bound.contains(p)).collect();
        let Some(&pid) = self.rng.pick(&free).filter(|_| from != to) else { return };
        self.state.queues[from].retain(|p| *p != pid);
        self.state.queues[to].push(pid);
        let kind = Kind::Migrate { task: task(pid), orig: Cpu(from as u32), dest: Cpu(to as u32) };
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
        self.emit(cpu, parent, Kind::Fork { parent: Pid(parent), child: Pid(child), child_comm: task(child).comm });
        let target = self.cpu();
        self.state.queues[target].push(child);
        self.emit(cpu, parent, Kind::WakeupNew { task: task(child), target: Cpu(target as u32) });
    }

    /// What is rare, and normal.
    fn oddity(&mut self) {
        let cpu = self.cpu();
        let current = self.state.current[cpu];
        match self.rng.below(5) {
            // A task that runs, or waits, is woken.
            0 if current != 0 => {
                let on = self.cpu();
                let by = self.state.current[on];
                self.emit(on, by, Kind::Waking { task: task(current), target: Cpu(cpu as u32) });
                self.emit(cpu, current, Kind::Wakeup { task: task(current), target: Cpu(cpu as u32) });
            }
            1 => {
                let seen = self.state.queues[cpu].iter().copied().find(|p| self.seen.contains(p));
                if let Some(pid) = seen {
                    self.emit(cpu, current, Kind::Wakeup { task: task(pid), target: Cpu(cpu as u32) });
                }
            }
            // One is announced that is still about to sleep.
            4 if current != 0 => {
                let waker = self.cpu();
                self.announce(waker, current, cpu as u32);
                self.asleep.insert(current, cpu as u32);
                self.switch(cpu, PrevState::blocked(1), false);
                self.place(waker, current, cpu as u32);
            }
            // A sleeper is moved (6.12 and later).
            2 => {
                let sleepers: Vec<i32> = self.asleep.keys().copied().filter(|p| !self.bound.contains(p)).collect();
                if let Some(&pid) = self.rng.pick(&sleepers) {
                    let from = self.asleep.insert(pid, cpu as u32).unwrap_or(0);
                    let kind = Kind::Migrate { task: task(pid), orig: Cpu(from), dest: Cpu(cpu as u32) };
                    self.cause = Some(Cause::Unknown);
                    self.emit(cpu, current, kind);
                }
            }
            // Something else happens.
            _ => self.emit(cpu, current, Kind::Other { id: 999 }),
        }
    }
}

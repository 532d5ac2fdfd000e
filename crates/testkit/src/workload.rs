//! Work with known programs, on a machine with known rules: the same work can be run under two policies.
//!
//! The simulation is written for plainness: at each step it looks at every CPU and every timer. It shares nothing with the
//! engine of `schedviz whatif`, which is compared with it.

use crate::Rng;
use sched::{Comm, Cpu, EventKind, Pid, PrevState, SchedEvent, TaskRef, Ts};

/// An operation of a task's program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Uses the CPU for this time, in nanoseconds.
    Run(i64),
    /// Wakes the task with this index, or lets its next [`Operation::Wait`] pass.
    Wake(usize),
    /// Sleeps until another task wakes this one.
    Wait,
    /// Sleeps for this time, in nanoseconds.
    Nap(i64),
    /// Sleeps until this instant, in nanoseconds from the start; passes if that has come.
    NapUntil(i64),
}

/// A task with its program.
#[derive(Clone, Debug)]
pub struct Worker {
    /// The CPU on whose queue the task begins.
    pub cpu: usize,
    /// The kernel priority: below 100 real time.
    pub prio: i32,
    /// The CPUs that the task may use; none for all.
    pub allowed: Option<Vec<usize>>,
    /// The operations, in order.
    pub program: Vec<Operation>,
}

impl Worker {
    /// Returns a fair task that begins on the queue of `cpu`, and may use all CPUs.
    pub fn on(cpu: usize, program: Vec<Operation>) -> Worker {
        Worker { cpu, prio: 120, allowed: None, program }
    }

    fn may_use(&self, cpu: usize) -> bool {
        self.allowed.as_ref().is_none_or(|cpus| cpus.contains(&cpu))
    }
}

/// Tasks on a machine with a queue for each CPU. Each queue is served first in, first out, real-time tasks first; a woken task joins
/// the queue of the CPU on which it last ran.
#[derive(Clone, Debug)]
pub struct Workload {
    /// The number of CPUs.
    pub cpus: usize,
    /// The tasks; the PID of each is 100 plus its index.
    pub workers: Vec<Worker>,
    /// The time that a steal takes, where a CPU that would go idle takes a task that waits on the next CPU with two fair ones: of those that it may run
    /// the fair one whose latest run, or joining after that, began first.
    pub steal: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    Runs(usize),
    Queued(usize),
    Waits,
    NapsUntil(i64),
    Done,
}

struct Shop<'w> {
    work: &'w Workload,
    now: i64,
    doing: Vec<Doing>,
    next: Vec<usize>,
    left: Vec<i64>,
    last: Vec<usize>,
    passes: Vec<usize>,
    current: Vec<Option<usize>>,
    queues: Vec<Vec<usize>>,
    /// The number of the beginning of each task's latest run or of its joining after that, and of the latest of all.
    began: Vec<u64>,
    beginnings: u64,
    /// The instant at which a stolen task runs.
    pending: Vec<Option<i64>>,
    events: Vec<SchedEvent>,
}

/// The start of a run on the trace's clock, in nanoseconds.
const START: i64 = 1_000_000;

impl Workload {
    /// The number of the event that a task emits before it naps for some time.
    pub const NAP_CALL: u16 = 7;
    /// The number of the event that a task emits before it naps until an instant.
    pub const NAP_UNTIL_CALL: u16 = 8;

    /// Returns random work whose dependencies all show in the trace: each task is woken by one other, for which it waits from its start on.
    /// `with_all`: with timers, bound tasks and real-time tasks as well.
    pub fn random(seed: u64, with_all: bool) -> Workload {
        use Operation::{Nap, NapUntil, Run, Wait, Wake};
        let mut rng = Rng::new(seed);
        let cpus = 2 + rng.below(5);
        let tasks = cpus + rng.below(3 * cpus);
        let mut workers: Vec<Worker> = Vec::new();
        for index in 0..tasks {
            let run = |rng: &mut Rng| Run(1 + rng.below(5_000_000) as i64);
            let mut program = Vec::new();
            // Most tasks begin queued, the others are woken by one before them.
            if index > 1 && rng.below(3) == 0 {
                let waker = rng.below(index);
                program.push(Wait);
                let at = 1 + rng.below(workers[waker].program.len());
                workers[waker].program.insert(at, Wake(index));
            }
            for _ in 0..1 + rng.below(4) {
                program.push(run(&mut rng));
                if with_all && rng.below(3) == 0 {
                    let (nap, until) = (1 + rng.below(4_000_000) as i64, 1 + rng.below(20_000_000) as i64);
                    program.push(if rng.below(2) == 0 { Nap(nap) } else { NapUntil(until) });
                    program.push(run(&mut rng));
                }
            }
            let mut worker = Worker::on(rng.below(cpus), program);
            if with_all {
                worker.allowed = (rng.below(5) == 0).then(|| vec![worker.cpu]);
                worker.prio = if rng.below(8) == 0 { 10 } else { 120 };
            }
            workers.push(worker);
        }
        Workload { cpus, workers, steal: None }
    }

    /// Runs the work until every task has come to the end of its program or sleeps for ever, and returns the events that a kernel would
    /// record. The last one stands a microsecond behind the end.
    pub fn run(&self) -> Vec<SchedEvent> {
        let n = self.workers.len();
        let mut shop = Shop {
            work: self,
            now: START,
            doing: self.workers.iter().map(|worker| Doing::Queued(worker.cpu)).collect(),
            next: vec![0; n],
            left: vec![0; n],
            last: self.workers.iter().map(|worker| worker.cpu).collect(),
            passes: vec![0; n],
            current: vec![None; self.cpus],
            queues: vec![Vec::new(); self.cpus],
            began: vec![0; n],
            beginnings: 0,
            pending: vec![None; self.cpus],
            events: Vec::new(),
        };
        for (index, worker) in self.workers.iter().enumerate() {
            shop.join(worker.cpu, index);
        }
        for cpu in 0..self.cpus {
            shop.emit(cpu, 0, EventKind::Other { id: 0 });
        }
        // A sleeper at the start has announced itself by no event: its first operation is taken as it is.
        for (index, worker) in self.workers.iter().enumerate() {
            if worker.program.first() == Some(&Operation::Wait) {
                shop.queues[worker.cpu].retain(|queued| *queued != index);
                (shop.doing[index], shop.next[index]) = (Doing::Waits, 1);
            }
        }
        for cpu in 0..self.cpus {
            shop.fill(cpu, PrevState::RUNNABLE, false);
        }
        shop.show_wakeups();
        while shop.step() {}
        shop.now += 1_000;
        for cpu in 0..self.cpus {
            shop.emit(cpu, 0, EventKind::Other { id: 0 });
        }
        shop.events
    }
}

impl Shop<'_> {
    fn task(&self, index: usize) -> TaskRef {
        let name = format!("worker{index}");
        TaskRef { pid: Pid(100 + index as i32), prio: self.work.workers[index].prio, comm: Comm::new(name.as_bytes()) }
    }

    fn idle(cpu: usize) -> TaskRef {
        TaskRef { pid: Pid::IDLE, prio: 120, comm: Comm::new(format!("swapper/{cpu}").as_bytes()) }
    }

    fn emit(&mut self, cpu: usize, flags: u8, kind: EventKind) {
        let pid = self.current[cpu].map_or(Pid::IDLE, |index| Pid(100 + index as i32));
        self.events.push(SchedEvent { ts: Ts(self.now), cpu: Cpu(cpu as u32), pid, flags, kind });
    }

    /// Wakes a running task, which has no effect: a trace without any wakeup does not show that tasks waited from the start.
    fn show_wakeups(&mut self) {
        if let Some((cpu, index)) = (0..self.current.len()).find_map(|cpu| Some((cpu, self.current[cpu]?))) {
            let (task, target) = (self.task(index), Cpu(cpu as u32));
            self.emit(cpu, 0x08, EventKind::Waking { task, target });
            self.emit(cpu, 0x08, EventKind::Wakeup { task, target });
        }
    }

    /// Goes to the next instant at which something happens. Returns false if there is none.
    fn step(&mut self) -> bool {
        let runs = self.current.iter().flatten().map(|index| self.now + self.left[*index]);
        let naps =
            self.doing.iter().filter_map(|doing| if let Doing::NapsUntil(at) = doing { Some(*at) } else { None });
        let pending = self.pending.iter().flatten().copied();
        let Some(at) = runs.chain(naps).chain(pending).min() else { return false };
        let passed = at - self.now;
        self.now = at;
        for index in self.current.iter().flatten() {
            self.left[*index] -= passed;
        }
        for index in 0..self.doing.len() {
            if self.doing[index] == Doing::NapsUntil(at) {
                self.wake(index, self.last[index], 0x08);
            }
        }
        for cpu in 0..self.current.len() {
            if self.pending[cpu] == Some(at) {
                self.pending[cpu] = None;
                self.fill(cpu, PrevState::RUNNABLE, false);
            }
            if self.current[cpu].is_some_and(|index| self.left[index] == 0) {
                self.go_on(cpu);
            }
        }
        true
    }

    /// The running task of `cpu` takes its next operations, and others after it.
    fn go_on(&mut self, cpu: usize) {
        while let Some(index) = self.current[cpu]
            && self.left[index] == 0
        {
            let operation = self.work.workers[index].program.get(self.next[index]).copied();
            self.next[index] += 1;
            let call = match operation {
                Some(Operation::Nap(_)) => Some(Workload::NAP_CALL),
                Some(Operation::NapUntil(_)) => Some(Workload::NAP_UNTIL_CALL),
                _ => None,
            };
            call.into_iter().for_each(|id| self.emit(cpu, 0, EventKind::Other { id }));
            match operation {
                Some(Operation::Run(ns)) => self.left[index] = ns,
                Some(Operation::Wake(other)) if self.doing[other] == Doing::Waits => self.wake(other, cpu, 0),
                Some(Operation::Wake(other)) => self.passes[other] += 1,
                Some(Operation::Wait) if self.passes[index] > 0 => self.passes[index] -= 1,
                Some(Operation::NapUntil(at)) if START + at <= self.now => {}
                Some(Operation::Wait) => self.leave(cpu, index, Doing::Waits),
                Some(Operation::Nap(ns)) => self.leave(cpu, index, Doing::NapsUntil(self.now + ns)),
                Some(Operation::NapUntil(at)) => self.leave(cpu, index, Doing::NapsUntil(START + at)),
                None => self.leave(cpu, index, Doing::Done),
            }
        }
    }

    fn leave(&mut self, cpu: usize, index: usize, doing: Doing) {
        self.doing[index] = doing;
        self.fill(cpu, PrevState::asleep(1), true);
    }

    /// The CPU runs the first task of its queue, or steals one, or idles.
    fn fill(&mut self, cpu: usize, state: PrevState, goes_idle: bool) {
        let mut later = None;
        if self.queues[cpu].is_empty() && goes_idle && self.work.steal.is_some() {
            later = self.steal(cpu).then_some(self.work.steal).flatten().filter(|cost| *cost > 0);
        }
        let first = |index: &&usize| self.work.workers[**index].prio.min(100);
        let next = self.queues[cpu].iter().min_by_key(first).copied().filter(|_| later.is_none());
        self.pending[cpu] = later.map(|cost| self.now + cost);
        let prev = self.current[cpu];
        if prev.is_none() && next.is_none() {
            return;
        }
        let [from, to] = [prev, next].map(|task| task.map_or(Self::idle(cpu), |index| self.task(index)));
        self.queues[cpu].retain(|queued| Some(*queued) != next);
        self.emit(cpu, 0, EventKind::Switch { prev: from, state, next: to });
        self.current[cpu] = next;
        if let Some(index) = next {
            self.begins(index);
            (self.doing[index], self.last[index]) = (Doing::Runs(cpu), cpu);
            self.go_on(cpu);
        }
    }

    /// The task begins to run, or joins a queue.
    fn begins(&mut self, index: usize) {
        self.beginnings += 1;
        self.began[index] = self.beginnings;
    }

    fn join(&mut self, cpu: usize, index: usize) {
        self.begins(index);
        self.queues[cpu].push(index);
    }

    fn steal(&mut self, cpu: usize) -> bool {
        let n = self.current.len();
        let is_fair = |index: &usize| self.work.workers[*index].prio >= 100;
        let has_two = |other: &usize| {
            self.queues[*other].iter().chain(&self.current[*other]).filter(|index| is_fair(index)).count() > 1
        };
        let movable = |other: usize| {
            let waiting = self.queues[other].iter().copied().filter(is_fair);
            let first =
                waiting.filter(|index| self.work.workers[*index].may_use(cpu)).min_by_key(|index| self.began[*index]);
            first.map(|index| (other, index))
        };
        let Some((other, index)) = (1..n).map(|step| (cpu + step) % n).filter(has_two).find_map(movable) else {
            return false;
        };
        let (orig, dest) = (Cpu(other as u32), Cpu(cpu as u32));
        let task = self.task(index);
        self.queues[other].retain(|queued| *queued != index);
        self.join(cpu, index);
        self.doing[index] = Doing::Queued(cpu);
        self.emit(cpu, 0, EventKind::Migrate { task, orig, dest });
        true
    }

    fn wake(&mut self, index: usize, on: usize, flags: u8) {
        let (task, cpu) = (self.task(index), self.last[index]);
        let target = Cpu(cpu as u32);
        self.emit(on, flags, EventKind::Waking { task, target });
        self.emit(cpu, 0, EventKind::Wakeup { task, target });
        self.doing[index] = Doing::Queued(cpu);
        self.join(cpu, index);
        match self.current[cpu] {
            None if self.pending[cpu].is_none() => self.fill(cpu, PrevState::RUNNABLE, false),
            Some(running) if task.prio < self.work.workers[running].prio.min(100) => {
                self.doing[running] = Doing::Queued(cpu);
                self.queues[cpu].push(running);
                self.fill(cpu, PrevState::RUNNABLE, false);
            }
            _ => {}
        }
    }
}

//! The four kinds of queued time against a second implementation, which looks at every instant anew.

use crate::oracle::{OFFLINE, Slow};
use sched::kthread::is_bound;
use sched::{
    Affinity, Analysis, ChosenCpus, Comm, Cpu, CpuSet, EventKind, Pass, PerTask, QueuedKinds, QueuedReading,
    QueuedTimes, SchedEvent, SchedState, TaskState, Ts,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use testkit::Simulation;
use workcons::{Options, WorkConservation};

/// The kinds of the queued time of each task.
struct KindsByTask {
    kinds: QueuedKinds,
    begun: PerTask<QueuedReading>,
    sums: BTreeMap<i32, QueuedTimes>,
}

impl KindsByTask {
    fn new(affinity: Option<Arc<Affinity>>) -> KindsByTask {
        let kinds = QueuedKinds::new(ChosenCpus::default(), affinity);
        KindsByTask { kinds, begun: PerTask::default(), sums: BTreeMap::new() }
    }

    fn end(&mut self, task: &sched::Task, cpu: Cpu, now: Ts) {
        let begun = self.begun.take(task.id()).unwrap_or_else(|| self.kinds.first_reading(task, cpu));
        let times = self.kinds.between(&begun, &self.kinds.end_wait(&begun, now)).expect("the same CPU");
        self.sums.entry(task.pid.0).or_default().add(&times);
    }
}

impl Analysis for KindsByTask {
    type Output = BTreeMap<i32, QueuedTimes>;

    fn begin(&mut self, start: Ts, state: &SchedState) {
        self.kinds.begin(start, state);
    }

    fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        self.kinds.follow(event.ts, state);
        for (task, span) in state.turns() {
            if let TaskState::Waiting(cpu) = span.state
                && state.is_observed(cpu)
            {
                self.end(task, cpu, event.ts);
            }
            if let TaskState::Waiting(cpu) = span.next {
                let reading = self.kinds.begin_wait(task, cpu, event.ts, state);
                self.begun.insert(task.id(), reading);
            }
        }
    }

    fn finish(mut self, end: Ts, state: &SchedState) -> Self::Output {
        for task in state.living() {
            if let TaskState::Waiting(cpu) = task.state
                && state.is_observed(cpu)
            {
                self.end(task, cpu, end);
            }
        }
        self.sums.retain(|_, times| times.total() > 0);
        self.sums
    }
}

/// The machine from one event to the next.
struct Instant {
    ts: Ts,
    current: BTreeMap<u32, Option<i32>>,
    waiting: BTreeMap<i32, u32>,
    names: BTreeMap<i32, Comm>,
    /// The CPU that an event showed to have run another task than the state had.
    unrecorded_on: Option<u32>,
}

impl Instant {
    fn queued(&self, cpu: u32) -> u32 {
        self.waiting.values().filter(|on| **on == cpu).count() as u32
    }

    fn is_idle(&self, cpu: u32) -> bool {
        self.current.get(&cpu) == Some(&Some(0)) && self.queued(cpu) == 0
    }

    fn is_pending(&self, cpu: u32) -> bool {
        self.current.get(&cpu) == Some(&Some(0)) && self.queued(cpu) > 0
    }

    /// The number of runnable tasks; nothing for a CPU that is never shorter than others.
    fn length(&self, cpu: u32) -> Option<u32> {
        match self.current.get(&cpu)? {
            None | Some(OFFLINE) => None,
            Some(pid) => Some(u32::from(*pid > 0) + self.queued(cpu)),
        }
    }

    fn is_beside_idle(&self, usable: &BTreeSet<u32>) -> bool {
        usable.iter().any(|cpu| self.is_idle(*cpu))
    }

    fn is_beside_shorter(&self, cpu: u32, usable: &BTreeSet<u32>) -> bool {
        let own = self.length(cpu).unwrap_or(self.queued(cpu));
        usable.iter().filter_map(|other| self.length(*other)).any(|other| other + 2 <= own)
    }
}

/// An interval in which a CPU idles beside its own waiting tasks, by the places of instants.
struct Pending {
    cpu: u32,
    from: usize,
    /// The place of the first instant behind it; that of the last one at the end.
    to: usize,
    is_unrecorded: bool,
}

/// All instants, and the sets of CPUs that tasks may use.
struct Machine {
    instants: Vec<Instant>,
    pending: Vec<Pending>,
    lists: BTreeMap<i32, BTreeSet<u32>>,
}

const HELD: u64 = 1_000_000;

impl Machine {
    fn of(events: &[SchedEvent], lists: BTreeMap<i32, BTreeSet<u32>>) -> Machine {
        let mut instants: Vec<Instant> = Vec::new();
        let mut names: BTreeMap<i32, Comm> = BTreeMap::new();
        Slow::walk(events, &mut |slow, event| {
            let mut unrecorded_on = None;
            if let Some(event) = event {
                match event.kind {
                    EventKind::Switch { prev, next, .. } => {
                        unrecorded_on = (prev.pid.0 != 0).then_some(event.cpu.0);
                        names.extend([(prev.pid.0, prev.comm), (next.pid.0, next.comm)]);
                    }
                    EventKind::Wakeup { task, .. }
                    | EventKind::WakeupNew { task, .. }
                    | EventKind::Waking { task, .. } => {
                        names.insert(task.pid.0, task.comm);
                    }
                    _ => {}
                }
            }
            let ts = event.map_or(events[0].ts, |event| event.ts);
            let (current, waiting, names) = (slow.current.clone(), slow.waiting.clone(), names.clone());
            instants.push(Instant { ts, current, waiting, names, unrecorded_on });
        });
        let mut pending = Vec::new();
        let cpus: Vec<u32> = instants[0].current.keys().copied().collect();
        for cpu in cpus {
            let mut from = None;
            for (at, instant) in instants.iter().enumerate() {
                match (from, instant.is_pending(cpu)) {
                    (None, true) => from = Some(at),
                    (Some(start), false) => {
                        let is_unrecorded = instant.unrecorded_on == Some(cpu);
                        pending.push(Pending { cpu, from: start, to: at, is_unrecorded });
                        from = None;
                    }
                    _ => {}
                }
            }
            let to = instants.len() - 1;
            pending.extend(from.map(|from| Pending { cpu, from, to, is_unrecorded: false }));
        }
        Machine { instants, pending, lists }
    }

    fn between(&self, from: usize, to: usize) -> u64 {
        self.instants[to].ts.since(self.instants[from].ts).0
    }

    /// The CPUs that a task may use that has joined a queue at an instant.
    fn usable(&self, pid: i32, cpu: u32, joined: usize) -> BTreeSet<u32> {
        let instant = &self.instants[joined];
        if instant.names.get(&pid).is_some_and(|name| is_bound(*name, Cpu(cpu))) {
            return BTreeSet::from([cpu]);
        }
        let list = self.lists.get(&pid).filter(|list| list.contains(&cpu));
        list.cloned().unwrap_or_else(|| instant.current.keys().copied().collect())
    }

    /// The waits: the task, the CPU, and the places of the instants at which each begins and ends.
    fn waits(&self) -> Vec<(i32, u32, usize, usize)> {
        let mut waits = Vec::new();
        let mut open: BTreeMap<i32, (u32, usize)> = BTreeMap::new();
        for (at, instant) in self.instants.iter().enumerate() {
            let goes_on = |pid: &i32, cpu: &u32| instant.waiting.get(pid) == Some(cpu);
            waits.extend(
                open.iter().filter(|(pid, (cpu, _))| !goes_on(pid, cpu)).map(|(p, (c, from))| (*p, *c, *from, at)),
            );
            open.retain(|pid, (cpu, _)| goes_on(pid, cpu));
            for (pid, cpu) in &instant.waiting {
                open.entry(*pid).or_insert((*cpu, at));
            }
        }
        let last = self.instants.len() - 1;
        waits.extend(open.iter().map(|(pid, (cpu, from))| (*pid, *cpu, *from, last)));
        waits.retain(|(_, cpu, ..)| self.instants[0].current.contains_key(cpu));
        waits
    }

    fn kinds(&self) -> BTreeMap<i32, QueuedTimes> {
        let mut sums: BTreeMap<i32, QueuedTimes> = BTreeMap::new();
        for (pid, cpu, from, to) in self.waits() {
            let usable = self.usable(pid, cpu, from);
            let sum = sums.entry(pid).or_default();
            for at in from..to {
                let (instant, ns) = (&self.instants[at], self.between(at, at + 1));
                let within = self.pending.iter().find(|p| p.cpu == cpu && (p.from..p.to).contains(&at));
                let is_held = within.is_some_and(|p| match p.to <= to {
                    true => !p.is_unrecorded && self.between(p.from, p.to) >= HELD,
                    false => self.between(p.from, to) >= HELD,
                });
                let of = match () {
                    () if is_held => &mut sum.held_back_ns,
                    () if instant.is_beside_idle(&usable) => &mut sum.beside_idle_ns,
                    () if instant.is_beside_shorter(cpu, &usable) => &mut sum.beside_shorter_ns,
                    () => &mut sum.alike_ns,
                };
                *of += ns;
                let idle = instant.current.keys().any(|cpu| instant.is_idle(*cpu));
                if !is_held && idle && !instant.is_beside_idle(&usable) {
                    sum.beside_forbidden_ns += ns;
                }
            }
        }
        sums.retain(|_, times| times.total() > 0);
        sums
    }

    /// The time held back and that of its CPUs.
    fn held(&self) -> (u64, u64) {
        let is_held = |p: &&Pending| !p.is_unrecorded && self.between(p.from, p.to) >= HELD;
        let held: Vec<&Pending> = self.pending.iter().filter(is_held).collect();
        let at = |at: usize| held.iter().filter(|p| (p.from..p.to).contains(&at)).count() as u64;
        let steps = 0..self.instants.len() - 1;
        steps.fold((0, 0), |(ns, cpu_ns), step| {
            let (number, length) = (at(step), self.between(step, step + 1));
            (ns + length * number.min(1), cpu_ns + length * number)
        })
    }

    /// The unbalanced time, that of its CPUs, the number of its episodes and the largest difference.
    fn unbalanced(&self) -> (u64, u64, u64) {
        let waits = self.waits();
        let (mut ns, mut cpu_ns, mut episodes, mut was) = (0, 0, 0, false);
        for at in 0..self.instants.len() - 1 {
            let (instant, length) = (&self.instants[at], self.between(at, at + 1));
            if length == 0 {
                continue;
            }
            let too_long = |(pid, cpu, from, to): &(i32, u32, usize, usize)| {
                let usable = self.usable(*pid, *cpu, *from);
                let runs = instant.current[cpu].is_some_and(|pid| pid > 0);
                ((*from..*to).contains(&at)
                    && runs
                    && !instant.is_beside_idle(&usable)
                    && instant.is_beside_shorter(*cpu, &usable))
                .then_some(*cpu)
            };
            let cpus: BTreeSet<u32> = waits.iter().filter_map(too_long).collect();
            ns += length * u64::from(!cpus.is_empty());
            cpu_ns += length * cpus.len() as u64;
            episodes += u64::from(!was && !cpus.is_empty());
            was = !cpus.is_empty();
        }
        (ns, cpu_ns, episodes)
    }
}

/// Events whose times are multiplied, so that some waits on idle CPUs are longer than a millisecond.
fn slowed(events: &[SchedEvent], by: i64) -> Vec<SchedEvent> {
    events.iter().map(|event| SchedEvent { ts: Ts(event.ts.0 * by), ..*event }).collect()
}

/// Lists of usable CPUs: two CPUs, two others, one, or all, by the PID.
fn lists(events: &[SchedEvent]) -> BTreeMap<i32, BTreeSet<u32>> {
    let cpus: BTreeSet<u32> = events.iter().map(|event| event.cpu.0).collect();
    let mut pids: BTreeSet<i32> = events.iter().map(|event| event.pid.0).collect();
    for event in events {
        match event.kind {
            EventKind::Switch { prev, next, .. } => pids.extend([prev.pid.0, next.pid.0]),
            EventKind::Wakeup { task, .. } | EventKind::WakeupNew { task, .. } => drop(pids.insert(task.pid.0)),
            EventKind::Migrate { task, .. } => drop(pids.insert(task.pid.0)),
            EventKind::Fork { child, .. } => drop(pids.insert(child.0)),
            _ => {}
        }
    }
    let set = |pid: i32| match pid % 5 {
        1 => cpus.iter().copied().take(2).collect(),
        2 => cpus.iter().rev().copied().take(2).collect(),
        3 => cpus.iter().copied().filter(|cpu| *cpu == pid as u32 % cpus.len() as u32).collect(),
        _ => cpus.clone(),
    };
    pids.into_iter().map(|pid| (pid, set(pid))).collect()
}

fn affinity(events: &[SchedEvent], lists: &BTreeMap<i32, BTreeSet<u32>>) -> Affinity {
    let mut affinity = Affinity::new(events.iter().map(|event| event.cpu));
    for (pid, cpus) in lists {
        let set: CpuSet = cpus.iter().map(|cpu| Cpu(*cpu)).collect();
        affinity.add(sched::Pid(*pid), &set);
    }
    affinity
}

/// Compares both implementations; returns the sums over all tasks.
fn compare(name: &str, events: &[SchedEvent], restricted: bool) -> QueuedTimes {
    let lists = if restricted { lists(events) } else { BTreeMap::new() };
    let affinity = restricted.then(|| Arc::new(affinity(events, &lists)));
    let machine = Machine::of(events, lists);
    let options = Options { unbalanced: true, affinity: affinity.as_deref(), ..Options::default() };
    let analyses = || (KindsByTask::new(affinity.clone()), WorkConservation::new(&options));
    let (kinds, report) = Pass::over(events).run(analyses).unwrap_or_else(|never| match never {}).output;
    let expected = machine.kinds();
    for pid in kinds.keys().chain(expected.keys()) {
        assert_eq!(kinds.get(pid), expected.get(pid), "{name}: {pid}");
    }
    let held = report.held_back.expect("wakeups");
    assert_eq!((held.ns, held.cpu_ns), machine.held(), "{name}: held back");
    let found = report.unbalanced.expect("the unbalanced time");
    assert_eq!((found.ns, found.cpu_ns, found.episodes), machine.unbalanced(), "{name}: unbalanced");
    let mut all = QueuedTimes::default();
    kinds.values().for_each(|times| all.add(times));
    all
}

#[test]
fn a_second_implementation_agrees_on_the_four_kinds() {
    for restricted in [false, true] {
        let mut all = QueuedTimes::default();
        for seed in 0..12 {
            let simulation = Simulation::any(seed, 2 + (seed % 5) as u32, 150);
            let events = slowed(&simulation.events, 3_000);
            all.add(&compare(&format!("seed {seed}"), &events, restricted));
            if simulation.events.iter().all(|event| event.kind != EventKind::Offline) {
                let lossy = slowed(&simulation.lossy(seed).0, 3_000);
                all.add(&compare(&format!("seed {seed}, lossy"), &lossy, restricted));
            }
        }
        // Each kind occurs.
        let QueuedTimes { held_back_ns, beside_idle_ns, beside_shorter_ns, alike_ns, beside_forbidden_ns } = all;
        let least = held_back_ns.min(beside_idle_ns).min(beside_shorter_ns).min(alike_ns);
        assert!(least > all.total() / 1000, "{all:?}");
        // Kernel threads that are bound to their CPU may not use others either.
        assert!(beside_forbidden_ns > 0, "{all:?}");
    }
}

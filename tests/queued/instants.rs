//! The second implementation: every instant as a picture of the machine, and the kinds of queued time by looking at each.

use crate::oracle::{OFFLINE, Slow};
use sched::kthread::{is_bound, is_kernel_thread};
use sched::probe::Probe;
use sched::{Comm, Cpu, EventKind, QueuedTimes, SchedEvent, StateClass, Ts};
use std::collections::{BTreeMap, BTreeSet};

/// The priorities of the tasks that run or wait at the first instant, as their first records have them: that by which a waiting one is switched in,
/// any for a running one, unless events of its CPU are missing before.
fn prios_at_start(events: &[SchedEvent], slow: &Slow) -> BTreeMap<i32, i32> {
    let running = slow.current.iter().filter_map(|(cpu, pid)| {
        let is_lost = |event: &&SchedEvent| event.cpu.0 == *cpu && matches!(event.kind, EventKind::Lost { .. });
        let before = events.iter().take_while(|event| !is_lost(event));
        before.flat_map(prios).find(|(of, _)| Some(*of) == *pid)
    });
    let waiting = slow.waiting.keys().filter_map(|pid| {
        let mut next = events.iter().filter_map(|event| match event.kind {
            EventKind::Switch { next, .. } => Some((next.pid.0, next.prio)),
            _ => None,
        });
        next.find(|(of, _)| of == pid)
    });
    waiting.chain(running).collect()
}

/// The machine from one event to the next.
struct Instant {
    ts: Ts,
    current: BTreeMap<u32, Option<i32>>,
    waiting: BTreeMap<i32, u32>,
    names: BTreeMap<i32, Comm>,
    /// The latest priority of each task; for the time before its first record, the one of that record.
    prios: BTreeMap<i32, i32>,
    /// The tasks of `SCHED_IDLE`.
    sched_idle: BTreeSet<i32>,
    /// The capacity of each CPU; empty where all are alike.
    capacities: BTreeMap<u32, u128>,
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

    /// The weight of a task in thousandths and a bit of one of nice 0; nothing for one that has none.
    fn weight(&self, pid: i32) -> Option<u128> {
        let nice = self.prios.get(&pid).map(|prio| prio - 120);
        if self.sched_idle.contains(&pid) && nice.is_none_or(|nice| nice >= -20) {
            return Some(3);
        }
        let nice = nice?;
        let is_kernel = self.names.get(&pid).is_some_and(|name| is_kernel_thread(*name));
        match nice {
            ..-20 => None,
            ..0 if is_kernel => Some(1024),
            _ => Some(u128::from(WEIGHTS[(nice + 20) as usize])),
        }
    }

    /// The weights of the runnable tasks of a CPU, with 1024 for each that has none.
    fn load(&self, cpu: u32) -> u128 {
        let running = self.current.get(&cpu).copied().flatten().filter(|pid| *pid > 0);
        let waiting = self.waiting.iter().filter(|(_, on)| **on == cpu).map(|(pid, _)| *pid);
        waiting.chain(running).map(|pid| self.weight(pid).unwrap_or(1024)).sum()
    }

    /// Whether a task on the queue of a CPU is beside a shorter one: it would have a larger share of the time of another CPU. A task without a
    /// weight compares numbers of tasks.
    fn is_beside_shorter(&self, cpu: u32, usable: &BTreeSet<u32>, weight: Option<u128>) -> bool {
        let capacity = |cpu: u32| self.capacities.get(&cpu).copied().unwrap_or(1);
        let is_shorter = |other: u32, length: u32| match weight {
            None => length + 2 <= self.length(cpu).unwrap_or(self.queued(cpu)),
            Some(weight) => (self.load(other) + weight) * capacity(cpu) < self.load(cpu) * capacity(other),
        };
        usable.iter().any(|other| self.length(*other).is_some_and(|length| is_shorter(*other, length)))
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
pub(super) struct Machine {
    instants: Vec<Instant>,
    pending: Vec<Pending>,
    lists: BTreeMap<i32, BTreeSet<u32>>,
}

const HELD: u64 = 1_000_000;

/// `sched_prio_to_weight` of the kernel's kernel/sched/core.c, from nice −20 on.
const WEIGHTS: [u32; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904, 3906, 3121, 2501,
    1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87, 70, 56, 45, 36, 29, 23, 18, 15,
];

/// The tasks of an event with their priorities.
pub(super) fn prios(event: &SchedEvent) -> Vec<(i32, i32)> {
    match event.kind {
        EventKind::Switch { prev, next, .. } => vec![(prev.pid.0, prev.prio), (next.pid.0, next.prio)],
        EventKind::Wakeup { task, .. } | EventKind::WakeupNew { task, .. } => vec![(task.pid.0, task.prio)],
        EventKind::Waking { task, .. } | EventKind::Migrate { task, .. } => vec![(task.pid.0, task.prio)],
        _ => Vec::new(),
    }
}

/// Follows the tasks of `SCHED_IDLE`: calls, forks, the end of a task, and a thread that executes a program and takes the PID of its leader.
fn follow_policies(sched_idle: &mut BTreeSet<i32>, of_programs: &mut BTreeMap<i32, bool>, event: &SchedEvent) {
    let (pid, is_in) = match event.kind {
        EventKind::Probe { probe: Probe::SetsPolicy { pid, is_sched_idle, .. }, .. } => (pid, is_sched_idle),
        EventKind::Fork { parent, child, .. } => {
            (child, of_programs.remove(&child.0).unwrap_or(sched_idle.contains(&parent.0)))
        }
        EventKind::Switch { prev, state, .. } if state.class == StateClass::Dead => {
            of_programs.remove(&prev.pid.0);
            (prev.pid, false)
        }
        EventKind::Exec { pid, old_pid, .. } if pid != old_pid => (pid, sched_idle.remove(&old_pid.0)),
        _ => return,
    };
    sched_idle.remove(&pid.0);
    sched_idle.extend(is_in.then_some(pid.0));
}

/// What no event shows: the CPUs that tasks may use, the tasks of `SCHED_IDLE` at the start and from their fork on, and the capacities of CPUs.
#[derive(Clone, Default)]
pub(super) struct Unshown {
    pub(super) lists: BTreeMap<i32, BTreeSet<u32>>,
    pub(super) sched_idle: BTreeSet<i32>,
    pub(super) of_programs: BTreeMap<i32, bool>,
    pub(super) capacities: BTreeMap<u32, u128>,
}

impl Machine {
    pub(super) fn of(events: &[SchedEvent], unshown: &Unshown) -> Machine {
        let Unshown { lists, mut sched_idle, mut of_programs, capacities } = unshown.clone();
        sched_idle.extend(of_programs.iter().filter(|(_, is_idle)| **is_idle).map(|(pid, _)| *pid));
        let mut instants: Vec<Instant> = Vec::new();
        let mut known: BTreeMap<i32, i32> = BTreeMap::new();
        let mut names: BTreeMap<i32, Comm> = BTreeMap::new();
        Slow::walk(events, &mut |slow, event| {
            let mut unrecorded_on = None;
            if event.is_none() {
                known.extend(prios_at_start(events, slow));
            }
            if let Some(event) = event {
                known.extend(prios(event));
                follow_policies(&mut sched_idle, &mut of_programs, event);
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
            let (prios, sched_idle, capacities) = (known.clone(), sched_idle.clone(), capacities.clone());
            instants.push(Instant { ts, current, waiting, names, prios, sched_idle, capacities, unrecorded_on });
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

    pub(super) fn kinds(&self) -> BTreeMap<i32, QueuedTimes> {
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
                    () if instant.is_beside_shorter(cpu, &usable, instant.weight(pid)) => &mut sum.beside_shorter_ns,
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
    pub(super) fn held(&self) -> (u64, u64) {
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
    pub(super) fn unbalanced(&self) -> (u64, u64, u64) {
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
                    && instant.is_beside_shorter(*cpu, &usable, instant.weight(*pid)))
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

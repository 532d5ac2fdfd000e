//! `why`: both tables against a second, slow implementation that counts everything anew at every event, on the
//! simulator's true run queues and on recordings.

use crate::conforms::conforms;
use crate::oracle::{OFFLINE, Slow};
use crate::support::{Effort, effort, events, fixture, recordings_in_part, root, schedviz};
use parse::Trace;
use sched::kthread::{is_kernel_thread, is_stopper};
use sched::probe::Probe;
use sched::topology::{CpuLocation, Distance};
use sched::{
    Analysis, Cause, Causes, Cpu, EventKind, Pass, Pid, SchedEvent, SchedState, StateClass, Topology, Tracepoint, Ts,
    Window,
};
use std::collections::{BTreeMap, BTreeSet};
use testkit::Simulation;
use why::{Rows, Why, WhyReport};
use workcons::{Options, Waiters, WorkConservation};

/// By origin and end: the time in violation and the number of cases.
type Sums = BTreeMap<(String, String), (u64, u64)>;

/// The running task of each CPU, and the CPU on which each waiting task is queued.
#[derive(Clone, Debug, Default)]
struct State {
    current: BTreeMap<u32, Option<i32>>,
    waiting: BTreeMap<i32, u32>,
}

impl State {
    fn queued(&self, cpu: u32) -> usize {
        self.waiting.values().filter(|on| **on == cpu).count()
    }

    fn is_idle(&self, cpu: u32) -> bool {
        self.current.get(&cpu) == Some(&Some(0)) && self.queued(cpu) == 0
    }

    fn is_overloaded(&self, cpu: u32) -> bool {
        self.current.get(&cpu).copied().flatten().is_some_and(|pid| pid > 0) && self.queued(cpu) > 0
    }
}

/// A wait or an idle stretch.
#[derive(Clone, Debug)]
struct Open {
    cpu: u32,
    origin: String,
    ns: u64,
    on_idle: bool,
    missed: Option<String>,
    /// For an idle stretch: the tasks that have been queued on the CPU since before it.
    before: BTreeSet<i32>,
}

impl Open {
    fn new(cpu: u32, origin: String) -> Open {
        Open { cpu, origin, ns: 0, on_idle: false, missed: None, before: BTreeSet::new() }
    }
}

/// The second implementation.
struct SlowWhy<'s> {
    topology: &'s Topology,
    /// The cause of the migration of a task at a time.
    cause: &'s dyn Fn(i32, Ts, Cpu) -> Cause,
    state: State,
    now: Ts,
    waits: BTreeMap<i32, Open>,
    idle: BTreeMap<u32, Open>,
    last_ran: BTreeMap<i32, u32>,
    waking: BTreeMap<i32, (u32, u32)>,
    /// The tasks whose waking a wakeup has followed.
    used: BTreeSet<i32>,
    /// The migration by the stopper that runs on a CPU.
    stopped: BTreeMap<u32, (i32, Ts, Cpu)>,
    /// The PID of the stopper of each CPU, once it was switched in.
    stoppers: BTreeMap<u32, i32>,
    violated: u64,
    waiting: Sums,
    idling: Sums,
    missed: BTreeMap<String, (u64, u64)>,
    entries: u64,
}

impl<'s> SlowWhy<'s> {
    fn new(topology: &'s Topology, cause: &'s dyn Fn(i32, Ts, Cpu) -> Cause, state: State, start: Ts) -> SlowWhy<'s> {
        let open = |cpu: u32| Open::new(cpu, "at-start".into());
        let waits = state.waiting.iter().map(|(pid, cpu)| (*pid, open(*cpu))).collect();
        let idle = state.current.iter().filter(|(_, p)| **p == Some(0)).map(|(cpu, _)| (*cpu, open(*cpu))).collect();
        SlowWhy {
            topology,
            cause,
            state,
            now: start,
            waits,
            idle,
            last_ran: BTreeMap::new(),
            waking: BTreeMap::new(),
            used: BTreeSet::new(),
            stopped: BTreeMap::new(),
            stoppers: BTreeMap::new(),
            violated: 0,
            waiting: Sums::new(),
            idling: Sums::new(),
            missed: BTreeMap::new(),
            entries: 0,
        }
    }

    fn pass(&mut self, to: Ts) {
        let ns = to.since(self.now).0;
        self.now = to;
        let cpus: Vec<u32> = self.state.current.keys().copied().collect();
        let idle: BTreeSet<u32> = cpus.iter().copied().filter(|cpu| self.state.is_idle(*cpu)).collect();
        let over: BTreeSet<u32> = cpus.iter().copied().filter(|cpu| self.state.is_overloaded(*cpu)).collect();
        if idle.is_empty() || over.is_empty() {
            return;
        }
        self.violated += ns;
        self.waits.values_mut().filter(|wait| over.contains(&wait.cpu)).for_each(|wait| wait.ns += ns);
        self.idle.values_mut().filter(|stretch| idle.contains(&stretch.cpu)).for_each(|stretch| stretch.ns += ns);
    }

    /// The distance to the nearest other CPU for which `is` holds.
    fn nearest(&self, cpu: u32, state: &State, is: impl Fn(&State, u32) -> bool) -> String {
        if is(state, cpu) {
            return "itself".into();
        }
        let others = state.current.keys().copied().filter(|other| *other != cpu && is(state, *other));
        let distances = others.map(|other| self.topology.distance(Cpu(cpu), Cpu(other)));
        match distances.map(|distance| distance.map_or(9, |distance| distance as u8)).min() {
            None => "nowhere",
            Some(9) => "somewhere",
            Some(n) if n == Distance::Smt as u8 => "core",
            Some(n) if n == Distance::Cluster as u8 => "cluster",
            Some(n) if n == Distance::Llc as u8 => "llc",
            Some(n) if n == Distance::Node as u8 => "node",
            Some(_) => "beyond",
        }
        .into()
    }

    fn moved(&self, (pid, at, to): (i32, Ts, Cpu)) -> String {
        format!("moved {:?}", (self.cause)(pid, at, to))
    }

    /// The reason for which a switch takes the CPU from its previous task.
    fn left(&self, event: &SchedEvent) -> &'static str {
        let EventKind::Switch { prev, state, .. } = event.kind else { return "" };
        match state.class {
            _ if prev.pid.0 == 0 => "idle",
            StateClass::Runnable | StateClass::Preempted => "preemption",
            StateClass::Dead => "exit",
            StateClass::Asleep if is_stopper(prev.comm, event.cpu) && self.stopped.contains_key(&event.cpu.0) => "move",
            StateClass::Asleep => "sleep",
        }
    }

    fn wait_origin(&self, pid: i32, cpu: u32, event: &SchedEvent, slow: Option<&Slow>) -> String {
        match event.kind {
            EventKind::Migrate { task, dest, .. } if task.pid.0 == pid => self.moved((pid, event.ts, dest)),
            EventKind::Wakeup { task, .. } if task.pid.0 == pid => {
                let waking = self.waking.get(&pid).filter(|_| !self.used.contains(&pid));
                let previous = self.last_ran.get(&pid).or(waking.map(|(_, target)| target));
                let placed = match (previous, waking) {
                    (Some(previous), _) if *previous == cpu => "on-previous-cpu",
                    (_, Some((on, _))) if *on == cpu => "on-waker-cpu",
                    (Some(_), _) => "elsewhere",
                    (None, _) => "from-unknown-cpu",
                };
                format!("woken-{placed} {}", self.nearest(cpu, &self.state, State::is_idle))
            }
            EventKind::WakeupNew { task, .. } if task.pid.0 == pid => "forked".into(),
            EventKind::Switch { prev, next, .. } if prev.pid.0 == pid && event.cpu.0 == cpu => match next {
                next if next.pid.0 == 0 => "held-back".into(),
                next if is_kernel_thread(next.comm) => "preempted-by-kernel-thread".into(),
                next if next.prio < 0 => "preempted-by-deadline".into(),
                next if next.prio < 100 => "preempted-by-real-time".into(),
                next if slow.is_some_and(|slow| slow.is_application(next.pid.0)) => "preempted-by-application".into(),
                _ => "preempted-by-other".into(),
            },
            EventKind::Probe { probe: Probe::Unthrottles(_), .. } => "unthrottled".into(),
            _ => "unknown".into(),
        }
    }

    fn wait_end(&self, pid: i32, cpu: u32, new: &State, event: &SchedEvent) -> String {
        match event.kind {
            EventKind::Switch { next, .. } if next.pid.0 == pid && event.cpu.0 == cpu => {
                format!("ran {}", self.left(event))
            }
            EventKind::Migrate { task, dest, .. } if task.pid.0 == pid && new.waiting.contains_key(&pid) => {
                self.moved((pid, event.ts, dest))
            }
            EventKind::Probe { probe: Probe::Throttles(_), .. } => "throttled".into(),
            _ => "unknown".into(),
        }
    }

    fn event(&mut self, event: &SchedEvent, new: State, slow: Option<&Slow>) {
        self.pass(event.ts);
        let cpu = event.cpu.0;
        let mut ran = None;
        let pids: BTreeSet<i32> = self.state.waiting.keys().chain(new.waiting.keys()).copied().collect();
        let renewed = |pid: i32| match event.kind {
            // In a lossy trace the task can be queued on the destination already.
            EventKind::WakeupNew { task, .. } | EventKind::Migrate { task, .. } => task.pid.0 == pid,
            _ => false,
        };
        for pid in pids {
            let (old, next) = (self.state.waiting.get(&pid).copied(), new.waiting.get(&pid).copied());
            if old == next && !renewed(pid) {
                continue;
            }
            if let Some(wait) = self.waits.remove(&pid) {
                let end = self.wait_end(pid, wait.cpu, &new, event);
                let was_before = self.idle.get_mut(&wait.cpu).is_some_and(|stretch| stretch.before.remove(&pid));
                if new.current.get(&cpu) == Some(&Some(pid)) && wait.cpu == cpu {
                    ran = Some(if was_before { "queued before".into() } else { wait.origin.clone() });
                }
                add(&mut self.waiting, &wait, end);
            }
            if let Some(on) = next {
                let origin = self.wait_origin(pid, on, event, slow);
                let on_idle = new.current.get(&on) == Some(&Some(0));
                self.waits.insert(pid, Open { on_idle, ..Open::new(on, origin) });
            }
        }
        let cpus: Vec<u32> = new.current.keys().copied().collect();
        for at in cpus {
            let was = self.state.current.get(&at).copied().flatten();
            let now = new.current.get(&at).copied().flatten();
            // The CPU ran the task that is switched out for an unknown part of its idle stretch.
            let is_unseen = matches!(event.kind, EventKind::Switch { prev, .. } if at == cpu && prev.pid.0 != 0);
            if was == Some(0) && is_unseen {
                self.close_idle(at, "unknown".into());
                if now == Some(0) {
                    self.open_idle(at, event, &new);
                }
            } else if was == Some(0) && now != Some(0) {
                let end = match (now, &ran) {
                    (Some(OFFLINE), _) => "offline".into(),
                    (Some(_), Some(origin)) if at == cpu => match origin.split([' ', '-']).next() {
                        Some("woken") => "woken".into(),
                        Some("forked") => "forked".into(),
                        Some("moved") => origin.clone(),
                        Some("preempted" | "held" | "queued" | "unthrottled") => "released".into(),
                        _ => "unknown".into(),
                    },
                    _ => "unknown".to_owned(),
                };
                self.close_idle(at, end);
            } else if now == Some(0) && was != Some(0) {
                self.open_idle(at, event, &new);
            }
        }
        if let EventKind::Switch { prev, next, .. } = event.kind {
            if is_stopper(next.comm, event.cpu) {
                self.stoppers.insert(cpu, next.pid.0);
            }
            if prev.pid.0 == 0 && next.pid.0 != 0 {
                for wait in self.waits.values_mut().filter(|wait| wait.cpu == cpu && wait.on_idle) {
                    if ["woken", "forked"].iter().any(|word| wait.origin.starts_with(word)) {
                        wait.origin = "queued-on-idle-cpu".into();
                    }
                }
            }
            self.stopped.remove(&cpu);
        }
        self.remember(event, &new);
        self.state = new;
    }

    fn open_idle(&mut self, cpu: u32, event: &SchedEvent, new: &State) {
        let switched = matches!(event.kind, EventKind::Switch { .. }) && event.cpu.0 == cpu;
        let origin = match self.left(event) {
            _ if !switched => "unknown".into(),
            _ if new.queued(cpu) > 0 => "held-back".into(),
            // A runnable task that is not queued is throttled.
            "preemption" => "throttled".into(),
            "sleep" => "slept".into(),
            "exit" => "exited".into(),
            "move" => self.stopped.get(&cpu).map_or("unknown".into(), |moved| self.moved(*moved)),
            _ => "unknown".into(),
        };
        let mut missed = None;
        if switched && new.is_idle(cpu) {
            self.entries += 1;
            missed = Some(self.nearest(cpu, new, State::is_overloaded)).filter(|nearest| nearest != "nowhere");
        }
        let queued = new.waiting.iter().filter(|(_, on)| **on == cpu);
        let before = queued.map(|(pid, _)| *pid).collect();
        self.idle.insert(cpu, Open { missed, before, ..Open::new(cpu, origin) });
    }

    fn close_idle(&mut self, cpu: u32, end: String) {
        let Some(stretch) = self.idle.remove(&cpu) else { return };
        if let Some(nearest) = &stretch.missed {
            let sums = self.missed.entry(nearest.clone()).or_default();
            *sums = (sums.0 + 1, sums.1 + stretch.ns);
        }
        add(&mut self.idling, &stretch, end);
    }

    fn remember(&mut self, event: &SchedEvent, new: &State) {
        let cpu = event.cpu.0;
        for (at, was) in &self.state.current {
            if let Some(pid) = was.filter(|pid| *pid > 0 && new.current.get(at) != Some(&Some(*pid))) {
                self.last_ran.insert(pid, *at);
            }
        }
        for (at, pid) in &new.current {
            // A task that turns out to run is awake.
            if let Some(pid) = pid.filter(|pid| self.state.current.get(at) != Some(&Some(*pid))) {
                self.waking.remove(&pid);
            }
        }
        match event.kind {
            EventKind::Waking { task, target } => {
                self.waking.insert(task.pid.0, (cpu, target.0));
                self.used.remove(&task.pid.0);
            }
            EventKind::Wakeup { task, .. } if new.waiting.contains_key(&task.pid.0) => {
                self.used.insert(task.pid.0);
            }
            EventKind::Switch { prev, .. } => {
                // It has run there, even if no earlier event shows it.
                self.last_ran.insert(prev.pid.0, cpu);
            }
            EventKind::Wakeup { task, .. } if new.current.values().any(|p| *p == Some(task.pid.0)) => {
                self.waking.remove(&task.pid.0);
            }
            EventKind::WakeupNew { task, .. } => {
                self.waking.remove(&task.pid.0);
                self.last_ran.remove(&task.pid.0);
            }
            EventKind::Migrate { task, orig, dest } if orig == event.cpu => {
                let current = self.state.current.get(&cpu).copied().flatten();
                if current == Some(event.pid.0) && self.is_stopper(event) {
                    self.stopped.insert(cpu, (task.pid.0, event.ts, dest));
                }
            }
            _ => {}
        }
    }

    /// Whether the event is the stopper's: by the name that the switch to it had.
    fn is_stopper(&self, event: &SchedEvent) -> bool {
        self.stoppers.get(&event.cpu.0) == Some(&event.pid.0)
    }

    fn finish(&mut self, end: Ts) {
        self.pass(end);
        for wait in std::mem::take(&mut self.waits).into_values() {
            add(&mut self.waiting, &wait, "window-end".into());
        }
        for cpu in self.idle.keys().copied().collect::<Vec<_>>() {
            self.close_idle(cpu, "window-end".into());
        }
    }
}

fn add(sums: &mut Sums, open: &Open, end: String) {
    if open.ns > 0 {
        let sum = sums.entry((open.origin.clone(), end)).or_default();
        *sum = (sum.0 + open.ns, sum.1 + 1);
    }
}

/// The rows of a report in the same form.
fn sums(rows: Option<&Rows>) -> Sums {
    let mut sums = Sums::new();
    for row in &rows.expect("a table").rows {
        let cause = |key: &str, cause: Option<Cause>| cause.map_or(key.to_owned(), |cause| format!("{key} {cause:?}"));
        let nearest = row.nearest_idle.map(|nearest| serde_json::to_value(nearest).expect("a word"));
        let nearest = nearest.as_ref().and_then(|nearest| nearest.as_str());
        let began = nearest.map_or(cause(row.began, row.began_cause), |nearest| format!("{} {nearest}", row.began));
        let ended = match row.ended {
            "ran-after-sleep" => "ran sleep".into(),
            "ran-after-exit" => "ran exit".into(),
            "ran-after-move" => "ran move".into(),
            "ran-by-preemption" => "ran preemption".into(),
            "ran-after-idle" => "ran idle".into(),
            "asleep" | "died" => "unknown".into(),
            other => cause(other, row.ended_cause),
        };
        let sum = sums.entry((began, ended)).or_default();
        *sum = (sum.0 + row.total_ns.0, sum.1 + row.number);
    }
    sums
}

pub(crate) fn why(events: &[SchedEvent], topology: &Topology, window: Window) -> (WhyReport, workcons::Report) {
    let options = Options { waiters: Waiters::All, topology: topology.clone(), ..Options::default() };
    let analyses = || (Why::new(&options), WorkConservation::new(&options));
    let outcome = Pass::over(events).window(window).run(analyses);
    outcome.unwrap_or_else(|never| match never {}).output
}

/// Asserts that two tables are the same, and otherwise prints the rows that differ.
fn same(name: &str, ours: &Sums, theirs: &Sums) {
    let keys: BTreeSet<_> = ours.keys().chain(theirs.keys()).collect();
    let differ = keys.into_iter().filter(|key| ours.get(*key) != theirs.get(*key));
    let differ: Vec<_> = differ.map(|key| (key, ours.get(key), theirs.get(key))).collect();
    assert!(differ.is_empty(), "{name}: {differ:#?}");
}

fn compare(name: &str, events: &[SchedEvent], topology: &Topology, slow: &SlowWhy<'_>) {
    let (report, workcons) = why(events, topology, Window::default());
    assert_eq!(report.violation_ns.expect("a violation").0, slow.violated, "{name}");
    assert_eq!(workcons.all.ns, slow.violated, "{name}: workcons");
    same(&format!("{name}: waiting"), &sums(report.waiting.as_ref()), &slow.waiting);
    same(&format!("{name}: idling"), &sums(report.idling.as_ref()), &slow.idling);
    let missed = report.missed.expect("missed steals");
    let ours: BTreeMap<String, (u64, u64)> = (missed.by_distance.iter())
        .map(|row| {
            let nearest = serde_json::to_value(row.nearest).expect("a word");
            (nearest.as_str().expect("a word").to_owned(), (row.number, row.violated_ns))
        })
        .collect();
    assert_eq!((missed.idle_entries, ours), (slow.entries, slow.missed.clone()), "{name}: missed steals");
}

/// Two hardware threads a core, three CPUs a cluster if there are any, four a cache, six a node.
fn machine(cpus: u32, has_clusters: bool) -> Topology {
    let mut topology = Topology::default();
    for cpu in 0..cpus {
        let cluster = has_clusters.then_some(cpu / 3);
        let place = CpuLocation { core: Some(cpu / 2), cluster, llc: Some(cpu / 4), node: Some(cpu / 6), socket: None };
        topology.set(Cpu(cpu), place);
    }
    topology
}

/// Whether an event shows the state of a task.
fn shows(event: &SchedEvent, pid: i32) -> bool {
    let shown = match event.kind {
        EventKind::Switch { prev, next, .. } => prev.pid.0 == pid || next.pid.0 == pid,
        EventKind::Waking { task, .. } | EventKind::Wakeup { task, .. } | EventKind::WakeupNew { task, .. } => {
            task.pid.0 == pid
        }
        _ => false,
    };
    shown || event.pid.0 == pid
}

/// Takes seconds: rare causes of a wait, such as a move within a switch, need many runs until each has occurred.
#[test]
fn both_tables_are_the_simulators() {
    let (mut waits, mut stretches, mut missed) = (0, 0, 0);
    let mut seen = BTreeSet::new();
    for seed in crate::support::seeds(200) {
        let cpus = 2 + (seed % 9) as u32;
        let sim = if seed % 4 == 3 { Simulation::any(seed, cpus, 500) } else { Simulation::balanced(seed, cpus, 500) };
        let topology = if seed % 2 == 0 { machine(cpus, seed % 4 == 0) } else { Topology::default() };
        let moves: BTreeMap<(i32, Ts, Cpu), Cause> = (sim.events.iter().zip(&sim.causes))
            .filter_map(|(event, cause)| match event.kind {
                EventKind::Migrate { task, dest, .. } => Some(((task.pid.0, event.ts, dest), (*cause)?)),
                _ => None,
            })
            .collect();
        let found = causes(&sim.events);
        // The unbalanced runs have no causes of their own.
        let cause = |pid: i32, at: Ts, to: Cpu| *moves.get(&(pid, at, to)).unwrap_or_else(|| &found[&(pid, at, to)]);
        let (mut tasks, seen_cpus) = sim.witnessed();
        // A migration alone does not show whether its task waits.
        tasks.retain(|pid| sim.events.iter().any(|event| shows(event, *pid)));
        let state = |truth: &testkit::Truth| State {
            current: (0..)
                .zip(&truth.current)
                .filter(|(c, _)| seen_cpus.contains(c))
                .map(|(c, p)| (c, Some(*p)))
                .collect(),
            waiting: (0..)
                .zip(&truth.queues)
                .flat_map(|(cpu, queue)| queue.iter().map(move |pid| (*pid, cpu)))
                .filter(|(pid, _)| tasks.contains(pid))
                .collect(),
        };
        let first = sim.events[0].ts;
        let mut slow = SlowWhy::new(&topology, &cause, state(&sim.initial), first);
        for (event, truth) in sim.events.iter().zip(&sim.truth) {
            slow.event(event, state(truth), None);
        }
        slow.finish(sim.events[sim.events.len() - 1].ts);
        compare(&format!("seed {seed}"), &sim.events, &topology, &slow);
        waits += slow.waiting.values().map(|sum| sum.1).sum::<u64>();
        stretches += slow.idling.values().map(|sum| sum.1).sum::<u64>();
        missed += slow.missed.values().map(|sum| sum.0).sum::<u64>();
        seen.extend(slow.waiting.into_keys().chain(slow.idling.into_keys()).flat_map(|(a, b)| [a, b]));
    }
    assert!(waits > 5_000 && stretches > 2_000 && missed > 500, "{waits} {stretches} {missed}");
    assert!(seen.len() > 45, "{} kinds of origins and ends are too few: {seen:?}", seen.len());
}

/// The cause of each migration, by task and time.
fn causes(events: &[SchedEvent]) -> BTreeMap<(i32, Ts, Cpu), Cause> {
    #[derive(Default)]
    struct Collect(Causes, BTreeMap<(i32, Ts, Cpu), Cause>);
    impl Analysis for Collect {
        type Output = BTreeMap<(i32, Ts, Cpu), Cause>;
        fn before(&mut self, event: &SchedEvent, state: &SchedState) {
            self.0.event(event, state, |m| {
                self.1.insert((m.pid.0, m.ts, m.dest), m.cause);
            });
        }
        fn finish(mut self, _: Ts, _: &SchedState) -> Self::Output {
            self.0.finish(|m| {
                self.1.insert((m.pid.0, m.ts, m.dest), m.cause);
            });
            self.1
        }
    }
    Pass::over(events).run(Collect::default).unwrap_or_else(|never| match never {}).output
}

/// The simulator moves tasks for fewer reasons than kernels do.
#[test]
fn a_second_implementation_agrees_on_recordings() {
    let mut compared = 0;
    for path in recordings_in_part(if effort() == Effort::Quick { 3 } else { 6 }) {
        let trace = Trace::open(&path, parse::Options::default()).expect("a readable recording");
        if trace.has_time().is_err() || !trace.has(Tracepoint::Wakeup) {
            continue;
        }
        let events = events(&trace);
        let found = causes(&events);
        let cause = |pid: i32, at: Ts, to: Cpu| *found.get(&(pid, at, to)).unwrap_or(&Cause::Unknown);
        let topology = Topology::default();
        let mut recorder: Option<SlowWhy<'_>> = None;
        Slow::walk(&events, &mut |slow, event| {
            let state = State { current: slow.current.clone(), waiting: slow.waiting.clone() };
            match (&mut recorder, event) {
                (Some(recorder), Some(event)) => recorder.event(event, state, Some(slow)),
                _ => recorder = Some(SlowWhy::new(&topology, &cause, state, events[0].ts)),
            }
        });
        let mut recorder = recorder.expect("a state");
        recorder.finish(events[events.len() - 1].ts);
        compare(&path.display().to_string(), &events, &topology, &recorder);
        compared += 1;
    }
    assert!(compared >= 12);
}

#[test]
fn adjacent_windows_add_up() {
    for seed in crate::support::seeds(40) {
        let sim = Simulation::balanced(seed, 2 + (seed % 7) as u32, 400);
        let (first, last) = (sim.events[0].ts, sim.events[sim.events.len() - 1].ts);
        let totals = |window: Window| {
            let (report, _) = why(&sim.events, &Topology::default(), window);
            let total = |rows: Option<Rows>| rows.expect("a table").total_ns.0;
            let missed = report.missed.expect("missed steals");
            let (waiting, idling) = (total(report.waiting), total(report.idling));
            [report.violation_ns.expect("a violation").0, waiting, idling, missed.idle_entries, missed.number]
        };
        let cuts = 7;
        let at = |i: i64| Ts(first.0 + (last.0 - first.0) * i / cuts);
        let parts = (0..cuts).map(|i| totals(Window { from: Some(at(i)), to: Some(at(i + 1)) }));
        let sum = parts.fold([0; 5], |sum, part| std::array::from_fn(|i| sum[i] + part[i]));
        assert_eq!(sum, totals(Window::default()), "seed {seed}");
    }
}

#[test]
fn several_runs_make_a_table() {
    let files = ["hackbench.dat", "spmd-plus1.dat"].map(|name| fixture(name).display().to_string());
    let group = format!("--group=both={},{}", files[0], files[1]);
    let text = schedviz(&["why", &group]).success().text();
    let rows: Vec<&str> = text.lines().collect();
    assert!(rows.len() == 4 && rows[1].starts_with("both: hackbench.dat"), "{text}");
    assert!(rows[3].starts_with("both: median of 2"), "{text}");
}

#[test]
fn tables_of_an_unknown_application_are_withheld() {
    let file = fixture("forked-unknown.dat");
    let arguments = ["why", file.to_str().expect("a path"), "--waiters", "application", "--json", "-q"];
    let json: serde_json::Value = serde_json::from_slice(&schedviz(&arguments).success().stdout).expect("JSON");
    let schema = std::fs::read_to_string(root().join("docs/schemas/why-2.json")).expect("the schema");
    conforms(&json, &serde_json::from_str(&schema).expect("JSON"), "why");
    let run = &json["runs"][0];
    assert!(run["waiting"].is_null() && run["missed"].is_null(), "{run}");
    assert!(run["selection_unknown"].as_str().is_some_and(|why| why.contains("application")), "{run}");
}

#[test]
fn two_overloaded_cpus_beside_idle_ones() {
    // One task runs and one waits on each of CPU 0 and CPU 1 for 1 ms; CPUs 2 and 3 idle all the while.
    let task = |pid: i32| sched::TaskRef { pid: Pid(pid), prio: 120, comm: sched::Comm::new(b"task") };
    let idle = sched::TaskRef { pid: Pid::IDLE, prio: 120, comm: sched::Comm::new(b"swapper") };
    let at = |ts, cpu, pid, kind| SchedEvent { ts: Ts(ts), cpu: Cpu(cpu), pid: Pid(pid), flags: 0, kind };
    let other = EventKind::Other { id: 1 };
    let switch = |prev, next| EventKind::Switch { prev, state: sched::PrevState::asleep(1), next };
    let events = [
        at(0, 0, 10, other),
        at(0, 1, 20, other),
        at(0, 2, 0, other),
        at(0, 3, 0, other),
        at(0, 2, 0, EventKind::Waking { task: task(11), target: Cpu(0) }),
        at(0, 2, 0, EventKind::Wakeup { task: task(11), target: Cpu(0) }),
        at(0, 3, 0, EventKind::Waking { task: task(21), target: Cpu(2) }),
        at(0, 3, 0, EventKind::Wakeup { task: task(21), target: Cpu(1) }),
        at(1_000_000, 0, 10, switch(task(10), task(11))),
        at(1_000_000, 1, 20, switch(task(20), task(21))),
        at(1_000_000, 1, 21, switch(task(21), idle)),
    ];
    let (report, _) = why(&events, &machine(4, false), Window::default());
    let ms = 1_000_000;
    let row = |began: &str| (began.to_owned(), "ran sleep".to_owned());
    let waiting = [(row("woken-on-previous-cpu llc"), (ms, 1)), (row("woken-elsewhere llc"), (ms, 1))];
    assert_eq!(sums(report.waiting.as_ref()), Sums::from(waiting));
    let idling = Sums::from([(("at-start".to_owned(), "window-end".to_owned()), (2 * ms, 2))]);
    assert_eq!(sums(report.idling.as_ref()), idling);
    let missed = report.missed.expect("missed steals");
    assert_eq!((missed.idle_entries, missed.number), (1, 0), "no task waits when CPU 1 goes idle");
}

//! A second implementation of the definitions, for clearness alone: work conservation, the application, and what each
//! task ran and waited, on every recording and on simulated losses.

use crate::support::{events, fixtures_and_part};
use fairness::Fairness;
use parse::Trace;
use sched::probe::{CgroupId, Probe, Throttle};
use sched::{Comm, Cpu, Dur, EventKind, Pass, Pid, SchedEvent, StateClass, Window};
use std::collections::{BTreeMap, BTreeSet};
use testkit::Simulation;
use utilization::Utilization;
use workcons::WorkConservation;

/// The current task of a CPU that is offline.
pub(crate) const OFFLINE: i32 = -2;

/// Straight from the definitions: all events at once, everything counted anew at every instant.
pub(crate) struct Slow {
    pub(crate) current: BTreeMap<u32, Option<i32>>,
    pub(crate) waiting: BTreeMap<i32, u32>,
    /// The queued tasks that do not wait.
    bandwidth: Bandwidth,
    /// The traced command's first task, where the trace shows it,
    root: Option<i32>,
    /// and what descends from it, itself included.
    traced: BTreeSet<i32>,
    /// Tasks were queued where there is no event, and left: others may have been woken there.
    queued_unseen: bool,
    /// Events are missing up to now, as others show.
    incomplete: bool,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct SlowFigures {
    time: u64,
    capacity: u64,
    threads: u64,
    possible: u64,
    running: u64,
    waiting: u64,
    /// With the application's waiting tasks alone.
    application: (u64, u64),
    /// How long the application's tasks ran.
    application_ran: u64,
    /// The run time and the wait time of each task.
    tasks: BTreeMap<i32, (u64, u64)>,
}

impl Slow {
    fn measure(events: &[SchedEvent], wakeups: bool) -> SlowFigures {
        let Some(waiting) = Slow::waiting_at_start(events, wakeups) else {
            return Slow::measure_from(events, BTreeMap::new(), true, &mut |_, _| {}).0;
        };
        let (figures, queued_unseen) = Slow::measure_from(events, waiting, !wakeups, &mut |_, _| {});
        if queued_unseen { Slow::measure_from(events, BTreeMap::new(), true, &mut |_, _| {}).0 } else { figures }
    }

    /// Shows `each` the state before each event and after it, and the event.
    pub(crate) fn walk(events: &[SchedEvent], each: &mut dyn FnMut(&Slow, Option<&SchedEvent>)) {
        let wakeups = of_kind(events, |kind| matches!(kind, EventKind::Wakeup { .. }));
        let from = match Slow::waiting_at_start(events, wakeups) {
            Some(waiting) if !Slow::measure_from(events, waiting.clone(), !wakeups, &mut |_, _| {}).1 => {
                (waiting, !wakeups)
            }
            _ => (BTreeMap::new(), true),
        };
        Slow::measure_from(events, from.0, from.1, each);
    }

    fn measure_from(
        events: &[SchedEvent],
        waiting: BTreeMap<i32, u32>,
        incomplete: bool,
        each: &mut dyn FnMut(&Slow, Option<&SchedEvent>),
    ) -> (SlowFigures, bool) {
        let start = events.iter().map(|e| e.ts).min().unwrap_or_default();
        let mut slow = Slow {
            current: BTreeMap::new(),
            waiting,
            bandwidth: Bandwidth::at_start(events),
            root: Slow::root(events),
            traced: Slow::root(events).into_iter().collect(),
            queued_unseen: false,
            incomplete,
        };
        for event in events.iter().rev().filter(|event| !is_stack(event)) {
            // The first event of a CPU decides; a loss before it leaves it unknown.
            let lost = matches!(event.kind, EventKind::Lost { .. });
            slow.current.insert(event.cpu.0, (!lost).then_some(event.pid.0));
        }
        let (mut figures, mut last) = (SlowFigures::default(), start);
        let (offline_at_start, offline_behind) = Slow::offline(events);
        offline_at_start.into_iter().for_each(|cpu| slow.go_offline(cpu));
        slow.set_throttled_aside();
        let mut came: BTreeMap<(i32, u32), sched::Ts> = BTreeMap::new();
        each(&slow, None);
        // Conclusions of the reader are drawn anew.
        for (place, event) in events.iter().enumerate().filter(|(_, event)| event.kind != EventKind::Offline) {
            slow.add(&mut figures, event.ts.since(last).0);
            last = event.ts;
            let unseen = |slow: &Slow| -> Vec<(i32, u32)> {
                let queued = slow.waiting.iter().filter(|(_, cpu)| !slow.current.contains_key(cpu));
                queued.map(|(pid, cpu)| (*pid, *cpu)).collect()
            };
            for there in unseen(&slow) {
                came.entry(there).or_insert(last);
            }
            slow.queue_throttled(event);
            slow.apply(event);
            slow.bandwidth.apply(event);
            slow.set_throttled_aside();
            let now = unseen(&slow);
            came.retain(|there, since| {
                let stays = now.contains(there);
                // One that is soon moved away may have come only then.
                let long = event.ts.since(*since).0 >= 1_000_000;
                slow.queued_unseen |= !stays && (long || !slow.waiting.contains_key(&there.0));
                stays
            });
            for there in now {
                came.entry(there).or_insert(event.ts);
            }
            each(&slow, Some(event));
            if offline_behind.contains(&place) {
                slow.go_offline(event.cpu.0);
                each(&slow, Some(&SchedEvent { kind: EventKind::Offline, ..*event }));
            }
        }
        (figures, slow.queued_unseen)
    }

    /// The CPUs whose first event is of the idle task, which wakes the CPU's stopper; and the places of the stoppers'
    /// last events before one of another task, to which no switch led.
    fn offline(events: &[SchedEvent]) -> (BTreeSet<u32>, BTreeSet<usize>) {
        let (mut at_start, mut behind, mut seen) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        let events = || events.iter().enumerate().filter(|(_, event)| event.kind != EventKind::Offline);
        for (place, event) in events() {
            let (cpu, name) = (event.cpu, Comm::new(format!("migration/{}", event.cpu).as_bytes()));
            if seen.insert(cpu)
                && event.pid == Pid::IDLE
                && matches!(event.kind, EventKind::Waking { task, .. } if task.comm == name)
            {
                at_start.insert(cpu.0);
            }
            let EventKind::Switch { next, .. } = event.kind else { continue };
            if next.comm != name {
                continue;
            }
            let mut last = place;
            let settled = events().skip_while(|(at, _)| *at <= place).filter(|(_, e)| e.cpu == cpu).find(|(at, e)| {
                if e.pid == next.pid {
                    last = *at;
                }
                match e.kind {
                    EventKind::Lost { .. } | EventKind::Switch { .. } => true,
                    EventKind::Other { .. } | EventKind::Probe { .. } | EventKind::Stack { .. } => false,
                    EventKind::Interrupt { .. } | EventKind::Frequency { .. } => false,
                    _ => e.pid != next.pid,
                }
            });
            if settled.is_none_or(|(_, e)| e.pid != next.pid && !matches!(e.kind, EventKind::Lost { .. })) {
                behind.insert(last);
            }
        }
        (at_start, behind)
    }

    /// No task runs or waits there.
    fn go_offline(&mut self, cpu: u32) {
        self.current.insert(cpu, Some(OFFLINE));
        self.waiting.retain(|_, on| *on != cpu);
        self.bandwidth.throttled.retain(|_, on| *on != cpu);
    }

    /// Those whose first event is a switch-in, or a migration followed by one, before any loss; but for those who would
    /// have waited while their CPU became idle. No task, where such came and no beginning of a task was recorded.
    fn waiting_at_start(events: &[SchedEvent], wakeups: bool) -> Option<BTreeMap<i32, u32>> {
        let (mut waiting, mut seen, mut moved) = (BTreeMap::new(), BTreeSet::new(), BTreeMap::new());
        let mut first_on: BTreeSet<u32> = BTreeSet::new();
        let (at_start, behind) = Slow::offline(events);
        let mut emptied: BTreeSet<u32> = at_start;
        let mut newcomers = false;
        let births = events.iter().any(|e| matches!(e.kind, EventKind::WakeupNew { .. } | EventKind::Fork { .. }));
        for (place, event) in events.iter().enumerate().filter(|(_, event)| event.kind != EventKind::Offline) {
            match event.kind {
                EventKind::Lost { .. } => break,
                _ if !wakeups => break,
                _ => {}
            }
            if !is_stack(event) && first_on.insert(event.cpu.0) {
                seen.insert(event.pid.0);
            }
            match event.kind {
                EventKind::Switch { prev, next, .. } => {
                    seen.insert(prev.pid.0);
                    let pid = next.pid.0;
                    let orig: Option<u32> = moved.remove(&pid);
                    if pid == 0 {
                        emptied.insert(event.cpu.0);
                    } else if orig.is_some() || !seen.contains(&pid) && !emptied.contains(&event.cpu.0) {
                        waiting.insert(pid, orig.unwrap_or(event.cpu.0));
                    } else {
                        newcomers |= !seen.contains(&pid);
                    }
                    seen.insert(pid);
                }
                EventKind::Waking { task, .. } | EventKind::Wakeup { task, .. } | EventKind::WakeupNew { task, .. } => {
                    moved.remove(&task.pid.0);
                    seen.insert(task.pid.0);
                }
                EventKind::Migrate { task, orig, .. } if seen.insert(task.pid.0) && !emptied.contains(&orig.0) => {
                    moved.insert(task.pid.0, orig.0);
                }
                EventKind::Fork { child, .. } => drop(seen.insert(child.0)),
                _ => {}
            }
            if behind.contains(&place) {
                emptied.insert(event.cpu.0);
            }
        }
        if newcomers && !births {
            return None;
        }
        // A task that runs at the start did not wait.
        let mut firsts = BTreeSet::new();
        for event in events.iter().filter(|event| !is_stack(event)) {
            if firsts.insert(event.cpu.0) {
                waiting.remove(&event.pid.0);
            }
        }
        Some(waiting)
    }

    /// The traced command's first task: the first to execute a program of those that were not forked in the trace.
    fn root(events: &[SchedEvent]) -> Option<i32> {
        let mut forked = BTreeSet::new();
        events.iter().find_map(|event| match event.kind {
            EventKind::Fork { child, .. } => {
                forked.insert(child);
                None
            }
            EventKind::Exec { pid, .. } if !forked.contains(&pid) => Some(pid.0),
            _ => None,
        })
    }

    pub(crate) fn is_application(&self, pid: i32) -> bool {
        self.traced.contains(&pid)
    }

    /// The CPUs that idle, those that are overloaded by tasks that count, and how many of these wait there.
    fn sets(&self, counts: impl Fn(i32) -> bool) -> (u64, u64, u64) {
        let w = |cpu: u32| self.waiting.iter().filter(move |(_, on)| **on == cpu).map(|(pid, _)| *pid);
        let (mut idle, mut over, mut waiters) = (0, 0, 0);
        for (cpu, current) in &self.current {
            match current {
                None | Some(OFFLINE) => {}
                Some(0) => idle += u64::from(w(*cpu).next().is_none()),
                Some(_) => {
                    let waiting = w(*cpu).filter(|pid| counts(*pid)).count() as u64;
                    over += u64::from(waiting > 0);
                    waiters += waiting;
                }
            }
        }
        (idle, over, waiters)
    }

    /// Adds an interval to the state of each task.
    fn add_tasks(&self, figures: &mut SlowFigures, ns: u64) {
        for pid in self.current.values().flatten().filter(|pid| **pid > 0) {
            figures.tasks.entry(*pid).or_default().0 += ns;
            figures.application_ran += if self.is_application(*pid) { ns } else { 0 };
        }
        for (pid, _) in self.waiting.iter().filter(|(_, cpu)| self.current.contains_key(cpu)) {
            figures.tasks.entry(*pid).or_default().1 += ns;
        }
    }

    fn add(&self, figures: &mut SlowFigures, ns: u64) {
        if ns == 0 {
            return;
        }
        self.add_tasks(figures, ns);
        let (idle, over, waiters) = self.sets(|pid| self.is_application(pid));
        if idle > 0 && over > 0 {
            figures.application.0 += ns;
            figures.application.1 += ns * idle.min(waiters);
        }
        let (idle, over, waiters) = self.sets(|_| true);
        if idle > 0 && over > 0 {
            figures.time += ns;
            figures.capacity += ns * idle.min(over);
            figures.threads += ns * idle.min(waiters);
        }
        let unknown = self.current.values().filter(|now| now.is_none()).count() as u64;
        let running = self.current.values().flatten().filter(|pid| **pid > 0).count() as u64;
        if (idle.min(1) + over.min(1) + unknown) >= 2 {
            figures.possible += ns;
        }
        figures.running += ns * running;
        figures.waiting += ns * self.waiting.values().filter(|c| self.current.contains_key(c)).count() as u64;
    }

    /// Tasks that were throttled are queued like others while an event is applied.
    fn queue_throttled(&mut self, event: &SchedEvent) {
        if let EventKind::Switch { next, .. } = event.kind
            && self.bandwidth.throttled.get(&next.pid.0) == Some(&event.cpu.0)
        {
            self.bandwidth.end(next.pid.0, event.cpu.0);
        }
        if let EventKind::Lost { .. } = event.kind {
            self.bandwidth.throttled.clear();
        }
        self.waiting.extend(&self.bandwidth.throttled);
    }

    /// Queued tasks whose cgroup is throttled on that CPU do not wait.
    fn set_throttled_aside(&mut self) {
        let is_throttled = |pid: i32, cpu: u32| self.bandwidth.is_throttled(pid, cpu);
        let all = std::mem::take(&mut self.waiting).into_iter();
        let (throttled, waiting) = all.partition(|(pid, cpu)| is_throttled(*pid, *cpu));
        (self.bandwidth.throttled, self.waiting) = (throttled, waiting);
    }

    fn running_on(&self, pid: i32) -> Option<u32> {
        self.current.iter().find(|(_, p)| **p == Some(pid)).map(|(cpu, _)| *cpu)
    }

    /// `pid` runs on `cpu` from now on: nowhere else, and it does not wait.
    fn run(&mut self, cpu: u32, pid: i32) {
        if pid != 0 {
            if let Some(other) = self.running_on(pid).filter(|c| *c != cpu) {
                self.current.insert(other, None);
            }
            self.waiting.remove(&pid);
        }
        self.current.insert(cpu, Some(pid));
    }

    fn apply(&mut self, event: &SchedEvent) {
        let cpu = event.cpu.0;
        if let EventKind::Lost { .. } = event.kind {
            self.incomplete = true;
            self.current.insert(cpu, None);
            self.waiting.retain(|_, c| *c != cpu);
            return;
        }
        if !is_stack(event) && self.current.get(&cpu).copied().flatten().is_none_or(|pid| pid == OFFLINE) {
            self.run(cpu, event.pid.0);
        }
        match event.kind {
            EventKind::Switch { prev, state, next } => {
                self.run(cpu, prev.pid.0);
                if matches!(state.class, StateClass::Runnable | StateClass::Preempted) && prev.pid.0 != 0 {
                    self.waiting.insert(prev.pid.0, cpu);
                } else if self.incomplete && next.pid.0 == 0 {
                    // A task that waits there would run.
                    self.waiting.retain(|pid, on| *on != cpu || self.bandwidth.throttled.contains_key(pid));
                }
                self.current.insert(cpu, Some(0));
                self.run(cpu, next.pid.0);
            }
            EventKind::Wakeup { task, target } if self.running_on(task.pid.0).is_none() => {
                self.waiting.insert(task.pid.0, target.0);
            }
            EventKind::WakeupNew { task, target } => {
                if let Some(other) = self.running_on(task.pid.0) {
                    self.current.insert(other, None);
                }
                self.waiting.insert(task.pid.0, target.0);
            }
            EventKind::Migrate { task, dest, .. } => {
                if let Some(on) = self.waiting.get_mut(&task.pid.0) {
                    *on = dest.0;
                }
            }
            EventKind::Fork { parent, child, .. } => {
                self.traced.remove(&child.0);
                // Its number is another task's now.
                self.root = self.root.filter(|root| *root != child.0);
                if self.traced.contains(&parent.0) {
                    self.traced.insert(child.0);
                }
            }
            EventKind::Exec { pid, old_pid, .. } => {
                if pid != old_pid {
                    self.waiting.remove(&pid.0);
                    if let Some(on) = self.running_on(old_pid.0) {
                        self.current.insert(on, Some(pid.0));
                    }
                    if self.traced.remove(&old_pid.0) {
                        self.traced.insert(pid.0);
                    }
                }
                if self.root == Some(pid.0) {
                    self.traced.insert(pid.0);
                }
            }
            _ => {}
        }
    }
}

/// Bandwidth control, as its records show it, of kernels that throttle the queue of a cgroup.
#[derive(Default)]
struct Bandwidth {
    limits: BTreeMap<(CgroupId, u32), u32>,
    groups: BTreeMap<i32, CgroupId>,
    prios: BTreeMap<i32, i32>,
    throttled: BTreeMap<i32, u32>,
    records_forks: bool,
}

impl Bandwidth {
    /// Ends without a beginning before them, and before any loss, are those of throttling since the start.
    fn at_start(events: &[SchedEvent]) -> Bandwidth {
        let (mut bandwidth, mut begun) = (Bandwidth::default(), BTreeSet::new());
        for event in events.iter().take_while(|event| !matches!(event.kind, EventKind::Lost { .. })) {
            let EventKind::Probe { probe, .. } = event.kind else { continue };
            match probe {
                Probe::Throttles(Throttle { cpu: Some(cpu), cgroup: Some(group), .. }) => {
                    begun.insert((group, cpu.0));
                }
                Probe::Unthrottles(Throttle { cpu: Some(cpu), cgroup: Some(group), .. })
                    if !begun.contains(&(group, cpu.0)) =>
                {
                    *bandwidth.limits.entry((group, cpu.0)).or_default() += 1;
                }
                _ => {}
            }
        }
        bandwidth
    }

    fn is_throttled(&self, pid: i32, cpu: u32) -> bool {
        let limits = self.groups.get(&pid).and_then(|group| self.limits.get(&(*group, cpu)));
        limits.is_some_and(|limits| *limits > 0) && self.prios.get(&pid).is_none_or(|prio| *prio >= 100)
    }

    /// A task runs although its cgroup seems to be throttled.
    fn end(&mut self, pid: i32, cpu: u32) {
        if let Some(group) = self.groups.get(&pid) {
            self.limits.remove(&(*group, cpu));
        }
    }

    fn apply(&mut self, event: &SchedEvent) {
        match event.kind {
            EventKind::Switch { prev, next, state } => {
                self.prios.extend([(prev.pid.0, prev.prio), (next.pid.0, next.prio)]);
                if state.class == StateClass::Dead {
                    self.groups.remove(&prev.pid.0);
                }
            }
            EventKind::Waking { task, .. } | EventKind::Wakeup { task, .. } | EventKind::WakeupNew { task, .. } => {
                self.prios.insert(task.pid.0, task.prio);
            }
            EventKind::Migrate { task, .. } => drop(self.prios.insert(task.pid.0, task.prio)),
            EventKind::Fork { parent, child, .. } if !self.records_forks => match self.groups.get(&parent.0).copied() {
                Some(group) => drop(self.groups.insert(child.0, group)),
                None => drop(self.groups.remove(&child.0)),
            },
            EventKind::Exec { pid, old_pid, .. } if pid != old_pid => match self.groups.get(&old_pid.0).copied() {
                Some(group) => drop(self.groups.insert(pid.0, group)),
                None => drop(self.groups.remove(&pid.0)),
            },
            EventKind::Lost { .. } => self.limits.clear(),
            EventKind::Probe { probe: Probe::Joins { pid, cgroup, forked }, .. } => {
                self.records_forks |= forked;
                self.groups.insert(pid.0, cgroup);
            }
            EventKind::Probe {
                probe: Probe::Throttles(Throttle { cpu: Some(cpu), cgroup: Some(group), takes_queue }),
                ..
            } => {
                assert!(takes_queue, "a later kernel");
                *self.limits.entry((group, cpu.0)).or_default() += 1;
            }
            EventKind::Probe {
                probe: Probe::Unthrottles(Throttle { cpu: Some(cpu), cgroup: Some(group), .. }),
                ..
            } => {
                if let Some(limits) = self.limits.get_mut(&(group, cpu.0)) {
                    *limits = limits.saturating_sub(1);
                }
            }
            _ => {}
        }
    }
}

/// A stack behind a switch bears the number of the task that left.
fn is_stack(event: &SchedEvent) -> bool {
    matches!(event.kind, EventKind::Stack { .. })
}

fn of_kind(events: &[SchedEvent], is: impl Fn(&EventKind) -> bool) -> bool {
    events.iter().any(|event| is(&event.kind))
}

/// The events with the wakeups that the wakings among them stand for: on the previous CPU, and again where the waker's
/// next scheduler event moves the task. Nothing where there are no wakings.
fn of_wakings(events: &[SchedEvent]) -> Option<Vec<SchedEvent>> {
    let mut all = Vec::new();
    let mut latest: BTreeMap<Cpu, EventKind> = BTreeMap::new();
    for event in events {
        all.push(*event);
        let is_bare = matches!(event.kind, EventKind::Other { .. } | EventKind::Probe { .. });
        if is_bare || matches!(event.kind, EventKind::Frequency { .. } | EventKind::Interrupt { .. }) || is_stack(event)
        {
            continue;
        }
        let before = latest.insert(event.cpu, event.kind);
        let placed = match (before, event.kind) {
            (_, EventKind::Waking { task, target }) => Some((task, target)),
            (Some(EventKind::Waking { task: woken, .. }), EventKind::Migrate { task, dest, .. })
                if woken.pid == task.pid =>
            {
                Some((task, dest))
            }
            _ => None,
        };
        all.extend(placed.map(|(task, target)| SchedEvent { kind: EventKind::Wakeup { task, target }, ..*event }));
    }
    of_kind(events, |kind| matches!(kind, EventKind::Waking { .. })).then_some(all)
}

pub(crate) fn compare(name: &str, events: &[SchedEvent]) {
    let slow = match (of_kind(events, |kind| matches!(kind, EventKind::Wakeup { .. })), of_wakings(events)) {
        (false, Some(events)) => Slow::measure(&events, true),
        (wakeups, _) => Slow::measure(events, wakeups),
    };
    let (from, to) = (events[0].ts, events[events.len() - 1].ts);
    let conserve = workcons::Options::default();
    let cpus: BTreeSet<_> = events.iter().map(|event| (event.cpu, None)).collect();
    let interval = Dur(to.since(from).0.max(1));
    let used = utilization::Options {
        from,
        to,
        zero: from,
        cpus: cpus.into_iter().collect(),
        all_cpus: Vec::new(),
        group_name: String::new(),
        interval,
        tasks: None,
        topology: sched::Topology::default(),
        balance_interval: interval,
        ends: Vec::new(),
    };
    let shares = fairness::Options::new(from, to);
    let analyses = || (WorkConservation::new(&conserve), Utilization::new(&used), Fairness::new(&shares));
    let pass = Pass::over(events).window(Window::default()).run(analyses);
    let (report, used, shares) = pass.unwrap_or_else(|never| match never {}).output;
    let (time, threads) = (report.all.ns, report.all.thread_ns);
    let possible = (report.all.possible_percent * report.window_ns.0 as f64 / 100.0).round() as u64;
    let capacity = report.all.cpu_time_lost_percent * report.window_ns.0 as f64 * report.cpus.observed as f64 / 100.0;
    assert_eq!((time, threads), (slow.time, slow.threads), "{name}");
    assert!(
        (capacity - slow.capacity as f64).abs() < 1.0 + slow.capacity as f64 * 1e-9,
        "{name}: {capacity} {}",
        slow.capacity
    );
    assert_eq!(possible, slow.possible, "{name}: possible");
    let mean = |integral: u64| integral as f64 / report.window_ns.0 as f64;
    assert!((report.mean_running - mean(slow.running)).abs() < 1e-9, "{name}: running");
    assert!(
        (report.mean_waiting - mean(slow.waiting)).abs() < 1e-9,
        "{name}: waiting {} {}",
        report.mean_waiting,
        mean(slow.waiting)
    );
    let is_known = Slow::root(events).is_some_and(|_| {
        let count = |is: fn(&EventKind) -> bool| events.iter().filter(|event| is(&event.kind)).count();
        count(|kind| matches!(kind, EventKind::Fork { .. })) > 0
            || count(|kind| matches!(kind, EventKind::WakeupNew { .. })) < 4
    });
    let application = report.application.as_ref().map(|v| (v.ns, v.thread_ns));
    assert_eq!(application, is_known.then_some(slow.application), "{name}: application");
    // Those of the application that are real time stand apart, among others, and so do the interrupts.
    let (least, more) = (used.all.app_ns, used.all.rt_ns + used.all.rt_possible_ns + used.all.irq_ns);
    assert_eq!(least.is_some(), is_known, "{name}");
    let ran = slow.application_ran;
    assert!(least.is_none_or(|least| (least..=least + more).contains(&ran)), "{name}: {least:?} {more} {ran}");
    let pid = |name: &str| name.rsplit(' ').next().and_then(|pid| pid.parse().ok()).expect("a number");
    let theirs: BTreeMap<i32, (u64, u64)> = shares
        .members
        .iter()
        .map(|m| (pid(&m.name), (m.run_ns.0, m.wait_ns.0)))
        .filter(|(_, sums)| *sums != (0, 0))
        .collect();
    assert_eq!(theirs, slow.tasks, "{name}: tasks");
}

#[test]
fn a_second_implementation_agrees_on_every_recording() {
    let mut compared = 0;
    for path in fixtures_and_part(3) {
        let trace = Trace::open(&path, parse::Options::default()).expect("a readable recording");
        if trace.has_time().is_err() {
            continue;
        }
        compare(&path.display().to_string(), &events(&trace));
        compared += 1;
    }
    assert!(compared >= 12);
}

/// Takes seconds: losses at any place of random runs, of which few hide an event that matters.
#[test]
fn a_second_implementation_agrees_on_simulated_losses() {
    for seed in crate::support::seeds(200) {
        let sim = Simulation::any(seed, 1 + (seed % 7) as u32, 500);
        compare(&format!("seed {seed}"), &sim.events);
        // A mark behind a loss is nothing that a reader delivers.
        if sim.events.iter().all(|event| event.kind != EventKind::Offline) {
            compare(&format!("seed {seed}, lossy"), &sim.lossy(seed).0);
        }
    }
}

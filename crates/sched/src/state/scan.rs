//! The effect of a stretch of events, found without the state before it (`docs/design.md#state`).
//!
//! After some thousand events nearly every task that they are about was switched in or woken among them, and every CPU has
//! switched: their state is decided within the stretch. A [`Scan`] follows the events from a state in which no task is known,
//! and notes what the first event about each task takes for granted: that it ran, waited or slept. Where the true state
//! before the stretch has it so, [`SchedState::take`] makes the true state behind the stretch of it, by the tasks that the events
//! are about and not by the events. The rest (contradictions, losses, records of throttling, tasks that appear without a birth) is
//! left to the walk over the events.

use super::tasks::Tasks;
use super::{CpuState, SchedState, Task, Waking};
use crate::event::diag::EventIssue;
use crate::event::probe::Probe;
use crate::event::span::{Came, Current, TaskState};
use crate::event::{Comm, Cpu, EventKind, Pid, SchedEvent, StateClass, TaskRef, Ts};
use crate::tables::limits::TASKS;
use crate::tables::seeded::{SeededMap, SeededSet};

/// The state of a task before the stretch, as the events about it take it for granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    Running(Cpu),
    Waiting(Cpu),
    Asleep,
    /// Not known yet: the task was announced to be woken, or was migrated; from this CPU then.
    Undecided(Option<Cpu>),
}

/// The waking of a task that no event of the stretch shows: the one before the stretch, if there is one.
const EARLIER: Waking = Waking { by: Pid::UNKNOWN, at: Ts::MIN, on: Cpu(0), previous: Cpu(0) };

/// The first event about a task, and what followed from it.
#[derive(Clone, Copy, Debug)]
struct First {
    before: Before,
    /// Whether that event announced a wakeup or was one: of a task that no event has shown before, it shows that the task slept.
    shows_sleep: bool,
    /// The instant of the last migration of the task before its state was decided.
    moved: Option<Ts>,
}

/// A change of the set of tasks, or of what is known of one beside its state, in the order of events.
#[derive(Clone, Copy, Debug)]
enum Turnover {
    Fork {
        parent: Pid,
        child: Pid,
    },
    Birth(TaskRef, Ts),
    /// The first event about a task that slept, which may be the first one of all: with the CPU that it slept on.
    Meeting(TaskRef, Cpu, Ts),
    Death(Pid),
    /// A program, and the name before where the stretch shows it.
    Exec {
        pid: Pid,
        program: Comm,
        before: Comm,
    },
    Rename {
        pid: Pid,
        before: Comm,
    },
    /// A record of a probe that changes no task, no CPU and no queue.
    Record(SchedEvent),
}

/// The entries of interrupt handlers of a CPU, less the exits.
#[derive(Clone, Copy, Debug, Default)]
struct Nesting {
    now: i64,
    least: i64,
}

/// The events of a CPU.
#[derive(Clone, Debug, Default)]
struct ScannedCpu {
    /// The occupant before the stretch, by the first event; unknown if there is none.
    occupant: Current,
    /// Whether it has switched, or its task has another name.
    switched: bool,
    /// A name other than that of the first occupant, which took it.
    renamed: Option<Comm>,
    handlers: Nesting,
}

/// The effect of a stretch of events.
#[derive(Debug)]
pub(crate) struct Scan {
    /// The state behind the stretch, as far as the stretch alone shows it.
    state: SchedState,
    firsts: SeededMap<Pid, First>,
    /// The number of tasks in `firsts` whose state before is not known yet.
    undecided: usize,
    turnover: Vec<Turnover>,
    dead: SeededSet<Pid>,
    cpus: Vec<ScannedCpu>,
}

impl SchedState {
    /// Whether the effect of events can be found without this state: it has nothing that an event about one task or CPU
    /// changes for others.
    pub(crate) fn can_be_scanned(&self) -> bool {
        let throttles = self.throttling.as_ref().is_some_and(|throttling| throttling.is_active());
        self.is_start_known() && !self.by_wakings && !throttles
    }

    /// The same trace without any knowledge of its tasks, for a [`Scan`].
    pub(crate) fn unknown(&self) -> SchedState {
        let cpus = self.cpus.iter().map(|c| CpuState { observed: c.observed, since: Ts::MIN, ..Default::default() });
        SchedState {
            start: Ts::MIN,
            now: Ts::MIN,
            is_scan: true,
            without_wakeups: self.without_wakeups,
            without_wakings: self.without_wakings,
            has_ext_queues: self.has_ext_queues,
            without_contexts: self.without_contexts,
            cpus: cpus.collect(),
            ..SchedState::default()
        }
    }
}

impl Scan {
    /// Finds the effect of `events` from a state without knowledge of tasks; `None` where only the walk over them shows it.
    pub(crate) fn of<'e>(events: impl IntoIterator<Item = &'e SchedEvent>, unknown: SchedState) -> Option<Scan> {
        let cpus = unknown.cpus.len();
        let mut scan = Scan {
            state: unknown,
            firsts: SeededMap::default(),
            undecided: 0,
            turnover: Vec::new(),
            dead: SeededSet::default(),
            cpus: vec![ScannedCpu::default(); cpus],
        };
        events.into_iter().try_for_each(|event| scan.follow(event))?;
        scan.is_decided().then_some(scan)
    }

    /// Takes the next event; `None` where the walk is needed.
    #[inline(always)]
    fn follow(&mut self, event: &SchedEvent) -> Option<()> {
        let cpu = self.cpus.get_mut(event.cpu.index())?;
        if cpu.occupant == Current::Unknown && !matches!(event.kind, EventKind::Stack { .. }) {
            if event.pid == Pid::UNKNOWN {
                return None;
            }
            cpu.occupant = Current::of(event.pid);
        }
        match event.kind {
            EventKind::Switch { prev, state, next } => {
                cpu.switched = true;
                if self.undecided > 0 && !next.pid.is_idle() {
                    self.decide(next.pid, event.cpu)?;
                }
                if state.class == StateClass::Dead {
                    if prev.pid.is_idle() {
                        return None;
                    }
                    self.turnover.push(Turnover::Death(prev.pid));
                    self.dead.insert(prev.pid);
                }
            }
            EventKind::Wakeup { task, .. } if self.undecided > 0 => self.wake(task.pid),
            EventKind::Migrate { task, orig, .. } if self.undecided > 0 => self.migrate(task.pid, orig, event.ts)?,
            EventKind::WakeupNew { task, .. } => {
                self.turnover.push(Turnover::Birth(task, event.ts));
            }
            EventKind::Fork { parent, child, .. } => self.turnover.push(Turnover::Fork { parent, child }),
            EventKind::Interrupt { entry, .. } => {
                cpu.handlers.now += if entry { 1 } else { -1 };
                cpu.handlers.least = cpu.handlers.least.min(cpu.handlers.now);
            }
            EventKind::Wakeup { .. }
            | EventKind::Waking { .. }
            | EventKind::Migrate { .. }
            | EventKind::Exit { .. }
            | EventKind::Frequency { .. }
            | EventKind::Numa { .. }
            | EventKind::Stack { .. }
            | EventKind::Other { .. } => {}
            EventKind::Exec { pid, old_pid, program } if pid == old_pid => {
                let before = self.take_name(event, pid, program)?;
                self.turnover.push(Turnover::Exec { pid, program, before });
            }
            EventKind::Rename { pid, before, after } => {
                self.take_name(event, pid, after)?;
                self.turnover.push(Turnover::Rename { pid, before });
            }
            EventKind::Probe { probe, .. } => match probe {
                Probe::Allows(..) | Probe::Joins { .. } => {
                    self.turnover.push(Turnover::Record(*event));
                }
                Probe::Throttles(_)
                | Probe::Unthrottles(_)
                | Probe::ThrottlesTask(..)
                | Probe::SetsPolicy { .. }
                | Probe::PolicyCallReturns { .. }
                | Probe::Picks { .. } => return None,
                _ => {}
            },
            EventKind::Exec { .. } | EventKind::Lost { .. } | EventKind::Offline => return None,
        }
        let lives = self.state.tasks.lives();
        self.state.step(event);
        if self.state.tasks.lives() != lives { self.meet(event, lives) } else { Some(()) }
    }

    /// Notes the first event about a task.
    #[cold]
    fn meet(&mut self, event: &SchedEvent, lives: u32) -> Option<()> {
        let is_new = |tasks: &Tasks, pid: Pid| {
            tasks.find(pid).and_then(|slot| tasks.at(slot)).is_some_and(|task| task.id().life > lives)
        };
        // The task that the event is about, and the one that ran: a switch can bring both, and end the life of the latter.
        let (about, is_birth) = match event.kind {
            EventKind::Switch { next, .. } => (Some((next.pid, Before::Waiting(event.cpu))), false),
            EventKind::Wakeup { task, .. } => (Some((task.pid, Before::Asleep)), false),
            EventKind::Waking { task, .. } => (Some((task.pid, Before::Undecided(None))), false),
            // On a CPU without events a wait has no known end.
            EventKind::Migrate { orig, .. } if !self.state.is_observed(orig) => return None,
            EventKind::Migrate { task, orig, .. } => (Some((task.pid, Before::Undecided(Some(orig)))), false),
            EventKind::WakeupNew { .. } => (None, true),
            _ => (None, false),
        };
        let slept = match event.kind {
            EventKind::Wakeup { task, target } | EventKind::Waking { task, target } => Some((task, target)),
            _ => None,
        };
        let about = about.filter(|(pid, _)| is_new(&self.state.tasks, *pid));
        let others = self.state.tasks.lives().wrapping_sub(lives) - u32::from(about.is_some()) - u32::from(is_birth);
        let runs = (others > 0).then_some((event.pid, Before::Running(event.cpu)));
        let died = |pid| matches!(event.kind, EventKind::Switch { prev, .. } if prev.pid == pid);
        let shows_sleep = about.is_some() && slept.is_some();
        if let Some((task, target)) = slept.filter(|_| shows_sleep) {
            self.turnover.push(Turnover::Meeting(task, target, event.ts));
        }
        for (pid, before) in about.into_iter().chain(runs) {
            if self.dead.contains(&pid) && !died(pid) {
                return None;
            }
            self.undecided += usize::from(matches!(before, Before::Undecided(_)));
            let moved = matches!(event.kind, EventKind::Migrate { .. }).then_some(event.ts);
            // A switch to the task has ended what a waking before announced.
            if !matches!(before, Before::Waiting(_))
                && let Some(slot) = self.state.tasks.find(pid)
            {
                self.state.tasks.entry(slot).waking.get_or_insert(EARLIER);
            }
            let shows_sleep = shows_sleep && before != Before::Running(event.cpu);
            if self.firsts.insert(pid, First { before, moved, shows_sleep }).is_some() {
                return None;
            }
        }
        Some(())
    }

    /// Takes another name of the task that runs where the event was recorded. Returns the name before, empty if no event of the stretch shows it.
    #[cold]
    fn take_name(&mut self, event: &SchedEvent, pid: Pid, name: Comm) -> Option<Comm> {
        let cpu = self.cpus.get_mut(event.cpu.index())?;
        let is_first = !cpu.switched && cpu.renamed.is_none();
        let current = match self.state.current(event.cpu) {
            Current::Unknown => cpu.occupant,
            known => known,
        };
        if pid.is_idle() || pid != event.pid || name.is_empty() || current != Current::of(pid) {
            return None;
        }
        cpu.renamed = if is_first { Some(name) } else { cpu.renamed };
        cpu.switched = true;
        Some(self.state.task_of(pid).map_or(Comm::EMPTY, |task| task.comm))
    }

    /// The state so far of a task that may have been asleep or waiting before the stretch: the CPU that it is on.
    fn undecided(&self, pid: Pid) -> Option<Cpu> {
        let task = self.state.task_of(pid)?;
        match task.state {
            TaskState::Asleep(cpu) if !task.begun => Some(cpu),
            _ => None,
        }
    }

    /// Takes a switch to a task: where it was migrated and not woken before, it had waited.
    fn decide(&mut self, pid: Pid, cpu: Cpu) -> Option<()> {
        let Some(on) = self.undecided(pid) else { return Some(()) };
        let first = self.firsts.get_mut(&pid)?;
        let Before::Undecided(Some(orig)) = first.before else { return None };
        first.before = Before::Waiting(orig);
        self.undecided -= 1;
        (on == cpu).then_some(())
    }

    /// Takes a wakeup: a task that was only announced or migrated until then had slept.
    fn wake(&mut self, pid: Pid) {
        if self.undecided(pid).is_some()
            && let Some(first) = self.firsts.get_mut(&pid)
            && matches!(first.before, Before::Undecided(_))
        {
            first.before = Before::Asleep;
            self.undecided -= 1;
        }
    }

    /// Takes a migration: one that begins elsewhere than the one before ended is left to the walk.
    fn migrate(&mut self, pid: Pid, orig: Cpu, at: Ts) -> Option<()> {
        let Some(on) = self.undecided(pid) else { return Some(()) };
        if let Some(first) = self.firsts.get_mut(&pid) {
            first.moved = Some(at);
            if first.before != Before::Undecided(None) && on != orig || !self.state.is_observed(orig) {
                return None;
            }
        }
        Some(())
    }

    /// Whether the stretch has nothing that only the walk decides.
    fn is_decided(&self) -> bool {
        let state = &self.state;
        let repairs = state.latest_repair.0;
        let runs = |c: &CpuState| c.current.pid().is_some() == c.running.is_some();
        let named = |(c, scanned): (&CpuState, &ScannedCpu)| !scanned.switched || runs(c) && c.is_named();
        let decided = |task: &Task| match task.state {
            TaskState::Running(cpu) => {
                task.begun && task.is_named() || !task.begun && (!task.is_named() || self.keeps_name(cpu))
            }
            TaskState::Waiting(_) => task.begun && task.is_named(),
            TaskState::Asleep(_) => task.is_named(),
            TaskState::Throttled(_) | TaskState::Dead | TaskState::Unknown => false,
        };
        repairs == state.repairs.count(EventIssue::EarlyWakeup)
            && state.tasks.lives() < TASKS as u32 / 2
            && state.cpus.len() == self.cpus.len()
            && state.cpus.iter().zip(&self.cpus).all(named)
            && state.tasks.living().all(decided)
    }
}

impl Scan {
    /// Whether the occupant of `cpu` has taken no other name.
    fn keeps_name(&self, cpu: Cpu) -> bool {
        self.cpus.get(cpu.index()).is_some_and(|cpu| cpu.renamed.is_none())
    }
}

impl CpuState {
    /// Whether its task has a name.
    fn is_named(&self) -> bool {
        self.current.pid().is_none() || !self.comm.is_empty()
    }
}

impl Task {
    /// Whether events have shown its name and its priority.
    fn is_named(&self) -> bool {
        !self.comm.is_empty() && self.known_prio().is_some()
    }
}

/// A task that has joined the queue where it waits behind the stretch.
struct Joiner {
    cpu: Cpu,
    at: Ts,
    pid: Pid,
    /// Whether it waited elsewhere before, and has only been moved.
    moved: bool,
}

impl SchedState {
    /// Makes the state behind a stretch of events by its effect. Returns `false`, and changes nothing, where the walk over them is needed.
    pub(crate) fn take(&mut self, scan: &Scan) -> bool {
        let Some(joiners) = self.is_taken_for_granted_by(scan).then(|| self.joiners(scan)).flatten() else {
            return false;
        };
        for (pid, first) in &scan.firsts {
            if let Before::Waiting(cpu) | Before::Undecided(Some(cpu)) = first.before
                && let Some(slot) = self.tasks.find(*pid)
                && self.tasks.entry(slot).state == TaskState::Waiting(cpu)
            {
                self.tasks.leave(&mut self.cpus[cpu.index()].queue, slot);
            }
        }
        scan.turnover.iter().for_each(|change| self.turn_over(*change));
        scan.state.tasks.living().for_each(|task| self.become_as(task, scan.firsts.get(&task.pid)));
        for (cpu, scanned) in scan.cpus.iter().enumerate() {
            self.go_on_behind(cpu, scanned, &scan.state.cpus[cpu]);
        }
        for Joiner { cpu, pid, .. } in joiners {
            if let Some(slot) = self.tasks.find(pid) {
                self.tasks.join(&mut self.cpus[cpu.index()].queue, slot);
            }
        }
        self.tasks.has_odd |= scan.state.tasks.has_odd;
        self.seen.add(&scan.state.seen);
        let (repairs, latest) = scan.state.latest_repair;
        if repairs > 0 {
            self.repairs.merge(&scan.state.repairs);
            self.latest_repair = (self.latest_repair.0.saturating_add(repairs), latest);
        }
        self.now = scan.state.now;
        self.forget_facts();
        true
    }

    /// Whether this state is the one that the stretch takes for granted.
    fn is_taken_for_granted_by(&self, scan: &Scan) -> bool {
        if !self.can_be_scanned() || self.cpus.len() != scan.cpus.len() || self.tasks.number() >= TASKS / 2 {
            return false;
        }
        let fits_cpu = |(c, (scanned, behind)): (&CpuState, (&ScannedCpu, &CpuState))| {
            let Nesting { least, .. } = scanned.handlers;
            let is_silent = scanned.occupant == Current::Unknown;
            c.observed == behind.observed
                && c.raised.is_unknown()
                && c.lost_since.is_none()
                && i64::from(c.handlers) + least >= 0
                && (is_silent || c.current == scanned.occupant && c.is_named())
                && scanned.renamed != Some(c.comm)
        };
        let is_forked = |pid: Pid| self.lineage.of(pid).forked || scan.state.lineage.of(pid).forked;
        let fits_task = |(pid, first): (&Pid, &First)| match self.task_of(*pid) {
            Some(task) => task.fits(*first),
            // The very first event about a task shows that it slept ([`SchedState::sleeper`]).
            None => first.shows_sleep && !is_forked(*pid),
        };
        let mut gone = SeededSet::<Pid>::default();
        let fits_turnover = |change: &Turnover| match change {
            Turnover::Fork { .. } | Turnover::Meeting(..) | Turnover::Record(_) => true,
            Turnover::Exec { .. } | Turnover::Rename { .. } => true,
            Turnover::Birth(task, _) => gone.contains(&task.pid) || self.tasks.find(task.pid).is_none(),
            Turnover::Death(pid) => {
                gone.insert(*pid);
                true
            }
        };
        self.cpus.iter().zip(scan.cpus.iter().zip(&scan.state.cpus)).all(fits_cpu)
            && scan.firsts.iter().all(fits_task)
            && scan.turnover.iter().all(fits_turnover)
    }

    /// Returns the tasks that have joined the queues where they wait behind the stretch, in their order; `None` where it does not show that order.
    fn joiners(&self, scan: &Scan) -> Option<Vec<Joiner>> {
        let cpus = (0..scan.cpus.len() as u32).map(Cpu);
        let waiting = cpus.flat_map(|cpu| scan.state.waiting(cpu).map(move |task| (cpu, task)));
        let mut joiners: Vec<Joiner> =
            waiting.map(|(cpu, task)| Joiner { cpu, at: task.since, pid: task.pid, moved: false }).collect();
        let woken = joiners.len();
        // Those that waited before, and were moved to another queue.
        for (pid, first) in &scan.firsts {
            if let (Before::Undecided(Some(orig)), Some(at)) = (first.before, first.moved)
                && self.task_of(*pid).is_some_and(|task| task.state == TaskState::Waiting(orig))
            {
                // The CPU may be one that no event has shown.
                let cpu = scan.undecided(*pid).filter(|cpu| cpu.index() < self.cpus.len())?;
                joiners.push(Joiner { cpu, at, pid: *pid, moved: true });
            }
        }
        if joiners.len() > woken {
            joiners.sort_by_key(|joiner| (joiner.cpu, joiner.at));
            let is_unclear = |pair: &[Joiner]| match pair {
                [one, other] => (one.cpu, one.at) == (other.cpu, other.at) && (one.moved || other.moved),
                _ => false,
            };
            if joiners.windows(2).any(is_unclear) {
                return None;
            }
        }
        Some(joiners)
    }

    /// Takes a change of the set of tasks.
    fn turn_over(&mut self, change: Turnover) {
        self.tasks.bury();
        match change {
            Turnover::Fork { parent, child } => self.fork(parent, child),
            Turnover::Exec { pid, program, before } => {
                let name = self.task_of(pid).map_or(Comm::EMPTY, |task| task.comm);
                self.lineage.exec(pid, pid, program, if before.is_empty() { name } else { before });
                self.relate(pid);
            }
            Turnover::Rename { pid, before } => self.lineage.rename(pid, before),
            Turnover::Record(event) => {
                if let EventKind::Probe { probe, .. } = &event.kind {
                    self.follow_probe(probe, &event);
                }
            }
            Turnover::Birth(task, at) => {
                if let Some(slot) = self.birth(task, TaskState::Unknown, at) {
                    self.tasks.entry(slot).born = Some(at);
                }
            }
            Turnover::Meeting(task, on, at) => {
                if self.tasks.find(task.pid).is_none() {
                    self.now = at;
                    self.sleeper(task, on);
                }
            }
            Turnover::Death(pid) => {
                if let Some(slot) = self.tasks.find(pid) {
                    self.tasks.entry(slot).state = TaskState::Dead;
                    self.tasks.die(slot);
                }
                self.lineage.forget(pid);
                self.forget_records(pid);
            }
        }
    }

    /// Makes a task what it is behind the stretch.
    fn become_as(&mut self, behind: &Task, first: Option<&First>) {
        let Some(slot) = self.tasks.find(behind.pid) else { return };
        let task = self.tasks.entry(slot);
        // A waking names the waker of one wakeup: the one before the stretch is used, or is that of a wakeup within.
        if behind.waking != Some(EARLIER) {
            (task.waking, task.waking_is_used) = (behind.waking, behind.waking_is_used);
        } else if behind.waking_is_used {
            task.waking = task.waking.filter(|_| !task.waking_is_used);
            task.waking_is_used = true;
        }
        if behind.begun {
            (task.state, task.since, task.begun) = (behind.state, behind.since, behind.begun);
            if behind.came != Came::Unknown {
                (task.queued, task.came) = (behind.queued, behind.came);
            } else if first.is_some_and(|first| first.moved.is_some() && matches!(first.before, Before::Waiting(_))) {
                task.came = Came::Moved;
            }
            task.undecided = None;
            task.ran_on = behind.ran_on.or(task.ran_on);
            (task.comm, task.prio) = (behind.comm, behind.prio);
            return;
        }
        task.prio = behind.known_prio().unwrap_or(task.prio);
        // A task that ran all the time has another name only by an exec or by taking one.
        let is_asleep = matches!(behind.state, TaskState::Asleep(_));
        if is_asleep || !behind.is_named() && !behind.comm.is_empty() {
            task.comm = behind.comm;
        }
        let Some(at) = first.and_then(|first| first.moved).filter(|_| is_asleep) else { return };
        if let (TaskState::Waiting(_), TaskState::Asleep(cpu)) = (task.state, behind.state) {
            (task.state, task.since, task.begun, task.came) = (TaskState::Waiting(cpu), at, true, Came::Moved);
        } else {
            task.state = behind.state;
        }
    }

    /// Makes a CPU what it is behind the stretch, but for its queue.
    fn go_on_behind(&mut self, cpu: usize, scanned: &ScannedCpu, behind: &CpuState) {
        let running = behind.current.pid().and_then(|pid| self.tasks.find(pid));
        let c = &mut self.cpus[cpu];
        c.handlers = u32::try_from(i64::from(c.handlers) + scanned.handlers.now).unwrap_or(u32::MAX);
        c.emptied |= behind.emptied;
        c.raised = behind.raised;
        if scanned.switched {
            (c.current, c.running, c.comm, c.since) = (behind.current, running, behind.comm, behind.since);
        }
    }
}

impl Task {
    /// Whether the task was what its first event takes for granted.
    fn fits(&self, first: First) -> bool {
        self.is_named()
            && self.undecided.is_none()
            && match first.before {
                Before::Undecided(Some(orig)) if self.state == TaskState::Waiting(orig) => true,
                Before::Running(cpu) => self.state == TaskState::Running(cpu),
                Before::Waiting(cpu) => self.state == TaskState::Waiting(cpu),
                Before::Asleep | Before::Undecided(_) => matches!(self.state, TaskState::Asleep(_)),
            }
    }
}

#[cfg(debug_assertions)]
impl SchedState {
    /// All that events can make of a state, to be compared.
    pub(crate) fn compared(&self) -> impl PartialEq + std::fmt::Debug {
        let mut past = self.noted();
        // Tasks that do not wait are in no order.
        past.tasks.sort_by_key(|task| task.pid);
        let queued = |cpu: u32| self.waiting(Cpu(cpu)).map(|task| (task.pid, task.excess_weight())).collect::<Vec<_>>();
        let cpu = |(n, c): (u32, &CpuState)| {
            let running = c.running.and_then(|slot| self.tasks.at(slot)).map(|task| task.pid);
            (queued(n), running, c.queue.len, c.queue.odd, c.queue.unweighed, c.queue.excess)
        };
        let cpus: Vec<_> = (0..).zip(&self.cpus).map(cpu).collect();
        let kin: Vec<_> =
            past.tasks.iter().map(|task| self.task_of(task.pid).map(|task| (task.kin, task.is_sched_idle))).collect();
        let found = (self.discovered.len(), self.named.len(), self.newcomers, self.latest_repair);
        (past, cpus, kin, found, self.now, self.tasks.has_odd)
    }
}

#[cfg(test)]
mod tests;

//! The attempts of the load balancer, from the records of probes on it.
//!
//! The probes of one attempt follow one another on the CPU that balances: `find_busiest_group` if the CPU is the one of
//! its group that balances, `can_migrate` for each task examined, and `load_balance` on the return. Kernels without
//! arguments on the return (before 6.9) have a probe on the entry as well.

use crate::event::probe::{Balancing, Examined, Probe, RunQueue};
use crate::event::{Comm, Cpu, EventKind, SchedEvent, Ts};
use crate::tables::serial::exact;
use serde::{Deserialize, Serialize};

/// The numbers of verdicts on the tasks that the balancer examined (`can_migrate_task`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verdicts {
    /// Number of tasks that could be moved.
    pub movable: u64,
    /// Number of tasks that were running.
    pub running: u64,
    /// Number of tasks that may use one CPU only.
    pub one_cpu: u64,
    /// Number of tasks refused for another reason: not allowed on the CPU that balances, cache-hot, throttled, or not
    /// eligible.
    pub other: u64,
}

impl Verdicts {
    /// Adds the verdicts of another attempt.
    pub fn add(&mut self, other: &Verdicts) {
        self.movable = self.movable.saturating_add(other.movable);
        self.running = self.running.saturating_add(other.running);
        self.one_cpu = self.one_cpu.saturating_add(other.one_cpu);
        self.other = self.other.saturating_add(other.other);
    }

    /// Returns the verdicts without `some` of them.
    #[must_use]
    pub fn without(&self, some: &Verdicts) -> Verdicts {
        Verdicts {
            movable: self.movable.saturating_sub(some.movable),
            running: self.running.saturating_sub(some.running),
            one_cpu: self.one_cpu.saturating_sub(some.one_cpu),
            other: self.other.saturating_sub(some.other),
        }
    }

    /// The number of examined tasks.
    pub fn examined(&self) -> u64 {
        [self.movable, self.running, self.one_cpu, self.other].into_iter().fold(0, u64::saturating_add)
    }

    /// Counts the verdict on one task: whether it may be moved, and if not, why.
    fn take(&mut self, task: Examined, ok: bool) {
        let count = match (ok, task.on_cpu, task.bound) {
            (true, ..) => &mut self.movable,
            (false, Some(true), _) => &mut self.running,
            (false, _, Some(true)) => &mut self.one_cpu,
            (false, ..) => &mut self.other,
        };
        *count = count.saturating_add(1);
    }
}

/// The outcome of an attempt to balance, ordered by how far the attempt came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum AttemptOutcome {
    /// No search: another CPU of the group balances for this one.
    NotChosen,
    /// A search without a busiest group.
    NoBusiestGroup,
    /// A busiest group of which no task was moved; without records of verdicts nothing shows whether one was examined.
    NoneMoved,
    /// A busiest group of which no task was examined: no busiest queue, or its lock was not taken.
    NoTaskExamined,
    /// A refusal of every examined task.
    AllRefused,
    /// A move of one or more tasks.
    Moved,
}

/// An attempt of a CPU to balance one scheduling domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The instant at which the attempt ended.
    pub ts: Ts,
    /// The CPU that made the attempt.
    pub on: Cpu,
    /// The kind of balance.
    pub balancing: Balancing,
    /// The name of the scheduling domain, such as `MC` or `NUMA`; empty if the probe does not show it.
    pub domain: Comm,
    /// The outcome of the attempt.
    pub outcome: AttemptOutcome,
    /// The number of tasks that the attempt moved.
    pub moved: u32,
    /// The verdicts on the tasks that the attempt examined.
    pub verdicts: Verdicts,
    /// The imbalance that the attempt found, and the kernel's number of its unit (`enum migration_type`).
    pub imbalance: Option<(u32, Option<u8>)>,
}

/// The records of an attempt that were seen so far on a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct OpenAttempt {
    balancing: Balancing,
    #[serde(with = "exact")]
    domain: Comm,
    /// Whether a search found a busiest group.
    found: Option<bool>,
    imbalance: Option<(u32, Option<u8>)>,
    verdicts: Verdicts,
    /// The task that is being examined.
    task: Examined,
    /// Whether active balance goes on, by the stopper, which examines tasks as well, outside of any attempt.
    is_active: bool,
}

/// A collector that puts the records of attempts together.
///
/// The caller passes each event, in the order of the trace.
#[derive(Clone, Debug, Default)]
pub struct Attempts {
    open: Vec<OpenAttempt>,
    verdicts: Verdicts,
    /// Whether the trace lacks the verdicts on tasks, so that no record of one means nothing.
    hides_verdicts: bool,
}

impl Attempts {
    /// The collector for a trace with records of verdicts on tasks (`can_migrate`), or without.
    pub fn new(has_verdicts: bool) -> Attempts {
        Attempts { hides_verdicts: !has_verdicts, ..Attempts::default() }
    }

    /// The verdicts on all tasks that were examined so far, in attempts and otherwise.
    pub fn verdicts(&self) -> Verdicts {
        self.verdicts
    }

    /// Takes the next event; returns the attempt that it ends, if it ends one.
    pub fn event(&mut self, event: &SchedEvent) -> Option<Attempt> {
        match event.kind {
            EventKind::Probe { probe, .. } => self.probe(event, probe),
            // The parts seen so far may belong to another attempt than those behind the gap.
            EventKind::Lost { .. } => {
                self.open.get_mut(event.cpu.index()).into_iter().for_each(|open| *open = OpenAttempt::default());
                None
            }
            _ => None,
        }
    }

    /// Whether records of an attempt were seen that has not ended.
    pub fn has_open(&self) -> bool {
        self.open.iter().any(|open| *open != OpenAttempt::default())
    }

    /// Notes the open attempts for a part of a trace.
    pub(crate) fn noted(&self) -> Vec<(Cpu, PastAttempt)> {
        let is_open = |(_, open): &(Cpu, &OpenAttempt)| **open != OpenAttempt::default();
        (0..).map(Cpu).zip(&self.open).filter(is_open).map(|(cpu, open)| (cpu, PastAttempt(*open))).collect()
    }

    /// Takes up the notes of a part of a trace.
    pub fn recall(&mut self, noted: &[(Cpu, PastAttempt)]) {
        for (cpu, PastAttempt(open)) in noted.iter().filter(|(cpu, _)| cpu.0 < Cpu::LIMIT) {
            if cpu.index() >= self.open.len() {
                self.open.resize(cpu.index() + 1, OpenAttempt::default());
            }
            self.open[cpu.index()] = *open;
        }
    }

    /// Takes a record of a probe; returns the attempt that it ends, if it ends one.
    fn probe(&mut self, event: &SchedEvent, probe: Probe) -> Option<Attempt> {
        let index = event.cpu.index();
        if index >= self.open.len() {
            self.open.resize(index + 1, OpenAttempt::default());
        }
        let open = &mut self.open[index];
        match probe {
            // Parts of an earlier attempt whose end was lost are none of this one.
            Probe::AttemptBegins(balancing, domain) => {
                *open = OpenAttempt { balancing, domain, ..OpenAttempt::default() }
            }
            Probe::ActiveBalances(..) => *open = OpenAttempt { is_active: true, ..OpenAttempt::default() },
            Probe::Searched { found, imbalance, how } => {
                if open.is_active {
                    *open = OpenAttempt::default();
                }
                open.found = Some(found);
                open.imbalance = imbalance.filter(|_| found).map(|imbalance| (imbalance, how));
            }
            Probe::Examines(task) => open.task = task,
            Probe::Examined(task, ok) => {
                let task = task.or(std::mem::take(&mut open.task));
                self.verdicts.take(task, ok);
                open.verdicts.take(task, ok);
            }
            Probe::AttemptEnds { balancing, domain, moved } => {
                let open = std::mem::take(open);
                let mut attempt = open.end(event, balancing, domain, moved);
                if self.hides_verdicts && attempt.outcome == AttemptOutcome::NoTaskExamined {
                    attempt.outcome = AttemptOutcome::NoneMoved;
                }
                return Some(attempt);
            }
            _ => {}
        }
        None
    }
}

impl OpenAttempt {
    /// Returns the attempt that the record `event` of its end completes.
    fn end(self, event: &SchedEvent, balancing: Balancing, domain: Comm, moved: u32) -> Attempt {
        let outcome = match (moved, self.found, self.verdicts.examined()) {
            (1.., ..) => AttemptOutcome::Moved,
            (_, None, _) => AttemptOutcome::NotChosen,
            (_, Some(false), _) => AttemptOutcome::NoBusiestGroup,
            (_, Some(true), 0) => AttemptOutcome::NoTaskExamined,
            _ => AttemptOutcome::AllRefused,
        };
        let is_shown = balancing != Balancing::Unknown;
        Attempt {
            ts: event.ts,
            on: event.cpu,
            balancing: if is_shown { balancing } else { self.balancing },
            domain: if domain.is_empty() { self.domain } else { domain },
            outcome,
            moved,
            verdicts: self.verdicts,
            imbalance: self.imbalance,
        }
    }
}

/// The records of an open attempt on a CPU before a part of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastAttempt(OpenAttempt);

/// The gate of new-idle balancing: whether the kernel attempts it, and if not, why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Gate {
    /// Closed: a task is being woken on the CPU.
    Pending,
    /// Closed: the machine has no overloaded CPU, by the kernel's flag.
    NotOverloaded,
    /// Closed: the CPU idles less on average than the cheapest balance costs.
    TooCostly,
    /// Open: a balance is worth its cost.
    Open,
}

impl RunQueue {
    /// Returns the gate in this state; `None` if the probe does not record the values that decide it.
    pub fn gate(&self) -> Option<Gate> {
        match (self.pending, self.overloaded, self.avg_idle.zip(self.cost)) {
            (Some(true), ..) => Some(Gate::Pending),
            (_, Some(false), _) => Some(Gate::NotOverloaded),
            (.., Some((idle, cost))) if idle < cost => Some(Gate::TooCostly),
            (_, Some(true), Some(_)) => Some(Gate::Open),
            _ => None,
        }
    }
}

/// The outcome of new-idle balancing at a switch to idle, ordered by how far it came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum NewIdleOutcome {
    /// Unknown, since events were lost, or the balance began before the window.
    #[default]
    Unknown,
    /// Not attempted: a task was being woken on the CPU.
    WakeupPending,
    /// Not attempted: no CPU of the machine was overloaded by the kernel's own flag.
    NotOverloaded,
    /// Not attempted: the CPU idles less on average than the cheapest balance costs.
    TooCostly,
    /// Not attempted for another reason: the CPU is not active, or no domain balances on going idle.
    NotAttempted,
    /// Attempted and given up: a task was queued on the CPU meanwhile.
    GivenUp,
    /// Attempted; no group of CPUs was busier.
    NoBusiestGroup,
    /// Attempted; a busier group was found, and no task of it was moved: whether one was examined is unknown without the probe `can_migrate`.
    NoneMoved,
    /// Attempted; a busier group was found, and no task of it was examined: no busiest queue, or its lock was not taken.
    NoTaskExamined,
    /// Attempted; every examined task was refused.
    AllRefused,
    /// Attempted; tasks were pulled, and the CPU went idle all the same.
    Pulled,
}

impl NewIdleOutcome {
    /// All outcomes, in the order of their indices.
    pub const ALL: [NewIdleOutcome; 11] = [
        NewIdleOutcome::Unknown,
        NewIdleOutcome::WakeupPending,
        NewIdleOutcome::NotOverloaded,
        NewIdleOutcome::TooCostly,
        NewIdleOutcome::NotAttempted,
        NewIdleOutcome::GivenUp,
        NewIdleOutcome::NoBusiestGroup,
        NewIdleOutcome::NoneMoved,
        NewIdleOutcome::NoTaskExamined,
        NewIdleOutcome::AllRefused,
        NewIdleOutcome::Pulled,
    ];

    /// The description of the outcome, for people.
    pub fn words(self) -> &'static str {
        match self {
            NewIdleOutcome::Unknown => "unknown",
            NewIdleOutcome::WakeupPending => "not attempted: a wakeup was pending",
            NewIdleOutcome::NotOverloaded => "not attempted: no overload flag",
            NewIdleOutcome::TooCostly => "not attempted: avg_idle below cost",
            NewIdleOutcome::NotAttempted => "not attempted: other reasons",
            NewIdleOutcome::GivenUp => "given up: a task came meanwhile",
            NewIdleOutcome::NoBusiestGroup => "no busiest group",
            NewIdleOutcome::NoneMoved => "none moved of a busier group",
            NewIdleOutcome::NoTaskExamined => "no task examined",
            NewIdleOutcome::AllRefused => "all examined tasks refused",
            NewIdleOutcome::Pulled => "pulled, and idle all the same",
        }
    }

    /// Whether some domain was searched.
    pub fn is_attempted(self) -> bool {
        self >= NewIdleOutcome::GivenUp
    }

    /// Returns the outcome for the attempt that came furthest.
    fn of(attempt: AttemptOutcome) -> NewIdleOutcome {
        match attempt {
            AttemptOutcome::NotChosen => NewIdleOutcome::GivenUp,
            AttemptOutcome::NoBusiestGroup => NewIdleOutcome::NoBusiestGroup,
            AttemptOutcome::NoneMoved => NewIdleOutcome::NoneMoved,
            AttemptOutcome::NoTaskExamined => NewIdleOutcome::NoTaskExamined,
            AttemptOutcome::AllRefused => NewIdleOutcome::AllRefused,
            AttemptOutcome::Moved => NewIdleOutcome::Pulled,
        }
    }
}

/// New-idle balancing of a CPU before a switch to idle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NewIdle {
    /// The outcome of the attempt that came furthest.
    pub outcome: NewIdleOutcome,
    /// The verdicts on the tasks examined in all domains.
    pub verdicts: Verdicts,
}

/// New-idle balancing on one CPU since its latest switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct SinceSwitch {
    gate: Option<Gate>,
    /// The outcome of the attempt that came furthest.
    best: Option<AttemptOutcome>,
    verdicts: Verdicts,
    /// Whether some of its events were lost.
    blind: bool,
}

/// New-idle balancing on a CPU before a part of a trace, since the latest switch of the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastNewIdle(SinceSwitch);

/// A follower of new-idle balancing on each CPU, from one switch to the next.
///
/// The caller passes each event to [`NewIdles::event`], and then each switch to [`NewIdles::switch`].
#[derive(Clone, Debug, Default)]
pub struct NewIdles {
    cpus: Vec<SinceSwitch>,
    /// Whether attempts have records in the trace, so that no record means no attempt.
    has_attempts: bool,
}

impl NewIdles {
    /// Makes a follower for a trace with records of `load_balance` (`has_attempts`), or without.
    pub fn new(has_attempts: bool) -> NewIdles {
        NewIdles { cpus: Vec::new(), has_attempts }
    }

    /// Whether some CPU has a record of new-idle balancing since its latest switch.
    pub fn has_open(&self) -> bool {
        self.cpus.iter().any(|since| *since != SinceSwitch::default())
    }

    /// Takes the next event, and the attempt that it ends, as [`Attempts::event`] returned it.
    pub fn event(&mut self, event: &SchedEvent, attempt: Option<&Attempt>) {
        match event.kind {
            // A balance begins anew after a pull of a task that sleeps: the one that came furthest counts.
            EventKind::Probe { probe: Probe::NewIdleBegins(queue), .. } => {
                let since = self.cpu(event.cpu);
                since.gate = since.gate.max(queue.gate());
            }
            EventKind::Probe { probe: Probe::GoesIdle(queue), .. } => {
                let since = self.cpu(event.cpu);
                since.gate = since.gate.or(queue.gate());
            }
            EventKind::Lost { .. } => *self.cpu(event.cpu) = SinceSwitch { blind: true, ..SinceSwitch::default() },
            _ => {}
        }
        if let Some(attempt) = attempt.filter(|attempt| attempt.balancing == Balancing::NewIdle) {
            let since = self.cpu(event.cpu);
            since.best = since.best.max(Some(attempt.outcome));
            since.verdicts.add(&attempt.verdicts);
        }
    }

    /// Returns the outcome of the new-idle balancing of `cpu` since the switch before, and begins anew. Called at each
    /// switch of the CPU.
    pub fn switch(&mut self, cpu: Cpu) -> NewIdle {
        let has_attempts = self.has_attempts;
        let since = self.cpus.get_mut(cpu.index()).map(std::mem::take).unwrap_or_default();
        let outcome = match (since.best, since.gate) {
            _ if since.blind => NewIdleOutcome::Unknown,
            (Some(best), _) => NewIdleOutcome::of(best),
            (None, Some(Gate::Pending)) => NewIdleOutcome::WakeupPending,
            (None, Some(Gate::NotOverloaded)) => NewIdleOutcome::NotOverloaded,
            (None, Some(Gate::TooCostly)) => NewIdleOutcome::TooCostly,
            (None, Some(Gate::Open)) if has_attempts => NewIdleOutcome::NotAttempted,
            (None, Some(Gate::Open) | None) => NewIdleOutcome::Unknown,
        };
        NewIdle { outcome, verdicts: since.verdicts }
    }

    /// Notes new-idle balancing since the latest switches for a part of a trace.
    pub(crate) fn noted(&self) -> Vec<(Cpu, PastNewIdle)> {
        let is_any = |(_, since): &(Cpu, &SinceSwitch)| **since != SinceSwitch::default();
        (0..).map(Cpu).zip(&self.cpus).filter(is_any).map(|(cpu, since)| (cpu, PastNewIdle(*since))).collect()
    }

    /// Takes up the notes of a part of a trace.
    pub fn recall(&mut self, noted: &[(Cpu, PastNewIdle)]) {
        for (cpu, PastNewIdle(since)) in noted.iter().filter(|(cpu, _)| cpu.0 < Cpu::LIMIT) {
            *self.cpu(*cpu) = *since;
        }
    }

    fn cpu(&mut self, cpu: Cpu) -> &mut SinceSwitch {
        if cpu.index() >= self.cpus.len() {
            self.cpus.resize(cpu.index() + 1, SinceSwitch::default());
        }
        &mut self.cpus[cpu.index()]
    }
}

#[cfg(test)]
mod tests;

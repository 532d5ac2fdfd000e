//! Why a task was migrated, from the ordinary events of the scheduler (`docs/definitions.md`, section 5).
//!
//! | cause | pattern at `sched_migrate_task`(p, orig → dest) on CPU e |
//! |---|---|
//! | wakeup placement | p is being woken: a `sched_waking` of p on e is the last word on p |
//! | NUMA move, NUMA swap | a `sched_move_numa` or `sched_swap_numa` names p and the two CPUs, shortly before or after |
//! | exec; active balance or affinity | the stopper `migration/e` runs on e = orig; for exec, p's own exec follows |
//! | new-idle pull (a *steal*) | task context, e = dest, p waited on orig, the next event of the scheduler on e is its switch, away from a task that does not go on, and nothing else is queued on e |
//! | idle balance, periodic balance | softirq, e = dest; e idles but for its softirqs, or not |
//! | balance on behalf | softirq, e is neither orig nor dest |
//! | real-time push or pull | p's priority is below 100, and none of the above |
//! | unknown | anything else |
//!
//! A waking that is not in the trace is taken from the wakeup that follows. Being woken is not ended by p's own
//! switching out: a waker announces a task that is about to sleep, and waits for it to be off its CPU. New-idle
//! balancing is the fair class's: a task of real-time priority that is pulled the same way was pulled by its own
//! class. Several tasks pulled in one go are each a pull.

use crate::event::{Comm, Cpu, Dur, Kind, Pid, SchedEvent, TaskRef, Ts};
use crate::kthread::{is_ksoftirqd, is_stopper};
use crate::span::TaskState;
use crate::state::{Load, SchedState};
use rustc_hash::FxHashMap;
use serde::Serialize;

/// Why a task was migrated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// It was being woken, and placed elsewhere.
    Wakeup,
    /// A CPU about to idle pulled it: a steal.
    NewIdle,
    /// An idle CPU pulled it, from its tick or woken for that.
    Idle,
    /// A busy CPU pulled it, from its tick.
    Periodic,
    /// A CPU moved it between two others.
    Behalf,
    /// The stopper moved it: active balance, or a change of affinity.
    Stopper,
    /// It was to run a new program, and that elsewhere.
    Exec,
    /// To where its memory is.
    NumaMove,
    /// In exchange for another, to where their memories are.
    NumaSwap,
    /// By the real-time or deadline class.
    RealTime,
    /// None of these.
    Unknown,
}

impl Cause {
    /// All of them, in the order of their indices.
    pub const ALL: [Cause; 11] = [
        Cause::Wakeup,
        Cause::NewIdle,
        Cause::Idle,
        Cause::Periodic,
        Cause::Behalf,
        Cause::Stopper,
        Cause::Exec,
        Cause::NumaMove,
        Cause::NumaSwap,
        Cause::RealTime,
        Cause::Unknown,
    ];

    /// Its name, for people.
    pub fn name(self) -> &'static str {
        match self {
            Cause::Wakeup => "wakeup placement",
            Cause::NewIdle => "new-idle pull (steal)",
            Cause::Idle => "idle balance",
            Cause::Periodic => "periodic balance",
            Cause::Behalf => "balance on behalf",
            Cause::Stopper => "active balance or affinity",
            Cause::Exec => "exec",
            Cause::NumaMove => "NUMA move",
            Cause::NumaSwap => "NUMA swap",
            Cause::RealTime => "real-time push or pull",
            Cause::Unknown => "unknown",
        }
    }
}

/// A migration, its cause, and what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Migration {
    /// When.
    pub ts: Ts,
    /// The CPU that did it.
    pub on: Cpu,
    /// The task.
    pub pid: Pid,
    /// Its name.
    pub command: Comm,
    /// From here
    pub orig: Cpu,
    /// to here.
    pub dest: Cpu,
    /// Why.
    pub cause: Cause,
    /// Whether it waited on a run queue; else it slept, or was being woken.
    pub queued: bool,
    /// How long after it first ran; nothing if it was moved again before, or never ran.
    pub first_run: Option<Dur>,
}

/// A reason, or an exec, that belongs to a migration is this near.
const NEAR: Dur = Dur(100_000_000);

/// What NUMA balancing wants of a task.
#[derive(Clone, Copy, Debug)]
struct Reason {
    ts: Ts,
    orig: Cpu,
    dest: Cpu,
    cause: Cause,
}

impl Reason {
    fn fits(&self, ts: Ts, orig: Cpu, dest: Cpu) -> bool {
        (self.orig, self.dest) == (orig, dest) && self.ts.since(ts) < NEAR && ts.since(self.ts) < NEAR
    }
}

#[derive(Clone, Copy, Debug)]
struct Open {
    migration: Migration,
    /// The cause is what it is taken for unless something follows that tells better.
    by_stopper: bool,
    /// No event has been about the task since.
    untouched: bool,
    /// It can have run since, in a loss.
    blind: bool,
}

/// What is kept in mind of a task.
#[derive(Clone, Debug, Default)]
struct Mind {
    /// It is being woken: the CPU that announced it.
    waking: Option<Cpu>,
    /// Its latest migration, while that can change. Apart, since most that is asked of a task is not about it.
    open: Option<Box<Open>>,
}

/// Finds the causes. A migration is told of when nothing can change it any more: its task has run
/// and its cause is settled, or it is moved again, or the trace ends; so not in the order of time.
#[derive(Clone, Debug, Default)]
pub struct Causes {
    minds: FxHashMap<Pid, Mind>,
    /// NUMA reasons that no migration has followed yet.
    reasons: FxHashMap<Pid, Reason>,
    /// Tasks pulled by a CPU whose next event will tell why.
    pulls: FxHashMap<Cpu, Vec<Pid>>,
}

impl Mind {
    fn touch(&mut self) {
        if let Some(open) = &mut self.open {
            open.untouched = false;
        }
    }

    /// It is awake. If its waking is not in the trace (that of a wakeup that was under way when the recording
    /// began, as balance-hackbench of 7.2 has one, or was lost, or not recorded), it was moved in its sleep and did
    /// nothing since, that was its placement.
    fn woken(&mut self) {
        if let (None, Some(open)) = (self.waking.take(), &mut self.open) {
            let m = &mut open.migration;
            let by_context =
                matches!(m.cause, Cause::Idle | Cause::Periodic | Cause::Behalf | Cause::RealTime | Cause::Unknown);
            if by_context && open.untouched && !m.queued && m.first_run.is_none() {
                m.cause = Cause::Wakeup;
            }
        }
        self.touch();
    }

    /// It is switched in; its migration, if no later event can change the cause.
    fn runs(&mut self, now: Ts) -> Option<Migration> {
        self.waking = None;
        let open = self.open.as_mut()?;
        if !open.blind {
            open.migration.first_run.get_or_insert(now.since(open.migration.ts));
        }
        let waits_for_better = open.by_stopper && now.since(open.migration.ts) < NEAR;
        if waits_for_better { None } else { self.open.take().map(|open| open.migration) }
    }
}

impl Causes {
    /// Takes the next event, in the state before it.
    pub fn event(&mut self, event: &SchedEvent, state: &SchedState, mut tell: impl FnMut(Migration)) {
        if !self.pulls.is_empty() {
            self.settle_pulls(event);
        }
        match event.kind {
            Kind::Waking { task, .. } => {
                let mind = self.minds.entry(task.pid).or_default();
                mind.waking = Some(event.cpu);
                mind.touch();
            }
            Kind::Wakeup { task, .. } | Kind::WakeupNew { task, .. } => {
                if let Some(mind) = self.minds.get_mut(&task.pid) {
                    mind.woken();
                }
            }
            Kind::Switch { prev, state: left, next } => {
                if !next.pid.is_idle()
                    && let Some(mind) = self.minds.get_mut(&next.pid)
                {
                    mind.runs(event.ts).into_iter().for_each(&mut tell);
                }
                if left.is_runnable()
                    && let Some(mind) = self.minds.get_mut(&prev.pid)
                {
                    mind.waking = None;
                }
            }
            Kind::Numa { pid, with, src, dst, stuck } => {
                let cause = if with.is_some() { Cause::NumaSwap } else { Cause::NumaMove };
                self.reason(pid, Reason { ts: event.ts, orig: src, dest: dst, cause }, stuck);
                if let Some(with) = with {
                    self.reason(with, Reason { ts: event.ts, orig: dst, dest: src, cause }, stuck);
                }
            }
            Kind::Exec { pid, old_pid, .. } => {
                self.exec(old_pid, event.ts);
                if pid != old_pid
                    && let Some(open) = self.minds.get_mut(&old_pid).and_then(|mind| mind.open.take())
                {
                    self.minds.entry(pid).or_default().open = Some(open);
                }
            }
            Kind::Exit { pid } => {
                self.reasons.remove(&pid);
                let open = self.minds.remove(&pid).and_then(|mind| mind.open);
                open.into_iter().for_each(|open| tell(open.migration));
            }
            Kind::Migrate { task, orig, dest } => {
                let latest = Box::new(self.migrate(event, task, orig, dest, state));
                let earlier = self.minds.entry(task.pid).or_default().open.replace(latest);
                earlier.into_iter().for_each(|open| tell(open.migration));
            }
            Kind::Lost { .. } => self.lose(event.cpu),
            Kind::Offline
            | Kind::Frequency { .. }
            | Kind::Fork { .. }
            | Kind::Rename { .. }
            | Kind::Interrupt { .. }
            | Kind::Other { .. } => {}
        }
    }

    /// What a CPU had announced can have happened unseen, and who was moved there can have run.
    fn lose(&mut self, cpu: Cpu) {
        for mind in self.minds.values_mut() {
            mind.waking = mind.waking.filter(|announced_on| *announced_on != cpu);
            if let Some(open) = mind.open.as_mut().filter(|open| open.migration.dest == cpu) {
                open.blind = true;
            }
        }
    }

    /// What is still open at the end, by time.
    pub fn finish(self, tell: impl FnMut(Migration)) {
        let open = self.minds.into_values().filter_map(|mind| mind.open);
        let mut rest: Vec<Migration> = open.map(|open| open.migration).collect();
        rest.sort_unstable_by_key(|m| (m.ts, m.on, m.pid));
        rest.into_iter().for_each(tell);
    }

    /// A task's latest migration, while it can change.
    fn open(&mut self, pid: Pid) -> Option<&mut Open> {
        self.minds.get_mut(&pid)?.open.as_deref_mut()
    }

    /// A task that the stopper moved executes a program: that is why it was moved.
    fn exec(&mut self, pid: Pid, now: Ts) {
        if let Some(open) = self.open(pid).filter(|o| o.by_stopper && now.since(o.migration.ts) < NEAR) {
            (open.migration.cause, open.by_stopper) = (Cause::Exec, false);
        }
    }

    /// NUMA balancing tells what it wants to do with a task, or what it has just done.
    fn reason(&mut self, pid: Pid, reason: Reason, stuck: bool) {
        let fits = |o: &&mut Open| o.by_stopper && reason.fits(o.migration.ts, o.migration.orig, o.migration.dest);
        if stuck {
            self.reasons.remove(&pid);
        } else if let Some(open) = self.open(pid).filter(fits) {
            (open.migration.cause, open.by_stopper) = (reason.cause, false);
        } else {
            self.reasons.insert(pid, reason);
        }
    }

    /// The next event of the scheduler on a CPU that pulled tasks tells why it did.
    fn settle_pulls(&mut self, event: &SchedEvent) {
        let is_newidle = match event.kind {
            Kind::Other { .. } | Kind::Frequency { .. } | Kind::Interrupt { .. } => return,
            // One more of the same pass.
            Kind::Migrate { dest, .. } if dest == event.cpu && event.in_task() => return,
            Kind::Switch { prev, state, .. } => prev.pid.is_idle() || !state.is_runnable(),
            _ => false,
        };
        for pid in self.pulls.remove(&event.cpu).unwrap_or_default() {
            if let Some(open) = self.open(pid).filter(|o| o.migration.dest == event.cpu && is_newidle) {
                open.migration.cause = Cause::NewIdle;
            }
        }
    }

    fn migrate(&mut self, event: &SchedEvent, task: TaskRef, orig: Cpu, dest: Cpu, state: &SchedState) -> Open {
        let on = event.cpu;
        let queued = state.task_of(task.pid).is_some_and(|t| matches!(t.state, TaskState::Waiting(_)));
        let reason = self.reasons.remove(&task.pid).filter(|reason| reason.fits(event.ts, orig, dest));
        let by_stopper = on == orig && state.running(on).is_some_and(|t| is_stopper(t.comm, on));
        let mut stopper = false;
        let cause = if self.minds.get(&task.pid).is_some_and(|mind| mind.waking == Some(on)) {
            Cause::Wakeup
        } else if let Some(reason) = reason {
            reason.cause
        } else if by_stopper {
            stopper = true;
            Cause::Stopper
        } else if event.in_softirq() && dest == on {
            if self.idles(on, state) { Cause::Idle } else { Cause::Periodic }
        } else if event.in_softirq() && orig != on {
            Cause::Behalf
        } else if task.prio < 100 {
            Cause::RealTime
        } else {
            if event.in_task() && dest == on && queued && self.is_emptied(on, state) {
                self.pulls.entry(on).or_default().push(task.pid);
            }
            Cause::Unknown
        };
        let command = task.comm;
        let migration =
            Migration { ts: event.ts, on, pid: task.pid, command, orig, dest, cause, queued, first_run: None };
        Open { migration, by_stopper: stopper, untouched: true, blind: false }
    }

    /// Whether a CPU idles but for its softirqs. With PREEMPT_RT, and wherever they are put off, they have a thread,
    /// which the tick of an idle CPU wakes: then nothing else is there but what it has pulled by now.
    fn idles(&self, cpu: Cpu, state: &SchedState) -> bool {
        match state.running(cpu) {
            Some(current) => {
                let pulled = |pid| {
                    let open = self.minds.get(&pid).and_then(|mind| mind.open.as_deref());
                    open.is_some_and(|open| (open.migration.on, open.migration.cause) == (cpu, Cause::Idle))
                };
                is_ksoftirqd(current.comm) && state.waiting(cpu).all(|task| pulled(task.pid))
            }
            None => matches!(state.load(cpu), Load::Idle | Load::Reacting),
        }
    }

    /// Whether nothing is queued on a CPU but what it is just pulling.
    fn is_emptied(&self, cpu: Cpu, state: &SchedState) -> bool {
        let pulled = self.pulls.get(&cpu).map_or(&[][..], Vec::as_slice);
        state.waiting(cpu).all(|task| pulled.contains(&task.pid))
    }
}

/// At least so many tasks that leave one CPU for one other are a herd,
pub const HERD: usize = 4;
/// if they do so within this time.
pub const HERD_TIME: Dur = Dur(1_000_000);

/// Queued tasks that left one CPU for one other within a millisecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Herd {
    /// When the first one left.
    pub start: Ts,
    /// When the last one did.
    pub end: Ts,
    /// From here
    pub orig: Cpu,
    /// to here.
    pub dest: Cpu,
    /// So many.
    pub tasks: u32,
}

/// Those who left one CPU for one other lately.
#[derive(Clone, Debug, Default)]
struct Leaving {
    /// When, the last ones within [`HERD_TIME`].
    at: Vec<Ts>,
    /// The latest herd of this pair, by its place.
    herd: Option<usize>,
}

/// Finds herd migrations.
#[derive(Clone, Debug, Default)]
pub struct Herds {
    leaving: FxHashMap<(Cpu, Cpu), Leaving>,
    found: Vec<Herd>,
}

impl Herds {
    /// Takes the next migration of a queued task, in time order. Returns the herd that it makes or enlarges, by its
    /// place in [`Herds::found`].
    pub fn migrate(&mut self, ts: Ts, orig: Cpu, dest: Cpu) -> Option<usize> {
        let Leaving { at, herd } = self.leaving.entry((orig, dest)).or_default();
        at.retain(|earlier| ts.since(*earlier) <= HERD_TIME);
        at.push(ts);
        if at.len() < HERD {
            return None;
        }
        let (start, tasks) = (at[0], at.len() as u32);
        let place = match herd.filter(|place| self.found[*place].end >= start) {
            Some(place) => {
                let grown = &mut self.found[place];
                (grown.end, grown.tasks) = (ts, grown.tasks + 1);
                place
            }
            None => {
                self.found.push(Herd { start, end: ts, orig, dest, tasks });
                self.found.len() - 1
            }
        };
        *herd = Some(place);
        Some(place)
    }

    /// Those found so far, in the order in which they became herds; the latest may still grow.
    pub fn found(&self) -> &[Herd] {
        &self.found
    }

    /// All that were found, in the order in which they became herds.
    pub fn into_found(self) -> Vec<Herd> {
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn herds() {
        let mut herds = Herds::default();
        let mut made = Vec::new();
        for (ts, dest) in [(0, 1), (1, 1), (2, 2), (3, 1), (4, 1), (900_000, 1), (1_900_001, 1), (1_900_002, 2)] {
            made.push(herds.migrate(Ts(ts), Cpu(0), Cpu(dest)));
        }
        assert_eq!(made, [None, None, None, None, Some(0), Some(0), None, None]);
        let herd = Herd { start: Ts(0), end: Ts(900_000), orig: Cpu(0), dest: Cpu(1), tasks: 5 };
        assert_eq!(herds.into_found(), [herd]);
    }
}

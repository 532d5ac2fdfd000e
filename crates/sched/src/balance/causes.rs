//! Why a task was migrated, from the ordinary events of the scheduler (`docs/questions/migrations.md#causes`).
//!
//! | cause | pattern at `sched_migrate_task`(p, orig → dest) on CPU e |
//! |---|---|
//! | wakeup placement | p is being woken: a `sched_waking` of p on e is the last word on p |
//! | NUMA move, NUMA swap | a `sched_move_numa` or `sched_swap_numa` names p and the two CPUs, shortly before or after |
//! | exec | the stopper `migration/e` runs on e = orig, p itself woke it, and p executes a program before it sleeps (waiting for the disk or a lock, state D, is no sleep) |
//! | affinity | the same, without that exec; or another task woke the stopper, on a CPU that is not dest |
//! | active balance | the stopper `migration/e` runs on e = orig, and a softirq woke it, or another task on dest |
//! | active balance or affinity | the stopper `migration/e` runs on e = orig, and no event shows what woke it |
//! | new-idle pull (a *steal*) | task context, e = dest, p waited on orig, the next event of the scheduler on e is its switch, away from a task that does not go on, and nothing else is queued on e |
//! | real-time push or pull | p's priority is below 100, and none of the above |
//! | idle balance, periodic balance | softirq, e = dest; e idles but for its softirqs, or not |
//! | nohz idle balance (ILB) | softirq, e is not dest; nor orig, unless p waited there |
//! | … of a sleeper | as these four, but p sleeps and is still queued (delayed dequeue, since 6.12): the next event about p wakes it |
//! | unknown | anything else |
//!
//! A waking that is not in the trace is taken from the wakeup that follows. Being woken is not ended by p's own
//! switching out: a waker announces a task that is about to sleep, and waits for it to be off its CPU. New-idle
//! balancing is the fair class's: a task of real-time priority that is pulled the same way was pulled by its own
//! class. Several tasks pulled in one go are each a pull. Where the stopper's waking is missing, an exec counts if it
//! follows before a sleep or within a tenth of a second. In a trace without `sched_wakeup` only the waker's next
//! scheduler event can be the placement ([`SchedState::places_by_wakings`]).
//!
//! Where probes on the balancer record its decision, that decides instead of the pattern (`decided.rs`).

use crate::event::kthread::is_stopper;
use crate::event::probe::Probe;
use crate::event::span::TaskState;
use crate::event::{Comm, Cpu, Dur, EventKind, Pid, SchedEvent, TaskRef, Ts};
use crate::state::SchedState;
use crate::tables::seeded::SeededMap;
use serde::{Deserialize, Serialize};

mod cause;
mod decided;
mod herds;
mod noted;
mod scene;
mod stopped;
#[cfg(test)]
mod tests;
mod unfollowed;

pub use cause::Cause;
use decided::{Decided, Decisions};
pub use herds::{HERD, HERD_TIME, Herd, Herds};
pub use noted::{NotedMigration, PastCauses};
pub(crate) use scene::MoveScene;
use scene::Occupant;
pub use stopped::{MoveKey, StopperMoves};

/// A migration of a task, with its cause and its consequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Migration {
    /// The instant of the migration, in nanoseconds of the trace's clock.
    pub ts: Ts,
    /// The CPU that made the migration.
    pub on: Cpu,
    /// The PID of the task.
    pub pid: Pid,
    /// The name of the task.
    pub command: Comm,
    /// The CPU that the task left.
    pub orig: Cpu,
    /// The CPU that the task came to.
    pub dest: Cpu,
    /// The cause of the migration.
    pub cause: Cause,
    /// Whether the task waited on a run queue. Otherwise it slept, was being woken, or was throttled.
    pub queued: bool,
    /// Whether a probe on the balancer recorded the decision; otherwise the cause follows from the order of events.
    pub recorded: bool,
    /// The time from the migration until the task first ran, in nanoseconds; none if the task slept, was moved again
    /// before, or never ran.
    pub first_run: Option<Dur>,
}

/// Maximum time between a migration and a NUMA reason or an exec that belongs to it.
const NEAR: Dur = Dur(100_000_000);

/// A reason for a migration that is known beforehand: the aim of NUMA balancing for a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Reason {
    ts: Ts,
    orig: Cpu,
    dest: Cpu,
    cause: Cause,
    /// Whether a probe shows the reason.
    recorded: bool,
}

impl Reason {
    /// Whether a migration at `ts` between these CPUs is the one that the reason is for.
    fn fits(&self, ts: Ts, orig: Cpu, dest: Cpu) -> bool {
        (self.orig, self.dest) == (orig, dest) && self.ts.since(ts) < NEAR && ts.since(self.ts) < NEAR
    }
}

/// The announcement of a wakeup (`sched_waking`): the waker's CPU, the task that ran there, and whether that task was
/// the waker, rather than an interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Announcement {
    on: Cpu,
    by: Pid,
    in_task: bool,
    /// Whether a thread that runs softirqs, and with PREEMPT_RT balances, made it; known of a stopper's waking alone. Notes of older
    /// versions do not say so.
    #[serde(default)]
    by_softirqs: bool,
}

/// The later events that can still change the cause of a migration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Pending {
    /// No event: the cause is settled.
    Settled,
    /// A NUMA reason that follows soon.
    Numa,
    /// A NUMA reason that follows soon, or the task's exec, before it sleeps.
    Exec,
    /// A NUMA reason that follows soon, or an exec that follows soon.
    SoonExec,
}

/// A migration that a later event can still change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct OpenMigration {
    #[serde(with = "noted::migration")]
    migration: Migration,
    pending: Pending,
    /// Whether the task was asleep.
    asleep: bool,
    /// Whether the task was queued or throttled.
    runnable: bool,
    /// Whether no event has been about the task since.
    untouched: bool,
    /// Whether the task can have run since, in a loss.
    blind: bool,
}

/// The recent events of a task that can decide the cause of a migration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct FollowedTask {
    /// The announcement of the wakeup that is under way, if one is.
    waking: Option<Announcement>,
    /// The latest migration of the task, while its cause can change. Boxed, since most accesses to a task do not
    /// concern it.
    open: Option<Box<OpenMigration>>,
}

/// A finder of migrations and their causes.
///
/// The caller passes each event with the state before it to [`Causes::event`], and calls [`Causes::finish`] at the end.
/// A migration is reported when nothing can change it any more: its task has run and its cause is settled, or it is
/// moved again, or the trace ends. Migrations are therefore not reported in the order of time.
#[derive(Clone, Debug, Default)]
pub struct Causes {
    followed: SeededMap<Pid, FollowedTask>,
    /// The NUMA reasons that no migration has followed yet, by task.
    reasons: SeededMap<Pid, Reason>,
    /// The decisions on migrations that probes recorded.
    decisions: Decisions,
    /// The tasks pulled by each CPU whose next event will show the reason.
    pulls: SeededMap<Cpu, Vec<Pid>>,
    /// The waker of the stopper of each CPU, until the stopper is switched out.
    stops: SeededMap<Cpu, Announcement>,
    /// The tasks that an exec may have moved: they woke the stopper themselves, or it was woken unseen, and they have
    /// not slept since. Each with that migration if another one followed.
    awake: SeededMap<Pid, Option<Migration>>,
}

impl OpenMigration {
    /// Whether a later event can still change the cause.
    fn is_pending(&self, now: Ts) -> bool {
        match self.pending {
            Pending::Settled => false,
            Pending::Exec => true,
            Pending::Numa | Pending::SoonExec => now.since(self.migration.ts) < NEAR,
        }
    }

    /// Sets the cause, which no later event can change any more.
    fn settle(&mut self, cause: Cause) {
        (self.migration.cause, self.pending) = (cause, Pending::Settled);
    }
}

impl FollowedTask {
    /// Notes that an event has been about the task since its latest migration.
    fn touch(&mut self) {
        if let Some(open) = &mut self.open {
            open.untouched = false;
        }
    }

    /// Takes a wakeup of the task. If its waking is not in the trace (it was under way when the recording began, as in
    /// balance-hackbench of 7.2, or it was lost, or not recorded), and the task was moved in its sleep and did nothing
    /// since, that migration was its placement.
    fn woken(&mut self) {
        if let (None, Some(open)) = (self.waking.take(), &mut self.open) {
            let m = &mut open.migration;
            let by_context = matches!(
                m.cause.of_waiter(),
                Cause::Idle | Cause::Periodic | Cause::NohzIdle | Cause::RealTime | Cause::Unknown
            );
            if by_context && !m.recorded && open.untouched && !open.runnable && m.first_run.is_none() {
                m.cause = Cause::Wakeup;
            }
        }
        self.touch();
    }

    /// Takes a switch to the task. Returns its migration if no later event can change the cause.
    fn runs(&mut self, now: Ts) -> Option<Migration> {
        self.waking = None;
        let open = self.open.as_mut()?;
        if open.untouched && open.asleep {
            // The task runs without a waking since: it had not slept, and was queued when it was moved.
            let (cause, is_pull) = (open.migration.cause, open.migration.cause == Cause::NewIdleSleeper);
            open.migration.cause = if open.migration.recorded && is_pull { Cause::NewIdle } else { cause.of_waiter() };
            open.asleep = false;
        }
        if !open.blind && (!open.asleep || open.migration.cause == Cause::Wakeup) {
            open.migration.first_run.get_or_insert(now.since(open.migration.ts));
        }
        open.untouched = false;
        if open.is_pending(now) { None } else { self.open.take().map(|open| open.migration) }
    }
}

impl Causes {
    /// Takes the next event; `state` is the one before the event. `report` is called with each migration that the event
    /// settles.
    pub fn event(&mut self, event: &SchedEvent, state: &SchedState, mut report: impl FnMut(Migration)) {
        if self.holds_many() {
            self.settle_pulls(event);
            self.forget_unfollowed(state, &mut report);
        }
        self.event_in(event, || MoveScene::of(event, state), report);
    }

    /// Takes the next event, as [`Causes::event`] does, in a scene that is known already. Nothing is forgotten here: the caller sees to it that the tables
    /// [have room](Causes::have_room).
    #[inline]
    pub(crate) fn event_in(
        &mut self,
        event: &SchedEvent,
        scene: impl FnOnce() -> MoveScene,
        mut report: impl FnMut(Migration),
    ) {
        if !self.pulls.is_empty() {
            self.settle_pulls(event);
        }
        match event.kind {
            EventKind::Waking { task, target } => {
                let (on, by, in_task) = (event.cpu, event.pid, event.in_task());
                if is_stopper(task.comm, target) {
                    let by_softirqs = scene().by_softirqs;
                    self.stops.entry(target).or_insert(Announcement { on, by, in_task, by_softirqs });
                }
                let waking = Announcement { on, by, in_task, by_softirqs: false };
                let followed = self.followed.entry(task.pid).or_default();
                followed.waking = Some(waking);
                followed.touch();
            }
            EventKind::Wakeup { task, .. } | EventKind::WakeupNew { task, .. } => {
                if let Some(followed) = self.followed.get_mut(&task.pid) {
                    followed.woken();
                }
            }
            EventKind::Switch { prev, state: left, next } => {
                if !self.stops.is_empty() && is_stopper(prev.comm, event.cpu) {
                    self.stops.remove(&event.cpu);
                }
                self.decisions.switch(event.cpu);
                // A task also waits for the disk or for a lock on its way to an exec.
                if !left.is_runnable() && !left.is_uninterruptible() && !self.awake.is_empty() {
                    self.sleeps(prev.pid, &mut report);
                }
                if !next.pid.is_idle()
                    && let Some(followed) = self.followed.get_mut(&next.pid)
                {
                    followed.runs(event.ts).into_iter().for_each(&mut report);
                }
                if left.is_runnable()
                    && let Some(followed) = self.followed.get_mut(&prev.pid)
                {
                    followed.waking = None;
                }
            }
            EventKind::Numa { pid, with, src, dst, stuck, .. } => {
                let cause = if with.is_some() { Cause::NumaSwap } else { Cause::NumaMove };
                let recorded = false;
                self.reason(pid, Reason { ts: event.ts, orig: src, dest: dst, cause, recorded }, stuck);
                if let Some(with) = with {
                    self.reason(with, Reason { ts: event.ts, orig: dst, dest: src, cause, recorded }, stuck);
                }
            }
            EventKind::Exec { pid, old_pid, .. } => {
                self.exec(old_pid, event.ts, &mut report);
                if pid != old_pid
                    && let Some(open) = self.followed.get_mut(&old_pid).and_then(|followed| followed.open.take())
                {
                    let replaced = self.followed.entry(pid).or_default().open.replace(open);
                    replaced.into_iter().for_each(|open| report(open.migration));
                }
            }
            EventKind::Exit { pid } => {
                self.reasons.remove(&pid);
                self.awake.remove(&pid).flatten().into_iter().for_each(&mut report);
                let open = self.followed.remove(&pid).and_then(|followed| followed.open);
                open.into_iter().for_each(|open| report(open.migration));
            }
            EventKind::Migrate { task, orig, dest } => {
                let latest = Box::new(self.migrate(event, (task, orig, dest), &scene()));
                let is_exec = latest.pending == Pending::Exec;
                let earlier = self.followed.entry(task.pid).or_default().open.replace(latest);
                if let Some(earlier) = earlier {
                    // `sched_exec()` migrates the caller before the new program starts; a second migration within one exec is the balancer's.
                    match self.awake.get_mut(&task.pid) {
                        Some(held) if earlier.pending == Pending::Exec && !is_exec => *held = Some(earlier.migration),
                        _ => report(earlier.migration),
                    }
                }
                if is_exec {
                    self.awake.insert(task.pid, None).flatten().into_iter().for_each(&mut report);
                }
            }
            EventKind::Probe { probe: Probe::Swaps { one, other }, .. } => {
                for ((pid, orig), (_, dest)) in [(one, other), (other, one)] {
                    let reason = Reason { ts: event.ts, orig, dest, cause: Cause::NumaSwap, recorded: true };
                    self.reason(pid, reason, false);
                }
            }
            EventKind::Probe { probe, .. } => self.decisions.take(event.cpu, probe),
            EventKind::Lost { .. } => self.lose(event.cpu),
            EventKind::Offline
            | EventKind::Frequency { .. }
            | EventKind::Fork { .. }
            | EventKind::Rename { .. }
            | EventKind::Interrupt { .. }
            | EventKind::Stack { .. }
            | EventKind::Other { .. } => {}
        }
    }

    /// Takes a loss on a CPU: an announced event of it can have happened unseen, and a task that was moved there can
    /// have run.
    fn lose(&mut self, cpu: Cpu) {
        self.stops.remove(&cpu);
        self.decisions.lose(cpu);
        for followed in self.followed.values_mut() {
            followed.waking = followed.waking.filter(|announced| announced.on != cpu);
            if let Some(open) = followed.open.as_mut().filter(|open| open.migration.dest == cpu) {
                open.blind = true;
            }
        }
    }

    /// Reports the migrations that are still open at the end, in the order of time.
    pub fn finish(self, report: impl FnMut(Migration)) {
        let open = self.followed.into_values().filter_map(|followed| followed.open);
        let held = self.awake.into_values().flatten();
        let mut rest: Vec<Migration> = open.map(|open| open.migration).chain(held).collect();
        // A stable sort: where a task has two of one instant, the open one comes first.
        rest.sort_by_key(|m| (m.ts, m.on, m.pid));
        rest.into_iter().for_each(report);
    }

    /// The latest migration of a task, while its cause can change.
    fn open(&mut self, pid: Pid) -> Option<&mut OpenMigration> {
        self.followed.get_mut(&pid)?.open.as_deref_mut()
    }

    /// Takes the exec of a task: if the stopper moved the task, the exec is the cause.
    fn exec(&mut self, pid: Pid, now: Ts, report: &mut impl FnMut(Migration)) {
        if let Some(held) = self.awake.remove(&pid).flatten() {
            report(Migration { cause: Cause::Exec, ..held });
        }
        let may_be = |open: &&mut OpenMigration| match open.pending {
            Pending::Exec => true,
            Pending::SoonExec => now.since(open.migration.ts) < NEAR,
            Pending::Settled | Pending::Numa => false,
        };
        if let Some(open) = self.open(pid).filter(may_be) {
            open.settle(Cause::Exec);
        }
    }

    /// Takes the sleep of a task: if the task woke the stopper itself and was moved, a later exec is not the cause.
    fn sleeps(&mut self, pid: Pid, report: &mut impl FnMut(Migration)) {
        let Some(held) = self.awake.remove(&pid) else { return };
        held.into_iter().for_each(report);
        if let Some(open) = self.open(pid).filter(|open| open.pending == Pending::Exec) {
            let is_seen = open.migration.cause == Cause::Affinity;
            open.pending = if is_seen { Pending::Numa } else { Pending::SoonExec };
        }
    }

    /// Takes a reason of NUMA balancing to move a task, or its last action.
    fn reason(&mut self, pid: Pid, reason: Reason, stuck: bool) {
        let fits = |o: &&mut OpenMigration| {
            o.pending != Pending::Settled && reason.fits(o.migration.ts, o.migration.orig, o.migration.dest)
        };
        // The event of a swap follows the probe on it.
        let known = self.reasons.get(&pid).filter(|known| {
            known.recorded && known.cause == reason.cause && known.fits(reason.ts, reason.orig, reason.dest)
        });
        let reason = Reason { recorded: reason.recorded || known.is_some(), ..reason };
        if stuck {
            self.reasons.remove(&pid);
        } else if let Some(open) = self.open(pid).filter(fits) {
            open.settle(reason.cause);
            open.migration.recorded |= reason.recorded;
        } else {
            self.reasons.insert(pid, reason);
        }
    }

    /// Settles the pulls of a CPU by its next scheduler event, which shows the reason for them.
    fn settle_pulls(&mut self, event: &SchedEvent) {
        let is_newidle = match event.kind {
            EventKind::Other { .. } | EventKind::Probe { .. } | EventKind::Stack { .. } => return,
            EventKind::Frequency { .. } | EventKind::Interrupt { .. } => return,
            // `detach_tasks()` takes several tasks: one more of the same balancing pass.
            EventKind::Migrate { dest, .. } if dest == event.cpu && event.in_task() => return,
            EventKind::Switch { prev, state, .. } => prev.pid.is_idle() || !state.is_runnable(),
            _ => false,
        };
        for pid in self.pulls.remove(&event.cpu).unwrap_or_default() {
            if let Some(open) = self.open(pid).filter(|o| o.migration.dest == event.cpu && is_newidle) {
                open.migration.cause = if open.asleep { Cause::NewIdleSleeper } else { Cause::NewIdle };
            }
        }
    }

    /// Finds the cause of a migration, as far as the events up to now decide it.
    fn migrate(
        &mut self,
        event: &SchedEvent,
        (task, orig, dest): (TaskRef, Cpu, Cpu),
        scene: &MoveScene,
    ) -> OpenMigration {
        let on = event.cpu;
        let before = scene.before;
        let is_placement = scene.is_placed.unwrap_or_else(|| {
            self.followed.get(&task.pid).and_then(|followed| followed.waking).is_some_and(|waking| waking.on == on)
        });
        // A waking alone may have queued it already, in the state.
        let is_placed_already = is_placement && scene.is_placed.is_some();
        let queued = matches!(before, Some(TaskState::Waiting(_))) && !is_placed_already;
        let runnable = queued || matches!(before, Some(TaskState::Throttled(_))) && !is_placed_already;
        // A task that is first seen now slept unless it is switched in next.
        let asleep = matches!(before, None | Some(TaskState::Asleep(_))) && !is_placement;
        let reason = self.reasons.remove(&task.pid).filter(|reason| reason.fits(event.ts, orig, dest));
        let by_stopper = scene.by_stopper;
        let decided = self.decisions.of(on, (task.pid, orig, dest), by_stopper);
        let mut recorded = decided.is_some() || reason.is_some_and(|reason| reason.recorded);
        let mut pending = Pending::Settled;
        let cause = if let Some(Decided::Detached(cause)) = decided {
            cause
        } else if is_placement {
            recorded = false;
            Cause::Wakeup
        } else if let Some(reason) = reason {
            reason.cause
        } else if decided == Some(Decided::Requeued) {
            pending = if by_stopper { self.requeued(task.pid, on) } else { Pending::Numa };
            Cause::Affinity
        } else if by_stopper {
            let (cause, later) = self.stopped(task.pid, (on, dest), scene);
            pending = later;
            cause
        } else if !scene.shows_contexts {
            Cause::Unknown
        } else if task.prio < 100 {
            // `detach_tasks()` takes tasks of the fair class alone.
            Cause::RealTime
        } else if event.in_softirq() && dest == on {
            if self.idles(on, scene) { Cause::Idle } else { Cause::Periodic }
        } else if event.in_softirq() && (orig != on || queued) {
            // From its own CPU only for another one; a sleeper there may be one whose waking is not in the trace.
            Cause::NohzIdle
        } else {
            if event.in_task() && dest == on && (queued || asleep) && self.is_emptied(on, scene) {
                self.pulls.entry(on).or_default().push(task.pid);
            }
            Cause::Unknown
        };
        let cause = cause.of_sleeper().filter(|_| asleep).unwrap_or(cause);
        let command = task.comm;
        let migration = Migration {
            ts: event.ts,
            on,
            pid: task.pid,
            command,
            orig,
            dest,
            cause,
            queued,
            recorded,
            first_run: None,
        };
        OpenMigration { migration, pending, asleep, runnable, untouched: true, blind: false }
    }

    /// The later events that can change that the stopper of `cpu` moves a task for its affinity, if it is no active
    /// balance.
    fn requeued(&self, pid: Pid, cpu: Cpu) -> Pending {
        match self.stops.get(&cpu) {
            Some(waking) if !(waking.in_task && waking.by == pid) => Pending::Numa,
            _ => Pending::Exec,
        }
    }

    /// The cause for which the stopper of `cpu` moves a task to `dest`, by the waker of the stopper, and the later
    /// events that can change it.
    fn stopped(&self, pid: Pid, (cpu, dest): (Cpu, Cpu), scene: &MoveScene) -> (Cause, Pending) {
        match self.stops.get(&cpu).filter(|_| scene.shows_contexts) {
            None => (Cause::Stopper, Pending::Exec),
            Some(waking) if waking.in_task && waking.by == pid => (Cause::Affinity, Pending::Exec),
            // `sched_balance_newidle()` pulls to its own CPU only, so a waker elsewhere did not balance.
            Some(waking) if waking.in_task && waking.on != dest && !waking.by_softirqs => {
                (Cause::Affinity, Pending::Numa)
            }
            Some(_) => (Cause::Active, Pending::Numa),
        }
    }

    /// Whether a CPU idles but for its softirqs. With PREEMPT_RT, and wherever softirqs are deferred, they have a
    /// thread, which the tick of an idle CPU wakes: then nothing else is there but the tasks that it has pulled by now.
    fn idles(&self, cpu: Cpu, scene: &MoveScene) -> bool {
        let pulled = |pid| {
            let open = self.followed.get(&pid).and_then(|followed| followed.open.as_deref());
            open.is_some_and(|open| (open.migration.on, open.migration.cause) == (cpu, Cause::Idle))
        };
        match scene.occupant {
            Occupant::Idle => true,
            Occupant::SoftirqThread => scene.waiting.are_all(pulled),
            Occupant::Other => false,
        }
    }

    /// Whether nothing is queued on a CPU but the tasks that it is just pulling.
    fn is_emptied(&self, cpu: Cpu, scene: &MoveScene) -> bool {
        let pulled = self.pulls.get(&cpu).map_or(&[][..], Vec::as_slice);
        scene.waiting.are_all(|pid| pulled.contains(&pid))
    }
}

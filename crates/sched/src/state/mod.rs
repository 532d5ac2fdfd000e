//! The only interpreter of scheduler events: the running and the waiting tasks of each CPU.
//!
//! | event (on CPU e) | effect |
//! |---|---|
//! | `sched_switch` prev → next | `prev`, if a task: runnable by its `prev_state` → `Waiting(e)`; dead → `Dead`; otherwise `Asleep(e)`. `next`, if a task → `Running(e)`. Current of e becomes `next`. |
//! | `sched_waking` p, target | no state change. Remembered: the waker, the time, the previous CPU. In a trace without any `sched_wakeup` it places p ([`Start::by_wakings`]). |
//! | `sched_wakeup` p, target | `Running` → nothing (an *early wakeup*). `Waiting` → corrected to `target`. Otherwise → `Waiting(target)`. |
//! | `sched_wakeup_new` p, target | a new life of p → `Waiting(target)`. |
//! | `sched_migrate_task` p, orig, dest | `Waiting` → `Waiting(dest)`. `Running` → a contradiction, nothing else. Otherwise only its last CPU changes. |
//! | `sched_process_fork`, `_exit` | lineage only. `_exec`: the program's name from then on; a thread that is not the leader takes the leader's number. |
//! | `task_rename` | another name from then on, if the task runs on e or nowhere |
//! | probes `set_affinity`, `allowed` p | p may use these CPUs; its children inherit that ([`SchedState::shown`]) |
//! | `throttle`, `unthrottle` of a cgroup on CPU c (probes) | its tasks `Waiting(c)` → `Throttled(c)`, and back; a task that joins the queue of c meanwhile is `Throttled(c)` |
//! | loss on e | current of e and the tasks `Running(e)` or `Waiting(e)`, and all `Throttled` ones → `Unknown` |
//! | offline e | current of e becomes `Offline`; its stopper is `Asleep(e)`, a task `Waiting(e)` becomes `Unknown` |
//! | any event on e but a stack | its `common_pid` settles an `Unknown` or `Offline` current |
//!
//! Contradictions are repaired, and counted by kind ([`SchedState::repaired`]):
//!
//! * switch whose `prev` is not e's known current: the old current → `Unknown`; go on from `prev`;
//! * switch-in of a task that is `Waiting` elsewhere: it moves at the switch;
//! * switch-in of a task that is `Asleep`: it was woken unseen;
//! * switch-in of a task that is `Running` elsewhere: that CPU's current → `Unknown`;
//! * switch to the idle task while tasks wait there, where events are missing: these had left → `Unknown`;
//! * switch-in of a task that is `Throttled` there with its queue: the end of throttling was not seen.
//!
//! *On a CPU without events* a task that waits may have run unseen: no event counts as the end of that
//! wait ([`Span::ended`]), nor as the beginning of one that it goes on with elsewhere.
//!
//! *Before its first event* a task was in the state that the event implies: switched out or waking
//! tasks are simple, since `Asleep` counts in no figure. A task that is first seen being switched
//! in had been `Waiting` from the start, which cannot be known in time: it is reported by
//! [`SchedState::discovered`], and [`crate::Pass`] runs again with it in [`Start::waiting`]. If the CPU was idle
//! in between, it cannot have waited there: it came unseen. Where
//! events were lost before a task's first event, or wakeups were not recorded, its state until
//! then is `Unknown`. The task that runs at first is known by number; the name, which decides what it counts as, comes with the
//! switch that ends that, and likewise goes into the [`Start`] of the pass ([`SchedState::named`]).

use crate::event::diag::{Diagnostics, EventIssue};
use crate::event::span::{Came, CpuSpan, Current, Span, TaskState};
use crate::event::task_id::TaskId;
use crate::event::{Comm, Cpu, EventKind, Pid, SchedEvent, TaskRef, Ts};
use crate::state::application::ApplicationBasis;
use crate::state::lineage::{Kin, Lineage};
use crate::tables::capacities::CpuCapacities;
use crate::tables::seeded::SeededMap;

pub mod affinity;
mod allowed;
pub mod application;
pub mod command_work;
pub mod counted;
mod counts;
mod current;
mod identity;
pub mod lineage;
pub mod names;
mod noted;
mod packed;
pub mod past;
mod placement;
pub mod policies;
mod scan;
mod seen;
mod silence;
mod slices;
mod softirqs;
mod start;
mod steps;
mod tasks;
mod throttling;
mod weights;

pub use allowed::{ShownAffinity, ShownId};
pub use counts::{CpuCounts, Load, SubsetCounts};
pub use current::CpuFold;
pub(crate) use packed::PackedState;
pub(crate) use scan::Scan;
pub use softirqs::SoftirqOrigin;
pub use start::Start;
pub use tasks::{Task, Waking};

use allowed::AllowedSets;
use counts::Tally;
use seen::SeenKinds;
use tasks::{Slot, TaskQueue, Tasks};
use throttling::Throttling;

/// The state of one CPU.
#[derive(Clone, Debug, Default)]
struct CpuState {
    observed: bool,
    current: Current,
    /// Whether the CPU has been idle or offline since the start, so that no task that waited there at the start still does.
    emptied: bool,
    /// The index of the running task.
    running: Option<Slot>,
    comm: Comm,
    since: Ts,
    lost_since: Option<Ts>,
    queue: TaskQueue,
    /// The task whose waking is this CPU's latest scheduler event, if wakings place tasks.
    placing: Option<Pid>,
    /// The number of interrupt handlers that were entered and not left.
    handlers: u32,
    /// The request of the running task at its pick, where that was recorded.
    picked: Option<slices::PickedSlice>,
    /// The origin of the softirqs that are to run.
    raised: SoftirqOrigin,
}

/// The state of the scheduler at one instant, and the changes by the last event.
#[derive(Clone, Debug, Default)]
pub struct SchedState {
    start: Ts,
    now: Ts,
    without_wakeups: bool,
    without_wakings: bool,
    by_wakings: bool,
    /// Whether the last event was the migration that belongs to a waking, if wakings place tasks.
    placed: bool,
    incomplete: bool,
    /// Whether a sched_ext scheduler holds the waiting tasks, in queues that no event shows.
    has_ext_queues: bool,
    /// Whether events do not show the context in which they were recorded.
    without_contexts: bool,
    any_loss: bool,
    /// Whether the tasks before the first event are not known, and are not to be found ([`Scan`]).
    is_scan: bool,
    cpus: Vec<CpuState>,
    tasks: Tasks,
    lineage: Lineage,
    allowed: AllowedSets,
    seen: SeenKinds,
    repairs: Diagnostics,
    /// The number of all repairs, and the kind of the latest.
    latest_repair: (u64, Option<EventIssue>),
    gaps: SeededMap<Cpu, (u64, u64)>,
    discovered: Vec<(TaskRef, Cpu)>,
    /// The number of tasks that were discovered in earlier passes.
    discovered_before: usize,
    /// The tasks that ran from the start on, named when they were switched out.
    named: Vec<TaskRef>,
    /// The number of tasks first seen being switched in that cannot have waited since the start.
    newcomers: u64,
    spans: Vec<Span>,
    cpu_spans: Vec<CpuSpan>,
    /// The CPUs whose occupant or queue the last event changed.
    touched: Vec<Cpu>,
    /// The waiting tasks whose priority or policy the last event changed.
    reweighed: Vec<TaskId>,
    policy_calls: policies::PolicyCalls,
    policies_of_programs: policies::UnbornPolicies,
    capacities: CpuCapacities,
    /// The throttled tasks, if the trace has records of throttling.
    throttling: Option<Box<Throttling>>,
    /// The counts of CPUs by load, if the state counts.
    tally: Option<Box<Tally>>,
}

impl SchedState {
    /// The first instant of the trace.
    pub fn start(&self) -> Ts {
        self.start
    }

    /// The instant of the last event.
    pub fn now(&self) -> Ts {
        self.now
    }

    /// The occupant of `cpu`; unknown if no event has shown the CPU.
    pub fn current(&self, cpu: Cpu) -> Current {
        self.cpus.get(cpu.index()).map_or(Current::Unknown, |c| c.current)
    }

    /// The instant since which `cpu` has its occupant by the same name.
    pub fn current_since(&self, cpu: Cpu) -> Ts {
        self.cpus.get(cpu.index()).map_or(self.start, |c| c.since)
    }

    /// The task that runs on `cpu`; `None` if no task is known to run there.
    pub fn running(&self, cpu: Cpu) -> Option<&Task> {
        self.tasks.at(self.cpus.get(cpu.index())?.running?)
    }

    /// Iterates over the tasks that wait on `cpu`, in the order in which they came.
    pub fn waiting(&self, cpu: Cpu) -> impl Iterator<Item = &Task> {
        let queue = self.cpus.get(cpu.index()).map_or(TaskQueue::default(), |c| c.queue);
        self.tasks.queued(queue)
    }

    /// Iterates over the tasks that wait on `cpu`, the one that came last first.
    pub fn waiting_latest_first(&self, cpu: Cpu) -> impl Iterator<Item = &Task> {
        let queue = self.cpus.get(cpu.index()).map_or(TaskQueue::default(), |c| c.queue);
        self.tasks.queued_latest_first(queue)
    }

    /// The number of interrupt handlers that were entered on `cpu` and not left.
    pub fn handlers(&self, cpu: Cpu) -> u32 {
        self.cpus.get(cpu.index()).map_or(0, |c| c.handlers)
    }

    /// The number of tasks that wait on `cpu`, without the running one.
    pub fn queue_length(&self, cpu: Cpu) -> u32 {
        self.cpus.get(cpu.index()).map_or(0, |c| c.queue.len)
    }

    /// The load of `cpu`, as figures show it.
    pub fn load(&self, cpu: Cpu) -> Load {
        self.cpus.get(cpu.index()).map_or(Load::Unobserved, |c| c.load(self.awaited()))
    }

    /// The load of an idle CPU on which a task waits.
    #[inline]
    pub fn awaited(&self) -> Load {
        if self.has_ext_queues { Load::Unserved } else { Load::SwitchPending }
    }

    /// Whether a sched_ext scheduler holds the waiting tasks: a task that waits on a CPU was there last, and any CPU could take
    /// it from the scheduler's queues.
    pub fn has_ext_queues(&self) -> bool {
        self.has_ext_queues
    }

    /// Whether events show the context in which they were recorded: a task, a softirq, a hard interrupt. A printed trace does not
    /// where it has no column of flags.
    pub fn shows_contexts(&self) -> bool {
        !self.without_contexts
    }

    /// Whether `cpu` has had an event, or has one at the start.
    pub fn is_observed(&self, cpu: Cpu) -> bool {
        self.cpus.get(cpu.index()).is_some_and(|c| c.observed)
    }

    /// Iterates over the CPUs that have events, in ascending order.
    pub fn observed(&self) -> impl Iterator<Item = Cpu> {
        (0..).map(Cpu).zip(&self.cpus).filter(|(_, c)| c.observed).map(|(cpu, _)| cpu)
    }

    /// Iterates over the CPUs without events on whose queues tasks wait, in ascending order.
    pub fn unobserved_queues(&self) -> impl Iterator<Item = Cpu> {
        (0..).map(Cpu).zip(&self.cpus).filter(|(_, c)| !c.observed && c.queue.len > 0).map(|(cpu, _)| cpu)
    }

    /// The living task with this PID.
    pub fn task_of(&self, pid: Pid) -> Option<&Task> {
        self.tasks.at(self.tasks.find(pid)?)
    }

    /// The task of a span. A dead task is available until the next event.
    pub fn task(&self, id: TaskId) -> Option<&Task> {
        self.tasks.get(id)
    }

    /// Iterates over the living tasks that events have shown so far, in no order that means anything.
    pub fn living(&self) -> impl Iterator<Item = &Task> {
        self.tasks.living()
    }

    /// The origin of `pid`: its parent, and whether it descends from the traced command.
    pub fn kin(&self, pid: Pid) -> Kin {
        self.lineage.of(pid)
    }

    /// The PID of the traced command's first task; `None` if its exec is not in the trace. A [`crate::Pass`] finds it
    /// before the first event; elsewhere it is known once its exec was seen. Of chosen tasks, the one whose critical path
    /// is that of the application.
    pub fn root(&self) -> Option<Pid> {
        self.lineage.root()
    }

    /// The property that makes tasks part of the application.
    pub fn application_basis(&self) -> ApplicationBasis {
        self.lineage.basis()
    }

    /// The spans of tasks that the last event closed, in the order of its effects.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// Iterates over the tasks whose state the last event changed, in order, each with the span that this closed.
    pub fn turns(&self) -> impl Iterator<Item = (&Task, &Span)> {
        self.spans.iter().filter_map(|span| Some((self.task(span.task)?, span)))
    }

    /// The spans of CPUs that the last event closed.
    pub fn cpu_spans(&self) -> &[CpuSpan] {
        &self.cpu_spans
    }

    /// The number of contradictions of this kind that were repaired so far.
    pub fn repaired(&self, what: EventIssue) -> u64 {
        self.repairs.count(what)
    }

    /// Returns the gaps of each CPU so far: the CPU, their number, and their total length in nanoseconds.
    pub fn gaps(&self) -> Vec<(Cpu, u64, u64)> {
        let mut gaps: Vec<_> = self.gaps.iter().map(|(cpu, (n, ns))| (*cpu, *n, *ns)).collect();
        gaps.sort_unstable();
        gaps
    }

    /// Applies one event; events must come in the order of the trace. The spans that the event closed are in
    /// [`SchedState::spans`] and [`SchedState::cpu_spans`] until the next call.
    pub fn apply(&mut self, event: &SchedEvent) {
        self.step(event);
    }

    /// Applies one event like [`SchedState::apply`], but compiled into the loop over many events, with its work at most
    /// of them: the states that a task and a CPU become are known where it is called, and those that cannot be are left
    /// out there, a sixth of the instructions. Rare cases stand in functions of their own, out of the way.
    #[inline(always)]
    pub(crate) fn step(&mut self, event: &SchedEvent) {
        self.forget_facts();
        self.now = event.ts;
        if self.by_wakings {
            self.follow_placement(event);
        }
        match event.kind {
            EventKind::Lost { .. } => self.lose(event.cpu, event.ts),
            EventKind::Offline => self.go_offline(event.cpu, event.ts),
            _ => self.happen(event),
        }
        if self.tally.is_some() {
            self.follow_counts();
        }
    }

    /// Applies an event that a CPU recorded, rather than a loss or a CPU going offline.
    #[inline(always)]
    fn happen(&mut self, event: &SchedEvent) {
        self.notice(event);
        self.seen.note(&event.kind);
        match event.kind {
            EventKind::Switch { prev, state, next } => self.switch(event.cpu, prev, state, next),
            EventKind::Waking { task, target } => self.waking(task, target, event),
            EventKind::Wakeup { task, target } => self.wakeup(task, target),
            EventKind::WakeupNew { task, target } => self.wakeup_new(task, target),
            EventKind::Migrate { task, orig, dest } => self.migrate(task, orig, dest),
            EventKind::Fork { parent, child, .. } => self.fork(parent, child),
            EventKind::Rename { pid, before, after } => {
                self.lineage.rename(pid, before);
                self.take_name(event.cpu, pid, before, after);
            }
            EventKind::Exec { pid, old_pid, program } => {
                self.exec(pid, old_pid, program);
                self.relate(old_pid);
                self.relate(pid);
            }
            EventKind::Exit { .. } | EventKind::Lost { .. } | EventKind::Offline | EventKind::Frequency { .. } => {}
            EventKind::Interrupt { entry, .. } => {
                let handlers = &mut self.cpu(event.cpu).handlers;
                *handlers = if entry { handlers.saturating_add(1) } else { handlers.saturating_sub(1) };
            }
            EventKind::Numa { .. } | EventKind::Stack { .. } => {}
            EventKind::Probe { probe, .. } => self.follow_probe(&probe, event),
            EventKind::Other { .. } => {}
        }
    }

    /// Closes all open spans at `end`, as censored. No event may be applied afterwards.
    pub fn close(&mut self, end: Ts) {
        self.forget_facts();
        for (cpu, c) in (0..).map(Cpu).zip(&mut self.cpus) {
            if let (true, Some(since)) = (c.observed, c.lost_since.take()) {
                self.gaps.entry(cpu).or_default().1 += end.since(since).0;
            }
            if c.observed {
                let span = CpuSpan { cpu, current: c.current, comm: c.comm, start: c.since, end };
                self.cpu_spans.push(span);
            }
        }
        self.spans.extend(self.tasks.open_spans(end));
    }

    /// Forgets the changes by the event before, and the tasks that died at it.
    fn forget_facts(&mut self) {
        self.spans.clear();
        self.cpu_spans.clear();
        self.touched.clear();
        self.reweighed.clear();
        self.tasks.bury();
    }

    /// Counts a contradiction that is resolved.
    fn repair(&mut self, what: EventIssue) {
        self.repairs.add(what);
        self.latest_repair = (self.latest_repair.0.saturating_add(1), Some(what));
    }

    /// The state of `cpu`, made if no event has shown the CPU yet.
    #[inline(always)]
    fn cpu(&mut self, cpu: Cpu) -> &mut CpuState {
        if cpu.index() >= self.cpus.len() {
            self.grow(cpu);
        }
        &mut self.cpus[cpu.index()]
    }

    /// Makes the states of all CPUs up to `cpu`.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, cpu: Cpu) {
        let since = self.start;
        self.cpus.resize_with(cpu.index() + 1, || CpuState { since, ..CpuState::default() });
    }

    /// Takes an event as evidence on its CPU: it ends a gap, and shows the running task.
    #[inline(always)]
    fn notice(&mut self, event: &SchedEvent) {
        let c = self.cpu(event.cpu);
        c.observed = true;
        if c.raised != SoftirqOrigin::Unknown {
            softirqs::after_raise(&mut c.raised, event);
        }
        if c.lost_since.is_some() || matches!(c.current, Current::Unknown | Current::Offline) {
            self.notice_again(event);
        }
    }

    /// Ends the time in which the state of the event's CPU was unknown.
    #[cold]
    #[inline(never)]
    fn notice_again(&mut self, event: &SchedEvent) {
        let (cpu, ts) = (event.cpu, event.ts);
        if let Some(since) = self.cpu(cpu).lost_since.take() {
            self.gaps.entry(cpu).or_default().1 += ts.since(since).0;
        }
        let is_stack = matches!(event.kind, EventKind::Stack { .. });
        if !is_stack && matches!(self.current(cpu), Current::Unknown | Current::Offline) {
            self.settle(cpu, event.pid, ts);
        }
    }

    /// Makes `pid` the occupant of `cpu`, whose occupant was unknown until now.
    #[cold]
    #[inline(never)]
    fn settle(&mut self, cpu: Cpu, pid: Pid, ts: Ts) {
        if pid == Pid::UNKNOWN {
            return;
        }
        if pid.is_idle() {
            self.set_current(cpu, Current::Idle, None, Comm::EMPTY, ts);
            return;
        }
        let slot = match self.tasks.find(pid) {
            Some(slot) => slot,
            None => {
                let task = TaskRef { pid, prio: Task::NO_PRIO, comm: Comm::EMPTY };
                match self.birth(task, TaskState::Unknown, self.first_moment(pid)) {
                    Some(slot) => slot,
                    None => return self.run_unfollowed(cpu, task, ts),
                }
            }
        };
        let comm = self.tasks.entry(slot).comm;
        self.run(cpu, slot, comm, ts, false);
    }

    /// Closes the span of `cpu`, and begins one with this occupant and name.
    #[inline(always)]
    fn set_current(&mut self, cpu: Cpu, current: Current, running: Option<Slot>, comm: Comm, ts: Ts) {
        let c = self.cpu(cpu);
        let span = CpuSpan { cpu, current: c.current, comm: c.comm, start: c.since, end: ts };
        (c.current, c.running, c.comm, c.since) = (current, running, comm, ts);
        self.cpu_spans.push(span);
        self.touch(cpu);
    }

    /// Notes a change of the occupant or of the queue of `cpu`.
    #[inline]
    fn touch(&mut self, cpu: Cpu) {
        // Most events change one CPU only.
        if self.touched.last() != Some(&cpu) {
            self.touched.push(cpu);
        }
    }

    /// Runs the task in `slot` on `cpu` from `ts` on, by the name `comm`, whatever it did before. `seen`: the task was
    /// switched in just then.
    #[inline(always)]
    fn run(&mut self, cpu: Cpu, slot: Slot, comm: Comm, ts: Ts, seen: bool) {
        let task = self.tasks.entry(slot);
        let (state, pid) = (task.state, task.pid);
        if !self.by_wakings {
            (task.waking, task.waking_is_used) = (None, false);
        }
        if let TaskState::Running(other) = state
            && other != cpu
        {
            self.repair(EventIssue::RunningElsewhere);
            self.set_current(other, Current::Unknown, None, Comm::EMPTY, ts);
        }
        // A sleeping task must have been woken unseen, and a throttled one released; a task running elsewhere must have left
        // this CPU.
        let ended = seen && !matches!(state, TaskState::Asleep(_) | TaskState::Running(_) | TaskState::Throttled(_));
        self.change(slot, TaskState::Running(cpu), ts, ended, seen);
        self.set_current(cpu, Current::Task(pid), Some(slot), comm, ts);
    }

    /// Takes the task in `slot` to a state by an event.
    #[inline(always)]
    fn enter(&mut self, slot: Slot, state: TaskState, ts: Ts) {
        self.change(slot, state, ts, true, true);
    }

    /// Takes the task in `slot` to a state that it turns out to be in, since some moment that was not seen.
    #[cold]
    #[inline(never)]
    fn turn_out(&mut self, slot: Slot, state: TaskState, ts: Ts) {
        self.change(slot, state, ts, false, false);
    }

    /// Closes the span of the task in `slot`, which an event `ended` or not, and begins the next one.
    #[inline(always)]
    fn change(&mut self, slot: Slot, state: TaskState, ts: Ts, mut ended: bool, mut begins: bool) {
        let old = self.tasks.entry(slot).state;
        if let TaskState::Waiting(cpu) = old {
            let c = &mut self.cpus[cpu.index()];
            let observed = c.observed;
            self.tasks.leave(&mut c.queue, slot);
            self.touch(cpu);
            if !observed {
                let moves = matches!(state, TaskState::Waiting(_) | TaskState::Throttled(_));
                let waited = ts.since(self.tasks.entry(slot).since);
                self.leave_unseen(waited, moves);
                ended = false;
                begins &= !moves;
            }
        } else if let TaskState::Running(cpu) = old {
            self.tasks.entry(slot).ran_on = Some(cpu);
        } else if let TaskState::Throttled(cpu) = old {
            self.leave_throttled(slot, cpu, state);
        }
        let task = self.tasks.entry(slot);
        task.state = state;
        let start = std::mem::replace(&mut task.since, ts);
        let begun = std::mem::replace(&mut task.begun, begins);
        let span = Span { task: task.id(), pid: task.pid, state: old, start, end: ts, next: state, begun, ended };
        task.undecided = None;
        self.spans.push(span);
        if let TaskState::Waiting(cpu) = state {
            // The CPU may be one that no event has shown.
            self.cpu(cpu);
            if !(ended && matches!(old, TaskState::Waiting(_))) {
                self.tasks.entry(slot).queued = begins.then_some(ts);
            }
            let task = self.tasks.entry(slot);
            task.came = match old {
                TaskState::Running(_) | TaskState::Throttled(_) => Came::Stayed,
                TaskState::Waiting(_) if ended && !self.placed => Came::Moved,
                _ if begins && task.born == Some(ts) => Came::Forked,
                _ if begins => Came::Woken,
                _ => Came::Unknown,
            };
            self.tasks.join(&mut self.cpus[cpu.index()].queue, slot);
            self.touch(cpu);
            if self.throttling.is_some() {
                self.hold_back(slot, cpu, old, start);
            }
        }
        if let TaskState::Throttled(cpu) = state {
            self.join_throttled(slot, cpu);
        }
        if state == TaskState::Dead {
            self.tasks.die(slot);
        }
    }

    /// Finds a task that an event is about, and takes over its name. While the task runs, only its first name is taken:
    /// a name that it gave itself counts from its next switch on, whatever wakes it early.
    #[inline(always)]
    fn find(&mut self, task: TaskRef) -> Option<Slot> {
        let slot = self.tasks.find(task.pid)?;
        let entry = self.tasks.entry(slot);
        match entry.state {
            TaskState::Running(_) if !entry.comm.is_empty() => {
                if task.prio != entry.prio {
                    self.take_prio(slot, task.prio);
                }
            }
            _ => self.rename(slot, task),
        }
        Some(slot)
    }

    /// Takes over the priority and the name with which an event shows a task.
    fn rename(&mut self, slot: Slot, task: TaskRef) {
        let entry = self.tasks.entry(slot);
        // The name rarely changes. Rewriting it in parts would stall a later load of the whole (store forwarding). It comes before the priority,
        // which weighs less for a kernel thread.
        if task.comm != entry.comm && !task.comm.is_empty() {
            self.take_comm(slot, task.comm);
        }
        if self.tasks.entry(slot).prio != task.prio {
            self.take_prio(slot, task.prio);
        }
    }

    /// Adds a task that was not seen before, and that slept until now unless something was lost.
    fn sleeper(&mut self, task: TaskRef, last: Cpu) -> Option<Slot> {
        let since = self.first_moment(task.pid);
        let certain = since == self.start && self.is_start_known();
        let state = if certain { TaskState::Asleep(last) } else { TaskState::Unknown };
        self.birth(task, state, since)
    }
}

#[cfg(test)]
mod tests;

//! Why tasks waited while CPUs idled.
//!
//! In goes a trace, out come two sums of the time in violation of `workcons`, divided to the nanosecond: the waiting, ∫ V · Σ
//! counted waiters on overloaded CPUs, among the waits, and the idling, ∫ V · |I|, among the idle stretches. Each wait and each
//! idle stretch has one origin and one end (`docs/questions/why.md`). The *missed steals* are the switches to idle while a
//! counted task waits on another CPU. Begin reading in `category.rs`, the origins and ends, then `meter.rs` and `ledger.rs`.
//!
//! ```
//! use sched::Pass;
//! use why::Why;
//! use workcons::Options;
//!
//! // A task waits on CPU 0 for 200 ns while CPU 1 idles.
//! let events = testkit::a_wait_beside_an_idle_cpu();
//! let options = Options::default();
//! let outcome = Pass::over(events.as_slice()).run(|| Why::new(&options)).unwrap_or_else(|never| match never {});
//! assert_eq!(outcome.output.violation_ns.map(|ns| ns.0), Some(200));
//! ```

mod args;
mod asked_episode;
mod balancing;
mod barred;
mod bound;
mod by_group;
mod category;
mod class_meter;
mod figure;
mod gate;
mod grouping;
mod joined;
mod ledger;
mod listed;
mod longest;
mod meter;
mod metrics;
mod missed;
mod nearest;
mod not_running;
mod on_request;
mod origins;
mod over_time;
mod question;
mod report;
mod sentence;
mod smaller;
mod story;
mod story_figure;
mod stretch;
mod text;
mod wait;

pub use args::WhyArgs;
pub use balancing::Probed;
pub use barred::{BarredRow, BarredTasks};
pub use bound::{BOUND_FROM, Homes, Stayed};
pub use category::{IdleEnd, IdleOrigin, Left, Placed, Preempter, WaitEnd, WaitOrigin};
pub use figure::figure;
pub use gate::{AverageRule, EstimatedGate, GateCosts};
pub use grouping::{GroupRow, Grouping, OnCpu};
pub use longest::Longest;
pub use metrics::metrics;
pub use missed::{GateRow, GatedOutcome, Missed, MissedRow, OutcomeRow};
pub use nearest::Nearest;
pub use over_time::{Layer, OverTime};
pub use question::WhyQuestion;
pub use report::{Rows, WhyReport, WhyRow};
pub use smaller::{SmallerCpus, SmallerRow};
pub use story::{Story, StoryStep};
pub use story_figure::story_figure;
pub use text::{markdown, story_text, text};

use balancing::Balancer;
use grouping::Groups;
use joined::{WhyLog, WhyStep};
use ledger::{Case, CategorizedCase, MoveKey, Stretches, Waits};
pub use listed::{Cases, ListedCase};
use meter::Meter;
use missed::MissedSteals;
use over_time::Recorder;
use sched::analysis::Settled;
use sched::causes::StopperMoves;
use sched::kthread::is_stopper;
use sched::probe::Probe;
use sched::{
    Analysis, Cause, Comm, Cpu, Current, EventKind, Load, Migration, Past, PastMoves, PerTask, Pid, SchedEvent,
    SchedState, Span, StateClass, Task, TaskId, TaskState, Ts,
};
use story::{Change, Chronicle, Who};
use stretch::{Stretch, StretchEnding};
use wait::Wait;
use workcons::Options;

/// The track of a living task.
#[derive(Clone, Copy, Debug, Default)]
struct TaskTrack {
    wait: Option<Wait>,
}

/// The track of a CPU.
#[derive(Clone, Copy, Debug, Default)]
struct CpuTrack {
    stretch: Option<Stretch>,
    /// The instant at which another task was last run before those that waited then.
    overtaken: Option<Ts>,
}

/// The analysis of the waits and the idle stretches: an [`Analysis`] whose output is a [`WhyReport`].
pub struct Why<'o> {
    options: &'o Options<'o>,
    start: Ts,
    meter: Meter,
    tasks: PerTask<TaskTrack>,
    cpus: Vec<CpuTrack>,
    stopped: StopperMoves,
    waits: Waits,
    stretches: Stretches,
    missed: MissedSteals,
    /// The sums over time for a figure, where one is wanted.
    over_time: Option<Box<Recorder>>,
    column_end: Ts,
    /// The rows of a table of the tasks, commands, CPUs or nodes that waited, where one is wanted.
    groups: Option<Box<Groups>>,
    listing: Option<&'o Cases<'o>>,
    /// The story of an episode, where one is wanted.
    chronicle: Option<Box<Chronicle>>,
    /// The probes on the balancer, where there are any.
    balancer: Option<Box<Balancer>>,
    /// The violated time in earlier pieces of a pass, in nanoseconds: the readings began anew behind each.
    violated_before: u64,
    /// The things that are left to the pieces before, in a later piece of a pass.
    log: Option<Box<WhyLog>>,
}

impl<'o> Why<'o> {
    /// Returns the analysis with the options of the measurement of the violation.
    pub fn new(options: &'o Options<'o>) -> Why<'o> {
        Why {
            options,
            start: Ts(0),
            meter: Meter::new(options),
            tasks: PerTask::default(),
            cpus: Vec::new(),
            stopped: StopperMoves::default(),
            waits: Waits::default(),
            stretches: Stretches::default(),
            missed: MissedSteals::default(),
            over_time: options.strips.map(|window| Box::new(Recorder::new(window))),
            column_end: Ts(i64::MAX),
            groups: None,
            listing: None,
            chronicle: None,
            balancer: None,
            violated_before: 0,
            log: None,
        }
    }

    /// Passes each wait, counted or not, and each idle stretch to `cases` when its categories are settled.
    #[must_use]
    pub fn listing(mut self, cases: &'o Cases<'o>) -> Why<'o> {
        self.listing = Some(cases);
        self.waits.list();
        self.stretches.list();
        self
    }

    fn cpu(&mut self, cpu: Cpu) -> &mut CpuTrack {
        if cpu.index() >= self.cpus.len() {
            self.cpus.resize(cpu.index() + 1, CpuTrack::default());
        }
        &mut self.cpus[cpu.index()]
    }

    /// Changes the track of a task.
    fn track(&mut self, task: TaskId, change: impl FnOnce(&mut TaskTrack)) {
        match self.tasks.get_mut(task) {
            Some(track) => change(track),
            None => {
                let mut track = TaskTrack::default();
                change(&mut track);
                self.tasks.insert(task, track);
            }
        }
    }

    /// Takes over the load of a CPU.
    fn settle_cpu(&mut self, cpu: Cpu, now: Ts, state: &SchedState) {
        self.meter.settle(cpu, self.options.load(cpu, state), now);
    }

    fn follow(&mut self, event: &SchedEvent, state: &SchedState) {
        let now = event.ts;
        let mut ran = None;
        for span in state.spans() {
            if let TaskState::Waiting(_) = span.state {
                let wait = self.wait_ends(span, event, state);
                if span.next == TaskState::Running(event.cpu) {
                    ran = wait.map(|wait| (span.task, wait));
                }
            }
            if let TaskState::Waiting(cpu) = span.next
                && let Some(task) = state.task(span.task)
            {
                let origin = self.origin(task, span, event, state);
                self.wait_begins(task, cpu, origin, now, state);
                if self.chronicle.is_some() && self.options.counts(task, cpu, state) {
                    let who = Who { pid: task.pid, command: task.comm };
                    self.step(event.cpu, now, cpu, Change::Waits(who, origin.0, origin.1, state.is_within_slice(cpu)));
                }
            }
        }
        for cpu in state.touched() {
            self.settle_cpu(*cpu, now, state);
        }
        self.meter.update(now);
        for span in state.cpu_spans() {
            if span.current == Current::Idle {
                let (start, since) =
                    self.cpu(span.cpu).stretch.map_or((now, now), |stretch| (stretch.start, stretch.since));
                if self.chronicle.is_some() && self.cpu(span.cpu).stretch.is_some() {
                    let who = state.running(span.cpu).map(|task| Who { pid: task.pid, command: task.comm });
                    self.step(event.cpu, now, span.cpu, Change::Runs(who, now.since(start)));
                }
                let ending = StretchEnding::of(event, span.cpu, state);
                match self.leaves_stretch(span.cpu, ran) {
                    true => self.leave_stretch(span.cpu, ending, ran, now),
                    false => self.stretch_ends(span.cpu, ending.end(since, ran.map(|(_, wait)| wait)), now),
                }
            }
        }
        for span in state.cpu_spans() {
            if state.current(span.cpu) == Current::Idle && self.cpu(span.cpu).stretch.is_none() {
                self.stretch_begins(span.cpu, event, state);
            }
        }
        if let EventKind::Switch { prev, next, .. } = event.kind
            && prev.pid.is_idle()
            && !next.pid.is_idle()
            && state.queue_length(event.cpu) > 0
        {
            self.overtake(event.cpu, now, state);
        }
    }

    /// A task joins the queue of `cpu`.
    fn wait_begins(
        &mut self,
        task: &Task,
        cpu: Cpu,
        origin: (WaitOrigin, Option<MoveKey>),
        now: Ts,
        state: &SchedState,
    ) {
        let counted = self.options.counts(task, cpu, state);
        let affinity = self.options.affinity.filter(|_| counted);
        let class = self.meter.class(task, cpu, affinity, state);
        let reading = self.meter.wait_reading(cpu, class, now);
        let on_idle = state.current(cpu) == Current::Idle;
        let (start, since, came) = (now, now, origin);
        let noted = reading;
        let (before, is_earlier) = (0, false);
        let wait =
            Wait { cpu, start, since, reading, noted, before, origin, came, counted, class, on_idle, is_earlier };
        self.track(task.id(), |track| track.wait = Some(wait));
        if counted {
            if let Some(groups) = &mut self.groups {
                groups.begin(task, self.meter.idle_readings(now));
            }
            self.meter.join(cpu);
        }
    }

    /// The task of `span` leaves its queue; its wait.
    fn wait_ends(&mut self, span: &Span, event: &SchedEvent, state: &SchedState) -> Option<Wait> {
        let wait = self.tasks.get_mut(span.task)?.wait.take()?;
        let end = self.wait_end(span, event);
        let command = state.task(span.task).map_or(Comm::EMPTY, |task| task.comm);
        self.close_wait(span.task, wait, end, (span.pid, command), event.ts);
        if wait.counted && self.chronicle.is_some() {
            let (who, waited) = (Who { pid: span.pid, command }, event.ts.since(wait.start));
            self.step(event.cpu, event.ts, wait.cpu, Change::Leaves(who, end.0, end.1, waited));
        }
        Some(wait)
    }

    fn close_wait(
        &mut self,
        id: TaskId,
        wait: Wait,
        end: (WaitEnd, Option<MoveKey>),
        (pid, command): (Pid, Comm),
        now: Ts,
    ) {
        if !wait.counted {
            if wait.is_earlier {
                return self.leave_wait(id, 0, end, (pid, command), now);
            }
            return self.list_uncounted(&wait, end, (pid, command), now);
        }
        let reading = self.meter.wait_reading(wait.cpu, wait.class, now);
        self.meter.leave(id, wait.cpu);
        if let Some(over_time) = &mut self.over_time {
            over_time.note_wait(id, reading.saturating_sub(wait.noted));
        }
        let violated = wait.violated(reading);
        match wait.is_earlier {
            true => self.leave_wait(id, violated, end, (pid, command), now),
            false => self.count_wait(id, (&wait, violated), end, (pid, command), now, None),
        }
    }

    /// Counts a wait with its time in violation. `idle`: the readings of all CPUs' idle time in violation then, unless they
    /// are the present ones.
    fn count_wait(
        &mut self,
        id: TaskId,
        (wait, violated): (&Wait, u64),
        end: (WaitEnd, Option<MoveKey>),
        (pid, command): (Pid, Comm),
        now: Ts,
        idle: Option<Vec<u64>>,
    ) {
        let (start, cpu) = (wait.start, wait.cpu);
        let case = Case { violated, start, end: now, cpu, pid, command, counted: true, missed: None };
        if let Some(over_time) = &mut self.over_time {
            over_time.end_wait(id, wait.origin);
        }
        if let Some(groups) = &mut self.groups {
            let idle = idle.unwrap_or_else(|| self.meter.idle_readings(now));
            groups.end(id, case, &idle, &self.options.topology);
        }
        self.waits.take(CategorizedCase { origin: wait.origin, end, case });
    }

    fn wait_end(&self, span: &Span, event: &SchedEvent) -> (WaitEnd, Option<MoveKey>) {
        let end = match (span.next, event.kind) {
            (TaskState::Running(cpu), EventKind::Switch { next, .. })
                if span.ended && span.state == TaskState::Waiting(cpu) && next.pid == span.pid =>
            {
                WaitEnd::Ran(self.left(event))
            }
            (TaskState::Waiting(_), EventKind::Migrate { task, dest, .. }) if task.pid == span.pid => {
                return (WaitEnd::Moved(Cause::Unknown), Some((span.pid, event.ts, dest)));
            }
            (TaskState::Throttled(_), _) => WaitEnd::Throttled,
            (TaskState::Asleep(_), _) => WaitEnd::Asleep,
            (TaskState::Dead, _) => WaitEnd::Died,
            _ => WaitEnd::Unknown,
        };
        (end, None)
    }

    /// The way in which the task left that a switch took from its CPU.
    fn left(&self, event: &SchedEvent) -> Left {
        let EventKind::Switch { prev, state, .. } = event.kind else { return Left::Slept };
        let stopped = self.stopped.of(event.cpu);
        match state.class {
            _ if prev.pid.is_idle() => Left::Idle,
            StateClass::Runnable | StateClass::Preempted => Left::Preempted,
            StateClass::Dead => Left::Exited,
            StateClass::Asleep if stopped.is_some() && is_stopper(prev.comm, event.cpu) => Left::Moved,
            StateClass::Asleep => Left::Slept,
        }
    }

    /// An idle CPU runs another task than those that had been placed on it and still wait.
    fn overtake(&mut self, cpu: Cpu, now: Ts, state: &SchedState) {
        let last = self.cpu(cpu).overtaken.replace(now);
        // Waits begin in the order of the queue. Those that began before the last time were overtaken then: a long queue is not walked through
        // at each switch.
        for task in state.waiting_latest_first(cpu) {
            #[cfg(test)]
            wait::tests::WALKED.with(|walked| walked.set(walked.get() + 1));
            let start = self.tasks.get(task.id()).and_then(|track| track.wait.as_ref()).map(|wait| wait.start);
            if start.is_some() && start < last {
                break;
            }
            self.overtake_task(task.id());
        }
    }

    fn overtake_task(&mut self, task: TaskId) {
        let Some(wait) = self.tasks.get_mut(task).and_then(|track| track.wait.as_mut()) else { return };
        if wait.is_earlier {
            self.leave(WhyStep::Overtaken(task));
        } else if wait.on_idle && matches!(wait.origin.0, WaitOrigin::Woken(..) | WaitOrigin::Forked) {
            wait.origin = (WaitOrigin::Overtaken, None);
        }
    }

    fn stretch_begins(&mut self, cpu: Cpu, event: &SchedEvent, state: &SchedState) {
        let switched = matches!(event.kind, EventKind::Switch { .. }) && event.cpu == cpu;
        let origin = match (switched, self.left(event)) {
            (true, _) if state.queue_length(cpu) > 0 => (IdleOrigin::HeldBack, None),
            (true, Left::Preempted) if state.throttled(cpu).next().is_some() => (IdleOrigin::Throttled, None),
            (true, Left::Slept) => (IdleOrigin::Slept, None),
            (true, Left::Exited) => (IdleOrigin::Exited, None),
            (true, Left::Moved) => match self.stopped.of(cpu) {
                Some((key, None)) => (IdleOrigin::Moved(Cause::Unknown), Some(key)),
                Some((_, Some(cause))) => (IdleOrigin::Moved(cause), None),
                None => (IdleOrigin::Unknown, None),
            },
            _ => (IdleOrigin::Unknown, None),
        };
        let is_idle = self.options.load(cpu, state) == Load::Idle;
        let mut missed = None;
        if switched && is_idle {
            self.missed.entries += 1;
            let nearest = self.meter.nearest_waiter(cpu);
            missed = Some(nearest).filter(|nearest| *nearest != Nearest::Nowhere);
        }
        let newidle = if switched { self.newidle(cpu) } else { None };
        let gate = if missed.is_some() { self.gate(cpu, event.ts) } else { None };
        let reading = self.meter.idle_reading(cpu, event.ts);
        let outcome = newidle.map(|newidle| newidle.outcome);
        self.step(event.cpu, event.ts, cpu, Change::Idles(origin.0, origin.1, missed, (outcome, gate)));
        let (start, since, noted) = (event.ts, event.ts, reading);
        let (before, is_earlier) = (0, false);
        self.cpu(cpu).stretch =
            Some(Stretch { start, since, reading, noted, before, origin, missed, newidle, gate, is_earlier });
    }

    fn stretch_ends(&mut self, cpu: Cpu, end: (IdleEnd, Option<MoveKey>), now: Ts) {
        if let Some((stretch, violated)) = self.close_stretch(cpu, now) {
            self.count_stretch(cpu, (&stretch, violated), end, now);
        }
    }

    /// Ends the idle stretch of a CPU; returns it with its time in violation.
    fn close_stretch(&mut self, cpu: Cpu, now: Ts) -> Option<(Stretch, u64)> {
        let stretch = self.cpu(cpu).stretch.take()?;
        let reading = self.meter.idle_reading(cpu, now);
        if let Some(over_time) = &mut self.over_time {
            over_time.note_stretch(cpu, reading.saturating_sub(stretch.noted));
        }
        Some((stretch, stretch.violated(reading)))
    }

    /// Counts an idle stretch with its time in violation.
    fn count_stretch(
        &mut self,
        cpu: Cpu,
        (stretch, violated): (&Stretch, u64),
        end: (IdleEnd, Option<MoveKey>),
        now: Ts,
    ) {
        if let Some(over_time) = &mut self.over_time {
            over_time.end_stretch(cpu, stretch.origin);
        }
        if let Some(nearest) = stretch.missed {
            let ran = !matches!(end.0, IdleEnd::WindowEnd | IdleEnd::Offline | IdleEnd::Unknown);
            self.missed.take(nearest, (stretch.newidle, stretch.gate), now.since(stretch.start), violated, ran);
        }
        let (pid, command) = (Pid::IDLE, Comm::EMPTY);
        let (start, missed) = (stretch.start, stretch.missed);
        let case = Case { violated, start, end: now, cpu, pid, command, counted: true, missed };
        self.stretches.take(CategorizedCase { origin: stretch.origin, end, case });
    }

    /// The cause of a migration is settled.
    fn settle(&mut self, m: &Migration, task: Option<TaskId>) {
        let key = (m.pid, m.ts, m.dest);
        if self.log.as_mut().is_some_and(|log| log.settle(m, task)) {
            self.waits.leave(Some(key));
            self.stretches.leave(Some(key));
        }
        self.waits.settle(key, m.cause);
        self.stretches.settle(key, m.cause);
        if let Some(over_time) = &mut self.over_time {
            over_time.settle(key, m.cause);
        }
        if let Some(chronicle) = &mut self.chronicle {
            chronicle.settle(key, m.cause);
        }
        if let Some(task) = task
            && let Some(wait) = self.tasks.get_mut(task).and_then(|track| track.wait.as_mut())
        {
            for origin in [&mut wait.origin, &mut wait.came] {
                if origin.1 == Some(key) {
                    *origin = (WaitOrigin::Moved(m.cause), None);
                }
            }
        }
        let cpu = self.cpu(m.orig);
        if let Some(stretch) = cpu.stretch.as_mut().filter(|stretch| stretch.origin.1 == Some(key)) {
            stretch.origin = (IdleOrigin::Moved(m.cause), None);
        }
        self.stopped.settle(m);
    }
}

impl Analysis for Why<'_> {
    type Output = WhyReport;
    /// The stopper can have moved a task, and the balancer have searched, before the window.
    const LOOKS_BACK: bool = true;
    const MIGRATIONS: bool = true;

    fn recall(&mut self, past: &Past, _: &SchedState) {
        self.stopped.recall(&PastMoves::of(past).stopped);
        if let Some(balancer) = &mut self.balancer {
            balancer.recall(past);
        }
    }

    fn early(&mut self, event: &SchedEvent, state: &SchedState) {
        self.stopped.event(event, state);
        if let Some(balancer) = &mut self.balancer {
            balancer.take(event);
        }
        if let EventKind::Switch { .. } = event.kind {
            self.newidle(event.cpu);
        }
    }

    fn migrated(&mut self, migration: &Migration, _: Settled, state: &SchedState) {
        // One before the window can be why a CPU idles in it.
        self.settle(migration, state.task_of(migration.pid).map(Task::id));
    }

    fn begin(&mut self, start: Ts, state: &SchedState) {
        self.start = start;
        self.meter.begin(start);
        self.column_end = self.over_time.as_ref().map_or(Ts(i64::MAX), |over_time| over_time.column_end());
        let is_assumed = |cpu: &Cpu| self.options.assume_idle.contains(cpu);
        for cpu in state.unobserved_queues().filter(|cpu| !is_assumed(cpu)).collect::<Vec<_>>() {
            for task in state.waiting(cpu) {
                self.wait_begins(task, cpu, (WaitOrigin::AtStart, None), start, state);
                self.recall_wait(task, cpu, state);
            }
        }
        let cpus: Vec<Cpu> = state.observed().chain(self.options.assume_idle.iter().copied()).collect();
        for cpu in cpus {
            for task in state.waiting(cpu) {
                self.wait_begins(task, cpu, (WaitOrigin::AtStart, None), start, state);
                self.recall_wait(task, cpu, state);
            }
            self.settle_cpu(cpu, start, state);
            let idles = self.options.load(cpu, state).idles();
            if idles {
                let since = state.current_since(cpu).min(start);
                self.cpu(cpu).stretch = Some(Stretch::at_start(start, since));
            }
        }
        self.meter.update(start);
        if self.meter.is_violated()
            && let Some(mut chronicle) = self.chronicle.take()
        {
            chronicle.begin(start, self.present(state));
            self.chronicle = Some(chronicle);
        }
    }

    #[inline(always)]
    fn before(&mut self, event: &SchedEvent, _: &SchedState) {
        if event.ts >= self.column_end {
            self.end_columns(event.ts);
        }
        if let Some(chronicle) = &mut self.chronicle {
            chronicle.before(event.ts);
        }
        if self.balancer.is_some() {
            self.balance(event);
        }
    }

    #[inline(always)]
    fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        if !state.spans().is_empty() || !state.cpu_spans().is_empty() {
            let was = self.meter.is_violated();
            self.follow(event, state);
            self.list();
            self.chronicle_after(event.ts, was, state);
        }
        match event.kind {
            // The records of a new-idle balance belong to the switch that follows them, and to no later one.
            EventKind::Switch { .. } => drop(self.newidle(event.cpu)),
            EventKind::Probe { probe: Probe::Allows(pid, mask), .. } => self.renew(event, pid, mask, state),
            _ => {}
        }
        self.stopped.event(event, state);
    }

    fn finish(mut self, end: Ts, state: &SchedState) -> WhyReport {
        if end >= self.column_end {
            self.end_columns(end);
        }
        let open: Vec<TaskId> = self.tasks.iter().filter(|(_, t)| t.wait.is_some()).map(|(id, _)| id).collect();
        for id in open {
            if let Some(wait) = self.tasks.get_mut(id).and_then(|track| track.wait.take()) {
                let task = state.task(id).map_or((Pid::IDLE, Comm::EMPTY), |task| (task.pid, task.comm));
                self.close_wait(id, wait, (WaitEnd::WindowEnd, None), task, end);
            }
        }
        for cpu in (0..self.cpus.len() as u32).map(Cpu) {
            self.stretch_ends(cpu, (IdleEnd::WindowEnd, None), end);
        }
        self.waits.finish();
        self.stretches.finish();
        self.list();
        report::build(self, end, state)
    }
}

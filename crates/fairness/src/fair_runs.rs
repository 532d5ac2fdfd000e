//! The runs of fair tasks in the place of waiting real-time tasks (`docs/definitions.md`, section 25).
//!
//! Whether one goes on follows from the state alone, so that windows and pieces of a pass agree.

use sched::nice::{FairBefore, SchedClass};
use sched::state::Task;
use sched::{Cpu, Dur, EventKind, SchedEvent, SchedState, Span, TaskRef, TaskState, Ts};
use serde::Serialize;

/// The number of waiting tasks up to which a run queue is searched for real-time tasks: each event of a long queue would take as long as
/// the queue is.
const LONGEST_QUEUE: u32 = 4096;

/// The runs of fair tasks on a CPU in the place of real-time tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FairRunsOfCpu {
    /// The number of the CPU.
    pub cpu: Cpu,
    /// The number of runs that ended in the window.
    pub runs: u64,
    /// The time of the runs within the window, in nanoseconds.
    pub time_ns: Dur,
}

/// The runs of fair tasks in the place of real-time tasks that waited on the same CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FairRunsReport {
    /// The reason, by the release of the kernel.
    pub reason: FairBefore,
    /// The number of runs that ended in the window.
    pub runs: u64,
    /// The time of the runs within the window, in nanoseconds.
    pub time_ns: Dur,
    /// The CPUs with such runs, in the order of their numbers.
    pub cpus: Vec<FairRunsOfCpu>,
    /// Whether runs may be missing: more than 4,096 tasks waited on a CPU while real-time tasks waited, too many to look for these.
    pub is_partial: bool,
}

/// The runs on a CPU.
#[derive(Clone, Copy, Debug, Default)]
struct CpuRuns {
    /// Whether a real-time task waits there, as far as the queue is searched.
    has_real_time: bool,
    /// Whether the queue is too long to be searched.
    is_long: bool,
    /// The run that goes on: the instant up to which its time is counted, and that of the switch to it.
    open: Option<(Ts, Ts)>,
    runs: u64,
    time_ns: u64,
}

/// The follower of all CPUs.
#[derive(Clone, Debug, Default)]
pub(crate) struct FairRuns {
    cpus: Vec<CpuRuns>,
    /// The start of the window, or of the piece of a pass.
    start: Ts,
    /// Whether a real-time task waits on any CPU, or may do so in a long queue.
    is_needed: bool,
    /// Whether a real-time task waited in a queue that was too long to be searched.
    is_partial: bool,
}

/// Whether the priority is one of the real-time class.
fn is_real_time(prio: i32) -> bool {
    SchedClass::of(prio) == SchedClass::RealTime
}

impl CpuRuns {
    /// Whether each turn of a task on the CPU matters.
    fn is_needed(&self) -> bool {
        self.has_real_time || self.is_long
    }
}

/// The instant of the switch to the fair task that runs on a CPU in the place of a real-time task; nothing where none does.
fn run_since(cpu: Cpu, state: &SchedState) -> Option<Ts> {
    let running = state.running(cpu).filter(|task| task.begun)?;
    let is_fair = running.known_prio().is_some_and(|prio| SchedClass::of(prio) == SchedClass::Fair);
    // One that came later is about to preempt it.
    let waits = |task: &Task| is_real_time(task.prio) && task.begun && task.since <= running.since;
    (is_fair && state.waiting(cpu).any(waits)).then_some(running.since)
}

impl FairRuns {
    /// Begins with a state as it is at the start of the window, or of a piece of a pass.
    pub(crate) fn begin(&mut self, start: Ts, state: &SchedState) {
        self.start = start;
        for cpu in state.observed() {
            // Here a long queue is searched as well: what began before the window, or the piece, is not seen again.
            let has_real_time = state.waiting(cpu).any(|task| is_real_time(task.prio));
            self.settle(cpu, has_real_time, start, state);
        }
    }

    /// A task that goes from one state to another: a real-time task can have joined a queue, or left it, and a CPU on which one waits can have
    /// another running task.
    #[inline(always)]
    pub(crate) fn turn(&mut self, task: &Task, span: &Span, state: &SchedState) {
        if self.is_needed || is_real_time(task.prio) {
            self.settle_turn(is_real_time(task.prio), span, state);
        }
    }

    #[cold]
    #[inline(never)]
    fn settle_turn(&mut self, is_real_time: bool, span: &Span, state: &SchedState) {
        for of in [span.state, span.next] {
            if let TaskState::Waiting(cpu) | TaskState::Running(cpu) = of {
                // A span that a loss cut ends before the record of the loss.
                self.settle(cpu, is_real_time, span.end, state);
            }
        }
    }

    /// Takes an event, behind the turns of its tasks: it can show that a task has changed its class in a queue, or on its CPU.
    #[inline(always)]
    pub(crate) fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        let (EventKind::Waking { task, .. } | EventKind::Wakeup { task, .. } | EventKind::Migrate { task, .. }) =
            event.kind
        else {
            return;
        };
        if self.is_needed || is_real_time(task.prio) {
            self.settle_task(&task, event.ts, state);
        }
    }

    #[cold]
    #[inline(never)]
    fn settle_task(&mut self, task: &TaskRef, now: Ts, state: &SchedState) {
        let of = state.task_of(task.pid).map(|task| task.state);
        if let Some(TaskState::Waiting(cpu) | TaskState::Running(cpu)) = of {
            self.settle(cpu, is_real_time(task.prio), now, state);
        }
    }

    /// Compares a CPU with its state. `is_real_time`: whether a real-time task waits there, or the task that has come to another state is one;
    /// a long queue is not searched for it.
    fn settle(&mut self, cpu: Cpu, is_real_time: bool, now: Ts, state: &SchedState) {
        let is_long = state.queue_length(cpu) > LONGEST_QUEUE;
        let has_real_time = !is_long && state.waiting(cpu).any(|task| self::is_real_time(task.prio));
        let since = if has_real_time { run_since(cpu, state) } else { None };
        if cpu.index() >= self.cpus.len() {
            if !has_real_time && !is_long {
                return;
            }
            self.cpus.resize(cpu.index() + 1, CpuRuns::default());
        }
        let of = &mut self.cpus[cpu.index()];
        self.is_partial |= is_long && (of.has_real_time || is_real_time);
        let was_needed = of.is_needed();
        (of.has_real_time, of.is_long) = (has_real_time, is_long);
        if let Some((from, switched)) = of.open
            && since != Some(switched)
        {
            of.time_ns += now.since(from).0;
            of.runs += 1;
            of.open = None;
        }
        if let (None, Some(switched)) = (of.open, since) {
            of.open = Some((now, switched));
        }
        self.is_needed |= of.is_needed();
        if was_needed && !of.is_needed() {
            self.is_needed = self.cpus.iter().any(CpuRuns::is_needed);
        }
    }

    /// Adds the runs of a later piece of a pass.
    pub(crate) fn join(&mut self, later: &FairRuns) {
        if self.cpus.len() < later.cpus.len() {
            self.cpus.resize(later.cpus.len(), CpuRuns::default());
        }
        let none = CpuRuns::default();
        for (place, of) in self.cpus.iter_mut().enumerate() {
            let next = later.cpus.get(place).unwrap_or(&none);
            of.time_ns += of.open.map_or(0, |(from, _)| later.start.since(from).0) + next.time_ns;
            of.runs += next.runs;
            (of.open, of.has_real_time, of.is_long) = (next.open, next.has_real_time, next.is_long);
        }
        self.is_needed = later.is_needed;
        self.is_partial |= later.is_partial;
    }

    /// The report at the end of the window; nothing where no such run was seen, and none can be missing.
    pub(crate) fn report(&self, end: Ts, reason: FairBefore) -> Option<FairRunsReport> {
        let row = |(cpu, of): (Cpu, &CpuRuns)| {
            let time_ns = Dur(of.time_ns + of.open.map_or(0, |(from, _)| end.since(from).0));
            (of.runs > 0 || time_ns.0 > 0).then_some(FairRunsOfCpu { cpu, runs: of.runs, time_ns })
        };
        let cpus: Vec<FairRunsOfCpu> = (0..).map(Cpu).zip(&self.cpus).filter_map(row).collect();
        let runs = cpus.iter().map(|row| row.runs).sum();
        let time_ns = Dur(cpus.iter().map(|row| row.time_ns.0).sum());
        let is_partial = self.is_partial;
        (is_partial || !cpus.is_empty()).then_some(FairRunsReport { reason, runs, time_ns, cpus, is_partial })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fairness, FairnessReport, Options};
    use sched::{Comm, Pass, Pid, PrevState, Window};

    /// Tasks 10 and 11 are fair, 20 is a real-time task, and 30 one of the deadline class.
    fn task(pid: i32) -> TaskRef {
        let prio = match pid {
            20..30 => 49,
            30.. => -1,
            _ => 120,
        };
        TaskRef { pid: Pid(pid), prio, comm: Comm::new(b"task") }
    }

    fn at(ts: i64, pid: i32, kind: EventKind) -> SchedEvent {
        SchedEvent { ts: Ts(ts), cpu: Cpu(0), pid: Pid(pid), flags: 0, kind }
    }

    fn switch(ts: i64, prev: i32, is_asleep: bool, next: i32) -> SchedEvent {
        let state = if is_asleep { PrevState::asleep(1) } else { PrevState::RUNNABLE };
        at(ts, prev, EventKind::Switch { prev: task(prev), state, next: task(next) })
    }

    fn wakeup(ts: i64, by: i32, pid: i32) -> SchedEvent {
        at(ts, by, EventKind::Wakeup { task: task(pid), target: Cpu(0) })
    }

    /// Task 20 preempts 10 at 110, is held back for 10 and 11 from 200 to 250, runs on, and waits behind the deadline task from 300 to 400. At 500
    /// it is held back until it is moved away at 540.
    fn events() -> Vec<SchedEvent> {
        let moved = EventKind::Migrate { task: task(20), orig: Cpu(0), dest: Cpu(1) };
        vec![
            switch(0, 0, false, 10),
            wakeup(50, 10, 11),
            wakeup(100, 10, 20),
            switch(110, 10, false, 20),
            switch(200, 20, false, 10),
            switch(230, 10, false, 11),
            switch(250, 11, false, 20),
            wakeup(290, 20, 30),
            switch(300, 20, false, 30),
            switch(400, 30, true, 20),
            switch(500, 20, false, 10),
            at(540, 10, moved),
            switch(600, 10, true, 11),
        ]
    }

    fn report(window: Window, release: Option<(u32, u32)>) -> FairnessReport {
        let (from, to) = window.within(Ts(0), Ts(600));
        let options = Options { fair_before: FairBefore::of(release), ..Options::new(from, to) };
        let events = events();
        let pass = Pass::over(&events[..]).window(window).run(|| Fairness::new(&options));
        pass.unwrap_or_else(|never| match never {}).output
    }

    #[test]
    fn the_release_names_the_runs_of_fair_tasks_before_real_time_tasks() {
        for (release, reason) in [
            (Some((6, 1)), FairBefore::RealTimeThrottling),
            (Some((6, 12)), FairBefore::FairServer),
            (Some((7, 2)), FairBefore::FairServer),
            (None, FairBefore::Unknown),
        ] {
            // From 200 to 230, to 250, and from 500 to 540.
            let runs = report(Window::default(), release).fair_before_real_time.expect("runs");
            assert_eq!((runs.reason, runs.runs, runs.time_ns), (reason, 3, Dur(90)));
            assert_eq!(runs.cpus, [FairRunsOfCpu { cpu: Cpu(0), runs: 3, time_ns: Dur(90) }]);
        }
    }

    /// The fair tasks from 1,000 on come at 1 and wait beside 10 and 20 on CPU 0; 20 is held back for 10 from 4 to 9, and from 15 to 40. From 20 on eight fair
    /// ones leave.
    fn crowd(waiters: i32) -> Vec<SchedEvent> {
        let fair = |nth| TaskRef { pid: Pid(1000 + nth), prio: 120, comm: Comm::new(b"task") };
        let mut events = vec![switch(0, 0, false, 10)];
        events.extend((0..waiters).map(|nth| at(1, 10, EventKind::Wakeup { task: fair(nth), target: Cpu(0) })));
        events.extend([
            wakeup(2, 10, 20),
            switch(3, 10, false, 20),
            switch(4, 20, false, 10),
            switch(9, 10, false, 20),
        ]);
        events.push(switch(15, 20, false, 10));
        let moved = |nth| EventKind::Migrate { task: fair(nth), orig: Cpu(0), dest: Cpu(1) };
        events.extend((0..waiters.min(8)).map(|nth| at(20 + i64::from(nth), 10, moved(nth))));
        events.extend([switch(40, 10, false, 20), at(50, 20, EventKind::Other { id: 1 })]);
        events
    }

    #[test]
    fn long_queues_are_not_searched() {
        let most = LONGEST_QUEUE as i32;
        // The last one is as long as can be searched while 20 waits, and the first that is not. From 15 to 40 the queue becomes shorter.
        for (waiters, runs, time_ns, is_partial) in [(most - 1, 2, 30, false), (most, 1, 20, true)] {
            let events = crowd(waiters);
            let options = Options::new(Ts(0), Ts(50));
            let pass = Pass::over(&events[..]).run(|| Fairness::new(&options));
            let report = pass.unwrap_or_else(|never| match never {}).output;
            let found = report.fair_before_real_time.expect("runs");
            assert_eq!((found.runs, found.time_ns, found.is_partial), (runs, Dur(time_ns), is_partial), "{waiters}");
        }
        // Without a real-time task nothing is missing.
        let events: Vec<_> = crowd(most + 9).into_iter().take(most as usize + 5).collect();
        let options = Options::new(Ts(0), Ts(1));
        let pass = Pass::over(&events[..]).run(|| Fairness::new(&options));
        assert_eq!(pass.unwrap_or_else(|never| match never {}).output.fair_before_real_time, None);
    }

    #[test]
    fn long_queues_are_the_same_in_pieces() {
        let options = Options::new(Ts(0), Ts(50));
        for waiters in [-1, 0, 1, 4, 9] {
            let mut events = crowd(LONGEST_QUEUE as i32 + waiters);
            if waiters == 9 {
                // No real-time task comes: a piece that begins with a long queue misses nothing.
                events.truncate(LONGEST_QUEUE as usize + 8);
            }
            let show = |report: &FairnessReport| format!("{:?}", report.fair_before_real_time);
            let lengths = [1_000, 4_100, 4_103, 4_105, 4_110];
            testkit::in_pieces(&mut events.as_slice(), Window::default(), &lengths, || Fairness::new(&options), show);
        }
    }

    #[test]
    fn adjacent_windows_add_up() {
        for edge in 1..600 {
            let parts = [Window { from: None, to: Some(Ts(edge)) }, Window { from: Some(Ts(edge)), to: None }];
            let parts = parts.map(|window| report(window, None).fair_before_real_time);
            let sum = parts.iter().flatten().fold((0, 0), |sum, part| (sum.0 + part.runs, sum.1 + part.time_ns.0));
            assert_eq!(sum, (3, 90), "{edge}");
        }
    }
}

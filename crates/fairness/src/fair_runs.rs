//! The runs of fair tasks in the place of waiting real-time tasks (`docs/questions/fairness.md#fair-in-place`).
//!
//! Whether one goes on follows from the state alone, so that windows and pieces of a pass agree.

use sched::nice::{FairBefore, SchedClass};
use sched::state::Task;
use sched::{Cpu, Dur, EventKind, PerTask, SchedEvent, SchedState, Span, TaskId, TaskRef, TaskState, Ts};
use serde::Serialize;
use std::collections::BTreeSet;

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
}

/// The place of a waiting real-time task among those of its CPU: whether the beginning of its wait is not known, and that beginning.
type WaitKey = (bool, Ts);

/// The runs on a CPU.
#[derive(Clone, Debug, Default)]
struct CpuRuns {
    /// The real-time tasks that wait there, the one that has waited longest first. The queue itself is not searched: each event of a long one
    /// would take as long as the queue is.
    waiting: BTreeSet<(WaitKey, TaskId)>,
    /// The run that goes on: the instant up to which its time is counted, and that of the switch to it.
    open: Option<(Ts, Ts)>,
    runs: u64,
    time_ns: u64,
}

/// The follower of all CPUs.
#[derive(Clone, Debug, Default)]
pub(crate) struct FairRuns {
    cpus: Vec<CpuRuns>,
    /// The CPU and the place of each waiting real-time task.
    places: PerTask<(Cpu, WaitKey)>,
    /// The number of waiting real-time tasks on all CPUs. While there are any, each turn of a task matters.
    waiting: usize,
    /// The start of the window, or of the piece of a pass.
    start: Ts,
}

/// Whether the priority is one of the real-time class.
fn is_real_time(prio: i32) -> bool {
    SchedClass::of(prio) == SchedClass::RealTime
}

/// The CPU on which a task waits as a real-time task, and its place there.
fn place(task: &Task) -> Option<(Cpu, WaitKey)> {
    match task.state {
        TaskState::Waiting(cpu) if is_real_time(task.prio) => Some((cpu, (!task.begun, task.since))),
        _ => None,
    }
}

impl FairRuns {
    /// Begins with a state as it is at the start of the window, or of a piece of a pass.
    pub(crate) fn begin(&mut self, start: Ts, state: &SchedState) {
        self.start = start;
        for cpu in state.observed() {
            state.waiting(cpu).for_each(|task| self.follow(task));
            self.settle(cpu, start, state);
        }
    }

    /// A task that goes from one state to another: a real-time task can have joined a queue, or left it, and a CPU on which one waits can have
    /// another running task.
    #[inline(always)]
    pub(crate) fn turn(&mut self, task: &Task, span: &Span, state: &SchedState) {
        if self.waiting > 0 || is_real_time(task.prio) {
            self.settle_turn(task, span, state);
        }
    }

    #[cold]
    #[inline(never)]
    fn settle_turn(&mut self, task: &Task, span: &Span, state: &SchedState) {
        self.follow(task);
        for of in [span.state, span.next] {
            if let TaskState::Waiting(cpu) | TaskState::Running(cpu) = of {
                // A span that a loss cut ends before the record of the loss.
                self.settle(cpu, span.end, state);
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
        if self.waiting > 0 || is_real_time(task.prio) {
            self.settle_task(&task, event.ts, state);
        }
    }

    #[cold]
    #[inline(never)]
    fn settle_task(&mut self, task: &TaskRef, now: Ts, state: &SchedState) {
        let Some(task) = state.task_of(task.pid) else { return };
        self.follow(task);
        if let TaskState::Waiting(cpu) | TaskState::Running(cpu) = task.state {
            self.settle(cpu, now, state);
        }
    }

    /// Notes the place of a task as it is now.
    fn follow(&mut self, task: &Task) {
        let (before, now) = (self.places.get(task.id()).copied(), place(task));
        if before == now {
            return;
        }
        if let Some((cpu, key)) = before {
            self.places.take(task.id());
            self.waiting -= usize::from(self.cpus[cpu.index()].waiting.remove(&(key, task.id())));
        }
        if let Some((cpu, key)) = now {
            if cpu.index() >= self.cpus.len() {
                self.cpus.resize_with(cpu.index() + 1, CpuRuns::default);
            }
            self.places.insert(task.id(), (cpu, key));
            self.waiting += usize::from(self.cpus[cpu.index()].waiting.insert((key, task.id())));
        }
    }

    /// The place of the real-time task that has waited on a CPU the longest. One that left unseen, such as by the death of its PID, is
    /// removed.
    fn first(&mut self, cpu: Cpu, state: &SchedState) -> Option<WaitKey> {
        let of = self.cpus.get_mut(cpu.index())?;
        while let Some((key, id)) = of.waiting.first() {
            if state.task(*id).and_then(place) == Some((cpu, *key)) {
                return Some(*key);
            }
            of.waiting.pop_first();
            self.waiting -= 1;
        }
        None
    }

    /// The instant of the switch to the fair task that runs on a CPU in the place of a real-time task; nothing where none does.
    fn run_since(&mut self, cpu: Cpu, state: &SchedState) -> Option<Ts> {
        let running = state.running(cpu).filter(|task| task.begun)?;
        let is_fair = running.known_prio().is_some_and(|prio| SchedClass::of(prio) == SchedClass::Fair);
        // One that came later is about to preempt it.
        let waits = is_fair && self.first(cpu, state).is_some_and(|first| first <= (false, running.since));
        waits.then_some(running.since)
    }

    /// Compares a CPU with its state.
    fn settle(&mut self, cpu: Cpu, now: Ts, state: &SchedState) {
        let since = self.run_since(cpu, state);
        let Some(of) = self.cpus.get_mut(cpu.index()) else { return };
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
    }

    /// Adds the runs of a later piece of a pass, whose waiting tasks are those from there on.
    pub(crate) fn join(&mut self, later: FairRuns) {
        let mut cpus = later.cpus;
        cpus.resize_with(self.cpus.len().max(cpus.len()), CpuRuns::default);
        for (of, next) in self.cpus.iter().zip(&mut cpus) {
            next.time_ns += of.time_ns + of.open.map_or(0, |(from, _)| later.start.since(from).0);
            next.runs += of.runs;
        }
        (self.cpus, self.places, self.waiting) = (cpus, later.places, later.waiting);
    }

    /// The report at the end of the window; nothing where no such run was seen.
    pub(crate) fn report(&self, end: Ts, reason: FairBefore) -> Option<FairRunsReport> {
        let row = |(cpu, of): (Cpu, &CpuRuns)| {
            let time_ns = Dur(of.time_ns + of.open.map_or(0, |(from, _)| end.since(from).0));
            (of.runs > 0 || time_ns.0 > 0).then_some(FairRunsOfCpu { cpu, runs: of.runs, time_ns })
        };
        let cpus: Vec<FairRunsOfCpu> = (0..).map(Cpu).zip(&self.cpus).filter_map(row).collect();
        let runs = cpus.iter().map(|row| row.runs).sum();
        let time_ns = Dur(cpus.iter().map(|row| row.time_ns.0).fold(0, u64::saturating_add));
        (!cpus.is_empty()).then_some(FairRunsReport { reason, runs, time_ns, cpus })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fairness, FairnessReport, Options};
    use sched::{Analysis, Comm, Pass, Pid, PrevState, Window};

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
    fn long_queues_are_followed_as_short_ones() {
        // From 4 to 9, and from 15 to 40.
        for waiters in [0, 1, 9, 5_000] {
            let events = crowd(waiters);
            let options = Options::new(Ts(0), Ts(50));
            let pass = Pass::over(&events[..]).run(|| Fairness::new(&options));
            let report = pass.unwrap_or_else(|never| match never {}).output;
            let found = report.fair_before_real_time.expect("runs");
            assert_eq!((found.runs, found.time_ns), (2, Dur(30)), "{waiters}");
        }
    }

    /// Compares the tasks that are followed with those of the queues, at each event.
    struct Compared(FairRuns);

    impl Analysis for Compared {
        type Output = ();

        fn begin(&mut self, start: Ts, state: &SchedState) {
            self.0.begin(start, state);
        }

        fn after(&mut self, event: &SchedEvent, state: &SchedState) {
            state.turns().for_each(|(task, span)| self.0.turn(task, span, state));
            self.0.after(event, state);
            for cpu in (0..64).map(Cpu) {
                let searched = state.waiting(cpu).filter_map(place).map(|(_, key)| key).min();
                assert_eq!(self.0.first(cpu, state), searched, "CPU {} at {event:?}", cpu.0);
            }
        }

        fn finish(self, _: Ts, _: &SchedState) {}
    }

    /// Whatever a damaged trace has, the real-time tasks that wait are those in the queues.
    #[test]
    fn the_tasks_that_are_followed_are_those_in_the_queues() {
        let mut random = testkit::Rng::new(11);
        for _ in 0..200 {
            let bytes: Vec<u8> = (0..2_000).map(|_| random.below(256) as u8).collect();
            let events = testkit::any_events(&bytes);
            let pass = Pass::over(events.as_slice()).run(|| Compared(FairRuns::default()));
            let _ = pass.unwrap_or_else(|never| match never {});
        }
    }

    #[test]
    fn long_queues_are_the_same_in_pieces() {
        let options = Options::new(Ts(0), Ts(50));
        for waiters in [4_095, 4_096, 4_105] {
            let mut events = crowd(waiters);
            if waiters == 4_105 {
                // No real-time task comes.
                events.truncate(4_104);
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

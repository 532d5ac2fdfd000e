//! The invariants of every trace, as an analysis that checks them.

use sched::{
    Analysis, Cpu, CpuCounts, CpuSpan, Current, Dur, EventKind, Load, SchedEvent, SchedState, Span, TaskId, TaskState,
    Ts,
};
use std::collections::BTreeMap;

/// Panics where one of these laws is broken:
///
/// * the spans of a task tile its observed life; each leads to the next, which begins with an event if the one
///   before ended with one;
/// * the spans of a CPU tile the window: busy, idle, unknown and offline time add up to it;
/// * a CPU runs at most one task, the one that has a running span on it;
/// * the incremental counts equal a recount after every event, and every change of a CPU's load is reported;
/// * nothing is claimed inside a loss.
#[derive(Clone, Debug, Default)]
pub struct Laws {
    start: Ts,
    tasks: BTreeMap<TaskId, Span>,
    cpus: BTreeMap<Cpu, Ts>,
    lost: BTreeMap<Cpu, Ts>,
    loads: BTreeMap<Cpu, Load>,
    report: LawReport,
}

/// The sums over a pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LawReport {
    /// The time that CPUs ran a task, by the spans of CPUs.
    pub busy: Dur,
    /// The time that CPUs were idle.
    pub idle: Dur,
    /// The time for which the state of a CPU is unknown.
    pub unknown: Dur,
    /// The time that CPUs were offline.
    pub offline: Dur,
    /// The time that tasks ran, by the spans of tasks.
    pub running: Dur,
    /// The time that tasks waited.
    pub waiting: Dur,
    /// The time that tasks were throttled.
    pub throttled: Dur,
    /// The number of times that a task turned out to have left a state without an event.
    pub unseen: u64,
    /// The length of the window.
    pub window: Dur,
    /// The number of CPUs that were observed.
    pub cpus: usize,
    /// The number of events.
    pub events: u64,
}

impl Analysis for Laws {
    type Output = LawReport;
    const COUNTS: bool = true;

    fn begin(&mut self, start: Ts, state: &SchedState) {
        self.start = start;
        self.loads = state.observed().map(|cpu| (cpu, state.load(cpu))).collect();
    }

    fn span(&mut self, span: &Span, _: &SchedState) {
        assert!(span.start <= span.end, "a span that ends before it starts: {span:?}");
        if let Some(Span { end, next, ended, .. }) = self.tasks.insert(span.task, *span) {
            assert_eq!(end, span.start, "a gap or an overlap in the life of a task: {span:?}");
            assert!(span.begun || !ended, "an event ended the span before, and none began {span:?}");
            // The last CPU of a sleeping task may change without a span of its own.
            let led = next == span.state || matches!((next, span.state), (TaskState::Asleep(_), TaskState::Asleep(_)));
            assert!(led, "the span before led to {next:?}: {span:?}");
        }
        let turned = span.state != TaskState::Unknown && span.next != span.state;
        self.report.unseen += u64::from(turned && !span.ended);
        match span.state {
            TaskState::Running(_) => self.report.running += span.duration(),
            TaskState::Waiting(_) => self.report.waiting += span.duration(),
            TaskState::Dead => panic!("a span of the dead: {span:?}"),
            TaskState::Throttled(_) => self.report.throttled += span.duration(),
            TaskState::Asleep(_) | TaskState::Unknown => {}
        }
    }

    fn cpu_span(&mut self, span: &CpuSpan, state: &SchedState) {
        let end = self.cpus.insert(span.cpu, span.end).unwrap_or(self.start);
        assert_eq!(end, span.start, "a gap or an overlap on a CPU: {span:?}");
        match span.current {
            Current::Unknown => self.report.unknown += span.duration(),
            Current::Offline => self.report.offline += span.duration(),
            Current::Idle => self.report.idle += span.duration(),
            Current::Task(_) => self.report.busy += span.duration(),
        }
        if let (Some(since), true) = (self.lost.get(&span.cpu), span.current != Current::Unknown) {
            assert!(
                span.end <= *since || span.start >= state.now(),
                "something is claimed inside a loss since {since:?}: {span:?}"
            );
        }
    }

    fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        self.report.events += 1;
        self.loads.extend(state.turned().iter().copied());
        match event.kind {
            EventKind::Lost { .. } => {
                self.lost.insert(event.cpu, event.ts);
                assert_eq!(state.current(event.cpu), Current::Unknown);
            }
            _ => drop(self.lost.remove(&event.cpu)),
        }
        // A recount is expensive on many CPUs: there one in 64 events is enough.
        if self.report.events % 64 == 1 || state.observed().count() <= 8 {
            assert_eq!(recount(state), *state.counts());
            let loads: BTreeMap<Cpu, Load> = state.observed().map(|cpu| (cpu, state.load(cpu))).collect();
            assert_eq!(self.loads, loads, "the load of a CPU changed without a report");
        }
    }

    fn finish(mut self, end: Ts, _: &SchedState) -> LawReport {
        self.report.window = end.since(self.start);
        self.report.cpus = self.cpus.len();
        for (cpu, covered) in &self.cpus {
            assert_eq!(*covered, end, "CPU {cpu} is not covered to the end");
        }
        let LawReport { busy, idle, unknown, offline, .. } = self.report;
        let all = busy.0 + idle.0 + unknown.0 + offline.0;
        assert_eq!(all, self.report.window.0 * self.report.cpus as u64, "the time of the CPUs is not the window's");
        assert_eq!(self.report.busy, self.report.running, "tasks ran longer or shorter than CPUs ran tasks");
        self.report
    }
}

fn recount(state: &SchedState) -> CpuCounts {
    let mut counts = CpuCounts::default();
    for cpu in (0..64).map(Cpu) {
        let waiting = state.waiting(cpu).count() as u32;
        assert_eq!(waiting, state.queue_length(cpu));
        assert!(state.waiting(cpu).all(|t| t.state == TaskState::Waiting(cpu)));
        assert!(state.throttled(cpu).all(|t| t.state == TaskState::Throttled(cpu)));
        counts.waiting += waiting;
        match state.load(cpu) {
            Load::Unobserved => {}
            Load::Unknown => counts.unknown += 1,
            Load::Offline => counts.offline += 1,
            Load::Idle => counts.idle += 1,
            Load::SwitchPending => counts.switch_pending += 1,
            Load::Busy => counts.busy += 1,
            Load::Unserved => {
                counts.unserved += 1;
                counts.waiting_overloaded += waiting;
            }
            Load::Overloaded => {
                counts.overloaded += 1;
                counts.waiting_overloaded += waiting;
            }
        }
        if let Current::Task(pid) = state.current(cpu) {
            let task = state.running(cpu).expect("a current task");
            assert_eq!((task.pid, task.state), (pid, TaskState::Running(cpu)));
        }
    }
    assert_eq!(counts, CpuCounts::of(state));
    counts
}

//! The measures of an interval, by the analyses of the other commands.

use super::moment::{LiveQueue, Migrations, Moment, Waited};
use anyhow::Result;
use events::{Balance, BalanceReport};
use latency::{Latency, Measure};
use sched::pass::{Extent, Sink};
use sched::{
    Affinity, Analysis, ChosenCpus, Comm, Cpu, Diagnostics, EventIssue, EventKind, EventSource, Migration, NoteTaker,
    Pass, Past, Pid, SchedEvent, SchedState, Span, Task, TaskState, Topology, Ts,
};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use workcons::WorkConservation;

/// The number of tasks that waited longest in an interval.
const TASKS: usize = 8;

/// The events of an interval.
pub(super) struct LiveEvents {
    pub(super) events: Vec<SchedEvent>,
    /// The state before them.
    pub(super) past: Option<Arc<Past>>,
    /// The end, an instant behind the last event.
    pub(super) end: Ts,
}

impl LiveEvents {
    /// The CPUs that have had events.
    pub(super) fn cpus(&self) -> impl Iterator<Item = Cpu> {
        let past = self.past.iter().flat_map(|past| &past.cpus).filter(|past| past.observed).map(|past| past.cpu);
        past.chain(self.events.iter().map(|event| event.cpu))
    }
}

impl EventSource for &LiveEvents {
    type Error = std::convert::Infallible;

    fn extent(&mut self) -> Result<Extent, Self::Error> {
        let extent = self.events.as_slice().extent()?;
        // They are recorded, whether or not there was one.
        Ok(Extent { wakeups: true, end: self.end, past: self.past.clone(), ..extent })
    }

    fn events(&mut self, sink: &mut Sink<'_>) -> Result<(), Self::Error> {
        self.events.as_slice().events(sink)
    }

    fn births(&mut self) -> bool {
        true
    }
}

/// The facts about the machine in an interval.
pub(super) struct Surroundings<'f> {
    pub(super) topology: &'f Topology,
    pub(super) affinity: &'f Affinity,
    /// The CPUs without any event so far that have idled.
    pub(super) idle: Vec<Cpu>,
    /// The number of CPUs that are online.
    pub(super) online: usize,
    /// The tasks of this program, which are left out of the figures.
    pub(super) own: &'f HashSet<Pid>,
}

/// Measures an interval; the state at its end is that before the next one.
pub(super) fn measured(
    live: &LiveEvents,
    around: &Surroundings<'_>,
    of_source: &Diagnostics,
) -> Result<(Moment, Past)> {
    let (own, topology) = (around.own, around.topology);
    let is_own = |task: &Task, _: &SchedState| own.contains(&task.pid);
    let is_other = |task: &Task, _: &SchedState| !own.contains(&task.pid);
    let moves_other = |migration: &Migration| !own.contains(&migration.pid);
    let from = live.past.as_ref().map_or(live.events.first().map_or(live.end, |event| event.ts), |past| past.from);
    let conserve = workcons::Options {
        zero: from,
        topology: topology.clone(),
        affinity: around.affinity.restricts().then_some(around.affinity),
        assume_idle: around.idle.clone(),
        excluded: Some(&is_own),
        ..Default::default()
    };
    let waits =
        latency::Options { zero: from, topology: topology.clone(), tasks: Some(&is_other), ..Default::default() };
    let all = ChosenCpus::default();
    let analyses = || {
        let balance = Balance::new(topology, &all, from, live.end).only(&moves_other);
        (WorkConservation::new(&conserve), Latency::new(&waits), balance, Glance::without(own))
    };
    let outcome = never(Pass::over(live).run(analyses));
    let next = sched::Window { from: Some(live.end), to: None };
    let notes = never(Pass::over(live).window(next).run(|| (NoteTaker::default(), latency::NoteTaker::new(&waits))));
    let (mut past, noted) = notes.output;
    past.notes.extend(noted);
    let (violation, latency, balance, glance) = outcome.output;
    let (from, to) = (outcome.from, live.end);
    let length = to.since(from).0.max(1) as f64;
    let observed = violation.cpus.observed;
    let cpus = around.online.max(observed);
    // A CPU without events that did not idle is unknown throughout.
    let of_all = |percent: f64| percent * observed as f64 / cpus.max(1) as f64;
    let silent = 100.0 * (cpus - observed) as f64 / cpus.max(1) as f64;
    let moment = Moment {
        schema: super::moment::SCHEMA,
        from_ns: from,
        to_ns: to,
        events: glance.events,
        own_events: glance.own_events,
        own_percent: 100.0 * glance.own_running as f64 / length,
        losses: losses(&outcome.diagnostics) + losses(of_source),
        unknown_percent: of_all(violation.unknown.unknown_percent) + silent,
        violation_percent: violation.movable.percent,
        cpu_time_lost_percent: of_all(violation.movable.cpu_time_lost_percent),
        cpus,
        running: (violation.mean_running - glance.own_running as f64 / length).max(0.0),
        waiting: violation.mean_waiting,
        wakeup: latency.of(Measure::Wakeup),
        preempted: latency.of(Measure::Preempted),
        migrations: by_cause(&balance),
        queues: glance.queues,
        tasks: glance.waited,
    };
    Ok((moment, past))
}

pub(super) fn never<T>(result: Result<T, std::convert::Infallible>) -> T {
    result.unwrap_or_else(|never| match never {})
}

fn losses(diagnostics: &Diagnostics) -> u64 {
    diagnostics.count(EventIssue::EventsLost)
}

fn by_cause(report: &BalanceReport) -> Vec<Migrations> {
    let cell = |cell: &events::Cell| Migrations { cause: cell.cause.name().to_owned(), count: cell.count };
    report.causes.iter().map(cell).collect()
}

/// The queues at the end of a window, and the tasks that waited longest in it.
#[derive(Default)]
struct Glance<'o> {
    /// The tasks of this program.
    own: Option<&'o HashSet<Pid>>,
    events: u64,
    own_events: u64,
    own_running: u64,
    tasks: HashMap<Pid, Waited>,
    queues: Vec<LiveQueue>,
    waited: Vec<Waited>,
}

impl<'o> Glance<'o> {
    fn without(own: &'o HashSet<Pid>) -> Glance<'o> {
        Glance { own: Some(own), ..Glance::default() }
    }

    fn is_own(&self, pid: Pid) -> bool {
        self.own.is_some_and(|own| own.contains(&pid))
    }

    /// Whether an event would not be there without this program.
    fn is_about_own(&self, event: &SchedEvent) -> bool {
        match event.kind {
            EventKind::Switch { prev, next, .. } => self.is_own(prev.pid) || self.is_own(next.pid),
            EventKind::Waking { task, .. } | EventKind::Wakeup { task, .. } | EventKind::WakeupNew { task, .. } => {
                self.is_own(task.pid)
            }
            EventKind::Migrate { task, .. } => self.is_own(task.pid),
            _ => self.is_own(event.pid),
        }
    }
}

impl<'o> Analysis for Glance<'o> {
    type Output = Glance<'o>;

    fn after(&mut self, event: &SchedEvent, _: &SchedState) {
        match self.is_about_own(event) {
            true => self.own_events += 1,
            false => self.events += 1,
        }
    }

    fn span(&mut self, span: &Span, state: &SchedState) {
        let (running, waiting) = match span.state {
            TaskState::Running(_) => (span.duration().0, 0),
            TaskState::Waiting(_) => (0, span.duration().0),
            _ => return,
        };
        if self.is_own(span.pid) {
            self.own_running += running;
            return;
        }
        let nothing = Waited { pid: span.pid, command: Comm::EMPTY, waiting_ns: 0, running_ns: 0 };
        let task = self.tasks.entry(span.pid).or_insert(nothing);
        task.running_ns += running;
        task.waiting_ns += waiting;
        if let Some(known) = state.task(span.task) {
            task.command = known.comm;
        }
    }

    fn finish(mut self, _: Ts, state: &SchedState) -> Glance<'o> {
        let queue = |cpu: Cpu| LiveQueue {
            cpu,
            current: state.current(cpu),
            command: state.running(cpu).map_or(Comm::EMPTY, |task| task.comm),
            waiting: state.waiting(cpu).filter(|task| !self.is_own(task.pid)).map(|task| task.comm).collect(),
        };
        self.queues = state.observed().map(queue).collect();
        self.waited = self.tasks.drain().map(|(_, task)| task).filter(|task| task.waiting_ns > 0).collect();
        self.waited.sort_by_key(|task| (std::cmp::Reverse(task.waiting_ns), task.pid));
        self.waited.truncate(TASKS);
        self
    }
}

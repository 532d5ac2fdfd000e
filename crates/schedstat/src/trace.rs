//! The columns from a trace.

use crate::columns::Columns;
use sched::analysis::Settled;
use sched::{
    Analysis, Cause, ChosenCpus, Comm, Cpu, CpuSpan, Current, EventKind, Joined, Migration, SchedEvent, SchedState,
    TaskState, Ts,
};
use serde::Serialize;

/// The columns from a trace, with the numbers behind them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TraceColumns {
    /// The columns; the elapsed time is the length of the window.
    pub columns: Columns,
    /// The number of CPUs with events.
    pub cpus: usize,
    /// The time that CPUs ran tasks, in nanoseconds.
    pub busy_ns: u64,
    /// The number of switches to a task, on all CPUs.
    pub arrivals: u64,
    /// The share of the CPU time for which the running task is unknown, in percent.
    pub unknown_percent: f64,
    /// The number of migrations by cause, in the order of [`Cause::ALL`].
    pub migrations: [u64; Cause::ALL.len()],
    /// The name of the traced command, if its exec was recorded.
    pub command: Option<Comm>,
}

/// The analysis that gathers the columns.
#[derive(Debug, Default)]
pub struct FromTrace {
    start: Ts,
    switches: u64,
    to_idle: u64,
    wakings: u64,
    busy_ns: u64,
    unknown_ns: u64,
    runs: u64,
    run_ns: u64,
    moves: CountedMigrations,
    command: Option<Comm>,
}

/// The migrations from or to the chosen CPUs.
#[derive(Debug, Default)]
struct CountedMigrations {
    /// The chosen CPUs.
    cpus: ChosenCpus,
    by_cause: [u64; Cause::ALL.len()],
    /// The number of new-idle pulls into the chosen CPUs.
    steals: u64,
}

impl CountedMigrations {
    fn count(&mut self, migration: &Migration) {
        if self.cpus.has(migration.orig) || self.cpus.has(migration.dest) {
            self.by_cause[migration.cause as usize] += 1;
        }
        self.steals += u64::from(migration.cause == Cause::NewIdle && self.cpus.has(migration.dest));
    }
}

impl FromTrace {
    /// Returns an analysis of these CPUs alone: of the events on them, and of migrations from or to them.
    pub fn only(cpus: ChosenCpus) -> FromTrace {
        FromTrace { moves: CountedMigrations { cpus, ..CountedMigrations::default() }, ..FromTrace::default() }
    }
}

impl Analysis for FromTrace {
    type Output = TraceColumns;
    const MIGRATIONS: bool = true;

    fn begin(&mut self, start: Ts, _: &SchedState) {
        self.start = start;
    }

    fn migrated(&mut self, migration: &Migration, settled: Settled, _: &SchedState) {
        if settled.is_inside() {
            self.moves.count(migration);
        }
    }

    fn before(&mut self, event: &SchedEvent, _: &SchedState) {
        match event.kind {
            _ if !self.moves.cpus.has(event.cpu) => {}
            EventKind::Switch { next, .. } => {
                self.switches += 1;
                self.to_idle += u64::from(next.pid.is_idle());
            }
            EventKind::Waking { .. } => self.wakings += 1,
            _ => {}
        }
    }

    fn cpu_span(&mut self, span: &CpuSpan, _: &SchedState) {
        match span.current {
            _ if !self.moves.cpus.has(span.cpu) => {}
            Current::Task(_) => self.busy_ns = self.busy_ns.saturating_add(span.duration().0),
            Current::Unknown => self.unknown_ns = self.unknown_ns.saturating_add(span.duration().0),
            Current::Idle | Current::Offline => {}
        }
    }

    fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        // A run counts where it ends, with the part of it that is before the window.
        for span in state.spans() {
            if let (TaskState::Running(cpu), true, true) = (span.state, span.begun, span.ended)
                && self.moves.cpus.has(cpu)
            {
                self.runs += 1;
                self.run_ns = self.run_ns.saturating_add(span.duration().0);
            }
        }
        if let EventKind::Switch { prev, .. } = event.kind
            && state.root() == Some(prev.pid)
        {
            self.command = Some(prev.comm);
        }
    }

    fn finish(self, end: Ts, state: &SchedState) -> TraceColumns {
        let observed: Vec<Cpu> = state.observed().filter(|cpu| self.moves.cpus.has(*cpu)).collect();
        let (cpus, elapsed) = (observed.len().max(1) as f64, end.since(self.start).0);
        let share = |ns: u64| 100.0 * ns as f64 / (cpus * elapsed.max(1) as f64);
        let columns = Columns {
            time_s: Some(elapsed as f64 / 1e9),
            busy_percent: (elapsed > 0).then(|| share(self.busy_ns)),
            slice_ms: (self.runs > 0).then(|| self.run_ns as f64 / self.runs as f64 / 1e6),
            sched: self.switches as f64 / cpus,
            idle: self.to_idle as f64 / cpus,
            wake: self.wakings as f64 / cpus,
            find_percent: None,
            steal: Some(self.moves.steals as f64 / cpus),
        };
        TraceColumns {
            columns,
            cpus: observed.len(),
            busy_ns: self.busy_ns,
            arrivals: self.switches - self.to_idle,
            unknown_percent: share(self.unknown_ns),
            migrations: self.moves.by_cause,
            command: self.command,
        }
    }
}

impl Joined for FromTrace {
    fn is_divisible(&self) -> bool {
        true
    }

    fn fits(&self, _: &FromTrace) -> bool {
        true
    }

    fn join(&mut self, later: FromTrace) {
        self.switches += later.switches;
        self.to_idle += later.to_idle;
        self.wakings += later.wakings;
        self.busy_ns = self.busy_ns.saturating_add(later.busy_ns);
        self.unknown_ns = self.unknown_ns.saturating_add(later.unknown_ns);
        self.runs += later.runs;
        self.run_ns = self.run_ns.saturating_add(later.run_ns);
        self.moves.steals += later.moves.steals;
        self.moves.by_cause.iter_mut().zip(later.moves.by_cause).for_each(|(sum, more)| *sum += more);
        self.command = later.command.or(self.command);
    }
}

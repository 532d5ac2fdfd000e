//! The figures of a run, of the trace and of each simulated one alike.

use sched::lengths::Summary;
use sched::seeded::SeededMap;
use sched::{Analysis, Comm, CpuSpan, Current, Dur, Lengths, PerTask, SchedState, Span, TaskState, Ts, kthread};
use serde::Serialize;
use why::{Why, WhyReport};
use workcons::{Options, WorkConservation};

/// The waits of a command.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CommandWaits {
    /// The command of the tasks that waited.
    pub command: Comm,
    /// The distribution of the waits.
    pub waits: Summary,
}

/// The figures of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunFigures {
    /// The elapsed time in nanoseconds: the life of the traced command, or the time from the start of the window until the last
    /// task has left its CPU.
    pub elapsed_ns: Dur,
    /// Whether `elapsed_ns` is the traced command's life.
    pub elapsed_is_command: bool,
    /// The length of the run, in nanoseconds.
    pub window_ns: Dur,
    /// The time in violation of work conservation, in nanoseconds.
    pub violation_ns: Dur,
    /// The CPU time lost in violation, in nanoseconds.
    pub cpu_time_lost_ns: Dur,
    /// The time for which CPUs were busy, in percent of the run times the CPUs.
    pub busy_percent: f64,
    /// The number of switches to idle beside a waiting task that the CPU could have taken.
    pub missed_steals: u64,
    /// The share of the violated time, in percent, in which the waiting tasks avoided the CPUs that idled, so that they may be bound to others;
    /// absent unless `workcons` warns of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confined_percent: Option<f64>,
    /// The waits of all tasks in run queues that ended with a run.
    pub waits: Summary,
    /// The waits by command, the one with the most waiting first.
    pub by_command: Vec<CommandWaits>,
}

/// Maximum number of commands whose waits are followed one by one.
const COMMANDS: usize = 4096;

/// The waits in run queues, and the end of the last run.
#[derive(Debug, Default)]
pub struct QueueWaits {
    start: Ts,
    /// The part of each open wait on earlier queues; nothing where its beginning was not seen.
    waits: PerTask<Option<u64>>,
    all: Lengths,
    by_command: SeededMap<Comm, Lengths>,
    ran_until: Ts,
}

impl Analysis for QueueWaits {
    type Output = QueueWaits;

    fn begin(&mut self, start: Ts, _: &SchedState) {
        (self.start, self.ran_until) = (start, start);
    }

    fn span(&mut self, span: &Span, state: &SchedState) {
        let TaskState::Waiting(_) = span.state else { return };
        let before = self.waits.take(span.task).unwrap_or(span.begun.then_some(0));
        let waited = before.map(|before| before.saturating_add(span.duration().0));
        match (span.next, waited) {
            (TaskState::Waiting(_), _) => self.waits.insert(span.task, waited.filter(|_| span.ended)),
            (TaskState::Running(_), Some(ns)) if span.ended => {
                self.all.add(Dur(ns));
                let command = state.task(span.task).map_or(Comm::EMPTY, |task| kthread::command(task.comm));
                if self.by_command.len() < COMMANDS || self.by_command.contains_key(&command) {
                    self.by_command.entry(command).or_default().add(Dur(ns));
                }
            }
            _ => {}
        }
    }

    fn cpu_span(&mut self, span: &CpuSpan, _: &SchedState) {
        if let Current::Task(_) = span.current {
            self.ran_until = self.ran_until.max(span.end);
        }
    }

    fn finish(self, _: Ts, _: &SchedState) -> QueueWaits {
        self
    }
}

/// The reports of which the figures are made.
pub type Reports = (WhyReport, workcons::Report, QueueWaits);

/// Returns the analysis of a run.
pub fn measures<'o>(options: &'o Options<'o>) -> impl Analysis<Output = Reports> + 'o {
    (Why::new(options), WorkConservation::new(options), QueueWaits::default())
}

impl RunFigures {
    /// Returns the figures that the reports of one run come to.
    pub fn of((why, work, waits): &Reports) -> RunFigures {
        let cpu_time = work.window_ns.0 as f64 * work.cpus.observed as f64;
        let lost = work.movable.cpu_time_lost_percent / 100.0 * cpu_time;
        let mut by_command: Vec<CommandWaits> = (waits.by_command.iter())
            .map(|(command, lengths)| CommandWaits { command: *command, waits: lengths.summary() })
            .collect();
        by_command.sort_by_key(|row| (std::cmp::Reverse(row.waits.total_ns), row.command));
        let elapsed_is_command = work.elapsed_is_command;
        RunFigures {
            elapsed_ns: if elapsed_is_command { work.elapsed_ns } else { waits.ran_until.since(waits.start) },
            elapsed_is_command,
            window_ns: work.window_ns,
            violation_ns: Dur(work.movable.ns),
            cpu_time_lost_ns: Dur(lost.round() as u64),
            busy_percent: work.busy_percent,
            confined_percent: work.confined_percent,
            missed_steals: why.missed.as_ref().map_or(0, |missed| missed.number),
            waits: waits.all.summary(),
            by_command,
        }
    }
}

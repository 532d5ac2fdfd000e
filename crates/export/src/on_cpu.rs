//! The runs of tasks: the stretches of time in which a task was on a CPU.

use crate::rows::Tables;
use sched::{Analysis, ChosenCpus, EventKind, PrevState, SchedEvent, SchedState, Span, TaskState, Ts};

/// Lists the runs of tasks on the chosen CPUs. Its output is their number.
pub struct TaskRuns<'o> {
    tables: &'o Tables<'o>,
    cpus: ChosenCpus,
    /// The state in which the event that is applied switches a task out.
    switch: Option<(sched::Pid, PrevState)>,
    number: u64,
}

impl<'o> TaskRuns<'o> {
    /// Passes the runs on these CPUs to `tables`.
    pub fn new(tables: &'o Tables<'o>, cpus: ChosenCpus) -> TaskRuns<'o> {
        TaskRuns { tables, cpus, switch: None, number: 0 }
    }
}

impl Analysis for TaskRuns<'_> {
    type Output = u64;

    fn before(&mut self, event: &SchedEvent, _: &SchedState) {
        self.switch = match event.kind {
            EventKind::Switch { prev, state, .. } => Some((prev.pid, state)),
            _ => None,
        };
    }

    fn span(&mut self, span: &Span, state: &SchedState) {
        let TaskState::Running(cpu) = span.state else { return };
        if !self.cpus.has(cpu) {
            return;
        }
        self.number += 1;
        let left = self.switch.filter(|(pid, _)| span.ended && *pid == span.pid).map(|(_, state)| state);
        self.tables.on_cpu(cpu, span, state.task(span.task), left);
    }

    fn finish(self, _: Ts, _: &SchedState) -> u64 {
        self.number
    }
}

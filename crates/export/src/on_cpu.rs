//! The runs of tasks: the stretches of time in which a task was on a CPU.

use crate::output::Output;
use crate::rows::{OnCpuRow, Tables};
use sched::state::Task;
use sched::{Analysis, ChosenCpus, Comm, EventKind, Joined, PrevState, SchedEvent, SchedState, Span, TaskState, Ts};

/// Lists the runs of tasks on the chosen CPUs. Its output is their number.
pub struct TaskRuns<'o> {
    tables: &'o Tables<'o>,
    cpus: ChosenCpus,
    /// The state in which the event that is applied switches a task out.
    switch: Option<(sched::Pid, PrevState)>,
    number: u64,
    /// The runs that a later piece of a pass has seen end, which are listed behind those of the pieces before.
    piece: Option<Vec<OnCpuRow>>,
}

impl<'o> TaskRuns<'o> {
    /// Passes the runs on these CPUs to `tables`.
    pub fn new(tables: &'o Tables<'o>, cpus: ChosenCpus) -> TaskRuns<'o> {
        TaskRuns { tables, cpus, switch: None, number: 0, piece: None }
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
        let task = state.task(span.task);
        let (command, prio) = (task.map_or(Comm::EMPTY, |task| task.comm), task.and_then(Task::known_prio));
        let row = OnCpuRow { cpu, span: *span, command, prio, left };
        match &mut self.piece {
            Some(piece) => piece.push(row),
            None => self.tables.on_cpu(&row),
        }
    }

    fn finish(self, _: Ts, _: &SchedState) -> u64 {
        self.number
    }
}

impl Joined for TaskRuns<'_> {
    fn is_divisible(&self) -> bool {
        true
    }

    fn resume(&mut self, _: Ts, _: Ts, _: &SchedState) {
        self.piece = Some(Vec::new());
    }

    fn fits(&self, _: &Self) -> bool {
        true
    }

    fn join(&mut self, later: Self) {
        later.piece.iter().flatten().for_each(|row| self.tables.on_cpu(row));
        (self.switch, self.number) = (later.switch, self.number + later.number);
    }
}

/// Forgets the rows of an earlier attempt at a pass, where the window begins. In a pass in pieces it stands before all analyses
/// that add rows.
pub struct RestartRows<'o>(&'o Output);

impl<'o> RestartRows<'o> {
    /// Makes the rows of `output` begin anew with each attempt.
    pub fn new(output: &'o Output) -> RestartRows<'o> {
        RestartRows(output)
    }
}

impl Analysis for RestartRows<'_> {
    type Output = ();

    fn begin(&mut self, _: Ts, _: &SchedState) {
        self.0.restart();
    }

    fn finish(self, _: Ts, _: &SchedState) {}
}

impl Joined for RestartRows<'_> {
    fn is_divisible(&self) -> bool {
        true
    }

    fn fits(&self, _: &Self) -> bool {
        true
    }
}

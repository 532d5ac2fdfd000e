//! The waits of tasks, followed from one state to the next.

use crate::Fairness;
use crate::waits::{Waiter, Waits};
use sched::state::Task;
use sched::{Cpu, Dur, HELD_BACK, SchedState, Span, TaskId, TaskState, Ts};
use std::sync::Arc;

impl Fairness<'_> {
    /// Follows the wait of a task that went from one state to another.
    #[inline(always)]
    pub(crate) fn follow_wait(&mut self, task: &Task, span: &Span, ts: Ts, state: &SchedState) {
        let id = task.id();
        match (span.state, span.next) {
            (TaskState::Waiting(_), TaskState::Waiting(cpu)) if span.ended => match &mut self.log {
                Some(log) => log.moves(task, cpu, ts),
                None => self.waits.moves(id, cpu, ts),
            },
            (TaskState::Waiting(from), TaskState::Running(cpu)) if span.ended => {
                if self.options.tasks.is_some_and(|chosen| !chosen(task, state)) {
                    return;
                }
                let length = match &self.log {
                    Some(log) => log.length(id, ts),
                    None => self.waits.open(id).map(|(since, _)| ts.since(since)),
                };
                let waiter = self.waiter(task, from, length, state);
                let length = match &mut self.log {
                    Some(log) => log.ends(task, waiter, from, cpu, ts),
                    None => self.waits.ends(id, waiter, cpu, ts, &self.idle, Some(state)),
                };
                if let Some(length) = length
                    && let Some(member) = self.member_of_chosen(task, ts)
                {
                    self.members[member].1.waits.add(length);
                }
            }
            (_, TaskState::Waiting(cpu)) if task.begun => match &mut self.log {
                Some(log) => log.begins(task, cpu, ts),
                None => self.waits.begins(id, cpu, ts),
            },
            _ => match &mut self.log {
                Some(log) => log.forget(task, ts),
                None => self.waits.forget(id),
            },
        }
    }

    /// A task that has waited on a CPU for so long, or since an earlier piece.
    fn waiter(&self, task: &Task, cpu: Cpu, length: Option<Dur>, state: &SchedState) -> Waiter {
        let is_long = length.is_none_or(|length| length >= HELD_BACK);
        let affinity = self.options.affinity.as_ref().filter(|_| is_long && !task.kin.is_of_kernel(task.comm));
        let allowed = affinity.and_then(|affinity| affinity.set(affinity.of(task, cpu, state)?, state));
        Waiter { pid: task.pid, command: task.comm, allowed: allowed.map(|allowed| Arc::new(allowed.clone())) }
    }

    /// Takes the waits that go on at the end of the window.
    pub(crate) fn close_waits(&mut self, end: Ts, state: &SchedState) {
        self.waits.pass(end, state.counts().idle_cpus() > 0);
        let options = self.options;
        let is_chosen = |task: &Task| options.tasks.is_none_or(|chosen| chosen(task, state));
        let open: Vec<(TaskId, Ts)> = self.waits.still_open().collect();
        for (id, since) in open {
            if let Some(task) = state.task(id).filter(|task| is_chosen(task))
                && let TaskState::Waiting(cpu) = task.state
                && state.is_observed(cpu)
                && let Some(member) = self.member_of_chosen(task, end)
            {
                let sums = &mut self.members[member].1;
                sums.open_wait = sums.open_wait.max(Some(end.since(since)));
            }
        }
        let mut waits = std::mem::replace(&mut self.waits, Waits::new(options.zero, 0));
        waits.close(state, end, &self.idle, |task, cpu, length| {
            is_chosen(task).then(|| self.waiter(task, cpu, Some(length), state))
        });
        self.waits = waits;
    }
}

//! The queued time of tasks by kind, as an analysis of its own and beside another one.

use crate::analysis::chosen::Chosen;
use crate::analysis::joined::Joined;
use crate::analysis::{Analysis, Settled};
use crate::balance::causes::{Causes, Migration};
use crate::event::span::{CpuSpan, Span, TaskState};
use crate::event::task_id::TaskId;
use crate::event::{Cpu, SchedEvent, Ts};
use crate::queued::{QueuedKinds, QueuedReading, QueuedTimes};
use crate::state::affinity::Affinity;
use crate::state::past::Past;
use crate::state::{SchedState, Task};
use crate::tables::chosen_cpus::ChosenCpus;
use crate::tables::per_task::PerTask;
use std::sync::Arc;

/// The part of a wait in a piece of a pass that began before the piece, and ended in it.
#[derive(Clone, Copy, Debug)]
struct FirstWait {
    task: TaskId,
    cpu: Cpu,
    times: QueuedTimes,
    was_held: bool,
}

/// The tasks whose queued time is measured, and the CPUs on which they wait.
#[derive(Clone)]
pub struct QueuedAsk<'o> {
    /// The tasks whose time counts; absent where all do.
    pub tasks: Option<&'o Chosen<'o>>,
    /// The CPUs on which the tasks wait; others are neither idle nor shorter.
    pub cpus: ChosenCpus,
    /// The CPUs that tasks may use, where they are known.
    pub affinity: Option<Arc<Affinity>>,
}

/// Takes each part of a wait of a counted task with its times, when the task leaves the queue: the task, the CPU of the queue and the instant.
pub type TakesQueuedPart<'o> = dyn Fn(&Task, Cpu, Ts, &QueuedTimes) + Sync + 'o;

/// The queued time of tasks within the window, by kind (`docs/read-the-numbers.md#queued-time`).
pub struct QueuedSums<'o> {
    ask: QueuedAsk<'o>,
    each: Option<&'o TakesQueuedPart<'o>>,
    kinds: QueuedKinds,
    begun: PerTask<QueuedReading>,
    sums: QueuedTimes,
    /// The waits that began before this piece, if it is not the first one of a pass.
    first: Option<Vec<FirstWait>>,
}

impl<'o> QueuedSums<'o> {
    /// Measures the queued time of the tasks that are asked for.
    pub fn new(ask: QueuedAsk<'o>) -> QueuedSums<'o> {
        let kinds = QueuedKinds::new(ask.cpus.clone(), ask.affinity.clone());
        QueuedSums { ask, each: None, kinds, begun: PerTask::default(), sums: QueuedTimes::default(), first: None }
    }

    /// Passes each part of a wait to `take`, in a pass that is not made in pieces.
    #[must_use]
    pub fn each(self, take: &'o TakesQueuedPart<'o>) -> QueuedSums<'o> {
        QueuedSums { each: Some(take), ..self }
    }

    fn is_counted(&self, task: &Task, cpu: Cpu, state: &SchedState) -> bool {
        state.is_observed(cpu) && self.ask.cpus.has(cpu) && self.ask.tasks.is_none_or(|chosen| chosen(task, state))
    }

    /// Ends a wait of a counted task.
    fn end(&mut self, task: &Task, cpu: Cpu, now: Ts) {
        let known = self.begun.get(task.id()).copied();
        let begun = known.unwrap_or_else(|| self.kinds.first_reading(task, cpu));
        let end = self.kinds.end_wait(&begun, now);
        // A task is on the CPU on which its wait began, whatever a file has.
        let Some(times) = self.kinds.between(&begun, &end) else { return };
        match (&mut self.first, known) {
            (Some(first), None) => {
                let was_held = self.kinds.was_first_held(&end);
                first.push(FirstWait { task: task.id(), cpu, times, was_held });
            }
            _ => {
                self.sums.add(&times);
                if let Some(take) = self.each {
                    take(task, cpu, now, &times);
                }
            }
        }
    }
}

impl Analysis for QueuedSums<'_> {
    /// Nothing where no event shows when tasks were woken.
    type Output = Option<QueuedTimes>;

    fn begin(&mut self, start: Ts, state: &SchedState) {
        self.kinds.begin(start, state);
    }

    fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        self.kinds.follow(event.ts, state);
        for (task, span) in state.turns() {
            if let TaskState::Waiting(cpu) = span.state
                && self.is_counted(task, cpu, state)
            {
                self.end(task, cpu, event.ts);
            }
            if let TaskState::Waiting(cpu) = span.next {
                let reading = self.kinds.begin_wait(task, cpu, event.ts, state);
                self.begun.insert(task.id(), reading);
            }
        }
    }

    fn finish(mut self, end: Ts, state: &SchedState) -> Option<QueuedTimes> {
        for task in state.living() {
            if let TaskState::Waiting(cpu) = task.state
                && self.is_counted(task, cpu, state)
            {
                self.end(task, cpu, end);
            }
        }
        // Tasks that were woken are in no queue then.
        state.shows_wakeups().then_some(self.sums)
    }
}

impl Joined for QueuedSums<'_> {
    fn is_divisible(&self) -> bool {
        true
    }

    fn resume(&mut self, _: Ts, at: Ts, state: &SchedState) {
        self.kinds.begin(at, state);
        self.first = Some(Vec::new());
    }

    fn fits(&self, later: &Self) -> bool {
        self.kinds.fits(&later.kinds)
    }

    fn join(&mut self, mut later: Self) {
        let at = later.kinds.start();
        for wait in later.first.take().unwrap_or_default() {
            let known = self.begun.get(wait.task).copied();
            let begun = known.unwrap_or_else(|| self.kinds.first_reading_of(wait.task, wait.cpu));
            let mut times = wait.times;
            times.add(&self.kinds.up_to_border(&begun, at, wait.was_held));
            match (&mut self.first, known) {
                (Some(first), None) => first.push(FirstWait { times, ..wait }),
                _ => self.sums.add(&times),
            }
        }
        self.sums.add(&later.sums);
        for (task, reading) in later.begun.iter() {
            self.begun.insert(task, self.kinds.shifted(reading, &later.kinds));
        }
        self.kinds.join(later.kinds);
    }
}

/// A report that has the queued time by kind, where it was asked for.
pub trait TakesQueued {
    /// Takes the queued time of the tasks of the report.
    fn take_queued(&mut self, times: QueuedTimes);
}

/// An analysis with the queued time by kind beside it, which its report takes.
pub struct WithQueued<'o, A>((A, Option<QueuedSums<'o>>));

impl<'o, A> WithQueued<'o, A> {
    /// The analysis, and the queued time where it is asked for.
    pub fn new(analysis: A, ask: Option<&QueuedAsk<'o>>) -> WithQueued<'o, A> {
        WithQueued((analysis, ask.cloned().map(QueuedSums::new)))
    }
}

impl<A: Analysis<Output: TakesQueued>> Analysis for WithQueued<'_, A> {
    type Output = A::Output;
    const COUNTS: bool = A::COUNTS;
    const LOOKS_BACK: bool = A::LOOKS_BACK;
    const MIGRATIONS: bool = A::MIGRATIONS;

    fn counts(&self) -> bool {
        self.0.counts()
    }
    fn looks_back(&self) -> bool {
        self.0.looks_back()
    }
    fn migrates(&self) -> bool {
        self.0.migrates()
    }
    fn recall(&mut self, past: &Past, state: &SchedState) {
        self.0.recall(past, state);
    }
    fn early(&mut self, event: &SchedEvent, state: &SchedState) {
        self.0.early(event, state);
    }
    fn unsettled(&mut self, causes: &Causes) {
        self.0.unsettled(causes);
    }
    fn migrated(&mut self, migration: &Migration, settled: Settled, state: &SchedState) {
        self.0.migrated(migration, settled, state);
    }
    fn begin(&mut self, start: Ts, state: &SchedState) {
        self.0.begin(start, state);
    }
    fn before(&mut self, event: &SchedEvent, state: &SchedState) {
        self.0.before(event, state);
    }
    fn span(&mut self, span: &Span, state: &SchedState) {
        self.0.span(span, state);
    }
    fn cpu_span(&mut self, span: &CpuSpan, state: &SchedState) {
        self.0.cpu_span(span, state);
    }
    fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        self.0.after(event, state);
    }
    fn finish(self, end: Ts, state: &SchedState) -> A::Output {
        let (mut report, queued) = self.0.finish(end, state);
        queued.flatten().into_iter().for_each(|times| report.take_queued(times));
        report
    }
}

impl<A: Joined<Output: TakesQueued>> Joined for WithQueued<'_, A> {
    fn is_divisible(&self) -> bool {
        self.0.is_divisible()
    }
    fn resume(&mut self, start: Ts, at: Ts, state: &SchedState) {
        self.0.resume(start, at, state);
    }
    fn fits(&self, later: &Self) -> bool {
        self.0.fits(&later.0)
    }
    fn join(&mut self, later: Self) {
        self.0.join(later.0);
    }
    fn join_members(&mut self, later: Self) {
        self.0.join_members(later.0);
    }
    fn take_up(&mut self) {
        self.0.take_up();
    }
}

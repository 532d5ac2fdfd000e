//! The pieces of a pass, joined.

use crate::selectable::Selectable;
use crate::{Class, CpuNow, IdleBeside, Utilization};
use sched::{Analysis, Cpu, Joined, SchedState, TaskState, Ts};

/// A step whose effect depends on the pieces before.
#[derive(Clone, Copy, Debug)]
enum IdlingStep {
    /// The numbers of CPUs that idle beside overloaded ones are these from now on.
    Turn(IdleBeside),
    /// A queued task is moved.
    Move { orig: Cpu, dest: Cpu },
    /// A queue has this length now.
    Queue { cpu: Cpu, length: u32 },
}

/// The things that a later piece of a pass cannot decide by itself, with its beginning.
#[derive(Debug, Default)]
pub(crate) struct IdlingLog {
    /// The instant at which the piece begins.
    at: Ts,
    /// The class, what that depends on, and the number of handlers of each CPU shown at the beginning.
    cpus: Vec<(Class, Option<Selectable>, u32)>,
    /// The CPUs, by their places, whose run at the beginning turns out to be of another class, with that.
    changed: Vec<(usize, Class)>,
    steps: Vec<(Ts, IdlingStep)>,
    /// Whether the tasks of a herd may wait on each CPU: its queue was longer than one, or a task was moved there.
    may_wait: Vec<bool>,
    /// The number of these CPUs.
    waiting: usize,
}

impl IdlingLog {
    /// Notes the numbers of CPUs that idle beside overloaded ones from `ts` on.
    pub(crate) fn turn(&mut self, ts: Ts, now: IdleBeside) {
        self.steps.push((ts, IdlingStep::Turn(now)));
    }

    /// Notes that the run at the beginning is of another class on a CPU, by its place.
    pub(crate) fn change(&mut self, row: usize, class: Class) {
        self.changed.push((row, class));
    }

    /// Notes that a queued task is moved.
    pub(crate) fn moved(&mut self, ts: Ts, orig: Cpu, dest: Cpu) {
        self.steps.push((ts, IdlingStep::Move { orig, dest }));
        self.watch(dest, true);
    }

    /// Notes the queues that have changed and on which tasks of a herd may wait.
    pub(crate) fn follow(&mut self, ts: Ts, state: &SchedState) {
        if self.waiting == 0 {
            return;
        }
        for queue in state.spans().iter().flat_map(|span| [span.state, span.next]) {
            let TaskState::Waiting(cpu) = queue else { continue };
            if self.may_wait.get(cpu.index()).copied().unwrap_or(false) {
                let length = state.queue_length(cpu);
                self.steps.push((ts, IdlingStep::Queue { cpu, length }));
                self.watch(cpu, length > 1);
            }
        }
    }

    fn watch(&mut self, cpu: Cpu, may_wait: bool) {
        if cpu.index() >= self.may_wait.len() {
            self.may_wait.resize(cpu.index() + 1, false);
        }
        let before = std::mem::replace(&mut self.may_wait[cpu.index()], may_wait);
        self.waiting = self.waiting + usize::from(may_wait) - usize::from(before);
    }
}

impl Joined for Utilization<'_> {
    fn is_divisible(&self) -> bool {
        true
    }

    fn resume(&mut self, _: Ts, at: Ts, state: &SchedState) {
        self.begin(at, state);
        self.heat.iter_mut().chain([&mut self.intervals, &mut self.columns]).for_each(|grid| grid.resume(at));
        let cpus = self.cpus.iter().map(|now| (now.class, now.selectable, now.depth)).collect();
        let mut log = Box::new(IdlingLog { at, cpus, ..IdlingLog::default() });
        for cpu in state.observed().chain(state.unobserved_queues()).filter(|cpu| state.queue_length(*cpu) > 1) {
            log.watch(cpu, true);
        }
        self.log = Some(log);
    }

    fn fits(&self, later: &Self) -> bool {
        let Some(log) = &later.log else { return false };
        // A task can turn out to be of the application while it runs, which the state at an instant does not show.
        let at_border = |(row, now): (usize, &CpuNow)| (self.class_at(row, log.at), now.selectable, now.depth);
        self.cpus.iter().enumerate().map(at_border).eq(log.cpus.iter().copied())
            && self.part.is_some() == later.part.is_some()
    }

    fn join(&mut self, later: Self) {
        let Some(log) = later.log else { return };
        for (row, class) in &log.changed {
            if let Some(earlier) = self.log.as_mut().filter(|_| !self.cpus[*row].has_switched) {
                earlier.change(*row, *class);
            }
            self.recount(*row, log.at, *class);
        }
        (0..self.cpus.len()).for_each(|row| self.account(row, log.at));
        self.intervals.join(&later.intervals);
        self.columns.join(&later.columns);
        self.heat.iter_mut().zip(&later.heat).for_each(|(grid, more)| grid.join(more));
        for (sums, more) in self.sums.iter_mut().zip(&later.sums) {
            sums.iter_mut().zip(more).for_each(|(sum, ns)| *sum += ns);
        }
        let runs = self.runs.iter_mut().zip(later.runs);
        for ((now, later), (run, of_later)) in self.cpus.iter_mut().zip(later.cpus).zip(runs) {
            let in_tasks = now.in_tasks + later.in_tasks;
            if later.has_switched {
                (*now, *run) = (CpuNow { in_tasks, ..later }, of_later);
            } else {
                // The run goes on.
                let (run_since, has_switched) = (now.run_since, now.has_switched);
                *now = CpuNow { in_tasks, run_since, has_switched, ..later };
                run.join(of_later);
            }
        }
        self.interrupts |= later.interrupts;
        // The counts of the CPUs shown are those of the state.
        self.part = later.part;
        for (ts, step) in log.steps {
            match step {
                IdlingStep::Turn(beside) => self.turn_beside(ts, beside),
                IdlingStep::Move { orig, dest } => self.moved(ts, orig, dest),
                IdlingStep::Queue { cpu, length } => self.follow_queue(ts, cpu, length),
            }
        }
    }
}

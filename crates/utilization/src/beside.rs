//! What stands beside what: CPUs that idle, and those that are overloaded.

use sched::{Counts, Cpu, Load, SchedState};
use timeline::Rows;

/// CPUs that idle, those that are overloaded, and the tasks that wait there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Beside {
    pub(crate) idle: u32,
    pub(crate) overloaded: u32,
    pub(crate) waiting: u32,
}

impl Beside {
    /// On all CPUs.
    pub(crate) fn of(counts: &Counts) -> Beside {
        Beside { idle: counts.idle, overloaded: counts.overloaded, waiting: counts.waiting_overloaded }
    }

    /// What one CPU adds.
    fn on(cpu: Cpu, state: &SchedState) -> Beside {
        match state.load(cpu) {
            Load::Idle => Beside { idle: 1, ..Beside::default() },
            Load::Overloaded => Beside { idle: 0, overloaded: 1, waiting: state.queue_length(cpu) },
            _ => Beside::default(),
        }
    }

    fn change(&mut self, new: Beside, old: Beside) {
        let swap = |sum: &mut u32, new: u32, old: u32| *sum = *sum + new - old;
        swap(&mut self.idle, new.idle, old.idle);
        swap(&mut self.overloaded, new.overloaded, old.overloaded);
        swap(&mut self.waiting, new.waiting, old.waiting);
    }
}

/// The same on some CPUs alone, followed from event to event.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// What each of them adds.
    each: Vec<Beside>,
    sum: Beside,
}

impl Part {
    /// On these CPUs, in the order of their rows.
    pub(crate) fn new(cpus: impl Iterator<Item = Cpu>, state: &SchedState) -> Part {
        let each: Vec<Beside> = cpus.map(|cpu| Beside::on(cpu, state)).collect();
        let mut sum = Beside::default();
        each.iter().for_each(|one| sum.change(*one, Beside::default()));
        Part { each, sum }
    }

    /// The sum over them.
    pub(crate) fn sum(&self) -> Beside {
        self.sum
    }

    /// The same after an event.
    pub(crate) fn follow(&mut self, rows: &Rows, state: &SchedState) -> Beside {
        state.touched(|cpu| {
            if let Some(one) = rows.of(cpu).and_then(|row| self.each.get_mut(row)) {
                let new = Beside::on(cpu, state);
                self.sum.change(new, std::mem::replace(one, new));
            }
        });
        self.sum
    }
}

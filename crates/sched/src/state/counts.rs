//! The machine at a glance, in constant time per event.

use super::SchedState;
use crate::event::Cpu;
use crate::span::TaskState;
use serde::Serialize;

/// What a CPU is, for the figures (`definitions.md`, section 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub enum Load {
    /// It has no event at all, and takes no part.
    #[default]
    Unobserved,
    /// Its current is not known.
    Unknown,
    /// It idles, and nothing waits (I).
    Idle,
    /// It idles, and a task was just queued (X).
    Reacting,
    /// It runs a task, and nothing waits.
    Busy,
    /// It runs a task while others wait (O).
    Overloaded,
}

/// How many CPUs are what, and how many tasks run and wait, at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// CPUs with [`Load::Unknown`].
    pub unknown: u32,
    /// CPUs with [`Load::Idle`].
    pub idle: u32,
    /// CPUs with [`Load::Reacting`].
    pub reacting: u32,
    /// CPUs with [`Load::Busy`].
    pub busy: u32,
    /// CPUs with [`Load::Overloaded`].
    pub overloaded: u32,
    /// Tasks that wait on any CPU.
    pub waiting: u32,
    /// Tasks that wait on overloaded CPUs.
    pub waiting_overloaded: u32,
}

impl Counts {
    /// Counts the CPUs of a state, and their queues. [`Tally`] follows a pass without counting anew.
    pub fn of(state: &SchedState) -> Counts {
        let mut tally = Tally::default();
        tally.begin(state);
        tally.counts
    }

    /// Whether work conservation is violated, every waiting task counted.
    pub fn is_violated(&self) -> bool {
        self.idle > 0 && self.overloaded > 0
    }

    /// Tasks that run.
    pub fn running(&self) -> u32 {
        self.busy + self.overloaded
    }
}

/// The counts, followed through the facts of the state: for an analysis that looks at them at
/// every event.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    counts: Counts,
    cpus: Vec<(Load, u32)>,
}

impl Tally {
    /// The counts now.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Begins with a state as it is.
    pub fn begin(&mut self, state: &SchedState) {
        for cpu in (0..state.cpus.len() as u32).map(Cpu) {
            self.look(cpu, state);
        }
    }

    /// Brings the counts up to date with the event that the state applied last.
    pub fn follow(&mut self, state: &SchedState) {
        self.follow_each(state, |_, _| ());
    }

    /// The same; `tell` is told of each CPU that may have changed what it is now.
    pub fn follow_each(&mut self, state: &SchedState, mut tell: impl FnMut(Cpu, Load)) {
        // Most often all of it concerns one CPU.
        let mut seen = None;
        let mut changed = |cpu: Cpu| {
            if seen.replace(cpu) != Some(cpu) {
                tell(cpu, self.look(cpu, state));
            }
        };
        for span in state.spans() {
            if let TaskState::Waiting(cpu) = span.state {
                changed(cpu);
            }
            if let Some(TaskState::Waiting(cpu)) = state.task(span.task).map(|task| task.state) {
                changed(cpu);
            }
        }
        state.cpu_spans().iter().for_each(|span| changed(span.cpu));
    }

    fn look(&mut self, cpu: Cpu, state: &SchedState) -> Load {
        let load = state.load(cpu);
        self.set(cpu, load, state.queue_length(cpu));
        load
    }

    fn set(&mut self, cpu: Cpu, load: Load, waiting: u32) {
        if cpu.index() >= self.cpus.len() {
            self.cpus.resize(cpu.index() + 1, Default::default());
        }
        let (old, old_waiting) = std::mem::replace(&mut self.cpus[cpu.index()], (load, waiting));
        let c = &mut self.counts;
        c.waiting = c.waiting - old_waiting + waiting;
        if old == Load::Overloaded {
            c.waiting_overloaded -= old_waiting;
        }
        if load == Load::Overloaded {
            c.waiting_overloaded += waiting;
        }
        if old != load {
            if let Some(n) = c.number(old) {
                *n -= 1;
            }
            if let Some(n) = c.number(load) {
                *n += 1;
            }
        }
    }
}

impl Counts {
    fn number(&mut self, load: Load) -> Option<&mut u32> {
        match load {
            Load::Unobserved => None,
            Load::Unknown => Some(&mut self.unknown),
            Load::Idle => Some(&mut self.idle),
            Load::Reacting => Some(&mut self.reacting),
            Load::Busy => Some(&mut self.busy),
            Load::Overloaded => Some(&mut self.overloaded),
        }
    }
}

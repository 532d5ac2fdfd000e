//! The instants to come, in order.

use crate::model::{SleepIndex, TaskIndex};
use sched::Cpu;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A matter that is due at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    /// The run step of the running task ends, unless another end was foreseen since.
    RunEnds { cpu: Cpu, nth: u32 },
    /// The time slice of the running task ends, unless the CPU has switched since.
    SliceEnds { cpu: Cpu, turn: u32 },
    /// The idle CPU switches to a task of its queue, unless it has switched since.
    Switch { cpu: Cpu, turn: u32 },
    /// An interrupt ends a sleep.
    Interrupt { sleep: SleepIndex },
    /// The task of a sleep that was woken joins a queue.
    Queue { sleep: SleepIndex, waker: Cpu },
    /// The waiting task moves as in the trace, unless it has run since.
    Move { task: TaskIndex, joins: u32 },
    /// A task begins that no step of another one forks.
    Birth { task: TaskIndex },
    /// An idle CPU may be due to pull a task.
    Balance,
    /// The CPUs that run a task have a tick.
    Tick,
}

/// The matters that are due, the earliest first; among those of one instant the one that was added first.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    heap: BinaryHeap<Reverse<(i64, u64, Due)>>,
    added: u64,
}

impl Agenda {
    pub(super) fn add(&mut self, at: i64, due: Due) {
        self.added += 1;
        self.heap.push(Reverse((at, self.added, due)));
    }

    pub(super) fn next(&mut self) -> Option<(i64, Due)> {
        self.heap.pop().map(|Reverse((at, _, due))| (at, due))
    }
}

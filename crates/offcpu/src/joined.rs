//! The pieces of a pass, joined: a later piece notes what its events mean for stacks, which needs the state no more, and the analysis of the
//! pieces before takes that in its order.

use crate::timehist::LineStep;
use crate::{OffCpu, SeenWaking, StackWaker};
use parse::StackId;
use sched::{Comm, Cpu, Dur, Joined, Pid, SchedState, TaskId, Ts};

/// A step that an event is for the stacks of tasks that are off their CPUs.
#[derive(Debug)]
pub(crate) enum OffStep {
    /// The step that the event is for perf's lines.
    Line(LineStep),
    /// Time of a task off its CPU has passed: asleep, up to a wakeup where that is known, or runnable.
    Passed { task: TaskId, name: Comm, is_asleep: bool, length: Dur, woken: Option<Box<Woken>> },
    /// A task is about to be woken.
    Waking(TaskId, SeenWaking),
    /// A task leaves its CPU at this stack, or is seen off a CPU for the first time.
    Leaves { task: TaskId, name: Comm, stack: Option<StackId>, is_switch: bool, is_asleep: bool, is_counted: bool },
    /// A task runs, or has ended.
    Returns(TaskId),
    /// A task goes from one state off its CPU to another: by a wakeup that ends its sleep, with whether that counts, or otherwise.
    Stays { task: TaskId, name: Comm, woken: Option<(Box<Woken>, bool)> },
}

/// The facts about the wakeup that ends a sleep.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Woken {
    /// The waking as the state has it: its instant, the current task and the CPU.
    pub(crate) waking: Option<(Ts, Pid, Cpu)>,
    /// The origin, if the event that is being applied shows it.
    pub(crate) current: Option<StackWaker>,
}

impl Joined for OffCpu<'_> {
    fn is_divisible(&self) -> bool {
        true
    }

    fn resume(&mut self, start: Ts, _: Ts, _: &SchedState) {
        self.start = Some(start);
        self.log.resume();
    }

    fn fits(&self, _: &Self) -> bool {
        true
    }

    fn join(&mut self, later: Self) {
        later.log.into_steps().for_each(|step| self.take_step(step));
    }
}

//! A task on the way into its model.

use crate::model::{JoinIndex, SleepClass, SleepIndex, TaskIndex};
use sched::{Comm, Cpu, Ts};

/// A waking that no run queue has followed yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Announcement {
    pub(crate) at: Ts,
    pub(crate) on: Cpu,
    /// The step of the waker, if a task emitted it in task context.
    pub(crate) by: Option<(TaskIndex, usize)>,
    pub(crate) class: SleepClass,
    /// Whether a softirq emitted it on top of a task of a program.
    pub(crate) on_task: bool,
}

/// The part of a task's life that its program does not have yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Track {
    pub(crate) index: TaskIndex,
    /// The instant up to which the program has the run.
    pub(crate) run_from: Ts,
    pub(crate) run_start: Ts,
    /// The CPU time of the present burst.
    pub(crate) burst: u64,
    pub(crate) sleep: Option<SleepIndex>,
    /// The class of the open sleep whatever ends it.
    pub(crate) forced: Option<SleepClass>,
    pub(crate) waking: Option<Announcement>,
    pub(crate) join: JoinIndex,
    pub(crate) joined: Ts,
    /// The number of runs on the CPU when the task joined its queue while it idled.
    pub(crate) idle_at: Option<usize>,
    /// Whether another CPU could take the task while it waits, as the fair class's balancers do.
    pub(crate) is_movable: bool,
    pub(crate) prio: i32,
    /// The name that the program has so far.
    pub(crate) comm: Comm,
    /// The sleep that the task asked for by a system call: until an absolute time, or of some length.
    pub(crate) asked: Option<bool>,
}

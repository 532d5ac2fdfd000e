//! Spans: the facts that the state emits.

use crate::event::task_id::TaskId;
use crate::event::{Comm, Cpu, Dur, Pid, Ts};
use serde::{Deserialize, Serialize};

/// The state of a task. See `docs/definitions.md`, section 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum TaskState {
    /// Nothing certain is known.
    Unknown,
    /// It runs on this CPU.
    Running(Cpu),
    /// It is runnable and waits on the run queue of this CPU.
    Waiting(Cpu),
    /// It is runnable on this CPU, and bandwidth control (`cpu.max`) keeps its cgroup from running there.
    Throttled(Cpu),
    /// It sleeps; this is the last CPU it was on.
    Blocked(Cpu),
    /// It will not run again.
    Dead,
}

/// The way in which a waiting task joined its run queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Came {
    /// No event shows it.
    #[default]
    Unknown,
    /// A wakeup placed it there.
    Woken,
    /// A fork placed it there.
    Forked,
    /// It waited elsewhere, and a migration moved it there.
    Moved,
    /// It had run there, or been throttled there.
    Stayed,
}

/// The occupant of a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Current {
    /// Nothing certain is known.
    #[default]
    Unknown,
    /// Nothing: it is offline.
    Offline,
    /// The idle task.
    Idle,
    /// This task.
    Task(Pid),
}

impl Current {
    /// The span of the task with this number.
    pub fn of(pid: Pid) -> Current {
        if pid.is_idle() { Current::Idle } else { Current::Task(pid) }
    }
}

/// A stretch of one task in one state. The spans of a task tile its observed life; the first one
/// has no length where the life begins with the event that shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The life.
    pub task: TaskId,
    /// Its number.
    pub pid: Pid,
    /// The state throughout.
    pub state: TaskState,
    /// The start.
    pub start: Ts,
    /// The end, which is outside.
    pub end: Ts,
    /// The state that it led to; the same, where the window ended it.
    pub next: TaskState,
    /// An event began it. Otherwise it had lasted for some time unseen: since before the window or the trace,
    /// since some moment of a loss, or on a CPU without events.
    pub begun: bool,
    /// An event ended it. Otherwise it is censored: cut by the end of the window or of the trace, or in a loss,
    /// after which something else turned out to be so, or a wait on a CPU without events.
    pub ended: bool,
}

/// A stretch of one CPU with one current task of one name: one that executes a program begins another stretch. The
/// spans of a CPU tile the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuSpan {
    /// The CPU.
    pub cpu: Cpu,
    /// The occupant throughout.
    pub current: Current,
    /// The task's name, since it was switched in or executed its program; empty where none was seen.
    pub comm: Comm,
    /// The start.
    pub start: Ts,
    /// The end, which is outside.
    pub end: Ts,
}

impl Span {
    /// Its length.
    pub fn duration(&self) -> Dur {
        self.end.since(self.start)
    }

    /// The part of it inside `[from, to]`, if any of it is. A span without length is kept where its instant is
    /// inside.
    pub fn clip(&self, from: Ts, to: Ts) -> Option<Span> {
        let (start, end) = inside(self.start, self.end, from, to)?;
        let (begun, ended) = (self.begun && start == self.start, self.ended && end == self.end);
        Some(Span { start, end, begun, ended, ..*self })
    }
}

impl CpuSpan {
    /// Its length.
    pub fn duration(&self) -> Dur {
        self.end.since(self.start)
    }

    /// The part of it inside `[from, to]`, as [`Span::clip`] has it.
    pub fn clip(&self, from: Ts, to: Ts) -> Option<CpuSpan> {
        let (start, end) = inside(self.start, self.end, from, to)?;
        Some(CpuSpan { start, end, ..*self })
    }
}

/// The part of `[start, end]` that is inside `[from, to]`.
fn inside(start: Ts, end: Ts, from: Ts, to: Ts) -> Option<(Ts, Ts)> {
    let (first, last) = (start.max(from), end.min(to));
    (first < last || (first == last && start == end)).then_some((first, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start: i64, end: i64) -> CpuSpan {
        CpuSpan { cpu: Cpu(0), current: Current::Idle, comm: Comm::EMPTY, start: Ts(start), end: Ts(end) }
    }

    #[test]
    fn clipping_keeps_what_is_inside() {
        assert_eq!(span(0, 10).clip(Ts(2), Ts(5)), Some(span(2, 5)));
        assert_eq!(span(0, 2).clip(Ts(2), Ts(5)), None);
        assert_eq!(span(3, 3).clip(Ts(2), Ts(5)), Some(span(3, 3)));
        assert_eq!(span(7, 7).clip(Ts(2), Ts(5)), None);
    }
}

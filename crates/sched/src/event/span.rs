//! Spans: the facts that the state emits.

use crate::event::task_id::TaskId;
use crate::event::{Comm, Cpu, Dur, Pid, Ts};
use serde::{Deserialize, Serialize};

/// The state of a task. See `docs/read-the-numbers.md#states`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum TaskState {
    /// An unknown state: nothing certain is known of the task.
    Unknown,
    /// On-CPU: the task runs on this CPU.
    Running(Cpu),
    /// Runnable: the task waits on the run queue of this CPU.
    Waiting(Cpu),
    /// Throttled: the task is runnable on this CPU, and bandwidth control (`cpu.max`) keeps its cgroup from running
    /// there.
    Throttled(Cpu),
    /// Asleep: the task sleeps, and this is the last CPU that it was on.
    #[serde(alias = "Blocked")]
    Asleep(Cpu),
    /// Ended: the task will not run again.
    Dead,
}

/// The way in which a waiting task joined its run queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Came {
    /// An unknown way: no event shows it.
    #[default]
    Unknown,
    /// A wakeup that placed the task there.
    Woken,
    /// A fork that placed the new task there.
    Forked,
    /// A migration of a task that waited on another CPU.
    Moved,
    /// A task that stayed: it had run there, or been throttled there.
    Stayed,
}

/// The occupant of a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Current {
    /// An unknown occupant: nothing certain is known of the CPU.
    #[default]
    Unknown,
    /// No occupant: the CPU is offline.
    Offline,
    /// The idle task of the CPU.
    Idle,
    /// The task with this PID.
    Task(Pid),
}

impl Current {
    /// Returns the occupant with this PID: the idle task for [`Pid::IDLE`], unknown for [`Pid::UNKNOWN`].
    pub fn of(pid: Pid) -> Current {
        match pid {
            Pid::IDLE => Current::Idle,
            Pid::UNKNOWN => Current::Unknown,
            pid => Current::Task(pid),
        }
    }
}

/// A stretch of one task in one state. The spans of a task tile its observed life; the first one has no length if the
/// life begins with the event that shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The task, as one life of its PID.
    pub task: TaskId,
    /// The PID of the task.
    pub pid: Pid,
    /// The state of the task throughout the span.
    pub state: TaskState,
    /// The instant at which the span begins.
    pub start: Ts,
    /// The instant at which the span ends; the span does not include it.
    pub end: Ts,
    /// The state that follows; the same state if the window ended the span.
    pub next: TaskState,
    /// Whether an event began the span. Otherwise the state had lasted for some time unseen: since before the window or
    /// the trace, since some moment of a loss, or on a CPU without events.
    pub begun: bool,
    /// Whether an event ended the span. Otherwise the span is censored: cut by the end of the window or of the trace,
    /// or in a loss, after which something else turned out to be so, or a wait on a CPU without events.
    pub ended: bool,
}

/// A stretch of one CPU with one current task of one name: a task that executes a program begins another stretch. The
/// spans of a CPU tile the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuSpan {
    /// The CPU of the span.
    pub cpu: Cpu,
    /// The occupant of the CPU throughout the span.
    pub current: Current,
    /// The name of the task, since it was switched in or executed its program; empty if none was seen.
    pub comm: Comm,
    /// The instant at which the span begins.
    pub start: Ts,
    /// The instant at which the span ends; the span does not include it.
    pub end: Ts,
}

impl Span {
    /// The length of the span in nanoseconds.
    pub fn duration(&self) -> Dur {
        self.end.since(self.start)
    }

    /// Returns the part of the span inside `[from, to]`, if there is any. A span without length is kept if its instant
    /// is inside.
    pub fn clip(&self, from: Ts, to: Ts) -> Option<Span> {
        let (start, end) = inside(self.start, self.end, from, to)?;
        let (begun, ended) = (self.begun && start == self.start, self.ended && end == self.end);
        Some(Span { start, end, begun, ended, ..*self })
    }
}

impl CpuSpan {
    /// The length of the span in nanoseconds.
    pub fn duration(&self) -> Dur {
        self.end.since(self.start)
    }

    /// Returns the part of the span inside `[from, to]`, as [`Span::clip`] does.
    pub fn clip(&self, from: Ts, to: Ts) -> Option<CpuSpan> {
        let (start, end) = inside(self.start, self.end, from, to)?;
        Some(CpuSpan { start, end, ..*self })
    }
}

/// Returns the part of `[start, end]` that is inside `[from, to]`.
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

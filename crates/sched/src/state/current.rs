//! The occupants of one CPU, from its own events alone.
//!
//! This is the part of the state that needs no order between CPUs: an analysis of the occupants
//! can read each CPU by itself, in parallel, and from the middle. Its spans are those of
//! [`super::SchedState`], but for one kind of contradiction that only both CPUs together show: a
//! task switched in while another CPU, after an unmarked loss, is still thought to run it.

use crate::event::span::{CpuSpan, Current};
use crate::event::{Comm, Cpu, EventKind, Pid, SchedEvent, Ts};

/// A state of one CPU, which follows the occupants of the CPU through its own events.
///
/// The caller passes all events of the CPU to [`CpuFold::apply`] in the order of time, and then calls
/// [`CpuFold::finish`].
#[derive(Clone, Debug)]
pub struct CpuFold {
    cpu: Cpu,
    from: Ts,
    to: Ts,
    /// The occupant; `None` before the first event.
    current: Option<Current>,
    comm: Comm,
    since: Ts,
    done: bool,
    gaps: u64,
    mismatches: u64,
    switches: u64,
}

impl CpuFold {
    /// Makes a state for the window from `from` to `to`. Events before the window may be applied as well: they show the
    /// occupant at its start.
    pub fn new(cpu: Cpu, from: Ts, to: Ts) -> CpuFold {
        CpuFold {
            cpu,
            from,
            to,
            current: None,
            comm: Comm::EMPTY,
            since: from,
            done: false,
            gaps: 0,
            mismatches: 0,
            switches: 0,
        }
    }

    /// Whether the window is covered, so that later events change nothing.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// The number of losses within the window.
    pub fn gaps(&self) -> u64 {
        self.gaps
    }

    /// The number of switches within the window away from another task than the one known to run.
    pub fn mismatches(&self) -> u64 {
        self.mismatches
    }

    /// The number of switches within the window.
    pub fn switches(&self) -> u64 {
        self.switches
    }

    /// The open span, as if it ended where it began; `None` before the first event.
    pub fn open_span(&self) -> Option<CpuSpan> {
        let current = self.current?;
        Some(CpuSpan { cpu: self.cpu, current, comm: self.comm, start: self.since, end: self.since })
    }

    /// Ends the open span at `ts`, and begins one with another occupant or name.
    fn turn(&mut self, current: Current, comm: Comm, ts: Ts, emit: &mut impl FnMut(&CpuSpan)) {
        self.close(ts, emit);
        (self.current, self.comm, self.since) = (Some(current), comm, ts);
    }

    /// Gives the running task this name, if it is known, and perhaps another PID.
    fn go_on(&mut self, pid: Pid, name: Comm, ts: Ts, emit: &mut impl FnMut(&CpuSpan)) {
        let comm = if name.is_empty() { self.comm } else { name };
        if (self.current, self.comm) != (Some(Current::Task(pid)), comm) {
            self.turn(Current::Task(pid), comm, ts, emit);
        }
    }

    /// Emits the span that ends at `ts`, clipped to the window.
    fn close(&self, ts: Ts, emit: &mut impl FnMut(&CpuSpan)) {
        let current = self.current.unwrap_or_default();
        let span = CpuSpan { cpu: self.cpu, current, comm: self.comm, start: self.since, end: ts };
        if let Some(span) = span.clip(self.from, self.to)
            && span.start < span.end
        {
            emit(&span);
        }
    }

    /// Applies the next event of the CPU. `emit` is called with each span that the event closes, clipped to the window
    /// and longer than zero.
    pub fn apply(&mut self, event: &SchedEvent, emit: &mut impl FnMut(&CpuSpan)) {
        let inside = event.ts >= self.from && event.ts <= self.to;
        match event.kind {
            EventKind::Lost { .. } => {
                self.gaps += u64::from(inside);
                return self.turn(Current::Unknown, Comm::EMPTY, event.ts, emit);
            }
            EventKind::Offline => return self.turn(Current::Offline, Comm::EMPTY, event.ts, emit),
            _ => {}
        }
        match self.current {
            None | Some(Current::Unknown | Current::Offline) if matches!(event.kind, EventKind::Stack { .. }) => {}
            // The first event shows the task that ran before it.
            None => self.current = Some(Current::of(event.pid)),
            Some(Current::Unknown | Current::Offline) => self.turn(Current::of(event.pid), Comm::EMPTY, event.ts, emit),
            Some(_) => {}
        }
        self.done = event.ts > self.to;
        match event.kind {
            EventKind::Switch { prev, next, .. } => {
                self.switches += u64::from(inside);
                if self.current != Some(Current::of(prev.pid)) {
                    self.mismatches += u64::from(inside);
                    self.turn(Current::of(prev.pid), prev.comm, event.ts, emit);
                }
                // The task that ran from the start on is named only now.
                if self.comm.is_empty() {
                    self.comm = prev.comm;
                }
                self.turn(Current::of(next.pid), next.comm, event.ts, emit);
            }
            EventKind::Rename { pid, before, after } if self.current == Some(Current::Task(pid)) => {
                if self.comm.is_empty() {
                    self.comm = before;
                }
                self.go_on(pid, after, event.ts, emit);
            }
            // A switch between the exchange of numbers and this event used the new one already.
            EventKind::Exec { pid, old_pid, program } if self.current.is_some_and(|c| c.is_one_of(pid, old_pid)) => {
                if pid == old_pid && self.comm.is_empty() {
                    self.comm = program;
                }
                self.go_on(pid, program, event.ts, emit);
            }
            _ => {}
        }
    }

    /// Closes the open span at the end of the window, and emits it. Returns `None` if the CPU had no event.
    pub fn finish(self, emit: &mut impl FnMut(&CpuSpan)) -> Option<()> {
        self.current?;
        if self.since < self.to {
            self.close(self.to, emit);
        }
        Some(())
    }
}

impl Current {
    /// Whether one of these two PIDs is the running task.
    fn is_one_of(self, a: Pid, b: Pid) -> bool {
        self.pid().is_some_and(|pid| pid == a || pid == b)
    }

    /// The PID of the running task, if a task is known to run.
    pub fn pid(self) -> Option<Pid> {
        match self {
            Current::Task(pid) => Some(pid),
            Current::Idle | Current::Offline | Current::Unknown => None,
        }
    }
}

//! The occupants of one CPU, from its own events alone.
//!
//! This is the part of the state that needs no order between CPUs: an analysis of the occupants
//! can read each CPU by itself, in parallel, and from the middle. Its spans are those of
//! [`super::SchedState`], but for one kind of contradiction that only both CPUs together show: a
//! task switched in while another CPU, after an unmarked loss, is still thought to run it.

use crate::event::span::{CpuSpan, Current};
use crate::event::{Comm, Cpu, EventKind, Pid, SchedEvent, Ts};

/// Follows one CPU through its events.
#[derive(Clone, Debug)]
pub struct CpuFold {
    cpu: Cpu,
    from: Ts,
    to: Ts,
    /// Nothing until the first event.
    current: Option<Current>,
    comm: Comm,
    since: Ts,
    done: bool,
    gaps: u64,
    mismatches: u64,
    switches: u64,
}

impl CpuFold {
    /// From `from` to `to`: the window. Events before it may be given, and help.
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

    /// Whether the window is covered: later events change nothing.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// Losses within the window.
    pub fn gaps(&self) -> u64 {
        self.gaps
    }

    /// Switches away from another task than the one known to run.
    pub fn mismatches(&self) -> u64 {
        self.mismatches
    }

    /// Switches within the window.
    pub fn switches(&self) -> u64 {
        self.switches
    }

    /// The span that is open, as if it ended where it began. `None` before the first event.
    pub fn open_span(&self) -> Option<CpuSpan> {
        let current = self.current?;
        Some(CpuSpan { cpu: self.cpu, current, comm: self.comm, start: self.since, end: self.since })
    }

    fn turn(&mut self, current: Current, comm: Comm, ts: Ts, emit: &mut impl FnMut(&CpuSpan)) {
        self.close(ts, emit);
        (self.current, self.comm, self.since) = (Some(current), comm, ts);
    }

    /// The running task has this name now, if one is known, and perhaps another number.
    fn go_on(&mut self, pid: Pid, name: Comm, ts: Ts, emit: &mut impl FnMut(&CpuSpan)) {
        let comm = if name.is_empty() { self.comm } else { name };
        if (self.current, self.comm) != (Some(Current::Task(pid)), comm) {
            self.turn(Current::Task(pid), comm, ts, emit);
        }
    }

    /// Emits the span that ends at `ts`, as far as it is inside the window.
    fn close(&self, ts: Ts, emit: &mut impl FnMut(&CpuSpan)) {
        let current = self.current.unwrap_or_default();
        let span = CpuSpan { cpu: self.cpu, current, comm: self.comm, start: self.since, end: ts };
        if let Some(span) = span.clip(self.from, self.to)
            && span.start < span.end
        {
            emit(&span);
        }
    }

    /// Takes the next event of the CPU.
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
                self.go_on(pid, program, event.ts, emit);
            }
            _ => {}
        }
    }

    /// Closes the open interval at the end of the window. `None` where the CPU has no event.
    pub fn finish(self, emit: &mut impl FnMut(&CpuSpan)) -> Option<()> {
        self.current?;
        if self.since < self.to {
            self.close(self.to, emit);
        }
        Some(())
    }
}

impl Current {
    fn is_one_of(self, a: Pid, b: Pid) -> bool {
        self.pid().is_some_and(|pid| pid == a || pid == b)
    }

    /// The number of the task that runs, if one is known to.
    pub fn pid(self) -> Option<Pid> {
        match self {
            Current::Task(pid) => Some(pid),
            Current::Idle | Current::Offline | Current::Unknown => None,
        }
    }
}

//! Reading from shortly before an instant, and the evidence of the events there on the time before.

use super::{EventStream, Trace, skip_of};
use crate::ring::unit::CpuPages;
use sched::pass::FirstEvent;
use sched::{Current, Dur, EventKind, Ts};
use std::ops::ControlFlow;

/// The time before the instant at which reading begins: a task that has not waited for longer is seen to be queued.
const BEFORE: Dur = Dur(100_000_000);

/// Maximum number of bytes of all CPUs together that are read before the instant, besides a unit of each.
const BYTES: u64 = 16 << 20;

/// Number of bytes that are searched for a CPU's last switch.
const SEARCHED: u64 = 1 << 20;

impl<'t> EventStream<'t> {
    /// Leaves out the events before a time shortly before `from`, at most a tenth of a second.
    ///
    /// The current task of each CPU there is known from its last event before. A task that waits there is known from its first
    /// event after, as at the start of a trace; one without any event in the window is not known to wait, nor is the parent of a
    /// task that was forked before. The diagnostics report this, unless reading begins at the start of the trace after all.
    #[must_use]
    pub fn near(mut self, from: Ts) -> EventStream<'t> {
        // The past of a part of a trace is known.
        self.begin = if self.trace.past().is_some() { None } else { self.trace.begin_near(from) };
        self
    }

    /// The evidence of a CPU's events before `begin` on the running task, at their time; for one that has none so early,
    /// that of its first one.
    pub(super) fn evidence_of(&self, buffer: usize, pages: &CpuPages, begin: Ts) -> Option<FirstEvent> {
        let last = self.trace.unit_before(pages, Ts(begin.0.saturating_sub(1)));
        let reach = pages.units_in(SEARCHED);
        // From further and further before, until a switch is met.
        let mut back = 1usize;
        loop {
            let first = last.saturating_add(1).saturating_sub(back);
            let (found, is_sure) = self.found_between(buffer, pages, first, begin);
            if is_sure || first == 0 || back >= reach {
                return found.or_else(|| self.trace.first_of(pages));
            }
            back = back.saturating_mul(2).min(reach);
        }
    }

    /// The evidence of a CPU's events from a unit on on the task at `begin`, and whether it is sure, or only the number that
    /// the last one bears.
    fn found_between(&self, buffer: usize, pages: &CpuPages, first: usize, begin: Ts) -> (Option<FirstEvent>, bool) {
        let (mut found, mut is_sure) = (None, false);
        let skip = skip_of(&self.skip, buffer);
        self.trace.events_from_unit(pages, first, &self.plan, skip, |_| {}, &mut |event| {
            if event.ts >= begin {
                return ControlFlow::Break(());
            }
            let shown = match event.kind {
                EventKind::Switch { next, .. } => Some(Current::of(next.pid)),
                EventKind::Exec { pid, .. } => Some(Current::of(pid)),
                EventKind::Lost { .. } => Some(Current::Unknown),
                EventKind::Offline => Some(Current::Offline),
                _ => None,
            };
            if let EventKind::Stack { .. } = event.kind {
                return ControlFlow::Continue(());
            }
            is_sure |= shown.is_some();
            if shown.is_some() || !is_sure {
                let current = shown.unwrap_or(Current::of(event.pid));
                found = Some(FirstEvent { cpu: event.cpu, ts: event.ts, current });
            }
            ControlFlow::Continue(())
        });
        (found, is_sure)
    }
}

impl Trace {
    /// Returns the time from which to read for a window that begins at `from`; `None` for the start of the trace.
    fn begin_near(&self, from: Ts) -> Option<Ts> {
        let lanes = self.selected_lanes();
        let room = BYTES / lanes.len().max(1) as u64;
        let reach = |(_, pages): (usize, &CpuPages)| {
            let mut unit = self.unit_before(pages, from).checked_sub(1)?;
            let mut bytes = pages.bytes_of(unit);
            while unit > 0 && bytes.saturating_add(pages.bytes_of(unit.saturating_sub(1))) <= room {
                unit = unit.saturating_sub(1);
                bytes = bytes.saturating_add(pages.bytes_of(unit));
            }
            if unit == 0 { None } else { self.begins(pages, unit) }
        };
        let reaches = self.in_parallel(lanes, reach);
        let earliest = Ts(from.0.saturating_sub(BEFORE.0 as i64));
        let begin = reaches.into_iter().flatten().max().unwrap_or(Ts::MIN).max(earliest).min(from);
        self.start().filter(|start| *start < begin).map(|_| begin)
    }
}

//! Reading from shortly before an instant, and what the events there show of what was before.

use super::{EventStream, Trace, skip_of};
use crate::stream::CpuPages;
use sched::pass::FirstEvent;
use sched::{Current, Dur, Kind, SchedEvent, Ts};

/// So long before the instant reading begins: a task that has not waited for longer is seen to be queued.
const BEFORE: Dur = Dur(100_000_000);

/// At most so many bytes of all CPUs together are read before the instant, and a unit of each.
const BYTES: u64 = 16 << 20;

/// So many bytes are searched for a CPU's last switch.
const SEARCHED: u64 = 1 << 20;

impl<'t> EventStream<'t> {
    /// The same events, but only those from shortly before `from` on, at most a tenth of a second.
    ///
    /// Who is current on each CPU there is known from its last event before. A task that waits there is
    /// known by the pass from its first event after, as at the start of a trace; one that has none while
    /// one looks is not known to wait. Nor is who forked whom before. The diagnostics say so, unless
    /// reading begins at the start of the trace after all.
    pub fn near(mut self, from: Ts) -> EventStream<'t> {
        self.begin = self.trace.begin_near(from);
        self
    }

    /// What a CPU's events before `begin` tell of who ran then, at their time; of one that has none so early,
    /// what its first one tells.
    pub(super) fn evidence_of(&self, buffer: usize, pages: &CpuPages, begin: Ts) -> Option<FirstEvent> {
        let unit = self.trace.unit_before(pages, Ts(begin.0.saturating_sub(1)));
        let told = |event: &SchedEvent, current: Current| Some(FirstEvent { cpu: event.cpu, ts: event.ts, current });
        let mut last = None;
        for unit in (0..=unit).rev().take(pages.units_in(SEARCHED)) {
            let events = self.trace.decode(pages, unit, &self.plan, skip_of(&self.skip, buffer), Vec::new()).items;
            let before = events.get(..events.partition_point(|event| event.ts < begin)).unwrap_or_default();
            last = last.or(before.last().copied());
            for event in before.iter().rev() {
                match event.kind {
                    Kind::Switch { next, .. } => return told(event, Current::of(next.pid)),
                    Kind::Exec { pid, .. } => return told(event, Current::of(pid)),
                    Kind::Lost { .. } => return told(event, Current::Unknown),
                    Kind::Offline => return told(event, Current::Offline),
                    // Not its own number: a stack that was recorded with a switch, and behind it, still has
                    // that of who was switched out (stacktrace.dat of 6.12).
                    _ => {}
                }
            }
        }
        if let Some(event) = last {
            return told(&event, Current::of(event.pid));
        }
        self.trace.first_of(pages)
    }
}

impl Trace {
    /// Where to begin to read for a window from `from` on; nothing if that is the start of the trace.
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

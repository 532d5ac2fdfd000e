//! One CPU at a time: its first and last event, and its events from any instant on.

use super::Trace;
use super::events::skip_of;
use crate::decode::plan::{DecodePlan, Want};
use crate::error::Error;
use crate::issue::FileIssue;
use crate::merge::unit_boundary::UnitBoundary;
use crate::parallel::parallel;
use crate::ring::page::{Loss, Raw};
use crate::ring::unit::{CpuPages, Visitor};
use sched::pass::FirstEvent;
use sched::{Cpu, Current, Diagnostics, SchedEvent, Tracepoint, Ts};
use std::ops::ControlFlow;

/// The tables of a reader of single CPUs: compiled once, used by all of them.
#[derive(Debug)]
pub struct CpuReader<'t> {
    pub(super) trace: &'t Trace,
    pub(super) plan: DecodePlan,
    pub(super) skip: Vec<Vec<bool>>,
    start: Ts,
}

struct Ends<'e> {
    trace: &'e Trace,
    cpu: Cpu,
    first: Option<FirstEvent>,
    /// The first events were stacks alone, which do not show the current task.
    stacks: bool,
    last: Option<Ts>,
    /// Events before the first one were lost.
    lost: bool,
    /// The last event is not asked for.
    is_of_first: bool,
}

impl Ends<'_> {
    #[cold]
    fn begin(&mut self, raw: &Raw<'_>, ts: Ts) {
        let current = match () {
            () if self.lost => Current::Unknown,
            () if self.trace.shows_offline(self.cpu, raw.payload) => Current::Offline,
            () if self.is_stack(raw) => {
                self.stacks = true;
                Current::Unknown
            }
            () => self.current(raw),
        };
        self.first = Some(FirstEvent { cpu: self.cpu, ts, current });
    }

    /// Settles that no task was switched in before the record behind the stacks.
    #[cold]
    fn settle(&mut self, raw: &Raw<'_>) {
        if !self.is_stack(raw) {
            self.stacks = false;
            let current = self.current(raw);
            self.first = self.first.map(|first| FirstEvent { current, ..first });
        }
    }

    fn current(&self, raw: &Raw<'_>) -> Current {
        Current::of(self.trace.common().pid(raw.payload, self.trace.endian()))
    }

    fn is_stack(&self, raw: &Raw<'_>) -> bool {
        let id = self.trace.common().id(raw.payload, self.trace.endian());
        let stacks = [Tracepoint::KernelStack, Tracepoint::UserStack];
        stacks.iter().filter_map(|stack| self.trace.format_of(*stack)).any(|format| id == Some(format.id))
    }
}

impl Visitor for Ends<'_> {
    fn record(&mut self, raw: &Raw<'_>) {
        let ts = self.trace.ts(self.cpu, raw.ts);
        if self.first.is_none() {
            self.begin(raw, ts);
        } else if self.stacks {
            self.settle(raw);
        }
        self.last = self.last.max(Some(ts));
    }

    fn is_done(&self) -> bool {
        self.is_of_first && self.first.is_some() && !self.stacks
    }

    fn gap(&mut self, _: Loss) {
        (self.lost, self.stacks) = (true, false);
    }

    fn damage(&mut self, _: FileIssue) {}
}

impl Trace {
    /// `lost`: events before this unit were. `is_of_first`: its last event is not asked for.
    fn ends_of(&self, pages: &CpuPages, unit: usize, lost: bool, is_of_first: bool) -> Ends<'_> {
        let mut ends = Ends { trace: self, cpu: pages.cpu, first: None, stacks: false, last: None, lost, is_of_first };
        pages.with_bytes(self.source(), unit, |bytes| {
            if let Ok(bytes) = bytes {
                pages.walk_bytes(bytes, &mut ends);
            }
        });
        ends
    }

    /// The first event of each of the lanes that are read.
    pub(super) fn firsts(&self) -> &[Option<FirstEvent>] {
        let first = |(_, pages): (usize, &CpuPages)| self.first_of(pages);
        self.firsts.get_or_init(|| parallel(self.pool(), self.selected_lanes(), first))
    }

    /// The time of the last event of each of these.
    pub(super) fn lasts(&self) -> &[Option<Ts>] {
        let last = |(_, pages): (usize, &CpuPages)| self.last_of(pages);
        self.lasts.get_or_init(|| parallel(self.pool(), self.selected_lanes(), last))
    }

    /// A CPU's first event.
    pub(crate) fn first_of(&self, pages: &CpuPages) -> Option<FirstEvent> {
        // The first event of a selected task does not show when it came.
        let mut lost = self.is_of_some_tasks();
        (0..pages.units()).find_map(|unit| {
            let ends = self.ends_of(pages, unit, lost, true);
            lost = ends.lost;
            ends.first
        })
    }

    /// The time of a CPU's last event.
    pub(crate) fn last_of(&self, pages: &CpuPages) -> Option<Ts> {
        (0..pages.units()).rev().find_map(|unit| self.ends_of(pages, unit, false, false).last)
    }

    /// The last unit that begins at or before `from`: by a binary search over the times of pages.
    pub(crate) fn unit_before(&self, pages: &CpuPages, from: Ts) -> usize {
        let (mut low, mut high) = (0usize, pages.units());
        while low.saturating_add(1) < high {
            let middle = low.midpoint(high);
            // Units without events have no time; the next one does.
            let begins = (middle..high).find_map(|unit| self.begins(pages, unit));
            if begins.is_some_and(|ts| ts <= from) {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    }

    /// The time of a unit's first page with events.
    pub(super) fn begins(&self, pages: &CpuPages, unit: usize) -> Option<Ts> {
        let ts = pages.with_bytes(self.source(), unit, |bytes| pages.first_stamp(bytes.ok()?))?;
        Some(self.ts(pages.cpu, ts))
    }

    /// The CPUs that have events in the buffers that are read; of a part of a trace, in those of the whole.
    pub fn observed(&self) -> Vec<Cpu> {
        if let Some(note) = self.note() {
            return note.observed.clone();
        }
        let mut cpus: Vec<Cpu> = self.firsts().iter().flatten().map(|first| first.cpu).collect();
        cpus.sort_unstable();
        cpus.dedup();
        cpus
    }

    /// The first and the last instant of the buffers that are read; of a part of a trace, those of the whole.
    pub fn extent(&self) -> Option<(Ts, Ts)> {
        let start = self.start()?;
        if let Some(past) = self.past() {
            return Some((start, past.end));
        }
        Some((start, self.lasts().iter().flatten().max().copied()?.max(start)))
    }

    /// A reader of single CPUs. Refused if the clock has no time.
    pub fn cpu_reader(&self, want: Want) -> Result<CpuReader<'_>, Error> {
        self.has_time()?;
        let start = self.start().ok_or_else(|| self.no_events())?;
        let skip = self.duplicates(&mut Diagnostics::default());
        Ok(CpuReader { trace: self, plan: self.plan(want), skip, start })
    }

    /// Delivers the events of a CPU in the order they were recorded, from a unit on, until `sink` breaks. Before a
    /// unit is read `reads` is called.
    pub(super) fn events_from_unit(
        &self,
        pages: &CpuPages,
        first: usize,
        plan: &DecodePlan,
        skip: &[bool],
        reads: impl Fn(usize),
        sink: &mut dyn FnMut(&SchedEvent) -> ControlFlow<()>,
    ) -> Diagnostics {
        let mut diagnostics = Diagnostics::default();
        let mut boundary = UnitBoundary::new(pages, first, self.start().unwrap_or_default(), plan.unwanted());
        let mut space = Vec::new();
        for number in first..pages.units() {
            reads(number);
            let mut unit = self.decode(pages, number, plan, skip, space);
            let lost = boundary.join(&mut unit, &mut diagnostics);
            if lost.iter().chain(&unit.items).try_for_each(&mut *sink).is_break() {
                return diagnostics;
            }
            unit.items.clear();
            space = unit.items;
        }
        boundary.note_unwritten(&mut diagnostics);
        if let Some(behind) = boundary.end() {
            let _ = sink(&behind);
        }
        diagnostics
    }

    /// Runs `work` for each of `items`, on the trace's threads; the results are in order.
    pub fn in_parallel<I: Send, O: Send>(&self, items: Vec<I>, work: impl Fn(I) -> O + Sync) -> Vec<O> {
        parallel(self.pool(), items, work)
    }
}

impl CpuReader<'_> {
    /// Delivers the events of `cpu` in the order they were recorded, until `sink` breaks: from the
    /// unit on that has `from` in it, so somewhat earlier. Where the CPU has data in several
    /// buffers they follow one another; see [`CpuReader::buffers_of`].
    pub fn events(
        &self,
        buffer: usize,
        cpu: Cpu,
        from: Option<Ts>,
        sink: &mut dyn FnMut(&SchedEvent) -> ControlFlow<()>,
    ) -> Diagnostics {
        if let (Some(past), true) = (self.trace.past(), from.is_some())
            && let Some(occupant) = past.occupant(cpu)
            && sink(&occupant).is_break()
        {
            return Diagnostics::default();
        }
        let Some(pages) = self.trace.lanes().get(buffer).and_then(|l| l.iter().find(|p| p.cpu == cpu)) else {
            return Diagnostics::default();
        };
        let skip = skip_of(&self.skip, buffer);
        let first = from.map_or(0, |from| self.trace.unit_before(pages, from));
        // Not by the unit: of a CPU with little data the first one is in every window.
        let through = from.is_none_or(|from| from <= self.start);
        if !through {
            self.trace.will_read_from(pages, first, 0);
        }
        let reads = |unit| {
            if !through {
                self.trace.reads(pages, unit, 0);
            }
        };
        self.trace.events_from_unit(pages, first, &self.plan, skip, reads, sink)
    }

    /// The buffers that have data of `cpu`: the one with the switches first.
    pub fn buffers_of(&self, cpu: Cpu) -> Vec<usize> {
        let has = |b: &&usize| self.trace.lanes().get(**b).is_some_and(|l| l.iter().any(|p| p.cpu == cpu));
        let mut buffers: Vec<usize> = self.trace.selected_buffers().iter().filter(has).copied().collect();
        if buffers.is_empty() && self.trace.past().is_some() {
            // Its occupant is known all the same.
            return self.trace.selected_buffers().iter().take(1).copied().collect();
        }
        if buffers.len() > 1 {
            let switch = self.trace.format_of(Tracepoint::Switch).map_or(0, |f| f.id);
            buffers.sort_by_key(|b| !self.trace.occurs_in(*b, switch));
        }
        buffers
    }
}

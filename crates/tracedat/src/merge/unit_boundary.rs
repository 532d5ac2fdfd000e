//! The boundaries between the units of a CPU: they decode independently of one another, and are joined here.

use crate::decode::cpu_offline::{Behind, Unfinished};
use crate::issue::FileIssue;
use crate::ring::page::Loss;
use crate::ring::unit::{CpuPages, Marked, Unit, join_losses};
use sched::{Cpu, Diagnostics, Severity, Ts};

/// Something with a time that a CPU recorded.
pub(crate) trait Timed: Clone + Send + Sync {
    fn ts(&self) -> Ts;
    fn set_ts(&mut self, ts: Ts);
    /// Notes a loss between two units: `before` is the time of the CPU's last record, `next` what follows, if
    /// anything does. May yield an item of its own.
    fn after_gap(cpu: Cpu, before: Ts, loss: Loss, next: Option<&mut Self>) -> Option<Self>
    where
        Self: Sized;
    /// Goes on with watching a task of a CPU, which was current at `last`, through what follows; the scheduler's
    /// events with the numbers `unwanted` are not among it. Returns whether it may still be so behind it.
    fn watch_on(_cpu: Cpu, _unwanted: &[u16], _task: Unfinished, _last: Ts, _items: &mut Vec<Self>) -> bool
    where
        Self: Sized,
    {
        false
    }
    /// The CPU is offline, or unknown, from `ts` on. May yield an item of its own.
    fn concluded(_cpu: Cpu, _ts: Ts, _behind: Behind) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }
}

/// Where the next unit of a CPU joins those before.
#[derive(Debug)]
pub(crate) struct UnitBoundary<'p> {
    pages: &'p CpuPages,
    /// See [`Timed::watch_on`].
    unwanted: &'p [u16],
    /// The units before the first one are not read.
    from_middle: bool,
    /// A record was seen.
    started: bool,
    /// The time of the last record: none behind is earlier.
    frontier: Ts,
    /// The loss behind that.
    pending: Option<Loss>,
    /// The task that is watched, while it is current.
    unfinished: Option<Unfinished>,
    /// The records so far.
    records: u64,
    /// The losses that the pages marked so far.
    marked: Marked,
    /// Some could not be read.
    is_damaged: bool,
}

impl<'p> UnitBoundary<'p> {
    /// Before the unit number `first` of `pages`, in a trace that begins at `start`.
    pub(crate) fn new(pages: &'p CpuPages, first: usize, start: Ts, unwanted: &'p [u16]) -> UnitBoundary<'p> {
        UnitBoundary {
            pages,
            unwanted,
            from_middle: first > 0,
            started: false,
            frontier: start,
            pending: None,
            unfinished: None,
            records: 0,
            marked: Marked::default(),
            is_damaged: false,
        }
    }

    /// The time of the last record so far.
    pub(crate) fn frontier(&self) -> Ts {
        self.frontier
    }

    /// Joins the next unit: afterwards times do not step back in it, and tasks that had begun before have gone on through it.
    /// May yield an item that stands before its own.
    pub(crate) fn join<T: Timed>(&mut self, unit: &mut Unit<T>, diagnostics: &mut Diagnostics) -> Option<T> {
        diagnostics.merge(&unit.diagnostics);
        self.records = self.records.saturating_add(unit.records);
        self.marked.add(unit.marked);
        self.is_damaged |= unit.diagnostics.iter().any(|(what, ..)| what.severity() == Severity::DataLoss);
        if let Some(lead) = unit.lead.take() {
            self.pending = Some(join_losses(self.pending.take(), lead));
        }
        let last = unit.last?;
        let lost = self.lose(unit.items.first_mut());
        let (cpu, unwanted, before) = (self.pages.cpu, self.unwanted, self.frontier);
        let watch_on = |task: &Unfinished| T::watch_on(cpu, unwanted, *task, before, &mut unit.items);
        self.unfinished = self.unfinished.take().filter(watch_on).or(unit.unfinished);
        let mut backwards = 0u64;
        for item in unit.items.iter_mut().take_while(|item| item.ts() < before) {
            item.set_ts(before);
            backwards = backwards.saturating_add(1);
        }
        if self.started {
            diagnostics.add_many(FileIssue::TimeBackwards, backwards);
        }
        self.started = true;
        self.note_offline(last, unit);
        self.frontier = last.max(before);
        self.pending = unit.tail;
        lost
    }

    /// In a part of a trace: adds the times at which the CPU went offline to a unit that goes on behind them, until `last`.
    fn note_offline<T: Timed>(&self, last: Ts, unit: &mut Unit<T>) {
        let noted = self.pages.offline.iter().flatten().filter(|ts| self.frontier <= **ts && **ts < last);
        for ts in noted {
            if let Some(item) = T::concluded(self.pages.cpu, *ts, Behind::Offline) {
                let place = unit.items.partition_point(|item| item.ts() <= *ts);
                unit.items.insert(place.min(unit.items.len()), item);
            }
        }
    }

    /// Ends the last unit. Where the data are cut, or the recorder did not read the last events, the later state of the CPU
    /// is unknown. May yield an item.
    pub(crate) fn end<T: Timed>(&mut self) -> Option<T> {
        if self.pages.is_cut {
            self.pending = Some(join_losses(self.pending.take(), Loss { count: None }));
        } else if self.pages.unread > 0 {
            self.pending = Some(join_losses(self.pending.take(), Loss { count: Some(self.pages.unread) }));
        }
        if !self.started {
            return None;
        }
        let mut lost = self.lose(None);
        if let Some(offline) = &self.pages.offline {
            let is_at_end = offline.last().is_some_and(|ts| *ts >= self.frontier);
            let offline = || T::concluded(self.pages.cpu, self.frontier, Behind::Offline).filter(|_| is_at_end);
            lost = lost.or_else(offline);
        }
        let (cpu, ts) = (self.pages.cpu, self.frontier);
        lost.or_else(|| self.unfinished.take().and_then(|task| T::concluded(cpu, ts, task.behind)))
    }

    /// Behind the last unit: whether the recorder counted more records than there were.
    pub(crate) fn note_unwritten(&self, diagnostics: &mut Diagnostics) {
        if !self.from_middle {
            self.pages.note_unwritten(self.records, self.marked, self.is_damaged, diagnostics);
        }
    }

    /// The loss between the last record and `next`.
    fn lose<T: Timed>(&mut self, next: Option<&mut T>) -> Option<T> {
        let loss = self.pending.take()?;
        self.unfinished = None;
        // A loss before the first unit that is read belongs to the reader of the one before that.
        if self.from_middle && !self.started {
            return None;
        }
        T::after_gap(self.pages.cpu, self.frontier, loss, next)
    }
}

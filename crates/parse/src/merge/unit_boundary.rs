//! The boundaries between the units of a CPU: they decode independently of one another, and are joined here.

use crate::decode::cpu_offline::{Behind, Unfinished};
use crate::issue::FileIssue;
use crate::ring::page::Loss;
use crate::ring::unit::{CpuPages, Marked, Unit, join_losses};
use sched::{Cpu, Diagnostics, Severity, Ts};

/// An item with a time that a CPU recorded, which the merge can put in order. The hooks without a receiver are called at the
/// boundaries between the units of a CPU, in the order of the units.
pub(crate) trait Timed: Clone + Send + Sync {
    /// Returns the time of the item. The merge reads it often and expects it to stay as it is.
    fn ts(&self) -> Ts;
    /// Sets the time. Called before the merge for the items of a unit that are earlier than the last record of the unit before.
    fn set_ts(&mut self, ts: Ts);
    /// Notes a loss between two units, or behind the last one: `before` is the time of the CPU's last record, and `next` the item
    /// that follows, if one does. An item that is returned is merged before `next`, and must have the time `before`.
    fn after_gap(cpu: Cpu, before: Ts, loss: Loss, next: Option<&mut Self>) -> Option<Self>
    where
        Self: Sized;
    /// Goes on with watching a task that was current on a CPU at `last`, through the items of the next unit; the scheduler's
    /// events with the numbers `unwanted` are not among these. May insert items, in order. Returns whether the task may still
    /// be current behind them, so that the next unit has to be watched as well.
    fn watch_on(_cpu: Cpu, _unwanted: &[u16], _task: Unfinished, _last: Ts, _items: &mut Vec<Self>) -> bool
    where
        Self: Sized,
    {
        false
    }
    /// Called where the merge concludes that a CPU is offline, or unknown, from `ts` on, which no record shows. An item that is
    /// returned is merged, and must have the time `ts`.
    fn concluded(_cpu: Cpu, _ts: Ts, _behind: Behind) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }
}

/// The boundary at which the next unit of a CPU joins those before.
#[derive(Debug)]
pub(crate) struct UnitBoundary<'p> {
    pages: &'p CpuPages,
    /// Numbers of the scheduler's events that are not decoded, for [`Timed::watch_on`].
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
    /// Whether a record could not be read.
    is_damaged: bool,
}

impl<'p> UnitBoundary<'p> {
    /// Returns the boundary before the unit number `first` of `pages`, in a trace that begins at `start`.
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

    /// Adds the times at which the CPU went offline, as the note of a part of a trace has them, to a unit that goes on
    /// behind them, until `last`.
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

    /// Notes that the recorder counted more records than the CPU has. The caller has passed all units.
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

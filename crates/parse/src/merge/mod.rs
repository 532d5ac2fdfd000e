//! The pages of all CPUs, as items in time order, in bounded memory.
//!
//! Each round decodes several units (see [`crate::ring::unit`]), in parallel. The time of the last record
//! that a CPU has delivered is its *frontier*; what it delivers later is not earlier. The smallest
//! frontier of all CPUs that are not at their end is the *watermark*: every item before it is known,
//! and is merged and passed on, as is every item at it of the first CPU that holds it, and of those before that one,
//! which are past it: however many events a file has at one time, they do not pile up. The CPU that holds the
//! watermark is decoded in every round, so every round makes progress.
//!
//! The order is (time, CPU, buffer, position in the file). It depends on the data alone: neither
//! on the number of threads nor on the budget, which only decide how far ahead is decoded.
//!
//! *Memory.* The next round is chosen before the last one is merged, to be decoded meanwhile. A CPU
//! gets a further unit while it holds the watermark, or while fewer than [`AHEAD`] of its units
//! will be left by that merge. Therefore at most `AHEAD` × CPUs + 2 × budget units are held, and the batches
//! that wait. Where units have many items, a round has fewer units ([`ROUND`]).
//!
//! *Loss.* The kernel marks a loss on the page behind the gap, but the gap begins at the last
//! event before it, on an earlier page. That event is still held when the mark is seen: it is
//! merged only when its CPU's frontier has moved past it.
//!
//! *Threads.* With one thread all happens on it. With more, decoding and merging run ahead of
//! the consumer of the items, on a thread of its own, by at most [`QUEUED`] batches. The next round can be
//! decoded while the last is merged: with two threads by an idle consumer, with more on the pool.
//! A batch has copies of its items, one behind the other: looked at where they were decoded to, hundreds of
//! places in turn, each would have to be waited for (a quarter of the time of a pass over 256 CPUs).
//!
//! *The order* of a round is found by sorting its times (see [`crate::merge::order`]). A heap of the lanes, a tree of
//! winners, and sorting by comparisons take a quarter longer for a pass over 256 CPUs, and none is faster of 16.

mod helper;
mod order;
pub(crate) mod unit_boundary;

use crate::merge::helper::SharedWork;
use crate::merge::order::OrderFinder;
use crate::merge::unit_boundary::{Timed, UnitBoundary};
use crate::parallel::{Pool, parallel_by};
use crate::ring::unit::{CpuPages, Unit};
use sched::pass::{Batch, BatchSink, SendSink, in_turn, lending};
use sched::{Diagnostics, Ts};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::Thread;

/// Units of a CPU that may wait to be merged before it has to wait for the others.
const AHEAD: usize = 2;

/// Bytes that a unit usually has at most; larger ones count as several.
const UNIT: u64 = 64 << 10;

/// Items that a round decodes at most, about: events of 16 bytes take four times as much memory as usual ones.
const ROUND: usize = 1 << 17;

/// Items that a unit of [`UNIT`] bytes is taken to have before any was decoded: as many as it can have.
const MOST_OF_UNIT: usize = 1 << 12;

/// Batches that may wait to be looked at.
const QUEUED: usize = 16;

/// Maximum number of threads that decode a round. One thread merges, at about half the price of decoding an item of a file that is not
/// compressed; further threads would only look for work.
const DECODERS: usize = 6;

/// Items in a batch. Each is a wakeup, where there are threads: with 1,024 a pass over 256 CPUs took a tenth longer.
const BATCH: usize = 4096;

struct MergeLane<'t, T> {
    pages: &'t CpuPages,
    buffer: usize,
    next: usize,
    ready: VecDeque<Ready<T>>,
    /// The boundary at which the next unit joins those before.
    boundary: UnitBoundary<'t>,
    /// The time that its last unit covered: how far the next will probably reach.
    stride: i64,
}

/// A decoded unit that waits to be merged, from its item `next` on; up to `until` in this round.
struct Ready<T> {
    items: Vec<T>,
    next: usize,
    until: usize,
}

impl<T: Timed> Ready<T> {
    fn new(items: Vec<T>) -> Ready<T> {
        Ready { items, next: 0, until: 0 }
    }

    /// Takes what of it is earlier than `watermark` into this round.
    fn take_before(&mut self, watermark: Ts) {
        let rest = self.items.get(self.next..).unwrap_or_default();
        let is_before = |item: &T| item.ts() < watermark;
        // Most often all of it, or the first few that will be needed anyway: halving would wait for others.
        let all = rest.last().is_none_or(is_before);
        let count = if all { rest.len() } else { rest.iter().take_while(|item| is_before(item)).count() };
        self.until = self.next.saturating_add(count);
    }

    /// The units of this round.
    fn taken(&self) -> &[T] {
        self.items.get(self.next..self.until).unwrap_or_default()
    }
}

impl<T: Timed> MergeLane<'_, T> {
    fn is_exhausted(&self) -> bool {
        self.next >= self.pages.units()
    }

    /// Returns how many units will still wait when all events before `end` are merged.
    fn left_at(&self, end: Ts) -> usize {
        let waits = |unit: &&Ready<T>| unit.items.last().is_some_and(|item| item.ts() >= end);
        let left = self.ready.iter().rev().take_while(waits).count();
        left.saturating_mul(self.cost(self.next.saturating_sub(1)))
    }

    /// Returns the number of units of the usual size that this one counts as.
    fn cost(&self, unit: usize) -> usize {
        self.pages.bytes_of(unit).div_ceil(UNIT).max(1) as usize
    }

    /// Takes all before `watermark` into this round.
    fn take_before(&mut self, watermark: Ts) {
        for unit in &mut self.ready {
            unit.take_before(watermark);
            if unit.until < unit.items.len() {
                // The following items are not earlier.
                return;
            }
        }
    }

    /// Ends the round. The memory of units of which nothing is left goes to `spare`.
    fn pass(&mut self, spare: &mut Vec<Vec<T>>) {
        while let Some(unit) = self.ready.front_mut() {
            unit.next = unit.until;
            if unit.next < unit.items.len() {
                return;
            }
            spare.extend(self.ready.pop_front().map(|unit| unit.items));
        }
    }

    /// Takes over the decoded unit number `number`.
    fn accept(&mut self, number: usize, mut unit: Unit<T>, diagnostics: &mut Diagnostics) {
        self.next = number.saturating_add(1);
        let before = self.boundary.frontier();
        let lost = self.boundary.join(&mut unit, diagnostics);
        self.add(lost);
        if unit.last.is_some() {
            self.stride = self.boundary.frontier().0.saturating_sub(before.0);
            self.ready.push_back(Ready::new(unit.items));
        }
        if self.is_exhausted() {
            let behind = self.boundary.end();
            self.add(behind);
        }
    }

    fn add(&mut self, item: Option<T>) {
        self.ready.extend(item.map(|item| Ready::new(vec![item])));
    }
}

/// Streams the items of all lanes, each from a unit of it on, merged, to `first` and each of the `others`,
/// until all have broken. With threads each has its own, and the slowest sets the pace.
/// `start` is the time of the earliest record.
pub(crate) fn merge<'t, T: Timed>(
    lanes: &[(usize, &'t CpuPages, usize)],
    start: Ts,
    budget: usize,
    pool: &Pool,
    decode: impl Fn(UnitTask<'t, T>) -> Unit<T> + Sync,
    first: &mut BatchSink<'_, T>,
    others: &mut [&mut SendSink<'_, T>],
) -> Diagnostics {
    let merger = Merger::new(lanes, start, budget);
    let mut is_whole = true;
    let first: &mut BatchSink<'_, T> = &mut |batch| {
        let flow = first(batch);
        is_whole &= flow.is_continue();
        flow
    };
    let decode = |task: UnitTask<'t, T>| Decoded { lane: task.lane, number: task.unit, unit: decode(task) };
    let Some(threads) = pool.as_ref().map(|pool| pool.current_num_threads()) else {
        let found = merge_alone(merger, decode, in_turn(&mut lending(first), others));
        return found.all(is_whole);
    };
    let reader = std::thread::current();
    let shared = &SharedWork::new(reader.clone());
    // One of two threads consumes the items: a further one would only take its core away.
    let decode_beside = |tasks: Vec<UnitTask<'t, T>>, merge: &mut Merge<'_>| match threads {
        0..=2 => shared.beside(tasks, decode, merge),
        _ => beside(merge, || parallel_by(pool, DECODERS, tasks, decode)),
    };
    let found = std::thread::scope(|scope| {
        let (send, batches) = sync_channel::<Arc<Vec<T>>>(QUEUED);
        let mut sends = vec![send];
        for sink in others {
            let (send, batches) = sync_channel::<Arc<Vec<T>>>(QUEUED);
            sends.push(send);
            scope.spawn(move || batches.iter().try_for_each(|batch| sink(&batch)));
        }
        let ahead = scope.spawn(move || {
            let mut readers = Readers { sent: VecDeque::new(), sends, first: reader };
            merger.run(decode_beside, |batch| readers.send(batch))
        });
        look(&batches, first, || shared.one(decode));
        // Without a receiver the thread that reads ahead ends.
        drop(batches);
        // Decoding does not panic. If it did, the panic is passed on, not swallowed.
        ahead.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    found.all(is_whole)
}

/// The findings on the way.
#[derive(Default)]
struct MergeFindings {
    diagnostics: Diagnostics,
    /// The findings on the whole alone. If the consumer breaks off, the amount that was read depends on the threads.
    of_all: Diagnostics,
}

impl MergeFindings {
    fn all(mut self, is_whole: bool) -> Diagnostics {
        if is_whole {
            self.diagnostics.merge(&self.of_all);
        }
        self.diagnostics
    }
}

/// Merges with one thread, which decodes and merges and looks in turn.
fn merge_alone<'t, T: Timed>(
    merger: Merger<'t, T>,
    decode: impl Fn(UnitTask<'t, T>) -> Decoded<T>,
    mut sink: impl FnMut(&[T]) -> ControlFlow<()>,
) -> MergeFindings {
    let decode_after = |tasks: Vec<UnitTask<'t, T>>, merge: &mut Merge<'_>| {
        merge().is_continue().then(|| tasks.into_iter().map(&decode).collect())
    };
    merger.run(decode_after, |batch| {
        let flow = sink(batch);
        batch.clear();
        flow
    })
}

/// Merges the known items, until the receiver breaks.
type Merge<'m> = dyn FnMut() -> ControlFlow<()> + 'm;

/// The results of `work`, which is done on another thread meanwhile; none if the merge breaks.
fn beside<O: Send>(merge: &mut Merge<'_>, work: impl FnOnce() -> O + Send) -> Option<O> {
    std::thread::scope(|scope| {
        let ahead = scope.spawn(work);
        let more = merge();
        let done = ahead.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        more.is_continue().then_some(done)
    })
}

/// Shows batches to `sink` until it breaks or no more come, and helps while there are none. While there is nothing
/// to help with either it sleeps: the thread with work for it unparks it.
fn look<T>(batches: &Receiver<Arc<Vec<T>>>, sink: &mut BatchSink<'_, T>, help: impl Fn() -> bool) {
    loop {
        match batches.try_recv() {
            Ok(batch) if sink(Batch::shared(&batch)).is_continue() => {}
            Err(TryRecvError::Empty) if help() => {}
            Err(TryRecvError::Empty) => std::thread::park(),
            Ok(_) | Err(TryRecvError::Disconnected) => return,
        }
    }
}

/// The consumers that look at the batches on threads of their own.
struct Readers<T> {
    /// The sent batches. Once a batch is consumed, its memory is used again.
    sent: VecDeque<Arc<Vec<T>>>,
    /// The channel to each consumer that still looks.
    sends: Vec<SyncSender<Arc<Vec<T>>>>,
    /// The one of them that [`look`]s.
    first: Thread,
}

impl<T> Drop for Readers<T> {
    fn drop(&mut self) {
        self.sends.clear();
        self.first.unpark();
    }
}

impl<T> Readers<T> {
    /// Sends a batch, and leaves memory for the next.
    fn send(&mut self, batch: &mut Vec<T>) -> ControlFlow<()> {
        let sent = Arc::new(std::mem::take(batch));
        self.sends.retain(|send| send.send(Arc::clone(&sent)).is_ok());
        self.first.unpark();
        self.sent.push_back(sent);
        if self.sent.front().is_some_and(|sent| Arc::strong_count(sent) == 1) {
            *batch = self.sent.pop_front().and_then(Arc::into_inner).unwrap_or_default();
            batch.clear();
        }
        if self.sends.is_empty() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// The watermark of all lanes: items that are decoded later are not earlier, and at this time not of an earlier lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Watermark {
    ts: Ts,
    /// The first lane that has not been decoded beyond this time.
    lane: usize,
}

impl Watermark {
    /// The time before which the items of a lane can be merged.
    fn end_of(self, lane: usize) -> Ts {
        if lane <= self.lane { Ts(self.ts.0.saturating_add(1)) } else { self.ts }
    }
}

/// The lanes, and the state of their merge.
struct Merger<'t, T> {
    lanes: Vec<MergeLane<'t, T>>,
    start: Ts,
    budget: usize,
    /// The number of items of a unit of the usual size, in the latest round.
    density: usize,
    /// The memory of units that have been passed on, to be used again.
    spare: Vec<Vec<T>>,
    order: OrderFinder,
    /// The next batch to pass on.
    batch: Vec<T>,
}

impl<'t, T: Timed> Merger<'t, T> {
    fn new(lanes: &[(usize, &'t CpuPages, usize)], start: Ts, budget: usize) -> Merger<'t, T> {
        let lane = |(buffer, pages, first): &(usize, &'t CpuPages, usize)| MergeLane {
            pages,
            buffer: *buffer,
            next: *first,
            ready: VecDeque::new(),
            // All of the state's events are decoded where CPUs are merged.
            boundary: UnitBoundary::new(pages, *first, start, &[]),
            stride: 0,
        };
        let mut lanes: Vec<MergeLane<'t, T>> = lanes.iter().map(lane).collect();
        lanes.sort_by_key(|lane| (lane.pages.cpu, lane.buffer));
        let (spare, order, batch) = (Vec::new(), OrderFinder::default(), Vec::new());
        Merger { lanes, start, budget, density: MOST_OF_UNIT, spare, order, batch }
    }

    /// Decodes and merges, round by round; `decode` may do its part beside the merge, or after it. `pass_on` gets
    /// the items in order, in batches, and empties these.
    fn run(
        mut self,
        decode: impl Fn(Vec<UnitTask<'t, T>>, &mut Merge<'_>) -> Option<Vec<Decoded<T>>>,
        mut pass_on: impl FnMut(&mut Vec<T>) -> ControlFlow<()>,
    ) -> MergeFindings {
        let MergeFindings { mut diagnostics, mut of_all } = MergeFindings::default();
        let start = Some(Watermark { ts: self.start, lane: 0 });
        let mut units = decode(self.round(start), &mut || ControlFlow::Continue(())).unwrap_or_default();
        loop {
            let (mut items, mut cost) = (0_usize, 0_usize);
            for Decoded { lane, number, unit } in units {
                if let Some(lane) = self.lanes.get_mut(lane) {
                    items = items.saturating_add(unit.items.len());
                    cost = cost.saturating_add(lane.cost(number));
                    lane.accept(number, unit, &mut diagnostics);
                }
            }
            self.density = items.checked_div(cost).unwrap_or(self.density);
            let lanes = self.lanes.iter().enumerate().filter(|(_, lane)| !lane.is_exhausted());
            let watermark = lanes.map(|(index, lane)| Watermark { ts: lane.boundary.frontier(), lane: index }).min();
            let next = self.round(watermark);
            units = match decode(next, &mut || self.drain(watermark, &mut pass_on)) {
                Some(decoded) if watermark.is_some() => decoded,
                _ => break,
            };
        }
        // The last batch is not full. After a break there is none.
        if !self.batch.is_empty() {
            let _ = pass_on(&mut self.batch);
        }
        self.lanes.iter().for_each(|lane| lane.boundary.note_unwritten(&mut of_all));
        MergeFindings { diagnostics, of_all }
    }

    /// Memory for the items of a unit.
    fn space(&mut self) -> Vec<T> {
        let mut items = self.spare.pop().unwrap_or_default();
        items.clear();
        items
    }

    /// The units of the next round, to be decoded while all before `watermark` is merged.
    fn round(&mut self, watermark: Option<Watermark>) -> Vec<UnitTask<'t, T>> {
        let left_of =
            |(index, lane): (usize, &MergeLane<'t, T>)| watermark.map_or(0, |w| lane.left_at(w.end_of(index)));
        let left: Vec<usize> = self.lanes.iter().enumerate().map(left_of).collect();
        let held: usize = left.iter().sum();
        let budget = self.budget.min(ROUND / self.density.max(1)).max(1);
        let room = self.lanes.len().saturating_mul(AHEAD).saturating_add(budget).saturating_sub(held);
        let picked = pick(&self.lanes, &left, budget.min(room));
        let task = |(index, unit): (usize, usize)| {
            let space = self.space();
            let MergeLane { buffer, pages, .. } = self.lanes.get(index)?;
            Some(UnitTask { lane: index, buffer: *buffer, pages, unit, space })
        };
        picked.into_iter().filter_map(task).collect()
    }

    /// Merges the items before the watermark: finds their order, and passes them on.
    fn drain(
        &mut self,
        watermark: Option<Watermark>,
        pass_on: &mut impl FnMut(&mut Vec<T>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let Merger { lanes, spare, order, batch, .. } = self;
        for (index, lane) in lanes.iter_mut().enumerate() {
            lane.take_before(watermark.map_or(Ts(i64::MAX), |watermark| watermark.end_of(index)));
        }
        let units = lanes.iter().flat_map(|lane| &lane.ready);
        let stretches: Vec<&[T]> = units.map(Ready::taken).filter(|taken| !taken.is_empty()).collect();
        let mut ordered = order.of(&stretches);
        loop {
            batch.reserve_exact(BATCH.saturating_sub(batch.len()));
            if !ordered.fill(batch) {
                break;
            }
            pass_on(batch)?;
        }
        lanes.iter_mut().for_each(|lane| lane.pass(spare));
        ControlFlow::Continue(())
    }
}

/// A unit to be decoded.
pub(crate) struct UnitTask<'t, T> {
    lane: usize,
    pub(crate) buffer: usize,
    pub(crate) pages: &'t CpuPages,
    pub(crate) unit: usize,
    /// An empty vector for the items, whose memory was used before and is used again.
    pub(crate) space: Vec<T>,
}

/// A decoded unit with its place in the lane.
struct Decoded<T> {
    lane: usize,
    number: usize,
    unit: Unit<T>,
}

/// Chooses the units of a round: again and again the next one of the CPU that will probably be
/// the furthest behind.
fn pick<T: Timed>(lanes: &[MergeLane<'_, T>], left: &[usize], budget: usize) -> Vec<(usize, usize)> {
    let mut heap: BinaryHeap<Reverse<(Ts, usize, usize)>> = lanes
        .iter()
        .enumerate()
        .filter(|(_, lane)| !lane.is_exhausted())
        .map(|(index, lane)| Reverse((lane.boundary.frontier(), index, lane.next)))
        .collect();
    let (mut picked, mut cost) = (Vec::new(), 0usize);
    while let Some(Reverse((frontier, index, unit))) = heap.pop() {
        let Some(lane) = lanes.get(index) else { continue };
        // The first is the CPU that holds the watermark; it must move.
        if !picked.is_empty() && left.get(index).is_some_and(|left| *left >= AHEAD) {
            continue;
        }
        picked.push((index, unit));
        cost = cost.saturating_add(lane.cost(unit));
        if cost >= budget.max(1) {
            break;
        }
        let next = unit.saturating_add(1);
        if next < lane.pages.units() {
            let reach = Ts(frontier.0.saturating_add(lane.stride.max(1)));
            heap.push(Reverse((reach, index, next)));
        }
    }
    picked
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::Endian;
    use crate::file::page_layout::PageLayout;
    use crate::ring::page::Loss;
    use crate::ring::unit::Store;
    use sched::Cpu;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[derive(Clone, Debug, PartialEq)]
    struct Instant(Ts);

    impl Timed for Instant {
        fn ts(&self) -> Ts {
            self.0
        }

        fn set_ts(&mut self, ts: Ts) {
            self.0 = ts;
        }

        fn after_gap(_: Cpu, _: Ts, _: Loss, _: Option<&mut Instant>) -> Option<Instant> {
            None
        }
    }

    /// Events of several CPUs that all have one time, with nothing before it, are merged CPU by CPU, and the amount
    /// decoded ahead stays bounded.
    #[test]
    fn events_of_one_time_do_not_pile_up() {
        const UNITS: usize = 500;
        let layout = PageLayout::new(Endian::Little, 8, 4096);
        let pages = |cpu| CpuPages {
            cpu: Cpu(cpu),
            layout,
            store: Store::Plain { at: 0, size: (UNITS as u64) << 15, unit: 1 << 15 },
            is_cut: false,
            recorded: None,
            overwritten: 0,
            unread: 0,
            offline: None,
        };
        let (a, b, c) = (pages(0), pages(1), pages(2));
        let lanes = [(0, &a, 0), (0, &b, 0), (0, &c, 0)];
        let decoded = AtomicUsize::new(0);
        let decode = |_: UnitTask<'_, Instant>| {
            decoded.fetch_add(1, Ordering::Relaxed);
            Unit { items: vec![Instant(Ts(7)); BATCH], last: Some(Ts(7)), ..Unit::default() }
        };
        let (mut seen, mut ahead) = (0, 0);
        let mut sink = |items: &[Instant]| {
            seen += items.len();
            ahead = ahead.max(decoded.load(Ordering::Relaxed) - seen / BATCH);
            ControlFlow::Continue(())
        };
        merge(&lanes, Ts(7), 8, &None, decode, &mut |batch| sink(batch.items), &mut []);
        assert_eq!(seen, 3 * UNITS * BATCH);
        assert!(ahead <= 3 * AHEAD + 2 * 8, "{ahead} units ahead");
    }

    /// Each stretch of a single CPU is a whole unit: the amount ahead is bounded by items.
    #[test]
    fn a_slow_reader_is_not_run_away_from() {
        const UNITS: usize = 8_000;
        const ITEMS: usize = 750;
        let layout = PageLayout::new(Endian::Little, 8, 4096);
        let store = Store::Plain { at: 0, size: (UNITS as u64) << 15, unit: 1 << 15 };
        let pages = CpuPages {
            cpu: Cpu(0),
            layout,
            store,
            is_cut: false,
            recorded: None,
            overwritten: 0,
            unread: 0,
            offline: None,
        };
        assert_eq!(pages.units(), UNITS);
        let pool = Some(Arc::new(rayon::ThreadPoolBuilder::new().num_threads(2).build().expect("threads")));
        let decoded = AtomicUsize::new(0);
        let decode = |task: UnitTask<'_, Instant>| {
            decoded.fetch_add(1, Ordering::Relaxed);
            let at = |i: usize| Instant(Ts((task.unit * ITEMS + i) as i64));
            Unit { items: (0..ITEMS).map(at).collect(), last: Some(at(ITEMS - 1).0), ..Unit::default() }
        };
        let (mut seen, mut ahead) = (0, 0);
        let mut slow = |items: &[Instant]| {
            if seen % (800 * ITEMS) < items.len() {
                // Long enough to run away in.
                std::thread::sleep(std::time::Duration::from_millis(50));
            }
            seen += items.len();
            ahead = ahead.max(decoded.load(Ordering::Relaxed) - seen / ITEMS);
            ControlFlow::Continue(())
        };
        merge(&[(0, &pages, 0)], Ts(0), 32, &pool, decode, &mut |batch| slow(batch.items), &mut []);
        assert_eq!(seen, UNITS * ITEMS);
        // The rounds at work, and the batches that wait.
        assert!(ahead <= 3 * 32 + QUEUED * (BATCH.div_ceil(ITEMS) + 1), "{ahead} units ahead");
    }
}

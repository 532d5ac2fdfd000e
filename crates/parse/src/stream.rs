//! The pages of all CPUs, as items in time order, in bounded memory.
//!
//! The data of a CPU are cut into *units*: a run of pages, or in a compressed file a chunk. Units
//! decode independently of one another, so each round decodes several in parallel. The time of
//! the last record that a CPU has delivered is its *frontier*; what it delivers later is not
//! earlier. The smallest frontier of all CPUs that are not at their end is the *watermark*: every
//! item before it is known, and is merged and passed on. The CPU that holds the watermark is
//! decoded in every round, so every round makes progress.
//!
//! The order is (time, CPU, buffer, position in the file). It depends on the data alone: neither
//! on the number of threads nor on the budget, which only decide how far ahead is decoded.
//!
//! *Memory.* The next round is chosen before the last one is merged, to be decoded meanwhile. A CPU
//! gets a further unit while it holds the watermark, or while fewer than [`AHEAD`] of its units
//! will be left by that merge. So at most `AHEAD` × CPUs + 2 × budget units are held.
//!
//! *Loss.* The kernel marks a loss on the page behind the gap, but the gap begins at the last
//! event before it, on an earlier page. That event is still held when the mark is seen: it is
//! merged only when its CPU's frontier has moved past it.

use crate::chunk::{self, Chunk, Codec};
use crate::page::{Loss, Page, PageLayout, Raw};
use sched::{Cpu, Diagnostic, Diagnostics, Ts};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::{ControlFlow, Range};

/// Units of a CPU that may wait to be merged before it has to wait for the others.
const AHEAD: usize = 2;

/// The bytes of a unit of uncompressed data, roughly.
const PLAIN_UNIT: u64 = 128 << 10;

/// The data of one CPU in one buffer.
#[derive(Clone, Debug)]
pub(crate) struct CpuPages {
    pub(crate) cpu: Cpu,
    pub(crate) layout: PageLayout,
    pub(crate) store: Store,
}

#[derive(Clone, Debug)]
pub(crate) enum Store {
    Plain { at: u64, size: u64 },
    Chunks { codec: Option<Codec>, chunks: Vec<Chunk> },
}

/// The bytes of a unit: in the file, or decompressed.
pub(crate) enum UnitBytes<'u> {
    File {
        at: usize,
        bytes: &'u [u8],
    },
    Own(&'u [u8]),
    /// It could not be decompressed.
    Bad,
}

impl CpuPages {
    fn stride(&self) -> u64 {
        (self.layout.size as u64).max(1)
    }

    fn unit_size(&self) -> u64 {
        PLAIN_UNIT.div_euclid(self.stride()).max(1).saturating_mul(self.stride())
    }

    /// How many units there are.
    pub(crate) fn units(&self) -> usize {
        match &self.store {
            Store::Plain { size, .. } => size.div_ceil(self.unit_size()) as usize,
            Store::Chunks { chunks, .. } => chunks.len(),
        }
    }

    /// Where a unit stands in the file.
    pub(crate) fn place(&self, unit: usize) -> Range<u64> {
        match &self.store {
            Store::Plain { at, size } => {
                let start = (unit as u64).saturating_mul(self.unit_size()).min(*size);
                let end = start.saturating_add(self.unit_size()).min(*size);
                at.saturating_add(start)..at.saturating_add(end)
            }
            Store::Chunks { chunks, .. } => {
                chunks.get(unit).map_or(0..0, |c| c.at..c.at.saturating_add(c.compressed.into()))
            }
        }
    }

    /// The bytes of a unit; `buffer` is used if they must be decompressed.
    pub(crate) fn load<'u>(&self, file: &'u [u8], unit: usize, buffer: &'u mut Vec<u8>) -> UnitBytes<'u> {
        let place = self.place(unit);
        let Some(bytes) = crate::header::slice(file, &place) else { return UnitBytes::Bad };
        let Store::Chunks { codec, chunks } = &self.store else {
            return UnitBytes::File { at: place.start as usize, bytes };
        };
        let size = chunks.get(unit).map_or(0, |c| c.size as usize);
        match codec.and_then(|codec| chunk::decompress(codec, bytes, size, buffer)) {
            Some(()) => UnitBytes::Own(buffer),
            None => UnitBytes::Bad,
        }
    }
}

/// What is done with the records of a unit.
pub(crate) trait Visitor {
    /// A record; `at` is its payload's place in the bytes of the unit.
    fn record(&mut self, raw: &Raw<'_>);
    /// Records are missing between the last one and the next.
    fn gap(&mut self, loss: Loss);
    /// Something is wrong.
    fn damage(&mut self, what: Diagnostic);
}

/// Shows all records of a unit to a visitor. Pages are independent: a bad one costs itself.
#[inline]
pub(crate) fn walk(bytes: &[u8], layout: &PageLayout, visitor: &mut impl Visitor) {
    for page in bytes.chunks(layout.size.max(1)) {
        let page = match Page::parse(page, layout) {
            Ok(page) => page,
            // A page that the end of the file cuts is no corruption; the cut has been reported.
            Err(_) if page.len() < layout.size => continue,
            Err(_) => {
                visitor.damage(Diagnostic::CorruptPage);
                visitor.gap(Loss { count: None });
                continue;
            }
        };
        if let Some(loss) = page.lost {
            visitor.gap(loss);
        }
        if page.is_empty() {
            continue;
        }
        let mut records = page.records();
        loop {
            match records.next() {
                Ok(Some(raw)) => visitor.record(&raw),
                Ok(None) => break,
                Err(_) => {
                    visitor.damage(Diagnostic::CorruptRecord);
                    visitor.gap(Loss { count: None });
                    break;
                }
            }
        }
    }
}

/// Something with a time, to be merged.
pub(crate) trait Timed: Send {
    fn ts(&self) -> Ts;
    fn set_ts(&mut self, ts: Ts);
    /// Notes a loss at the start of a unit: `before` is the time of the CPU's last record, `next`
    /// what follows. May yield an item of its own.
    fn after_gap(cpu: Cpu, before: Ts, loss: Loss, next: Option<&mut Self>) -> Option<Self>
    where
        Self: Sized;
}

/// A decoded unit.
#[derive(Debug)]
pub(crate) struct Unit<T> {
    pub(crate) items: Vec<T>,
    /// A loss before its first record.
    pub(crate) lead: Option<Loss>,
    /// A loss behind its last record, that no item tells of.
    pub(crate) tail: Option<Loss>,
    /// The time of its last record, item or not.
    pub(crate) last: Option<Ts>,
    pub(crate) diagnostics: Diagnostics,
}

impl<T> Default for Unit<T> {
    fn default() -> Unit<T> {
        Unit { items: Vec::new(), lead: None, tail: None, last: None, diagnostics: Diagnostics::default() }
    }
}

/// Joins two losses without a record between them.
pub(crate) fn join_losses(a: Option<Loss>, b: Loss) -> Loss {
    match a {
        None => b,
        Some(a) => Loss { count: a.count.zip(b.count).map(|(a, b)| a.saturating_add(b)) },
    }
}

struct Lane<'t, T> {
    pages: &'t CpuPages,
    buffer: usize,
    next: usize,
    ready: VecDeque<Ready<T>>,
    frontier: Ts,
    /// The time that its last unit covered: how far the next will probably reach.
    stride: i64,
    pending: Option<Loss>,
    started: bool,
}

/// A decoded unit that waits to be merged, from its item `next` on.
struct Ready<T> {
    items: Vec<T>,
    next: usize,
}

impl<T: Timed> Lane<'_, T> {
    fn is_exhausted(&self) -> bool {
        self.next >= self.pages.units()
    }

    /// The time of its next item. Units without one go to `spare`, emptied.
    fn head(&mut self, spare: &mut Vec<Vec<T>>) -> Option<Ts> {
        while self.ready.front().is_some_and(|unit| unit.next >= unit.items.len()) {
            spare.extend(self.ready.pop_front().map(|mut unit| {
                unit.items.clear();
                unit.items
            }));
        }
        let unit = self.ready.front()?;
        unit.items.get(unit.next).map(T::ts)
    }

    /// How many units will still wait when all before `watermark` is merged.
    fn left_at(&self, watermark: Option<Ts>) -> usize {
        let Some(watermark) = watermark else { return 0 };
        self.ready.iter().rev().take_while(|unit| unit.items.last().is_some_and(|item| item.ts() >= watermark)).count()
    }

    /// Passes on the items of the first unit that are earlier than `limit`.
    fn take(&mut self, limit: Ts, sink: &mut dyn FnMut(&[T]) -> ControlFlow<()>) -> ControlFlow<()> {
        let Some(unit) = self.ready.front_mut() else { return ControlFlow::Continue(()) };
        let rest = unit.items.get(unit.next..).unwrap_or_default();
        let run = rest.iter().take_while(|item| item.ts() < limit).count();
        unit.next = unit.next.saturating_add(run);
        sink(rest.get(..run).unwrap_or_default())
    }

    /// Takes over a decoded unit: times never step back on a CPU.
    fn accept(&mut self, mut unit: Unit<T>, diagnostics: &mut Diagnostics) {
        diagnostics.merge(&unit.diagnostics);
        if let Some(lead) = unit.lead.take() {
            self.pending = Some(join_losses(self.pending.take(), lead));
        }
        if unit.last.is_none() {
            return;
        }
        if let Some(loss) = self.pending.take() {
            let item = T::after_gap(self.pages.cpu, self.frontier, loss, unit.items.first_mut());
            self.ready.extend(item.map(|item| Ready { items: vec![item], next: 0 }));
        }
        let before = self.frontier;
        let mut backwards = 0u64;
        for item in &mut unit.items {
            if item.ts() >= self.frontier {
                break;
            }
            item.set_ts(self.frontier);
            backwards = backwards.saturating_add(1);
        }
        if self.started {
            diagnostics.add_many(Diagnostic::TimeBackwards, backwards);
        }
        self.started = true;
        self.frontier = unit.last.unwrap_or(before).max(before);
        self.stride = self.frontier.0.saturating_sub(before.0);
        self.pending = unit.tail;
        self.ready.push_back(Ready { items: unit.items, next: 0 });
    }
}

/// A pool of threads, or none.
pub(crate) type Pool = Option<std::sync::Arc<rayon::ThreadPool>>;

/// Maps in parallel where there is a pool; the results are in order either way.
pub(crate) fn parallel<I: Send, O: Send>(pool: &Pool, items: Vec<I>, work: impl Fn(I) -> O + Sync) -> Vec<O> {
    use rayon::prelude::*;
    match pool {
        Some(pool) if items.len() > 1 => pool.install(|| items.into_par_iter().map(&work).collect()),
        _ => items.into_iter().map(work).collect(),
    }
}

/// Streams the items of all lanes, each from a unit of it on, merged, to `sink`, until it breaks.
/// `start` is the time of the earliest record.
pub(crate) fn merge<'t, T: Timed>(
    lanes: &[(usize, &'t CpuPages, usize)],
    start: Ts,
    budget: usize,
    pool: &Pool,
    decode: impl Fn(Task<'t, T>) -> Unit<T> + Sync,
    sink: &mut dyn FnMut(&[T]) -> ControlFlow<()>,
) -> Diagnostics {
    let mut diagnostics = Diagnostics::default();
    let mut lanes: Vec<Lane<'t, T>> = lanes
        .iter()
        .map(|(buffer, pages, first)| Lane {
            pages,
            buffer: *buffer,
            next: *first,
            ready: VecDeque::new(),
            frontier: start,
            stride: 0,
            pending: None,
            started: false,
        })
        .collect();
    lanes.sort_by_key(|lane| (lane.pages.cpu, lane.buffer));
    // Of two threads one merges: a second one to decode would only take its core away.
    let beside = &pool.clone().filter(|pool| pool.current_num_threads() > 2);
    // While the items of a round are merged and looked at here, the next round is decoded there.
    std::thread::scope(|scope| {
        let mut spare = Vec::new();
        let mut units = decode_round(round(&lanes, Some(start), budget, &mut spare), pool, &decode);
        loop {
            for (index, number, unit) in units {
                if let Some(lane) = lanes.get_mut(index) {
                    lane.next = number.saturating_add(1);
                    lane.accept(unit, &mut diagnostics);
                }
            }
            let watermark = lanes.iter().filter(|l| !l.is_exhausted()).map(|l| l.frontier).min();
            let next = round(&lanes, watermark, budget, &mut spare);
            let decode = &decode;
            let (more, decoded) = if pool.is_some() {
                let ahead = scope.spawn(move || decode_round(next, beside, decode));
                let more = drain(&mut lanes, watermark, &mut spare, sink);
                // Decoding does not panic. If it did, the panic is passed on, not swallowed.
                (more, ahead.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            } else {
                let more = drain(&mut lanes, watermark, &mut spare, sink);
                let wanted = more.is_continue() && watermark.is_some();
                (more, if wanted { decode_round(next, pool, decode) } else { Vec::new() })
            };
            if more.is_break() || watermark.is_none() {
                return;
            }
            units = decoded;
        }
    });
    diagnostics
}

/// A unit to be decoded.
pub(crate) struct Task<'t, T> {
    lane: usize,
    pub(crate) buffer: usize,
    pub(crate) pages: &'t CpuPages,
    pub(crate) unit: usize,
    /// For the items: empty, and of some use before, so that its memory is at hand.
    pub(crate) space: Vec<T>,
}

/// The units of the next round, to be decoded while all before `watermark` is merged.
fn round<'t, T: Timed>(
    lanes: &[Lane<'t, T>],
    watermark: Option<Ts>,
    budget: usize,
    spare: &mut Vec<Vec<T>>,
) -> Vec<Task<'t, T>> {
    let left: Vec<usize> = lanes.iter().map(|lane| lane.left_at(watermark)).collect();
    let held: usize = left.iter().sum();
    let room = lanes.len().saturating_mul(AHEAD).saturating_add(budget).saturating_sub(held);
    let picked = pick(lanes, &left, budget.min(room));
    let task = |(lane, unit): (usize, usize)| {
        let Lane { buffer, pages, .. } = lanes.get(lane)?;
        Some(Task { lane, buffer: *buffer, pages, unit, space: spare.pop().unwrap_or_default() })
    };
    picked.into_iter().filter_map(task).collect()
}

fn decode_round<'t, T: Send>(
    tasks: Vec<Task<'t, T>>,
    pool: &Pool,
    decode: &(impl Fn(Task<'t, T>) -> Unit<T> + Sync),
) -> Vec<(usize, usize, Unit<T>)> {
    parallel(pool, tasks, |task| (task.lane, task.unit, decode(task)))
}

/// Chooses the units of a round: again and again the next one of the CPU that will probably be
/// the furthest behind.
fn pick<T: Timed>(lanes: &[Lane<'_, T>], left: &[usize], budget: usize) -> Vec<(usize, usize)> {
    let mut heap: BinaryHeap<Reverse<(Ts, usize, usize)>> = lanes
        .iter()
        .enumerate()
        .filter(|(_, lane)| !lane.is_exhausted())
        .map(|(index, lane)| Reverse((lane.frontier, index, lane.next)))
        .collect();
    let mut picked = Vec::new();
    while let Some(Reverse((frontier, index, unit))) = heap.pop() {
        let Some(lane) = lanes.get(index) else { continue };
        // The first is the CPU that holds the watermark; it must move.
        if !picked.is_empty() && left.get(index).is_some_and(|left| *left >= AHEAD) {
            continue;
        }
        picked.push((index, unit));
        if picked.len() >= budget.max(1) {
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

/// Merges what is before the watermark. From the lane with the earliest item all that comes before
/// the earliest of the others is passed on at once, from where it was decoded to.
fn drain<T: Timed>(
    lanes: &mut [Lane<'_, T>],
    watermark: Option<Ts>,
    spare: &mut Vec<Vec<T>>,
    sink: &mut dyn FnMut(&[T]) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let watermark = watermark.unwrap_or(Ts(i64::MAX));
    let mut heap: BinaryHeap<Reverse<(Ts, usize)>> = lanes
        .iter_mut()
        .enumerate()
        .filter_map(|(index, lane)| Some(Reverse((lane.head(spare)?, index))))
        .filter(|Reverse((ts, _))| *ts < watermark)
        .collect();
    while let Some(Reverse((_, index))) = heap.pop() {
        let Some(lane) = lanes.get_mut(index) else { continue };
        // At the same instant the lane with the smaller number goes first.
        let limit = heap.peek().map_or(watermark, |Reverse((ts, rival))| {
            Ts(ts.0.saturating_add(i64::from(index < *rival))).min(watermark)
        });
        let next = loop {
            match lane.head(spare) {
                Some(ts) if ts < limit => lane.take(limit, sink)?,
                head => break head,
            }
        };
        if let Some(ts) = next.filter(|ts| *ts < watermark) {
            heap.push(Reverse((ts, index)));
        }
    }
    ControlFlow::Continue(())
}

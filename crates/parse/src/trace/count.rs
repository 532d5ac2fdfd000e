//! Counting every event of a trace without decoding any: the walk over the pages, and no more.

use crate::decode::plan::CommonAt;
use crate::file::header::RecorderStat;
use crate::issue::FileIssue;
use crate::parallel::parallel;
use crate::ring::page::{Loss, Raw};
use crate::ring::unit::{CpuPages, Marked, Visitor, join_losses};
use crate::trace::Trace;
use sched::event::CleanText;
use sched::{Cpu, Diagnostics, Dur, EventIssue, Ts};
use serde::Serialize;

/// The number of occurrences of an event.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EventCount {
    /// System of the event; empty where the file has no format for it.
    pub system: CleanText,
    /// Name of the event; `event N` where the file has no format for number N.
    pub name: CleanText,
    /// Number of times that the event was recorded, in all buffers.
    pub count: u64,
}

/// The counts of one CPU of one buffer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CpuEventCounts {
    /// Number of the CPU.
    pub cpu: Cpu,
    /// Number of events of the CPU.
    pub events: u64,
    /// Places where events were lost.
    pub gaps: u64,
    /// The places among these whose events neither the mark nor the recorder's statistics count.
    pub gaps_uncounted: u64,
    /// Events lost at these places, as far as the marks count them; where a mark has no number, the recorder's
    /// statistics complete the sum.
    pub lost: u64,
    /// The total length of the gaps: from the last event before to the first event after each.
    pub gap_ns: Dur,
    /// The time of its first event.
    pub first: Option<Ts>,
    /// The time of its last event.
    pub last: Option<Ts>,
}

/// The counts of one buffer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BufferCounts {
    /// Number of events of each kind; the index is the event number.
    pub by_id: Vec<u64>,
    /// Counts of each CPU of the buffer.
    pub cpus: Vec<CpuEventCounts>,
    /// Losses that the pages of each CPU mark, without the recorder's statistics.
    pub(crate) marked: Vec<Marked>,
    /// Whether parts of the data could not be read, for each CPU.
    pub(crate) damaged: Vec<bool>,
}

impl BufferCounts {
    /// Returns the number of events of the buffer.
    pub fn total(&self) -> u64 {
        self.by_id.iter().sum()
    }

    /// Returns the number of events with this event number.
    pub fn of(&self, id: u16) -> u64 {
        self.by_id.get(usize::from(id)).copied().unwrap_or(0)
    }
}

/// The counts of a trace, buffer by buffer, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventCounts {
    /// Counts of each buffer, in the order of the file.
    pub buffers: Vec<BufferCounts>,
    /// The findings on the way.
    pub diagnostics: Diagnostics,
}

/// The counts of a stretch of a CPU's units, to be joined in order.
#[derive(Debug, Default)]
struct Tally {
    by_id: Vec<u64>,
    events: u64,
    marked: Marked,
    gap_ns: u64,
    lead: Option<Loss>,
    pending: Option<Loss>,
    first: Option<u64>,
    /// The time of its last event, where it has a first one.
    last: u64,
    damages: Vec<FileIssue>,
}

struct Counter<'c> {
    tally: Tally,
    trace: &'c Trace,
    cpu: Cpu,
    common: CommonAt,
}

impl Visitor for Counter<'_> {
    #[inline(always)]
    fn record(&mut self, raw: &Raw<'_>) {
        let t = &mut self.tally;
        t.events = t.events.wrapping_add(1);
        if let Some(id) = self.common.id(raw.payload, raw.endian) {
            match t.by_id.get_mut(usize::from(id)) {
                Some(n) => *n = n.wrapping_add(1),
                None => t.first_of(usize::from(id)),
            }
        }
        if t.first.is_none() || t.pending.is_some() {
            t.goes_on(raw.ts, self.cpu, self.trace);
        }
        t.last = raw.ts;
    }

    fn gap(&mut self, loss: Loss) {
        self.tally.pending = Some(join_losses(self.tally.pending.take(), loss));
    }

    fn damage(&mut self, what: FileIssue) {
        self.tally.damages.push(what);
    }
}

impl Tally {
    /// The first event with this number.
    #[cold]
    fn first_of(&mut self, id: usize) {
        self.by_id.resize(id.saturating_add(1), 0);
        if let Some(n) = self.by_id.get_mut(id) {
            *n = 1;
        }
    }

    /// An event at `ts` is the first one, or the first after a loss.
    #[cold]
    fn goes_on(&mut self, ts: u64, cpu: Cpu, trace: &Trace) {
        if let Some(loss) = self.pending.take() {
            if self.first.is_none() {
                self.lead = Some(loss);
            } else {
                self.marked.note(loss);
                let gap = trace.ts(cpu, ts).since(trace.ts(cpu, self.last));
                self.gap_ns = self.gap_ns.saturating_add(gap.0);
            }
        }
        self.first.get_or_insert(ts);
    }
}

impl CpuEventCounts {
    fn marked(&self) -> Marked {
        Marked { places: self.gaps, uncounted: self.gaps_uncounted, events: self.lost }
    }

    fn add(&mut self, more: Marked) {
        let mut marked = self.marked();
        marked.add(more);
        Marked { places: self.gaps, uncounted: self.gaps_uncounted, events: self.lost } = marked;
    }

    /// Completes the events lost at places whose mark has no number, by the recorder's statistics.
    fn complete(&mut self, pages: &CpuPages) {
        let more = pages.overwritten_beyond(self.marked());
        if self.gaps_uncounted > 0 && more > 0 {
            self.lost = self.lost.saturating_add(more);
            self.gaps_uncounted = 0;
        }
    }

    /// Adds the stretch that follows. `pending` is a loss that no event has ended yet.
    fn join(&mut self, t: &Tally, pending: &mut Option<Loss>, trace: &Trace) {
        let cpu = self.cpu;
        let ts = |raw: u64| trace.ts(cpu, raw);
        if let Some(first) = t.first {
            let lead = t.lead.map(|lead| join_losses(*pending, lead)).or(*pending);
            *pending = None;
            if let Some(loss) = lead {
                let mut one = Marked::default();
                one.note(loss);
                self.add(one);
                let begin = || trace.past().map(|past| past.from).or(trace.start());
                let from = self.last.or_else(begin).unwrap_or_else(|| ts(first));
                self.gap_ns += ts(first).since(from);
            }
            self.first.get_or_insert(ts(first));
            self.last = Some(ts(t.last));
        }
        self.events = self.events.saturating_add(t.events);
        self.add(t.marked);
        self.gap_ns += Dur(t.gap_ns);
        if let Some(loss) = t.pending {
            *pending = Some(join_losses(*pending, loss));
        }
    }
}

/// Bytes of file that one task of the pool takes.
const STRETCH: u64 = 2 << 20;

impl Trace {
    /// Returns the number of events that the recorder counted, dropped and overwritten ones included; 0 where it
    /// counted none. In a part of a trace it is the number of the whole trace.
    pub fn recorded(&self) -> u64 {
        let count = |stat: &RecorderStat| {
            let lost = stat.overrun.saturating_add(stat.dropped).saturating_add(stat.commit_overrun);
            stat.recorded.unwrap_or(0).saturating_add(lost)
        };
        let here = self.header.options.stats.iter().map(count).fold(0, u64::saturating_add);
        self.note.as_ref().map_or(here, |note| note.recorded)
    }

    pub(crate) fn count_all(&self) -> EventCounts {
        let mut tasks = Vec::new();
        for (buffer, lanes) in self.lanes().iter().enumerate() {
            for (lane, pages) in lanes.iter().enumerate() {
                let mut from = 0;
                let mut size = 0u64;
                for unit in 0..pages.units() {
                    let place = pages.place(unit);
                    size = size.saturating_add(place.end.saturating_sub(place.start));
                    let next = unit.saturating_add(1);
                    if size >= STRETCH || next == pages.units() {
                        tasks.push((buffer, lane, pages, from..next));
                        (from, size) = (next, 0);
                    }
                }
            }
        }
        let tallies = parallel(self.pool(), tasks, |(buffer, lane, pages, units)| {
            (buffer, lane, pages.cpu, self.tally(pages, units))
        });
        let mut counts =
            EventCounts { buffers: vec![BufferCounts::default(); self.lanes().len()], ..EventCounts::default() };
        let (mut pending, mut damaged) = (None, Vec::new());
        for (buffer, lane, cpu, tally) in tallies {
            if !tally.damages.is_empty() {
                damaged.push((buffer, cpu));
            }
            for damage in &tally.damages {
                counts.diagnostics.add_at(*damage, || format!("CPU {cpu}"));
            }
            let Some(b) = counts.buffers.get_mut(buffer) else { continue };
            if b.by_id.len() < tally.by_id.len() {
                b.by_id.resize(tally.by_id.len(), 0);
            }
            for (to, from) in b.by_id.iter_mut().zip(&tally.by_id) {
                *to = to.saturating_add(*from);
            }
            if b.cpus.len() <= lane {
                b.cpus.push(CpuEventCounts { cpu, ..CpuEventCounts::default() });
                pending = None;
            }
            if let Some(c) = b.cpus.last_mut() {
                c.join(&tally, &mut pending, self);
            }
        }
        let last = || counts.buffers.iter().flat_map(|b| &b.cpus).filter_map(|c| c.last).max();
        let end = self.past().map(|past| past.to).or_else(last);
        for (index, (buffer, lanes)) in counts.buffers.iter_mut().zip(self.lanes()).enumerate() {
            for (counted, pages) in buffer.cpus.iter_mut().zip(lanes) {
                let is_damaged = damaged.contains(&(index, pages.cpu));
                pages.note_unwritten(counted.events, counted.marked(), is_damaged, &mut counts.diagnostics);
                buffer.marked.push(counted.marked());
                buffer.damaged.push(is_damaged);
                if !is_damaged && !pages.is_cut {
                    counted.complete(pages);
                }
                if pages.unread > 0 && !is_damaged {
                    counted.add(Marked { places: 1, uncounted: 0, events: pages.unread });
                    let behind = counted.last.zip(end).map_or(Dur(0), |(last, end)| end.since(last));
                    counted.gap_ns += behind;
                }
                counts.diagnostics.add_many(EventIssue::EventsLost, counted.gaps);
            }
        }
        counts
    }

    fn tally(&self, pages: &CpuPages, units: std::ops::Range<usize>) -> Tally {
        let mut counter = Counter { tally: Tally::default(), trace: self, cpu: pages.cpu, common: *self.common() };
        for unit in units {
            pages.walk(self.source(), unit, &mut counter);
            self.count_read(pages, unit);
        }
        counter.tally
    }

    /// Returns the number of times that each event of the trace occurs, the most frequent first; events that occur as
    /// often are sorted by name.
    pub fn event_counts(&self) -> Vec<EventCount> {
        let counts = self.counts();
        let longest = counts.buffers.iter().map(|b| b.by_id.len()).max().unwrap_or(0);
        let mut events: Vec<EventCount> = (0..longest)
            .filter_map(|id| {
                let id = u16::try_from(id).ok()?;
                let count: u64 = counts.buffers.iter().map(|b| b.of(id)).sum();
                let (system, name) = match self.format(id) {
                    Some(f) => (f.system.clone(), f.name.clone()),
                    None => (CleanText::default(), format!("event {id}").into()),
                };
                (count > 0).then_some(EventCount { system, name, count })
            })
            .collect();
        events.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.cmp(b)));
        events
    }
}

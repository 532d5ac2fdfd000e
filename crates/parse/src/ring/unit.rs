//! The data of a CPU in units, and the walk over the records of a unit.
//!
//! A *unit* is a run of pages, or in a compressed file a chunk. Units decode independently of one
//! another, so several are decoded in parallel; [`crate::merge`] puts them in order.

use crate::bytes::Endian;
use crate::decode::cpu_offline::Unfinished;
use crate::file::chunk::{Chunk, Codec};
use crate::file::page_layout::PageLayout;
use crate::file::source::Source;
use crate::issue::FileIssue;
use crate::ring::page::{Loss, Raw, RingPage};
use crate::ring::records::{UnitEntry, UnitRecords, Units, entries};
use sched::{Cpu, Diagnostics, Ts};
use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::sync::Arc;

/// Number of bytes of uncompressed data in a unit, roughly, where this number of CPUs is merged: the units of all
/// decode to, two of each, shall still be in the cores' common cache when it is merged.
pub(crate) fn plain_unit(cpus: usize) -> u64 {
    ((2 << 20) / cpus.max(1) as u64).min(32 << 10)
}

/// The data of one CPU in one buffer.
#[derive(Clone, Debug)]
pub(crate) struct CpuPages {
    pub(crate) cpu: Cpu,
    pub(crate) layout: PageLayout,
    pub(crate) store: Store,
    /// Whether data are missing at the end, since the file ends before them or is damaged there.
    pub(crate) is_cut: bool,
    /// Number of events that the recorder counted (see [`crate::RecorderStat::recorded`]).
    pub(crate) recorded: Option<u64>,
    /// Number of events that the kernel overwrote, by the recorder's statistics.
    pub(crate) overwritten: u64,
    /// Number of events that the recorder left in the kernel's buffer. They lie behind the last event of the file.
    pub(crate) unread: u64,
    /// The instants at which the CPU went offline, in a part of a trace: they were concluded from all of its events. Nothing
    /// where its own events show them.
    pub(crate) offline: Option<Vec<Ts>>,
}

/// The losses that a CPU's pages mark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marked {
    /// Places where events were lost.
    pub(crate) places: u64,
    /// Places whose mark has no number of events.
    pub(crate) uncounted: u64,
    /// Events lost, as far as the marks count them.
    pub(crate) events: u64,
}

impl Marked {
    /// Adds a mark.
    pub(crate) fn note(&mut self, loss: Loss) {
        self.places = self.places.saturating_add(1);
        match loss.count {
            Some(events) => self.events = self.events.saturating_add(events),
            None => self.uncounted = self.uncounted.saturating_add(1),
        }
    }

    /// Adds the marks of the data that follow.
    pub(crate) fn add(&mut self, other: Marked) {
        self.places = self.places.saturating_add(other.places);
        self.uncounted = self.uncounted.saturating_add(other.uncounted);
        self.events = self.events.saturating_add(other.events);
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Store {
    Plain {
        at: u64,
        size: u64,
        unit: u64,
    },
    Chunks {
        codec: Option<Codec>,
        chunks: Vec<Chunk>,
    },
    /// Records from elsewhere: those of one lane.
    Units {
        source: Arc<dyn Units>,
        lane: usize,
        count: usize,
    },
}

/// Notes the number of events that the recorder counted on a CPU, but that are not in the file.
pub(crate) fn note_unwritten(cpu: u32, events: u64, diagnostics: &mut Diagnostics) {
    let place = || format!("{events} of CPU {cpu} are not in the file");
    diagnostics.add_many_at(FileIssue::EventsDroppedUnmarked, events, place);
}

impl CpuPages {
    /// Notes the events that the recorder's statistics count beyond the `events` that are here and the losses that
    /// are marked. Where the file is damaged that is the reason.
    pub(crate) fn note_unwritten(&self, events: u64, marked: Marked, is_damaged: bool, diagnostics: &mut Diagnostics) {
        if !self.is_cut && !is_damaged {
            let unwritten = self.recorded.unwrap_or(0).saturating_sub(events);
            // The further losses of a CPU with marks without a number are at these marks.
            let unmarked = if marked.uncounted == 0 { self.overwritten_beyond(marked) } else { 0 };
            note_unwritten(self.cpu.0, unwritten.saturating_add(unmarked), diagnostics);
        }
    }

    /// Returns how many more events the kernel overwrote, by the recorder's statistics, than the marks count.
    pub(crate) fn overwritten_beyond(&self, marked: Marked) -> u64 {
        self.overwritten.saturating_sub(marked.events)
    }

    fn stride(&self) -> u64 {
        (self.layout.size as u64).max(1)
    }

    /// A unit is whole pages.
    fn unit_size(&self, bytes: u64) -> u64 {
        bytes.div_euclid(self.stride()).max(1).saturating_mul(self.stride())
    }

    /// Returns the bytes of the data in the file.
    pub(crate) fn data_size(&self) -> u64 {
        match &self.store {
            Store::Plain { size, .. } => *size,
            Store::Chunks { chunks, .. } => {
                chunks.iter().filter(|c| c.start == 0).map(|c| u64::from(c.compressed)).sum()
            }
            Store::Units { source, lane, count } => (0..*count).map(|unit| source.size(*lane, unit)).sum(),
        }
    }

    /// Returns the number of units of the CPU.
    pub(crate) fn units(&self) -> usize {
        match &self.store {
            Store::Plain { size, unit, .. } => size.div_ceil(self.unit_size(*unit)) as usize,
            Store::Chunks { chunks, .. } => chunks.len(),
            Store::Units { count, .. } => *count,
        }
    }

    /// Returns the place of a unit in the file.
    pub(crate) fn place(&self, unit: usize) -> Range<u64> {
        match &self.store {
            Store::Plain { at, size, unit: bytes } => {
                let bytes = self.unit_size(*bytes);
                let start = (unit as u64).saturating_mul(bytes).min(*size);
                let end = start.saturating_add(bytes).min(*size);
                at.saturating_add(start)..at.saturating_add(end)
            }
            Store::Chunks { chunks, .. } => chunks.get(unit).map_or(0..0, Chunk::place),
            Store::Units { source, lane, .. } => 0..source.size(*lane, unit),
        }
    }

    /// The size of a unit, decompressed.
    pub(crate) fn bytes_of(&self, unit: usize) -> u64 {
        match &self.store {
            Store::Plain { unit, .. } => self.unit_size(*unit),
            Store::Chunks { chunks, .. } => chunks.get(unit).map_or(0, |chunk| chunk.length.into()),
            Store::Units { source, lane, .. } => source.size(*lane, unit),
        }
    }

    /// Whether a unit is a further piece of the chunk that the unit before it is a piece of.
    pub(crate) fn is_continued(&self, unit: usize) -> bool {
        match &self.store {
            Store::Plain { .. } | Store::Units { .. } => false,
            Store::Chunks { chunks, .. } => chunks.get(unit).is_some_and(|chunk| chunk.start > 0),
        }
    }

    /// Returns the place in the file of the units `units`, as far as they exist; an empty one where none does.
    pub(crate) fn places(&self, units: Range<usize>) -> Range<u64> {
        let end = units.end.min(self.units());
        if units.start >= end {
            return 0..0;
        }
        self.place(units.start).start..self.place(end.saturating_sub(1)).end
    }

    /// The number of units that hold about this number of bytes; at least one.
    pub(crate) fn units_in(&self, bytes: u64) -> usize {
        bytes.checked_div(self.bytes_of(0)).map_or(1, |units| units.max(1) as usize)
    }

    /// The bytes of a unit, read or decompressed into `buffer`; or its defect.
    pub(crate) fn load<'u>(
        &self,
        source: &'u Source,
        unit: usize,
        buffer: &'u mut Vec<u8>,
    ) -> Result<&'u [u8], FileIssue> {
        let place = self.place(unit);
        let (codec, chunks) = match &self.store {
            Store::Chunks { codec, chunks } => (codec, chunks),
            // The file has become shorter since it was opened, or the disk fails.
            Store::Plain { .. } => return source.read(&place, buffer).ok_or(FileIssue::TruncatedData),
            Store::Units { source, lane, .. } => {
                source.read(*lane, unit, &mut UnitRecords::new(buffer))?;
                return Ok(buffer);
            }
        };
        let (codec, chunk) = codec.zip(chunks.get(unit)).ok_or(FileIssue::CorruptChunk)?;
        COMPRESSED.with_borrow_mut(|compressed| {
            let bytes = source.read(&place, compressed).ok_or(FileIssue::TruncatedData)?;
            chunk.decompress_piece(codec, bytes, buffer).ok_or(FileIssue::CorruptChunk)
        })
    }

    /// Passes the bytes of a unit, or its defect, to `work`, in a buffer of the thread.
    #[inline]
    pub(crate) fn with_bytes<R>(
        &self,
        source: &Source,
        unit: usize,
        work: impl FnOnce(Result<&[u8], FileIssue>) -> R,
    ) -> R {
        let mut buffer = BYTES.take();
        let result = work(self.load(source, unit, &mut buffer));
        if buffer.capacity() <= MOST_KEPT {
            BYTES.set(buffer);
        }
        result
    }

    /// Shows all records of a unit to a visitor.
    #[inline]
    pub(crate) fn walk(&self, source: &Source, unit: usize, visitor: &mut impl Visitor) {
        self.with_bytes(source, unit, |bytes| match bytes {
            Ok(bytes) => self.walk_bytes(bytes, visitor),
            Err(what) => visitor.miss(what),
        });
    }

    /// Shows all records in the bytes of a unit to a visitor.
    #[inline]
    pub(crate) fn walk_bytes(&self, bytes: &[u8], visitor: &mut impl Visitor) {
        match self.store {
            Store::Units { .. } => walk_entries(bytes, self.layout.endian, visitor),
            _ => walk(bytes, &self.layout, visitor),
        }
    }

    /// The stamp of the first record in the bytes of a unit, or of its page.
    pub(crate) fn first_stamp(&self, bytes: &[u8]) -> Option<u64> {
        if let Store::Units { .. } = self.store {
            return entries(bytes, self.layout.endian).find_map(|entry| match entry {
                UnitEntry::Record(raw) => Some(raw.ts),
                UnitEntry::Loss(_) => None,
            });
        }
        let slots = bytes.chunks(self.layout.size.max(1));
        let mut parsed = slots.filter_map(|page| RingPage::parse(page, &self.layout).ok());
        parsed.find(|page| !page.is_empty()).map(|page| page.ts)
    }
}

/// The largest buffer that a thread keeps, in bytes: chunks are larger until they are divided.
const MOST_KEPT: usize = 2 << 20;

thread_local! {
    /// The bytes of the unit that this thread looks at.
    static BYTES: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    /// The compressed bytes of that unit.
    static COMPRESSED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A consumer of the records of one unit, in the order of the file. Where the unit cannot be read at all, `miss` is called alone,
/// without `begin`.
pub(crate) trait Visitor {
    /// Called once before the first record; the unit has this number of bytes, so that memory can be reserved.
    fn begin(&mut self, _bytes: usize) {}
    /// Takes the next record. Its payload is borrowed from the unit, and may be shorter than its event's format.
    fn record(&mut self, raw: &Raw<'_>);
    /// Whether it needs nothing more of the unit.
    #[inline(always)]
    fn is_done(&self) -> bool {
        false
    }
    /// Takes a loss between the record before and the next one, or at an end of the unit.
    fn gap(&mut self, loss: Loss);
    /// Takes a finding about the file.
    fn damage(&mut self, what: FileIssue);
    /// Takes a finding about the file for which an unknown number of records is missing at this place.
    fn miss(&mut self, what: FileIssue) {
        self.damage(what);
        self.gap(Loss { count: None });
    }
}

/// Shows all records of a unit that comes from elsewhere to a visitor.
fn walk_entries(bytes: &[u8], endian: Endian, visitor: &mut impl Visitor) {
    visitor.begin(bytes.len());
    for entry in entries(bytes, endian) {
        match entry {
            UnitEntry::Record(raw) => visitor.record(&raw),
            UnitEntry::Loss(loss) => visitor.gap(loss),
        }
        if visitor.is_done() {
            return;
        }
    }
}

/// Shows all records of a unit to a visitor, as far as that needs them. Pages are independent: a bad one costs itself.
#[inline]
fn walk(bytes: &[u8], layout: &PageLayout, visitor: &mut impl Visitor) {
    match layout.endian {
        Endian::Little => walk_as::<false>(bytes, layout, visitor),
        Endian::Big => walk_as::<true>(bytes, layout, visitor),
    }
}

/// Shows all records of a unit in one byte order to a visitor. The code for each byte order has the processor's
/// registers for itself.
#[inline(never)]
fn walk_as<const BIG: bool>(bytes: &[u8], layout: &PageLayout, visitor: &mut impl Visitor) {
    let endian = if BIG { Endian::Big } else { Endian::Little };
    visitor.begin(bytes.len());
    for page in bytes.chunks(layout.size.max(1)) {
        let page = match RingPage::parse(page, layout) {
            Ok(page) => page,
            // A page that the end of the file cuts is no corruption; the cut has been reported.
            Err(_) if page.len() < layout.size => continue,
            Err(_) => {
                visitor.miss(FileIssue::CorruptPage);
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
            match records.next_as(endian) {
                Ok(Some(raw)) => {
                    visitor.record(&raw);
                    if visitor.is_done() {
                        return;
                    }
                }
                Ok(None) => break,
                Err(_) => {
                    visitor.miss(FileIssue::CorruptRecord);
                    break;
                }
            }
        }
    }
}

/// A decoded unit.
#[derive(Debug)]
pub(crate) struct Unit<T> {
    pub(crate) items: Vec<T>,
    /// A loss before its first record.
    pub(crate) lead: Option<Loss>,
    /// A loss behind its last record, which no item shows.
    pub(crate) tail: Option<Loss>,
    /// The losses that its pages mark.
    pub(crate) marked: Marked,
    /// The time of its last record, item or not.
    pub(crate) last: Option<Ts>,
    /// Number of records of the unit, with and without items.
    pub(crate) records: u64,
    /// The task that is watched and current at the end (see [`crate::decode::cpu_offline`]).
    pub(crate) unfinished: Option<Unfinished>,
    pub(crate) diagnostics: Diagnostics,
}

impl<T> Default for Unit<T> {
    fn default() -> Unit<T> {
        let diagnostics = Diagnostics::default();
        Unit {
            items: Vec::new(),
            lead: None,
            tail: None,
            marked: Marked::default(),
            last: None,
            records: 0,
            unfinished: None,
            diagnostics,
        }
    }
}

/// Joins two losses without a record between them.
pub(crate) fn join_losses(a: Option<Loss>, b: Loss) -> Loss {
    match a {
        None => b,
        Some(a) => Loss { count: a.count.zip(b.count).map(|(a, b)| a.saturating_add(b)) },
    }
}

//! The records of one CPU within a window, put in pages of the ring buffer: those of recordings in other formats have none.

use crate::bytes::Endian;
use crate::file::page_layout::PageLayout;
use crate::ring::page::{Loss, Raw, build};
use crate::ring::records::UnitEntry;
use crate::ring::unit::{Marked, join_losses};
use crate::trace::Trace;
use sched::{Cpu, Ts};

/// Takes the records and losses of a CPU in their order, and gives pages of those in the window.
pub(super) struct RecordWindow<'w> {
    trace: &'w Trace,
    cpu: Cpu,
    from: Ts,
    to: Ts,
    /// The instant of the last record; before the first one that of the trace's start.
    last: Ts,
    is_behind: bool,
    filler: PageFiller,
    /// The number of records in the pages.
    pub(super) events: u64,
    /// The losses that the pages mark, each before a record.
    pub(super) marked: Marked,
    /// A loss that no record has followed yet.
    pending: Option<Loss>,
}

impl<'w> RecordWindow<'w> {
    pub(super) fn new(trace: &'w Trace, cpu: Cpu, layout: PageLayout, from: Ts, to: Ts) -> RecordWindow<'w> {
        let last = trace.start().unwrap_or(Ts::MIN);
        let filler = PageFiller::new(layout);
        RecordWindow {
            trace,
            cpu,
            from,
            to,
            last,
            is_behind: false,
            filler,
            events: 0,
            marked: Marked::default(),
            pending: None,
        }
    }

    /// Whether what follows is behind the window.
    pub(super) fn is_over(&self) -> bool {
        self.is_behind
    }

    /// The pages that are full, which are given once.
    pub(super) fn pages(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.filler.full)
    }

    /// Takes the next record or loss; `payload` is the record's as the file gets it.
    pub(super) fn take(&mut self, entry: UnitEntry<'_>, payload: impl FnOnce(&[u8]) -> Option<Vec<u8>>) {
        match entry {
            UnitEntry::Loss(loss) => self.lose(loss),
            UnitEntry::Record(raw) => self.record(raw, payload),
        }
    }

    /// Events are missing here, if that is in the window.
    pub(super) fn lose(&mut self, loss: Loss) {
        if !self.is_behind && (self.from..=self.to).contains(&self.last) {
            self.pending = Some(join_losses(self.pending, loss));
        }
    }

    fn record(&mut self, raw: Raw<'_>, payload: impl FnOnce(&[u8]) -> Option<Vec<u8>>) {
        let ts = self.trace.ts(self.cpu, raw.ts).max(self.last);
        if self.is_behind || ts > self.to {
            self.is_behind = true;
            return;
        }
        self.last = ts;
        if ts < self.from {
            return;
        }
        let rewritten = payload(raw.payload);
        if !self.filler.fits(rewritten.as_deref().unwrap_or(raw.payload)) {
            self.lose(Loss { count: Some(1) });
            return;
        }
        if let Some(loss) = self.pending.take() {
            self.marked.note(loss);
            self.filler.lose(loss);
        }
        self.filler.record(raw.ts, rewritten.as_deref().unwrap_or(raw.payload));
        self.events = self.events.saturating_add(1);
    }

    /// Ends the data, with a page that marks a loss behind the last record.
    pub(super) fn end(&mut self, is_cut: bool) {
        if is_cut {
            self.lose(Loss { count: None });
        }
        if let Some(loss) = self.pending.take() {
            self.filler.lose(loss);
        }
        self.filler.end();
    }
}

/// Fills pages with records.
struct PageFiller {
    layout: PageLayout,
    /// The stamp of the page, and of the last record.
    begin: u64,
    last: u64,
    data: Vec<u8>,
    /// The loss before the page.
    lost: Option<Loss>,
    full: Vec<Vec<u8>>,
}

/// A delta in the header of a record has 27 bits, one with a further word 59.
const DELTA: u64 = 1 << 27;
const EXTENDED: u64 = 1 << 59;

/// The type of a word that extends the time of the next record.
const TIME_EXTEND: u32 = 30;

impl PageFiller {
    fn new(layout: PageLayout) -> PageFiller {
        PageFiller { layout, begin: 0, last: 0, data: Vec::new(), lost: None, full: Vec::new() }
    }

    /// Room for records, beside that for the number of lost events.
    fn room(&self) -> usize {
        self.layout.capacity().saturating_sub(self.layout.long)
    }

    /// The bytes of a record with its header.
    fn length(payload: &[u8]) -> usize {
        let payload = payload.len().next_multiple_of(4);
        payload.saturating_add(if is_short(payload) { 4 } else { 8 })
    }

    fn fits(&self, payload: &[u8]) -> bool {
        PageFiller::length(payload) <= self.room()
    }

    fn lose(&mut self, loss: Loss) {
        if !self.data.is_empty() {
            self.flush();
        }
        self.lost = Some(join_losses(self.lost, loss));
    }

    fn record(&mut self, stamp: u64, payload: &[u8]) {
        let stamp = stamp.max(self.last);
        let delta = stamp.saturating_sub(self.last);
        let extension = if delta >= DELTA { 8 } else { 0 };
        let length = PageFiller::length(payload).saturating_add(extension);
        if !self.data.is_empty() && (self.data.len().saturating_add(length) > self.room() || delta >= EXTENDED) {
            self.flush();
        }
        let mut delta = delta;
        if self.data.is_empty() {
            (self.begin, delta) = (stamp, 0);
        }
        if delta >= DELTA {
            self.word(TIME_EXTEND, (delta % DELTA) as u32);
            self.layout.endian.put(&mut self.data, delta / DELTA, 4);
            delta = 0;
        }
        let padded = payload.len().next_multiple_of(4);
        if is_short(padded) {
            self.word((padded / 4) as u32, delta as u32);
        } else {
            self.word(0, delta as u32);
            self.layout.endian.put(&mut self.data, padded.saturating_add(4) as u64, 4);
        }
        self.data.extend_from_slice(payload);
        self.data.resize(self.data.len().next_multiple_of(4), 0);
        self.last = stamp;
    }

    /// The first word of an entry. Its bit fields are laid out from the other end on big-endian machines.
    fn word(&mut self, kind: u32, delta: u32) {
        let word = match self.layout.endian {
            Endian::Little => kind | delta << 5,
            Endian::Big => kind << 27 | delta,
        };
        self.layout.endian.put(&mut self.data, word.into(), 4);
    }

    fn flush(&mut self) {
        let begin = if self.data.is_empty() { self.last } else { self.begin };
        self.full.push(build(&self.layout, begin, self.lost.take(), &self.data));
        self.data.clear();
    }

    fn end(&mut self) {
        if !self.data.is_empty() || self.lost.is_some() {
            self.flush();
        }
    }
}

/// Whether the first word of a record has its length, which is a multiple of four.
fn is_short(padded: usize) -> bool {
    (4..=112).contains(&padded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::page::RingPage;

    /// The stamp of a record, with the length and the first byte of its payload.
    type Stamped = (u64, usize, u8);

    /// What each page holds: a loss, and its records.
    fn read(pages: &[Vec<u8>], layout: &PageLayout) -> Vec<(Option<Loss>, Vec<Stamped>)> {
        let page = |bytes: &Vec<u8>| {
            assert_eq!(bytes.len(), layout.size);
            let page = RingPage::parse(bytes, layout).unwrap();
            let mut records = page.records();
            let mut found = Vec::new();
            while let Some(raw) = records.next().unwrap() {
                found.push((raw.ts, raw.payload.len(), raw.payload.first().copied().unwrap_or(0)));
            }
            (page.lost, found)
        };
        pages.iter().map(page).collect()
    }

    #[test]
    fn records_of_any_length_and_distance_are_read_back() {
        for (endian, long) in [(Endian::Little, 8), (Endian::Big, 8), (Endian::Little, 4), (Endian::Big, 4)] {
            let layout = PageLayout::new(endian, long, 256);
            let mut filler = PageFiller::new(layout);
            let lengths = [0usize, 1, 4, 8, 109, 112, 113, 116, 200, 8, 8, 8, 8];
            let mut stamps = vec![7u64, 7, 8, 8 + DELTA - 1];
            while stamps.len() < lengths.len() {
                let last = stamps[stamps.len() - 1];
                let steps = [DELTA, EXTENDED - 1, EXTENDED + 5, 3];
                stamps.push(last + steps[stamps.len() % 4]);
            }
            for ((stamp, length), byte) in stamps.iter().zip(lengths).zip(1u8..) {
                assert!(filler.fits(&vec![byte; length]));
                filler.record(*stamp, &vec![byte; length]);
            }
            filler.end();
            let found: Vec<_> = read(&filler.full, &layout).into_iter().flat_map(|(_, records)| records).collect();
            let expected: Vec<_> = stamps
                .iter()
                .zip(lengths)
                .zip(1u8..)
                .map(|((stamp, length), byte)| (*stamp, length.next_multiple_of(4), if length > 0 { byte } else { 0 }))
                .collect();
            assert_eq!(found, expected, "{endian:?} {long}");
            assert!(!filler.fits(&[0; 240]));
        }
    }

    #[test]
    fn a_loss_begins_a_page_and_has_its_number() {
        let layout = PageLayout::new(Endian::Little, 8, 128);
        let mut filler = PageFiller::new(layout);
        filler.record(5, &[1; 8]);
        filler.lose(Loss { count: Some(3) });
        filler.lose(Loss { count: Some(4) });
        // As many as there is room for beside the number.
        (0..8).for_each(|_| filler.record(9, &[2; 8]));
        filler.lose(Loss { count: None });
        filler.end();
        let found = read(&filler.full, &layout);
        let losses: Vec<_> = found.iter().map(|(loss, records)| (loss.map(|loss| loss.count), records.len())).collect();
        assert_eq!(losses, [(None, 1), (Some(Some(7)), 8), (Some(None), 0)]);
    }
}

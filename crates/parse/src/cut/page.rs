//! The pages of one CPU within a window: whole ones as they are, those at its edges trimmed.

use crate::file::page_layout::PageLayout;
use crate::ring::page::{Loss, RingPage, build};
use crate::ring::unit::{CpuPages, Marked, join_losses};
use crate::trace::Trace;
use sched::Ts;
use std::borrow::Cow;

/// Takes the pages of a CPU in their order, and gives those of the window.
pub(super) struct PageWindow<'w> {
    trace: &'w Trace,
    pages: &'w CpuPages,
    from: Ts,
    to: Ts,
    /// The instant of the last record; before the first one that of the trace's start.
    last: Ts,
    /// Raw stamp of the last record.
    raw: u64,
    /// A record behind the window was met.
    is_behind: bool,
    /// The number of records in the pages given.
    pub(super) events: u64,
    /// The losses that these pages mark, each before a record.
    pub(super) marked: Marked,
    /// A loss that no record has followed yet.
    pending: Option<Loss>,
}

/// The records of a page that are in the window.
struct WindowedRecords {
    /// Number of records of the page that are in the window.
    records: u64,
    /// The first one's place, and the stamp that its delta is added to.
    first: Option<(usize, u64)>,
    /// The end of the last one, where others follow that are behind the window.
    end: usize,
    /// The number of records before the window.
    before: u64,
}

impl<'w> PageWindow<'w> {
    pub(super) fn new(trace: &'w Trace, pages: &'w CpuPages, from: Ts, to: Ts) -> PageWindow<'w> {
        let last = trace.start().unwrap_or(Ts::MIN);
        PageWindow {
            trace,
            pages,
            from,
            to,
            last,
            raw: 0,
            is_behind: false,
            events: 0,
            marked: Marked::default(),
            pending: None,
        }
    }

    /// Whether later pages are behind the window.
    pub(super) fn is_over(&self) -> bool {
        self.is_behind
    }

    /// Whether a loss behind the last record is in the window.
    fn loses_inside(&self) -> bool {
        (self.from..=self.to).contains(&self.last)
    }

    /// A page that marks a loss at the end of the data, if the window has it.
    pub(super) fn end(&mut self) -> Option<Vec<u8>> {
        (self.pages.is_cut && !self.is_behind).then(|| self.missing()).flatten()
    }

    /// A page in place of data that cannot be read, if the window has them.
    pub(super) fn missing(&mut self) -> Option<Vec<u8>> {
        let loss = Loss { count: None };
        self.loses_inside().then(|| self.mark(loss))
    }

    fn mark(&mut self, loss: Loss) -> Vec<u8> {
        self.pending = Some(join_losses(self.pending, loss));
        build(&self.pages.layout, self.raw, Some(loss), &[])
    }

    /// The part of the next page that is in the window.
    pub(super) fn take<'p>(&mut self, bytes: &'p [u8]) -> Option<Cow<'p, [u8]>> {
        let layout = self.pages.layout;
        let page = match RingPage::parse(bytes, &layout) {
            Ok(page) => page,
            Err(_) if bytes.len() < layout.size => return None,
            // It stays as damaged as it is.
            Err(_) => return self.loses_inside().then_some(Cow::Borrowed(bytes)),
        };
        let loses = page.lost.is_some() && self.loses_inside();
        let kept = self.look(&page);
        self.events = self.events.saturating_add(kept.records);
        let is_whole = kept.before == 0 && !self.is_behind;
        if let Some(loss) = page.lost.filter(|_| kept.before == 0 && (kept.records > 0 || loses)) {
            self.pending = Some(join_losses(self.pending, loss));
        }
        if let Some(loss) = self.pending.take_if(|_| kept.records > 0) {
            self.marked.note(loss);
        }
        match kept.first {
            Some(_) if is_whole => Some(whole(bytes, &layout)),
            Some((start, stamp)) => {
                let data = page.data().get(start..kept.end).unwrap_or_default();
                let lost = page.lost.filter(|_| kept.before == 0);
                let (start, stamp) = if kept.before == 0 { (0, page.ts) } else { (start, stamp) };
                let data = page.data().get(start..kept.end).unwrap_or(data);
                Some(Cow::Owned(build(&layout, stamp, lost, data)))
            }
            None if is_whole && loses => Some(whole(bytes, &layout)),
            None => page
                .lost
                .filter(|_| loses && kept.before == 0)
                .map(|lost| Cow::Owned(build(&layout, page.ts, Some(lost), &[]))),
        }
    }

    fn look(&mut self, page: &RingPage<'_>) -> WindowedRecords {
        let size = page.data().len();
        let mut kept = WindowedRecords { records: 0, first: None, end: size, before: 0 };
        let mut records = page.records();
        loop {
            let (place, stamp) = (size.saturating_sub(records.left()), records.stamp());
            // A record that runs past its page is left where it is.
            let Ok(Some(raw)) = records.next() else { return kept };
            let ts = self.trace.ts(self.pages.cpu, raw.ts).max(self.last);
            if ts > self.to {
                (self.is_behind, kept.end) = (true, place);
                return kept;
            }
            (self.last, self.raw) = (ts, raw.ts);
            if ts < self.from {
                kept.before = kept.before.saturating_add(1);
            } else {
                kept.first.get_or_insert((place, stamp));
                kept.records = kept.records.saturating_add(1);
            }
        }
    }
}

/// A page as it is; one that the end of the file cuts is filled up.
fn whole<'p>(bytes: &'p [u8], layout: &PageLayout) -> Cow<'p, [u8]> {
    if bytes.len() >= layout.size {
        return Cow::Borrowed(bytes);
    }
    let mut page = bytes.to_vec();
    page.resize(layout.size, 0);
    Cow::Owned(page)
}

//! The ring buffer of one CPU: packs records into pages.

use crate::ByteOrder;

/// The pages being written. Time stamps are raw. A full page ends by itself; a caller ends a page where a test
/// needs it.
#[derive(Clone, Debug)]
pub struct Ring {
    order: ByteOrder,
    /// `sizeof(long)` of the kernel, in bytes: 4 or 8.
    long: usize,
    page_size: usize,
    pages: Vec<Vec<u8>>,
    data: Vec<u8>,
    begin: u64,
    now: u64,
    lost: Option<Option<u64>>,
}

impl Ring {
    /// Returns an empty ring.
    pub fn new(order: ByteOrder, long: usize, page_size: usize) -> Ring {
        Ring { order, long, page_size, pages: Vec::new(), data: Vec::new(), begin: 0, now: 0, lost: None }
    }

    fn header_size(&self) -> usize {
        8 + self.long
    }

    fn capacity(&self) -> usize {
        self.page_size - self.header_size()
    }

    fn word(&mut self, kind: u32, delta: u32) {
        let word = match self.order {
            ByteOrder::Little => kind | delta << 5,
            ByteOrder::Big => kind << 27 | delta,
        };
        self.order.put(&mut self.data, word.into(), 4);
    }

    /// Makes room for `size` bytes at `ts`: a new page starts at the time of its first event.
    fn room(&mut self, size: usize, ts: u64) {
        if self.data.len() + size > self.capacity() {
            self.end_page();
        }
        if self.data.is_empty() {
            (self.begin, self.now) = (ts, ts);
        }
    }

    /// Appends a record. A step back in time is written as an absolute time stamp.
    pub fn event(&mut self, ts: u64, payload: &[u8]) {
        let mut payload = payload.to_vec();
        payload.resize(payload.len().next_multiple_of(4), 0);
        let body = if payload.len() <= 112 { 4 } else { 8 } + payload.len();
        self.room(8 + body, ts);
        let delta = match ts.checked_sub(self.now) {
            Some(delta) if delta < 1 << 27 => delta as u32,
            Some(delta) => {
                self.word(30, (delta & 0x7ff_ffff) as u32);
                self.order.put(&mut self.data, delta >> 27, 4);
                0
            }
            None => {
                self.word(31, (ts & 0x7ff_ffff) as u32);
                self.order.put(&mut self.data, (ts >> 27) & 0xffff_ffff, 4);
                0
            }
        };
        self.now = ts;
        if payload.len() <= 112 {
            self.word(payload.len() as u32 / 4, delta);
        } else {
            self.word(0, delta);
            self.order.put(&mut self.data, payload.len() as u64 + 4, 4);
        }
        self.data.extend(payload);
    }

    /// Appends a discarded record of `size` bytes in all.
    pub fn discarded(&mut self, ts: u64, size: usize) {
        self.room(size, ts);
        self.word(29, (ts - self.now) as u32);
        self.now = ts;
        self.order.put(&mut self.data, size as u64 - 4, 4);
        self.data.resize(self.data.len() + size - 8, 0xee);
    }

    /// Marks the next page: events were lost before it. The mark has `count`, if it is given.
    pub fn lost(&mut self, count: Option<u64>) {
        self.end_page();
        self.lost = Some(count);
    }

    /// Ends the current page.
    pub fn end_page(&mut self) {
        if self.data.is_empty() {
            return;
        }
        let data = std::mem::take(&mut self.data);
        let mut page = Vec::with_capacity(self.page_size);
        self.order.put(&mut page, self.begin, 8);
        let mut commit = data.len() as u64;
        let mut tail = Vec::new();
        match self.lost.take() {
            Some(Some(count)) if data.len() + self.long <= self.capacity() => {
                commit |= 3 << 30;
                self.order.put(&mut tail, count, self.long);
            }
            Some(_) => commit |= 1 << 31,
            None => {}
        }
        if self.long == 8 && commit >> 31 != 0 {
            // The kernel writes the flag as a sign-extended int.
            commit |= 0xffff_ffff << 32;
        }
        self.order.put(&mut page, commit, self.long);
        page.extend(data);
        page.extend(tail);
        page.resize(self.page_size, 0);
        self.pages.push(page);
    }

    /// Appends a page without interpreting it, such as zeroes or junk.
    pub fn raw_page(&mut self, page: &[u8]) {
        self.end_page();
        let mut page = page.to_vec();
        page.resize(self.page_size, 0);
        self.pages.push(page);
    }

    /// Returns the finished pages.
    pub fn finish(mut self) -> Vec<Vec<u8>> {
        self.end_page();
        self.pages
    }
}

//! Pages of the kernel's ring buffer: the records of each CPU, with the times between them.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

/// The size of a page in bytes.
pub(super) const PAGE: usize = 4096;
/// The bytes before the data of a page: the time of its first record, and the number of bytes of data.
pub(super) const HEAD: usize = 16;
/// The greatest distance of two records, in nanoseconds, for which the word before a record has room.
const NEAR: u64 = 1 << 27;

/// The page of a CPU that is being filled.
#[derive(Clone, Debug, Default)]
struct OpenPage {
    data: Vec<u8>,
    begin: u64,
    now: u64,
    /// The places of the full pages.
    full: Vec<u64>,
}

/// The pages of all CPUs, in a file without a name until each CPU's are read together.
pub(super) struct Pages {
    file: File,
    count: u64,
    cpus: Vec<OpenPage>,
}

impl Pages {
    pub(super) fn new() -> io::Result<Pages> {
        Ok(Pages { file: tempfile::tempfile()?, count: 0, cpus: Vec::new() })
    }

    /// The CPUs with records.
    pub(super) fn cpus(&self) -> Vec<u32> {
        let has_any = |page: &OpenPage| !page.full.is_empty() || !page.data.is_empty();
        (0..).zip(&self.cpus).filter(|(_, page)| has_any(page)).map(|(cpu, _)| cpu).collect()
    }

    /// Appends a record of a CPU. Its records come in the order of time.
    pub(super) fn add(&mut self, cpu: usize, at: u64, record: &[u8]) -> io::Result<()> {
        if cpu >= self.cpus.len() {
            self.cpus.resize_with(cpu + 1, OpenPage::default);
        }
        let size = record.len().next_multiple_of(4);
        // The word before it, and two for a long time since the record before.
        if self.cpus[cpu].data.len() + size + 12 > PAGE - HEAD {
            self.end_page(cpu)?;
        }
        let page = &mut self.cpus[cpu];
        if page.data.is_empty() {
            (page.begin, page.now) = (at, at);
        }
        let mut since = at.saturating_sub(page.now);
        page.now = at;
        if since >= NEAR {
            page.data.extend(word(30, (since % NEAR) as u32));
            page.data.extend(((since / NEAR) as u32).to_ne_bytes());
            since = 0;
        }
        page.data.extend(word(size as u32 / 4, since as u32));
        page.data.extend(record);
        page.data.resize(page.data.len() + size - record.len(), 0);
        Ok(())
    }

    fn end_page(&mut self, cpu: usize) -> io::Result<()> {
        let page = &mut self.cpus[cpu];
        if page.data.is_empty() {
            return Ok(());
        }
        let mut bytes = Vec::with_capacity(PAGE);
        bytes.extend(page.begin.to_ne_bytes());
        bytes.extend((page.data.len() as u64).to_ne_bytes());
        bytes.append(&mut page.data);
        bytes.resize(PAGE, 0);
        page.full.push(self.count);
        self.count += 1;
        self.file.write_all(&bytes)
    }

    /// Ends the open pages.
    pub(super) fn end(&mut self) -> io::Result<()> {
        (0..self.cpus.len()).try_for_each(|cpu| self.end_page(cpu))
    }

    /// Writes the pages of a CPU, and returns their number of bytes.
    pub(super) fn write(&mut self, cpu: u32, out: &mut dyn Write) -> io::Result<u64> {
        let mut bytes = vec![0; PAGE];
        let places = self.cpus.get(cpu as usize).map_or(&[][..], |page| &page.full);
        for place in places {
            self.file.seek(SeekFrom::Start(place * PAGE as u64))?;
            self.file.read_exact(&mut bytes)?;
            out.write_all(&bytes)?;
        }
        Ok(places.len() as u64 * PAGE as u64)
    }
}

/// The word before a record: its kind, or a quarter of its size, and the time since the record before.
fn word(kind: u32, since: u32) -> [u8; 4] {
    (if cfg!(target_endian = "big") { kind << 27 | since } else { kind | since << 5 }).to_ne_bytes()
}

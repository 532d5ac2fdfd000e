//! The data of a CPU, written page by page, or in chunks of compressed pages.

use super::CutFile;
use super::page::PageWindow;
use super::records::RecordWindow;
use super::writer::Writer;
use crate::file::chunk::{self, Codec};
use crate::ring::page::Loss;
use crate::ring::records::entries;
use crate::ring::unit::{CpuPages, Marked, Store};
use sched::Ts;
use std::borrow::Cow;
use std::io::{Result, Seek, Write};

/// The number of pages in a chunk, as in those of recorders.
const PAGES: usize = 10;

/// The written data of a CPU.
pub(super) struct Written {
    pub(super) cpu: u32,
    /// Offset of the data in the written file, in bytes.
    pub(super) at: u64,
    /// Size of the data in the written file, in bytes.
    pub(super) size: u64,
    pub(super) events: u64,
    pub(super) marked: Marked,
}

impl<W: Write + Seek> Writer<'_, W> {
    /// The data of each CPU of the buffers that are read. Others have another clock: no window is theirs.
    pub(super) fn buffer(&mut self, buffer: usize, codec: Option<Codec>) -> Result<Vec<Written>> {
        let is_read = self.trace.selected_buffers().contains(&buffer);
        let lanes = self.trace.lanes().get(buffer).filter(|_| is_read);
        lanes.into_iter().flatten().map(|pages| self.data(pages, codec)).collect()
    }

    /// Writes the data of a CPU that are in a part.
    fn data(&mut self, pages: &CpuPages, codec: Option<Codec>) -> Result<Written> {
        let is_in_pages = !matches!(pages.store, Store::Units { .. });
        self.out.align(if is_in_pages { pages.layout.size } else { self.layout.size })?;
        let at = self.out.at;
        if codec.is_some() {
            self.out.number(0, 4)?;
        }
        let mut chunks = ChunkWriter { codec, pages: Vec::new(), held: 0, count: 0 };
        let (events, marked) =
            if is_in_pages { self.pages(pages, &mut chunks)? } else { self.records(pages, &mut chunks)? };
        chunks.flush(&mut self.out)?;
        if codec.is_some() {
            self.out.patch(at, chunks.count, 4)?;
        }
        let is_empty = self.out.at == at || codec.is_some() && chunks.count == 0;
        let size = if is_empty { 0 } else { self.out.at.saturating_sub(at) };
        Ok(Written { cpu: pages.cpu.0, at, size, events, marked })
    }

    /// Writes the pages of a CPU that are in a part; returns the number of their events, and the losses that they mark.
    fn pages(&mut self, pages: &CpuPages, chunks: &mut ChunkWriter) -> Result<(u64, Marked)> {
        let (trace, past) = (self.trace, self.past);
        let mut window = PageWindow::new(trace, pages, past.from, past.to);
        // The units before the one with the start have no record of the part, as far as the clock does not step back.
        let first = trace.unit_before(pages, Ts(past.from.0.saturating_sub(1)));
        for unit in first..pages.units() {
            if window.is_over() {
                break;
            }
            pages.with_bytes(trace.source(), unit, |bytes| {
                let Ok(bytes) = bytes else {
                    return window.missing().map_or(Ok(()), |page| chunks.add(&page, &mut self.out));
                };
                let taken: Vec<Cow<'_, [u8]>> = bytes
                    .chunks(pages.layout.size.max(1))
                    .map_while(|page| take(&mut window, page))
                    .flatten()
                    .collect();
                chunks.take_unit(UnitPages { pages, unit, bytes }, taken, self)
            })?;
            trace.count_read(pages, unit);
        }
        if let Some(page) = window.end() {
            chunks.add(&page, &mut self.out)?;
        }
        Ok((window.events, window.marked))
    }

    /// Writes the records of a CPU that are in a part, in pages that are made for them; returns as [`Writer::pages`] does.
    fn records(&mut self, pages: &CpuPages, chunks: &mut ChunkWriter) -> Result<(u64, Marked)> {
        let (trace, past, endian) = (self.trace, self.past, self.trace.endian());
        let mut window = RecordWindow::new(trace, pages.cpu, self.layout, past.from, past.to);
        let first = trace.unit_before(pages, Ts(past.from.0.saturating_sub(1)));
        for unit in first..pages.units() {
            if window.is_over() {
                break;
            }
            pages.with_bytes(trace.source(), unit, |bytes| match bytes {
                Ok(bytes) => entries(bytes, endian).for_each(|entry| {
                    window.take(entry, |payload| {
                        self.rewriter.as_mut().map(|rewriter| rewriter.payload(payload, endian))
                    });
                }),
                Err(_) => window.lose(Loss { count: None }),
            });
            for page in window.pages() {
                chunks.add(&page, &mut self.out)?;
            }
            trace.count_read(pages, unit);
        }
        window.end(pages.is_cut && !window.is_over());
        for page in window.pages() {
            chunks.add(&page, &mut self.out)?;
        }
        Ok((window.events, window.marked))
    }
}

/// The next page, as far as it is in the window; nothing behind the window.
fn take<'p>(window: &mut PageWindow<'_>, page: &'p [u8]) -> Option<Option<Cow<'p, [u8]>>> {
    if window.is_over() { None } else { Some(window.take(page)) }
}

/// A unit of a CPU, in the file and in memory.
#[derive(Clone, Copy)]
struct UnitPages<'u> {
    pages: &'u CpuPages,
    unit: usize,
    bytes: &'u [u8],
}

/// Pages on their way into the file.
struct ChunkWriter {
    codec: Option<Codec>,
    /// Bytes of the pages that the next chunk is made of.
    pages: Vec<u8>,
    /// Number of pages in `pages`.
    held: usize,
    /// The number of chunks written.
    count: u64,
}

impl ChunkWriter {
    /// Writes the pages of a unit. A chunk that is whole is copied without being compressed again.
    fn take_unit<W: Write + Seek>(
        &mut self,
        unit: UnitPages<'_>,
        mut taken: Vec<Cow<'_, [u8]>>,
        writer: &mut Writer<'_, W>,
    ) -> Result<()> {
        let UnitPages { pages, unit, bytes } = unit;
        let Writer { trace, rewriter, out, .. } = writer;
        let is_whole = taken.iter().all(|page| matches!(page, Cow::Borrowed(_)))
            && taken.iter().map(|page| page.len()).sum::<usize>() == bytes.len();
        if let (Store::Chunks { chunks, codec }, Some(_), true, None) = (&pages.store, self.codec, is_whole, &rewriter)
            && *codec == self.codec
            && let Some(chunk) = chunks.get(unit).filter(|chunk| chunk.start == 0 && chunk.length == chunk.size)
            && let Some(compressed) = trace.source().get(&chunk.place())
        {
            self.flush(out)?;
            return self.put(&compressed, bytes.len(), out);
        }
        for page in &mut taken {
            if let Some(rewriter) = rewriter {
                rewriter.page(page.to_mut(), &pages.layout);
            }
            self.add(page, out)?;
        }
        Ok(())
    }

    fn add<W: Write + Seek>(&mut self, page: &[u8], out: &mut CutFile<W>) -> Result<()> {
        if self.codec.is_none() {
            return out.bytes(page);
        }
        self.pages.extend_from_slice(page);
        self.held = self.held.saturating_add(1);
        if self.held >= PAGES { self.flush(out) } else { Ok(()) }
    }

    fn flush<W: Write + Seek>(&mut self, out: &mut CutFile<W>) -> Result<()> {
        if let Some(codec) = self.codec.filter(|_| !self.pages.is_empty()) {
            let compressed = chunk::compress(codec, &self.pages)?;
            self.put(&compressed, self.pages.len(), out)?;
        }
        self.pages.clear();
        self.held = 0;
        Ok(())
    }

    fn put<W: Write + Seek>(&mut self, compressed: &[u8], size: usize, out: &mut CutFile<W>) -> Result<()> {
        out.number(compressed.len() as u64, 4)?;
        out.number(size as u64, 4)?;
        out.bytes(compressed)?;
        self.count = self.count.saturating_add(1);
        Ok(())
    }
}

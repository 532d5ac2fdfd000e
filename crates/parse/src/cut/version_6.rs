//! A part as a file of version 6: the tables of the data stand before it, and are filled in at the end.

use super::stats::Stats;
use super::writer::Writer;
use crate::file::header::numbers::{BUFFER, CPU_COUNT, CPU_STATISTICS, TRACE_CLOCK};
use crate::limits::CPU_ROWS;
use std::io::{Result, Seek, Write};

/// File offsets of numbers that are known only when all data are written.
#[derive(Default)]
struct LatePlaces {
    /// The place of the offset of each instance.
    instances: Vec<u64>,
    /// The place of the offset and the size of the note.
    note: u64,
    /// The place of the statistics of each CPU, their room and their text in the whole.
    stats: Vec<(u64, usize, Vec<u8>)>,
}

/// The place of the page size in the first header.
const PAGE_SIZE_AT: u64 = 14;

/// Room for what the statistics of a part take more than those of the whole: three numbers of twenty digits.
const STATISTICS_ROOM: usize = 64;

impl<W: Write + Seek> Writer<'_, W> {
    /// Writes the whole file.
    pub(super) fn version_6(&mut self) -> Result<()> {
        let header = self.trace.header();
        let symbols = header.kallsyms.place();
        if self.is_made {
            self.begin_version_6()?;
        } else if self.without_symbols && !symbols.is_empty() {
            self.copy(0..symbols.start.saturating_sub(4))?;
            self.out.number(0, 4)?;
            self.copy(symbols.end..header.head_end)?;
        } else {
            self.copy(0..header.head_end)?;
        }
        // One size holds for all buffers.
        if let Some(pages) = self.trace.lanes().iter().flatten().next().filter(|_| self.trace.origin().is_none()) {
            self.out.patch(PAGE_SIZE_AT, pages.layout.size as u64, 4)?;
        }
        let names = self.names();
        self.out.number(names.len() as u64, 8)?;
        self.out.bytes(&names)?;
        let most = self.trace.lanes().iter().flatten().map(|pages| pages.cpu.0.saturating_add(1)).max();
        // CPUs that a file only claims have no more rows here than a reader takes.
        let most_rows = CPU_ROWS / (header.buffers.len() as u64).max(1);
        let claimed = u64::from(header.options.cpu_count.unwrap_or(header.cpus)).min(most_rows);
        let rows = u32::try_from(claimed).unwrap_or(0).max(most.unwrap_or(0));
        self.out.number(rows.into(), 4)?;
        let places = self.version_6_options(rows)?;
        let tables = self.tables(rows, &places)?;
        let mut written = Vec::new();
        for (nth, table) in tables.into_iter().enumerate() {
            let data = self.buffer(nth, None)?;
            for row in data.iter().filter(|row| row.size > 0) {
                let place = table.saturating_add(u64::from(row.cpu).saturating_mul(16));
                self.out.patch(place, row.at, 8)?;
                self.out.patch(place.saturating_add(8), row.size, 8)?;
            }
            written.push((nth, data));
        }
        self.out.patch(places.note, self.out.at, 8)?;
        self.out.patch(places.note.saturating_add(8), self.note.len() as u64, 8)?;
        self.out.bytes(self.note)?;
        let mut stats = Stats::new(self.trace, &written, self.past);
        for (place, room, text) in &places.stats {
            let text = self.statistics(&stats.of_part(text));
            self.out.patch_bytes(*place, text.get(..text.len().min(*room)).unwrap_or_default())?;
        }
        Ok(())
    }

    /// Writes the table of each buffer, with room for the places of its data; returns the place of each.
    fn tables(&mut self, rows: u32, places: &LatePlaces) -> Result<Vec<u64>> {
        let header = self.trace.header();
        let mut tables = Vec::new();
        for (nth, buffer) in header.buffers.iter().enumerate() {
            if let Some(place) = nth.checked_sub(1).and_then(|nth| places.instances.get(nth)) {
                self.out.patch(*place, self.out.at, 8)?;
            }
            self.out.bytes(b"flyrecord\0")?;
            tables.push(self.out.at);
            for _ in 0..rows {
                self.out.bytes(&[0; 16])?;
            }
            if self.options.iter().any(|(id, _)| *id == TRACE_CLOCK) {
                let clock = format!("[{}]", self.clock(&buffer.clock));
                self.out.number(clock.len() as u64, 8)?;
                self.out.bytes(clock.as_bytes())?;
            }
        }
        Ok(tables)
    }

    /// Writes the options, with room for what follows from the data.
    fn version_6_options(&mut self, rows: u32) -> Result<LatePlaces> {
        let mut places = LatePlaces::default();
        self.out.bytes(b"options  \0")?;
        let options = std::mem::take(&mut self.options);
        for (id, payload) in &options {
            if *id == CPU_STATISTICS {
                let room = payload.len().saturating_add(STATISTICS_ROOM);
                places.stats.push((self.out.at.saturating_add(6), room, payload.clone()));
                self.out.option(*id, &vec![0; room])?;
            } else if *id == CPU_COUNT {
                let mut count = Vec::new();
                self.trace.endian().put(&mut count, rows.into(), 4);
                self.out.option(*id, &count)?;
            } else if let Some(payload) = self.copied(*id, payload) {
                self.out.option(*id, &payload)?;
            }
        }
        self.options = options;
        for buffer in self.trace.header().buffers.iter().skip(1) {
            places.instances.push(self.out.at.saturating_add(6));
            let payload: Vec<u8> =
                [0; 8].into_iter().chain(self.buffer_name(&buffer.name).bytes()).chain([0]).collect();
            self.out.option(BUFFER, &payload)?;
        }
        places.note = self.out.note_option(false)?;
        self.out.number(0, 2)?;
        Ok(places)
    }
}

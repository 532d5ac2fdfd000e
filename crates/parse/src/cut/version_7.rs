//! A part as a file of version 7: sections, and behind them the options that lead to them.

use super::PART;
use super::data::Written;
use super::stats::Stats;
use super::writer::{SECTION_HEADER, Writer};
use crate::file::header::numbers::{BTF, BUFFER, CPU_STATISTICS, MODULES, NAMES, PAGE, SYMBOLS};
use crate::file::header::{BufferHeader, section_place};
use std::io::{Result, Seek, Write};

/// The parts that are written before the options, whose places the options hold.
struct WrittenParts {
    /// The number and the place of each section with texts.
    sections: Vec<(u16, u64)>,
    /// The payloads of the BUFFER options.
    buffers: Vec<Vec<u8>>,
    /// The data of each buffer.
    written: Vec<(usize, Vec<Written>)>,
}

impl<W: Write + Seek> Writer<'_, W> {
    /// Writes the whole file.
    pub(super) fn version_7(&mut self) -> Result<()> {
        let header = self.trace.header();
        let first_options = if self.is_made {
            self.begin_version_7()?
        } else {
            let first_options = header.head_end.saturating_sub(8);
            self.copy(0..first_options)?;
            first_options
        };
        self.out.number(0, 8)?;
        let sections = if self.is_made { self.made_sections()? } else { self.copy_sections()? };
        let mut written = Vec::new();
        let mut buffers = Vec::new();
        for (nth, buffer) in header.buffers.iter().enumerate() {
            let codec = self.codec.filter(|_| buffer.compressed || self.is_made);
            let at = self.out.at;
            self.out.section_header(BUFFER, codec.is_some(), 0)?;
            let data = self.buffer(nth, codec)?;
            let size = self.out.at.saturating_sub(at.saturating_add(SECTION_HEADER));
            let is_empty = data.iter().all(|row| row.size == 0);
            self.out.patch(at.saturating_add(8), if is_empty { 0 } else { size }, 8)?;
            buffers.push(self.buffer_option(nth, buffer, at, &data));
            written.push((nth, data));
        }
        let note_at = self.out.section(PART, self.note, self.codec)?.saturating_add(SECTION_HEADER);
        let note_size = self.out.at.saturating_sub(note_at);
        let options_at = self.out.at;
        self.version_7_options(WrittenParts { sections, buffers, written }, note_at, note_size)?;
        self.out.patch(first_options, options_at, 8)
    }

    /// Writes the section of the options, which lead to all that was written.
    fn version_7_options(&mut self, tables: WrittenParts, note_at: u64, note_size: u64) -> Result<()> {
        let options_at = self.out.at;
        self.out.section_header(0, false, 0)?;
        for (id, at) in tables.sections {
            let mut payload = Vec::new();
            self.out.endian.put(&mut payload, at, 8);
            self.out.option(id, &payload)?;
        }
        let mut stats = Stats::new(self.trace, &tables.written, self.past);
        let options = std::mem::take(&mut self.options);
        for (id, payload) in &options {
            if *id == CPU_STATISTICS {
                let text = self.statistics(&stats.of_part(payload));
                self.out.option(*id, &text)?;
            } else if let Some(payload) = self.copied(*id, payload) {
                self.out.option(*id, &payload)?;
            }
        }
        for payload in tables.buffers {
            self.out.option(BUFFER, &payload)?;
        }
        let place = self.out.note_option(self.codec.is_some())?;
        self.out.patch(place, note_at, 8)?;
        self.out.patch(place.saturating_add(8), note_size, 8)?;
        self.out.option(0, &[0; 8])?;
        self.out.patch(
            options_at.saturating_add(8),
            self.out.at.saturating_sub(options_at.saturating_add(SECTION_HEADER)),
            8,
        )?;
        Ok(())
    }

    /// Copies the sections with texts; returns the number and the place of each.
    fn copy_sections(&mut self) -> Result<Vec<(u16, u64)>> {
        let (header, endian) = (self.trace.header(), self.trace.endian());
        let texts = (PAGE..).zip(header.options.sections.iter().copied()).filter_map(|(id, at)| Some((id, at?)));
        let raw = header.options.raw.iter().filter(|(id, _)| [BTF, MODULES].contains(id));
        let others = raw.filter_map(|(id, payload)| Some((*id, endian.u64(payload, 0)?)));
        let mut sections = Vec::new();
        for (id, at) in texts.chain(others) {
            let place = section_place(self.trace.source(), endian, at, id);
            let copied = self.out.at;
            match (place, self.rewriter.is_some()) {
                (Some(_), true) if id == NAMES => {
                    let names = self.names();
                    let mut body = Vec::new();
                    endian.put(&mut body, names.len() as u64, 8);
                    body.extend(names);
                    self.out.section(id, &body, self.codec)?;
                }
                // An empty text: a section that is not there counts as lost.
                (Some(_), _) if self.without_symbols && id == SYMBOLS => {
                    self.out.section(id, &[0; 4], None)?;
                }
                (Some(place), _) => self.copy(place)?,
                (None, _) => continue,
            }
            sections.push((id, copied));
        }
        Ok(sections)
    }

    /// The payload of a BUFFER option of version 7.
    fn buffer_option(&self, nth: usize, buffer: &BufferHeader, at: u64, data: &[Written]) -> Vec<u8> {
        let endian = self.trace.endian();
        let lanes = self.trace.lanes().get(nth).and_then(|lanes| lanes.first());
        let page_size = match lanes {
            _ if self.trace.origin().is_some() => self.layout.size as u64,
            Some(pages) => pages.layout.size as u64,
            None => buffer.page_size.into(),
        };
        let rows: Vec<&Written> = data.iter().filter(|row| row.size > 0).collect();
        let mut payload = Vec::new();
        endian.put(&mut payload, at, 8);
        for text in [&*self.buffer_name(&buffer.name), self.clock(&buffer.clock)] {
            payload.extend(text.bytes().chain([0]));
        }
        endian.put(&mut payload, page_size, 4);
        endian.put(&mut payload, rows.len() as u64, 4);
        for row in rows {
            endian.put(&mut payload, row.cpu.into(), 4);
            endian.put(&mut payload, row.at, 8);
            endian.put(&mut payload, row.size, 8);
        }
        payload
    }
}

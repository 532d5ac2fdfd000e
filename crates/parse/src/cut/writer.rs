//! All that the file of a part consists of in both versions: pieces of the whole, options, names, data and the note.

use super::{CutFile, PART, Rewriter, allowed};
use crate::file::chunk::{self, Codec};
use crate::file::header::numbers::{BTF, EARLIER_BOOT, LATENCY, MODULES};
use crate::file::page_layout::PageLayout;
use crate::trace::Trace;
use sched::{Comm, Past, Pid};
use std::borrow::Cow;
use std::io::{Result, Seek, Write};
use std::ops::Range;

/// Neither has a window.
const OUTSIDE: [u16; 2] = [LATENCY, EARLIER_BOOT];

/// The bytes of the header of a section.
pub(super) const SECTION_HEADER: u64 = 16;

/// Writes a part.
pub(super) struct Writer<'w, W> {
    pub(super) trace: &'w Trace,
    pub(super) past: &'w Past,
    /// The note, as text.
    pub(super) note: &'w [u8],
    /// Replaces the names, if any.
    pub(super) rewriter: Option<Rewriter<'w>>,
    /// Whether the kernel's symbols are left out.
    pub(super) without_symbols: bool,
    /// Whether all that is not data is made anew, and not copied.
    pub(super) is_made: bool,
    /// The compression of the texts, and of data that are not copied.
    pub(super) codec: Option<Codec>,
    /// The layout of pages that are made, and the size of pages in the first header.
    pub(super) layout: PageLayout,
    /// Numbers and payloads of options.
    pub(super) options: Vec<(u16, Vec<u8>)>,
    /// Names of tasks beside those that the recorder saved, for a recording of another format.
    pub(super) more_names: &'w [(Pid, Comm)],
    pub(super) out: CutFile<W>,
}

impl<W: Write + Seek> Writer<'_, W> {
    /// Copies a piece of the whole trace.
    pub(super) fn copy(&mut self, mut place: Range<u64>) -> Result<()> {
        const PIECE: u64 = 1 << 20;
        while place.start < place.end {
            let end = place.end.min(place.start.saturating_add(PIECE));
            let bytes = self.trace.source().get(&(place.start..end));
            let bytes = bytes.ok_or_else(|| std::io::Error::other("the trace became shorter while it was read"))?;
            self.out.bytes(&bytes)?;
            place.start = end;
        }
        Ok(())
    }

    /// The payload of an option as a part has it; nothing where a part has none. Statistics and the number of CPUs are
    /// written elsewhere.
    pub(super) fn copied(&self, id: u16, payload: &[u8]) -> Option<Vec<u8>> {
        match &self.rewriter {
            _ if OUTSIDE.contains(&id) || [0, BTF, MODULES].contains(&id) => None,
            Some(rewriter) => rewriter.option(id, payload),
            None => Some(payload.to_vec()),
        }
    }

    /// The statistics of a CPU as a part has them.
    pub(super) fn statistics(&self, text: &[u8]) -> Vec<u8> {
        self.rewriter.as_ref().map_or_else(|| text.to_vec(), |rewriter| rewriter.statistics(text))
    }

    /// The name of a buffer.
    pub(super) fn buffer_name<'n>(&self, name: &'n str) -> Cow<'n, str> {
        self.rewriter.as_ref().map_or(name.into(), |rewriter| rewriter.buffer(name).into())
    }

    /// The name of a clock.
    pub(super) fn clock<'n>(&self, name: &'n str) -> &'n str {
        if self.rewriter.is_some() { allowed::clock(name) } else { name }
    }

    /// The saved command names.
    pub(super) fn names(&mut self) -> Vec<u8> {
        if self.trace.origin().is_some() {
            return self.made_names();
        }
        let text = self.trace.text(&self.trace.header().cmdlines);
        match &mut self.rewriter {
            Some(rewriter) => rewriter.saved_names(&text),
            None => text,
        }
    }
}

impl<W: Write + Seek> CutFile<W> {
    /// Writes an option.
    pub(super) fn option(&mut self, id: u16, payload: &[u8]) -> Result<()> {
        self.number(id.into(), 2)?;
        self.number(payload.len() as u64, 4)?;
        self.bytes(payload)
    }

    /// Writes the option that leads to the note; its numbers are to be patched at the place that is returned.
    pub(super) fn note_option(&mut self, is_compressed: bool) -> Result<u64> {
        self.number(PART.into(), 2)?;
        self.number(20, 4)?;
        let place = self.at;
        self.bytes(&[0; 16])?;
        self.number(is_compressed.into(), 4)?;
        Ok(place)
    }

    /// Writes a section, of which the body is compressed or not; returns the place of its header.
    pub(super) fn section(&mut self, id: u16, body: &[u8], codec: Option<Codec>) -> Result<u64> {
        let at = self.at;
        let compressed = codec.map(|codec| chunk::compress(codec, body)).transpose()?;
        let size = compressed.as_ref().map_or(body.len(), |block| block.len().saturating_add(8));
        self.section_header(id, compressed.is_some(), size as u64)?;
        if let Some(block) = &compressed {
            self.number(block.len() as u64, 4)?;
            self.number(body.len() as u64, 4)?;
        }
        self.bytes(compressed.as_deref().unwrap_or(body))?;
        Ok(at)
    }

    /// Writes the header of a section without a description.
    pub(super) fn section_header(&mut self, id: u16, is_compressed: bool, size: u64) -> Result<()> {
        self.number(id.into(), 2)?;
        self.number(is_compressed.into(), 2)?;
        self.number(u32::MAX.into(), 4)?;
        self.number(size, 8)
    }
}

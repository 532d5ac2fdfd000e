//! What a file has beside its data, made anew: for recordings of other formats, and of the other version of a trace.dat.

use super::writer::Writer;
use crate::file::header::numbers::{
    CPU_COUNT, CPU_STATISTICS, FTRACE, NAMES, PAGE, PRINTK, RECORDER, SYMBOLS, SYSTEMS, TRACE_CLOCK, UNAME,
};
use crate::file::header::{HeaderPart, MAGIC, RecorderStat};
use crate::file::page_layout::PageLayout;
use crate::issue::FileIssue;
use crate::ring::records::{UnitEntry, entries};
use crate::ring::unit::{CpuPages, Store};
use crate::trace::{Origin, Trace};
use std::fmt::Write as _;
use std::io::{Result, Seek, Write};

/// The compression of files of version 7, and its version, which no reader asks for.
const COMPRESSION: &[u8] = b"zstd\x001.5\0";

/// The options of a trace as the file of a part has them: those of a trace.dat as they are, those of another recording from what is known
/// of it.
pub(super) fn options(trace: &Trace) -> Vec<(u16, Vec<u8>)> {
    let Some(origin) = trace.origin() else { return trace.header().options.raw.clone() };
    let text = |text: &str| text.bytes().chain([0]).collect::<Vec<u8>>();
    let mut options = Vec::new();
    if !origin.clock.is_empty() {
        options.push((TRACE_CLOCK, text(&format!("[{}]", origin.clock))));
    }
    if let Some(uname) = origin.uname.as_ref() {
        options.push((UNAME, text(&with_host(uname))));
    }
    if origin.cpus > 0 {
        let mut count = Vec::new();
        trace.endian().put(&mut count, origin.cpus.into(), 4);
        options.push((CPU_COUNT, count));
    }
    options.push((RECORDER, text(&recorder(origin))));
    // Which CPU lost them is not known.
    let mut dropped = trace.diagnostics().count(FileIssue::EventsDroppedUnmarked);
    for stat in &trace.header().options.stats {
        options.push((CPU_STATISTICS, text(&statistics(stat, std::mem::take(&mut dropped)))));
    }
    options
}

/// `Linux RELEASE MACHINE` with a name for the host, which recordings of other formats leave out here.
fn with_host(uname: &str) -> String {
    match uname.split_once(' ') {
        Some((system, rest)) => format!("{system} host {rest}"),
        None => uname.to_owned(),
    }
}

fn recorder(origin: &Origin) -> String {
    origin.recorder.as_deref().map_or_else(|| origin.format.to_owned(), str::to_owned)
}

/// The statistics of a CPU in the words of the kernel.
fn statistics(stat: &RecorderStat, dropped: u64) -> String {
    let mut out = String::new();
    let values = [
        ("CPU", stat.cpu.into()),
        ("entries", 0),
        ("overrun", stat.overrun),
        ("commit overrun", 0),
        ("dropped events", dropped),
        ("read events", stat.recorded.unwrap_or(0)),
    ];
    for (key, value) in values {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{key}: {value}");
    }
    out
}

/// The layout of the pages that records of another format are put in: that of the recording, with pages large enough for each record.
pub(super) fn layout(trace: &Trace) -> PageLayout {
    let layout = trace.header().layout;
    let units: Vec<(&CpuPages, usize)> = trace
        .lanes()
        .iter()
        .flatten()
        .filter(|pages| matches!(pages.store, Store::Units { .. }))
        .flat_map(|pages| (0..pages.units()).map(move |unit| (pages, unit)))
        .collect();
    let longest = trace.in_parallel(units, |(pages, unit)| {
        pages.with_bytes(trace.source(), unit, |bytes| {
            let records = entries(bytes.unwrap_or_default(), layout.endian);
            let lengths = records.map(|entry| match entry {
                UnitEntry::Record(raw) => raw.payload.len(),
                UnitEntry::Loss(_) => 0,
            });
            lengths.max().unwrap_or(0)
        })
    });
    let longest = longest.into_iter().max().unwrap_or(0);
    with_room(layout, longest)
}

/// The largest page that a reader takes, in bytes.
const LARGEST_PAGE: usize = 1 << 20;

/// The layout with pages that have room for a record of this length.
fn with_room(layout: PageLayout, payload: usize) -> PageLayout {
    // The header of a record, and the number of lost events before it.
    let needed = payload.next_multiple_of(4).saturating_add(16).saturating_add(layout.data);
    let mut size = layout.size.max(1);
    while size < needed && size < LARGEST_PAGE {
        size = size.saturating_mul(2);
    }
    PageLayout { size: size.min(LARGEST_PAGE.max(layout.size)), ..layout }
}

/// The text of `header_page` for a layout.
fn page_text(layout: &PageLayout) -> Vec<u8> {
    let PageLayout { commit, long, data, size, .. } = *layout;
    let room = size.saturating_sub(data);
    let fields = format!(
        "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\tfield: local_t commit;\toffset:{commit};\tsize:{long};\tsigned:1;\n\
         \tfield: int overwrite;\toffset:{commit};\tsize:1;\tsigned:1;\n\tfield: char data;\toffset:{data};\tsize:{room};\tsigned:1;\n"
    );
    let mut out = b"header_page\0".to_vec();
    let mut put = |text: &str| {
        layout.endian.put(&mut out, text.len() as u64, 8);
        out.extend_from_slice(text.as_bytes());
    };
    put(&fields);
    out.extend_from_slice(b"header_event\0");
    layout.endian.put(&mut out, 0, 8);
    out
}

/// A text behind its length, a number of this size.
fn with_size(trace: &Trace, text: &[u8], size: usize) -> Vec<u8> {
    let mut body = Vec::with_capacity(text.len().saturating_add(size));
    trace.endian().put(&mut body, text.len() as u64, size);
    body.extend(text);
    body
}

impl<W: Write + Seek> Writer<'_, W> {
    /// Writes what both versions begin with.
    fn begin(&mut self, version: &[u8]) -> Result<()> {
        let header = self.trace.header();
        self.out.bytes(MAGIC)?;
        self.out.bytes(version)?;
        let endian = u8::from(header.version.endian == crate::bytes::Endian::Big);
        self.out.bytes(&[endian, header.version.user_long])?;
        self.out.number(self.layout.size as u64, 4)
    }

    /// Writes the first header of a file of version 7; returns the place of the offset of its options.
    pub(super) fn begin_version_7(&mut self) -> Result<u64> {
        self.begin(b"7\0")?;
        self.out.bytes(COMPRESSION)?;
        Ok(self.out.at)
    }

    /// Writes the texts of a file of version 6, but for the command names.
    pub(super) fn begin_version_6(&mut self) -> Result<()> {
        self.begin(b"6\0")?;
        self.made_texts().iter().try_for_each(|(_, body)| self.out.bytes(body))
    }

    /// Writes the sections of texts; returns the number and the place of each.
    pub(super) fn made_sections(&mut self) -> Result<Vec<(u16, u64)>> {
        let (texts, names) = (self.made_texts(), self.names());
        let names = (NAMES, with_size(self.trace, &names, 8));
        let codec = self.codec;
        texts.into_iter().chain([names]).map(|(id, body)| Ok((id, self.out.section(id, &body, codec)?))).collect()
    }

    /// The bodies of the sections with texts before the command names, with their numbers: the same in both versions.
    fn made_texts(&self) -> Vec<(u16, Vec<u8>)> {
        let (trace, header) = (self.trace, self.trace.header());
        let texts = &header.texts;
        let or = |part: &HeaderPart, otherwise: Vec<u8>| {
            let text = trace.text(part);
            if text.is_empty() { otherwise } else { text }
        };
        let symbols = if self.without_symbols { Vec::new() } else { trace.text(&header.kallsyms) };
        vec![
            (PAGE, or(&texts.page, page_text(&self.layout))),
            (FTRACE, or(&texts.ftrace, vec![0; 4])),
            (SYSTEMS, or(&texts.systems, vec![0; 4])),
            (SYMBOLS, with_size(trace, &symbols, 4)),
            (PRINTK, with_size(trace, &trace.text(&header.printk), 4)),
        ]
    }

    /// The saved command names of a recording of another format.
    pub(super) fn made_names(&mut self) -> Vec<u8> {
        let mut names: Vec<_> = self.trace.saved_names().iter().map(|(pid, name)| (*pid, *name)).collect();
        let is_saved = |pid| self.trace.saved_names().contains_key(&pid);
        names.extend(self.more_names.iter().filter(|(pid, _)| !is_saved(*pid)).copied());
        names.sort_unstable();
        let mut out = Vec::new();
        for (pid, name) in names {
            // Those that the pass has given are aliases already.
            let name = match &mut self.rewriter {
                Some(rewriter) if is_saved(pid) => rewriter.name(name),
                _ => name,
            };
            if name.is_empty() {
                continue;
            }
            out.extend_from_slice(pid.0.to_string().as_bytes());
            out.push(b' ');
            out.extend(name.as_bytes().iter().map(|byte| if *byte == b'\n' { b'?' } else { *byte }));
            out.push(b'\n');
        }
        out
    }
}

//! The header of a trace.dat: two versions of the format, one [`Header`].
//!
//! Version 6 is a fixed order of parts; version 7 is sections that options point to. Both hold the
//! same texts, and end in the same [`BufferHeader`]s. Only places are kept: a text is loaded when
//! it is asked for, since a symbol table of 15 MB must not cost anything to who does not need it.

mod foreign;
pub(crate) mod numbers;
mod options;
mod overlap;
mod program_maps;
mod v6;
mod v7;

use crate::bytes::{Bytes, Cursor, Endian, Eof};
use crate::decode::format::EventFormat;
use crate::error::Error;
use crate::file::chunk::{self, Codec};
use crate::file::page_layout::PageLayout;
use crate::file::source::{FileBytes, Source};
use crate::issue::FileIssue;
use crate::limits;
use crate::parallel::{Pool, parallel};
use sched::Diagnostics;
use sched::event::CleanText;
use std::borrow::Cow;
use std::ops::Range;

pub(crate) use numbers::PART;
pub(crate) use options::HeaderOptions;
pub use options::{BufferInfo, RecorderStat};
pub use program_maps::ModuleInfo;
pub(crate) use program_maps::ProgramMaps;
pub(crate) use v7::section_place;

/// The version of a file, and how it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// 6 or 7.
    pub number: u32,
    /// Byte order of everything in it.
    pub endian: Endian,
    /// `sizeof(long)` of the program that recorded; the kernel's may be larger.
    pub user_long: u8,
    /// Name of the compression: `none`, `zlib` or `zstd`; empty in version 6.
    pub compression: CleanText,
}

/// The place and the compression of a text or a table in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HeaderPart {
    range: Range<u64>,
    compressed: Option<Codec>,
    /// The text has its size in front, a number of this many bytes. Sections do, v6 parts are past it.
    size_field: usize,
}

impl HeaderPart {
    /// A text at this place, as it is.
    fn plain(range: Range<u64>) -> HeaderPart {
        HeaderPart { range, compressed: None, size_field: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    /// The place of the text in the file, without a size in front of it where that is a part of version 6.
    pub(crate) fn place(&self) -> Range<u64> {
        self.range.clone()
    }

    /// Returns the decompressed size of the part, in bytes.
    pub(crate) fn size(&self, source: &Source, endian: Endian) -> u64 {
        let length = self.range.end.saturating_sub(self.range.start);
        if self.compressed.is_some() {
            let sizes = source.array::<8>(self.range.start).and_then(|sizes| endian.u32(&sizes, 4));
            u64::from(sizes.unwrap_or(0))
        } else {
            length
        }
    }

    /// The bytes, decompressed if need be; `None` if they are not in the file or cannot be.
    fn body(&self, source: &Source, endian: Endian) -> Option<Vec<u8>> {
        let Some(codec) = self.compressed else { return source.get(&self.range) };
        let sizes = source.array::<8>(self.range.start)?;
        let (compressed, size) = (endian.u32(&sizes, 0)?, endian.u32(&sizes, 4)? as usize);
        let start = self.range.start.checked_add(8)?;
        let end = start.checked_add(compressed.into()).filter(|end| *end <= self.range.end)?;
        // Incompressible data become hardly larger: more is damage, and is not read.
        if compressed as usize > size.saturating_add(size / 16).saturating_add(1 << 16) {
            return None;
        }
        let (bytes, mut out) = (source.get(&(start..end))?, Vec::new());
        chunk::decompress(codec, &bytes, size, &mut out)?;
        Some(out)
    }

    /// The text in it, without the size in front. A size too large is taken as far as it goes.
    pub(crate) fn text(&self, source: &Source, endian: Endian) -> Option<Vec<u8>> {
        let mut body = self.body(source, endian)?;
        if self.size_field > 0 {
            let size = endian.uint(&body, 0, self.size_field)?;
            let end = usize::try_from(size).unwrap_or(usize::MAX).saturating_add(self.size_field);
            body.truncate(end);
            body.drain(..self.size_field);
        }
        Some(body)
    }
}

/// The data of one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CpuData {
    pub(crate) cpu: u32,
    pub(crate) at: u64,
    pub(crate) size: u64,
    /// Whether data are missing, since the file ends before them or the data of another CPU begin among them.
    pub(crate) is_cut: bool,
}

/// A ring buffer: the top-level one, or that of an instance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BufferHeader {
    pub(crate) name: CleanText,
    pub(crate) clock: CleanText,
    pub(crate) page_size: u32,
    pub(crate) compressed: bool,
    pub(crate) cpus: Vec<CpuData>,
    /// Place of the buffer's data where the table of its CPUs is missing.
    pub(crate) untabled: Option<Untabled>,
}

/// Data without a table of CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Untabled {
    pub(crate) place: Range<u64>,
    /// Whether the file ends before these data do.
    pub(crate) is_cut: bool,
}

/// An event's format text, not parsed yet.
#[derive(Clone, Debug)]
struct RawFormat {
    system: CleanText,
    range: Range<usize>,
}

/// The format texts of a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Formats {
    blob: Vec<u8>,
    raw: Vec<RawFormat>,
    /// Formats beyond a limit, which are left out.
    beyond: u64,
}

impl Formats {
    /// The texts, each with its system.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.raw.iter().map(|raw| (raw.system.as_str(), self.blob.get(raw.range.clone()).unwrap_or(&[])))
    }

    /// Parses all of them, side by side where there are many: thousands take milliseconds.
    pub(crate) fn parse(&self, pool: &Pool, diagnostics: &mut Diagnostics) -> Vec<EventFormat> {
        const MANY: usize = 500;
        let pool = if self.raw.len() < MANY { &None } else { pool };
        let parsed = parallel(pool, self.texts().collect(), |(system, text)| {
            // Nearly all are valid, which is found faster than what is not.
            let text = std::str::from_utf8(text).map_or_else(|_| String::from_utf8_lossy(text), Cow::Borrowed);
            EventFormat::parse(system, &text).ok_or_else(|| {
                let name = text.lines().find_map(|l| l.trim_ascii().strip_prefix("name:")).unwrap_or("").trim_ascii();
                format!("{system}:{}", sched::event::escape(name.as_bytes()))
            })
        });
        let mut formats = Vec::new();
        for format in parsed {
            match format {
                Ok(format) => {
                    if format.odd_lines > 0 {
                        diagnostics.add_at(FileIssue::BadFormat, || format!("{}:{}", format.system, format.name));
                    }
                    formats.push(format);
                }
                Err(name) => diagnostics.add_at(FileIssue::BadFormat, || name),
            }
        }
        formats
    }

    /// Reads the ftrace events, whose system is implied.
    fn add_ftrace(&mut self, bytes: &mut impl Cursor) -> Result<(), Eof> {
        let count = bytes.u32()?;
        self.add(bytes, &"ftrace".into(), count)
    }

    /// Reads the systems and their events.
    fn add_systems(&mut self, bytes: &mut impl Cursor) -> Result<(), Eof> {
        for _ in 0..bytes.u32()? {
            let name = bytes.cstr()?;
            let system = CleanText::of_bytes(name.get(..limits::NAME).unwrap_or(name));
            let count = bytes.u32()?;
            self.add(bytes, &system, count)?;
        }
        Ok(())
    }

    fn add(&mut self, bytes: &mut impl Cursor, system: &CleanText, count: u32) -> Result<(), Eof> {
        for _ in 0..count {
            let size = bytes.u64()?;
            let start = self.blob.len();
            if self.raw.len() >= limits::FORMATS || size > limits::FORMAT_TEXTS.saturating_sub(start) as u64 {
                bytes.pass(size)?;
                self.beyond = self.beyond.saturating_add(1);
                continue;
            }
            self.blob.extend_from_slice(bytes.take(size)?);
            self.raw.push(RawFormat { system: system.clone(), range: start..self.blob.len() });
        }
        Ok(())
    }
}

/// The places of the layout of a page, of the formats of ftrace's events and of those of all other systems.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TextParts {
    pub(crate) page: HeaderPart,
    pub(crate) ftrace: HeaderPart,
    pub(crate) systems: HeaderPart,
}

/// The parts of a file that precede the events.
#[derive(Clone, Debug)]
pub(crate) struct Header {
    pub(crate) version: Version,
    pub(crate) codec: Option<Codec>,
    pub(crate) layout: PageLayout,
    pub(crate) formats: Formats,
    pub(crate) texts: TextParts,
    pub(crate) kallsyms: HeaderPart,
    pub(crate) printk: HeaderPart,
    pub(crate) cmdlines: HeaderPart,
    pub(crate) cpus: u32,
    pub(crate) options: HeaderOptions,
    pub(crate) buffers: Vec<BufferHeader>,
    /// The end of the first header; in version 6 that of all texts but the command names.
    pub(crate) head_end: u64,
}

/// The facts of the first bytes.
struct Initial {
    version: Version,
    page_size: u32,
    codec: Option<Codec>,
    first_options: u64,
}

/// The context of reading: the file, and a place for findings.
struct Reader<'f> {
    source: &'f Source,
    endian: Endian,
    /// Compression of the file's sections, if it has any.
    codec: Option<Codec>,
    diagnostics: Diagnostics,
    /// Bytes of texts and options that may still be read.
    texts_left: u64,
    /// Rows of tables of CPUs that may still be read.
    rows_left: u64,
}

impl<'f> Reader<'f> {
    fn new(source: &'f Source, endian: Endian) -> Reader<'f> {
        Reader {
            source,
            endian,
            codec: None,
            diagnostics: Diagnostics::default(),
            texts_left: limits::HEADER_TEXTS,
            rows_left: limits::CPU_ROWS,
        }
    }

    /// Takes bytes of texts or options off the remaining budget; whether it suffices.
    fn afford(&mut self, bytes: u64, name: impl FnOnce() -> String) -> bool {
        let left = self.texts_left.checked_sub(bytes);
        // Smaller ones may still fit.
        self.texts_left = left.unwrap_or(self.texts_left);
        if left.is_none() {
            self.diagnostics.add_at(FileIssue::BeyondLimit, name);
        }
        left.is_some()
    }

    /// Takes a row off those that may be read; whether there was one left.
    fn afford_row(&mut self, buffer: &str) -> bool {
        let left = self.rows_left.checked_sub(1);
        self.rows_left = left.unwrap_or(0);
        if left.is_none() {
            self.diagnostics.add_at(FileIssue::BeyondLimit, || format!("the table of CPUs of buffer {buffer:?}"));
        }
        left.is_some()
    }

    fn at(&self, at: u64) -> FileBytes<'f> {
        FileBytes::new(self.source, at, self.endian)
    }
}

impl Header {
    /// Reads the header of a file.
    pub(crate) fn parse(source: &Source) -> Result<(Header, Diagnostics), Error> {
        // The first header has some thirty bytes; a file that is no trace is recognised by a little more.
        let head = source.get(&(0..source.size().min(4096))).unwrap_or_default();
        if !head.starts_with(MAGIC) {
            return Err(Error::Foreign { what: foreign::describe(&head, source.size()) });
        }
        let mut bytes = Bytes::new(&head, 0, Endian::Little);
        let initial = initial(&mut bytes)?;
        let mut reader = Reader::new(source, initial.version.endian);
        let behind = bytes.at();
        reader.codec = initial.codec;
        let mut header = match initial.version.number {
            6 => v6::read(&mut reader, behind, initial)?,
            _ => v7::read(&mut reader, behind, initial)?,
        };
        reader.diagnostics.add_many_at(FileIssue::BeyondLimit, header.formats.beyond, || "event formats".to_owned());
        header.clamp(&mut reader);
        Ok((header, reader.diagnostics))
    }

    /// Reads the texts that trace-cmd and perf store in one form (perf's "tracing data"), which are all of `source`.
    pub(crate) fn of_tracing_data(source: &Source, diagnostics: &mut Diagnostics) -> Result<Header, Error> {
        let head = source.get(&(0..source.size().min(64))).unwrap_or_default();
        let mut bytes = Bytes::new(&head, 0, Endian::Little);
        let bad = |Eof| Error::Damaged { part: "the event formats", at: 0, expected: "17 08 44 and \"tracing\"" };
        if bytes.take(MAGIC.len() as u64).map_err(bad)? != MAGIC {
            return Err(bad(Eof));
        }
        // Perf's versions 0.5 and 0.6 differ in what stands at the end.
        bytes.cstr().map_err(bad)?;
        let initial = machine(&mut bytes, 6)?;
        let mut reader = Reader::new(source, initial.version.endian);
        let mut header = v6::read_texts(&mut reader, bytes.at(), initial)?;
        reader.diagnostics.add_many_at(FileIssue::BeyondLimit, header.formats.beyond, || "event formats".to_owned());
        diagnostics.merge(&reader.diagnostics);
        header.cpus = 0;
        Ok(header)
    }

    fn new(initial: Initial) -> Header {
        let layout = PageLayout::new(initial.version.endian, 8, initial.page_size as usize);
        Header {
            version: initial.version,
            codec: initial.codec,
            layout,
            formats: Formats::default(),
            texts: TextParts::default(),
            kallsyms: HeaderPart::default(),
            printk: HeaderPart::default(),
            cmdlines: HeaderPart::default(),
            cpus: 0,
            options: HeaderOptions::default(),
            buffers: Vec::new(),
            head_end: 0,
        }
    }

    /// Reads `header_page` and `header_event`, which every version has in this form.
    fn read_header_page(&mut self, bytes: &mut impl Cursor) -> Result<(), Error> {
        let bad = |at| move |Eof| Error::Damaged { part: "header_page", at, expected: "the layout of a page" };
        let at = bytes.at();
        if bytes.take(12).map_err(bad(at))? != b"header_page\0" {
            return Err(bad(at)(Eof));
        }
        let size = bytes.u64().map_err(bad(at))?;
        if size == 0 {
            return Err(Error::AncientKernel);
        }
        let shown = size.min(limits::DESCRIPTION as u64);
        let text = String::from_utf8_lossy(bytes.take(shown).map_err(bad(at))?).into_owned();
        bytes.pass(size.saturating_sub(shown)).map_err(bad(at))?;
        self.layout = self.layout.described(&text);
        let at = bytes.at();
        if bytes.take(13).map_err(bad(at))? != b"header_event\0" {
            return Err(bad(at)(Eof));
        }
        let size = bytes.u64().map_err(bad(at))?;
        bytes.pass(size).map_err(bad(at))
    }

    /// Bounds the data of every CPU by the end of the file and by those of others, and drops impossible rows.
    fn clamp(&mut self, reader: &mut Reader<'_>) {
        let end = reader.source.size();
        let diagnostics = &mut reader.diagnostics;
        for buffer in &mut self.buffers {
            let compressed = buffer.compressed;
            buffer.cpus.retain(|row| {
                let believable = row.cpu < sched::Cpu::LIMIT;
                if !believable {
                    diagnostics.add_at(FileIssue::BadCpu, || format!("CPU {} in the table of buffers", row.cpu));
                }
                believable && row.size > 0
            });
            buffer.cpus.sort_by_key(|row| row.cpu);
            let rows = buffer.cpus.len();
            buffer.cpus.dedup_by_key(|row| row.cpu);
            diagnostics.add_many(FileIssue::BadOption, rows.saturating_sub(buffer.cpus.len()) as u64);
            for row in &mut buffer.cpus {
                // The size of compressed data is not reliable; their own headers bound them.
                if !compressed && row.at.checked_add(row.size).is_none_or(|data_end| data_end > end) {
                    let cpu = row.cpu;
                    diagnostics.add_at(FileIssue::TruncatedData, || format!("CPU {cpu}, at offset {end}"));
                    (row.size, row.is_cut) = (end.saturating_sub(row.at), true);
                }
            }
        }
        overlap::resolve(&mut self.buffers, end, diagnostics);
    }
}

pub(crate) const MAGIC: &[u8] = b"\x17\x08\x44tracing";

fn initial(bytes: &mut Bytes<'_>) -> Result<Initial, Error> {
    let bad = |Eof| Error::Damaged { part: "the first header", at: 10, expected: "version, byte order and page size" };
    bytes.take(MAGIC.len() as u64).map_err(bad)?;
    let version = bytes.cstr().map_err(bad)?;
    let number = match version {
        b"6" => 6,
        b"7" => 7,
        other => {
            return Err(Error::Version {
                version: sched::event::escape(other.get(..40).unwrap_or(other)).into_owned(),
            });
        }
    };
    let mut initial = machine(bytes, number)?;
    if number == 7 {
        initial.version.compression = CleanText::of_bytes(bytes.cstr().map_err(bad)?);
        bytes.cstr().map_err(bad)?;
        initial.codec = Codec::of(&initial.version.compression);
        initial.first_options = bytes.u64().map_err(bad)?;
    }
    Ok(initial)
}

/// Byte order, word size and page size, which stand behind the version.
fn machine(bytes: &mut Bytes<'_>, number: u32) -> Result<Initial, Error> {
    let bad =
        |Eof| Error::Damaged { part: "the first header", at: 10, expected: "byte order, word size and page size" };
    let endian = match bytes.u8().map_err(bad)? {
        0 => Endian::Little,
        1 => Endian::Big,
        _ => return Err(bad(Eof)),
    };
    bytes.set_endian(endian);
    let user_long = bytes.u8().map_err(bad)?;
    let page_size = bytes.u32().map_err(bad)?;
    if !(512..=1 << 20).contains(&page_size) {
        return Err(Error::Damaged {
            part: "the first header",
            at: bytes.at(),
            expected: "a page size from 512 bytes to 1 MiB",
        });
    }
    let version = Version { number, endian, user_long, compression: CleanText::default() };
    Ok(Initial { version, page_size, codec: None, first_options: 0 })
}

/// Reads bytes as a header with all its texts. The fuzz target calls this function.
#[doc(hidden)]
pub fn fuzz(file: &[u8]) -> usize {
    let file = &Source::Memory(file.to_vec());
    let Ok((header, mut diagnostics)) = Header::parse(file) else { return 0 };
    for part in [&header.kallsyms, &header.printk, &header.cmdlines] {
        let _ = part.text(file, header.version.endian);
    }
    header.formats.parse(&None, &mut diagnostics).len()
}

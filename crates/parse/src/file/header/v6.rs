//! Version 6: parts in a fixed order, without sections (`docs/trace-dat.md`, section 2).

use super::options::current_clock;
use super::{BufferHeader, CpuData, Header, HeaderPart, Initial, Reader, TextParts};
use crate::bytes::{Bytes, Cursor, Eof};
use crate::error::Error;
use crate::file::source::FileBytes;
use crate::issue::FileIssue;
use crate::limits;
use sched::event::CleanText;

fn damaged(part: &'static str, at: u64, expected: &'static str) -> impl Fn(Eof) -> Error {
    move |Eof| Error::Damaged { part, at, expected }
}

pub(super) fn read(reader: &mut Reader<'_>, start: u64, initial: Initial) -> Result<Header, Error> {
    let mut bytes = reader.at(start);
    let page_size = initial.page_size;
    // A row has 16 bytes. Tables that instances share would be read again for each of them.
    reader.rows_left = reader.rows_left.min(reader.source.size() / 16);
    let mut header = formats(&mut bytes, initial)?;
    let (kallsyms, printk, cmdlines) = texts(reader, &mut bytes)?;
    header.head_end = cmdlines.range.start.saturating_sub(8);
    (header.kallsyms, header.printk, header.cmdlines) = (kallsyms, printk, cmdlines);
    let at = bytes.at();
    header.cpus = bytes.u32().map_err(damaged("the CPU count", at, "a number"))?;
    let tag = options(reader, &mut header, &mut bytes)?;
    if tag == *b"latency  \0" {
        return Err(Error::LatencyText);
    }
    let rows = header.options.cpu_count.unwrap_or(header.cpus);
    if tag == *b"flyrecord\0" {
        let top = buffer(reader, &header, &mut bytes, CleanText::default(), rows)?;
        header.buffers.push(top);
    } else {
        return Err(damaged("the tag before the data", bytes.at(), "flyrecord or latency")(Eof));
    }
    instances(reader, &mut header, rows);
    for buffer in &mut header.buffers {
        buffer.page_size = page_size;
    }
    Ok(header)
}

/// Reads the page's layout and the event formats, and as many of the texts behind them as there are.
pub(super) fn read_texts(reader: &mut Reader<'_>, start: u64, initial: Initial) -> Result<Header, Error> {
    let mut bytes = reader.at(start);
    let mut header = formats(&mut bytes, initial)?;
    // perf 0.5 ends before the command lines.
    let mut part = |name: &'static str, wide: bool| text(reader, &mut bytes, name, wide).unwrap_or_default();
    (header.kallsyms, header.printk) = (part("the kernel's symbols", false), part("the printk formats", false));
    header.cmdlines = part("the command lines", true);
    Ok(header)
}

/// The layout of a page, and the formats of events.
fn formats(bytes: &mut FileBytes<'_>, initial: Initial) -> Result<Header, Error> {
    let mut header = Header::new(initial);
    let page = bytes.at();
    header.read_header_page(bytes)?;
    let ftrace = bytes.at();
    header.formats.add_ftrace(bytes).map_err(damaged("the formats of ftrace's events", ftrace, "their texts"))?;
    let systems = bytes.at();
    header.formats.add_systems(bytes).map_err(damaged("the event formats", systems, "their texts"))?;
    header.texts = TextParts {
        page: HeaderPart::plain(page..ftrace),
        ftrace: HeaderPart::plain(ftrace..systems),
        systems: HeaderPart::plain(systems..bytes.at()),
    };
    Ok(header)
}

/// Symbols, printk formats and command lines, each behind its size.
fn texts(reader: &mut Reader<'_>, bytes: &mut FileBytes<'_>) -> Result<(HeaderPart, HeaderPart, HeaderPart), Error> {
    let mut part = |name: &'static str, wide: bool| text(reader, bytes, name, wide);
    Ok((part("the kernel's symbols", false)?, part("the printk formats", false)?, part("the command lines", true)?))
}

/// A text behind its size of eight bytes, or of four.
fn text(
    reader: &mut Reader<'_>,
    bytes: &mut FileBytes<'_>,
    name: &'static str,
    wide: bool,
) -> Result<HeaderPart, Error> {
    let at = bytes.at();
    let mut read = || {
        let size = if wide { bytes.u64()? } else { u64::from(bytes.u32()?) };
        let start = bytes.at();
        bytes.pass(size)?;
        let is_affordable = reader.afford(size, || name.to_owned());
        let end = if is_affordable { bytes.at() } else { start };
        Ok(HeaderPart::plain(start..end))
    };
    read().map_err(damaged(name, at, "a size and a text"))
}

/// Reads the options, if there are any, and the tag behind them.
fn options(reader: &mut Reader<'_>, header: &mut Header, bytes: &mut FileBytes<'_>) -> Result<[u8; 10], Error> {
    let mut tag = || {
        let at = bytes.at();
        let tag = bytes.take(10).map_err(damaged("the tag before the data", at, "options, flyrecord or latency"))?;
        Ok::<[u8; 10], Error>(tag.first_chunk().copied().unwrap_or_default())
    };
    let first = tag()?;
    if first != *b"options  \0" {
        return Ok(first);
    }
    loop {
        let at = bytes.at();
        let bad = damaged("the options", at, "a number, a size and a payload");
        let id = bytes.u16().map_err(&bad)?;
        if id == 0 {
            break;
        }
        let size = u64::from(bytes.u32().map_err(&bad)?);
        let (start, shown) = (bytes.at(), size.min(limits::DESCRIPTION as u64));
        let payload = bytes.take(shown).map_err(&bad)?;
        let payload = Bytes::new(payload, start, reader.endian);
        header.options.add(reader, id, payload);
        bytes.pass(size.saturating_sub(shown)).map_err(&bad)?;
    }
    let at = bytes.at();
    let tag = bytes.take(10).map_err(damaged("the tag before the data", at, "flyrecord or latency"))?;
    Ok(tag.first_chunk().copied().unwrap_or_default())
}

/// The CPU table of a buffer, and the clock behind it.
fn buffer(
    reader: &mut Reader<'_>,
    header: &Header,
    bytes: &mut FileBytes<'_>,
    name: CleanText,
    rows: u32,
) -> Result<BufferHeader, Error> {
    let mut buffer = BufferHeader { name, ..BufferHeader::default() };
    for cpu in 0..rows {
        if !reader.afford_row(&buffer.name) {
            break;
        }
        let at = bytes.at();
        let bad = damaged("the CPU table", at, "offset and size of each CPU's data");
        let (Ok(at), Ok(size)) = (bytes.u64(), bytes.u64()) else {
            if cpu == 0 {
                return Err(bad(Eof));
            }
            reader.diagnostics.add_at(FileIssue::TruncatedHeader, || format!("CPU table, from CPU {cpu}"));
            break;
        };
        buffer.cpus.push(CpuData { cpu, at, size, is_cut: false });
    }
    // Undocumented: newer writers put the clock behind the table, if there is a TRACECLOCK option.
    // Zero padding reads as size 0; a size that leads nowhere is padding of another kind.
    let mut trailer = reader.at(bytes.at());
    let size = trailer.u64().ok().filter(|size| *size < 4096 && header.options.clock.is_some());
    let clock = size.and_then(|size| current_clock(trailer.take(size).ok()?));
    buffer.clock = clock.or_else(|| header.options.clock.clone()).unwrap_or_default();
    Ok(buffer)
}

/// The instances: each at its own offset, with a tag and a table of the same shape.
fn instances(reader: &mut Reader<'_>, header: &mut Header, rows: u32) {
    for option in std::mem::take(&mut header.options.buffers) {
        if reader.rows_left == 0 {
            reader.diagnostics.add_at(FileIssue::BeyondLimit, || format!("instance {}", option.name));
            continue;
        }
        let mut bytes = reader.at(option.at);
        let tag = bytes.take(10).map(<[u8]>::to_vec);
        let is_table = match tag.as_deref() {
            Ok(b"flyrecord\0") => true,
            Ok(b"options  \0") => bytes.u16() == Ok(0) && bytes.take(10).ok() == Some(b"flyrecord\0"),
            _ => false,
        };
        let read = if is_table { buffer(reader, header, &mut bytes, option.name.clone(), rows).ok() } else { None };
        match read {
            Some(buffer) => header.buffers.push(buffer),
            None => reader
                .diagnostics
                .add_at(FileIssue::TruncatedHeader, || format!("instance {} at offset {}", option.name, option.at)),
        }
    }
}

//! The header of a part, in both versions, with its options and the tables of its data.

use super::data::{self, Written};
use super::stats::Stats;
use super::{Output, PART, Rewriter};
use crate::file::chunk::{self, Codec};
use crate::file::header::{BUFFER, BufferHeader, section_place};
use crate::trace::Trace;
use sched::Past;
use std::io::{Result, Seek, Write};

const CPU_STATISTICS: u16 = 2;
const TRACE_CLOCK: u16 = 4;
const CPU_COUNT: u16 = 8;
/// The section of the saved command names.
const COMMAND_NAMES: u16 = 21;
/// Text of a latency tracer, and notes on an earlier boot: neither has a window.
const OUTSIDE: [u16; 2] = [22, 24];
/// Options that are the offset of a section.
const BTF: u16 = 23;
const MODULES: u16 = 25;

/// Where numbers stand that are known at the end only.
#[derive(Default)]
struct Places {
    /// The place of the offset of each instance.
    instances: Vec<u64>,
    /// The place of the offset and the size of the note.
    note: u64,
    /// The place of the statistics of each CPU, their room and their text in the whole.
    stats: Vec<(u64, usize, Vec<u8>)>,
}

/// Writes a part.
pub(super) fn write<W: Write + Seek>(
    trace: &Trace,
    past: &Past,
    note: &[u8],
    rewriter: &mut Option<Rewriter<'_>>,
    out: &mut Output<W>,
) -> Result<()> {
    match trace.header().version.number {
        6 => write_v6(trace, past, note, rewriter, out),
        _ => write_v7(trace, past, note, rewriter, out),
    }
}

/// Copies a piece of the whole trace.
fn copy<W: Write + Seek>(trace: &Trace, mut place: std::ops::Range<u64>, out: &mut Output<W>) -> Result<()> {
    const PIECE: u64 = 1 << 20;
    while place.start < place.end {
        let end = place.end.min(place.start.saturating_add(PIECE));
        let bytes = trace.source().get(&(place.start..end));
        out.bytes(&bytes.ok_or_else(|| std::io::Error::other("the trace became shorter while it was read"))?)?;
        place.start = end;
    }
    Ok(())
}

/// The payload of an option as a part has it; nothing where a part has none. Statistics and the number of CPUs are
/// written elsewhere.
fn copied(id: u16, payload: &[u8], rewriter: &mut Option<Rewriter<'_>>) -> Option<Vec<u8>> {
    match rewriter {
        _ if OUTSIDE.contains(&id) || [0, BTF, MODULES].contains(&id) => None,
        Some(rewriter) => rewriter.option(id, payload),
        None => Some(payload.to_vec()),
    }
}

/// The saved command names.
fn names(trace: &Trace, rewriter: &mut Option<Rewriter<'_>>) -> Vec<u8> {
    let text = trace.text(&trace.header().cmdlines);
    match rewriter {
        Some(rewriter) => rewriter.saved_names(&text),
        None => text,
    }
}

fn option<W: Write + Seek>(id: u16, payload: &[u8], out: &mut Output<W>) -> Result<()> {
    out.number(id.into(), 2)?;
    out.number(payload.len() as u64, 4)?;
    out.bytes(payload)
}

/// Writes the option that leads to the note; its numbers are to be patched at the place that is returned.
fn note_option<W: Write + Seek>(is_compressed: bool, out: &mut Output<W>) -> Result<u64> {
    out.number(PART.into(), 2)?;
    out.number(20, 4)?;
    let place = out.at;
    out.bytes(&[0; 16])?;
    out.number(is_compressed.into(), 4)?;
    Ok(place)
}

/// The data of each CPU of the buffers that are read. Others have another clock: no window is theirs.
fn write_data<W: Write + Seek>(
    trace: &Trace,
    buffer: usize,
    past: &Past,
    codec: Option<Codec>,
    rewriter: &mut Option<Rewriter<'_>>,
    out: &mut Output<W>,
) -> Result<Vec<Written>> {
    let is_read = trace.selected_buffers().contains(&buffer);
    let lanes = trace.lanes().get(buffer).filter(|_| is_read);
    let mut written = Vec::new();
    for pages in lanes.into_iter().flatten() {
        written.push(data::write(trace, pages, past, codec, rewriter, out)?);
    }
    Ok(written)
}

/// The place of the page size in the first header.
const PAGE_SIZE_AT: u64 = 14;

fn write_v6<W: Write + Seek>(
    trace: &Trace,
    past: &Past,
    note: &[u8],
    rewriter: &mut Option<Rewriter<'_>>,
    out: &mut Output<W>,
) -> Result<()> {
    let header = trace.header();
    copy(trace, 0..header.head_end, out)?;
    // One size holds for all buffers.
    if let Some(pages) = trace.lanes().iter().flatten().next() {
        out.patch(PAGE_SIZE_AT, pages.layout.size as u64, 4)?;
    }
    let names = names(trace, rewriter);
    out.number(names.len() as u64, 8)?;
    out.bytes(&names)?;
    let most = trace.lanes().iter().flatten().map(|pages| pages.cpu.0.saturating_add(1)).max();
    let rows = header.options.cpu_count.unwrap_or(header.cpus).max(most.unwrap_or(0));
    out.number(rows.into(), 4)?;
    let places = write_v6_options(trace, rows, rewriter, out)?;
    let mut tables = Vec::new();
    for (nth, buffer) in header.buffers.iter().enumerate() {
        if let Some(place) = nth.checked_sub(1).and_then(|nth| places.instances.get(nth)) {
            out.patch(*place, out.at, 8)?;
        }
        out.bytes(b"flyrecord\0")?;
        tables.push(out.at);
        for _ in 0..rows {
            out.bytes(&[0; 16])?;
        }
        if header.options.raw.iter().any(|(id, _)| *id == TRACE_CLOCK) {
            let clock = format!("[{}]", buffer.clock);
            out.number(clock.len() as u64, 8)?;
            out.bytes(clock.as_bytes())?;
        }
    }
    let mut written = Vec::new();
    for (nth, table) in tables.into_iter().enumerate() {
        let data = write_data(trace, nth, past, None, rewriter, out)?;
        for row in data.iter().filter(|row| row.size > 0) {
            let place = table.saturating_add(u64::from(row.cpu).saturating_mul(16));
            out.patch(place, row.at, 8)?;
            out.patch(place.saturating_add(8), row.size, 8)?;
        }
        written.push((nth, data));
    }
    out.patch(places.note, out.at, 8)?;
    out.patch(places.note.saturating_add(8), note.len() as u64, 8)?;
    out.bytes(note)?;
    let mut stats = Stats::new(trace, &written);
    for (place, room, text) in &places.stats {
        let text = stats.of_part(text);
        out.patch_bytes(*place, text.get(..text.len().min(*room)).unwrap_or_default())?;
    }
    Ok(())
}

/// Room for what the statistics of a part take more than those of the whole: three numbers of twenty digits.
const STATISTICS_ROOM: usize = 64;

/// Writes the options, with room for what follows from the data.
fn write_v6_options<W: Write + Seek>(
    trace: &Trace,
    rows: u32,
    rewriter: &mut Option<Rewriter<'_>>,
    out: &mut Output<W>,
) -> Result<Places> {
    let mut places = Places::default();
    out.bytes(b"options  \0")?;
    for (id, payload) in &trace.header().options.raw {
        if *id == CPU_STATISTICS {
            let room = payload.len().saturating_add(STATISTICS_ROOM);
            places.stats.push((out.at.saturating_add(6), room, payload.clone()));
            option(*id, &vec![0; room], out)?;
        } else if *id == CPU_COUNT {
            let mut count = Vec::new();
            trace.endian().put(&mut count, rows.into(), 4);
            option(*id, &count, out)?;
        } else if let Some(payload) = copied(*id, payload, rewriter) {
            option(*id, &payload, out)?;
        }
    }
    for buffer in trace.header().buffers.iter().skip(1) {
        places.instances.push(out.at.saturating_add(6));
        let payload: Vec<u8> = [0; 8].into_iter().chain(buffer.name.bytes()).chain([0]).collect();
        option(BUFFER, &payload, out)?;
    }
    places.note = note_option(false, out)?;
    out.number(0, 2)?;
    Ok(places)
}

/// Writes a section, of which the body is compressed or not; returns the place of its header.
fn section<W: Write + Seek>(id: u16, body: &[u8], codec: Option<Codec>, out: &mut Output<W>) -> Result<u64> {
    let at = out.at;
    let compressed = codec.map(|codec| chunk::compress(codec, body)).transpose()?;
    let size = compressed.as_ref().map_or(body.len(), |block| block.len().saturating_add(8));
    section_header(id, compressed.is_some(), size as u64, out)?;
    if let Some(block) = &compressed {
        out.number(block.len() as u64, 4)?;
        out.number(body.len() as u64, 4)?;
    }
    out.bytes(compressed.as_deref().unwrap_or(body))?;
    Ok(at)
}

/// The bytes of the header of a section.
const SECTION_HEADER: u64 = 16;

/// Writes the header of a section without a description.
fn section_header<W: Write + Seek>(id: u16, is_compressed: bool, size: u64, out: &mut Output<W>) -> Result<()> {
    out.number(id.into(), 2)?;
    out.number(is_compressed.into(), 2)?;
    out.number(u32::MAX.into(), 4)?;
    out.number(size, 8)
}

fn write_v7<W: Write + Seek>(
    trace: &Trace,
    past: &Past,
    note: &[u8],
    rewriter: &mut Option<Rewriter<'_>>,
    out: &mut Output<W>,
) -> Result<()> {
    let header = trace.header();
    let first_options = header.head_end.saturating_sub(8);
    copy(trace, 0..first_options, out)?;
    out.number(0, 8)?;
    let sections = copy_sections(trace, rewriter, out)?;
    let mut written = Vec::new();
    let mut buffers = Vec::new();
    for (nth, buffer) in header.buffers.iter().enumerate() {
        let codec = header.codec.filter(|_| buffer.compressed);
        let at = out.at;
        section_header(BUFFER, codec.is_some(), 0, out)?;
        let data = write_data(trace, nth, past, codec, rewriter, out)?;
        let size = out.at.saturating_sub(at.saturating_add(SECTION_HEADER));
        let is_empty = data.iter().all(|row| row.size == 0);
        out.patch(at.saturating_add(8), if is_empty { 0 } else { size }, 8)?;
        buffers.push(buffer_option(trace, nth, buffer, at, &data));
        written.push((nth, data));
    }
    let note_at = section(PART, note, header.codec, out)?.saturating_add(SECTION_HEADER);
    let note_size = out.at.saturating_sub(note_at);
    let options_at = out.at;
    section_header(0, false, 0, out)?;
    for (id, at) in sections {
        let mut payload = Vec::new();
        out.endian.put(&mut payload, at, 8);
        option(id, &payload, out)?;
    }
    let mut stats = Stats::new(trace, &written);
    for (id, payload) in &header.options.raw {
        if *id == CPU_STATISTICS {
            option(*id, &stats.of_part(payload), out)?;
        } else if let Some(payload) = copied(*id, payload, rewriter) {
            option(*id, &payload, out)?;
        }
    }
    for payload in buffers {
        option(BUFFER, &payload, out)?;
    }
    let place = note_option(header.codec.is_some(), out)?;
    out.patch(place, note_at, 8)?;
    out.patch(place.saturating_add(8), note_size, 8)?;
    option(0, &[0; 8], out)?;
    out.patch(options_at.saturating_add(8), out.at.saturating_sub(options_at.saturating_add(SECTION_HEADER)), 8)?;
    out.patch(first_options, options_at, 8)
}

/// Copies the sections with texts; returns the number and the place of each.
fn copy_sections<W: Write + Seek>(
    trace: &Trace,
    rewriter: &mut Option<Rewriter<'_>>,
    out: &mut Output<W>,
) -> Result<Vec<(u16, u64)>> {
    let (header, endian) = (trace.header(), trace.endian());
    let texts = (16..).zip(header.options.sections.iter().copied()).filter_map(|(id, at)| Some((id, at?)));
    let raw = header.options.raw.iter().filter(|(id, _)| [BTF, MODULES].contains(id));
    let others = raw.filter_map(|(id, payload)| Some((*id, endian.u64(payload, 0)?)));
    let mut sections = Vec::new();
    for (id, at) in texts.chain(others) {
        let place = section_place(trace.source(), endian, at, id);
        let copied = out.at;
        match (place, rewriter.is_some()) {
            (Some(_), true) if id == COMMAND_NAMES => {
                let names = names(trace, rewriter);
                let mut body = Vec::new();
                endian.put(&mut body, names.len() as u64, 8);
                body.extend(names);
                section(id, &body, header.codec, out)?;
            }
            (Some(place), _) => copy(trace, place, out)?,
            (None, _) => continue,
        }
        sections.push((id, copied));
    }
    Ok(sections)
}

/// The payload of a BUFFER option of version 7.
fn buffer_option(trace: &Trace, nth: usize, buffer: &BufferHeader, at: u64, data: &[Written]) -> Vec<u8> {
    let endian = trace.endian();
    let lanes = trace.lanes().get(nth).and_then(|lanes| lanes.first());
    let page_size = lanes.map_or(buffer.page_size.into(), |pages| pages.layout.size as u64);
    let rows: Vec<&Written> = data.iter().filter(|row| row.size > 0).collect();
    let mut payload = Vec::new();
    endian.put(&mut payload, at, 8);
    for text in [&buffer.name, &buffer.clock] {
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

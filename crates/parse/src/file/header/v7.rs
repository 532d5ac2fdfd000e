//! Version 7: sections, and a chain of options that point to them (`docs/trace-dat.md`, section 3).

use super::numbers::{BUFFER, PAGE};
use super::{BufferHeader, Header, HeaderPart, Initial, Reader, TextParts, Untabled};
use crate::bytes::{Bytes, Endian};
use crate::error::Error;
use crate::file::source::Source;
use crate::issue::FileIssue;
use crate::limits;
use std::collections::BTreeSet;
use std::ops::Range;

const HEADER: u64 = 16;
const OPTIONS: u16 = 0;

/// A section: what stands where.
#[derive(Clone, Copy, Debug)]
struct FileSection {
    id: u16,
    compressed: bool,
    /// File offset of the section's body, in bytes.
    body: u64,
    size: u64,
}

impl FileSection {
    /// The section whose header stands at `at`.
    fn at(reader: &Reader<'_>, at: u64) -> Option<FileSection> {
        FileSection::in_file(reader.source, reader.endian, at)
    }

    fn in_file(source: &Source, endian: Endian, at: u64) -> Option<FileSection> {
        let header = source.array::<16>(at)?;
        let mut bytes = Bytes::new(&header, at, endian);
        let id = bytes.u16().ok()?;
        let flags = bytes.u16().ok()?;
        // The description is an offset into the STRINGS sections. It is cosmetic.
        bytes.u32().ok()?;
        let size = bytes.u64().ok()?;
        Some(FileSection { id, compressed: flags & 1 != 0, body: bytes.at(), size })
    }
}

/// Returns the place of the section with the number `id` whose header is at `at`, from that header to the end of the
/// body.
pub(crate) fn section_place(source: &Source, endian: Endian, at: u64, id: u16) -> Option<Range<u64>> {
    let section = FileSection::in_file(source, endian, at).filter(|section| section.id == id)?;
    let end = section.body.checked_add(section.size).filter(|end| *end <= source.size())?;
    Some(at..end)
}

/// Returns all sections in file order from `start`, which is right behind the file's first header. Sections are found
/// so that no option points at, or that a broken chain of options has lost.
fn walk(reader: &Reader<'_>, start: u64) -> Vec<FileSection> {
    let mut sections = Vec::new();
    let mut at = start;
    while let Some(section) = FileSection::at(reader, at).filter(|_| sections.len() < limits::SECTIONS) {
        let Some(next) = section.body.checked_add(section.size) else { break };
        // Zeroes are not a section: id 0, size 0.
        if section.id > 64 || (section.id == OPTIONS && section.size == 0) {
            break;
        }
        sections.push(section);
        at = next;
    }
    sections
}

pub(super) fn read(reader: &mut Reader<'_>, start: u64, initial: Initial) -> Result<Header, Error> {
    let first_options = initial.first_options;
    let mut header = Header::new(initial);
    header.head_end = start;
    let complete = chain(reader, &mut header, first_options);
    let mut sections = Vec::new();
    if !complete || header.options.buffers.is_empty() {
        sections = walk(reader, start);
        salvage(reader, &mut header, &sections);
    }
    parts(reader, &mut header)?;
    header.cpus = header.options.cpu_count.unwrap_or(0);
    let options = std::mem::take(&mut header.options.buffers);
    let tables: Vec<u64> = options.iter().map(|option| option.at).collect();
    for option in options {
        let Some(rows) = option.rows else {
            reader.diagnostics.add_at(FileIssue::BadOption, || format!("buffer {:?}", option.name));
            continue;
        };
        let section = FileSection::at(reader, option.at).filter(|s| s.id == BUFFER);
        if section.is_none() && !rows.cpus.is_empty() {
            reader.diagnostics.add_at(FileIssue::TruncatedHeader, || format!("buffer section at offset {}", option.at));
        }
        // Without its section's flags the file's own compression is the best guess.
        let compressed = section.map_or(header.codec.is_some(), |s| s.compressed);
        let page_size =
            if (512..=1 << 20).contains(&rows.page_size) { rows.page_size } else { header.layout.size as u32 };
        header.buffers.push(BufferHeader {
            name: option.name,
            clock: if rows.clock.is_empty() { header.options.clock.clone().unwrap_or_default() } else { rows.clock },
            page_size,
            compressed,
            cpus: rows.cpus,
            untabled: None,
        });
    }
    if !complete {
        add_untabled(reader, &mut header, &sections, &tables);
    }
    if header.buffers.is_empty() {
        return Err(Error::unfinished());
    }
    let has_data = |b: &BufferHeader| !b.cpus.is_empty() || b.untabled.is_some();
    if header.buffers.iter().any(|b| b.compressed && has_data(b)) && header.codec.is_none() {
        reader
            .diagnostics
            .add_at(FileIssue::MissingDecoder, || format!("compression {:?}", header.version.compression));
    }
    Ok(header)
}

/// Adds the buffers whose data are there, but none of the `tables` of CPUs: these stand behind the data, where the file
/// was cut or is damaged.
fn add_untabled(reader: &Reader<'_>, header: &mut Header, sections: &[FileSection], tables: &[u64]) {
    let file_end = reader.source.size();
    let mut sections = sections.iter().peekable();
    while let Some(section) = sections.next() {
        let at = section.body.saturating_sub(HEADER);
        if section.id != BUFFER || tables.contains(&at) {
            continue;
        }
        // The size is written last; but an empty buffer has none.
        let is_last = sections.peek().is_none();
        let end = match section.size {
            0 if is_last => u64::MAX,
            size => section.body.saturating_add(size),
        };
        let place = section.body..end.min(file_end);
        let mut rows = header.buffers.iter().flat_map(|buffer| &buffer.cpus);
        if place.end.saturating_sub(place.start) <= HEADER || rows.any(|row| place.contains(&row.at)) {
            continue;
        }
        // An instance has its name from the option that is missing.
        let name = if header.buffers.is_empty() { String::new() } else { format!("buffer at offset {at}") }.into();
        header.buffers.push(BufferHeader {
            name,
            clock: header.options.clock.clone().unwrap_or_default(),
            page_size: header.layout.size as u32,
            compressed: section.compressed,
            cpus: Vec::new(),
            untabled: Some(Untabled { place, is_cut: end > file_end }),
        });
    }
}

/// Follows the options from section to section; whether the chain came to its end.
fn chain(reader: &mut Reader<'_>, header: &mut Header, first: u64) -> bool {
    let mut at = first;
    let mut seen = BTreeSet::new();
    loop {
        if at == 0 {
            return !seen.is_empty();
        }
        let section = FileSection::at(reader, at).filter(|s| s.id == OPTIONS);
        let Some(section) = section.filter(|_| seen.len() < limits::SECTIONS && seen.insert(at)) else {
            reader.diagnostics.add_at(FileIssue::TruncatedHeader, || format!("options section at offset {at}"));
            return false;
        };
        match options(reader, header, &section) {
            Some(next) => at = next,
            None => return false,
        }
    }
}

/// Reads one options section; the offset of the next, 0 for none. `None` if it is cut.
fn options(reader: &mut Reader<'_>, header: &mut Header, section: &FileSection) -> Option<u64> {
    let endian = reader.endian;
    let mut part = part_of(header, section, 0);
    // A section that the file's end cuts is read as far as it goes, and one of wrong size up to a limit.
    let most = part.range.start.saturating_add(limits::HEADER_TEXTS / 4);
    let end = part.range.end.min(reader.source.size()).min(most);
    if !section.compressed {
        part.range = part.range.start.min(end)..end;
    }
    if !reader.afford(part.size(reader.source, endian), || format!("options at offset {}", section.body)) {
        return None;
    }
    let body = part.body(reader.source, endian)?;
    let mut bytes = Bytes::new(&body, section.body, endian);
    while let (Ok(id), Ok(size)) = (bytes.u16(), bytes.u32()) {
        let start = bytes.at();
        let Ok(payload) = bytes.take(size.into()) else { break };
        let mut payload = Bytes::new(payload, start, endian);
        if id == 0 {
            return payload.u64().ok();
        }
        header.options.add(reader, id, payload);
    }
    let at = bytes.at();
    reader.diagnostics.add_at(FileIssue::TruncatedHeader, || format!("options at offset {at}"));
    None
}

/// Reads every options section that the walk found and the chain did not.
fn salvage(reader: &mut Reader<'_>, header: &mut Header, sections: &[FileSection]) {
    if header.options.buffers.is_empty() {
        // The parts that the chain did deliver are delivered again; single facts are simply set again.
        header.options.stats.clear();
        header.options.raw.clear();
        for section in sections.iter().filter(|s| s.id == OPTIONS) {
            let _ = options(reader, header, section);
        }
    }
    for section in sections {
        let slot =
            usize::from(section.id).checked_sub(usize::from(PAGE)).and_then(|i| header.options.sections.get_mut(i));
        if let Some(slot) = slot {
            slot.get_or_insert(section.body.saturating_sub(HEADER));
        }
    }
}

fn part_of(header: &Header, section: &FileSection, size_field: usize) -> HeaderPart {
    HeaderPart {
        range: section.body..section.body.saturating_add(section.size),
        compressed: if section.compressed { header.codec } else { None },
        size_field,
    }
}

/// Reads what the options point to.
fn parts(reader: &mut Reader<'_>, header: &mut Header) -> Result<(), Error> {
    const NAMES: [&str; 6] =
        ["header_page", "ftrace's event formats", "event formats", "symbols", "printk formats", "command lines"];
    let mut found: [HeaderPart; 6] = Default::default();
    for (i, slot) in found.iter_mut().enumerate() {
        let at = header.options.sections.get(i).copied().flatten();
        let section = at
            .and_then(|at| FileSection::at(reader, at))
            .filter(|s| usize::from(s.id) == i.saturating_add(usize::from(PAGE)));
        // The last two are often absent, and are not needed.
        match section {
            Some(section) => *slot = part_of(header, &section, [0, 0, 0, 4, 4, 8].get(i).copied().unwrap_or(0)),
            None => reader
                .diagnostics
                .add_at(FileIssue::MissingSection, || NAMES.get(i).map_or(String::new(), |n| (*n).to_owned())),
        }
    }
    let [header_page, ftrace, systems, kallsyms, printk, cmdlines] = found;
    let load = |reader: &mut Reader<'_>, part: &HeaderPart, name: &'static str| {
        if !reader.afford(part.size(reader.source, reader.endian), || name.to_owned()) {
            return Vec::new();
        }
        let body = part.body(reader.source, reader.endian);
        if body.is_none() && !part.is_empty() {
            let damage = if part.compressed.is_none() { FileIssue::TruncatedHeader } else { FileIssue::CorruptChunk };
            reader.diagnostics.add_at(damage, || name.to_owned());
        }
        body.unwrap_or_default()
    };
    let body = load(reader, &header_page, NAMES[0]);
    if !body.is_empty() {
        header.read_header_page(&mut cursor(&body, &header_page, reader.endian))?;
    }
    for (part, name, is_ftrace) in [(&ftrace, NAMES[1], true), (&systems, NAMES[2], false)] {
        let body = load(reader, part, name);
        let mut bytes = cursor(&body, part, reader.endian);
        let formats = &mut header.formats;
        let read = if is_ftrace { formats.add_ftrace(&mut bytes) } else { formats.add_systems(&mut bytes) };
        if read.is_err() && !body.is_empty() {
            reader.diagnostics.add_at(FileIssue::TruncatedHeader, || name.to_owned());
        }
    }
    header.texts = TextParts { page: header_page, ftrace, systems };
    // These are read when they are asked for.
    let [_, _, _, names @ ..] = NAMES;
    for ((part, name), slot) in [kallsyms, printk, cmdlines].into_iter().zip(names).zip([
        &mut header.kallsyms,
        &mut header.printk,
        &mut header.cmdlines,
    ]) {
        if reader.afford(part.size(reader.source, reader.endian), || name.to_owned()) {
            *slot = part;
        }
    }
    Ok(())
}

fn cursor<'b>(body: &'b [u8], part: &HeaderPart, endian: Endian) -> Bytes<'b> {
    Bytes::new(body, part.range.start, endian)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of sections that each point to the next.
    fn chained(sections: u64) -> Vec<u8> {
        let mut file = b"\x17\x08\x44tracing7\0\0\x08\0\x10\0\0none\0\0".to_vec();
        let first = file.len() as u64 + 8;
        file.extend(first.to_le_bytes());
        for nth in 1..=sections {
            let next = if nth < sections { first + 30 * nth } else { 0 };
            file.extend([0; 4].into_iter().chain([0xff; 4]).chain(14u64.to_le_bytes()));
            file.extend([0, 0].into_iter().chain(8u32.to_le_bytes()).chain(next.to_le_bytes()));
        }
        file
    }

    #[test]
    fn a_chain_of_options_has_a_limit() {
        let followed = |sections| {
            let file = chained(sections);
            let initial = super::super::initial(&mut Bytes::new(&file, 0, Endian::Little)).expect("a start");
            let source = Source::Memory(file);
            let mut reader = Reader::new(&source, Endian::Little);
            let first = initial.first_options;
            (chain(&mut reader, &mut Header::new(initial), first), reader.diagnostics.count(FileIssue::TruncatedHeader))
        };
        assert_eq!(followed(limits::SECTIONS as u64), (true, 0));
        assert_eq!(followed(limits::SECTIONS as u64 + 1), (false, 1));
    }
}

//! The ring buffers of the kernel as they are: the pages of each CPU, and the formats of their events, in a folder or a tar archive.
//!
//! Two layouts: a copy of tracefs (`per_cpu/cpu3/trace_pipe_raw`, `events/header_page`, `events/sched/sched_switch/format`), and that of the
//! collector of google/schedviz (`traces/cpu3`, `formats/…`). The parts become a trace.dat of version 6, which has the same pages.

use parse::{Error, Source};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use transcript::Sorted;

/// Files of an archive, or files and folders of a folder: a kernel has some 2,500 events, each with up to six files.
const FILES: usize = 65_536;
/// Folders within folders.
const DEPTH: usize = 8;
/// Bytes of a text, and of all of them.
const TEXT: u64 = 4 << 20;
const TEXTS: u64 = 64 << 20;

/// The bytes of a part: a file, or a stretch of an archive.
enum RawPart<'s> {
    Own(Source),
    Of(&'s Source, u64, u64),
}

impl RawPart<'_> {
    fn size(&self) -> u64 {
        match self {
            RawPart::Own(source) => source.size(),
            RawPart::Of(_, _, size) => *size,
        }
    }

    fn get(&self, at: u64, size: u64) -> Option<Vec<u8>> {
        match self {
            RawPart::Own(source) => source.get(&(at..at.saturating_add(size))),
            RawPart::Of(source, start, _) => {
                let at = start.saturating_add(at);
                source.get(&(at..at.saturating_add(size)))
            }
        }
    }
}

/// The parts of a recording.
#[derive(Default)]
struct RawParts<'s> {
    header_page: Vec<u8>,
    header_event: Vec<u8>,
    /// The text of each event's format, by system.
    formats: BTreeMap<String, BTreeMap<String, Vec<u8>>>,
    clock: Vec<u8>,
    names: Vec<u8>,
    printk: Vec<u8>,
    symbols: Vec<u8>,
    cpus: BTreeMap<u32, RawPart<'s>>,
    texts: u64,
    /// The first part that cannot be read.
    unread: Option<Error>,
}

impl<'s> RawParts<'s> {
    /// Takes a file by the names on its path, and opens it if it is a part.
    fn take(&mut self, path: &[&str], open: impl FnOnce() -> Result<RawPart<'s>, Error>) {
        match path {
            [.., cpu, "trace_pipe_raw"] | [.., "traces", cpu] => {
                let number = cpu.strip_prefix("cpu").and_then(|number| number.parse().ok());
                if let Some(cpu) = number.filter(|cpu| *cpu < sched::Cpu::LIMIT)
                    && let Some(part) = self.opened(open)
                {
                    self.cpus.entry(cpu).or_insert(part);
                }
            }
            [.., system, event, "format"] => {
                let text = self.text(open);
                self.formats.entry((*system).to_owned()).or_default().insert((*event).to_owned(), text);
            }
            [.., "header_page"] => self.header_page = self.text(open),
            [.., "header_event"] => self.header_event = self.text(open),
            [.., "trace_clock"] => self.clock = self.text(open),
            [.., "saved_cmdlines"] => self.names = self.text(open),
            [.., "printk_formats"] => self.printk = self.text(open),
            [.., "kallsyms"] => self.symbols = self.text(open),
            _ => {}
        }
    }

    /// A part; nothing of one that cannot be read.
    fn opened(&mut self, open: impl FnOnce() -> Result<RawPart<'s>, Error>) -> Option<RawPart<'s>> {
        open().map_err(|error| self.unread.get_or_insert(error)).ok()
    }

    /// A text; nothing of one beyond the limits.
    fn text(&mut self, open: impl FnOnce() -> Result<RawPart<'s>, Error>) -> Vec<u8> {
        let Some(part) = self.opened(open) else { return Vec::new() };
        let size = part.size();
        self.texts = self.texts.saturating_add(size);
        if size > TEXT || self.texts > TEXTS { Vec::new() } else { part.get(0, size).unwrap_or_default() }
    }

    /// Whether there are pages and the formats of their events.
    fn is_recording(&self) -> bool {
        !self.cpus.is_empty() && !self.formats.is_empty() && !self.header_page.is_empty()
    }

    /// The size of a page, by the description of its last field.
    fn page_size(&self) -> u64 {
        let text = String::from_utf8_lossy(&self.header_page);
        let data = text.lines().find(|line| line.split(';').next().is_some_and(|field| field.ends_with(" data")));
        let number = |name: &str| {
            let part = data?.split(';').find_map(|part| part.trim_ascii().strip_prefix(name))?;
            part.trim_ascii().parse::<u64>().ok()
        };
        let size = number("offset:").zip(number("size:")).map(|(offset, size)| offset.saturating_add(size));
        size.filter(|size| (64..=1 << 20).contains(size)).unwrap_or(4096)
    }

    /// Whether the machine is big-endian: the number of bytes of the first page makes sense in one order alone.
    fn is_big_endian(&self) -> bool {
        let size = self.page_size();
        let commit = |part: &RawPart<'_>| part.get(8, 8)?.first_chunk::<8>().copied();
        let fits = |commit: u64| (1..=size).contains(&(commit & 0x7ff_ffff));
        let first = self.cpus.values().filter_map(commit).find(|commit| *commit != [0; 8]);
        first.is_some_and(|commit| {
            let little = fits(u32::from_le_bytes([commit[0], commit[1], commit[2], commit[3]]).into());
            !little && (fits(u64::from_be_bytes(commit)) || fits(u64::from_be_bytes(commit) >> 32))
        })
    }

    /// Writes the parts as a trace.dat.
    fn into_dat(self) -> io::Result<Source> {
        let (big, page) = (self.is_big_endian(), self.page_size());
        let mut head = DatHead { bytes: b"\x17\x08\x44tracing6\0".to_vec(), big };
        let long =
            if String::from_utf8_lossy(&self.header_page).contains("commit;\toffset:8;\tsize:4") { 4 } else { 8 };
        head.bytes.extend([u8::from(big), long]);
        head.number(page, 4);
        head.bytes.extend(b"header_page\0");
        head.text(&self.header_page, 8);
        head.bytes.extend(b"header_event\0");
        head.text(&self.header_event, 8);
        let no_events = BTreeMap::new();
        let of_ftrace = self.formats.get("ftrace").unwrap_or(&no_events);
        head.number(of_ftrace.len() as u64, 4);
        of_ftrace.values().for_each(|text| head.text(text, 8));
        let systems = || self.formats.iter().filter(|(system, _)| *system != "ftrace");
        head.number(systems().count() as u64, 4);
        for (system, events) in systems() {
            head.bytes.extend(system.bytes().chain([0]));
            head.number(events.len() as u64, 4);
            events.values().for_each(|text| head.text(text, 8));
        }
        head.text(&self.symbols, 4);
        head.text(&self.printk, 4);
        head.text(&self.names, 8);
        // A CPU of the machine has a file, though it may be empty.
        let cpus = self.cpus.last_key_value().map_or(0, |(cpu, _)| cpu.saturating_add(1));
        head.number(cpus.into(), 4);
        head.bytes.extend(b"options  \0");
        head.option(9, b"raw buffers of the kernel\0");
        if !self.clock.is_empty() {
            head.option(4, &[&self.clock[..], b"\0"].concat());
        }
        head.number(0, 2);
        head.bytes.extend(b"flyrecord\0");
        let table = head.bytes.len() as u64;
        let trailer = if self.clock.is_empty() { 0 } else { 8u64.saturating_add(self.clock.len() as u64) };
        let start = table.saturating_add(u64::from(cpus).saturating_mul(16)).saturating_add(trailer);
        let start = start.next_multiple_of(page);
        let mut at = start;
        for cpu in 0..cpus {
            let size = self.cpus.get(&cpu).map_or(0, RawPart::size);
            head.number(if size > 0 { at } else { 0 }, 8);
            head.number(size, 8);
            at = at.saturating_add(size);
        }
        if !self.clock.is_empty() {
            head.text(&self.clock, 8);
        }
        head.bytes.resize(usize::try_from(start).unwrap_or(usize::MAX), 0);
        let mut out = Sorted::default();
        out.append(&head.bytes)?;
        for part in self.cpus.values() {
            copy(part, &mut out)?;
        }
        Ok(out.into_source())
    }
}

/// Appends a part as it is. Filled up to a whole page, parts of a byte in an archive of some MB would take GB.
fn copy(part: &RawPart<'_>, out: &mut Sorted) -> io::Result<()> {
    const PIECE: u64 = 1 << 20;
    let mut at = 0u64;
    while at < part.size() {
        let size = PIECE.min(part.size().saturating_sub(at));
        let bytes = part.get(at, size).ok_or(io::ErrorKind::UnexpectedEof)?;
        out.append(&bytes)?;
        at = at.saturating_add(size);
    }
    Ok(())
}

/// The beginning of a trace.dat.
struct DatHead {
    bytes: Vec<u8>,
    big: bool,
}

impl DatHead {
    fn number(&mut self, value: u64, size: usize) {
        let (little, big) = (value.to_le_bytes(), value.to_be_bytes());
        let bytes = if self.big { big.get(8usize.saturating_sub(size)..) } else { little.get(..size) };
        self.bytes.extend(bytes.unwrap_or_default());
    }

    fn text(&mut self, text: &[u8], size: usize) {
        self.number(text.len() as u64, size);
        self.bytes.extend(text);
    }

    fn option(&mut self, number: u64, payload: &[u8]) {
        self.number(number, 2);
        self.text(payload, 4);
    }
}

/// The buffers in a folder, as a trace.dat; nothing if it has none.
pub(crate) fn of_folder(folder: &Path) -> Result<Option<Source>, Error> {
    let (mut parts, mut visited) = (RawParts::default(), 0);
    visit(folder, &mut Vec::new(), &mut visited, &mut parts);
    dat(parts)
}

fn dat(mut parts: RawParts<'_>) -> Result<Option<Source>, Error> {
    // Without a CPU that is there the others say something else.
    match parts.unread.take() {
        Some(error) if !parts.cpus.is_empty() || !parts.formats.is_empty() => return Err(error),
        _ if !parts.is_recording() => return Ok(None),
        _ => {}
    }
    parts.into_dat().map(Some).map_err(|source| Error::Io { path: std::env::temp_dir(), source })
}

/// Takes the files of a folder and of those in it, in the order of their names.
fn visit(folder: &Path, names: &mut Vec<String>, visited: &mut usize, parts: &mut RawParts<'_>) {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(source) => {
            parts.unread.get_or_insert(Error::Io { path: folder.to_owned(), source });
            return;
        }
    };
    let mut entries: Vec<fs::DirEntry> = entries.flatten().take(FILES).collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        if *visited >= FILES {
            return;
        }
        *visited = visited.saturating_add(1);
        let Ok(name) = entry.file_name().into_string() else { continue };
        // Links are not followed: those of sysfs go round in circles.
        let Ok(kind) = entry.file_type() else { continue };
        names.push(name);
        if kind.is_dir() && names.len() < DEPTH {
            visit(&entry.path(), names, visited, parts);
        } else if kind.is_file() {
            let path: Vec<&str> = names.iter().map(String::as_str).collect();
            parts.take(&path, || {
                // An empty file has no size, as those of tracefs itself, whose reading would take the events out of the kernel.
                let is_empty = entry.metadata().is_ok_and(|found| found.len() == 0);
                let source = if is_empty { Ok(Source::Memory(Vec::new())) } else { Source::open(&entry.path()) };
                source.map(RawPart::Own)
            });
        }
        names.pop();
    }
}

/// Bytes of the head of a file in a tar archive, and the unit of its size.
const BLOCK: u64 = 512;

/// The buffers in a tar archive, as a trace.dat; nothing if it is none, or has none.
pub(crate) fn of_tar(source: &Source) -> Result<Option<Source>, Error> {
    let is_tar = source.get(&(257..262)).is_some_and(|magic| magic == b"ustar");
    let (mut parts, mut at) = (RawParts::default(), 0u64);
    for _ in 0..FILES {
        let Some(head) = source.get(&(at..at.saturating_add(BLOCK))).filter(|_| is_tar) else { break };
        let field = |place: std::ops::Range<usize>| {
            let bytes = head.get(place).unwrap_or_default();
            let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
            String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).into_owned()
        };
        let Ok(size) = u64::from_str_radix(field(124..136).trim(), 8) else { break };
        let start = at.saturating_add(BLOCK);
        let name = format!("{}/{}", field(345..500), field(0..100));
        let path: Vec<&str> = name.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
        let present = size.min(source.size().saturating_sub(start));
        if matches!(head.get(156), Some(b'0' | 0)) {
            parts.take(&path, || Ok(RawPart::Of(source, start, present)));
        }
        at = start.saturating_add(size).checked_next_multiple_of(BLOCK).unwrap_or(u64::MAX);
    }
    dat(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Otherwise a CPU whose file only root may read would be one that was never recorded.
    #[test]
    fn a_part_that_cannot_be_read_is_an_error() {
        let of = |text: &[u8]| Ok(RawPart::Own(Source::Memory(text.to_vec())));
        let fails = || Err(Error::NoEvents { why: "not for you".into() });
        let mut parts = RawParts::default();
        parts.take(&["events", "header_page"], || of(b"field: char data;\toffset:16;\tsize:4080;"));
        parts.take(&["events", "sched", "sched_switch", "format"], || of(b"name: sched_switch"));
        parts.take(&["per_cpu", "cpu0", "trace_pipe_raw"], || of(&[0; 4096]));
        parts.take(&["per_cpu", "cpu0", "stats"], fails);
        assert!(parts.unread.is_none() && parts.is_recording());
        parts.take(&["per_cpu", "cpu1", "trace_pipe_raw"], fails);
        assert_eq!(dat(parts).err().map(|error| error.to_string().contains("not for you")), Some(true));
        // A folder of something else is none of these, whatever of it cannot be read.
        let mut parts = RawParts::default();
        parts.take(&["kallsyms"], fails);
        assert!(dat(parts).unwrap().is_none());
    }
    #[test]
    fn parts_of_pages_take_their_own_room() {
        let of = |text: &[u8]| Ok(RawPart::Own(Source::Memory(text.to_vec())));
        let mut parts = RawParts::default();
        parts.take(&["events", "header_page"], || of(b"field: char data;\toffset:16;\tsize:1048560;"));
        parts.take(&["events", "sched", "sched_switch", "format"], || of(b"name: sched_switch"));
        for cpu in 0..100 {
            parts.take(&["per_cpu", &format!("cpu{cpu}"), "trace_pipe_raw"], || of(b"x"));
        }
        assert_eq!(parts.page_size(), 1 << 20);
        assert!(dat(parts).unwrap().unwrap().size() <= (1 << 20) + 100);
    }
}

//! Names and texts of a trace replaced by others, without a meaning, of the same length or shorter.
//!
//! Names of the kernel's threads stay, since analyses use them. Any other name gets the same alias wherever it stands. Texts
//! that are no names (file names, markers, texts of `trace_printk`) become `x`. Bytes that no field covers are cleared:
//! the kernel reuses pages without clearing them.

use crate::bytes::Endian;
use crate::decode::format::{EventFormat, Field, Shape, place};
use crate::file::page_layout::PageLayout;
use crate::ring::page::Page;
use crate::trace::{Kept, Record, Trace};
use sched::kthread::is_kernel_thread;
use sched::seeded::{SeededMap, SeededSet};
use sched::{Comm, Tracepoint};
use std::ops::Range;

/// The option with the machine's name.
const UNAME: u16 = 5;
/// Options with addresses of programs, and with names of guests.
const PERSONAL: [u16; 3] = [6, 10, 13];

/// An alias for each name.
#[derive(Clone, Debug, Default)]
pub struct Aliases {
    of: SeededMap<Comm, Comm>,
    used: SeededSet<Comm>,
    next: u64,
}

impl Aliases {
    /// The name that stands for `name`: always the same, no other name's, and not longer.
    pub fn of(&mut self, name: Comm) -> Comm {
        if stays(name) {
            return name;
        }
        if let Some(alias) = self.of.get(&name) {
            return *alias;
        }
        let alias = self.fresh(name.as_bytes().len());
        self.used.insert(alias);
        self.of.insert(name, alias);
        alias
    }

    /// A name of at most this number of bytes that stands for no other yet.
    fn fresh(&mut self, room: usize) -> Comm {
        self.next = self.next.saturating_add(1);
        let number = self.next;
        let usual = [format!("task{number}"), format!("t{number}")];
        let fits = |name: &String| name.len() <= room && !self.used.contains(&Comm::new(name.as_bytes()));
        if let Some(name) = usual.iter().find(|name| fits(name)) {
            return Comm::new(name.as_bytes());
        }
        (0..SHORT_NAMES).map(|n| short(n, room)).find(|name| !self.used.contains(name)).unwrap_or(Comm::new(b"?"))
    }
}

/// How many short names are tried.
const SHORT_NAMES: u64 = 1 << 20;

/// A name of `room` bytes: the digits of a number, to a base of 36.
fn short(mut number: u64, room: usize) -> Comm {
    let mut name = vec![b'a'; room];
    for place in name.iter_mut().rev() {
        let digit = (number % 36) as u8;
        *place = if digit < 26 { b'a'.saturating_add(digit) } else { b'0'.saturating_add(digit.saturating_sub(26)) };
        number /= 36;
    }
    Comm::new(&name)
}

/// Names that stay: those of the kernel's threads and of recorders, by which the traced command is found.
fn stays(name: Comm) -> bool {
    let name_is = |known: &[u8]| name.as_bytes() == known;
    name.is_empty()
        || is_kernel_thread(name)
        || name.as_bytes().starts_with(b"swapper/")
        || [b"trace-cmd".as_slice(), b"schedviz", b"<idle>", b"<...>"].into_iter().any(name_is)
}

/// The fields of an event: where its texts are, and what else is kept.
#[derive(Debug, Default)]
struct Fields {
    /// Names of tasks.
    names: Vec<Field>,
    /// Names of files of which the last part is a task's name.
    programs: Vec<Field>,
    /// Other texts, and bytes of a program's choice.
    texts: Vec<Field>,
    /// All others.
    others: Vec<Field>,
}

impl Fields {
    fn of(format: &EventFormat) -> Fields {
        let mut fields = Fields::default();
        let is_raw = format.system == "ftrace" && ["bprint", "raw_data"].contains(&format.name.as_str());
        for field in &format.fields {
            let kind = match field.name.as_str() {
                "filename" if format.name == Tracepoint::Exec.name() => &mut fields.programs,
                name if field.is_text() && name.ends_with("comm") => &mut fields.names,
                "buf" if is_raw => &mut fields.texts,
                // Those of the probes on the balancer are names of scheduling domains.
                _ if field.is_text() && format.system != "lb" => &mut fields.texts,
                _ => &mut fields.others,
            };
            kind.push(field.clone());
        }
        fields
    }
}

/// Rewrites the pages, the options, the saved names and single records of a trace.
#[derive(Debug)]
pub struct Rewriter<'r> {
    trace: &'r Trace,
    aliases: &'r mut Aliases,
    /// By event number.
    fields: SeededMap<u16, Option<Fields>>,
}

impl<'r> Rewriter<'r> {
    /// Rewrites a trace with these aliases.
    pub fn new(trace: &'r Trace, aliases: &'r mut Aliases) -> Rewriter<'r> {
        Rewriter { trace, aliases, fields: SeededMap::default() }
    }

    /// Keeps a record as an anonymous part has it.
    pub fn keep(&mut self, record: &Record<'_>) -> Kept {
        let payload = self.payload(record.payload(), record.endian());
        record.keep_with(&payload)
    }

    /// The name that stands for `name`.
    pub fn name(&mut self, name: Comm) -> Comm {
        self.aliases.of(name)
    }

    /// An option, if an anonymous part has it.
    pub(super) fn option(&self, id: u16, payload: &[u8]) -> Option<Vec<u8>> {
        match id {
            UNAME => Some(without_node(payload)),
            id if PERSONAL.contains(&id) => None,
            _ => Some(payload.to_vec()),
        }
    }

    /// The text of the saved names.
    pub(super) fn saved_names(&mut self, text: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        for line in text.split(|byte| *byte == b'\n') {
            if let Some(space) = line.iter().position(|byte| *byte == b' ').filter(|space| *space > 0) {
                let (pid, name) = line.split_at(space);
                if pid.iter().all(u8::is_ascii_digit) {
                    let name = self.aliases.of(Comm::new(name.strip_prefix(b" ").unwrap_or(name)));
                    out.extend(pid.iter().chain(b" ").chain(name.as_bytes()).chain(b"\n"));
                }
            }
        }
        out
    }

    /// Rewrites a page.
    pub(super) fn page(&mut self, bytes: &mut Vec<u8>, layout: &PageLayout) {
        let head = layout.data.min(bytes.len());
        let mut page = bytes.get(..head).unwrap_or_default().to_vec();
        if let Ok(parsed) = Page::parse(bytes, layout) {
            page.extend(self.records(parsed.data(), layout.endian));
            if parsed.lost.is_some_and(|lost| lost.count.is_some()) {
                let end = page.len();
                page.extend_from_slice(bytes.get(end..end.saturating_add(layout.long)).unwrap_or_default());
            }
        }
        page.resize(bytes.len(), 0);
        *bytes = page;
    }

    /// The records of a page, as many bytes as they were.
    fn records(&mut self, data: &[u8], endian: Endian) -> Vec<u8> {
        let mut out = Vec::with_capacity(data.len());
        let mut rest = data;
        while let Some((header, payload, behind)) = entry(rest, endian) {
            out.extend_from_slice(header);
            if let Some(payload) = payload {
                out.extend(self.payload(payload, endian));
            }
            let done = data.len().saturating_sub(behind.len());
            out.resize(done, 0);
            rest = behind;
        }
        out.resize(data.len(), 0);
        out
    }

    /// A record, as many bytes as it was.
    fn payload(&mut self, payload: &[u8], endian: Endian) -> Vec<u8> {
        let mut out = vec![0; payload.len()];
        let trace = self.trace;
        let Some(id) = trace.common().id(payload, endian) else { return out };
        let fields = self.fields.entry(id).or_insert_with(|| trace.format(id).map(Fields::of));
        let Some(fields) = fields else {
            // Without a format only the common fields are known.
            keep(&mut out, payload, 0..8);
            return out;
        };
        for field in &fields.others {
            keep_field(&mut out, payload, field, endian);
        }
        for (field, is_program) in
            fields.names.iter().map(|f| (f, false)).chain(fields.programs.iter().map(|f| (f, true)))
        {
            let Some(place) = place_of(payload, field, endian, &mut out) else { continue };
            let text = payload.get(place.clone()).unwrap_or_default();
            let name = if is_program { Comm::of_program(text) } else { Comm::new(text) };
            let alias = self.aliases.of(name);
            write(&mut out, place, alias.as_bytes());
        }
        for field in &fields.texts {
            let Some(place) = place_of(payload, field, endian, &mut out) else { continue };
            let text = payload.get(place.clone()).unwrap_or_default();
            let shown: Vec<u8> = if field.is_text() {
                let words = text.iter().take_while(|byte| **byte != 0);
                words.map(|byte| if *byte == b'\n' { b'\n' } else { b'x' }).collect()
            } else {
                Vec::new()
            };
            write(&mut out, place, &shown);
        }
        out
    }
}

/// A record or another entry of a page: its header, its payload if it has one, and the bytes behind it.
type Entry<'e> = (&'e [u8], Option<&'e [u8]>, &'e [u8]);

fn entry(data: &[u8], endian: Endian) -> Option<Entry<'_>> {
    let word = endian.u32(data, 0)?;
    let (kind, delta) = match endian {
        Endian::Little => (word & 31, word >> 5),
        Endian::Big => (word >> 27, word & ((1 << 27) - 1)),
    };
    let long = || usize::try_from(endian.u32(data, 4)?).ok()?.max(4).checked_next_multiple_of(4);
    let (header, length, is_record) = match kind {
        1..=28 => (4, usize::try_from(kind).ok()?.checked_mul(4)?, true),
        0 => (8, long()?.checked_sub(4)?, true),
        29 if delta == 0 => return None,
        // Discarded records are not kept.
        29 => (8, long()?.checked_sub(4)?, false),
        _ => (8, 0, false),
    };
    let (header, rest) = data.split_at_checked(header)?;
    let (payload, behind) = rest.split_at_checked(length)?;
    Some((header, is_record.then_some(payload), behind))
}

fn keep(out: &mut [u8], payload: &[u8], place: Range<usize>) {
    if let (Some(to), Some(from)) = (out.get_mut(place.clone()), payload.get(place)) {
        to.copy_from_slice(from);
    }
}

/// Keeps a field, with the data that it points to.
fn keep_field(out: &mut [u8], payload: &[u8], field: &Field, endian: Endian) {
    if let Some(place) = place_of(payload, field, endian, out) {
        keep(out, payload, place);
    }
}

/// Where the bytes of a field stand. The word that points to dynamic ones is kept.
fn place_of(payload: &[u8], field: &Field, endian: Endian, out: &mut [u8]) -> Option<Range<usize>> {
    let end = field.offset.saturating_add(field.size);
    match field.shape {
        Shape::Dynamic { relative, .. } => {
            keep(out, payload, field.offset..end);
            place(payload, field.offset, field.size, relative, endian)
        }
        Shape::Tail { .. } => Some(field.offset.min(payload.len())..payload.len()),
        _ => Some(field.offset..end.min(payload.len())).filter(|place| place.start <= place.end),
    }
}

/// Writes a text in its place, which is cleared.
fn write(out: &mut [u8], place: Range<usize>, text: &[u8]) {
    let Some(room) = out.get_mut(place) else { return };
    room.fill(0);
    room.iter_mut().zip(text).for_each(|(to, from)| *to = *from);
}

/// `sysname node release machine` with another node, which may have blanks.
fn without_node(payload: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(payload);
    let words: Vec<&str> = text.trim_end_matches('\0').split_whitespace().collect();
    match words.as_slice() {
        [system, .., release, machine] => format!("{system} host {release} {machine}\0").into_bytes(),
        _ => b"\0".to_vec(),
    }
}

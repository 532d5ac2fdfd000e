//! Names and texts of a trace replaced by others, without a meaning, of the same length or shorter.
//!
//! A part has the contents that are listed here, and no others: the numbers of events by their formats, words of which the
//! clock, the recorder's statistics and the like consist ([`super::allowed`]), and the texts of the kernel: formats, symbols
//! and the names that it gives its own threads. Any other name gets the same alias wherever it stands. Texts that are no
//! names (file names, markers, texts of `trace_printk`) become `x`. All other bytes are cleared, also those that no field
//! covers: the kernel reuses pages without clearing them.

use super::allowed;
use crate::bytes::{Endian, until_nul};
use crate::decode::format::{EventFormat, Field, FieldShape, place};
use crate::file::page_layout::PageLayout;
use crate::ring::page::RingPage;
use crate::trace::{Kept, Record, Trace};
use sched::kthread::is_kernel_thread;
use sched::seeded::{SeededMap, SeededSet};
use sched::{Comm, Tracepoint};
use std::ops::Range;

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
        // A kernel thread stays one, of the same kind.
        let kind = name.as_bytes().get(..kind_of_kernel_thread(name)).unwrap_or_default();
        let alias = self.fresh(kind, name.as_bytes().len());
        self.used.insert(alias);
        self.of.insert(name, alias);
        alias
    }

    /// A name of at most this number of bytes that begins with `kind` and stands for no other yet.
    fn fresh(&mut self, kind: &[u8], room: usize) -> Comm {
        self.next = self.next.saturating_add(1);
        let number = self.next;
        let behind = |rest: &[u8]| [kind, rest].concat();
        let usual = if kind.is_empty() { ["task", "t"] } else { ["thread", "k"] };
        let usual = usual.map(|word| behind(format!("{word}{number}").as_bytes()));
        if let Some(name) = usual.iter().find(|name| name.len() <= room && !self.used.contains(&Comm::new(name))) {
            return Comm::new(name);
        }
        let left = room.saturating_sub(kind.len());
        let short = (0..SHORT_NAMES).map(|n| Comm::new(&behind(&short(n, left))));
        short.into_iter().find(|name| !self.used.contains(name)).unwrap_or(Comm::new(b"?"))
    }
}

/// Number of short names that are tried for an alias; `?` is the alias where all of them are taken.
const SHORT_NAMES: u64 = 1 << 20;

/// A text of `room` bytes: the digits of a number, to a base of 36.
fn short(mut number: u64, room: usize) -> Vec<u8> {
    let mut name = vec![b'a'; room];
    for place in name.iter_mut().rev() {
        let digit = (number % 36) as u8;
        *place = if digit < 26 { b'a'.saturating_add(digit) } else { b'0'.saturating_add(digit.saturating_sub(26)) };
        number /= 36;
    }
    name
}

/// Names that stay: those of recorders, by which the traced command is found, and those that the kernel gives its threads,
/// as far as they are its own words and numbers. The name of a device or of a file system in them is none.
fn stays(name: Comm) -> bool {
    let bytes = name.as_bytes();
    if bytes.is_empty() || [b"trace-cmd".as_slice(), b"schedviz", b"<idle>", b"<...>"].contains(&bytes) {
        return true;
    }
    if let Some(number) = bytes.strip_prefix(b"swapper/") {
        return !number.is_empty() && number.iter().all(u8::is_ascii_digit);
    }
    is_kernel_thread(name) && {
        let rest = bytes.get(kind_of_kernel_thread(name)..).unwrap_or_default();
        is_numbering(rest) || KERNEL_WORDS.iter().any(|word| word.as_bytes() == rest)
    }
}

/// The number of bytes at the start of a name that make it that of a kernel thread: 8 of `kworker/u8:2`, 0 of another task.
fn kind_of_kernel_thread(name: Comm) -> usize {
    let bytes = name.as_bytes();
    let starts = (1..=bytes.len()).filter_map(|length| bytes.get(..length));
    starts.map(Comm::new).find(|start| is_kernel_thread(*start)).map_or(0, |start| start.as_bytes().len())
}

/// Whether the text is the numbering that the kernel puts behind the kind of a thread, as in `kworker/u8:2`,
/// `kworker/3:1H` and `rcuop/7`.
fn is_numbering(rest: &[u8]) -> bool {
    let rest = match rest.split_first() {
        Some((letter, rest)) if b"ugpsb".contains(letter) => rest,
        _ => rest,
    };
    let rest = rest.strip_suffix(b"H").unwrap_or(rest);
    rest.iter().all(|byte| byte.is_ascii_digit() || b"/:.-".contains(byte))
}

/// The words behind `rcu_` and `btrfs-`, as the kernel cuts them off after 15 bytes.
const KERNEL_WORDS: [&str; 12] = [
    "sched",
    "bh",
    "preempt",
    "gp",
    "par_gp",
    "exp_gp_kthr",
    "exp_par_gp_",
    "tasks_kthre",
    "tasks_rude_",
    "tasks_trace",
    "cleaner",
    "transacti",
];

/// The fields of an event that are kept or get new contents. All others are cleared.
#[derive(Debug, Default)]
struct RewrittenFields {
    /// Names of tasks.
    names: Vec<Field>,
    /// Names of files of which the last part is a task's name.
    programs: Vec<Field>,
    /// Texts that are neither names of tasks nor of files.
    texts: Vec<Field>,
    /// Texts of the probes on the balancer, which are names of scheduling domains.
    domains: Vec<Field>,
    /// Fields that are numbers and stay as they are.
    numbers: Vec<Field>,
    /// Dynamic fields whose bytes are cleared; the word that points to the bytes is kept.
    cleared: Vec<Field>,
}

impl RewrittenFields {
    fn of(format: &EventFormat) -> RewrittenFields {
        let mut fields = RewrittenFields::default();
        for field in &format.fields {
            let kind = match field.name.as_str() {
                "filename" if format.name == Tracepoint::Exec.name() => &mut fields.programs,
                name if field.is_text() && name.ends_with("comm") => &mut fields.names,
                _ if field.is_text() && format.system == "lb" => &mut fields.domains,
                _ if field.is_text() => &mut fields.texts,
                _ if are_numbers(field) => &mut fields.numbers,
                _ => &mut fields.cleared,
            };
            kind.push(field.clone());
        }
        fields
    }
}

/// Whether a field is a number by its format, or several words of the machine: addresses of a stack, the registers of a
/// system call, the bits of a set of CPUs. Several smaller numbers could be a text, such as the `unsigned char` of file names.
fn are_numbers(field: &Field) -> bool {
    let word = |name: &str| field.kind.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|word| word == name);
    match field.shape {
        FieldShape::Pointer => true,
        FieldShape::Scalar => !word("struct") && !word("union"),
        FieldShape::Array { element } | FieldShape::Tail { element } | FieldShape::Dynamic { element, .. } => {
            matches!(element, 4 | 8) && (word("long") || word("cpumask_t") || IS_MASK.contains(&field.name.as_str()))
        }
        FieldShape::Opaque => false,
    }
}

/// The field of the probes with the CPUs that a task may use, whose words are declared by their size.
const IS_MASK: [&str; 1] = ["mask"];

/// The names of scheduling domains.
const DOMAINS: [&[u8]; 14] = [
    b"SMT", b"CLS", b"CLUSTER", b"MC", b"BOOK", b"DRAWER", b"PKG", b"DIE", b"CPU", b"NODE", b"NUMA", b"ASYM", b"CACHE",
    b"(fault)",
];

/// Rewrites the pages, the options, the saved names and single records of a trace.
#[derive(Debug)]
pub struct Rewriter<'r> {
    trace: &'r Trace,
    aliases: &'r mut Aliases,
    /// The fields of each event, by event number; `None` where the file has no format for the event.
    fields: SeededMap<u16, Option<RewrittenFields>>,
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
        allowed::option(id, payload)
    }

    /// The statistics of a CPU, or the line that names the buffer of those that follow.
    pub(super) fn statistics(&self, text: &[u8]) -> Vec<u8> {
        allowed::statistics(text, |name| self.buffer(name))
    }

    /// The name of a buffer, whose name in the trace is this one.
    pub(super) fn buffer(&self, name: &str) -> String {
        buffer_alias(self.trace, name)
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
        if let Ok(parsed) = RingPage::parse(bytes, layout) {
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
    pub(super) fn payload(&mut self, payload: &[u8], endian: Endian) -> Vec<u8> {
        let mut out = vec![0; payload.len()];
        let trace = self.trace;
        let Some(id) = trace.common().id(payload, endian) else { return out };
        let fields = self.fields.entry(id).or_insert_with(|| trace.format(id).map(RewrittenFields::of));
        let Some(fields) = fields else {
            // Without a format only the common fields are known.
            keep(&mut out, payload, 0..8);
            return out;
        };
        for field in &fields.numbers {
            keep_field(&mut out, payload, field, endian);
        }
        for field in &fields.cleared {
            place_of(payload, field, endian, &mut out);
        }
        for field in &fields.domains {
            let Some(place) = place_of(payload, field, endian, &mut out) else { continue };
            let text = until_nul(payload.get(place.clone()).unwrap_or_default());
            let shown = if DOMAINS.contains(&text) { text.to_vec() } else { vec![b'x'; text.len()] };
            write(&mut out, place, &shown);
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
            let shown: Vec<u8> = until_nul(text).iter().map(|byte| if *byte == b'\n' { b'\n' } else { b'x' }).collect();
            write(&mut out, place, &shown);
        }
        out
    }
}

/// A record or another entry of a page: its header, its payload if it has one, and the bytes behind it.
type PageEntry<'e> = (&'e [u8], Option<&'e [u8]>, &'e [u8]);

fn entry(data: &[u8], endian: Endian) -> Option<PageEntry<'_>> {
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

/// Returns the place of a field's bytes in `payload`. The word that points to the bytes of a dynamic field is also copied
/// to `out`.
fn place_of(payload: &[u8], field: &Field, endian: Endian, out: &mut [u8]) -> Option<Range<usize>> {
    let end = field.offset.saturating_add(field.size);
    match field.shape {
        FieldShape::Dynamic { relative, .. } => {
            keep(out, payload, field.offset..end);
            place(payload, field.offset, field.size, relative, endian)
        }
        FieldShape::Tail { .. } => Some(field.offset.min(payload.len())..payload.len()),
        _ => Some(field.offset..end.min(payload.len())).filter(|place| place.start <= place.end),
    }
}

/// Writes a text in its place, which is cleared.
fn write(out: &mut [u8], place: Range<usize>, text: &[u8]) {
    let Some(room) = out.get_mut(place) else { return };
    room.fill(0);
    room.iter_mut().zip(text).for_each(|(to, from)| *to = *from);
}

/// The name of a buffer of an anonymous part: its number, or the name that is always the recorder's.
pub(super) fn buffer_alias(trace: &Trace, name: &str) -> String {
    const OURS: &str = "schedviz";
    if name.is_empty() || name == OURS {
        return name.to_owned();
    }
    let place = trace.header().buffers.iter().position(|buffer| buffer.name == name);
    place.map_or(name.to_owned(), |place| format!("buffer{place}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_threads_keep_the_names_that_the_kernel_gives_them() {
        let mut aliases = Aliases::default();
        for name in [
            "swapper/12",
            "kworker/u8:2",
            "kworker/3:1H",
            "migration/4",
            "rcuop/7",
            "rcu_preempt",
            "rcu_exp_gp_kthr",
            "ksoftirqd/0",
            "kswapd0",
            "btrfs-transacti",
            "kauditd",
            "trace-cmd",
            "<idle>",
            "",
        ] {
            let name = Comm::new(name.as_bytes());
            assert_eq!(aliases.of(name), name);
        }
        for (name, alias) in [
            ("make", "t1"),
            ("swapper/secret", "task2"),
            ("swapper/", "task3"),
            ("kworker/secret", "kworker/k4"),
            ("kworker/R-ext4-", "kworker/thread5"),
            ("jbd2/sda1-8", "jbd2/k6"),
            ("irq/25-virtio0-", "irq/thread7"),
            ("migration/secret", "migration/k8"),
            ("make", "t1"),
        ] {
            let (name, alias) = (Comm::new(name.as_bytes()), Comm::new(alias.as_bytes()));
            assert_eq!(aliases.of(name), alias, "{name:?}");
            assert!(
                alias.as_bytes().len() <= name.as_bytes().len() && is_kernel_thread(name) == is_kernel_thread(alias)
            );
        }
    }

    #[test]
    fn only_numbers_by_their_formats_are_kept() {
        let text = "name: every
ID: 9
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char flag;\toffset:2;\tsize:1;\tsigned:0;
\tfield:char letter;\toffset:3;\tsize:1;\tsigned:0;
\tfield:const char * name;\toffset:8;\tsize:8;\tsigned:0;
\tfield:unsigned long args[6];\toffset:16;\tsize:48;\tsigned:0;
\tfield:__data_loc cpumask_t cpus;\toffset:64;\tsize:4;\tsigned:0;
\tfield:__data_loc unsigned char[] line;\toffset:68;\tsize:4;\tsigned:0;
\tfield:__u8 address[16];\toffset:72;\tsize:16;\tsigned:0;
\tfield:u16 wide[8];\toffset:88;\tsize:16;\tsigned:0;
\tfield:unsigned int words[4];\toffset:104;\tsize:16;\tsigned:0;
\tfield:struct name s;\toffset:120;\tsize:8;\tsigned:0;
\tfield:guid_t guid;\toffset:128;\tsize:16;\tsigned:0;
\tfield:__rel_loc char[] text;\toffset:144;\tsize:4;\tsigned:0;

print fmt: \"\"
";
        let fields = RewrittenFields::of(&EventFormat::parse("any", text).expect("a format"));
        let names = |fields: &[Field]| fields.iter().map(|field| field.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&fields.numbers), ["common_type", "flag", "letter", "name", "args", "cpus"]);
        assert_eq!(names(&fields.cleared), ["line", "address", "wide", "words", "s", "guid"]);
        assert_eq!(names(&fields.texts), ["text"]);
    }
}

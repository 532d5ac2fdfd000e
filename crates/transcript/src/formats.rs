//! The formats of events, as a kernel describes records of their fields, and the records themselves.

use crate::limits;
use crate::prints::{self, FieldForm};
use sched::Tracepoint;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Bytes of the fields that all events have: number, flags, preemption count, and the PID of the current task.
const COMMON: usize = 8;

/// The number of an event's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventNumber(u16);

/// The content of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FieldKind {
    /// A command name of up to 16 bytes.
    Comm,
    /// A text of any length.
    Text,
    /// A number with a sign, of 1, 2, 4 or 8 bytes.
    Signed(u8),
    /// A number without a sign, of 1, 2, 4 or 8 bytes.
    Unsigned(u8),
}

/// A field of an event.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldDef {
    name: String,
    kind: FieldKind,
}

impl FieldDef {
    /// Makes a field. What a format's text cannot have in a name becomes `_`.
    #[must_use]
    pub fn new(name: &str, kind: FieldKind) -> FieldDef {
        let kind = match kind {
            FieldKind::Signed(bytes) if !matches!(bytes, 1 | 2 | 4 | 8) => FieldKind::Signed(8),
            FieldKind::Unsigned(bytes) if !matches!(bytes, 1 | 2 | 4 | 8) => FieldKind::Unsigned(8),
            kind => kind,
        };
        FieldDef { name: plain(name), kind }
    }

    /// The name of the field.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The content of the field.
    #[must_use]
    pub fn kind(&self) -> FieldKind {
        self.kind
    }

    /// The size of the field in the fixed part of a record.
    fn size(&self) -> usize {
        match self.kind {
            FieldKind::Comm => 16,
            FieldKind::Text => 4,
            FieldKind::Signed(bytes) | FieldKind::Unsigned(bytes) => usize::from(bytes),
        }
    }

    /// How a print format refers to the field.
    pub(crate) fn form(&self) -> FieldForm {
        match self.kind {
            FieldKind::Comm => FieldForm::Array,
            FieldKind::Text => FieldForm::Dynamic,
            FieldKind::Signed(_) | FieldKind::Unsigned(_) => FieldForm::Number,
        }
    }

    fn align(&self) -> usize {
        if self.kind == FieldKind::Comm { 1 } else { self.size() }
    }

    /// The type of the field in the words of a format.
    fn declaration(&self) -> String {
        let name = &self.name;
        match self.kind {
            FieldKind::Comm => format!("char {name}[16]"),
            FieldKind::Text => format!("__data_loc char[] {name}"),
            FieldKind::Signed(bytes) => format!("s{} {name}", u32::from(bytes) * 8),
            FieldKind::Unsigned(bytes) => format!("u{} {name}", u32::from(bytes) * 8),
        }
    }

    fn conversion(&self) -> &'static str {
        match self.kind {
            FieldKind::Comm | FieldKind::Text => "%s",
            FieldKind::Signed(8) => "%lld",
            FieldKind::Signed(_) => "%d",
            FieldKind::Unsigned(8) => "%llu",
            FieldKind::Unsigned(_) => "%u",
        }
    }
}

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldValue<'v> {
    /// A number; one without a sign as the same bits.
    Number(i64),
    /// A text, without a NUL at its end.
    Text(&'v [u8]),
}

/// A name that a format's text can have, of letters, digits and `_`.
fn plain(name: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    name.chars().take(limits::NAME).map(letter).collect()
}

/// The places of an event's fields in its records.
#[derive(Clone, Debug)]
pub struct RecordLayout {
    fields: Vec<(FieldDef, usize)>,
    /// Bytes of the fixed part.
    size: usize,
}

impl RecordLayout {
    /// The layout of records with these fields, in their order.
    #[must_use]
    pub fn new(fields: &[FieldDef]) -> RecordLayout {
        let (mut at, mut placed) = (COMMON, Vec::new());
        for field in fields {
            at = at.next_multiple_of(field.align());
            placed.push((field.clone(), at));
            at = at.saturating_add(field.size());
        }
        RecordLayout { fields: placed, size: at }
    }

    /// Makes a record in `payload`: the task that was current, flags and preemption count, then the values in the order of the fields. The
    /// event's number in it is that of none.
    pub fn encode(&self, (pid, flags, preempt): (i32, u8, u8), values: &[FieldValue<'_>], payload: &mut Vec<u8>) {
        payload.clear();
        payload.extend_from_slice(&[0, 0, flags, preempt]);
        payload.extend_from_slice(&pid.to_le_bytes());
        payload.resize(self.size, 0);
        for ((field, at), value) in self.fields.iter().zip(values) {
            let end = at.saturating_add(field.size());
            let word = match (field.kind, value) {
                (FieldKind::Comm, FieldValue::Text(text)) => {
                    put_start(payload.get_mut(*at..end), text);
                    continue;
                }
                (FieldKind::Text, FieldValue::Text(text)) => i64::from(append(payload, text)),
                (FieldKind::Signed(_) | FieldKind::Unsigned(_), FieldValue::Number(number)) => *number,
                _ => continue,
            };
            put_start(payload.get_mut(*at..end), &word.to_le_bytes());
        }
    }
}

impl EventNumber {
    /// Puts the number into a record.
    pub(crate) fn put(self, record: &mut [u8]) {
        put_start(record.get_mut(..2), &self.0.to_le_bytes());
    }
}

#[derive(Clone, Debug)]
struct MadeFormat {
    system: String,
    name: String,
    layout: RecordLayout,
}

/// The formats of all events of a recording.
#[derive(Clone, Debug, Default)]
pub(crate) struct MadeFormats {
    formats: Vec<MadeFormat>,
    /// The number of fields of all of them.
    fields: usize,
    numbers: BTreeMap<(String, String, Vec<FieldDef>), EventNumber>,
}

impl MadeFormats {
    /// The number of an event with these fields; `None` where it would be one too many, or there are too many fields.
    pub(crate) fn number(&mut self, system: &str, name: &str, fields: Vec<FieldDef>) -> Option<EventNumber> {
        let key = (plain(system), plain(name), fields);
        if let Some(number) = self.numbers.get(&key) {
            return Some(*number);
        }
        let (fields, all) = (&key.2, self.fields.saturating_add(key.2.len()));
        if self.formats.len() >= limits::EVENTS || fields.len() > limits::FIELDS || all > limits::ALL_FIELDS {
            return None;
        }
        self.fields = all;
        let layout = RecordLayout::new(fields);
        let number = EventNumber(u16::try_from(self.formats.len()).ok()?.saturating_add(1));
        self.formats.push(MadeFormat { system: key.0.clone(), name: key.1.clone(), layout });
        self.numbers.insert(key, number);
        Some(number)
    }

    fn of(&self, number: EventNumber) -> Option<&MadeFormat> {
        self.formats.get(usize::from(number.0).checked_sub(1)?)
    }

    /// Makes the record of an event in `payload`: the values in the order of the fields.
    pub(crate) fn encode(
        &self,
        number: EventNumber,
        common: (i32, u8, u8),
        values: &[FieldValue<'_>],
        payload: &mut Vec<u8>,
    ) {
        payload.clear();
        if let Some(format) = self.of(number) {
            format.layout.encode(common, values, payload);
            number.put(payload);
        }
    }

    /// The formats in the form that trace-cmd and perf share. `release`: the version of the kernel, on which the letters of
    /// `prev_state` depend.
    pub(crate) fn tracing_data(&self, release: Option<(u32, u32)>) -> Vec<u8> {
        let mut out = b"\x17\x08\x44tracing0.6\0\0\x08\x00\x10\0\0".to_vec();
        let page = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";
        out.extend_from_slice(b"header_page\0");
        put_text(&mut out, page);
        out.extend_from_slice(b"header_event\0");
        put_text(&mut out, "# compressed entry header\n");
        let mut systems: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for (format, number) in self.formats.iter().zip(1u16..) {
            systems.entry(&format.system).or_default().push(format.text(number, release));
        }
        let of_ftrace = systems.remove("ftrace").unwrap_or_default();
        put_count(&mut out, of_ftrace.len());
        of_ftrace.iter().for_each(|text| put_text(&mut out, text));
        put_count(&mut out, systems.len());
        for (system, texts) in systems {
            out.extend(system.bytes().chain([0]));
            put_count(&mut out, texts.len());
            texts.iter().for_each(|text| put_text(&mut out, text));
        }
        // Without symbols, printk formats and command lines.
        out.extend_from_slice(&[0; 16]);
        out
    }
}

impl MadeFormat {
    fn text(&self, number: u16, release: Option<(u32, u32)>) -> String {
        let mut text = format!("name: {}\nID: {number}\nformat:\n", self.name);
        let common = [
            ("unsigned short common_type", 0, 2, 0),
            ("unsigned char common_flags", 2, 1, 0),
            ("unsigned char common_preempt_count", 3, 1, 0),
            ("int common_pid", 4, 4, 1),
        ];
        // Writing to a string cannot fail.
        for (declaration, at, size, signed) in common {
            let _ = writeln!(text, "\tfield:{declaration};\toffset:{at};\tsize:{size};\tsigned:{signed};");
        }
        text.push('\n');
        for (field, at) in &self.layout.fields {
            let (declaration, size) = (field.declaration(), field.size());
            let signed = u8::from(matches!(field.kind, FieldKind::Signed(_)));
            let _ = writeln!(text, "\tfield:{declaration};\toffset:{at};\tsize:{size};\tsigned:{signed};");
        }
        let print = match Tracepoint::of(&self.system, &self.name) {
            Some(Tracepoint::Switch) => prints::switch(release),
            _ => {
                let fields: Vec<_> = self.layout.fields.iter().map(|(field, _)| (field.name(), field.form())).collect();
                prints::known(&self.system, &self.name, &fields).unwrap_or_else(|| self.print())
            }
        };
        let _ = write!(text, "\nprint fmt: {print}\n");
        text
    }

    /// A print format that shows each field with its name.
    fn print(&self) -> String {
        let shown: Vec<String> =
            self.layout.fields.iter().map(|(field, _)| format!("{}={}", field.name, field.conversion())).collect();
        let mut print = format!("\"{}\"", shown.join(" "));
        for (field, _) in &self.layout.fields {
            let name = &field.name;
            let _ = match field.kind {
                FieldKind::Text => write!(print, ", __get_str({name})"),
                _ => write!(print, ", REC->{name}"),
            };
        }
        print
    }
}

/// Fills a place with bytes as far as there are some and have room.
fn put_start(place: Option<&mut [u8]>, bytes: &[u8]) {
    let Some(place) = place else { return };
    let length = place.len().min(bytes.len());
    if let (Some(to), Some(from)) = (place.get_mut(..length), bytes.get(..length)) {
        to.copy_from_slice(from);
    }
}

/// Appends a text with its NUL to a record; returns the word of its place and length.
fn append(payload: &mut Vec<u8>, text: &[u8]) -> u32 {
    let end = text.iter().take(limits::TEXT).position(|byte| *byte == 0).unwrap_or(text.len().min(limits::TEXT));
    let room = limits::PAYLOAD.saturating_sub(payload.len());
    if room == 0 {
        return 0;
    }
    let text = text.get(..end.min(room.saturating_sub(1))).unwrap_or_default();
    let word = payload.len() as u32 | (text.len() as u32).saturating_add(1) << 16;
    payload.extend_from_slice(text);
    payload.push(0);
    word
}

fn put_count(out: &mut Vec<u8>, count: usize) {
    out.extend_from_slice(&u32::try_from(count).unwrap_or(0).to_le_bytes());
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&(text.len() as u64).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

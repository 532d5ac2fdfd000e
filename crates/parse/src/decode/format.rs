//! The `format` text of an event: its fields, where they are and what they are.
//!
//! Layouts differ between kernels, vendors and builds (`__data_loc` names since 6.16, `success`
//! until 5.14, fields inserted by vendors, more than four common fields on some), so a field is
//! always looked up by its name (`docs/trace-dat.md`, section 10).

use crate::bytes::{Endian, sign_extend};
use crate::limits;
use crate::text::expr::Number;
use sched::event::CleanText;
use std::ops::Range;

/// The content of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldShape {
    /// A single number.
    Scalar,
    /// A single address in the kernel.
    Pointer,
    /// A number of elements, each with a number of bytes.
    Array {
        /// The size of one.
        element: usize,
    },
    /// Elements to the end of the record.
    Tail {
        /// The size of one.
        element: usize,
    },
    /// Elsewhere in the record: a word of offset and length.
    Dynamic {
        /// The size of one.
        element: usize,
        /// The offset counts from the end of the word, not from the start of the record.
        relative: bool,
    },
    /// Bytes of an unexplained type.
    Opaque,
}

/// A field of an event, as the event's format declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name of the field.
    pub name: CleanText,
    /// Type of the field, in the words of the format.
    pub kind: CleanText,
    /// Bytes from the start of the record.
    pub offset: usize,
    /// Size of the field in the record's fixed part, in bytes.
    pub size: usize,
    /// Whether numbers have a sign.
    pub signed: bool,
    /// Kind of content that the field has.
    pub shape: FieldShape,
    is_text: bool,
}

/// An event, as its `format` file describes it.
#[derive(Clone, Debug)]
pub struct EventFormat {
    /// System of the event: `sched` of `sched:sched_switch`.
    pub system: CleanText,
    /// Name of the event: `sched_switch`.
    pub name: CleanText,
    /// Number of the event in this file, which is the `common_type` of its records.
    pub id: u16,
    /// Fields of the event's records, the common ones first.
    pub fields: Vec<Field>,
    /// The text behind `print fmt:`; never executed.
    pub print_fmt: String,
    /// Lines that were not understood.
    pub odd_lines: usize,
}

impl EventFormat {
    /// Parses a format text. `None` without a name or a number: no event can have this format.
    pub fn parse(system: &str, text: &str) -> Option<EventFormat> {
        let mut format = EventFormat {
            system: of_recorder(system).into(),
            name: CleanText::default(),
            id: 0,
            fields: Vec::new(),
            print_fmt: String::new(),
            odd_lines: 0,
        };
        let mut id = None;
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let line = line.trim_ascii();
            if let Some(name) = line.strip_prefix("name:") {
                format.name = limits::cut(name.trim_ascii(), limits::NAME).into();
            } else if let Some(number) = line.strip_prefix("ID:") {
                id = number.trim_ascii().parse().ok();
            } else if line.starts_with("field") {
                match Field::parse(line) {
                    Some(field) if format.fields.len() < limits::FIELDS => format.fields.push(field),
                    _ => format.odd_lines = format.odd_lines.saturating_add(1),
                }
            } else if let Some(fmt) = line.strip_prefix("print fmt:") {
                // The text may go on over several lines, also within quotes (9p_protocol_dump).
                let mut text = fmt.trim_ascii().to_owned();
                for more in lines.by_ref() {
                    text.push('\n');
                    text.push_str(more);
                }
                if text.len() <= limits::PRINT_FORMAT {
                    format.print_fmt = text;
                } else {
                    format.odd_lines = format.odd_lines.saturating_add(1);
                }
            }
        }
        if let Some(last) = format.fields.last_mut() {
            last.extend_to_the_end();
        }
        format.id = id?;
        (!format.name.is_empty()).then_some(format)
    }

    /// The field of this name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|f| f.name == name)
    }

    /// The fields of its own.
    pub fn own_fields(&self) -> impl Iterator<Item = &Field> {
        self.fields.iter().filter(|f| !f.name.starts_with("common_"))
    }
}

/// The lowest address of a 64-bit kernel, with page tables of five levels.
const KERNEL_HALF: u64 = 0xff00_0000_0000_0000;

/// Larger offsets and sizes than a ring-buffer page has are nonsense.
const LARGEST: usize = 1 << 21;

impl Field {
    /// Parses `field:<declaration>; offset:<n>; size:<n>; signed:<0|1>;`.
    fn parse(line: &str) -> Option<Field> {
        if line.len() > limits::DESCRIPTION {
            return None;
        }
        let mut declaration = None;
        let (mut offset, mut size, mut signed) = (None, None, false);
        for part in line.split(';') {
            let Some((key, value)) = part.trim_ascii().split_once(':') else { continue };
            match key.trim_ascii() {
                "field" | "field special" => declaration = Some(value.trim_ascii()),
                "offset" => offset = value.trim_ascii().parse().ok(),
                "size" => size = value.trim_ascii().parse().ok(),
                "signed" => signed = value.trim_ascii() == "1",
                _ => {}
            }
        }
        let (declaration, offset, size): (_, usize, usize) = (declaration?, offset?, size?);
        if offset > LARGEST || size > LARGEST {
            return None;
        }
        let (name, kind, shape) = declared(declaration, size);
        let is_text = is_text(&kind, shape);
        (!name.is_empty()).then_some(Field {
            name: name.into(),
            kind: kind.into(),
            offset,
            size,
            signed,
            shape,
            is_text,
        })
    }

    /// Makes the last field of a format the rest of the record if it has no size. Kernels before 5.5 declare
    /// the text of `print` as `char buf` with size 0, without the brackets of later ones.
    fn extend_to_the_end(&mut self) {
        if self.size == 0 && !matches!(self.shape, FieldShape::Tail { .. } | FieldShape::Dynamic { .. }) {
            self.shape = FieldShape::Tail { element: element(&self.kind, 1) };
            self.is_text = is_text(&self.kind, self.shape) && !self.kind.ends_with('*');
        }
    }

    /// Whether the field is text, wherever its characters are in the record.
    pub fn is_text(&self) -> bool {
        self.is_text
    }

    /// Whether the field is the address of an instruction, by its name. Function graphs and probes have such fields.
    pub(crate) fn is_code(&self) -> bool {
        let names = ["ip", "parent_ip", "func", "__probe_ip", "__probe_func", "__probe_ret_ip"];
        names.contains(&self.name.as_str())
    }

    /// Whether the value `value` of the field is an address: that of a pointer, or a word in the kernel's half of the
    /// address space, since the formats declare many addresses as `unsigned long`.
    pub(crate) fn is_address(&self, value: i64) -> bool {
        let is_word = self.shape == FieldShape::Scalar && self.size == 8 && !self.signed;
        self.shape == FieldShape::Pointer || (is_word && value.cast_unsigned() >= KERNEL_HALF)
    }

    /// The bytes of the field in a record, wherever they are. A dynamic one that points out of the
    /// record is empty.
    pub fn bytes<'r>(&self, payload: &'r [u8], endian: Endian) -> &'r [u8] {
        let found = match self.shape {
            FieldShape::Dynamic { relative, .. } => dynamic(payload, self.offset, self.size, relative, endian),
            FieldShape::Tail { .. } => payload.get(self.offset..),
            _ => payload.get(self.offset..self.offset.saturating_add(self.size)),
        };
        found.unwrap_or(&[])
    }

    /// The number in the field, its sign extended. `None` for a field that is no number or not there.
    pub fn number(&self, payload: &[u8], endian: Endian) -> Option<i64> {
        if !matches!(self.shape, FieldShape::Scalar | FieldShape::Pointer) {
            return None;
        }
        Some(self.value(endian.uint(payload, self.offset, self.size)?, self.size))
    }

    /// The number in one place of the field, where that is of several.
    pub(crate) fn element(&self, payload: &[u8], index: usize, endian: Endian) -> Option<Number> {
        let (FieldShape::Array { element } | FieldShape::Tail { element } | FieldShape::Dynamic { element, .. }) =
            self.shape
        else {
            return None;
        };
        let raw = endian.uint(self.bytes(payload, endian), index.checked_mul(element)?, element)?;
        Some(Number { bits: self.value(raw, element), unsigned: !self.signed && element == 8 })
    }

    /// The value of bytes, with the sign of the field.
    fn value(&self, raw: u64, size: usize) -> i64 {
        if self.signed { sign_extend(raw, size) } else { raw.cast_signed() }
    }
}

/// The bytes that a `__data_loc` word at `at` points to.
pub(crate) fn dynamic(payload: &[u8], at: usize, size: usize, relative: bool, endian: Endian) -> Option<&[u8]> {
    let bytes = payload.get(place(payload, at, size, relative, endian)?)?;
    // Kernels before about 2.6.3x store the offset alone, in two bytes; the text then ends at its NUL.
    Some(if size == 2 { crate::bytes::until_nul(bytes) } else { bytes })
}

/// Returns the place of a dynamic field's bytes in `payload`; its word is `size` bytes at `at`.
#[inline(always)]
pub(crate) fn place(payload: &[u8], at: usize, size: usize, relative: bool, endian: Endian) -> Option<Range<usize>> {
    let (start, end) = if size == 2 {
        (usize::from(endian.u16(payload, at)?), payload.len())
    } else {
        let word = endian.u32(payload, at)?;
        let base = if relative { at.checked_add(4)? } else { 0 };
        let start = base.checked_add((word & 0xffff) as usize)?;
        (start, start.checked_add((word >> 16) as usize)?)
    };
    (start <= end && end <= payload.len()).then_some(start..end)
}

/// Takes a declaration apart: name, type, shape.
fn declared(declaration: &str, size: usize) -> (String, String, FieldShape) {
    let (text, relative) = match declaration.strip_prefix("__rel_loc") {
        Some(rest) => (rest, Some(true)),
        None => match declaration.strip_prefix("__data_loc") {
            Some(rest) => (rest, Some(false)),
            None => (declaration, None),
        },
    };
    let text = text.trim_ascii();
    // `char[] comm` of a dynamic field, or `char comm[16]` of an array.
    let word = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
    let head = if text.ends_with(']') { text.rsplit_once('[').map_or(text, |(head, _)| head) } else { text };
    let head = head.trim_ascii_end();
    let at = head.rfind(word).map_or(0, |at| at.saturating_add(1));
    let name = head.get(at..).unwrap_or("").to_owned();
    let kind = head.get(..at).unwrap_or("").trim_ascii().to_owned();
    let shape = match relative {
        Some(relative) => FieldShape::Dynamic { element: element(&kind, 1), relative },
        None if text.ends_with(']') => {
            let count =
                text.rsplit_once('[').and_then(|(_, n)| n.strip_suffix(']')).and_then(|n| n.trim_ascii().parse().ok());
            match count {
                _ if size == 0 => FieldShape::Tail { element: element(&kind, 1) },
                // An unresolved macro as the count (TASK_COMM_LEN) leaves the type to decide.
                Some(count) if count > 0 => FieldShape::Array { element: size.checked_div(count).unwrap_or(1).max(1) },
                _ => FieldShape::Array { element: element(&kind, 1) },
            }
        }
        None if kind.ends_with('*') => FieldShape::Pointer,
        None if matches!(size, 1 | 2 | 4 | 8) => FieldShape::Scalar,
        None => FieldShape::Opaque,
    };
    (name, kind, shape)
}

/// Whether a field of this type and shape is text.
fn is_text(kind: &str, shape: FieldShape) -> bool {
    let several = matches!(
        shape,
        FieldShape::Array { element: 1 } | FieldShape::Tail { element: 1 } | FieldShape::Dynamic { element: 1, .. }
    );
    let characters = || kind.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|word| word == "char");
    several && characters() && !kind.contains("unsigned")
}

/// The size of one element by the name of its type.
fn element(kind: &str, default: usize) -> usize {
    let has = |word: &str| kind.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|w| w == word);
    match () {
        () if has("long") || has("u64") || has("s64") || has("__u64") || has("__s64") || has("cpumask_t") => 8,
        () if has("short") || has("u16") || has("s16") || has("__u16") || has("__s16") => 2,
        () if has("char") || has("u8") || has("s8") || has("__u8") => 1,
        () if has("int") || has("u32") || has("s32") || has("__u32") || has("__s32") || has("pid_t") => 4,
        () => default,
    }
}

/// The name of a system: the probes of `schedviz record` are in the group `lb`, which in the kernel is named after the process
/// that records, as `schedviz_1234_567890`. Recordings by perf have that name.
fn of_recorder(system: &str) -> &str {
    let numbers = system.strip_prefix("schedviz_");
    let is_group = numbers.is_some_and(|n| {
        n.starts_with(|c: char| c.is_ascii_digit()) && n.bytes().all(|b| b.is_ascii_digit() || b == b'_')
    });
    if is_group { "lb" } else { system }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIGRATE_7_2: &str = "name: sched_migrate_task
ID: 318
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:__data_loc char[] comm;\toffset:8;\tsize:4;\tsigned:0;
\tfield:pid_t pid;\toffset:12;\tsize:4;\tsigned:1;
\tfield:int prio;\toffset:16;\tsize:4;\tsigned:1;

print fmt: \"comm=%s\", __get_str(comm)
";

    fn field(line: &str) -> Field {
        Field::parse(&format!("field:{line}; offset:8; size:16; signed:0;")).unwrap()
    }

    #[test]
    fn reads_a_format() {
        let format = EventFormat::parse("sched", MIGRATE_7_2).unwrap();
        assert_eq!((format.name.as_str(), format.id, format.fields.len()), ("sched_migrate_task", 318, 7));
        assert_eq!(format.own_fields().count(), 3);
        let comm = format.field("comm").unwrap();
        assert_eq!(comm.shape, FieldShape::Dynamic { element: 1, relative: false });
        assert!(comm.is_text());
        let mut record = vec![0; 20];
        record[8..12].copy_from_slice(&0x0005_0014u32.to_le_bytes());
        record.extend(b"make\0");
        assert_eq!(comm.bytes(&record, Endian::Little), b"make\0");
        record.truncate(22);
        assert_eq!(comm.bytes(&record, Endian::Little), b"", "out of the record: empty (case 50)");
    }

    #[test]
    fn reads_odd_declarations() {
        assert_eq!(field("char comm[TASK_COMM_LEN]").shape, FieldShape::Array { element: 1 });
        assert_eq!(field("unsigned long caller[2]").shape, FieldShape::Array { element: 8 });
        assert_eq!(
            (field("const char * fmt").name, field("const char * fmt").shape),
            ("fmt".into(), FieldShape::Pointer)
        );
        assert_eq!(field("struct task_struct x").shape, FieldShape::Opaque);
        assert_eq!(field("u8 __attribute__((user)) * p").name, "p");
        let tail = Field::parse("field:char buf[];\toffset:16;\tsize:0;\tsigned:1;").unwrap();
        assert_eq!((tail.shape, tail.is_text()), (FieldShape::Tail { element: 1 }, true));
        assert_eq!(tail.bytes(&[7; 20], Endian::Little), [7; 4]);
        let relative = Field::parse("field:__rel_loc char[] s;offset:8;size:4;signed:0;").unwrap();
        let mut record = vec![0; 8];
        record.extend(0x0002_0000u32.to_le_bytes());
        record.extend(b"ab");
        assert_eq!(relative.bytes(&record, Endian::Little), b"ab");
        assert_eq!(Field::parse("field:int x; offset:99999999999; size:4;"), None);
    }

    #[test]
    fn without_signed_numbers_have_none() {
        let old = Field::parse("field:int x; offset:0; size:4;").unwrap();
        assert_eq!(old.number(&[0xff; 4], Endian::Little), Some(0xffff_ffff));
        let new = Field { signed: true, ..old };
        assert_eq!(new.number(&[0xff; 4], Endian::Little), Some(-1));
    }

    #[test]
    fn a_last_field_without_size_is_the_rest_of_the_record() {
        let of = |fields: &str| EventFormat::parse("ftrace", &format!("name: x\nID: 5\n{fields}")).unwrap();
        let ip = "\tfield:unsigned long ip;\toffset:8;\tsize:8;\tsigned:0;\n";
        let print = of(&format!("{ip}\tfield:char buf;\toffset:16;\tsize:0;\tsigned:1;\n"));
        let buf = print.field("buf").unwrap();
        assert_eq!((buf.shape, buf.is_text()), (FieldShape::Tail { element: 1 }, true));
        assert_eq!(buf.bytes(b"0123456789abcdefhello\n\0", Endian::Little), b"hello\n\0");
        let bprint = of(&format!("{ip}\tfield:u32 buf;\toffset:16;\tsize:0;\tsigned:0;\n"));
        let buf = bprint.field("buf").unwrap();
        assert_eq!((buf.shape, buf.is_text()), (FieldShape::Tail { element: 4 }, false));
        assert_eq!(buf.bytes(&[1; 24], Endian::Little), [1; 8]);
        let inner = of(&format!("\tfield:struct empty e;\toffset:8;\tsize:0;\tsigned:0;\n{ip}"));
        assert_eq!(inner.field("e").unwrap().shape, FieldShape::Opaque, "another field follows");
    }

    #[test]
    fn names_and_descriptions_have_a_limit() {
        let long = "ä".repeat(100_000);
        let format =
            EventFormat::parse("x", &format!("name: {long}\nID: 7\n\tfield:int x; offset:0; size:4; {long}\n"));
        let format = format.expect("a format");
        assert_eq!((format.name.len(), format.fields.len(), format.odd_lines), (254, 0, 1), "whole characters");
    }

    #[test]
    fn no_name_or_number_is_no_format() {
        for text in ["name: a\n", "ID: 7\n", "name: a\nID: 70000\n"] {
            assert!(EventFormat::parse("x", text).is_none(), "{text}");
        }
        let odd = EventFormat::parse("x", "name: a\nID: 7\n\tfield:;;\n\tfield:int x; size:4;\n").unwrap();
        assert_eq!((odd.odd_lines, odd.fields.len()), (2, 0));
    }
}

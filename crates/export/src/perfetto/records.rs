//! The records of a trace as Perfetto's events of ftrace: those that Perfetto has messages for by its own numbers, all others by name.

use super::message::Message;
use crate::perfetto::ftrace::event;
use ::perfetto::EventMessage;
use parse::{EventFormat, FieldShape, FileIssue, Record, Trace};
use sched::{Cpu, Pid};
use transcript::FieldKind;

/// The number of an event with its name and the names of its fields, and the numbers of these.
mod generic {
    pub(super) const EVENT: u32 = 327;
    pub(super) const NAME: u32 = 1;
    pub(super) const FIELD: u32 = 2;
    pub(super) const FIELD_NAME: u32 = 1;
    pub(super) const TEXT: u32 = 3;
    pub(super) const SIGNED: u32 = 4;
    pub(super) const UNSIGNED: u32 = 5;
}

/// The field of a wakeup that tells whether it succeeded, of kernels before 5.14.
const SUCCESS: (u32, &str) = (4, "success");

/// The context of an event.
const COMMON_FLAGS: u32 = 5;

/// A text of `trace_printk` or of a marker: its number, and the numbers of its place and its text.
const PRINT: (u32, u32, u32) = (3, 1, 2);

/// A field of an event: its number in a message, its name, and its kind there.
#[derive(Debug)]
struct NumberedField {
    number: u32,
    name: String,
    kind: FieldKind,
}

/// The form of an event.
#[derive(Debug)]
enum RecordForm {
    /// Perfetto has a message for it.
    Numbered { number: u32, fields: Vec<NumberedField> },
    /// A text whose parts are in several fields.
    Print,
    /// With its name, and the names of its fields.
    Named { name: String, fields: Vec<(String, FieldKind)> },
}

impl RecordForm {
    fn of(format: &EventFormat, messages: &::perfetto::EventMessages) -> RecordForm {
        if format.system == "ftrace" && ["print", "bprint", "bputs"].contains(&format.name.as_str()) {
            return RecordForm::Print;
        }
        if let Some(EventMessage { number, fields }) = messages.of(&format.system, &format.name) {
            let has = |name: &str| format.field(name).is_some();
            let fields = fields.into_iter().filter(|(_, name, _)| has(name));
            let mut fields: Vec<NumberedField> =
                fields.map(|(number, name, kind)| NumberedField { number, name, kind }).collect();
            if has(SUCCESS.1) && format.name.starts_with("sched_wak") {
                let (number, name) = (SUCCESS.0, SUCCESS.1.to_owned());
                fields.push(NumberedField { number, name, kind: FieldKind::Unsigned(1) });
            }
            return RecordForm::Numbered { number, fields };
        }
        let kind = |field: &parse::Field| match field.shape {
            _ if field.is_text() => Some(FieldKind::Text),
            FieldShape::Scalar if field.signed => Some(FieldKind::Signed(8)),
            FieldShape::Scalar | FieldShape::Pointer => Some(FieldKind::Unsigned(8)),
            // Several numbers have no form there.
            _ => None,
        };
        let fields = format.own_fields().filter_map(|field| Some((field.name.to_string(), kind(field)?))).collect();
        RecordForm::Named { name: format!("{}/{}", format.system, format.name), fields }
    }
}

/// The forms of all events of a trace, by the numbers of their formats.
#[derive(Debug)]
pub struct RecordForms {
    forms: Vec<Option<RecordForm>>,
    has_context: bool,
}

impl RecordForms {
    /// The forms of a trace's events.
    pub fn of(trace: &Trace) -> RecordForms {
        let messages = ::perfetto::EventMessages::default();
        let mut forms = Vec::new();
        for format in trace.formats() {
            let place = usize::from(format.id);
            if place >= forms.len() {
                forms.resize_with(place + 1, || None);
            }
            if forms[place].is_none() {
                forms[place] = Some(RecordForm::of(format, &messages));
            }
        }
        RecordForms { forms, has_context: trace.diagnostics().count(FileIssue::NoContext) == 0 }
    }

    /// The message of a record; nothing without a format.
    fn put(&self, record: &Record<'_>) -> Option<Message> {
        let form = self.forms.get(usize::from(record.id()))?.as_ref()?;
        let mut inner = Message::default();
        let number = match form {
            RecordForm::Numbered { number, fields } => {
                for NumberedField { number, name, kind } in fields {
                    numbered(&mut inner, (*number, *kind), record, name);
                }
                *number
            }
            RecordForm::Print => {
                let (number, ip, buf) = PRINT;
                inner.number(ip, record.number("ip").unwrap_or(0).cast_unsigned());
                inner.text(buf, &record.text().unwrap_or_default());
                number
            }
            RecordForm::Named { name, fields } => {
                inner.text(generic::NAME, name);
                for (name, kind) in fields {
                    inner.message(generic::FIELD, |field| {
                        field.text(generic::FIELD_NAME, name);
                        let number = match kind {
                            FieldKind::Signed(_) => generic::SIGNED,
                            FieldKind::Unsigned(_) => generic::UNSIGNED,
                            FieldKind::Text | FieldKind::Comm => generic::TEXT,
                        };
                        numbered(field, (number, *kind), record, name);
                    });
                }
                generic::EVENT
            }
        };
        let mut message = Message::default();
        message.number(event::TIMESTAMP, record.ts.0.max(0).cast_unsigned());
        // Where the current task or the context is unknown, nothing stands for it.
        if record.pid() != Pid::UNKNOWN {
            message.signed(event::PID, record.pid().0.into());
        }
        if let Some(flags) = record.number("common_flags").filter(|_| self.has_context) {
            message.number(COMMON_FLAGS, flags.cast_unsigned() & 0xff);
        }
        message.put(number, inner.bytes());
        Some(message)
    }
}

/// Adds the value of a field.
fn numbered(message: &mut Message, (number, kind): (u32, FieldKind), record: &Record<'_>, name: &str) {
    match kind {
        FieldKind::Text | FieldKind::Comm => {
            let bytes = record.bytes(name).unwrap_or_default();
            match std::str::from_utf8(bytes) {
                Ok(text) => message.text(number, text),
                Err(_) => message.text(number, &sched::event::escape(bytes)),
            }
        }
        FieldKind::Signed(4) => message.signed(number, i64::from(record.number(name).unwrap_or(0) as i32)),
        FieldKind::Unsigned(4) => message.number(number, u64::from(record.number(name).unwrap_or(0) as u32)),
        FieldKind::Signed(_) | FieldKind::Unsigned(_) => message.signed(number, record.number(name).unwrap_or(0)),
    }
}

/// Events one behind the other, on their way to the packets.
#[derive(Debug, Default)]
pub struct EventRun {
    bytes: Vec<u8>,
    /// The CPU of each event, whether events were lost before it, and the end of its bytes.
    events: Vec<(Cpu, bool, usize)>,
    /// Events without a format.
    pub others: u64,
}

impl EventRun {
    /// Adds a record.
    pub fn add(&mut self, record: &Record<'_>, forms: &RecordForms) {
        let Some(message) = forms.put(record) else {
            self.others += 1;
            return;
        };
        self.bytes.extend_from_slice(message.bytes());
        self.events.push((record.cpu, record.lost.is_some(), self.bytes.len()));
    }

    /// The events: CPU, whether events were lost before it, and message.
    pub(super) fn events(&self) -> impl Iterator<Item = (Cpu, bool, &[u8])> {
        let begins = std::iter::once(0).chain(self.events.iter().map(|(.., end)| *end));
        begins.zip(&self.events).map(|(begin, (cpu, lost, end))| (*cpu, *lost, &self.bytes[begin..*end]))
    }
}

//! The records of a trace as Perfetto's events of ftrace: those that Perfetto has messages for by its own numbers, all others by name.

use super::message::Message;
use crate::perfetto::ftrace::event;
use ::perfetto::EventMessage;
use parse::{EventFormat, Field, FieldShape, FileIssue, Record, Trace};
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

/// A field of an event: its number in a message, its kind there, and its place in the record.
#[derive(Debug)]
struct NumberedField {
    number: u32,
    kind: FieldKind,
    field: Field,
}

impl NumberedField {
    /// Adds the value that a record has in it.
    fn put(&self, message: &mut Message, record: &Record<'_>) {
        let number = || record.number_in(&self.field).unwrap_or(0);
        match self.kind {
            FieldKind::Text | FieldKind::Comm => {
                let bytes = record.bytes_in(&self.field);
                match std::str::from_utf8(bytes) {
                    Ok(text) => message.text(self.number, text),
                    Err(_) => message.text(self.number, &sched::event::escape(bytes)),
                }
            }
            FieldKind::Signed(4) => message.signed(self.number, i64::from(number() as i32)),
            FieldKind::Unsigned(4) => message.number(self.number, u64::from(number() as u32)),
            FieldKind::Signed(_) | FieldKind::Unsigned(_) => message.signed(self.number, number()),
        }
    }
}

/// The form of an event.
#[derive(Debug)]
enum RecordForm {
    /// Perfetto has a message for it.
    Numbered { number: u32, fields: Vec<NumberedField> },
    /// A text whose parts are in several fields.
    Print,
    /// With its name, and the names of its fields.
    Named { name: String, fields: Vec<NumberedField> },
}

impl RecordForm {
    fn of(format: &EventFormat, messages: &::perfetto::EventMessages) -> RecordForm {
        if format.system == "ftrace" && ["print", "bprint", "bputs"].contains(&format.name.as_str()) {
            return RecordForm::Print;
        }
        if let Some(EventMessage { number, fields }) = messages.of(&format.system, &format.name) {
            let numbered = |number, name: &str, kind| {
                format.field(name).map(|field| NumberedField { number, kind, field: field.clone() })
            };
            let fields = fields.into_iter().filter_map(|(number, name, kind)| numbered(number, &name, kind));
            let mut fields: Vec<NumberedField> = fields.collect();
            if format.name.starts_with("sched_wak") {
                fields.extend(numbered(SUCCESS.0, SUCCESS.1, FieldKind::Unsigned(1)));
            }
            return RecordForm::Numbered { number, fields };
        }
        let kind = |field: &Field| match field.shape {
            _ if field.is_text() => Some((generic::TEXT, FieldKind::Text)),
            FieldShape::Scalar if field.signed => Some((generic::SIGNED, FieldKind::Signed(8))),
            FieldShape::Scalar | FieldShape::Pointer => Some((generic::UNSIGNED, FieldKind::Unsigned(8))),
            // Several numbers have no form there.
            _ => None,
        };
        let named = |field: &Field| {
            let (number, kind) = kind(field)?;
            Some(NumberedField { number, kind, field: field.clone() })
        };
        let fields = format.own_fields().filter_map(named).collect();
        RecordForm::Named { name: format!("{}/{}", format.system, format.name), fields }
    }
}

/// The forms of all events of a trace, by the numbers of their formats.
#[derive(Debug)]
pub struct RecordForms {
    /// Each with the field of its records that has the context, where the trace has contexts.
    forms: Vec<Option<(RecordForm, Option<Field>)>>,
}

impl RecordForms {
    /// The forms of a trace's events.
    pub fn of(trace: &Trace) -> RecordForms {
        let messages = ::perfetto::EventMessages::default();
        let has_context = trace.diagnostics().count(FileIssue::NoContext) == 0;
        let mut forms = Vec::new();
        for format in trace.formats() {
            let place = usize::from(format.id);
            if place >= forms.len() {
                forms.resize_with(place + 1, || None);
            }
            if forms[place].is_none() {
                let context = format.field("common_flags").filter(|_| has_context).cloned();
                forms[place] = Some((RecordForm::of(format, &messages), context));
            }
        }
        RecordForms { forms }
    }

    /// Adds the fields of a record's message; returns nothing without a format.
    fn put(&self, record: &Record<'_>, message: &mut Message) -> Option<()> {
        let (form, context) = self.forms.get(usize::from(record.id()))?.as_ref()?;
        message.number(event::TIMESTAMP, record.ts.0.max(0).cast_unsigned());
        // Where the current task or the context is unknown, nothing stands for it.
        if record.pid() != Pid::UNKNOWN {
            message.signed(event::PID, record.pid().0.into());
        }
        if let Some(flags) = context.as_ref().and_then(|context| record.number_in(context)) {
            message.number(COMMON_FLAGS, flags.cast_unsigned() & 0xff);
        }
        match form {
            RecordForm::Numbered { number, fields } => message.message(*number, |inner| {
                fields.iter().for_each(|field| field.put(inner, record));
            }),
            RecordForm::Print => {
                let (number, ip, buf) = PRINT;
                message.message(number, |inner| {
                    inner.number(ip, record.number("ip").unwrap_or(0).cast_unsigned());
                    inner.text(buf, &record.text().unwrap_or_default());
                });
            }
            RecordForm::Named { name, fields } => message.message(generic::EVENT, |inner| {
                inner.text(generic::NAME, name);
                for field in fields {
                    inner.message(generic::FIELD, |named| {
                        named.text(generic::FIELD_NAME, &field.field.name);
                        field.put(named, record);
                    });
                }
            }),
        }
        Some(())
    }
}

/// Events one behind the other, on their way to the packets.
#[derive(Debug, Default)]
pub struct EventRun {
    messages: Message,
    /// The CPU of each event, whether events were lost before it, and the end of its bytes.
    events: Vec<(Cpu, bool, usize)>,
    /// Events without a format.
    pub others: u64,
}

impl EventRun {
    /// Adds a record.
    pub fn add(&mut self, record: &Record<'_>, forms: &RecordForms) {
        match forms.put(record, &mut self.messages) {
            Some(()) => self.events.push((record.cpu, record.lost.is_some(), self.messages.len())),
            None => self.others += 1,
        }
    }

    /// The events: CPU, whether events were lost before it, and message.
    pub(super) fn events(&self) -> impl Iterator<Item = (Cpu, bool, &[u8])> {
        let begins = std::iter::once(0).chain(self.events.iter().map(|(.., end)| *end));
        begins.zip(&self.events).map(|(begin, (cpu, lost, end))| (*cpu, *lost, &self.messages.bytes()[begin..*end]))
    }
}

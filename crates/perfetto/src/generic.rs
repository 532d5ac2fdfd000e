//! Events that Perfetto has no message for: with their names in each of them, or, denser, with a description beside the bundle.

use crate::limits;
use crate::wire::{WirePart, parts};
use sched::Tracepoint;
use sched::seeded::SeededMap;
use std::io::Error;
use transcript::{At, EventNumber, FieldDef, FieldKind, FieldValue, Transcript};

/// The numbers of the fields of such an event.
mod named {
    pub(super) const EVENT_NAME: u32 = 1;
    pub(super) const FIELD: u32 = 2;
    pub(super) const NAME: u32 = 1;
    pub(super) const TEXT: u32 = 3;
    pub(super) const SIGNED: u32 = 4;
    pub(super) const UNSIGNED: u32 = 5;
}

/// The numbers of the fields of a description: of a bundle, and of `DescriptorProto` and `FieldDescriptorProto`.
mod descriptor {
    pub(super) const FIELD_ID: u32 = 1;
    pub(super) const EVENT: u32 = 2;
    pub(super) const GROUP: u32 = 3;
    pub(super) const NAME: u32 = 1;
    pub(super) const FIELD: u32 = 2;
    pub(super) const FIELD_NAME: u32 = 1;
    pub(super) const FIELD_NUMBER: u32 = 3;
    pub(super) const FIELD_TYPE: u32 = 5;
}

/// A described event: its format, and the numbers of its fields.
#[derive(Debug)]
struct Described {
    system: String,
    name: String,
    numbers: Vec<u32>,
    fields: Vec<FieldDef>,
    /// The number of its format once it occurred; nothing in it where it has too many fields.
    number: Option<Option<EventNumber>>,
}

/// The described events.
#[derive(Debug, Default)]
pub(crate) struct GenericEvents {
    described: SeededMap<u32, Described>,
}

/// The system and the name of an event. Perfetto records the name alone: those that are known here have their system.
fn system_and_name(name: &str) -> (&str, &str) {
    if let Some(split) = name.split_once('/') {
        return split;
    }
    let known = Tracepoint::ALL.iter().find(|tracepoint| tracepoint.name() == name);
    (known.map_or("generic", |tracepoint| tracepoint.system()), name)
}

/// Adds an event with its names; whether it was one.
pub(crate) fn named(at: At, body: &[u8], transcript: &mut Transcript) -> Result<bool, Error> {
    let (mut name, mut fields, mut values) = (None, Vec::new(), Vec::new());
    for (number, part) in parts(body) {
        match (number, part) {
            (named::EVENT_NAME, WirePart::Bytes(bytes)) => name = Some(name_of(bytes)),
            (named::FIELD, WirePart::Bytes(bytes)) => {
                let (field, value) = named_field(bytes);
                fields.push(field);
                values.push(value);
            }
            _ => {}
        }
    }
    let Some(name) = name else { return Ok(false) };
    let (system, name) = system_and_name(&name);
    let Some(number) = transcript.event(system, name, fields) else { return Ok(false) };
    transcript.record(at, number, &values)?;
    Ok(true)
}

impl GenericEvents {
    /// Takes the description of an event.
    pub(crate) fn describe(&mut self, bytes: &[u8]) {
        let (mut kind, mut event, mut group) = (0, &[][..], "generic".to_owned());
        for (number, part) in parts(bytes) {
            match number {
                descriptor::FIELD_ID => kind = part.number(),
                descriptor::EVENT => event = part.bytes(),
                descriptor::GROUP => group = name_of(part.bytes()),
                _ => {}
            }
        }
        let Ok(kind) = u32::try_from(kind) else { return };
        if self.described.contains_key(&kind) || self.described.len() >= limits::GENERIC {
            return;
        }
        let mut described =
            Described { system: group, name: String::new(), numbers: Vec::new(), fields: Vec::new(), number: None };
        for (number, part) in parts(event) {
            match number {
                descriptor::NAME => described.name = name_of(part.bytes()),
                descriptor::FIELD if described.fields.len() < limits::FIELDS => {
                    let (mut name, mut number, mut of) = ("".into(), 0, 0);
                    for (part_number, part) in parts(part.bytes()) {
                        match part_number {
                            descriptor::FIELD_NAME => name = String::from_utf8_lossy(part.bytes()),
                            descriptor::FIELD_NUMBER => number = part.number(),
                            descriptor::FIELD_TYPE => of = part.number(),
                            _ => {}
                        }
                    }
                    described.numbers.push(u32::try_from(number).unwrap_or(0));
                    described.fields.push(FieldDef::new(&name, kind_of(of)));
                }
                _ => {}
            }
        }
        self.described.insert(kind, described);
    }

    /// Whether events of this kind were described.
    pub(crate) fn is_described(&self, kind: u32) -> bool {
        self.described.contains_key(&kind)
    }

    /// Adds an event that was described; whether it has a format.
    pub(crate) fn described(
        &mut self,
        at: At,
        kind: u32,
        body: &[u8],
        transcript: &mut Transcript,
    ) -> Result<bool, Error> {
        let Some(Described { system, name, numbers, fields, number }) = self.described.get_mut(&kind) else {
            return Ok(false);
        };
        let Some(number) = *number.get_or_insert_with(|| transcript.event(system, name, std::mem::take(fields))) else {
            return Ok(false);
        };
        let mut values = vec![FieldValue::Number(0); numbers.len()];
        for (number, part) in parts(body) {
            let place = numbers.iter().position(|known| *known == number);
            if let Some(value) = place.and_then(|place| values.get_mut(place)) {
                *value = match part {
                    WirePart::Number(number) => FieldValue::Number(number.cast_signed()),
                    WirePart::Bytes(bytes) => FieldValue::Text(bytes),
                };
            }
        }
        transcript.record(at, number, &values)?;
        Ok(true)
    }
}

/// A name, as far as a format can have it.
fn name_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.get(..bytes.len().min(limits::NAME)).unwrap_or_default()).into_owned()
}

/// A field with its name, and its value.
fn named_field(bytes: &[u8]) -> (FieldDef, FieldValue<'_>) {
    let (mut name, mut kind, mut value) = ("".into(), FieldKind::Signed(8), FieldValue::Number(0));
    for (number, part) in parts(bytes) {
        match (number, part) {
            (named::NAME, WirePart::Bytes(bytes)) => name = String::from_utf8_lossy(bytes),
            (named::TEXT, WirePart::Bytes(bytes)) => (kind, value) = (FieldKind::Text, FieldValue::Text(bytes)),
            (named::SIGNED, WirePart::Number(number)) => value = FieldValue::Number(number.cast_signed()),
            (named::UNSIGNED, WirePart::Number(number)) => {
                (kind, value) = (FieldKind::Unsigned(8), FieldValue::Number(number.cast_signed()));
            }
            _ => {}
        }
    }
    (FieldDef::new(&name, kind), value)
}

/// The kind of a field by its type in `FieldDescriptorProto`.
fn kind_of(number: u64) -> FieldKind {
    match number {
        9 | 12 => FieldKind::Text,
        4 => FieldKind::Unsigned(8),
        13 => FieldKind::Unsigned(4),
        5 => FieldKind::Signed(4),
        8 => FieldKind::Unsigned(1),
        _ => FieldKind::Signed(8),
    }
}

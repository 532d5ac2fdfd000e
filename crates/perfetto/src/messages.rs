//! The messages that Perfetto has for events, for those who write them.

use crate::table::{self, EventRow};
use std::collections::BTreeMap;
use transcript::FieldKind;

/// The message of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventMessage {
    /// The number of the message in an event of a bundle.
    pub number: u32,
    /// The number, the name and the kind of each field.
    pub fields: Vec<(u32, String, FieldKind)>,
}

/// The messages of all events that Perfetto has any for.
#[derive(Clone, Debug)]
pub struct EventMessages {
    lines: BTreeMap<(&'static str, &'static str), (u32, &'static str)>,
}

impl Default for EventMessages {
    fn default() -> EventMessages {
        let of = |(number, line): (u32, &'static str)| {
            let mut words = line.split(' ');
            Some(((words.next()?, words.next()?), (number, line)))
        };
        EventMessages { lines: table::lines().into_iter().filter_map(of).collect() }
    }
}

impl EventMessages {
    /// The message of an event, if Perfetto has one.
    #[must_use]
    pub fn of(&self, system: &str, name: &str) -> Option<EventMessage> {
        let (number, line) = self.lines.iter().find(|(key, _)| **key == (system, name)).map(|(_, found)| *found)?;
        let row = EventRow::of(line)?;
        let fields = row.numbers.iter().zip(&row.fields);
        let fields = fields.map(|(number, field)| (*number, field.name().to_owned(), field.kind())).collect();
        Some(EventMessage { number, fields })
    }
}

//! The events that Perfetto has messages for: `events.txt`, after its `.proto` files.

use std::collections::BTreeMap;
use transcript::{FieldDef, FieldKind};

/// The table: a line for each event. Its number in an event of a bundle, the system, the name, and the fields, each as
/// `NUMBERkind:name`. Kinds: `s` a text, `i` and `u` of 32 bits, `l` and `q` of 64 with and without a sign, `b` a truth value.
const TABLE: &str = include_str!("events.txt");

/// An event of the table.
#[derive(Clone, Debug)]
pub(crate) struct EventRow {
    pub(crate) system: &'static str,
    pub(crate) name: &'static str,
    /// The numbers of the fields in the event's message, in the order of `fields`.
    pub(crate) numbers: Vec<u32>,
    pub(crate) fields: Vec<FieldDef>,
}

/// The lines of the table by the number of the event.
pub(crate) fn lines() -> BTreeMap<u32, &'static str> {
    let line = |line: &'static str| {
        let (number, rest) = line.split_once(' ')?;
        Some((number.parse().ok()?, rest))
    };
    TABLE.lines().filter_map(line).collect()
}

impl EventRow {
    /// Reads a line of the table, without its number.
    pub(crate) fn of(line: &'static str) -> Option<EventRow> {
        let mut words = line.split(' ');
        let mut row = EventRow { system: words.next()?, name: words.next()?, numbers: Vec::new(), fields: Vec::new() };
        for word in words.filter(|word| !word.is_empty()) {
            let (head, name) = word.split_once(':')?;
            let (number, kind) = head.split_at_checked(head.len().checked_sub(1)?)?;
            let kind = match kind {
                "s" if name.ends_with("comm") => FieldKind::Comm,
                "s" => FieldKind::Text,
                "i" => FieldKind::Signed(4),
                "u" => FieldKind::Unsigned(4),
                "l" => FieldKind::Signed(8),
                "b" => FieldKind::Unsigned(1),
                _ => FieldKind::Unsigned(8),
            };
            row.numbers.push(number.parse().ok()?);
            row.fields.push(FieldDef::new(name, kind));
        }
        Some(row)
    }
}

//! One event of a bundle, as a record of ftrace.

use crate::generic::{self, GenericEvents};
use crate::table::{self, EventRow};
use crate::wire::{WirePart, parts};
use sched::seeded::SeededMap;
use sched::{Pid, Tracepoint};
use std::collections::BTreeMap;
use std::io::Error;
use transcript::{At, EventNumber, FieldKind, FieldValue, Transcript};

/// The fields of an event: when, which task was current, in which context.
const TIMESTAMP: u32 = 1;
const PID: u32 = 2;
const COMMON_FLAGS: u32 = 5;
/// An event with its name and its fields' names.
const GENERIC: u32 = 327;
/// The field `success` of a wakeup.
const SUCCESS: u32 = 4;

/// An event of a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event<'e> {
    pub(crate) time: u64,
    /// The current task; unknown where the event lacks it.
    pub(crate) pid: i32,
    pub(crate) flags: Option<u8>,
    /// The kind of event, by the number of its field, and its message.
    pub(crate) kind: u32,
    pub(crate) body: &'e [u8],
}

impl<'e> Event<'e> {
    /// Reads an event; `None` without a time or a kind.
    pub(crate) fn of(bytes: &'e [u8]) -> Option<Event<'e>> {
        let (mut time, mut pid, mut flags, mut found) = (None, Pid::UNKNOWN.0, None, None);
        for (number, part) in parts(bytes) {
            match (number, part) {
                (TIMESTAMP, WirePart::Number(number)) => time = Some(number),
                (PID, WirePart::Number(number)) => pid = number as i32,
                (COMMON_FLAGS, WirePart::Number(number)) => flags = Some(number as u8),
                (kind, WirePart::Bytes(body)) => found = Some((kind, body)),
                _ => {}
            }
        }
        let (kind, body) = found?;
        Some(Event { time: time?, pid, flags, kind, body })
    }
}

/// The effect of an event on the tasks of its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    None,
    /// Another task runs.
    Switch,
    /// A task is created, or takes another name.
    NewTask,
    Rename,
}

/// A kind of event that occurred.
#[derive(Debug)]
struct Known {
    row: EventRow,
    number: EventNumber,
    effect: Effect,
    is_wakeup: bool,
}

/// The kinds of events that occurred.
#[derive(Debug)]
pub(crate) struct Events {
    lines: BTreeMap<u32, &'static str>,
    known: SeededMap<u32, Option<Known>>,
    pub(crate) generic: GenericEvents,
    /// Events without a description.
    pub(crate) unknown: u64,
}

impl Default for Events {
    fn default() -> Events {
        Events { lines: table::lines(), known: SeededMap::default(), generic: GenericEvents::default(), unknown: 0 }
    }
}

impl Events {
    /// The number under which Perfetto has a tracepoint.
    pub(crate) fn kind_of(&self, tracepoint: Tracepoint) -> Option<u32> {
        let is = |line: &&str| line.split(' ').nth(1) == Some(tracepoint.name());
        self.lines.iter().find(|(_, line)| is(line)).map(|(kind, _)| *kind)
    }

    fn known(&mut self, kind: u32, transcript: &mut Transcript) -> Option<&Known> {
        let lines = &self.lines;
        // Kinds without a line are not kept: a file could have any number of them.
        let line = *lines.get(&kind)?;
        let make = || {
            let row = EventRow::of(line)?;
            let number = transcript.event(row.system, row.name, row.fields.clone())?;
            let tracepoint = Tracepoint::of(row.system, row.name);
            let effect = match tracepoint {
                Some(Tracepoint::Switch) => Effect::Switch,
                Some(Tracepoint::Rename) => Effect::Rename,
                None if (row.system, row.name) == ("task", "task_newtask") => Effect::NewTask,
                _ => Effect::None,
            };
            let wakeups = [Tracepoint::Wakeup, Tracepoint::WakeupNew, Tracepoint::Waking];
            let is_wakeup = tracepoint.is_some_and(|tracepoint| wakeups.contains(&tracepoint));
            Some(Known { row, number, effect, is_wakeup })
        };
        self.known.entry(kind).or_insert_with(make).as_ref()
    }

    /// Adds an event to the transcript; returns its effect, with the values of its fields.
    pub(crate) fn record<'e>(
        &mut self,
        cpu: u32,
        event: Event<'e>,
        transcript: &mut Transcript,
    ) -> Result<(Effect, Vec<FieldValue<'e>>), Error> {
        let at = At { cpu, time: event.time, pid: event.pid, flags: event.flags.unwrap_or(0), preempt: 0 };
        let is_named = event.kind == GENERIC;
        if is_named || self.generic.is_described(event.kind) {
            let is_added = match is_named {
                true => generic::named(at, event.body, transcript)?,
                false => self.generic.described(at, event.kind, event.body, transcript)?,
            };
            self.unknown = self.unknown.saturating_add(u64::from(!is_added));
            return Ok((Effect::None, Vec::new()));
        }
        let Some(known) = self.known(event.kind, transcript) else {
            self.unknown = self.unknown.saturating_add(1);
            return Ok((Effect::None, Vec::new()));
        };
        let empty = |field: &transcript::FieldDef| match field.kind() {
            FieldKind::Comm | FieldKind::Text => FieldValue::Text(&[]),
            _ => FieldValue::Number(0),
        };
        let mut values: Vec<FieldValue<'e>> = known.row.fields.iter().map(empty).collect();
        for (number, part) in parts(event.body) {
            // Kernels before 3.13 recorded wakeups of tasks that were awake.
            if known.is_wakeup && number == SUCCESS && part == WirePart::Number(0) {
                return Ok((Effect::None, Vec::new()));
            }
            let place = known.row.numbers.iter().position(|known| *known == number);
            if let Some(value) = place.and_then(|place| values.get_mut(place)) {
                *value = match part {
                    WirePart::Number(number) => FieldValue::Number(number.cast_signed()),
                    WirePart::Bytes(bytes) => FieldValue::Text(bytes),
                };
            }
        }
        transcript.record(at, known.number, &values)?;
        Ok((known.effect, values))
    }
}

impl Events {
    /// The number of the format of a tracepoint.
    pub(crate) fn number_of(&mut self, tracepoint: Tracepoint, transcript: &mut Transcript) -> Option<EventNumber> {
        let kind = self.kind_of(tracepoint)?;
        self.known(kind, transcript).map(|known| known.number)
    }
}

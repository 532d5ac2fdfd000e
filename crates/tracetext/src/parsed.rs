//! Blocks of lines as events: the part of the work that needs no other block, and that many threads share.

use crate::fields::{self, KnownField};
use crate::limits;
use crate::line::{EventLine, PrintedLine, Printer};
use crate::lines::lines;
use sched::Tracepoint;
use sched::seeded::SeededMap;
use transcript::{FieldDef, RecordLayout};

/// An event whose fields are known here.
#[derive(Debug)]
pub(crate) struct KnownEvent {
    pub(crate) system: &'static str,
    pub(crate) name: &'static str,
    tracepoint: Option<Tracepoint>,
    fields: &'static [KnownField],
    layout: RecordLayout,
}

impl KnownEvent {
    fn new(
        tracepoint: Option<Tracepoint>,
        (system, name): (&'static str, &'static str),
        fields: &'static [KnownField],
    ) -> KnownEvent {
        let defs: Vec<FieldDef> = fields.iter().map(|(name, _, kind)| FieldDef::new(name, *kind)).collect();
        KnownEvent { system, name, tracepoint, fields, layout: RecordLayout::new(&defs) }
    }

    /// The fields of the event, in the order of its records.
    pub(crate) fn fields(&self) -> Vec<FieldDef> {
        self.fields.iter().map(|(name, _, kind)| FieldDef::new(name, *kind)).collect()
    }
}

/// The events whose fields are known here, and their numbers by name.
#[derive(Debug)]
pub(crate) struct KnownEvents {
    pub(crate) events: Vec<KnownEvent>,
    by_name: SeededMap<&'static str, Vec<usize>>,
}

impl KnownEvents {
    pub(crate) fn new() -> KnownEvents {
        let of = |tracepoint: &Tracepoint| {
            let fields = fields::known(*tracepoint)?;
            Some(KnownEvent::new(Some(*tracepoint), (tracepoint.system(), tracepoint.name()), fields))
        };
        let mut events: Vec<KnownEvent> = Tracepoint::ALL.iter().filter_map(of).collect();
        events.push(KnownEvent::new(None, ("task", "task_newtask"), fields::NEW_TASK));
        let mut by_name: SeededMap<&'static str, Vec<usize>> = SeededMap::default();
        for (number, event) in events.iter().enumerate() {
            by_name.entry(event.name).or_default().push(number);
        }
        KnownEvents { events, by_name }
    }

    /// The number of the event of a line, whose system may be missing.
    fn of(&self, line: &EventLine<'_>) -> Option<(usize, &KnownEvent)> {
        let numbers = self.by_name.get(line.name)?.iter();
        let mut named = numbers.filter_map(|number| Some((*number, self.events.get(*number)?)));
        named.find(|(_, event)| line.system.is_none_or(|system| system == event.system))
    }
}

/// A part of a block or of its records: where it begins, and its length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BlockPart(u32, u32);

impl BlockPart {
    /// The place of a part of these bytes.
    fn of(part: &[u8], bytes: &[u8]) -> BlockPart {
        let at = part.as_ptr().addr().saturating_sub(bytes.as_ptr().addr());
        BlockPart(at as u32, part.len() as u32)
    }

    pub(crate) fn get(self, bytes: &[u8]) -> &[u8] {
        let end = (self.0 as usize).saturating_add(self.1 as usize);
        bytes.get(self.0 as usize..end).unwrap_or_default()
    }

    pub(crate) fn get_mut(self, bytes: &mut [u8]) -> &mut [u8] {
        let end = (self.0 as usize).saturating_add(self.1 as usize);
        bytes.get_mut(self.0 as usize..end).unwrap_or_default()
    }
}

/// The fields of an event, as far as its block decides them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParsedFields {
    /// The number of a known event, and its record.
    Record(usize, BlockPart),
    /// The text of a known event that lacks fields.
    Damaged(BlockPart),
    /// The system, the name and the text of another event.
    Other(Option<BlockPart>, BlockPart, BlockPart),
}

/// A line with an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ParsedEvent {
    pub(crate) printer: Printer,
    pub(crate) has_context: bool,
    pub(crate) is_exact: bool,
    pub(crate) flags: u8,
    pub(crate) preempt: u8,
    pub(crate) cpu: u32,
    pub(crate) pid: i32,
    pub(crate) time: u64,
    pub(crate) fields: ParsedFields,
}

/// A line that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParsedLine {
    Event(ParsedEvent),
    Lost(u32, Option<u64>),
    LostSomewhere(u64),
    Machine(u32, bool),
}

/// A block, what its lines say, and the records of its known events.
#[derive(Debug, Default)]
pub(crate) struct ParsedBlock {
    pub(crate) text: Vec<u8>,
    pub(crate) lines: Vec<ParsedLine>,
    pub(crate) records: Vec<u8>,
    /// Lines that are not understood, or beyond the limit.
    pub(crate) unread: u64,
}

impl ParsedBlock {
    /// Reads the block's lines.
    pub(crate) fn parse(&mut self, known: &KnownEvents) {
        let ParsedBlock { text, lines: parsed, records, unread } = self;
        parsed.clear();
        records.clear();
        *unread = 0;
        let (mut values, mut record) = (Vec::new(), Vec::new());
        for line in lines(text) {
            if line.len() > limits::LINE {
                *unread = unread.saturating_add(1);
                continue;
            }
            parsed.push(match PrintedLine::of(line) {
                PrintedLine::Event(line) => {
                    let fields = match known.of(&line) {
                        Some((number, event)) if event.values(line.text, &mut values) => {
                            event.layout.encode((line.pid, line.flags, line.preempt), &values, &mut record);
                            let at = records.len();
                            records.extend_from_slice(&record);
                            ParsedFields::Record(number, BlockPart(at as u32, record.len() as u32))
                        }
                        Some(_) => ParsedFields::Damaged(BlockPart::of(line.text, text)),
                        None => {
                            let part = |part: &str| BlockPart::of(part.as_bytes(), text);
                            ParsedFields::Other(line.system.map(part), part(line.name), BlockPart::of(line.text, text))
                        }
                    };
                    let EventLine { printer, has_context, is_exact, flags, preempt, cpu, pid, time, .. } = line;
                    ParsedLine::Event(ParsedEvent {
                        printer,
                        has_context,
                        is_exact,
                        flags,
                        preempt,
                        cpu,
                        pid,
                        time,
                        fields,
                    })
                }
                PrintedLine::Lost(cpu, count) => ParsedLine::Lost(cpu, count),
                PrintedLine::LostSomewhere(count) => ParsedLine::LostSomewhere(count),
                PrintedLine::Machine(cpus, is_overwritten) => ParsedLine::Machine(cpus, is_overwritten),
                PrintedLine::Silent => continue,
                PrintedLine::Other => {
                    *unread = unread.saturating_add(1);
                    continue;
                }
            });
        }
    }
}

impl KnownEvent {
    /// Reads the values of the event's fields; `false` where the text lacks one.
    fn values<'l>(&self, text: &'l [u8], values: &mut Vec<transcript::FieldValue<'l>>) -> bool {
        values.clear();
        if fields::of_known(self.fields, text, values) {
            return true;
        }
        let of_plugin = self.tracepoint.and_then(|tracepoint| fields::of_plugin(tracepoint, text));
        of_plugin.is_some_and(|found| {
            *values = found;
            true
        })
    }
}

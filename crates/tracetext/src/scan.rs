//! One pass over the events of a text, in their order.

use crate::line::Printer;
use crate::parsed::{BlockPart, KnownEvents, ParsedBlock, ParsedEvent, ParsedFields, ParsedLine};
use crate::wrapped::{self, Reading, TextSink, Wrapping};
use crate::{fields, limits, workers};
use parse::{Error, FileIssue, Origin, Recording, Source};
use sched::seeded::SeededMap;
use sched::{Cpu, Diagnostics, Tracepoint};
use std::collections::BTreeSet;
use transcript::{At, EventNumber, FieldDef, FieldKind, FieldValue, Transcript, TranscriptFacts};

#[derive(Debug, Default)]
struct TextScan {
    transcript: Transcript,
    /// The numbers of the events whose fields are known here, as far as these occurred.
    known: SeededMap<usize, EventNumber>,
    /// The numbers of other events, by what a line says of their kind: making a format's fields takes longer than all else about a
    /// line.
    named: SeededMap<Vec<u8>, EventNumber>,
    kind: Vec<u8>,
    printer: Option<Printer>,
    cpus: u32,
    /// The CPUs that had events so far, where the kernel overwrote earlier ones.
    begun: Option<BTreeSet<u32>>,
    /// Whether the text tells of a loss, and events lost at no known place.
    tells_losses: bool,
    lost_unmarked: u64,
    /// The latest microsecond, and the number of lines in it.
    latest: (u64, u64),
    rounded: u64,
    has_context: bool,
    unread: u64,
    unknown: u64,
    diagnostics: Diagnostics,
}

/// Reads all lines of a file, on this number of threads.
pub(crate) fn recording(source: &Source, threads: usize) -> Result<Recording, Error> {
    let io = |source| Error::Io { path: std::env::temp_dir(), source };
    let (mut scan, known) = (TextScan::default(), KnownEvents::new());
    let mut reading = Reading::default();
    let text = |sink: TextSink<'_>| reading = wrapped::text(source, sink);
    let long = workers::blocks(text, threads, &known, &mut |block| scan.block(block, &known)).map_err(io)?;
    if scan.transcript.records() == 0 {
        return Err(Error::NoEvents { why: "no line of the text has an event with a time and a CPU".into() });
    }
    let TextScan { transcript, printer, cpus, rounded, has_context, unread, unknown, lost_unmarked, .. } = scan;
    let mut diagnostics = scan.diagnostics;
    diagnostics.add_many(FileIssue::UnreadLines, unread.saturating_add(long));
    diagnostics.add_many(FileIssue::UnknownEvent, unknown);
    if rounded > 0 {
        diagnostics.add(FileIssue::RoundedTimes);
    }
    if !has_context {
        diagnostics.add(FileIssue::NoContext);
    }
    let is_cut = reading.is_cut;
    if is_cut {
        diagnostics.add_at(FileIssue::TruncatedData, || "the text of ftrace in this file".into());
    }
    let is_perf = printer == Some(Printer::Perf);
    if is_perf && !scan.tells_losses {
        diagnostics.add(FileIssue::UntoldLosses);
    }
    let origin = Origin {
        format: match reading.wrapping {
            Wrapping::Nothing if is_perf => "text of perf script",
            Wrapping::Nothing => "text of trace-cmd report or of the kernel",
            Wrapping::Json => "JSON of a trace viewer",
            Wrapping::Page => "page of systrace",
            Wrapping::CompressedPage => "page of trace2html",
        },
        clock: if is_perf { "perf".into() } else { "".into() },
        cpus: cpus.min(Cpu::LIMIT),
        ..Origin::default()
    };
    let facts = TranscriptFacts { origin, diagnostics, lost_unmarked, is_cut, ..TranscriptFacts::default() };
    transcript.finish(facts).map_err(io)
}

impl TextScan {
    /// Takes the lines of the next block.
    fn block(&mut self, block: &mut ParsedBlock, known: &KnownEvents) -> Result<(), std::io::Error> {
        self.unread = self.unread.saturating_add(block.unread);
        let ParsedBlock { text, lines, records, .. } = block;
        for line in lines {
            match *line {
                ParsedLine::Event(event) => self.event(&event, text, records, known)?,
                ParsedLine::Lost(cpu, count) => {
                    self.tells_losses = true;
                    self.transcript.lost(cpu, count);
                }
                ParsedLine::LostSomewhere(count) => {
                    self.tells_losses = true;
                    self.lost_unmarked = self.lost_unmarked.saturating_add(count);
                }
                ParsedLine::Machine(cpus, is_overwritten) => {
                    self.cpus = self.cpus.max(cpus);
                    if is_overwritten {
                        self.begun.get_or_insert_default();
                    }
                }
            }
        }
        Ok(())
    }

    fn event(
        &mut self,
        event: &ParsedEvent,
        text: &[u8],
        records: &mut [u8],
        known: &KnownEvents,
    ) -> Result<(), std::io::Error> {
        self.printer.get_or_insert(event.printer);
        self.has_context |= event.has_context;
        let ParsedEvent { cpu, pid, flags, preempt, .. } = *event;
        // How many of the overwritten events were those of a CPU is not known.
        if cpu < Cpu::LIMIT && self.begun.as_mut().is_some_and(|begun| begun.insert(cpu)) {
            self.transcript.lost(cpu, None);
        }
        let time = self.time(event);
        match event.fields {
            ParsedFields::Record(number, record) => match self.known(number, known) {
                Some(number) => return self.transcript.encoded(cpu, time, number, record.get_mut(records)),
                None => self.unknown = self.unknown.saturating_add(1),
            },
            ParsedFields::Damaged(part) => {
                let damaged = part.get(text);
                self.diagnostics.add_at(FileIssue::CorruptRecord, || {
                    String::from_utf8_lossy(damaged.get(..damaged.len().min(80)).unwrap_or_default()).into_owned()
                });
                self.transcript.lost(cpu, Some(1));
            }
            ParsedFields::Other(system, name, part) => {
                let word = |part: BlockPart| std::str::from_utf8(part.get(text)).unwrap_or_default();
                let line = NamedEvent { system: system.map(word), name: word(name), text: part.get(text) };
                return self.named(At { cpu, time, pid, flags, preempt }, &line);
            }
        }
        Ok(())
    }

    /// The time of a line. Of those with microseconds alone, lines of the same one keep their order: each is a nanosecond behind the one
    /// before.
    fn time(&mut self, line: &ParsedEvent) -> u64 {
        if line.is_exact {
            return line.time;
        }
        self.rounded = self.rounded.saturating_add(1);
        let behind = if line.time == self.latest.0 { self.latest.1.saturating_add(1).min(999) } else { 0 };
        self.latest = (line.time, behind);
        line.time.saturating_add(behind)
    }

    /// The number of a known event in the recording.
    fn known(&mut self, number: usize, known: &KnownEvents) -> Option<EventNumber> {
        if let Some(number) = self.known.get(&number) {
            return Some(*number);
        }
        let event = known.events.get(number)?;
        let made = self.transcript.event(event.system, event.name, event.fields())?;
        self.known.insert(number, made);
        Some(made)
    }

    /// Adds an event with the fields that its line names; one without any has its text as a field.
    fn named<'l>(&mut self, at: At, line: &NamedEvent<'l>) -> Result<(), std::io::Error> {
        let pairs = fields::pairs(line.text);
        let pairs = if pairs.is_empty() { vec![(b"text".as_slice(), line.text)] } else { pairs };
        // `delay=35 [ns]` of the kernel's statistics is a number, and printed with its unit again.
        let is_statistic = line.name.starts_with("sched_stat_");
        let value = |(_, text): &(_, &'l [u8])| {
            let number = text.strip_suffix(b" [ns]").filter(|_| is_statistic).unwrap_or(text);
            fields::decimal(number).map_or(FieldValue::Text(text), FieldValue::Number)
        };
        let values: Vec<_> = pairs.iter().map(value).collect();
        let Some(number) = self.number(line, &pairs, &values) else {
            self.unknown = self.unknown.saturating_add(1);
            return Ok(());
        };
        self.transcript.record(at, number, &values)
    }

    /// The number of an event with these fields, whose kinds are those of the values.
    fn number(
        &mut self,
        line: &NamedEvent<'_>,
        pairs: &[(&[u8], &[u8])],
        values: &[FieldValue<'_>],
    ) -> Option<EventNumber> {
        let kinds = values.iter().map(|value| match value {
            FieldValue::Number(_) => FieldKind::Signed(8),
            FieldValue::Text(_) => FieldKind::Text,
        });
        let fields = pairs.iter().map(|(name, _)| *name).zip(kinds);
        // No name of an event or a field has a NUL.
        self.kind.clear();
        self.kind.extend(line.system.unwrap_or_default().bytes().chain([0]).chain(line.name.bytes()));
        for (name, kind) in fields.clone() {
            self.kind.push(if kind == FieldKind::Text { 1 } else { 2 });
            self.kind.extend_from_slice(name);
        }
        if let Some(number) = self.named.get(&self.kind) {
            return Some(*number);
        }
        let system = line.system.map_or_else(|| system_of(line.name), str::to_owned);
        let fields: Vec<_> = fields.map(|(name, kind)| FieldDef::new(&String::from_utf8_lossy(name), kind)).collect();
        let number = self.transcript.event(&system, line.name, fields)?;
        if self.named.len() < limits::NAMED && self.kind.len() <= limits::KIND {
            self.named.insert(self.kind.clone(), number);
        }
        Some(number)
    }
}

/// An event whose fields its line names.
struct NamedEvent<'l> {
    system: Option<&'l str>,
    name: &'l str,
    text: &'l [u8],
}

/// The system of an event whose line does not have it, by its name.
fn system_of(name: &str) -> String {
    let known = Tracepoint::ALL.iter().find(|tracepoint| tracepoint.name() == name);
    let prefix = || name.split_once('_').map_or("text", |(prefix, _)| prefix);
    match known {
        Some(tracepoint) => tracepoint.system().to_owned(),
        None if ["sched", "irq", "softirq", "timer", "hrtimer", "task", "workqueue"].contains(&prefix()) => {
            match prefix() {
                "softirq" => "irq".to_owned(),
                "hrtimer" => "timer".to_owned(),
                prefix => prefix.to_owned(),
            }
        }
        None => "text".to_owned(),
    }
}

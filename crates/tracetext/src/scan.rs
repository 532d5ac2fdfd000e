//! One pass over the lines of a file.

use crate::fields::{self, KnownField};
use crate::limits;
use crate::line::{EventLine, PrintedLine, Printer};
use crate::lines::LineCutter;
use crate::wrapped::{self, Wrapping};
use parse::{Error, FileIssue, Origin, Recording, Source};
use sched::seeded::SeededMap;
use sched::{Cpu, Diagnostics, Tracepoint};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use transcript::{At, EventNumber, FieldDef, FieldKind, FieldValue, Transcript, TranscriptFacts};

/// A kind of event that occurred.
#[derive(Clone, Copy, Debug)]
enum KnownEvent {
    /// With fields that are known here.
    Fields { tracepoint: Option<Tracepoint>, fields: &'static [KnownField], number: EventNumber },
    /// With the fields that the lines of the event name.
    Named,
}

#[derive(Debug, Default)]
struct TextScan {
    transcript: Transcript,
    /// The events that occurred and whose fields are known here, by name.
    events: SeededMap<&'static str, KnownEvent>,
    /// The numbers of other events, by what a line says of their kind: making a format's fields takes longer than all else about a
    /// line.
    named: SeededMap<Vec<u8>, EventNumber>,
    kind: Vec<u8>,
    /// The known tracepoints, by name.
    tracepoints: SeededMap<&'static str, Vec<Tracepoint>>,
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

/// Reads all lines of a file.
pub(crate) fn recording(source: &Source) -> Result<Recording, Error> {
    let mut scan = TextScan::default();
    for tracepoint in Tracepoint::ALL {
        scan.tracepoints.entry(tracepoint.name()).or_default().push(*tracepoint);
    }
    let io = |source| Error::Io { path: std::env::temp_dir(), source };
    let (mut lines, mut failed) = (LineCutter::default(), None);
    let reading = wrapped::text(source, &mut |piece| match lines.piece(piece, |line| scan.line(line)) {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            failed = Some(error);
            ControlFlow::Break(())
        }
    });
    if let Some(error) = failed {
        return Err(io(error));
    }
    let long = lines.end(|line| scan.line(line)).map_err(io)?;
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
    fn line(&mut self, line: &[u8]) -> Result<(), std::io::Error> {
        match PrintedLine::of(line) {
            PrintedLine::Event(event) => self.event(event)?,
            PrintedLine::Lost(cpu, count) => {
                self.tells_losses = true;
                self.transcript.lost(cpu, count);
            }
            PrintedLine::LostSomewhere(count) => {
                self.tells_losses = true;
                self.lost_unmarked = self.lost_unmarked.saturating_add(count);
            }
            PrintedLine::Machine(cpus, is_overwritten) => {
                self.cpus = self.cpus.max(cpus);
                if is_overwritten {
                    self.begun.get_or_insert_default();
                }
            }
            PrintedLine::Silent => {}
            PrintedLine::Other => self.unread = self.unread.saturating_add(1),
        }
        Ok(())
    }

    fn event(&mut self, line: EventLine<'_>) -> Result<(), std::io::Error> {
        self.printer.get_or_insert(line.printer);
        self.has_context |= line.has_context;
        let EventLine { cpu, pid, flags, preempt, .. } = line;
        // How many of the overwritten events were those of a CPU is not known.
        if cpu < Cpu::LIMIT && self.begun.as_mut().is_some_and(|begun| begun.insert(cpu)) {
            self.transcript.lost(cpu, None);
        }
        let at = At { cpu, time: self.time(&line), pid, flags, preempt };
        let Some(known) = self.known(&line) else {
            self.unknown = self.unknown.saturating_add(1);
            return Ok(());
        };
        if let KnownEvent::Fields { tracepoint, fields, number } = known {
            let plugin = || tracepoint.and_then(|tracepoint| fields::of_plugin(tracepoint, line.text));
            let Some(values) = fields::of_known(fields, line.text).or_else(plugin) else {
                self.diagnostics.add_at(FileIssue::CorruptRecord, || {
                    String::from_utf8_lossy(line.text.get(..line.text.len().min(80)).unwrap_or_default()).into_owned()
                });
                self.transcript.lost(cpu, Some(1));
                return Ok(());
            };
            return self.transcript.record(at, number, &values);
        }
        self.named(at, &line)
    }

    /// The time of a line. Of those with microseconds alone, lines of the same one keep their order: each is a nanosecond behind the one
    /// before.
    fn time(&mut self, line: &EventLine<'_>) -> u64 {
        if line.is_exact {
            return line.time;
        }
        self.rounded = self.rounded.saturating_add(1);
        let behind = if line.time == self.latest.0 { self.latest.1.saturating_add(1).min(999) } else { 0 };
        self.latest = (line.time, behind);
        line.time.saturating_add(behind)
    }

    fn known(&mut self, line: &EventLine<'_>) -> Option<KnownEvent> {
        if let Some(known) = self.events.get(line.name) {
            return Some(*known);
        }
        let of_name = self.tracepoints.get(line.name).map_or(&[][..], Vec::as_slice);
        let is = |tracepoint: &&Tracepoint| line.system.is_none_or(|system| system == tracepoint.system());
        let tracepoint = of_name.iter().find(is).copied();
        let (system, name, fields) = match tracepoint {
            Some(tracepoint) => (tracepoint.system(), tracepoint.name(), fields::known(tracepoint)),
            None if line.name == "task_newtask" => ("task", "task_newtask", Some(fields::NEW_TASK)),
            None => return Some(KnownEvent::Named),
        };
        let Some(fields) = fields else { return Some(KnownEvent::Named) };
        let made: Vec<FieldDef> = fields.iter().map(|(name, _, kind)| FieldDef::new(name, *kind)).collect();
        let number = self.transcript.event(system, name, made)?;
        let known = KnownEvent::Fields { tracepoint, fields, number };
        self.events.insert(name, known);
        Some(known)
    }

    /// Adds an event with the fields that its line names; one without any has its text as a field.
    fn named<'l>(&mut self, at: At, line: &EventLine<'l>) -> Result<(), std::io::Error> {
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
        line: &EventLine<'_>,
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

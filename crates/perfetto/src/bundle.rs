//! A bundle: events of one CPU, as its ring buffer had them.
//!
//! It has compact switches, compact wakings and other events in three sequences, each in order. They are merged here; at one time wakings
//! come first, since a task that is woken preempts at its earliest then.

use crate::ahead::ReadAhead;
use crate::compact::{CompactSched, CompactTask};
use crate::event::{Effect, Event, Events};
use crate::limits;
use crate::tasks::ListedTasks;
use crate::wire::{Damaged, Wire, WireContent};
use parse::FileIssue;
use sched::seeded::SeededMap;
use sched::{Comm, Diagnostics, Pid, Tracepoint};
use std::io::Error;
use std::ops::Range;
use transcript::{At, EventNumber, FieldDef, FieldKind, FieldValue, Transcript};

/// The numbers of the fields of `FtraceEventBundle`.
mod field {
    pub(super) const CPU: u32 = 1;
    pub(super) const EVENT: u32 = 2;
    pub(super) const LOST_EVENTS: u32 = 3;
    pub(super) const COMPACT_SCHED: u32 = 4;
    pub(super) const FTRACE_CLOCK: u32 = 5;
    pub(super) const ERROR: u32 = 8;
    pub(super) const GENERIC_EVENT_DESCRIPTOR: u32 = 11;
}

/// The facts about a bundle, which its messages can have in any order.
#[derive(Debug, Default)]
struct Bundle {
    cpu: Option<u32>,
    is_after_loss: bool,
    compact: Option<Range<u64>>,
    clock: u64,
    errors: u64,
    is_damaged: bool,
}

/// The events of all bundles.
#[derive(Debug, Default)]
pub(crate) struct Bundles {
    pub(crate) transcript: Transcript,
    events: Events,
    pub(crate) tasks: ListedTasks,
    /// The task that runs on each CPU, by the last switch; none behind a loss.
    current: SeededMap<u32, CompactTask>,
    /// The clock of the first bundle.
    clock: Option<u64>,
    compact: Option<CompactEvents>,
    event: Vec<u8>,
    /// Whether any event has the flags of its context; compact switches never have.
    has_context: bool,
    pub(crate) diagnostics: Diagnostics,
}

/// The numbers of the formats of compact events.
#[derive(Clone, Copy, Debug)]
struct CompactEvents {
    switch: EventNumber,
    waking: EventNumber,
    /// Stands where a CPU's task becomes known by a compact switch alone, and names it as the current one.
    occupant: EventNumber,
}

impl Bundles {
    /// The name of the clock of the events (`FtraceClock`).
    pub(crate) fn clock(&self) -> &'static str {
        match self.clock {
            Some(2) => "global",
            Some(3) => "local",
            Some(4) => "mono_raw",
            // Perfetto converts nothing where it does not say which; it takes boot time by itself.
            _ => "boot",
        }
    }

    /// Adds what no other finding tells.
    pub(crate) fn finish(&mut self) {
        self.diagnostics.add_many(FileIssue::UnknownEvent, self.events.unknown);
        if !self.has_context {
            self.diagnostics.add(FileIssue::NoContext);
        }
    }

    /// A packet of these bundles is missing.
    pub(crate) fn lose_everywhere(&mut self) {
        self.transcript.lost_everywhere();
        // To clear it takes as long as it once was large.
        self.current = SeededMap::default();
    }

    fn lose(&mut self, cpu: u32) {
        self.transcript.lost(cpu, None);
        self.current.remove(&cpu);
    }

    /// Adds the events of a bundle.
    pub(crate) fn add(&mut self, source: &ReadAhead<'_>, place: Range<u64>) -> Result<(), Error> {
        let bundle = self.facts(source, place.clone());
        let Some(cpu) = bundle.cpu else {
            self.diagnostics.add_at(FileIssue::CorruptRecord, || format!("offset {}, events of no CPU", place.start));
            self.lose_everywhere();
            return Ok(());
        };
        if *self.clock.get_or_insert(bundle.clock) != bundle.clock {
            self.diagnostics.add_at(FileIssue::OtherClock, || format!("offset {}", place.start));
            self.lose(cpu);
            return Ok(());
        }
        if bundle.is_after_loss {
            self.lose(cpu);
        }
        let is_whole = self.merge(source, cpu, place.clone(), bundle.compact)? && !bundle.is_damaged;
        if !is_whole || bundle.errors > 0 {
            let what = if is_whole { FileIssue::CorruptPage } else { FileIssue::CorruptRecord };
            self.diagnostics.add_at(what, || format!("CPU {cpu}, offset {}", place.start));
            self.lose(cpu);
        }
        Ok(())
    }

    fn facts(&mut self, source: &ReadAhead<'_>, place: Range<u64>) -> Bundle {
        let (mut bundle, mut wire, mut message) = (Bundle::default(), Wire::new(source, place), Vec::new());
        loop {
            match wire.field() {
                Ok(Some((field::CPU, WireContent::Number(cpu)))) => bundle.cpu = u32::try_from(cpu).ok(),
                Ok(Some((field::LOST_EVENTS, WireContent::Number(lost)))) => bundle.is_after_loss = lost != 0,
                Ok(Some((field::COMPACT_SCHED, WireContent::Bytes(place)))) => bundle.compact = Some(place),
                Ok(Some((field::FTRACE_CLOCK, WireContent::Number(clock)))) => bundle.clock = clock,
                Ok(Some((field::ERROR, _))) => bundle.errors = bundle.errors.saturating_add(1),
                Ok(Some((field::GENERIC_EVENT_DESCRIPTOR, WireContent::Bytes(place)))) => {
                    if wire.copy(&place, limits::MESSAGE, &mut message).is_some() {
                        self.events.generic.describe(&message);
                    }
                }
                Ok(Some(_)) => {}
                Ok(None) => return bundle,
                Err(Damaged) => {
                    bundle.is_damaged = true;
                    return bundle;
                }
            }
        }
    }

    /// Adds the events of all sequences; whether none is missing.
    fn merge(
        &mut self,
        source: &ReadAhead<'_>,
        cpu: u32,
        place: Range<u64>,
        compact: Option<Range<u64>>,
    ) -> Result<bool, Error> {
        let (mut compact, mut events) = (CompactSched::new(source, compact), Wire::new(source, place));
        let (mut bytes, mut is_whole) = (std::mem::take(&mut self.event), true);
        loop {
            let event = next_event(&mut events, &mut bytes, &mut is_whole);
            let until = event.map_or(u64::MAX, |event| event.time);
            while let Some(waking) = compact.waking().filter(|waking| waking.time <= until) {
                if let Some(switch) = compact.switch().filter(|switch| switch.time < waking.time) {
                    self.switch(cpu, switch)?;
                    compact.pass_switch();
                } else {
                    self.waking(cpu, waking)?;
                    compact.pass_waking();
                }
            }
            while let Some(switch) = compact.switch().filter(|switch| switch.time <= until) {
                self.switch(cpu, switch)?;
                compact.pass_switch();
            }
            let Some(event) = event else { break };
            self.event(cpu, event)?;
        }
        self.event = bytes;
        Ok(is_whole && !compact.is_damaged)
    }

    fn event(&mut self, cpu: u32, event: Event<'_>) -> Result<(), Error> {
        self.has_context |= event.flags.is_some();
        let (effect, values) = self.events.record(cpu, event, &mut self.transcript)?;
        if event.pid >= 0 && !self.current.contains_key(&cpu) {
            // Its name and its priority are not known: that of a fair task without a nice level stands for it.
            self.current.insert(cpu, CompactTask { pid: event.pid, prio: 120, comm: Comm::EMPTY });
        }
        let text = |place: usize| match values.get(place) {
            Some(FieldValue::Text(text)) => Comm::new(text),
            _ => Comm::EMPTY,
        };
        let number = |place: usize| match values.get(place) {
            Some(FieldValue::Number(number)) => *number,
            _ => 0,
        };
        match effect {
            Effect::None => {}
            // Its last fields: next_comm, next_pid, next_prio.
            Effect::Switch => {
                let next = CompactTask { pid: number(5) as i32, prio: number(6) as i32, comm: text(4) };
                self.current.insert(cpu, next);
            }
            // pid, comm, clone_flags.
            Effect::NewTask => {
                self.tasks.created(event.time, number(0) as i32, event.pid, number(2).cast_unsigned());
            }
            // pid, oldcomm, newcomm: a compact switch away from it has the new name.
            Effect::Rename => {
                let pid = number(0) as i32;
                if let Some(task) = self.current.get_mut(&cpu).filter(|task| task.pid == pid) {
                    task.comm = text(2);
                }
            }
        }
        Ok(())
    }

    /// The numbers of compact events, whose formats are those of the whole ones.
    fn compact_events(&mut self) -> Option<CompactEvents> {
        if self.compact.is_none() {
            let (switch, waking) = (self.number_of(Tracepoint::Switch)?, self.number_of(Tracepoint::Waking)?);
            let fields = [FieldDef::new("pid", FieldKind::Signed(4))];
            let occupant = self.transcript.event("perfetto", "first_switch", &fields)?;
            self.compact = Some(CompactEvents { switch, waking, occupant });
        }
        self.compact
    }

    fn number_of(&mut self, tracepoint: Tracepoint) -> Option<EventNumber> {
        self.events.number_of(tracepoint, &mut self.transcript)
    }

    fn switch(&mut self, cpu: u32, switch: crate::compact::CompactSwitch) -> Result<(), Error> {
        let Some(events) = self.compact_events() else { return Ok(()) };
        let at = At { cpu, time: switch.time, ..At::default() };
        let next = switch.next;
        match self.current.insert(cpu, next) {
            Some(prev) => {
                let values = [
                    FieldValue::Text(prev.comm.as_bytes()),
                    FieldValue::Number(prev.pid.into()),
                    FieldValue::Number(prev.prio.into()),
                    FieldValue::Number(switch.prev_state),
                    FieldValue::Text(next.comm.as_bytes()),
                    FieldValue::Number(next.pid.into()),
                    FieldValue::Number(next.prio.into()),
                ];
                self.transcript.record(At { pid: prev.pid, ..at }, events.switch, &values)
            }
            // The switch does not name the task that it leaves: until here it is unknown, from here on it is the next.
            None => {
                let value = [FieldValue::Number(next.pid.into())];
                self.transcript.record(At { pid: Pid::UNKNOWN.0, ..at }, events.occupant, &value)?;
                self.transcript.record(At { pid: next.pid, ..at }, events.occupant, &value)
            }
        }
    }

    fn waking(&mut self, cpu: u32, waking: crate::compact::CompactWaking) -> Result<(), Error> {
        let Some(events) = self.compact_events() else { return Ok(()) };
        let pid = self.current.get(&cpu).map_or(Pid::UNKNOWN.0, |task| task.pid);
        let values = [
            FieldValue::Text(waking.task.comm.as_bytes()),
            FieldValue::Number(waking.task.pid.into()),
            FieldValue::Number(waking.task.prio.into()),
            FieldValue::Number(waking.target),
        ];
        let at = At { cpu, time: waking.time, pid, flags: waking.flags, preempt: 0 };
        self.transcript.record(at, events.waking, &values)
    }
}

/// The next event of a bundle, its bytes in `bytes`. One that cannot be read is passed over.
fn next_event<'b>(wire: &mut Wire<'_>, bytes: &'b mut Vec<u8>, is_whole: &mut bool) -> Option<Event<'b>> {
    loop {
        match wire.field() {
            Ok(Some((field::EVENT, WireContent::Bytes(place)))) => {
                if wire.copy(&place, limits::EVENT, bytes).is_some() && Event::of(bytes).is_some() {
                    break;
                }
                *is_whole = false;
            }
            Ok(Some(_)) => {}
            Ok(None) | Err(Damaged) => return None,
        }
    }
    Event::of(bytes)
}

//! Any record of a trace, its fields read when they are asked for.

use crate::bytes::{Endian, NumberLayout, until_nul};
use crate::decode::format::{EventFormat, Field};
use crate::issue::FileIssue;
use crate::merge::UnitTask;
use crate::merge::unit_boundary::Timed;
use crate::ring::page::{Loss, Raw};
use crate::ring::unit::{Unit, Visitor, join_losses};
use crate::text::printk;
use crate::text::symbols::SymbolSource;
use crate::trace::Trace;
use sched::{Comm, Cpu, Pid, PrevState, Ts, context_flags};
use std::fmt::{self, Write};
use std::sync::Arc;

/// A record on its way through the merge, and as long as it is kept. Hundreds of thousands are on their way at once, where they have 16 bytes
/// each in the file.
#[derive(Clone, Debug)]
pub(crate) struct HeldRecord {
    ts: Ts,
    /// The unit that it stands in, in memory of its own.
    unit: Arc<Box<[u8]>>,
    /// The start of the record in the unit, and its length.
    payload: (u32, u32),
    lost: HeldLoss,
    cpu: Cpu,
    buffer: u32,
}

/// The loss before a record, in the room of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct HeldLoss(u64);

impl HeldLoss {
    const NONE: HeldLoss = HeldLoss(u64::MAX);
    const UNCOUNTED: HeldLoss = HeldLoss(u64::MAX - 1);

    fn of(loss: Option<Loss>) -> HeldLoss {
        match loss {
            None => HeldLoss::NONE,
            Some(Loss { count: None }) => HeldLoss::UNCOUNTED,
            Some(Loss { count: Some(count) }) => HeldLoss(count.min(u64::MAX - 2)),
        }
    }

    fn loss(self) -> Option<Loss> {
        match self {
            HeldLoss::NONE => None,
            HeldLoss::UNCOUNTED => Some(Loss { count: None }),
            HeldLoss(count) => Some(Loss { count: Some(count) }),
        }
    }
}

impl HeldRecord {
    /// The bytes of the record.
    fn bytes(&self) -> &[u8] {
        let (start, length) = (self.payload.0 as usize, self.payload.1 as usize);
        self.unit.get(start..start.saturating_add(length)).unwrap_or_default()
    }
}

/// A size in a unit; units have less than 4 GiB.
fn size_in_unit(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

impl Timed for HeldRecord {
    fn ts(&self) -> Ts {
        self.ts
    }

    fn set_ts(&mut self, ts: Ts) {
        self.ts = ts;
    }

    fn after_gap(_: Cpu, _: Ts, loss: Loss, next: Option<&mut HeldRecord>) -> Option<HeldRecord> {
        if let Some(next) = next {
            next.lost = HeldLoss::of(Some(join_losses(next.lost.loss(), loss)));
        }
        None
    }
}

impl Trace {
    /// Whether the kernel of the recording marks lazy requests to reschedule in the flags of events, by its release.
    pub fn marks_lazy_requests(&self) -> bool {
        self.header().options.kernel().is_some_and(|release| release >= context_flags::LAZY_SINCE)
    }
}

/// Adds a depth as a hexadecimal digit; none is a dot.
fn put_depth(depth: i64, out: &mut String) {
    match depth {
        0 => out.push('.'),
        // Writing to a string cannot fail.
        depth => drop(write!(out, "{depth:x}")),
    }
}

/// Collects the records of a unit.
struct Collector<'c> {
    trace: &'c Trace,
    cpu: Cpu,
    buffer: usize,
    bytes: &'c Arc<Box<[u8]>>,
    pending: Option<Loss>,
    unit: Unit<HeldRecord>,
}

impl Visitor for Collector<'_> {
    fn record(&mut self, raw: &Raw<'_>) {
        let ts = self.trace.ts(self.cpu, raw.ts).max(self.unit.last.unwrap_or(Ts::MIN));
        self.unit.last = Some(ts);
        self.unit.records = self.unit.records.wrapping_add(1);
        let at = (raw.payload.as_ptr() as usize).wrapping_sub(self.bytes.as_ptr() as usize);
        let payload = (size_in_unit(at), size_in_unit(raw.payload.len()));
        let (lost, unit) = (HeldLoss::of(self.pending.take()), Arc::clone(self.bytes));
        self.unit.items.push(HeldRecord { ts, unit, payload, lost, cpu: self.cpu, buffer: self.buffer as u32 });
    }

    fn gap(&mut self, loss: Loss) {
        self.unit.marked.note(loss);
        self.pending = Some(join_losses(self.pending.take(), loss));
    }

    fn damage(&mut self, what: FileIssue) {
        self.unit.diagnostics.add(what);
    }
}

/// The records of a unit.
pub(crate) fn collect(trace: &Trace, task: UnitTask<'_, HeldRecord>) -> Unit<HeldRecord> {
    let UnitTask { buffer, pages, unit: number, space, .. } = task;
    let loaded =
        pages.with_bytes(trace.source(), number, |bytes| bytes.map(|bytes| Arc::new(Box::<[u8]>::from(bytes))));
    trace.count_read(pages, number);
    let mut unit = Unit { items: space, ..Unit::default() };
    let bytes = match loaded {
        Ok(bytes) => bytes,
        Err(what) => {
            unit.diagnostics.add(what);
            return Unit { lead: Some(Loss { count: None }), ..unit };
        }
    };
    let mut collector = Collector { trace, cpu: pages.cpu, buffer, bytes: &bytes, pending: None, unit };
    pages.walk_bytes(&bytes, &mut collector);
    let Collector { unit, pending, .. } = collector;
    // A loss at the end belongs to the next unit's first record; one at the start stays on the unit's own.
    match unit.last {
        None => Unit { lead: pending, ..unit },
        Some(_) => Unit { tail: pending, ..unit },
    }
}

/// A record that is kept for later.
#[derive(Clone, Debug)]
pub struct Kept(HeldRecord);

impl Kept {
    /// A record of these bytes, before which no events were lost.
    pub fn of(ts: Ts, cpu: Cpu, buffer: usize, payload: &[u8]) -> Kept {
        let (unit, payload) = (Arc::new(Box::from(payload)), (0, size_in_unit(payload.len())));
        Kept(HeldRecord { ts, unit, payload, lost: HeldLoss::NONE, cpu, buffer: buffer as u32 })
    }

    /// The record, of this trace.
    pub fn record<'t>(&'t self, trace: &'t Trace) -> Record<'t> {
        Record::new(trace, &self.0)
    }
}

/// A record of the trace, of any event.
#[derive(Clone, Copy)]
pub struct Record<'t> {
    pub(super) trace: &'t Trace,
    item: &'t HeldRecord,
    payload: &'t [u8],
    /// Time of the event.
    pub ts: Ts,
    /// CPU that recorded the event.
    pub cpu: Cpu,
    /// Place of the record's buffer in [`crate::TraceInfo::buffers`].
    pub buffer: usize,
    /// The loss of events before this one on its CPU, if any: the number of lost events, where the kernel counted them.
    pub lost: Option<Option<u64>>,
}

/// Shows the content of the record without the trace that it is a part of.
impl fmt::Debug for Record<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Record { ts, cpu, buffer, lost, payload, .. } = self;
        let mut it = f.debug_struct("Record");
        it.field("event", &self.format().map_or_else(|| self.id().to_string(), |format| format.name.to_string()));
        it.field("ts", ts).field("cpu", cpu).field("buffer", buffer).field("lost", lost);
        it.field("payload", payload).finish()
    }
}

impl<'t> Record<'t> {
    pub(crate) fn new(trace: &'t Trace, item: &'t HeldRecord) -> Record<'t> {
        Record {
            trace,
            item,
            payload: item.bytes(),
            ts: item.ts,
            cpu: item.cpu,
            buffer: item.buffer as usize,
            lost: item.lost.loss().map(|l| l.count),
        }
    }

    /// Keeps it, and with it the memory of some hundreds of its neighbours.
    pub fn keep(&self) -> Kept {
        Kept(self.item.clone())
    }

    /// Keeps it alone.
    pub fn keep_alone(&self) -> Kept {
        self.keep_with(self.payload)
    }

    /// Keeps it with other bytes in place of its own.
    pub(crate) fn keep_with(&self, payload: &[u8]) -> Kept {
        let item = self.item.clone();
        let (unit, payload) = (Arc::new(Box::from(payload)), (0, size_in_unit(payload.len())));
        Kept(HeldRecord { unit, payload, ..item })
    }

    /// The event's number in this file.
    pub fn id(&self) -> u16 {
        self.trace.common().id(self.payload, self.trace.endian()).unwrap_or(0)
    }

    /// The task that was current (`common_pid`).
    pub fn pid(&self) -> Pid {
        self.trace.common().pid(self.payload, self.trace.endian())
    }

    /// Returns the format of the record's event, if the file has one.
    pub fn format(&self) -> Option<&'t EventFormat> {
        self.trace.format(self.id())
    }

    /// The bytes of the record.
    pub fn payload(&self) -> &'t [u8] {
        self.payload
    }

    /// The number in the field of this name.
    pub fn number(&self, name: &str) -> Option<i64> {
        self.format()?.field(name)?.number(self.payload, self.trace.endian())
    }

    /// The number in a field of the record's format; the same as [`Record::number`] without a search for its name.
    pub fn number_in(&self, field: &Field) -> Option<i64> {
        field.number(self.payload, self.trace.endian())
    }

    /// The `prev_state` of a `sched_switch`: what it comes to, and its letters.
    pub fn prev_state(&self) -> Option<(PrevState, String)> {
        let field = self.format()?.field("prev_state")?;
        let raw = self.state(field)?;
        let states = self.trace.states();
        Some((states.decode(raw, || false).0, states.letters(raw)))
    }

    /// The letters of the state of a task, from the field that has it.
    pub(crate) fn letters(&self, state: &Field) -> Option<String> {
        Some(self.trace.states().letters(self.state(state)?))
    }

    fn state(&self, field: &Field) -> Option<u64> {
        self.trace.endian().uint(self.payload, field.offset, field.size)
    }

    /// The bytes in the field of this name; of text, without the NUL and what follows it.
    pub fn bytes(&self, name: &str) -> Option<&'t [u8]> {
        Some(self.bytes_in(self.format()?.field(name)?))
    }

    /// The bytes in a field of the record's format, as [`Record::bytes`] returns them.
    pub fn bytes_in(&self, field: &Field) -> &'t [u8] {
        let bytes = field.bytes(self.payload, self.trace.endian());
        if field.is_text() { until_nul(bytes) } else { bytes }
    }

    /// The text of a `print`, `bprint` or `bputs`, exactly as the kernel would show it, with the
    /// newline it was written with.
    pub fn text(&self) -> Option<String> {
        let format = self.format()?;
        if format.system != "ftrace" {
            return None;
        }
        match format.name.as_str() {
            "print" => Some(String::from_utf8_lossy(self.bytes("buf")?).into_owned()),
            "bputs" => Some(self.printk_string("str")),
            "bprint" => {
                let address = self.number("fmt")?.cast_unsigned();
                let Some(fmt) = self.stored(address) else {
                    return Some(format!("(NO FORMAT FOUND at {address:x})\n"));
                };
                Some(printk::format(fmt, self.bytes("buf")?, &self.kernel()))
            }
            _ => None,
        }
    }

    /// Returns the byte order of the record.
    pub(crate) fn endian(&self) -> Endian {
        self.trace.endian()
    }

    /// The size of the kernel's `long`.
    pub(crate) fn long(&self) -> usize {
        self.trace.kernel_long()
    }

    /// The symbol that an address is in, and how far.
    pub(crate) fn symbol(&self, address: u64) -> Option<(&'t str, u64)> {
        self.trace.symbol(address)
    }

    /// The text that the kernel had at an address, if the file has it.
    pub(crate) fn stored(&self, address: u64) -> Option<&'t str> {
        self.trace.printk_formats().get(&address).map(String::as_str)
    }

    /// Returns the byte order and the word size of the record's numbers.
    pub(crate) fn layout(&self) -> NumberLayout {
        NumberLayout { endian: self.endian(), long: self.long() }
    }

    /// The facts on the kernel that conversions need.
    pub(crate) fn kernel(&self) -> printk::KernelFacts<'t> {
        printk::KernelFacts { layout: self.layout(), symbols: self.trace }
    }

    /// The name that the recorder saved for the task that was current; `<idle>` for the idle task, `<...>` where
    /// there is none.
    pub fn command(&self) -> Comm {
        self.saved_command().unwrap_or_else(|| Comm::new(b"<...>"))
    }

    /// Adds the state of the CPU in the letters of the kernel's own `trace` file ([`context_flags::put_letters`]), with the depth of disabled
    /// preemption and of disabled migration. `trace-cmd report` has `N` for `n`, and no letters for a request in the preemption count,
    /// for disabled softirqs, for NMIs and for lazy requests.
    pub fn put_flags(&self, out: &mut String) {
        let field = |name| self.format()?.field(name)?.number(self.payload, self.endian());
        let (flags, count) = (field("common_flags").unwrap_or(0), field("common_preempt_count").unwrap_or(0));
        context_flags::put_letters(flags as u8, flags & 2 != 0 && self.trace.marks_lazy_requests(), out);
        // Kernels since 5.16 keep the depth of disabled migration in the upper half.
        put_depth(count & 0xf, out);
        put_depth(count >> 4 & 0xf, out);
        if let Some(depth) = field("common_migrate_disable") {
            // Writing to a string cannot fail.
            let _ = write!(out, "{depth}");
        }
    }

    /// The name that the recorder saved for the task that was current, if any; `<idle>` for the idle task.
    pub fn saved_command(&self) -> Option<Comm> {
        if self.pid().is_idle() {
            return Some(Comm::new(b"<idle>"));
        }
        Some(self.trace.saved_name(self.pid())).filter(|name| !name.is_empty())
    }

    fn printk_string(&self, field: &str) -> String {
        let address = self.number(field).unwrap_or(0).cast_unsigned();
        self.stored(address).map_or_else(|| format!("(NO FORMAT FOUND at {address:x})\n"), str::to_owned)
    }

    /// The place in the kernel where a `print`, `bprint` or `bputs` was made: its symbol, or the
    /// address.
    pub fn place(&self) -> Option<String> {
        self.function("ip")
    }

    /// The function that the address in this field lies in: its symbol, or the address.
    pub fn function(&self, field: &str) -> Option<String> {
        let address = self.number(field)?.cast_unsigned();
        Some(self.symbol(address).map_or_else(|| format!("{address:#x}"), |(name, _)| name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_come_back_and_records_are_small() {
        for count in [None, Some(None), Some(Some(0)), Some(Some(1)), Some(Some(u64::MAX - 2))] {
            let loss = count.map(|count| Loss { count });
            assert_eq!(HeldLoss::of(loss).loss(), loss);
        }
        // More than any trace has: it stays a counted one.
        assert!(HeldLoss::of(Some(Loss { count: Some(u64::MAX) })).loss().is_some_and(|loss| loss.count.is_some()));
        assert!(size_of::<HeldRecord>() <= 40, "{}", size_of::<HeldRecord>());
    }
}

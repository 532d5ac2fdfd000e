//! Any record of a trace, its fields read when they are asked for.

use crate::bytes::until_nul;
use crate::format::EventFormat;
use crate::merge::Timed;
use crate::page::{Loss, Raw};
use crate::printk;
use crate::stream::{Visitor, join_losses};
use crate::trace::Trace;
use sched::{Cpu, Diagnostic, Pid, PrevState, Ts};
use std::sync::Arc;

/// Where a record's payload is kept: in the file, or in a unit that was decompressed.
#[derive(Clone, Debug)]
pub(crate) enum Payload {
    File { at: usize, len: usize },
    Own { unit: Arc<Vec<u8>>, at: usize, len: usize },
}

/// A record on its way through the merge.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    ts: Ts,
    cpu: Cpu,
    buffer: usize,
    lost: Option<Loss>,
    payload: Payload,
}

impl Timed for Item {
    fn ts(&self) -> Ts {
        self.ts
    }

    fn set_ts(&mut self, ts: Ts) {
        self.ts = ts;
    }

    fn after_gap(_: Cpu, _: Ts, loss: Loss, next: Option<&mut Item>) -> Option<Item> {
        if let Some(next) = next {
            next.lost = Some(join_losses(next.lost.take(), loss));
        }
        None
    }
}

/// Collects the records of a unit.
pub(crate) struct Collector<'c> {
    pub(crate) trace: &'c Trace,
    pub(crate) cpu: Cpu,
    pub(crate) buffer: usize,
    /// Where the unit's bytes begin: an address, to tell the place of a payload.
    pub(crate) base: usize,
    /// Its place in the file, or nothing if it was decompressed.
    pub(crate) file_at: Option<usize>,
    pub(crate) unit: Arc<Vec<u8>>,
    pub(crate) items: Vec<Item>,
    pub(crate) pending: Option<Loss>,
    pub(crate) last: Option<Ts>,
    pub(crate) damages: Vec<Diagnostic>,
}

impl Visitor for Collector<'_> {
    fn record(&mut self, raw: &Raw<'_>) {
        let ts = self.trace.ts(raw.ts).max(self.last.unwrap_or(Ts::MIN));
        self.last = Some(ts);
        let within = (raw.payload.as_ptr() as usize).wrapping_sub(self.base);
        let len = raw.payload.len();
        let payload = match self.file_at {
            Some(at) => Payload::File { at: at.saturating_add(within), len },
            None => Payload::Own { unit: Arc::clone(&self.unit), at: within, len },
        };
        let lost = self.pending.take();
        self.items.push(Item { ts, cpu: self.cpu, buffer: self.buffer, lost, payload });
    }

    fn gap(&mut self, loss: Loss) {
        self.pending = Some(join_losses(self.pending.take(), loss));
    }

    fn damage(&mut self, what: Diagnostic) {
        self.damages.push(what);
    }
}

/// One record.
#[derive(Clone, Copy, Debug)]
pub struct Record<'t> {
    trace: &'t Trace,
    payload: &'t [u8],
    /// When.
    pub ts: Ts,
    /// On which CPU.
    pub cpu: Cpu,
    /// In which buffer, by its place in [`crate::TraceInfo::buffers`].
    pub buffer: usize,
    /// Events were lost before it on its CPU; how many, if the kernel counted them.
    pub lost: Option<Option<u64>>,
}

impl<'t> Record<'t> {
    pub(crate) fn new(trace: &'t Trace, item: &'t Item) -> Record<'t> {
        let payload = match &item.payload {
            Payload::File { at, len } => trace.file().get(*at..at.saturating_add(*len)),
            Payload::Own { unit, at, len } => unit.get(*at..at.saturating_add(*len)),
        };
        Record {
            trace,
            payload: payload.unwrap_or(&[]),
            ts: item.ts,
            cpu: item.cpu,
            buffer: item.buffer,
            lost: item.lost.map(|l| l.count),
        }
    }

    /// The event's number in this file.
    pub fn id(&self) -> u16 {
        self.trace.common().id(self.payload, self.trace.endian()).unwrap_or(0)
    }

    /// The task that was current (`common_pid`).
    pub fn pid(&self) -> Pid {
        self.trace.common().pid(self.payload, self.trace.endian())
    }

    /// Its format, if the file has one.
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

    /// The `prev_state` of a `sched_switch`: what it comes to, and its letters.
    pub fn prev_state(&self) -> Option<(PrevState, String)> {
        let field = self.format()?.field("prev_state")?;
        let raw = self.trace.endian().uint(self.payload, field.offset, field.size)?;
        let states = self.trace.states();
        Some((states.decode(raw, || false).0, states.letters(raw)))
    }

    /// The bytes in the field of this name; of text, without the NUL and what follows it.
    pub fn bytes(&self, name: &str) -> Option<&'t [u8]> {
        let field = self.format()?.field(name)?;
        let bytes = field.bytes(self.payload, self.trace.endian());
        Some(if field.is_text() { until_nul(bytes) } else { bytes })
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
                let Some(fmt) = self.trace.printk_formats().get(&address) else {
                    return Some(format!("(NO FORMAT FOUND at {address:x})\n"));
                };
                Some(printk::format(fmt, self.bytes("buf")?, &self.kernel()))
            }
            _ => None,
        }
    }

    /// What conversions need to know of the kernel.
    pub(crate) fn kernel(&self) -> printk::Kernel<'t> {
        printk::Kernel { endian: self.trace.endian(), long: self.trace.kernel_long(), symbols: self.trace.symbols() }
    }

    /// The name that the recorder saved for the task that was current; `<idle>` for the idle task.
    pub fn command(&self) -> String {
        if self.pid().is_idle() {
            return "<idle>".into();
        }
        let name = self.trace.saved_name(self.pid());
        if name.is_empty() { "<...>".into() } else { name.to_string() }
    }

    fn printk_string(&self, field: &str) -> String {
        let address = self.number(field).unwrap_or(0).cast_unsigned();
        match self.trace.printk_formats().get(&address) {
            Some(text) => text.clone(),
            None => format!("(NO FORMAT FOUND at {address:x})\n"),
        }
    }

    /// The place in the kernel where a `print`, `bprint` or `bputs` was made: its symbol, or the
    /// address.
    pub fn place(&self) -> Option<String> {
        let ip = self.number("ip")?.cast_unsigned();
        Some(self.trace.symbols().find(ip).map_or_else(|| format!("{ip:#x}"), |(name, _)| name.to_owned()))
    }
}

//! The stacks of events, switches and wakeups above all: recorded behind each event by trace-cmd (`-T`, a `stacktrace` trigger), or within it by perf (`-g`).

use crate::bytes::Endian;
use crate::file::header::ModuleInfo;
use crate::limits;
use crate::trace::Trace;
use crate::trace::record::Record;
use sched::seeded::SeededMap;
use sched::{Cpu, Pid, Tracepoint, Ts};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::ControlFlow;

/// A frame of a stack: an address in the kernel or in a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackFrame {
    /// The address, most often that behind a call.
    pub address: u64,
    /// Whether the address is in a program, and not in the kernel.
    pub is_user: bool,
    /// The number of the file that the address is in; the address is then the place in the file. Absent where it is not known.
    pub module: Option<u32>,
}

impl StackFrame {
    /// Returns the frame of an address in the kernel.
    pub fn kernel(address: u64) -> StackFrame {
        StackFrame { address, is_user: false, module: None }
    }

    /// Returns the frame of an address in a program whose file is not known.
    pub fn user(address: u64) -> StackFrame {
        StackFrame { address, is_user: true, module: None }
    }
}

/// The number of a stack among those of a trace, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackId(pub u32);

/// A sample of perf with the call chain that it carries.
#[derive(Clone, Copy, Debug)]
pub struct ChainSample<'c> {
    /// The CPU of the sample.
    pub cpu: Cpu,
    /// The time of the sample on the clock of the recording.
    pub time: u64,
    /// The process of the current task; zero where it was not recorded.
    pub process: u32,
    /// The record of the tracepoint.
    pub record: &'c [u8],
    /// The addresses of the call chain with perf's marks between them, 8 bytes each, the innermost frame first.
    pub chain: &'c [u8],
}

/// A source of the call chains of samples, beside the records of a trace.
pub trait CallChains: fmt::Debug + Send + Sync {
    /// Passes each sample of a tracepoint that has a call chain to `take`: CPU by CPU, those of one CPU in the order of the file. Units that
    /// cannot be read are left out.
    fn each(&self, take: &mut dyn FnMut(&ChainSample<'_>));

    /// Returns the number of the file that an address of a process is in, and the place of the address in that file, in bytes; nothing where
    /// it was not recorded.
    fn module_of(&self, process: u32, address: u64) -> Option<(u32, u64)> {
        let _ = (process, address);
        None
    }

    /// Returns the file of a number; nothing if there is none.
    fn module(&self, module: u32) -> Option<&ModuleInfo> {
        let _ = module;
        None
    }
}

/// The events to which stacks belong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StackedEvent {
    /// A `sched_switch`, found by the task that leaves: the stack is that of this task.
    Switch,
    /// A `sched_waking`, found by the woken task: the stack is that of the waker, or of the interrupt that wakes.
    Waking,
    /// A `sched_wakeup`, found by the woken task: the stack is that of the CPU that queues it.
    Wakeup,
    /// Any other event, found by the PID that its record has: the stack is that of this task.
    Other,
}

impl StackedEvent {
    /// Every kind of event with a stack, in the order of the numbers.
    pub const ALL: [StackedEvent; 4] =
        [StackedEvent::Switch, StackedEvent::Waking, StackedEvent::Wakeup, StackedEvent::Other];
}

/// An event with a stack: its kind, its instant, its CPU and the task by which it is found.
pub type StackKey = (StackedEvent, Ts, Cpu, Pid);

/// The stacks of the events of a trace, each stored once.
#[derive(Clone, Debug, Default)]
pub struct EventStacks {
    frames: Vec<StackFrame>,
    /// The end of each stack in `frames`.
    ends: Vec<u32>,
    /// Every event with a stack, in order.
    events: Vec<(StackKey, StackId)>,
    /// The number of events whose stack is left out, since there are too many.
    beyond_limit: u64,
}

impl EventStacks {
    /// Returns the stacks of these events, each with its frames from the innermost one on. Events beyond the limits are left out and
    /// counted.
    pub fn of_events<'f>(events: impl IntoIterator<Item = (StackKey, &'f [StackFrame])>) -> EventStacks {
        let mut collector = StackCollector::default();
        events.into_iter().for_each(|(key, frames)| collector.add(key, frames));
        collector.finish()
    }

    /// Adds stacks without an event, such as those of a note, and returns the number of each; nothing of a stack that is empty or beyond
    /// the limits.
    pub fn add_stacks<'f>(&mut self, stacks: impl IntoIterator<Item = &'f [StackFrame]>) -> Vec<Option<StackId>> {
        let mut collector = StackCollector { stacks: std::mem::take(self), ids: SeededMap::default() };
        for nth in 0..collector.stacks.ends.len() as u32 {
            let id = StackId(nth);
            collector.ids.insert(collector.stacks.frames(id).into(), id);
        }
        let ids = stacks.into_iter().map(|frames| collector.intern(frames)).collect();
        *self = collector.stacks;
        ids
    }

    /// Returns the stack of an event; nothing if none was recorded.
    pub fn of(&self, event: StackedEvent, ts: Ts, cpu: Cpu, pid: Pid) -> Option<StackId> {
        let place = self.events.binary_search_by_key(&(event, ts, cpu, pid), |(key, _)| *key).ok()?;
        self.events.get(place).map(|(_, id)| *id)
    }

    /// Returns the stack of the task that left `cpu` at `ts`; nothing if none was recorded.
    pub fn of_switch(&self, ts: Ts, cpu: Cpu, pid: Pid) -> Option<StackId> {
        self.of(StackedEvent::Switch, ts, cpu, pid)
    }

    /// Returns the CPU of an event with a stack at an instant; nothing if there is none. The first of several counts.
    pub fn cpu_of(&self, event: StackedEvent, ts: Ts, pid: Pid) -> Option<Cpu> {
        let first = self.events.partition_point(|((kind, at, ..), _)| (*kind, *at) < (event, ts));
        let same = self.events.get(first..)?.iter().take_while(|((kind, at, ..), _)| (*kind, *at) == (event, ts));
        same.map(|((_, _, cpu, of), _)| (*cpu, *of)).find(|(_, of)| *of == pid).map(|(cpu, _)| cpu)
    }

    /// Returns the frames of a stack, the innermost first; none if there is no such stack.
    pub fn frames(&self, id: StackId) -> &[StackFrame] {
        let end = |nth: u32| self.ends.get(nth as usize).map(|end| *end as usize);
        let start = id.0.checked_sub(1).map_or(Some(0), end);
        start.zip(end(id.0)).and_then(|(start, end)| self.frames.get(start..end)).unwrap_or_default()
    }

    /// The number of different stacks.
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// The number of events that have a stack.
    pub fn events(&self) -> usize {
        self.events.len()
    }

    /// The number of events whose stack was recorded and is left out, since there are more than the limits of this program.
    pub fn beyond_limit(&self) -> u64 {
        self.beyond_limit
    }
}

/// Collects the stacks of events.
#[derive(Debug, Default)]
struct StackCollector {
    stacks: EventStacks,
    ids: SeededMap<Box<[StackFrame]>, StackId>,
}

impl StackCollector {
    /// Adds an event with its stack.
    fn add(&mut self, key: StackKey, frames: &[StackFrame]) {
        if frames.is_empty() {
            return;
        }
        let has_room = self.stacks.events.len() < limits::STACKED_EVENTS;
        match has_room.then(|| self.intern(frames)).flatten() {
            Some(id) => self.stacks.events.push((key, id)),
            None => self.stacks.beyond_limit = self.stacks.beyond_limit.saturating_add(1),
        }
    }

    /// Returns the number of a stack, which is kept if it is new; nothing if it is empty or beyond the limits.
    fn intern(&mut self, frames: &[StackFrame]) -> Option<StackId> {
        if let Some(known) = self.ids.get(frames) {
            return Some(*known);
        }
        let stacks = &mut self.stacks;
        let is_full = stacks.ends.len() >= limits::STACKS
            || stacks.frames.len().saturating_add(frames.len()) > limits::STACK_FRAMES;
        if is_full || frames.is_empty() {
            return None;
        }
        let id = StackId(stacks.ends.len() as u32);
        stacks.frames.extend_from_slice(frames);
        stacks.ends.push(stacks.frames.len() as u32);
        self.ids.insert(frames.into(), id);
        Some(id)
    }

    fn finish(mut self) -> EventStacks {
        self.stacks.events.sort_unstable();
        // The first of two events that agree in everything counts.
        self.stacks.events.dedup_by_key(|(key, _)| *key);
        self.stacks
    }
}

/// The event that was recorded last on a CPU in a buffer, with the stacks behind it so far.
#[derive(Debug, Default)]
struct LastEvent {
    key: Option<StackKey>,
    /// The task that was current.
    current: Pid,
    frames: Vec<StackFrame>,
}

impl LastEvent {
    /// Ends the stack of the event, by another one.
    fn end(&mut self, collector: &mut StackCollector) {
        if let Some(key) = self.key.take() {
            collector.add(key, &self.frames);
        }
        self.frames.clear();
    }
}

/// The events whose stacks have a kind of their own, each with the field of the task by which they are found.
const STACKED: [(StackedEvent, Tracepoint, &str); 3] = [
    (StackedEvent::Switch, Tracepoint::Switch, "prev_pid"),
    (StackedEvent::Waking, Tracepoint::Waking, "pid"),
    (StackedEvent::Wakeup, Tracepoint::Wakeup, "pid"),
];

/// The kinds of events of which stacks are collected, each with the identity of its format and the name of the field of its task.
struct StackedFormats {
    of: Vec<(StackedEvent, u16, &'static str)>,
    has_others: bool,
}

impl StackedFormats {
    fn new(trace: &Trace, wanted: &[StackedEvent]) -> StackedFormats {
        let of = STACKED.into_iter().filter_map(|(event, tracepoint, field)| {
            // Each of them has its kind, whether it is wanted or not.
            trace.format_of(tracepoint).map(|format| (event, format.id, field))
        });
        let mut of: Vec<_> = of.collect();
        let has_others = wanted.contains(&StackedEvent::Other);
        if !has_others {
            of.retain(|(event, ..)| wanted.contains(event));
        }
        StackedFormats { of, has_others }
    }

    /// Returns the kind of an event by its identity, with the name of the field of its task, which others do not have; nothing if its
    /// stack is not wanted.
    fn of(&self, id: u16) -> Option<(StackedEvent, Option<&'static str>)> {
        let known = self.of.iter().find(|(_, of, _)| *of == id).map(|(event, _, field)| (*event, Some(*field)));
        known.or(self.has_others.then_some((StackedEvent::Other, None)))
    }
}

impl Record<'_> {
    /// Returns the place at which the stack of the record is found among those of the trace; nothing if the record does not show its task.
    pub fn stack_key(&self) -> Option<StackKey> {
        let format = self.format()?;
        let named = STACKED
            .iter()
            .find(|(_, tracepoint, _)| (&*format.system, &*format.name) == (tracepoint.system(), tracepoint.name()));
        let Some((event, _, field)) = named else {
            return Some((StackedEvent::Other, self.ts, self.cpu, self.pid()));
        };
        let pid = i32::try_from(self.number(field)?).ok()?;
        Some((*event, self.ts, self.cpu, Pid(pid)))
    }

    /// The addresses of a recorded stack, the innermost first.
    pub(crate) fn callers(&self) -> impl Iterator<Item = u64> {
        let (endian, long) = (self.endian(), self.long());
        // The field is declared with eight callers, and has as many as the record.
        let start = self.format().and_then(|format| format.field("caller")).map_or(usize::MAX, |field| field.offset);
        let chunks = self.payload().get(start..).unwrap_or_default().chunks_exact(long.max(1));
        // Early kernels end a stack with ULONG_MAX (`save_stack_trace()`).
        let end = u64::MAX >> (64 - 8 * long.clamp(1, 8));
        chunks.map_while(move |chunk| endian.uint(chunk, 0, long).filter(|address| *address != end))
    }
}

impl Trace {
    /// Whether stacks were recorded with events.
    pub fn has_stacks(&self) -> bool {
        self.chains.is_some() || self.has(Tracepoint::KernelStack) || self.has(Tracepoint::UserStack)
    }

    /// Returns the file of the program that a frame names by its number; nothing if there is none.
    pub fn module(&self, module: u32) -> Option<&ModuleInfo> {
        match &self.chains {
            Some(chains) => chains.module(module),
            None => self.header.options.program_maps().module(module),
        }
    }

    /// Whether events carry their stacks within them, as those of perf do; otherwise stacks are records of their own.
    pub fn carries_stacks(&self) -> bool {
        self.chains.is_some()
    }

    /// Whether the kernel hid the addresses of the symbols that the trace has (`kernel.kptr_restrict`), so that it names no function.
    pub fn hides_symbols(&self) -> bool {
        self.symbols().are_hidden()
    }

    /// Returns the function of the kernel that an address is in, by the symbols of the trace or those that were set, and the offset in it in bytes; nothing
    /// where neither has it.
    pub fn function_at(&self, address: u64) -> Option<(&str, u64)> {
        use crate::text::symbols::SymbolSource;
        self.symbol(address)
    }

    /// Reads the stacks of the events of these kinds. Those of others are passed over.
    pub fn event_stacks(&self, wanted: &[StackedEvent]) -> EventStacks {
        let mut collector = StackCollector::default();
        let wanted = StackedFormats::new(self, wanted);
        match &self.chains {
            Some(chains) => self.collect_chains(chains.as_ref(), &wanted, &mut collector),
            None if self.has_stacks() => self.collect_records(&wanted, &mut collector),
            None => {}
        }
        collector.finish()
    }

    /// The stacks that follow their events: nothing else is recorded on the CPU in between, in the same buffer.
    fn collect_records(&self, wanted: &StackedFormats, collector: &mut StackCollector) {
        let id = |tracepoint| self.format_of(tracepoint).map(|format| format.id);
        let [kernel, user] = [Tracepoint::KernelStack, Tracepoint::UserStack].map(id);
        let maps = self.header.options.program_maps();
        let mut last: BTreeMap<(usize, Cpu), LastEvent> = BTreeMap::new();
        self.records(&mut |record| {
            let id = record.id();
            let at = last.entry((record.buffer, record.cpu)).or_default();
            if (Some(id) == kernel || Some(id) == user) && record.lost.is_none() {
                if at.key.is_some() && at.current == record.pid() {
                    let is_user = Some(id) == user;
                    // A stack of a program ends in zeros.
                    let callers = record.callers().filter(|address| !is_user || *address != 0);
                    let process = record.number("tgid").filter(|_| is_user).and_then(|tgid| u32::try_from(tgid).ok());
                    at.frames.extend(callers.take(limits::FRAMES_OF_STACK).map(|address| {
                        let found = process.and_then(|process| maps.module_of(process, address));
                        let (module, address) = found.map_or((None, address), |(module, place)| (Some(module), place));
                        StackFrame { address, is_user, module }
                    }));
                }
                return ControlFlow::Continue(());
            }
            at.end(collector);
            if let Some((event, field)) = wanted.of(id) {
                at.current = record.pid();
                let pid = match field {
                    Some(field) => record.number(field).and_then(|pid| i32::try_from(pid).ok()).map(Pid),
                    None => Some(at.current),
                };
                at.key = pid.map(|pid| (event, record.ts, record.cpu, pid));
            }
            ControlFlow::Continue(())
        });
        last.values_mut().for_each(|last| last.end(collector));
    }

    /// The call chains within the samples.
    fn collect_chains(&self, chains: &dyn CallChains, wanted: &StackedFormats, collector: &mut StackCollector) {
        let (endian, common) = (self.endian(), *self.common());
        let fields: Vec<_> = wanted.of.iter().map(|(_, id, name)| self.format(*id)?.field(name)).collect();
        let mut frames = Vec::new();
        let mut known: SeededMap<(u32, u64), StackFrame> = SeededMap::default();
        chains.each(&mut |sample| {
            let Some(id) = common.id(sample.record, endian) else { return };
            let place = wanted.of.iter().position(|(_, of, _)| *of == id);
            let (event, pid) = match place {
                Some(place) => {
                    let field = fields.get(place).copied().flatten();
                    let pid = field.and_then(|field| field.number(sample.record, endian));
                    (
                        wanted.of.get(place).map(|(event, ..)| *event),
                        pid.and_then(|pid| i32::try_from(pid).ok()).map(Pid),
                    )
                }
                None if wanted.has_others => (Some(StackedEvent::Other), Some(common.pid(sample.record, endian))),
                None => return,
            };
            let Some((event, pid)) = event.zip(pid) else { return };
            frames.clear();
            // Each address of a process is looked up once, as long as there are not too many.
            if known.len() > limits::STACK_FRAMES {
                known.clear();
            }
            let placed = |frame: StackFrame| match frame.is_user {
                true => *known.entry((sample.process, frame.address)).or_insert_with(|| {
                    let found = chains.module_of(sample.process, frame.address);
                    found.map_or(frame, |(module, place)| StackFrame {
                        address: place,
                        is_user: true,
                        module: Some(module),
                    })
                }),
                false => frame,
            };
            frames.extend(chain_frames(sample.chain, endian).take(limits::FRAMES_OF_STACK).map(placed));
            collector.add((event, self.ts(sample.cpu, sample.time), sample.cpu, pid), &frames);
        });
    }
}

/// Numbers from here on are marks in a call chain, each of the context of the addresses behind it.
const FIRST_MARK: u64 = 4095u64.wrapping_neg();
/// The mark before addresses of the program.
const USER_MARK: u64 = 512u64.wrapping_neg();

/// The frames of a call chain of perf.
fn chain_frames(chain: &[u8], endian: Endian) -> impl Iterator<Item = StackFrame> {
    let mut is_user = false;
    chain.chunks_exact(8).filter_map(move |word| {
        let address = endian.uint(word, 0, 8)?;
        if address >= FIRST_MARK {
            is_user = address == USER_MARK;
            return None;
        }
        Some(StackFrame { address, is_user, module: None })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(address: u64) -> StackFrame {
        StackFrame::kernel(address)
    }

    #[test]
    fn marks_of_a_call_chain_give_the_context() {
        let words = [128u64.wrapping_neg(), 0xff10, 0xff20, USER_MARK, 0x40].map(u64::to_le_bytes).concat();
        let frames: Vec<StackFrame> = chain_frames(&words, Endian::Little).collect();
        assert_eq!(frames, [kernel(0xff10), kernel(0xff20), StackFrame::user(0x40)]);
    }

    #[test]
    fn equal_stacks_are_stored_once() {
        let mut collector = StackCollector::default();
        let key = |ts| (StackedEvent::Switch, Ts(ts), Cpu(0), Pid(7));
        collector.add(key(30), &[kernel(1), kernel(2)]);
        collector.add(key(10), &[kernel(3)]);
        collector.add(key(20), &[kernel(1), kernel(2)]);
        collector.add(key(40), &[]);
        let stacks = collector.finish();
        assert_eq!((stacks.count(), stacks.events(), stacks.beyond_limit()), (2, 3, 0));
        let of = |ts| stacks.of_switch(Ts(ts), Cpu(0), Pid(7));
        assert_eq!([of(10), of(20), of(30), of(40)], [Some(StackId(1)), Some(StackId(0)), Some(StackId(0)), None]);
        assert_eq!((stacks.frames(StackId(0)).len(), stacks.frames(StackId(1))), (2, &[kernel(3)][..]));
        assert_eq!(stacks.frames(StackId(2)), []);
        assert_eq!(stacks.of(StackedEvent::Waking, Ts(20), Cpu(0), Pid(7)), None);
        let mut stacks = stacks;
        let added = stacks.add_stacks([&[kernel(3)][..], &[kernel(4)], &[]]);
        assert_eq!(added, [Some(StackId(1)), Some(StackId(2)), None]);
        assert_eq!(stacks.frames(StackId(2)), [kernel(4)]);
    }

    #[test]
    fn stacks_have_a_limit() {
        let mut collector = StackCollector::default();
        for nth in 0..limits::STACKS as u64 + 5 {
            collector.add((StackedEvent::Waking, Ts(nth as i64), Cpu(0), Pid(7)), &[kernel(nth)]);
        }
        // A known stack has room beyond the limit of different ones.
        collector.add((StackedEvent::Switch, Ts(i64::MAX), Cpu(0), Pid(7)), &[kernel(0)]);
        let stacks = collector.finish();
        assert_eq!((stacks.count(), stacks.beyond_limit()), (limits::STACKS, 5));
        assert_eq!(stacks.of_switch(Ts(i64::MAX), Cpu(0), Pid(7)), Some(StackId(0)));
    }
}

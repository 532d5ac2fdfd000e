//! The stacks of switches: recorded behind each event by trace-cmd (`-T`, a `stacktrace` trigger), or within it by perf (`-g`).

use crate::bytes::Endian;
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
}

/// A switch by its instant, its CPU and the task that left.
type SwitchKey = (Ts, Cpu, Pid);

/// The stacks of the switches of a trace, each stored once.
#[derive(Clone, Debug, Default)]
pub struct SwitchStacks {
    frames: Vec<StackFrame>,
    /// The end of each stack in `frames`.
    ends: Vec<u32>,
    /// Every switch with a stack, in order.
    switches: Vec<(SwitchKey, StackId)>,
    /// The number of switches whose stack is left out, since there are too many.
    beyond_limit: u64,
}

impl SwitchStacks {
    /// Returns the stacks of these switches, each given by its instant, its CPU and the task that left, with its frames from the innermost
    /// one on. Switches beyond the limits are left out and counted.
    pub fn of_switches<'f>(switches: impl IntoIterator<Item = ((Ts, Cpu, Pid), &'f [StackFrame])>) -> SwitchStacks {
        let mut collector = StackCollector::default();
        switches.into_iter().for_each(|(key, frames)| collector.add(key, frames));
        collector.finish()
    }

    /// Returns the stack of the task that left `cpu` at `ts`; nothing if none was recorded.
    pub fn of_switch(&self, ts: Ts, cpu: Cpu, pid: Pid) -> Option<StackId> {
        let place = self.switches.binary_search_by_key(&(ts, cpu, pid), |(key, _)| *key).ok()?;
        self.switches.get(place).map(|(_, id)| *id)
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

    /// The number of switches that have a stack.
    pub fn switches(&self) -> usize {
        self.switches.len()
    }

    /// The number of switches whose stack was recorded and is left out, since there are more than the limits of this program.
    pub fn beyond_limit(&self) -> u64 {
        self.beyond_limit
    }
}

/// Collects the stacks of switches.
#[derive(Debug, Default)]
struct StackCollector {
    stacks: SwitchStacks,
    ids: SeededMap<Box<[StackFrame]>, StackId>,
}

impl StackCollector {
    /// Adds a switch with its stack.
    fn add(&mut self, key: SwitchKey, frames: &[StackFrame]) {
        if frames.is_empty() {
            return;
        }
        let stacks = &mut self.stacks;
        let known = self.ids.get(frames).copied();
        let is_full = stacks.switches.len() >= limits::STACKED_SWITCHES
            || known.is_none()
                && (stacks.ends.len() >= limits::STACKS
                    || stacks.frames.len().saturating_add(frames.len()) > limits::STACK_FRAMES);
        if is_full {
            stacks.beyond_limit = stacks.beyond_limit.saturating_add(1);
            return;
        }
        let id = known.unwrap_or_else(|| {
            let id = StackId(stacks.ends.len() as u32);
            stacks.frames.extend_from_slice(frames);
            stacks.ends.push(stacks.frames.len() as u32);
            self.ids.insert(frames.into(), id);
            id
        });
        stacks.switches.push((key, id));
    }

    fn finish(mut self) -> SwitchStacks {
        self.stacks.switches.sort_unstable();
        // The first of two switches that agree in everything counts.
        self.stacks.switches.dedup_by_key(|(key, _)| *key);
        self.stacks
    }
}

/// The switch that was recorded last on a CPU in a buffer, with the stacks behind it so far.
#[derive(Debug, Default)]
struct LastSwitch {
    key: Option<SwitchKey>,
    frames: Vec<StackFrame>,
}

impl LastSwitch {
    /// Ends the stack of the switch, by another event.
    fn end(&mut self, collector: &mut StackCollector) {
        if let Some(key) = self.key.take() {
            collector.add(key, &self.frames);
        }
        self.frames.clear();
    }
}

impl Record<'_> {
    /// The addresses of a recorded stack, the innermost first.
    pub(crate) fn callers(&self) -> impl Iterator<Item = u64> {
        let (endian, long) = (self.endian(), self.long());
        // The field is declared with eight callers, and has as many as the record.
        let start = self.format().and_then(|format| format.field("caller")).map_or(usize::MAX, |field| field.offset);
        let chunks = self.payload().get(start..).unwrap_or_default().chunks_exact(long.max(1));
        // All ones end a stack of early kernels.
        let end = u64::MAX >> (64 - 8 * long.clamp(1, 8));
        chunks.map_while(move |chunk| endian.uint(chunk, 0, long).filter(|address| *address != end))
    }
}

impl Trace {
    /// Whether stacks were recorded with events.
    pub fn has_stacks(&self) -> bool {
        self.chains.is_some() || self.has(Tracepoint::KernelStack) || self.has(Tracepoint::UserStack)
    }

    /// Returns the function of the kernel that an address is in, by the symbols of the trace, and the offset in it in bytes; nothing
    /// where the trace lacks them.
    pub fn function_at(&self, address: u64) -> Option<(&str, u64)> {
        use crate::text::symbols::SymbolSource;
        self.symbol(address)
    }

    /// Reads the stacks of all switches of the trace. Those of other events are passed over.
    pub fn switch_stacks(&self) -> SwitchStacks {
        let mut collector = StackCollector::default();
        match &self.chains {
            Some(chains) => self.collect_chains(chains.as_ref(), &mut collector),
            None if self.has_stacks() => self.collect_records(&mut collector),
            None => {}
        }
        collector.finish()
    }

    /// The stacks that follow their events: nothing else is recorded on the CPU in between, in the same buffer.
    fn collect_records(&self, collector: &mut StackCollector) {
        let id = |tracepoint| self.format_of(tracepoint).map(|format| format.id);
        let [switch, kernel, user] = [Tracepoint::Switch, Tracepoint::KernelStack, Tracepoint::UserStack].map(id);
        let mut last: BTreeMap<(usize, Cpu), LastSwitch> = BTreeMap::new();
        self.records(&mut |record| {
            let id = Some(record.id());
            let at = last.entry((record.buffer, record.cpu)).or_default();
            if (id == kernel || id == user) && record.lost.is_none() {
                if at.key.is_some_and(|(_, _, pid)| pid == record.pid()) {
                    let is_user = id == user;
                    // A stack of a program ends in zeros.
                    let callers = record.callers().filter(|address| !is_user || *address != 0);
                    at.frames
                        .extend(callers.take(limits::FRAMES_OF_STACK).map(|address| StackFrame { address, is_user }));
                }
                return ControlFlow::Continue(());
            }
            at.end(collector);
            if id == switch {
                let pid = record.number("prev_pid").and_then(|pid| i32::try_from(pid).ok());
                at.key = pid.map(|pid| (record.ts, record.cpu, Pid(pid)));
            }
            ControlFlow::Continue(())
        });
        last.values_mut().for_each(|last| last.end(collector));
    }

    /// The call chains within the samples.
    fn collect_chains(&self, chains: &dyn CallChains, collector: &mut StackCollector) {
        let (endian, common) = (self.endian(), *self.common());
        let Some(format) = self.format_of(Tracepoint::Switch) else { return };
        let Some(prev) = format.field("prev_pid") else { return };
        let mut frames = Vec::new();
        chains.each(&mut |sample| {
            if common.id(sample.record, endian) != Some(format.id) {
                return;
            }
            let Some(pid) = prev.number(sample.record, endian).and_then(|pid| i32::try_from(pid).ok()) else { return };
            frames.clear();
            frames.extend(chain_frames(sample.chain, endian).take(limits::FRAMES_OF_STACK));
            collector.add((self.ts(sample.cpu, sample.time), sample.cpu, Pid(pid)), &frames);
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
        Some(StackFrame { address, is_user })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(address: u64) -> StackFrame {
        StackFrame { address, is_user: false }
    }

    #[test]
    fn marks_of_a_call_chain_give_the_context() {
        let words = [128u64.wrapping_neg(), 0xff10, 0xff20, USER_MARK, 0x40].map(u64::to_le_bytes).concat();
        let frames: Vec<StackFrame> = chain_frames(&words, Endian::Little).collect();
        assert_eq!(frames, [kernel(0xff10), kernel(0xff20), StackFrame { address: 0x40, is_user: true }]);
    }

    #[test]
    fn equal_stacks_are_stored_once() {
        let mut collector = StackCollector::default();
        let key = |ts| (Ts(ts), Cpu(0), Pid(7));
        collector.add(key(30), &[kernel(1), kernel(2)]);
        collector.add(key(10), &[kernel(3)]);
        collector.add(key(20), &[kernel(1), kernel(2)]);
        collector.add(key(40), &[]);
        let stacks = collector.finish();
        assert_eq!((stacks.count(), stacks.switches(), stacks.beyond_limit()), (2, 3, 0));
        let of = |ts| stacks.of_switch(Ts(ts), Cpu(0), Pid(7));
        assert_eq!([of(10), of(20), of(30), of(40)], [Some(StackId(1)), Some(StackId(0)), Some(StackId(0)), None]);
        assert_eq!((stacks.frames(StackId(0)).len(), stacks.frames(StackId(1))), (2, &[kernel(3)][..]));
        assert_eq!(stacks.frames(StackId(2)), []);
    }

    #[test]
    fn stacks_have_a_limit() {
        let mut collector = StackCollector::default();
        for nth in 0..limits::STACKS as u64 + 5 {
            collector.add((Ts(nth as i64), Cpu(0), Pid(7)), &[kernel(nth)]);
        }
        // A known stack has room beyond the limit of different ones.
        collector.add((Ts(i64::MAX), Cpu(0), Pid(7)), &[kernel(0)]);
        let stacks = collector.finish();
        assert_eq!((stacks.count(), stacks.beyond_limit()), (limits::STACKS, 5));
        assert_eq!(stacks.of_switch(Ts(i64::MAX), Cpu(0), Pid(7)), Some(StackId(0)));
    }
}

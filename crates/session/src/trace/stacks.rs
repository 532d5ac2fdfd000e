//! The stacks of a trace with the names of their functions, and the function that names a stack.

pub use super::stack_kinds::{StackKind, is_of_scheduler, kind_of, of_tracing};
pub use parse::StackedEvent;

use super::elf::{self, ElfSymbols};
use membership::GroupStack;
use parse::{EventStacks, StackFrame, StackId, StackKey, Trace};
use sched::seeded::SeededMap;
use sched::{EventKind, Past, Pid, SchedEvent, Ts};
use serde::Deserialize;
use std::cell::Cell;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// The names of the addresses of a trace: of the kernel by the symbols of the trace, of programs by their files, where that is asked for.
/// Each file is read once, and only if it is the one that was recorded.
#[derive(Debug, Default)]
pub struct AddressNames {
    /// The files of programs; none where the recording may have none opened.
    programs: Option<Mutex<Programs>>,
}

/// The files of the programs of a trace.
#[derive(Debug)]
struct Programs {
    /// The symbols of each file by its number; none for one that cannot be read, or is not the one that was recorded.
    files: SeededMap<u32, Option<ElfSymbols>>,
    /// The number of bytes that may still be read.
    left: Cell<u64>,
}

impl Default for Programs {
    fn default() -> Programs {
        Programs { files: SeededMap::default(), left: Cell::new(elf::MOST) }
    }
}

impl AddressNames {
    /// Returns the names of addresses with those of the functions of programs, for which the files that the recording names are opened.
    pub fn with_programs() -> AddressNames {
        AddressNames { programs: Some(Mutex::default()) }
    }

    /// Returns the name of a frame: the function, or `file+0x…` for a program whose symbols are not there; nothing where neither is known.
    pub fn name(&self, trace: &Trace, frame: StackFrame) -> Option<String> {
        if !frame.is_user {
            return trace.function_at(frame.address).map(|(name, _)| name.to_owned());
        }
        let (number, module) = frame.module.and_then(|number| Some((number, trace.module(number)?)))?;
        let function = self.programs.as_ref().and_then(|programs| {
            let mut programs = programs.lock().unwrap_or_else(PoisonError::into_inner);
            let Programs { files, left } = &mut *programs;
            let open = || ElfSymbols::open(Path::new(&*module.path), &module.build_id, left);
            // An address behind a call can be that of the next function.
            files.entry(number).or_insert_with(open).as_ref()?.function(frame.address.saturating_sub(1))
        });
        Some(function.unwrap_or_else(|| {
            let file = module.path.rsplit('/').next().filter(|file| !file.is_empty()).unwrap_or(&module.path);
            format!("{file}+{:#x}", frame.address)
        }))
    }
}

/// The name of the notes on stacks in [`Past::notes`].
pub const STACKS_NOTE: &str = "offcpu";

/// A stack as a note has it: addresses, the innermost first, each with whether it is in a program.
pub type NotedFrames = Vec<(u64, bool)>;

/// Returns the frames of a stack as a note has them.
pub fn noted_frames(noted: NotedFrames) -> Vec<StackFrame> {
    noted.into_iter().map(|(address, is_user)| StackFrame { address, is_user, module: None }).collect()
}

/// Returns the stacks of the tasks that are off their CPUs as a part of a trace begins, by its note, and adds them to those of its
/// events. There are none where the note cannot be understood.
pub(crate) fn noted_outs(past: &Past, stacks: &mut EventStacks) -> Vec<(Pid, Option<StackId>)> {
    #[derive(Deserialize)]
    struct NotedTask {
        pid: Pid,
        off: Option<NotedOff>,
    }
    #[derive(Deserialize)]
    struct NotedOff {
        out: Option<NotedFrames>,
    }
    let notes = past.notes.get(STACKS_NOTE).and_then(|text| serde_json::from_str::<Vec<NotedTask>>(text).ok());
    let outs = notes.unwrap_or_default().into_iter().filter_map(|task| Some((task.pid, task.off?.out?)));
    let (pids, frames): (Vec<Pid>, Vec<_>) = outs.map(|(pid, noted)| (pid, noted_frames(noted))).unzip();
    let ids = stacks.add_stacks(frames.iter().map(Vec::as_slice));
    pids.into_iter().zip(ids).collect()
}

/// Returns the part of a stack in the kernel by the functions that `name` gives its frames, with its kind.
pub(crate) fn kernel_stack(frames: &[StackFrame], name: impl Fn(StackFrame) -> Option<String>) -> GroupStack {
    let of_kernel = frames.iter().filter(|frame| !frame.is_user);
    let names: Vec<(Option<String>, u64)> = of_kernel.map(|frame| (name(*frame), frame.address)).collect();
    let is_named = names.iter().any(|(name, _)| name.is_some());
    let traced = of_tracing(names.iter().map(|(name, _)| name.as_deref()));
    let functions: Vec<String> =
        names.into_iter().skip(traced).map(|(name, address)| name.unwrap_or_else(|| format!("{address:#x}"))).collect();
    let unnamed = if is_named { StackKind::Other } else { StackKind::Unresolved };
    let kind = kind_of(functions.iter().map(String::as_str)).map_or(unnamed, |(kind, _)| kind);
    let of_scheduler = functions.iter().take_while(|name| is_of_scheduler(name)).count();
    GroupStack { kind: kind.words().to_owned(), functions, of_scheduler }
}

/// Maximum number of different addresses in stacks that have the names of functions: many times those of a kernel under load.
const MOST_NAMED: usize = 1 << 18;

/// The stacks of the events of a trace, by the names of their functions. Each address is looked up once.
#[derive(Debug, Default)]
pub struct NamedStacks {
    stacks: EventStacks,
    names: SeededMap<StackFrame, String>,
    /// The place of the function that names each stack among its frames.
    places: Vec<Option<usize>>,
}

/// Returns the place at which the stack of an event is found.
pub fn key_of(event: &SchedEvent) -> StackKey {
    let (kind, pid) = match event.kind {
        EventKind::Switch { prev, .. } => (StackedEvent::Switch, prev.pid),
        EventKind::Waking { task, .. } => (StackedEvent::Waking, task.pid),
        EventKind::Wakeup { task, .. } => (StackedEvent::Wakeup, task.pid),
        _ => (StackedEvent::Other, event.pid),
    };
    (kind, event.ts, event.cpu, pid)
}

impl NamedStacks {
    /// Reads the stacks of the events of these kinds; there are none where the trace has none.
    pub fn of(trace: &Trace, wanted: &[StackedEvent]) -> NamedStacks {
        if !trace.has_stacks() {
            return NamedStacks::default();
        }
        let stacks = trace.event_stacks(wanted);
        let addresses = AddressNames::default();
        let mut names: SeededMap<StackFrame, String> = SeededMap::default();
        let mut places = Vec::new();
        for nth in 0..stacks.count() as u32 {
            let frames = stacks.frames(StackId(nth));
            for frame in frames {
                if names.len() < MOST_NAMED
                    && !names.contains_key(frame)
                    && let Some(name) = addresses.name(trace, *frame)
                {
                    names.insert(*frame, name);
                }
            }
            // The functions of programs show no kind.
            let of_kernel = |frame: &&StackFrame| !frame.is_user;
            let name = |frame: &StackFrame| names.get(frame).filter(|_| of_kernel(&frame)).map_or("", String::as_str);
            // The function that shows the kind; without one the innermost that is not of the scheduler.
            let of_kind = kind_of(frames.iter().map(name)).map(|(_, place)| place);
            let is_name =
                |frame: &StackFrame| !frame.is_user && !name(frame).is_empty() && !is_of_scheduler(name(frame));
            places.push(of_kind.or_else(|| frames.iter().position(is_name)));
        }
        NamedStacks { stacks, names, places }
    }

    /// Whether no event has a stack.
    pub fn is_empty(&self) -> bool {
        self.stacks.count() == 0
    }

    /// Returns the stack of an event; nothing if none was recorded.
    pub fn find(&self, (kind, ts, cpu, pid): StackKey) -> Option<StackId> {
        self.stacks.of(kind, ts, cpu, pid)
    }

    /// Returns the function that names the stack of an event: the one that shows its kind, or else the innermost that is not of the
    /// scheduler. There is none without a stack, and none of a stack without names.
    pub fn function(&self, key: StackKey) -> Option<&str> {
        let id = self.find(key)?;
        let place = self.places.get(id.0 as usize).copied().flatten()?;
        self.stacks.frames(id).get(place).and_then(|frame| self.names.get(frame)).map(String::as_str)
    }

    /// Returns the function that names the stack of an event at an instant, on whichever CPU it was; see [`NamedStacks::function`].
    pub fn function_anywhere(&self, event: StackedEvent, ts: Ts, pid: Pid) -> Option<&str> {
        let cpu = self.stacks.cpu_of(event, ts, pid)?;
        self.function((event, ts, cpu, pid))
    }

    /// Returns the part of a stack in the kernel, by the names of its functions; no functions where the stack has none there.
    pub fn in_kernel(&self, id: StackId) -> GroupStack {
        kernel_stack(self.stacks.frames(id), |frame| self.names.get(&frame).cloned())
    }

    /// Returns the functions of a stack, the innermost first and without those that recorded its event; an address where the trace has no
    /// name for it.
    pub fn functions(&self, id: StackId) -> Vec<String> {
        let name =
            |frame: &StackFrame| self.names.get(frame).cloned().unwrap_or_else(|| format!("{:#x}", frame.address));
        let frames = self.stacks.frames(id);
        let traced = of_tracing(frames.iter().map(|frame| self.names.get(frame).map(String::as_str)));
        frames.iter().skip(traced).map(name).collect()
    }

    /// Returns the inner functions of the stack of an event in words, without those of the scheduler and at most `most` of them; nothing
    /// without a stack.
    pub fn words(&self, key: StackKey, most: usize) -> Option<String> {
        let functions = self.functions(self.find(key)?);
        let inner = functions.iter().take_while(|name| is_of_scheduler(name)).count();
        let inner = if inner == functions.len() { 0 } else { inner };
        let shown: Vec<&str> = functions.iter().skip(inner).take(most).map(String::as_str).collect();
        let more = if functions.len() > inner + most { " ← …" } else { "" };
        Some(shown.join(" ← ") + more)
    }
}

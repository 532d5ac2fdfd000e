//! The stacks of the tasks that are off their CPUs at the start of a part of a trace: noted for the part, and taken up again there.

use crate::kinds::WakerContext;
use crate::{OffCpu, OffCpuBy, OffTrack, Options, SeenWaking, StackWaker};
use parse::{EventStacks, StackFrame, StackId};
use sched::serial::exact;
use sched::{Analysis, Comm, Cpu, Past, Pid, SchedEvent, SchedState, Ts};
use serde::{Deserialize, Serialize};
use session::stacks::{NotedFrames, STACKS_NOTE, noted_frames};

/// A task that is off its CPU, or that is about to be woken.
#[derive(Serialize, Deserialize)]
struct NotedOffTask {
    pid: Pid,
    /// The stacks of a task that is off its CPU by an event.
    off: Option<NotedOffTrack>,
    /// The waking that no wakeup has followed.
    waking: Option<(Ts, Pid, Cpu, NotedWaker)>,
}

#[derive(Serialize, Deserialize)]
struct NotedOffTrack {
    out: Option<NotedFrames>,
    waker: Option<NotedWaker>,
    #[serde(default)]
    is_concluded: bool,
}

#[derive(Serialize, Deserialize)]
struct NotedWaker {
    context: WakerContext,
    #[serde(with = "exact")]
    command: Comm,
    stack: Option<NotedFrames>,
}

/// The stacks that a part of a trace takes over from before it, by the numbers that they have among those of the part.
#[derive(Clone, Debug, Default)]
pub struct NotedStacks(Vec<(Pid, Option<OffTrack>, Option<SeenWaking>)>);

impl NotedStacks {
    /// Returns the stacks of the notes of a part, and adds them to those of its events. There are none where the notes cannot be understood.
    pub fn of_past(past: &Past, stacks: &mut EventStacks) -> NotedStacks {
        let notes = past.notes.get(STACKS_NOTE).and_then(|text| serde_json::from_str::<Vec<NotedOffTask>>(text).ok());
        let notes = notes.unwrap_or_default();
        let mut all: Vec<Vec<StackFrame>> = Vec::new();
        let mut numbered = |noted: Option<NotedFrames>| {
            all.push(noted_frames(noted?));
            Some(StackId(all.len() as u32 - 1))
        };
        // The stacks have their places among the noted ones at first.
        let mut tasks = Vec::new();
        for NotedOffTask { pid, off, waking } in notes {
            let mut waker = |noted: NotedWaker| {
                let NotedWaker { context, command, stack } = noted;
                StackWaker { context, command, stack: numbered(stack) }
            };
            let waking = waking.map(|(at, by, on, noted)| SeenWaking { at, by, on, waker: waker(noted) });
            let off = off.map(|off| (off.out, off.waker.map(&mut waker), off.is_concluded));
            let off = off.map(|(out, waker, is_concluded)| OffTrack { out: numbered(out), waker, is_concluded });
            tasks.push((pid, off, waking));
        }
        let ids = stacks.add_stacks(all.iter().map(Vec::as_slice));
        let place = |stack: &mut Option<StackId>| {
            *stack = stack.and_then(|nth| ids.get(nth.0 as usize).copied().flatten());
        };
        for (_, off, waking) in &mut tasks {
            if let Some(off) = off {
                place(&mut off.out);
                off.waker.iter_mut().for_each(|waker| place(&mut waker.stack));
            }
            waking.iter_mut().for_each(|waking| place(&mut waking.waker.stack));
        }
        NotedStacks(tasks)
    }
}

/// Takes up the notes of a part. Tasks that the state does not have are left out.
pub(crate) fn take_up(offcpu: &mut OffCpu<'_>, state: &SchedState) {
    for (pid, off, waking) in &offcpu.options.noted.0 {
        let Some(task) = state.task_of(*pid) else { continue };
        if let Some(off) = off {
            offcpu.off.insert(task.id(), *off);
        }
        if let Some(waking) = waking.filter(|_| offcpu.options.by != OffCpuBy::Switch) {
            offcpu.wakings.insert(task.id(), waking);
        }
    }
}

/// Follows a trace up to the window's start, and gives the name of the notes with the notes.
pub struct OffCpuNotes<'o> {
    offcpu: OffCpu<'o>,
    notes: Option<String>,
}

impl<'o> OffCpuNotes<'o> {
    /// Begins to follow, with options that have the stacks of the trace, and that divide time by both of them.
    pub fn new(options: &'o Options<'o>) -> OffCpuNotes<'o> {
        OffCpuNotes { offcpu: OffCpu::new(options), notes: None }
    }
}

impl Analysis for OffCpuNotes<'_> {
    type Output = Option<(String, String)>;
    const LOOKS_BACK: bool = true;

    fn recall(&mut self, past: &Past, state: &SchedState) {
        self.offcpu.recall(past, state);
    }

    fn early(&mut self, event: &SchedEvent, state: &SchedState) {
        self.offcpu.early(event, state);
    }

    fn begin(&mut self, _: Ts, state: &SchedState) {
        self.notes = serde_json::to_string(&notes(&self.offcpu, state)).ok();
    }

    fn finish(self, _: Ts, _: &SchedState) -> Self::Output {
        Some((STACKS_NOTE.to_owned(), self.notes?))
    }
}

fn notes(offcpu: &OffCpu<'_>, state: &SchedState) -> Vec<NotedOffTask> {
    let frames = |id: StackId| -> NotedFrames {
        offcpu.options.stacks.frames(id).iter().map(|frame| (frame.address, frame.is_user)).collect()
    };
    let waker = |waker: StackWaker| {
        let StackWaker { context, command, stack } = waker;
        NotedWaker { context, command, stack: stack.map(frames) }
    };
    let mut noted: Vec<NotedOffTask> = Vec::new();
    for (id, off) in offcpu.off.iter() {
        let is_concluded = off.is_concluded;
        let off = Some(NotedOffTrack { out: off.out.map(frames), waker: off.waker.map(waker), is_concluded });
        noted.extend(state.task(id).map(|task| NotedOffTask { pid: task.pid, off, waking: None }));
    }
    for (id, seen) in offcpu.wakings.iter() {
        let task = state.task(id).filter(|task| task.waking.is_some_and(|waking| waking.at == seen.at));
        let waking = Some((seen.at, seen.by, seen.on, waker(seen.waker)));
        noted.extend(task.map(|task| NotedOffTask { pid: task.pid, off: None, waking }));
    }
    noted
}

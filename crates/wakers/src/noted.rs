//! The sleeps, wakings and waits that go on at the start of a part of a trace: noted for the part, and taken up again there.

use crate::edges::group_of;
use crate::joined::MissingParts;
use crate::{Options, Wakers, WakingSource, WokenWait};
use sched::serial::exact;
use sched::{Analysis, Comm, Cpu, Dur, Past, Pid, SchedEvent, SchedState, Ts};
use serde::{Deserialize, Serialize};

/// The name of the notes in [`Past::notes`].
const NAME: &str = "wakings";

/// The sleep, the waking and the wait of a task.
#[derive(Default, Serialize, Deserialize)]
struct NotedWakee {
    pid: Pid,
    source: Option<NotedSource>,
    /// The instant at which the sleeping task was switched out.
    asleep: Option<Ts>,
    wait: Option<NotedWokenWait>,
}

#[derive(Serialize, Deserialize)]
struct NotedSource {
    at: Ts,
    by: Pid,
    #[serde(with = "exact")]
    command: Comm,
    on: Cpu,
    is_interrupt: bool,
}

#[derive(Serialize, Deserialize)]
struct NotedWokenWait {
    start: Option<Ts>,
    source: Option<NotedSource>,
    slept: Option<u64>,
    queued_on: Cpu,
    throttled: u64,
}

impl NotedSource {
    fn of(source: &WakingSource) -> NotedSource {
        let WakingSource { at, by, command, on, is_interrupt, group: _ } = *source;
        NotedSource { at, by, command, on, is_interrupt }
    }

    /// The waking in a pass over the part, whose records show the groups of tasks from its start on.
    fn source(self, options: &Options<'_>, past: &Past, state: &SchedState) -> WakingSource {
        let NotedSource { at, by, command, on, is_interrupt } = self;
        let group = |groups| group_of(groups, (by, state.task_of(by)), at.max(past.from));
        let group = options.groups.as_deref().map(group);
        WakingSource { at, by, command, group, on, is_interrupt }
    }
}

/// Follows a trace up to the window's start, and gives the name of the notes with the notes. They depend on no option.
pub struct WakersNotes<'o> {
    wakers: Wakers<'o>,
    notes: Option<String>,
}

impl<'o> WakersNotes<'o> {
    /// Begins to follow, with options that do not matter.
    pub fn new(options: &'o Options<'o>) -> WakersNotes<'o> {
        WakersNotes { wakers: Wakers::new(options), notes: None }
    }
}

impl Analysis for WakersNotes<'_> {
    type Output = Option<(String, String)>;
    const LOOKS_BACK: bool = true;

    fn recall(&mut self, past: &Past, state: &SchedState) {
        take_up(&mut self.wakers, past, state);
    }

    fn early(&mut self, event: &SchedEvent, state: &SchedState) {
        self.wakers.early(event, state);
    }

    fn begin(&mut self, _: Ts, state: &SchedState) {
        self.notes = serde_json::to_string(&notes(&self.wakers, state)).ok();
    }

    fn finish(self, _: Ts, _: &SchedState) -> Self::Output {
        Some((NAME.to_owned(), self.notes?))
    }
}

fn notes(wakers: &Wakers<'_>, state: &SchedState) -> Vec<NotedWakee> {
    let mut noted = Vec::new();
    for (id, source) in wakers.sources.iter() {
        // A waking counts for one wakeup.
        let task = state.task(id).filter(|task| task.waking.is_some_and(|waking| waking.at == source.at));
        let source = Some(NotedSource::of(source));
        noted.extend(task.map(|task| NotedWakee { pid: task.pid, source, ..NotedWakee::default() }));
    }
    for (id, since) in wakers.asleep.iter() {
        noted.extend(state.task(id).map(|task| NotedWakee { pid: task.pid, asleep: *since, ..Default::default() }));
    }
    for (id, wait) in wakers.waits.iter() {
        let WokenWait { start, source, slept, queued_on, throttled, missing: _ } = wait;
        let wait = Some(NotedWokenWait {
            start: *start,
            source: source.as_ref().map(NotedSource::of),
            slept: slept.map(|slept| slept.0),
            queued_on: *queued_on,
            throttled: throttled.0,
        });
        noted.extend(state.task(id).map(|task| NotedWakee { pid: task.pid, wait, ..NotedWakee::default() }));
    }
    noted
}

/// Takes up the notes of a part, if it has any that can be understood. Tasks that the state does not have are left out.
pub(crate) fn take_up(wakers: &mut Wakers<'_>, past: &Past, state: &SchedState) {
    let notes = past.notes.get(NAME).and_then(|text| serde_json::from_str::<Vec<NotedWakee>>(text).ok());
    let options = wakers.options;
    let taken = |source: NotedSource| source.source(options, past, state);
    for NotedWakee { pid, source, asleep, wait } in notes.into_iter().flatten() {
        let Some(task) = state.task_of(pid) else { continue };
        if let Some(source) = source {
            wakers.sources.insert(task.id(), taken(source));
        }
        if let Some(since) = asleep {
            wakers.asleep.insert(task.id(), Some(since.min(past.from)));
        }
        if let Some(NotedWokenWait { start, source, slept, queued_on, throttled }) = wait {
            let wait = WokenWait {
                start: start.map(|start| start.min(past.from)),
                source: source.map(taken),
                slept: slept.map(Dur),
                queued_on,
                throttled: Dur(throttled),
                missing: MissingParts::Nothing,
            };
            wakers.waits.insert(task.id(), wait);
        }
    }
}

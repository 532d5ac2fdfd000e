//! The waits, runs and sleeps that go on at the start of a part of a trace: noted for the part, and taken up again there.

use crate::{Idleness, Latency, Measure, Missing, Options, Phase, PhaseTrack, Wait};
use sched::serial::exact;
use sched::{Analysis, Comm, Cpu, Dur, Past, Pid, SchedEvent, SchedState, Ts};
use serde::{Deserialize, Serialize};

/// The name of the notes in [`Past::notes`].
const NAME: &str = "latency";

/// The phases and waits that go on at the end of a part.
#[derive(Default, Serialize, Deserialize)]
struct Notes {
    tracks: Vec<NotedTrack>,
    waits: Vec<NotedWait>,
    /// The task that was switched out last.
    out: Pid,
    #[serde(with = "exact")]
    out_comm: Comm,
}

/// A task's phase.
#[derive(Serialize, Deserialize)]
struct NotedTrack {
    pid: Pid,
    since: Ts,
    /// `run`, `wait`, or the CPU on which it sleeps.
    phase: NotedPhase,
}

#[derive(Serialize, Deserialize)]
enum NotedPhase {
    Run,
    Sleep(Cpu),
    Wait,
}

/// A wait that goes on at the end of a part.
#[derive(Serialize, Deserialize)]
struct NotedWait {
    pid: Pid,
    measure: usize,
    start: Option<Ts>,
    waker: Option<Pid>,
    #[serde(with = "exact")]
    waker_comm: Comm,
    slept_on: Option<Cpu>,
    queued_on: Cpu,
    idleness: usize,
    idle_cpus: u32,
    behind: Pid,
    #[serde(with = "exact")]
    behind_comm: Comm,
    /// The instant at which that task left the CPU; nothing before.
    #[serde(default)]
    behind_until: Option<Ts>,
    /// Whether that task was within its slice.
    #[serde(default)]
    within_slice: Option<bool>,
    /// Whether that task is a fair one that preempted a real-time task.
    #[serde(default)]
    is_fair_first: bool,
    /// The time that the task was throttled so far.
    #[serde(default)]
    throttled: u64,
}

/// Follows a trace up to the window's start, and gives the name of the notes with the notes. They depend on no option.
pub struct NoteTaker<'o> {
    latency: Latency<'o>,
    notes: Option<String>,
}

impl<'o> NoteTaker<'o> {
    /// Begins to follow, with options that do not matter.
    pub fn new(options: &'o Options<'o>) -> NoteTaker<'o> {
        NoteTaker { latency: Latency::new(options), notes: None }
    }
}

impl Analysis for NoteTaker<'_> {
    type Output = Option<(String, String)>;
    const COUNTS: bool = true;
    const LOOKS_BACK: bool = true;

    fn recall(&mut self, past: &Past, state: &SchedState) {
        self.latency.recall(past, state);
    }

    fn early(&mut self, event: &SchedEvent, state: &SchedState) {
        self.latency.early(event, state);
    }

    fn begin(&mut self, _: Ts, state: &SchedState) {
        self.notes = serde_json::to_string(&notes(&self.latency, state)).ok();
    }

    fn finish(self, _: Ts, _: &SchedState) -> Self::Output {
        Some((NAME.to_owned(), self.notes?))
    }
}

fn notes(latency: &Latency<'_>, state: &SchedState) -> Notes {
    let pid = |task| state.task(task).map(|task| task.pid);
    let track = |(task, track): (_, &PhaseTrack)| {
        let phase = match track.phase {
            Phase::Run => NotedPhase::Run,
            Phase::Sleep(cpu) => NotedPhase::Sleep(cpu),
            Phase::Wait => NotedPhase::Wait,
            // A pass that takes notes is not made in pieces.
            Phase::Earlier => return None,
        };
        Some(NotedTrack { pid: pid(task)?, since: track.since, phase })
    };
    let wait = |(task, wait): (_, &Wait)| {
        Some(NotedWait {
            pid: pid(task)?,
            measure: wait.measure as usize,
            start: wait.start,
            waker: wait.waker,
            waker_comm: wait.waker_command,
            slept_on: wait.slept_on,
            queued_on: wait.queued_on,
            idleness: wait.idleness as usize,
            idle_cpus: wait.idle_cpus,
            behind: wait.behind.0,
            behind_comm: wait.behind.1,
            behind_until: wait.behind_until,
            within_slice: wait.within_slice,
            is_fair_first: wait.is_fair_first,
            throttled: wait.throttled.0,
        })
    };
    let (out, out_comm) = latency.switched_out.unwrap_or_default();
    let (tracks, waits) = (latency.tracks.iter(), latency.waits.iter());
    Notes { tracks: tracks.filter_map(track).collect(), waits: waits.filter_map(wait).collect(), out, out_comm }
}

/// Takes up the notes of a part, if it has any that can be understood. Tasks that the state does not have are left out.
pub(crate) fn take_up(latency: &mut Latency<'_>, past: &Past, state: &SchedState) {
    let notes = past.notes.get(NAME).and_then(|text| serde_json::from_str::<Notes>(text).ok());
    let Some(notes) = notes else { return };
    latency.switched_out = Some((notes.out, notes.out_comm));
    for NotedTrack { pid, since, phase } in notes.tracks {
        let phase = match phase {
            NotedPhase::Run => Phase::Run,
            NotedPhase::Sleep(cpu) => Phase::Sleep(cpu),
            NotedPhase::Wait => Phase::Wait,
        };
        if let Some(task) = state.task_of(pid) {
            latency.tracks.insert(task.id(), PhaseTrack { since: since.min(past.from), phase });
        }
    }
    for noted in notes.waits {
        let of_kind = Measure::ALL.get(noted.measure).zip(Idleness::ALL.get(noted.idleness));
        if let (Some(task), Some((measure, idleness))) = (state.task_of(noted.pid), of_kind) {
            let wait = Wait {
                measure: *measure,
                start: noted.start.map(|start| start.min(past.from)),
                waker: noted.waker,
                waker_command: noted.waker_comm,
                slept_on: noted.slept_on,
                missing: Missing::Nothing,
                queued_on: noted.queued_on,
                idleness: *idleness,
                idle_cpus: noted.idle_cpus,
                behind: (noted.behind, noted.behind_comm),
                behind_until: noted.behind_until,
                within_slice: noted.within_slice,
                is_fair_first: noted.is_fair_first,
                throttled: Dur(noted.throttled),
            };
            latency.waits.insert(task.id(), wait);
            if noted.behind_until.is_none() {
                latency.behind.add(task.id(), noted.queued_on);
            }
        }
    }
}

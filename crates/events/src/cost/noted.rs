//! The bursts that go on at the start of a part of a trace: noted for the part, and taken up again there.

use super::{Burst, BurstTrack, Cost};
use sched::counters::PerCounter;
use sched::{Analysis, Cpu, Past, Pid, SchedEvent, SchedState, Topology, Ts};
use serde::{Deserialize, Serialize};

/// The name of the notes in [`Past::notes`].
const NAME: &str = "bursts";

/// A task's latest burst.
#[derive(Serialize, Deserialize)]
struct Noted {
    pid: Pid,
    /// The CPU on which it ran last.
    last: Option<Cpu>,
    /// The length so far and the CPUs of a burst that goes on.
    burst: Option<(u64, Option<(Cpu, Cpu)>)>,
}

/// Follows a trace up to the window's start, and gives the name of the notes with the notes. The traces of which parts can be
/// cut have no counters.
pub struct BurstNotes<'t> {
    cost: Cost<'t>,
    notes: Option<String>,
}

impl<'t> BurstNotes<'t> {
    /// Begins to follow, with a topology that does not matter.
    pub fn new(topology: &'t Topology) -> BurstNotes<'t> {
        BurstNotes { cost: Cost::new(topology), notes: None }
    }
}

impl Analysis for BurstNotes<'_> {
    type Output = Option<(String, String)>;
    const LOOKS_BACK: bool = true;

    fn recall(&mut self, past: &Past, state: &SchedState) {
        take_up(&mut self.cost, past, state);
    }

    fn early(&mut self, event: &SchedEvent, state: &SchedState) {
        self.cost.early(event, state);
    }

    fn begin(&mut self, _: Ts, state: &SchedState) {
        let noted = |(task, track): (_, &BurstTrack)| {
            let pid = state.task(task)?.pid;
            Some(Noted { pid, last: track.last, burst: track.burst.map(|burst| (burst.ns, burst.cpus)) })
        };
        let notes: Vec<Noted> = self.cost.tracks.iter().filter_map(noted).collect();
        self.notes = serde_json::to_string(&notes).ok();
    }

    fn finish(self, _: Ts, _: &SchedState) -> Self::Output {
        Some((NAME.to_owned(), self.notes?))
    }
}

/// Takes up the notes of a part, if it has any that can be understood. Tasks that the state does not have are left out.
pub(super) fn take_up(cost: &mut Cost<'_>, past: &Past, state: &SchedState) {
    let notes = past.notes.get(NAME).and_then(|text| serde_json::from_str::<Vec<Noted>>(text).ok());
    for Noted { pid, last, burst } in notes.into_iter().flatten() {
        if let Some(task) = state.task_of(pid) {
            let burst = burst.map(|(ns, cpus)| Burst { ns, counts: Some(PerCounter::default()), cpus });
            cost.tracks.insert(task.id(), BurstTrack { last, burst });
        }
    }
}

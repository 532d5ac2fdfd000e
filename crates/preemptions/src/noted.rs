//! The requests that are open at the start of a part of a trace: noted for the part, and taken up again there.

use crate::cpu::CpuTrack;
use crate::locks::NotedLocks;
use crate::{Options, Preemptions, Request};
use sched::probe::VirtualTime;
use sched::{Analysis, Cpu, Past, Pid, SchedEvent, SchedState, Ts};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The name of the notes in [`Past::notes`].
const NAME: &str = "preemptions";

/// The state of the analysis at the end of a part.
#[derive(Default, Serialize, Deserialize)]
struct NotedRequests {
    cpus: Vec<(Cpu, CpuTrack)>,
    /// The least number of a flag in the records of the probe.
    now_flag: Option<u8>,
    /// The instant at which each waiting task joined a run queue.
    queued: Vec<(Pid, Ts)>,
    /// The deadline and the weight of each task at its latest pick.
    picked: Vec<(Pid, i64, Option<u32>)>,
    /// The virtual run time of each task at that pick, as the deadline.
    #[serde(default)]
    picked_at: Vec<(Pid, i64)>,
    locks: NotedLocks,
}

/// An analysis that follows a trace up to the window's start, and gives the name of its notes with the notes.
pub struct PreemptionsNotes<'o> {
    preemptions: Preemptions<'o>,
    notes: Option<String>,
}

impl<'o> PreemptionsNotes<'o> {
    /// Returns the analysis with the options of all tasks of the trace.
    pub fn new(options: &'o Options<'o>) -> PreemptionsNotes<'o> {
        PreemptionsNotes { preemptions: Preemptions::new(options), notes: None }
    }
}

impl Analysis for PreemptionsNotes<'_> {
    type Output = Option<(String, String)>;
    const LOOKS_BACK: bool = true;

    fn recall(&mut self, past: &Past, state: &SchedState) {
        self.preemptions.recall(past, state);
    }

    fn early(&mut self, event: &SchedEvent, state: &SchedState) {
        self.preemptions.early(event, state);
    }

    fn begin(&mut self, _: Ts, state: &SchedState) {
        self.notes = serde_json::to_string(&notes(&self.preemptions, state)).ok();
    }

    fn finish(self, _: Ts, _: &SchedState) -> Self::Output {
        Some((NAME.to_owned(), self.notes?))
    }
}

fn notes(preemptions: &Preemptions<'_>, state: &SchedState) -> NotedRequests {
    let pid = |task| state.task(task).map(|task| task.pid);
    let lives =
        |(pid, request): (&Pid, &Request)| state.task_of(*pid).map(|_| (*pid, request.deadline, request.weight));
    let mut picked: Vec<_> = preemptions.picked.iter().filter_map(lives).collect();
    picked.sort_unstable();
    let at = |(pid, ..): &(Pid, i64, Option<u32>)| Some((*pid, preemptions.picked.get(pid)?.vruntime?.ns()));
    NotedRequests {
        picked_at: picked.iter().filter_map(at).collect(),
        cpus: (0..).map(Cpu).zip(preemptions.cpus.iter().copied()).collect(),
        now_flag: preemptions.now_flag,
        queued: preemptions.queued.iter().filter_map(|(task, since)| Some((pid(task)?, *since))).collect(),
        picked,
        locks: preemptions.locks.noted(),
    }
}

/// Takes up the notes of a part, if it has any that can be understood. Tasks that the state does not have are left out.
pub(crate) fn take_up(preemptions: &mut Preemptions<'_>, past: &Past, state: &SchedState) {
    let notes = past.notes.get(NAME).and_then(|text| serde_json::from_str::<NotedRequests>(text).ok());
    let Some(notes) = notes else { return };
    let is_believable = |cpu: &Cpu| cpu.0 < Cpu::LIMIT;
    for (cpu, mut track) in notes.cpus.into_iter().filter(|(cpu, _)| is_believable(cpu)) {
        track.asks = track.asks.filter(is_believable);
        *preemptions.track(cpu) = track;
    }
    preemptions.now_flag = notes.now_flag;
    for (pid, since) in notes.queued {
        if let Some(task) = state.task_of(pid) {
            preemptions.queued.insert(task.id(), since.min(past.from));
        }
    }
    let picked_at: BTreeMap<Pid, i64> = notes.picked_at.into_iter().collect();
    for (pid, deadline, weight) in notes.picked {
        if state.task_of(pid).is_some() {
            let vruntime = picked_at.get(&pid).map(|at| VirtualTime::of(*at));
            preemptions.picked.insert(pid, Request { vruntime, deadline, weight });
        }
    }
    preemptions.locks.take_up(notes.locks);
}

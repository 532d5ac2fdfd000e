//! The latest moves of tasks before a part of a trace: noted for the part, and taken up again there.
//!
//! Which CPUs share a cache depends on the topology that the part is read with. Moves between the same two CPUs are alike under each, so
//! that the latest one between every two CPUs is enough.

use crate::sums::RETURNS;
use sched::serial::bounded;
use sched::{Analysis, Cpu, EventKind, Past, PerTask, Pid, SchedEvent, SchedState, Ts};
use serde::{Deserialize, Serialize};

/// The name of the notes in [`Past::notes`].
const NAME: &str = "residency";

/// Maximum number of pairs of CPUs of a task.
const PAIRS: usize = 64;

/// A move of a task from one CPU to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct NotedMove {
    ts: Ts,
    from: Cpu,
    to: Cpu,
}

/// The moves of all tasks, those of each in the order of time.
#[derive(Default, Serialize, Deserialize)]
struct NotedMoves(#[serde(deserialize_with = "bounded::deserialize")] Vec<(Pid, NotedMove)>);

impl NotedMoves {
    /// The moves in the note of a part, if it can be understood.
    fn of(past: &Past) -> NotedMoves {
        let note = past.notes.get(NAME).and_then(|text| serde_json::from_str(text).ok());
        note.unwrap_or_default()
    }
}

/// Follows a trace up to the window's start, and gives the name of the notes with the notes. They depend on no option.
#[derive(Default)]
pub struct ResidencyNotes {
    moves: PerTask<Vec<NotedMove>>,
    notes: Option<String>,
}

impl ResidencyNotes {
    /// Adds a move, which takes the place of an earlier one between the same CPUs. Those from which no task can return any more are dropped.
    fn add(&mut self, pid: Pid, moved: NotedMove, state: &SchedState) {
        let Some(task) = state.task_of(pid) else { return };
        let of_task = self.moves.take(task.id()).unwrap_or_default().into_iter();
        let stays =
            |other: &NotedMove| (other.from, other.to) != (moved.from, moved.to) && is_recent(other.ts, moved.ts);
        let mut of_task: Vec<NotedMove> = of_task.filter(stays).collect();
        if of_task.len() >= PAIRS {
            of_task.remove(0);
        }
        of_task.push(moved);
        self.moves.insert(task.id(), of_task);
    }
}

/// Whether a return at an instant counts behind a move.
fn is_recent(moved: Ts, at: Ts) -> bool {
    RETURNS.iter().any(|most| at.since(moved) <= *most)
}

impl Analysis for ResidencyNotes {
    type Output = Option<(String, String)>;
    const LOOKS_BACK: bool = true;

    fn recall(&mut self, past: &Past, state: &SchedState) {
        for (pid, moved) in NotedMoves::of(past).0 {
            self.add(pid, moved, state);
        }
    }

    fn early(&mut self, event: &SchedEvent, state: &SchedState) {
        if let EventKind::Migrate { task, orig, dest } = event.kind {
            self.add(task.pid, NotedMove { ts: event.ts, from: orig, to: dest }, state);
        }
    }

    fn begin(&mut self, start: Ts, state: &SchedState) {
        let mut noted = NotedMoves::default();
        for (id, moves) in self.moves.iter() {
            let Some(task) = state.task(id) else { continue };
            noted.0.extend(moves.iter().filter(|moved| is_recent(moved.ts, start)).map(|moved| (task.pid, *moved)));
        }
        noted.0.truncate(bounded::MOST);
        self.notes = serde_json::to_string(&noted).ok();
    }

    fn finish(self, _: Ts, _: &SchedState) -> Self::Output {
        Some((NAME.to_owned(), self.notes?))
    }
}

/// Returns the moves before a part by its notes, if it has any that can be understood: the task, the instant, and the two CPUs.
pub(crate) fn moves_before(past: &Past) -> impl Iterator<Item = (Pid, (Ts, Cpu, Cpu))> {
    NotedMoves::of(past).0.into_iter().map(|(pid, NotedMove { ts, from, to })| (pid, (ts.min(past.from), from, to)))
}

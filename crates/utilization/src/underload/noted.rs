//! The idle states of the CPUs at the start of a part of a trace, noted for the part.

use super::idle_wakeups::{IdleWakeupSums, NOTE};
use sched::{Analysis, Past, SchedEvent, SchedState, Ts};

/// An analysis that follows a trace up to the window's start, and gives the name of its notes with the notes: the latest record of an idle state
/// of each CPU. There are none without such records.
pub struct IdleStatesNotes {
    wakeups: IdleWakeupSums,
    notes: Option<String>,
}

impl Default for IdleStatesNotes {
    fn default() -> IdleStatesNotes {
        IdleStatesNotes { wakeups: IdleWakeupSums::new(true), notes: None }
    }
}

impl Analysis for IdleStatesNotes {
    type Output = Option<(String, String)>;
    const LOOKS_BACK: bool = true;

    fn recall(&mut self, past: &Past, _: &SchedState) {
        self.wakeups.take_up(past);
    }

    fn early(&mut self, event: &SchedEvent, _: &SchedState) {
        self.wakeups.follow_states(event);
    }

    fn begin(&mut self, _: Ts, _: &SchedState) {
        self.notes = self.wakeups.noted();
    }

    fn finish(self, _: Ts, _: &SchedState) -> Self::Output {
        Some((NOTE.to_owned(), self.notes?))
    }
}

//! The note of the state at the start of a window.

use crate::analysis::{Analysis, Settled};
use crate::balance::balancer::{Attempts, NewIdles};
use crate::balance::causes::{Causes, Migration, NotedMigration, PastCauses, StopperMoves};
use crate::balance::past_moves::PastMoves;
use crate::event::{EventKind, SchedEvent, Ts};
use crate::state::SchedState;
use crate::state::past::Past;

/// An analysis that notes the state at the window's start, what goes on there, and what settles migrations behind its
/// end, for a file that holds the window as a part of the trace.
#[derive(Debug, Default)]
pub struct NoteTaker {
    past: Past,
    moves: PastMoves,
    causes: PastCauses,
    stopped: StopperMoves,
    attempts: Attempts,
    newidles: NewIdles,
}

impl Analysis for NoteTaker {
    type Output = Past;
    const LOOKS_BACK: bool = true;
    const MIGRATIONS: bool = true;

    fn recall(&mut self, past: &Past, _: &SchedState) {
        let moves = PastMoves::of(past);
        self.stopped.recall(&moves.stopped);
        self.attempts.recall(&moves.balancing);
        self.newidles.recall(&moves.newidles);
    }

    fn early(&mut self, event: &SchedEvent, state: &SchedState) {
        self.stopped.event(event, state);
        let attempt = self.attempts.event(event);
        self.newidles.event(event, attempt.as_ref());
        if let EventKind::Switch { .. } = event.kind {
            self.newidles.switch(event.cpu);
        }
    }

    fn unsettled(&mut self, causes: &Causes) {
        self.causes = causes.noted();
    }

    fn migrated(&mut self, migration: &Migration, settled: Settled, _: &SchedState) {
        match settled {
            Settled::Before => self.stopped.settle(migration),
            Settled::Inside => {}
            Settled::Behind => self.moves.settled.push(NotedMigration::from(*migration)),
        }
    }

    fn begin(&mut self, start: Ts, state: &SchedState) {
        self.past = Past { from: start, ..state.noted() };
        self.moves = PastMoves {
            causes: std::mem::take(&mut self.causes),
            stopped: self.stopped.noted(),
            balancing: self.attempts.noted(),
            newidles: self.newidles.noted(),
            settled: std::mem::take(&mut self.moves.settled),
        };
    }

    fn finish(mut self, _: Ts, _: &SchedState) -> Past {
        self.moves.note(&mut self.past);
        self.past
    }
}

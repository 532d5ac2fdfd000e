//! The migrations of a pass: found once for all analyses that take them, from the first event of the trace on.

use crate::analysis::{Analysis, BEHIND, Settled};
use crate::balance::causes::{Causes, Migration};
use crate::balance::past_moves::PastMoves;
use crate::event::{EventKind, SchedEvent, Ts};
use crate::state::SchedState;
use crate::state::past::Past;
use std::ops::ControlFlow;

/// The causes, and the migrations of the window that they have not settled.
#[derive(Debug, Default)]
pub(super) struct PassMigrations {
    causes: Causes,
    settled: Vec<Migration>,
    /// Number of the migrations in the window that are not settled.
    open: u64,
    /// The state behind the window, while that is needed.
    behind: Option<Box<SchedState>>,
    /// It went on behind the window as far as it may.
    went_far: bool,
    /// Migrations of a part of a trace, as the events behind the part settle them.
    noted: Vec<Migration>,
}

/// The treatment of an event at the end of the window, or behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WindowEnd {
    /// At the end it is outside: the next window has it.
    Exclusive,
    /// At the end it is inside: the trace ends there.
    Inclusive,
    /// The window goes on to the last event. Where a clock stepped back, that can be later than
    /// the last events of all CPUs let expect.
    Open,
}

/// A window: its edges, and whether an event at its end is inside.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edges {
    pub(super) from: Ts,
    pub(super) to: Ts,
    pub(super) end: WindowEnd,
}

impl Edges {
    /// The place of a migration that is settled in the window or `behind` it; nothing for one that is itself behind.
    fn place(&self, m: &Migration, behind: bool) -> Option<Settled> {
        match m.ts < self.from {
            true => Some(Settled::Before),
            false if self.end == WindowEnd::Exclusive && m.ts >= self.to => None,
            false if behind => Some(Settled::Behind),
            false => Some(Settled::Inside),
        }
    }
}

impl PassMigrations {
    /// In a part of a trace that has this past.
    pub(super) fn recall(&mut self, past: &Past) {
        let moves = PastMoves::of(past);
        self.causes = Causes::after(&moves.causes);
        self.noted = moves.settled.iter().filter_map(|noted| noted.believed()).collect();
    }

    /// From an instant at which this was known.
    pub(super) fn take_up(&mut self, causes: Causes) {
        self.causes = causes;
    }

    /// Those that are not settled.
    pub(super) fn causes(&self) -> &Causes {
        &self.causes
    }

    /// Takes the next event, in the state before it; `inside`: the window has it.
    #[inline]
    pub(super) fn follow<A: Analysis>(
        &mut self,
        event: &SchedEvent,
        inside: bool,
        edges: Edges,
        state: &SchedState,
        analysis: &mut A,
    ) {
        self.open += u64::from(inside && matches!(event.kind, EventKind::Migrate { .. }));
        let settled = &mut self.settled;
        self.causes.event(event, state, |m| settled.push(m));
        if !self.settled.is_empty() {
            self.hand_over(edges, false, state, analysis);
        }
    }

    fn hand_over<A: Analysis>(&mut self, edges: Edges, behind: bool, state: &SchedState, analysis: &mut A) {
        for m in self.settled.drain(..) {
            if let Some(place) = edges.place(&m, behind) {
                self.open = self.open.saturating_sub(u64::from(place.is_inside()));
                analysis.migrated(&m, place, state);
            }
        }
    }

    /// Takes events behind the window, until all that is in it is settled; `state` is that at its end.
    #[cold]
    pub(super) fn look_behind<A: Analysis>(
        &mut self,
        late: &[SchedEvent],
        edges: Edges,
        state: &SchedState,
        analysis: &mut A,
    ) -> ControlFlow<()> {
        for event in late {
            if self.open == 0 {
                return ControlFlow::Break(());
            }
            if event.ts.since(edges.to) > BEHIND {
                self.went_far = true;
                return ControlFlow::Break(());
            }
            let ahead = self.behind.get_or_insert_with(|| Box::new(state.uncounted()));
            let settled = &mut self.settled;
            self.causes.event(event, ahead, |m| settled.push(m));
            ahead.apply(event);
            if !self.settled.is_empty() {
                self.hand_over(edges, true, state, analysis);
            }
        }
        if self.open == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Settles the rest: a part of a trace by its note, anything else as it stands.
    pub(super) fn finish<A: Analysis>(&mut self, edges: Edges, state: &SchedState, analysis: &mut A) {
        let noted = if self.went_far { Vec::new() } else { std::mem::take(&mut self.noted) };
        let settled = &mut self.settled;
        std::mem::take(&mut self.causes).finish(|m| {
            let same = |other: &&Migration| (other.ts, other.pid, other.on) == (m.ts, m.pid, m.on);
            settled.push(noted.iter().find(same).copied().unwrap_or(m));
        });
        self.hand_over(edges, true, state, analysis);
    }
}

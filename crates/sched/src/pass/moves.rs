//! The migrations of a pass: found once for all analyses that take them, from the first event of the trace on.

use crate::analysis::{Analysis, BEHIND, Settled};
use crate::balance::causes::{Causes, Migration, MoveScene};
use crate::balance::past_moves::PastMoves;
use crate::event::{EventKind, SchedEvent, Ts};
use crate::pass::piece_events::PieceEvents;
use crate::state::SchedState;
use crate::state::past::Past;
use std::ops::ControlFlow;

/// The migrations of a pass: their causes, and those that are settled and not passed on yet.
#[derive(Clone, Debug, Default)]
pub(super) struct PassMigrations {
    causes: Causes,
    settled: Vec<Migration>,
    /// The number of migrations in the window that are not settled.
    open: u64,
    /// The state behind the window, while it is needed.
    behind: Option<Box<SchedState>>,
    /// Whether events behind the window were taken as far as [`BEHIND`] allows.
    went_far: bool,
    /// The migrations of a part of a trace, as the events behind the part settle them.
    noted: Vec<Migration>,
}

/// The treatment of events at and behind the end of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WindowEnd {
    /// An event at the end is outside, since the next window has it.
    Exclusive,
    /// An event at the end is inside, since the trace ends there.
    Inclusive,
    /// All events to the last one are inside. Where a clock stepped back, that one can be later than the extent of the
    /// trace shows.
    Open,
}

/// The edges of a window, and whether an event at its end is inside.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edges {
    pub(super) from: Ts,
    pub(super) to: Ts,
    pub(super) end: WindowEnd,
}

impl Edges {
    /// The position of a migration that is settled in the window or `behind` it; `None` if the migration itself is
    /// behind the window.
    fn place(&self, m: &Migration, behind: bool) -> Option<Settled> {
        match m.ts < self.from {
            true => Some(Settled::Before),
            false if self.end == WindowEnd::Exclusive && m.ts >= self.to => None,
            false if behind => Some(Settled::Behind),
            false => Some(Settled::Inside),
        }
    }

    /// Whether a migration that is settled in the window is one of it.
    fn counts(&self, m: &Migration) -> bool {
        self.place(m, false).is_some_and(Settled::is_inside)
    }
}

impl PassMigrations {
    /// Takes up the notes of a part of a trace.
    pub(super) fn recall(&mut self, past: &Past) {
        let moves = PastMoves::of(past);
        self.causes = Causes::after(&moves.causes);
        self.noted = moves.settled.iter().filter_map(|noted| noted.believed()).collect();
    }

    /// Begins with causes that are known from an earlier pass.
    pub(super) fn take_up(&mut self, causes: Causes) {
        self.causes = causes;
    }

    /// The causes, with the migrations that are not settled.
    pub(super) fn causes(&self) -> &Causes {
        &self.causes
    }

    /// Takes the next event; `state` is the one before it. `inside`: the event is in the window.
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

    /// Whether the tables have room for this number of events, so that [`PassMigrations::replay`] can take them.
    pub(super) fn have_room(&self, events: usize) -> bool {
        self.causes.have_room(events)
    }

    /// Takes the events of a piece, all of which are in the window, without the state before them; `scenes` are theirs in order ([`MoveScene::all`]).
    pub(super) fn replay(&mut self, events: &PieceEvents, scenes: Vec<MoveScene>, edges: Edges) {
        let mut scenes = scenes.into_iter();
        for event in events.iter() {
            self.open += u64::from(matches!(event.kind, EventKind::Migrate { .. }));
            let settled = &mut self.settled;
            self.causes.event_in(event, || scenes.next().unwrap_or_default(), |m| settled.push(m));
            for m in self.settled.drain(..) {
                self.open = self.open.saturating_sub(u64::from(edges.counts(&m)));
            }
        }
        debug_assert_eq!(scenes.len(), 0, "each event that needs a scene took it");
    }

    /// Passes on the settled migrations to the analysis.
    fn hand_over<A: Analysis>(&mut self, edges: Edges, behind: bool, state: &SchedState, analysis: &mut A) {
        for m in self.settled.drain(..) {
            if let Some(place) = edges.place(&m, behind) {
                self.open = self.open.saturating_sub(u64::from(place.is_inside()));
                analysis.migrated(&m, place, state);
            }
        }
    }

    /// Takes events behind the window until all migrations in it are settled, or [`BEHIND`] has passed; `state` is the
    /// one at the window's end.
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

    /// Settles the rest: the migrations of a part of a trace by its note, all others as they stand.
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

//! The companions of the events of a pass: the state, the analysis, and the window's edges.

use super::moves::{Edges, PassMigrations, WindowEnd};
use super::piece_events::PieceEvents;
use super::{EventSource, Outcome, SendSink, Window};
use crate::analysis::Analysis;
use crate::analysis::joined::Joined;
use crate::balance::causes::{Causes, MoveScene};
use crate::event::diag::{Diagnostics, EventIssue};
use crate::event::probe::CgroupId;
use crate::event::{Cpu, EventKind, SchedEvent, Ts};
use crate::state::application::Application;
use crate::state::past::Past;
use crate::state::{Scan, SchedState, Start};
use crate::tables::capacities::CpuCapacities;
use crate::tables::seeded::SeededSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Adds the discoveries of `state` to the start. Returns whether any of them was new.
pub(super) fn learn(start: &mut Start, state: &SchedState, source: &mut impl EventSource) -> bool {
    state.named().iter().for_each(|task| start.name(*task));
    let learns_of_wakings = start.without_wakings && state.has_wakings();
    start.without_wakings &= !learns_of_wakings;
    let learns_of_root = start.root.is_none() && state.root().is_some();
    start.root = start.root.or(state.root());
    if !start.incomplete && state.is_incomplete(|| source.births()) {
        (start.incomplete, start.waiting) = (true, Vec::new());
        return true;
    }
    let known = start.waiting.len();
    for (task, cpu) in state.discovered() {
        if !start.waiting.iter().any(|(other, _)| other.pid == task.pid) {
            start.waiting.push((*task, *cpu));
        }
    }
    let throttled = state.discovered_throttling();
    let before = start.throttled.len();
    let learned: SeededSet<(CgroupId, Cpu)> = start.throttled.iter().copied().collect();
    start.throttled.extend(throttled.iter().filter(|found| !learned.contains(*found)));
    let learns_of_throttling = start.throttled.len() > before;
    learns_of_wakings || learns_of_root || start.waiting.len() > known || learns_of_throttling
}

/// A composition of analyses that can follow a pass side by side, each member on a thread of its own: a tuple or a
/// [`Vec`].
///
/// All members but the first must be [`Send`], since they are called on other threads. Each has a state of its own, so
/// no member sees the work of another. A member can itself be a composition, whose members then share a thread and a
/// state. The trait is not meant to be implemented elsewhere.
pub trait SideBySide: Analysis {
    /// Makes one attempt at the pass. Returns `None` if the start turned out to be unknown, so that all is to be read
    /// again with a new composition; the plan has learned of it then.
    #[doc(hidden)]
    fn side_by_side<S: EventSource>(
        self,
        plan: &mut PassPlan,
        source: &mut S,
    ) -> Result<Option<Outcome<Self::Output>>, S::Error>;
}

macro_rules! groups {
    ($first:ident $a:ident, $($other:ident $b:ident),+) => {
        impl<$first: Analysis, $($other: Analysis + Send),+> SideBySide for ($first, $($other),+) {
            fn side_by_side<S: EventSource>(
                self,
                plan: &mut PassPlan,
                source: &mut S,
            ) -> Result<Option<Outcome<Self::Output>>, S::Error> {
                let ($a, $($b),+) = self;
                let mut $a = plan.fold($a);
                $(let mut $b = plan.fold($b);)+
                let room = StatesRoom::of(1 $(+ { stringify!($b); 1 })+);
                source.events_to_all(
                    &mut |events| room.feed(&mut $a, events),
                    &mut [$(&mut |events| room.feed(&mut $b, events)),+],
                )?;
                if room.is_exceeded() {
                    plan.is_crowded = true;
                    return Ok(None);
                }
                Ok(plan.was_right(&$a, source).then(|| {
                    $a.outcome(plan, source).map(|output| (output, $($b.close()),+))
                }))
            }
        }
    };
}
groups!(A a, B b);
groups!(A a, B b, C c);
groups!(A a, B b, C c, D d, E e, F f);

/// A list whose members each have a thread of their own.
impl<A: Analysis + Send> SideBySide for Vec<A> {
    fn side_by_side<S: EventSource>(
        self,
        plan: &mut PassPlan,
        source: &mut S,
    ) -> Result<Option<Outcome<Self::Output>>, S::Error> {
        let mut folds: Vec<Fold<A>> = self.into_iter().map(|analysis| plan.fold(analysis)).collect();
        let Some((first, others)) = folds.split_first_mut() else {
            return Ok(Some(plan.fold(Vec::<A>::new()).outcome(plan, source)));
        };
        let room = &StatesRoom::of(1 + others.len());
        let mut others: Vec<_> =
            others.iter_mut().map(|fold| move |events: &[SchedEvent]| room.feed(fold, events)).collect();
        let mut others: Vec<&mut SendSink<'_>> = others.iter_mut().map(|sink| sink as &mut SendSink<'_>).collect();
        source.events_to_all(&mut |events| room.feed(first, events), &mut others)?;
        if room.is_exceeded() {
            plan.is_crowded = true;
            return Ok(None);
        }
        if !folds.first().is_some_and(|first| plan.was_right(first, source)) {
            return Ok(None);
        }
        let mut folds = folds.into_iter();
        let Some(first) = folds.next() else { return Ok(None) };
        Ok(Some(first.outcome(plan, source).map(|output| {
            let others = folds.map(Fold::close);
            [output].into_iter().chain(others).collect()
        })))
    }
}

/// The room of the states that follow a pass side by side. Where they outgrow it the pass is made again with one state, which all
/// analyses share: what a pass takes does not grow with the number of threads.
pub(super) struct StatesRoom {
    states: usize,
    exceeded: AtomicBool,
}

impl StatesRoom {
    /// Maximum size of all states together, in bytes: those of some 20,000 living tasks.
    const MOST: usize = 4 << 20;

    /// The room of this number of states.
    fn of(states: usize) -> StatesRoom {
        StatesRoom { states, exceeded: AtomicBool::new(false) }
    }

    /// Passes events on to one of the states; breaks once all have outgrown their room.
    fn feed<A: Analysis>(&self, fold: &mut Fold<A>, events: &[SchedEvent]) -> ControlFlow<()> {
        if self.is_exceeded() {
            return ControlFlow::Break(());
        }
        let flow = fold.feed(events);
        if fold.bytes().saturating_mul(self.states) > StatesRoom::MOST {
            self.exceeded.store(true, Ordering::Relaxed);
            return ControlFlow::Break(());
        }
        flow
    }

    fn is_exceeded(&self) -> bool {
        self.exceeded.load(Ordering::Relaxed)
    }
}

/// The knowledge about a pass before its events are read.
#[derive(Debug)]
pub struct PassPlan {
    pub(super) start: Start,
    pub(super) from: Ts,
    pub(super) to: Ts,
    pub(super) end: WindowEnd,
    pub(super) haste: Haste,
    /// The findings on the start of earlier attempts.
    pub(super) late: Diagnostics,
    /// Whether several states took more than their room, so that all analyses share one.
    pub(super) is_crowded: bool,
}

impl PassPlan {
    /// Makes the plan for a window of a part of a trace, whose state at the start is known.
    pub(super) fn after(
        past: Arc<Past>,
        application: Option<Arc<Application>>,
        capacities: CpuCapacities,
        window: Window,
    ) -> PassPlan {
        let window = window.in_part(&past);
        let (from, to) = window.within(past.start, past.end.max(past.from));
        let end = match window.to {
            None => WindowEnd::Open,
            Some(_) if to >= past.end => WindowEnd::Inclusive,
            Some(_) => WindowEnd::Exclusive,
        };
        let haste = Haste { left: 0, known: 0, was_wrong: false };
        let start = Start { past: Some(past), application, capacities, ..Start::default() };
        PassPlan { start, from, to, end, haste, late: Diagnostics::default(), is_crowded: false }
    }

    /// Makes the fold of an analysis that follows this plan.
    pub(super) fn fold<A: Analysis>(&self, analysis: A) -> Fold<A> {
        let PassPlan { from, to, end, haste, .. } = *self;
        let mut fold = Fold::new(SchedState::new(&self.start), analysis, (from, to), end, haste);
        if let Some(past) = &self.start.past {
            fold.recall(past);
        }
        fold
    }

    /// Whether the start was known, as it turns out. If not, the plan has learned it now, and all is to be read again.
    pub(super) fn was_right<A>(&mut self, fold: &Fold<A>, source: &mut impl EventSource) -> bool {
        let state = &fold.state;
        self.haste = fold.haste;
        if self.start.past.is_some() {
            return true;
        }
        if self.haste.was_wrong {
            return false;
        }
        let learned = learn(&mut self.start, state, source);
        if learned && !self.start.incomplete {
            self.late.add_many(EventIssue::LateStart, state.discovered().len() as u64);
        }
        !learned
    }
}

/// The findings that a prologue that ended early may have missed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Haste {
    /// The number of the following events that the prologue could have read.
    pub(super) left: usize,
    /// The number of findings that come to light in any case.
    pub(super) known: usize,
    /// Whether more findings came to light within these events.
    pub(super) was_wrong: bool,
}

impl Haste {
    /// Counts the next events down; returns whether `state` has found more within the prologue's reach by now.
    fn was_wrong_within(&mut self, events: usize, state: &SchedState) -> bool {
        self.was_wrong |= self.left > 0 && state.revelations() > self.known;
        self.left = self.left.saturating_sub(events);
        self.was_wrong
    }
}

/// A state and an analysis on their way through the events of a pass.
pub(super) struct Fold<A> {
    pub(super) state: SchedState,
    analysis: A,
    looks_back: bool,
    /// The migrations, if the analysis takes them.
    moves: Option<Box<PassMigrations>>,
    from: Ts,
    to: Ts,
    end: WindowEnd,
    haste: Haste,
    inside: bool,
    /// The number of losses within the window.
    lost: u64,
    /// The number of times that a CPU went offline within the window.
    offlines: u64,
}

/// An analysis of a window from a known state on, without a prologue.
pub(crate) struct WindowFold<A>(Fold<A>);

impl<A: Analysis> WindowFold<A> {
    /// Makes the analysis of the window from `from` to `to`, which is inside if the trace ends there (`is_last`).
    /// `state` is the one before the first event that is fed, and `causes` has the migrations that are not settled
    /// there.
    pub(crate) fn new(
        (state, causes): (SchedState, Causes),
        analysis: A,
        from: Ts,
        to: Ts,
        is_last: bool,
    ) -> WindowFold<A> {
        let end = if is_last { WindowEnd::Inclusive } else { WindowEnd::Exclusive };
        let haste = Haste { left: 0, known: 0, was_wrong: false };
        let mut fold = Fold::new(state, analysis, (from, to), end, haste);
        if let Some(moves) = &mut fold.moves {
            moves.take_up(causes);
        }
        WindowFold(fold)
    }

    /// Takes the next events; breaks when it needs no more.
    pub(crate) fn feed(&mut self, events: &[SchedEvent]) -> ControlFlow<()> {
        self.0.feed(events)
    }

    /// Ends the window, and returns the result of the analysis.
    pub(crate) fn close(self) -> A::Output {
        self.0.close()
    }
}

impl<A: Joined> Fold<A> {
    /// Returns the same moment of the pass without the analysis, and with all that it needs of the pass.
    pub(super) fn scout(&self) -> Fold<()> {
        let Fold { moves, from, to, end, haste, inside, lost, offlines, .. } = self;
        Fold {
            state: self.state.uncounted(),
            analysis: (),
            looks_back: false,
            moves: moves.clone(),
            from: *from,
            to: *to,
            end: *end,
            haste: *haste,
            inside: *inside,
            lost: *lost,
            offlines: *offlines,
        }
    }

    /// Joins the piece that begins where this one ends, or follows it event by event with what it does not fit.
    pub(super) fn join(mut self, later: Fold<A>, events: &PieceEvents) -> Fold<A> {
        if !self.analysis.fits(&later.analysis) {
            self.analysis.join_members(later.analysis);
            self.follow(events);
            self.analysis.take_up();
            #[cfg(debug_assertions)]
            assert_eq!(self.state.compared(), later.state.compared(), "a piece began with another state");
            return self;
        }
        self.analysis.join(later.analysis);
        Fold { analysis: self.analysis, ..later }
    }

    /// Takes all events of a piece. Whether the analysis needs more is up to the scout, which sees all pieces.
    pub(super) fn follow(&mut self, events: &PieceEvents) {
        events.stretches().for_each(|events| {
            let _ = self.feed(events);
        });
    }

    /// The number of events that precede the window.
    pub(super) fn early(&self, events: &[SchedEvent]) -> usize {
        events.partition_point(|event| event.ts < self.from)
    }
}

impl Fold<()> {
    /// Whether the effect of the events that follow can be found without the state here.
    pub(super) fn can_be_scanned(&self) -> bool {
        self.inside && self.state.can_be_scanned()
    }

    /// Removes the migrations, which then follow the state by [scenes](Fold::replay), or puts them back.
    pub(super) fn put_moves(&mut self, moves: Option<Box<PassMigrations>>) -> Option<Box<PassMigrations>> {
        std::mem::replace(&mut self.moves, moves)
    }

    /// The scenes of the events that begin here.
    pub(super) fn scenes(&self, events: &PieceEvents) -> Vec<MoveScene> {
        MoveScene::all(events.iter(), self.state.uncounted())
    }

    /// Takes up the migrations before this moment, and moves them behind the events of a piece that begins here, whose scenes are known.
    pub(super) fn replay(&mut self, moves: &mut PassMigrations, events: &PieceEvents, scenes: Vec<MoveScene>) {
        self.moves = Some(Box::new(moves.clone()));
        moves.replay(events, scenes, Edges { from: self.from, to: self.to, end: self.end });
        #[cfg(debug_assertions)]
        {
            let mut walked = self.scout();
            walked.follow(events);
            let walked = walked.moves.map(|moves| moves.causes().noted());
            assert_eq!(walked, Some(moves.causes().noted()), "the migrations of {} events: {events:?}", events.len());
        }
    }

    /// Whether all events up to this one are inside the window, as far as its end decides it.
    pub(super) fn has_inside(&self, last: Option<&SchedEvent>) -> bool {
        last.is_none_or(|last| match self.end {
            WindowEnd::Open => true,
            WindowEnd::Inclusive => last.ts <= self.to,
            WindowEnd::Exclusive => last.ts < self.to,
        })
    }

    /// Takes the effect of `events`, all of which are inside the window, in place of a walk over them: breaks if the start turns out
    /// to be wrong. Returns `None`, and changes nothing, if they must be walked over.
    pub(super) fn take(&mut self, effect: &Scan, events: &PieceEvents) -> Option<ControlFlow<()>> {
        #[cfg(debug_assertions)]
        let mut walked = self.state.clone();
        if !self.state.take(effect) {
            return None;
        }
        #[cfg(debug_assertions)]
        {
            events.iter().for_each(|event| walked.apply(event));
            assert_eq!(self.state.compared(), walked.compared(), "the effect of {} events: {events:?}", events.len());
        }
        self.to = events.last().map_or(self.to, |last| self.to.max(last.ts));
        let is_wrong = self.haste.was_wrong_within(events.len(), &self.state);
        Some(if is_wrong { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    /// Goes on from here with an analysis of a piece that begins within the window.
    pub(super) fn resumed<A: Joined>(self, mut analysis: A) -> Fold<A> {
        let Fold { mut state, moves, from, to, end, haste, inside, lost, offlines, .. } = self;
        let looks_back = analysis.looks_back();
        if analysis.counts() {
            state.count();
        }
        if let Some(moves) = &moves {
            analysis.unsettled(moves.causes());
        }
        analysis.resume(from, state.now().max(from), &state);
        Fold { state, analysis, looks_back, moves, from, to, end, haste, inside, lost, offlines }
    }
}

impl<A> Fold<A> {
    /// The approximate number of bytes of the state.
    pub(super) fn bytes(&self) -> usize {
        self.state.bytes()
    }
}

impl<A: Analysis> Fold<A> {
    /// Makes a state follow a window together with an analysis.
    fn new(mut state: SchedState, analysis: A, (from, to): (Ts, Ts), end: WindowEnd, haste: Haste) -> Fold<A> {
        let looks_back = analysis.looks_back();
        if looks_back && analysis.counts() {
            state.count();
        }
        let moves = analysis.migrates().then(Box::default);
        Fold { state, analysis, looks_back, moves, from, to, end, haste, inside: false, lost: 0, offlines: 0 }
    }

    /// Passes on the notes of a part of a trace.
    fn recall(&mut self, past: &Past) {
        if let Some(moves) = &mut self.moves {
            moves.recall(past);
        }
        if self.looks_back {
            self.analysis.recall(past, &self.state);
        }
    }

    /// Finds the migrations that an event settles, before it is applied.
    #[inline(always)]
    fn find_moves(&mut self, event: &SchedEvent, inside: bool) {
        if let Some(moves) = &mut self.moves {
            let edges = Edges { from: self.from, to: self.to, end: self.end };
            moves.follow(event, inside, edges, &self.state, &mut self.analysis);
        }
    }

    /// Ends the window, and returns the result with all findings.
    pub(super) fn outcome<S: EventSource>(self, plan: &PassPlan, source: &S) -> Outcome<A::Output> {
        let mut diagnostics = self.state.diagnostics();
        diagnostics.merge(&source.diagnostics());
        diagnostics.merge(&plan.late);
        diagnostics.add_many(EventIssue::EventsLost, self.lost);
        diagnostics.add_many(EventIssue::CpuOffline, self.offlines);
        let (from, to) = (self.from, self.to);
        Outcome { output: self.close(), from, to, diagnostics }
    }

    /// Takes the next events, before, in and behind the window; breaks when it needs no more, or when the start turns
    /// out to be wrong.
    pub(super) fn feed(&mut self, events: &[SchedEvent]) -> ControlFlow<()> {
        let (early, events) = events.split_at(events.partition_point(|event| event.ts < self.from));
        for event in early {
            self.find_moves(event, false);
            self.state.apply(event);
            if self.looks_back {
                self.analysis.early(event, &self.state);
            }
        }
        let inside = match self.end {
            WindowEnd::Open => events.len(),
            WindowEnd::Inclusive => events.partition_point(|event| event.ts <= self.to),
            WindowEnd::Exclusive => events.partition_point(|event| event.ts < self.to),
        };
        let (events, late) = events.split_at(inside);
        if let Some(last) = events.last() {
            self.to = self.to.max(last.ts);
            self.enter();
        }
        for event in events {
            match event.kind {
                EventKind::Lost { .. } => self.lost += 1,
                EventKind::Offline => self.offlines += 1,
                _ => {}
            }
            self.analysis.before(event, &self.state);
            self.find_moves(event, true);
            self.state.step(event);
            self.report();
            self.analysis.after(event, &self.state);
        }
        if self.haste.was_wrong_within(early.len() + events.len(), &self.state) {
            return ControlFlow::Break(());
        }
        if late.is_empty() { ControlFlow::Continue(()) } else { self.look_behind(late) }
    }

    /// Takes events behind the window while they settle migrations in it.
    fn look_behind(&mut self, late: &[SchedEvent]) -> ControlFlow<()> {
        self.enter();
        let edges = Edges { from: self.from, to: self.to, end: self.end };
        match &mut self.moves {
            Some(moves) if self.end == WindowEnd::Exclusive => {
                moves.look_behind(late, edges, &self.state, &mut self.analysis)
            }
            _ => ControlFlow::Break(()),
        }
    }

    /// Begins the window, unless it has begun.
    fn enter(&mut self) {
        if !self.inside {
            self.inside = true;
            // Most analyses look at the counts within the window alone.
            if !self.looks_back && self.analysis.counts() {
                self.state.count();
            }
            if let Some(moves) = &self.moves {
                self.analysis.unsettled(moves.causes());
            }
            self.analysis.begin(self.from, &self.state);
        }
    }

    /// Reports the spans that the last event closed, clipped to the window; nearly all are whole.
    #[inline(always)]
    fn report(&mut self) {
        let (from, to) = (self.from, self.to);
        let is_whole = |start: Ts, end: Ts| from <= start && end <= to;
        for span in self.state.spans() {
            if is_whole(span.start, span.end) {
                self.analysis.span(span, &self.state);
            } else if let Some(part) = span.clip(from, to) {
                self.analysis.span(&part, &self.state);
            }
        }
        for span in self.state.cpu_spans() {
            if is_whole(span.start, span.end) {
                self.analysis.cpu_span(span, &self.state);
            } else if let Some(part) = span.clip(from, to) {
                self.analysis.cpu_span(&part, &self.state);
            }
        }
    }

    /// Ends the window: settles the migrations, reports the open spans as censored, and returns the result of the
    /// analysis.
    pub(super) fn close(mut self) -> A::Output {
        self.enter();
        let edges = Edges { from: self.from, to: self.to, end: self.end };
        if let Some(moves) = &mut self.moves {
            moves.finish(edges, &self.state, &mut self.analysis);
        }
        self.state.close(self.to);
        self.report();
        self.analysis.finish(self.to, &self.state)
    }
}

//! Analyses, and their composition.

use crate::balance::causes::{Causes, Migration};
use crate::event::span::{CpuSpan, Span, TaskState};
use crate::event::{Dur, Pid, SchedEvent, Ts};
use crate::state::SchedState;
use crate::state::past::Past;
use std::collections::BTreeMap;

pub mod chosen;
pub(crate) mod joined;
pub(crate) mod listed;
pub(crate) mod note_taker;
pub(crate) mod queued_behind;
pub(crate) mod queued_sums;
pub(crate) mod step_log;

/// An observer of one pass over a trace.
///
/// The pass drives: it moves the state over the events of the trace, and calls an analysis in this order.
///
/// 1. [`recall`], once, if the source is a part of a trace. Only for an analysis that looks back
///    ([`Analysis::LOOKS_BACK`]).
/// 2. [`early`], after each event before the window. Only for an analysis that looks back.
/// 3. [`unsettled`], if the analysis takes migrations ([`Analysis::MIGRATIONS`]), and then [`begin`]: once, in the state
///    at the window's start.
/// 4. For each event in the window: [`before`], in the state before the event; then [`span`] for each span of a task that
///    the event closed, [`cpu_span`] for each span of a CPU, and [`after`], in the state after the event.
/// 5. [`span`] and [`cpu_span`] for the spans that are open at the window's end, as censored.
/// 6. [`finish`], once.
///
/// [`migrated`] is called in between, whenever a migration is settled: before the window, in it, or by the events that
/// follow the window within [`BEHIND`], which nothing else sees. Events come in the order of the trace. Spans are clipped
/// to the window and reported when they end, so their starts are in no order.
///
/// The calls of one analysis never overlap. An analysis looks at the state, and must not derive from events what
/// the state already shows, such as the running tasks. A pass whose start turns out to be wrong is repeated with a new
/// analysis, and the former one is dropped without [`finish`]: before that call an analysis must have no effect outside of
/// itself.
///
/// A tuple, a [`Vec`] or an [`Option`] of analyses is an analysis. It asks for everything that one of its members asks for,
/// and may call the hooks of members that did not ask; an analysis implements a hook only if it also asks for the call.
///
/// [`recall`]: Analysis::recall
/// [`early`]: Analysis::early
/// [`unsettled`]: Analysis::unsettled
/// [`before`]: Analysis::before
/// [`span`]: Analysis::span
/// [`cpu_span`]: Analysis::cpu_span
/// [`after`]: Analysis::after
/// [`begin`]: Analysis::begin
/// [`finish`]: Analysis::finish
/// [`migrated`]: Analysis::migrated
#[allow(unused_variables)]
pub trait Analysis {
    /// The result of the analysis, such as a report.
    type Output;

    /// Whether the analysis looks at [`SchedState::counts`] or [`SchedState::turned`] at most events. The state then
    /// keeps them up to date from the window's start on (from the first event on if the analysis looks back), once for
    /// all analyses. Without it these have no values.
    const COUNTS: bool = false;

    /// Whether the analysis follows the events before the window, through [`Analysis::recall`] and [`Analysis::early`].
    const LOOKS_BACK: bool = false;

    /// Whether the analysis takes the migrations with their causes, through [`Analysis::unsettled`] and
    /// [`Analysis::migrated`].
    const MIGRATIONS: bool = false;

    /// Returns [`Analysis::COUNTS`]. Implemented where it depends on the value of the analysis; it must return the same
    /// at each call.
    fn counts(&self) -> bool {
        Self::COUNTS
    }

    /// Returns [`Analysis::LOOKS_BACK`]. Implemented where it depends on the value of the analysis; it must return the
    /// same at each call.
    fn looks_back(&self) -> bool {
        Self::LOOKS_BACK
    }

    /// Returns [`Analysis::MIGRATIONS`]. Implemented where it depends on the value of the analysis; it must return the
    /// same at each call.
    fn migrates(&self) -> bool {
        Self::MIGRATIONS
    }

    /// Called first of all if the source is a part of a trace, so that the events before the part are missing, and only
    /// if the analysis looks back. `past` holds the notes on these events; `state` is the one at the start of the part.
    /// The analysis takes up the notes that its kind has left there, and must bear their absence.
    fn recall(&mut self, past: &Past, state: &SchedState) {}

    /// Called after an event before the window was applied, if the analysis looks back. `state` is the one after the
    /// event. The spans that the event closed are in [`SchedState::spans`] and [`SchedState::cpu_spans`], unclipped.
    /// Calls [`Analysis::follow`] by default.
    fn early(&mut self, event: &SchedEvent, state: &SchedState) {
        if self.looks_back() {
            self.follow(event, state);
        }
    }

    /// Called after each event by the defaults of [`Analysis::early`] and [`Analysis::after`]: implemented in place of these two by an
    /// analysis to which an event before the window is one like the others. `state` is the one that the event leaves.
    fn follow(&mut self, event: &SchedEvent, state: &SchedState) {}

    /// Called just before [`Analysis::begin`] if the analysis takes migrations. `causes` has the migrations that
    /// happened before the window and are not settled yet; each comes to [`Analysis::migrated`] later.
    fn unsettled(&mut self, causes: &Causes) {}

    /// Called when a migration has its cause and the time to its first run, which nothing can change any more, if the
    /// analysis takes migrations. Migrations come in the order in which they are settled, not in that of time, also
    /// before [`Analysis::begin`]. `state` is the one before the event that settles the migration, between
    /// [`Analysis::before`] and the application of that event; for [`Settled::Behind`] it is the one at the window's
    /// end.
    fn migrated(&mut self, migration: &Migration, settled: Settled, state: &SchedState) {}

    /// Called once, at the start of the window, before its first event; also if the window has no event. `start` is the
    /// window's start, and all events before it have been applied to `state`.
    fn begin(&mut self, start: Ts, state: &SchedState) {}

    /// Called for each event of the window just before it is applied: `state` is the one that the event finds.
    fn before(&mut self, event: &SchedEvent, state: &SchedState) {}

    /// Called when the span of a task ends, by an event of the window or, censored, by its end. The span is clipped to
    /// the window. `state` is the one after the event; the task of the span is in it ([`SchedState::task`]), even if it
    /// has just died.
    fn span(&mut self, span: &Span, state: &SchedState) {}

    /// Called when the span of a CPU ends, by an event of the window or, censored, by its end. The span is clipped to
    /// the window. `state` is the one after the event.
    fn cpu_span(&mut self, span: &CpuSpan, state: &SchedState) {}

    /// Called for each event of the window after it was applied and the spans that it closed were reported: `state` is
    /// the one that the event leaves.
    /// Calls [`Analysis::follow`] by default.
    fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        self.follow(event, state);
    }

    /// Called once, after everything else, with the window's end. All spans were reported; `state` is the one at the
    /// end. Returns the result of the analysis.
    fn finish(self, end: Ts, state: &SchedState) -> Self::Output;
}

/// Maximum time after the window within which events settle the migrations in it.
pub const BEHIND: Dur = Dur(10_000_000_000);

/// The position of a migration and of the event that settles it, relative to the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// The migration happened before the window.
    Before,
    /// The migration happened in the window, and an event of the window settles it.
    Inside,
    /// The migration happened in the window; an event behind the window settles it, or none does.
    Behind,
}

impl Settled {
    /// Whether the migration happened in the window.
    pub fn is_inside(self) -> bool {
        self != Settled::Before
    }
}

macro_rules! tuple {
    ($($name:ident $index:tt),+) => {
        impl<$($name: Analysis),+> Analysis for ($($name,)+) {
            type Output = ($($name::Output,)+);
            const COUNTS: bool = $($name::COUNTS)||+;
            const LOOKS_BACK: bool = $($name::LOOKS_BACK)||+;
            const MIGRATIONS: bool = $($name::MIGRATIONS)||+;

            fn counts(&self) -> bool {
                $(self.$index.counts())||+
            }
            fn looks_back(&self) -> bool {
                $(self.$index.looks_back())||+
            }
            fn migrates(&self) -> bool {
                $(self.$index.migrates())||+
            }
            fn unsettled(&mut self, causes: &Causes) {
                $(self.$index.unsettled(causes);)+
            }
            fn migrated(&mut self, migration: &Migration, settled: Settled, state: &SchedState) {
                $(self.$index.migrated(migration, settled, state);)+
            }
            fn recall(&mut self, past: &Past, state: &SchedState) {
                $(self.$index.recall(past, state);)+
            }
            fn early(&mut self, event: &SchedEvent, state: &SchedState) {
                $(self.$index.early(event, state);)+
            }
            fn begin(&mut self, start: Ts, state: &SchedState) {
                $(self.$index.begin(start, state);)+
            }
            fn before(&mut self, event: &SchedEvent, state: &SchedState) {
                $(self.$index.before(event, state);)+
            }
            fn span(&mut self, span: &Span, state: &SchedState) {
                $(self.$index.span(span, state);)+
            }
            fn cpu_span(&mut self, span: &CpuSpan, state: &SchedState) {
                $(self.$index.cpu_span(span, state);)+
            }
            fn after(&mut self, event: &SchedEvent, state: &SchedState) {
                $(self.$index.after(event, state);)+
            }
            fn finish(self, end: Ts, state: &SchedState) -> Self::Output {
                ($(self.$index.finish(end, state),)+)
            }
        }
    };
}
tuple!(A 0);
tuple!(A 0, B 1);
tuple!(A 0, B 1, C 2);
tuple!(A 0, B 1, C 2, D 3);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5);

/// The empty analysis, for a composition whose members need not all look at the state.
impl Analysis for () {
    type Output = ();

    fn finish(self, _: Ts, _: &SchedState) {}
}

/// Forwards all calls but the last to each of the analyses inside, of which there can be none.
macro_rules! each {
    () => {
        fn counts(&self) -> bool {
            self.iter().any(Analysis::counts)
        }
        fn looks_back(&self) -> bool {
            self.iter().any(Analysis::looks_back)
        }
        fn migrates(&self) -> bool {
            self.iter().any(Analysis::migrates)
        }
        fn unsettled(&mut self, causes: &Causes) {
            self.iter_mut().for_each(|analysis| analysis.unsettled(causes));
        }
        fn migrated(&mut self, migration: &Migration, settled: Settled, state: &SchedState) {
            self.iter_mut().for_each(|analysis| analysis.migrated(migration, settled, state));
        }
        fn recall(&mut self, past: &Past, state: &SchedState) {
            self.iter_mut().filter(|analysis| analysis.looks_back()).for_each(|analysis| analysis.recall(past, state));
        }
        fn early(&mut self, event: &SchedEvent, state: &SchedState) {
            self.iter_mut().filter(|analysis| analysis.looks_back()).for_each(|analysis| analysis.early(event, state));
        }
        fn begin(&mut self, start: Ts, state: &SchedState) {
            self.iter_mut().for_each(|analysis| analysis.begin(start, state));
        }
        fn before(&mut self, event: &SchedEvent, state: &SchedState) {
            self.iter_mut().for_each(|analysis| analysis.before(event, state));
        }
        fn span(&mut self, span: &Span, state: &SchedState) {
            self.iter_mut().for_each(|analysis| analysis.span(span, state));
        }
        fn cpu_span(&mut self, span: &CpuSpan, state: &SchedState) {
            self.iter_mut().for_each(|analysis| analysis.cpu_span(span, state));
        }
        fn after(&mut self, event: &SchedEvent, state: &SchedState) {
            self.iter_mut().for_each(|analysis| analysis.after(event, state));
        }
    };
}

/// An analysis that is made only on request.
impl<A: Analysis> Analysis for Option<A> {
    type Output = Option<A::Output>;

    each!();
    fn finish(self, end: Ts, state: &SchedState) -> Self::Output {
        self.map(|analysis| analysis.finish(end, state))
    }
}

/// A list of analyses of one type, called in its order.
impl<A: Analysis> Analysis for Vec<A> {
    type Output = Vec<A::Output>;

    each!();
    fn finish(self, end: Ts, state: &SchedState) -> Self::Output {
        self.into_iter().map(|analysis| analysis.finish(end, state)).collect()
    }
}

/// The running time of each task: the smallest useful analysis, and the example for others.
#[derive(Clone, Debug, Default)]
pub struct RunTime {
    ns: BTreeMap<Pid, u64>,
}

impl RunTime {
    /// The time for which `pid` ran within the window, in nanoseconds.
    pub fn ns_of(&self, pid: Pid) -> u64 {
        self.ns.get(&pid).copied().unwrap_or(0)
    }

    /// The running time of all tasks together.
    pub fn total(&self) -> Dur {
        Dur(self.ns.values().copied().fold(0, u64::saturating_add))
    }
}

impl Analysis for RunTime {
    type Output = RunTime;

    fn span(&mut self, span: &Span, _: &SchedState) {
        if let TaskState::Running(_) = span.state {
            *self.ns.entry(span.pid).or_default() += span.duration().0;
        }
    }

    fn finish(self, _: Ts, _: &SchedState) -> RunTime {
        self
    }
}

//! Analyses, and their composition.

use crate::balance::causes::{Causes, Migration};
use crate::event::span::{CpuSpan, Span, TaskState};
use crate::event::{Dur, Pid, SchedEvent, Ts};
use crate::state::SchedState;
use crate::state::past::Past;
use std::collections::BTreeMap;

pub mod chosen;
pub(crate) mod listed;
pub(crate) mod note_taker;

/// An observer of one pass over a trace.
///
/// The pass drives. Within the window it calls, for each event in time order: [`before`] with the
/// state as it was, [`span`] and [`cpu_span`] for what the event closed, [`after`] with the state
/// as the event left it. Spans are clipped to the window, and reported when they end: their starts
/// are not in order. Events before the window are shown to [`early`] alone, and only where [`Analysis::LOOKS_BACK`] asks
/// for them. Before the first event comes [`begin`] with the state at the window's start;
/// after the last one the pass closes what is open, as censored spans, and calls [`finish`] once.
/// An analysis looks at the state, and never derives the running tasks by itself.
///
/// The pass finds the migrations of the whole trace with their causes, where [`Analysis::MIGRATIONS`] asks for them, and
/// passes each to [`migrated`] when it is settled: by the events before the window, by those in it, or by those that
/// follow within [`BEHIND`], which nothing else sees.
///
/// [`early`]: Analysis::early
/// [`before`]: Analysis::before
/// [`span`]: Analysis::span
/// [`cpu_span`]: Analysis::cpu_span
/// [`after`]: Analysis::after
/// [`begin`]: Analysis::begin
/// [`finish`]: Analysis::finish
/// [`migrated`]: Analysis::migrated
#[allow(unused_variables)]
pub trait Analysis {
    /// The result.
    type Output;

    /// Whether it looks at [`SchedState::counts`] or [`SchedState::turned`] again and again: the state then
    /// follows them, once for all that look at it.
    const COUNTS: bool = false;

    /// Whether it follows the events before the window, through [`Analysis::early`].
    const LOOKS_BACK: bool = false;

    /// Whether it takes the migrations with their causes, through [`Analysis::migrated`].
    const MIGRATIONS: bool = false;

    /// [`Analysis::COUNTS`], of one whose kind is known only when the program runs.
    fn counts(&self) -> bool {
        Self::COUNTS
    }

    /// [`Analysis::LOOKS_BACK`], likewise.
    fn looks_back(&self) -> bool {
        Self::LOOKS_BACK
    }

    /// [`Analysis::MIGRATIONS`], likewise.
    fn migrates(&self) -> bool {
        Self::MIGRATIONS
    }

    /// The events before the window are not in the file, which is a part of a trace; the file has their `past`. Called
    /// before everything else, and only where [`Analysis::LOOKS_BACK`] asks for it.
    fn recall(&mut self, past: &Past, state: &SchedState) {}

    /// An event before the window was applied.
    fn early(&mut self, event: &SchedEvent, state: &SchedState) {}

    /// The window starts, with these migrations not settled yet. Called just before [`Analysis::begin`], and only where
    /// [`Analysis::MIGRATIONS`] asks for it.
    fn unsettled(&mut self, causes: &Causes) {}

    /// A migration has its cause and the time to its first run: nothing can change them any more. Between
    /// [`Analysis::before`] and the application of the event that settles it.
    fn migrated(&mut self, migration: &Migration, settled: Settled, state: &SchedState) {}

    /// The window starts, in this state.
    fn begin(&mut self, start: Ts, state: &SchedState) {}

    /// An event is about to be applied.
    fn before(&mut self, event: &SchedEvent, state: &SchedState) {}

    /// A task's span ended.
    fn span(&mut self, span: &Span, state: &SchedState) {}

    /// A CPU's span ended.
    fn cpu_span(&mut self, span: &CpuSpan, state: &SchedState) {}

    /// An event was applied.
    fn after(&mut self, event: &SchedEvent, state: &SchedState) {}

    /// The window has ended.
    fn finish(self, end: Ts, state: &SchedState) -> Self::Output;
}

/// Events that follow the window by at most this settle the migrations in it.
pub const BEHIND: Dur = Dur(10_000_000_000);

/// The place of a migration, and of the event that settles it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// The migration is before the window.
    Before,
    /// The migration is in the window, and an event of the window settles it.
    Inside,
    /// The migration is in the window, and what follows settles it, or nothing does.
    Behind,
}

impl Settled {
    /// Whether the migration is in the window.
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

/// The analysis of nothing, for a list whose members need not all look at the state.
impl Analysis for () {
    type Output = ();

    fn finish(self, _: Ts, _: &SchedState) {}
}

/// All calls but the last, passed on to each of the analyses inside, which can be none.
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

/// One that is made only if it is asked for.
impl<A: Analysis> Analysis for Option<A> {
    type Output = Option<A::Output>;

    each!();
    fn finish(self, end: Ts, state: &SchedState) -> Self::Output {
        self.map(|analysis| analysis.finish(end, state))
    }
}

/// A list, in its order.
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
    /// How long `pid` ran within the window.
    pub fn ns_of(&self, pid: Pid) -> u64 {
        self.ns.get(&pid).copied().unwrap_or(0)
    }

    /// The sum over all tasks.
    pub fn total(&self) -> Dur {
        Dur(self.ns.values().sum())
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

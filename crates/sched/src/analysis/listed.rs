//! Analyses of different kinds in one list.

use crate::analysis::{Analysis, Settled};
use crate::balance::causes::{Causes, Migration};
use crate::event::span::{CpuSpan, Span};
use crate::event::{SchedEvent, Ts};
use crate::state::SchedState;
use crate::state::past::Past;
use std::fmt;

/// An analysis of any type, boxed with a conclusion from its output, so that one list can hold analyses of several types.
///
/// `T` is the type of the conclusions, `'a` the lifetime of the things that the analyses borrow. Each event costs some
/// calls through a table more than in a tuple of analyses, whose calls the compiler sees.
///
/// ```
/// use sched::{Listed, Pass, Pid, SchedEvent, analysis::RunTime};
/// let events: &[SchedEvent] = &[];
/// let analyses = || vec![Listed::new(RunTime::default(), |ran| format!("ran {} ns", ran.total().0))];
/// assert_eq!(Pass::over(events).run(analyses)?.output, ["ran 0 ns"]);
/// # Ok::<(), std::convert::Infallible>(())
/// ```
pub struct Listed<'a, T> {
    analysis: Box<dyn Any<T> + Send + 'a>,
}

impl<T> fmt::Debug for Listed<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listed").finish_non_exhaustive()
    }
}

impl<'a, T> Listed<'a, T> {
    /// Boxes an analysis. `conclude` is called once, with the output of the analysis, after the window has ended; it is
    /// not called for an analysis that is dropped since the pass is repeated.
    pub fn new<A: Analysis + Send + 'a>(analysis: A, conclude: impl FnOnce(A::Output) -> T + Send + 'a) -> Self {
        Listed { analysis: Box::new(Concluded { analysis, conclude }) }
    }
}

/// The hooks of [`Analysis`], called through a table.
trait Any<T> {
    fn counts(&self) -> bool;
    fn looks_back(&self) -> bool;
    fn migrates(&self) -> bool;
    fn unsettled(&mut self, causes: &Causes);
    fn migrated(&mut self, migration: &Migration, settled: Settled, state: &SchedState);
    fn recall(&mut self, past: &Past, state: &SchedState);
    fn early(&mut self, event: &SchedEvent, state: &SchedState);
    fn begin(&mut self, start: Ts, state: &SchedState);
    fn before(&mut self, event: &SchedEvent, state: &SchedState);
    fn span(&mut self, span: &Span, state: &SchedState);
    fn cpu_span(&mut self, span: &CpuSpan, state: &SchedState);
    fn after(&mut self, event: &SchedEvent, state: &SchedState);
    fn finish(self: Box<Self>, end: Ts, state: &SchedState) -> T;
}

/// Forwards all calls but the last to the analysis inside.
macro_rules! forwarded {
    () => {
        fn counts(&self) -> bool {
            self.analysis.counts()
        }
        fn looks_back(&self) -> bool {
            self.analysis.looks_back()
        }
        fn migrates(&self) -> bool {
            self.analysis.migrates()
        }
        fn unsettled(&mut self, causes: &Causes) {
            self.analysis.unsettled(causes);
        }
        fn migrated(&mut self, migration: &Migration, settled: Settled, state: &SchedState) {
            self.analysis.migrated(migration, settled, state);
        }
        fn recall(&mut self, past: &Past, state: &SchedState) {
            self.analysis.recall(past, state);
        }
        fn early(&mut self, event: &SchedEvent, state: &SchedState) {
            self.analysis.early(event, state);
        }
        fn begin(&mut self, start: Ts, state: &SchedState) {
            self.analysis.begin(start, state);
        }
        fn before(&mut self, event: &SchedEvent, state: &SchedState) {
            self.analysis.before(event, state);
        }
        fn span(&mut self, span: &Span, state: &SchedState) {
            self.analysis.span(span, state);
        }
        fn cpu_span(&mut self, span: &CpuSpan, state: &SchedState) {
            self.analysis.cpu_span(span, state);
        }
        fn after(&mut self, event: &SchedEvent, state: &SchedState) {
            self.analysis.after(event, state);
        }
    };
}

/// An analysis, with the conclusion that is drawn from its output.
struct Concluded<A, F> {
    analysis: A,
    conclude: F,
}

impl<T, A: Analysis, F: FnOnce(A::Output) -> T> Any<T> for Concluded<A, F> {
    forwarded!();
    fn finish(self: Box<Self>, end: Ts, state: &SchedState) -> T {
        let Concluded { analysis, conclude } = *self;
        conclude(analysis.finish(end, state))
    }
}

impl<T> Analysis for Listed<'_, T> {
    type Output = T;

    forwarded!();
    fn finish(self, end: Ts, state: &SchedState) -> T {
        self.analysis.finish(end, state)
    }
}

//! The model with the analyses beside it, which all end where the model is cut off.

use crate::builder::ModelBuilder;
use sched::analysis::Settled;
use sched::causes::{Causes, Migration};
use sched::past::Past;
use sched::span::{CpuSpan, Span};
use sched::{Analysis, SchedEvent, SchedState, Ts};

/// A builder and the analyses beside it. Where the trace has more than the model may hold there is no answer: all of them give back what they
/// hold, and take no time from there on.
pub(crate) struct UntilCut<'o, A> {
    all: Option<(ModelBuilder<'o>, A)>,
    counts: bool,
    looks_back: bool,
    migrates: bool,
}

impl<'o, A: Analysis> UntilCut<'o, A> {
    pub(crate) fn new(builder: ModelBuilder<'o>, others: A) -> UntilCut<'o, A> {
        let all = (builder, others);
        let (counts, looks_back, migrates) = (all.counts(), all.looks_back(), all.migrates());
        UntilCut { all: Some(all), counts, looks_back, migrates }
    }
}

impl<'o, A: Analysis> Analysis for UntilCut<'o, A> {
    /// Nothing where the model was cut off.
    type Output = Option<<(ModelBuilder<'o>, A) as Analysis>::Output>;

    fn counts(&self) -> bool {
        self.counts
    }

    fn looks_back(&self) -> bool {
        self.looks_back
    }

    fn migrates(&self) -> bool {
        self.migrates
    }

    fn recall(&mut self, past: &Past, state: &SchedState) {
        self.all.recall(past, state);
    }

    fn early(&mut self, event: &SchedEvent, state: &SchedState) {
        self.all.early(event, state);
    }

    fn unsettled(&mut self, causes: &Causes) {
        self.all.unsettled(causes);
    }

    fn migrated(&mut self, migration: &Migration, settled: Settled, state: &SchedState) {
        self.all.migrated(migration, settled, state);
    }

    fn begin(&mut self, start: Ts, state: &SchedState) {
        self.all.begin(start, state);
    }

    fn before(&mut self, event: &SchedEvent, state: &SchedState) {
        self.all.before(event, state);
    }

    fn span(&mut self, span: &Span, state: &SchedState) {
        self.all.span(span, state);
    }

    fn cpu_span(&mut self, span: &CpuSpan, state: &SchedState) {
        self.all.cpu_span(span, state);
    }

    fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        self.all.after(event, state);
        if self.all.as_ref().is_some_and(|(builder, _)| builder.is_cut()) {
            self.all = None;
        }
    }

    fn finish(self, end: Ts, state: &SchedState) -> Self::Output {
        self.all.finish(end, state)
    }
}

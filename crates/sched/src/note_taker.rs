//! The note of the state at the start of a window.

use crate::analysis::Analysis;
use crate::event::Ts;
use crate::past::Past;
use crate::state::SchedState;

/// Notes the state at the window's start.
#[derive(Debug, Default)]
pub struct NoteTaker(Past);

impl Analysis for NoteTaker {
    type Output = Past;

    fn begin(&mut self, start: Ts, state: &SchedState) {
        self.0 = Past { from: start, ..state.noted() };
    }

    fn finish(self, _: Ts, _: &SchedState) -> Past {
        self.0
    }
}

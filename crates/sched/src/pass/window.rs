//! The reported part of a trace.

use crate::event::Ts;
use crate::state::past::Past;

/// The part of the trace that is reported. State is carried into it from all earlier events.
///
/// An event at the start is inside, one at the end is not, unless the trace ends there. The figures of adjacent windows
/// therefore add up to the whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// The start of the window; `None` for the first event of the trace.
    pub from: Option<Ts>,
    /// The end of the window; `None` for the last event of the trace.
    pub to: Option<Ts>,
}

impl Window {
    /// Returns the edges of the window within a trace from `start` to `end`.
    pub fn within(&self, start: Ts, end: Ts) -> (Ts, Ts) {
        let from = self.from.map_or(start, |from| from.clamp(start, end));
        let to = self.to.map_or(end, |to| to.clamp(from, end));
        (from, to)
    }

    /// Returns the window as far as it lies in a part of a trace, since the file has nothing outside of the part.
    #[must_use]
    pub fn in_part(&self, past: &Past) -> Window {
        let part = Window { from: Some(past.from), to: Some(past.to.max(past.from)) };
        let (from, to) = self.within(past.from, past.to.max(past.from));
        match (self.to, past.to >= past.end) {
            // The window goes on to the last event.
            (None, true) => Window { from: Some(from), to: None },
            (None, false) => Window { from: Some(from), to: part.to },
            (Some(_), _) => Window { from: Some(from), to: Some(to) },
        }
    }
}

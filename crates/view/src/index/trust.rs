//! How far the numbers of a window can be trusted: the judgement of `workcons`, with its reason and its bounds.

use crate::index::store::Store;
use parse::{Error, EventStream, Trace};
use sched::Ts;
use serde::Serialize;
use workcons::{Bounds, RigorousBounds, Unknown};

/// The judgement on the numbers of a window.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct WindowTrust {
    /// The reason that the waiting tasks are unknown, and with them the violation; nothing where they are known.
    why: Option<String>,
    /// The CPU time of which nothing is known, in percent of all.
    unknown_percent: f64,
    /// The number of places where events are missing, from the start of the trace up to the end of the window.
    gaps: u64,
    /// The bounds of the time in violation that hold whatever was lost; nothing where no event is missing.
    bounds: Option<RigorousBounds>,
}

impl WindowTrust {
    /// The judgement on a window whose unknown parts are these. Where events are missing, the window is read for the bounds
    /// of the violation by these options.
    pub(crate) fn of(
        (trace, store): (&Trace, &Store<EventStream<'_>>),
        (from, to): (Ts, Ts),
        mut unknown: Unknown,
        options: &workcons::Options<'_>,
    ) -> Result<WindowTrust, Error> {
        unknown.add_trace(trace, store.diagnostics());
        let gaps = unknown.gaps.iter().map(|gaps| gaps.gaps).sum();
        let bounds = || store.window(from, to, Bounds::new(options));
        let bounds = if gaps > 0 { Some(bounds()?) } else { None };
        Ok(WindowTrust { why: unknown.doubt(), unknown_percent: unknown.unknown_percent, gaps, bounds })
    }
}

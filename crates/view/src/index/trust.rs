//! How far the numbers of a window can be trusted: the judgement of `workcons`, with its reason and its bounds.

use crate::index::store::Store;
use parse::{Error, EventStream, Trace};
use sched::{Analysis, Ts};
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
        let bounds = || store.window(from, to, Bounds::new(options));
        let bounds = if gaps(&unknown) > 0 { Some(bounds()?) } else { None };
        Ok(WindowTrust::with(&unknown, bounds))
    }

    /// The judgement on a window in which an analysis is made in the same reading.
    pub(crate) fn beside<A: Analysis>(
        (trace, store): (&Trace, &Store<EventStream<'_>>),
        (from, to): (Ts, Ts),
        mut unknown: Unknown,
        options: &workcons::Options<'_>,
        analysis: A,
    ) -> Result<(WindowTrust, A::Output), Error> {
        unknown.add_trace(trace, store.diagnostics());
        let bounds = (gaps(&unknown) > 0).then(|| Bounds::new(options));
        let (bounds, output) = store.window(from, to, (bounds, analysis))?;
        Ok((WindowTrust::with(&unknown, bounds), output))
    }

    fn with(unknown: &Unknown, bounds: Option<RigorousBounds>) -> WindowTrust {
        let (why, gaps) = (unknown.doubt(), gaps(unknown));
        WindowTrust { why, unknown_percent: unknown.unknown_percent, gaps, bounds }
    }
}

/// The number of places where events are missing.
fn gaps(unknown: &Unknown) -> u64 {
    unknown.gaps.iter().map(|gaps| gaps.gaps).sum()
}

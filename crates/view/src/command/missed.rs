//! The missed steals of a trace, by the definition of `why`.

use crate::{MissedAt, MissedSteal, MissedSteals};
use anyhow::Result;
use sched::pass::Window;
use session::Session;
use session::args::BeginArgs;
use std::sync::{Mutex, PoisonError};
use why::{Cases, ListedCase, Why};

/// Reads the trace, and lists the missed steals of a window.
pub(super) fn of(session: &Session, window: Window) -> Result<MissedSteals> {
    let options = workcons::Options { strips: None, ..workcons::Options::plain(session) };
    let found = Mutex::new(MissedSteals::default());
    // A panic in another thread ends the pass.
    let lock = || found.lock().unwrap_or_else(PoisonError::into_inner);
    let stretch = |case: &ListedCase<_, _>| {
        if let Some(nearest) = case.missed {
            let ListedCase { start: from, end: to, cpu, violated_ns, .. } = *case;
            lock().list(MissedSteal { from, to, cpu, violated_ns, nearest: nearest.place() });
        }
    };
    let cases = Cases { wait: &|_| {}, stretch: &stretch };
    let analysis = || {
        // The pass may begin again.
        *lock() = MissedSteals::default();
        Why::new(&options).listing(&cases)
    };
    let outcome = session.follow(&BeginArgs::default(), window, analysis)?;
    let mut steals = std::mem::take(&mut *lock());
    if let Some(missed) = outcome.output.missed {
        (steals.idle_entries, steals.number) = (missed.idle_entries, missed.number);
        let at = |row: &why::MissedRow| MissedAt {
            nearest: row.nearest.place(),
            number: row.number,
            violated_ns: row.violated_ns,
        };
        steals.by_distance = missed.by_distance.iter().map(at).collect();
    }
    Ok(steals)
}

//! The missed steals of a trace, by the definition of `why`, and the episodes of violation of chosen waiters, by that of `workcons`.

use super::main_findings::is_beyond_limits;
use crate::{AskedPart, MissedAt, MissedSteal, MissedSteals, ViolationList};
use anyhow::Result;
use sched::episodes::Ended;
use sched::pass::Window;
use sched::{Chosen, SchedState, Task};
use session::Session;
use session::args::BeginArgs;
use std::sync::{Mutex, PoisonError};
use why::{Cases, ListedCase, Why};
use workcons::{ListedEpisode, Options, Waiters, WorkConservation};

/// The options by which `workcons` and `why` count the waiters of a part of a trace: the tasks that are chosen in the place of the
/// application, or all that can be moved.
pub(super) fn options<'o>(session: &'o Session, chosen: Option<&'o Chosen<'o>>) -> Options<'o> {
    let plain = Options { strips: None, ..Options::plain(session) };
    match chosen {
        Some(_) => Options { waiters: Waiters::Application, application: chosen, ..plain },
        None => plain,
    }
}

/// Reads the trace, and lists the episodes of violation of a part of it.
pub(super) fn violations(session: &Session, part: &AskedPart) -> Result<ViolationList> {
    let chosen = |task: &Task, _: &SchedState| part.has(task.pid);
    let options = options(session, part.pids.as_ref().map(|_| &chosen as &Chosen<'_>));
    let found = Mutex::new(ViolationList::default());
    // A panic in another thread ends the pass.
    let lock = || found.lock().unwrap_or_else(PoisonError::into_inner);
    let take = |listed: &ListedEpisode| {
        let Ended { start, duration, .. } = listed.episode;
        lock().list(start, start.after(duration));
    };
    let analysis = || {
        // The pass may begin again.
        *lock() = ViolationList::default();
        WorkConservation::new(&options).listing(&take)
    };
    session.follow(&BeginArgs::default(), part.window, analysis).map(drop)?;
    let list = std::mem::take(&mut *lock());
    Ok(list)
}

/// Reads the trace, and lists the missed steals of a part of it. A whole trace of which parts are beyond a limit is not read for them.
pub(super) fn of(session: &Session, part: &AskedPart) -> Result<MissedSteals> {
    if part.window == Window::default() && part.pids.is_none() && is_beyond_limits(session) {
        let why = "Parts of the file are beyond a limit, so the missed steals are left to schedviz why.";
        return Ok(MissedSteals::unknown(why));
    }
    let chosen = |task: &Task, _: &SchedState| part.has(task.pid);
    let options = options(session, part.pids.as_ref().map(|_| &chosen as &Chosen<'_>));
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
    let outcome = session.follow(&BeginArgs::default(), part.window, analysis)?;
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

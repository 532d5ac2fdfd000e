//! The events before a window that matter in it: of the records before it, and of the note in a part of a trace.

use super::record::{Called, Recorded};
use crate::session::Session;
use plot::{Before, Carried, Plan, Window};
use sched::names::NameHistory;
use sched::{Comm, Ts};
use std::ops::ControlFlow;
use tracedat::{Kept, Record, Trace};

/// A record before a window, with the name of its task.
#[derive(Clone, Debug)]
pub(super) struct Early {
    record: Kept,
    comm: Option<Comm>,
}

impl Early {
    fn of(event: &Recorded<'_>, named: bool) -> Early {
        Early { record: event.record.keep_alone(), comm: named.then(|| event.comm()) }
    }

    fn event<'e>(&'e self, trace: &'e Trace) -> Recorded<'e> {
        Recorded { record: self.record.record(trace), called: self.comm.map_or(Called::Saved, Called::Name) }
    }
}

/// The events of a trace that were kept.
pub(super) fn events<'e>(trace: &'e Trace, carried: &'e [Carried<Early>]) -> Vec<Carried<Recorded<'e>>> {
    carried.iter().map(|carried| Carried { part: carried.part, event: carried.event.event(trace) }).collect()
}

/// The records before a window that matter in it.
pub(super) fn of_window(
    session: &Session,
    plan: &Plan,
    window: &Window,
    called: Option<&NameHistory>,
) -> Vec<Carried<Early>> {
    let mut before = Before::new(plan, &window.cpus);
    if plan.looks_back() {
        records_until(session, window.from, &mut |record| {
            if before.wants(record.id()) || record.lost.is_some() {
                let event = Recorded::new(record, called);
                before.event(&event, || Early::of(&event, called.is_some()));
            }
        });
    }
    before.finish()
}

/// All records before an instant.
fn records_until(session: &Session, from: Ts, take: &mut dyn FnMut(&Record<'_>)) {
    session.trace.records_from(session.start, &mut |record| {
        if record.ts >= from {
            return ControlFlow::Break(());
        }
        take(record);
        ControlFlow::Continue(())
    });
}

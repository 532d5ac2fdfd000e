//! The sleeps that tasks ask for, as records of a trace show them.

use parse::Record;
use sched::{Cpu, Pid, Ts};
use session::Session;
use session::timers::SetTimers;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

/// The call that asks for a sleep of a given length, or with the lowest bit of its flags until an absolute time.
pub(crate) const CLOCK_SLEEP: &str = "sys_enter_clock_nanosleep";

/// The places of records from which the class of a sleep follows.
#[derive(Debug, Default)]
pub(crate) struct TimerPlaces {
    /// The calls that ask for a sleep until an absolute time.
    pub(crate) absolute: BTreeSet<(Ts, Cpu)>,
    /// The expiries of timers that a task set with an expiry that the kernel counts as absolute, with that task.
    pub(crate) set_absolute: BTreeMap<(Ts, Cpu), Pid>,
}

impl TimerPlaces {
    /// Reads the records of the window, and those before it that set timers, `most` of each at most.
    pub(crate) fn of(session: &Session, most: u64) -> TimerPlaces {
        let trace = &session.trace;
        let asks = trace.format_named("syscalls", CLOCK_SLEEP).map(|format| format.id);
        let (mut places, mut set) = (TimerPlaces::default(), SetTimers::of(trace));
        if asks.is_none() && set.is_none() {
            return places;
        }
        let mut take = |record: &Record<'_>| {
            if record.ts > session.to {
                return ControlFlow::Break(());
            }
            let expired = set.as_mut().and_then(|set| set.take(record)).filter(|timer| timer.is_absolute);
            if record.ts >= session.from {
                if Some(record.id()) == asks && record.number("flags").is_some_and(|flags| flags & 1 == 1) {
                    places.absolute.insert((record.ts, record.cpu));
                }
                if let Some(timer) = expired {
                    places.set_absolute.insert((record.ts, record.cpu), timer.task);
                }
            }
            let set = set.as_ref().map_or(0, SetTimers::count);
            let kept = places.absolute.len() + places.set_absolute.len() + set;
            if (kept as u64) < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        // The pass reports the losses of a damaged file.
        let _ = trace.records(&mut take);
        places
    }
}

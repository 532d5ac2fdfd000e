//! The timers that tasks set, and the sleeps that they ask for, as records of a trace show them.

use crate::model::Model;
use parse::{Record, Trace};
use sched::seeded::SeededMap;
use sched::{Cpu, Pid, Ts};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

/// The call that asks for a sleep of a given length, or with the lowest bit of its flags until an absolute time.
pub(crate) const CLOCK_SLEEP: &str = "sys_enter_clock_nanosleep";

/// The bit of a timer's mode that makes its expiry relative.
const RELATIVE: i64 = 1;

/// The bits of a record's flags of an interrupt, or its softirq, that emitted it.
const IN_INTERRUPT: i64 = 0x18;

/// The places of records from which the class of a sleep follows.
#[derive(Debug, Default)]
pub(crate) struct TimerPlaces {
    /// The calls that ask for a sleep until an absolute time.
    pub(crate) absolute: BTreeSet<(Ts, Cpu)>,
    /// The expiries of timers that a task set with an expiry that the kernel counts as absolute, with that task.
    pub(crate) set_absolute: BTreeMap<(Ts, Cpu), Pid>,
}

impl TimerPlaces {
    /// Reads the records of a trace that has such events: at most as many as the model may have changes of states.
    pub(crate) fn of(trace: &Trace, file_bytes: u64) -> TimerPlaces {
        let id = |system: &str, name: &str| trace.format_named(system, name).map(|format| format.id);
        let asks = id("syscalls", CLOCK_SLEEP);
        let [starts, expires] = ["hrtimer_start", "hrtimer_expire_entry"].map(|name| id("timer", name));
        let mut places = TimerPlaces::default();
        if asks.is_none() && (starts.is_none() || expires.is_none()) {
            return places;
        }
        let most = Model::most_turns_of(file_bytes);
        // The timers that are set with an absolute expiry, by their addresses.
        let mut set: SeededMap<i64, Pid> = SeededMap::default();
        let mut take = |record: &Record<'_>| {
            let id = Some(record.id());
            if id == asks && record.number("flags").is_some_and(|flags| flags & 1 == 1) {
                places.absolute.insert((record.ts, record.cpu));
            } else if id == starts
                && let (Some(timer), Some(mode)) = (record.number("hrtimer"), record.number("mode"))
            {
                let in_task = record.number("common_flags").is_some_and(|flags| flags & IN_INTERRUPT == 0);
                match mode & RELATIVE == 0 && in_task {
                    true => drop(set.insert(timer, record.pid())),
                    false => drop(set.remove(&timer)),
                }
            } else if id == expires
                && let Some(task) = record.number("hrtimer").and_then(|timer| set.remove(&timer))
            {
                places.set_absolute.insert((record.ts, record.cpu), task);
            }
            let kept = places.absolute.len() + places.set_absolute.len() + set.len();
            if (kept as u64) < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        // The pass reports the losses of a damaged file.
        let _ = trace.records(&mut take);
        places
    }
}

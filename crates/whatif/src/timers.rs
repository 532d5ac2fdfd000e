//! The timers that tasks set, and the sleeps that they ask for, as records of a trace show them.

use parse::{Record, Trace};
use sched::seeded::SeededMap;
use sched::serial::bounded;
use sched::{Cpu, Past, Pid, Ts};
use serde::{Deserialize, Serialize};
use session::Session;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

/// The call that asks for a sleep of a given length, or with the lowest bit of its flags until an absolute time.
pub(crate) const CLOCK_SLEEP: &str = "sys_enter_clock_nanosleep";

/// The bit of a timer's mode that makes its expiry relative.
const RELATIVE: i64 = 1;

/// The bits of a record's flags of an interrupt, or its softirq, that emitted it.
const IN_INTERRUPT: i64 = 0x18;

/// The name of the note in [`Past::notes`].
const NAME: &str = "timers";

/// Maximum number of timers in the note of a part.
const MOST_NOTED: usize = 1 << 17;

/// The kinds of records that show the timers of a trace, by the IDs of their formats.
#[derive(Clone, Copy)]
struct TimerKinds {
    asks: Option<u16>,
    starts: Option<u16>,
    expires: Option<u16>,
}

impl TimerKinds {
    fn of(trace: &Trace) -> TimerKinds {
        let id = |system: &str, name: &str| trace.format_named(system, name).map(|format| format.id);
        let [starts, expires] = ["hrtimer_start", "hrtimer_expire_entry"].map(|name| id("timer", name));
        TimerKinds { asks: id("syscalls", CLOCK_SLEEP), starts, expires }
    }

    /// Whether the trace shows which task set the timer that expires.
    fn has_setters(self) -> bool {
        self.starts.is_some() && self.expires.is_some()
    }
}

/// The timers that tasks have set with an expiry that the kernel counts as absolute, each with its task, by their addresses.
#[derive(Debug, Default)]
struct SetTimers(SeededMap<i64, Pid>);

impl SetTimers {
    /// Takes up the timers that a part of a trace has in its note.
    fn of_past(past: Option<&Past>) -> SetTimers {
        let text = past.and_then(|past| past.notes.get(NAME));
        let noted = text.and_then(|text| serde_json::from_str::<NotedTimers>(text).ok()).unwrap_or_default();
        SetTimers(noted.set.into_iter().collect())
    }

    /// Follows a record that sets a timer, or with which one expires: then its task is returned.
    fn take(&mut self, record: &Record<'_>, kinds: TimerKinds) -> Option<Pid> {
        let id = Some(record.id());
        if id == kinds.starts {
            let (timer, mode) = (record.number("hrtimer")?, record.number("mode")?);
            let in_task = record.number("common_flags").is_some_and(|flags| flags & IN_INTERRUPT == 0);
            match mode & RELATIVE == 0 && in_task {
                true => drop(self.0.insert(timer, record.pid())),
                false => drop(self.0.remove(&timer)),
            }
            return None;
        }
        (id == kinds.expires).then(|| self.0.remove(&record.number("hrtimer")?)).flatten()
    }
}

/// The note of a part on the timers that were set before it.
#[derive(Default, Serialize, Deserialize)]
struct NotedTimers {
    /// The address of each timer, and the task that set it.
    #[serde(deserialize_with = "bounded::deserialize")]
    set: Vec<(i64, Pid)>,
}

/// Returns the name and the text of the note for a part that begins at `from`: the timers that tasks had set before it. There is none where the
/// trace does not show them.
pub fn timers_note(trace: &Trace, from: Ts) -> Option<(String, String)> {
    let kinds = TimerKinds::of(trace);
    if !kinds.has_setters() {
        return None;
    }
    let mut set = SetTimers::of_past(trace.past().map(AsRef::as_ref));
    // The pass reports the losses of a damaged file.
    let _ = trace.records(&mut |record| {
        if record.ts >= from {
            return ControlFlow::Break(());
        }
        set.take(record, kinds);
        ControlFlow::Continue(())
    });
    let set: BTreeMap<i64, Pid> = set.0.into_iter().collect();
    let noted = NotedTimers { set: set.into_iter().take(MOST_NOTED).collect() };
    Some((NAME.to_owned(), serde_json::to_string(&noted).ok()?))
}

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
        let (trace, kinds) = (&session.trace, TimerKinds::of(&session.trace));
        let mut places = TimerPlaces::default();
        if kinds.asks.is_none() && !kinds.has_setters() {
            return places;
        }
        let mut set = SetTimers::of_past(trace.past().map(AsRef::as_ref));
        let mut take = |record: &Record<'_>| {
            if record.ts > session.to {
                return ControlFlow::Break(());
            }
            let expired = set.take(record, kinds);
            if record.ts >= session.from {
                if Some(record.id()) == kinds.asks && record.number("flags").is_some_and(|flags| flags & 1 == 1) {
                    places.absolute.insert((record.ts, record.cpu));
                }
                if let Some(task) = expired {
                    places.set_absolute.insert((record.ts, record.cpu), task);
                }
            }
            let kept = places.absolute.len() + places.set_absolute.len() + set.0.len();
            if (kept as u64) < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        // The pass reports the losses of a damaged file.
        let _ = trace.records(&mut take);
        places
    }
}

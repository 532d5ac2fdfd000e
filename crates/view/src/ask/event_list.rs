//! The events of a trace around an instant, page by page in both directions, and the columns of a window that have any.

use crate::ask::event_choice::{ChosenEvents, EventChoice};
use crate::ask::filter::ChosenTasks;
use crate::ask::questions::{AskedWindow, Fault};
use crate::index::viewed::Viewed;
use parse::Record;
use sched::{Cpu, Dur, Pid, Ts};
use serde_json::{Value, json};
use std::collections::{BTreeSet, VecDeque};
use std::ops::ControlFlow;

/// The maximum number of events of an answer, before its place and behind it.
pub(crate) const MOST_EVENTS: usize = 500;
/// The number of records that a question reads; a search goes on where it stopped.
const SEARCHED: u64 = 5_000_000;
/// The number of records that a step back begins with.
const STEP: u64 = 20_000;
/// The maximum number of columns of a question for ticks.
pub(crate) const MOST_COLUMNS: u64 = 8192;
/// The maximum number of ticks of a kind of row: more are no ticks.
const MOST_TICKS: usize = 20_000;

/// A place among the chosen events: an instant, and the number of chosen events of that instant before the place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EventPlace {
    /// The instant, in nanoseconds from the start of the trace.
    pub(crate) ns: u64,
    /// The number of chosen events of the instant that lie before the place.
    pub(crate) nth: u64,
}

/// A question for events around a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EventQuestion {
    /// The events that are wanted.
    pub(crate) choice: EventChoice,
    /// The window that they lie in, its last instant included.
    pub(crate) window: AskedWindow,
    /// The place that the events are around.
    pub(crate) place: EventPlace,
    /// The maximum numbers of events before the place and behind it.
    pub(crate) numbers: (usize, usize),
}

/// A question for the columns of a window that have events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TickQuestion {
    /// The events that are wanted.
    pub(crate) choice: EventChoice,
    /// The window that the columns divide.
    pub(crate) window: AskedWindow,
    /// The number of columns.
    pub(crate) columns: u64,
}

/// An event of the list with its place.
struct Listed {
    place: EventPlace,
    event: Value,
}

/// A search in one direction.
struct Found {
    events: VecDeque<Listed>,
    /// The place at which the search goes on; nothing where there is no further event.
    next: Option<EventPlace>,
}

/// The reader of the chosen events of a window.
struct EventReader<'r, 't> {
    trace: &'r Viewed<'t>,
    chosen: &'r ChosenEvents<'r>,
    from: Ts,
    to: Ts,
}

impl EventReader<'_, '_> {
    fn ns(&self, ts: Ts) -> u64 {
        ts.since(self.trace.extent().0).0
    }

    fn ts(&self, ns: u64) -> Ts {
        self.trace.extent().0.after(Dur(ns))
    }

    /// Reads the records from an instant on; `take` gets the place behind those before, and whether the record is chosen.
    fn read(&self, from: Ts, take: &mut dyn FnMut(&Record<'_>, EventPlace, bool) -> ControlFlow<()>) {
        let mut last = EventPlace { ns: self.ns(from), nth: 0 };
        self.trace.trace.records_from(from, &mut |record| {
            if record.ts > self.to {
                return ControlFlow::Break(());
            }
            let ns = self.ns(record.ts);
            if ns != last.ns {
                last = EventPlace { ns, nth: 0 };
            }
            let is_chosen = self.chosen.has(record);
            let flow = take(record, last, is_chosen);
            last.nth += u64::from(is_chosen);
            flow
        });
    }

    /// The events from a place on.
    fn behind(&self, place: EventPlace, number: usize) -> Found {
        let mut found = Found { events: VecDeque::new(), next: None };
        let from = self.ts(place.ns);
        if number == 0 || from > self.to {
            return found;
        }
        let mut searched = 0;
        self.read(from.max(self.from), &mut |record, at, is_chosen| {
            searched += 1;
            let is_wanted = is_chosen && at >= place;
            if found.events.len() == number && is_wanted || searched > SEARCHED {
                found.next = Some(at);
                return ControlFlow::Break(());
            }
            if is_wanted {
                found.events.push_back(Listed { place: at, event: self.event(record, at) });
            }
            ControlFlow::Continue(())
        });
        found
    }

    /// The last events before a place. Reads stretches that reach further and further back.
    fn before(&self, place: EventPlace, number: usize) -> Found {
        let mut found = Found { events: VecDeque::new(), next: None };
        let last = EventPlace { ns: self.ns(self.to).saturating_add(1), nth: 0 };
        let (mut end, mut searched) = (place.min(last), 0);
        let mut length = self.length_of(STEP);
        while number > 0
            && found.events.len() < number
            && self.ts(end.ns) >= self.from
            && (end.ns, end.nth) > (self.ns(self.from), 0)
        {
            if searched > SEARCHED {
                found.next = Some(end);
                return found;
            }
            let begin = self.ts(end.ns.saturating_sub(length)).max(self.from);
            let wanted = number - found.events.len();
            let (mut part, mut read) = (VecDeque::new(), 0);
            self.read(begin, &mut |record, at, is_chosen| {
                read += 1;
                // Places of one instant are those of its chosen events: a record that is not chosen has that of the next one.
                if at >= end || read > SEARCHED {
                    return ControlFlow::Break(());
                }
                if is_chosen {
                    if part.len() == wanted {
                        part.pop_front();
                    }
                    part.push_back(Listed { place: at, event: self.event(record, at) });
                }
                ControlFlow::Continue(())
            });
            searched += read;
            if read > SEARCHED && length > 1 {
                // The part that was read is the far one.
                length = (length / 8).max(1);
                continue;
            }
            part.into_iter().rev().for_each(|event| found.events.push_front(event));
            end = EventPlace { ns: self.ns(begin), nth: 0 };
            length = length.saturating_mul(if read < 4 * STEP { 4 } else { 1 });
        }
        let first = found.events.front().map(|event| event.place);
        // Whether there is one before the first is known by the next search.
        let start = EventPlace { ns: self.ns(self.from), nth: 0 };
        found.next = first.filter(|first| found.events.len() == number && *first > start);
        found
    }

    /// The time that so many records take on average.
    fn length_of(&self, records: u64) -> u64 {
        // A switch and a wakeup take some 40 bytes.
        let all = (self.trace.trace.data_size() / 40).max(1);
        (u128::from(self.trace.span()) * u128::from(records) / u128::from(all)).clamp(1, u128::from(u64::MAX)) as u64
    }

    fn event(&self, record: &Record<'_>, at: EventPlace) -> Value {
        let name = record.format().map_or_else(|| format!("event {}", record.id()), |format| format.name.to_string());
        // Nothing, or a number, 0 where it is unknown.
        let lost = record.lost.map(|number| number.unwrap_or(0));
        json!({
            "lost": lost, "at": at.ns, "nth": at.nth, "cpu": record.cpu, "pid": record.pid(), "comm": record.command().to_string(),
            "name": name, "text": record.printed(),
        })
    }
}

/// The reader of the events that are chosen, or the reason for which there are none.
fn with_reader(
    trace: &Viewed<'_>,
    (choice, window): (&EventChoice, AskedWindow),
    tasks: Option<&ChosenTasks>,
    answer: impl FnOnce(&EventReader<'_, '_>) -> Value,
) -> Result<Value, Fault> {
    let store = trace.store()?;
    let (from, to) = window.within(trace)?;
    let tasks = tasks.map(|tasks| |pid: Pid| tasks.has(store.index().tasks(), pid));
    let tasks = tasks.as_ref().map(|tasks| tasks as &dyn Fn(Pid) -> bool);
    Ok(match choice.chosen(trace.trace, tasks) {
        Err(none) => json!({ "none": none }),
        Ok(chosen) => answer(&EventReader { trace, chosen: &chosen, from, to }),
    })
}

/// The events around a place.
pub(crate) fn answer(trace: &Viewed<'_>, asked: &EventQuestion, tasks: Option<&ChosenTasks>) -> Result<Value, Fault> {
    with_reader(trace, (&asked.choice, asked.window), tasks, |reader| {
        let (before, behind) =
            (reader.before(asked.place, asked.numbers.0), reader.behind(asked.place, asked.numbers.1));
        let place = |place: Option<EventPlace>| place.map(|at| json!({ "ns": at.ns, "nth": at.nth }));
        let events: Vec<Value> = before.events.into_iter().chain(behind.events).map(|listed| listed.event).collect();
        json!({ "events": events, "before": place(before.next), "behind": place(behind.next) })
    })
}

/// The columns of a window that have events: by CPU, and by the task that an event names in a field `pid` or else was on the CPU.
pub(crate) fn ticks(trace: &Viewed<'_>, asked: &TickQuestion, tasks: Option<&ChosenTasks>) -> Result<Value, Fault> {
    with_reader(trace, (&asked.choice, asked.window), tasks, |reader| {
        let span = u128::from(reader.to.since(reader.from).0.max(1));
        let mut cpus: BTreeSet<(u64, Cpu)> = BTreeSet::new();
        let mut pids: BTreeSet<(u64, Pid)> = BTreeSet::new();
        let (mut searched, mut number, mut are_all) = (0, 0u64, true);
        reader.read(reader.from, &mut |record, _, is_chosen| {
            searched += 1;
            if is_chosen {
                number += 1;
                let at = u128::from(record.ts.since(reader.from).0);
                let column = (at * u128::from(asked.columns) / span).min(u128::from(asked.columns - 1)) as u64;
                cpus.insert((column, record.cpu));
                let named = record.number("pid").and_then(|pid| i32::try_from(pid).ok()).map(Pid);
                pids.insert((column, named.unwrap_or(record.pid())));
            }
            are_all = searched < SEARCHED && cpus.len() <= MOST_TICKS && pids.len() <= MOST_TICKS;
            if are_all { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        match are_all {
            true => json!({ "number": number, "cpus": cpus, "tasks": pids }),
            false => json!({ "number": null, "cpus": [], "tasks": [] }),
        }
    })
}

/// The kinds of events of a trace with their numbers.
pub(crate) fn kinds(trace: &Viewed<'_>) -> Value {
    let kinds = trace.trace.event_counts().into_iter().map(
        |event| json!({ "system": event.system.to_string(), "name": event.name.to_string(), "count": event.count }),
    );
    json!({ "kinds": kinds.collect::<Vec<_>>() })
}

//! The events before a window that matter in it: of the records before it, and of the note in a part of a trace.
//!
//! `schedviz cut` notes them for the specifications that come with the program, and for those that it is given. Each is
//! noted with its text: a specification that has changed since is another one.

use crate::recorded::{Called, Recorded, catalog};
use crate::{Before, Carried, CarriedPart, Plan, Spec, VIEWS, Window};
use anyhow::{Context, Result};
use parse::{Aliases, Kept, Record, Rewriter, Trace};
use sched::names::NameHistory;
use sched::serial::exact;
use sched::{Comm, Cpu, Past, Ts};
use serde::{Deserialize, Serialize};
use session::Session;
use std::ops::ControlFlow;

/// The name of the note in [`Past::notes`].
const NAME: &str = "plot";

/// Events of one specification that a note may have; a specification with more is not noted.
const MOST_NOTED: usize = 1 << 14;

/// A record before a window, with the name of its task.
#[derive(Clone, Debug)]
pub(crate) struct Early {
    record: Kept,
    comm: Comm,
}

impl Early {
    fn of(event: &Recorded<'_>) -> Early {
        Early { record: event.record.keep_alone(), comm: event.comm() }
    }

    fn event<'e>(&'e self, trace: &'e Trace) -> Recorded<'e> {
        Recorded { record: self.record.record(trace), called: Called::Name(self.comm) }
    }
}

/// The events of a trace that were kept.
pub(crate) fn events<'e>(trace: &'e Trace, carried: &'e [Carried<Early>]) -> Vec<Carried<Recorded<'e>>> {
    carried.iter().map(|carried| Carried { part: carried.part, event: carried.event.event(trace) }).collect()
}

/// A line of the report.
pub(crate) const UNKNOWN: &str = "this part of a trace has no note on this specification: intervals that began before the \
    part and values that held then are missing (schedviz cut --plot SPEC notes them)";

/// The records before a window that matter in it, and whether all that precedes the trace is known.
pub(crate) fn of_window(
    session: &Session,
    plan: &Plan,
    window: &Window,
    called: Option<&NameHistory>,
) -> (Vec<Carried<Early>>, bool) {
    if !plan.looks_back() {
        return (Vec::new(), true);
    }
    let mut before = Before::new(plan, &window.cpus);
    let is_known = resume(session, plan, &mut before);
    records_until(session, window.from, &mut |record| {
        if before.wants(record.id()) || record.lost.is_some() {
            let event = Recorded::new(record, called);
            before.event(&event, || Early::of(&event));
        }
    });
    (before.finish(), is_known)
}

/// All records before an instant.
fn records_until(session: &Session, from: Ts, take: &mut dyn FnMut(&Record<'_>)) {
    if from <= session.start {
        return;
    }
    session.trace.records_from(session.start, &mut |record| {
        if record.ts >= from {
            return ControlFlow::Break(());
        }
        take(record);
        ControlFlow::Continue(())
    });
}

/// The events before a part that matter in a specification.
#[derive(Serialize, Deserialize)]
struct Noted {
    source: String,
    events: Vec<NotedEvent>,
}

#[derive(Serialize, Deserialize)]
struct NotedEvent {
    part: CarriedPart,
    ts: Ts,
    cpu: Cpu,
    buffer: usize,
    #[serde(with = "exact")]
    comm: Comm,
    payload: Vec<u8>,
}

impl NotedEvent {
    fn of(carried: &Carried<Early>, trace: &Trace) -> NotedEvent {
        let Carried { part, event: Early { record, comm } } = carried;
        let record = record.record(trace);
        let (ts, cpu, buffer) = (record.ts, record.cpu, record.buffer);
        NotedEvent { part: *part, ts, cpu, buffer, comm: *comm, payload: record.payload().to_vec() }
    }
}

/// The notes of a part.
fn notes_of(past: &Past) -> Vec<Noted> {
    past.notes.get(NAME).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// Begins with the note of a part, if the trace is one. Returns whether all that precedes the trace is known.
fn resume(session: &Session, plan: &Plan, before: &mut Before<'_, Early>) -> bool {
    let Some(past) = session.trace.past() else { return true };
    let Some(noted) = notes_of(past).into_iter().find(|noted| noted.source == plan.source()) else { return false };
    for event in noted.events.into_iter().filter(|event| event.ts < past.from) {
        let NotedEvent { part, ts, cpu, buffer, comm, payload } = event;
        let early = Early { record: Kept::of(ts, cpu, buffer, &payload), comm };
        before.resume(part, &early.event(&session.trace), early.clone());
    }
    true
}

/// The note for a part that begins at `from`, with its name: on the specifications that come with the program, those that
/// an earlier part was noted for, and the given ones, as far as they fit the trace. `called` has the names of tasks.
pub fn note(
    session: &Session,
    from: Ts,
    given: &[String],
    called: &NameHistory,
    aliases: &mut Option<Aliases>,
) -> Result<(String, String)> {
    let plans = plans(session, given, aliases.is_some())?;
    let cpus = &session.shown.cpus;
    let mut all: Vec<Before<'_, Early>> = plans.iter().map(|plan| Before::new(plan, cpus)).collect();
    let known: Vec<bool> = plans.iter().zip(&mut all).map(|(plan, before)| resume(session, plan, before)).collect();
    let mut rewriter = aliases.as_mut().map(|aliases| Rewriter::new(&session.trace, aliases));
    if !plans.is_empty() {
        records_until(session, from, &mut |record| {
            let is_wanted = |before: &Before<'_, Early>| before.wants(record.id()) || record.lost.is_some();
            if !all.iter().any(is_wanted) {
                return;
            }
            let event = Recorded::new(record, Some(called));
            let early = match &mut rewriter {
                Some(rewriter) => Early { record: rewriter.keep(record), comm: rewriter.name(event.comm()) },
                None => Early::of(&event),
            };
            for before in all.iter_mut().filter(|before| is_wanted(before)) {
                before.event(&early.event(&session.trace), || early.clone());
            }
        });
    }
    let noted = plans.iter().zip(all).zip(known).filter_map(|((plan, before), is_known)| {
        let carried = before.finish();
        let events = carried.iter().map(|carried| NotedEvent::of(carried, &session.trace)).collect();
        let source = plan.source().to_owned();
        (is_known && carried.len() <= MOST_NOTED).then_some(Noted { source, events })
    });
    let text = serde_json::to_string(&noted.collect::<Vec<_>>()).context("the note of a part")?;
    Ok((NAME.to_owned(), text))
}

/// The specifications whose past is noted.
fn plans(session: &Session, given: &[String], is_anonymous: bool) -> Result<Vec<Plan>> {
    let events = catalog(session);
    let mut plans: Vec<Plan> = Vec::new();
    for named in given {
        plans.push(crate::specified::fitting(session, named)?.1);
    }
    // An anonymous part has no texts of others: those of specifications that an earlier part was noted for.
    let noted = session.trace.past().filter(|_| !is_anonymous).map(|past| notes_of(past)).unwrap_or_default();
    let sources = VIEWS.iter().map(|view| view.source.to_owned()).chain(noted.into_iter().map(|noted| noted.source));
    for source in sources {
        if plans.iter().all(|plan| plan.source() != source)
            && let Ok(plan) = Spec::parse(&source).and_then(|spec| Plan::new(&spec, &events))
        {
            plans.push(plan);
        }
    }
    plans.retain(Plan::looks_back);
    Ok(plans)
}

//! The chosen events of a window, counted: all threads put records into words, and one takes these in order.

use crate::choice::Choice;
use crate::details::Pattern;
use crate::{Edge, Gather, Report, Spans};
use parse::{Neighbours, Record};
use sched::{Cpu, Diagnostics, Dur, Pid, Tracepoint, Ts};
use session::Session;
use session::over_lanes::with_those_of;
use session::patterns::{self, AskedFormats};
use session::progress;
use std::ops::ControlFlow;

/// The number of steps that one thread gathers before it takes them.
const STEPS: usize = 256;

/// A record as far as the counts and the spans need it.
enum GatheredStep {
    /// The tasks that are current on a CPU, which spans that are open follow.
    Current { ts: Ts, cpu: Cpu, pid: Pid, next: Option<Pid>, is_behind_loss: bool },
    /// An event of a kind, by its place in the list of the run.
    Event { ts: Ts, cpu: Cpu, kind: usize, value: Option<f64> },
    /// The beginning or end of a span; with its kind, unless its CPU is not shown.
    Edge { ts: Ts, cpu: Cpu, pid: Pid, edge: Edge, kind: Option<usize> },
}

/// A run of records as steps.
#[derive(Default)]
struct Steps {
    steps: Vec<GatheredStep>,
    /// The kinds of the events, few in so short a run.
    kinds: Vec<String>,
    /// The numbers of the formats of events that are shown.
    occurred: Vec<u16>,
}

impl Steps {
    /// The place of a kind in the list.
    fn kind(&mut self, kind: &str) -> usize {
        self.kinds.iter().position(|known| known == kind).unwrap_or_else(|| {
            self.kinds.push(kind.to_owned());
            self.kinds.len() - 1
        })
    }

    /// Adds a record. `follows`: whether spans can be open.
    fn add(&mut self, record: &Record<'_>, choice: &Choice, follows: bool) {
        let (ts, cpu, pid) = (record.ts, record.cpu, record.pid());
        if follows {
            self.steps.push(GatheredStep::Current {
                ts,
                cpu,
                pid,
                next: next(record),
                is_behind_loss: record.lost.is_some(),
            });
        }
        if !choice.takes_anywhere(record) {
            return;
        }
        let shown = choice.rows.of(cpu).is_some();
        if shown && !self.occurred.contains(&record.id()) {
            self.occurred.push(record.id());
        }
        let text = record.text();
        let edge = if choice.splits() { None } else { edge(record, text.as_deref()) };
        match edge {
            Some(edge) => {
                let kind = shown.then(|| self.kind(&choice.kind(record, text)));
                self.steps.push(GatheredStep::Edge { ts, cpu, pid, edge, kind });
            }
            None if shown => {
                let kind = self.kind(&choice.kind(record, text));
                self.steps.push(GatheredStep::Event { ts, cpu, kind, value: choice.value(record) });
            }
            None => {}
        }
    }

    /// Counts the events, and finds the spans that they end.
    fn take(self, gather: &mut Gather, spans: &mut Spans) {
        let mut places: Vec<Option<usize>> = vec![None; self.kinds.len()];
        let mut place = |gather: &mut Gather, kind: usize| match places.get(kind) {
            Some(Some(place)) => *place,
            _ => {
                let place = gather.place(self.kinds.get(kind).map_or("", String::as_str));
                places[kind] = Some(place);
                place
            }
        };
        for step in self.steps {
            match step {
                GatheredStep::Current { ts, cpu, pid, next, is_behind_loss } if spans.is_open() => {
                    if is_behind_loss {
                        spans.lost(cpu, ts);
                    }
                    spans.current(ts, cpu, pid);
                    next.into_iter().for_each(|next| spans.current(ts, cpu, next));
                }
                GatheredStep::Current { .. } => {}
                GatheredStep::Event { ts, cpu, kind, value } => {
                    let place = place(gather, kind);
                    gather.count(ts, place, value, Some(cpu));
                }
                GatheredStep::Edge { ts, cpu, pid, edge, kind } => {
                    if let Some(kind) = kind {
                        let place = place(gather, kind);
                        gather.count(ts, place, None, None);
                    }
                    spans.edge(ts, cpu, pid, edge, kind.is_some());
                }
            }
        }
    }
}

/// Counts the chosen records of the window, and finds their spans.
pub(crate) fn gather(
    session: &Session,
    choice: &Choice,
    asked: &AskedFormats<'_>,
    rates: bool,
) -> (Report, Diagnostics) {
    let mut gather = Gather::new(session.from, session.to, rates);
    let mut has_occurred = vec![false; choice.names.len()];
    let mut spans = Spans::new(session.from, session.to);
    let follows = !choice.splits() && choice.takes_any_of("ftrace", session);
    let last = session.last();
    let make = |records: &mut dyn Iterator<Item = Neighbours<'_>>| {
        let mut steps = Steps::default();
        for Neighbours { record, .. } in records {
            if record.ts > last {
                return (steps, ControlFlow::Break(()));
            }
            steps.add(&record, choice, follows);
        }
        (steps, ControlFlow::Continue(()))
    };
    let found = progress::watched(&session.trace, session.read.quiet, || {
        let mut take = |steps: Steps| {
            for id in &steps.occurred {
                if let Some(occurs) = has_occurred.get_mut(usize::from(*id)) {
                    *occurs = true;
                }
            }
            steps.take(&mut gather, &mut spans);
        };
        if session.read.threads() > 1 {
            let found = session.trace.records_mapped(session.from, make, &mut |(steps, flow)| {
                take(steps);
                flow
            });
            return with_those_of(session, &found);
        }
        let mut steps = Steps::default();
        let found = session.trace.records_from(session.from, &mut |record| {
            if record.ts > last {
                return ControlFlow::Break(());
            }
            steps.add(record, choice, follows);
            if steps.steps.len() >= STEPS {
                take(std::mem::take(&mut steps));
            }
            ControlFlow::Continue(())
        });
        take(steps);
        with_those_of(session, &found)
    });
    let absent =
        asked.formats.iter().filter(|format| !has_occurred.get(usize::from(format.id)).is_some_and(|occurs| *occurs));
    absent.for_each(|format| gather.add_absent(&patterns::full_name(format)));
    asked.absent.iter().for_each(|pattern| gather.add_absent(pattern));
    if let Some(unmatched) = choice.pattern.as_ref().and_then(Pattern::unmatched) {
        gather.add_absent(&format!("--match {unmatched}"));
    }
    (gather.finish(spans), found)
}

/// The task that a switch makes current.
fn next(record: &Record<'_>) -> Option<Pid> {
    record.format().filter(|format| format.name == Tracepoint::Switch.name())?;
    record.number("next_pid").and_then(|pid| i32::try_from(pid).ok()).map(Pid)
}

/// The beginning or end of a span that a record is, if it is one.
fn edge(record: &Record<'_>, text: Option<&str>) -> Option<Edge> {
    if let Some(text) = text {
        let edge = Edge::of_text(text)?;
        // The names come from an application.
        let escaped = |name: String| sched::event::escaped(name);
        return Some(match edge {
            Edge::Section(name) => Edge::Section(escaped(name)),
            Edge::Begin(name) => Edge::Begin(escaped(name)),
            Edge::End(name) => Edge::End(escaped(name)),
            other => other,
        });
    }
    let format = record.format().filter(|format| format.system == "ftrace")?;
    match format.name.as_str() {
        "funcgraph_entry" | "fgraph_retaddr_entry" => {
            Some(Edge::Entry(record.function("func")?, record.number("depth")?))
        }
        "funcgraph_exit" => {
            let passed = || record.number("rettime")?.checked_sub(record.number("calltime")?)?.try_into().ok();
            Some(Edge::Exit(record.function("func")?, record.number("depth")?, passed().map(Dur)))
        }
        _ => None,
    }
}

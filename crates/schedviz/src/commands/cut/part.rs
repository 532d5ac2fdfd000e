//! What the file of a part has beside its records: the state before the window, and names.

use super::anonymous::{Anonymous, alias};
use super::occupants;
use anyhow::Result;
use events::BurstNotes;
use jobs::JobsNotes;
use offcpu::OffCpuNotes;
use parse::{Aliases, CutPart};
use picks::PicksNotes;
use preemptions::PreemptionsNotes;
use residency::ResidencyNotes;
use sched::past::PastName;
use sched::{Analysis, Cpu, EventIssue, EventKind, NoteTaker, Pass, Past, SchedEvent, SchedState, Topology, Ts};
use session::Session;
use session::timers::TimerExpiries;
use std::cell::RefCell;
use utilization::IdleStatesNotes;
use wakers::WakersNotes;

/// The times at which CPUs go offline in the window.
#[derive(Default)]
struct Offline(Vec<(Cpu, Ts)>);

impl Analysis for Offline {
    type Output = Vec<(Cpu, Ts)>;

    fn before(&mut self, event: &SchedEvent, _: &SchedState) {
        if let EventKind::Offline = event.kind {
            self.0.push((event.cpu, event.ts));
        }
    }

    fn finish(self, _: Ts, _: &SchedState) -> Self::Output {
        self.0
    }
}

/// Follows the trace up to the end of the window, and notes the state at its start.
pub(super) fn session_part(session: &Session, specs: &[String], aliases: &RefCell<Option<Aliases>>) -> Result<CutPart> {
    let options = latency::Options::default();
    let (picked, asked) = (picks::Options::plain(session), preemptions::Options::plain(session));
    let (topology, wakings) = (Topology::default(), wakers::Options::default());
    let tasks = jobs::Options { expiries: TimerExpiries::of(session), ..jobs::Options::default() };
    let stacks = offcpu::Options::for_notes(session);
    let analyses = || {
        let bursts = (latency::NoteTaker::new(&options), BurstNotes::new(&topology));
        let of_cpus = (IdleStatesNotes::default(), ResidencyNotes::default());
        let cpus = (PicksNotes::new(&picked), PreemptionsNotes::new(&asked), of_cpus);
        let sleeps = (WakersNotes::new(&wakings), OffCpuNotes::new(&stacks), JobsNotes::new(&tasks));
        ((NoteTaker::default(), Offline::default()), bursts, cpus, sleeps)
    };
    let outcome = session.watched(|| {
        let events = Anonymous { events: session.trace.events()?, aliases };
        Pass::over(events).window(session.window).run(analyses)
    })?;
    let ((past, offline), (notes, bursts), (picks, preemptions, (idle_states, residency)), (wakers, offcpu, jobs)) =
        outcome.output;
    let end = session.trace.extent().map_or(session.to, |(_, end)| end);
    // Where a clock stepped back the last event is later than the end.
    let to = if session.to >= end { outcome.to.max(end) } else { session.to };
    let mut past = Past { from: outcome.from, to, end: end.max(to), ..past };
    let late = outcome.diagnostics.count(EventIssue::LateStart);
    if late > 0 {
        past.repairs.insert(EventIssue::LateStart.diagnostic().name().to_owned(), late);
    }
    // The addresses of stacks are among what an anonymous part has not.
    let offcpu = offcpu.filter(|_| aliases.borrow().is_none());
    past.notes.extend(
        [notes, bursts, picks, preemptions, idle_states, residency, wakers, offcpu, jobs].into_iter().flatten(),
    );
    let called = session.names()?;
    past.notes.extend([plot::note(session, past.from, specs, &called, &mut aliases.borrow_mut())?]);
    past.notes.extend(session::timers::note(&session.trace, past.from));
    past.notes.extend(session.note_on_leavers());
    // It has names of tasks.
    past.notes.extend(session.note_on_application().filter(|_| aliases.borrow().is_none()));
    past.notes.extend(membership::note(
        &session.trace,
        session.machine.as_ref(),
        past.from,
        aliases.borrow().is_some(),
    ));
    let before = Ts(past.from.0.saturating_sub(1));
    let names = called.at(before).into_iter();
    past.occupants = occupants::at(session, past.from).map_err(|e| session.named(e))?;
    past.occupants.iter_mut().for_each(|occupant| occupant.comm = alias(aliases, occupant.comm));
    past.frequencies = dat2graph::in_force(session).map_err(|e| session.named(e))?;
    past.names = names.map(|(pid, name)| PastName { pid, name: alias(aliases, name) }).collect();
    // A trace.dat has its own; those of other recordings are few, and trace-cmd takes the names of tasks from nowhere else.
    let at_end = session.trace.origin().map(|_| called.at(session.to));
    let names = at_end.into_iter().flatten().map(|(pid, name)| (pid, alias(aliases, name))).collect();
    Ok(CutPart { past, offline, without_symbols: false, version: None, names })
}

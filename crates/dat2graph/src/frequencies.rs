//! The frequencies of the CPUs in a window, from the changes in it and those in force at its start.

use parse::{CpuReader, Want};
use sched::{Cpu, Dur, EventKind, SchedEvent, Tracepoint, Ts};
use session::Session;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// A change of a CPU's frequency, in kHz.
pub(crate) type Change = (Ts, Cpu, u32);

/// How far before the window changes are looked for at first; then four times as far, and so on.
const FIRST_LOOK: Dur = Dur(100_000_000);

/// The last change of each CPU before the window, where changes were recorded.
pub fn in_force(session: &Session) -> Result<Vec<Change>, parse::Error> {
    let format = session.trace.format_of(Tracepoint::Frequency);
    if !format.is_some_and(|format| session.trace.occurs(format.id)) {
        return Ok(Vec::new());
    }
    let reader = session.trace.cpu_reader(Want::Switches)?;
    let mut changes = changes(session, &reader);
    changes.retain(|(ts, ..)| *ts < session.from);
    Ok(changes)
}

/// All changes in the window, and the last one of each CPU before it. Any CPU can record the change of another.
pub(crate) fn changes(session: &Session, reader: &CpuReader<'_>) -> Vec<Change> {
    let past = session.trace.past();
    let (from, to) = (session.from, session.to);
    // A part of a trace begins where its past ends.
    let start = past.map_or(session.start, |past| past.from);
    let mut changes = between(session, reader, from, to);
    let mut in_force: BTreeMap<Cpu, Change> = BTreeMap::new();
    let (mut until, mut back) = (from, FIRST_LOOK);
    // The changes found are later than all that a further look finds.
    while until > start && session.observed.iter().any(|cpu| !in_force.contains_key(cpu)) {
        let since = Ts(until.0.saturating_sub_unsigned(back.0)).max(start);
        let mut latest: BTreeMap<Cpu, Change> = BTreeMap::new();
        for change in between(session, reader, since, Ts(until.0.saturating_sub(1))) {
            latest.insert(change.1, change);
        }
        for (cpu, change) in latest {
            in_force.entry(cpu).or_insert(change);
        }
        (until, back) = (since, Dur(back.0.saturating_mul(4)));
    }
    for change in past.iter().flat_map(|past| &past.frequencies) {
        in_force.entry(change.1).or_insert(*change);
    }
    changes.extend(in_force.into_values());
    changes.sort_unstable();
    changes
}

/// The changes from `from` to `to`, in the order of their times.
fn between(session: &Session, reader: &CpuReader<'_>, from: Ts, to: Ts) -> Vec<Change> {
    let found = session.trace.in_parallel(session.observed.clone(), |cpu| {
        let mut changes: Vec<Change> = Vec::new();
        for buffer in reader.buffers_of(cpu) {
            reader.events(buffer, cpu, Some(from), &mut |event: &SchedEvent| {
                if event.ts > to {
                    return ControlFlow::Break(());
                }
                if let EventKind::Frequency { khz, target } = event.kind
                    && event.ts >= from
                {
                    changes.push((event.ts, target, khz));
                }
                ControlFlow::Continue(())
            });
        }
        changes
    });
    let mut changes: Vec<Change> = found.into_iter().flatten().collect();
    changes.sort_by_key(|(ts, cpu, _)| (*ts, *cpu));
    changes
}

/// Why no band is drawn.
pub(crate) fn why_none(session: &Session) -> &'static str {
    let format = session.trace.format_of(Tracepoint::Frequency);
    if format.is_some_and(|format| session.trace.occurs(format.id)) {
        "power:cpu_frequency: no change before the end of the window: no band is drawn"
    } else {
        "power:cpu_frequency was not recorded: no band is drawn"
    }
}

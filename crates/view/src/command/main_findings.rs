//! The main findings about a trace, by the definition of `findings`.

use crate::{ListKind, MainFinding, MainFindings, MainMore, MainPlace};
use anyhow::Result;
use findings::{FindingPlace, FindingsReport, Observation, PlaceKind, RankedFinding};
use parse::FileIssue;
use sched::Dur;
use session::Session;

/// Reads the trace, and ranks its findings. A trace of which parts are beyond a limit, whose kilobytes can be millions of events, is not read
/// for them.
pub(super) fn of(session: &Session) -> Result<MainFindings> {
    if is_beyond_limits(session) {
        let nothing = "Parts of the file are beyond a limit, so the main findings are left to schedviz findings.";
        return Ok(MainFindings { nothing: Some(nothing.to_owned()), ..MainFindings::default() });
    }
    let report: FindingsReport = findings::measured(session)?.output;
    let (unit, nothing) = (report.unit(), report.nothing.clone());
    let findings = report.findings.into_iter().map(|finding| main_finding(session, finding)).collect();
    Ok(MainFindings { unit, nothing, findings })
}

/// Whether parts of the file of a trace were left out, since they are beyond a limit.
pub(super) fn is_beyond_limits(session: &Session) -> bool {
    session.trace.diagnostics().count(FileIssue::BeyondLimit) > 0
}

fn main_finding(session: &Session, finding: RankedFinding) -> MainFinding {
    let (command, options) = finding.closer();
    MainFinding {
        price: finding.price(),
        command: finding.on(&session.drawable).one_line(command, &options),
        place: finding.place.and_then(|found| place(session, &found)),
        list: list(&finding.observation),
        sentence: finding.sentence,
    }
}

/// The place of a finding on the time axis; the page shows those that have a CPU.
fn place(session: &Session, place: &FindingPlace) -> Option<MainPlace> {
    let from = session.start.after(Dur(place.start_in_trace_ns));
    let more = match (place.kind, place.pid) {
        (PlaceKind::Wait, Some(_)) => MainMore::Wait,
        (PlaceKind::Episode, _) => MainMore::Steps,
        _ => MainMore::Nothing,
    };
    Some(MainPlace { from, to: from.after(place.length_ns), cpu: place.cpu?, pid: place.pid, more })
}

/// The list of the page that has more of the kind of a finding.
fn list(observation: &Observation) -> Option<ListKind> {
    match observation {
        Observation::Violation { .. } | Observation::Affinity { .. } => Some(ListKind::Episodes),
        Observation::PathQueued { .. }
        | Observation::HeldBack { .. }
        | Observation::Starved { .. }
        | Observation::SlowWakeups { .. } => Some(ListKind::Waits),
        Observation::Herds { .. } => Some(ListKind::Herds),
        _ => None,
    }
}

//! The main findings about a trace, by the definition of `findings`.

use crate::{ListKind, MainFinding, MainFindings, MainPlace};
use anyhow::Result;
use findings::{FindingsReport, Observation, RankedFinding};
use sched::{Cpu, Dur, Pid};
use session::Session;

/// Reads the trace, and ranks its findings.
pub(super) fn of(session: &Session) -> Result<MainFindings> {
    let report: FindingsReport = findings::measured(session)?.output;
    let (unit, nothing) = (report.unit(), report.nothing.clone());
    let findings = report.findings.into_iter().map(|finding| main_finding(session, finding)).collect();
    Ok(MainFindings { unit, nothing, findings })
}

fn main_finding(session: &Session, finding: RankedFinding) -> MainFinding {
    let (command, options) = finding.closer();
    MainFinding {
        price: finding.price(),
        command: finding.on(&session.drawable).one_line(command, &options),
        place: place(session, &finding.observation),
        list: list(&finding.observation),
        sentence: finding.sentence,
    }
}

/// The place that a finding speaks of.
fn place(session: &Session, observation: &Observation) -> Option<MainPlace> {
    let at = |start_in_trace_ns: u64, length: Dur, cpu: Cpu, pid: Option<Pid>| {
        let from = session.start.after(Dur(start_in_trace_ns));
        Some(MainPlace { from, to: from.after(length), cpu, pid })
    };
    match observation {
        Observation::Starved { start_in_trace_ns, longest_ns, cpu, pid, .. } => {
            at(*start_in_trace_ns, *longest_ns, *cpu, Some(*pid))
        }
        Observation::HeldBack { start_in_trace_ns, longest_ns, cpu, pid, .. } => {
            at(*start_in_trace_ns, *longest_ns, *cpu, *pid)
        }
        Observation::Herds { start_in_trace_ns, drained_after_ns, dest, .. } => {
            at(*start_in_trace_ns, drained_after_ns.unwrap_or_default(), *dest, None)
        }
        _ => None,
    }
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

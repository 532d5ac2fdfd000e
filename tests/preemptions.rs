//! `schedviz preemptions` on recordings: bounds from the flags of events against the instants that the probe recorded.

use crate::support::{events, schedviz};
use parse::Trace;
use preemptions::{Kind, Options, PreemptionCase, Preemptions, PreemptionsReport};
use sched::probe::Probe;
use sched::{Cpu, EventKind, Pass, Pid, SchedEvent, Ts};
use std::path::PathBuf;

/// The recordings of requests, where the folder of recordings is there.
fn recorded() -> Vec<PathBuf> {
    let Some(traces) = std::env::var_os("SCHEDVIZ_TRACES") else { return Vec::new() };
    let names = ["7.2-resched", "preempt-7.2-lazy", "preempt-7.2-full", "preempt-7.2-none"];
    names.iter().map(|name| PathBuf::from(&traces).join(format!("extra/newer/{name}.dat"))).collect()
}

fn report(events: &[SchedEvent], by_probe: bool) -> PreemptionsReport {
    let options = Options { by_probe, worst: usize::MAX, ..Options::default() };
    Pass::over(events).run(|| Preemptions::new(&options)).unwrap_or_else(|never| match never {}).output
}

/// A record of a request.
struct Truth {
    ts: Ts,
    cpu: Cpu,
    pid: Pid,
    kind: Kind,
    /// Whether the record makes a lazy request immediate.
    promotes: bool,
}

/// The requests by the records alone: an immediate one behind a lazy one makes it immediate, unless its own flags show that
/// there is no lazy one any more.
fn truth(events: &[SchedEvent]) -> Vec<Truth> {
    let mut found: Vec<Truth> = Vec::new();
    for event in events {
        let EventKind::Probe { probe: Probe::Reschedules { pid, cpu, flag }, .. } = event.kind else { continue };
        let kind = if flag == 5 { Kind::Lazy } else { Kind::Immediate };
        let before = found.iter().rev().find(|truth| truth.cpu == cpu && truth.pid == pid);
        let is_open = event.cpu != cpu || event.flags & 2 != 0;
        let promotes =
            kind == Kind::Immediate && is_open && before.is_some_and(|t| t.kind == Kind::Lazy && !t.promotes);
        found.push(Truth { ts: event.ts, cpu, pid, kind, promotes });
    }
    found
}

#[test]
fn bounds_from_flags_contain_the_recorded_instants() {
    let (mut cases, mut shown, mut right) = (0, 0, 0);
    for path in recorded() {
        let trace = Trace::open(&path, parse::Options::default()).expect("a readable recording");
        let events = events(&trace);
        let stock: Vec<SchedEvent> =
            events.iter().filter(|event| !matches!(event.kind, EventKind::Probe { .. })).copied().collect();
        let truth = truth(&events);
        let within = |case: &PreemptionCase| {
            let matches = |t: &&Truth| {
                (t.cpu, t.pid) == (case.cpu, case.pid) && (case.earliest_ns..=case.latest_ns).contains(&t.ts)
            };
            truth.iter().filter(|t| !t.promotes).filter(matches).map(|t| t.kind).collect::<Vec<Kind>>()
        };
        let flags = report(&stock, false);
        for case in &flags.longest {
            cases += 1;
            let kinds = within(case);
            assert!(!kinds.is_empty(), "{}: {case:?}", path.display());
            if case.kind != Kind::Unknown {
                shown += 1;
                right += usize::from(kinds.last() == Some(&case.kind));
            }
        }
        let exact = report(&events, true);
        println!("{}: {:?} by flags, {:?} by the probe", path.display(), flags.requests, exact.requests);
        // The probe sees every request that the flags show, and the same tasks at the ends.
        assert!(flags.requests <= exact.requests, "{}", path.display());
        for case in &exact.longest {
            assert_eq!(case.earliest_ns, case.latest_ns, "{case:?}");
            let is_long = case.lazy_at_least_ns.is_some_and(|lazy| lazy.0 > 5_000_000);
            assert_eq!(is_long, exact.long_lazy.contains(case), "{case:?}");
        }
    }
    println!("{cases} cases, {shown} with a kind, {right} right");
    assert!(right * 100 >= shown * 98, "{right} of {shown}");
}

#[test]
fn old_kernels_have_no_lazy_requests_and_the_report_states_it() {
    for name in ["hotplug-5.10.dat", "rt-balance-6.1.dat"] {
        let path = crate::support::fixture(name);
        let text = schedviz(&["preemptions", "-q", path.to_str().expect("a path")]).success().text();
        let words: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("not known to have lazy requests"), "{text}");
        assert!(!words.contains("lazy requests that were made immediate"), "{text}");
    }
}

//! `schedviz wakers` against a count by other means: over simulated runs, fixtures and recordings.

use crate::support::{events, fixture, schedviz};
use latency::{Latency, Measure};
use parse::Trace;
use sched::{Comm, Dur, EventKind, Pass, Pid, PrevState, SchedEvent};
use std::collections::BTreeMap;
use std::path::PathBuf;
use testkit::Simulation;
use wakers::{Options, PartiesBy, Wakers, WakersReport};

fn report(events: &[SchedEvent]) -> WakersReport {
    let options = Options { by: PartiesBy::Task, ..Options::default() };
    Pass::over(events).run(|| Wakers::new(&options)).unwrap_or_else(|never| match never {}).output
}

/// The wakeups, the time asleep and the time waited of each pair, by the events of each PID alone.
type Counted = BTreeMap<(Pid, Pid), (u64, u64, u64)>;

#[derive(Clone, Copy, Default)]
struct Life {
    asleep: Option<u64>,
    is_running: bool,
    waking: Option<(u64, Pid)>,
    queued: Option<(u64, u64, Pid)>,
}

/// Counts the edges of a run in which every task is seen from its beginning on, without losses.
fn counted(events: &[SchedEvent]) -> Counted {
    let mut lives: BTreeMap<Pid, Life> = BTreeMap::new();
    let mut counted = Counted::new();
    for event in events {
        let now = event.ts.0 as u64;
        match event.kind {
            EventKind::Switch { prev, state, next } => {
                let life = lives.entry(prev.pid).or_default();
                life.is_running = false;
                life.asleep = (!state.is_runnable() && state != PrevState::DEAD).then_some(now);
                let life = lives.entry(next.pid).or_default();
                if let Some((slept, waking, by)) = life.queued {
                    let sums = counted.entry((by, next.pid)).or_default();
                    *sums = (sums.0 + 1, sums.1 + slept, sums.2 + now - waking);
                }
                *life = Life { is_running: true, ..Life::default() };
            }
            EventKind::Waking { task, .. } => lives.entry(task.pid).or_default().waking = Some((now, event.pid)),
            EventKind::Wakeup { task, .. } => {
                let life = lives.entry(task.pid).or_default();
                if let (Some(asleep), Some((waking, by)), false) = (life.asleep, life.waking, life.is_running) {
                    life.queued = Some((now - asleep, waking.max(asleep), by));
                    life.asleep = None;
                }
            }
            EventKind::WakeupNew { task, .. } => *lives.entry(task.pid).or_default() = Life::default(),
            _ => {}
        }
    }
    counted
}

#[test]
fn edges_of_simulated_runs_are_those_counted_by_hand() {
    let mut wakeups = 0;
    for seed in crate::support::seeds(40) {
        let simulation = Simulation::run(seed, 4, 1500);
        let (report, expected) = (report(&simulation.events), counted(&simulation.events));
        let of = |edge: &wakers::WakeEdge| {
            let pids = (edge.waker.pid.expect("a task"), edge.woken.pid.expect("a task"));
            (pids, (edge.slept.count, edge.slept.total_ns.0, edge.waited.total_ns.0))
        };
        // A task that the first events find asleep or waiting has a wakeup without the time before it.
        let found: Counted = report.edges.iter().map(of).filter(|(_, numbers)| numbers.0 > 0).collect();
        for (pair, numbers) in &expected {
            let edge = found.get(pair).unwrap_or_else(|| panic!("seed {seed}: {pair:?}"));
            assert!(
                edge.0 == numbers.0 && edge.1 == numbers.1 && edge.2 >= numbers.2,
                "seed {seed}: {pair:?}: {edge:?} {numbers:?}"
            );
        }
        wakeups += expected.values().map(|numbers| numbers.0).sum::<u64>();
    }
    assert!(wakeups > 1000, "{wakeups}");
}

/// Fixtures of every kind, and recordings where their folder is there.
fn traces() -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        ["hackbench.dat", "rt-balance-6.1.dat", "mask.dat", "hotplug.dat", "forked-unknown.dat"].map(fixture).into();
    if let Some(folder) = std::env::var_os("SCHEDVIZ_TRACES") {
        let names = ["6.12-eevdf", "7.2-delayed", "7.2-resched", "preempt-6.12-none", "7.2-scx"];
        paths.extend(names.map(|name| PathBuf::from(&folder).join(format!("extra/newer/{name}.dat"))));
    }
    paths
}

#[test]
fn all_edges_together_are_the_wakeups_of_latency() {
    for path in traces() {
        let trace = Trace::open(&path, parse::Options::default()).expect("a readable recording");
        let events = events(&trace);
        let options = latency::Options::default();
        let latency =
            Pass::over(events.as_slice()).run(|| Latency::new(&options)).unwrap_or_else(|never| match never {});
        let measure = |measure| latency.output.measures.iter().find(|row| row.measure == measure).expect("a measure");
        let (wakeup, queued) = (measure(Measure::Wakeup).summary, measure(Measure::UntilRun).summary);
        let report = report(&events);
        let edges = || report.edges.iter().chain(&report.interrupts);
        let waited = edges().map(|edge| edge.waited.total_ns.0).sum::<u64>();
        let (known, unknown) = (edges().map(|edge| edge.wakeups).sum::<u64>(), report.by_unknown.expect("a number"));
        // Where wakings were recorded, those without have no length in `latency`.
        if unknown == 0 {
            assert_eq!((known, Dur(waited)), (wakeup.count, wakeup.total_ns), "{}", path.display());
        }
        if queued.count > 0 {
            assert_eq!(known + unknown, queued.count, "{}", path.display());
        }
        assert!(known > 0 || unknown > 0, "{}", path.display());
        assert!(edges().all(|edge| edge.waker.command != Some(Comm::EMPTY) || edge.waker.pid != Some(Pid::IDLE)));
    }
}

#[test]
fn the_text_names_interrupted_tasks_as_such() {
    let path = fixture("hackbench.dat");
    let text = schedviz(&["wakers", "-q", path.to_str().expect("a path")]).success().text();
    let words: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("woken by tasks") && words.contains("no event shows the waker"), "{text}");
}

//! The outcome of new-idle balancing at each missed steal: the simulator's, and on recordings that of a second reading of
//! the probes' records.

use crate::conforms::conforms;
use crate::support::{fixture, recordings, root, schedviz, unwrapped};
use sched::balancer::NewIdleOutcome;
use sched::{Cpu, EventKind, Pass, SchedEvent, Ts};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Mutex;
use testkit::Simulation;
use tracedat::Trace;
use why::{Cases, Nearest, Probed, Why, WhyReport};
use workcons::{Options, Waiters};

/// By distance and outcome: the number of missed steals, and their time in violation.
type Sums = BTreeMap<(Nearest, NewIdleOutcome), (u64, u64)>;

const PROBED: Probed = Probed { attempts: true, gate: true };

fn ours(report: &WhyReport) -> Sums {
    let mut sums = Sums::new();
    for row in &report.missed.as_ref().expect("missed steals").by_distance {
        let outcomes = row.outcomes.as_ref().expect("outcomes");
        assert_eq!(outcomes.iter().map(|outcome| outcome.number).sum::<u64>(), row.number);
        assert_eq!(outcomes.iter().map(|outcome| outcome.violated_ns).sum::<u64>(), row.violated_ns);
        for outcome in outcomes {
            sums.insert((row.nearest, outcome.outcome), (outcome.number, outcome.violated_ns));
        }
    }
    sums
}

/// The report, and the missed steals: when, on which CPU, how far, and their time in violation.
fn missed(events: &[SchedEvent]) -> (WhyReport, Vec<(Ts, Cpu, Nearest, u64)>) {
    let options = Options { waiters: Waiters::All, ..Options::default() };
    let found = Mutex::new(Vec::new());
    let stretch = |case: &why::ListedCase<why::IdleOrigin, why::IdleEnd>| {
        if let Some(nearest) = case.missed {
            found.lock().expect("a list").push((case.start, case.cpu, nearest, case.violated_ns));
        }
    };
    let cases = Cases { wait: &|_| {}, stretch: &stretch };
    let pass = Pass::over(events).run(|| Why::new(&options).with_probes(PROBED).listing(&cases));
    let report = pass.unwrap_or_else(|never| match never {}).output;
    (report, found.into_inner().expect("a list"))
}

#[test]
fn outcomes_are_the_simulators() {
    let mut seen: BTreeMap<NewIdleOutcome, u64> = BTreeMap::new();
    for seed in 0..200 {
        let sim = Simulation::probed(seed, 2 + (seed % 9) as u32, 500);
        let (report, missed) = missed(&sim.events);
        let mut truth: BTreeMap<(Ts, Cpu), NewIdleOutcome> = BTreeMap::new();
        for (event, newidle) in sim.events.iter().zip(&sim.newidles) {
            if let (EventKind::Switch { next, .. }, Some(newidle)) = (event.kind, newidle)
                && next.pid.is_idle()
            {
                truth.insert((event.ts, event.cpu), *newidle);
            }
        }
        let mut theirs = Sums::new();
        for (ts, cpu, nearest, ns) in missed {
            let outcome = truth.get(&(ts, cpu)).copied().unwrap_or_default();
            let sum = theirs.entry((nearest, outcome)).or_default();
            *sum = (sum.0 + 1, sum.1 + ns);
            *seen.entry(outcome).or_default() += 1;
        }
        if !theirs.is_empty() {
            assert_eq!(ours(&report), theirs, "seed {seed}");
        }
    }
    assert_eq!(seen.len(), NewIdleOutcome::ALL.len(), "each of them occurs: {seen:?}");
    assert!(seen.values().sum::<u64>() > 500, "{seen:?}");
}

/// The outcome at each switch to idle, by the fields of the records.
fn of_records(trace: &Trace) -> BTreeMap<(Ts, Cpu), NewIdleOutcome> {
    #[derive(Default)]
    struct Seen {
        gate: Option<NewIdleOutcome>,
        best: Option<NewIdleOutcome>,
        idle: Option<i64>,
        found: Option<bool>,
        examined: u64,
        is_active: bool,
    }
    let mut found = BTreeMap::new();
    let mut all: BTreeMap<Cpu, Seen> = BTreeMap::new();
    trace.records(&mut |record| {
        let seen = all.entry(record.cpu).or_default();
        let number = |field: &str| record.number(field);
        let gate = || {
            let number = |field| number(field).expect("a field");
            match () {
                () if number("pending") != 0 => NewIdleOutcome::WakeupPending,
                () if number("overloaded") == 0 => NewIdleOutcome::NotOverloaded,
                () if number("avg_idle") < number("cost") => NewIdleOutcome::TooCostly,
                () => NewIdleOutcome::NotAttempted,
            }
        };
        match record.format().map_or("", |format| format.name.as_str()) {
            // Outcomes are in the order of how far they came.
            "newidle_balance_in" => seen.gate = seen.gate.max(Some(gate())),
            "idle" => seen.gate = seen.gate.or_else(|| Some(gate())),
            "load_balance_in" => {
                (seen.idle, seen.found, seen.examined, seen.is_active) = (number("idle"), None, 0, false);
            }
            "active_balance" => (seen.found, seen.examined, seen.is_active) = (None, 0, true),
            "find_busiest_group" => {
                if seen.is_active {
                    (seen.examined, seen.is_active) = (0, false);
                }
                seen.found = Some(number("group") != Some(0));
            }
            "can_migrate" => seen.examined += 1,
            "load_balance" => {
                let outcome = match (number("moved"), seen.found) {
                    (Some(1..), _) => NewIdleOutcome::Pulled,
                    (_, None) => NewIdleOutcome::GivenUp,
                    (_, Some(false)) => NewIdleOutcome::NoBusiestGroup,
                    (_, Some(true)) if seen.examined == 0 => NewIdleOutcome::NoTaskExamined,
                    _ => NewIdleOutcome::AllRefused,
                };
                if number("idle").or(seen.idle) == Some(2) {
                    seen.best = seen.best.max(Some(outcome));
                }
                (seen.idle, seen.found, seen.examined, seen.is_active) = (None, None, 0, false);
            }
            "sched_switch" => {
                let outcome = seen.best.or(seen.gate).unwrap_or_default();
                if number("next_pid") == Some(0) {
                    found.insert((record.ts, record.cpu), outcome);
                }
                (seen.best, seen.gate) = (None, None);
            }
            _ => {}
        }
        ControlFlow::Continue(())
    });
    found
}

#[test]
fn outcomes_on_recordings_are_those_of_the_records() {
    let mut compared = BTreeMap::new();
    for path in recordings() {
        let trace = Trace::open(&path, tracedat::Options::default()).expect("a readable recording");
        let has = |name, field| trace.format_named("lb", name).is_some_and(|format| format.field(field).is_some());
        if !has("load_balance", "moved") || !has("idle", "avg_idle") {
            continue;
        }
        let (report, missed) = missed(&crate::support::events(&trace));
        let truth = of_records(&trace);
        let mut theirs = Sums::new();
        for (ts, cpu, nearest, ns) in missed {
            let outcome = truth.get(&(ts, cpu)).copied().unwrap_or_default();
            let sum = theirs.entry((nearest, outcome)).or_default();
            *sum = (sum.0 + 1, sum.1 + ns);
            *compared.entry(outcome).or_default() += 1_u64;
        }
        if !theirs.is_empty() {
            assert_eq!(ours(&report), theirs, "{}", path.display());
        }
    }
    println!("{compared:?}");
    assert!(compared.values().sum::<u64>() > 10, "{compared:?}");
}

#[test]
fn the_command_shows_outcomes_and_attempts() {
    let (file, schema) = (fixture("attempts-6.12.dat"), root().join("docs/schemas/why-2.json"));
    let file = file.to_str().expect("a path");
    let text = schedviz(&["why", file]).success().text();
    assert!(text.contains("new-idle balance of missed steals"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80 || line.contains("schedviz")), "{text}");
    let json: serde_json::Value =
        serde_json::from_str(&schedviz(&["why", file, "--json"]).success().text()).expect("JSON");
    let schema = serde_json::from_str(&std::fs::read_to_string(schema).expect("the schema")).expect("JSON");
    conforms(&json, &schema, "why");
    assert!(json["runs"][0]["missed"]["by_distance"][0]["outcomes"][0]["outcome"].is_string());
    assert!(schedviz(&["why", file, "--markdown"]).success().text().contains("| new-idle balance of missed steals |"));
    let episode = unwrapped(&schedviz(&["why", file, "--episode", "1", "--steps", "5000"]).success().text());
    assert!(episode.contains("balances MC (") && episode.contains("; new-idle balance: "), "{episode}");
}

//! The outcome of new-idle balancing at each missed steal: the simulator's, and on recordings that of a second reading of
//! the probes' records.

use crate::conforms::conforms;
use crate::support::{fixture, recordings, root, schedviz, unwrapped};
use machine::NewIdleCost;
use parse::Trace;
use sched::balancer::NewIdleOutcome;
use sched::probe::Probe;
use sched::{Cpu, EventKind, Pass, SchedEvent, Ts};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Mutex;
use testkit::Simulation;
use why::{AverageRule, Cases, EstimatedGate, GateCosts, Nearest, Probed, Why, WhyReport};
use workcons::{Options, Waiters};

/// By distance and outcome: the number of missed steals, and their time in violation.
type Sums = BTreeMap<(Nearest, NewIdleOutcome), (u64, u64)>;

const PROBED: Probed = Probed { attempts: true, gate: true, verdicts: true };

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
    for seed in crate::support::seeds(200) {
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
    let known = NewIdleOutcome::ALL.into_iter().filter(|outcome| *outcome != NewIdleOutcome::NoneMoved);
    assert!(seen.keys().copied().eq(known), "each of them occurs: {seen:?}");
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
        let trace = Trace::open(&path, parse::Options::default()).expect("a readable recording");
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

/// The costs around a recording that has no machine file, by the first and the last record of each CPU on going idle. The greatest average idle
/// time stands for the limit that the costs of all domains give.
fn costs_of_records(trace: &Trace, release: (u32, u32)) -> GateCosts {
    let mut cpus: BTreeMap<Cpu, (NewIdleCost, NewIdleCost)> = BTreeMap::new();
    trace.records(&mut |record| {
        if record.format().is_some_and(|format| format.name == "idle") {
            let number =
                |field: &str| record.number(field).and_then(|number| u64::try_from(number).ok()).expect("a field");
            let cost = |sum_ns| NewIdleCost { lowest_ns: number("cost"), sum_ns };
            let half = number("avg_idle").div_ceil(2);
            let (start, end) = cpus.entry(record.cpu).or_insert((cost(half), cost(half)));
            start.sum_ns = start.sum_ns.max(half);
            *end = cost(start.sum_ns);
        }
        ControlFlow::Continue(())
    });
    let (from, to) = trace.extent().expect("events");
    GateCosts { cpus, from, to, migration_cost_ns: 500_000, rule: AverageRule::of(Some(release)) }
}

/// Changes a record on going idle to one of a kernel whose gate follows from the recorded average and cost alone: a wakeup under way, or the
/// missing flag of overload, closes it before these are compared.
fn by_costs_alone(event: &mut SchedEvent) {
    if let EventKind::Probe { probe: Probe::NewIdleBegins(queue) | Probe::GoesIdle(queue), .. } = &mut event.kind {
        queue.pending = queue.pending.map(|_| false);
        queue.overloaded = queue.overloaded.map(|_| true);
    }
}

/// Estimates without the probes against the recorded outcomes: those that are certain are right.
#[test]
fn the_gate_by_stock_events_is_that_of_the_records() {
    let Some(traces) = std::env::var_os("SCHEDVIZ_TRACES") else { return };
    // By gate and recorded state: closed by the costs, or open.
    let mut table: BTreeMap<(EstimatedGate, bool), u64> = BTreeMap::new();
    for (folder, release) in [("linux-6.1-c8-n2", (6, 1)), ("linux-6.12-c8-n2", (6, 12)), ("linux-7.2-c8-n2", (7, 2))] {
        for load in ["spmd", "hackbench", "unpin"] {
            let path = std::path::Path::new(&traces).join(format!("extra/{folder}/balance-{load}.dat"));
            let trace = Trace::open(&path, parse::Options::default()).expect("a readable recording");
            let costs = costs_of_records(&trace, release);
            let options = Options { waiters: Waiters::All, ..Options::default() };
            let mut events = crate::support::events(&trace);
            events.iter_mut().for_each(by_costs_alone);
            let why = || Why::new(&options).with_probes(PROBED).with_gate(Some(costs.clone()));
            let report = Pass::over(&events[..]).run(why).unwrap_or_else(|never| match never {}).output;
            for row in report.missed.and_then(|missed| missed.gates).unwrap_or_default() {
                for outcome in row.outcomes.expect("outcomes") {
                    if outcome.outcome == NewIdleOutcome::Unknown {
                        continue;
                    }
                    // One that was skipped at random has passed the gate.
                    let is_open = outcome.outcome.is_attempted() || outcome.outcome == NewIdleOutcome::NotAttempted;
                    *table.entry((row.gate, is_open)).or_default() += outcome.number;
                }
            }
        }
    }
    println!("{table:?}");
    let of = |gate, is_open| table.get(&(gate, is_open)).copied().unwrap_or(0);
    let right = of(EstimatedGate::Closed, false) + of(EstimatedGate::Open, true);
    let certain = right + of(EstimatedGate::Closed, true) + of(EstimatedGate::Open, false);
    let all: u64 = table.values().sum();
    assert!(all > 100, "{table:?}");
    assert!(right * 100 >= certain * 97, "{table:?}");
    assert!(certain * 100 >= all * 60, "{table:?}");
}

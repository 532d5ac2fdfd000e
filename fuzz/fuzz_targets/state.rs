//! The state and all analyses behind it, with any sequence of events, however contradictory.
#![no_main]

use sched::{ChosenCpus, Cpu, Dur, Pass, Replay, SchedEvent, Topology, Ts};
use timeline::Drawable;
use timeline::text::Detail;

/// Runs the analyses that judge a run, and checks the sums on which they must agree.
fn judges(events: &[SchedEvent], from: Ts, to: Ts) {
    let window = to.since(from);
    let mut cpus: Vec<Cpu> = events.iter().map(|e| e.cpu).collect();
    cpus.sort_unstable();
    cpus.dedup();
    let part = Dur((window.0 / 7).max(1));
    let busy = utilization::Options {
        from,
        to,
        zero: from,
        cpus: cpus.iter().map(|cpu| (*cpu, None)).collect(),
        all_cpus: Vec::new(),
        group_name: String::new(),
        interval: part,
        tasks: None,
        topology: Topology::default(),
        balance_interval: Dur(10),
        ends: Vec::new(),
    };
    let shares = fairness::Options { weights: true, interval: part, worst: 3, ..fairness::Options::new(from, to) };
    let waits = latency::Options { worst: 3, by: latency::TasksBy::Task, ..latency::Options::default() };
    let analysis = || {
        (
            utilization::Utilization::new(&busy),
            fairness::Fairness::new(&shares),
            latency::Latency::new(&waits),
            schedstat::FromTrace::default(),
        )
    };
    let Ok(found) = Pass::over(events).prologue(10).run(analysis);
    let (used, shared, delays, columns) = found.output;
    let whole = u128::from(window.0) * cpus.len() as u128;
    if whole < u128::from(u64::MAX) {
        assert_eq!(u128::from(used.all.total()), whole);
        assert_eq!(used.intervals.iter().map(|i| i.shares.total()).sum::<u64>(), used.all.total());
        assert!(columns.busy_ns <= used.all.total());
    }
    let trace = Drawable::new("x", vec!["x".to_owned()], Dur(1_000));
    let _ = (
        utilization::text(&used, &trace, (true, 100), Detail::Full),
        fairness::text(&shared, &trace, 5, Detail::Brief),
        latency::text(&delays, &trace, 5, Detail::Full),
    );
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let events = testkit::any_events(bytes);
    let (Some(first), Some(last)) = (events.first(), events.last()) else { return };
    let (from, to) = (first.ts, last.ts);
    let options = workcons::Options { strips: Some((from, to)), ..workcons::Options::default() };
    let (none, all) = (Topology::default(), ChosenCpus::default());
    let analysis = || {
        let balance = events::Balance::new(&none, &all, from, to);
        (workcons::WorkConservation::new(&options), workcons::Bounds::new(&options), balance, testkit::Laws::default())
    };
    let Ok(found) = Pass::over(events.as_slice()).prologue(10).run(analysis);
    let trace = Drawable::new("x", vec!["x".to_owned()], Dur(1_000));
    let _ = (workcons::text(&found.output.0, &trace, Detail::Full), events::balance_text(&found.output.2));
    judges(&events, from, to);
    // With assertions each effect of a piece, on the state and on the migrations, is compared with the walk over it.
    let pieces = Some(sched::pass::Pieces { events: 1 + bytes.len() % 7, workers: 1, scans: true });
    let analysis = || (sched::analysis::RunTime::default(), events::Balance::new(&none, &all, from, to));
    let Ok(_) = Pass::over(events.as_slice()).prologue(10).pieces(pieces).run_in_pieces(analysis);
    let Ok(mut replay) = Replay::with(events.as_slice(), 20, 4, || ());
    let end = replay.total();
    for step in [end, end / 2, 0, end] {
        let Ok(()) = replay.go(step);
        let cpus = replay.state().observed().take(8).map(|cpu| (cpu, None)).collect();
        let shown = stepper::Options { zero: from, cpus, group_name: String::new(), recorded: replay.recorded(), ..Default::default() };
        let _ = stepper::Step::of(step, replay.state(), replay.event(), &shown, &stepper::Plain);
    }
});

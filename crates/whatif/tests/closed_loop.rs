//! The closed loop: a simulator makes a trace under one policy, `whatif` predicts the other policy from the trace alone, and the
//! simulator runs that policy on the same work.
#![allow(clippy::print_stdout)]

use sched::topology::Distance;
use sched::{Affinity, Cpu, CpuSet, EventKind, Pass, Pid, SchedEvent, Topology};
use std::ops::ControlFlow;
use testkit::Operation::{Nap, NapUntil, Run, Wait, Wake};
use testkit::{Worker, Workload};
use whatif::{BuildOptions, Costs, Model, ModelBuilder, Order, PolicyName, PredictOptions, Prediction, RunFigures};
use workcons::Options;

const MS: i64 = 1_000_000;

/// Measures events as the command does.
fn figures(events: &[SchedEvent], options: &Options<'_>) -> RunFigures {
    Pass::over(events)
        .run(|| whatif::measures(options))
        .map(|outcome| RunFigures::of(&outcome.output))
        .unwrap_or_else(|never| match never {})
}

fn model(events: &[SchedEvent], affinity: Option<&Affinity>) -> Model {
    let options = BuildOptions { affinity, ..BuildOptions::default() };
    Pass::over(events).run(|| ModelBuilder::new(&options)).unwrap_or_else(|never| match never {}).output
}

/// The CPUs that tasks of a workload may use, as a machine file lists them.
fn affinity(work: &Workload) -> Option<Affinity> {
    let mut affinity = Affinity::new((0..work.cpus as u32).map(Cpu));
    for (index, worker) in work.workers.iter().enumerate() {
        if let Some(allowed) = &worker.allowed {
            let set: CpuSet = allowed.iter().map(|cpu| Cpu(*cpu as u32)).collect();
            affinity.add(Pid(100 + index as i32), &set);
        }
    }
    affinity.restricts().then_some(affinity)
}

struct Loop {
    prediction: Prediction,
    trace: RunFigures,
    truth: RunFigures,
}

/// Predicts stealing from the trace of a workload without it, and runs the workload with it.
fn closed_loop(work: &Workload, steal: i64) -> Loop {
    let plain = Workload { steal: None, ..work.clone() };
    let stealing = Workload { steal: Some(steal), ..work.clone() };
    let affinity = affinity(work);
    let options = Options { affinity: affinity.as_ref(), ..Options::default() };
    let events = plain.run();
    let trace = figures(&events, &options);
    let truth = figures(&stealing.run(), &options);
    let predicting = PredictOptions {
        policies: vec![PolicyName::Observed, PolicyName::Steal(Some(Distance::Machine))],
        order: Some(Order::Fifo),
        costs: Costs { steal: steal as u64, ..Costs::default() },
        topology: &Topology::default(),
        measured: &options,
        unfit: None,
        cpus: work.cpus as u32,
        near_idle_ns: None,
        queued: None,
    };
    let prediction = whatif::predict(&model(&events, affinity.as_ref()), &trace, None, &predicting);
    Loop { prediction, trace, truth }
}

/// The elapsed times in the trace, as `observed` and with stealing, in nanoseconds.
fn elapsed(work: &Workload, steal: i64) -> [i64; 3] {
    let found = closed_loop(work, steal);
    let value = |row: usize| found.prediction.rows[row].elapsed_ns.value as i64;
    assert_eq!(value(1), found.truth.elapsed_ns.0 as i64, "the simulator: {:#?}", found.prediction.rows[1]);
    [found.trace.elapsed_ns.0 as i64, value(0), value(1)]
}

fn work(cpus: usize, workers: Vec<Worker>) -> Workload {
    Workload { cpus, workers, steal: None }
}

/// A task that keeps a CPU busy for a microsecond, after which the CPU goes idle.
fn brief(cpu: usize) -> Worker {
    Worker::on(cpu, vec![Run(1_000)])
}

#[test]
fn a_queued_task_gains_by_a_steal() {
    let work = work(2, vec![Worker::on(0, vec![Run(10 * MS)]), Worker::on(0, vec![Run(10 * MS)]), brief(1)]);
    // The other CPU goes idle after a microsecond, and has the task another two later.
    assert_eq!(elapsed(&work, 2_000), [20 * MS, 20 * MS, 10 * MS + 3_000]);
    assert_eq!(elapsed(&work, 0), [20 * MS, 20 * MS, 10 * MS + 1_000]);
}

#[test]
fn a_chain_of_wakeups_on_one_cpu_gains_nothing() {
    let chain = |next: usize| Worker::on(0, vec![Wait, Run(3 * MS), Wake(next)]);
    let first = Worker::on(0, vec![Run(3 * MS), Wake(1)]);
    let work = work(2, vec![first, chain(2), chain(3), Worker::on(0, vec![Wait, Run(3 * MS)]), brief(1)]);
    assert_eq!(elapsed(&work, 2_000), [12 * MS, 12 * MS, 12 * MS]);
}

#[test]
fn a_barrier_gains_as_much_as_its_last_task() {
    // The second task arrives last: at 20 ms, or 2 µs after 15 ms if it is stolen at 5 ms. Both others run for 1 ms after it.
    let last = Worker::on(0, vec![Run(10 * MS), Wake(0), Wake(2)]);
    let other = |cpu: usize, ms: i64| Worker::on(cpu, vec![Run(ms * MS), Wait, Run(MS)]);
    let work = work(2, vec![other(0, 10), last, other(1, 5)]);
    assert_eq!(elapsed(&work, 2_000), [21 * MS, 21 * MS, 16 * MS + 2_000]);
}

#[test]
fn a_task_that_spins_until_another_arrives_gains_as_much_as_that() {
    // The second task arrives at 10 ms, since it waits for 5 ms; the third spins for it from 5 ms on, if both are named.
    let workers = vec![
        Worker::on(0, vec![Run(5 * MS)]),
        Worker::on(0, vec![Run(5 * MS)]),
        Worker::on(1, vec![Run(10 * MS)]),
        brief(2),
    ];
    let events = work(3, workers).run();
    let run = |spins: Option<&str>| {
        let tasks = spins.map(|tasks| regex::Regex::new(tasks).expect("an expression"));
        let spins = tasks.map(|tasks| sched::TaskFilter { tasks: Some(tasks), ..Default::default() });
        let build = BuildOptions { spins, ..BuildOptions::default() };
        let pass = Pass::over(events.as_slice());
        let model = pass.run(|| ModelBuilder::new(&build)).unwrap_or_else(|never| match never {}).output;
        let (topology, costs) = (Topology::default(), Costs { steal: 2_000, ..Costs::default() });
        let (order, interrupts) = (Order::Fifo, whatif::Interrupts::KeepLength);
        let wakeups = whatif::Wakeups::ByKind;
        let options = whatif::EngineOptions { topology: &topology, order, costs, interrupts, wakeups };
        let elapsed = |policy: PolicyName| {
            let end = whatif::simulate(&model, &mut *policy.policy(), &options, &mut |_| ControlFlow::Continue(())).end;
            end.since(model.start).0 as i64
        };
        [elapsed(PolicyName::Observed), elapsed(PolicyName::Steal(Some(Distance::Machine)))]
    };
    assert_eq!(run(None), [10 * MS, 10 * MS]);
    assert_eq!(run(Some("worker[12]")), [10 * MS, 5 * MS + 3_000]);
}

#[test]
fn a_sleep_until_an_instant_keeps_that_and_another_one_its_length() {
    let ends = |nap| {
        // The second task sleeps at 11 ms, or at 1 ms and 3 µs if it is stolen.
        let workers = vec![Worker::on(0, vec![Run(10 * MS)]), Worker::on(0, vec![Run(MS), nap, Run(MS)]), brief(1)];
        let work = work(2, workers);
        let events = work.run();
        let is_call = |event: &&SchedEvent| event.kind == EventKind::Other { id: Workload::NAP_UNTIL_CALL };
        let absolute = events.iter().filter(is_call).map(|event| (event.ts, event.cpu)).collect();
        let calls = [Workload::NAP_CALL, Workload::NAP_UNTIL_CALL];
        let contexts = calls.into_iter().map(|id| (id, whatif::Context::Asked)).collect();
        let build = BuildOptions { absolute, contexts, ..BuildOptions::default() };
        let pass = Pass::over(events.as_slice());
        let model = pass.run(|| ModelBuilder::new(&build)).unwrap_or_else(|never| match never {}).output;
        let classes: Vec<whatif::SleepClass> = model.classes().iter().map(|sum| sum.class).collect();
        let (topology, costs) = (Topology::default(), Costs { steal: 2_000, ..Costs::default() });
        let (order, interrupts) = (Order::Fifo, whatif::Interrupts::KeepLength);
        let wakeups = whatif::Wakeups::ByKind;
        let options = whatif::EngineOptions { topology: &topology, order, costs, interrupts, wakeups };
        let policy = &mut *PolicyName::Steal(Some(Distance::Machine)).policy();
        let run = whatif::simulate(&model, policy, &options, &mut |_| ControlFlow::Continue(()));
        (classes, run.end.since(model.start).0 as i64)
    };
    assert_eq!(ends(Nap(9 * MS)), (vec![whatif::SleepClass::Timer], 11 * MS + 3_000));
    assert_eq!(ends(NapUntil(20 * MS)), (vec![whatif::SleepClass::AbsoluteTimer], 21 * MS));
}

#[test]
fn a_bound_task_gains_nothing() {
    let bound = Worker { allowed: Some(vec![0]), ..Worker::on(0, vec![Run(10 * MS)]) };
    let work = work(2, vec![bound.clone(), bound, brief(1)]);
    assert_eq!(elapsed(&work, 2_000), [20 * MS, 20 * MS, 20 * MS]);
}

#[test]
fn a_cpu_with_two_fair_tasks_gives_the_one_that_ran_or_came_first() {
    let on = |cpu, prio, program| Worker { prio, ..Worker::on(cpu, program) };
    // The third task preempts the first one, behind which the second one waits; CPU 1 then takes the first one, which began before the second one came.
    let first = on(0, 120, vec![Run(MS), Wake(1), Run(9 * MS)]);
    let urgent = on(0, 10, vec![Nap(3 * MS), Run(5 * MS)]);
    let all = vec![first, on(0, 120, vec![Wait, Run(MS)]), urgent.clone(), on(1, 120, vec![Run(4 * MS)])];
    assert_eq!(elapsed(&work(2, all), 2_000), [16 * MS, 16 * MS, 11 * MS + 2_000]);
    // A fair task that a real-time one keeps from its CPU is alone there.
    let alone = vec![on(0, 120, vec![Run(10 * MS)]), urgent, on(1, 120, vec![Run(4 * MS)])];
    assert_eq!(elapsed(&work(2, alone), 2_000), [15 * MS; 3]);
}

#[test]
fn predictions_are_exact_under_equal_rules() {
    let mut gains = 0;
    for seed in 0..60 {
        let work = Workload::random(seed, false);
        let found = closed_loop(&work, 2_000);
        let [observed, stealing] = found.prediction.rows.as_slice() else {
            panic!("seed {seed}: {:?}", found.prediction)
        };
        let of = |figures: &RunFigures| (figures.elapsed_ns.0 as f64, figures.violation_ns.0 as f64);
        assert_eq!((observed.elapsed_ns.value, observed.violation_ns.value), of(&found.trace), "seed {seed}: {work:?}");
        assert_eq!((stealing.elapsed_ns.value, stealing.violation_ns.value), of(&found.truth), "seed {seed}: {work:?}");
        gains += usize::from(found.truth.elapsed_ns < found.trace.elapsed_ns);
    }
    assert!(gains > 20, "only {gains} of 60 runs gain by stealing");
}

/// The number of random runs with timers, bound tasks and real-time tasks: `SCHEDVIZ_WHATIF_RUNS`, or 200.
fn runs() -> u64 {
    std::env::var("SCHEDVIZ_WHATIF_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(200)
}

#[test]
fn intervals_hold_with_timers_bound_and_real_time_tasks() {
    let (mut elapsed, mut violated, mut widths, mut exact, mut refused) = (0, 0, Vec::new(), 0, 0);
    for seed in 0..runs() {
        let found = closed_loop(&Workload::random(1_000 + seed, true), 2_000);
        let [_, stealing] = found.prediction.rows.as_slice() else {
            assert!(
                found.prediction.calibration.reasons[0].contains("interval"),
                "seed {seed}: {:?}",
                found.prediction
            );
            refused += 1;
            continue;
        };
        let (estimate, truth) = (&stealing.elapsed_ns, found.truth.elapsed_ns.0 as f64);
        elapsed += u64::from(estimate.holds(truth));
        exact += u64::from(estimate.value == truth);
        violated += u64::from(stealing.violation_ns.holds(found.truth.violation_ns.0 as f64));
        widths.push(100.0 * (estimate.high - estimate.low) / estimate.value);
    }
    widths.sort_by(f64::total_cmp);
    let quantile = |share: usize| widths[(widths.len() - 1) * share / 100];
    println!(
        "of {} runs the interval holds the elapsed time in {elapsed}, the violation in {violated}; {exact} exact, {refused} without a forecast; \
         widths in percent: median {:.2}, 90th percentile {:.2}, greatest {:.2}",
        runs(),
        quantile(50),
        quantile(90),
        quantile(100)
    );
    assert!(elapsed * 100 >= runs() * 85, "elapsed time: {elapsed} of {}", runs());
    assert!(violated * 100 >= runs() * 85, "violation: {violated} of {}", runs());
}

/// `cargo test -p schedviz-whatif --test closed_loop -- --ignored --nocapture` prints the speed of the engine.
#[test]
#[ignore = "a measurement"]
fn events_are_simulated_fast() {
    let mut work = Workload::random(7, true);
    for worker in &mut work.workers {
        let program: Vec<_> = (0..20_000).flat_map(|nth| [Run(50_000 + nth % 977), Nap(1 + nth % 70_001)]).collect();
        worker.program = program;
    }
    let events = work.run();
    let model = model(&events, None);
    let (topology, costs) = (Topology::default(), Costs { steal: 2_000, ..Costs::default() });
    let (order, interrupts, wakeups) = (Order::Fair, whatif::Interrupts::KeepLength, whatif::Wakeups::ByKind);
    let options = whatif::EngineOptions { topology: &topology, order, costs, interrupts, wakeups };
    let balanced: PolicyName = "newidle+nohz+periodic".parse().expect("a policy");
    for policy in [PolicyName::Observed, PolicyName::Steal(Some(Distance::Machine)), balanced, PolicyName::Ideal] {
        let begun = std::time::Instant::now();
        let run = whatif::simulate(&model, &mut *policy.policy(), &options, &mut |_| ControlFlow::Continue(()));
        let seconds = begun.elapsed().as_secs_f64();
        println!("{policy}: {} events, {:.1} million a second", run.events, run.events as f64 / seconds / 1e6);
    }
}

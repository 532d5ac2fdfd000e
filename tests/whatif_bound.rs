//! The bound of `whatif`: by hand, against every policy of the simulator over recordings and random histories, and against another simulator.

use crate::support::{recordings_in_part, some_seeds};
use parse::{Options, Trace};
use rayon::prelude::*;
use sched::topology::Distance;
use sched::{Dur, EventKind, EventSource, Pass, SchedEvent, Topology, Ts};
use std::ops::ControlFlow;
use testkit::Operation::{Nap, NapUntil, Run, Wait, Wake};
use testkit::{Simulation, Worker, Workload};
use whatif::{
    BoundScope, BuildOptions, Context, Costs, EngineOptions, Granted, Interrupts, Model, ModelBuilder, Order,
    PolicyName, RunFigures, Wakeups,
};

const MS: i64 = 1_000_000;

/// The work of a trace, and what it took.
struct Work {
    model: Model,
    figures: RunFigures,
}

impl Work {
    fn of<S: EventSource>(source: S, build: &BuildOptions<'_>) -> Option<Work> {
        let measured = workcons::Options::default();
        let outcome = Pass::over(source).run(|| (ModelBuilder::new(build), whatif::measures(&measured))).ok()?;
        let (model, reports) = outcome.output;
        Some(Work { model, figures: RunFigures::of(&reports) })
    }

    fn of_workload(work: &Workload) -> Work {
        let events = work.run();
        let is_call = |event: &&SchedEvent| event.kind == EventKind::Other { id: Workload::NAP_UNTIL_CALL };
        let absolute = events.iter().filter(is_call).map(|event| (event.ts, event.cpu)).collect();
        let calls = [Workload::NAP_CALL, Workload::NAP_UNTIL_CALL];
        let contexts = calls.into_iter().map(|id| (id, Context::Asked)).collect();
        let build = BuildOptions { absolute, contexts, ..BuildOptions::default() };
        Work::of(events.as_slice(), &build).expect("a model")
    }

    fn scope(&self) -> BoundScope {
        let exec = self.model.exit.map(|exit| Ts(exit.0 - self.figures.elapsed_ns.0 as i64));
        BoundScope { exec: exec.filter(|_| self.figures.elapsed_is_command), cpus: 0 }
    }

    fn least(&self, granted: Granted) -> Option<i64> {
        whatif::least_elapsed(&self.model, self.scope(), granted).map(|least| least.elapsed_ns.0 as i64)
    }

    /// Runs the work under a policy; nothing where the run is cut off, or leaves work undone.
    fn under(&self, name: PolicyName, options: &EngineOptions<'_>) -> Option<i64> {
        let (mut exec, mut ran_until, mut ran) = (None, self.model.start, 0_u64);
        let mut since = vec![self.model.start; self.model.cpus.len()];
        let root = self.model.root.map(|root| self.model.tasks[root as usize].pid);
        let run = whatif::simulate(&self.model, &mut *name.policy(), options, &mut |event| {
            match event.kind {
                EventKind::Exec { pid, .. } if Some(pid) == root => exec = exec.or(Some(event.ts)),
                EventKind::Switch { prev, .. } => {
                    if !prev.pid.is_idle() {
                        ran += event.ts.since(since[event.cpu.index()]).0;
                        ran_until = event.ts;
                    }
                    since[event.cpu.index()] = event.ts;
                }
                _ => {}
            }
            ControlFlow::Continue(())
        });
        match self.scope().exec {
            Some(of_trace) => Some(run.exit?.0 - exec?.min(of_trace).0),
            None => {
                let length = |step: &whatif::ProgramStep| if let whatif::ProgramStep::Run(ns) = step { *ns } else { 0 };
                let all: u64 = self.model.tasks.iter().flat_map(|task| &task.steps).map(length).sum();
                (run.finished && ran >= all).then(|| ran_until.since(self.model.start).0 as i64)
            }
        }
    }

    /// Checks that no policy, under no assumption, is faster than the bound; returns the bound, the fastest run, and the number of runs.
    fn obeys_the_law(&self, topology: &Topology, name: &str) -> (i64, i64, usize) {
        let Some(least) = self.least(Granted::default()) else { return (0, 0, 0) };
        let trace = self.figures.elapsed_ns.0 as i64;
        assert!(least <= trace, "{name}: the bound {least} is beyond the trace {trace}");
        for granted in [(true, false), (true, true)] {
            let granted = Granted { open_sleeps_vanish: granted.0, tasks_are_bound: granted.1 };
            let least = self.least(granted);
            assert!(least.is_some_and(|least| least <= trace), "{name}: {granted:?} {least:?} {trace}");
        }
        let (mut fastest, mut runs) = (trace, 0);
        let steal = |within| PolicyName::Steal(Some(within));
        let policies = [
            PolicyName::Observed,
            PolicyName::Steal(None),
            steal(Distance::Llc),
            steal(Distance::Machine),
            PolicyName::Ideal,
            // Nearly all random work is over within some ticks of a kernel.
            "newidle+nohz+periodic".parse::<PolicyName>().expect("a policy").with_tick(Dur(MS as u64 / 4)),
        ];
        for policy in policies {
            for (order, interrupts, wakeups) in [
                (Order::Fair, Interrupts::KeepLength, Wakeups::ByKind),
                (Order::Fifo, Interrupts::KeepLength, Wakeups::ByKind),
                (Order::Fair, Interrupts::KeepInstant, Wakeups::ByKind),
                (Order::Fifo, Interrupts::KeepLength, Wakeups::AsRecorded),
            ] {
                let options = EngineOptions { topology, order, costs: Costs::default(), interrupts, wakeups };
                let Some(elapsed) = self.under(policy, &options) else { continue };
                assert!(elapsed >= least, "{name}: {policy} {options:?} took {elapsed}, less than {least}");
                (fastest, runs) = (fastest.min(elapsed), runs + 1);
            }
        }
        (least, fastest, runs)
    }
}

/// The bound of work whose programs are known, in milliseconds.
fn least(cpus: usize, workers: Vec<Worker>, granted: Granted) -> f64 {
    let work = Work::of_workload(&Workload { cpus, workers, steal: None });
    work.least(granted).expect("a bound") as f64 / MS as f64
}

#[test]
fn the_bound_is_that_of_a_calculation_by_hand() {
    let alone = |workers| least(2, workers, Granted::default());
    let on = |cpu: usize, ms: i64| Worker::on(cpu, vec![Run(ms * MS)]);
    // Three tasks of 10 ms on two CPUs: 15 ms; with one of 20 ms that task is the longest chain.
    assert_eq!(alone(vec![on(0, 10), on(0, 10), on(1, 10)]), 15.0);
    assert_eq!(alone(vec![on(0, 5), on(0, 20), on(1, 5)]), 20.0);
    // A chain of three on one CPU gains nothing by the other one.
    let link = |next: usize| Worker::on(0, vec![Wait, Run(3 * MS), Wake(next)]);
    let chain = vec![
        Worker::on(0, vec![Run(3 * MS), Wake(1)]),
        link(2),
        Worker::on(0, vec![Wait, Run(3 * MS)]),
        Worker::on(1, vec![Run(1_000)]),
    ];
    assert_eq!(alone(chain), 9.0);
    // First one task alone for 8 ms, then 60 ms on two CPUs: 38 ms. Neither the longest chain of 32 ms nor all work on two CPUs, 34 ms, comes to
    // that.
    let middle = |nth: usize| Worker::on(nth % 2, vec![Wait, Run(12 * MS)]);
    let first = Worker::on(0, vec![Run(8 * MS), Wake(1), Wake(2), Wake(3), Wake(4)]);
    let longer = Worker::on(0, vec![Wait, Run(12 * MS), Wake(5)]);
    let last = Worker::on(1, vec![Wait, Run(12 * MS)]);
    assert_eq!(alone(vec![first, middle(1), middle(2), middle(3), longer, last]), 38.0);
    // A sleep keeps its length, or its instant.
    assert_eq!(alone(vec![on(0, 10), Worker::on(0, vec![Run(MS), Nap(9 * MS), Run(MS)]), on(1, 1)]), 11.0);
    assert_eq!(alone(vec![on(0, 10), Worker::on(0, vec![Run(MS), NapUntil(20 * MS), Run(MS)]), on(1, 1)]), 21.0);
}

#[test]
fn tasks_that_are_bound_share_their_cpus() {
    // Two tasks of 10 ms on CPU 0, while CPU 1 has 1 ms: bound to where they were, they need 20 ms.
    let workers =
        || vec![Worker::on(0, vec![Run(10 * MS)]), Worker::on(0, vec![Run(10 * MS)]), Worker::on(1, vec![Run(MS)])];
    let of = |tasks_are_bound| least(2, workers(), Granted { tasks_are_bound, ..Granted::default() });
    assert_eq!((of(false), of(true)), (10.5, 20.0));
}

/// The critical path without its queued time is no bound, where the path returns to a sleeper.
#[test]
fn a_waker_that_was_queued_before_the_sleep_could_have_come_sooner() {
    // The first task runs for 10 ms, waits for the second and runs for 1 ms. The second runs for 10 ms behind a third one, which runs for 10 ms.
    // The path is the first task up to 10 ms, the second up to 20 ms, and the first: 21 ms, nothing of it queued.
    let workers = vec![
        Worker::on(0, vec![Run(10 * MS), Wait, Run(MS)]),
        Worker::on(1, vec![Run(10 * MS)]),
        Worker::on(1, vec![Run(10 * MS), Wake(0)]),
        Worker::on(2, vec![Run(1_000)]),
    ];
    let work = Workload { cpus: 3, workers, steal: None };
    let events = work.run();
    let options = path::Options { pid: Some(sched::Pid(100)), ..path::Options::default() };
    let pass = Pass::over(events.as_slice());
    let path = pass.run(|| path::CriticalPath::new(options)).unwrap_or_else(|never| match never {}).output;
    assert_eq!((path.times.queued_ns, path.times.running_ns as i64), (0, 21 * MS));
    // With a steal at once the second task has come before the first one sleeps.
    let model = Work::of_workload(&work);
    let (topology, costs) = (Topology::default(), Costs::default());
    let (order, interrupts, wakeups) = (Order::Fifo, Interrupts::KeepLength, Wakeups::ByKind);
    let options = EngineOptions { topology: &topology, order, costs, interrupts, wakeups };
    assert_eq!(model.under(PolicyName::Ideal, &options), Some(11 * MS));
    assert_eq!(model.least(Granted::default()), Some(11 * MS));
}

#[test]
fn no_policy_is_faster_than_the_bound_on_random_work() {
    let (mut tight, mut gains) = (0, 0);
    for seed in 0..120 {
        let work = Workload::random(seed, true);
        let of = Work::of_workload(&work);
        let (least, fastest, runs) = of.obeys_the_law(&Topology::default(), &format!("seed {seed}"));
        assert_eq!(runs, 24, "seed {seed}");
        // The other simulator, which shares nothing with that of whatif.
        let stealing = Work::of_workload(&Workload { steal: Some(0), ..work }).figures.elapsed_ns.0 as i64;
        assert!(stealing >= least, "seed {seed}: {stealing} {least}");
        tight += usize::from(fastest.min(stealing) <= least + least / 20);
        gains += usize::from(least < of.figures.elapsed_ns.0 as i64);
    }
    // The bound says something: it is mostly below the trace, and mostly reached.
    assert!(gains > 60 && tight > 60, "{gains} {tight}");
}

/// Recordings alone have few forks, deaths and losses between the events of a path: random histories have all of them, which bounds must
/// survive.
#[test]
fn no_policy_is_faster_than_the_bound_on_random_histories() {
    let (mut histories, mut runs) = (0, 0);
    for seed in some_seeds(40, 120) {
        histories += 1;
        let history = Simulation::any(seed, 1 + (seed % 9) as u32, 400);
        let Some(work) = Work::of(history.events.as_slice(), &BuildOptions::default()) else { continue };
        runs += work.obeys_the_law(&Topology::default(), &format!("seed {seed}")).2;
    }
    assert!(3 * runs > 30 * histories, "{runs} of {histories}");
}

#[test]
fn no_policy_is_faster_than_the_bound_on_any_recording() {
    let recordings = recordings_in_part(6);
    let checked = recordings.par_iter().map(|file| {
        let Ok(trace) = Trace::open(file, Options::default()) else { return 0 };
        let (Ok(events), name) = (trace.events(), file.display().to_string()) else { return 0 };
        let Some(work) = Work::of(events, &BuildOptions::default()) else { return 0 };
        if work.model.is_cut() { 0 } else { work.obeys_the_law(&Topology::default(), &name).2 }
    });
    assert!(checked.sum::<usize>() > 20);
}

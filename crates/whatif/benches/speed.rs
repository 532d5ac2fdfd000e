//! The speed of the engine: simulated events a second on one core, by policy.
//!
//! ```text
//! cargo bench -p schedviz-whatif --bench speed -- [TRACE...]
//! ```
//!
//! Without a recording the work is that of the test kit: 8 CPUs, 32 tasks that run, sleep and wake one another.
#![allow(clippy::print_stdout)]

use sched::topology::Distance;
use sched::{Pass, Topology};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;
use testkit::Operation::{Nap, Run, Wait, Wake};
use testkit::{Worker, Workload};
use whatif::{
    BuildOptions, Costs, EngineOptions, Interrupts, Model, ModelBuilder, Order, PolicyName, Wakeups, simulate,
};

/// Pairs of tasks that wake one another, and between them tasks that sleep for some time.
fn of_the_test_kit() -> Model {
    let worker = |index: usize| {
        let operations = |nth: i64| match index % 4 {
            0 => vec![Run(20_000 + nth % 977), Wake(index + 1), Wait],
            1 => vec![Wait, Run(30_000 + nth % 1009), Wake(index - 1)],
            _ => vec![Run(50_000 + nth % 991), Nap(1 + nth % 70_001)],
        };
        Worker::on(index % 8, (0..5_000).flat_map(operations).collect())
    };
    let events = Workload { cpus: 8, workers: (0..32).map(worker).collect(), steal: None }.run();
    let build = BuildOptions::default();
    Pass::over(events.as_slice()).run(|| ModelBuilder::new(&build)).unwrap_or_else(|never| match never {}).output
}

fn of_trace(path: &Path) -> Model {
    let trace = parse::Trace::open(path, parse::Options::default()).expect("a trace");
    let build = BuildOptions { most_turns: Some(Model::most_turns_of(trace.data_size())), ..BuildOptions::default() };
    Pass::over(trace.events().expect("events")).run(|| ModelBuilder::new(&build)).expect("a pass").output
}

fn measure(name: &str, model: &Model) {
    let (topology, costs) = (Topology::default(), Costs { steal: 2_000, ..Costs::default() });
    let (order, interrupts, wakeups) = (Order::Fair, Interrupts::KeepLength, Wakeups::ByKind);
    let options = EngineOptions { topology: &topology, order, costs, interrupts, wakeups };
    let balanced = "newidle+nohz+periodic".parse().expect("a policy");
    let steal = |within| PolicyName::Steal(within);
    for policy in [PolicyName::Observed, steal(None), steal(Some(Distance::Machine)), balanced, PolicyName::Ideal] {
        let once = || {
            let begun = Instant::now();
            let run = simulate(model, &mut *policy.policy(), &options, &mut |_| ControlFlow::Continue(()));
            (run.events, run.events as f64 / begun.elapsed().as_secs_f64() / 1e6)
        };
        let runs: Vec<(u64, f64)> = (0..5).map(|_| once()).collect();
        let best = runs.iter().map(|(_, speed)| *speed).fold(0.0, f64::max);
        println!(
            "{name:<24}{policy:<23}{:>10} events{best:>8.1} million a second",
            runs[0].0,
            policy = policy.to_string()
        );
    }
}

fn main() {
    let traces: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    if traces.is_empty() {
        measure("the test kit's work", &of_the_test_kit());
    }
    for trace in &traces {
        let path = Path::new(trace);
        measure(&path.file_name().unwrap_or_default().to_string_lossy(), &of_trace(path));
    }
}

//! A policy in one file: a CPU that goes idle takes the task that has waited longest, wherever that waits.
//!
//! `cargo run -p schedviz-whatif --example own_policy` runs two tasks of 10 ms each, which begin on one CPU of two.
#![allow(clippy::print_stdout)]

use sched::{Cpu, Pass, Topology};
use std::ops::ControlFlow;
use testkit::{Operation::Run, Worker, Workload};
use whatif::{
    BuildOptions, Costs, EngineOptions, Interrupts, Machine, ModelBuilder, Observed, Order, Policy, TaskIndex, Wakeups,
    simulate,
};

/// Stealing of the task that came first, of all queues.
struct OldestFirst;

impl Policy for OldestFirst {
    fn name(&self) -> String {
        "oldest-first".to_owned()
    }

    // The queues are in the order of arrival, and the machine has the order of all waiting tasks.
    fn steal(&mut self, cpu: Cpu, machine: &Machine<'_>) -> Option<TaskIndex> {
        machine.first_of_all(cpu)
    }
}

fn main() {
    let worker = |cpu: usize, ns: i64| Worker::on(cpu, vec![Run(ns)]);
    let workers = vec![worker(0, 10_000_000), worker(0, 10_000_000), worker(1, 1_000)];
    // The trace could as well be a file: see `examples/busiest.rs`.
    let events = Workload { cpus: 2, workers, steal: None }.run();
    let build = BuildOptions::default();
    let pass = Pass::over(events.as_slice());
    let model = pass.run(|| ModelBuilder::new(&build)).unwrap_or_else(|never| match never {}).output;
    let topology = Topology::default();
    let (order, costs) = (Order::Fifo, Costs { steal: 2_000, ..Costs::default() });
    let (interrupts, wakeups) = (Interrupts::KeepLength, Wakeups::ByKind);
    let options = EngineOptions { topology: &topology, order, costs, interrupts, wakeups };
    let policies: [&mut dyn Policy; 2] = [&mut Observed, &mut OldestFirst];
    for policy in policies {
        let run = simulate(&model, policy, &options, &mut |_| ControlFlow::Continue(()));
        println!("{:<14}{:>8} µs, {} steals", policy.name(), run.end.since(model.start).0 / 1_000, run.steals);
    }
}

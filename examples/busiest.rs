//! Prints the five tasks that ran longest: the reader, the state and an analysis in a few lines.
//!
//! `cargo run --example busiest -- tests/fixtures/hackbench.dat`
#![allow(clippy::print_stdout)]

use parse::{Options, Trace};
use sched::{Analysis, Pass, Pid, SchedState, Span, TaskState, Ts};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The latest name and the running time in nanoseconds of each task.
#[derive(Default)]
struct Busiest(BTreeMap<Pid, (String, u64)>);

impl Analysis for Busiest {
    type Output = Vec<(Pid, String, u64)>;

    // The pass calls this with each span of a task that ends in the window.
    fn span(&mut self, span: &Span, state: &SchedState) {
        if let TaskState::Running(_) = span.state {
            let entry = self.0.entry(span.pid).or_default();
            entry.1 += span.duration().0;
            if let Some(task) = state.task(span.task) {
                entry.0 = task.comm.to_string();
            }
        }
    }

    fn finish(self, _: Ts, _: &SchedState) -> Self::Output {
        let mut tasks: Vec<_> = self.0.into_iter().map(|(pid, (name, ns))| (pid, name, ns)).collect();
        tasks.sort_by_key(|(pid, _, ns)| (Reverse(*ns), *pid));
        tasks
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: busiest TRACE.dat")?;
    let trace = Trace::open(path.as_ref(), Options::default())?;
    let outcome = Pass::over(trace.events()?).run(Busiest::default)?;
    for (pid, name, ns) in outcome.output.iter().take(5) {
        println!("{name:<16} {pid:>7} {:>10.3} ms", *ns as f64 / 1e6);
    }
    for (what, count, _) in outcome.diagnostics.iter() {
        println!("{}", what.line(count));
    }
    Ok(())
}

//! A case by hand.

use crate::{Options, Sample, SampleRow};
use sched::{Cpu, Pass};

// todo(sample): a case whose numbers are calculated by hand, and one with the known truth of `testkit::Simulation`.
#[test]
fn switches_to_tasks_are_counted_by_cpu() {
    let options = Options::default();
    let events = testkit::a_wait_beside_an_idle_cpu();
    let outcome = Pass::over(events.as_slice()).run(|| Sample::new(&options)).unwrap_or_else(|never| match never {});
    let row = |cpu, switches| SampleRow { cpu: Cpu(cpu), switches };
    assert_eq!(outcome.output.cpus, [row(0, 2), row(1, 1)]);
}

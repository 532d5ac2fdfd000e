//! A simulated run as a recording: read again, it has the events of the simulation.

use parse::{Options, Trace};
use sched::{Dur, EventKind, Pass, SchedEvent, Topology};
use std::ops::ControlFlow;
use testkit::Operation::{Nap, Run, Wait, Wake};
use testkit::{Worker, Workload};
use whatif::{BuildOptions, Costs, EngineOptions, Interrupts, ModelBuilder, Order, PolicyName, Wakeups, simulate};

#[test]
fn a_recording_has_the_events_of_its_run() {
    // Long sleeps, of which the time has no room in the word before a record, and more records than a page has.
    let repeated = |operations: Vec<testkit::Operation>| operations.repeat(40);
    let workers = vec![
        Worker::on(0, repeated(vec![Run(3_000_000), Wake(1), Nap(200_000_000)])),
        Worker::on(0, repeated(vec![Wait, Run(5_000_000)])),
        Worker { prio: 10, ..Worker::on(2, repeated(vec![Run(1_000_000), Nap(700_000)])) },
        Worker::on(2, repeated(vec![Run(2_000_000)])),
    ];
    let events = Workload { cpus: 3, workers, steal: None }.run();
    let build = BuildOptions::default();
    let pass = Pass::over(events.as_slice());
    let model = pass.run(|| ModelBuilder::new(&build)).unwrap_or_else(|never| match never {}).output;
    let topology = Topology::default();
    let (order, interrupts, wakeups) = (Order::Fair, Interrupts::KeepLength, Wakeups::ByKind);
    let costs = Costs { steal: 2_000, ..Costs::default() };
    let options = EngineOptions { topology: &topology, order, costs, interrupts, wakeups };
    let policy = || "steal=machine".parse::<PolicyName>().expect("a policy").policy();

    let mut simulated: Vec<SchedEvent> = Vec::new();
    simulate(&model, &mut *policy(), &options, &mut |event| {
        simulated.push(event);
        ControlFlow::Continue(())
    });
    let mut file = std::io::Cursor::new(Vec::new());
    whatif::write_run(&model, &mut *policy(), &options, "6.12.0", &mut file).expect("written");
    let trace = Trace::from_bytes(file.into_inner(), Options::default()).expect("a trace");
    assert_eq!((trace.info().kernel.as_deref(), trace.info().cpus), (Some("6.12.0"), 3));
    let mut read: Vec<SchedEvent> = Vec::new();
    let mut source = trace.events().expect("events");
    let ended = sched::EventSource::events(&mut source, &mut |batch| {
        read.extend_from_slice(batch);
        ControlFlow::Continue(())
    });
    ended.expect("read");
    // The number of the marks is the file's own, and events of one instant on several CPUs are apart.
    assert!(simulated.len() > 300 && read.len() == simulated.len());
    for (read, simulated) in read.iter().zip(&simulated) {
        let kind = if let EventKind::Other { .. } = read.kind { EventKind::Other { id: 0 } } else { read.kind };
        assert_eq!(SchedEvent { ts: simulated.ts, kind, ..*read }, *simulated);
        assert!(read.ts.since(simulated.ts).0 < 100, "{read:?} {simulated:?}");
    }
}

#[test]
fn the_base_slice_of_the_machine_counts_where_no_run_is_cut_off() {
    let slice = |base_slice| {
        let workers = vec![Worker::on(0, vec![Run(400_000_000)]); 2];
        let events = Workload { cpus: 1, workers, steal: None }.run();
        let build = BuildOptions { base_slice, ..BuildOptions::default() };
        let pass = Pass::over(events.as_slice());
        let model = pass.run(|| ModelBuilder::new(&build)).unwrap_or_else(|never| match never {}).output;
        (model.taken.slice_ns.0, model.taken.slice_is_measured)
    };
    assert_eq!([slice(Some(Dur(12_000_000))), slice(None)], [(12_000_000, false), (3_000_000, false)]);
}

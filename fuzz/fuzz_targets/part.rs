//! The note of a part of a trace: the input is its JSON. Passes begin with the state that it notes.
#![no_main]

use sched::analysis::RunTime;
use sched::{ChosenCpus, Pass, Topology};
use testkit::{Compression, TraceBuilder};
use parse::{Options, Trace};

/// A part with this note behind everything else.
fn part(note: &[u8]) -> Vec<u8> {
    let file = |at: usize| {
        let numbers = [at as u64, note.len() as u64].into_iter().flat_map(u64::to_le_bytes);
        let options = vec![(0x5343, numbers.chain(1u32.to_le_bytes()).collect())];
        let builder = TraceBuilder { compression: Compression::Zstd, options, ..TraceBuilder::default() };
        builder.events(&testkit::a_wait_beside_an_idle_cpu()).build()
    };
    let mut part = file(file(0).len());
    part.extend_from_slice(note);
    part
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let block = zstd::bulk::compress(bytes, 1).expect("compressed");
    let sizes = [block.len() as u32, bytes.len() as u32].map(u32::to_le_bytes).concat();
    let options = Options { threads: 1, ..Options::default() };
    let Ok(trace) = Trace::from_bytes(part(&[sizes, block].concat()), options) else { return };
    let Ok(events) = trace.events() else { return };
    let _ = Pass::over(events).run(RunTime::default);
    let waits = latency::Options {
        cpus: ChosenCpus::default(),
        tasks: None,
        by: latency::TasksBy::Task,
        groups: None,
        together: false,
        topology: Topology::default(),
        zero: sched::Ts(0),
        fair_before: sched::nice::FairBefore::Unknown,
        worst: 3,
        queued: None,
    };
    if let Ok(events) = trace.events() {
        let _ = Pass::over(events).run(|| latency::Latency::new(&waits));
    }
    if let (Ok(events), Some((start, end))) = (trace.events(), trace.extent()) {
        let shares = fairness::Options::new(start, end);
        let _ = Pass::over(events).run(|| fairness::Fairness::new(&shares));
    }
});

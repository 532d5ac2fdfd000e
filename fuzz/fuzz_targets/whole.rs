//! A complete file, by every way of reading: counts, records with all their fields, the merged
//! events with the state, the parents of tasks, single CPUs.
#![no_main]

use parse::{Options, Trace, Want};
use sched::lineage::LineageHistory;
use sched::{EventSource, Pass, Ts, Window, analysis::RunTime};
use std::ops::ControlFlow;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let options = Options { threads: 1, ..Options::default() };
    let Ok(trace) = Trace::from_bytes(bytes.to_vec(), options) else { return };
    let _ = trace.event_counts();
    let mut left = 5_000u32;
    trace.records(&mut |record| {
        let _ = (record.text(), record.place(), record.prev_state(), record.printed(), record.command());
        for field in record.format().iter().flat_map(|f| f.own_fields()) {
            let _ = (record.number(&field.name), record.bytes(&field.name));
        }
        left -= 1;
        if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    if let Ok(events) = trace.events() {
        let _ = Pass::over(events).prologue(100).run(RunTime::default);
    }
    if let (Ok(events), Some((start, end))) = (trace.events(), trace.extent()) {
        let from = Ts(start.0.midpoint(end.0));
        let (mut kept, mut left) = (None, 500u32);
        trace.records_from(from, &mut |record| {
            assert!(record.ts >= from);
            kept = Some(record.keep());
            left -= 1;
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let _ = kept.map(|kept| kept.record(&trace).printed());
        let _ = Pass::over(events.near(from)).window(Window { from: Some(from), to: None }).run(RunTime::default);
    }
    if let Ok(mut events) = trace.events_of(Want::Lineage) {
        let mut history = LineageHistory::default();
        let _ = events.events(&mut |events| {
            events.iter().for_each(|event| history.learn(event));
            ControlFlow::Continue(())
        });
        let _ = history.root().map(|root| history.of(root, Ts::MAX));
    }
    if let Ok(reader) = trace.cpu_reader(Want::Switches) {
        for cpu in trace.observed().into_iter().take(8) {
            for buffer in reader.buffers_of(cpu) {
                reader.events(buffer, cpu, None, &mut |_| ControlFlow::Continue(()));
            }
        }
    }
});

//! Files of other shapes than the test kit writes.

use crate::{fuzz, is_perfetto, open};
use parse::{Error, FileIssue, Options, Source, Trace};
use sched::{EventKind, SchedEvent};
use std::io::Write;
use std::ops::ControlFlow;
use testkit::{PerfettoBuilder, PerfettoForm, Rng, Simulation};

fn read(bytes: Vec<u8>) -> Result<Trace, Error> {
    open(&Source::Memory(bytes), Options { threads: 1, ..Options::default() })
}

fn events(trace: &Trace) -> Vec<SchedEvent> {
    let mut all = Vec::new();
    let mut events = trace.events().unwrap();
    let collect = &mut |batch: &[SchedEvent]| {
        all.extend_from_slice(batch);
        ControlFlow::Continue(())
    };
    sched::EventSource::events(&mut events, collect).unwrap();
    all
}

fn field(number: u64, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for mut value in [number << 3 | 2, bytes.len() as u64] {
        while value >= 0x80 {
            out.push(value as u8 | 0x80);
            value >>= 7;
        }
        out.push(value as u8);
    }
    out.extend_from_slice(bytes);
    out
}

/// A bundle of CPU 0 in a packet: this message of compact switches.
fn compact(message: &[u8]) -> Vec<u8> {
    field(1, &field(1, &[&[8, 0][..], &field(4, message)].concat()))
}

#[test]
fn packets_are_recognised_by_their_fields() {
    let is = |bytes: &[u8]| is_perfetto(&Source::Memory(bytes.to_vec()));
    assert!(is(&PerfettoBuilder::default().build(&Simulation::run(1, 2, 50).events)));
    assert!(is(b"\x0a\x05\x50\x01\x40\x80\x01\x0a\x04\x0a\x02\x08\x03"));
    for other in [
        &b""[..],
        b"\n",
        b"\n\n# tracer: nop\n",
        b"\n  <idle>-0  [001] 1.0: x: y",
        b"\x0a\x05\x50",
        b"PERFILE2",
        b"\x1f\x8b",
    ] {
        assert!(!is(other), "{other:?}");
    }
}

#[test]
fn arrays_of_different_lengths_are_damage() {
    // Three switches in numbers that are not packed: times, states, PIDs, priorities, names.
    let columns = |pids: usize| {
        let mut out = field(5, b"one");
        for (number, value) in [(1u8, 9u8), (2, 1), (3, 7), (4, 120), (6, 0)] {
            for _ in 0..if number == 3 { pids } else { 3 } {
                out.extend_from_slice(&[number << 3, value]);
            }
        }
        out
    };
    let trace = read(compact(&columns(3))).unwrap();
    assert_eq!(trace.diagnostics().count(FileIssue::CorruptRecord), 0);
    let times: Vec<i64> =
        events(&trace).iter().filter(|event| matches!(event.kind, EventKind::Switch { .. })).map(|e| e.ts.0).collect();
    assert_eq!(times, [18, 27]);
    let trace = read(compact(&columns(2))).unwrap();
    assert_eq!(trace.diagnostics().count(FileIssue::CorruptRecord), 1);
    assert_eq!(events(&trace).iter().filter(|event| matches!(event.kind, EventKind::Switch { .. })).count(), 1);
}

#[test]
fn what_packets_may_become_is_bounded() {
    let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    let zeros = vec![0; 1 << 20];
    for _ in 0..70 {
        packed.write_all(&zeros).unwrap();
    }
    let events = PerfettoBuilder::default().build(&Simulation::run(1, 2, 50).events);
    let bomb = [events, field(1, &field(50, &packed.finish().unwrap()))].concat();
    let trace = read(bomb).unwrap();
    assert_eq!(trace.diagnostics().count(FileIssue::BeyondLimit), 1);
}

#[test]
fn damage_is_no_reason_to_panic() {
    let simulation = Simulation::run(11, 3, 120);
    let forms = [PerfettoForm::Plain, PerfettoForm::Compact, PerfettoForm::Generic, PerfettoForm::Described];
    let mut rng = Rng::new(5);
    for form in forms {
        let whole = PerfettoBuilder { form, processes: vec![(1, vec![(2, "two")])], ..PerfettoBuilder::default() };
        let whole = whole.build(&simulation.events);
        assert!(fuzz(&whole) > 100);
        for _ in 0..40 {
            let mut bytes = whole.clone();
            for _ in 0..1 + rng.below(4) {
                let place = rng.below(bytes.len());
                bytes[place] = rng.below(256) as u8;
            }
            bytes.truncate(bytes.len() - rng.below(30));
            let _ = fuzz(&bytes);
        }
    }
}

/// Events with thousands of fields have no format: they are counted, and what they name is not kept.
#[test]
fn events_of_too_many_fields_are_unknown() {
    let many = |most: usize| [field(1, b"event"), b"\x12\x00".repeat(most)].concat();
    let at = b"\x08\x07\x10\x01";
    let named = |most: usize| field(2, &[&at[..], &field(327, &many(most))].concat());
    let described = |kind: u8, most: usize| {
        let described = [&[8, kind][..], &field(2, &many(most))].concat();
        [field(11, &described), field(2, &[&at[..], &field(kind.into(), b"")].concat()).repeat(3)].concat()
    };
    for (most, unknown) in [(64, 0), (65, 4), (30_000, 4)] {
        let bundle = [&[8, 0][..], &named(1), &named(most), &described(100, most)].concat();
        let trace = read(field(1, &field(1, &bundle))).unwrap();
        assert_eq!(trace.diagnostics().count(FileIssue::UnknownEvent), unknown, "{most}");
    }
}

//! Records come back in order, whatever the order of the file.

use crate::limits;
use crate::{At, FieldDef, FieldKind, FieldValue, Transcript, TranscriptFacts};
use parse::{FileIssue, Options, Trace};
use std::ops::ControlFlow;

/// The CPU, the time and the number of each record, and the finding of times that step back.
fn read(transcript: Transcript) -> (Vec<(u32, i64, i64)>, u64) {
    let trace =
        Trace::of_recording(transcript.finish(TranscriptFacts::default()).unwrap(), Options::default()).unwrap();
    let mut all = Vec::new();
    trace.records(&mut |record| {
        all.push((record.cpu.0, record.ts.0, record.number("n").unwrap()));
        ControlFlow::Continue(())
    });
    (all, trace.diagnostics().count(FileIssue::TimeBackwards))
}

fn written(records: impl IntoIterator<Item = (u32, u64)>) -> Transcript {
    let mut transcript = Transcript::default();
    let fields = [FieldDef::new("n", FieldKind::Unsigned(8)), FieldDef::new("text", FieldKind::Text)];
    let event = transcript.event("made", "up", &fields).unwrap();
    for (number, (cpu, time)) in (0..).zip(records) {
        let text = format!("record {number} {:x}", (time ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let values = [FieldValue::Number(number.cast_signed()), FieldValue::Text(text.as_bytes())];
        transcript.record(At { cpu, time, ..At::default() }, event, &values).unwrap();
    }
    transcript
}

/// Sorts records by time and, where these are equal, as the file has them.
fn sorted(records: &[(u32, u64)]) -> Vec<(u32, i64, i64)> {
    let mut all: Vec<_> = (0..).zip(records).map(|(number, (cpu, time))| (*cpu, time.cast_signed(), number)).collect();
    all.sort_by_key(|(cpu, time, number)| (*time, *cpu, *number));
    all
}

#[test]
fn interleaved_parts_come_back_in_order() {
    // All of a CPU's switches, then its wakeups: two streams that overlap from the first run to the last.
    let halves = (0..2u64).flat_map(|half| (0..3000u64).map(move |n| ((n % 3) as u32, 1000 + n * 10 + half)));
    let halves: Vec<_> = halves.collect();
    assert_eq!(read(written(halves.iter().copied())), (sorted(&halves), 0));
    // Blocks of a hundred records, each eight blocks in reverse.
    let blocks = (0..80u64).map(|block| block / 8 * 8 + 7 - block % 8);
    let blocks: Vec<_> = blocks.flat_map(|block| (0..100).map(move |n| (1, block * 100 + n))).collect();
    assert_eq!(read(written(blocks.iter().copied())), (sorted(&blocks), 0));
}

#[test]
fn a_record_that_fits_in_no_stream_is_reported() {
    let times = (0..10u64).map(|n| (0, 1000 - n));
    let (found, late) = read(written(times));
    assert_eq!((found.len(), late), (10, 2));
    assert!(found.is_sorted_by_key(|(_, time, _)| *time));
}

#[test]
fn records_of_one_time_are_cut_into_units() {
    let all: Vec<(u32, u64)> = (0..20_000).map(|n| (0, if n == 0 { 5 } else { 7 })).collect();
    let transcript = written(all.iter().copied());
    let recording = transcript.finish(TranscriptFacts::default()).unwrap();
    assert!(recording.lanes[0].units > 5, "{:?}", recording.lanes);
    let most = (0..recording.lanes[0].units).map(|unit| recording.units.size(0, unit)).max().unwrap();
    assert!(most < (64 << 10) + limits::RUN as u64, "{most}");
    assert_eq!(read(written(all.iter().copied())).0, sorted(&all));
}

#[test]
fn texts_and_names_have_a_limit() {
    let mut transcript = Transcript::default();
    let field = |n: usize| FieldDef::new(&format!("a b\n{n}"), FieldKind::Text);
    assert_eq!(transcript.event("s", "many", (0..=limits::FIELDS).map(field).collect::<Vec<_>>()), None);
    let fields: Vec<FieldDef> = (0..limits::FIELDS).map(field).collect();
    let event = transcript.event("made", "u\tp", &fields[..]).unwrap();
    let long = vec![b'x'; 1 << 20];
    let values: Vec<FieldValue<'_>> = fields.iter().map(|_| FieldValue::Text(&long)).collect();
    transcript.record(At { cpu: 1, time: 5, ..At::default() }, event, &values).unwrap();
    let trace =
        Trace::of_recording(transcript.finish(TranscriptFacts::default()).unwrap(), Options::default()).unwrap();
    assert!(trace.format_named("made", "u_p").is_some());
    trace.records(&mut |record| {
        assert_eq!(record.bytes("a_b_0").map(<[u8]>::len), Some(limits::TEXT));
        assert_eq!(record.bytes("a_b_63").map(<[u8]>::len), Some(0));
        ControlFlow::Continue(())
    });
    let mut transcript = Transcript::default();
    let numbers: Vec<_> = (0..=limits::EVENTS).map(|n| transcript.event("made", &format!("e{n}"), &[])).collect();
    assert_eq!(numbers.iter().filter(|number| number.is_none()).count(), 1);
}

/// The CPU, the time and the count of each loss.
fn losses(transcript: Transcript) -> Vec<(u32, i64, Option<u64>)> {
    let trace =
        Trace::of_recording(transcript.finish(TranscriptFacts::default()).unwrap(), Options::default()).unwrap();
    let mut lost = Vec::new();
    let mut events = trace.events().unwrap();
    sched::EventSource::events(&mut events, &mut |batch: &[sched::SchedEvent]| {
        for event in batch {
            if let sched::EventKind::Lost { count } = event.kind {
                lost.push((event.cpu.0, event.ts.0, count.map(sched::LostCount::number)));
            }
        }
        ControlFlow::Continue(())
    })
    .unwrap();
    lost
}

#[test]
fn a_loss_stands_before_the_next_record_of_its_cpu() {
    let mut transcript = written([(0, 10), (1, 11)]);
    transcript.lost(0, Some(3));
    transcript.lost(0, Some(4));
    let event = transcript.event(
        "made",
        "up",
        &[FieldDef::new("n", FieldKind::Unsigned(8)), FieldDef::new("text", FieldKind::Text)],
    );
    transcript.record(At { cpu: 0, time: 20, ..At::default() }, event.unwrap(), &[FieldValue::Number(2)]).unwrap();
    transcript.lost(1, None);
    assert_eq!(losses(transcript), [(0, 10, Some(7)), (1, 11, None)]);
}

/// As many losses on all CPUs as a small file can have, between records of as many CPUs: 400 million steps if each took one for each CPU.
#[test]
fn a_loss_on_all_cpus_takes_no_step_for_each() {
    let mut transcript = written((0..20_000).map(|cpu| (cpu, 10)));
    let event = transcript.event("made", "down", []).unwrap();
    for time in 0..20_000 {
        transcript.lost_everywhere();
        transcript.record(At { cpu: 0, time: 20 + time, ..At::default() }, event, &[]).unwrap();
    }
    let recording = transcript.finish(TranscriptFacts::default()).unwrap();
    let records: Vec<_> = recording.lanes.iter().map(|lane| lane.records).collect();
    assert_eq!((records.len(), records[0], records[1]), (20_000, 20_001, 1));
}

#[test]
fn a_loss_on_all_cpus_is_one_of_those_that_have_records() {
    let mut transcript = written([(0, 10), (1, 10), (2, 10)]);
    let event = transcript.event("made", "down", []).unwrap();
    let record = |transcript: &mut Transcript, cpu, time| {
        transcript.record(At { cpu, time, ..At::default() }, event, &[]).unwrap();
    };
    transcript.lost(1, Some(2));
    transcript.lost_everywhere();
    transcript.lost_everywhere();
    transcript.lost(1, Some(5));
    record(&mut transcript, 0, 20);
    record(&mut transcript, 3, 20);
    record(&mut transcript, 1, 21);
    transcript.lost(1, Some(4));
    record(&mut transcript, 1, 22);
    assert_eq!(losses(transcript), [(0, 10, None), (1, 10, None), (2, 10, None), (1, 21, Some(4))]);
}

#[test]
fn the_fields_of_all_events_have_a_limit() {
    let mut transcript = Transcript::default();
    let fields: Vec<_> = (0..limits::FIELDS).map(|n| FieldDef::new(&format!("f{n}"), FieldKind::Text)).collect();
    let mut event = |n: usize| transcript.event("made", &format!("e{n}"), &fields[..]);
    let most = limits::ALL_FIELDS / limits::FIELDS;
    let numbers: Vec<_> = (0..=most).map(&mut event).collect();
    assert!(numbers[..most].iter().all(Option::is_some) && numbers[most].is_none());
    assert_eq!(event(3), numbers[3]);
}

#[test]
fn the_letters_of_a_switch_follow_the_kernel() {
    let print = crate::prints::switch;
    assert!(print(None).contains("REC->prev_state & 0x100 ? \"+\""));
    assert_eq!((print(Some((4, 14))), print(Some((6, 1)))), (print(None), print(None)));
    assert!(print(Some((4, 13))).contains("REC->prev_state & 0x1000 ? \"+\""));
    assert!(print(Some((4, 4))).contains("REC->prev_state & 0x800 ? \"+\""));
    assert!(print(Some((3, 18))).contains("REC->prev_state & 0x400 ? \"+\""));
}

#[test]
fn prints_are_those_of_the_kernel_where_the_fields_are_its_own() {
    let field = |name: &str, kind| FieldDef::new(name, kind);
    let known = |system: &str, name: &str, fields: &[FieldDef]| {
        let fields: Vec<_> = fields.iter().map(|field| (field.name(), field.form())).collect();
        crate::prints::known(system, name, &fields)
    };
    let number = FieldKind::Signed(4);
    let exec = [field("filename", FieldKind::Text), field("pid", number), field("old_pid", number)];
    let print = "\"filename=%s pid=%d old_pid=%d\", __get_str(filename), REC->pid, REC->old_pid";
    assert_eq!(known("sched", "sched_process_exec", &exec).as_deref(), Some(print));
    let exit = [field("comm", FieldKind::Comm), field("pid", number), field("prio", number)];
    let print = "\"comm=%s pid=%d prio=%d\", REC->comm, REC->pid, REC->prio";
    assert_eq!(known("sched", "sched_process_exit", &exit).as_deref(), Some(print));
    assert_eq!(known("sched", "sched_process_exit", &exit[..2]), None, "a field is missing");
    let text = [field("comm", FieldKind::Comm), field("pid", FieldKind::Text), field("prio", number)];
    assert_eq!(known("sched", "sched_process_exit", &text), None, "a number is a text");
    assert_eq!(known("other", "sched_process_exit", &exit), None);
    let softirq = known("irq", "softirq_entry", &[field("vec", FieldKind::Unsigned(4))]).unwrap();
    assert!(
        softirq.starts_with("\"vec=%u [action=%s]\", REC->vec, __print_symbolic(REC->vec, { 0, \"HI\" }"),
        "{softirq}"
    );
}

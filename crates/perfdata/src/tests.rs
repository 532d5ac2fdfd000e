//! perf.data files: the same events as from a trace.dat, whatever the form of the file.

use parse::{Error, FileIssue, Options, Source, Trace};
use sched::counters::Readings;
use sched::{Comm, Cpu, EventKind, EventSource, Pid, SchedEvent, Ts};
use std::ops::ControlFlow;
use testkit::{ByteOrder, PerfBuilder, PerfForm, Simulation, TraceBuilder};

/// Returns all events of a trace, merged.
fn events(trace: &Trace) -> Vec<SchedEvent> {
    let mut events = Vec::new();
    let collect = &mut |batch: &[SchedEvent]| {
        events.extend_from_slice(batch);
        ControlFlow::Continue(())
    };
    trace.events().expect("a clock").events(collect).expect("events");
    events
}

fn open(bytes: Vec<u8>) -> Result<Trace, Error> {
    crate::open(Source::Memory(bytes), Options { threads: 1, ..Options::default() })
}

/// Events of four CPUs with losses, all at different times: a file has no order between CPUs at one time.
fn lossy() -> Vec<SchedEvent> {
    let (mut events, _) = Simulation::run(11, 4, 3000).lossy(3);
    events.retain(|event| !matches!(event.kind, EventKind::Offline));
    for (nth, event) in events.iter_mut().enumerate() {
        event.ts = Ts(1_000_000 + 100 * nth as i64);
    }
    events
}

fn machine(order: ByteOrder) -> TraceBuilder {
    TraceBuilder { order, cpu_count: 4, cmdlines: "77 early\n4243 early\n".into(), ..TraceBuilder::default() }
}

/// The events of the trace.dat that the same kernel would have written.
fn expected(order: ByteOrder, of: &[SchedEvent]) -> Vec<SchedEvent> {
    let dat = machine(order).events(of).build();
    events(&Trace::from_bytes(dat, Options { threads: 1, ..Options::default() }).expect("a trace.dat"))
}

#[test]
fn every_form_has_the_events_of_a_trace_dat() {
    let of = lossy();
    assert!(of.iter().any(|event| matches!(event.kind, EventKind::Lost { count: Some(_) })));
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let expected = expected(order, &of);
        for form in [PerfForm::File, PerfForm::Stream, PerfForm::Compressed] {
            for round in [1, 50, 100_000] {
                let builder = PerfBuilder { order, form, round, ..PerfBuilder::default() };
                let trace = open(builder.build(&machine(order), &of)).expect("a perf.data");
                let found = events(&trace);
                // The mark of a loss without a number does not exist here: its number is zero.
                let counted = |event: &SchedEvent| match event.kind {
                    EventKind::Lost { count } => SchedEvent {
                        kind: EventKind::Lost { count: count.or(Some(sched::LostCount::of(0))) },
                        ..*event
                    },
                    _ => *event,
                };
                let expected: Vec<SchedEvent> = expected.iter().map(counted).collect();
                let differs = expected.iter().zip(&found).position(|(a, b)| a != b);
                assert_eq!(differs.map(|nth| (expected[nth], found[nth])), None, "{order:?} {form:?} {round}");
                assert_eq!(found.len(), expected.len(), "{order:?} {form:?} {round}");
                assert_eq!(trace.counts().buffers[0].total(), of.len() as u64 - losses(&of));
            }
        }
    }
}

fn losses(events: &[SchedEvent]) -> u64 {
    events.iter().filter(|event| matches!(event.kind, EventKind::Lost { .. })).count() as u64
}

#[test]
fn buffers_of_tasks_are_sorted_and_repeated_events_left_out() {
    let of: Vec<SchedEvent> = lossy().into_iter().filter(|e| !matches!(e.kind, EventKind::Lost { .. })).collect();
    let expected = expected(ByteOrder::Little, &of);
    for form in [PerfForm::File, PerfForm::Compressed] {
        let builder = PerfBuilder { form, per_thread: true, repeated: true, round: 200, ..PerfBuilder::default() };
        let trace = open(builder.build(&machine(ByteOrder::Little), &of)).expect("a perf.data");
        assert_eq!(events(&trace), expected);
        assert_eq!(trace.diagnostics().count(FileIssue::DuplicateEvents), of.len() as u64);
        // From the middle on, and one CPU alone.
        let from = of[of.len() / 2].ts;
        let mut times = Vec::new();
        trace.records_from(from, &mut |record| {
            times.push(record.ts);
            ControlFlow::Continue(())
        });
        assert_eq!(times, of[of.len() / 2..].iter().map(|event| event.ts).collect::<Vec<_>>());
        let reader = trace.cpu_reader(parse::Want::Everything).expect("a clock");
        let mut count = 0;
        reader.events(0, Cpu(2), None, &mut |_| {
            count += 1;
            ControlFlow::Continue(())
        });
        assert_eq!(count, of.iter().filter(|event| event.cpu == Cpu(2)).count());
    }
}

#[test]
fn the_header_describes_the_machine_but_not_the_host() {
    let of = lossy();
    let marked: u64 = of
        .iter()
        .map(|e| if let EventKind::Lost { count } = e.kind { count.map_or(0, sched::LostCount::number) } else { 0 })
        .sum();
    for form in [PerfForm::File, PerfForm::Stream] {
        let builder = PerfBuilder { form, clock: Some(7), lost_samples: marked + 19, ..PerfBuilder::default() };
        let trace = open(builder.build(&machine(ByteOrder::Little), &of)).expect("a perf.data");
        let (info, origin) = (trace.info(), trace.origin().expect("another format").clone());
        assert_eq!((info.kernel.as_deref(), info.cpus), (Some(TraceBuilder::default().age.release()), 4));
        assert_eq!((info.clock.as_str(), info.writer.as_deref()), ("boot", Some("perf 6.12.1")));
        assert_eq!((origin.format, origin.command), ("perf.data", vec!["perf".into(), "record".into()]));
        assert_eq!(origin.topology.place(Cpu(3)).and_then(|place| place.node), Some(0));
        assert!(!format!("{trace:?}").contains("secret-host"), "the host's name is kept nowhere");
        // The name of a record is later than that of the tracing data.
        assert_eq!((trace.saved_name(Pid(77)), trace.saved_name(Pid(4243))), (Comm::new(b"early"), Comm::new(b"late")));
        assert_eq!(trace.diagnostics().count(FileIssue::EventsDroppedUnmarked), 19);
    }
}

#[test]
fn a_recording_of_one_command_is_no_recording_of_the_machine() {
    for form in [PerfForm::File, PerfForm::Stream] {
        for of_command in [false, true] {
            let builder = PerfBuilder { form, of_command, ..PerfBuilder::default() };
            let trace = open(builder.build(&machine(ByteOrder::Little), &lossy())).expect("a perf.data");
            assert_eq!(trace.diagnostics().count(FileIssue::SomeTasks), u64::from(of_command));
        }
    }
}

#[test]
fn what_cannot_be_read_is_refused_with_a_reason() {
    let why = |bytes: Vec<u8>| open(bytes).expect_err("refused").to_string();
    let of = lossy();
    let file = PerfBuilder::default().build(&machine(ByteOrder::Little), &of);
    assert!(why(file[..40].to_vec()).contains("header of perf.data"));
    // Cut in its records: the formats stood behind them.
    assert!(why(file[..file.len() / 2].to_vec()).contains("was cut"), "{}", why(file[..file.len() / 2].to_vec()));
    // Not finished: the size of the records is zero.
    let mut unfinished = file.clone();
    unfinished[48..56].fill(0);
    assert!(why(unfinished).contains("killed"));
    let stream = PerfBuilder { form: PerfForm::Stream, ..PerfBuilder::default() };
    let formats = testkit_formats(&stream.build(&machine(ByteOrder::Little), &[]));
    assert!(why(formats).contains("no event formats"));
    assert!(why(b"PERFILE2\x10\0\0\0\0\0\0\0".to_vec()).contains("no tracepoints"));
}

/// A stream without its record of formats and all that follows it.
fn testkit_formats(stream: &[u8]) -> Vec<u8> {
    let at = stream.windows(8).position(|head| head == [66, 0, 0, 0, 0, 0, 16, 0]).expect("the record of the formats");
    stream[..at].to_vec()
}

#[test]
fn behind_damage_reading_goes_on_at_the_next_round() {
    let of: Vec<SchedEvent> = lossy().into_iter().filter(|e| !matches!(e.kind, EventKind::Lost { .. })).collect();
    let builder = PerfBuilder { form: PerfForm::Stream, round: 100, ..PerfBuilder::default() };
    let mut bytes = builder.build(&machine(ByteOrder::Little), &of);
    let rounds: Vec<usize> =
        (0..bytes.len() - 8).filter(|at| bytes[*at..*at + 8] == [68, 0, 0, 0, 0, 0, 8, 0]).collect();
    // The size of the first record of the third round is zero.
    bytes[rounds[1] + 8 + 6..rounds[1] + 8 + 8].fill(0);
    let trace = open(bytes).expect("a perf.data");
    assert_eq!(trace.diagnostics().count(FileIssue::CorruptRecord), 1);
    let found = events(&trace);
    let known: Vec<SchedEvent> = found.iter().copied().filter(|e| !matches!(e.kind, EventKind::Lost { .. })).collect();
    let expected = expected(ByteOrder::Little, &of);
    let without: Vec<SchedEvent> = expected[..200].iter().chain(&expected[300..]).copied().collect();
    assert_eq!(known, without);
    // Each CPU that goes on lost something, at its last event before.
    let cpus: Vec<Cpu> =
        found.iter().filter(|e| matches!(e.kind, EventKind::Lost { count: None })).map(|e| e.cpu).collect();
    assert_eq!(cpus.len(), 4, "{cpus:?}");
    assert!(found.iter().filter(|e| matches!(e.kind, EventKind::Lost { .. })).all(|e| e.ts <= expected[199].ts));
}

#[test]
fn a_cut_stream_is_read_to_its_end() {
    let of = lossy();
    let bytes =
        PerfBuilder { form: PerfForm::Stream, ..PerfBuilder::default() }.build(&machine(ByteOrder::Little), &of);
    let whole = expected(ByteOrder::Little, &of).len();
    let formats = machine(ByteOrder::Little).tracing_data().len() + 2000;
    let mut before = 0;
    for cut in (formats..bytes.len()).step_by(bytes.len() / 40) {
        let trace = open(bytes[..cut].to_vec()).expect("a perf.data");
        let count = events(&trace).len();
        assert!(count >= before && count <= whole + 4, "{count} events at {cut}");
        before = count;
    }
    assert!(before > whole / 2);
}

#[test]
fn damaged_bytes_end_no_program() {
    [PerfForm::File, PerfForm::Stream, PerfForm::Compressed].into_iter().for_each(damage);
}

fn damage(form: PerfForm) {
    let of: Vec<SchedEvent> = lossy().into_iter().take(400).collect();
    let bytes = PerfBuilder { form, round: 50, ..PerfBuilder::default() }.build(&machine(ByteOrder::Little), &of);
    let mut random = testkit::Rng::new(5);
    for _ in 0..200 {
        let mut damaged = bytes.clone();
        for _ in 0..3 {
            let at = random.below(damaged.len());
            damaged[at] ^= 1 << random.below(8);
        }
        if random.below(3) == 0 {
            damaged.truncate(random.below(bytes.len()));
        }
        crate::fuzz(&damaged);
    }
}

#[test]
fn the_values_of_counters_are_found_at_the_switches() {
    let of: Vec<SchedEvent> = lossy();
    for order in [ByteOrder::Little, ByteOrder::Big] {
        for form in [PerfForm::File, PerfForm::Stream, PerfForm::Compressed] {
            let builder = PerfBuilder { order, form, counters: true, ..PerfBuilder::default() };
            let trace = open(builder.build(&machine(order), &of)).expect("a perf.data");
            let counters = trace.counters().expect("counters");
            assert_eq!(counters.names(), ["cycles"]);
            let mut readings = Readings::of(counters);
            for event in of.iter().filter(|event| !matches!(event.kind, EventKind::Lost { .. })) {
                let reading = readings.at(event.cpu, event.ts).expect("a reading");
                assert_eq!(reading.values[0], builder.cycles(event), "{order:?} {form:?} {event:?}");
                assert_eq!(readings.at(event.cpu, Ts(event.ts.0 + 1)), None);
            }
        }
    }
    let without = open(PerfBuilder::default().build(&machine(ByteOrder::Little), &of)).expect("a perf.data");
    assert!(without.counters().is_none());
}

/// Samples of two PIDs in cgroups: each is recorded once, with its path, and so is the process that a name belongs to.
#[test]
fn samples_show_cgroups_and_names_show_processes() {
    let of: Vec<SchedEvent> = lossy().into_iter().filter(|e| !matches!(e.kind, EventKind::Lost { .. })).collect();
    let mut pids: Vec<i32> = of.iter().map(|event| event.pid.0).filter(|pid| *pid > 0).collect();
    pids.sort_unstable();
    pids.dedup();
    let cgroups = vec![(pids[0], 41, "/a/b"), (pids[1], 42, "/c")];
    for order in [ByteOrder::Little, ByteOrder::Big] {
        for form in [PerfForm::File, PerfForm::Stream, PerfForm::Compressed] {
            let builder = PerfBuilder { order, form, cgroups: cgroups.clone(), ..PerfBuilder::default() };
            let trace = open(builder.build(&machine(order), &of)).expect("a perf.data");
            let records = trace.memberships().expect("cgroups");
            let found: Vec<(Pid, u64)> = records.cgroups.iter().map(|(_, pid, id)| (*pid, *id)).collect();
            assert_eq!(found.len(), pids.len(), "each task once");
            assert!(
                found.contains(&(Pid(pids[0]), 41))
                    && found.contains(&(Pid(pids[1]), 42))
                    && found.contains(&(Pid(pids[2]), 1))
            );
            assert!(records.cgroups.is_sorted_by_key(|(time, ..)| *time));
            assert_eq!((records.paths[&41].as_slice(), records.paths[&42].as_slice()), (&b"/a/b"[..], &b"/c"[..]));
            assert_eq!(
                records.processes.iter().map(|(_, pid, process)| (*pid, *process)).collect::<Vec<_>>(),
                [(Pid(4243), Pid(4242))]
            );
            assert_eq!(events(&trace).len(), of.len(), "the events are those without cgroups");
        }
        let trace =
            open(PerfBuilder { order, ..PerfBuilder::default() }.build(&machine(order), &of)).expect("a perf.data");
        assert!(trace.memberships().expect("a process").cgroups.is_empty());
    }
}

/// A perf.data with one event, a dummy, and these records of the kernel (`linux/perf_event.h`).
fn of_records(records: &[Vec<u8>]) -> Vec<u8> {
    const SAMPLE: u64 = 1 << 1 | 1 << 2 | 1 << 7 | 1 << 16;
    let data = records.concat();
    let numbers = |numbers: &[u64]| numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>();
    let attr = [&[1, 0, 0, 0, 112, 0, 0, 0][..], &numbers(&[9, 1, SAMPLE, 0, 1 << 18 | 1 << 26]), &[0; 64]].concat();
    let places = [104, 128, 104, 128, 232, data.len() as u64, 0, 0, 0, 0, 0, 0];
    [&b"PERFILE2"[..], &numbers(&places), &attr, &numbers(&[0, 0]), &data].concat()
}

/// A record with its trailer: task, time, CPU, and the number of the event.
fn record(kind: u32, misc: u16, body: &[u8], (task, time, cpu): (u32, u64, u32)) -> Vec<u8> {
    let size = (8 + body.len() + 32) as u16;
    let head = [&kind.to_le_bytes()[..], &misc.to_le_bytes(), &size.to_le_bytes()].concat();
    let trailer =
        [&task.to_le_bytes()[..], &task.to_le_bytes(), &time.to_le_bytes(), &u64::from(cpu).to_le_bytes()].concat();
    [&head[..], body, &trailer, &[0; 8]].concat()
}

fn named(task: u32, name: &[u8; 8]) -> Vec<u8> {
    record(3, 0, &[&task.to_le_bytes()[..], &task.to_le_bytes(), name].concat(), (task, 0, 0))
}

/// The two records of a switch, as perf 6.1 wrote them on two CPUs.
fn switch(prev: u32, next: u32, time: u64, cpu: u32, preempted: bool) -> [Vec<u8>; 2] {
    let other = |task: u32| [task.to_le_bytes(), task.to_le_bytes()].concat();
    let misc = 1 << 13 | if preempted { 1 << 14 } else { 0 };
    [record(15, misc, &other(next), (prev, time, cpu)), record(15, 0, &other(prev), (next, time + 3, cpu))]
}

#[test]
fn switches_without_tracepoints_are_switches() {
    let fork =
        [8u32, 7, 8, 7].iter().flat_map(|number| number.to_le_bytes()).chain(150u64.to_le_bytes()).collect::<Vec<u8>>();
    let all = [
        vec![named(7, b"parent\0\0"), named(9, b"other\0\0\0")],
        switch(0, 7, 100, 1, false).to_vec(),
        vec![record(7, 0, &fork, (7, 150, 1))],
        switch(7, 8, 200, 1, true).to_vec(),
        switch(9, 0, 210, 0, false).to_vec(),
        switch(8, 7, 300, 1, false).to_vec(),
        // It exits, and the kernel does not know its number any more.
        switch(u32::MAX, 9, 350, 1, false)[..1].to_vec(),
        // The kernel lost what came between.
        switch(8, 0, 400, 1, false).to_vec(),
    ]
    .concat();
    let trace = open(of_records(&all)).expect("a trace");
    let name = |task: &sched::TaskRef| (task.pid.0, String::from_utf8_lossy(task.comm.as_bytes()).into_owned());
    let found: Vec<_> = events(&trace)
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::Switch { prev, state, next } => {
                Some((event.ts.0, event.cpu.0, name(prev), state.class, name(next)))
            }
            _ => None,
        })
        .collect();
    use sched::StateClass::{Asleep, Dead, Preempted, Runnable};
    let task = |pid: i32, name: &str| (pid, name.to_owned());
    let expected = [
        (100, 1, task(0, "swapper/1"), Runnable, task(7, "parent")),
        (200, 1, task(7, "parent"), Preempted, task(8, "parent")),
        (210, 0, task(9, "other"), Asleep, task(0, "swapper/0")),
        (300, 1, task(8, "parent"), Asleep, task(7, "parent")),
        (350, 1, task(7, "parent"), Dead, task(9, "other")),
        (400, 1, task(8, "parent"), Asleep, task(0, "swapper/1")),
    ];
    assert_eq!(found, expected);
    let lost = events(&trace).iter().filter(|event| matches!(event.kind, EventKind::Lost { .. })).count();
    assert_eq!(lost, 1);
    // Whatever of it is missing or other than it was.
    let whole = of_records(&all);
    for at in (104..whole.len()).step_by(3) {
        let mut other = whole.clone();
        other[at] ^= 0xff;
        let _ = (crate::fuzz(&other), crate::fuzz(&whole[..at]));
    }
}

#[test]
fn switches_of_single_tasks_are_refused() {
    let alone = record(14, 1 << 13, &[], (7, 100, 1));
    let why = open(of_records(&[named(7, b"a\0\0\0\0\0\0\0"), alone])).map(drop).expect_err("no machine").to_string();
    assert!(why.contains("perf record -a --switch-events"), "{why}");
}

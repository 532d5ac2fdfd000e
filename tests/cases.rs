//! The cases that a correct reader must survive, by their numbers in `docs/cases.md`. Files are
//! written by the test kit, from the format and not from the parser.

mod pages;

use parse::{Error, FileIssue, Options, Trace};
use sched::pass::EventSource;
use sched::{Comm, Cpu, Diagnostics, EventIssue, EventKind, Pass, Pid, PrevState, SchedEvent, StateClass, TaskRef, Ts};
use std::ops::ControlFlow;
use testkit::{Age, Buffer, ByteOrder, Compression, KernelLayout, Ring, Simulation, TraceBuilder};

fn open(bytes: Vec<u8>) -> Result<Trace, Error> {
    Trace::from_bytes(bytes, Options { threads: 1, ..Options::default() })
}

/// All events of a file, and its diagnostics.
fn read(bytes: Vec<u8>) -> (Vec<SchedEvent>, Diagnostics) {
    read_with(bytes, Options { threads: 1, ..Options::default() })
}

fn read_with(bytes: Vec<u8>, options: Options) -> (Vec<SchedEvent>, Diagnostics) {
    let trace = Trace::from_bytes(bytes, options).unwrap_or_else(|e| panic!("{e}"));
    let mut stream = trace.events().unwrap_or_else(|e| panic!("{e}"));
    let mut events = Vec::new();
    stream
        .events(&mut |batch| {
            events.extend(batch.iter().map(plain));
            ControlFlow::Continue(())
        })
        .unwrap();
    (events, stream.diagnostics())
}

/// The number behind a state differs from kernel to kernel; what it comes to does not.
fn plain(event: &SchedEvent) -> SchedEvent {
    let mut event = *event;
    if let EventKind::Switch { state, .. } = &mut event.kind {
        state.raw = 0;
    }
    event
}

fn sim() -> Simulation {
    Simulation::run(11, 4, 600)
}

fn expected(sim: &Simulation) -> Vec<SchedEvent> {
    sim.events.iter().map(plain).collect()
}

fn events() -> Vec<SchedEvent> {
    sim().events
}

fn builder() -> TraceBuilder {
    TraceBuilder::default()
}

/// One CPU, whose pages are in the hands of `pages`.
fn one_cpu(pages: impl Fn(&TraceBuilder, &mut Ring)) -> Vec<u8> {
    let mut b = builder();
    let mut ring = b.ring();
    pages(&b, &mut ring);
    b.buffers.push(Buffer { name: String::new(), clock: "local".into(), page_size: 0, cpus: vec![(0, ring.finish())] });
    b.build()
}

fn bare(b: &TraceBuilder) -> Vec<u8> {
    b.layout().bare(999, 7)
}

fn patched(mut bytes: Vec<u8>, at: usize, with: &[u8]) -> Vec<u8> {
    bytes[at..at + with.len()].copy_from_slice(with);
    bytes
}

fn find(bytes: &[u8], what: &[u8]) -> usize {
    bytes.windows(what.len()).position(|w| w == what).expect("it is in the file")
}

#[test]
fn every_encoding_gives_the_same_events_with_any_threads_and_budget() {
    let sim = Simulation::run(3, 6, 3000);
    let expected = expected(&sim);
    for (version, compression) in
        [(6, Compression::None), (7, Compression::None), (7, Compression::Zlib), (7, Compression::Zstd)]
    {
        let bytes = TraceBuilder { version, compression, ..builder() }.events(&sim.events).build();
        for (threads, budget) in [(1, 1), (1, 64), (2, 3), (5, 64)] {
            let (events, found) = read_with(bytes.clone(), Options { threads, budget, ..Options::default() });
            assert!(events == expected, "version {version}, {compression:?}, {threads} threads, budget {budget}");
            assert!(found.iter().all(|(d, ..)| d == FileIssue::MissingSection), "{found:?}");
        }
    }
}

#[test]
fn losses_come_out_the_same_in_every_encoding() {
    let (events, _) = Simulation::run(8, 5, 2500).lossy(1);
    let expected: Vec<SchedEvent> = events.iter().map(plain).collect();
    assert!(expected.iter().any(|e| matches!(e.kind, EventKind::Lost { count: None })));
    for (version, compression, chunk_pages) in
        [(6, Compression::None, 1), (7, Compression::None, 1), (7, Compression::Zstd, 1), (7, Compression::Zstd, 10)]
    {
        let bytes =
            TraceBuilder { version, compression, chunk_pages, page_size: 1024, ..builder() }.events(&events).build();
        for budget in [1, 64] {
            let (events, _) = read_with(bytes.clone(), Options { threads: 2, budget, ..Options::default() });
            assert_eq!(events, expected, "version {version}, {compression:?}, budget {budget}");
        }
    }
}

#[test]
fn case_1_unknown_versions_are_refused() {
    for version in [5, 8, 70] {
        let error = open(TraceBuilder { version, ..builder() }.events(&events()).build()).unwrap_err();
        assert!(matches!(error, Error::Version { version: v } if v == version.to_string()));
    }
}

#[test]
fn cases_2_3_4_byte_orders_word_sizes_and_page_sizes() {
    let sim = sim();
    for order in [ByteOrder::Little, ByteOrder::Big] {
        for (user_long, kernel_long) in [(8, 8), (4, 8), (4, 4)] {
            for page_size in [4096, 16384, 65536] {
                for version in [6, 7] {
                    let b = TraceBuilder { version, order, user_long, kernel_long, page_size, ..builder() };
                    let (events, _) = read(b.events(&sim.events).build());
                    assert!(events == expected(&sim), "{order:?} {user_long} {kernel_long} {page_size} {version}");
                }
            }
        }
    }
}

#[test]
fn case_5_a_buffer_with_pages_of_another_size() {
    // An instance with its own size.
    let sim = sim();
    let large = TraceBuilder { page_size: 16384, ..builder() };
    let mut b = builder().events(&[]);
    b.buffers.push(Buffer {
        name: "i".into(),
        clock: "local".into(),
        page_size: 16384,
        cpus: large.rings(&sim.events),
    });
    assert!(read(b.build()).0 == expected(&sim));
    // trace-cmd 3.1.6: the label has 16 KiB, the data are 4 KiB pages in slots of 16 KiB.
    let mut b = builder().events(&sim.events);
    b.buffers[0].page_size = 16384;
    let (events, found) = read(b.build());
    assert!(events == expected(&sim));
    assert_eq!(found.count(FileIssue::SmallerStride), 1);
    // The opposite: the label has 4 KiB, the data are whole sub-buffers of 16 KiB.
    let mut b = builder();
    b.buffers.push(Buffer {
        name: String::new(),
        clock: "local".into(),
        page_size: 4096,
        cpus: large.rings(&sim.events),
    });
    let (events, found) = read(b.build());
    assert!(events == expected(&sim));
    assert_eq!(found.count(FileIssue::LargerStride), 1);
}

#[test]
fn cases_6_7_version_6_with_and_without_options_and_clock() {
    let sim = sim();
    let v6 = || TraceBuilder { version: 6, ..builder() };
    let full = "[local] global counter uptime perf mono mono_raw boot x86-tsc";
    for b in [
        TraceBuilder { v6_options: false, v6_clock_trailer: None, ..v6() },
        TraceBuilder { v6_clock_trailer: None, ..v6() },
        TraceBuilder { v6_clock_trailer: Some(full.into()), ..v6() },
        TraceBuilder { v6_clock_trailer: Some(String::new()), ..v6() },
    ] {
        let bytes = b.events(&sim.events).build();
        assert!(open(bytes.clone()).unwrap().has_time().is_ok());
        assert!(read(bytes).0 == expected(&sim));
    }
    let tsc = TraceBuilder { v6_clock_trailer: Some("[x86-tsc]".into()), ..v6() }.events(&sim.events).build();
    assert!(open(tsc).unwrap().has_time().is_err(), "the trailer names the clock");
    // An options block without options.
    let mut bytes = TraceBuilder { v6_options: false, v6_clock_trailer: None, ..v6() }.events(&[]).build();
    let at = find(&bytes, b"flyrecord\0");
    bytes.splice(at..at, *b"options  \0\0\0");
    assert_eq!(open(bytes).unwrap().info().version.number, 6);
    // TRACECLOCK of size 0.
    let empty = TraceBuilder { options: vec![(4, Vec::new())], ..v6() }.events(&sim.events).build();
    assert!(read(empty).0 == expected(&sim));
}

#[test]
fn case_8_instances_in_version_6() {
    let sim = sim();
    for version in [6, 7] {
        let mut b = TraceBuilder { version, ..builder() }.events(&[]);
        let cpus = b.rings(&sim.events);
        b.cpu_count = 6;
        b.buffers.push(Buffer { name: "waker".into(), clock: "local".into(), page_size: 0, cpus });
        let trace = open(b.build()).unwrap();
        assert_eq!(trace.info().buffers[1].name, "waker");
        assert_eq!(trace.info().cpus, 6);
        assert!(read(b.build()).0 == expected(&sim), "the top buffer is empty, version {version}");
    }
}

#[test]
fn case_9_latency_text() {
    let mut bytes = TraceBuilder { version: 6, v6_options: false, ..builder() }.events(&[]).build();
    let at = find(&bytes, b"flyrecord\0");
    bytes.splice(at..at + 10, *b"latency  \0");
    assert!(matches!(open(bytes), Err(Error::LatencyText)));
}

#[test]
fn case_10_unknown_compression() {
    let b = TraceBuilder { compression: Compression::Zstd, compression_name: Some("lz9".into()), ..builder() };
    let trace = open(b.events(&events()).build()).unwrap();
    assert_eq!(trace.diagnostics().count(FileIssue::MissingDecoder), 1);
    assert!(trace.events().unwrap().extent().is_err(), "no events, and no panic");
}

#[test]
fn case_11_sizes_four_too_small() {
    let sim = sim();
    for size_short in [0, 4] {
        let b = TraceBuilder { compression: Compression::Zstd, size_short, ..builder() };
        let (events, found) = read(b.events(&sim.events).build());
        assert!(events == expected(&sim) && found.count(FileIssue::TruncatedData) == 0);
    }
}

#[test]
fn case_12_sparse_cpus_and_missing_buffers() {
    // CPU numbers beyond the count, gaps between them.
    let far: Vec<SchedEvent> = events().into_iter().map(|e| SchedEvent { cpu: Cpu(e.cpu.0 * 500 + 3), ..e }).collect();
    let mut b = builder().events(&far);
    b.cpu_count = 2;
    let (read_back, _) = read(b.build());
    assert!(read_back == far.iter().map(plain).collect::<Vec<_>>());
    // No buffer at all, and one without CPUs.
    assert!(matches!(open(builder().build()), Err(Error::NoEvents { .. })));
    let empty = open(builder().events(&[]).build()).unwrap();
    assert!(empty.events().unwrap().extent().is_err());
    // The top buffer is missing, an instance remains.
    let mut b = builder().events(&events());
    b.buffers[0].name = "only".into();
    assert!(read(b.build()).0 == expected(&sim()));
    // A number that no machine has, and one listed twice.
    let mut b = builder().events(&events());
    let again = b.buffers[0].cpus[1].clone();
    b.buffers[0].cpus.push(again);
    b.buffers[0].cpus.push((4_000_000_000, Vec::new()));
    let (events, found) = read(b.build());
    assert!(events == expected(&sim()));
    assert_eq!((found.count(FileIssue::BadCpu), found.count(FileIssue::BadOption)), (1, 1));
}

#[test]
fn cases_13_47_clocks_of_instances() {
    let sim = sim();
    let mut b = builder().events(&sim.events);
    let other: Vec<SchedEvent> = sim.events.iter().map(|e| SchedEvent { ts: Ts(e.ts.0 + (1 << 58)), ..*e }).collect();
    let cpus = b.rings(&other);
    b.buffers.push(Buffer { name: "tsc".into(), clock: "x86-tsc".into(), page_size: 0, cpus: cpus.clone() });
    let (events, found) = read(b.build());
    assert!(events == expected(&sim) && found.count(FileIssue::OtherClock) == 1, "labelled otherwise");
    b.buffers[1].clock = "local".into();
    let (events, found) = read(b.build());
    assert!(events == expected(&sim) && found.count(FileIssue::OtherClock) == 1, "labelled wrongly");
    // Chosen by name, with the clock set right.
    let options = Options { buffer: Some("tsc".into()), clock: Some("x86-tsc".into()), ..Options::default() };
    assert!(Trace::from_bytes(b.build(), options.clone()).unwrap().events().is_err());
    let options = Options { clock_hz: Some(1_000_000_000), ..options };
    assert_eq!(read_with(b.build(), options).0[0].ts, other[0].ts);
    let error =
        Trace::from_bytes(b.build(), Options { buffer: Some("nope".into()), ..Options::default() }).unwrap_err();
    assert!(error.to_string().contains("top, tsc"), "{error}");
    // No clock anywhere: local.
    let mut b = builder().events(&sim.events);
    b.buffers[0].clock = String::new();
    b.clock = String::new();
    assert!(read(b.build()).0 == expected(&sim));
}

#[test]
fn the_same_events_in_two_buffers_count_once() {
    let sim = sim();
    let mut b = builder().events(&sim.events);
    let cpus = b.rings(&sim.events);
    b.buffers.push(Buffer { name: "again".into(), clock: "local".into(), page_size: 0, cpus });
    let (events, found) = read(b.build());
    let state_events =
        |events: &[SchedEvent]| events.iter().filter(|e| !matches!(e.kind, EventKind::Other { .. })).count();
    assert_eq!(state_events(&events), state_events(&sim.events));
    assert_eq!(found.count(FileIssue::DuplicateEvents) as usize, state_events(&sim.events));
}

#[test]
fn case_14_broken_chains_of_options() {
    let sim = sim();
    let options = vec![(99, vec![1, 2, 3]), (8, vec![4]), (14, vec![0; 3]), (7, b"12 trailing".to_vec())];
    let (events, found) = read(TraceBuilder { options, ..builder() }.events(&sim.events).build());
    assert!(events == expected(&sim));
    assert_eq!((found.count(FileIssue::UnknownOption), found.count(FileIssue::BadOption)), (1, 3));
    let bytes = builder().events(&sim.events).build();
    let first = 10 + 2 + 6 + 5 + 1;
    // First offset 0, beyond the end, into the header, near 2^64: the sections are found by walking.
    for offset in [0u64, 1 << 40, 3, u64::MAX] {
        let broken = patched(bytes.clone(), first, &offset.to_le_bytes());
        assert!(read(broken).0 == expected(&sim), "first options at {offset}");
    }
    // A cycle: the last DONE points to the first section.
    let at = u64::from_le_bytes(bytes[first..first + 8].try_into().unwrap());
    let done = bytes.windows(14).rposition(|w| w == [0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).unwrap();
    for offset in [at, u64::MAX, bytes.len() as u64] {
        let (events, found) = read(patched(bytes.clone(), done + 6, &offset.to_le_bytes()));
        assert!(events == expected(&sim) && found.count(FileIssue::TruncatedHeader) >= 1, "next options at {offset}");
    }
}

#[test]
fn cases_15_16_missing_sections_and_flags() {
    let sim = sim();
    for omit in [vec![15], vec![19, 20, 21], vec![16], vec![17]] {
        let (events, _) = read(TraceBuilder { omit: omit.clone(), ..builder() }.events(&sim.events).build());
        assert!(events == expected(&sim), "without {omit:?}");
    }
    for compression in [Compression::Zlib, Compression::Zstd] {
        let b = TraceBuilder { compression, compress_sections: true, ..builder() };
        assert!(read(b.events(&sim.events).build()).0 == expected(&sim));
    }
    // Without formats nothing can be decoded, but everything is counted.
    let trace = open(TraceBuilder { omit: vec![18], ..builder() }.events(&sim.events).build()).unwrap();
    let total: u64 = trace.event_counts().iter().map(|e| e.count).sum();
    assert_eq!(total, sim.events.len() as u64);
    assert!(trace.event_counts().iter().all(|e| e.name.starts_with("event ")));
}

#[test]
fn case_17_odd_formats() {
    let sim = sim();
    let switch = KernelLayout::id("sched_switch");
    let formats = vec![
        ("sched".to_owned(), format!("name: thief\nID: {switch}\nformat:\n\tfield:int x;\toffset:0;\tsize:4;\n")),
        ("odd".to_owned(), "name: odd\nID: 900\nformat:\n\tfield:what is this;\n\tfield:u8 m[TASK_COMM_LEN];offset:8;size:16;signed:0;\n".into()),
        ("odd".to_owned(), "no name at all".into()),
    ];
    let (events, found) = read(TraceBuilder { formats, ..builder() }.events(&sim.events).build());
    assert!(events == expected(&sim), "the first format of a number counts");
    assert_eq!((found.count(FileIssue::DuplicateFormat), found.count(FileIssue::BadFormat)), (1, 2));
}

#[test]
fn case_18_events_without_a_format_are_counted() {
    let trace = open(builder().events(&events()).build()).unwrap();
    let unknown = events().iter().filter(|e| matches!(e.kind, EventKind::Other { .. })).count() as u64;
    let found = trace.event_counts().into_iter().find(|e| e.name == "event 999").unwrap();
    assert_eq!((found.count, found.system.as_str()), (unknown, ""));
}

#[test]
fn cases_35_36_37_all_ages_of_the_sched_events() {
    let sim = Simulation::run(21, 3, 800);
    for age in Age::ALL {
        let (events, found) = read(TraceBuilder { age, ..builder() }.events(&sim.events).build());
        // The 0x100 of the shifted encoding may be an idle kernel thread; tasks here are none.
        assert!(events == expected(&sim), "{age:?}");
        assert_eq!(found.count(FileIssue::UnknownState), 0, "{age:?}");
    }
}

#[test]
fn case_43_only_some_of_the_events() {
    let only: Vec<SchedEvent> = events().into_iter().filter(|e| matches!(e.kind, EventKind::Switch { .. })).collect();
    let trace = open(builder().events(&only).build()).unwrap();
    assert!(trace.missing_events().contains(&"sched_wakeup") && !trace.missing_events().contains(&"sched_switch"));
    let mut stream = trace.events().unwrap();
    assert!(!stream.extent().unwrap().wakeups);
    // Without wakeups a first switch-in does not show that the task had waited.
    let outcome = Pass::over(stream).run(sched::analysis::RunTime::default).unwrap();
    assert_eq!(outcome.diagnostics.count(EventIssue::LateStart), 0);
    assert_eq!(outcome.diagnostics.count(EventIssue::UnseenWakeup), 0);
}

#[test]
fn cases_44_45_clocks_and_corrections() {
    let sim = sim();
    for clock in ["counter", "uptime", "x86-tsc"] {
        let trace = open(TraceBuilder { clock: clock.into(), ..builder() }.events(&sim.events).build()).unwrap();
        assert!(matches!(trace.events(), Err(Error::Clock { .. })), "{clock}");
        assert_eq!(trace.event_counts().iter().map(|e| e.count).sum::<u64>(), sim.events.len() as u64);
    }
    let first = |options: Vec<(u16, Vec<u8>)>, clock: &str| {
        read(TraceBuilder { options, clock: clock.into(), ..builder() }.events(&sim.events).build()).0[0].ts.0
    };
    let raw = sim.events[0].ts.0;
    assert_eq!(first(vec![(1, b"0x10\0".to_vec())], "local"), raw + 16_000, "DATE is in microseconds");
    assert_eq!(first(vec![(7, b"-1500000\0".to_vec())], "local"), raw - 1_500_000, "below zero");
    let tsc = [3u32.to_le_bytes(), 1u32.to_le_bytes(), [0; 4], [0; 4]].concat();
    assert_eq!(first(vec![(14, tsc), (7, b"5\0".to_vec())], "x86-tsc"), raw * 3 / 2 + 5, "scaled, then moved, once");
}

#[test]
fn case_46_guest_and_host_files_alone() {
    let sim = sim();
    let options = vec![(12, vec![7; 30]), (13, vec![b'g', 0, 1, 2]), (11, vec![1; 8])];
    let bytes = TraceBuilder { options, ..builder() }.events(&sim.events).build();
    assert!(open(bytes.clone()).unwrap().info().guest);
    assert!(read(bytes).0 == expected(&sim), "no shift is applied unasked");
}

fn printed(id: u16, name: &str, fields: &str) -> (String, String) {
    let common = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";
    ("ftrace".into(), format!("name: {name}\nID: {id}\nformat:\n{common}{fields}\nprint fmt: \"%s\"\n"))
}

#[test]
fn case_49_texts_of_trace_printk() {
    let ip = "\tfield:unsigned long ip;\toffset:8;\tsize:8;\tsigned:0;\n";
    let formats = vec![
        printed(5, "print", &format!("{ip}\tfield:char buf[];\toffset:16;\tsize:0;\tsigned:1;\n")),
        printed(
            6,
            "bprint",
            &format!(
                "{ip}\tfield:const char * fmt;\toffset:16;\tsize:8;\tsigned:0;\n\tfield:u32 buf[];\toffset:24;\tsize:0;\tsigned:0;\n"
            ),
        ),
        printed(14, "bputs", &format!("{ip}\tfield:const char * str;\toffset:16;\tsize:8;\tsigned:0;\n")),
    ];
    let mut b = TraceBuilder { formats, ..builder() };
    b.kallsyms = "0000000000001000 T schedule\n0000000000002000 T end\n".into();
    b.printk = "0xffff0010 : \"moved %d of %s, load %lu\\n\"\n0xffff0020 : \"plain\\n\"\n".into();
    let mut ring = b.ring();
    let layout = b.layout();
    let mut event = |ts, id, words: &[u64], tail: &[u8]| {
        let mut payload = layout.bare(id, 7);
        words.iter().for_each(|w| payload.extend(w.to_le_bytes()));
        payload.extend(tail);
        ring.event(ts, &payload);
    };
    let long = "x".repeat(500);
    event(1, 5, &[0x1010], b"two\nlines\n\0");
    event(2, 5, &[0x9999_9999], b"no end");
    event(3, 5, &[0x1000], format!("{long}\n\0").as_bytes());
    event(4, 6, &[0x1000, 0xffff_0010], b"\x03\0\0\0cpu5\0\0\0\0\x0b\0\0\0\0\0\0\0");
    event(5, 6, &[0x1000, 0xdead], b"\0\0\0\0");
    event(6, 14, &[0x1000, 0xffff_0020], b"");
    event(7, 14, &[0x1000, 0xbeef], b"");
    b.buffers.push(Buffer { name: String::new(), clock: "local".into(), page_size: 0, cpus: vec![(0, ring.finish())] });
    let trace = open(b.build()).unwrap();
    let mut texts = Vec::new();
    trace.records(&mut |r| {
        texts.push((r.place().unwrap(), r.text().unwrap()));
        ControlFlow::Continue(())
    });
    let expected = [
        ("schedule", "two\nlines\n".to_owned()),
        ("0x99999999", "no end".to_owned()),
        ("schedule", format!("{long}\n")),
        ("schedule", "moved 3 of cpu5, load 11\n".to_owned()),
        ("schedule", "(NO FORMAT FOUND at dead)\n".to_owned()),
        ("schedule", "plain\n".to_owned()),
        ("schedule", "(NO FORMAT FOUND at beef)\n".to_owned()),
    ];
    assert_eq!(texts, expected.map(|(place, text)| (place.to_owned(), text)));
}

#[test]
fn case_51_files_of_another_kind() {
    let error = |bytes: &[u8]| open(bytes.to_vec()).unwrap_err().to_string();
    for (bytes, word) in [
        (&b"PERFILE2........"[..], "perf.data"),
        (b"\x1f\x8b\x08 gzip", "gunzip"),
        (b"\x28\xb5\x2f\xfd zstd", "unzstd"),
        (b"\xfd7zXZ\0", "unxz"),
        (b"\xc1\x1f\xfc\xc1", "CTF"),
        // Two packets: a clock's number and a sequence; ftrace events of CPU 3.
        (b"\x0a\x05\x50\x01\x40\x80\x01\x0a\x04\x0a\x02\x08\x03", "Perfetto"),
        (b"\x0a\x05plain text behind an empty line", "begins with"),
        (b"cpus=8\n  <idle>-0 [005] 20.8: sched_waking: comm=a", "trace-cmd report"),
        (b"# tracer: nop\n", "trace-cmd report"),
        (b"\x7fELF", "program"),
        (b"\x17\x08\x44trac", "cut"),
        (b"hello", "\"hello\""),
    ] {
        let message = error(bytes);
        assert!(message.contains(word), "{message}");
    }
    let ring = one_cpu(|b, ring| (0..200).for_each(|i| ring.event(1000 + i, &bare(b))));
    let page = ring[find(&ring, &1000u64.to_le_bytes())..].to_vec();
    assert!(error(&page[..4096]).contains("trace.dat.cpu"));
    let folder = Trace::open(&crate::support::root(), Options::default()).unwrap_err();
    assert!(folder.to_string().contains("a directory"));
    let absent = Trace::open("/no/such/file.dat".as_ref(), Options::default()).unwrap_err();
    assert!(matches!(absent, Error::Io { .. }));
}

#[test]
fn case_52_a_file_that_grows() {
    let path = std::env::temp_dir().join(format!("schedviz-grows-{}.dat", std::process::id()));
    let whole = builder().events(&events()).build();
    std::fs::write(&path, &whole).unwrap();
    let trace = Trace::open(&path, Options::default()).unwrap();
    let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
    std::io::Write::write_all(&mut file, &[0xff; 100_000]).unwrap();
    let total: u64 = trace.event_counts().iter().map(|e| e.count).sum();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(total, events().len() as u64);
}

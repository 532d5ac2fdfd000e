//! The cases of pages: their content, their losses, their cost, and the number of CPUs that have some.

use super::*;

fn times(events: &[SchedEvent]) -> Vec<i64> {
    events.iter().map(|e| e.ts.0).collect()
}

#[test]
fn cases_19_23_24_26_empty_pages_padding_and_extends() {
    let bytes = one_cpu(|b, ring| {
        ring.event(1000, &bare(b));
        ring.raw_page(&[]);
        ring.raw_page(&[]);
        ring.event(2000, &bare(b));
        ring.discarded(2500, 32);
        ring.event(3_000_000_000_000, &bare(b));
        ring.raw_page(&[]);
    });
    let (events, found) = read(bytes);
    assert_eq!(times(&events), [1000, 2000, 3_000_000_000_000]);
    assert_eq!(found.count(FileIssue::CorruptPage), 0);
}

#[test]
fn cases_20_21_losses_first_last_and_several() {
    let bytes = one_cpu(|b, ring| {
        ring.lost(Some(3));
        ring.event(1000, &bare(b));
        ring.event(1100, &bare(b));
        ring.lost(None);
        ring.event(2000, &bare(b));
        ring.lost(Some(5));
        ring.event(3000, &bare(b));
        ring.raw_page(&[]);
    });
    let trace = open(bytes.clone()).unwrap();
    let cpu = &trace.counts().buffers[0].cpus[0];
    assert_eq!((cpu.gaps, cpu.gaps_uncounted, cpu.lost), (3, 1, 8));
    assert_eq!(cpu.gap_ns.0, 900 + 1000);
    let lost: Vec<(i64, Option<u64>)> = read(bytes)
        .0
        .iter()
        .filter_map(|e| {
            if let EventKind::Lost { count } = e.kind {
                Some((e.ts.0, count.map(sched::LostCount::number)))
            } else {
                None
            }
        })
        .collect();
    assert_eq!(lost, [(1000, Some(3)), (1100, None), (2000, Some(5))]);
}

#[test]
fn case_22_bad_pages_and_records_cost_themselves() {
    let bytes = one_cpu(|b, ring| {
        ring.event(1000, &bare(b));
        let mut junk = 1500u64.to_le_bytes().to_vec();
        junk.extend(5000u64.to_le_bytes());
        ring.raw_page(&junk);
        ring.event(2000, &bare(b));
        let mut runaway = 2500u64.to_le_bytes().to_vec();
        runaway.extend(8u64.to_le_bytes());
        runaway.extend([0, 0, 0, 0, 2, 0, 0, 0]);
        ring.raw_page(&runaway);
        ring.event(3000, &bare(b));
    });
    let (events, found) = read(bytes);
    let kept: Vec<i64> = events.iter().filter(|e| !matches!(e.kind, EventKind::Lost { .. })).map(|e| e.ts.0).collect();
    assert_eq!(kept, [1000, 2000, 3000]);
    assert_eq!((found.count(FileIssue::CorruptPage), found.count(FileIssue::CorruptRecord)), (1, 1));
    assert_eq!(events.len(), 5, "the events there are lost, and reported as lost");
}

#[test]
fn cases_25_27_time_that_goes_back() {
    let bytes = one_cpu(|b, ring| {
        for ts in [5000, 6000, 4000, 7000] {
            ring.event(ts, &bare(b));
        }
        ring.end_page();
        for ts in [6500, 8000, 8000] {
            ring.event(ts, &bare(b));
        }
    });
    let (events, found) = read(bytes);
    assert_eq!(times(&events), [5000, 6000, 6000, 7000, 7000, 8000, 8000]);
    assert_eq!(found.count(FileIssue::TimeBackwards), 2);
    // Between CPUs it is the clock's skew, and no matter; ties go to the lower CPU.
    let tie =
        |cpu| SchedEvent { ts: Ts(100), cpu: Cpu(cpu), pid: Pid(7), flags: 0, kind: EventKind::Other { id: 999 } };
    let (events, _) = read(builder().events(&[tie(2), tie(0), tie(1)]).build());
    assert_eq!(events.iter().map(|e| e.cpu.0).collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn case_28_files_cut_anywhere() {
    let sim = sim();
    let expected = expected(&sim);
    for (version, compression) in [(6, Compression::None), (7, Compression::None), (7, Compression::Zstd)] {
        let whole = TraceBuilder { version, compression, ..builder() }.events(&sim.events).build();
        let mut partial = 0;
        for cut in (0..whole.len()).step_by(97).chain([whole.len() - 1]) {
            let Ok(trace) = open(whole[..cut].to_vec()) else { continue };
            let Ok(mut stream) = trace.events() else { continue };
            let mut last = Ts(i64::MIN);
            let read = stream.events(&mut |batch| {
                for event in batch {
                    assert!(event.ts >= last);
                    last = event.ts;
                }
                ControlFlow::Continue(())
            });
            read.unwrap();
            partial += 1;
        }
        if version == 6 {
            assert!(partial > 10, "version {version}: what precedes a cut is read ({partial})");
        }
        let mut longer = whole.clone();
        longer.extend(b"trailing garbage");
        assert!(read(longer).0 == expected);
        // Cut behind the last options section, only the STRINGS are gone.
        if version == 7 {
            let strings = find(&whole, b"headers\0options\0") - 16;
            assert!(read(whole[..strings].to_vec()).0 == expected);
            assert!(read(whole[..strings + 20].to_vec()).0 == expected);
        }
    }
    // One byte short inside the data: a warning, and all whole pages.
    let whole = TraceBuilder { version: 6, ..builder() }.events(&sim.events).build();
    let (events, found) = read(whole[..whole.len() - 1].to_vec());
    assert_eq!(found.count(FileIssue::TruncatedData), 1);
    assert!(events.len() > expected.len() / 2);
}

#[test]
fn case_29_sizes_that_ask_for_too_much() {
    let whole = TraceBuilder { version: 6, ..builder() }.events(&events()).build();
    // Every aligned word of the header in turn becomes enormous: no panic, no hang, no gigabytes.
    let header = find(&whole, b"flyrecord\0") + 100;
    for at in (10..header).step_by(3) {
        for word in [u64::MAX, u64::MAX / 2, 1 << 32] {
            if let Ok(trace) = open(patched(whole.clone(), at, &word.to_le_bytes())) {
                let _ = trace.counts();
            }
        }
    }
    let whole = TraceBuilder { compression: Compression::Zstd, ..builder() }.events(&events()).build();
    for at in (10..whole.len() - 8).step_by(41) {
        if let Ok(trace) = open(patched(whole.clone(), at, &u64::MAX.to_le_bytes())) {
            let _ = trace.counts();
        }
    }
}

#[test]
fn case_31_many_cpus() {
    let event = |cpu: u32| SchedEvent {
        ts: Ts(1000 + i64::from(cpu % 7)),
        cpu: Cpu(cpu),
        pid: Pid(0),
        flags: 0,
        kind: EventKind::Other { id: 999 },
    };
    let mut events: Vec<SchedEvent> = (0..4096).filter(|c| c % 5 != 0).map(event).collect();
    let (read_back, _) = read(TraceBuilder { page_size: 512, ..builder() }.events(&events).build());
    events.sort_by_key(|e| (e.ts, e.cpu));
    assert!(read_back == events);
}

#[test]
fn case_33_names_of_any_kind() {
    for name in [&b"with blank = ]"[..], b"\xff\xfe\x1b[31m", b"", b"fifteen bytes!!", b"sixteen bytes ok"] {
        let task = TaskRef { pid: Pid(9), prio: 120, comm: Comm::new(name) };
        let idle = TaskRef { pid: Pid(0), prio: 120, comm: Comm::new(b"swapper") };
        let kinds = [
            EventKind::Switch { prev: idle, state: PrevState { raw: 0, class: StateClass::Runnable }, next: task },
            EventKind::Migrate { task, orig: Cpu(0), dest: Cpu(1) },
        ];
        let events = kinds.map(|kind| SchedEvent { ts: Ts(5), cpu: Cpu(0), pid: Pid(0), flags: 0, kind });
        for age in [Age::Modern, Age::Dynamic] {
            let (read_back, _) = read(TraceBuilder { age, ..builder() }.events(&events).build());
            assert_eq!(read_back, events, "{age:?}");
        }
    }
}

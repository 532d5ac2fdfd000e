//! Damaged files: every fixture cut short at many bytes, and with single bytes changed. Nothing
//! panics, nothing is read more often than it is there, and each refusal is a message that a user can act on.

use crate::support::{Effort, effort, fixture, recordings, schedviz, scratch};
use parse::{FileIssue, Options as ReadOptions, Trace, Want};
use sched::{ChosenCpus, Cpu, EventKind, Pass, Pid, Replay, SchedEvent, Ts};
use std::collections::BTreeMap;
use std::fs::File;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use testkit::{Compression, Simulation, TraceBuilder};
use workcons::{Options, WorkConservation};

fn fixtures() -> Vec<PathBuf> {
    let folder = std::fs::read_dir(fixture("")).expect("the fixtures");
    let mut all: Vec<PathBuf> = folder.flatten().map(|e| e.path()).collect();
    all.retain(|p| p.extension().is_some_and(|e| e == "dat"));
    all.sort();
    assert!(all.len() > 10);
    all
}

/// How a damaged file is read.
#[derive(Clone, Copy)]
enum Reading {
    /// Its header is parsed and its events are counted.
    Counts,
    /// The same, and the records are printed, the analyses run, and single CPUs are read.
    Everything,
}

/// Reads a file. Returns the number of its events, or the error message.
fn read(bytes: Vec<u8>, reading: Reading) -> Result<u64, String> {
    let options = parse::Options { threads: 1, ..parse::Options::default() };
    let trace = Trace::from_bytes(bytes, options).map_err(|e| e.to_string())?;
    let counted: u64 = trace.event_counts().iter().map(|e| e.count).sum();
    if let Reading::Counts = reading {
        return trace.has_time().map(|()| counted).map_err(|e| e.to_string());
    }
    let mut left = 200;
    trace.records(&mut |record| {
        let _ = (record.printed(), record.command());
        left -= 1;
        if left > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    let measured = Options::default();
    let machine = sched::Topology::default();
    let (from, to) = trace.extent().unwrap_or_default();
    let overview = running_waiting::Options {
        from,
        to,
        zero: from,
        panels: vec![running_waiting::Panel { name: String::new(), cpus: trace.observed() }],
        cpus: trace.observed().into_iter().map(|cpu| (cpu, None)).collect(),
        all_cpus: Vec::new(),
        group_name: String::new(),
        per_cpu: true,
        tasks: None,
        which: "all tasks",
        affinity: None,
        queued: None,
    };
    let all = ChosenCpus::default();
    let analysis = || {
        let balance = events::Balance::new(&machine, &all, from, to);
        (WorkConservation::new(&measured), running_waiting::RunningWaiting::new(&overview), balance)
    };
    let _ = Pass::over(trace.events().map_err(|e| e.to_string())?).run(analysis).map_err(|e| e.to_string())?;
    let reader = trace.cpu_reader(Want::Switches).map_err(|e| e.to_string())?;
    for cpu in trace.observed().into_iter().take(2) {
        for buffer in reader.buffers_of(cpu) {
            reader.events(buffer, cpu, Some(Ts(0)), &mut |_| ControlFlow::Continue(()));
        }
    }
    Ok(counted)
}

/// Reads a file. Its bytes bound the events: an event takes at least four, and data expand to 32 MiB and 256 times
/// their size at most (`docs/limits.md`). The message of a refusal is a sentence.
fn check(bytes: Vec<u8>, reading: Reading, what: &dyn Fn() -> String) -> Option<u64> {
    let most = (32 << 20) / 4 + bytes.len() as u64 * 256 / 4;
    match read(bytes, reading) {
        Ok(counted) => {
            assert!(counted <= most, "{}: {counted} events", what());
            Some(counted)
        }
        Err(message) => {
            assert!(message.len() > 20 && message.contains(' '), "{}: {message:?}", what());
            assert!(!message.chars().any(char::is_control), "{}: {message:?}", what());
            None
        }
    }
}

/// At each 512th byte, of a larger file at a 96th of its length: the pages and headers of one file are alike. The events are
/// counted at each of these places. Every fourth place is read in all ways: a cut takes events from the end, and changes none
/// that the analyses see. `SCHEDVIZ_EVERY_BYTE` asks for each 512th byte of all, and for all ways.
#[test]
fn cut_at_many_bytes() {
    let all = std::env::var_os("SCHEDVIZ_EVERY_BYTE").is_some();
    for path in fixtures() {
        let whole = std::fs::read(&path).expect("a fixture");
        let places = if effort() == Effort::Quick { 32 } else { 96 };
        let step = if all { 512 } else { (whole.len() / places).max(512) };
        let mut most = 0;
        for (nth, length) in (0..whole.len()).step_by(step).enumerate() {
            let reading = if all || nth % 4 == 0 { Reading::Everything } else { Reading::Counts };
            let what = || format!("{} cut to {length} bytes", path.display());
            // A longer part of a file has no fewer events.
            let found = check(whole[..length].to_vec(), reading, &what).unwrap_or(0);
            assert!(found >= most, "{}: {found} events, {most} with less of it", what());
            most = found;
        }
        assert!(check(whole, Reading::Everything, &|| path.display().to_string()).unwrap_or(0) >= most);
    }
}

#[test]
#[ignore = "takes long; .ci/run runs it"]
fn single_bytes_changed() {
    // A prime step meets all places of a repeated structure.
    let (paths, every) = match std::env::var_os("SCHEDVIZ_EVERY_BYTE") {
        Some(_) => (fixtures(), 1),
        None => (["mask.dat", "affine.dat", "hackbench-v6.dat"].map(fixture).to_vec(), 61),
    };
    std::thread::scope(|scope| {
        for path in paths {
            scope.spawn(move || change_bytes(&path, every));
        }
    });
}

/// Changes single bytes: each of the first ones of a file, then one in `every` bytes of the header.
fn change_bytes(path: &Path, every: usize) {
    let whole = std::fs::read(path).expect("a fixture");
    let header = whole.len().min(60_000);
    for at in (0..256).chain((256..header).step_by(every)) {
        // Which one is read in all ways alternates.
        let all = [0xff, 0x01][at % 2];
        for change in [0xff, 0x01] {
            let reading = if every == 1 || change == all { Reading::Everything } else { Reading::Counts };
            let mut bytes = whole.clone();
            bytes[at] ^= change;
            check(bytes, reading, &|| format!("{}, byte {at} changed by {change:#x}", path.display()));
        }
    }
}

/// Tasks that wait, and CPUs that run, for 142 years each, as a damaged time stamp makes them: no sum over them overflows. In the dev profile an
/// overflow is a panic.
#[test]
fn no_sum_of_times_overflows() {
    let folder = scratch("damage-years");
    let mut events = Simulation::run(61, 8, 600).events;
    let half = events.len() / 2;
    events[half..].iter_mut().for_each(|event| event.ts = event.ts.after(sched::Dur(4_500_000_000_000_000_000)));
    let builder = testkit::PerfBuilder::default();
    let bytes = builder.build(&TraceBuilder { cpu_count: 8, ..TraceBuilder::default() }, &events);
    std::fs::write(folder.join("x.data"), bytes).expect("written");
    let mut answered = 0;
    for entry in schedviz::COMMANDS.iter().filter(|entry| !entry.is_hidden) {
        let help = schedviz(&[entry.name, "--help"]).success().text();
        if !help.contains("--json") || !help.contains("<TRACE>") || help.contains("<SPEC>") {
            continue;
        }
        for more in [&["--json"][..], &["-q"]] {
            let ran = crate::support::schedviz_in(&folder, &[&[entry.name, "x.data"], more].concat());
            assert!(matches!(ran.code, Some(0..=3)), "{} {more:?}: {:?} {}", entry.name, ran.code, ran.stderr);
            assert!(!ran.stderr.contains("panicked"), "{} {more:?}: {}", entry.name, ran.stderr);
            answered += usize::from(ran.code == Some(0));
        }
    }
    assert!(answered > 20, "{answered}");
}

#[test]
fn every_command_ends_with_output_or_a_message() {
    let folder = scratch("damage");
    let path = folder.join("cut.dat");
    let trace = path.to_str().expect("a path").to_owned();
    let whole = std::fs::read(fixture("affine.dat")).expect("a fixture");
    for length in [0, 5, 100, 1500, whole.len() / 3, whole.len() / 2, whole.len() - 3000] {
        std::fs::write(&path, &whole[..length]).expect("written");
        for command in [
            vec!["info"],
            vec!["dat2graph", "-o", "-", "--format", "svg"],
            vec!["running-waiting", "-o", "-", "--format", "svg"],
            vec!["workcons"],
            vec!["stepper", "--text"],
            vec!["events", "--list"],
            vec!["migrations", "-o", "-", "--format", "svg"],
            vec!["latency"],
            vec!["why"],
            vec!["path"],
            vec!["utilization"],
            vec!["fairness"],
            vec!["report", "-q", "-o", folder.join("report").to_str().expect("a path")],
        ] {
            let ran = schedviz(&[&command[..1], &[&trace], &command[1..]].concat());
            let has_message = ran.stderr.contains("schedviz: ") && ran.stderr.len() > 30;
            assert!(
                ran.code == Some(0) || (ran.code == Some(1) && has_message),
                "{command:?}, {length}: {:?} {}",
                ran.code,
                ran.stderr
            );
        }
    }
}

#[test]
fn a_replay_of_damage_comes_to_its_end() {
    let whole = std::fs::read(fixture("hackbench.dat")).expect("a fixture");
    for at in (2000..whole.len()).step_by(1999) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x80;
        let options = parse::Options { threads: 1, ..parse::Options::default() };
        let Ok(trace) = Trace::from_bytes(bytes, options) else { continue };
        let Ok(events) = trace.events() else { continue };
        let Ok(mut replay) = Replay::with(events, 300, 8, || ()) else { continue };
        let total = replay.total();
        for step in [total, total / 2, 0, total / 3, total] {
            replay.go(step).expect("a step");
            assert_eq!(replay.at(), step, "byte {at}");
        }
    }
}

/// Returns the number of events of each CPU, and the numbers of CPUs whose data overlap and whose data are cut.
fn per_cpu(bytes: Vec<u8>) -> (BTreeMap<u32, u64>, u64, u64) {
    let trace = Trace::from_bytes(bytes, parse::Options { threads: 1, ..parse::Options::default() }).expect("readable");
    let counts = trace.counts();
    let found = trace.diagnostics();
    let events = counts.buffers[0].cpus.iter().map(|cpu| (cpu.cpu.0, cpu.events)).filter(|(_, n)| *n > 0).collect();
    (events, found.count(FileIssue::OverlappingData), found.count(FileIssue::TruncatedData))
}

/// No event counts for two CPUs, whatever the table contains.
#[test]
fn data_that_overlap_are_read_once() {
    let whole = std::fs::read(fixture("hackbench-v6.dat")).expect("a fixture");
    let table = whole.windows(10).position(|w| w == b"flyrecord\0").expect("a table") + 10;
    let (right, overlaps, cut) = per_cpu(whole.clone());
    assert!(right.len() == 16 && (overlaps, cut) == (0, 0));
    // A size that covers all data behind it: the data of the CPU end where those of the next begin.
    let mut bytes = whole.clone();
    bytes[table + 8 + 3] ^= 1;
    assert_eq!(per_cpu(bytes), (right.clone(), 1, 1));
    // A CPU whose data begin where those of another do: only its own data are lost.
    let mut bytes = whole.clone();
    bytes.copy_within(table..table + 16, table + 32);
    let others: BTreeMap<u32, u64> = right.iter().filter(|(cpu, _)| **cpu != 2).map(|(cpu, n)| (*cpu, *n)).collect();
    assert_eq!(per_cpu(bytes), (others, 1, 0));
    // 65,536 more CPUs, whose rows are the bytes behind the table. Without a bound they would take seconds and count half
    // a million events.
    let mut bytes = whole;
    let options = bytes.windows(10).position(|w| w == b"options  \0").expect("options") - 4;
    bytes[options + 2] ^= 1;
    let (events, overlaps, _) = per_cpu(bytes);
    assert!(events == right && overlaps > 100, "{overlaps} overlap: {events:?}");
}

/// Returns the number of events of each CPU of each buffer.
fn by_buffer(trace: &Trace) -> Vec<BTreeMap<u32, u64>> {
    let events =
        |cpus: &[parse::CpuEventCounts]| cpus.iter().map(|c| (c.cpu.0, c.events)).filter(|(_, n)| *n > 0).collect();
    trace.counts().buffers.iter().map(|buffer| events(&buffer.cpus)).collect()
}

/// Version 7 has the table of CPUs behind the data. In a file that was cut the data are found without it: those of all
/// CPUs but the last one completely, and each for the right CPU.
#[test]
fn data_whose_table_is_cut_off_are_found() {
    let (mut cuts, mut presumed) = (0, 0);
    let files = fixtures().into_iter().chain(recordings());
    for path in files {
        let whole = std::fs::read(&path).expect("a file");
        let open = |bytes: &[u8]| {
            Trace::from_bytes(bytes.to_vec(), parse::Options { threads: 1, ..parse::Options::default() })
        };
        let complete = open(&whole).expect("readable");
        if complete.info().version.number != 7 {
            continue;
        }
        let right = by_buffer(&complete);
        for part in [50, 70, 85, 95, 99] {
            let Ok(trace) = open(&whole[..whole.len() * part / 100]) else { continue };
            let diagnostics = trace.diagnostics();
            if diagnostics.count(FileIssue::LostTable) == 0 {
                continue;
            }
            let what = format!("{}, {part} %: {:?}", path.display(), diagnostics.detail(FileIssue::LostTable));
            presumed += u64::from(what.contains("alone"));
            let found = by_buffer(&trace);
            for (found, right) in found.iter().zip(&right) {
                let last = found.keys().next_back().copied();
                for (cpu, events) in found {
                    let all = right.get(cpu).copied().unwrap_or(0);
                    assert!(
                        *events == all || (Some(*cpu) == last && *events < all),
                        "{what}: CPU {cpu}, {events} of {all}"
                    );
                }
                cuts += 1;
            }
        }
    }
    println!("{cuts} buffers, {presumed} files with CPUs by their order");
    assert!(cuts > 10, "{cuts} buffers");
}

/// A killed recorder leaves one file per CPU; here they are restored in the order in which a shell lists them.
#[test]
fn cpus_restored_in_the_wrong_order_are_renumbered() {
    let sim = Simulation::run(9, 12, 8000);
    let mut listed: Vec<u32> = (0..12).collect();
    listed.sort_by_key(u32::to_string);
    assert_eq!(listed[..4], [0, 1, 10, 11]);
    for (version, compression) in [(6, Compression::None), (7, Compression::None), (7, Compression::Zstd)] {
        let builder = |restored| TraceBuilder { version, compression, restored, ..TraceBuilder::default() };
        let right = builder(false).events(&sim.events);
        let mut wrong = builder(true).events(&sim.events);
        let parts: BTreeMap<u32, Vec<Vec<u8>>> = wrong.buffers[0].cpus.drain(..).collect();
        let in_order = listed.iter().map(|cpu| parts.get(cpu).cloned().unwrap_or_default());
        wrong.buffers[0].cpus = (0..).zip(in_order).collect();
        let read = |bytes: Vec<u8>| {
            let trace = Trace::from_bytes(bytes, parse::Options::default()).expect("readable");
            let mut records = Vec::new();
            trace.records(&mut |record| {
                records.push((record.ts, record.cpu, record.id(), record.pid()));
                ControlFlow::Continue(())
            });
            let moved = trace.diagnostics().count(FileIssue::MisnumberedCpu);
            (records, moved, trace.diagnostics().detail(FileIssue::MisnumberedCpu).map(str::to_owned))
        };
        let (right, wrong) = (read(right.build()), read(wrong.build()));
        assert!(right.0 == wrong.0 && right.0.len() > 1000, "version {version}, {compression:?}");
        assert_eq!((right.1, right.2), (0, None));
        assert_eq!((wrong.1, wrong.2.as_deref()), (10, Some("CPU 10 stood as 2")), "all but 0 and 1");
    }
}

/// Events that the recorder counted and the file lacks are reported by each reader of the complete file.
#[test]
fn events_counted_but_not_written_are_reported() {
    let folder = scratch("unwritten");
    let sim = Simulation::run(5, 4, 2000);
    let events = |cpu: u32| sim.events.iter().filter(|e| e.cpu.0 == cpu).count();
    let stat = |cpu: u32, more: usize| {
        (
            2,
            format!(
                "CPU: {cpu}\nentries: {}\noverrun: 0\ncommit overrun: 0\nread events: 70\n",
                events(cpu) + more - 70
            ),
        )
    };
    let build = |stats: &[(u16, String)]| {
        let options = stats.iter().map(|(id, text)| (*id, text.clone().into_bytes())).collect();
        TraceBuilder { options, ..TraceBuilder::default() }.events(&sim.events).build()
    };
    let missing = |bytes: &[u8], threads: usize, to: Option<Ts>| {
        let options = parse::Options { threads, ..parse::Options::default() };
        let trace = Trace::from_bytes(bytes.to_vec(), options).expect("readable");
        let options = Options::default();
        let pass = Pass::over(trace.events().expect("times")).window(sched::Window { from: None, to });
        let found = pass.run(|| WorkConservation::new(&options)).expect("readable").diagnostics;
        let reader = trace.cpu_reader(Want::Switches).expect("times");
        let of_one = reader.events(0, sched::Cpu(2), None, &mut |_| ControlFlow::Continue(()));
        [&found, &trace.counts().diagnostics, &of_one].map(|found| found.count(FileIssue::EventsDroppedUnmarked))
    };
    let whole = build(&[stat(0, 0), stat(1, 0), stat(2, 0), stat(3, 0)]);
    let lacks = build(&[stat(0, 0), stat(1, 12), stat(2, 50), stat(3, 0)]);
    let middle = sim.events[sim.events.len() / 2].ts;
    for threads in [1, 2, 3] {
        assert_eq!(missing(&whole, threads, None), [0, 0, 0]);
        assert_eq!(missing(&lacks, threads, None), [62, 62, 50]);
        // A reader of a part of the file cannot count the missing events.
        assert_eq!(missing(&lacks, threads, Some(middle)), [0, 62, 50]);
    }
    // A CPU without data: more than a hundredth of all events are missing, so there is no verdict.
    let silent =
        build(&[stat(0, 0), stat(1, 0), stat(2, 0), stat(3, 0), (2, "CPU: 4\nentries: 700\nread events: 1\n".into())]);
    assert_eq!(missing(&silent, 1, None), [701, 0, 0]);
    let path = folder.join("silent.dat");
    std::fs::write(&path, silent).expect("written");
    let ran = schedviz(&["workcons", path.to_str().expect("a path"), "--max-violation", "99"]);
    assert!(ran.code == Some(3) && ran.stderr.contains("% of the events are missing without a mark"), "{}", ran.stderr);
    assert!(ran.stderr.contains("701 of CPU 4 are not in the file"), "{}", ran.stderr);
    // Nor are the run queues of such a file exact (newidle-off.1 of 6.1).
    let info = schedviz(&["info", fixture("unseen-wakeups-6.1.dat").to_str().expect("a path")]).success().text();
    assert!(info.contains("725 events without a mark") && info.contains("run queues: not to be trusted: "), "{info}");
}

/// Nearly every recorder wrote all events that it counted, even if the kernel lost many before that.
#[test]
fn recordings_hold_all_counted_events() {
    for path in recordings() {
        let trace = Trace::open(&path, parse::Options::default()).expect("readable");
        let mut found = trace.diagnostics().clone();
        found.merge(&trace.counts().diagnostics);
        let path = path.display().to_string();
        // Instances without some CPUs; CPUs without data; a CPU without the end of its data.
        let known = [
            ("6.1-cpus16-nodes2/instance.dat", 1000),
            ("7.2-cpus4/instance.dat", 60),
            ("fixtures/instance.dat", 60),
            ("fixtures/unseen-wakeups-6.1.dat", 725),
            ("6.1-cpus16-nodes2/newidle-off.1.dat", 725),
            ("6.12-cpus8-nodes2/hackbench-allsched.dat", 2842),
            ("6.1-cpus16-nodes2/newidle-on.2.dat", 150),
            // A CPU that was offline when the recorder ended.
            ("fixtures/hotplug-5.10.dat", 79),
            // A page of one CPU, user stacks, and a single event.
            ("lawall/numa-pinned.5.dat", 69),
            ("6.12-c8-n2/ustack-u.dat", 118),
            ("6.12-c8-n2/date-tai.dat", 1),
        ];
        let expected = known.iter().find(|(name, _)| path.ends_with(name)).map_or(0, |(_, events)| *events);
        assert_eq!(found.count(FileIssue::EventsDroppedUnmarked), expected, "{path}");
    }
}

#[test]
fn compressed_data_that_overlap_are_read_once() {
    let whole = std::fs::read(fixture("hackbench.dat")).expect("a fixture");
    let (right, overlaps, _) = per_cpu(whole.clone());
    assert!(right.len() > 4 && overlaps == 0);
    // The table has the number of each CPU, then the offset and the size of its data.
    let number = |at: usize| whole.get(at..at + 4).map(|n| u32::from_le_bytes(n.try_into().expect("four bytes")));
    let is_table = |at: &usize| (0..4).all(|cpu| number(at + 20 * cpu as usize) == Some(cpu));
    let table = (0..whole.len()).find(is_table).expect("a table");
    let mut bytes = whole.clone();
    bytes.copy_within(table + 4..table + 12, table + 24);
    let others: BTreeMap<u32, u64> = right.iter().filter(|(cpu, _)| **cpu != 1).map(|(cpu, n)| (*cpu, *n)).collect();
    let (events, overlaps, _) = per_cpu(bytes);
    assert_eq!((events, overlaps), (others, 1));
}

/// A file that another program cuts short while it is read costs the events behind the cut, and not the program.
#[test]
fn a_file_that_shrinks_while_it_is_read() {
    let folder = scratch("shrinks");
    for name in ["hackbench.dat", "hackbench-v6.dat"] {
        let path = folder.join(name);
        std::fs::copy(fixture(name), &path).expect("copied");
        let whole = Trace::open(&path, ReadOptions::default()).expect("a trace");
        let (all, _) = records_of(&whole);
        let trace = Trace::open(&path, ReadOptions::default()).expect("a trace");
        let size = path.metadata().expect("a file").len();
        File::options().write(true).open(&path).expect("a file").set_len(size * 3 / 4).expect("cut");
        let (some, lost) = records_of(&trace);
        assert!(some > all / 4 && some < all, "{name}: {some} of {all}");
        assert!(lost > 0, "{name}: reported");
        // The header's texts that are read later are gone as well, and nothing is shown for them.
        File::options().write(true).open(&path).expect("a file").set_len(100).expect("cut");
        assert!(trace.saved_names().is_empty());
        assert_eq!(records_of(&trace).0, 0);
    }
}

/// How many records can be read, and how many units cannot.
fn records_of(trace: &Trace) -> (u64, u64) {
    let mut count = 0;
    let found = trace.records(&mut |_| {
        count += 1;
        ControlFlow::Continue(())
    });
    (count, found.count(FileIssue::TruncatedData))
}

/// A file with losses on a thousand CPUs: `info` lists those with the most lost events, and the others in one row.
#[test]
fn info_lists_a_bounded_number_of_cpus_with_losses() {
    let at = |ts: i64, cpu: u32, kind| SchedEvent { ts: Ts(ts), cpu: Cpu(cpu), pid: Pid(7), flags: 0, kind };
    let mut events = Vec::new();
    // Every other CPU, so that the list of them has no ranges.
    for nth in 0..1000 {
        let (ts, cpu) = (1_000_000 + i64::from(nth) * 1_000, 2 * nth);
        let count = Some(sched::LostCount::of(u64::from(nth % 500) + 1));
        events.push(at(ts, cpu, EventKind::Exit { pid: Pid(7) }));
        events.push(at(ts + 1, cpu, EventKind::Lost { count }));
        events.push(at(ts + 2, cpu, EventKind::Exit { pid: Pid(7) }));
    }
    let folder = scratch("info-losses");
    let file = folder.join("losses.dat");
    let trace = TraceBuilder { cpu_count: 2000, ..TraceBuilder::default() }.events(&events);
    std::fs::write(&file, trace.build()).expect("written");
    let text = schedviz(&["info", "-q", file.to_str().expect("a path")]).success().text();
    let (_, listed) = text.split_once("Events were lost:\n").expect("losses");
    let rows: Vec<Vec<&str>> = listed
        .lines()
        .skip(1)
        .take_while(|line| !line.is_empty())
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(rows.len(), 65, "{listed}");
    // Two CPUs of each number of lost events, from 500 downwards, in the order of the CPUs.
    assert_eq!((rows[0][..3].to_vec(), rows[63][..3].to_vec()), (vec!["936", "1", "469"], vec!["1998", "1", "500"]));
    let rest: u64 = (1..=468).map(|lost| 2 * lost).sum();
    assert_eq!(rows[64][1..3], ["936", &session::warnings::grouped(rest)], "{:?}", rows[64]);
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}

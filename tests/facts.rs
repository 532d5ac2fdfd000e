//! Facts that stand beside events: the recorder's statistics, clocks, and the kernel's counters.

use crate::support::{fixture, schedviz, scratch};
use parse::{FileIssue, Options, Trace, Want};
use sched::{Cpu, Pass, Ts};
use std::ops::ControlFlow;
use testkit::{Buffer, Simulation, TraceBuilder};
use workcons::WorkConservation;

/// The text of a CPU's statistics: what it recorded, and what the kernel overwrote.
fn stat(cpu: u32, recorded: u64, overrun: u64) -> (u16, Vec<u8>) {
    let text = format!("CPU: {cpu}\nentries: 0\noverrun: {overrun}\ncommit overrun: 0\nread events: {recorded}\n");
    (2, text.into_bytes())
}

/// Losses whose mark has no number have that of the statistics; losses without a mark are added to those without a
/// place.
#[test]
fn the_statistics_complete_the_losses() {
    let mut built = TraceBuilder::default();
    let layout = built.layout();
    let ring = |marks: &[Option<u64>]| {
        let mut ring = built.ring();
        ring.event(1_000, &layout.bare(999, 7));
        for (nth, mark) in (2u64..).zip(marks) {
            ring.lost(*mark);
            ring.event(1_000 * nth, &layout.bare(999, 7));
        }
        ring.finish()
    };
    // A mark without a number; all counted; one of each kind; no mark at all.
    let marks: [&[Option<u64>]; 4] = [&[None], &[Some(40)], &[Some(5), None], &[]];
    let cpus = (0u32..).zip(marks).map(|(cpu, marks)| (cpu, ring(marks))).collect();
    built.buffers = vec![Buffer { name: String::new(), clock: "local".into(), page_size: 0, cpus }];
    built.options = vec![stat(0, 2, 1136), stat(1, 2, 40), stat(2, 3, 17), stat(3, 1, 600)];
    let trace = Trace::from_bytes(built.build(), Options::default()).expect("readable");
    let counts = trace.counts();
    let lost: Vec<(u64, u64, u64)> =
        counts.buffers[0].cpus.iter().map(|cpu| (cpu.gaps, cpu.gaps_uncounted, cpu.lost)).collect();
    assert_eq!(lost, [(1, 0, 1136), (1, 0, 40), (2, 0, 17), (0, 0, 0)]);
    let unmarked = |found: &sched::Diagnostics| found.count(FileIssue::EventsDroppedUnmarked);
    assert_eq!(unmarked(&counts.diagnostics), 600);
    assert_eq!(unmarked(&trace.records(&mut |_| ControlFlow::Continue(()))), 600, "the merge finds the same");
    let reader = trace.cpu_reader(Want::Switches).expect("times");
    let of_one = |cpu| unmarked(&reader.events(0, Cpu(cpu), None, &mut |_| ControlFlow::Continue(())));
    assert_eq!([0, 1, 2, 3].map(of_one), [0, 0, 0, 600]);
    let folder = scratch("facts-lost");
    let path = folder.join("lost.dat");
    std::fs::write(&path, built.build()).expect("written");
    let info = schedviz(&["info", path.to_str().expect("a path")]).success().text();
    assert!(info.contains("lost       1,193 events in 4 places, 600 more without a place"), "{info}");
    assert!(!info.contains('\u{2265}'), "no lower bounds: {info}");
}

/// A mark without a number stays a lower bound where the file has no statistics.
#[test]
fn without_statistics_a_loss_is_a_lower_bound() {
    let mut built = TraceBuilder::default();
    let layout = built.layout();
    let mut ring = built.ring();
    ring.event(1_000, &layout.bare(999, 7));
    ring.lost(None);
    ring.event(2_000, &layout.bare(999, 7));
    let cpus = vec![(0, ring.finish())];
    built.buffers = vec![Buffer { name: String::new(), clock: "local".into(), page_size: 0, cpus }];
    let trace = Trace::from_bytes(built.build(), Options::default()).expect("readable");
    let cpu = &trace.counts().buffers[0].cpus[0];
    assert_eq!((cpu.gaps, cpu.gaps_uncounted, cpu.lost), (1, 1, 0));
}

/// A CPU whose clock is ten minutes ahead of the others' is named, and no verdict is passed.
#[test]
fn a_clock_out_of_step_takes_the_verdict_away() {
    let sim = Simulation::run(5, 4, 2000);
    let folder = scratch("facts-clocks");
    let judged = |name: &str, ahead: i64| {
        let mut events = sim.events.clone();
        events.iter_mut().filter(|e| e.cpu == Cpu(2)).for_each(|e| e.ts = Ts(e.ts.0 + ahead));
        let bytes = TraceBuilder::default().events(&events).build();
        let trace = Trace::from_bytes(bytes.clone(), Options::default()).expect("readable");
        let apart = trace.diagnostics().detail(FileIssue::ClocksApart).map(str::to_owned);
        let options = workcons::Options::default();
        let pass = Pass::over(trace.events().expect("times")).run(|| WorkConservation::new(&options));
        assert!(pass.is_ok());
        let path = folder.join(name);
        std::fs::write(&path, bytes).expect("written");
        let ran = schedviz(&["workcons", path.to_str().expect("a path"), "--max-violation", "100"]);
        (apart, ran.code, ran.stderr)
    };
    let (apart, code, stderr) = judged("in-step.dat", 0);
    assert_eq!((apart, code), (None, Some(0)), "{stderr}");
    let (apart, code, stderr) = judged("apart.dat", 600_000_000_000);
    assert_eq!((apart.as_deref(), code), (Some("2"), Some(3)), "{stderr}");
    assert!(stderr.contains("the clocks of some CPUs are not in step") && stderr.contains("[CPU 2]"), "{stderr}");
}

/// Vendors' kernels have lines of their own in /proc/schedstat: they are passed over, which is reported.
#[test]
fn schedstat_passes_over_lines_of_other_kinds() {
    let [before, after] = ["eas.before", "eas.after"].map(|name| fixture(name).to_str().expect("a path").to_owned());
    let text = schedviz(&["schedstat", &before, &after, "--per-cpu"]).success().text();
    assert!(
        text.contains("note: 3 lines of other kinds were passed over, the first one, \"eas\", in line 4"),
        "{text}"
    );
    // The differences by hand: 9703 to 9713 is the first, unused counter.
    let row = text.lines().find(|line| line.trim_start().starts_with("0 ")).expect("a row of CPU 0");
    let counters: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(counters, ["0", "1000", "100", "1000", "500", "1000.000", "1000.000", "1000"]);
    assert!(text.contains("domain0") && !text.contains("eas "), "{text}");
}

/// The text of `info` on a built trace.
fn info_of(name: &str, trace: &TraceBuilder) -> String {
    let folder = scratch(name);
    let file = folder.join("built.dat");
    std::fs::write(&file, trace.build()).expect("written");
    schedviz(&["info", file.to_str().expect("a path")]).success().text()
}

/// No run queue is approximate in a recording of other events alone.
#[test]
fn info_without_scheduler_events_names_no_run_queue() {
    let mut trace = TraceBuilder::default();
    let mut ring = trace.ring();
    trace.formats.push(("lb".into(), trace.layout().format(500, "pull", "")));
    ring.event(1_000, &trace.layout().bare(500, 7));
    let cpus = vec![(0, ring.finish())];
    trace.buffers = vec![Buffer { name: String::new(), clock: "local".into(), page_size: 0, cpus }];
    let text = info_of("facts-none", &trace);
    let can = text.split_once("What can be done with it:\n").expect("a list").1;
    assert_eq!(
        can,
        "  all commands but events: impossible: there are no scheduler events\n    (sched:sched_switch was not recorded)\n"
    );
}

/// Each buffer has the clock that it names, where that is another; a file without data has its first buffer's.
#[test]
fn info_shows_the_clock_of_each_buffer() {
    let mut trace = TraceBuilder { clock: "mono".into(), ..TraceBuilder::default() };
    let layout = trace.layout();
    let pages = |ts: u64| {
        let mut ring = TraceBuilder::default().ring();
        ring.event(ts, &layout.bare(999, 7));
        vec![(0, ring.finish())]
    };
    let buffer = |name: &str, clock: &str, cpus| Buffer { name: name.into(), clock: clock.into(), page_size: 0, cpus };
    trace.buffers = vec![buffer("", "mono", pages(1_000)), buffer("probes", "local global [boot] tai", pages(2_000))];
    let text = info_of("facts-clocks-2", &trace);
    assert!(text.contains("clock      mono, nanoseconds\n"), "{text}");
    assert!(text.contains("buffer     probes: 1 event, CPU 0, pages of 4096 bytes, clock boot (not read)\n"), "{text}");
    assert!(text.contains("buffer     top: 1 event, CPU 0, pages of 4096 bytes\n"), "{text}");
    trace.buffers = vec![buffer("", "boot", Vec::new())];
    let text = info_of("facts-clocks-0", &trace);
    assert!(text.contains("clock      boot, nanoseconds\n"), "{text}");
}

//! The critical path: by hand, and against a second implementation that walks back through all spans.

use crate::path_walk_back::everything;
use crate::support::{events, fixture, recordings, schedviz, scratch, unwrapped};
use parse::Trace;
use path::{CriticalPath, Options, Path, SegmentKind};
use sched::{Comm, Cpu, EventKind as Event, Pass, Pid, PrevState, SchedEvent, TaskRef, Ts};
use std::collections::{BTreeMap, BTreeSet};
use testkit::{Simulation, TraceBuilder};

pub(crate) fn path_of(events: &[SchedEvent], pid: Option<i32>) -> Path {
    let options = Options { pid: pid.map(Pid), command: pid.map(|_| Comm::new(b"named")), zero: Ts(0), longest: 3 };
    let outcome = Pass::over(events).run(|| CriticalPath::new(options));
    outcome.unwrap_or_else(|never| match never {}).output
}

/// A segment: its state, task, CPU, start and end.
pub(crate) type Piece = (SegmentKind, i32, Option<u32>, i64, i64);

pub(crate) fn pieces(path: &Path) -> Vec<Piece> {
    let piece = |s: &path::Segment| (s.kind, s.pid.0, s.cpu.map(|cpu| cpu.0), s.start_ns.0, s.end_ns.0);
    path.path.iter().map(piece).collect()
}

/// Asserts that the segments tile the time of the path.
pub(crate) fn tiles(name: &str, path: &Path) {
    let mut at = path.from_ns;
    for segment in &path.path {
        assert!(segment.start_ns == at && segment.end_ns > at, "{name}: {segment:?} at {at:?}");
        at = segment.end_ns;
    }
    assert_eq!(at, path.to_ns, "{name}");
    assert_eq!(path.times.total(), path.to_ns.since(path.from_ns).0, "{name}");
    let by_task: u64 = path.tasks.iter().map(|share| share.times.total()).sum();
    assert_eq!(by_task, path.times.total(), "{name}");
    assert_eq!(path.times.kinds().total(), path.times.queued_ns, "{name}");
}

#[test]
fn the_path_is_that_of_a_walk_back_on_simulated_runs() {
    let (mut checked, mut kinds, mut long, mut deep) = (0, BTreeSet::new(), 0, 0);
    for seed in crate::support::seeds(120) {
        let cpus = 1 + (seed % 9) as u32;
        let sim = if seed % 3 == 0 { Simulation::any(seed, cpus, 400) } else { Simulation::balanced(seed, cpus, 400) };
        let all = everything(&sim.events);
        for (pid, (at, task)) in all.exits.iter().take(3) {
            let path = path_of(&sim.events, Some(pid.0));
            tiles(&format!("seed {seed}, {pid}"), &path);
            assert!(path.ends_with_exit && path.to_ns == *at);
            let ours = pieces(&path);
            let (theirs, depth) = all.walk(*task, *at);
            assert_eq!(ours, theirs, "seed {seed}: {pid}");
            // Another CPU can idle while a wait is held back on its own.
            let (idle, held) = (path.times.queued_beside_idle_ns, path.times.queued_held_back_ns);
            assert!((idle..=idle + held).contains(&all.beside_idle(&ours)), "seed {seed}: {pid}");
            kinds.extend(ours.iter().map(|piece| piece.0));
            (checked, long, deep) = (checked + 1, long.max(path.handovers.expect("wakings")), deep.max(depth));
        }
    }
    assert!(checked > 150 && kinds.len() >= 4 && long > 10 && deep > 1, "{checked} {kinds:?} {long} {deep}");
}

#[test]
fn the_path_is_that_of_a_walk_back_on_every_recording() {
    let mut checked = 0;
    for file in recordings() {
        let trace = Trace::open(&file, parse::Options::default()).expect("a readable recording");
        if trace.has_time().is_err() {
            continue;
        }
        let (name, events) = (file.display().to_string(), events(&trace));
        let path = path_of(&events, None);
        if path.task.is_none() {
            continue;
        }
        tiles(&name, &path);
        let all = everything(&events);
        let root = all.root.expect("a root");
        if let (Some((at, task)), false) = (all.exits.get(&root), all.has_gaps) {
            assert_eq!(pieces(&path), all.walk(*task, *at).0, "{name}");
            checked += 1;
        }
    }
    assert!(checked >= 5, "{checked}");
}

/// The pieces of a path outside some stretches of time, those of one state joined.
fn outside(pieces: &[Piece], gaps: &[(i64, i64)]) -> Vec<Piece> {
    let mut found: Vec<Piece> = Vec::new();
    for &(kind, pid, cpu, from, to) in pieces {
        let mut at = from;
        let inside = gaps.iter().filter(|(begin, end)| *begin < to && *end > from);
        for (begin, end) in inside.copied().chain([(to, to)]) {
            if at < begin {
                match found.last_mut() {
                    Some(last) if (last.0, last.1, last.2, last.4) == (kind, pid, cpu, at) => last.4 = begin,
                    _ => found.push((kind, pid, cpu, at, begin)),
                }
            }
            at = at.max(end);
        }
    }
    found
}

/// The run without some of its switches before an instant: never two in succession of one CPU or of one task, and never the
/// first or the last one of a CPU, since others cannot be noticed. Tasks that were woken while they ran, or
/// at the instant at which they slept, keep theirs: such a waking within a gap looks like the end of a longer sleep.
fn without_some_switches(sim: &Simulation, before: Ts, seed: u64) -> Vec<SchedEvent> {
    let mut rng = testkit::Rng::new(seed);
    let mut switches: BTreeMap<Cpu, Vec<usize>> = BTreeMap::new();
    let mut kept_whole = BTreeSet::new();
    for (at, event) in sim.events.iter().enumerate() {
        match event.kind {
            Event::Switch { .. } if event.ts < before => switches.entry(event.cpu).or_default().push(at),
            Event::Waking { task, .. }
                if sim.truth[at].current.contains(&task.pid.0) || sim.events[at.saturating_sub(1)].ts == event.ts =>
            {
                kept_whole.insert(task.pid);
            }
            _ => {}
        }
    }
    let inner = |of_cpu: Vec<usize>| of_cpu.into_iter().skip(1).rev().skip(1).collect::<Vec<usize>>();
    let mut candidates: Vec<usize> = switches.into_values().flat_map(inner).collect();
    candidates.sort_unstable();
    let (mut cpus, mut tasks, mut left_out) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for at in candidates {
        let Event::Switch { prev, next, .. } = sim.events[at].kind else { continue };
        let both = [prev.pid, next.pid].into_iter().filter(|pid| !pid.is_idle());
        let may_go = both.clone().all(|pid| !kept_whole.contains(&pid) && !tasks.contains(&pid));
        if may_go && !cpus.contains(&sim.events[at].cpu) && rng.below(3) == 0 {
            left_out.insert(at);
            cpus.insert(sim.events[at].cpu);
            tasks.extend(both);
        } else {
            cpus.remove(&sim.events[at].cpu);
            tasks.retain(|pid| both.clone().all(|other| other != *pid));
        }
    }
    sim.events.iter().enumerate().filter(|(at, _)| !left_out.contains(at)).map(|(_, event)| *event).collect()
}

#[test]
fn outside_gaps_the_path_is_that_of_the_complete_run() {
    let (mut gaps, mut handovers, mut kinds, mut known, mut unknown) = (0, 0, BTreeSet::new(), 0, 0);
    for seed in crate::support::seeds(200) {
        let cpus = 1 + (seed % 7) as u32;
        let sim = if seed % 2 == 0 { Simulation::run(seed, cpus, 500) } else { Simulation::balanced(seed, cpus, 500) };
        let Some((pid, at)) = sim.events.iter().rev().find_map(|event| match event.kind {
            Event::Exit { pid } => Some((pid, event.ts)),
            _ => None,
        }) else {
            continue;
        };
        let complete = path_of(&sim.events, Some(pid.0));
        let partial = path_of(&without_some_switches(&sim, at, seed), Some(pid.0));
        tiles(&format!("seed {seed}"), &partial);
        let found = pieces(&partial);
        let holes: Vec<(i64, i64)> =
            found.iter().filter(|piece| piece.0 == SegmentKind::Unknown).map(|piece| (piece.3, piece.4)).collect();
        let rest = outside(&found, &holes);
        assert_eq!(rest, outside(&pieces(&complete), &holes), "seed {seed}: {pid}, without {holes:?}");
        gaps += partial.gaps;
        handovers += partial.handovers.expect("wakings");
        kinds.extend(rest.iter().map(|piece| piece.0));
        known += partial.times.total() - partial.times.unknown_ns;
        unknown += partial.times.unknown_ns - complete.times.unknown_ns;
    }
    assert!(gaps > 150 && handovers > 500 && kinds.len() == 4, "{gaps} {handovers} {kinds:?}");
    assert!(unknown > 0 && known > unknown, "{known} {unknown}");
}

#[test]
fn whatever_is_missing_the_segments_tile_the_path() {
    let mut gaps = 0;
    for seed in crate::support::seeds(150) {
        let cpus = 1 + (seed % 6) as u32;
        let sim = if seed % 2 == 0 { Simulation::run(seed, cpus, 400) } else { Simulation::balanced(seed, cpus, 400) };
        let mut rng = testkit::Rng::new(seed);
        let thinned: Vec<SchedEvent> = sim.events.iter().filter(|_| rng.below(8) > 0).copied().collect();
        for events in [thinned, sim.lossy(seed).0] {
            let pids: BTreeSet<i32> = events.iter().map(|event| event.pid.0).filter(|pid| *pid > 0).collect();
            for pid in pids.into_iter().take(6) {
                let path = path_of(&events, Some(pid));
                tiles(&format!("seed {seed}, {pid}"), &path);
                gaps += path.gaps;
            }
        }
    }
    assert!(gaps > 2_000, "{gaps}");
}

pub(crate) fn task(pid: i32) -> TaskRef {
    TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(format!("task-{pid}").as_bytes()) }
}

pub(crate) fn idle() -> TaskRef {
    TaskRef { pid: Pid::IDLE, prio: 120, comm: Comm::new(b"swapper") }
}

pub(crate) fn at(ts: i64, cpu: u32, pid: i32, kind: Event) -> SchedEvent {
    SchedEvent { ts: Ts(ts), cpu: Cpu(cpu), pid: Pid(pid), flags: 0, kind }
}

/// 5 wakes 6 for CPU 1, which idles; the switch to 6 at 20 is missing if `is_missing`. 6 forks 7 at 40 and sleeps at 50; 7 runs at 60.
fn a_run_that_was_not_recorded(is_missing: bool) -> Vec<SchedEvent> {
    let sleep = PrevState::asleep(1);
    let name = task(7).comm;
    let events = [
        at(0, 0, 5, Event::Other { id: 1 }),
        at(0, 1, 0, Event::Other { id: 1 }),
        at(10, 0, 5, Event::Waking { task: task(6), target: Cpu(1) }),
        at(12, 0, 5, Event::Wakeup { task: task(6), target: Cpu(1) }),
        at(20, 1, 0, Event::Switch { prev: idle(), state: PrevState::RUNNABLE, next: task(6) }),
        at(40, 1, 6, Event::Fork { parent: Pid(6), child: Pid(7), child_comm: name }),
        at(42, 1, 6, Event::WakeupNew { task: task(7), target: Cpu(0) }),
        at(50, 1, 6, Event::Switch { prev: task(6), state: sleep, next: idle() }),
        at(60, 0, 5, Event::Switch { prev: task(5), state: sleep, next: task(7) }),
        at(90, 0, 7, Event::Exit { pid: Pid(7) }),
    ];
    events.into_iter().filter(|event| !is_missing || event.ts != Ts(20)).collect()
}

#[test]
fn a_gap_is_unknown_for_its_own_length() {
    let rest = [
        (SegmentKind::Waking, 7, None, 40, 42),
        (SegmentKind::Queued, 7, Some(0), 42, 60),
        (SegmentKind::Running, 7, Some(0), 60, 90),
    ];
    let begin = [(SegmentKind::Running, 5, Some(0), 0, 10), (SegmentKind::Waking, 6, None, 10, 12)];
    let complete = path_of(&a_run_that_was_not_recorded(false), Some(7));
    let middle = [(SegmentKind::Queued, 6, Some(1), 12, 20), (SegmentKind::Running, 6, Some(1), 20, 40)];
    assert_eq!(pieces(&complete), [&begin[..], &middle, &rest].concat());
    assert_eq!((complete.gaps, complete.is_untrusted), (0, false));
    // The fork shows that 6 runs at 40; the wakeup was the last event before that showed what it did.
    let partial = path_of(&a_run_that_was_not_recorded(true), Some(7));
    assert_eq!(pieces(&partial), [&begin[..], &[(SegmentKind::Unknown, 6, None, 12, 40)], &rest].concat());
    assert_eq!((partial.gaps, partial.longest_gap_ns, partial.times.unknown_ns), (1, 28, 28));
    assert!(partial.is_untrusted, "28 of 90 are unknown");
    // Without the fork itself the child's first wakeup shows the parent.
    let unforked: Vec<SchedEvent> =
        a_run_that_was_not_recorded(false).into_iter().filter(|event| event.ts != Ts(40)).collect();
    let middle = [(SegmentKind::Queued, 6, Some(1), 12, 20), (SegmentKind::Running, 6, Some(1), 20, 42)];
    assert_eq!(pieces(&path_of(&unforked, Some(7))), [&begin[..], &middle, &rest[1..]].concat());
}

#[test]
fn a_path_goes_on_before_a_loss() {
    let sleep = PrevState::asleep(1);
    let events = [
        at(0, 0, 5, Event::Other { id: 1 }),
        at(0, 1, 6, Event::Other { id: 1 }),
        at(10, 0, 5, Event::Switch { prev: task(5), state: sleep, next: idle() }),
        // The events of CPU 1 after 20 are lost; the first event behind that is the waking of 5 by 6.
        at(20, 1, 6, Event::Other { id: 1 }),
        at(20, 1, 0, Event::Lost { count: Some(sched::LostCount::of(3)) }),
        at(70, 1, 6, Event::Waking { task: task(5), target: Cpu(0) }),
        at(72, 1, 6, Event::Wakeup { task: task(5), target: Cpu(0) }),
        at(75, 0, 0, Event::Switch { prev: idle(), state: PrevState::RUNNABLE, next: task(5) }),
        at(300, 0, 5, Event::Exit { pid: Pid(5) }),
    ];
    let path = path_of(&events, Some(5));
    let expected = [
        (SegmentKind::Running, 5, Some(0), 0, 10),
        (SegmentKind::Running, 6, Some(1), 10, 20),
        (SegmentKind::Unknown, 6, None, 20, 70),
        (SegmentKind::Waking, 5, None, 70, 72),
        (SegmentKind::Queued, 5, Some(0), 72, 75),
        (SegmentKind::Running, 5, Some(0), 75, 300),
    ];
    assert_eq!(pieces(&path), expected);
    assert_eq!((path.gaps, path.is_untrusted), (1, false), "a sixth of it is unknown");
}

#[test]
fn a_wait_that_ends_unseen_is_known_while_another_task_runs_there() {
    let sleep = PrevState::asleep(1);
    let events = [
        at(0, 0, 5, Event::Other { id: 1 }),
        at(0, 1, 7, Event::Other { id: 1 }),
        at(10, 1, 7, Event::Waking { task: task(6), target: Cpu(0) }),
        at(12, 1, 7, Event::Wakeup { task: task(6), target: Cpu(0) }),
        at(30, 0, 5, Event::Other { id: 1 }),
        // The switch from 5 to 6 is missing.
        at(60, 0, 6, Event::Switch { prev: task(6), state: sleep, next: idle() }),
        // 5 was woken meanwhile.
        at(70, 1, 7, Event::Waking { task: task(5), target: Cpu(0) }),
        at(72, 1, 7, Event::Wakeup { task: task(5), target: Cpu(0) }),
        at(75, 0, 0, Event::Switch { prev: idle(), state: PrevState::RUNNABLE, next: task(5) }),
        at(80, 0, 5, Event::Waking { task: task(6), target: Cpu(0) }),
        at(82, 0, 5, Event::Wakeup { task: task(6), target: Cpu(0) }),
        at(85, 0, 5, Event::Switch { prev: task(5), state: sleep, next: task(6) }),
        at(90, 0, 6, Event::Exit { pid: Pid(6) }),
    ];
    let begin = [(SegmentKind::Running, 7, Some(1), 0, 10), (SegmentKind::Waking, 6, None, 10, 12)];
    // The part up to the sleep of 6, which no event ends there.
    let window = sched::Window { from: None, to: Some(Ts(61)) };
    let options = Options { pid: Some(Pid(6)), ..Options::default() };
    let pass = Pass::over(&events[..]).window(window).run(|| CriticalPath::new(options));
    let part = pass.unwrap_or_else(|never| match never {}).output;
    let middle = [
        (SegmentKind::Queued, 6, Some(0), 12, 30),
        (SegmentKind::Unknown, 6, None, 30, 60),
        (SegmentKind::Unknown, 6, None, 60, 61),
    ];
    assert_eq!((part.gaps, part.longest_gap_ns), (1, 31));
    assert_eq!(pieces(&part), [&begin[..], &middle].concat());
    // 6 sleeps from 60 to 80. The gap of 5 begins at 30, and from 60 on 6 is shown on its CPU: the waker of 5 explains the rest.
    let expected = [
        (SegmentKind::Running, 7, Some(1), 0, 10),
        (SegmentKind::Waking, 6, None, 10, 12),
        (SegmentKind::Queued, 6, Some(0), 12, 30),
        (SegmentKind::Unknown, 6, None, 30, 60),
        (SegmentKind::Running, 7, Some(1), 60, 70),
        (SegmentKind::Waking, 5, None, 70, 72),
        (SegmentKind::Queued, 5, Some(0), 72, 75),
        (SegmentKind::Running, 5, Some(0), 75, 80),
        (SegmentKind::Waking, 6, None, 80, 82),
        (SegmentKind::Queued, 6, Some(0), 82, 85),
        (SegmentKind::Running, 6, Some(0), 85, 90),
    ];
    assert_eq!(pieces(&path_of(&events, Some(6))), expected);
}

#[test]
fn a_doubtful_path_says_so_first() {
    let folder = scratch("doubtful-path");
    let trace = folder.join("gap.dat");
    std::fs::write(&trace, TraceBuilder::default().events(&a_run_that_was_not_recorded(true)).build())
        .expect("written");
    let trace = trace.to_str().expect("a path");
    let text = schedviz(&["path", trace, "--pid", "7"]).success().text();
    let headline = unwrapped(&text);
    assert!(
        headline.contains("gap.dat: the critical path is not to be trusted, since 31.1 % of it is unknown: "),
        "{text}"
    );
    assert!(text.contains("1 gap of 28 ns in all, the longest of 28 ns"), "{text}");
    let figure = folder.join("gap.svg");
    schedviz(&["path", trace, "--pid", "7", "-o", figure.to_str().expect("a path")]).success();
    let figure = std::fs::read_to_string(&figure).expect("a figure");
    assert!(figure.contains("not to be trusted, 31.1 % unknown"), "{figure}");
}

#[test]
fn of_many_cpus_a_figure_has_those_that_the_path_uses() {
    let sim = Simulation::run(7, 256, 12_000);
    let last = sim.events.iter().rev().find_map(|event| match event.kind {
        Event::Exit { pid } => Some(pid),
        _ => None,
    });
    let pid = last.expect("an exit").to_string();
    let folder = scratch("path-of-many-cpus");
    let (trace, svg, pdf) = (folder.join("many.dat"), folder.join("many.svg"), folder.join("many.pdf"));
    std::fs::write(&trace, TraceBuilder::default().events(&sim.events).build()).expect("written");
    let [trace, to_svg, to_pdf] = [&trace, &svg, &pdf].map(|path| path.to_str().expect("a path"));
    let json = schedviz(&["path", trace, "--pid", &pid, "--json", "-q"]).success().text();
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let used = json["cpus"].as_array().expect("CPUs").len();
    let observed: BTreeSet<Cpu> = sim.events.iter().map(|event| event.cpu).collect();
    assert!(used > 1 && used < 64 && observed.len() > 200, "{used} of {}", observed.len());
    schedviz(&["path", trace, "--pid", &pid, "-q", "-o", to_svg]).success();
    let figure = std::fs::read_to_string(&svg).expect("a figure");
    assert!(figure.contains("CPUs that the path does not use have no lanes"), "{}", &figure[..4_000.min(figure.len())]);
    schedviz(&["path", trace, "--pid", &pid, "-q", "-o", to_pdf]).success();
    let bytes = std::fs::metadata(&pdf).expect("a figure").len();
    assert!(bytes < 100_000, "{bytes}");
    // Lanes that were asked for are drawn.
    schedviz(&["path", trace, "--pid", &pid, "-q", "--cpus", "0-255", "-o", to_svg]).success();
    let figure = std::fs::read_to_string(&svg).expect("a figure");
    assert!(!figure.contains("have no lanes"));
}

#[test]
fn the_path_of_a_recording_with_missing_switches_goes_on() {
    let Some(traces) = std::env::var_os("SCHEDVIZ_TRACES") else { return };
    let file = std::path::Path::new(&traces).join("../cases/turn3/build-path.dat");
    let Ok(trace) = Trace::open(&file, parse::Options::default()) else { return };
    let path = path_of(&events(&trace), Some(397));
    tiles("build-path", &path);
    // It was 59.5 %, most of it before the first gap on the way back.
    let (unknown, total) = (path.times.unknown_ns, path.times.total());
    assert!(
        unknown * 100 < total * 20 && path.gaps > 10 && !path.is_untrusted,
        "{unknown} of {total} in {} gaps",
        path.gaps
    );
    assert!(path.longest_gap_ns < 500_000_000, "{}", path.longest_gap_ns);
}

#[test]
fn the_task_at_the_end_is_found_by_its_name() {
    // The same events without exits: the end is the last switch-out.
    let sleep = PrevState::asleep(1);
    let named = |pid: i32| TaskRef { comm: Comm::new(b"worker"), ..task(pid) };
    let events = [
        at(0, 0, 5, Event::Other { id: 1 }),
        at(0, 1, 6, Event::Other { id: 1 }),
        at(50, 0, 5, Event::Switch { prev: named(5), state: PrevState::DEAD, next: idle() }),
        at(60, 1, 6, Event::Switch { prev: named(6), state: PrevState::DEAD, next: task(8) }),
        at(80, 1, 8, Event::Switch { prev: task(8), state: sleep, next: idle() }),
    ];
    let options = Options { command: Some(Comm::new(b"worker")), ..Options::default() };
    let run = |events: &[SchedEvent]| {
        let outcome = Pass::over(events).run(|| CriticalPath::new(options));
        outcome.unwrap_or_else(|never| match never {}).output
    };
    let path = run(&events);
    assert_eq!((path.task.map(|task| task.pid), path.to_ns, path.ends_with_exit), (Some(Pid(6)), Ts(60), true));
    assert_eq!(pieces(&path), [(SegmentKind::Running, 6, Some(1), 0, 60)]);
    let alive = run(&events[..2]);
    assert_eq!(alive.task, None, "no event gives their name");

    let perf = fixture("perf-z.data");
    let perf = perf.to_str().expect("a path");
    for arguments in [&["path", perf, "--json", "-q"][..], &["path", perf, "--comm", "hackbench", "--json", "-q"]] {
        let json: serde_json::Value = serde_json::from_str(&schedviz(arguments).success().text()).expect("JSON");
        // The last sched_process_exit of a hackbench.
        assert_eq!((&json["task"]["pid"], &json["to_ns"]), (&384.into(), &35_619_633_474_u64.into()), "{arguments:?}");
    }
    let refused = schedviz(&["path", perf, "--comm", "nosuch"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("--comm"), "{}", refused.stderr);
    let folder = scratch("path-by-name");
    let trace = folder.join("no-exec.dat");
    std::fs::write(&trace, TraceBuilder::default().events(&events).build()).expect("written");
    let refused = schedviz(&["path", trace.to_str().expect("a path")]);
    for words in ["--pid", "--comm", "sched_process_fork", "sched_process_exec", "sched_process_exit"] {
        assert!(refused.code == Some(1) && refused.stderr.contains(words), "{words}: {}", refused.stderr);
    }
}

/// A search by name beside one by exec costs as much again, and its answer is used only where the other has none.
#[test]
fn the_search_by_name_does_nothing_where_an_exec_shows_the_command() {
    let file = fixture("perf-z.data");
    let perf = recordings::open(&file, parse::Options::default()).expect("a readable recording");
    let shown = events(&perf);
    let is_exec = |event: &SchedEvent| matches!(event.kind, Event::Exec { .. });
    let hidden: Vec<SchedEvent> = shown.iter().copied().filter(|event| !is_exec(event)).collect();
    let paths = |events: &[SchedEvent]| {
        let searches = || path::searches(Some(Comm::new(b"hackbench")), Ts(0), 5, None);
        let found = Pass::over(events).run(searches).unwrap_or_else(|never| match never {}).output;
        (found.0.task.map(|task| task.pid), found.1.expect("a second search").task.map(|task| task.pid))
    };
    assert_eq!([paths(&shown), paths(&hidden)], [(Some(Pid(384)), None), (None, Some(Pid(384)))]);
}

#[test]
fn the_command_line_of_perf_names_the_task() {
    let Some(traces) = std::env::var_os("SCHEDVIZ_TRACES") else { return };
    let folder = std::path::Path::new(&traces).join("extra/linux-6.12-c8-n2/perf");
    for (name, command) in [("both-hackbench", "hackbench"), ("both-spmd", "spmd")] {
        let (perf, whole) = (folder.join(format!("{name}.data")), folder.join(format!("{name}.dat")));
        if !perf.exists() || !whole.exists() {
            continue;
        }
        let text = schedviz(&["path", perf.to_str().expect("a path"), "--json", "-q"]).success().text();
        let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        // trace-cmd recorded the exits of the same run.
        let trace = Trace::open(&whole, parse::Options::default()).expect("a readable recording");
        let all = path_of(&events(&trace), None);
        let options = Options { command: Some(Comm::new(command.as_bytes())), ..Options::default() };
        let pass = Pass::over(&events(&trace)[..]).run(|| CriticalPath::new(options));
        let by_name = pass.unwrap_or_else(|never| match never {}).output;
        let pid = by_name.task.expect("a task").pid;
        assert_eq!(json["task"]["pid"], pid.0, "{name}: {:?}", all.task);
        assert_eq!(json["ends_with_exit"], true, "{name}");
    }
}

#[test]
fn the_command_prints_the_path() {
    let file = fixture("hackbench.dat");
    let file = file.to_str().expect("a path");
    let text = schedviz(&["path", file]).success().text();
    for words in ["on the critical path", "while a CPU idled", "by task", "by CPU", "longest queued segments"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let long: Vec<&str> =
        text.lines().filter(|line| line.chars().count() > 75 && !line.contains("dat2graph")).collect();
    assert!(long.is_empty(), "{long:?}");
    let json = schedviz(&["path", file, "--json"]).success();
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!((&json["schema"], &json["ends_with_exit"]), (&"schedviz/path/1".into(), &true.into()));
    let refused = schedviz(&["path", file, "--pid", "999999"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("no such task"), "{}", refused.stderr);
    let part = schedviz(&["path", file, "--min", "0.2", "--max", "0.4", "--json"]).success();
    let part: serde_json::Value = serde_json::from_slice(&part.stdout).expect("JSON");
    let length = part["to_ns"].as_u64().expect("a time") - part["from_ns"].as_u64().expect("a time");
    assert_eq!(length, 200_000_000);
}

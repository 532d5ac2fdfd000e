//! The stepper: its states are the simulator's run queues, whichever way one comes to them.

use crate::support::{fixture, fixtures_and_part, golden, schedviz, unwrapped};
use parse::Trace;
use sched::{Cpu, Current, EventKind, EventSource, Replay, SchedEvent, SchedState, Ts};
use std::collections::BTreeSet;
use testkit::{Rng, Simulation, TraceBuilder, Truth, is_stopper};

/// The differences between the state and the truth, for the tasks and CPUs that have events.
fn difference(
    state: &SchedState,
    truth: &Truth,
    tasks: &BTreeSet<i32>,
    cpus: &BTreeSet<u32>,
    ordered: bool,
) -> Option<String> {
    cpus.iter().map(|cpu| Cpu(*cpu)).find_map(|cpu| {
        let known = |pid: &i32| tasks.contains(pid);
        let ours: Vec<i32> = state.waiting(cpu).map(|t| t.pid.0).filter(known).collect();
        let mut true_queue: Vec<i32> = truth.queues[cpu.index()].iter().copied().filter(known).collect();
        let mut queue = ours.clone();
        if !ordered {
            queue.sort_unstable();
            true_queue.sort_unstable();
        }
        let none = if state.current(cpu) == Current::Offline { Truth::OFFLINE } else { 0 };
        let current = state.running(cpu).map_or(none, |t| t.pid.0);
        ((current, &queue) != (truth.current[cpu.index()], &true_queue))
            .then(|| format!("CPU {cpu}: {current} | {ours:?}, in truth {truth:?}"))
    })
}

/// Goes forward, back, and to and fro at random.
fn walk<S: EventSource>(replay: &mut Replay<S>, run: &Simulation, seed: u64)
where
    S::Error: std::fmt::Debug,
{
    let (mut tasks, cpus) = run.witnessed();
    // Whether a task waited that is only ever migrated is unknown.
    let moved = |kind: &EventKind| if let EventKind::Migrate { task, .. } = kind { Some(task.pid.0) } else { None };
    let moves = run.events.iter().filter(|e| moved(&e.kind).is_some()).cloned().collect();
    let others = run.events.iter().filter(|e| moved(&e.kind).is_none()).cloned().collect();
    let of = |events| Simulation { events, ..run.clone() }.witnessed().0;
    let (moves, others): (BTreeSet<i32>, BTreeSet<i32>) = (of(moves), of(others));
    tasks.retain(|pid| others.contains(pid) || !moves.contains(pid));
    let n = run.events.len() as u64;
    assert_eq!(replay.total(), n, "seed {seed}");
    // The tasks that waited from the start came in an unseen order; when they have all left,
    // the order of every queue is known.
    let first = run.initial.queues.iter().flatten().copied().collect::<BTreeSet<i32>>();
    let mut rng = Rng::new(seed);
    let jumps: Vec<u64> = (0..200).map(|_| rng.below(n as usize + 1) as u64).collect();
    for step in (0..=n).chain((0..=n).rev()).chain(jumps) {
        replay.go(step).expect("a step");
        let truth = if step == 0 { &run.initial } else { &run.truth[step as usize - 1] };
        // A stopper does not wait its turn.
        let ordered = !truth.queues.iter().flatten().any(|pid| first.contains(pid) || is_stopper(*pid));
        if let Some(what) = difference(replay.state(), truth, &tasks, &cpus, ordered) {
            panic!("seed {seed}, step {step}: {what}");
        }
        assert_eq!(replay.event(), run.events.get(step as usize), "seed {seed}, step {step}");
    }
}

#[test]
fn every_step_shows_the_true_run_queues() {
    for seed in crate::support::seeds(60) {
        let run = Simulation::any(seed, 1 + (seed % 9) as u32, 300);
        // Few checkpoints that lie close: they are thinned again and again, and all jumps cross some.
        let mut replay = Replay::with(run.events.as_slice(), 5, 8, || ()).unwrap_or_else(|never| match never {});
        assert!(replay.checkpoints() > 2 && replay.checkpoints() <= 8, "seed {seed}");
        walk(&mut replay, &run, seed);
    }
}

#[test]
fn violations_are_those_among_the_cpus_that_are_looked_at() {
    use sched::kthread::is_bound;
    use sched::{ChosenCpus, Cpu, Load};
    let mut by_bound_alone = 0;
    let mut among_some = 0;
    for seed in crate::support::seeds(40) {
        let run = Simulation::any(seed, 4 + (seed % 5) as u32, 300);
        let events = run.events.as_slice();
        for chosen in [ChosenCpus::default(), ChosenCpus::only([Cpu(0), Cpu(2)])] {
            let watch = || workcons::ViolationSteps::new(&chosen, None);
            let mut replay = Replay::watching(events, watch).unwrap_or_else(|never| match never {});
            let mut begun = Vec::new();
            let mut before = false;
            for step in 0..=replay.total() {
                replay.go(step).unwrap_or_else(|never| match never {});
                let state = replay.state();
                let has = |cpu: &Cpu, load| chosen.has(*cpu) && state.load(*cpu) == load;
                let some_idle = state.observed().any(|cpu| has(&cpu, Load::Idle));
                let mut overloaded = state.observed().filter(|cpu| has(cpu, Load::Overloaded)).peekable();
                let some_wait = overloaded.peek().is_some();
                let violated =
                    some_idle && overloaded.any(|cpu| state.waiting(cpu).any(|task| !is_bound(task.comm, cpu)));
                by_bound_alone += u32::from(some_idle && some_wait && !violated);
                assert_eq!(workcons::is_violated_in(state, &chosen, None), violated, "seed {seed}, step {step}");
                begun.extend((violated && !before).then_some(step));
                before = violated;
            }
            replay.go(0).unwrap_or_else(|never| match never {});
            let next = |replay: &mut Replay<&[sched::SchedEvent]>| {
                let next = replay.next_violation()?;
                replay.go(next).unwrap_or_else(|never| match never {});
                Some(next)
            };
            let found: Vec<u64> = std::iter::from_fn(|| next(&mut replay)).collect();
            begun.retain(|step| *step > 0);
            assert_eq!(found, begun, "seed {seed}, {chosen:?}");
            among_some += if chosen.are_all() { 0 } else { found.len() };
        }
    }
    assert!(among_some > 20 && by_bound_alone > 0, "{among_some}, {by_bound_alone}");
}

/// The unit tests of `Replay` walk over slices; here checkpoints resume within the pages of a file, with threads.
#[test]
fn a_file_is_read_from_the_middle() {
    for seed in crate::support::seeds(8) {
        let run = Simulation::any(seed, 4, 3000);
        let bytes = TraceBuilder::default().events(&run.events).build();
        let trace = Trace::from_bytes(bytes, parse::Options { threads: 2, ..Default::default() }).expect("a trace");
        let mut replay = Replay::with(trace.events().expect("events"), 200, 64, || ()).expect("a pass");
        assert!(replay.checkpoints() > 4, "seed {seed}");
        walk(&mut replay, &run, seed);
    }
}

#[test]
fn jumps_in_recordings_come_to_what_a_pass_comes_to() {
    for path in fixtures_and_part(3) {
        let trace = Trace::open(&path, parse::Options::default()).expect("a readable recording");
        let Ok(events) = trace.events() else { continue };
        let mut replay = Replay::with(events, 500, 16, || ()).expect("a pass");
        let n = replay.total();
        // Straight on, the state is that of one pass; each place is looked at again after a jump.
        let places: Vec<u64> = (0..12).map(|k| n * k / 11).collect();
        let picture = |replay: &Replay<_>| {
            let cpus = replay.state().observed().map(|cpu| (cpu, None)).collect();
            let options = stepper::Options {
                zero: Ts(0),
                cpus,
                recorded: sched::replay::RecordedSteps::all(n),
                ..Default::default()
            };
            stepper::Step::of(replay.at(), replay.state(), replay.event(), &options, &stepper::Plain)
        };
        let mut straight = Vec::new();
        for place in &places {
            for step in replay.at()..=*place {
                replay.go(step).expect("a step");
            }
            straight.push(picture(&replay));
        }
        for k in [7, 2, 11, 0, 5, 4, 10, 3, 9, 1, 8, 6] {
            replay.go(places[k]).expect("a jump");
            assert!(picture(&replay) == straight[k], "{}, step {}", path.display(), places[k]);
        }
    }
}

#[test]
fn steps_are_as_they_were() {
    let trace = fixture("hackbench.dat");
    let trace = trace.to_str().expect("a path");
    let machine = ["--topology", "tests/fixtures/hackbench.cpus.txt"];
    let step = |more: &[&str]| {
        let arguments = [&["stepper", trace, "-q"], &machine[..], more].concat();
        schedviz(&arguments).success().text()
    };
    let moves = ["--at", "0.5", "--events", "sched_migrate_task"];
    golden("stepper-move.svg", &step(&[&moves[..], &["-o", "-", "--format", "svg"]].concat()));
    golden("stepper-moves.txt", &step(&[&moves[..], &["--back", "1", "--steps", "1", "--text"]].concat()));
    golden("stepper-start.json", &step(&["--json", "--cpus", "0,4"]));
    let folder = crate::support::scratch("stepper-text");
    let (to_file, printed) = (folder.join("step.txt"), step(&["--text"]));
    assert_eq!(step(&["--text", "-o", to_file.to_str().expect("a path")]), "", "it goes to the file");
    assert_eq!(std::fs::read_to_string(to_file).expect("written"), printed);
    let refused = schedviz(&["stepper", trace, "--tui"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("--text"), "{}", refused.stderr);
}

#[test]
fn steps_are_within_the_window() {
    let trace = fixture("hackbench.dat");
    let trace = trace.to_str().expect("a path");
    let run = |more: &[&str]| schedviz(&[&["stepper", trace, "-q", "--json"], more].concat());
    let times = |more: &[&str]| -> Vec<u64> {
        let document: serde_json::Value = serde_json::from_slice(&run(more).success().stdout).expect("JSON");
        let steps = document["steps"].as_array().expect("steps");
        steps.iter().map(|step| step["in_trace_ns"].as_u64().expect("a time")).collect()
    };
    let window = ["--min", "500ms", "--max", "502ms"];
    let all = times(&[&window[..], &["--steps", "1900"]].concat());
    assert!(all.len() > 5 && all.iter().all(|at| (500_000_000..=502_000_000).contains(at)), "{all:?}");
    assert_eq!(times(&window), all[..1], "it begins with the window");
    assert_eq!(times(&[&window[..], &["--at", "502ms", "--back", "1900"]].concat()), all);
    let switches = ["--events", "sched_switch", "--steps", "900"];
    let some = times(&[&window[..], &switches].concat());
    assert!(!some.is_empty() && some.len() < all.len() && some.iter().all(|at| all.contains(at)), "{some:?}");
    assert_eq!(times(&[&window[..], &switches, &["--at", "502ms", "--back", "900"]].concat()), some);
    for (arguments, expected) in [
        (&["--at", "0.4"][..], "outside of the window"),
        (&["--events", "sched_process_exec"], "no such event from 0.500000000 s on, up to --max"),
    ] {
        let refused = run(&[&window[..], arguments].concat());
        assert!(refused.code == Some(1) && refused.stderr.contains(expected), "{}", refused.stderr);
    }
}

#[test]
fn an_event_is_of_its_system() {
    let mut run = Simulation::run(3, 2, 400);
    let middle = run.events[run.events.len() / 2];
    let probe = 900;
    run.events.insert(run.events.len() / 2 + 1, SchedEvent { kind: EventKind::Other { id: probe }, ..middle });
    let layout = TraceBuilder::default().layout();
    let formats = vec![("probes".to_owned(), layout.format(probe, "sched_switch", ""))];
    let folder = crate::support::scratch("stepper-system");
    let trace = folder.join("probe.dat");
    std::fs::write(&trace, TraceBuilder { formats, ..TraceBuilder::default() }.events(&run.events).build())
        .expect("written");
    let trace = trace.to_str().expect("a path");
    let steps = |events: &str| {
        let text =
            schedviz(&["stepper", trace, "-q", "--json", "--events", events, "--steps", "1900"]).success().text();
        let document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        document["steps"].as_array().expect("steps").len()
    };
    let switches = run.events.iter().filter(|e| matches!(e.kind, EventKind::Switch { .. })).count();
    assert!(switches > 50);
    assert_eq!(steps("probes:sched_switch"), 1);
    assert_eq!(steps("sched:sched_switch"), switches);
    assert_eq!(steps("sched_switch"), switches + 1, "a name is one of any system");
}

#[test]
fn a_machine_of_256_cores_fits_a_page() {
    let run = Simulation::run(5, 256, 6000);
    let folder = crate::support::scratch("stepper-256");
    let trace = folder.join("large.dat");
    std::fs::write(&trace, TraceBuilder::default().events(&run.events).build()).expect("written");
    let machine: String =
        (0..256).map(|cpu| format!("cpu{cpu} socket={} core={cpu} smt={cpu} llc={}\n", cpu / 64, cpu / 16)).collect();
    let topology = folder.join("machine.txt");
    std::fs::write(&topology, machine).expect("written");
    let [trace, topology] = [&trace, &topology].map(|p| p.to_str().expect("a path"));
    let middle = format!("@{}ns", run.events[run.events.len() / 2].ts.0);
    let output = ["stepper", trace, "--topology", topology, "--at", &middle, "-q", "-o", "-", "--format", "svg"];
    let svg = schedviz(&output).success().text();
    let height = svg.split("height=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default();
    let height: f64 = height.trim_end_matches("pt").parse().expect("a height");
    assert!(height <= 595.0, "{height} points are more than a page is high");
    let observed = run.witnessed().1;
    assert!(observed.len() > 200);
    for cpu in observed {
        assert!(svg.contains(&format!(">{cpu}</text>")), "CPU {cpu} is not on the page");
    }
}

#[test]
fn the_page_of_a_numa_move_shows_where_to() {
    // By trace-cmd: pid=899 src_cpu=3 src_nid=0 dst_cpu=4 dst_nid=1.
    let trace = fixture("marker-pairs.dat");
    let trace = trace.to_str().expect("a path");
    let command = ["stepper", trace, "-q", "--events", "sched_move_numa", "--steps", "1"];
    let text = schedviz(&[&command[..], &["--text"]].concat()).success().text();
    let text = unwrapped(&text);
    let words = "next: sched_move_numa: NUMA balancing wants to move phase-2 899 from CPU";
    for places in ["3 (node 0) to CPU 4 (node 1)", "4 (node 1) to CPU 0 (node 0)"] {
        assert_eq!(text.matches(&format!("{words} {places}")).count(), 1, "{text}");
    }
    assert_eq!(text.matches("next: ").count(), 2);
    let json = schedviz(&[&command[..], &["--json"]].concat()).success().stdout;
    let document: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
    let event = &document["steps"][0]["event"];
    assert_eq!((&event["from"], &event["to"], &event["wanted"]), (&3.into(), &4.into(), &true.into()));
    let page = ["stepper", trace, "-q", "--events", "sched_move_numa", "-o", "-", "--format", "svg"];
    assert!(schedviz(&page).success().text().contains("stroke=\"#c01020\" stroke-width=\"120\" stroke-dasharray"));
    // The mark in the lanes does as well: one dashed line in the legend, and two with a head each.
    let lanes =
        ["dat2graph", trace, "-q", "--events", "sched_move_numa,sched_stick_numa", "-o", "-", "--format", "svg"];
    let svg = schedviz(&lanes).success().text();
    let dashed: Vec<&str> = svg.lines().filter(|line| line.contains("stroke-dasharray")).collect();
    assert!(dashed.len() == 2 && dashed[1].matches('l').count() == 2, "{dashed:?}");
    assert!(svg.contains("sched:sched_move_numa (2)") && svg.contains("sched:sched_stick_numa (2)"));
    assert!(svg.contains("to the CPU where NUMA balancing wants the task"));
}

#[test]
fn an_instant_outside_of_the_trace_is_refused() {
    let trace = fixture("hackbench.dat");
    let trace = trace.to_str().expect("a path");
    for at in ["100", "-1", "@1"] {
        let refused = schedviz(&["stepper", trace, "-q", "--text", "--at", at]);
        let expected = "outside of the trace, which is 1.156253399 s long";
        assert!(refused.code == Some(1) && refused.stdout.is_empty(), "--at {at}");
        assert!(refused.stderr.contains(expected), "--at {at}: {}", refused.stderr);
    }
    schedviz(&["stepper", trace, "-q", "--text", "--at", "1.156253399"]).success();
}

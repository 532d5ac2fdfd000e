//! Figures: the same from every way of reading, bounded by the page, and as they were.

use crate::support::{fixture, golden, kept, recordings, root, schedviz, schedviz_in, seed};
use lanes::{LaneFold, Options, Timeline};
use parse::{Trace, Want};
use sched::analysis::RunTime;
use sched::{Cpu, EventIssue, EventKind, Pass, Pid, PrevState, SchedEvent, TaskRef, Ts, Window};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use testkit::{Rng, TraceBuilder};

fn options(from: Ts, to: Ts, cpus: &[Cpu]) -> Options {
    Options {
        from,
        to,
        zero: from,
        cpus: cpus.iter().map(|cpu| (*cpu, None)).collect(),
        all_cpus: Vec::new(),
        group_name: String::new(),
        marks: Vec::new(),
        frequency: false,
        coloring: lanes::Coloring::default(),
        groups: None,
        pictures: 1,
        siblings: Vec::new(),
    }
}

/// The drawing and the report of a lane, whichever way it was made.
fn comparable(lane: &lanes::Lane) -> String {
    let tasks: Vec<_> = lane.tasks.iter().map(|t| (t.pid, t.comm, t.ns)).collect();
    format!("{:?} {:?} {tasks:?}", lane.report, lane.pieces)
}

#[test]
fn lanes_of_single_cpus_are_those_of_the_merged_state() {
    let mut compared = 0;
    for path in recordings() {
        let trace = Trace::open(&path, parse::Options::default()).expect("a readable recording");
        if trace.has_time().is_err() {
            continue;
        }
        let (start, end) = trace.extent().expect("events");
        let cpus = trace.observed();
        let third = end.since(start).0 as i64 / 3;
        for (from, to) in [(start, end), (Ts(start.0 + third), Ts(end.0 - third))] {
            let options = options(from, to, &cpus);
            let window = Window { from: Some(from), to: Some(to) };
            let merged = Pass::over(trace.events().expect("events")).window(window).run(|| Timeline::new(&options));
            let merged = merged.expect("a pass");
            // Two CPUs that claim the same task contradict each other; each alone is consistent.
            if merged.diagnostics.count(EventIssue::RunningElsewhere) > 0 || trace.selected_buffers().len() > 1 {
                continue;
            }
            let reader = trace.cpu_reader(Want::Switches).expect("a reader");
            for (cpu, theirs) in cpus.iter().zip(&merged.output) {
                let mut fold = LaneFold::new(*cpu, &options).with_names(&reader);
                reader.events(reader.buffers_of(*cpu)[0], *cpu, Some(from), &mut |event| {
                    if fold.apply(event, None) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
                });
                let mut ours = fold.finish().expect("a lane");
                // At the edge of a window both count an event once, but not in the same one.
                ours.report.switches = theirs.report.switches;
                ours.report.gaps = theirs.report.gaps;
                assert!(comparable(&ours) == comparable(theirs), "{}, CPU {cpu}, from {from:?}", path.display());
                compared += 1;
            }
        }
    }
    assert!(compared > 50, "only {compared} lanes compared");
}

/// Each has a state of its own then, and reads the same events, also when the pass is repeated for a task
/// that turns out late to have waited from the start.
#[test]
fn analyses_side_by_side_find_what_they_find_in_turn() {
    let mut repeated = 0;
    // Fixtures too: whichever are drawn, they are the same in every clone.
    for path in recordings().into_iter().filter(|path| seed("side by side", path).is_multiple_of(7)) {
        let with = |threads| parse::Options { threads, ..parse::Options::default() };
        let (one, three) = (Trace::open(&path, with(1)), Trace::open(&path, with(3)));
        let (one, three) = (one.expect("a readable recording"), three.expect("a readable recording"));
        if one.has_time().is_err() {
            continue;
        }
        let (start, end) = one.extent().expect("events");
        let third = end.since(start).0 as i64 / 3;
        let drawn = options(start, end, &one.observed());
        let latency = latency::Options { worst: 3, ..Default::default() };
        for window in [Window::default(), Window { from: Some(Ts(start.0 + third)), to: Some(Ts(end.0 - third)) }] {
            let found = |trace: &Trace| {
                let pass = Pass::over(trace.events().expect("events")).window(window).prologue(0);
                let outcome = pass
                    .run_side_by_side(|| (latency::Latency::new(&latency), RunTime::default(), Timeline::new(&drawn)));
                let outcome = outcome.expect("a pass");
                let (delays, times, lanes) = outcome.output;
                let delays = serde_json::to_string(&delays).expect("JSON");
                let lanes: Vec<String> = lanes.iter().map(comparable).collect();
                (delays, format!("{times:?} {:?}", outcome.diagnostics), lanes)
            };
            let in_turn = found(&one);
            repeated += usize::from(in_turn.1.contains("late-start"));
            assert!(in_turn == found(&three), "{}", path.display());
        }
    }
    assert!(repeated > 0, "no pass was repeated");
}

/// The second task has the colour of the first. The figure names the one that ran for long; the other ran for nothing that
/// shows, and would only make it doubtful.
#[test]
fn a_colour_is_listed_for_whom_it_shows() {
    let task = |pid: i32| TaskRef { pid: Pid(pid), prio: 120, comm: sched::Comm::new(b"work") };
    let switch = |ts, prev, next| {
        let kind = EventKind::Switch { prev: task(prev), state: PrevState::RUNNABLE, next: task(next) };
        SchedEvent { ts: Ts(ts), cpu: Cpu(0), pid: Pid(prev), flags: 0, kind }
    };
    let same = 20 + timeline::PALETTE.len() as i32;
    let times = |second: i64| {
        let (a, b, c) = (1_000_000, 1_000_000 + second, 1_000_100 + second);
        let events = [switch(0, 0, 20), switch(a, 20, same), switch(b, same, 21), switch(c, 21, 0)];
        let options = options(Ts(0), Ts(c), &[Cpu(0)]);
        let Ok(pass) = Pass::over(&events[..]).run(|| Timeline::new(&options));
        let legend = lanes::area_legend(&pass.output, &options, 14);
        legend.into_iter().map(|entry| entry.label).collect::<Vec<_>>()
    };
    assert_eq!(times(100), ["work 20 100.0 %", "work 21 0.0 %", "and 1 more, 0.0 %, in these colours"]);
    assert_eq!(times(1_000_000), ["work 20 50.0 %", &format!("work {same} 50.0 %"), "work 21 0.0 %"]);
}

#[test]
fn commands_that_run_longest_have_colours_of_their_own() {
    let paths = recordings();
    let paths = if paths.is_empty() { vec![fixture("hackbench.dat"), fixture("marker.dat")] } else { paths };
    for path in paths {
        let name = path.display();
        let samples = |threads| {
            let options = parse::Options { threads, ..Default::default() };
            Trace::open(&path, options).map_or_else(|error| panic!("{name}: {error}"), |t| t.sampled_commands())
        };
        let commands = samples(1);
        assert_eq!(commands, samples(2), "{name}");
        let mut coloring = lanes::Coloring::default();
        coloring.know(commands);
        let places: BTreeSet<usize> = coloring.commands.values().copied().collect();
        assert!(coloring.commands.len() > 1, "{name}");
        assert_eq!(places.len(), coloring.commands.len().min(timeline::PALETTE.len()), "{name}");
    }
    // A window changes no colour.
    let trace = fixture("hackbench.dat");
    let colors = |window: &[&str]| {
        let folder = crate::support::scratch("commands");
        let args = ["dat2graph", trace.to_str().expect("a path"), "--color-by", "command", "--json", "-o", "w.svg"];
        let ran = schedviz_in(&folder, &[&args, window].concat()).success().text();
        let report: serde_json::Value = serde_json::from_str(&ran).expect("JSON");
        let of = |task: &serde_json::Value| (task["command"].to_string(), task["color"].to_string());
        report["tasks"].as_array().expect("tasks").iter().map(of).collect::<BTreeSet<_>>()
    };
    let (all, some) = (colors(&[]), colors(&["--min", "0.1", "--max", "0.2"]));
    assert!(some.len() > 2 && some.is_subset(&all), "{some:?} of {all:?}");
}

/// Switches that follow one another at random on every CPU: nothing to merge, nothing to compress.
fn noise(cpus: u32, switches: usize) -> Vec<u8> {
    let mut rng = Rng::new(7);
    let task = |pid: i32| TaskRef { pid: Pid(pid), prio: 120, comm: sched::Comm::new(format!("t{pid}").as_bytes()) };
    let mut events = Vec::new();
    for cpu in 0..cpus {
        let (mut now, mut prev) = (1000, 0);
        for _ in 0..switches {
            now += 1 + rng.below(100_000) as i64;
            let next = if prev != 0 && rng.below(3) == 0 { 0 } else { 1 + cpu as i32 * 50 + rng.below(50) as i32 };
            let kind = EventKind::Switch { prev: task(prev), state: PrevState::RUNNABLE, next: task(next) };
            events.push(SchedEvent { ts: Ts(now), cpu: Cpu(cpu), pid: Pid(prev), flags: 0, kind });
            prev = next;
        }
    }
    TraceBuilder::default().events(&events).build()
}

/// Takes seconds: 8,000 switches on each of 64 CPUs are more than a page shows.
#[test]
fn a_figure_costs_what_its_page_costs() {
    let folder = crate::support::scratch("noise");
    let trace = folder.join("noise.dat");
    let mut sizes = Vec::new();
    for switches in [2_000, 8_000] {
        std::fs::write(&trace, noise(64, switches)).expect("written");
        let figure = folder.join("noise.pdf");
        schedviz(&["dat2graph", "-q", "-o", figure.to_str().expect("a path"), trace.to_str().expect("a path")])
            .success();
        sizes.push(std::fs::metadata(&figure).expect("a figure").len());
    }
    assert!(sizes.iter().all(|s| *s < 300_000), "{sizes:?}");
}

#[test]
fn figures_are_as_they_were() {
    let hackbench = fixture("hackbench.dat");
    let cpus = fixture("hackbench.cpus.txt");
    let v6 = fixture("hackbench-v6.dat");
    let v6_cpus = fixture("hackbench-v6.cpus.txt");
    let [hackbench, cpus, v6, v6_cpus] = [&hackbench, &cpus, &v6, &v6_cpus].map(|p| p.to_str().expect("a path"));
    for (name, arguments) in [
        ("dat2graph-window.svg", vec!["dat2graph", hackbench, "--topology", cpus, "--min", "200ms", "--max", "230ms"]),
        ("dat2graph-class.svg", vec!["dat2graph", v6, "--color-by", "class", "--max", "150ms", "--events", "sched:*"]),
        (
            "running-waiting.svg",
            vec!["running-waiting", hackbench, "--forked", "--per-cpu", "--max", "0.2", "--topology", cpus],
        ),
        ("running-waiting-llc.svg", vec!["running-waiting", v6, "--per", "llc", "--max", "0.2", "--topology", v6_cpus]),
        (
            "dat2graph-target.svg",
            vec!["dat2graph", hackbench, "--target", "rcu_preempt", "--max", "0.05", "--cpus", "4-6"],
        ),
        (
            "workcons-hackbench.svg",
            vec![
                "workcons",
                "tests/fixtures/hackbench.dat",
                "--topology",
                "tests/fixtures/hackbench.cpus.txt",
                "--min",
                "0.5",
                "--max",
                "0.65",
            ],
        ),
        (
            "workcons-groups.svg",
            vec![
                "workcons",
                "--group",
                "a=tests/fixtures/hackbench*.dat",
                "--group",
                "b=tests/fixtures/spmd-plus1.dat",
            ],
        ),
    ] {
        let mut arguments = arguments;
        arguments.extend(["-q", "-o", "-", "--format", "svg"]);
        let output = schedviz(&arguments).success();
        golden(name, &String::from_utf8(output.stdout).expect("text"));
    }
}

#[test]
fn numbers_are_as_they_were() {
    let mask = fixture("mask.dat");
    let mask = mask.to_str().expect("a path");
    golden("info-mask.txt", &schedviz(&["info", mask]).success().text());
    golden("info-mask.json", &schedviz(&["info", "--json", mask]).success().text());
    golden("dat2graph-mask.json", &schedviz(&["dat2graph", "--json", mask, "--max", "100ms"]).success().text());
    let tsc = fixture("clock-x86-tsc.dat");
    golden("workcons-mask.txt", &schedviz(&["workcons", "-q", mask]).success().text());
    golden("info-tsc.txt", &schedviz(&["info", tsc.to_str().expect("a path")]).success().text());
}

/// Takes seconds: threads meet in another order in each run, and each format is written by its own code.
#[test]
fn the_number_of_threads_changes_no_byte() {
    let trace = fixture("hackbench-7.2.dat");
    let trace = trace.to_str().expect("a path");
    for (command, format) in [
        ("dat2graph", "pdf"),
        ("dat2graph", "svg"),
        ("dat2graph", "png"),
        ("dat2graph", "json"),
        ("running-waiting", "pdf"),
        ("running-waiting", "csv"),
        ("workcons", "pdf"),
        ("events", "csv"),
    ] {
        let bytes = |threads| {
            schedviz(&[command, trace, "-q", "-o", "-", "--format", format, "--threads", threads]).success().stdout
        };
        let one = bytes("1");
        assert!(!one.is_empty() && one == bytes("2") && one == bytes("7"), "{command}, {format}");
    }
    let numbers = |threads| schedviz(&["workcons", trace, "--json", "--threads", threads]).success().stdout;
    assert!(numbers("1") == numbers("3"));
    let list = |threads| {
        // It ends in the middle of a batch, and of what a thread takes at a time.
        schedviz(&["events", trace, "--list", "--min", "0.3", "--max", "0.9", "--threads", threads]).success().text()
    };
    let one = list("1");
    assert!(one.lines().count() > 4096 && one == list("2") && one == list("7"));
}

#[test]
fn text_in_a_pdf_is_text() {
    let trace = fixture("hackbench.dat");
    let pdf =
        schedviz(&["dat2graph", trace.to_str().expect("a path"), "-q", "-o", "-", "--format", "pdf"]).success().stdout;
    let has = |what: &[u8]| pdf.windows(what.len()).any(|w| w == what);
    assert!(has(b"/BaseFont /Helvetica") && has(b"/WinAnsiEncoding"));
    assert!(!has(b"FontFile") && !has(b"CreationDate"), "no font inside, no date");
}

#[test]
fn frequencies_get_a_band_and_interrupts_a_class() {
    let two =
        "\tfield:u32 state;\toffset:8;\tsize:4;\tsigned:0;\n\tfield:u32 cpu_id;\toffset:12;\tsize:4;\tsigned:0;\n";
    let layout = TraceBuilder::default().layout();
    let format = |id, name, fields| layout.format(id, name, fields);
    let formats = vec![
        ("power".to_owned(), format(700, "cpu_frequency", two)),
        ("irq".to_owned(), format(701, "irq_handler_entry", "")),
        ("irq".to_owned(), format(702, "irq_handler_exit", "")),
    ];
    let b = TraceBuilder { formats, ..TraceBuilder::default() };
    let mut ring = b.ring();
    let task = TaskRef { pid: Pid(7), prio: 120, comm: sched::Comm::new(b"make") };
    let idle = TaskRef { pid: Pid(0), prio: 120, comm: sched::Comm::new(b"swapper/0") };
    let switch = |ts, prev, next, ring: &mut testkit::Ring| {
        let kind = EventKind::Switch { prev, state: PrevState::asleep(1), next };
        let event = SchedEvent { ts: Ts(ts), cpu: Cpu(0), pid: prev.pid, flags: 0, kind };
        ring.event(ts as u64, &layout.payload(&event).expect("a switch"));
    };
    let bare = |id| layout.bare(id, 7);
    let frequency = |khz: u32| [layout.bare(700, 7), khz.to_le_bytes().to_vec(), vec![0; 4]].concat();
    switch(1_000, idle, task, &mut ring);
    ring.event(2_000, &frequency(1_000_000));
    ring.event(300_000, &bare(701));
    ring.event(310_000, &bare(701));
    ring.event(320_000, &bare(702));
    ring.event(400_000, &bare(702));
    ring.event(500_000, &frequency(3_000_000));
    switch(1_000_000, task, idle, &mut ring);
    let mut b = b;
    let pages = vec![(0, ring.finish())];
    b.buffers.push(testkit::Buffer { name: String::new(), clock: "local".into(), page_size: 0, cpus: pages });
    let folder = crate::support::scratch("frequency");
    let trace = folder.join("frequency.dat");
    std::fs::write(&trace, b.build()).expect("written");
    let trace = trace.to_str().expect("a path").to_owned();
    let svg =
        schedviz(&["dat2graph", &trace, "-q", "-o", "-", "--format", "svg", "--frequency", "--color-by", "class"])
            .success()
            .text();
    golden("dat2graph-frequency.svg", &svg.replace(&trace, "TRACE"));
    // By name they are found as any other event is.
    let marked = schedviz(&["dat2graph", &trace, "--json", "--events", "irq:*"]).success().text();
    let marked: serde_json::Value = serde_json::from_str(&marked).expect("JSON");
    let counted =
        ["entry", "exit"].map(|way| serde_json::json!({"event": format!("irq:irq_handler_{way}"), "count": 2}));
    assert_eq!(marked["events"], serde_json::json!(counted));
    let stepped = ["stepper", &trace, "-q", "--text", "--events", "irq:irq_handler_exit", "--steps", "9"];
    let stepped = schedviz(&stepped).success().text();
    assert_eq!(stepped.matches("next: irq_handler_exit: CPU 0 leaves an interrupt handler").count(), 2, "{stepped}");
    // In a window without a change the frequency in force counts, as dat2graph draws it.
    let specification = folder.join("frequency.toml");
    let series =
        "title = \"f\"\n[[series]]\nname = \"f\"\nevent = \"power:cpu_frequency\"\nvalue = \"state\"\nhold = true";
    std::fs::write(&specification, series).expect("written");
    let specification = specification.to_str().expect("a path");
    for (window, expected) in [(["100us", "400us"], (0, 1e6, 1e6)), (["300us", "699us"], (1, 2e6, 3e6))] {
        let plot = ["plot", specification, &trace, "--json", "-q", "--min", window[0], "--max", window[1]];
        let report: serde_json::Value = serde_json::from_slice(&schedviz(&plot).success().stdout).expect("JSON");
        let line = &report["series"][0]["lines"][0];
        assert_eq!((line["count"].as_i64(), line["max"].as_f64()), (Some(expected.0), Some(expected.2)), "{report}");
        // The change at 499 us from the start divides the second window in the middle.
        assert!((line["mean"].as_f64().expect("a mean") - expected.1).abs() < 1e4, "{report}");
    }
    assert!(svg.contains("GHz") && svg.contains("other tasks"));
}

#[test]
fn the_figures_of_the_documents_are_what_the_commands_at_their_feet_draw() {
    let mut drawn = 0;
    for file in std::fs::read_dir(root().join("docs")).expect("the documents").flatten() {
        let name = format!("docs/{}", file.file_name().to_string_lossy());
        if !name.ends_with(".svg") {
            continue;
        }
        let figure = std::fs::read_to_string(file.path()).expect("a figure");
        let command = figure.rsplit(">schedviz ").next().and_then(|rest| rest.split('<').next()).expect("a command");
        // That of the ten recordings, which are not in the repository.
        if command.contains('*') {
            continue;
        }
        let words: Vec<&str> = command.split(' ').chain(["-q", "-o", "-", "--format", "svg"]).collect();
        // The command has the names of files alone.
        kept(&name, &schedviz_in(&root().join("tests/fixtures"), &words).success().text());
        drawn += 1;
    }
    assert!(drawn >= 5, "{drawn}");
}

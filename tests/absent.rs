//! Events that were asked for and do not occur, and frequencies that change outside of the window.

use crate::support::{fixture, schedviz, schedviz_in, scratch};
use sched::{Comm, Cpu, EventKind, Pid, PrevState, SchedEvent, TaskRef, Ts};
use testkit::{Buffer, TraceBuilder};

/// Adds a format of this event to a recording of hackbench's, in which it never occurs.
fn with_format(name: &str) -> TraceBuilder {
    let events = testkit::Simulation::run(3, 4, 400).events;
    let mut trace = TraceBuilder::default();
    trace.formats.push(("lb".into(), trace.layout().format(700, name, "")));
    trace.events(&events)
}

#[test]
fn events_that_never_occur_are_0_events() {
    let folder = scratch("absent");
    let file = folder.join("absent.dat");
    std::fs::write(&file, with_format("pull").build()).expect("written");
    let file = file.to_str().expect("a path");
    let row = |text: &str, name: &str| {
        let rows = text.lines().filter(|line| line.ends_with(name)).collect::<Vec<_>>();
        assert_eq!(rows.len(), 1, "{text}");
        rows[0].split_whitespace().next().map(str::to_owned)
    };
    let zero = Some("0".to_owned());
    for (asked, name) in [("lb:pull", "lb:pull"), ("lb:*", "lb:*"), ("pull,sched_process_exit", "lb:pull")] {
        let text = schedviz_in(&folder, &["events", file, "--events", asked]).success().text();
        assert_eq!(row(&text, name), zero, "{asked}");
        let json = schedviz_in(&folder, &["events", file, "--events", asked, "--json"]).success().text();
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        let kinds = json["kinds"].as_array().expect("kinds");
        assert!(kinds.iter().any(|kind| kind["name"] == name && kind["count"] == 0), "{json}");
        for command in ["events", "dat2graph"] {
            let svg = ["-o", "-", "--format", "svg"];
            let svg = schedviz_in(&folder, &[&[command, file, "--events", asked][..], &svg].concat()).success();
            let label = format!("{name}: 0 events");
            assert!(String::from_utf8_lossy(&svg.stdout).contains(&label), "{command} {asked}");
            assert!(command == "events" || svg.stderr.contains(&label), "{}", svg.stderr);
        }
    }
    // An event that occurs in the trace, but not in the window.
    let text = schedviz_in(&folder, &["events", file, "--events", "sched_switch", "--min", "0", "--max", "1ns"])
        .success()
        .text();
    assert_eq!(row(&text, "sched:sched_switch"), zero);
    let text = schedviz_in(&folder, &["events", file, "--events", "sched_switch", "--match", "moves=(?<n>[0-9]+)"])
        .success()
        .text();
    assert_eq!(row(&text, "--match moves=(?<n>[0-9]+)"), zero);
    assert_ne!(row(&text, "sched:sched_switch"), zero, "what does not match is counted all the same");
    let text =
        schedviz_in(&folder, &["events", file, "--events", "sched_switch", "--match", "(?<n>==>)"]).success().text();
    assert!(!text.contains("--match"), "{text}");
}

/// CPU 1 changes the frequency of CPU 0 long before the window, and nothing changes in it.
#[test]
fn the_frequency_in_force_at_the_start_of_a_window_is_looked_up() {
    let fields =
        "\tfield:u32 state;\toffset:8;\tsize:4;\tsigned:0;\n\tfield:u32 cpu_id;\toffset:12;\tsize:4;\tsigned:0;\n";
    let mut trace = TraceBuilder::default();
    let layout = trace.layout();
    trace.formats.push(("power".into(), layout.format(700, "cpu_frequency", fields)));
    let frequency =
        |khz: u32, cpu: u32| [layout.bare(700, 7), khz.to_le_bytes().into(), cpu.to_le_bytes().into()].concat();
    let task = TaskRef { pid: Pid(7), prio: 120, comm: Comm::new(b"make") };
    let idle = TaskRef { pid: Pid(0), prio: 120, comm: Comm::new(b"swapper/0") };
    let ring = |cpu: u32, changes: &[(u64, u32, u32)]| {
        let mut ring = trace.ring();
        // A page for every few milliseconds, so that the window begins behind the unit of the changes.
        for ms in 0..4_000u64 {
            let ts = ms * 1_000_000;
            for (at, khz, target) in changes.iter().filter(|(at, ..)| *at == ms) {
                ring.event(at * 1_000_000, &frequency(*khz, *target));
            }
            let (prev, next) = if ms % 2 == 0 { (idle, task) } else { (task, idle) };
            let kind = EventKind::Switch { prev, state: PrevState::asleep(1), next };
            let event = SchedEvent { ts: Ts(ts as i64), cpu: Cpu(cpu), pid: prev.pid, flags: 0, kind };
            ring.event(ts + 1_000 * u64::from(cpu), &layout.payload(&event).expect("a switch"));
            if ms % 16 == 15 {
                ring.end_page();
            }
        }
        (cpu, ring.finish())
    };
    let changes = [(2, 1_000_000, 0), (3, 2_000_000, 0), (3_900, 3_000_000, 0)];
    let cpus = vec![ring(0, &[]), ring(1, &changes)];
    trace.buffers = vec![Buffer { name: String::new(), clock: "local".into(), page_size: 0, cpus }];
    let folder = scratch("absent-frequency");
    let file = folder.join("frequency.dat");
    std::fs::write(&file, trace.build()).expect("written");
    let drawn = |arguments: &[&str]| {
        let all =
            [&["dat2graph", file.to_str().expect("a path"), "--frequency", "-o", "-", "--format", "svg"], arguments];
        let ran = schedviz(&all.concat()).success();
        (String::from_utf8_lossy(&ran.stdout).into_owned(), ran.stderr)
    };
    let (svg, stderr) = drawn(&["--min", "3", "--max", "3.1", "--cpus", "0"]);
    assert!(svg.contains("2.00 GHz") && !stderr.contains("no band"), "{stderr}");
    let (svg, _) = drawn(&["--min", "3.95", "--max", "3.99"]);
    assert!(svg.contains("3.00 GHz") && !svg.contains("2.00"));
    let (svg, stderr) = drawn(&["--min", "0", "--max", "0.001"]);
    assert!(!svg.contains("GHz") && stderr.contains("no change before the end of the window"), "{stderr}");
    let switches = fixture("hackbench.dat");
    let ran = schedviz(&["dat2graph", switches.to_str().expect("a path"), "--frequency", "-o", "-", "--format", "svg"]);
    assert!(ran.success().stderr.contains("power:cpu_frequency was not recorded"));
}

//! `schedviz cut --events`: a recording with some of its events, as if no others had been recorded.

use crate::cut::{COMMANDS, cut, difference, outcome};
use crate::support::{fixture, schedviz_in, scratch};
use crate::trace_cmd::report;
use parse::Options;
use rayon::prelude::*;
use sched::{EventKind, SchedEvent};
use serde_json::Value;
use std::path::Path;
use testkit::{Simulation, TraceBuilder};

fn written(folder: &Path, name: &str, events: &[SchedEvent]) {
    std::fs::write(folder.join(name), TraceBuilder::default().events(events).build()).expect("a file");
}

/// The members of `info` that say what a recording has and lacks.
fn content(info: &Value) -> Value {
    let members = ["missing", "untrusted", "diagnostics", "events", "total_events", "lost", "cpus", "clock", "kernel"];
    members.iter().map(|member| info[*member].clone()).collect()
}

/// Reports about a recording whose wakeups, or migrations, were left out are those about one that never had them.
#[test]
fn events_that_are_left_out_were_never_recorded() {
    let folder = scratch("cut-events");
    // An event without a format has no name to be chosen by.
    let mut all = Simulation::run(7, 3, 1500).events;
    all.retain(|event| !matches!(event.kind, EventKind::Other { .. }));
    // Times count from the first event of all, so that each choice has it.
    let first = all.iter().position(|event| matches!(event.kind, EventKind::Switch { .. })).expect("a switch");
    all.drain(..first);
    written(&folder, "all.dat", &all);
    type Kept = fn(&EventKind) -> bool;
    let cases: [(&str, Kept); 3] = [
        ("sched:sched_switch,*:sched_wak*,*fork,*exec,*exit", |kind| !matches!(kind, EventKind::Migrate { .. })),
        ("sched:sched_sw*,sched_waking,sched_migrate_task,sched:sched_process_*", |kind| {
            !matches!(kind, EventKind::Wakeup { .. } | EventKind::WakeupNew { .. })
        }),
        ("sched:sched_switch", |kind| matches!(kind, EventKind::Switch { .. })),
    ];
    for (nth, (patterns, kept)) in cases.into_iter().enumerate() {
        let left: Vec<SchedEvent> = all.iter().filter(|event| kept(&event.kind)).copied().collect();
        assert!(left.len() < all.len() && kept(&all[0].kind), "{patterns}");
        let (never, sifted) = (format!("never-{nth}.dat"), format!("sifted-{nth}.dat"));
        written(&folder, &never, &left);
        let sifted = cut(&folder, Path::new("all.dat"), &sifted, &["--events".into(), patterns.into()]);
        let never = folder.join(never);
        let info = |path: &Path| content(&outcome(&folder, path, &["info"], &[]).expect("a document"));
        assert_eq!(difference("", &info(&never), &info(&sifted)), None, "{patterns}");
        // Each command has its turn in one case.
        let turns: Vec<_> = COMMANDS.iter().skip(nth).step_by(3).collect();
        let failed: Vec<String> = turns
            .into_par_iter()
            .filter_map(|command| {
                let told = match [&never, &sifted].map(|path| outcome(&folder, path, command, &[])) {
                    [Ok(a), Ok(b)] => difference("", &a, &b),
                    [Err(a), Err(b)] if a == b => None,
                    [a, b] => Some(format!("{a:?}\n{b:?}")),
                };
                told.map(|told| format!("{patterns} {command:?}: {told}"))
            })
            .collect();
        assert!(failed.is_empty(), "{}", failed.join("\n"));
        // In each other form as well.
        for form in ["txt", "pftrace"] {
            let convert = |from: &str, to: &str, more: &[&str]| {
                let arguments = [&["convert", from, "-o", to, "-q"], more].concat();
                schedviz_in(&folder, &arguments).success();
                std::fs::read(folder.join(to)).expect("a file")
            };
            let direct = convert("all.dat", &format!("direct-{nth}.{form}"), &["--events", patterns]);
            let expected = convert(&format!("never-{nth}.dat"), &format!("never-{nth}.{form}"), &[]);
            assert!(direct == expected, "{patterns}: {form}");
        }
    }
}

/// trace-cmd prints the lines of the chosen events as it prints them of the whole, for both versions, big-endian and 32-bit machines, and
/// instances.
#[test]
fn trace_cmd_prints_the_chosen_events_as_before() {
    let folder = scratch("cut-events-report");
    for name in ["hackbench-7.2.dat", "hackbench-v6.dat", "s390x-6.1.dat", "armhf-6.1.dat", "instance.dat"] {
        let Some(whole) = report(&fixture(name), &["-t", "-N"]) else { return };
        let is_chosen = |line: &&str| line.contains(" sched_switch: ") || line.contains(" sched_waking: ");
        let expected: Vec<&str> = whole.lines().filter(is_chosen).collect();
        assert!(expected.len() > 20, "{name}: {}", expected.len());
        let chosen = ["--events", "sched:sched_switch,sched_waking"].map(str::to_owned);
        let part = cut(&folder, &fixture(name), &format!("of-{name}"), &chosen);
        let found = report(&part, &["-t", "-N"]).expect("trace-cmd");
        let found: Vec<&str> = found.lines().filter(|line| line.contains(": ")).collect();
        let differs = expected.iter().zip(&found).find(|(a, b)| a != b);
        assert_eq!((differs, expected.len()), (None, found.len()), "{name}");
    }
}

/// A loss before an event that is left out is one before the next chosen event, of a recording of another format as well.
#[test]
fn losses_between_chosen_events_are_kept() {
    let folder = scratch("cut-events-lost");
    let line = |cpu: u32, time: u32, name: &str| {
        format!(" a-1 [{cpu:03}] d..2. 1.{time:09}: {name}: comm=a pid=7 prio=120 target_cpu=001\n")
    };
    let text = [
        line(1, 100, "sched_waking"),
        "CPU:1 [LOST 12 EVENTS]\n".to_owned(),
        line(1, 200, "sched_wakeup"),
        line(1, 300, "sched_waking"),
        line(2, 400, "sched_wakeup"),
        "CPU:2 [EVENTS DROPPED]\n".to_owned(),
        line(2, 500, "sched_waking"),
        line(2, 600, "sched_waking"),
    ];
    std::fs::write(folder.join("lost.txt"), text.concat()).expect("a file");
    let part = cut(&folder, Path::new("lost.txt"), "lost.dat", &["--events".into(), "*waking".into()]);
    let trace = recordings::open(&part, Options::default()).expect("a trace");
    let mut found = Vec::new();
    trace.records(&mut |record| {
        found.push((record.ts.0 - 1_000_000_000, record.cpu.0, record.lost));
        std::ops::ControlFlow::Continue(())
    });
    assert_eq!(found, [(100, 1, None), (300, 1, Some(Some(12))), (500, 2, Some(None)), (600, 2, None)]);
}

#[test]
fn a_pattern_without_an_event_and_a_part_are_refused() {
    let folder = scratch("cut-events-refused");
    let dat = fixture("hackbench-7.2.dat");
    let dat = dat.to_str().expect("a path");
    let why = schedviz_in(&folder, &["cut", dat, "--events", "lb:*", "-o", "a.dat"]);
    assert!(why.code == Some(1) && why.stderr.contains("no event of this trace matches \"lb:*\""), "{}", why.stderr);
    schedviz_in(&folder, &["cut", dat, "--min", "10ms", "-o", "part.dat", "-q"]).success();
    let why = schedviz_in(&folder, &["cut", "part.dat", "--events", "sched:*", "-o", "a.dat"]);
    assert!(why.code == Some(1) && why.stderr.contains("cut it from the whole with --events"), "{}", why.stderr);
    assert!(!folder.join("a.dat").exists());
    // Nothing of the scheduler: a list of other events is a recording as well.
    let every = fixture("every-7.2.dat");
    schedviz_in(&folder, &["cut", every.to_str().expect("a path"), "--events", "*:timer*", "-o", "timers.dat", "-q"])
        .success();
    let info = schedviz_in(&folder, &["info", "timers.dat", "-q"]).success().text();
    assert!(info.contains("timer:timer") && !info.contains("sched:sched_switch\n"), "{info}");
}

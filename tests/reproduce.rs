//! `schedviz reproduce` against an independent count of the events, and the programs that it writes.

use crate::support::{Scratch, events, fixture, schedviz, schedviz_in, scratch};
use parse::Trace;
use regex::Regex;
use sched::{Comm, EventKind, EventSource, SchedEvent, kthread};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use testkit::Operation::{Nap, Run, Wait, Wake};
use testkit::{TraceBuilder, Worker, Workload};

/// Writes the program of a recording in a folder.
fn written(folder: &Path, trace: &Path, file: &str, more: &[&str]) -> String {
    let trace = trace.to_str().expect("a path");
    schedviz_in(folder, &[&["reproduce", trace, "-o", file, "-q"], more].concat()).success();
    std::fs::read_to_string(folder.join(file)).expect("written")
}

/// A recording of three stages that wake one another, with a nap, and its numbers: bursts, CPU time, wakeups, sleeps.
fn pipeline(folder: &Scratch) -> (std::path::PathBuf, [u64; 4]) {
    let first = [Run(30_000), Wake(1), Run(2_000), Wait, Run(4_000), Nap(50_000)].repeat(25);
    let stage = |next: usize| [Wait, Run(20_000), Wake(next), Run(1_000)].repeat(25);
    // Events of one instant on several CPUs would have another order in the file.
    let workers = [first, stage(2), stage(0)].map(|program| Worker::on(0, program)).to_vec();
    let work = Workload { cpus: 1, workers, steal: None };
    let path = folder.join("pipeline.dat");
    std::fs::write(&path, TraceBuilder::default().events(&work.run()).build()).expect("written");
    // The nap behind the last burst is left out.
    (path, [25 * (3 + 2 + 2), 25 * (36_000 + 21_000 + 21_000), 25 * 3, 24])
}

/// The numbers that a program defines or prints, by their names.
fn numbers(text: &str) -> BTreeMap<String, u64> {
    let number = |line: &str| {
        let (name, number) = line.strip_prefix("#define ").unwrap_or(line).split_once(' ')?;
        Some((name.to_owned(), number.parse().ok()?))
    };
    text.lines().filter_map(number).collect()
}

/// The output of a program, which must end by itself.
fn output(program: &Path, arguments: &[&str]) -> String {
    let mut child = Command::new(program).args(arguments).stdout(Stdio::piped()).spawn().expect("started");
    let begun = Instant::now();
    while child.try_wait().expect("waited").is_none() {
        if begun.elapsed() > Duration::from_secs(120) {
            child.kill().expect("killed");
            panic!("the program hangs");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().expect("output");
    assert!(output.status.success(), "{arguments:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// The actions of each kind in the tables of a program, by their letters.
fn actions(program: &str) -> BTreeMap<char, u64> {
    let mut found = BTreeMap::new();
    for entry in program.lines().filter(|line| line.starts_with('{')).flat_map(|line| line.split("},")) {
        if let Some(letter) = entry.strip_prefix('{').and_then(|entry| entry.chars().next()).filter(|c| *c != ' ') {
            *found.entry(letter).or_default() += 1;
        }
    }
    found
}

/// The compiled program ends, by either way of waking, and does as much as the tables have: those of a known pipeline, and of a window.
#[test]
fn the_program_does_what_its_tables_have() {
    if Command::new("cc").arg("--version").output().is_err() {
        return;
    }
    let folder = scratch("reproduce-cc");
    let (trace, [bursts, compute, wakeups, sleeps]) = pipeline(&folder);
    let hackbench = fixture("hackbench.dat");
    for (name, trace, window) in
        [("pipeline", &trace, &[][..]), ("hackbench", &hackbench, &["--min", "0.9", "--max", "0.92"])]
    {
        let file = format!("{name}.c");
        let text = written(&folder, trace, &file, window);
        let cc = ["-O2", "-pthread", "-Wall", "-Wextra", "-Werror", "-o", name, &file];
        let compiled = Command::new("cc").args(cc).current_dir(&*folder).output().expect("cc");
        assert!(compiled.status.success(), "{name}: {}", String::from_utf8_lossy(&compiled.stderr));
        let of = |letter: char| actions(&text).get(&letter).copied().unwrap_or(0);
        let expected = [("bursts", of('C')), ("wakeups", of('W')), ("waits", of('A')), ("sleeps", of('S') + of('U'))];
        if name == "pipeline" {
            assert_eq!(expected.map(|(_, count)| count), [bursts, wakeups, wakeups, sleeps], "the known program");
            assert_eq!(numbers(&text)["TRACE_CPU_NS"], compute);
        }
        assert!(of('C') > 30 && of('W') > 10, "{name}: {expected:?}");
        for options in [&["--count"][..], &["--count", "--pipes", "--affinity"]] {
            let printed = output(&folder.join(name), options);
            let found = numbers(&printed);
            let found = expected.map(|(kind, _)| (kind, found[kind]));
            assert_eq!(found, expected, "{name} {options:?}: {printed}");
        }
    }
}

/// A wakeup that comes before the wait is counted: none where the waker sleeps first, one where the sleeper does.
#[test]
fn the_program_counts_wakeups_that_come_too_early() {
    if Command::new("cc").arg("--version").output().is_err() {
        return;
    }
    let folder = scratch("reproduce-spared");
    let waker = vec![Run(1_000), Nap(100_000_000), Run(1_000), Wake(1), Run(1_000)];
    let sleeper = vec![Run(1_000), Wait, Run(2_000)];
    let workers = [waker, sleeper].map(|program| Worker::on(0, program)).to_vec();
    let trace = folder.join("trace.dat");
    let events = Workload { cpus: 1, workers, steal: None }.run();
    std::fs::write(&trace, TraceBuilder::default().events(&events).build()).expect("written");
    let text = written(&folder, &trace, "in_time.c", &[]);
    let late = text.replacen("{A,0},", "{S,300000000},{A,0},", 1).replacen(".count = 3", ".count = 4", 1);
    assert_ne!(late.len(), text.len());
    std::fs::write(folder.join("late.c"), late).expect("written");
    let compile = |name: &str| {
        let cc = ["-O2", "-pthread", "-Wall", "-Wextra", "-Werror", "-o", name, &format!("{name}.c")];
        assert!(Command::new("cc").args(cc).current_dir(&*folder).status().expect("cc").success(), "{name}");
    };
    for (name, spared) in [("in_time", 0), ("late", 1)] {
        compile(name);
        for options in [&["--count"][..], &["--count", "--pipes"]] {
            let printed = output(&folder.join(name), options);
            let found = numbers(&printed);
            assert_eq!((found["waits"], found["spared"]), (1, spared), "{name} {options:?}: {printed}");
            let share = if spared == 0 { "spared: 0.0 % of 1" } else { "spared: 100.0 % of 1" };
            assert!(printed.contains(share), "{printed}");
        }
    }
    written(&folder, &trace, "alone.c", &["--max", "0.05"]);
    compile("alone");
    assert!(!output(&folder.join("alone"), &[]).contains("spared"), "there is no wait");
}

/// The tasks of a recording that are programs, by their last names: neither the recorder nor threads of the kernel.
fn programs(events: &[SchedEvent]) -> BTreeMap<i32, Comm> {
    let mut names = BTreeMap::new();
    let mut of_kernel = BTreeSet::from([2]);
    for event in events {
        match event.kind {
            EventKind::Switch { prev, next, .. } => names.extend([prev, next].map(|task| (task.pid.0, task.comm))),
            EventKind::Fork { parent, child, .. } if parent.0 == 2 => {
                of_kernel.insert(child.0);
            }
            _ => {}
        }
    }
    let is_program = |pid: &i32, name: &mut Comm| {
        *pid > 0 && !of_kernel.contains(pid) && !kthread::is_kernel_thread(*name) && !name.is_recorder()
    };
    names.retain(|pid, name| is_program(pid, name));
    names
}

/// The number of sleeps of programs that the wakeup of a program ended. A wakeup that is recorded before the switch-out counts if nothing else
/// wakes the task behind that.
fn wakeups(events: &[SchedEvent], is_program: &dyn Fn(i32) -> bool) -> u64 {
    let (mut asleep, mut early, mut announced) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let mut count = 0;
    for event in events {
        let by_program = event.in_task() && is_program(event.pid.0);
        match event.kind {
            EventKind::Switch { prev, state, next } => {
                let early_one: Option<bool> = early.remove(&prev.pid.0);
                if !state.is_runnable() {
                    announced.extend(early_one.map(|by| (prev.pid.0, by)));
                }
                asleep.insert(prev.pid.0, !state.is_runnable());
                asleep.insert(next.pid.0, false);
                early.remove(&next.pid.0);
                count += u64::from(announced.remove(&next.pid.0) == Some(true));
            }
            EventKind::Waking { task, .. } if is_program(task.pid.0) => {
                if asleep.insert(task.pid.0, false).unwrap_or(true) {
                    announced.remove(&task.pid.0);
                    count += u64::from(by_program);
                } else {
                    early.insert(task.pid.0, by_program);
                }
            }
            EventKind::Wakeup { task, .. } => {
                count += u64::from(announced.remove(&task.pid.0) == Some(true));
                asleep.insert(task.pid.0, false);
            }
            EventKind::WakeupNew { task, .. } => {
                asleep.insert(task.pid.0, false);
            }
            _ => {}
        }
    }
    count
}

/// The bursts come to the CPU time that the switches of the trace have, and the wakeups are those of sleepers by tasks.
#[test]
fn the_work_is_that_of_the_events() {
    let folder = scratch("reproduce-events");
    for name in ["hackbench.dat", "hackbench-v6.dat", "spmd-plus1.dat"] {
        let path = fixture(name);
        let trace = Trace::open(&path, parse::Options::default()).expect("a recording");
        let events = events(&trace);
        let programs = programs(&events);
        let extent = trace.events().expect("events").extent().expect("an extent");
        let is_program = |pid: i32| programs.contains_key(&pid);
        let (mut on_cpu, mut computed) = (BTreeMap::new(), 0);
        for event in &events {
            if let EventKind::Switch { prev, .. } = event.kind {
                let since = on_cpu.insert(event.cpu, event.ts).unwrap_or(extent.start);
                computed += if is_program(prev.pid.0) { event.ts.since(since).0 } else { 0 };
            }
        }
        let wakeups = wakeups(&events, &is_program);
        let text = written(&folder, &path, "load.c", &[]);
        let found = numbers(&text)["TRACE_CPU_NS"];
        // Runs that go on at the end count until then.
        assert!(found >= computed && found - computed < computed / 20, "{name}: {found}, not {computed}");
        let counted = actions(&text).get(&'W').copied().unwrap_or(0);
        assert!(counted > 40 && counted.abs_diff(wakeups) * 100 <= wakeups, "{name}: {counted}, not {wakeups}");
    }
}

/// No text of the trace is in a program: its tables have numbers alone.
#[test]
fn programs_are_anonymous() {
    let folder = scratch("reproduce-anonymous");
    let source = include_str!("../crates/reproduce/src/program.c");
    let of_source: BTreeSet<&str> = source.lines().collect();
    let forms = [
        r"^(\{[CWASUFP],\d+\},)*$",
        r"^\};$",
        r"^#define ([CWASUFP] [A-Z]+|TRACE_NS \d+|TRACE_CPU_NS \d+|TRACE_WAITS \d+)$",
        r"^static const struct action a\d+\[\] = \{$",
        r"^static struct task tasks\[\] = \{$",
        r#"^\{ \.name = "t\d+", \.actions = a\d+, \.count = \d+, \.start = (BEGINNING|STARTED|AT, \.at = \d+), \.policy = SCHED_[A-Z]+, \.priority = -?\d+(, \.cpus = "[\d,-]+")? \},( /\* /g\d+ \*/)?$"#,
        r"^ \* [0-9.]+ [mµn]?s: [0-9]+ tasks?, .* [0-9]+ starts?$",
        r"^ \* (sleeps|uninterruptible sleeps|tasks|kernel threads)[A-Za-z ,_]+: [0-9]+( \([a-z0-9 ,]+\))?$",
        r"^ \*/$",
        r"^/\* The work of a scheduler trace, by schedviz reproduce\.$",
        r"^ \* cc -O2 -pthread FILE\.c -o load && \./load      \(--help: its options\)$",
    ];
    let forms = forms.map(|form| Regex::new(form).expect("a pattern"));
    for name in ["hackbench.dat", "sleepers-6.12.dat", "rt-5.10.dat", "throttled-6.12.dat", "isolated.dat"] {
        let path = fixture(name);
        let text = written(&folder, &path, "load.c", &[]);
        let others = text.lines().filter(|line| !of_source.contains(line));
        for line in others {
            assert!(forms.iter().any(|form| form.is_match(line)), "{name}: {line}");
        }
        let head = text.lines().take(12).filter(|line| line.starts_with(" *")).collect::<String>();
        let trace = Trace::open(&path, parse::Options::default()).expect("a recording");
        let json = written(&folder, &path, "load.json", &["--cgroups", "--affinity"]);
        // A word of rt-app's, which is a name in one recording.
        let json = json.replace("\"mode\": \"absolute\"", "");
        for comm in programs(&events(&trace)).values().map(ToString::to_string).filter(|comm| comm.len() > 5) {
            assert!(!head.contains(&comm) && !json.contains(&comm), "{name}: {comm}");
        }
    }
    let named = written(&folder, &fixture("hackbench.dat"), "named.c", &["--names"]);
    assert!(named.contains(".name = \"hackbench\""), "asked for");
}

/// The events of rt-app, by the form of their values: a number, a text, or an object.
const EVENTS: [(&str, char); 6] =
    [("run", 'n'), ("sleep", 'n'), ("timer", 'o'), ("sem_post", 't'), ("sem_wait", 't'), ("fork", 't')];

/// Checks a phase by rt-app's grammar, and adds its events to `found`.
fn check_phase(phase: &Value, tasks: &BTreeSet<&str>, found: &mut BTreeMap<String, u64>) {
    let mut count = 0;
    for (key, value) in phase.as_object().expect("a phase") {
        match key.as_str() {
            "policy" => assert!(value.as_str().expect("a text").starts_with("SCHED_")),
            "priority" => assert!((-20..=99).contains(&value.as_i64().expect("a number"))),
            event => {
                let name = event.trim_end_matches(|c: char| c.is_ascii_digit());
                let (_, form) = EVENTS.iter().find(|(known, _)| *known == name).unwrap_or_else(|| panic!("{event}"));
                match form {
                    'n' => assert!((0..=i64::from(i32::MAX)).contains(&value.as_i64().expect("a number"))),
                    't' => assert!(tasks.contains(value.as_str().expect("a text")), "{value}"),
                    _ => {
                        assert_eq!((&value["ref"], &value["mode"]), (&"unique".into(), &"absolute".into()));
                        assert!((0..=i64::from(i32::MAX)).contains(&value["period"].as_i64().expect("a number")));
                    }
                }
                *found.entry(name.to_owned()).or_default() += 1;
                count += 1;
            }
        }
    }
    assert!(count > 0, "rt-app refuses a phase without events");
}

/// The file for rt-app follows its grammar, and has the actions of the C program. A key that is there twice would be lost.
#[test]
fn the_file_for_rt_app_is_what_rt_app_reads() {
    let folder = scratch("reproduce-rt-app");
    for name in ["hackbench.dat", "sleepers-timers-6.12.dat", "rt-5.10.dat", "throttled-6.12.dat", "affine.dat"] {
        let path = fixture(name);
        let program = actions(&written(&folder, &path, "load.c", &[]));
        let text = written(&folder, &path, "load.json", &["--affinity", "--cgroups"]);
        let file: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(file["global"]["duration"], -1, "until all tasks have ended");
        let tasks = file["tasks"].as_object().expect("tasks");
        let names: BTreeSet<&str> = tasks.keys().map(String::as_str).collect();
        let (mut found, mut forked) = (BTreeMap::new(), BTreeMap::new());
        for task in tasks.values() {
            let known = ["instance", "loop", "policy", "priority", "delay", "cpus", "taskgroup", "phases"];
            let of_task = task.as_object().expect("a task");
            of_task.keys().for_each(|key| assert!(known.contains(&key.as_str()), "{name}: {key}"));
            assert_eq!(task["loop"], 1);
            assert!(task["taskgroup"].is_null() || task["taskgroup"].as_str().expect("a text").starts_with("/g"));
            for phase in task["phases"].as_object().expect("phases").values() {
                check_phase(phase, &names, &mut found);
                let forks = phase.as_object().expect("a phase").iter().filter(|(key, _)| key.starts_with("fork"));
                forks.for_each(|(_, of)| *forked.entry(of.as_str().expect("a text")).or_insert(0) += 1);
            }
        }
        for (task, of) in tasks {
            assert_eq!(forked.get(task.as_str()).copied(), (of["instance"] == 0).then_some(1), "{name}: {task}");
        }
        let count = |event: &str| found.get(event).copied().unwrap_or(0);
        let of = |letter: char| program.get(&letter).copied().unwrap_or(0);
        assert_eq!([count("sem_post"), count("sem_wait"), count("fork")], [of('W'), of('A'), of('F')], "{name}");
        assert!(count("sleep") >= of('S') && count("timer") == of('U'), "{name}: {found:?}, not {program:?}");
        assert!(count("run") > 0 && count("run") <= of('C') + of('P') + names.len() as u64, "{name}");
    }
}

/// A slip in the arguments is an error with a remedy, and writes nothing.
#[test]
fn other_forms_are_refused() {
    let folder = scratch("reproduce-refused");
    let trace = fixture("hackbench.dat");
    let trace = trace.to_str().expect("a path");
    for (arguments, error) in [
        (&["-o", "load.txt"][..], "choose FILE.c for a C program, or FILE.json for rt-app"),
        (&["-o", "load.c", "--affinity"], "--affinity is of a file for rt-app"),
        (&["-o", "load.c", "--tasks", "^none$"], "there is no such task"),
        (&["-o", "load.c", "--tasks", "ksoftirqd"], "no task that is chosen used a CPU in the window"),
    ] {
        let ran = schedviz_in(&folder, &[&["reproduce", trace], arguments].concat());
        assert!(ran.code == Some(1) && ran.stderr.contains(error), "{arguments:?}: {}", ran.stderr);
    }
    assert_eq!(std::fs::read_dir(&*folder).expect("a folder").count(), 0, "nothing is written");
    let ran = schedviz(&["reproduce", trace, "-o", folder.join("k.c").to_str().expect("a path"), "--kernel-threads"]);
    let told = ran.success().stderr;
    assert!(!told.contains("kernel threads left out"), "{told}");
}

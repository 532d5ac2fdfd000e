//! No string of any input reaches a terminal, a table or a page as a command to them: ESC, BEL, the C1 character CSI and U+202E stand in every
//! string of every input, and every command runs in every format that is text.
#![cfg(target_os = "linux")]

use crate::support::{Ran, fixture, schedviz, schedviz_in, scratch};
use sched::{Comm, EventKind, SchedEvent, TaskRef};
use serde_json::Value;
use std::path::Path;
use testkit::{Buffer, PerfBuilder, Simulation, TraceBuilder};

/// The characters that no output may have: ESC, BEL, CSI as a C1 character, and the override of the direction.
const HOSTILE: &str = "\u{1b}\u{7}\u{9b}\u{202e}";

/// The commands that read no file of another: they record, or describe this program.
const WITHOUT_INPUT: [&str; 3] = ["record", "top", "manual"];

/// The endings of outputs that are text.
const TEXTS: [&str; 9] = ["txt", "csv", "json", "svg", "html", "md", "js", "css", "folded"];

/// Asserts that a text has nothing but plain characters, line breaks and tabs.
fn is_plain(what: &str, text: &[u8]) {
    let text = String::from_utf8_lossy(text);
    let found = text.chars().find(|c| !sched::event::is_plain_char(*c) && !matches!(c, '\n' | '\t'));
    let Some(found) = found else { return };
    let line = text.lines().find(|line| line.contains(found)).unwrap_or_default();
    let line: String = line.chars().take(300).collect();
    panic!("{what} has {found:?} in {line:?}");
}

/// Asserts that all texts below a folder are plain, and removes them.
fn take_files(what: &str, folder: &Path) {
    for entry in folder.read_dir().expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            take_files(what, &path);
        } else if path.extension().is_some_and(|ending| TEXTS.iter().any(|text| ending == *text)) {
            is_plain(&format!("{what}: {}", path.display()), &std::fs::read(&path).expect("a file"));
        }
    }
}

/// Runs a command in a folder, and asserts that all that it prints, and writes below `out`, is plain.
fn runs(folder: &Path, arguments: &[&str]) -> Ran {
    let what = format!("{arguments:?}");
    let out = folder.join("out");
    std::fs::create_dir_all(&out).expect("a folder");
    let ran = schedviz_in(folder, arguments);
    assert!(matches!(ran.code, Some(0..=3)), "{what}: {:?} {}", ran.code, ran.stderr);
    is_plain(&format!("{what}: standard error"), ran.stderr.as_bytes());
    is_plain(&format!("{what}: standard output"), &ran.stdout);
    take_files(&what, &out);
    ran
}

/// The ways to run a command on a trace: one for each format that is text.
fn ways(command: &str, trace: &str) -> Vec<Vec<String>> {
    let plain = |words: &[&str]| vec![words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>()];
    match command {
        "compare" => plain(&["compare", "--base", trace, "--new", "other.dat"]),
        "cut" => plain(&["cut", trace, "-o", "out/part.dat"]),
        "export" => plain(&["export", trace, "--csv", "out/tables"]),
        "machine" => plain(&["machine", "--root", "root"]),
        "reproduce" => vec![
            plain(&["reproduce", trace, "-o", "out/load.c", "--names"]).concat(),
            plain(&["reproduce", trace, "-o", "out/load.json", "--names"]).concat(),
        ],
        "report" => plain(&["report", trace, "-o", "out/report", "--plot", "spec.toml"]),
        "schedstat" => plain(&["schedstat", "before", "after", "--time", "1", "--trace", trace]),
        "view" => plain(&["view", trace, "--export", "out/page", "--plot", "spec.toml"]),
        _ => {
            let help = schedviz(&[command, "--help"]).success().text();
            let first: &[&str] = match command {
                "plot" => &["plot", "spec.toml", trace],
                "stepper" => &["stepper", trace, "--at", "100ns"],
                _ => &[command, trace],
            };
            let with = |more: &[&str]| [first, more].concat().into_iter().map(str::to_owned).collect::<Vec<_>>();
            let mut ways = Vec::new();
            if help.contains("--json") {
                ways.push(with(&["--json"]));
            }
            let names = ["csv", "svg", "txt"].into_iter().filter(|ending| help.contains(&format!("- {ending}: ")));
            ways.extend(names.map(|ending| with(&["-o", &format!("out/x.{ending}")])));
            if ways.is_empty() {
                ways.push(with(&[]));
            }
            ways
        }
    }
}

/// A name of at most 15 bytes with all that is hostile.
fn named(name: Comm) -> Comm {
    let start = name.as_bytes().get(..6).unwrap_or(name.as_bytes());
    if name.is_empty() { name } else { Comm::new(&[start, HOSTILE.as_bytes()].concat()) }
}

/// The events of a simulated run whose tasks have hostile names.
fn events() -> Vec<SchedEvent> {
    let mut events: Vec<SchedEvent> = Simulation::run(7, 2, 120).events;
    let task = |task: &mut TaskRef| task.comm = named(task.comm);
    for event in &mut events {
        match &mut event.kind {
            EventKind::Switch { prev, next, .. } => [prev, next].into_iter().for_each(task),
            EventKind::Waking { task: woken, .. }
            | EventKind::Wakeup { task: woken, .. }
            | EventKind::WakeupNew { task: woken, .. }
            | EventKind::Migrate { task: woken, .. } => task(woken),
            EventKind::Fork { child_comm, .. } => *child_comm = named(*child_comm),
            EventKind::Exec { program, .. } => *program = named(*program),
            EventKind::Rename { before, after, .. } => (*before, *after) = (named(*before), named(*after)),
            _ => {}
        }
    }
    events
}

/// A trace with hostile strings throughout: names of tasks, symbols, formats, events, fields, an instance, the recorder and the clock.
fn trace() -> Vec<u8> {
    let mut events = events();
    let last = events.last().expect("events").ts;
    events.push(SchedEvent { ts: last, kind: EventKind::Other { id: 900 }, ..events[0] });
    let format = format!(
        "name: own{HOSTILE}\nID: 900\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
         \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
         \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
         \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
         \tfield:int f{HOSTILE};\toffset:4;\tsize:4;\tsigned:1;\n\nprint fmt: \"own {HOSTILE} %d\", REC->f{HOSTILE}\n"
    );
    let builder = TraceBuilder {
        kallsyms: format!("ffffffff81000000 T a{HOSTILE}\nffffffff81000100 T b{HOSTILE}\n"),
        printk: format!("0xffffffff81000000 : \"text {HOSTILE}\"\n"),
        cmdlines: format!("1 saved{HOSTILE}\n2 {HOSTILE}\n"),
        formats: vec![(format!("sys{HOSTILE}"), format)],
        options: vec![(5, format!("Linux node{HOSTILE} 6.1.0{HOSTILE} x86_64{HOSTILE}\0").into_bytes())],
        restored: true,
        ..TraceBuilder::default()
    };
    let mut builder = builder.events(&events);
    let other = Buffer { name: format!("instance{HOSTILE}"), ..builder.buffers[0].clone() };
    builder.buffers.push(other);
    builder.build()
}

/// Adds hostile characters to every text of a machine file but to those that are read as numbers and lists.
fn spoil(value: &mut Value) {
    match value {
        Value::String(text) if text.chars().any(|c| c.is_alphabetic() || c == '/') => text.push_str(HOSTILE),
        Value::Array(values) => values.iter_mut().for_each(spoil),
        Value::Object(fields) => {
            fields.retain(|name, _| name != "affinity");
            fields
                .iter_mut()
                .filter(|(name, _)| *name != "schema" && *name != "at")
                .for_each(|(_, value)| spoil(value));
            if let Some(Value::Object(settings)) = fields.get_mut("tunables") {
                settings.insert(format!("own{HOSTILE}"), format!("value{HOSTILE}").into());
            }
        }
        _ => {}
    }
}

/// The machine file of a fixture, with hostile strings and a hostile extensible scheduler.
fn machine() -> String {
    let text = std::fs::read_to_string(fixture("throttled-6.12.machine.json")).expect("a machine file");
    let mut machine: Value = serde_json::from_str(&text).expect("JSON");
    spoil(&mut machine);
    machine["scheduler"]["ext"] = format!("ext{HOSTILE}").into();
    machine.to_string()
}

/// A specification with hostile names, texts and expressions.
fn specification() -> String {
    let hostile = "\\u001b\\u0007\u{9b}\u{202e}";
    format!(
        "title = \"t{hostile}\"\nabout = \"a{hostile}\"\nrecord = \"r{hostile}\"\n\
         [[point]]\nname = \"n{hostile}\"\nevent = \"sched:sched_switch\"\n\
         where = \"text !~ 'x{hostile}' and $command != 'y{hostile}'\"\ncolor_by = \"next_comm\"\nlabel = \"next_comm\"\n\
         [[series]]\nname = \"s{hostile}\"\nevent = \"sched:sched_switch\"\nvalue = \"next_pid\"\nunit = \"u{hostile}\"\n"
    )
}

/// The inputs beside a trace in a folder.
fn beside(folder: &Path) {
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).expect("written");
    write("spec.toml", &specification());
    write("before", &format!("version 15\ntimestamp 1\ncpu0 0 0 0 0 0 0 0 0 0\ndomain{HOSTILE} MC{HOSTILE} 3 0 0\n"));
    write("after", &format!("version 15\ntimestamp 2\ncpu0 0 0 0 0 0 0 1 1 1\ndomain{HOSTILE} MC{HOSTILE} 3 0 0\n"));
    write("other.out", &benchmark());
    for (name, text) in [("proc/sys/kernel/osrelease", "6.1"), ("proc/version", "Linux"), ("proc/cmdline", "quiet a=b")]
    {
        let path = folder.join("root").join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, format!("{text}{HOSTILE}\n")).expect("written");
    }
}

/// The output of a benchmark with hostile names.
fn benchmark() -> String {
    format!(
        "stress-ng: metrc: [1] cpu{HOSTILE} 10 1.0 1.0 1.0 5.0 6.0\nTime: 1.0{HOSTILE}\nlatency {HOSTILE}: 3\n\
         stress-ng: metrc: [1] cpu 5 {HOSTILE} per second (harmonic mean of 2 instances)\n"
    )
}

/// Whether a command shows a hostile name, escaped.
fn shows_hostile(ran: &Ran) -> bool {
    ran.stderr.contains("\\x1b") || String::from_utf8_lossy(&ran.stdout).contains("\\x1b")
}

/// A writer that prints a text without cleaning it is found only by running each command in each form.
#[test]
fn every_command_in_every_format() {
    let folder = scratch("escapes");
    let name = format!("n{HOSTILE}.dat");
    let file = trace();
    std::fs::write(folder.join(&name), &file).expect("written");
    std::fs::write(folder.join("other.dat"), &file).expect("written");
    std::fs::write(folder.join(format!("n{HOSTILE}.machine.json")), machine()).expect("written");
    std::fs::write(folder.join(format!("n{HOSTILE}.out")), benchmark()).expect("written");
    beside(&folder);
    let mut number = 0;
    let shown = schedviz::COMMANDS.iter().filter(|entry| !entry.is_hidden).map(|entry| entry.name);
    for command in shown.filter(|command| !WITHOUT_INPUT.contains(command)) {
        for way in ways(command, &name) {
            runs(&folder, &way.iter().map(String::as_str).collect::<Vec<_>>());
            number += 1;
        }
    }
    assert!(number > 60, "{number}");
    // A part has the strings of the whole.
    schedviz_in(&folder, &["cut", &name, "-q", "-o", "part.dat"]).success();
    for arguments in [&["info", "part.dat"][..], &["list", "part.dat"], &["plot", "--explain", "spec.toml"]] {
        runs(&folder, arguments);
    }
    // Names of files and options in errors.
    let absent = format!("absent{HOSTILE}");
    for arguments in [
        &["info", &absent][..],
        &["workcons", &name, "--topology", &absent],
        &["plot", &absent, &name],
        &["compare", "--base", &absent, "--new", &name],
        &["latency", &name, "--tasks", &absent],
        &["latency", &name, "--buffer", &absent],
    ] {
        runs(&folder, arguments);
    }
}

/// The commands that name cgroups, tunables and the extensible scheduler of the machine file, on a trace that has throttled cgroups.
#[test]
fn every_command_beside_a_machine_file() {
    let folder = scratch("escapes-machine");
    std::fs::copy(fixture("throttled-6.12.dat"), folder.join("x.dat")).expect("copied");
    std::fs::write(folder.join("x.machine.json"), machine()).expect("written");
    let mut names_it = 0;
    for arguments in [
        &["findings", "x.dat"][..],
        &["info", "x.dat"],
        &["workcons", "x.dat"],
        &["why", "x.dat", "--by", "cgroup"],
        &["fairness", "x.dat", "--group-by", "cgroup", "--weights"],
        &["utilization", "x.dat"],
        &["neighbours", "x.dat", "--by", "cgroup"],
        &["jobs", "x.dat"],
        &["latency", "x.dat", "--by", "cgroup", "-o", "out/x.csv"],
        &["report", "x.dat", "-o", "out/report"],
        &["export", "x.dat", "--csv", "out/tables"],
    ] {
        let ran = runs(&folder, arguments);
        names_it += usize::from(shows_hostile(&ran));
    }
    assert!(names_it > 3, "hostile names are shown, escaped");
}

/// The commands that show stacks, with symbols of a file.
#[test]
fn every_command_with_symbols() {
    let folder = scratch("escapes-symbols");
    std::fs::copy(fixture("perf-stacks.data"), folder.join("x.data")).expect("copied");
    let symbols = std::fs::read_to_string(fixture("perf-stacks.kallsyms")).expect("symbols");
    let hostile: String = symbols.lines().map(|line| format!("{line}{HOSTILE}\n")).collect();
    std::fs::write(folder.join("k"), hostile).expect("written");
    let mut names_it = 0;
    for arguments in [
        &["offcpu", "x.data"][..],
        &["offcpu", "x.data", "--user", "--folded"],
        &["offcpu", "x.data", "-o", "out/x.csv"],
        &["offcpu", "x.data", "-o", "out/x.svg"],
        &["why", "x.data", "--by", "stack"],
        &["why", "x.data", "--by", "stack", "--markdown"],
        &["latency", "x.data", "--by", "stack"],
        &["path", "x.data"],
        &["list", "x.data", "--stacks"],
        &["stepper", "x.data", "--at", "0.1", "--text"],
        &["view", "x.data", "--export", "out/page"],
    ] {
        let ran = runs(&folder, &[arguments, &["--kallsyms", "k"]].concat());
        names_it += usize::from(String::from_utf8_lossy(&ran.stdout).contains("\\x1b"));
    }
    assert!(names_it > 4, "hostile names are shown, escaped");
}

/// A folder of runs with hostile names of variants, in text and in every document.
#[test]
fn names_of_variants() {
    let folder = scratch("escapes-runs");
    let runs_of = folder.join("runs");
    std::fs::create_dir_all(&runs_of).expect("a folder");
    let file = trace();
    let mut list = Vec::new();
    for variant in ["a", "b"] {
        for number in 1..=2 {
            let name = format!("{variant}.{number}.dat");
            std::fs::write(runs_of.join(&name), &file).expect("written");
            list.push(serde_json::json!({
                "variant": format!("{variant}{HOSTILE}"), "number": number, "trace": name, "seconds": 1.0, "status": 0, "complete": true
            }));
        }
    }
    let variants = ["a", "b"].map(|variant| format!("{variant}{HOSTILE}"));
    let text = serde_json::json!({
        "schema": "schedviz/runs/1", "seed": 1, "command": format!("c{HOSTILE}"), "variants": variants, "runs": list
    });
    std::fs::write(runs_of.join("runs.json"), text.to_string()).expect("written");
    for arguments in [
        &["compare", "runs"][..],
        &["compare", "runs", "--markdown"],
        &["compare", "runs", "--json"],
        &["compare", "runs", "-o", "out/x.svg"],
        &["workcons", "runs"],
        &["why", "runs"],
        &["report", "runs", "-o", "out/report"],
    ] {
        runs(&folder, arguments);
    }
}

/// Replaces the ends of all texts of a file that stand in `names` by hostile characters, without a change of length.
fn with_hostile(mut bytes: Vec<u8>, names: &[&str]) -> Vec<u8> {
    for name in names {
        let at: Vec<usize> =
            (0..bytes.len() - name.len()).filter(|at| bytes[*at..].starts_with(name.as_bytes())).collect();
        assert!(!at.is_empty(), "{name} is in the file");
        for at in at {
            let end = at + name.len();
            bytes[end - HOSTILE.len()..end].copy_from_slice(HOSTILE.as_bytes());
        }
    }
    bytes
}

/// Names of mapped files and of commands in a recording by perf.
const MAPPED: [&str; 6] = ["/bin/periodic", "/bin/busybox", "/bin/perf", "kcompactd0", "kworker/u8:3", "kworker/1:1"];

/// The strings of a perf.data: commands, cgroups, mapped files, the host and its command line.
#[test]
fn every_string_of_a_perf_data() {
    const CGROUP: &str = "/own\u{1b}\u{7}\u{9b}\u{202e}";
    let folder = scratch("escapes-perf");
    let all = events();
    let pids: std::collections::BTreeSet<i32> = all.iter().map(|event| event.pid.0).filter(|pid| *pid > 0).collect();
    let cgroups = pids.into_iter().map(|pid| (pid, 7, CGROUP)).collect();
    let builder = PerfBuilder { cgroups, ..PerfBuilder::default() };
    let file = builder.build(&TraceBuilder { cpu_count: 2, ..TraceBuilder::default() }, &all);
    std::fs::write(folder.join("x.data"), file).expect("written");
    let mapped = std::fs::read(fixture("perf-stacks.data")).expect("a fixture");
    std::fs::write(folder.join("mapped.data"), with_hostile(mapped, &MAPPED)).expect("written");
    let mut names_it = 0;
    for arguments in [
        &["info", "x.data"][..],
        &["latency", "x.data"],
        &["latency", "x.data", "--by", "cgroup"],
        &["fairness", "x.data", "--by", "cgroup", "-o", "out/x.csv"],
        &["utilization", "x.data"],
        &["neighbours", "x.data", "--json"],
        &["list", "x.data"],
        &["stepper", "x.data", "--at", "100ns", "--text"],
        &["why", "x.data"],
        &["export", "x.data", "--csv", "out/tables"],
        &["view", "x.data", "--export", "out/page"],
        &["info", "mapped.data"],
        &["list", "mapped.data", "--stacks"],
        &["offcpu", "mapped.data", "--user"],
        &["offcpu", "mapped.data", "--user", "--folded"],
        &["why", "mapped.data", "--by", "stack"],
    ] {
        let ran = runs(&folder, arguments);
        names_it += usize::from(shows_hostile(&ran));
    }
    assert!(names_it > 6, "hostile names are shown, escaped: {names_it}");
}

/// Small files beside a trace, and names of folders: a topology, a list of what is compared, and the folder of the runs.
#[test]
fn files_and_folders_beside_a_trace() {
    let folder = scratch("escapes-beside");
    std::fs::write(folder.join("x.dat"), trace()).expect("written");
    let cpus = std::fs::read_to_string(fixture("hackbench.cpus.txt")).expect("a topology");
    std::fs::write(folder.join("topology"), cpus.replace('\n', &format!("{HOSTILE}\n"))).expect("written");
    std::fs::write(folder.join("affinity"), format!("1{HOSTILE} 0-3\n{HOSTILE}\n")).expect("written");
    let runs_of = format!("runs{HOSTILE}");
    std::fs::create_dir(folder.join(&runs_of)).expect("a folder");
    for name in ["a", "b"] {
        std::fs::write(folder.join(&runs_of).join(format!("{name}{HOSTILE}.dat")), trace()).expect("written");
    }
    let run_of = format!("{runs_of}/a{HOSTILE}.dat");
    for arguments in [
        &["workcons", "x.dat", "--topology", "topology"][..],
        &["workcons", "x.dat", "--affinity", "affinity"],
        &["compare", &runs_of],
        &["compare", "--base", &run_of, "--new", "x.dat"],
        &["compare", "--base", &run_of, "--new", "x.dat", "--json"],
        &["compare", "--base", &run_of, "--new", "x.dat", "--markdown"],
        &["report", &run_of, "-o", "out/report"],
        &["view", &run_of, "--export", "out/page"],
        &["info", &run_of, "--json"],
    ] {
        runs(&folder, arguments);
    }
}

/// The note of a part, which names the cgroups of tasks before it: a file of strangers like any other.
#[test]
fn the_note_of_a_part() {
    const PATH: &str = "/own-cgroup-of-tasks";
    let folder = scratch("escapes-note");
    let mut machine: Value =
        serde_json::from_slice(&std::fs::read(fixture("throttled-6.12.machine.json")).expect("a fixture"))
            .expect("JSON");
    let all: Vec<SchedEvent> = Simulation::run(7, 2, 120).events;
    let pids: std::collections::BTreeSet<i32> = all.iter().map(|event| event.pid.0).filter(|pid| *pid > 0).collect();
    machine["kernel"]["release"] = "6.1.0-amd64".into();
    machine["cgroups"] = serde_json::json!([{ "path": PATH, "id": 7, "threads": pids }]);
    std::fs::write(folder.join("x.machine.json"), machine.to_string()).expect("written");
    std::fs::write(folder.join("x.dat"), TraceBuilder::default().events(&all).build()).expect("written");
    schedviz_in(&folder, &["cut", "x.dat", "-q", "--min", "300ms", "-o", "part.dat"]).success();
    std::fs::remove_file(folder.join("part.machine.json")).expect("the machine of the part");
    // The note is a JSON document in a string of another one.
    let hostile = "/\\\\u001b\\\\u0007\u{9b}\u{202e}";
    assert_eq!(hostile.len(), PATH.len());
    let mut part = std::fs::read(folder.join("part.dat")).expect("a part");
    let places: Vec<usize> = (0..part.len()).filter(|at| part[*at..].starts_with(PATH.as_bytes())).collect();
    assert!(!places.is_empty(), "the note has the path");
    places.iter().for_each(|at| part[*at..*at + PATH.len()].copy_from_slice(hostile.as_bytes()));
    std::fs::write(folder.join("part.dat"), part).expect("written");
    for arguments in [
        &["latency", "part.dat", "--by", "cgroup"][..],
        &["fairness", "part.dat", "--by", "cgroup", "-o", "out/x.csv"],
        &["neighbours", "part.dat", "--by", "cgroup", "--json"],
        &["export", "part.dat", "--csv", "out/tables"],
        &["view", "part.dat", "--export", "out/page"],
    ] {
        runs(&folder, arguments);
    }
    assert!(shows_hostile(&runs(&folder, &["latency", "part.dat", "--by", "cgroup"])), "the path is shown, escaped");
}

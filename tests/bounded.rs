//! Small files that ask for much memory: each command stays within 300 MB, and reports what it leaves out (`docs/limits.md`).
//! No time is asserted: the machine may be busy.
#![cfg(target_os = "linux")]

use crate::support::{Effort, Ran, effort, program, root, schedviz_in, scratch};
use sched::{Comm, Cpu, Dur, EventKind, Pass, Pid, PrevState, SchedEvent, TaskRef, Ts, limits};
use std::path::Path;
use std::process::Command;
use testkit::{MeasuredRun, PerfBuilder, PerfForm, TraceBuilder, measured};

/// The greatest peak of memory, in bytes.
const MOST: u64 = 300_000_000;

/// The greatest peak that leaves a quarter of that.
const WITH_ROOM: u64 = 225_000_000;

/// A file of `tests/hostile` that is kept compressed: its content would be more than a repository should hold.
fn unpacked(name: &str) -> Vec<u8> {
    let packed = std::fs::read(root().join("tests/hostile").join(name)).expect("a hostile file");
    zstd::stream::decode_all(packed.as_slice()).expect("zstd")
}

/// Runs a command on `x.dat` of a folder; what it printed to standard error.
fn bounded(folder: &Path, arguments: &[&str]) -> String {
    bounded_by(MOST, folder, arguments)
}

/// Runs a command that may take this number of bytes.
fn bounded_by(most: u64, folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new(program());
    let MeasuredRun { status, stderr, peak, .. } = measured(command.args(arguments).current_dir(folder));
    assert!(peak < most, "{arguments:?}: {} MB", peak / 1_000_000);
    assert!(matches!(status.code(), Some(0..=3)), "{arguments:?}: {status}: {stderr}");
    assert!(!stderr.contains("panicked"), "{arguments:?}: {stderr}");
    stderr
}

/// Without the breaks of lines.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Each command keeps other things of a task, so that each has a peak of its own.
#[test]
fn living_tasks_have_a_limit() {
    let folder = scratch("living-tasks");
    let file = unpacked("waiting-tasks.dat.zst");
    assert!(file.len() < 120_000, "{} bytes", file.len());
    std::fs::write(folder.join("x.dat"), &file).expect("written");
    std::fs::write(folder.join("y.dat"), &file).expect("written");
    // 655,200 tasks are woken, each once; as many as the limit are followed. `report` has the analysis of `fairness`.
    let commands: [(u64, &[&str]); 9] = [
        (WITH_ROOM, &["report", "x.dat", "-o", "report", "--threads", "1"]),
        (MOST, &["report", "x.dat", "-o", "report", "--threads", "2"]),
        (MOST, &["report", "x.dat", "-o", "report", "--threads", "16"]),
        (WITH_ROOM, &["compare", "--base", "x.dat", "--new", "y.dat", "--threads", "1"]),
        (MOST, &["compare", "--base", "x.dat", "--new", "y.dat", "--threads", "16"]),
        (MOST, &["findings", "x.dat", "--threads", "16"]),
        (WITH_ROOM, &["latency", "x.dat", "--by", "task", "--json", "--threads", "2"]),
        (WITH_ROOM, &["why", "x.dat", "--by", "task", "--threads", "2"]),
        (MOST, &["export", "x.dat", "--csv", "tables", "--threads", "2"]),
    ];
    for (most, arguments) in commands {
        // Most threads take most memory; a report takes many seconds.
        if effort() == Effort::Quick && (arguments[0] == "report" || !arguments.contains(&"16")) {
            continue;
        }
        let stderr = words(&bounded_by(most, &folder, arguments));
        assert!(stderr.contains("tasks beyond the 114,688 living ones"), "{arguments:?}: {stderr}");
    }
    let others: [&[&str]; 3] =
        [&["list", "x.dat", "-o", "x.txt"], &["cut", "x.dat", "-o", "part.dat"], &["info", "x.dat"]];
    for arguments in others {
        bounded_by(WITH_ROOM, &folder, &[arguments, &["--threads", "16"]].concat());
    }
}

/// A folder has no more than its index and one window: neither copies of the state for tiles that nobody asks for, nor passes beside it.
#[test]
#[ignore = "takes long; .ci/run runs it"]
fn folders_of_view_are_bounded() {
    let folder = scratch("view-folders");
    for name in ["waiting-tasks.dat.zst", "switches.dat.zst", "picks-beside-a-queue.dat.zst"] {
        std::fs::write(folder.join("x.dat"), unpacked(name)).expect("written");
        for (threads, window) in [("1", true), ("2", false), ("16", false), ("16", true)] {
            if name != "waiting-tasks.dat.zst" && threads != "16" {
                continue;
            }
            let page = format!("{name}-{threads}-{window}");
            let mut arguments = vec!["view", "x.dat", "--export", &page, "--threads", threads];
            if window {
                arguments.extend(["--min", "0.0003", "--max", "0.00031"]);
            }
            bounded_by(MOST, &folder, &arguments);
            // Of what a limit cuts no further readings are made.
            let answer =
                |file: &str| std::fs::read_to_string(folder.join(&page).join("t/0").join(file)).expect("an answer");
            if name == "switches.dat.zst" {
                assert!(answer("main.json").contains("left to schedviz findings"), "{}", answer("main.json"));
                let missed: serde_json::Value = serde_json::from_str(&answer("list/missed.json")).expect("JSON");
                assert!(missed["number"].is_null() && missed["unknown"].is_string(), "{missed}");
            }
            std::fs::remove_dir_all(folder.join(&page)).expect("a folder");
        }
    }
}

/// The state of the many follows the first ones, and goes on with those when there is room again.
#[test]
fn tasks_beyond_the_limit_only_run() {
    let task = |pid: i32| TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(b"many") };
    let idle = TaskRef { pid: Pid::IDLE, prio: 120, comm: Comm::new(b"swapper/0") };
    let event =
        |ts: i64, pid: i32, kind: EventKind| SchedEvent { ts: Ts(ts), cpu: Cpu(0), pid: Pid(pid), flags: 0, kind };
    let many = limits::TASKS as i32;
    let woken = |pid: i32| event(i64::from(pid), 0, EventKind::Wakeup { task: task(pid), target: Cpu(0) });
    let at = i64::from(many) + 100;
    let switch = |prev, state, next| EventKind::Switch { prev, state, next };
    let mut events = vec![event(0, 0, switch(idle, PrevState::RUNNABLE, idle))];
    events.extend((1..=many + 2).map(woken));
    // The last one was not taken in. It runs, and the first one dies: its place is free for another.
    events.push(event(at, 0, switch(idle, PrevState::RUNNABLE, task(many + 2))));
    events.push(event(at + 10, many + 2, switch(task(many + 2), PrevState::asleep(1), task(1))));
    events.push(event(at + 20, 1, switch(task(1), PrevState::DEAD, idle)));
    events.push(event(at + 20, 0, switch(idle, PrevState::RUNNABLE, task(many + 9))));
    events.push(event(at + 30, many + 9, switch(task(many + 9), PrevState::DEAD, idle)));
    let outcome = Pass::over(events.as_slice()).run(sched::analysis::RunTime::default).expect("a pass");
    assert_eq!(outcome.diagnostics.count(sched::EventIssue::TasksBeyondLimit), 3, "two wakeups and a switch");
    let ran = [many + 1, many + 2, 1, many + 9].map(|pid| outcome.output.ns_of(Pid(pid)));
    assert_eq!(ran, [0, 0, 10, 10]);
}

#[test]
fn rows_have_a_limit_and_the_rest_is_one_row() {
    let more = 100;
    let tasks = (limits::ROWS + more) as i32;
    let task = |pid: i32| TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(b"short") };
    let idle = TaskRef { pid: Pid::IDLE, prio: 120, comm: Comm::new(b"swapper/0") };
    let mut events = Vec::new();
    for pid in 1..=tasks {
        let at = 10 * i64::from(pid);
        let event =
            |ts: i64, pid: i32, kind: EventKind| SchedEvent { ts: Ts(ts), cpu: Cpu(0), pid: Pid(pid), flags: 0, kind };
        events.push(event(at, 0, EventKind::WakeupNew { task: task(pid), target: Cpu(0) }));
        events.push(event(at + 2, 0, EventKind::Switch { prev: idle, state: PrevState::RUNNABLE, next: task(pid) }));
        events.push(event(at + 7, pid, EventKind::Switch { prev: task(pid), state: PrevState::DEAD, next: idle }));
    }
    let (from, to) = (events[0].ts, events[events.len() - 1].ts);
    let options = fairness::Options::new(from, to);
    let shares = Pass::over(events.as_slice()).run(|| fairness::Fairness::new(&options)).expect("a pass").output;
    assert_eq!(shares.members.len(), limits::ROWS + 1);
    // It ran the longest.
    let rest = &shares.members[0];
    assert_eq!((rest.name.as_str(), rest.run_ns), ("100 others, beyond the rows", Dur(5 * more as u64)));
    assert_eq!(shares.members.iter().map(|member| member.run_ns.0).sum::<u64>(), 5 * tasks as u64);
    let options = latency::Options { by: latency::TasksBy::Task, zero: from, worst: 1, ..Default::default() };
    let waits = Pass::over(events.as_slice()).run(|| latency::Latency::new(&options)).expect("a pass").output;
    assert_eq!(waits.rows.len(), limits::ROWS + 1);
    let rest = waits.rows.last().expect("a row");
    assert_eq!((rest.pid, rest.command, rest.merged), (None, Some(Comm::new(b"(others)")), Some(more as u64)));
    let new = rest.measures.iter().find(|named| named.measure == latency::Measure::New).expect("first waits");
    assert_eq!((new.summary.count, new.summary.total_ns), (more as u64, Dur(2 * more as u64)));
    assert!(waits.rows[..limits::ROWS].iter().all(|row| row.merged.is_none() && row.pid.is_some()));
}

/// PIDs that a hash without a seed puts into one chain: the work of a pass is that on other PIDs.
#[test]
#[ignore = "takes long; .ci/run runs it"]
fn colliding_pids_cost_no_more_than_others() {
    let folder = scratch("colliding");
    std::fs::write(folder.join("x.dat"), unpacked("colliding-pids.dat.zst")).expect("written");
    for command in ["workcons", "why", "migrations"] {
        bounded(&folder, &[command, "x.dat"]);
    }
}

/// A critical path over millions of switches, each of which can be on it.
#[test]
#[ignore = "takes long; .ci/run runs it"]
fn millions_of_switches_are_bounded() {
    let folder = scratch("switches");
    std::fs::write(folder.join("x.dat"), unpacked("switches.dat.zst")).expect("written");
    let asked = |arguments: &[&str]| words(&bounded_by(MOST, &folder, arguments));
    let stderr = asked(&["path", "x.dat", "--pid", "100"]);
    assert!(stderr.contains("beyond a limit"), "{stderr}");
    let stderr = asked(&["whatif", "x.dat"]);
    assert!(stderr.contains("choose a part with --min and --max"), "{stderr}");
    // Its tasks take other names in each switch: all names took 400 MB. The names at an instant are known from the start on.
    for threads in ["1", "2", "16"] {
        let commands: [&[&str]; 2] =
            [&["cut", "x.dat", "-o", "part.dat"], &["list", "x.dat", "--min", "0.23", "-o", "x.txt"]];
        for arguments in commands {
            bounded_by(WITH_ROOM, &folder, &[arguments, &["--threads", threads]].concat());
        }
    }
}

/// A piece of zstd that expands to as much as its file may: it is never in memory as a whole.
#[test]
fn pieces_of_perf_are_expanded_step_by_step() {
    let folder = scratch("perf-piece");
    let events = testkit::a_wait_beside_an_idle_cpu();
    let builder = PerfBuilder { form: PerfForm::Compressed, idle_rounds: 11_000_000, ..PerfBuilder::default() };
    let mut own = builder.build(&TraceBuilder::default(), &events);
    assert!(own.len() < 990_000, "{} bytes", own.len());
    // Bytes that no part of the header names: the limit follows the size of the file.
    own.resize(990_000, 0);
    for (file, is_whole) in [(own, true), (unpacked("rounds.data.zst"), false)] {
        std::fs::write(folder.join("x.dat"), &file).expect("written");
        let stderr = words(&bounded(&folder, &["latency", "x.dat"]));
        assert_eq!(stderr.contains("beyond a limit"), !is_whole, "{stderr}");
    }
}

/// The note of a part, as JSON, and where it is.
fn note_of(part: &[u8]) -> (usize, serde_json::Value) {
    for at in (8..part.len()).filter(|at| part[*at..].starts_with(&[0x28, 0xb5, 0x2f, 0xfd])) {
        let size = |at: usize| u32::from_le_bytes(part[at..at + 4].try_into().expect("four bytes")) as usize;
        let Some(block) = part.get(at..at + size(at - 8)) else { continue };
        let Ok(text) = zstd::bulk::decompress(block, size(at - 4)) else { continue };
        if text.starts_with(b"{\"reading\"") {
            return (at - 8, serde_json::from_slice(&text).expect("JSON"));
        }
    }
    panic!("no note");
}

#[test]
#[ignore = "takes long; .ci/run runs it"]
fn the_tasks_of_a_note_have_a_limit() {
    let folder = scratch("note-tasks");
    let builder = TraceBuilder { compression: testkit::Compression::Zstd, ..TraceBuilder::default() };
    let events = testkit::Simulation::run(5, 2, 3000).events;
    let file = builder.events(&events).build();
    let middle = format!("@{}ns", events[events.len() / 2].ts.0);
    std::fs::write(folder.join("whole.dat"), file).expect("written");
    schedviz_in(&folder, &["cut", "whole.dat", "-o", "part.dat", "--min", &middle, "-q"]).success();
    let part = std::fs::read(folder.join("part.dat")).expect("a part");
    let (place, note) = note_of(&part);
    let known = note["past"]["tasks"].as_array().expect("tasks").len();
    let free = note["past"]["free"].as_array().expect("places").len();
    for (more, is_lost) in [(0, false), (1000, false), (limits::TASKS - known - free + 1, true)] {
        let mut note = note.clone();
        let tasks = note["past"]["tasks"].as_array_mut().expect("tasks");
        let like = tasks.last().expect("a task").clone();
        for nth in 0..more {
            let mut task = like.clone();
            task["place"] = (known + free + nth).into();
            task["pid"] = (1_000_000 + nth).into();
            task["state"] = serde_json::json!({ "Waiting": 1 });
            tasks.push(task);
        }
        let text = serde_json::to_vec(&note).expect("JSON");
        let block = zstd::bulk::compress(&text, 3).expect("compressed");
        let sizes = [block.len() as u32, text.len() as u32].map(u32::to_le_bytes).concat();
        // Behind the rest of the file, with the option that names its place changed.
        let mut with_note = part.clone();
        let option = (place as u64).to_le_bytes();
        let at = part.windows(8).position(|bytes| bytes == option).expect("the option of the note");
        with_note[at..at + 8].copy_from_slice(&(part.len() as u64).to_le_bytes());
        with_note[at + 8..at + 16].copy_from_slice(&(8 + block.len() as u64).to_le_bytes());
        with_note.extend([sizes, block].concat());
        assert!(with_note.len() < 1_000_000, "{} bytes", with_note.len());
        std::fs::write(folder.join("x.dat"), with_note).expect("written");
        let commands: &[&[&str]] = match more {
            0 | 1000 => &[&["fairness", "x.dat"]],
            _ => &[&["fairness", "x.dat"], &["report", "x.dat", "-o", "report"]],
        };
        for arguments in commands {
            let stderr = words(&bounded(&folder, arguments));
            assert_eq!(stderr.contains("more tasks than a part can note"), is_lost, "{more}: {stderr}");
        }
    }
}

/// A specification of 231 kB with one regular expression 12,000 times, and one with as many different ones: the first is drawn, the other
/// refused, and neither takes more than the file.
#[test]
#[ignore = "takes long; .ci/run runs it"]
fn regular_expressions_of_a_specification_are_bounded() {
    let folder = scratch("regexes");
    std::fs::copy(root().join("tests/fixtures/affine.dat"), folder.join("x.dat")).expect("copied");
    let points = |of: &dyn Fn(usize) -> String| {
        let condition = |point: usize| {
            let one = |nth| format!("text =~ '{}'", of(200 * point + nth));
            (0..200).map(one).collect::<Vec<_>>().join(" or ")
        };
        let point =
            |nth| format!("[[point]]\nevent = \"sched:sched_switch\"\nwhere = \"\"\"{}\"\"\"\n", condition(nth));
        (0..60).map(point).collect::<String>()
    };
    let same = points(&|_| r"\\w{9}".to_owned());
    assert!(same.len() > 230_000, "{} bytes", same.len());
    std::fs::write(folder.join("same.toml"), same).expect("written");
    std::fs::write(folder.join("many.toml"), points(&|nth| format!("{nth}."))).expect("written");
    let commands = |name| {
        [
            vec!["plot", "--explain", name],
            vec!["plot", name, "x.dat", "-o", "x.svg"],
            vec!["cut", "x.dat", "-o", "part.dat", "--plot", name],
        ]
    };
    for arguments in commands("same.toml") {
        let stderr = words(&bounded(&folder, &arguments));
        assert!(!stderr.contains("too large"), "{arguments:?}: {stderr}");
    }
    for arguments in commands("many.toml") {
        let stderr = words(&bounded(&folder, &arguments));
        assert!(stderr.contains("too large together"), "{arguments:?}: {stderr}");
    }
}

/// Two tasks that alternate beside a thousand waiting ones, two million times: a pick costs a few steps, not the queue.
#[test]
#[ignore = "takes long; .ci/run runs it"]
fn picks_beside_a_long_queue_are_bounded() {
    let folder = scratch("picks-queue");
    std::fs::write(folder.join("x.dat"), unpacked("picks-beside-a-queue.dat.zst")).expect("written");
    bounded(&folder, &["picks", "x.dat"]);
}

/// A file without an end, and one that no program writes to, wherever a command reads one.
#[test]
fn files_beside_a_trace_end() {
    let folder = scratch("side-files");
    std::fs::copy(root().join("tests/fixtures/hackbench.dat"), folder.join("x.dat")).expect("copied");
    std::fs::copy(root().join("tests/fixtures/hackbench.dat"), folder.join("y.dat")).expect("copied");
    assert!(Command::new("mkfifo").arg(folder.join("fifo")).status().expect("mkfifo").success());
    std::os::unix::fs::symlink("fifo", folder.join("y.machine.json")).expect("a link");
    for file in ["/dev/zero", "fifo"] {
        let commands: [&[&str]; 6] = [
            &["info", file],
            &["workcons", "x.dat", "--topology", file],
            &["schedstat", file, file, "--time", "1"],
            &["plot", file, "x.dat"],
            &["compare", "--base", file, "--new", file],
            &["view", "x.dat", "--export", "page", "--index", file],
        ];
        for arguments in commands {
            let Ran { code, stderr, .. } = schedviz_in(&folder, arguments);
            assert_eq!(code, Some(1), "{arguments:?}: {stderr}");
            assert!(stderr.contains(file), "{arguments:?}: {stderr}");
        }
    }
    let stderr = words(&bounded(&folder, &["workcons", "y.dat"]));
    assert!(stderr.contains("y.machine.json is left out: a pipe that no program writes to"), "{stderr}");
}

/// A pipe with a writer is read as a file is.
#[test]
fn a_topology_can_come_from_a_pipe() {
    let folder = scratch("piped-topology");
    std::fs::copy(root().join("tests/fixtures/hackbench.dat"), folder.join("x.dat")).expect("copied");
    std::fs::write(folder.join("lscpu"), "# CPU,Core,Socket,Node\n0,0,0,0\n1,1,0,1\n2,2,0,0\n3,3,0,1\n")
        .expect("written");
    let program = env!("CARGO_BIN_EXE_schedviz");
    let run = |topology: &str| {
        let script = format!("'{program}' workcons x.dat --topology {topology}");
        let output = Command::new("bash").args(["-c", &script]).current_dir(&folder).output().expect("bash");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert_eq!(run("<(sleep 0.1; cat lscpu)").lines().nth(1), run("lscpu").lines().nth(1));
}

/// Ten thousand switches, each with a stack of 200 functions that no other has: each function is looked up once, and each stack kept once.
#[test]
#[ignore = "takes long; .ci/run runs it"]
fn deep_stacks_are_bounded() {
    let folder = scratch("deep-stacks");
    let file = with_deep_stacks(10_000, 200);
    assert!(file.len() < 1_000_000, "{} bytes", file.len());
    std::fs::write(folder.join("x.dat"), file).expect("written");
    let commands: [(u64, &[&str]); 7] = [
        (WITH_ROOM, &["offcpu", "x.dat", "--json", "--threads", "16"]),
        (WITH_ROOM, &["offcpu", "x.dat", "-o", "x.svg"]),
        (WITH_ROOM, &["stepper", "x.dat", "-o", "x.svg", "--max", "@2ms"]),
        (WITH_ROOM, &["latency", "x.dat", "--by", "stack", "--format", "json", "-o", "x.json"]),
        (WITH_ROOM, &["why", "x.dat", "--by", "stack"]),
        (WITH_ROOM, &["view", "x.dat", "--export", "page"]),
        (MOST, &["report", "x.dat", "-o", "report", "--threads", "16"]),
    ];
    for (most, arguments) in commands {
        bounded_by(most, &folder, arguments);
    }
    // Stacks whose names have no room are one row, and each switch-out is in one.
    let text = std::fs::read_to_string(folder.join("x.json")).expect("a report");
    let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let rows = report["rows"].as_array().expect("rows");
    assert!((900..1_000).contains(&rows.len()), "{} rows", rows.len());
    assert!(rows.iter().any(|row| row["group"]["stack"] == serde_json::json!(["(others)"])), "no row of the others");
}

/// A trace in which a task leaves its CPU `number` times, each time with a stack of its own of this many frames.
fn with_deep_stacks(number: u64, frames: u64) -> Vec<u8> {
    const STACK: u16 = 4;
    const FIRST: u64 = 0xffff_ffff_8100_0000;
    let functions = 4_000;
    let symbols = (0..functions).map(|nth| format!("{:x} t function_{nth:0>60}\n", FIRST + 16 * nth));
    let builder = TraceBuilder {
        compression: testkit::Compression::Zstd,
        compress_sections: true,
        kallsyms: symbols.collect(),
        cpu_count: 1,
        ..TraceBuilder::default()
    };
    let layout = builder.layout();
    let callers = "\tfield:int size;\toffset:8;\tsize:4;\tsigned:1;\n\tfield:unsigned long caller[8];\toffset:16;\tsize:64;\tsigned:0;";
    let formats = vec![("ftrace".to_owned(), layout.format(STACK, "kernel_stack", callers))];
    let task = |pid: i32| TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(b"deep") };
    let idle = TaskRef { pid: Pid::IDLE, prio: 120, comm: Comm::new(b"swapper/0") };
    let mut ring = builder.ring();
    for nth in 0..number {
        let mut put = |more: u64, pid: i32, kind: EventKind| {
            let event = SchedEvent { ts: Ts((1_000 * nth + more) as i64), cpu: Cpu(0), pid: Pid(pid), flags: 0, kind };
            ring.event(event.ts.0 as u64, &layout.payload(&event).expect("an event that can be written"));
        };
        put(100, 0, EventKind::Wakeup { task: task(7), target: Cpu(0) });
        put(200, 0, EventKind::Switch { prev: idle, state: PrevState::RUNNABLE, next: task(7) });
        put(300, 7, EventKind::Switch { prev: task(7), state: PrevState::asleep(1), next: idle });
        let mut stack = layout.bare(STACK, 7);
        stack.extend((frames as u32).to_le_bytes());
        stack.resize(16, 0);
        // The number of the stack decides the outermost frames; the others are the same ones in turn.
        let own = [nth % functions, nth / functions];
        let frame = |place: u64| own.get((frames - 1 - place) as usize).copied().unwrap_or(place % functions);
        (0..frames).for_each(|place| stack.extend((FIRST + 16 * frame(place) + 5).to_le_bytes()));
        ring.event(1_000 * nth + 301, &stack);
    }
    let cpus = vec![(0, ring.finish())];
    let buffer = testkit::Buffer { name: String::new(), clock: builder.clock.clone(), page_size: 0, cpus };
    TraceBuilder { formats, buffers: vec![buffer], ..builder }.build()
}

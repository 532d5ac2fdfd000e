//! The command line: what a user sees when all is well, and when it is not.

use crate::support::{fixture, schedviz, scratch};
use sched::{Comm, Cpu, EventKind, Pid, PrevState, SchedEvent, TaskRef, Ts};
use testkit::TraceBuilder;

fn path(name: &str) -> String {
    fixture(name).to_str().expect("a path").to_owned()
}

#[test]
fn the_default_output_is_named_after_the_trace_and_written_here() {
    let folder = scratch("default");
    let output = crate::support::schedviz_in(&folder, &["dat2graph", &path("affine.dat")]).success();
    assert!(output.stdout.is_empty());
    let written = std::fs::read(folder.join("affine.dat2graph.pdf")).expect("a figure");
    assert!(written.starts_with(b"%PDF"));
    assert_eq!(std::fs::read_dir(&folder).expect("a folder").count(), 1, "nothing else is left there");
}

/// The packages have the server for assistants; a build without it says so.
#[cfg(not(feature = "mcp"))]
#[test]
fn a_build_without_the_server_says_how_to_have_it() {
    let mut command = std::process::Command::new(crate::support::built_program());
    let ran = command.args(["mcp", &path("")]).stdin(std::process::Stdio::null()).output().expect("the program runs");
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.code() == Some(1) && errors.contains("--features mcp"), "{errors}");
}

#[test]
fn errors_say_what_to_do() {
    let absent = "/no/such/trace.dat".to_owned();
    for (arguments, words) in [
        (vec!["dat2graph", &absent], vec!["/no/such/trace.dat", "No such file"]),
        (vec!["dat2graph", &path("clock-x86-tsc.dat")], vec!["x86-tsc", "--clock-hz", "-C mono"]),
        (vec!["dat2graph", &path("affine.dat"), "--min", "1.5", "--max", "1"], vec!["the window is empty"]),
        (vec!["dat2graph", &path("affine.dat"), "--min", "1000"], vec!["outside of the trace"]),
        (vec!["dat2graph", &path("affine.dat"), "--min", "soon"], vec!["--min", "\"soon\"", "150ms"]),
        (vec!["dat2graph", &path("affine.dat"), "--cpus", "90"], vec!["none of the CPUs 90", "0-3"]),
        (vec!["dat2graph", &path("affine.dat"), "--cpus", "x"], vec!["0-15,32"]),
        (vec!["dat2graph", &path("affine.dat"), "--order", "node"], vec!["--topology"]),
        (vec!["dat2graph", &path("affine.dat"), "--events", "nope:*"], vec!["nope:*", "schedviz info"]),
        (vec!["dat2graph", &path("affine.dat"), "-o", "x.doc"], vec![".pdf, .svg", "--format"]),
        (vec!["dat2graph", &path("affine.dat"), "--tasks", "("], vec!["--tasks", "unclosed group"]),
        (vec!["dat2graph", &path("affine.dat"), "-o", "/no/such/folder/x.pdf"], vec!["/no/such/folder/x.pdf"]),
        (vec!["dat2graph", &path("affine.dat"), "--topology", &path("affine.dat")], vec!["affine.dat", "lscpu -e -J"]),
        (vec!["dat2graph", &path("affine.dat"), "--topology", "\u{1b}[31m"], vec!["\\x1b[31m: No such file"]),
        (vec!["dat2graph", &path("affine.dat"), "--clock", "monotonic"], vec!["possible values: local", "'mono'"]),
        (vec!["dat2graph", &path("affine.dat"), "--clock-hz", "1000"], vec!["counts nanoseconds", "--clock-hz"]),
        (vec!["dat2graph", &path("affine.dat"), "-o", "-", "--format", "png", "--dpi", "1e9"], vec!["dots per inch"]),
        (vec!["dat2graph", &path("affine.dat"), "--target", "nobody"], vec!["--target nobody", "fairness"]),
        (
            vec!["dat2graph", &path("affine.dat"), "--pid", "99999,99998"],
            vec!["--pid 99999,99998: there is no such task"],
        ),
        (vec!["workcons", &path("affine.dat"), "--tasks", "^nobody", "--max-violation", "5"], vec!["--tasks ^nobody"]),
        (
            vec!["latency", &path("affine.dat"), "--exclude-tasks", "."],
            vec!["--exclude-tasks .: there is no such task in affine.dat"],
        ),
        (vec!["utilization", &path("affine.dat"), "--tasks", "nobody"], vec!["--tasks nobody: there is no such task"]),
        (
            vec!["events", &path("affine.dat"), "--list", "--tasks", "nobody"],
            vec!["--tasks nobody: there is no such task"],
        ),
        (vec!["workcons", &path("affine.dat"), "-o", "x.doc"], vec!["x.doc", ".pdf"]),
        (vec!["workcons", "--group", "a=/no/such/*.dat"], vec!["/no/such"]),
        (vec!["workcons", "--group", "a"], vec!["NAME=FILE"]),
        (vec!["workcons", &path("affine.dat"), "--min-episode", "x"], vec!["--min-episode", "100us"]),
        (vec!["running-waiting", &path("affine.dat"), "--per", "node"], vec!["--topology"]),
        (vec!["info", &path("README.md")], vec!["not a trace.dat"]),
        (vec!["info", &path("affine.dat"), "--buffer", "nope"], vec!["no buffer named \"nope\"", "top"]),
    ] {
        let output = schedviz(&arguments);
        assert_eq!(output.code, Some(1), "{arguments:?}: {}", output.stderr);
        for word in words {
            assert!(output.stderr.contains(word), "{arguments:?}: no {word:?} in {}", output.stderr);
        }
        assert!(!output.stderr.contains("panicked"));
    }
    // Not 2, which a regression job would take for an exceeded limit.
    for wrong in [vec!["dat2graph"], vec!["workcons", "x", "--max-violation", "much"], vec!["nope"], vec![]] {
        let ran = schedviz(&wrong);
        assert!(
            ran.code == Some(1) && (ran.stderr.contains("--help") || ran.stderr.contains("Usage")),
            "{wrong:?}: {:?} {}",
            ran.code,
            ran.stderr
        );
    }
    assert_eq!(schedviz(&["--version"]).code, Some(0));
}

#[test]
fn a_topology_of_another_machine_is_pointed_out() {
    let topology = path("hackbench.cpus.txt");
    let reported = |trace: &str, topology: &str| {
        let drawn =
            schedviz(&["dat2graph", &path(trace), "--topology", topology, "-o", "-", "--format", "svg"]).success();
        (drawn.stderr.clone(), drawn.text())
    };
    let (own, _) = reported("hackbench.dat", &topology);
    assert!(!own.contains("topology"), "{own}");
    // Eight CPUs, and a trace of four.
    let (message, figure) = reported("affine.dat", &topology);
    for text in [&message, &figure] {
        assert!(text.contains("The topology has CPUs 4-7, but the trace was recorded on 4"), "{message}");
    }
    let folder = scratch("topology");
    let half = folder.join("half.txt");
    std::fs::write(&half, "cpu0 socket=0\ncpu1 socket=0\ncpu2 socket=1\ncpu3 socket=1\n").expect("written");
    let (message, _) = reported("hackbench.dat", half.to_str().expect("a path"));
    assert!(message.contains("hackbench.dat: The topology lacks CPUs 4-7 of the trace"), "{message}");
}

/// A task that is woken and never runs, of which the recorder has no name, can be asked for.
#[test]
fn who_starves_is_a_task_of_the_trace() {
    let task = |pid: i32, name: &str| TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(name.as_bytes()) };
    let (idle, hog, starved) = (task(0, "swapper/0"), task(7, "hog"), task(42, "starved"));
    let event = |ts, pid: i32, kind| SchedEvent { ts: Ts(ts), cpu: Cpu(0), pid: Pid(pid), flags: 0, kind };
    let events = [
        event(1_000, 0, EventKind::Switch { prev: idle, state: PrevState::RUNNABLE, next: hog }),
        event(2_000, 7, EventKind::Wakeup { task: starved, target: Cpu(0) }),
        event(9_000, 7, EventKind::Switch { prev: hog, state: PrevState::asleep(1), next: idle }),
    ];
    let folder = scratch("starved");
    let trace = folder.join("starved.dat");
    std::fs::write(&trace, TraceBuilder::default().events(&events).build()).expect("written");
    let trace = trace.to_str().expect("a path");
    for chosen in [["--pid", "42"], ["--tasks", "^starved$"]] {
        schedviz(&[&["latency", trace, "-q"], &chosen[..]].concat()).success();
    }
    assert_eq!(schedviz(&["latency", trace, "-q", "--pid", "43"]).code, Some(1));
}

/// An absent level of the topology is neither a group nor a distance of none.
#[test]
fn a_topology_of_sockets_alone_tells_no_caches() {
    let folder = scratch("sockets");
    let sockets = folder.join("sockets.txt");
    std::fs::write(&sockets, "cpu0 socket=0\ncpu1 socket=0\ncpu2 socket=1\ncpu3 socket=1\n").expect("written");
    let trace = path("affine.dat");
    let run = |arguments: &[&str]| {
        let topology = ["--topology", sockets.to_str().expect("a path")];
        schedviz(&[&[arguments[0], &trace], &arguments[1..], &topology, &["-o", "-"]].concat())
    };
    for arguments in
        [["dat2graph", "--order", "llc", "--format", "svg"], ["running-waiting", "--per", "llc", "--format", "svg"]]
    {
        let refused = run(&arguments);
        let message = &refused.stderr;
        assert!(refused.code == Some(1) && message.contains("llc: the topology has no last-level caches"), "{message}");
    }
    for arguments in [
        ["dat2graph", "--color-by", "node", "--format", "svg"],
        ["running-waiting", "--per", "node", "--format", "svg"],
    ] {
        run(&arguments).success();
    }
    let refused = schedviz(&["dat2graph", &trace, "--color-by", "node", "-o", "-", "--format", "svg"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("--color-by node needs the machine's topology"));
    let text = run(&["workcons", "--format", "txt"]).success().text();
    assert!(text.contains("nearest idle CPU: in the same node ") && !text.contains("LLC"), "{text}");
    let json = run(&["workcons", "--format", "json"]).success().text();
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let by_distance = json["runs"][0]["violation"]["by_distance"].as_object().expect("distances");
    assert_eq!(by_distance.keys().collect::<Vec<_>>(), ["machine", "node"]);
    let json = run(&["migrations", "--format", "json"]).success().text();
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let cells = json["causes"].as_array().expect("causes");
    let has_distance = |cell: &serde_json::Value| -> Vec<bool> {
        cell["by_distance"].as_array().expect("distances").iter().map(serde_json::Value::is_u64).collect()
    };
    assert!(
        !cells.is_empty() && cells.iter().all(|cell| has_distance(cell) == [false, false, true, true]),
        "{cells:?}"
    );
}

#[test]
fn what_a_killed_recorder_left_is_pointed_out() {
    let folder = scratch("killed");
    std::fs::write(folder.join("trace.dat.cpu0"), [0; 4096]).expect("written");
    let refused = crate::support::schedviz_in(&folder, &["info", "trace.dat"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("`trace-cmd restore -o trace.dat $(ls -v trace.dat.cpu*)`"), "{}", refused.stderr);
}

#[test]
fn a_clock_of_cycles_can_be_given_its_frequency() {
    let trace = path("clock-x86-tsc.dat");
    let output = schedviz(&["dat2graph", &trace, "--clock-hz", "2000000000", "--json"]).success();
    assert!(output.text().contains("\"schedviz/dat2graph/1\""));
}

#[test]
fn an_instance_can_be_chosen_and_all_are_read_by_default() {
    let trace = path("instance.dat");
    let info = schedviz(&["info", "--json", &trace]).success().text();
    assert!(info.contains("\"name\": \"waker\""));
    assert!(schedviz(&["dat2graph", &trace, "--json", "--buffer", "top"]).success().text().contains("busy_ns"));
    let output = schedviz(&["dat2graph", &trace, "--json", "--events", "sched:sched_waking"]).success().text();
    assert!(output.contains("\"event\": \"sched:sched_waking\""));
    assert!(!output.contains("\"count\": 0"), "events of the instance are marked");
}

#[test]
fn busy_idle_and_unknown_time_add_up_to_the_window() {
    let output =
        schedviz(&["dat2graph", "--json", &path("hackbench-7.2.dat"), "--min", "0.2", "--max", "0.5"]).success();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let n = |v: &serde_json::Value, key: &str| v[key].as_u64().expect("a number");
    assert_eq!(n(&report, "to_ns") - n(&report, "from_ns"), 300_000_000);
    let lanes = report["lanes"].as_array().expect("lanes");
    assert_eq!(lanes.len(), 4);
    for lane in lanes {
        assert_eq!(n(lane, "busy_ns") + n(lane, "idle_ns") + n(lane, "unknown_ns"), 300_000_000);
    }
    let ran: u64 = report["tasks"].as_array().expect("tasks").iter().map(|t| n(t, "run_ns")).sum();
    assert_eq!(ran, lanes.iter().map(|l| n(l, "busy_ns")).sum::<u64>());
}

#[test]
fn every_colouring_draws() {
    let (trace, topology) = (path("hackbench-v6.dat"), path("hackbench-v6.cpus.txt"));
    for by in ["pid", "command", "parent", "node", "class"] {
        let arguments = [
            "dat2graph",
            &trace,
            "--topology",
            &topology,
            "--color-by",
            by,
            "--forked",
            "-o",
            "-",
            "--format",
            "svg",
            "-q",
        ];
        let svg = schedviz(&arguments).success().text();
        assert!(svg.contains("hackbench-v6.dat") && svg.contains("socket 3"), "{by}");
    }
}

#[test]
fn help_shows_what_to_type() {
    for (arguments, words) in [
        (vec!["--help"], vec!["schedviz record -- make", "schedviz dat2graph trace.dat"]),
        (vec!["dat2graph", "--help"], vec!["--color-by", "--min", "Examples:", "--topology"]),
        (vec!["info", "--help"], vec!["--json"]),
    ] {
        let text = schedviz(&arguments).success().text();
        words.iter().for_each(|w| assert!(text.contains(w), "{arguments:?}: no {w}"));
        assert!(text.lines().all(|l| l.chars().count() <= 110), "{arguments:?}: too wide");
    }
}

/// A recording without a command is asked for findings; a command is one whatever files there are.
#[test]
fn a_recording_alone_is_asked_for_findings() {
    let folder = scratch("alone");
    std::fs::copy(path("affine.dat"), folder.join("a b.dat")).expect("copied");
    std::fs::copy(path("affine.dat"), folder.join("info")).expect("copied");
    let run = |arguments: &[&str]| crate::support::schedviz_in(&folder, arguments);
    let found = run(&["findings", "a b.dat"]).success().text();
    for arguments in
        [&["a b.dat"][..], &["-q", "a b.dat"], &["a b.dat", "-q"], &["--", "a b.dat"], &["--threads", "1", "a b.dat"]]
    {
        assert_eq!(run(arguments).success().text(), found, "{arguments:?}");
    }
    let window = ["findings", "--json", "a b.dat", "--min", "0.1"];
    assert_eq!(run(&window[1..]).success().text(), run(&window).success().text());
    let described = run(&["info", "a b.dat"]).success().text();
    assert_eq!(
        run(&["info", "info"]).success().text().replace("info", "a b.dat"),
        described.replace("info", "a b.dat")
    );
    let unquoted = |text: &str| text.replace('\'', "");
    assert_eq!(unquoted(&run(&["./info"]).success().text()).replace("./info", "a b.dat"), unquoted(&found));
    for (arguments, words) in [
        (&["info"][..], "required arguments"),
        (&["infos"], "a similar subcommand exists: 'info'"),
        (&["none.dat"], "none.dat is no file here either"),
        (&["./"], "./ is a folder; name a command before it"),
        (&["-q", "info", "a b.dat"], "unexpected argument '-q'"),
        (&["a b.dat", "a b.dat"], "to compare recordings: schedviz compare --base 'a b.dat' --new 'a b.dat'"),
    ] {
        let refused = run(arguments);
        assert!(refused.code == Some(1) && refused.stderr.contains(words), "{arguments:?}: {}", refused.stderr);
    }
    assert_eq!(run(&["--version", "a b.dat"]).success().text(), run(&["--version"]).success().text());
}

#[test]
fn manuals_and_completions_are_written() {
    let folder = scratch("manual");
    schedviz(&["manual", folder.to_str().expect("a path")]).success();
    for name in ["schedviz.1", "schedviz-info.1", "schedviz-dat2graph.1", "schedviz.bash", "_schedviz", "schedviz.fish"]
    {
        assert!(folder.join(name).metadata().expect(name).len() > 100);
    }
}

#[test]
fn whoever_stops_reading_is_not_told_of_an_error() {
    use std::io::Read;
    use std::process::{Command, Stdio};
    let trace = path("hackbench.dat");
    for arguments in [vec!["events", "--list", &trace], vec!["dat2graph", "--json", &trace], vec!["latency", &trace]] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_schedviz"))
            .args(&arguments)
            .arg("-q")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program runs");
        let mut some = [0; 10];
        child.stdout.take().expect("a pipe").read_exact(&mut some).expect("the beginning");
        let output = child.wait_with_output().expect("its end");
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert!(output.stderr.is_empty(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn every_command_gives_its_numbers_and_its_text_in_one_way() {
    let folder = scratch("forms");
    let trace = path("affine.dat");
    let run = |arguments: &[&str]| crate::support::schedviz_in(&folder, arguments);
    let commands: [&[&str]; 10] = [
        &["dat2graph"],
        &["running-waiting"],
        &["workcons"],
        &["stepper"],
        &["events"],
        &["migrations"],
        &["latency"],
        &["utilization"],
        &["fairness"],
        &["info"],
    ];
    for command in commands {
        let name = command[0];
        let text = run(&[command, &[&trace, "--json"]].concat()).success().text();
        let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let unique = serde_json::to_string_pretty(&json).expect("JSON");
        assert_eq!(text.lines().count(), unique.lines().count(), "{name}: a key is there twice");
        let schema = json["schema"].as_str().expect("a schema");
        let document = if name == "migrations" { "balance" } else { name };
        assert_eq!(schema.rsplit_once('/').expect("a version").0, format!("schedviz/{document}"));
        let diagnostics = if name == "info" { &json["diagnostics"] } else { &json["trust"] };
        assert!(name == "workcons" || diagnostics.is_object() || diagnostics.is_array(), "{name}: {diagnostics}");
    }
    for command in ["workcons", "stepper", "events", "latency", "utilization", "fairness"] {
        let printed = match command {
            "stepper" => run(&["stepper", "--text", &trace]).success().stdout,
            _ => run(&[command, &trace]).success().stdout,
        };
        let ran = run(&[command, &trace, "-o", "text.txt"]).success();
        let verb = if command == "workcons" { "wrote" } else { "replaced" };
        let written = ran.stderr.contains(&format!("{verb} text.txt"));
        assert!(ran.stdout.is_empty() && written, "{command}: {}", ran.stderr);
        assert!(printed.len() > 100 && std::fs::read(folder.join("text.txt")).expect("a text") == printed, "{command}");
        run(&[command, &trace, "--format", "svg"]).success();
        assert!(folder.read_dir().expect("it").flatten().any(|e| e.file_name().to_string_lossy().ends_with(".svg")));
    }
    let listed = run(&["events", "--list", &trace]).success().stdout;
    assert!(run(&["events", "--list", &trace, "-o", "-"]).success().stdout == listed);
    assert!(run(&["events", "--list", &trace, "-o", "list.txt"]).success().stdout.is_empty());
    assert!(std::fs::read(folder.join("list.txt")).expect("a list") == listed);
    let ran = run(&["info", &trace]).success().stdout;
    assert!(run(&["info", &trace, "-o", "info.txt", "-q"]).success().stdout.is_empty());
    assert!(std::fs::read(folder.join("info.txt")).expect("a text") == ran);
    run(&["info", &trace, "-o", "info.json", "-q"]).success();
    assert!(
        std::fs::read(folder.join("info.json")).expect("JSON") == run(&["info", &trace, "--json"]).success().stdout
    );
    for more in [["-o", "list.pdf"], ["-q", "--json"]] {
        let refused = run(&[&["events", "--list", &trace], more.as_slice()].concat());
        assert!(refused.code == Some(1) && refused.stderr.contains(".txt"), "{}", refused.stderr);
    }
}

#[test]
fn a_full_disk_leaves_nothing_half_written() {
    use std::process::{Command, Stdio};
    let trace = path("hackbench.dat");
    let program = env!("CARGO_BIN_EXE_schedviz");
    let full = std::fs::File::options().write(true).open("/dev/full").expect("/dev/full");
    let output = Command::new(program).args(["workcons", "-q", &trace]).stdout(Stdio::from(full)).output();
    let output = output.expect("the program runs");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && message.contains("No space left"), "{message}");
    // Files may not grow beyond a few hundred bytes: the first part must not remain.
    let folder = scratch("full");
    for arguments in ["dat2graph {} -o figure.pdf", "report {} -o here", "events {} --list -o list.txt"] {
        let line = format!(
            "trap '' XFSZ; ulimit -f 1; exec '{program}' {} -q",
            arguments.replace("{}", &format!("'{trace}'"))
        );
        let output = Command::new("sh").args(["-c", &line]).current_dir(&folder).output().expect("a shell");
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(1) && message.contains("File too large"), "{line}: {message}");
        let name = arguments.rsplit(' ').next().expect("a name");
        assert!(message.contains(name), "{line}: which file? {message}");
    }
    let left: Vec<_> = std::fs::read_dir(&folder).expect("a folder").flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

/// A recording whose tasks, and one of whose events, have names that would move a terminal's cursor.
fn hostile() -> Vec<u8> {
    let mut bytes = std::fs::read(fixture("hackbench-v6.dat")).expect("a fixture");
    let names: [(&[u8], &[u8]); 2] =
        [(b"hackbench\0", b"\x1b[31m\nab<\0"), (b"name: sched_process_exit\n", b"name: sched_pro\x1b[2J_exit\n")];
    for (name, other) in names {
        assert_eq!(name.len(), other.len());
        let mut replaced = 0;
        for at in 0..bytes.len() - name.len() {
            if bytes[at..].starts_with(name) {
                bytes[at..at + name.len()].copy_from_slice(other);
                replaced += 1;
            }
        }
        assert!(replaced > 0, "{name:?}");
    }
    bytes
}

#[test]
fn names_cannot_move_the_cursor() {
    let folder = scratch("hostile");
    let trace = folder.join("hostile.dat");
    std::fs::write(&trace, hostile()).expect("written");
    let trace = trace.to_str().expect("a path");
    let (mut named, mut outputs) = (0, 0);
    for command in [
        &["info"][..],
        &["workcons"],
        &["latency"],
        &["latency", "--by", "task"],
        &["fairness", "--group-by", "task"],
        &["utilization"],
        &["running-waiting", "--format", "svg", "-o", "-"],
        &["dat2graph", "--format", "svg", "-o", "-"],
        &["dat2graph", "--json"],
        &["migrations", "--json"],
        &["events", "--list"],
        &["events", "--events", "sched_switch", "--near", "1ms"],
        &["events", "--format", "csv", "-o", "-"],
        &["events", "--events", "*", "--match", "comm=(?<comm>.*) pid", "--json"],
        &["stepper", "--text", "--steps", "200"],
        &["workcons", "--json"],
        &["stepper", "--json"],
    ] {
        let ran = schedviz(&[command, &[trace]].concat()).success();
        for output in [String::from_utf8(ran.stdout).expect("UTF-8"), ran.stderr] {
            let odd = output.find(|c: char| c.is_control() && c != '\n' && c != '\t');
            assert_eq!(odd.map(|at| &output[at.saturating_sub(60)..]), None, "{command:?}");
            named += u32::from(output.contains("x1b[31m"));
            outputs += u32::from(!output.is_empty());
        }
    }
    assert!(named >= 10 && outputs >= 17, "{named} of {outputs} name the tasks");
}

//! Completions of values, as the scripts of the shells ask for them, and in bash itself.

use crate::support::{fixture, schedviz_in, scratch};
use std::process::Command;

/// The lines of `complete` for these words, in a folder.
fn values(folder: &std::path::Path, words: &[&str]) -> Vec<String> {
    let ran = schedviz_in(folder, &[&["complete", "zsh", "--"], words].concat());
    assert_eq!(ran.stderr, "", "{words:?}");
    let text = ran.text();
    text.lines().map(ToOwned::to_owned).collect()
}

#[test]
fn values_are_those_of_the_recording() {
    let folder = scratch("completions");
    std::fs::copy(fixture("hackbench.dat"), folder.join("a b.dat")).expect("copied");
    std::fs::write(folder.join("notes.txt"), "no recording").expect("written");
    let values = |words: &[&str]| values(&folder, words);
    // Those of `trace-cmd report`, as the runs of `list` have them.
    let runs = schedviz_in(&folder, &["list", "-q", "--runs", "a b.dat"]).success().text();
    let mut pids: Vec<u32> =
        runs.lines().skip(3).filter_map(|line| line.split(['[', ']']).nth(3)?.parse().ok()).collect();
    pids.sort_unstable();
    pids.dedup();
    let completed = values(&["latency", "a b.dat", "--pid", ""]);
    let numbers: Vec<u32> = completed.iter().filter_map(|line| line.split('\t').next()?.parse().ok()).collect();
    assert!(numbers.is_sorted() && pids.iter().all(|pid| numbers.contains(pid)), "{pids:?} {numbers:?}");
    assert!(completed.contains(&"330\thackbench".to_owned()), "{completed:?}");
    // A value may be behind `=`, or in a list; the file may come later, and another file may come first.
    assert_eq!(values(&["latency", "a b.dat", "--pid=330,331"]), ["--pid=330,331\thackbench"]);
    assert_eq!(values(&["plot", "notes.txt", "a b.dat", "--cpus", "0-6,7"]), ["0-6,7"]);
    assert_eq!(values(&["latency", "--topology", "a b.dat", "--pid", "330"]), [""; 0], "a topology is no recording");
    assert_eq!(values(&["list", "a b.dat", "--events", "sched:sched_migrate_task,sched:sched_sw"]).len(), 1);
    assert_eq!(values(&["path", "a b.dat", "--comm", "hack"]), ["hackbench"]);
    assert_eq!(values(&["dat2graph", "a b.dat", "--application", "comm:hack"]), ["comm:hackbench"]);
    assert_eq!(values(&["latency", "a b.dat", "--tasks", "^hack"]), ["^hackbench"]);
    // Origins with their waits in violation, as `why` sums them; a value of this option is behind `=` alone.
    let why = schedviz_in(&folder, &["why", "-q", "--json", "a b.dat"]).success().text();
    let why: serde_json::Value = serde_json::from_str(&why).expect("JSON");
    let rows = why["runs"][0]["waiting"]["rows"].as_array().expect("rows");
    let began: std::collections::BTreeSet<&str> = rows.iter().filter_map(|row| row["began"].as_str()).collect();
    assert!(began.len() > 2, "{began:?}");
    let origins: Vec<String> = began.iter().map(|origin| format!("--without={origin}")).collect();
    assert_eq!(values(&["whatif", "--without=", "a b.dat", "--without="]), origins);
    assert_eq!(values(&["whatif", "--without", "a b.dat", "--without=mov"]), ["--without=moved"]);
    assert_eq!(values(&["whatif", "a b.dat", "--without", ""]), [""; 0], "the next word is no value");
    // What has no values of a recording is left to the script.
    for words in [
        &["latency", "a b.dat", "--by", ""][..],
        &["latency", "none.dat", "--pid", ""],
        &["latency", "notes.txt", "--pid", ""],
        &["latency", "a b.dat", ""],
        &["record", "a b.dat", "--pid", ""],
        &["nonsense", ""],
        &[],
    ] {
        assert_eq!(values(words), [""; 0], "{words:?}");
    }
}

/// Names from files come into the shell as text alone: no control characters, and nothing that bash would run.
#[test]
fn names_are_no_commands_of_the_shell() {
    use sched::{Comm, Cpu, EventKind, Pid, PrevState, SchedEvent, TaskRef, Ts};
    let folder = scratch("completions-names");
    let task = |pid: i32, comm: &[u8]| TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(comm) };
    let switch = |ts, prev, next| SchedEvent {
        ts: Ts(ts),
        cpu: Cpu(0),
        pid: Pid(7),
        flags: 0,
        kind: EventKind::Switch { prev, state: PrevState::asleep(1), next },
    };
    let (first, second) = (task(7, b"$(touch x)"), task(8, b"\x1b[2J`id` 'a"));
    let trace = testkit::TraceBuilder::default().events(&[switch(1_000, first, second), switch(2_000, second, first)]);
    std::fs::write(folder.join("t.dat"), trace.build()).expect("written");
    let line = "schedviz path t.dat --comm ";
    let ran = schedviz_in(&folder, &["complete", "bash", "--", line, " =:"]).success().text();
    assert_eq!(ran, "\\$\\(touch\\ x\\)\n\\\\x1b\\[2J\\`id\\`\\ \\'a\n");
    assert_eq!(values(&folder, &["path", "t.dat", "--comm", "$"]), ["$(touch x)"]);
}

/// The script in bash: as readline calls it, with the line and its words.
#[test]
fn bash_completes_values_and_options() {
    let folder = scratch("completions-bash");
    std::fs::copy(fixture("hackbench.dat"), folder.join("a b.dat")).expect("copied");
    schedviz_in(&folder, &["manual", "man"]).success();
    let script = r#"
        source man/schedviz.bash
        try() {
            COMP_LINE=$1 COMP_POINT=${#1} COMP_TYPE=9
            COMP_WORDS=("${@:2}") COMP_CWORD=$(($# - 2)) COMPREPLY=()
            _schedviz_with_values "$2" "${!#}" "${COMP_WORDS[COMP_CWORD - 1]}"
            printf '%s|' "${COMPREPLY[@]}"
            echo
        }
        try 'schedviz latency "a b.dat" --pid 330' schedviz latency '"a b.dat"' --pid 330
        try 'schedviz latency a\ b.dat --pid 32' schedviz latency 'a\ b.dat' --pid 32
        try 'schedviz list "a b.dat" --events sched:sched_mi' schedviz list '"a b.dat"' --events sched : sched_mi
        try 'schedviz latency "a b.dat" --by pro' schedviz latency '"a b.dat"' --by pro
        try 'schedviz laten' schedviz laten
    "#;
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_schedviz")).parent().expect("its folder");
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
    let ran = Command::new("bash").args(["--norc", "-c", script]).current_dir(&*folder).env("PATH", path).output();
    let ran = ran.expect("bash");
    assert_eq!(String::from_utf8_lossy(&ran.stderr), "");
    let text = String::from_utf8(ran.stdout).expect("text");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 5, "{text}");
    assert_eq!(lines[0], "330|", "one value is inserted without its description");
    assert!(lines[1].contains("|321  hackbench|") || lines[1].starts_with("320  hackbench|"), "{text}");
    assert_eq!(
        &lines[2..],
        ["sched_migrate_task|", "process|", "latency|"],
        "what bash replaces begins behind the colon"
    );
}

/// Shells that are here read their scripts.
#[test]
fn shells_read_their_scripts() {
    let folder = scratch("completions-shells");
    schedviz_in(&folder, &["manual", "man"]).success();
    for (shell, file) in [("bash", "schedviz.bash"), ("zsh", "_schedviz"), ("fish", "schedviz.fish")] {
        let Ok(checked) = Command::new(shell).arg("-n").arg(folder.join("man").join(file)).output() else {
            eprintln!("skipped: no {shell}");
            continue;
        };
        assert!(checked.status.success() && checked.stderr.is_empty(), "{shell}: {checked:?}");
    }
}

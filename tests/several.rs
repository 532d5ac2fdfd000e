//! Several traces at once: measured side by side, reported in the given order.

use crate::support::{fixture, schedviz, scratch};
use serde_json::Value;

/// Recordings of different sizes, most of which have warnings, the largest first.
const RUNS: [&str; 6] =
    ["hackbench-v6.dat", "mask.dat", "unseen-wakeups-6.1.dat", "instance.dat", "hotplug.dat", "hackbench.dat"];

fn paths(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| fixture(name).to_str().expect("a path").to_owned()).collect()
}

fn with_threads(command: &[&str], files: &[String], threads: &str) -> (Option<i32>, String, String) {
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let ran = schedviz(&[command, &files, &["--threads", threads]].concat());
    (ran.code, ran.stderr.clone(), ran.text())
}

#[test]
fn results_and_messages_are_in_the_given_order_whatever_the_threads() {
    let files = paths(&RUNS);
    let (code, messages, json) = with_threads(&["workcons", "--json"], &files, "1");
    assert_eq!(code, Some(0), "{messages}");
    for threads in ["2", "5", "16"] {
        assert_eq!(with_threads(&["workcons", "--json"], &files, threads), (code, messages.clone(), json.clone()));
    }
    let report: Value = serde_json::from_str(&json).expect("JSON");
    let names: Vec<&str> =
        report["runs"].as_array().expect("runs").iter().filter_map(|r| r["trace"].as_str()).collect();
    assert_eq!(names, RUNS);
    // The messages of a trace stand together, in the order of the traces.
    let place = |line: &str| RUNS.iter().position(|name| line.starts_with(&format!("schedviz: {name}: ")));
    let places: Vec<usize> = messages.lines().map(|line| place(line).expect("a trace's message")).collect();
    assert!(places.is_sorted() && places.first() != places.last(), "{messages}");
    let why = |threads| with_threads(&["why", "--json"], &files, threads);
    assert_eq!(why("1"), why("6"));
    let groups = |threads| with_threads(&["compare", "--json", "--new", &files[0], "--base"], &files[1..], threads);
    assert_eq!(groups("1"), groups("6"));
    assert_eq!(groups("1").0, Some(0), "{}", groups("1").1);
}

#[test]
fn the_first_error_in_the_given_order_ends_the_command() {
    let folder = scratch("several");
    let [bad, worse] = ["bad.dat", "worse.dat"].map(|name| {
        std::fs::write(folder.join(name), "no trace at all").expect("written");
        folder.join(name).to_str().expect("a path").to_owned()
    });
    let mut files = paths(&["unseen-wakeups-6.1.dat", "hackbench.dat", "mask.dat"]);
    files.splice(1..1, [bad.clone(), worse]);
    let alone = with_threads(&["workcons"], &files, "1");
    assert_eq!(alone.0, Some(1));
    let (first, error) = (alone.1.lines().next().unwrap_or_default(), alone.1.lines().last().unwrap_or_default());
    assert!(first.starts_with("schedviz: unseen-wakeups-6.1.dat: ") && error.contains(&bad), "{}", alone.1);
    assert!(!alone.1.contains("mask.dat") && alone.2.is_empty(), "{}{}", alone.1, alone.2);
    for threads in ["2", "8"] {
        assert_eq!(with_threads(&["workcons"], &files, threads), alone);
    }
}

/// Returns the numbers of a metric of `compare`, by group.
fn metric(document: &Value, key: &str) -> Vec<Value> {
    let metrics = document["metrics"].as_array().expect("metrics");
    let at = metrics.iter().position(|metric| metric["key"] == key).expect("the metric");
    let groups = document["groups"].as_array().expect("groups");
    groups
        .iter()
        .flat_map(|group| group["runs"].as_array().expect("runs"))
        .map(|run| run["values"][at].clone())
        .collect()
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_slice(&schedviz(&[arguments, &["--json", "-q"]].concat()).success().stdout).expect("JSON")
}

#[test]
fn compare_chooses_tasks_as_the_commands_of_one_trace_do() {
    let [a, b] = ["hackbench.dat", "spmd-plus1.dat"].map(|name| fixture(name).to_str().expect("a path").to_owned());
    let choices: [&[&str]; 5] = [
        &[],
        &["--forked"],
        &["--waiters", "all", "--min", "20ms", "--max", "120ms"],
        &["--waiters", "application"],
        &["--exclude-tasks", "^kworker", "--forked", "--cpus", "0-3"],
    ];
    let mut seen = Vec::new();
    for choice in choices {
        let document = json(&[&["compare", "--base", &a, "--new", &b], choice].concat());
        let [violation, wakeup] = ["violation", "wakeup-p99"].map(|key| metric(&document, key));
        for (at, trace) in [&a, &b].into_iter().enumerate() {
            let workcons = json(&[&["workcons", trace], choice].concat());
            assert_eq!(violation[at], workcons["runs"][0]["violation"]["percent"], "{trace} {choice:?}");
            // `latency` has no --waiters, on which a latency does not depend.
            let waiters = choice.iter().position(|option| *option == "--waiters");
            let without = waiters.map_or(choice.to_vec(), |at| [&choice[..at], &choice[at + 2..]].concat());
            let latency = json(&[&["latency", trace], &without[..]].concat());
            let measures = latency["measures"].as_array().expect("measures");
            let of_wakeups = measures.iter().find(|measure| measure["measure"] == "wakeup").expect("wakeups");
            let ns = of_wakeups["p99_ns"].as_f64().expect("a time");
            assert_eq!(wakeup[at].as_f64(), Some(ns / 1e6), "{trace} {choice:?}");
        }
        seen.push((violation, wakeup));
    }
    assert!(seen[1..].iter().all(|numbers| *numbers != seen[0]), "each choice changes a number: {seen:?}");
}

#[test]
fn an_unknown_application_is_never_compared_as_zero() {
    let [unknown, known] =
        ["forked-unknown.dat", "hackbench.dat"].map(|name| fixture(name).to_str().expect("a path").to_owned());
    let arguments = ["compare", "--base", &known, "--new", &unknown, "--forked", "--fail-if", "violation>5%", "--json"];
    let ran = schedviz(&arguments);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    assert!(ran.stderr.contains("untrusted: violation: a group has no run with this metric"), "{}", ran.stderr);
    let messages = ran.stderr.matches("no figures of the selected tasks: the application is unknown").count();
    assert_eq!(messages, 1, "{}", ran.stderr);
    let document: Value = serde_json::from_slice(&ran.stdout).expect("JSON");
    for key in ["violation", "cpu-time-lost", "violation-1ms", "wakeup-p50", "wakeup-max", "wait-p99"] {
        let values = metric(&document, key);
        assert!(values[0].is_number() && values[1].is_null(), "{key}: {values:?}");
    }
    let [of_base, of_new] = ["busy", "migrations"].map(|key| metric(&document, key));
    assert!(of_base.iter().chain(&of_new).all(Value::is_number), "the CPUs are known");
    let notes = document["notes"].to_string();
    for what in ["violation", "latency"] {
        let note = format!("new: forked-unknown.dat has no {what}: the application is unknown");
        assert!(notes.contains(&note), "{notes}");
    }
    let verdict = &document["verdicts"][0];
    assert_eq!(
        (&verdict["verdict"], &verdict["metric"], &verdict["group"]),
        (&"untrusted".into(), &"violation".into(), &"new".into())
    );
    let group = format!("a={unknown}");
    let ran = schedviz(&["workcons", "--group", &group, "--forked", "--max-violation", "5", "--json", "-q"]);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    let document: Value = serde_json::from_slice(&ran.stdout).expect("JSON");
    assert!(document["groups"][0]["percent"].is_null() && document["runs"][0]["violation"].is_null(), "{document}");
}

#[test]
fn groups_take_windows_topology_and_tasks() {
    let [a, b, cpus] = ["hackbench.dat", "spmd-plus1.dat", "hackbench.cpus.txt"]
        .map(|name| fixture(name).to_str().expect("a path").to_owned());
    let choice =
        ["--min", "20ms", "--max", "120ms", "--topology", &cpus, "--waiters", "all", "--exclude-tasks", "^trace-cmd"];
    for command in ["workcons", "why"] {
        let alone = |trace: &str| json(&[&[command, trace], &choice[..]].concat())["runs"][0].clone();
        let [group, other] = [format!("a={a}"), format!("b={b}")];
        let document = json(&[&[command, "--group", &group, "--group", &other], &choice[..]].concat());
        for (run, trace) in document["runs"].as_array().expect("runs").iter().zip([&a, &b]) {
            let (mut run, alone) = (run.clone(), alone(trace));
            run.as_object_mut().expect("an object").remove("group").expect("a group");
            assert_eq!(run, alone, "{command} {trace}");
        }
        // Each choice changes the numbers.
        for left_out in 0..choice.len() / 2 {
            let rest = [&choice[..2 * left_out], &choice[2 * left_out + 2..]].concat();
            let other = json(&[&[command, a.as_str()], &rest[..]].concat())["runs"][0].clone();
            assert_ne!(other, alone(&a), "{command} without {}", choice[2 * left_out]);
        }
    }
}

//! Several traces at once: measured side by side, reported in the given order.

use crate::support::{fixture, schedviz, scratch};

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
    let report: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let names: Vec<&str> =
        report["runs"].as_array().expect("runs").iter().filter_map(|r| r["trace"].as_str()).collect();
    assert_eq!(names, RUNS);
    // The messages of a trace stand together, in the order of the traces.
    let place = |line: &str| RUNS.iter().position(|name| line.starts_with(&format!("schedviz: {name}: ")));
    let places: Vec<usize> = messages.lines().map(|line| place(line).expect("a trace's message")).collect();
    assert!(places.is_sorted() && places.first() != places.last(), "{messages}");
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
    std::fs::remove_dir_all(&folder).expect("removed");
}

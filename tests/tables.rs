//! Tables in CSV: their sums are those of the JSON documents.

use crate::support::{csv, fixture, schedviz};
use serde_json::Value;
use std::collections::BTreeMap;

/// A table, one map from column to field for each line.
fn table(arguments: &[&str]) -> Vec<BTreeMap<String, String>> {
    let text = schedviz(&[arguments, &["-q", "-o", "-", "--format", "csv"]].concat()).success().text();
    csv(&text)
}

fn document(arguments: &[&str]) -> Value {
    serde_json::from_slice(&schedviz(&[arguments, &["--json", "-q"]].concat()).success().stdout).expect("JSON")
}

fn path(name: &str) -> String {
    fixture(name).to_str().expect("a path").to_owned()
}

/// Sums a column; an empty field is unknown and fails.
fn sum<'r>(rows: impl IntoIterator<Item = &'r BTreeMap<String, String>>, column: &str) -> u64 {
    rows.into_iter().map(|row| row[column].parse::<u64>().expect("a number")).sum()
}

#[test]
fn slices_add_up_to_the_times_of_each_cpu() {
    for (name, more) in [
        ("hackbench.dat", &[][..]),
        ("hackbench.dat", &["--min", "20ms", "--max", "60ms", "--cpus", "1-4"]),
        ("hotplug.dat", &[]),
        ("marker-pairs.dat", &[]),
    ] {
        let trace = path(name);
        let arguments = [&["dat2graph", &trace], more].concat();
        let (json, rows) = (document(&arguments), table(&arguments));
        let lanes = json["lanes"].as_array().expect("lanes");
        assert!(lanes.len() > 3, "{name}");
        for lane in lanes {
            let cpu = lane["cpu"].to_string();
            let of = |what: &str| {
                let of = |row: &&BTreeMap<String, String>| row["cpu"] == cpu && row["what"] == what;
                sum(rows.iter().filter(of), "length_ns")
            };
            let named =
                [("task", "busy_ns"), ("idle", "idle_ns"), ("unknown", "unknown_ns"), ("offline", "offline_ns")];
            for (what, field) in named {
                assert_eq!(Some(of(what)), lane[field].as_u64(), "{name} {more:?}: CPU {}: {what}", lane["cpu"]);
            }
            // The slices tile the window: each begins where the one before ends.
            let mut at = json["from_ns"].as_u64().expect("a time");
            for row in rows.iter().filter(|row| row["cpu"] == cpu) {
                assert_eq!(row["start_ns"], at.to_string(), "{name}");
                at += row["length_ns"].parse::<u64>().expect("a length");
            }
            assert_eq!(Some(at), json["to_ns"].as_u64(), "{name}");
        }
        // A task whose name is not yet known has an empty field, and the time by its name in the document.
        let mut tasks: BTreeMap<String, u64> = BTreeMap::new();
        for task in json["tasks"].as_array().expect("tasks") {
            *tasks.entry(task["pid"].to_string()).or_default() += task["run_ns"].as_u64().expect("a time");
        }
        for (pid, ns) in tasks {
            assert_eq!(sum(rows.iter().filter(|row| row["pid"] == pid), "length_ns"), ns, "{name}: {pid}");
        }
    }
}

#[test]
fn slices_of_chosen_tasks_alone() {
    let trace = path("hackbench.dat");
    let rows = table(&["dat2graph", &trace, "--tasks", "^kworker"]);
    let tasks: Vec<_> = rows.iter().filter(|row| row["what"] == "task").collect();
    assert!(!tasks.is_empty() && tasks.iter().all(|row| row["command"].starts_with("kworker")));
    assert!(rows.iter().any(|row| row["what"] == "idle"));
    let json = document(&["dat2graph", &trace]);
    let all = json["tasks"].as_array().expect("tasks").iter();
    let kworkers = all.filter(|task| task["command"].as_str().is_some_and(|name| name.starts_with("kworker")));
    let expected: u64 = kworkers.filter_map(|task| task["run_ns"].as_u64()).sum();
    assert_eq!(sum(tasks, "length_ns"), expected);
}

#[test]
fn rows_of_latency_add_up_to_its_measures() {
    let trace = path("hackbench.dat");
    for by in ["command", "task"] {
        let arguments = ["latency", &trace, "--by", by];
        let (json, rows) = (document(&arguments), table(&arguments));
        assert!(rows.len() > 10 && rows.iter().all(|row| row["pid"].is_empty() == (by == "command")), "{by}");
        for measure in json["measures"].as_array().expect("measures") {
            let own: Vec<_> = rows.iter().filter(|row| measure["measure"] == row["measure"].as_str()).collect();
            for column in ["count", "total_ns"] {
                assert_eq!(Some(sum(own.iter().copied(), column)), measure[column].as_u64(), "{by}: {measure}");
            }
            let longest = own.iter().filter_map(|row| row["max_ns"].parse::<u64>().ok()).max();
            assert_eq!(longest, measure["max_ns"].as_u64(), "{by}: {measure}");
        }
    }
    let unknown = path("forked-unknown.dat");
    assert!(table(&["latency", &unknown, "--forked"]).is_empty(), "an unknown selection has no line, not a zero");
}

#[test]
fn members_of_fairness_are_those_of_the_document() {
    let trace = path("hackbench.dat");
    let arguments = ["fairness", &trace, "--group-by", "command"];
    let (json, rows) = (document(&arguments), table(&arguments));
    let members = json["members"].as_array().expect("members");
    assert!(rows.len() == members.len() && rows.len() > 5);
    for (row, member) in rows.iter().zip(members) {
        assert_eq!(member["name"], row["member"].as_str());
        let field = |column: &str| row[column].parse::<f64>().ok();
        for column in ["run_ns", "wait_ns", "share_percent", "expected_percent", "weight", "got_percent"] {
            // The reader of JSON rounds the last digit.
            let (field, expected) = (field(column).expect("a number"), member[column].as_f64().expect("a number"));
            assert!((field - expected).abs() <= expected * 1e-12, "{member}: {column}: {field}");
        }
        for what in ["runs", "waits"] {
            for column in ["count", "total_ns", "p50_ns", "max_ns"] {
                assert_eq!(
                    field(&format!("{what}_{column}")),
                    member[what][column].as_f64(),
                    "{member}: {what} {column}"
                );
            }
        }
    }
    let share: f64 = rows.iter().filter_map(|row| row["share_percent"].parse::<f64>().ok()).sum();
    assert!((share - 100.0).abs() < 1e-6, "{share}");
}

#[test]
fn the_classes_of_utilization_add_up_to_the_cpus_time() {
    let classes =
        ["app_ns", "other_ns", "kernel_ns", "stopper_ns", "rt_ns", "irq_ns", "unknown_ns", "offline_ns", "idle_ns"];
    let trace = path("hackbench.dat");
    let json = document(&["utilization", &trace]);
    let intervals = table(&["utilization", &trace]);
    let cpus = table(&["utilization", &trace, "--per-cpu"]);
    assert!(intervals.len() > 9 && cpus.len() == 8, "{} {}", intervals.len(), cpus.len());
    for class in classes {
        let all = json["all"][class].as_u64();
        assert_eq!((Some(sum(&intervals, class)), Some(sum(&cpus, class))), (all, all), "{class}");
    }
    let window = json["to_ns"].as_u64().expect("a time") - json["from_ns"].as_u64().expect("a time");
    let total: u64 = classes.iter().map(|class| sum(&cpus, class)).sum();
    assert_eq!((total, sum(&intervals, "length_ns")), (8 * window, window));
    // The application is unknown: its field is empty, not zero.
    let unknown = table(&["utilization", &path("forked-unknown.dat")]);
    assert!(unknown.len() > 1 && unknown.iter().all(|row| row["app_ns"].is_empty() && !row["other_ns"].is_empty()));
}

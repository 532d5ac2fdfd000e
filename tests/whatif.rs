//! The command `whatif`: calibration, refusal, figures, curves, and predictions beside measured runs.

use crate::cut::{cut, outcome};
use crate::support::{fixture, schedviz, scratch};
use serde_json::Value;
use std::path::Path;

fn path(name: &str) -> String {
    fixture(name).to_str().expect("a path").to_owned()
}

fn document(arguments: &[&str]) -> (Option<i32>, Value) {
    let ran = schedviz(&[&["whatif", "-q", "--json"], arguments].concat());
    (ran.code, serde_json::from_slice(&ran.stdout).expect("JSON"))
}

#[test]
fn the_model_of_a_recording_comes_to_the_elapsed_time_and_the_violation_of_it() {
    for name in ["hackbench.dat", "hackbench-7.2.dat", "balance.dat", "affine.dat"] {
        let (code, document) = document(&[&path(name), "--policy", "observed"]);
        let calibration = &document["runs"][0]["calibration"];
        assert_eq!((code, &calibration["is_predictable"]), (Some(0), &Value::Bool(true)), "{name}");
        for (error, most) in [("elapsed_error_percent", 0.1), ("violation_error_points", 0.5)] {
            assert!(calibration[error].as_f64().expect("a number").abs() <= most, "{name}: {calibration}");
        }
    }
}

#[test]
fn a_trace_that_does_not_show_why_tasks_slept_is_refused() {
    let (code, document) = document(&[&path("hotplug-5.10.dat")]);
    let run = &document["runs"][0];
    assert_eq!((code, &run["rows"]), (Some(3), &Value::Array(Vec::new())), "{run}");
    let reason = run["calibration"]["reasons"][0].as_str().expect("a reason");
    assert!(reason.contains("has no known cause"), "{reason}");
    assert!(run["calibration"]["advice"][0].as_str().expect("advice").contains("-e timer"), "{run}");
    let printed = schedviz(&["whatif", "-q", &path("hotplug-5.10.dat")]);
    let text = String::from_utf8_lossy(&printed.stdout).into_owned();
    let head = "Doubts: 79 events counted by the recorder, missing without a mark: parts of\n  the numbers may be wrong.\n\n\
                hotplug-5.10.dat: whether another policy would have been faster is not\n";
    assert!(text.starts_with(head), "{text}");
}

#[test]
fn both_runs_are_drawn_and_the_causes_have_curves() {
    let folder = scratch("whatif");
    let file = folder.join("whatif.svg");
    let trace = path("hackbench.dat");
    let name = file.to_str().expect("a path");
    let stolen = folder.join("stolen.dat").to_str().expect("a path").to_owned();
    let arguments = ["whatif", "-q", &trace, "--policy", "steal=machine", "-o", name, "--as-trace", &stolen, "--json"];
    let ran = schedviz(&arguments);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let predicted: Value = serde_json::from_slice(&ran.stdout).expect("JSON");
    let predicted = &predicted["runs"][0]["rows"][0];
    let figure = std::fs::read_to_string(&file).expect("the figure");
    assert!(figure.contains("as it was: ") && figure.contains("steal=machine: "), "{}", figure.len());

    // The run as it would have been is a trace with the figures of the prediction.
    let (_, of_stolen) = document(&[&stolen, "--policy", "observed"]);
    let measured = &of_stolen["runs"][0]["recorded"];
    for number in ["elapsed_ns", "violation_ns", "cpu_time_lost_ns"] {
        let of = |value: &Value| value.as_f64().expect("a number");
        let (measured, predicted) = (of(&measured[number]), of(&predicted[number]["value"]));
        assert!((measured - predicted).abs() <= 1e-4 * predicted + 1e4, "{number}: {measured}, predicted {predicted}");
    }
    // Its forks and names are read where they were written.
    let read = schedviz(&["workcons", "--topology", &path("hackbench.cpus.txt"), &stolen]).success();
    assert!(!read.stderr.contains("loss") && !read.stderr.contains("repaired"), "{}", read.stderr);
    // Both are shown one below the other.
    let page = folder.join("page").to_str().expect("a path").to_owned();
    let ran = schedviz(&["view", "-q", &trace, "--whatif", "steal=machine", "--export", &page]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let list = std::fs::read(Path::new(&page).join("traces.json")).expect("the list of traces");
    let list: Value = serde_json::from_slice(&list).expect("JSON");
    assert_eq!(list["traces"], serde_json::json!(["hackbench.dat", "steal=machine.dat"]));

    let (_, document) = document(&[&trace, "--without", "--policy", "observed"]);
    let run = &document["runs"][0];
    let curves = run["without"].as_array().expect("curves");
    assert!((1..=5).contains(&curves.len()), "{curves:?}");
    for curve in curves {
        let points = curve["points"].as_array().expect("points");
        let elapsed: Vec<f64> = points.iter().map(|point| point["elapsed_ns"].as_f64().expect("a time")).collect();
        assert!(elapsed.len() == 4 && elapsed.is_sorted_by(|a, b| a >= b), "{curve}");
        let trace = run["recorded"]["elapsed_ns"].as_f64().expect("a time");
        assert!(elapsed[0] <= trace * 1.001, "{curve}: {trace}");
    }
    let ran = schedviz(&["whatif", "-q", &trace, "--without=rain"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("there are "), "{}", ran.stderr);
}

#[test]
fn predictions_stand_beside_measured_runs() {
    let (trace, other) = (path("hackbench.dat"), path("hackbench-7.2.dat"));
    let arguments = ["--predict-from", &trace, "--measured", &other, "--policy", "steal=machine", "--queue", "fifo"];
    let (code, document) = document(&arguments);
    let rows = document["skill"].as_array().expect("rows");
    assert_eq!((code, rows.len()), (Some(0), 4), "{document}");
    let first = &rows[0];
    let of = |name: &str| first[name].as_f64().expect("a number");
    let skill =
        (of("predicted_median") - of("measured_median")).abs() / (of("from_median") - of("measured_median")).abs();
    assert!((of("skill") - skill).abs() < 1e-9, "{first}");
    // Without the places of the CPUs there is no nearest cache.
    let ran = schedviz(&["whatif", "-q", &trace, "--policy", "steal=llc"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("--topology"), "{}", ran.stderr);
}

#[test]
fn sleeps_by_relative_and_absolute_timers_are_told_apart() {
    // Two threads slept for a length, two until an instant, one in poll and one on a condition with a timeout.
    let classes = |name: &str| {
        let (code, document) = document(&[&path(name), "--policy", "observed"]);
        assert_eq!(code, Some(0), "{document}");
        let sums = document["runs"][0]["sleeps"].as_array().expect("sums").clone();
        ["timer", "absolute-timer", "either-timer"].map(|class| {
            let sum = sums.iter().find(|sum| sum["class"] == class);
            sum.map_or(0, |sum| sum["number"].as_u64().expect("a number"))
        })
    };
    // With the calls: 50 relative sleeps and one of a lost timer, 20 until an instant; the rest set their timers in other calls.
    assert_eq!(classes("sleepers-6.12.dat"), [51, 20, 25]);
    // Without: 24 relative sleeps. The kernel makes the timeouts of poll and of futexes absolute.
    assert_eq!(classes("sleepers-timers-6.12.dat"), [24, 0, 30]);
}

/// A sleeper in a part may have set its timer before it: the note of the part has the timers that were set.
#[test]
fn a_part_knows_the_timers_that_were_set_before_it() {
    let (folder, whole) = (scratch("whatif-timers"), fixture("sleepers-timers-6.12.dat"));
    let window = ["--min", "142686035ns"].map(str::to_owned);
    let part = cut(&folder, &whole, "part.dat", &window);
    let later = ["--min", "150ms"].map(str::to_owned);
    let again = cut(&folder, &part, "again.dat", &later);
    let sleeps = |trace: &std::path::Path, window: &[String]| {
        let document = outcome(&folder, trace, &["whatif", "--policy", "observed"], window).expect("a document");
        document["runs"][0]["sleeps"].clone()
    };
    let of_whole = sleeps(&whole, &window);
    assert_eq!(of_whole[1]["number"], 4, "{of_whole}");
    assert_eq!(of_whole, sleeps(&part, &[]));
    assert_eq!(sleeps(&whole, &later), sleeps(&again, &[]), "a part of a part");
}

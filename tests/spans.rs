//! Spans: their numbers are those that `trace-cmd report -t -R` of the same recordings gives when its lines are paired
//! by a script.

use crate::support::{fixture, schedviz};
use serde_json::Value;

fn events(name: &str, more: &[&str]) -> Value {
    let file = fixture(name);
    let arguments = [&["events", file.to_str().expect("a path"), "--json", "-q"], more].concat();
    serde_json::from_slice(&schedviz(&arguments).success().stdout).expect("JSON")
}

/// Name, count, total, median and longest of the spans.
fn spans(report: &Value) -> Vec<(String, u64, u64, u64, u64)> {
    let number = |span: &Value, key: &str| span[key].as_u64().expect("a number");
    let of = |span: &Value| {
        let name = span["name"].as_str().expect("a name").to_owned();
        let [count, total, median, max] = ["count", "total_ns", "median_ns", "max_ns"].map(|key| number(span, key));
        (name, count, total, median, max)
    };
    report["spans"].as_array().expect("spans").iter().map(of).collect()
}

/// The true ones; medians are at most 0.8 % above them.
fn assert_are(found: &[(String, u64, u64, u64, u64)], truth: &[(&str, u64, u64, u64, u64)]) {
    for (found, truth) in found.iter().zip(truth) {
        assert_eq!((found.0.as_str(), found.1, found.2, found.4), (truth.0, truth.1, truth.2, truth.4));
        assert!((truth.3..=truth.3 + truth.3 / 125).contains(&found.3), "{found:?}, in truth {truth:?}");
    }
}

#[test]
fn sections_that_an_application_marks_have_their_durations() {
    let report = events("marker-pairs.dat", &[]);
    let found = spans(&report);
    assert_eq!(found.len(), 2);
    let compute = ("compute \u{2026}", 48, 994_787_495, 20_056_820, 43_794_726);
    let barrier = ("barrier iter=\u{2026}", 48, 645_764_147, 11_609_845, 51_150_848);
    assert_are(&found, &[compute, barrier]);
    assert!(report["spans"][0]["unended"] == 0 && report["spans"][1]["unbegun"] == 0);
    // By an expression events are counted one by one.
    assert_eq!(events("marker-pairs.dat", &["--match", "(?<edge>begin|end)"])["spans"], Value::Null);
    // A window cuts spans: they are counted apart.
    let cut = events("marker-pairs.dat", &["--min", "0.1", "--max", "0.2"]);
    let sum = |key: &str| -> u64 {
        cut["spans"].as_array().expect("spans").iter().map(|span| span[key].as_u64().expect("a number")).sum()
    };
    let edges: u64 = (cut["kinds"].as_array().expect("kinds").iter())
        .filter(|kind| kind["name"].as_str().is_some_and(|name| name.contains(['|', ':']) && !name.contains("sched:")))
        .map(|kind| kind["count"].as_u64().expect("a count"))
        .sum();
    assert_eq!(2 * sum("count") + sum("unended") + sum("unbegun"), edges);
    // Four threads, each in one span at either end of the window.
    assert_eq!((sum("unended"), sum("unbegun")), (4, 4), "{cut}");
}

#[test]
fn functions_have_the_durations_that_the_kernel_measured() {
    let report = events("fgraph-newidle.dat", &[]);
    let found = spans(&report);
    let truth = [
        ("0xffffffffa4f25cc0", 347, 57_189_673, 20_819, 9_316_875),
        ("0xffffffffa4f26bd0", 167, 34_036_131, 22_706, 9_361_627),
        ("0xffffffffa4f0daf4", 106, 16_095_720, 1_346, 8_127_001),
    ];
    assert_are(&found, &truth);
    assert_eq!(found.len(), 34);
    assert_eq!(found.iter().map(|span| span.1).sum::<u64>(), 2561, "every exit has its entry");
    assert_eq!(found.iter().map(|span| span.2).sum::<u64>(), 117_102_433);
}

#[test]
fn spans_are_drawn_and_told() {
    let file = fixture("marker-pairs.dat");
    let file = file.to_str().expect("a path");
    let text = schedviz(&["events", file, "-q", "-o", "/dev/null", "--format", "svg"]).success().text();
    let rows = [
        "     count         total        median       longest  span",
        "        48     994.79 ms      20.19 ms      43.79 ms  compute \u{2026}",
    ];
    rows.iter().for_each(|row| assert!(text.contains(row), "{text}"));
    let svg = schedviz(&["events", file, "-q", "-o", "-", "--format", "svg"]).success().text();
    assert!(svg.contains("compute \u{2026} (48 spans, median 20.19 ms)"));
    // A piece for each of 96 spans and a few more where threads moved, in the colours of their kinds.
    let pieces = |color: &str| -> usize {
        let paths = svg.lines().filter(|line| line.contains(&format!("fill=\"{color}\"")) && line.contains("<path"));
        paths.map(|line| line.matches('z').count()).sum()
    };
    let (compute, barrier) = (pieces("#4088b8"), pieces("#582858"));
    assert!((49..56).contains(&compute) && (49..56).contains(&barrier), "{compute} {barrier}");
    // Where the threads were moved their spans go on: no NUMA move, no wakeup places a thread on CPU 6 or 7.
    let shown = events("marker-pairs.dat", &["--cpus", "6-7"]);
    assert_eq!(shown["spans"], Value::Null);
}

#[test]
fn without_patterns_the_statistics_of_the_kernel_are_no_events_of_the_user() {
    let names = |more: &[&str]| -> Vec<String> {
        let report = events("marker-pairs.dat", more);
        let kinds = report["kinds"].as_array().expect("kinds").iter();
        kinds.map(|kind| kind["name"].as_str().expect("a name").to_owned()).collect()
    };
    let ours = names(&[]);
    assert_eq!(ours.len(), 6, "{ours:?}");
    assert!(ours.iter().all(|name| !name.contains("sched_stat_")), "{ours:?}");
    assert!(ours.contains(&"sched:sched_move_numa".to_owned()), "rare kinds stay: {ours:?}");
    // Asked for they are there.
    assert_eq!(names(&["--events", "sched_stat_*"]), ["sched:sched_stat_runtime"]);
    // Where there is nothing else, all are shown.
    let all = events("hackbench.dat", &[]);
    assert!(all["kinds"].as_array().expect("kinds").iter().any(|kind| kind["name"] == "sched:sched_switch"));
}

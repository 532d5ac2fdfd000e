//! `schedviz sample` against a count by other means.

use crate::support::{events, fixture, root, schedviz};
use parse::Trace;
use sched::EventKind;

/// The files with the mark of what remains to be written. A file whose mark is gone leaves the list; the test goes with the last one.
const REMAINING: [&str; 9] = [
    "crates/sample/src/args.rs",
    "crates/sample/src/lib.rs",
    "crates/sample/src/question.rs",
    "crates/sample/src/report.rs",
    "crates/sample/src/tests.rs",
    "crates/sample/src/text.rs",
    "docs/SUMMARY.md",
    "docs/questions/sample.md",
    "tests/sample.rs",
];

#[test]
fn what_remains_to_be_written_is_marked() {
    let is_marked = |file: &&str| {
        let text = std::fs::read_to_string(root().join(file)).expect(file);
        text.contains(concat!("todo", "(sample)"))
    };
    let marked: Vec<&str> = REMAINING.into_iter().filter(is_marked).collect();
    assert_eq!(marked, REMAINING, "take the finished ones from the list");
}

// todo(sample): compare all numbers, on all recordings (`support::recordings`), with an independent count.
#[test]
fn switches_are_those_of_the_events() {
    let path = fixture("hackbench.dat");
    let trace = Trace::open(&path, parse::Options::default()).expect("a recording");
    let is_to_task = |kind: &EventKind| matches!(kind, EventKind::Switch { next, .. } if !next.pid.is_idle());
    let counted = events(&trace).iter().filter(|event| is_to_task(&event.kind)).count();
    let json = schedviz(&["sample", path.to_str().expect("a path"), "--json", "-q"]).success().text();
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert!(counted > 1000 && json["switches"] == counted, "{counted}, not {}", json["switches"]);
}

//! The four kinds of queued time are the same in each command that has them, and sum to its queued time.

use crate::support::{recordings_in_part, repeat, schedviz};
use rayon::prelude::*;
use serde_json::Value;

/// The commands whose documents divide the queued time by kind.
const COMMANDS: [&str; 5] = ["latency", "fairness", "neighbours", "running-waiting", "why"];

fn document(command: &str, trace: &str, more: &[&str]) -> Option<Value> {
    let ran = schedviz(&[&[command, trace, "--json", "-q"], more].concat());
    (ran.code == Some(0)).then(|| serde_json::from_slice(&ran.stdout).expect("JSON"))
}

/// The queued time of a document by kind; of the only run, where it has runs.
fn queued(document: &Value) -> &Value {
    match &document["queued"] {
        Value::Null => &document["runs"][0]["queued"],
        queued => queued,
    }
}

fn sum(queued: &Value) -> u64 {
    let kinds = ["held_back_ns", "beside_idle_ns", "beside_shorter_ns", "alike_ns"];
    kinds.iter().map(|kind| queued[kind].as_u64().expect("a time")).sum()
}

#[test]
fn the_kinds_agree_between_commands_and_sum_to_the_queued_time() {
    let compared: usize = recordings_in_part(8)
        .par_iter()
        .map(|path| {
            let trace = path.to_str().expect("a path");
            let hint = repeat("queued_sums::", path);
            let mut compared = 0;
            for more in [&[][..], &["--tasks", "^(hackbench|spmd|soak)"], &["--threads", "3"]] {
                let all: Vec<(&str, Value)> = COMMANDS
                    .iter()
                    .filter_map(|command| Some((*command, document(command, trace, more)?)))
                    .filter(|(_, document)| queued(document).is_object())
                    .collect();
                // Each of them measures the same waits.
                for (command, document) in &all {
                    assert_eq!(queued(document), queued(&all[0].1), "{command} {more:?} of {trace}: {hint}");
                    compared += 1;
                }
                for (command, document) in &all {
                    // Summed over members, and over victims and culprits, by analyses of their own.
                    let waited = match *command {
                        "fairness" => {
                            let members = document["members"].as_array().expect("members");
                            members.iter().map(|member| member["wait_ns"].as_u64().expect("a time")).sum()
                        }
                        "neighbours" => document["wait_ns"].as_u64().expect("a time"),
                        _ => continue,
                    };
                    assert_eq!(sum(queued(document)), waited, "{command} {more:?} of {trace}: {hint}");
                }
            }
            compared
        })
        .sum();
    assert!(compared >= 15, "{compared} documents");
}

//! The attempts of the load balancer that `schedviz migrations` counts, against a count by another program from the text of
//! `trace-cmd report`.

use crate::support::{fixture, schedviz, schedviz_in, scratch};
use std::path::{Path, PathBuf};

/// The attempts of a kind in a domain: moved, not its turn, no group busier, no task examined, all refused.
type Row = (&'static str, &'static str, [u64; 5]);

/// The counts of a recording.
struct Expected {
    attempts: &'static [Row],
    /// Movable, running, one CPU, other.
    examined: [u64; 4],
    /// Not overloaded, too costly, affordable.
    going_idle: [u64; 3],
}

/// The recordings below `extra`, each with its counts.
const RECORDINGS: [(&str, Expected); 9] = [
    (
        "linux-6.1-c8-n2/balance-spmd.dat",
        Expected {
            attempts: &[
                ("idle", "MC", [1, 0, 130, 0, 5]),
                ("idle", "NUMA", [2, 54, 44, 0, 1]),
                ("new-idle", "MC", [0, 0, 12, 0, 0]),
                ("new-idle", "NUMA", [1, 0, 15, 0, 0]),
            ],
            examined: [4, 6, 6, 0],
            going_idle: [357, 40, 29],
        },
    ),
    (
        "linux-6.1-c8-n2/balance-hackbench.dat",
        Expected {
            attempts: &[
                ("busy", "MC", [16, 0, 28, 1, 14]),
                ("busy", "NUMA", [3, 22, 3, 0, 1]),
                ("idle", "MC", [6, 0, 65, 2, 0]),
                ("idle", "NUMA", [2, 25, 15, 1, 0]),
                ("new-idle", "MC", [8, 0, 9, 3, 0]),
                ("new-idle", "NUMA", [4, 0, 2, 0, 1]),
            ],
            examined: [120, 34, 1, 8],
            going_idle: [104, 35, 23],
        },
    ),
    (
        "linux-6.1-c8-n2/balance-unpin.dat",
        Expected {
            attempts: &[
                ("busy", "MC", [0, 0, 23, 0, 0]),
                ("busy", "NUMA", [0, 9, 0, 0, 0]),
                ("idle", "MC", [1, 0, 123, 0, 1]),
                ("idle", "NUMA", [0, 121, 43, 0, 3]),
                ("new-idle", "MC", [2, 0, 16, 0, 1]),
                ("new-idle", "NUMA", [0, 1, 11, 1, 1]),
            ],
            examined: [3, 108, 4, 196],
            going_idle: [42, 56, 50],
        },
    ),
    (
        "linux-6.12-c8-n2/balance-spmd.dat",
        Expected {
            attempts: &[
                ("busy", "MC", [0, 0, 1, 0, 0]),
                ("idle", "MC", [2, 0, 105, 0, 2]),
                ("idle", "NUMA", [1, 48, 26, 0, 0]),
                ("new-idle", "MC", [4, 0, 37, 1, 1]),
                ("new-idle", "NUMA", [3, 0, 26, 4, 2]),
            ],
            examined: [10, 6, 3, 2],
            going_idle: [261, 5, 43],
        },
    ),
    (
        "linux-6.12-c8-n2/balance-hackbench.dat",
        Expected {
            attempts: &[
                ("busy", "MC", [6, 0, 21, 0, 4]),
                ("busy", "NUMA", [2, 10, 2, 0, 0]),
                ("idle", "MC", [5, 0, 52, 0, 2]),
                ("idle", "NUMA", [1, 20, 15, 2, 0]),
                ("new-idle", "MC", [26, 1, 17, 4, 0]),
                ("new-idle", "NUMA", [10, 0, 15, 1, 0]),
            ],
            examined: [136, 28, 2, 2],
            going_idle: [100, 55, 49],
        },
    ),
    (
        "linux-6.12-c8-n2/balance-unpin.dat",
        Expected {
            attempts: &[
                ("busy", "MC", [0, 0, 24, 0, 0]),
                ("busy", "NUMA", [0, 8, 0, 0, 0]),
                ("idle", "MC", [8, 0, 106, 0, 1]),
                ("idle", "NUMA", [1, 104, 56, 7, 11]),
                ("new-idle", "MC", [9, 0, 17, 1, 0]),
                ("new-idle", "NUMA", [2, 0, 21, 0, 1]),
            ],
            examined: [20, 126, 4, 218],
            going_idle: [74, 27, 38],
        },
    ),
    (
        "linux-7.2-c8-n2/balance-spmd.dat",
        Expected {
            attempts: &[
                ("busy", "MC", [0, 0, 1, 0, 0]),
                ("idle", "MC", [1, 0, 150, 1, 1]),
                ("idle", "NUMA", [1, 57, 31, 2, 2]),
                ("new-idle", "MC", [6, 0, 29, 1, 2]),
                ("new-idle", "NUMA", [1, 2, 22, 2, 1]),
            ],
            examined: [10, 10, 1, 5],
            going_idle: [242, 20, 50],
        },
    ),
    (
        "linux-7.2-c8-n2/balance-hackbench.dat",
        Expected {
            attempts: &[
                ("busy", "MC", [24, 0, 20, 2, 14]),
                ("busy", "NUMA", [2, 16, 5, 0, 0]),
                ("idle", "MC", [9, 0, 54, 1, 1]),
                ("idle", "NUMA", [2, 25, 11, 0, 0]),
                ("new-idle", "MC", [16, 0, 5, 1, 1]),
                ("new-idle", "NUMA", [6, 0, 5, 1, 0]),
            ],
            examined: [130, 41, 9, 47],
            going_idle: [92, 11, 16],
        },
    ),
    (
        "linux-7.2-c8-n2/balance-unpin.dat",
        Expected {
            attempts: &[
                ("busy", "MC", [0, 0, 29, 0, 0]),
                ("busy", "NUMA", [0, 9, 0, 0, 0]),
                ("idle", "MC", [5, 0, 106, 2, 0]),
                ("idle", "NUMA", [1, 91, 35, 0, 8]),
                ("new-idle", "MC", [15, 2, 44, 0, 1]),
                ("new-idle", "NUMA", [0, 5, 36, 1, 2]),
            ],
            examined: [21, 168, 9, 297],
            going_idle: [62, 8, 97],
        },
    ),
];

fn check(path: &Path, expected: &Expected) {
    let name = path.display();
    let json = schedviz(&["migrations", path.to_str().expect("UTF-8"), "--json"]).success().text();
    let document: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let probes = &document["probes"];
    let numbers = |value: &serde_json::Value, names: &[&str]| -> Vec<u64> {
        names.iter().map(|name| value[*name].as_u64().unwrap_or_else(|| panic!("{name} in {value}"))).collect()
    };
    let outcomes = ["moved", "not_chosen", "no_busiest_group", "no_task_examined", "all_refused"];
    let mut found: Vec<(&str, &str, Vec<u64>)> = probes["attempts"]
        .as_array()
        .expect("attempts")
        .iter()
        .map(|row| {
            let word = |field: &str| row[field].as_str().expect("a word");
            (word("balancing"), word("domain"), numbers(row, &outcomes))
        })
        .collect();
    found.sort_unstable();
    let attempts: Vec<(&str, &str, Vec<u64>)> =
        expected.attempts.iter().map(|(balancing, domain, counts)| (*balancing, *domain, counts.to_vec())).collect();
    assert_eq!(found, attempts, "{name}");
    let verdicts = numbers(&probes["examined"], &["movable", "running", "one_cpu", "other"]);
    assert_eq!(verdicts, expected.examined, "{name}");
    let gates = numbers(&probes["going_idle"], &["not_overloaded", "too_costly", "affordable"]);
    assert_eq!(gates, expected.going_idle, "{name}");
}

/// The recording of 6.12 that is a fixture as well.
const OF_FIXTURE: &str = "linux-6.12-c8-n2/balance-spmd.dat";

#[test]
fn attempts_are_those_of_an_independent_count() {
    let (_, expected) = RECORDINGS.iter().find(|(name, _)| *name == OF_FIXTURE).expect("its counts");
    check(&fixture("attempts-6.12.dat"), expected);
    let Some(folder) = std::env::var_os("SCHEDVIZ_TRACES").map(PathBuf::from) else { return };
    for (name, expected) in &RECORDINGS {
        let path = folder.join("extra").join(name);
        if path.is_file() {
            check(&path, expected);
        }
    }
}

#[test]
fn the_text_has_the_attempts_as_a_table() {
    let path = fixture("attempts-6.12.dat");
    let folder = scratch("attempts-table");
    let text = schedviz_in(&folder, &["migrations", path.to_str().expect("UTF-8")]).success().text();
    let row = |words: &[&str]| text.lines().any(|line| line.split_whitespace().eq(words.iter().copied()));
    assert!(row(&["idle", "NUMA", "75", "48", "26", "0", "0", "1"]), "{text}");
    assert!(row(&["309", "times", "a", "CPU", "went", "idle"]), "{text}");
    assert!(text.contains("21 tasks were examined; 10 could be moved"), "{text}");
}

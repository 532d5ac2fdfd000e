//! `schedviz plot` on a part of a trace: intervals and values that go on when the part begins.

use crate::cut::{cut, difference, outcome};
use crate::support::{fixture, recordings, schedviz_in, scratch};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Recordings, each with a specification that it has the events of.
const CASES: [(&str, &str); 9] = [
    ("irq.dat", "irq"),
    ("lock-pi.dat", "locks"),
    ("timer-power.dat", "power"),
    ("timer-power.dat", "timers"),
    ("workqueue.dat", "workqueues"),
    ("syscalls.dat", "syscalls"),
    ("block.dat", "block"),
    ("marker-pairs.dat", "markers"),
    ("fgraph-newidle.dat", "balancer"),
];

fn window(from: &str, to: &str) -> Vec<String> {
    ["--min", from, "--max", to].map(str::to_owned).to_vec()
}

/// The number of intervals of a part that began before it, of which this is the document.
fn carried(folder: &Path, part: &Path, spec: &str, document: &Value) -> usize {
    let file = part.to_str().expect("a name");
    schedviz_in(folder, &["plot", spec, file, "-q", "-o", "intervals.csv"]).success();
    let text = std::fs::read_to_string(folder.join("intervals.csv")).expect("a table");
    let from = document["from_ns"].as_i64().expect("a time");
    let starts = text.lines().skip(1).filter_map(|line| line.split(',').nth(1)?.parse::<i64>().ok());
    starts.filter(|start| *start < from).count()
}

#[test]
fn a_figure_of_a_part_is_that_of_its_window_of_the_whole() {
    let folder = scratch("cut-plot");
    let all: Vec<PathBuf> = recordings();
    let (mut compared, mut over_the_start) = (0, 0);
    for (name, spec) in CASES {
        let Some(path) = all.iter().find(|path| path.ends_with(name)) else { continue };
        for (from, to) in [(100, 200), (211, 212), (500, 900)] {
            let options = window(&format!("{from}ms"), &format!("{to}ms"));
            let whole = outcome(&folder, path, &["plot", spec], &options);
            if whole.is_err() {
                // The trace ends before.
                continue;
            }
            let part = cut(&folder, path, "part.dat", &options);
            let found = outcome(&folder, &part, &["plot", spec], &[]);
            let (whole, found) = (whole.expect("a document"), found.expect("a document"));
            assert_eq!(difference("", &whole, &found), None, "{name} {spec} {from}");
            over_the_start += carried(&folder, &part, spec, &found);
            compared += 1;
        }
    }
    assert!(compared >= 5 && over_the_start >= 3, "{compared} compared, {over_the_start} intervals");
}

const MINE: &str = "\
[[interval]]
name = \"section\"
begin = \"ftrace:print\"
where = 'text =~ \"^begin:\"'
end = \"ftrace:print\"
end_where = 'text =~ \"^end:\"'
match = [\"$pid\"]
color_by = \"$command\"
";

#[test]
fn a_specification_of_ones_own_is_noted_on_request() {
    let folder = scratch("cut-plot-mine");
    std::fs::write(folder.join("mine.toml"), MINE).expect("written");
    let path = fixture("marker-pairs.dat");
    let options = window("100ms", "140ms");
    let command = ["plot", "mine.toml"];
    let whole = outcome(&folder, &path, &command, &options).expect("a document");
    let part = cut(&folder, &path, "part.dat", &options);
    let without = outcome(&folder, &part, &command, &[]).expect("a document");
    let notes = without["notes"].to_string();
    assert!(notes.contains("this part of a trace has no note on this specification"), "{notes}");
    let asked: Vec<String> = options.iter().cloned().chain(["--plot", "mine.toml"].map(str::to_owned)).collect();
    let part = cut(&folder, &path, "noted.dat", &asked);
    assert_eq!(outcome(&folder, &part, &command, &[]).as_ref(), Ok(&whole));
    assert!(carried(&folder, &part, "mine.toml", &whole) > 0, "no interval goes on when the part begins");
    // A part of a part keeps it.
    let again = cut(&folder, &part, "again.dat", &window("110ms", "140ms"));
    let whole = outcome(&folder, &path, &command, &window("110ms", "140ms")).expect("a document");
    assert_eq!(outcome(&folder, &again, &command, &[]), Ok(whole));
    let refused = schedviz_in(&folder, &["cut", "part.dat", "-o", "x.dat", "--plot", "absent"]);
    assert!(refused.stderr.contains("no specification of this name"), "{}", refused.stderr);
}

//! The texts of the reports: their columns, their length, and the commands at their end.

use crate::support::{fixture, root, schedviz_in, scratch};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// The columns of a line that a mail quotes.
const MAIL: usize = 75;

const FIXTURES: [&str; 10] = [
    "affine.dat",
    "balance.dat",
    "every-7.2.dat",
    "forked-unknown.dat",
    "hackbench-v6.dat",
    "hotplug-5.10.dat",
    "marker.dat",
    "mask.dat",
    "rt-balance-6.1.dat",
    "unseen-wakeups-6.1.dat",
];

/// The lines that have more columns than these.
fn wide(text: &str, columns: usize) -> Vec<&str> {
    text.lines().filter(|line| line.chars().count() > columns).collect()
}

fn print(arguments: &[&str]) -> String {
    schedviz_in(&root().join("tests/fixtures"), arguments).success().text()
}

#[test]
fn reports_fit_a_mail() {
    let reports: [&[&str]; 9] = [
        &["workcons"],
        &["workcons", "--verbose"],
        &["latency"],
        &["latency", "--verbose", "--by", "task"],
        &["fairness"],
        &["fairness", "--verbose", "--group-by", "parent"],
        &["utilization"],
        &["utilization", "--verbose", "--per-cpu"],
        &["workcons", "hackbench-7.2.dat", "hackbench-v6.dat"],
    ];
    for trace in FIXTURES {
        for report in reports {
            let text = print(&[report, &["-q", trace]].concat());
            assert_eq!(wide(&text, MAIL), [""; 0], "{report:?} of {trace}");
        }
    }
}

/// The lengths of the cases of a text, by the unit behind them.
fn lengths(text: &str, title: &str) -> Vec<String> {
    let from = text.find(title).unwrap_or_else(|| panic!("no {title}: {text}"));
    let cases = text[from..].lines().skip(2).take_while(|line| line.len() > 12 && line.starts_with("  "));
    let length = |line: &str| line.trim_start().split(' ').take(2).collect::<Vec<_>>().join(" ");
    cases.filter(|line| !line.starts_with("  (")).map(length).collect()
}

/// The lengths of the first three of some cases, as texts have them.
fn first_three<'c>(cases: impl Iterator<Item = &'c Value>) -> Vec<String> {
    let human = |case: &Value| sched::Dur(case["duration_ns"].as_u64().expect("a length")).human();
    cases.take(3).map(human).collect()
}

#[test]
fn a_brief_report_has_a_line_for_each_of_the_three_longest_cases() {
    let json = |command: &str| -> Value {
        serde_json::from_str(&print(&[command, "hackbench.dat", "--json", "-q"])).expect("JSON")
    };
    let (workcons, latency) = (json("workcons"), json("latency"));
    let list = |value: &Value| value.as_array().expect("cases").clone();
    let longest = list(&workcons["runs"][0]["violation"]["longest"]);
    assert!(longest.len() > 3, "more are kept than shown");
    let text = print(&["workcons", "hackbench.dat"]);
    assert_eq!(lengths(&text, "The longest episodes"), first_three(longest.iter()));
    assert_eq!(text.matches("dat2graph hackbench.dat --min START --max END").count(), 1);
    let worst = list(&latency["worst"]);
    for (title, measure) in [("longest wakeup", "wakeup"), ("longest waits of new tasks", "new")] {
        let of = worst.iter().filter(|case| case["measure"] == measure);
        assert_eq!(lengths(&print(&["latency", "hackbench.dat"]), title), first_three(of), "{title}");
    }
    let starved = list(&json("fairness")["starved"]);
    assert_eq!(lengths(&print(&["fairness", "hackbench.dat"]), "longest waits"), first_three(starved.iter()));
    let idling = list(&json("utilization")["idling"]);
    let text = print(&["utilization", "hackbench.dat"]).replace("The\n", "The ");
    assert_eq!(lengths(&text, "ms in all. The longest"), first_three(idling.iter()));
    // Every kept case, with the tasks of its scene and its own command.
    let text = print(&["workcons", "hackbench.dat", "--verbose"]);
    let command = "     schedviz dat2graph hackbench.dat --min ";
    let reactions = list(&workcons["runs"][0]["reactions"]).len().min(5);
    assert_eq!(text.matches(command).count(), longest.len() + reactions);
    assert!(text.contains("hackbench 345 waits on CPU 0 behind hackbench 347") && !text.contains("--min START"));
}

/// The commands below the last line of a text that begins with `Next`.
fn next(text: &str) -> Vec<String> {
    let Some((_, commands)) = text.rsplit_once("\nNext, on ") else { return Vec::new() };
    let joined = commands.replace("\\\n", "");
    joined.lines().skip(1).map(|line| line.trim().to_owned()).collect()
}

/// The value of an option, in seconds.
fn seconds(command: &str, option: &str) -> f64 {
    let mut words = command.split_whitespace().skip_while(|word| *word != option);
    words.nth(1).and_then(|word| word.parse().ok()).unwrap_or_else(|| panic!("no {option}: {command}"))
}

#[test]
fn the_commands_at_the_end_of_a_report_run_on_the_longest_case() {
    let folder = scratch("next");
    let copy = |name: &str, to: &str| {
        std::fs::copy(fixture(name), folder.join(to)).expect("copied");
    };
    copy("hackbench.dat", "a trace.dat");
    copy("hackbench.cpus.txt", "cpus.txt");
    let json = schedviz_in(&folder, &["workcons", "a trace.dat", "--json", "-q"]).success().text();
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let longest = &json["runs"][0]["violation"]["longest"][0];
    let ns = |key: &str| longest[key].as_u64().expect("a number") as f64 / 1e9;
    let (start, end) = (ns("start_in_trace_ns"), ns("start_in_trace_ns") + ns("duration_ns"));
    for report in ["workcons", "latency", "fairness", "utilization"] {
        let text = schedviz_in(&folder, &[report, "a trace.dat", "--topology", "cpus.txt", "-q"]).success().text();
        let commands = next(&text);
        assert!((1..=3).contains(&commands.len()), "{report}: {commands:?}");
        for command in &commands {
            assert!(command.contains("'a trace.dat' --topology cpus.txt"), "as typed: {command}");
            run(&folder, command);
        }
        if report == "workcons" {
            let (from, to) = (seconds(&commands[0], "--min"), seconds(&commands[0], "--max"));
            let at = seconds(&commands[1], "--at");
            assert!(from < start && start < at && at < end && end < to, "{start} to {end}: {commands:?}");
            let queues = schedviz_in(&folder, &["stepper", "a trace.dat", "--at", &at.to_string(), "--text", "-q"]);
            assert!(queues.success().text().contains("work conservation is violated"));
        }
    }
    // Where the selected tasks are unknown, there is no longest episode.
    assert_eq!(next(&print(&["workcons", "-q", "forked-unknown.dat", "--forked"])), [""; 0]);
    std::fs::remove_dir_all(&folder).expect("removed");
}

/// Runs a command as a shell does to which it was copied.
fn run(folder: &Path, command: &str) {
    let line = format!("schedviz() {{ {} \"$@\"; }}; {command} -q", env!("CARGO_BIN_EXE_schedviz"));
    let output = Command::new("sh").args(["-c", &line]).current_dir(folder).output().expect("a shell");
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
}

//! The texts of the reports: their columns, their length, and the commands at their end.

use crate::support::{Effort, asked, effort, fixture, program, root, schedviz_in, scratch};
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

/// Takes seconds: the same for the reports that are mailed, in their longer forms, on every fixture.
#[test]
fn reports_fit_a_mail() {
    let reports: [&[&str]; 11] = [
        &["findings"],
        &["workcons"],
        &["workcons", "--verbose"],
        &["latency"],
        &["latency", "--verbose", "--by", "task"],
        &["fairness"],
        &["fairness", "--verbose", "--group-by", "parent"],
        &["neighbours"],
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

#[test]
fn rare_lines_fit_and_agree_in_number() {
    let reports: [&[&str]; 6] = [
        &["fairness", "hackbench.dat", "--by", "params"],
        &["migrations", "attempts-6.12.dat", "-o", "-", "--format", "txt"],
        &["migrations", "throttled-6.12.dat", "-o", "-", "--format", "txt"],
        &["path", "unseen-wakeups-6.1.dat"],
        &["preemptions", "cgroup-cpumax.dat"],
        &["why", "throttled-6.12.dat"],
    ];
    for report in reports {
        let text = print(&[report, &["-q"]].concat());
        assert_eq!(wide(&text, TERMINAL), [""; 0], "{report:?}");
        let slips = [" 1 members", " 1 times", " 1 ways", "by no event", "\n\n\n"];
        assert_eq!(slips.into_iter().find(|slip| text.contains(slip)), None, "{report:?}: {text}");
    }
    // A run without violation is in no median of it.
    let text = print(&["workcons", "-q", "--group", "g=m*.dat"]);
    let medians: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("g: median of ")).take(3).collect();
    assert!(medians.join(" ").contains(", of "), "{text}");
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
    let pending_switches = list(&workcons["runs"][0]["pending_switches"]).len().min(5);
    assert_eq!(text.matches(command).count(), longest.len() + pending_switches);
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
        let (pages, commands): (Vec<String>, Vec<String>) =
            next(&text).into_iter().partition(|command| command.starts_with("schedviz view "));
        // A page is served until it is ended: tests/view_links.rs follows these.
        assert_eq!(pages.len(), usize::from(["workcons", "latency"].contains(&report)), "{pages:?}");
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
}

/// Runs a command as a shell does to which it was copied.
fn run(folder: &Path, command: &str) {
    let line = format!("schedviz() {{ '{}' \"$@\"; }}; {command} -q", program().display());
    let output = Command::new("sh").args(["-c", &line]).current_dir(folder).output().expect("a shell");
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The columns of a terminal.
const TERMINAL: usize = 80;

/// Runs the program in a terminal of this width, or in none.
fn in_terminal(columns: Option<usize>, arguments: &[&str]) -> String {
    let mut command = Command::new(program());
    command.args(arguments).current_dir(root().join("tests/fixtures")).env_remove("COLUMNS");
    if let Some(columns) = columns {
        command.env("COLUMNS", columns.to_string());
    }
    let output = command.output().expect("the program runs");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// The text that the program prints, or nothing where the trace has no answer and need not have one.
fn told(arguments: &[&str], must: bool) -> Option<String> {
    let ran = schedviz_in(&root().join("tests/fixtures"), arguments);
    if !must && ran.code != Some(0) {
        assert!(
            matches!(ran.code, Some(1 | 3)) && ran.stderr.starts_with("schedviz: "),
            "{arguments:?}: {}",
            ran.stderr
        );
        return None;
    }
    Some(ran.success().text())
}

/// Takes seconds: a line's length follows from the trace, so that every question is asked about one that is plain and odd ones.
#[test]
fn texts_fit_a_terminal() {
    let with_options: [&[&str]; 4] = [
        &["why", "--assume-bound"],
        &["stepper", "--text", "--steps", "3"],
        &["preemptions", "--verbose"],
        &["jobs", "--deadline", "1ms"],
    ];
    for trace in FIXTURES {
        for command in with_options {
            let text = in_terminal(None, &[command, &["-q", trace]].concat());
            assert_eq!(wide(&text, TERMINAL), [""; 0], "{command:?} of {trace}");
        }
    }
    // Every question about a trace, in words: a plain one, and odd ones, each of which some question is asked about in the quick run.
    let has_text =
        |entry: &&question::Entry| entry.formats().is_some_and(|formats| formats.files().any(|ending| ending == "txt"));
    let mut seen = 0;
    for (nth, entry) in schedviz::COMMANDS.iter().filter(has_text).enumerate() {
        let odd: &[&str] = match effort() {
            Effort::Quick => &FIXTURES[nth % FIXTURES.len()..][..1],
            _ => &FIXTURES,
        };
        for trace in odd.iter().chain(&["hackbench.dat"]) {
            let Some(words) = asked(entry, trace) else { continue };
            let words = words.iter().map(String::as_str).chain(["-q", "-o", "-", "--format", "txt"]);
            let words: Vec<&str> = words.collect();
            // An odd trace can have no answer, as one without a topology.
            let Some(text) = told(&words, *trace == "hackbench.dat") else { continue };
            assert!(!text.is_empty() && wide(&text, TERMINAL).is_empty(), "{words:?}: {:?}", wide(&text, TERMINAL));
            seen += 1;
        }
    }
    assert!(seen > 30, "{seen} texts");
    let others: [&[&str]; 8] = [
        &["whatif", "hackbench.dat"],
        &["whatif", "hackbench.dat", "hackbench-v6.dat"],
        &["whatif", "--predict-from", "hackbench.dat", "--measured", "hackbench-v6.dat"],
        &["residency", "hackbench.dat", "--topology", "hackbench.cpus.txt"],
        &["schedstat", "eas.before", "eas.after", "--per-cpu"],
        &["compare", "--base", "hackbench.dat", "--new", "hackbench-v6.dat"],
        &["migrations", "hackbench.dat", "--topology", "hackbench.cpus.txt", "-o", "-", "--format", "txt"],
        &["events", "--events", "irq:softirq_entry", "--value", "vec", "every-7.2.dat", "-o", "-", "--format", "txt"],
    ];
    for command in others {
        assert_eq!(wide(&in_terminal(None, command), TERMINAL), [""; 0], "{command:?}");
    }
}

/// The names of the commands that help lists.
fn commands() -> Vec<&'static str> {
    schedviz::COMMANDS.iter().filter(|entry| !entry.is_hidden).map(|entry| entry.name).collect()
}

/// Whether a command takes `--forked` and refuses it.
fn refuses_forked(command: &str) -> bool {
    let Some(entry) = schedviz::COMMANDS.iter().find(|entry| entry.name == command) else { return false };
    let mut command = entry.definition();
    command.build();
    let has = command.get_arguments().any(|argument| argument.get_id() == "forked");
    let words = asked(entry, "hackbench.dat").filter(|_| has);
    let refused = words.map(|words| {
        let words: Vec<&str> = words.iter().map(String::as_str).chain(["--forked", "--json", "-q"]).collect();
        schedviz_in(&root().join("tests/fixtures"), &words).stderr.contains("does not know --forked")
    });
    refused.unwrap_or(false)
}

#[test]
fn every_help_fits_a_terminal_and_keeps_the_lines_of_its_examples() {
    let (all, mut refused) = (in_terminal(None, &["--help"]), 0);
    for command in commands().into_iter().chain([""]) {
        let refuses = refuses_forked(command);
        refused += usize::from(refuses);
        assert!(
            command.is_empty() || [" ", ", "].iter().any(|behind| all.contains(&format!("\n  {command}{behind}"))),
            "{command} is not listed"
        );
        for how in ["-h", "--help"] {
            let arguments: Vec<&str> = [command, how].into_iter().filter(|word| !word.is_empty()).collect();
            let narrow = in_terminal(Some(TERMINAL), &arguments);
            assert_eq!(wide(&narrow, TERMINAL), [""; 0], "{arguments:?}");
            // An option that the command refuses is not in its help.
            let shows = narrow.lines().any(|line| line.trim_start().starts_with("--forked"));
            assert!(!(refuses && shows), "{arguments:?}");
            // A wider terminal changes no line.
            assert_eq!(in_terminal(Some(200), &arguments), narrow, "{arguments:?}");
        }
    }
    assert!(refused >= 4, "{refused} commands refuse --forked");
}

#[test]
fn man_pages_have_the_lines_of_the_examples() {
    let folder = scratch("pages");
    in_terminal(None, &["manual", folder.to_str().expect("a path")]);
    let mut pages: Vec<String> = std::fs::read_dir(&folder)
        .expect("a folder")
        .flatten()
        .filter_map(|entry| entry.file_name().to_string_lossy().strip_suffix(".1").map(str::to_owned))
        .collect();
    let mut expected: Vec<String> = commands().iter().map(|name| format!("schedviz-{name}")).collect();
    expected.push("schedviz".into());
    pages.sort();
    expected.sort();
    assert_eq!(pages, expected, "a page for each command, and none for help");
    for (command, title, section) in [
        ("dat2graph", "Examples:", "\n.SH EXAMPLES\n"),
        ("workcons", "Examples:", "\n.SH EXAMPLES\n"),
        ("", "First steps:", "\n.SH \"FIRST STEPS\"\n"),
    ] {
        let page = if command.is_empty() { "schedviz".to_owned() } else { format!("schedviz-{command}") };
        let page = std::fs::read_to_string(folder.join(format!("{page}.1"))).expect("a page");
        let (_, lines) = page.split_once("\n.nf\n").expect("lines that are not filled");
        let (lines, _) = lines.split_once("\n.fi").expect("their end");
        let lines = lines.replace("\\-", "-").replace("\\*(Aq", "'").replace("\\\\", "\\");
        let arguments: Vec<&str> = [command, "--help"].into_iter().filter(|word| !word.is_empty()).collect();
        let help = in_terminal(None, &arguments);
        let (_, examples) = help.split_once(title).expect("examples");
        assert_eq!(lines.trim(), examples.trim(), "{command}");
        assert!(page.contains(section), "{command}");
    }
}

#[test]
fn the_command_list_lists_as_events_did() {
    let run = |arguments: &[&str]| schedviz_in(&root().join("tests/fixtures"), arguments).success();
    let choice = ["hackbench.dat", "--min", "0.2", "--max", "0.3", "--events", "sched:sched_wakeup,sched:sched_switch"];
    let new = run(&[&["list"], &choice[..]].concat());
    let old = run(&[&["events", "--list"], &choice[..]].concat());
    assert!(new.stdout == old.stdout && new.stdout.len() > 1000);
    assert!(!new.stderr.contains("list") && old.stderr.contains("events --list is now the command list"));
    assert!(run(&[&["events", "--list", "-q"], &choice[..]].concat()).stderr.is_empty());
    // The events of the window, counted by another command.
    let counted = run(&[&["events", "--json", "-q"], &choice[..]].concat()).text();
    let counted: Value = serde_json::from_str(&counted).expect("JSON");
    let lines = new.stdout.iter().filter(|byte| **byte == b'\n').count() as u64;
    assert!(lines > 100 && counted["total"] == lines, "{lines} lines: {}", counted["total"]);
    let refused = schedviz_in(&root(), &["list", "tests/fixtures/hackbench.dat", "-o", "list.pdf"]);
    assert!(refused.code == Some(1) && refused.stderr.contains(".txt"), "{}", refused.stderr);
}

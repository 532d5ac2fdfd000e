//! One name for one thing: the options of all commands, and the fields that all documents have.

use crate::support::{asked, fixture, schedviz};
use sched::Dur;
use serde_json::Value;
use std::collections::BTreeSet;

/// The commands, each with the definition of its arguments.
fn definitions() -> Vec<clap::Command> {
    let define = |entry: &question::Entry| {
        let mut command = entry.definition();
        command.build();
        command
    };
    schedviz::COMMANDS.iter().filter(|entry| !entry.is_hidden).map(define).collect()
}

/// The names of the options of a command that its help shows.
fn options(command: &clap::Command) -> BTreeSet<&str> {
    command.get_opts().filter(|option| !option.is_hide_set()).filter_map(clap::Arg::get_long).collect()
}

#[test]
fn commands_about_tasks_select_them_by_the_same_options() {
    let selection = ["tasks", "exclude-tasks", "pid", "cgroup", "policy"];
    let mut seen = 0;
    for command in definitions() {
        let has: Vec<&str> = selection.into_iter().filter(|name| options(&command).contains(name)).collect();
        let others: &[&str] = match command.get_name() {
            // What is recorded.
            "record" => &["pid", "cgroup"],
            // The task at the end of the path.
            "path" => &["pid"],
            // The tasks that are the application; the numbers are those of all.
            "findings" => &["tasks", "pid", "cgroup"],
            _ => &[],
        };
        assert!(has == others || has == selection, "{}: {has:?}", command.get_name());
        seen += usize::from(has == selection);
    }
    assert!(seen > 14, "{seen} commands");
}

#[test]
fn a_thing_has_the_same_name_in_every_command() {
    for command in definitions() {
        let name = command.get_name();
        for former in ["group-by", "per", "longest", "base-time"] {
            assert!(!options(&command).contains(former), "{name} --{former}");
        }
        // A recording has a length; elsewhere time is that of the trace.
        assert!(name == "record" || !options(&command).contains("time"), "{name} --time");
    }
}

/// The former names go on working, with the same output.
#[test]
fn former_names_of_options_are_aliases() {
    let path = |name: &str| fixture(name).to_str().expect("a path").to_owned();
    let [trace, v6, cpus] = ["hackbench.dat", "hackbench-v6.dat", "hackbench-v6.cpus.txt"].map(path);
    let per = ["running-waiting", &v6, "--topology", &cpus];
    for (command, former, now) in [
        (&["fairness", &trace][..], &["--group-by", "command"][..], &["--by", "command"][..]),
        (&per, &["--per", "node"], &["--by", "node"]),
        (&["offcpu", &trace], &["--time", "runnable"], &["--weight", "runnable"]),
        (&["path", &trace], &["--longest", "1"], &["--worst", "1"]),
        (&["whatif", &trace], &["--policy", "observed"], &["--under", "observed"]),
    ] {
        let run = |more: &[&str]| schedviz(&[command, more, &["--json", "-q"]].concat()).stdout;
        assert!(run(now).len() > 200 && run(former) == run(now), "{command:?}");
        assert!(run(now) != run(&[]) || command[0] == "whatif", "{command:?}: the option has an effect");
    }
}

/// A number alone is one of seconds, or it is refused.
#[test]
fn a_bare_length_of_time_has_one_unit() {
    let mut seen = 0;
    for command in definitions() {
        let lengths = command.get_opts().filter(|option| option.get_value_names().is_some_and(|n| n == ["TIME"]));
        for option in lengths {
            let (name, id) = (option.get_long().expect("a name"), option.get_id().as_str());
            let words = [command.get_name(), &format!("--{name}"), "1", "--", "x.dat"];
            let Ok(matches) = command.clone().ignore_errors(false).try_get_matches_from(words) else { continue };
            if let Ok(Some(length)) = matches.try_get_one::<Dur>(id) {
                assert_eq!(*length, Dur(1_000_000_000), "{} --{name} 1", command.get_name());
                seen += 1;
            }
        }
    }
    assert!(seen > 8, "{seen} options");
    let ran = schedviz(&["events", "x.dat", "--near", "1"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("a unit is missing: 1ms"), "{}", ran.stderr);
}

/// Every document has the window, and how far it can be trusted, under the same names; one about several runs has them for each.
#[test]
fn documents_have_the_same_window_and_trust() {
    let trace = fixture("hackbench.dat").to_str().expect("a path").to_owned();
    let mut seen = 0;
    for entry in schedviz::COMMANDS.iter().filter(|entry| entry.formats().is_some()) {
        let Some(words) = asked(entry, &trace) else { continue };
        let words: Vec<&str> = words.iter().map(String::as_str).chain(["--json", "-q"]).collect();
        let document: Value = serde_json::from_slice(&schedviz(&words).stdout).expect(entry.name);
        let runs = document["runs"].as_array().cloned().unwrap_or_else(|| vec![document]);
        for run in &runs {
            let ends = [&run["from_ns"], &run["to_ns"]].map(|end| end.as_i64().unwrap_or_else(|| panic!("{entry:?}")));
            assert!(ends[0] < ends[1], "{entry:?}: {ends:?}");
            assert!(run["trust"].is_array() && run["trace"] == "hackbench.dat", "{entry:?}");
        }
        seen += 1;
    }
    assert!(seen > 18, "{seen} questions");
}

/// An option under a heading of its own can be what a command is for.
#[test]
fn short_help_has_what_a_command_is_for() {
    for (command, options) in [
        ("record", &["--why", "--stacks", "--time", "--pid", "--cgroup", "--until", "--runs"][..]),
        ("export", &["--csv", "--parquet", "--perfetto"]),
        ("cut", &["--output", "--anonymize"]),
    ] {
        let help = schedviz(&[command, "-h"]).success().text();
        for option in options {
            let is_of_it = |word: &str| word.split(['[', '=']).next() == Some(*option);
            let is_listed = help.lines().any(|line| line.split_whitespace().take(2).any(is_of_it));
            assert!(is_listed, "{command} -h lacks {option}: {help}");
        }
    }
}

/// Short help shows what one question needs: a command's own options, and few of those that all have.
#[test]
fn short_help_is_about_one_question() {
    for command in definitions() {
        let name = command.get_name();
        let count = |how: &str| {
            let help = schedviz(&[name, how]).success().text();
            help.lines().filter(|line| line.starts_with("  -") || line.starts_with("      --")).count()
        };
        let (short, long) = (count("-h"), count("--help"));
        let shown = command.get_arguments().filter(|argument| !argument.is_positional() && !argument.is_hide_set());
        let own = shown.filter(|argument| argument.get_help_heading().is_none()).count();
        // The shared ones, and --help.
        assert!(short <= own + 9 && short <= long, "{name}: {short} options of {long}, {own} its own");
    }
}

//! Counts of adjacent windows add up to those of the whole, in every command of the registry.

use crate::support::{csv, events, fixture, schedviz, scratch};
use parse::Trace;
use rayon::prelude::*;
use sched::{EventKind, Ts};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The topology of the machine on which hackbench-v6.dat was recorded.
const CPUS: &str = "tests/fixtures/hackbench-v6.cpus.txt";

/// The specification of a figure with a kind of mark for each way of counting.
const SPEC: &str =
    "title = \"Switches\"\nabout = \"Switches.\"\n[[point]]\nname = \"switch\"\nevent = \"sched:sched_switch\"\n";

/// The commands whose numbers add up, each with its arguments and its numbers: names of fields, with lists as `name[fields of the key]`.
#[rustfmt::skip]
const ADDITIVE: &[(&str, &[&str], &[&str])] = &[
    ("workcons", &[], &["runs[].window_ns", "runs[].violation.ns", "runs[].violation.thread_ns", "runs[].all.ns",
        "runs[].all.thread_ns"]),
    ("running-waiting", &[], &["panels[name].running_ns", "panels[name].waiting_ns", "panels[name].violated_ns"]),
    ("why", &[], &["runs[].waiting.total_ns", "runs[].idling.total_ns", "runs[].missed.idle_entries",
        "runs[].missed.number", "runs[].missed.by_distance[nearest].number"]),
    ("utilization", &["--by", "command"], &["all.app_ns", "all.other_ns", "all.kernel_ns", "all.stopper_ns", "all.rt_ns", "all.rt_possible_ns",
        "all.idle_ns", "cpus[cpu].app_ns", "cpus[cpu].idle_ns", "wakeups.placed", "wakeups.on_idle", "groups.rows[command].run_ns"]),
    ("latency", &[], &["measures[measure].count", "measures[measure].total_ns", "by_placement[kind].count",
        "by_idleness[kind].count", "rows[command].measures[measure].count", "without_waking"]),
    ("preemptions", &[], &["requests", "ways[kind,made_immediate,ending].at_most.count",
        "ways[kind,made_immediate,ending].at_most.total_ns", "askers[asker].at_most.count", "switches_saved",
        "profited.count", "without_request", "rows[command].requests", "idle_wakeups"]),
    ("wakers", &[], &["wakeups", "by_tasks", "by_interrupts", "by_unknown", "edges[waker.command,woken.command].wakeups",
        "interrupts[waker.command,woken.command].wakeups", "edges[waker.command,woken.command].same_cpu"]),
    ("jobs", &["--deadline", "1ms"], &["jobs", "cut", "missed", "tasks[pid].jobs", "tasks[pid].missed"]),
    ("picks", &[], &["picks", "to_other_classes", "to_idle", "reasons[reason].picks", "runs.count", "runs.total_ns",
        "rows[command].picks"]),
    ("offcpu", &[], &["asleep_ns", "runnable_ns", "switches", "kinds[kind].switches", "stacks[command,kind].switches",
        "stacks[command,kind].asleep_ns", "stacks[command,kind].runnable_ns"]),
    ("fairness", &["--group-by", "command"], &["members[name].run_ns", "members[name].wait_ns", "members[name].runs.count",
        "members[name].waits.count"]),
    ("neighbours", &[], &["wait_ns", "preemptions", "groups[name].wait_ns", "groups[name].preempted",
        "pairs[victim,culprit].wait_ns", "pairs[victim,culprit].preemptions"]),
    ("residency", &["--topology", CPUS], &["run_ns", "llcs[llc].run_ns", "llcs[llc].wait_ns", "groups[name].run_ns",
        "moves", "moves[from,to,cause].moves"]),
    ("migrations", &[], &["total", "recorded", "causes[cause].count", "causes[cause].queued", "causes[cause].ran"]),
    ("events", &[], &["total", "kinds[name].count"]),
    ("plot", &["SPEC"], &["points[name].count"]),
];

/// The commands without such numbers in a document, each with the reason.
const OTHERS: &[(&str, &str)] = &[
    ("record", "makes recordings"),
    ("findings", "repeats numbers of other commands"),
    ("info", "describes the whole file"),
    ("dat2graph", "is a figure; lanes are compared with windows in tests/windows.rs"),
    ("path", "has the path of each window"),
    ("whatif", "models each window by itself"),
    ("stepper", "shows an instant"),
    ("view", "asks the other commands"),
    ("list", "lists events: below"),
    ("report", "consists of the other commands"),
    ("compare", "compares numbers of other commands"),
    ("schedstat", "reads no trace"),
    ("export", "lists events: below"),
    ("cut", "makes a part: below"),
    ("reproduce", "has the work of each window by itself"),
    ("top", "follows the running machine"),
    ("machine", "describes the running machine"),
    ("manual", "prints a manual"),
    ("mcp", "serves what the others answer"),
];

/// Adds the numbers of a path to `found`, by the keys of the lists on its way.
fn gather(at: &Value, path: &str, name: &str, found: &mut BTreeMap<String, u128>) {
    let (step, rest) = path.split_once('.').map_or((path, ""), |(step, rest)| match step.matches('[').count() {
        // A point within a key.
        1 if !step.contains(']') => {
            path.split_once("].").map_or((path, ""), |(head, rest)| (&path[..=head.len()], rest))
        }
        _ => (step, rest),
    });
    match step.split_once('[') {
        Some((list, keys)) => {
            for row in at[list].as_array().into_iter().flatten() {
                let keys = keys.trim_end_matches(']').split(',').filter(|key| !key.is_empty());
                let key: Vec<String> =
                    keys.map(|key| key.split('.').fold(row, |at, step| &at[step]).to_string()).collect();
                gather(row, rest, &format!("{name}.{list}[{}]", key.join(",")), found);
            }
        }
        None if rest.is_empty() => {
            if let Some(number) = at[step].as_u64() {
                *found.entry(format!("{name}.{step}")).or_default() += u128::from(number);
            }
        }
        None => gather(&at[step], rest, &format!("{name}.{step}"), found),
    }
}

/// An edge as an option has it.
fn instant(ts: Ts) -> String {
    format!("@{}.{:09}", ts.0 / 1_000_000_000, ts.0 % 1_000_000_000)
}

/// The whole trace and three adjacent windows of it, as options. Both edges are instants of switches.
fn windows(file: &str) -> Vec<Vec<String>> {
    let trace = Trace::open(&fixture(file), parse::Options::default()).expect("a trace");
    let switches: Vec<Ts> = events(&trace)
        .iter()
        .filter(|event| matches!(event.kind, EventKind::Switch { .. }))
        .map(|event| event.ts)
        .collect();
    let [one, other] = [switches[switches.len() / 3], switches[2 * switches.len() / 3]].map(instant);
    let of = |options: &[&str]| options.iter().map(|option| (*option).to_owned()).collect();
    vec![of(&[]), of(&["--max", &one]), of(&["--min", &one, "--max", &other]), of(&["--min", &other])]
}

/// The numbers of a command in a window.
fn numbers(line: &[&str], window: &[String], paths: &[&str]) -> BTreeMap<String, u128> {
    let window: Vec<&str> = window.iter().map(String::as_str).collect();
    let ran = schedviz(&[line, &window, &["--json", "-q", "--threads", "1"]].concat()).success();
    let document: Value = serde_json::from_slice(&ran.stdout).expect("JSON");
    let mut found = BTreeMap::new();
    paths.iter().for_each(|path| gather(&document, path, "", &mut found));
    found.retain(|_, number| *number > 0);
    found
}

#[test]
fn counts_of_adjacent_windows_are_those_of_the_whole_in_every_command() {
    let folder = scratch("adjacent-windows");
    let spec = folder.join("switches.toml");
    std::fs::write(&spec, SPEC).expect("written");
    let spec = spec.to_str().expect("a path");
    ADDITIVE.par_iter().for_each(|(command, arguments, paths)| {
        let file = if arguments.contains(&CPUS) { "hackbench-v6.dat" } else { "spmd-plus1.dat" };
        let path = fixture(file);
        let mut line = vec![*command];
        line.extend(arguments.iter().map(|argument| if *argument == "SPEC" { spec } else { argument }));
        line.push(path.to_str().expect("a path"));
        let mut sums = windows(file).into_iter().map(|window| numbers(&line, &window, paths));
        let whole = sums.next().expect("the whole");
        let mut parts: BTreeMap<String, u128> = BTreeMap::new();
        sums.flatten().for_each(|(name, number)| *parts.entry(name).or_default() += number);
        let names: BTreeSet<&String> = whole.keys().chain(parts.keys()).collect();
        let differ: Vec<_> = names
            .into_iter()
            .filter(|name| whole.get(*name) != parts.get(*name))
            .map(|name| (name, whole.get(name), parts.get(name)))
            .collect();
        assert!(differ.is_empty(), "{command}: the whole and its windows differ: {differ:?}");
        assert!(!whole.is_empty(), "{command}: no number was found");
    });
}

#[test]
fn events_of_adjacent_windows_and_parts_are_those_of_the_whole() {
    let folder = scratch("adjacent-windows-events");
    let path = fixture("spmd-plus1.dat");
    let path = path.to_str().expect("a path");
    let windows = windows("spmd-plus1.dat");
    let run = |line: &[&str], window: &[String]| {
        let window: Vec<&str> = window.iter().map(String::as_str).collect();
        schedviz(&[line, &window, &["-q"]].concat()).success().text()
    };
    let listed = |window: &Vec<String>| run(&["list", path], window).lines().count();
    let exported = |window: &Vec<String>| csv(&run(&["export", path, "--csv", "-", "--tables", "event"], window)).len();
    let parts = |window: &Vec<String>| {
        if window.is_empty() {
            return exported(window);
        }
        let part = folder.join(format!("{}.dat", window.join("")));
        let part = part.to_str().expect("a path");
        run(&["cut", path, "-o", part], window);
        csv(&run(&["export", part, "--csv", "-", "--tables", "event"], &[])).len()
    };
    let counts = |count: &dyn Fn(&Vec<String>) -> usize| windows.iter().map(count).collect::<Vec<_>>();
    for (name, counts) in [("list", counts(&listed)), ("export", counts(&exported)), ("cut", counts(&parts))] {
        assert_eq!(counts[0], counts[1..].iter().sum::<usize>(), "{name}: {counts:?}");
        assert!(counts[0] > 2_000, "{name}");
    }
}

#[test]
fn every_command_is_in_one_of_the_lists_once() {
    let shown = schedviz::COMMANDS.iter().filter(|entry| !entry.is_hidden);
    let mut commands: Vec<&str> = shown.map(|entry| entry.name).collect();
    let mut listed: Vec<&str> = ADDITIVE.iter().map(|(command, ..)| *command).collect();
    listed.extend(OTHERS.iter().map(|(command, _)| *command));
    commands.sort_unstable();
    listed.sort_unstable();
    assert_eq!(listed, commands, "the lists above, and the registry");
}

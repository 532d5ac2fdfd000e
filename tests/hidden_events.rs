//! Recordings without one kind of event: no number that follows from it remains, in text, JSON or CSV.

use crate::support::{Effort, effort, fixture, schedviz, schedviz_in, scratch, unwrapped};
use sched::{EventKind, SchedEvent};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use testkit::{Simulation, TraceBuilder};

/// The commands whose numbers follow from wakeups, with the places of those in their documents.
const OF_WAKEUPS: [(&str, &[&str]); 4] = [
    ("wakers", &["wakeups", "by_tasks", "by_interrupts", "by_unknown", "open"]),
    ("jobs", &["jobs", "open", "cut", "periodic", "judged", "missed"]),
    ("offcpu", &["asleep_ns", "runnable_ns"]),
    ("neighbours", &["pressure"]),
];

/// Writes the simulated run without the events that are hidden.
fn without(folder: &Path, name: &str, is_hidden: fn(&EventKind) -> bool) {
    let run = Simulation::run(61, 4, 2000);
    let events: Vec<SchedEvent> = run.events.into_iter().filter(|event| !is_hidden(&event.kind)).collect();
    std::fs::write(folder.join(name), TraceBuilder::default().events(&events).build()).expect("written");
}

#[test]
fn nothing_is_zero_for_want_of_wakeups() {
    let folder = scratch("hidden-wakeups");
    let is_wakeup = |kind: &EventKind| matches!(kind, EventKind::Wakeup { .. } | EventKind::Waking { .. });
    without(&folder, "hidden.dat", is_wakeup);
    without(&folder, "whole.dat", |_| false);
    for (command, numbers) in OF_WAKEUPS {
        let document = |file: &str| -> Value {
            let ran = schedviz_in(&folder, &[command, file, "--json", "-q"]).success();
            serde_json::from_slice(&ran.stdout).expect("JSON")
        };
        let (hidden, whole) = (document("hidden.dat"), document("whole.dat"));
        for number in numbers {
            assert!(hidden[number].is_null(), "{command}: {number} is {}", hidden[number]);
            assert!(whole[number].is_u64() || whole[number].is_object() || *number == "missed", "{command}: {number}");
        }
        let text = unwrapped(&schedviz_in(&folder, &[command, "hidden.dat", "-q"]).success().text());
        // The doubts about the trace come first.
        let (doubts, answer) = text.split_once("hidden.dat: ").expect("an answer behind the doubts");
        assert!(doubts.starts_with("Doubts: Not recorded: sched_wakeup"), "{command}: {text}");
        let first = answer.split(". ").next().expect("a sentence");
        assert!(first.contains("unknown") || first.contains("no figures"), "{command}: {text}");
        assert!(text.contains("recorded") && !text.contains(" 0 wakeups") && !text.contains(" 0 jobs"), "{text}");
        let csv = schedviz_in(&folder, &[command, "hidden.dat", "-q", "-o", "-", "--format", "csv"]).success().text();
        let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
        let places = rows[0].iter().enumerate().filter(|(_, name)| ["asleep_ns", "runnable_ns"].contains(*name));
        let places: Vec<usize> = places.map(|(place, _)| place).collect();
        let is_empty = |row: &Vec<&str>| !places.is_empty() && places.iter().all(|place| row[*place].is_empty());
        assert!(rows[1..].iter().all(is_empty), "{command}: {csv}");
    }
    let fairness = unwrapped(&schedviz_in(&folder, &["fairness", "hidden.dat", "-q"]).success().text());
    assert!(fairness.contains("those behind sleeps are unknown: neither sched:sched_wakeup"), "{fairness}");
}

/// Without wakings no interrupt is known to release a job, so that no task can be called aperiodic.
#[test]
fn the_number_of_periodic_tasks_is_unknown_without_wakings() {
    let folder = scratch("hidden-periods");
    without(&folder, "hidden.dat", |kind| matches!(kind, EventKind::Waking { .. }));
    without(&folder, "whole.dat", |_| false);
    let document = |file: &str| -> Value {
        serde_json::from_slice(&schedviz_in(&folder, &["jobs", file, "--json", "-q"]).success().stdout).expect("JSON")
    };
    let (hidden, whole) = (document("hidden.dat"), document("whole.dat"));
    assert_eq!((&whole["periodic"], &whole["judged"]), (&0.into(), &0.into()));
    assert!(hidden["periodic"].is_null() && hidden["judged"].is_null() && hidden["jobs"].is_u64(), "{hidden}");
    let text = unwrapped(&schedviz_in(&folder, &["jobs", "hidden.dat", "-q"]).success().text());
    assert!(text.contains("sched:sched_waking was not recorded") && !text.contains("no task is periodic"), "{text}");
}

/// A kind of event that is hidden: its name, and whether an event is of it.
type Hidden = (&'static str, fn(&EventKind) -> bool);

/// The kinds of events that decide the state, but for switches, without which every command refuses a trace.
const KINDS: [Hidden; 8] = [
    ("wakeups and wakings", |kind| matches!(kind, EventKind::Wakeup { .. } | EventKind::Waking { .. })),
    ("sched_waking", |kind| matches!(kind, EventKind::Waking { .. })),
    ("sched_wakeup_new", |kind| matches!(kind, EventKind::WakeupNew { .. })),
    ("sched_wakeup", |kind| matches!(kind, EventKind::Wakeup { .. })),
    ("sched_migrate_task", |kind| matches!(kind, EventKind::Migrate { .. })),
    ("sched_process_fork", |kind| matches!(kind, EventKind::Fork { .. })),
    ("sched_process_exec", |kind| matches!(kind, EventKind::Exec { .. })),
    ("sched_process_exit", |kind| matches!(kind, EventKind::Exit { .. })),
];

/// Numbers that may become zero: what they mean does not depend on the hidden events, or zero is what is left of them.
/// The rows of `worst` and `starved` are those of other waits.
const MAY_BE_ZERO: [(&str, &str); 3] = [
    ("latency", ".worst[].idle_cpus"),
    ("fairness", ".starved[].could_have_run_ns"),
    ("fairness", ".starved[].idle_cpu_count"),
];

/// Whether a number is a total of the whole trace, which fewer events do not raise: no row, quantile, instant, upper bound, or unknown time.
fn is_total(path: &str) -> bool {
    let last = path.rsplit('.').next().unwrap_or_default();
    let of_a_distribution = ["min_ns", "mean_ns", "p50_ns", "p90_ns", "p99_ns", "p999_ns", "start_in_trace_ns", "pid"];
    path.starts_with('.')
        && !["[]", "at_most", "unknown"].iter().any(|part| path.contains(part))
        && !of_a_distribution.contains(&last)
}

/// The numbers of a document by their paths; those of rows are summed.
fn numbers(value: &Value, path: &str, sums: &mut BTreeMap<String, f64>) {
    match value {
        Value::Number(number) => *sums.entry(path.to_owned()).or_default() += number.as_f64().unwrap_or_default().abs(),
        Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| numbers(value, &format!("{path}.{name}"), sums));
        }
        Value::Array(values) => values.iter().for_each(|value| numbers(value, &format!("{path}[]"), sums)),
        _ => {}
    }
}

/// The numbers of a table's columns, summed.
fn columns(text: &str) -> BTreeMap<String, f64> {
    let mut sums = BTreeMap::new();
    let mut lines = text.lines().map(|line| line.split(','));
    let names: Vec<&str> = lines.next().map(Iterator::collect).unwrap_or_default();
    for (name, cell) in lines.flat_map(|line| names.iter().zip(line)) {
        if let Ok(number) = cell.parse::<f64>() {
            *sums.entry((*name).to_owned()).or_default() += number.abs();
        }
    }
    sums
}

/// The task that commands ask for which refuse the simulated run otherwise: no exec in it shows a command.
const OF_A_TASK: [(&str, [&str; 2]); 1] = [("path", ["--pid", "100"])];

/// The commands that refuse the simulated run: `residency` needs a topology.
const REFUSED: [&str; 1] = ["residency"];

/// All numbers of a command's document and table on a trace; none where it refuses the trace.
fn all_numbers(folder: &Path, command: &str, file: &str, has_table: bool) -> Option<BTreeMap<String, f64>> {
    let task = OF_A_TASK.iter().filter(|(of, _)| *of == command).flat_map(|(_, task)| *task);
    let plain = [command, file, "--json", "-q"];
    let arguments: Vec<&str> = plain.into_iter().chain(task).collect();
    let answer = |arguments: &[&str]| serde_json::from_slice::<Value>(&schedviz_in(folder, arguments).stdout).ok();
    let document = answer(&plain).or_else(|| answer(&arguments))?;
    let mut sums = BTreeMap::new();
    numbers(&document, "", &mut sums);
    if has_table {
        let csv = schedviz_in(folder, &[command, file, "-q", "-o", "-", "--format", "csv"]).success().text();
        sums.extend(columns(&csv).into_iter().map(|(name, sum)| (format!("column {name}"), sum)));
    }
    Some(sums)
}

/// What the law found in the commands' answers to a recording and to those without a kind of event.
#[derive(Default)]
struct Law {
    found: Vec<String>,
    refused: Vec<&'static str>,
    compared: usize,
}

/// Compares the numbers of every command on a recording with those without each kind of event, by the names of the kinds and of the files: no number that
/// was above zero becomes zero, and no total is higher without wakings. Without migrations, for instance, queued time is beside other queues, which the
/// doubts say.
fn law(folder: &Path, whole: &str, hidden: &[(&str, String)], is_exempt: impl Fn(&str, &str) -> bool) -> Law {
    let mut law = Law::default();
    for entry in schedviz::COMMANDS.iter().filter(|entry| !entry.is_hidden) {
        let help = schedviz(&[entry.name, "--help"]).success().text();
        let takes_a_trace = help.contains("--json") && help.contains("<TRACE>") && !help.contains("<SPEC>");
        let has_table = help.contains("- csv: ");
        if !takes_a_trace {
            continue;
        }
        let Some(whole) = all_numbers(folder, entry.name, whole, has_table) else {
            law.refused.push(entry.name);
            continue;
        };
        for (kind, file) in hidden {
            let Some(hidden) = all_numbers(folder, entry.name, file, has_table) else { continue };
            law.compared += 1;
            for (path, sum) in whole.iter().filter(|(path, sum)| **sum > 0.0 && !is_exempt(entry.name, path)) {
                let Some(left) = hidden.get(path) else { continue };
                let is_higher = kind.contains("waking") && left > sum && is_total(path);
                if *left == 0.0 || is_higher {
                    law.found.push(format!("{} without {kind}: {path} is {left}, and {sum} with it", entry.name));
                }
            }
        }
    }
    law
}

/// Hides each kind of event that decides the state in turn.
#[test]
fn no_number_becomes_zero_for_want_of_a_kind_of_events() {
    let folder = scratch("hidden-kinds");
    let kinds = if effort() == Effort::Quick { &KINDS[..2] } else { &KINDS[..] };
    without(&folder, "whole.dat", |_| false);
    let hide = |(nth, (kind, is_hidden)): (usize, &Hidden)| {
        let file = format!("hidden-{nth}.dat");
        without(&folder, &file, *is_hidden);
        (*kind, file)
    };
    let hidden: Vec<(&str, String)> = kinds.iter().enumerate().map(hide).collect();
    let is_exempt = |command: &str, path: &str| MAY_BE_ZERO.contains(&(command, path));
    let Law { found, refused, compared } = law(&folder, "whole.dat", &hidden, is_exempt);
    assert_eq!(refused, REFUSED);
    assert!(compared > 30, "{compared}");
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Recordings with the events of probes, timers and interrupts, each with the kinds that are hidden: events that mean nothing by themselves together.
const RECORDED: [(&str, &[&[&str]]); 5] = [
    ("throttled-6.12.dat", &[&["throttle", "unthrottle"], &["can_migrate"], &["find_busiest_group"]]),
    ("rebound-6.12.dat", &[&["set_affinity"]]),
    (
        "attempts-6.12.dat",
        &[
            &["load_balance"],
            &["can_migrate"],
            &["newidle_balance", "newidle_balance_in"],
            &["idle"],
            &["kicked"],
            &["need_active"],
            &["nohz_idle"],
            &["domains"],
            &["detach_task"],
        ],
    ),
    ("sleepers-timers-6.12.dat", &[&["hrtimer_start"], &["hrtimer_expire_entry", "hrtimer_expire_exit"]]),
    (
        "every-7.2.dat",
        &[
            &["softirq_entry", "softirq_exit"],
            &["softirq_exit"],
            &["softirq_entry"],
            &["irq_handler_entry", "irq_handler_exit"],
            &["local_timer_entry", "local_timer_exit"],
            &["hrtimer_start"],
            &["cpu_idle"],
        ],
    ),
];

/// Migrations with a recorded cause: none without the record.
const NONE_RECORDED: [(&str, &str); 2] = [("migrations", ".recorded"), ("migrations", ".causes[].recorded")];

/// A number of this many bytes in a file of the order of x86.
fn number(bytes: &[u8], at: usize, size: usize) -> usize {
    bytes[at..at + size].iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte))
}

/// The length of the head of a section in a trace.dat of version 7: number, flags, name, size.
const SECTION: usize = 16;

/// A trace.dat of version 7 in which these events have other names: with other formats, uncompressed, at the end of the file.
fn renamed(whole: &[u8], names: &[&str]) -> Vec<u8> {
    let behind_nul = |at: usize| at + whole[at..].iter().position(|byte| *byte == 0).expect("a string") + 1;
    // Magic, version, order, size of a long, size of a page, codec and its version, options.
    let head = behind_nul(behind_nul(behind_nul(10) + 6));
    let mut options = number(whole, head, 8) + SECTION;
    let place = loop {
        match (number(whole, options, 2), number(whole, options + 2, 4)) {
            (18, _) => break options + 6,
            (0, _) => options = number(whole, options + 6, 8) + SECTION,
            (_, size) => options += 6 + size,
        }
    };
    let section = number(whole, place, 8);
    let (flags, size) = (number(whole, section + 2, 2), number(whole, section + 8, 8));
    assert_eq!(flags & 1, 1, "compressed");
    let body = &whole[section + SECTION..][..size];
    let mut formats = zstd::bulk::decompress(&body[8..][..number(body, 0, 4)], number(body, 4, 4)).expect("zstd");
    for name in names {
        let line = format!("name: {name}\n");
        let at = formats.windows(line.len()).position(|part| part == line.as_bytes()).expect("a format");
        formats[at + "name: ".len()..][..name.len()].fill(b'x');
    }
    let mut renamed = whole.to_vec();
    renamed[place..place + 8].copy_from_slice(&(whole.len() as u64).to_le_bytes());
    renamed.extend_from_slice(&whole[section..section + SECTION]);
    renamed[whole.len() + 2] &= !1;
    renamed[whole.len() + 8..].copy_from_slice(&(formats.len() as u64).to_le_bytes());
    renamed.extend_from_slice(&formats);
    renamed
}

/// Hides probes on the balancer, the events of timers and those of interrupts in turn.
#[test]
fn no_number_becomes_zero_for_want_of_probes_timers_or_interrupts() {
    let quick = effort() == Effort::Quick;
    let mut found = Vec::new();
    for (name, kinds) in RECORDED.iter().take(if quick { 1 } else { RECORDED.len() }) {
        let folder = scratch("hidden-probes");
        let whole = std::fs::read(fixture(name)).expect("a fixture");
        std::fs::write(folder.join("whole.dat"), &whole).expect("written");
        // The machine's own account of the recording, which shows what its events do not.
        let machine = fixture(name).with_extension("machine.json");
        let describe = |file: &str| {
            if machine.exists() {
                let beside = folder.join(file).with_extension("machine.json");
                std::fs::copy(&machine, beside).expect("copied");
            }
        };
        describe("whole.dat");
        let hide = |(nth, names): (usize, &&[&'static str])| {
            let file = format!("hidden-{nth}.dat");
            std::fs::write(folder.join(&file), renamed(&whole, names)).expect("written");
            describe(&file);
            (names[0], file)
        };
        let kinds = kinds.iter().take(if quick { 1 } else { kinds.len() });
        let hidden: Vec<(&str, String)> = kinds.enumerate().map(hide).collect();
        let is_exempt = |command: &str, path: &str| NONE_RECORDED.contains(&(command, path));
        let law = law(&folder, "whole.dat", &hidden, is_exempt);
        assert!(law.compared > 15 * hidden.len(), "{name}: {}, refused: {:?}", law.compared, law.refused);
        found.extend(law.found.into_iter().map(|line| format!("{name}: {line}")));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// A path whose wakers no event shows passes on to no task, and says so: no handover is not a number of handovers, and no time is known to be that
/// of a wakeup or of a sleep until an interrupt. The fixture is not
/// compressed, so that a kind of event is hidden by another name in its format.
#[test]
fn a_path_without_wakings_has_no_number_of_handovers() {
    let folder = scratch("hidden-path");
    let whole = std::fs::read(fixture("hackbench-v6.dat")).expect("a fixture");
    let name = b"name: sched_waking\n";
    let at = whole.windows(name.len()).position(|part| part == name).expect("a format");
    let mut hidden = whole.clone();
    hidden[at + name.len() - 2] = b'x';
    for (file, bytes) in [("whole.dat", &whole), ("hidden.dat", &hidden)] {
        std::fs::write(folder.join(file), bytes).expect("written");
    }
    let document = |file: &str| -> Value {
        let ran = schedviz_in(&folder, &["path", file, "--json", "-q"]).success();
        serde_json::from_slice(&ran.stdout).expect("JSON")
    };
    let (whole, hidden) = (document("whole.dat"), document("hidden.dat"));
    assert_eq!((&whole["handovers"], &whole["depth"]), (&17.into(), &2.into()));
    assert_eq!((&hidden["handovers"], &hidden["depth"]), (&Value::Null, &Value::Null));
    let text = unwrapped(&schedviz_in(&folder, &["path", "hidden.dat", "-q"]).success().text());
    assert!(text.contains("sched:sched_waking was not recorded: who woke the tasks"), "{text}");
    assert!(!text.contains("handover"), "{text}");
    let times = [&hidden["times"], &hidden["tasks"][0], &hidden["cpus"][0]];
    assert!(times.iter().all(|of| of["waking_ns"].is_null() && of["sleeping_ns"].is_null()), "{hidden}");
    assert!(whole["times"]["waking_ns"].as_u64() > Some(0) && whole["times"]["sleeping_ns"].is_u64(), "{whole}");
    let part = |name: &str| hidden["times"][name].as_u64().unwrap_or(0);
    let known = ["running_ns", "queued_ns", "unknown_ns", "throttled_ns"].map(part).iter().sum::<u64>();
    let end = |name: &str| hidden[name].as_u64().expect("an instant");
    assert_eq!(known, end("to_ns") - end("from_ns"), "the known times and the unknown one are the path: {hidden}");
    assert!(text.contains("wakeup in progress unknown sleeping until interrupt unknown unknown"), "{text}");
}

/// A recording that contradicts itself is trusted by no command, for the same reason.
#[test]
fn info_trusts_what_other_commands_trust() {
    let folder = scratch("hidden-switches");
    without(&folder, "whole.dat", |_| false);
    let run = Simulation::run(61, 4, 2000);
    let some = run
        .events
        .iter()
        .enumerate()
        .filter(|(nth, event)| !matches!(event.kind, EventKind::Switch { .. }) || nth % 7 != 0);
    let some: Vec<SchedEvent> = some.map(|(_, event)| *event).collect();
    std::fs::write(folder.join("some.dat"), TraceBuilder::default().events(&some).build()).expect("written");
    let mut doubted = 0;
    let files = ["whole.dat", "some.dat"].map(|name| folder.join(name));
    let recorded = ["hackbench.dat", "rt-5.10.dat", "mask.dat", "hackbench-7.2.dat"].map(fixture);
    for file in files.iter().chain(&recorded) {
        let file = file.to_str().expect("a path");
        let ran = schedviz_in(&folder, &["info", file, "--json", "-q"]).success();
        let info: Value = serde_json::from_slice(&ran.stdout).expect("JSON");
        let text = unwrapped(&schedviz_in(&folder, &["info", file, "-q"]).success().text());
        let workcons = unwrapped(&schedviz_in(&folder, &["workcons", file, "-q"]).success().text());
        match info["untrusted"].as_str() {
            Some(why) => {
                assert!(workcons.contains(why), "{file}: {why}: {workcons}");
                assert!(text.contains(&format!("run queues: not to be trusted: {why}")), "{text}");
                assert!(!text.contains("run queues: exact"), "{text}");
                doubted += 1;
            }
            None => assert!(!workcons.contains("not to be trusted"), "{file}: {workcons}"),
        }
    }
    assert!(doubted >= 2, "{doubted}");
    let ran = schedviz_in(&folder, &["info", "some.dat", "--json", "-q"]).success();
    let info: Value = serde_json::from_slice(&ran.stdout).expect("JSON");
    let rows = info["diagnostics"].as_array().expect("rows");
    assert!(rows.iter().any(|row| row["kind"] == "switch-prev-mismatch"), "{rows:?}");
}

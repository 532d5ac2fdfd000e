//! Printed traces as recordings: what trace-cmd prints of a fixture reads like the fixture.

use crate::support::{events, fixture, schedviz, schedviz_in, scratch};
use crate::trace_cmd::report;
use parse::{FileIssue, Options, Source, Trace};
use sched::{Comm, EventKind, SchedEvent, StateClass};
use testkit::{gzip, viewer_json, viewer_page};

/// The text that trace-cmd prints of a fixture; nothing where it is not installed.
fn printed(name: &str, options: &[&str]) -> Option<Vec<u8>> {
    report(&fixture(name), options).map(String::into_bytes)
}

fn read(text: Vec<u8>) -> Trace {
    recordings::of_source(Source::Memory(text), Options::default()).expect("a text")
}

/// An event without what a dialect cannot hold. `plugin`: printed by the plugins of trace-cmd, which leave out the sign of preemption.
fn reduced(event: &SchedEvent, plugin: bool) -> Option<SchedEvent> {
    let mut event = SchedEvent { flags: 0, ..*event };
    match &mut event.kind {
        EventKind::Switch { state, .. } => {
            state.raw = 0;
            if plugin && state.class == StateClass::Preempted {
                state.class = StateClass::Runnable;
            }
        }
        EventKind::Fork { .. }
        | EventKind::Waking { .. }
        | EventKind::Wakeup { .. }
        | EventKind::WakeupNew { .. }
        | EventKind::Migrate { .. }
        | EventKind::Exit { .. } => {}
        EventKind::Exec { program, .. } => *program = Comm::EMPTY,
        _ => return None,
    }
    Some(event)
}

/// With all digits of the times each event is there, of every CPU in its order, whatever the dialect.
#[test]
fn texts_with_nanoseconds_have_the_events_of_the_recording() {
    for name in ["hackbench-7.2.dat", "forked-unknown.dat", "spmd-plus1.dat"] {
        let trace = Trace::open(&fixture(name), Options::default()).expect("a fixture");
        let all = events(&trace);
        for (options, plugin) in
            [(&["-t"][..], true), (&["-t", "-N"], false), (&["-t", "-R"], false), (&["-t", "-l"], true)]
        {
            let Some(text) = printed(name, options) else { return };
            let found = events(&read(text));
            let reduce = |events: &[SchedEvent]| -> Vec<SchedEvent> {
                let mut events: Vec<_> = events.iter().filter_map(|event| reduced(event, plugin)).collect();
                events.sort_by_key(|event| (event.ts, event.cpu));
                events
            };
            let (found, expected) = (reduce(&found), reduce(&all));
            let differs = found.iter().zip(&expected).position(|(found, expected)| found != expected);
            if let Some(at) = differs {
                panic!("{name} {options:?}: event {at}\n{:?}\n{:?}", found[at], expected[at]);
            }
            assert_eq!(found.len(), expected.len(), "{name} {options:?}");
        }
    }
}

/// Removes these keys, wherever they are.
fn forget(json: &mut serde_json::Value, keys: &[&str]) {
    match json {
        serde_json::Value::Object(object) => {
            object.retain(|key, _| !keys.contains(&key.as_str()));
            object.values_mut().for_each(|value| forget(value, keys));
        }
        serde_json::Value::Array(all) => all.iter_mut().for_each(|value| forget(value, keys)),
        _ => {}
    }
}

/// Reports about a text with nanoseconds, in the kernel's dialect, are those about the recording.
#[test]
fn reports_about_a_text_are_those_about_the_recording() {
    let folder = scratch("text");
    let Some(text) = printed("hackbench-7.2.dat", &["-t", "-N"]) else { return };
    let path = folder.join("trace.txt");
    std::fs::write(&path, text).expect("a file");
    let (text, dat) = (path.to_str().expect("a path").to_owned(), fixture("hackbench-7.2.dat"));
    let dat = dat.to_str().expect("a path");
    for command in ["workcons", "latency", "utilization"] {
        let of = |trace: &str| -> serde_json::Value {
            let ran = schedviz(
                &[command, trace, "--json", "-q", "--waiters", "all"][..if command == "workcons" { 6 } else { 4 }],
            );
            let mut json = serde_json::from_slice(&ran.success().stdout).expect("JSON");
            forget(&mut json, &["trace", "machine", "clock", "kernel", "trust"]);
            json
        };
        assert_eq!(of(&text), of(dat), "{command}");
    }
    // Without a column of flags nothing tells a softirq from a task: the 55 moves by the balancer, 4 of them by new-idle balancing, have no cause.
    let found = schedviz(&["migrations", &text, "--json", "-q"]).success().stdout;
    let found: serde_json::Value = serde_json::from_slice(&found).expect("JSON");
    let causes = found["causes"].as_array().expect("rows").iter();
    let causes: Vec<_> = causes.map(|row| (row["cause"].as_str(), row["count"].as_u64())).collect();
    assert_eq!(causes, [(Some("wakeup"), Some(148)), (Some("unknown"), Some(55))]);
}

/// Times with microseconds: the order of lines is kept, lengths are wrong by a microsecond at most, and that is said.
#[test]
fn texts_with_microseconds_keep_the_order_of_their_lines() {
    let Some(text) = printed("hackbench-7.2.dat", &["-N"]) else { return };
    let trace = read(text.clone());
    assert_eq!(trace.diagnostics().count(FileIssue::RoundedTimes), 1);
    let pids = |events: &[SchedEvent]| -> Vec<(u32, i32)> {
        let events = events.iter().filter(|event| !event.kind.is_concluded());
        events.map(|event| (event.cpu.0, event.pid.0)).collect()
    };
    let lines = String::from_utf8(text).expect("text");
    let in_text: Vec<(u32, i32)> = lines
        .lines()
        .filter(|line| line.contains(": sched_"))
        .map(|line| {
            let (task, rest) = line.split_once('[').expect("a CPU");
            let pid = task.trim_end().rsplit_once('-').expect("a PID").1.parse().expect("a number");
            (rest[..3].parse().expect("a CPU"), pid)
        })
        .collect();
    let found: Vec<(u32, i32)> = pids(&events(&trace)).into_iter().collect();
    assert_eq!(found.len(), in_text.len());
    assert!(found == in_text, "the order of lines");
    let exact = events(&Trace::open(&fixture("hackbench-7.2.dat"), Options::default()).expect("a fixture"));
    let last = |events: &[SchedEvent]| events.last().expect("events").ts.0;
    assert!(last(&events(&trace)).abs_diff(last(&exact)) < 2000);
}

/// The text of a recording with times in microseconds, as the kernel rounds them.
fn in_microseconds(text: &str) -> String {
    let line = |line: &str| {
        let found = line.split_once(". ").or_else(|| line.split_once("] "));
        let time = found.and_then(|(before, rest)| Some((before, rest.trim_start().split_once(": ")?)));
        match time {
            Some((before, (time, rest))) if time.len() > 10 => {
                let mark = &line[before.len()..before.len() + 2];
                let (seconds, nanoseconds) = time.split_once('.').expect("a time");
                let all = seconds.parse::<u64>().expect("seconds") * 1_000_000_000;
                let rounded = (all + nanoseconds.parse::<u64>().expect("nanoseconds") + 500) / 1000;
                format!("{before}{mark}{}.{:06}: {rest}\n", rounded / 1_000_000, rounded % 1_000_000)
            }
            _ => format!("{line}\n"),
        }
    };
    text.lines().map(line).collect()
}

/// No verdict where the rounding of times can change it; the exact violation lies between the bounds. Findings are bounded as well.
#[test]
fn rounded_times_withhold_a_verdict_that_they_can_change() {
    let folder = scratch("text-rounded");
    let dat = fixture("hackbench-7.2.dat");
    let dat = dat.to_str().expect("a path");
    let text = schedviz(&["convert", dat, "-o", "-", "-q"]).success().text();
    std::fs::write(folder.join("exact.txt"), &text).expect("a file");
    std::fs::write(folder.join("rounded.txt"), in_microseconds(&text)).expect("a file");
    for shortest in ["0", "10us"] {
        let run = |file: &str, limit: f64| {
            let limit = limit.to_string();
            let more = ["--waiters", "all", "--min-episode", shortest, "--max-violation", &limit, "-q", "--json"];
            let ran = schedviz_in(&folder, &[&["workcons", file], &more[..]].concat());
            (ran.code, serde_json::from_slice::<serde_json::Value>(&ran.stdout).expect("JSON"))
        };
        let percent = |found: &serde_json::Value| found["runs"][0]["violation"]["percent"].as_f64().expect("a number");
        let (_, exact) = run("exact.txt", 50.0);
        let (violated, rounded) = (percent(&exact), run("rounded.txt", 50.0).1);
        assert!(violated > 1.0, "{violated}");
        assert_eq!(rounded["runs"][0]["coverage"]["rounded_ns"], 2000, "{rounded}");
        assert!(exact["runs"][0]["coverage"]["rounded_ns"].is_null());
        let episodes = rounded["runs"][0]["by_min_episode"][0]["episodes"].as_f64().expect("a number");
        let window = rounded["runs"][0]["window_ns"].as_f64().expect("a number");
        let slack = 100.0 * (episodes + 1.0) * 2000.0 / window;
        // Exact times judge a limit as near as this; rounded ones do not.
        for (limit, code) in [(violated - slack / 2.0, 2), (violated + slack / 2.0, 0)] {
            assert_eq!(run("exact.txt", limit).0, Some(code), "{shortest}: {violated} {limit}");
            assert_eq!(run("rounded.txt", limit).0, Some(3), "{shortest}: {violated} {limit}");
        }
        assert_eq!(run("rounded.txt", violated + 2.5 * slack + 5.0).0, Some(0), "{shortest}");
        assert_eq!(run("rounded.txt", 0.0).0, Some(if slack * 3.0 < violated { 2 } else { 3 }), "{shortest}");
    }
    let certainty = |file: &str| {
        let ran = schedviz_in(&folder, &["findings", file, "-q", "--json"]).stdout;
        let found: serde_json::Value = serde_json::from_slice(&ran).expect("JSON");
        found["findings"]
            .as_array()
            .expect("findings")
            .iter()
            .map(|row| row["certainty"].to_string())
            .collect::<Vec<_>>()
    };
    let (exact, rounded) = (certainty("exact.txt"), certainty("rounded.txt"));
    assert!(exact.iter().any(|word| word == "\"exact\""), "{exact:?}");
    assert!(!rounded.is_empty() && rounded.iter().all(|word| word != "\"exact\""), "{rounded:?}");
}

/// A text in the JSON or in a page of a trace viewer is the text: each report is the same.
#[test]
fn reports_about_a_wrapped_text_are_those_about_the_text() {
    let folder = scratch("text-wrapped");
    let dat = fixture("hackbench-7.2.dat");
    let text = schedviz(&["convert", dat.to_str().expect("a path"), "-o", "-", "-q"]).success().text();
    let json = viewer_json(&text);
    let of = |command: &str, file: &[u8]| -> serde_json::Value {
        std::fs::write(folder.join("trace"), file).expect("a file");
        let ran = schedviz_in(&folder, &[command, "trace", "--json", "-q"]);
        serde_json::from_slice(&ran.success().stdout).expect("JSON")
    };
    let pages = [gzip(text.as_bytes()), gzip(json.as_bytes())].map(|source| viewer_page(&[source]));
    for command in ["workcons", "latency", "migrations"] {
        let expected = of(command, text.as_bytes());
        for file in [json.as_bytes(), &gzip(json.as_bytes()), &pages[0], &pages[1]] {
            assert_eq!(of(command, file), expected, "{command}");
        }
    }
    std::fs::write(folder.join("cut"), &json[..json.len() / 2]).expect("a file");
    let text = schedviz_in(&folder, &["info", "cut", "-q"]).success().text();
    assert!(
        text.contains("\nrecorder   unknown, JSON of a trace viewer\n") && text.contains("the text of ftrace"),
        "{text}"
    );
    std::fs::write(folder.join("other.json"), "{\"traceEvents\":[]}").expect("a file");
    let error = schedviz_in(&folder, &["info", "other.json"]).stderr;
    assert!(error.contains("JSON without the text of ftrace"), "{error}");
}

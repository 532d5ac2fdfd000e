//! The list with the feature `libtraceevent`, against `trace-cmd report`. A program of its own, so that CI builds the other
//! tests once, without the feature.
#![allow(dead_code, unused_imports, reason = "the tests of `integration` use the rest of these modules")]
#![allow(clippy::print_stderr, clippy::print_stdout, reason = "tests state what they skip and what they counted")]

mod support;
mod trace_cmd;

use parse::{Options, Trace};
use trace_cmd::{parse_line, report};

/// With libtraceevent the list equals that of `trace-cmd report`, byte by byte.
#[test]
fn with_libtraceevent_lists_are_the_report() {
    let mut compared = 0u64;
    for path in support::recordings() {
        let Some(text) = report(&path, &["-t"]) else { return };
        let trace = Trace::open(&path, Options::default()).expect("a readable recording");
        // trace-cmd prints the times of clocks without a unit as numbers.
        let in_seconds = text.lines().find_map(parse_line).is_some_and(|line| line.ts.contains('.'));
        if !in_seconds || trace.has_time().is_err() || trace.selected_buffers().len() > 1 {
            continue;
        }
        // trace-cmd 3.1.6 mixes the calls of idle tasks: function graphs are compared line by line above.
        if text.contains(": funcgraph_entry: ") || text.contains(": funcgraph_exit: ") {
            continue;
        }
        let list =
            support::schedviz(&["events", "--list", "-q", "--latency-format=never", path.to_str().expect("a path")])
                .success()
                .text();
        // trace-cmd has the name of an instance in each line, the list where several are read.
        let buffer = trace.selected_buffers().first().and_then(|nth| trace.info().buffers.into_iter().nth(*nth));
        let instance = buffer.map_or(String::new(), |buffer| format!("{}: ", buffer.name));
        let lines = text.lines().filter(|l| !l.starts_with("cpus="));
        let (mut ours, mut theirs) = (list.lines(), lines.map(|line| line.strip_prefix(&*instance).unwrap_or(line)));
        loop {
            let (a, b) = (ours.next(), theirs.next());
            // The events name a task better than a list of names that the recorder left incomplete, or saved before an exec.
            let is_better = a.zip(b).is_some_and(|(a, b)| a.get(..16) != b.get(..16) && is_given(&text, a));
            let part =
                |line: &'_ str| line.get(if is_better { 16 } else { 0 }..).map(|line| line.trim_end().to_owned());
            assert_eq!(a.and_then(part), b.and_then(part), "{}", path.display());
            if a.is_none() {
                break;
            }
            compared += 1;
        }
    }
    println!("{compared} lines compared");
}

/// Whether a field of an event gives a PID the name with which a listed line begins.
fn is_given(text: &str, line: &str) -> bool {
    let task = line.split('[').next().unwrap_or("").trim();
    let Some((name, pid)) = task.rsplit_once('-') else { return false };
    text.contains(&format!("{name}:{pid} [")) || text.contains(&format!("comm={name} pid={pid} "))
}

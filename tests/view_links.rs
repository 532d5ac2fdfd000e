//! The links of commands to the page of `schedviz view`: what Rust writes, a shell takes as one word, and the page's module reads.

use crate::support::{fixture, schedviz_in, scratch};
use crate::view::View;
use crate::view_modules::node;
use sched::{Cpu, Dur, Pid};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use timeline::PageAddress;

/// A name that a shell takes apart without quotes.
const NAME: &str = "it's a #1 trace.dat";

/// The arguments of the commands of `schedviz view` in a text, as a shell takes them.
fn views(text: &str) -> Vec<Vec<String>> {
    let lines = text.replace(" \\\n", " ");
    let lines: Vec<&str> = lines.lines().map(str::trim).filter(|line| line.starts_with("schedviz view")).collect();
    let words = |line: &&str| {
        let script = format!("schedviz() {{ printf '%s\\n' \"$@\"; }}; {line}");
        let ran = Command::new("sh").args(["-c", &script]).output().expect("a shell");
        assert!(ran.status.success(), "{line}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8_lossy(&ran.stdout).lines().map(str::to_owned).collect()
    };
    lines.iter().map(words).collect()
}

/// The states into which the page's module reads these addresses, of a trace of 100 s; nothing where there is no node.
fn states(name: &str, addresses: &[String]) -> Option<Vec<Value>> {
    let script = format!(
        r#"
globalThis.requestAnimationFrame = () => 0;
const {{ read, state }} = await import("./state.js");
const head = {{ span: 100e9, folds: [], cpus: [], tasks: [] }};
state.traces = [{{ index: 0, head, zero: 0, collapsed: new Set(), scroll: 0 }}];
for (const address of {}) {{
  read(address);
  const {{ from, span, highlight, selection, range, place, story, wait, tab, rows, pins }} = state;
  console.log(JSON.stringify({{ from, span, highlight, selection, range, place, story, wait, tab, rows, pins: [...pins] }}));
}}
"#,
        json!(addresses)
    );
    let printed = node(name, &script)?;
    Some(printed.lines().map(|line| serde_json::from_str(line).expect("a state")).collect())
}

#[test]
fn the_page_reads_the_views_that_are_written() {
    let (wait, selection) = (PageAddress::wait(Pid(7), 5_000, Dur(400)), PageAddress::selection(5_000, Dur(400)));
    let addresses = [
        wait,
        wait.row(),
        selection,
        selection.cursor(Some(Cpu(3))),
        selection.task(Some(Pid(7))).row(),
        PageAddress::episode(5_000, Dur(400)),
        PageAddress::episode(5_000, Dur(400)).task(Some(Pid(7))),
        // A long stretch has a quarter of it on either side.
        PageAddress::selection(5_000, Dur(8_000)),
    ];
    let addresses: Vec<String> = addresses.iter().map(PageAddress::to_string).collect();
    let Some(states) = states("view-links-written", &addresses) else { return };
    let plain = json!({
        "from": 4_000, "span": 2_400, "highlight": null, "selection": null, "range": null, "place": null, "story": null,
        "wait": null, "tab": "window", "rows": "", "pins": [],
    });
    let with = |parts: &[Value]| {
        let mut state = plain.clone();
        let parts = parts.iter().flat_map(|part| part.as_object().expect("parts"));
        parts.for_each(|(key, value)| state[key] = value.clone());
        state
    };
    let task = json!({ "highlight": { "trace": 0, "pid": 7 }, "tab": "task" });
    let waits = json!({ "wait": { "trace": 0, "pid": 7, "from": 5_000, "to": 5_400 } });
    let row = json!({ "rows": "pinned", "pins": ["0:7"] });
    let selected = json!({ "selection": [5_000, 5_400], "range": [5_000, 5_400] });
    let story = json!({
        "tab": "lists", "selection": [5_000, 5_400], "story": { "trace": 0, "from": 5_000, "to": 5_400 },
    });
    let expected = [
        with(&[task.clone(), waits.clone()]),
        with(&[task.clone(), waits, row.clone()]),
        with(std::slice::from_ref(&selected)),
        with(&[selected.clone(), json!({ "place": { "trace": 0, "cpu": 3, "time": 5_000 } })]),
        with(&[selected, task.clone(), row]),
        with(std::slice::from_ref(&story)),
        with(&[task, story]),
        with(&[json!({ "from": 3_000, "span": 12_000, "selection": [5_000, 13_000], "range": [5_000, 13_000] })]),
    ];
    for ((address, found), expected) in addresses.iter().zip(&states).zip(&expected) {
        assert_eq!(found, expected, "{address}");
    }
    assert_eq!(states.len(), expected.len());
}

/// A command, and the stretch that its link is about, from its JSON: the task, the start and the end from the start of the trace.
struct Linked {
    arguments: &'static [&'static str],
    stretch: fn(&Value) -> (u64, u64, u64),
}

fn ns(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no time"))
}

/// A stretch that has its start and its length under these names.
fn stretch(case: &Value, start: &str, length: &str) -> (u64, u64, u64) {
    let start = ns(&case[start]);
    (ns(&case["pid"]), start, start + ns(&case[length]))
}

const LINKED: [Linked; 6] = [
    Linked {
        arguments: &["workcons"],
        stretch: |json| {
            let longest = &json["runs"][0]["violation"]["longest"][0];
            let start = ns(&longest["start_in_trace_ns"]);
            (ns(&longest["waiting"][0]["pid"]), start, start + ns(&longest["duration_ns"]))
        },
    },
    Linked {
        arguments: &["why"],
        stretch: |json| {
            let rows = json["runs"][0]["waiting"]["rows"].as_array().expect("rows");
            let longest = rows.iter().map(|row| &row["longest"]).max_by_key(|case| ns(&case["violated_ns"]));
            stretch(longest.expect("a wait"), "start_in_trace_ns", "duration_ns")
        },
    },
    Linked {
        arguments: &["latency"],
        stretch: |json| {
            let mut cases = json["worst"].as_array().expect("cases").iter();
            let longest = cases.find(|case| case["measure"] == "wakeup").expect("a wakeup");
            stretch(longest, "start_in_trace_ns", "duration_ns")
        },
    },
    Linked {
        arguments: &["path"],
        stretch: |json| stretch(&json["longest_queued"][0], "start_in_trace_ns", "duration_ns"),
    },
    Linked {
        arguments: &["jobs", "--deadline", "1ms"],
        stretch: |json| stretch(&json["worst"][0], "release_in_trace_ns", "response_ns"),
    },
    // The costliest finding about this trace is the queued time of the critical path.
    Linked {
        arguments: &["findings"],
        stretch: |json| {
            assert_eq!(json["findings"][0]["observation"]["kind"], "path-queued");
            (277, 433_621_893, 498_845_970)
        },
    },
];

/// Runs a command on a trace of the folder, whose messages are of no interest here.
fn run(folder: &Path, arguments: &[&str], more: &[&str]) -> String {
    schedviz_in(folder, &[&[arguments[0], NAME], &arguments[1..], more].concat()).success().text()
}

#[test]
fn each_command_leads_to_the_place_that_it_speaks_of() {
    let folder = scratch("view-links");
    std::fs::copy(fixture("hackbench-7.2.dat"), folder.join(NAME)).expect("copied");
    let mut found = Vec::new();
    for Linked { arguments, stretch } in &LINKED {
        let views = views(&run(&folder, arguments, &[]));
        let [words] = views.as_slice() else { panic!("{arguments:?}: {views:?}") };
        let [view, word] = words.as_slice() else { panic!("{words:?}") };
        let (trace, address) = word.rsplit_once('#').expect("an address");
        assert_eq!((view.as_str(), trace), ("view", NAME));
        let json: Value = serde_json::from_str(&run(&folder, arguments, &["--json"])).expect("JSON");
        found.push((address.to_owned(), stretch(&json)));
        // The program takes its own word.
        let refused = schedviz_in(&folder, &["view", word, "--min", "1"]);
        assert!(refused.stderr.contains("the page shows all of the trace"), "{word}: {}", refused.stderr);
    }
    let addresses: Vec<String> = found.iter().map(|(address, _)| address.clone()).collect();
    let Some(states) = states("view-links-commands", &addresses) else { return };
    let view = View::of(&[&fixture("hackbench-7.2.dat")]);
    view.head(0);
    for ((address, (pid, from, to)), state) in found.iter().zip(&states) {
        assert_eq!(state["highlight"], json!({ "trace": 0, "pid": pid }), "{address}");
        assert!(state["from"].as_u64() <= Some(*from), "{address}");
        assert!(
            state["from"].as_f64().unwrap_or(0.0) + state["span"].as_f64().unwrap_or(0.0) >= *to as f64,
            "{address}"
        );
        let window = format!("from={from}&to={to}");
        if state["wait"].is_null() {
            assert_eq!(state["selection"], json!([from, to]), "{address}");
        } else {
            assert_eq!(state["wait"], json!({ "trace": 0, "pid": pid, "from": from, "to": to }), "{address}");
            let answer = view.json(&format!("t/0/wait.json?pid={pid}&{window}"));
            let wait = &answer["wait"];
            // The wait of the page has the whole of it; what the command speaks of can be its part on one queue.
            assert!(ns(&wait["from"]) < *to && ns(&wait["to"]) > *from, "{address}: {answer}");
        }
        if !state["story"].is_null() {
            let story = view.json(&format!("t/0/story.json?{window}"));
            assert_eq!((ns(&story["from"]), ns(&story["to"])), (*from, *to), "{address}");
        }
    }
    let has = |key: &str| states.iter().filter(|state| !state[key].is_null()).count();
    assert_eq!((has("wait"), has("story"), has("selection")), (4, 1, 2));
}

#[test]
fn a_view_has_the_cpus_and_the_reading_but_no_window() {
    let folder = scratch("view-links-options");
    std::fs::copy(fixture("hackbench-7.2.dat"), folder.join(NAME)).expect("copied");
    let text = run(&folder, &["latency"], &["--cpus", "0-1", "--min", "0.2", "--max", "0.5"]);
    let views = views(&text);
    let [words] = views.as_slice() else { panic!("{views:?}") };
    assert_eq!(words[2..], ["--cpus", "0-1"]);
}

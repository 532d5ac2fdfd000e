//! The places of the recordings, and ways to run the program.

use parse::Trace;
use sched::{Cpu, Dur, EventSource, SchedEvent, Topology, Ts};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/schedviz is two levels down").to_owned()
}

/// Returns the sources of all crates, without the files that hold tests alone: the name of the crate's folder, the path and the text.
pub(crate) fn sources_of_crates() -> Vec<(String, PathBuf, String)> {
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "--", "crates/*/src/*.rs"])
        .current_dir(root())
        .output();
    let listed = String::from_utf8(listed.expect("git ls-files").stdout).expect("names");
    let is_source = |name: &&str| name.split('/').all(|part| part != "tests" && part != "tests.rs");
    let read = |name: &str| {
        let path = root().join(name);
        // A file that is deleted and not committed yet is still listed.
        let text = std::fs::read_to_string(&path).ok()?;
        Some((name.split('/').nth(1).expect("a crate").to_owned(), path, text))
    };
    listed.lines().filter(is_source).filter_map(read).collect()
}

/// Returns the path of a fixture.
pub(crate) fn fixture(name: &str) -> PathBuf {
    root().join("tests/fixtures").join(name)
}

/// Returns all events of a trace, merged.
pub(crate) fn events(trace: &Trace) -> Vec<SchedEvent> {
    let mut events = Vec::new();
    let collect = &mut |batch: &[SchedEvent]| {
        events.extend_from_slice(batch);
        ControlFlow::Continue(())
    };
    trace.events().expect("a clock").events(collect).expect("events");
    events
}

/// Returns the options of `utilization` for all CPUs of the events from `from` to `to`, in one interval.
pub(crate) fn utilization_of_all(events: &[SchedEvent], from: Ts, to: Ts) -> utilization::Options {
    let cpus: BTreeSet<Cpu> = events.iter().map(|event| event.cpu).collect();
    utilization::Options {
        from,
        to,
        zero: from,
        cpus: cpus.into_iter().map(|cpu| (cpu, None)).collect(),
        all_cpus: Vec::new(),
        group_name: String::new(),
        interval: Dur(to.since(from).0.max(1)),
        tasks: None,
        topology: Topology::default(),
        balance_interval: Dur(4_000_000),
    }
}

/// Creates a directory for the files of a test.
pub(crate) fn scratch(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("schedviz-test-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// Writes a shell script that can be run in the place of a program.
pub(crate) fn stand_in(path: &Path, script: &str) {
    std::fs::write(path, format!("#!/bin/sh\n{script}\n")).expect("written");
    assert!(Command::new("chmod").arg("755").arg(path).status().expect("chmod").success());
}

/// The outcome of a run of the program.
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Ran {
    /// Asserts that the run succeeded.
    pub(crate) fn success(self) -> Ran {
        assert_eq!(self.code, Some(0), "{}", self.stderr);
        self
    }

    pub(crate) fn text(self) -> String {
        String::from_utf8(self.stdout).expect("text")
    }
}

/// Returns the lines of a table of comma-separated values, each as a map from column to field.
pub(crate) fn csv(text: &str) -> Vec<BTreeMap<String, String>> {
    let mut lines = text.lines().map(fields);
    let header = lines.next().expect("a header");
    let row = |fields: Vec<String>| {
        assert_eq!(fields.len(), header.len(), "{fields:?}");
        header.iter().cloned().zip(fields).collect()
    };
    lines.map(row).collect()
}

/// Splits a line, whose fields may be in quotes.
fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut quoted) = (vec![String::new()], false);
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            c => fields.last_mut().expect("a field").push(c),
        }
    }
    fields
}

/// Returns a text with its lines joined, whose breaks depend on the length of names.
pub(crate) fn unwrapped(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Runs the program in the repository, so that paths in its output are the same everywhere. A file that it leaves there,
/// named after a trace, is an error of the test.
pub(crate) fn schedviz(arguments: &[&str]) -> Ran {
    let stems = arguments.iter().filter_map(|argument| Path::new(argument).file_stem()?.to_str());
    let beginnings: Vec<String> = stems.filter(|stem| !stem.is_empty()).map(|stem| format!("{stem}.")).collect();
    let named = || -> Vec<String> {
        let entries = root().read_dir().expect("the repository").flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| beginnings.iter().any(|beginning| name.starts_with(beginning.as_str()))).collect()
    };
    let before = named();
    let ran = schedviz_in(&root(), arguments);
    let left: Vec<String> = named().into_iter().filter(|name| !before.contains(name)).collect();
    assert!(left.is_empty(), "{arguments:?} leaves {left:?} in the repository: run it in a scratch folder");
    ran
}

/// Runs the program in a directory.
pub(crate) fn schedviz_in(folder: &Path, arguments: &[&str]) -> Ran {
    let prefix = format!("{}/", root().display());
    let relative =
        |a: &&str| if folder == root() { a.strip_prefix(&prefix).unwrap_or(a).to_owned() } else { (*a).to_owned() };
    let arguments: Vec<String> = arguments.iter().map(relative).collect();
    let mut command = Command::new(env!("CARGO_BIN_EXE_schedviz"));
    let output = command.args(arguments).current_dir(folder).env("COLUMNS", "100").output().expect("the program runs");
    Ran {
        code: output.status.code(),
        stdout: output.stdout,
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Compares a text with a golden file and fails if the file is absent. `SCHEDVIZ_BLESS=1` rewrites the file.
pub(crate) fn golden(name: &str, text: &str) {
    kept(&format!("tests/golden/{name}"), text);
}

/// Compares a text with any file of the repository, in the same way.
pub(crate) fn kept(name: &str, text: &str) {
    let path = root().join(name);
    if std::env::var_os("SCHEDVIZ_BLESS").is_some() {
        std::fs::write(&path, text).expect("written");
        return;
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    if expected != text {
        let differs = expected.lines().zip(text.lines()).position(|(a, b)| a != b);
        panic!("{name} differs from line {differs:?} on; if it should, SCHEDVIZ_BLESS=1 rewrites it");
    }
}

/// Returns all fixtures, and all recordings below the directory in `SCHEDVIZ_TRACES`.
pub(crate) fn recordings() -> Vec<PathBuf> {
    let mut found = Vec::new();
    collect(&root().join("tests/fixtures"), &mut found);
    if let Some(more) = std::env::var_os("SCHEDVIZ_TRACES") {
        let before = found.len();
        collect(Path::new(&more), &mut found);
        assert!(found.len() > before, "no recordings below the directory in SCHEDVIZ_TRACES: {more:?}");
    }
    found.sort();
    assert!(found.iter().any(|p| p.ends_with("tests/fixtures/hackbench.dat")));
    found
}

/// Returns all fixtures, and every `nth` recording below the directory in `SCHEDVIZ_TRACES`; with `SCHEDVIZ_EVERY_RECORDING`
/// all of them. For tests that take minutes on all recordings, of which many are alike.
pub(crate) fn recordings_in_part(nth: usize) -> Vec<PathBuf> {
    let (fixtures, others): (Vec<_>, Vec<_>) =
        recordings().into_iter().partition(|path| path.starts_with(root().join("tests/fixtures")));
    let nth = if std::env::var_os("SCHEDVIZ_EVERY_RECORDING").is_some() { 1 } else { nth };
    fixtures.into_iter().chain(others.into_iter().step_by(nth)).collect()
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder of recordings").flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|e| e == "dat") {
            found.push(path);
        }
    }
}

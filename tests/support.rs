//! The places of the recordings, and ways to run the program.

mod scratch;

pub(crate) use scratch::{Scratch, scratch};

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

/// Returns the words that ask a question about a trace, as short as they can be, by the line of its command in the README's table; nothing for one
/// that is not about a single trace.
pub(crate) fn asked(entry: &question::Entry, trace: &str) -> Option<Vec<String>> {
    let line = entry.question.map(|(_, line)| line)?.split(' ');
    let word = |word: &str| match word {
        "TRACE" | "TRACE..." => Some(trace.to_owned()),
        "SPEC" => Some(fixture("switches.toml").to_str().expect("a path").to_owned()),
        _ => None,
    };
    let words: Vec<String> = line.map(word).collect::<Option<_>>()?;
    let more = match entry.name {
        "residency" => {
            vec!["--topology".to_owned(), fixture("hackbench.cpus.txt").to_str().expect("a path").to_owned()]
        }
        _ => Vec::new(),
    };
    Some([vec![entry.name.to_owned()], words, more].concat())
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
        ends: Vec::new(),
    }
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

/// Returns the path of the program that is tested: the one that was built with the tests, or the one in `SCHEDVIZ_PROGRAM`. `.ci/run` gives
/// the dear tests that of the packages, since memory and time are what they ask about, and the other takes several times as long.
pub(crate) fn program() -> PathBuf {
    std::env::var_os("SCHEDVIZ_PROGRAM").map_or_else(built_program, PathBuf::from)
}

/// Returns the path of the program that was built with the tests.
pub(crate) fn built_program() -> PathBuf {
    env!("CARGO_BIN_EXE_schedviz").into()
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
    let mut command = Command::new(program());
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

/// Returns all fixtures, and all recordings below the directory in `SCHEDVIZ_TRACES`; with `SCHEDVIZ_ONLY` those of that file name.
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
    match std::env::var_os("SCHEDVIZ_ONLY") {
        Some(name) => found.into_iter().filter(|path| path.file_name() == Some(&name)).collect(),
        None => found,
    }
}

/// Returns about every `nth` fixture, chosen by their names; in `.ci/run` all fixtures, and one in twice as many of the recordings below the
/// directory in `SCHEDVIZ_TRACES`, of which many are alike; with `SCHEDVIZ_EVERY_RECORDING` all of them. For tests that take minutes on all
/// recordings.
pub(crate) fn recordings_in_part(nth: u64) -> Vec<PathBuf> {
    let all_fixtures = effort() >= Effort::Thorough || std::env::var_os("SCHEDVIZ_ONLY").is_some();
    let is_taken = |path: &PathBuf| all_fixtures || !is_fixture(path) || seed("part", path).is_multiple_of(nth);
    fixtures_and_part(2 * nth).into_iter().filter(is_taken).collect()
}

/// Returns all fixtures, and about every `nth` recording below the directory in `SCHEDVIZ_TRACES`, chosen by their names; with
/// `SCHEDVIZ_EVERY_RECORDING` all of them. For tests that are quick on the fixtures and take more than ten seconds on all recordings.
pub(crate) fn fixtures_and_part(nth: u64) -> Vec<PathBuf> {
    let is_every = effort() == Effort::Everything || std::env::var_os("SCHEDVIZ_ONLY").is_some();
    let is_taken = |path: &PathBuf| is_every || is_fixture(path) || seed("part", path).is_multiple_of(nth);
    recordings().into_iter().filter(is_taken).collect()
}

/// Does the same with each of these paths, on as many threads as there are CPUs: for tests that wait for the programs that they start.
pub(crate) fn on_threads(paths: &[PathBuf], work: impl Fn(&Path) + Sync) {
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let next = std::sync::atomic::AtomicUsize::new(0);
    let one = || {
        while let Some(path) = paths.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
            work(path);
        }
    };
    std::thread::scope(|scope| {
        (0..threads.min(paths.len())).for_each(|_| _ = scope.spawn(one));
    });
}

/// How much of a dear test is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Effort {
    /// `cargo test --workspace`: the cases that have caught something, or one of each kind.
    Quick,
    /// `.ci/run`, which sets `SCHEDVIZ_THOROUGH`.
    Thorough,
    /// Once a day: `SCHEDVIZ_EVERY_RECORDING`.
    Everything,
}

/// Returns the effort that the environment asks for.
pub(crate) fn effort() -> Effort {
    let is_set = |name: &str| std::env::var_os(name).is_some();
    match (is_set("SCHEDVIZ_EVERY_RECORDING"), is_set("SCHEDVIZ_THOROUGH")) {
        (true, _) => Effort::Everything,
        (false, true) => Effort::Thorough,
        (false, false) => Effort::Quick,
    }
}

/// Whether a recording comes with the sources.
pub(crate) fn is_fixture(path: &Path) -> bool {
    path.starts_with(root().join("tests/fixtures"))
}

/// Returns the seed of the random cases of a test on a file. It follows from the names of both and from `SCHEDVIZ_SEED`, a number that
/// is 0 by default: not from the file's folder, nor from the other files, so that a case is the same in every clone.
pub(crate) fn seed(test: &str, file: &Path) -> u64 {
    let varied = std::env::var("SCHEDVIZ_SEED").unwrap_or_else(|_| "0".to_owned());
    let name = file.file_name().expect("a file").to_string_lossy();
    // FNV-1a, 64 bits.
    let bytes = [test, &name, &varied].join("/").into_bytes();
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Returns fewer seeds of simulated runs for the newcomer's tests than for `.ci/run`, where they find what is rare.
pub(crate) fn some_seeds(quick: u64, thorough: u64) -> std::ops::Range<u64> {
    seeds(if effort() == Effort::Quick { quick } else { thorough })
}

/// Returns the seeds of so many simulated runs: from 0 on by default, others with another `SCHEDVIZ_SEED`.
pub(crate) fn seeds(count: u64) -> std::ops::Range<u64> {
    let varied: u64 = std::env::var("SCHEDVIZ_SEED").map_or(0, |seed| seed.parse().expect("SCHEDVIZ_SEED is a number"));
    let first = varied * 1_000_000;
    first..first + count
}

/// Returns the command line that repeats a test on one file.
pub(crate) fn repeat(test: &str, file: &Path) -> String {
    let name = file.file_name().expect("a file").to_string_lossy();
    let of = |variable: &str| std::env::var(variable).map(|value| format!("{variable}={value} ")).unwrap_or_default();
    let folder = if is_fixture(file) { String::new() } else { of("SCHEDVIZ_TRACES") };
    format!("{folder}{}SCHEDVIZ_ONLY={name} cargo test -p schedviz --test integration -- {test}", of("SCHEDVIZ_SEED"))
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

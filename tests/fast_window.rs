//! `--fast-window`: the state before a window, inferred from the events around its start.

use crate::support::{fixtures_and_part, schedviz};
use parse::{FileIssue, Trace};
use sched::{Analysis, Cpu, Current, Diagnostic, EventIssue, EventKind, Pass, Pid, SchedEvent, SchedState, Ts, Window};
use std::collections::{BTreeMap, BTreeSet};
use testkit::{Simulation, TraceBuilder};

/// The state at the start of a window, and the tasks with events in it.
#[derive(Debug, Default)]
struct Begin {
    current: BTreeMap<Cpu, Current>,
    waiting: BTreeSet<(Pid, Cpu)>,
    throttled: BTreeSet<(Pid, Cpu)>,
    /// For each task, whether its first event other than a migration shows whether it waited. A switch does; a
    /// wakeup does not, since it suggests a sleeping task even if the task was waiting, which is rare.
    seen: BTreeMap<Pid, bool>,
}

impl Analysis for Begin {
    type Output = Begin;

    fn begin(&mut self, _: Ts, state: &SchedState) {
        for cpu in state.observed() {
            self.current.insert(cpu, state.current(cpu));
            self.waiting.extend(state.waiting(cpu).map(|task| (task.pid, cpu)));
            self.throttled.extend(state.throttled(cpu).map(|task| (task.pid, cpu)));
        }
    }

    fn after(&mut self, event: &SchedEvent, _: &SchedState) {
        let mut see = |pid: Pid, shows: bool| {
            self.seen.entry(pid).or_insert(shows);
        };
        match event.kind {
            EventKind::Switch { prev, next, .. } => [prev.pid, next.pid].into_iter().for_each(|pid| see(pid, true)),
            EventKind::Waking { task, .. } | EventKind::Wakeup { task, .. } => see(task.pid, false),
            _ => {}
        }
    }

    fn finish(self, _: Ts, _: &SchedState) -> Begin {
        self
    }
}

/// Compares the state at the start of a window with and without the events before it. Returns the number of waiting
/// tasks, and that of those that were missing since no event in the window shows them; `None` if the trace
/// contradicts itself, or nothing precedes the window.
fn compare(trace: &Trace, window: Window, name: &str) -> Option<(usize, usize)> {
    let whole = Pass::over(trace.events().ok()?).window(window).run(Begin::default).expect("a pass");
    let near = trace.events().ok()?.near(window.from?);
    let fast = Pass::over(near).window(window).run(Begin::default).expect("a pass");
    // After a contradiction anywhere the reference itself may be wrong by a repair, or an unrecorded wakeup makes a
    // sleeping task look like a waiting one (hotplug.dat).
    let all = Pass::over(trace.events().ok()?).run(Begin::default).expect("a pass").diagnostics;
    let contradicts = |d: Diagnostic| d.severity() == sched::Severity::Repaired || d == EventIssue::EventsLost;
    if fast.diagnostics.count(FileIssue::FastWindow) == 0 || all.iter().any(|(d, ..)| contradicts(d)) {
        return None;
    }
    let (whole, fast) = (whole.output, fast.output);
    assert_eq!(whole.current, fast.current, "{name}");
    // The events near the window need not show the cgroup of a throttled task.
    let invented = fast.waiting.difference(&whole.waiting).filter(|waits| !whole.throttled.contains(*waits));
    let invented: Vec<_> = invented.collect();
    assert!(invented.is_empty(), "{name}: {invented:?}");
    let missing: Vec<_> = whole.waiting.difference(&fast.waiting).collect();
    assert!(missing.iter().all(|(pid, _)| whole.seen.get(pid) != Some(&true)), "{name}: {missing:?}");
    Some((whole.waiting.len(), missing.len()))
}

/// Returns windows in the last two thirds of a trace.
fn windows(trace: &Trace) -> Vec<Window> {
    let Some((start, end)) = trace.extent() else { return Vec::new() };
    let part = end.since(start).0 as i64 / 30;
    let at = |k: i64| Ts(start.0 + part * k);
    (12..30).step_by(6).map(|k| Window { from: Some(at(k)), to: Some(at(k + 1)) }).collect()
}

/// Random histories have the deaths, forks and moves near the beginning of a window that few recordings have.
#[test]
fn simulated_windows_begin_in_the_true_state() {
    let (mut compared, mut waited, mut missed) = (0, 0, 0);
    for seed in crate::support::seeds(40) {
        let run = Simulation::any(seed, 1 + (seed % 7) as u32, 4000);
        let bytes = TraceBuilder::default().events(&run.events).build();
        let trace = Trace::from_bytes(bytes, parse::Options::default()).expect("a trace");
        for window in windows(&trace) {
            if let Some((all, missing)) = compare(&trace, window, &format!("seed {seed}, {window:?}")) {
                (compared, waited, missed) = (compared + 1, waited + all, missed + missing);
            }
        }
    }
    assert!(compared > 80 && waited > 80, "{compared} windows, {waited} waited, {missed} unseen");
}

#[test]
fn recorded_windows_begin_in_the_true_state() {
    let (mut compared, mut waited, mut missed) = (0, 0, 0);
    for path in fixtures_and_part(3) {
        let trace = Trace::open(&path, parse::Options::default()).expect("a readable recording");
        for window in windows(&trace) {
            if let Some((all, missing)) = compare(&trace, window, &format!("{}, {window:?}", path.display())) {
                (compared, waited, missed) = (compared + 1, waited + all, missed + missing);
            }
        }
    }
    println!("{compared} windows, {waited} waited, {missed} of them unseen");
    assert!(compared > 20, "{compared} windows");
}

#[test]
fn a_fast_window_reports_its_limits() {
    let trace = "tests/fixtures/hackbench.dat";
    let window = ["--min", "0.5", "--max", "0.51"];
    let with = |command: &str, more: &[&str]| {
        let arguments: Vec<&str> = [command, trace].into_iter().chain(window).chain(more.iter().copied()).collect();
        schedviz(&arguments)
    };
    for (command, more) in [
        ("workcons", &["--waiters", "application"][..]),
        ("workcons", &["--max-violation", "5"]),
        ("running-waiting", &["--forked"]),
        ("latency", &["--forked"]),
        ("fairness", &["--group-by", "parent"]),
        ("utilization", &[]),
    ] {
        let arguments: Vec<&str> = more.iter().copied().chain(["--fast-window"]).collect();
        let ran = with(command, &arguments);
        assert!(ran.code == Some(1) && ran.stderr.contains("--fast-window"), "{command}: {}", ran.stderr);
    }
    let ran = with("workcons", &["--fast-window"]).success();
    assert!(ran.stderr.contains("--fast-window") && ran.stderr.contains("read from 0.4"), "{}", ran.stderr);
    let text = ran.text();
    assert!(text.contains("application unknown") && !text.contains("exact"), "{text}");
    // Nothing else differs, since an event shows every waiting task.
    let figures = |text: &str| {
        text.lines().skip_while(|l| !l.contains("episodes ")).take(7).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(figures(&text), figures(&with("workcons", &[]).success().text()));
}

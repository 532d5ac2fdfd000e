//! The critical path: by hand, and against a second implementation that walks back through all spans.

use crate::support::{events, fixture, recordings, schedviz};
use critical_path::{CriticalPath, Kind, Options, Path};
use sched::{
    Analysis, Comm, Cpu, Kind as Event, Pass, Pid, PrevState, SchedEvent, SchedState, Span, TaskId, TaskRef, TaskState,
    Ts,
};
use std::collections::{BTreeMap, BTreeSet};
use testkit::Simulation;
use tracedat::Trace;

fn path_of(events: &[SchedEvent], pid: Option<i32>) -> Path {
    let options = Options { pid: pid.map(Pid), command: Comm::new(b"named"), zero: Ts(0), longest: 3 };
    let outcome = Pass::over(events).run(|| CriticalPath::new(options));
    outcome.unwrap_or_else(|never| match never {}).output
}

/// A segment: its state, task, CPU, start and end.
type Piece = (Kind, i32, Option<u32>, i64, i64);

fn pieces(path: &Path) -> Vec<Piece> {
    let piece = |s: &critical_path::Segment| (s.kind, s.pid.0, s.cpu.map(|cpu| cpu.0), s.start_ns.0, s.end_ns.0);
    path.path.iter().map(piece).collect()
}

/// Everything that a walk back needs: the spans of each task, its wakings, and its fork.
#[derive(Default)]
struct Everything {
    spans: BTreeMap<TaskId, Vec<Span>>,
    /// The waking that was valid when a wait began, and its waker if that was a task in task context.
    wakings: BTreeMap<(TaskId, Ts), (Ts, Option<TaskId>)>,
    announced: BTreeMap<(TaskId, Ts), Option<TaskId>>,
    /// The time of a fork, and the parent.
    forks: BTreeMap<Pid, (Ts, Option<TaskId>)>,
    births: BTreeMap<TaskId, (Ts, Option<TaskId>)>,
    /// The task of the exit of each PID.
    exits: BTreeMap<Pid, (Ts, TaskId)>,
    root: Option<Pid>,
    start: Ts,
}

impl Everything {
    fn emitter(event: &SchedEvent, state: &SchedState) -> Option<TaskId> {
        let task = state.running(event.cpu)?;
        (event.flags & 0x18 == 0 && task.pid == event.pid).then(|| task.id())
    }
}

impl Analysis for Everything {
    type Output = Everything;

    fn begin(&mut self, start: Ts, _: &SchedState) {
        self.start = start;
    }

    fn before(&mut self, event: &SchedEvent, state: &SchedState) {
        match event.kind {
            Event::Fork { child, .. } => {
                self.forks.insert(child, (event.ts, Everything::emitter(event, state)));
            }
            Event::Exit { pid } => {
                if let Some(task) = state.task_of(pid) {
                    self.exits.insert(pid, (event.ts, task.id()));
                }
            }
            _ => {}
        }
    }

    fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        self.root = state.root();
        for (task, span) in state.turns() {
            if let TaskState::Waiting(_) = span.next
                && let Some(waking) = task.waking
            {
                let waker = self.announced.get(&(task.id(), waking.at)).copied().flatten();
                self.wakings.insert((task.id(), event.ts), (waking.at, waker));
            }
            if task.born == Some(event.ts)
                && span.state == TaskState::Unknown
                && let Some(fork) = self.forks.remove(&task.pid)
            {
                self.births.insert(task.id(), fork);
            }
            self.spans.entry(span.task).or_default().push(*span);
        }
        if let Event::Waking { task, .. } = event.kind
            && let Some(task) = state.task_of(task.pid)
        {
            let waker = Everything::emitter(event, state).filter(|waker| *waker != task.id());
            self.announced.insert((task.id(), event.ts), waker);
        }
    }

    fn finish(mut self, _: Ts, state: &SchedState) -> Everything {
        for span in state.spans() {
            self.spans.entry(span.task).or_default().push(*span);
        }
        self
    }
}

impl Everything {
    /// Walks back from a task at a time.
    fn walk(&self, mut task: TaskId, mut at: Ts) -> Vec<Piece> {
        let mut found = Vec::new();
        let mut put = |kind, pid: Pid, cpu: Option<Cpu>, from: Ts, to: Ts| {
            if from < to {
                found.push((kind, pid.0, cpu.map(|cpu| cpu.0), from.0, to.0));
            }
        };
        'walk: while at > self.start {
            let spans = &self.spans[&task];
            // The span that leads to this instant; where several do, the latest that has a length.
            let Some(span) = spans.iter().rfind(|span| span.start < at && span.end >= at) else { break };
            let start = span.start.max(self.start);
            match span.state {
                TaskState::Running(cpu) => put(Kind::Running, span.pid, Some(cpu), start, at),
                TaskState::Waiting(cpu) => put(Kind::Queued, span.pid, Some(cpu), start, at),
                TaskState::Throttled(cpu) => put(Kind::Throttled, span.pid, Some(cpu), start, at),
                TaskState::Blocked(_) if span.end == at && matches!(span.next, TaskState::Waiting(_)) => {
                    match self.wakings.get(&(task, at)) {
                        None => put(Kind::Unknown, span.pid, None, start, at),
                        Some((waking, _)) if *waking <= start => put(Kind::Waking, span.pid, None, start, at),
                        Some((waking, waker)) => {
                            put(Kind::Waking, span.pid, None, *waking, at);
                            if let Some(waker) = waker {
                                (task, at) = (*waker, *waking);
                                continue 'walk;
                            }
                            put(Kind::Sleeping, span.pid, None, start, *waking);
                        }
                    }
                }
                _ => put(Kind::Unknown, span.pid, None, start, at),
            }
            at = start;
            if let Some((forked, parent)) = self.births.get(&task).copied()
                && spans.iter().all(|span| span.start >= at)
            {
                let Some(parent) = parent else { break };
                put(Kind::Waking, span.pid, None, forked, at);
                (task, at) = (parent, forked);
            }
        }
        if at > self.start {
            let pid = found.last().map_or(0, |piece| piece.1);
            found.push((Kind::Unknown, pid, None, self.start.0, at.0));
        }
        found.reverse();
        found
    }
}

fn everything(events: &[SchedEvent]) -> Everything {
    Pass::over(events).run(Everything::default).unwrap_or_else(|never| match never {}).output
}

/// Asserts that the segments tile the time of the path.
fn tiles(name: &str, path: &Path) {
    let mut at = path.from_ns;
    for segment in &path.path {
        assert!(segment.start_ns == at && segment.end_ns > at, "{name}: {segment:?} at {at:?}");
        at = segment.end_ns;
    }
    assert_eq!(at, path.to_ns, "{name}");
    assert_eq!(path.times.total(), path.to_ns.since(path.from_ns).0, "{name}");
    let by_task: u64 = path.tasks.iter().map(|share| share.times.total()).sum();
    assert_eq!(by_task, path.times.total(), "{name}");
    assert!(path.times.queued_beside_idle_ns <= path.times.queued_ns, "{name}");
}

#[test]
fn the_path_is_that_of_a_walk_back_on_simulated_runs() {
    let (mut checked, mut kinds, mut long) = (0, BTreeSet::new(), 0);
    for seed in 0..120 {
        let cpus = 1 + (seed % 9) as u32;
        let sim = if seed % 3 == 0 { Simulation::any(seed, cpus, 400) } else { Simulation::balanced(seed, cpus, 400) };
        let all = everything(&sim.events);
        for (pid, (at, task)) in all.exits.iter().take(3) {
            let path = path_of(&sim.events, Some(pid.0));
            tiles(&format!("seed {seed}, {pid}"), &path);
            assert!(path.ends_with_exit && path.to_ns == *at);
            let ours = pieces(&path);
            assert_eq!(ours, all.walk(*task, *at), "seed {seed}: {pid}");
            kinds.extend(ours.iter().map(|piece| piece.0));
            (checked, long) = (checked + 1, long.max(path.handovers));
        }
    }
    assert!(checked > 150 && kinds.len() >= 4 && long > 10, "{checked} {kinds:?} {long}");
}

#[test]
fn the_path_is_that_of_a_walk_back_on_every_recording() {
    let mut checked = 0;
    for file in recordings() {
        let trace = Trace::open(&file, tracedat::Options::default()).expect("a readable recording");
        if trace.has_time().is_err() {
            continue;
        }
        let (name, events) = (file.display().to_string(), events(&trace));
        let path = path_of(&events, None);
        if path.task.is_none() {
            continue;
        }
        tiles(&name, &path);
        let all = everything(&events);
        let root = all.root.expect("a root");
        if let Some((at, task)) = all.exits.get(&root) {
            assert_eq!(pieces(&path), all.walk(*task, *at), "{name}");
            checked += 1;
        }
    }
    assert!(checked >= 5, "{checked}");
}

#[test]
fn a_path_by_hand() {
    let task = |pid: i32| TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(b"task") };
    let idle = TaskRef { pid: Pid::IDLE, prio: 120, comm: Comm::new(b"swapper") };
    let sleep = PrevState::blocked(1);
    let at = |ts, cpu, pid, kind| SchedEvent { ts: Ts(ts), cpu: Cpu(cpu), pid: Pid(pid), flags: 0, kind };
    let switch = |prev, state, next| Event::Switch { prev, state, next };
    let events = [
        at(0, 0, 5, Event::Other { id: 1 }),
        at(0, 1, 0, Event::Other { id: 1 }),
        // 5 sleeps at 10; 6 runs on its CPU.
        at(0, 0, 5, Event::Waking { task: task(6), target: Cpu(0) }),
        at(2, 0, 5, Event::Wakeup { task: task(6), target: Cpu(0) }),
        at(10, 0, 5, switch(task(5), sleep, task(6))),
        // 6 wakes 5 at 40, which is queued on the same CPU from 42 on and runs at 50.
        at(40, 0, 6, Event::Waking { task: task(5), target: Cpu(0) }),
        at(42, 0, 6, Event::Wakeup { task: task(5), target: Cpu(0) }),
        at(50, 0, 6, switch(task(6), sleep, task(5))),
        // 5 sleeps at 60, and an interrupt on CPU 1, which idles, wakes it at 80.
        at(60, 0, 5, switch(task(5), sleep, idle)),
        at(80, 1, 0, Event::Waking { task: task(5), target: Cpu(0) }),
        at(83, 1, 0, Event::Wakeup { task: task(5), target: Cpu(0) }),
        at(90, 0, 0, switch(idle, PrevState::RUNNABLE, task(5))),
        at(100, 0, 5, Event::Exit { pid: Pid(5) }),
    ];
    let path = path_of(&events, Some(5));
    tiles("by hand", &path);
    // 6 was woken by 5 at 0, waking until 2, queued until 10, and ran until it woke 5.
    let expected = [
        (Kind::Waking, 6, None, 0, 2),
        (Kind::Queued, 6, Some(0), 2, 10),
        (Kind::Running, 6, Some(0), 10, 40),
        (Kind::Waking, 5, None, 40, 42),
        (Kind::Queued, 5, Some(0), 42, 50),
        (Kind::Running, 5, Some(0), 50, 60),
        (Kind::Sleeping, 5, None, 60, 80),
        (Kind::Waking, 5, None, 80, 83),
        (Kind::Queued, 5, Some(0), 83, 90),
        (Kind::Running, 5, Some(0), 90, 100),
    ];
    assert_eq!(pieces(&path), expected);
    // CPU 1 idles with an empty run queue all the while.
    assert_eq!((path.times.queued_ns, path.times.queued_beside_idle_ns), (8 + 8 + 7, 8 + 8 + 7));
    assert_eq!((path.handovers, path.longest_queued[0].duration_ns.0), (1, 8));
    assert_eq!(path.longest_queued[0].behind.map(|task| task.pid), Some(Pid(5)));
}

#[test]
fn the_command_prints_the_path() {
    let file = fixture("hackbench.dat");
    let file = file.to_str().expect("a path");
    let text = schedviz(&["path", file]).success().text();
    for words in ["on the critical path", "while a CPU idled", "by task", "by CPU", "longest queued segments"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let long: Vec<&str> =
        text.lines().filter(|line| line.chars().count() > 75 && !line.contains("dat2graph")).collect();
    assert!(long.is_empty(), "{long:?}");
    let json = schedviz(&["path", file, "--json"]).success();
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!((&json["schema"], &json["ends_with_exit"]), (&"schedviz/path/1".into(), &true.into()));
    let refused = schedviz(&["path", file, "--pid", "999999"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("no such task"), "{}", refused.stderr);
    let part = schedviz(&["path", file, "--min", "0.2", "--max", "0.4", "--json"]).success();
    let part: serde_json::Value = serde_json::from_slice(&part.stdout).expect("JSON");
    let length = part["to_ns"].as_u64().expect("a time") - part["from_ns"].as_u64().expect("a time");
    assert_eq!(length, 200_000_000);
}

/// A task that the window does not show is there all the same: its path through the window is unknown.
#[test]
fn a_task_whose_first_event_lies_behind_the_window_is_unknown_in_it() {
    let task = |pid: i32| TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(b"task") };
    let at = |ts, pid, kind| SchedEvent { ts: Ts(ts), cpu: Cpu(0), pid: Pid(pid), flags: 0, kind };
    let events = [at(0, 5, Event::Other { id: 1 }), at(100, 5, Event::Other { id: 1 })];
    let path = path_of(&events, Some(6));
    tiles("not seen", &path);
    assert_eq!(pieces(&path), [(Kind::Unknown, 6, None, 0, 100)]);
    let shown = path.task.map(|task| (task.pid, task.command.to_string()));
    assert_eq!(shown, Some((Pid(6), "named".to_owned())));
    // One that is seen to die in the window, without an exit, is not there at its end.
    let die =
        Event::Switch { prev: task(5), state: PrevState { class: sched::StateClass::Dead, raw: 64 }, next: task(6) };
    let dead = [at(0, 5, Event::Other { id: 1 }), at(50, 5, die), at(100, 6, Event::Other { id: 1 })];
    assert_eq!(path_of(&dead, Some(5)).task, None);

    // The same by the command, of a task that no event shows in the first millisecond.
    let file = fixture("hackbench.dat");
    let file = file.to_str().expect("a path");
    let trace = Trace::open(&fixture("hackbench.dat"), tracedat::Options::default()).expect("a recording");
    let recorded = crate::support::events(&trace);
    let window = recorded[0].ts.0 + 1_000_000;
    // It is woken in its first event, and runs later.
    let mut seen = BTreeSet::new();
    let mut late = None;
    for event in &recorded {
        let (woken, others) = match event.kind {
            Event::Waking { task, .. } => (Some(task.pid), vec![task.pid]),
            Event::Switch { prev, next, .. } => (None, vec![prev.pid, next.pid]),
            Event::Fork { child, .. } => (None, vec![child]),
            Event::Migrate { task, .. } => (None, vec![task.pid]),
            _ => (None, Vec::new()),
        };
        late = late.or(woken.filter(|pid| event.ts.0 > window && !seen.contains(pid)));
        seen.extend(others.into_iter().chain([event.pid]));
    }
    let runs = recorded.iter().map(|event| event.pid).collect::<BTreeSet<_>>();
    let late = late.filter(|pid| runs.contains(pid));
    let pid = late.expect("a task that sleeps until later").to_string();
    let ran = schedviz(&["path", file, "--pid", &pid, "--max", "0.001", "--json", "-q"]).success();
    let found: serde_json::Value = serde_json::from_slice(&ran.stdout).expect("JSON");
    assert_eq!((&found["times"]["unknown_ns"], &found["segments"]), (&1_000_000.into(), &1.into()), "{pid}: {found}");
    assert!(found["task"]["command"].as_str().is_some_and(|name| !name.is_empty()), "{found}");
}

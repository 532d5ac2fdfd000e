//! The critical path of the application or of a task: a row of the page, and the numbers of a window as `path` prints them.

use crate::ask::questions::{AskedWindow, Fault};
use crate::index::viewed::{NotReady, Viewed};
use path::{OfTask, Path, Segment, SegmentKind};
use sched::{Cpu, Dur, Pid, Ts};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The task whose critical path is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PathOf {
    /// The application, as `path` finds it by itself.
    #[default]
    Application,
    /// The task with a PID, as `path --pid` finds its path.
    Task {
        /// The PID of the task.
        pid: Pid,
        /// The instant from which the path goes back, in nanoseconds from the start of the trace; the exit of the task, or the end of the
        /// trace, if it is left out.
        at: Option<u64>,
    },
}

impl PathOf {
    /// The rule for the parameters that name the task.
    pub(crate) const RULE: &str = "of is the PID of a task, at an instant in nanoseconds from which its path goes back";

    /// The end of the search for the path, where it is not that of the trace.
    pub(crate) fn until(self, trace: &Viewed<'_>) -> Option<Ts> {
        let (start, end) = trace.extent();
        match self {
            PathOf::Task { at: Some(at), .. } => Some(start.after(Dur(at)).min(end)),
            _ => None,
        }
    }

    /// Refuses a task that the trace does not have.
    pub(crate) fn check(self, trace: &Viewed<'_>) -> Result<(), Fault> {
        match self {
            PathOf::Task { pid, .. } if trace.store()?.index().tasks().of(pid).is_none() => {
                Err(Fault::Bad("no such task in the trace"))
            }
            _ => Ok(()),
        }
    }
}

/// A question about a critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathQuestion {
    /// The row in a window, in this number of columns.
    Row(AskedWindow, u64),
    /// The numbers of a window.
    Numbers(AskedWindow),
    /// The tasks on it.
    Tasks,
    /// The part of a task's wait that lies on it.
    Share(Pid, AskedWindow),
}

/// The critical path in a window of a trace.
#[derive(Clone, Debug)]
pub struct FoundPath {
    /// The path, with its segments.
    pub path: Path,
    /// The command line that prints its numbers.
    pub command: String,
}

/// The answer to the question for a critical path.
#[derive(Clone, Debug)]
pub enum PathFinding {
    /// The critical path.
    Found(Box<FoundPath>),
    /// The reason for which there is none: the window shows no application.
    NoApplication(String),
}

/// The states of a task on the path, by their places in [`NAMES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PathState {
    Running,
    HeldBack,
    BesideIdle,
    BesideShorter,
    Alike,
    Queued,
    Waking,
    Sleeping,
    Unknown,
    Throttled,
}

/// The names of the states, as `path` prints them.
const NAMES: [&str; 10] = [
    "running",
    "queued, held back",
    "queued while a CPU idled",
    "queued beside a shorter queue",
    "queued, all queues alike",
    "queued",
    "wakeup in progress",
    "sleeping until interrupt",
    "unknown",
    "throttled by cpu.max",
];

impl PathState {
    fn is_queued(self) -> bool {
        (PathState::HeldBack as usize..=PathState::Queued as usize).contains(&(self as usize))
    }

    /// The state of a segment; a queued one has the kind that has most of it.
    fn of(segment: &Segment) -> PathState {
        match segment.kind {
            SegmentKind::Running => PathState::Running,
            SegmentKind::Waking => PathState::Waking,
            SegmentKind::Sleeping => PathState::Sleeping,
            SegmentKind::Unknown => PathState::Unknown,
            SegmentKind::Throttled => PathState::Throttled,
            SegmentKind::Queued => {
                let kinds = &segment.kinds;
                let kinds = [
                    (kinds.alike_ns, PathState::Alike),
                    (kinds.beside_shorter_ns, PathState::BesideShorter),
                    (kinds.beside_idle_ns, PathState::BesideIdle),
                    (kinds.held_back_ns, PathState::HeldBack),
                ];
                let most = kinds.into_iter().max_by_key(|(ns, _)| *ns).filter(|(ns, _)| *ns > 0);
                most.map_or(PathState::Queued, |(_, state)| state)
            }
        }
    }
}

/// A segment of the row, 24 bytes: it ends where the next one begins.
#[derive(Clone, Copy, Debug)]
struct PathStep {
    start: Ts,
    pid: Pid,
    cpu: Option<u16>,
    state: PathState,
}

/// The row of the critical path of a whole trace.
#[derive(Clone, Debug)]
pub(crate) struct PathRow {
    /// The segments, in the order of time.
    steps: Vec<PathStep>,
    /// The end of the last one.
    end: Ts,
    task: Option<OfTask>,
    /// The numbers of the whole path.
    numbers: Value,
    /// The tasks on the path, those with the most time first, and their number.
    tasks: (Vec<Pid>, usize),
    is_untrusted: bool,
    is_cut: bool,
}

/// A part of the row: a segment, or several that are shorter than a column together.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PathPart {
    from: Ts,
    to: Ts,
    /// The task that has most of the part, and the CPU on which it was longest.
    pid: Pid,
    cpu: Option<u16>,
    /// The number of its tasks.
    tasks: usize,
    /// The time in each state, in nanoseconds.
    ns: [u64; NAMES.len()],
}

/// A part that is being made: the time of each task, its longest time on a CPU, and that CPU.
struct MixedPart {
    part: PathPart,
    times: BTreeMap<Pid, (u64, u64, Option<u16>)>,
}

impl MixedPart {
    fn new(from: Ts) -> MixedPart {
        let part = PathPart { from, to: from, pid: Pid(0), cpu: None, tasks: 0, ns: [0; NAMES.len()] };
        MixedPart { part, times: BTreeMap::new() }
    }

    fn length(&self) -> u64 {
        self.part.to.since(self.part.from).0
    }

    fn add(&mut self, step: &PathStep, to: Ts) {
        let length = to.since(step.start).0;
        self.part.ns[step.state as usize] += length;
        self.part.to = to;
        let (ns, longest, cpu) = self.times.entry(step.pid).or_default();
        *ns += length;
        if step.cpu.is_some() && length >= *longest {
            (*longest, *cpu) = (length, step.cpu);
        }
    }

    fn finish(self) -> Option<PathPart> {
        let (pid, (_, _, cpu)) = self.times.iter().max_by_key(|(_, (ns, _, _))| *ns)?;
        Some(PathPart { pid: *pid, cpu: *cpu, tasks: self.times.len(), ..self.part })
    }
}

/// The maximum number of columns for which the row is asked.
pub(crate) const COLUMNS: u64 = 8192;

/// The number of tasks that are listed.
const LISTED: usize = 20;

/// The maximum number of tasks on a path that have rows for that.
const ON_PATH: usize = 10_000;

impl PathRow {
    /// The row of a path that was found in a whole trace.
    pub(crate) fn of(found: &FoundPath) -> PathRow {
        let path = &found.path;
        let step = |segment: &Segment| PathStep {
            start: segment.start_ns,
            pid: segment.pid,
            cpu: segment.cpu.and_then(|Cpu(cpu)| u16::try_from(cpu).ok()),
            state: PathState::of(segment),
        };
        PathRow {
            steps: path.path.iter().map(step).collect(),
            end: path.path.last().map_or(path.from_ns, |last| last.end_ns),
            task: path.task,
            numbers: found.numbers(),
            tasks: (path.tasks.iter().take(ON_PATH).map(|share| share.of.pid).collect(), path.tasks.len()),
            is_untrusted: path.is_untrusted,
            is_cut: path.is_cut,
        }
    }

    /// The numbers of the whole path.
    pub(crate) fn numbers(&self) -> &Value {
        &self.numbers
    }

    /// The tasks on the path, as the page has rows for them.
    pub(crate) fn tasks(&self) -> Value {
        json!({ "tasks": self.tasks.0, "number": self.tasks.1 })
    }

    /// The part of a task's wait that lies on the path, and the time that is unknown of the path within the wait.
    pub(crate) fn share(&self, pid: Pid, (from, to): (Ts, Ts)) -> Value {
        let (mut queued, mut unknown) = (0, 0);
        let first = self.steps.partition_point(|step| step.start <= from).saturating_sub(1);
        for (nth, step) in self.steps.iter().enumerate().skip(first).take_while(|(_, step)| step.start < to) {
            let ns = self.end_of(nth).min(to).since(step.start.max(from)).0;
            match step.state {
                PathState::Unknown => unknown += ns,
                state if step.pid == pid && state.is_queued() => queued += ns,
                _ => {}
            }
        }
        json!({ "queued": queued, "unknown": unknown, "task": self.task, "is_untrusted": self.is_untrusted })
    }

    /// The end of a segment.
    fn end_of(&self, nth: usize) -> Ts {
        self.steps.get(nth + 1).map_or(self.end, |next| next.start)
    }

    /// The parts of the row that overlap a window. One that is longer than a column is a whole segment: there are at most two for each column, and five
    /// at the edges.
    fn parts(&self, (from, to): (Ts, Ts), columns: u64) -> Vec<PathPart> {
        let column = to.since(from).0.div_ceil(columns.max(1)).max(1);
        let first = self.steps.partition_point(|step| step.start <= from).saturating_sub(1);
        let first = if self.steps.is_empty() || self.end_of(first) > from { first } else { first + 1 };
        let steps = self.steps.iter().enumerate().skip(first).take_while(|(_, step)| step.start <= to);
        let mut parts = Vec::new();
        let mut mixed = MixedPart::new(from);
        for (nth, step) in steps {
            let end = self.end_of(nth);
            let is_long = end.since(step.start).0 >= column;
            if is_long || mixed.length() >= column || mixed.times.is_empty() {
                parts.extend(std::mem::replace(&mut mixed, MixedPart::new(step.start)).finish());
            }
            mixed.add(step, end);
        }
        parts.extend(mixed.finish());
        parts
    }

    /// The answer to the page, with times from `zero`: the parts within a window.
    pub(crate) fn answer(&self, zero: Ts, window: (Ts, Ts), columns: u64) -> Value {
        let part = |part: &PathPart| {
            let ns: Vec<(usize, u64)> = part.ns.iter().copied().enumerate().filter(|(_, ns)| *ns > 0).collect();
            json!([part.from.since(zero).0, part.to.since(zero).0, part.pid, part.cpu, part.tasks, ns])
        };
        let parts: Vec<Value> = self.parts(window, columns).iter().map(part).collect();
        json!({
            "states": NAMES, "task": self.task, "is_untrusted": self.is_untrusted, "is_cut": self.is_cut, "parts": parts,
        })
    }
}

impl FoundPath {
    /// The numbers of the path, as the JSON of `path` has them, with the tasks that have most of it.
    pub(crate) fn numbers(&self) -> Value {
        let path = &self.path;
        let tasks: Vec<Value> = path.tasks.iter().take(LISTED).map(|share| json!(share)).collect();
        json!({
            "task": path.task, "ends_with_exit": path.ends_with_exit, "length": path.to_ns.since(path.from_ns).0,
            "times": path.times, "segments": path.segments, "handovers": path.handovers, "gaps": path.gaps,
            "possible_ns": path.possible_ns, "is_untrusted": path.is_untrusted, "is_cut": path.is_cut,
            "tasks": tasks, "tasks_number": path.tasks.len(), "command": self.command,
        })
    }
}

/// The critical path of a trace, as far as it is kept.
#[derive(Clone, Debug)]
pub(crate) enum KeptPath {
    Row(PathRow),
    NoApplication(String),
}

/// The answer where there is no path.
pub(crate) fn none(why: &str) -> Value {
    json!({ "none": why })
}

impl KeptPath {
    pub(crate) fn of(found: PathFinding) -> KeptPath {
        match found {
            PathFinding::Found(found) => KeptPath::Row(PathRow::of(&found)),
            PathFinding::NoApplication(why) => KeptPath::NoApplication(why),
        }
    }
}

/// The numbers of a part of a trace, as the page has them.
pub(crate) fn numbers(found: Result<PathFinding, String>) -> Result<Value, NotReady> {
    match found.map_err(NotReady)? {
        PathFinding::Found(found) => Ok(found.numbers()),
        PathFinding::NoApplication(why) => Ok(none(&why)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use path::{CriticalPath, Options};
    use sched::Pass;
    use std::collections::BTreeSet;

    /// The path of the task that exits in a simulated run, in which tasks wake each other.
    fn path_of(pid: Pid, events: &[sched::SchedEvent]) -> Path {
        let options = Options { pid: Some(pid), ..Options::default() };
        Pass::over(events).run(|| CriticalPath::new(options)).unwrap_or_else(|never| match never {}).output
    }

    fn row_of(path: &Path) -> PathRow {
        PathRow::of(&FoundPath { path: path.clone(), command: String::new() })
    }

    /// The segments that overlap a window.
    fn segments(path: &Path, (from, to): (Ts, Ts)) -> Vec<&Segment> {
        path.path.iter().filter(|segment| segment.end_ns > from && segment.start_ns <= to).collect()
    }

    #[test]
    fn parts_are_the_segments_at_every_zoom() {
        let events = testkit::Simulation::any(7, 4, 1_500).events;
        let pids: BTreeSet<Pid> = events.iter().map(|event| event.pid).filter(|pid| !pid.is_idle()).collect();
        let paths = pids.into_iter().take(12).map(|pid| path_of(pid, &events));
        let path = paths.max_by_key(|path| path.segments).expect("paths");
        assert!(path.segments > 50 && path.tasks.len() > 2, "{} segments", path.segments);
        let row = row_of(&path);
        let (from, to) = (path.from_ns, path.to_ns);
        let third = to.since(from).0 as i64 / 3;
        for window in [
            (from, to),
            (Ts(from.0 + third), Ts(to.0 - third)),
            (Ts(from.0 + third), Ts(from.0 + third)),
            (to, Ts(to.0 + 9)),
        ] {
            let expected = segments(&path, window);
            for columns in [1, 7, 50, 1_000, COLUMNS] {
                let parts = row.parts(window, columns);
                let about = format!("{window:?} in {columns} columns");
                assert!(parts.len() as u64 <= 2 * columns + 5, "{about}: {} parts", parts.len());
                assert!(parts.windows(2).all(|pair| pair[0].to == pair[1].from), "{about}: a hole");
                let ends = |first: Option<Ts>, last: Option<Ts>| first.zip(last);
                assert_eq!(
                    ends(parts.first().map(|part| part.from), parts.last().map(|part| part.to)),
                    ends(
                        expected.first().map(|segment| segment.start_ns),
                        expected.last().map(|segment| segment.end_ns)
                    ),
                    "{about}"
                );
                let mut ns = [0; NAMES.len()];
                expected.iter().for_each(|segment| ns[PathState::of(segment) as usize] += segment.length());
                let mut sums = [0; NAMES.len()];
                parts.iter().for_each(|part| sums.iter_mut().zip(part.ns).for_each(|(sum, ns)| *sum += ns));
                assert_eq!(sums, ns, "{about}");
                // The task of a part has as much of it as any.
                for part in &parts {
                    let mut times = BTreeMap::<Pid, u64>::new();
                    let within =
                        expected.iter().filter(|segment| segment.start_ns >= part.from && segment.end_ns <= part.to);
                    within.for_each(|segment| *times.entry(segment.pid).or_default() += segment.length());
                    assert_eq!(times.get(&part.pid), times.values().max(), "{about}: {part:?}");
                    assert_eq!(times.len(), part.tasks, "{about}: {part:?}");
                }
            }
        }
        // Where each column is shorter than every segment, each part is one.
        let shortest = path.path.iter().map(Segment::length).min().expect("segments");
        let window = (from, Ts(from.0 + shortest as i64 * COLUMNS as i64));
        let parts: Vec<(Ts, Pid)> = row.parts(window, COLUMNS).iter().map(|part| (part.from, part.pid)).collect();
        let exact: Vec<(Ts, Pid)> =
            segments(&path, window).iter().map(|segment| (segment.start_ns, segment.pid)).collect();
        assert_eq!(parts, exact);
    }

    #[test]
    fn a_queued_segment_has_the_kind_that_has_most_of_it() {
        // Task 8 waits on CPU 0 for 200 ns while CPU 1 idles.
        let path = path_of(Pid(8), &testkit::a_wait_beside_an_idle_cpu());
        let states: Vec<PathState> = path.path.iter().map(PathState::of).collect();
        assert!(states.contains(&PathState::BesideIdle) && !states.contains(&PathState::Alike), "{states:?}");
        let mut segment = *path.path.iter().find(|segment| segment.kind == SegmentKind::Queued).expect("queued");
        segment.kinds = sched::QueuedTimes { beside_shorter_ns: 5, alike_ns: 4, ..Default::default() };
        assert_eq!(PathState::of(&segment), PathState::BesideShorter);
        segment.kinds = sched::QueuedTimes::default();
        assert_eq!(PathState::of(&segment), PathState::Queued);
    }

    #[test]
    fn no_segment_has_no_part() {
        let path = path_of(Pid(99), &testkit::a_wait_beside_an_idle_cpu());
        assert_eq!(size_of::<PathStep>(), 24);
        let mut empty = path;
        empty.path.clear();
        assert_eq!(row_of(&empty).parts((Ts(0), Ts(100)), 10), []);
    }
}

//! The critical path of a command or a task (`docs/definitions.md`, section 8).
//!
//! The path is defined backwards, from the end of its task: a sleep that another task ended continues with that task.
//! It is found forwards, in one pass: each task has the path that ends where its present state began, and takes over
//! the path of the task that wakes or forks it. The segments tile the window.
//!
//! ```
//! use critical_path::{CriticalPath, Options};
//! use sched::{Pass, Pid};
//!
//! // A task waits on CPU 0 for 200 ns while CPU 1 idles.
//! let events = testkit::a_wait_beside_an_idle_cpu();
//! let options = Options { pid: Some(Pid(8)), ..Options::default() };
//! let pass = Pass::over(events.as_slice());
//! let path = pass.run(|| CriticalPath::new(options)).unwrap_or_else(|never| match never {}).output;
//! assert_eq!((path.times.queued_ns, path.times.queued_beside_idle_ns), (200, 200));
//! ```

mod chain;
mod figure;
mod report;
mod text;

pub use chain::{Kind, Segment};
pub use figure::{caption, draw, figure, legend};
pub use report::{OfCpu, OfTask, Path, Queued, Share, Times};
pub use text::{segments_text, text};

use chain::{Chain, Link, MOST, NOTHING};
use sched::seeded::SeededMap;
use sched::{Analysis, Comm, Cpu, Kind as EventKind, PerTask, Pid, SchedEvent, SchedState, Span, Task, TaskState, Ts};

/// The path whose task is sought.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// The task; the traced command's first task where there is none.
    pub pid: Option<Pid>,
    /// The name of that task where the window does not show it.
    pub command: Comm,
    /// The instant that counts as zero: the start of the trace.
    pub zero: Ts,
    /// Maximum number of the longest queued segments to keep.
    pub longest: usize,
}

/// The path to an instant: its last segment, which ends there.
#[derive(Clone, Copy, Debug)]
struct Until {
    link: Link,
    at: Ts,
}

/// A task that has a path.
#[derive(Clone, Copy, Debug, Default)]
struct Track {
    /// The path to the beginning of its state; nothing where its first segment begins the path.
    link: Link,
    /// The path of the task that announced its wakeup, to that instant.
    waker: Option<Until>,
    /// The reading of the time beside idle CPUs when it was queued.
    reading: u64,
    /// The task that ran on its CPU when it was queued.
    behind: Option<Pid>,
}

/// The analysis.
pub struct CriticalPath {
    options: Options,
    start: Ts,
    chain: Chain,
    tracks: PerTask<Track>,
    /// The paths of parents to the fork of a child that has not been queued yet.
    forks: SeededMap<Pid, Until>,
    /// The time during which some CPU idled with an empty run queue, until `last`.
    beside_idle: u64,
    last: Ts,
    /// The path to the exit of the task that is sought.
    found: Option<(Pid, Until)>,
    /// That path ends with an exit.
    exited: bool,
    /// The most recent names.
    names: SeededMap<Pid, Comm>,
}

impl CriticalPath {
    /// With these options.
    pub fn new(options: Options) -> CriticalPath {
        CriticalPath {
            options,
            start: Ts(0),
            chain: Chain::new(MOST),
            tracks: PerTask::default(),
            forks: SeededMap::default(),
            beside_idle: 0,
            last: Ts(0),
            found: None,
            exited: false,
            names: SeededMap::default(),
        }
    }

    fn track(&self, task: &Task) -> Track {
        self.tracks.get(task.id()).copied().unwrap_or(Track { link: NOTHING, ..Track::default() })
    }

    /// A segment of a task in this state.
    fn segment(&mut self, task: &Task, state: TaskState, (start, end): (Ts, Ts), track: &Track) -> Segment {
        let (kind, cpu) = match state {
            TaskState::Running(cpu) => (Kind::Running, Some(cpu)),
            TaskState::Waiting(cpu) => (Kind::Queued, Some(cpu)),
            TaskState::Throttled(cpu) => (Kind::Throttled, Some(cpu)),
            TaskState::Blocked(_) => (Kind::Sleeping, None),
            TaskState::Unknown | TaskState::Dead => (Kind::Unknown, None),
        };
        let is_queued = kind == Kind::Queued;
        self.names.insert(task.pid, task.comm);
        Segment {
            kind,
            pid: task.pid,
            cpu,
            start_ns: start.max(self.start),
            end_ns: end,
            beside_idle_ns: if is_queued { self.beside_idle.saturating_sub(track.reading) } else { 0 },
            behind: track.behind.filter(|_| is_queued),
        }
    }

    /// The path of a task to this instant, in the state that it has.
    fn until(&mut self, task: &Task, now: Ts) -> Until {
        let track = self.track(task);
        let segment = self.segment(task, task.state, (task.since, now), &track);
        Until { link: self.chain.add(segment, track.link), at: now }
    }

    /// The path of the task that emits an event, if that runs and did not do so in an interrupt.
    fn emitter(&mut self, event: &SchedEvent, state: &SchedState) -> Option<Until> {
        let task = state.running(event.cpu).filter(|task| event.in_task() && task.pid == event.pid)?;
        Some(self.until(&task.clone(), event.ts))
    }

    /// A task leaves a state.
    fn turn(&mut self, task: &Task, span: &Span, event: &SchedEvent, state: &SchedState) {
        let mut track = self.track(task);
        let (start, now) = (span.start.max(self.start), event.ts);
        let is_woken = matches!(span.next, TaskState::Waiting(_));
        match span.state {
            TaskState::Blocked(_) if is_woken => self.wake(task, &mut track, (start, now)),
            // It did not exist before.
            TaskState::Unknown if task.born == Some(now) => {
                track.link = match self.forks.remove(&task.pid) {
                    Some(Until { link, at }) => {
                        let placed =
                            Segment { kind: Kind::Waking, ..self.segment(task, span.state, (at, now), &track) };
                        self.chain.add(placed, link)
                    }
                    None => NOTHING,
                };
            }
            before => {
                // Without a wakeup nothing shows when a sleep ended.
                let known = if let TaskState::Blocked(_) = before { TaskState::Unknown } else { before };
                let segment = self.segment(task, known, (start, now), &track);
                track.link = self.chain.add(segment, track.link);
            }
        }
        if let TaskState::Waiting(cpu) = span.next {
            track.reading = self.beside_idle;
            track.behind = state.running(cpu).map(|running| running.pid);
        }
        if let TaskState::Running(_) | TaskState::Waiting(_) = span.next {
            track.waker = None;
        }
        if span.next == TaskState::Dead {
            self.tracks.take(task.id());
        } else {
            self.tracks.insert(task.id(), track);
        }
    }

    /// A sleep from `start` to `now` ends in a run queue.
    fn wake(&mut self, task: &Task, track: &mut Track, (start, now): (Ts, Ts)) {
        let sleep = self.segment(task, TaskState::Blocked(Cpu(0)), (start, now), track);
        let waking = |from: Ts| Segment { kind: Kind::Waking, start_ns: from.max(start), ..sleep };
        track.link = match (task.waking, track.waker) {
            // Its wakeup was announced while it was still running.
            (Some(waker), _) if waker.at <= start => self.chain.add(waking(start), track.link),
            (Some(waker), Some(until)) if until.at == waker.at => self.chain.add(waking(waker.at), until.link),
            (Some(waker), _) => {
                let slept = self.chain.add(Segment { end_ns: waker.at, ..sleep }, track.link);
                self.chain.add(waking(waker.at), slept)
            }
            (None, _) => self.chain.add(Segment { kind: Kind::Unknown, ..sleep }, track.link),
        };
    }

    /// Drops the segments that cannot be on the path any more.
    #[cold]
    fn drop_unused(&mut self) {
        let mut links: Vec<&mut Link> = Vec::new();
        for track in self.tracks.values_mut() {
            links.push(&mut track.link);
            links.extend(track.waker.as_mut().map(|until| &mut until.link));
        }
        links.extend(self.forks.values_mut().map(|until| &mut until.link));
        links.extend(self.found.as_mut().map(|(_, until)| &mut until.link));
        self.chain.drop_unused(&mut links);
    }

    fn is_sought(&self, pid: Pid, state: &SchedState) -> bool {
        self.options.pid.or(state.root()) == Some(pid)
    }
}

impl Analysis for CriticalPath {
    type Output = Path;
    const COUNTS: bool = true;

    fn begin(&mut self, start: Ts, _: &SchedState) {
        (self.start, self.last) = (start, start);
    }

    fn before(&mut self, event: &SchedEvent, state: &SchedState) {
        if state.counts().idle > 0 {
            self.beside_idle = self.beside_idle.saturating_add(event.ts.since(self.last).0);
        }
        self.last = event.ts;
        match event.kind {
            EventKind::Fork { child, .. } => {
                if let Some(until) = self.emitter(event, state) {
                    self.forks.insert(child, until);
                }
            }
            EventKind::Exit { pid } if self.is_sought(pid, state) => {
                if let Some(task) = state.task_of(pid).copied() {
                    self.found = Some((pid, self.until(&task, event.ts)));
                    self.exited = true;
                }
            }
            _ => {}
        }
    }

    fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        for (task, span) in state.turns() {
            self.turn(task, span, event, state);
        }
        if let EventKind::Waking { task, .. } = event.kind
            && let Some(task) = state.task_of(task.pid)
        {
            let waker = self.emitter(event, state).filter(|_| event.pid != task.pid);
            let track = Track { waker, ..self.track(task) };
            self.tracks.insert(task.id(), track);
        }
        if self.chain.is_full() {
            self.drop_unused();
        }
    }

    fn finish(mut self, end: Ts, state: &SchedState) -> Path {
        if state.counts().idle > 0 {
            self.beside_idle = self.beside_idle.saturating_add(end.since(self.last).0);
        }
        if self.found.is_none()
            && let Some(pid) = self.options.pid.or(state.root())
            && let Some(task) = state.task_of(pid).copied()
        {
            let mut until = self.until(&task, end);
            // No waking ends its sleep.
            if let TaskState::Blocked(_) = task.state {
                let track = self.track(&task);
                let sleep = self.segment(&task, TaskState::Unknown, (task.since, end), &track);
                until.link = self.chain.add(sleep, track.link);
            }
            self.found = Some((pid, until));
        }
        // No event up to the end of the window shows it: perhaps it sleeps until later.
        if let (None, Some(pid)) = (self.found, self.options.pid)
            && !self.names.contains_key(&pid)
        {
            self.names.insert(pid, self.options.command);
            self.found = Some((pid, Until { link: NOTHING, at: end }));
        }
        report::build(&self)
    }
}

//! The critical path of a command or a task (`docs/questions/path.md`).
//!
//! In goes a trace, out come segments that tile the window: running, queued, waking, sleeping. The path is walked backwards from
//! the end of its task. A sleep that another task ended is explained by that task, back to the instant at which the sleep began;
//! there the walk returns to the sleeper. One pass forwards collects the segments of each task, with the waker of each sleep, and
//! drops those that no walk can reach any more. Begin reading in `chain.rs`, what is collected, then `walk.rs`.
//!
//! ```
//! use path::{CriticalPath, Options};
//! use sched::{Pass, Pid};
//!
//! // A task waits on CPU 0 for 200 ns while CPU 1 idles.
//! let events = testkit::a_wait_beside_an_idle_cpu();
//! let options = Options { pid: Some(Pid(8)), ..Options::default() };
//! let pass = Pass::over(events.as_slice());
//! let path = pass.run(|| CriticalPath::new(options)).unwrap_or_else(|never| match never {}).output;
//! assert_eq!((path.times.queued_ns, path.times.queued_beside_idle_ns), (200, 200));
//! ```

mod args;
mod by_group;
mod chain;
mod figure;
mod gap;
mod joined;
mod mutual;
mod occupants;
mod question;
mod report;
mod sleeps;
mod sought;
mod stacks;
mod text;
mod vcpus;
mod walk;

pub use args::PathArgs;
pub use by_group::PathByGroup;
pub use chain::{OfTask, Segment, SegmentKind};
pub use figure::{caption, draw, figure, legend, without_lanes};
pub use question::{
    FoundPaths, PathQuestion, PathSearches, find, find_of_command, find_of_task, path_of_command, recorded_command,
    search_further, searches,
};
pub use report::{Behind, OfCpu, Path, Queued, Share, Times};
pub use sleeps::{HeldUp, SleepsUntil};
pub use stacks::SleepingAt;
pub use text::{Further, segments_text, text};

use chain::{Chain, ChainNode, Link, MOST, NOTHING, Via};
use gap::{Gap, is_seen_to_end};
use joined::{PathLog, TrackOrigin};
use mutual::MutualWakeups;
use sched::kthread::is_threaded_interrupt;
use sched::limits::keep_of_pid;
use sched::nice::SchedClass;
use sched::seeded::SeededMap;
use sched::{
    Affinity, Analysis, ChosenCpus, Comm, Cpu, EventKind, PerTask, Pid, QueuedBehind, QueuedKinds, QueuedReading,
    QueuedTimes, SchedEvent, SchedState, SoftirqOrigin, Span, Task, TaskId, TaskState, Ts, Waking,
};
use std::sync::Arc;

/// The path whose task is sought.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// The task; the traced command's first task where there is neither this nor a name.
    pub pid: Option<Pid>,
    /// The name of the task `pid`, where the window does not show it. Without a PID, the name of the task that is
    /// sought: of those with this most recent name it is the one that exits last; where none exits, the one with the
    /// lowest PID.
    pub command: Option<Comm>,
    /// The instant that counts as zero: the start of the trace.
    pub zero: Ts,
    /// Maximum number of the longest queued segments to keep.
    pub longest: usize,
}

/// The bit of an event's flags that a hard interrupt sets.
const HARD_INTERRUPT: u8 = 0x08;

/// The bit of `prev_state` of an uninterruptible sleep (`TASK_UNINTERRUPTIBLE`).
const UNINTERRUPTIBLE: u32 = 2;

/// The path to an instant: its last segment, which ends there.
#[derive(Clone, Copy, Debug)]
struct Until {
    link: Link,
    at: Ts,
}

/// A waking of a task.
#[derive(Clone, Copy, Debug)]
struct Announced {
    at: Ts,
    /// The path of its waker to that instant, if that was a task.
    by: Option<Waker>,
}

/// The path of a task to the instant at which it woke another one.
#[derive(Clone, Copy, Debug)]
struct Waker {
    link: Link,
    via: Via,
}

/// A task that has a path.
#[derive(Clone, Copy, Debug)]
struct PathTrack {
    /// The path to `from`; nothing where its first segment begins the path.
    link: Link,
    /// The beginning of its state, or of its gap; or the instant at which an event showed that it runs.
    from: Ts,
    /// An event has shown it running on this CPU from `from` on, whatever its state; and the last such event.
    runs: Option<(Cpu, Ts)>,
    /// The latest waking of the task since it ran or waited.
    waking: Option<Announced>,
    /// The reading of the time beside idle CPUs when it was queued or went to sleep.
    reading: u64,
    /// Whether the task sleeps uninterruptibly, as for a disk.
    is_deep: bool,
    /// The instant at which another task was shown on the CPU on which it was last seen to run.
    off: Option<Ts>,
    /// The task that ran on its CPU when it was queued.
    behind: Option<Pid>,
    /// The instant at which that task left the CPU; the latest one if it has not.
    behind_until: Ts,
    /// Whether the track began in this piece of a pass.
    origin: TrackOrigin,
}

impl PathTrack {
    /// The track of a task in a state that began at this instant, and of which nothing before is known.
    fn since(from: Ts) -> PathTrack {
        let origin = TrackOrigin::Here;
        PathTrack {
            link: NOTHING,
            from,
            runs: None,
            waking: None,
            reading: 0,
            is_deep: false,
            off: None,
            behind: None,
            behind_until: Ts::MAX,
            origin,
        }
    }
}

/// The search for the critical path: an [`Analysis`] whose output is a [`Path`].
pub struct CriticalPath {
    options: Options,
    start: Ts,
    chain: Chain,
    tracks: PerTask<PathTrack>,
    /// The reading of the kinds of queued time when a task was queued; none if that was before the window or this piece. Apart from the
    /// tracks, which are copied at each turn.
    queued: PerTask<QueuedReading>,
    /// The numbers and names of living tasks that are among the most recent names.
    named: PerTask<(Pid, Comm)>,
    /// The paths of parents to the fork of a child that has not been queued yet.
    forks: SeededMap<Pid, Until>,
    /// The time during which some CPU idled with an empty run queue, until `last`.
    beside_idle: u64,
    /// The kinds of queued time.
    kinds: QueuedKinds,
    last: Ts,
    /// The last event of each CPU that showed its current, and the reading of the time beside idle CPUs then.
    shown: Vec<(Ts, u64)>,
    /// The reading of the kinds on each CPU then, where a task waited on it.
    shown_kinds: Vec<QueuedReading>,
    /// The tasks on top of which softirqs wake each other.
    mutual: MutualWakeups,
    /// The task that is sought, while it is alive and if its number is known.
    sought: Option<TaskId>,
    /// The path to the exit of the task that is sought.
    found: Option<(Pid, Until)>,
    /// Whether that path ends with an exit.
    exited: bool,
    /// The trace records exits: elsewhere a task has exited when it is switched out for the last time.
    has_exits: bool,
    /// The most recent names.
    names: SeededMap<Pid, (Comm, Option<TaskId>)>,
    /// The classes of the tasks behind which others were queued, if these are not of the fair class.
    strong: SeededMap<Pid, SchedClass>,
    queued_behind: QueuedBehind,
    /// Whether the sought command cannot be found: a pass finds its exec before it begins, or repeats itself from a start
    /// that has it.
    is_hopeless: bool,
    /// Whether the search is for traces alone in which no exec shows the traced command.
    stands_aside: bool,
    /// The things that are left to the pieces before, in a later piece of a pass.
    log: Option<Box<PathLog>>,
}

impl CriticalPath {
    /// Returns the search for the path that the options choose.
    pub fn new(options: Options) -> CriticalPath {
        CriticalPath {
            options,
            start: Ts(0),
            chain: Chain::new(MOST),
            tracks: PerTask::default(),
            queued: PerTask::default(),
            named: PerTask::default(),
            forks: SeededMap::default(),
            beside_idle: 0,
            kinds: QueuedKinds::new(ChosenCpus::default(), None),
            last: Ts(0),
            shown: Vec::new(),
            shown_kinds: Vec::new(),
            mutual: MutualWakeups::default(),
            sought: None,
            found: None,
            exited: false,
            has_exits: false,
            names: SeededMap::default(),
            strong: SeededMap::default(),
            queued_behind: QueuedBehind::default(),
            is_hopeless: false,
            stands_aside: false,
            log: None,
        }
    }

    /// Takes the CPUs that tasks may use into account, where they are known.
    #[must_use]
    pub fn with_affinity(self, affinity: Option<Arc<Affinity>>) -> CriticalPath {
        CriticalPath { kinds: QueuedKinds::new(ChosenCpus::default(), affinity), ..self }
    }

    fn track(&self, task: &Task) -> PathTrack {
        self.tracks.get(task.id()).copied().unwrap_or(PathTrack::since(task.since))
    }

    /// Takes note of the most recent name of a task.
    fn name(&mut self, task: &Task) {
        let name = (task.pid, task.comm);
        if self.named.get(task.id()) != Some(&name) {
            self.named.insert(task.id(), name);
            // An exec of a thread gives its task the PID of another one: the two name it in turns.
            let other = self.names.get(&task.pid).and_then(|(_, by)| by.filter(|by| *by != task.id()));
            let _ = other.and_then(|other| self.named.take(other));
            keep_of_pid(&mut self.names, task.pid, (task.comm, Some(task.id())));
        }
    }

    /// The path behind `link` with another segment, which has no part before the window.
    fn add(&mut self, link: Link, kind: SegmentKind, task: &Task, (start, end): (Ts, Ts)) -> Link {
        self.name(task);
        self.chain.add(ChainNode::new(Segment::of(kind, task.pid, (start.max(self.start), end)), link))
    }

    /// The path behind the track of a task with a sleep that another task ended, which began with the track.
    fn add_sleep(&mut self, task: &Task, track: &PathTrack, at: Ts, by: Waker) -> Link {
        self.name(task);
        let sleep = Segment::of(SegmentKind::Sleeping, task.pid, (track.from.max(self.start), at));
        let node = ChainNode::new(sleep, track.link);
        let added = self.chain.added();
        let link = self.chain.add(ChainNode {
            by: by.link,
            via: by.via,
            reading: track.reading,
            is_deep: track.is_deep,
            ..node
        });
        if track.origin != TrackOrigin::Here && self.chain.added() > added {
            self.note_sleep(task.id(), link);
        }
        link
    }

    /// The wait of a task on a CPU up to an instant, by kind, and whether it counts as held back on the CPU that idled where this piece begins.
    fn kinds_of(&self, task: &Task, cpu: Cpu, until: Ts) -> (QueuedTimes, bool) {
        let begun = self.queued.get(task.id()).copied().unwrap_or_else(|| self.kinds.first_reading(task, cpu));
        let end = match self.shown_kinds.get(cpu.index()) {
            Some(shown) if until < self.last && shown.at() == until => *shown,
            _ => self.kinds.end_wait(&begun, until),
        };
        // Behind a loss there is a reading for tasks that may use every CPU alone.
        let whole = QueuedTimes { alike_ns: until.since(begun.at()).0, ..QueuedTimes::default() };
        (self.kinds.between(&begun, &end).unwrap_or(whole), self.kinds.was_first_held(&end))
    }

    /// The path through what a task does, up to an instant and to the reading then. A sleep is on it here only as far as
    /// nothing ended it.
    fn through(&mut self, task: &Task, state: TaskState, track: &PathTrack, (until, reading): (Ts, u64)) -> Link {
        let (kind, cpu) = match state {
            TaskState::Running(cpu) => (SegmentKind::Running, Some(cpu)),
            TaskState::Waiting(cpu) => (SegmentKind::Queued, Some(cpu)),
            TaskState::Throttled(cpu) => (SegmentKind::Throttled, Some(cpu)),
            TaskState::Asleep(_) => (SegmentKind::Sleeping, None),
            TaskState::Unknown | TaskState::Dead => (SegmentKind::Unknown, None),
        };
        let queued_on = cpu.filter(|_| kind == SegmentKind::Queued);
        let (kinds, was_held) = queued_on.map_or_else(Default::default, |cpu| self.kinds_of(task, cpu, until));
        let is_queued = queued_on.is_some();
        self.name(task);
        let segment = Segment {
            cpu,
            beside_idle_ns: if is_queued { reading.saturating_sub(track.reading) } else { 0 },
            kinds,
            behind: track.behind.filter(|_| is_queued),
            behind_ns: if is_queued { track.stayed_until(until) } else { 0 },
            ..Segment::of(kind, task.pid, (track.from.max(self.start), until))
        };
        let added = self.chain.added();
        let link = self.chain.add(ChainNode { reading, ..ChainNode::new(segment, track.link) });
        if is_queued && track.origin != TrackOrigin::Here && self.chain.added() > added {
            self.note_wait(task.id(), was_held, link);
        }
        link
    }

    /// The path of a task to this instant, in the state that it has.
    fn until(&mut self, task: &Task, now: Ts) -> Until {
        let track = self.track(task);
        self.note_use(task.id(), track.origin);
        let link = match (track.runs, task.state) {
            (Some((cpu, _)), _) => self.through(task, TaskState::Running(cpu), &track, (now, 0)),
            (None, TaskState::Unknown) => self.over_gap(task, &track, track.from, Gap::sleep(now)),
            (None, state) => self.through(task, state, &track, (now, self.beside_idle)),
        };
        Until { link, at: now }
    }

    /// The path of the task that emits an event, if that did not do so in an interrupt.
    fn emitter(&mut self, event: &SchedEvent, state: &SchedState) -> Option<Until> {
        if !event.in_task() || event.pid.is_idle() {
            return None;
        }
        match state.running(event.cpu).filter(|task| task.pid == event.pid) {
            Some(task) => Some(self.until(&task.clone(), event.ts)),
            None => Some(self.shown_to_run(event, state)),
        }
    }

    /// The path of the task that ends a sleep by a waking, if it is one.
    fn waker(&mut self, event: &SchedEvent, woken: &Task, state: &SchedState) -> Option<Waker> {
        if event.pid == woken.pid {
            return None;
        }
        if event.in_task() {
            let is_relay = state.task_of(event.pid).is_some_and(|waker| is_threaded_interrupt(waker.comm));
            let via = if is_relay { Via::Relay } else { Via::Task };
            return self.emitter(event, state).map(|Until { link, .. }| Waker { link, via });
        }
        let origin = state.softirq_origin(event.cpu);
        if event.in_hard_interrupt() || origin == SoftirqOrigin::Interrupt {
            return None;
        }
        if origin == SoftirqOrigin::Task {
            // The packets that the task itself sent.
            let on = *state.running(event.cpu).filter(|on| on.pid == event.pid)?;
            return Some(Waker { link: self.until(&on, event.ts).link, via: Via::Task });
        }
        let is_softirq = event.in_softirq() && event.flags & HARD_INTERRUPT == 0 && !woken.kin.is_of_kernel(woken.comm);
        let on =
            state.running(event.cpu).filter(|on| is_softirq && on.pid == event.pid && !on.kin.is_of_kernel(on.comm));
        let on = *on.filter(|on| !on.pid.is_idle())?;
        self.mutual.note(on.pid, woken.pid);
        Some(Waker { link: self.until(&on, event.ts).link, via: Via::Possibly })
    }

    /// A task leaves a state.
    fn turn(&mut self, task: &Task, span: &Span, event: &SchedEvent, state: &SchedState) {
        let known = self.tracks.get(task.id()).copied();
        let mut track = known.unwrap_or(PathTrack::since(span.start));
        self.note_use(task.id(), track.origin);
        let now = event.ts;
        let is_woken = matches!(span.next, TaskState::Waiting(_));
        match span.state {
            TaskState::Unknown if track.link == NOTHING => {
                self.begin_life(task, &mut track, event, state);
                track.from = now;
            }
            TaskState::Asleep(_) if is_woken && track.runs.is_none() => {
                self.wake(task, &mut track, now);
                track.from = now;
            }
            before if track.runs.is_none() && is_seen_to_end(span, event) => {
                track.link = self.through(task, before, &track, (now, self.beside_idle));
                track.from = now;
            }
            _ => self.turn_unseen(task, &mut track, span, event),
        }
        (track.runs, track.origin) = (None, TrackOrigin::Here);
        track.off = track.off.filter(|_| span.next == TaskState::Unknown);
        if let TaskState::Waiting(_) | TaskState::Asleep(_) = span.next {
            track.reading = self.beside_idle;
            track.is_deep = matches!(event.kind, EventKind::Switch { state, .. } if state.raw & UNINTERRUPTIBLE != 0);
        }
        if let TaskState::Waiting(cpu) = span.next {
            let reading = self.kinds.begin_wait(task, cpu, now, state);
            self.queued.insert(task.id(), reading);
            let running = state.running(cpu);
            (track.behind, track.behind_until) = (running.map(|running| running.pid), Ts::MAX);
            if running.is_some() {
                self.queued_behind.add(task.id(), cpu);
            }
            if let Some(running) = running.filter(|running| running.known_prio().is_some_and(|prio| prio < 100)) {
                keep_of_pid(&mut self.strong, running.pid, SchedClass::of(running.prio));
            }
        }
        if let TaskState::Running(_) | TaskState::Waiting(_) = span.next {
            track.waking = None;
        }
        if span.next == TaskState::Dead {
            if !self.has_exits && self.is_sought(task.pid, task.comm, state) {
                self.found = Some((task.pid, Until { link: track.link, at: now }));
                self.exited = true;
                self.note_without_exits();
            }
            self.tracks.take(task.id());
            self.sought = self.sought.filter(|sought| *sought != task.id());
        } else {
            self.tracks.insert(task.id(), track);
            if self.sought_pid(state) == Some(task.pid) {
                self.sought = Some(task.id());
            }
        }
    }

    /// The first event of a task whose state before is unknown, or that did not exist.
    fn begin_life(&mut self, task: &Task, track: &mut PathTrack, event: &SchedEvent, state: &SchedState) {
        let is_new = task.born == Some(event.ts);
        let fork = self.take_fork(task.pid);
        let is_forked = fork.map(|Until { link, at }| (track.link, track.from) = (link, at)).is_some();
        track.link = match is_new {
            true if is_forked => self.add(track.link, SegmentKind::Waking, task, (track.from, event.ts)),
            // The fork was not recorded; the parent puts its child into a queue as well.
            true => self.emitter(event, state).map_or(NOTHING, |parent| parent.link),
            false => self.over_gap(task, track, track.from, Gap::of(task, event)),
        };
    }

    /// A sleep ends in a run queue.
    fn wake(&mut self, task: &Task, track: &mut PathTrack, now: Ts) {
        let start = track.from;
        let announced = |waker: Waking| track.waking.filter(|announced| announced.at == waker.at)?.by;
        track.link = match task.waking {
            // Its wakeup was announced while it was still running.
            Some(waker) if waker.at <= start => self.add(track.link, SegmentKind::Waking, task, (start, now)),
            Some(waker) => {
                let before = match announced(waker) {
                    Some(by) => self.add_sleep(task, track, waker.at, by),
                    None => match self.waking_before(task, track, waker.at) {
                        Some(link) => link,
                        None => self.add(track.link, SegmentKind::Sleeping, task, (start, waker.at)),
                    },
                };
                self.add(before, SegmentKind::Waking, task, (waker.at, now))
            }
            None => self.add(track.link, SegmentKind::Unknown, task, (start, now)),
        };
    }

    /// Drops the segments that cannot be on the path any more. While the task that is sought is alive, the path is with other tasks only within its
    /// present sleep and later ones.
    #[cold]
    fn drop_unused(&mut self) {
        let sought = self.sought;
        let others = sought.and_then(|sought| self.tracks.get(sought)).map_or(self.start, |track| track.from);
        let mut links: Vec<(&mut Link, Ts)> = Vec::new();
        for (task, track) in self.tracks.entries_mut() {
            let bound = if Some(task) == sought { self.start } else { others };
            links.push((&mut track.link, bound));
            let by = track.waking.as_mut().and_then(|waking| waking.by.as_mut());
            links.extend(by.map(|by| (&mut by.link, bound.max(track.from))));
        }
        links.extend(self.forks.values_mut().map(|until| (&mut until.link, others)));
        links.extend(self.found.as_mut().map(|(_, until)| (&mut until.link, self.start)));
        let mut kept: Vec<&mut Link> = self.log.iter_mut().flat_map(|log| log.links()).collect();
        self.chain.drop_unused(&mut links, &mut kept);
    }
}

impl Analysis for CriticalPath {
    type Output = Path;
    const COUNTS: bool = true;

    fn begin(&mut self, start: Ts, state: &SchedState) {
        (self.start, self.last) = (start, start);
        self.is_hopeless = self.has_no_hope(state);
        self.look_up_sought(state);
        if !self.is_hopeless {
            self.kinds.begin(start, state);
        }
    }

    fn before(&mut self, event: &SchedEvent, state: &SchedState) {
        if self.is_hopeless {
            self.has_exits |= matches!(event.kind, EventKind::Exit { .. });
            return;
        }
        if state.counts().idle_cpus() > 0 {
            self.beside_idle = self.beside_idle.saturating_add(event.ts.since(self.last).0);
        }
        self.last = event.ts;
        match event.kind {
            EventKind::Fork { child, .. } => {
                if let Some(until) = self.emitter(event, state) {
                    keep_of_pid(&mut self.forks, child, until);
                }
            }
            EventKind::Exit { pid } => {
                self.has_exits = true;
                self.note_exit(pid, event, state);
            }
            _ => {}
        }
    }

    fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        if self.is_hopeless {
            return;
        }
        self.kinds.follow(event.ts, state);
        // Those that this event queues have the new occupants before them.
        self.change_occupants(event.ts, state);
        let woken = if let EventKind::Waking { task, .. } = event.kind { Some(task.pid) } else { None };
        for (task, span) in state.turns().filter(|(task, _)| Some(task.pid) != woken) {
            self.turn(task, span, event, state);
        }
        if let Some(pid) = woken
            && let Some(task) = state.task_of(pid)
        {
            let by = self.waker(event, task, state);
            let waking = Some(Announced { at: event.ts, by });
            let turned = state.turns().find(|(turned, _)| turned.pid == pid).map(|(_, span)| span.start);
            let known = self.tracks.get(task.id()).copied();
            let track = known.unwrap_or(PathTrack::since(turned.unwrap_or(task.since)));
            self.tracks.insert(task.id(), PathTrack { waking, ..track });
            // Without `sched_wakeup` the state has placed the task by this waking already.
            for (task, span) in state.turns().filter(|(task, _)| task.pid == pid) {
                self.turn(task, span, event, state);
            }
        }
        if let EventKind::Exec { .. } = event.kind {
            self.look_up_sought(state);
        }
        self.show_current(event, state);
        self.chain.pass(1);
        if self.chain.is_full() {
            self.drop_unused();
        }
    }

    fn finish(mut self, end: Ts, state: &SchedState) -> Path {
        if state.counts().idle_cpus() > 0 {
            self.beside_idle = self.beside_idle.saturating_add(end.since(self.last).0);
        }
        if self.found.is_none()
            && let Some(task) = self.sought_at_end(state)
        {
            let mut until = self.until(&task, end);
            let track = self.track(&task);
            // No waking ends its sleep.
            if let (TaskState::Asleep(_), None) = (task.state, track.runs) {
                until.link = self.add(track.link, SegmentKind::Unknown, &task, (track.from, end));
            }
            self.found = Some((task.pid, until));
        }
        // No event up to the end of the window shows it: perhaps it sleeps until later.
        if let (None, Some(pid)) = (self.found, self.options.pid)
            && !self.names.contains_key(&pid)
        {
            self.names.insert(pid, (self.options.command.unwrap_or(Comm::EMPTY), None));
            self.found = Some((pid, Until { link: NOTHING, at: end }));
        }
        report::build(&self, Times::none_in(state))
    }
}

//! How long tasks wait until they run, and how long they run and sleep.
//!
//! In go the spans of a pass, out come distributions by measure, name and placement, and the longest cases. Begin reading in
//! `wait.rs`, then below in this file; `question.rs` is the shortest question of all.
//!
//! | measure | from | to |
//! |---|---|---|
//! | wakeup latency | `sched_waking`, or where that was not recorded `sched_wakeup` | the task is switched in |
//! | … until queued | `sched_waking` | `sched_wakeup`: it stands in a run queue |
//! | … until run | `sched_wakeup` | it is switched in |
//! | wait of a new task | `sched_wakeup_new` | it is switched in |
//! | wait after preemption | it is switched out although it could run | it is switched in again |
//! | run | it is switched in | it is switched out |
//! | sleep | it is switched out to sleep | it stands in a run queue again |
//!
//! A task can be announced while it still runs, about to sleep: its wakeup latency begins when it is switched out. A
//! migration on the way does not end a wait. Every interval counts in the window in which it ends, with the part of it
//! before the window, so that adjacent windows add up; the number of those that began before the window is given apart. A
//! wait that is still under way at the end has an unknown length and is only numbered. The same holds for a wakeup
//! without a `sched_waking` although they were recorded: it began before the trace, or in a loss, and only its second
//! part counts. In a trace without any `sched_wakeup` the time from the waking to the wakeup is unknown: the wakeup
//! latency alone counts. Where events were lost, what the loss cut is not counted; nor is a wait some of which was on a CPU
//! without events, where the task may have run. The time for which a task is throttled by `cpu.max` is not in the length of
//! its wait; it is reported apart. An interval counts by the name that the task had when it ended.
//!
//! ```
//! use latency::{Latency, Measure, Options};
//! use sched::Pass;
//!
//! // A task waits on CPU 0 for 200 ns while CPU 1 idles.
//! let events = testkit::a_wait_beside_an_idle_cpu();
//! let options = Options::default();
//! let outcome = Pass::over(events.as_slice()).run(|| Latency::new(&options)).unwrap_or_else(|never| match never {});
//! let wakeups = outcome.output.measures.iter().find(|row| row.measure == Measure::Wakeup).expect("every measure has a row");
//! assert_eq!(wakeups.summary.count, 1);
//! assert_eq!(wakeups.summary.max_ns.map(|ns| ns.0), Some(200));
//! ```

mod args;
mod case;
mod figure;
mod joined;
mod longest;
mod metrics;
mod noted;
mod occupants;
mod placement;
mod question;
mod report;
mod rows;
mod table;
mod text;
mod wait;

pub use args::LatencyArgs;
pub use case::Case;
pub use figure::figure;
pub use membership::TasksBy;
pub use metrics::metrics;
pub use noted::NoteTaker;
pub use placement::{Idleness, Placement};
pub use question::LatencyQuestion;
pub use report::{LatencyReport, LatencyRow, Split, Unfinished};
pub use text::text;

use joined::OpenEnds;
use longest::LongWait;
use membership::{GroupedTask, TaskGroup, TaskGroups};
use rows::RowTraits;
use sched::nice::FairBefore;
use sched::seeded::SeededMap;
use sched::state::{Task, Waking};
use sched::{
    Analysis, Chosen, ChosenCpus, Comm, Cpu, Dur, EventKind, Lengths, Past, PerTask, Pid, QueuedAsk, QueuedBehind,
    SchedEvent, SchedState, Span, TaskState, Topology, Ts,
};
use serde::Serialize;
use std::sync::Arc;
use wait::{Missing, Wait, is_fair_first};

/// The window, the rows and the limits of a measurement.
#[derive(Default)]
pub struct Options<'o> {
    /// The CPUs on which a counted interval ends.
    pub cpus: ChosenCpus,
    /// The tasks that are counted; absent where all are.
    pub tasks: Option<&'o Chosen<'o>>,
    /// The rows of the table.
    pub by: TasksBy,
    /// The groups that the rows are about; absent where these are tasks, or commands by their full names.
    pub groups: Option<Arc<TaskGroups>>,
    /// Whether all tasks have one row together, where the sums of each are not asked for.
    pub together: bool,
    /// The places of the CPUs; empty if they are unknown.
    pub topology: Topology,
    /// The instant that counts as zero: the trace's start.
    pub zero: Ts,
    /// The reason for which the kernel runs fair tasks in the place of real-time tasks.
    pub fair_before: FairBefore,
    /// The maximum number of worst cases that are kept.
    pub worst: usize,
    /// The tasks whose queued time is divided by kind; absent where it is not asked for.
    pub queued: Option<QueuedAsk<'o>>,
}

/// The measured intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// The time from the waking to the run.
    Wakeup,
    /// The first part of a wakeup latency: until the task is queued.
    UntilQueued,
    /// The second part of a wakeup latency: until the task runs.
    UntilRun,
    /// A new task's first wait.
    New,
    /// A preempted task's wait.
    Preempted,
    /// The time that a task runs at a stretch.
    Run,
    /// The time from the end of a run to the next waking.
    Sleep,
}

impl Measure {
    /// Every measure, in the order of their indices.
    pub const ALL: [Measure; 7] = [
        Measure::Wakeup,
        Measure::UntilQueued,
        Measure::UntilRun,
        Measure::New,
        Measure::Preempted,
        Measure::Run,
        Measure::Sleep,
    ];

    /// The name of the measure in the text.
    pub fn name(self) -> &'static str {
        match self {
            Measure::Wakeup => "wakeup latency",
            Measure::UntilQueued => "  waking to queued",
            Measure::UntilRun => "  queued to run",
            Measure::New => "runqueue wait, new tasks",
            Measure::Preempted => "wait after preemption",
            Measure::Run => "run",
            Measure::Sleep => "sleep",
        }
    }
}

/// The wakeup latency from which a wakeup is late: 4 ms, a tick at 250 Hz.
pub const LATE: Dur = Dur(4_000_000);

/// The number of intervals of each measure that began before the window.
type Earlier = [u64; Measure::ALL.len()];

/// A distribution for each measure.
pub type Measures = [Lengths; Measure::ALL.len()];

/// A wait that has ended, as it is listed.
#[derive(Clone, Debug)]
pub struct ListedWait {
    /// The wait. Its start and its length are those of its second part where `start_is_known` is false.
    pub case: Case,
    /// The properties of the task that decide the row in which it counts.
    pub task: GroupedTask,
    /// Whether the waking is known. Otherwise it began before the trace or in a loss.
    pub start_is_known: bool,
    /// The instant from which the task was queued: that of `sched_wakeup`. Nothing where no wakeup was recorded.
    pub queued: Option<Ts>,
    /// The instant at which it ran.
    pub ran: Ts,
    /// The placement of a woken task, seen from the CPU where it slept; nothing for other waits.
    pub placement: Option<Placement>,
    /// The CPU on which a woken task slept.
    pub slept_on: Option<Cpu>,
}

/// Takes each wait, in the order of their ends.
pub type TakesWait<'o> = dyn Fn(&ListedWait) + Sync + 'o;

#[derive(Clone, Copy, Debug)]
enum Phase {
    Run,
    /// The task sleeps after it ran on this CPU.
    Sleep(Cpu),
    /// The phase began in an earlier piece of a pass.
    Earlier,
    /// The task waits. The record of the wait stands apart: runs and sleeps, which are more, do not move it about.
    Wait,
}

/// A task's phase, whose beginning was seen.
#[derive(Clone, Copy, Debug)]
struct PhaseTrack {
    since: Ts,
    phase: Phase,
}

/// A row of the table.
#[derive(Clone, Debug)]
struct RowSums {
    key: TaskGroup,
    /// The latest name.
    name: Comm,
    /// Whether its tasks had several names.
    has_several_names: bool,
    /// The number of tasks that came to the row, by their lives and names.
    tasks: u64,
    measures: Measures,
    /// The number of intervals of each measure that began before the window.
    earlier: Earlier,
    /// The number of wakeup latencies of [`LATE`] and longer.
    late: u64,
}

impl RowSums {
    /// Adds the row of the same key of a later piece of a pass.
    fn join(&mut self, later: &RowSums) {
        self.has_several_names |= later.has_several_names || self.name != later.name;
        self.name = later.name;
        self.tasks += later.tasks;
        self.late += later.late;
        self.measures.iter_mut().zip(&later.measures).for_each(|(sum, more)| sum.merge(more));
        self.earlier.iter_mut().zip(&later.earlier).for_each(|(sum, more)| *sum += more);
    }

    /// Adds an interval; `earlier`: it began before the window.
    fn add(&mut self, measure: Measure, length: Dur, earlier: bool) {
        self.measures[measure as usize].add(length);
        self.earlier[measure as usize] += u64::from(earlier);
        self.late += u64::from(measure == Measure::Wakeup && length >= LATE);
    }
}

/// The analysis of wakeup latencies and waits: an [`Analysis`] whose output is a [`LatencyReport`].
pub struct Latency<'o> {
    options: &'o Options<'o>,
    listing: Option<&'o TakesWait<'o>>,
    /// The window's start, once that is reached.
    start: Option<Ts>,
    tracks: PerTask<PhaseTrack>,
    /// The records of tasks that wait.
    waits: PerTask<Wait>,
    behind: QueuedBehind,
    rows: Vec<RowSums>,
    places: SeededMap<TaskGroup, usize>,
    /// The row of each task, and the properties that it has that row for.
    homes: PerTask<(RowTraits, u32)>,
    /// Whether the row of a task depends on nothing else.
    are_rows_fixed: bool,
    /// The wakeup latencies by the placement of the task, and by the CPUs that idled then.
    woken: [[Lengths; Idleness::ALL.len()]; Placement::ALL.len()],
    worst: Vec<LongWait>,
    /// The length that a wait must exceed to be one of the worst, for each measure.
    least: [Option<Dur>; Measure::ALL.len()],
    without_waking: u64,
    gaps: u64,
    /// The time throttled of the waits that were.
    throttled: Lengths,
    /// The task that was switched out last; nothing before the first switch of a later piece of a pass.
    switched_out: Option<(Pid, Comm)>,
    /// The ends of phases that are left to the analysis of the pieces before, if this one follows a later piece of a pass.
    open_ends: Option<Box<OpenEnds>>,
}

impl<'o> Latency<'o> {
    /// Returns the analysis with the options of a measurement.
    pub fn new(options: &'o Options<'o>) -> Latency<'o> {
        Latency {
            options,
            listing: None,
            start: None,
            tracks: PerTask::default(),
            waits: PerTask::default(),
            behind: QueuedBehind::default(),
            rows: Vec::new(),
            places: SeededMap::default(),
            homes: PerTask::default(),
            are_rows_fixed: options.together || options.groups.as_ref().is_none_or(|groups| groups.are_fixed()),
            woken: Default::default(),
            worst: Vec::new(),
            // Where no case is to be kept, none is long enough.
            least: [(options.worst == 0).then_some(Dur(u64::MAX)); Measure::ALL.len()],
            without_waking: 0,
            gaps: 0,
            throttled: Lengths::default(),
            switched_out: Some((Pid::IDLE, Comm::EMPTY)),
            open_ends: None,
        }
    }

    /// Passes each wait that is measured to `take`.
    #[must_use]
    pub fn listing(self, take: &'o TakesWait<'o>) -> Latency<'o> {
        Latency { listing: Some(take), ..self }
    }

    fn follow(&mut self, event: &SchedEvent, state: &SchedState) {
        if let EventKind::Switch { prev, .. } = event.kind {
            self.switched_out = Some((prev.pid, prev.comm));
        }
        // Those that this event queues have the new occupants before them.
        self.change_occupants(event.ts, state);
        for (task, span) in state.turns() {
            self.turn(task, span, event, state);
        }
    }

    /// A task goes from one state to another.
    fn turn(&mut self, task: &Task, span: &Span, event: &SchedEvent, state: &SchedState) {
        use TaskState::{Asleep, Dead, Running, Throttled, Waiting};
        if let (Waiting(from) | Throttled(from), Waiting(to) | Throttled(to)) = (span.state, span.next)
            && from != to
        {
            self.leave_occupant(task.id(), from, event.ts);
        }
        // A migration or a new PID does not end a wait.
        match (span.state, span.next) {
            (Waiting(_), Waiting(cpu)) if state.has_placed() => return self.place(task, cpu, state),
            (Waiting(_), Waiting(_) | Throttled(_)) | (Throttled(_), Throttled(_)) if span.ended => return,
            (Throttled(_), Waiting(_)) if span.ended => {
                if let Some(wait) = self.waits.get_mut(task.id()) {
                    wait.throttled += span.duration();
                }
                return;
            }
            (Asleep(_), Asleep(_)) => return,
            (Running(old), Running(new)) if old == new => return,
            _ => {}
        }
        let before = self.tracks.take(task.id());
        let now = event.ts;
        // An interval that a loss cut has an unknown length.
        if let Some(track) = before.filter(|_| span.begun && span.ended) {
            match (span.state, span.next) {
                (Running(cpu), _) | (Waiting(_), Running(cpu)) | (Asleep(_), Waiting(cpu)) => {
                    self.ends(task, &track, cpu, now, state);
                }
                _ => {}
            }
        }
        let phase = match (span.state, span.next) {
            (_, Running(_)) => Phase::Run,
            (Running(_), Asleep(last)) => Phase::Sleep(last),
            (from, Waiting(cpu)) => {
                let wait = match from {
                    Running(_) => {
                        let wait = self.wait(Measure::Preempted, None, None, cpu, state);
                        Some(Wait { is_fair_first: is_fair_first(task, cpu, state), ..wait })
                    }
                    _ => self.queued(task, before.as_ref(), cpu, span, event, state),
                };
                let Some(wait) = wait else { return };
                self.waits.insert(task.id(), wait);
                self.behind.add(task.id(), cpu);
                Phase::Wait
            }
            (_, Asleep(_) | Dead | Throttled(_) | TaskState::Unknown) => return,
        };
        self.tracks.insert(task.id(), PhaseTrack { since: now, phase });
    }

    /// A task that slept, or was born, is queued by this event; nothing if it is not known why.
    fn queued(
        &self,
        task: &Task,
        before: Option<&PhaseTrack>,
        cpu: Cpu,
        span: &Span,
        event: &SchedEvent,
        state: &SchedState,
    ) -> Option<Wait> {
        match event.kind {
            EventKind::WakeupNew { .. } => Some(self.wait(Measure::New, None, None, cpu, state)),
            EventKind::Wakeup { .. } => Some(self.woken(task, before, cpu, span, state)),
            _ if state.places_by_wakings() && task.waking.is_some() => Some(self.woken(task, before, cpu, span, state)),
            _ => None,
        }
    }

    /// A task that was woken is queued.
    fn woken(&self, task: &Task, before: Option<&PhaseTrack>, cpu: Cpu, span: &Span, state: &SchedState) -> Wait {
        let waking = match span.state {
            TaskState::Asleep(_) => task.waking.map(|waking| Waking { at: waking.at.max(span.start), ..waking }),
            // One before the loss need not be of this wakeup.
            _ => task.waking.filter(|waking| waking.at >= span.start),
        };
        let slept_on = match before {
            Some(PhaseTrack { phase: Phase::Sleep(cpu), .. }) => Some(*cpu),
            _ => waking.map(|waking| waking.previous),
        };
        let missing = match before {
            Some(PhaseTrack { phase: Phase::Earlier, .. }) => Missing::Sleep,
            _ => Missing::Nothing,
        };
        Wait { missing, ..self.wait(Measure::Wakeup, waking, slept_on, cpu, state) }
    }

    /// A woken task, which its waking alone had queued on its previous CPU, is placed on another.
    fn place(&mut self, task: &Task, cpu: Cpu, state: &SchedState) {
        if let Some(Wait { measure: Measure::Wakeup, slept_on, .. }) = self.waits.get(task.id()).copied() {
            let wait = self.wait(Measure::Wakeup, task.waking, slept_on, cpu, state);
            self.waits.insert(task.id(), wait);
            self.behind.add(task.id(), cpu);
        }
    }

    fn wait(
        &self,
        measure: Measure,
        waking: Option<Waking>,
        slept_on: Option<Cpu>,
        cpu: Cpu,
        state: &SchedState,
    ) -> Wait {
        let start = match waking {
            Some(waking) => Some(waking.at),
            None if measure == Measure::Wakeup && state.has_wakings() => None,
            None => Some(state.now()),
        };
        let idle_cpus = state.counts().idle_cpus();
        let alone = state.load(cpu).is_awaited() && state.queue_length(cpu) == 1;
        Wait {
            measure,
            start,
            waker: waking.map(|waking| waking.by),
            waker_command: waking.and_then(|waking| state.task_of(waking.by)).map_or(Comm::EMPTY, |task| task.comm),
            slept_on,
            missing: Missing::Nothing,
            queued_on: cpu,
            idleness: match (alone, idle_cpus) {
                (true, _) => Idleness::Target,
                (_, 0) => Idleness::Nobody,
                _ => Idleness::Other,
            },
            idle_cpus,
            behind: state.running(cpu).map_or((Pid::IDLE, Comm::EMPTY), |t| (t.pid, t.comm)),
            behind_until: None,
            within_slice: state.is_within_slice(cpu),
            is_fair_first: false,
            throttled: Dur(0),
        }
    }

    /// Whether what ends for this task on this CPU is measured.
    fn measures(&self, task: &Task, cpu: Cpu, state: &SchedState) -> bool {
        self.options.cpus.has(cpu) && self.options.tasks.is_none_or(|chosen| chosen(task, state))
    }

    /// The phase of a task ends on a CPU.
    fn ends(&mut self, task: &Task, track: &PhaseTrack, cpu: Cpu, now: Ts, state: &SchedState) {
        if self.start.is_none() || !self.measures(task, cpu, state) {
            return;
        }
        match track.phase {
            Phase::Run | Phase::Sleep(_) => self.ended(task, track, None, cpu, now, false),
            Phase::Earlier => self.leave(task, None, cpu, now),
            Phase::Wait => match self.waits.get(task.id()).copied() {
                Some(wait) if wait.missing == Missing::Nothing && self.switched_out.is_some() => {
                    self.ended(task, track, Some(wait), cpu, now, state.places_by_wakings());
                }
                Some(_) => self.leave(task, Some(track.since), cpu, now),
                None => {}
            },
        }
    }

    /// A measured phase of a task ends on a CPU; `wait` is the record of it if it is a wait. `by_wakings`: its waking alone
    /// has queued the task.
    #[inline(always)]
    fn ended(&mut self, task: &Task, track: &PhaseTrack, wait: Option<Wait>, cpu: Cpu, now: Ts, by_wakings: bool) {
        let Some(window) = self.start else { return };
        let length = now.since(track.since);
        match (track.phase, wait) {
            (Phase::Run, _) => self.row(task, now).add(Measure::Run, length, track.since < window),
            (Phase::Sleep(_), _) => self.row(task, now).add(Measure::Sleep, length, track.since < window),
            (Phase::Wait, Some(wait)) => self.waited(task, &wait, track.since, cpu, now, by_wakings),
            (Phase::Wait, None) | (Phase::Earlier, _) => {}
        }
    }

    fn waited(&mut self, task: &Task, wait: &Wait, queued: Ts, cpu: Cpu, now: Ts, by_wakings: bool) {
        let is_wakeup = wait.measure == Measure::Wakeup;
        // Without recorded wakeups it is not known when the task was queued.
        let has_parts = is_wakeup && !by_wakings;
        self.without_waking += u64::from(is_wakeup && wait.waker.is_none());
        if let Some(take) = self.listing {
            self.list(take, task, wait, has_parts.then_some(queued), cpu, now);
        }
        if wait.throttled.0 > 0 {
            self.throttled.add(wait.throttled);
        }
        let window = self.start.unwrap_or(now);
        let row = self.row(task, now);
        if has_parts {
            row.add(Measure::UntilRun, wait.length(queued, now), queued < window);
        }
        let Some(start) = wait.start else { return };
        let length = wait.length(start, now);
        row.add(wait.measure, length, start < window);
        if has_parts && wait.waker.is_some() {
            row.add(Measure::UntilQueued, queued.since(start), start < window);
        }
        if is_wakeup {
            let placement = Placement::of(wait.slept_on, wait.queued_on, &self.options.topology);
            self.woken[placement as usize][wait.idleness as usize].add(length);
        }
        if self.is_long(wait.measure, length) {
            self.keep(self.case(task, wait, start, length, (cpu, now)));
        }
    }
}

impl Analysis for Latency<'_> {
    type Output = LatencyReport;
    const COUNTS: bool = true;
    /// An interval that began before the window can end in it.
    const LOOKS_BACK: bool = true;

    fn recall(&mut self, past: &Past, state: &SchedState) {
        noted::take_up(self, past, state);
    }

    fn early(&mut self, event: &SchedEvent, state: &SchedState) {
        self.follow(event, state);
    }

    fn begin(&mut self, start: Ts, _: &SchedState) {
        self.start = Some(start);
    }

    fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        self.gaps += u64::from(matches!(event.kind, EventKind::Lost { .. }));
        self.follow(event, state);
    }

    fn finish(self, end: Ts, state: &SchedState) -> LatencyReport {
        report::build(self, end, state)
    }
}

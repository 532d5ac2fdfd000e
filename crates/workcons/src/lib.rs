//! Work conservation: is a CPU idle while tasks wait on another?
//!
//! In goes a trace, out come the time in violation with its episodes, bounds where events were lost, and a verdict. Begin reading
//! in `violation.rs`, the one place that derives it, then `count.rs` and `bounds.rs`.
//!
//! At an instant, over the observed CPUs whose current is known, let I be the CPUs that idle and
//! have no task waiting, and O those that run a task while others wait. It is *violated* when
//! neither is empty. Over a window of length T with N CPUs:
//!
//! * *time* = ∫ [I and O non-empty] dt, in percent of T: the headline;
//! * *CPU time lost* = ∫ min(|I|, |O|) dt, in percent of N·T: CPUs that could have been put to work;
//! * *threads* = ∫ min(|I|, Σ waiters in O) dt, in task·seconds: tasks that could have run.
//!
//! A CPU that idles with a task just queued is in neither set: its task is *woken, not switched yet*. Where the CPUs are known that tasks may
//! use ([`Options::affinity`]), I and O are those that concern one another: an idle CPU that some waiter may use, and a
//! CPU where a waiter may use an idle one.
//!
//! ```
//! use sched::Pass;
//! use workcons::{Options, WorkConservation};
//!
//! // A task waits on CPU 0 for 200 ns while CPU 1 idles.
//! let events = testkit::a_wait_beside_an_idle_cpu();
//! let options = Options::default();
//! let outcome = Pass::over(events.as_slice()).run(|| WorkConservation::new(&options)).unwrap_or_else(|never| match never {});
//! let report = outcome.output;
//! assert_eq!(report.violation.map(|violation| violation.ns), Some(200));
//! ```

mod args;
mod bounds;
mod capacity;
mod confined;
mod count;
mod drawn_run;
mod figure;
mod held_back;
mod joined;
mod judge;
mod kernel_lengths;
mod metrics;
mod pending;
mod question;
mod report;
mod run_figure;
mod runs;
mod sched_idle;
mod strips;
mod text;
mod throttling;
mod unbalanced;
mod unknown;
pub mod violation;
mod waiter_args;

pub use args::WorkconsArgs;
pub use bounds::{Bounds, RigorousBounds};
pub use capacity::{Capacities, LostCapacity};
pub use figure::{Runs, figure};
pub use held_back::HeldBack;
pub use judge::{Limits, bounds_of_rounding, judge};
pub use kernel_lengths::{Disagreement, KernelLengths, LengthCheck};
pub use metrics::metrics;
pub use pending::{Held, LONG_PENDING, PendingSwitch};
pub use question::{WorkconsQuestion, capacities};
pub use report::{ByLength, EpisodeReport, NO_ELAPSED, Report, Violation};
pub use run_figure::{Look, run_figure};
pub use sched_idle::{SchedIdle, SchedIdleFigures};
pub use strips::Strip;
pub use text::{next, table, text};
pub use throttling::{ThrottledCgroup, ThrottledCpu, ThrottledTask, Throttling};
pub use unbalanced::{Unbalanced, UnbalancedEpisode, fewer_tasks};
pub use unknown::{Gaps, Unknown, UnknownParts};
pub use violation::{SelectedWatch, ViolationSteps, Watch, is_violated_in};
pub use waiter_args::WaiterArgs;

use capacity::CapacityLoss;
use confined::{Confined, MAX_WAITERS};
use count::Counts;
use joined::PieceLog;
use pending::PendingSwitches;
use sched::affinity::Affinity;
use sched::counted::Flags;
use sched::episodes::Ended;
use sched::kthread::is_bound;
use sched::probe::Probe;
use sched::topology::Distance;
use sched::{
    Analysis, Chosen, ChosenCpus, Comm, Cpu, Dur, EventKind, Load, Pid, SchedEvent, SchedState, Task, TaskState,
    Topology, Ts,
};
use serde::Serialize;
use unbalanced::Imbalance;
use violation::{FollowedSets, WAYS};

/// The waiting tasks that count
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Waiters {
    /// Every waiting task
    All,
    /// Not the kernel threads that are bound to the CPU they wait on (kworker/3:1 on CPU 3), nor tasks that may use no
    /// idle CPU, as far as a machine file beside the trace or the probe set_affinity shows their CPUs
    #[default]
    Movable,
    /// Only tasks of the traced command, or those that --tasks, --pid and --forked choose; not those that may use no
    /// idle CPU
    Application,
}

impl Waiters {
    /// Every choice, in the order of the ways of counting.
    pub const ALL: [Waiters; 3] = [Waiters::All, Waiters::Movable, Waiters::Application];
}

/// The least lengths for which figures are given.
pub const THRESHOLDS: [Dur; 6] = [Dur(0), Dur(10_000), Dur(100_000), Dur(1_000_000), Dur(4_000_000), Dur(100_000_000)];

/// The number of the longest episodes that are kept.
const KEPT: usize = 10;

/// The window, the waiters and the limits of a measurement.
#[derive(Clone, Default)]
pub struct Options<'o> {
    /// The chosen CPUs, of those that have events.
    pub cpus: ChosenCpus,
    /// The CPUs without events that count as idle.
    pub assume_idle: Vec<Cpu>,
    /// The instant that counts as zero: the trace's start.
    pub zero: Ts,
    /// The waiting tasks that count in the headline.
    pub waiters: Waiters,
    /// The least length of the episodes that judge.
    pub min_episode: Dur,
    /// The places of the CPUs; empty if they are unknown.
    pub topology: Topology,
    /// The CPUs that tasks may use, where lists restrict any, or records can.
    pub affinity: Option<&'o Affinity>,
    /// The tasks that are the application; without them those that descend from the traced command.
    pub application: Option<&'o Chosen<'o>>,
    /// The tasks whose waiting never counts.
    pub excluded: Option<&'o Chosen<'o>>,
    /// The descendants of the traced command are unknown: without `application` no task belongs to it.
    pub without_descent: bool,
    /// The window over which strips are drawn; absent where none are.
    pub strips: Option<(Ts, Ts)>,
    /// The trace has records of throttling, which are to be reported.
    pub throttling: bool,
    /// The unbalanced time is to be reported.
    pub unbalanced: bool,
    /// The capacities of the CPUs, where they differ.
    pub capacities: Option<Capacities>,
}

impl Options<'_> {
    /// The load of a CPU as the sets have it: a CPU that was not chosen counts as unobserved, one that is assumed to
    /// idle as idle.
    pub fn load(&self, cpu: Cpu, state: &SchedState) -> Load {
        load(self, cpu, state)
    }

    /// Whether a task that begins to wait on `cpu` counts in the headline.
    pub fn counts(&self, task: &Task, cpu: Cpu, state: &SchedState) -> bool {
        flags(self, task, cpu, state) >> self.waiters as u8 & 1 == 1
    }

    /// Whether a task is one of the application, or of those chosen in its place.
    pub fn is_application(&self, task: &Task, state: &SchedState) -> bool {
        self.application.map_or(task.kin.descends, |application| application(task, state))
    }

    /// Why the waiting tasks of the application are unknown, and how to select tasks instead; nothing where they are
    /// known.
    pub fn why_application_is_unknown(&self, state: &SchedState) -> Option<String> {
        let why = match state.why_application_is_unknown() {
            _ if self.application.is_some() => None,
            _ if self.without_descent => Some("forks before the window were not read"),
            why => why,
        };
        why.map(|why| format!("{}; select tasks with --tasks or --application", sched::without_application(why)))
    }
}

/// The record of a long episode: the machine as it was when the episode had become long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Scene {
    /// The CPUs that idled.
    pub idle: Vec<Cpu>,
    /// The tasks that waited.
    pub waiting: Vec<Waiting>,
    /// The nearest that an idle CPU and a waiting task came to one another; nothing without a topology.
    pub distance: Option<Distance>,
}

/// A task that waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Waiting {
    /// The CPU whose run queue holds the task.
    pub cpu: Cpu,
    /// The PID of the waiting task.
    pub pid: Pid,
    /// The command name of the waiting task.
    pub command: Comm,
    /// The name of the task that runs there meanwhile; empty where it was not seen yet.
    pub behind: Comm,
    /// The number of that task.
    pub behind_pid: Pid,
}

/// An episode of the headline's violation that has ended, or that the window's end cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedEpisode {
    /// The start, the length and the integrals of the episode.
    pub episode: Ended,
    /// The nearest pair of an idle CPU and one with a waiting task; nothing without a topology.
    pub nearest: Option<Distance>,
}

/// Takes each episode, in order of time.
pub type TakesEpisode<'o> = dyn Fn(&ListedEpisode) + Sync + 'o;

/// The analysis of work conservation: an [`Analysis`] whose output is a [`Report`].
pub struct WorkConservation<'o> {
    options: &'o Options<'o>,
    listing: Option<&'o TakesEpisode<'o>>,
    start: Ts,
    last: Ts,
    counts: Counts,
    followed: FollowedSets,
    pending_switches: PendingSwitches,
    /// The instant from which the machine is worth a note, as part of a long episode or as a sample.
    note_at: Ts,
    /// The instant up to which the violation was sampled.
    sampled: Ts,
    integrals: Integrals,
    traced: Option<(Ts, Option<Ts>)>,
    strips: Option<strips::Gatherer>,
    /// Signs of affinity, where that of some tasks is not known.
    confined: Option<Confined>,
    throttling: Option<Throttling>,
    /// The unbalanced time, if it was asked for.
    unbalanced: Option<Box<Imbalance>>,
    /// The loss by capacity, on machines whose CPUs differ in it.
    capacity: Option<Box<CapacityLoss>>,
    /// The beginning of the piece, if this analysis follows a later piece of a pass.
    piece: Option<Box<PieceLog>>,
}

/// ∫ of the counts of the state.
#[derive(Clone, Copy, Debug, Default)]
struct Integrals {
    running: u128,
    waiting: u128,
    unknown: u128,
}

impl<'o> WorkConservation<'o> {
    /// Returns the analysis with the options of a measurement.
    pub fn new(options: &'o Options<'o>) -> WorkConservation<'o> {
        let thresholds = thresholds(options.min_episode);
        let followed = FollowedSets::new(&options.topology, options.affinity);
        WorkConservation {
            options,
            listing: None,
            strips: options.strips.map(|(from, to)| strips::Gatherer::new(&followed.sets, from, to)),
            start: Ts(0),
            last: Ts(0),
            counts: Counts::new(&thresholds),
            followed,
            pending_switches: PendingSwitches::new(options.zero),
            note_at: Ts::MAX,
            sampled: Ts(0),
            integrals: Integrals::default(),
            traced: None,
            confined: options.affinity.is_none_or(|affinity| !affinity.has_lists_and_records()).then(Confined::new),
            throttling: options.throttling.then(Throttling::default),
            unbalanced: options.unbalanced.then(|| Box::new(Imbalance::new(options.waiters as usize, options.zero))),
            capacity: options.capacities.as_ref().map(|capacities| Box::new(CapacityLoss::new(capacities))),
            piece: None,
        }
    }

    /// A task executes a program.
    #[inline(never)]
    fn execute(&mut self, ts: Ts, pid: Pid, state: &SchedState) {
        if state.root() == Some(pid) {
            self.trace_command(ts, true);
        }
        if let (Some(confined), Some(task)) = (&mut self.confined, state.task_of(pid)) {
            confined.execute(task.id());
        }
    }

    /// The traced command begins, which counts once, or ends.
    #[cold]
    fn trace_command(&mut self, ts: Ts, begins: bool) {
        match (&mut self.piece, &mut self.traced) {
            (Some(piece), _) => piece.traced.push((ts, begins)),
            (None, traced @ None) if begins => *traced = Some((ts, None)),
            (None, Some((_, end @ None))) if !begins => *end = Some(ts),
            (None, _) => {}
        }
    }

    /// Passes each episode of the headline's violation to `take`.
    #[must_use]
    pub fn listing(self, take: &'o TakesEpisode<'o>) -> WorkConservation<'o> {
        WorkConservation { listing: Some(take), ..self }
    }

    /// Lists the episodes that have ended, unless that was done before. A later piece of a pass keeps those that are to be listed.
    pub(crate) fn list(&mut self) {
        let keeps = self.piece.is_some() && self.listing.is_some();
        for (way, count) in self.counts.ways.iter_mut().enumerate() {
            if keeps && way == self.options.waiters as usize {
                continue;
            }
            let ended = count.ended.drain(..);
            if let Some(take) = self.listing.filter(|_| way == self.options.waiters as usize) {
                ended.for_each(|(episode, nearest)| take(&ListedEpisode { episode, nearest }));
            }
        }
    }

    /// Brings queues and sets up to date with an event that changed something.
    #[inline(never)]
    fn follow(&mut self, event: &SchedEvent, state: &SchedState) {
        if self.followed.sets.reach().is_some() {
            // The waiters by the CPUs that they may use change at once, unlike the sums.
            self.account(event.ts);
        }
        let (options, confined) = (self.options, &mut self.confined);
        let count = |task: &Task, cpu| {
            if let Some(confined) = confined {
                confined.use_of(task.id(), cpu);
            }
            flags(options, task, cpu, state)
        };
        self.followed.follow(state, options.affinity, count);
        self.throttling.iter_mut().for_each(|throttling| throttling.take_spans(state));
        let mut changed = false;
        for cpu in state.touched() {
            changed |= self.settle(*cpu, event.ts, state);
        }
        if changed {
            self.update_violation(event.ts);
        }
        self.follow_lengths(event.ts, state.touched(), state);
    }

    /// Brings the unbalanced time up to date with some CPUs.
    #[inline]
    fn follow_lengths(&mut self, ts: Ts, cpus: &[Cpu], state: &SchedState) {
        if let Some(unbalanced) = &mut self.unbalanced {
            unbalanced.follow(ts, cpus, &self.followed, |cpu| load(self.options, cpu, state), state);
        }
    }

    /// A record shows the CPUs that a task may use, which can be in the middle of its wait.
    #[cold]
    #[inline(never)]
    fn renew(&mut self, ts: Ts, pid: Pid, state: &SchedState) {
        self.account(ts);
        if self.followed.renew(pid, self.options.affinity, state) {
            self.update_violation(ts);
            if let Some((task, TaskState::Waiting(cpu))) = state.task_of(pid).map(|task| (task.id(), task.state)) {
                self.unbalanced.iter_mut().for_each(|unbalanced| unbalanced.renew(task, &self.followed, state));
                self.follow_lengths(ts, &[cpu], state);
            }
        }
    }

    /// Finds what became of a CPU; whether that changes the sets. The time until now is accounted for before.
    #[inline(always)]
    fn settle(&mut self, cpu: Cpu, ts: Ts, state: &SchedState) -> bool {
        let load = load(self.options, cpu, state);
        let (was, change) = self.followed.sets.settle(cpu, load);
        self.pending_switches.follow(cpu, was, load, ts, state);
        let Some(change) = change else { return false };
        self.account(ts);
        self.followed.sets.commit(cpu, &change);
        true
    }

    /// Brings the violation up to date with the sets, which hold from now on.
    #[inline(always)]
    fn update_violation(&mut self, ts: Ts) {
        // While an episode lasts, it is due for a note when it was.
        if let Some(capacity) = &mut self.capacity {
            capacity.change(ts, &self.followed.sets);
        }
        if self.counts.change(ts, &self.followed.sets) {
            self.await_note(ts);
            // One that has ended by now is complete when the next one begins, at the latest.
            self.list();
        }
    }

    /// Sets the instant at which the machine as it is at `ts` is worth a note, if nothing changes.
    fn await_note(&mut self, ts: Ts) {
        let violated = self.followed.sets.violation(self.options.waiters as usize).holds();
        let sample = self.confined.as_ref().filter(|_| violated).map_or(Ts::MAX, |confined| confined.due(ts));
        match &mut self.piece {
            Some(piece) => piece.sample_at = sample,
            None => self.note_at = self.counts.note_due().min(sample),
        }
    }

    /// Accounts for the time since the last change, in which the sets were what they are.
    #[inline(always)]
    fn account(&mut self, ts: Ts) {
        let ns = ts.since(self.last).0;
        if ns == 0 {
            return;
        }
        let from = std::mem::replace(&mut self.last, ts);
        if let Some(strips) = &mut self.strips {
            strips.pass(from, &self.followed.sets, self.options.waiters as usize);
        }
        let [running, unknown, waiting] = self.followed.sets.totals();
        let of = |count: u32| u128::from(ns) * u128::from(count);
        let i = &mut self.integrals;
        i.running += of(running);
        i.waiting += of(waiting);
        if unknown > 0 {
            i.unknown += of(unknown);
        }
    }

    /// Notes the machine as it is for the episodes that have become long, and samples it.
    #[inline(never)]
    fn note(&mut self, ts: Ts, state: &SchedState) {
        if let Some(piece) = &mut self.piece {
            piece.latest = ts;
            if ts < piece.sample_at {
                return;
            }
            self.sample(ts, state);
            return self.await_note(ts);
        }
        self.sample(ts, state);
        self.counts.pass(ts);
        for way in 0..WAYS {
            if let Some(nearest) = self.counts.ways[way].wants_note(ts) {
                let scene = self.scene(way, nearest, state);
                self.counts.ways[way].episodes.note(scene);
            }
        }
        self.await_note(ts);
    }

    /// Samples the violation since the last change, or the last sample, for signs of affinity.
    fn sample(&mut self, ts: Ts, state: &SchedState) {
        let way = self.options.waiters as usize;
        let from = std::mem::replace(&mut self.sampled, ts).max(self.last);
        if let Some(confined) = self.confined.as_mut().filter(|_| self.followed.sets.violation(way).holds()) {
            let (idle, overloaded) = self.followed.sets.cpus(way);
            let followed = &self.followed;
            let counted = |t: &&Task| followed.counts(t.id(), way) && followed.sets.may_run(t.id(), way);
            let waiters = overloaded.iter().flat_map(|cpu| state.waiting(*cpu)).filter(counted);
            // A task whose list has an idle CPU is not bound to others: with it the sample shows nothing.
            let affinity = self.options.affinity;
            let is_listed = |t: &Task| affinity.is_some_and(|affinity| affinity.has_list_of_program(t.pid, state));
            let unlisted: Option<Vec<_>> =
                waiters.take(MAX_WAITERS + 1).map(|t| (!is_listed(t)).then(|| t.id())).collect();
            confined.sample(from, ts, &idle, unlisted.unwrap_or_default());
        }
    }

    /// The machine now: the idle CPUs, and the waiting tasks of the others.
    fn scene(&self, index: usize, distance: Option<Distance>, state: &SchedState) -> Scene {
        let (idle, overloaded) = self.followed.sets.cpus(index);
        let mut waiting = Vec::new();
        for cpu in overloaded {
            let (behind_pid, behind) = state.running(cpu).map_or((Pid::IDLE, Comm::EMPTY), |t| (t.pid, t.comm));
            let counted = |t: &&Task| self.followed.counts(t.id(), index) && self.followed.sets.may_run(t.id(), index);
            waiting.extend(state.waiting(cpu).filter(counted).map(|t| Waiting {
                cpu,
                pid: t.pid,
                command: t.comm,
                behind,
                behind_pid,
            }));
        }
        Scene { idle, waiting, distance }
    }
}

/// The load of a CPU, for the sets.
fn load(options: &Options<'_>, cpu: Cpu, state: &SchedState) -> Load {
    if !options.cpus.has(cpu) {
        return Load::Unobserved;
    }
    match state.load(cpu) {
        Load::Unobserved if options.assume_idle.contains(&cpu) => match state.queue_length(cpu) {
            0 => Load::Idle,
            _ => state.awaited(),
        },
        load => load,
    }
}

/// The ways that count a task which waits on a CPU, a bit for each.
#[inline(never)]
fn flags(options: &Options<'_>, task: &Task, cpu: Cpu, state: &SchedState) -> Flags {
    if options.excluded.is_some_and(|excluded| excluded(task, state)) {
        return 0;
    }
    1 | u8::from(!is_bound(task.comm, cpu)) << 1 | u8::from(options.is_application(task, state)) << 2
}

/// The thresholds of every report and, where it is none of them, the one that judges.
fn thresholds(min_episode: Dur) -> Vec<Dur> {
    let mut all = THRESHOLDS.to_vec();
    if !all.contains(&min_episode) {
        all.push(min_episode);
        all.sort_unstable();
    }
    all
}

impl Analysis for WorkConservation<'_> {
    type Output = Report;

    fn begin(&mut self, start: Ts, state: &SchedState) {
        (self.start, self.last) = (start, start);
        self.counts.begin(start);
        self.capacity.iter_mut().for_each(|capacity| capacity.begin(start));
        let cpus: Vec<Cpu> = state.observed().chain(self.options.assume_idle.iter().copied()).collect();
        if let Some(confined) = &mut self.confined {
            confined.begin(start);
            let running = cpus.iter().filter_map(|cpu| Some((*cpu, state.running(*cpu)?)));
            let queued = cpus.iter().flat_map(|cpu| state.waiting(*cpu).map(|task| (*cpu, task)));
            running.chain(queued).for_each(|(cpu, task)| confined.use_of(task.id(), cpu));
        }
        for cpu in cpus.iter().copied() {
            let options = self.options;
            self.followed.begin(cpu, state, options.affinity, |task, cpu| flags(options, task, cpu, state));
            self.settle(cpu, start, state);
        }
        self.throttling.iter_mut().for_each(|throttling| throttling.begin(start, state));
        self.unbalanced.iter_mut().for_each(|unbalanced| unbalanced.begin(start));
        self.follow_lengths(start, &cpus, state);
        self.update_violation(start);
    }

    fn before(&mut self, event: &SchedEvent, state: &SchedState) {
        if event.ts >= self.note_at {
            self.note(event.ts, state);
        }
    }

    // Compiled into the loop over the events, and what follows is not: a third of the events change nothing.
    #[inline(always)]
    fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        // A CPU that another task occupies is among those touched; a task that weighs more or less from now on is no span.
        if !state.spans().is_empty() || !state.touched().is_empty() {
            self.follow(event, state);
        }
        match event.kind {
            EventKind::Exec { pid, .. } => self.execute(event.ts, pid, state),
            EventKind::Probe { probe: Probe::Allows(pid, _), .. } => self.renew(event.ts, pid, state),
            EventKind::Exit { pid } if state.root() == Some(pid) => self.trace_command(event.ts, false),
            EventKind::Probe { .. } | EventKind::Lost { .. } => {
                self.throttling.iter_mut().for_each(|throttling| throttling.record(event));
            }
            _ => {}
        }
    }

    fn finish(mut self, end: Ts, state: &SchedState) -> Report {
        self.sample(end, state);
        self.account(end);
        self.counts.pass(end);
        self.capacity.iter_mut().for_each(|capacity| capacity.pass(end));
        // The pass has closed the spans by now, but the queues are as they were.
        self.note(end, state);
        self.list();
        for count in &mut self.counts.ways {
            count.episodes.close(end);
            count.keep_last();
        }
        self.list();
        self.pending_switches.close(end, state);
        report::build(self, end, state)
    }
}

impl WorkConservation<'_> {
    /// The number of CPUs that take part.
    fn observed(&self, state: &SchedState) -> usize {
        self.observed_cpus(state).count()
    }

    /// The CPUs that take part.
    fn observed_cpus(&self, state: &SchedState) -> impl Iterator<Item = Cpu> {
        let assumed = self.options.assume_idle.iter().filter(|cpu| state.load(**cpu) == Load::Unobserved);
        state.observed().chain(assumed.copied()).filter(|cpu| self.options.cpus.has(*cpu))
    }
}

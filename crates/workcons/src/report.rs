//! The numbers of a report.

use crate::count::{Count, Counts};
use crate::strips::Strip;
use crate::throttling::Throttling;
use crate::unknown::Unknown;
use crate::violation::WAYS;
use crate::{
    HeldBack, LostCapacity, Options, PendingSwitch, RigorousBounds, Scene, SchedIdleFigures, Unbalanced, Waiters,
    WorkConservation,
};
use sched::episodes::Totals;
use sched::topology::Distance;
use sched::{Cpu, Dur, OfSelection, SchedState, Topology, Ts};
use serde::Serialize;

/// One way of counting waiters, measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Violation {
    /// The time in violation, in nanoseconds.
    pub ns: u64,
    /// The time in violation, in percent of the window.
    pub percent: f64,
    /// The possible time in violation in percent of the window: each unknown CPU is taken as whatever would make a
    /// violation. Episodes of any length.
    pub possible_percent: f64,
    /// Bounds that hold whatever was lost, where something was: at least and at most, in percent. Episodes
    /// of any length.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bounds: Option<RigorousBounds>,
    /// The CPU time lost, the integral of min(|I|, |O|), in percent of the window times the CPUs.
    pub cpu_time_lost_percent: f64,
    /// The possible CPU time lost with unknown CPUs, in percent of the window times the CPUs. Episodes of any length.
    pub possible_cpu_time_lost_percent: f64,
    /// The CPU time lost in units of the largest CPU, episodes of any length; absent unless the machine file has capacities that differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity_lost: Option<LostCapacity>,
    /// The integral of min(|I|, Σ waiters), in task·nanoseconds.
    pub thread_ns: u64,
    /// The number of episodes of at least the minimum length.
    pub episodes: u64,
    /// The longest ones; only of the waiters that count in the headline.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub longest: Vec<EpisodeReport>,
    /// The time in violation by the nearest distance between an idle and an overloaded CPU; absent without a topology.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by_distance: Option<ByDistance>,
}

/// Nanoseconds of violation by distance; nothing for distances that the topology lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ByDistance {
    /// The time with the nearest idle CPU on the same core, in nanoseconds; absent if the topology lacks cores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smt: Option<u64>,
    /// The time with the nearest idle CPU in the same cluster, in nanoseconds; absent if the topology lacks clusters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<u64>,
    /// The time with the nearest idle CPU under the same last-level cache, in nanoseconds; absent if the topology
    /// lacks these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub llc: Option<u64>,
    /// The time with the nearest idle CPU in the same NUMA node, in nanoseconds; absent if the topology lacks nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<u64>,
    /// The time with the nearest idle CPU farther away, in nanoseconds.
    pub machine: u64,
}

impl ByDistance {
    fn of(ns: [u64; Distance::ALL.len()], topology: &Topology) -> ByDistance {
        let known = topology.distances();
        let [smt, cluster, llc, node, _] = std::array::from_fn(|at| known[at].then_some(ns[at]));
        ByDistance { smt, cluster, llc, node, machine: ns[Distance::Machine as usize] }
    }
}

/// A long episode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EpisodeReport {
    /// The start of the episode on the trace's clock, in nanoseconds.
    pub start_ns: Ts,
    /// The start of the episode after the start of the trace, in nanoseconds.
    pub start_in_trace_ns: u64,
    /// The length of the episode, in nanoseconds.
    pub duration_ns: Dur,
    /// The machine, when it had become long.
    #[serde(flatten)]
    pub scene: Scene,
}

/// The figures over the episodes of at least some length.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ByLength {
    /// Episodes and integrals.
    #[serde(flatten)]
    pub totals: Totals,
    /// The time in violation, in percent of the window.
    pub percent: f64,
    /// The CPU time lost, in percent of the window times the CPUs.
    pub cpu_time_lost_percent: f64,
}

/// The numbers of CPUs with and without a part in the figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cpus {
    /// The number of CPUs with events, or that are assumed to idle.
    pub observed: usize,
    /// The number of CPUs without events, which take no part.
    pub unobserved: usize,
}

/// The figures of one trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Report {
    /// The window's length.
    pub window_ns: Dur,
    /// The window's start.
    pub from_ns: Ts,
    /// The window's end.
    pub to_ns: Ts,
    /// The numbers of CPUs with and without a part in the figures.
    pub cpus: Cpus,
    /// The life of the traced command in nanoseconds, where exec and exit were seen; else the length of the window.
    pub elapsed_ns: Dur,
    /// Whether `elapsed_ns` is the traced command's life.
    pub elapsed_is_command: bool,
    /// The waiting tasks that count in the headline and in `by_min_episode`.
    pub waiters: Waiters,
    /// The least length of the episodes in `violation`.
    pub min_episode_ns: Dur,
    /// Why there is no headline: the selected waiters are unknown, or there is none. Absent where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selection_unknown: Option<String>,
    /// The headline; nothing where the selected waiters are unknown.
    pub violation: Option<Violation>,
    /// The figures over the episodes of at least each of some lengths; absent where the selected waiters are unknown.
    pub by_min_episode: Option<Vec<ByLength>>,
    /// Every waiting task counted.
    pub all: Violation,
    /// The violation without kernel threads that are bound to their CPU.
    pub movable: Violation,
    /// The application's tasks alone; nothing where they are unknown.
    pub application: Option<Violation>,
    /// The integral of busy CPUs, in percent.
    pub busy_percent: f64,
    /// The mean number of tasks that ran.
    pub mean_running: f64,
    /// The mean number of tasks that waited.
    pub mean_waiting: f64,
    /// The share of the violated time, in percent, in which no waiting task was queued on a CPU that idled, before that instant or
    /// after it: these tasks may be bound to other CPUs. Absent unless it is more than half of a violation of at least 25 % of the time. No task
    /// whose own list of CPUs was given counts here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confined_percent: Option<f64>,
    /// The CPUs on which these tasks were queued instead; absent without that share, and on machines with more than 64 CPUs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub confined_to: Vec<Cpu>,
    /// The violation with CPUs that run `SCHED_IDLE` tasks alone as idle ones, where the machine file lists such tasks or
    /// `--idle-counts-as idle` asks for it; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sched_idle: Option<SchedIdleFigures>,
    /// The time held back: CPUs idled although tasks waited on them; absent where no event shows when tasks were woken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_back: Option<HeldBack>,
    /// The unbalanced time: tasks waited beside shorter queues, and no CPU idled that they may use; absent where it was not asked for, with the
    /// queues of a sched_ext scheduler, and where no event shows when tasks were woken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unbalanced: Option<Unbalanced>,
    /// The number of times that a CPU idled for long although a task waited for it.
    pub long_pending_switches: u64,
    /// The total length of these times, in nanoseconds.
    pub long_pending_switches_ns: Dur,
    /// The longest of them.
    pub pending_switches: Vec<PendingSwitch>,
    /// Intervals as long that ended at a switch away from another task than the idle one: the switch to it was not
    /// recorded, and for an unknown part of the interval the CPU did not idle. They count in none of the three above.
    pub unrecorded_pending_switches: u64,
    /// The total length of these intervals, in nanoseconds.
    pub unrecorded_pending_switches_ns: Dur,
    /// Whether a sched_ext scheduler held the waiting tasks; in the head of the JSON.
    #[serde(skip)]
    pub has_ext_queues: bool,
    /// The unknown parts; in `coverage` of the JSON.
    #[serde(skip)]
    pub unknown: Unknown,
    /// Violation over time, if it was asked for.
    #[serde(skip)]
    pub strips: Vec<Strip>,
    /// The throttling, if it was asked for; in `coverage` of the JSON.
    #[serde(skip)]
    pub throttling: Option<Throttling>,
}

/// A share of the violated time, in percent, beyond which waiters that were never on an idle CPU are worth a warning.
const CONFINED_PERCENT: f64 = 50.0;

/// A violation, in percent of the time, below which they are not.
const VIOLATED_PERCENT: f64 = 25.0;

/// Why a run has no elapsed time beside others that have one.
pub const NO_ELAPSED: &str = "the trace does not show when the traced command began and ended";

/// The share of `part` in `whole` in percent; zero if `whole` is zero.
pub(crate) fn percent(part: impl Into<u128>, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part.into() as f64 / whole as f64 }
}

struct Whole {
    window: u64,
    cpu_time: u64,
}

fn violation(count: &Count, totals: &Totals, whole: &Whole, options: &Options<'_>) -> Violation {
    let by_distance = ByDistance::of(count.by_distance, &options.topology);
    // The time in violation, however short, and the possible time beside it.
    let all = count.episodes.totals().first().copied().unwrap_or_default();
    Violation {
        ns: totals.ns,
        percent: percent(totals.ns, whole.window),
        possible_percent: percent(all.ns.saturating_add(count.doubtful_ns), whole.window),
        bounds: None,
        cpu_time_lost_percent: percent(totals.cpu_time_lost_ns, whole.cpu_time),
        possible_cpu_time_lost_percent: percent(
            all.cpu_time_lost_ns.saturating_add(count.doubtful_cpu_time_lost_ns),
            whole.cpu_time,
        ),
        capacity_lost: None,
        thread_ns: totals.thread_ns,
        episodes: totals.episodes,
        longest: Vec::new(),
        by_distance: (!options.topology.is_empty()).then_some(by_distance),
    }
}

/// The CPU time lost in units of the largest CPU, for each way of counting; nothing where the CPUs are all the same.
fn lost_capacity(analysis: &WorkConservation<'_>, end: Ts, state: &SchedState) -> [Option<LostCapacity>; WAYS] {
    let window = end.since(analysis.start).0;
    let lost = |way| Some(analysis.capacity.as_ref()?.lost(way, analysis.observed_cpus(state), window));
    std::array::from_fn(lost)
}

pub(crate) fn build(analysis: WorkConservation<'_>, end: Ts, state: &SchedState) -> Report {
    let observed = analysis.observed(state);
    let lost = lost_capacity(&analysis, end, state);
    let WorkConservation {
        options,
        start,
        counts: Counts { ways: counts, .. },
        pending_switches,
        integrals,
        traced,
        strips,
        confined,
        mut throttling,
        unbalanced,
        ..
    } = analysis;
    throttling.iter_mut().for_each(|throttling| throttling.finish(end, state));
    let window = end.since(start);
    let whole = Whole { window: window.0, cpu_time: window.0.saturating_mul(observed as u64) };
    let totals_of = |count: &Count| {
        let found = count.episodes.totals().iter().find(|t| t.min_ns == options.min_episode).copied();
        found.unwrap_or_default()
    };
    let [all, movable, application] = [0, 1, 2].map(|i: usize| {
        let of_way = violation(&counts[i], &totals_of(&counts[i]), &whole, options);
        Violation { capacity_lost: lost[i], ..of_way }
    });
    let judged = options.waiters as usize;
    let by_length = |t: &Totals| ByLength {
        totals: *t,
        percent: percent(t.ns, whole.window),
        cpu_time_lost_percent: percent(t.cpu_time_lost_ns, whole.cpu_time),
    };
    let by_min_episode = Some(counts[judged].episodes.totals().iter().map(by_length).collect());
    let mut chosen = [&all, &movable, &application][judged].clone();
    let mut counts = counts;
    let longest =
        std::mem::replace(&mut counts[judged].episodes, sched::episodes::Episodes::new(&[], 0)).into_longest();
    let in_report = |e: sched::episodes::Episode<Scene>| EpisodeReport {
        start_ns: e.start,
        start_in_trace_ns: e.start.since(options.zero).0,
        duration_ns: e.duration,
        scene: e.note,
    };
    chosen.longest = longest.into_iter().map(in_report).collect();
    let confined = confined.as_ref().and_then(crate::Confined::share);
    let confined = confined.filter(|(share, _)| *share > CONFINED_PERCENT && chosen.percent >= VIOLATED_PERCENT);
    let is_exact = state.observed().all(|cpu| cpu.0 < u64::BITS);
    let on = confined.filter(|_| is_exact).map_or(0, |(_, on)| on);
    let confined_to: Vec<Cpu> = (0..u64::BITS).filter(|cpu| on >> cpu & 1 == 1).map(Cpu).collect();
    let confined_percent = confined.map(|(share, _)| share);
    let (elapsed, is_command) = match traced {
        Some((from, Some(to))) => (to.since(from), true),
        _ => (window, false),
    };
    let held_ns = pending_switches.union.ns();
    let unbalanced = unbalanced.filter(|_| !state.has_ext_queues() && state.shows_wakeups());
    let unbalanced = unbalanced.map(|unbalanced| unbalanced.finish(end, (window.0, observed)));
    let mean = |integral: u128| if window.0 == 0 { 0.0 } else { integral as f64 / window.0 as f64 };
    let mut report = Report {
        window_ns: window,
        from_ns: start,
        to_ns: end,
        cpus: Cpus { observed, unobserved: 0 },
        elapsed_ns: elapsed,
        elapsed_is_command: is_command,
        waiters: options.waiters,
        min_episode_ns: options.min_episode,
        selection_unknown: None,
        violation: Some(chosen),
        by_min_episode,
        all,
        movable,
        application: Some(application),
        busy_percent: percent(integrals.running, whole.cpu_time),
        mean_running: mean(integrals.running),
        mean_waiting: mean(integrals.waiting),
        confined_percent,
        confined_to,
        sched_idle: None,
        has_ext_queues: state.has_ext_queues(),
        held_back: state.shows_wakeups().then(|| HeldBack {
            ns: held_ns,
            percent: percent(held_ns, whole.window),
            cpu_ns: pending_switches.long_ns.0,
            cpu_percent: percent(pending_switches.long_ns.0, whole.cpu_time),
        }),
        unbalanced,
        long_pending_switches: pending_switches.long,
        long_pending_switches_ns: pending_switches.long_ns,
        pending_switches: pending_switches.longest,
        unrecorded_pending_switches: pending_switches.unrecorded.0,
        unrecorded_pending_switches_ns: pending_switches.unrecorded.1,
        unknown: Unknown::at_end(percent(integrals.unknown, whole.cpu_time), state),
        strips: strips.map_or_else(Vec::new, crate::strips::Gatherer::finish),
        throttling,
    };
    if let Some(why) = options.why_application_is_unknown(state) {
        report.withhold(why);
    }
    report
}

impl OfSelection for Report {
    fn withhold(&mut self, why: String) {
        self.application = None;
        if self.waiters == Waiters::Application {
            (self.violation, self.by_min_episode) = (None, None);
            self.strips.clear();
            self.unbalanced = None;
            self.selection_unknown = Some(why);
        }
    }
}

impl Report {
    /// The figures over the episodes of at least this length, where that is one of the thresholds.
    pub fn from_length(&self, min: Dur) -> Option<&ByLength> {
        self.by_min_episode.as_ref()?.iter().find(|row| row.totals.min_ns == min)
    }

    /// The elapsed time as it compares with that of other runs: the traced command's life, where any of them shows it
    /// (`by_command`), else the window's length. Nothing where this run does not show it.
    pub fn elapsed(&self, by_command: bool) -> Option<Dur> {
        (self.elapsed_is_command || !by_command).then_some(self.elapsed_ns)
    }

    /// The longest episodes of the headline.
    pub fn longest(&self) -> &[EpisodeReport] {
        self.violation.as_ref().map_or(&[], |violation| &violation.longest)
    }
}

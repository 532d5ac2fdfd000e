//! The report: as numbers, as a text for one trace, as a table for several.

use crate::count::{Count, Counts};
use crate::strips::Strip;
use crate::throttling::Throttling;
use crate::unknown::{Gaps, Unknown};
use crate::{Options, PendingSwitch, RigorousBounds, Scene, Waiters, WorkConservation};
use sched::episodes::Totals;
use sched::topology::{Distance, shorten_cpu_list};
use sched::{Dur, EventIssue, OfSelection, SchedState, Topology, Ts};
use serde::Serialize;
use std::fmt::Write;
use timeline::text::{CASES, Detail, case, case_head, paragraph};
use timeline::{Drawable, Next};

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
    fn of(ns: [u64; 4], topology: &Topology) -> ByDistance {
        let known = topology.distances();
        let [smt, llc, node, _] = std::array::from_fn(|at| known[at].then_some(ns[at]));
        ByDistance { smt, llc, node, machine: ns[3] }
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
    /// after it: these tasks may be bound to other CPUs. Absent unless it is more than half of a violation of at least 25 % of the time, and if lists
    /// of the CPUs that tasks may use were given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confined_percent: Option<f64>,
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
    /// The unknown parts; in the trust block of the JSON.
    #[serde(skip)]
    pub unknown: Unknown,
    /// Violation over time, if it was asked for.
    #[serde(skip)]
    pub strips: Vec<Strip>,
    /// The throttling, if it was asked for; in the trust block of the JSON.
    #[serde(skip)]
    pub throttling: Option<Throttling>,
}

/// A share of the violated time, in percent, beyond which waiters that were never on an idle CPU are worth a warning.
const CONFINED_PERCENT: f64 = 50.0;

/// A violation, in percent of the time, below which they are not.
const VIOLATED_PERCENT: f64 = 25.0;

/// Why a run has no elapsed time beside others that have one.
pub const NO_ELAPSED: &str = "the trace does not show when the traced command began and ended";

fn percent(part: impl Into<u128>, whole: u64) -> f64 {
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
        thread_ns: totals.thread_ns,
        episodes: totals.episodes,
        longest: Vec::new(),
        by_distance: (!options.topology.is_empty()).then_some(by_distance),
    }
}

pub(crate) fn build(analysis: WorkConservation<'_>, end: Ts, state: &SchedState) -> Report {
    let observed = analysis.observed(state);
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
        ..
    } = analysis;
    throttling.iter_mut().for_each(|throttling| throttling.finish(end, state));
    let window = end.since(start);
    let whole = Whole { window: window.0, cpu_time: window.0.saturating_mul(observed as u64) };
    let totals_of = |count: &Count| {
        let found = count.episodes.totals().iter().find(|t| t.min_ns == options.min_episode).copied();
        found.unwrap_or_default()
    };
    let [all, movable, application] =
        [0, 1, 2].map(|i: usize| violation(&counts[i], &totals_of(&counts[i]), &whole, options));
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
    let confined_percent = confined.as_ref().and_then(crate::Confined::percent);
    let confined_percent =
        confined_percent.filter(|share| *share > CONFINED_PERCENT && chosen.percent >= VIOLATED_PERCENT);
    let gaps = state.gaps().into_iter().map(|(cpu, gaps, ns)| Gaps { cpu, gaps, ns }).collect();
    let (elapsed, is_command) = match traced {
        Some((from, Some(to))) => (to.since(from), true),
        _ => (window, false),
    };
    let mean = |integral: u128| if window.0 == 0 { 0.0 } else { integral as f64 / window.0 as f64 };
    let mut report = Report {
        window_ns: window,
        from_ns: start,
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
        long_pending_switches: pending_switches.long,
        long_pending_switches_ns: pending_switches.long_ns,
        pending_switches: pending_switches.longest,
        unrecorded_pending_switches: pending_switches.unrecorded.0,
        unrecorded_pending_switches_ns: pending_switches.unrecorded.1,
        unknown: Unknown {
            unknown_percent: percent(integrals.unknown, whole.cpu_time),
            gaps,
            missing_events: state.missing(),
            unseen_queues: state.repaired(EventIssue::UnseenQueue),
            unseen_switches: state.repaired(EventIssue::SwitchPrevMismatch),
            clocks_apart: 0,
            unwritten_percent: 0.0,
        },
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

/// The headline, behind *work conservation is*.
pub(crate) fn headline(report: &Report) -> String {
    report.violation.as_ref().map_or("unknown".into(), |v| format!("violated {:.2} % of the time", v.percent))
}

/// The reason that the headline is not to be trusted, if there is one.
pub(crate) fn doubt(report: &Report) -> Option<String> {
    report.violation.as_ref()?;
    report.unknown.why_untrusted(DOUBTFUL_PERCENT)
}

/// The percentage of events missing without a mark above which a report doubts its headline, if it has no limit of its
/// own.
const DOUBTFUL_PERCENT: f64 = 1.0;

/// The least length as a word: `any length`, `≥ 1 ms`.
fn at_least(min: Dur) -> String {
    match min.0 {
        0 => "any length".into(),
        ns if ns.is_multiple_of(1_000_000) => format!("\u{2265} {} ms", ns / 1_000_000),
        ns if ns.is_multiple_of(1_000) => format!("\u{2265} {} µs", ns / 1_000),
        ns => format!("\u{2265} {ns} ns"),
    }
}

/// The report of one trace, for people: in brief, or with every case that was kept.
pub fn text(report: &Report, trace: &Drawable, detail: Detail) -> String {
    let mut out = String::new();
    let doubt = doubt(report).map_or(String::new(), |why| format!(", which is not to be trusted ({why})"));
    paragraph(&mut out, 0, 2, &format!("{trace}: work conservation is {}{doubt}", headline(report)));
    if let Some(why) = &report.selection_unknown {
        paragraph(&mut out, 2, 3, &format!("({why})"));
    }
    let which = match report.waiters {
        Waiters::All => "every waiting task counts",
        Waiters::Movable => "waiting tasks but for kernel threads bound to their CPU count",
        Waiters::Application => "waiting tasks of the application count",
    };
    let least = at_least(report.min_episode_ns);
    let meaning = "some CPU idles without a waiting task while on another, busy CPU a task is in a runqueue wait";
    paragraph(&mut out, 2, 3, &format!("({meaning}; {which}; episodes of {least})"));
    by_length(&mut out, report);
    let application = report.application.as_ref().map_or("unknown".into(), |v| format!("{:.2} %", v.percent));
    let (all, movable) = (report.all.percent, report.movable.percent);
    out.push('\n');
    let counted = format!("waiters counted: all {all:.2} %, movable {movable:.2} %, application {application}");
    paragraph(&mut out, 0, 2, &counted);
    if let Some(d) = report.violation.as_ref().and_then(|v| v.by_distance) {
        let places = [("on the same core", d.smt), ("under the same LLC", d.llc), ("in the same node", d.node)];
        let places = places.into_iter().filter_map(|(place, ns)| Some((place, ns?))).chain([("beyond", d.machine)]);
        let places: Vec<String> =
            places.map(|(place, ns)| format!("{place} {:.2} %", percent(ns, report.window_ns.0))).collect();
        paragraph(&mut out, 0, 2, &format!("nearest idle CPU: {} of the time", places.join(", ")));
    }
    let busy = format!(
        "{} {:.1} % busy; on average {:.2} tasks ran and {:.2} waited",
        sched::nouns::counted(report.cpus.observed, "CPU"),
        report.busy_percent,
        report.mean_running,
        report.mean_waiting
    );
    paragraph(&mut out, 0, 2, &busy);
    let life = if report.elapsed_is_command { "the traced command ran for" } else { "the window is" };
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{life} {:.6} s", report.elapsed_ns.seconds());
    match detail {
        Detail::Brief => brief_cases(&mut out, report, trace),
        Detail::Full => {
            episodes(&mut out, report, trace);
            pending_switches(&mut out, report, trace);
        }
    }
    out
}

/// The commands that show more of the longest episode.
pub fn next(report: &Report, trace: &Drawable) -> String {
    let mut out = String::new();
    if let Some(e) = report.longest().first() {
        let commands = [Next::Draw, Next::Queues, Next::Why];
        trace.next(&mut out, "the longest episode", e.start_in_trace_ns, e.duration_ns, &commands);
    }
    out
}

fn by_length(out: &mut String, report: &Report) {
    let Some(rows) = &report.by_min_episode else { return };
    // Writing to a string cannot fail.
    let _ =
        writeln!(out, "\n{:>12} {:>9} {:>14} {:>14} {:>9}", "episodes", "time", "CPU time lost", "threads", "number");
    for row in rows {
        let threads = format!("{:.6} s", row.totals.thread_ns as f64 / 1e9);
        let _ = writeln!(
            out,
            "{:>12} {:>8.3}% {:>13.3}% {threads:>14} {:>9}",
            at_least(row.totals.min_ns),
            row.percent,
            row.cpu_time_lost_percent,
            row.totals.episodes
        );
    }
}

/// A line for each of the longest cases.
fn brief_cases(out: &mut String, report: &Report, trace: &Drawable) {
    let and_more = |more: usize| if more > 0 { format!(" and {more} more") } else { String::new() };
    if !report.longest().is_empty() {
        out.push_str("\nThe longest episodes:\n");
        case_head(out, "idle CPUs   waiting tasks");
    }
    for e in report.longest().iter().take(CASES) {
        let first =
            e.scene.waiting.first().map_or(String::new(), |w| format!("{} on CPU {}", w.pid.named(w.command), w.cpu));
        let more = and_more(e.scene.waiting.len().saturating_sub(1));
        let text = format!("{:<11} {first}{more}", shorten_cpu_list(&e.scene.idle, 3));
        case(out, e.start_in_trace_ns, e.duration_ns, &text);
    }
    if report.long_pending_switches > 0 {
        out.push('\n');
        paragraph(out, 0, 2, &format!("{}:", long_pending_switches(report)));
        case_head(out, "idle CPU    tasks that wait for it");
    }
    for r in report.pending_switches.iter().take(CASES) {
        let first = r.waiting.first().map_or(String::new(), |held| held.pid.named(held.command));
        let more = and_more(r.waiting.len().saturating_sub(1));
        case(out, r.start_in_trace_ns, r.duration_ns, &format!("{:<11} {first}{more}", r.cpu.to_string()));
    }
    unrecorded_pending_switches(out, report);
    if !report.longest().is_empty() || report.long_pending_switches > 0 {
        trace.draw_any(out);
    }
}

fn episodes(out: &mut String, report: &Report, trace: &Drawable) {
    if report.longest().is_empty() {
        return;
    }
    // Writing to a string cannot fail.
    let _ = writeln!(out, "\nThe longest episodes:");
    for e in report.longest() {
        let distance = match e.scene.distance {
            None => "",
            Some(Distance::Smt) => ", nearest on the same core",
            Some(Distance::Llc) => ", nearest under the same LLC",
            Some(Distance::Node) => ", nearest in the same node",
            Some(Distance::Machine) => ", nearest in another node",
        };
        let (length, from) = (e.duration_ns.human(), e.start_in_trace_ns as f64 / 1e9);
        let line = format!("  {length:>10} from {from:.6} s: {}{distance}", who_idles(&e.scene));
        paragraph(out, 0, CASE, &line);
        for w in e.scene.waiting.iter().take(4) {
            let (who, behind) = (w.pid.named(w.command), w.behind_pid.named(w.behind));
            paragraph(out, CASE, CASE + 2, &format!("{who} waits on CPU {} behind {behind}", w.cpu));
        }
        more(out, e.scene.waiting.len().saturating_sub(4));
        trace.draw(out, CASE, e.start_in_trace_ns, e.duration_ns);
    }
}

/// The indentation of what follows the first line of a case.
const CASE: usize = 5;

fn more(out: &mut String, tasks: usize) {
    if tasks > 0 {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{:CASE$}and {tasks} more {}", "", if tasks == 1 { "task" } else { "tasks" });
    }
}

fn who_idles(scene: &Scene) -> String {
    let idle = shorten_cpu_list(&scene.idle, 12);
    if scene.idle.len() == 1 { format!("CPU {idle} idles") } else { format!("CPUs {idle} idle") }
}

/// The idle CPUs and the waiting tasks, in a line.
pub(crate) fn idle_and_waiting(scene: &Scene) -> String {
    let waiting: Vec<String> =
        scene.waiting.iter().take(3).map(|w| format!("{} waits on {}", w.pid.named(w.command), w.cpu)).collect();
    let more = match scene.waiting.len().saturating_sub(3) {
        0 => String::new(),
        n => format!(", and {n} more"),
    };
    format!("{}, {}{more}", who_idles(scene), waiting.join(", "))
}

/// Describes the times that CPUs idled for long although a task waited for them.
fn long_pending_switches(report: &Report) -> String {
    let times = match report.long_pending_switches {
        1 => "Once".to_owned(),
        times => format!("{times} times, {} in all,", report.long_pending_switches_ns.human()),
    };
    format!(
        "{times} a CPU idled for over 1 ms although a task waited for it (woken, not switched yet: throttled, held \
         back by a sched_ext scheduler, forced idle by core scheduling, vCPU steal time, or misunderstood)"
    )
}

/// Describes the times that a CPU seems to have idled beside a task that in fact it ran.
fn unrecorded_pending_switches(out: &mut String, report: &Report) {
    let times = match report.unrecorded_pending_switches {
        0 => return,
        1 => "Once".to_owned(),
        times => format!("{times} times"),
    };
    out.push('\n');
    let length = report.unrecorded_pending_switches_ns.human();
    let words = format!(
        "{times}, for {length} in all, a CPU seems to idle for over 1 ms beside a task that waited for it: the switch to \
         that task was not recorded, and the CPU ran it for an unknown part of the time"
    );
    paragraph(out, 0, 2, &words);
}

fn pending_switches(out: &mut String, report: &Report, trace: &Drawable) {
    unrecorded_pending_switches(out, report);
    if report.long_pending_switches == 0 {
        return;
    }
    out.push('\n');
    paragraph(out, 0, 2, &format!("{}:", long_pending_switches(report)));
    for r in report.pending_switches.iter().take(5) {
        let start = r.start_in_trace_ns;
        let length = r.duration_ns.human();
        // Writing to a string cannot fail.
        let _ = writeln!(out, "  {length:>10} from {:.6} s: CPU {} idles", start as f64 / 1e9, r.cpu);
        for held in r.waiting.iter().take(2) {
            let class = held.class().map_or(String::new(), |class| format!(", a {class} task,"));
            paragraph(out, CASE, CASE + 2, &format!("{}{class} waits there", held.pid.named(held.command)));
        }
        more(out, r.waiting.len().saturating_sub(2));
        trace.draw(out, CASE, start, r.duration_ns);
    }
}

/// The columns of the name in the table of several traces; a longer name has a line of its own.
const NAME: usize = 17;

/// Several traces: one row each.
pub fn table(runs: &[(String, Report)]) -> String {
    let longest = runs.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let width = longest.clamp(5, NAME);
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "{:<width$} {:>12} {:>7} {:>8} {:>8} {:>8} {:>9}",
        "trace", "elapsed", "time", "possible", "CPU lost", "episodes", "longest"
    );
    for (name, r) in runs {
        let elapsed = format!("{:.6} s{}", r.elapsed_ns.seconds(), if r.elapsed_is_command { "" } else { "*" });
        let cells = match &r.violation {
            None => ["unknown", "-", "-", "-", "-"].map(str::to_owned),
            Some(v) => [
                format!("{:.2}%", v.percent),
                format!("{:.2}%", v.possible_percent),
                format!("{:.2}%", v.cpu_time_lost_percent),
                v.episodes.to_string(),
                v.longest.first().map_or("-".into(), |e| e.duration_ns.human()),
            ],
        };
        let [time, possible, lost, episodes, longest] = cells;
        let name = if name.chars().count() > width {
            out.extend([name, "\n"]);
            ""
        } else {
            name
        };
        let _ =
            writeln!(out, "{name:<width$} {elapsed:>12} {time:>7} {possible:>8} {lost:>8} {episodes:>8} {longest:>9}");
    }
    out.push_str("(CPU lost: the CPU time lost, in percent of the CPU time)\n");
    let mut reasons: Vec<&String> = runs.iter().filter_map(|(_, r)| r.selection_unknown.as_ref()).collect();
    reasons.sort_unstable();
    reasons.dedup();
    for why in reasons {
        paragraph(&mut out, 0, 2, &format!("unknown: {why}"));
    }
    if runs.iter().any(|(_, r)| !r.elapsed_is_command) {
        let _ = writeln!(out, "* of the window: the trace does not show when the traced command ended");
    }
    out
}

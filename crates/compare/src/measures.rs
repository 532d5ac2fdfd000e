//! All that is measured of a run to be compared with others, in one pass.
//!
//! A metric comes from a report, and each report from an analysis: [`RunOptions`], [`RunAnalyses`], [`Reports`] and [`metrics`] name them one
//! below the other. `compare` and the table `run` of `export` take all four, so that a metric of a further report needs its lines here alone.

use benchmarks::BenchmarkNumber;
use contamination::OutsideWork;
use latency::{Latency, LatencyReport};
use machine::Machine;
use picks::{Picks, PicksReport};
use preemptions::{Preemptions, PreemptionsReport};
use question::{Better, Metric, MetricOf};
use sched::{Diagnostics, Dur, Tracepoint, Ts};
use schedstat::{FromTrace, TraceColumns};
use session::Session;
use session::ext::ExtScheduler;
use std::collections::BTreeSet;
use std::path::PathBuf;
use why::{Probed, Why, WhyReport};
use workcons::WorkConservation;

/// The results of a run.
pub struct Measured {
    /// The path of the trace, with folders where these are needed to distinguish it.
    pub name: String,
    /// The file of the trace.
    pub path: PathBuf,
    /// The sched_ext scheduler that was loaded; absent if none was.
    pub sched_ext: Option<ExtScheduler>,
    /// The first and last instant of the recording, which no other recording shares, under whatever name.
    pub recording: Option<(Ts, Ts)>,
    /// The report on work conservation.
    pub workcons: workcons::Report,
    /// The division of the violation by origin and end.
    pub reasons: WhyReport,
    /// The elapsed time, as it compares with that of the other runs.
    pub elapsed: Option<Dur>,
    /// The queued time on the critical path of the traced command; absent where the path is unknown or not to be trusted.
    pub queued: Option<QueuedPath>,
    /// The work of tasks outside of the application; absent where that is unknown.
    pub outside: Option<OutsideWork>,
    /// The report on wakeup latency and on waits after a preemption.
    pub latency: LatencyReport,
    /// The columns of the task-stealing series.
    pub columns: TraceColumns,
    /// The report on requests to reschedule, where these were recorded.
    pub preemptions: Option<PreemptionsReport>,
    /// The report on picks, where their numbers were recorded.
    pub picks: Option<PicksReport>,
    /// The losses, repairs and doubts of the trace.
    pub diagnostics: Diagnostics,
    /// The reason why the violation is unknown, if it is.
    pub no_violation: Option<String>,
    /// The reason why the latency is unknown, if it is.
    pub no_latency: Option<String>,
    /// The facts in which compared runs must agree.
    pub setting: Setting,
    /// The facts of the machine file, if there is one beside the trace.
    pub machine: Option<Vec<(&'static str, String)>>,
    /// The command's own number, if its runs were recorded with one.
    pub own: Option<f64>,
    /// The round of a series in which the run was made, from 1; none outside of a series.
    pub round: Option<usize>,
    /// The numbers in the output of a benchmark that was saved beside the trace.
    pub benchmark: Vec<BenchmarkNumber>,
}

impl Measured {
    /// The results without the lists and distributions from which no number of a comparison comes: those of thousands of runs are in
    /// memory at the same time.
    #[must_use]
    pub fn without_lists(mut self) -> Measured {
        let latency = &mut self.latency;
        (latency.rows, latency.worst, latency.lengths) = Default::default();
        (latency.by_placement, latency.by_idleness) = Default::default();
        let workcons = &mut self.workcons;
        (workcons.pending_switches, workcons.strips, workcons.throttling) = Default::default();
        let violations = [Some(&mut workcons.all), Some(&mut workcons.movable)].into_iter();
        let violations = violations.chain([workcons.violation.as_mut(), workcons.application.as_mut()]);
        violations.flatten().for_each(|violation| violation.longest = Vec::new());
        (self.reasons.by, self.reasons.episode, self.reasons.over_time) = Default::default();
        self.picks.iter_mut().for_each(|picks| (picks.rows, picks.unexplained) = Default::default());
        self.preemptions.iter_mut().for_each(|preemptions| preemptions.askers = Vec::new());
        self
    }

    /// The run as a point of the figure of elapsed times; nothing where it has none.
    pub fn point(&self) -> Option<(f64, Option<f64>)> {
        let violation = self.workcons.violation.as_ref().filter(|_| self.no_violation.is_none());
        Some((self.elapsed?.seconds(), violation.map(|v| v.percent)))
    }
}

/// The queued time on a critical path, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuedPath {
    /// The length of the path.
    pub length_ns: u64,
    /// The queued time on it.
    pub queued_ns: u64,
    /// The queued time by kind.
    pub kinds: sched::QueuedTimes,
}

impl QueuedPath {
    /// The queued time on a path; nothing where there is none, or none that is to be trusted.
    pub fn of(path: &path::Path) -> Option<QueuedPath> {
        path.task.filter(|_| !path.is_untrusted)?;
        Some(QueuedPath {
            length_ns: path.to_ns.since(path.from_ns).0,
            queued_ns: path.times.queued_ns,
            kinds: path.times.kinds(),
        })
    }
}

/// Facts that must be alike for runs to be compared.
pub struct Setting {
    /// The facts, each with its name.
    pub facts: [(&'static str, String); 5],
}

/// The options of the analyses of a run.
pub struct RunOptions<'o> {
    /// The options of work conservation, and of its division by origin and end.
    pub workcons: workcons::Options<'o>,
    /// The options of wakeup latency and of waits after a preemption.
    pub latency: latency::Options<'o>,
    /// The options of requests to reschedule.
    pub preemptions: preemptions::Options<'o>,
    /// The options of picks.
    pub picks: picks::Options<'o>,
    /// The probes on the balancer that the trace has.
    pub probed: Probed,
}

impl<'o> RunOptions<'o> {
    /// Returns the options of all tasks of a session, without what no metric comes from.
    pub fn plain(session: &'o Session) -> RunOptions<'o> {
        let plain = workcons::Options::plain(session);
        RunOptions {
            workcons: workcons::Options { strips: None, throttling: false, capacities: None, ..plain },
            latency: latency::Options::plain(session),
            preemptions: preemptions::Options::plain(session),
            picks: picks::Options::plain(session),
            probed: Probed::of(session),
        }
    }

    /// Returns the analyses, anew for each pass; those of requests and picks where these were recorded.
    pub fn analyses(&self) -> RunAnalyses<'_> {
        RunAnalyses {
            workcons: WorkConservation::new(&self.workcons),
            why: Why::new(&self.workcons).with_probes(self.probed),
            latency: Latency::new(&self.latency),
            columns: FromTrace::only(self.workcons.cpus.clone()),
            preemptions: self.preemptions.by_probe.then(|| Preemptions::new(&self.preemptions)),
            picks: self.picks.by_probe.then(|| Picks::new(&self.picks)),
        }
    }
}

/// The analyses of a run. A caller can let one of them list its cases.
pub struct RunAnalyses<'o> {
    /// The analysis of work conservation.
    pub workcons: WorkConservation<'o>,
    /// The division of the violation by origin and end.
    pub why: Why<'o>,
    /// The analysis of wakeup latency and of waits after a preemption.
    pub latency: Latency<'o>,
    /// The columns of the task-stealing series.
    pub columns: FromTrace,
    /// The analysis of requests to reschedule, where these were recorded.
    pub preemptions: Option<Preemptions<'o>>,
    /// The analysis of picks, where their numbers were recorded.
    pub picks: Option<Picks<'o>>,
}

/// Analyses of the waits of tasks, and of what the CPUs did.
type WaitParts<A, B, C, D> = (A, B, (Option<C>, Option<D>));

impl<'o> RunAnalyses<'o> {
    /// Returns the analyses as parts, which the caller composes with others; [`Reports::of`] takes their outputs.
    pub fn parts(
        self,
    ) -> (WorkConservation<'o>, Why<'o>, WaitParts<Latency<'o>, FromTrace, Preemptions<'o>, Picks<'o>>) {
        (self.workcons, self.why, (self.latency, self.columns, (self.preemptions, self.picks)))
    }
}

/// The outputs of the parts of the analyses of a run.
pub type PartOutputs =
    (workcons::Report, WhyReport, WaitParts<LatencyReport, TraceColumns, PreemptionsReport, PicksReport>);

/// The reports on a run.
pub struct Reports {
    /// The report on work conservation.
    pub workcons: workcons::Report,
    /// The division of the violation by origin and end.
    pub reasons: WhyReport,
    /// The report on wakeup latency and on waits after a preemption.
    pub latency: LatencyReport,
    /// The columns of the task-stealing series.
    pub columns: TraceColumns,
    /// The report on requests to reschedule, where these were recorded.
    pub preemptions: Option<PreemptionsReport>,
    /// The report on picks, where their numbers were recorded.
    pub picks: Option<PicksReport>,
}

impl Reports {
    /// Gathers the outputs of the parts.
    pub fn of((workcons, reasons, (latency, columns, (preemptions, picks))): PartOutputs) -> Reports {
        Reports { workcons, reasons, latency, columns, preemptions, picks }
    }
}

/// Gathers what was measured of a run, with the losses, repairs and doubts of the trace. A run of which more than `max_loss` percent is unknown
/// has no violation.
pub fn conclude(session: &Session, reports: Reports, diagnostics: Diagnostics, max_loss: f64) -> Measured {
    let Reports { mut workcons, reasons, latency, columns, preemptions, picks } = reports;
    workcons.unknown.add_file(session, &diagnostics);
    let info = session.trace.info();
    let events: BTreeSet<String> =
        session.trace.event_counts().into_iter().filter(|e| e.count > 0).map(|e| e.name.into()).collect();
    let facts = [
        ("CPUs with events", sched::topology::format_cpu_list(&session.observed)),
        ("kernel", info.kernel.unwrap_or_default().into()),
        ("clock", if info.clock.is_empty() { "local".into() } else { info.clock.into() }),
        ("events", events.into_iter().filter(|name| is_common(name)).collect::<Vec<_>>().join(" ")),
        ("command", columns.command.map_or_else(|| "unknown".into(), |name| name.to_string())),
    ];
    let setting = Setting { facts };
    let no_violation = workcons.unknown.why_untrusted(max_loss).or_else(|| workcons.selection_unknown.clone());
    let (name, recording) = (session.name(), session.recording());
    let elapsed = Some(workcons.elapsed_ns);
    Measured {
        name,
        path: session.path().to_owned(),
        sched_ext: session.sched_ext.clone(),
        recording,
        workcons,
        reasons,
        elapsed,
        queued: None,
        outside: None,
        latency,
        columns,
        preemptions,
        picks,
        diagnostics,
        no_violation,
        no_latency: None,
        setting,
        machine: session.machine.as_ref().map(Machine::facts),
        own: None,
        round: None,
        benchmark: Vec::new(),
    }
}

/// Whether an event is one that the numbers depend on: whether others occurred is chance.
fn is_common(name: &str) -> bool {
    use Tracepoint::{Migrate, Switch, Wakeup, WakeupNew, Waking};
    [Switch, Waking, Wakeup, Migrate, WakeupNew].iter().any(|tracepoint| tracepoint.name() == name)
}

/// Finds the value of a metric in the measurements of a run.
pub type Get = Box<dyn Fn(&Measured) -> Option<f64>>;

/// The command's own number.
pub fn own_metric() -> (Metric, Get) {
    let name = "metric of the command".to_owned();
    (Metric { key: "metric".into(), row: name.clone(), name, better: Better::Neither }, Box::new(|run| run.own))
}

/// The metrics in the outputs of benchmarks, in the order of the first output that has each.
pub fn of_benchmarks(outputs: &[Vec<BenchmarkNumber>]) -> Vec<(Metric, Get)> {
    let mut found: Vec<(Metric, Get)> = Vec::new();
    for BenchmarkNumber { metric, .. } in outputs.iter().flatten() {
        if found.iter().all(|(other, _)| other.key != metric.key) {
            let key = metric.key.clone();
            let get = move |run: &Measured| Some(run.benchmark.iter().find(|number| number.metric.key == key)?.value);
            found.push((metric.clone(), Box::new(get)));
        }
    }
    found
}

/// Returns the metrics in the order of the table, each with the function that finds its value.
pub fn metrics() -> Vec<(Metric, Get)> {
    // A run whose violation is unknown has no metric of it.
    fn violation(run: &Measured) -> Option<&workcons::Report> {
        Some(&run.workcons).filter(|_| run.no_violation.is_none())
    }
    fn reasons(run: &Measured) -> Option<&WhyReport> {
        Some(&run.reasons).filter(|_| run.no_violation.is_none())
    }
    let elapsed = Metric::of("elapsed", "elapsed, s", Better::Less);
    let mut all: Vec<(Metric, Get)> = vec![(elapsed, Box::new(|run| run.elapsed.map(Dur::seconds)))];
    // The first rows of `why` are parts of the violation.
    let (of_violation, of_queues): (Vec<_>, Vec<_>) =
        of_report(workcons::metrics(), violation).partition(|(metric, _)| metric.name.starts_with("violation"));
    all.extend(of_violation);
    all.extend(of_report(why::metrics(), reasons));
    all.extend(of_queues);
    all.extend(of_report(latency::metrics(), |run| Some(&run.latency)));
    all.extend(of_report(schedstat::metrics(), |run| Some(&run.columns)));
    all.extend(of_probes());
    all
}

/// The queued time on the critical path, and its kinds. `export` has no path.
pub fn of_path() -> Vec<(Metric, Get)> {
    type Part = fn(&QueuedPath) -> u64;
    let parts: [(&'static str, &'static str, Part); 4] = [
        ("path-beside-idle", "beside idle, s", |path| path.kinds.beside_idle_ns),
        ("path-held-back", "held back, s", |path| path.kinds.held_back_ns),
        ("path-shorter", "shorter queue, s", |path| path.kinds.beside_shorter_ns),
        ("path-alike", "all alike, s", |path| path.kinds.alike_ns),
    ];
    let get = |part: Part| -> Get { Box::new(move |run| Some(Dur(part(run.queued.as_ref()?)).seconds())) };
    let whole = (Metric::of("path-queued", "path queued, s", Better::Less), get(|path| path.queued_ns));
    let part = |(key, name, part)| (Metric::part(key, "path queued", name, Better::Less), get(part));
    std::iter::once(whole).chain(parts.into_iter().map(part)).collect()
}

/// The metrics of runs that were recorded with probes on requests to reschedule and on picks.
fn of_probes() -> impl Iterator<Item = (Metric, Get)> {
    let requests = of_report(preemptions::metrics(), |run| run.preemptions.as_ref());
    requests.chain(of_report(picks::metrics(), |run| run.picks.as_ref()))
}

/// Whether a metric has a row only where some run was recorded with its probes, or has a path.
pub fn needs_probes(metric: &Metric) -> bool {
    of_probes().chain(of_path()).any(|(other, _)| other.key == metric.key)
}

/// The metrics of one of the reports on a run.
fn of_report<R: 'static>(
    metrics: Vec<MetricOf<R>>,
    report: fn(&Measured) -> Option<&R>,
) -> impl Iterator<Item = (Metric, Get)> {
    metrics.into_iter().map(move |MetricOf { metric, value }| {
        let get: Get = Box::new(move |run| report(run).and_then(value));
        (metric, get)
    })
}

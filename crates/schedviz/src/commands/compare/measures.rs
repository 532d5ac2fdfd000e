//! All that is measured of a run to be compared with others, in one pass.

use super::CompareArgs;
use anyhow::Result;
use compare::{Better, Metric};
use latency::{Latency, LatencyReport, Measure};
use machine::Machine;
use sched::{Cause, Chosen, Diagnostics, Dur, OfSelection, Pass, Selected, Tracepoint, Ts};
use schedstat::{FromTrace, TraceColumns};
use session::Session;
use session::args::ReadArgs;
use session::warnings;
use std::collections::BTreeSet;
use std::path::Path;
use tracedat::FileIssue;
use why::{Missed, Why, WhyReport};
use workcons::WorkConservation;

/// The results of a run.
pub(crate) struct Measured {
    pub(crate) name: String,
    /// Its first and last instant, which no other recording shares, under whatever name.
    pub(crate) recording: Option<(Ts, Ts)>,
    pub(crate) workcons: workcons::Report,
    /// The division of the violation by origin and end.
    pub(crate) reasons: WhyReport,
    /// The elapsed time, as it compares with that of the other runs.
    pub(crate) elapsed: Option<Dur>,
    pub(crate) latency: LatencyReport,
    pub(crate) columns: TraceColumns,
    pub(crate) diagnostics: Diagnostics,
    /// Why the violation is unknown, if it is.
    pub(crate) no_violation: Option<String>,
    /// Why the latency is unknown, if it is.
    pub(crate) no_latency: Option<String>,
    pub(crate) setting: Setting,
    /// The facts of the machine file, if there is one beside the trace.
    pub(crate) machine: Option<Vec<(&'static str, String)>>,
    /// The command's own number, if its runs were recorded with one.
    pub(crate) own: Option<f64>,
}

impl Measured {
    /// The run as a point of the figure of elapsed times; nothing where it has none.
    pub(crate) fn point(&self) -> Option<(f64, Option<f64>)> {
        let violation = self.workcons.violation.as_ref().filter(|_| self.no_violation.is_none());
        Some((self.elapsed?.seconds(), violation.map(|v| v.percent)))
    }
}

/// Facts that must be alike for runs to be compared.
pub(crate) struct Setting {
    /// Each thing by its name.
    pub(crate) facts: [(&'static str, String); 5],
}

/// Measures a run. Violation and latency are those of the chosen tasks, everything else that of the CPUs.
pub(crate) fn measure(path: &Path, read: &ReadArgs, args: &CompareArgs) -> Result<Measured> {
    let session = Session::open(path, read, &args.window)?;
    args.tasks.check(&session)?;
    let (chosen, excluded) = (args.tasks.chooser(), args.tasks.excluder());
    let cpus = &session.shown.chosen;
    let conservation = workcons::Options {
        cpus: cpus.clone(),
        zero: session.start,
        waiters: args.waiters.of(&args.tasks),
        topology: session.topology.clone(),
        affinity: session.affinity.as_deref(),
        application: args.tasks.chooses().then_some(&chosen),
        excluded: excluded.as_ref().map(|excluded| excluded as &Chosen<'_>),
        ..Default::default()
    };
    let waits = latency::Options {
        cpus: cpus.clone(),
        tasks: args.tasks.is_any().then_some(&chosen),
        zero: session.start,
        topology: session.topology.clone(),
        ..Default::default()
    };
    let waiters = || Selected::new(conservation.application, args.waiters.depend_on_descent(&args.tasks));
    let tasks = || Selected::new(waits.tasks, args.tasks.forked);
    // Two states for two threads: a third would cost more than the columns do.
    let analyses = || {
        let waits = (Latency::new(&waits), tasks());
        let violation = (WorkConservation::new(&conservation), Why::new(&conservation), waiters());
        (violation, (waits, FromTrace::only(cpus.clone())))
    };
    let outcome =
        session.watched(|| Pass::over(session.trace.events()?).window(session.window).run_side_by_side(analyses))?;
    let ((mut workcons, reasons, of_waiters), ((mut latency, of_tasks), columns)) = outcome.output;
    let unknown = session.why_no_figures(of_waiters, waiters)?;
    unknown.iter().for_each(|why| workcons.withhold(why.clone()));
    // A choice of tasks is the same for both: its message is printed once.
    let no_latency = if args.tasks.chooses() { unknown } else { session.why_no_figures(of_tasks, tasks)? };
    no_latency.iter().for_each(|why| latency.withhold(why.clone()));
    let reports = Reports { workcons, reasons, latency, columns, diagnostics: outcome.diagnostics };
    Ok(Measured { no_latency, ..conclude(&session, reports, args.max_loss) })
}

/// The reports on a run.
pub(crate) struct Reports {
    pub(crate) workcons: workcons::Report,
    pub(crate) reasons: WhyReport,
    pub(crate) latency: LatencyReport,
    pub(crate) columns: TraceColumns,
    pub(crate) diagnostics: Diagnostics,
}

/// Gathers the reports on a run. A run of which more than `max_loss` percent is unknown has no violation.
pub(crate) fn conclude(session: &Session, reports: Reports, max_loss: f64) -> Measured {
    let Reports { mut workcons, reasons, latency, columns, diagnostics } = reports;
    workcons.unknown.unwritten_percent = warnings::unwritten_percent(&session.trace, &diagnostics);
    workcons.unknown.clocks_apart = diagnostics.count(FileIssue::ClocksApart);
    let info = session.trace.info();
    let events: BTreeSet<String> =
        session.trace.event_counts().into_iter().filter(|e| e.count > 0).map(|e| e.name).collect();
    let facts = [
        ("CPUs with events", sched::topology::format_cpu_list(&session.observed)),
        ("kernel", info.kernel.unwrap_or_default()),
        ("clock", if info.clock.is_empty() { "local".into() } else { info.clock }),
        ("events", events.into_iter().filter(|name| is_common(name)).collect::<Vec<_>>().join(" ")),
        ("command", columns.command.map_or_else(|| "unknown".into(), |name| name.to_string())),
    ];
    let setting = Setting { facts };
    let no_violation = workcons.unknown.why_untrusted(max_loss).or_else(|| workcons.selection_unknown.clone());
    let (name, recording) = (session.name(), session.recording());
    let elapsed = Some(workcons.elapsed_ns);
    Measured {
        name,
        recording,
        workcons,
        reasons,
        elapsed,
        latency,
        columns,
        diagnostics,
        no_violation,
        no_latency: None,
        setting,
        machine: session.machine.as_ref().map(Machine::facts),
        own: None,
    }
}

/// Whether an event is one that the numbers depend on: whether others occurred is chance.
fn is_common(name: &str) -> bool {
    use Tracepoint::{Migrate, Switch, Wakeup, WakeupNew, Waking};
    [Switch, Waking, Wakeup, Migrate, WakeupNew].iter().any(|tracepoint| tracepoint.name() == name)
}

pub(crate) type Get = fn(&Measured) -> Option<f64>;

/// The command's own number.
pub(crate) fn own_metric() -> (Metric, Get) {
    let name = "metric of the command".to_owned();
    (Metric { key: "metric", row: name.clone(), name, better: Better::Neither }, |m| m.own)
}

/// The metrics, each with how it is found.
pub(crate) fn metrics() -> Vec<(Metric, Get)> {
    fn ms(length: Dur) -> f64 {
        length.0 as f64 / 1e6
    }
    fn wakeup(m: &Measured) -> sched::lengths::Summary {
        m.latency.of(Measure::Wakeup)
    }
    fn wait(m: &Measured) -> sched::lengths::Summary {
        m.latency.of(Measure::Preempted)
    }
    /// Not of a run whose violation is unknown.
    fn violation(m: &Measured) -> Option<&workcons::Report> {
        Some(&m.workcons).filter(|_| m.no_violation.is_none())
    }
    /// The same for its division.
    fn reasons(m: &Measured) -> Option<&WhyReport> {
        Some(&m.reasons).filter(|_| m.no_violation.is_none())
    }
    fn missed(m: &Measured) -> Option<&Missed> {
        reasons(m)?.missed.as_ref()
    }
    fn moved(m: &Measured, cause: Cause) -> Option<f64> {
        Some(m.columns.migrations[cause as usize] as f64)
    }
    use Better::{Less, Neither};
    // The key, what it is a part of if that has a row as well, its name, and how it is found.
    let all: [(&str, &str, &str, Better, Get); 33] = [
        ("elapsed", "", "elapsed, s", Less, |m| m.elapsed.map(Dur::seconds)),
        ("violation", "", "violation, %", Less, |m| Some(violation(m)?.violation.as_ref()?.percent)),
        ("cpu-time-lost", "violation", "CPU time lost, %", Less, |m| {
            Some(violation(m)?.violation.as_ref()?.cpu_time_lost_percent)
        }),
        ("violation-1ms", "violation", "from 1 ms, %", Less, |m| {
            Some(violation(m)?.from_length(Dur(1_000_000))?.percent)
        }),
        ("waiting", "violation", "waiting, s", Less, |m| Some(reasons(m)?.waiting.as_ref()?.total_ns.seconds())),
        ("idling", "violation", "idling, s", Less, |m| Some(reasons(m)?.idling.as_ref()?.total_ns.seconds())),
        ("missed-steals", "", "missed steals", Less, |m| Some(missed(m)?.number as f64)),
        ("missed-steals-llc", "missed steals", "within LLC", Less, |m| Some(missed(m)?.within_llc? as f64)),
        ("missed-steals-idling", "missed steals", "idling, s", Less, |m| {
            Some(Dur(missed(m)?.by_distance.iter().map(|row| row.violated_ns).sum()).seconds())
        }),
        ("wakeup-p50", "", "wakeup p50, ms", Less, |m| wakeup(m).p50_ns.map(ms)),
        ("wakeup-p99", "wakeup", "p99, ms", Less, |m| wakeup(m).p99_ns.map(ms)),
        ("wakeup-max", "wakeup", "max, ms", Less, |m| wakeup(m).max_ns.map(ms)),
        ("wait-p50", "", "preempted p50, ms", Less, |m| wait(m).p50_ns.map(ms)),
        ("wait-p99", "preempted", "p99, ms", Less, |m| wait(m).p99_ns.map(ms)),
        ("wait-max", "preempted", "max, ms", Less, |m| wait(m).max_ns.map(ms)),
        ("busy", "", "%busy", Neither, |m| m.columns.columns.busy_percent),
        ("slice", "", "slice, ms", Neither, |m| m.columns.columns.slice_ms),
        ("sched", "", "sched per CPU", Neither, |m| Some(m.columns.columns.sched)),
        ("idle", "", "idle per CPU", Neither, |m| Some(m.columns.columns.idle)),
        ("wake", "", "wake per CPU", Neither, |m| Some(m.columns.columns.wake)),
        ("steal", "", "steal per CPU", Neither, |m| m.columns.columns.steal),
        ("migrations", "", "migrations", Neither, |m| Some(m.columns.migrations.iter().sum::<u64>() as f64)),
        ("migrations-wakeup", "migrations", "wakeup", Neither, |m| moved(m, Cause::Wakeup)),
        ("migrations-newidle", "migrations", "new-idle pull", Neither, |m| moved(m, Cause::NewIdle)),
        ("migrations-idle", "migrations", "idle balance", Neither, |m| moved(m, Cause::Idle)),
        ("migrations-periodic", "migrations", "periodic", Neither, |m| moved(m, Cause::Periodic)),
        ("migrations-nohz-idle", "migrations", "nohz idle (ILB)", Neither, |m| moved(m, Cause::NohzIdle)),
        ("migrations-sleepers", "migrations", "of sleepers", Neither, |m| {
            let causes = [Cause::NewIdleSleeper, Cause::IdleSleeper, Cause::PeriodicSleeper, Cause::NohzIdleSleeper];
            causes.into_iter().map(|cause| moved(m, cause)).sum()
        }),
        ("migrations-active", "migrations", "active balance", Neither, |m| moved(m, Cause::Active)),
        ("migrations-affinity", "migrations", "affinity", Neither, |m| moved(m, Cause::Affinity)),
        ("migrations-exec", "migrations", "exec", Neither, |m| moved(m, Cause::Exec)),
        ("migrations-numa", "migrations", "NUMA", Neither, |m| {
            Some(moved(m, Cause::NumaMove)? + moved(m, Cause::NumaSwap)?)
        }),
        ("migrations-other", "migrations", "others", Neither, |m| {
            Some(moved(m, Cause::Stopper)? + moved(m, Cause::RealTime)? + moved(m, Cause::Unknown)?)
        }),
    ];
    let metric = |(key, of, part, better, get): (_, &str, &str, _, _)| {
        let (name, row) = match of {
            "" => (part.to_owned(), part.to_owned()),
            of => (format!("{of} {part}"), format!("  {part}")),
        };
        (Metric { key, name, row, better }, get)
    };
    all.into_iter().map(metric).collect()
}

//! `schedviz schedstat`: what happened between two copies of /proc/schedstat.

use crate::SchedstatArgs;
use crate::args::FORMATS;
use crate::perf::{self, PerfCounters};
use crate::{Columns, Delta, FromTrace, Report, Snapshot, StatRow, TraceColumns};
use anyhow::{Context, Result, anyhow, bail};
use question::{Question, Subcommand};
use session::Session;
use session::args::{BeginArgs, ReadArgs, WindowArgs, read_text};
use session::formats::{Formats, OutputName, Renderings};
use session::warnings;
use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;
use timeline::text::lines;

/// The name and version of the document's schema.
const SCHEMA: &str = "schedviz/schedstat/1";

/// The changes between two copies of /proc/schedstat.
#[derive(Debug)]
pub struct SchedstatQuestion;

impl Subcommand for SchedstatQuestion {
    const NAME: &'static str = "schedstat";
    const QUESTION: Option<(&'static str, &'static str)> =
        Some(("What do the counters of /proc/schedstat show?", "BEFORE AFTER"));
    type Args = SchedstatArgs;

    fn run(args: &SchedstatArgs) -> Result<ExitCode> {
        run(args).map(|()| ExitCode::SUCCESS)
    }
}

impl Question for SchedstatQuestion {
    const FORMATS: Formats = FORMATS;

    #[cfg(feature = "schema")]
    fn schemas() -> Vec<question::NamedSchema> {
        vec![question::schema::<crate::Report>(SCHEMA)]
    }
}

/// Reads a copy of /proc/schedstat.
fn snapshot(path: &Path) -> Result<Snapshot> {
    Snapshot::parse(&read_text(path)?).with_context(|| path.display().to_string())
}

/// A run: its two copies, and the difference.
fn pair(before: &Path, after: &Path) -> Result<([Snapshot; 2], Delta)> {
    let (b, a) = (snapshot(before)?, snapshot(after)?);
    let delta = Delta::between(&b, &a).map_err(|why| anyhow!("{} and {}: {why}", before.display(), after.display()))?;
    Ok(([b, a], delta))
}

/// The columns of a trace.
fn of_trace(path: &Path, read: &ReadArgs) -> Result<TraceColumns> {
    let session = Session::open(path, read, &WindowArgs::default())?;
    let outcome = session.follow_in_pieces(&BeginArgs::default(), session.window, FromTrace::default)?;
    warnings::warn(&outcome.diagnostics, read);
    Ok(outcome.output)
}

/// Reads the snapshots, subtracts them and prints the change.
pub(crate) fn run(args: &SchedstatArgs) -> Result<()> {
    args.output.check(FORMATS)?;
    if args.output.dialect().is_some() && args.base.is_empty() {
        bail!(
            "--format perf prints the rows of perf sched stats diff, which compares two runs; add --base BEFORE AFTER"
        );
    }
    for (name, value) in [("--elapsed", args.time), ("--base-elapsed", args.base_time), ("--hz", args.hz)] {
        if value.is_some_and(|v| !(v.is_finite() && v > 0.0)) {
            bail!("{name}: a number above zero is needed");
        }
    }
    let elapsed = |time: Option<f64>, delta: &Delta| match (time, args.hz, delta.jiffies) {
        (Some(time), ..) => Some(time),
        (None, Some(hz), Some(jiffies)) => Some(jiffies as f64 / hz),
        _ => None,
    };
    let mut base = None;
    let mut rows = Vec::new();
    let mut warnings = Vec::new();
    if let [before, after] = args.base.as_slice() {
        let (copies, delta) = pair(before, after)?;
        base = Some(copies);
        let (columns, short) = Columns::of(&delta, elapsed(args.base_time, &delta)).possible();
        rows.push(StatRow { name: "base".into(), columns });
        let option = if args.base_time.is_some() { "--base-elapsed" } else { "--hz" };
        warnings.extend(
            delta
                .warnings
                .iter()
                .cloned()
                .chain(short.map(|at_least| too_short(option, at_least)))
                .map(|w| format!("base: {w}")),
        );
    }
    let (copies, delta) = pair(&args.before, &args.after)?;
    let (columns, short) = Columns::of(&delta, elapsed(args.time, &delta)).possible();
    rows.push(StatRow { name: "new".into(), columns });
    let option = if args.time.is_some() { "--elapsed" } else { "--hz" };
    warnings.extend(delta.warnings.iter().cloned().chain(short.map(|at_least| too_short(option, at_least))));
    let trace = args.trace.as_deref().map(|path| of_trace(path, &args.read)).transpose()?;
    let speedup_percent = Report::speedup_of(&rows);
    if let Some(trace) = &trace {
        warnings.extend(of_another_run(&delta, trace));
        rows.push(StatRow { name: "trace".into(), columns: trace.columns });
    }
    let report = Report {
        schema: SCHEMA,
        version: copies[0].layout.version,
        rows,
        speedup_percent,
        cpus: delta.cpus.clone(),
        domains: delta.domains.clone(),
        warnings,
    };
    let as_perf = |_| {
        let counters = |[before, after]: &[Snapshot; 2]| PerfCounters::between(before, after);
        let base = base.as_ref().context("there is no base")?;
        let notes: String = report.warnings.iter().map(|warning| format!("note: {warning}\n")).collect();
        perf::diff(&counters(base), &counters(&copies)).map(|rows| notes + &rows).map_err(|why| anyhow!(why))
    };
    let forms = Renderings::words(|| text(args, &report, &delta, trace.as_ref())).with_dialects(as_perf);
    args.output.give(&OutputName::whole(&args.after), "schedstat", &report, forms, args.read.quiet)
}

const TOO_SHORT: &str = "the elapsed time is too short";

/// The note on an elapsed time in which the tasks cannot have run for as long as was counted.
fn too_short(option: &str, at_least: f64) -> String {
    let why = format!("tasks ran for {at_least:.3} s on each CPU, on average");
    format!("{option}: {TOO_SHORT}: {why}; %busy, %find and %speedup are left out")
}

fn text(args: &SchedstatArgs, report: &Report, delta: &Delta, trace: Option<&TraceColumns>) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    for warning in &report.warnings {
        let _ = writeln!(out, "note: {warning}");
    }
    out += &crate::table(&report.rows);
    if let Some(speedup) = report.speedup_percent {
        let _ = writeln!(out, "%speedup {speedup:.1}");
    }
    let columns = "slice in ms; sched, idle, wake: calls of schedule(), to the idle task, wakeups done";
    lines(&mut out, 80, 0, 1, &format!("(per CPU, {}; {columns})", sched::nouns::counted(delta.cpus.len(), "CPU")));
    let timeless = report.rows.iter().any(|r| r.columns.busy_percent.is_none()) && !is_too_short(report);
    if timeless {
        let _ = writeln!(out, "(without --elapsed SECONDS, or --hz N, there is no %busy)");
    }
    if let Some(trace) = trace {
        against(&mut out, delta, trace);
    }
    if args.per_cpu {
        let _ = writeln!(
            out,
            "\n{:>4}  {:>8}  {:>8}  {:>8}  {:>8}  {:>11}  {:>11}  {:>8}",
            "CPU", "sched", "idle", "wakeups", "local", "ran, ms", "waited, ms", "arrivals"
        );
        for c in &delta.cpus {
            let _ = writeln!(
                out,
                "{:>4}  {:>8}  {:>8}  {:>8}  {:>8}  {:>11.3}  {:>11.3}  {:>8}",
                c.cpu,
                c.sched_count,
                c.sched_goidle,
                c.ttwu_count,
                c.ttwu_local,
                c.cpu_time_ns as f64 / 1e6,
                c.run_delay_ns as f64 / 1e6,
                c.pcount
            );
        }
    }
    if !delta.domains.is_empty() {
        let _ = write!(out, "\nload balancing:\n{}", crate::domains_text(&delta.domains));
    }
    out
}

/// Whether an elapsed time was given, and left out of the report.
fn is_too_short(report: &Report) -> bool {
    report.warnings.iter().any(|warning| warning.contains(TOO_SHORT))
}

/// The sums that both the counters and the trace have: the name, and the number in each.
fn told_by_both(delta: &Delta, trace: &TraceColumns) -> [(&'static str, f64, f64); 5] {
    let sum = |of: fn(&crate::CpuDelta) -> u64| delta.cpus.iter().map(of).fold(0, u64::saturating_add) as f64;
    let per_cpu = trace.cpus as f64;
    [
        ("arrivals of tasks (pcount; switches to a task)", sum(|c| c.pcount), trace.arrivals as f64),
        ("time that tasks ran, ms", sum(|c| c.cpu_time_ns) / 1e6, trace.busy_ns as f64 / 1e6),
        ("to the idle task (sched_goidle; switches)", sum(|c| c.sched_goidle), trace.columns.idle * per_cpu),
        ("wakeups (ttwu_count; sched_waking)", sum(|c| c.ttwu_count), trace.columns.wake * per_cpu),
        ("schedule() (sched_count; switches)", sum(|c| c.sched_count), trace.columns.sched * per_cpu),
    ]
}

/// A sign that a trace is of another run than the two snapshots, which would count all of its events.
fn of_another_run(delta: &Delta, trace: &TraceColumns) -> Option<String> {
    if trace.cpus > delta.cpus.len() {
        let (traced, counted) = (trace.cpus, delta.cpus.len());
        return Some(format!("--trace: it has events of {traced} CPUs, the counters are of {counted}: other machines"));
    }
    // Half of one is what rounding may cost.
    let fewer = told_by_both(delta, trace).into_iter().find(|(_, counters, trace)| counters + 0.5 < *trace);
    fewer.map(|(what, counters, trace)| {
        format!("--trace: not of the run that was counted: {what}: {counters:.0} counted, {trace:.0} traced")
    })
}

/// Writes the sums in which the counters and the trace disagree, since the snapshots lie outside of the trace.
fn against(out: &mut String, delta: &Delta, trace: &TraceColumns) {
    let _ = writeln!(
        out,
        "\n{:46}  {:>8}  {:>8}  {:>7}\n(the snapshots were taken before and after the recording, so the counters\n are at least the trace's)",
        "in all", "counters", "trace", "more, %"
    );
    for (name, counters, trace) in told_by_both(delta, trace) {
        let more = if trace > 0.0 { format!("{:.1}", 100.0 * (counters / trace - 1.0)) } else { "-".into() };
        let _ = writeln!(out, "{name:46}  {counters:>8.0}  {trace:>8.0}  {more:>7}");
    }
}

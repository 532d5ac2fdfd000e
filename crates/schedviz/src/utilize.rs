//! `schedviz utilization`: what CPUs spend their time on, interval by interval.

use crate::args::{BeginArgs, ReadArgs, WindowArgs, length};
use crate::output::OutputArgs;
use crate::present::Found;
use crate::progress;
use crate::subject::Subject;
use anyhow::{Context, Result, bail};
use regex::Regex;
use sched::{Dur, Pass, Window};
use std::path::PathBuf;
use timeline::scale::round_step;
use utilization::{Options, Utilization};

/// What the CPUs spend their time on, interval by interval, like mpstat
///
/// The classes: the application (what descends from the traced command, or what --tasks matches), other
/// tasks, kernel threads, the stopper, real-time and deadline tasks, interrupts where they were recorded.
/// Two situations are pointed out: CPUs that idle beside overloaded ones for longer than the load
/// balancer should need, and herds of tasks that leave one CPU for one other.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct UtilizationArgs {
    /// The recording
    trace: PathBuf,
    /// The length of an interval, such as 1s or 10ms; by default about twenty fit
    #[arg(long, value_name = "TIME")]
    interval: Option<String>,
    /// A line for each CPU
    #[arg(long)]
    per_cpu: bool,
    /// So long CPUs may idle beside overloaded ones
    #[arg(long, value_name = "TIME", default_value = "4ms")]
    balance_interval: String,
    /// The application's tasks, by command; without it what descends from the traced command
    #[arg(long, value_name = "REGEX", help_heading = "Tasks")]
    tasks: Option<String>,
    #[command(flatten)]
    read: ReadArgs,
    #[command(flatten)]
    window: WindowArgs,
    #[command(flatten)]
    begin: BeginArgs,
    #[command(flatten)]
    output: OutputArgs,
}

const EXAMPLES: &str = "\
Examples:
  schedviz utilization trace.dat
  schedviz utilization trace.dat --interval 100ms --per-cpu
  schedviz utilization trace.dat --tasks '^make|^cc1' -o utilization.pdf";

/// Measures and prints.
pub(crate) fn run(args: &UtilizationArgs) -> Result<()> {
    args.output.check()?;
    args.begin.without_descent(args.tasks.is_none(), "the application's share")?;
    let subject = Subject::open(&args.trace, &args.read, &args.window)?;
    let options = options(&subject, args)?;
    // The figures end where the window does: an event at the very end is inside.
    let window = Window { from: Some(subject.from), to: Some(subject.to) };
    let outcome = progress::watched(&subject.trace, args.read.quiet, || -> Result<_, parse::Error> {
        Pass::over(args.begin.events(&subject)?).window(window).run(|| Utilization::new(&options))
    });
    let outcome = outcome.map_err(|e| subject.named(e))?;
    let (report, diagnostics) = (outcome.output, outcome.diagnostics);
    let found = Found { command: "utilization", report: &report, diagnostics: &diagnostics };
    found.present(
        &subject,
        &args.read,
        &args.output,
        |heading| vec![utilization::figure(&report, &options, heading)],
        |trace| utilization::text(&report, trace, args.per_cpu),
    )
}

/// The options where nothing else is asked for.
pub(crate) fn plain(subject: &Subject) -> Options {
    Options {
        from: subject.from,
        to: subject.to,
        zero: subject.start,
        cpus: subject.shown.cpus.clone(),
        group_name: subject.shown.group_name.clone(),
        interval: Dur(round_step(subject.to.since(subject.from).0 / 20)),
        tasks: None,
        topology: subject.topology.clone(),
        balance_interval: Dur(4_000_000),
    }
}

fn options(subject: &Subject, args: &UtilizationArgs) -> Result<Options> {
    let plain = plain(subject);
    let interval = args.interval.as_deref().map_or(Ok(plain.interval), |text| length("interval", text))?;
    if subject.to.since(subject.from).0 / interval.0 > utilization::MOST_INTERVALS {
        bail!("--interval: {} makes more than {} intervals", interval.human(), utilization::MOST_INTERVALS);
    }
    Ok(Options {
        interval,
        tasks: args.tasks.as_deref().map(Regex::new).transpose().context("--tasks")?,
        balance_interval: length("balance-interval", &args.balance_interval)?,
        ..plain
    })
}

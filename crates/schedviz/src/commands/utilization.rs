//! `schedviz utilization`: what CPUs spend their time on, interval by interval.

mod csv;

use anyhow::{Result, bail};
use regex::Regex;
use sched::chosen::is_match;
use sched::{Diagnostics, Dur, EventIssue};
use schedstat::{FromTrace, StatRow};
use session::Session;
use session::args::{BeginArgs, DetailArgs, TraceArgs, positive_length};
use session::document::TraceDocument;
use session::formats::{Formats, OutputArgs, Renderings};
use session::heading::Loss;
use session::section::{MaybeSection, ReportSection, listed, part};
use timeline::Sheet;
use timeline::page::Heading;
use timeline::scale::round_step;
use timeline::text::Detail;
use utilization::{Options, Utilization, UtilizationReport};

/// Show how the CPUs spend their time, interval by interval, like mpstat
///
/// The classes: the application (what descends from the traced command, or what --tasks matches), other
/// tasks, kernel threads, the stopper, real-time and deadline tasks, interrupts where they were recorded;
/// time that is unknown, that a CPU was offline, or that it idled.
/// Two situations are pointed out: CPUs that idle beside overloaded ones for longer than the load
/// balancer should need, and herds of tasks that leave one CPU for one other.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_args(|argument| FORMATS.fit(argument)))]
pub(crate) struct UtilizationArgs {
    #[command(flatten)]
    trace: TraceArgs,
    /// The length of an interval, such as 1s or 10ms; by default about twenty fit
    #[arg(long, value_name = "TIME", value_parser = positive_length)]
    interval: Option<Dur>,
    /// Print a line for each CPU; a table in CSV then has these instead of the intervals
    #[arg(long)]
    per_cpu: bool,
    #[command(flatten)]
    detail: DetailArgs,
    /// Report CPUs that idle longer than this while others are overloaded
    #[arg(long, value_name = "TIME", default_value = "4ms", value_parser = positive_length)]
    balance_interval: Dur,
    /// The application's tasks, by command; without it what descends from the traced command
    #[arg(long, value_name = "REGEX", value_parser = Regex::new, help_heading = "Tasks")]
    tasks: Option<Regex>,
    #[command(flatten)]
    begin: BeginArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// The forms of its output.
const FORMATS: Formats = Formats::FIGURE_AND_TEXT.and_table();

const EXAMPLES: &str = "\
Examples:
  schedviz utilization trace.dat
  schedviz utilization trace.dat --interval 100ms --per-cpu
  schedviz utilization trace.dat --tasks '^make|^cc1' -o utilization.pdf";

/// Measures and prints.
pub(crate) fn run(args: &UtilizationArgs) -> Result<()> {
    args.output.check(FORMATS)?;
    args.begin.without_descent(args.tasks.is_none(), "the application's share")?;
    let session = args.trace.open()?;
    let options = options(&session, args)?;
    let outcome = session.follow(&args.begin, session.page(), || Utilization::new(&options))?;
    let (report, diagnostics) = (outcome.output, outcome.diagnostics);
    let text = || utilization::text(&report, &session.drawable, args.per_cpu, args.detail.detail());
    let figure = |sheet: &Sheet| {
        let heading = heading(&session, &report, &diagnostics).on(sheet);
        Ok(vec![utilization::figure(&report, &options, &heading)])
    };
    let document = TraceDocument::of(&session, &report, &diagnostics);
    document.give(
        "utilization",
        &session,
        &args.output,
        Renderings::told(text, figure).with_csv(|out| csv::table(&report, args.per_cpu, out)),
    )
}

/// The options where nothing else is asked for.
pub(crate) fn plain(session: &Session) -> Options {
    Options {
        from: session.from,
        to: session.to,
        zero: session.start,
        cpus: session.shown.cpus.clone(),
        all_cpus: session.shown.all.clone(),
        group_name: session.shown.group_name.clone(),
        interval: Dur(round_step(session.to.since(session.from).0 / 20)),
        tasks: None,
        topology: session.topology.clone(),
        balance_interval: Dur(4_000_000),
    }
}

fn options(session: &Session, args: &UtilizationArgs) -> Result<Options> {
    let plain = plain(session);
    let interval = args.interval.unwrap_or(plain.interval);
    if session.to.since(session.from).0 / interval.0 > utilization::MOST_INTERVALS {
        bail!("--interval: {} makes more than {} intervals", interval.human(), utilization::MOST_INTERVALS);
    }
    if let Some(tasks) = &args.tasks {
        session.needs_task(&format!("--tasks {tasks}"), |_, name| is_match(tasks, name))?;
    }
    Ok(Options { interval, tasks: args.tasks.clone(), balance_interval: args.balance_interval, ..plain })
}

/// The texts around the figure.
pub(crate) fn heading(session: &Session, report: &UtilizationReport, diagnostics: &Diagnostics) -> Heading {
    let loss = Loss {
        gaps: diagnostics.count(EventIssue::EventsLost),
        unknown_ns: report.all.unknown_ns,
        cpu_time_ns: report.all.total(),
    };
    session.lossy_heading(&loss, diagnostics)
}

/// Its section in a report, with the columns of schedstat.
pub(crate) fn section(session: &Session) -> MaybeSection<'_> {
    let chosen = session.shown.chosen.clone();
    Ok(Some(part((plain(session), chosen), |(options, chosen)| {
        let analyses = (Utilization::new(options), FromTrace::only(chosen.clone()));
        listed(analyses, move |(report, columns), page| {
            let columns = schedstat::table(&[StatRow { name: "trace".into(), columns: columns.columns }]);
            let text = utilization::text(&report, &page.session.drawable, true, Detail::Full);
            let heading = heading(page.session, &report, page.diagnostics).on(page.sheet);
            Ok(ReportSection {
                title: "Utilization".to_owned(),
                figures: vec![utilization::figure(&report, options, &heading)],
                text: format!("{text}\n{columns}"),
                json: page.json(&report)?,
            })
        })
    })))
}

//! `schedviz latency`: how long tasks wait until they run.

mod csv;

use anyhow::Result;
use latency::{Latency, Options, RowsBy};
use session::Session;
use session::args::{BeginArgs, DetailArgs, TaskArgs, TraceArgs};
use session::document::TraceDocument;
use session::formats::{Formats, OutputArgs, Renderings};
use session::section::{MaybeSection, ReportSection, listed, part};
use timeline::Sheet;
use timeline::text::Detail;

/// How long tasks wait to run after a wakeup or a preemption, how long they run and sleep
///
/// The wakeup latency is the time from sched_waking (from sched_wakeup, where that was not recorded)
/// until the task is switched in. Percentiles are at most 0.8 % above the true ones; numbers, sums
/// and extremes are exact. An interval counts in the window in which it ends, with its full length; how many began
/// before the window is given apart.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_args(|argument| FORMATS.fit(argument)))]
pub(crate) struct LatencyArgs {
    #[command(flatten)]
    trace: TraceArgs,
    /// Rows of the tables: one for each of these
    #[arg(long, value_enum, default_value_t, value_name = "WHAT")]
    by: RowsBy,
    /// Maximum number of rows to print; the JSON has all
    #[arg(long, default_value_t = 15, value_name = "N")]
    rows: usize,
    /// Number of longest waits of each kind to keep, for --verbose and --json
    #[arg(long, default_value_t = 5, value_name = "N")]
    worst: usize,
    #[command(flatten)]
    detail: DetailArgs,
    #[command(flatten)]
    begin: BeginArgs,
    #[command(flatten)]
    tasks: TaskArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// The forms of its output.
const FORMATS: Formats = Formats::FIGURE_AND_TEXT.and_table();

const EXAMPLES: &str = "\
Examples:
  schedviz latency trace.dat                       tables and the longest waits
  schedviz latency trace.dat --tasks '^redis' --by task
  schedviz latency trace.dat -o latency.pdf        the distributions, drawn
  schedviz latency trace.dat --by task -o latency.csv
                                                   all measures of every task
  schedviz latency trace.dat --topology lscpu.json
                                                   placements by distance
                                                   (lscpu -e -J > lscpu.json)";

/// Measures and prints.
pub(crate) fn run(args: &LatencyArgs) -> Result<()> {
    args.output.check(FORMATS)?;
    args.begin.without_descent(args.tasks.forked, "--forked")?;
    let session = args.trace.open()?;
    args.tasks.check(&session)?;
    let chosen = args.tasks.chooser();
    let options = Options {
        cpus: session.shown.chosen.clone(),
        tasks: args.tasks.is_any().then_some(&chosen),
        by: args.by,
        topology: session.topology.clone(),
        zero: session.start,
        worst: args.worst,
    };
    let analysis = || Latency::new(&options);
    let (report, diagnostics) =
        session.measured(&args.begin, session.window, options.tasks, args.tasks.forked, analysis)?;
    let text = || latency::text(&report, &session.drawable, args.rows, args.detail.detail());
    let heading = || session.general_heading(&diagnostics).without_figures(report.selection_unknown.as_deref());
    let figure = |sheet: &Sheet| Ok(vec![latency::figure(&report, &heading().on(sheet))]);
    let document = TraceDocument::of(&session, &report, &diagnostics);
    document.give(
        "latency",
        &session,
        &args.output,
        Renderings::told(text, figure).with_csv(|out| csv::table(&report, out)),
    )
}

/// The options of all tasks.
pub(crate) fn plain(session: &Session) -> Options<'static> {
    let (cpus, topology) = (session.shown.chosen.clone(), session.topology.clone());
    Options { cpus, zero: session.start, topology, ..Default::default() }
}

/// Its section in a report.
pub(crate) fn section(session: &Session) -> MaybeSection<'_> {
    Ok(Some(part(Options { worst: 5, ..plain(session) }, |options| {
        listed(Latency::new(options), move |report, page| {
            Ok(ReportSection {
                title: "Latency".to_owned(),
                figures: vec![latency::figure(&report, &page.heading())],
                text: latency::text(&report, &page.session.drawable, 15, Detail::Full),
                json: page.json(&report)?,
            })
        })
    })))
}

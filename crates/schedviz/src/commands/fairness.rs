//! `schedviz fairness`: how evenly CPU time is shared.

mod csv;

use anyhow::{Result, bail};
use fairness::{Fairness, GroupBy, Options};
use regex::Regex;
use sched::Dur;
use session::Session;
use session::args::{BeginArgs, DetailArgs, TaskArgs, TraceArgs, positive_length};
use session::document::TraceDocument;
use session::formats::{Formats, OutputArgs, Renderings};
use session::section::{MaybeSection, ReportSection, listed, part};
use timeline::Sheet;
use timeline::scale::round_step;
use timeline::text::Detail;

/// How evenly CPU time is shared by tasks, commands or groups, and who starves
///
/// For each member its run and wait time, its share against the expected one, and its run lengths;
/// for all together the Gini coefficient, Jain's index and the Lorenz curve; for each interval who got
/// the least; the longest waits with the tasks that ran meanwhile, and for how long which CPUs idled.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_args(|argument| FORMATS.fit(argument)))]
pub(crate) struct FairnessArgs {
    #[command(flatten)]
    trace: TraceArgs,
    /// Members are each a `task`, a `command` (the kernel's threads for each CPU are one, as ksoftirqd/N), the
    /// children of a `parent`, or what a regular expression catches in the name: its first group, or all of it
    #[arg(long, default_value = "task", value_name = "WHAT", value_parser = group_by)]
    group_by: GroupBy,
    /// Expect shares by the weights of the nice values
    #[arg(long)]
    weights: bool,
    /// The length of an interval, such as 1s or 10ms; by default about ten fit
    #[arg(long, value_name = "TIME", value_parser = positive_length)]
    interval: Option<Dur>,
    /// Maximum number of members to print; the JSON has all
    #[arg(long, default_value_t = 20, value_name = "N")]
    rows: usize,
    /// Number of longest waits to keep, for --verbose and --json
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
  schedviz fairness trace.dat --forked             tasks of the traced command
  schedviz fairness trace.dat --group-by command
  schedviz fairness trace.dat --group-by '^(\\w+)-'
                                                   workers by the first part of
                                                   their names
  schedviz fairness trace.dat --forked -o shares.csv
                                                   every member, as a table
  schedviz fairness trace.dat --forked -o shares.pdf
                                                   the Lorenz curve and run lengths";

/// Parses the name of a kind of members, or an expression.
fn group_by(text: &str) -> Result<GroupBy, regex::Error> {
    Ok(match text {
        "task" => GroupBy::Task,
        "command" => GroupBy::Command,
        "parent" => GroupBy::Parent,
        expression => GroupBy::Matched(Regex::new(expression)?),
    })
}

/// Measures and prints.
pub(crate) fn run(args: &FairnessArgs) -> Result<()> {
    args.output.check(FORMATS)?;
    args.begin.without_descent(args.tasks.forked, "--forked")?;
    args.begin.without_descent(matches!(args.group_by, GroupBy::Parent), "--group-by parent")?;
    let session = args.trace.open()?;
    args.tasks.check(&session)?;
    if !session.shown.chosen.are_all() {
        bail!("fairness is of tasks, wherever they run: it does not take --cpus");
    }
    let window = session.to.since(session.from).0;
    let interval = args.interval.unwrap_or(Dur(round_step(window / 10)));
    if window / interval.0 > fairness::MOST_INTERVALS {
        bail!("--interval: {} makes more than {} intervals", interval.human(), fairness::MOST_INTERVALS);
    }
    let chosen = args.tasks.chooser();
    let options = Options {
        from: session.from,
        to: session.to,
        zero: session.start,
        by: args.group_by.clone(),
        tasks: args.tasks.is_any().then_some(&chosen),
        weights: args.weights,
        interval,
        worst: args.worst,
    };
    let analysis = || Fairness::new(&options);
    let (report, diagnostics) =
        session.measured(&args.begin, session.page(), options.tasks, args.tasks.forked, analysis)?;
    let text = || fairness::text(&report, &session.drawable, args.rows, args.detail.detail());
    let heading = || session.general_heading(&diagnostics).without_figures(report.selection_unknown.as_deref());
    let figures = |sheet: &Sheet| Ok(fairness::figure(&report, &heading().on(sheet)));
    let document = TraceDocument::of(&session, &report, &diagnostics);
    document.give(
        "fairness",
        &session,
        &args.output,
        Renderings::told(text, figures).with_csv(|out| csv::table(&report, out)),
    )
}

/// Its section in a report; none of some CPUs alone: fairness is of tasks, wherever they run.
pub(crate) fn section(session: &Session) -> MaybeSection<'_> {
    if !session.shown.chosen.are_all() {
        return Ok(None);
    }
    let Session { from, to, start: zero, .. } = *session;
    let interval = Dur(round_step(to.since(from).0 / 10));
    Ok(Some(part(Options { zero, interval, ..Options::new(from, to) }, |options| {
        listed(Fairness::new(options), move |report, page| {
            Ok(ReportSection {
                title: "Fairness".to_owned(),
                figures: fairness::figure(&report, &page.heading()),
                text: fairness::text(&report, &page.session.drawable, 20, Detail::Full),
                json: page.json(&report)?,
            })
        })
    })))
}

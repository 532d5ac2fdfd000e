//! `schedviz fairness`: how evenly CPU time is shared.

mod csv;

use crate::args::{BeginArgs, DetailArgs, TaskArgs, TraceArgs, length};
use crate::document::Document;
use crate::output::{Forms, Gives, OutputArgs};
use anyhow::{Context, Result, bail};
use fairness::{Fairness, GroupBy, Options};
use regex::Regex;
use sched::{Dur, Selected};
use timeline::Sheet;
use timeline::scale::round_step;

/// How evenly CPU time is shared by tasks, commands or groups, and who starves
///
/// For each member its run and wait time, its share against what was to be expected, and its slices;
/// for all together the Gini coefficient, Jain's index and the Lorenz curve; for each interval who got
/// the least; the longest waits with who ran meanwhile, and for how long which CPUs idled.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_args(|argument| GIVES.fit(argument)))]
pub(crate) struct FairnessArgs {
    #[command(flatten)]
    trace: TraceArgs,
    /// Members are each a `task`, a `command` (the kernel's threads for each CPU are one, as ksoftirqd/N), the
    /// children of a `parent`, or what a regular expression catches in the name: its first group, or all of it
    #[arg(long, default_value = "task", value_name = "WHAT")]
    group_by: String,
    /// Expect shares by the weights of the nice values
    #[arg(long)]
    weights: bool,
    /// The length of an interval, such as 1s or 10ms; by default about ten fit
    #[arg(long, value_name = "TIME")]
    interval: Option<String>,
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
const GIVES: Gives = Gives::FIGURE_AND_TEXT.and_table();

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
                                                   the Lorenz curve and slices";

/// Measures and prints.
pub(crate) fn run(args: &FairnessArgs) -> Result<()> {
    args.output.check(GIVES)?;
    args.begin.without_descent(args.tasks.forked, "--forked")?;
    args.begin.without_descent(args.group_by == "parent", "--group-by parent")?;
    let by = match args.group_by.as_str() {
        "task" => GroupBy::Task,
        "command" => GroupBy::Command,
        "parent" => GroupBy::Parent,
        expression => GroupBy::Matched(Regex::new(expression).context("--group-by")?),
    };
    let session = args.trace.open()?;
    args.tasks.check(&session)?;
    if !session.shown.chosen.are_all() {
        bail!("fairness is of tasks, wherever they run: it does not take --cpus");
    }
    let window = session.to.since(session.from).0;
    let interval = match &args.interval {
        Some(text) => length("interval", text)?,
        None => Dur(round_step(window / 10)),
    };
    if window / interval.0 > fairness::MOST_INTERVALS {
        bail!("--interval: {} makes more than {} intervals", interval.human(), fairness::MOST_INTERVALS);
    }
    let chosen = args.tasks.chooser()?;
    let options = Options {
        from: session.from,
        to: session.to,
        zero: session.start,
        by,
        tasks: args.tasks.is_any().then_some(&chosen),
        weights: args.weights,
        interval,
        worst: args.worst,
    };
    let selected = || Selected::new(options.tasks, args.tasks.forked);
    let analyses = || (Fairness::new(&options), selected());
    let outcome = session.follow(&args.begin, session.page(), analyses)?;
    let ((mut report, selection), diagnostics) = (outcome.output, outcome.diagnostics);
    session.why_no_figures(selection, selected)?.into_iter().for_each(|why| report.withhold(why));
    let text = || fairness::text(&report, &session.drawable, args.rows, args.detail.detail());
    let heading = || session.general_heading(&diagnostics).without_figures(report.selection_unknown.as_deref());
    let figures = |sheet: &Sheet| Ok(fairness::figure(&report, &heading().on(sheet)));
    let document = Document::of(&session, &report, &diagnostics);
    document.give(
        "fairness",
        &session,
        &args.output,
        Forms::told(text, figures).with_csv(|out| csv::table(&report, out)),
    )
}

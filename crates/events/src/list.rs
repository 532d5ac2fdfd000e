//! `schedviz list`: events as text.

use crate::args::FlagsColumn;
use crate::choice::Choice;
use crate::listing;
use crate::{run_sums, runs};
use anyhow::Result;
use question::{Answers, Subcommand};
use session::args::{SymbolArgs, TaskArgs, TraceArgs};
use session::formats::{Formats, OutputArgs};
use std::process::ExitCode;

/// List events as text, one per line, in the form of trace-cmd report
///
/// Each task has its most recent command name; --tasks goes by the name at the time of the event.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_args(|argument| TaskArgs::hide_forked(FORMATS.fit(argument))))]
pub struct ListArgs {
    #[command(flatten)]
    pub(crate) trace: TraceArgs,
    /// Only these events: SYSTEM:NAME, with * for any part; several with commas
    #[arg(long, value_name = "SYSTEM:NAME", value_delimiter = ',')]
    pub(crate) events: Vec<String>,
    /// Print a column with the state of the CPU: interrupts off (d), reschedule pending (N; l, L, b, B: lazily, since
    /// 6.13), hard or soft interrupt (h, s, H), depth of disabled preemption and migration; auto: where the recording was
    /// made by a trace-cmd that shows it, 3.3 or later
    #[arg(long, value_enum, value_name = "WHEN", num_args = 0..=1, require_equals = true,
          default_value = "auto", default_missing_value = "always")]
    pub(crate) latency_format: FlagsColumn,
    /// Print the stack below each event that carries one (perf record -g), from the innermost function on; the stacks of a
    /// trace.dat are events of their own, and are printed anyway
    #[arg(long)]
    pub(crate) stacks: bool,
    /// Print a line for each run of a task instead, in the columns of `perf sched timehist --state`: when it ended, how long the
    /// task had been off the CPU before, how much of that on a run queue, and how long it ran
    #[arg(long, conflicts_with_all = ["events", "latency_format", "stacks", "kallsyms"])]
    pub(crate) runs: bool,
    /// With --runs, print a line for each task instead, in the columns of `perf sched timehist --summary`: the number of its runs, their
    /// sum, shortest, mean and longest, its migrations, and its time off the CPU and on run queues
    #[arg(long, requires = "runs")]
    pub(crate) summary: bool,
    #[command(flatten)]
    pub(crate) symbols: SymbolArgs,
    #[command(flatten)]
    pub(crate) tasks: TaskArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// The forms of its output.
const FORMATS: Formats = Formats::LINES;

const EXAMPLES: &str = "\
Examples:
  schedviz list trace.dat --min 1.2 --max 1.21     every event in that time
  schedviz list trace.dat --events sched:sched_migrate_task --tasks '^make'
  schedviz list trace.dat --cpus 40 -o cpu40.txt
  schedviz list trace.dat --runs --tasks '^make'    the runs of make, one by one
  schedviz list trace.dat --runs --summary          a line for each task";

/// The events as text, one per line.
#[derive(Debug)]
pub struct ListCommand;

impl Subcommand for ListCommand {
    const NAME: &'static str = "list";
    const QUESTION: Option<(&'static str, &'static str)> = Some(("When did these events happen?", "TRACE"));
    const ANSWERS: Option<Answers> = Some(Answers::Lines);
    type Args = ListArgs;

    fn run(args: &ListArgs) -> Result<ExitCode> {
        run_list(args).map(|()| ExitCode::SUCCESS)
    }
}

/// Reads and prints.
pub(crate) fn run_list(args: &ListArgs) -> Result<()> {
    let announced = args.output.announced();
    let lines = args.output.lines()?;
    args.tasks.without_forked("list")?;
    let session = if args.runs {
        let session = args.trace.open()?;
        args.tasks.check(&session)?;
        let tasks = args.tasks.chosen(&session)?;
        if args.summary {
            run_sums::summarize(&session, &tasks, lines)?;
        } else {
            runs::list(&session, &tasks, lines)?;
        }
        session
    } else {
        let mut session = args.trace.open_listed()?;
        args.symbols.give(&mut session)?;
        args.tasks.check(&session)?;
        let choice = Choice::listed(&session, &args.events, &args.tasks)?;
        listing::list(&session, &choice, args.latency_format, args.stacks, lines)?;
        session
    };
    announced.iter().for_each(|announced| session.read.message(announced));
    Ok(())
}

//! The arguments of `schedviz stepper`.

use parse::Where;
use session::args::{SymbolArgs, TaskArgs, TraceArgs};
use session::formats::{Formats, OutputArgs};

/// The formats in which the answer can be written.
pub(crate) const FORMATS: Formats = Formats::figure_of("stepper").and_text();

/// Show the run queues of every CPU at one instant, event by event
///
/// A row for each CPU: its running task, a bar, and the tasks that wait there in the order they came.
/// The next event stands under it. Each further event is a page of its own.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_args(|argument| TaskArgs::hide_forked(FORMATS.fit(argument))))]
pub struct StepperArgs {
    #[command(flatten)]
    pub(crate) trace: TraceArgs,
    /// The instant: seconds from the trace's start (1.25), or 150ms, 20us; @ before it: the trace's clock.
    /// Default: the start of the window, or of the trace
    #[arg(long, value_name = "TIME", value_parser = Where::parse, allow_hyphen_values = true)]
    pub(crate) at: Option<Where>,
    #[command(flatten)]
    pub(crate) tool: crate::StepArgs,
    /// Print text in the terminal's width
    #[arg(long, conflicts_with = "tui")]
    pub(crate) text: bool,
    /// Move through the trace with keys; with --events, --tasks or --cpus from one such event to the next
    #[arg(long)]
    pub(crate) tui: bool,
    #[command(flatten)]
    pub(crate) symbols: SymbolArgs,
    #[command(flatten)]
    pub(crate) tasks: TaskArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

const EXAMPLES: &str = "\
Examples:
  schedviz stepper trace.dat --at 1.25             the machine then, as a page
  schedviz stepper trace.dat --at 1.25 --back 5 --steps 10
                                                   sixteen pages, one per event
  schedviz stepper trace.dat --at 1.25 --text      in the terminal
  schedviz stepper trace.dat --tui                 with keys: arrows, n for the
                                                   next violation, / to find
  schedviz stepper trace.dat --events sched:sched_migrate_task --steps 20";

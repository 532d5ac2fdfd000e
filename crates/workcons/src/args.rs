//! The arguments of `schedviz workcons`.

use crate::WaiterArgs;
use sched::Dur;
use session::args::{BeginArgs, DetailArgs, ReadArgs, TaskArgs, WindowArgs, length};
use session::formats::{Format, Formats, OutputArgs};
use session::groups::RunsArgs;
use session::summary::SummaryArgs;

/// The formats in which the answer can be written.
pub(crate) const FORMATS: Formats = Formats::FIGURE_AND_TEXT.and_dialects(&[Format::Ktap, Format::Junit]);

/// How much of the time CPUs idle while tasks wait elsewhere
///
/// Work conservation is violated while some CPU idles, with no task waiting for it, and on another
/// CPU that is busy a task waits. Affinity is in a trace only if record --why recorded its
/// changes: otherwise a task that may not run elsewhere counts as well, unless a machine file
/// beside the trace lists its CPUs or --exclude-tasks leaves it out.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_args(|argument| FORMATS.fit(argument)))]
pub struct WorkconsArgs {
    #[command(flatten)]
    pub(crate) runs: RunsArgs,
    #[command(flatten)]
    pub(crate) waiters: WaiterArgs,
    /// Count only episodes of at least this length, such as 100us or 1ms
    #[arg(long, default_value = "0", value_name = "TIME", value_parser = length)]
    pub(crate) min_episode: Dur,
    /// Count CPUs without any event as idle; they take no part otherwise
    #[arg(long)]
    pub(crate) assume_idle: bool,
    /// Give the violation also with CPUs that run SCHED_IDLE tasks alone as idle ones for all other tasks
    /// [default: idle where the machine file lists such tasks]
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) idle_counts_as: Option<IdleCountsAs>,
    #[command(flatten)]
    pub(crate) detail: DetailArgs,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    #[command(flatten)]
    pub(crate) window: WindowArgs,
    #[command(flatten)]
    pub(crate) begin: BeginArgs,
    #[command(flatten)]
    pub(crate) tasks: TaskArgs,
    /// Exit with 2 if violated more than this percentage of the time, with 3 if losses, or events that were not
    /// recorded, leave it open
    #[arg(long, value_name = "PERCENT", conflicts_with = "fast_window", help_heading = "Verdict")]
    pub(crate) max_violation: Option<f64>,
    /// Trust no run of which more than this percentage of CPU time is unknown, or of events is missing without a mark
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, help_heading = "Verdict")]
    pub(crate) max_loss: f64,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) summary: SummaryArgs,
}

/// The treatment of CPUs that run `SCHED_IDLE` tasks alone
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum IdleCountsAs {
    /// Busy, like a CPU that runs any other task
    Busy,
    /// Idle for tasks of other policies, in two figures beside the usual ones
    Idle,
}

const EXAMPLES: &str = "\
Examples:
  schedviz workcons trace.dat                      the report of one run
  schedviz workcons trace.dat -o violation.pdf     violation over time, drawn
  schedviz workcons --group old='old.*.dat' --group new='new.*.dat'
  schedviz workcons trace.dat --min-episode 1ms --max-violation 5
                                                   for a regression job
  git bisect run sh -c \\
      'make && ./record && schedviz workcons -q trace.dat --max-violation 5'";

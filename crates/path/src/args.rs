//! The arguments of `schedviz path`.

use membership::TasksBy;
use session::args::{BeginArgs, HostArgs, SymbolArgs, TraceArgs};
use session::formats::{Formats, OutputArgs};

/// The formats in which the answer can be written.
pub(crate) const FORMATS: Formats = Formats::FIGURE_AND_TEXT;

/// The critical path of the traced command: what its elapsed time consists of
///
/// The path is followed back from the exit of the task. The task that ended a sleep explains it, back to where the sleep
/// began; a sleep that an interrupt ended is sleeping. Queued time on the path is the most that a scheduler could have saved on it.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_args(|argument| FORMATS.fit(argument)))]
pub struct PathArgs {
    #[command(flatten)]
    pub(crate) trace: TraceArgs,
    #[command(flatten)]
    pub(crate) host: HostArgs,
    /// The task at the end of the path [default: the traced command's first task]
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(i32).range(1..), conflicts_with = "comm")]
    pub(crate) pid: Option<i32>,
    /// The task at the end of the path by its command name: of all tasks with this most recent name the one that exits last
    #[arg(long, value_name = "NAME")]
    pub(crate) comm: Option<String>,
    /// Maximum number of rows to print of each table; the JSON has all
    #[arg(long, default_value_t = 10, value_name = "N")]
    pub(crate) rows: usize,
    /// Maximum number of the longest queued segments to show
    #[arg(long = "worst", alias = "longest", default_value_t = 5, value_name = "N")]
    pub(crate) longest: usize,
    /// Also list the path by these
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) by: Option<TasksBy>,
    /// Print the segments of the path one by one instead, the last N
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "100")]
    pub(crate) segments: Option<usize>,
    #[command(flatten)]
    pub(crate) begin: BeginArgs,
    #[command(flatten)]
    pub(crate) symbols: SymbolArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

const EXAMPLES: &str = "\
Examples:
  schedviz path trace.dat                     of the traced command, to its exit
  schedviz path trace.dat -o path.pdf         the path over what every CPU ran
  schedviz path trace.dat --segments=50       its last 50 segments, one by one
  schedviz path trace.dat --pid 1217          of another task
  schedviz path perf.data --comm make         of the task of this name that exits last
  schedviz path trace.dat --min 3 --max 3.2   the part of it in a window";

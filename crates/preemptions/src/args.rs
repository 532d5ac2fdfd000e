//! The arguments of `schedviz preemptions`.

use membership::RowsBy;
use question::SharedArgs;
use sched::Dur;
use session::args::{DetailArgs, positive_length};
use session::formats::Formats;

/// The formats in which the answer can be written.
pub(crate) const FORMATS: Formats = Formats::FIGURE_AND_TEXT.and_table();

/// How long running tasks kept their CPUs after the kernel asked them to give way
///
/// From the request to reschedule to the switch: immediate or lazy, made immediate by the tick, or ended by a sleep; the
/// origin of the request, the task that ran next and the time for which it had waited. The instant of a request is
/// exact where the probe on it was recorded (record --why); otherwise it has bounds from the flags of the events.
/// A request counts in the window in which it ends. --tasks and the like choose the tasks that were asked.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_args(|argument| FORMATS.fit(argument)))]
pub struct PreemptionsArgs {
    #[command(flatten)]
    pub(crate) shared: SharedArgs,
    /// Rows of the tables: one for each of these
    #[arg(long, value_enum, default_value_t, value_name = "WHAT")]
    pub(crate) by: RowsBy,
    /// The length of the kernel's tick (1000 / CONFIG_HZ); lazy requests that last longer are listed
    #[arg(long, default_value = "4ms", value_name = "TIME", value_parser = positive_length)]
    pub(crate) tick: Dur,
    /// Maximum number of rows to print; the JSON has all
    #[arg(long, default_value_t = 15, value_name = "N")]
    pub(crate) rows: usize,
    /// Number of longest requests of each list to keep, for --verbose and --json
    #[arg(long, default_value_t = 5, value_name = "N")]
    pub(crate) worst: usize,
    #[command(flatten)]
    pub(crate) detail: DetailArgs,
}

const EXAMPLES: &str = "\
Examples:
  schedviz preemptions trace.dat                   kinds, ends and origins
  schedviz preemptions trace.dat --by cpu --verbose
  schedviz preemptions trace.dat --tick 1ms        a kernel with CONFIG_HZ=1000
  schedviz preemptions trace.dat -o preemptions.pdf
                                                   the distributions, drawn
  schedviz preemptions trace.dat --by task -o preemptions.csv
                                                   every task, as a table";

//! The arguments of `schedviz latency`.

use question::SharedArgs;
use session::args::{DetailArgs, SymbolArgs};
use session::formats::Formats;
use session::rows::RowsArgs;

/// The formats in which the answer can be written.
pub(crate) const FORMATS: Formats = Formats::FIGURE_AND_TEXT.and_table();

/// How long tasks wait to run after a wakeup or a preemption, how long they run and sleep
///
/// The wakeup latency is the time from sched_waking (from sched_wakeup, where that was not recorded)
/// until the task is switched in. Percentiles are at most 0.8 % above the true ones; numbers, sums
/// and extremes are exact. An interval counts in the window in which it ends, with its full length; how many began
/// before the window is given apart.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_args(|argument| FORMATS.fit(argument)))]
pub struct LatencyArgs {
    #[command(flatten)]
    pub(crate) shared: SharedArgs,
    #[command(flatten)]
    pub(crate) by: RowsArgs,
    /// Maximum number of rows to print; the JSON has all
    #[arg(long, default_value_t = 15, value_name = "N")]
    pub(crate) rows: usize,
    /// Number of longest waits of each kind to keep, for --verbose and --json
    #[arg(long, default_value_t = 5, value_name = "N")]
    pub(crate) worst: usize,
    #[command(flatten)]
    pub(crate) detail: DetailArgs,
    #[command(flatten)]
    pub(crate) symbols: SymbolArgs,
}

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

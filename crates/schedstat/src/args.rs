//! The arguments of `schedviz schedstat`.

use session::args::ReadArgs;
use session::formats::{Format, Formats, OutputArgs};
use std::path::PathBuf;

/// The formats in which the answer can be written.
pub(crate) const FORMATS: Formats = Formats::TEXT.and_dialects(&[Format::Perf]);

/// Report the change between two copies of /proc/schedstat, as the tables of the task-stealing series
///
/// Reads versions 15, 16 and 17, and those with the fields of the series. Statistics must have been on
/// (sysctl kernel.sched_schedstats=1). The elapsed time is not in the file: --elapsed gives it.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_args(|argument| FORMATS.fit(argument)))]
pub struct SchedstatArgs {
    /// /proc/schedstat before the run
    pub(crate) before: PathBuf,
    /// /proc/schedstat after the run
    pub(crate) after: PathBuf,
    /// The two copies of a run to compare with
    #[arg(long, num_args = 2, value_names = ["BEFORE", "AFTER"])]
    pub(crate) base: Vec<PathBuf>,
    /// Elapsed time of the run in seconds
    #[arg(long = "elapsed", alias = "time", value_name = "SECONDS")]
    pub(crate) time: Option<f64>,
    /// Elapsed time of the run of --base in seconds
    #[arg(long = "base-elapsed", alias = "base-time", value_name = "SECONDS", requires = "base")]
    pub(crate) base_time: Option<f64>,
    /// The kernel's CONFIG_HZ: the time is then taken from the jiffies in the files
    #[arg(long, value_name = "N", conflicts_with = "time")]
    pub(crate) hz: Option<f64>,
    /// A line for each CPU
    #[arg(long)]
    pub(crate) per_cpu: bool,
    /// A trace of the same run: its columns beside the counters'
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
}

const EXAMPLES: &str = "\
Examples:
  cat /proc/schedstat >before; time ./benchmark; cat /proc/schedstat >after
  schedviz schedstat before after --elapsed 5.938
  schedviz schedstat before after --elapsed 5.938 \\
      --base old.before old.after --base-elapsed 8.084
  schedviz schedstat before after --base old.before old.after --format perf
                                        the rows of perf sched stats diff
  schedviz schedstat before after --trace trace.dat
                                        with the columns of a trace of the run";

//! The arguments of `schedviz picks`.

use membership::RowsBy;
use question::SharedArgs;
use sched::Dur;
use session::args::{DetailArgs, positive_length};
use session::formats::Formats;

/// The formats in which the answer can be written.
pub(crate) const FORMATS: Formats = Formats::FIGURE_AND_TEXT.and_table();

/// Why the scheduler picked each task of the fair class: deadlines, eligibility and lag
///
/// For each switch the reason: the only task, the earliest eligible deadline, a choice between groups, the buddy of the task
/// that left; picks that no rule explains are listed. By command the lag at the pick, the longest debt, missed
/// deadlines, requested time slices and lengths of runs. Exact where the kernel's numbers were recorded at each switch
/// (record --why=picks); otherwise lags are those of a fluid model, and the reasons are possible ones.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_args(|argument| FORMATS.fit(argument)))]
pub struct PicksArgs {
    #[command(flatten)]
    pub(crate) shared: SharedArgs,
    /// Rows of the table: one for each of these
    #[arg(long, value_enum, default_value_t, value_name = "WHAT")]
    pub(crate) by: RowsBy,
    /// The request of a task that has set none (base_slice_ns); by default that of the machine file, or the kernel's for
    /// this number of CPUs
    #[arg(long, value_name = "TIME", value_parser = positive_length)]
    pub(crate) base_slice: Option<Dur>,
    /// Maximum number of rows to print; the JSON has all
    #[arg(long, default_value_t = 15, value_name = "N")]
    pub(crate) rows: usize,
    /// Number of picks of each list to keep, for --verbose and --json
    #[arg(long, default_value_t = 20, value_name = "N")]
    pub(crate) worst: usize,
    #[command(flatten)]
    pub(crate) detail: DetailArgs,
}

const EXAMPLES: &str = "\
Examples:
  schedviz picks trace.dat                         reasons, lags and debts
  schedviz picks trace.dat --tasks '^redis' --by task --verbose
  schedviz picks trace.dat --tasks '^redis' -o lag.pdf
                                                   the lag over time, by CPU
  schedviz picks trace.dat -o picks.csv            every command, as a table";

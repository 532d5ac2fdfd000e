//! The arguments of `schedviz residency`.

use crate::GroupedBy;
use question::SharedArgs;
use session::formats::Formats;

/// The formats in which the answer can be written.
pub(crate) const FORMATS: Formats = Formats::FIGURE_AND_TEXT.and_table();

/// The number of groups that are printed unless another one is asked for.
pub(crate) const ROWS: usize = 16;

/// Show under which last-level caches tasks ran, and how often they left them
///
/// For each process, command or task: the cache under which it ran longest, the share of its run time there, the moves
/// between caches, those that came back at once, and the time beside a busy SMT sibling. The topology of the machine
/// shows the caches: see --topology.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_args(|argument| FORMATS.fit(argument)))]
pub struct ResidencyArgs {
    /// Groups are each a `process`, a `command` or a `task`; by default processes where the trace or the machine file
    /// shows them, else commands
    #[arg(long, value_enum, value_name = "WHAT", hide_possible_values = true)]
    pub(crate) by: Option<GroupedBy>,
    /// Maximum number of groups to print; the JSON has all
    #[arg(long, default_value_t = ROWS, value_name = "N")]
    pub(crate) rows: usize,
    #[command(flatten)]
    pub(crate) shared: SharedArgs,
}

const EXAMPLES: &str = "\
Examples:
  schedviz residency trace.dat --topology cpus.json
  schedviz residency trace.dat --forked --by task
  schedviz residency trace.dat -o residency.pdf
                                             a lane for each cache
  schedviz residency trace.dat -o groups.csv every group, as a table";

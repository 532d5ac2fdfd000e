//! The arguments of `schedviz neighbours`.

use crate::By;
use question::SharedArgs;
use session::formats::Formats;

/// The formats in which the answer can be written.
pub(crate) const FORMATS: Formats = Formats::FIGURE_AND_TEXT.and_table();

/// The number of pairs and of groups that are printed unless another one is asked for.
pub(crate) const ROWS: usize = 16;

/// Show which tasks ran while others waited on the same CPU: a matrix of victims and culprits
///
/// The waiting of all tasks is divided by the task, the interrupts or the idle task that occupied the CPU meanwhile, in task·seconds,
/// and so are the preemptions. Time for which a cgroup's own limit throttled its tasks stands apart.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_args(|argument| FORMATS.fit(argument)))]
pub struct NeighboursArgs {
    /// Victims and culprits are each a `cgroup`, a `command`, a `process`, or the `application` against the others; by
    /// default cgroups where tasks of more than one are known, else commands. --tasks and its like select the victims
    #[arg(long, value_enum, value_name = "WHAT", hide_possible_values = true)]
    pub(crate) by: Option<By>,
    /// Maximum number of pairs and of groups to print and to draw; the JSON has all
    #[arg(long, default_value_t = ROWS, value_name = "N")]
    pub(crate) rows: usize,
    #[command(flatten)]
    pub(crate) shared: SharedArgs,
}

const EXAMPLES: &str = "\
Examples:
  schedviz neighbours trace.dat
  schedviz neighbours trace.dat --by command --tasks '^nginx'
                                             the culprits of nginx
  schedviz neighbours trace.dat --by application -o neighbours.pdf
                                             a heat map
  schedviz neighbours trace.dat -o pairs.csv every pair, as a table";

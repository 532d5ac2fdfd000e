//! The arguments of `schedviz wakers`.

use crate::{EdgeWeight, PartiesBy};
use question::SharedArgs;
use session::formats::Formats;

/// The formats in which the answer can be written.
pub(crate) const FORMATS: Formats = Formats::FIGURE_AND_TEXT.and_table();

/// The number of edges that are drawn unless another one is asked for.
pub(crate) const DRAWN: u16 = 40;

/// The wakeups of each command by each other, and the pairs that wake each other
///
/// Each edge has the number of wakeups, the time that the woken tasks slept before and waited after, and the caches of
/// the two CPUs. A wakeup counts in the window in which the woken task runs. Wakeups from interrupts are kept apart: the
/// trace shows the task that was interrupted, and no waker. --tasks and the like choose the woken tasks.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_args(|argument| FORMATS.fit(argument)))]
pub struct WakersArgs {
    #[command(flatten)]
    pub(crate) shared: SharedArgs,
    /// Nodes of the graph: one for each of these
    #[arg(long, value_enum, default_value_t, value_name = "WHAT")]
    pub(crate) by: PartiesBy,
    /// Join the wakeups by the futex at which the woken task slept, where syscalls:sys_enter_futex was recorded
    #[arg(long)]
    pub(crate) futex: bool,
    /// Order of the edges, and the choice of those that are drawn
    #[arg(long, value_enum, default_value_t, value_name = "WHAT")]
    pub(crate) weight: EdgeWeight,
    /// Maximum number of edges to draw, the heaviest ones
    #[arg(long, default_value_t = DRAWN, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=200))]
    pub(crate) edges: u16,
    /// Maximum number of rows to print; the JSON has all
    #[arg(long, default_value_t = 15, value_name = "N")]
    pub(crate) rows: usize,
}

const EXAMPLES: &str = "\
Examples:
  schedviz wakers trace.dat                        edges and pairs, by command
  schedviz wakers trace.dat --by task --weight waited
  schedviz wakers trace.dat --by cgroup            wakeups between containers
  schedviz wakers trace.dat --futex                by address, where recorded with
                                                   -e syscalls:sys_enter_futex
  schedviz wakers trace.dat -o wakers.pdf          the graph, drawn in layers
  schedviz wakers trace.dat -o wakers.csv          every edge, as a table
  schedviz wakers trace.dat --topology lscpu.json
                                                   same or other cache
                                                   (lscpu -e -J > lscpu.json)";

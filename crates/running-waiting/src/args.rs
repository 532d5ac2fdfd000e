//! The arguments of `schedviz running-waiting`.

use crate::Per;

use question::SharedArgs;
use session::formats::Formats;

/// The formats in which the answer can be written.
pub(crate) const FORMATS: Formats = Formats::figure_of("running-waiting").and_table();

/// Draw running and waiting tasks over time
///
/// A green line shows the tasks that run, a red one those that run or wait, a dotted one the CPUs
/// that are online. Red above green below the dotted line: tasks wait while CPUs idle.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_args(|argument| FORMATS.fit(argument)))]
pub struct RunningWaitingArgs {
    #[command(flatten)]
    pub(crate) shared: SharedArgs,
    /// One panel for each node or last-level cache (needs --topology)
    #[arg(long = "by", alias = "per", value_enum, value_name = "WHAT")]
    pub(crate) per: Option<Per>,
    /// Draw the length of each CPU's run queue below, one row per CPU
    #[arg(long)]
    pub(crate) per_cpu: bool,
}

const EXAMPLES: &str = "\
Examples:
  schedviz running-waiting trace.dat               as trace.running-waiting.pdf
  schedviz running-waiting trace.dat --forked --per-cpu
                                                   the traced command, and the
                                                   run queue of each CPU
  schedviz running-waiting trace.dat --by node --topology cpus.json
  schedviz running-waiting trace.dat -o series.csv
                                                   for another program";

//! The arguments of `schedviz findings`.

use session::args::TraceArgs;
use session::formats::{Formats, OutputArgs};

/// The formats in which the answer can be written.
pub(crate) const FORMATS: Formats = Formats::TEXT;

/// The main findings about a trace in at most eight sentences, the costliest first
///
/// Each finding has its numbers, its cost in time, its certainty, and the command that looks closer. The cost is time on the
/// critical path of the traced command where the trace shows that path, else CPU time lost. Costs overlap: they do not add up.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_args(|argument| FORMATS.fit(argument)))]
pub struct FindingsArgs {
    #[command(flatten)]
    pub(crate) trace: TraceArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

const EXAMPLES: &str = "\
Examples:
  schedviz findings trace.dat                 begin with this
  schedviz findings trace.dat --min 3 --max 3.2
                                              about a window
  schedviz findings perf.data --json          as JSON";

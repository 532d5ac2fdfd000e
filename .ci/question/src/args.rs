//! The arguments of `schedviz sample`.

use question::SharedArgs;
use session::formats::Formats;

/// The formats in which the answer can be written.
pub(crate) const FORMATS: Formats = Formats::TEXT.and_table();

// todo(sample): the description, the options and the examples.
/// The switches to tasks on each CPU
///
/// A switch to the idle task is none. --tasks and the like choose the tasks to which switches are counted.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_args(|argument| FORMATS.fit(argument)))]
pub struct SampleArgs {
    #[command(flatten)]
    pub(crate) shared: SharedArgs,
}

const EXAMPLES: &str = "\
Examples:
  schedviz sample trace.dat
  schedviz sample trace.dat -o rows.csv            every CPU, as a table";

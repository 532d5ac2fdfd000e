//! The arguments of `schedviz plot`.

use session::args::{ReadArgs, WindowArgs};
use session::formats::{Formats, OutputArgs};
use std::path::PathBuf;

/// The formats in which the answer can be written.
pub(crate) const FORMATS: Formats = Formats::figure_of("plot").and_text().and_table();

/// Draw a figure of any events, by a specification of your own
///
/// A specification is a TOML file with four kinds of tables: `interval` draws bars from an event to the next one that
/// agrees with it, `point` markers, `series` lines under the rows; `lanes` defines the rows. --list shows the
/// specifications that come with the program, --explain the content of a figure, and --print a specification, to be
/// copied and changed.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_args(|argument| FORMATS.fit(argument)))]
pub struct PlotArgs {
    /// The specification: a file, or the name of one that comes with the program
    #[arg(value_name = "SPEC", required_unless_present_any = ["list", "schema"])]
    pub(crate) spec: Option<String>,
    /// The recording: a trace.dat, a perf.data, a Perfetto trace or a printed one
    #[arg(value_name = "TRACE", required_unless_present_any = ["list", "explain", "print", "schema"])]
    pub(crate) path: Option<PathBuf>,
    /// List the specifications that come with the program
    #[arg(long, conflicts_with_all = ["spec", "explain", "print"])]
    pub(crate) list: bool,
    /// Print what the figure shows, in sentences, and draw nothing
    #[arg(long)]
    pub(crate) explain: bool,
    /// Print the specification, and draw nothing
    #[arg(long, conflicts_with = "explain")]
    pub(crate) print: bool,
    /// Print the JSON schema of specifications, by which an editor completes and checks them
    #[arg(long, conflicts_with_all = ["spec", "list", "explain", "print"])]
    pub(crate) schema: bool,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    #[command(flatten)]
    pub(crate) window: WindowArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

const EXAMPLES: &str = "\
Examples:
  schedviz plot --list
  schedviz plot irq trace.dat                interrupts, as trace.plot.pdf
  schedviz plot locks --explain                 what that figure would show
  schedviz plot locks --print > mine.toml       a specification of your own
  schedviz plot mine.toml trace.dat --min 1.2 --max 1.3 -o mine.svg
  schedviz plot mine.toml trace.dat -o intervals.csv";

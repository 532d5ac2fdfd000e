//! The arguments of `schedviz dat2graph`.

use lanes::{ColorBy, LanesOf};
use session::args::{HostArgs, TaskArgs, TraceArgs};
use session::formats::{Formats, OutputArgs};

/// The formats in which the answer can be written.
pub(crate) const FORMATS: Formats = Formats::figure_of("dat2graph").and_table();

/// Draw what every CPU ran at every moment
///
/// Time runs from left to right, each CPU has a lane. A colour stands for a task, a gap is an idle CPU,
/// hatching a time of which nothing is known because events were lost, a line a time that it was offline.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_args(|argument| FORMATS.fit(argument)))]
pub struct Dat2graphArgs {
    #[command(flatten)]
    pub(crate) trace: TraceArgs,
    #[command(flatten)]
    pub(crate) host: HostArgs,
    /// Colour tasks by this property [default: pid; command where a trace has more than 64 CPUs and more tasks than colours]
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) color_by: Option<ColorBy>,
    /// Draw a lane for each of these, with the shares of its CPUs' time [default: cpu; where more than 64 CPUs are drawn,
    /// the finest of core, llc and node that makes at most 64 lanes by the topology]
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) lanes: Option<LanesOf>,
    /// Colour only this command, all others dark grey; migration/N stands for that of every CPU
    #[arg(long, value_name = "COMMAND")]
    pub(crate) target: Option<String>,
    /// Mark these events, as SYSTEM:NAME with * for any part; separate several by commas
    #[arg(long, value_name = "SYSTEM:NAME", value_delimiter = ',')]
    pub(crate) events: Vec<String>,
    /// Show each CPU's frequency in a second band (from power:cpu_frequency)
    #[arg(long)]
    pub(crate) frequency: bool,
    /// Draw the critical path of the traced command over the CPUs in pale grey, as schedviz path does
    #[arg(long = "path", conflicts_with_all = ["target", "events", "frequency"])]
    pub(crate) draw_path: bool,
    /// Draw the critical path to the exit of this task
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(i32).range(1..),
          conflicts_with_all = ["target", "events", "frequency"])]
    pub(crate) path_to: Option<i32>,
    /// Draw wakeups: an arrow from the waking to the run queue, a line from there to the first run; bars where they are
    /// too many. --tasks, --pid and --cpus choose woken tasks and CPUs
    #[arg(long, conflicts_with_all = ["draw_path", "path_to", "target", "forked"])]
    pub(crate) wakeups: bool,
    #[command(flatten)]
    pub(crate) tasks: TaskArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

const EXAMPLES: &str = "\
Examples:
  schedviz dat2graph trace.dat                     as trace.dat2graph.pdf
  schedviz dat2graph trace.dat --min 3 --max 3.2   a fifth of a second of it
  schedviz dat2graph trace.dat --target ua -o ua.svg
                                                   one command in colour
  schedviz dat2graph trace.dat --color-by class --forked
                                                   the traced command's tasks
  schedviz dat2graph trace.dat --path              its critical path
  schedviz dat2graph trace.dat --lanes node        a lane for each node
  schedviz dat2graph guest.dat --host host.dat     with the time for which the
                                                   host kept each vCPU
  schedviz dat2graph trace.dat --wakeups --cpus 0,3 --min 3 --max 3.001
                                                   arrows of the wakeups
                                                   between two CPUs
  schedviz dat2graph trace.dat -o lanes.csv        every stretch, as a table
  schedviz dat2graph trace.dat --events sched:sched_move_numa,lb:* \\
      --topology cpus.json                         with markers of events";

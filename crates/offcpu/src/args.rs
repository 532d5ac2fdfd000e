//! The arguments of `schedviz offcpu`.

use crate::{OffCpuBy, OffCpuTime};
use question::SharedArgs;
use session::args::SymbolArgs;
use session::formats::{Format, Formats};

/// The formats in which the answer can be written.
pub(crate) const FORMATS: Formats = Formats::FIGURE_AND_TEXT.and_table().and_dialects(&[Format::Lkp]);

/// The time for which tasks were asleep or runnable, by the stack with which they left their CPU
///
/// Stacks are those of sched_switch, and with --by waker those of sched_waking: of schedviz record --stacks, of trace-cmd record -T or a
/// stacktrace trigger, or of perf record -g. Time without a recorded stack is in the row `no stack`, so that the rows together are all the
/// time. Addresses in the kernel have the names of the trace's own kallsyms; those of programs (--user) need the maps of perf, or of
/// trace-cmd record --proc-map.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_args(|argument| FORMATS.fit(argument)))]
pub struct OffCpuArgs {
    #[command(flatten)]
    pub(crate) shared: SharedArgs,
    /// Divide time by the stack of the switch-out, of the waker, or by both
    #[arg(long, value_enum, default_value_t, value_name = "STACK")]
    pub(crate) by: OffCpuBy,
    /// Time that orders the stacks, and that --folded and the figure show
    #[arg(long = "weight", alias = "time", value_enum, default_value_t, value_name = "WHAT")]
    pub(crate) time: OffCpuTime,
    #[command(flatten)]
    pub(crate) symbols: SymbolArgs,
    /// Show the frames of programs as well: functions where the program's file is here with the recorded build ID, else places in the
    /// file, else addresses
    #[arg(long)]
    pub(crate) user: bool,
    /// Print folded stacks in place of the tables: command, functions and nanoseconds, for flame graphs
    #[arg(long)]
    pub(crate) folded: bool,
    /// Maximum number of stacks to print; the JSON has all
    #[arg(long, default_value_t = 15, value_name = "N")]
    pub(crate) rows: usize,
}

const EXAMPLES: &str = "\
Examples:
  sudo schedviz record --stacks -- hackbench       a recording with stacks
  schedviz offcpu trace.dat                        kinds and stacks
  schedviz offcpu trace.dat --tasks '^redis' --weight runnable
  schedviz offcpu trace.dat --by waker             what ends the sleeps
  schedviz offcpu trace.dat --folded > stacks.txt  for other flame graphs
  schedviz offcpu perf.data --format lkp           the keys of LKP's perf-sched
  schedviz offcpu trace.dat -o offcpu.svg          the flame graph";

//! The arguments of `schedviz utilization`.

use membership::TasksBy;
use sched::Dur;
use session::args::{BeginArgs, DetailArgs, TaskArgs, TraceArgs, positive_length};
use session::formats::{Formats, OutputArgs};

/// The formats in which the answer can be written.
pub(crate) const FORMATS: Formats = Formats::FIGURE_AND_TEXT.and_table();

/// Show how the CPUs spend their time, interval by interval, like mpstat
///
/// The classes: the application (what descends from the traced command, or the tasks that are chosen), other tasks, kernel threads, the stopper, real-time and deadline tasks, interrupts where they were recorded;
/// time that is unknown, that a CPU was offline, or that it idled.
/// Two situations are pointed out: CPUs that idle beside overloaded ones for at least the time in which the load
/// balancer should need, and herds of tasks that leave one CPU for one other.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_args(|argument| TaskArgs::hide_forked(FORMATS.fit(argument))))]
pub struct UtilizationArgs {
    #[command(flatten)]
    pub(crate) trace: TraceArgs,
    /// The length of an interval, such as 1s or 10ms; by default about twenty fit
    #[arg(long, value_name = "TIME", value_parser = positive_length)]
    pub(crate) interval: Option<Dur>,
    /// Print a line for each CPU; a table in CSV then has these instead of the intervals
    #[arg(long)]
    pub(crate) per_cpu: bool,
    /// Also list the time of the CPUs by these; a table in CSV then has these instead of the intervals
    #[arg(long, value_parser = TasksBy::of_running(), value_name = "WHAT", conflicts_with = "per_cpu")]
    pub(crate) by: Option<TasksBy>,
    /// Maximum number of rows to print for --by; the JSON has all
    #[arg(long, default_value_t = 15, value_name = "N")]
    pub(crate) rows: usize,
    #[command(flatten)]
    pub(crate) detail: DetailArgs,
    /// Report CPUs that idle for at least this long while others are overloaded
    #[arg(long, value_name = "TIME", default_value = "4ms", value_parser = positive_length)]
    pub(crate) balance_interval: Dur,
    /// The length of the intervals of underload, which count from the trace's start: that of a tick
    #[arg(long, value_name = "TIME", default_value = "4ms", value_parser = positive_length)]
    pub(crate) tick: Dur,
    #[command(flatten)]
    pub(crate) tasks: TaskArgs,
    #[command(flatten)]
    pub(crate) begin: BeginArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

const EXAMPLES: &str = "\
Examples:
  schedviz utilization trace.dat
  schedviz utilization trace.dat --interval 100ms --per-cpu
  schedviz utilization trace.dat --by cgroup
  schedviz utilization trace.dat --tasks '^make|^cc1' -o utilization.pdf";

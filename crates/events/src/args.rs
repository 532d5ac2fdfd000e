//! The arguments of `schedviz events`.

use crate::details::Pattern;
use anyhow::Result;
use regex::Regex;
use sched::Dur;
use session::args::{TaskArgs, TraceArgs, length};
use session::formats::{Formats, OutputArgs};

/// The formats in which the answer can be written.
pub(crate) const FORMATS: Formats = Formats::figure_of("events").and_text().and_table();

/// Show when events happen
///
/// Without --events, all but the ordinary events of the scheduler: its switches, wakeups, migrations,
/// forks, execs and exits, its statistics (sched_stat_*), sched_prepare_exec, sched_wait_task,
/// sched_process_wait, sched_process_free and sched_skip_vma_numa. Where there are no others, all.
///
/// Texts of trace_printk and trace_marker are counted by their words up to the first value. Pairs of texts
/// `B|pid|name` and `E|pid`, or `begin:name` and `end:name`, and the entries and exits of
/// function_graph are drawn as spans, with their count and durations in the text and in JSON.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_args(|argument| TaskArgs::hide_forked(FORMATS.fit(argument))))]
pub struct EventsArgs {
    #[command(flatten)]
    pub(crate) trace: TraceArgs,
    /// Only these events: SYSTEM:NAME, with * for any part; several with commas
    #[arg(long, value_name = "SYSTEM:NAME", value_delimiter = ',')]
    pub(crate) events: Vec<String>,
    /// The command `list`, as it was once spelt
    #[arg(long, hide = true, conflicts_with_all = ["by", "match", "value"])]
    pub(crate) list: bool,
    /// Print a column with the state of the CPU in the lists of --near, as schedviz list does
    #[arg(long, value_enum, value_name = "WHEN", num_args = 0..=1, require_equals = true,
          default_value = "auto", default_missing_value = "always")]
    pub(crate) latency_format: FlagsColumn,
    /// Split kinds by the value of this field
    #[arg(long, value_name = "FIELD")]
    pub(crate) by: Option<String>,
    /// Split kinds by what the named groups of this expression match in an event's text
    #[arg(long, value_name = "REGEX", value_parser = Pattern::parse)]
    pub(crate) r#match: Option<Regex>,
    /// Summarise this value, a field or FIELD=NUMBER in a text, and draw it over time
    #[arg(long, value_name = "FIELD")]
    pub(crate) value: Option<String>,
    /// List what happened on the same CPU around each event: within this time, such as 1ms or 50us
    #[arg(long, value_name = "TIME", value_parser = near, conflicts_with_all = ["by", "match", "value"])]
    pub(crate) near: Option<Dur>,
    /// Draw events per second over time
    #[arg(long, conflicts_with_all = ["list", "value"])]
    pub(crate) rate: bool,
    /// Draw what ran in colour, not in pale grey
    #[arg(long)]
    pub(crate) in_color: bool,
    /// The command `migrations`, as it was once spelt
    #[arg(long, hide = true, conflicts_with_all = ["events", "list", "near", "rate", "by", "match", "value"])]
    pub(crate) balance: bool,
    #[command(flatten)]
    pub(crate) tasks: TaskArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

const EXAMPLES: &str = "\
Examples:
  schedviz events trace.dat                   probes and printed texts, as
                                              trace.events.pdf
  schedviz events trace.dat --events 'lb:*' --cpus 40
                                              the balancer's probes on one CPU
  schedviz events trace.dat --events sched:sched_move_numa --near 1ms
                                              and what happened around each
  schedviz events trace.dat --events lb:load_balance --by moved
  schedviz events trace.dat --events sched:sched_stat_runtime --value runtime";

/// Parses the time of `--near`. A number alone was once one of milliseconds, and is one of seconds elsewhere: it is refused.
fn near(text: &str) -> Result<Dur, String> {
    match text.parse::<f64>() {
        Ok(_) => Err(format!("a unit is missing: {text}ms, {text}us or {text}s")),
        Err(_) => length(text),
    }
}

/// The condition on which lists have a column of flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum FlagsColumn {
    /// The column is printed where the recorder's own report has it.
    #[default]
    Auto,
    /// The column is always printed.
    Always,
    /// The column is never printed.
    Never,
}

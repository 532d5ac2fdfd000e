//! The arguments of `schedviz compare`.

use crate::Limit;
use crate::measures;
use anyhow::Result;
use session::args::{ReadArgs, TaskArgs, WindowArgs};
use session::formats::{Formats, OutputArgs};
use session::groups::GroupArg;
use session::summary::SummaryArgs;
use std::path::PathBuf;
use workcons::WaiterArgs;

/// The formats in which the answer can be written.
pub(crate) const FORMATS: Formats = Formats::FIGURE_AND_TEXT.and_dialects(crate::dialects::DIALECTS);

/// Compare groups of runs: what a patch changed, and whether that is more than noise
///
/// Record the same work several times before and after; five runs a side can separate a change from
/// noise, three hardly. For each metric: the medians (± half the range), the change, the range of
/// changes that a permutation test does not refuse, and its p.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_args(|argument| FORMATS.fit(argument)))]
pub struct CompareArgs {
    /// Folder of schedviz record --runs: each variant is compared with the first
    #[arg(value_name = "FOLDER", conflicts_with_all = ["base", "new", "group"])]
    pub(crate) folder: Option<PathBuf>,
    /// The runs to compare with; * in a file name stands for anything, {} for the parameter of a sweep
    #[arg(long, num_args = 1.., value_name = "FILES", required_unless_present_any = ["group", "folder"], requires = "new")]
    pub(crate) base: Vec<String>,
    /// The runs to judge
    #[arg(long, num_args = 1.., value_name = "FILES", requires = "base")]
    pub(crate) new: Vec<String>,
    /// More groups, each compared with the first: NAME=FILE[,FILE...]. Groups whose names differ in one number are a sweep
    #[arg(long, value_name = "NAME=FILES")]
    pub(crate) group: Vec<GroupArg>,
    /// Exit with 2 if this metric has grown by more than this percentage and that is more than noise, with 3
    /// if it may be noise; may be repeated
    #[arg(long, value_name = "METRIC>N%", value_parser = limit, help_heading = "Verdict")]
    pub(crate) fail_if: Vec<Limit>,
    /// How often noise may pass for a change
    #[arg(long, default_value_t = 0.05, value_name = "P", value_parser = probability, help_heading = "Verdict")]
    pub(crate) alpha: f64,
    /// Leave out runs of which more than this percentage of CPU time is unknown; where more of the events are missing
    /// without a mark there is no violation
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, help_heading = "Verdict")]
    pub(crate) max_loss: f64,
    /// Leave out runs in which tasks outside of the application took more than in the other runs of the group
    #[arg(long, help_heading = "Verdict")]
    pub(crate) exclude_contaminated: bool,
    /// The table as Markdown
    #[arg(long, help_heading = "Output", conflicts_with = "json")]
    pub(crate) markdown: bool,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    #[command(flatten)]
    pub(crate) window: WindowArgs,
    #[command(flatten)]
    pub(crate) waiters: WaiterArgs,
    #[command(flatten)]
    pub(crate) tasks: TaskArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) summary: SummaryArgs,
}

const EXAMPLES: &str = "\
Examples:
  schedviz compare --base old.1.dat old.2.dat --new new.1.dat new.2.dat
  schedviz compare --base 'old.*.dat' --new 'new.*.dat' --markdown
  schedviz compare runs                      the folder of record --runs
  schedviz compare --base 'old.*.dat' --new 'new.*.dat' --forked
                                             the traced command alone
  schedviz compare --base 'old.*.dat' --new 'new.*.dat' --format tip
                                             for a cover letter
  schedviz compare --base 'old-{}g.*.dat' --new 'new-{}g.*.dat'
                                             a sweep: a row for each number {}
  schedviz compare --base 'old.*.dat' --new 'new.*.dat' -o runs.pdf
                                             each run as a point
  schedviz compare --base 'old.*.dat' --new 'new.*.dat' --fail-if 'elapsed>5%'
                                             for a regression job

Metrics for --fail-if: metric (the command's own number, in a folder that has
it), those of a benchmark (hackbench-time, schbench-wakeup-p99; of a rate the
limit is on its fall), elapsed, violation, cpu-time-lost, violation-1ms, waiting and idling (both
in violation), held-back, unbalanced, path-queued, path-beside-idle,
path-held-back, path-shorter, path-alike, missed-steals, missed-steals-llc, missed-steals-idling,
wakeup-p50, wakeup-p99, wakeup-max, wait-p50, wait-p99, wait-max, busy, slice,
sched, idle, wake, steal, migrations, migrations-wakeup, -newidle, -idle,
-periodic, -nohz-idle, -sleepers, -active, -affinity, -exec, -numa, -other;
of runs with probes on requests to reschedule request-p50, request-p99,
request-lazy, request-saved; with those on picks picks, picks-unexplained,
picks-in-spite, picks-late, picks-late-p99.
wakeup is from waking to switch, wait the runqueue wait of a preempted task,
slice the mean run length.

Exit status:
  0  done, or within the limits
  1  error
  2  a limit is exceeded by more than noise
  3  it cannot be judged: the runs are too few or too noisy, or none has the
     metric";

/// Parses a limit of a metric that runs can have.
fn limit(text: &str) -> Result<Limit, String> {
    let metrics = measures::metrics().into_iter().chain(measures::of_path()).map(|(metric, _)| metric);
    Limit::parse(text, &metrics.chain([measures::own_metric().0]).collect::<Vec<_>>())
}

/// Parses a probability that is neither 0 nor 1.
fn probability(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| *number > 0.0 && *number < 1.0);
    number.ok_or_else(|| "a number between 0 and 1 is needed".to_owned())
}

//! The arguments of `schedviz fairness`.

use crate::GroupBy;
use question::SharedArgs;
use regex::Regex;
use sched::Dur;
use session::args::{DetailArgs, positive_length};
use session::formats::Formats;

/// The formats in which the answer can be written.
pub(crate) const FORMATS: Formats = Formats::FIGURE_AND_TEXT.and_table();

/// How evenly CPU time is shared by tasks, commands or groups, and who starves
///
/// For each member its run and wait time, its share against the expected one, and its run lengths;
/// for all together the Gini coefficient, Jain's index and the Lorenz curve; for each interval who got
/// the least; the longest waits with the tasks that ran meanwhile, and for how long which CPUs idled.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_args(|argument| FORMATS.fit(argument)))]
pub struct FairnessArgs {
    #[command(flatten)]
    pub(crate) shared: SharedArgs,
    /// Members are each a `task`, a `command` (names that differ in a number or a random part alone are one, as
    /// ksoftirqd/N), a `process`, a `cgroup`, a set of scheduling `params`, the children of a `parent`, or what a regular
    /// expression catches in the name: its first group, or all of it
    #[arg(long = "by", alias = "group-by", default_value = "task", value_name = "WHAT", value_parser = group_by)]
    pub(crate) group_by: GroupBy,
    /// Expect equal shares, whatever the weights of the nice values
    #[arg(long)]
    pub(crate) equal: bool,
    /// Expect shares by the weights of the nice values, as without this option
    #[arg(long, hide = true, conflicts_with = "equal")]
    pub(crate) weights: bool,
    /// The length of an interval, such as 1s or 10ms; by default about ten fit
    #[arg(long, value_name = "TIME", value_parser = positive_length)]
    pub(crate) interval: Option<Dur>,
    /// Maximum number of members to print; the JSON has all
    #[arg(long, default_value_t = 20, value_name = "N")]
    pub(crate) rows: usize,
    /// Number of longest waits to keep, for --verbose and --json
    #[arg(long, default_value_t = 5, value_name = "N")]
    pub(crate) worst: usize,
    #[command(flatten)]
    pub(crate) detail: DetailArgs,
}

const EXAMPLES: &str = "\
Examples:
  schedviz fairness trace.dat --forked             tasks of the traced command
  schedviz fairness trace.dat --by command
  schedviz fairness trace.dat --by '^(\\w+)-'
                                                   workers by the first part of
                                                   their names
  schedviz fairness trace.dat --forked -o shares.csv
                                                   every member, as a table
  schedviz fairness trace.dat --forked -o shares.pdf
                                                   the Lorenz curve and run lengths";

/// Parses the name of a kind of members, or an expression.
fn group_by(text: &str) -> Result<GroupBy, regex::Error> {
    Ok(match text {
        "task" => GroupBy::Task,
        "command" => GroupBy::Command,
        "process" => GroupBy::Process,
        "cgroup" => GroupBy::Cgroup,
        "params" => GroupBy::Params,
        "parent" => GroupBy::Parent,
        expression => GroupBy::Matched(Regex::new(expression)?),
    })
}

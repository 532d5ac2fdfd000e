//! The arguments of `schedviz whatif`.

use crate::engine::Order;
use crate::policy::PolicyName;
use clap::FromArgMatches;
use regex::Regex;
use sched::Dur;
use session::args::{ReadArgs, WindowArgs, length};
use session::formats::{Formats, OutputArgs};
use session::groups::GroupArg;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The formats in which the answer can be written.
pub(crate) const FORMATS: Formats = Formats::FIGURE_AND_TEXT;

/// The most that any scheduler could gain on the same work, and a forecast for other policies
///
/// The trace becomes work: bursts of CPU time, sleeps, and the wakeups that end them. A bound comes first: no scheduler needs less time for
/// this work. A simulated machine then executes the work under each policy. Where the model of the trace's own policy misses the trace by
/// more than 5 % of the elapsed time, or where the intervals say nothing, there is no forecast, and the exit status is 3.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_args(|argument| FORMATS.fit(argument)))]
pub struct WhatifArgs {
    /// The recordings: one is reported in full, several in a table; a folder of schedviz record --runs stands for its groups
    #[arg(required_unless_present_any = ["group", "predict_from"])]
    pub(crate) traces: Vec<PathBuf>,
    /// Runs that belong together: NAME=FILE[,FILE...]; * in a file name stands for anything
    #[arg(long, value_name = "NAME=FILES")]
    pub(crate) group: Vec<GroupArg>,
    /// Runs of one variant to predict from, beside --measured; * in a file name stands for anything
    #[arg(long, value_name = "FILES", value_delimiter = ',', requires = "measured", conflicts_with_all = ["traces", "group"])]
    pub(crate) predict_from: Vec<String>,
    /// Runs of the other variant, which the predictions are compared with: direction, size, skill, intervals that held
    #[arg(long, value_name = "FILES", value_delimiter = ',', requires = "predict_from")]
    pub(crate) measured: Vec<String>,
    /// The policies to predict: observed, steal=core, steal=cluster, steal=llc, steal=node, steal=machine, steal=none, newidle, newidle=random, nohz,
    /// periodic, several of these such as newidle+nohz+periodic, or ideal [default: observed, steal=llc with a topology, steal=machine, ideal]
    #[arg(long = "under", alias = "policy", value_name = "POLICY", value_delimiter = ',')]
    pub(crate) policy: Vec<PolicyName>,
    /// The order of the run queues where a policy does not follow the trace [default: fair, with fifo in the intervals]
    #[arg(long, value_enum, value_name = "ORDER")]
    pub(crate) queue: Option<Order>,
    /// Time from the decision to steal until the task runs, such as 2us [default: 2us]
    #[arg(long, value_name = "TIME", value_parser = length)]
    pub(crate) steal_cost: Option<Dur>,
    /// Time that new-idle balancing takes for the smallest scheduling domain of a CPU, and for all of them, such as 3us,20us
    /// [default: by the machine file]
    #[arg(long, value_name = "TIME[,TIME]", value_parser = length, value_delimiter = ',')]
    pub(crate) newidle_cost: Vec<Dur>,
    /// Time between the ticks at which nohz and periodic balance: one second / CONFIG_HZ [default: 4ms]
    #[arg(long, value_name = "TIME", value_parser = length)]
    pub(crate) tick: Option<Dur>,
    /// Time by which the next run of a task is longer after a steal within its node [default: by this trace, where it shows
    /// enough migrations; else 0]
    #[arg(long, value_name = "TIME", value_parser = length)]
    pub(crate) migration_cost: Option<Dur>,
    /// Time by which the next run of a task is longer after a steal from another node [default: likewise]
    #[arg(long, value_name = "TIME", value_parser = length)]
    pub(crate) node_migration_cost: Option<Dur>,
    /// Tasks that spin at barriers, by name or command: where their bursts end within 10 us of one another, each is work as far as the
    /// shortest of them, and spinning from there on
    #[arg(long, value_name = "REGEX", value_parser = Regex::new, conflicts_with = "without")]
    pub(crate) spins: Option<Regex>,
    /// Also remove 25, 50, 75 and 100 % of the waiting in violation of an origin, as why names it, and print the elapsed times; without
    /// a name those of the five origins with the most
    #[arg(long, value_name = "ORIGIN", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub(crate) without: Option<String>,
    /// Also write the run as it would have been under the first policy that is not the trace's own as a recording, which every command
    /// reads: schedviz view trace.dat FILE shows both
    #[arg(long, value_name = "FILE", conflicts_with_all = ["group", "predict_from"])]
    pub(crate) as_trace: Option<PathBuf>,
    /// Maximum number of commands whose waits are printed beside those of the model; the JSON has all
    #[arg(long, default_value_t = 5, value_name = "N")]
    pub(crate) rows: usize,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    #[command(flatten)]
    pub(crate) window: WindowArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

impl WhatifArgs {
    /// The arguments that ask for one policy by the usual rules.
    pub(crate) fn of_policy(policy: PolicyName, trace: &Path) -> Result<WhatifArgs, clap::Error> {
        WhatifArgs::of_words(&[OsStr::new(&format!("--under={policy}")), trace.as_os_str()])
    }

    /// The policies that are asked for.
    pub(crate) fn policies(&self) -> impl Iterator<Item = PolicyName> {
        self.policy.iter().map(|policy| self.tick.map_or(*policy, |tick| policy.with_tick(tick)))
    }

    /// The arguments that ask for the usual policies by the usual rules.
    pub(crate) fn usual(trace: &Path) -> Result<WhatifArgs, clap::Error> {
        // The name can begin with a dash.
        WhatifArgs::of_words(&["--".as_ref(), trace.as_os_str()])
    }

    fn of_words(words: &[&OsStr]) -> Result<WhatifArgs, clap::Error> {
        let words = std::iter::once("whatif".as_ref()).chain(words.iter().copied());
        let command = <WhatifArgs as clap::Args>::augment_args(clap::Command::new("whatif"));
        command.try_get_matches_from(words).and_then(|found| WhatifArgs::from_arg_matches(&found))
    }
}

const EXAMPLES: &str = "\
Examples:
  schedviz whatif trace.dat                   the trace's policy, stealing, the ideal
  schedviz whatif trace.dat --under steal=llc --topology lscpu.json
                                              stealing under each last-level cache
                                              (lscpu -e -J > lscpu.json)
  schedviz whatif trace.dat --steal-cost 10us with dear steals
  schedviz whatif trace.dat --json            every number, with its interval
  schedviz whatif trace.dat --under steal=machine -o whatif.pdf
                                              the run as it was, and with stealing
  schedviz whatif trace.dat --under steal=machine --as-trace stolen.dat
                                              then schedviz view trace.dat stolen.dat
  schedviz whatif trace.dat --without         which cause to mend first
  schedviz whatif --group off='off.*.dat'     several runs, and their medians
  schedviz whatif --predict-from 'off.*.dat' --measured 'on.*.dat'
                                              predictions beside measured runs";

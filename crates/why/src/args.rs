//! The arguments of `schedviz why`.

use crate::Grouping;
use anyhow::Result;
use membership::TasksBy;
use parse::Where;
use session::Session;
use session::args::{BeginArgs, HostArgs, ReadArgs, SymbolArgs, TaskArgs, WindowArgs};
use session::formats::{Formats, OutputArgs};
use session::groups::RunsArgs;
use workcons::WaiterArgs;

/// The formats in which the answer can be written.
pub(crate) const FORMATS: Formats = Formats::FIGURE_AND_TEXT;

/// The percentage of CPU time unknown, or of events missing without a mark, above which a run is not to be trusted, if nothing else is asked for.
pub(crate) const MOST_LOSS: f64 = 1.0;

/// Why tasks waited while CPUs idled, and which CPUs went idle beside waiting tasks
///
/// Two tables divide the violation of work conservation, as workcons measures it: the waiting by how each wait began
/// and ended, the idling by how each idle stretch began and ended. A missed steal is a switch to idle while a task
/// waits on another CPU.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_args(|argument| FORMATS.fit(argument)))]
pub struct WhyArgs {
    #[command(flatten)]
    pub(crate) runs: RunsArgs,
    #[command(flatten)]
    pub(crate) waiters: WaiterArgs,
    /// Maximum number of rows to print of each table; the JSON has all
    #[arg(long, default_value_t = 12, value_name = "N")]
    pub(crate) rows: usize,
    /// Also list the waiting by the tasks, or by the CPUs on which they were queued, and the CPUs that idled meanwhile
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) by: Option<By>,
    /// List tasks apart that never left one CPU although they waited there for 100 ms beside idle ones: they seem to be bound
    /// to it, and do not count. A machine file holds the CPUs that tasks may use; this is for traces without one
    #[arg(long)]
    pub(crate) assume_bound: bool,
    /// Estimate at each missed steal whether the gate of new-idle balancing was closed, without probes; needs the costs of the balance in the
    /// machine file
    #[arg(long)]
    pub(crate) gate: bool,
    /// Print one of the longest episodes step by step, 1 for the longest; with -o drawn
    #[arg(long, value_name = "N", conflicts_with_all = ["at", "group"])]
    pub(crate) episode: Option<u32>,
    /// Print the episode at this time step by step; with -o drawn
    #[arg(long, value_name = "TIME", value_parser = Where::parse, allow_hyphen_values = true, conflicts_with = "group")]
    pub(crate) at: Option<Where>,
    /// Maximum number of steps of an episode to print; the JSON has all
    #[arg(long, default_value_t = 100, value_name = "N")]
    pub(crate) steps: usize,
    /// Print the tables as Markdown, for a mail
    #[arg(long)]
    pub(crate) markdown: bool,
    /// Count CPUs without any event as idle; they take no part otherwise
    #[arg(long)]
    pub(crate) assume_idle: bool,
    /// Leave runs out of the medians of their groups of which more than this percentage of CPU time is unknown, or of events is missing
    /// without a mark
    #[arg(long, value_name = "PERCENT", default_value_t = MOST_LOSS)]
    pub(crate) max_loss: f64,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    #[command(flatten)]
    pub(crate) host: HostArgs,
    #[command(flatten)]
    pub(crate) symbols: SymbolArgs,
    #[command(flatten)]
    pub(crate) window: WindowArgs,
    #[command(flatten)]
    pub(crate) begin: BeginArgs,
    #[command(flatten)]
    pub(crate) tasks: TaskArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

const EXAMPLES: &str = "\
Examples:
  schedviz why trace.dat                     both tables, and the missed steals
  schedviz why trace.dat -o why.pdf          drawn, with the violation over time
  schedviz why trace.dat --by command        which commands waited, and where
  schedviz why trace.dat --assume-bound      without tasks that never moved
  schedviz why trace.dat --episode 1         the longest episode, step by step
  schedviz why trace.dat --topology lscpu.json
                                             with distances
                                             (lscpu -e -J > lscpu.json)
  schedviz why trace.dat --forked --min 3 --max 3.2
                                             waiting tasks of the traced
                                             command, in a window
  schedviz why trace.dat --markdown          for a mail
  schedviz why --group on='on.*.dat' --group off='off.*.dat'";

/// The subject of a row.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum By {
    /// Each task alone
    Task,
    /// A row for each command: names that differ in a number or a random part alone share one
    Command,
    /// A row for each process, by the command of its first thread
    Process,
    /// A row for each cgroup
    Cgroup,
    /// A row for each set of scheduling parameters: the policy with the nice value or the priority
    Params,
    /// A row for each stack with which the tasks had left their CPUs: the place at which they slept or gave way
    Stack,
    /// The CPU of the run queue
    Cpu,
    /// The node of the run queue
    Node,
}

impl By {
    /// The rows, with the groups that they are about.
    pub(crate) fn grouping(self, session: &Session) -> Result<Grouping> {
        let groups = |by| Ok(Grouping::Groups(session.task_groups(by)?));
        match self {
            By::Task => Ok(Grouping::Task),
            By::Command => groups(TasksBy::Command),
            By::Process => groups(TasksBy::Process),
            By::Cgroup => groups(TasksBy::Cgroup),
            By::Params => groups(TasksBy::Params),
            By::Stack => groups(TasksBy::Stack),
            By::Cpu => Ok(Grouping::Cpu),
            By::Node => Ok(Grouping::Node),
        }
    }
}

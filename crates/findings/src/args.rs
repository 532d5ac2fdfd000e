//! The arguments of `schedviz findings`.

use session::args::{ApplicationChoice, TraceArgs};
use session::formats::{Formats, OutputArgs};

/// The formats in which the answer can be written.
pub(crate) const FORMATS: Formats = Formats::TEXT;

/// The main findings about a trace in at most eight sentences, the costliest first
///
/// Each finding has its numbers, its cost in time, its certainty, and the command that looks closer. The cost is time on the
/// critical path of the traced command where the trace shows that path, else CPU time lost. Costs overlap: they do not add up.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_args(|argument| FORMATS.fit(argument)))]
pub struct FindingsArgs {
    #[command(flatten)]
    pub(crate) trace: TraceArgs,
    #[command(flatten)]
    application: FindingsApplicationArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// The application that the findings are about
#[derive(Clone, Debug, clap::Args)]
#[group(id = "findings-application", multiple = false, conflicts_with = "application")]
struct FindingsApplicationArgs {
    /// The application is these processes or threads, by number, and what descends from them
    #[arg(long, value_name = "LIST", value_parser = ApplicationChoice::pids, help_heading = "Application")]
    pid: Option<ApplicationChoice>,
    /// The application is the tasks with this name
    #[arg(long, value_name = "NAME", value_parser = ApplicationChoice::comm, help_heading = "Application")]
    comm: Option<ApplicationChoice>,
    /// The application is the tasks whose name or command matches
    #[arg(long, value_name = "REGEX", value_parser = ApplicationChoice::tasks, help_heading = "Application")]
    tasks: Option<ApplicationChoice>,
    /// The application is the tasks of cgroups whose path matches
    #[arg(long, value_name = "REGEX", value_parser = ApplicationChoice::cgroup, help_heading = "Application")]
    cgroup: Option<ApplicationChoice>,
    /// There is no application: costs are those of the machine
    #[arg(long, help_heading = "Application")]
    no_application: bool,
}

impl FindingsArgs {
    /// The trace to be opened, with the application that is asked for.
    pub(crate) fn asked_trace(&self) -> TraceArgs {
        let FindingsApplicationArgs { pid, comm, tasks, cgroup, no_application } = self.application.clone();
        let none = no_application.then_some(ApplicationChoice::None);
        let chosen = none.or(pid).or(comm).or(tasks).or(cgroup);
        let mut trace = self.trace.clone();
        let application = &mut trace.read.application.application;
        *application = chosen.or(application.take());
        trace
    }
}

const EXAMPLES: &str = "\
Examples:
  schedviz findings trace.dat                 begin with this
  schedviz findings trace.dat --min 3 --max 3.2
                                              about a window
  schedviz findings trace.dat --comm postgres about the tasks of this name
  schedviz findings trace.dat --no-application
                                              about the machine, whatever command was traced
  schedviz findings perf.data --json          as JSON";

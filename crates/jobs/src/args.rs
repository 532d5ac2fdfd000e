//! The arguments of `schedviz jobs`.

use question::SharedArgs;
use sched::Dur;
use session::args::positive_length;
use session::formats::Formats;

/// The formats in which the answer can be written.
pub(crate) const FORMATS: Formats = Formats::FIGURE_AND_TEXT.and_table();

/// The jobs of periodic tasks: response times, missed deadlines, and what kept the latest jobs
///
/// A job is the work of a task from a wakeup to its next sleep, and its response time is the time between the two. A task
/// that is woken at even intervals is periodic. Its period is the deadline of its jobs, unless --deadline gives one, which
/// then holds for every chosen task, or record --why has recorded the parameters of a deadline task. A job counts in the window in which it ends.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_args(|argument| FORMATS.fit(argument)))]
pub struct JobsArgs {
    #[command(flatten)]
    pub(crate) shared: SharedArgs,
    /// Deadline of each job after its release, such as 5ms; the period of each periodic task by default
    #[arg(long, value_name = "TIME", value_parser = positive_length)]
    pub(crate) deadline: Option<Dur>,
    /// List the tasks that are not periodic as well
    #[arg(long)]
    pub(crate) all: bool,
    /// Maximum number of late jobs to list
    #[arg(long, default_value_t = 5, value_name = "N")]
    pub(crate) worst: usize,
    /// Maximum number of rows to print; the JSON has all
    #[arg(long, default_value_t = 15, value_name = "N")]
    pub(crate) rows: usize,
}

const EXAMPLES: &str = "\
Examples:
  schedviz jobs trace.dat                          periodic tasks
  schedviz jobs trace.dat --tasks '^control' --deadline 2ms --worst 20
  schedviz jobs trace.dat --all                    every task that slept
  schedviz jobs trace.dat -o jobs.pdf              response times, job by job
  schedviz jobs trace.dat -o jobs.csv              a row for each task";

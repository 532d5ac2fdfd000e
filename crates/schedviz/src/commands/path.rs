//! `schedviz path`: the critical path of the traced command, or of a task.

use crate::args::{BeginArgs, TraceArgs};
use crate::document::Document;
use crate::output::{Forms, Gives, OutputArgs};
use anyhow::{Result, bail};
use critical_path::{CriticalPath, Options};
use sched::Pid;
use serde::Serialize;

/// The critical path of the traced command: what its elapsed time consists of
///
/// The path is followed back from the exit of the task: a sleep that another task ended continues with that task, one
/// that an interrupt ended is sleeping. Queued time on the path is the most that a scheduler could have saved on it.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_args(|argument| GIVES.fit(argument)))]
pub(crate) struct PathArgs {
    #[command(flatten)]
    trace: TraceArgs,
    /// The task at the end of the path [default: the traced command's first task]
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    pid: Option<i32>,
    /// Maximum number of rows to print of each table; the JSON has all
    #[arg(long, default_value_t = 10, value_name = "N")]
    rows: usize,
    /// Maximum number of the longest queued segments to show
    #[arg(long, default_value_t = 5, value_name = "N")]
    longest: usize,
    #[command(flatten)]
    begin: BeginArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// The forms of its output.
const GIVES: Gives = Gives::TEXT;

const EXAMPLES: &str = "\
Examples:
  schedviz path trace.dat                     of the traced command, to its exit
  schedviz path trace.dat --pid 1217          of another task
  schedviz path trace.dat --min 3 --max 3.2   the part of it in a window";

/// The report with its schema.
#[derive(Serialize)]
struct Report<'p> {
    schema: &'static str,
    #[serde(flatten)]
    path: &'p critical_path::Path,
}

/// Finds the path and prints it.
pub(crate) fn run(args: &PathArgs) -> Result<()> {
    args.output.check(GIVES)?;
    args.begin.without_descent(args.pid.is_none(), "the path of the traced command")?;
    let session = args.trace.open()?;
    let pid = args.pid.map(Pid);
    if let Some(pid) = pid {
        session.needs_task("--pid", |found, _| found == pid)?;
    }
    let options = Options { pid, zero: session.start, longest: args.longest };
    let outcome = session.follow(&args.begin, session.window, || CriticalPath::new(options))?;
    let (path, diagnostics) = (outcome.output, outcome.diagnostics);
    if path.task.is_none() && pid.is_none() {
        bail!("{}: the traced command is not in the trace or the window; name a task with --pid", session.name());
    }
    let report = Report { schema: "schedviz/path/1", path: &path };
    let document = Document::of(&session, &report, &diagnostics);
    let text = || critical_path::text(&path, &session.drawable, args.rows);
    document.give("path", &session, &args.output, Forms::words(text))
}

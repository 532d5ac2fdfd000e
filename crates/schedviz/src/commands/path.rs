//! `schedviz path`: the critical path of the traced command, or of a task.

use super::events::over_lanes;
use crate::args::{BeginArgs, TraceArgs};
use crate::document::Document;
use crate::output::{Forms, Gives, OutputArgs};
use crate::session::Session;
use anyhow::{Result, bail};
use critical_path::{CriticalPath, Options, Path};
use dat2graph::Coloring;
use sched::{Comm, Outcome, Pid};
use serde::Serialize;
use std::cell::Cell;
use timeline::Sheet;

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
    /// Print the segments of the path one by one instead, the last N
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "100")]
    segments: Option<usize>,
    #[command(flatten)]
    begin: BeginArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// The forms of its output.
const GIVES: Gives = Gives::FIGURE_AND_TEXT;

const EXAMPLES: &str = "\
Examples:
  schedviz path trace.dat                     of the traced command, to its exit
  schedviz path trace.dat -o path.pdf         the path over what every core ran
  schedviz path trace.dat --segments=50       its last 50 segments, one by one
  schedviz path trace.dat --pid 1217          of another task
  schedviz path trace.dat --min 3 --max 3.2   the part of it in a window";

/// The report with its schema.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Report<'p> {
    /// The name and version of the schema, `schedviz/path/1`.
    schema: &'static str,
    #[serde(flatten)]
    path: &'p Path,
}

/// Finds the path and prints it.
pub(crate) fn run(args: &PathArgs) -> Result<()> {
    args.output.check(GIVES)?;
    args.begin.without_descent(args.pid.is_none(), "the path of the traced command")?;
    let session = args.trace.open()?;
    let outcome = find(&session, &args.begin, args.pid.map(Pid), args.longest)?;
    let (path, diagnostics) = (outcome.output, outcome.diagnostics);
    let report = Report { schema: "schedviz/path/1", path: &path };
    let document = Document::of(&session, &report, &diagnostics);
    let text = || match args.segments {
        Some(most) => critical_path::segments_text(&path, session.start, most),
        None => critical_path::text(&path, &session.drawable, args.rows),
    };
    let figure = |sheet: &Sheet| {
        let ground = Coloring { pale: true, ..Coloring::default() };
        over_lanes(Some(ground), &session, &diagnostics, sheet, |heading, background| {
            critical_path::figure(&path, &session.cores(session.from, session.to), heading, background)
        })
    };
    document.give("path", &session, &args.output, Forms::told(text, figure))
}

/// Finds the path to a task, or to the traced command; refused where the trace does not have that.
pub(super) fn find(session: &Session, begin: &BeginArgs, pid: Option<Pid>, longest: usize) -> Result<Outcome<Path>> {
    let mut command = Comm::EMPTY;
    if let Some(pid) = pid {
        let called = Cell::new(command);
        session.needs_task("--pid", |found, name| {
            let is_it = found == pid;
            called.set(if is_it { name } else { called.get() });
            is_it
        })?;
        command = called.get();
    }
    let options = Options { pid, command, zero: session.start, longest };
    let outcome = session.follow(begin, session.window, || CriticalPath::new(options))?;
    if outcome.output.task.is_none() && pid.is_none() {
        bail!("{}: the traced command is not in the trace or the window; name a task with --pid", session.name());
    }
    Ok(outcome)
}

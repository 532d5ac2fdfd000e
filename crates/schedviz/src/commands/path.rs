//! `schedviz path`: the critical path of the traced command, or of a task.

use super::events::over_lanes;
use anyhow::{Result, bail};
use critical_path::{CriticalPath, Options, Path};
use lanes::Coloring;
use sched::{Comm, Outcome, Pid};
use serde::Serialize;
use session::Session;
use session::args::{BeginArgs, TraceArgs};
use session::document::TraceDocument;
use session::formats::{Formats, OutputArgs, Renderings};
use std::cell::Cell;
use timeline::Sheet;

/// The critical path of the traced command: what its elapsed time consists of
///
/// The path is followed back from the exit of the task: a sleep that another task ended continues with that task, one
/// that an interrupt ended is sleeping. Queued time on the path is the most that a scheduler could have saved on it.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_args(|argument| FORMATS.fit(argument)))]
pub(crate) struct PathArgs {
    #[command(flatten)]
    trace: TraceArgs,
    /// The task at the end of the path [default: the traced command's first task]
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(i32).range(1..), conflicts_with = "comm")]
    pid: Option<i32>,
    /// The task at the end of the path by its command name: of all tasks with this most recent name the one that exits last
    #[arg(long, value_name = "NAME")]
    comm: Option<String>,
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
const FORMATS: Formats = Formats::FIGURE_AND_TEXT;

const EXAMPLES: &str = "\
Examples:
  schedviz path trace.dat                     of the traced command, to its exit
  schedviz path trace.dat -o path.pdf         the path over what every CPU ran
  schedviz path trace.dat --segments=50       its last 50 segments, one by one
  schedviz path trace.dat --pid 1217          of another task
  schedviz path perf.data --comm make         of the task of this name that exits last
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
    args.output.check(FORMATS)?;
    let is_of_command = args.pid.is_none() && args.comm.is_none();
    args.begin.without_descent(is_of_command, "the path of the traced command")?;
    let mut session = args.trace.open()?;
    let outcome = find(&session, &args.begin, (args.pid.map(Pid), args.comm.as_deref()), args.longest)?;
    let (path, diagnostics) = (outcome.output, outcome.diagnostics);
    let hidden = session.shown.only_where_many(|cpu| path.cpus.iter().any(|share| share.of.cpu == cpu));
    let report = Report { schema: "schedviz/path/1", path: &path };
    let document = TraceDocument::of(&session, &report, &diagnostics);
    let text = || match args.segments {
        Some(most) => critical_path::segments_text(&path, session.start, most),
        None => critical_path::text(&path, &session.drawable, args.rows),
    };
    let figure = |sheet: &Sheet| {
        let ground = Coloring { pale: true, ..Coloring::default() };
        over_lanes(Some(ground), &session, &diagnostics, sheet, |heading, background| {
            critical_path::figure(&path, &session.cpu_lanes(session.from, session.to), hidden, heading, background)
        })
    };
    document.give("path", &session, &args.output, Renderings::told(text, figure))
}

/// The most words of a recorder's command line that are looked at.
const WORDS: usize = 16;

/// Finds the path to a task, by its number or its name, or to the traced command; refused where the trace does not have that.
pub(super) fn find(
    session: &Session,
    begin: &BeginArgs,
    (pid, name): (Option<Pid>, Option<&str>),
    longest: usize,
) -> Result<Outcome<Path>> {
    let mut command = name.map(command_name);
    if let Some(pid) = pid {
        let called = Cell::new(None);
        session.needs_task("--pid", |found, name| {
            let is_it = found == pid;
            called.set(if is_it { Some(name) } else { called.get() });
            is_it
        })?;
        command = called.get();
    } else if let Some(command) = command {
        session.needs_task("--comm", |_, name| name == command)?;
    }
    let find = |command| {
        let options = Options { pid, command, zero: session.start, longest };
        session.follow(begin, session.window, || CriticalPath::new(options))
    };
    let outcome = find(command)?;
    if outcome.output.task.is_some() || pid.is_some() {
        return Ok(outcome);
    }
    if let Some(name) = name {
        bail!("{}: no task is called {name:?} in the window; name one with --pid or --comm", session.name());
    }
    if let Some(command) = recorded_command(session) {
        let outcome = find(Some(command))?;
        if outcome.output.task.is_some() {
            return Ok(outcome);
        }
    }
    bail!(
        "{}: the traced command is not in the trace or the window: no exec shows it; name a task with --pid or --comm, or \
         record sched_process_fork, sched_process_exec and sched_process_exit as well",
        session.name()
    )
}

/// The name that the kernel gives a task that executes this program.
fn command_name(program: &str) -> Comm {
    Comm::new(std::path::Path::new(program).file_name().unwrap_or_default().as_encoded_bytes())
}

/// The name of the command that `perf record` started, by its own command line: the word behind `--`, or the first one behind
/// `record` that is the name of a task.
fn recorded_command(session: &Session) -> Option<Comm> {
    let words = &session.trace.origin()?.command;
    let rest = words.iter().skip_while(|word| *word != "record").skip(1);
    if let Some(program) = rest.clone().skip_while(|word| *word != "--").nth(1) {
        return Some(command_name(program));
    }
    let mut names = rest.take(WORDS).filter(|word| !word.starts_with('-')).map(|word| command_name(word));
    names.find(|name| session.needs_task("--comm", |_, found| found == *name).is_ok())
}

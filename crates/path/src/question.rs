//! `schedviz path`: the critical path of the traced command, or of a task.

use crate::PathArgs;
use crate::args::FORMATS;
use crate::by_group::{LatestTraits, PathByGroup, by_group};
use crate::stacks::{self, SleepingAt};
use crate::text::Further;
use crate::vcpus::NotRunning;
use crate::{CriticalPath, Options, Path};
use anyhow::{Result, anyhow, bail};
use lanes::Coloring;
use membership::TasksBy;
use question::{Question, Subcommand};
use sched::pass::Window;
use sched::{Affinity, Comm, Outcome, Pid, Tracepoint, Ts};
use serde::Serialize;
use session::Session;
use session::args::BeginArgs;
use session::document::TraceDocument;
use session::formats::{Formats, Renderings};
use session::over_lanes::over_lanes;
use session::section::{MaybeSection, ReportSection, Unanswered, listed, part};
use session::stacks::{NamedStacks, StackedEvent};
use std::cell::Cell;
use std::process::ExitCode;
use std::sync::Arc;
use timeline::Sheet;

/// The name and version of the document's schema.
const SCHEMA: &str = "schedviz/path/1";

/// The critical path of the traced command, or of a task.
#[derive(Debug)]
pub struct PathQuestion;

impl Subcommand for PathQuestion {
    const NAME: &'static str = "path";
    const FIRST_STEP: Option<(&'static str, &'static str)> = Some(("path trace.dat", "whether it cost time"));
    const QUESTION: Option<(&'static str, &'static str)> = Some(("Did it cost the command time?", "TRACE"));
    type Args = PathArgs;

    fn run(args: &PathArgs) -> Result<ExitCode> {
        run(args).map(|()| ExitCode::SUCCESS)
    }
}

impl Question for PathQuestion {
    const FORMATS: Formats = FORMATS;
    const IN_REPORT: bool = true;

    fn section(session: &Session) -> MaybeSection<'_> {
        let recorded = recorded_command(session);
        if recorded.is_none() && !session.trace.has(Tracepoint::Exec) {
            return Err(Unanswered::because(without_command(session)));
        }
        Ok(Some(part((recorded, session.start, session.affinity.clone()), |(recorded, zero, affinity)| {
            listed(
                || searches(*recorded, *zero, LONGEST, affinity.as_ref()),
                move |mut paths, page| {
                    let session = page.session;
                    search_further(session, session.page(), &mut paths, LONGEST)?;
                    let path = path_of_command(paths);
                    let stacks = NamedStacks::of(&session.trace, &STACKED);
                    let sleeping_at = stacks::sleeping_at(&path, &stacks);
                    let further = Further { tables: stacks::text(&sleeping_at, 10), ..Further::default() };
                    let lanes = session.cpu_lanes(session.from, session.to);
                    let figure =
                        |_| page.over_lanes(|heading, background| crate::figure(&path, &lanes, 0, heading, background));
                    let section = ReportSection {
                        title: "The critical path".to_owned(),
                        figures: path.task.map(figure).into_iter().collect(),
                        text: crate::text(&path, None, &session.drawable, 10, &further),
                        json: page.json(&Report {
                            schema: SCHEMA,
                            path: &path,
                            groups: None,
                            vcpu_not_running: None,
                            sleeping_at: &sleeping_at,
                        })?,
                    };
                    let is_found = path.task.is_some();
                    page.keep(path);
                    if is_found { Ok(section) } else { Err(Unanswered::because(without_command(session))) }
                },
            )
        })))
    }

    #[cfg(feature = "schema")]
    fn schemas() -> Vec<question::NamedSchema> {
        vec![question::schema::<TraceDocument<'static, Report<'static>>>(SCHEMA)]
    }
}

/// The number of the longest queued segments in the section of a report.
const LONGEST: usize = 5;

/// The searches for the path of the traced command: by its exec, and by its name where the recorder's command line has that.
pub type PathSearches = (CriticalPath, Option<CriticalPath>);

/// Makes the searches for the path of the traced command. `recorded`: see [`recorded_command`]; `zero` and `longest`: see [`Options`].
/// The search by name does nothing where an exec shows the command: hardly ever is it needed then, and it costs as much as the other one
/// (see [`search_further`]).
///
/// `affinity`: the CPUs that tasks may use, where they are known.
pub fn searches(recorded: Option<Comm>, zero: Ts, longest: usize, affinity: Option<&Arc<Affinity>>) -> PathSearches {
    let search =
        |command| CriticalPath::new(Options { pid: None, command, zero, longest }).with_affinity(affinity.cloned());
    (search(None), recorded.map(|name| search(Some(name)).standing_aside()))
}

/// The outputs of the [`searches`].
pub type FoundPaths = (Path, Option<Path>);

/// Searches a window by name, in a pass of its own, where the [`searches`] have found nothing: an exec can show a command that has ended before
/// the window, or that has no event in it.
pub fn search_further(session: &Session, window: Window, paths: &mut FoundPaths, longest: usize) -> Result<()> {
    if let (by_exec, Some(by_name)) = paths
        && by_exec.task.is_none()
        && by_name.task.is_none()
        && let Some(name) = recorded_command(session)
    {
        *by_name = search(session, &BeginArgs::default(), window, (None, Some(name)), longest)?.output;
    }
    Ok(())
}

/// Returns the path that the first successful one of the [`searches`] found; without a task where none was successful.
pub fn path_of_command((by_exec, by_name): FoundPaths) -> Path {
    match by_name {
        Some(path) if by_exec.task.is_none() => path,
        _ => by_exec,
    }
}

/// The report with its schema.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Report<'p> {
    /// The name and version of the schema, `schedviz/path/1`.
    schema: &'static str,
    #[serde(flatten)]
    path: &'p Path,
    /// The path by groups of tasks, where `--by` asks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    groups: Option<&'p PathByGroup>,
    /// The time on the path for which the host kept the vCPUs of this guest from running; absent unless `--host` names its recording.
    #[serde(skip_serializing_if = "Option::is_none")]
    vcpu_not_running: Option<NotRunning>,
    /// The sleeping segments by the function at which their tasks slept, the longest first; absent where the trace has no stacks.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    sleeping_at: &'p [SleepingAt],
}

/// Finds the critical path and prints it.
pub(crate) fn run(args: &PathArgs) -> Result<()> {
    args.output.check(FORMATS)?;
    let is_of_command = args.pid.is_none() && args.comm.is_none();
    args.begin.without_descent(is_of_command, "the path of the traced command")?;
    let (session, vcpus) = args.host.open(&args.trace)?;
    let mut session = session.with_judged_command_if(is_of_command)?;
    args.symbols.give(&mut session)?;
    let outcome = find(&session, &args.begin, (args.pid.map(Pid), args.comm.as_deref()), args.longest)?;
    let (path, diagnostics) = (outcome.output, outcome.diagnostics);
    let hidden = session.shown.only_where_many(|cpu| path.cpus.iter().any(|share| share.of.cpu == cpu));
    // The tables have the tasks without being asked.
    let by_group = match args.by.filter(|by| *by != TasksBy::Task) {
        Some(by) => {
            let groups = session.task_groups(by)?;
            let traits = session.follow(&args.begin, session.window, LatestTraits::default)?.output;
            Some(by_group(&path, &traits, &groups))
        }
        None => None,
    };
    let stacks = NamedStacks::of(&session.trace, &STACKED);
    let sleeping_at = stacks::sleeping_at(&path, &stacks);
    let not_running = vcpus.as_ref().map(|vcpus| (NotRunning::of(&path, vcpus), vcpus));
    let report = Report {
        schema: SCHEMA,
        path: &path,
        groups: by_group.as_ref(),
        vcpu_not_running: not_running.map(|(sums, _)| sums),
        sleeping_at: &sleeping_at,
    };
    let document = TraceDocument::of(&session, &report, &diagnostics);
    let text = || match args.segments {
        Some(most) => crate::text::segments_with_stacks(&path, session.start, most, &stacks),
        None => {
            let on_vcpus = not_running.map_or_else(String::new, |(sums, vcpus)| sums.text(&path, vcpus));
            let tables = on_vcpus + &stacks::text(&sleeping_at, args.rows);
            let further = Further { kept: not_running.map(|(sums, _)| sums.kept()), tables };
            session.with_application(crate::text(&path, by_group.as_ref(), &session.drawable, args.rows, &further))
        }
    };
    let figure = |sheet: &Sheet| {
        let ground = Coloring { pale: true, ..Coloring::default() };
        over_lanes(Some(ground), &session, &diagnostics, sheet, |heading, background| {
            crate::figure(&path, &session.cpu_lanes(session.from, session.to), hidden, heading, background)
        })
    };
    document.give("path", &session, &args.output, Renderings::told(text, figure))
}

/// The events at whose stacks tasks slept.
const STACKED: [StackedEvent; 2] = [StackedEvent::Switch, StackedEvent::Waking];

/// The reason why there is no path where no task is named, and the remedies.
const NO_COMMAND: &str = "the traced command is not in the trace or the window: no exec shows it; name a task with --pid or --comm, or \
                          record sched_process_fork, sched_process_exec and sched_process_exit as well";

/// The most words of a recorder's command line that are looked at.
const WORDS: usize = 16;

/// Finds the path to a task, by its number or its name, or to the traced command; refused where the trace does not have that.
pub fn find(
    session: &Session,
    begin: &BeginArgs,
    (pid, name): (Option<Pid>, Option<&str>),
    longest: usize,
) -> Result<Outcome<Path>> {
    if let Some(pid) = pid {
        return find_of_task(session, begin, session.window, pid, longest);
    }
    let command = name.map(command_name);
    if let Some(command) = command {
        session.needs_task("--comm", |_, name| name == command)?;
    }
    if name.is_none() {
        return find_of_command(session, begin, session.window, longest)?
            .map_err(|why| anyhow!("{}: {why}", session.name()));
    }
    let outcome = search(session, begin, session.window, (None, command), longest)?;
    if let (None, Some(name)) = (outcome.output.task, name) {
        bail!("{}: no task is called {name:?} in the window; name one with --pid or --comm", session.name());
    }
    Ok(outcome)
}

/// Finds the path to the task with this number in a window; refused where the trace does not have it.
pub fn find_of_task(
    session: &Session,
    begin: &BeginArgs,
    window: Window,
    pid: Pid,
    longest: usize,
) -> Result<Outcome<Path>> {
    let called = Cell::new(None);
    session.needs_task("--pid", |found, name| {
        let is_it = found == pid;
        called.set(if is_it { Some(name) } else { called.get() });
        is_it
    })?;
    search(session, begin, window, (Some(pid), called.get()), longest)
}

/// Finds the path to the traced command in a window; or the reason for which there is none, with the remedies.
pub fn find_of_command(
    session: &Session,
    begin: &BeginArgs,
    window: Window,
    longest: usize,
) -> Result<Result<Outcome<Path>, String>> {
    let outcome = search(session, begin, window, (None, None), longest)?;
    if outcome.output.task.is_some() {
        return Ok(Ok(outcome));
    }
    if let Some(command) = recorded_command(session) {
        let outcome = search(session, begin, window, (None, Some(command)), longest)?;
        if outcome.output.task.is_some() {
            return Ok(Ok(outcome));
        }
    }
    Ok(Err(without_command(session)))
}

/// Searches a window for the path to a task.
fn search(
    session: &Session,
    begin: &BeginArgs,
    window: Window,
    (pid, command): (Option<Pid>, Option<Comm>),
    longest: usize,
) -> Result<Outcome<Path>> {
    let options = Options { pid, command, zero: session.start, longest };
    let search = || CriticalPath::new(options).with_affinity(session.affinity.clone());
    session.follow_in_pieces(begin, window, search)
}

/// The reason why there is no path where no task is named, and the remedies.
fn without_command(session: &Session) -> String {
    match session.why_no_command() {
        Some(why) => format!(
            "there is no path of the application: {why}; name a task with --pid or --comm, or choose the application with --application"
        ),
        None => NO_COMMAND.to_owned(),
    }
}

/// The name that the kernel gives a task that executes this program.
fn command_name(program: &str) -> Comm {
    Comm::new(std::path::Path::new(program).file_name().unwrap_or_default().as_encoded_bytes())
}

/// The name of the command that `perf record` started, by its own command line: the word behind `--`, or the first one behind
/// `record` that is the name of a task.
pub fn recorded_command(session: &Session) -> Option<Comm> {
    if session.why_no_command().is_some() {
        return None;
    }
    let words = &session.trace.origin()?.command;
    let rest = words.iter().skip_while(|word| *word != "record").skip(1);
    if let Some(program) = rest.clone().skip_while(|word| *word != "--").nth(1) {
        return Some(command_name(program));
    }
    let mut names = rest.take(WORDS).filter(|word| !word.starts_with('-')).map(|word| command_name(word));
    names.find(|name| session.needs_task("--comm", |_, found| found == *name).is_ok())
}

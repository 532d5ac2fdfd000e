//! `schedviz why`: why tasks waited while CPUs idled, for one run in full, for several in a table.

mod episode;

use anyhow::{Result, bail};
use sched::topology::CpuOrder;
use sched::{Chosen, Diagnostics, Pid, SchedState, Task, Ts};
use serde::Serialize;
use session::Session;
use session::args::{BeginArgs, ReadArgs, TaskArgs, WindowArgs, needs_groups, typed};
use session::formats::{Formats, OutputArgs, OutputName, Renderings, json};
use session::groups::GroupArg;
use session::section::{MaybeSection, ReportSection, listed, part};
use session::{groups, several, warnings};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use timeline::{Drawable, Sheet};
use tracedat::Where;
use why::{GroupRow, Grouping, Homes, Probed, Why, WhyReport};
use workcons::Options;
use workcons::WaiterArgs;

/// Why tasks waited while CPUs idled, and which CPUs went idle beside waiting tasks
///
/// Two tables divide the violation of work conservation, as workcons measures it: the waiting by how each wait began
/// and ended, the idling by how each idle stretch began and ended. A missed steal is a switch to idle while a task
/// waits on another CPU.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_args(|argument| FORMATS.fit(argument)))]
pub(crate) struct WhyArgs {
    /// The recordings: one is reported in full, several in a table; a folder of schedviz record --runs stands for its groups
    #[arg(required_unless_present = "group")]
    traces: Vec<PathBuf>,
    /// Runs that belong together: NAME=FILE[,FILE...]; * in a file name stands for anything
    #[arg(long, value_name = "NAME=FILES")]
    group: Vec<GroupArg>,
    #[command(flatten)]
    waiters: WaiterArgs,
    /// Maximum number of rows to print of each table; the JSON has all
    #[arg(long, default_value_t = 12, value_name = "N")]
    rows: usize,
    /// Also list the waiting by task, command, CPU or node: where they were queued, and which CPUs idled meanwhile
    #[arg(long, value_enum, value_name = "WHAT")]
    by: Option<By>,
    /// List tasks apart that never left one CPU although they waited there for 100 ms beside idle ones: they seem to be bound
    /// to it, and do not count. A machine file holds the CPUs that tasks may use; this is for traces without one
    #[arg(long)]
    assume_bound: bool,
    /// Print one of the longest episodes step by step, 1 for the longest; with -o drawn
    #[arg(long, value_name = "N", conflicts_with_all = ["at", "group"])]
    episode: Option<u32>,
    /// Print the episode at this time step by step; with -o drawn
    #[arg(long, value_name = "TIME", value_parser = Where::parse, allow_hyphen_values = true, conflicts_with = "group")]
    at: Option<Where>,
    /// Maximum number of steps of an episode to print; the JSON has all
    #[arg(long, default_value_t = 100, value_name = "N")]
    steps: usize,
    /// Print the tables as Markdown, for a mail
    #[arg(long)]
    markdown: bool,
    /// Count CPUs without any event as idle; they take no part otherwise
    #[arg(long)]
    assume_idle: bool,
    #[command(flatten)]
    read: ReadArgs,
    #[command(flatten)]
    window: WindowArgs,
    #[command(flatten)]
    begin: BeginArgs,
    #[command(flatten)]
    tasks: TaskArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// The subject of a row.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum By {
    /// Each task
    Task,
    /// All tasks of a command
    Command,
    /// The CPU of the run queue
    Cpu,
    /// The node of the run queue
    Node,
}

impl From<By> for Grouping {
    fn from(by: By) -> Grouping {
        match by {
            By::Task => Grouping::Task,
            By::Command => Grouping::Command,
            By::Cpu => Grouping::Cpu,
            By::Node => Grouping::Node,
        }
    }
}

/// The forms of its output.
const FORMATS: Formats = Formats::FIGURE_AND_TEXT;

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

/// The name and the version of the document.
const SCHEMA: &str = "schedviz/why/2";

/// The document of `--json`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Document {
    /// The name and version of the schema, `schedviz/why/2`.
    schema: &'static str,
    /// The runs, in the given order.
    runs: Vec<Run>,
}

/// A run.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Run {
    /// The name of the trace, with folders if needed to distinguish it.
    trace: String,
    /// The group of the run; absent without groups.
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    #[serde(flatten)]
    report: WhyReport,
    /// The losses, repairs and doubts of the trace.
    #[serde(serialize_with = "warnings::rows")]
    #[cfg_attr(test, schemars(with = "Vec<warnings::Row<'static>>"))]
    trust: Diagnostics,
    #[serde(skip)]
    drawable: Drawable,
    /// Its first and last instant, which no other recording shares, under whatever name.
    #[serde(skip)]
    recording: Option<(Ts, Ts)>,
}

/// Measures and prints.
pub(crate) fn run(args: &WhyArgs) -> Result<()> {
    args.output.check(FORMATS)?;
    args.begin.without_descent(args.tasks.forked, "--forked")?;
    args.begin.without_descent(args.waiters.depend_on_descent(&args.tasks), "--waiters application")?;
    let files = groups::files(&args.traces, &args.group)?;
    if files.len() != 1 && (args.episode.is_some() || args.at.is_some()) {
        bail!("--episode and --at need a single trace");
    }
    let (document, session) = measured(args, &files, args.output.wants_file())?;
    let figure = |sheet: &Sheet| match (&session, document.runs.as_slice()) {
        (Some(session), [run]) if run.report.episode.is_some() => {
            run.report.episode.iter().map(|story| episode::figure(session, run, story, sheet)).collect()
        }
        (Some(session), [run]) => {
            let heading = session.general_heading(&run.trust).on(sheet);
            Ok(vec![why::figure(&run.report, session.start, &heading)])
        }
        _ => bail!("the figure shows one run; compare -o draws several"),
    };
    let forms = Renderings::told(|| text(args, &document), figure);
    let first = files.first().map_or(Path::new("why"), |(_, path)| path);
    let origin = session.as_ref().map_or_else(|| OutputName::whole(first), Session::origin);
    args.output.give(&origin, "why", &document, forms, args.read.quiet)
}

/// The section of a report on a folder of `record --runs`.
pub(crate) fn section_of_runs(folder: &Path, read: &ReadArgs, window: &WindowArgs) -> Result<ReportSection> {
    let args = WhyArgs { read: read.clone(), window: window.clone(), ..typed(&[folder.as_os_str()])? };
    let (document, _) = measured(&args, &groups::files(&args.traces, &args.group)?, false)?;
    let title = "Why tasks waited while CPUs idled, in each run".to_owned();
    Ok(ReportSection { title, figures: Vec::new(), text: text(&args, &document), json: json(&document)? })
}

/// Measures the recordings; `drawn`: a single one is kept open, so that it can be drawn.
fn measured(args: &WhyArgs, files: &[(Option<String>, PathBuf)], drawn: bool) -> Result<(Document, Option<Session>)> {
    let names = groups::names(&files.iter().map(|(_, path)| path.as_path()).collect::<Vec<_>>());
    let named: Vec<_> = files.iter().zip(names).collect();
    let single = files.len() == 1;
    let measured = several::measured(&named, &args.read, |((group, path), name), read| {
        let (session, run) = measure(args, read, path, single && drawn)?;
        let run = Run { trace: name.clone(), group: group.clone(), ..run };
        warnings::warn_of((files.len() > 1).then_some(name), &run.trust, read);
        // An open trace holds its indices: only the one that is drawn is kept.
        Ok((Some(session).filter(|_| single), run))
    })?;
    let (sessions, measured): (Vec<Option<Session>>, Vec<Run>) = measured.into_iter().unzip();
    let session = sessions.into_iter().flatten().next();
    let runs = groups::distinct(measured, |run| (run.group.as_ref(), run.recording, &run.trace), &args.read);
    Ok((Document { schema: SCHEMA, runs }, session))
}

/// The document of one run.
fn document(session: &Session, report: &WhyReport, diagnostics: &Diagnostics) -> Document {
    let run = Run {
        trace: session.name(),
        group: None,
        report: report.clone(),
        trust: diagnostics.clone(),
        drawable: session.drawable.clone(),
        recording: None,
    };
    Document { schema: SCHEMA, runs: vec![run] }
}

/// Measures one run; `drawn`: so that it can be drawn.
fn measure(args: &WhyArgs, read: &ReadArgs, path: &Path, drawn: bool) -> Result<(Session, Run)> {
    let session = Session::open(path, read, &args.window)?;
    if let Some(By::Node) = args.by {
        needs_groups(&session.topology, CpuOrder::Node, "--by node")?;
    }
    args.tasks.check(&session)?;
    let (application, excluded) = (args.tasks.chooser(), args.tasks.excluder());
    let mut options = Options {
        cpus: session.shown.chosen.clone(),
        assume_idle: if args.assume_idle { session.silent() } else { Vec::new() },
        zero: session.start,
        waiters: args.waiters.of(&args.tasks),
        topology: session.topology.clone(),
        affinity: session.affinity.as_deref(),
        application: args.tasks.chooses().then_some(&application),
        excluded: excluded.as_ref().map(|excluded| excluded as &Chosen<'_>),
        without_descent: args.begin.fast_window,
        strips: drawn.then_some((session.from, session.to)),
        ..Options::default()
    };
    let by_descent = args.waiters.depend_on_descent(&args.tasks);
    let bound = match args.assume_bound {
        true => assumed_bound(&session, &args.begin, &options)?,
        false => Vec::new(),
    };
    let pids: BTreeSet<Pid> = bound.iter().filter_map(|row| row.pid).collect();
    let besides = options.excluded;
    let without = |task: &Task, state: &SchedState| {
        pids.contains(&task.pid) || besides.is_some_and(|excluded| excluded(task, state))
    };
    if !pids.is_empty() {
        options.excluded = Some(&without);
    }
    let at = episode::instant(args, &session, &options)?;
    let probed = Probed::of(&session);
    let analysis = || Why::new(&options).by(args.by.map(Grouping::from)).with_episode_at(at).with_probes(probed);
    let (mut report, trust) =
        session.measured(&args.begin, session.window, options.application, by_descent, analysis)?;
    if let (Some(at), None, None) = (at, &report.episode, &report.selection_unknown) {
        let seconds = at.0.saturating_sub(session.start.0) as f64 / 1e9;
        bail!("{}: work conservation is not violated at {seconds:.9} s", session.name());
    }
    if args.assume_bound && report.selection_unknown.is_none() {
        report.assumed_bound = Some(bound);
    }
    let (drawable, recording) = (session.drawable.clone(), session.recording());
    let run = Run { trace: session.name(), group: None, report, trust, drawable, recording };
    Ok((session, run))
}

/// The tasks that are assumed to be bound, by a pass of their own.
fn assumed_bound(session: &Session, begin: &BeginArgs, options: &Options<'_>) -> Result<Vec<GroupRow>> {
    let analysis = || (Why::new(options).by(Some(Grouping::Task)), Homes::default());
    let (report, stayed) = session.follow(begin, session.window, analysis)?.output;
    Ok(stayed.bound(report.by.unwrap_or_default()))
}

fn text(args: &WhyArgs, document: &Document) -> String {
    match document.runs.as_slice() {
        [Run { report: WhyReport { episode: Some(story), .. }, drawable, .. }] => {
            why::story_text(story, drawable, args.steps)
        }
        [run] if args.markdown => why::markdown(&run.report, &run.drawable, args.rows),
        [run] => why::text(&run.report, &run.drawable, args.rows),
        runs => table(runs, args.markdown),
    }
}

/// A line for each run, and the medians of each group.
fn table(runs: &[Run], markdown: bool) -> String {
    let mut out = String::new();
    let name = |run: &Run| run.group.as_ref().map_or(run.trace.clone(), |group| format!("{group}: {}", run.trace));
    let mut rows: Vec<(String, [Option<f64>; 5])> = runs.iter().map(|run| (name(run), figures(&run.report))).collect();
    let mut names: Vec<&String> = runs.iter().filter_map(|run| run.group.as_ref()).collect();
    names.dedup();
    for group in names {
        let of_group: Vec<[Option<f64>; 5]> =
            runs.iter().filter(|run| run.group.as_ref() == Some(group)).map(|run| figures(&run.report)).collect();
        let median = |column: usize| {
            let values: Vec<f64> = of_group.iter().filter_map(|row| row[column]).collect();
            (!values.is_empty()).then(|| compare::Spread::of(&values).median)
        };
        rows.push((format!("{group}: median of {}", of_group.len()), std::array::from_fn(median)));
    }
    let heads = ["in violation", "waited", "idled", "missed steals", "within LLC"];
    // Writing to a string cannot fail.
    let _ = match markdown {
        true => writeln!(out, "| run | {} |\n|---|---:|---:|---:|---:|---:|", heads.join(" | ")),
        false => {
            writeln!(out, "{:<28}{:>8}{:>10}{:>10}{:>10}{:>9}", "", "violated", "waited", "idled", "missed", "in LLC")
        }
    };
    for (name, [violated, waited, idled, missed, near]) in rows {
        let cell = |value: Option<f64>, digits: usize, unit: &str| {
            value.map_or("-".to_owned(), |value| format!("{value:.digits$}{unit}"))
        };
        let cells = [
            cell(violated, 2, " %"),
            cell(waited, 3, " s"),
            cell(idled, 3, " s"),
            cell(missed, 0, ""),
            cell(near, 0, ""),
        ];
        let _ = match markdown {
            true => writeln!(out, "| {name} | {} |", cells.join(" | ")),
            false => {
                let [violated, waited, idled, missed, near] = cells;
                writeln!(out, "{name:<28}{violated:>8}{waited:>10}{idled:>10}{missed:>10}{near:>9}")
            }
        };
    }
    out
}

/// The time in violation in percent, the waiting and the idling in violation in seconds, the missed steals, and those
/// within the last-level cache.
fn figures(report: &WhyReport) -> [Option<f64>; 5] {
    let missed = report.missed.as_ref();
    [
        report.violation_percent,
        report.waiting.as_ref().map(|rows| rows.total_ns.seconds()),
        report.idling.as_ref().map(|rows| rows.total_ns.seconds()),
        missed.map(|missed| missed.number as f64),
        missed.and_then(|missed| missed.within_llc).map(|number| number as f64),
    ]
}

/// Its section in a report.
pub(crate) fn section(session: &Session) -> MaybeSection<'_> {
    Ok(Some(part(super::workcons::plain(session), |options| {
        listed(Why::new(options).with_probes(Probed::of(session)), move |report, page| {
            Ok(ReportSection {
                title: "Why tasks waited while CPUs idled".to_owned(),
                figures: vec![why::figure(&report, page.session.start, &page.heading())],
                text: why::text(&report, &page.session.drawable, 12),
                json: json(&document(page.session, &report, page.diagnostics))?,
            })
        })
    })))
}

//! `schedviz why`: why tasks waited while CPUs idled, for one run in full, for several in a table.

use crate::WhyArgs;
use crate::args::By;
use crate::args::{FORMATS, MOST_LOSS};
use crate::asked_episode;
use crate::barred::BarredTasks;
use crate::by_group::{self, BESIDE, GroupOrigins};
use crate::not_running::VcpusNotRunning;
use crate::smaller::{self, SmallerCpus};
use crate::{GateCosts, GroupRow, Grouping, Homes, Probed, Why, WhyReport};
use anyhow::{Context, Result, bail};
use draw::Figure;
use question::{Question, Subcommand};
use sched::nouns::counted;
use sched::topology::CpuOrder;
use sched::{Chosen, Diagnostics, Pid, QueuedSums, SchedState, Task, Ts};
use serde::Serialize;
use session::Session;
use session::args::{BeginArgs, ReadArgs, WindowArgs, needs_groups, repeatable, typed};
use session::ext::{self, ExtScheduler};
use session::formats::{Formats, OutputName, Renderings, headed, json};
use session::heading::{doubts, with_words};
use session::section::{MaybeSection, ReportSection, listed, part};
use session::{groups, several, warnings};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use timeline::page::Heading;
use timeline::{Drawable, Sheet};
use workcons::{Options, Unknown, UnknownParts};

/// Why tasks waited while CPUs idled, and what stealing would have prevented.
#[derive(Debug)]
pub struct WhyQuestion;

impl Subcommand for WhyQuestion {
    const NAME: &'static str = "why";
    const FIRST_STEP: Option<(&'static str, &'static str)> = Some(("why trace.dat", "why it happened"));
    const QUESTION: Option<(&'static str, &'static str)> =
        Some(("Why did tasks wait while CPUs idled, and what would stealing have prevented?", "TRACE"));
    type Args = WhyArgs;

    fn run(args: &WhyArgs) -> Result<ExitCode> {
        run(args).map(|()| ExitCode::SUCCESS)
    }
}

impl Question for WhyQuestion {
    const FORMATS: Formats = FORMATS;
    const IN_REPORT: bool = true;

    fn section(session: &Session) -> MaybeSection<'_> {
        Ok(Some(part(Options::plain(session), move |options| {
            let probed = Probed::of(session);
            listed(
                move || {
                    let unknown = UnknownParts::of(options.cpus.clone());
                    let queued = QueuedSums::new(session.queued(None));
                    let cpus = (SmallerCpus::new(options), BarredTasks::new(options));
                    (Why::new(options).with_probes(probed), cpus, unknown, queued)
                },
                move |(report, (on_smaller_cpu, barred), unknown, queued), page| {
                    let report = WhyReport { on_smaller_cpu, barred, queued, ..report };
                    let document = document(page.session, &report, page.diagnostics, unknown);
                    let section = ReportSection {
                        title: "Why tasks waited while CPUs idled".to_owned(),
                        figures: vec![crate::figure(&report, page.session.start, &page.heading())],
                        text: headed(&document.head(), crate::text(&report, &page.session.drawable, 12)),
                        json: json(&document)?,
                    };
                    page.keep(report);
                    Ok(section)
                },
            )
        })))
    }

    fn section_of_runs(
        folder: &Path,
        read: &ReadArgs,
        window: &WindowArgs,
        _: &Sheet,
    ) -> Result<Option<ReportSection>> {
        let args = WhyArgs { read: read.clone(), window: window.clone(), ..typed(&[folder.as_os_str()])? };
        let (document, _) = measured(&args, &args.runs.files()?, false)?;
        let title = "Why tasks waited while CPUs idled, in each run".to_owned();
        Ok(Some(ReportSection { title, figures: Vec::new(), text: text(&args, &document), json: json(&document)? }))
    }

    #[cfg(feature = "schema")]
    fn schemas() -> Vec<question::NamedSchema> {
        vec![question::schema::<WhyDocument>(SCHEMA)]
    }
}

/// The name and the version of the document.
const SCHEMA: &str = "schedviz/why/2";

/// The document of `--json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct WhyDocument {
    /// The name and version of the schema, `schedviz/why/2`.
    schema: &'static str,
    /// The runs, in the given order.
    runs: Vec<WhyRun>,
    /// The runs that are in no median of their group, each with the reason; absent if there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

/// A run, with its report.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct WhyRun {
    /// The name of the trace, with folders if needed to distinguish it.
    trace: String,
    /// The group of the run; absent without groups.
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    /// The sched_ext scheduler that was loaded; absent if none was.
    #[serde(skip_serializing_if = "Option::is_none")]
    sched_ext: Option<ExtScheduler>,
    /// The reason that the figures of the run are not to be trusted, and are in no median of its group; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    untrusted: Option<String>,
    #[serde(flatten)]
    pub(crate) report: WhyReport,
    /// The losses, repairs and doubts of the trace.
    #[serde(serialize_with = "warnings::rows")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<warnings::Row<'static>>"))]
    pub(crate) trust: Diagnostics,
    /// The application in words, where it is not the traced command with what descends from it alone.
    #[serde(skip)]
    application: Option<String>,
    #[serde(skip)]
    drawable: Drawable,
    /// The first and last instant of the recording, which no other recording shares, under whatever name.
    #[serde(skip)]
    recording: Option<(Ts, Ts)>,
}

/// Measures the recordings and prints the tables.
pub(crate) fn run(args: &WhyArgs) -> Result<()> {
    args.output.check(FORMATS)?;
    args.begin.without_descent(args.tasks.forked, "--forked")?;
    args.begin.without_descent(args.waiters.depend_on_descent(&args.tasks), "--waiters application")?;
    let files = args.runs.files()?;
    if files.len() != 1 && (args.episode.is_some() || args.at.is_some()) {
        bail!("--episode and --at need a single trace");
    }
    if files.len() != 1 && args.host.host.is_some() {
        bail!("--host needs a single trace: the guest's");
    }
    let (document, session) = measured(args, &files, args.output.wants_file())?;
    let figure = |sheet: &Sheet| match (&session, document.runs.as_slice()) {
        (Some(session), [run]) if run.report.episode.is_some() => {
            run.report.episode.iter().map(|story| asked_episode::figure(session, &run.trust, story, sheet)).collect()
        }
        (Some(session), [run]) => {
            let mut heading = session.general_heading(&run.trust).on(sheet);
            heading.warnings.extend(run.untrusted.iter().map(|why| format!("not to be trusted: {why}")));
            Ok(vec![crate::figure(&run.report, session.start, &heading)])
        }
        _ => groups_figure(args, &document, sheet),
    };
    let forms = Renderings::told(|| text(args, &document), figure);
    let first = files.first().map_or(Path::new("why"), |(_, path)| path);
    let origin = session.as_ref().map_or_else(|| OutputName::whole(first), Session::origin);
    args.output.give(&origin, "why", &document, forms, args.read.quiet)
}

/// Measures the recordings. With `drawn` a single one is kept open, so that it can be drawn.
fn measured(
    args: &WhyArgs,
    files: &[(Option<String>, PathBuf)],
    drawn: bool,
) -> Result<(WhyDocument, Option<Session>)> {
    let names = groups::names(&files.iter().map(|(_, path)| path.as_path()).collect::<Vec<_>>());
    let named: Vec<_> = files.iter().zip(names).collect();
    let single = files.len() == 1;
    let measured = several::measured(&named, &args.read, |((group, path), name), read| {
        let (session, run) = measure(args, read, path, single && drawn)?;
        let run = WhyRun { trace: name.clone(), group: group.clone(), ..run };
        warnings::warn_of((files.len() > 1).then_some(name), &run.trust, read);
        // An open trace holds its indices: only the one that is drawn is kept.
        Ok((Some(session).filter(|_| single), run))
    })?;
    let (sessions, measured): (Vec<Option<Session>>, Vec<WhyRun>) = measured.into_iter().unzip();
    let session = sessions.into_iter().flatten().next();
    let runs = groups::distinct(measured, |run| (run.group.as_ref(), run.recording, &run.trace), &args.read);
    Ok((WhyDocument::of(runs), session))
}

/// The document of one run, of which these parts are unknown.
fn document(session: &Session, report: &WhyReport, diagnostics: &Diagnostics, unknown: Unknown) -> WhyDocument {
    let run = WhyRun {
        application: None,
        trace: session.name(),
        group: None,
        sched_ext: session.sched_ext.clone(),
        untrusted: untrusted(session, report, diagnostics, unknown, MOST_LOSS),
        report: report.clone(),
        trust: diagnostics.clone(),
        drawable: session.drawable.clone(),
        recording: None,
    };
    WhyDocument::of(vec![run])
}

/// The reason that a run is not to be trusted, by the rule of `workcons`; nothing where the report has no figures anyway.
fn untrusted(
    session: &Session,
    report: &WhyReport,
    diagnostics: &Diagnostics,
    mut unknown: Unknown,
    most: f64,
) -> Option<String> {
    unknown.add_file(session, diagnostics);
    unknown.why_left_out(most).filter(|_| report.selection_unknown.is_none())
}

impl WhyDocument {
    /// The document of runs, in their groups.
    fn of(runs: Vec<WhyRun>) -> WhyDocument {
        let note = |run: &WhyRun| {
            let (Some(why), Some(_)) = (&run.untrusted, &run.group) else { return None };
            Some(format!("{} is not to be trusted, and is in no median: {why}", run.trace))
        };
        WhyDocument { schema: SCHEMA, notes: runs.iter().filter_map(note).collect(), runs }
    }

    /// The lines for the head of a text about the runs.
    fn head(&self) -> Vec<String> {
        let mut head = match self.runs.as_slice() {
            [run] => doubts(None, &run.trust).into_iter().collect(),
            _ => Vec::new(),
        };
        head.extend(ext::head(self.runs.iter().map(|run| (run.trace.as_str(), run.sched_ext.as_ref()))));
        let line = |run: &WhyRun| {
            let why = run.untrusted.as_ref()?;
            let mark = if self.runs.len() > 1 { MARK } else { "" };
            let in_median = if run.group.is_some() { ", and is in no median" } else { "" };
            Some(format!("{mark}{} is not to be trusted{in_median}: {why}", run.trace))
        };
        head.extend(self.runs.iter().filter_map(line));
        head
    }
}

/// The mark before the name of a run that is not to be trusted, in a table of several.
const MARK: &str = "* ";

/// Measures one run; with `drawn` so that it can be drawn.
fn measure(args: &WhyArgs, read: &ReadArgs, path: &Path, drawn: bool) -> Result<(Session, WhyRun)> {
    let (session, vcpus) = args.host.open_window(path, read, &args.window)?;
    let mut session = session.with_judged_command_if(!args.begin.fast_window)?;
    args.symbols.give(&mut session)?;
    if let Some(By::Node) = args.by {
        needs_groups(&session.topology, CpuOrder::Node, "--by node")?;
    }
    args.tasks.check(&session)?;
    let (application, excluded) = (args.tasks.chooser(&session)?, args.tasks.excluder());
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
        capacities: workcons::capacities(&session),
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
    let at = asked_episode::instant(args, &session, &options)?;
    let probed = Probed::of(&session);
    let grouping = args.by.map(|by| by.grouping(&session)).transpose()?;
    let costs = if args.gate { Some(GateCosts::of(&session).with_context(|| no_costs(&session))?) } else { None };
    let analysis = || {
        let why = Why::new(&options).by(grouping.clone()).with_episode_at(at);
        let why = why.with_probes(probed).with_gate(costs.clone());
        let queued = QueuedSums::new(session.queued(options.application));
        let cpus = (SmallerCpus::new(&options), BarredTasks::new(&options));
        (why, (cpus, UnknownParts::of(options.cpus.clone()), queued))
    };
    let ((mut report, ((smaller, barred), unknown, queued)), trust) =
        session.measured_in_pieces(&args.begin, session.window, options.application, by_descent, analysis)?;
    if let (Some(at), None, None) = (at, &report.episode, &report.selection_unknown) {
        let seconds = at.0.saturating_sub(session.start.0) as f64 / 1e9;
        bail!("{}: work conservation is not violated at {seconds:.9} s", session.name());
    }
    if report.selection_unknown.is_none() {
        (report.on_smaller_cpu, report.barred, report.queued) = (smaller, barred, queued);
    }
    if let Some(vcpus) = vcpus.as_ref().filter(|_| report.selection_unknown.is_none()) {
        let kept = session.follow(&args.begin, session.window, || VcpusNotRunning::new(&options, vcpus))?;
        report.vcpu_not_running = Some(kept.output);
    }
    if args.assume_bound && report.selection_unknown.is_none() {
        report.assumed_bound = Some(bound);
    }
    if let Some(rows) = report.by.as_mut().filter(|_| matches!(args.by, Some(By::Cgroup))) {
        rows.iter_mut().for_each(|row| row.weight = weight(row, &session));
    }
    let (drawable, recording) = (session.drawable.clone(), session.recording());
    let (trace, sched_ext) = (session.name(), session.sched_ext.clone());
    let untrusted = untrusted(&session, &report, &trust, unknown, args.max_loss);
    let application = session.application.clone();
    let run = WhyRun { trace, group: None, sched_ext, untrusted, report, trust, application, drawable, recording };
    Ok((session, run))
}

/// The weight of the cgroup that a row is about, by the machine file.
fn weight(row: &GroupRow, session: &Session) -> Option<u64> {
    let path = row.group.as_ref()?.name.as_deref()?;
    let cgroup = session.machine.as_ref()?.cgroups.iter().find(|cgroup| cgroup.path == path);
    cgroup?.weight()
}

/// The error where the machine file does not have what `--gate` needs.
fn no_costs(session: &Session) -> String {
    format!(
        "{}: --gate needs the costs of new-idle balancing at the start and at the end in the machine file, which schedviz record writes where the kernel shows them (debugfs, sched/domains)",
        session.name()
    )
}

/// The tasks that are assumed to be bound, by a pass of their own.
fn assumed_bound(session: &Session, begin: &BeginArgs, options: &Options<'_>) -> Result<Vec<GroupRow>> {
    let analysis = || (Why::new(options).by(Some(Grouping::Task)), Homes::default());
    let (report, stayed) = session.follow_in_pieces(begin, session.window, analysis)?.output;
    Ok(stayed.bound(report.by.unwrap_or_default()))
}

fn text(args: &WhyArgs, document: &WhyDocument) -> String {
    headed(&document.head(), body(args, document))
}

/// The text without its head.
fn body(args: &WhyArgs, document: &WhyDocument) -> String {
    match document.runs.as_slice() {
        [WhyRun { report: WhyReport { episode: Some(story), .. }, drawable, .. }] => {
            crate::story_text(story, drawable, args.steps)
        }
        [run] if args.markdown => crate::markdown(&run.report, &run.drawable, args.rows),
        [run] => with_words(run.application.as_deref(), crate::text(&run.report, &run.drawable, args.rows)),
        runs => table(runs, args.markdown),
    }
}

/// A line for each run, and the medians of each group.
fn table(runs: &[WhyRun], markdown: bool) -> String {
    let mut out = String::new();
    let name = |run: &WhyRun| {
        let mark = if run.untrusted.is_some() { MARK } else { "" };
        let group = run.group.as_ref().map_or(String::new(), |group| format!("{group}: "));
        format!("{mark}{group}{}", run.trace)
    };
    let mut rows: Vec<(String, [Option<f64>; 5])> = runs.iter().map(|run| (name(run), figures(&run.report))).collect();
    let mut names: Vec<&String> = runs.iter().filter_map(|run| run.group.as_ref()).collect();
    names.dedup();
    for group in names {
        let of_group = || runs.iter().filter(|run| run.group.as_ref() == Some(group));
        let trusted: Vec<[Option<f64>; 5]> =
            of_group().filter(|run| run.untrusted.is_none()).map(|run| figures(&run.report)).collect();
        let median = |column: usize| {
            let values: Vec<f64> = trusted.iter().filter_map(|row| row[column]).collect();
            (!values.is_empty()).then(|| question::Spread::of(&values).median)
        };
        let of = match of_group().count() {
            all if all == trusted.len() => String::new(),
            all => format!(" of {all}"),
        };
        rows.push((format!("{group}: median of {}{of}", trusted.len()), std::array::from_fn(median)));
    }
    let heads = ["in violation", "waited", "idled", "missed steals", "within LLC"];
    // Writing to a string cannot fail.
    let _ = match markdown {
        true => writeln!(out, "| run | {} |\n|---|---:|---:|---:|---:|---:|", heads.join(" | ")),
        false => {
            writeln!(
                out,
                "{:<28}  {:>8}  {:>8}  {:>8}  {:>8}  {:>7}",
                "", "violated", "waited", "idled", "missed", "in LLC"
            )
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
                writeln!(out, "{name:<28}  {violated:>8}  {waited:>8}  {idled:>8}  {missed:>8}  {near:>7}")
            }
        };
    }
    out += &smaller::of_runs(runs.iter().map(|run| (name(run), run.report.on_smaller_cpu.as_deref())), markdown);
    let groups = of_groups(runs);
    if groups.len() > 1 {
        out += &GroupOrigins::of(&groups).text(markdown);
    }
    out
}

/// The reports on the runs of each group that are to be trusted, with its name. Runs without a group are in none.
fn of_groups(runs: &[WhyRun]) -> Vec<(&str, Vec<&WhyReport>)> {
    let mut groups: Vec<(&str, Vec<&WhyReport>)> = Vec::new();
    for run in runs {
        let Some(name) = run.group.as_deref() else { continue };
        let place = groups.iter().position(|(group, _)| *group == name).unwrap_or(groups.len());
        if place == groups.len() {
            groups.push((name, Vec::new()));
        }
        groups[place].1.extend(run.untrusted.is_none().then_some(&run.report));
    }
    groups
}

/// Draws the origins of groups beside each other.
fn groups_figure(args: &WhyArgs, document: &WhyDocument, sheet: &Sheet) -> Result<Vec<Figure>> {
    let groups = of_groups(&document.runs);
    if !(2..=BESIDE).contains(&groups.len()) || args.episode.is_some() {
        bail!("the figure shows one run, or 2 to {BESIDE} groups beside each other; compare -o draws several runs");
    }
    let facts = groups.iter().map(|(name, runs)| format!("{name}: {}", counted(runs.len(), "run")));
    let heading = Heading {
        trace: groups.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", "),
        facts: facts.collect::<Vec<_>>().join(", "),
        warnings: document.notes.clone(),
        command: repeatable(std::env::args_os()),
        sheet: sheet.clone(),
    };
    Ok(vec![by_group::figure(&GroupOrigins::of(&groups), &heading)])
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

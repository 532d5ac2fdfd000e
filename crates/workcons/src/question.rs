//! `schedviz workcons`: one number for a run, a table for several, a verdict for a regression job.

use crate::WorkconsArgs;
use crate::args::FORMATS;
use crate::drawn_run::drawn_run;
use crate::{
    Bounds, KernelLengths, LengthCheck, Limits, Options, Report, ThrottledCgroup, ThrottledCpu, ThrottledTask,
    Throttling, Violation, WorkConservation,
};
use anyhow::Result;
use question::Spread;
use question::{Question, Subcommand};
use sched::probe::CgroupId;
use sched::{Chosen, Cpu, Diagnostics, Dur, Ts, Verdict};
use serde::Serialize;
use session::Session;
use session::args::{BeginArgs, ReadArgs, WindowArgs, repeatable, typed};
use session::formats::{Formats, OutputName, Renderings, json};
use session::section::{MaybeSection, ReportPage, ReportSection, listed, part};
use session::{groups, several, verdict, warnings};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use timeline::text::{Detail, paragraph};
use timeline::{Drawable, Sheet};
use tracedat::FileIssue;

/// How often CPUs idle while tasks wait on others: one number for a run, a table for several, a verdict for a regression job.
#[derive(Debug)]
pub struct WorkconsQuestion;

impl Subcommand for WorkconsQuestion {
    const NAME: &'static str = "workcons";
    const FIRST_STEP: Option<(&'static str, &'static str)> = Some(("workcons trace.dat", "how often that happened"));
    const QUESTION: Option<(&'static str, &'static str)> =
        Some(("How often did that happen, and is it a regression?", "TRACE..."));
    type Args = WorkconsArgs;

    fn run(args: &WorkconsArgs) -> Result<ExitCode> {
        run(args)
    }
}

impl Question for WorkconsQuestion {
    const FORMATS: Formats = FORMATS;
    const SECTION: Option<&'static str> = Some(Self::NAME);

    fn section(session: &Session) -> MaybeSection<'_> {
        section(session)
    }

    fn section_of_runs(
        folder: &Path,
        read: &ReadArgs,
        window: &WindowArgs,
        sheet: &Sheet,
    ) -> Result<Option<ReportSection>> {
        section_of_runs(folder, read, window, sheet).map(Some)
    }

    #[cfg(feature = "schema")]
    fn schemas() -> Vec<question::NamedSchema> {
        vec![question::schema::<WorkconsDocument>("schedviz/workcons/2")]
    }
}

/// The document of `--json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct WorkconsDocument {
    /// The name and version of the schema, `schedviz/workcons/2`.
    schema: &'static str,
    /// The runs, in the given order.
    runs: Vec<WorkconsRun>,
    /// The medians of each group; empty without groups.
    groups: Vec<Group>,
    /// Figures that a run does not have and that are in no median.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    /// The worst verdict; absent without a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<Judged>,
}

/// The worst verdict, with the trace that decides.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Judged {
    /// The name of the trace that decides.
    trace: String,
    #[serde(flatten)]
    verdict: Verdict,
}

impl WorkconsDocument {
    /// The document of runs, in their groups.
    pub(crate) fn of(runs: Vec<WorkconsRun>, limits: &Limits) -> WorkconsDocument {
        let judged =
            |r: &WorkconsRun| Some(Judged { trace: r.trace.clone(), verdict: crate::judge(&r.report, limits)? });
        let verdicts = runs.iter().filter_map(judged);
        let worst = verdicts.reduce(|a, b| if b.verdict.verdict > a.verdict.verdict { b } else { a });
        let by_command = runs.iter().any(|r| r.report.elapsed_is_command);
        let groups = medians(&runs, by_command, limits.loss);
        let notes = if groups.is_empty() { Vec::new() } else { left_out(&runs, by_command, limits.loss) };
        WorkconsDocument { schema: "schedviz/workcons/2", groups, notes, verdict: worst, runs }
    }
}

/// A run, with its report.
#[derive(Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct WorkconsRun {
    /// The name of the trace, with folders if needed to distinguish it.
    trace: String,
    /// The group of the run; absent without groups.
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    #[serde(flatten)]
    report: Report,
    /// The losses, repairs and doubts of the trace.
    trust: Trust,
    #[serde(skip)]
    drawable: Drawable,
    /// The first and last instant of the recording, which no other recording shares, under whatever name.
    #[serde(skip)]
    recording: Option<(Ts, Ts)>,
}

#[derive(Clone, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Trust {
    #[serde(flatten)]
    unknown: crate::Unknown,
    /// CPUs recorded without any event: they are in no figure.
    unobserved: Vec<Cpu>,
    /// A sign that the topology is of another machine; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    doubtful_topology: Option<String>,
    /// The times at which bandwidth control throttled CPUs; absent without probes on it, or if it throttled none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    throttled: Vec<ThrottledCpu>,
    /// The throttled time of all tasks in nanoseconds; absent if the records do not show the cgroups.
    #[serde(skip_serializing_if = "Option::is_none")]
    throttled_task_ns: Option<u64>,
    /// The tasks that were throttled longest, ten at most.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    throttled_tasks: Vec<ThrottledTask>,
    /// The cgroups whose tasks were throttled longest, ten at most.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    throttled_cgroups: Vec<NamedCgroup>,
    /// The line on throttling; none if no CPU was throttled.
    #[serde(skip)]
    throttling: Option<String>,
    /// The kernel's lengths of run queues against those by the events; absent without the probe `nr_running`.
    #[serde(skip_serializing_if = "Option::is_none")]
    run_queue_lengths: Option<KernelLengths>,
    #[serde(serialize_with = "warnings::rows")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<warnings::Row<'static>>"))]
    diagnostics: Diagnostics,
}

/// A cgroup whose tasks were throttled.
#[derive(Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct NamedCgroup {
    /// The path of the cgroup; absent if no machine file has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(flatten)]
    throttled: ThrottledCgroup,
}

/// The medians and the spread of a group's runs.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Group {
    /// The name of the group.
    name: String,
    /// The number of runs.
    runs: usize,
    /// The violation in percent of the time; null if no run has it.
    percent: Option<Spread>,
    /// The CPU time lost, in percent of the CPU time; null if no run has it.
    cpu_time_lost_percent: Option<Spread>,
    /// The elapsed time in seconds; null if no run has it.
    elapsed_s: Option<Spread>,
}

/// The section of a report on a folder of `record --runs`.
pub(crate) fn section_of_runs(
    folder: &Path,
    read: &ReadArgs,
    window: &WindowArgs,
    sheet: &Sheet,
) -> Result<ReportSection> {
    let args = WorkconsArgs { read: read.clone(), window: window.clone(), ..typed(&[folder.as_os_str()])? };
    let (document, _) = judged(&args, &groups::files(&args.traces, &args.group)?, false)?;
    let figures = vec![figure(&document, args.max_loss, sheet)];
    let title = "Work conservation of each run".to_owned();
    Ok(ReportSection { title, figures, text: text(&document, Detail::Brief), json: json(&document)? })
}

/// Measures the runs, prints the numbers, and judges the limits.
pub(crate) fn run(args: &WorkconsArgs) -> Result<ExitCode> {
    args.output.check(FORMATS)?;
    args.begin.without_descent(args.tasks.forked, "--forked")?;
    args.begin.without_descent(args.waiters.depend_on_descent(&args.tasks), "--waiters application")?;
    let files = groups::files(&args.traces, &args.group)?;
    let single = files.len() == 1 && args.output.wants_file();
    let (document, session) = judged(args, &files, single)?;
    let figure = |sheet: &Sheet| match (&session, document.runs.as_slice()) {
        (Some(session), [run]) => Ok(vec![run.run_figure(session, sheet)?]),
        _ => Ok(vec![figure(&document, args.max_loss, sheet)]),
    };
    let forms = Renderings::told(|| text(&document, args.detail.detail()), figure);
    let first = files.first().map_or(Path::new("workcons"), |(_, path)| path);
    let origin = session.as_ref().map_or_else(|| OutputName::whole(first), Session::origin);
    args.output.give(&origin, "workcons", &document, forms, args.read.quiet)?;
    Ok(verdict::report(document.verdict.iter().map(|judged| (&*judged.trace, &judged.verdict))))
}

/// Measures and judges the recordings. With `single` the only one is kept open, so that it can be drawn.
fn judged(
    args: &WorkconsArgs,
    files: &[(Option<String>, PathBuf)],
    single: bool,
) -> Result<(WorkconsDocument, Option<Session>)> {
    let names = groups::names(&files.iter().map(|(_, path)| path.as_path()).collect::<Vec<_>>());
    let named: Vec<_> = files.iter().zip(names).collect();
    let measured = several::measured(&named, &args.read, |((group, path), name), read| {
        let (session, run) = measure(args, read, path, group.clone(), single)?;
        let run = WorkconsRun { trace: name.clone(), ..run };
        warnings::warn_of((files.len() > 1).then_some(name), &run.trust.diagnostics, read);
        // An open trace holds its indices, so that only the one that is drawn is kept.
        Ok((Some(session).filter(|_| single), run))
    })?;
    let (sessions, runs): (Vec<Option<Session>>, Vec<WorkconsRun>) = measured.into_iter().unzip();
    let session = sessions.into_iter().flatten().next();
    let runs = groups::distinct(runs, |run| (run.group.as_ref(), run.recording, &run.trace), &args.read);
    let limits = Limits { violation: args.max_violation, loss: args.max_loss };
    Ok((WorkconsDocument::of(runs, &limits), session))
}

/// Draws the runs of each group by elapsed time; runs without a group are a group of their own.
fn figure(document: &WorkconsDocument, max_loss: f64, sheet: &Sheet) -> draw::Figure {
    let by_command = document.runs.iter().any(|r| r.report.elapsed_is_command);
    let of = |name: Option<&String>| -> Vec<(f64, Option<f64>)> {
        let runs = document.runs.iter().filter(|r| r.group.as_ref() == name);
        let point = |r: &WorkconsRun| {
            let violation = r.violation(max_loss).ok().map(|v| v.percent);
            Some((r.report.elapsed(by_command)?.seconds(), violation))
        };
        runs.filter_map(point).collect()
    };
    let mut groups: Vec<crate::Runs> =
        document.groups.iter().map(|g| crate::Runs { name: g.name.clone(), runs: of(Some(&g.name)) }).collect();
    let rest = of(None);
    if !rest.is_empty() {
        groups.insert(0, crate::Runs { name: "traces".into(), runs: rest });
    }
    let medians = document.groups.iter().map(|g| {
        let of = |spread: Option<Spread>, digits: usize, unit: &str| {
            spread.map_or("unknown".to_owned(), |s| format!("{:.digits$} {unit}", s.median))
        };
        let (elapsed, percent) = (of(g.elapsed_s, 3, "s"), of(g.percent, 2, "%"));
        format!("{}: median {elapsed}, {percent} of the time in violation", g.name)
    });
    let notes = medians.chain(["A bar at the right edge is a group's median.".to_owned()]);
    let notes = notes.chain(left_out(&document.runs, by_command, max_loss)).collect();
    crate::figure("Elapsed time and work conservation", notes, &groups, &repeatable(std::env::args_os()), sheet)
}

/// Measures one run; with `strips` so that it can be drawn.
fn measure(
    args: &WorkconsArgs,
    read: &ReadArgs,
    path: &Path,
    group: Option<String>,
    strips: bool,
) -> Result<(Session, WorkconsRun)> {
    let session = Session::open(path, read, &args.window)?;
    args.tasks.check(&session)?;
    let silent = session.silent();
    let (application, excluded) = (args.tasks.chooser(), args.tasks.excluder());
    let options = Options {
        cpus: session.shown.chosen.clone(),
        assume_idle: if args.assume_idle { silent } else { Vec::new() },
        zero: session.start,
        waiters: args.waiters.of(&args.tasks),
        min_episode: args.min_episode,
        topology: session.topology.clone(),
        affinity: session.affinity.as_deref(),
        application: args.tasks.chooses().then_some(&application),
        excluded: excluded.as_ref().map(|excluded| excluded as &Chosen<'_>),
        strips: strips.then_some((session.from, session.to)),
        throttling: session.records_throttling(),
        without_descent: args.begin.fast_window,
    };
    let by_descent = args.waiters.depend_on_descent(&args.tasks);
    let analysis = || (WorkConservation::new(&options), length_check(&session));
    let (found, diagnostics) =
        session.measured(&args.begin, session.window, options.application, by_descent, analysis)?;
    let run = WorkconsRun { group, ..WorkconsRun::of(&session, &args.begin, &options, found, diagnostics)? };
    Ok((session, run))
}

/// The comparison with the kernel's lengths of run queues, where the trace has them.
fn length_check(session: &Session) -> Option<LengthCheck> {
    session.has_probe("nr_running", "change").then(LengthCheck::default)
}

impl Trust {
    /// The throttling of a run alone.
    fn of(session: &Session, report: &Report) -> Trust {
        let path = |id: CgroupId| session.machine.as_ref()?.cgroup_path(id).map(str::to_owned);
        let throttling = report.throttling.as_ref();
        let cgroup = |throttled: ThrottledCgroup| NamedCgroup { path: path(CgroupId::new(throttled.id)), throttled };
        let cgroups = throttling.map(Throttling::by_cgroup).unwrap_or_default().into_iter();
        Trust {
            throttled: throttling.map(Throttling::by_cpu).unwrap_or_default(),
            throttled_task_ns: throttling.and_then(Throttling::task_ns),
            throttled_tasks: throttling.map(Throttling::by_task).unwrap_or_default(),
            throttled_cgroups: cgroups.map(cgroup).collect(),
            throttling: throttling.and_then(|throttling| throttling.text(&report.pending_switches, path)),
            ..Trust::default()
        }
    }
}

impl WorkconsRun {
    /// Makes a run of the findings of the analyses with these options and of those about the trace. Where events were
    /// lost, the trace is read once more for the bounds of the violation.
    pub(crate) fn of(
        session: &Session,
        begin: &BeginArgs,
        options: &Options<'_>,
        (mut report, run_queue_lengths): (Report, Option<KernelLengths>),
        diagnostics: Diagnostics,
    ) -> Result<WorkconsRun> {
        if let Some(violation) = report.violation.as_mut().filter(|_| !report.unknown.gaps.is_empty()) {
            violation.bounds = Some(session.follow(begin, session.window, || Bounds::new(options))?.output);
        }
        report.unknown.unwritten_percent = warnings::unwritten_percent(&session.trace, &diagnostics);
        report.unknown.clocks_apart = diagnostics.count(FileIssue::ClocksApart);
        let unobserved = session.silent();
        report.cpus.unobserved = unobserved.len() - options.assume_idle.len();
        let unknown = report.unknown.clone();
        let doubtful_topology = session.doubtful_topology();
        let of_session = Trust::of(session, &report);
        let trust = Trust { unknown, unobserved, run_queue_lengths, doubtful_topology, diagnostics, ..of_session };
        let (drawable, recording) = (session.drawable.clone(), session.recording());
        Ok(WorkconsRun { trace: session.name(), group: None, report, trust, drawable, recording })
    }

    /// The violation as it can be compared with that of other runs, or the reason why it cannot.
    fn violation(&self, max_loss: f64) -> std::result::Result<&Violation, String> {
        match (&self.report.violation, self.report.unknown.why_untrusted(max_loss)) {
            (_, Some(why)) => Err(why),
            (Some(violation), None) => Ok(violation),
            (None, None) => Err(self.report.selection_unknown.clone().unwrap_or_default()),
        }
    }

    /// Draws the figure of the run.
    pub(crate) fn run_figure(&self, session: &Session, sheet: &Sheet) -> Result<draw::Figure> {
        drawn_run(session, &self.report, &self.trust.diagnostics, sheet)
    }

    /// The document of this run alone.
    pub(crate) fn document(&self) -> WorkconsDocument {
        WorkconsDocument::of(vec![self.clone()], &Limits::default())
    }

    /// The text for people about the run.
    pub(crate) fn text(&self, detail: Detail) -> String {
        let mut out = crate::text(&self.report, &self.drawable, detail);
        trust_text(&mut out, self);
        out.push_str(&crate::next(&self.report, &self.drawable));
        out
    }
}

/// The medians of the runs of each group, in the order in which the groups were given.
fn medians(runs: &[WorkconsRun], by_command: bool, max_loss: f64) -> Vec<Group> {
    let mut names: Vec<&String> = runs.iter().filter_map(|r| r.group.as_ref()).collect();
    names.dedup();
    let group = |name: &String| {
        let of = |value: &dyn Fn(&WorkconsRun) -> Option<f64>| {
            let values: Vec<f64> = runs.iter().filter(|r| r.group.as_ref() == Some(name)).filter_map(value).collect();
            (!values.is_empty()).then(|| Spread::of(&values))
        };
        Group {
            name: name.clone(),
            runs: runs.iter().filter(|r| r.group.as_ref() == Some(name)).count(),
            percent: of(&|r| Some(r.violation(max_loss).ok()?.percent)),
            cpu_time_lost_percent: of(&|r| Some(r.violation(max_loss).ok()?.cpu_time_lost_percent)),
            elapsed_s: of(&|r| r.report.elapsed(by_command).map(Dur::seconds)),
        }
    };
    names.into_iter().map(group).collect()
}

/// The figures that runs do not have, by the runs' names.
fn left_out(runs: &[WorkconsRun], by_command: bool, max_loss: f64) -> Vec<String> {
    let without = |run: &WorkconsRun| {
        let elapsed = run.report.elapsed(by_command).is_none();
        let no_elapsed = elapsed.then(|| format!("{} has no elapsed time: {}", run.trace, crate::NO_ELAPSED));
        [no_elapsed, run.violation(max_loss).err().map(|why| format!("{} has no violation: {why}", run.trace))]
    };
    runs.iter().flat_map(without).flatten().collect()
}

fn text(document: &WorkconsDocument, detail: Detail) -> String {
    if let [run] = document.runs.as_slice() {
        return run.text(detail);
    }
    let rows: Vec<(String, Report)> = document
        .runs
        .iter()
        .map(|r| (r.group.as_ref().map_or(r.trace.clone(), |g| format!("{g}: {}", r.trace)), r.report.clone()))
        .collect();
    let mut out = crate::table(&rows);
    for g in &document.groups {
        let spread = |s: Option<Spread>, unit: &str| {
            s.map_or("unknown".into(), |s| format!("{:.3}{unit} ({:.3}\u{2013}{:.3})", s.median, s.min, s.max))
        };
        let (time, lost) = (spread(g.percent, " %"), spread(g.cpu_time_lost_percent, " %"));
        let elapsed = spread(g.elapsed_s, " s");
        let medians = format!("time {time}, CPU time lost {lost}, elapsed {elapsed}");
        out.push('\n');
        paragraph(
            &mut out,
            0,
            2,
            &format!("{}: median of {} and spread: {medians}", g.name, sched::nouns::counted(g.runs, "run")),
        );
    }
    for note in &document.notes {
        paragraph(&mut out, 0, 2, &format!("note: {note}"));
    }
    out
}

/// Writes how far the numbers of a run can be trusted.
fn trust_text(out: &mut String, run: &WorkconsRun) {
    let r = &run.report;
    out.push_str("\nHow far this can be trusted:\n");
    let mut line = |text: &str| paragraph(out, 2, 4, text);
    let matters = |what: sched::Diagnostic| what.severity() != sched::Severity::Note;
    if r.violation.is_none() {
        line("the selected tasks are unknown: there is no figure of them");
    }
    if r.unknown.unknown_percent == 0.0 {
        let doubts = run.trust.diagnostics.iter().any(|(what, ..)| matters(what))
            || !run.trust.unobserved.is_empty()
            || run.trust.doubtful_topology.is_some();
        line(match doubts {
            true => "no time of the CPUs with events is unknown, but:",
            false => "nothing was lost: the figures are exact",
        });
    } else {
        let mut unknown = format!("nothing is known of {:.3} % of the CPU time", r.unknown.unknown_percent);
        if let Some(v) = &r.violation {
            // Writing to a string cannot fail.
            let _ = write!(
                unknown,
                ": violated {:.2} % of the time, or {:.2} % if unknown CPUs are at fault",
                v.percent, v.possible_percent
            );
        }
        line(&unknown);
        if let Some(b) = r.violation.as_ref().and_then(|v| v.bounds) {
            line(&format!(
                "whatever the lost events were: at least {:.2} %, at most {:.2} % of the time (episodes of any length)",
                b.least_percent, b.most_percent
            ));
        }
    }
    if let Some(share) = r.confined_percent {
        line(&format!(
            "in {share:.0} % of the violated time the waiting tasks were never queued on the idle CPUs: these tasks may be \
             bound to other CPUs, which a trace does not show. schedviz record saves the CPUs that tasks may use; \
             schedviz machine does so while the tasks run"
        ));
    }
    run.trust.doubtful_topology.iter().for_each(|doubt| line(doubt));
    run.trust.run_queue_lengths.iter().for_each(|lengths| line(&lengths.text()));
    run.trust.throttling.iter().for_each(|throttling| line(throttling));
    if !run.trust.unobserved.is_empty() {
        let list = sched::topology::format_cpu_list(&run.trust.unobserved);
        line(&format!(
            "CPUs without any event: {list}; they are in no figure (--assume-idle counts them as idle), and tasks may \
             have moved to and from them unseen: the number of waiting tasks is an upper bound"
        ));
    }
    for (what, count, first) in run.trust.diagnostics.iter().filter(|(what, ..)| matters(*what)) {
        line(&warnings::line(what, count, first));
    }
}

impl<'o> Options<'o> {
    /// The options of a section in a report, where every task counts and nothing else is asked for.
    pub fn plain(session: &'o Session) -> Options<'o> {
        Options {
            cpus: session.shown.chosen.clone(),
            zero: session.start,
            topology: session.topology.clone(),
            affinity: session.affinity.as_deref(),
            strips: Some((session.from, session.to)),
            throttling: session.records_throttling(),
            ..Default::default()
        }
    }
}

/// The section of a report on work conservation.
pub(crate) fn section(session: &Session) -> MaybeSection<'_> {
    Ok(Some(part(Options::plain(session), |options| {
        let analysis = (WorkConservation::new(options), length_check(session));
        listed(analysis, move |found, page| {
            let ReportPage { session, diagnostics, .. } = *page;
            let run = WorkconsRun::of(session, &BeginArgs::default(), options, found, diagnostics.clone())?;
            Ok(ReportSection {
                title: "Work conservation".to_owned(),
                figures: vec![run.run_figure(session, page.sheet)?],
                text: run.text(Detail::Full),
                json: json(&run.document())?,
            })
        })
    })))
}

//! `schedviz workcons`: one number for a run, a table for several, a verdict for a regression job.

use crate::args::FORMATS;
use crate::args::IdleCountsAs;
use crate::runs::{WorkconsDocument, WorkconsRun};
use crate::{Capacities, LengthCheck, Limits, Options, SchedIdle, WorkConservation, WorkconsArgs};
use anyhow::{Result, anyhow};
use machine::Affinity;
use membership::{SchedPolicy, TasksBy};
use question::{Question, Subcommand};
use sched::{Chosen, Judgement, Verdict};
use session::Session;
use session::args::{BeginArgs, ReadArgs, WindowArgs, typed};
use session::formats::{Format, Formats, OutputName, Renderings, headed, json};
use session::section::{MaybeSection, ReportPage, ReportSection, listed, part};
use session::summary::fenced;
use session::{groups, several, summary, verdict, warnings};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use timeline::Sheet;
use timeline::text::Detail;

/// How often CPUs idle while tasks wait on others: one number for a run, a table for several, a verdict for a regression job.
#[derive(Debug)]
pub struct WorkconsQuestion;

impl Subcommand for WorkconsQuestion {
    const NAME: &'static str = "workcons";
    const FIRST_STEP: Option<(&'static str, &'static str)> =
        Some(("workcons trace.dat", "idle CPUs beside waiting tasks"));
    const QUESTION: Option<(&'static str, &'static str)> =
        Some(("How often did that happen, and is it a regression?", "TRACE..."));
    type Args = WorkconsArgs;

    fn run(args: &WorkconsArgs) -> Result<ExitCode> {
        run(args)
    }
}

impl Question for WorkconsQuestion {
    const FORMATS: Formats = FORMATS;
    const IN_REPORT: bool = true;

    fn section(session: &Session) -> MaybeSection<'_> {
        Ok(Some(part(Options::plain(session), |options| {
            let analysis = || (WorkConservation::new(options), length_check(session));
            listed(analysis, move |found, page| {
                let ReportPage { session, diagnostics, .. } = *page;
                let run = WorkconsRun::of(session, &BeginArgs::default(), options, found, diagnostics.clone())?;
                let section = ReportSection {
                    title: "Work conservation".to_owned(),
                    figures: vec![run.run_figure(session, page.sheet)?],
                    text: run.text(Detail::Full),
                    json: json(&run.document())?,
                };
                page.keep(run.report);
                Ok(section)
            })
        })))
    }

    fn section_of_runs(
        folder: &Path,
        read: &ReadArgs,
        window: &WindowArgs,
        sheet: &Sheet,
    ) -> Result<Option<ReportSection>> {
        let args = WorkconsArgs { read: read.clone(), window: window.clone(), ..typed(&[folder.as_os_str()])? };
        let (document, _) = judged(&args, &args.runs.files()?, false)?;
        let figures = vec![document.figure(args.max_loss, sheet)];
        let title = "Work conservation of each run".to_owned();
        Ok(Some(ReportSection {
            title,
            figures,
            text: headed(&document.head(), document.text(Detail::Brief)),
            json: json(&document)?,
        }))
    }

    #[cfg(feature = "schema")]
    fn schemas() -> Vec<question::NamedSchema> {
        vec![question::schema::<WorkconsDocument>(crate::runs::SCHEMA)]
    }
}

/// Measures the runs, prints the numbers, and judges the limits.
pub(crate) fn run(args: &WorkconsArgs) -> Result<ExitCode> {
    args.output.check(FORMATS)?;
    verdict::check(args.output.dialect(), args.max_violation.is_some(), "--max-violation PERCENT")?;
    args.begin.without_descent(args.tasks.forked, "--forked")?;
    args.begin.without_descent(args.waiters.depend_on_descent(&args.tasks), "--waiters application")?;
    let files = args.runs.files()?;
    let single = files.len() == 1 && args.output.wants_file();
    let (document, session) = judged(args, &files, single)?;
    let figure = |sheet: &Sheet| match (&session, document.runs.as_slice()) {
        (Some(session), [run]) => Ok(vec![run.run_figure(session, sheet)?]),
        _ => Ok(vec![document.figure(args.max_loss, sheet)]),
    };
    let verdicts: Vec<(&str, &Verdict)> = document.verdicts.iter().map(|j| (&*j.trace, &j.verdict)).collect();
    let in_dialect = |format: Format| {
        verdict::in_format(format, "workcons", &verdicts)
            .ok_or_else(|| anyhow!("there is no {} of this", format.word()))
    };
    let forms = Renderings::told(|| document.text(args.detail.detail()), figure).with_dialects(in_dialect);
    let forms = forms.headed(document.head());
    let first = files.first().map_or(Path::new("workcons"), |(_, path)| path);
    let origin = session.as_ref().map_or_else(|| OutputName::whole(first), Session::origin);
    args.output.give(&origin, "workcons", &document, forms, args.read.quiet)?;
    if args.summary.is_asked_for() {
        let findings = findings(args, &files, &document)?;
        let body = || findings + &fenced(&headed(&document.head(), document.text(Detail::Brief)));
        args.summary.append("schedviz workcons", body, verdicts.iter().copied())?;
    }
    Ok(verdict::report(document.verdict.iter().map(|judged| (&*judged.trace, &judged.verdict))))
}

/// The maximum number of runs whose findings are in a summary.
const RUNS: usize = 3;

/// The findings about the runs that exceed the limit, else about the one that is violated for the greatest part of its time.
fn findings(args: &WorkconsArgs, files: &[(Option<String>, PathBuf)], document: &WorkconsDocument) -> Result<String> {
    let failed = document.verdicts.iter().filter(|judged| judged.verdict.verdict == Judgement::Fail);
    let mut shown: Vec<&str> = failed.map(|judged| judged.trace.as_str()).take(RUNS).collect();
    if shown.is_empty() {
        let percent = |run: &&WorkconsRun| run.violation(args.max_loss).map_or(0.0, |violation| violation.percent);
        let worst = document.runs.iter().max_by(|a, b| percent(a).total_cmp(&percent(b)));
        shown.extend(worst.map(|run| run.trace.as_str()));
    }
    let names = groups::names(&files.iter().map(|(_, path)| path.as_path()).collect::<Vec<_>>());
    let paths = files.iter().zip(names).filter(|(_, name)| shown.contains(&name.as_str()));
    let found = paths.map(|((_, path), _)| {
        let session = Session::open(path, &args.read.silent(), &args.window)?.with_judged_command()?;
        summary::findings(&session)
    });
    found.collect()
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
        warnings::warn_of((files.len() > 1).then_some(name), &run.trust, read);
        // An open trace holds its indices, so that only the one that is drawn is kept.
        Ok((Some(session).filter(|_| single), run))
    })?;
    let (sessions, runs): (Vec<Option<Session>>, Vec<WorkconsRun>) = measured.into_iter().unzip();
    let session = sessions.into_iter().flatten().next();
    let runs = groups::distinct(runs, |run| (run.group.as_ref(), run.recording, &run.trace), &args.read);
    let limits = Limits { violation: args.max_violation, loss: args.max_loss };
    Ok((WorkconsDocument::of(runs, &limits), session))
}

/// Measures one run; with `strips` so that it can be drawn.
fn measure(
    args: &WorkconsArgs,
    read: &ReadArgs,
    path: &Path,
    group: Option<String>,
    strips: bool,
) -> Result<(Session, WorkconsRun)> {
    let by_descent = args.waiters.depend_on_descent(&args.tasks);
    let session = Session::open(path, read, &args.window)?.with_judged_command_if(by_descent)?;
    args.tasks.check(&session)?;
    let silent = session.silent();
    let (application, excluded) = (args.tasks.chooser(&session)?, args.tasks.excluder());
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
        unbalanced: true,
        capacities: capacities(&session),
    };
    let params = shows_sched_idle(args, &session).then(|| session.task_groups(TasksBy::Params)).transpose()?;
    let sched_idle = || params.as_deref().map(|groups| SchedIdle::new(&options, groups));
    let analysis = || (WorkConservation::new(&options), (length_check(&session), sched_idle()));
    let ((mut report, (lengths, figures)), diagnostics) =
        session.measured_in_pieces(&args.begin, session.window, options.application, by_descent, analysis)?;
    report.sched_idle = figures.filter(|_| report.selection_unknown.is_none());
    let found = (report, lengths);
    let run = WorkconsRun { group, ..WorkconsRun::of(&session, &args.begin, &options, found, diagnostics)? };
    Ok((session, run))
}

/// Whether the figures with CPUs that run `SCHED_IDLE` tasks alone as idle ones are given.
fn shows_sched_idle(args: &WorkconsArgs, session: &Session) -> bool {
    let is_listed = || {
        let moments = [Affinity::START, Affinity::RUNNING, Affinity::END];
        let machine = session.machine.iter();
        machine
            .flat_map(|machine| moments.map(|at| machine.policies_at(at)))
            .flatten()
            .any(|(_, policy)| SchedPolicy::of_number(policy) == Some(SchedPolicy::Idle))
    };
    args.idle_counts_as.map_or_else(is_listed, |counts_as| counts_as == IdleCountsAs::Idle)
}

/// The capacities of the CPUs by the machine file, where they differ.
pub fn capacities(session: &Session) -> Option<Capacities> {
    Capacities::of(session.machine.as_ref()?.cpus.capacities())
}

/// The comparison with the kernel's lengths of run queues, where the trace has them.
fn length_check(session: &Session) -> Option<LengthCheck> {
    session.has_probe("nr_running", "change").then(LengthCheck::default)
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
            unbalanced: true,
            capacities: capacities(session),
            ..Default::default()
        }
    }
}

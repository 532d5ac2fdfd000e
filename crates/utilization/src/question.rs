//! `schedviz utilization`: what CPUs spend their time on, interval by interval.

use crate::UtilizationArgs;
use crate::args::FORMATS;
use crate::table;
use crate::{GroupTimes, Options, RunEnd, TailSearch, Underload, Utilization, UtilizationReport};
use anyhow::{Result, bail};
use question::{Question, Subcommand};
use sched::{Diagnostics, Dur, EventIssue};
use schedstat::{FromTrace, StatRow};
use session::Session;
use session::document::TraceDocument;
use session::formats::{Formats, Renderings};
use session::heading::Loss;
use session::section::{MaybeSection, ReportSection, listed, part};
use std::process::ExitCode;
use timeline::Sheet;
use timeline::page::Heading;
use timeline::scale::round_step;
use timeline::text::Detail;

/// The time of the CPUs by class and interval.
#[derive(Debug)]
pub struct UtilizationQuestion;

impl Subcommand for UtilizationQuestion {
    const NAME: &'static str = "utilization";
    const QUESTION: Option<(&'static str, &'static str)> = Some(("What did the CPUs spend their time on?", "TRACE"));
    type Args = UtilizationArgs;

    fn run(args: &UtilizationArgs) -> Result<ExitCode> {
        run(args).map(|()| ExitCode::SUCCESS)
    }
}

impl Question for UtilizationQuestion {
    const FORMATS: Formats = FORMATS;
    const IN_REPORT: bool = true;

    fn section(session: &Session) -> MaybeSection<'_> {
        let chosen = session.shown.chosen.clone();
        Ok(Some(part((Options::plain(session), chosen), |(options, chosen)| {
            let has_idle_states = session.trace.has_idle_states();
            let underload = move || Underload::new(options, crate::TICK, has_idle_states);
            let tail = move || TailSearch::new(options);
            let analyses = move || (Utilization::new(options), underload(), tail(), FromTrace::only(chosen.clone()));
            listed(analyses, move |(report, underload, serial_tail, columns), page| {
                let report = UtilizationReport {
                    underload: underload.known(page.session.hides_throttling()),
                    serial_tail,
                    ..report
                };
                let columns = schedstat::table(&[StatRow { name: "trace".into(), columns: columns.columns }]);
                let text = crate::text(&report, &page.session.drawable, (true, 0), Detail::Full);
                let heading = heading(page.session, &report, page.diagnostics).on(page.sheet);
                let section = ReportSection {
                    title: "Utilization".to_owned(),
                    figures: vec![crate::figure(&report, options, &heading)],
                    text: format!("{text}\n{columns}"),
                    json: page.json(&report)?,
                };
                page.keep(report);
                Ok(section)
            })
        })))
    }

    #[cfg(feature = "schema")]
    fn schemas() -> Vec<question::NamedSchema> {
        vec![question::schema::<TraceDocument<'static, UtilizationReport>>(crate::report::SCHEMA)]
    }
}

/// Measures the time of the CPUs and prints it.
pub(crate) fn run(args: &UtilizationArgs) -> Result<()> {
    args.output.check(FORMATS)?;
    args.tasks.without_forked("utilization")?;
    let shows_application = !args.tasks.is_any();
    args.begin.without_descent(shows_application, "the application's share")?;
    let session = args.trace.open()?.with_judged_command_if(shows_application)?;
    let options = options(&session, args)?;
    let groups = args.by.map(|by| session.task_groups(by)).transpose()?;
    let by_group = || groups.as_deref().map(|groups| GroupTimes::new(groups, &options.cpus));
    let has_states = session.trace.has_idle_states();
    let analyses = || {
        let underload = Underload::new(&options, args.tick, has_states);
        (Utilization::new(&options), underload, by_group(), TailSearch::new(&options))
    };
    let outcome = session.follow_in_pieces(&args.begin, session.page(), analyses)?;
    let ((mut report, underload, by_group, serial_tail), diagnostics) = (outcome.output, outcome.diagnostics);
    (report.underload, report.serial_tail) = (underload.known(session.hides_throttling()), serial_tail);
    report.groups = by_group.map(|groups| groups.of_cpu_time(report.all.total()));
    let text = || {
        session.with_application(crate::text(
            &report,
            &session.drawable,
            (args.per_cpu, args.rows),
            args.detail.detail(),
        ))
    };
    let figure = |sheet: &Sheet| {
        let heading = heading(&session, &report, &diagnostics).on(sheet);
        Ok(vec![crate::figure(&report, &options, &heading)])
    };
    let document = TraceDocument::of(&session, &report, &diagnostics);
    document.give(
        "utilization",
        &session,
        &args.output,
        Renderings::told(text, figure).with_csv(|out| table::table(&report, args.per_cpu, out)),
    )
}

impl Options {
    /// The options of all CPUs shown, where nothing else is asked for.
    pub fn plain(session: &Session) -> Options {
        Options {
            from: session.from,
            to: session.to,
            zero: session.start,
            cpus: session.shown.cpus.clone(),
            all_cpus: session.shown.all.clone(),
            group_name: session.shown.group_name.clone(),
            interval: Dur(round_step(session.to.since(session.from).0 / 20)),
            tasks: None,
            topology: session.topology.clone(),
            balance_interval: Dur(4_000_000),
            ends: session
                .first_leavers()
                .into_iter()
                .map(|(cpu, task)| RunEnd { cpu, pid: task.pid, prio: task.prio })
                .collect(),
        }
    }
}

fn options(session: &Session, args: &UtilizationArgs) -> Result<Options> {
    let plain = Options::plain(session);
    let interval = args.interval.unwrap_or(plain.interval);
    if session.to.since(session.from).0 / interval.0 > crate::MOST_INTERVALS {
        bail!("--interval: {} makes more than {} intervals", interval.human(), crate::MOST_INTERVALS);
    }
    args.tasks.check(session)?;
    let tasks = args.tasks.is_any().then(|| args.tasks.chosen(session)).transpose()?;
    Ok(Options { interval, tasks, balance_interval: args.balance_interval, ..plain })
}

/// The texts around the figure.
pub(crate) fn heading(session: &Session, report: &UtilizationReport, diagnostics: &Diagnostics) -> Heading {
    let loss = Loss {
        gaps: diagnostics.count(EventIssue::EventsLost),
        unknown_ns: report.all.unknown_ns,
        cpu_time_ns: report.all.total(),
    };
    session.lossy_heading(&loss, diagnostics)
}

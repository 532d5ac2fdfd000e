//! The question of `schedviz jobs`: whether periodic tasks meet their deadlines.

use crate::args::FORMATS;
use crate::{Jobs, JobsArgs, JobsReport, Options, figure, table, text};
use anyhow::Result;
use draw::Figure;
use question::{SharedArgs, TaskQuestion};
use sched::{Chosen, Diagnostics, Joined, Window};
use session::Session;
use session::formats::Formats;
use session::timers::TimerExpiries;
use std::io::Write;
use timeline::page::Heading;

/// The jobs of tasks.
#[derive(Debug)]
pub struct JobsQuestion;

impl TaskQuestion for JobsQuestion {
    const NAME: &'static str = "jobs";
    const TITLE: &'static str = "Jobs of periodic tasks";
    const SCHEMA: &'static str = crate::report::SCHEMA;
    const FORMATS: Formats = FORMATS;
    const QUESTION: Option<(&'static str, &'static str)> =
        Some(("Do periodic tasks meet their deadlines, and what delays the latest jobs?", "TRACE"));

    type Args = JobsArgs;
    type Options<'o> = Options<'o>;
    type Report = JobsReport;

    fn shared(args: &JobsArgs) -> &SharedArgs {
        &args.shared
    }

    fn options<'o>(args: &'o JobsArgs, session: &'o Session, tasks: Option<&'o Chosen<'o>>) -> Result<Options<'o>> {
        let (deadline, deadlines) = (args.deadline, session.deadline_params());
        Ok(Options { tasks, deadline, deadlines, worst: args.worst, ..Options::plain(session) })
    }

    fn of_section(session: &Session) -> Result<Options<'_>> {
        Ok(Options { deadlines: session.deadline_params(), ..Options::plain(session) })
    }

    fn unknowable(session: &Session) -> Option<String> {
        session.why_no_wakeups()
    }

    fn window(session: &Session) -> Window {
        session.window
    }

    fn analysis<'a, 'o: 'a>(options: &'a Options<'o>) -> impl Joined<Output = JobsReport> + 'a {
        Jobs::new(options)
    }

    fn text(report: &JobsReport, session: &Session, args: Option<&JobsArgs>) -> String {
        let (rows, all) = args.map_or((15, false), |args| (args.rows, args.all));
        text(report, &session.drawable, rows, all)
    }

    fn heading(session: &Session, report: &JobsReport, diagnostics: &Diagnostics) -> Heading {
        session.general_heading(diagnostics).without_figures(report.selection_unknown.as_deref())
    }

    fn figures(report: &JobsReport, _: &Options<'_>, heading: &Heading) -> Vec<Figure> {
        vec![figure(report, heading)]
    }

    fn table(report: &JobsReport, out: &mut dyn Write) -> Result<()> {
        table::table(report, out)
    }
}

impl Options<'_> {
    /// Returns the options of all tasks of a session.
    pub fn plain(session: &Session) -> Options<'static> {
        Options {
            cpus: session.shown.chosen.clone(),
            zero: session.start,
            worst: 5,
            draws: true,
            expiries: TimerExpiries::of(session),
            ..Options::default()
        }
    }
}

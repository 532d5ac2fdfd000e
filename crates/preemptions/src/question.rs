//! The question of `schedviz preemptions`: how long running tasks kept their CPUs after the kernel asked them to give way.

use crate::args::FORMATS;
use crate::{Options, Preemptions, PreemptionsArgs, PreemptionsReport, figure, table, text};
use anyhow::Result;
use draw::Figure;
use question::{SharedArgs, TaskQuestion};
use sched::{Chosen, Diagnostics, Joined, Window};
use session::Session;
use session::formats::Formats;
use session::section::Unanswered;
use std::io::Write;
use timeline::page::Heading;
use timeline::text::Detail;

/// The time from requests to reschedule to the switches.
#[derive(Debug)]
pub struct PreemptionsQuestion;

impl TaskQuestion for PreemptionsQuestion {
    const NAME: &'static str = "preemptions";
    const TITLE: &'static str = "Preemptions";
    const SCHEMA: &'static str = crate::report::SCHEMA;
    const FORMATS: Formats = FORMATS;
    const QUESTION: Option<(&'static str, &'static str)> =
        Some(("How long did running tasks keep a CPU after they were asked to give way?", "TRACE"));

    type Args = PreemptionsArgs;
    type Options<'o> = Options<'o>;
    type Report = PreemptionsReport;

    fn shared(args: &PreemptionsArgs) -> &SharedArgs {
        &args.shared
    }

    fn options<'o>(
        args: &'o PreemptionsArgs,
        session: &'o Session,
        tasks: Option<&'o Chosen<'o>>,
    ) -> Result<Options<'o>> {
        let groups = args.by.groups().map(|rule| session.task_groups(rule)).transpose()?;
        Ok(Options { tasks, by: args.by, groups, tick: args.tick, worst: args.worst, ..Options::plain(session) })
    }

    /// Returns options where requests were recorded: the section of a report on other traces would show a part of them.
    fn of_section(session: &Session) -> Result<Options<'_>> {
        let options = Options { worst: 5, ..Options::plain(session) };
        match options.by_probe {
            true => Ok(options),
            false => {
                Err(Unanswered::because("requests to reschedule were not recorded: schedviz record --why has them"))
            }
        }
    }

    fn window(session: &Session) -> Window {
        session.window
    }

    fn analysis<'a, 'o: 'a>(options: &'a Options<'o>) -> impl Joined<Output = PreemptionsReport> + 'a {
        Preemptions::new(options)
    }

    fn text(report: &PreemptionsReport, session: &Session, args: Option<&PreemptionsArgs>) -> String {
        let (rows, detail) = args.map_or((15, Detail::Full), |args| (args.rows, args.detail.detail()));
        text(report, &session.drawable, rows, detail)
    }

    fn heading(session: &Session, report: &PreemptionsReport, diagnostics: &Diagnostics) -> Heading {
        session.general_heading(diagnostics).without_figures(report.selection_unknown.as_deref())
    }

    fn figures(report: &PreemptionsReport, _: &Options<'_>, heading: &Heading) -> Vec<Figure> {
        vec![figure(report, heading)]
    }

    fn table(report: &PreemptionsReport, out: &mut dyn Write) -> Result<()> {
        table::table(report, out)
    }
}

impl Options<'_> {
    /// Returns the options of all tasks of a session, without a list of the longest requests.
    pub fn plain(session: &Session) -> Options<'static> {
        Options {
            cpus: session.shown.chosen.clone(),
            by_probe: session.trace.probe("resched").is_some() || session.trace.has_named("sv", "resched"),
            has_lazy: session.trace.marks_lazy_requests(),
            zero: session.start,
            ..Options::default()
        }
    }
}

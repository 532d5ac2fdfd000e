//! The question of `schedviz sample`.

use crate::args::FORMATS;
use crate::{Options, Sample, SampleArgs, SampleReport, table, text};
use anyhow::Result;
use draw::Figure;
use question::{SharedArgs, TaskQuestion};
use sched::{Chosen, Diagnostics, Joined};
use session::Session;
use session::formats::Formats;
use std::io::Write;
use timeline::page::Heading;

/// The switches to tasks.
#[derive(Debug)]
pub struct SampleQuestion;

impl TaskQuestion for SampleQuestion {
    const NAME: &'static str = "sample";
    const TITLE: &'static str = "Sample";
    const SCHEMA: &'static str = crate::report::SCHEMA;
    const FORMATS: Formats = FORMATS;
    // todo(sample): the question in a user's words, a row of the README's table.
    const QUESTION: Option<(&'static str, &'static str)> = Some(("Sample: how often did CPUs switch to tasks?", "TRACE"));

    type Args = SampleArgs;
    type Options<'o> = Options<'o>;
    type Report = SampleReport;

    fn shared(args: &SampleArgs) -> &SharedArgs {
        &args.shared
    }

    fn options<'o>(_: &'o SampleArgs, session: &'o Session, tasks: Option<&'o Chosen<'o>>) -> Result<Options<'o>> {
        Ok(Options { tasks, ..Options::plain(session) })
    }

    fn of_section(session: &Session) -> Result<Options<'_>> {
        Ok(Options::plain(session))
    }

    fn analysis<'a, 'o: 'a>(options: &'a Options<'o>) -> impl Joined<Output = SampleReport> + 'a {
        Sample::new(options)
    }

    fn text(report: &SampleReport, session: &Session, _: Option<&SampleArgs>) -> String {
        text(report, &session.drawable)
    }

    fn heading(session: &Session, report: &SampleReport, diagnostics: &Diagnostics) -> Heading {
        session.general_heading(diagnostics).without_figures(report.selection_unknown.as_deref())
    }

    /// The report is a text alone: with a figure, FORMATS is `Formats::FIGURE_AND_TEXT` (`crates/running-waiting/src/figure.rs`).
    fn figures(_: &SampleReport, _: &Options<'_>, _: &Heading) -> Vec<Figure> {
        Vec::new()
    }

    fn table(report: &SampleReport, out: &mut dyn Write) -> Result<()> {
        table::table(report, out)
    }
}

impl Options<'_> {
    /// Returns the options of all tasks of a session.
    pub fn plain(session: &Session) -> Options<'static> {
        Options { cpus: session.shown.chosen.clone(), tasks: None }
    }
}

//! The question of `schedviz latency`: how long tasks wait until they run.

use crate::args::FORMATS;
use crate::{Latency, LatencyArgs, LatencyReport, Options, figure, table, text};
use anyhow::Result;
use draw::Figure;
use question::{SharedArgs, TaskQuestion};
use sched::{Chosen, Diagnostics, Joined, Window, WithQueued};
use session::Session;
use session::args::SymbolArgs;
use session::formats::Formats;
use std::io::Write;
use timeline::page::Heading;
use timeline::text::Detail;

/// The times that tasks wait until they run.
#[derive(Debug)]
pub struct LatencyQuestion;

impl TaskQuestion for LatencyQuestion {
    const NAME: &'static str = "latency";
    const TITLE: &'static str = "Latency";
    const SCHEMA: &'static str = crate::report::SCHEMA;
    const FORMATS: Formats = FORMATS;
    const QUESTION: Option<(&'static str, &'static str)> = Some(("How long did woken tasks wait to run?", "TRACE"));
    const IS_KEPT: bool = true;

    type Args = LatencyArgs;
    type Options<'o> = Options<'o>;
    type Report = LatencyReport;

    fn shared(args: &LatencyArgs) -> &SharedArgs {
        &args.shared
    }

    fn symbols(args: &LatencyArgs) -> Option<&SymbolArgs> {
        Some(&args.symbols)
    }

    fn options<'o>(args: &'o LatencyArgs, session: &'o Session, tasks: Option<&'o Chosen<'o>>) -> Result<Options<'o>> {
        let (by, groups) = (args.by.by.unwrap_or_default(), args.by.groups(session)?);
        let queued = Some(session.queued(tasks));
        Ok(Options { tasks, by, groups, worst: args.worst, queued, ..Options::plain(session) })
    }

    fn of_section(session: &Session) -> Result<Options<'_>> {
        Ok(Options { worst: 5, queued: Some(session.queued(None)), ..Options::plain(session) })
    }

    fn window(session: &Session) -> Window {
        session.window
    }

    fn analysis<'a, 'o: 'a>(options: &'a Options<'o>) -> impl Joined<Output = LatencyReport> + 'a {
        WithQueued::new(Latency::new(options), options.queued.as_ref())
    }

    fn text(report: &LatencyReport, session: &Session, args: Option<&LatencyArgs>) -> String {
        let (rows, detail) = args.map_or((15, Detail::Full), |args| (args.rows, args.detail.detail()));
        text(report, &session.drawable, rows, detail)
    }

    fn heading(session: &Session, report: &LatencyReport, diagnostics: &Diagnostics) -> Heading {
        session.general_heading(diagnostics).without_figures(report.selection_unknown.as_deref())
    }

    fn figures(report: &LatencyReport, _: &Options<'_>, heading: &Heading) -> Vec<Figure> {
        vec![figure(report, heading)]
    }

    fn table(report: &LatencyReport, out: &mut dyn Write) -> Result<()> {
        table::table(report, out)
    }
}

impl Options<'_> {
    /// The options of all tasks of a session, without a list of the longest waits.
    pub fn plain(session: &Session) -> Options<'static> {
        let (cpus, topology) = (session.shown.chosen.clone(), session.topology.clone());
        let fair_before = session.fair_before();
        Options { cpus, zero: session.start, topology, fair_before, ..Default::default() }
    }
}

//! The question of `schedviz wakers`: which tasks wake which.

use crate::args::{DRAWN, FORMATS};
use crate::{FutexCalls, Options, Wakers, WakersArgs, WakersReport, figure, table, text};
use anyhow::{Result, bail};
use draw::Figure;
use question::{SharedArgs, TaskQuestion};
use sched::{Chosen, Diagnostics, Joined, Window};
use session::Session;
use session::formats::Formats;
use std::io::Write;
use timeline::page::Heading;

/// The graph of wakeups.
#[derive(Debug)]
pub struct WakersQuestion;

impl TaskQuestion for WakersQuestion {
    const NAME: &'static str = "wakers";
    const TITLE: &'static str = "Wakeups by waker";
    const SCHEMA: &'static str = crate::report::SCHEMA;
    const FORMATS: Formats = FORMATS;
    const QUESTION: Option<(&'static str, &'static str)> =
        Some(("Which tasks wake which, and do pairs of them wake each other?", "TRACE"));

    type Args = WakersArgs;
    type Options<'o> = Options<'o>;
    type Report = WakersReport;

    fn shared(args: &WakersArgs) -> &SharedArgs {
        &args.shared
    }

    fn options<'o>(args: &'o WakersArgs, session: &'o Session, tasks: Option<&'o Chosen<'o>>) -> Result<Options<'o>> {
        let drawn = usize::from(args.edges);
        if args.futex && !FutexCalls::are_in(&session.trace) {
            bail!(
                "--futex: the trace has no syscalls:sys_enter_futex; record it with -e syscalls:sys_enter_futex -e syscalls:sys_exit_futex"
            );
        }
        let futexes = args.futex.then(|| FutexCalls::of(&session.trace));
        let groups = args.by.rule().map(|rule| session.task_groups(rule)).transpose()?;
        Ok(Options { tasks, by: args.by, groups, weight: args.weight, drawn, futexes, ..Options::plain(session) })
    }

    fn of_section(session: &Session) -> Result<Options<'_>> {
        Ok(Options { drawn: usize::from(DRAWN), ..Options::plain(session) })
    }

    fn unknowable(session: &Session) -> Option<String> {
        session.why_no_wakeups()
    }

    fn window(session: &Session) -> Window {
        session.window
    }

    fn analysis<'a, 'o: 'a>(options: &'a Options<'o>) -> impl Joined<Output = WakersReport> + 'a {
        Wakers::new(options)
    }

    fn text(report: &WakersReport, session: &Session, args: Option<&WakersArgs>) -> String {
        text(report, &session.drawable, args.map_or(15, |args| args.rows))
    }

    fn heading(session: &Session, report: &WakersReport, diagnostics: &Diagnostics) -> Heading {
        session.general_heading(diagnostics).without_figures(report.selection_unknown.as_deref())
    }

    fn figures(report: &WakersReport, options: &Options<'_>, heading: &Heading) -> Vec<Figure> {
        vec![figure(report, options.drawn, heading)]
    }

    fn table(report: &WakersReport, out: &mut dyn Write) -> Result<()> {
        table::table(report, out)
    }
}

impl Options<'_> {
    /// Returns the options of all tasks of a session.
    pub fn plain(session: &Session) -> Options<'static> {
        Options { cpus: session.shown.chosen.clone(), topology: session.topology.clone(), ..Options::default() }
    }
}

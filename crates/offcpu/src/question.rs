//! The question of `schedviz offcpu`: the place at which tasks slept or gave way.

use crate::args::FORMATS;
use crate::{OffCpu, OffCpuArgs, OffCpuReport, Options, figure, folded, table, text};
use anyhow::Result;
use draw::Figure;
use question::{SharedArgs, TaskQuestion};
use sched::{Chosen, Diagnostics, Joined, Window};
use session::Session;
use session::formats::Formats;
use std::io::Write;
use timeline::page::Heading;
use tracedat::StackFrame;

/// The time off-CPU by stack.
#[derive(Debug)]
pub struct OffCpuQuestion;

impl TaskQuestion for OffCpuQuestion {
    const NAME: &'static str = "offcpu";
    const TITLE: &'static str = "Time off-CPU by stack";
    const SCHEMA: &'static str = crate::report::SCHEMA;
    const FORMATS: Formats = FORMATS;
    const QUESTION: Option<(&'static str, &'static str)> =
        Some(("On what did tasks sleep, by the stacks of their switches?", "TRACE"));

    type Args = OffCpuArgs;
    type Options<'o> = Options<'o>;
    type Report = OffCpuReport;

    fn shared(args: &OffCpuArgs) -> &SharedArgs {
        &args.shared
    }

    fn options<'o>(args: &'o OffCpuArgs, session: &'o Session, tasks: Option<&'o Chosen<'o>>) -> Result<Options<'o>> {
        Ok(Options { tasks, time: args.time, has_user: args.user, ..Options::plain(session) })
    }

    /// Returns nothing: a report has no section of this question.
    fn of_section(_: &Session) -> Result<Option<Options<'_>>> {
        Ok(None)
    }

    fn window(session: &Session) -> Window {
        session.window
    }

    fn analysis<'a, 'o: 'a>(options: &'a Options<'o>) -> impl Joined<Output = OffCpuReport> + 'a {
        OffCpu::new(options)
    }

    fn text(report: &OffCpuReport, session: &Session, args: Option<&OffCpuArgs>) -> String {
        match args {
            Some(args) if args.folded && report.selection_unknown.is_none() => folded(report),
            _ => text(report, &session.drawable, args.map_or(15, |args| args.rows)),
        }
    }

    fn heading(session: &Session, report: &OffCpuReport, diagnostics: &Diagnostics) -> Heading {
        session.general_heading(diagnostics).without_figures(report.selection_unknown.as_deref())
    }

    fn figures(report: &OffCpuReport, _: &Options<'_>, heading: &Heading) -> Vec<Figure> {
        vec![figure(report, heading)]
    }

    fn table(report: &OffCpuReport, out: &mut dyn Write) -> Result<()> {
        table::table(report, out)
    }
}

impl Options<'_> {
    /// Returns the options of all tasks of a session, with the stacks of its trace.
    pub fn plain(session: &Session) -> Options<'_> {
        let names = |frame: StackFrame| match frame.is_user {
            true => None,
            false => session.trace.function_at(frame.address).map(|(name, _)| name.to_owned()),
        };
        Options {
            cpus: session.shown.chosen.clone(),
            stacks: session.trace.switch_stacks(),
            names: Some(Box::new(names)),
            ..Options::default()
        }
    }
}

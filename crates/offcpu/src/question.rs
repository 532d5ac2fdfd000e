//! The question of `schedviz offcpu`: the place at which tasks slept or gave way.

use crate::args::FORMATS;
use crate::figure::NO_STACKS;
use crate::timehist::lkp;
use crate::{
    NamesFrame, NotedStacks, OffCpu, OffCpuArgs, OffCpuBy, OffCpuReport, Options, figure, folded, table, text,
};
use anyhow::{Result, bail};
use draw::Figure;
use parse::{StackFrame, StackedEvent};
use question::{SharedArgs, TaskQuestion};
use sched::{Chosen, ChosenCpus, Diagnostics, Joined, Window};
use session::Session;
use session::args::SymbolArgs;
use session::formats::{Format, Formats};
use session::section::Unanswered;
use session::stacks::AddressNames;
use std::io::Write;
use timeline::page::Heading;

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

    fn symbols(args: &OffCpuArgs) -> Option<&SymbolArgs> {
        Some(&args.symbols)
    }

    fn options<'o>(args: &'o OffCpuArgs, session: &'o Session, tasks: Option<&'o Chosen<'o>>) -> Result<Options<'o>> {
        if args.folded && !session.trace.has_stacks() {
            bail!("{}: {NO_STACKS}", session.name());
        }
        let addresses = if args.user { AddressNames::with_programs() } else { AddressNames::default() };
        let names = Some(Box::new(move |frame| addresses.name(&session.trace, frame)) as Box<NamesFrame<'o>>);
        Ok(Options { tasks, time: args.time, by: args.by, has_user: args.user, names, ..Options::plain(session) })
    }

    fn of_section(session: &Session) -> Result<Options<'_>> {
        match session.trace.has_stacks() {
            true => Ok(Options::plain(session)),
            false => Err(Unanswered::because(NO_STACKS)),
        }
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

    fn dialect(report: &OffCpuReport, _: Format) -> Result<String> {
        if report.keys.is_empty() {
            bail!("no switch has a stack of two functions or more: there are no keys for LKP");
        }
        Ok(lkp(&report.keys))
    }

    fn table(report: &OffCpuReport, out: &mut dyn Write) -> Result<()> {
        table::table(report, out)
    }
}

/// The events whose stacks divide time.
const STACKED: [StackedEvent; 3] = [StackedEvent::Switch, StackedEvent::Waking, StackedEvent::Wakeup];

impl Options<'_> {
    /// Returns the options of a pass that takes notes of the stacks of a trace ([`crate::OffCpuNotes`]).
    pub fn for_notes(session: &Session) -> Options<'_> {
        Options { cpus: ChosenCpus::default(), by: OffCpuBy::Both, ..Options::plain(session) }
    }

    /// Returns the options of all tasks of a session, with the stacks of its trace.
    pub fn plain(session: &Session) -> Options<'_> {
        let addresses = AddressNames::default();
        let names = move |frame: StackFrame| addresses.name(&session.trace, frame);
        let mut stacks = session.trace.event_stacks(&STACKED);
        let noted = session.trace.past().map(|past| NotedStacks::of_past(past, &mut stacks)).unwrap_or_default();
        Options {
            cpus: session.shown.chosen.clone(),
            stacks,
            noted,
            names: Some(Box::new(names)),
            without_wakeups: session.why_no_wakeups().is_some(),
            ..Options::default()
        }
    }
}

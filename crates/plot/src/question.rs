//! `schedviz plot`: a figure of any events, by a specification.

use crate::args::FORMATS;
use crate::picked::PickedSteps;
use crate::read_before;
use crate::recorded::{Recorded, catalog};
use crate::specified::{fitting, source};
use crate::{Background, Found, LaneKind, Plan, Plot, PlotReport, Spec, VIEWS};
use crate::{Drawn, PlotArgs};
use anyhow::{Context, Result, anyhow, bail};
use draw::Figure;
use lanes::Coloring;
use parse::Neighbours;
use question::{Question, Subcommand};
use sched::names::NameHistory;
use sched::{Diagnostics, Tracepoint, Ts};
use session::Session;
use session::csv::CsvWriter;
use session::document::TraceDocument;
use session::formats::{Formats, Renderings, json};
use session::over_lanes::{over_lanes, with_those_of};
use session::progress;
use session::section::{MaybeSection, ReportPage, ReportSection, listed, part};
use session::writer::print;
use std::fmt::Write as _;
use std::io;
use std::ops::ControlFlow;
use std::process::ExitCode;
use timeline::Sheet;

/// A figure of any events, by a specification.
#[derive(Debug)]
pub struct PlotQuestion;

impl Subcommand for PlotQuestion {
    const NAME: &'static str = "plot";
    const QUESTION: Option<(&'static str, &'static str)> =
        Some(("What would a figure of these events look like, by my own rules?", "SPEC TRACE"));
    type Args = PlotArgs;

    fn run(args: &PlotArgs) -> Result<ExitCode> {
        run(args).map(|()| ExitCode::SUCCESS)
    }
}

impl Question for PlotQuestion {
    const FORMATS: Formats = FORMATS;

    #[cfg(feature = "schema")]
    fn schemas() -> Vec<question::NamedSchema> {
        vec![question::schema::<TraceDocument<'static, PlotReport>>(crate::measure::REPORT_SCHEMA)]
    }
}

/// Lists or explains specifications, or draws a figure by one and writes it.
pub(crate) fn run(args: &PlotArgs) -> Result<()> {
    if args.list {
        return print(list().as_bytes());
    }
    if args.schema {
        return print(crate::SCHEMA.as_bytes());
    }
    let Some(named) = args.spec.as_deref() else { bail!("name a specification, or use --list") };
    let source = source(named)?;
    if args.print {
        return print(source.as_bytes());
    }
    let spec = Spec::parse(&source).map_err(|e| anyhow!("{named}: {e}"))?;
    if args.explain {
        return print(crate::explain(&spec).as_bytes());
    }
    args.output.check(FORMATS)?;
    let Some(path) = &args.path else { bail!("name a recording, or use --explain") };
    let session = Session::of_any_events(path, &args.read, &args.window)?;
    let plan = Plan::new(&spec, &catalog(&session)).map_err(|e| anyhow!("{named}: {e}"))?;
    let (report, diagnostics) = gather(&session, &spec, &plan, &mut |_| {})?;
    let figure = |sheet: &Sheet| figure(&session, &spec, &report, &diagnostics, sheet);
    let csv = |out: &mut dyn io::Write| table(&session, &spec, &plan, out);
    let forms = Renderings::told(|| crate::text(&report), figure).and_drawn().with_csv(csv);
    TraceDocument::of(&session, &report, &diagnostics).give("plot", &session, &args.output, forms)
}

/// The section of a specification in a report. An event that the trace lacks is an error, as it is of the command.
pub fn section<'s>(session: &'s Session, named: &str) -> MaybeSection<'s> {
    Ok(Some(part(fitting(session, named)?, |(spec, plan)| {
        // A pass leaves out the fields of the events: they are read by themselves.
        listed(
            || (),
            move |(), page| {
                let ReportPage { session, .. } = *page;
                let (report, diagnostics) = gather(session, spec, plan, &mut |_| {})?;
                Ok(ReportSection {
                    title: report.title.clone().unwrap_or_else(|| "Plot".to_owned()),
                    figures: figure(session, spec, &report, &diagnostics, page.sheet)?,
                    text: crate::text(&report),
                    json: json(&TraceDocument::of(session, &report, &diagnostics))?,
                })
            },
        )
    })))
}

/// The specifications that come with the program, each with its purpose.
fn list() -> String {
    let mut out = String::new();
    for view in VIEWS {
        let about = Spec::parse(view.source).ok().and_then(|spec| spec.about).unwrap_or_default();
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{:<12} {about}", view.name);
    }
    out
}

/// Shows the events of the window to the plan.
fn gather(
    session: &Session,
    spec: &Spec,
    plan: &Plan,
    found: &mut dyn FnMut(&Found<'_>),
) -> Result<(PlotReport, Diagnostics)> {
    let window = window(session, session.from, session.to);
    let (plot, diagnostics) = shown(session, spec, plan, window, Keeps::Nothing, found)?;
    Ok((plot.finish(), diagnostics))
}

/// The window from `from` to `to` with the CPUs that are shown.
fn window(session: &Session, from: Ts, to: Ts) -> crate::Window {
    crate::Window { from, to, cpus: session.shown.cpus.clone() }
}

/// Refuses a specification that is wrong, or does not fit the trace.
pub fn check(session: &Session, named: &str) -> Result<()> {
    fitting(session, named).map(drop)
}

/// All that a specification draws in a trace.
#[derive(Debug)]
pub struct KeptPlot {
    /// The specification of the figure.
    pub spec: Spec,
    /// The numbers of the whole trace.
    pub report: PlotReport,
    /// The marks, kept one by one.
    pub drawn: Drawn,
}

/// Returns all that a specification draws in a trace, for a page that shows any part of it.
pub fn kept(session: &Session, named: &str) -> Result<KeptPlot> {
    let (spec, plan) = fitting(session, named)?;
    let window = window(session, session.start, session.to);
    let (plot, _) = shown(session, &spec, &plan, window, Keeps::Everything, &mut |_| {})?;
    let (report, drawn) = plot.finish_kept();
    let drawn = *drawn.context("nothing was kept")?;
    Ok(KeptPlot { spec, report, drawn })
}

/// The numbers of a specification in a window.
pub fn numbers(session: &Session, named: &str, from: Ts, to: Ts) -> Result<PlotReport> {
    let (spec, plan) = fitting(session, named)?;
    let window = window(session, from, to);
    Ok(shown(session, &spec, &plan, window, Keeps::Nothing, &mut |_| {})?.0.finish())
}

/// Whether everything that is drawn is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keeps {
    Nothing,
    Everything,
}

/// A plot that was shown the events of its window, behind what the events before it left.
fn shown<'p>(
    session: &Session,
    spec: &Spec,
    plan: &'p Plan,
    window: crate::Window,
    keeps: Keeps,
    found: &mut dyn FnMut(&Found<'_>),
) -> Result<(Plot<'p>, Diagnostics)> {
    let called = if spec.uses_commands() { Some(session.names()?) } else { None };
    let (from, to) = (window.from, window.to);
    Ok(progress::watched(&session.trace, session.read.quiet, || {
        let (before, is_known) = read_before::of_window(session, plan, &window, called.as_ref());
        let carried = read_before::events(&session.trace, &before);
        let mut plot = match keeps {
            Keeps::Nothing => Plot::new(plan, window, &carried),
            Keeps::Everything => Plot::keeping(plan, window, &carried),
        };
        if !is_known {
            plot.note(read_before::UNKNOWN);
        }
        let last = if to < session.to { Ts(to.0.saturating_sub(1)).max(from) } else { session.last() };
        let read = read(session, (from, last), called.as_ref(), &mut plot, found);
        (plot, with_those_of(session, &read))
    }))
}

/// Shows the records of a window, from its first instant to its last one, to a figure. All threads read them, and one takes what the figure needs: the pairs of a key,
/// lanes and colours go by the order of all events.
fn read(
    session: &Session,
    (from, last): (Ts, Ts),
    called: Option<&NameHistory>,
    plot: &mut Plot<'_>,
    found: &mut dyn FnMut(&Found<'_>),
) -> Diagnostics {
    if session.read.threads() < 2 {
        // A run of records would have to be kept with the neighbours of each.
        return session.trace.records_from(from, &mut |record| {
            if record.ts > last {
                return ControlFlow::Break(());
            }
            plot.event(&Recorded::new(record, called), found);
            ControlFlow::Continue(())
        });
    }
    let picker = plot.picker();
    let pick = |records: &mut dyn Iterator<Item = Neighbours<'_>>| {
        let mut steps = PickedSteps::default();
        for Neighbours { record, .. } in records {
            if record.ts > last {
                return (steps, ControlFlow::Break(()));
            }
            steps.add(&Recorded::new(&record, called), &picker);
        }
        (steps, ControlFlow::Continue(()))
    };
    session.trace.records_mapped(from, pick, &mut |(steps, flow)| {
        plot.take(steps, found);
        flow
    })
}

/// Writes all intervals of the window as comma-separated values.
fn table(session: &Session, spec: &Spec, plan: &Plan, out: &mut dyn io::Write) -> Result<()> {
    let mut table = CsvWriter::new(out, "interval,start_ns,length_ns,cpu,pid,value,label")?;
    let mut written = Ok(());
    gather(session, spec, plan, &mut |found| {
        let (value, label) = (found.value.unwrap_or_default(), found.label.unwrap_or_default());
        if written.is_ok() {
            written =
                table.row(&[&found.name, &found.start.0, &found.length.0, &found.cpu, &found.pid, &value, &label]);
        }
    })?;
    written?;
    table.finish()
}

/// Draws the figure, over the running tasks where rows are CPUs.
fn figure(
    session: &Session,
    spec: &Spec,
    report: &PlotReport,
    diagnostics: &Diagnostics,
    sheet: &Sheet,
) -> Result<Vec<Figure>> {
    let options = crate::Options {
        zero: session.start,
        cpus: session.shown.cpus.clone(),
        all_cpus: session.shown.all.clone(),
        group_name: session.shown.group_name.clone(),
    };
    let pale = match spec.lanes.background {
        Background::Grey => Some(true),
        Background::Color => Some(false),
        Background::None => None,
    };
    let pale = pale.filter(|_| spec.lanes.by == LaneKind::Cpu && session.trace.has(Tracepoint::Switch));
    let ground = pale.map(|pale| Coloring { pale, ..Coloring::default() });
    over_lanes(ground, session, diagnostics, sheet, |heading, background| {
        crate::figure(report, spec, &options, heading, background)
    })
}

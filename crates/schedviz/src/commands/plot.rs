//! `schedviz plot`: a figure of any events, by a specification.

mod before;
mod record;

use crate::commands::events::{over_lanes, with_those_of};
use ::plot::{Background, Found, LaneKind, Plan, Plot, PlotReport, Spec, VIEWS};
use anyhow::{Context, Result, anyhow, bail};
pub(crate) use before::note;
use draw::Figure;
use lanes::Coloring;
use record::{Recorded, catalog};
use sched::{Diagnostics, Tracepoint, Ts};
use session::Session;
use session::args::{ReadArgs, WindowArgs, read_text};
use session::csv::quoted;
use session::document::TraceDocument;
use session::formats::{Formats, OutputArgs, Renderings, json};
use session::progress;
use session::section::{MaybeSection, ReportPage, ReportSection, listed, part};
use session::writer::print;
use std::fmt::Write as _;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use timeline::Sheet;
use view::Plotted;

/// Draw a figure of any events, by a specification of your own
///
/// A specification is a TOML file with four kinds of tables: `interval` draws bars from an event to the next one that
/// agrees with it, `point` markers, `series` lines under the rows; `lanes` defines the rows. --list shows the
/// specifications that come with the program, --explain the content of a figure, and --print a specification, to be
/// copied and changed.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_args(|argument| FORMATS.fit(argument)))]
pub(crate) struct PlotArgs {
    /// The specification: a file, or the name of one that comes with the program
    #[arg(value_name = "SPEC", required_unless_present_any = ["list", "schema"])]
    spec: Option<String>,
    /// The recording: a trace.dat of version 6 or 7
    #[arg(value_name = "TRACE", required_unless_present_any = ["list", "explain", "print", "schema"])]
    path: Option<PathBuf>,
    /// List the specifications that come with the program
    #[arg(long, conflicts_with_all = ["spec", "explain", "print"])]
    list: bool,
    /// Print what the figure shows, in sentences, and draw nothing
    #[arg(long)]
    explain: bool,
    /// Print the specification, and draw nothing
    #[arg(long, conflicts_with = "explain")]
    print: bool,
    /// Print the JSON schema of specifications, by which an editor completes and checks them
    #[arg(long, conflicts_with_all = ["spec", "list", "explain", "print"])]
    schema: bool,
    #[command(flatten)]
    read: ReadArgs,
    #[command(flatten)]
    window: WindowArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// The forms of its output.
const FORMATS: Formats = Formats::figure_of("plot").and_text().and_table();

const EXAMPLES: &str = "\
Examples:
  schedviz plot --list
  schedviz plot irq trace.dat                interrupts, as trace.plot.pdf
  schedviz plot locks --explain                 what that figure would show
  schedviz plot locks --print > mine.toml       a specification of your own
  schedviz plot mine.toml trace.dat --min 1.2 --max 1.3 -o mine.svg
  schedviz plot mine.toml trace.dat -o intervals.csv";

/// Lists, explains, or draws and writes.
pub(crate) fn run(args: &PlotArgs) -> Result<()> {
    if args.list {
        return print(list().as_bytes());
    }
    if args.schema {
        return print(::plot::SCHEMA.as_bytes());
    }
    let Some(named) = args.spec.as_deref() else { bail!("name a specification, or use --list") };
    let source = source(named)?;
    if args.print {
        return print(source.as_bytes());
    }
    let spec = Spec::parse(&source).map_err(|e| anyhow!("{named}: {e}"))?;
    if args.explain {
        return print(plot::explain(&spec).as_bytes());
    }
    args.output.check(FORMATS)?;
    let Some(path) = &args.path else { bail!("name a recording, or use --explain") };
    let session = Session::of_any_events(path, &args.read, &args.window)?;
    let plan = Plan::new(&spec, &catalog(&session)).map_err(|e| anyhow!("{named}: {e}"))?;
    let (report, diagnostics) = gather(&session, &spec, &plan, &mut |_| {})?;
    let figure = |sheet: &Sheet| figure(&session, &spec, &report, &diagnostics, sheet);
    let csv = |out: &mut dyn io::Write| table(&session, &spec, &plan, out);
    let forms = Renderings::told(|| plot::text(&report), figure).and_drawn().with_csv(csv);
    TraceDocument::of(&session, &report, &diagnostics).give("plot", &session, &args.output, forms)
}

/// The section of a specification in a report. An event that the trace lacks is an error, as it is of the command.
pub(crate) fn section<'s>(session: &'s Session, named: &str) -> MaybeSection<'s> {
    Ok(Some(part(fitting(session, named)?, |(spec, plan)| {
        // A pass leaves out the fields of the events: they are read by themselves.
        listed((), move |(), page| {
            let ReportPage { session, .. } = *page;
            let (report, diagnostics) = gather(session, spec, plan, &mut |_| {})?;
            Ok(ReportSection {
                title: report.title.clone().unwrap_or_else(|| "Plot".to_owned()),
                figures: figure(session, spec, &report, &diagnostics, page.sheet)?,
                text: plot::text(&report),
                json: json(&TraceDocument::of(session, &report, &diagnostics))?,
            })
        })
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

/// The text of a specification: of a file, or of one that comes with the program.
fn source(named: &str) -> Result<String> {
    let path = Path::new(named);
    if let Some(view) = VIEWS.iter().find(|view| view.name == named).filter(|_| !path.exists()) {
        return Ok(view.source.to_owned());
    }
    if !path.exists() {
        let names: Vec<&str> = VIEWS.iter().map(|view| view.name).collect();
        bail!("{named}: no such file, and no specification of this name comes with the program: {}", names.join(", "));
    }
    let size = path.metadata().with_context(|| named.to_owned())?.len();
    if size > plot::MAX_SIZE as u64 {
        bail!("{named}: a specification is at most {} kB long", plot::MAX_SIZE / 1024);
    }
    read_text(path)
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

/// A window with the CPUs shown.
fn window(session: &Session, from: Ts, to: Ts) -> plot::Window {
    plot::Window { from, to, cpus: session.shown.cpus.clone() }
}

/// A specification that fits a trace.
fn fitting(session: &Session, named: &str) -> Result<(Spec, Plan)> {
    let spec = Spec::parse(&source(named)?).map_err(|e| anyhow!("--plot {named}: {e}"))?;
    let plan = Plan::new(&spec, &catalog(session)).map_err(|e| anyhow!("--plot {named}: {e}"))?;
    Ok((spec, plan))
}

/// Refuses a specification that is wrong, or does not fit the trace.
pub(crate) fn check(session: &Session, named: &str) -> Result<()> {
    fitting(session, named).map(drop)
}

/// All that a specification draws in a trace, for the page of `view`.
pub(crate) fn kept(session: &Session, named: &str) -> Result<Plotted> {
    let (spec, plan) = fitting(session, named)?;
    let window = window(session, session.start, session.to);
    let (plot, _) = shown(session, &spec, &plan, window, Keeps::Everything, &mut |_| {})?;
    let (report, drawn) = plot.finish_kept();
    let drawn = *drawn.context("nothing was kept")?;
    let by = match &spec.lanes.by {
        LaneKind::Cpu => "cpu".to_owned(),
        LaneKind::Task => "task".to_owned(),
        LaneKind::Field(field) => field.text.clone(),
    };
    let grey = spec.lanes.background == Background::Grey;
    Ok(Plotted { name: named.to_owned(), about: spec.about.clone(), by, grey, report, drawn })
}

/// The numbers of a specification in a window.
pub(crate) fn numbers(session: &Session, named: &str, from: Ts, to: Ts) -> Result<PlotReport> {
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
    window: plot::Window,
    keeps: Keeps,
    found: &mut dyn FnMut(&Found<'_>),
) -> Result<(Plot<'p>, Diagnostics)> {
    let called = if spec.uses_commands() { Some(session.names()?) } else { None };
    let (from, to) = (window.from, window.to);
    Ok(progress::watched(&session.trace, session.read.quiet, || {
        let (before, is_known) = before::of_window(session, plan, &window, called.as_ref());
        let carried = before::events(&session.trace, &before);
        let mut plot = match keeps {
            Keeps::Nothing => Plot::new(plan, window, &carried),
            Keeps::Everything => Plot::keeping(plan, window, &carried),
        };
        if !is_known {
            plot.note(before::UNKNOWN);
        }
        let read = session.trace.records_from(from, &mut |record| {
            if record.ts > to {
                return ControlFlow::Break(());
            }
            plot.event(&Recorded::new(record, called.as_ref()), found);
            ControlFlow::Continue(())
        });
        (plot, with_those_of(session, &read))
    }))
}

/// All intervals as a table.
fn table(session: &Session, spec: &Spec, plan: &Plan, out: &mut dyn io::Write) -> Result<()> {
    writeln!(out, "interval,start_ns,length_ns,cpu,pid,value,label")?;
    let mut written = Ok(());
    gather(session, spec, plan, &mut |found| {
        let field = |text: Option<&str>| text.map(quoted).unwrap_or_default();
        let (start, length) = (found.start.0, found.length.0);
        let (value, label) = (field(found.value), field(found.label));
        if written.is_ok() {
            let name = quoted(found.name);
            written = writeln!(out, "{name},{start},{length},{},{},{value},{label}", found.cpu, found.pid);
        }
    })?;
    Ok(written?)
}

/// The figure, over the running tasks where rows are CPUs.
fn figure(
    session: &Session,
    spec: &Spec,
    report: &PlotReport,
    diagnostics: &Diagnostics,
    sheet: &Sheet,
) -> Result<Vec<Figure>> {
    let options = plot::Options {
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
        plot::figure(report, spec, &options, heading, background)
    })
}

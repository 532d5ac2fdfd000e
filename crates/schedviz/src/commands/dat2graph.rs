//! `schedviz dat2graph`: reads each CPU by itself, in parallel, and draws the lanes.

pub(super) mod frequencies;
mod lanes;
mod overlay;
mod stretches;

use ::lanes::{ColorBy, Coloring, Mark, Options, Timeline, learn, read_lanes};
use anyhow::{Result, bail};
use sched::Tracepoint;
use sched::chosen::is_called;
use sched::topology::CpuOrder;
use session::Session;
use session::args::{TaskArgs, TraceArgs, needs_groups};
use session::document::TraceDocument;
use session::formats::{Formats, OutputArgs, Renderings};
use session::messages::emit;
use session::patterns;
use session::section::{MaybeSection, ReportSection, listed, part};
use std::io::Write;
use timeline::Sheet;
use tracedat::{Trace, Want};

/// Draw what every CPU ran at every moment
///
/// Time runs from left to right, each CPU has a lane. A colour stands for a task, a gap is an idle CPU,
/// hatching a time of which nothing is known because events were lost, a line a time that it was offline.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_args(|argument| FORMATS.fit(argument)))]
pub(crate) struct Dat2graphArgs {
    #[command(flatten)]
    trace: TraceArgs,
    #[command(flatten)]
    tool: ::lanes::DrawArgs,
    /// Draw the critical path of the traced command over the CPUs in pale grey, as schedviz path does
    #[arg(long = "path", conflicts_with_all = ["target", "events", "frequency"])]
    draw_path: bool,
    /// The same to the exit of this task
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(i32).range(1..),
          conflicts_with_all = ["target", "events", "frequency"])]
    path_to: Option<i32>,
    /// Draw wakeups: an arrow from the waking to the run queue, a line from there to the first run; bars where they are
    /// too many. --tasks, --pid and --cpus choose woken tasks and CPUs
    #[arg(long, conflicts_with_all = ["draw_path", "path_to", "target", "forked"])]
    wakeups: bool,
    #[command(flatten)]
    tasks: TaskArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// The forms of its output.
const FORMATS: Formats = Formats::figure_of("dat2graph").and_table();

const EXAMPLES: &str = "\
Examples:
  schedviz dat2graph trace.dat                     as trace.dat2graph.pdf
  schedviz dat2graph trace.dat --min 3 --max 3.2   a fifth of a second of it
  schedviz dat2graph trace.dat --target ua -o ua.svg
                                                   one command in colour
  schedviz dat2graph trace.dat --color-by class --forked
                                                   the traced command's tasks
  schedviz dat2graph trace.dat --path              its critical path
  schedviz dat2graph trace.dat --lanes node        a lane for each node
  schedviz dat2graph trace.dat --wakeups --cpus 0,3 --min 3 --max 3.001
                                                   arrows of the wakeups
                                                   between two CPUs
  schedviz dat2graph trace.dat -o lanes.csv        every stretch, as a table
  schedviz dat2graph trace.dat --events sched:sched_move_numa,lb:* \\
      --topology cpus.json                         with markers of events";

/// Reads, draws and writes.
pub(crate) fn run(args: &Dat2graphArgs) -> Result<()> {
    args.output.check(FORMATS)?;
    let session = args.trace.open()?;
    let trace = &session.trace;
    if trace.format_of(Tracepoint::Switch).is_none() {
        bail!(
            "{}: sched:sched_switch was not recorded; record with trace-cmd record -e sched",
            session.path().display()
        );
    }
    args.tasks.check(&session)?;
    if let Some(target) = &args.tool.target {
        session.needs_task(&format!("--target {target}"), |_, name| is_called(name, target))?;
    }
    lanes::check(args, &session)?;
    let overlaid = overlay::find(args, &session)?;
    let marks = marks(trace, &args.tool.events)?;
    let mut coloring = coloring(args, &session)?;
    let (lanes, options, mut diagnostics) = session.watched(|| {
        learn(&mut coloring, trace, &session.topology)?;
        let mut options = Options {
            marks: marks.iter().map(|m| m.name.clone()).collect(),
            frequency: args.tool.frequency,
            ..session.lanes(session.from, session.to, coloring)
        };
        lanes::join(args, &session, &mut options);
        let reader = trace.cpu_reader(Want::Switches)?;
        let (mut lanes, diagnostics) = read_lanes(trace, &reader, &options, &marks);
        if let Some(lane) = lanes.first_mut().filter(|_| args.tool.frequency) {
            lane.frequencies = frequencies::changes(&session, &reader);
        }
        Ok((lanes, options, diagnostics))
    })?;
    diagnostics.merge(trace.diagnostics());
    let report = ::lanes::report(&lanes, &options);
    if args.tool.frequency && lanes.iter().all(|l| l.frequencies.is_empty()) && !session.read.quiet {
        emit(frequencies::why_none(&session));
    }
    for event in report.events.iter().filter(|event| event.count == 0 && !session.read.quiet) {
        emit(&format!("{}: 0 events in the window", event.event));
    }
    let figure = |sheet: &Sheet| {
        lanes::advise(args, &session, &options);
        let heading = session.lanes_heading(&report, &diagnostics).on(sheet);
        let fewer = overlaid.fewer(args, &session, &options)?;
        let (lanes, options, hidden) =
            fewer.as_ref().map_or((&lanes, &options, 0), |(lanes, options, n)| (lanes, options, *n));
        overlaid.over(&session, options, hidden, |overlay| {
            Ok(vec![::lanes::figure_with(lanes, &report, options, &heading, overlay)])
        })
    };
    let stretches = |out: &mut dyn Write| stretches::table(&session, &options, out);
    let document = TraceDocument::of(&session, &report, &diagnostics);
    document.give("dat2graph", &session, &args.output, Renderings::drawn(figure).with_csv(stretches))
}

/// The events that match `SYSTEM:NAME` patterns.
fn marks(trace: &Trace, wanted: &[String]) -> Result<Vec<Mark>> {
    let mark = |format: &tracedat::EventFormat| Mark { name: patterns::full_name(format), id: Some(format.id) };
    let asked = patterns::asked(trace, wanted)?;
    let found = asked.formats.into_iter().map(mark);
    let absent = asked.absent.into_iter().map(|name| Mark { name, id: None });
    Ok(found.chain(absent).collect())
}

fn coloring(args: &Dat2graphArgs, session: &Session) -> Result<Coloring> {
    if args.tool.color_by == Some(ColorBy::Node) {
        needs_groups(&session.topology, CpuOrder::Node, "--color-by node")?;
    }
    Ok(Coloring {
        target: args.tool.target.clone(),
        tasks: args.tasks.filter(),
        forked: args.tasks.forked,
        by: args.tool.color_by.unwrap_or_else(|| session.usual_color()),
        ..Coloring::default()
    })
}

/// Its section in a report, whose lanes are the ground of other figures.
pub(crate) fn section(session: &Session) -> MaybeSection<'_> {
    let coloring = session.learned(Coloring { by: session.usual_color(), ..Coloring::default() })?;
    let mut options = session.lanes(session.from, session.to, coloring);
    session.join_lanes(&mut options);
    Ok(Some(part(options, |options| {
        listed(Timeline::new(options), move |lanes, page| {
            let ran = ::lanes::report(&lanes, options);
            let heading = page.session.lanes_heading(&ran, page.diagnostics).on(page.sheet);
            let figures = vec![::lanes::figure(&lanes, &ran, options, &heading)];
            page.keep_lanes(options.apart(lanes));
            Ok(ReportSection {
                title: "What every CPU ran".to_owned(),
                figures,
                text: String::new(),
                json: page.json(&ran)?,
            })
        })
    })))
}

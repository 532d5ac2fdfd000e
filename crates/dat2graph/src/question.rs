//! `schedviz dat2graph`: reads each CPU by itself, in parallel, and draws the lanes.

use crate::Dat2graphArgs;
use crate::args::FORMATS;
use crate::{frequencies, joined, overlay, stretches, vcpus};
use anyhow::{Result, bail};
use lanes::{ColorBy, Coloring, Mark, Options, Timeline, learn, read_lanes};
use parse::{Trace, Want};
use question::{Question, Subcommand};
use sched::Tracepoint;
use sched::chosen::is_called;
use sched::topology::CpuOrder;
use serde::Serialize;
use session::Session;
use session::args::needs_groups;
use session::document::TraceDocument;
use session::formats::{Formats, Renderings};
use session::host::Vcpus;
use session::messages::emit;
use session::patterns;
use session::section::{MaybeSection, ReportSection, listed, part};
use std::io::Write;
use std::process::ExitCode;
use timeline::Sheet;

/// The report, with the vCPUs of a guest.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Dat2graphReport<'r> {
    #[serde(flatten)]
    report: &'r lanes::Report,
    /// The vCPUs of this guest, by the recording of its host; absent unless asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<&'r Vcpus>,
}

/// The task that every CPU ran at every moment.
#[derive(Debug)]
pub struct Dat2graphQuestion;

impl Subcommand for Dat2graphQuestion {
    const NAME: &'static str = "dat2graph";
    const FIRST_STEP: Option<(&'static str, &'static str)> = Some(("dat2graph trace.dat", "what ran on every CPU"));
    const QUESTION: Option<(&'static str, &'static str)> = Some(("Which task ran on each CPU?", "TRACE"));
    type Args = Dat2graphArgs;

    fn run(args: &Dat2graphArgs) -> Result<ExitCode> {
        run(args).map(|()| ExitCode::SUCCESS)
    }
}

impl Question for Dat2graphQuestion {
    const FORMATS: Formats = FORMATS;
    const IN_REPORT: bool = true;

    fn section(session: &Session) -> MaybeSection<'_> {
        let coloring = session.learned(Coloring { by: session.usual_color(), ..Coloring::default() })?;
        let mut options = session.lanes(session.from, session.to, coloring);
        session.join_lanes(&mut options);
        Ok(Some(part(options, |options| {
            listed(
                || Timeline::new(options),
                move |lanes, page| {
                    let ran = lanes::report(&lanes, options);
                    let heading = page.session.lanes_heading(&ran, page.diagnostics).on(page.sheet);
                    let figures = vec![lanes::figure(&lanes, &ran, options, &heading)];
                    page.keep_lanes(options.apart(lanes));
                    Ok(ReportSection {
                        title: "What every CPU ran".to_owned(),
                        figures,
                        text: String::new(),
                        json: page.json(&ran)?,
                    })
                },
            )
        })))
    }

    #[cfg(feature = "schema")]
    fn schemas() -> Vec<question::NamedSchema> {
        vec![question::schema::<TraceDocument<'static, Dat2graphReport<'static>>>(lanes::SCHEMA)]
    }
}

/// Reads the trace, draws the lanes and writes the figure.
pub(crate) fn run(args: &Dat2graphArgs) -> Result<()> {
    args.output.check(FORMATS)?;
    let by_descent = args.tasks.forked || args.draw_path || args.color_by == Some(ColorBy::Class);
    let (session, vcpus) = args.host.open(&args.trace)?;
    let session = session.with_judged_command_if(by_descent)?;
    let trace = &session.trace;
    if trace.format_of(Tracepoint::Switch).is_none() {
        bail!(
            "{}: sched:sched_switch was not recorded; record with trace-cmd record -e sched",
            session.path().display()
        );
    }
    args.tasks.check(&session)?;
    if let Some(target) = &args.target {
        session.needs_task(&format!("--target {target}"), |_, name| is_called(name, target))?;
    }
    joined::check(args, &session)?;
    let overlaid = overlay::find(args, &session)?;
    let marks = marks(trace, &args.events)?;
    let mut coloring = coloring(args, &session)?;
    let (lanes, options, mut diagnostics) = session.watched(|| {
        learn(&mut coloring, trace, &session.topology)?;
        let mut options = Options {
            marks: marks.iter().map(|m| m.name.clone()).collect(),
            frequency: args.frequency,
            ..session.lanes(session.from, session.to, coloring)
        };
        joined::join(args, &session, &mut options);
        let reader = trace.cpu_reader(Want::Switches)?;
        let (mut lanes, diagnostics) = read_lanes(trace, &reader, &options, &marks);
        if let Some(lane) = lanes.first_mut().filter(|_| args.frequency) {
            lane.frequencies = frequencies::changes(&session, &reader);
        }
        Ok((lanes, options, diagnostics))
    })?;
    diagnostics.merge(trace.diagnostics());
    let report = lanes::report(&lanes, &options);
    if args.frequency && lanes.iter().all(|l| l.frequencies.is_empty()) && !session.read.quiet {
        emit(frequencies::why_none(&session));
    }
    for event in report.events.iter().filter(|event| event.count == 0 && !session.read.quiet) {
        emit(&format!("{}: 0 events in the window", event.event));
    }
    let figure = |sheet: &Sheet| {
        joined::advise(args, &session, &options);
        let heading = session.lanes_heading(&report, &diagnostics).on(sheet);
        let fewer = overlaid.fewer(args, &session, &options)?;
        let (lanes, options, hidden) =
            fewer.as_ref().map_or((&lanes, &options, 0), |(lanes, options, n)| (lanes, options, *n));
        overlaid.over(&session, options, hidden, |overlay| {
            vcpus::over(vcpus.as_ref(), options, overlay, |overlay| {
                Ok(vec![lanes::figure_with(lanes, &report, options, &heading, overlay)])
            })
        })
    };
    let stretches = |out: &mut dyn Write| stretches::table(&session, &options, out);
    let report = Dat2graphReport { report: &report, host: vcpus.as_ref() };
    let document = TraceDocument::of(&session, &report, &diagnostics);
    document.give("dat2graph", &session, &args.output, Renderings::drawn(figure).with_csv(stretches))
}

/// The events that match `SYSTEM:NAME` patterns.
fn marks(trace: &Trace, wanted: &[String]) -> Result<Vec<Mark>> {
    let mark = |format: &parse::EventFormat| Mark { name: patterns::full_name(format), id: Some(format.id) };
    let asked = patterns::asked(trace, wanted)?;
    let found = asked.formats.into_iter().map(mark);
    let absent = asked.absent.into_iter().map(|name| Mark { name, id: None });
    Ok(found.chain(absent).collect())
}

fn coloring(args: &Dat2graphArgs, session: &Session) -> Result<Coloring> {
    if args.color_by == Some(ColorBy::Node) {
        needs_groups(&session.topology, CpuOrder::Node, "--color-by node")?;
    }
    let by = args.color_by.unwrap_or_else(|| session.usual_color());
    Ok(Coloring {
        groups: by.groups().map(|rule| session.task_groups(rule)).transpose()?,
        target: args.target.clone(),
        tasks: args.tasks.chosen(session)?,
        forked: args.tasks.forked,
        by,
        ..Coloring::default()
    })
}

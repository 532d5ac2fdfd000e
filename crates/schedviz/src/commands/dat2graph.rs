//! `schedviz dat2graph`: reads each CPU by itself, in parallel, and draws the lanes.

mod frequencies;
mod slices;

use crate::args::{TaskArgs, TraceArgs, needs_groups};
use crate::document::Document;
use crate::heading::Loss;
use crate::output::{Forms, Gives, OutputArgs};
use crate::patterns;
use crate::session::Session;
use anyhow::{Result, bail};
use dat2graph::{ColorBy, Coloring, Lane, LaneFold, Needs, Options};
use sched::chosen::is_called;
use sched::topology::Order;
use sched::{Cpu, Current, Diagnostics, EventIssue, EventSource, Kind, SchedEvent, Topology, Tracepoint, Ts};
use std::collections::HashMap;
use std::io::Write;
use std::ops::ControlFlow;
use timeline::Sheet;
use timeline::page::Heading;
use timeline::palette::TaskColors;
use tracedat::{CpuReader, Trace, Want};

/// Draw what every core ran at every moment
///
/// Time runs from left to right, each core has a lane. Colour tells the task, a gap is an idle core,
/// hatching a time of which nothing is known because events were lost, a line a time that it was offline.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_args(|argument| GIVES.fit(argument)))]
pub(crate) struct Dat2graphArgs {
    #[command(flatten)]
    trace: TraceArgs,
    #[command(flatten)]
    tool: dat2graph::DrawArgs,
    #[command(flatten)]
    tasks: TaskArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// The forms of its output.
const GIVES: Gives = Gives::figure_of("dat2graph").and_table();

const EXAMPLES: &str = "\
Examples:
  schedviz dat2graph trace.dat                     as trace.dat2graph.pdf
  schedviz dat2graph trace.dat --min 3 --max 3.2   a fifth of a second of it
  schedviz dat2graph trace.dat --target ua -o ua.svg
                                                   one command in colour
  schedviz dat2graph trace.dat --color-by class --forked
                                                   the traced command's tasks
  schedviz dat2graph trace.dat -o slices.csv       every slice, as a table
  schedviz dat2graph trace.dat --events sched:sched_move_numa,lb:* \\
      --topology cpus.json                         with markers of events";

/// A marked event: its name, and how it is recognised.
pub(crate) struct Mark {
    name: String,
    id: Option<u16>,
}

/// Reads, draws and writes.
pub(crate) fn run(args: &Dat2graphArgs) -> Result<()> {
    args.output.check(GIVES)?;
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
    let marks = marks(trace, &args.tool.events)?;
    let mut coloring = coloring(args, &session.topology)?;
    let (lanes, options, mut diagnostics) = session.watched(|| {
        learn(&mut coloring, trace, &session.topology)?;
        let options = Options {
            marks: marks.iter().map(|m| m.name.clone()).collect(),
            frequency: args.tool.frequency,
            ..session.lanes(session.from, session.to, coloring)
        };
        let reader = trace.cpu_reader(Want::Switches)?;
        let (mut lanes, diagnostics) = read_lanes(trace, &reader, &options, &marks);
        if let Some(lane) = lanes.first_mut().filter(|_| args.tool.frequency) {
            lane.frequencies = frequencies::changes(&session, &reader);
        }
        Ok((lanes, options, diagnostics))
    })?;
    diagnostics.merge(trace.diagnostics());
    let report = dat2graph::report(&lanes, &options);
    if args.tool.frequency && lanes.iter().all(|l| l.frequencies.is_empty()) && !session.read.quiet {
        eprintln!("schedviz: {}", frequencies::why_none(&session));
    }
    for event in report.events.iter().filter(|event| event.count == 0 && !session.read.quiet) {
        eprintln!("schedviz: {}: 0 events in the window", event.event);
    }
    let figure = |sheet: &Sheet| {
        let heading = heading(&session, &report, &diagnostics).on(sheet);
        Ok(vec![dat2graph::figure(&lanes, &report, &options, &heading)])
    };
    let slices = |out: &mut dyn Write| slices::table(&session, &options, out);
    let document = Document::of(&session, &report, &diagnostics);
    document.give("dat2graph", &session, &args.output, Forms::drawn(figure).with_csv(slices))
}

/// Reads all lanes, in parallel; in display order, without the CPUs that told nothing.
pub(crate) fn read_lanes(
    trace: &Trace,
    reader: &CpuReader<'_>,
    options: &Options,
    marks: &[Mark],
) -> (Vec<Lane>, Diagnostics) {
    let cpus: Vec<Cpu> = options.cpus.iter().map(|(cpu, _)| *cpu).collect();
    let mark_of = |event: &SchedEvent| {
        if marks.is_empty() {
            return None;
        }
        match event.kind {
            Kind::Other { id } | Kind::Stack { id } | Kind::Interrupt { id, .. } => {
                marks.iter().position(|m| m.id == Some(id))
            }
            kind => {
                let name = kind.tracepoint()?.full_name();
                marks.iter().position(|m| m.name == name)
            }
        }
    };
    let lanes = trace.in_parallel(cpus, |cpu| {
        let mut fold = LaneFold::new(cpu, options);
        let mut diagnostics = Diagnostics::default();
        // Events of further buffers can be marked; only the first one has the switches.
        for (nth, buffer) in reader.buffers_of(cpu).into_iter().enumerate() {
            if nth > 0 && marks.is_empty() {
                break;
            }
            let found = reader.events(buffer, cpu, Some(options.from), &mut |event| {
                let more = if nth == 0 { fold.apply(event, mark_of(event)) } else { fold.mark(event, mark_of(event)) };
                if more { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
            diagnostics.merge(&found);
        }
        diagnostics.add_many(EventIssue::EventsLost, fold.gaps());
        diagnostics.add_many(EventIssue::SwitchPrevMismatch, fold.mismatches());
        (fold.finish(), diagnostics)
    });
    let mut diagnostics = Diagnostics::default();
    lanes.iter().for_each(|(_, found)| diagnostics.merge(found));
    (lanes.into_iter().filter_map(|(lane, _)| lane).collect(), diagnostics)
}

/// The events that match `SYSTEM:NAME` patterns.
fn marks(trace: &Trace, wanted: &[String]) -> Result<Vec<Mark>> {
    let mark = |format: &tracedat::EventFormat| Mark { name: patterns::full_name(format), id: Some(format.id) };
    let asked = patterns::asked(trace, wanted)?;
    let found = asked.formats.into_iter().map(mark);
    let absent = asked.absent.into_iter().map(|name| Mark { name, id: None });
    Ok(found.chain(absent).collect())
}

fn coloring(args: &Dat2graphArgs, topology: &Topology) -> Result<Coloring> {
    if args.tool.color_by == ColorBy::Node {
        needs_groups(topology, Order::Node, "--color-by node")?;
    }
    Ok(Coloring {
        target: args.tool.target.clone(),
        tasks: args.tasks.filter()?,
        forked: args.tasks.forked,
        by: args.tool.color_by,
        ..Coloring::default()
    })
}

/// Finds out what the colours depend on, from the whole trace: a window must not change a colour.
pub(crate) fn learn(coloring: &mut Coloring, trace: &Trace, topology: &Topology) -> Result<(), tracedat::Error> {
    let Needs { lineage, homes, commands, tasks } = coloring.needs();
    if tasks {
        coloring.task_colors = TaskColors::of_longest(trace.sampled_tasks());
    }
    if commands {
        coloring.know(trace.sampled_commands());
    }
    if lineage {
        trace.events_of(Want::Lineage)?.events(&mut |events| {
            events.iter().for_each(|event| coloring.lineage.learn(event));
            ControlFlow::Continue(())
        })?;
    }
    if homes {
        let reader = trace.cpu_reader(Want::Switches)?;
        let firsts = trace.in_parallel(trace.observed(), |cpu| (cpu, first_runs(&reader, cpu)));
        let mut homes: HashMap<sched::Pid, (Ts, Cpu)> = HashMap::new();
        for (cpu, firsts) in firsts {
            for (pid, ts) in firsts {
                let home = homes.entry(pid).or_insert((ts, cpu));
                *home = (*home).min((ts, cpu));
            }
        }
        let node = |cpu: Cpu| topology.group(cpu, Order::Node);
        coloring.homes = homes.into_iter().filter_map(|(pid, (_, cpu))| Some((pid, node(cpu)?))).collect();
    }
    Ok(())
}

/// When each task first ran on a CPU.
fn first_runs(reader: &CpuReader<'_>, cpu: Cpu) -> HashMap<sched::Pid, Ts> {
    let mut firsts = HashMap::new();
    for buffer in reader.buffers_of(cpu).into_iter().take(1) {
        reader.events(buffer, cpu, None, &mut |event| {
            if let Some(pid) = Current::of(event.pid).pid() {
                firsts.entry(pid).or_insert(event.ts);
            }
            if let Kind::Switch { next, .. } = event.kind {
                firsts.entry(next.pid).or_insert(event.ts);
            }
            ControlFlow::Continue(())
        });
    }
    firsts
}

/// The texts around the plot.
pub(crate) fn heading(session: &Session, report: &dat2graph::Report, diagnostics: &Diagnostics) -> Heading {
    let loss = Loss::of_lanes(report.lanes.iter(), report.to_ns.since(report.from_ns));
    session.lossy_heading(&loss, diagnostics)
}

//! `schedviz running-waiting`: running and waiting tasks over time.

use anyhow::Result;
use running_waiting::{Options, Panel, Per, Report, RunningWaiting};
use sched::topology::CpuOrder;
use sched::{Cpu, Diagnostics, Topology};
use session::Session;
use session::args::{BeginArgs, TaskArgs, TraceArgs, needs_groups};
use session::document::TraceDocument;
use session::formats::{Formats, OutputArgs, Renderings};
use session::heading;
use session::section::{MaybeSection, ReportSection, listed, part};
use timeline::Sheet;
use timeline::page::Heading;

/// Draw running and waiting tasks over time
///
/// A green line shows the tasks that run, a red one those that run or wait, a dotted one the CPUs
/// that are online. Red above green below the dotted line: tasks wait while CPUs idle.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_args(|argument| FORMATS.fit(argument)))]
pub(crate) struct RunningWaitingArgs {
    #[command(flatten)]
    trace: TraceArgs,
    #[command(flatten)]
    tool: running_waiting::DrawArgs,
    #[command(flatten)]
    begin: BeginArgs,
    #[command(flatten)]
    tasks: TaskArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// The forms of its output.
const FORMATS: Formats = Formats::figure_of("running-waiting").and_table();

const EXAMPLES: &str = "\
Examples:
  schedviz running-waiting trace.dat               as trace.running-waiting.pdf
  schedviz running-waiting trace.dat --forked --per-cpu
                                                   the traced command, and the
                                                   run queue of each CPU
  schedviz running-waiting trace.dat --per node --topology cpus.json
  schedviz running-waiting trace.dat -o series.csv
                                                   for another program";

/// Reads, draws and writes.
pub(crate) fn run(args: &RunningWaitingArgs) -> Result<()> {
    args.output.check(FORMATS)?;
    args.begin.without_descent(args.tasks.forked, "--forked")?;
    let session = args.trace.open()?;
    args.tasks.check(&session)?;
    let chosen = args.tasks.chooser();
    let options = Options {
        panels: panels(args.tool.per, &session.shown.cpus, &session.topology)?,
        per_cpu: args.tool.per_cpu,
        tasks: args.tasks.is_any().then_some(&chosen),
        which: args.tasks.which(),
        ..plain(&session)?
    };
    let analysis = || RunningWaiting::new(&options);
    let (report, diagnostics) =
        session.measured(&args.begin, session.page(), options.tasks, args.tasks.forked, analysis)?;
    let figure = |sheet: &Sheet| {
        let heading = heading(&session, &report, &diagnostics).on(sheet);
        Ok(vec![running_waiting::figure(&report, &options, &heading)])
    };
    let document = TraceDocument::of(&session, &report, &diagnostics);
    document.give(
        "running-waiting",
        &session,
        &args.output,
        Renderings::drawn(figure).with_csv(|out| Ok(report.csv(out)?)),
    )
}

/// The options of the machine as a whole, every task counted.
pub(crate) fn plain(session: &Session) -> Result<Options<'static>> {
    Ok(Options {
        from: session.from,
        to: session.to,
        zero: session.start,
        panels: panels(None, &session.shown.cpus, &session.topology)?,
        cpus: session.shown.cpus.clone(),
        all_cpus: session.shown.all.clone(),
        group_name: session.shown.group_name.clone(),
        per_cpu: true,
        tasks: None,
        which: "all tasks",
        affinity: session.affinity.clone(),
    })
}

/// One panel for the machine, or one for each group.
fn panels(per: Option<Per>, cpus: &[(Cpu, Option<u32>)], topology: &Topology) -> Result<Vec<Panel>> {
    let all = || cpus.iter().map(|(cpu, _)| *cpu);
    let (order, name) = match per {
        None => return Ok(vec![Panel { name: String::new(), cpus: all().collect() }]),
        Some(Per::Node) => (CpuOrder::Node, "node"),
        Some(Per::Llc) => (CpuOrder::Llc, "LLC"),
    };
    needs_groups(topology, order, &format!("--per {}", name.to_lowercase()))?;
    let mut panels: Vec<(Option<u32>, Panel)> = Vec::new();
    for cpu in all() {
        let group = topology.group(cpu, order);
        match panels.iter_mut().find(|(g, _)| *g == group) {
            Some((_, panel)) => panel.cpus.push(cpu),
            None => {
                let name = group.map_or(format!("no {name}"), |g| format!("{name} {g}"));
                panels.push((group, Panel { name, cpus: vec![cpu] }));
            }
        }
    }
    panels.sort_by_key(|(group, _)| (group.is_none(), *group));
    Ok(panels.into_iter().map(|(_, panel)| panel).collect())
}

pub(crate) fn heading(session: &Session, report: &Report, diagnostics: &Diagnostics) -> Heading {
    // The number of CPUs that are unknown at once is not kept; the share is of time.
    let unknown = |p: &running_waiting::Series| p.columns.iter().map(|c| c.unknown_ns).fold(0, u64::saturating_add);
    let mut warnings = heading::general_warnings(session, diagnostics);
    let time = report.panels.iter().map(unknown).max().unwrap_or(0);
    if report.gaps > 0 || time > 0 {
        let window = session.to.since(session.from).0 as f64;
        let share = 100.0 * time as f64 / window.max(1.0);
        let unknown = format!("{share:.2} % of the time shown some CPU is unknown, and counts as neither.");
        let lost = match report.gaps {
            0 => format!("During {unknown}"),
            gaps => format!("Events were lost in {}: during {unknown}", heading::places(gaps)),
        };
        warnings.insert(0, lost);
    }
    session.heading(warnings).without_figures(report.selection_unknown.as_deref())
}

/// Its section in a report.
pub(crate) fn section(session: &Session) -> MaybeSection<'_> {
    Ok(Some(part(plain(session)?, |options| {
        listed(RunningWaiting::new(options), move |report, page| {
            let heading = heading(page.session, &report, page.diagnostics).on(page.sheet);
            Ok(ReportSection {
                title: "Running and waiting tasks".to_owned(),
                figures: vec![running_waiting::figure(&report, options, &heading)],
                text: String::new(),
                json: page.json(&report)?,
            })
        })
    })))
}

//! The question of `schedviz running-waiting`: when did tasks wait while CPUs idled?

use crate::args::FORMATS;
use crate::{Options, Panel, Per, Report, RunningWaiting, RunningWaitingArgs, Series, figure, table};
use anyhow::Result;
use draw::Figure;
use question::{SharedArgs, TaskQuestion};
use sched::topology::CpuOrder;
use sched::{Chosen, Cpu, Diagnostics, Joined, Topology, WithQueued};
use session::args::needs_groups;
use session::formats::Formats;
use session::{Session, heading};
use std::io::Write;
use timeline::page::Heading;

/// The numbers of running and waiting tasks over time.
#[derive(Debug)]
pub struct RunningWaitingQuestion;

impl TaskQuestion for RunningWaitingQuestion {
    const NAME: &'static str = "running-waiting";
    const TITLE: &'static str = "Running and waiting tasks";
    const SCHEMA: &'static str = crate::SCHEMA;
    const FORMATS: Formats = FORMATS;
    const QUESTION: Option<(&'static str, &'static str)> = Some(("When did tasks wait while CPUs idled?", "TRACE"));

    type Args = RunningWaitingArgs;
    type Options<'o> = Options<'o>;
    type Report = Report;

    fn shared(args: &RunningWaitingArgs) -> &SharedArgs {
        &args.shared
    }

    fn options<'o>(
        args: &'o RunningWaitingArgs,
        session: &'o Session,
        tasks: Option<&'o Chosen<'o>>,
    ) -> Result<Options<'o>> {
        let panels = panels(args.per, &session.shown.cpus, &session.topology)?;
        let (which, queued) = (args.shared.tasks.which(), Some(session.queued(tasks)));
        Ok(Options { panels, per_cpu: args.per_cpu, tasks, which, queued, ..plain(session)? })
    }

    fn of_section(session: &Session) -> Result<Options<'_>> {
        Ok(Options { queued: Some(session.queued(None)), ..plain(session)? })
    }

    fn analysis<'a, 'o: 'a>(options: &'a Options<'o>) -> impl Joined<Output = Report> + 'a {
        WithQueued::new(RunningWaiting::new(options), options.queued.as_ref())
    }

    /// The report is a figure alone.
    fn text(_: &Report, _: &Session, _: Option<&RunningWaitingArgs>) -> String {
        String::new()
    }

    fn heading(session: &Session, report: &Report, diagnostics: &Diagnostics) -> Heading {
        // The number of CPUs that are unknown at once is not kept; the share is of time.
        let unknown = |p: &Series| p.columns.iter().map(|c| c.unknown_ns).fold(0, u64::saturating_add);
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

    fn figures(report: &Report, options: &Options<'_>, heading: &Heading) -> Vec<Figure> {
        vec![figure(report, options, heading)]
    }

    fn table(report: &Report, out: &mut dyn Write) -> Result<()> {
        table::table(report, out)
    }
}

/// The options of the machine as a whole, every task counted.
fn plain(session: &Session) -> Result<Options<'static>> {
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
        queued: None,
    })
}

/// Returns one panel for the machine, or one for each group.
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

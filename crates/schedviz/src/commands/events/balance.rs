//! The causes of migrations, for `schedviz migrations` and `schedviz events --balance`.

use super::funnel;
use super::{options, over_lanes, quoted};
use anyhow::{Result, bail};
use events::{Balance, BalanceReport, Cost, CostRow, Funnel};
use lanes::Coloring;
use sched::{Comm, Migration, Pid, Tracepoint};
use serde::Serialize;
use session::Session;
use session::args::{BeginArgs, TaskArgs};
use session::document::TraceDocument;
use session::formats::{OutputArgs, Renderings};
use session::messages::emit;
use session::section::{MaybeSection, ReportSection, listed, part};
use std::io;
use timeline::Sheet;

/// The causes of migrations, and what probes on the balancer say.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct WithProbes<'r> {
    #[serde(flatten)]
    pub(crate) report: &'r BalanceReport,
    /// The bursts after a migration against those without one, by command and distance.
    pub(crate) cost: &'r [CostRow],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) probes: Option<Funnel>,
}

impl WithProbes<'_> {
    /// The tables for people.
    pub(crate) fn text(&self) -> String {
        let funnel = self.probes.as_ref().map_or_else(String::new, Funnel::text);
        format!("{}{}{funnel}", events::balance_text(self.report), events::cost_text(self.cost))
    }
}

/// The arguments of both commands.
pub(crate) struct Choice<'a> {
    pub(crate) tasks: &'a TaskArgs,
    pub(crate) output: &'a OutputArgs,
    pub(crate) in_color: bool,
    /// The middle of the name of an output file.
    pub(crate) command: &'static str,
}

/// Finds the causes of migrations, prints and draws them.
pub(crate) fn run(args: &Choice<'_>, session: &Session) -> Result<()> {
    if session.trace.format_of(Tracepoint::Migrate).is_none() {
        bail!("{}: sched:sched_migrate_task was not recorded; record with -e sched", session.name());
    }
    let tasks = args.tasks.filter();
    let wanted = |m: &Migration| tasks.takes(m.pid, || m.command);
    let is_wanted = |pid: Pid, command: Comm| tasks.takes(pid, || command);
    let listing = args.output.wants_entries();
    let analysis = || {
        let all = Balance::new(&session.topology, &session.shown.chosen, session.from, session.to);
        (
            all.listing(listing).only(&wanted),
            Cost::new(&session.topology).with_counters(session.trace.counters()).only(&is_wanted),
            funnel::of(session),
        )
    };
    let outcome = session.follow(&BeginArgs::default(), session.page(), analysis)?;
    let ((report, cost, probes), found) = (outcome.output, outcome.diagnostics);
    let report = WithProbes { report: &report, cost: &cost, probes };
    let text = || report.text();
    let ground = Coloring { pale: !args.in_color, ..Coloring::default() };
    let figure = |sheet: &Sheet| {
        over_lanes(Some(ground.clone()), session, &found, sheet, |heading, background| {
            events::balance_figure(report.report, &options(session), heading, background)
        })
    };
    let document = TraceDocument::of(session, &report, &found);
    if let (Some(left_out), false) = (report.report.unlisted, session.read.quiet) {
        let left_out = sched::nouns::counted(left_out, "migration");
        emit(&format!("not listed: {left_out}; --min, --max and --tasks choose a part of them"));
    }
    let table = |out: &mut dyn io::Write| migrations(report.report, out);
    document.give(args.command, session, args.output, Renderings::told(text, figure).and_drawn().with_csv(table))
}

/// The migrations one by one as a table, with the words of the JSON document.
fn migrations(report: &BalanceReport, out: &mut dyn io::Write) -> Result<()> {
    writeln!(out, "ts_ns,cpu,pid,command,from_cpu,to_cpu,cause,queued,distance,until_run_ns,recorded")?;
    for m in report.migrations.iter().flatten() {
        let word = |value: serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let (cause, distance) = (word(serde_json::to_value(m.cause)?), word(serde_json::to_value(m.distance)?));
        let command = quoted(&m.command.to_string());
        let until_run = m.until_run_ns.map_or_else(String::new, |until| until.0.to_string());
        let (ts, cpu, pid, from, to) = (m.ts_ns.0, m.cpu, m.pid, m.from_cpu, m.to_cpu);
        let (queued, recorded) = (m.queued, m.recorded);
        writeln!(out, "{ts},{cpu},{pid},{command},{from},{to},{cause},{queued},{distance},{until_run},{recorded}")?;
    }
    Ok(())
}

/// Its section in a report, where migrations were recorded.
pub(crate) fn section(session: &Session) -> MaybeSection<'_> {
    if !session.trace.has(Tracepoint::Migrate) {
        return Ok(None);
    }
    Ok(Some(part(session, |session| {
        let moves = Balance::new(&session.topology, &session.shown.chosen, session.from, session.to);
        listed(
            (moves, Cost::new(&session.topology).with_counters(session.trace.counters()), funnel::of(session)),
            move |(report, cost, probes), page| {
                let with_probes = WithProbes { report: &report, cost: &cost, probes };
                Ok(ReportSection {
                    title: "Causes of migrations".to_owned(),
                    figures: vec![page.over_lanes(|heading, background| {
                        events::balance_figure(&report, &options(page.session), heading, background)
                    })],
                    text: with_probes.text(),
                    json: page.json(&with_probes)?,
                })
            },
        )
    })))
}

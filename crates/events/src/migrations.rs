//! `schedviz migrations`: the migrations of tasks with their causes, and their cost.

use crate::choice::options;
use crate::{Balance, BalanceReport, Cost, CostRow, Funnel, Funnels, balance_figure, balance_text, cost_text};
use anyhow::{Result, bail};
use lanes::Coloring;
use question::{Question, Subcommand};
use sched::{Comm, Migration, Pid, Tracepoint, Ts};
use serde::Serialize;
use session::Session;
use session::args::TraceArgs;
use session::args::{BeginArgs, TaskArgs};
use session::csv::{CsvWriter, known, word};
use session::document::TraceDocument;
use session::formats::Formats;
use session::formats::{OutputArgs, Renderings};
use session::messages::emit;
use session::over_lanes::over_lanes;
use session::section::{MaybeSection, ReportSection, Unanswered, listed, part};
use std::io;
use std::process::ExitCode;
use timeline::Sheet;

/// Show migrations of tasks and their causes: steals, balancing, wakeup placements, NUMA moves
///
/// Migrations by cause and distance, with the time until each task ran; herds, which are at least four queued tasks that
/// leave one CPU for one other within a millisecond; and, with probes on the balancer (group lb), the outcome of its
/// attempts.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_args(|argument| TaskArgs::hide_forked(MigrationsQuestion::FORMATS.fit(argument))))]
pub struct MigrationsArgs {
    #[command(flatten)]
    pub(crate) trace: TraceArgs,
    /// Draw what ran in colour, not in pale grey
    #[arg(long)]
    pub(crate) in_color: bool,
    #[command(flatten)]
    pub(crate) tasks: TaskArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

const EXAMPLES: &str = "\
Examples:
  schedviz migrations trace.dat                            the causes, and a figure as trace.migrations.pdf
  schedviz migrations trace.dat --topology lscpu.json      with distances (lscpu -e -J > lscpu.json)
  schedviz migrations trace.dat --tasks '^redis' -o moves.csv   one by one, as a table";

/// The reason why a trace has no migrations, and the remedy.
const NOT_RECORDED: &str = "sched:sched_migrate_task was not recorded; record with -e sched";

/// The migrations of tasks, with their causes.
#[derive(Debug)]
pub struct MigrationsQuestion;

impl Subcommand for MigrationsQuestion {
    const NAME: &'static str = "migrations";
    const QUESTION: Option<(&'static str, &'static str)> = Some(("Which tasks were moved where, and why?", "TRACE"));
    type Args = MigrationsArgs;

    fn run(args: &MigrationsArgs) -> Result<ExitCode> {
        run(args).map(|()| ExitCode::SUCCESS)
    }
}

impl Question for MigrationsQuestion {
    const FORMATS: Formats = Formats::figure_of("migrations").and_text().and_table();
    const IN_REPORT: bool = true;

    fn section(session: &Session) -> MaybeSection<'_> {
        if !session.trace.has(Tracepoint::Migrate) {
            return Err(Unanswered::because(NOT_RECORDED));
        }
        Ok(Some(part(session, |session| {
            listed(
                || {
                    let moves = Balance::new(&session.topology, &session.shown.chosen, session.from, session.to);
                    (moves, Cost::new(&session.topology).with_counters(session.trace.counters()), funnels(session))
                },
                move |(report, cost, probes), page| {
                    let with_probes = MigrationsReport { report: &report, cost: &cost, probes };
                    Ok(ReportSection {
                        title: "Causes of migrations".to_owned(),
                        figures: vec![page.over_lanes(|heading, background| {
                            balance_figure(&report, &options(page.session), heading, background)
                        })],
                        text: with_probes.text(),
                        json: page.json(&with_probes)?,
                    })
                },
            )
        })))
    }

    #[cfg(feature = "schema")]
    fn schemas() -> Vec<question::NamedSchema> {
        vec![question::schema::<TraceDocument<'static, MigrationsReport<'static>>>(crate::balance::SCHEMA)]
    }
}

/// The causes of migrations, their cost, and the outcomes that probes on the balancer recorded.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MigrationsReport<'r> {
    #[serde(flatten)]
    pub(crate) report: &'r BalanceReport,
    /// The bursts after a migration against those without one, by command and distance.
    pub(crate) cost: &'r [CostRow],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) probes: Option<Funnel>,
}

impl MigrationsReport<'_> {
    /// Returns the tables for people.
    pub(crate) fn text(&self) -> String {
        let funnel = self.probes.as_ref().map_or_else(String::new, Funnel::text);
        format!("{}{}{funnel}", balance_text(self.report), cost_text(self.cost))
    }
}

/// Finds the causes of migrations, prints and draws them.
pub(crate) fn run(args: &MigrationsArgs) -> Result<()> {
    args.output.check(MigrationsQuestion::FORMATS)?;
    args.tasks.without_forked(MigrationsQuestion::NAME)?;
    let session = args.trace.open()?;
    args.tasks.check(&session)?;
    if session.trace.format_of(Tracepoint::Migrate).is_none() {
        bail!("{}: {NOT_RECORDED}", session.name());
    }
    let tasks = args.tasks.chosen(&session)?;
    let wanted = |m: &Migration| tasks.takes(m.pid, m.ts, || m.command);
    let is_wanted = |pid: Pid, command: Comm, ts: Ts| tasks.takes(pid, ts, || command);
    let listing = args.output.wants_entries();
    let analysis = || {
        let all = Balance::new(&session.topology, &session.shown.chosen, session.from, session.to);
        (
            all.listing(listing).only(&wanted),
            Cost::new(&session.topology).with_counters(session.trace.counters()).only(&is_wanted),
            funnels(&session),
        )
    };
    let outcome = session.follow_in_pieces(&BeginArgs::default(), session.page(), analysis)?;
    let ((report, cost, probes), found) = (outcome.output, outcome.diagnostics);
    if !session.knows_migrations(&found) {
        bail!("{}: {NOT_RECORDED}", session.name());
    }
    let report = MigrationsReport { report: &report, cost: &cost, probes };
    let text = || report.text();
    let ground = Coloring { pale: !args.in_color, ..Coloring::default() };
    let figure = |sheet: &Sheet| {
        over_lanes(Some(ground.clone()), &session, &found, sheet, |heading, background| {
            balance_figure(report.report, &options(&session), heading, background)
        })
    };
    let document = TraceDocument::of(&session, &report, &found);
    if let (Some(left_out), false) = (report.report.unlisted, session.read.quiet) {
        let left_out = sched::nouns::counted(left_out, "migration");
        emit(&format!("not listed: {left_out}; --min, --max and --tasks choose a part of them"));
    }
    let table = |out: &mut dyn io::Write| migrations(report.report, out);
    let renderings = Renderings::told(text, figure).and_drawn().with_csv(table);
    document.give(MigrationsQuestion::NAME, &session, &args.output, renderings)
}

/// The migrations one by one as a table, with the words of the JSON document.
fn migrations(report: &BalanceReport, out: &mut dyn io::Write) -> Result<()> {
    let columns = "ts_ns,cpu,pid,command,from_cpu,to_cpu,cause,queued,distance,until_run_ns,recorded";
    let mut table = CsvWriter::new(out, columns)?;
    for m in report.migrations.iter().flatten() {
        let (cause, distance) = (word(m.cause)?, word(m.distance)?);
        let until_run = known(m.until_run_ns.map(|until| until.0));
        table.row(&[
            &m.ts_ns.0,
            &m.cpu,
            &m.pid,
            &m.command,
            &m.from_cpu,
            &m.to_cpu,
            &cause,
            &m.queued,
            &distance,
            &until_run,
            &m.recorded,
        ])?;
    }
    table.finish()
}

/// The analysis of the attempts, if the trace has such probes.
fn funnels(session: &Session) -> Option<Funnels> {
    let kinds = session.machine.as_ref().map_or(&[][..], |machine| &machine.scheduler.imbalances);
    Some(Funnels::new(|probe, field| session.has_probe(probe, field))?.with_kinds(kinds))
}

//! `schedviz export`: the facts of traces as tables for databases and spreadsheets.

mod destination;
mod fields;
mod perfetto_file;
mod run_row;

pub use perfetto_file::write as write_perfetto;

use crate::{EventRow, FactTable, Output, RestartRows, Tables, TaskRuns, Value};
use anyhow::{Result, bail};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use compare::measures::{self, Reports, RunAnalyses, RunOptions};
use events::Balance;
use fields::FieldColumns;
use question::Subcommand;
use sched::names::NameHistory;
use sched::{Comm, Diagnostics, Joined, Pass, Pid, Selected, Selection, Ts};
use session::Session;
use session::args::{ReadArgs, WindowArgs};
use session::groups::GroupArg;
use session::{asked_pieces, groups, warnings};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use why::Cases;
use workcons::{WaiterArgs, Waiters};

/// The facts of traces as tables: recordings, runs of tasks, waits, idle stretches, episodes, migrations, wakeups, events
///
/// Each table is a file in a folder. Their sums are the numbers of the other commands: the waits in violation are those
/// of schedviz why, the runs of tasks those of schedviz utilization. docs/files.md lists the columns.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct ExportArgs {
    /// The recordings; a folder of schedviz record --runs stands for its groups
    #[arg(required_unless_present = "group")]
    traces: Vec<PathBuf>,
    /// Runs that belong together: NAME=FILE[,FILE...]; * in a file name stands for anything
    #[arg(long, value_name = "NAME=FILES")]
    group: Vec<GroupArg>,
    /// Folder for the tables as comma-separated values; - writes a single table to standard output
    #[arg(long, value_name = "FOLDER", help_heading = "Output", required_unless_present_any = ["parquet", "perfetto"])]
    csv: Option<PathBuf>,
    /// Folder for the tables as Apache Parquet: FOLDER/TABLE/group=GROUP/run=RUN/TABLE.parquet
    #[arg(long, value_name = "FOLDER", help_heading = "Output", conflicts_with = "csv")]
    parquet: Option<PathBuf>,
    /// File for Perfetto's viewer, ui.perfetto.dev: all events, the violation, the critical path, running and waiting
    /// tasks, run queues, migrations by cause; of one recording
    #[arg(long, value_name = "FILE", help_heading = "Output", conflicts_with_all = ["csv", "parquet", "tables", "group"])]
    perfetto: Option<PathBuf>,
    /// Tables to write, separated by commas [default: all but event]
    #[arg(long, value_name = "TABLES", help_heading = "Output", value_delimiter = ',', value_parser = tables())]
    tables: Vec<FactTable>,
    /// Only these events in the table `event`, which is then written, with a column for each of their fields: SYSTEM:NAME,
    /// with * for any part; several with commas
    #[arg(
        long,
        value_name = "SYSTEM:NAME",
        help_heading = "Output",
        value_delimiter = ',',
        conflicts_with = "perfetto"
    )]
    events: Vec<String>,
    #[command(flatten)]
    waiters: WaiterArgs,
    #[command(flatten)]
    read: ReadArgs,
    #[command(flatten)]
    window: WindowArgs,
}

const EXAMPLES: &str = "\
Examples:
  schedviz export trace.dat --csv tables     tables/run.csv, tables/on_cpu.csv, ...
  schedviz export trace.dat --csv - --tables wait | sort -t, -k10nr | head
                                             the waits, the longest part in
                                             violation first
  schedviz export trace.dat --csv tables --tables run,event --min 3 --max 3.2
                                             some tables, of a window
  schedviz export trace.dat --csv - --tables event --events sched_switch
                                             its fields as columns
  schedviz export *.dat --parquet tables     for DuckDB or Spark, each trace
                                             in files of its own
  schedviz export trace.dat --perfetto trace.pftrace --min 3 --max 3.2
                                             a part, for ui.perfetto.dev
  schedviz export --group on='on.*.dat' --group off='off.*.dat' --csv tables
                                             runs of two groups";

/// The facts of traces as tables, and a trace for Perfetto.
#[derive(Debug)]
pub struct ExportCommand;

impl Subcommand for ExportCommand {
    const NAME: &'static str = "export";
    const QUESTION: Option<(&'static str, &'static str)> =
        Some(("Can I have the facts as tables, or in Perfetto?", "TRACE"));
    const BRIEF: &'static [&'static str] = &["csv", "parquet", "perfetto", "tables", "events"];
    type Args = ExportArgs;

    fn run(args: &ExportArgs) -> Result<ExitCode> {
        run(args).map(|()| ExitCode::SUCCESS)
    }
}

/// Parses the name of a table.
fn tables() -> impl TypedValueParser<Value = FactTable> {
    let named = |table: FactTable| match table {
        // The former name of the table.
        FactTable::OnCpu => PossibleValue::new(table.name()).alias("slice"),
        _ => PossibleValue::new(table.name()),
    };
    PossibleValuesParser::new(FactTable::ALL.map(named)).map(|name| {
        let name = if name == "slice" { "on_cpu" } else { &name };
        let table = FactTable::ALL.into_iter().find(|table| table.name() == name);
        table.expect("one of the possible names")
    })
}

impl ExportArgs {
    /// The tables that the arguments ask for.
    fn wanted(&self) -> Vec<FactTable> {
        let wanted = |table: &FactTable| match self.tables.as_slice() {
            _ if *table == FactTable::Event && !self.events.is_empty() => true,
            [] => *table != FactTable::Event,
            named => named.contains(table),
        };
        FactTable::ALL.into_iter().filter(wanted).collect()
    }
}

/// Writes the tables that the arguments ask for.
pub(crate) fn run(args: &ExportArgs) -> Result<()> {
    if let Some(file) = &args.perfetto {
        let [trace] = args.traces.as_slice() else { bail!("--perfetto takes a single recording") };
        if file.is_dir() || file.as_os_str() == "-" {
            bail!("--perfetto names a file, such as trace.pftrace, not {}", file.display());
        }
        let session = Session::open(trace, &args.read, &args.window)?;
        return perfetto_file::write(session, args.waiters.without_choice(), file);
    }
    let files = groups::files(&args.traces, &args.group)?;
    let paths: Vec<&Path> = files.iter().map(|(_, path)| path.as_path()).collect();
    let names = groups::names(&paths);
    let fields = FieldColumns::of(&args.events, &paths, &args.read)?;
    let written = match (&args.csv, &args.parquet) {
        (Some(folder), _) => destination::csv(folder, &args.wanted(), &fields)?,
        (None, Some(folder)) => destination::parquet(folder, &args.wanted(), &fields, args.read.threads())?,
        (None, None) => bail!("--csv, --parquet or --perfetto is missing"),
    };
    for ((group, path), name) in files.iter().zip(&names) {
        written.output.begin(group.as_deref(), name)?;
        let warned = Some(name.as_str()).filter(|_| files.len() > 1);
        export(args, path, warned, &written.output, &fields)?;
        written.output.end()?;
    }
    written.finish(args.read.quiet)
}

/// Writes the rows of one trace.
fn export(args: &ExportArgs, path: &Path, warned: Option<&str>, output: &Output, fields: &FieldColumns) -> Result<()> {
    let session = Session::open(path, &args.read, &args.window)?.with_judged_command()?;
    if !FactTable::ALL.iter().any(|table| *table != FactTable::Event && output.has(*table)) {
        return export_events(args, &session, warned, output, fields);
    }
    let cpus = &session.shown.chosen;
    let waiters = args.waiters.without_choice();
    let plain = RunOptions::plain(&session);
    let options = RunOptions { workcons: workcons::Options { waiters, ..plain.workcons }, ..plain };
    let tables = Tables::new(output);
    let episode = |episode: &workcons::ListedEpisode| tables.episode(episode);
    // A task queued on a CPU without events may have run unseen: such a wait is in no figure.
    let is_seen = |cpu: sched::Cpu| session.observed.binary_search(&cpu).is_ok();
    let wait = |case: &why::ListedCase<_, _>| {
        if is_seen(case.cpu) {
            tables.wait(case);
        }
    };
    let stretch = |case: &why::ListedCase<_, _>| tables.idle(case);
    let cases = Cases { wait: &wait, stretch: &stretch };
    let wakeup = |listed: &latency::ListedWait| tables.wakeup(listed);
    let migration = |listed: &events::ListedMigration| tables.migration(listed);
    let selected = || Selected::new(None, waiters == Waiters::Application);
    let analyses = || {
        let of_run = options.analyses();
        let of_run = RunAnalyses {
            workcons: of_run.workcons.listing(&episode),
            why: of_run.why.listing(&cases),
            latency: of_run.latency.listing(&wakeup),
            ..of_run
        };
        let (violation, reasons, waits) = of_run.parts();
        let balance = Balance::new(&session.topology, cpus, session.from, session.to).each(&migration);
        ((violation, balance, selected()), (waits, TaskRuns::new(&tables, cpus.clone())), (reasons, ()))
    };
    let outcome = session.watched(|| {
        let pass = Pass::over(session.trace.events()?).window(session.window).pieces(asked_pieces());
        // A pass that begins again writes all rows again.
        match pass.is_divided() && analyses().is_divisible() {
            true => {
                let outcome = pass.run_in_pieces(|| (RestartRows::new(output), analyses()))?;
                Ok(outcome.map(|((), listed)| listed))
            }
            false => pass.run_side_by_side(|| {
                output.restart();
                analyses()
            }),
        }
    })?;
    output.check()?;
    let ((violation, _, selection), (waits, _), (reasons, ())) = outcome.output;
    let diagnostics = outcome.diagnostics;
    check(&session, selection, selected, (warned, &diagnostics))?;
    let measured =
        measures::conclude(&session, Reports::of((violation, reasons, waits)), diagnostics, run_row::MAX_LOSS);
    run_row::write(&session, &measured, (outcome.from, outcome.to), output);
    if output.has(FactTable::Event) {
        list_events(&session, &args.events, fields, &tables)?;
    }
    Ok(output.check()?)
}

/// Writes the events alone, which need no analysis; the findings about the trace are told all the same.
fn export_events(
    args: &ExportArgs,
    session: &Session,
    warned: Option<&str>,
    output: &Output,
    fields: &FieldColumns,
) -> Result<()> {
    let selected = || Selected::new(None, args.waiters.without_choice() == Waiters::Application);
    let pass = || Pass::over(session.trace.events()?).window(session.window).run(selected);
    let outcome = session.watched(pass)?;
    check(session, outcome.output, selected, (warned, &outcome.diagnostics))?;
    list_events(session, &args.events, fields, &Tables::new(output))?;
    Ok(output.check()?)
}

/// Refuses a trace in which there are no figures of the selected tasks, and tells the findings about it, in the name of the trace where there are several.
fn check<'c>(
    session: &Session,
    selection: Selection,
    selected: impl Fn() -> Selected<'c>,
    (warned, diagnostics): (Option<&str>, &Diagnostics),
) -> Result<()> {
    if let Some(reason) = session.why_no_figures(selection, selected)? {
        bail!("{}: {reason}", session.name());
    }
    warnings::warn_of(warned, diagnostics, &session.read);
    Ok(())
}

/// An event on its way from the thread that put it into words.
struct Printed {
    ts: Ts,
    cpu: sched::Cpu,
    buffer: usize,
    pid: Pid,
    command: Option<Comm>,
    id: u16,
    details: String,
    fields: Vec<Value<'static>>,
}

/// Lists the events of the window that match `events`, or all of them.
fn list_events(session: &Session, events: &[String], fields: &FieldColumns, tables: &Tables<'_>) -> Result<()> {
    let chosen = fields::chosen(events, &session.trace)?;
    let buffers: Vec<String> = session.trace.info().buffers.into_iter().map(|buffer| buffer.name.into()).collect();
    let last = session.last();
    let print = |records: &mut dyn Iterator<Item = parse::Neighbours<'_>>| {
        let mut printed = Vec::new();
        for record in records.map(|neighbours| neighbours.record) {
            if record.ts > last {
                return (printed, ControlFlow::Break(()));
            }
            let is_chosen = chosen.as_ref().is_none_or(|ids| ids.contains(&record.id()));
            if is_chosen && session.shown.chosen.has(record.cpu) {
                let fields = fields.values(&record);
                let (ts, cpu, buffer) = (record.ts, record.cpu, record.buffer);
                let (pid, command, id, details) = (record.pid(), record.saved_command(), record.id(), record.printed());
                printed.push(Printed { ts, cpu, buffer, pid, command, id, details, fields });
            }
        }
        (printed, ControlFlow::Continue(()))
    };
    let mut names: Option<NameHistory> = None;
    let mut failed = Ok(());
    session.trace.records_mapped(session.from, print, &mut |(printed, flow)| {
        for event in &printed {
            let command = event.command.unwrap_or_else(|| {
                // The recorder saves few names; the events of the scheduler have the others.
                let names = names.get_or_insert_with(|| match session.names() {
                    Ok(names) => names,
                    Err(error) => {
                        failed = Err(error);
                        NameHistory::default()
                    }
                });
                names.of(event.pid, event.ts).unwrap_or_default()
            });
            let format = session.trace.format(event.id);
            tables.event(&EventRow {
                ts: event.ts,
                cpu: event.cpu,
                buffer: buffers.get(event.buffer).map(String::as_str).filter(|name| !name.is_empty()),
                pid: event.pid,
                command,
                name: format.map(|format| (format.system.as_str(), format.name.as_str())),
                details: &event.details,
                fields: &event.fields,
            });
        }
        flow
    });
    failed
}

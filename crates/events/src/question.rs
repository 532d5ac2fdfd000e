//! `schedviz events`: markers over lanes, counts and values.

use crate::EventsArgs;
use crate::args::FORMATS;
use crate::choice::{Choice, command, is_special, occurring, options, write_each};
use crate::gathering::gather;
use crate::list::ListArgs;
use crate::migrations::MigrationsArgs;
use anyhow::Result;
use lanes::Coloring;
use parse::Neighbours;
use question::{Question, Subcommand};
use session::Session;
use session::args::SymbolArgs;
use session::csv::CsvWriter;
use session::document::TraceDocument;
use session::formats::{Formats, Renderings, json};
use session::messages::emit;
use session::over_lanes::over_lanes;
use session::patterns;
use session::progress;
use session::section::{MaybeSection, ReportPage, ReportSection, Unanswered, listed, part};
use std::fmt::Display;
use std::io;
use std::process::ExitCode;
use timeline::Sheet;

/// The times, places and values of events.
#[derive(Debug)]
pub struct EventsQuestion;

impl Subcommand for EventsQuestion {
    const NAME: &'static str = "events";
    const QUESTION: Option<(&'static str, &'static str)> = Some(("When did these events happen?", "TRACE"));
    type Args = EventsArgs;

    fn run(args: &EventsArgs) -> Result<ExitCode> {
        run(args).map(|()| ExitCode::SUCCESS)
    }
}

impl Question for EventsQuestion {
    const FORMATS: Formats = FORMATS;
    const IN_REPORT: bool = true;

    fn section(session: &Session) -> MaybeSection<'_> {
        let mut special = occurring(session);
        special.retain(is_special);
        if special.is_empty() {
            return Err(Unanswered::because(
                "no probe, no text and no event of your choice was recorded: record with -e EVENT",
            ));
        }
        Ok(Some(part(Choice::plain(session, &special), |choice| {
            // A pass leaves out the fields of such events: they are read by themselves.
            listed(
                || (),
                move |(), page| {
                    let ReportPage { session, .. } = *page;
                    let gathered = || gather(session, choice, &patterns::AskedFormats::default(), false);
                    let (report, diagnostics) = progress::watched(&session.trace, session.read.quiet, gathered);
                    Ok(ReportSection {
                        title: "Recorded events".to_owned(),
                        figures: vec![page.over_lanes(|heading, background| {
                            crate::figure(&report, &options(session), heading, background)
                        })],
                        text: crate::text(&report),
                        json: json(&TraceDocument::of(session, &report, &diagnostics))?,
                    })
                },
            )
        })))
    }

    #[cfg(feature = "schema")]
    fn schemas() -> Vec<question::NamedSchema> {
        vec![question::schema::<TraceDocument<'static, crate::Report>>(crate::SCHEMA)]
    }
}

/// Counts or lists the events, draws them and writes the output.
pub(crate) fn run(args: &EventsArgs) -> Result<()> {
    if args.list {
        return list_as_once_spelt(args);
    }
    if args.balance {
        return migrations_as_once_spelt(args);
    }
    let announced = args.output.announced();
    let lines = if args.near.is_some() {
        Some(args.output.lines()?)
    } else {
        args.output.check(FORMATS)?;
        None
    };
    args.tasks.without_forked("events")?;
    let session = args.trace.open_any()?;
    args.tasks.check(&session)?;
    let choice = Choice::of(args, &session)?;
    if let (Some(near), Some(lines)) = (args.near, lines) {
        crate::listing::near(&session, &choice, near, args.latency_format, lines)?;
        if let (Some(announced), false) = (announced, session.read.quiet) {
            emit(&announced);
        }
        return Ok(());
    }
    let asked = patterns::asked(&session.trace, &args.events)?;
    let (report, found) = gather(&session, &choice, &asked, args.rate);
    choice.has_values(report.total)?;
    let figure = |sheet: &Sheet| {
        let options = options(&session);
        // Values and rates have plots instead of lanes.
        let ground =
            (!args.rate && args.value.is_none()).then(|| Coloring { pale: !args.in_color, ..Coloring::default() });
        over_lanes(ground, &session, &found, sheet, |heading, background| {
            if let Some(value) = &args.value {
                crate::value_figure(&report, &options, heading, value, choice.unit())
            } else if args.rate {
                crate::rate_figure(&report, &options, heading)
            } else {
                crate::figure(&report, &options, heading, background)
            }
        })
    };
    let forms =
        Renderings::told(|| crate::text(&report), figure).and_drawn().with_csv(|out| table(&session, &choice, out));
    TraceDocument::of(&session, &report, &found).give("events", &session, &args.output, forms)
}

/// Lists the events, and names the command that does so.
fn list_as_once_spelt(args: &EventsArgs) -> Result<()> {
    if !args.trace.read.quiet {
        emit("events --list is now the command list");
    }
    crate::list::run_list(&ListArgs {
        trace: args.trace.clone(),
        events: args.events.clone(),
        stacks: false,
        runs: false,
        summary: false,
        symbols: SymbolArgs::default(),
        latency_format: args.latency_format,
        tasks: args.tasks.clone(),
        output: args.output.clone(),
    })
}

/// Finds the causes of migrations, and names the command that does so.
fn migrations_as_once_spelt(args: &EventsArgs) -> Result<()> {
    if !args.trace.read.quiet {
        emit("events --balance is now the command migrations");
    }
    crate::migrations::run(&MigrationsArgs {
        trace: args.trace.clone(),
        in_color: args.in_color,
        tasks: args.tasks.clone(),
        output: args.output.clone(),
    })
}

/// The events as a table, written as they are read.
fn table(session: &Session, choice: &Choice, out: &mut dyn io::Write) -> Result<()> {
    CsvWriter::new(&mut *out, "ts_ns,cpu,pid,command,event,text")?.finish()?;
    let read = if choice.called.is_none() { Some(session.names()?) } else { None };
    let called = choice.called.as_ref().or(read.as_ref());
    let row = |rows: &mut CsvWriter<Vec<u8>>, Neighbours { record, .. }: &Neighbours<'_>| {
        let name = record.format().map_or("", |f| f.name.as_str());
        // Writing to memory cannot fail.
        let fields: [&dyn Display; 6] =
            [&record.ts.0, &record.cpu, &record.pid(), &command(record, called), &name, &record.printed()];
        let _ = rows.row(&fields);
    };
    let mut write = |rows: CsvWriter<Vec<u8>>| Ok(out.write_all(&rows.into_bytes()?)?);
    progress::watched(&session.trace, session.read.quiet, || write_each(session, choice, &mut write, row)).map(drop)
}

//! `schedviz findings`: the main findings about a trace, the costliest first.

use crate::args::FORMATS;
use crate::measure::{AllParts, Output, WAITS, both};
use crate::{Analyses, Doubts, FindingsArgs, FindingsReport, findings, text};
use anyhow::Result;
use parse::EventStream;
use question::{Question, Subcommand};
use sched::{Outcome, Pass};
use session::document::TraceDocument;
use session::formats::{Formats, Renderings};
use session::section::{MaybeSection, ReportSection, listed, part_from_others};
use session::{Session, asked_pieces, several};
use std::process::ExitCode;

/// The main findings about a trace.
#[derive(Debug)]
pub struct FindingsQuestion;

impl Subcommand for FindingsQuestion {
    const NAME: &'static str = "findings";
    const FIRST_STEP: Option<(&'static str, &'static str)> = Some(("findings trace.dat", "the costliest findings"));
    const QUESTION: Option<(&'static str, &'static str)> = Some(("What should I look at first?", "TRACE"));
    type Args = FindingsArgs;

    fn run(args: &FindingsArgs) -> Result<ExitCode> {
        run(args).map(|()| ExitCode::SUCCESS)
    }
}

impl Question for FindingsQuestion {
    const FORMATS: Formats = FORMATS;
    const IN_REPORT: bool = true;

    fn section(session: &Session) -> MaybeSection<'_> {
        section(session)
    }

    #[cfg(feature = "schema")]
    fn schemas() -> Vec<question::NamedSchema> {
        vec![question::schema::<TraceDocument<'static, FindingsReport>>(crate::report::SCHEMA)]
    }
}

/// Measures and prints.
fn run(args: &FindingsArgs) -> Result<()> {
    args.output.check(FORMATS)?;
    let session = args.asked_trace().open()?.with_judged_command()?;
    let Outcome { output: report, diagnostics, .. } = measured(&session)?;
    let document = TraceDocument::of(&session, &report, &diagnostics);
    document.give("findings", &session, &args.output, Renderings::words(|| text(&report, &session.drawable)))
}

/// Measures the findings in the window of a session, in one pass.
pub fn measured(session: &Session) -> Result<Outcome<FindingsReport>> {
    let options = Analyses::of(session);
    let mut outcome = session.watched(|| {
        // Where tens of thousands of tasks live, each analysis has tables of them, beside which the threads' own data have no room.
        match pass(&options, session, session.trace.events()?.with_most_state(several::MOST_STATE_OF_THREADS)) {
            Err(parse::Error::ManyTasks) => {
                session.trace.read_with_one_thread();
                pass(&options, session, session.trace.events()?)
            }
            done => done,
        }
    })?;
    let doubts = Doubts::of(session, &outcome.diagnostics);
    let ((_, paths, _), _) = &mut outcome.output;
    path::search_further(session, session.page(), paths, WAITS)?;
    Ok(outcome.map(|outputs| findings(&options.measurements(outputs), &doubts)))
}

/// Makes one pass with all analyses: in pieces, or in two parts where the threads do not suffice for that.
fn pass<'o>(
    options: &'o Analyses<'o>,
    session: &Session,
    events: EventStream<'_>,
) -> Result<Outcome<Output<AllParts<'o>>>, parse::Error> {
    let pass = Pass::over(events).window(session.page()).pieces(asked_pieces());
    match pass.is_divided() {
        true => pass.run_in_pieces(|| options.analyses()),
        false => Ok(pass.run_side_by_side(|| options.in_two())?.map(|(first, second)| both(first, second))),
    }
}

/// The findings about a trace as text, for the summary of a job.
pub fn summary(session: &Session) -> Result<String> {
    Ok(text(&measured(session)?.output, &session.drawable))
}

/// The section of a report.
fn section(session: &Session) -> MaybeSection<'_> {
    Ok(Some(part_from_others(Analyses::of(session), |options| {
        listed(
            || options.own(),
            move |output, page| {
                let report = findings(&options.on_page(output, page)?, &Doubts::of(page.session, page.diagnostics));
                Ok(ReportSection {
                    title: "Findings".to_owned(),
                    figures: Vec::new(),
                    text: text(&report, &page.session.drawable),
                    json: page.json(&report)?,
                })
            },
        )
    })))
}

//! `schedviz findings`: the main findings about a trace, the costliest first.

use crate::args::FORMATS;
use crate::measure::{Output, PartsInPieces, WAITS, WholeParts, both};
use crate::{Analyses, Doubts, FindingsArgs, FindingsReport, findings, text};
use anyhow::{Context, Result};
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
    let (mut outcome, whole) = session.watched(|| {
        // Where tens of thousands of tasks live, each analysis has tables of them, beside which the threads' own data have no room.
        match pass(&options, session, session.trace.events()?.with_most_state(several::MOST_STATE_OF_THREADS)) {
            Err(parse::Error::ManyTasks) => {
                session.trace.read_with_one_thread();
                pass(&options, session, session.trace.events()?)
            }
            done => done,
        }
    })?;
    let whole = whole.context("a pass lost the analyses beside its pieces")?;
    let doubts = Doubts::of(session, &outcome.diagnostics);
    let ((_, paths, _), _) = &mut outcome.output;
    path::search_further(session, session.page(), paths, WAITS)?;
    Ok(outcome.map(|in_pieces| findings(&options.measurements((in_pieces, whole)), &doubts)))
}

/// The outputs of the analyses that can be made in pieces, and of the others.
type Outputs<'o> = (Outcome<Output<PartsInPieces<'o>>>, Option<Output<WholeParts<'o>>>);

/// Makes one pass with all analyses.
fn pass<'o>(
    options: &'o Analyses<'o>,
    session: &Session,
    events: EventStream<'_>,
) -> Result<Outputs<'o>, parse::Error> {
    let pass = Pass::over(events).window(session.page()).pieces(asked_pieces());
    let mut whole = None;
    let outcome = match pass.is_divided() {
        true => {
            let outcome = pass.run_in_pieces_beside(|| options.in_pieces(), || vec![options.whole()])?;
            outcome.map(|(in_pieces, mut others)| {
                whole = others.pop();
                in_pieces
            })
        }
        false => pass.run_side_by_side(|| options.in_two())?.map(|(first, second)| {
            let (in_pieces, other) = both(first, second);
            whole = Some(other);
            in_pieces
        }),
    };
    Ok((outcome, whole))
}

/// The findings about a trace as text, for the summary of a job.
pub fn summary(session: &Session) -> Result<String> {
    Ok(text(&measured(session)?.output, &session.drawable))
}

/// The section of a report.
fn section(session: &Session) -> MaybeSection<'_> {
    Ok(Some(part_from_others(Analyses::of(session), |options| {
        listed(
            || options.beside_sections(),
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

//! Questions that one analysis of selected tasks answers.

use crate::command::{Question, Subcommand};
use anyhow::{Result, bail};
use draw::Figure;
use sched::{Chosen, Diagnostics, Joined, Lister, OfSelection, Window};
use serde::Serialize;
use session::Session;
use session::args::{BeginArgs, SymbolArgs, TaskArgs, TraceArgs};
use session::document::TraceDocument;
use session::formats::{Format, Formats, OutputArgs, Renderings};
use session::section::{Conclusion, MaybeSection, ReportSection, SectionAnalysis, Unanswered, listed};
use std::io::Write;
use std::process::ExitCode;
use timeline::Sheet;
use timeline::page::Heading;

/// The arguments that every question about selected tasks has
#[derive(Clone, Debug, clap::Args)]
pub struct SharedArgs {
    /// The trace, and the part of it that is asked for.
    #[command(flatten)]
    pub trace: TraceArgs,
    /// The place where reading begins.
    #[command(flatten)]
    pub begin: BeginArgs,
    /// The selection of tasks.
    #[command(flatten)]
    pub tasks: TaskArgs,
    /// The files to write.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// A question that the report of one analysis answers, about selected tasks in a window.
///
/// The command opens the trace, asks for the options, runs the analysis, and gives the report in the formats that were asked for.
/// The section of a `report` does the same with [`TaskQuestion::of_section`] in place of arguments.
pub trait TaskQuestion: 'static {
    /// The name of the command, as it is typed.
    const NAME: &'static str;

    /// The heading of its section in a report.
    const TITLE: &'static str;

    /// The name and version of its documents, such as `schedviz/latency/1`.
    const SCHEMA: &'static str;

    /// The formats in which the answer can be written.
    const FORMATS: Formats;

    /// A line among the first steps of `schedviz --help`: see [`Subcommand::FIRST_STEP`].
    const FIRST_STEP: Option<(&'static str, &'static str)> = None;

    /// The question in words, and the arguments of the command line that answers it: see [`Subcommand::QUESTION`].
    const QUESTION: Option<(&'static str, &'static str)> = None;

    /// Whether its section keeps the report for others that are made from it: see [`session::section::ReportPage::kept`].
    const IS_KEPT: bool = false;

    /// Whether the report sets the application apart, whatever the arguments: it is judged before the pass then (see
    /// [`Session::with_judged_command`]), unless that would read what a fast window leaves out.
    const NAMES_APPLICATION: bool = false;

    /// The arguments of the command; their documentation is its help.
    type Args: clap::Args;

    /// The options of the analysis.
    type Options<'o>: Sync;

    /// The report of the analysis, which is the document of `--json`. A report of a selection that turns out to be unknown is withheld.
    #[cfg(feature = "schema")]
    type Report: Serialize + OfSelection + Send + schemars::JsonSchema + 'static;
    /// The report of the analysis, which is the document of `--json`. A report of a selection that turns out to be unknown is withheld.
    #[cfg(not(feature = "schema"))]
    type Report: Serialize + OfSelection + Send + 'static;

    /// Returns the arguments that every such question has.
    fn shared(args: &Self::Args) -> &SharedArgs;

    /// Returns the arguments that name addresses of the kernel; nothing where the answer has no stacks.
    fn symbols(args: &Self::Args) -> Option<&SymbolArgs> {
        let _ = args;
        None
    }

    /// Refuses arguments that contradict one another, before the trace is opened.
    fn check(args: &Self::Args) -> Result<()> {
        let _ = args;
        Ok(())
    }

    /// Returns the options of the analysis by the arguments. `tasks` are the selected ones; none where all are.
    fn options<'o>(
        args: &'o Self::Args,
        session: &'o Session,
        tasks: Option<&'o Chosen<'o>>,
    ) -> Result<Self::Options<'o>>;

    /// Returns the options of the section in a report, about all tasks. The error is [`Unanswered`] where the trace or the window has no answer.
    fn of_section(session: &Session) -> Result<Self::Options<'_>>;

    /// Returns the reason why the trace has no figures of this question, whatever the arguments: events that all of them follow from were not
    /// recorded. The report is then withheld.
    fn unknowable(session: &Session) -> Option<String> {
        let _ = session;
        None
    }

    /// Returns the window that the analysis looks at.
    fn window(session: &Session) -> Window {
        session.page()
    }

    /// Makes the analysis, anew for each pass.
    fn analysis<'a, 'o: 'a>(options: &'a Self::Options<'o>) -> impl Joined<Output = Self::Report> + 'a;

    /// Returns the text for people; `args` are none in a section of a report.
    fn text(report: &Self::Report, session: &Session, args: Option<&Self::Args>) -> String;

    /// Returns the lines around the figures: kernel, losses and doubts.
    fn heading(session: &Session, report: &Self::Report, diagnostics: &Diagnostics) -> Heading;

    /// Draws the figures.
    fn figures(report: &Self::Report, options: &Self::Options<'_>, heading: &Heading) -> Vec<Figure>;

    /// Writes the rows as comma-separated values; called only where [`TaskQuestion::FORMATS`] has a table.
    fn table(report: &Self::Report, out: &mut dyn Write) -> Result<()> {
        let _ = (report, out);
        bail!("there is no table of this")
    }

    /// Returns the report in a dialect of the text; called only with those that [`TaskQuestion::FORMATS`] has.
    fn dialect(report: &Self::Report, dialect: Format) -> Result<String> {
        let _ = report;
        bail!("{} is no form of this", dialect.word())
    }
}

impl<Q: TaskQuestion> Subcommand for Q {
    const NAME: &'static str = <Q as TaskQuestion>::NAME;
    const FIRST_STEP: Option<(&'static str, &'static str)> = <Q as TaskQuestion>::FIRST_STEP;
    const QUESTION: Option<(&'static str, &'static str)> = <Q as TaskQuestion>::QUESTION;
    type Args = <Q as TaskQuestion>::Args;

    fn run(args: &Self::Args) -> Result<ExitCode> {
        let SharedArgs { trace, begin, tasks, output } = Q::shared(args);
        output.check(<Q as TaskQuestion>::FORMATS)?;
        begin.without_descent(tasks.forked, "--forked")?;
        Q::check(args)?;
        let names_application = Q::NAMES_APPLICATION && !begin.fast_window;
        let mut session = trace.open()?.with_judged_command_if(tasks.forked || names_application)?;
        if let Some(symbols) = Q::symbols(args) {
            symbols.give(&mut session)?;
        }
        tasks.check(&session)?;
        let chosen = tasks.chooser(&session)?;
        let chosen = tasks.is_any().then_some(&chosen as &Chosen<'_>);
        let options = Q::options(args, &session, chosen)?;
        let analysis = || Q::analysis(&options);
        let (mut report, diagnostics) =
            session.measured_in_pieces(begin, Q::window(&session), chosen, tasks.forked, analysis)?;
        Q::unknowable(&session).into_iter().for_each(|why| report.withhold(why));
        let text = || Q::text(&report, &session, Some(args));
        let figures =
            |sheet: &Sheet| Ok(Q::figures(&report, &options, &Q::heading(&session, &report, &diagnostics).on(sheet)));
        let formats = <Q as TaskQuestion>::FORMATS;
        let renderings =
            if formats.draws_unasked() { Renderings::drawn(figures) } else { Renderings::told(text, figures) };
        let document = TraceDocument::of(&session, &report, &diagnostics);
        let name = <Q as TaskQuestion>::NAME;
        let renderings = renderings.with_csv(|out| Q::table(&report, out));
        let renderings = renderings.with_dialects(|dialect| Q::dialect(&report, dialect));
        document.give(name, &session, output, renderings)?;
        Ok(ExitCode::SUCCESS)
    }
}

impl<Q: TaskQuestion> Question for Q {
    const FORMATS: Formats = <Q as TaskQuestion>::FORMATS;
    const IN_REPORT: bool = true;

    fn section(session: &Session) -> MaybeSection<'_> {
        if let Some(why) = Q::unknowable(session) {
            return Err(Unanswered(why).into());
        }
        Ok(Some(Box::new(TaskSection::<Q> { options: Q::of_section(session)? })))
    }

    #[cfg(feature = "schema")]
    fn schemas() -> Vec<crate::NamedSchema> {
        vec![crate::schema::<TraceDocument<'static, Q::Report>>(Q::SCHEMA)]
    }
}

/// The section of a question in a report, with the options of its analysis.
struct TaskSection<'s, Q: TaskQuestion> {
    options: Q::Options<'s>,
}

impl<Q: TaskQuestion> SectionAnalysis for TaskSection<'_, Q> {
    fn analysis(&self) -> Lister<'_, Conclusion<'_>> {
        let options = &self.options;
        listed(
            || Q::analysis(options),
            move |report, page| {
                let heading = Q::heading(page.session, &report, page.diagnostics).on(page.sheet);
                let section = ReportSection {
                    title: Q::TITLE.to_owned(),
                    figures: Q::figures(&report, options, &heading),
                    text: Q::text(&report, page.session, None),
                    json: page.json(&report)?,
                };
                if Q::IS_KEPT {
                    page.keep(report);
                }
                Ok(section)
            },
        )
    }
}

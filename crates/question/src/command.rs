//! Commands of the program, and those among them that answer a question about a trace.

use anyhow::Result;
use clap::{ArgMatches, Args, FromArgMatches};
use session::Session;
use session::args::{ReadArgs, WindowArgs};
use session::formats::Formats;
use session::section::{MaybeSection, ReportSection};
use std::path::Path;
use std::process::ExitCode;
use timeline::Sheet;

/// A command of the program.
pub trait Subcommand: 'static {
    /// The name of the command, as it is typed.
    const NAME: &'static str;

    /// Another name of the command, by which people look for it.
    const ALIAS: Option<&'static str> = None;

    /// Whether `schedviz --help` leaves the command out.
    const IS_HIDDEN: bool = false;

    /// Whether its text may go through a pager: not where the command itself uses the terminal, or where others read what it prints.
    const IS_PAGED: bool = true;

    /// A command line for a newcomer, without `schedviz` in front, and its purpose in at most 32 letters: a line among the first
    /// steps of `schedviz --help`.
    const FIRST_STEP: Option<(&'static str, &'static str)> = None;

    /// The question that the command answers, and the arguments of the command line that answers it: a row of the table in the
    /// README. Commands with the same question share a row; a command without a question is in none.
    const QUESTION: Option<(&'static str, &'static str)> = None;

    /// The arguments under a heading of `--help` that `-h` shows as well, by name, beside those that many commands share.
    const BRIEF: &'static [&'static str] = &[];

    /// The form in which the command answers a question about files that it is given, while it writes none; nothing where it writes files,
    /// serves a page, or asks the running machine. `schedviz mcp` offers the commands that have one. A [`Question`] has documents.
    const ANSWERS: Option<Answers> = None;

    /// The arguments of the command; their documentation is its help.
    type Args: Args;

    /// Does the work of the command, and returns the exit status. Messages go through [`session::messages`].
    fn run(args: &Self::Args) -> Result<ExitCode>;
}

/// The form of an answer on standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    /// One JSON document, which `--json` asks for.
    Document,
    /// Lines of text, which can be too many to be held.
    Lines,
}

/// A question about a trace, which a command answers.
pub trait Question: Subcommand {
    /// The formats in which the answer can be written.
    const FORMATS: Formats;

    /// Whether the question has a section in reports. Its files there are called after the command.
    const IN_REPORT: bool = false;

    /// Prepares the section of a report on `session`; nothing where reports on one trace have none. The error is
    /// [`Unanswered`](session::section::Unanswered) where the trace lacks what the question needs. It must not run an analysis: the report runs
    /// those of all sections in one pass. A question that implements it is [`Question::IN_REPORT`].
    fn section(session: &Session) -> MaybeSection<'_> {
        let _ = session;
        Ok(None)
    }

    /// Makes the section of a report on a folder of `record --runs`; nothing where the question is not about several runs. A question
    /// that implements it is [`Question::IN_REPORT`].
    fn section_of_runs(
        folder: &Path,
        read: &ReadArgs,
        window: &WindowArgs,
        sheet: &Sheet,
    ) -> Result<Option<ReportSection>> {
        let _ = (folder, read, window, sheet);
        Ok(None)
    }

    /// Returns the JSON schema of each document that the command prints.
    #[cfg(feature = "schema")]
    fn schemas() -> Vec<NamedSchema>;
}

/// A JSON schema, with the name and version that its documents have in their field `schema`.
#[cfg(feature = "schema")]
pub type NamedSchema = (&'static str, schemars::Schema);

/// Generates the schema of a document whose field `schema` is `id`.
///
/// # Panics
///
/// If the type has no such field.
#[cfg(feature = "schema")]
pub fn schema<T: schemars::JsonSchema>(id: &'static str) -> NamedSchema {
    let settings = schemars::generate::SchemaSettings::draft2020_12().for_serialize();
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.insert("title".into(), id.into());
    let constant = serde_json::json!({ "const": id, "description": "The name and version of this schema." });
    *schema.pointer_mut("/properties/schema").expect("a document names its schema") = constant;
    (id, schema)
}

/// The work of a command whose arguments were parsed.
pub type Invocation = Box<dyn FnOnce() -> Result<ExitCode>>;

/// Makes the section of a report on a folder of runs: see [`Question::section_of_runs`].
type SectionOfRuns = fn(&Path, &ReadArgs, &WindowArgs, &Sheet) -> Result<Option<ReportSection>>;

/// A line of the program's list of commands.
#[derive(Clone, Copy)]
pub struct Entry {
    /// The name of the command.
    pub name: &'static str,
    /// Another name of the command.
    pub alias: Option<&'static str>,
    /// A command line for a newcomer, and its purpose.
    pub first_step: Option<(&'static str, &'static str)>,
    /// The question that the command answers, and the arguments of the command line that answers it.
    pub question: Option<(&'static str, &'static str)>,
    /// Whether `schedviz --help` leaves the command out.
    pub is_hidden: bool,
    /// The form of its answer: see [`Subcommand::ANSWERS`].
    pub answers: Option<Answers>,
    /// Whether its text may go through a pager.
    pub is_paged: bool,
    define: fn(clap::Command) -> clap::Command,
    parse: fn(&mut ArgMatches) -> Result<Invocation, clap::Error>,
    contract: Option<Contract>,
}

/// The functions of a [`Question`].
#[derive(Clone, Copy)]
struct Contract {
    formats: Formats,
    in_report: bool,
    section: for<'s> fn(&'s Session) -> MaybeSection<'s>,
    section_of_runs: SectionOfRuns,
    #[cfg(feature = "schema")]
    schemas: fn() -> Vec<NamedSchema>,
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Entry").field(&self.name).finish()
    }
}

impl Entry {
    /// The line of a command that answers no question about a trace.
    pub const fn command<C: Subcommand>() -> Entry {
        Entry {
            name: C::NAME,
            alias: C::ALIAS,
            first_step: C::FIRST_STEP,
            question: C::QUESTION,
            is_hidden: C::IS_HIDDEN,
            answers: C::ANSWERS,
            is_paged: C::IS_PAGED,
            define: defined::<C>,
            parse: parsed::<C>,
            contract: None,
        }
    }

    /// The line of a command that answers a question.
    pub const fn question<Q: Question>() -> Entry {
        let contract = Contract {
            formats: Q::FORMATS,
            in_report: Q::IN_REPORT,
            section: Q::section,
            section_of_runs: Q::section_of_runs,
            #[cfg(feature = "schema")]
            schemas: Q::schemas,
        };
        Entry { contract: Some(contract), answers: Some(Answers::Document), ..Entry::command::<Q>() }
    }

    /// Returns the definition of the command for clap. Its arguments are defined when the command is used: to define those of all
    /// commands takes longer than to read a small trace.
    pub fn definition(&self) -> clap::Command {
        let command = clap::Command::new(self.name).hide(self.is_hidden).defer(self.define);
        self.alias.into_iter().fold(command, clap::Command::visible_alias)
    }

    /// Takes the arguments of the command from what clap has matched.
    pub fn parse(&self, matches: &mut ArgMatches) -> Result<Invocation, clap::Error> {
        (self.parse)(matches)
    }

    /// Returns the formats in which the answer can be written; nothing for a command that answers no question about a trace.
    pub fn formats(&self) -> Option<Formats> {
        self.contract.map(|question| question.formats)
    }

    /// Whether the command has a section in reports: see [`Question::IN_REPORT`].
    pub fn is_in_report(&self) -> bool {
        self.contract.is_some_and(|question| question.in_report)
    }

    /// Prepares the section of a report: see [`Question::section`].
    pub fn section<'s>(&self, session: &'s Session) -> MaybeSection<'s> {
        self.contract.map_or(Ok(None), |question| (question.section)(session))
    }

    /// Makes the section of a report on a folder of runs: see [`Question::section_of_runs`].
    pub fn section_of_runs(
        &self,
        folder: &Path,
        read: &ReadArgs,
        window: &WindowArgs,
        sheet: &Sheet,
    ) -> Result<Option<ReportSection>> {
        self.contract.map_or(Ok(None), |question| (question.section_of_runs)(folder, read, window, sheet))
    }

    /// Returns the JSON schemas of the documents of a question.
    #[cfg(feature = "schema")]
    pub fn schemas(&self) -> Vec<NamedSchema> {
        self.contract.map_or_else(Vec::new, |question| (question.schemas)())
    }
}

/// The shared arguments that short help shows. Those without a heading all stand there, and those in [`Subcommand::BRIEF`].
const BRIEF: [&str; 8] = ["output", "json", "min", "max", "tasks", "topology", "cpus", "forked"];

/// Defines the arguments of a command. `-h` shows those that one question needs, `--help` all of them.
fn defined<C: Subcommand>(command: clap::Command) -> clap::Command {
    C::Args::augment_args(command).mut_args(|argument| {
        let name = argument.get_id().as_str();
        let is_brief = argument.get_help_heading().is_none() || BRIEF.contains(&name) || C::BRIEF.contains(&name);
        argument.hide_short_help(!is_brief)
    })
}

/// Takes the arguments of a command from what clap has matched.
fn parsed<C: Subcommand>(matches: &mut ArgMatches) -> Result<Invocation, clap::Error> {
    let args = C::Args::from_arg_matches_mut(matches)?;
    Ok(Box::new(move || C::run(&args)))
}
